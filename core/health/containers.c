/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Containers of static pods, from the container runtime: see <lkg/probes.h>. First the process that asks it, `lkgfs-engine --containers`
 * (CRI, runtime.v1: k8s.io/cri-api/pkg/apis/runtime/v1/api.proto), then the engine's reader of what it printed.
 */
#include <sysexits.h>

#include <lkg/file.h>
#include <lkg/http.h>
#include <lkg/messages.h>
#include <lkg/probes.h>
#include <lkg/process.h>

#define SERVICE           "/runtime.v1.RuntimeService/"
#define ANSWER_BYTES_MAX  (16u << 20)            /* as a kubelet takes it (maxMsgSize) */
#define LIMIT_NS          (4 * LKG_NSEC_PER_SEC) /* lkgfsd's own limit is 5 s */
#define LIST_ITEMS        1                      /* of both lists */
#define STATUS_SANDBOX    1                      /* PodSandboxStatusRequest.pod_sandbox_id */
#define CONTAINERS_FILTER 1                      /* ListContainersRequest.filter */
#define FILTER_SANDBOX    3                      /* ContainerFilter.pod_sandbox_id */

/* ---- what is said ---- */

struct item {
        struct lkg_container c; /* of a sandbox: without a name */
        char id[128];           /* of the sandbox */
        char source[16];        /* where the kubelet has the pod from */
};

/* A member: where it is in which message (numbers of fields; of a map, the value of `key`), and its name in our lines. */
static const struct row {
        enum message { SANDBOX, STATUS, CONTAINER } message;
        unsigned path[4]; /* ended by 0 */
        enum { TEXT, NUMBER } type;
        size_t offset, size;
        const char *name; /* NULL = it is not printed */
        const char *key;
} rows[] = {
#define MEMBER(m) offsetof(struct item, m), sizeof(((struct item *)0)->m)
        { SANDBOX, { 1 }, TEXT, MEMBER(id) },
        { SANDBOX, { 2, 1 }, TEXT, MEMBER(c.pod), "pod" },
        { SANDBOX, { 2, 2 }, TEXT, MEMBER(c.uid), "uid" },
        { SANDBOX, { 2, 3 }, TEXT, MEMBER(c.ns), "namespace" },
        { SANDBOX, { 4 }, NUMBER, MEMBER(c.sandbox_ns), "sandboxCreated" },
        { SANDBOX, { 6, 2 }, TEXT, MEMBER(source), .key = "kubernetes.io/config.source" },
        { STATUS, { 1, 5, 1 }, TEXT, MEMBER(c.ip), "ip" },
        { CONTAINER, { 3, 1 }, TEXT, MEMBER(c.name), "container" },
        { CONTAINER, { 6 }, NUMBER, MEMBER(c.state), "state" },
        { CONTAINER, { 7 }, NUMBER, MEMBER(c.created_ns), "created" },
        { CONTAINER,
          { 9, 2 },
          NUMBER,
          MEMBER(c.restarts),
          "restarts",
          "io.kubernetes.container.restartCount" },
};

/* The last one counts. @key: of an entry of a map, which is a message: 1 is its key */
static int find_field(struct lkg_span message, unsigned number, const char *key, struct lkg_wire_field *ret)
{
        struct lkg_wire_field field, entry;
        int r;

        *ret = (struct lkg_wire_field){ 0 };
        while ((r = lkg_wire_next(&message, &field)) > 0) {
                if (field.number != number)
                        continue;
                if (key && (r = find_field(field.bytes, 1, NULL, &entry)) < 0)
                        return r;
                if (!key || lkg_span_is(entry.bytes, key))
                        *ret = field;
        }
        return r;
}

static void take_member(const struct row *row, const struct lkg_wire_field *field, char *to)
{
        char digits[24] = "", *text = row->type == TEXT ? to : digits;
        size_t room = row->type == TEXT ? row->size : sizeof(digits);
        size_t n = field->bytes.size < room ? field->bytes.size : room - 1;
        uint64_t number = field->value;

        if (n > 0)
                *(char *)mempcpy(text, field->bytes.data, n) = '\0';
        if (row->type == TEXT)
                return;
        if (row->key)
                (void)lkg_digits(digits, &number);
        memcpy(to, &number, sizeof(number));
}

static int take_message(struct lkg_span message, enum message kind, struct item *ret)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                struct lkg_wire_field field = { .bytes = message };
                const char *key = rows[i].key;

                if (rows[i].message != kind)
                        continue;
                for (const unsigned *number = rows[i].path; *number; number++, key = NULL)
                        if (find_field(field.bytes, *number, key, &field) < 0)
                                return -EBADMSG;
                take_member(&rows[i], &field, (char *)ret + rows[i].offset);
        }
        return 0;
}

