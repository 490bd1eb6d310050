//! Families of troubles: what one condition of a node covers. A rule names its family; all
//! that stands outside of the node (conditions of Kubernetes, their table in the documentation)
//! is made from here.

macro_rules! families {
    ($( $(#[doc = $doc:literal])* $name:ident = $shown:literal, )*) => {
        /// A family of troubles.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {
            $( $(#[doc = $doc])* $name, )*
        }

        impl Family {
            /// All families.
            pub const ALL: &'static [Self] = &[ $( Self::$name, )* ];

            /// Its name, as the type of a condition ends: `UnitLoop`.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$name => $shown, )*
                }
            }

            /// What a node of it suffers from, in a few words.
            pub fn about(self) -> &'static str {
                match self {
                    $( Self::$name => concat!($($doc),*).trim_ascii(), )*
                }
            }
        }
    };
}

families! {
    /// a unit restarts in a loop, or will once it starts
    UnitLoop = "UnitLoop",
    /// a unit failed and stays failed
    UnitFailed = "UnitFailed",
    /// a unit is on that has no business on this node
    UnitUnwanted = "UnitUnwanted",
    /// containers start and exit in a loop
    ContainerChurn = "ContainerChurn",
    /// dying memory cgroups or leaked cgroup directories pile up
    MemoryCgroupLeak = "MemoryCgroupLeak",
    /// processes were killed or stalled for want of memory
    MemoryShort = "MemoryShort",
    /// a core is lost to system time
    CoreLost = "CoreLost",
    /// tasks wait for a CPU
    CpuShort = "CPUShort",
    /// network polling does not get its core
    NetworkStarved = "NetworkStarved",
    /// packets are dropped
    NetworkDrops = "NetworkDrops",
    /// a NIC was reset or hung
    NicReset = "NICReset",
    /// a disk or filesystem is full, slow or broken
    Storage = "StorageTrouble",
    /// tasks hang, are not reaped, or are created in masses
    Tasks = "TaskTrouble",
    /// a limit of the kernel is near
    LimitNear = "LimitNear",
    /// the kernel reported an error of its own
    Kernel = "KernelTrouble",
    /// the hardware reported an error
    Hardware = "HardwareFault",
    /// work was lost after a fault of the node
    WorkLost = "WorkLost",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_words_of_conditions_and_differ() {
        let names: BTreeSet<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        assert_eq!(names.len(), Family::ALL.len());
        for name in names {
            let is_camel = name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric());
            assert!(is_camel, "{name}");
        }
    }

    #[test]
    fn each_says_what_it_is_about() {
        for family in Family::ALL {
            assert!(!family.about().is_empty(), "{family:?}");
        }
    }
}
