/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine on a disk that loses what was not flushed, and on one that is full or read-only. Each scenario
 * runs once while its system calls are recorded. Then, for a crash at every call and for a power failure at
 * every call with every loss that disk.h allows, the engine starts on what is left: it serves; every
 * acknowledged command is in effect; the command in progress has the old or the new effect and no other; and
 * nothing that was promised is reported as lost. On a disk that fails from some call on, a command is
 * refused and changes nothing, or is accepted and in effect after a restart.
 *
 *     crash-engine [--long] [--seed N] [SCENARIO...]
 *
 * A power failure removes the runtime directory (a tmpfs) and changes the boot id. The layers are the
 * user's: they are written as careful tools do (flushed, renamed), except in scenarios with `loose_layers`.
 * Without --long the states of a scenario are a sample: the first kind of each loss at every point, and a
 * few combinations. Rule: docs/specification.md 4.16.
 */
#define UNIT_OWN_MAIN

#include "tests/unit/engine-node.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/wait.h>

#include <lkg/component.h>
#include "disk.h"

#define STEPS_MAX  40u
#define ENDING_MAX 32u
#define ACK        "/ack/"
#define CONFIGMAP                                                                                      \
        "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"kube-system\","   \
        "\"name\":\"node-config\",\"uid\":\"5d1f\",\"resourceVersion\":\"%d\"},\"data\":{\"kubelet\":" \
        "\"apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\nmaxPods: %d\\n\"}}"

enum act {
        END,
        WRITE,   /* text: maxPods of a drop-in; through the mount */
        COMMAND, /* name, text */
        ASSIGN,  /* text: resourceVersion; also maxPods if no number for it follows */
        STARTUP, /* a start of the component */
        RELOAD,
        QUIET, /* until everything that waits for a quiet moment has been written */
};

struct step {
        enum act act;
        const char *name, *text;
};

struct scenario {
        const char *name;
        const char *trial; /* settings; NULL = no remote configuration */
        bool silent;       /* after a crash the reference cannot be read any more */
        bool loose_layers; /* the user's files are not flushed */
        bool any_number;   /* the command creates the generation that is pinned */
        bool pods;         /* static pods: a step writes a manifest, whose number is in its name */
        struct step steps[STEPS_MAX];
};

#define SLOW  "{duration: 1h, minDuration: 0s, crashLoopThreshold: 1}"
#define QUICK "{duration: 0s, minDuration: 0s}"

/* Eight drop-ins in a burst, as in the power failure that this scenario reproduces. */
#define BURST                                                                                   \
        { WRITE, "10", "1" }, { WRITE, "20", "2" }, { WRITE, "30", "3" }, { WRITE, "40", "4" }, \
                { WRITE, "50", "5" }, { WRITE, "60", "6" }, { WRITE, "70", "7" },               \
        {                                                                                       \
                WRITE, "80", "8"                                                                \
        }

