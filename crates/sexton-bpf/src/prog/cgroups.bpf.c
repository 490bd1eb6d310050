/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tells of cgroups as they are made, removed, and let go of by the kernel.
 *
 * Plain tracepoints, whose layout is part of what tracefs describes, and no field
 * of a kernel structure that the program could not do without: so it also loads on
 * a kernel that does not describe its types. Offsets into the task are given by
 * user space, where that knows them.
 *
 * The kernel calls all three tracepoints with `trace_cgroup_path_lock` held and
 * interrupts off, because it writes the path into one buffer. So there is one run
 * at a time on the whole machine, and plain globals are enough.
 */
#include "kernel.h"
#include "cgroups.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Holds six thousand births from one poll to the next. */
#define RING_BYTES (2 << 20)

/* Set before loading. */
const volatile s32 memory_root = 0;
/* Offsets of `real_parent`, `tgid` and `comm` in a task; 0: not known. */
const volatile u32 parent_at = 0;
const volatile u32 tgid_at = 0;
const volatile u32 comm_at = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} events SEC(".maps");

struct cgroups_tally tally;

/* The next event, as it goes into the ring. */
struct {
	struct cgroups_event event;
	u8 tail[PATH_LEN + MAX_ANCESTORS * sizeof(struct cgroups_ancestor)];
} next;
struct cgroups_ancestor ancestors[MAX_ANCESTORS];

/* The context of the three tracepoints: events/cgroup/cgroup_mkdir/format in
 * tracefs. User space compares them before it attaches. */
struct cgroup_context {
	u64 common;
	s32 root;
	s32 level;
	u64 id;
	u32 path_at; /* offset from here, and the length above it */
};

static __always_inline u64 parent_of(u64 task)
{
	u64 parent = 0;

	bpf_probe_read_kernel(&parent, sizeof(parent), (void *)(task + parent_at));
	return parent;
}

/* The processes above the current one, into `ancestors`, up to the first one. */
static __always_inline u32 see_ancestors(void)
{
	u64 task = bpf_get_current_task();
	u32 n = 0;

	if (!parent_at || !tgid_at || !comm_at)
		return 0;
	for (; n < MAX_ANCESTORS; n++) {
		struct cgroups_ancestor *ancestor = &ancestors[n];

		task = parent_of(task);
		if (!task)
			break;
		ancestor->tgid = 0;
		bpf_probe_read_kernel(&ancestor->tgid, sizeof(ancestor->tgid), (void *)(task + tgid_at));
		if (!ancestor->tgid)
			break;
		bpf_probe_read_kernel(ancestor->comm, sizeof(ancestor->comm), (void *)(task + comm_at));
	}
	return n;
}

static __always_inline bool tell(struct cgroup_context *ctx, enum cgroups_what what)
{
	u64 task = bpf_get_current_pid_tgid();
	u32 n_ancestors = what == CGROUPS_BORN ? see_ancestors() : 0;
	u32 size;
	long len;

	next.event.at_ns = bpf_ktime_get_boot_ns();
	next.event.id = ctx->id;
	next.event.pid = task;
	next.event.tgid = task >> 32;
	next.event.what = what;
	bpf_get_current_comm(next.event.comm, sizeof(next.event.comm));
	len = bpf_probe_read_kernel_str(next.tail, PATH_LEN, (void *)ctx + (ctx->path_at & 0xffff));
	len = len > 0 ? (len - 1) & (PATH_LEN - 1) : 0;
	next.event.path_len = len;
	next.event.n_ancestors = n_ancestors;
	size = sizeof(next.event) + len;
	if (n_ancestors) {
		bpf_probe_read_kernel(&next.tail[len], sizeof(ancestors), ancestors);
		size += n_ancestors * sizeof(struct cgroups_ancestor);
	}
	if (size > sizeof(next))
		size = sizeof(next);
	/* User space looks at the ring by itself. */
	return !bpf_ringbuf_output(&events, &next, size, BPF_RB_NO_WAKEUP);
}

SEC("tracepoint/cgroup/cgroup_mkdir")
int cgroups_mkdir(struct cgroup_context *ctx)
{
	if (ctx->root != memory_root) {
		tally.n_births_elsewhere++;
		return 0;
	}
	tally.n_births++;
	if (!tell(ctx, CGROUPS_BORN))
		tally.n_lost_births++;
	return 0;
}

SEC("tracepoint/cgroup/cgroup_rmdir")
int cgroups_rmdir(struct cgroup_context *ctx)
{
	if (ctx->root != memory_root)
		return 0;
	tally.n_removals++;
	if (!tell(ctx, CGROUPS_REMOVED))
		tally.n_lost_removals++;
	return 0;
}

SEC("tracepoint/cgroup/cgroup_release")
int cgroups_release(struct cgroup_context *ctx)
{
	if (ctx->root != memory_root)
		return 0;
	tally.n_releases++;
	if (!tell(ctx, CGROUPS_RELEASED))
		tally.n_lost_releases++;
	return 0;
}
