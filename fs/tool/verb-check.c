/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs check: prints every finding, on standard output because findings are its product. Errors and warnings give exit status
 * 1; notes alone do not stop a pipeline.
 *
 * It judges the layers that options name; or each FILE alone, by its kind; or, without either, this node: our own configuration
 * and the layers of each component.
 */
#include "tool.h"

#include "fleet.h"

/* What is judged, one thing or several. */
struct checking {
        /* with annotations @saying, a copy of ours, whose messages go into @said */
        const struct lkg_tool *tool;
        struct lkg_tool saying;
        char said[512];
        const char *several;    /* the name of their list; NULL = there is only one thing */
        struct lkg_value *list; /* -o json: one item for each; NULL = text */
        bool annotates;         /* -o sarif, -o github */
        struct lkg_annotations annotations;
        int status; /* of the worst */
        size_t n[_LKG_SEVERITY_MAX];
};

static const char *state_name(const struct lkg_candidate *candidate)
{
        switch (candidate->state) {
        case LKG_CANDIDATE_NONE:
                return "none";
        case LKG_CANDIDATE_VALID:
                return "valid";
        case LKG_CANDIDATE_INVALID:
                return "invalid";
        case LKG_CANDIDATE_NAME_TAKEN:
                return "name taken";
        }
        return "invalid";
}

static int status_of(const struct lkg_tool *tool, const struct lkg_report *report)
{
        size_t n = tool->options.checking.errors_only ? 0 : report->n_severity[LKG_WARNING];

        /* no document is to blame for the command line that the component was found with, and it runs */
        for (size_t i = 0; n > 0 && i < report->n_findings; i++)
                n -= report->findings[i].severity == LKG_WARNING && report->findings[i].code == 5020;
        return report->n_severity[LKG_ERROR] || n > 0 ? LKG_TOOL_DIFFERENT : LKG_TOOL_OK;
}

static void map_severities(struct lkg_value *map, const size_t n[static _LKG_SEVERITY_MAX])
{
        lkg_tool_map_number(map, "errors", n[LKG_ERROR]);
        lkg_tool_map_number(map, "warnings", n[LKG_WARNING]);
        lkg_tool_map_number(map, "notes", n[LKG_NOTE]);
}

static void put_counts(const struct lkg_tool *tool, struct lkg_value *map, const struct lkg_report *report,
                       const char *(*class_of)(const struct lkg_finding *finding))
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        struct lkg_tool whole = *tool;

        whole.options.all |= class_of != NULL; /* a program picks by class */
        lkg_tool_arrange(&whole, report, &arranged);
        map_severities(map, report->n_severity);
        lkg_tool_map_number(map, "notListed", arranged.n_dropped + arranged.n_folded);
        lkg_tool_map_value(map, "findings", lkg_tool_findings_value(&arranged, class_of));
}

static void put_sources(const struct lkg_tool *tool, struct lkg_value *map,
                        const struct lkg_tool_sources *sources)
{
        const struct lkg_candidate *candidate = sources->candidate;
        char text[LKG_RELEASE_TEXT_MAX];

        lkg_tool_map_string(map, "state", state_name(candidate));
        lkg_tool_map_number(map, "layers", candidate->n_layers);
        if (sources->upgraded_from) {
                lkg_tool_map_string(map, "from", lkg_release_text(sources->upgraded_from, text));
                lkg_tool_map_string(map, "to", lkg_release_text(tool->options.release, text));
        }
        put_counts(tool, map, &candidate->report, sources->upgraded_from ? lkg_tool_upgrade_class : NULL);
        if (sources->upgraded_from)
                lkg_tool_map_value(map, "changes", sources->changes);
}

/* The layers of a component of this node, or (@node NULL) those that options name. */
static int judge(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                 const struct lkg_config_component *component, struct lkg_tool_sources **ret)
{
        return node ? lkg_tool_node_judge(tool, node, component, ret) : lkg_tool_sources_load(tool, ret);
}

/* The same documents, judged by the release that is left. */
static int judge_now(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                     const struct lkg_config_component *component, unsigned from,
                     struct lkg_tool_sources *then)
{
        struct lkg_tool_sources *before;
        struct lkg_tool now = *tool;
        int status;

