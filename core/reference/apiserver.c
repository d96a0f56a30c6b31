/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lifetime of the objects that talk to the API server: credential, client, informers, reporter. apiserver-objects.c records
 * answers, apiserver-words.c says what they mean.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>

#include <lkg-config.h>
#include <lkg/base.h>
#include <lkg/text.h>

#include "apiserver.h"

#define CREDENTIAL_NAME "credential" /* runtime directory: output of the exec plugin */

/* ---- creating and freeing ---- */

static int run_exec(void *userdata)
{
        const struct lkg_places_options *options = &((struct lkg_apiserver *)userdata)->places->options;

        return options->run_exec(options->userdata);
}

void lkg_places_exec_done(struct lkg_places *places, const struct lkg_message *m)
{
        struct lkg_apiserver *api = places->apiserver;
        int runtime_fd = places->options.runtime_fd;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_error err = { 0 };
        size_t size = 0;
        int r = m->result;

        if (r >= 0) {
                fd = lkg_open_plain(runtime_fd, CREDENTIAL_NAME);
                r = fd < 0 ? lkg_error_set(&err, fd, NULL, "the answer of the exec plugin")
                           : lkg_read_file(fd, LKG_KUBECONFIG_BYTES_MAX, &text, &size, &err);
        }
        (void)unlinkat(runtime_fd, CREDENTIAL_NAME, 0);
        if (api) {
                lkg_credential_exec_done(api->credential, r < 0 ? NULL : text, size,
                                         r >= 0         ? NULL
                                         : *err.message ? err.message
                                         : m->text_size ? m->text
                                                        : strerror(-r),
                                         lkg_realtime_ns());
                api->look = true;
                lkg_apiserver_kick(api);
        }
        if (text)
                explicit_bzero(text, size);
}

static uint64_t identity_serial(const struct lkg_apiserver *api)
{
        const struct lkg_identity *identity = lkg_credential_identity(api->credential);

        return identity ? identity->serial : 0;
}

/* Both the client and this file check the credential; either may notice a new one first. Return: has it changed? */
static bool meet_identity(struct lkg_apiserver *api)
{
        uint64_t serial = identity_serial(api);

        if (serial == api->serial)
                return false;
        api->serial = serial;
        if (api->reporter) /* first: else queued requests may be sent with a credential that is not the node's */
                lkg_reporter_kick(api->reporter);
        api->anew = api->places->pending = true;
        return true;
}

static void on_identity(void *userdata)
{
        if (meet_identity(userdata))
                lkg_apiserver_kick(userdata);
}

static struct lkg_client *new_client(struct lkg_apiserver *api)
{
        const struct lkg_config *config = api->places->config;
        const struct lkg_client_options options = {
                .event = api->places->options.event,
                .credential = api->credential,
                .user_agent = "lkgfs/" LKG_VERSION " (linux)",
                .max_bytes = config->remote.max_bytes,
                .admission = api->places->options.admission,
                .on_identity = on_identity,
                .userdata = api,
        };

        return lkg_client_new(&options);
}

static void on_reported(void *userdata)
{
        lkg_apiserver_kick(userdata);
}

static struct lkg_reporter *new_reporter(struct lkg_apiserver *api)
{
        const struct lkg_config *config = api->places->config;
        const struct lkg_reporter_options options = {
                .event = api->places->options.event,
                .client = api->client,
                .credential = api->credential,
                .node_name = api->node_name,
                .host = api->host,
                .condition = config->remote.condition,
                .events = config->remote.events,
                .changed = on_reported,
                .userdata = api,
        };

        return lkg_reporter_new(&options);
}

static void take_down(struct lkg_apiserver *api)
{
        api->slots = lkg_slot_keeper_free(api->slots);
        lkg_apiserver_forget(&api->object);
        lkg_apiserver_forget(&api->node);
        lkg_configmap_deinit(&api->configmap);
        api->node_says = (struct lkg_node_object){ .uid = "" };
        api->has_rollout = false;
        api->reporter = lkg_reporter_free(api->reporter);
        api->client = lkg_client_free(api->client);
}

