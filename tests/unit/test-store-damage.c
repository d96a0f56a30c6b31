/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file of the store, and every field in it, is damaged in turn: nothing crashes, a finding names the
 * file, and the content of other files is still used. Rule: docs/specification.md 4.16.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <lkg/documents.h>
#include <lkg/file.h>

#include "unit.h"
#include "tests/lib/store-sample.h"
#include "tmpdir.h"

#define BAD_ID   "22222222-aaaa-4bbb-8ccc-000000000002@102"
#define RELEASES "dynamic/kubelet/releases/" SAMPLE_RELEASE

struct place {
        char top[TMPDIR_MAX];
        int fd;
        struct lkg_store store;
        struct lkg_store_component c;
        struct lkg_buf before; /* the state as text */
};

/* The records, and the prefixes of the state's lines that come from them. */
static const struct file {
        const char *path;
        const char *lines[5];
} files[] = {
        { "dynamic/kubelet/pointers.json", { "assigned", "active", "good", "rollback", "document" } },
        { "dynamic/kubelet/trial.json", { "trial" } },
        { RELEASES "/startups.json", { "startups", "  " } },
        { RELEASES "/bad/" BAD_ID, { "bad " BAD_ID } },
};

static int setup(void **state)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        assert_int_equal(sample_fill(p->fd), 0);
        assert_int_equal(lkg_store_open(p->fd, &p->store, &report, NULL), 0);
        assert_int_equal(lkg_store_component_open(&p->store, SAMPLE_COMPONENT, &p->c, &report, NULL), 0);
        assert_int_equal(dump_component(&p->before, &p->c, &report), 0);
        assert_int_equal(report.n_findings, 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_store_component_close(&p->c);
        lkg_store_close(&p->store);
        lkg_buf_deinit(&p->before);
        lkg_close(p->fd);
        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

static void put(struct place *p, const char *name, const void *data, size_t size)
{
        int fd;

        (void)unlinkat(p->fd, name, 0); /* it may have been set aside by a link */
        fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, data, size), 0);
        lkg_close(fd);
}

static char *get(struct place *p, const char *name, size_t *ret_size)
{
        int fd = openat(p->fd, name, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        assert_true(fd >= 0);
        assert_int_equal(lkg_read_file(fd, 1u << 20, &text, ret_size, NULL), 0);
        lkg_close(fd);
        return text;
}

static bool is_of(const struct file *file, const char *line)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(file->lines) && file->lines[i]; i++)
                if (strncmp(line, file->lines[i], strlen(file->lines[i])) == 0)
                        return true;
        return false;
}

static const char *skip_lines_of(const struct file *file, const char *text)
{
        while (*text && is_of(file, text))
                text += strcspn(text, "\n") + 1;
        return text;
}

/* Everything that does not come from @file is as before. */
static void expect_rest(struct place *p, const struct file *file, const struct lkg_buf *now,
                        const char *what)
{
        const char *a = p->before.data, *b = now->data;

        while (*(a = skip_lines_of(file, a)) && *(b = skip_lines_of(file, b))) {
                size_t n = strcspn(a, "\n") + 1;

                if (strncmp(a, b, n) != 0)
                        fail_msg("%s %s: '%.*s' became '%.*s'", file->path, what, (int)n - 1, a,
                                 (int)strcspn(b, "\n"), b);
                a += n;
                b += n;
        }
        assert_int_equal(*a, *skip_lines_of(file, b));
}

/* Reads the state. @legal: expects no finding. */
static void expect_reported(struct place *p, const struct file *file, const char *what, bool legal)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_buf now = LKG_BUF_INIT;

        assert_int_equal(dump_component(&now, &p->c, &report), 0);
        expect_rest(p, file, &now, what);
        if (legal ? report.n_findings > 0 : report.n_findings == 0)
                fail_msg("%s %s: %zu findings (%s)", file->path, what, report.n_findings,
                         report.n_findings ? report.findings[0].text : "");
        for (size_t i = 0; i < report.n_findings; i++)
                if (!report.findings[i].file || strcmp(report.findings[i].file, file->path) != 0)
                        fail_msg("%s %s: a finding about %s", file->path, what, report.findings[i].file);
        /* A mark counts, whatever its record contains. */
        assert_non_null(strstr(now.data, "bad " BAD_ID " "));
        lkg_report_deinit(&report);
        lkg_buf_deinit(&now);
}

