/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs doctor on views written by hand. Its messages about the node itself depend on the node and are
 * ignored.
 */
#define UNIT_OWN_MAIN

#include <sys/prctl.h>

#include "unit.h"
#include "tool-view.h"

#define REMOTE "u-1@7 kube-system/kubelet-config\n"

/* Does it report anything about the component? */
static bool complains(const struct fixture *f)
{
        return strstr(f->out, ": " COMPONENT ": ");
}

static void remote_on_trial(const struct fixture *f)
{
        put(f, "status/" COMPONENT "/assigned", REMOTE);
        put(f, "status/" COMPONENT "/active", REMOTE);
        put(f, "status/" COMPONENT "/trial", "state=running\nstarted=2026-11-21T10:00:00Z\n");
}

TEST_WITH(test_a_good_node, setup, teardown)
{
        struct fixture *f = *state;

        (void)call(f, "doctor");
        assert_false(complains(f));
        remote_on_trial(f);
        put(f, "status/" COMPONENT "/startups", "[\"2026-11-21T10:00:00Z\"]\n");
        put(f, "status/" COMPONENT "/drift", "");
        (void)call(f, "doctor");
        assert_false(complains(f));
}

TEST_WITH(test_a_condition_that_is_not_true, setup, teardown)
{
        struct fixture *f = *state;

        condition(f, "False", "failed to parse", "using last-known-good (init)");
        assert_says(f, "doctor", 1, "error: kubelet: False failed to parse: using last-known-good (init)\n");
        condition(f, "Unknown", "engine not ready", "m");
        assert_says(f, "doctor", 1, "warning: kubelet: Unknown engine not ready: m\n");
        put(f, "status/" COMPONENT "/generation", "0\n");
        assert_says(f, "doctor", 1, "error: kubelet: no document is served\n");
}

static void processes(const struct fixture *f, int lkgfsd, int notify, int engine)
{
        char text[512];

        (void)snprintf(text, sizeof(text),
                       "# TYPE lkgfs_process_up gauge\n"
                       "lkgfs_process_up{component=\"kubelet\",process=\"lkgfsd\"} %d\n"
                       "lkgfs_process_up{component=\"kubelet\",process=\"lkgfs-engine\"} %d\n"
                       "lkgfs_process_up{component=\"kubelet\",process=\"lkgfs-fs\"} 1\n"
                       "lkgfs_process_up{component=\"kubelet\",process=\"lkgfs-notify\"} %d\n"
                       "lkgfs_engine_up{component=\"kubelet\"} %d\n",
                       lkgfsd, engine, notify, engine);
        put(f, "status/" COMPONENT "/metrics.prom", text);
}

TEST_WITH(test_a_process_that_ends_again_and_again, setup, teardown)
{
        static const char up[] =
                "lkgfs_process_up{component=\"kubelet\",process=\"lkgfs-engine\"} 1\n"
                "lkgfs_engine_up{component=\"kubelet\"} 1\n"
                "lkgfs_process_restarts_total{component=\"kubelet\",process=\"lkgfs-engine\"} 7000\n"
                "lkgfs_process_restarts_recent{component=\"kubelet\",process=\"lkgfs-engine\",";
        struct fixture *f = *state;
        char text[1024];

        condition(f, "True", "all checks passed", "using init");
        (void)snprintf(text, sizeof(text), "%sreason=\"exit code 70\"} 3\n", up);
        put(f, "status/" COMPONENT "/metrics.prom", text);
        assert_int_equal(call(f, "doctor"), 0);
        assert_null(strstr(f->out, "lkgfs-engine"));
        assert_int_equal(call(f, "status"), 0);
        (void)snprintf(text, sizeof(text), "%sreason=\"killed by SIGKILL\"} 600\n", up);
        put(f, "status/" COMPONENT "/metrics.prom", text);
        assert_int_equal(call(f, "doctor"), 1);
        assert_non_null(strstr(
                f->out,
                "warning: lkgfs-engine ended 600 times within a minute, the last time: killed by SIGKILL\n"
                "    journalctl -u lkgfs shows each end"));
        assert_says(f, "status", 1,
                    "\n  processes lkgfs-engine ended 600 times within a minute, the "
                    "last time: killed by SIGKILL\n");
        assert_non_null(strstr(f->out, "\n  next      journalctl -u lkgfs shows each end"));
}

