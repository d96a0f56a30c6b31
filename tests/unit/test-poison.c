/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a successor concludes from the note of a dead engine, and which conclusions survive, in steps: rows/poison.rows,
 * docs/decisions/012-poison.md. Rule: docs/specification.md 6.4.
 */
#include <fcntl.h>
#include <signal.h>

#include <lkg/file.h>
#include <lkg/store.h>

#include "rows.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int fd = -EBADF; /* runtime and state directory */
static struct lkg_poison poison;
static const char *const three[] = { "base", "10-a", "20-b" };
static const char *const ends[] = { [LKG_END_UNKNOWN] = "unknown",
                                    [LKG_END_SIGNAL] = "signal",
                                    [LKG_END_EXIT] = "exit",
                                    [LKG_END_TIME] = "time",
                                    [LKG_END_MEMORY] = "memory" };

static int remove_dir(void **state)
{
        (void)state;
        if (poison.note)
                lkg_poison_close(&poison);
        poison = (struct lkg_poison){ 0 };
        if (fd < 0)
                return 0;
        fd = lkg_close(fd);
        return tmpdir_remove(top);
}

STEP(steps, 0)
{
        assert_int_equal(remove_dir(NULL), 0);
        assert_int_equal(tmpdir_make(top), 0);
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
}

/* An engine starts, maybe with a virtual directory: what does it refuse, and what do its findings say of the records? */
STEP(begin, 1)
{
        static const char *const whats[] = { "layer", "together", "object", "read" };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_poison_open(fd, fd, q->parts[0], &poison, &report, &err), 0);
        assert_non_null(poison.note);
        if (!poison.n_items)
                lkg_buf_puts(ret, "nothing");
        for (size_t i = 0; i < poison.n_items; i++)
                lkg_buf_printf(ret, "%s%s '%s' because of %s %d%s%s%s", i ? ", " : "",
                               whats[poison.items[i].what], poison.items[i].file, ends[poison.items[i].end],
                               poison.items[i].status, *poison.items[i].source ? ", source " : "",
                               poison.items[i].source, poison.items[i].lifted ? ", lifted" : "");
        if (report.n_findings)
                lkg_buf_printf(ret, " %zu warnings of %zu findings", report.n_severity[LKG_WARNING],
                               report.n_findings);
        lkg_buf_printf(ret, " (%u known)", (unsigned)poison.note->n_known);
}

/* It dies without closing anything: what the supervisor records, and the status. */
STEP(die, 2)
{
        enum lkg_judging_end end = LKG_END_UNKNOWN;

        if (strcmp(q->parts[0], "itself") == 0)
                end = (enum lkg_judging_end)poison.note->end;
        else
                while (strcmp(ends[end], q->parts[0]) != 0)
                        end++;
        poison.note->end = end;
        poison.note->end_status = (int)strtol(q->parts[1], NULL, 10);
        poison.note = lkg_judging_close(poison.note);
        free(poison.items);
        poison = (struct lkg_poison){ 0 };
}

STEP(close, 0)
{
        lkg_poison_close(&poison);
        poison = (struct lkg_poison){ 0 };
}

STEP(reboot, 0)
{
        (void)unlinkat(fd, LKG_JUDGING_NAME, 0);
}

static bool admits(const char *component, enum lkg_admit_what what, const char *file, const char *sha256,
                   const char *by, char **ret_why)
{
        const struct lkg_content content = { what, file, sha256, 1 };
        int r = lkg_poison_admit(&poison, component, &content, by, ret_why);

        assert_int_equal(!*ret_why, r == 0);
        assert_true(r == 0 || r == -EKEYREJECTED);
        return r == 0;
}

static void say(struct lkg_buf *ret, enum lkg_admit_what what, const char *file, const char *sha256,
                const char *by)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;

        lkg_buf_puts(ret, admits("kubelet", what, file, sha256, by, &why) ? "yes" : "refused");
}

/* May it be used? FILE SHA256 */
STEP(layer, 2)
{
        say(ret, LKG_ADMIT_LAYER, q->parts[0], q->parts[1], "");
}

