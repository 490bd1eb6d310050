/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of memcg.bpf.c: writing down one memory cgroup. */
#ifndef SEXTON_MEMCG_ROW_H
#define SEXTON_MEMCG_ROW_H

/* Adds the pages on the lists of the multi-generation LRU, where the kernel has
 * it: an array of generations, of anonymous and file, of zones. The classic sizes
 * do not count them. */
__noinline int memcg_add_generations(u64 lruvec, u32 offset, u32 size, u32 index)
{
	struct memcg_row *row = &rows[index & (MAX_ROWS - 1)];
	u32 n_zones = size / (GENERATIONS * 2 * sizeof(u64));

	barrier_var(size);
	size &= sizeof(generation_sizes) - 1;
	if (!n_zones || !read(generation_sizes, size, lruvec + offset))
		return 0;
	for (u32 i = 0; i < MAX_LISTS; i++) {
		if (i * sizeof(u64) >= size)
			break;
		row->lru_pages[i / n_zones % 2 ? ACTIVE_FILE : ACTIVE_ANON] += generation_sizes[i];
	}
	return 0;
}

static __always_inline void add_generations(u64 lruvec, u32 index)
{
	struct field sizes = {};

	TAKE_IF_THERE(sizes, struct lruvec___folios, lrugen.nr_pages);
	TAKE_IF_THERE(sizes, struct lruvec___nested_folios, lrugen.nr_pages);
	TAKE_IF_THERE(sizes, struct lruvec___lists, lrugen.nr_pages);
	TAKE_IF_THERE(sizes, struct lruvec___nested_lists, lrugen.nr_pages);
	if (sizes.size)
		memcg_add_generations(lruvec, sizes.offset, sizes.size, index);
}

/* Adds up the pages on this node's lists. Zones are a build option, so their
 * number comes from the size of the array. */
__noinline int memcg_add_lru(u64 memcg, u32 node, u32 index)
{
	struct memcg_row *row = &rows[index & (MAX_ROWS - 1)];
	struct field zones = {};
	u64 info = 0;
	u32 size;

	TAKE_IF_THERE(zones, struct mem_cgroup_per_node, lru_zone_size);
	TAKE_IF_THERE(zones, struct mem_cgroup_per_node___nested, lru_zone_size);
	size = zones.size;

	if (!read(&info, sizeof(info),
		  memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo) + node * sizeof(u64)) ||
	    !info)
		return 0;
	if (size > sizeof(zone_sizes))
		size = sizeof(zone_sizes);
	if (!read(zone_sizes, size, info + zones.offset))
		return 0;
	for (u32 zone = 0; zone < MAX_ZONES; zone++) {
		if (zone * CLASSIC_LISTS * sizeof(u64) >= size)
			break;
		for (u32 list = 0; list < CLASSIC_LISTS; list++)
			row->lru_pages[list] += zone_sizes[zone * CLASSIC_LISTS + list];
	}
	add_generations(info + bpf_core_field_offset(struct mem_cgroup_per_node, lruvec), index);
	return 0;
}

static __always_inline bool is_populated(struct cgroup *cgroup)
{
	struct cgroup___counts *counts = (struct cgroup___counts *)cgroup;
	struct cgroup___css_counts *css_counts = (struct cgroup___css_counts *)cgroup;
	int csets = bpf_core_field_exists(counts->nr_populated_csets) ?
			    BPF_CORE_READ(counts, nr_populated_csets) :
			    BPF_CORE_READ(css_counts, self.nr_populated_csets);

	return csets || BPF_CORE_READ(cgroup, nr_populated_domain_children) ||
	       BPF_CORE_READ(cgroup, nr_populated_threaded_children);
}

static __always_inline u32 row_flags(u64 css, u64 parent, struct cgroup *cgroup)
{
	u64 memory = bpf_core_field_offset(struct mem_cgroup, memory) -
		     bpf_core_field_offset(struct mem_cgroup, css);
	struct page_counter *counter = (struct page_counter *)(css + memory);
	u32 flags = 0;

	if (CSS_FIELD(css, flags) & CSS_ONLINE)
		flags |= ROW_ONLINE;
	if (BPF_CORE_READ(cgroup, self.flags) & CSS_ONLINE)
		flags |= ROW_DIRECTORY;
	/* A removed cgroup cannot hold a process. */
	if (flags & ROW_DIRECTORY && is_populated(cgroup))
		flags |= ROW_POPULATED;
	cursor.child = first_child(css);
	if (cursor.child)
		flags |= ROW_CHILDREN;
	if (parent && (u64)BPF_CORE_READ(counter, parent) == parent + memory)
		flags |= ROW_CHARGES_PARENT;
	return flags;
}

/* Writes down one memory cgroup. */
__noinline int memcg_visit(u64 css)
{
	struct memcg_row *row = &rows[n_rows & (MAX_ROWS - 1)];
	u64 at = css - bpf_core_field_offset(struct mem_cgroup, css);
	struct mem_cgroup *memcg = (struct mem_cgroup *)at;
	struct cgroup *cgroup = CSS_FIELD(css, cgroup);
	u64 parent = (u64)CSS_FIELD(css, parent);
	u64 kn = (u64)BPF_CORE_READ(cgroup, kn);
	long len;

	row->serial = cursor.css_serial;
	row->parent_serial = cursor.path[(cursor.depth ? cursor.depth - 1 : 0) & (MAX_DEPTH - 1)];
	COPY(kn_copy, struct kernfs_node, kn);
	row->cgroup_id = FIELD(kn_copy, struct kernfs_node, kn, id);
	row->charged_pages = BPF_CORE_READ(memcg, memory.usage.counter);
	row->memsw_pages = BPF_CORE_READ(memcg, memsw.usage.counter);
	row->born_jiffies = 0;
	/* Set once, when the group is made; on v2 again when its writers are
	 * throttled, so there it is the youngest it can be. Only kernels with
	 * cgroup write-back have it. */
	if (bpf_core_field_exists(memcg->cgwb_domain))
		row->born_jiffies = BPF_CORE_READ(memcg, cgwb_domain.dirty_limit_tstamp);
	row->flags = row_flags(css, parent, cgroup);
	for (u32 list = 0; list < CLASSIC_LISTS; list++)
		row->lru_pages[list] = 0;
	for (u32 node = 0; node < MAX_NODES && node < n_nodes; node++)
		memcg_add_lru(at, node, n_rows);
	len = bpf_probe_read_kernel_str(row->name, sizeof(row->name), FIELD(kn_copy, struct kernfs_node, kn, name));
	row->name_len = len > 0 ? len - 1 : 0;
	n_rows++;
	tally.visited++;
	return 0;
}

#endif
