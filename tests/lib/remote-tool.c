/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client as a program, so that a test can run it against a server that it controls.
 *
 *     remote-tool --kubeconfig FILE [OPTIONS] get|follow RESOURCE [NAMESPACE/]NAME
 *
 * Prints one JSON object per line. `get` asks once, prints
 *     {"status", "http", "words", "retry_after_ms", "object"}                    object: that was accepted; null
 *     {"memory"}                                                                  peak of the resident set, in bytes
 * and ends. `follow` has an informer until it gets SIGTERM, and prints for each callback
 *     {"state": OBJECT}                           null: there is no such object
 *     {"mode", "status", "words", "refusal"}      one of them has changed
 * Exit: 0; 64 usage; 70 internal error.
 *
 * Every time limit is an option in milliseconds; 0 or no option means the engine's own limit.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <sysexits.h>
#include <fcntl.h>

#include <lkg/client.h>
#include <lkg/documents.h>

enum limit { CONNECT, REQUEST, BODY, IDLE, HALF, QUIET, BACKOFF, POLL, REFRESH, MAX_BYTES, _LIMIT_MAX };

struct tool {
        const char *kubeconfig;
        bool follow;
        uint64_t limits[_LIMIT_MAX]; /* milliseconds; bytes */
        char *ns;
        struct lkg_resource resource;
        sd_event *event;
        sd_event_source *timer;
        struct lkg_credential *credential;
        struct lkg_client *client;
        struct lkg_informer *informer; /* follow */
        struct lkg_call *call;         /* get */
};

static const struct option options[] = {
        { "connect-ms", required_argument, NULL, CONNECT },
        { "request-ms", required_argument, NULL, REQUEST },
        { "body-ms", required_argument, NULL, BODY }, /* for a reply that sends no byte */
        { "idle-ms", required_argument, NULL, IDLE }, /* for a stream that sends no byte */
        { "half-ms", required_argument, NULL, HALF },
        { "quiet-ms", required_argument, NULL, QUIET },
        { "backoff-ms", required_argument, NULL, BACKOFF },
        { "poll-ms", required_argument, NULL, POLL },
        { "refresh-ms", required_argument, NULL,
          REFRESH }, /* interval of the checks of the credential files */
        { "max-bytes", required_argument, NULL, MAX_BYTES },
        { "kubeconfig", required_argument, NULL, 'k' },
        { 0 },
};

static uint64_t ns_of(const struct tool *tool, enum limit limit)
{
        return tool->limits[limit] * LKG_NSEC_PER_MSEC;
}

/* ---- output ---- */

static void print(const struct tool *tool, struct lkg_buf *line)
{
        lkg_buf_puts(line, "}\n");
        if (lkg_buf_failed(line) || fwrite(line->data, 1, line->size, stdout) != line->size ||
            fflush(stdout) != 0)
                (void)sd_event_exit(tool->event, EX_SOFTWARE);
        lkg_buf_deinit(line);
}

static void add_object(struct lkg_buf *line, const char *before, const struct lkg_value *object)
{
        lkg_buf_puts(line, before);
        if (object)
                lkg_render_json_compact(object, line);
        else
                lkg_buf_puts(line, "null");
}

static void on_state(const struct lkg_value *object, void *userdata)
{
        struct lkg_buf line = LKG_BUF_INIT;

        add_object(&line, "{\"state\": ", object);
        print(userdata, &line);
}

static void add_string(struct lkg_buf *line, const char *before, const char *text)
{
        lkg_buf_puts(line, before);
        lkg_buf_json_string(line, text, strlen(text));
}

static void on_changed(void *userdata)
{
        const struct tool *tool = userdata;
        struct lkg_buf line = LKG_BUF_INIT;

        add_string(&line, "{\"mode\": ", lkg_informer_mode_name(lkg_informer_look(tool->informer).mode));
        add_string(&line, ", \"status\": ", lkg_api_status_name(lkg_informer_look(tool->informer).status));
        add_string(&line, ", \"words\": ", lkg_informer_look(tool->informer).words);
        add_string(&line, ", \"refusal\": ", lkg_informer_look(tool->informer).refusal);
        print(tool, &line);
}

/* Not from getrusage(): it also counts the memory that the parent had before exec. */
static uint64_t peak_memory(void)
{
        FILE *file = fopen("/proc/self/status", "re");
        char line[128];
        uint64_t kib = 0;

        while (file && fgets(line, sizeof(line), file))
                (void)sscanf(line, "VmHWM: %" SCNu64, &kib);
        if (file)
                (void)fclose(file);
        return kib * 1024;
}

static void on_end(const struct lkg_api_answer *answer, void *userdata)
{
        struct tool *tool = userdata;
        struct lkg_buf line = LKG_BUF_INIT;

        tool->call = NULL;
        add_string(&line, "{\"status\": ", lkg_api_status_name(answer->status));
        add_string(&line, ", \"words\": ", answer->words);
        lkg_buf_printf(&line, ", \"http\": %ld, \"retry_after_ms\": %" PRIu64, (long)answer->http_status,
                       answer->retry_after_ns / LKG_NSEC_PER_MSEC);
        add_object(&line, ", \"object\": ", answer->object);
        print(tool, &line);
        lkg_buf_printf(&line, "{\"memory\": %" PRIu64, peak_memory());
        print(tool, &line);
        (void)sd_event_exit(tool->event, EX_OK);
}

static const struct lkg_informer_ops ops = { on_state, on_changed };

/* ---- the credential ---- */

static void on_identity(void *userdata)
{
        const struct tool *tool = userdata;

        if (tool->informer)
                lkg_informer_fetch(tool->informer, /* anew= */ true);
}

