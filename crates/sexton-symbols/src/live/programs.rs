//! Names of user addresses: what is mapped where in each process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::Host;
use sexton_host::code::Mapping;
use sexton_host::perf::{Known, Space, Spaces};
use sexton_model::moment::Moment;
use sexton_model::stack::CodeKind;
use sexton_model::text::escape;

use super::Place;
use super::behind::Behind;
use super::files::{Build, Files};
use super::made::Made;
use crate::vdso::{self, Vdso};

/// Processes that are known; beyond that those not seen lately are forgotten.
const MAX_PROGRAMS: usize = 512;
const FORGET_AFTER: Duration = Duration::from_secs(60);
/// Libraries come and go. An address that is in no mapping has them read again, at most
/// this often; all are read again after the longer time.
const READ_AGAIN: Duration = Duration::from_secs(1);
const READ_AGAIN_ANYWAY: Duration = Duration::from_secs(60);
/// Mappings of a process that are kept: far more than programs have that run well.
const MAX_MAPPINGS: usize = 8192;

/// What the code of processes is called.
#[derive(Debug)]
pub struct Programs {
    by_pid: HashMap<u32, Program>,
    files: Files,
    modules: HashMap<Vec<u8>, Arc<str>>,
    /// Not asked for yet; asked for and not there; there.
    vdso: Option<Option<Vdso>>,
    gone: Arc<str>,
    no_file: Arc<str>,
}

/// Which program of which process ran, and when.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// The process.
    pub pid: u32,
    /// Tells one program of a process from the next that it executes.
    pub mm: u64,
    /// When, in nanoseconds since boot.
    pub at_ns: u64,
}

/// One program of one process.
#[derive(Debug)]
struct Program {
    mm: u64,
    /// Processes above it, in whose roots its files can be found when it has exited.
    above: Vec<u32>,
    /// How many mappings records named when these were taken from them.
    n_told: Option<usize>,
    /// Sorted.
    mappings: Vec<Mapped>,
    read_at: Moment,
    seen_at: Moment,
    made: Option<Made>,
    made_at: Option<Moment>,
}

#[derive(Debug, Clone)]
struct Mapped {
    mapping: Mapping,
    module: Arc<str>,
    /// Not asked for yet; asked for and not there; there.
    code: Option<Option<Arc<Build>>>,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            by_pid: HashMap::new(),
            files: Files::default(),
            modules: HashMap::new(),
            vdso: None,
            gone: "[exited]".into(),
            no_file: "[anon]".into(),
        }
    }
}

