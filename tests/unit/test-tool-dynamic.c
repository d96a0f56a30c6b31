/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tool uses status/, bad/ and control/ of dynamic configuration: the verbs npd, bad, status and
 * those that are a single control write, on directories written by hand.
 */
#define UNIT_OWN_MAIN

#include <sys/stat.h>

#include "unit.h"
#include "tool-view.h"

/* ---- npd ---- */

TEST_WITH(test_npd_turns_the_condition_round, setup, teardown)
{
        static const struct {
                const char *status;
                int want;
        } rows[] = { { "True", 0 }, { "False", 1 }, { "Unknown", 2 }, { "Perhaps", 2 }, { "", 2 } };
        struct fixture *f = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                condition(f, rows[i].status, "failed to parse", "using last-known-good (init)");
                assert_int_equal(call(f, "npd"), rows[i].want);
                assert_string_equal(f->err, "");
                if (i < 3)
                        assert_string_equal(f->out, "failed to parse: using last-known-good (init)\n");
                else
                        assert_non_null(strstr(f->out, "no condition of kubelet can be read in "));
        }
}

TEST_WITH(test_npd_prints_one_line_of_80_ascii_bytes, setup, teardown)
{
        struct fixture *f = *state;
        char text[256];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        condition(f, "False", "r", text);
        assert_int_equal(call(f, "npd --check condition"), 1);
        assert_int_equal(strlen(f->out), 81);
        assert_int_equal(f->out[80], '\n');
        condition(f, "False", "caf\xc3\xa9", "a\\nb\\u001b[1m");
        assert_int_equal(call(f, "npd"), 1);
        assert_string_equal(f->out, "caf??: a?b?[1m\n");
}

TEST_WITH(test_npd_without_a_condition_is_unknown, setup, teardown)
{
        static const char *const texts[] = { "", "{", "[]", "\"False\"", "{\"status\":false}", "{}" };
        struct fixture *f = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                put(f, "status/" COMPONENT "/condition.json", texts[i]);
                assert_int_equal(call(f, "npd"), 2);
                assert_memory_equal(f->out, "no condition of kubelet", 23);
        }
        assert_int_equal(call(f, "npd --component kube-proxy"), 2);
        assert_string_equal(f->out, "no component \"kube-proxy\", there is: kubelet\n");
        assert_string_equal(f->err, "");
}

TEST_WITH(test_npd_says_that_lkgfs_is_not_running, setup, teardown)
{
        static const struct {
                const char *args;
                int want;
        } rows[] = { { "npd", 2 },
                     { "npd --check served", 1 },
                     { "npd --check bad", 2 },
                     { "npd --check processes", 2 } };
        struct fixture *f = *state;
        char path[TMPDIR_MAX + 8], away[TMPDIR_MAX + 8];

        (void)snprintf(path, sizeof(path), "%s/v", f->dir);
        (void)snprintf(away, sizeof(away), "%s/w", f->dir);
        assert_int_equal(rename(path, away), 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                assert_int_equal(call(f, rows[i].args), rows[i].want);
                assert_non_null(strstr(f->out, "lkgfs is not running"));
                assert_string_equal(f->err, "");
        }
}

TEST_WITH(test_npd_served, setup, teardown)
{
        struct fixture *f = *state;

        condition(f, "False", "r", "m");
        assert_int_equal(call(f, "npd --check served"), 0);
        assert_string_equal(f->out, "generation 7 of kubelet is served\n");
        put(f, "status/" COMPONENT "/generation", "0\n");
        assert_int_equal(call(f, "npd --check served"), 1);
        assert_memory_equal(f->out, "no configuration of kubelet is served in ", 41);
}

TEST_WITH(test_npd_bad, setup, teardown)
{
        struct fixture *f = *state;

        assert_int_equal(call(f, "npd --check bad"), 0);
        put(f, "bad/" COMPONENT "/u-1@7", "{}");
        assert_int_equal(call(f, "npd --check bad"), 1);
        assert_string_equal(f->out, "1 bad configuration of kubelet: u-1@7\n");
        put(f, "bad/" COMPONENT "/u-0", "{}");
        assert_int_equal(call(f, "npd --check bad"), 1);
        assert_string_equal(f->out, "2 bad configurations of kubelet: u-0, ...\n");
}

