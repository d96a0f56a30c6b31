/* SPDX-License-Identifier: Apache-2.0 */
/* What counts against a configuration: bad marks and starts. Rule: docs/specification.md 4.12. */

#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <lkg/documents.h>
#include <lkg/schema.h>

#include "unit.h"
#include "store-place.h"

/* ---- bad list ---- */

TEST_WITH(test_bad_list, setup, teardown)
{
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL }, back;
        struct lkg_bad uid = { .id = "11111111-aaaa-4bbb-8ccc-000000000001",
                               .time_ns = 7,
                               .reason = "by\nhand\x7f" };
        struct lkg_config_source first, second, third, renewed, local = { .uid = "" };
        struct lkg_bad bad = sample_bad(1);
        struct lkg_store_component c;
        struct lkg_store store;
        struct lkg_buf buf = LKG_BUF_INIT, here = LKG_BUF_INIT, there = LKG_BUF_INIT;
        char *text;

        assert_int_equal(sample_source(0, &first), 0);
        assert_int_equal(sample_source(1, &second), 0);
        assert_int_equal(sample_source(2, &third), 0);
        open_both(p, &store, &c);
        assert_int_equal(lkg_store_set_release(&c, "v1", &p->err), 1);
        assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), 0);
        assert_null(lkg_bad_find(&list, &first));
        assert_null(lkg_bad_find(&list, &local));
        assert_ptr_equal(lkg_bad_find(&list, &second), &list.items[0]);
        renewed = second;
        (void)snprintf(renewed.version, sizeof(renewed.version), "999");
        assert_null(lkg_bad_find(&list, &renewed));
        assert_non_null(lkg_bad_same_content(&list, &renewed));
        assert_null(lkg_bad_same_content(&list, &first));

        text = get(p, "dynamic/kubelet/releases/v1/bad/11111111-aaaa-4bbb-8ccc-000000000001@101");
        lkg_bad_format(&bad, &buf);
        assert_string_equal(text, buf.data);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        assert_non_null(strstr(
                text, "{\"schemaVersion\":1,\"time\":\"2026-01-02T03:04:05.12345679Z\",\"reason\":\"failed "
                      "to validate current (UID: \\\"11111111-aaaa-4bbb-8ccc-000000000001\\\")\","
                      "\"source\":{\"namespace\":\"kube-system\",\"name\":\"kubelet-config-0\",\"uid\":"));
        free(text);
        lkg_buf_deinit(&buf);

        assert_int_equal(lkg_store_mark_bad(&c, &list, &uid, &p->err), 0);
        assert_int_equal(list.n_items, 2);
        assert_string_equal(lkg_bad_find(&list, &first)->reason, "by hand ");
        assert_string_equal(lkg_bad_find(&list, &second)->id, bad.id); /* an exact match comes first */
        assert_null(lkg_bad_find(&list, &third));
        (void)snprintf(bad.reason, sizeof(bad.reason), "again");
        assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), 0);
        assert_int_equal(list.n_items, 2);

        assert_int_equal(lkg_store_load_bad(&c, &back, &p->report), 0);
        assert_int_equal(back.n_items, 2);
        dump_bad(&here, &list);
        dump_bad(&there, &back);
        assert_string_equal(here.data, there.data);
        lkg_buf_deinit(&here);
        lkg_buf_deinit(&there);
        lkg_bad_list_deinit(&back);
        lkg_bad_list_deinit(&list);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

TEST_WITH(test_mark_names_are_checked, setup, teardown)
{
        static const char *const names[] = { "",     ".",  "..",    "a/b",   "../x@1", "u@",
                                             "u@1:", "@1", "u@1@2", "local", "u@.." };
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                struct lkg_bad bad = { .time_ns = 1 };

                (void)snprintf(bad.id, sizeof(bad.id), "%s", names[i]);
                assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), -EINVAL);
                assert_int_equal(lkg_store_forgive(&c, &list, names[i], false, &p->err), -EINVAL);
        }
        assert_int_equal(list.n_items, 0);
        lkg_bad_list_deinit(&list);
        close_both(&store, &c);
}

static void mark(struct lkg_store_component *c, struct lkg_bad_list *list, const char *id, uint64_t time_ns)
{
        struct lkg_bad bad = { .time_ns = time_ns, .reason = "test" };

        (void)snprintf(bad.id, sizeof(bad.id), "%s", id);
        assert_int_equal(lkg_store_mark_bad(c, list, &bad, NULL), 0);
}

/* ---- suspects ---- */

static char *suspects_of(const struct lkg_bad *bad)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        size_t size;

        assert_non_null(bad);
        if (bad->suspects)
                lkg_render_json_compact(bad->suspects, &buf);
        lkg_buf_putc(&buf, '\0');
        return lkg_buf_steal(&buf, &size);
}

/*
 * One file has the mark and them; a mark that is made again has the new ones.
 * Rule: docs/specification.md 2.12.
 */