/*
 * A node whose package made no user: reported once, without a call for action, and not if a user is
 * configured.
 */
TEST_WITH(test_an_engine_that_is_root, setup, teardown)
{
        static const char note[] = "note: the engine runs as root, without capabilities";
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/metrics.prom", "lkgfs_engine_user_missing{component=\"kubelet\"} 1\n");
        assert_says(f, "doctor", 0, note);
        assert_null(strstr(strstr(f->out, note) + 1, note));
        put_findings(
                f, COMPONENT,
                "/etc/lkgfs/config.yaml:3:13: warning: engineUser: there is no user \"x\" on this machine; "
                "the engine runs as root [LKG3022]\n");
        assert_int_equal(call(f, "doctor"), 1);
        assert_null(strstr(f->out, note));
        assert_non_null(strstr(f->out, "warning: kubelet: configuration of lkgfs: "));
        put_findings(f, COMPONENT, "");
        put(f, "status/" COMPONENT "/metrics.prom", "lkgfs_engine_user_missing{component=\"kubelet\"} 0\n");
        assert_int_equal(call(f, "doctor"), 0);
        assert_null(strstr(f->out, note));
}

TEST_WITH(test_processes_that_are_missing, setup, teardown)
{
        struct fixture *f = *state;

        processes(f, 1, 1, 1);
        (void)call(f, "doctor");
        assert_false(complains(f));
        assert_null(strstr(f->out, "does not run"));
        processes(f, 0, 1, 1);
        assert_says(f, "doctor", 1, "error: lkgfsd does not run: nothing that ends is started again");
        assert_non_null(strstr(f->out, "it takes the view over"));
        assert_null(strstr(f->out, "lkgfs-notify"));
        processes(f, 0, 0, 1);
        assert_says(f, "doctor -o json", 1, "lkgfs-notify does not run: nobody who watches a file");
        assert_says(f, "status", 1, "  processes lkgfsd, lkgfs-notify do not run\n");
        assert_non_null(strstr(f->out, "  next      `systemctl start lkgfs`"));
        processes(f, 1, 0, 1);
        assert_says(f, "status -o json", 1, "\"lkgfs-notify\": false");
        assert_non_null(strstr(f->out, "\"lkgfsd\": true"));
}

TEST_WITH(test_an_engine_that_is_silent, setup, teardown)
{
        struct fixture *f = *state;

        processes(f, 1, 1, 0);
        condition(f, "Unknown", "engine not answering since 2026-11-21T10:00:00Z", "using current (init)");
        assert_says(f, "doctor", 1, "error: kubelet: Unknown engine not answering since ");
        assert_non_null(strstr(f->out, "commands fail until then"));
        assert_null(strstr(f->out, "does not run")); /* it is replaced all the time */
        assert_says(f, "status", 1, "next      look into the log of lkgfsd");
}

TEST_WITH(test_stored_state_that_was_lost, setup, teardown)
{
        struct fixture *f = *state;

        put_findings(f, COMPONENT,
                     "a.conf:1:1: error: wrong [LKG1001]\n"
                     "/x/pointers.json: warning: cannot be read [LKG6012]\nwarning: lost "
                     "[LKG4005]\n");
        assert_says(f, "doctor", 1,
                    "warning: kubelet: stored state: /x/pointers.json: warning: cannot be "
                    "read [LKG6012]\n    ");
        assert_non_null(strstr(f->out, " (`lkgfs explain LKG6012`)\n"));
        assert_non_null(strstr(f->out, "stored state: warning: lost [LKG4005]\n"));
}

/* With place and cure, so that nothing else has to be called; at most eight. */
TEST_WITH(test_errors_in_documents, setup, teardown)
{
        struct fixture *f = *state;
        char text[1024] = "a.conf:1:1: warning: odd [LKG1005]\n";

        condition(f, "False", "failed to validate current (init)", "using current (init)");
        for (unsigned i = 1; i <= 10; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                               "10-a.conf:%u:9: error: wrong [LKG1001]\n", i);
        put_findings(f, COMPONENT, text);
        assert_says(f, "doctor", 1,
                    "error: kubelet: 10-a.conf:1:9: error: wrong [LKG1001]\n    Correct the "
                    "document at the place named");
        assert_non_null(strstr(f->out, "10-a.conf:8:9: "));
        assert_null(strstr(f->out, "10-a.conf:9:9: "));
        assert_non_null(strstr(f->out, "error: kubelet: 2 more findings like these\n"));
        assert_null(strstr(f->out, "LKG1005"));
}

