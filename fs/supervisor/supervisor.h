/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the supervisor. One thread, one sd-event loop; everything in struct lkg_supervisor
 * belongs to it.
 *
 * Two rules shape the code. First: it never waits for the file server, because it must be able to start the
 * next one; unmounting, which may send a request through the view, runs in a forked helper that the loop
 * watches. Second: nothing here is between the kernel and the file server; the device is polled only to
 * notice the start of traffic (server-child.c).
 *
 * Functions of the start return 0 or a sysexits code with the reason in @err: the start ends with exactly
 * that code. Functions of the running system return 0 or -errno, and log, because the loop has no caller to
 * report to.
 */
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sysexits.h>
#include <time.h>

#include <systemd/sd-event.h>

#include <lkg/process.h>
#include <lkg/base.h>
#include <lkg/messages.h>
#include <lkg/admission.h>
#include <lkg/shared.h>

#include "jobs.h"
#include "mounts.h"
#include "daemon-options.h"
#include "pace.h"
#include "said.h"

enum lkg_phase {
        LKG_PHASE_ENGINE, /* nothing is attached; the first engine reads everything */
        LKG_PHASE_SERVER, /* the first file server of this connection starts */
        LKG_PHASE_RUNNING,
        LKG_PHASE_UNMOUNT, /* told to stop: the unmount helper runs */
        LKG_PHASE_DRAIN,   /* unmounted; the connection ends with its last user */
        LKG_PHASE_END,     /* children end, then the loop does */
};

struct lkg_supervisor;

/* A long-lived process of lkgfs, whichever it is. */
struct lkg_child {
        struct lkg_supervisor *supervisor; /* borrowed */
        const struct lkg_child_row *row;
        enum lkg_child_kind kind;
        pid_t pid;            /* 0 = not running; the rest is about the last one then */
        int pidfd, channel;   /* channel: our end of its --supervisor-fd */
        bool adopted;         /* started by a predecessor: its end is visible, its exit code is not */
        bool ready;           /* engine: has published; file server: serves */
        bool fatal;           /* engine: it sent FATAL */
        bool ending;          /* we asked it to end */
        uint64_t started_ns;  /* CLOCK_BOOTTIME */
        unsigned n_early;     /* deaths in a row before it was of any use */
        unsigned n_abandoned; /* earlier ones that were killed and still exist, stuck in the kernel */
        bool held;            /* not started before one of those has ended */
        struct lkg_bucket log_limit;
        unsigned n_dropped;   /* lines that exceeded it */
        struct lkg_said said; /* its output */
        sd_event_source *exit_source, *channel_source;
        struct lkg_timer timer; /* the pause before a start, or the deadline of an end */
};

struct lkg_kept {
        uint64_t node; /* 0 = free */
        int fd;
};

/* One FUSE connection and what belongs to it; replaced as a whole when it is aborted. */
struct lkg_connection {
        int device, shared_fd;
        struct lkg_shared *shared;
        int mount_fd; /* of fsmount(2); closed once attached, because it would keep the mount busy */
        /* a detached clone for the notifier: the same tree, without keeping the mount busy */
        int view_fd;
        uint64_t mount_id; /* valid when attached */
        bool attached;
        struct lkg_kept kept[LKG_KEPT]; /* deleted but open files of the file server */
};

struct lkg_source_directory {
        const char *path; /* borrowed from settings or mount_point */
        int fd;
        bool over;       /* it is the directory under the mount */
        uint64_t mounts; /* lkg_mounts_below() it when the engine was started */
};

/* Our directories and their locks. */
struct lkg_directories {
        int state, state_lock;
        int records;               /* runtimeDir itself, which belongs to root */
        int runtime, runtime_lock; /* its private part */
        int listen;                /* the socket in it on which successive engines accept file servers */
        char *private_path;
        bool made_runtime; /* runtimeDir was not there before */
        /*
         * O_PATH, of each program: a system extension that is taken off the host takes the paths with it, and what is open stays
         * (systemd-sysext(8)).
         */
        int programs[_LKG_CHILD_KIND_MAX];
};

