/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/documents.h>
#include <lkg/objects.h>

static const char *const hidden[] = { LKG_TRIAL_FIELD_DURATION, LKG_TRIAL_FIELD_THRESHOLD, NULL };

struct lkg_stack_remote lkg_remote_base_stack(const struct lkg_remote_base *base)
{
        return (struct lkg_stack_remote){
                .name = base->name,
                .file = base->file,
                .text = base->text,
                .fault = base->fault,
                .size = base->size,
                .hidden = hidden,
        };
}

struct lkg_remote_base *lkg_remote_base_free(struct lkg_remote_base *base)
{
        if (!base)
                return NULL;
        lkg_configmap_deinit(&base->configmap);
        free(base->name);
        free(base->file);
        free(base->fault);
        free(base);
        return NULL;
}

char *lkg_remote_base_file(const struct lkg_config_source *source)
{
        return lkg_format("%s/%s:%s", source->ns, source->name, source->key);
}

static void set_names(struct lkg_remote_base *base, const struct lkg_config_source *source)
{
        base->source = *source;
        base->name = lkg_copy(source->name);
        base->file = lkg_remote_base_file(source);
}

struct lkg_remote_base *lkg_remote_base_missing(const struct lkg_config_source *source, const char *fault)
{
        struct lkg_remote_base *base = lkg_must(calloc(1, sizeof(*base)));

        base->fault = lkg_copy(fault);
        set_names(base, source);
        return base;
}

/* The text of a number or string; for anything else its type, which the message will show. */
static const char *text_of(const struct lkg_value *doc, const char *field, struct lkg_where *ret_where)
{
        const struct lkg_value *value = lkg_map_get(doc, field);
        enum lkg_type type = value ? lkg_value_type(value) : LKG_NULL;

        if (type == LKG_NULL)
                return NULL;
        *ret_where = lkg_where_of(value);
        return type == LKG_STRING || type == LKG_NUMBER ? lkg_value_text(value, NULL) : lkg_type_name(type);
}

/* A document that cannot be decoded has no rules; the stack reports why. */
static void read_rules(struct lkg_remote_base *base, const struct lkg_trial_settings *settings,
                       struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new(base->name, base->file);
        struct lkg_where where = { .file = base->file };
        const char *duration = NULL, *threshold = NULL;
        char why[256];

        if (base->text)
                (void)lkg_decode(base->text, base->size, lkg_detect_format(base->text, base->size), 0,
                                 source, &ignored, &doc);
        lkg_source_unref(source);
        if (doc && lkg_value_type(doc) == LKG_MAP) {
                threshold = text_of(doc, LKG_TRIAL_FIELD_THRESHOLD, &where);
                duration = text_of(doc, LKG_TRIAL_FIELD_DURATION, &where);
        }
        if (lkg_trial_rules_make(settings, duration, threshold,
                                 lkg_configmap_annotation(&base->configmap, LKG_TRIAL_NOTE_DURATION),
                                 lkg_configmap_annotation(&base->configmap, LKG_TRIAL_NOTE_THRESHOLD),
                                 &base->rules, why) < 0)
                lkg_report_add(report, LKG_ERROR, 6005, &where, "%s", why);
}

struct lkg_remote_base *lkg_remote_base_new(struct lkg_configmap *configmap,
                                            const struct lkg_config_source *source,
                                            const struct lkg_trial_settings *settings,
                                            struct lkg_report *report)
{
        struct lkg_remote_base *base = lkg_must(calloc(1, sizeof(*base)));
        struct lkg_error err = { 0 };

        base->limits = lkg_rollout_limits_of(configmap);
        base->configmap = *configmap;
        *configmap = (struct lkg_configmap){ 0 };
        set_names(base, source);
        if (lkg_configmap_payload(&base->configmap, source->key, &base->text, &base->size, &err) < 0) {
                const struct lkg_where where = { .file = base->file };

                base->text = NULL;
                lkg_report_add(report, LKG_ERROR, 6004, &where, "%s", err.message);
        }
        read_rules(base, settings, report);
        return base;
}
