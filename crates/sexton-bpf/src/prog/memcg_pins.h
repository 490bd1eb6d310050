/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of memcg.bpf.c: the pages, and so the files, that hold a dying cgroup. */
#ifndef SEXTON_MEMCG_PINS_H
#define SEXTON_MEMCG_PINS_H

/* Tells of the entry that entry_copy is of. */
static __always_inline void tell_name(u64 entry, u64 parent)
{
	struct memcg_name *name = &names[n_names & (MAX_NAMES - 1)];
	long len;

	name->entry = entry;
	name->parent = parent;
	len = bpf_probe_read_kernel_str(name->name, sizeof(name->name),
					FIELD(entry_copy, struct dentry, entry, d_name.name));
	name->len = len > 0 ? len - 1 : 0;
	n_names++;
}

/* Tells user space the names from this entry up to the first known one. */
__noinline int memcg_tell_names(u64 entry)
{
	for (u32 level = 0; level < MAX_DIRS; level++) {
		u32 slot = slot_of(entry) & (CACHE_SLOTS - 1);
		u64 parent, hash_len;

		COPY(entry_copy, struct dentry, entry);
		parent = (u64)FIELD(entry_copy, struct dentry, entry, d_parent);
		hash_len = FIELD(entry_copy, struct dentry, entry, d_name.hash_len);
		if (told_names[slot].entry == entry && told_names[slot].parent == parent &&
		    told_names[slot].hash_len == hash_len)
			return 0;
		told_names[slot].entry = entry;
		told_names[slot].parent = parent;
		told_names[slot].hash_len = hash_len;
		tell_name(entry, parent);
		if (!parent || parent == entry)
			return 0;
		entry = parent;
	}
	return 0;
}

#define INODE_FIELD(inode, field) FIELD(inode_copy, struct inode, inode, field)

/* The directory entry on an inode's list of them; 0 when it has none. */
static __always_inline u64 entry_of(u64 inode)
{
	u64 alias = (u64)BPF_CORE_READ((struct inode *)inode, i_dentry.first);

	if (!alias)
		return 0;
	if (bpf_core_field_exists(struct dentry___flat, d_alias))
		return alias - bpf_core_field_offset(struct dentry___flat, d_alias);
	return alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
}

static __always_inline void tell_file(u64 inode)
{
	struct memcg_file *file = &files[n_files & (MAX_FILES - 1)];
	u32 slot = slot_of(inode) & (CACHE_SLOTS - 1);
	u64 entry, sb, mark;

	COPY(inode_copy, struct inode, inode);
	sb = (u64)INODE_FIELD(inode, i_sb);
	COPY(sb_copy, struct super_block, sb);
	file->inode = INODE_FIELD(inode, i_ino);
	file->generation = INODE_FIELD(inode, i_generation);
	file->device = FIELD(sb_copy, struct super_block, sb, s_dev);
	mark = file->inode ^ ((u64)file->device << 32) ^ ((u64)file->generation << 16);
	if (told_files[slot].file == inode && told_files[slot].inode_and_device == mark)
		return;
	told_files[slot].file = inode;
	told_files[slot].inode_and_device = mark;
	entry = entry_of(inode);
	file->file = inode;
	file->magic = FIELD(sb_copy, struct super_block, sb, s_magic);
	file->name = entry;
	file->rdev = INODE_FIELD(inode, i_rdev);
	file->n_links = INODE_FIELD(inode, i_nlink);
	n_files++;
	if (entry)
		memcg_tell_names(entry);
}

static __always_inline void put_pin(u64 file, u64 pages, u32 flags)
{
	struct memcg_pin *pin = &pins[n_pins & (MAX_PINS - 1)];

	pin->serial = cursor.css_serial;
	pin->file = file;
	pin->pages = pages;
	pin->flags = flags;
	n_pins++;
}

static __always_inline void close_run(void)
{
	if (cursor.run_pages)
		put_pin(cursor.run_file, cursor.run_pages, cursor.run_flags);
	cursor.run_pages = 0;
}

