/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a successor concludes from the note of a dead engine, and which conclusions survive:
 * docs/decisions/012-poison.md. Rule: docs/specification.md 6.4.
 */

#include <fcntl.h>
#include <signal.h>

#include <lkg/file.h>

#include <lkg/store.h>
#include "unit.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int fd = -EBADF; /* runtime and state directory */
static struct lkg_poison poison;

static int make_dir(void **state)
{
        (void)state;
        if (tmpdir_make(top) < 0)
                return -1;
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -1 : 0;
}

static int remove_dir(void **state)
{
        (void)state;
        fd = lkg_close(fd);
        return tmpdir_remove(top);
}

static void begin(void)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_poison_open(fd, fd, "", &poison, &report, &err), 0);
        assert_non_null(poison.note);
        assert_int_equal(report.n_findings, 0);
}

/* The engine dies without closing anything. @end, @status: what the supervisor records. */
static void die(enum lkg_judging_end end, int status)
{
        poison.note->end = end;
        poison.note->end_status = status;
        poison.note = lkg_judging_close(poison.note);
        free(poison.items);
        poison = (struct lkg_poison){ 0 };
}

/* Return: may it be used? */
static bool admit_with(enum lkg_admit_what what, const char *file, const char *sha256, const char *by)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        const struct lkg_content content = { what, file, sha256, 1 };
        int r = lkg_poison_admit(&poison, "kubelet", &content, by, &why);

        assert_int_equal(!why, r == 0);
        assert_true(r == 0 || r == -EKEYREJECTED);
        return r == 0;
}

static bool admit(enum lkg_admit_what what, const char *file, const char *sha256)
{
        return admit_with(what, file, sha256, "");
}

static bool admit_layer(const char *file, const char *sha256)
{
        return admit(LKG_ADMIT_LAYER, file, sha256);
}

/* Layers are read, merged, judged; then the loop starts over. */
static void judge(const char *const *files, const char *sha256)
{
        for (size_t i = 0; files[i]; i++)
                assert_true(admit_layer(files[i], sha256));
        assert_true(admit(LKG_ADMIT_TOGETHER, "", sha256));
        for (size_t i = 0; files[i]; i++)
                lkg_poison_judged(&poison, "kubelet", files[i], sha256);
        lkg_poison_done(&poison);
}

static const char *const three[] = { "base", "10-a", "20-b", NULL };

TEST_WITH(test_only_what_is_new, make_dir, remove_dir)
{
        const struct lkg_content other = { LKG_ADMIT_LAYER, "30-c", "2", 1 };
        char *why = NULL;

        begin();
        judge(three, "1");
        assert_true(admit_layer("10-a", "2"));
        assert_true(admit_layer("30-c", "2"));
        assert_true(admit_layer("base", "1"));
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "x"));
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_false(admit_layer("10-a", "2"));
        assert_false(admit_layer("30-c", "2"));
        assert_true(admit_layer("base", "1"));
        assert_true(admit_layer("10-a", "1")); /* unchanged */
        assert_true(admit_layer("10-a", "3")); /* it has changed */
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "x"));
        assert_int_equal(lkg_poison_admit(&poison, "kube-proxy", &other, "", &why), 0);
        lkg_poison_close(&poison);
}

TEST_WITH(test_what_was_being_read_alone, make_dir, remove_dir)
{
        begin();
        assert_true(admit_layer("base", "1"));
        assert_true(admit_layer("10-a", "1"));
        die(LKG_END_SIGNAL, SIGSEGV);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit_layer("10-a", "1"));
        assert_true(admit(LKG_ADMIT_OBJECT, "kube-system/a", "1"));
        die(LKG_END_MEMORY, 0);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit(LKG_ADMIT_OBJECT, "kube-system/a", "1"));
        lkg_poison_close(&poison);
}

