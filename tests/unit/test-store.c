/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of dynamic configuration, in steps: rows/store.rows. What is saved can be read back; who may use it when; what counts against a
 * configuration: bad marks and starts. Rule: docs/specification.md 4.12.
 */
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <lkg/documents.h>
#include <lkg/file.h>
#include <lkg/schema.h>

#include "rows.h"
#include "tests/lib/store-sample.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int fd = -EBADF; /* of top */
static struct lkg_report report;
static struct lkg_error err;
static struct lkg_store store;
static struct lkg_store_component c;
static bool is_open;
static struct lkg_bad_list list;
static struct lkg_pointers saved;
static char *dumped;

/* ---- the directory ---- */

static void close_store(void)
{
        if (!is_open)
                return;
        lkg_store_component_close(&c);
        lkg_store_close(&store);
        is_open = false;
}

static int end(void **state)
{
        (void)state;
        close_store();
        lkg_bad_list_deinit(&list);
        list = (struct lkg_bad_list){ .items = NULL };
        assert_int_equal(report.n_findings, 0); /* a story asks for all of them */
        free(dumped);
        dumped = NULL;
        if (*top)
                assert_int_equal(tmpdir_remove(top), 0);
        *top = '\0';
        fd = lkg_close(fd);
        return 0;
}

STEP(steps, 0)
{
        (void)end(NULL);
        assert_int_equal(tmpdir_make(top), 0);
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
}

static void say_result(struct lkg_buf *ret, int r)
{
        if (r < 0)
                lkg_buf_puts(ret, strerrorname_np(-r));
        else
                lkg_buf_printf(ret, "%d", r);
}

STEP(open, 0)
{
        char pid[32];
        char *at;
        int r = lkg_store_open(fd, &store, &report, &err);

        if (r < 0) {
                (void)snprintf(pid, sizeof(pid), "(pid %d)", (int)getpid());
                at = strstr(err.message, pid);
                lkg_buf_printf(ret, "%s%s", strerrorname_np(-r), at ? ", with our pid" : "");
                return;
        }
        assert_int_equal(lkg_store_component_open(&store, "kubelet", &c, &report, &err), 0);
        is_open = true;
        lkg_buf_printf(ret, "release '%s'", c.release);
}

/* Another daemon. */
STEP(open_again, 0)
{
        const struct lkg_store mine = store;

        step_open(q, ret);
        store = mine;
}

STEP(close, 0)
{
        close_store();
}

STEP(component, 1)
{
        struct lkg_store_component other;

        say_result(ret, lkg_store_component_open(&store, q->parts[0], &other, &report, &err));
}

static void put(const char *path, const char *text)
{
        LKG_CLEANUP(lkg_closep) int file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(file >= 0);
        assert_int_equal(lkg_write_all(file, text, strlen(text)), 0);
}

STEP(put, 2)
{
        put(q->parts[0], q->parts[1]);
}

STEP(mkdir, 1)
{
        assert_int_equal(mkdirat(fd, q->parts[0], 0700), 0);
}

STEP(rmdir, 1)
{
        assert_int_equal(unlinkat(fd, q->parts[0], AT_REMOVEDIR), 0);
}

STEP(symlink, 2)
{
        assert_int_equal(symlinkat(q->parts[1], fd, q->parts[0]), 0);
}

