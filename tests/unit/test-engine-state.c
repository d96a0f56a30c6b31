/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives, in steps: rows/engine_state.rows. Generation numbers, one component's state, history records; and the effect of broken
 * files (none).
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/store.h>

#include "rows.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int top_fd = -EBADF;
static struct lkg_state s;
static struct lkg_history h = { .dirfd = -EBADF };

static int end(void **state)
{
        (void)state;
        lkg_history_deinit(&h);
        if (*top)
                assert_int_equal(tmpdir_remove(top), 0);
        *top = '\0';
        top_fd = lkg_close(top_fd);
        return 0;
}

static int begin(void **state)
{
        (void)end(state);
        assert_int_equal(tmpdir_make(top), 0);
        top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return top_fd < 0 ? -1 : 0;
}

STEP(steps, 0)
{
        assert_int_equal(begin(NULL), 0);
}

/* ---- files ---- */

static void put(const char *name, const char *text)
{
        int fd = openat(top_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        lkg_close(fd);
}

STEP(put, 2)
{
        put(q->parts[0], q->parts[1]);
}

STEP(mkdir, 1)
{
        assert_int_equal(mkdirat(top_fd, q->parts[0], 0700), 0);
}

STEP(unlink, 1)
{
        assert_int_equal(unlinkat(top_fd, q->parts[0], 0), 0);
}

STEP(symlink, 2)
{
        assert_int_equal(symlinkat(q->parts[1], top_fd, q->parts[0]), 0);
}

STEP(exists, 1)
{
        lkg_buf_puts(ret, faccessat(top_fd, q->parts[0], F_OK, 0) == 0 ? "yes" : "no");
}

/* ---- numbers and components ---- */

static size_t open_state(void)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_state_open(top_fd, &s, &report, &err), 0);
        return report.n_findings;
}

/* An engine starts; what it finds wrong. */
STEP(open, 0)
{
        lkg_buf_printf(ret, "%zu findings", open_state());
}

/* So many generations. */
STEP(next, 1)
{
        uint64_t first = 0, n = 0;
        struct lkg_error err = { 0 };

        for (unsigned long i = 0; i < strtoul(q->parts[0], NULL, 10); i++) {
                assert_int_equal(lkg_state_next_generation(&s, &n, &err), 0);
                first = i == 0 ? n : first;
                assert_int_equal(n, first + i);
        }
        lkg_buf_printf(ret, "%" PRIu64 " to %" PRIu64, first, n);
}

STEP(at_least, 1)
{
        lkg_state_at_least(&s, strtoull(q->parts[0], NULL, 10));
}

STEP(reserve_ahead, 0)
{
        assert_int_equal(lkg_state_reserve_ahead(&s, NULL), 0);
}

/* What is made of a component's file. */
STEP(component, 1)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_component_state out;

        put("components/a.json", q->parts[0]);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        lkg_buf_printf(ret, "hold '%s' at %" PRIu64 ", condition %s, %zu findings",
                       lkg_hold_mode_name(out.hold.mode), out.hold.generation,
                       lkg_condition_status_name(out.status), report.n_findings);
}

TEST_WITH(test_component_state_round_trip, begin, end)
{
        struct lkg_component_state in = {
                .hold = { .mode = LKG_HOLD_ROLLBACK, .generation = 7 },
                .last_good = 9,
                .status = LKG_CONDITION_FALSE,
                .transition_ns = UINT64_C(1700000000123456789),
                .ticket = 77,
        };
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_component_state out;
        struct lkg_error err = { 0 };

        assert_int_equal(open_state(), 0);
        assert_int_equal(lkg_state_load_component(&s, "kubelet", &out, &report), 0);
        assert_int_equal(out.hold.mode, LKG_HOLD_FREE);
        assert_int_equal(lkg_state_save_component(&s, "kubelet", &in, true, &err), 0);
        assert_int_equal(lkg_state_load_component(&s, "kubelet", &out, &report), 0);
        assert_int_equal(out.hold.mode, LKG_HOLD_ROLLBACK);
        assert_int_equal(out.hold.generation, 7);
        assert_int_equal(out.last_good, 9);
        assert_int_equal(out.status, LKG_CONDITION_FALSE);
        assert_true(out.transition_ns == in.transition_ns);
        assert_int_equal(out.ticket, 77);
        assert_int_equal(report.n_findings, 0);
}

TEST_WITH(test_try_keeps_its_deadline, begin, end)
{
        uint64_t now = lkg_boottime_ns();
        struct lkg_component_state in = {
                .hold = { .try_phase = LKG_TRY_RUNNING,
                          .try_duration_ns = 3600 * LKG_NSEC_PER_SEC,
                          .try_previous = 3,
                          .try_deadline_ns = now + 60 * LKG_NSEC_PER_SEC },
        };
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_component_state out;
        struct lkg_error err = { 0 };
        char text[512];

        assert_int_equal(open_state(), 0);
        assert_int_equal(lkg_state_save_component(&s, "a", &in, false, &err), 0);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        assert_true(out.hold.try_deadline_ns == in.hold.try_deadline_ns); /* the same boot: exact */
        assert_int_equal(out.hold.try_previous, 3);

        /* Another boot: the wall clock tells how much is left, at most the whole duration. */
        (void)snprintf(text, sizeof(text),
                       "{\"try\": {\"phase\": \"running\", \"durationNs\": 3600000000000, \"previous\": 3, "
                       "\"deadlineBootNs\": 1, \"deadlineWallNs\": %llu, \"boot\": \"other\"}}",
                       (unsigned long long)(lkg_realtime_ns() + 30 * LKG_NSEC_PER_SEC));
        put("components/a.json", text);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        now = lkg_boottime_ns();
        assert_true(out.hold.try_deadline_ns > now + 25 * LKG_NSEC_PER_SEC);
        assert_true(out.hold.try_deadline_ns <= now + 30 * LKG_NSEC_PER_SEC);
        (void)snprintf(text, sizeof(text),
                       "{\"try\": {\"phase\": \"running\", \"durationNs\": 5, \"deadlineWallNs\": %llu, "
                       "\"boot\": \"x\"}}",
                       (unsigned long long)(lkg_realtime_ns() + 900 * LKG_NSEC_PER_SEC));
        put("components/a.json", text);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        assert_true(out.hold.try_deadline_ns <= lkg_boottime_ns() + 5);
        assert_int_equal(report.n_findings, 0);
}

