/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the engine answer? It is asked only when a caller opens a status file that depends on it (outage.c), or that it
 * renders, and it has been silent for a second: that caller waits at most a second for its answer; one caller at a
 * time, and none while the engine is known to be silent.
 */
#include <time.h>

#include "file-server.h"

#define FRESH_NS   (1 * LKG_NSEC_PER_SEC) /* no need to ask after a message this recent */
#define SILENT_NS  (1 * LKG_NSEC_PER_SEC)
#define BELIEVE_NS (2 * LKG_NSEC_PER_SEC) /* how long the supervisor's report of work is trusted */

static pthread_mutex_t health_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: waits, n_heard. A leaf. */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool waits; /* a thread waits for the answer */
static uint64_t n_heard;
static _Atomic uint64_t asked_ns; /* time of the oldest unanswered question, CLOCK_BOOTTIME; 0 = none */
static _Atomic uint64_t asked_wall_ns;

static struct lkg_health *health(void)
{
        return &server.shm->health;
}

/* ---- what is known ---- */

static bool works(uint64_t now_ns)
{
        return atomic_load(&health()->works) && now_ns - atomic_load(&health()->looked_ns) < BELIEVE_NS;
}

bool health_is_down(uint64_t now_ns)
{
        uint64_t silent_ns = atomic_load(&health()->silent_ns);

        return silent_ns != 0 && now_ns >= silent_ns + SILENT_NS && !works(now_ns);
}

/* The first thread to notice sets the time. */
static void note_silent(uint64_t since_ns, uint64_t since_wall_ns)
{
        if (atomic_load(&health()->silent_ns) != 0)
                return;
        atomic_store(&health()->silent_wall_ns, since_wall_ns);
        atomic_store(&health()->silent_ns, since_ns);
}

void health_waited(uint64_t timeout_ns)
{
        uint64_t now_ns = lkg_boottime_ns();

        if (!works(now_ns))
                note_silent(now_ns - timeout_ns, lkg_realtime_ns() - timeout_ns);
}

void health_heard(void)
{
        struct lkg_health *h = health();

        atomic_store(&h->heard_wall_ns, lkg_realtime_ns());
        atomic_store(&h->heard_ns, lkg_boottime_ns());
        atomic_store(&h->silent_ns, 0);
        atomic_store(&asked_ns, 0);
        (void)pthread_mutex_lock(&health_lock);
        n_heard++;
        if (waits)
                (void)pthread_cond_broadcast(&answered);
        (void)pthread_mutex_unlock(&health_lock);
}

/* ---- asking ---- */

static void ask(uint64_t now_ns, void (*send)(void))
{
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&asked_ns, &none, now_ns))
                atomic_store(&asked_wall_ns, lkg_realtime_ns());
        send();
}

/*
 * Return: has the engine sent anything by @deadline_ns? false at once if another thread is already waiting.
 */
static bool wait_answer(uint64_t deadline_ns, uint64_t heard_before)
{
        struct timespec until;
        uint64_t now_ns = lkg_boottime_ns(), at_ns;
        bool heard;
        int r = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        at_ns = (uint64_t)lkg_timespec_ns(&until) + (deadline_ns > now_ns ? deadline_ns - now_ns : 0);
        until.tv_sec = (time_t)(at_ns / LKG_NSEC_PER_SEC);
        until.tv_nsec = (long)(at_ns % LKG_NSEC_PER_SEC);
        (void)pthread_mutex_lock(&health_lock);
        if (!waits) {
                waits = true;
                while (r == 0 && n_heard == heard_before)
                        r = pthread_cond_clockwait(&answered, &health_lock, CLOCK_MONOTONIC, &until);
                waits = false;
        }
        heard = n_heard != heard_before;
        (void)pthread_mutex_unlock(&health_lock);
        return heard;
}

static uint64_t count_heard(void)
{
        uint64_t n;

        (void)pthread_mutex_lock(&health_lock);
        n = n_heard;
        (void)pthread_mutex_unlock(&health_lock);
        return n;
}

bool health_find_out(void (*send)(void))
{
        uint64_t now_ns = lkg_boottime_ns(), n = count_heard(), since_ns = atomic_load(&health()->silent_ns);

        if (health_is_down(now_ns)) {
                if (atomic_load(&asked_ns) == 0)
                        ask(now_ns, send);
                return true;
        }
        if (since_ns == 0 && now_ns - atomic_load(&health()->heard_ns) < FRESH_NS)
                return false;
        ask(now_ns, send);
        if (since_ns == 0)
                since_ns = atomic_load(&asked_ns);
        if (since_ns == 0 || wait_answer(since_ns + SILENT_NS, n))
                return false;
        now_ns = lkg_boottime_ns();
        if (now_ns >= since_ns + SILENT_NS && !works(now_ns))
                note_silent(since_ns, atomic_load(&asked_wall_ns));
        return health_is_down(now_ns);
}
