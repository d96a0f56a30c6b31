/* SPDX-License-Identifier: Apache-2.0 */
/* What our processes say to each other: settings, datagrams, facts, descriptors, and who may still carry out a command. */
#pragma once

#include <stdatomic.h>

#include <lkg/base.h>
#include <lkg/limits.h>
#include <lkg/text.h>

/*
 * What the supervisor needs from the configuration, as the process prints it that reads it for the supervisor: `key=value` lines,
 * so that the supervisor parses no YAML. In values, bytes below 0x20, 0x7f and `%` are written as %XX.
 *
 *     state_dir= runtime_dir= source_dir= virtual_dir= engine_timeout_ms=
 *     component=<name>, then, for the component named last:
 *         component_file=<view name> component_uid= component_gid= component_mode=<decimal> component_pods=0|1  (of the copies,
 *         <lkg/publication.h>)
 *         component_unit=<unit> component_exe=<path> (repeated) component_restart=never|unit|hook
 *         component_restart_unit=<unit> component_restart_argv=<word> (repeated)
 *         component_restart_min_interval_ms= component_restart_max_per_hour= component_runtime_endpoint=
 *     foreign_writes=<enum lkg_foreign_writes> restart_jitter_ms= node_name= (empty: the machine id is used
 *     instead) engine_user=<as it is configured> engine_uid= engine_gid= (0: root) engine_user_missing=0|1
 *
 * A setting that is missing keeps its default; an unknown key is ignored (an older supervisor, a newer engine).
 */

enum lkg_settings_restart {
        LKG_SETTINGS_RESTART_NEVER,
        LKG_SETTINGS_RESTART_UNIT,
        LKG_SETTINGS_RESTART_HOOK,
        _LKG_SETTINGS_RESTART_MAX
};

/* What callers in another mount namespace may do, besides reading. */
enum lkg_foreign_writes {
        LKG_FOREIGN_DENY,        /* nothing: EROFS, and EPERM in control/ and bad/ */
        LKG_FOREIGN_PASSTHROUGH, /* change the files of the source directory */
        LKG_FOREIGN_ALL,         /* also send commands */
        _LKG_FOREIGN_MAX
};

struct lkg_settings_component {
        char *name, *unit; /* unit "" = none */
        char *file;        /* its name in the view */
        uint32_t uid, gid, mode;
        uint32_t is_pods; /* file is a directory of static pods */
        char **exes;      /* absolute */
        size_t n_exes;
        enum lkg_settings_restart restart;
        char *restart_unit;  /* the unit to restart, "" = none */
        char **restart_argv; /* the first one is absolute */
        size_t n_restart_argv;
        uint32_t restart_min_interval_ms, restart_max_per_hour; /* max at least 1 */
        char *runtime_endpoint; /* auto, LKG_RUNTIME_SCHEME and the path of its socket; "" = it is not asked */
};

struct lkg_settings {
        char *state_dir, *runtime_dir;
        char *source_dir; /* "" = the covered directory */
        char *virtual_dir;
        struct lkg_settings_component *components;
        size_t n_components;
        uint32_t engine_timeout_ms;
        uint32_t foreign_writes;    /* enum lkg_foreign_writes */
        uint32_t restart_jitter_ms; /* of a restart after a remote change; 0 = none */
        char *node_name;
        char *engine_user; /* for messages; "" = root */
        uint32_t engine_uid, engine_gid;
        uint32_t engine_user_missing; /* there is no such user: engine_uid is 0 */
};

/** lkg_settings_restart_word() - `never`, `unit`, `hook`. */
const char *lkg_settings_restart_word(enum lkg_settings_restart restart);

int lkg_settings_parse(const char *data, size_t size, struct lkg_settings **ret, struct lkg_error *err);
struct lkg_settings *lkg_settings_free(struct lkg_settings *settings);

/* ---- control ---- */

