/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two followed objects: each answer is checked and recorded, and if it may matter, the places are asked again.
 * Nothing is decided here.
 */
#include "apiserver.h"

#include <lkg/base.h>

/* ---- answers ---- */

static void set_answer(struct lkg_followed *followed, enum lkg_object_answer answer, const char *fault)
{
        followed->answer = answer;
        (void)snprintf(followed->fault, sizeof(followed->fault), "%.500s", fault);
}

static bool same_saying(const struct lkg_saying *a, const struct lkg_saying *b)
{
        return a->says == b->says && memcmp(&a->reference, &b->reference, sizeof(a->reference)) == 0 &&
               strcmp(a->fault, b->fault) == 0;
}

/* A Node changes often, mostly in fields that lkgfs does not use. */
static bool same_node(const struct lkg_node_object *a, const struct lkg_node_object *b)
{
        return strcmp(a->uid, b->uid) == 0 && a->ready == b->ready &&
               strcmp(a->ready_reason, b->ready_reason) == 0 &&
               same_saying(&a->annotation, &b->annotation) && same_saying(&a->spec, &b->spec);
}

static void on_node(const struct lkg_value *object, void *userdata)
{
        struct lkg_apiserver *api = userdata;
        enum lkg_object_answer before = api->node.answer;
        struct lkg_error err = { 0 };
        struct lkg_node_object says = { .uid = "" };
        bool same;

        if (!object) {
                set_answer(&api->node, LKG_ANSWER_MISSING, "not found");
                lkg_reporter_set_node(api->reporter, "");
                if (before != LKG_ANSWER_MISSING)
                        lkg_apiserver_reconsider(api);
                return;
        }
        if (lkg_node_read(object, api->node_name, &says, &err) < 0) {
                set_answer(&api->node, LKG_ANSWER_WRONG, err.message);
                lkg_apiserver_reconsider(api);
                return;
        }
        same = before == LKG_ANSWER_OBJECT && same_node(&api->node_says, &says);
        set_answer(&api->node, LKG_ANSWER_OBJECT, "");
        api->node_says = says;
        if (same)
                return;
        lkg_reporter_set_node(api->reporter, says.uid);
        lkg_apiserver_reconsider(api);
}

static void on_object(const struct lkg_value *object, void *userdata)
{
        struct lkg_apiserver *api = userdata;
        struct lkg_configmap configmap = { 0 };
        struct lkg_error err = { 0 };

        if (!object) {
                if (api->object.answer == LKG_ANSWER_MISSING)
                        return;
                lkg_configmap_deinit(&api->configmap);
                set_answer(&api->object, LKG_ANSWER_MISSING, "not found");
        } else if (lkg_configmap_from_value(object, &configmap, &err) < 0) {
                lkg_configmap_deinit(&api->configmap);
                set_answer(&api->object, LKG_ANSWER_WRONG, err.message);
        } else {
                bool same = api->object.answer == LKG_ANSWER_OBJECT &&
                            strcmp(api->configmap.uid, configmap.uid) == 0 &&
                            strcmp(api->configmap.version, configmap.version) == 0;

                lkg_configmap_deinit(&api->configmap);
                api->configmap = configmap;
                set_answer(&api->object, LKG_ANSWER_OBJECT, "");
                if (same)
                        return;
        }
        api->news = true;
        lkg_apiserver_reconsider(api);
}

/* Logs the first failure and the recovery; status/ shows the rest. */
static void note_change(struct lkg_apiserver *api, struct lkg_followed *followed, const char *what)
{
        uint64_t since = followed->informer ? lkg_informer_look(followed->informer).failing_since_ns : 0;
        uint64_t before = followed->failing_ns;

        if (since != before) {
                followed->failing_ns = since;
                followed->failing_wall_ns = since ? lkg_realtime_of(since) : 0;
        }
        if (since && !before)
                lkg_log_warning("%s: %s", what, lkg_informer_look(followed->informer).words);
        else if (!since && before)
                lkg_log_notice("%s: answered again", what);
        lkg_apiserver_reconsider(api);
}

