/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include <lkg/probes.h>

/* ---- the Node ---- */

static bool asks_node(const struct lkg_component *c)
{
        return lkg_component_is_remote(c) && c->config->health.node_ready &&
               (c->config->health.node_ready_set || strcmp(c->config->name, "kubelet") == 0);
}

/* ---- the health endpoint ---- */

struct listener {
        char host[LKG_HEALTH_URL_MAX]; /* "" = the default */
        const char *port;              /* "" = unknown */
};

/* A kube-proxy has both in one field: 0.0.0.0:10256, or [::]:10256. */
static void split_address(const char *address, struct listener *ret)
{
        const char *colon = address ? strrchr(address, ':') : NULL;
        bool brackets = address && *address == '[';
        size_t n = colon ? (size_t)(colon - address) : 0;

        ret->port = colon ? colon + 1 : address && *address ? "" : "10256";
        if (brackets && n >= 2 && address[n - 1] == ']')
                (void)snprintf(ret->host, sizeof(ret->host), "%.*s", (int)n - 2, address + 1);
        else
                (void)snprintf(ret->host, sizeof(ret->host), "%.*s", (int)n, address ? address : "");
}

/* Upstream's defaults: pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/proxy/apis/config/v1alpha1/defaults.go. */
static void read_listener(const char *component, const struct lkg_value *doc, struct listener *ret)
{
        const char *address = lkg_map_get_string(doc, "healthzBindAddress");
        const struct lkg_value *port = lkg_map_get(doc, "healthzPort");

        if (strcmp(component, "kubelet") != 0) {
                split_address(address, ret);
                return;
        }
        (void)snprintf(ret->host, sizeof(ret->host), "%s", address ? address : "");
        ret->port = port ? lkg_value_text(port, NULL) : "10248";
}

/*
 * Where to ask what listens on @host: all addresses include loopback. Only an address is taken, so a document cannot write
 * anything else into the URL.
 * Return: is that this machine's loopback?
 */
static bool to_ask(const char *host, char ret[static INET6_ADDRSTRLEN + 2])
{
        char text[INET6_ADDRSTRLEN] = "127.0.0.1";
        bool ours = true, six = false;
        struct in6_addr v6;
        struct in_addr v4;

        *ret = '\0';
        if (inet_pton(AF_INET, host, &v4) == 1) {
                ours = v4.s_addr == htonl(INADDR_ANY) || ntohl(v4.s_addr) >> 24 == 127;
                if (v4.s_addr != htonl(INADDR_ANY))
                        (void)inet_ntop(AF_INET, &v4, text, sizeof(text));
        } else if (inet_pton(AF_INET6, host, &v6) == 1) {
                six = true;
                if (IN6_IS_ADDR_UNSPECIFIED(&v6))
                        v6 = in6addr_loopback;
                ours = IN6_IS_ADDR_LOOPBACK(&v6);
                (void)inet_ntop(AF_INET6, &v6, text, sizeof(text));
        } else if (*host) {
                return false;
        }
        (void)snprintf(ret, INET6_ADDRSTRLEN + 2, six ? "[%s]" : "%s", text);
        return ours;
}

/*
 * Who may edit the ConfigMap chooses address and port, so without allowRemote only this machine is asked: otherwise the engines
 * of a fleet could be sent anywhere.
 * Return: why it is not asked; "" = it is.
 */
static const char *find_endpoint(const struct lkg_config_component *k, const struct lkg_value *doc,
                                 char ret[static LKG_HEALTH_URL_MAX])
{
        char host[INET6_ADDRSTRLEN + 2];
        struct listener listener;
        bool ours;

        *ret = '\0';
        read_listener(k->name, doc, &listener);
        if (strcmp(listener.port, "0") == 0)
                return "not asked: the served document turns the health endpoint off (port 0)";
        ours = to_ask(listener.host, host);
        if (!*host || !*listener.port || strspn(listener.port, "0123456789") != strlen(listener.port) ||
            strlen(listener.port) > 5)
                return "not asked: the served document has no usable address or port for it";
        if (!ours && !k->health.http.allow_remote)
                return "not asked: the served document puts it on an address other than loopback, see "
                       "allowRemote";
        (void)snprintf(ret, LKG_HEALTH_URL_MAX, "http://%s:%s/healthz", host, listener.port);
        return "";
}

static bool is_auto(const struct lkg_component *c)
{
        return c->dynamic && strcmp(c->config->health.http.url, "auto") == 0;
}

/* The document on trial may move the endpoint: it is asked where it is now. */
static const char *url_of_document(struct lkg_component *c)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *effective = NULL;
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        bool remote = c->config->health.http.allow_remote;

        if (!c->active || (c->health.generation == c->active->number && c->health.remote == remote))
                return c->health.url;
        effective = lkg_component_effective(c);
        c->health.generation = c->active->number;
        c->health.remote = remote;
        *c->health.url = '\0';
        c->health.off = effective ? find_endpoint(c->config, effective, c->health.url) : "";
        if (*c->health.off && is_auto(c))
                lkg_log(LOG_WARNING, &fields, "trial.health.http.url auto: %s", c->health.off);
        return c->health.url;
}

const char *lkg_health_endpoint(struct lkg_component *c)
{
        return *c->config->health.http.url && !is_auto(c) ? c->config->health.http.url : url_of_document(c);
}

static const char *endpoint(struct lkg_component *c)
{
        if (!c->dynamic) /* no trial without a store */
                return "";
        return is_auto(c) ? url_of_document(c) : c->config->health.http.url;
}

/* ---- both ---- */

static bool see(struct lkg_component *c, enum lkg_check check, enum lkg_health_state health,
                const char *words)
{
        bool same = c->health.state[check] == health;

        if (same && strcmp(c->health.words[check], words) == 0)
                return false;
        c->health.state[check] = health;
        (void)snprintf(c->health.words[check], sizeof(c->health.words[check]), "%s", words);
        if (health == LKG_HEALTH_BAD)
                (void)snprintf(c->health.last_bad[check], sizeof(c->health.last_bad[check]),
                               "%.100s, when it was last asked", words);
        return !same;
}

bool lkg_health_update(struct lkg_probes *probes, struct lkg_places *places, struct lkg_component *c)
{
        const struct lkg_config_http *http = &c->config->health.http;
        bool often = c->dynamic && c->dynamic->trial.state == LKG_TRIAL_RUNNING;
        const struct lkg_probe_config probe = {
                .url = endpoint(c),
                .interval_ns = often ? http->interval_ns : lkg_later(http->interval_ns, LKG_HEALTH_IDLE_NS),
                .timeout_ns = http->timeout_ns,
                .failure_threshold = (unsigned)http->failure_threshold,
        };
        char words[LKG_HEALTH_WORDS_MAX] = "";
        enum lkg_health_state health = LKG_HEALTH_OFF;
        bool changed;

        if (!c->health.probe)
                c->health.probe = lkg_probe_new(probes);
        lkg_probe_ask(c->health.probe, &probe);
        if (asks_node(c))
                health = lkg_places_node_health(places, words);
        changed = see(c, LKG_CHECK_NODE, health, words);
        health = lkg_probe_health(c->health.probe, words);
        if (health == LKG_HEALTH_OFF && is_auto(c) && c->health.off)
                (void)snprintf(words, sizeof(words), "%s", c->health.off);
        return see(c, LKG_CHECK_HTTP, health, words) || changed;
}
