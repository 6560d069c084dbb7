/* A library to be preloaded: what the system's clock says is shifted, the clocks that nobody sets are not.
 *
 * CLOCK_SHIFT holds the shift, or @FILE, which is read anew all the time (no file: no shift):
 *   -3600     by so many seconds
 *   288/50    by so many seconds, forward and back in turns of so many milliseconds
 *
 * Built with: cc -shared -fPIC -o clock_shift.so clock_shift.c
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift_s(void)
{
	static char kept[64];
	static long long read_ms = -1000;
	const char *text = getenv("CLOCK_SHIFT");
	struct timespec mono;
	long long ms;
	long by = 0, turn_ms = 0;

	if (!text)
		return 0;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &mono);
	ms = mono.tv_sec * 1000LL + mono.tv_nsec / 1000000;
	if (*text == '@') {
		if (ms - read_ms >= 10) {
			FILE *file = fopen(text + 1, "re");
			read_ms = ms;
			if (!file || !fgets(kept, sizeof kept, file))
				kept[0] = 0;
			if (file)
				fclose(file);
		}
		text = kept;
	}
	if (sscanf(text, "%ld/%ld", &by, &turn_ms) == 2 && turn_ms > 0 && ms / turn_ms % 2)
		return -by;
	return by;
}

int clock_gettime(clockid_t id, struct timespec *to)
{
	int said = syscall(SYS_clock_gettime, id, to);

	if (said == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		to->tv_sec += shift_s();
	return said;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *to)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (to)
		*to = now.tv_sec;
	return now.tv_sec;
}
