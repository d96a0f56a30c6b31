/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of an adoption, and the record of them.
 *
 * The record is one of the files: the first one, or the one after its own directory. So it is made before the others, and what is
 * undone from the last file to the first one loses it last: whenever a run is interrupted, what it has made is known. A replaced file
 * is linked to its second name before the new one takes its place, so the name never lacks a file. Every function may be called again
 * for the same file.
 */
#include "adopt.h"

#include <lkg/publication.h>

#define MODE         0644
#define FALLBACK_DIR ".lkgfs-fallback"

/* Return: LKG_TOOL_FAILED, after a message. */
static int failed(const struct lkg_adopt_node *look, const char *what, const char *path, int r)
{
        return lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "%s'%s%s': %s", what, look->root, path,
                             strerror(-r));
}

/* The directory of a file below the root. */
struct adopt_place {
        int fd;
        const char *name; /* borrowed from the path */
};

static int place_open(const struct lkg_adopt_node *look, const char *path, struct adopt_place *ret)
{
        const char *slash = strrchr(path, '/');
        const char *directory = lkg_tool_cut(path, (size_t)(slash - path) + (slash == path));

        ret->fd = lkg_root_open(look->rootfd, directory, O_RDONLY | O_DIRECTORY);
        ret->name = slash + 1;
        return ret->fd < 0 ? ret->fd : 0;
}

static void place_close(struct adopt_place *place)
{
        place->fd = lkg_close(place->fd);
}

/* Are they names of one file? */
static bool is_same_file(int dirfd, const char *a, const char *b)
{
        struct stat x, y;

        return fstatat(dirfd, a, &x, AT_SYMLINK_NOFOLLOW) == 0 &&
               fstatat(dirfd, b, &y, AT_SYMLINK_NOFOLLOW) == 0 && x.st_dev == y.st_dev &&
               x.st_ino == y.st_ino;
}

/* Under which name, in its directory, the file is kept: @name, unless another file has that; then `@name.1` and so on. */
static const char *name_to_keep(const struct adopt_place *place, const char *name)
{
        const char *ret = name;

        for (unsigned i = 1; faccessat(place->fd, ret, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
                             !is_same_file(place->fd, place->name, ret);
             i++)
                ret = lkg_tool_format("%s.%u", name, i);
        return ret;
}

/* ---- the record ---- */

/* The texts of a plan, as the record has them. */
static const struct {
        const char *key;
        size_t offset;
} texts[] = {
        { "profile", offsetof(struct lkg_adopt_plan, profile) },
        { "mountPoint", offsetof(struct lkg_adopt_plan, mount_point) },
        { "sourceDir", offsetof(struct lkg_adopt_plan, source) },
        { "file", offsetof(struct lkg_adopt_plan, file) },
        { "base", offsetof(struct lkg_adopt_plan, base) },
        { "dropInDir", offsetof(struct lkg_adopt_plan, config_dir) },
};

static const char **text_of(const struct lkg_adopt_plan *plan, size_t i)
{
        return (const char **)((uintptr_t)plan + texts[i].offset);
}

static const char *record_text(const struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_PRETTY);
        lkg_json_u64(&json, "schemaVersion", 1);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++)
                lkg_json_foreign(&json, texts[i].key, *text_of(plan, i));
        lkg_json_list(&json, "files", LKG_JSON_AROUND);
        for (size_t i = 0; i < plan->n_files; i++) {
                const struct lkg_adopt_file *file = &plan->files[i];

                lkg_json_map(&json, NULL, LKG_JSON_AROUND);
                lkg_json_foreign(&json, "path", file->path);
                lkg_json_bool(&json, "directory", !*file->sha256);
                if (*file->sha256) {
                        lkg_json_bool(&json, "kept", file->kept);
                        lkg_json_text(&json, "sha256", file->sha256);
                }
                lkg_json_end(&json);
        }
        lkg_json_end(&json);
        lkg_json_end(&json);
        (void)lkg_need(lkg_json_write_line(&json, &buf));
        return lkg_tool_take(&buf);
}

void lkg_plan_insert(struct lkg_adopt_plan *plan, size_t i, const struct lkg_adopt_file *file)
{
        plan->files = lkg_tool_grow(plan->files, plan->n_files, sizeof(*plan->files));
        memmove(plan->files + i + 1, plan->files + i, (plan->n_files++ - i) * sizeof(*plan->files));
        plan->files[i] = *file;
        if (file->text)
                (void)lkg_need(lkg_sha256_hex(file->text, strlen(file->text), plan->files[i].sha256));
}

size_t lkg_plan_find(const struct lkg_adopt_plan *plan, const char *path)
{
        size_t i = 0;

        while (i < plan->n_files && strcmp(plan->files[i].path, path) != 0)
                i++;
        return i;
}