/* ---- history ---- */

static struct lkg_text text_of(const char *text)
{
        return (struct lkg_text){ strdup(text), strlen(text) };
}

static struct lkg_generation *generation(uint64_t number, const char *document)
{
        struct lkg_generation *g = lkg_generation_alloc();
        char meta[256];

        g->number = number;
        g->document = text_of(document);
        g->origin = text_of("/a\t1\n");
        assert_int_equal(lkg_sha256_hex(document, strlen(document), g->sha256), 0);
        (void)snprintf(meta, sizeof(meta),
                       "{\"generation\": %llu, \"sha256\": \"%s\", \"timeNs\": 12, \"local\": \"init\"}",
                       (unsigned long long)number, g->sha256);
        g->meta = text_of(meta);
        return g;
}

/* Paths of the flushed files, from the end. */
static char flushed[4096];

int fsync(int fd)
{
        char link[64], path[512];
        ssize_t n;
        const char *tail;

        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = '\0';
        tail = strstr(path, "/history/");
        if (tail && strlen(flushed) + strlen(tail) + 2 < sizeof(flushed))
                (void)strcat(strcat(flushed, tail + strlen("/history")), " ");
        return 0;
}

static void say_entries(struct lkg_buf *ret)
{
        for (size_t i = 0; i < h.n_entries; i++)
                lkg_buf_printf(ret, "%s%" PRIu64 "%s", i ? " " : "", h.entries[i].number,
                               h.entries[i].generation ? "*" : "");
}

/* The history as an engine finds it; of what is in memory still, `*`. */
STEP(history, 0)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        lkg_history_deinit(&h);
        assert_int_equal(lkg_history_open(top_fd, "kubelet", &h, &report, &err), 0);
        say_entries(ret);
        if (report.n_findings > 0)
                lkg_buf_printf(ret, ", %zu findings", report.n_findings);
}

/* NUMBER, its source or -, the document */
STEP(add, 3)
{
        LKG_CLEANUP(lkg_generation_unrefp)
        struct lkg_generation *g = generation(strtoull(q->parts[0], NULL, 10), q->parts[2]);

        if (*q->parts[1] != '-')
                (void)snprintf(g->source, sizeof(g->source), "%s", q->parts[1]);
        if (strstr(q->parts[2], "t0p"))
                g->shown = text_of("word: <masked>\n");
        lkg_history_add(&h, g);
        say_entries(ret);
}

/* Generations of documents of their own. */
STEP(fill, 2)
{
        for (uint64_t i = strtoull(q->parts[0], NULL, 10); i <= strtoull(q->parts[1], NULL, 10); i++) {
                LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
                char document[32];

                (void)snprintf(document, sizeof(document), "n: %" PRIu64 "\n", i);
                g = generation(i, document);
                lkg_history_add(&h, g);
        }
}

/* Up to a generation; which files are flushed for it. */
STEP(write, 1)
{
        struct lkg_error err = { 0 };

        *flushed = '\0';
        assert_int_equal(lkg_history_write(&h, strtoull(q->parts[0], NULL, 10), &err), 0);
        lkg_buf_puts(ret, flushed);
}

STEP(get, 1)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_error err = { 0 };
        int r = lkg_history_get(&h, strtoull(q->parts[0], NULL, 10), &g, &err);

        if (r < 0)
                lkg_buf_puts(ret, strerrorname_np(-r));
        else
                lkg_buf_printf(ret, "%s%s, time %" PRIu64 ", shown %s", g->document.data,
                               g->has_base ? "with a base" : "", g->time_ns, lkg_generation_shown(g)->data);
}

/* To so many; but those stay, with commas between. Has any gone? */
STEP(prune, 2)
{
        const char *words[8];
        uint64_t keep[8];
        char list[64];
        size_t n;

        (void)snprintf(list, sizeof(list), "%s", q->parts[1]);
        n = rows_split_to(list, ",", LKG_ARRAY_SIZE(words), words);
        for (size_t i = 0; i < n; i++)
                keep[i] = strtoull(words[i], NULL, 10);
        lkg_buf_printf(
                ret, "%s: ", lkg_history_prune(&h, strtoul(q->parts[0], NULL, 10), keep, n) ? "yes" : "no");
        say_entries(ret);
}

STEP(remove, 1)
{
        lkg_history_remove(&h, strtoull(q->parts[0], NULL, 10));
        say_entries(ret);
}

ROWS_WITH(engine_state, rows_steps, NULL, end)
