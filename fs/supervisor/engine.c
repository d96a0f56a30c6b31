/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: started in a mount namespace of its own in which the view does not exist, so that no path of a
 * configuration can lead it through our own mount. Everything else of the host it sees as it is, later
 * mounts included; what was mounted when it started is read-only.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <lkg/log.h>

#include "consumer.h"
#include "credential.h"
#include "engine-user.h"
#include "facts.h"
#include "fallback.h"
#include "supervisor.h"

/* One more than engines that are killed from outside before what they judge is refused (core/engine/poison.c). */
#define TRIES_AT_START 4u
#define END_NS         (2 * LKG_NSEC_PER_SEC)
#define EARLY_NS       (1 * LKG_NSEC_PER_SEC)

/* The descriptors of an engine. */
enum { LISTEN_FD = 3, CHANNEL_FD, SOURCE_FD, RUNTIME_FD, STATE_FD };

static int complain(const char *what)
{
        (void)dprintf(STDERR_FILENO, "namespace without the view: %s: %s\n", what, strerror(errno));
        return EX_OSERR;
}

static void raise_oom_score(void)
{
        LKG_CLEANUP(lkg_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0 && write(fd, "0", 1) < 0)
                return; /* inherits our protection then: no reason not to run */
}

struct setup {
        const struct lkg_supervisor *supervisor;
        const char *mount_point, *source_path;
        struct lkg_shared *shared;
        pid_t parent;
        struct lkg_account account;
        bool hand_over_all; /* no engine of this user has published anything since we run */
};

/*
 * Two engines at once would take each other's publications away, so a successor must know every one that
 * lives. A supervisor that is killed between fork and record could not tell: the child records itself, and
 * dies with its parent until it has.
 */
static int record_self(const struct setup *setup)
{
        struct lkg_process *process = &setup->shared->engine;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return complain("prctl");
        if (getppid() != setup->parent)
                return EX_UNAVAILABLE;
        process->start_time = lkg_process_start_time((int)getpid());
        atomic_store(&process->pid, (int)getpid());
        lkg_recorded_note(setup->supervisor, LKG_CHILD_ENGINE, (int)getpid(), process->start_time);
        return prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0) < 0 ? complain("prctl") : 0;
}

int lkg_hide_view(const char *mount_point)
{
        struct mount_attr private = { .propagation = MS_PRIVATE };
        LKG_CLEANUP(lkg_closep) int tree = -EBADF;
        int r;

        if (unshare(CLONE_NEWNS) < 0)
                return complain("unshare");
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return complain("make / a slave");
        r = lkg_mounts_detach_views();
        if (r < 0) {
                errno = -r;
                return complain("detach the view");
        }
        /*
         * What is at the mount point now (the covered directory, or nothing much) is put there once more as
         * a private mount: a view that the host attaches later comes in beneath it, and so stays invisible.
         */
        tree = open_tree(AT_FDCWD, mount_point,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT);
        if (tree < 0)
                return complain("open_tree");
        if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &private, sizeof(private)) < 0)
                return complain("mount_setattr");
        if (move_mount(tree, "", AT_FDCWD, mount_point, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return complain("move_mount");
        return 0;
}

/*
 * By a path it only reads: without capabilities it may still be the owner of every file of root's. And no devices: a disk is
 * root's, too, and one can be written through a mount that is read-only.
 */
static int make_read_only(void)
{
        struct mount_attr read_only = { .attr_set =
                                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID };

        if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) < 0)
                return complain("make everything read-only");
        return 0;
}

/*
 * The directories that it is given by descriptor, as mounts of their own that are attached nowhere: `..` leads out of none of
 * them, while an openat() of the host's directory would leave this namespace. Nobody has to run anything in any of them.
 * @tree: of open_tree(2), taken over; negative: errno says why there is none. @flags: AT_RECURSIVE or 0.
 */
static int give_directory(int tree, int fd, unsigned flags, bool writable)
{
        struct mount_attr attr = {
                .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                            (writable ? 0 : MOUNT_ATTR_RDONLY),
        };
        LKG_CLEANUP(lkg_closep) int detached = tree, directory = -EBADF;

        if (detached < 0)
                return complain("open_tree");
        if (mount_setattr(detached, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr)) < 0)
                return complain("mount_setattr");
        directory = writable ? openat(detached, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : dup(detached);
        if (directory < 0 || dup2(directory, fd) < 0)
                return complain("open a detached directory");
        return 0;
}

