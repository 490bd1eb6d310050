/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions to a task at the hooks of the scheduler. */
#ifndef SEXTON_TASKS_H
#define SEXTON_TASKS_H

/* See include/linux/sched.h. */
#define TASK_DEAD 0x80

/* Whether a task that is woken still has its core: it was about to sleep, and does not wait. */
static __always_inline bool is_running(struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && task->on_cpu;
}

/* Whether a task that leaves its core would rather have stayed. */
static __always_inline bool is_runnable(struct task_struct *task, bool preempt)
{
	struct task_struct___state *new = (void *)task;
	struct task_struct___old_state *old = (void *)task;

	if (preempt)
		return true;
	if (bpf_core_field_exists(new->__state))
		return !new->__state;
	return !old->state;
}

/* Whether it leaves its core for the last time. */
static __always_inline bool is_exiting(struct task_struct *task)
{
	struct task_struct___state *new = (void *)task;
	struct task_struct___old_state *old = (void *)task;

	if (bpf_core_field_exists(new->__state))
		return new->__state & TASK_DEAD;
	return old->state & TASK_DEAD;
}

#endif