/* What a file holds; a last line that has no end is told. */
STEP(get, 1)
{
        LKG_CLEANUP(lkg_closep) int file = openat(fd, q->parts[0], O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        assert_true(file >= 0);
        assert_int_equal(lkg_read_file(file, 1u << 20, &text, NULL, NULL), 0);
        lkg_buf_puts(ret, text);
        if (*text && text[strlen(text) - 1] != '\n')
                lkg_buf_puts(ret, "\n(no end of the line)");
}

/* What is there: its type and mode. */
STEP(is, 1)
{
        struct stat st;

        if (fstatat(fd, q->parts[0], &st, AT_SYMLINK_NOFOLLOW) < 0)
                lkg_buf_puts(ret, "nothing");
        else
                lkg_buf_printf(ret, "%s %o",
                               S_ISDIR(st.st_mode)   ? "directory"
                               : S_ISLNK(st.st_mode) ? "link"
                                                     : "file",
                               st.st_mode & 07777u);
}

/* Is it the same file as when this was last asked? */
STEP(same_file, 1)
{
        static ino_t before;
        struct stat st;

        assert_int_equal(fstatat(fd, q->parts[0], &st, 0), 0);
        lkg_buf_puts(ret, st.st_ino == before ? "yes" : "no");
        before = st.st_ino;
}

/* Those up to here; later ones are unexpected. */
STEP(findings, 0)
{
        for (size_t i = 0; i < report.n_findings; i++)
                lkg_buf_printf(ret, "%s ", report.findings[i].file);
        lkg_report_deinit(&report);
        report = (struct lkg_report)LKG_REPORT_INIT;
}

/* ---- everything ---- */

STEP(sample, 0)
{
        assert_int_equal(sample_fill(fd), 0);
}

/* Is all of it, opened anew, what it was when it was last dumped? */
STEP(dump, 0)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        char *before = dumped;

        assert_int_equal(dump_state(fd, &buf, &report), 0);
        dumped = lkg_buf_steal(&buf, NULL);
        lkg_buf_puts(ret, before && strcmp(before, dumped) == 0 ? "the same" : "another");
        free(before);
}

/* The lines of the dump that begin so. */
STEP(dumped, 1)
{
        for (const char *line = dumped; *line; line += strcspn(line, "\n") + 1)
                if (strncmp(line, q->parts[0], strlen(q->parts[0])) == 0)
                        lkg_buf_printf(ret, "%.*s\n", (int)strcspn(line, "\n"), line);
}

/* ---- checkpoints ---- */

/* The source of a number, of which a member may have another value; `-`: the local one. */
static struct lkg_config_source source_of(const struct question *q, size_t i)
{
        struct lkg_config_source source = { .uid = "" };
        const char *member = q->parts[i + 1], *value = q->parts[i + 2];

        if (*q->parts[i] == '-')
                return source;
        assert_int_equal(sample_source((unsigned)atoi(q->parts[i]), &source), 0);
        if (strcmp(member, "sha256") == 0)
                (void)snprintf(source.sha256, sizeof(source.sha256), "%s", value);
        else if (*member)
                (void)snprintf(strcmp(member, "name") == 0      ? source.name
                               : strcmp(member, "version") == 0 ? source.version
                                                                : source.uid,
                               sizeof(source.uid), "%s", value);
        return source;
}

STEP(save_checkpoint, 1)
{
        struct lkg_configmap configmap;

        assert_int_equal(sample_configmap((unsigned)atoi(q->parts[0]), &configmap), 0);
        say_result(ret, lkg_store_save_checkpoint(&store, &configmap, &err));
        lkg_configmap_deinit(&configmap);
}

STEP(load_checkpoint, 3)
{
        const struct lkg_config_source source = source_of(q, 0);
        struct lkg_configmap configmap;
        int r = lkg_store_load_checkpoint(&store, &source, &configmap, &err);

        if (r == 0)
                lkg_configmap_deinit(&configmap);
        say_result(ret, r);
        lkg_buf_puts(ret, lkg_store_has_checkpoint(&store, &source) ? ", it is there" : ", it is not there");
}

/* Keep these, of one digit each. */
STEP(collect, 1)
{
        struct lkg_config_source keep[SAMPLE_OBJECTS];
        size_t n = 0;

        for (const char *d = q->parts[0]; *d; d++)
                assert_int_equal(sample_source((unsigned)(*d - '0'), &keep[n++]), 0);
        say_result(ret, lkg_store_collect(&store, keep, n, &err));
}

/* ---- pointers, documents, trials ---- */

/* When it was assigned, and by the reference of which Node; all else is local. */
STEP(save_pointers, 2)
{
        saved = (struct lkg_pointers){ .assigned_ns = strtoull(q->parts[0], NULL, 10) };
        (void)snprintf(saved.node_uid, sizeof(saved.node_uid), "%s", q->parts[1]);
        say_result(ret, lkg_store_save_pointers(&c, &saved, &err));
}

STEP(load_pointers, 0)
{
        struct lkg_pointers back;

        assert_int_equal(lkg_store_load_pointers(&c, &back, &report), 0);
        lkg_buf_printf(ret, "%s, assigned '%s' by '%s', active '%s', good %" PRIu64 ", rollback '%s'",
                       memcmp(&saved, &back, sizeof(back)) == 0 ? "as saved" : "not as saved",
                       back.assigned.uid, back.node_uid, back.active.uid, back.good.generation,
                       back.rollback.reason);
}