/* Creates everything that can be created. */
static void bring_up(struct lkg_apiserver *api)
{
        if (!lkg_apiserver_has_credential(api)) {
                take_down(api);
                return;
        }
        if (!api->client) {
                api->client = new_client(api);
                api->places->pending = true; /* without a client, the places had no result */
        }
        if (!api->reporter && !*api->name_fault)
                api->reporter = new_reporter(api);
        if (!api->slots && !*api->name_fault)
                api->slots = lkg_slot_keeper_new(api);
        if (api->running && !api->node.informer)
                lkg_apiserver_follow_node(api);
}

void lkg_host_name(char ret[static HOST_NAME_MAX + 1])
{
        char raw[HOST_NAME_MAX + 1] = "";
        struct lkg_span name;

        (void)gethostname(raw, sizeof(raw) - 1);
        name = lkg_span_trim(lkg_span(raw, strlen(raw)));
        for (size_t i = 0; i < name.size; i++)
                ret[i] = (char)tolower((unsigned char)name.data[i]);
        ret[name.size] = '\0';
}

/* The name under which the kubelet registers. */
static void find_names(struct lkg_apiserver *api)
{
        const char *configured = api->places->config->remote.node_name;
        char quoted[5 * LKG_QUOTE_MAX + 8], reason[LKG_REFUSAL_MAX];
        struct lkg_span name;

        lkg_host_name(api->host);
        name = *configured ? lkg_span(configured, strlen(configured))
                           : lkg_span(api->host, strlen(api->host));
        (void)snprintf(api->node_name, sizeof(api->node_name), "%.253s", name.data);
        if (lkg_name_dns_subdomain(name.data, name.size, reason) == 0)
                return;
        lkg_quote(name.data, name.size, quoted);
        (void)snprintf(api->name_fault, sizeof(api->name_fault),
                       "%.300s is not the name of a Node: %.150s; set remote.nodeName", quoted, reason);
}

static char *describe_settings(const struct lkg_config *config)
{
        return lkg_format("%s\n%s\n%s\n%d %d %d %d %d %llu %llu", config->remote.kubeconfig,
                          config->remote.node_name, config->remote.rollout_namespace,
                          config->remote.rollout_objects, config->remote.allow_exec,
                          config->remote.allow_insecure, config->remote.condition, config->remote.events,
                          (unsigned long long)config->remote.poll_interval_ns,
                          (unsigned long long)config->remote.max_bytes);
}

struct lkg_apiserver *lkg_apiserver_free(struct lkg_apiserver *api)
{
        if (!api)
                return NULL;
        take_down(api);
        sd_event_source_disable_unref(api->work);
        sd_event_source_disable_unref(api->timer);
        lkg_credential_free(api->credential);
        lkg_report_deinit(&api->findings);
        free(api->settings);
        free(api);
        return NULL;
}

/* ---- the event loop ---- */

/* When the credential is due, in CLOCK_BOOTTIME. */
static uint64_t credential_due(const struct lkg_apiserver *api, uint64_t now_ns)
{
        uint64_t due_ns = lkg_credential_due_ns(api->credential), wall_ns = lkg_realtime_ns();

        if (due_ns <= wall_ns)
                return now_ns;
        return due_ns - wall_ns > LKG_API_TICK_NS ? UINT64_MAX : now_ns + (due_ns - wall_ns);
}

static void arm(struct lkg_apiserver *api)
{
        const struct lkg_followed *const followed[] = { &api->node, &api->object };
        uint64_t now = lkg_boottime_ns(), at = now + LKG_API_TICK_NS;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(followed); i++)
                if (followed[i]->failing_ns && followed[i]->failing_ns + LKG_OUTAGE_NS > now)
                        at = lkg_earlier(at, followed[i]->failing_ns + LKG_OUTAGE_NS);
        at = lkg_earlier(at, lkg_later(now + LKG_API_PAUSE_NS, credential_due(api, now)));
        lkg_remote_arm(api->timer, at);
}

