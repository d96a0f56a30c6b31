/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer stack over real directories, step by step: what is read, merged, kept and watched when files change: rows/stack.rows.
 * tests/golden compares single layers and findings.
 */
#define UNIT_OWN_MAIN

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "config-helpers.h"
#include "rows.h"
#include "tmpdir.h"

#include <lkg/text.h>
#include <lkg/limits.h>
#include <lkg/stack.h>

#define HEADER    "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
#define KEPT_MAX  8
#define LAYER_MAX 1200

static char root[TMPDIR_MAX];
static int root_fd = -EBADF;
static struct lkg_stack *stack;
static struct lkg_candidate *kept[KEPT_MAX]; /* the last one first */
static struct lkg_stack_stats before;
static unsigned cookies[LAYER_MAX];
static const char *unsettled, *refused, *refused_file, *in_work; /* names in the source; NULL = none */
static struct lkg_buf asked; /* what the admission was asked about, and (+) what was judged */

static const char *at(const char *name)
{
        static char path[4][256];
        static unsigned next;

        next = (next + 1) % 4;
        (void)snprintf(path[next], sizeof(path[next]), "%s%s%s", root, *name ? "/" : "", name);
        return path[next];
}

static void put(const char *name, const char *header, const char *text)
{
        FILE *file = fopen(at(name), "we");

        assert_non_null(file);
        assert_true(fprintf(file, "%s%s", header, text) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* The clock that file times are compared with: an hour ahead, so files are old enough for their identity to be reliable. */
static uint64_t late_clock(void)
{
        return lkg_realtime_ns() + 3600 * LKG_NSEC_PER_SEC;
}

static bool is_unsettled(const char *path, const char *sha256, void *userdata)
{
        (void)sha256;
        (void)userdata;
        return unsettled && strcmp(path, at(unsettled)) == 0;
}

/* ---- admission ---- */

static int admit(const struct lkg_content *content, char **ret_why, void *userdata)
{
        const char *slash = strrchr(content->file, '/'), *name = slash ? slash + 1 : content->file;

        (void)userdata;
        assert_int_equal(strlen(content->sha256), 64);
        in_work = *name ? name : "all";
        if (content->what == LKG_ADMIT_READ) {
                if (!refused_file || strcmp(refused_file, name) != 0)
                        return 0;
                *ret_why = strdup("whoever opens it is killed");
                return -EKEYREJECTED;
        }
        assert_int_equal(content->what, *content->file ? LKG_ADMIT_LAYER : LKG_ADMIT_TOGETHER);
        lkg_buf_printf(&asked, "%s %zu, ", *name ? name : "all", content->size);
        if (!refused || strcmp(refused, *name ? name : "all") != 0)
                return 0;
        *ret_why = strdup("it bites");
        return -EKEYREJECTED;
}

static void note_finished(void *userdata)
{
        (void)userdata;
        in_work = NULL;
}

static void note_judged(const char *file, const char *sha256, void *userdata)
{
        const char *slash = strrchr(file, '/');

        (void)sha256;
        (void)userdata;
        lkg_buf_printf(&asked, "+%s, ", slash ? slash + 1 : file);
}

/* ---- what is found ---- */

static void put_document(const struct lkg_value *doc, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *shown = lkg_value_clone_shallow(doc);
        const struct lkg_value *gates;

        if (strcmp(lkg_map_get_string(doc, "kind") ? lkg_map_get_string(doc, "kind") : "",
                   "KubeletConfiguration") == 0) {
                (void)lkg_map_remove(shown, "kind", 4);
                (void)lkg_map_remove(shown, "apiVersion", 10);
        }
        gates = lkg_map_get(shown, "featureGates");
        if (gates && lkg_value_size(gates) > 10)
                lkg_buf_printf(ret, " last %s of %zu, 00990 %s", json(lkg_map_get(shown, "last")),
                               lkg_value_size(gates),
                               lkg_map_get(gates, "Gate00990") ? json(lkg_map_get(gates, "Gate00990"))
                                                               : "unset");
        else if (lkg_value_size(shown) > 20)
                lkg_buf_printf(ret, " %zu fields", lkg_value_size(shown));
        else
                lkg_buf_printf(ret, " %s", json(shown));
}

/* `!`: it could not be read, `?`: it or one below could not, `*`: another one than before. */
static void put_layers(const struct lkg_candidate *candidate, struct lkg_buf *ret)
{
        assert_true(candidate->n_layers < LAYER_MAX);
        lkg_buf_puts(ret, "; of");
        for (size_t i = 0; i < candidate->n_layers; i++) {
                const struct lkg_layer_info *layer = &candidate->layers[i];
                bool changed = cookies[i] != layer->cookie;

                cookies[i] = layer->cookie;
                if (candidate->n_layers < 20)
                        lkg_buf_printf(ret, " %s%s%s%s", layer->name, layer->doc || layer->idle ? "" : "!",
                                       layer->whole ? "" : "?", changed ? "*" : "");
        }
        if (candidate->n_layers >= 20)
                lkg_buf_printf(ret, " %zu layers", candidate->n_layers);
        if (!candidate->has_base)
                lkg_buf_puts(ret, ", no base");
        if (!candidate->has_dropin_dir)
                lkg_buf_puts(ret, ", no drop-in directory");
}

/* All findings, with the source directory as `@`. */
static void put_findings(const struct lkg_report *report, struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_report_format(report, NULL);

        if (report->n_findings > 0)
                lkg_buf_printf(ret, "; %u errors, %u warnings, %zu listed\n",
                               (unsigned)report->n_severity[LKG_ERROR],
                               (unsigned)report->n_severity[LKG_WARNING], report->n_findings);
        assert_null(strstr(text, "s3cret"));
        for (const char *from = text, *next; report->n_findings < 8 && *from; from = next) {
                next = strstr(from, root);
                lkg_buf_printf(ret, "%.*s%s", next ? (int)(next - from) : -1, from, next ? "@" : "");
                next = next ? next + strlen(root) : from + strlen(from);
        }
}

static void put_candidate(struct lkg_candidate *fresh, bool count, struct lkg_buf *ret)
{
        static const char *const states[] = { [LKG_CANDIDATE_NONE] = "nothing",
                                              [LKG_CANDIDATE_VALID] = "valid",
                                              [LKG_CANDIDATE_INVALID] = "invalid",
                                              [LKG_CANDIDATE_NAME_TAKEN] = "name taken" };
        const struct lkg_stack_stats *now = lkg_stack_stats(stack);
        size_t i = 0;

        while (i < KEPT_MAX && kept[i] != fresh)
                i++;
        if (i == 0)
                lkg_buf_puts(ret, "the same");
        else
                lkg_buf_printf(ret, "%s%s", i < KEPT_MAX ? "one of before, " : "", states[fresh->state]);
        if (i > 0 && fresh->doc)
                put_document(fresh->doc, ret);
        if (i > 0 && kept[0] && fresh->doc && kept[0]->doc == fresh->doc)
                lkg_buf_puts(ret, " as before");
        if (i > 0) {
                put_layers(fresh, ret);
                put_findings(&fresh->report, ret);
        }
        if (count)
                lkg_buf_printf(ret, "; walks %u reads %u parses %u merges %u",
                               (unsigned)(now->n_walks - before.n_walks),
                               (unsigned)(now->n_reads - before.n_reads),
                               (unsigned)(now->n_parses - before.n_parses),
                               (unsigned)(now->n_merges - before.n_merges));
        if (asked.size > 0)
                lkg_buf_printf(ret, "; asked %s in work: %s", asked.data, in_work ? in_work : "nothing");
        before = *now;
        lkg_buf_reset(&asked);
        lkg_candidate_unref(kept[KEPT_MAX - 1]);
        memmove(kept + 1, kept, sizeof(kept) - sizeof(*kept));
        kept[0] = fresh;
}

/* ---- steps ---- */

static void end(void)
{
        for (size_t i = 0; i < KEPT_MAX; i++)
                kept[i] = lkg_candidate_unref(kept[i]);
        stack = lkg_stack_free(stack);
        root_fd = lkg_close(root_fd);
        if (*root)
                assert_int_equal(tmpdir_remove(root), 0);
        *root = '\0';
}

static void begin(const struct question *q)
{
        struct lkg_stack_config config = { .component = "kubelet",
                                           .base = "kubelet.conf",
                                           .base_is_view_name = true,
                                           .dropin_dir = "kubelet.conf.d",
                                           .instance = "kubelet-instance.conf",
                                           .patches_dir = rows_has(q, "patches") ? "patches" : "",
                                           .patches_target = "kubeletconfiguration",
                                           .max_dropins = rows_number(q, "dropins"),
                                           .max_bytes = rows_number(q, "bytes"),
                                           .realtime_ns = rows_has(q, "late") ? late_clock : NULL };
        const struct lkg_admission admission = { .admit = admit,
                                                 .finished = note_finished,
                                                 .judged = note_judged };
        static char base[128], dir[128]; /* the stack borrows them */

        end();
        unsettled = refused = refused_file = in_work = NULL;
        lkg_buf_reset(&asked);
        memset(&before, 0, sizeof(before));
        memset(cookies, 0, sizeof(cookies));
        assert_int_equal(tmpdir_make(root), 0);
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        config.source_fd = root_fd;
        config.source_path = root;
        if (rows_has(q, "elsewhere")) {
                (void)snprintf(base, sizeof(base), "%s/a/b/c/base.yaml", root);
                (void)snprintf(dir, sizeof(dir), "%s/x/y.d", root);
                config = (struct lkg_stack_config){ .component = "kubelet",
                                                    .source_fd = root_fd,
                                                    .source_path = root,
                                                    .base = base,
                                                    .dropin_dir = dir };
        }
        stack = lkg_stack_new(&config);
        lkg_stack_set_unsettled(stack, is_unsettled, NULL);
        if (rows_has(q, "admission"))
                lkg_stack_set_admission(stack, &admission);
        if (!rows_has(q, "sample"))
                return;
        put("kubelet.conf", HEADER, "maxPods: 110\n");
        assert_int_equal(mkdir(at("kubelet.conf.d"), 0755), 0);
        put("kubelet.conf.d/10-a.conf", HEADER, "maxPods: 10\n");
        put("kubelet.conf.d/20-b.conf", HEADER, "x: {z: 1}\n");
}

/* `look`, with a name: only there something may have changed; with name and text: over a base in memory. */
static void look(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_stack_remote remote = { .name = "a",
                                                 .file = "kube-system/a:kubelet",
                                                 .text = q->n_parts == 3 ? q->parts[2] : "",
                                                 .size = q->n_parts == 3 ? strlen(q->parts[2]) : 0 };
        const char *const paths[] = { q->n_parts == 2 ? at(q->parts[1]) : "" };
        bool again = strcmp(q->parts[0], "over") == 0;
        struct lkg_candidate *fresh = NULL;
        struct lkg_error err = { 0 };

        if (!again)
                assert_int_equal(
                        lkg_stack_look(stack, q->n_parts == 2 ? paths : NULL, q->n_parts == 2, &err), 0);
        assert_int_equal(lkg_stack_over(stack, q->n_parts == 3 ? &remote : NULL, &fresh, &err), 0);
        put_candidate(fresh, rows_has(q, "late"), ret);
}

static void put_watches(struct lkg_buf *ret)
{
        const struct lkg_stack_watch *watches;
        size_t n = lkg_stack_watches(stack, &watches);

        for (size_t i = 0; i < n; i++) {
                if (strncmp(watches[i].path, root, strlen(root)) != 0)
                        continue; /* on the way to it */
                assert_true(i == 0 || strcmp(watches[i - 1].path, watches[i].path) < 0);
                lkg_buf_printf(ret, "@%s%s", watches[i].path + strlen(root),
                               watches[i].recursive_member ? " (all)" : "");
                for (size_t k = 0; k < watches[i].n_names; k++)
                        lkg_buf_printf(ret, "%s%s", k ? ", " : ": ", watches[i].names[k]);
                lkg_buf_puts(ret, "; ");
        }
}

static void put_many(unsigned n)
{
        for (unsigned i = 0; i < n; i++) {
                char name[64], text[160];

                (void)snprintf(name, sizeof(name), "kubelet.conf.d/%05u.conf", i);
                (void)snprintf(text, sizeof(text), "featureGates: {Gate%05u: true}\nlast: %u\n", i, i);
                put(name, HEADER, text);
        }
}

/* As many keys with a warning each, and then all of them again, which is an error each. */
static void put_warnings(unsigned n, unsigned times)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        for (unsigned i = 0; i < n * times; i++)
                lkg_buf_printf(&text, "a%u: {$patch: x}\n", i % n);
        put("kubelet.conf.d/10-a.conf", HEADER, text.data);
}

/* The name of a part, which lives as long as the program. */
static const char *name_of(const struct question *q)
{
        static char names[8][64];
        static unsigned next;

        if (strcmp(q->parts[1], "-") == 0)
                return NULL;
        next = (next + 1) % 8;
        (void)snprintf(names[next], sizeof(names[next]), "%s", q->parts[1]);
        return names[next];
}

static void change(const struct question *q, const char *word, struct lkg_buf *ret)
{
        const char *name = q->parts[1];
        int r = -1;

        if (strcmp(word, "put") == 0) {
                put(name, *q->parts[2] == '!' ? "" : HEADER,
                    *q->parts[2] == '!' ? q->parts[2] + 1 : q->parts[2]);
                r = 0;
        } else if (strcmp(word, "mkdir") == 0) {
                r = mkdir(at(name), 0755);
        } else if (strcmp(word, "rm") == 0) {
                r = unlink(at(name));
        } else if (strcmp(word, "mv") == 0) {
                r = rename(at(name), at(q->parts[2]));
        } else if (strcmp(word, "ln") == 0) {
                r = symlink(name, at(q->parts[2]));
        } else if (strcmp(word, "fifo") == 0) {
                r = mkfifo(at(name), 0600);
        } else if (strcmp(word, "touch") == 0) {
                r = utimensat(root_fd, name, NULL, 0);
        } else if (strcmp(word, "mark") == 0) {
                r = setxattr(at(name), "user.lkgfs.fallback", "1", 1, 0);
                if (r < 0 && (errno == ENOTSUP || errno == EPERM)) /* no user xattrs on this file system */
                        r = unlink(at(name));
        }
        if (r < 0)
                lkg_buf_printf(ret, "%s %s: %m", word, name);
}

static void say_step(const struct question *q, struct lkg_buf *ret)
{
        const char *word = q->parts[0];

        if (q->begins)
                begin(q);
        if (strcmp(word, "look") == 0 || strcmp(word, "over") == 0)
                look(q, ret);
        else if (strcmp(word, "watches") == 0)
                put_watches(ret);
        else if (strcmp(word, "knows") == 0)
                lkg_buf_puts(ret, lkg_stack_knows(stack, at(q->parts[1])) ? "yes" : "no");
        else if (strcmp(word, "unsettled") == 0)
                unsettled = name_of(q);
        else if (strcmp(word, "refuse") == 0)
                refused = name_of(q);
        else if (strcmp(word, "refuse-file") == 0)
                refused_file = name_of(q);
        else if (strcmp(word, "many") == 0)
                put_many((unsigned)strtoul(q->parts[1], NULL, 10));
        else if (strcmp(word, "warnings") == 0)
                put_warnings((unsigned)strtoul(q->parts[1], NULL, 10),
                             (unsigned)strtoul(q->parts[2], NULL, 10));
        else
                change(q, word, ret);
}

static const struct operation operations[] = { { "stack", say_step }, { 0 } };

ROWS(stack, operations)

/* ---- what no row can say ---- */

/* Same size, same inode, within one clock tick: the identity is not reliable, so the content is compared, of each layer once. */
TEST(test_a_write_within_a_tick)
{
        static const char *const args[] = { "stack", "sample" };
        const struct question q = { .args = { args[0], args[1] }, .n_args = 2 };

        begin(&q);
        for (int i = 0; i < 100; i++) {
                const char *const paths[] = { at("kubelet.conf.d/10-a.conf") };
                struct lkg_candidate *fresh = NULL;
                struct lkg_stack_stats last = *lkg_stack_stats(stack);
                struct lkg_error err = { 0 };
                char text[32];

                (void)snprintf(text, sizeof(text), "maxPods: %d\n", 10 + i % 50);
                put("kubelet.conf.d/10-a.conf", HEADER, text);
                assert_int_equal(lkg_stack_look(stack, i < 50 ? NULL : paths, i >= 50, &err), 0);
                assert_int_equal(lkg_stack_over(stack, NULL, &fresh, &err), 0);
                (void)snprintf(text, sizeof(text), "%d", 10 + i % 50);
                assert_string_equal(json(lkg_map_get(fresh->doc, "maxPods")), text);
                if (i > 50)
                        assert_in_range(lkg_stack_stats(stack)->n_reads, last.n_reads + 1,
                                        last.n_reads + fresh->n_layers);
                lkg_candidate_unref(fresh);
        }
}

TEST(test_source_directory_is_gone)
{
        const struct question q = { .n_args = 0 };
        struct lkg_candidate *fresh = NULL;
        struct lkg_error err = { 0 };

        begin(&q);
        assert_int_equal(rmdir(root), 0);
        assert_int_equal(lkg_stack_refresh(stack, &fresh, &err), -ENOENT);
        assert_non_null(strstr(err.message, root));
        assert_int_equal(mkdir(root, 0755), 0); /* for end() */
}

static int finish(void **state)
{
        (void)state;
        end();
        lkg_buf_deinit(&asked);
        return 0;
}

int main(void)
{
        return run_all(NULL, finish);
}