/* KEEP TEXT; the name that it has then */
STEP(save_document, 2)
{
        char sha256[LKG_SHA256_HEX];

        assert_int_equal(lkg_store_save_document(&c, q->parts[1], strlen(q->parts[1]),
                                                 *q->parts[0] == '-' ? NULL : q->parts[0], sha256, &err),
                         0);
        lkg_buf_puts(ret, sha256);
}

STEP(load_document, 1)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r = lkg_store_load_document(&c, q->parts[0], &text, &size, &err);

        if (r < 0)
                say_result(ret, r);
        else
                lkg_buf_printf(ret, "%zu bytes %s", size, text);
}

/* The sample's, with a clock that has run for eight seconds, and the longest possible duration. */
STEP(save_trial, 3)
{
        const struct lkg_config_source source = source_of(q, 0);
        struct lkg_trial trial = sample_trial();

        trial.running_since_ns = 1000 * LKG_NSEC_PER_SEC;
        trial.rules.duration_ns = INT64_MAX;
        say_result(ret, lkg_store_save_trial(&c, &source, &trial, 1008 * LKG_NSEC_PER_SEC, &err));
}

STEP(load_trial, 3)
{
        const struct lkg_config_source source = source_of(q, 0);
        struct lkg_trial back;

        assert_int_equal(lkg_store_load_trial(&c, &source, &back, &report), 0);
        lkg_buf_printf(ret, "%s, clock %s, ", lkg_trial_state_name(back.state),
                       back.running_since_ns ? "runs" : "stopped");
        dump_trial(ret, &back);
}

/* ---- releases ---- */

STEP(release, 1)
{
        say_result(ret, lkg_store_set_release(&c, q->parts[0], &err));
        lkg_buf_printf(ret, " '%s'", c.release);
}

/* When a release was used last, in seconds. */
STEP(used, 2)
{
        const struct timespec times[2] = { { atol(q->parts[1]), 0 }, { atol(q->parts[1]), 0 } };
        char path[256];

        (void)snprintf(path, sizeof(path), "dynamic/kubelet/releases/%s", q->parts[0]);
        assert_int_equal(utimensat(fd, path, times, 0), 0);
}

/* ---- what counts against a configuration ---- */

/* What the disk says becomes what is known; it is compared where it was known before. */
STEP(load_bad, 0)
{
        lkg_bad_list_deinit(&list);
        say_result(ret, lkg_store_load_bad(&c, &list, &report));
}

STEP(marks, 0)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf here = LKG_BUF_INIT, there = LKG_BUF_INIT;
        struct lkg_bad_list back;

        assert_int_equal(lkg_store_load_bad(&c, &back, &report), 0);
        dump_bad(&here, &list);
        dump_bad(&there, &back);
        assert_int_equal(list.n_items, back.n_items);
        if (list.n_items > 0)
                assert_string_equal(here.data, there.data);
        for (size_t i = 0; i < list.n_items; i++)
                lkg_buf_printf(ret, "%s: %s%s", list.items[i].id, list.items[i].reason,
                               i + 1 < list.n_items ? "; " : "");
        lkg_bad_list_deinit(&back);
}

static int mark(const char *id, uint64_t time_ns, const char *reason)
{
        struct lkg_bad bad = { .time_ns = time_ns };

        (void)snprintf(bad.id, sizeof(bad.id), "%s", id);
        (void)snprintf(bad.reason, sizeof(bad.reason), "%s", reason);
        return lkg_store_mark_bad(&c, &list, &bad, &err);
}

STEP(mark, 2)
{
        say_result(ret, mark(q->parts[0], 1, q->parts[1]));
}

/* A sample's own mark: its number, and its suspects or "". */
STEP(mark_sample, 2)
{
        LKG_CLEANUP(lkg_value_unrefp)
        struct lkg_value *suspects = *q->parts[1] ? lkg_suspects_unknown(q->parts[1]) : NULL;
        struct lkg_bad bad = sample_bad((unsigned)atoi(q->parts[0]));

        bad.suspects = suspects;
        say_result(ret, lkg_store_mark_bad(&c, &list, &bad, &err));
}

