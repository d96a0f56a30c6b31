/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs, in the order of `lkgfs --help`: first those that need no daemon. */
#include <limits.h>

#include "tool.h"

/* engineTimeout is 2 s by default; a mount that is silent for ten times as long is broken */
#define VIEW_LIMIT_S 20

#define NPD_LIMIT_S  3 /* shorter than the timeout of the rules in contrib/node-problem-detector */

const struct lkg_tool_verb lkg_tool_verbs[] = {
        { "render", "", "merged document on stdout, findings on stderr",
          "lkgfs render --config kubelet.conf --config-dir kubelet.conf.d",
          LKG_OPT_STACK | LKG_OPT_JUDGE | LKG_OPT_EFFECTIVE | LKG_OPT_NODE | LKG_OPT_FORMAT, 0, 0, 0,
          lkg_verb_render },
        { "check", "[FILE...]", "all findings of layers; exits 1 on errors or warnings",
          "lkgfs check --config kubelet.conf --config-dir kubelet.conf.d -o json",
          LKG_OPT_STACK | LKG_OPT_JUDGE | LKG_OPT_NODE | LKG_OPT_FINDINGS | LKG_OPT_CLUSTER, 0, UINT_MAX, 0,
          lkg_verb_check, false, NULL, true },
        { "blame", "[FIELD]", "where each field comes from, and what it overrides",
          "lkgfs blame --config kubelet.conf --config-dir kubelet.conf.d evictionHard",
          LKG_OPT_STACK | LKG_OPT_JUDGE | LKG_OPT_EFFECTIVE | LKG_OPT_NODE | LKG_OPT_FORMAT | LKG_OPT_VIEW,
          0, 1, VIEW_LIMIT_S, lkg_verb_blame },
        { "diff", "[N [M]]", "what each layer changes, or since generation N",
          "lkgfs diff --config kubelet.conf --config-dir kubelet.conf.d",
          LKG_OPT_STACK | LKG_OPT_JUDGE | LKG_OPT_NODE | LKG_OPT_DIFF | LKG_OPT_FORMAT, 0, 2, VIEW_LIMIT_S,
          lkg_verb_diff },
        { "convert", "FILE", "one document as the component would read it",
          "lkgfs convert --strict -o json kubelet.conf", LKG_OPT_STRICT | LKG_OPT_FORMAT, 1, 1, 0,
          lkg_verb_convert },
        { "patch", "TARGET PATCH", "apply one patch to one document",
          "lkgfs patch --type strategic kubelet.conf instance.yaml", LKG_OPT_PATCH | LKG_OPT_FORMAT, 2, 2, 0,
          lkg_verb_patch },
        { "bake", "", "write the merge as plain files, to stop using lkgfs",
          "lkgfs bake --config kubelet.conf --config-dir kubelet.conf.d --directory /root/baked",
          LKG_OPT_STACK | LKG_OPT_BAKE | LKG_OPT_VIEW, 0, 0, VIEW_LIMIT_S, lkg_verb_bake },
        { "explain", "[WORD]", "what a field, flag, feature gate or finding code means",
          "lkgfs explain authentication.webhook.cacheTTL", LKG_OPT_EXPLAIN | LKG_OPT_FORMAT, 0, 1, 0,
          lkg_verb_explain },
        { "schema", "[KIND]", "JSON Schema of a kind, for editors; without KIND the list of kinds",
          "lkgfs schema KubeletConfiguration --release 1.36", LKG_OPT_SCHEMA, 0, 1, 0, lkg_verb_schema,
          .only_named = true },
        { "adopt", "", "let lkgfs serve this kubelet", "lkgfs adopt --dry-run", LKG_OPT_ROOT | LKG_OPT_ADOPT,
          0, 0, 0, lkg_verb_adopt, .on_one_line = true },
        { "abandon", "", "go back to before `adopt`", "lkgfs abandon --dry-run", LKG_OPT_ROOT, 0, 0, 0,
          lkg_verb_abandon },
        { "edit", "[NAME]", "edit a drop-in or a manifest, judged before it is saved",
          "lkgfs edit 50-local.conf", LKG_OPT_NODE | LKG_OPT_EDIT, 0, 1, 0, lkg_verb_edit,
          .only_named = true },
        { "status", "", "one screen, worst problem first", "lkgfs status --component kubelet",
          LKG_OPT_VIEW | LKG_OPT_FORMAT | LKG_OPT_ALL, 0, 0, VIEW_LIMIT_S, lkg_verb_status },
        { "doctor", "", "what is wrong, and what to do", "lkgfs doctor", LKG_OPT_VIEW | LKG_OPT_FORMAT, 0, 0,
          VIEW_LIMIT_S, lkg_verb_doctor, .on_one_line = true },
        { "report", "", "one file for a ticket", "lkgfs report --file /tmp/node.html",
          LKG_OPT_VIEW | LKG_OPT_NODE | LKG_OPT_REPORT, 0, 0, 0, lkg_verb_report },
        { "drift", "", "fields whose running value differs from the served one", "lkgfs drift",
          LKG_OPT_VIEW | LKG_OPT_FORMAT, 0, 0, VIEW_LIMIT_S, lkg_verb_drift },
        { "history", "", "the generations that you can roll back to", "lkgfs history",
          LKG_OPT_VIEW | LKG_OPT_FORMAT, 0, 0, VIEW_LIMIT_S, lkg_verb_history },
        { "bad", "[ID [REASON...]]", "who is to blame: list bad marks, show or make one", "lkgfs bad",
          LKG_OPT_VIEW | LKG_OPT_FORMAT, 0, UINT_MAX, VIEW_LIMIT_S, lkg_verb_bad },
        { "rollback", "lkg|N", "serve an earlier generation until `hold off`", "lkgfs rollback lkg",
          LKG_OPT_VIEW, 1, 1, VIEW_LIMIT_S, lkg_verb_command },
        { "rollout", "[NS/CONFIGMAP]", "how far a rollout is: this node's, or that of a ConfigMap",
          "lkgfs rollout --kubeconfig admin.conf kube-system/node-config",
          LKG_OPT_VIEW | LKG_OPT_FORMAT | LKG_OPT_FLEET, 0, 1, VIEW_LIMIT_S, lkg_verb_rollout,
          .only_named = true },
        { "promote", "[now]", "trust the assigned configuration before its trial ends", "lkgfs promote",
          LKG_OPT_VIEW, 0, 1, VIEW_LIMIT_S, lkg_verb_command },
        { "forget", "ID|all", "remove bad marks, so that they may be tried again", "lkgfs forget all",
          LKG_OPT_VIEW, 1, 1, VIEW_LIMIT_S, lkg_verb_command },
        { "hold", "on|off", "freeze what is served, or follow the files again", "lkgfs hold on",
          LKG_OPT_VIEW, 1, 1, VIEW_LIMIT_S, lkg_verb_command },
        { "sync", "[now]", "read every layer and the reference again", "lkgfs sync", LKG_OPT_VIEW, 0, 1,
          VIEW_LIMIT_S, lkg_verb_command },
        { "try", "DURATION", "undo the next change after DURATION", "lkgfs try 5m", LKG_OPT_VIEW, 1, 1,
          VIEW_LIMIT_S, lkg_verb_command, .on_one_line = true },
        { "commit", "[now]", "keep what is tried", "lkgfs commit", LKG_OPT_VIEW, 0, 1, VIEW_LIMIT_S,
          lkg_verb_command },
        { "wait", "[generation N]", "wait for the next generation, or for generation N or later",
          "lkgfs wait generation 42 --timeout 30s", LKG_OPT_VIEW | LKG_OPT_TIMEOUT, 0, 2, 0, lkg_verb_wait,
          .only_named = true },
        { "gate", "COMPONENT", "exits 0 if COMPONENT is served or lkgfs is disabled, else 1",
          "lkgfs gate kubelet", LKG_OPT_VIEW, 1, 1, VIEW_LIMIT_S, lkg_verb_gate, .only_named = true },
        { "npd", "", "one line and an exit status for node-problem-detector",
          "lkgfs npd --component kubelet --check served", LKG_OPT_VIEW | LKG_OPT_CHECK, 0, 0, NPD_LIMIT_S,
          lkg_verb_npd, .only_named = true, .silent = lkg_npd_silent },
        { "startup", "[PID|now]", "report that the component starts", "lkgfs startup --component kubelet",
          LKG_OPT_VIEW, 0, 1, VIEW_LIMIT_S, lkg_verb_command, .only_named = true },
        { "mount", "MOUNTPOINT", "start lkgfsd in the background", "lkgfs mount /etc/kubernetes",
          LKG_OPT_MOUNT, 1, 1, 0, lkg_verb_mount, .only_named = true },
};
const size_t lkg_n_tool_verbs = LKG_ARRAY_SIZE(lkg_tool_verbs);

