/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the offcpu program hands to user space. Rust takes these types from the
 * skeleton, so this is their only definition. */
#ifndef SEXTON_OFFCPU_H
#define SEXTON_OFFCPU_H

#define COMM_LEN 16
/* The kernel's own default limit (kernel.perf_event_max_stack). */
#define MAX_FRAMES 127
enum offcpu_layout {
	/* From what wakes a task to the interrupt that brought it, if one did. */
	MAX_WAKER_FRAMES = 63,
};

/* One wait that ended. In the ring its addresses follow: `n_kernel` of the kernel, `n_user` of
 * the program, `n_waker` of the kernel at the moment of waking; innermost first. */
struct offcpu_event {
	u64 at_ns;     /* when it ran again, since boot, time asleep included */
	u64 weight_ns; /* what it stands for: waits that were not told are in it */
	u64 cgroup_id; /* 0 when not known */
	u64 mm;	       /* tells one program of a process from the next that it executes */
	u32 cpu;
	u32 pid;
	u32 tid;
	u32 in_v2; /* the cgroup's id is one of v2; ids of two hierarchies may be equal */
	u32 waker_pid;
	u32 waker_tid; /* 0 for the idle task */
	u32 is_waker_known;
	u32 n_kernel;
	u32 n_user;
	u32 n_waker;
	u8 comm[COMM_LEN];
	u8 waker_comm[COMM_LEN];
};

/* Of one core. */
struct offcpu_core {
	u64 n_waits; /* of at least the shortest that counts */
	u64 n_lost;  /* found no room in the ring */
	u64 lost_ns; /* what those stand for */
	u64 n_unseen; /* tasks that the kernel had no memory to follow */
	u64 owed_ns;  /* waits since the last one that was told */
	u64 step_ns;  /* so much of waiting is one event */
	u64 began_ns; /* counts of told waits begin here */
	u64 n_counted;
	u64 counted_ns;
};

#endif
