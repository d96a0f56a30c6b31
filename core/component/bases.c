/* SPDX-License-Identifier: Apache-2.0 */
/* Bases from checkpoints: see lkg/component.h. */
#include <lkg/component.h>
#include <lkg/objects.h>
#include <lkg/base.h>

void lkg_component_follow_tried(struct lkg_component *c)
{
        const struct lkg_log_fields fields = lkg_component_log_fields(c);
        const struct lkg_config_source *source;

        lkg_component_follow(c, LKG_STEAL(c->tried));
        source = lkg_component_source(c);
        lkg_log(LOG_NOTICE, &fields, "following ConfigMap %s/%s, UID %s, resourceVersion %s", source->ns,
                source->name, source->uid, source->version);
}

/* ---- bases from checkpoints ---- */

/*
 * The default minimum limits only what the ConfigMap sets; it does not override the administrator's setting.
 */
struct lkg_trial_settings lkg_trial_settings_of(const struct lkg_config *config)
{
        struct lkg_trial_settings settings = {
                .duration_ns = config->trial.duration_ns,
                .threshold = (unsigned)config->trial.crash_loop_threshold,
                .min_duration_ns = config->trial.min_duration_ns,
                .max_duration_ns = config->trial.max_duration_ns,
        };

        if (config->trial.min_duration_set)
                return settings;
        if (settings.min_duration_ns > settings.duration_ns)
                settings.min_duration_ns = settings.duration_ns;
        if (settings.max_duration_ns && settings.min_duration_ns > settings.max_duration_ns)
                settings.min_duration_ns = settings.max_duration_ns;
        return settings;
}

int lkg_component_trial_rules(const struct lkg_component *c, const struct lkg_config *config,
                              struct lkg_trial_rules *ret)
{
        struct lkg_trial_settings settings = lkg_trial_settings_of(config);
        char ignored[256];

        int r = 0;

        if (c->base)
                *ret = c->base->rules;
        else
                r = lkg_trial_rules_make(&settings, NULL, NULL, NULL, NULL, ret, ignored);
        ret->stable_for_ns = lkg_trial_stable_for(c->config->health.stable_for_ns, ret->duration_ns);
        return r;
}

static int refuse(struct lkg_report *report, const char *file, const char *why)
{
        const struct lkg_where where = { .file = file };

        lkg_report_add(report, LKG_ERROR, 2030, &where, "%s", why);
        return -EINVAL;
}

/*
 * Content of @source was refused, so @source will be marked bad. @err: set to the reason, code
 * -EKEYREJECTED.
 */
static void refused_source(const struct lkg_component_env *env, const struct lkg_config_source *source,
                           struct lkg_error *err)
{
        char id[LKG_SOURCE_ID_MAX + 1], how[128] = "an engine died of it";
        struct lkg_refused *refused = lkg_poison_last(env->poison);
        struct lkg_error unsaved = { 0 };

        if (refused) {
                lkg_config_source_id(source, id);
                lkg_poison_set_source(env->poison, refused, id);
                if (lkg_poison_save(env->poison, &unsaved) <
                    0) /* before the bad mark is made: lifting the refusal must find the mark */
                        lkg_log_warning("%s", unsaved.message);
                lkg_poison_how(refused, how, sizeof(how));
        }
        err->code = -EKEYREJECTED;
        (void)snprintf(err->message, sizeof(err->message), "failed to judge current, %s", how);
}

/*
 * Asks for admission before the payload is decoded for the first time, under the name that its layer will
 * have.
 * Return: 0; -EINVAL: refused; -ENOMEM.
 */
static int admit_payload(const struct lkg_component *c, const struct lkg_component_env *env,
                         const struct lkg_config_source *source, const struct lkg_configmap *configmap,
                         struct lkg_report *report, struct lkg_error *err)
{
        const struct lkg_admission admission = lkg_component_admission(c);
        LKG_CLEANUP(lkg_freep) char *file = lkg_remote_base_file(source);
        LKG_CLEANUP(lkg_freep) char *why = NULL;
        const char *text = NULL;
        size_t size = 0;
        int r;