TEST_WITH(test_npd_processes, setup, teardown)
{
#define UP(name, up) "lkgfs_process_up{component=\"kubelet\",process=\"" name "\"} " up "\n"
        static const struct {
                const char *metrics, *line;
                int want;
        } rows[] = {
                { UP("lkgfsd", "1") UP("lkgfs-fs", "1") "lkgfs_engine_up{component=\"kubelet\"} 1\n",
                  "all processes of lkgfs run\n", 0 },
                { UP("lkgfsd", "0") UP("lkgfs-fs", "1"), "lkgfsd does not run\n", 1 },
                { UP("lkgfsd", "0") UP("lkgfs-notify", "0") "lkgfs_engine_up{component=\"kubelet\"} 0\n",
                  "lkgfsd, lkgfs-notify do not run\n", 1 },
                { UP("lkgfsd", "1") UP("lkgfs-engine", "0"), "all processes of lkgfs run\n", 0 },
                { UP("lkgfsd", "1") "lkgfs_engine_up{component=\"kubelet\"} 0\n",
                  "engine not answering since T\n", 1 },
                { "lkgfs_generation{component=\"kubelet\"} 3\n", NULL, 2 }, /* an earlier daemon */
        };
#undef UP
        struct fixture *f = *state;

        condition(f, "Unknown", "engine not answering since T", "using current (init)");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                put(f, "status/" COMPONENT "/metrics.prom", rows[i].metrics);
                assert_int_equal(call(f, "npd --check processes"), rows[i].want);
                if (rows[i].line)
                        assert_string_equal(f->out, rows[i].line);
        }
}

TEST_WITH(test_npd_unknown_check_is_usage, setup, teardown)
{
        struct fixture *f = *state;

        assert_complains(f, "npd --check good", LKG_TOOL_USAGE, "want condition, served, bad or processes");
}

TEST_WITH(test_npd_of_a_silent_mount, setup, teardown)
{
        static const struct {
                const char *check;
                int want;
        } rows[] = { { NULL, 2 }, { "condition", 2 }, { "served", 1 }, { "bad", 2 }, { "good", 2 } };
        const struct lkg_tool_verb *verb = lkg_tool_find_verb("npd");
        struct fixture *f = *state;

        assert_non_null(verb);
        assert_true(verb->limit_s > 0);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                const struct lkg_tool tool = { .verb = verb, .options.check = rows[i].check };
                int saved, file = divert(f, "out", STDOUT_FILENO, &saved), status = verb->silent(&tool);

                free(f->out);
                f->out = restore(file, STDOUT_FILENO, saved);
                assert_int_equal(status, rows[i].want);
                assert_string_equal(f->out, "lkgfs does not answer: the mount hangs\n");
        }
}

/* ---- bad ---- */

TEST_WITH(test_bad_lists_the_newest_first, setup, teardown)
{
        struct fixture *f = *state;

        assert_int_equal(call(f, "bad"), 0);
        assert_string_equal(f->out, "TIME  ID  REASON\n");
        put(f, "bad/" COMPONENT "/u-1@7",
            "{\"schemaVersion\":1,\"time\":\"2026-11-20T10:00:00Z\",\"reason\":\"operator request\","
            "\"source\":{\"namespace\":\"kube-system\",\"name\":\"c\"},\"cause\":\"operator\"}");
        put(f, "bad/" COMPONENT "/u-2",
            "{\"schemaVersion\":1,\"time\":\"2026-11-21T10:00:00Z\",\"reason\":\"\\u001b[1m\"}");
        put(f, "bad/" COMPONENT "/u-3", "torn");
        put(f, "bad/" COMPONENT "/u-4",
            "{\"schemaVersion\":1,\"time\":\"2026-11-22T10:00:00.123456789Z\",\"reason\":\"r\"}");
        assert_int_equal(call(f, "bad"), 0);
        assert_string_equal(f->out, "TIME                            ID     REASON\n"
                                    "2026-11-22T10:00:00.123456789Z  u-4    r\n"
                                    "2026-11-21T10:00:00Z            u-2    \\x1b[1m\n"
                                    "2026-11-20T10:00:00Z            u-1@7  operator request\n"
                                    "-                               u-3    (cannot be read)\n");
        assert_says(f, "bad -o json", 0, "\"schemaVersion\": 1");
        assert_non_null(strstr(f->out, "\"namespace\": \"kube-system\""));
        assert_non_null(strstr(f->out, "\"cause\": \"operator\""));
        assert_non_null(strstr(f->out, "\"id\": \"u-3\""));
}