TEST_WITH(test_suspects_are_in_the_record, setup, teardown)
{
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL }, back;
        struct lkg_bad bad = sample_bad(1);
        struct lkg_store_component c;
        struct lkg_store store;
        char *text;

        open_both(p, &store, &c);
        for (int round = 0; round < 2; round++) {
                LKG_CLEANUP(lkg_value_unrefp)
                struct lkg_value *suspects = lkg_suspects_unknown(round ? "second \"time\"" : "first");

                bad.suspects = suspects;
                assert_int_equal(lkg_store_mark_bad(&c, &list, &bad, &p->err), 0);
                assert_int_equal(lkg_store_load_bad(&c, &back, &p->report), 0);
                text = suspects_of(lkg_bad_named(&back, bad.id));
                assert_string_equal(text, round ? "{\"unknown\":\"second \\\"time\\\"\"}"
                                                : "{\"unknown\":\"first\"}");
                free(text);
                lkg_bad_list_deinit(&back);
        }
        assert_int_equal(list.n_items, 1);
        assert_int_equal(lkg_store_forgive(&c, &list, NULL, false, &p->err), 1);
        lkg_bad_list_deinit(&list);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

/* An earlier version wrote no suspects; damaged ones are lost alone. */
TEST_WITH(test_records_without_suspects, setup, teardown)
{
        static const char *const records[] = {
                "{\"schemaVersion\":1,\"time\":\"2026-01-02T03:04:05Z\",\"reason\":\"r\",\"source\":{"
                "\"namespace\":\"\","
                "\"name\":\"\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"key\":\"kubelet\",\"sha256\":\"\"},"
                "\"cause\":\"marked\"}\n",
                "{\"schemaVersion\":1,\"time\":\"2026-01-02T03:04:05Z\",\"reason\":\"r\",\"source\":{"
                "\"namespace\":\"\","
                "\"name\":\"\",\"uid\":\"u\",\"resourceVersion\":\"1\",\"key\":\"kubelet\",\"sha256\":\"\"},"
                "\"cause\":\"marked\",\"suspects\":7}\n",
        };
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        mark(&c, &list, "u@1", 5);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(records); i++) {
                lkg_bad_list_deinit(&list);
                put(p, "dynamic/kubelet/releases/unknown/bad/u@1", records[i]);
                assert_int_equal(lkg_store_load_bad(&c, &list, &p->report), 0);
                assert_int_equal(list.n_items, 1);
                assert_string_equal(list.items[0].reason, "r");
                assert_null(list.items[0].suspects);
                assert_int_equal(take_findings(p), i);
        }
        lkg_bad_list_deinit(&list);
        close_both(&store, &c);
}

static void expect_marks(struct place *p, const struct lkg_store_component *c,
                         const struct lkg_bad_list *list, const char *want)
{
        struct lkg_buf here = LKG_BUF_INIT, there = LKG_BUF_INIT;
        struct lkg_bad_list back;

        assert_int_equal(lkg_store_load_bad(c, &back, &p->report), 0);
        for (size_t i = 0; i < list->n_items; i++)
                lkg_buf_printf(&here, "%s ", list->items[i].id);
        for (size_t i = 0; i < back.n_items; i++)
                lkg_buf_printf(&there, "%s ", back.items[i].id);
        assert_string_equal(here.data ? here.data : "", want);
        assert_string_equal(there.data ? there.data : "", want);
        lkg_bad_list_deinit(&back);
        lkg_buf_deinit(&here);
        lkg_buf_deinit(&there);
        assert_int_equal(take_findings(p), 0);
}

TEST_WITH(test_forgive, setup, teardown)
{
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        mark(&c, &list, "b@2", 1);
        mark(&c, &list, "a@1:key", 1);
        mark(&c, &list, "b", 1);
        mark(&c, &list, "b@1", 1);
        mark(&c, &list, "bb@1", 1);
        mark(&c, &list, "local@0123456789ab", 1);
        mark(&c, &list, "b@3:kubelet", 1); /* the same as b@3 */
        expect_marks(p, &c, &list, "a@1:key b b@1 b@2 b@3 bb@1 local@0123456789ab ");
        assert_int_equal(lkg_store_forgive(&c, &list, "c", false, &p->err), 0);
        assert_int_equal(lkg_store_forgive(&c, &list, "a", false, &p->err), 1);
        assert_int_equal(lkg_store_forgive(&c, &list, "b@2", false, &p->err), 1);
        assert_int_equal(lkg_store_forgive(&c, &list, "b@2", false, &p->err), 0);
        expect_marks(p, &c, &list, "b b@1 b@3 bb@1 local@0123456789ab ");
        assert_int_equal(lkg_store_forgive(&c, &list, "b", false, &p->err), 3);
        expect_marks(p, &c, &list, "bb@1 local@0123456789ab ");
        assert_int_equal(lkg_store_forgive(&c, &list, NULL, false, &p->err), 2);
        expect_marks(p, &c, &list, "");
        assert_int_equal(lkg_store_forgive(&c, &list, NULL, false, &p->err), 0);
        mark(&c, &list, "z", 1);
        expect_marks(p, &c, &list, "z ");
        lkg_bad_list_deinit(&list);
        close_both(&store, &c);
}