static __always_inline u64 page_of(u64 entry)
{
	return entry - bpf_core_field_offset(struct page, lru);
}

/* Copies a page. Is it charged to the cgroup whose pages are looked at? No cgroup has
 * a pointer to itself where an obj_cgroup has its own, so both forms may be tried. */
static __always_inline bool is_ours(u64 page)
{
	struct page___data *tagged = (struct page___data *)page;
	u64 owner;

	COPY(page_copy, struct page, page);
	if (!bpf_core_field_exists(tagged->memcg_data))
		return (u64)FIELD(page_copy, struct page___owner, page, mem_cgroup) == cursor.memcg;
	owner = FIELD(page_copy, struct page___data, page, memcg_data) & ~7ULL;
	return owner == cursor.memcg || (u64)BPF_CORE_READ((struct obj_cgroup *)owner, memcg) == cursor.memcg;
}

static __always_inline u64 pages_in(u64 page, u64 page_flags)
{
	struct folio *folio = (struct folio *)page;
	struct folio___old *old = (struct folio___old *)page;
	struct page *tail = (struct page *)(page + bpf_core_type_size(struct page));

	if (!(page_flags & (1ULL << bpf_core_enum_value(enum pageflags, PG_head))))
		return 1;
	if (bpf_core_field_exists(folio->_nr_pages))
		return BPF_CORE_READ(folio, _nr_pages);
	if (bpf_core_field_exists(old->_folio_nr_pages))
		return BPF_CORE_READ(old, _folio_nr_pages);
	if (bpf_core_field_exists(tail->compound_nr))
		return BPF_CORE_READ(tail, compound_nr);
	return 1;
}

/* What the copied page belongs to and what state it is in, into `page_seen`. */
__noinline int memcg_see_page(u64 at)
{
	u64 mapping = (u64)FIELD(page_copy, struct page, at, mapping);
	/* Page flags are the first word of a page. Their type became a struct
	 * of its own in 6.18, so there is no one declaration to ask for. */
	u64 page_flags = page_copy[0];

	page_seen.pages = pages_in(at, page_flags);
	page_seen.file = 0;
	page_seen.flags = mapping & 1 ? PIN_ANON : PIN_UNKNOWN;
	if (!mapping || mapping & 3)
		return 0;
	COPY(space_copy, struct address_space, mapping);
	page_seen.file = (u64)FIELD(space_copy, struct address_space, mapping, host);
	page_seen.flags = 0;
	if (FIELD(space_copy, struct address_space, mapping, i_mmap.rb_root.rb_node))
		page_seen.flags |= PIN_MAPPED;
	if (page_flags & ((1ULL << bpf_core_enum_value(enum pageflags, PG_dirty)) |
			  (1ULL << bpf_core_enum_value(enum pageflags, PG_writeback))))
		page_seen.flags |= PIN_DIRTY;
	tell_file(page_seen.file);
	return 0;
}

/* Adds one page to the run of pages of the same file, or begins a new run. */
static __always_inline void add_page(u64 at)
{
	memcg_see_page(at);
	if (cursor.run_pages && cursor.run_file == page_seen.file && cursor.run_flags == page_seen.flags) {
		cursor.run_pages += page_seen.pages;
	} else {
		close_run();
		cursor.run_file = page_seen.file;
		cursor.run_flags = page_seen.flags;
		cursor.run_pages = page_seen.pages;
	}
	cursor.sampled++;
	tally.pages += page_seen.pages;
}

static __always_inline u64 lruvec_of(u32 node)
{
	u64 info = 0;

	if (!read(&info, sizeof(info),
		  cursor.memcg + bpf_core_field_offset(struct mem_cgroup, nodeinfo) + node * sizeof(u64)) ||
	    !info)
		return 0;
	return info + bpf_core_field_offset(struct mem_cgroup_per_node, lruvec);
}

