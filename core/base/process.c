/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process data from /proc: the start time (field 22 of /proc/<pid>/stat), which distinguishes it from
 * another process with the same pid, and its namespaces.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/text.h>
#include <lkg/shared.h>

/* Return: the state (field 3); 0: no such process. */
static char look(int pid, uint64_t *ret_start_time)
{
        char path[64], text[1024], state;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        const char *p;
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text) - 1);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        p = strrchr(text, ')'); /* comm may contain anything, even a closing bracket: the last one ends it */
        /* After the bracket: " S ppid ...": the state is field 3. */
        return p && sscanf(p + 1,
                           " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                           "%" SCNu64,
                           &state, ret_start_time) == 2
                       ? state
                       : 0;
}

uint64_t lkg_process_start_time(int pid)
{
        uint64_t start_time = 0;

        return look(pid, &start_time) ? start_time : 0;
}

ino_t lkg_process_namespace(int pid, const char *type)
{
        struct stat st;
        char path[64];

        (void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, type);
        return stat(path, &st) < 0 ? 0 : st.st_ino;
}

int lkg_process_running(int pid, uint64_t start_time)
{
        uint64_t began = 0;
        char state = pid > 0 ? look(pid, &began) : 0;

        if (!state || (start_time && began != start_time) || state == 'Z' || state == 'X')
                return -ESRCH;
        return state != 'T' && state != 't';
}

/* ---- account ---- */

#define NO_ID_16_BITS 65535u /* -1 in old system calls with 16-bit ids */

static void close_file(FILE **file)
{
        if (*file)
                (void)fclose(*file);
}

static bool is_id(uint64_t id)
{
        return id < UINT32_MAX && id != NO_ID_16_BITS;
}

int lkg_account_find(const char *database, const char *name, struct lkg_account *ret)
{
        LKG_CLEANUP(close_file) FILE *file = NULL;
        const struct passwd *p;
        const char *rest;
        uint64_t id;

        *ret = (struct lkg_account){ 0 };
        if (!*name || strcmp(name, "root") == 0)
                return 0;
        rest = lkg_digits(name, &id);
        if (rest && !*rest) {
                if (!is_id(id))
                        return -ENOENT;
                *ret = (struct lkg_account){ .uid = (uid_t)id, .gid = (gid_t)id };
                return 0;
        }
        file = fopen(database, "re");
        if (!file)
                return -errno;
        while ((p = fgetpwent(file)))
                if (strcmp(p->pw_name, name) == 0 && is_id(p->pw_uid) && is_id(p->pw_gid)) {
                        *ret = (struct lkg_account){ .uid = p->pw_uid, .gid = p->pw_gid };
                        return 0;
                }
        return -ENOENT;
}

int lkg_account_parse(char *text, struct lkg_account *ret)
{
        char *group = strchr(text, ':');
        struct lkg_account user, other;

        if (!group || strspn(text, "0123456789:") != strlen(text))
                return -EINVAL;
        *group++ = '\0';
        if (lkg_account_find(LKG_PASSWD_FILE, text, &user) < 0 ||
            lkg_account_find(LKG_PASSWD_FILE, group, &other) < 0)
                return -EINVAL;
        *ret = (struct lkg_account){ .uid = user.uid, .gid = other.gid };
        return 0;
}

/* ---- ends ---- */

void lkg_ends_note(struct lkg_ends *ends, int code, int status, uint64_t now_ns)
{
        uint64_t n = atomic_load(&ends->n);

        atomic_store(&ends->at_ns[n % LKG_ENDS_KEPT], now_ns);
        atomic_store(&ends->code, code);
        atomic_store(&ends->status, status);
        atomic_store(&ends->n, n + 1);
}

unsigned lkg_ends_recent(const struct lkg_ends *ends, uint64_t now_ns)
{
        uint64_t n = atomic_load(&ends->n);
        unsigned recent = 0;

        while (recent < LKG_ENDS_KEPT && recent < n &&
               atomic_load(&ends->at_ns[(n - 1 - recent) % LKG_ENDS_KEPT]) + LKG_ENDS_RECENT_NS > now_ns)
                recent++;
        return recent;
}

