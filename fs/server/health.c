/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does the engine answer? It is asked only when a caller opens a status file that depends on it (outage.c), or that it
 * renders, and it has been silent for a second: that caller waits at most a second for its answer; one caller at a
 * time, and none while the engine is known to be silent.
 */
#include "file-server.h"

#define FRESH_NS   (1 * LKG_NSEC_PER_SEC) /* no need to ask after a message this recent */
#define SILENT_NS  (1 * LKG_NSEC_PER_SEC)
#define BELIEVE_NS (2 * LKG_NSEC_PER_SEC) /* how long the supervisor's report of work is trusted */

static pthread_mutex_t health_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: waits. A leaf. */
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool waits;                /* a thread waits for the answer */
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

bool lkg_health_is_down(uint64_t now_ns)
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

void lkg_health_waited(uint64_t timeout_ns)
{
        uint64_t now_ns = lkg_boottime_ns();

        if (!works(now_ns))
                note_silent(now_ns - timeout_ns, lkg_realtime_ns() - timeout_ns);
}

void lkg_health_heard(void)
{
        struct lkg_health *h = health();

        atomic_store(&h->heard_wall_ns, lkg_realtime_ns());
        atomic_store(&h->heard_ns, lkg_boottime_ns());
        atomic_store(&h->silent_ns, 0);
        atomic_store(&asked_ns, 0);
        LKG_LOCKED(&health_lock);
        (void)pthread_cond_broadcast(&answered);
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
static bool wait_answer(uint64_t deadline_ns, uint64_t heard_before_ns)
{
        uint64_t now_ns = lkg_boottime_ns(),
                 until_ns = lkg_monotonic_ns() + (deadline_ns > now_ns ? deadline_ns - now_ns : 0);

        LKG_LOCKED(&health_lock);
        if (!waits) {
                waits = true;
                while (atomic_load(&health()->heard_ns) == heard_before_ns &&
                       lkg_cond_wait(&answered, &health_lock, until_ns))
                        ;
                waits = false;
        }
        return atomic_load(&health()->heard_ns) != heard_before_ns;
}

bool lkg_health_find_out(void (*send)(void))
{
        uint64_t now_ns = lkg_boottime_ns(), heard_ns = atomic_load(&health()->heard_ns),
                 since_ns = atomic_load(&health()->silent_ns);

        if (lkg_health_is_down(now_ns)) {
                if (atomic_load(&asked_ns) == 0)
                        ask(now_ns, send);
                return true;
        }
        if (since_ns == 0 && now_ns - heard_ns < FRESH_NS)
                return false;
        ask(now_ns, send);
        if (since_ns == 0)
                since_ns = atomic_load(&asked_ns);
        if (since_ns == 0 || wait_answer(since_ns + SILENT_NS, heard_ns))
                return false;
        now_ns = lkg_boottime_ns();
        if (now_ns >= since_ns + SILENT_NS && !works(now_ns))
                note_silent(since_ns, atomic_load(&asked_wall_ns));
        return lkg_health_is_down(now_ns);
}
