/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who waited, for what, and woken by whom.
 *
 * A task's own storage keeps what cannot be asked for later: where in its program it
 * went to sleep, and who woke it. Its place in the kernel is read only when it runs again,
 * and only of waits that are told. Each core tells a few hundred waits a second at most:
 * with more, an event stands for so much time of waiting, as a sample stands for so
 * much of running, and no time is left out.
 */
#include "kernel.h"
#include <bpf/bpf_tracing.h>
#include "offcpu.h"
#include "home.h"
#include "tasks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* See include/uapi/linux/bpf.h. */
#define BPF_F_USER_STACK (1ULL << 8)
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ULL << 0)

/* A core that tells more waits than this makes each stand for more of them. */
#define MOST_A_SECOND 200

/* Set before loading. */
const volatile u64 shortest_ns = 1000000;
/* Only processes in `chosen`, and what they start. */
const volatile bool only_chosen = false;

struct bpf_iter__task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* What is kept of a task while it waits. */
struct offcpu_wait {
	u64 since_ns; /* 0: it does not wait */
	u64 woken_ns; /* 0: not yet */
	u64 weight_ns; /* what it stands for, once that is known; 0: it is not told */
	u32 waker_pid;
	u32 waker_tid;
	u32 n_user;
	u32 n_waker;
	u8 waker_comm[COMM_LEN];
	u64 user[MAX_FRAMES + 1];
	u64 waker[MAX_WAKER_FRAMES + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct offcpu_wait);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} chosen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before loading */
} events SEC(".maps");

/* The next event of this CPU, as it goes into the ring. */
struct offcpu_next {
	struct offcpu_event event;
	u64 frames[2 * (MAX_FRAMES + 1) + MAX_WAKER_FRAMES + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct offcpu_next);
} next_event SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one per core: set before loading */
	__type(key, u32);
	__type(value, struct offcpu_core);
} cores SEC(".maps");

/* Rust knows the types of globals only. */
struct offcpu_event event_type;
const volatile struct offcpu_core core_type;
const volatile enum offcpu_layout layout_type;

static __always_inline struct offcpu_core *this_core(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cores, &cpu);
}

/* How many frames these bytes are; an error is none. */
static __always_inline u32 frames_in(long bytes, u32 most)
{
	u32 n = bytes > 0 ? bytes / sizeof(u64) : 0;

	return n > most ? most : n;
}

static __always_inline bool is_chosen(u32 pid)
{
	return !only_chosen || bpf_map_lookup_elem(&chosen, &pid);
}

/* The registers of x86 with which a task entered the kernel. */
struct pt_regs___x86 {
	unsigned long bp, ip, cs;
} __attribute__((preserve_access_index));

/* Code of 64 bits, see arch/x86/include/asm/segment.h. */
#define USER_CS 0x33

enum bpf_func_id___regs {
	BPF_FUNC_task_pt_regs___regs = 175, /* the real value comes from BTF */
};

/* As the kernel follows frame pointers, which costs it more than twice as much. 0: it has to. */
static __always_inline u32 walk_user(struct task_struct *task, u64 *to)
{
	struct pt_regs___x86 *regs;
	u64 frame[2], at;
	u32 n = 1;

	if (!bpf_core_enum_value_exists(enum bpf_func_id___regs, BPF_FUNC_task_pt_regs___regs) ||
	    !bpf_core_field_exists(struct pt_regs___x86, bp))
		return 0;
	regs = (void *)bpf_task_pt_regs(task);
	if (!regs || regs->cs != USER_CS)
		return 0;
	to[0] = regs->ip;
	at = regs->bp;
	for (u32 i = 1; i < MAX_FRAMES; i++) {
		if (at & 7 || bpf_probe_read_user(frame, sizeof(frame), (void *)at) || !frame[1])
			break;
		to[i] = frame[1];
		n = i + 1;
		/* A caller's frame is further up. */
		if (frame[0] <= at)
			break;
		at = frame[0];
	}
	return n;
}