struct lkg_engine_state {
        unsigned n_tries;           /* before the first publication */
        struct lkg_account account; /* the user that it was started with */
        char user[32];              /* the same as an argument */
        bool handed_over;           /* an engine of this user has published: the directories belong to it */
        const char *why_root; /* although another user is configured, as last reported; NULL = it is not */
        struct lkg_judging *judging; /* its note; NULL = none */
        struct lkg_work_watch work;
        bool took_too_long; /* and was killed for that */
};

/* The process that writes the fallback copies of a component. */
struct lkg_copies {
        struct lkg_supervisor *supervisor; /* borrowed */
        struct lkg_helper helper;
        char sha256[LKG_SHA256_HEX]; /* "" = withdraw */
};

/* What the engine's program finds out for the engine, outside of its sandbox. */
enum lkg_errand_kind {
        LKG_ERRAND_CREDENTIAL, /* from the exec plugin of the kubeconfig */
        LKG_ERRAND_CONTAINERS, /* from the container runtime */
        _LKG_ERRAND_MAX
};

/* Its process. */
struct lkg_errand {
        struct lkg_supervisor *supervisor; /* borrowed */
        struct lkg_helper helper;
        uint64_t started_ns;                /* CLOCK_BOOTTIME of the last one; 0 = never */
        char runtime[LKG_RUNTIME_PATH_MAX]; /* path of the runtime's socket */
};

/* What runs beside the loop, one process each. */
struct lkg_jobs {
        struct lkg_helper unmounting;
        struct lkg_helper reload;
        struct lkg_helper starts, facts; /* collect facts about the components, see facts-collect.h */
        struct lkg_errand errands[_LKG_ERRAND_MAX];
        struct lkg_copies copies[LKG_COMPONENTS_MAX]; /* of each component */
        bool copies_late;           /* everything else has ended, but a copy is still being written */
        struct lkg_helper dentries; /* makes the kernel drop names of the view */
};

/* Do the children do their work? */
struct lkg_watchdog {
        bool asked;                               /* a question to the engine is open */
        uint64_t ticket, asked_ns, asked_wall_ns; /* of the last one: CLOCK_BOOTTIME, wall time */
        bool told;                                /* its silence: to the log and the service manager */
        bool quiet;                               /* the timer is set to the long interval */
        bool woken; /* since the last check; the cause may show only after the next one */
        bool has_clock;
        timer_t clock; /* on the engine's CPU time */
        struct lkg_timer timer;
        struct lkg_progress engine, notifier, server;
        bool traffic; /* requests come: the file server is watched until there are none */
        sd_event_source *device, *mounts; /* the next request, the mount table */
};

/* --background: the process that waits for us, and where we log. */
struct lkg_background {
        int ready_fd; /* where the parent waits for our report; -EBADF in the foreground */
        int log_fd;   /* without a journal: our log file */
        off_t log_start;
        bool redirected; /* stdout and stderr go to the log */
};

struct lkg_supervisor {
        const struct lkg_life *life;
        const struct lkg_options *options;   /* borrowed */
        char *mount_point;                   /* absolute, without symlinks */
        char *config;                        /* absolute, or NULL = the default */
        char *programs[_LKG_CHILD_KIND_MAX]; /* absolute paths */
        struct lkg_settings *settings;
        struct lkg_source_directory source;
        struct lkg_directories dirs;
        int children_namespace; /* the mount namespace that we came from, where they stay; 0 = ours */
        struct lkg_connection connection;
        uint64_t stale_id; /* the mount of a dead view of ours at the mount point; 0 = there is none */

        enum lkg_phase phase;
        /* A file server without a supervisor may be running: do not remove files that it needs. */
        bool hands_off;
        bool adopted;   /* the view was already served when we started */
        bool announced; /* READY=1 was sent */
        bool replacing; /* a view of another build continues until ours replaces it */
        /* the connection was aborted, and the next one is not attached yet */
        bool remounting;
        struct {
                struct lkg_timer phase, remount;
                unsigned n_remounts; /* in a row that failed */
        } timers;
        struct {
                int code;
                unsigned minor; /* of the connection, as mount tables have it */
                struct lkg_error reason;
        } end;
        struct lkg_child children[_LKG_CHILD_KIND_MAX];
        struct lkg_engine_state engine;
        struct lkg_jobs jobs;
        struct lkg_consumer *consumer; /* NULL before the loop */
        struct lkg_watchdog watchdog;
        struct lkg_background background;
        sd_event *event;
};

