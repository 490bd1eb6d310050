/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks every memory cgroup the kernel still holds, dying ones included.
 *
 * Run through BPF_PROG_TEST_RUN on a raw tracepoint program: that needs no
 * event to attach to, works since 5.10, and holds the RCU read lock. The price
 * is that preemption is off meanwhile, so one run takes a bounded number of
 * steps (well under a millisecond) and user space runs it again.
 *
 * Inside a run, RCU keeps every css that is on a list valid. Between runs any
 * of them can be freed, so the cursor is checked before it is used: a css that
 * is still linked and still has its serial number is the one we left. If not,
 * the walk finds its place again by serial numbers. Siblings are sorted by
 * them, so the place is exact even when what stood there is gone: nothing that
 * lived through the walk is missed or seen twice.
 *
 * Each step is a global function: the verifier checks it once, not once for
 * every turn of the loop, and 5.10, which has no bpf_loop(), takes it too.
 */
#include "kernel.h"
#include "memcg.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define STEPS 2048
/* Times the page lists of one cgroup may change under us before we give up. */
#define MAX_RETRIES 3
/* The five classic lists, then one per generation, type and zone. */
#define CLASSIC_LISTS 5
#define ACTIVE_ANON 1
#define ACTIVE_FILE 3
#define GENERATIONS 4
#define MAX_LISTS 64 /* not reached: 5, or 4 x 2 x zones */
#define MAX_ZONES 8
#define MAX_DIRS 64
#define CACHE_SLOTS 4096

/* Set before loading. */
const volatile u32 n_nodes = 1;
const volatile u32 pages_per_list = 8;

/* Filled by one run, taken away by user space, then the counts are reset. */
struct memcg_row rows[MAX_ROWS];
struct memcg_pin pins[MAX_PINS];
struct memcg_file files[MAX_FILES];
struct memcg_name names[MAX_NAMES];
u32 n_rows, n_pins, n_files, n_names;

struct memcg_cursor cursor;
struct memcg_tally tally;
struct memcg_sizes sizes;

/* What user space has been told already. A slot holds the last one that fell
 * on it; a miss only means that it is told again. */
struct {
	u64 file, inode_and_device;
} told_files[CACHE_SLOTS];
struct {
	u64 entry, parent, hash_len;
} told_names[CACHE_SLOTS];

/* Scratch: too large for the stack, or handed between functions. */
struct {
	u64 file, pages;
	u32 flags;
} page_seen;
struct list_head heads[MAX_LISTS];
unsigned long zone_sizes[MAX_ZONES * CLASSIC_LISTS];
unsigned long generation_sizes[MAX_LISTS];

/* Copies of kernel structures, see COPY(). */
u64 css_copied; /* whose copy css_copy is; 0: nobody's */
u64 css_copy[32];
u64 kn_copy[16];
u64 page_copy[8];
u64 space_copy[16];
u64 inode_copy[16];
u64 sb_copy[16];
u64 entry_copy[8];

static __always_inline u32 slot_of(u64 address)
{
	return (address * 0x9e3779b97f4a7c15ULL) >> 52;
}

static __always_inline bool read(void *to, u32 size, u64 from)
{
	if (!bpf_probe_read_kernel(to, size, (void *)from))
		return true;
	tally.read_errors++;
	return false;
}

/* A read costs its call and its cache miss, hardly its length. So the beginning
 * of a structure is copied at once, and its fields are taken from the copy; all
 * zeros when it could not be read. */
#define COPY(copy, type, at)                                                                             \
	bpf_probe_read_kernel(copy,                                                                      \
			      bpf_core_type_size(type) < sizeof(copy) ? bpf_core_type_size(type) :       \
									sizeof(copy),                    \
			      (void *)(at))

/* A field from the copy; by a read of its own where this kernel has it further
 * back. Which of the two is known when the program is loaded. */
#define FIELD(copy, type, at, field)                                                                     \
	(bpf_core_field_offset(type, field) + bpf_core_field_size(type, field) <= sizeof(copy) ?         \
		 ((type *)(copy))->field :                                                               \
		 BPF_CORE_READ((type *)(at), field))

static __always_inline u64 css_of_sibling(u64 entry)
{
	return entry - bpf_core_field_offset(struct cgroup_subsys_state, sibling);
}

static __always_inline u64 children_of(u64 css)
{
	return css + bpf_core_field_offset(struct cgroup_subsys_state, children);
}

/* Nothing that is on a list is freed within a run, so a copy serves until the walk
 * moves on. A new run begins without one. */
