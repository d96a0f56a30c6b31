/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client as a program, so that a test can run it against a server that it controls.
 *
 *     remote-tool --kubeconfig FILE [OPTIONS] get|watch|patch|create RESOURCE[/SUBRESOURCE] [NAMESPACE/]NAME
 *
 * Prints one JSON object per line for each event; `call` names it:
 *     open                                         a watch was accepted
 *     data     size text                           a piece of a watch
 *     end      status http words retry_after_ms flow_schema size name uid version [text]
 *     identity serial                              the credential has changed
 *     exec                                         the exec plugin is to be run (answer with `exec`)
 *     counters answers{} received sent connections memory (peak of the resident set, in bytes)
 * `ms` is the time since the start. The last line is `counters`. Exit: 0; 64 usage; 70 internal error.
 *
 * get, patch and create end after --count answers (1), one after the other, or all at once with --together.
 * watch ends when the watch does, or after --count pieces of data, which cancels it.
 *
 * With --stdin, commands are read from standard input, one per line:
 *     next           the next of --count requests (they wait for it); a watch is started again
 *     exec JSON      what the exec plugin printed; `exec` alone: it failed
 *     counters       print them now
 *     cancel         cancel the current request
 *     quit           stop; end of file on standard input does the same
 */
#include <getopt.h>
#include <signal.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <sysexits.h>

#include <lkg/text.h>
#include <lkg/client.h>

#define CALLS_MAX 64u

struct slot {
        struct tool *tool;
        struct lkg_call *call;
};

struct tool {
        sd_event *event;
        struct lkg_credential *credential;
        struct lkg_client *client;
        struct lkg_resource resource;
        struct slot slots[CALLS_MAX];
        const char *kubeconfig, *verb, *version, *content_type, *body;
        char *plural, *ns;
        uint64_t start_ns;
        uint64_t request_ms, idle_ms, connect_ms, max_bytes, seconds, count;
        uint64_t n_started, n_done, n_pieces;
        bool together, use_stdin, print_text, allow_insecure, allow_exec;
        struct lkg_buf commands;
};

static const struct kind {
        const char *plural, *kind, *group_version;
} kinds[] = {
        { "configmaps", "ConfigMap", "v1" },
        { "nodes", "Node", "v1" },
        { "events", "Event", "v1" },
        { "secrets", "Secret", "v1" },
        { "leases", "Lease", "coordination.k8s.io/v1" },
};

/* ---- output ---- */

static void begin_line(const struct tool *tool, struct lkg_buf *line, const char *call)
{
        lkg_buf_printf(line, "{\"call\": \"%s\", \"ms\": %" PRIu64, call,
                       (lkg_boottime_ns() - tool->start_ns) / LKG_NSEC_PER_MSEC);
}

static void add_text(struct lkg_buf *line, const char *key, const char *text, size_t size)
{
        lkg_buf_printf(line, ", \"%s\": ", key);
        if (text)
                lkg_buf_json_string(line, text, size);
        else
                lkg_buf_puts(line, "null");
}

static void add_string(struct lkg_buf *line, const char *key, const char *text)
{
        add_text(line, key, text, text ? strlen(text) : 0);
}

static void add_number(struct lkg_buf *line, const char *key, uint64_t number)
{
        lkg_buf_printf(line, ", \"%s\": %" PRIu64, key, number);
}

