/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations known to be bad: one file each, whose name alone makes the mark. A record that cannot be read is still a mark:
 * otherwise, what broke the node would be tried again. To allow that, remove the file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/documents.h>
#include <lkg/lifecycle.h>

#include "store-internal.h"

#define REMOVED_NAME ".bad" LKG_TMP_SUFFIX /* the old list; the next sweep removes leftovers */

/* ---- the list in memory ---- */

static int compare_bad(const void *a, const void *b)
{
        const struct lkg_bad *x = a, *y = b;

        return strcmp(x->id, y->id);
}

static void put(struct lkg_bad_list *list, const struct lkg_bad *bad) /* after LKG_GROW() */
{
        const struct lkg_bad *old = lkg_bad_named(list, bad->id);
        size_t at = list->n_items;

        if (bad->suspects)
                lkg_value_ref(bad->suspects);
        if (old) {
                lkg_value_unref(old->suspects);
                list->items[old - list->items] = *bad;
                return;
        }
        while (at > 0 && strcmp(list->items[at - 1].id, bad->id) > 0)
                at--;
        memmove(list->items + at + 1, list->items + at, (list->n_items - at) * sizeof(*list->items));
        list->items[at] = *bad;
        list->n_items++;
}

static void drop(struct lkg_bad_list *list, size_t at)
{
        lkg_value_unref(list->items[at].suspects);
        memmove(list->items + at, list->items + at + 1, (--list->n_items - at) * sizeof(*list->items));
}

/* Index of the mark that is dropped first; never @keep. */
static size_t oldest(const struct lkg_bad_list *list, const char *keep)
{
        size_t at = list->n_items;

        for (size_t i = 0; i < list->n_items; i++)
                if (strcmp(list->items[i].id, keep) != 0 &&
                    (at == list->n_items || list->items[i].time_ns < list->items[at].time_ns))
                        at = i;
        return at;
}

void lkg_bad_list_deinit(struct lkg_bad_list *list)
{
        for (size_t i = 0; i < list->n_items; i++)
                lkg_value_unref(list->items[i].suspects);
        free(list->items);
        *list = (struct lkg_bad_list){ .items = NULL };
}

static const char *const causes[_LKG_BAD_CAUSE_MAX + 1] = {
        [LKG_BAD_MARKED] = "marked",         [LKG_BAD_LOAD] = "load",
        [LKG_BAD_PARSE] = "parse",           [LKG_BAD_INVALID] = "invalid",
        [LKG_BAD_CRASHED] = "crash_loop",    [LKG_BAD_OPERATOR] = "operator",
        [LKG_BAD_UNHEALTHY] = "not_healthy",
};

#define BAD(member) LKG_MEMBER(struct lkg_bad, member)

static const struct lkg_record_row text_rows[] = {
        { "time", LKG_RECORD_TIME, BAD(time_ns) },
        { "reason", LKG_RECORD_TEXT, BAD(reason) },
        { NULL },
};
static const struct lkg_record_row cause_rows[] = {
        { "cause", LKG_RECORD_WORD, BAD(cause), .optional = true, .words = causes },
        { NULL },
};