/* It leaves its core to sleep. Only now can its program be looked at. */
static __always_inline void begin_wait(void *ctx, struct task_struct *task)
{
	struct offcpu_wait *wait = bpf_task_storage_get(&waits, task, 0, 0);

	if (!wait)
		return;
	wait->woken_ns = 0;
	wait->weight_ns = 0;
	wait->n_user = 0;
	if (!(task->flags & PF_KTHREAD)) {
		wait->n_user = walk_user(task, wait->user);
		if (!wait->n_user)
			wait->n_user = frames_in(
				bpf_get_stack(ctx, wait->user, MAX_FRAMES * sizeof(u64), BPF_F_USER_STACK), MAX_FRAMES);
	}
	wait->since_ns = bpf_ktime_get_boot_ns();
}

/* Counts told waits from here on. */
static __always_inline void begin_count(struct offcpu_core *core, u64 now)
{
	core->began_ns = now;
	core->n_counted = 0;
	core->counted_ns = 0;
}

/* What this wait stands for; 0 when a later one will stand for it. */
static __always_inline u64 weigh(struct offcpu_core *core, u64 ns, u64 now)
{
	u64 owed, passed_ms;

	/* Clocks of two cores may differ a little. */
	if (ns < shortest_ns || ns >> 63)
		return 0;
	passed_ms = (now - core->began_ns) / 1000000 + 1;
	if (passed_ms > 1000) {
		if (core->n_counted < MOST_A_SECOND / 2)
			core->step_ns = core->step_ns > shortest_ns ? core->step_ns >> 1 : 0;
		begin_count(core, now);
	}
	core->n_waits++;
	owed = core->owed_ns + ns;
	if (owed < core->step_ns) {
		core->owed_ns = owed;
		return 0;
	}
	core->owed_ns = 0;
	core->n_counted++;
	core->counted_ns += owed;
	if (core->n_counted >= MOST_A_SECOND) {
		/* As much waiting as would make so many events of a second. */
		core->step_ns = core->counted_ns / MOST_A_SECOND * 1000 / passed_ms;
		begin_count(core, now);
	}
	return owed;
}

static __always_inline void describe(struct offcpu_next *to, struct task_struct *task)
{
	struct kernfs_node *home = home_of(task);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	to->event.cpu = bpf_get_smp_processor_id();
	to->event.pid = task->tgid;
	to->event.tid = task->pid;
	to->event.cgroup_id = BPF_CORE_READ(home, id);
	to->event.in_v2 = home == BPF_CORE_READ(task, cgroups, dfl_cgrp, kn);
	/* As samples of stacks tell programs apart. */
	to->event.mm = mm ? (u64)mm ^ BPF_CORE_READ(mm, start_stack) : 0;
	bpf_probe_read_kernel(to->event.comm, sizeof(to->event.comm), &task->comm);
}

/* Copies the frames of a wait behind the event, and tells it. */
static __always_inline void tell(struct offcpu_core *core, struct offcpu_next *to, struct offcpu_wait *wait,
				 struct task_struct *task)
{
	u32 n, at, size;

	n = frames_in(bpf_get_task_stack(task, to->frames, MAX_FRAMES * sizeof(u64), 0), MAX_FRAMES);
	to->event.n_kernel = n;
	at = n;
	n = wait->n_user;
	if (n > MAX_FRAMES)
		n = MAX_FRAMES;
	to->event.n_user = n;
	bpf_probe_read_kernel(&to->frames[at & MAX_FRAMES], n * sizeof(u64), wait->user);
	at += n;
	n = to->event.is_waker_known ? wait->n_waker : 0;
	if (n > MAX_WAKER_FRAMES)
		n = MAX_WAKER_FRAMES;
	to->event.n_waker = n;
	bpf_probe_read_kernel(&to->frames[at & (2 * MAX_FRAMES + 1)], n * sizeof(u64), wait->waker);
	size = at + n;
	if (size > 2 * MAX_FRAMES + MAX_WAKER_FRAMES)
		size = 2 * MAX_FRAMES + MAX_WAKER_FRAMES;
	size = sizeof(to->event) + size * sizeof(u64);
	/* User space looks at the ring by itself. */
	if (bpf_ringbuf_output(&events, to, size, BPF_RB_NO_WAKEUP)) {
		core->n_lost++;
		core->lost_ns += to->event.weight_ns;
	}
}

