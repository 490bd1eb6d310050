/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the exits program hands to user space. Rust takes these types from the
 * skeleton, so this is their only definition. */
#ifndef SEXTON_EXITS_H
#define SEXTON_EXITS_H

#define COMM_LEN 16
#define NAME_LEN 256
#define MAX_NAMES 8
#define MAX_CLIENTS 16

enum exits_flags {
	EXITS_OOM = 1 << 0, /* chosen by the kernel when memory ran out */
	EXITS_CUT = 1 << 1, /* the path has more, or longer, names than we look at */
};

/* The end of a process, abnormal or of a client. In the ring the names of its cgroup follow, the
 * innermost first, each closed by a zero, `names_len` bytes in all. */
struct exits_event {
	u64 at_ns;    /* since boot, time asleep included */
	u64 start_ns; /* likewise */
	u64 cgroup_id;
	u32 pid; /* the task that ended last */
	u32 tgid;
	u32 uid;
	u32 code; /* as wait() would give it */
	enum exits_flags flags;
	u32 names_len;
	u8 comm[COMM_LEN];
};

/* Counted whether or not the event found room in the ring. */
struct exits_tally {
	u64 n_normal;	   /* ended with status 0 */
	u64 n_abnormal;	   /* any other way */
	u64 n_oom_victims; /* chosen to be killed, dead yet or not */
	u64 n_lost;	   /* no room in the ring */
};

#endif