static const struct scenario scenarios[] = {
        { .name = "rollback-after-a-burst", .steps = { BURST, { COMMAND, "rollback", "4" } } },
        { .name = "rollback-after-a-loose-burst",
          .loose_layers = true,
          .steps = { BURST, { COMMAND, "rollback", "4" } } },
        { .name = "rollback-twice-and-off",
          .steps = { { WRITE, "10", "1" },
                     { WRITE, "20", "2" },
                     { COMMAND, "rollback", "1" },
                     { COMMAND, "rollback", "2" },
                     { COMMAND, "hold", "off" } } },
        { .name = "rollback-to-local",
          .any_number = true,
          .steps = { { WRITE, "10", "1" }, { WRITE, "20", "2" }, { COMMAND, "rollback", "lkg" } } },
        { .name = "hold-and-edits",
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "hold", "on" },
                     { WRITE, "20", "2" },
                     { QUIET },
                     { WRITE, "30", "3" },
                     { COMMAND, "hold", "off" } } },
        { .name = "hold-and-loose-edits",
          .loose_layers = true,
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "hold", "on" },
                     { WRITE, "20", "2" },
                     { WRITE, "10", "3" } } },
        { .name = "hold-then-rollback",
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "hold", "on" },
                     { WRITE, "20", "2" },
                     { COMMAND, "rollback", "1" } } },
        { .name = "try-and-commit",
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "try", "1h" },
                     { WRITE, "20", "2" },
                     { COMMAND, "commit", "now" } } },
        { .name = "try-then-rollback",
          .steps = { { COMMAND, "try", "1h" }, { WRITE, "20", "2" }, { COMMAND, "rollback", "1" } } },
        { .name = "sync-and-reload",
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "hold", "on" },
                     { COMMAND, "sync", "now" },
                     { RELOAD },
                     { WRITE, "20", "2" } } },
        { .name = "assign",
          .trial = SLOW,
          .steps = { { WRITE, "10", "1" }, { ASSIGN, NULL, "41" }, { ASSIGN, NULL, "42" } } },
        { .name = "assign-silent",
          .trial = SLOW,
          .silent = true,
          .steps = { { WRITE, "10", "1" }, { ASSIGN, NULL, "41" }, { ASSIGN, NULL, "42" } } },
        { .name = "assign-and-promote",
          .trial = SLOW,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" }, { COMMAND, "promote", "now" }, { ASSIGN, NULL, "42" } } },
        { .name = "assign-passes",
          .trial = QUICK,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" }, { WRITE, "20", "2" }, { ASSIGN, NULL, "42" } } },
        { .name = "assign-ends-a-rollback",
          .trial = SLOW,
          .silent = true,
          .steps = { { WRITE, "10", "1" },
                     { ASSIGN, NULL, "41" },
                     { WRITE, "20", "2" },
                     { COMMAND, "rollback", "2" },
                     { ASSIGN, NULL, "42" } } },
        { .name = "rollback-abandons",
          .trial = SLOW,
          .steps = { { WRITE, "10", "1" },
                     { ASSIGN, NULL, "41" },
                     { WRITE, "20", "2" },
                     { COMMAND, "rollback", "2" },
                     { COMMAND, "hold", "off" } } },
        { .name = "rollback-lkg",
          .trial = SLOW,
          .any_number = true,
          .steps = { { ASSIGN, NULL, "41" }, { WRITE, "10", "1" }, { COMMAND, "rollback", "lkg" } } },
        { .name = "hold-then-rollback-lkg",
          .trial = SLOW,
          .any_number = true,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, "hold", "on" },
                     { WRITE, "10", "1" },
                     { COMMAND, "rollback", "lkg" } } },
        { .name = "promoted-then-rollback-lkg",
          .trial = SLOW,
          .any_number = true,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, "promote", "now" },
                     { ASSIGN, NULL, "42" },
                     { COMMAND, "rollback", "lkg" },
                     { COMMAND, "hold", "off" } } },
        { .name = "what-is-good-under-another-version",
          .trial = SLOW,
          .any_number = true,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, "promote", "now" },
                     { ASSIGN, NULL, "42" },
                     { COMMAND, "rollback", "lkg" },
                     { ASSIGN, NULL, "43 41" } } },
        { .name = "crash-loop",
          .trial = SLOW,
          .steps = { { ASSIGN, NULL, "41" }, { STARTUP }, { STARTUP }, { STARTUP } } },
        { .name = "crash-loop-while-silent",
          .trial = SLOW,
          .silent = true,
          .steps = { { WRITE, "10", "1" }, { ASSIGN, NULL, "41" }, { STARTUP }, { STARTUP }, { STARTUP } } },
        { .name = "condemned-by-hand",
          .trial = SLOW,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, LKG_COMMAND_BAD, "5d1f@41 why" },
                     { COMMAND, LKG_COMMAND_FORGIVE, "5d1f@41" } } },
        { .name = "condemned-while-held",
          .trial = SLOW,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, "hold", "on" },
                     { COMMAND, LKG_COMMAND_BAD, "5d1f why" },
                     { COMMAND, LKG_COMMAND_BAD, "5d1f@9 why" },
                     { COMMAND, "forget", "all" } } },
        { .name = "hold-on-a-rollback",
          .trial = SLOW,
          .silent = true,
          .steps = { { WRITE, "10", "1" },
                     { COMMAND, "rollback", "1" },
                     { COMMAND, "hold", "on" },
                     { ASSIGN, NULL, "41" },
                     { COMMAND, "hold", "off" } } },
        { .name = "hold-between-assignments",
          .trial = SLOW,
          .silent = true,
          .steps = { { ASSIGN, NULL, "41" },
                     { COMMAND, "hold", "on" },
                     { ASSIGN, NULL, "42" },
                     { QUIET },
                     { COMMAND, "hold", "off" } } },
        { .name = "pod-marked-and-forgiven",
          .pods = true,
          .steps = { { QUIET },
                     { WRITE, "10", "2" },
                     { COMMAND, LKG_COMMAND_BAD, "10.yaml why" },
                     { WRITE, "20", "1" },
                     { COMMAND, LKG_COMMAND_FORGIVE, "10.yaml" } } },
        { .name = "crash-loop-of-documents",
          .trial = "{scope: all, duration: 1h, minDuration: 0s, crashLoopThreshold: 1}",
          .steps = { { WRITE, "10", "1" }, { STARTUP }, { STARTUP }, { STARTUP } } },
};

/* ---- one node ---- */

static bool another_boot, later;

void __real_lkg_boot_id(char ret[static LKG_BOOT_ID_MAX]);
void __wrap_lkg_boot_id(char ret[static LKG_BOOT_ID_MAX]);
void __wrap_lkg_boot_id(char ret[static LKG_BOOT_ID_MAX])
{
        __real_lkg_boot_id(ret);
        if (another_boot && *ret)
                ret[0] = ret[0] == '0' ? '1' : '0';
}

/* What was written just before the end is no longer young: a new engine waits for those who may have it open (lkg_settled_doubt()). */
uint64_t __real_lkg_realtime_ns(void);
uint64_t __wrap_lkg_realtime_ns(void);
uint64_t __wrap_lkg_realtime_ns(void)
{
        return __real_lkg_realtime_ns() + (later ? LKG_UNCLOSED_NS : 0);
}

/*
 * Closing an inotify descriptor takes the kernel longer than the rest of a check. An engine that only has to
 * start and report what it serves watches nothing.
 */
static bool watches_nothing;

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __wrap_inotify_init1(int flags)
{
        return watches_nothing ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : __real_inotify_init1(flags);
}

int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
        static int last;

        return watches_nothing ? ++last : __real_inotify_add_watch(fd, path, mask);
}

static char base_dir[TMPDIR_MAX];

