/* SPDX-License-Identifier: Apache-2.0 */
/* Records our child processes for the next lkgfsd. */
#include <inttypes.h>

#include <lkg/file.h>
#include <lkg/base.h>

#include "supervisor.h"

/* Files in runtimeDir and in its private part. */
static const char *const record_names[_LKG_CHILD_KIND_MAX] = {
        [LKG_CHILD_ENGINE] = "engine.pid",
        [LKG_CHILD_SERVER] = "server.pid",
        [LKG_CHILD_NOTIFIER] = "notifier.pid",
};

/*
 * The shared memory disappears with the connection, but the engine does not: this file tells an lkgfsd that
 * starts without a connection which process to end. It also helps one that takes over, because children can
 * write the shared memory. The copy in the private directory, which the engine owns, is for an lkgfsd of an
 * earlier build.
 */
void lkg_recorded_note(const struct lkg_supervisor *s, enum lkg_child_kind kind, int pid,
                       uint64_t start_time)
{
        const int directories[] = { s->records_fd, s->runtime_fd };
        char text[64];
        int n = snprintf(text, sizeof(text), "%d %" PRIu64 "\n", pid, start_time);

        for (size_t i = 0; i < LKG_ARRAY_SIZE(directories); i++) {
                struct lkg_error err = { 0 };

                if (lkg_write_file_atomic(directories[i], record_names[kind], text, (size_t)n, 0600, false,
                                          &err) < 0)
                        lkg_log_warning("%s", err.message);
        }
}

bool lkg_recorded_read(int dirfd, enum lkg_child_kind kind, struct lkg_process *ret)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, record_names[kind]);
        char text[64] = "";
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        int pid = 0;

        if (n <= 0 || sscanf(text, "%d %" SCNu64, &pid, &ret->start_time) != 2)
                return false;
        atomic_store(&ret->pid, pid);
        return true;
}

bool lkg_recorded_has(const struct lkg_supervisor *s, const struct lkg_process *process)
{
        struct lkg_process recorded = { 0 };

        for (int kind = 0; kind < _LKG_CHILD_KIND_MAX; kind++)
                if (lkg_recorded_read(s->records_fd, (enum lkg_child_kind)kind, &recorded) &&
                    atomic_load(&recorded.pid) == atomic_load(&process->pid) &&
                    recorded.start_time == process->start_time)
                        return true;
        return false;
}

void lkg_recorded_forget(const struct lkg_supervisor *s)
{
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                (void)unlinkat(s->records_fd, record_names[i], 0);
}
