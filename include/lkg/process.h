/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: accounts, privileges, confinement, jobs, ends, restarts with pauses, and who is at the other end of a socket. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/messages.h>

/* Users of this machine, as in its own user database file. */

#define LKG_PASSWD_FILE "/etc/passwd"

/* All 0: root. */
struct lkg_account {
        uid_t uid;
        gid_t gid;
};

/**
 * lkg_account_find() - look up the user @name: an entry of @database with its group, a number (which needs
 * no entry and is also used for the group), or root, also for "".
 * @database: a file like LKG_PASSWD_FILE. No directory service is queried: a node must come up while none of
 * them answers.
 *
 * Return: 0; -ENOENT: unknown, or a number that no process can have; another -errno: @database cannot be read.
 */
int lkg_account_find(const char *database, const char *name, struct lkg_account *ret);

/** lkg_account_parse() - @text is `UID:GID`, in numbers; it is changed. Return: 0; -EINVAL. */
int lkg_account_parse(char *text, struct lkg_account *ret);

/* ---- ends ---- */

/*
 * Ends of a process of lkgfs that nobody asked for, as lkgfsd saw them. They are part of the memory that it shares with the file
 * server (lkg/shared.h), which shows them in metrics.prom: a process that is killed ten times a second and started again is otherwise
 * up whenever somebody looks.
 */

#define LKG_ENDS_KEPT      1024u
#define LKG_ENDS_RECENT_NS UINT64_C(60000000000)

struct lkg_ends {
        _Atomic uint64_t n;           /* in total; counts when the rest is written */
        _Atomic int32_t code, status; /* of the last one: si_code and si_status of waitid(2); 0 = unknown */
        /* CLOCK_BOOTTIME of the latest; number i is at i % LKG_ENDS_KEPT */
        _Atomic uint64_t at_ns[LKG_ENDS_KEPT];
};

void lkg_ends_note(struct lkg_ends *ends, int code, int status, uint64_t now_ns);
/** lkg_ends_recent() - how many there were within LKG_ENDS_RECENT_NS; at most LKG_ENDS_KEPT. */
unsigned lkg_ends_recent(const struct lkg_ends *ends, uint64_t now_ns);
/** lkg_ends_reason() - of the last one: "killed by SIGKILL", "exit code 70", "unknown". */
void lkg_ends_reason(const struct lkg_ends *ends, char *ret, size_t size);

/* ---- job ---- */

/*
 * A piece of work in a forked process: it may hang, print endlessly, crash, or leave processes behind, and
 * costs its caller no more than a limit of time and of bytes.
 *
 * The rules, forevery job:
 *  - It leads a process group, unless a flag says otherwise. At the limit the group gets SIGKILL, and so
 *    does the process itself, which may not have created the group yet.
 *  - It ends when its parent does (PR_SET_PDEATHSIG), unless LKG_JOB_OUTLIVES_US is set.
 *  - It ends with its process, not with its output: a process that it left behind may hold a pipe forever.
 *  - SIGKILL does not end a process that sleeps in the kernel (state D: a dead network file system, a FUSE
 *    server that has read the request). A caller waits at most LKG_JOB_GRACE_NS for a killed process. A
 *    caller with a loop keeps the pidfd in it and reaps the process when it ends; a caller without one exits
 *    soon, and init reaps it.
 */

#define LKG_JOB_FIRST_FD 3
#define LKG_JOB_GRACE_NS (1 * LKG_NSEC_PER_SEC)

enum lkg_job_flags {
        /* our 0, 1 and 2; else /dev/null, pipes for collected output, and the root directory */
        LKG_JOB_KEEPS_STDIO = 1,
        LKG_JOB_KEEPS_FDS = 2,   /* all our descriptors; otherwise only @fds */
        LKG_JOB_OUTLIVES_US = 4, /* it continues without us, in our process group */
        LKG_JOB_IN_GROUP = 8,    /* in our process group: it gets the terminal's signals, too */
};

struct lkg_job_spec {
        /* in the new process: returns its exit status, unless it executes a program */
        int (*run)(void *userdata);
        void *userdata;
        unsigned flags;
        const int *fds; /* it gets them as LKG_JOB_FIRST_FD, ...; each has a higher number here */
        size_t n_fds;
};

/* The part of its output that is stored. */
struct lkg_job_output {
        char *data; /* the caller's @max bytes; NULL: discard */
        size_t max, size;
        bool cut;     /* there was more */
        bool bounded; /* more than @max ends the job: -EFBIG */
        int fd;       /* private */
};

struct lkg_job {
        pid_t pid; /* 0 = none */
        int pidfd;
        bool leads; /* it leads a process group */
};

#define LKG_JOB_INIT            \
        {                       \
                .pidfd = -EBADF \
        }