static void put_careful(struct node *n, const char *name, const char *text, bool flush)
{
        char path[PATH_MAX], tmp[PATH_MAX];
        int fd;

        (void)snprintf(path, sizeof(path), "%s", at(n, name));
        (void)snprintf(tmp, sizeof(tmp), "%.*s/.new", (int)(strrchr(path, '/') - path), path);
        fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, text, strlen(text)), 0);
        if (flush)
                assert_int_equal(fsync(fd), 0);
        (void)lkg_close(fd);
        assert_int_equal(renameat(AT_FDCWD, tmp, AT_FDCWD, path), 0);
        if (!flush)
                return;
        *strrchr(path, '/') = '\0';
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0 && fsync(fd) == 0);
        (void)lkg_close(fd);
}

/* Its probe is never answered. */
static void manifest(const char *name, const char *number, char *ret, size_t size)
{
        (void)snprintf(ret, size,
                       "apiVersion: v1\nkind: Pod\nmetadata: {name: p%s}\nspec: {containers: [{name: c, "
                       "image: \"i:%s\", "
                       "livenessProbe: {tcpSocket: {host: 127.0.0.1, port: 1}}}]}\n",
                       name, number);
}

static void make_node(struct node *n, const struct scenario *s)
{
        char text[2048];

        *n = (struct node){ .client = -EBADF };
        (void)snprintf(n->top, sizeof(n->top), "%.50s/n", base_dir);
        assert_int_equal(mkdir(n->top, 0755), 0);
        make_dirs(n);
        settle_node(n);
        put(n, "source/kubelet.conf", HEADER "maxPods: 100\n");
        if (s->pods) {
                assert_int_equal(mkdir(at(n, "source/manifests"), 0755), 0);
                manifest("10", "1", text, sizeof(text));
                put(n, "source/manifests/10.yaml", text);
                put(n, "etc/config.yaml",
                    "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\ncomponents: "
                    "[{name: pods, kind: StaticPods}]\ntrial: {duration: 1h}\n");
        }
        if (!s->trial)
                return;
        (void)snprintf(
                text, sizeof(text),
                "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\nremote: {enabled: true, "
                "references: [file], file: %s/etc/remote, restartJitter: 0s}\ntrial: %s\n",
                n->top, s->trial);
        put(n, "etc/config.yaml", text);
}

/*
 * What was promised, as text: equal texts are equal states. Documents that are not pinned follow the layers.
 */
static void say_state(struct node *n, const struct scenario *s, struct lkg_buf *buf)
{
        const struct lkg_component *c = &n->engine->components[0];
        const struct lkg_hold *h = &c->state.hold;
        const struct lkg_dynamic *d = c->dynamic;
        LKG_CLEANUP(lkg_freep) char *document = view(n, s->pods ? "static-pods/10.yaml" : "kubelet.conf");
        LKG_CLEANUP(lkg_freep) char *other = s->pods ? view(n, "static-pods/20.yaml") : NULL;
        char word[LKG_SOURCE_ID_MAX + 2 * LKG_IDENTIFIER_MAX + 4];

        lkg_buf_printf(buf, "hold %s %" PRIu64 " by %s\n", lkg_hold_mode_name(h->mode),
                       s->any_number ? 0 : h->generation,
                       h->mode == LKG_HOLD_FREE ? "" : c->state.held_by.program);
        lkg_buf_printf(buf, "try %d %" PRIu64 " back to %" PRIu64 "\n", h->try_phase,
                       h->try_duration_ns / LKG_NSEC_PER_SEC,
                       h->try_phase == LKG_TRY_RUNNING ? h->try_previous : 0);
        if (d) {
                lkg_dynamic_word(&d->pointers.assigned, true, word);
                lkg_buf_printf(buf, "assigned %s\n", word);
                lkg_dynamic_word(&d->pointers.active, true, word);
                lkg_buf_printf(buf, "active %s\n", word);
                lkg_dynamic_word(&d->pointers.good.source, true, word);
                if (!s->pods) /* stored by the next tick: what follows from it is in what is served */
                        lkg_buf_printf(buf, "good %s %.8s\n", word, d->pointers.good.sha256);
                lkg_buf_printf(buf, "rolled back because of '%s'\n", d->pointers.rollback.reason);
                for (size_t i = 0; i < d->bad.n_items; i++)
                        lkg_buf_printf(buf, "bad %s %d %s\n", d->bad.items[i].id, d->bad.items[i].cause,
                                       d->bad.items[i].reason);
                /* Only a document on trial is looked up again. */
                if (d->trial.state == LKG_TRIAL_RUNNING || !d->scope_all)
                        lkg_buf_printf(buf, "trial %s after %u\n", lkg_trial_state_name(d->trial.state),
                                       d->trial.prior);
        }
        if (h->mode != LKG_HOLD_FREE || !s->loose_layers)
                lkg_buf_printf(buf, "serving:\n%s%s", document ? document : "nothing\n", other ? other : "");
        assert_false(lkg_buf_failed(buf));
}

/* ---- the recording ---- */

static void acknowledge(struct node *n, const struct scenario *s, unsigned i)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        char path[128], name[32];
        int fd;

        say_state(n, s, &buf);
        lkg_buf_printf(&buf, "%cnumber %" PRIu64 "\n", '\0', n->engine->components[0].active->number);
        (void)snprintf(path, sizeof(path), "%.50s/said.%u", base_dir, i);
        assert_int_equal(lkg_write_file_atomic(AT_FDCWD, path, buf.data, buf.size, 0600, false, NULL), 0);
        lkg_buf_deinit(&buf);
        (void)snprintf(name, sizeof(name), ACK "%u", i);
        fd = openat(AT_FDCWD, name, O_RDONLY | O_CLOEXEC); /* a call that marks the record */
        assert_true(fd < 0);
}

