// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Starts processes one after another, each of which lives for less than a millisecond.
 *
 *   storm fork MS US    children work in in_child() for US microseconds
 *   storm exec MS US    children execute this program, which works in in_program()
 *
 * Prints how many there were.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

__attribute__((noinline)) static void burn(uint64_t us)
{
	uint64_t until = now_us() + us;

	while (now_us() < until)
		for (volatile uint64_t i = 0; i < 20000; i++)
			;
}

__attribute__((noinline)) void in_child(uint64_t us)
{
	burn(us);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void in_program(uint64_t us)
{
	burn(us);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t until, us, n = 0;

	if (argc == 3 && !strcmp(argv[1], "child")) {
		in_program(atoll(argv[2]));
		return 0;
	}
	if (argc != 4)
		return 2;
	until = now_us() + atoll(argv[2]) * 1000;
	us = atoll(argv[3]);
	for (; now_us() < until; n++) {
		int is_exec = !strcmp(argv[1], "exec");
		pid_t child = is_exec ? vfork() : fork();

		if (child < 0)
			return 1;
		if (!child && is_exec) {
			execl(argv[0], argv[0], "child", argv[3], NULL);
			_exit(127);
		}
		if (!child) {
			in_child(us);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	printf("%llu\n", (unsigned long long)n);
	return 0;
}