/* ---- fields ---- */

static const struct variant {
        const char *name, *json; /* NULL = the member is missing */
        const char *legal[12];   /* fields in which it is legal */
} variants[] = {
        { "missing",
          NULL,
          { "nodeUid", "cause", "passedOver", "stableForNs", "stableNs", "calmNs", "awayNs", "judged", "bad",
            "extended" } },
        { "null", "null", { "assigned", "active", "lastKnownGood", "rollback", "source", "from" } },
        { "true", "true", { "counted", "local", "extended" } },
        { "-1", "-1", { NULL } },
        { "huge", "99999999999999999999999", { NULL } },
        { "1.5", "1.5", { NULL } },
        { "1e3", "1e3", { NULL } },
        { "empty text",
          "\"\"",
          { "namespace", "name", "sha256", "document", "boot", "nodeUid", "passedOver" } },
        { "path", "\"../x\"", { "reason" } },
        { "controls", "\"a\\u0001b\\nc\"", { NULL } },
        { "NUL", "\"a\\u0000b\"", { NULL } },
        { "not ASCII", "\"\xc3\xa9\"", { "reason" } },
        { "list", "[]", { "starts", "judged", "bad" } },
        { "list of nothing", "[null]", { NULL } },
        { "map", "{}", { NULL } },
};

static bool is_legal(const struct file *file, const struct variant *variant, const char *field)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(variant->legal) && variant->legal[i]; i++)
                if (strcmp(variant->legal[i], field) == 0)
                        return true;
        /* A mark by hand may have no reason; a rollback always has one. */
        return strcmp(variant->name, "empty text") == 0 && strcmp(field, "reason") == 0 &&
               strstr(file->path, "/bad/");
}

static struct lkg_value *decode(const char *text)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;

        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &value), 0);
        lkg_report_deinit(&report);
        return value;
}

/*
 * A copy of @value in which member number @at, counted through the whole tree, is replaced by @variant. @at
 * counts down; it is UINT_MAX when that is done. @ret_field: its name.
 */
static struct lkg_value *change(const struct lkg_value *value, const struct variant *variant, unsigned *at,
                                char ret_field[static 64])
{
        struct lkg_value *copy = lkg_value_clone_shallow(value);

        assert_non_null(copy);
        for (size_t i = 0; i < lkg_value_size(value) && *at != UINT_MAX; i++) {
                bool is_map = lkg_value_type(value) == LKG_MAP;
                const char *key = "";
                size_t size = 0;
                struct lkg_value *member =
                        is_map ? lkg_map_at(value, i, &key, &size) : lkg_list_get(value, i);

                if (is_map && (*at)-- == 0) {
                        (void)snprintf(ret_field, 64, "%s", key);
                        if (variant->json)
                                assert_true(lkg_map_set(copy, key, size, decode(variant->json)) >= 0);
                        else
                                assert_int_equal(lkg_map_remove(copy, key, size), 1);
                        assert_true(*at == UINT_MAX);
                        break;
                }
                if (lkg_value_type(member) != LKG_MAP && lkg_value_type(member) != LKG_LIST)
                        continue;
                member = change(member, variant, at, ret_field);
                if (is_map) {
                        assert_true(lkg_map_set(copy, key, size, member) >= 0);
                } else {
                        struct lkg_value *list = lkg_value_new_list(NULL, 0, 0);

                        for (size_t k = 0; k < lkg_value_size(copy); k++)
                                lkg_list_append(list,
                                                lkg_value_ref(k == i ? member : lkg_list_get(copy, k)));
                        lkg_value_unref(member);
                        lkg_value_unref(copy);
                        copy = list;
                }
        }
        return copy;
}

/* Return: whether there was a member number @at. */
static bool try_field(struct place *p, const struct file *file, const struct lkg_value *value,
                      const struct variant *variant, unsigned at)
{
        struct lkg_buf text = LKG_BUF_INIT;
        char field[64] = "", what[128];
        struct lkg_value *changed = change(value, variant, &at, field);

        if (at == UINT_MAX) {
                lkg_render(changed, LKG_FORMAT_JSON, &text);
                assert_false(lkg_buf_failed(&text));
                put(p, file->path, text.data, text.size);
                (void)snprintf(what, sizeof(what), "with %s %s", field, variant->name);
                expect_reported(p, file, what, is_legal(file, variant, field));
                lkg_buf_deinit(&text);
        }
        lkg_value_unref(changed);
        return at == UINT_MAX;
}

