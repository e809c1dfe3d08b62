/* A clock that is apart from the machine's by as many seconds as CLOCK_APART says, for programs that load this (LD_PRELOAD).

   cc -shared -fPIC -o other_clock.so other_clock.c

   It changes what tells the time of day, and nothing that measures a time or waits: on a host whose clock is wrong, these are right.
   libfaketime changes those, too: Java never rests then, and Python's sleep fails. Waits until a time of day (Java's parkUntil) are
   wrong with this one; Spark, Hadoop and stormspark have none.
*/
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long apart(void) {
    const char *seconds = getenv("CLOCK_APART");
    return seconds == NULL ? 0 : atol(seconds);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += apart();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed)
        now->tv_sec += apart();
    return failed;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}
