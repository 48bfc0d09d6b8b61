/* Linked into copies of the programs with --wrap: a wall clock that jumps an hour forward and back all the
 * time. Who asks for it is named on stderr. The libraries are linked in, so that their calls come here too.
 */
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EVERY_MS 200
#define HOUR_S   3600

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_gettimeofday(struct timeval *t, void *zone);
time_t __wrap_time(time_t *t);

static void name(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));

	(void)n;
}

static void jumped(struct timespec *t)
{
	struct timespec now;

	__real_clock_gettime(CLOCK_MONOTONIC, &now);
	__real_clock_gettime(CLOCK_REALTIME, t);
	t->tv_sec += HOUR_S * ((now.tv_sec * 1000 + now.tv_nsec / 1000000) / EVERY_MS % 3 - 1);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_TAI)
		return __real_clock_gettime(id, t);
	name("wall clock: clock_gettime\n");
	jumped(t);
	return 0;
}

int __wrap_gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;

	(void)zone;
	name("wall clock: gettimeofday\n");
	jumped(&now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t __wrap_time(time_t *t)
{
	struct timespec now;

	name("wall clock: time\n");
	jumped(&now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
