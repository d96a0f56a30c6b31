/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status while the engine is silent. The engine provides status/<component>/condition, condition.json, error
 * and metrics.prom while it answers; this file does once it has not answered for a second, whether it is
 * dead, hung or waiting to be restarted. This needs no YAML parser, and only reads one flat JSON map: the
 * engine's last text is in the publication (of metrics.prom: what a reader got last), and only the parts that are
 * no longer true are replaced. The state of our processes in metrics.prom always comes from here, because no
 * process can report its own end. Of every other text that the engine renders, the last one is shown, or a line.
 */
#include <errno.h>
#include <inttypes.h>

#include <lkg/text.h>
#include <lkg/file.h>

#include "file-server.h"

#define SUPERVISED_NS (90 * LKG_NSEC_PER_SEC) /* lkgfsd checks at least once a minute */
#define TEXT_MAX      (1u << 20)
#define OWN_METRICS   "# HELP lkgfs_engine_up" /* what follows in metrics.prom is from here */

static struct lkg_health *health(void)
{
        return &server.shm->health;
}

/* ---- words ---- */

struct outage_words {
        bool down;
        char since[21], reason[64];
        char heard[21]; /* "" = no message yet */
        const char *component;
        const struct lkg_publication *publication;
        const struct lkg_entry *entry;
};

static int read_entry(const struct lkg_entry *entry, char **ret)
{
        int r = lkg_publication_read(server.blobs, entry, TEXT_MAX, ret, NULL);

        return r == -ENOENT ? -EAGAIN : r;
}

/*
 * The engine's last message, which begins with the configuration in use, and the part of its last reason
 * about a try or a rollout: these continue without the engine.
 * Return: 0; -ENOMEM.
 */
static int put_message(struct json_object *old, struct lkg_buf *buf)
{
        const char *const parts[] = { lkg_json_get(old, "message"), lkg_json_get(old, "pending") };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++) {
                if (i > 0 && parts[i])
                        lkg_buf_puts(buf, "; ");
                if (parts[i])
                        lkg_buf_puts(buf, parts[i]);
        }
        return lkg_buf_failed(buf) ? -ENOMEM : 0;
}

/* From condition.json, which has them in separate fields. */
static int put_using(const struct outage_words *w, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *old = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf message = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL, *path = NULL;
        const struct lkg_entry *entry;
        int r;

        if (asprintf(&path, "%s.json", w->entry->path) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        entry = lkg_publication_find(w->publication, path);
        r = entry ? read_entry(entry, &text) : -ENOENT;
        if (r < 0)
                return r;
        r = lkg_json_read_flat(text, strcspn(text, "\n"), &old);
        if (r == 0)
                r = put_message(old, &message);
        if (message.size > 0)
                lkg_buf_shown(buf, message.data, message.size);
        return r == -ENOMEM ? r : 0;
}

static int say_condition(const struct outage_words *w, const char *old, struct lkg_buf *buf)
{
        int r;

        if (!w->down) {
                lkg_buf_puts(buf, old);
                return 0;
        }
        lkg_buf_printf(buf, "Unknown %s: ", w->reason);
        r = put_using(w, buf);
        lkg_buf_putc(buf, '\n');
        return r;
}

/* If the engine never answered, or wrote what we cannot read, report only what we know ourselves. */
static int say_condition_json(const struct outage_words *w, const char *old, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_json_flat_freep) struct json_object *was = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf message = LKG_BUF_INIT;
        int r = lkg_json_read_flat(old, strcspn(old, "\n"), &was);

        if (r == -ENOMEM ||
            (was && w->down && lkg_json_get(was, "pending") && put_message(was, &message) < 0))
                return -ENOMEM;
        if (!was && !w->down) {
                lkg_buf_puts(buf, old);
                return 0;
        }
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        if (!was) {
                lkg_json_u64(&json, "schemaVersion", 1);
                lkg_json_text(&json, "type", "ConfigOK");
        }
        lkg_json_copy_flat(&json, was,
                           (const struct lkg_json_change[]){
                                   { "lastHeartbeatTime", *w->heard ? w->heard : NULL },
                                   { "status", w->down ? "Unknown" : NULL },
                                   { "reason", w->down ? w->reason : NULL },
                                   { "message", message.size > 0 ? message.data : NULL },
                                   { "lastTransitionTime", w->down ? w->since : NULL },
                                   { NULL },
                           });
        lkg_json_end(&json);
        return lkg_json_write_line(&json, buf);
}

