/* SPDX-License-Identifier: Apache-2.0 */
/* Records of past generations: see lkg/store.h for their format. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/file.h>

#include <lkg/store.h>

#define RECORD_BYTES_MAX (64u << 20)
#define NEW_NAME         ".new"

static const char *const record_files[] = { "document", "shown", "origin", "meta.json" };

/* ---- the list ---- */

struct lkg_history_entry *lkg_history_find(const struct lkg_history *history, uint64_t number)
{
        for (size_t i = 0; i < history->n_entries; i++)
                if (history->entries[i].number == number)
                        return &history->entries[i];
        return NULL;
}

static int insert(struct lkg_history *history, struct lkg_history_entry entry)
{
        struct lkg_history_entry *grown =
                reallocarray(history->entries, history->n_entries + 1, sizeof(*history->entries));
        size_t at = history->n_entries;

        if (!grown)
                return -ENOMEM;
        history->entries = grown;
        while (at > 0 && grown[at - 1].number > entry.number)
                at--;
        memmove(grown + at + 1, grown + at, (history->n_entries - at) * sizeof(*grown));
        grown[at] = entry;
        history->n_entries++;
        return 0;
}

static void describe(const struct lkg_generation *g, struct lkg_history_entry *entry)
{
        memcpy(entry->source, g->source, sizeof(entry->source));
        memcpy(entry->source_sha256, g->source_sha256, sizeof(entry->source_sha256));
        memcpy(entry->sha256, g->sha256, sizeof(entry->sha256));
}

int lkg_history_add(struct lkg_history *history, struct lkg_generation *generation)
{
        struct lkg_history_entry entry = { .number = generation->number,
                                           .time_ns = generation->time_ns,
                                           .generation = generation };
        int r;

        describe(generation, &entry);
        if (lkg_history_find(history, generation->number))
                return 0;
        r = insert(history, entry);
        if (r >= 0)
                lkg_generation_ref(generation);
        return r;
}

/* ---- reading ---- */

static int read_text(int dirfd, const char *name, struct lkg_text *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "%s", name);
        return lkg_read_file(fd, RECORD_BYTES_MAX, &ret->data, &ret->size, err);
}

static int check_record(struct lkg_generation *g, int dirfd, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *meta = NULL;
        const char *want, *local, *source, *object, *source_sha256;
        int r = lkg_record_read(dirfd, "meta.json", &meta, err);

        if (r < 0)
                return r;
        want = lkg_map_get_string(meta, "sha256");
        local = lkg_map_get_string(meta, "local");
        r = lkg_sha256_hex(g->document.data, g->document.size, g->sha256);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "digest");
        if (!want || strcmp(want, g->sha256) != 0 || lkg_record_number(meta, "generation", 0) != g->number)
                return lkg_error_set(err, -EBADMSG, NULL,
                                     "the document is not the one that meta.json describes.");
        g->time_ns = lkg_record_number(meta, "timeNs", 0);
        g->has_base = local && strcmp(local, "init") == 0;
        source = lkg_map_get_string(meta, "source");
        object = lkg_map_get_string(meta, "configMap");
        if (source && object) {
                (void)snprintf(g->source, sizeof(g->source), "%s", source);
                (void)snprintf(g->object, sizeof(g->object), "%s", object);
                source_sha256 = lkg_map_get_string(meta, "sourceSha256");
                if (source_sha256 && lkg_is_sha256(source_sha256))
                        (void)snprintf(g->source_sha256, sizeof(g->source_sha256), "%s", source_sha256);
        }
        return 0;
}

static int read_record(int parent, uint64_t number, struct lkg_generation **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = lkg_generation_alloc();
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char name[32];
        int r;

        if (!g)
                return lkg_error_set(err, -ENOMEM, NULL, "history");
        g->number = number;
        (void)snprintf(name, sizeof(name), "%" PRIu64, number);
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "%s", name);
        r = read_text(fd, "document", &g->document, err);
        if (r >= 0)
                r = read_text(fd, "origin", &g->origin, err);
        if (r >= 0)
                r = read_text(fd, "meta.json", &g->meta, err);
        if (r >= 0)
                r = read_text(fd, "shown", &g->shown, err);
        if (r == -ENOENT && g->meta.data)
                r = 0; /* no secrets */
        if (r >= 0)
                r = check_record(g, fd, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "history %s", name);
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

