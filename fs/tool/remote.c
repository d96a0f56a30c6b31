/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --remote: a ConfigMap in place of the base, as with remote.file on a node. The engine's code checks the object; settings of a
 * node (allowedSources, guard, the bad list) do not apply.
 *
 * Besides success, there are three outcomes: the file cannot be read (a failure), it is not a usable
 * ConfigMap (a finding: the document is wrong), or it selects the local configuration (then the base file is
 * used).
 */
#include "tool.h"

#include <lkg/objects.h>
#include <lkg/limits.h>
#include <lkg/objects.h>

#define KEY_NOTE "lkgfs.io/config-key"

/* Default settings: only the object's own trial settings are checked here. */
static const struct lkg_trial_settings trial_settings = {
        .duration_ns = 600 * LKG_NSEC_PER_SEC,
        .threshold = LKG_TRIAL_THRESHOLD_MAX,
};

/* Turns `FILE:LINE:COLUMN: text` of an error about @file into position and text of a finding. */
static void add_refusal(const char *file, const struct lkg_error *err, struct lkg_report *report)
{
        struct lkg_where where = { .file = file };
        const char *text = err->message;
        size_t n = strlen(file);

        if (strncmp(text, file, n) == 0 && text[n] == ':') {
                int used = 0;

                text += n;
                if (sscanf(text, ":%u:%u: %n", &where.line, &where.column, &used) == 2 && used)
                        text += used;
                else
                        text += 1 + (text[1] == ' ');
        }
        lkg_report_add(report, LKG_ERROR, 6006, &where, "%s", text);
}

/* --remote-key, else the object's own key, else the default. */
static int choose_source(const struct lkg_tool *tool, const struct lkg_configmap *configmap,
                         struct lkg_config_source *ret, struct lkg_error *err)
{
        const char *key = tool->options.remote_key;
        struct lkg_reference reference;
        int r;

        if (!key)
                key = lkg_configmap_annotation(configmap, KEY_NOTE);
        r = lkg_reference_from_parts(configmap->ns, configmap->name, key ? key : "", "", &reference, err);
        if (r < 0)
                return tool->options.remote_key ? r : lkg_error_wrap(err, r, "annotation " KEY_NOTE);
        return lkg_configmap_resolve(configmap, &reference, ret, err);
}

/* As a node reports it: with a wrong annotation no node switches, whatever the document is like. */
static void judge_rollout(const char *file, const struct lkg_configmap *configmap, struct lkg_report *report)
{
        const struct lkg_where where = { .file = file };
        struct lkg_rollout rollout;

        lkg_rollout_decide(configmap, "", &rollout);
        if (rollout.state == LKG_ROLLOUT_UNCLEAR)
                lkg_report_add(report, LKG_WARNING, 7007, &where, "%s; no node switches to it",
                               rollout.words);
}

/* Takes over @configmap. */
static int make_base(const struct lkg_tool *tool, struct lkg_configmap *configmap,
                     struct lkg_remote_base **ret, struct lkg_report *report)
{
        struct lkg_config_source source;
        struct lkg_error err = { 0 };
        int r = choose_source(tool, configmap, &source, &err);

        if (r < 0) {
                lkg_configmap_deinit(configmap);
                if (r == -ENOMEM)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
                if (tool->options.remote_key)
                        return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--remote-key: %s", err.message);
                add_refusal(tool->options.remote, &err, report);
                return LKG_TOOL_DIFFERENT;
        }
        judge_rollout(tool->options.remote, configmap, report);
        r = lkg_remote_base_new(configmap, &source, &trial_settings, ret, report);
        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", strerror(-r));
        return (*ret)->text ? LKG_TOOL_OK : LKG_TOOL_DIFFERENT;
}

int lkg_tool_remote_load(const struct lkg_tool *tool, struct lkg_remote_base **ret,
                         struct lkg_report *report)
{
        const char *path = tool->options.remote, *text = tool->remote_text;
        const struct lkg_configmap_options options = {
                .max_bytes = LKG_DOC_BYTES_MAX,
                .from_file = true,
                .file = path,
        };
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };
        size_t size = tool->remote_size;
        int r;

        if (!text) {
                r = lkg_tool_read_input(path, &data, &size, &err);
                if (r < 0)
                        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
                text = data;
        }
        r = lkg_configmap_parse(text, size, &options, &configmap, &err);
        switch (r) {
        case 0:
                return make_base(tool, &configmap, ret, report);
        case -ENODATA:
                lkg_tool_note(tool, "%s", err.message);
                return LKG_TOOL_OK;
        case -EINVAL:
        case -EBADMSG:
        case -EFBIG:
                add_refusal(path, &err, report);
                return LKG_TOOL_DIFFERENT;
        }
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "%s", err.message);
}