/**
 * lkg_job_start() - fork.
 * @out: standard output; NULL or without data: /dev/null. @err: the same for standard error; may be @out. Both NULL with
 *       LKG_JOB_KEEPS_STDIO.
 * Return: 0; -errno.
 */
int lkg_job_start(struct lkg_job *job, const struct lkg_job_spec *spec, struct lkg_job_output *out,
                  struct lkg_job_output *err);
/** lkg_job_kill() - kill it and its group. The caller still has to reap it. */
void lkg_job_kill(const struct lkg_job *job);
/**
 * lkg_job_cancel() - kill it, and wait for it as described above.
 * Return: whether it has ended; if not, @job still refers to it.
 */
bool lkg_job_cancel(struct lkg_job *job);
/** lkg_job_ended() - can it be reaped? */
bool lkg_job_ended(const struct lkg_job *job);
/**
 * lkg_job_reap() -
 * Return: its exit status; -1: it was killed by a signal, or has already been reaped; -EAGAIN.
 */
int lkg_job_reap(struct lkg_job *job);

/**
 * lkg_job_run() - start it, and wait for its end, at most @limit_ns.
 * @ret_status: as from waitpid(2)
 * Return: 0; -ETIMEDOUT and -EFBIG: it was killed; another -errno: it could not be started.
 */
int lkg_job_run(const struct lkg_job_spec *spec, uint64_t limit_ns, struct lkg_job_output *out,
                struct lkg_job_output *err, int *ret_status);

/* ---- landlock ---- */

/*
 * Landlock (Linux 5.13 and later): a process of ours may change files below the directories that it was
 * given, and nowhere else; it cannot execute programs or open ports and, from Linux 6.12 on, it cannot
 * signal processes outside or connect to abstract sockets. Source: <linux/landlock.h>, landlock(7).
 *
 * This is in addition to read-only mounts: it also applies to later mounts, and without a mount namespace.
 */

/**
 * lkg_landlock_enter() - restrict this process for good; no_new_privs must be set before.
 * @writable: descriptors of directories; regular files and directories may be created there
 * @special: links, FIFOs, sockets and device nodes as well
 *
 * Return: the ABI version in use; 0: not supported by the kernel, or disabled; -errno.
 */
int lkg_landlock_enter(const int *writable, size_t n_writable, bool special, struct lkg_error *err);

/* ---- privilege ---- */

/* Dropping privileges at the start of a process, and proving to another process that it belongs to lkgfs. */

/* The leak checker of a sanitizer traces its own process, and shadow memory counts as data: such builds have no filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LKG_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define LKG_SANITIZED 1
#endif
#endif
#ifndef LKG_SANITIZED
#define LKG_SANITIZED 0
#endif

/**
 * lkg_capabilities_keep() - drop all other capabilities, for this thread, the threads that it creates, and
 * every program that it executes; no ambient and no inheritable ones. A capability that was missing before
 * is still missing afterwards.
 * @capabilities: numbers of <linux/capability.h>, ended by -1
 *
 * Source: capabilities(7).
 * Return: 0 or -errno.
 */
int lkg_capabilities_keep(const int *capabilities, struct lkg_error *err);

/** lkg_has_capability() - is it effective in this process? */
bool lkg_has_capability(int capability);
/** lkg_process_has_capability() - the same for a process or a thread; false if it has ended. */
bool lkg_process_has_capability(int pid, int capability);

struct lkg_syscall_policy;
/**
 * lkg_confine() - lkg_capabilities_keep(), no_new_privs, and lkg_syscalls_restrict() (not in sanitizer builds).
 * Return: 0; -errno: do not run unprotected.
 */
int lkg_confine(const int *capabilities, const struct lkg_syscall_policy *policy, struct lkg_error *err);

/**
 * lkg_peer_of_host() - does the process at the other end of @socket have our uid, our user namespace, and
 * @capability in effect, and is it still running after these checks?
 * @mount_namespace: it must be in this one, too (inode of /proc/PID/ns/mnt); 0 = any
 *
 * A compromised engine fails: it has no such capability, and its own namespace. So does root in a container.
 * Source: SO_PEERCRED of unix(7), SO_PEERPIDFD from Linux 6.5 on.
 * Return: its pid; -EPERM; another -errno.
 */
int lkg_peer_of_host(int socket, int capability, ino_t mount_namespace);

/* ---- sandbox ---- */

/*
 * The engine parses untrusted bytes as root's child, so it gives up what it does not need: being root, all capabilities but
 * one, new privileges, cores, being traced, most of the address space, changing files outside of two directories, and system calls
 * that it has no use for.
 */

/** lkg_sandbox_hide_memory() - no core, and nobody looks into this process: for whoever has a credential. Return: 0 or -errno. */
int lkg_sandbox_hide_memory(struct lkg_error *err);

