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

#define N_MAKERS 128
#define MAKER_NAMES_LEN 512
/* An exit of a process that had run for less is that of a short one. */
#define SHORT_NS 1000000000

/* Processes that exited, by their cgroup and the name of their parent: who makes many of them.
 * Counts only grow, until the place is given to another that has more. */
struct exits_maker {
	u64 n;
	u64 n_short;
	u64 last_ns; /* of the last exit, since boot */
	u64 cgroup_id;
	u64 comm[COMM_LEN / sizeof(u64)]; /* of the parent, filled up with zeros */
	u64 child[COMM_LEN / sizeof(u64)]; /* of the child that exited last */
	u32 parent;			  /* of the child that exited last */
	u32 names_len;
	u8 names[MAKER_NAMES_LEN]; /* of the cgroup, as in an event */
};

/* Counted whether or not the event found room in the ring. */
struct exits_tally {
	u64 n_normal;	   /* ended with status 0 */
	u64 n_abnormal;	   /* any other way */
	u64 n_oom_victims; /* chosen to be killed, dead yet or not */
	u64 n_lost;	   /* no room in the ring */
	u64 n_unplaced;	   /* no place among the makers */
};

#endif
