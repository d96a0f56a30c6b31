/* SPDX-License-Identifier: Apache-2.0 */
/* See <lkg/process.h>. */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

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

int lkg_become(const struct lkg_account *account, const int *capabilities, struct lkg_error *err)
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

static bool has_capability(int pid, int capability)
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
            !has_capability(cred.pid, capability))
                return -EPERM;
        end.fd = pidfd; /* while it runs, its pid cannot be reused */
        return poll(&end, 1, 0) == 0 ? cred.pid : -ESRCH;
}
