/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroup that tells most about a task. */
#ifndef SEXTON_HOME_H
#define SEXTON_HOME_H

#include "kernel.h"

static __always_inline struct kernfs_node *above(struct kernfs_node *kn)
{
	struct kernfs_node___rcu *rcu = (struct kernfs_node___rcu *)kn;

	if (bpf_core_field_exists(kn->parent))
		return BPF_CORE_READ(kn, parent);
	return BPF_CORE_READ(rcu, __parent);
}

/* Its cgroup in the hierarchy that holds memory. On v2 that is its own even when
 * memory is accounted further up. At the root of a v1 hierarchy we take its cgroup
 * in v2 instead: on a hybrid that one may tell the unit. */
static __always_inline struct kernfs_node *home_of(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *cgroup, *unified = BPF_CORE_READ(set, dfl_cgrp);
	u32 id = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	struct cgroup_subsys_state *css = 0;
	struct kernfs_node *kn;

	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)set + bpf_core_field_offset(struct css_set, subsys) + id * sizeof(u64));
	cgroup = BPF_CORE_READ(css, cgroup);
	kn = BPF_CORE_READ(cgroup, kn);
	if (kn && above(kn) && BPF_CORE_READ(cgroup, root) != BPF_CORE_READ(unified, root))
		return kn;
	return BPF_CORE_READ(unified, kn);
}

#endif