/**
 * lkg_sandbox_become() - the user that the engine is from now on, and nobody looks into this process. Before anything is made
 * or locked: the directories are that user's, and root may not write into them where a policy leaves it no CAP_DAC_OVERRIDE. Who
 * was to end with its parent still does.
 * @account: root: it stays that. Another one keeps CAP_DAC_READ_SEARCH, without which it could not read what only root may, as a base
 *           with mode 0600
 *
 * Return: 0 or -errno.
 */
int lkg_sandbox_become(const struct lkg_account *account, struct lkg_error *err);

/**
 * lkg_sandbox_enter() - for good; after lkg_sandbox_become(), and who is still root has no capability from here on.
 * @writable: descriptors of the directories in which it may make, change and remove files
 *
 * Return: 0 or -errno: better not to run than to run unprotected.
 */
int lkg_sandbox_enter(const int *writable, size_t n_writable, struct lkg_error *err);

/* ---- syscalls ---- */

/*
 * The system calls that a process of ours may make: a seccomp filter (seccomp(2)) made from a policy with
 * four results. Decision: docs/decisions/011-system-calls.md.
 *
 * killed calls that none of our libraries makes and injected code would want: running programs, mounting,
 * inspecting
 *            other processes, changing the kernel. The whole process dies of SIGSYS, and lkgfsd starts another one.
 * an error   calls that a library may try and can do without (Kerberos' keyrings, a fork), and calls that are harmless for
 *            the process itself but not for others: signals and limits of other processes, other socket families.
 * allowed the list: what our test suites were seen to call, and related calls. unlisted ENOSYS, as on a
 * kernel without the call, so that a new C library does not kill a node's engine. With
 *            LKGFS_SYSCALLS=kill in the environment the process dies instead; our end-to-end tests run like that.
 */

#define LKG_SYSCALL_VALUES 8u

struct lkg_syscall_rule {
        const char *name;
        int nr;
        int error; /* the errno of the call; 0 = the process is killed */
};

/* A call that is judged by one argument, of which the lower 32 bits are compared. */
struct lkg_syscall_argument {
        int nr;
        unsigned argument;
        bool only; /* only these values are allowed; otherwise all except these */
        bool own;  /* our pid is one of the values */
        unsigned n_values;
        uint32_t values[LKG_SYSCALL_VALUES];
        int error; /* as in lkg_syscall_rule */
};

struct lkg_syscall_policy {
        const struct lkg_syscall_argument *arguments;
        size_t n_arguments;
        const int *allowed;
        size_t n_allowed;
};

/*
 * Calls that are refused to all our processes, whatever the arguments; threads may be created, processes
 * not.
 */
extern const struct lkg_syscall_rule lkg_syscall_rules[];
extern const size_t lkg_n_syscall_rules;
/* Calls that all our processes need: memory, threads, time, waiting, their own descriptors. */
extern const int lkg_syscalls_common[];
extern const size_t lkg_n_syscalls_common;

/**
 * lkg_syscalls_restrict() - restrict this thread and the threads that it creates, for good: @policy, then
 * lkg_syscall_rules, then the common calls. Needs no_new_privs, or privileges.
 * Return: 0, also on a kernel without filters and on an unknown architecture; -errno.
 */
int lkg_syscalls_restrict(const struct lkg_syscall_policy *policy, struct lkg_error *err);

/* ---- peers ---- */

/*
 * Connections of file servers, and the one of the supervisor: messages in, answers out, without ever blocking.
 *
 * Several file servers may be connected for a while (a successor was started before the old one was gone); each is
 * served until it closes. Answers that do not fit into a socket wait in memory, at most LKG_QUEUE_MAX of them; a peer
 * that reads none of so many is closed (it will come back, and ask again).
 */

#define LKG_QUEUE_MAX   4096u
#define LKG_BATCH_MAX   LKG_MESSAGES_AT_ONCE
#define LKG_TICKETS_MAX 256u

struct lkg_peer {
        struct lkg_peers *server; /* borrowed */
        int fd;
        sd_event_source *io;
        bool is_supervisor;
        uint64_t loaded; /* newest publication it serves; 0 = not said yet */
        struct lkg_message *queue;
        size_t n_queue, n_allocated;
};

/* What the engine does with messages. @peer stays valid until @gone was called for it. */
struct lkg_server_ops {
        void (*message)(struct lkg_peer *peer, const struct lkg_message *message, void *userdata);
        void (*batch_done)(struct lkg_peer *peer, void *userdata); /* nothing more to read for now */
        void (*came)(struct lkg_peer *peer, void *userdata);
        void (*gone)(struct lkg_peer *peer, void *userdata); /* before it is freed */
};