static __always_inline void end_wait(struct task_struct *task)
{
	struct offcpu_wait *wait = bpf_task_storage_get(&waits, task, 0, 0);
	struct offcpu_core *core;
	struct offcpu_next *to;
	u64 now, weight_ns;
	u32 zero = 0;

	if (!wait || !wait->since_ns)
		return;
	if (wait->woken_ns && !wait->weight_ns) {
		wait->since_ns = 0;
		return;
	}
	now = bpf_ktime_get_boot_ns();
	core = this_core();
	to = bpf_map_lookup_elem(&next_event, &zero);
	if (!core || !to)
		return;
	weight_ns = wait->weight_ns;
	if (!wait->woken_ns)
		weight_ns = weigh(core, now - wait->since_ns, now);
	if (weight_ns) {
		to->event.at_ns = now;
		to->event.weight_ns = weight_ns;
		to->event.is_waker_known = wait->woken_ns != 0;
		to->event.waker_pid = wait->waker_pid;
		to->event.waker_tid = wait->waker_tid;
		__builtin_memcpy(to->event.waker_comm, wait->waker_comm, sizeof(to->event.waker_comm));
		describe(to, task);
		tell(core, to, wait, task);
	}
	wait->since_ns = 0;
}

/* It is woken; what it waits for from now on is a core, which `runq` watches. Who runs on this
 * core wakes it, or an interrupt does: only the stack tells. */
SEC("tp_btf/sched_waking")
int BPF_PROG(offcpu_sched_waking, struct task_struct *task)
{
	struct offcpu_wait *wait = bpf_task_storage_get(&waits, task, 0, 0);
	struct offcpu_core *core;
	u64 ids, now;

	if (!wait || !wait->since_ns || wait->woken_ns)
		return 0;
	now = bpf_ktime_get_boot_ns();
	core = this_core();
	if (!core)
		return 0;
	wait->weight_ns = weigh(core, now - wait->since_ns, now);
	if (wait->weight_ns) {
		ids = bpf_get_current_pid_tgid();
		wait->waker_pid = ids >> 32;
		wait->waker_tid = ids;
		bpf_get_current_comm(wait->waker_comm, sizeof(wait->waker_comm));
		wait->n_waker =
			frames_in(bpf_get_stack(ctx, wait->waker, MAX_WAKER_FRAMES * sizeof(u64), 0), MAX_WAKER_FRAMES);
	}
	wait->woken_ns = now;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(offcpu_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (prev->pid && !is_runnable(prev, preempt) && !is_exiting(prev))
		begin_wait(ctx, prev);
	if (next->pid)
		end_wait(next);
	return 0;
}

/* Gives a task its storage. Not where it leaves its core: memory must not be asked for there, as
 * that may wake a task, which needs the same lock. */
static __always_inline void follow(struct task_struct *task)
{
	struct offcpu_core *core;

	if (bpf_task_storage_get(&waits, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return;
	core = this_core();
	if (core)
		core->n_unseen++;
}

/* What a chosen process starts is chosen. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(offcpu_sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 pid = parent->tgid, new = child->tgid;
	struct offcpu_core *core;
	u8 yes = 1;

	if (!is_chosen(pid))
		return 0;
	follow(child);
	if (!only_chosen || pid == new)
		return 0;
	if (bpf_map_update_elem(&chosen, &new, &yes, BPF_ANY)) {
		core = this_core();
		if (core)
			core->n_unseen++;
	}
	return 0;
}

/* Tasks that are there already. */
SEC("iter/task")
int offcpu_follow(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task && is_chosen(task->tgid))
		follow(task);
	return 0;
}

/* Its number may be another's soon. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(offcpu_sched_process_exit, struct task_struct *task)
{
	u32 pid = task->tgid;

	if (only_chosen && !task->signal->live.counter)
		bpf_map_delete_elem(&chosen, &pid);
	return 0;
}