__noinline int memcg_copy_css(u64 css)
{
	if (css_copied == css)
		return 0;
	css_copied = css;
	COPY(css_copy, struct cgroup_subsys_state, css);
	return 0;
}

#define CSS_FIELD(css, field) (memcg_copy_css(css), FIELD(css_copy, struct cgroup_subsys_state, css, field))

static __always_inline u64 serial_of(u64 css)
{
	return CSS_FIELD(css, serial_nr);
}

#include "memcg_tree.h"
#include "memcg_row.h"
#include "memcg_pins.h"

static __always_inline bool wants_pages(struct memcg_row *row)
{
	u64 pages = 0;

	for (u32 list = 0; list < CLASSIC_LISTS; list++)
		pages += row->lru_pages[list];
	return pages_per_list && !(row->flags & ROW_ONLINE) && pages;
}

/* Room for the most that one step can write? */
static __always_inline bool has_room(void)
{
	return n_rows < MAX_ROWS && n_pins + 2 < MAX_PINS && n_files < MAX_FILES &&
	       n_names + MAX_DIRS < MAX_NAMES;
}

/* One step; says whether another may follow. */
__noinline int memcg_step(void)
{
	if (cursor.phase == PHASE_SEEK) {
		memcg_seek();
	} else if (cursor.phase == PHASE_PAGES) {
		memcg_look_at_page();
	} else {
		u32 row = n_rows;

		memcg_visit(cursor.css);
		if (wants_pages(&rows[row & (MAX_ROWS - 1)])) {
			cursor.retries = 0;
			begin_pages();
		} else {
			step_on();
		}
	}
	return cursor.phase != PHASE_DONE && has_room();
}

/* Addresses did not survive if what they point at went away meanwhile. */
static __always_inline void find_place(void)
{
	css_copied = 0;
	if (still_linked(cursor.css, cursor.css_serial)) {
		cursor.child = first_child(cursor.css);
		if (cursor.phase == PHASE_PAGES && cursor.page && cursor.page != cursor.page_head &&
		    !is_ours(page_of(cursor.page)))
			lists_changed();
		return;
	}
	tally.lost_place++;
	cursor.run_pages = 0;
	cursor.phase = PHASE_SEEK;
	cursor.css = cursor.root;
	cursor.css_serial = cursor.path[0];
	cursor.seek_depth = 0;
}

SEC("raw_tp/sexton_memcg_run")
int memcg_run(void *ctx)
{
	if (cursor.phase == PHASE_DONE)
		return 0;
	find_place();
	for (u32 i = 0; i < STEPS; i++)
		if (!memcg_step())
			break;
	return 0;
}

#define SIZE_IF_THERE(type) (bpf_core_type_exists(type) ? bpf_core_type_size(type) : 0)

static __always_inline void note_sizes(void)
{
	sizes.cgroup = bpf_core_type_size(struct cgroup) + bpf_core_type_size(struct kernfs_node);
	sizes.memcg = bpf_core_type_size(struct mem_cgroup) + SIZE_IF_THERE(struct memcg_vmstats);
	sizes.per_node = bpf_core_type_size(struct mem_cgroup_per_node) + SIZE_IF_THERE(struct lruvec_stats);
	sizes.per_cpu = SIZE_IF_THERE(struct memcg_vmstats_percpu) + SIZE_IF_THERE(struct cgroup_rstat_cpu) +
			2 * SIZE_IF_THERE(struct css_rstat_cpu) + SIZE_IF_THERE(struct cgroup_rstat_base_cpu);
	sizes.per_node_cpu = SIZE_IF_THERE(struct lruvec_stats_percpu) + SIZE_IF_THERE(struct lruvec_stat);
}

/* Finds the root of the memory hierarchy from the task that asks. User space has
 * zeroed all of the above. */
SEC("raw_tp/sexton_memcg_begin")
int memcg_begin(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	u32 id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	u64 css = 0;

	read(&css, sizeof(css), (u64)set + bpf_core_field_offset(struct css_set, subsys) + id * sizeof(u64));
	for (u32 level = 0; level < MAX_DEPTH; level++) {
		u64 parent = css ? (u64)CSS_FIELD(css, parent) : 0;

		if (!parent)
			break;
		css = parent;
	}
	cursor.root = css;
	tally.jiffies = bpf_jiffies64();
	tally.ktime_ns = bpf_ktime_get_ns();
	note_sizes();
	if (!css) {
		cursor.phase = PHASE_DONE;
		return 1;
	}
	stand_on(css, 0);
	return 0;
}
