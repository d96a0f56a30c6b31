/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <lkg/base.h>
#include <lkg/file.h>

#include "mounts.h"

#define MOUNTINFO_MAX (64u << 20)
#define STACKED_MAX   16 /* views stacked on each other */

/*
 * Copies one blank-delimited field and resolves \ooo.
 * Return: what follows it, or NULL if it does not fit.
 */
static const char *take_field(const char *p, char *ret, size_t size)
{
        size_t n = 0;

        while (*p && *p != ' ') {
                char c = *p++;

                if (c == '\\' && p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' &&
                    p[2] <= '7') {
                        c = (char)((p[0] - '0') << 6 | (p[1] - '0') << 3 | (p[2] - '0'));
                        p += 3;
                }
                if (n + 1 >= size)
                        return NULL;
                ret[n++] = c;
        }
        ret[n] = '\0';
        return *p == ' ' ? p + 1 : p;
}

int lkg_mounts_parse_line(const char *line, struct lkg_mount *ret)
{
        char root[PATH_MAX];
        const char *p;
        int n = 0;

        if (sscanf(line, "%" SCNu64 " %*u %u:%u %n", &ret->id, &ret->major, &ret->minor, &n) != 3 || n == 0)
                return -EBADMSG;
        p = take_field(line + n, root, sizeof(root));
        p = p ? take_field(p, ret->point, sizeof(ret->point)) : NULL;
        if (p && !take_field(p, ret->flags, sizeof(ret->flags)))
                ret->flags[0] = '\0';
        p = p ? strstr(p, " - ") : NULL; /* options and optional fields do not contain " - " */
        p = p ? take_field(p + 3, ret->type, sizeof(ret->type)) : NULL;
        if (!p)
                return -EBADMSG;
        if (!take_field(p, ret->source, sizeof(ret->source)))
                ret->source[0] = '\0'; /* only for messages */
        p = strchr(p, ' ');
        if (!p || !take_field(p + 1, ret->options, sizeof(ret->options)))
                ret->options[0] = '\0';
        return ret->point[0] == '/' && ret->type[0] ? 0 : -EBADMSG;
}

/* The next mount of a table, which is split into lines. Return: false: there is none. */
static bool next(char **text, struct lkg_mount *ret)
{
        char *line;

        while ((line = strsep(text, "\n")))
                if (lkg_mounts_parse_line(line, ret) == 0)
                        return true;
        return false;
}

static int read_mountinfo_of(const char *process, char **ret)
{
        char path[PATH_MAX];
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        (void)snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : lkg_read_file(fd, MOUNTINFO_MAX, ret, NULL, NULL);
}

static int read_mountinfo(char **ret)
{
        return read_mountinfo_of("self", ret);
}

bool lkg_mounts_elsewhere(unsigned minor)
{
        LKG_CLEANUP(lkg_dir_closep) DIR *proc = lkg_dir_open(AT_FDCWD, "/proc");
        const struct dirent *entry;
        bool found = false;
        int r = 0;

        while (proc && !found && (entry = lkg_dir_next(proc, &r))) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                struct lkg_mount mount;
                char *rest;

                if (*entry->d_name < '1' || *entry->d_name > '9' ||
                    read_mountinfo_of(entry->d_name, &text) < 0)
                        continue;
                for (rest = text; !found && next(&rest, &mount);)
                        found = lkg_mount_is_lkgfs(&mount) && mount.minor == minor;
        }
        return found;
}

/* The mount with number @id of our mount table. Return: 1 and @ret; 0; -errno. */
static int find_mount(uint64_t id, struct lkg_mount *ret)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        int r = read_mountinfo(&text);

        return r < 0 ? r : lkg_mounts_find_in(text, id, ret);
}

/* A path walk ends in the mount on top. */
int lkg_mounts_top(const char *point, struct lkg_mount *ret)
{
        uint64_t id;
        int r = lkg_mounts_id_of(AT_FDCWD, point, &id);

        if (r >= 0)
                r = find_mount(id, ret);
        return r <= 0 ? r : strcmp(ret->point, point) == 0;
}

