/* SPDX-License-Identifier: Apache-2.0 */
/* Records of past generations: see lkg/store.h for their format. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/file.h>

#include "store-internal.h"

#define RECORD_BYTES_MAX (64u << 20)
#define NEW_NAME         ".new"

/* The files of a record. `shown` is there only if the document has secrets. */
static const struct {
        const char *name;
        size_t offset; /* of a struct lkg_text */
} files[] = {
        { "document", offsetof(struct lkg_generation, document) },
        { "origin", offsetof(struct lkg_generation, origin) },
        { "meta.json", offsetof(struct lkg_generation, meta) },
        { "shown", offsetof(struct lkg_generation, shown) },
};

static struct lkg_text *text_of(struct lkg_generation *g, size_t i)
{
        return (struct lkg_text *)((char *)g + files[i].offset);
}

/* ---- the list ---- */

struct lkg_history_entry *lkg_history_find(const struct lkg_history *history, uint64_t number)
{
        for (size_t i = 0; i < history->n_entries; i++)
                if (history->entries[i].number == number)
                        return &history->entries[i];
        return NULL;
}

static void insert(struct lkg_history *history, const struct lkg_generation *g,
                   struct lkg_history_entry entry)
{
        size_t at = history->n_entries;

        (void)lkg_need(LKG_GROW(history->entries, at));
        entry.number = g->number;
        entry.time_ns = g->time_ns;
        memcpy(entry.source, g->source, sizeof(entry.source));
        memcpy(entry.source_sha256, g->source_sha256, sizeof(entry.source_sha256));
        memcpy(entry.sha256, g->sha256, sizeof(entry.sha256));
        while (at > 0 && history->entries[at - 1].number > entry.number)
                at--;
        memmove(history->entries + at + 1, history->entries + at,
                (history->n_entries++ - at) * sizeof(*history->entries));
        history->entries[at] = entry;
}

void lkg_history_add(struct lkg_history *history, struct lkg_generation *generation)
{
        struct lkg_history_entry entry = { .generation = generation };

        if (lkg_history_find(history, generation->number))
                return;
        lkg_generation_ref(generation);
        insert(history, generation, entry);
}

/* ---- records ---- */

struct number_name {
        char text[24];
};

static struct number_name name_of(uint64_t number)
{
        struct number_name name;

        (void)snprintf(name.text, sizeof(name.text), "%" PRIu64, number);
        return name;
}

static void remove_record(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain_directory(dirfd, name);

        for (size_t i = 0; fd >= 0 && i < LKG_ARRAY_SIZE(files); i++)
                (void)unlinkat(fd, files[i].name, 0);
        (void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* ---- reading ---- */

static int check_record(struct lkg_generation *g, int dirfd, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *meta = NULL;
        const char *want, *local, *source, *object, *source_sha256;
        int r = lkg_record_read(dirfd, "meta.json", &meta, err);

        if (r < 0)
                return r;
        want = lkg_map_get_string(meta, "sha256");
        local = lkg_map_get_string(meta, "local");
        source = lkg_map_get_string(meta, "source");
        object = lkg_map_get_string(meta, "configMap");
        source_sha256 = lkg_map_get_string(meta, "sourceSha256");
        (void)lkg_need(lkg_sha256_hex(g->document.data, g->document.size, g->sha256));
        if (!want || strcmp(want, g->sha256) != 0 || lkg_record_number(meta, "generation", 0) != g->number)
                return lkg_error_set(err, -EBADMSG, NULL,
                                     "the document is not the one that meta.json describes.");
        g->time_ns = lkg_record_number(meta, "timeNs", 0);
        g->has_base = local && strcmp(local, "init") == 0;
        if (!source || !object)
                return 0;
        (void)snprintf(g->source, sizeof(g->source), "%s", source);
        (void)snprintf(g->object, sizeof(g->object), "%s", object);
        if (source_sha256 && lkg_is_sha256(source_sha256))
                memcpy(g->source_sha256, source_sha256, sizeof(g->source_sha256));
        return 0;
}

static int read_text(int dirfd, const char *name, struct lkg_text *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, name);

        return fd < 0 ? lkg_error_set(err, fd, NULL, "%s", name)
                      : lkg_read_file(fd, RECORD_BYTES_MAX, &ret->data, &ret->size, err);
}

static int read_record(int parent, uint64_t number, struct lkg_generation **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();
        const struct number_name name = name_of(number);
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain_directory(parent, name.text);
        int r = fd < 0 ? lkg_error_set(err, fd, NULL, "%s", name.text) : 0;

        g->number = number;
        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(files); i++) {
                struct lkg_text *text = text_of(g, i);

                r = read_text(fd, files[i].name, text, err);
                if (r == -ENOENT && text == &g->shown)
                        r = 0;
        }
        if (r >= 0)
                r = check_record(g, fd, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "history %s", name.text);
        *ret = LKG_STEAL(g);
        return 0;
}