        now.options.release = now.options.runs = from; /* with what it takes */
        status = judge(&now, node, component, &before);
        if (status == LKG_TOOL_OK)
                lkg_tool_add_upgrade(tool, before, then);
        return status;
}

static int load(const struct lkg_tool *tool, const struct lkg_tool_node *node,
                const struct lkg_config_component *component, struct lkg_tool_sources **ret)
{
        int status = judge(tool, node, component, ret);
        unsigned from = status == LKG_TOOL_OK ? lkg_tool_upgrade_from(tool, *ret) : 0;

        if (from)
                status = judge_now(tool, node, component, from, *ret);
        if (status == LKG_TOOL_OK && node && tool->options.release &&
            (!(*ret)->facts || !(*ret)->facts->release))
                lkg_tool_note(
                        tool,
                        "%s: neither its release nor its command line is known (lkgfsd has not run yet)%s",
                        component->name,
                        tool->options.runs ? "" : "; say --release A..B to see what changes");
        return status == LKG_TOOL_OK ? lkg_tool_judge_against(tool, (*ret)->candidate) : status;
}

static void checking_init(struct checking *check, const struct lkg_tool *tool, const char *several)
{
        *check = (struct checking){ .tool = tool,
                                    .several = several,
                                    .list = lkg_tool_structured(tool) ? lkg_tool_list() : NULL,
                                    .annotates = lkg_annotations_wanted(tool) };
        if (!check->annotates)
                return;
        lkg_annotations_init(&check->annotations, tool);
        check->saying = *tool;
        check->saying.said = &check->said;
        check->tool = &check->saying;
}

static void worsen(struct checking *check, int status)
{
        if (status > check->status)
                check->status = status;
}

/* @name could not be judged, and a message has been said. */
static void fail(struct checking *check, const char *name, int status)
{
        worsen(check, status);
        if (!check->annotates)
                return;
        (void)lkg_tool_fail(check->annotations.tool, status, "%s", check->said);
        lkg_annotations_fail(&check->annotations, name, check->said);
}

/*
 * One of them. @sources: NULL: it is not made of layers. A failure is said on standard error and has no findings; the others
 * are still judged.
 */
static void add(struct checking *check, const char *key, const char *name,
                const struct lkg_tool_sources *sources, const struct lkg_report *report)
{
        struct lkg_value *item;

        worsen(check, sources && sources->candidate->state != LKG_CANDIDATE_VALID
                              ? LKG_TOOL_DIFFERENT
                              : status_of(check->tool, report));
        for (size_t i = 0; i < _LKG_SEVERITY_MAX; i++)
                check->n[i] += report->n_severity[i];
        if (check->annotates) {
                lkg_annotations_add(&check->annotations, name, report);
                return;
        }
        if (!check->list) {
                if (sources && sources->upgraded_from)
                        lkg_tool_print_upgrade(check->tool, report);
                else
                        lkg_tool_print_findings(check->tool, STDOUT_FILENO, report);
                return;
        }
        item = check->several ? lkg_tool_map() : lkg_tool_document();
        if (check->several)
                lkg_tool_map_string(item, key, name);
        if (sources)
                put_sources(check->tool, item, sources);
        else
                put_counts(check->tool, item, report, NULL);
        lkg_tool_append(check->list, item);
}

/* Of the formats, only annotations can say that nothing could be judged. */
static int print(struct checking *check)
{
        struct lkg_value *map;

        if (check->annotates)
                return lkg_annotations_print(&check->annotations, check->status);
        if (!check->list || (!check->several && !lkg_value_size(check->list)))
                return check->status;
        if (!check->several)
                return lkg_tool_print_value(lkg_list_get(check->list, 0), check->tool->options.format,
                                            check->status);
        map = lkg_tool_document();
        map_severities(map, check->n);
        lkg_tool_map_value(map, check->several, check->list);
        return lkg_tool_print_map(check->tool, map, check->status);
}

/* ---- layers that options name ---- */

/* A finding without a file belongs to the first of them. */
static int check_layers(const struct lkg_tool *tool)
{
        struct lkg_tool_sources *sources;
        const char *const paths[] = { tool->options.remote, tool->options.config, tool->options.config_dir,
                                      tool->options.instance_config };
        const char *first = NULL;
        struct checking check;
        int status;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(paths) && !first; i++)
                first = paths[i];
        checking_init(&check, tool, NULL);
        status = load(check.tool, NULL, NULL, &sources);
        if (status != LKG_TOOL_OK) {
                fail(&check, first, status);
                return print(&check);
        }
        add(&check, "", first, sources, &sources->candidate->report);
        if (sources->candidate->state == LKG_CANDIDATE_NONE && !check.list)
                fail(&check, first, lkg_tool_no_document(check.tool));
        return print(&check);
}

