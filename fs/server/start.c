/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A component starts: a process that opens the component's file is recognised by executable, unit or control
 * group (never by name or command line, which any process can set). The engine is told before the reply, so
 * that it can first switch to another generation and make the opener look up the file again; it is told
 * again whenever that process opens a newer generation. Rules: docs/specification.md 4.9.
 *
 * Examining a process costs as much as the whole open, so results are cached here for each thread; the state that must survive
 * (which processes the engine was asked about) is in the shared memory: opener.c.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>

#include "file-server.h"

#define SEEN_SLOTS 512u
/* A thread id is not reused within this time: all other ids would have to be used up first. */
#define TRUST_NS (100 * LKG_NSEC_PER_MSEC)
/*
 * Another process may become the component by execve(), which takes longer than this, or by moving to the
 * unit.
 */
#define STRANGER_TRUST_NS (LKG_NSEC_PER_MSEC / 5)

static bool is_match_rule(const struct lkg_rule *rule, unsigned component)
{
        return rule->component == component &&
               (rule->type == LKG_RULE_EXE || rule->type == LKG_RULE_UNIT || rule->type == LKG_RULE_CGROUP);
}

/*
 * Does it run the file that has this path in our namespace? A path in its own root directory proves nothing.
 * The kernel's cached attributes suffice: the file system may not answer.
 */
static bool runs_program(int tid, const char *path)
{
        struct lkg_program_file ours;
        struct statx theirs;
        char exe[64];

        (void)snprintf(exe, sizeof(exe), "/proc/%d/exe", tid);
        if (statx(AT_FDCWD, exe, AT_STATX_DONT_SYNC, STATX_INO, &theirs) < 0)
                return false;
        ours = lkg_program_file(path);
        return ours.ino != 0 && ours.ino == theirs.stx_ino &&
               ours.dev == makedev(theirs.stx_dev_major, theirs.stx_dev_minor);
}

static bool matches(const struct lkg_rule *rule, int tid, const char *cgroups)
{
        if (rule->type == LKG_RULE_EXE)
                return runs_program(tid, rule->text);
        return rule->type == LKG_RULE_UNIT ? lkg_unit_holds(cgroups, rule->text)
                                           : lkg_cgroup_matches(cgroups, rule->text);
}

/*
 * The host's root is recognised by executable or unit; a process in a container only by a configured control
 * group, because its image controls everything else.
 */
static bool is_component(const struct lkg_publication *publication, unsigned component,
                         const struct fuse_ctx *ctx)
{
        bool host = lkg_caller_is_host_root(ctx), root = host || lkg_caller_is_root(ctx);
        char cgroups[8192];

        if (!root || lkg_caller_read_proc(ctx->pid, "cgroup", cgroups, sizeof(cgroups)) < 0)
                return false;
        for (size_t i = 0; i < publication->n_rules; i++) {
                const struct lkg_rule *rule = &publication->rules[i];

                if (is_match_rule(rule, component) && (host || rule->type == LKG_RULE_CGROUP) &&
                    matches(rule, ctx->pid, cgroups))
                        return true;
        }
        return false;
}

static bool watched(const struct lkg_publication *publication, unsigned component)
{
        for (size_t i = 0; i < publication->n_rules; i++)
                if (is_match_rule(&publication->rules[i], component))
                        return true;
        return false;
}

/* Threads that were examined: a direct-mapped cache, where a collision only costs another look. */
static struct seen {
        int tid;
        unsigned component;
        bool recognised;
        uint64_t generation; /* the last one that the engine knows it has opened */
        uint64_t looked_ns;
} seen[SEEN_SLOTS];
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER; /* protects: seen. A leaf. */

static struct seen *seen_slot(int tid, unsigned component)
{
        return &seen[((unsigned)tid * 31u + component) % SEEN_SLOTS];
}

/* Is there nothing to do for this open, because it is another process, or the engine knows it? */
static bool settled(int tid, const struct lkg_node *node)
{
        const struct seen *s = seen_slot(tid, node->component);
        uint64_t now_ns = atomic_load_explicit(&task.slot->since_ns, memory_order_relaxed);
        bool yes;
        LKG_LOCKED(&seen_lock);

        yes = s->tid == tid && s->component == node->component &&
              now_ns - s->looked_ns < (s->recognised ? TRUST_NS : STRANGER_TRUST_NS) &&
              (!s->recognised || s->generation >= node->generation);
        return yes;
}

static void remember(int tid, unsigned component, bool recognised, uint64_t generation)
{
        LKG_LOCKED(&seen_lock);

        *seen_slot(tid, component) =
                (struct seen){ tid, component, recognised, generation, lkg_boottime_ns() };
}

/*
 * @started is complete. The reply will wait for the answer; false: too many replies are waiting, so the
 * engine is only notified.
 */
static bool ask(const struct lkg_message *started, bool by_name)
{
        struct lkg_parked *parked = lkg_link_park(LKG_MSG_STARTED);
        uint64_t ticket;

        if (!parked) {
                (void)lkg_link_tell(started);
                return false;
        }
        ticket = parked->message.ticket;
        parked->message = *started;
        parked->message.ticket = ticket;
        parked->answer = by_name ? LKG_ANSWER_STALE : LKG_ANSWER_REPLY;
        return true;
}

/**
 * lkg_start_park() - see file-server.h. The opener cannot disappear before the reply, so everything here is
 * about it.
 */
bool lkg_start_park(const struct fuse_ctx *ctx, const struct lkg_node *node)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;
        struct lkg_message started;
        uint64_t generation = 0;

        if (ctx->uid != 0 || ctx->pid == 0 || settled(ctx->pid, node))
                return false;
        ref = lkg_publication_get();
        if (!watched(ref->publication, node->component))
                return false;
        lkg_message_init(&started, LKG_MSG_STARTED);
        lkg_caller_describe(ctx->pid, &started);
        started.component = node->component;
        started.number = node->generation;
        started.uid = ctx->uid;
        started.gid = ctx->gid;
        if (started.pid != 0 && lkg_opener_known(&started, &generation)) {
                if (generation < node->generation && lkg_link_tell(&started)) {
                        lkg_opener_told(&started);
                        generation = node->generation;
                }
                remember(ctx->pid, node->component, true, generation);
                return false;
        }
        if (started.pid == 0 || !is_component(ref->publication, node->component, ctx)) {
                remember(ctx->pid, node->component, false, 0);
                return false;
        }
        return ask(&started, lkg_opener_came_by_name(ctx->pid, node));
}
