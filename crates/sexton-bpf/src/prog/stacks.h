/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the stacks program hands to user space. Rust takes these types from the
 * skeleton, so this is their only definition. */
#ifndef SEXTON_STACKS_H
#define SEXTON_STACKS_H

#define COMM_LEN 16
/* The kernel's own default limit (kernel.perf_event_max_stack). */
#define MAX_FRAMES 127

enum stacks_state {
	STACKS_USER = 0,
	STACKS_KERNEL = 1,
	STACKS_IDLE = 2,
};

/* One sample. In the ring its addresses follow: `n_kernel` of the kernel, then `n_user`
 * of the program, innermost first. */
struct stacks_event {
	u64 at_ns;     /* since boot, time asleep included */
	u64 cgroup_id; /* 0 when not known */
	u64 mm;	       /* tells one program of a process from the next that it executes */
	u32 cpu;
	u32 pid;
	u32 tid;
	enum stacks_state state;
	u32 n_kernel;
	u32 n_user;
	u32 in_v2; /* the cgroup's id is one of v2; ids of two hierarchies may be equal */
	u32 unused;
	u8 comm[COMM_LEN];
};

/* Of one core. Counted whether or not the sample found room in the ring. */
struct stacks_tally {
	u64 n_taken;
	u64 n_lost;
};

#endif
