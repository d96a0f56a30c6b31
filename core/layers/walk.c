/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk over a drop-in (or kubeadm patches) directory, in upstream's order: depth first, the names of
 * each directory sorted by raw bytes, a subdirectory entered at its own place, hidden files like any other,
 * symlinks to directories not followed. It uses directory descriptors, so a directory cannot be replaced by
 * a symlink in between.
 *
 * Recursion is bounded by LKG_WALK_DEPTH_MAX. Entries that vanish during the walk set `vanished`; the caller walks again.
 */
#include <fcntl.h>

#include "layers.h"

#include <lkg/base.h>

static void finding(struct lkg_walk *walk, enum lkg_severity severity, unsigned code, const char *path,
                    const char *text)
{
        LKG_CLEANUP(lkg_freep) char *shown = lkg_display(path);
        struct lkg_where where = { shown, 0, 0 };

        lkg_report_add(walk->report, severity, code, &where, "%s", text);
}

/* @fd stays open and belongs to the caller. */
static int read_names(struct lkg_walk *walk, int fd, const char *path, struct lkg_strings *names)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *dir = lkg_dir_open(fd, ".");
        const struct dirent *entry;
        int r = 0;

        if (!dir) {
                r = errno == ENOMEM ? -ENOMEM : errno == ENOENT ? 1 : 2;
                if (r == 2)
                        finding(walk, LKG_ERROR, LKG_C_UNREADABLE, path,
                                "the directory cannot be read; check its mode");
                return r;
        }
        while ((entry = lkg_dir_next(dir, &r))) {
                if (++walk->n_entries > LKG_WALK_ENTRIES_MAX) {
                        finding(walk, LKG_ERROR, LKG_C_WALK_LIMIT, path,
                                "more than 65536 entries; keep only the layers here");
                        return 2;
                }
                (void)lkg_need(lkg_strings_add(names, entry->d_name, strlen(entry->d_name)));
        }
        lkg_strings_sort(names);
        return r == -ENOENT ? 1 : r;
}

/* ---- names with numbers that do not sort as numbers ---- */

/* Compares the numbers at the start of two names; false if one of them has none. */
static bool number_is_above(const char *a, const char *b)
{
        size_t n, m;

        if (*a < '0' || *a > '9' || *b < '0' || *b > '9')
                return false;
        a += strspn(a, "0");
        b += strspn(b, "0");
        n = strspn(a, "0123456789");
        m = strspn(b, "0123456789");
        return n != m ? n > m : strncmp(a, b, n) > 0;
}

static void check_sort_trap(struct lkg_walk *walk, const struct lkg_strings *names, const char *path)
{
        const char *last = NULL;

        for (size_t i = 0; i < names->n_items; i++) {
                LKG_CLEANUP(lkg_freep) char *shown = NULL, *a = NULL, *b = NULL;
                struct lkg_where where = { 0 };

                if (!lkg_is_conf(names->items[i]) || names->items[i][0] < '0' || names->items[i][0] > '9')
                        continue;
                if (!last || !number_is_above(last, names->items[i])) {
                        last = names->items[i];
                        continue;
                }
                shown = lkg_display(path);
                a = lkg_display(last);
                b = lkg_display(names->items[i]);
                where.file = shown;
                lkg_report_add(walk->report, LKG_WARNING, LKG_C_SORT_TRAP, &where,
                               "%s is applied before %s: names are sorted as text, not as numbers; give all "
                               "numbers the same width",
                               a, b);
                return; /* one per directory is enough */
        }
}

