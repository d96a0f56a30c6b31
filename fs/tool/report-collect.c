/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the parts of a report. Everything that may hang (the mount, the service manager, a log on a network file system) is a
 * job with a limit of its own; what a job has sent before the limit counts.
 *
 * Status and problems are the product of the verbs status and doctor: one place knows what is wrong and what to do about it. If
 * there is no view to read, the verbs check and blame judge the layers of this node instead.
 */
#include "report-parts.h"

#include <inttypes.h>

#include <lkg/process.h>

#define VIEW_LIMIT_S  8
#define JOB_LIMIT_S   5
#define JUDGE_LIMIT_S 20
#define BYTES_MAX     (64u << 20)

struct work {
        const struct lkg_tool *tool;
        int (*run)(const struct lkg_tool *tool);
};

static int run_work(void *userdata)
{
        const struct work *work = userdata;

        return work->run(work->tool);
}

/*
 * @name: of the part that its whole output becomes, without secrets; NULL: it sends parts. Its messages become NAME.messages if it has no
 * product.
 * Return: true: it has ended.
 */
static bool collect(const struct lkg_tool *tool, int (*run)(const struct lkg_tool *tool), unsigned limit_s,
                    const char *name, struct lkg_parts *parts)
{
        struct work work = { tool, run };
        const struct lkg_job_spec spec = { .run = run_work, .userdata = &work };
        struct lkg_job_output out = { .data = malloc(BYTES_MAX), .max = BYTES_MAX };
        char said[4096], messages[64];
        struct lkg_job_output err = { .data = said, .max = sizeof(said) };
        int status = 0, r = out.data ? 0 : -ENOMEM;

        if (r == 0)
                r = lkg_job_run(&spec, limit_s * LKG_NSEC_PER_SEC, &out, &err, &status);
        parts->no_memory |= r == -ENOMEM;
        if (!name)
                lkg_parts_receive(parts, out.data, out.size);
        else if (r < 0 || out.size)
                lkg_parts_add(parts, name, out.data, r < 0 ? 0 : out.size, r, 0);
        if (name && err.size && !out.size) { /* beside a product they say nothing new */
                (void)snprintf(messages, sizeof(messages), "%.50s.messages", name);
                lkg_parts_add(parts, messages, said, err.size, 0, 0);
        }
        free(out.data);
        return r == 0;
}

static int show_unit(const struct lkg_tool *tool)
{
        (void)tool;
        (void)execlp(
                "systemctl", "systemctl", "show", "lkgfs.service", "--no-pager",
                "--property=LoadState,ActiveState,SubState,Result,NRestarts,MainPID,ExecMainStartTimestamp,"
                "ExecMainStatus,FragmentPath,DropInPaths,UnitFileState,NeedDaemonReload,Version",
                NULL);
        return LKG_TOOL_FAILED;
}

static int show_manager(const struct lkg_tool *tool)
{
        (void)tool;
        (void)execlp("systemctl", "systemctl", "--version", NULL);
        return LKG_TOOL_FAILED;
}

/* The log of the journal is masked here: journalctl has printed it. */
static void collect_log(const struct lkg_tool *tool, struct lkg_parts *parts)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf masked = LKG_BUF_INIT;
        struct lkg_parts journal = { 0 };
        const struct lkg_part *part;

        if (tool->options.log) {
                (void)collect(tool, lkg_report_read_log, JOB_LIMIT_S, NULL, parts);
                return;
        }
        (void)collect(tool, lkg_report_read_log, JOB_LIMIT_S, "log", &journal);
        part = lkg_parts_find(&journal, "log");
        if (part && part->error == 0)
                lkg_report_mask_lines(part->data, part->size, &masked);
        if (part)
                lkg_parts_add(parts, "log", masked.data, masked.size, part->error, 0);
        lkg_parts_deinit(&journal);
}

/* ---- without a view ---- */

static void collect_origins(struct lkg_tool *tool, struct lkg_parts *parts)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *check = lkg_parts_json(parts, "judged/check.json");
        const struct lkg_value *list = check ? lkg_map_get(check, "judged") : NULL;

        for (size_t i = 0; list && i < lkg_value_size(list); i++) {
                const char *component = lkg_map_get_string(lkg_list_get(list, i), "component");
                char name[128];

                if (!component)
                        continue;
                tool->options.component = component;
                (void)snprintf(name, sizeof(name), "judged/%.100s/origin.json", component);
                (void)collect(tool, lkg_verb_blame, JUDGE_LIMIT_S, name, parts);
        }
}

static void judge_layers(const struct lkg_tool *tool, struct lkg_parts *parts)
{
        struct lkg_tool judging = *tool;

        judging.options.format = LKG_TOOL_JSON;
        judging.options.node_config = lkg_tool_node_path(tool);
        (void)collect(&judging, lkg_verb_check, JUDGE_LIMIT_S, "judged/check.json", parts);
        collect_origins(&judging, parts);
}

/* ---- all ---- */

static void collect_verbs(const struct lkg_tool *tool, bool view_answers, struct lkg_parts *parts)
{
        struct lkg_tool json = *tool;

        json.options.format = LKG_TOOL_JSON;
        if (!view_answers)
                return;
        (void)collect(&json, lkg_verb_doctor, JOB_LIMIT_S, "doctor.json", parts);
        (void)collect(&json, lkg_verb_status, JOB_LIMIT_S, "status.json", parts);
}

/* A job's working directory is the root. The mount is not touched. */
static int absolute(const char **path, char **ret)
{
        LKG_CLEANUP(lkg_freep) char *cwd = NULL;

        if (!*path || **path == '/')
                return 0;
        cwd = getcwd(NULL, 0);
        if (!cwd || asprintf(ret, "%s/%s", cwd, *path) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        *path = *ret;
        return 0;
}

int lkg_report_collect(const struct lkg_tool *tool, struct lkg_parts *ret)
{
        LKG_CLEANUP(lkg_freep) char *mountpoint = NULL;
        LKG_CLEANUP(lkg_freep) char *config = NULL;
        LKG_CLEANUP(lkg_freep) char *log = NULL;
        const char *env = getenv("LKGFS_MOUNTPOINT");
        struct lkg_tool at = *tool;
        bool answers;

        if (!at.options.mountpoint && env && *env)
                at.options.mountpoint = env;
        at.options.node_config = lkg_tool_node_path(tool);
        if (absolute(&at.options.mountpoint, &mountpoint) < 0 ||
            absolute(&at.options.node_config, &config) < 0 || absolute(&at.options.log, &log) < 0)
                return -ENOMEM;
        (void)collect(&at, lkg_report_read_system, JOB_LIMIT_S, NULL, ret);
        answers = collect(&at, lkg_report_read_view, VIEW_LIMIT_S, NULL, ret);
        collect_verbs(&at, answers, ret);
        if (!lkg_parts_next(ret, NULL, "status/"))
                judge_layers(&at, ret);
        if (access("/run/systemd/system", F_OK) == 0) {
                (void)collect(&at, show_manager, JOB_LIMIT_S, "environment/systemd", ret);
                (void)collect(&at, show_unit, JOB_LIMIT_S, "environment/lkgfs.service", ret);
        }
        collect_log(&at, ret);
        return ret->no_memory ? -ENOMEM : 0;
}