static void end_line(const struct tool *tool, struct lkg_buf *line)
{
        lkg_buf_puts(line, "}\n");
        if (lkg_buf_failed(line) || fwrite(line->data, 1, line->size, stdout) != line->size ||
            fflush(stdout) != 0)
                (void)sd_event_exit(tool->event, EX_SOFTWARE);
        lkg_buf_deinit(line);
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

static void print_counters(const struct tool *tool)
{
        struct lkg_buf line = LKG_BUF_INIT;
        struct lkg_client_counters counters;

        lkg_client_counters(tool->client, &counters);
        begin_line(tool, &line, "counters");
        lkg_buf_puts(&line, ", \"answers\": {");
        for (unsigned s = 0; s < _LKG_API_STATUS_MAX; s++)
                lkg_buf_printf(&line, "%s\"%s\": %" PRIu64, s > 0 ? ", " : "",
                               lkg_api_status_name((enum lkg_api_status)s), counters.n_answers[s]);
        lkg_buf_puts(&line, "}");
        add_number(&line, "received", counters.received_bytes);
        add_number(&line, "sent", counters.sent_bytes);
        add_number(&line, "connections", counters.n_connections);
        add_number(&line, "memory", peak_memory());
        end_line(tool, &line);
}

/* ---- callbacks ---- */

static void start_next(struct tool *tool);

static void add_metadata(struct lkg_buf *line, const struct lkg_value *object)
{
        const struct lkg_value *metadata = object ? lkg_map_get(object, "metadata") : NULL;

        add_string(line, "name", metadata ? lkg_map_get_string(metadata, "name") : NULL);
        add_string(line, "uid", metadata ? lkg_map_get_string(metadata, "uid") : NULL);
        add_string(line, "version", metadata ? lkg_map_get_string(metadata, "resourceVersion") : NULL);
}

static void on_end(const struct lkg_api_answer *answer, void *userdata)
{
        struct slot *slot = userdata;
        struct tool *tool = slot->tool;
        struct lkg_buf line = LKG_BUF_INIT;

        slot->call = NULL;
        begin_line(tool, &line, "end");
        add_string(&line, "status", lkg_api_status_name(answer->status));
        add_number(&line, "http", answer->http_status);
        add_string(&line, "words", answer->words);
        add_number(&line, "retry_after_ms", answer->retry_after_ns / LKG_NSEC_PER_MSEC);
        add_string(&line, "flow_schema", answer->flow_schema);
        add_number(&line, "size", answer->size);
        add_metadata(&line, answer->object);
        if (tool->print_text)
                add_text(&line, "text", answer->text, answer->size);
        end_line(tool, &line);
        tool->n_done++;
        if (strcmp(tool->verb, "watch") == 0 ? !tool->use_stdin : tool->n_done >= tool->count)
                (void)sd_event_exit(tool->event, EX_OK);
        else if (!tool->use_stdin && !tool->together)
                start_next(tool);
}

static void on_open(void *userdata)
{
        const struct tool *tool = ((struct slot *)userdata)->tool;
        struct lkg_buf line = LKG_BUF_INIT;

        begin_line(tool, &line, "open");
        end_line(tool, &line);
}

static int on_data(const char *data, size_t size, void *userdata)
{
        struct slot *slot = userdata;
        struct tool *tool = slot->tool;
        struct lkg_buf line = LKG_BUF_INIT;

        begin_line(tool, &line, "data");
        add_number(&line, "size", size);
        add_text(&line, "text", data, size);
        end_line(tool, &line);
        if (tool->count == 0 || ++tool->n_pieces < tool->count)
                return 0;
        slot->call = lkg_call_cancel(slot->call);
        (void)sd_event_exit(tool->event, EX_OK);
        return 0;
}

static void on_identity(void *userdata)
{
        const struct tool *tool = userdata;
        const struct lkg_identity *identity = lkg_credential_identity(tool->credential);
        struct lkg_buf line = LKG_BUF_INIT;

        begin_line(tool, &line, "identity");
        add_number(&line, "serial", identity ? identity->serial : 0);
        end_line(tool, &line);
}

static int run_exec(void *userdata)
{
        const struct tool *tool = userdata;
        struct lkg_buf line = LKG_BUF_INIT;

        begin_line(tool, &line, "exec");
        end_line(tool, &line);
        return 0;
}

/* ---- requests ---- */

static int start(struct tool *tool, struct slot *slot, struct lkg_error *err)
{
        struct lkg_request request = {
                .verb = tool->verb, .resource = &tool->resource, .done = on_end, .userdata = slot
        };

        if (strcmp(tool->verb, "watch") == 0) {
                request.version = tool->version;
                request.seconds = (unsigned)tool->seconds;
                request.open = on_open;
                request.data = on_data;
        } else if (strcmp(tool->verb, "get") != 0) {
                request.content_type = tool->content_type;
                request.body = tool->body;
                request.size = strlen(tool->body);
        }
        return lkg_client_send(tool->client, &request, &slot->call, err);
}

static void start_next(struct tool *tool)
{
        struct lkg_error error = { 0 };
        struct slot *slot = &tool->slots[tool->n_started % CALLS_MAX];
        int r;

        if (slot->call)
                return; /* the watch goes on */
        slot->tool = tool;
        tool->n_started++;
        r = start(tool, slot, &error);
        if (r >= 0)
                return;
        (void)fprintf(stderr, "remote-tool: %s\n", error.message);
        (void)sd_event_exit(tool->event, EX_SOFTWARE);
}

static void start_first(struct tool *tool)
{
        do
                start_next(tool);
        while (tool->together && tool->n_started < tool->count && tool->n_started < CALLS_MAX);
}

/* ---- commands ---- */

static void run_command(struct tool *tool, const char *word, const char *rest)
{
        if (strcmp(word, "next") == 0) {
                start_next(tool);
        } else if (strcmp(word, "exec") == 0) {
                lkg_credential_exec_done(tool->credential, *rest ? rest : NULL, strlen(rest),
                                         *rest ? NULL : "the test says so", lkg_realtime_ns());
        } else if (strcmp(word, "counters") == 0) {
                print_counters(tool);
        } else if (strcmp(word, "cancel") == 0) {
                for (size_t i = 0; i < CALLS_MAX; i++)
                        tool->slots[i].call = lkg_call_cancel(tool->slots[i].call);
        } else {
                (void)sd_event_exit(tool->event, strcmp(word, "quit") == 0 ? EX_OK : EX_USAGE);
        }
}

static int on_command(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct tool *tool = userdata;
        char bytes[4096], *end;
        ssize_t n = read(fd, bytes, sizeof(bytes));

        (void)source;
        (void)revents;
        if (n <= 0)
                return sd_event_exit(tool->event, n == 0 ? EX_OK : EX_IOERR);
        lkg_buf_append(&tool->commands, bytes, (size_t)n);
        while (!lkg_buf_failed(&tool->commands) &&
               (end = memchr(tool->commands.data, '\n', tool->commands.size))) {
                size_t size = (size_t)(end + 1 - tool->commands.data);
                char *rest;

                *end = '\0';
                rest = strchrnul(tool->commands.data, ' ');
                if (*rest)
                        *rest++ = '\0';
                run_command(tool, tool->commands.data, rest);
                tool->commands.size -= size;
                memmove(tool->commands.data, end + 1, tool->commands.size);
        }
        return 0;
}

/* ---- options ---- */

static const struct option options[] = {
        { "kubeconfig", required_argument, NULL, 'k' },
        { "count", required_argument, NULL, 'c' },
        { "max-bytes", required_argument, NULL, 'm' },
        { "request-ms", required_argument, NULL, 'r' },
        { "idle-ms", required_argument, NULL, 'i' },
        { "connect-ms", required_argument, NULL, 'C' },
        { "seconds", required_argument, NULL, 's' },
        { "version", required_argument, NULL, 'v' },
        { "content-type", required_argument, NULL, 'y' },
        { "body", required_argument, NULL, 'b' },
        { "together", no_argument, NULL, 'T' },
        { "stdin", no_argument, NULL, 'S' },
        { "text", no_argument, NULL, 't' },
        { "allow-insecure", no_argument, NULL, 'I' },
        { "allow-exec", no_argument, NULL, 'E' },
        { 0 },
};

static uint64_t *number_of(struct tool *tool, int option)
{
        switch (option) {
        case 'c':
                return &tool->count;
        case 'm':
                return &tool->max_bytes;
        case 'r':
                return &tool->request_ms;
        case 'i':
                return &tool->idle_ms;
        case 'C':
                return &tool->connect_ms;
        case 's':
                return &tool->seconds;
        default:
                return NULL;
        }
}

static bool *switch_of(struct tool *tool, int option)
{
        switch (option) {
        case 'T':
                return &tool->together;
        case 'S':
                return &tool->use_stdin;
        case 't':
                return &tool->print_text;
        case 'I':
                return &tool->allow_insecure;
        case 'E':
                return &tool->allow_exec;
        default:
                return NULL;
        }
}

static bool parse_options(struct tool *tool, int argc, char **argv)
{
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                uint64_t *number = number_of(tool, option);
                bool *on = switch_of(tool, option);

                if (number)
                        *number = strtoull(optarg, NULL, 10);
                else if (on)
                        *on = true;
                else if (option == 'k')
                        tool->kubeconfig = optarg;
                else if (option == 'v')
                        tool->version = optarg;
                else if (option == 'y')
                        tool->content_type = optarg;
                else if (option == 'b')
                        tool->body = optarg;
                else
                        return false;
        }
        return tool->kubeconfig && argc - optind == 3;
}

