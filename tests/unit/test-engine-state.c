/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives: generation numbers, one component's state, history records; and the effect of broken files
 * (none).
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/store.h>
#include "unit.h"
#include "tmpdir.h"

struct place {
        char top[TMPDIR_MAX];
        int fd;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        assert_int_equal(tmpdir_remove(p->top), 0);
        lkg_close(p->fd);
        free(p);
        return 0;
}

static void put(struct place *p, const char *name, const char *text)
{
        int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        lkg_close(fd);
}

static void open_state(struct place *p, struct lkg_state *s, size_t n_findings)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_state_open(p->fd, s, &report, &err), 0);
        assert_int_equal(report.n_findings, n_findings);
        lkg_report_deinit(&report);
}

static uint64_t next(struct lkg_state *s)
{
        struct lkg_error err = { 0 };
        uint64_t n = 0;

        assert_int_equal(lkg_state_next_generation(s, &n, &err), 0);
        return n;
}

TEST_WITH(test_numbers_are_reserved_in_blocks, setup, teardown)
{
        struct lkg_state s;

        open_state(*state, &s, 0);
        for (uint64_t i = 1; i <= 200; i++)
                assert_int_equal(next(&s), i);
        open_state(*state, &s, 0); /* a crash: a gap, but no number twice */
        assert_int_equal(next(&s), 257);
        assert_int_equal(lkg_state_reserve_ahead(&s, NULL), 0);
        lkg_state_at_least(&s, 1000);
        assert_int_equal(next(&s), 1001);
        lkg_state_at_least(&s, 5);
        assert_int_equal(next(&s), 1002);
}

TEST_WITH(test_broken_number_file_goes_on_behind_the_history, setup, teardown)
{
        struct lkg_state s;

        put(*state, "generation-next", "many\n");
        open_state(*state, &s, 1);
        lkg_state_at_least(&s, 41);
        assert_int_equal(next(&s), 42);
        put(*state, "generation-next", "0\n");
        open_state(*state, &s, 1);
        put(*state, "generation-next", "18446744073709551615\n");
        open_state(*state, &s, 1);
        assert_int_equal(next(&s), 1);
}

TEST_WITH(test_component_state_round_trip, setup, teardown)
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
        struct lkg_state s;

        open_state(*state, &s, 0);
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

TEST_WITH(test_try_keeps_its_deadline, setup, teardown)
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
        struct lkg_state s;
        char text[512];

        open_state(*state, &s, 0);
        assert_int_equal(lkg_state_save_component(&s, "a", &in, false, &err), 0);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        assert_true(out.hold.try_deadline_ns == in.hold.try_deadline_ns); /* the same boot: exact */
        assert_int_equal(out.hold.try_previous, 3);

        /* Another boot: the wall clock tells how much is left, at most the whole duration. */
        (void)snprintf(text, sizeof(text),
                       "{\"try\": {\"phase\": \"running\", \"durationNs\": 3600000000000, \"previous\": 3, "
                       "\"deadlineBootNs\": 1, \"deadlineWallNs\": %llu, \"boot\": \"other\"}}",
                       (unsigned long long)(lkg_realtime_ns() + 30 * LKG_NSEC_PER_SEC));
        put(*state, "components/a.json", text);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        now = lkg_boottime_ns();
        assert_true(out.hold.try_deadline_ns > now + 25 * LKG_NSEC_PER_SEC);
        assert_true(out.hold.try_deadline_ns <= now + 30 * LKG_NSEC_PER_SEC);
        (void)snprintf(text, sizeof(text),
                       "{\"try\": {\"phase\": \"running\", \"durationNs\": 5, \"deadlineWallNs\": %llu, "
                       "\"boot\": \"x\"}}",
                       (unsigned long long)(lkg_realtime_ns() + 900 * LKG_NSEC_PER_SEC));
        put(*state, "components/a.json", text);
        assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
        assert_true(out.hold.try_deadline_ns <= lkg_boottime_ns() + 5);
        assert_int_equal(report.n_findings, 0);
}

