/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller gets a signal while its request is held. The behaviour is the same as without lkgfs: a fatal
 * signal ends the caller, because network file systems and locks release a killed process; any other signal
 * ends the wait only where the kernel's own wait can be interrupted (a lease), and never an answer that is
 * about to be sent.
 *
 * A request that only waits for its user's share has done nothing yet: where POSIX allows EINTR, any signal ends that wait after a
 * second. A lookup or stat() cannot return EINTR, and programs do not expect it.
 *
 * So the waiting thread gets a signal, too. If that does not end its wait and the caller is being killed,
 * the answer is EINTR: the kernel does not release a caller whose request has been read. A later effect of
 * the request is undone (task.lost).
 *
 * All callers share the root of the view: a request that hangs there while the kernel holds the directory's lock would block every
 * lookup of a new name, and of kubelet.conf with a new content. So it is answered ETIMEDOUT after ten seconds, with or without a
 * signal, as a soft network file system does; as there, it may still be carried out later.
 *
 * The kernel reports the first signal only, so a signalled caller is checked again until its request is over. The notifier is
 * treated like a killed caller after a second: it has other work to do.
 */
#include <signal.h>

#include "requests.h"

#define LOOK_NS (100 * LKG_NSEC_PER_MSEC)
#define WAKE    SIGUSR2
#define ROOT_NS (10 * LKG_NSEC_PER_SEC)

static _Atomic bool look_now;

static void on_wake(int number)
{
        /* only so that a system call returns */
}

void lkg_interrupts_init(void)
{
        const struct sigaction action = { .sa_handler = on_wake };

        (void)sigaction(WAKE, &action, NULL);
}

static bool has_kill(const char *status, const char *name)
{
        const char *p = strstr(status, name);

        return p && (strtoull(p + strlen(name), NULL, 16) & 1u << (SIGKILL - 1));
}

/* If a whole process is killed, SIGKILL is pending in each of its threads. */
static bool is_being_killed(int tid)
{
        char status[4096];

        return lkg_caller_read_proc(tid, "status", status, sizeof(status)) > 0 &&
               (has_kill(status, "\nSigPnd:") || has_kill(status, "\nShdPnd:"));
}

/* Lock held. */
static void let_go(struct lkg_slot *slot, int error)
{
        const struct fuse_out_header out = { .len = sizeof(out),
                                             .error = error,
                                             .unique = lkg_slot_header(slot)->unique };

        if (!lkg_slot_claim(slot))
                return; /* its answer is about to be sent */
        memcpy(slot->reply, &out, sizeof(out));
        atomic_store_explicit(&slot->reply_size, (uint32_t)sizeof(out), memory_order_release);
        lkg_kernel_send_raw(&out, sizeof(out));
}

/* truncate(), chmod() and chown(); not utimensat() */
static bool may_be_interrupted(const struct fuse_in_header *header)
{
        const struct fuse_setattr_in *in = (const void *)(header + 1);

        return lkg_request_is(header, REQUEST_EINTR) &&
               !(header->opcode == FUSE_SETATTR && in->valid & (FATTR_ATIME | FATTR_MTIME));
}

/*
 * Lock held. The error that ends the wait of its caller, 0 = none. -EBUSY: it arrived together with requests of the same user, which
 * run now, and waits with a lock that others need.
 */
static int judge(const struct held_job *job, uint64_t now_ns)
{
        const struct fuse_in_header *header = lkg_slot_header(job->slot);
        uint64_t waited_ns = now_ns - atomic_load(&job->slot->since_ns);
        bool patient = job->interrupted && waited_ns >= PATIENT_NS, waits = !job->running && !job->replay;
        int tid = (int)header->pid;
        bool killed =
                job->interrupted && (tid == 0 || lkg_is_notifier(tid) ? patient : is_being_killed(tid));

        if (job->running && (killed || patient))
                (void)pthread_kill(job->thread, WAKE);
        if (killed)
                return -EINTR;
        if (job->locks_root && waited_ns >= ROOT_NS)
                return -ETIMEDOUT;
        if (waits && job->locks_others_out && !lkg_held_may_run(job))
                return -EBUSY;
        return waits && patient && may_be_interrupted(header) ? -EINTR : 0;
}

/* Return: a request that is over and that no thread has: its slot has to be freed, without the lock. */
static struct lkg_slot *look_at_all(bool *ret_watched)
{
        struct lkg_slot *over = NULL;
        uint64_t now_ns;

        *ret_watched = false;
        LKG_LOCKED(&lkg_held_lock);
        now_ns = lkg_boottime_ns(); /* no request here is younger */
        for (struct held_job *job = lkg_held_jobs; job && !over; job = job->next) {
                int error;

                if (!job->slot || !(job->interrupted || job->locks_root || job->locks_others_out))
                        continue;
                *ret_watched = *ret_watched || job->interrupted || job->locks_root || !job->running;
                error = judge(job, now_ns);
                if (error < 0)
                        let_go(job->slot, error);
                if (error < 0 && !job->running) {
                        lkg_held_run(job); /* no other thread takes it now */
                        over = job->slot;
                }
        }
        return over;
}

uint64_t lkg_interrupts_look(uint64_t now_ns)
{
        static uint64_t next_ns;
        struct lkg_slot *over;
        bool watched;

        if (!atomic_exchange(&look_now, false) && now_ns < next_ns)
                return next_ns;
        while ((over = look_at_all(&watched))) {
                lkg_held_end(over);
                lkg_slot_free(over);
        }
        next_ns = watched ? now_ns + LOOK_NS : 0;
        return watched ? next_ns : UINT64_MAX;
}

/*
 * Has no reply. A request that is not held is answered soon; an answer of ENOSYS would disable interrupts
 * for good.
 */
void lkg_interrupt_request(const struct fuse_in_header *header)
{
        const struct fuse_interrupt_in *in = (const void *)(header + 1);

        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = &server.shm->slots[i];

                if (atomic_load(&slot->state) < LKG_SLOT_BUSY || lkg_slot_header(slot)->unique != in->unique)
                        continue;
                lkg_slot_mark_interrupted(slot);
                (void)pthread_mutex_lock(&lkg_held_lock);
                for (struct held_job *job = lkg_held_jobs; job; job = job->next)
                        if (job->slot == slot && lkg_slot_header(slot)->unique == in->unique)
                                job->interrupted = true;
                (void)pthread_mutex_unlock(&lkg_held_lock);
                atomic_store(&look_now, true);
                server.hooks->watch();
                return;
        }
}
