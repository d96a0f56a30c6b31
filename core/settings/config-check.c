/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that involve more than one setting: names that must differ, names that the view reserves, settings
 * that make no sense together. Runs after decoding, on typed values; the document is only used for
 * positions.
 */
#include <arpa/inet.h>

#include <limits.h>
#include <stdarg.h>

#include <lkg/config.h>
#include <lkg/publication.h>

#define COMPONENT_NAME_MAX 128u

const char *const lkg_config_virtual_dirs[] = {
        "bad", "control", "history", "layers", "lkg", "status", NULL
};

struct checker {
        const struct lkg_config *config;
        const struct lkg_value *doc; /* may be NULL */
        struct lkg_report *report;
};

bool lkg_config_is_virtual(const struct lkg_config *config, const char *name)
{
        if (*config->virtual_dir)
                return strcmp(config->virtual_dir, name) == 0;
        for (size_t i = 0; lkg_config_virtual_dirs[i]; i++)
                if (strcmp(lkg_config_virtual_dirs[i], name) == 0)
                        return true;
        return false;
}

/* The position of component @i's @field, else of the component, else none. */
static struct lkg_where component_where(const struct checker *c, size_t i, const char *field)
{
        const struct lkg_value *list =
                c->doc && lkg_value_type(c->doc) == LKG_MAP ? lkg_map_get(c->doc, "components") : NULL;
        const struct lkg_value *item = list && lkg_value_type(list) == LKG_LIST && i < lkg_value_size(list)
                                               ? lkg_list_get(list, i)
                                               : NULL;
        const struct lkg_value *value =
                item && lkg_value_type(item) == LKG_MAP ? lkg_map_get(item, field) : NULL;

        return lkg_where_of(value ? value : item);
}

static struct lkg_where top_where(const struct checker *c, const char *field)
{
        return lkg_where_of(
                c->doc && lkg_value_type(c->doc) == LKG_MAP ? lkg_value_get_pointer(c->doc, field) : NULL);
}

/* Refuse @field of component @i; it may name a member, `restart.hook`, and is found by its first name. */
LKG_PRINTF(5, 6)
static void refuse_field(const struct checker *c, size_t i, const char *field, unsigned code,
                         const char *fmt, ...)
{
        char text[1024], first[64];
        struct lkg_where where;
        va_list ap;

        (void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(field, "."), field);
        where = component_where(c, i, first);
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        lkg_report_add(c->report, LKG_ERROR, code, &where, "components[%s].%s: %s",
                       c->config->components[i].name, field, text);
}

LKG_PRINTF(4, 5)
static void refuse_top(const struct checker *c, const char *field, unsigned code, const char *fmt, ...)
{
        const struct lkg_where where = top_where(c, field);
        char text[1024];
        va_list ap;

        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        lkg_report_add(c->report, LKG_ERROR, code, &where, "%s: %s", field, text);
}

static bool reserved(const struct checker *c, const char *name)
{
        return lkg_config_is_virtual(c->config, name) || strcmp(name, LKG_FALLBACK_DIR) == 0 ||
               strcmp(name, LKG_WAKE_NAME) == 0;
}

/* The names that a component claims in the root of the view: number 0 is `file`, the others are aliases. */
static const char *claimed(const struct lkg_config_component *component, size_t k)
{
        if (k == 0)
                return component->file;
        return k <= component->aliases.n_items ? component->aliases.items[k - 1] : NULL;
}

static const char *claim_field(const struct lkg_config_component *component, size_t k)
{
        return k > 0 ? "aliases" : component->is_pods ? "dir" : "file";
}

/* Is there an earlier claim of the same name, in document order? */
static bool claimed_before(const struct lkg_config *config, size_t i, size_t k, const char **ret_by)
{
        const char *name = claimed(&config->components[i], k);

        for (size_t a = 0; a <= i; a++)
                for (size_t b = 0; claimed(&config->components[a], b); b++) {
                        if (a == i && b >= k)
                                return false;
                        if (strcmp(claimed(&config->components[a], b), name) == 0) {
                                *ret_by = config->components[a].name;
                                return true;
                        }
                }
        return false;
}

