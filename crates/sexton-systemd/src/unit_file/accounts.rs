//! The users and groups of an image: those of its files, and those that a boot makes.

use std::collections::HashSet;
use std::path::Path;

use crate::unit_file::file;
use crate::unit_file::tree::Tree;

/// The users and groups of an image.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    users: HashSet<String>,
    groups: HashSet<String>,
    /// Users that the first boot makes, with their homes.
    made: HashSet<String>,
    /// Whether there may be more of them, in a directory service.
    is_open: bool,
}

impl Accounts {
    pub(crate) fn read(tree: &mut Tree<'_>) -> Self {
        let mut accounts = Self::default();
        let first = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
        for (file, names) in [
            ("passwd", &mut accounts.users),
            ("group", &mut accounts.groups),
        ] {
            for folder in ["/etc", "/usr/lib"] {
                let text = tree.text(&Path::new(folder).join(file));
                names.extend(text.unwrap_or_default().lines().map(first));
            }
        }
        let table = tree.text(Path::new("/etc/nsswitch.conf"));
        accounts.is_open = is_open(&table.unwrap_or_default());
        // A line that begins so takes in more from a directory service.
        accounts.is_open |= accounts.users.iter().any(|name| name.starts_with('+'));
        if !accounts.users.is_empty() {
            accounts.add_made(tree);
        }
        accounts
    }

    /// Accounts that systemd knows by itself or from more files, and those that a boot makes
    /// before services that need them.
    fn add_made(&mut self, tree: &mut Tree<'_>) {
        for name in ["root", "nobody"] {
            self.users.insert(name.to_owned());
            self.groups.insert(name.to_owned());
        }
        for folder in ["/etc", "/usr/local/lib", "/usr/lib"] {
            let folder = Path::new(folder);
            for text in texts(tree, &folder.join("sysusers.d"), ".conf") {
                text.lines().for_each(|line| self.add_sysusers(line));
            }
            for entry in tree.list(&folder.join("userdb")) {
                let user = entry.name.strip_suffix(".user");
                self.users.extend(user.map(str::to_owned));
                let group = entry.name.strip_suffix(".group");
                self.groups.extend(group.or(user).map(str::to_owned));
            }
        }
        // cloud-init makes the user of the distribution on the first boot.
        let mut settings: Vec<String> = tree
            .text(Path::new("/etc/cloud/cloud.cfg"))
            .into_iter()
            .collect();
        settings.extend(texts(tree, Path::new("/etc/cloud/cloud.cfg.d"), ".cfg"));
        for name in settings.iter().flat_map(|text| cloud_users(text)) {
            self.users.insert(name.clone());
            self.groups.insert(name.clone());
            self.made.insert(name);
        }
    }

    /// Whether what is not here is nowhere.
    pub(crate) fn are_known(&self) -> bool {
        !self.users.is_empty() && !self.is_open
    }

    pub(crate) fn has_user(&self, name: &str) -> bool {
        self.users.contains(name)
    }

    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.groups.contains(name)
    }

    /// Whether a folder is the home of a user that the first boot makes.
    pub(crate) fn makes_home(&self, path: &Path) -> bool {
        let name = path.strip_prefix("/home").ok().and_then(Path::to_str);
        name.is_some_and(|name| self.made.contains(name))
    }

    fn add_sysusers(&mut self, line: &str) {
        let mut words = file::words(line).into_iter();
        let (Some(sort), Some(name)) = (words.next(), words.next()) else {
            return;
        };
        match sort.trim_end_matches(['!', '-']) {
            "u" => {
                self.groups.insert(name.clone());
                self.users.insert(name);
            }
            "g" => {
                self.groups.insert(name);
            }
            // Both are made if they are not there.
            "m" => {
                self.groups.extend(words.next());
                self.groups.insert(name.clone());
                self.users.insert(name);
            }
            _ => {}
        }
    }
}

/// The text of each file in a folder whose name ends so.
fn texts(tree: &mut Tree<'_>, folder: &Path, end: &str) -> Vec<String> {
    let entries = tree.list(folder).into_iter();
    let files = entries.filter(|entry| entry.name.ends_with(end));
    files
        .filter_map(|entry| tree.text(&folder.join(&entry.name)))
        .collect()
}

/// Names in the settings of cloud-init that stand below `default_user` or `users`.
fn cloud_users(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    // How far the list or user that names belong to is indented.
    let mut within: Option<usize> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        if bare.starts_with("default_user:") || bare.starts_with("users:") {
            within = Some(indent);
            continue;
        }
        let is_item = bare.starts_with('-');
        if within.is_some_and(|at| indent < at || indent == at && !is_item) {
            within = None;
        }
        let name = bare.trim_start_matches(['-', ' ']).strip_prefix("name:");
        if let Some(name) = name.filter(|_| within.is_some()) {
            names.push(name.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    names
}

/// Whether accounts are looked up in more than files.
fn is_open(table: &str) -> bool {
    const FILES: &[&str] = &[
        "files", "compat", "systemd", "altfiles", "usrfiles", "db", "role",
    ];
    let is_elsewhere = |word: &str| !word.starts_with('[') && !FILES.contains(&word);
    let lines = table.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_once(':')
    });
    let mut lines = lines.filter(|(key, _)| ["passwd", "group"].contains(&key.trim()));
    lines.any(|(_, words)| words.split_whitespace().any(is_elsewhere))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_a_directory_service() {
        let check = |table: &str, expected| assert_eq!(is_open(table), expected, "{table}");
        check(
            "passwd: files systemd\ngroup:\tfiles [SUCCESS=merge] systemd\n",
            false,
        );
        check("passwd: files sss\n", true);
        check(" group : compat ldap # x\n", true);
        check("# passwd: ldap\nhosts: files dns\n", false);
        check("", false);
    }

    #[test]
    fn users_that_cloud_init_makes() {
        let check =
            |text: &str, expected: &[&str]| assert_eq!(cloud_users(text), expected, "{text}");
        check(
            "system_info:\n   distro: ubuntu\n   default_user:\n     name: ubuntu\n     groups: [adm]\n   network:\n     name: x\n",
            &["ubuntu"],
        );
        check(
            "users:\n - default\n - name: deploy\n   uid: 7\nname: no\n",
            &["deploy"],
        );
        check(
            "users:\n- name: 'a'\n- name: b\nsystem_info:\n  name: no\n",
            &["a", "b"],
        );
        check("# default_user:\nname: no\n", &[]);
    }

    #[test]
    fn users_that_sysusers_makes() {
        let mut accounts = Accounts::default();
        let lines = "u! a -\n# u x\ng b -\nm c d\nr - 1-9\nu \"e\" 0\n";
        lines.lines().for_each(|line| accounts.add_sysusers(line));
        let sorted = |names: &HashSet<String>| {
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.sort_unstable();
            names.join(" ")
        };
        assert_eq!(sorted(&accounts.users), "a c e");
        assert_eq!(sorted(&accounts.groups), "a b c d e");
    }
}
