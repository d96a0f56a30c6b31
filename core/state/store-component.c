/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories of one component, and its current release. A new version of the component may accept what an old one did not,
 * so bad marks and starts are kept per release (dynamic-configuration proposal), for a few releases, so that a downgrade finds
 * its own again.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/file.h>
#include <lkg/documents.h>
#include <lkg/lifecycle.h>

#include "store-internal.h"

#define RELEASE_NAME  "release"
#define RELEASES_SEEN 256u /* at most this many are considered */

static const char *release_of(const struct lkg_store_component *c)
{
        return c->release[0] ? c->release : LKG_RELEASE_UNSURE;
}

void lkg_store_release_path(const struct lkg_store_component *c, const char *below,
                            char ret[static LKG_RELEASE_PATH])
{
        (void)snprintf(ret, LKG_RELEASE_PATH, LKG_RELEASES "/%s/%s", release_of(c), below);
}

int lkg_store_make_bad(const struct lkg_store_component *c, const char *release, struct lkg_report *report,
                       struct lkg_error *err)
{
        char path[LKG_STORE_PATH];

        (void)snprintf(path, sizeof(path), "%s/" LKG_RELEASES "/%s/" LKG_BAD, c->path,
                       release ? release : release_of(c));
        return lkg_store_make_path(c->store->fd, path, report, err);
}

/* ---- when a release was used last: mtime of its directory ---- */

struct used {
        char name[LKG_RELEASE_NAME];
        struct timespec time;
};

static int compare_used(const void *a, const void *b)
{
        const struct used *x = a, *y = b;

        if (x->time.tv_sec != y->time.tv_sec)
                return x->time.tv_sec < y->time.tv_sec ? 1 : -1;
        if (x->time.tv_nsec != y->time.tv_nsec)
                return x->time.tv_nsec < y->time.tv_nsec ? 1 : -1;
        return strcmp(y->name, x->name); /* any order will do, as long as it is stable */
}