/*
 * The messages between our processes: one SOCK_SEQPACKET datagram each, host byte order. Both ends are of the same build; the
 * version in the header is checked, and lkgfsd restarts an end of another build. Rules: docs/specification.md 6.2.
 *
 * file server -> engine over the engine socket (the supervisor holds the listening descriptor, so a connection made during an
 * engine restart waits in the backlog):
 *
 *     CHANGED  a layer source changed through the mount; `text` is the source path      -> DONE
 *     COMMAND  one write to a control file: uid, pid, path and text                     -> DONE
 *              in bad/<component>: `bad` = a write to a name, text = name, NUL, what was written;
 *              `forgive` = unlink of a name, text = name
 *     STARTED  a process of the component (index) opened its file: pid, start time, executable;
 *              `number` = generation that it opened                                     -> DONE
 *     RENDER   somebody looks up the path `text`, which the engine renders; with a slash at its end: the names in that
 *              directory                                                                -> DONE
 *     LOADED   publication `number` is being served (no answer)
 *     ALIVE    are you there?                                                          -> ALIVE, same ticket
 *
 * engine -> file server:
 *
 *     DONE       ticket, result 0 or -errno; everything that the request caused is contained in publication `number`.
 *                For STARTED: -ESTALE = the opener must look the name up again; anything else = let it
 *                continue.
 *                For RENDER: text as in lkg_rendered_format(); -ENOENT
 *     PUBLISHED  publication `number` is current (sent for every publication; DONE for it comes after)
 *
 * engine -> supervisor over the supervisor socket:
 *
 *     PUBLISHED as above; the first one means "ready" FATAL result is a sysexits code, text is the reason:
 *     do not restart me STARTED a process of the component (index) began or ended: its executable and its
 *     unit may have changed CREDENTIAL run the exec plugin of the kubeconfig that our configuration names;
 *     the engine may not execute programs RESTART restart the component (index): the meaning of its
 *     configuration has changed. `number` = generation that
 *                it is to read, 0 = a planned restart is no longer needed; result 1 = because of a remote change (with
 *                jitter, so that a fleet does not restart at once), 0 = because of a local change or an operator
 *
 *     CONTAINERS ask the container runtime of a component about static pods: text = its name                 -> CONTAINERS
 *
 *     FALLBACK   the fallback copies of a component are due: text = its name, a space, SHA-256 of the document (a blob of the
 *                current publication); no digest: remove the copy under the view's name  -> FALLBACK, text = name, result
 *
 *     LOG        a line for the journal, which the engine cannot reach: result = priority, number = generation, command =
 *                component, exe = layer
 *
 * STARTED is sent once for a process whose open waits for the answer, and again, without waiting, for every newer
 * generation that this process opens later.
 *
 *     ALIVE      the answer to a question of the same ticket
 *
 * supervisor -> engine: ALIVE (are you there?), RELOAD (SIGHUP), STOP (write the durable state, exit 0),
 * CREDENTIAL, CONTAINERS (the answer is the file `credential`, or LKG_CONTAINERS_FILE, of the runtime
 * directory, result 0; or result -errno and the reason as text). supervisor -> file server: STOP. The sender of a request chooses its
 * ticket, unique per boot. A repeated ticket (the file server was killed and its successor asks again) gets
 * the first result and is not carried out twice.
 */

#define LKG_MESSAGE_VERSION 3

enum lkg_message_type {
        LKG_MSG_CHANGED = 1,
        LKG_MSG_COMMAND,
        LKG_MSG_STARTED,
        LKG_MSG_LOADED,
        LKG_MSG_DONE,
        LKG_MSG_PUBLISHED,
        LKG_MSG_FATAL,
        LKG_MSG_RELOAD,
        LKG_MSG_STOP,
        LKG_MSG_RESTART,
        LKG_MSG_CREDENTIAL,
        LKG_MSG_ALIVE,
        LKG_MSG_FALLBACK,
        LKG_MSG_LOG,
        LKG_MSG_RENDER,
        LKG_MSG_CONTAINERS,
        _LKG_MSG_MAX
};

