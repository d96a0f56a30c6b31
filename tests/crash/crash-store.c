/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation of the store, killed at every system call: the state is the old or the new one, never a
 * third. And with every system call that can fail made to fail: the operation reports the error, and the
 * state is the old one.
 *
 *     crash-store [OPERATION...]
 *
 * A state is what the public interface reports about a directory that is opened anew, in two texts. `core`
 * (pointers, trial, starts, bad list, release) must be the old or the new one as a whole; in `extra` (things
 * that are garbage collected: checkpoints, old releases, documents) each line must. Power failures are not
 * simulated; instead the order of the calls is checked: flush before rename, the directory after it, the
 * target before the pointer. Rule: docs/specification.md 4.16.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <lkg/file.h>

#include "tests/lib/store-sample.h"
#include "tests/unit/tmpdir.h"
#include "trace.h"

#define DOCUMENT_OLD "kind: KubeletConfiguration\nmaxPods: 100\n"
#define DOCUMENT_NEW "kind: KubeletConfiguration\nmaxPods: 101\n"
#define OBJECT_0     "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001/100/configmap.json"
#define RELEASE_DIR  "dynamic/kubelet/releases/"

struct operation;

struct world {
        const struct operation *operation;
        char top[TMPDIR_MAX];
        int fd;
        struct lkg_store store;
        struct lkg_store_component c;
        struct lkg_pointers pointers;
        struct lkg_bad_list bad;
        struct lkg_report report;
};

struct operation {
        const char *name;
        int (*fill)(struct world *w); /* makes the state before; NULL = nothing */
        int (*run)(struct world *w);  /* Return: >= 0, or -errno */
        bool opens;                   /* it starts with a directory that is not open */
        bool lazy;                    /* repeating it does not finish what may be left unfinished */
        const char *first;            /* everything below this directory is flushed before ... */
        const char *then;             /* ... this file is renamed */
};

/* ---- one directory ---- */

static int open_world(struct world *w)
{
        int r = lkg_store_open(w->fd, &w->store, &w->report, NULL);

        if (r >= 0)
                r = lkg_store_component_open(&w->store, SAMPLE_COMPONENT, &w->c, &w->report, NULL);
        if (r >= 0)
                r = lkg_store_load_bad(&w->c, &w->bad, &w->report);
        if (r >= 0)
                r = lkg_store_load_pointers(&w->c, &w->pointers, &w->report);
        return r;
}

static void close_world(struct world *w)
{
        lkg_bad_list_deinit(&w->bad);
        lkg_store_component_close(&w->c);
        lkg_store_close(&w->store);
        lkg_report_deinit(&w->report);
        w->report = (struct lkg_report)LKG_REPORT_INIT;
        w->c.fd = w->store.lock_fd = -EBADF;
}

/* The current directory of the world, for a test that aborts. */
static char current[TMPDIR_MAX];

static int remove_current(void **state)
{
        (void)state;
        if (*current)
                (void)tmpdir_remove(current);
        current[0] = '\0';
        return 0;
}