static void check_claims(const struct checker *c, size_t i)
{
        const struct lkg_config_component *component = &c->config->components[i];
        char quoted[5 * 64 + 8];

        for (size_t k = 0; claimed(component, k); k++) {
                const char *name = claimed(component, k), *by;

                (void)lkg_quote(name, strlen(name), quoted);
                if (!*name)
                        refuse_field(c, i, claim_field(component, k), 3008,
                                     "is empty, want a bare file name like kubelet.conf");
                else if (reserved(c, name))
                        refuse_field(c, i, claim_field(component, k), 3014,
                                     "%s is reserved for the view itself, choose another name", quoted);
                else if (claimed_before(c->config, i, k, &by))
                        refuse_field(c, i, claim_field(component, k), 3013,
                                     "%s is already a file of component %s, choose another name", quoted,
                                     by);
        }
}

static void check_layers(const struct checker *c, size_t i)
{
        const struct lkg_config_component *component = &c->config->components[i];
        const struct {
                const char *field, *path;
        } layers[] = { { "base", component->base },
                       { "dropInDir", component->dropin_dir },
                       { "instance", component->instance },
                       { "patchesDir", component->patches_dir } };

        for (size_t k = 0; k < LKG_ARRAY_SIZE(layers); k++) {
                const char *path = layers[k].path;
                size_t n = strcspn(path, "/");
                char first[NAME_MAX + 1], quoted[5 * 64 + 8];

                /* the name in `file` has already been checked */
                if (n == 0 || n > NAME_MAX || strcmp(path, component->file) == 0)
                        continue;
                memcpy(first, path, n);
                first[n] = '\0';
                if (reserved(c, first))
                        refuse_field(c, i, layers[k].field, 3014,
                                     "%s lies below a name that the view keeps for itself",
                                     lkg_quote(path, strlen(path), quoted));
        }
        if (*component->dropin_dir && (strcmp(component->dropin_dir, component->file) == 0 ||
                                       strcmp(component->dropin_dir, component->base) == 0))
                refuse_field(c, i, "dropInDir", 3020, "is the same name as the file or the base");
}

static void check_restart(const struct checker *c, size_t i)
{
        const struct lkg_config_component *component = &c->config->components[i];
        const struct lkg_strings *hook = &component->restart.hook;

        if (component->restart.policy == LKG_SETTINGS_RESTART_UNIT && !*component->restart.unit &&
            !*component->match.unit)
                refuse_field(c, i, "restart", 3020, "policy unit needs a unit (want unit: kubelet.service)");
        if (component->restart.policy == LKG_SETTINGS_RESTART_HOOK &&
            (!hook->n_items || hook->items[0][0] != '/'))
                refuse_field(
                        c, i, "restart.hook", 3012,
                        "policy hook needs an argument list that begins with an absolute path (want hook: "
                        "[/usr/local/sbin/restart-kubelet])");
}

/* `a.b.c`, each part a field name; a final `*` matches any rest of a name. */
static bool field_pattern_ok(const char *text)
{
        size_t n = strlen(text);

        if (n == 0 || text[0] == '.' || text[n - 1] == '.' || strstr(text, ".."))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                      (text[i] >= '0' && text[i] <= '9') || strchr("._-", text[i]) ||
                      (text[i] == '*' && i == n - 1)))
                        return false;
        return true;
}

static void check_guard(const struct checker *c, size_t i)
{
        const struct lkg_config_component *component = &c->config->components[i];
        const struct lkg_strings *lists[] = { &component->guard.deny, &component->guard.pinned };
        char quoted[5 * 64 + 8];

        for (size_t k = 0; k < LKG_ARRAY_SIZE(lists); k++)
                for (size_t n = 0; n < lists[k]->n_items; n++)
                        if (!field_pattern_ok(lists[k]->items[n]))
                                refuse_field(
                                        c, i, "guard", 3021,
                                        "%s is not a field (want authentication.anonymous.enabled or "
                                        "staticPod*)",
                                        lkg_quote(lists[k]->items[n], strlen(lists[k]->items[n]), quoted));
}

