/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small things every folder needs: cleanup attributes, ownership transfer, time.
 *
 * No state, no locks: everything here may be called from any thread.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define LKG_CLEANUP(f)    __attribute__((cleanup(f)))
#define LKG_PRINTF(f, a)  __attribute__((format(printf, f, a)))
#define LKG_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LKG_NSEC_PER_SEC  UINT64_C(1000000000)
#define LKG_NSEC_PER_MSEC UINT64_C(1000000)
#define LKG_SHA256_BYTES  32
#define LKG_SHA256_HEX    65 /* 64 digits and the final NUL */

/* Passes a pointer to its next owner: the variable is NULL afterwards, so its cleanup does nothing. */
#define LKG_STEAL(p)                             \
        ({                                       \
                __typeof__(p) _lkg_stolen = (p); \
                (p) = NULL;                      \
                _lkg_stolen;                     \
        })

/* The same for a file descriptor; -EBADF is "none" everywhere. */
#define LKG_STEAL_FD(fd)            \
        ({                          \
                int _lkg_fd = (fd); \
                (fd) = -EBADF;      \
                _lkg_fd;            \
        })

static inline void lkg_freep(void *p)
{
        free(*(void **)p);
}

/**
 * lkg_close() - close, preserve errno, always return -EBADF: `fd = lkg_close(fd)` leaves no stale number.
 */
static inline int lkg_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                (void)close(fd);
                errno = saved;
        }
        return -EBADF;
}

static inline void lkg_closep(int *fd)
{
        *fd = lkg_close(*fd);
}

/** lkg_boottime_ns() - absolute CLOCK_BOOTTIME in nanoseconds; the one clock for deadlines. */
uint64_t lkg_boottime_ns(void);

/** lkg_realtime_ns() - wall time in nanoseconds since 1970; for people and for files. */
uint64_t lkg_realtime_ns(void);

/**
 * lkg_timespec_ns() - for comparisons only: a user may set a file time that does not fit into 64 bits, which
 * wraps.
 */
static inline int64_t lkg_timespec_ns(const struct timespec *t)
{
        return (int64_t)((uint64_t)t->tv_sec * LKG_NSEC_PER_SEC + (uint64_t)t->tv_nsec);
}

/**
 * lkg_process_running() - is @pid (started at @start_time, 0 = any process with this pid) running?
 * Return: 1; 0 = it is stopped, by a signal or a debugger; -ESRCH = it has ended.
 */
int lkg_process_running(int pid, uint64_t start_time);

/** lkg_process_start_time() - field 22 of /proc/@pid/stat, 0 if there is no such process. */
uint64_t lkg_process_start_time(int pid);
/**
 * lkg_process_namespace() - the number of the namespace that a process or thread is in; valid as long as any process is in it.
 * @type: as in /proc/PID/ns: "mnt", "user" ...
 *
 * Source: namespaces(7).
 * Return: inode; 0: there is no such process, or we are not allowed to read it.
 */
ino_t lkg_process_namespace(int pid, const char *type);

/**
 * lkg_format_rfc3339() - write @ns since 1970 as `2026-01-02T03:04:05Z` (whole seconds, UTC) to @buf[21].
 */
void lkg_format_rfc3339(uint64_t ns, char buf[static 21]);

/** lkg_format_rfc3339_ns() - the same with all digits of the fraction, to @buf[31]. */
void lkg_format_rfc3339_ns(uint64_t ns, char buf[static 31]);

/**
 * lkg_parse_rfc3339() - parse `2026-01-02T03:04:05[.123456789](Z|+01:00)`; digits of the fraction after the
 * ninth are dropped.
 * Return: 0; -EINVAL: not RFC 3339, before 1970, or later than 64 bits of nanoseconds reach (2554).
 */
int lkg_parse_rfc3339(const char *text, uint64_t *ret_ns);
#define LKG_BOOT_ID_MAX 40
/** lkg_boot_id() - the boot id from /proc/sys/kernel/random/boot_id; "" if it cannot be read. */
void lkg_boot_id(char ret[static LKG_BOOT_ID_MAX]);

/** lkg_sha256() - SHA-256 of @data. Return: 0 or -ENOMEM. */
int lkg_sha256(const void *data, size_t size, unsigned char ret[static LKG_SHA256_BYTES]);
/** lkg_sha256_hex() - SHA-256 of @data as 64 lower-case hex digits and NUL. Return: 0 or -ENOMEM. */
int lkg_sha256_hex(const void *data, size_t size, char ret[static LKG_SHA256_HEX]);
/** lkg_is_sha256() - are these 64 lower-case hex digits? */
bool lkg_is_sha256(const char *text);
/** lkg_hash() - FNV-1a, for tables; not safe against chosen collisions. The same in all our builds. */
uint64_t lkg_hash(uint64_t seed, const void *data, size_t size);

/**
 * lkg_base64_decode() - decode like Go's base64.StdEncoding: padded, line breaks ignored.
 * @to: room for 3/4 of @size, at least 3 bytes; may be @from
 * Return: number of bytes; -1: it is not base64.
 */
ssize_t lkg_base64_decode(const char *from, size_t size, char *to);