static void make_world(struct world *w, const struct operation *operation)
{
        *w = (struct world){ .operation = operation, .c.fd = -EBADF, .store.lock_fd = -EBADF };
        assert_int_equal(tmpdir_make(w->top), 0);
        memcpy(current, w->top, sizeof(current));
        w->fd = open(w->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(w->fd >= 0);
        if (operation->fill)
                assert_int_equal(operation->fill(w), 0);
}

static void drop_world(struct world *w)
{
        close_world(w);
        w->fd = lkg_close(w->fd);
        assert_int_equal(tmpdir_remove(w->top), 0);
        current[0] = '\0';
}

static int put(struct world *w, const char *name, const char *text)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(w->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : lkg_write_all(fd, text, strlen(text));
}

/* ---- before ---- */

static int fill_sample(struct world *w)
{
        return sample_fill(w->fd);
}

static int fill_damaged(struct world *w)
{
        int r = sample_fill(w->fd);

        return r < 0 ? r : put(w, OBJECT_0, "{\"apiVersion\":\"v1\",\"kind\":\"Conf");
}

static int fill_leftovers(struct world *w)
{
        int r = sample_fill(w->fd);

        if (r == 0)
                r = put(w, ".format.1" LKG_TMP_SUFFIX, "");
        if (r == 0)
                r = put(w, "dynamic/kubelet/.pointers.json.123" LKG_TMP_SUFFIX, "{");
        if (r == 0 && mkdirat(w->fd, RELEASE_DIR SAMPLE_RELEASE "/.bad" LKG_TMP_SUFFIX, 0700) < 0)
                r = -errno;
        if (r == 0)
                r = put(w, RELEASE_DIR SAMPLE_RELEASE "/.bad" LKG_TMP_SUFFIX "/a@1", "{}");
        if (r == 0 && unlinkat(w->fd, "format", 0) < 0)
                r = -errno;
        return r;
}

static int add_mark(struct world *w, const char *id, uint64_t time_ns)
{
        struct lkg_bad bad = { .time_ns = time_ns, .reason = "test" };

        (void)snprintf(bad.id, sizeof(bad.id), "%s", id);
        return lkg_store_mark_bad(&w->c, &w->bad, &bad, NULL);
}

static int fill_marks(struct world *w)
{
        static const char *const ids[] = { "uid", "uid@1", "uid@2", "uid@2:key", "other@1" };
        int r = sample_fill(w->fd);

        if (r == 0)
                r = open_world(w);
        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(ids); i++)
                r = add_mark(w, ids[i], SAMPLE_TIME);
        close_world(w);
        return r;
}

static int fill_full(struct world *w)
{
        int r = open_world(w);

        for (unsigned i = 0; r == 0 && i < LKG_BAD_MAX; i++) {
                char id[16];

                (void)snprintf(id, sizeof(id), "m@%03u", i);
                r = add_mark(w, id, SAMPLE_TIME + i);
        }
        close_world(w);
        return r;
}

/* Four older releases, and the name that is used while none is known; the oldest first. */
static const char *const releases[] = { "unknown", "v1.1", "v1.2", "v1.3", "v1.4" };

static int fill_releases(struct world *w)
{
        int r = sample_fill(w->fd);

        if (r == 0)
                r = open_world(w);
        for (size_t i = 1; r == 0 && i < LKG_ARRAY_SIZE(releases); i++) {
                lkg_bad_list_deinit(&w->bad);
                r = lkg_store_set_release(&w->c, releases[i], NULL) < 0 ? -EIO : 0;
                if (r == 0)
                        r = add_mark(w, "a@1", SAMPLE_TIME);
                if (r == 0)
                        r = add_mark(w, "a@2", SAMPLE_TIME);
        }
        if (r == 0 && lkg_store_set_release(&w->c, SAMPLE_RELEASE, NULL) < 0)
                r = -EIO;
        close_world(w);
        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(releases); i++) {
                const struct timespec times[2] = { { 1000 + (time_t)i, 0 }, { 1000 + (time_t)i, 0 } };
                char path[128];

                (void)snprintf(path, sizeof(path), RELEASE_DIR "%s", releases[i]);
                if (utimensat(w->fd, path, times, 0) < 0 && errno != ENOENT)
                        r = -errno;
        }
        return r;
}

/* ---- operations ---- */

static int run_open(struct world *w)
{
        return open_world(w);
}

static int save_object(struct world *w, unsigned i)
{
        struct lkg_configmap configmap;
        int r = sample_configmap(i, &configmap);

        if (r < 0)
                return r;
        r = lkg_store_save_checkpoint(&w->store, &configmap, NULL);
        lkg_configmap_deinit(&configmap);
        return r;
}

static int run_save_checkpoint(struct world *w)
{
        return save_object(w, 2);
}

static int run_replace_checkpoint(struct world *w)
{
        return save_object(w, 0);
}

