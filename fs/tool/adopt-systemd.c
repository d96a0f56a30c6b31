/* SPDX-License-Identifier: Apache-2.0 */
/* systemctl, for the steps of adopt and abandon: the same commands that are printed for a tree that does not run. */
#include "adopt.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

bool lkg_adopt_live(const struct lkg_adopt_node *look)
{
        return !*look->root && access("/run/systemd/system", F_OK) == 0;
}

static void join(const char *const *words, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "systemctl");
        for (; *words; words++)
                lkg_buf_printf(buf, " %s", *words);
        lkg_buf_putc(buf, '\0');
}

int lkg_adopt_systemctl(const struct lkg_tool *tool, const struct lkg_adopt_node *look,
                        const char *const *words)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;
        const char *argv[8] = { "systemctl" };
        int r, status = 0;
        pid_t pid;

        join(words, &line);
        if (lkg_buf_failed(&line))
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(ENOMEM));
        if (!lkg_adopt_live(look)) {
                lkg_tool_note(tool, "not run, systemd does not run here: %s", line.data);
                return LKG_TOOL_OK;
        }
        for (size_t i = 0; words[i] && i + 2 < LKG_ARRAY_SIZE(argv); i++)
                argv[i + 1] = words[i];
        r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ);
        if (r != 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "run `%s`: %s", line.data, strerror(r));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "`%s`: %s", line.data, strerror(errno));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return LKG_TOOL_OK;
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "`%s` failed (%s %d)", line.data,
                             WIFEXITED(status) ? "exit status" : "signal",
                             WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}