/* Most recently used first. Return: their number. */
static size_t list_used(int releases, struct used ret[static RELEASES_SEEN])
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(releases, ".");
        const struct dirent *entry;
        size_t n = 0;

        while (dir && n < RELEASES_SEEN && (entry = lkg_dir_next(dir, NULL))) {
                size_t size = strlen(entry->d_name);
                struct stat st;

                if (size >= LKG_RELEASE_NAME || !lkg_identifier_ok(entry->d_name) ||
                    fstatat(releases, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                memcpy(ret[n].name, entry->d_name, size + 1);
                ret[n++].time = st.st_mtim;
        }
        qsort(ret, n, sizeof(*ret), compare_used);
        return n;
}

/* Rename first, so that an incomplete bad list is never used. */
static void remove_release(int releases, const char *name)
{
        char removed[LKG_RELEASE_NAME + sizeof("." LKG_TMP_SUFFIX)];

        (void)snprintf(removed, sizeof(removed), ".%s" LKG_TMP_SUFFIX, name);
        (void)lkg_store_remove_dir(releases, removed, LKG_RELEASE_DEPTH);
        if (renameat(releases, name, releases, removed) == 0)
                (void)lkg_store_remove_dir(releases, removed, LKG_RELEASE_DEPTH);
}

/* Errors are ignored: the next release tries again. */
static void prune(int releases, const char *current)
{
        LKG_CLEANUP(lkg_freep) struct used *used = calloc(RELEASES_SEEN, sizeof(*used));
        size_t n = used ? list_used(releases, used) : 0, kept = 1;

        for (size_t i = 0; i < n; i++)
                if (strcmp(used[i].name, current) != 0 && kept++ >= LKG_RELEASES_MAX)
                        remove_release(releases, used[i].name);
}

/* ---- the name of the release ---- */

static bool release_ok(const char *name)
{
        return strlen(name) < LKG_RELEASE_NAME && name[0] != '.' && lkg_identifier_ok(name);
}

/* Converts any text to a name: other characters become `-`. Its callers have at most 63 bytes. */
static void fit(const char *text, char ret[static LKG_RELEASE_NAME])
{
        size_t n = 0;

        for (; text[n] && n < LKG_RELEASE_NAME - 1; n++) {
                const char one[2] = { text[n], '\0' };

                ret[n] = text[n] == '.' || lkg_identifier_ok(one) ? text[n] : '-';
        }
        ret[n] = '\0';
        if (ret[0] == '.') /* not hidden, and not `.` or `..` */
                ret[0] = '-';
        if (!ret[0])
                (void)strcpy(ret, LKG_RELEASE_UNSURE);
}

/* If the name is lost, continue with the release used last, and its marks. */
static void guess_release(struct lkg_store_component *c)
{
        LKG_CLEANUP(lkg_closep)
        int releases = openat(c->fd, LKG_RELEASES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) struct used *used = calloc(RELEASES_SEEN, sizeof(*used));

        if (releases >= 0 && used && list_used(releases, used) > 0)
                memcpy(c->release, used[0].name, sizeof(c->release));
}

/* The directory is created before the name is written: a name without a directory is truncated or foreign. */
static bool release_exists(const struct lkg_store_component *c, const char *name)
{
        char path[LKG_RELEASE_PATH];
        struct stat st;

        (void)snprintf(path, sizeof(path), LKG_RELEASES "/%s", name);
        return fstatat(c->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int read_release(struct lkg_store_component *c, struct lkg_report *report, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        char file[LKG_STORE_PATH];
        const struct lkg_where where = { .file = file };
        size_t size;
        int r = lkg_record_read_text(c->fd, RELEASE_NAME, LKG_RELEASE_PATH, &text, &size, err);

        if (r == -ENOENT || r == -ENOMEM)
                return r == -ENOENT ? 0 : r;
        if (r == 0 && size > 0 && text[size - 1] == '\n')
                text[--size] = '\0';
        if (r == 0 && strlen(text) == size && release_ok(text) && release_exists(c, text)) {
                memcpy(c->release, text, size + 1);
                return 0;
        }
        guess_release(c);
        (void)snprintf(file, sizeof(file), "%s/" RELEASE_NAME, c->path);
        lkg_report_add(report, LKG_WARNING, 4005, &where,
                       "does not name a release; going on with the one used last%s%s%s",
                       c->release[0] ? " (" : "", c->release, c->release[0] ? ")" : "");
        lkg_store_put_aside(c->fd, RELEASE_NAME);
        return 0;
}

/* ---- public ---- */

static int open_component(struct lkg_store_component *c, struct lkg_report *report, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int documents = -EBADF, releases = -EBADF, bad = -EBADF;
        int r;

        c->fd = c->store->read_only ? lkg_open_plain_directory(c->store->fd, c->path)
                                    : lkg_store_make_path(c->store->fd, c->path, report, err);
        if (c->fd < 0)
                return c->store->read_only ? lkg_error_set(err, c->fd, NULL, "open directory %s", c->path)
                                           : c->fd;
        if (c->store->read_only)
                return read_release(c, report, err);
        documents = lkg_store_make_path(c->fd, LKG_DOCUMENTS, report, err);
        releases = documents < 0 ? documents : lkg_store_make_path(c->fd, LKG_RELEASES, report, err);
        if (releases < 0)
                return releases;
        r = read_release(c, report, err);
        if (r < 0)
                return r;
        bad = lkg_store_make_bad(c, /* release= */ NULL, report, err);
        return bad < 0 ? bad : 0;
}

int lkg_store_component_open(const struct lkg_store *store, const char *component,
                             struct lkg_store_component *ret, struct lkg_report *report,
                             struct lkg_error *err)
{
        struct lkg_store_component c = { .store = store, .fd = -EBADF };
        int n = snprintf(c.path, sizeof(c.path), LKG_DYNAMIC "/%s", component), r;

        if (!lkg_identifier_ok(component) || n < 0 || (size_t)n >= sizeof(c.path))
                return lkg_refuse_because(err, -EINVAL, NULL, "the component's name cannot be a path");
        r = open_component(&c, report, err);
        if (r < 0) {
                lkg_store_component_close(&c);
                return lkg_error_wrap(err, r, "state of %s", component);
        }
        *ret = c;
        return 0;
}

void lkg_store_component_close(struct lkg_store_component *c)
{
        c->fd = lkg_close(c->fd);
}

/* Releases are ordered by the mtime of their directories. Creating and removing a file updates it. */
static void mark_used(int releases, const char *name)
{
        char path[LKG_RELEASE_NAME + sizeof("/.used" LKG_TMP_SUFFIX)];

        (void)snprintf(path, sizeof(path), "%s/.used" LKG_TMP_SUFFIX, name);
        lkg_close(openat(releases, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        (void)unlinkat(releases, path, 0);
}

bool lkg_store_is_release(const struct lkg_store_component *c, const char *release)
{
        char name[LKG_RELEASE_NAME];

        fit(release, name);
        return strcmp(name, c->release) == 0;
}

/* The bad list per component version: switch to that of @release, and to its starts. */
int lkg_store_set_release(struct lkg_store_component *c, const char *release, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int bad = -EBADF, releases = -EBADF;
        char name[LKG_RELEASE_NAME];
        int r;

        if (lkg_store_is_release(c, release))
                return 0;
        fit(release, name);
        bad = lkg_store_make_bad(c, name, NULL, err);
        releases = bad < 0 ? bad : lkg_store_make_path(c->fd, LKG_RELEASES, NULL, err);
        r = releases;
        if (r >= 0)
                r = lkg_write_file_atomic(c->fd, RELEASE_NAME, name, strlen(name), 0600, true, err);
        if (r < 0)
                return lkg_error_wrap(err, r, "release %s of %s", name, c->path);
        mark_used(releases, name);
        memcpy(c->release, name, sizeof(c->release));
        prune(releases, name);
        return 1;
}