/* ---- the newest ones ---- */

struct items {
        struct item *items;
        size_t n, allocated;
};

static void items_deinit(struct items *items)
{
        free(items->items);
}

/* Of several sandboxes of a pod, and of several containers of a name, the one that was made last. */
static void keep_newest(struct items *items, const struct item *item)
{
        for (size_t i = 0; i < items->n; i++) {
                struct lkg_container *c = &items->items[i].c;

                if (strcmp(c->ns, item->c.ns) != 0 || strcmp(c->pod, item->c.pod) != 0 ||
                    strcmp(c->name, item->c.name) != 0)
                        continue;
                if (item->c.sandbox_ns > c->sandbox_ns || item->c.created_ns > c->created_ns)
                        items->items[i] = *item;
                return;
        }
        (void)lkg_need(LKG_RESERVE(items->items, items->n, items->allocated));
        items->items[items->n++] = *item;
}

/* @of: what the items have in common */
static int take_list(struct lkg_span list, enum message kind, const struct item *of, struct items *ret)
{
        struct lkg_wire_field field;
        int r;

        while ((r = lkg_wire_next(&list, &field)) > 0) {
                struct item item = *of;

                if (field.number != LIST_ITEMS)
                        continue;
                r = take_message(field.bytes, kind, &item);
                if (r < 0)
                        return r;
                if (strcmp(item.source, "file") == 0)
                        keep_newest(ret, &item);
        }
        return r;
}

/* ---- asking ---- */

struct asker {
        const struct lkg_account *account; /* that we become; NULL = we have */
        sd_event *event;
        struct lkg_http *http;
        struct lkg_identity *identity;
        uint64_t until_ns;
        struct lkg_http_transfer *transfer;
        struct lkg_buf answer; /* the message */
        int result;
        struct lkg_error err;
};

/* The reader of the settings is confined in this way, too, but may read what root may. We have all that we need. */
static int confine(void *userdata)
{
        static const int nothing[] = { -1 };
        struct asker *a = userdata;
        const struct lkg_account *account = LKG_STEAL(a->account);
        int r = account ? lkg_sandbox_become(account, &a->err) : 0;

        if (account && r >= 0)
                r = lkg_capabilities_keep(nothing, &a->err);
        return account && r >= 0 ? lkg_sandbox_enter(NULL, 0, &a->err) : r;
}

static void on_end(const struct lkg_http_result *result, void *userdata)
{
        struct asker *a = userdata;
        struct lkg_span message;

        a->transfer = NULL;
        a->result = lkg_grpc_answer(result, &message, *a->err.message ? NULL : &a->err);
        if (a->result == 0)
                lkg_buf_append(&a->answer, message.data, message.size);
}

/* Waits for the answer. */
static int call(struct asker *a, const char *method, const struct lkg_buf *message, struct lkg_span *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf frame = LKG_BUF_INIT;
        struct lkg_http_request request = {
                .max_bytes = ANSWER_BYTES_MAX, .on_connected = confine, .on_end = on_end, .userdata = a
        };
        uint64_t now_ns = lkg_boottime_ns();
        int r;

        request.deadline_ns = a->until_ns - lkg_earlier(a->until_ns, now_ns);
        lkg_buf_reset(&a->answer);
        lkg_grpc_request(method, message, &frame, &request);
        r = lkg_http_start(a->http, a->identity, &request, &a->transfer, &a->err);
        while (r >= 0 && a->transfer)
                r = sd_event_run(a->event, UINT64_MAX);
        *ret = lkg_span(a->answer.data, a->answer.size);
        return r < 0 ? r : a->result;
}

/* Its address, and its containers. */
static int ask_sandbox(struct asker *a, struct item *sandbox, struct items *ret)
{
        LKG_CLEANUP(lkg_buf_deinit)
        struct lkg_buf status = LKG_BUF_INIT, filter = LKG_BUF_INIT, list = LKG_BUF_INIT;
        struct lkg_span answer;
        int r;

        lkg_wire_put(&status, STATUS_SANDBOX, sandbox->id, strlen(sandbox->id));
        lkg_wire_put(&filter, FILTER_SANDBOX, sandbox->id, strlen(sandbox->id));
        lkg_wire_put(&list, CONTAINERS_FILTER, filter.data, filter.size);
        r = call(a, SERVICE "PodSandboxStatus", &status, &answer);
        if (r >= 0)
                r = take_message(answer, STATUS, sandbox);
        if (r >= 0)
                r = call(a, SERVICE "ListContainers", &list, &answer);
        return r < 0 ? r : take_list(answer, CONTAINER, sandbox, ret);
}

