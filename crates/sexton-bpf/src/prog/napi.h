/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the napi program shares with user space. */
#ifndef SEXTON_NAPI_H
#define SEXTON_NAPI_H

#include "delays.h"
#include "stretches.h"

#define N_SERVED 8
#define N_FRAMES 24

/* What waits for a core. The first three have one stamp per core; threads have
 * one each, and share the counts of ksoftirqd. */
enum napi_what {
	NET_TX,
	NET_RX,
	KSOFTIRQD,
	THREAD,
};
#define N_WAITS 3

/* A wait over the threshold that has ended. */
struct napi_served {
	u64 since_ns;
	u64 until_ns;
	struct holder holder;
	u32 waiter_pid;
	enum napi_what what;
	u32 cpu;
	u32 unused;
};

/* The last look at what runs on a core. `version` is odd while it is written. */
struct napi_look {
	u64 version;
	u64 at_ns;
	u32 pid;
	u32 n_frames;
	u64 frames[N_FRAMES];
	u8 comm[16];
};

/* Written by its own core only, but for `armed`, and `longest_ns` set to zero,
 * which are user space's, and `thread_since_ns`, which says that a polling thread was
 * woken for this core. Stamps are zero when nothing waits; so is that of a task
 * which got the core while nothing waited. */
struct napi_core {
	u64 since_ns[N_WAITS];
	u64 thread_since_ns;
	u64 current_since_ns;
	u32 current_pid;
	u32 armed;
	u64 n_served;
	u64 n_unknown;
	u64 longest_ns[N_WAITS];
	struct delays delays[N_WAITS];
	struct stretches stretches;
	struct napi_served served[N_SERVED];
	struct napi_look look;
};

/* A kernel thread that polls, by its pid; `cpu` is the core it was woken for. */
struct napi_thread {
	u64 since_ns;
	u64 seen_ns;
	u32 cpu;
	u32 unused;
	u8 comm[16];
};

/* One NAPI instance, by its address. `longest_ns` is of the interval `epoch`. */
struct napi_instance {
	u64 polled_ns;
	u64 longest_ns;
	u64 n_polls;
	u32 epoch;
	u32 pending;
	u32 napi_id;
	u32 cpu;
	u8 device[16];
};

#endif