/* ---- files ---- */

/* `kubeletconfiguration0+merge.yaml`: a kubeadm patch has the kind of what it is applied to. */
static bool is_patch(const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        return strncmp(name, "kubeletconfiguration", strlen("kubeletconfiguration")) == 0;
}

static void check_configuration(struct checking *check, const char *path)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *absolute = realpath(path, NULL);
        const struct lkg_config_options options = { .path = absolute, .trust_any_owner = true };
        struct lkg_config *config = NULL;
        int r = absolute ? lkg_config_load(&options, &config, &report) : -errno;

        if (r < 0 && r != -EBADMSG && r != -EPERM)
                fail(check, path,
                     lkg_tool_fail(check->tool, LKG_TOOL_FAILED, "'%s': %s", path, strerror(-r)));
        else
                add(check, "file", path, NULL, &report);
        lkg_config_free(config);
}

/*
 * What cannot be decoded is judged as a document of the component, which says why. So is standard input, which has no name that could
 * say that it is a patch.
 */
static void check_by_kind(struct checking *check, const char *path)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        bool patch = is_patch(path), in = lkg_tool_is_stdin(path);
        struct lkg_tool named = *check->tool;
        struct lkg_tool_sources *sources;
        struct lkg_value *doc = NULL;
        const char *kind = NULL;
        int status = in ? LKG_TOOL_OK : lkg_tool_read_doc(check->tool, path, !patch, 0, &report, NULL, &doc);

        if (doc && lkg_value_type(doc) == LKG_MAP)
                kind = lkg_map_get_string(doc, "kind");
        if (status != LKG_TOOL_FAILED && patch) {
                add(check, "file", path, NULL, &report);
                return;
        }
        if (kind && strcmp(kind, LKG_CONFIG_KIND) == 0) {
                check_configuration(check, path);
                return;
        }
        if (kind && strcmp(kind, "ConfigMap") == 0)
                named.options.remote = path;
        else
                named.options.config = path;
        if (status != LKG_TOOL_FAILED)
                status = load(&named, NULL, NULL, &sources);
        if (status != LKG_TOOL_OK)
                fail(check, path, status);
        else
                add(check, "file", path, sources, &sources->candidate->report);
}

static bool is_document(const char *name)
{
        static const char *const ends[] = { ".conf", ".yaml", ".yml", ".json" };
        const char *end = strrchr(name, '.');

        for (size_t i = 0; end && end != name && i < LKG_ARRAY_SIZE(ends); i++)
                if (strcmp(end, ends[i]) == 0)
                        return true;
        return false;
}

static void check_directory(struct checking *check, const char *path)
{
        struct lkg_strings names = { 0 };
        int r = lkg_tool_names(AT_FDCWD, lkg_tool_format("%s/.", path), DT_UNKNOWN, &names);

        if (r < 0)
                fail(check, path,
                     lkg_tool_fail(check->tool, LKG_TOOL_FAILED, "read '%s': %s", path, strerror(-r)));
        for (size_t i = 0; i < names.n_items; i++)
                if (is_document(names.items[i]))
                        check_by_kind(check, lkg_tool_format("%s/%s", path, names.items[i]));
}

