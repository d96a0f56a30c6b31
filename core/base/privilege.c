/* SPDX-License-Identifier: Apache-2.0 */
/* See <lkg/process.h>. */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <pthread.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscall-policy.h"

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/process.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define STATUS_MAX (64u << 10)

static bool is_kept(const int *capabilities, int capability)
{
        while (*capabilities >= 0 && *capabilities != capability)
                capabilities++;
        return *capabilities >= 0;
}

/* As long as we may; without the capability there is nothing to drop from the bounding set. */
static void bound(const int *capabilities)
{
        for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                if (!is_kept(capabilities, cap))
                        (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int lkg_capabilities_keep(const int *capabilities, struct lkg_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { 0 }, wanted[2] = { 0 };

        bound(capabilities); /* first */
        if (syscall(SYS_capget, &header, data) < 0)
                return lkg_error_set(err, -errno, NULL, "read the capabilities");
        for (; *capabilities >= 0; capabilities++) {
                unsigned word = (unsigned)*capabilities / 32, bit = (unsigned)*capabilities % 32;

                wanted[word].permitted |= data[word].permitted & (1u << bit);
                wanted[word].effective = wanted[word].permitted;
        }
        if (syscall(SYS_capset, &header, wanted) < 0)
                return lkg_error_set(err, -errno, NULL, "drop capabilities");
        return 0;
}

bool lkg_has_capability(int capability)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

        return syscall(SYS_capget, &header, data) == 0 &&
               (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability));
}

int lkg_confine(const int *capabilities, const struct lkg_syscall_policy *policy, struct lkg_error *err)
{
        int r = lkg_capabilities_keep(capabilities, err);

        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        return LKG_SANITIZED ? 0 : lkg_syscalls_restrict(policy, err);
}

/* ---- the peer ---- */

bool lkg_process_has_capability(int pid, int capability)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        const char *line;
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || lkg_read_file(fd, STATUS_MAX, &text, NULL, NULL) < 0)
                return false;
        line = strstr(text, "\nCapEff:");
        return line && (strtoull(line + strlen("\nCapEff:"), NULL, 16) >> capability & 1);
}

/* A pidfd of the peer itself, if the kernel supports that; else of the process that has its pid now. */
static int open_peer(int socket, int pid)
{
        int pidfd = -EBADF;
        socklen_t size = sizeof(pidfd);

        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
                return pidfd;
        pidfd = pidfd_open(pid, 0);
        return pidfd < 0 ? -errno : pidfd;
}

int lkg_peer_of_host(int socket, int capability, ino_t mount_namespace)
{
        LKG_CLEANUP(lkg_closep) int pidfd = -EBADF;
        struct ucred cred = { 0 };
        socklen_t size = sizeof(cred);
        struct pollfd end = { .events = POLLIN };
        ino_t ours;

        if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
                return -errno;
        pidfd = cred.pid > 0 ? open_peer(socket, cred.pid) : -ESRCH;
        if (pidfd < 0)
                return pidfd;
        ours = lkg_process_namespace(getpid(), "user");
        if (cred.uid != geteuid() || ours == 0 || lkg_process_namespace(cred.pid, "user") != ours ||
            (mount_namespace != 0 && lkg_process_namespace(cred.pid, "mnt") != mount_namespace) ||
            !lkg_process_has_capability(cred.pid, capability))
                return -EPERM;
        end.fd = pidfd; /* while it runs, its pid cannot be reused */
        return poll(&end, 1, 0) == 0 ? cred.pid : -ESRCH;
}

/* ---- landlock ---- */

/* See <lkg/process.h>. */

/* Newer than the headers of Linux 6.1. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define NET_BIND_TCP        (1ULL << 0)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL        (1ULL << 1)

/* Rights in our own directories. */
#define WRITES                                                                                            \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
         LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)
/* Rights to create special files for a caller. */
#define SPECIAL                                                                                       \
        (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | \
         LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
/* Rights that are never granted. */
#define NEVER LANDLOCK_ACCESS_FS_EXECUTE

/*
 * struct landlock_ruleset_attr of the newest ABI that is used here. Older kernels accept the first part of
 * it.
 */
struct ruleset {
        uint64_t fs, net, scoped;
};

static const struct abi {
        int since;
        size_t size; /* size of struct ruleset in that ABI */
        uint64_t fs_writes, fs_never, net, scoped;
} abis[] = {
        { 1, offsetof(struct ruleset, net), WRITES, SPECIAL | NEVER, 0, 0 },
        { 2, offsetof(struct ruleset, net), LANDLOCK_ACCESS_FS_REFER, 0, 0, 0 },
        { 3, offsetof(struct ruleset, net), LANDLOCK_ACCESS_FS_TRUNCATE, 0, 0, 0 },
        { 4, offsetof(struct ruleset, scoped), 0, 0, NET_BIND_TCP, 0 },
        { 5, offsetof(struct ruleset, scoped), 0, LANDLOCK_ACCESS_FS_IOCTL_DEV, 0, 0 },
        { 6, sizeof(struct ruleset), 0, 0, 0, SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL },
};

static int allow(int ruleset, int directory, uint64_t access)
{
        struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = directory };

        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno
                                                                                                 : 0;
}

int lkg_landlock_enter(const int *writable, size_t n_writable, bool special, struct lkg_error *err)
{
        int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION), r = 0;
        LKG_CLEANUP(lkg_closep) int ruleset = -EBADF;
        struct ruleset handled = { 0 };
        uint64_t writes = special ? SPECIAL : 0;
        size_t size = 0;

        if (abi < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
                return 0;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(abis) && abis[i].since <= abi; i++) {
                writes |= abis[i].fs_writes;
                handled.fs |= abis[i].fs_writes | abis[i].fs_never;
                handled.net |= abis[i].net;
                handled.scoped |= abis[i].scoped;
                size = abis[i].size;
        }
        ruleset = abi < 0 ? -1 : (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
        if (ruleset < 0)
                return lkg_error_set(err, -errno, NULL, "Landlock");
        for (size_t i = 0; r == 0 && i < n_writable; i++)
                r = allow(ruleset, writable[i], writes);
        if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                r = -errno;
        return r < 0 ? lkg_error_set(err, r, NULL, "Landlock") : abi;
}