TEST_WITH(test_together_when_nothing_is_new, make_dir, remove_dir)
{
        begin();
        judge(three, "1");
        assert_true(admit_layer("base", "1"));
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "y"));
        die(LKG_END_EXIT, 1);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit(LKG_ADMIT_TOGETHER, "", "y"));
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "z"));
        lkg_poison_close(&poison);
}

/* Another command line is another piece of work. */
TEST_WITH(test_together_with_a_command_line, make_dir, remove_dir)
{
        begin();
        judge(three, "1");
        assert_true(admit_layer("base", "1"));
        assert_true(admit_with(LKG_ADMIT_TOGETHER, "", "y", "line"));
        die(LKG_END_EXIT, 1);
        for (int i = 0; i < 2; i++) {
                begin();
                assert_false(admit_with(LKG_ADMIT_TOGETHER, "", "y", "line"));
                assert_true(admit_with(LKG_ADMIT_TOGETHER, "", "y", "another"));
                assert_true(admit(LKG_ADMIT_TOGETHER, "", "y"));
                lkg_poison_close(&poison);
        }
}

/* Killed from outside before the work was done: what is new is still new, so it is named when the work ends an engine after all. */
TEST_WITH(test_what_was_judged_before_a_kill_is_still_new, make_dir, remove_dir)
{
        begin();
        judge(three, "1");
        for (unsigned i = 0; i < LKG_KILLS_PROOF; i++) {
                assert_true(admit_layer("base", "2"));
                assert_true(admit_layer("10-a", "1"));
                assert_true(admit(LKG_ADMIT_TOGETHER, "", "x"));
                lkg_poison_judged(&poison, "kubelet", "base", "2");
                die(LKG_END_SIGNAL, SIGKILL);
                begin();
        }
        assert_false(admit_layer("base", "2"));
        assert_true(admit_layer("10-a", "1"));
        lkg_poison_close(&poison);
}

/* Whoever looks at opens ends each engine that opens 30-c; the base was read before, and is not to blame. */
TEST_WITH(test_what_is_opened_and_read, make_dir, remove_dir)
{
        begin();
        judge(three, "1");
        for (unsigned i = 0; i < LKG_KILLS_PROOF; i++) {
                assert_true(admit(LKG_ADMIT_READ, "base", "stat of base"));
                lkg_poison_finished(&poison);
                assert_true(admit_layer("base", i == 0 ? "1" : "2"));
                lkg_poison_finished(&poison);
                assert_true(admit(LKG_ADMIT_READ, "30-c", "stat of 30-c"));
                die(LKG_END_SIGNAL, SIGKILL);
                begin();
        }
        assert_int_equal(poison.n_items, 1);
        assert_true(admit(LKG_ADMIT_READ, "base", "stat of base"));
        assert_true(admit_layer("base", "2"));
        assert_false(admit(LKG_ADMIT_READ, "30-c", "stat of 30-c"));
        assert_true(admit(LKG_ADMIT_READ, "30-c", "stat of another 30-c"));
        lkg_poison_close(&poison);
        begin();
        assert_int_equal(poison.items[0].what, LKG_ADMIT_READ);
        lkg_poison_close(&poison);
}

/* Nothing is in work: only damage by what is new can be the cause, and a kill is no damage. */
TEST_WITH(test_in_between, make_dir, remove_dir)
{
        begin();
        judge(three, "1");
        for (unsigned i = 0; i < 2 * LKG_KILLS_PROOF; i++) {
                assert_true(admit_layer("base", "1"));
                lkg_poison_finished(&poison);
                die(i % 2 ? LKG_END_SIGNAL : LKG_END_UNKNOWN, SIGKILL);
                begin();
                assert_int_equal(poison.n_items, 0);
        }
        for (unsigned i = 0; i < 2 * LKG_KILLS_PROOF + 1; i++) {
                assert_true(admit_layer("10-a", "2")); /* it is new */
                lkg_poison_finished(&poison);
                assert_true(admit_layer("base", "1"));
                lkg_poison_finished(&poison);
                if (i == 2 * LKG_KILLS_PROOF)
                        break;
                die(LKG_END_SIGNAL, SIGKILL);
                begin();
                assert_int_equal(poison.n_items, 0);
        }
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit_layer("10-a", "2"));
        lkg_poison_close(&poison);
}

