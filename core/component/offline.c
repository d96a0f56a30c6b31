/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, merges and judges the layers of a component without an engine: see <lkg/facts.h>. */
#include <fcntl.h>
#include <limits.h>

#include <lkg/component.h>
#include <lkg/publication.h>
#include <lkg/facts.h>
#include <lkg/store.h>

/* ---- what an engine has stored ---- */

static bool has_facts(const struct lkg_offline_place *place)
{
        char path[sizeof(LKG_FACTS_DIR) + NAME_MAX + 1];

        (void)snprintf(path, sizeof(path), LKG_FACTS_DIR "/%s", place->component->name);
        return place->runtime_fd >= 0 && faccessat(place->runtime_fd, path, F_OK, AT_EACCESS) == 0;
}

/* The release and command line: those of the caller, else the configured release, else what is known. */
static int new_judge(const struct lkg_offline_place *place, struct lkg_offline *ret, struct lkg_error *err)
{
        const struct lkg_config_component *k = place->component;
        struct lkg_judge_config config = {
                .release = place->release ? place->release : (unsigned)k->schema_release,
                .flags = place->flags,
                .n_flags = place->n_flags,
                .component = lkg_component_reader(k),
                .lint = true,
                .lint_all = place->lint_all,
                .startup_refuses = k->startup_rules == LKG_STARTUP_REFUSE,
        };
        const struct lkg_line *line;
        int r = 0;

        if (has_facts(place)) {
                r = lkg_facts_open(place->runtime_fd, place->state_fd, k->name, &ret->facts, err);
                if (r < 0)
                        return r;
                line = lkg_facts_line(ret->facts, NULL);
                config.release = config.release ? config.release : ret->facts->release;
                if (!place->n_flags && line) {
                        config.flags = (const char *const *)line->words.items;
                        config.n_flags = line->words.n_items;
                        config.flags_observed = true;
                }
        }
        /* what it takes is known of a release with tables */
        config.runs = place->runs;
        if (place->release && !place->runs && ret->facts && ret->facts->release &&
            ret->facts->release != place->release)
                config.runs = lkg_release_judged(ret->facts->release);
        lkg_host_detect(&config.host);
        ret->judge = lkg_judge_new(&config);
        return 0;
}

/* @ret: not changed if the local configuration is followed */
static int load_remote(const struct lkg_offline_place *place, struct lkg_remote_base **ret,
                       struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_store store = { .fd = place->state_fd, .lock_fd = -EBADF, .read_only = true };
        const struct lkg_trial_settings settings = lkg_trial_settings_of(place->config);
        struct lkg_store_component c = { .fd = -EBADF };
        struct lkg_configmap configmap = { 0 };
        struct lkg_pointers pointers;
        int r;

        if (!place->config->remote.enabled || place->state_fd < 0)
                return 0;
        r = lkg_store_component_open(&store, place->component->name, &c, report, err);
        if (r == -ENOENT)
                return 0; /* no engine has run here */
        if (r < 0)
                return r;
        r = lkg_store_load_pointers(&c, &pointers, report);
        lkg_store_component_close(&c);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "state of %s", place->component->name);
        if (lkg_config_source_is_local(&pointers.active))
                return 0;
        r = lkg_store_load_checkpoint(&store, &pointers.active, &configmap, err);
        if (r < 0)
                return r;
        *ret = lkg_remote_base_new(&configmap, &pointers.active, &settings, report);
        return 0;
}

/* ---- layers ---- */

/* A pinned field is compared with the local base, which the remote one replaces. */
static int look_over_remote(const struct lkg_offline_place *place, struct lkg_offline *o,
                            struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_stack_remote remote = lkg_remote_base_stack(o->remote);
        struct lkg_component local = { .config = place->component, .candidate = o->candidate };
        int r;

        o->candidate = NULL;
        r = lkg_stack_over(o->stack, &remote, &o->candidate, err);
        if (r >= 0)
                lkg_component_check_guard(&local, o->candidate, report);
        lkg_candidate_unref(local.candidate);
        return r;
}

static void judge_candidate(struct lkg_candidate *candidate, void *userdata)
{
        lkg_candidate_judge(candidate, userdata, "");
}

static void judge_pods(struct lkg_candidate *candidate, void *userdata)
{
        const struct lkg_offline_place *place = userdata;
        unsigned release = place->release ? place->release : (unsigned)place->component->schema_release;

        lkg_pods_make(candidate, &(struct lkg_pods_by){ .release = release,
                                                        .host = { lkg_pods_severity(place->component),
                                                                  place->source_path, place->source_fd },
                                                        .hint = "" });
}

int lkg_offline_judge(const struct lkg_offline_place *place, struct lkg_offline *ret,
                      struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_stack_config layers = lkg_component_stack_config(place->config, place->component,
                                                                    place->source_fd, place->source_path);
        struct lkg_offline o = { 0 };
        int r = new_judge(place, &o, err);

        if (*layers.base && *layers.base != '/' && lkg_fallback_is_ours(place->source_fd, layers.base))
                layers.base = "";
        if (r >= 0)
                r = load_remote(place, &o.remote, report, err);
        if (r >= 0) {
                o.stack = lkg_stack_new(&layers);
                if (place->component->is_pods)
                        lkg_stack_set_judge(o.stack, judge_pods, (void *)place);
                else
                        lkg_stack_set_judge(o.stack, judge_candidate, o.judge);
                r = lkg_stack_refresh(o.stack, &o.candidate, err);
        }
        if (r >= 0 && o.remote)
                r = look_over_remote(place, &o, report, err);
        if (r < 0) {
                lkg_offline_deinit(&o);
                return lkg_error_wrap(err, r, "%s", place->component->name);
        }
        *ret = o;
        return 0;
}

void lkg_offline_deinit(struct lkg_offline *offline)
{
        lkg_candidate_unref(offline->candidate);
        lkg_stack_free(offline->stack);
        lkg_judge_free(offline->judge);
        lkg_remote_base_free(offline->remote);
        (void)lkg_facts_free(offline->facts);
        *offline = (struct lkg_offline){ 0 };
}

static int check_component(const struct lkg_offline_place *place,
                           void (*print)(const struct lkg_report *report), struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_offline offline = { 0 };
        int r = lkg_offline_judge(place, &offline, &report, err);

        if (r < 0)
                return r;
        lkg_report_append(&report, &offline.candidate->report);
        print(&report);
        r = offline.candidate->state == LKG_CANDIDATE_INVALID ||
            offline.candidate->state == LKG_CANDIDATE_NAME_TAKEN;
        lkg_offline_deinit(&offline);
        return r;
}

int lkg_offline_check(const struct lkg_config *config, int source_fd, const char *source_path,
                      void (*print)(const struct lkg_report *report), struct lkg_error *err)
{
        struct lkg_offline_place place = { .config = config,
                                           .source_fd = source_fd,
                                           .source_path = source_path,
                                           .runtime_fd = -EBADF,
                                           .state_fd = -EBADF };
        int r = 0;

        for (size_t i = 0; r == 0 && i < config->n_components; i++) {
                place.component = &config->components[i];
                r = check_component(&place, print, err);
        }
        return r;
}