TEST_WITH(test_bad_without_a_directory_is_an_empty_list, setup, teardown)
{
        struct fixture *f = *state;
        char path[TMPDIR_MAX + 32];

        (void)snprintf(path, sizeof(path), "%s/v/bad/" COMPONENT, f->dir);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(call(f, "bad"), 0);
        assert_int_equal(call(f, "npd --check bad"), 0);
        assert_int_equal(call(f, "bad u-1 because"), LKG_TOOL_FAILED);
}

TEST_WITH(test_bad_condemns_with_a_reason, setup, teardown)
{
        struct fixture *f = *state;
        char *text;

        assert_int_equal(call(f, "bad u-1@7 it took the node down"), 0);
        text = get(f, "bad/" COMPONENT "/u-1@7");
        assert_string_equal(text, "it took the node down");
        free(text);
        assert_int_equal(call(f, "bad u-2"), LKG_TOOL_FAILED); /* not marked */
        assert_int_equal(call(f, "bad ../u-2 x"), LKG_TOOL_USAGE);
        assert_int_equal(call(f, "bad . x"), LKG_TOOL_USAGE);
        assert_int_equal(call(f, "bad"), 0);
        assert_null(strstr(f->out, "u-2"));
}

/* ---- commands ---- */

TEST_WITH(test_commands_write_the_words_of_the_control_files, setup, teardown)
{
        static const struct {
                const char *args, *file, *want;
        } rows[] = {
                { "rollback lkg", "rollback", "lkg" }, { "rollback 41", "rollback", "41" },
                { "promote", "promote", "now" },       { "promote now", "promote", "now" },
                { "forget u-1@7", "forget", "u-1@7" }, { "forget all", "forget", "all" },
                { "startup", "startup", "now" },       { "startup 4711", "startup", "4711" },
                { "hold on", "hold", "on" },           { "sync", "sync", "now" },
                { "sync now", "sync", "now" },         { "try 5m", "try", "5m" },
                { "commit", "commit", "now" },
        };
        struct fixture *f = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char path[64], *text;

                (void)snprintf(path, sizeof(path), "control/" COMPONENT "/%s", rows[i].file);
                put(f, path, "");
                assert_int_equal(call(f, rows[i].args), 0);
                text = get(f, path);
                assert_string_equal(text, rows[i].want);
                free(text);
        }
        assert_int_equal(call(f, "rollback"), LKG_TOOL_USAGE);
        assert_int_equal(call(f, "forget"), LKG_TOOL_USAGE);
        assert_int_equal(call(f, "promote now now"), LKG_TOOL_USAGE);
}

/* ---- status ---- */

TEST_WITH(test_status_of_a_local_configuration_has_no_more_lines, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/assigned", "init\n");
        put(f, "status/" COMPONENT "/active", "init\n");
        put(f, "status/" COMPONENT "/last-known-good", "local@0123456789ab\n");
        put(f, "status/" COMPONENT "/trial",
            "state=idle\nstarted=\ndeadline=\nprior_starts=0\nthreshold=10\n");
        assert_int_equal(call(f, "status"), 0);
        assert_null(strstr(f->out, "\n  assigned"));
        assert_null(strstr(f->out, "\n  trial"));
        assert_null(strstr(f->out, "\n  bad"));
        assert_says(f, "status -o json", 0, "\"bad\": 0");
        assert_non_null(strstr(f->out, "\"state\": \"idle\""));
        assert_null(strstr(f->out, "\"deadline\""));
}

