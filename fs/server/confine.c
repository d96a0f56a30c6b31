/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops all privileges that the file server does not need to act for its callers in one directory. It
 * answers every user of the mount, so it is the first process that an attacker reaches.
 */
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>

#include "file-server.h"

#include <lkg/process.h>

static const int capabilities[] = {
        /* the kernel has checked the caller's permission (default_permissions) */
        CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
        /* chmod, chown, utimensat, ACLs for callers that may do it */
        CAP_FOWNER, CAP_FSETID, CAP_CHOWN,
        /* new files belong to the caller */
        CAP_SETUID, CAP_SETGID,
        /* device nodes and security.capability for callers that may do it */
        CAP_MKNOD, CAP_SETFCAP,
        /* /proc/PID/exe and namespaces of a caller */
        CAP_SYS_PTRACE,
        /* trusted.* attributes; other calls that need it are not on the lists below */
        CAP_SYS_ADMIN, -1
};

static const struct lkg_syscall_argument arguments[] = {
        { SYS_socket, 0, true, false, 0, { 0 }, EAFNOSUPPORT }, /* of any family; a library may try */
        { SYS_unshare, 0, true, false, 1, { CLONE_FS }, 0 },    /* a umask for each thread */
};

static const int allowed[] = {
        /* the owner of a new file */
        SYS_setfsuid, SYS_setfsgid, SYS_capset,
        /* files of the source directory */
        SYS_mkdirat, SYS_mknodat, SYS_unlinkat, SYS_linkat, SYS_symlinkat, SYS_renameat2, SYS_truncate,
        SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_syncfs, SYS_sync_file_range,
        SYS_copy_file_range, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_flock,
        SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
        SYS_listxattr, SYS_llistxattr, SYS_flistxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr,
        SYS_splice, SYS_vmsplice,
        /* files that a predecessor knew are found again by their handle */
        SYS_name_to_handle_at, SYS_open_by_handle_at,
/* the next supervisor connects to an existing socket; no other socket is ever created */
#ifdef SYS_accept /* s390x: accept4 with no flags */
        SYS_accept,
#endif
        SYS_sendmmsg, SYS_recvmmsg,
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_open
        SYS_chmod, SYS_chown, SYS_lchown, SYS_mkdir, SYS_rmdir, SYS_unlink, SYS_rename, SYS_link,
        SYS_symlink, SYS_mknod, SYS_utimes
#endif
};

int lkg_server_confine(struct lkg_error *err)
{
        const struct lkg_syscall_policy policy = {
                .arguments = arguments,
                .n_arguments = LKG_ARRAY_SIZE(arguments),
                .allowed = allowed,
                .n_allowed = LKG_ARRAY_SIZE(allowed),
        };

        return lkg_confine(capabilities, &policy, err);
}