/* Before we leave the host's namespace: only there its mounts can be cloned. */
static int give_directories(void)
{
        static const struct {
                int fd;
                bool writable;
        } directories[] = { { SOURCE_FD, false }, { RUNTIME_FD, true }, { STATE_FD, true } };
        int r = 0;

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(directories); i++) {
                int fd = directories[i].fd;

                r = give_directory(open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
                                   fd, 0, directories[i].writable);
        }
        return r;
}

/*
 * The source once more with what is mounted below it (a volume with drop-ins), now that the view is not among that. A path
 * that is another directory by now is left alone.
 */
static int give_mounts_of_source(const char *source_path)
{
        LKG_CLEANUP(lkg_closep)
        int tree = open_tree(AT_FDCWD, source_path,
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_NO_AUTOMOUNT);
        struct stat now, then;

        if (tree < 0 || fstat(tree, &now) < 0 || fstat(SOURCE_FD, &then) < 0 || now.st_dev != then.st_dev ||
            now.st_ino != then.st_ino)
                return 0;
        return give_directory(LKG_STEAL_FD(tree), SOURCE_FD, AT_RECURSIVE, /* writable= */ false);
}

/* Run in the child, one after the other. @userdata: struct setup. */
static int begin(const void *userdata)
{
        int r = record_self(userdata);

        if (r != 0)
                return r;
        raise_oom_score();
        return give_directories();
}

/* In this process, because a disk may be slow; what could not be handed over the engine will say when it needs it. */
static void hand_over(const struct lkg_account *account, bool whole)
{
        static const struct {
                int fd;
                const char *name;
        } directories[] = { { RUNTIME_FD, "runtime" }, { STATE_FD, "state" } };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                int r = lkg_engine_hand_over(directories[i].fd, account, whole);

                if (r < 0)
                        (void)dprintf(STDERR_FILENO, "hand the %s directory to user %u: %s\n",
                                      directories[i].name, (unsigned)account->uid, strerror(-r));
        }
}

static int prepare(const void *userdata)
{
        const struct setup *setup = userdata;
        int r;

        hand_over(&setup->account, setup->hand_over_all);
        r = lkg_hide_view(setup->mount_point);

        if (r == 0)
                r = give_mounts_of_source(setup->source_path);
        return r != 0 ? r : make_read_only();
}

/*
 * Nothing is looked up here: that asks who may, and a network file system that is dead does not say. The child opens its own
 * (give_directories()), so nobody moves anybody's directory position.
 */
static void give_fds(const struct lkg_supervisor *s, int channel, int fds[static LKG_SPAWN_FDS_MAX])
{
        fds[0] = s->listen_fd;
        fds[CHANNEL_FD - LISTEN_FD] = channel;
        fds[SOURCE_FD - LISTEN_FD] = s->source_fd;
        fds[RUNTIME_FD - LISTEN_FD] = s->runtime_fd;
        fds[STATE_FD - LISTEN_FD] = s->state_fd;
}

/* The next engine's note. Without one it runs as well; what it may die of is then found out by nobody. */
static void open_note(struct lkg_supervisor *s)
{
        struct lkg_error err = { 0 };

        s->judging = lkg_judging_close(s->judging);
        if (lkg_judging_open(s->runtime_fd, &s->judging, &err) < 0)
                lkg_log_warning("%s", err.message);
        s->work = (struct lkg_work_watch){ 0 };
        s->engine_took_too_long = false;
}

/* The successor reads it together with what the dead one had in hand. */
static void note_end(struct lkg_supervisor *s, const struct lkg_child_end *end)
{
        enum lkg_judging_end how = end->code == CLD_EXITED                              ? LKG_END_EXIT
                                   : end->code == CLD_KILLED || end->code == CLD_DUMPED ? LKG_END_SIGNAL
                                                                                        : LKG_END_UNKNOWN;

        if (!s->judging || atomic_load(&s->judging->since_ns) == 0)
                return;
        /* It said so itself; or this one died without a look at the note, which is about the one before. */
        if (atomic_load(&s->judging->end) != LKG_END_UNKNOWN)
                return; /* its own word, written when it gave up */
        atomic_store(&s->judging->end_status, end->status);
        atomic_store(&s->judging->end, s->engine_took_too_long ? LKG_END_TIME : how);
}