static bool parse_name(const char *name, uint64_t *ret)
{
        char *end;

        if (*name < '1' || *name > '9')
                return false;
        errno = 0;
        *ret = strtoull(name, &end, 10);
        return !errno && !*end;
}

static void remove_record(int dirfd, const char *name)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        for (size_t i = 0; fd >= 0 && i < LKG_ARRAY_SIZE(record_files); i++)
                (void)unlinkat(fd, record_files[i], 0);
        (void)unlinkat(dirfd, name, AT_REMOVEDIR);
}

/* Missing or empty files, or a document that is not the one its meta.json describes. */
static bool is_torn(int code)
{
        return code == -EBADMSG || code == -ENOENT;
}

static int scan(struct lkg_history *history, const char *component, struct lkg_report *report)
{
        int copy = openat(history->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        int r = 0;

        if (!dir) {
                r = -errno;
                lkg_close(copy);
                return r;
        }
        for (struct dirent *e = readdir(dir); e && r >= 0; e = readdir(dir)) {
                LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
                struct lkg_error err = { 0 };
                uint64_t number;

                if (!parse_name(e->d_name, &number))
                        continue;
                r = read_record(history->dirfd, number, &g, &err);
                if (r >= 0) {
                        struct lkg_history_entry entry = { .number = number,
                                                           .time_ns = g->time_ns,
                                                           .written = true };

                        describe(g, &entry);
                        r = insert(history, entry);
                } else if (is_torn(r)) {
                        lkg_log_info("%s: %s; removed", component, err.message);
                        remove_record(history->dirfd, e->d_name);
                        r = 0;
                } else if (r != -ENOMEM) {
                        lkg_report_add(report, LKG_WARNING, 4005, NULL, "%s: %s; ignoring this record",
                                       component, err.message);
                        r = 0;
                }
        }
        (void)closedir(dir);
        return r;
}

int lkg_history_open(int state_fd, const char *component, struct lkg_history *ret, struct lkg_report *report,
                     struct lkg_error *err)
{
        struct lkg_history history = { .dirfd = -EBADF };
        char path[PATH_MAX];
        int r;

        if (snprintf(path, sizeof(path), "history/%s", component) >= (int)sizeof(path))
                return lkg_error_set(err, -ENAMETOOLONG, NULL, "history of %s", component);
        r = lkg_mkdir_p(state_fd, path, 0700, err);
        if (r >= 0) {
                LKG_CLEANUP(lkg_closep)
                int parent = openat(state_fd, "history", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                r = parent < 0 ? -errno : lkg_sync_dir(parent); /* it may be new */
                if (r < 0)
                        (void)lkg_error_set(err, r, NULL, "fsync the directory of histories");
        }
        if (r < 0)
                return r;
        history.dirfd = openat(state_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (history.dirfd < 0)
                return lkg_error_set(err, -errno, NULL, "history of %s", component);
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
        free(history->forgotten);
        *history = (struct lkg_history){ .dirfd = lkg_close(history->dirfd) };
}

/* ---- writing ---- */

static int write_text(int dirfd, const char *name, const struct lkg_text *text, bool durable,
                      struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        size_t done = 0;

        if (!text->data)
                return 0;
        fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "create %s", name);
        while (done < text->size) {
                ssize_t n = write(fd, text->data + done, text->size - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return lkg_error_set(err, -errno, NULL, "write %s", name);
                done += (size_t)n;
        }
        if (durable && fsync(fd) < 0)
                return lkg_error_set(err, -errno, NULL, "fsync %s", name);
        return 0;
}

static int write_record(struct lkg_history *history, struct lkg_generation *g, bool durable,
                        struct lkg_error *err)
{
        const struct lkg_text *const texts[] = { &g->document, &g->shown, &g->origin, &g->meta };
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        char name[32];
        int r = lkg_generation_describe(g);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "describe generation %" PRIu64, g->number);
        remove_record(history->dirfd, NEW_NAME);
        if (mkdirat(history->dirfd, NEW_NAME, 0700) < 0)
                return lkg_error_set(err, -errno, NULL, "create a history record");
        fd = openat(history->dirfd, NEW_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return lkg_error_set(err, -errno, NULL, "open a history record");
        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(texts); i++)
                r = write_text(fd, record_files[i], texts[i], durable, err);
        if (r >= 0 && durable && fsync(fd) < 0)
                r = lkg_error_set(err, -errno, NULL, "fsync a history record");
        (void)snprintf(name, sizeof(name), "%" PRIu64, g->number);
        if (r >= 0) {
                remove_record(history->dirfd, name); /* a broken one of this number was skipped at start */
                if (renameat(history->dirfd, NEW_NAME, history->dirfd, name) < 0)
                        r = lkg_error_set(err, -errno, NULL, "rename history record %s", name);
        }
        if (r < 0)
                remove_record(history->dirfd, NEW_NAME);
        return r;
}

/* Flushes a record that was written without. */
static int sync_record(const struct lkg_history *history, const struct lkg_history_entry *entry,
                       struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int dirfd = -EBADF;
        char name[32];
        int r;

        (void)snprintf(name, sizeof(name), "%" PRIu64, entry->number);
        dirfd = openat(history->dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dirfd < 0)
                return lkg_error_set(err, -errno, NULL, "open history record %s", name);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(record_files); i++) {
                LKG_CLEANUP(lkg_closep)
                int fd = openat(dirfd, record_files[i],
                                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

                if (fd < 0 && errno == ENOENT)
                        continue; /* `shown`, if there are no secrets; the required files were read at open */
                if (fd < 0 || fsync(fd) < 0)
                        return lkg_error_set(err, -errno, NULL, "fsync history record %s", name);
        }
        r = lkg_sync_dir(dirfd);
        return r < 0 ? lkg_error_set(err, r, NULL, "fsync history record %s", name) : 0;
}

static void remove_number(const struct lkg_history *history, uint64_t number)
{
        char name[32];

        (void)snprintf(name, sizeof(name), "%" PRIu64, number);
        remove_record(history->dirfd, name);
}

/* Done first, to free space on a full disk. */
static void remove_forgotten(struct lkg_history *history)
{
        for (size_t i = 0; i < history->n_forgotten; i++)
                remove_number(history, history->forgotten[i]);
        history->n_forgotten = 0;
}

/*
 * Flushes only the record that is needed after a power cut: the active one, or one that a command pins. A power cut may damage
 * the others of a burst; their digests reveal it, and they are removed.
 */
int lkg_history_write(struct lkg_history *history, uint64_t durable, struct lkg_error *err)
{
        bool any = false;

        remove_forgotten(history);
        for (size_t i = 0; i < history->n_entries; i++) {
                struct lkg_history_entry *entry = &history->entries[i];
                int r;

                if (!entry->written)
                        r = write_record(history, entry->generation, entry->number == durable, err);
                else if (entry->number == durable && !entry->durable)
                        r = sync_record(history, entry, err);
                else
                        continue;
                if (r < 0)
                        return r;
                entry->written = any = true;
        }
        if (any && fsync(history->dirfd) < 0)
                return lkg_error_set(err, -errno, NULL, "fsync history");
        for (size_t i = 0; i < history->n_entries; i++)
                history->entries[i].durable |= history->entries[i].number == durable;
        for (size_t i = 0; i < history->n_entries; i++)
                if (history->entries[i].written)
                        history->entries[i].generation =
                                lkg_generation_unref(history->entries[i].generation);
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
        for (size_t i = 0; i < history->n_entries; i++)
                if (history->entries[i].number == number && !history->entries[i].written) {
                        drop_entry(history, i);
                        return;
                }
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

static void forget_record(struct lkg_history *history, uint64_t number)
{
        if (LKG_GROW(history->forgotten, history->n_forgotten) < 0)
                remove_number(history, number);
        else
                history->forgotten[history->n_forgotten++] = number;
}

bool lkg_history_prune(struct lkg_history *history, size_t limit, const uint64_t *keep, size_t n_keep)
{
        bool any = false;

        while (history->n_entries > limit) {
                size_t i = find_dispensable(history, keep, n_keep);

                if (i == history->n_entries)
                        break;
                if (history->entries[i].written)
                        forget_record(history, history->entries[i].number);
                drop_entry(history, i);
                any = true;
        }
        return any;
}