void lkg_plan_add_record(struct lkg_adopt_plan *plan, const char *text)
{
        const struct lkg_adopt_file file = { .path = LKG_ADOPT_RECORD,
                                             .text = text ? text : record_text(plan) };
        size_t i = lkg_plan_find(plan, LKG_ADOPT_DIRECTORY);

        lkg_plan_insert(plan, i < plan->n_files ? i + 1 : 0, &file);
}

static int take_file(const struct lkg_value *item, struct lkg_adopt_plan *plan)
{
        const struct lkg_value *kept = lkg_map_get(item, "kept");
        const char *sha256 = lkg_map_get_string(item, "sha256"), *path = lkg_tool_word(item, "path");
        struct lkg_adopt_file file = { .kept = kept && lkg_value_type(kept) == LKG_BOOL &&
                                               lkg_value_bool(kept) };

        if (*path != '/' || (sha256 && !lkg_is_sha256(sha256)))
                return -EBADMSG;
        if (sha256)
                memcpy(file.sha256, sha256, sizeof(file.sha256));
        file.path = lkg_tool_cut(path, strlen(path));
        lkg_plan_insert(plan, plan->n_files, &file);
        return 0;
}

static int take_record(const struct lkg_value *doc, struct lkg_adopt_plan *plan)
{
        const struct lkg_value *files;
        size_t n = lkg_tool_items(doc, "files", &files);
        bool bad = !files || lkg_value_type(files) != LKG_LIST;
        int r = 0;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                const char *text = lkg_tool_word(doc, texts[i].key);

                *text_of(plan, i) = lkg_tool_cut(text, strlen(text));
                bad |= !**text_of(plan, i);
        }
        if (bad || *plan->source != '/' || *plan->mount_point != '/' || !lkg_bare_name_ok(plan->file))
                return -EBADMSG;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = take_file(lkg_list_get(files, i), plan);
        return r;
}

bool lkg_adopt_record_find(const struct lkg_adopt_node *look, struct lkg_adopt_plan *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        char *text = NULL;
        size_t size;
        int r = lkg_root_read(look->rootfd, LKG_ADOPT_RECORD, &text, &size);

        if (r == 0)
                r = lkg_decode_json(text, size, LKG_DECODE_STRICT, NULL, &report, &doc);
        if (r == 0)
                r = lkg_value_type(doc) == LKG_MAP ? take_record(doc, ret) : -EBADMSG;
        if (r == 0)
                lkg_plan_add_record(ret, text);
        else if (r != -ENOENT)
                lkg_tool_end(look->tool, LKG_TOOL_FAILED, "record '%s" LKG_ADOPT_RECORD "': %s", look->root,
                             strerror(-r));
        return r == 0;
}

/* ---- making ---- */

/* @aside: the present file stays where it is, and has this second name from now on; NULL = none. @alike: owner and mode are those of that file */
static int write_file(const struct lkg_adopt_node *look, const struct adopt_place *place, const char *path,
                      const char *aside, bool alike, const char *data)
{
        struct lkg_new_file as = { .mode = MODE, .durable = true, .owned = alike };
        struct lkg_error err = { 0 };
        struct stat st;

        if (alike && fstatat(place->fd, place->name, &st, 0) < 0)
                return failed(look, "", path, -errno);
        if (aside && linkat(place->fd, place->name, place->fd, aside, 0) < 0 && errno != EEXIST)
                return failed(look, "", path, -errno);
        if (alike) {
                as.mode = st.st_mode & 0777;
                as.uid = st.st_uid;
                as.gid = st.st_gid;
        }
        return lkg_write_file_as(place->fd, place->name, data, strlen(data), &as, &err) < 0
                       ? lkg_tool_fail(look->tool, LKG_TOOL_FAILED, "%s", err.message)
                       : LKG_TOOL_OK;
}

int lkg_adopt_make(const struct lkg_adopt_node *look, const struct lkg_adopt_file *file)
{
        LKG_CLEANUP(place_close) struct adopt_place place = { .fd = -EBADF };
        int r = place_open(look, file->path, &place);

        if (r == 0 && file->text)
                return write_file(look, &place, file->path,
                                  file->kept ? lkg_tool_format("%s" LKG_ADOPT_ASIDE, place.name) : NULL,
                                  false, file->text);
        if (r == 0 && mkdirat(place.fd, place.name, 0755) < 0 && errno != EEXIST)
                r = -errno;
        return r < 0 ? failed(look, "", file->path, r) : LKG_TOOL_OK;
}