/* Is @host (of @n bytes, an IPv6 address in brackets) this machine? A name other than localhost could be anywhere. */
static bool is_loopback(const char *host, size_t n)
{
        struct in_addr address;
        char text[INET_ADDRSTRLEN];

        if ((n == 9 && strncmp(host, "localhost", n) == 0) || (n == 5 && strncmp(host, "[::1]", n) == 0))
                return true;
        if (n >= sizeof(text))
                return false;
        memcpy(text, host, n);
        text[n] = '\0';
        return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Return: what is wrong with it; NULL = nothing. */
static const char *url_complaint(const char *url, bool allow_remote)
{
        static const char usual[] = "want http://127.0.0.1:10248/healthz, auto, or nothing";
        const char *host, *end;
        size_t n;

        if (strcmp(url, "") == 0 || strcmp(url, "auto") == 0)
                return NULL;
        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
                return usual;
        host = strstr(url, "://") + 3;
        n = strcspn(host, "/?#");
        for (const char *p = url; *p; p++)
                if (*p <= ' ' || *p == 0x7f)
                        return usual;
        if (memchr(host, '@', n) || strchr(url, '#'))
                return usual;
        end = *host == '[' ? memchr(host, ']', n) : NULL;
        if (end)
                n = (size_t)(end + 1 - host);
        else if (*host != '[')
                n = strcspn(host, ":/?#");
        if (n == 0)
                return usual;
        return allow_remote || is_loopback(host, n)
                       ? NULL
                       : "its host is not this machine's loopback; want 127.0.0.1, [::1] or localhost, or "
                         "allowRemote: true";
}

static void check_health(const struct checker *c, size_t i)
{
        const struct lkg_config_component *k = &c->config->components[i];
        const struct lkg_config_http *http = &k->health.http;
        const char *url = http->url ? http->url : "", *wrong = url_complaint(url, http->allow_remote);
        char quoted[5 * 64 + 8];

        if (wrong)
                refuse_field(c, i, "trial.health.http.url", 3021, "%s: %s",
                             lkg_quote(url, strlen(url), quoted), wrong);
        if (strcmp(url, "auto") == 0 && strcmp(k->name, "kubelet") != 0 &&
            strcmp(k->name, "kube-proxy") != 0)
                refuse_field(c, i, "trial.health.http.url", 3021,
                             "auto is known for kubelet and kube-proxy only; want a URL");
        if (http->interval_ns < LKG_NSEC_PER_SEC || http->interval_ns > 600 * LKG_NSEC_PER_SEC)
                refuse_field(c, i, "trial.health.http.interval", 3010, "want 1s to 10m");
        if (http->timeout_ns < 100 * LKG_NSEC_PER_MSEC || http->timeout_ns > 60 * LKG_NSEC_PER_SEC)
                refuse_field(c, i, "trial.health.http.timeout", 3010, "want 100ms to 1m");
}

static void check_runtime(const struct checker *c, size_t i)
{
        const char *endpoint = c->config->components[i].runtime_endpoint;
        char quoted[5 * 64 + 8];

        if (!*endpoint || strcmp(endpoint, "auto") == 0)
                return;
        if (strncmp(endpoint, LKG_RUNTIME_SCHEME "/", strlen(LKG_RUNTIME_SCHEME "/")) != 0 ||
            strlen(endpoint) >= strlen(LKG_RUNTIME_SCHEME) + LKG_RUNTIME_PATH_MAX)
                refuse_field(c, i, "runtimeEndpoint", 3021,
                             "%s: want auto, nothing, or a path like unix:///run/containerd/containerd.sock",
                             lkg_quote(endpoint, strlen(endpoint), quoted));
}

/* `namespace/name`, either part may be `*` or end in one. */
static bool source_pattern_ok(const char *text)
{
        const char *slash = strchr(text, '/');

        if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/'))
                return false;
        for (const char *p = text; *p; p++)
                if (!((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || strchr("-./*", *p)))
                        return false;
        return true;
}

static void check_remote(const struct checker *c)
{
        const struct lkg_config *config = c->config;
        char quoted[5 * 64 + 8];

        for (size_t i = 0; i < config->remote.allowed_sources.n_items; i++) {
                const char *text = config->remote.allowed_sources.items[i];

                if (!source_pattern_ok(text))
                        refuse_top(c, "remote.allowedSources", 3021,
                                   "%s is not namespace/name (want kube-system/*)",
                                   lkg_quote(text, strlen(text), quoted));
        }
        if (config->remote.poll_interval_ns < LKG_NSEC_PER_SEC)
                refuse_top(c, "remote.pollInterval", 3010, "want at least 1s");
}

static void check_top(const struct checker *c)
{
        const struct lkg_config *config = c->config;
        uint64_t ms = config->engine_timeout_ns / LKG_NSEC_PER_MSEC;
        char quoted[5 * 64 + 8];

        if (ms < 10 || ms > 60000)
                refuse_top(c, "engineTimeout", 3010, "want 10ms to 1m");
        if (config->engine_user_missing && config->engine_user_set) {
                const struct lkg_where where = top_where(c, "engineUser");

                lkg_report_add(c->report, LKG_WARNING, 3022, &where,
                               "engineUser: there is no user %s on this machine; the engine runs as root",
                               lkg_quote(config->engine_user, strlen(config->engine_user), quoted));
        }
        if (config->trial.min_duration_set && config->trial.max_duration_ns &&
            config->trial.min_duration_ns > config->trial.max_duration_ns)
                refuse_top(c, "trial.minDuration", 3020, "is longer than trial.maxDuration");
        if (strcmp(config->virtual_dir, LKG_FALLBACK_DIR) == 0 ||
            strcmp(config->virtual_dir, LKG_WAKE_NAME) == 0)
                refuse_top(c, "virtualDir", 3014, "%s is reserved (want .lkgfs)", config->virtual_dir);
}

#define PODS_DIR_MAX \
        48u /* with the name of a file, the path of a file of the view that watchers are woken for (lkg/shared.h) */

/* One is all that a kubelet can read. */
static void check_pods(const struct checker *c, size_t i)
{
        const struct lkg_config_component *component = &c->config->components[i];

        if (!component->is_pods) {
                if (component->pods.duration_set || component->pods.settle_set)
                        refuse_field(c, i, component->pods.duration_set ? "trial.duration" : "trial.settle",
                                     3020, "is only for kind " LKG_PODS_KIND);
                return;
        }
        if (strlen(component->file) > PODS_DIR_MAX)
                refuse_field(c, i, "dir", 3008, "has more than %u bytes", PODS_DIR_MAX);
        if (!*component->dropin_dir)
                refuse_field(c, i, "source", 3017, "is empty, want a directory like " LKG_PODS_SOURCE);
        for (size_t k = 0; k < i; k++)
                if (c->config->components[k].is_pods)
                        refuse_field(c, i, "kind", 3013, "component %s has the static pods already",
                                     c->config->components[k].name);
}

static void check_names(const struct checker *c)
{
        const struct lkg_config *config = c->config;

        for (size_t i = 0; i < config->n_components; i++) {
                const struct lkg_where where = component_where(c, i, "name");

                if (strlen(config->components[i].name) > COMPONENT_NAME_MAX)
                        lkg_report_add(
                                c->report, LKG_ERROR, 3008, &where,
                                "components: a name has more than %u bytes; it names directories and files",
                                COMPONENT_NAME_MAX);
        }
}

/* Two components with the same name in one file: a later merge by name would use the first one for both. */
static void check_document(const struct checker *c)
{
        const struct lkg_value *list = lkg_map_get(c->doc, "components");
        size_t n = list && lkg_value_type(list) == LKG_LIST ? lkg_value_size(list) : 0;

        if (n > LKG_COMPONENTS_MAX) /* the decoder refuses it; do not compare millions */
                return;
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *a = lkg_list_get(list, i);
                const char *name = lkg_value_type(a) == LKG_MAP ? lkg_map_get_string(a, "name") : NULL;

                for (size_t k = 0; name && k < i; k++) {
                        const struct lkg_value *b = lkg_list_get(list, k);
                        const char *other =
                                lkg_value_type(b) == LKG_MAP ? lkg_map_get_string(b, "name") : NULL;
                        const struct lkg_where where = lkg_where_of(lkg_map_get(a, "name"));

                        if (!other || strcmp(other, name) != 0)
                                continue;
                        lkg_report_add(c->report, LKG_ERROR, 3013, &where,
                                       "components: two components are named %s", name);
                        break;
                }
        }
}

void lkg_config_check(const struct lkg_config *config, const struct lkg_value *doc,
                      struct lkg_report *report)
{
        const struct checker c = { config, doc, report };

        if (doc && lkg_value_type(doc) == LKG_MAP)
                check_document(&c);
        if (!config)
                return;
        for (size_t i = 0; i < config->n_components; i++)
                if (!config->components[i].name || !config->components[i].file ||
                    !config->components[i].base || !config->components[i].dropin_dir)
                        return; /* already reported by the decoder */
        check_top(&c);
        check_remote(&c);
        check_names(&c);
        for (size_t i = 0; i < config->n_components; i++) {
                check_claims(&c, i);
                check_layers(&c, i);
                check_restart(&c, i);
                check_guard(&c, i);
                check_health(&c, i);
                check_pods(&c, i);
                check_runtime(&c, i);
        }
}
