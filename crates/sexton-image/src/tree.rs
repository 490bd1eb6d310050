//! A tree of files in memory: names and places, no content.
//!
//! For formats that have no index of their own (tar, OCI layers) or one that is read
//! once (squashfs). Paths resolve inside the tree and nowhere else.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sexton_host::{Entry, Kind, Meta, Root};

/// More files than this are refused.
///
/// Chosen: ten times the files of a large desktop image (200,000). A tar of nothing but
/// empty files makes one from 512 bytes that compress to almost none.
const N_NODES_MAX: usize = 2_000_000;

/// The same for the bytes of all names and link targets.
const NAME_BYTES_MAX: usize = 256 << 20;

/// As many links as Linux follows before it says that they loop.
pub(crate) const N_LINKS_MAX: usize = 40;

/// One file of a tree. `C` says where its content is.
#[derive(Debug, Clone)]
pub(crate) enum Node<C> {
    /// A directory: what is in it, by name.
    Dir(BTreeMap<Box<[u8]>, usize>),
    /// A regular file.
    File {
        /// Where its content is.
        content: C,
        /// How long it is.
        size_bytes: u64,
        /// As in `chmod`.
        permissions: u32,
    },
    /// A symbolic link and its target.
    Link(Box<[u8]>),
    /// A device, a pipe or a socket.
    Other,
}

/// What happens to a path that leads through a symbolic link while a tree is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// It is followed, as `tar -x` does.
    Links,
    /// A directory takes its place, as in a layer that lies over another.
    Nothing,
}

/// Files by path.
#[derive(Debug)]
pub(crate) struct Tree<C> {
    nodes: Vec<Node<C>>,
    name_bytes: usize,
    /// Nodes from here on came with the layer that is being read,
    layer_from: usize,
    /// and so did these directories, which a layer below had too.
    renewed: HashSet<usize>,
}