static int ask(struct asker *a, struct items *ret)
{
        static const struct lkg_buf everything = LKG_BUF_INIT;
        static const struct item nothing = { 0 };
        LKG_CLEANUP(items_deinit) struct items sandboxes = { 0 };
        struct lkg_span answer;
        int r = call(a, SERVICE "ListPodSandbox", &everything, &answer);

        if (r >= 0)
                r = take_list(answer, SANDBOX, &nothing, &sandboxes);
        for (size_t i = 0; r >= 0 && i < sandboxes.n; i++)
                r = ask_sandbox(a, &sandboxes.items[i], ret);
        return r < 0 && !*a->err.message
                       ? lkg_refuse_because(&a->err, r, NULL, "an answer that is not of the CRI")
                       : r;
}

/* ---- the process ---- */

static void put_line(const struct item *item, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_ROW);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const void *member = (const char *)item + rows[i].offset;

                if (rows[i].name && rows[i].type == TEXT)
                        lkg_json_foreign(&json, rows[i].name, member);
                else if (rows[i].name)
                        lkg_json_u64(&json, rows[i].name, *(const uint64_t *)member);
        }
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, buf);
}

int lkg_containers_print(const char *path, const struct lkg_account *account)
{
        LKG_CLEANUP(items_deinit) struct items containers = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct asker a = { .account = account, .until_ns = lkg_boottime_ns() + LIMIT_NS };
        struct lkg_http_options options = {
                .user_agent = "lkgfs", .max_bytes = ANSWER_BYTES_MAX, .plain = true, .unix_path = path
        };
        int r = sd_event_new(&a.event);

        if (r < 0)
                return EX_OSERR;
        options.event = a.event;
        a.http = lkg_http_new(&options);
        a.identity = lkg_identity_new();
        a.identity->server = lkg_copy("grpc://localhost"); /* nobody looks for it: there is a path */
        a.identity->disable_compression = true;
        r = ask(&a, &containers);
        if (r < 0)
                lkg_buf_printf(&text, "the container runtime at %s: %s\n", path, a.err.message);
        for (size_t i = 0; r >= 0 && i < containers.n; i++)
                put_line(&containers.items[i], &text);
        lkg_buf_deinit(&a.answer);
        lkg_http_free(a.http);
        lkg_identity_unref(a.identity);
        sd_event_unref(a.event);
        return lkg_write_all(STDOUT_FILENO, text.data, text.size) < 0 || r < 0 ? EX_IOERR : EX_OK;
}

/* ---- reading it ---- */

static int read_line(struct lkg_span text, struct lkg_container *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *line = NULL;
        struct item item = { 0 };

        if (lkg_decode_json(text.data, text.size, 0, NULL, &report, &line) < 0 ||
            lkg_value_type(line) != LKG_MAP)
                return -EBADMSG;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char *member = (char *)&item + rows[i].offset;
                const char *word = rows[i].name ? lkg_map_get_string(line, rows[i].name) : "";

                if (!word && rows[i].type == TEXT)
                        return -EBADMSG;
                if (rows[i].type == TEXT)
                        lkg_text_copy(member, rows[i].size, word);
                else
                        *(uint64_t *)(void *)member = lkg_record_number(line, rows[i].name, 0);
        }
        if (item.c.state > LKG_CONTAINER_UNKNOWN)
                item.c.state = LKG_CONTAINER_UNKNOWN;
        *ret = item.c;
        return 0;
}

int lkg_containers_read(int runtime_fd, struct lkg_containers *ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_containers_deinit) struct lkg_containers found = { 0 };
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_span rest, line;
        size_t size;
        int r = lkg_record_read_text(runtime_fd, LKG_CONTAINERS_FILE, LKG_CONTAINERS_BYTES_MAX, &text, &size,
                                     err);

        rest = lkg_span(text, r < 0 ? 0 : size);
        while (r >= 0 && lkg_span_next(&rest, '\n', &line) && (line.size > 0 || rest.data)) {
                (void)lkg_need(LKG_RESERVE(found.items, found.n, found.allocated));
                r = read_line(line, &found.items[found.n++]);
                if (r < 0)
                        return lkg_error_set(err, r, NULL, "%s has a line that is none of ours.",
                                             LKG_CONTAINERS_FILE);
        }
        if (r < 0)
                return r;
        *ret = found;
        found = (struct lkg_containers){ 0 };
        return 0;
}

void lkg_containers_deinit(struct lkg_containers *containers)
{
        free(containers->items);
        *containers = (struct lkg_containers){ 0 };
}