/* Return: the engine's answer. */
static int carry_out(struct node *n, const struct scenario *s, const struct step *step, uint64_t ticket)
{
        char text[1024], path[64];
        struct lkg_message m;
        int version, pods;
        char *end;

        n->ticket = ticket - 1; /* changed() takes the next one */
        switch (step->act) {
        case WRITE:
                (void)snprintf(path, sizeof(path),
                               s->pods ? "source/manifests/%s.yaml" : "source/kubelet.conf.d/%s-x.conf",
                               step->name);
                if (s->pods)
                        manifest(step->name, step->text, text, sizeof(text));
                else
                        (void)snprintf(text, sizeof(text), HEADER "maxPods: %s\n", step->text);
                put_careful(n, path, text, !s->loose_layers);
                return changed(n, path + strlen("source/"));
        case ASSIGN:
                version = (int)strtol(step->text, &end, 10);
                pods = *end ? (int)strtol(end, NULL, 10) : version;
                (void)snprintf(text, sizeof(text), CONFIGMAP, version, pods);
                put_careful(n, "etc/remote", text, true);
                return command_with(n, "sync", "now", ticket);
        case STARTUP:
                return command_with(n, "startup", "now", ticket);
        case COMMAND:
                lkg_message_init(&m, LKG_MSG_COMMAND);
                m.component = 0;
                m.pid = 1;
                (void)snprintf(m.command, sizeof(m.command), "%s", step->name);
                (void)snprintf(m.exe, sizeof(m.exe), "/usr/bin/tee");
                m.text_size = (uint32_t)strlen(step->text);
                memcpy(m.text, step->text, m.text_size);
                if (strcmp(step->name, LKG_COMMAND_BAD) == 0) /* an id and a reason */
                        m.text[strcspn(step->text, " ")] = '\0';
                return ask(n, &m, ticket);
        case RELOAD:
                lkg_engine_reload(n->engine);
                return 0;
        case QUIET:
                lkg_engine_persist(n->engine);
                return 0;
        case END:
                break;
        }
        return 0;
}

#define AFTER_FAILURE 99u

struct play {
        struct node node;
        const struct scenario *scenario;
        unsigned failing; /* the step that ends the run, whatever its result; 0 = none */
};

static int prepare_nothing(void *userdata)
{
        (void)userdata;
        return 0;
}

static int play(void *userdata)
{
        struct play *p = userdata;
        struct node *n = &p->node;

        start(n);
        acknowledge(n, p->scenario, 0);
        for (unsigned i = 0; p->scenario->steps[i].act != END; i++) {
                int r = carry_out(n, p->scenario, &p->scenario->steps[i], 1001 + i);

                if (p->failing == i + 1) {
                        acknowledge(n, p->scenario, AFTER_FAILURE);
                        return r;
                }
                if (r < 0) {
                        LKG_CLEANUP(lkg_freep) char *why = view(n, "status/kubelet/last-error");

                        print_error("step %u: %s, %s", i, strerror(-r), why);
                        return r;
                }
                acknowledge(n, p->scenario, i + 1);
        }
        return 0;
}

/* What the state was when a step was acknowledged, and where in the record that was. */
struct said {
        char *text;
        uint64_t number;
        size_t at;
};

struct record {
        const struct scenario *scenario;
        struct disk *disk;    /* including the runtime directory */
        struct disk *durable; /* excluding it */
        struct said said[STEPS_MAX + 1];
        size_t said_at_durable[STEPS_MAX + 1];
        unsigned n_steps;
};

static void read_said(struct said *said, unsigned i)
{
        char path[128];
        size_t size;
        int fd;

        (void)snprintf(path, sizeof(path), "%.50s/said.%u", base_dir, i);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || lkg_read_file(fd, SIZE_MAX / 4, &said->text, &size, NULL) < 0)
                fail_msg("%s cannot be read", path);
        (void)lkg_close(fd);
        said->number = strtoull(said->text + strlen(said->text) + strlen("number ") + 1, NULL, 10);
}

/* The socket, and fallback copies for the time without lkgfs: no engine reads them. */
static const char *const left_out[] = { "s", ".lkgfs-fallback", NULL };
static const char *const left_out_by_a_cut[] = { "s", ".lkgfs-fallback", "runtime", NULL };

