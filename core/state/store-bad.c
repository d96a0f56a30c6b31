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

static const char *const causes[_LKG_BAD_CAUSE_MAX] = {
        [LKG_BAD_MARKED] = "marked",         [LKG_BAD_LOAD] = "load",
        [LKG_BAD_PARSE] = "parse",           [LKG_BAD_INVALID] = "invalid",
        [LKG_BAD_CRASHED] = "crash_loop",    [LKG_BAD_OPERATOR] = "operator",
        [LKG_BAD_UNHEALTHY] = "not_healthy",
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

static enum lkg_bad_cause read_cause(const struct lkg_fields *fields, const char *reason)
{
        const char *word = lkg_map_get_string(fields->map, "cause");

        for (size_t i = 0; word && i < LKG_ARRAY_SIZE(causes); i++)
                if (strcmp(word, causes[i]) == 0)
                        return (enum lkg_bad_cause)i;
        if (!lkg_map_get(fields->map, "cause"))
                return cause_of_words(reason);
        lkg_fields_complain(fields, "cause", "a word of ours");
        return LKG_BAD_MARKED;
}

static void put_suspects(const struct lkg_value *suspects, struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render_json_compact(suspects, &buf);
        if (lkg_buf_failed(&buf))
                lkg_json_fail(json, -ENOMEM);
        else
                lkg_json_rendered(json, "suspects", buf.data, buf.size);
}

static void put_record(const struct lkg_bad *bad, struct lkg_json *json)
{
        lkg_store_begin(json, LKG_JSON_TIGHT);
        lkg_json_time_ns(json, "time", bad->time_ns);
        lkg_store_put_text(json, "reason", bad->reason);
        lkg_store_put_source(json, "source", &bad->source, true);
        lkg_json_text(json, "cause", causes[bad->cause]);
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
        const struct lkg_value *map = lkg_fields_map(fields, "source");
        const struct lkg_fields inner = { map, fields->file, "source.", fields->report };
        struct lkg_config_source source = { .uid = "" };
        char id[LKG_SOURCE_ID_MAX + 1];

        if (!map || !lkg_fields_parts(&inner, &source))
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
        uint64_t time_ns = lkg_fields_time(fields, "time");

        if (time_ns > 0)
                bad->time_ns = time_ns;
        if (!lkg_fields_text(fields, "reason", bad->reason, sizeof(bad->reason)) && !bad->reason[0])
                (void)snprintf(bad->reason, sizeof(bad->reason), "the stored reason is lost");
        bad->cause = read_cause(fields, bad->reason);
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

        while ((entry = lkg_store_next(dir, &r))) {
                char file[LKG_STORE_PATH];

                r = LKG_GROW(list->items, list->n_items);
                if (r < 0)
                        return r;
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
        LKG_CLEANUP(lkg_closedirp) DIR *dir = NULL;
        LKG_CLEANUP(lkg_bad_list_deinit) struct lkg_bad_list list = { .items = NULL };
        char path[LKG_RELEASE_PATH], file[LKG_DIR_PATH];
        const struct lkg_where where = { .file = file };
        int r = 0;

        lkg_store_release_path(c, LKG_BAD, path);
        (void)snprintf(file, sizeof(file), "%s/%s", c->path, path);
        dir = lkg_store_list(c->fd, path);
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

/* The directories of the current release. */
struct place {
        int of_release, of_bad;
};

static void place_close(struct place *place)
{
        lkg_closep(&place->of_bad);
        lkg_closep(&place->of_release);
}

static int place_make(const struct lkg_store_component *c, struct place *place, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int releases = lkg_store_make_dir(c->fd, LKG_RELEASES, c->path, NULL, err);

        if (releases < 0)
                return releases;
        place->of_release = lkg_store_make_dir(releases, c->release[0] ? c->release : LKG_RELEASE_UNSURE,
                                               c->path, NULL, err);
        if (place->of_release < 0)
                return place->of_release;
        place->of_bad = lkg_store_make_dir(place->of_release, LKG_BAD, c->path, NULL, err);
        if (place->of_bad < 0)
                return place->of_bad;
        return 0;
}

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
        LKG_CLEANUP(place_close) struct place place = { -EBADF, -EBADF };
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        int r = place_make(c, &place, err);

        if (r < 0)
                return r;
        put_record(bad, &json);
        r = lkg_store_write(place.of_bad, bad->id, &json, err);
        if (r < 0)
                return r;
        r = lkg_sync_dir(place.of_release); /* bad/ may be new */
        if (r < 0)
                return lkg_error_set(err, r, NULL, "fsync the directory of the bad list");
        put(list, bad);
        prune(place.of_bad, list, bad->id);
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

/* ---- removing marks ---- */

/* @id: NULL = all; a uid also means its versions */
static bool forgiven(const struct lkg_bad *bad, const char *id)
{
        return !id || strcmp(bad->id, id) == 0 || strcmp(bad->source.uid, id) == 0;
}

/* Link it if possible: not every file system can, and Landlock before Linux 5.19 forbids links between directories. */
static int keep_mark(const struct place *place, int of_new, const char *name)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;
        int r;

        if (linkat(place->of_bad, name, of_new, name, 0) == 0)
                return 0;
        if (errno != EXDEV && errno != EPERM && errno != EMLINK)
                return -errno;
        fd = lkg_open_plain(place->of_bad, name);
        r = fd < 0 ? fd : lkg_read_file(fd, LKG_RECORD_BYTES_MAX, &text, &size, NULL);
        return r < 0 ? r : lkg_write_file_atomic(of_new, name, text, size, 0600, /* durable= */ true, NULL);
}

/* To remove several marks atomically, build a list without them; it then replaces the old one. */
static int keep_others(const struct place *place, int of_new, const struct lkg_bad_list *list,
                       const char *id)
{
        LKG_CLEANUP(lkg_closedirp) DIR *dir = lkg_store_list(place->of_bad, NULL);
        const struct dirent *entry;
        int r = 0;

        if (!dir)
                return -errno;
        while ((entry = lkg_store_next(dir, &r))) {
                const struct lkg_bad *bad = lkg_bad_named(list, entry->d_name);

                if ((!bad || !forgiven(bad, id)) && !lkg_is_tmp_name(entry->d_name))
                        r = keep_mark(place, of_new, entry->d_name);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : lkg_sync_dir(of_new);
}

static int replace_list(const struct place *place, const struct lkg_bad_list *list, const char *id)
{
        LKG_CLEANUP(lkg_closep) int of_new = -EBADF;
        int r;

        (void)lkg_store_remove_dir(place->of_release, REMOVED_NAME, 0);
        if (mkdirat(place->of_release, REMOVED_NAME, 0700) < 0)
                return -errno;
        of_new = openat(place->of_release, REMOVED_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = of_new < 0 ? -errno : keep_others(place, of_new, list, id);
        if (r >= 0 &&
            renameat2(place->of_release, REMOVED_NAME, place->of_release, LKG_BAD, RENAME_EXCHANGE) < 0)
                r = -errno;
        if (r >= 0)
                r = lkg_sync_dir(place->of_release);
        (void)lkg_store_remove_dir(place->of_release, REMOVED_NAME, 0);
        return r;
}

/* For file systems without RENAME_EXCHANGE. The mark of the uid, which covers the others, is removed last. */
static int unlink_each(const struct place *place, const struct lkg_bad_list *list, const char *id)
{
        for (int uids = 0; uids < 2; uids++)
                for (size_t i = 0; i < list->n_items; i++) {
                        const struct lkg_bad *bad = &list->items[i];

                        if (forgiven(bad, id) && (strchr(bad->id, '@') == NULL) == (uids == 1) &&
                            unlinkat(place->of_bad, bad->id, 0) < 0 && errno != ENOENT)
                                return -errno;
                }
        return lkg_sync_dir(place->of_bad);
}

static int forgive(const struct lkg_store_component *c, const struct lkg_bad_list *list, const char *id,
                   size_t n, struct lkg_error *err)
{
        LKG_CLEANUP(place_close) struct place place = { -EBADF, -EBADF };
        int r = place_make(c, &place, err);

        if (r < 0)
                return r;
        r = n == 1 ? -ENOTSUP : replace_list(&place, list, id);
        if (r == -ENOTSUP || r == -EINVAL || r == -ENOSYS || r == -EPERM)
                r = unlink_each(&place, list, id);
        return r < 0 ? lkg_error_set(err, r, NULL, "change the bad list") : 0;
}

int lkg_store_forgive(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                      struct lkg_error *err)
{
        char name[LKG_SOURCE_ID_MAX + 1];
        struct lkg_config_source named;
        size_t n = 0;
        int r;

        if (id && canonical(id, &named, name) < 0)
                return lkg_refuse_because(err, -EINVAL, NULL,
                                          "forgive: want a source id (uid@resourceVersion) or a uid");
        if (id)
                id = name;
        for (size_t i = 0; i < list->n_items; i++)
                n += forgiven(&list->items[i], id);
        if (n == 0)
                return 0;
        r = forgive(c, list, id, n, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "forgive %s", id ? id : "all");
        for (size_t i = list->n_items; i > 0; i--)
                if (forgiven(&list->items[i - 1], id))
                        drop(list, i - 1);
        return (int)n;
}

int lkg_store_forgive_one(const struct lkg_store_component *c, struct lkg_bad_list *list, const char *id,
                          struct lkg_error *err)
{
        LKG_CLEANUP(place_close) struct place place = { -EBADF, -EBADF };
        int r;

        for (size_t i = 0; i < list->n_items; i++) {
                if (strcmp(list->items[i].id, id) != 0)
                        continue;
                r = place_make(c, &place, err);
                if (r < 0)
                        return r;
                if (unlinkat(place.of_bad, id, 0) < 0 && errno != ENOENT)
                        return lkg_error_set(err, -errno, NULL, "forgive %s", id);
                r = lkg_sync_dir(place.of_bad);
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "forgive %s", id);
                drop(list, i);
                return 1;
        }
        return 0;
}