int lkg_adopt_replace(const struct lkg_adopt_node *look, const char *path, const char *text, bool hidden,
                      const char **ret_kept)
{
        LKG_CLEANUP(place_close) struct adopt_place place = { .fd = -EBADF };
        int r = place_open(look, path, &place);

        if (r < 0)
                return failed(look, "", path, r);
        *ret_kept =
                name_to_keep(&place, lkg_tool_format("%s%s" LKG_ADOPT_BAKED, hidden ? "." : "", place.name));
        if (text)
                return write_file(look, &place, path, *ret_kept, true, text);
        r = renameat2(place.fd, place.name, place.fd, *ret_kept, RENAME_NOREPLACE) < 0 ? -errno : 0;
        return r < 0 ? failed(look, "", path, r) : LKG_TOOL_OK;
}

/* ---- undoing ---- */

/* What an interrupted write has left: `.NAME.PID~tmp`. */
static void remove_temporary(const struct adopt_place *place)
{
        struct lkg_strings names = { 0 };
        size_t n = strlen(place->name);

        (void)lkg_tool_names(place->fd, ".", DT_UNKNOWN, &names);
        for (size_t i = 0; i < names.n_items; i++)
                if (lkg_is_tmp_name(names.items[i]) && strncmp(names.items[i] + 1, place->name, n) == 0 &&
                    names.items[i][1 + n] == '.')
                        (void)unlinkat(place->fd, names.items[i], 0);
}

static int unmake_directory(const struct adopt_place *place, const char **ret_kept)
{
        if (unlinkat(place->fd, place->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                return 0;
        if (errno != ENOTEMPTY && errno != EEXIST && errno != EBUSY)
                return -errno;
        *ret_kept = "is not empty";
        return 0;
}

/* Has somebody changed our file? Return: 1; 0: no, or it is gone; -errno. */
static int is_edited(const struct adopt_place *place, const char *sha256)
{
        LKG_CLEANUP(lkg_closep)
        int fd = openat(place->fd, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char *text = NULL;
        char found[LKG_SHA256_HEX];
        size_t size;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = lkg_tool_read(fd, 16u << 20, &text, &size);
        if (r == 0)
                r = lkg_sha256_hex(text, size, found);
        return r < 0 ? r : strcmp(found, sha256) != 0;
}

static int unmake_file(const struct adopt_place *place, const struct lkg_adopt_file *file,
                       const char **ret_kept)
{
        const char *aside = lkg_tool_format("%s" LKG_ADOPT_ASIDE, place->name);
        const char *edited;
        bool has_aside;
        int r;

        remove_temporary(place);
        has_aside = faccessat(place->fd, aside, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        if (file->kept && !has_aside)
                return 0; /* it was never replaced, or it is back already */
        r = is_same_file(place->fd, place->name, aside) ? 0 : is_edited(place, file->sha256);
        if (r < 0)
                return r;
        if (r > 0) {
                edited = name_to_keep(place, lkg_tool_format("%s" LKG_ADOPT_EDITED, place->name));
                *ret_kept = lkg_tool_format("was edited, and is kept as %s", edited);
                if (linkat(place->fd, place->name, place->fd, edited, 0) < 0 && errno != EEXIST)
                        return -errno;
        }
        if (!file->kept)
                return unlinkat(place->fd, place->name, 0) < 0 && errno != ENOENT ? -errno : 0;
        if (renameat(place->fd, aside, place->fd, place->name) < 0)
                return -errno;
        (void)unlinkat(place->fd, aside, 0); /* rename(2) of two links of one file does nothing */
        return 0;
}

int lkg_adopt_unmake(const struct lkg_adopt_node *look, const struct lkg_adopt_file *file,
                     const char **ret_kept)
{
        LKG_CLEANUP(place_close) struct adopt_place place = { .fd = -EBADF };
        int r = place_open(look, file->path, &place);

        *ret_kept = NULL;
        if (r == -ENOENT || r == -ENOTDIR)
                return LKG_TOOL_OK;
        if (r == 0)
                r = *file->sha256 ? unmake_file(&place, file, ret_kept) : unmake_directory(&place, ret_kept);
        if (r == 0)
                r = lkg_sync_dir(place.fd);
        return r < 0 ? failed(look, "undo ", file->path, r) : LKG_TOOL_OK;
}

int lkg_adopt_clean(const struct lkg_adopt_node *look, const struct lkg_adopt_plan *plan)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_root_open(look->rootfd, plan->source, O_RDONLY | O_DIRECTORY);

        if (!*look->root)
                (void)unlink(LKG_ADOPT_ARGUMENTS);
        if (fd < 0)
                return fd == -ENOENT ? LKG_TOOL_OK : failed(look, "", plan->source, fd);
        (void)unlinkat(fd, lkg_tool_format(FALLBACK_DIR "/%s", plan->file), 0);
        (void)unlinkat(fd, FALLBACK_DIR, AT_REMOVEDIR);
        if (lkg_fallback_is_ours(fd, plan->file) && unlinkat(fd, plan->file, 0) < 0) {
                int r = -errno;

                return failed(look, "", lkg_tool_format("%s/%s", plan->source, plan->file), r);
        }
        return LKG_TOOL_OK;
}
