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
#include <sys/timerfd.h>

#include "held-requests.h"

#define LOOK_NS (100 * LKG_NSEC_PER_MSEC)
#define WAKE    SIGUSR2
#define ROOT_NS (10 * LKG_NSEC_PER_SEC)

static int timer = -EBADF;

static void on_wake(int number)
{
        (void)number; /* only so that a system call returns */
}

void interrupt_watch(void)
{
        const struct itimerspec when = { .it_value.tv_nsec = LOOK_NS };

        (void)timerfd_settime(timer, 0, &when, NULL);
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

        return caller_read_proc(tid, "status", status, sizeof(status)) > 0 &&
               (has_kill(status, "\nSigPnd:") || has_kill(status, "\nShdPnd:"));
}

/* Lock held. */
static void let_go(struct held *h, int error)
{
        const struct fuse_in_header *header = (const void *)h->slot->buf;
        const struct fuse_out_header out = { .len = sizeof(out), .error = error, .unique = header->unique };

        if (!task_claim(slot_number(h->slot)))
                return; /* its answer is about to be sent */
        memcpy(h->slot->reply, &out, sizeof(out));
        atomic_store_explicit(&h->slot->reply_size, (uint32_t)sizeof(out), memory_order_release);
        kernel_send_raw(&out, sizeof(out));
}

/* May the system call behind it return EINTR? Not close(), which callers do not repeat. */
static bool may_be_interrupted(const struct fuse_in_header *header)
{
        static const uint32_t calls[] = {
                FUSE_OPEN,  FUSE_CREATE, FUSE_READ,      FUSE_WRITE,
                FUSE_FSYNC, FUSE_STATFS, FUSE_FALLOCATE, FUSE_COPY_FILE_RANGE,
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(calls); i++)
                if (header->opcode == calls[i])
                        return true;
        return header->opcode == FUSE_SETATTR && /* truncate(), chmod(), chown(); not utimensat() */
               !(((const struct fuse_setattr_in *)(const void *)(header + 1))->valid &
                 (FATTR_ATIME | FATTR_MTIME));
}

struct look {
        size_t number;
        uint64_t unique, since_ns;
        int tid;
        bool killed, patient, late;
        bool signalled, locks_root;
};

/* Lock held. */
static bool may_lack_share(const struct held *h)
{
        return h->locks_others_out && !h->running && !h->replay;
}

/*
 * Lock held. It arrived together with requests of the same user, which run now, and waits with a lock that
 * others need.
 */
static bool lacks_share(const struct held *h)
{
        return may_lack_share(h) && !held_may_run(h->owner, h->dev);
}

/* Return: the number of entries in @looks. */
static size_t collect(struct look looks[static ALL_SLOTS])
{
        size_t n = 0;

        (void)pthread_mutex_lock(&held_lock);
        for (size_t i = 0; i < ALL_SLOTS; i++) {
                const struct fuse_in_header *header;

                if (!held[i].slot ||
                    !(held[i].interrupted || held[i].locks_root || may_lack_share(&held[i])))
                        continue;
                header = (const void *)held[i].slot->buf;
                looks[n++] = (struct look){ .number = i,
                                            .unique = header->unique,
                                            .since_ns = atomic_load(&held[i].slot->since_ns),
                                            .signalled = held[i].interrupted,
                                            .locks_root = held[i].locks_root,
                                            .tid = (int)header->pid };
        }
        (void)pthread_mutex_unlock(&held_lock);
        return n;
}

/* Has it finished? Then its slot has to be freed, after the lock is released. */
static struct lkg_slot *act(const struct look *look)
{
        struct held *h = &held[look->number];
        const struct fuse_in_header *header;
        struct lkg_slot *over = NULL;
        bool ends, lacks;

        (void)pthread_mutex_lock(&held_lock);
        header = h->slot ? (const void *)h->slot->buf : NULL;
        if (header && header->unique == look->unique) {
                if (h->running && (look->killed || look->patient))
                        (void)pthread_kill(h->thread, WAKE);
                lacks = lacks_share(h);
                ends = look->killed || look->late || lacks ||
                       (look->patient && !h->running && !h->replay && may_be_interrupted(header));
                if (ends)
                        let_go(h, look->killed ? -EINTR : look->late ? -ETIMEDOUT : lacks ? -EBUSY : -EINTR);
                if (ends && !h->running) {
                        h->running = true; /* no thread takes it now */
                        held_count_run(h->owner, 1);
                        over = h->slot;
                }
        }
        (void)pthread_mutex_unlock(&held_lock);
        return over;
}

static void judge(struct look *look)
{
        uint64_t waited_ns = lkg_boottime_ns() - look->since_ns;

        look->late = look->locks_root && waited_ns >= ROOT_NS;
        if (!look->signalled)
                return;
        look->patient = waited_ns >= PATIENT_NS;
        look->killed = look->tid == 0 || is_notifier(look->tid) ? look->patient : is_being_killed(look->tid);
}

static void look_at_all(void)
{
        static struct look looks[ALL_SLOTS];
        size_t n = collect(looks);

        for (size_t i = 0; i < n; i++) {
                struct look *look = &looks[i];
                struct lkg_slot *over;

                judge(look);
                over = act(look);
                if (!over)
                        continue;
                held_end(over);
                slot_free(over);
        }
        if (n > 0)
                interrupt_watch();
}

static int on_look(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        uint64_t expirations;

        (void)source;
        (void)revents;
        (void)userdata;
        (void)!read(fd, &expirations, sizeof(expirations));
        look_at_all();
        return 0;
}

/*
 * Has no reply. A request that is not held is answered soon; an answer of ENOSYS would disable interrupts
 * for good.
 */
void interrupt_request(const struct fuse_in_header *header)
{
        const struct fuse_interrupt_in *in = (const void *)(header + 1);
        const struct itimerspec now = { .it_value.tv_nsec = 1 };

        for (size_t i = 0; i < lkg_shared_slots(server.shm); i++) {
                struct lkg_slot *slot = slot_at(i);
                const struct fuse_in_header *of = (const void *)slot->buf;

                if (atomic_load(&slot->state) < LKG_SLOT_BUSY || of->unique != in->unique)
                        continue;
                task_mark_interrupted(i);
                (void)pthread_mutex_lock(&held_lock);
                if (held[i].slot == slot && of->unique == in->unique)
                        held[i].interrupted = true;
                (void)pthread_mutex_unlock(&held_lock);
                (void)timerfd_settime(timer, 0, &now, NULL);
                return;
        }
}

int interrupts_init(void)
{
        const struct sigaction action = { .sa_handler = on_wake };

        if (sigaction(WAKE, &action, NULL) < 0)
                return -errno;
        timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (timer < 0)
                return -errno;
        return sd_event_add_io(server.event, NULL, timer, EPOLLIN, on_look, NULL);
}