/* Since 5.18 unevictable pages are counted but on no list; the head of theirs
 * is poisoned (LIST_POISON1, on top of ILLEGAL_POINTER_VALUE). */
static __always_inline bool is_poison(u64 address)
{
	return address >> 48 == 0xdead;
}

/* The next list of this node that holds a page, from cursor.list on; 0 when
 * there is none. All heads of an array are read at once: most are empty. */
__noinline u64 memcg_next_list(u64 lruvec, u64 base, u32 n_lists, u32 offset)
{
	u32 size = n_lists * sizeof(struct list_head);

	/* The verifier wants to see the bound right where it counts. */
	barrier_var(size);
	size &= sizeof(heads) - 1;
	if (!read(heads, size, lruvec + base))
		return 0;
	for (u32 list = 0; list < MAX_LISTS; list++) {
		u64 head = lruvec + base + list * sizeof(struct list_head);

		if (list >= n_lists)
			break;
		if (list + offset < cursor.list || (u64)heads[list].next == head ||
		    is_poison((u64)heads[list].next))
			continue;
		cursor.list = list + offset + 1;
		cursor.page_head = head;
		cursor.page = (u64)heads[list].next;
		cursor.sampled = 0;
		return head;
	}
	return 0;
}

static __always_inline bool next_list_of_generations(u64 lruvec)
{
	struct field lists = {};

	TAKE_IF_THERE(lists, struct lruvec___folios, lrugen.folios);
	TAKE_IF_THERE(lists, struct lruvec___nested_folios, lrugen.folios);
	TAKE_IF_THERE(lists, struct lruvec___lists, lrugen.lists);
	TAKE_IF_THERE(lists, struct lruvec___nested_lists, lrugen.lists);
	return lists.size &&
	       memcg_next_list(lruvec, lists.offset, lists.size / sizeof(struct list_head), CLASSIC_LISTS);
}

static __always_inline void leave_pages(void)
{
	close_run();
	step_on();
}

/* Picks the next list with pages on it, over all nodes, or ends the phase. */
__noinline int memcg_pick_list(void)
{
	u64 lruvec = lruvec_of(cursor.node & (MAX_NODES - 1));

	if (lruvec) {
		if (memcg_next_list(lruvec, bpf_core_field_offset(struct lruvec, lists), CLASSIC_LISTS, 0))
			return 0;
		if (next_list_of_generations(lruvec))
			return 0;
	}
	cursor.node++;
	cursor.list = 0;
	if (cursor.node >= n_nodes || cursor.node >= MAX_NODES)
		leave_pages();
	return 0;
}

static __always_inline void begin_pages(void)
{
	cursor.phase = PHASE_PAGES;
	cursor.memcg = cursor.css - bpf_core_field_offset(struct mem_cgroup, css);
	cursor.node = 0;
	cursor.list = 0;
	cursor.page = 0;
	cursor.run_pages = 0;
}

/* The lists are read without their lock. A page that is not charged to this
 * cgroup means that one was moved under us: begin again, a few times. */
static __always_inline void lists_changed(void)
{
	cursor.run_pages = 0;
	if (cursor.retries++ < MAX_RETRIES) {
		put_pin(0, 0, PIN_START_OVER);
		begin_pages();
	} else {
		put_pin(0, 0, PIN_TORN);
		leave_pages();
	}
}

__noinline int memcg_look_at_page(void)
{
	u64 page;

	if (!cursor.page)
		return memcg_pick_list();
	if (cursor.page == cursor.page_head) {
		cursor.page = 0;
		return 0;
	}
	page = page_of(cursor.page);
	if (!is_ours(page)) {
		lists_changed();
		return 0;
	}
	if (cursor.sampled >= pages_per_list) {
		put_pin(0, 0, PIN_MORE);
		cursor.page = 0;
		return 0;
	}
	cursor.page = (u64)FIELD(page_copy, struct page, page, lru.next);
	add_page(page);
	return 0;
}

#endif
