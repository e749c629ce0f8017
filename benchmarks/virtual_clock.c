/* Adds VIRTUAL_CLOCK_SECS to the time of day, for a process that runs on another day. With
   VIRTUAL_CLOCK_SPEED=120 it also goes 120 times as fast, from the true time VIRTUAL_CLOCK_FROM on.
   Only the time of day: what measures how long something takes, or waits, goes by the true clock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    long speed = number("VIRTUAL_CLOCK_SPEED"), from = number("VIRTUAL_CLOCK_FROM");
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    if (speed > 1) {
        long nanoseconds = now->tv_nsec * speed;
        now->tv_sec = from + (now->tv_sec - from) * speed + nanoseconds / 1000000000;
        now->tv_nsec = nanoseconds % 1000000000;
    }
    now->tv_sec += number("VIRTUAL_CLOCK_SECS");
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found)) return (time_t)-1;
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
