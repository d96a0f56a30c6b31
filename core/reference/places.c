/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of places, and the resulting answer. */
#include <lkg/base.h>

#include "apiserver.h"

static const char *const place_words[] = {
        [LKG_PLACE_NONE] = "none",          [LKG_PLACE_NODE_ANNOTATION] = "nodeAnnotation",
        [LKG_PLACE_NODE_SPEC] = "nodeSpec", [LKG_PLACE_STATIC] = "static",
        [LKG_PLACE_FILE] = "file",
};

const char *lkg_reference_place_name(enum lkg_reference_place place)
{
        return place_words[place];
}

static enum lkg_reference_place parse_place(const char *word)
{
        for (int place = LKG_PLACE_NODE_ANNOTATION; place < _LKG_PLACE_MAX; place++)
                if (strcmp(word, lkg_reference_place_name((enum lkg_reference_place)place)) == 0)
                        return (enum lkg_reference_place)place;
        return LKG_PLACE_NONE;
}

/* ---- lifetime ---- */

struct lkg_places *lkg_places_new(const struct lkg_places_options *options, const struct lkg_config *config)
{
        struct lkg_places *places = lkg_must(calloc(1, sizeof(*places)));

        places->options = *options;
        places->config = config;
        return places;
}

struct lkg_places *lkg_places_free(struct lkg_places *places)
{
        if (!places)
                return NULL;
        lkg_apiserver_free(places->apiserver);
        lkg_remote_file_deinit(&places->file);
        free(places);
        return NULL;
}

void lkg_places_set_config(struct lkg_places *places, const struct lkg_config *config)
{
        places->config = config;
        places->file.path = NULL; /* it belongs to the old configuration */
}

static bool refers_to_file(const struct lkg_config *config)
{
        for (size_t i = 0; i < config->remote.references.n_items; i++)
                if (strcmp(config->remote.references.items[i], "file") == 0)
                        return *config->remote.file;
        return false;
}

void lkg_places_open(struct lkg_places *places, bool wanted, bool fresh)
{
        const struct lkg_config *config = places->config;

        lkg_remote_file_open(&places->file,
                             config->remote.enabled && refers_to_file(config) ? config->remote.file : NULL,
                             places->options.runtime_fd, fresh);
        lkg_apiserver_open(places, config->remote.enabled && wanted);
}

/* ---- the answer ---- */

static void say_place(struct lkg_places_answer *ret, enum lkg_places_says says, const char *words)
{
        ret->says = says;
        (void)snprintf(ret->words, sizeof(ret->words), "%.511s", words);
}

void lkg_places_answer_deinit(struct lkg_places_answer *answer)
{
        lkg_configmap_deinit(&answer->own);
}

/* ---- from the API server ---- */

/*
 * Who waits for a slot keeps the limits that the content came with, or later ones: a version whose limits are wrong, or gone, is not
 * recorded. Otherwise a slip of the pen would release every node that waits, even behind a rollout that has halted itself.
 */
static bool would_lose_limits(const struct lkg_rollout *rollout, struct lkg_places_answer *ret)
{
        if (!rollout)
                return false;
        if (rollout->state == LKG_ROLLOUT_UNCLEAR)
                say_place(ret, LKG_PLACES_UNKNOWN, rollout->words);
        else if (!rollout->limits.max_in_trial)
                say_place(ret, LKG_PLACES_WAITING,
                          "annotation " LKG_ANNOTATION_IN_TRIAL
                          " is gone, its last value counts for this content");
        return rollout->state == LKG_ROLLOUT_UNCLEAR || !rollout->limits.max_in_trial;
}

/*
 * A rollout may hold new content back. A new version with the assigned content is recorded, whatever its annotations say.
 * Only for objects of the API server: a file is local to this node.
 */
static bool is_held_back(struct lkg_apiserver *api, const struct lkg_places_known *known,
                         const struct lkg_configmap *configmap, struct lkg_places_answer *ret)
{
        const struct lkg_rollout *rollout = lkg_apiserver_rollout(api, configmap);

        if (lkg_config_source_equal(known->assigned, &ret->source) ||
            lkg_config_source_same_content(known->assigned, &ret->source))
                return known->waits_for_slot && would_lose_limits(rollout, ret);
        if (!rollout)
                say_place(ret, LKG_PLACES_WAITING, "waiting for the rollout: the Node was not read yet");
        else if (rollout->state == LKG_ROLLOUT_UNCLEAR)
                say_place(ret, LKG_PLACES_UNKNOWN, rollout->words);
        else if (rollout->state != LKG_ROLLOUT_GO)
                say_place(ret, LKG_PLACES_WAITING, rollout->words);
        return !rollout || rollout->state != LKG_ROLLOUT_GO;
}