static int save_assigned(struct world *w, unsigned i)
{
        struct lkg_pointers pointers = w->pointers;
        int r = sample_source(i, &pointers.assigned);

        pointers.assigned_ns = SAMPLE_TIME + 100;
        (void)snprintf(pointers.node_uid, sizeof(pointers.node_uid), "99999999-aaaa-4bbb-8ccc-00000000000%u",
                       i + 1);
        return r < 0 ? r : lkg_store_save_pointers(&w->c, &pointers, NULL);
}

static int run_save_pointers(struct world *w)
{
        return save_assigned(w, 0);
}

/* The old document is kept: the pointers name it until they are saved. */
static int save_document(struct world *w, char ret_sha256[static LKG_SHA256_HEX])
{
        char old[LKG_SHA256_HEX];
        int r = lkg_sha256_hex(DOCUMENT_OLD, strlen(DOCUMENT_OLD), old);

        return r < 0 ? r
                     : lkg_store_save_document(&w->c, DOCUMENT_NEW, strlen(DOCUMENT_NEW), old, ret_sha256,
                                               NULL);
}

static int run_save_document(struct world *w)
{
        char sha256[LKG_SHA256_HEX];

        return save_document(w, sha256);
}

static int run_save_trial(struct world *w)
{
        struct lkg_trial trial = sample_trial();
        struct lkg_config_source source;
        int r = sample_source(0, &source);

        trial.state = LKG_TRIAL_PASSED;
        return r < 0 ? r : lkg_store_save_trial(&w->c, &source, &trial, 0, NULL);
}

static int run_mark_bad(struct world *w)
{
        return add_mark(w, "new@1", SAMPLE_TIME + 1000);
}

static int run_forgive_one(struct world *w)
{
        return lkg_store_forgive(&w->c, &w->bad, "uid@2", false, NULL);
}

static int run_forgive_uid(struct world *w)
{
        return lkg_store_forgive(&w->c, &w->bad, "uid", false, NULL);
}

static int run_forgive_all(struct world *w)
{
        return lkg_store_forgive(&w->c, &w->bad, NULL, false, NULL);
}

static int run_set_release(struct world *w)
{
        return lkg_store_set_release(&w->c, "v1.37.0", NULL);
}

static int run_set_release_back(struct world *w)
{
        return lkg_store_set_release(&w->c, "v1.2", NULL);
}

static int run_collect(struct world *w)
{
        struct lkg_config_source keep;
        int r = sample_source(1, &keep);

        return r < 0 ? r : lkg_store_collect(&w->store, &keep, 1, NULL);
}

static int run_save_startups(struct world *w)
{
        const struct lkg_startups startups = sample_startups(LKG_STARTUPS_MAX + 1);

        return lkg_store_save_startups(&w->c, &startups, NULL);
}

/* As the engine does it: the target first, then the pointer. */
static int run_assign(struct world *w)
{
        int r = save_object(w, 2);

        return r < 0 ? r : save_assigned(w, 2);
}

static int run_promote(struct world *w)
{
        struct lkg_pointers pointers = w->pointers;
        char sha256[LKG_SHA256_HEX];
        int r = save_document(w, sha256);

        if (r < 0)
                return r;
        pointers.good.source = pointers.assigned;
        memcpy(pointers.good.sha256, sha256, sizeof(sha256));
        return lkg_store_save_pointers(&w->c, &pointers, NULL);
}

