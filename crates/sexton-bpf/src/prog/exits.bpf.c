/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells of processes that end otherwise than with status 0, and of those with certain
 * names, however they end. Counts all of them by their parents.
 *
 * Raw tracepoints: nothing but BPF itself is needed to attach them, and a process
 * that ends costs the kernel no record it would throw away. The task that ends is
 * the current one, still in its cgroup.
 *
 * A process has ended when the last of its tasks has. Newer kernels tell the
 * tracepoint which one that is; older ones do not, and there two tasks that end at
 * once can both find that none is left. So we ask for the count on all of them,
 * and remember who was told of.
 */
#include "kernel.h"
#include "exits.h"
#include "home.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Holds four thousand ends of ordinary processes from one poll to the next. */
#define RING_BYTES (1 << 20)
/* More than can end while two tasks of one process do. */
#define MAX_TOLD 1024
#define NAMES_LEN (MAX_NAMES * NAME_LEN)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

/* The next event of this CPU, as it goes into the ring. Preemption is off in a
 * program of a tracepoint. */
struct exits_next {
	struct exits_event event;
	u8 names[NAMES_LEN + NAME_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct exits_next);
} next SEC(".maps");

/* A process, whoever gets its number after it. */
struct exits_process {
	u64 start_ns;
	u64 tgid;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_TOLD);
	__type(key, struct exits_process);
	__type(value, u8);
} told SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, N_MAKERS);
	__type(key, u32);
	__type(value, struct exits_maker);
} makers SEC(".maps");

/* Names of programs that are told of also when they end well, filled up with zeros. */
const volatile u64 clients[MAX_CLIENTS][COMM_LEN / sizeof(u64)];

struct exits_tally tally;
/* Rust knows the types of globals only. */
struct exits_event event_type;
const volatile struct exits_maker maker_type;

static __always_inline u64 started(struct task_struct *task)
{
	struct task_struct___old *old = (struct task_struct___old *)task;

	if (bpf_core_field_exists(task->start_boottime))
		return BPF_CORE_READ(task, start_boottime);
	return BPF_CORE_READ(old, real_start_time);
}

/* What wait() gives: the code that all tasks were made to end with, or else the
 * leader's own. */
static __always_inline u32 code_of(struct task_struct *leader, struct signal_struct *signal)
{
	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ(leader, exit_code);
}

static __always_inline bool is_client(struct task_struct *leader)
{
	u64 name[COMM_LEN / sizeof(u64)] = {};

	/* What follows the zero may be of an older, longer name. */
	bpf_probe_read_kernel_str(name, sizeof(name), leader->comm);
	for (u32 i = 0; i < MAX_CLIENTS; i++) {
		if (name[0] && name[0] == clients[i][0] && name[1] == clients[i][1])
			return true;
	}
	return false;
}

static __always_inline void see_cgroup(struct exits_next *to, struct task_struct *task)
{
	struct kernfs_node *kn = home_of(task);
	u32 at = 0;

	to->event.cgroup_id = BPF_CORE_READ(kn, id);
	for (u32 level = 0; level < MAX_NAMES; level++) {
		struct kernfs_node *parent = kn ? above(kn) : 0;
		long len;

		if (!parent)
			break;
		len = bpf_probe_read_kernel_str(&to->names[at & (NAMES_LEN - 1)], NAME_LEN,
						BPF_CORE_READ(kn, name));
		if (len <= 0 || len == NAME_LEN)
			to->event.flags |= EXITS_CUT;
		if (len > 0)
			at += len;
		kn = parent;
	}
	if (kn && above(kn))
		to->event.flags |= EXITS_CUT;
	to->event.names_len = at;
}