const struct lkg_config_source *lkg_places_newest(const struct lkg_places *places)
{
        static const struct lkg_config_source unknown;

        return places->apiserver ? &places->apiserver->newest : &unknown;
}

bool lkg_places_may_switch(struct lkg_places *places, const struct lkg_config_source *source,
                           char ret_words[static 256])
{
        struct lkg_apiserver *api = places->apiserver;
        const struct lkg_rollout *rollout = NULL;

        *ret_words = '\0';
        if (!api || places->place == LKG_PLACE_FILE)
                return true;
        if (api->object.answer == LKG_ANSWER_OBJECT && strcmp(api->configmap.uid, source->uid) == 0)
                rollout = lkg_apiserver_rollout(api, &api->configmap);
        if (!rollout)
                (void)snprintf(ret_words, 256,
                               "waiting for a rollout slot: the ConfigMap has not been read yet");
        else if (rollout->state != LKG_ROLLOUT_GO)
                (void)snprintf(ret_words, 256, "%s", rollout->words);
        return rollout && rollout->state == LKG_ROLLOUT_GO;
}

/*
 * Every assignment is flushed to disk, so a ConfigMap that changes all the time must not keep this node busy: a hundred
 * versions are assigned at once, then ten per second; the others are skipped, except the last.
 */
static bool is_time(struct lkg_places *places, struct lkg_places_answer *ret)
{
        static const struct lkg_bucket_rate rate = { .burst = 100, .interval_ns = LKG_NSEC_PER_SEC / 10 };
        uint64_t now_ns = lkg_boottime_ns(),
                 wait_ns = lkg_bucket_take(&places->apiserver->pace, &rate, now_ns);

        if (wait_ns == 0)
                return true;
        places->pending = true;
        ret->again_at_ns = now_ns + wait_ns;
        return false;
}

static void follow_configmap(struct lkg_places *places, const struct lkg_places_known *known,
                             const struct lkg_reference *reference, struct lkg_places_answer *ret)
{
        struct lkg_apiserver *api = places->apiserver;
        const struct lkg_configmap *configmap;
        struct lkg_error err = { 0 };
        char fault[LKG_REASON_MAX];
        bool same;

        lkg_apiserver_follow(api, reference);
        configmap = lkg_apiserver_configmap(api, fault);
        if (!configmap) {
                say_place(ret, LKG_PLACES_UNKNOWN, fault);
                return;
        }
        if (lkg_configmap_resolve(configmap, reference, &ret->source, &err) < 0) {
                say_place(ret, LKG_PLACES_UNKNOWN, err.message);
                return;
        }
        api->newest = ret->source;
        if (ret->place != LKG_PLACE_STATIC)
                ret->node_uid = api->node_says.uid;
        if (is_held_back(api, known, configmap, ret))
                return;
        same = lkg_config_source_equal(known->assigned, &ret->source);
        /* The same answer again: no need to check the checkpoint. */
        if (same && known->carried_out && !api->news)
                return;
        if (!same && !is_time(places, ret))
                return;
        api->news = false;
        ret->says = LKG_PLACES_CONFIGMAP;
        ret->configmap = configmap;
}

/* All places were asked, and none says anything. */
static void follow_nothing(const struct lkg_apiserver *api, const struct lkg_places_known *known,
                           struct lkg_places_answer *ret)
{
        if (lkg_config_source_is_local(known->assigned) ||
            strcmp(known->node_uid, api->node_says.uid) == 0) {
                ret->says = LKG_PLACES_LOCAL;
                return;
        }
        ret->says = LKG_PLACES_UNKNOWN;
        (void)snprintf(ret->words, sizeof(ret->words),
                       "node %.253s does not say, and it is not the node that did (UID %.100s)",
                       api->node_name, *known->node_uid ? known->node_uid : "unknown");
}

/* ---- the chain ---- */

static void say_static(const struct lkg_config *config, struct lkg_saying *ret)
{
        struct lkg_error err = { 0 };

        *ret = (struct lkg_saying){ .says = LKG_SAYS_REFERENCE };
        if (lkg_reference_from_parts(config->remote.fixed.ns, config->remote.fixed.name,
                                     config->remote.fixed.key, config->remote.fixed.uid, &ret->reference,
                                     &err) >= 0)
                return;
        ret->says = LKG_SAYS_INVALID;
        (void)snprintf(ret->fault, sizeof(ret->fault), "%.500s", err.message);
}

bool lkg_places_allow(const struct lkg_places *places, const char *ns, const char *name)
{
        const struct lkg_strings *allowed = &places->config->remote.allowed_sources;

        return lkg_reference_allowed((const char *const *)allowed->items, allowed->n_items, ns, name);
}

