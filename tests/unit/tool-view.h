/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view written by hand (status/, bad/, control/ of one component), and calls of the tool on it within this
 * process.
 */
#pragma once

#include <fcntl.h>
#include <sys/wait.h>

#include "fs/tool/tool.h"
#include "tmpdir.h"

#include <lkg/file.h>

#define COMPONENT "kubelet"

struct fixture {
        char dir[TMPDIR_MAX];
        char *out, *err; /* of the last call */
};

/* Redirects what is printed on @fd to a file; undone by restore(). */
static inline int divert(const struct fixture *f, const char *name, int fd, int *ret_saved)
{
        char path[TMPDIR_MAX + 16];
        int file;

        (void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
        file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        *ret_saved = dup(fd);
        assert_true(*ret_saved >= 0 && dup2(file, fd) == fd);
        return file;
}

static inline char *restore(int file, int fd, int saved)
{
        char *text = NULL;

        assert_int_equal(dup2(saved, fd), fd);
        assert_int_equal(lseek(file, 0, SEEK_SET), 0);
        assert_int_equal(lkg_read_file(file, 1 << 20, &text, NULL, NULL), 0);
        (void)lkg_close(saved);
        (void)lkg_close(file);
        return text;
}

/* A verb that cannot go on ends its process. */
static inline int run_verb(const struct lkg_tool *tool)
{
        int status;
        pid_t pid;

        (void)fflush(NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                exit(tool->verb->run(tool));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Return: exit status of `lkgfs ARGS --mountpoint DIR/v`; its output is in @f. */
static inline int call(struct fixture *f, const char *args)
{
        char line[1024], message[512], *argv[32] = { NULL }, *save = NULL;
        int n = 0, status, out, err, saved_out, saved_err;
        struct lkg_tool tool;

        (void)snprintf(line, sizeof(line), "lkgfs %s --mountpoint %s/v", args, f->dir);
        for (char *word = strtok_r(line, " ", &save); word && n < 31; word = strtok_r(NULL, " ", &save))
                argv[n++] = word;
        free(f->out);
        free(f->err);
        out = divert(f, "out", STDOUT_FILENO, &saved_out);
        err = divert(f, "err", STDERR_FILENO, &saved_err);
        status = lkg_tool_parse(&tool, n, argv, message) < 0 ? LKG_TOOL_USAGE : run_verb(&tool);
        f->err = restore(err, STDERR_FILENO, saved_err);
        f->out = restore(out, STDOUT_FILENO, saved_out);
        return status;
}

static inline void assert_call(struct fixture *f, const char *args, int status, const char *want,
                               char *const *text)
{
        int got = call(f, args);

        if (got != status || !strstr(*text, want))
                fail_msg("lkgfs %s: exit status %d, want %d, and \"%s\" in:\n%s%s", args, got, status, want,
                         f->out, f->err);
}

/* `lkgfs ARGS` ends with @status, and @want is in its product; or in its messages. */
static inline void assert_says(struct fixture *f, const char *args, int status, const char *want)
{
        assert_call(f, args, status, want, &f->out);
}

static inline void assert_complains(struct fixture *f, const char *args, int status, const char *want)
{
        assert_call(f, args, status, want, &f->err);
}

static inline void put(const struct fixture *f, const char *path, const char *text)
{
        char full[TMPDIR_MAX + 256];
        int fd;

        (void)snprintf(full, sizeof(full), "%s/v/%s", f->dir, path);
        fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, text, strlen(text)), 0);
        (void)lkg_close(fd);
}

/* status/@component/findings.json of lines `FILE:LINE:COLUMN: SEVERITY: TEXT [LKGnnnn]`; without a place the severity is first. */
static inline void put_findings(const struct fixture *f, const char *component, const char *lines)
{
        static const char *const severities[] = { "error", "warning", "note" };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf json = LKG_BUF_INIT;
        char *copy = strdup(lines), *save = NULL, path[128];
        const char *separator = "";

        assert_non_null(copy);
        lkg_buf_puts(&json, "{\"schemaVersion\":1,\"findings\":[");
        for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char *code = strstr(line, " [LKG"), *text = NULL, file[128] = "";
                unsigned row = 0, column = 0, s = 0;

                for (unsigned i = 0; i < LKG_ARRAY_SIZE(severities); i++) {
                        char *at = strstr(line, severities[i]);

                        if (at && (!text || at < text)) {
                                text = at;
                                s = i;
                        }
                }
                assert_true(code && text);
                (void)sscanf(text == line ? "" : line, "%127[^:]:%u:%u", file, &row, &column);
                text += strlen(severities[s]) + 2;
                lkg_buf_printf(&json, "%s{\"severity\":\"%s\",\"code\":\"%.7s\",\"text\":", separator,
                               severities[s], code + 2);
                lkg_buf_json_string(&json, text, (size_t)(code - text));
                if (*file)
                        lkg_buf_printf(&json, ",\"file\":\"%s\"", file);
                if (row)
                        lkg_buf_printf(&json, ",\"line\":%u,\"column\":%u", row, column);
                lkg_buf_puts(&json, "}");
                separator = ",";
        }
        lkg_buf_puts(&json, "]}");
        lkg_buf_putc(&json, '\0');
        assert_false(lkg_buf_failed(&json));
        free(copy);
        (void)snprintf(path, sizeof(path), "status/%s/findings.json", component);
        put(f, path, json.data);
}