struct lkg_message {
        uint32_t version; /* LKG_MESSAGE_VERSION */
        uint32_t type;
        uint64_t ticket;
        uint64_t number;    /* publication; STARTED, RESTART: generation */
        int32_t result;     /* 0 or -errno; FATAL: sysexits; RESTART: 1 = remote */
        uint32_t component; /* index in the manifest */
        uint32_t uid, gid;
        int32_t pid;         /* thread group id of the caller; 0 = unknown (another pid namespace) */
        uint32_t login_uid;  /* /proc/<pid>/loginuid, UINT32_MAX = unset */
        uint64_t start_time; /* field 22 of /proc/<pid>/stat, for STARTED */
        uint32_t text_size;  /* bytes used in text */
        char command[32];    /* COMMAND: name of the control file */
        char exe[256];       /* COMMAND, STARTED: executable of the caller, truncated */
        /* COMMAND: the written text; CHANGED: source path; NUL-terminated */
        char text[LKG_MESSAGE_TEXT_MAX + 3];
};

/** lkg_message_init() - zero it and set version and type. */
void lkg_message_init(struct lkg_message *message, enum lkg_message_type type);
/**
 * lkg_message_is_sound() - does it have this version and a known type, and is each text in it terminated?
 */
bool lkg_message_is_sound(const struct lkg_message *message);
/**
 * lkg_message_send() - never blocks. The unused end of the text is not sent.
 * Return: 0; -EAGAIN: the peer's queue is full; another -errno.
 */
int lkg_message_send(int fd, const struct lkg_message *message);
/**
 * lkg_message_send_log() - send a line of the log to lkgfsd, which writes it to the journal with these fields.
 * Return: 0; -EMSGSIZE; as lkg_message_send(): the caller writes it elsewhere.
 */
int lkg_message_send_log(int fd, int priority, const struct lkg_log_fields *fields, const char *text);
/**
 * lkg_message_recv() - receive one message, never blocks.
 * Return: 1; 0 at end of file; -EAGAIN; -EBADMSG: not one of our messages; another -errno.
 */
int lkg_message_recv(int fd, struct lkg_message *ret);

/* ---- fact ---- */

/*
 * Facts: what lkgfsd finds out about a component because the engine may not query it itself (programs, the
 * service manager), as files below facts/<component>/ of the private runtime directory. Each is replaced
 * atomically.
 * Rules: docs/specification.md 6.6.
 *
 * This is version 1 of the layout. Another version must use a directory with another name, so that neither
 * side reads what it does not know. A fact that cannot be decoded counts as unknown.
 */

#define LKG_FACTS_DIR    "facts"
#define LKG_PRIVATE_DIR  "private" /* of the runtime directory: for our own processes only */

#define LKG_FACT_VERSION "version" /* lkgfsd: struct lkg_fact_version */
/* lkgfsd: words of the unit's ExecStart after the first, each ended by a NUL */
#define LKG_FACT_EXEC_START "exec-start"
#define LKG_FACT_START      "start"        /* lkgfsd: struct lkg_fact_start */
#define LKG_FACT_RESTARTED  "restarted"    /* lkgfsd: struct lkg_fact_restarted */
#define LKG_FACT_RESTARTS   "restarts"     /* lkgfsd: lines for people */
#define LKG_FACT_PLAN       "restart-plan" /* lkgfsd, for itself; the engine shows lkg_fact_plan_due() */
#define LKG_FACT_END        "end"          /* lkgfsd, for itself */
#define LKG_FACT_PROCESS    "process"      /* the engine, for its successor */

#define LKG_FACT_BYTES_MAX  (256u << 10)

/* In the private directory: the answer to LKG_MSG_CONTAINERS, see probes.h. */
#define LKG_CONTAINERS_FILE      "containers"
#define LKG_CONTAINERS_BYTES_MAX (1u << 20)

/* The output of `EXE --version`. */
struct lkg_fact_version {
        const char *printed; /* one line; "" = nothing usable */
        const char *program; /* one line: the file that was run, for lkgfsd itself */
};

void lkg_fact_version_format(const struct lkg_fact_version *version, struct lkg_buf *buf);
/** lkg_fact_version_parse() - @text is split into lines, which @ret borrows; missing ones are "". */
void lkg_fact_version_parse(char *text, struct lkg_fact_version *ret);

