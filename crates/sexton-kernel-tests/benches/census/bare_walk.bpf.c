/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The simplest walk over the memory cgroups, to compare sexton's with: one
 * uninterrupted run, one record each through a ring buffer, the first page of
 * the first file list and no other, two names of its path and no more. What
 * sexton does beyond this is what the ratio of the two shows.
 */
#include "kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* See include/uapi/linux/bpf.h. */
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_RB_NO_WAKEUP 1

#define MAX_CGROUPS (1 << 20)
#define MAX_DEPTH 64
#define N_LISTS 5
#define INACTIVE_FILE 2
#define ACTIVE_FILE 3
#define MAX_ZONES 8

/* Renamed in 6.15. */
struct kernfs_node___now {
	struct kernfs_node *__parent;
} __attribute__((preserve_access_index));
struct kernfs_node___before {
	struct kernfs_node *parent;
} __attribute__((preserve_access_index));

struct bare_record {
	u64 serial;
	u64 usage_pages;
	u64 lru_pages[N_LISTS];
	u64 inode;
	u32 device;
	u32 flags;
	char name[72];
	char parent[72];
	char file[40];
	char directory[40];
};

/* So that the type is in the skeleton. */
struct bare_record unused_record;

/* Holds 100,000 records. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} records SEC(".maps");

u64 visited, dropped;
u64 root, at;
unsigned long zone_sizes[MAX_ZONES * N_LISTS];

static __always_inline u64 css_of_sibling(u64 entry)
{
	return entry - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
}

static __always_inline u64 children_of(u64 css)
{
	return css + bpf_core_field_offset(struct cgroup_subsys_state, children);
}

static __always_inline struct cgroup_subsys_state *css_at(u64 css)
{
	return (struct cgroup_subsys_state *)css;
}

static __always_inline struct kernfs_node *parent_of(struct kernfs_node *kn)
{
	struct kernfs_node___now *now = (void *)kn;
	struct kernfs_node___before *before = (void *)kn;

	return bpf_core_field_exists(now->__parent) ? BPF_CORE_READ(now, __parent) : BPF_CORE_READ(before, parent);
}

static __always_inline void name_file(struct bare_record *record, struct inode *inode)
{
	u64 alias = (u64)BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *entry;

	record->inode = BPF_CORE_READ(inode, i_ino);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (!alias)
		return;
	entry = (struct dentry *)(alias - bpf_core_field_offset(struct dentry, d_u.d_alias));
	bpf_probe_read_kernel_str(record->file, sizeof(record->file), BPF_CORE_READ(entry, d_name.name));
	bpf_probe_read_kernel_str(record->directory, sizeof(record->directory),
				  BPF_CORE_READ(entry, d_parent, d_name.name));
}

static __always_inline void find_pin(struct bare_record *record, u64 node)
{
	u64 lists = node + bpf_core_field_offset(struct mem_cgroup_per_node, lruvec) +
		    bpf_core_field_offset(struct lruvec, lists);

	for (u32 list = INACTIVE_FILE; list <= ACTIVE_FILE; list++) {
		u64 head = lists + list * sizeof(struct list_head), first = 0, mapping;
		struct page *page;

		bpf_probe_read_kernel(&first, sizeof(first), (void *)head);
		if (!first || first == head)
			continue;
		page = (struct page *)(first - bpf_core_field_offset(struct page, lru));
		mapping = (u64)BPF_CORE_READ(page, mapping);
		if (!mapping || mapping & 3)
			continue;
		name_file(record, BPF_CORE_READ((struct address_space *)mapping, host));
		return;
	}
}

static __always_inline void add_lists(struct bare_record *record, u64 node)
{
	u32 size = bpf_core_field_size(struct mem_cgroup_per_node, lru_zone_size);

	if (size > sizeof(zone_sizes))
		size = sizeof(zone_sizes);
	bpf_probe_read_kernel(zone_sizes, size,
			      (void *)(node + bpf_core_field_offset(struct mem_cgroup_per_node, lru_zone_size)));
	for (u32 list = 0; list < N_LISTS; list++)
		record->lru_pages[list] = 0;
	for (u32 zone = 0; zone < MAX_ZONES && zone * N_LISTS * sizeof(u64) < size; zone++)
		for (u32 list = 0; list < N_LISTS; list++)
			record->lru_pages[list] += zone_sizes[zone * N_LISTS + list];
}

static __always_inline void tell(u64 css)
{
	struct mem_cgroup *memcg = (void *)(css - bpf_core_field_offset(struct mem_cgroup, css));
	struct bare_record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	struct kernfs_node *kn, *parent;
	u64 node = 0;

	if (!record) {
		dropped++;
		return;
	}
	kn = BPF_CORE_READ(css_at(css), cgroup, kn);
	parent = parent_of(kn);
	bpf_probe_read_kernel(&node, sizeof(node),
			      (void *)((u64)memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo)));
	record->serial = BPF_CORE_READ(css_at(css), serial_nr);
	record->flags = BPF_CORE_READ(css_at(css), flags);
	record->usage_pages = BPF_CORE_READ(memcg, memory.usage.counter);
	record->inode = 0;
	record->device = 0;
	record->parent[0] = 0;
	record->file[0] = 0;
	record->directory[0] = 0;
	bpf_probe_read_kernel_str(record->name, sizeof(record->name), BPF_CORE_READ(kn, name));
	if (parent)
		bpf_probe_read_kernel_str(record->parent, sizeof(record->parent), BPF_CORE_READ(parent, name));
	add_lists(record, node);
	if (!(record->flags & CSS_ONLINE))
		find_pin(record, node);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* What comes after this one, depth first; 0 at the end. */
static __always_inline u64 next_of(u64 css)
{
	u64 next = (u64)BPF_CORE_READ(css_at(css), children.next);

	if (next != children_of(css))
		return css_of_sibling(next);
	for (u32 level = 0; level < MAX_DEPTH && css && css != root; level++) {
		u64 parent = (u64)BPF_CORE_READ(css_at(css), parent);

		next = (u64)BPF_CORE_READ(css_at(css), sibling.next);
		if (next != children_of(parent))
			return css_of_sibling(next);
		css = parent;
	}
	return 0;
}

static long visit(u32 i, void *unused)
{
	visited++;
	tell(at);
	at = next_of(at);
	return !at;
}

SEC("syscall")
int bare_walk(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	u32 id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	u64 css = 0;

	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)((u64)set + bpf_core_field_offset(struct css_set, subsys) + id * sizeof(u64)));
	for (u32 level = 0; level < MAX_DEPTH; level++) {
		u64 parent = (u64)BPF_CORE_READ(css_at(css), parent);

		if (!parent)
			break;
		css = parent;
	}
	visited = dropped = 0;
	root = at = css;
	bpf_loop(MAX_CGROUPS, visit, 0, 0);
	return 0;
}