impl<C: Clone> Tree<C> {
    /// Only the root directory.
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![Node::Dir(BTreeMap::new())],
            name_bytes: 0,
            layer_from: 0,
            renewed: HashSet::new(),
        }
    }

    /// What is put from now on lies over what is there.
    pub(crate) fn begin_layer(&mut self) {
        self.layer_from = self.nodes.len();
        self.renewed.clear();
    }

    /// Puts a node at a path, in place of what was there; a directory that is there
    /// already keeps its content.
    pub(crate) fn put(&mut self, path: &[u8], node: Node<C>, through: Through) -> io::Result<()> {
        let Some((parent, name)) = self.parent(path, through)? else {
            return Ok(());
        };
        if let (Node::Dir(_), Some(old)) = (&node, self.child(parent, &name))
            && matches!(self.nodes[old], Node::Dir(_))
        {
            self.renewed.insert(old);
            return Ok(());
        }
        let id = self.add(node)?;
        self.attach(parent, &name, id)
    }

    /// A further name for the file at `target`.
    pub(crate) fn link(&mut self, path: &[u8], target: &[u8], through: Through) -> io::Result<()> {
        let found = self.resolve(target, false)?;
        let Some((parent, name)) = self.parent(path, through)? else {
            return Ok(());
        };
        if matches!(self.nodes[found], Node::Dir(_)) {
            return Err(invalid("a hard link to a directory"));
        }
        self.attach(parent, &name, found)
    }

    /// Takes away what is at a path, if anything is.
    pub(crate) fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = match path.iter().rposition(|&b| b == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        if let Ok(parent) = self.resolve(parent, false)
            && let Node::Dir(children) = &mut self.nodes[parent]
        {
            children.remove(name);
        }
        Ok(())
    }

    /// Takes away everything in a directory that layers below put there.
    pub(crate) fn empty(&mut self, path: &[u8]) {
        if let Ok(id) = self.resolve(path, false) {
            let mut folders = vec![id];
            while let Some(id) = folders.pop() {
                let Node::Dir(children) = &mut self.nodes[id] else {
                    continue;
                };
                let mut kept = std::mem::take(children);
                kept.retain(|_, child| *child >= self.layer_from || self.renewed.contains(child));
                folders.extend(kept.values().filter(|child| **child < self.layer_from));
                self.nodes[id] = Node::Dir(kept);
            }
        }
    }

    /// The node at a path.
    pub(crate) fn get(&self, path: &[u8], follow: bool) -> io::Result<&Node<C>> {
        Ok(&self.nodes[self.resolve(path, follow)?])
    }

    fn add(&mut self, node: Node<C>) -> io::Result<usize> {
        if self.nodes.len() >= N_NODES_MAX {
            return Err(too_much(format!("holds over {N_NODES_MAX} files")));
        }
        if let Node::Link(target) = &node {
            self.count_bytes(target.len())?;
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    fn count_bytes(&mut self, n: usize) -> io::Result<()> {
        self.name_bytes += n;
        if self.name_bytes > NAME_BYTES_MAX {
            return Err(too_much(format!(
                "has over {NAME_BYTES_MAX} bytes of names"
            )));
        }
        Ok(())
    }

    fn attach(&mut self, parent: usize, name: &[u8], id: usize) -> io::Result<()> {
        self.count_bytes(name.len())?;
        match &mut self.nodes[parent] {
            Node::Dir(children) => {
                children.insert(name.into(), id);
                Ok(())
            }
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn child(&self, id: usize, name: &[u8]) -> Option<usize> {
        match &self.nodes[id] {
            Node::Dir(children) => children.get(name).copied(),
            _ => None,
        }
    }

    /// The directory that a new file goes into, made if it is not there. `None` for the
    /// root itself.
    fn parent(&mut self, path: &[u8], through: Through) -> io::Result<Option<(usize, Vec<u8>)>> {
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in path.split(|&b| b == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(invalid("a name with `..` in it")),
                part => parts.push(part),
            }
        }
        let Some(name) = parts.pop() else {
            return Ok(None);
        };
        let mut here = 0;
        for (n, part) in parts.iter().enumerate() {
            here = match self.child(here, part) {
                Some(id) if matches!(self.nodes[id], Node::Dir(_)) => id,
                Some(id)
                    if through == Through::Links && matches!(self.nodes[id], Node::Link(_)) =>
                {
                    self.resolve(&parts[..=n].join(&b'/'), true)?
                }
                _ => {
                    let id = self.add(Node::Dir(BTreeMap::new()))?;
                    self.attach(here, part, id)?;
                    id
                }
            };
        }
        Ok(Some((here, name.to_vec())))
    }

    /// Walks a path from the root. `..` of the root is the root.
    fn resolve(&self, path: &[u8], follow_last: bool) -> io::Result<usize> {
        let mut todo: Vec<Vec<u8>> = split(path);
        let mut trail = vec![0];
        let mut n_links = 0;
        while let Some(part) = todo.pop() {
            if part == b".." {
                if trail.len() > 1 {
                    trail.pop();
                }
                continue;
            }
            let here = trail[trail.len() - 1];
            if !matches!(self.nodes[here], Node::Dir(_)) {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let next = self.child(here, &part).ok_or(io::ErrorKind::NotFound)?;
            match &self.nodes[next] {
                Node::Link(target) if follow_last || !todo.is_empty() => {
                    n_links += 1;
                    if n_links > N_LINKS_MAX {
                        return Err(invalid("symbolic links that loop"));
                    }
                    if target.first() == Some(&b'/') {
                        trail.truncate(1);
                    }
                    todo.extend(split(target));
                }
                _ => trail.push(next),
            }
        }
        Ok(trail[trail.len() - 1])
    }
}

/// The parts of a path, last one first.
pub(crate) fn split(path: &[u8]) -> Vec<Vec<u8>> {
    let parts = path.split(|&b| b == b'/').rev();
    parts
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}

pub(crate) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn too_much(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

/// Where the content of a tree's files is read from.
pub(crate) trait Contents<C>: Send + Sync {
    /// Up to `len` bytes from `offset` on; fewer only at the end.
    fn read(&self, content: &C, size_bytes: u64, offset: u64, len: usize) -> io::Result<Vec<u8>>;
}

/// A tree and its contents, as the files of a node.
pub(crate) struct TreeRoot<C, S> {
    pub(crate) tree: Tree<C>,
    pub(crate) contents: S,
}

impl<C: Clone + Send + Sync, S: Contents<C>> TreeRoot<C, S> {
    fn file(&self, path: &Path) -> io::Result<(&C, u64)> {
        match self.tree.get(path.as_os_str().as_bytes(), true)? {
            Node::File {
                content,
                size_bytes,
                ..
            } => Ok((content, *size_bytes)),
            Node::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
            Node::Link(_) | Node::Other => Err(invalid("not a regular file")),
        }
    }
}

impl<C: Clone + Send + Sync, S: Contents<C>> Root for TreeRoot<C, S> {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        let (content, size_bytes) = self.file(path)?;
        if size_bytes > limit_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let len = usize::try_from(size_bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.contents.read(content, size_bytes, 0, len)
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let (content, size_bytes) = self.file(path)?;
        let left = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.contents
            .read(content, size_bytes, offset, len.min(left))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let Node::Dir(children) = self.tree.get(path.as_os_str().as_bytes(), true)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let entries = children.iter().map(|(name, &id)| Entry {
            name: OsStr::from_bytes(name).to_owned(),
            is_dir: matches!(self.tree.nodes[id], Node::Dir(_)),
        });
        Ok(entries.collect())
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        match self.tree.get(path.as_os_str().as_bytes(), false)? {
            Node::Link(target) => Ok(PathBuf::from(OsString::from_vec(target.to_vec()))),
            _ => Err(invalid("not a symbolic link")),
        }
    }

    fn meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(meta(self.tree.get(path.as_os_str().as_bytes(), true)?))
    }

    fn link_meta(&self, path: &Path) -> io::Result<Meta> {
        Ok(meta(self.tree.get(path.as_os_str().as_bytes(), false)?))
    }

    fn is_live(&self) -> bool {
        false
    }
}

fn meta<C>(node: &Node<C>) -> Meta {
    let (kind, size_bytes, permissions) = match node {
        Node::Dir(_) => (Kind::Dir, 0, 0o755),
        Node::File {
            size_bytes,
            permissions,
            ..
        } => (Kind::File, *size_bytes, *permissions),
        Node::Link(target) => (Kind::Link, target.len() as u64, 0o777),
        Node::Other => (Kind::Other, 0, 0o644),
    };
    Meta {
        kind,
        size_bytes,
        permissions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Node<u8> {
        Node::File {
            content: 1,
            size_bytes: 0,
            permissions: 0o644,
        }
    }

    fn link(target: &str) -> Node<u8> {
        Node::Link(target.as_bytes().into())
    }

    #[track_caller]
    fn check(tree: &Tree<u8>, path: &str, expected: Result<char, io::ErrorKind>) {
        let found = tree.get(path.as_bytes(), true).map(|node| match node {
            Node::Dir(_) => 'd',
            Node::File { .. } => 'f',
            Node::Link(_) => 'l',
            Node::Other => 'o',
        });
        assert_eq!(found.map_err(|error| error.kind()), expected, "{path}");
    }

    #[test]
    fn everything_resolves_inside() {
        let mut tree = Tree::new();
        let mut put = |path: &str, node| {
            tree.put(path.as_bytes(), node, Through::Links)
                .expect("fits");
        };
        put("etc/passwd", file());
        put("a/up", link("../../../../etc/passwd"));
        put("a/abs", link("/etc/passwd"));
        put("a/loop", link("loop"));
        put("lib", link("usr/lib"));
        put("usr/lib", Node::Dir(BTreeMap::new()));
        put("lib/x.service", file());
        check(&tree, "/../../etc/passwd", Ok('f'));
        check(&tree, "/a/up", Ok('f'));
        check(&tree, "/a/abs", Ok('f'));
        check(&tree, "/a/loop", Err(io::ErrorKind::InvalidData));
        check(&tree, "/usr/lib/x.service", Ok('f'));
        check(&tree, "/etc/passwd/x", Err(io::ErrorKind::NotADirectory));
        check(&tree, "/none", Err(io::ErrorKind::NotFound));
        assert!(tree.put(b"../x", file(), Through::Links).is_err());
        assert!(tree.link(b"h", b"etc", Through::Links).is_err());
        assert!(tree.link(b"h", b"etc/passwd", Through::Links).is_ok());
        check(&tree, "/h", Ok('f'));
    }

    #[test]
    fn a_layer_covers_a_link_with_its_own_folder() {
        let mut tree = Tree::new();
        tree.put(b"lib", link("usr/lib"), Through::Nothing)
            .expect("fits");
        tree.put(b"lib/x", file(), Through::Nothing).expect("fits");
        check(&tree, "/lib/x", Ok('f'));
        check(&tree, "/usr/lib/x", Err(io::ErrorKind::NotFound));
        tree.remove(b"lib/x").expect("there");
        check(&tree, "/lib/x", Err(io::ErrorKind::NotFound));
    }
}