static void record(struct record *r, const struct scenario *s)
{
        struct trace_call *calls = calloc(TRACE_CALLS_MAX, sizeof(*calls));
        const struct trace_plan plan = { .calls = calls, .with_data = true };
        struct play p = { .scenario = s };
        struct trace_result result;
        uint64_t left;

        assert_non_null(calls);
        *r = (struct record){ .scenario = s };
        make_node(&p.node, s);
        r->disk = disk_new(p.node.top, left_out);
        r->durable = disk_new(p.node.top, left_out_by_a_cut);
        assert_int_equal(trace_run(prepare_nothing, play, &p, &plan, &result), 0);
        assert_true(result.ended && result.status == 0 && result.n_calls < TRACE_CALLS_MAX);
        for (size_t i = 0; i < result.n_calls; i++) {
                if (calls[i].kind == TRACE_OPEN && strncmp(calls[i].path, ACK, strlen(ACK)) == 0) {
                        unsigned k = (unsigned)strtoul(calls[i].path + strlen(ACK), NULL, 10);

                        assert_true(k <= STEPS_MAX);
                        read_said(&r->said[k], k);
                        r->said[k].at = disk_points(r->disk);
                        r->said_at_durable[k] = disk_points(r->durable);
                        r->n_steps = k;
                        continue;
                }
                if (disk_play(r->disk, &calls[i]) < 0 || disk_play(r->durable, &calls[i]) < 0)
                        fail_msg("%s: call %zu about %s cannot be played", s->name, i, calls[i].path);
                free(calls[i].data);
        }
        free(calls);
        /* Is the record complete? */
        {
                struct disk *there = disk_new(p.node.top, left_out_by_a_cut);

                left = disk_digest(there, 0, NULL);
                disk_free(there);
        }
        if (left != disk_digest(r->durable, disk_points(r->durable), NULL))
                fail_msg("%s: the record does not lead to what is on disk", s->name);
        unsettle_node(&p.node);
        assert_int_equal(tmpdir_remove(p.node.top), 0);
}

/* ---- the engine on what is left ---- */

struct state {
        const struct record *record;
        const struct disk *disk;
        size_t at;
        const unsigned char *fates;
        unsigned acknowledged; /* the last acknowledged step */
        bool cut;
};

static struct lkg_buf complaint;

static void empty_dir(const char *top, const char *name)
{
        char path[PATH_MAX];

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        if (access(path, F_OK) == 0)
                assert_int_equal(tmpdir_remove(path), 0);
        assert_int_equal(mkdir(path, strcmp(name, "source") == 0 ? 0755 : 0700), 0);
}

static void fill(const struct state *s, const char *top, const char *name)
{
        char path[PATH_MAX];

        empty_dir(top, name);
        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        assert_int_equal(disk_write(s->disk, s->at, s->fates, name, path), 0);
}

/*
 * Keep layers from the last state if they are the same: the engine waits for files that were just written.
 */
static void make_state(const struct state *s)
{
        static uint64_t layers;
        static bool any;
        uint64_t now = disk_digest_of(s->disk, s->at, s->fates, "source");
        char top[TMPDIR_MAX], path[PATH_MAX];

        (void)snprintf(top, sizeof(top), "%.50s/n", base_dir);
        if (access(top, F_OK) < 0) {
                assert_int_equal(mkdir(top, 0755), 0);
                any = false;
        }
        if (!any || now != layers) {
                fill(s, top, "source");
                (void)usleep(25000);
        }
        layers = now;
        any = true;
        fill(s, top, "state");
        fill(s, top, "etc");
        empty_dir(top, "runtime");
        if (!s->cut)
                fill(s, top, "runtime");
        (void)snprintf(path, sizeof(path), "%s/etc/remote", top);
        if (s->record->scenario->silent)
                (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/s", top);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/runtime/claims", top);
        (void)unlink(path); /* written through a memory mapping, which no record shows */
        (void)snprintf(path, sizeof(path), "%s/runtime/judging", top);
        (void)unlink(path);
}

static bool is_said(const struct state *s, unsigned i, const char *text)
{
        return i <= s->record->n_steps && strcmp(s->record->said[i].text, text) == 0;
}

static void check_words(struct node *n, struct lkg_buf *why)
{
        static const char *const lost[] = { "LKG4005", "LKG4022", "LKG6012", "LKG6013", "failed to keep" };
        static const char *const files[] = { "status/kubelet/findings", "status/kubelet/condition" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(lost) * LKG_ARRAY_SIZE(files); i++)
                if (has(n, files[i % 2], lost[i / 2])) {
                        LKG_CLEANUP(lkg_freep) char *text = view(n, files[i % 2]);

                        lkg_buf_printf(why, "tells of a loss: %s\n", text);
                        return;
                }
}

/* Runs in a child process, which reports `+` or what is wrong. */
static void check_in_child(const void *what, int out)
{
        const struct state *s = what;
        struct lkg_buf text = LKG_BUF_INIT, why = LKG_BUF_INIT;
        const struct record *r = s->record;
        struct lkg_error err = { 0 };
        struct node n = { .client = -EBADF };
        int code;

        another_boot = s->cut;
        later = true;
        watches_nothing = true;
        (void)snprintf(n.top, sizeof(n.top), "%.50s/n", base_dir);
        settle_node(&n);
        n.ticket = 5000;
        code = start_with(&n, &err);
        if (code != 0) {
                lkg_buf_printf(&why, "does not start: %s\n", err.message);
        } else {
                join(&n);
                say_state(&n, r->scenario, &text);
                if (!is_said(s, s->acknowledged, text.data) && !is_said(s, s->acknowledged + 1, text.data))
                        lkg_buf_printf(&why, "neither old nor new, but\n%s", text.data);
                check_words(&n, &why);
                for (unsigned i = 0; !why.size && i <= s->acknowledged; i++)
                        if (n.engine->components[0].active->number == r->said[i].number &&
                            !r->scenario->loose_layers &&
                            strcmp(strstr(text.data, "serving:"), strstr(r->said[i].text, "serving:")) != 0)
                                lkg_buf_printf(&why, "generation %" PRIu64 " was another document before\n",
                                               r->said[i].number);
                /* If the engine died, ask the same again: the caller still waits. */
                if (!why.size && !s->cut && s->acknowledged < r->n_steps) {
                        lkg_buf_deinit(&text);
                        text = (struct lkg_buf)LKG_BUF_INIT;
                        code = carry_out(&n, r->scenario, &r->scenario->steps[s->acknowledged],
                                         1001 + s->acknowledged);
                        say_state(&n, r->scenario, &text);
                        /* A generation may have died with the engine: then the command is refused. */
                        if (!r->scenario->silent && !is_said(s, s->acknowledged + (code >= 0), text.data))
                                lkg_buf_printf(&why, "done again (%d) it comes to\n%s", code, text.data);
                        code = 0;
                }
        }
        (void)lkg_write_all(out, why.size ? why.data : "+", why.size ? why.size : 1);
}