/* The result of a ticket that was carried out: a repeated question gets the first answer. */
struct lkg_ticket {
        uint64_t ticket, number;
        int32_t result;
};

struct lkg_peers {
        sd_event *event; /* borrowed */
        const struct lkg_server_ops *ops;
        void *userdata;
        sd_event_source *listen;
        struct lkg_peer **peers; /* file servers, oldest first */
        size_t n_peers;
        struct lkg_peer *supervisor;
        struct lkg_ticket tickets[LKG_TICKETS_MAX];
        size_t next_ticket;
};

/** lkg_server_init() - @listen_fd and @supervisor_fd may be -EBADF (tests, --check); both stay the caller's. */
int lkg_server_init(struct lkg_peers *server, sd_event *event, int listen_fd, int supervisor_fd,
                    const struct lkg_server_ops *ops, void *userdata, struct lkg_error *err);
void lkg_server_deinit(struct lkg_peers *server);

/** lkg_peer_send() - now, or when the peer has room. */
void lkg_peer_send(struct lkg_peer *peer, const struct lkg_message *message);

/** lkg_server_done() - answer @ticket and remember the answer. */
void lkg_server_done(struct lkg_peer *peer, uint64_t ticket, int result, uint64_t number);

/** lkg_server_remember() - a ticket that an engine before us answered. */
void lkg_server_remember(struct lkg_peers *server, uint64_t ticket, int result, uint64_t number);

/** lkg_server_repeat() - answer a ticket that was answered before. Return: false when it was not. */
bool lkg_server_repeat(struct lkg_peer *peer, uint64_t ticket);

/** lkg_server_published() - tell every file server and the supervisor. */
void lkg_server_published(struct lkg_peers *server, uint64_t number);

/** lkg_server_fatal() - tell the supervisor not to start us again. */
void lkg_server_fatal(struct lkg_peers *server, int code, const char *reason);

/** lkg_server_loaded() - oldest publication some file server may still be loading; UINT64_MAX = none is connected. */
uint64_t lkg_server_loaded(const struct lkg_peers *server);

/* ---- backoff ---- */

/*
 * How long to wait before the next attempt, like client-go's reflector: 800 ms, doubled each time, at most
 * 30 s, each plus up to the same time at random, starting over after two minutes without a failure; and how
 * often to send requests at all, like client-go's default rate limiter. Pure: clock and random numbers are
 * arguments.
 */

#define LKG_BACKOFF_FIRST_NS   (800 * LKG_NSEC_PER_MSEC)
#define LKG_BACKOFF_MAX_NS     (30 * LKG_NSEC_PER_SEC)
#define LKG_BACKOFF_HEALTHY_NS (120 * LKG_NSEC_PER_SEC)
#define LKG_RETRY_AFTER_MAX_NS (600 * LKG_NSEC_PER_SEC) /* the limit for a server that asks for more */

/* All zero is the initial state. */
struct lkg_backoff {
        uint64_t first_ns; /* 0 = LKG_BACKOFF_FIRST_NS; otherwise all times are scaled in proportion */
        unsigned n_failures;
        uint64_t healthy_ns; /* CLOCK_BOOTTIME since when it has worked; 0 = it does not */
};

/** lkg_backoff_succeeded() - it works. Failures are forgotten after LKG_BACKOFF_HEALTHY_NS. */
void lkg_backoff_succeeded(struct lkg_backoff *backoff, uint64_t now_ns);

/**
 * lkg_backoff_failed() - how long to wait now.
 * @retry_after_ns: the server's Retry-After, a lower bound; 0 = none
 * @random:         uniform 32 bits
 * Return: nanoseconds, at least LKG_BACKOFF_FIRST_NS, or first_ns.
 */
uint64_t lkg_backoff_failed(struct lkg_backoff *backoff, uint64_t retry_after_ns, uint32_t random,
                            uint64_t now_ns);

/** lkg_jitter() - change @ns at random by up to @percent (at most 100). */
uint64_t lkg_jitter(uint64_t ns, unsigned percent, uint32_t random);

/** lkg_random() - 32 uniform bits from the kernel. */
uint32_t lkg_random(void);

/* A token bucket, stored as the time at which it will be full again. Zero is a full one. */
struct lkg_bucket {
        uint64_t full_ns;
};

/* How many tokens it holds, and how long it takes to refill one. */
struct lkg_bucket_rate {
        unsigned burst;
        uint64_t interval_ns;
};

/**
 * lkg_bucket_take() - take one token; always with the same @rate.
 * Return: 0: taken; otherwise the nanoseconds to wait before the next attempt, and nothing is taken.
 */
uint64_t lkg_bucket_take(struct lkg_bucket *bucket, const struct lkg_bucket_rate *rate, uint64_t now_ns);
