/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the API server with an operator's kubeconfig, one question at a time. */
#include <limits.h>
#include <signal.h>

#include <openssl/crypto.h>

#include <lkg/http.h>

#include "fleet.h"

#define ANSWER_NS (20 * LKG_NSEC_PER_SEC)

extern char **environ;

/* ---- the kubeconfig ---- */

/* As kubectl: $KUBECONFIG (of several files the first that exists: they are not merged here), then ~/.kube/config. NULL = none. */
static const char *usual_kubeconfig(void)
{
        const char *variable = getenv("KUBECONFIG"), *home = getenv("HOME");
        bool named = variable && *variable;
        char *paths = named ? lkg_tool_format("%s", variable)
                            : lkg_tool_format("%s/.kube/config", home ? home : "");
        char *rest = paths, *path;

        while ((path = named ? strsep(&rest, ":") : LKG_STEAL(rest)))
                if (*path && lkg_path_exists(AT_FDCWD, path))
                        return path;
        return NULL;
}

static char *find_kubeconfig(const struct lkg_tool *tool)
{
        const char *named = tool->options.fleet.kubeconfig;
        const char *path = named ? named : usual_kubeconfig();
        char *absolute = path ? realpath(path, NULL) : NULL;

        if (!path)
                lkg_tool_end(tool, LKG_TOOL_FAILED,
                             "no kubeconfig: --kubeconfig names none, nor does $KUBECONFIG, "
                             "and there is no ~/.kube/config");
        if (!absolute)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "kubeconfig '%s': %s", path, strerror(errno));
        return absolute;
}

/* ---- its exec plugin: it runs as whoever asks, with the same environment, as kubectl runs it ---- */

static bool is_set_by(char *const *env, const char *entry)
{
        size_t n = strcspn(entry, "=") + 1;

        for (; env && *env; env++)
                if (strncmp(*env, entry, n) == 0)
                        return true;
        return false;
}

/* What the kubeconfig sets wins. */
static void inherit_environment(struct lkg_exec_plugin *exec)
{
        size_t n = 0, n_own = 0;

        while (exec->env && exec->env[n_own])
                n_own++;
        while (environ && environ[n])
                n++;
        exec->env = lkg_must(reallocarray(exec->env, n + n_own + 1, sizeof(*exec->env)));
        exec->env[n_own] = NULL;
        for (size_t i = 0; i < n; i++) {
                if (is_set_by(exec->env, environ[i]))
                        continue;
                exec->env[n_own++] = lkg_must(strdup(environ[i]));
                exec->env[n_own] = NULL;
        }
}

/* Return: 0; a negative number: @err. */
static int run_plugin(struct lkg_fleet_api *api, struct lkg_kubeconfig *k, char **ret, size_t *ret_size,
                      struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *program = NULL;
        const char *path = getenv("PATH");
        int r;

        if (!k->exec)
                return lkg_error_set(err, -ENOENT, NULL, "exec plugin of '%s'", api->kubeconfig);
        inherit_environment(k->exec);
        r = lkg_exec_plugin_find(k->exec->argv[0], path && *path ? path : LKG_EXEC_PATH, &program, err);
        if (r == 0)
                r = lkg_exec_plugin_run(k, program, LKG_EXEC_LIMIT_NS, ret, ret_size, &said, err);
        if (said.size)
                (void)lkg_write_all(STDERR_FILENO, said.data, said.size);
        return r;
}

static void answer_plugin(struct lkg_fleet_api *api)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_kubeconfig *k = NULL;
        struct lkg_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        int r = lkg_credential_load(&api->options, &k, &report);

        api->wants_plugin = false;
        if (r == 0)
                r = run_plugin(api, k, &text, &size, &err);
        lkg_kubeconfig_free(k);
        if (r < 0)
                lkg_credential_exec_done(api->credential, NULL, 0, *err.message ? err.message : strerror(-r),
                                         lkg_realtime_ns());
        else
                lkg_credential_exec_done(api->credential, text, size, NULL, lkg_realtime_ns());
        if (text)
                OPENSSL_cleanse(text, size);
        free(text);
        (void)lkg_credential_refresh(api->credential, lkg_realtime_ns());
}

/* Called by a refresh, which must have ended before it is answered. */
static int on_run_exec(void *userdata)
{
        struct lkg_fleet_api *api = userdata;

        api->wants_plugin = true;
        return 0;
}

static void refresh(struct lkg_fleet_api *api)
{
        (void)lkg_credential_refresh(api->credential, lkg_realtime_ns());
        if (api->wants_plugin)
                answer_plugin(api);
}

/* ---- lifetime ---- */