/*
 * Why the unit's main process was started: by Restart= of the unit after a failure, or after a clean exit,
 * or manually.
 */
enum lkg_start_why { LKG_START_AUTOMATIC, LKG_START_CLEAN, LKG_START_MANUAL, _LKG_START_MAX };

const char *lkg_start_why_word(enum lkg_start_why why);
/** lkg_start_why_parse() - Return: is @word valid? */
bool lkg_start_why_parse(const char *word, enum lkg_start_why *ret);

struct lkg_fact_start {
        int pid; /* above 0 */
        uint64_t start_time;
        enum lkg_start_why why;
};

void lkg_fact_start_format(const struct lkg_fact_start *start, struct lkg_buf *buf);
bool lkg_fact_start_parse(const char *text, struct lkg_fact_start *ret);

/* The last restart that lkgfsd requested: the following start does not count against a configuration. */
struct lkg_fact_restarted {
        uint64_t asked_ns; /* CLOCK_BOOTTIME */
        char boot[LKG_BOOT_ID_MAX];
        uint64_t generation;
        char result[16]; /* its first word: asked, done, failed:; truncated */
};

/** lkg_fact_restarted_format() - @result: the whole text, instead of the first word in @restarted */
void lkg_fact_restarted_format(const struct lkg_fact_restarted *restarted, const char *result,
                               struct lkg_buf *buf);
bool lkg_fact_restarted_parse(const char *text, struct lkg_fact_restarted *ret);

/**
 * lkg_fact_plan_due() - when the planned restart is due.
 * Return: CLOCK_BOOTTIME; 0 = none is planned, or @text is not a plan.
 */
uint64_t lkg_fact_plan_due(const char *text);

/**
 * lkg_fact_read() - read the file @name in the directory of a component; no symlink, no FIFO, at most
 * LKG_FACT_BYTES_MAX bytes.
 * @ret_size: may be NULL; the text ends with a NUL
 * Return: 0, caller frees; -ENOENT; another -errno.
 */
int lkg_fact_read(int dirfd, const char *name, char **ret, size_t *ret_size);
/** lkg_fact_write() - replace the file @name; unchanged content is not written and wakes no watcher. Return: 0; -EFBIG; -errno. */
int lkg_fact_write(int dirfd, const char *name, const struct lkg_buf *buf);

/* ---- handover ---- */

/*
 * Descriptors between the supervisor and the file server: SOCK_SEQPACKET datagrams with SCM_RIGHTS.
 *
 * A file server gets one end of a socket pair from the supervisor that started it (`--supervisor-fd`). It
 * also listens on `fs.sock` in the private runtime directory (0600, peers are verified by
 * lkg_peer_of_host()): a supervisor that finds a running file server there connects, gets everything that
 * the dead one held, and that connection is the supervisor channel from then on.
 *
 *     supervisor -> file server, when it starts one:  KEEP* LINK? END    (descriptors of unlinked, still open files)
 *     file server -> supervisor that connected:       FDS KEEP* END
 *     file server -> supervisor:                      READY (serving), KEEP{node, fd}, DROP{node}, FORGET (names that nobody uses),
 *                                                     LINK (it has no connection to the engine)
 *     supervisor -> file server:                      LINK{fd}, STOP
 *
 * FDS carries, in this order: device, shared memory, source directory, listening socket of the engine. LINK
 * carries a socket that is connected to that one: the file server cannot create sockets itself, so that it
 * cannot connect to any other process.
 */

#define LKG_HANDOVER_SOCKET  "fs.sock"
#define LKG_ENGINE_SOCKET    "engine.sock"
#define LKG_HANDOVER_FDS_MAX 4

enum lkg_handover_type {
        LKG_HANDOVER_FDS = 1,
        LKG_HANDOVER_KEEP,
        LKG_HANDOVER_DROP,
        LKG_HANDOVER_END,
        LKG_HANDOVER_READY,
        LKG_HANDOVER_STOP,
        LKG_HANDOVER_FORGET,
        LKG_HANDOVER_LINK,
        _LKG_HANDOVER_MAX
};

