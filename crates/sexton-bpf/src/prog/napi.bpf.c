/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Since when network polling waits on each core, and for how long it waited.
 *
 * A stamp is set when work is raised or a polling thread is woken or loses its core,
 * and cleared when it runs. Stamps lie in memory that user space maps, so a wait that has
 * not ended yet is seen without asking the core that is stuck. Each core writes
 * its own slot with interrupts or softirqs off; user space attaches the side that
 * clears before the side that sets.
 */
#include "kernel.h"
#include <bpf/bpf_tracing.h>
#include "napi.h"
#include "tasks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/linux/interrupt.h. The low bit is the slot: NET_TX or NET_RX. */
#define NET_TX_SOFTIRQ 2
#define NET_RX_SOFTIRQ 3

/* napi_struct.state, include/linux/netdevice.h. Whoever disables an instance
 * takes the first bit too. */
#define NAPI_SCHEDULED (1 << 0)
#define NAPI_DISABLED (1 << 2 | 1 << 3)

#define MAX_THREADS 1024
#define MAX_INSTANCES 2048

/* Set before loading. */
const volatile u64 threshold_ns = 500000000;

/* Has the skeleton describe these types. */
const volatile struct napi_core core_type;
const volatile struct napi_thread thread_type;
const volatile struct napi_instance instance_type;

/* Counts up when user space has read the intervals' maxima. */
u32 epoch;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one per core: set before loading */
	__type(key, u32);
	__type(value, struct napi_core);
} cores SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_THREADS);
	__type(key, u32);
	__type(value, struct napi_thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_INSTANCES);
	__type(key, u64);
	__type(value, struct napi_instance);
} instances SEC(".maps");

static __always_inline struct napi_core *core_of(u32 cpu)
{
	return bpf_map_lookup_elem(&cores, &cpu);
}

static __always_inline struct napi_core *this_core(void)
{
	return core_of(bpf_get_smp_processor_id());
}

/* Kernels without SMP have neither field, and one core. */
static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___info *info = (void *)task;
	struct task_struct___cpu *old = (void *)task;

	if (bpf_core_field_exists(info->thread_info.cpu))
		return info->thread_info.cpu;
	if (bpf_core_field_exists(old->cpu))
		return old->cpu;
	return 0;
}

/* What a task polls for, by its name; negative for all others. Byte by byte, as
 * most names differ in the first, and a helper to copy one costs more than that. */
static __always_inline int what_of(struct task_struct *task)
{
	const char *comm = task->comm;

	if (comm[0] == 'k' && comm[1] == 's' && comm[2] == 'o' && comm[3] == 'f' && comm[4] == 't' &&
	    comm[5] == 'i' && comm[6] == 'r' && comm[7] == 'q')
		return KSOFTIRQD;
	if (comm[0] == 'n' && comm[1] == 'a' && comm[2] == 'p' && comm[3] == 'i' && comm[4] == '/')
		return THREAD;
	return -1;
}

/* Whether anything may wait for this core. Only then does it matter when a task
 * got it: reading the clock at every switch would cost more than all the rest. */
static __always_inline bool is_waited_for(struct napi_core *core)
{
	return core->since_ns[NET_TX] | core->since_ns[NET_RX] | core->since_ns[KSOFTIRQD] | core->thread_since_ns;
}

/* Since when the oldest of them waits. */
static __always_inline u64 waited_for_since(struct napi_core *core)
{
	u64 oldest = core->thread_since_ns;

	for (u32 i = 0; i < N_WAITS; i++) {
		u64 since = core->since_ns[i];

		if (since && (!oldest || since < oldest))
			oldest = since;
	}
	return oldest;
}

/* Who held the core while this waited: the task that runs now, or one that ran longer.
 * At a switch that is the one which leaves. Polling itself has only just got it. */
static __always_inline void name_holder(struct napi_core *core, struct napi_served *served)
{
	struct holder *holder = &served->holder;
	u64 since = later(core->current_since_ns, served->since_ns);

	if (served->until_ns - since >= STRETCH_NS) {
		holder->since_ns = since;
		holder->ns = served->until_ns - since;
		holder->pid = bpf_get_current_pid_tgid();
		bpf_get_current_comm(holder->comm, sizeof(holder->comm));
	}
	prefer_longer(holder, &core->stretches, served->since_ns);
}