void lkg_ends_reason(const struct lkg_ends *ends, char *ret, size_t size)
{
        int code = atomic_load(&ends->code), status = atomic_load(&ends->status);
        const char *name = sigabbrev_np(status);

        if (code == CLD_EXITED)
                (void)snprintf(ret, size, "exit code %d", status);
        else if (code != 0 && name)
                (void)snprintf(ret, size, "killed by SIG%s", name);
        else if (code != 0)
                (void)snprintf(ret, size, "killed by signal %d", status);
        else
                (void)snprintf(ret, size, "unknown");
}

/* ---- backoff ---- */

#define DOUBLINGS_MAX 6u /* 800 ms << 6 is over 30 s */

static uint64_t share(uint64_t ns, uint32_t random)
{
        return (uint64_t)((unsigned __int128)ns * random >> 32);
}

static bool has_been_healthy(const struct lkg_backoff *backoff, uint64_t now_ns)
{
        return backoff->healthy_ns > 0 && now_ns > backoff->healthy_ns &&
               now_ns - backoff->healthy_ns >= LKG_BACKOFF_HEALTHY_NS;
}

void lkg_backoff_succeeded(struct lkg_backoff *backoff, uint64_t now_ns)
{
        if (backoff->healthy_ns == 0)
                backoff->healthy_ns = now_ns;
        if (has_been_healthy(backoff, now_ns))
                backoff->n_failures = 0;
}

uint64_t lkg_backoff_failed(struct lkg_backoff *backoff, uint64_t retry_after_ns, uint32_t random,
                            uint64_t now_ns)
{
        const uint64_t first_ns = backoff->first_ns ? backoff->first_ns : LKG_BACKOFF_FIRST_NS;
        const uint64_t max_ns = first_ns * (LKG_BACKOFF_MAX_NS / LKG_NSEC_PER_MSEC) /
                                (LKG_BACKOFF_FIRST_NS / LKG_NSEC_PER_MSEC);
        uint64_t ns;

        /*
         * Health is checked here too: a watch that stays open for an hour reports it once, at the beginning.
         */
        if (has_been_healthy(backoff, now_ns))
                backoff->n_failures = 0;
        backoff->healthy_ns = 0;
        ns = first_ns << (backoff->n_failures < DOUBLINGS_MAX ? backoff->n_failures : DOUBLINGS_MAX);
        if (ns > max_ns)
                ns = max_ns;
        if (backoff->n_failures < DOUBLINGS_MAX)
                backoff->n_failures++;
        if (retry_after_ns > LKG_RETRY_AFTER_MAX_NS)
                retry_after_ns = LKG_RETRY_AFTER_MAX_NS;
        /* Many nodes may get the same Retry-After; they must not all retry at the same moment. */
        return (ns > retry_after_ns ? ns : retry_after_ns) + share(ns, random);
}

uint64_t lkg_jitter(uint64_t ns, unsigned percent, uint32_t random)
{
        uint64_t width = (uint64_t)((unsigned __int128)ns * (percent < 100 ? percent : 100) / 100);

        return ns - width + share(2 * width, random);
}

uint32_t lkg_random(void)
{
        uint32_t random;

        /*
         * Random bytes are missing only early in a boot, before the kernel's pool is filled; then the clock
         * spreads well enough.
         */
        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = (uint32_t)(lkg_boottime_ns() * UINT64_C(0x9e3779b97f4a7c15) >> 32);
        return random;
}

uint64_t lkg_bucket_take(struct lkg_bucket *bucket, const struct lkg_bucket_rate *rate, uint64_t now_ns)
{
        const uint64_t depth_ns = (rate->burst - 1) * rate->interval_ns;
        uint64_t full_ns = bucket->full_ns > now_ns ? bucket->full_ns : now_ns;

        if (full_ns - now_ns > depth_ns)
                return full_ns - now_ns - depth_ns;
        bucket->full_ns = full_ns + rate->interval_ns;
        return 0;
}