/* RESOURCE[/SUBRESOURCE] and [NAMESPACE/]NAME */
static bool parse_resource(struct tool *tool, const char *resource, const char *object)
{
        char *slash;

        tool->plural = strdup(resource);
        tool->ns = strdup(object);
        if (!tool->plural || !tool->ns)
                return false;
        slash = strchr(tool->plural, '/');
        if (slash) {
                *slash = '\0';
                tool->resource.subresource = slash + 1;
        }
        slash = strchr(tool->ns, '/');
        if (slash)
                *slash = '\0';
        tool->resource.ns = slash ? tool->ns : NULL;
        tool->resource.name = slash ? slash + 1 : tool->ns;
        if (strcmp(tool->verb, "create") == 0)
                tool->resource.name = NULL;
        tool->resource.plural = tool->plural;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(kinds); i++) {
                if (strcmp(kinds[i].plural, tool->plural) != 0)
                        continue;
                tool->resource.kind = kinds[i].kind;
                tool->resource.group_version = kinds[i].group_version;
                return true;
        }
        return false;
}

/* ---- main ---- */

static int set_up(struct tool *tool, int root_fd)
{
        struct lkg_error error = { 0 };
        const struct lkg_credential_options credential = {
                .kubeconfig = tool->kubeconfig,
                .source_path = "/",
                .source_fd = root_fd,
                .allow_exec = tool->allow_exec,
                .allow_insecure = tool->allow_insecure,
                .run_exec = run_exec,
                .userdata = tool,
        };
        struct lkg_client_options client = {
                .user_agent = "remote-tool",
                .max_bytes = tool->max_bytes,
                .request_ns = tool->request_ms * LKG_NSEC_PER_MSEC,
                .idle_ns = tool->idle_ms * LKG_NSEC_PER_MSEC,
                .connect_ns = tool->connect_ms * LKG_NSEC_PER_MSEC,
                .on_identity = on_identity,
                .userdata = tool,
        };
        sigset_t mask;
        int r = sd_event_default(&tool->event);

        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, SIGTERM);
        if (r >= 0 && (sigprocmask(SIG_BLOCK, &mask, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR))
                r = -errno;
        if (r >= 0)
                r = sd_event_add_signal(tool->event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0 && tool->use_stdin)
                r = sd_event_add_io(tool->event, NULL, STDIN_FILENO, EPOLLIN, on_command, tool);
        if (r >= 0)
                r = lkg_credential_new(&credential, &tool->credential);
        client.event = tool->event;
        client.credential = tool->credential;
        if (r >= 0)
                r = lkg_client_new(&client, &tool->client, &error);
        if (r < 0)
                (void)fprintf(stderr, "remote-tool: %s\n", *error.message ? error.message : strerror(-r));
        return r;
}

