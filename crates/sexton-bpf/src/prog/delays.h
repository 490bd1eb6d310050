/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts of delays by their length, for one writer each. */
#ifndef SEXTON_DELAYS_H
#define SEXTON_DELAYS_H

/* Bucket n counts delays of 2^n ns up to twice that; the last, from 69 s on, all
 * that are longer. */
#define N_BUCKETS 37

struct delays {
	__u64 n[N_BUCKETS];
};

#ifdef __bpf__
static __always_inline u32 bucket_of(u64 ns)
{
	u32 bucket = 0;

	if (ns >> 32) {
		bucket += 32;
		ns >>= 32;
	}
	if (ns >> 16) {
		bucket += 16;
		ns >>= 16;
	}
	if (ns >> 8) {
		bucket += 8;
		ns >>= 8;
	}
	if (ns >> 4) {
		bucket += 4;
		ns >>= 4;
	}
	if (ns >> 2) {
		bucket += 2;
		ns >>= 2;
	}
	bucket += ns >> 1;
	return bucket;
}

static __always_inline void count_delay(struct delays *delays, u64 ns)
{
	u32 bucket = bucket_of(ns);

	if (bucket >= N_BUCKETS)
		bucket = N_BUCKETS - 1;
	delays->n[bucket]++;
}
#endif

#endif
