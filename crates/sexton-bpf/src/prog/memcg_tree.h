/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of memcg.bpf.c: moving over the tree, and finding the way back. */
#ifndef SEXTON_MEMCG_TREE_H
#define SEXTON_MEMCG_TREE_H

/* Is this css still on its parent's list, and still the same one? A removed
 * entry has its `prev` poisoned, a reused one another serial number. */
static __always_inline bool still_linked(u64 css, u64 serial)
{
	struct list_head *prev, *back = 0;
	u64 self = css + bpf_core_field_offset(struct cgroup_subsys_state, sibling);

	if (css == cursor.root)
		return true;
	if (serial_of(css) != serial)
		return false;
	prev = CSS_FIELD(css, sibling.prev);
	return !bpf_probe_read_kernel(&back, sizeof(back), &prev->next) && (u64)back == self;
}

static __always_inline void stand_on(u64 css, u32 depth)
{
	u64 serial = serial_of(css);

	cursor.css = css;
	cursor.css_serial = serial;
	cursor.depth = depth;
	/* The verifier wants to see the bound right where it counts. */
	barrier_var(depth);
	cursor.path[depth & (MAX_DEPTH - 1)] = serial;
	cursor.phase = PHASE_WALK;
}

static __always_inline u64 first_child(u64 css)
{
	u64 first = (u64)CSS_FIELD(css, children.next);

	return first && first != children_of(css) ? css_of_sibling(first) : 0;
}

/* Goes on with what follows `css` and everything below it. */
__noinline int memcg_step_over(u64 css, u32 depth)
{
	for (u32 level = 0; level < MAX_DEPTH; level++) {
		u64 parent, next;

		if (css == cursor.root || !css || !depth)
			break;
		parent = (u64)CSS_FIELD(css, parent);
		next = (u64)CSS_FIELD(css, sibling.next);
		if (next && next != children_of(parent)) {
			stand_on(css_of_sibling(next), depth);
			return 0;
		}
		css = parent;
		depth--;
	}
	cursor.css = 0;
	cursor.phase = PHASE_DONE;
	return 0;
}

static __always_inline void step_on(void)
{
	u64 child = cursor.child;

	if (child && cursor.depth + 1 < MAX_DEPTH) {
		stand_on(child, cursor.depth + 1);
		return;
	}
	if (child)
		tally.too_deep++;
	memcg_step_over(cursor.css, cursor.depth);
}

/* One comparison on the way back to cursor.path, see the top of the file. */
__noinline int memcg_seek(void)
{
	u64 css = cursor.css, serial = serial_of(css);
	u32 level = cursor.seek_depth & (MAX_DEPTH - 1);
	u64 wanted = cursor.path[level];

	cursor.css_serial = serial;
	if (serial > wanted) {
		stand_on(css, level);
	} else if (serial == wanted && level == cursor.depth) {
		stand_on(css, level);
	} else if (serial == wanted) {
		u64 child = first_child(css);

		if (!child)
			return memcg_step_over(css, level);
		cursor.css = child;
		cursor.css_serial = serial_of(child);
		cursor.seek_depth = level + 1;
	} else {
		u64 next = (u64)CSS_FIELD(css, sibling.next);
		u64 parent = (u64)CSS_FIELD(css, parent);

		if (!next || next == children_of(parent))
			return memcg_step_over(parent, level - 1);
		cursor.css = css_of_sibling(next);
		cursor.css_serial = serial_of(cursor.css);
	}
	return 0;
}

#endif
