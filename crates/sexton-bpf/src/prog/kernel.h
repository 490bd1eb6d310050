/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's structures, reduced to the fields sexton reads. Offsets come
 * from the running kernel's BTF when a program is loaded (CO-RE), so order and
 * padding here mean nothing. A field that some kernel lacks or has renamed is
 * declared in a flavour of the struct (`name___flavour`) and asked for with
 * bpf_core_field_exists(): distributions backport, so a version says nothing.
 */
#ifndef SEXTON_KERNEL_H
#define SEXTON_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef _Bool bool;
#define true 1
#define false 0

/* Part of the kernel's interface, see include/uapi/linux/bpf.h. */
enum bpf_map_type {
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_NOEXIST = 1,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

/* cgroups */

enum cgroup_subsys_id {
	memory_cgrp_id = 1, /* the real value comes from BTF */
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct list_head sibling;
	struct list_head children;
	unsigned int flags;
	u64 serial_nr;
	struct cgroup_subsys_state *parent;
};

struct kernfs_node {
	const char *name;
	struct kernfs_node *parent;
	u64 id;
};

/* Linux 633488947ef6 ("kernfs: Use RCU to access kernfs_node::parent."), in v6.15,
 * renamed the field. */
struct kernfs_node___rcu {
	struct kernfs_node *__parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int nr_populated_domain_children;
	int nr_populated_threaded_children;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};

/* Processes in a cgroup itself: counted by the cgroup, after 6.18 by its css. */
struct cgroup___counts {
	int nr_populated_csets;
};
struct cgroup_subsys_state___counts {
	int nr_populated_csets;
};
struct cgroup___css_counts {
	struct cgroup_subsys_state___counts self;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

/* processes */

typedef struct {
	int counter;
} atomic_t;

struct mm_struct {
	unsigned long start_stack;
};

struct signal_struct {
	atomic_t live;
	int nr_threads;
	int group_exit_code;
	unsigned int flags;
	struct mm_struct *oom_mm;
};

struct task_struct {
	struct css_set *cgroups;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct mm_struct *mm;
	unsigned int flags;
	int exit_code;
	unsigned int on_cpu; /* a byte on newer kernels; unsigned, so that loads are resized */
	int pid;
	int tgid;
	u64 start_boottime;
	char comm[16];
};

/* Linux cf25e24db61c ("time: Rename tsk->real_start_time to ->start_boottime"),
 * in v5.5. */
struct task_struct___old {
	u64 real_start_time;
};

/* Linux 2f064a59a11f ("sched: Change task_struct::state"), in v5.14. */
struct task_struct___state {
	unsigned int __state;
};
struct task_struct___old_state {
	volatile long state;
};

/* The core of a task moved into thread_info in v5.16. */
struct thread_info {
	u32 cpu;
};
struct task_struct___info {
	struct thread_info thread_info;
};
struct task_struct___cpu {
	unsigned int cpu;
};

/* The scheduler's own clock and stamps. Kernels without SCHED_INFO have no stamps in
 * tasks, those without FAIR_GROUP_SCHED no way from a task to its queue. */
struct rq {
	u64 clock;
};
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct sched_info {
	unsigned long long last_queued;
};
struct task_struct___stamped {
	struct sched_entity se;
	struct sched_info sched_info;
};

/* network polling */

struct net_device {
	char name[16];
};

struct napi_struct {
	unsigned long state;
	struct net_device *dev;
	unsigned int napi_id;
};

/* memory cgroups */

typedef struct {
	long counter;
} atomic_long_t;

struct page_counter {
	atomic_long_t usage;
	struct page_counter *parent;
};

struct wb_domain {
	unsigned long dirty_limit_tstamp;
};

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
	struct page_counter memsw;
	struct wb_domain cgwb_domain;
	struct mem_cgroup_per_node *nodeinfo[0];
};

/* Arrays of several dimensions: who wrote the kernel's BTF (pahole) used to make
 * them one long dimension, and newer ones do not. CO-RE tells the two apart, so
 * each such array is declared in both forms. */

/* The multi-generation LRU is a build option, and its struct was renamed after
 * 6.1 together with the list array (`lists` became `folios`). */
struct lru_gen_folio {
	struct list_head folios[1];
	long nr_pages[1];
};
struct lru_gen_folio___nested {
	struct list_head folios[1][1][1];
	long nr_pages[1][1][1];
};

struct lru_gen_struct {
	struct list_head lists[1];
	long nr_pages[1];
};
struct lru_gen_struct___nested {
	struct list_head lists[1][1][1];
	long nr_pages[1][1][1];
};

struct lruvec {
	struct list_head lists[5];
};

struct lruvec___folios {
	struct lru_gen_folio lrugen;
};
struct lruvec___nested_folios {
	struct lru_gen_folio___nested lrugen;
};

struct lruvec___lists {
	struct lru_gen_struct lrugen;
};
struct lruvec___nested_lists {
	struct lru_gen_struct___nested lrugen;
};

struct mem_cgroup_per_node {
	struct lruvec lruvec;
	unsigned long lru_zone_size[5]; /* per zone and list */
};
struct mem_cgroup_per_node___nested {
	unsigned long lru_zone_size[1][5];
};

/* Structures whose size alone is of interest: what a dead cgroup costs. */
struct memcg_vmstats {
	int unused;
};
struct memcg_vmstats_percpu {
	int unused;
};
struct lruvec_stat {
	int unused;
};
struct lruvec_stats {
	int unused;
};
struct lruvec_stats_percpu {
	int unused;
};
struct cgroup_rstat_cpu {
	int unused;
};
struct css_rstat_cpu {
	int unused;
};
struct cgroup_rstat_base_cpu {
	int unused;
};

/* pages and files */

enum pageflags {
	PG_writeback = 1, /* the real values come from BTF */
	PG_dirty = 4,
	PG_head = 6,
};

struct rb_node {
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct address_space {
	struct inode *host;
	struct rb_root_cached i_mmap;
};

struct page {
	struct list_head lru;
	struct address_space *mapping;
	unsigned int compound_nr;
};

/* Charged owner of a page: a pointer up to 5.10, tagged bits since. They point
 * to the cgroup itself, or since page cache moves to the parent when a cgroup
 * goes (after 6.18) to an obj_cgroup, which points to the cgroup. */
struct page___owner {
	struct mem_cgroup *mem_cgroup;
};
struct page___data {
	unsigned long memcg_data;
};
struct obj_cgroup {
	struct mem_cgroup *memcg;
};

/* Size of a large folio, in the order the names came. */
struct folio___old {
	unsigned int _folio_nr_pages;
};
struct folio {
	unsigned int _nr_pages;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_nlink;
	unsigned int i_rdev;
	u32 i_generation;
	struct hlist_head i_dentry;
};

struct qstr {
	u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

/* The union that holds it lost its name after 6.18. */
struct dentry___flat {
	struct hlist_node d_alias;
};

#pragma clang attribute pop

/* Where a field is; a size of 0 says that this kernel has none. */
struct field {
	u32 offset, size;
};

#define TAKE_IF_THERE(found, type, field)                                                         \
	do {                                                                                      \
		if (bpf_core_field_exists(type, field)) {                                         \
			(found).offset = bpf_core_field_offset(type, field);                      \
			(found).size = bpf_core_field_size(type, field);                          \
		}                                                                                 \
	} while (0)

/* css.flags, see include/linux/cgroup-defs.h. */
#define CSS_ONLINE (1 << 1)
/* signal_struct.flags, see include/linux/sched/signal.h. */
#define SIGNAL_GROUP_EXIT 0x4

/* task_struct.flags, see include/linux/sched.h. */
#define PF_KTHREAD 0x00200000

/* Maps, see include/uapi/linux/bpf.h. */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_ANY 0

#endif
