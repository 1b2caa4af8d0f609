/*
 * test_clock.c
 *     A library to preload into a server under test: its wall clock shows what a
 *     file says, from the moment that the file is written.
 *
 * The environment variable TEST_CLOCK names the file: one 64-bit integer in the
 * machine's byte order. Below 2^62 it is an offset to the true time in nanoseconds;
 * from there on the clock stands still, at that many nanoseconds (less 2^62) since
 * 1970. The monotonic clock stays as it is.
 *
 * Why not libfaketime: it turns itself off while it works, so what a signal handler
 * does in that time has the true time. Until 15 the postmaster forks its children in
 * signal handlers, and such a child keeps the true time for good. It also makes a look
 * at the clock cost 16 us; here it stays below 0.1.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t kNsPerSecond = 1000000000;
static const int64_t kStandsStill = (int64_t)1 << 62;

static const volatile int64_t *setting;
static int (*true_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_clock(void)
{
    const char *path = getenv("TEST_CLOCK");
    const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);

    *(void **)&true_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (file >= 0)
    {
        void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        setting = map == MAP_FAILED ? NULL : map;
        close(file);
    }
    if (setting == NULL)
        abort(); /* a test must not run on the true time by mistake */
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int status = true_clock_gettime == NULL ? (int)syscall(SYS_clock_gettime, clock, now)
                                                  : true_clock_gettime(clock, now);
    if (status == 0 && setting != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    {
        const int64_t set = *setting;
        const int64_t true_ns = (int64_t)now->tv_sec * kNsPerSecond + now->tv_nsec;
        const int64_t ns = set >= kStandsStill ? set - kStandsStill : true_ns + set;

        now->tv_sec = ns / kNsPerSecond;
        now->tv_nsec = ns % kNsPerSecond;
        if (now->tv_nsec < 0)
        {
            now->tv_nsec += kNsPerSecond;
            now->tv_sec--;
        }
    }
    return status;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    const int status = clock_gettime(CLOCK_REALTIME, &precise);

    (void)zone;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return status;
}

time_t time(time_t *result)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}