/* Identifies the mount, its source and its place; an id alone may be reused. */
static uint64_t digest_of(const struct lkg_mount *mount)
{
        char text[PATH_MAX + 64];
        int n = snprintf(text, sizeof(text), "%" PRIu64 " %u:%u %s", mount->id, mount->major, mount->minor,
                         mount->point);

        return lkg_hash(0, text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

uint64_t lkg_mounts_below_in(char *text, const char *dir)
{
        struct lkg_mount mount;
        uint64_t sum = 0;

        while (next(&text, &mount))
                if (lkg_path_below(mount.point, dir) && !lkg_mount_is_lkgfs(&mount))
                        sum += digest_of(&mount);
        return sum;
}

uint64_t lkg_mounts_below(const char *dir)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        return read_mountinfo(&text) < 0 ? 0 : lkg_mounts_below_in(text, dir);
}

int lkg_mounts_has(uint64_t id)
{
        struct lkg_mount mount;
        int r = find_mount(id, &mount);

        return r < 0 ? r : r > 0 && lkg_mount_is_lkgfs(&mount);
}

/* Return: number of views detached in this pass, or -errno. */
static int detach_pass(void)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_mount mount;
        int n = 0, r = read_mountinfo(&text);
        char *rest = text;

        if (r < 0)
                return r;
        while (next(&rest, &mount))
                if (lkg_mount_is_lkgfs(&mount) && umount2(mount.point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
                        n++;
        return n;
}

int lkg_mounts_detach_views(void)
{
        int n = 1;

        for (int i = 0; n > 0 && i < STACKED_MAX; i++)
                n = detach_pass();
        return n < 0 ? n : 0;
}

int lkg_mounts_find_in(char *text, uint64_t id, struct lkg_mount *ret)
{
        while (next(&text, ret))
                if (ret->id == id)
                        return 1;
        return 0;
}

int lkg_mounts_of(int fd, struct lkg_mount *ret)
{
        uint64_t id;
        int r = lkg_mounts_id_of(fd, "", &id);

        return r < 0 ? r : find_mount(id, ret);
}

static bool has_option(const char *options, const char *option)
{
        const struct mntent entry = { .mnt_opts = (char *)(uintptr_t)options };

        return hasmntopt(&entry, option);
}

bool lkg_mount_asks_elsewhere(const struct lkg_mount *mount)
{
        static const char *const types[] = { "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "afs" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(types); i++)
                if (strcmp(mount->type, types[i]) == 0)
                        return true;
        return lkg_mount_is_fuse(mount) && !(has_option(mount->options, "allow_other") &&
                                             has_option(mount->options, "default_permissions"));
}

uint64_t lkg_mount_restrictions(const struct lkg_mount *mount)
{
        return (has_option(mount->flags, "noexec") ? MOUNT_ATTR_NOEXEC : 0) |
               (has_option(mount->flags, "nosymfollow") ? MOUNT_ATTR_NOSYMFOLLOW : 0);
}

bool lkg_mount_is_lkgfs(const struct lkg_mount *mount)
{
        return strcmp(mount->type, "fuse.lkgfs") == 0;
}

bool lkg_mount_is_fuse(const struct lkg_mount *mount)
{
        return strcmp(mount->type, "fuse") == 0 || strcmp(mount->type, "fuseblk") == 0 ||
               strncmp(mount->type, "fuse.", 5) == 0;
}

int lkg_mounts_id_of(int dirfd, const char *path, uint64_t *ret)
{
        struct statx stx;
        int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;

        /* A mask of 0: the number is there in any case, and FUSE refuses more to whom a server does not admit. */
        if (statx(dirfd, path, flags, 0, &stx) < 0)
                return -errno;
        if (!(stx.stx_mask & STATX_MNT_ID))
                return -EOPNOTSUPP;
        *ret = stx.stx_mnt_id;
        return 0;
}