STEP(layer_of, 3)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;

        lkg_buf_puts(ret,
                     admits(q->parts[0], LKG_ADMIT_LAYER, q->parts[1], q->parts[2], "", &why) ? "yes" : why);
}

/* Why not? */
STEP(words, 2)
{
        LKG_CLEANUP(lkg_freep) char *why = NULL;

        assert_false(admits("kubelet", LKG_ADMIT_LAYER, q->parts[0], q->parts[1], "", &why));
        lkg_buf_puts(ret, strstr(why, "write now to "));
}

/* SHA256, command line */
STEP(together, 2)
{
        say(ret, LKG_ADMIT_TOGETHER, "", q->parts[0], q->parts[1]);
}

STEP(object, 2)
{
        say(ret, LKG_ADMIT_OBJECT, q->parts[0], q->parts[1], "");
}

STEP(read, 2)
{
        say(ret, LKG_ADMIT_READ, q->parts[0], q->parts[1], "");
}

STEP(judged, 2)
{
        lkg_poison_judged(&poison, "kubelet", q->parts[0], q->parts[1]);
}

STEP(finished, 0)
{
        lkg_poison_finished(&poison);
}

STEP(done, 0)
{
        lkg_poison_done(&poison);
}

/* Three layers are read, merged, judged; then the loop starts over. */
STEP(judge, 1)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(three); i++)
                say(ret, LKG_ADMIT_LAYER, three[i], q->parts[0], "");
        say(ret, LKG_ADMIT_TOGETHER, "", q->parts[0], "");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(three); i++)
                lkg_poison_judged(&poison, "kubelet", three[i], q->parts[0]);
        lkg_poison_done(&poison);
        assert_null(strstr(ret->data, "refused"));
        lkg_buf_reset(ret);
}

/* So many layers more than the note holds. */
STEP(fill, 1)
{
        unsigned n = LKG_JUDGING_ITEMS + (unsigned)strtoul(q->parts[0], NULL, 10);
        char file[16];

        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(file, sizeof(file), i + 1 < n ? "%u" : "not-noted", i);
                say(ret, LKG_ADMIT_LAYER, file, "1", "");
        }
        assert_null(strstr(ret->data, "refused"));
        lkg_buf_reset(ret);
}

STEP(looks_again, 0)
{
        lkg_buf_puts(ret, poison.look_again ? "yes" : "no");
}

STEP(gives_up, 0)
{
        lkg_buf_puts(ret, lkg_poison_give_up(&poison) ? "yes" : "no");
}

/* ---- records ---- */

STEP(persist, 0)
{
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_poison_persist(&poison, &err), 0);
}

STEP(save, 0)
{
        struct lkg_error err = { 0 };

        assert_int_equal(lkg_poison_save(&poison, &err), 0);
}

/* What was refused last came with this. */
STEP(source, 1)
{
        lkg_poison_set_source(&poison, lkg_poison_last(&poison), q->parts[0]);
}

/* COMPONENT SOURCE */
STEP(lift, 2)
{
        lkg_poison_lift(&poison, q->parts[0], strcmp(q->parts[1], "all") == 0 ? NULL : q->parts[1]);
}

static void put(const char *name, const char *text)
{
        assert_int_equal(lkg_write_file_atomic(fd, name, text, strlen(text), 0600, false, NULL), 0);
}

STEP(records, 1)
{
        put(LKG_REFUSED_NAME, q->parts[0]);
        put(LKG_JUDGED_NAME, q->parts[0]);
}

/* In the record of what is refused. */
STEP(replace, 2)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        char *at;

        assert_int_equal(lkg_record_read_text(fd, LKG_REFUSED_NAME, 1 << 20, &text, &size, NULL), 0);
        at = strstr(text, q->parts[0]);
        assert_non_null(at);
        lkg_buf_printf(&buf, "%.*s%s%s", (int)(at - text), text, q->parts[1], at + strlen(q->parts[0]));
        put(LKG_REFUSED_NAME, buf.data);
}

ROWS_WITH(poison, rows_steps, NULL, remove_dir)