/* A mark that only kills have made ends when any layer changes, also after a reboot; one with a cause does not. */
TEST_WITH(test_a_mark_of_kills_ends_with_any_change, make_dir, remove_dir)
{
        begin();
        for (unsigned i = 0; i < LKG_KILLS_PROOF; i++) {
                assert_true(admit_layer("10-a", "1"));
                die(LKG_END_SIGNAL, SIGKILL);
                begin();
        }
        assert_true(admit_layer("20-b", "1"));
        die(LKG_END_SIGNAL, SIGABRT);
        for (unsigned i = 0; i < 3; i++) { /* the same layers, whatever happens to the engine */
                begin();
                assert_false(admit_layer("10-a", "1"));
                assert_false(admit_layer("20-b", "1"));
                assert_true(admit(LKG_ADMIT_TOGETHER, "", "x"));
                assert_false(poison.look_again);
                lkg_poison_close(&poison);
        }
        begin();
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "y"));
        assert_true(poison.look_again);
        assert_true(admit_layer("10-a", "1"));
        assert_false(admit_layer("20-b", "1"));
        lkg_poison_close(&poison);
        begin();
        assert_int_equal(poison.n_items, 1);
        lkg_poison_close(&poison);
}

TEST_WITH(test_an_engine_that_was_idle_died_of_nothing, make_dir, remove_dir)
{
        begin();
        assert_true(admit_layer("base", "1"));
        lkg_poison_done(&poison);
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_int_equal(poison.n_items, 0);
        lkg_poison_close(&poison);
}

TEST_WITH(test_kills_are_counted, make_dir, remove_dir)
{
        for (unsigned i = 0; i < LKG_KILLS_PROOF; i++) {
                begin();
                assert_int_equal(poison.n_items, 0);
                if (i == 1) /* other work in between does not count for it, but the count starts over */
                        assert_true(admit_layer("base", "1"));
                assert_true(admit_layer("10-a", "1"));
                die(i == 2 ? LKG_END_UNKNOWN : LKG_END_SIGNAL, SIGKILL);
        }
        begin();
        assert_int_equal(poison.n_items, 1);
        assert_false(admit_layer("10-a", "1"));
        lkg_poison_close(&poison);
}

TEST_WITH(test_kills_of_other_work_are_no_proof, make_dir, remove_dir)
{
        for (unsigned i = 0; i < 6; i++) {
                begin();
                assert_int_equal(poison.n_items, 0);
                assert_true(admit_layer(i % 2 ? "10-a" : "20-b", "1"));
                if (i == 3) /* it succeeded once, so the two earlier ends were accidents */
                        lkg_poison_done(&poison);
                die(LKG_END_SIGNAL, SIGKILL);
        }
        lkg_poison_close(&poison);
}

TEST_WITH(test_more_than_the_note_holds, make_dir, remove_dir)
{
        char file[16];

        begin();
        judge(three, "1");
        for (unsigned i = 0; i < LKG_JUDGING_ITEMS + 5; i++) {
                (void)snprintf(file, sizeof(file), "%u", i);
                assert_true(admit_layer(file, "1"));
        }
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit_layer(file, "1")); /* it was not noted, so it is unknown */
        lkg_poison_done(&poison);
        assert_true(admit_layer("after the first look", "1"));
        lkg_poison_close(&poison);
        begin();
        assert_false(admit_layer(file, "1")); /* recorded, too */
        lkg_poison_close(&poison);
}

static void refuse_one(void)
{
        begin();
        assert_true(admit_layer("10-a \"\n", "1"));
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_false(admit_layer("10-a \"\n", "1"));
}

