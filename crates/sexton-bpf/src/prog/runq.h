/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the runq program shares with user space. */
#ifndef SEXTON_RUNQ_H
#define SEXTON_RUNQ_H

#include "delays.h"
#include "stretches.h"

#define N_WAITED 64

/* A wait is one word, so that it is written and read whole: the pid in the low
 * bits, and above it the moment it began, in units of 1024 ns that wrap after 52
 * days. Zero when the task does not wait. */
enum runq_layout {
	UNIT_BITS = 10,
	PID_BITS = 22,
};

/* One slot per pid; pids that share one are counted as lost when both wait. */
#define N_SLOTS 32768
/* Odd, so that no two pids below N_SLOTS share a slot, and neighbours do not
 * share a cache line. */
#define SPREAD 9

/* A wait that has ended, and who ran longest meanwhile. */
struct runq_waited {
	u64 since_ns;
	u64 until_ns;
	struct holder holder;
	u32 pid;
	u32 unused;
	u8 comm[16];
};

/* Written by its own core only, but for `longest`, which user space clears. Stamps
 * of tasks are by the program's clock; `clock_ns` and `boot_ns` are one moment by
 * both clocks. All else is by the boot clock. */
struct runq_core {
	u64 clock_ns;
	u64 boot_ns;
	u64 current_since_ns;
	u32 current_pid;
	u32 unused;
	u64 n_lost;
	u64 n_waited;
	struct delays delays;
	struct runq_waited longest;
	struct runq_waited waited[N_WAITED];
	struct stretches stretches;
};

#endif