/* ---- sandbox ---- */

/* Drops privileges: see <lkg/process.h>. */

#define DATA_BYTES_MAX     (256u << 20)
#define THREAD_STACK_BYTES (1u << 20) /* the default is 8 MiB; the resolver needs a tenth of this */

static const int reading[] = { CAP_DAC_READ_SEARCH, -1 };

static int limit(int resource, rlim_t value)
{
        const struct rlimit both = { value, value };

        return setrlimit((__rlimit_resource_t)resource, &both) < 0 ? -errno : 0;
}

/* Limits the stacks of the resolver's threads (libcurl starts one per lookup): stacks count as data. */
static int bound_thread_stacks(void)
{
        pthread_attr_t attr;
        int r = pthread_attr_init(&attr);

        if (r != 0)
                return -r;
        r = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
        if (r == 0)
                r = pthread_setattr_default_np(&attr);
        (void)pthread_attr_destroy(&attr);
        return -r;
}

int lkg_sandbox_hide_memory(struct lkg_error *err)
{
        int r = limit(RLIMIT_CORE, 0);

        if (r < 0)
                return lkg_error_set(err, r, NULL, "resource limits");
        /*
         * RLIMIT_CORE does not apply to a core dump that is piped to a program: core(5). The leak checker of
         * a sanitizer build traces its own process, so that build stays dumpable.
         */
        if (prctl(PR_SET_DUMPABLE, LKG_SANITIZED, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        return 0;
}

/*
 * The C library's resolver sends both address queries in one sendmmsg(2), which is refused
 * (syscalls.c). glibc then sends them one by one; another library might take the error for a server
 * that does not respond. With single-request, they are always sent one by one.
 */
static int ask_one_by_one(void)
{
        const char *set = getenv("RES_OPTIONS");
        char options[512];
        int n = snprintf(options, sizeof(options), "%s%ssingle-request", set ? set : "", set ? " " : "");

        return setenv("RES_OPTIONS", n < (int)sizeof(options) ? options : "single-request", 1);
}

/*
 * Become another user for good: all ids, no supplementary groups, only @capabilities, and none of them for a program that it
 * executes.
 */
static int change_user(const struct lkg_account *account, const int *capabilities, struct lkg_error *err)
{
        static const int none[] = { -1 };
        const gid_t gid = account->gid;
        const uid_t uid = account->uid;

        /*
         * This keeps permitted capabilities across the change of the user, but not effective ones: they are
         * raised again below.
         */
        if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        if (setresgid(gid, gid, gid) < 0)
                return lkg_error_set(err, -errno, NULL, "change to group %u", (unsigned)gid);
        bound(none); /* executed programs cannot have more; needs a capability that is dropped next */
        if (setgroups(0, NULL) < 0 || setresuid(uid, uid, uid) < 0)
                return lkg_error_set(err, -errno, NULL, "change to user %u", (unsigned)uid);
        if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        return lkg_capabilities_keep(capabilities, err);
}

/*
 * A user that is not mapped in this user namespace cannot be used: better root without capabilities than no
 * engine.
 */
static int become(const struct lkg_account *account, const int *capabilities, struct lkg_error *err)
{
        int r = account->uid == 0 ? 0 : change_user(account, capabilities, err);

        if (r != -EINVAL)
                return r;
        lkg_log_warning("the engine stays root: %s", err->message);
        return 0;
}

int lkg_sandbox_become(const struct lkg_account *account, struct lkg_error *err)
{
        const pid_t parent = getppid();
        int ends_with_parent = 0, r;

        (void)prctl(PR_GET_PDEATHSIG, &ends_with_parent, 0, 0, 0);
        r = become(account, reading, err);
        if (r < 0)
                return r;
        /* A change of the user has ended that: prctl(2). */
        if (ends_with_parent &&
            (prctl(PR_SET_PDEATHSIG, ends_with_parent, 0, 0, 0) < 0 || getppid() != parent))
                return lkg_error_set(err, -ECHILD, NULL, "the process that started this one has ended");
        lkg_trust_root_alone();
        /* Changing the user makes the process dumpable again if fs.suid_dumpable says so: proc(5). */
        return lkg_sandbox_hide_memory(err);
}

int lkg_sandbox_enter(const int *writable, size_t n_writable, struct lkg_error *err)
{
        static const int nothing[] = { -1 };
        bool root = geteuid() == 0;
        int r = 0;

        if (!LKG_SANITIZED) /* a sanitizer's shadow memory counts as data */
                r = limit(RLIMIT_DATA, DATA_BYTES_MAX);
        if (r >= 0)
                r = bound_thread_stacks();
        if (r < 0)
                return lkg_error_set(err, r, NULL, "resource limits");
        /*
         * If SSLKEYLOGFILE is set to debug TLS in a shell, libcurl would write the engine's keys to that
         * file, too.
         */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || unsetenv("SSLKEYLOGFILE") < 0 ||
            ask_one_by_one() < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        r = LKG_SANITIZED ? 0 : lkg_landlock_enter(writable, n_writable, false, err);
        if (r < 0)
                return r;
        return root ? lkg_confine(nothing, &lkg_engine_syscalls_of_root, err)
                    : lkg_confine(reading, &lkg_engine_syscalls, err);
}