static const struct operation operations[] = {
        { .name = "open-fresh", .run = run_open, .opens = true },
        { .name = "open-existing", .fill = fill_sample, .run = run_open, .opens = true },
        { .name = "open-leftovers", .fill = fill_leftovers, .run = run_open, .opens = true },
        { .name = "save-checkpoint", .fill = fill_sample, .run = run_save_checkpoint },
        { .name = "replace-checkpoint", .fill = fill_damaged, .run = run_replace_checkpoint },
        { .name = "save-pointers", .fill = fill_sample, .run = run_save_pointers },
        { .name = "save-document", .fill = fill_sample, .run = run_save_document },
        { .name = "save-trial", .fill = fill_sample, .run = run_save_trial },
        { .name = "mark-bad", .fill = fill_sample, .run = run_mark_bad },
        { .name = "mark-bad-full", .fill = fill_full, .run = run_mark_bad },
        { .name = "forgive-one", .fill = fill_marks, .run = run_forgive_one },
        { .name = "forgive-uid", .fill = fill_marks, .run = run_forgive_uid },
        { .name = "forgive-all", .fill = fill_marks, .run = run_forgive_all },
        { .name = "set-release", .fill = fill_releases, .run = run_set_release, .lazy = true },
        { .name = "set-release-back", .fill = fill_releases, .run = run_set_release_back, .lazy = true },
        { .name = "collect", .fill = fill_sample, .run = run_collect },
        { .name = "save-startups", .fill = fill_sample, .run = run_save_startups },
        { .name = "assign",
          .fill = fill_sample,
          .run = run_assign,
          .first = "/checkpoints",
          .then = "/pointers.json" },
        { .name = "promote",
          .fill = fill_sample,
          .run = run_promote,
          .first = "/documents",
          .then = "/pointers.json" },
};

/* ---- states ---- */

struct state {
        struct lkg_buf core, extra;
};

static void state_deinit(struct state *state)
{
        lkg_buf_deinit(&state->core);
        lkg_buf_deinit(&state->extra);
}

static unsigned count_files(int fd, const char *path)
{
        int dir_fd = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
        const struct dirent *entry;
        unsigned n = 0;

        while (dir && (entry = readdir(dir)))
                n += entry->d_name[0] != '.';
        if (dir)
                (void)closedir(dir);
        return n;
}

static void dump_documents(struct lkg_buf *buf, const struct lkg_store_component *c)
{
        static const char *const documents[] = { DOCUMENT_OLD, DOCUMENT_NEW };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(documents); i++) {
                char sha256[LKG_SHA256_HEX], *text = NULL;
                size_t size;

                assert_int_equal(lkg_sha256_hex(documents[i], strlen(documents[i]), sha256), 0);
                lkg_buf_printf(buf, "document %zu: %d\n", i,
                               lkg_store_load_document(c, sha256, &text, &size, NULL));
                free(text);
        }
}

/* Open the directory anew, as the next daemon does. No crash may lose or damage any of our files. */
static void read_state(struct world *w, struct state *ret)
{
        int r;

        *ret = (struct state){ .core = LKG_BUF_INIT };
        r = open_world(w);
        if (r < 0)
                fail_msg("%s: the directory cannot be opened any more: %s", w->operation->name,
                         strerror(-r));
        dump_checkpoints(&ret->extra, &w->store);
        dump_documents(&ret->extra, &w->c);
        for (size_t i = 1; i < LKG_ARRAY_SIZE(releases); i++) {
                char path[128];

                (void)snprintf(path, sizeof(path), RELEASE_DIR "%s/bad", releases[i]);
                lkg_buf_printf(&ret->extra, "%s: %u\n", releases[i], count_files(w->fd, path));
        }
        lkg_buf_printf(&ret->core, "release %s\n", w->c.release);
        assert_int_equal(dump_component(&ret->core, &w->c, &w->report), 0);
        for (size_t i = 0; i < w->report.n_findings; i++)
                fail_msg("%s: %s: %s", w->operation->name, w->report.findings[i].file,
                         w->report.findings[i].text);
        if (!lkg_config_source_is_local(&w->pointers.assigned))
                assert_true(lkg_store_has_checkpoint(&w->store, &w->pointers.assigned) ||
                            w->operation->run == run_collect);
        assert_false(lkg_buf_failed(&ret->core) || lkg_buf_failed(&ret->extra));
        close_world(w);
}

static bool same(const struct lkg_buf *a, const struct lkg_buf *b)
{
        return strcmp(a->data, b->data) == 0;
}