static int check_files(const struct lkg_tool *tool)
{
        struct checking check = { .list = NULL };
        struct stat st;

        if (lkg_tool_has_sources(tool) || tool->options.node_config || tool->options.checking.configmap)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "FILE is judged alone, by its kind; to judge layers together name "
                                     "all of them with options: --config, --config-dir, ...");
        checking_init(&check, tool, "files");
        for (size_t i = 0; i < tool->n_words; i++) {
                const char *path = tool->words[i];

                if (!lkg_tool_is_stdin(path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                        check_directory(&check, path);
                else
                        check_by_kind(&check, path);
        }
        return print(&check);
}

/* ---- this node ---- */

static void say_state(const struct lkg_tool *tool, const char *component,
                      const struct lkg_tool_sources *sources)
{
        const struct lkg_candidate *candidate = sources->candidate;
        const size_t *n = candidate->report.n_severity;
        char from[LKG_RELEASE_TEXT_MAX], to[LKG_RELEASE_TEXT_MAX], upgrade[2 * LKG_RELEASE_TEXT_MAX] = "";

        if (sources->upgraded_from)
                (void)snprintf(upgrade, sizeof(upgrade), ", %s to %s",
                               lkg_release_text(sources->upgraded_from, from),
                               lkg_release_text(tool->options.release, to));
        (void)dprintf(
                STDOUT_FILENO, "%s%s: %s, %zu %s%s, %zu error%s, %zu warning%s, %zu note%s\n", component,
                upgrade, candidate->state == LKG_CANDIDATE_NONE ? "no document" : state_name(candidate),
                candidate->n_layers, candidate->texts ? "manifest" : "layer",
                candidate->n_layers == 1 ? "" : "s", n[LKG_ERROR], n[LKG_ERROR] == 1 ? "" : "s",
                n[LKG_WARNING], n[LKG_WARNING] == 1 ? "" : "s", n[LKG_NOTE], n[LKG_NOTE] == 1 ? "" : "s");
}

static void check_component(struct checking *check, const struct lkg_tool_node *node,
                            const struct lkg_config_component *component)
{
        struct lkg_tool_sources *sources;
        int status = load(check->tool, node, component, &sources);

        if (status != LKG_TOOL_OK) {
                fail(check, lkg_tool_node_path(check->tool), status);
                return;
        }
        if (check->annotates) /* a finding without a file belongs to the configuration that names the layers */
                add(check, "", lkg_tool_node_path(check->tool), sources, &sources->candidate->report);
        else
                add(check, "component", component->name, sources, &sources->candidate->report);
        if (!check->list && !check->annotates)
                say_state(check->tool, component->name, sources);
}

static int check_node(const struct lkg_tool *tool)
{
        struct lkg_tool_node *node;
        const char *wanted = tool->options.component; /* NULL = all */
        struct checking check = { .list = NULL };
        int status;

        checking_init(&check, tool, "judged");
        status = lkg_tool_node_open(check.tool, &node);
        if (status > LKG_TOOL_DIFFERENT) {
                fail(&check, lkg_tool_node_path(tool), status);
                check.several = NULL; /* there is none to list */
                return print(&check);
        }
        if (status == LKG_TOOL_OK && wanted)
                (void)lkg_tool_node_component(tool, node);
        add(&check, "configuration", lkg_tool_node_path(tool), NULL, &node->report);
        for (size_t i = 0; status == LKG_TOOL_OK && i < node->config->n_components; i++)
                if (!wanted || strcmp(wanted, node->config->components[i].name) == 0)
                        check_component(&check, node, &node->config->components[i]);
        return print(&check);
}

/* ---- a ConfigMap in a cluster ---- */

static int check_configmap(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        const char *configmap = tool->options.checking.configmap, *name = strchr(configmap, '/');
        struct lkg_reference reference = { 0 };
        struct lkg_tool named = *tool;
        struct lkg_error err = { 0 };

        if (tool->options.remote)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE, "--configmap or --remote, not both");
        if (lkg_reference_from_text(configmap, strlen(configmap), &reference, &err) < 0 ||
            reference.type != LKG_REFERENCE_CONFIGMAP)
                return lkg_tool_fail(tool, LKG_TOOL_USAGE,
                                     "--configmap: \"%.100s\" is not right, want NAMESPACE/NAME[/KEY]",
                                     configmap);
        lkg_fleet_fetch(tool, &reference, &text);
        named.options.remote = configmap;
        named.remote_text = text.data;
        named.remote_size = text.size;
        if (name && strchr(name + 1, '/') && !named.options.remote_key) /* else the object may say which */
                named.options.remote_key = reference.key;
        return check_layers(&named);
}

int lkg_verb_check(const struct lkg_tool *tool)
{
        if (tool->n_words > 0)
                return check_files(tool);
        if (tool->options.checking.configmap)
                return check_configmap(tool);
        if (!lkg_tool_has_sources(tool) && lkg_tool_has_node(tool))
                return check_node(tool);
        return check_layers(tool);
}