static void on_node_changed(void *userdata)
{
        note_change(userdata, &((struct lkg_apiserver *)userdata)->node, "the Node");
}

static void on_object_changed(void *userdata)
{
        note_change(userdata, &((struct lkg_apiserver *)userdata)->object, "the ConfigMap");
}

static const struct lkg_informer_ops node_ops = { .state = on_node, .changed = on_node_changed };
static const struct lkg_informer_ops object_ops = { .state = on_object, .changed = on_object_changed };

void lkg_apiserver_forget(struct lkg_followed *followed)
{
        followed->informer = lkg_informer_free(followed->informer);
        *followed = (struct lkg_followed){ .answer = LKG_ANSWER_NONE };
}

static void begin(struct lkg_apiserver *api, struct lkg_followed *followed,
                  const struct lkg_resource *resource, const struct lkg_informer_ops *ops)
{
        const struct lkg_config *config = api->places->config;
        const struct lkg_informer_options options = {
                .event = api->places->options.event,
                .client = api->client,
                .resource = *resource,
                .poll_interval_ns = config->remote.poll_interval_ns,
                .max_bytes = config->remote.max_bytes,
                .admission = api->places->options.admission,
                .ops = ops,
                .userdata = api,
        };

        followed->informer = lkg_informer_new(&options);
}

void lkg_apiserver_follow_node(struct lkg_apiserver *api)
{
        const struct lkg_resource resource = {
                .group_version = "v1", .plural = "nodes", .kind = "Node", .name = api->node_name
        };

        if (!*api->name_fault)
                begin(api, &api->node, &resource, &node_ops);
}

void lkg_apiserver_unfollow(struct lkg_apiserver *api)
{
        lkg_apiserver_forget(&api->object);
        lkg_configmap_deinit(&api->configmap);
        api->reference = (struct lkg_reference){ .ns = "" };
        api->has_rollout = false;
}

void lkg_apiserver_follow(struct lkg_apiserver *api, const struct lkg_reference *reference)
{
        const struct lkg_resource resource = { .group_version = "v1",
                                               .plural = "configmaps",
                                               .kind = "ConfigMap",
                                               .ns = reference->ns,
                                               .name = reference->name };

        if (api->object.informer && (strcmp(api->reference.ns, reference->ns) != 0 ||
                                     strcmp(api->reference.name, reference->name) != 0))
                lkg_apiserver_unfollow(api);
        if (memcmp(&api->reference, reference, sizeof(*reference)) != 0)
                api->news = true;
        api->reference = *reference;
        if (!api->object.informer && api->client && api->running)
                begin(api, &api->object, &resource, &object_ops);
}

/* ---- apiserver-parts ---- */

/* Shared by the files of this folder: queries about places, and scheduling the next turn. */

void lkg_apiserver_kick(struct lkg_apiserver *api)
{
        lkg_remote_arm(api->work, 0);
}

void lkg_apiserver_reconsider(struct lkg_apiserver *api)
{
        api->places->pending = true;
        lkg_apiserver_kick(api);
}

bool lkg_apiserver_has_credential(const struct lkg_apiserver *api)
{
        return api && (*api->places->config->remote.kubeconfig ||
                       lkg_credential_kind(api->credential) != LKG_CREDENTIAL_NONE);
}

bool lkg_places_in_use(const struct lkg_places *places, enum lkg_reference_place place)
{
        const struct lkg_config *config = places->config;

        switch (place) {
        case LKG_PLACE_NODE_ANNOTATION:
        case LKG_PLACE_NODE_SPEC:
                return lkg_apiserver_has_credential(places->apiserver);
        case LKG_PLACE_STATIC:
                return places->apiserver && *config->remote.fixed.ns && *config->remote.fixed.name;
        case LKG_PLACE_FILE:
                return *config->remote.file;
        case LKG_PLACE_NONE:
        case _LKG_PLACE_MAX:
                break;
        }
        return false;
}