/* Landlock of Linux 5.13 to 5.18 forbids links between directories, whatever the rules are. */
static bool forbid_links(void)
{
        struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_CHAR };
        int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        return fd >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               syscall(SYS_landlock_restrict_self, fd, 0) == 0;
}

static ino_t list_inode(const struct place *p)
{
        struct stat st;

        assert_int_equal(fstatat(p->fd, "dynamic/kubelet/releases/unknown/bad", &st, 0), 0);
        return st.st_ino;
}

/* Still all at once: another list, of copies, takes the place of the old one. */
TEST_WITH(test_forgive_where_nothing_can_be_linked, setup, teardown)
{
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_store_component c;
        struct lkg_store store;
        ino_t before;
        int status;
        pid_t pid;

        open_both(p, &store, &c);
        mark(&c, &list, "a@1", 1);
        mark(&c, &list, "b@1", 1);
        mark(&c, &list, "b@2", 1);
        before = list_inode(p);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(forbid_links() ? lkg_store_forgive(&c, &list, "b", false, &p->err) : ENOSYS);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == ENOSYS) {
                print_message("this kernel has no Landlock\n");
                assert_int_equal(lkg_store_forgive(&c, &list, "b", false, &p->err), 2);
        } else {
                assert_int_equal(WEXITSTATUS(status), 2);
                lkg_bad_list_deinit(&list);
                assert_int_equal(lkg_store_load_bad(&c, &list, &p->report), 0);
        }
        assert_true(list_inode(p) != before);
        expect_marks(p, &c, &list, "a@1 ");
        lkg_bad_list_deinit(&list);
        close_both(&store, &c);
}

TEST_WITH(test_oldest_mark_goes_first, setup, teardown)
{
        struct place *p = *state;
        struct lkg_bad_list list = { .items = NULL };
        struct lkg_store_component c;
        struct lkg_store store;
        char id[16];

        open_both(p, &store, &c);
        for (unsigned i = 0; i <= LKG_BAD_MAX; i++) {
                (void)snprintf(id, sizeof(id), "u@%u", i);
                mark(&c, &list, id, 1000 + (i + 100) % (LKG_BAD_MAX + 1)); /* the oldest is u@157 */
        }
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        for (size_t i = 0; i < list.n_items; i++)
                assert_string_not_equal(list.items[i].id, "u@157");
        mark(&c, &list, "new", 1); /* older than all, but explicitly requested */
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        lkg_bad_list_deinit(&list);
        assert_int_equal(lkg_store_load_bad(&c, &list, &p->report), 0);
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        assert_string_equal(list.items[0].id, "new");
        lkg_bad_list_deinit(&list);
        close_both(&store, &c);
}

/* ---- starts ---- */

TEST_WITH(test_startups, setup, teardown)
{
        struct place *p = *state;
        struct lkg_buf here = LKG_BUF_INIT, there = LKG_BUF_INIT;
        struct lkg_startups s = { .n_items = 0 }, back;
        struct lkg_store_component c;
        struct lkg_store store;

        open_both(p, &store, &c);
        for (unsigned n = 0; n <= LKG_STARTUPS_MAX + 3; n++) {
                size_t want = n < LKG_STARTUPS_MAX ? n : LKG_STARTUPS_MAX;

                s = sample_startups(n);
                assert_int_equal(s.n_items, want);
                assert_int_equal(lkg_store_save_startups(&c, &s, &p->err), 0);
                assert_int_equal(lkg_store_load_startups(&c, &back, &p->report), 0);
                assert_int_equal(back.n_items, want);
                lkg_buf_reset(&here);
                lkg_buf_reset(&there);
                dump_startups(&here, &s);
                dump_startups(&there, &back);
                assert_string_equal(here.data, there.data);
                if (want > 0) /* the oldest was dropped */
                        assert_int_equal(back.items[want - 1].pid, 99 + (int)n);
        }
        lkg_buf_deinit(&here);
        lkg_buf_deinit(&there);
        assert_int_equal(take_findings(p), 0);
        close_both(&store, &c);
}

TEST(test_which_process_is_known)
{
        struct lkg_startups s = sample_startups(3);
        const struct lkg_startup by_hand = { .time_ns = 1, .counted = true };

        assert_true(lkg_startups_knows(&s, SAMPLE_BOOT, 101, 5001));
        assert_false(lkg_startups_knows(&s, SAMPLE_BOOT, 101, 5002));
        assert_false(lkg_startups_knows(&s, "another boot", 101, 5001));
        assert_false(lkg_startups_knows(&s, "", 101, 5001));
        lkg_startups_add(&s, "another boot", &by_hand);
        assert_false(lkg_startups_knows(&s, "another boot", 0, 0));
        assert_false(lkg_startups_knows(&s, "another boot", 101, 5001)); /* it belongs to an earlier boot */
        assert_int_equal(s.n_items, 4);
        assert_int_equal(s.items[1].time_ns, SAMPLE_TIME + LKG_NSEC_PER_SEC);
}