        if (!file)
                return -ENOMEM;
        if (lkg_configmap_payload(configmap, source->key, &text, &size, NULL) < 0)
                return 0; /* lkg_remote_base_new() reports this mistake */
        r = lkg_admit_text(&admission, LKG_ADMIT_LAYER, file, text, size, &why);
        if (r != -EKEYREJECTED)
                return r;
        refused_source(env, source, err);
        return refuse(report, file, why);
}

int lkg_component_load_base(const struct lkg_component *c, const struct lkg_component_env *env,
                            const struct lkg_config_source *source, struct lkg_remote_base **ret,
                            struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_trial_settings settings = lkg_trial_settings_of(env->config);
        struct lkg_remote_base *base = NULL;
        struct lkg_configmap configmap = { 0 };
        int r = lkg_store_load_checkpoint(env->store, source, &configmap, err);

        if (r == -EKEYREJECTED) {
                (void)refuse(report, NULL, err->message);
                refused_source(env, source, err);
                return -EINVAL;
        }
        if (r < 0)
                return r;
        r = admit_payload(c, env, source, &configmap, report, err);
        if (r < 0) {
                lkg_configmap_deinit(&configmap);
                return r == -EINVAL ? r : lkg_error_set(err, r, NULL, "checkpoint");
        }
        r = lkg_remote_base_new(&configmap, source, &settings, &base, report);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "checkpoint");
        if (!base->text || report->n_severity[LKG_ERROR] > 0) {
                lkg_remote_base_free(base);
                return lkg_error_set(err, -EINVAL, NULL, "checkpoint");
        }
        *ret = base;
        return 0;
}

int lkg_component_restore_base(struct lkg_component *c, const struct lkg_component_env *env,
                               const struct lkg_config_source *source, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        const struct lkg_config_source wanted = *source; /* it may be that of the base that is replaced */
        struct lkg_remote_base *base = NULL;
        int r = lkg_component_load_base(c, env, &wanted, &base, &ignored, err);

        if (r < 0)
                return r;
        lkg_component_follow(c, base);
        c->guard_unchecked = true;
        c->unloaded = c->unread = false;
        return 0;
}

bool lkg_checkpoint_is_lost(int code)
{
        return code == -ENOENT || code == -EBADMSG || code == -EINVAL;
}

void lkg_component_keep_without_base(struct lkg_component *c, const char *why)
{
        struct lkg_remote_base *base = NULL;
        char fault[LKG_REASON_MAX];

        (void)snprintf(fault, sizeof(fault),
                       "the checkpoint %s, trying again; what was served last serves meanwhile: %.300s",
                       c->unread ? "cannot be read" : "is lost and the rollback cannot be recorded", why);
        if (c->active)
                base = lkg_remote_base_missing(&c->dynamic->pointers.active, fault);
        if (base || c->base)
                lkg_component_follow(c, base);
}

void lkg_components_collect(const struct lkg_component *components, size_t n_components,
                            struct lkg_store *store)
{
        struct lkg_config_source *keep = calloc(n_components * (4 + LKG_HISTORY_MAX) + 1, sizeof(*keep));
        struct lkg_error err = { 0 };
        size_t n = 0;

        if (!keep || store->lock_fd < 0) {
                free(keep);
                return;
        }
        for (size_t i = 0; i < n_components; i++) {
                const struct lkg_component *c = &components[i];

                if (!c->dynamic) { /* what it needs is unknown */
                        free(keep);
                        return;
                }
                keep[n++] = c->dynamic->pointers.assigned;
                keep[n++] = c->dynamic->pointers.active;
                keep[n++] = c->dynamic->pointers.good.source;
                for (size_t k = 0; k < c->history.n_entries && k < LKG_HISTORY_MAX; k++)
                        if (lkg_config_source_parse_id(c->history.entries[k].source, &keep[n]) >= 0)
                                n++;
        }
        if (lkg_store_collect(store, keep, n, &err) < 0)
                lkg_log_warning("cannot remove old checkpoints: %s", err.message);
        free(keep);
}