static __always_inline void tell(struct task_struct *leader, struct signal_struct *signal, u64 start_ns, u32 code)
{
	u64 task = bpf_get_current_pid_tgid();
	struct exits_next *to;
	u32 zero = 0, size;

	to = bpf_map_lookup_elem(&next, &zero);
	if (!to)
		return;
	to->event.at_ns = bpf_ktime_get_boot_ns();
	to->event.start_ns = start_ns;
	to->event.pid = task;
	to->event.tgid = task >> 32;
	to->event.uid = bpf_get_current_uid_gid();
	to->event.code = code;
	to->event.flags = BPF_CORE_READ(signal, oom_mm) ? EXITS_OOM : 0;
	bpf_probe_read_kernel(to->event.comm, sizeof(to->event.comm), leader->comm);
	see_cgroup(to, (struct task_struct *)bpf_get_current_task());
	size = to->event.names_len;
	if (size > NAMES_LEN)
		size = NAMES_LEN;
	/* User space looks at the ring by itself. */
	if (bpf_ringbuf_output(&events, to, sizeof(to->event) + size, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&tally.n_lost, 1);
}

/* A maker that made nothing for so long gives its place to another. */
#define MAKER_IDLE_NS 5000000000ULL

static __always_inline bool is_of(struct exits_maker *maker, u64 cgroup_id, u64 *comm)
{
	return maker->cgroup_id == cgroup_id && maker->comm[0] == comm[0] && maker->comm[1] == comm[1];
}

/* Gives a place to a maker. Two cores may do so at once: one of them loses some of its count. */
static __always_inline void claim(struct exits_maker *maker, struct task_struct *task, u64 cgroup_id, u64 *comm)
{
	struct exits_next *to;
	u32 zero = 0;

	to = bpf_map_lookup_elem(&next, &zero);
	if (!to)
		return;
	see_cgroup(to, task);
	maker->n = 0;
	maker->n_short = 0;
	maker->cgroup_id = cgroup_id;
	maker->comm[0] = comm[0];
	maker->comm[1] = comm[1];
	maker->names_len = to->event.names_len;
	bpf_probe_read_kernel(maker->names, sizeof(maker->names), to->names);
}

/* Counts an exit for the parent's name and the cgroup. Parents come and go in a storm, and what
 * has lost its parent is given another, so neither alone tells who it is. */
static __always_inline void count_maker(struct task_struct *task, struct task_struct *leader, u64 start_ns)
{
	struct task_struct *parent = BPF_CORE_READ(leader, real_parent);
	u64 now = bpf_ktime_get_boot_ns(), comm[COMM_LEN / sizeof(u64)] = {}, cgroup_id;
	struct task_struct *of = BPF_CORE_READ(parent, group_leader);
	struct exits_maker *maker = 0, *other;
	u32 slot;

	cgroup_id = BPF_CORE_READ(home_of(task), id);
	bpf_probe_read_kernel_str(comm, sizeof(comm), of->comm);
	slot = (cgroup_id ^ comm[0] ^ comm[1] * 31) * 0x9e3779b97f4a7c15ULL >> 57;
	for (u32 i = 0; i < 2; i++) {
		u32 at = (slot ^ i) & (N_MAKERS - 1);

		other = bpf_map_lookup_elem(&makers, &at);
		if (!other)
			return;
		if (is_of(other, cgroup_id, comm)) {
			maker = other;
			break;
		}
		if (!maker && now - other->last_ns > MAKER_IDLE_NS)
			maker = other;
	}
	if (!maker) {
		__sync_fetch_and_add(&tally.n_unplaced, 1);
		return;
	}
	if (!is_of(maker, cgroup_id, comm))
		claim(maker, task, cgroup_id, comm);
	maker->last_ns = now;
	maker->parent = BPF_CORE_READ(of, tgid);
	bpf_probe_read_kernel(maker->child, sizeof(maker->child), leader->comm);
	__sync_fetch_and_add(&maker->n, 1);
	if (now - start_ns < SHORT_NS)
		__sync_fetch_and_add(&maker->n_short, 1);
}

SEC("raw_tp/sched_process_exit")
int exits_process_exit(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct exits_process process = {};
	u8 one = 1;
	u32 code;

	if (BPF_CORE_READ(signal, live.counter))
		return 0;
	process.start_ns = started(leader);
	process.tgid = BPF_CORE_READ(leader, tgid);
	/* Counts the tasks that are not through with this yet, too. */
	if (BPF_CORE_READ(signal, nr_threads) > 1 && bpf_map_update_elem(&told, &process, &one, BPF_NOEXIST))
		return 0;
	count_maker(task, leader, process.start_ns);
	code = code_of(leader, signal);
	if (!code) {
		__sync_fetch_and_add(&tally.n_normal, 1);
		if (is_client(leader))
			tell(leader, signal, process.start_ns, code);
		return 0;
	}
	__sync_fetch_and_add(&tally.n_abnormal, 1);
	tell(leader, signal, process.start_ns, code);
	return 0;
}

SEC("raw_tp/mark_victim")
int exits_mark_victim(void *ctx)
{
	__sync_fetch_and_add(&tally.n_oom_victims, 1);
	return 0;
}