#define ANSWER_MAX 16384

static size_t n_checked, n_wrong, n_ending;

static void explain(const struct state *s, const char *said)
{
        const struct record *r = s->record;
        LKG_CLEANUP(lkg_freep) char *last = s->at ? disk_describe(s->disk, s->at - 1) : NULL;

        lkg_buf_printf(&complaint, "%s: %s after step %u, call %s\n", r->scenario->name,
                       s->cut ? "power cut" : "death", s->acknowledged, last ? last : "(none)");
        for (size_t i = 0; s->fates && i < s->at; i++) {
                static const char *const words[] = { "", "lost", "zeros", "half" };
                LKG_CLEANUP(lkg_freep) char *call = s->fates[i] ? disk_describe(s->disk, i) : NULL;

                if (call)
                        lkg_buf_printf(&complaint, "    %s: %s\n", words[s->fates[i]], call);
        }
        lkg_buf_printf(&complaint, "%s  old:\n%s", said, r->said[s->acknowledged].text);
        if (s->acknowledged < r->n_steps)
                lkg_buf_printf(&complaint, "  new:\n%s", r->said[s->acknowledged + 1].text);
        lkg_buf_puts(&complaint, "\n");
}

/*
 * Closing an inotify descriptor takes the kernel longer than all the rest, so do not wait for the end of a
 * child.
 */
static void reap(bool all)
{
        while (n_ending > 0 && waitpid(-1, NULL, all || n_ending >= ENDING_MAX ? 0 : WNOHANG) > 0)
                n_ending--;
}

/* Return what @answer writes in a child process; nothing if the child dies. */
static void ask_child(void (*answer)(const void *what, int out), const void *what,
                      char said[static ANSWER_MAX])
{
        int pipes[2];
        size_t size = 0;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        (void)fflush(NULL);
        pid = fork();
        if (pid == 0) {
                (void)alarm(30);
                answer(what, pipes[1]);
                (void)close(pipes[1]);
                _exit(0);
        }
        assert_true(pid > 0);
        n_ending++;
        (void)close(pipes[1]);
        while ((n = read(pipes[0], said + size, ANSWER_MAX - 1 - size)) > 0)
                size += (size_t)n;
        said[size] = '\0';
        (void)close(pipes[0]);
        reap(/* all= */ false);
}

static void check(const struct state *s)
{
        char said[ANSWER_MAX];

        make_state(s);
        ask_child(check_in_child, s, said);
        n_checked++;
        if (strcmp(said, "+") == 0)
                return;
        if (n_wrong++ < 5)
                explain(s, *said ? said : "the engine died\n");
}

/* ---- a disk that is full, or read-only ---- */

static const struct {
        const char *name;
        int error;
        unsigned kinds;
} faults[] = {
        { "full", ENOSPC, 1u << TRACE_OPEN | 1u << TRACE_WRITE | 1u << TRACE_MKDIR | 1u << TRACE_LINK },
        { "read-only", EROFS,
          1u << TRACE_OPEN | 1u << TRACE_WRITE | 1u << TRACE_MKDIR | 1u << TRACE_LINK | 1u << TRACE_RENAME |
                  1u << TRACE_UNLINK | 1u << TRACE_TRUNCATE },
};

static void say_later(const void *what, int out)
{
        const struct record *r = what;
        struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        struct node n = { .client = -EBADF };
        char path[PATH_MAX];

        another_boot = watches_nothing = true;
        (void)snprintf(n.top, sizeof(n.top), "%.50s/n", base_dir);
        (void)snprintf(path, sizeof(path), "%s/s", n.top);
        (void)unlink(path);
        empty_dir(n.top, "runtime");
        settle_node(&n);
        if (start_with(&n, &err) == 0)
                say_state(&n, r->scenario, &text);
        else
                lkg_buf_printf(&text, "does not start: %s\n", err.message);
        (void)lkg_write_all(out, text.data, text.size);
}

/* An assignment takes several internal steps; each waits for the disk and reports failures. */
static bool can_fail(const struct scenario *s, unsigned step)
{
        const enum act act = s->steps[step - 1].act;

        return trace_supported() && (act == COMMAND || act == STARTUP || (act == WRITE && !s->trial));
}

static void complain(const struct record *r, unsigned step, size_t fault, unsigned from, const char *what,
                     const char *text)
{
        if (n_wrong++ >= 5)
                return;
        lkg_buf_printf(&complaint,
                       "%s: disk %s from its call %u of step %u on: %s\n%s  old:\n%s  new:\n%s\n",
                       r->scenario->name, faults[fault].name, from, step, what, text, r->said[step - 1].text,
                       r->said[step].text);
}

