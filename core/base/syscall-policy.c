/* SPDX-License-Identifier: Apache-2.0 */
#include "syscall-policy.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* socketpair(2) takes its flags in the type argument. */
#define STREAM(flags) (SOCK_STREAM | (flags))

#define NEVER(call)                                         \
        {                                                   \
                SYS_##call, 0, true, false, 0, { 0 }, EPERM \
        }

/*
 * First the calls that an engine running as root may not make, then the calls that are checked by an
 * argument.
 */
#ifdef SYS_open
#define N_OLD 6
#else
#define N_OLD 0
#endif
#define N_OF_ROOT (5 + N_OLD)

static const struct lkg_syscall_argument arguments[] = {
        NEVER(fchmod),
        NEVER(fchmodat),
        NEVER(fchown),
        NEVER(fchownat),
        NEVER(utimensat),
#ifdef SYS_open
        NEVER(chmod),
        NEVER(chown),
        NEVER(lchown),
        NEVER(utime),
        NEVER(utimes),
        NEVER(futimesat),
#endif
        /*
         * No AF_UNIX: by name, it could reach every socket of root on this node, above all those of the
         * service manager and the container runtime. Netlink: the resolver reads the addresses of this
         * machine.
         */
        { SYS_socket, 0, true, false, 3, { AF_INET, AF_INET6, AF_NETLINK }, EAFNOSUPPORT },
        /*
         * libcurl wakes itself up with a socketpair. A datagram socket could send to any name; these stay
         * connected to each other.
         */
        { SYS_socketpair,
          1,
          true,
          false,
          4,
          { STREAM(0), STREAM(SOCK_CLOEXEC), STREAM(SOCK_NONBLOCK), STREAM(SOCK_CLOEXEC | SOCK_NONBLOCK) },
          EAFNOSUPPORT },
        /*
         * No leases and no locks: both can make other processes wait, and for some of them a readable file
         * is enough.
         */
        { SYS_fcntl,
          1,
          true,
          false,
          8,
          { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_ADD_SEALS, F_GET_SEALS },
          EPERM },
        /*
         * The engine passes no descriptor to our other processes: closing the last one of a connection can
         * take hours (SO_LINGER).
         */
        { SYS_sendmsg, 0, true, false, 0, { 0 }, ENOSYS },
        { SYS_sendmmsg, 0, true, false, 0, { 0 }, ENOSYS },
};

static const int allowed[] = {
        /* state and publications */
        SYS_mkdirat,
        SYS_unlinkat,
        SYS_renameat2,
        SYS_linkat,
        SYS_ftruncate,
        SYS_fallocate,
        SYS_fsync,
        SYS_fdatasync,
        SYS_fchmod,
        SYS_fchmodat,
        SYS_fchown,
        SYS_fchownat,
        SYS_utimensat,
        SYS_fgetxattr,
        SYS_getxattr,
        SYS_lgetxattr,
        SYS_copy_file_range,
        /* the API server and the resolver */
        SYS_connect,
        SYS_bind,
        SYS_recvmmsg,
#ifdef SYS_accept /* s390x: accept4 with no flags */
        SYS_accept,
#endif
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_getrlimit
        SYS_getrlimit,
        SYS_setrlimit,
#endif
#ifdef SYS_open
        SYS_mkdir,
        SYS_rmdir,
        SYS_unlink,
        SYS_rename,
        SYS_chmod,
#endif
};

_Static_assert(LKG_ARRAY_SIZE(arguments) > N_OF_ROOT, "the first ones");

const struct lkg_syscall_policy lkg_engine_syscalls = {
        .arguments = arguments + N_OF_ROOT,
        .n_arguments = LKG_ARRAY_SIZE(arguments) - N_OF_ROOT,
        .allowed = allowed,
        .n_allowed = LKG_ARRAY_SIZE(allowed),
};

const struct lkg_syscall_policy lkg_engine_syscalls_of_root = {
        .arguments = arguments,
        .n_arguments = LKG_ARRAY_SIZE(arguments),
        .allowed = allowed,
        .n_allowed = LKG_ARRAY_SIZE(allowed),
};