static int say_error(const struct outage_words *w, const char *old, struct lkg_buf *buf)
{
        if (!w->down)
                lkg_buf_puts(buf, old);
        else if (*old && *old != '\n')
                lkg_buf_printf(buf, "%s, before: %s", w->reason, old);
        else
                lkg_buf_printf(buf, "%s\n", w->reason);
        return 0;
}

/* The same lines, but with the value 0 for the sample @name. */
static void put_with_zero(struct lkg_buf *buf, const char *text, const char *name)
{
        size_t size = strlen(name);

        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                const char *value = memrchr(line, ' ', n);

                if (strncmp(line, name, size) == 0 && line[size] == '{' && value)
                        lkg_buf_printf(buf, "%.*s0", (int)(value + 1 - line), line);
                else
                        lkg_buf_append(buf, line, n);
                line += n;
                if (*line) {
                        lkg_buf_putc(buf, '\n');
                        line++;
                }
        }
}

static void put_metric(struct lkg_buf *buf, const char *name, const char *type, const char *help)
{
        lkg_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static bool is_up(const struct lkg_process *process)
{
        return lkg_process_running(atomic_load(&process->pid), process->start_time) == 1;
}

/* Names as in `ps`. A stopped process does nothing, so it does not count as up. */
static void put_processes(const struct outage_words *w, struct lkg_buf *buf)
{
        uint64_t looked_ns = atomic_load(&health()->looked_ns);
        bool looks = looked_ns == 0 || lkg_boottime_ns() - looked_ns < SUPERVISED_NS;
        const struct {
                const char *name;
                bool up;
        } rows[] = {
                { "lkgfsd", is_up(&server.shm->supervisor) && looks },
                { "lkgfs-engine", is_up(&server.shm->engine) },
                { "lkgfs-fs", true },
                { "lkgfs-notify", is_up(&server.shm->notifier) },
        };

        put_metric(buf, "lkgfs_process_up", "gauge", "1 while this process of lkgfs runs.");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++)
                lkg_buf_printf(buf, "lkgfs_process_up{component=\"%s\",process=\"%s\"} %d\n", w->component,
                               rows[i].name, rows[i].up);
}

/* What is killed and started again ten times a second is up whenever somebody looks. */
static void put_restarts(const struct outage_words *w, struct lkg_buf *buf)
{
        static const char *const names[_LKG_CHILD_KIND_MAX] = { [LKG_CHILD_ENGINE] = "lkgfs-engine",
                                                                [LKG_CHILD_SERVER] = "lkgfs-fs",
                                                                [LKG_CHILD_NOTIFIER] = "lkgfs-notify" };
        const struct lkg_ends *ends = server.shm->ends;
        uint64_t now = lkg_boottime_ns();
        char reason[64];

        put_metric(buf, "lkgfs_process_restarts_total", "counter",
                   "Ends of this process that nobody asked for.");
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++)
                lkg_buf_printf(buf,
                               "lkgfs_process_restarts_total{component=\"%s\",process=\"%s\"} %" PRIu64 "\n",
                               w->component, names[i], (uint64_t)atomic_load(&ends[i].n));
        put_metric(buf, "lkgfs_process_restarts_recent", "gauge",
                   "The same within the last minute; reason: of the last one. Absent if there was none.");
        for (size_t i = 0; i < _LKG_CHILD_KIND_MAX; i++) {
                unsigned n = lkg_ends_recent(&ends[i], now);

                lkg_ends_reason(&ends[i], reason, sizeof(reason));
                if (n > 0)
                        lkg_buf_printf(buf,
                                       "lkgfs_process_restarts_recent{component=\"%s\",process=\"%s\","
                                       "reason=\"%s\"} %u\n",
                                       w->component, names[i], reason, n);
        }
}

