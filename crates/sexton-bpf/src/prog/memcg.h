/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the memcg walk hands to user space. Rust takes these types from the
 * skeleton, so this is their only definition. */
#ifndef SEXTON_MEMCG_H
#define SEXTON_MEMCG_H

/* Deeper cgroups are counted as `too_deep`, never silently left out. */
#define MAX_DEPTH 128
#define MAX_NODES 64
#define NAME_LEN 256

/* One run fills at most this many of each, then user space takes them away.
 * Powers of two: the verifier follows a mask better than a comparison. */
#define MAX_ROWS 256
#define MAX_PINS 512
#define MAX_FILES 512
#define MAX_NAMES 1024

enum memcg_row_flags {
	ROW_ONLINE = 1 << 0,	   /* the memory state is live */
	ROW_DIRECTORY = 1 << 1,	   /* the cgroup itself is still there */
	ROW_POPULATED = 1 << 2,	   /* a process is in it or below it */
	ROW_CHILDREN = 1 << 3,	   /* has memory cgroups below it */
	ROW_CHARGES_PARENT = 1 << 4, /* its counters are part of its parent's */
};

enum memcg_pin_flags {
	PIN_MAPPED = 1 << 0,	 /* the file is mapped into some process */
	PIN_DIRTY = 1 << 1,	 /* a page waits for write-back */
	PIN_ANON = 1 << 2,	 /* not a file: anonymous memory */
	PIN_UNKNOWN = 1 << 3,	 /* a page without a mapping, on its way out */
	PIN_START_OVER = 1 << 4, /* lists changed: forget this row's pins so far */
	PIN_TORN = 1 << 5,	 /* lists kept changing: the rest was not seen */
	PIN_MORE = 1 << 6,	 /* sampled: the rest of a list was not looked at */
};

/* One memory cgroup the kernel still holds. */
struct memcg_row {
	u64 serial;
	u64 parent_serial;
	u64 cgroup_id;
	u64 born_jiffies; /* 0: this kernel does not keep it */
	u64 charged_pages;
	u64 memsw_pages; /* memory and swap on v1, swap alone on v2 */
	u64 lru_pages[5];
	enum memcg_row_flags flags;
	u32 name_len;
	u8 name[NAME_LEN];
};

/* Pages of one file that are charged to one cgroup. */
struct memcg_pin {
	u64 serial;
	u64 file; /* address of the inode; 0 when there is none */
	u64 pages;
	enum memcg_pin_flags flags;
	u32 pad;
};

/* A file, named by the address of its inode while a run lasts. */
struct memcg_file {
	u64 file;
	u64 inode;
	u64 magic;
	u64 name; /* address of its directory entry; 0 when it has none */
	u32 device;
	u32 rdev;
	u32 n_links;
	u32 generation;
};

/* A directory entry; `parent` equals `entry` at the top of a filesystem. */
struct memcg_name {
	u64 entry;
	u64 parent;
	u32 len;
	u32 pad;
	u8 name[NAME_LEN];
};

/* Bytes that the kernel's own structures take, from its type information;
 * 0 where this kernel has no such type. */
struct memcg_sizes {
	u32 cgroup;	  /* once per cgroup */
	u32 memcg;	  /* once per cgroup */
	u32 per_node;	  /* once per NUMA node */
	u32 per_cpu;	  /* once per possible CPU */
	u32 per_node_cpu; /* once per NUMA node and possible CPU */
};

enum memcg_phase {
	PHASE_DONE,
	PHASE_WALK,  /* visit `css` */
	PHASE_PAGES, /* look at pages of `css` */
	PHASE_SEEK,  /* find the way back to `path` */
};

/* Where the walk stands. Addresses are valid within one run only; between runs
 * the serial numbers are what holds (see memcg_step). */
struct memcg_cursor {
	u64 root;
	u64 css;
	u64 css_serial;
	u64 child; /* first one below `css`; 0: none */
	u64 path[MAX_DEPTH]; /* serial numbers from the root to `css` */
	u32 depth;	     /* of `css` in `path` */
	u32 seek_depth;	     /* level being searched in PHASE_SEEK */
	enum memcg_phase phase;
	u32 pad;

	/* PHASE_PAGES */
	u64 memcg;
	u64 page;      /* list entry of the next page; 0: pick a list */
	u64 page_head; /* list that `page` is on */
	u64 run_file;  /* pin being added up */
	u64 run_pages;
	u32 run_flags;
	u32 node;
	u32 list;
	u32 sampled;
	u32 retries;
};

struct memcg_tally {
	u64 visited;
	u64 lost_place; /* times the walk had to find its way back */
	u64 too_deep;
	u64 read_errors;
	u64 pages;
	u64 jiffies;
	u64 ktime_ns;
};

#endif