TEST_WITH(test_broken_component_state_is_reported, setup, teardown)
{
        static const char *const texts[] = { "", "{", "[1]",
                                             "{\"hold\": 3, \"try\": [], \"condition\": {\"status\": 9}}",
                                             "{\"hold\": {\"mode\": \"frozen\", \"generation\": -4}}" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_component_state out;
                struct lkg_state s;

                open_state(*state, &s, 0);
                put(*state, "components/a.json", texts[i]);
                assert_int_equal(lkg_state_load_component(&s, "a", &out, &report), 0);
                assert_int_equal(out.hold.mode, LKG_HOLD_FREE);
                assert_int_equal(out.hold.generation, 0);
                assert_int_equal(out.status, LKG_CONDITION_UNKNOWN);
                assert_int_equal(report.n_findings, i < 3);
                lkg_report_deinit(&report);
        }
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

static void open_history(struct place *p, struct lkg_history *h, size_t n_findings)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_history_open(p->fd, "kubelet", h, &report, &err), 0);
        assert_int_equal(report.n_findings, n_findings);
        lkg_report_deinit(&report);
}

static void fill(struct place *p, struct lkg_history *h, uint64_t first, uint64_t last)
{
        struct lkg_error err = { 0 };

        open_history(p, h, 0);
        for (uint64_t i = first; i <= last; i++) {
                LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
                char document[32];

                (void)snprintf(document, sizeof(document), "n: %llu\n", (unsigned long long)i);
                g = generation(i, document);
                lkg_history_add(h, g);
        }
        assert_int_equal(lkg_history_write(h, last, &err), 0);
}

TEST_WITH(test_history_round_trip, setup, teardown)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *secret = NULL;
        struct lkg_error err = { 0 };
        struct lkg_history h;

        fill(*state, &h, 1, 12);
        secret = generation(13, "word: t0p\n");
        secret->shown = text_of("word: <masked>\n");
        lkg_history_add(&h, secret);
        assert_int_equal(lkg_history_write(&h, 13, &err), 0);
        assert_null(lkg_history_find(&h, 13)->generation); /* memory released */
        lkg_history_deinit(&h);
        open_history(*state, &h, 0);
        assert_int_equal(h.n_entries, 13);
        for (size_t i = 0; i < h.n_entries; i++)
                assert_int_equal(h.entries[i].number, i + 1); /* by number, not by name */
        assert_int_equal(lkg_history_get(&h, 10, &g, &err), 0);
        assert_string_equal(g->document.data, "n: 10\n");
        assert_true(g->has_base && g->time_ns == 12);
        assert_string_equal(lkg_generation_shown(g)->data, "n: 10\n");
        g = lkg_generation_unref(g);
        assert_int_equal(lkg_history_get(&h, 13, &g, &err), 0);
        assert_string_equal(lkg_generation_shown(g)->data, "word: <masked>\n");
        g = lkg_generation_unref(g);
        assert_int_equal(lkg_history_get(&h, 14, &g, &err), -ENOENT);
        lkg_history_deinit(&h);
}

TEST_WITH(test_history_keeps_what_is_in_use, setup, teardown)
{
        const uint64_t keep[] = { 2, 0, 5 };
        struct lkg_history h;

        fill(*state, &h, 1, 9);
        assert_true(lkg_history_prune(&h, 4, keep, LKG_ARRAY_SIZE(keep)));
        assert_false(lkg_history_prune(&h, 4, keep, LKG_ARRAY_SIZE(keep)));
        lkg_history_deinit(&h);
        open_history(*state, &h, 0);
        assert_int_equal(h.n_entries, 4);
        assert_int_equal(h.entries[0].number, 2);
        assert_int_equal(h.entries[1].number, 5);
        assert_int_equal(h.entries[2].number, 8);
        assert_int_equal(h.entries[3].number, 9);
        assert_true(lkg_history_prune(&h, 1, keep, LKG_ARRAY_SIZE(keep)));
        assert_int_equal(h.n_entries, 2);
        lkg_history_deinit(&h);
}

