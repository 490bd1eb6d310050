/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who had a core for long without a break, for one writer each. */
#ifndef SEXTON_STRETCHES_H
#define SEXTON_STRETCHES_H

#define N_STRETCHES 8

/* A task that ran long without a break, by the clock of the program. */
struct stretch {
	__u64 since_ns;
	__u64 until_ns;
	__u32 pid;
	__u32 unused;
	__u8 comm[16];
};

/* The last ones; `n` is how many there ever were. */
struct stretches {
	__u64 n;
	struct stretch kept[N_STRETCHES];
};

/* Who had the core longest during a wait, and the part of that time which was within the
 * wait. `ns` is zero when nobody had it for long. */
struct holder {
	__u64 since_ns;
	__u64 ns;
	__u32 pid;
	__u32 unused;
	__u8 comm[16];
};

#ifdef __bpf__
/* Shorter runs hold nobody up; this is about two ticks. */
#define STRETCH_NS 5000000

static __always_inline u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

static __always_inline void note_stretch(struct stretches *stretches, struct task_struct *task, u64 since, u64 until)
{
	struct stretch *stretch = &stretches->kept[stretches->n & (N_STRETCHES - 1)];

	stretch->since_ns = since;
	stretch->until_ns = until;
	stretch->pid = task->pid;
	bpf_core_read(stretch->comm, sizeof(stretch->comm), &task->comm);
	stretches->n++;
}

/* Puts who had the core longest since then in place of the holder, if that is longer. */
static __always_inline void prefer_longer(struct holder *holder, struct stretches *stretches, u64 since)
{
	for (u32 i = 0; i < N_STRETCHES; i++) {
		struct stretch *stretch = &stretches->kept[i];
		u64 from = later(stretch->since_ns, since);

		if (stretch->until_ns <= from || stretch->until_ns - from <= holder->ns)
			continue;
		holder->since_ns = from;
		holder->ns = stretch->until_ns - from;
		holder->pid = stretch->pid;
		__builtin_memcpy(holder->comm, stretch->comm, sizeof(stretch->comm));
	}
}
#endif

#endif