static void look_at_credential(struct lkg_apiserver *api)
{
        api->look = false;
        if (!lkg_credential_refresh(api->credential, lkg_realtime_ns()))
                return;
        (void)meet_identity(api);
        lkg_log_notice("credential for the API server: %s %s",
                       lkg_credential_kind_name(lkg_credential_kind(api->credential)),
                       lkg_credential_file(api->credential));
}

static void fetch(struct lkg_apiserver *api)
{
        if (api->node.informer)
                lkg_informer_fetch(api->node.informer, api->anew);
        if (api->object.informer)
                lkg_informer_fetch(api->object.informer, api->anew);
        api->anew = false;
}

static int on_work(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_apiserver *api = userdata;
        const struct lkg_places_options *options = &api->places->options;

        if (api->look)
                look_at_credential(api);
        bring_up(api);
        if (api->anew)
                fetch(api);
        if (options->turn(options->userdata))
                arm(api);
        return 0;
}

static bool is_outage(const struct lkg_followed *followed, uint64_t now_ns)
{
        return followed->failing_ns && now_ns >= followed->failing_ns + LKG_OUTAGE_NS;
}

/* Every LKG_API_TICK_NS, when a credential is due, or when failures have become an outage. */
static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct lkg_apiserver *api = userdata;
        uint64_t now = lkg_boottime_ns();
        bool outage = is_outage(&api->node, now) || is_outage(&api->object, now);

        look_at_credential(api);
        api->places->pending |= outage;
        if (api->anew || api->places->pending || (lkg_apiserver_has_credential(api) && !api->client))
                lkg_apiserver_kick(api);
        arm(api);
        return 0;
}

static struct lkg_apiserver *new_apiserver(struct lkg_places *places)
{
        const struct lkg_config *config = places->config;
        struct lkg_apiserver *api = lkg_must(calloc(1, sizeof(*api)));
        const struct lkg_credential_options options = {
                .kubeconfig = config->remote.kubeconfig,
                .source_path = places->options.source_path,
                .source_fd = places->options.source_fd,
                .mount_point = places->options.mount_point,
                .allow_exec = config->remote.allow_exec,
                .allow_insecure = config->remote.allow_insecure,
                .run_exec = run_exec,
                .userdata = api,
        };

        api->places = places;
        api->news = true;
        find_names(api);
        api->settings = describe_settings(config);
        api->credential = lkg_credential_new(&options);
        api->work = lkg_remote_timer(places->options.event, 0, on_work, api);
        api->timer = lkg_remote_timer(places->options.event, LKG_NSEC_PER_SEC, on_timer, api);
        (void)lkg_credential_refresh(api->credential, lkg_realtime_ns());
        api->serial = identity_serial(api);
        return api;
}

void lkg_apiserver_open(struct lkg_places *places, bool wanted)
{
        LKG_CLEANUP(lkg_freep) char *settings = describe_settings(places->config);

        places->pending = true;
        if (places->apiserver && (!wanted || strcmp(places->apiserver->settings, settings) != 0))
                places->apiserver = lkg_apiserver_free(places->apiserver);
        if (wanted && !places->apiserver)
                places->apiserver = new_apiserver(places);
        if (places->apiserver)
                places->apiserver->news = true;
}

void lkg_places_run(struct lkg_places *places)
{
        struct lkg_apiserver *api = places->apiserver;

        if (!api)
                return;
        api->running = true;
        lkg_apiserver_reconsider(api);
}

void lkg_places_kick(struct lkg_places *places)
{
        if (places->apiserver)
                lkg_apiserver_kick(places->apiserver);
}

void lkg_places_fetch(struct lkg_places *places)
{
        struct lkg_apiserver *api = places->apiserver;

        places->file.known = false;
        if (!api)
                return;
        look_at_credential(api);
        fetch(api);
        lkg_slot_keeper_fetch(api->slots);
        api->news = true;
        lkg_apiserver_reconsider(api);
}