/* @wanted: what was reported at this step; AFTER_FAILURE: before @step, or at it */
static void check_later(const struct record *r, unsigned step, unsigned wanted, size_t fault, unsigned from)
{
        char said[ANSWER_MAX];

        ask_child(say_later, r, said);
        if (wanted == AFTER_FAILURE
                    ? strcmp(said, r->said[step - 1].text) != 0 && strcmp(said, r->said[step].text) != 0
                    : strcmp(said, r->said[wanted].text) != 0)
                complain(r, step, fault, from, "and after a restart", said);
}

/* Does the command remove what kept an assignment from being followed? */
static bool lets_follow(const struct record *r, unsigned step)
{
        const struct step *s = &r->scenario->steps[step - 1];

        return s->act == COMMAND && r->scenario->trial &&
               (strcmp(s->name, LKG_COMMAND_FORGIVE) == 0 || strcmp(s->name, "forget") == 0 ||
                strcmp(s->text, "off") == 0);
}

/* Return: whether the step reached that call at all. */
static bool fail_from(const struct record *r, unsigned step, size_t fault, unsigned from)
{
        const enum act act = r->scenario->steps[step - 1].act;
        const bool is_command = act == COMMAND || act == STARTUP;
        struct play p = { .scenario = r->scenario, .failing = step };
        char begin[32], end[32], state[PATH_MAX];
        const struct trace_plan plan = {
                .fail_at = from,
                .for_ever = true,
                .error = faults[fault].error,
                .kinds = faults[fault].kinds,
                .below = state,
                .from = begin,
                .until = end,
        };
        struct trace_result result;
        struct said said = { 0 };

        (void)snprintf(begin, sizeof(begin), ACK "%u", step - 1);
        (void)snprintf(end, sizeof(end), ACK "%u", AFTER_FAILURE);
        make_node(&p.node, r->scenario);
        (void)snprintf(state, sizeof(state), "%s/state/", p.node.top);
        assert_int_equal(trace_run(prepare_nothing, play, &p, &plan, &result), 0);
        assert_true(result.ended);
        read_said(&said, AFTER_FAILURE);
        if (result.reached) {
                const bool refused = is_command && result.status < 0;

                n_checked++;
                if (result.status < 0 && result.status != -faults[fault].error)
                        complain(r, step, fault, from, strerror(-result.status), said.text);
                /*
                 * On a disk that becomes read-only in the middle, notes are written later. An assignment
                 * that is released is followed in separate steps, which wait for the disk.
                 */
                if (is_command && !refused && (faults[fault].error == EROFS || lets_follow(r, step)))
                        ;
                else if (strcmp(said.text, r->said[step - refused].text) != 0 &&
                         (is_command || strcmp(said.text, r->said[step - 1].text) != 0))
                        complain(r, step, fault, from, refused ? "refused, and" : "accepted, and",
                                 said.text);
                /* The next engine reports the same when the disk works again. */
                check_later(r, step, refused ? step - 1 : is_command ? step : AFTER_FAILURE, fault, from);
        }
        free(said.text);
        unsettle_node(&p.node);
        assert_int_equal(tmpdir_remove(p.node.top), 0);
        return result.reached;
}

/* ---- states ---- */

struct seen {
        uint64_t *items;
        size_t n, room;
};

static bool is_new(struct seen *seen, uint64_t digest)
{
        size_t i;

        if (2 * seen->n >= seen->room) {
                struct seen grown = { .room = seen->room ? 2 * seen->room : 1024 };

                grown.items = calloc(grown.room, sizeof(*grown.items));
                assert_non_null(grown.items);
                for (i = 0; i < seen->room; i++)
                        if (seen->items[i])
                                (void)is_new(&grown, seen->items[i]);
                free(seen->items);
                *seen = grown;
        }
        digest = digest ? digest : 1;
        for (i = digest % seen->room; seen->items[i] && seen->items[i] != digest; i = (i + 1) % seen->room)
                ;
        if (seen->items[i])
                return false;
        seen->items[i] = digest;
        seen->n++;
        return true;
}

struct options {
        bool all;         /* every single loss at every point */
        uint64_t seed;    /* else, of older losses, @samples of them */
        unsigned samples; /* and as many combinations */
};
#define RECENT 5u /* the loss of the last calls before the cut is always tested */

