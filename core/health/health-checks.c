/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/health-checks.h>

/* ---- the Node ---- */

static bool asks_node(const struct lkg_component *c, const struct lkg_config *config)
{
        return lkg_component_is_remote(c, config) && c->config->health.node_ready &&
               (c->config->health.node_ready_set || strcmp(c->config->name, "kubelet") == 0);
}

/* ---- the health endpoint ---- */

/* Upstream's defaults: pkg/kubelet/apis/config/v1beta1/defaults.go, pkg/proxy/apis/config/v1alpha1/defaults.go. */
static bool find_endpoint(const char *component, const struct lkg_value *doc,
                          char ret[static LKG_HEALTH_URL_MAX])
{
        bool kubelet = strcmp(component, "kubelet") == 0;
        const char *address = lkg_map_get_string(doc, "healthzBindAddress");
        const struct lkg_value *port = lkg_map_get(doc, "healthzPort");
        const char *digits = port ? lkg_value_text(port, NULL) : "10248";

        if (!kubelet) { /* 0.0.0.0:10256, or [::]:10256 */
                const char *colon = address ? strrchr(address, ':') : NULL;

                digits = colon ? colon + 1 : address && *address ? "" : "10256";
                address = NULL;
        }
        if (!*digits || strspn(digits, "0123456789") != strlen(digits) || strcmp(digits, "0") == 0)
                return false;
        if (!address || !*address || strcmp(address, "0.0.0.0") == 0)
                address = "127.0.0.1";
        else if (strcmp(address, "::") == 0)
                address = "::1";
        return snprintf(ret, LKG_HEALTH_URL_MAX,
                        strchr(address, ':') ? "http://[%s]:%s/healthz" : "http://%s:%s/healthz", address,
                        digits) < (int)LKG_HEALTH_URL_MAX;
}

/* The document on trial may move the endpoint: it is asked where it is now. */
static const char *url_of_document(struct lkg_component *c)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *effective = NULL;

        if (!c->active || c->health_generation == c->active->number)
                return c->health_url;
        if (lkg_component_effective(c, &effective) < 0)
                return c->health_url; /* no memory: the next cycle tries again */
        c->health_generation = c->active->number;
        if (!effective || !find_endpoint(c->config->name, effective, c->health_url))
                *c->health_url = '\0';
        return c->health_url;
}

static const char *endpoint(struct lkg_component *c)
{
        const char *url = c->config->health.http.url;

        if (!c->dynamic) /* no trial without a store */
                return "";
        return strcmp(url, "auto") == 0 ? url_of_document(c) : url;
}

/* ---- both ---- */

static bool see(struct lkg_component *c, enum lkg_check check, enum lkg_health_state health,
                const char *words)
{
        bool same = c->health[check] == health;

        if (same && strcmp(c->health_words[check], words) == 0)
                return false;
        c->health[check] = health;
        (void)snprintf(c->health_words[check], sizeof(c->health_words[check]), "%s", words);
        c->dirty |= LKG_DIRTY_DYNAMIC;
        return !same;
}

bool lkg_health_update(struct lkg_probes *probes, struct lkg_places *places, const struct lkg_config *config,
                       struct lkg_component *c)
{
        const struct lkg_probe_config probe = {
                .url = endpoint(c),
                .interval_ns = c->config->health.http.interval_ns,
                .timeout_ns = c->config->health.http.timeout_ns,
                .failure_threshold = (unsigned)c->config->health.http.failure_threshold,
        };
        char words[LKG_HEALTH_WORDS_MAX] = "";
        enum lkg_health_state health = LKG_HEALTH_OFF;
        bool changed;

        lkg_probes_ask(probes, c->index, &probe, c->dynamic && c->dynamic->trial.state == LKG_TRIAL_RUNNING);
        if (asks_node(c, config))
                health = lkg_places_node_health(places, words);
        changed = see(c, LKG_CHECK_NODE, health, words);
        health = lkg_probes_health(probes, c->index, words);
        return see(c, LKG_CHECK_HTTP, health, words) || changed;
}
