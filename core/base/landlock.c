/* SPDX-License-Identifier: Apache-2.0 */
/* See <lkg/process.h>. */
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lkg/file.h>
#include <lkg/process.h>

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
