/* SPDX-License-Identifier: Apache-2.0 */
/* The exec plugin of a kubeconfig: found, given its input and environment, and run. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <lkg/base.h>
#include <lkg/file.h>
#include <lkg/http.h>
#include <lkg/process.h>
#include <lkg/text.h>

#include "credential-internal.h"

#define INFO_NAME "KUBERNETES_EXEC_INFO"

/* ---- the program ---- */

/* Searches like execvp(3), but a file that is not trusted or not executable ends the search instead of being skipped. */
static int search_program(const char *name, const char *search, char **ret, struct lkg_error *err)
{
        struct lkg_span rest = lkg_span(search, strlen(search)), dir;

        while (lkg_span_next(&rest, ':', &dir)) {
                LKG_CLEANUP(lkg_freep) char *path = lkg_format("%.*s/%s", (int)dir.size, dir.data, name);
                int r = lkg_judge_program(path, NULL, err);

                if (r == -ENOENT || r == -ENOTDIR)
                        continue;
                if (r == 0)
                        *ret = LKG_STEAL(path);
                return r;
        }
        return lkg_error_set(err, -ENOENT, NULL,
                             "there is no program %s in %s; name it with its whole path.", name, search);
}

int lkg_exec_plugin_find(const char *command, const char *search, char **ret, struct lkg_error *err)
{
        int r;

        if (!strchr(command, '/'))
                return search_program(command, search, ret, err);
        r = lkg_judge_program(command, NULL, err);
        if (r == 0)
                *ret = lkg_copy(command);
        return r;
}

/* ---- its input ---- */

static void put_base64(struct lkg_json *json, const char *name, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *text = lkg_must(malloc((size + 2) / 3 * 4 + 1));

        (void)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)data, (int)size);
        lkg_json_text(json, name, text);
}

/* As in the kubeconfig: libcurl's scheme (socks5h) also says that the proxy resolves names. */
static void put_proxy(struct lkg_json *json, const char *url)
{
        static const char curls[] = "socks5h://";
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (strncmp(url, curls, strlen(curls)) != 0) {
                lkg_json_foreign(json, "proxy-url", url);
                return;
        }
        text = lkg_format("socks5://%s", url + strlen(curls));
        lkg_json_foreign(json, "proxy-url", text);
}

/* clientauthentication/v1, Cluster. */
static void put_cluster(struct lkg_json *json, const struct lkg_kubeconfig *k)
{
        const char *config = k->exec->cluster_config;

        lkg_json_map(json, "cluster", LKG_JSON_AROUND);
        lkg_json_foreign(json, "server", k->identity.server);
        if (k->identity.tls_server_name)
                lkg_json_foreign(json, "tls-server-name", k->identity.tls_server_name);
        if (k->identity.insecure)
                lkg_json_bool(json, "insecure-skip-tls-verify", true);
        if (k->ca.data)
                put_base64(json, "certificate-authority-data", k->ca.data, k->ca.size);
        if (k->identity.proxy_url)
                put_proxy(json, k->identity.proxy_url);
        if (k->identity.disable_compression)
                lkg_json_bool(json, "disable-compression", true);
        if (config)
                lkg_json_rendered(json, "config", config, strlen(config));
        lkg_json_end(json);
}

void lkg_exec_plugin_info(const struct lkg_kubeconfig *k, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(&json, "kind", "ExecCredential");
        lkg_json_foreign(&json, "apiVersion", k->exec->api_version);
        lkg_json_map(&json, "spec", LKG_JSON_AROUND);
        if (k->exec->provide_cluster_info)
                put_cluster(&json, k);
        lkg_json_bool(&json, "interactive", false);
        lkg_json_end(&json);
        lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}

/* ---- its environment ---- */