enum lkg_work lkg_engine_work(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        uint64_t still_ns = s->settings->engine_timeout_ms * LKG_NSEC_PER_MSEC + LKG_NSEC_PER_SEC;
        struct timespec used = { 0 };
        enum lkg_work work;
        clockid_t clock;

        if (!s->judging && child->adopted)
                open_note(s);
        if (!s->judging || !lkg_child_running(child) || clock_getcpuclockid(child->pid, &clock) != 0 ||
            clock_gettime(clock, &used) < 0)
                return LKG_WORK_NONE;
        work = lkg_work_look(&s->work, atomic_load(&s->judging->since_ns),
                             (uint64_t)used.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)used.tv_nsec,
                             lkg_boottime_ns(), still_ns);
        if (work != LKG_WORK_TOO_LONG || s->engine_took_too_long)
                return work;
        s->engine_took_too_long = true;
        lkg_child_log(child, LOG_ERR,
                      "(pid %d) has used more than %u s of a processor for one look at the layers: killed; "
                      "what is "
                      "new in them will be refused",
                      (int)child->pid, (unsigned)(LKG_WORK_CPU_NS / LKG_NSEC_PER_SEC));
        (void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
        return work;
}

static bool same_account(const struct lkg_account *a, const struct lkg_account *b)
{
        return a->uid == b->uid && a->gid == b->gid;
}

/* Whom the next one runs as; why it is root is told once. */
static struct lkg_account choose_account(struct lkg_supervisor *s)
{
        struct lkg_account account;
        const int directories[] = { s->source_fd, s->state_fd };
        enum lkg_engine_root why = lkg_engine_account(s->settings, directories, &account);

        if (s->engine_root != (int)why)
                lkg_engine_user_tell(s->settings, why);
        s->engine_root = (int)why;
        return account;
}

static struct setup set_up(struct lkg_supervisor *s)
{
        const struct lkg_account account = choose_account(s);

        s->engine_handed_over = s->engine_handed_over && same_account(&account, &s->engine_account);
        s->engine_account = account;
        return (struct setup){ s,        s->mount_point, s->source_path,        s->connection.shared,
                               getpid(), account,        !s->engine_handed_over };
}

static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const struct setup setup = set_up(s);
        char user[32];
        const char *argv[] = { s->programs.engine,
                               "--mountpoint",
                               s->mount_point,
                               "--source-path",
                               s->source_path,
                               "--listen-fd",
                               "3",
                               "--supervisor-fd",
                               "4",
                               "--source-fd",
                               "5",
                               "--runtime-fd",
                               "6",
                               "--state-fd",
                               "7",
                               "--user",
                               user,
                               s->config ? "--config" : NULL,
                               s->config,
                               NULL };
        struct lkg_spawn spawn = { .argv = argv,
                                   .n_fds = 5,
                                   .stdin_fd = -EBADF,
                                   .before = begin,
                                   .setup = prepare,
                                   .userdata = &setup,
                                   .namespace_fd = s->children_namespace };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = lkg_lift_fd(pair[0]);
        theirs = lkg_lift_fd(pair[1]);
        if (ours < 0 || theirs < 0)
                return ours < 0 ? ours : theirs;
        give_fds(s, theirs, spawn.fds);
        (void)snprintf(user, sizeof(user), "%u:%u", (unsigned)setup.account.uid,
                       (unsigned)setup.account.gid);
        open_note(s);
        s->source_mounts = s->over ? 0 : lkg_mounts_below(s->source_path);
        r = lkg_child_spawn(child, &spawn, &ours);
        if (r >= 0)
                lkg_watchdog_started(s);
        return r;
}

static void start_another(struct lkg_supervisor *s)
{
        lkg_engine_send(s, LKG_MSG_STOP);
        lkg_child_end(&s->children[LKG_CHILD_ENGINE], 0, END_NS);
}

void lkg_engine_check_mounts(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];

        if (s->over || !lkg_child_running(child) || child->ending ||
            lkg_mounts_below(s->source_path) == s->source_mounts)
                return;
        lkg_child_log(child, LOG_NOTICE, "is started again: something was mounted or unmounted below %s",
                      s->source_path);
        start_another(s);
}