static int begin(const struct lkg_tool *tool, struct lkg_fleet_api *api)
{
        struct lkg_client_options client = { .user_agent = "lkgfs-rollout",
                                             .max_bytes = LKG_DOC_BYTES_MAX,
                                             .request_ns = ANSWER_NS };
        int r;

        api->options = (struct lkg_credential_options){ .kubeconfig = api->kubeconfig,
                                                        .context = tool->options.fleet.context,
                                                        .source_path = "/",
                                                        .source_fd = api->root_fd,
                                                        .allow_exec = true,
                                                        .allow_insecure = true,
                                                        .run_exec = on_run_exec,
                                                        .userdata = api };
        r = sd_event_new(&api->event);
        if (r < 0)
                return r;
        client.event = api->event;
        client.credential = api->credential = lkg_credential_new(&api->options);
        api->client = lkg_client_new(&client);
        return 0;
}

void lkg_fleet_open(const struct lkg_tool *tool, struct lkg_fleet_api *api)
{
        const struct lkg_report *findings;
        int r;

        *api = (struct lkg_fleet_api){ .root_fd = -EBADF, .kubeconfig = find_kubeconfig(tool) };
        (void)signal(SIGPIPE, SIG_IGN); /* a connection that the server has closed */
        api->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = begin(tool, api);
        if (r < 0)
                lkg_tool_end(tool, LKG_TOOL_FAILED, "client of the API server: %s", strerror(-r));
        refresh(api);
        findings = lkg_credential_findings(api->credential);
        if (findings->n_findings > 0)
                lkg_tool_print_findings(tool, STDERR_FILENO, findings);
        if (!lkg_credential_identity(api->credential))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "'%s' has no usable credential", api->kubeconfig);
}

void lkg_fleet_close(struct lkg_fleet_api *api)
{
        lkg_value_unref(api->object);
        (void)lkg_client_free(api->client);
        (void)lkg_credential_free(api->credential);
        sd_event_unref(api->event);
        free(api->kubeconfig);
        lkg_close(api->root_fd);
}

/* ---- questions ---- */

static void on_answer(const struct lkg_api_answer *answer, void *userdata)
{
        struct lkg_fleet_api *api = userdata;

        api->call = NULL;
        api->answered = true;
        api->status = answer->status;
        (void)snprintf(api->words, sizeof(api->words), "%s", answer->words);
        if (answer->status == LKG_API_OK)
                api->object = lkg_value_ref((struct lkg_value *)(uintptr_t)answer->object);
}

static void begin_question(struct lkg_fleet_api *api)
{
        api->object = lkg_value_unref(api->object);
        api->answered = false;
        refresh(api);
}

bool lkg_fleet_ask(struct lkg_fleet_api *api, struct lkg_request request)
{
        int r = 0;

        begin_question(api);
        request.done = on_answer;
        request.userdata = api;
        api->call = lkg_client_send(api->client, &request);
        while (r >= 0 && !api->answered)
                r = sd_event_run(api->event, UINT64_MAX);
        if (r < 0) {
                (void)lkg_call_cancel(LKG_STEAL(api->call));
                api->status = LKG_API_UNREACHABLE;
                (void)snprintf(api->words, sizeof(api->words), "%s", strerror(-r));
        }
        return api->status == LKG_API_OK;
}

bool lkg_fleet_get(struct lkg_fleet_api *api, const struct lkg_resource *resource)
{
        return lkg_fleet_ask(api, (struct lkg_request){ .verb = "get", .resource = resource });
}

bool lkg_fleet_send(struct lkg_fleet_api *api, const struct lkg_resource *resource, const char *verb,
                    struct lkg_json *json)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf body = LKG_BUF_INIT;
        struct lkg_request request = { .verb = verb,
                                       .resource = resource,
                                       .content_type = strcmp(verb, "patch") == 0
                                                               ? "application/merge-patch+json"
                                                               : "application/json" };
        int r = lkg_json_write_line(json, &body);

        if (r < 0) {
                begin_question(api);
                api->status = LKG_API_UNREACHABLE;
                (void)snprintf(api->words, sizeof(api->words), "%s", strerror(-r));
                return false;
        }
        request.body = body.data;
        request.size = body.size;
        return lkg_fleet_ask(api, request);
}

void lkg_fleet_fetch(const struct lkg_tool *tool, const struct lkg_reference *reference, struct lkg_buf *ret)
{
        const struct lkg_resource resource = lkg_fleet_configmap(reference);
        LKG_CLEANUP(lkg_fleet_close) struct lkg_fleet_api api;

        lkg_fleet_open(tool, &api);
        if (!lkg_fleet_get(&api, &resource))
                lkg_tool_end(tool, LKG_TOOL_FAILED, "%s", api.words);
        lkg_render_json_compact(api.object, ret);
        (void)lkg_buf_text(ret);
}