STEP(suspects, 1)
{
        const struct lkg_bad *bad = lkg_bad_named(&list, q->parts[0]);

        if (bad->suspects)
                lkg_render_json_compact(bad->suspects, ret);
        else
                lkg_buf_puts(ret, "none");
}

/* Which mark a source has, and its content in any version. */
STEP(find, 3)
{
        const struct lkg_config_source source = source_of(q, 0);
        const struct lkg_bad *bad = lkg_bad_find(&list, &source);
        const struct lkg_bad *content = lkg_bad_same_content(&list, &source);

        lkg_buf_printf(ret, "%s; content %s", bad ? bad->id : "none", content ? content->id : "none");
}

STEP(forgive, 1)
{
        say_result(ret, lkg_store_forgive(&c, &list, strcmp(q->parts[0], "all") == 0 ? NULL : q->parts[0],
                                          false, &err));
}

/* How many starts are on record, and the last one's process. */
STEP(load_starts, 0)
{
        struct lkg_startups back;

        assert_int_equal(lkg_store_load_startups(&c, &back, &report), 0);
        lkg_buf_printf(ret, "%zu", back.n_items);
        if (back.n_items > 0)
                lkg_buf_printf(ret, ", the last of pid %d", back.items[back.n_items - 1].pid);
}

STEP(starts, 1)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf here = LKG_BUF_INIT, there = LKG_BUF_INIT;
        const struct lkg_startups s = sample_startups((unsigned)atoi(q->parts[0]));
        struct lkg_startups back;

        assert_int_equal(lkg_store_save_startups(&c, &s, &err), 0);
        assert_int_equal(lkg_store_load_startups(&c, &back, &report), 0);
        dump_startups(&here, &s);
        dump_startups(&there, &back);
        assert_string_equal(here.data, there.data);
        step_load_starts(q, ret);
}

ROWS_WITH(store, rows_steps, NULL, end)

/* ---- what no row can say ---- */

static int begin(void **state)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;

        (void)state;
        step_steps(NULL, NULL);
        step_open(NULL, &said);
        return is_open ? 0 : -1;
}

/* Landlock of Linux 5.13 to 5.18 forbids links between directories, whatever the rules are. */
static bool forbid_links(void)
{
        struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_CHAR };
        int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

        return ruleset >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
}

static ino_t list_inode(void)
{
        struct stat st;

        assert_int_equal(fstatat(fd, "dynamic/kubelet/releases/unknown/bad", &st, 0), 0);
        return st.st_ino;
}

/* Still all at once: another list, of copies, takes the place of the old one. */
TEST_WITH(test_forgive_where_nothing_can_be_linked, begin, end)
{
        ino_t before;
        int status;
        pid_t pid;

        assert_int_equal(mark("a@1", 1, "test"), 0);
        assert_int_equal(mark("b@1", 1, "test"), 0);
        assert_int_equal(mark("b@2", 1, "test"), 0);
        before = list_inode();
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(forbid_links() ? lkg_store_forgive(&c, &list, "b", false, &err) : ENOSYS);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == ENOSYS) {
                print_message("this kernel has no Landlock\n");
                assert_int_equal(lkg_store_forgive(&c, &list, "b", false, &err), 2);
        } else {
                assert_int_equal(WEXITSTATUS(status), 2);
        }
        lkg_bad_list_deinit(&list);
        assert_int_equal(lkg_store_load_bad(&c, &list, &report), 0);
        assert_true(list_inode() != before);
        assert_int_equal(list.n_items, 1);
        assert_string_equal(list.items[0].id, "a@1");
}

TEST_WITH(test_oldest_mark_goes_first, begin, end)
{
        char id[16];

        for (unsigned i = 0; i <= LKG_BAD_MAX; i++) {
                (void)snprintf(id, sizeof(id), "u@%u", i);
                assert_int_equal(mark(id, 1000 + (i + 100) % (LKG_BAD_MAX + 1), "test"), 0);
        }
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        assert_null(lkg_bad_named(&list, "u@157"));  /* the oldest */
        assert_int_equal(mark("new", 1, "test"), 0); /* older than all, but explicitly requested */
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        lkg_bad_list_deinit(&list);
        assert_int_equal(lkg_store_load_bad(&c, &list, &report), 0);
        assert_int_equal(list.n_items, LKG_BAD_MAX);
        assert_string_equal(list.items[0].id, "new");
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
