/* SPDX-License-Identifier: Apache-2.0 */
/* See ends.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <lkg/process.h>

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