const struct lkg_tool_verb *lkg_tool_find_verb(const char *name)
{
        for (size_t i = 0; i < lkg_n_tool_verbs; i++)
                if (strcmp(lkg_tool_verbs[i].name, name) == 0)
                        return &lkg_tool_verbs[i];
        return NULL;
}

/* ---- help ---- */

/*
 * Help, generated from the table of verbs: all of it fits on a screen of 24 lines of 80 columns, so verbs
 * that people do not type are only named.
 */

/* @before: a verb that shares the line, or NULL */
static void line(const struct lkg_tool_verb *before, const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        char left[40];

        (void)snprintf(left, sizeof(left), "%s%s%s%s%s", before ? before->name : "", before ? ", " : "",
                       verb->name, *verb->words ? " " : "", verb->words);
        lkg_buf_printf(buf, "  %-20s %s%s%s\n", left, before ? before->help : "", before ? "; " : "",
                       verb->help);
}

static void programs(struct lkg_buf *buf)
{
        const char *separator = "  ";

        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                if (!lkg_tool_verbs[i].only_named)
                        continue;
                lkg_buf_printf(buf, "%s%s", separator, lkg_tool_verbs[i].name);
                separator = ", ";
        }
        lkg_buf_puts(buf, ": see lkgfs(1).\n");
}