TEST_WITH(test_an_api_server_that_cannot_be_asked, setup, teardown)
{
        struct fixture *f = *state;

        put_findings(f, COMPONENT, "note: warning: the credential is not the node's [LKG7008]\n");
        assert_int_equal(call(f, "doctor"), 0);
        put_findings(f, COMPONENT,
                     "/k:1:2: error: want a kubeconfig [LKG7001]\n"
                     "warning: API server not reached [LKG7006]\n");
        assert_int_equal(call(f, "doctor"), 1);
        assert_non_null(strstr(
                f->out, "error: kubelet: API server: /k:1:2: error: want a kubeconfig [LKG7001]\n    "));
        assert_non_null(strstr(f->out, " (`lkgfs explain LKG7001`)\n"));
        assert_non_null(strstr(f->out, "warning: kubelet: API server: warning: API server not reached "
                                       "[LKG7006]\n    "));
}

/* The condition is about the documents, and remains True. */
TEST_WITH(test_a_configuration_that_was_not_reloaded, setup, teardown)
{
        struct fixture *f = *state;

        put_findings(f, COMPONENT, "/c/a~: note: is not read [LKG3014]\n");
        assert_int_equal(call(f, "doctor"), 0);
        put_findings(f, COMPONENT,
                     "error: the configuration was not reloaded, the one before stays in force [LKG4011]\n"
                     "/c.yaml:7:11: error: unknown field \"x\" [LKG3003]\n");
        assert_says(f, "doctor", 1,
                    "error: kubelet: configuration of lkgfs: error: the configuration was "
                    "not reloaded, the one before stays in force [LKG4011]\n    ");
        assert_non_null(strstr(f->out, "configuration of lkgfs: /c.yaml:7:11: error: unknown field"));
}

TEST_WITH(test_assigned_and_not_served, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/assigned", REMOTE);
        put(f, "status/" COMPONENT "/active", "init\n");
        assert_says(f, "doctor", 1,
                    "warning: kubelet: u-1@7 kube-system/kubelet-config is assigned, and init is "
                    "served\n    remote.enabled may be false");
        put(f, "bad/" COMPONENT "/u-1@7", "{}");
        assert_says(f, "doctor", 1, " is assigned and known to be bad; init is served\n");
        assert_non_null(strstr(f->out, "`lkgfs forget u-1@7 --component kubelet`"));
}

/* A process is the component if the engine says so: one with its name (like this test) is not. */
TEST_WITH(test_a_component_whose_starts_nobody_sees, setup, teardown)
{
        static const char unseen[] = "unit=kubelet.service\npid=3823\ngeneration=\nversion=\n";
        struct fixture *f = *state;

        assert_int_equal(prctl(PR_SET_NAME, COMPONENT), 0);
        remote_on_trial(f);
        put(f, "status/" COMPONENT "/startups", "[]\n");
        put(f, "status/" COMPONENT "/drift", "");
        (void)call(f, "doctor"); /* an earlier daemon does not report it */
        assert_null(strstr(f->out, "runs as process"));
        put(f, "status/" COMPONENT "/process", "unit=kubelet.service\npid=\ngeneration=\nversion=\n");
        (void)call(f, "doctor");
        assert_null(strstr(f->out, "runs as process"));

        put(f, "status/" COMPONENT "/process", unseen);
        (void)call(f, "doctor");
        assert_non_null(strstr(
                f->out, "runs as process 3823, but no start of it was ever seen: the trial cannot notice a "
                        "crash loop\n"));
        put(f, "status/" COMPONENT "/startups",
            "[\"2026-11-21T10:00:00Z\"]"); /* once, not since lkgfs was restarted */
        (void)call(f, "doctor");
        assert_null(strstr(f->out, "was ever seen"));
        assert_non_null(strstr(
                f->out,
                "runs as process 3823, and what that has read is not known: it started while lkgfs did "
                "not run, or was not seen, and the trial waits for a process"));
        put(f, "status/" COMPONENT "/process", "unit=\npid=4711\ngeneration=7\nversion=\n");
        (void)call(f, "doctor");
        assert_null(strstr(f->out, "runs as process"));
}