int lkg_history_get(const struct lkg_history *history, uint64_t number, struct lkg_generation **ret,
                    struct lkg_error *err)
{
        const struct lkg_history_entry *entry = lkg_history_find(history, number);

        if (!entry)
                return lkg_error_set(err, -ENOENT, NULL, "generation %" PRIu64, number);
        if (entry->generation) {
                *ret = lkg_generation_ref(entry->generation);
                return 0;
        }
        return read_record(history->dirfd, number, ret, err);
}

/* Adds record @name, if it is one. */
static void scan_record(struct lkg_history *history, const char *component, const char *name,
                        struct lkg_report *report)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        struct lkg_error err = { 0 };
        uint64_t number;
        int r;

        if (lkg_record_parse_u64(name, &number) < 0 || strcmp(name, name_of(number).text) != 0)
                return;
        r = read_record(history->dirfd, number, &g, &err);
        if (r >= 0) {
                insert(history, g, (struct lkg_history_entry){ .written = true });
        } else if (r == -EBADMSG || r == -ENOENT) {
                /* Torn: missing or empty files, or a document that is not the one its meta.json describes. */
                lkg_log_info("%s: %s; removed", component, err.message);
                remove_record(history->dirfd, name);
        } else {
                lkg_report_add(report, LKG_WARNING, 4005, NULL, "%s: %s; ignoring this record", component,
                               err.message);
        }
}

static int scan(struct lkg_history *history, const char *component, struct lkg_report *report)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(history->dirfd, ".");
        const struct dirent *entry;
        int r = dir ? 0 : -errno;

        while (r >= 0 && dir && (entry = lkg_dir_next(dir, &r)))
                scan_record(history, component, entry->d_name, report);
        return r;
}

int lkg_history_open(int state_fd, const char *component, struct lkg_history *ret, struct lkg_report *report,
                     struct lkg_error *err)
{
        struct lkg_history history = { .dirfd = -EBADF };
        char path[LKG_STORE_PATH];
        int r;

        (void)snprintf(path, sizeof(path), "history/%s", component);
        history.dirfd = lkg_store_make_path(state_fd, path, report, err);
        if (history.dirfd < 0)
                return history.dirfd;
        remove_record(history.dirfd, NEW_NAME); /* an unfinished record */
        r = scan(&history, component, report);
        if (r < 0) {
                lkg_history_deinit(&history);
                return lkg_error_set(err, r, NULL, "history of %s", component);
        }
        *ret = history;
        return 0;
}

void lkg_history_deinit(struct lkg_history *history)
{
        for (size_t i = 0; i < history->n_entries; i++)
                lkg_generation_unref(history->entries[i].generation);
        free(history->entries);
        *history = (struct lkg_history){ .dirfd = lkg_close(history->dirfd) };
}

/* ---- writing ---- */

static int write_record(struct lkg_history *history, struct lkg_generation *g, bool durable,
                        struct lkg_error *err)
{
        const struct number_name name = name_of(g->number);
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        int r;

        lkg_generation_describe(g);
        remove_record(history->dirfd, NEW_NAME);
        if (mkdirat(history->dirfd, NEW_NAME, 0700) < 0)
                return lkg_error_set(err, -errno, NULL, "create a history record");
        fd = lkg_open_plain_directory(history->dirfd, NEW_NAME);
        r = fd < 0 ? lkg_error_set(err, fd, NULL, "open a history record") : 0;
        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(files); i++)
                if (text_of(g, i)->data)
                        r = lkg_write_new(fd, files[i].name, text_of(g, i)->data, text_of(g, i)->size,
                                          durable, err);
        if (r >= 0 && durable && fsync(fd) < 0)
                r = lkg_error_set(err, -errno, NULL, "fsync a history record");
        if (r >= 0) {
                remove_record(history->dirfd,
                              name.text); /* a broken one of this number was skipped at start */
                if (renameat(history->dirfd, NEW_NAME, history->dirfd, name.text) < 0)
                        r = lkg_error_set(err, -errno, NULL, "rename history record %s", name.text);
        }
        if (r < 0)
                remove_record(history->dirfd, NEW_NAME);
        return r;
}

