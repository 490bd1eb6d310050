/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the cgroups program hands to user space. Rust takes these types from the
 * skeleton, so this is their only definition. */
#ifndef SEXTON_CGROUPS_H
#define SEXTON_CGROUPS_H

#define COMM_LEN 16
/* The kernel cuts the paths it tells tracepoints at this length
 * (TRACE_CGROUP_PATH_LEN), its closing zero included. */
#define PATH_LEN 1024
#define MAX_ANCESTORS 8

enum cgroups_what {
	CGROUPS_BORN,
	CGROUPS_REMOVED,
	CGROUPS_RELEASED,
};

/* A process above the one that made a cgroup. */
struct cgroups_ancestor {
	u32 tgid;
	u8 comm[COMM_LEN];
};

/* Something that happened to a cgroup. In the ring its path follows, `path_len` bytes
 * without a zero, and then `n_ancestors` ancestors, nearest first. */
struct cgroups_event {
	u64 at_ns; /* since boot, time asleep included */
	u64 id;
	u32 pid; /* the task that did it; of a release, the kernel's own */
	u32 tgid;
	enum cgroups_what what;
	u16 path_len;
	u16 n_ancestors;
	u8 comm[COMM_LEN];
};

/* Counted whether or not the event found room in the ring. */
struct cgroups_tally {
	u64 n_births;
	u64 n_removals;
	u64 n_releases;
	u64 n_births_elsewhere; /* in hierarchies that do not hold memory */
	u64 n_lost_births;	/* no room in the ring */
	u64 n_lost_removals;
	u64 n_lost_releases;
};

#endif
