/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount table from /proc/self/mountinfo (proc_pid_mountinfo(5)), and checks of paths that never send a
 * request to a FUSE server: the server may be the one that is dead.
 */
#pragma once

#include <limits.h>

#include <lkg/base.h>

struct lkg_mount {
        uint64_t id;
        unsigned major, minor; /* of the superblock; for FUSE the minor number is that of the connection */
        char point[PATH_MAX];
        char type[64]; /* "fuse.lkgfs" */
        char source[256];
        char flags[128];   /* of the mount: "rw,nosuid,noexec"; "" if they are longer */
        char options[512]; /* of the file system, not of the mount; "" if they are longer */
};

/** lkg_mounts_parse_line() - parse one line of mountinfo, with octal escapes. Return: 0 or -EBADMSG. */
int lkg_mounts_parse_line(const char *line, struct lkg_mount *ret);

/** lkg_mounts_top() - the mount that a walk to @point ends in. Return: 1; 0: none is exactly there; -errno. */
int lkg_mounts_top(const char *point, struct lkg_mount *ret);
/**
 * lkg_mounts_below_in() - a number that changes with the mounts below @dir, except views of lkgfs and the mount at @dir
 * itself. 0 = none. @text: a whole mountinfo, which is split into lines.
 */
uint64_t lkg_mounts_below_in(char *text, const char *dir);
/** lkg_mounts_below() - the same for the caller's mount namespace; 0 also if that cannot be read. */
uint64_t lkg_mounts_below(const char *dir);
/** lkg_mounts_has() - is mount @id (a lkgfs mount) in the caller's mount namespace? Return: 1; 0; -errno. */
int lkg_mounts_has(uint64_t id);

/**
 * lkg_mounts_detach_views() - every view of lkgfs, including those of others, from our mount namespace: a copy in a
 * namespace without propagation would keep a file system alive forever. Return: 0; -errno.
 */
int lkg_mounts_detach_views(void);

/** lkg_mounts_find_in() - the mount with number @id. @text as above. Return: 1 and @ret; 0. */
int lkg_mounts_find_in(char *text, uint64_t id, struct lkg_mount *ret);
/** lkg_mounts_of() - the mount that @fd is in, without a request to its file system. Return: 1 and @ret; 0; -errno. */
int lkg_mounts_of(int fd, struct lkg_mount *ret);
/**
 * lkg_mount_asks_elsewhere() - does another machine or process decide who may read its files, so that local
 * capabilities do not help? A network file system, or a FUSE server that admits only its owner or checks
 * permissions itself.
 */
bool lkg_mount_asks_elsewhere(const struct lkg_mount *mount);

/** lkg_mount_restrictions() - MOUNT_ATTR_* that a view of its directory must have, too (always nosuid and nodev). */
uint64_t lkg_mount_restrictions(const struct lkg_mount *mount);

/** lkg_mounts_elsewhere() - does a process see a mount of this FUSE connection? Containers have mounts of parts of a view. */
bool lkg_mounts_elsewhere(unsigned minor);

bool lkg_mount_is_lkgfs(const struct lkg_mount *mount);
bool lkg_mount_is_fuse(const struct lkg_mount *mount);

/** lkg_mounts_id_of() - of the mount that @path is in (relative to @dirfd, "" = @dirfd itself). Return: 0; -errno. */
int lkg_mounts_id_of(int dirfd, const char *path, uint64_t *ret);