static void replace_in_record(const char *what, const char *with)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        char *at;

        assert_int_equal(lkg_record_read_text(fd, LKG_REFUSED_NAME, 1 << 20, &text, &size, NULL), 0);
        at = strstr(text, what);
        assert_non_null(at);
        lkg_buf_printf(&buf, "%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
        assert_int_equal(lkg_write_file_atomic(fd, LKG_REFUSED_NAME, buf.data, buf.size, 0600, false, NULL),
                         0);
}

/* Of a later version, or damaged: what is refused, and where, is all that has to be known. */
TEST_WITH(test_an_entry_with_members_that_are_not_understood_counts, make_dir, remove_dir)
{
        char status[24];

        refuse_one();
        lkg_poison_close(&poison);
        (void)snprintf(status, sizeof(status), "\"status\": %d", SIGABRT);
        replace_in_record("\"end\": \"signal\"", "\"end\": \"of a later version\"");
        replace_in_record(status, "\"status\": \"six\"");
        begin();
        assert_int_equal(poison.n_items, 1);
        assert_int_equal(poison.items[0].end, LKG_END_UNKNOWN);
        assert_false(admit_layer("10-a \"\n", "1"));
        lkg_poison_close(&poison);
}

TEST_WITH(test_a_reboot_forgets_nothing, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };

        begin();
        judge(three, "1");
        assert_int_equal(lkg_poison_persist(&poison, &err), 0);
        lkg_poison_close(&poison);
        refuse_one();
        lkg_poison_set_source(&poison, lkg_poison_last(&poison), "uid@1");
        lkg_poison_close(&poison);
        assert_int_equal(unlinkat(fd, LKG_JUDGING_NAME, 0), 0);
        begin();
        assert_int_equal(poison.n_items, 1);
        assert_string_equal(poison.items[0].file, "10-a \"\n");
        assert_string_equal(poison.items[0].source, "uid@1");
        assert_int_equal(poison.items[0].end, LKG_END_SIGNAL);
        assert_int_equal(poison.items[0].status, SIGABRT);
        assert_false(admit_layer("10-a \"\n", "1"));
        assert_true(admit_layer("base", "1")); /* which is known */
        assert_true(admit_layer("40-d", "1"));
        assert_true(admit(LKG_ADMIT_TOGETHER, "", "1"));
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        assert_true(admit_layer("base", "1"));
        assert_false(admit_layer("40-d", "1"));
        lkg_poison_close(&poison);
}

TEST_WITH(test_another_version_tries_again, make_dir, remove_dir)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int file = -EBADF;
        struct lkg_error err = { 0 };
        size_t size;
        char *version;

        refuse_one();
        lkg_poison_set_source(&poison, lkg_poison_last(&poison), "uid@1");
        assert_int_equal(lkg_poison_save(&poison, &err), 0);
        assert_true(admit_layer("20-b", "1"));
        die(LKG_END_SIGNAL, SIGABRT);
        begin();
        lkg_poison_close(&poison);
        file = openat(fd, LKG_REFUSED_NAME, O_RDWR | O_CLOEXEC);
        assert_int_equal(lkg_read_file(file, 1 << 20, &text, &size, NULL), 0);
        version = strstr(text, "\"lkgfs\": \"");
        assert_non_null(version);
        version[strlen("\"lkgfs\": \"")] = 'x';
        assert_int_equal(pwrite(file, text, size, 0), size);
        begin();
        assert_true(admit_layer("10-a \"\n", "1"));
        assert_true(admit_layer("20-b", "1"));
        assert_int_equal(poison.n_items, 1); /* kept until its bad mark is removed */
        assert_true(poison.items[0].lifted);
        assert_string_equal(poison.items[0].source, "uid@1");
        lkg_poison_close(&poison);
}