static bool names(const char *entry, const char *name)
{
        size_t n = strlen(name);

        return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool has(char *const *env, const char *name)
{
        for (; env && *env; env++)
                if (names(*env, name))
                        return true;
        return false;
}

static void free_env(char ***env)
{
        for (size_t i = 0; *env && (*env)[i]; i++)
                lkg_wipe_free((*env)[i]);
        free(*env);
}

/* Entries of the kubeconfig win, except KUBERNETES_EXEC_INFO. */
static char **make_env(const struct lkg_kubeconfig *k)
{
        static const char *const defaults[][2] = { { "PATH", "PATH=" LKG_EXEC_PATH }, { "HOME", "HOME=/" } };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf info = LKG_BUF_INIT;
        char **env;
        char *const *more = k->exec->env;
        size_t n = 0, n_more = 0;

        while (more && more[n_more])
                n_more++;
        lkg_buf_puts(&info, INFO_NAME "=");
        lkg_exec_plugin_info(k, &info);
        env = lkg_must(calloc(LKG_ARRAY_SIZE(defaults) + n_more + 2, sizeof(*env)));
        env[n++] = lkg_must(lkg_buf_steal(&info, NULL));
        for (size_t i = 0; i < LKG_ARRAY_SIZE(defaults); i++)
                if (!has(more, defaults[i][0]))
                        env[n++] = lkg_copy(defaults[i][1]);
        for (size_t i = 0; i < n_more; i++)
                if (!names(more[i], INFO_NAME))
                        env[n++] = lkg_copy(more[i]);
        return env;
}

/* ---- running ---- */

struct run {
        const struct lkg_kubeconfig *k;
        const char *program;
        char **env;
};

/* In the new process. */
static int become(void *userdata)
{
        const struct rlimit none = { 0, 0 };
        const struct run *run = userdata;

        (void)setrlimit(RLIMIT_CORE, &none); /* it would hold the credential */
        (void)execve(run->program, run->k->exec->argv, run->env);
        (void)dprintf(STDERR_FILENO, "execute %s: %s\n", run->program, strerror(errno));
        return 127;
}

static int judge_end(int r, int status, const struct lkg_job_output *output, uint64_t limit_ns,
                     struct lkg_error *err)
{
        if (r == -ETIMEDOUT)
                return lkg_error_set(err, r, NULL, "it did not end within %u s and was killed.",
                                     (unsigned)(limit_ns / LKG_NSEC_PER_SEC));
        if (r == -EFBIG)
                return lkg_error_set(err, r, NULL, "it printed more than %u bytes and was killed.",
                                     LKG_EXEC_OUTPUT_MAX);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "start it");
        if (WIFSIGNALED(status))
                return lkg_error_set(err, -EIO, NULL, "it was killed by signal %d.", WTERMSIG(status));
        if (WEXITSTATUS(status) != 0)
                return lkg_error_set(err, -EIO, NULL, "it ended with exit status %d.", WEXITSTATUS(status));
        if (output->size == 0)
                return lkg_error_set(err, -EIO, NULL, "it printed nothing.");
        return 0;
}

int lkg_exec_plugin_run(const struct lkg_kubeconfig *k, const char *program, uint64_t limit_ns, char **ret,
                        size_t *ret_size, struct lkg_buf *said, struct lkg_error *err)
{
        LKG_CLEANUP(free_env) char **env = make_env(k);
        LKG_CLEANUP(lkg_freep)
        char *text = lkg_must(calloc(1, LKG_EXEC_OUTPUT_MAX + 1)); /* with a NUL at the end */
        char complaint[LKG_EXEC_SAID_MAX];
        struct run run = { k, program, env };
        const struct lkg_job_spec spec = { .run = become, .userdata = &run };
        struct lkg_job_output output = { .data = text, .max = LKG_EXEC_OUTPUT_MAX, .bounded = true },
                              complaints = { .data = complaint, .max = sizeof(complaint) };
        int r, status = 0;

        r = lkg_job_run(&spec, limit_ns, &output, &complaints, &status);
        lkg_buf_append(said, complaint, complaints.size);
        r = judge_end(r, status, &output, limit_ns, err);
        if (r < 0) {
                OPENSSL_cleanse(text, output.size);
                return r;
        }
        *ret_size = output.size;
        *ret = LKG_STEAL(text);
        return 0;
}

/* ---- the process that runs it ---- */

/*
 * `lkgfs-engine --exec-credential`: runs the exec plugin of the configured kubeconfig outside of the
 * engine's sandbox, for an engine that cannot execute anything. The engine only asks (LKG_MSG_CREDENTIAL);
 * the command is read from root's own files here, so the engine cannot influence it.
 */

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
static int refuse_plugin(const struct lkg_report *report)
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
                return refuse_plugin(&report);
        if (r < 0)
                return give_up(r == -ENOENT ? EX_CONFIG : EX_SOFTWARE,
                               r == -ENOENT ? "there is no kubeconfig" : strerror(-r));
        r = run(k);
        lkg_kubeconfig_free(k);
        return r;
}