static int say_metrics(const struct outage_words *w, const char *old, struct lkg_buf *buf)
{
        if (w->down)
                put_with_zero(buf, old, "lkgfs_condition_ok");
        else
                lkg_buf_puts(buf, old);
        if (w->down && !strstr(old, "lkgfs_condition_ok{")) {
                put_metric(buf, "lkgfs_condition_ok", "gauge", "1 while the condition ConfigOK is True.");
                lkg_buf_printf(buf, "lkgfs_condition_ok{component=\"%s\"} 0\n", w->component);
        }
        lkg_buf_puts(buf, OWN_METRICS " 1 while the engine answers.\n# TYPE lkgfs_engine_up gauge\n");
        lkg_buf_printf(buf, "lkgfs_engine_up{component=\"%s\"} %d\n", w->component, !w->down);
        put_metric(buf, "lkgfs_heartbeat_timestamp_seconds", "gauge",
                   "When the engine last gave a sign of life, 0 for not yet.");
        lkg_buf_printf(buf, "lkgfs_heartbeat_timestamp_seconds{component=\"%s\"} %" PRIu64 "\n",
                       w->component, (uint64_t)(atomic_load(&health()->heard_wall_ns) / LKG_NSEC_PER_SEC));
        put_processes(w, buf);
        put_restarts(w, buf);
        return 0;
}

/* ---- files ---- */

static const struct told {
        const char *name;
        int (*say)(const struct outage_words *w, const char *old, struct lkg_buf *buf);
} told[] = {
        { "condition", say_condition },
        { "condition.json", say_condition_json },
        { "error", say_error },
        { "metrics.prom", say_metrics },
};

/* `status/<component>/<name>`, or below a virtual directory, where its control files are, too. */
static const struct told *find_told(const struct lkg_publication *p, const struct lkg_entry *entry)
{
        const char *name = strrchr(entry->path, '/');
        const struct told *found = NULL;
        char path[LKG_NODE_NAME];
        size_t top;

        for (size_t i = 0; name && i < LKG_ARRAY_SIZE(told) && !found; i++)
                if (strcmp(name + 1, told[i].name) == 0)
                        found = &told[i];
        if (!found || entry->component >= p->n_components)
                return NULL;
        if (snprintf(path, sizeof(path), "status/%s%s", p->components[entry->component].name, name) >=
            (int)sizeof(path))
                return NULL;
        if (strlen(entry->path) < strlen(path))
                return NULL;
        top = strlen(entry->path) - strlen(path);
        if (strcmp(entry->path + top, path) != 0 || (top > 0 && entry->path[top - 1] != '/'))
                return NULL;
        if (snprintf(path, sizeof(path), "%.*scontrol/%s", (int)top, entry->path,
                     p->components[entry->component].name) >= (int)sizeof(path))
                return NULL;
        return lkg_publication_find(p, path) ? found : NULL;
}

/* Wall time. An engine that works on noted content is not silent, and may still have left a reader without an answer. */
static uint64_t silent_since(const struct lkg_publication *p)
{
        return atomic_load(&health()->silent_ns) != 0
                       ? atomic_load(&health()->silent_wall_ns)
                       : lkg_realtime_ns() - p->timeout_ms * LKG_NSEC_PER_MSEC;
}

static void fill_words(const struct lkg_publication *p, const struct lkg_entry *entry, bool down,
                       struct outage_words *ret)
{
        uint64_t heard_ns = atomic_load(&health()->heard_wall_ns);

