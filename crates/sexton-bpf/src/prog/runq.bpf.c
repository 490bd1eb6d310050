/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long tasks that could run wait for a core, and who runs meanwhile.
 *
 * The moment a task begins to wait lies in a table that user space maps, so a
 * wait that has not ended yet is seen too. A table with one slot per pid instead
 * of a hash: both hooks are among the hottest of the kernel. For the same reason
 * a clock is read only where the scheduler's own, which stamps what it queues, may
 * not be fresh. Names are read only for waits and stretches that are worth telling.
 */
#include "kernel.h"
#include <bpf/bpf_tracing.h>
#include "runq.h"
#include "tasks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PID_MASK ((1ULL << PID_BITS) - 1)
#define TIME_MASK ((1ULL << (64 - PID_BITS)) - 1)

/* Shorter waits are never the longest worth telling. */
#define WORTH_NAMING_NS 1000000

/* How often one moment is read by both clocks. */
#define PAIR_NS 250000000

/* Set before loading. */
const volatile u64 threshold_ns = 100000000;

/* Has the skeleton describe these types. */
const volatile struct runq_core core_type;
const volatile enum runq_layout layout_type;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one per core: set before loading */
	__type(key, u32);
	__type(value, struct runq_core);
} cores SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, N_SLOTS);
	__type(key, u32);
	__type(value, u64);
} waits SEC(".maps");

static __always_inline struct runq_core *this_core(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cores, &cpu);
}

/* Whether the scheduler's clock and stamps are there; else the boot clock is read. */
static __always_inline bool has_stamps(struct task_struct___stamped *task)
{
	return bpf_core_field_exists(task->sched_info.last_queued) && bpf_core_field_exists(task->se.cfs_rq->rq);
}

/* Now, at a switch, by the scheduler's clock: fresh unless a task was woken that is
 * to run at once; then as of some moment since the last tick. Every task, of whatever
 * class, leads to the queue of its core. */
static __always_inline u64 clock_now(struct task_struct *next)
{
	struct task_struct___stamped *stamped = (void *)next;

	if (!has_stamps(stamped))
		return bpf_ktime_get_boot_ns();
	return stamped->se.cfs_rq->rq->clock;
}

/* The same, read anew: by the boot clock, and how far that is ahead on this core. */
static __always_inline u64 exact_now(struct runq_core *core, u64 now)
{
	return core->boot_ns ? bpf_ktime_get_boot_ns() - (core->boot_ns - core->clock_ns) : now;
}

static __always_inline u64 *slot_of(u32 pid)
{
	u32 slot = (pid * SPREAD) & (N_SLOTS - 1);

	return bpf_map_lookup_elem(&waits, &slot);
}

static __always_inline void begin_wait(u32 pid, u64 now)
{
	u64 *slot = slot_of(pid);
	struct runq_core *core;
	u64 old;

	if (!slot)
		return;
	old = *slot;
	if ((old & PID_MASK) == pid)
		return;
	if (old) {
		core = this_core();
		if (core)
			core->n_lost++;
	}
	*slot = now >> UNIT_BITS << PID_BITS | pid;
}

/* Takes the word of a task that waited; 0 when it did not. */
static __always_inline u64 end_wait(u32 pid)
{
	u64 *slot = slot_of(pid);
	u64 old;

	if (!slot)
		return 0;
	old = *slot;
	if ((old & PID_MASK) != pid)
		return 0;
	*slot = 0;
	return old;
}

/* Nanoseconds since the moment of a word, at least 1. */
static __always_inline u64 waited_ns(u64 word, u64 now)
{
	u64 units = ((now >> UNIT_BITS) - (word >> PID_BITS)) & TIME_MASK;

	/* Clocks of two cores may differ a little. */
	if (units > TIME_MASK / 2)
		return 1;
	return units << UNIT_BITS | 1;
}

static __always_inline void name_wait(struct runq_core *core, struct runq_waited *waited, u64 since, u64 now,
				      struct task_struct *prev, struct task_struct *next)
{
	waited->pid = next->pid;
	bpf_core_read(waited->comm, sizeof(waited->comm), &next->comm);
	waited->holder.pid = prev->pid;
	waited->holder.ns = now - later(core->current_since_ns, since);
	bpf_core_read(waited->holder.comm, sizeof(waited->holder.comm), &prev->comm);
	prefer_longer(&waited->holder, &core->stretches, since);
}

static __always_inline void note_wait(struct runq_core *core, u64 ns, u64 now, struct task_struct *prev,
				      struct task_struct *next)
{
	struct runq_waited waited = {};
	bool is_longest = ns > core->longest.until_ns - core->longest.since_ns;

	if (ns < threshold_ns && !is_longest)
		return;
	waited.until_ns = bpf_ktime_get_boot_ns();
	waited.since_ns = waited.until_ns - ns;
	name_wait(core, &waited, now - ns, now, prev, next);
	if (is_longest)
		core->longest = waited;
	if (ns < threshold_ns)
		return;
	core->waited[core->n_waited & (N_WAITED - 1)] = waited;
	core->n_waited++;
}

static __always_inline int woken(struct task_struct *task)
{
	struct task_struct___stamped *stamped = (void *)task;

	if (is_running(task))
		return 0;
	if (!has_stamps(stamped)) {
		begin_wait(task->pid, bpf_ktime_get_boot_ns());
		return 0;
	}
	/* Without a stamp it never left its queue, and waits since it left the core. Only that
	 * there is a stamp counts, not its time: on Linux 6.18 some stamps lay as far back as the
	 * task had slept, and all of its sleep would be a wait. The likely reason is delayed
	 * dequeue (v6.12), which keeps a task in its queue while it sleeps. What wakes a task has
	 * just brought the clock of its queue up to date. */
	if (stamped->sched_info.last_queued)
		begin_wait(task->pid, stamped->se.cfs_rq->rq->clock);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(runq_sched_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(runq_sched_wakeup_new, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(runq_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct runq_core *core = this_core();
	u64 now = clock_now(next), word, ns;

	if (!core)
		return 0;
	if (now - core->clock_ns >= PAIR_NS) {
		core->clock_ns = now;
		core->boot_ns = bpf_ktime_get_boot_ns();
	}
	if (prev->pid) {
		/* It ran until now. Whatever is left of an earlier wait would make one of its
		 * sleep, or of the life of the next task with its number. */
		end_wait(prev->pid);
		if (is_runnable(prev, preempt))
			begin_wait(prev->pid, now);
		if (core->current_since_ns && now - core->current_since_ns >= STRETCH_NS)
			note_stretch(&core->stretches, prev, core->current_since_ns, now);
	}
	if (next->pid) {
		word = end_wait(next->pid);
		ns = word ? waited_ns(word, now) : 0;
		/* None at all is that of a clock which is not fresh; and what is worth
		 * naming is worth a look at the clock. */
		if (ns == 1 || ns >= WORTH_NAMING_NS) {
			now = exact_now(core, now);
			ns = waited_ns(word, now);
		}
		if (ns)
			count_delay(&core->delays, ns);
		if (ns >= WORTH_NAMING_NS)
			note_wait(core, ns, now, prev, next);
	}
	core->current_pid = next->pid;
	core->current_since_ns = now;
	return 0;
}