TEST_WITH(test_every_field, setup, teardown)
{
        struct place *p = *state;
        unsigned n = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                size_t size;
                char *text = get(p, files[i].path, &size);
                struct lkg_value *value = decode(text);

                for (size_t k = 0; k < LKG_ARRAY_SIZE(variants); k++)
                        for (unsigned at = 0; try_field(p, &files[i], value, &variants[k], at); at++)
                                n++;
                put(p, files[i].path, text, size);
                expect_reported(p, &files[i], "put back", true);
                lkg_value_unref(value);
                free(text);
        }
        assert_true(n > 800); /* all of them were found */
}

/* ---- whole files ---- */

TEST_WITH(test_every_file_cut_at_every_byte, setup, teardown)
{
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                size_t size;
                char *text = get(p, files[i].path, &size);

                for (size_t n = 0; n < size; n++) {
                        char what[64];

                        (void)snprintf(what, sizeof(what), "cut to %zu bytes", n);
                        put(p, files[i].path, text, n);
                        expect_reported(p, &files[i], what,
                                        n == size - 1); /* only the line break is missing */
                }
                put(p, files[i].path, text, size);
                free(text);
        }
}

TEST_WITH(test_every_file_foreign, setup, teardown)
{
        static const char *const texts[] = { "hello\n",
                                             "[]",
                                             "null",
                                             "{}",
                                             "{\"schemaVersion\":0}",
                                             "{\"schemaVersion\":2,\"time\":\"2026-01-02T03:04:05Z\"}",
                                             "{\"schemaVersion\":\"1\"}",
                                             "---\nschemaVersion: 1\n",
                                             "\xff\xfe{",
                                             "{\"schemaVersion\":1}{\"schemaVersion\":1}" };
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                static const char zeros[4096];
                size_t size;
                char *text = get(p, files[i].path, &size);

                for (size_t k = 0; k < LKG_ARRAY_SIZE(texts); k++) {
                        put(p, files[i].path, texts[k], strlen(texts[k]));
                        expect_reported(p, &files[i], texts[k], false);
                }
                put(p, files[i].path, zeros,
                    sizeof(zeros)); /* what some file systems leave after a power failure */
                expect_reported(p, &files[i], "zeros", false);
                put(p, files[i].path, text, size);
                free(text);
        }
}

TEST_WITH(test_something_else_in_a_file_s_place, setup, teardown)
{
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                char aside[256];
                size_t size;
                char *text = get(p, files[i].path, &size);
                bool is_mark = strstr(files[i].path, "/bad/");

                (void)snprintf(aside, sizeof(aside), "%s.damaged", files[i].path);
                for (int kind = 0; kind < 3; kind++) {
                        static const char *const names[] = { "a directory", "a FIFO", "a symlink" };

                        (void)unlinkat(p->fd, files[i].path, 0);
                        assert_int_equal(kind == 0   ? mkdirat(p->fd, files[i].path, 0700)
                                         : kind == 1 ? mkfifoat(p->fd, files[i].path, 0600)
                                                     : symlinkat("/etc/passwd", p->fd, files[i].path),
                                         0);
                        expect_reported(p, &files[i], names[kind], false);
                        if (is_mark)
                                assert_int_equal(
                                        unlinkat(p->fd, files[i].path, kind == 0 ? AT_REMOVEDIR : 0), 0);
                        else
                                assert_int_equal(unlinkat(p->fd, aside, kind == 0 ? AT_REMOVEDIR : 0), 0);
                        put(p, files[i].path, text, size);
                }
                free(text);
        }
}