        *ret = (struct outage_words){ .down = down,
                                      .component = p->components[entry->component].name,
                                      .publication = p,
                                      .entry = entry };
        lkg_format_rfc3339(silent_since(p), ret->since);
        (void)snprintf(ret->reason, sizeof(ret->reason), LKG_NOT_ANSWERING "%s", ret->since);
        if (heard_ns)
                lkg_format_rfc3339(heard_ns, ret->heard);
}

/* Of what this file server has answered before: without what it has added itself. Caller frees. */
static int read_last(const struct lkg_node *node, char **ret)
{
        LKG_CLEANUP(lkg_freep) char *text = node->size < TEXT_MAX ? calloc(1, node->size + 1) : NULL;
        ssize_t n = text ? lkg_node_read_content(node, text, node->size, 0) : -ENOMEM;
        char *own = n < 0 ? NULL : strstr(text, OWN_METRICS);

        if (n < 0)
                return (int)n;
        if (own)
                *own = '\0';
        *ret = LKG_STEAL(text);
        return 0;
}

static int say_nothing(const struct outage_words *w, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        const char *suffix = strrchr(w->entry->path, '.');

        if (!suffix || strcmp(suffix, ".json") != 0) {
                lkg_buf_printf(buf, "# %s; it writes this text when it is read\n", w->reason);
                return 0;
        }
        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(&json, "error", w->reason);
        lkg_json_end(&json);
        return lkg_json_write_line(&json, buf);
}

/*
 * The text of @words->entry as it is told here; @old: the engine's, NULL = none.
 * Return: 0; -ENOENT: it is @old; another -errno.
 */
static int make_node(const struct outage_words *words, const struct told *file, const char *old,
                     int64_t mtime_ns, struct lkg_node **ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_entry changed = *words->entry;
        int r = file ? file->say(words, old ? old : "", &buf) : say_nothing(words, &buf);

        if (r < 0 || lkg_buf_failed(&buf))
                return r < 0 ? r : -ENOMEM;
        if (!buf.data || (old && strcmp(buf.data, old) == 0))
                return -ENOENT;
        changed.size = buf.size;
        changed.mtime_ns = mtime_ns;
        r = lkg_sha256_hex(buf.data, buf.size, changed.sha256);
        return r < 0 ? r : lkg_node_virtual(LKG_NODE_CONTENT, changed.path, &changed, buf.data, ret);
}

int lkg_outage_answer(const struct lkg_publication *publication, const struct lkg_entry *entry,
                      struct lkg_node **ret)
{
        const struct told *file = find_told(publication, entry);
        struct lkg_node *last = lkg_node_last(entry->path);
        LKG_CLEANUP(lkg_freep) char *old = NULL;
        struct outage_words words;
        int r = 0;

        if (last && !file) {
                *ret = last;
                return 0;
        }
        fill_words(publication, entry, lkg_health_is_down(lkg_boottime_ns()), &words);
        if (last) {
                r = read_last(last, &old);
                lkg_node_forget(last, 1);
        }
        return r < 0 ? r : make_node(&words, file, old, (int64_t)silent_since(publication), ret);
}

int lkg_outage_node(const struct lkg_publication *publication, const struct lkg_entry *entry,
                    struct lkg_node **ret)
{
        const struct told *file = find_told(publication, entry);
        LKG_CLEANUP(lkg_freep) char *old = NULL;
        struct outage_words words;
        int64_t heard_ns;
        int r;

        if (!file)
                return -ENOENT;
        fill_words(publication, entry,
                   entry->flags & LKG_ENTRY_ANSWERED ? false : lkg_health_find_out(lkg_link_ask), &words);
        heard_ns = (int64_t)atomic_load(&health()->heard_wall_ns);
        r = read_entry(entry, &old);
        return r < 0 ? r
                     : make_node(&words, file, old, heard_ns > entry->mtime_ns ? heard_ns : entry->mtime_ns,
                                 ret);
}