TEST_WITH(test_status_of_a_trial, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/assigned", "u-1@7 kube-system/kubelet-config\n");
        put(f, "status/" COMPONENT "/active", "u-1@7 kube-system/kubelet-config\n");
        put(f, "status/" COMPONENT "/last-known-good", "init\n");
        put(f, "status/" COMPONENT "/trial",
            "state=running\nstarted=2026-11-21T10:00:00Z\ndeadline=2026-11-21T10:10:00Z\nprior_starts=1\n"
            "threshold=10\nlater=x\n");
        assert_says(f, "status", 0,
                    "\n  assigned  u-1@7 kube-system/kubelet-config\n"
                    "  active    u-1@7 kube-system/kubelet-config\n"
                    "  last good init\n"
                    "  trial     running since 2026-11-21T10:00:00Z until "
                    "2026-11-21T10:10:00Z, 1 start, threshold 10\n");
        assert_null(strstr(f->out, "\n  bad"));
        assert_non_null(strstr(f->out, "`lkgfs promote --component kubelet`"));
        assert_says(f, "status -o json", 0, "\"priorStarts\": 1");
        assert_non_null(strstr(f->out, "\"deadline\": \"2026-11-21T10:10:00Z\""));
}

TEST_WITH(test_status_of_a_bad_one_says_how_to_forgive, setup, teardown)
{
        static const char *const names[] = { "u-1@7", "u-1" };
        struct fixture *f = *state;

        condition(f, "False", "current failed", "using last-known-good (init)");
        put(f, "status/" COMPONENT "/assigned", "u-1@7 kube-system/kubelet-config\n");
        put(f, "status/" COMPONENT "/active", "init\n");
        put(f, "bad/" COMPONENT "/u-1@70", "{}");
        assert_says(f, "status", 1, "\n  bad       1 configuration (`lkgfs bad`)\n");
        for (size_t i = 0; i < LKG_ARRAY_SIZE(names); i++) {
                char path[64], want[256];

                (void)snprintf(path, sizeof(path), "bad/" COMPONENT "/%s", names[i]);
                (void)snprintf(want, sizeof(want), "`lkgfs forget %s --component kubelet`", names[i]);
                put(f, path, "{}");
                assert_says(f, "status", 1, "configurations, the assigned one too (`lkgfs bad`)\n");
                assert_non_null(strstr(f->out, want));
                assert_int_equal(call(f, "forget x"), LKG_TOOL_FAILED);
                (void)snprintf(want, sizeof(want), "%s/v/%s", f->dir, path);
                assert_int_equal(unlink(want), 0);
        }
}

/* Whatever is wrong: a fix is not served before the hold ends. */
TEST_WITH(test_status_of_a_hold_ends_it_first, setup, teardown)
{
        struct fixture *f = *state;

        hold(f, "rollback", "waits");
        assert_says(f, "status", 0,
                    "\n  held      at generation 5 (rollback) since 2026-11-21T10:00:00Z by "
                    "uid 0 (pid 4711, bash); a newer one waits\n");
        assert_non_null(strstr(f->out,
                               "\n  next      `lkgfs hold off --component kubelet` follows the files "
                               "again\n"));
        condition(f, "False", "failed to validate current (init), 1 error",
                  "using current (init); held since 2026-11-21T10:00:00Z at generation 5");
        put_findings(f, COMPONENT, "a.conf:1:1: error: wrong [LKG1001]\n");
        assert_says(f, "status", 1,
                    "\n  next      `lkgfs hold off --component kubelet` follows the files "
                    "again; then correct the files that the findings name");
        put_findings(f, COMPONENT, "");
        put(f, "status/" COMPONENT "/assigned", "u-1@7 kube-system/kubelet-config\n");
        put(f, "status/" COMPONENT "/active", "init\n");
        put(f, "bad/" COMPONENT "/u-1@7", "{}");
        assert_says(f, "status", 1, "again; then assign a corrected ConfigMap, or let this one");
        hold(f, "try-expired", "waits");
        assert_says(f, "status -o json", 1, "\"newerWaits\": true");
        assert_says(f, "status", 1,
                    " (try-expired) since 2026-11-21T10:00:00Z, after a try by uid 0 (pid "
                    "4711, bash); a newer one waits\n");
        assert_non_null(strstr(f->out, "with the change that was tried: repair it before"));
        hold(f, "free", "none");
        assert_int_equal(call(f, "status"), 1);
        assert_null(strstr(f->out, "\n  held"));
        assert_non_null(strstr(f->out, "\n  next      assign a corrected ConfigMap"));
}