static inline char *get(const struct fixture *f, const char *path)
{
        char full[TMPDIR_MAX + 256], *text = NULL;
        int fd;

        (void)snprintf(full, sizeof(full), "%s/v/%s", f->dir, path);
        fd = open(full, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(lkg_read_file(fd, 1 << 20, &text, NULL, NULL), 0);
        (void)lkg_close(fd);
        return text;
}

static inline void condition(const struct fixture *f, const char *status, const char *reason,
                             const char *text)
{
        char json[1024], line[1024];

        (void)snprintf(json, sizeof(json),
                       "{\"schemaVersion\":1,\"type\":\"ConfigOK\",\"status\":\"%s\",\"reason\":\"%s\","
                       "\"message\":\"%s\",\"lastTransitionTime\":\"2026-11-21T10:00:00Z\"}\n",
                       status, reason, text);
        (void)snprintf(line, sizeof(line), "%s %s: %s\n", status, reason, text);
        put(f, "status/" COMPONENT "/condition.json", json);
        put(f, "status/" COMPONENT "/condition", line);
}

/* Held at generation 5 by root; @newer: "waits" or "none" */
static inline void hold(const struct fixture *f, const char *mode, const char *newer)
{
        char text[256];

        (void)snprintf(text, sizeof(text),
                       "mode=%s\ngeneration=5\nsince=2026-11-21T10:00:00Z\nuid=0\npid=4711\nprogram=bash\n"
                       "newer=%s\ntry=none\nuntil=\nrollout=\n",
                       mode, newer);
        put(f, "status/" COMPONENT "/hold", text);
}

static inline int setup(void **state)
{
        static const char *const dirs[] = { "v/status/" COMPONENT, "v/bad/" COMPONENT,
                                            "v/control/" COMPONENT };
        struct fixture *f = calloc(1, sizeof(*f));
        int fd;

        assert_non_null(f);
        assert_int_equal(tmpdir_make(f->dir), 0);
        fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(dirs); i++)
                assert_int_equal(lkg_mkdir_p(fd, dirs[i], 0755, NULL), 0);
        (void)lkg_close(fd);
        put(f, "status/" COMPONENT "/generation", "7\n");
        put_findings(f, COMPONENT, "");
        condition(f, "True", "passing all checks", "using current (UID: u-1)");
        *state = f;
        return 0;
}

static inline int teardown(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(tmpdir_remove(f->dir), 0);
        free(f->out);
        free(f->err);
        free(f);
        return 0;
}