static __always_inline void note(struct napi_core *core, u64 slot, struct napi_served *served)
{
	u64 ns = served->until_ns - served->since_ns;

	count_delay(&core->delays[slot], ns);
	if (ns > core->longest_ns[slot])
		core->longest_ns[slot] = ns;
	if (ns < threshold_ns)
		return;
	name_holder(core, served);
	core->served[core->n_served & (N_SERVED - 1)] = *served;
	core->n_served++;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(napi_softirq_raise, unsigned int vec)
{
	struct napi_core *core;
	u64 slot = vec & 1;

	if (vec != NET_TX_SOFTIRQ && vec != NET_RX_SOFTIRQ)
		return 0;
	core = this_core();
	if (core && !core->since_ns[slot])
		core->since_ns[slot] = bpf_ktime_get_boot_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(napi_softirq_entry, unsigned int vec)
{
	struct napi_served served = {};
	struct napi_core *core;
	u64 slot = vec & 1;

	if (vec != NET_TX_SOFTIRQ && vec != NET_RX_SOFTIRQ)
		return 0;
	core = this_core();
	if (!core)
		return 0;
	/* An interrupt may raise it anew from here on: clear at once. */
	served.since_ns = core->since_ns[slot];
	core->since_ns[slot] = 0;
	if (!served.since_ns)
		return 0;
	served.until_ns = bpf_ktime_get_boot_ns();
	served.what = slot;
	served.cpu = bpf_get_smp_processor_id();
	note(core, slot, &served);
	return 0;
}

static __always_inline void wake_thread(struct task_struct *task)
{
	u64 now = bpf_ktime_get_boot_ns();
	u32 pid = task->pid, cpu = cpu_of(task);
	struct napi_thread *known = bpf_map_lookup_elem(&threads, &pid);
	struct napi_thread thread = { .since_ns = now, .seen_ns = now, .cpu = cpu };
	struct napi_core *core = core_of(cpu);

	if (core && !core->thread_since_ns)
		core->thread_since_ns = now;
	if (known) {
		known->seen_ns = now;
		known->cpu = cpu;
		if (!known->since_ns)
			known->since_ns = now;
		return;
	}
	bpf_core_read(thread.comm, sizeof(thread.comm), &task->comm);
	if (!bpf_map_update_elem(&threads, &pid, &thread, BPF_ANY))
		return;
	core = this_core();
	if (core)
		core->n_unknown++;
}

/* It was woken, or another took its core: from now on it waits. */
static __always_inline void begin_wait(struct task_struct *task, int what)
{
	struct napi_core *core;

	if (what == THREAD) {
		wake_thread(task);
		return;
	}
	core = core_of(cpu_of(task));
	if (core && !core->since_ns[KSOFTIRQD])
		core->since_ns[KSOFTIRQD] = bpf_ktime_get_boot_ns();
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(napi_sched_wakeup, struct task_struct *task)
{
	int what;

	if (!(task->flags & PF_KTHREAD))
		return 0;
	what = what_of(task);
	if (what >= 0 && !is_running(task))
		begin_wait(task, what);
	return 0;
}

/* Since when work of the network waits for this core; zero when none does. */
static __always_inline u64 network_since(struct napi_core *core)
{
	u64 tx = core->since_ns[NET_TX], rx = core->since_ns[NET_RX];

	return tx && (!rx || tx < rx) ? tx : rx;
}

/* Timers, RCU and block devices wake it, too, and interrupts may have served the network
 * meanwhile: polling waits for it only while work of the network does. */
static __always_inline void run_ksoftirqd(struct napi_core *core, struct napi_served *served)
{
	u64 woken_ns = core->since_ns[KSOFTIRQD], pending_ns = network_since(core);

	core->since_ns[KSOFTIRQD] = 0;
	if (!woken_ns || !pending_ns)
		return;
	served->since_ns = later(woken_ns, pending_ns);
	served->what = KSOFTIRQD;
	note(core, KSOFTIRQD, served);
}

static __always_inline void run_thread(struct napi_core *core, struct napi_served *served)
{
	struct napi_thread *thread = bpf_map_lookup_elem(&threads, &served->waiter_pid);
	struct napi_core *woken_for;

	if (!thread || !thread->since_ns)
		return;
	woken_for = core_of(thread->cpu);
	if (woken_for)
		woken_for->thread_since_ns = 0;
	served->since_ns = thread->since_ns;
	thread->since_ns = 0;
	/* It was woken for another core. */
	if (!served->until_ns)
		served->until_ns = bpf_ktime_get_boot_ns();
	served->what = THREAD;
	note(core, KSOFTIRQD, served);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(napi_sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct napi_core *core = this_core();
	u32 pid = next->pid;
	u64 now = 0;

	if (!core)
		return 0;
	if (is_waited_for(core)) {
		u64 since = later(core->current_since_ns, waited_for_since(core));

		now = bpf_ktime_get_boot_ns();
		/* A thread may have been woken for this core a moment ago, by another. */
		if (now > since && now - since >= STRETCH_NS)
			note_stretch(&core->stretches, prev, since, now);
	}
	if (pid && next->flags & PF_KTHREAD) {
		struct napi_served served = {
			.until_ns = now,
			.waiter_pid = pid,
			.cpu = bpf_get_smp_processor_id(),
		};
		int what = what_of(next);

		if (what == KSOFTIRQD)
			run_ksoftirqd(core, &served);
		else if (what == THREAD)
			run_thread(core, &served);
	}
	if (prev->flags & PF_KTHREAD && is_runnable(prev, preempt)) {
		int what = what_of(prev);

		if (what >= 0)
			begin_wait(prev, what);
	}
	core->current_pid = pid;
	core->current_since_ns = now;
	return 0;
}

static __always_inline void add_instance(u64 address, struct napi_struct *napi, u64 now)
{
	struct napi_instance instance = { .polled_ns = now, .n_polls = 1, .epoch = epoch };
	struct net_device *device = napi->dev;
	struct napi_core *core;

	instance.napi_id = napi->napi_id;
	instance.cpu = bpf_get_smp_processor_id();
	if (device)
		bpf_core_read(instance.device, sizeof(instance.device), &device->name);
	if (!bpf_map_update_elem(&instances, &address, &instance, BPF_ANY))
		return;
	core = this_core();
	if (core)
		core->n_unknown++;
}

/* Called after each poll. An instance that is still scheduled has work left. */
SEC("tp_btf/napi_poll")
int BPF_PROG(napi_poll, struct napi_struct *napi, int work, int budget)
{
	u64 address = (u64)napi, now = bpf_ktime_get_boot_ns(), gap;
	struct napi_instance *instance = bpf_map_lookup_elem(&instances, &address);
	unsigned long state = napi->state;

	if (!instance) {
		add_instance(address, napi, now);
		return 0;
	}
	gap = instance->pending ? now - instance->polled_ns : 0;
	if (instance->epoch != epoch) {
		instance->epoch = epoch;
		instance->longest_ns = 0;
	}
	if (gap > instance->longest_ns)
		instance->longest_ns = gap;
	instance->n_polls++;
	instance->polled_ns = now;
	instance->pending = state & NAPI_SCHEDULED && !(state & NAPI_DISABLED);
	instance->cpu = bpf_get_smp_processor_id();
	return 0;
}

/* Runs off a timer on each core, and looks only where user space armed it. */
SEC("perf_event")
int napi_look(void *ctx)
{
	struct napi_core *core = this_core();
	struct napi_look *look;
	long bytes;

	if (!core || !core->armed)
		return 0;
	look = &core->look;
	look->version++;
	barrier();
	look->at_ns = bpf_ktime_get_boot_ns();
	look->pid = bpf_get_current_pid_tgid();
	bpf_get_current_comm(look->comm, sizeof(look->comm));
	bytes = bpf_get_stack(ctx, look->frames, sizeof(look->frames), 0);
	look->n_frames = bytes > 0 ? bytes / sizeof(u64) : 0;
	barrier();
	look->version++;
	return 0;
}
