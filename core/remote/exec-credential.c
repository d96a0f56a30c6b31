/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `lkgfs-engine --exec-credential`: runs the exec plugin of the configured kubeconfig outside of the
 * engine's sandbox, for an engine that cannot execute anything. The engine only asks (LKG_MSG_CREDENTIAL);
 * the command is read from root's own files here, so the engine cannot influence it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sysexits.h>

#include <openssl/crypto.h>

#include <lkg/http.h>
#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/process.h>
#include <lkg/text.h>

#define SAID_LINES_MAX 8u
#define SAID_LINE_MAX  256u

static int give_up(int code, const char *why)
{
        lkg_log_error("exec plugin: %s", why);
        (void)printf("%s\n", why);
        (void)fflush(stdout);
        return code;
}

/* Reports the first error; all errors are logged. */
static int refuse(const struct lkg_report *report)
{
        const char *why = "the kubeconfig cannot be used";

        for (size_t i = report->n_findings; i > 0; i--) {
                const struct lkg_finding *f = &report->findings[i - 1];

                if (f->severity != LKG_ERROR)
                        continue;
                why = f->text;
                if (i > 1)
                        lkg_log_error("%s:%u:%u: %s", f->file ? f->file : "kubeconfig", f->line, f->column,
                                      f->text);
        }
        return give_up(EX_CONFIG, why);
}

/* Replaces bytes that could start a new line or control a terminal. */
static void log_line(const char *program, struct lkg_span line)
{
        char text[SAID_LINE_MAX + 1];
        size_t n = line.size < SAID_LINE_MAX ? line.size : SAID_LINE_MAX;

        memcpy(text, line.data, n);
        text[n] = '\0';
        lkg_blank_hidden(text, n, '?');
        lkg_log_notice("exec plugin %s says: %s", program, text);
}

static void log_said(const char *program, const struct lkg_buf *said)
{
        struct lkg_span rest = lkg_span(said->data, said->size), line;

        for (unsigned i = 0; said->size > 0 && i < SAID_LINES_MAX && lkg_span_next(&rest, '\n', &line); i++)
                if (line.size > 0)
                        log_line(program, line);
}

static int write_output(const char *output, size_t size)
{
        int r = lkg_write_all(STDOUT_FILENO, output, size);

        if (r >= 0)
                return EX_OK;
        /* On failure, the content of standard output is reported as the reason. */
        if (ftruncate(STDOUT_FILENO, 0) < 0 || lseek(STDOUT_FILENO, 0, SEEK_SET) < 0)
                return EX_IOERR;
        return give_up(EX_IOERR, "its output could not be passed on");
}

static int run(const struct lkg_kubeconfig *k)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *program = NULL;
        struct lkg_error err = { 0 };
        char *output = NULL;
        size_t size = 0;
        int r;

        if (!k->exec)
                return give_up(EX_CONFIG, "the kubeconfig has no exec plugin any more");
        if (lkg_exec_plugin_find(k->exec->argv[0], LKG_EXEC_PATH, &program, &err) < 0)
                return give_up(EX_CONFIG, err.message);
        r = lkg_exec_plugin_run(k, program, LKG_EXEC_LIMIT_NS, &output, &size, &said, &err);
        log_said(program, &said);
        if (r < 0)
                return give_up(EX_IOERR, err.message);
        r = write_output(output, size);
        OPENSSL_cleanse(output, size);
        free(output);
        return r;
}

int lkg_exec_credential(const struct lkg_credential_options *options, bool enabled)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_kubeconfig *k = NULL;
        struct lkg_error err = { 0 };
        int r;

        if (lkg_sandbox_hide_memory(&err) < 0)
                return give_up(EX_OSERR, err.message);
        if (!enabled || !options->allow_exec)
                return give_up(EX_CONFIG,
                               enabled ? "remote.allowExec is not true" : "remote.enabled is not true");
        if (options->source_fd < 0)
                return give_up(EX_IOERR, "the source directory cannot be opened");
        r = lkg_credential_load(options, &k, &report);
        if (r == -EBADMSG)
                return refuse(&report);
        if (r < 0)
                return give_up(r == -ENOENT ? EX_CONFIG : EX_SOFTWARE,
                               r == -ENOENT ? "there is no kubeconfig" : strerror(-r));
        r = run(k);
        lkg_kubeconfig_free(k);
        return r;
}