static void tear_down(struct tool *tool)
{
        (void)lkg_client_free(tool->client);
        (void)lkg_credential_free(tool->credential);
        sd_event_unref(tool->event);
        lkg_buf_deinit(&tool->commands);
        free(tool->plural);
        free(tool->ns);
}

int main(int argc, char **argv)
{
        struct tool tool = {
                .start_ns = lkg_boottime_ns(), .max_bytes = 3u << 20, .seconds = 300, .body = ""
        };
        LKG_CLEANUP(lkg_closep) int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r = EX_USAGE;

        tool.content_type = "application/json";
        if (parse_options(&tool, argc, argv)) {
                tool.verb = argv[optind];
                if (parse_resource(&tool, argv[optind + 1], argv[optind + 2]))
                        r = set_up(&tool, root_fd) < 0 ? EX_SOFTWARE : EX_OK;
        } else {
                (void)fputs("usage: remote-tool --kubeconfig FILE [OPTIONS] get|watch|patch|create RESOURCE "
                            "[NAMESPACE/]NAME\n",
                            stderr);
        }
        if (r == EX_OK) {
                if (tool.count == 0 && strcmp(tool.verb, "watch") != 0)
                        tool.count = 1;
                start_first(&tool);
                r = sd_event_loop(tool.event);
                print_counters(&tool);
        }
        tear_down(&tool);
        return r < 0 ? EX_SOFTWARE : r;
}