static int on_refresh(sd_event_source *source, uint64_t usec, void *userdata)
{
        const struct tool *tool = userdata;

        (void)usec;
        if (lkg_credential_refresh(tool->credential, lkg_realtime_ns()))
                on_identity(userdata);
        (void)sd_event_source_set_time_relative(source, tool->limits[REFRESH] * 1000);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- the object ---- */

static const struct {
        const char *plural, *kind;
} kinds[] = { { "configmaps", "ConfigMap" }, { "nodes", "Node" } };

static bool parse_resource(struct tool *tool, const char *plural, const char *object)
{
        char *slash;

        tool->ns = strdup(object);
        if (!tool->ns)
                return false;
        slash = strchr(tool->ns, '/');
        if (slash)
                *slash = '\0';
        tool->resource = (struct lkg_resource){
                .group_version = "v1",
                .ns = slash ? tool->ns : NULL,
                .name = slash ? slash + 1 : tool->ns,
        };
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++)
                if (strcmp(kinds[i].plural, plural) == 0) {
                        tool->resource.plural = kinds[i].plural;
                        tool->resource.kind = kinds[i].kind;
                }
        return tool->resource.kind != NULL;
}

static bool parse_options(struct tool *tool, int argc, char **argv)
{
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
                if (option == 'k')
                        tool->kubeconfig = optarg;
                else if (option < _LIMIT_MAX)
                        tool->limits[option] = strtoull(optarg, NULL, 10);
                else
                        return false;
        if (!tool->kubeconfig || argc - optind != 3)
                return false;
        tool->follow = strcmp(argv[optind], "follow") == 0;
        return (tool->follow || strcmp(argv[optind], "get") == 0) &&
               parse_resource(tool, argv[optind + 1], argv[optind + 2]);
}

/* ---- main ---- */

static void open_client(struct tool *tool, int root_fd)
{
        const struct lkg_credential_options credential = { .kubeconfig = tool->kubeconfig,
                                                           .source_path = "/",
                                                           .source_fd = root_fd };
        struct lkg_client_options client = {
                .event = tool->event,
                .user_agent = "lkgfs/remote-tool",
                .max_bytes = tool->limits[MAX_BYTES],
                .request_ns = ns_of(tool, REQUEST),
                .idle_ns = ns_of(tool, BODY),
                .connect_ns = ns_of(tool, CONNECT),
                .on_identity = on_identity,
                .userdata = tool,
        };

        client.credential = tool->credential = lkg_credential_new(&credential);
        tool->client = lkg_client_new(&client);
}

static void open_informer(struct tool *tool)
{
        const struct lkg_informer_options informer = {
                .event = tool->event,
                .client = tool->client,
                .resource = tool->resource,
                .poll_interval_ns = ns_of(tool, POLL),
                .max_bytes = tool->limits[MAX_BYTES],
                .idle_ns = ns_of(tool, IDLE),
                .half_ns = ns_of(tool, HALF),
                .quiet_ns = ns_of(tool, QUIET),
                .backoff_ns = ns_of(tool, BACKOFF),
                .ops = &ops,
                .userdata = tool,
        };

        tool->informer = lkg_informer_new(&informer);
}

/* SIGHUP does what `sync` does. */
static int on_fetch(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct tool *tool = userdata;

        (void)source;
        (void)info;
        if (tool->informer)
                lkg_informer_fetch(tool->informer, /* anew= */ false);
        return 0;
}

static int open_loop(struct tool *tool)
{
        sigset_t mask;
        int r = sd_event_default(&tool->event);

        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, SIGTERM);
        (void)sigaddset(&mask, SIGHUP);
        if (r >= 0 && (sigprocmask(SIG_BLOCK, &mask, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR))
                return -errno;
        if (r >= 0)
                r = sd_event_add_signal(tool->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(tool->event, NULL, SIGHUP, on_fetch, tool);
        if (r >= 0 && tool->limits[REFRESH] > 0)
                r = sd_event_add_time_relative(tool->event, &tool->timer, CLOCK_BOOTTIME,
                                               tool->limits[REFRESH] * 1000, 1, on_refresh, tool);
        return r;
}

static int run(struct tool *tool)
{
        LKG_CLEANUP(lkg_closep) int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct lkg_request request = {
                .verb = "get", .resource = &tool->resource, .done = on_end, .userdata = tool
        };
        int r = open_loop(tool);

        if (r >= 0) {
                open_client(tool, root_fd);
                if (tool->follow)
                        open_informer(tool);
                else
                        tool->call = lkg_client_send(tool->client, &request);
                r = sd_event_loop(tool->event);
        }
        if (r < 0)
                (void)fprintf(stderr, "remote-tool: %s\n", strerror(-r));
        tool->informer = lkg_informer_free(tool->informer);
        tool->client = lkg_client_free(tool->client);
        tool->credential = lkg_credential_free(tool->credential);
        sd_event_source_disable_unref(tool->timer);
        sd_event_unref(tool->event);
        return r < 0 ? EX_SOFTWARE : r;
}

int main(int argc, char **argv)
{
        struct tool tool = { .limits = { [POLL] = 60 * 1000, [MAX_BYTES] = 3u << 20 } };
        int r = EX_USAGE;

        if (parse_options(&tool, argc, argv))
                r = run(&tool);
        else
                (void)fputs("usage: remote-tool --kubeconfig FILE [OPTIONS] get|follow RESOURCE "
                            "[NAMESPACE/]NAME\n",
                            stderr);
        free(tool.ns);
        return r;
}