/* A mounted ConfigMap: `..data` -> `..2024_01_01`, and one symlink per file. */
static void check_volume_layout(struct lkg_walk *walk, int fd, const struct lkg_strings *names,
                                const char *path)
{
        struct stat st;

        for (size_t i = 0; i < names->n_items; i++) {
                if (strcmp(names->items[i], "..data") != 0)
                        continue;
                if (fstatat(fd, "..data", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
                        finding(walk, LKG_NOTE, LKG_C_TWICE, path,
                                "a mounted ConfigMap: each file is applied twice (below ..data's target and "
                                "by its own link), as the component itself does it");
                return;
        }
}

/* ---- the walk ---- */

static int walk_dir(struct lkg_walk *walk, int fd, const char *path, const char *prefix, unsigned depth);

static int walk_subdir(struct lkg_walk *walk, int fd, const char *entry, const char *path, const char *name,
                       unsigned depth)
{
        LKG_CLEANUP(lkg_closep) int sub = -EBADF;

        if (depth >= LKG_WALK_DEPTH_MAX) {
                finding(walk, LKG_ERROR, LKG_C_WALK_LIMIT, path,
                        "directories are nested deeper than 64 levels");
                return 0;
        }
        sub = openat(fd, entry, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub < 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) {
                        walk->vanished = true;
                        return 0;
                }
                if (errno == ENOMEM || errno == EMFILE || errno == ENFILE)
                        return -errno;
                finding(walk, LKG_ERROR, LKG_C_UNREADABLE, path,
                        "the directory cannot be opened; check its mode");
                return 0;
        }
        return walk_dir(walk, sub, path, name, depth + 1);
}

static bool leads_to_directory(int fd, const char *entry)
{
        struct stat st;

        return fstatat(fd, entry, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static void skipped_link(struct lkg_walk *walk, int fd, const char *entry, const char *path)
{
        if (strcmp(entry, "..data") == 0)
                return; /* has its own note */
        if (leads_to_directory(fd, entry))
                finding(walk, LKG_WARNING, LKG_C_SKIPPED_LINK, path,
                        "a symlink to a directory is not followed, its files are not loaded; use a real "
                        "directory");
        else
                finding(walk, LKG_NOTE, LKG_C_SKIPPED, path,
                        "skipped: only names that end in .conf are loaded");
}

static int walk_entry(struct lkg_walk *walk, int fd, const char *entry, const char *path, const char *name,
                      unsigned depth)
{
        struct stat st, target;
        bool link;

        if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno == ENOENT) {
                        walk->vanished = true;
                        return 0;
                }
                if (errno == ENOMEM)
                        return -ENOMEM;
                finding(walk, LKG_ERROR, LKG_C_UNREADABLE, path,
                        "cannot be looked at; check the directory's mode");
                return 0;
        }
        link = S_ISLNK(st.st_mode);
        if (walk->flat && fstatat(fd, entry, &target, 0) == 0 && !S_ISREG(target.st_mode))
                return 0; /* a kubelet ignores it */
        if (S_ISDIR(st.st_mode))
                return walk_subdir(walk, fd, entry, path, name, depth);
        switch (walk->judge(walk, entry, link, path)) {
        case LKG_WALK_LOAD:
                walk->vanished |= walk->found(fd, entry, path, name, &st, walk->userdata);
                return 0;
        case LKG_WALK_SKIP:
                if (link)
                        skipped_link(walk, fd, entry, path);
                return 0;
        case LKG_WALK_IGNORE:
                break;
        }
        return 0;
}

static int walk_dir(struct lkg_walk *walk, int fd, const char *path, const char *prefix, unsigned depth)
{
        LKG_CLEANUP(lkg_strings_deinit) struct lkg_strings names = { 0 };
        int r;

        walk->directory(path, walk->userdata);
        r = read_names(walk, fd, path, &names);
        if (r == 1)
                walk->vanished = true;
        if (r == 0 && !walk->flat) {
                check_sort_trap(walk, &names, path);
                check_volume_layout(walk, fd, &names, path);
        }
        for (size_t i = 0; r == 0 && i < names.n_items; i++) {
                const char *entry = names.items[i];
                LKG_CLEANUP(lkg_freep)
                char *sub_path = lkg_format("%s%s%s", path, strcmp(path, "/") == 0 ? "" : "/", entry);
                LKG_CLEANUP(lkg_freep) char *name = lkg_format("%s%s%s", prefix, *prefix ? "/" : "", entry);

                r = walk_entry(walk, fd, entry, sub_path, name, depth);
        }
        return r < 0 ? r : 0;
}

int lkg_walk(struct lkg_walk *walk, int fd, const char *path)
{
        return walk_dir(walk, fd, path, "", 0);
}

/* ---- which entries are layers ---- */

bool lkg_is_conf(const char *name)
{
        const char *dot = strrchr(name, '.');

        return dot && strcmp(dot, ".conf") == 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
        size_t n = strlen(name), m = strlen(suffix);

        return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Files that editors create beside the edited one; they appear and disappear and have no meaning. */
static bool is_editor_file(const char *name, bool link)
{
        static const char *const suffixes[] = { "~", ".swp", ".swo", ".swn", ".swx", "#" };

        if (strncmp(name, ".#", 2) == 0 && link)
                return true; /* the lock of an editor that has NAME open */
        if (strcmp(name, "4913") == 0 || strncmp(name, ".goutputstream-", 15) == 0)
                return true;
        if (strlen(name) == 9 && strncmp(name, "sed", 3) == 0 && !strchr(name, '.'))
                return true;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(suffixes); i++)
                if (has_suffix(name, suffixes[i]))
                        return true;
        return false;
}

enum lkg_walk_verdict lkg_judge_dropin(struct lkg_walk *walk, const char *name, bool link, const char *file)
{
        static const char *const documents[] = {
                ".yaml", ".yml", ".json", ".YAML", ".YML", ".JSON", ".CONF"
        };

        if (is_editor_file(name, link)) {
                if (link && lkg_is_conf(name))
                        finding(walk, LKG_WARNING, LKG_C_EDITOR_LOCK, file,
                                "the lock of an editor, ignored here; the component's own --config-dir does "
                                "not start over it; end the editor, or remove the link");
                return LKG_WALK_IGNORE;
        }
        if (lkg_is_conf(name)) {
                if (*name == '.')
                        finding(walk, LKG_WARNING, LKG_C_HIDDEN, file,
                                "a hidden file counts like any other; remove it if a program left it "
                                "behind");
                return LKG_WALK_LOAD;
        }
        if (link)
                return LKG_WALK_SKIP;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(documents); i++) {
                if (!has_suffix(name, documents[i]))
                        continue;
                finding(walk, LKG_WARNING, LKG_C_SKIPPED_YAML, file,
                        "skipped: only names that end in .conf are loaded; rename it to use it");
                return LKG_WALK_SKIP;
        }
        finding(walk, LKG_NOTE, LKG_C_SKIPPED, file, "skipped: only names that end in .conf are loaded");
        return LKG_WALK_SKIP;
}

