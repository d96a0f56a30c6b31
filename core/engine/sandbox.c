/* SPDX-License-Identifier: Apache-2.0 */
/* Giving up privileges: see sandbox.h. */
#include <linux/capability.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "sandbox.h"
#include "syscall-filter.h"

#define DATA_BYTES_MAX     (256u << 20)
#define THREAD_STACK_BYTES (1u << 20) /* instead of 8 MiB; the resolver needs a tenth of it */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static int drop_capabilities(struct lkg_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = { 0 };

        /* The bounding set first, while we may; without the capability to do so there is nothing to bound. */
        for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                return lkg_error_set(err, -errno, NULL, "drop capabilities");
        return 0;
}

static int limit(int resource, rlim_t value)
{
        const struct rlimit both = { value, value };

        return setrlimit((__rlimit_resource_t)resource, &both) < 0 ? -errno : 0;
}

/* Threads of the resolver (libcurl starts one for each look-up): their stacks count as data. */
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
        /* The limit is not for a core that goes into a pipe: core(5). The leak checker traces its own process. */
        if (prctl(PR_SET_DUMPABLE, SANITIZED, 0, 0, 0) < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        return 0;
}

int lkg_sandbox_enter(struct lkg_error *err)
{
        int r = lkg_sandbox_hide_memory(err);

        if (r < 0)
                return r;
        if (!SANITIZED) /* a sanitizer's shadow memory counts as data */
                r = limit(RLIMIT_DATA, DATA_BYTES_MAX);
        if (r >= 0)
                r = bound_thread_stacks();
        if (r < 0)
                return lkg_error_set(err, r, NULL, "resource limits");
        /* Whoever debugs a shell's TLS with it must not have the keys of ours in the same file: libcurl would write them. */
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || unsetenv("SSLKEYLOGFILE") < 0)
                return lkg_error_set(err, -errno, NULL, "process attributes");
        r = drop_capabilities(err);
        if (r < 0 || SANITIZED) /* the leak checker traces its own process */
                return r;
        return lkg_syscall_filter_install(err);
}