/* For records of earlier versions: the cause, derived from the start of the reason. */
static enum lkg_bad_cause cause_of_words(const char *reason)
{
        static const struct {
                const char *begins;
                enum lkg_bad_cause cause;
        } rows[] = {
                { "current failed trial period", LKG_BAD_CRASHED },
                { "operator request", LKG_BAD_OPERATOR },
                { "failed to load current", LKG_BAD_LOAD },
                { "failed to parse current", LKG_BAD_PARSE },
                { "failed to validate current", LKG_BAD_INVALID },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                if (strncmp(reason, rows[i].begins, strlen(rows[i].begins)) == 0)
                        return rows[i].cause;
        return LKG_BAD_MARKED;
}

static void put_suspects(const struct lkg_value *suspects, struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_json_compact(suspects, &buf);
        lkg_json_rendered(json, "suspects", buf.data, buf.size);
}

static void put_record(const struct lkg_bad *bad, struct lkg_json *json)
{
        lkg_record_begin(json, LKG_JSON_TIGHT, text_rows, bad);
        lkg_json_map(json, "source", LKG_JSON_TIGHT);
        lkg_record_put(json, lkg_source_rows, &bad->source);
        lkg_json_end(json);
        lkg_record_put(json, cause_rows, bad);
        if (bad->suspects)
                put_suspects(bad->suspects, json);
        lkg_json_end(json);
}

void lkg_bad_format(const struct lkg_bad *bad, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        put_record(bad, &json);
        (void)lkg_json_write_line(&json, buf);
}

/* ---- reading ---- */

/* The canonical form of an id, which is also its file name. */
static int canonical(const char *text, struct lkg_config_source *ret, char id[static LKG_SOURCE_ID_MAX + 1])
{
        int r = lkg_config_source_parse_id(text, ret);

        if (r >= 0)
                lkg_config_source_id(ret, id);
        return r;
}

/* Reads the source in the record, if it matches the file name. */
static void read_source(const struct lkg_fields *fields, struct lkg_bad *bad)
{
        const struct lkg_value *map = lkg_map_get(fields->map, "source");
        const struct lkg_fields inner = { map, fields->file, "source.", fields->report };
        struct lkg_config_source source = { .uid = "" };
        char id[LKG_SOURCE_ID_MAX + 1];

        if (map && lkg_value_type(map) == LKG_NULL)
                return;
        if (!map || lkg_value_type(map) != LKG_MAP) {
                lkg_fields_complain(fields, "source", "an object or null");
                return;
        }
        if (!lkg_record_get(&inner, lkg_source_rows, &source))
                return;
        lkg_config_source_id(&source, id);
        /* A mark of all versions has the uid alone as its name. */
        if (bad->source.version[0] ? strcmp(id, bad->id) == 0 && lkg_config_source_check(&source, NULL) == 0
                                   : strcmp(source.uid, bad->id) == 0)
                bad->source = source;
        else
                lkg_fields_complain(fields, "source", "the source that the file is named after");
}

/* Records of earlier versions have none. */
static void read_suspects(const struct lkg_fields *fields, struct lkg_bad *bad)
{
        struct lkg_value *suspects = lkg_map_get(fields->map, "suspects");

        if (suspects && lkg_value_type(suspects) == LKG_MAP)
                bad->suspects = lkg_value_ref(suspects);
        else if (suspects)
                lkg_fields_complain(fields, "suspects", "a map");
}

static void read_fields(const struct lkg_fields *fields, struct lkg_bad *bad)
{
        if (!lkg_record_get(fields, text_rows, bad) && !bad->reason[0])
                (void)snprintf(bad->reason, sizeof(bad->reason), "the stored reason is lost");
        bad->cause = lkg_map_get(fields->map, "cause") ? LKG_BAD_MARKED : cause_of_words(bad->reason);
        (void)lkg_record_get(fields, cause_rows, bad);
        read_source(fields, bad);
        read_suspects(fields, bad);
}

/* Return: 1; 0: not a mark; -ENOMEM; another -errno. */
static int read_mark(int of_bad, const char *name, const char *file, struct lkg_report *report,
                     struct lkg_bad *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        const struct lkg_where where = { .file = file };
        struct lkg_error err = { 0 };
        struct stat st;
        uint64_t version;
        int r;

        if (lkg_is_tmp_name(name))
                return 0;
        *ret = (struct lkg_bad){ .time_ns = 0 };
        if (canonical(name, &ret->source, ret->id) < 0 || strcmp(ret->id, name) != 0) {
                lkg_report_add(report, LKG_WARNING, 6011, &where,
                               "is not named after a configuration, ignoring it");
                return 0;
        }
        if (fstatat(of_bad, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        ret->time_ns = st.st_mtim.tv_sec > 0 ? (uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC : 0;
        r = lkg_record_read(of_bad, name, &map, &err);
        if (r == -ENOMEM)
                return r;
        version = r < 0 ? 0 : lkg_record_number(map, "schemaVersion", 0);
        if (version == LKG_STORE_SCHEMA) {
                read_fields(&(struct lkg_fields){ map, file, "", report }, ret);
                return 1;
        }
        (void)snprintf(ret->reason, sizeof(ret->reason), "%s",
                       version > LKG_STORE_SCHEMA ? "marked by a newer lkgfs"
                                                  : "the record of this mark is damaged");
        lkg_report_add(report, LKG_WARNING, version > LKG_STORE_SCHEMA ? 6010 : 6012, &where,
                       "cannot be understood%s%s; the configuration stays marked as bad", r < 0 ? ": " : "",
                       r < 0 ? err.message : "");
        return 1;
}

static int read_marks(DIR *dir, const char *path, struct lkg_bad_list *list, struct lkg_report *report)
{
        const struct dirent *entry;
        int r = 0;

        while ((entry = lkg_dir_next(dir, &r))) {
                char file[LKG_STORE_PATH];

                (void)lkg_need(LKG_GROW(list->items, list->n_items));
                (void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
                r = read_mark(dirfd(dir), entry->d_name, file, report, &list->items[list->n_items]);
                if (r == -ENOMEM)
                        return r;
                list->n_items += r > 0;
        }
        if (list->n_items)
                qsort(list->items, list->n_items, sizeof(*list->items), compare_bad);
        while (list->n_items > LKG_BAD_MAX) /* a crash before the oldest was removed */
                drop(list, oldest(list, ""));
        return r;
}

int lkg_store_load_bad(const struct lkg_store_component *c, struct lkg_bad_list *ret,
                       struct lkg_report *report)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = NULL;
        LKG_CLEANUP(lkg_bad_list_deinit) struct lkg_bad_list list = { .items = NULL };
        char path[LKG_RELEASE_PATH], file[LKG_DIR_PATH];
        const struct lkg_where where = { .file = file };
        int r = 0;

        lkg_store_release_path(c, LKG_BAD, path);
        (void)snprintf(file, sizeof(file), "%s/%s", c->path, path);
        dir = lkg_dir_open(c->fd, path);
        if (dir)
                r = read_marks(dir, file, &list, report);
        else if (errno != ENOENT)
                r = -errno;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                lkg_report_add(report, LKG_WARNING, 4005, &where,
                               "cannot be listed, bad marks may be missing: %s", strerror(-r));
        *ret = list;
        list = (struct lkg_bad_list){ .items = NULL };
        return 0;
}

/* ---- marking ---- */

/* Limits the list. A mark whose file cannot be removed stays, on disk and in memory. */
static void prune(int of_bad, struct lkg_bad_list *list, const char *keep)
{
        while (list->n_items > LKG_BAD_MAX) {
                size_t at = oldest(list, keep);

                if (unlinkat(of_bad, list->items[at].id, 0) < 0 && errno != ENOENT)
                        return;
                drop(list, at);
        }
}

static int write_mark(const struct lkg_store_component *c, struct lkg_bad_list *list,
                      const struct lkg_bad *bad, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_closep)
        int dir = lkg_store_make_bad(c, /* release= */ NULL, /* report= */ NULL, err);
        int r;

        if (dir < 0)
                return dir;
        put_record(bad, &json);
        r = lkg_store_write(dir, bad->id, &json, err);
        if (r < 0)
                return r;
        put(list, bad);
        prune(dir, list, bad->id);
        return 0;
}

int lkg_store_mark_bad(const struct lkg_store_component *c, struct lkg_bad_list *list,
                       const struct lkg_bad *bad, struct lkg_error *err)
{
        struct lkg_bad mark = *bad;
        struct lkg_config_source named;
        int r;

        if (canonical(bad->id, &named, mark.id) < 0)
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          "mark as bad: want a source id (uid@resourceVersion) or a uid");
        if (lkg_config_source_is_local(&mark.source))
                mark.source = named;
        (void)lkg_store_clean(bad->reason, strlen(bad->reason), mark.reason, sizeof(mark.reason));
        r = LKG_GROW(list->items, list->n_items);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "mark %s as bad", mark.id);
        r = write_mark(c, list, &mark, err);
        return r < 0 ? lkg_error_wrap(err, r, "mark %s as bad", mark.id) : 0;
}

void lkg_bad_keep(struct lkg_bad_list *list, const struct lkg_bad *bad)
{
        (void)lkg_need(LKG_GROW(list->items, list->n_items));
        put(list, bad);
}

/* ---- removing marks ---- */

/* Which marks are removed. */
struct which {
        char id[LKG_SOURCE_ID_MAX + 1]; /* "" = all; a uid also means its versions */
        bool exactly;                   /* only the mark with exactly this name */
};

static bool forgiven(const struct lkg_bad *bad, const struct which *which)
{
        return !*which->id || strcmp(bad->id, which->id) == 0 ||
               (!which->exactly && strcmp(bad->source.uid, which->id) == 0);
}

/* Link it if possible: not every file system can, and Landlock before Linux 5.19 forbids links between directories. */
static int keep_mark(int of_bad, int of_new, const char *name)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r;

