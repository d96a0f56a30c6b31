/* SPDX-License-Identifier: Apache-2.0 */
/* Drops privileges: see <lkg/process.h>. */
#include <linux/capability.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/base.h>

#include "syscall-policy.h"

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
 * (syscall-policy.c). glibc then sends them one by one; another library might take the error for a server
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
 * A user that is not mapped in this user namespace cannot be used: better root without capabilities than no
 * engine.
 */
static int become(const struct lkg_account *account, const int *capabilities, struct lkg_error *err)
{
        int r = account->uid == 0 ? 0 : lkg_become(account, capabilities, err);

        if (r != -EINVAL)
                return r;
        lkg_log_warning("the engine stays root: %s", err->message);
        return 0;
}

int lkg_sandbox_become(const struct lkg_account *account, struct lkg_error *err)
{
        int r = become(account, reading, err);

        if (r < 0)
                return r;
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