static uint64_t next_random(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

static unsigned last_said(const struct record *r, const size_t *at_durable, size_t at)
{
        unsigned last = 0;

        for (unsigned i = 0; i <= r->n_steps; i++)
                if ((at_durable ? at_durable[i] : r->said[i].at) <= at)
                        last = i;
        return last;
}

static void check_if_new(const struct record *r, struct seen *seen, size_t at, const unsigned char *fates)
{
        const struct state s = { .record = r,
                                 .disk = r->durable,
                                 .at = at,
                                 .fates = fates,
                                 .acknowledged = last_said(r, r->said_at_durable, at),
                                 .cut = true };

        if (is_new(seen, disk_digest(r->durable, at, fates) * 31 + s.acknowledged))
                check(&s);
}

static bool is_chosen(struct options *o, size_t at, size_t call, size_t n)
{
        return o->all || call + RECENT >= at || next_random(&o->seed) % n < o->samples;
}

/* Every loss at one point, or a selection. */
static void cut_at(const struct record *r, struct seen *seen, size_t at, struct options *o)
{
        size_t points = disk_points(r->durable), *loose = calloc(points + 1, sizeof(*loose)), n;
        unsigned char *fates = calloc(points + 1, 1);

        assert_true(loose && fates);
        n = disk_loose(r->durable, at, loose, points);
        check_if_new(r, seen, at, fates); /* nothing is lost */
        for (size_t i = 0; i < n; i++)
                fates[loose[i]] = DISK_LOST;
        check_if_new(r, seen, at, fates); /* everything */
        for (size_t i = 0; i < n; i++) {  /* everything but one */
                if (!is_chosen(o, at, loose[i], n))
                        continue;
                fates[loose[i]] = DISK_KEPT;
                check_if_new(r, seen, at, fates);
                fates[loose[i]] = DISK_LOST;
        }
        memset(fates, 0, points);
        for (size_t i = 0; i < n; i++) { /* only one */
                unsigned n_fates = disk_is_bytes(r->durable, loose[i]) ? _DISK_FATE_MAX : DISK_LOST + 1;

                if (!is_chosen(o, at, loose[i], n))
                        continue;
                for (unsigned f = DISK_LOST; f < n_fates; f++) {
                        fates[loose[i]] = (unsigned char)f;
                        check_if_new(r, seen, at, fates);
                }
                fates[loose[i]] = DISK_KEPT;
        }
        for (unsigned k = 0; n > 2 && k < o->samples; k++) { /* some */
                for (size_t i = 0; i < n; i++) {
                        unsigned n_fates =
                                disk_is_bytes(r->durable, loose[i]) ? _DISK_FATE_MAX : DISK_LOST + 1;

                        fates[loose[i]] = (unsigned char)(next_random(&o->seed) % (1 + n_fates) % n_fates);
                }
                check_if_new(r, seen, at, fates);
                memset(fates, 0, points);
        }
        free(loose);
        free(fates);
}

static void die_at(const struct record *r, struct seen *seen, size_t at)
{
        const struct state s = {
                .record = r, .disk = r->disk, .at = at, .acknowledged = last_said(r, NULL, at)
        };

        if (is_new(seen, disk_digest(r->disk, at, NULL) * 31 + s.acknowledged))
                check(&s);
}

/* ---- main ---- */

static struct options options = { .seed = 12, .samples = 1 };

static void test_scenario(void **state)
{
        const struct scenario *s = *state;
        struct seen cuts = { 0 }, deaths = { 0 };
        size_t n_failures = 0;
        char top[TMPDIR_MAX];
        struct record r;

        complaint = (struct lkg_buf)LKG_BUF_INIT;
        n_checked = n_wrong = 0;
        record(&r, s);
        for (size_t at = r.said_at_durable[0]; at <= disk_points(r.durable); at++)
                cut_at(&r, &cuts, at, &options);
        for (size_t at = r.said[0].at; at <= disk_points(r.disk); at++)
                die_at(&r, &deaths, at);
        (void)snprintf(top, sizeof(top), "%.50s/n", base_dir);
        assert_int_equal(tmpdir_remove(top), 0);
        for (unsigned step = 1; step <= r.n_steps; step++)
                for (size_t fault = 0; can_fail(s, step) && fault < LKG_ARRAY_SIZE(faults); fault++)
                        for (unsigned from = 1; fail_from(&r, step, fault, from);
                             from += options.all || from < 3 ? 1 : 2)
                                n_failures++;
        reap(/* all= */ true);
        print_message("%s: %zu and %zu calls, %zu states after a cut, %zu after a death, %zu failures, %zu "
                      "wrong\n",
                      s->name, disk_points(r.durable), disk_points(r.disk), cuts.n, deaths.n, n_failures,
                      n_wrong);
        for (unsigned i = 0; i <= r.n_steps; i++)
                free(r.said[i].text);
        disk_free(r.disk);
        disk_free(r.durable);
        free(cuts.items);
        free(deaths.items);
        if (n_wrong)
                (void)fputs(complaint.data, stderr);
        if (n_wrong)
                fail_msg("%zu of %zu states are wrong", n_wrong, n_checked);
        lkg_buf_deinit(&complaint);
}

static int make_base(void **state)
{
        (void)state;
        return tmpdir_make(base_dir);
}

static int remove_base(void **state)
{
        (void)state;
        return tmpdir_remove(base_dir);
}

static bool is_wanted(const char *name, int argc, char **argv)
{
        bool any = false;

        for (int i = 1; i < argc; i++) {
                if (strncmp(argv[i], "--", 2) == 0) {
                        i += strcmp(argv[i], "--seed") == 0;
                        continue;
                }
                any = true;
                if (strcmp(argv[i], name) == 0)
                        return true;
        }
        return !any;
}

int main(int argc, char **argv)
{
        struct CMUnitTest tests[LKG_ARRAY_SIZE(scenarios)];
        size_t n = 0;

        if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
                (void)setenv("TMPDIR", "/dev/shm", 0);
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--long") == 0) {
                        options.all = true;
                        options.samples = 20;
                }
                if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
                        options.seed = strtoull(argv[++i], NULL, 10) | 1;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(scenarios); i++)
                if (is_wanted(scenarios[i].name, argc, argv))
                        tests[n++] = (struct CMUnitTest){ .name = scenarios[i].name,
                                                          .test_func = test_scenario,
                                                          .setup_func = make_base,
                                                          .teardown_func = remove_base,
                                                          .initial_state = (void *)&scenarios[i] };
        if (!n)
                return 1;
        return _cmocka_run_group_tests("crash-engine", tests, n, NULL, NULL) ? 1 : 0;
}