/* Is each line that of @old or that of @new? All three have the same number of lines. */
static bool lines_are_of(const struct lkg_buf *text, const struct lkg_buf *old, const struct lkg_buf *new)
{
        const char *t = text->data, *a = old->data, *b = new->data;

        while (*t && *a && *b) {
                size_t n = strcspn(t, "\n") + 1, n_a = strcspn(a, "\n") + 1, n_b = strcspn(b, "\n") + 1;

                if (!(n == n_a && memcmp(t, a, n) == 0) && !(n == n_b && memcmp(t, b, n) == 0))
                        return false;
                t += n;
                a += n_a;
                b += n_b;
        }
        return !*t && !*a && !*b;
}

static int find_tmp(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        return lkg_is_tmp_name(path + ftw->base);
}

/* Repeat the operation, undisturbed, after a crash or failure. */
static void finish(struct world *w, const struct state *old, const struct state *new, const char *when)
{
        struct state state;
        int r;

        assert_int_equal(nftw(w->top, find_tmp, 16, FTW_PHYS), 0);
        r = w->operation->opens ? 0 : open_world(w);
        if (r >= 0)
                r = w->operation->run(w);
        if (r < 0)
                fail_msg("%s %s: cannot be done afterwards: %s", w->operation->name, when, strerror(-r));
        close_world(w);
        read_state(w, &state);
        if (!same(&state.core, &new->core))
                fail_msg("%s %s, done again:\n%s\ninstead of\n%s", w->operation->name, when, state.core.data,
                         new->core.data);
        if (w->operation->lazy ? !lines_are_of(&state.extra, &old->extra, &new->extra)
                               : !same(&state.extra, &new->extra))
                fail_msg("%s %s, done again:\n%s\ninstead of\n%s", w->operation->name, when,
                         state.extra.data, new->extra.data);
        state_deinit(&state);
}

