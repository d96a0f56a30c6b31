/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: started in its own mount namespace in which the view does not exist, so that no path of a
 * configuration can lead through our own mount. It sees the rest of the host, including later mounts; mounts
 * from before its start are read-only.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <lkg/messages.h>
#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/publication.h>

#include "consumer.h"
#include "plugin.h"
#include "engine-user.h"
#include "facts-collectors.h"
#include "fallback-copies.h"
#include "supervisor.h"

/* One more than the number of engines that may be killed from outside before their document is refused (core/engine/poison.c). */
#define TRIES_AT_START 4u
#define END_NS         (2 * LKG_NSEC_PER_SEC)
#define EARLY_NS       (1 * LKG_NSEC_PER_SEC)

/*
 * Duplicates descriptors instead of looking up names: a lookup checks permissions, which hangs on a dead
 * network file system. The child opens its own descriptors (give_directories()), so no directory position is
 * shared.
 */
static void give_fds(const struct lkg_supervisor *s, int channel, int fds[static LKG_SPAWN_FDS_MAX])
{
        fds[0] = s->listen_fd;
        fds[LKG_ENGINE_CHANNEL_FD - LKG_ENGINE_LISTEN_FD] = channel;
        fds[LKG_ENGINE_SOURCE_FD - LKG_ENGINE_LISTEN_FD] = s->source_fd;
        fds[LKG_ENGINE_RUNTIME_FD - LKG_ENGINE_LISTEN_FD] = s->runtime_fd;
        fds[LKG_ENGINE_STATE_FD - LKG_ENGINE_LISTEN_FD] = s->state_fd;
}

static bool same_account(const struct lkg_account *a, const struct lkg_account *b)
{
        return a->uid == b->uid && a->gid == b->gid;
}

/* The user of the next engine; if that is root, the reason is logged once. */
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

static struct lkg_engine_setup set_up(struct lkg_supervisor *s)
{
        const struct lkg_account account = choose_account(s);

        s->engine_handed_over = s->engine_handed_over && same_account(&account, &s->engine_account);
        s->engine_account = account;
        return (struct lkg_engine_setup){
                s,        s->mount_point, s->source_path,        s->connection.shared,
                getpid(), account,        !s->engine_handed_over
        };
}

/*
 * An empty file in place of a publication says that there was one: the next engine takes a higher number. A directory of blobs belongs to the
 * engine.
 */
static void make_again(const struct lkg_supervisor *s, const char *name, bool directory)
{
        if (!directory)
                lkg_close(openat(s->runtime_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 0600));
        else if (mkdirat(s->runtime_fd, name, 0700) == 0 && strcmp(name, LKG_PUBLICATION_BLOBS) == 0 &&
                 fchownat(s->runtime_fd, name, s->engine_account.uid, s->engine_account.gid,
                          AT_SYMLINK_NOFOLLOW) < 0)
                lkg_log_warning("%s: %s", name, strerror(errno));
}

bool lkg_runtime_mend(const struct lkg_supervisor *s)
{
        static const struct {
                const char *name;
                mode_t type;
        } parts[] = { { LKG_PUBLICATION_CURRENT, S_IFREG },
                      { LKG_PUBLICATION_BLOBS, S_IFDIR },
                      { LKG_PUBLICATION_PINNED, S_IFDIR },
                      { LKG_CLAIMS_NAME, S_IFREG },
                      { LKG_JUDGING_NAME, S_IFREG } };
        bool any = false;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++) {
                struct stat st;

                if (fstatat(s->runtime_fd, parts[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                    (st.st_mode & S_IFMT) == parts[i].type)
                        continue;
                lkg_log_warning("%s in the private runtime directory is of another type: put aside",
                                parts[i].name);
                if (lkg_put_aside(s->runtime_fd, parts[i].name) == 0)
                        make_again(s, parts[i].name, parts[i].type == S_IFDIR);
                any = true;
        }
        return any;
}

static int start(struct lkg_supervisor *s, struct lkg_child *child)
{
        const struct lkg_engine_setup setup = set_up(s);
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

                                   .before = lkg_engine_begin,
                                   .setup = lkg_engine_prepare,
                                   .userdata = &setup,
                                   .namespace_fd = s->children_namespace };
        LKG_CLEANUP(lkg_closep) int ours = -EBADF;
        LKG_CLEANUP(lkg_closep) int theirs = -EBADF;
        int r = lkg_channel_pair(&ours, &theirs);

        if (r < 0)
                return r;
        give_fds(s, theirs, spawn.fds);
        (void)snprintf(user, sizeof(user), "%u:%u", (unsigned)setup.account.uid,
                       (unsigned)setup.account.gid);
        (void)lkg_runtime_mend(s);
        lkg_engine_note_open(s);
        /* on failure the engine or the file server reports that there are none */
        (void)lkg_claims_make(s->runtime_fd);
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

void lkg_engine_publish_anew(struct lkg_supervisor *s)
{
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];

        if (!lkg_child_running(child) || child->ending)
                return;
        lkg_child_log(child, LOG_NOTICE,
                      "is started again: the file server found no publication that it could believe");
        start_another(s);
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
                s->life->fail(s, code, "%s", message->text[0] ? message->text : "the engine gave up.");
        else
                lkg_child_log(child, LOG_ERR, "gave up (%d): %s; the view stays as it is", code,
                              message->text);
}

/* Any text is logged, like standard error, as a line of the engine. */
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
        else if (message->type != LKG_MSG_FATAL && message->type != LKG_MSG_LOG) /* of any thread */
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
                if (s->consumer) /* else we are about to end */
                        lkg_consumer_request(s->consumer, message->component, message->number,
                                             message->result == 1);
        } else if (message->type == LKG_MSG_PUBLISHED && !child->ready) {
                child->ready = true;
                s->engine_handed_over = true;
                child->restart.n_early = 0;
                s->life->engine_ready(s);
        }
}

static bool input(struct lkg_supervisor *s, struct lkg_child *child)
{
        struct lkg_message message;
        int r = lkg_message_recv(child->channel, &message);

        if (r > 0)
                heard(s, child, &message);
        return r > 0 || r == -EBADMSG; /* an unknown message can only come from the engine */
}

static void died(struct lkg_supervisor *s, struct lkg_child *child, const struct lkg_child_end *end)
{
        const struct lkg_restart_pace *policy = end->fatal ? &lkg_restart_fatal : &lkg_restart_engine;
        bool early = end->fatal || (!end->ready && !end->adopted && end->lived_ns < EARLY_NS);

        lkg_engine_note_end(s, end);
        lkg_watchdog_gone(s);
        if (s->phase == LKG_PHASE_ENGINE && ++s->n_engine_tries >= TRIES_AT_START) {
                s->life->fail(s, EX_SOFTWARE,
                              "the engine ended %u times before its first publication, last %s %d.",
                              TRIES_AT_START, end->code == CLD_EXITED ? "with code" : "by signal",
                              end->status);
                return;
        }
        lkg_child_start_later(child, lkg_restart_pause_ns(&child->restart, policy, early));
}

const struct lkg_child_ops lkg_engine_ops = { .start = start, .died = died, .input = input };