/*
 * A kubelet reads every file whose name does not begin with a dot (pkg/kubelet/config/file.go). What programs leave beside a file
 * that they edit, replace or save is no manifest for us.
 */
enum lkg_walk_verdict lkg_judge_manifest(struct lkg_walk *walk, const char *name, bool link,
                                         const char *file)
{
        static const char *const suffixes[] = { ".bak",      ".orig",    ".old",     ".rej",     ".save",
                                                ".rpmsave",  ".rpmnew",  ".rpmorig", ".tmp",     ".part",
                                                ".disabled", ".ucf-old", ".ucf-new", ".ucf-dist" };
        bool left = strstr(name, ".dpkg-") || strstr(name, ".bak.");

        if (*name == '.' || is_editor_file(name, link)) {
                if (*name != '.')
                        finding(walk, LKG_NOTE, LKG_C_COPY, file,
                                "an editor's file, not served; a kubelet that reads the directory itself "
                                "would "
                                "run it");
                return LKG_WALK_IGNORE;
        }
        for (size_t i = 0; !left && i < LKG_ARRAY_SIZE(suffixes); i++)
                left = has_suffix(name, suffixes[i]);
        if (!left)
                return LKG_WALK_LOAD;
        finding(walk, LKG_WARNING, LKG_C_COPY, file,
                "the name is that of a copy, so it is not served; a kubelet that reads the directory itself "
                "would "
                "run it as well; keep copies elsewhere");
        return LKG_WALK_IGNORE;
}

/* Files of kubeadm patches: TARGET[suffix][+type].yaml or .json. */
int lkg_patch_name(const char *name, const char *target, enum lkg_patch_type *ret_type)
{
        static const struct {
                const char *name;
                enum lkg_patch_type type;
        } types[] = {
                { "json", LKG_PATCH_JSON },
                { "merge", LKG_PATCH_MERGE },
                { "strategic", LKG_PATCH_STRATEGIC },
        };
        size_t n = strlen(target), suffix, length;
        const char *p = name + n;

        if (!has_suffix(name, ".json") && !has_suffix(name, ".yaml"))
                return 0;
        if (strncmp(name, target, n) != 0)
                return 0;
        suffix = strcspn(p, ".+");
        p += suffix;
        *ret_type = LKG_PATCH_STRATEGIC;
        if (*p == '.')
                return strchr(p + 1, '.') ? 0 : 1;
        length = strcspn(++p, ".");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++) {
                if (strlen(types[i].name) != length || strncmp(types[i].name, p, length) != 0)
                        continue;
                *ret_type = types[i].type;
                return strchr(p + length + 1, '.') ? 0 : 1;
        }
        return -EINVAL;
}

enum lkg_walk_verdict lkg_judge_patch(struct lkg_walk *walk, const char *name, bool link, const char *file)
{
        enum lkg_patch_type type;
        int r = lkg_patch_name(name, walk->target, &type);

        if (r > 0)
                return LKG_WALK_LOAD;
        if (r < 0) {
                finding(walk, LKG_ERROR, LKG_C_PATCH_TYPE, file,
                        "unknown patch type after '+'; one of json, merge, strategic is wanted");
                return LKG_WALK_SKIP;
        }
        if (!is_editor_file(name, link))
                finding(walk, LKG_NOTE, LKG_C_PATCH_NAME, file,
                        "skipped: a patch is named TARGET[suffix][+type].yaml or .json");
        return LKG_WALK_SKIP;
}