bool lkg_engine_check_user(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        const struct lkg_account account = choose_account(s);

        if (!lkg_child_running(child) || child->ending || child->adopted ||
            same_account(&account, &s->engine_account))
                return false;
        lkg_child_log(child, LOG_NOTICE, "is started again, as user %u", (unsigned)account.uid);
        start_another(s);
        return true;
}

static void heard_fatal(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_message *message)
{
        int code = message->result > 0 && message->result < 128 ? message->result : EX_SOFTWARE;

        child->fatal = true;
        if (s->phase == LKG_PHASE_ENGINE)
                lkg_supervisor_fail(s, code, "%s", message->text[0] ? message->text : "the engine gave up.");
        else
                lkg_child_log(child, LOG_ERR, "gave up (%d): %s; the view stays as it is", code,
                              message->text);
}

/* It may say what it likes, as it can on standard error; it stays a line of the engine. */
static void heard_line(struct lkg_child *child, const struct lkg_message *message)
{
        const struct lkg_log_fields fields = {
                .component = *message->command ? message->command : NULL,
                .generation = message->number,
                .layer = *message->exe ? message->exe : NULL,
        };

        lkg_said_line(&child->said, message->result, &fields, message->text);
}

static void heard(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_message *message)
{
        if (message->type == LKG_MSG_ALIVE)
                lkg_watchdog_answered(s, message->ticket);
        else if (message->type != LKG_MSG_FATAL && message->type != LKG_MSG_LOG) /* any thread's */
                lkg_watchdog_heard(s);
        if (message->type == LKG_MSG_FATAL) {
                heard_fatal(s, child, message);
        } else if (message->type == LKG_MSG_STARTED) {
                lkg_facts_refresh(s);
        } else if (message->type == LKG_MSG_CREDENTIAL) {
                lkg_exec_request(s);
        } else if (message->type == LKG_MSG_LOG) {
                heard_line(child, message);
        } else if (message->type == LKG_MSG_FALLBACK) {
                lkg_fallback_request(s, message);
        } else if (message->type == LKG_MSG_RESTART) {
                if (s->consumer) /* else the end is near */
                        lkg_consumer_request(s->consumer, message->component, message->number,
                                             message->result == 1);
        } else if (message->type == LKG_MSG_PUBLISHED && !child->ready) {
                child->ready = true;
                s->engine_handed_over = true;
                child->restart.n_early = 0;
                lkg_supervisor_engine_ready(s);
        }
}

static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        struct lkg_message message;
        int r = lkg_message_recv(child->channel, &message);

        if (r > 0)
                heard(s, child, &message);
        return r > 0 || r == -EBADMSG; /* not ours to understand; its sender is only the engine */
}

void lkg_engine_replaced(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        lkg_engine_ops.died(s, child, end);
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        const struct lkg_restart_policy *policy = end->fatal ? &lkg_restart_fatal : &lkg_restart_engine;
        bool early = end->fatal || (!end->ready && !end->adopted && end->lived_ns < EARLY_NS);

        note_end(s, end);
        lkg_watchdog_gone(s);
        if (s->phase == LKG_PHASE_ENGINE && ++s->n_engine_tries >= TRIES_AT_START) {
                lkg_supervisor_fail(s, EX_SOFTWARE,
                                    "the engine ended %u times before its first publication, last %s %d.",
                                    TRIES_AT_START, end->code == CLD_EXITED ? "with code" : "by signal",
                                    end->status);
                return;
        }
        lkg_child_start_later(child, lkg_restart_pause_ns(&child->restart, policy, early));
}

int lkg_engine_tell(struct lkg_supervisor *s, const struct lkg_message *message)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        int r;

        if (child->channel < 0)
                return -ENOTCONN;
        r = lkg_message_send(child->channel, message);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) /* those: it has just ended, which is seen elsewhere */
                lkg_child_log(child, LOG_WARNING, "does not take messages: %s", strerror(-r));
        return r;
}

void lkg_engine_send(struct lkg_supervisor *s, uint32_t type)
{
        struct lkg_message message;

        lkg_message_init(&message, type);
        (void)lkg_engine_tell(s, &message);
}

const struct lkg_child_ops lkg_engine_ops = { .start = start, .died = died, .input = input };