TEST_WITH(test_lifting, make_dir, remove_dir)
{
        struct lkg_error err = { 0 };

        refuse_one();
        lkg_poison_lift(&poison, "kube-proxy", NULL);
        lkg_poison_lift(&poison, "kubelet", "");
        assert_false(admit_layer("10-a \"\n", "1"));
        lkg_poison_set_source(&poison, lkg_poison_last(&poison), "uid@1");
        lkg_poison_lift(&poison, "kubelet", "uid@12");
        lkg_poison_lift(&poison, "kubelet", "ui");
        assert_false(admit_layer("10-a \"\n", "1"));
        lkg_poison_lift(&poison, "kubelet", "uid"); /* all its versions */
        assert_true(admit_layer("10-a \"\n", "1"));
        assert_int_equal(lkg_poison_save(&poison, &err), 0);
        lkg_poison_close(&poison);
        begin();
        assert_int_equal(poison.n_items, 0);
        lkg_poison_close(&poison);
        refuse_one();
        lkg_poison_lift(&poison, "kubelet", NULL);
        assert_true(admit_layer("10-a \"\n", "1"));
        lkg_poison_close(&poison);
}

TEST_WITH(test_damaged_files, make_dir, remove_dir)
{
        static const char *const texts[] = { "", "{", "[]", "{\"refused\": 1}",
                                             "{\"refused\": [1, {}, null]}" };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                assert_int_equal(lkg_write_file_atomic(fd, LKG_REFUSED_NAME, texts[i], strlen(texts[i]),
                                                       0600, false, &err),
                                 0);
                assert_int_equal(lkg_write_file_atomic(fd, LKG_JUDGED_NAME, texts[i], strlen(texts[i]), 0600,
                                                       false, &err),
                                 0);
                (void)unlinkat(fd, LKG_JUDGING_NAME, 0);
                assert_int_equal(lkg_poison_open(fd, fd, "", &poison, &report, &err), 0);
                assert_int_equal(poison.n_items, 0);
                judge(three, "1");
                assert_int_equal(lkg_poison_persist(&poison, &err), 0);
                lkg_poison_close(&poison);
        }
        assert_int_equal(report.n_severity[LKG_WARNING], 4);
        (void)unlinkat(fd, LKG_JUDGING_NAME, 0);
        begin(); /* after a torn line */
        assert_int_equal(poison.note->n_known, 3);
        lkg_poison_close(&poison);
}

/* Messages name the path to write to, even if the view has its own directories below the source's. */
TEST_WITH(test_words_name_the_virtual_directory, make_dir, remove_dir)
{
        const struct lkg_content content = { LKG_ADMIT_LAYER, "10-a", "2", 1 };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        begin();
        assert_true(admit_layer("10-a", "2"));
        die(LKG_END_SIGNAL, SIGABRT);
        for (const char *const *dir = (const char *const[]){ "", "lkgfs", NULL }; *dir; dir++) {
                LKG_CLEANUP(lkg_freep) char *why = NULL;
                char wanted[64];

                assert_int_equal(lkg_poison_open(fd, fd, *dir, &poison, &report, &err), 0);
                assert_int_equal(lkg_poison_admit(&poison, "kubelet", &content, "", &why), -EKEYREJECTED);
                (void)snprintf(wanted, sizeof(wanted), "write now to %s%scontrol/kubelet/sync", *dir,
                               **dir ? "/" : "");
                assert_non_null(strstr(why, wanted));
                lkg_poison_close(&poison);
        }
}

TEST_WITH(test_without_memory_it_gives_up_only_at_work, make_dir, remove_dir)
{
        begin();
        assert_false(lkg_poison_give_up(&poison));
        assert_true(admit_layer("10-a", "1"));
        assert_true(lkg_poison_give_up(&poison));
        die((enum lkg_judging_end)poison.note->end, 71);
        begin();
        assert_false(admit_layer("10-a", "1"));
        assert_int_equal(poison.items[0].end, LKG_END_MEMORY);
        lkg_poison_close(&poison);
}
