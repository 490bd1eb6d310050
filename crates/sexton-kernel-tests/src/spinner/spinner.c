// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Spends known shares of its time in three functions.
 *
 *   spinner shares MS      61, 29 and 10 of a hundred parts in alpha, beta and gamma
 *   spinner burst AFTER MS sleeps, is busy for so long in alpha, sleeps again
 *   spinner made MS        spins in code that it makes itself and names in a perf map
 *
 * MS is processor time, except for a burst, where it is the clock's. All work is done by
 * one loop, so that it is as fast for each caller. Prints when it began and ended to be
 * busy, in ns since boot, and the processor time it had meanwhile.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

static uint64_t used_ns(void)
{
	return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

__attribute__((noinline)) static void burn(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		;
}

__attribute__((noinline)) void alpha(uint64_t n)
{
	burn(n);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void beta(uint64_t n)
{
	burn(n);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void gamma_(uint64_t n)
{
	burn(n);
	__asm__ volatile("" ::: "memory");
}

/* A hundredth of seven milliseconds, which no clock here ticks in step with. */
static uint64_t part(void)
{
	uint64_t began = used_ns();

	burn(1000000);
	return 1000000ull * 70000 / (used_ns() - began + 1) + 1;
}

static void shares(uint64_t until)
{
	uint64_t one = part();

	while (used_ns() < until) {
		alpha(61 * one);
		beta(29 * one);
		gamma_(10 * one);
	}
}

static void made(uint64_t until)
{
#if defined(__x86_64__)
	/* dec %rdi; jnz .-3; ret */
	static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
	/* sub x0, x0, #1; cbnz x0, .-4; ret */
	static const uint32_t code[] = { 0xd1000400, 0xb5ffffe0, 0xd65f03c0 };
#endif
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	FILE *map;

	memcpy(page, code, sizeof(code));
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	map = fopen(name, "w");
	fprintf(map, "%lx %zx made_by_spinner\n", (unsigned long)page, sizeof(code));
	fclose(map);
	while (used_ns() < until)
		((void (*)(uint64_t))page)(1000000);
	unlink(name);
}

int main(int argc, char **argv)
{
	uint64_t began, used, ms;

	if (argc < 3)
		return 2;
	ms = atoll(argv[argc - 1]);
	if (!strcmp(argv[1], "burst"))
		usleep(atoll(argv[2]) * 1000);
	began = now_ns();
	used = used_ns();
	if (!strcmp(argv[1], "shares"))
		shares(used + ms * 1000000);
	else if (!strcmp(argv[1], "made"))
		made(used + ms * 1000000);
	else
		while (now_ns() < began + ms * 1000000)
			alpha(100000);
	printf("%llu %llu %llu\n", (unsigned long long)began, (unsigned long long)now_ns(),
	       (unsigned long long)(used_ns() - used));
	fflush(stdout);
	if (!strcmp(argv[1], "burst"))
		usleep(atoll(argv[2]) * 1000);
	return 0;
}
