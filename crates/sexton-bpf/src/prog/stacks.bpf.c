/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples what every core runs, again and again.
 *
 * A timer on each core runs this; the sample, with its addresses, goes into one
 * ring that user space empties a few times a second. Nobody is woken. Equal stacks
 * are made one in user space: sent whole they are some hundred bytes, which costs
 * less here than to look them up.
 */
#include "kernel.h"
#include "stacks.h"
#include "home.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* See include/uapi/linux/bpf.h. */
#define BPF_F_USER_STACK (1ULL << 8)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before loading */
} samples SEC(".maps");

/* The next sample of this CPU, as it goes into the ring. The timers of one CPU do not
 * interrupt each other. */
struct stacks_next {
	struct stacks_event event;
	u64 frames[2 * (MAX_FRAMES + 1)];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stacks_next);
} next SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one per core: set before loading */
	__type(key, u32);
	__type(value, struct stacks_tally);
} tallies SEC(".maps");

/* Rust knows the types of globals only. */
struct stacks_event event_type;
const volatile struct stacks_tally tally_type;

/* How many frames these bytes are; an error is none. */
static __always_inline u32 frames_in(long bytes)
{
	return bytes > 0 ? bytes / sizeof(u64) : 0;
}

static __always_inline void see_stacks(struct stacks_next *to, void *ctx)
{
	u32 n;

	n = frames_in(bpf_get_stack(ctx, to->frames, MAX_FRAMES * sizeof(u64), 0));
	if (n > MAX_FRAMES)
		n = MAX_FRAMES;
	to->event.n_kernel = n;
	/* The idle task also runs what interrupts bring while it has the core. Its stack
	 * shows that; where the kernel counts it differs too much from kernel to kernel. */
	if (to->event.state == STACKS_IDLE)
		return;
	to->event.state = n ? STACKS_KERNEL : STACKS_USER;
	to->event.n_user = frames_in(
		bpf_get_stack(ctx, &to->frames[n & MAX_FRAMES], MAX_FRAMES * sizeof(u64), BPF_F_USER_STACK));
}

SEC("perf_event")
int stacks_sample(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u64 ids = bpf_get_current_pid_tgid();
	u32 zero = 0, cpu = bpf_get_smp_processor_id(), size;
	struct stacks_tally *tally = bpf_map_lookup_elem(&tallies, &cpu);
	struct stacks_next *to = bpf_map_lookup_elem(&next, &zero);
	struct kernfs_node *home;
	struct mm_struct *mm;

	if (!to || !tally)
		return 0;
	tally->n_taken++;
	to->event.at_ns = bpf_ktime_get_boot_ns();
	to->event.cpu = cpu;
	to->event.pid = ids >> 32;
	to->event.tid = ids;
	to->event.state = ids ? STACKS_USER : STACKS_IDLE;
	to->event.cgroup_id = 0;
	to->event.in_v2 = 0;
	to->event.unused = 0;
	to->event.mm = 0;
	to->event.n_kernel = 0;
	to->event.n_user = 0;
	bpf_get_current_comm(to->event.comm, sizeof(to->event.comm));
	if (ids) {
		home = home_of(task);
		to->event.cgroup_id = BPF_CORE_READ(home, id);
		to->event.in_v2 = home == BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
		/* Its memory is where another program's was a moment ago, often enough; where
		 * its stack begins is random. */
		mm = BPF_CORE_READ(task, mm);
		if (mm)
			to->event.mm = (u64)mm ^ BPF_CORE_READ(mm, start_stack);
	}
	see_stacks(to, ctx);
	size = to->event.n_kernel + to->event.n_user;
	if (size > 2 * MAX_FRAMES)
		size = 2 * MAX_FRAMES;
	size = sizeof(to->event) + size * sizeof(u64);
	/* User space looks at the ring by itself. */
	if (bpf_ringbuf_output(&samples, to, size, BPF_RB_NO_WAKEUP))
		tally->n_lost++;
	return 0;
}