        if (linkat(of_bad, name, of_new, name, 0) == 0)
                return 0;
        if (errno != EXDEV && errno != EPERM && errno != EMLINK)
                return -errno;
        r = lkg_record_read_text(of_bad, name, LKG_RECORD_BYTES_MAX, &text, &size, NULL);
        return r < 0 ? r : lkg_write_file_atomic(of_new, name, text, size, 0600, /* durable= */ true, NULL);
}

/* To remove several marks atomically, build a list without them; it then replaces the old one. */
static int keep_others(int of_bad, int of_new, const struct lkg_bad_list *list, const struct which *which)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(of_bad, ".");
        const struct dirent *entry;
        int r = 0;

        if (!dir)
                return -errno;
        while ((entry = lkg_dir_next(dir, &r))) {
                const char *name = entry->d_name;
                const struct lkg_bad *bad = lkg_bad_named(list, name);

                if ((!bad || !forgiven(bad, which)) && !lkg_is_tmp_name(name))
                        r = keep_mark(of_bad, of_new, name);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : lkg_sync_dir(of_new);
}

static int replace_list(int of_release, int of_bad, const struct lkg_bad_list *list,
                        const struct which *which)
{
        LKG_CLEANUP(lkg_closep) int of_new = -EBADF;
        int r;

        (void)lkg_store_remove_dir(of_release, REMOVED_NAME, 0);
        if (mkdirat(of_release, REMOVED_NAME, 0700) < 0)
                return -errno;
        of_new = openat(of_release, REMOVED_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = of_new < 0 ? -errno : keep_others(of_bad, of_new, list, which);
        if (r >= 0 && renameat2(of_release, REMOVED_NAME, of_release, LKG_BAD, RENAME_EXCHANGE) < 0)
                r = -errno;
        if (r >= 0)
                r = lkg_sync_dir(of_release);
        (void)lkg_store_remove_dir(of_release, REMOVED_NAME, 0);
        return r;
}

/* One by one: for a file system that cannot exchange. The mark of the uid, which covers the others, is removed last. */
static int unlink_each(int of_bad, const struct lkg_bad_list *list, const struct which *which)
{
        for (int uids = 0; uids < 2; uids++)
                for (size_t i = 0; i < list->n_items; i++) {
                        const struct lkg_bad *bad = &list->items[i];

                        if (forgiven(bad, which) && (strchr(bad->id, '@') == NULL) == (uids == 1) &&
                            unlinkat(of_bad, bad->id, 0) < 0 && errno != ENOENT)
                                return -errno;
                }
        return lkg_sync_dir(of_bad);
}

static int forgive(const struct lkg_store_component *c, const struct lkg_bad_list *list,
                   const struct which *which, size_t n, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep)
        int dir = lkg_store_make_bad(c, /* release= */ NULL, /* report= */ NULL, err);
        LKG_CLEANUP(lkg_closep)
        int of_release = dir < 0 ? -EBADF : openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = -ENOTSUP; /* one mark is removed by itself */

        if (dir < 0)
                return dir;
        if (of_release < 0)
                return lkg_error_set(err, -errno, NULL, "open the directory of the bad list");
        if (n > 1)
                r = replace_list(of_release, dir, list, which);
        if (r == -ENOTSUP || r == -EINVAL || r == -ENOSYS || r == -EPERM)
                r = unlink_each(dir, list, which);
        return r < 0 ? lkg_error_set(err, r, NULL, "change the bad list") : 0;
}

int lkg_store_forgive(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                      bool exactly, struct lkg_error *err)
{
        struct which which = { .exactly = exactly };
        struct lkg_config_source named;
        size_t n = 0;
        int r;

        if (id && canonical(id, &named, which.id) < 0)
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          "forgive: want a source id (uid@resourceVersion) or a uid");
        for (size_t i = 0; i < list->n_items; i++)
                n += forgiven(&list->items[i], &which);
        if (n == 0)
                return 0;
        r = forgive(c, list, &which, n, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "forgive %s", id ? id : "all");
        for (size_t i = list->n_items; i > 0; i--)
                if (forgiven(&list->items[i - 1], &which))
                        drop(list, i - 1);
        return (int)n;
}