void lkg_tool_help(struct lkg_buf *buf)
{
        const struct lkg_tool_verb *before = NULL;
        bool mounted = false;

        lkg_buf_puts(buf, "Usage: lkgfs VERB [-c COMPONENT] [-m MOUNTPOINT] [-o FORMAT] ...; on files:\n");
        for (size_t i = 0; i < lkg_n_tool_verbs; i++) {
                const struct lkg_tool_verb *verb = &lkg_tool_verbs[i];

                if (!mounted && verb->limit_s && !(verb->options & LKG_OPT_STACK)) {
                        lkg_buf_puts(buf, "On a mounted view:\n");
                        mounted = true;
                }
                if (!verb->only_named && !verb->on_one_line)
                        line(before, verb, buf);
                before = verb->on_one_line ? verb : NULL;
        }
        programs(buf);
        lkg_buf_puts(buf, "VERB --help: options, example. Exit: 0 good, 1 findings, 2 failure, 64 usage.\n");
}

void lkg_tool_verb_help(const struct lkg_tool_verb *verb, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "Usage: lkgfs %s [options]%s%s\n%s\nOptions:\n", verb->name,
                       *verb->words ? " " : "", verb->words, verb->help);
        lkg_tool_format_options(verb->options, buf);
        lkg_buf_printf(buf, "Example:\n  %s\n", verb->example);
}