/* Flushes a record that was written without. */
static int sync_record(const struct lkg_history *history, uint64_t number, struct lkg_error *err)
{
        const struct number_name name = name_of(number);
        LKG_CLEANUP(lkg_closep) int dirfd = lkg_open_plain_directory(history->dirfd, name.text);
        int r = dirfd < 0 ? dirfd : 0;

        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(files); i++) {
                LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, files[i].name);

                if (fd == -ENOENT) /* `shown`; the others were read at open */
                        continue;
                r = fd < 0 ? fd : fsync(fd) < 0 ? -errno : 0;
        }
        if (r >= 0)
                r = lkg_sync_dir(dirfd);
        return r < 0 ? lkg_error_set(err, r, NULL, "fsync history record %s", name.text) : 0;
}

/*
 * Flushes only the record that is needed after a power cut: the active one, or one that a command pins. A power cut may damage
 * the others of a burst; their digests reveal it, and they are removed.
 */
int lkg_history_write(struct lkg_history *history, uint64_t durable, struct lkg_error *err)
{
        bool any = false;

        for (size_t i = 0; i < history->n_entries; i++) {
                struct lkg_history_entry *entry = &history->entries[i];
                int r;

                if (!entry->written)
                        r = write_record(history, entry->generation, entry->number == durable, err);
                else if (entry->number == durable && !entry->durable)
                        r = sync_record(history, entry->number, err);
                else
                        continue;
                if (r < 0)
                        return r;
                entry->written = any = true;
        }
        if (any && fsync(history->dirfd) < 0)
                return lkg_error_set(err, -errno, NULL, "fsync history");
        for (size_t i = 0; i < history->n_entries; i++) {
                history->entries[i].durable |= history->entries[i].number == durable;
                history->entries[i].generation = lkg_generation_unref(history->entries[i].generation);
        }
        return 0;
}

static void drop_entry(struct lkg_history *history, size_t i)
{
        struct lkg_history_entry *entry = &history->entries[i];

        lkg_generation_unref(entry->generation);
        memmove(entry, entry + 1, (history->n_entries - i - 1) * sizeof(*entry));
        history->n_entries--;
}

void lkg_history_remove(struct lkg_history *history, uint64_t number)
{
        const struct lkg_history_entry *entry = lkg_history_find(history, number);

        if (entry && !entry->written)
                drop_entry(history, (size_t)(entry - history->entries));
}

static bool kept(uint64_t number, const uint64_t *keep, size_t n_keep)
{
        for (size_t i = 0; i < n_keep; i++)
                if (keep[i] == number)
                        return true;
        return false;
}

/* Does a newer number have the same document, of the same remote configuration (or also none)? */
static bool is_there_again(const struct lkg_history *history, size_t i)
{
        const struct lkg_history_entry *entry = &history->entries[i];

        for (size_t k = i + 1; k < history->n_entries; k++) {
                const struct lkg_history_entry *newer = &history->entries[k];

                if (strcmp(newer->sha256, entry->sha256) == 0 &&
                    lkg_config_records_match(newer->source, newer->source_sha256, entry->source,
                                             entry->source_sha256))
                        return true;
        }
        return false;
}

/* Index of the entry to remove; n_entries = all are in use. */
static size_t find_dispensable(const struct lkg_history *history, const uint64_t *keep, size_t n_keep)
{
        size_t oldest = history->n_entries;

        for (size_t i = 0; i < history->n_entries; i++) {
                if (kept(history->entries[i].number, keep, n_keep))
                        continue;
                if (is_there_again(history, i))
                        return i;
                if (oldest == history->n_entries)
                        oldest = i;
        }
        return oldest;
}

bool lkg_history_prune(struct lkg_history *history, size_t limit, const uint64_t *keep, size_t n_keep)
{
        bool any = false;

        while (history->n_entries > limit) {
                size_t i = find_dispensable(history, keep, n_keep);

                if (i == history->n_entries)
                        break;
                if (history->entries[i].written)
                        remove_record(history->dirfd, name_of(history->entries[i].number).text);
                drop_entry(history, i);
                any = true;
        }
        return any;
}