TEST_WITH(test_damaged_record_is_kept_aside, setup, teardown)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct place *p = *state;
        struct lkg_pointers pointers;
        size_t size;
        char *text;

        for (int round = 0; round < 2; round++) { /* the second time it already exists */
                const char *torn = round == 0 ? "{\"schemaVersion\": 1, \"assi" : "{\"schemaVersion\": 2}";

                put(p, files[0].path, torn, strlen(torn));
                assert_int_equal(lkg_store_load_pointers(&p->c, &pointers, &report), 0);
                assert_true(lkg_config_source_is_local(&pointers.assigned));
                assert_int_equal(report.findings[report.n_findings - 1].code, round == 0 ? 4005 : 6010);
                assert_int_equal(lkg_store_save_pointers(&p->c, &pointers, NULL), 0);
                text = get(p, "dynamic/kubelet/pointers.json.damaged", &size);
                assert_string_equal(text, torn);
                free(text);
        }
        assert_int_equal(report.n_findings, 2);
        lkg_report_deinit(&report);
}

TEST_WITH(test_checkpoint_cut_at_every_byte, setup, teardown)
{
        static const char path[] = "checkpoints/11111111-aaaa-4bbb-8ccc-000000000001/100/configmap.json";
        struct place *p = *state;
        struct lkg_config_source source;
        struct lkg_configmap configmap;
        size_t size;
        char *text = get(p, path, &size);

        assert_int_equal(sample_source(0, &source), 0);
        for (size_t n = 0; n + 1 < size; n++) {
                struct lkg_error err = { 0 };

                put(p, path, text, n);
                assert_false(lkg_store_has_checkpoint(&p->store, &source));
                assert_int_equal(lkg_store_load_checkpoint(&p->store, &source, &configmap, &err), -EBADMSG);
                assert_non_null(strstr(err.message, "11111111-aaaa-4bbb-8ccc-000000000001@100"));
        }
        for (size_t n = 0; n < size;
             n++) { /* one byte is changed: valid or damaged, and never another payload */
                char *payload = strstr(text, "maxPods: 100");

                text[n] ^= 1;
                put(p, path, text, size);
                if (lkg_store_load_checkpoint(&p->store, &source, &configmap, NULL) == 0) {
                        assert_true(text + n < payload || text + n >= payload + strlen("maxPods: 100"));
                        lkg_configmap_deinit(&configmap);
                }
                text[n] ^= 1;
        }
        free(text);
}

TEST_WITH(test_release_cut_at_every_byte, setup, teardown)
{
        static const char *const foreign[] = { "../../../etc", "v1.99\nv1.98", "v1.36.3\n\n", "/", ".",
                                               "..",           "v 1" };
        struct place *p = *state;

        for (size_t n = 0; n < strlen(SAMPLE_RELEASE) + LKG_ARRAY_SIZE(foreign); n++) {
                struct lkg_report report = LKG_REPORT_INIT;
                struct lkg_store_component c;

                if (n < strlen(SAMPLE_RELEASE))
                        put(p, "dynamic/kubelet/release", SAMPLE_RELEASE, n);
                else
                        put(p, "dynamic/kubelet/release", foreign[n - strlen(SAMPLE_RELEASE)],
                            strlen(foreign[n - strlen(SAMPLE_RELEASE)]));
                assert_int_equal(lkg_store_component_open(&p->store, SAMPLE_COMPONENT, &c, &report, NULL),
                                 0);
                assert_string_equal(c.release, SAMPLE_RELEASE); /* the last one used */
                assert_int_equal(report.n_findings, 1);
                assert_string_equal(report.findings[0].file, "dynamic/kubelet/release");
                lkg_store_component_close(&c);
                lkg_report_deinit(&report);
        }
}

TEST_WITH(test_foreign_entry_in_the_bad_list, setup, teardown)
{
        static const char *const names[] = { "README", "u@1:kubelet", "a b@1", "u@1.damaged@2", "local" };
        struct lkg_report report = LKG_REPORT_INIT;
        struct place *p = *state;
        struct lkg_bad_list list;
        char path[256];

        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                (void)snprintf(path, sizeof(path), RELEASES "/bad/%s", names[i]);
                put(p, path, "{}", 2);
        }
        assert_int_equal(lkg_store_load_bad(&p->c, &list, &report), 0);
        assert_int_equal(list.n_items, 4); /* README could be a uid: it counts as a mark */
        assert_int_equal(report.n_findings, LKG_ARRAY_SIZE(names));
        lkg_bad_list_deinit(&list);
        lkg_report_deinit(&report);
}