TEST_WITH(test_drift, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "status/" COMPONENT "/drift", "/maxPods\t110\t64\n");
        assert_says(f, "doctor", 1,
                    "warning: kubelet: differs from what is served in 1 field: /maxPods runs "
                    "with 110, served is 64\n    `lkgfs drift` shows all");
        put(f, "status/" COMPONENT "/drift", "/maxPods\t110\t-\n/port\t1\t2\n");
        assert_says(f, "doctor", 1, "in 2 fields: /maxPods runs with 110, served is nothing, ...\n");
}

TEST_WITH(test_a_hold, setup, teardown)
{
        struct fixture *f = *state;

        hold(f, "rollback", "none");
        assert_says(f, "doctor", 0,
                    "note: kubelet: held at generation 5 (rollback) since "
                    "2026-11-21T10:00:00Z by uid 0 (pid 4711, bash); nothing newer waits\n"
                    "    `lkgfs hold off --component kubelet` follows the files again\n");
        hold(f, "hold", "waits");
        assert_says(f, "doctor", 1,
                    "warning: kubelet: held at generation 5 (hold) since "
                    "2026-11-21T10:00:00Z by uid 0 (pid 4711, bash), and a newer one "
                    "waits\n");
        put(f, "status/" COMPONENT "/assigned", REMOTE);
        put(f, "status/" COMPONENT "/active", "init\n");
        assert_says(f, "doctor", 1,
                    "is assigned, and init is served\n    `lkgfs hold off --component "
                    "kubelet` lets it be served\n");
        put(f, "bad/" COMPONENT "/u-1@7", "{}");
        assert_says(f, "doctor", 1,
                    "    `lkgfs hold off --component kubelet`, then assign a corrected "
                    "ConfigMap");
}

/* The reason is in the component's own log. */
TEST_WITH(test_a_crash_loop, setup, teardown)
{
        struct fixture *f = *state;

        put(f, "bad/" COMPONENT "/u-1@6",
            "{\"time\":\"2026-11-20T10:00:00Z\",\"reason\":\"r\",\"cause\":\"crash_loop\"}");
        put(f, "bad/" COMPONENT "/u-1@7",
            "{\"time\":\"2026-11-21T10:00:00Z\",\"reason\":\"r\",\"cause\":\"crash_loop\"}");
        put(f, "bad/" COMPONENT "/u-1@8",
            "{\"time\":\"2026-11-22T10:00:00Z\",\"reason\":\"crash loop\",\"cause\":\"marked\"}");
        assert_says(f, "doctor", 1,
                    "warning: kubelet: crash-looped with u-1@7, which is bad since "
                    "2026-11-21T10:00:00Z\n    `journalctl _COMM=kubelet --until '2026-11-21 "
                    "10:00:00 UTC' -n 50`");
        put(f, "status/" COMPONENT "/process", "unit=kubelet-1.34.service\npid=\ngeneration=\nversion=\n");
        assert_says(f, "doctor", 1,
                    "    `journalctl -u kubelet-1.34.service --until '2026-11-21 10:00:00 "
                    "UTC' -n 50`");
        assert_null(strstr(f->out, "_COMM"));
}

TEST_WITH(test_one_component_or_none, setup, teardown)
{
        struct fixture *f = *state;

        condition(f, "False", "r", "m");
        assert_int_equal(call(f, "doctor --component kube-proxy"), 1);
        assert_false(complains(f));
        assert_non_null(strstr(f->out, "no component \"kube-proxy\""));
        assert_says(f, "doctor -o json --component kubelet", 1, "\"component\": \"kubelet\"");
        assert_non_null(strstr(f->out, "\"schemaVersion\": 1"));
}

TEST_WITH(test_without_a_view, setup, teardown)
{
        struct fixture *f = *state;
        char path[TMPDIR_MAX + 8], away[TMPDIR_MAX + 8];

        (void)snprintf(path, sizeof(path), "%s/v", f->dir);
        (void)snprintf(away, sizeof(away), "%s/w", f->dir);
        assert_int_equal(rename(path, away), 0);
        assert_says(f, "doctor", 1, "/v': lkgfs is not running there\n");
        assert_string_equal(f->err, "");
}

int main(void)
{
        return run_all(NULL, NULL);
}