/* It does not rely on the words of a condition. */
TEST_WITH(test_status_of_words_about_a_hold, setup, teardown)
{
        struct fixture *f = *state;

        condition(f, "False", "marked bad (UID: u-1): held at the airport, on try", "using current (init)");
        assert_int_equal(call(f, "status"), 1);
        assert_null(strstr(f->out, "hold off"));
        assert_null(strstr(f->out, "lkgfs commit"));
}

TEST_WITH(test_status_of_a_try_and_of_a_rollout, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/hold",
            "mode=free\ntry=running\nuntil=2026-11-21T10:10:00Z\nrollout=\n");
        assert_says(f, "status", 0, "\n  try       until 2026-11-21T10:10:00Z\n");
        assert_non_null(strstr(f->out, "`lkgfs commit --component kubelet` keeps the tried change"));
        put(f, "status/" COMPONENT "/hold", "mode=free\ntry=none\nuntil=\nrollout=rollout halted\n");
        assert_says(f, "status", 0, "\n  rollout   rollout halted\n");
        assert_non_null(strstr(f->out, "\n  next      nothing to do here: the rollout has not reached"));
}

TEST_WITH(test_status_of_drift, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/drift",
            "/a\t1\t2\n/b\t\"<masked>\"\t-\nno field\n/c\t-\t[1]\n/d\ttrue\tfalse\n");
        assert_says(f, "status", 0,
                    "\n  drift     /a runs with 1, served is 2\n"
                    "            /b runs with \"<masked>\", served is nothing\n"
                    "            /c runs with nothing, served is [1]\n"
                    "            and 1 more: lkgfs drift\n");
        assert_non_null(strstr(f->out, "\n  next      restart the component when that is convenient"));
        assert_int_equal(call(f, "drift"), 1);
        assert_string_equal(f->out, "FIELD  RUNNING     SERVED\n"
                                    "/a     1           2\n"
                                    "/b     \"<masked>\"  -\n"
                                    "/c     -           [1]\n"
                                    "/d     true        false\n");
        assert_says(f, "drift -o json", 1, "\"field\": \"/c\"");
        assert_null(strstr(f->out, "\"running\": \"-\""));
        put(f, "status/" COMPONENT "/drift", "");
        assert_int_equal(call(f, "drift"), 0);
        assert_string_equal(f->out, "");
}

TEST_WITH(test_drift_of_a_process_nobody_has_seen, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/drift", "");
        assert_int_equal(call(f, "drift"), 0); /* an earlier daemon does not report it */
        put(f, "status/" COMPONENT "/process", "unit=\npid=\ngeneration=\nversion=\n");
        assert_int_equal(call(f, "drift"), 0);
        put(f, "status/" COMPONENT "/process", "unit=\npid=4711\ngeneration=\nversion=\n");
        assert_complains(f, "drift", 2,
                         COMPONENT " runs as process 4711, and what that has read is not known");
        assert_says(f, "drift -o json", 2, "\"unseenProcess\": 4711");
        (void)call(f, "status");
        assert_non_null(strstr(f->out, "\n  drift     runs as process 4711"));
        put(f, "status/" COMPONENT "/process", "unit=\npid=4711\ngeneration=7\nversion=\n");
        assert_int_equal(call(f, "drift"), 0);
        (void)call(f, "status");
        assert_null(strstr(f->out, "\n  drift "));
}

/*
 * Nine errors, a warning and poison among them: poison comes first, and findings that do not fit are
 * counted.
 */