/* Report the first line that is in neither state, and the line that was wanted. */
static void third_state(const struct world *w, const char *when, const struct lkg_buf *state,
                        const struct lkg_buf *old, const struct lkg_buf *new)
{
        const char *t = state->data, *a = old->data, *b = new->data;

        while (*t &&
               (strncmp(t, a, strcspn(t, "\n") + 1) == 0 || strncmp(t, b, strcspn(t, "\n") + 1) == 0)) {
                t += strcspn(t, "\n") + (strchr(t, '\n') != NULL);
                a += strcspn(a, "\n") + (strchr(a, '\n') != NULL);
                b += strcspn(b, "\n") + (strchr(b, '\n') != NULL);
        }
        fail_msg("%s %s: neither old nor new: '%.*s', old: '%.*s', new: '%.*s'", w->operation->name, when,
                 (int)strcspn(t, "\n"), t, (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

/* ---- tests ---- */

static int prepare_child(void *userdata)
{
        struct world *w = userdata;

        return w->operation->opens ? 0 : open_world(w);
}

static int run_child(void *userdata)
{
        struct world *w = userdata;

        return w->operation->run(w);
}

/* Determine the states before and after. Return: number of calls of an undisturbed run. */
static size_t learn(const struct operation *operation, struct state *old, struct state *new,
                    struct trace_call *calls)
{
        const struct trace_plan plan = { .calls = calls };
        struct trace_result result;
        struct world w;

        make_world(&w, operation);
        read_state(&w, old);
        drop_world(&w);
        make_world(&w, operation);
        assert_int_equal(trace_run(prepare_child, run_child, &w, &plan, &result), 0);
        assert_true(result.ended && result.status >= 0);
        read_state(&w, new);
        drop_world(&w);
        return result.n_calls;
}

static void test_killed_at_every_stop(void **state)
{
        const struct operation *operation = *state;
        struct state old, new;
        bool is_new = false, ended = false;

        (void)learn(operation, &old, &new, NULL);
        for (unsigned k = 1; !ended; k++) {
                const struct trace_plan plan = { .kill_at = k };
                struct trace_result result;
                struct state now;
                struct world w;
                char when[64];

                (void)snprintf(when, sizeof(when), "killed at stop %u", k);
                make_world(&w, operation);
                assert_int_equal(trace_run(prepare_child, run_child, &w, &plan, &result), 0);
                ended = result.ended;
                read_state(&w, &now);
                if (!same(&now.core, &old.core) && !same(&now.core, &new.core))
                        third_state(&w, when, &now.core, &old.core, &new.core);
                if (!lines_are_of(&now.extra, &old.extra, &new.extra))
                        third_state(&w, when, &now.extra, &old.extra, &new.extra);
                if (is_new && !same(&now.core, &new.core)) /* a state that was reached is never undone */
                        third_state(&w, when, &now.core, &new.core, &new.core);
                is_new = is_new || !same(&now.core, &old.core);
                finish(&w, &old, &new, when);
                state_deinit(&now);
                drop_world(&w);
        }
        assert_true(is_new || same(&old.core, &new.core));
        state_deinit(&old);
        state_deinit(&new);
}

/* Return: whether there was such a call. */
static bool fail_once(const struct operation *operation, const struct trace_plan *plan,
                      const struct state *old, const struct state *new)
{
        struct trace_result result;
        struct state now;
        struct world w;
        char when[96];

        (void)snprintf(when, sizeof(when), "with call %u%s failing with %s", plan->fail_at,
                       plan->for_ever ? " and all later ones" : "", strerrorname_np(plan->error));
        make_world(&w, operation);
        assert_int_equal(trace_run(prepare_child, run_child, &w, plan, &result), 0);
        assert_true(result.ended);
        read_state(&w, &now);
        if (result.status < 0 && result.status != -plan->error)
                fail_msg("%s %s: says %s", operation->name, when, strerror(-result.status));
        if (result.reached && result.status >= 0 && result.failed == TRACE_FSYNC)
                fail_msg("%s %s: says nothing about it", operation->name, when);
        if (result.status >= 0
                    ? !same(&now.core, &new->core)
                    : !same(&now.core, &old->core) && !(result.committed && same(&now.core, &new->core)))
                third_state(&w, when, &now.core, &old->core, &new->core);
        if (result.status < 0 && !result.committed ? !same(&now.extra, &old->extra)
                                                   : !lines_are_of(&now.extra, &old->extra, &new->extra))
                third_state(&w, when, &now.extra, &old->extra, &new->extra);
        finish(&w, old, new, when);
        state_deinit(&now);
        drop_world(&w);
        return result.reached;
}

static void test_every_call_fails(void **state)
{
        static const int errors[] = { ENOSPC, EIO, EROFS };
        const struct operation *operation = *state;
        struct state old, new;

        if (!trace_supported())
                skip();
        (void)learn(operation, &old, &new, NULL);
        for (size_t i = 0; i < 2 * LKG_ARRAY_SIZE(errors); i++) {
                struct trace_plan plan = { .error = errors[i / 2], .for_ever = i % 2 };

                do
                        plan.fail_at++;
                while (fail_once(operation, &plan, &old, &new));
                assert_true(plan.fail_at > 1);
        }
        state_deinit(&old);
        state_deinit(&new);
}

/* ---- the order of calls ---- */

static bool is_below_tmp(const char *path)
{
        return strstr(path, LKG_TMP_SUFFIX "/") != NULL;
}

static bool is_tmp(const char *path)
{
        const char *base = strrchr(path, '/');

        return base && lkg_is_tmp_name(base + 1);
}

static bool flushes_parent(const struct trace_call *call, const char *path)
{
        size_t n = (size_t)(strrchr(path, '/') - path);

        return call->kind == TRACE_FSYNC && call->result == 0 && strlen(call->path) == n &&
               memcmp(call->path, path, n) == 0;
}

static void expect_parent_flushed(const struct trace_call *calls, size_t n, size_t i, const char *path)
{
        for (size_t k = i + 1; k < n; k++)
                if (flushes_parent(&calls[k], path))
                        return;
        fail_msg("the directory of %s is not flushed afterwards", path);
}

static void expect_flushed_before(const struct trace_call *calls, size_t i, const char *path)
{
        for (size_t k = i; k > 0; k--) {
                const struct trace_call *call = &calls[k - 1];

                if (call->kind == TRACE_FSYNC && call->result == 0 && strcmp(call->path, path) == 0)
                        return;
                if (call->kind == TRACE_WRITE && strcmp(call->path, path) == 0)
                        break;
        }
        fail_msg("%s is renamed before it is flushed", path);
}

/* Everything below @first is flushed before the file @then gets its name. */
static void expect_order(const struct trace_call *calls, size_t n, const char *first, const char *then)
{
        size_t at = n, flushed = 0;

        for (size_t i = 0; i < n; i++)
                if (calls[i].kind == TRACE_RENAME && strstr(calls[i].to, then))
                        at = i;
        assert_true(at < n);
        for (size_t i = 0; i < n; i++) {
                if ((calls[i].kind == TRACE_FSYNC || calls[i].kind == TRACE_RENAME) &&
                    strstr(calls[i].path, first)) {
                        assert_true(i < at);
                        flushed++;
                }
        }
        assert_true(flushed >= 2);
}

static void test_order_of_flushes(void **state)
{
        const struct operation *operation = *state;
        struct trace_call *calls = calloc(TRACE_CALLS_MAX, sizeof(*calls));
        struct state old, new;
        size_t n;

        assert_non_null(calls);
        n = learn(operation, &old, &new, calls);
        assert_true(n > 0 && n < TRACE_CALLS_MAX);
        for (size_t i = 0; i < n; i++) {
                const struct trace_call *call = &calls[i];

                if (call->result != 0)
                        continue;
                if (call->kind == TRACE_RENAME && !is_tmp(call->to)) {
                        expect_flushed_before(calls, i, call->path);
                        expect_parent_flushed(calls, n, i, call->to);
                }
                if (call->kind == TRACE_MKDIR)
                        expect_parent_flushed(calls, n, i, call->path);
                if (call->kind == TRACE_UNLINK && strstr(call->path, "/bad/") && !is_tmp(call->path) &&
                    !is_below_tmp(call->path) && operation->run != run_mark_bad)
                        expect_parent_flushed(calls, n, i, call->path);
        }
        if (operation->first)
                expect_order(calls, n, operation->first, operation->then);
        free(calls);
        state_deinit(&old);
        state_deinit(&new);
}

/* ---- main ---- */

static int run_operation(const struct operation *operation)
{
        static const struct {
                const char *what;
                CMUnitTestFunction test;
        } kinds[] = {
                { "killed at every stop", test_killed_at_every_stop },
                { "with every call failing", test_every_call_fails },
                { "flushes in the right order", test_order_of_flushes },
        };
        struct CMUnitTest tests[LKG_ARRAY_SIZE(kinds)];
        char names[LKG_ARRAY_SIZE(kinds)][96];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                (void)snprintf(names[i], sizeof(names[i]), "%s %s", operation->name, kinds[i].what);
                tests[i] = (struct CMUnitTest){ .name = names[i],
                                                .test_func = kinds[i].test,
                                                .teardown_func = remove_current,
                                                .initial_state = (void *)operation };
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
        int n_failed = 0, n_run = 0;

        /* A disk would only be slow: the tracer sees what is flushed. */
        if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
                (void)setenv("TMPDIR", "/dev/shm", 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(operations); i++) {
                bool wanted = argc < 2;

                for (int k = 1; k < argc; k++)
                        wanted = wanted || strcmp(argv[k], operations[i].name) == 0;
                if (!wanted)
                        continue;
                n_failed += run_operation(&operations[i]) != 0;
                n_run++;
        }
        return n_failed || !n_run ? 1 : 0;
}