struct lkg_handover {
        uint32_t version; /* LKG_MESSAGE_VERSION */
        uint32_t type;
        uint64_t node; /* KEEP, DROP */
        uint32_t n_fds;
        uint32_t reserved;
};

/**
 * lkg_handover_send() - send one message with @n_fds descriptors; waits until the peer has room.
 * Return: 0 or -errno.
 */
int lkg_handover_send(int fd, enum lkg_handover_type type, uint64_t node, const int *fds, size_t n_fds);
/**
 * lkg_handover_recv() - receive one message; the descriptors in @fds (close-on-exec, -EBADF for none) belong
 * to the caller. @flags: see recvmsg(2); MSG_DONTWAIT does not block.
 * Return: 1; 0 at end of file; -EAGAIN; -EBADMSG: not our message; another -errno.
 */
int lkg_handover_recv(int fd, int flags, struct lkg_handover *ret, int fds[static LKG_HANDOVER_FDS_MAX]);

/* ---- claims ---- */

/*
 * Which commands may still be carried out, so that "refused" is final. Rules: docs/specification.md 6.3.
 *
 * A write to a control file waits at most engineTimeout for the engine. After that, its message may still be
 * in the queue of an engine that hangs, is stopped, or is about to be replaced. It must not be carried out
 * when that queue is finally read, because the caller was told that it failed and may have done something
 * else. So a command is *offered* by the file server, *taken* by the engine when it starts, and can be
 * *withdrawn* only before that; each is one atomic operation on one word.
 *
 * The words are in a small file in the private runtime directory, mapped by the current file server and
 * engine; it outlives both. Tickets are unique per boot, so a word identifies one command.
 */

#define LKG_CLAIMS_NAME  "claims" /* in the runtime directory */
#define LKG_CLAIMS_MAGIC UINT64_C(0x6c6b672d636c6d01)
#define LKG_CLAIMS       1024 /* more than commands that can wait at once: a free word is found quickly */

struct lkg_claims {
        uint64_t magic;
        _Atomic uint64_t words[LKG_CLAIMS]; /* ticket << 2 | state, by ticket % LKG_CLAIMS; 0 = free */
};

/**
 * lkg_claims_make() - lkgfsd, before an engine starts: create the file, which is handed over to the engine's
 * user with the directory. If a file server created it meanwhile, it would belong to root.
 * Return: 0 or -errno.
 */
int lkg_claims_make(int runtime_fd);
/**
 * lkg_claims_open() - map the file in @runtime_fd, and create it if necessary, with its space allocated. 0
 * or -errno.
 */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err);
struct lkg_claims *lkg_claims_close(struct lkg_claims *claims);

/**
 * lkg_claim_offer() - file server: the command may be carried out.
 * Return: false: another command uses its word.
 */
bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket);
/**
 * lkg_claim_take() - engine: the command is being carried out now.
 * Return: false: it was withdrawn, or never offered.
 *
 * Also true for a command that an earlier engine had taken: that engine died before it finished, and the
 * caller was not told of a failure.
 */
bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket);
enum lkg_claim_fate {
        LKG_CLAIM_NEVER,   /* it was not carried out, and will not be */
        LKG_CLAIM_UNKNOWN, /* an engine that has died may have carried it out; no other engine will */
        LKG_CLAIM_TAKEN,   /* it is being carried out */
};
/**
 * lkg_claim_withdraw() - file server: the command must no longer be carried out, unless it has been taken.
 */
enum lkg_claim_fate lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_return() - file server: the engine that took it has died; the next one may take it. */
void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claim_end() - file server: the command has been answered, with any result. */
void lkg_claim_end(struct lkg_claims *claims, uint64_t ticket);
/** lkg_claims_keep() - file server, at its start: clear every word whose command no caller waits for. */
void lkg_claims_keep(struct lkg_claims *claims, bool (*waits)(uint64_t ticket));