TEST_WITH(test_status_shows_poison_first, setup, teardown)
{
        struct fixture *f = *state;
        const char *poison, *error;

        put_findings(f, COMPONENT,
                     "a.conf:1:1: note: n [LKG1005]\na.conf:2:1: warning: w [LKG1004]\n"
                     "a.conf:3:1: error: e1 [LKG1001]\na.conf:4:1: error: e2 [LKG1001]\n"
                     "a.conf:5:1: error: e3 [LKG1001]\na.conf:6:1: error: e4 [LKG1001]\n"
                     "a.conf:7:1: error: e5 [LKG1001]\na.conf:8:1: error: e6 [LKG1001]\n"
                     "a.conf:9:1: error: e7 [LKG1001]\na.conf:10:1: error: e8 [LKG1001]\n"
                     "b.conf: error: p [LKG2030]\n");
        (void)call(f, "status");
        poison = strstr(f->out, "b.conf: error: p");
        error = strstr(f->out, "a.conf:3:1");
        assert_true(poison && error && poison < error);
        assert_null(strstr(f->out, "a.conf:10:1"));
        assert_null(strstr(f->out, "a.conf:2:1"));
        assert_null(strstr(f->out, "a.conf:1:1"));
        assert_non_null(strstr(f->out, "    and 2 more\n    1 note: lkgfs status --all\n"));
}

TEST_WITH(test_status_takes_findings_json, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/findings.json",
            "{\"schemaVersion\":1,\"notListed\":7,\"findings\":[{\"severity\":\"warning\",\"code\":"
            "\"LKG1004\",\"text\":\"x: error: y\",\"file\":\"a: error: b\",\"line\":3,\"column\":4},"
            "{\"severity\":\"grave\",\"code\":\"LKG1004\",\"text\":\"t\"},{\"code\":\"LKG1004\"},5,"
            "{\"severity\":\"note\",\"code\":\"LKG\",\"text\":\"t\",\"line\":-1}]}\n");
        assert_says(f, "status", 0,
                    "\n  findings  1 warning, 1 note\n    a: error: b:3:4: warning: x: error: y "
                    "[LKG1004]\n    and 7 more\n");
        assert_says(f, "status -o json", 0, "\"file\": \"a: error: b\"");
        assert_non_null(strstr(f->out, "\"notListed\": 7"));
        put(f, "status/" COMPONENT "/findings.json", "{\"findings\":5}");
        assert_says(f, "status", 0, "\n  findings  none\n");
}

/* Many errors of another component leave room for the worst one of this component. */
TEST_WITH(test_status_has_room_for_each_component, setup, teardown)
{
        struct fixture *f = *state;
        char path[TMPDIR_MAX + 32];

        (void)snprintf(path, sizeof(path), "%s/v/status/a", f->dir);
        assert_int_equal(mkdir(path, 0755), 0);
        put(f, "status/a/condition", "False r: m\n");
        put_findings(f, "a",
                     "x:1:1: error: e [LKG1001]\nx:2:1: error: e [LKG1001]\nx:3:1: error: e [LKG1001]\n"
                     "x:4:1: error: e [LKG1001]\nx:5:1: error: e [LKG1001]\nx:6:1: error: e [LKG1001]\n"
                     "x:7:1: error: e [LKG1001]\nx:8:1: error: e [LKG1001]\nx:9:1: error: e [LKG1001]\n");
        put_findings(f, COMPONENT, "y:1:1: warning: w [LKG1004]\n");
        assert_says(f, "status", 1, "x:7:1: ");
        assert_null(strstr(f->out, "x:8:1: "));
        assert_non_null(strstr(f->out, "y:1:1: warning: w"));
        assert_non_null(strstr(f->out, "    and 2 more\n"));
}

TEST_WITH(test_status_with_damaged_files_says_what_is_left, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/assigned", "u-1@7 \x1b[1mx\n");
        put(f, "status/" COMPONENT "/trial", "state\n=\nprior_starts=many\nthreshold=-1\nstate=running\n\n");
        assert_says(f, "status", 0, "\n  assigned  u-1@7 \\x1b[1mx\n");
        assert_non_null(strstr(f->out, "\n  trial     running\n"));
}

int main(void)
{
        return run_all(NULL, NULL);
}
