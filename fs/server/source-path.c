/* SPDX-License-Identifier: Apache-2.0 */
/* One file of the source, by path: stat and open without waiting for a dead file system. */
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "file-server.h"

int lkg_source_stat(int dirfd, const char *name, int flags, struct stat *ret)
{
        struct statx x;

        if (statx(dirfd, name, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x) < 0)
                return -errno;
        *ret = (struct stat){
                .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
                .st_ino = x.stx_ino,
                .st_mode = x.stx_mode,
                .st_nlink = x.stx_nlink,
                .st_uid = x.stx_uid,
                .st_gid = x.stx_gid,
                .st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor),
                .st_size = (off_t)x.stx_size,
                .st_blksize = (blksize_t)x.stx_blksize,
                .st_blocks = (blkcnt_t)x.stx_blocks,
                .st_atim = { .tv_sec = x.stx_atime.tv_sec, .tv_nsec = x.stx_atime.tv_nsec },
                .st_mtim = { .tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec },
                .st_ctim = { .tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec },
        };
        return 0;
}

/* O_NONBLOCK is only for open(): reads must wait, on any file system. */
static int become_blocking(int fd, int flags)
{
        if (!(flags & O_NONBLOCK))
                (void)fcntl(fd, F_SETFL, flags & O_APPEND);
        return fd;
}

int lkg_source_open_path(const char *path, int flags)
{
        int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

        if (fd >= 0)
                return become_blocking(fd, flags);
        if (errno != EWOULDBLOCK || (flags & O_NONBLOCK))
                return -errno;
        if (!task.may_block) {
                task.again = true;
                return -EAGAIN;
        }
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}
