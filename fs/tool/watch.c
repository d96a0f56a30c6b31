/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status --watch: prints the screen again whenever it has changed. It looks once a second, in a process of its own each time, so
 * that a mount that hangs for a while does not end it. A terminal is cleared before each screen; anything else gets one screen
 * after the other, and no new one only because a time like "3 s ago" has grown.
 */
#include "tool.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include <lkg/file.h>

#define PAUSE_NS     LKG_NSEC_PER_SEC
#define SCREEN_MAX   (16u << 20)
#define CLEAR_SCREEN "\033[H\033[2J"

/* The verb's standard output. Return: its exit status; -errno. */
static int run_once(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool), char **ret)
{
        int pipe_fds[2], status, r;
        pid_t pid;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                if (dup2(pipe_fds[1], STDOUT_FILENO) < 0)
                        _exit(LKG_TOOL_FAILED);
                lkg_close(pipe_fds[0]);
                lkg_close(pipe_fds[1]);
                _exit(run(tool));
        }
        r = pid < 0 ? -errno : 0;
        lkg_close(pipe_fds[1]);
        if (r == 0)
                r = lkg_read_file(pipe_fds[0], SCREEN_MAX, ret, NULL, NULL);
        lkg_close(pipe_fds[0]);
        if (pid > 0 && waitpid(pid, &status, 0) < 0)
                return -errno;
        return r < 0 ? r : WIFEXITED(status) ? WEXITSTATUS(status) : LKG_TOOL_FAILED;
}

/* Skips " (3 min ago)". */
static const char *skip_age(const char *text)
{
        size_t n = 0;

        if (text[0] != ' ' || text[1] != '(' || text[2] < '0' || text[2] > '9')
                return text;
        n = 2 + strspn(text + 2, "0123456789 abcdefghijklmnopqrstuvwxyz");
        return text[n] == ')' && n > 6 && strncmp(text + n - 4, " ago", 4) == 0 ? text + n + 1 : text;
}

bool lkg_tool_same_screen(const char *a, const char *b)
{
        for (;;) {
                a = skip_age(a);
                b = skip_age(b);
                if (*a != *b)
                        return false;
                if (!*a)
                        return true;
                a++;
                b++;
        }
}

int lkg_screen_show(const struct lkg_tool *tool, struct lkg_screen *screen, const char *text,
                    const char *compared)
{
        bool terminal = isatty(STDOUT_FILENO) == 1;
        const char *before = terminal ? CLEAR_SCREEN : screen->shown ? "\n" : "";
        int r;

        if (!terminal && screen->shown && lkg_tool_same_screen(compared, screen->shown))
                return LKG_TOOL_OK;
        r = lkg_write_all(STDOUT_FILENO, before, strlen(before));
        if (r >= 0)
                r = lkg_write_all(STDOUT_FILENO, text, strlen(text));
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "standard output: %s", strerror(-r));
        free(screen->shown);
        screen->shown = strdup(compared); /* NULL: shown again */
        return LKG_TOOL_OK;
}

void lkg_screen_deinit(struct lkg_screen *screen)
{
        free(screen->shown);
}

int lkg_tool_watch(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool))
{
        static const struct timespec pause = { .tv_sec = (time_t)(PAUSE_NS / LKG_NSEC_PER_SEC) };
        LKG_CLEANUP(lkg_screen_deinit) struct lkg_screen screen = { .shown = NULL };
        struct lkg_tool once = *tool;

        once.options.colour =
                lkg_tool_colour_for(tool, STDOUT_FILENO) ? LKG_COLOUR_ALWAYS : LKG_COLOUR_NEVER;
        for (;;) {
                LKG_CLEANUP(lkg_freep) char *text = NULL;
                int status = run_once(&once, run, &text), r;

                if (status < 0)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-status));
                if (status == LKG_TOOL_USAGE)
                        return status; /* it has said why */
                r = lkg_screen_show(tool, &screen, text, text);
                if (r != LKG_TOOL_OK)
                        return r;
                (void)nanosleep(&pause, NULL);
        }
}