/* preflight.c: part of the start */
/**
 * lkg_preflight() - all that can be wrong; then create and lock the directories. Sends no request, so a dead or hung view
 * does not matter. With `fake` the mount point is checked, and nothing is created.
 */
int lkg_preflight(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_preflight_occupied() - refuse a mount point in use; for a dead view set `stale_id` instead. At most 2 s. */
int lkg_preflight_occupied(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_preflight_cleanup() - remove the private runtime directory. Only if no process of ours is serving. */
void lkg_preflight_cleanup(struct lkg_supervisor *s);

/* connection.c */
/** lkg_shared_claim() - write supervisor, mount point and trusted processes into the shared memory. */
int lkg_shared_claim(const struct lkg_supervisor *s, struct lkg_shared *shared, struct lkg_error *err);
/** lkg_connection_open() - device, shared memory and a superblock that is mounted nowhere yet. */
int lkg_connection_open(struct lkg_supervisor *s, struct lkg_connection *ret, struct lkg_error *err);
/** lkg_connection_handshake() - answer FUSE_INIT and keep the answer in the shared memory. At most 10 s. */
int lkg_connection_handshake(struct lkg_connection *c, struct lkg_error *err);
void lkg_connection_init(struct lkg_connection *connection);
void lkg_connection_close(struct lkg_connection *connection);
/** lkg_connection_dead() - was it aborted, or unmounted by its last user? */
bool lkg_connection_dead(const struct lkg_connection *connection);
/** lkg_connection_lift_limit() - of background requests; the view must be attached. */
void lkg_connection_lift_limit(struct lkg_supervisor *s);

/* attach.c */
/**
 * lkg_source_open() - fill source.fd; waits for a file system that does not answer.
 * Return: 0; in LKG_PHASE_END we were stopped meanwhile, and there is none; an exit code.
 */
int lkg_source_open(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_source_uncover() - the same if a dead view covers the directory: detaches the view first. */
int lkg_source_uncover(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_listen_open() - the socket on which successive engines accept file servers. */
int lkg_listen_open(struct lkg_supervisor *s, struct lkg_error *err);
/**
 * lkg_private_connect() - to the socket @name of the private runtime directory. We hold the engine's: without an engine,
 * the next one accepts the connection. Return: the socket; -EAGAIN: too many wait to be accepted; -errno.
 */
int lkg_private_connect(const struct lkg_supervisor *s, const char *name);
/** lkg_attach() - make the view appear at the mount point, in place of a stale one; does nothing if attached. */
int lkg_attach(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_view_clone() - fill view_fd from @mount_fd or, if that is negative, from the mount point. */
int lkg_view_clone(struct lkg_supervisor *s, int mount_fd, struct lkg_error *err);
/** lkg_unmount() - in a helper. Return: 0 clean, 1 detached with users left, 2 not unmounted (logged). */
int lkg_unmount(void *userdata);
/** lkg_still_mounted() - is our mount in the mount table? Sends no request. */
bool lkg_still_mounted(struct lkg_supervisor *s);

/* How a child ended: CLD_* and its value, as from waitid(2); 0 = unknown. */
struct lkg_child_end {
        int code, status;
};

/* Callbacks from the parts to supervisor.c, which knows all of them. */
struct lkg_life {
        /* Before the view was served: end with @exit_code and leave nothing behind. */
        void (*fail)(struct lkg_supervisor *s, int exit_code, const char *fmt, ...) LKG_PRINTF(3, 4);
        /* The engine has published; the view is attached when the first copies are written. */
        void (*engine_ready)(struct lkg_supervisor *s);
        void (*copies_done)(struct lkg_supervisor *s);
        void (*server_ready)(struct lkg_supervisor *s);
        /* The device reports an error: mount again, or end, depending on the mount table. */
        void (*connection_lost)(struct lkg_supervisor *s);
        void (*stop)(struct lkg_supervisor *s, const char *why);
        /* In the last phase: ends the loop with the last child. */
        void (*child_gone)(struct lkg_supervisor *s);
};

#define LKG_CHILD_CHANNEL SIZE_MAX
#define LKG_CHILD_FDS_MAX 8u

/* One description per child. */
struct lkg_child_row {
        const char *name;    /* in our log */
        const char *program; /* in the lines that it prints */
        /* Options with a descriptor, from 3 on: the place in struct lkg_supervisor, or its end of the channel. */
        struct {
                const char *option;
                size_t fd;
        } fds[LKG_CHILD_FDS_MAX];
        /*
         * Just before a start: what else the child finds in @channel, our end, and in its arguments (@more).
         * Return: 0; 1: not now; -errno: later.
         */
        int (*prepare)(struct lkg_supervisor *s, struct lkg_child *child, int channel, const char **more);
        /* In the new process, before and after it enters its mount namespace; may be NULL. Return: 0 or an exit code. */
        int (*begin)(const struct lkg_supervisor *s);
        int (*setup)(const struct lkg_supervisor *s);
        void (*started)(struct lkg_supervisor *s); /* may be NULL */
        /* Does it do its work? @busy: there is reason to look at others. Return: whether to look again in a tick. */
        bool (*look)(struct lkg_supervisor *s, struct lkg_child *child, bool busy);
        /* Starts the next one, in most cases after a pause. */
        void (*died)(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end);
        /* Read one message of the channel. Return: false: there is none. */
        bool (*input)(struct lkg_supervisor *s, struct lkg_child *child);
};
/** lkg_child_hear() - LKG_MESSAGES_AT_ONCE messages: nobody may occupy the loop. Return: are there more? */
bool lkg_child_hear(struct lkg_child *child);
/** lkg_child_hear_out() - everything that its channel can hold. */
void lkg_child_hear_out(struct lkg_child *child);
/* In engine-child.c, server-child.c, children.c. */
extern const struct lkg_child_row lkg_engine_row, lkg_server_row, lkg_notifier_row;

/* children.c */
/** lkg_child_start() - start it now, if it is not running and the phase needs it; retries by itself. */
void lkg_child_start(struct lkg_supervisor *s, enum lkg_child_kind kind);
void lkg_child_start_later(struct lkg_child *child, uint64_t pause_ns);
/** lkg_child_end() - send @signal (0 = it was told otherwise), and SIGKILL after @limit_ns. */
void lkg_child_end(struct lkg_child *child, int signal, uint64_t limit_ns);
/** lkg_child_abandon() - SIGKILL, and continue without it after @grace_ns even if it is stuck in the kernel. */
void lkg_child_abandon(struct lkg_child *child, uint64_t grace_ns);
/** lkg_child_replace() - one that does not do its work: abandoned, and a successor as after any death. */
void lkg_child_replace(struct lkg_child *child, const char *why);
/** lkg_child_log() - a line that starts with the child's name; limited per child. */
void lkg_child_log(struct lkg_child *child, int priority, const char *fmt, ...) LKG_PRINTF(3, 4);
bool lkg_child_running(const struct lkg_child *child);
/** lkg_child_ready() - does it run, and has the engine published, does the file server serve? */
bool lkg_child_ready(const struct lkg_child *child);
/** lkg_child_early() - did it end, or does it, within a second of its start? */
bool lkg_child_early(const struct lkg_child *child);
/** lkg_child_forget() - the process, not how often it died. */
void lkg_child_forget(struct lkg_child *child);
/**
 * lkg_child_adopt() - watch the one that a predecessor started and recorded, if it runs.
 * @channel: to it, taken over; negative: there is none. Return: 0; -ESRCH; -errno.
 */
int lkg_child_adopt(struct lkg_child *child, int channel);

/** lkg_watchdog_wake() - the view is in use, or something happened: look at the children until everything is quiet. */
void lkg_watchdog_wake(struct lkg_supervisor *s);

/** lkg_engine_tell() - Return: 0; -errno; -ENOTCONN: no engine is running. */
int lkg_engine_tell(struct lkg_supervisor *s, const struct lkg_message *message);
/** lkg_engine_send() - a message without arguments (enum lkg_message_type), lost if no engine is running. */
void lkg_engine_send(struct lkg_supervisor *s, uint32_t type);

/* engine-setup.c */
/** lkg_may_change_user() - can a process of ours become another user who may read what root may? */
bool lkg_may_change_user(void);
/** lkg_asks_elsewhere() - does a server decide who may read in @directory, so that only root of this host is somebody there? */
bool lkg_asks_elsewhere(int directory);
/**
 * lkg_engine_owns() - may @owner own a directory of lkgfs, or a file in it? Owners are root, the engine's
 * user, or the previous one.
 * @fd:       of the directory, whose attribute names the previous user (only root can write that)
 * @settings: names the user; NULL: root only
 */
bool lkg_engine_owns(int fd, uid_t owner, const struct lkg_settings *settings);

/* The descriptors of an engine. */
enum {
        LKG_ENGINE_LISTEN_FD = 3,
        LKG_ENGINE_CHANNEL_FD,
        LKG_ENGINE_SOURCE_FD,
        LKG_ENGINE_RUNTIME_FD,
        LKG_ENGINE_STATE_FD
};
/** lkg_engine_begin(), lkg_engine_setup() - in the new process, one after the other. Return: 0 or an exit code. */
int lkg_engine_begin(const struct lkg_supervisor *s);
int lkg_engine_setup(const struct lkg_supervisor *s);
/**
 * lkg_hide_view() - in a new process: a mount namespace in which no path of a configuration leads through the view.
 * Return: 0 or an exit code; the reason was printed.
 */
int lkg_hide_view(const char *mount_point);

/* engine-child.c */
/**
 * lkg_runtime_mend() - put aside what others may have put into the private runtime directory in place of the files and directories that
 * engine and file server begin with. Return: true: something was not what it should be.
 */
bool lkg_runtime_mend(const struct lkg_supervisor *s);
/** lkg_engine_publish_anew() - what is published is spoilt: start another engine, which begins by publishing. */
void lkg_engine_publish_anew(struct lkg_supervisor *s);
/** lkg_engine_check_mounts() - it has the source with the mounts that were below when it started: have they changed? */
void lkg_engine_check_mounts(struct lkg_supervisor *s);
/** lkg_engine_check_user() - must it run as another user now? Return: true: another one is started. */
bool lkg_engine_check_user(struct lkg_supervisor *s);
int lkg_watchdog_init(struct lkg_supervisor *s); /* signals on the loop; 0 or -errno */
void lkg_watchdog_deinit(struct lkg_supervisor *s);

/* ours.c */
/** lkg_recorded_note() - in the new process: record it as our child. */
void lkg_recorded_note(const struct lkg_supervisor *s, enum lkg_child_kind kind);
/** lkg_recorded_hold() - the recorded child, if it runs. Return: a pidfd, from which on the pid cannot be reused; -ESRCH. */
int lkg_recorded_hold(const struct lkg_supervisor *s, enum lkg_child_kind kind, int *ret_pid);
/** lkg_recorded_end() - SIGTERM, and SIGKILL after a second. Return: 1 if it ran, else 0. */
int lkg_recorded_end(const struct lkg_supervisor *s, enum lkg_child_kind kind);
/** lkg_end_unrecorded() - the same for process @pid, which holds something of ours, if it runs a program of ours. Return: whether it did. */
bool lkg_end_unrecorded(int pid);
/** lkg_recorded_forget() - no child is running any more. */
void lkg_recorded_forget(const struct lkg_supervisor *s);

/* adopt.c */
/** lkg_adopt() - part of the start: take over from a dead supervisor; sets `adopted` if a view is served. */
int lkg_adopt(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_build_same() - does process @pid run what the file @path has now? Return: 1; 0; -errno: unknown. */
int lkg_build_same(int pid, const char *path);
/**
 * lkg_adopt_receive() - the descriptors of a file server: FDS KEEP* END (lkg/messages.h).
 * @ret: descriptors or -EBADF; received ones replace them, also before an error
 *
 * Return: 0: all four were received; -ETIMEDOUT, -ECONNRESET, -EBADMSG; another -errno.
 */
int lkg_adopt_receive(struct lkg_supervisor *s, int channel, int ret[static LKG_HANDOVER_FDS_MAX]);

/* server-child.c */
/** lkg_kept_add() - keep @fd, which is taken over, for the deleted but open file @node; without room it is closed. */
void lkg_kept_add(struct lkg_supervisor *s, uint64_t node, int fd);
/** lkg_kept_drop() - close the descriptor of the deleted but open file @node; 0 = of all of them. */
void lkg_kept_drop(struct lkg_connection *connection, uint64_t node);
/** lkg_server_let_serve() - there is a publication: the file server that waits for it goes on, or one is started. */
void lkg_server_let_serve(struct lkg_supervisor *s);
/** lkg_heartbeat_arm() - wait for the next request, then watch until there are none. */
void lkg_heartbeat_arm(struct lkg_supervisor *s);
void lkg_heartbeat_disarm(struct lkg_supervisor *s);

/* manager.c: sd_notify(3); silent without a service manager */
void lkg_notify_ready(struct lkg_supervisor *s);
void lkg_notify_status(const char *fmt, ...) LKG_PRINTF(1, 2);
void lkg_notify_reloading(void);
/** lkg_notify_store() - descriptors in the store, by these names. */
void lkg_notify_store(struct lkg_supervisor *s);
extern const char *const lkg_kept_names[LKG_HANDOVER_FDS_MAX];
void lkg_notify_unstore(void);

/* configuration.c */
/** lkg_settings_read() - fill `settings`. Return: 0; an exit code, that of the process that read them among others. */
int lkg_settings_read(struct lkg_supervisor *s, struct lkg_error *err);
void lkg_reload(struct lkg_supervisor *s);

/* supervisor.c */
/**
 * lkg_supervisor_run() - the whole life of a view.
 * @ready_fd: from lkg_background_enter(), taken over; -EBADF in the foreground
 *
 * Return: exit code; the reason for a failure was printed.
 */
int lkg_supervisor_run(const struct lkg_options *options, int ready_fd);
extern const struct lkg_life lkg_life; /* the same for every supervisor */

/* background.c */
/** lkg_background_enter() - Return: 0 in the daemon; 1 in the caller (end with @ret_code); an exit code. */
int lkg_background_enter(int *ret_ready_fd, int *ret_code, struct lkg_error *err);
/** lkg_background_redirect() - send stdout and stderr to the journal or the log file. */
int lkg_background_redirect(struct lkg_supervisor *s, struct lkg_error *err);
/** lkg_background_report() - the first call ends the caller's process with @code, and prints @text unless that is 0. */
void lkg_background_report(struct lkg_supervisor *s, int code, const char *text);
void lkg_background_cleanup(struct lkg_supervisor *s);

/* errands.c: what the engine has us do, because it may not */
#define LKG_EXEC_FILE "credential"
/**
 * lkg_errand_request() - ask. The answer is a message of the same type as @message, now or later.
 * @message: of the engine: for LKG_ERRAND_CONTAINERS it names the component
 */
void lkg_errand_request(struct lkg_supervisor *s, enum lkg_errand_kind kind,
                        const struct lkg_message *message);
/** lkg_errands_cancel() - end those that run, within 1 s, without a message. Files that were not fetched are removed. */
void lkg_errands_cancel(struct lkg_supervisor *s);
/**
 * lkg_errand_answer() - turn the output of @helper into the file and a message to the engine. It is the answer or, with an
 * exit @status other than 0, one line why there is none; -1 = killed.
 */
void lkg_errand_answer(enum lkg_errand_kind kind, int runtime_fd, struct lkg_helper *helper, int status,
                       struct lkg_message *ret);
/** lkg_fallback_request() - write fallback copies; of several requests for one component the last one counts. */
void lkg_fallback_request(struct lkg_supervisor *s, const struct lkg_message *message);
/** lkg_fallback_busy() - is a copy being written? At the end copies_done() of struct lkg_life is called. */
bool lkg_fallback_busy(const struct lkg_supervisor *s);
void lkg_fallback_cancel(struct lkg_supervisor *s);