/* A checkout that goes back and forth: other entries stay, and of repeated ones the newest. */
TEST_WITH(test_history_forgets_first_what_is_there_again, setup, teardown)
{
        static const uint64_t want[] = { 3, 4, 11, 14, 15, 16 };
        const uint64_t keep[] = { 11 };
        struct lkg_history h;

        fill(*state, &h, 1, 4);
        for (uint64_t i = 5; i <= 16; i++) {
                LKG_CLEANUP(lkg_generation_unrefp)
                struct lkg_generation *g = generation(i, i % 2 ? "to: 1\n" : "fro: 1\n");

                if (i == 14) /* the same text in a ConfigMap has another origin */
                        (void)snprintf(g->source, sizeof(g->source), "5d1f@1");
                lkg_history_add(&h, g);
                (void)lkg_history_prune(&h, 6, keep, LKG_ARRAY_SIZE(keep));
        }
        assert_int_equal(h.n_entries, LKG_ARRAY_SIZE(want));
        for (size_t i = 0; i < h.n_entries; i++)
                assert_int_equal(h.entries[i].number, want[i]);
        lkg_history_deinit(&h);
}

TEST_WITH(test_torn_records_are_removed, setup, teardown)
{
        struct place *p = *state;
        struct lkg_history h;

        fill(p, &h, 1, 4);
        lkg_history_deinit(&h);
        put(p, "history/kubelet/1/document", "changed\n");
        put(p, "history/kubelet/2/meta.json", ""); /* as after a power failure */
        assert_int_equal(unlinkat(p->fd, "history/kubelet/3/origin", 0), 0);
        assert_int_equal(mkdirat(p->fd, "history/kubelet/.new", 0700),
                         0); /* a crash in the middle of writing */
        put(p, "history/kubelet/.new/document", "half");
        put(p, "history/kubelet/x", "");
        open_history(p, &h, 0); /* nothing was promised about them, so nothing is reported */
        assert_int_equal(h.n_entries, 1);
        assert_int_equal(h.entries[0].number, 4);
        assert_int_equal(faccessat(p->fd, "history/kubelet/.new", F_OK, 0), -1);
        for (unsigned i = 1; i <= 3; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "history/kubelet/%u", i);
                assert_int_equal(faccessat(p->fd, name, F_OK, 0), -1);
        }
        lkg_history_deinit(&h);
}

TEST_WITH(test_records_that_cannot_be_read_now_stay, setup, teardown)
{
        struct place *p = *state;
        struct lkg_history h;

        fill(p, &h, 1, 2);
        lkg_history_deinit(&h);
        assert_int_equal(unlinkat(p->fd, "history/kubelet/1/document", 0), 0);
        assert_int_equal(symlinkat("elsewhere", p->fd, "history/kubelet/1/document"), 0);
        open_history(p, &h, 1);
        assert_int_equal(h.n_entries, 1);
        assert_int_equal(faccessat(p->fd, "history/kubelet/1", F_OK, 0), 0);
        lkg_history_deinit(&h);
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

static void write_durably(struct lkg_history *h, uint64_t number, const char *want)
{
        struct lkg_error err = { 0 };

        *flushed = '\0';
        assert_int_equal(lkg_history_write(h, number, &err), 0);
        assert_string_equal(flushed, want);
}

/* In a burst only the last record is flushed; what a command pins must be flushed before the answer. */
TEST_WITH(test_what_is_pinned_is_flushed, setup, teardown)
{
        static const char all[] =
                "/kubelet/3/document /kubelet/3/origin /kubelet/3/meta.json /kubelet/3 /kubelet ";
        struct lkg_history h;

        fill(*state, &h, 1, 8);
        write_durably(&h, 8, "");
        write_durably(&h, 3, all);
        write_durably(&h, 3, "");
        lkg_history_deinit(&h);
        open_history(*state, &h, 0);
        write_durably(&h, 3, all); /* its writer may have died before it was flushed */
        lkg_history_deinit(&h);
}

TEST_WITH(test_unwritten_entry_can_be_taken_back, setup, teardown)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = generation(5, "a: 1\n");
        struct lkg_history h;

        fill(*state, &h, 1, 2);
        lkg_history_add(&h, g);
        lkg_history_add(&h, g);
        assert_int_equal(h.n_entries, 3);
        lkg_history_remove(&h, 5);
        lkg_history_remove(&h, 2); /* written: stays */
        assert_int_equal(h.n_entries, 2);
        lkg_history_deinit(&h);
}