/* What @place says. Not for the file: see lkg_remote_file_look(). */
static void ask(struct lkg_places *places, enum lkg_reference_place place, struct lkg_saying *ret)
{
        if (place == LKG_PLACE_STATIC)
                say_static(places->config, ret);
        else
                lkg_apiserver_node_says(places->apiserver, place, ret);
        if (ret->says != LKG_SAYS_REFERENCE ||
            lkg_places_allow(places, ret->reference.ns, ret->reference.name))
                return;
        ret->says = LKG_SAYS_INVALID;
        (void)snprintf(ret->fault, sizeof(ret->fault),
                       "ConfigMap %.63s/%.253s is not one of remote.allowedSources", ret->reference.ns,
                       ret->reference.name);
}

/* The first place that says anything. Return: NONE: none does, or (@ret_any is false) no place is in use. */
static enum lkg_reference_place find_place(struct lkg_places *places, struct lkg_saying *ret, bool *ret_any)
{
        const struct lkg_strings *references = &places->config->remote.references;

        *ret_any = false;
        for (size_t i = 0; i < references->n_items; i++) {
                enum lkg_reference_place place = parse_place(references->items[i]);

                if (!lkg_places_in_use(places, place))
                        continue;
                *ret_any = true;
                if (place == LKG_PLACE_FILE)
                        return place;
                ask(places, place, ret);
                if (ret->says != LKG_SAYS_NOTHING)
                        return place;
        }
        return LKG_PLACE_NONE;
}

static void follow_saying(struct lkg_places *places, const struct lkg_places_known *known,
                          const struct lkg_saying *saying, struct lkg_places_answer *ret)
{
        struct lkg_apiserver *api = places->apiserver;

        if (saying->says == LKG_SAYS_REFERENCE) {
                follow_configmap(places, known, &saying->reference, ret);
                return;
        }
        /* While it is not known, the object stays followed, because it may be named again, unless it is no longer allowed. */
        if (saying->says != LKG_SAYS_UNKNOWN ||
            (*api->reference.name && !lkg_places_allow(places, api->reference.ns, api->reference.name)))
                lkg_apiserver_unfollow(api);
        if (saying->says == LKG_SAYS_NOTHING)
                follow_nothing(api, known, ret);
        else if (saying->says == LKG_SAYS_LOCAL)
                ret->says = LKG_PLACES_LOCAL;
        else
                say_place(ret, LKG_PLACES_UNKNOWN, saying->fault);
}

static void ask_places(struct lkg_places *places, const struct lkg_places_known *known,
                       struct lkg_places_answer *ret)
{
        struct lkg_saying saying = { .says = LKG_SAYS_NOTHING };
        enum lkg_reference_place before = places->place;
        bool any;

        places->pending = false;
        if (places->apiserver)
                *places->apiserver->newest.uid = '\0';
        places->place = ret->place = find_place(places, &saying, &any);
        if (any && places->place != LKG_PLACE_FILE) {
                follow_saying(places, known, &saying, ret);
                return;
        }
        if (places->apiserver)
                lkg_apiserver_unfollow(places->apiserver);
        if (!any)
                say_place(ret, LKG_PLACES_UNKNOWN, "no reference yet");
        else if (before != LKG_PLACE_FILE)
                places->file.known = false; /* it may have changed meanwhile */
}

static bool concerns(const struct lkg_way *way, const struct lkg_touched *touched)
{
        if (touched->everything)
                return true;
        for (size_t i = 0; i < touched->n_paths; i++)
                for (size_t k = 0; k < way->n; k++) {
                        size_t n = strlen(way->items[k].path);

                        if (strncmp(touched->paths[i], way->items[k].path, n) == 0)
                                return true;
                }
        return false;
}

void lkg_places_desired(struct lkg_places *places, const struct lkg_places_known *known,
                        const struct lkg_touched *touched, struct lkg_places_answer *ret)
{
        *ret = (struct lkg_places_answer){ .place = places->place, .again_at_ns = UINT64_MAX };
        if (places->pending)
                ask_places(places, known, ret);
        if (touched && places->place == LKG_PLACE_FILE && places->file.path &&
            (!places->file.known || concerns(&places->file.way, touched)))
                lkg_remote_file_look(places, known, ret);
}

/* ---- asking again ---- */

void lkg_places_ask(struct lkg_places *places)
{
        places->pending = true;
}

void lkg_places_again(struct lkg_places *places)
{
        places->file.known = false;
        places->pending = true;
        if (places->apiserver)
                places->apiserver->news = true;
}

bool lkg_places_looks_at_file(const struct lkg_places *places)
{
        return places->place == LKG_PLACE_FILE && !places->file.known;
}

const struct lkg_way *lkg_places_way(const struct lkg_places *places)
{
        return &places->file.way;
}