impl Programs {
    /// Places of a process's addresses, innermost first. A process that ended before we
    /// could look, and of which no record tells, leaves one place that says so.
    pub fn places(
        &mut self,
        host: &Host,
        (ran, spaces): (Ran, &Spaces),
        addresses: &[u64],
        now: Moment,
    ) -> Vec<Place> {
        self.know(host, (ran, spaces), now);
        let mut places = Vec::with_capacity(addresses.len());
        for (i, address) in addresses.iter().enumerate() {
            // A caller's address is where it goes on after the call, which may be the next
            // function already.
            let address = if i == 0 {
                *address
            } else {
                address.saturating_sub(1)
            };
            let place = self.place(host, ran.pid, address, now);
            if place.symbol.is_some() || places.last() != Some(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Sees to it that the mappings of a process are known, from records or if it is still
    /// there.
    pub fn know(&mut self, host: &Host, (ran, spaces): (Ran, &Spaces), now: Moment) {
        let known = spaces.at(ran.pid, ran.at_ns);
        if let Some(program) = self.by_pid.get_mut(&ran.pid)
            && program.mm == ran.mm
        {
            program.seen_at = now;
            let n_told = program.n_told;
            let is_old = now.since(program.read_at) >= READ_AGAIN_ANYWAY;
            match known {
                Known::Space(space) if n_told.is_some_and(|n| n != space.mappings.len()) => {}
                _ if is_old => return self.read_again(host, ran.pid, now),
                _ => return,
            }
        }
        self.make_room(now);
        let mapped = match known {
            Known::Space(space) => self.told(host, (space, spaces), now),
            Known::Replaced => Some(Vec::new()),
            Known::Older => None,
        };
        let n_told = match known {
            Known::Space(space) => mapped.as_ref().map(|_| space.mappings.len()),
            _ => None,
        };
        let mapped = mapped.or_else(|| self.mappings(host, ran.pid));
        let above = spaces.above(ran.pid);
        self.insert(ran, (mapped.unwrap_or_default(), n_told, above), now);
    }

    /// Forgets processes that have exited.
    pub fn forget(&mut self, pids: &[u32]) {
        for pid in pids {
            self.by_pid.remove(pid);
        }
    }

    fn insert(
        &mut self,
        ran: Ran,
        (mappings, n_told, above): (Vec<Mapped>, Option<usize>, Vec<u32>),
        now: Moment,
    ) {
        let program = Program {
            mm: ran.mm,
            above,
            n_told,
            mappings,
            read_at: now,
            seen_at: now,
            made: None,
            made_at: None,
        };
        self.by_pid.insert(ran.pid, program);
    }

    /// Mappings as records name them; `None` when they begin with those of a process that
    /// cannot be asked any more.
    fn told(
        &mut self,
        host: &Host,
        (space, spaces): (&Space, &Spaces),
        now: Moment,
    ) -> Option<Vec<Mapped>> {
        let mut mapped = match space.base {
            Some(pid) => self.base(host, (pid, spaces), now)?,
            None => Vec::new(),
        };
        for mapping in space.mappings.iter() {
            let is_over =
                |old: &Mapped| old.mapping.start < mapping.end && mapping.start < old.mapping.end;
            mapped.retain(|old| !is_over(old));
            let fresh = self.mapped(mapping.clone());
            let i = mapped.partition_point(|old| old.mapping.start < mapping.start);
            mapped.insert(i, fresh);
        }
        Some(mapped)
    }

    /// The mappings of a process that is older than the records, from which another was forked.
    fn base(
        &mut self,
        host: &Host,
        (pid, spaces): (u32, &Spaces),
        now: Moment,
    ) -> Option<Vec<Mapped>> {
        // It has executed another program since.
        if spaces.has(pid) {
            return None;
        }
        match self.by_pid.get_mut(&pid) {
            Some(program) => {
                program.seen_at = now;
                if now.since(program.read_at) >= READ_AGAIN {
                    self.read_again(host, pid, now);
                }
            }
            None => {
                let mapped = self.mappings(host, pid)?;
                // No program has that number, so its own samples will have it read again.
                let ran = Ran {
                    pid,
                    mm: 0,
                    at_ns: 0,
                };
                self.insert(ran, (mapped, None, Vec::new()), now);
            }
        }
        let mappings = &self.by_pid.get(&pid)?.mappings;
        (!mappings.is_empty()).then(|| mappings.clone())
    }

    fn make_room(&mut self, now: Moment) {
        if self.by_pid.len() >= MAX_PROGRAMS {
            self.by_pid
                .retain(|_, program| now.since(program.seen_at) < FORGET_AFTER);
        }
        if self.by_pid.len() >= MAX_PROGRAMS {
            self.by_pid.clear();
        }
        if self.modules.len() >= MAX_MAPPINGS {
            self.modules.clear();
        }
    }

    fn mappings(&mut self, host: &Host, pid: u32) -> Option<Vec<Mapped>> {
        let mappings = Mapping::read_executable(host, pid).ok()?;
        let mappings = mappings.into_iter().take(MAX_MAPPINGS);
        Some(mappings.map(|mapping| self.mapped(mapping)).collect())
    }

    fn mapped(&mut self, mapping: Mapping) -> Mapped {
        let module = if mapping.path.is_empty() {
            &self.no_file
        } else {
            self.modules
                .entry(mapping.path.clone())
                .or_insert_with_key(|path| escape(path).into())
        };
        Mapped {
            module: Arc::clone(module),
            mapping,
            code: None,
        }
    }

    /// Reads the mappings again; one that is as it was keeps what is known of it.
    fn read_again(&mut self, host: &Host, pid: u32, now: Moment) {
        let fresh = self.mappings(host, pid);
        let Some(program) = self.by_pid.get_mut(&pid) else {
            return;
        };
        program.read_at = now;
        // A process that is about to be gone has none.
        let Some(mut fresh) = fresh.filter(|fresh| !fresh.is_empty()) else {
            return;
        };
        program.n_told = None;
        for mapped in &mut fresh {
            let old = program
                .mappings
                .iter_mut()
                .find(|old| old.mapping == mapped.mapping);
            mapped.code = old.and_then(|old| old.code.take());
        }
        program.mappings = fresh;
    }

    fn place(&mut self, host: &Host, pid: u32, address: u64, now: Moment) -> Place {
        let unknown = |module: &Arc<str>| named(module, None, 0);
        let is_missing = |program: &Program| program.find(address).is_none();
        let old = |program: &Program| now.since(program.read_at) >= READ_AGAIN;
        if let Some(program) = self.by_pid.get(&pid)
            && is_missing(program)
            && old(program)
        {
            self.read_again(host, pid, now);
        }
        let Some(program) = self.by_pid.get_mut(&pid) else {
            return unknown(&self.gone);
        };
        if program.mappings.is_empty() {
            return unknown(&self.gone);
        }
        let Some(i) = program.find(address) else {
            return unknown(&self.no_file);
        };
        let mapped = &mut program.mappings[i];
        let offset = address - mapped.mapping.start + mapped.mapping.offset;
        if mapped.mapping.path == vdso::NAME.as_bytes() {
            let vdso = self.vdso.get_or_insert_with(|| Vdso::read(host));
            let size = mapped.mapping.end - mapped.mapping.start;
            let vdso = vdso.as_ref().filter(|vdso| vdso.size() == size);
            let found = vdso.and_then(|vdso| vdso.find(offset));
            return named(&mapped.module, found, offset);
        }
        if !mapped.mapping.has_file() {
            return program.place_made(host, (pid, i), address, now);
        }
        let behind = Behind {
            pid,
            above: &program.above,
            mapping: &mapped.mapping,
        };
        let files = &mut self.files;
        let code = mapped
            .code
            .get_or_insert_with(|| files.code(host, behind, now));
        let found = code
            .as_ref()
            .and_then(|code| code.function(host, behind, offset));
        named(&mapped.module, found, offset)
    }
}

/// A place in a function that begins at an offset, or just at an offset of its own.
fn named(module: &Arc<str>, found: Option<(u64, Arc<str>)>, offset: u64) -> Place {
    let (address, symbol) = match found {
        Some((start, name)) => (start, Some(name)),
        None => (offset, None),
    };
    Place {
        kind: CodeKind::User,
        symbol,
        module: Some(Arc::clone(module)),
        address,
    }
}

impl Program {
    fn find(&self, address: u64) -> Option<usize> {
        let above = self
            .mappings
            .partition_point(|mapped| mapped.mapping.start <= address);
        let i = above.checked_sub(1)?;
        (address < self.mappings[i].mapping.end).then_some(i)
    }

    /// A place in code that the program made itself.
    fn place_made(
        &mut self,
        host: &Host,
        (pid, i): (u32, usize),
        address: u64,
        now: Moment,
    ) -> Place {
        let find = |made: &Option<Made>| made.as_ref()?.find(address);
        let mut found = find(&self.made);
        let is_old = self
            .made_at
            .is_none_or(|read| now.since(read) >= READ_AGAIN);
        if found.is_none() && is_old {
            self.made_at = Some(now);
            if let Some(new) = Made::read(host, pid, self.made.as_ref()) {
                self.made = Some(new);
            }
            found = find(&self.made);
        }
        let mapped = &self.mappings[i];
        named(&mapped.module, found, mapped.mapping.start)
    }
}
