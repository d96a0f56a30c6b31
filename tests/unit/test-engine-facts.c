/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Release and command line of a component: reading them, which one counts, and what an engine does with
 * them. The component is another instance of this program, with the flags of the test.
 * Rule: docs/specification.md 6.6.
 */
#define UNIT_OWN_MAIN

#include <signal.h>
#include <sys/wait.h>

#include "engine-node.h"

uint64_t lkg_process_start_time(int pid); /* from lkg/shared.h, which the engine does not need otherwise */

#define EFFECTIVE "status/kubelet/effective.yaml"

/* ---- the component ---- */

static pid_t child;

/* Returns once it runs with its flags. */
static pid_t run(const char *flag)
{
        int ends[2];
        char c;

        assert_int_equal(pipe(ends), 0);
        child = fork();
        if (child == 0) {
                if (dup2(ends[1], STDOUT_FILENO) < 0)
                        _exit(1);
                closefrom(3);
                execl("/proc/self/exe", "kubelet", "--config=/in/a/container", flag, (char *)NULL);
                _exit(1);
        }
        assert_true(child > 0);
        assert_int_equal(close(ends[1]), 0);
        assert_int_equal(read(ends[0], &c, 1), 1);
        assert_int_equal(close(ends[0]), 0);
        return child;
}

static void end(void)
{
        if (child <= 0)
                return;
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        child = 0;
}

/* Exit without a signal; a killed component is handled differently. */
static void end_by_itself(void)
{
        int status;

        assert_int_equal(kill(child, SIGUSR1), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        child = 0;
}

static int end_all(void **state)
{
        end();
        return teardown(state);
}

static int started_on(struct node *n, pid_t pid, uint64_t generation)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_STARTED);
        m.pid = pid;
        m.component = 0;
        m.start_time = lkg_process_start_time(pid);
        m.number = generation;
        return ask(n, &m, ++n->ticket);
}

static int started(struct node *n, pid_t pid)
{
        return started_on(n, pid, 0);
}

/* As the supervisor writes it. */
static void put_fact(struct node *n, const char *name, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_closep) int fd = open_dir(n, "runtime/facts/kubelet", O_RDONLY);

        assert_int_equal(lkg_write_file_atomic(fd, name, data, size, 0600, false, NULL), 0);
}

/* A file system's clock is coarse: make later files clearly later. */
static void put_unit(struct node *n, const char *words, size_t size, int seconds)
{
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                           { .tv_sec = (time_t)(lkg_realtime_ns() / LKG_NSEC_PER_SEC) +
                                                       seconds } };

        put_fact(n, "exec-start", words, size);
        assert_int_equal(utimensat(AT_FDCWD, at(n, "runtime/facts/kubelet/exec-start"), times, 0), 0);
}
#define PUT_UNIT(n, words, seconds) put_unit(n, words, sizeof(words) - 1, seconds)

/* ---- reading ---- */

static void test_releases(void **state)
{
        static const struct {
                const char *text;
                unsigned release;
        } cases[] = {
                { "Kubernetes v1.36.3", 136 },
                { "Kubernetes v1.33.4-eks-5a3b", 133 },
                { "Kubernetes v1.36.0+k3s1", 136 },
                { "Kubernetes v1.7.0", 107 },
                { "Kubernetes v2.0.1", 200 },
                { "Kubernetes v1.200.0", 199 },
                { "Kubernetes v1.36", 0 },
                { "Kubernetes 1.36.3", 0 },
                { "kubelet v1.36.3", 0 },
                { "", 0 },
                { "Kubernetes v0.0.0-master", 0 },
                { "Kubernetes v1.99999999999999999.0", 0 },
                { "Python 3.11.2", 0 },
                { "Kubernetes v1.-3.0", 0 },
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++)
                if (lkg_facts_release(cases[i].text) != cases[i].release)
                        fail_msg("%s gives %u", cases[i].text, lkg_facts_release(cases[i].text));
}

static void test_words(void **state)
{
        static const char data[] = "--a\0\0--b=c d\0last";
        struct lkg_strings words, copy;

        (void)state;
        assert_int_equal(lkg_strings_parse(data, sizeof(data) - 1, &words), 0);
        assert_int_equal(words.n_items, 4);
        assert_string_equal(words.items[1], "");
        assert_string_equal(words.items[2], "--b=c d");
        assert_string_equal(words.items[3], "last");
        assert_int_equal(lkg_strings_copy(&words, &copy), 0);
        assert_true(lkg_strings_equal(&words, &copy));
        lkg_strings_deinit(&copy);
        assert_false(lkg_strings_equal(&words, &copy));
        lkg_strings_deinit(&words);
        assert_int_equal(lkg_strings_parse("", 0, &words), 0);
        assert_int_equal(words.n_items, 0);
}

static void test_value_of_one_flag(void **state)
{
        static const struct {
                const char *words[6], *want;
        } cases[] = {
                { { "--config=/a" }, "/a" },
                { { "--config", "/a" }, "/a" },
                { { "--config=/a", "--config=/b" }, "/b" },
                { { "--config-dir=/d" }, NULL },
                { { "--config=" }, "" },
                { { "--config" }, NULL },
                { { "--hostname-override", "--config=/a" }, NULL }, /* the value of another flag */
                { { "--fail-swap-on", "--config=/a" }, "/a" },      /* a bool takes no separate word */
                { { "-v", "2", "--config=/a" }, "/a" },
                { { "-v2", "--config=/a" }, "/a" },
                { { "--", "--config=/a" }, NULL },
        };

        (void)state;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(cases); i++) {
                struct lkg_strings words = { (char **)(uintptr_t)cases[i].words, 0 };
                const char *got;

                while (words.n_items < 6 && words.items[words.n_items])
                        words.n_items++;
                got = lkg_flag_on_line(lkg_kubelet_flags, lkg_n_kubelet_flags, &words, "config");
                if (!got != !cases[i].want || (got && strcmp(got, cases[i].want) != 0))
                        fail_msg("case %zu gives %s", i, got ? got : "nothing");
        }
}

/* ---- an engine ---- */

static void begin(struct node *n)
{
        put(n, "source/kubelet.conf", HEADER "failCgroupV1: false\nmaxPods: 100\n");
        start(n);
}

static void test_unknown_component(void **state)
{
        struct node *n = *state;

        begin(n);
        assert_has(n, EFFECTIVE, "defaults of release 1.37, its command line is not known;");
        assert_has(n, EFFECTIVE, "maxPods: 100 # base kubelet.conf\n");
        assert_has(n, EFFECTIVE, "port: 10250 # default\n");
}

static void test_the_supervisor_learns_something(void **state)
{
        static const char version[] = "Kubernetes v1.34.1\n1 2 3 4\n";
        struct node *n = *state;

        begin(n);
        put_fact(n, "version", version, sizeof(version) - 1);
        turn_until(n, EFFECTIVE, "release 1.34,");
        PUT_UNIT(n, "--max-pods=70\0", 0);
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        assert_has(n, EFFECTIVE, "flags of its unit;");
        assert_int_equal(generation(n), 1);
        assert_int_equal(unlink(at(n, "runtime/facts/kubelet/exec-start")), 0);
        turn_until(n, EFFECTIVE, "maxPods: 100 # base kubelet.conf\n");
}

static void test_a_process_comes_and_goes(void **state)
{
        struct node *n = *state;
        struct lkg_message m = { 0 };

        begin(n);
        PUT_UNIT(n, "--max-pods=60\0", -100);
        turn_until(n, EFFECTIVE, "maxPods: 60 # flag --max-pods\n");
        assert_int_equal(started(n, run("--max-pods=70")), 0);
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        assert_has(n, EFFECTIVE, "flags of the running process;");
        while (m.type != LKG_MSG_STARTED) /* the supervisor may ask for its version now */
                assert_int_equal(hear(n, &m), 1);
        end();
        turn_until(n, EFFECTIVE, "flags of the process that ran last;");
        assert_has(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        PUT_UNIT(n, "--max-pods=80\0", 100); /* the unit has been changed */
        turn_until(n, EFFECTIVE, "maxPods: 80 # flag --max-pods\n");
        assert_int_equal(started(n, run("--v=2")), 0);
        turn_until(n, EFFECTIVE, "maxPods: 100 # base kubelet.conf\n");
}

static void test_a_process_that_is_gone_already(void **state)
{
        struct node *n = *state;
        pid_t pid;

        begin(n);
        pid = run("--max-pods=70");
        end();
        assert_int_equal(started(n, pid), 0);
        assert_has(n, EFFECTIVE, "its command line is not known;");
}

static void test_the_older_process_counts_when_the_newer_ends(void **state)
{
        struct node *n = *state;
        pid_t older, newer;

        begin(n);
        older = run("--max-pods=70");
        assert_int_equal(started(n, older), 0);
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag");
        newer = run("--max-pods=80"); /* started by hand */
        assert_int_equal(started(n, newer), 0);
        turn_until(n, EFFECTIVE, "maxPods: 80 # flag");
        end();
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag");
        assert_has(n, EFFECTIVE, "flags of the running process;");
        child = older;
}

static void test_a_successor_knows_it_too(void **state)
{
        struct node *n = *state;

        begin(n);
        assert_int_equal(started(n, run("--max-pods=70")), 0);
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        stop(n, false);
        start(n);
        assert_has(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        assert_has(n, EFFECTIVE, "flags of the running process;");
        end();
        turn_until(n, EFFECTIVE, "flags of the process that ran last;");
        stop(n, false);
        start(n);
        assert_has(n, EFFECTIVE, "flags of the process that ran last;");
}

static void test_a_command_line_makes_a_candidate_invalid(void **state)
{
        struct node *n = *state;

        begin(n);
        PUT_UNIT(n, "--kube-api-burst=-1\0", 0);
        turn_until(n, "status/kubelet/condition", "False ");
        assert_has(n, "status/kubelet/findings", "--kube-api-burst");
        assert_has(n, "kubelet.conf", "maxPods: 100\n");
        assert_int_equal(generation(n), 1);
        assert_has(n, EFFECTIVE, "maxPods: 100 # base kubelet.conf\n"); /* what is served has not changed */
        PUT_UNIT(n, "--kube-api-burst=5\0", 1);
        turn_until(n, "status/kubelet/condition", "True ");
        assert_int_equal(generation(n), 1);
        assert_has(n, EFFECTIVE, "kubeAPIBurst: 5 # flag --kube-api-burst\n");
}

/* A kubelet inside another program: the document cannot be wrong because of that program's flags. */
static void test_flags_of_another_program_only_warn(void **state)
{
        struct node *n = *state;

        begin(n);
        PUT_UNIT(n, "agent\0--data-dir\0/var/lib/x\0--token=hunter2\0--max-pods=x\0--v=3\0", 0);
        turn_until(n, "status/kubelet/findings", "\"data-dir\"");
        assert_has(n, "status/kubelet/condition", "True ");
        assert_has(n, "status/kubelet/findings", "--max-pods");
        assert_has(n, EFFECTIVE, "verbosity: 3 # flag --v\n");
        assert_has(n, EFFECTIVE, "maxPods: 100 # base kubelet.conf\n");
        assert_false(has(n, "status/kubelet/findings", "hunter2"));
        assert_false(has(n, "status/kubelet/findings", "/var/lib/x"));
}

static void test_credentials_of_the_command_line_are_not_shown(void **state)
{
        struct node *n = *state;

        begin(n);
        PUT_UNIT(n,
                 "--manifest-url-header=Authorization:hunter2\0--manifest-url=http://u:hunter2@h/\0"
                 "--max-pods=70\0",
                 0);
        turn_until(n, EFFECTIVE, "maxPods: 70 # flag --max-pods\n");
        assert_has(n, EFFECTIVE, "staticPodURLHeader:");
        assert_false(has(n, EFFECTIVE, "hunter2"));
        assert_false(has(n, "status/kubelet/findings", "hunter2"));
        PUT_UNIT(n, "--manifest-url-header=hunter2\0", 1); /* nor if it is wrong */
        turn_until(n, "status/kubelet/findings", "--manifest-url-header");
        assert_false(has(n, "status/kubelet/findings", "hunter2"));
}

/* The event of its end is handled after the change: the change is still not the cause. */
static void test_a_crash_before_a_change_is_no_answer_to_it(void **state)
{
        struct node *n = *state;
        const struct lkg_component *c;

        begin(n);
        c = &n->engine->components[0];
        assert_int_equal(started_on(n, run("--v=2"), 1), 0);
        end_by_itself();
        put_dropin(n, "50-x.conf", "maxPods: 9\n");
        assert_int_equal(changed(n, "kubelet.conf.d/50-x.conf"), 0);
        assert_int_equal(generation(n), 2);
        turn_until(n, EFFECTIVE, "flags of the process that ran last;");
        assert_false(c->process.own_event);
}

/* The next start is reported before the event of the end is handled. */
static void test_an_end_after_a_change_is_an_answer_to_it(void **state)
{
        struct node *n = *state;
        struct lkg_component *c;

        begin(n);
        c = &n->engine->components[0];
        assert_int_equal(started_on(n, run("--v=2"), 1), 0);
        put_dropin(n, "50-x.conf", "maxPods: 9\n");
        assert_int_equal(changed(n, "kubelet.conf.d/50-x.conf"), 0);
        end_by_itself();
        c->process.served_ns = lkg_boottime_ns();
        assert_int_equal(started_on(n, run("--v=3"), 2), 0);
        assert_int_equal(c->dynamic->startups.n_items, 2);
        assert_false(c->dynamic->startups.items[1].counted);
}

/* Its open is repeated: it reads what is served now, whatever it was about to read. */
static void test_who_is_sent_back_reads_what_is_served(void **state)
{
        struct node *n = *state;

        begin(n);
        put_dropin(n, "50-x.conf", "maxPods: 9\n");
        assert_int_equal(changed(n, "kubelet.conf.d/50-x.conf"), 0);
        assert_int_equal(started_on(n, run("--v=2"), 1), -ESTALE);
        assert_int_equal(n->engine->components[0].facts->processes[0].generation, 2);
}

static void test_schema_release(void **state)
{
        static const char version[] = "Kubernetes v1.22.1\n1 2 3 4\n";
        struct node *n = *state;

        begin(n);
        put_fact(n, "version", version, sizeof(version) - 1);
        turn_until(n, "status/kubelet/findings",
                   "kubelet is of release 1.22, for which there are no tables");
        assert_has(n, EFFECTIVE, "release 1.33,");
        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
            "components: [{name: kubelet, schemaRelease: 1.35}]\n");
        lkg_engine_reload(n->engine);
        assert_has(n, EFFECTIVE, "release 1.35,");
        assert_false(has(n, "status/kubelet/findings", "LKG4017"));
}

/*
 * While the service manager is asked why it started, its open() waits: the clock of the trial does not run.
 */
static void test_waiting_for_an_answer_is_no_life(void **state)
{
        struct node *n = *state;
        struct lkg_message m;
        struct lkg_component *c;
        char fact[80];

        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\ntrial: {scope: all}\n"
            "components: [{name: kubelet, match: {unit: kubelet.service}}]\n");
        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        c = &n->engine->components[0];
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        assert_int_equal(c->dynamic->trial.running_since_ns, 0);
        (void)run("--v=2");
        lkg_message_init(&m, LKG_MSG_STARTED);
        m.component = 0;
        m.pid = child;
        m.start_time = lkg_process_start_time(child);
        m.number = c->active->number;
        m.ticket = ++n->ticket;
        assert_int_equal(lkg_message_send(n->client, &m), 0);
        while (n->engine->starts.n == 0)
                turn(n, 1000);
        lkg_engine_cycle(n->engine, /* look= */ true);
        assert_int_equal(c->facts->n_processes, 1);
        assert_int_equal(c->dynamic->trial.running_since_ns, 0);
        (void)snprintf(fact, sizeof(fact), "%d %" PRIu64 " automatic\n", (int)child, m.start_time);
        put_fact(n, "start", fact, strlen(fact)); /* the manager's reply: the open is answered */
        while (n->engine->starts.n > 0)
                turn(n, 1000);
        assert_int_not_equal(c->dynamic->trial.running_since_ns, 0);
        end();
        while (c->dynamic->trial.running_since_ns)
                turn(n, 1000);
}

/* The service manager names the main process; a process with the component's name alone is nobody. */
static void test_a_process_that_was_never_seen_reading(void **state)
{
        struct node *n = *state;
        char text[80];

        put(n, "etc/config.yaml",
            "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"
            "components: [{name: kubelet, match: {unit: kubelet.service}}]\n");
        start(n);
        (void)run("--v=2");
        assert_has(n, "status/kubelet/process", "\npid=\n");
        (void)snprintf(text, sizeof(text), "%d %" PRIu64 " manual\n", (int)child,
                       lkg_process_start_time(child));
        put_fact(n, "start", text, strlen(text));
        (void)snprintf(text, sizeof(text), "\npid=%d\ngeneration=\n", (int)child);
        while (!has(n, "status/kubelet/process", text))
                turn(n, 1000);
        end();
        put_fact(n, "end", "x", 1);
        while (!has(n, "status/kubelet/process", "\npid=\ngeneration=\n"))
                turn(n, 1000);
}

#undef CASE
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, end_all)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_releases),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_value_of_one_flag),
                CASE(test_unknown_component),
                CASE(test_the_supervisor_learns_something),
                CASE(test_a_process_comes_and_goes),
                CASE(test_a_process_that_is_gone_already),
                CASE(test_the_older_process_counts_when_the_newer_ends),
                CASE(test_a_successor_knows_it_too),
                CASE(test_a_command_line_makes_a_candidate_invalid),
                CASE(test_flags_of_another_program_only_warn),
                CASE(test_credentials_of_the_command_line_are_not_shown),
                CASE(test_a_crash_before_a_change_is_no_answer_to_it),
                CASE(test_an_end_after_a_change_is_an_answer_to_it),
                CASE(test_who_is_sent_back_reads_what_is_served),
                CASE(test_schema_release),
                CASE(test_waiting_for_an_answer_is_no_life),
                CASE(test_a_process_that_was_never_seen_reading),
        };

        if (argc > 1 && strcmp(argv[0], "kubelet") == 0) { /* the component */
                sigset_t signals;
                int number;

                (void)sigemptyset(&signals);
                (void)sigaddset(&signals, SIGUSR1);
                (void)sigprocmask(SIG_BLOCK, &signals, NULL);
                (void)!write(STDOUT_FILENO, "x", 1);
                (void)sigwait(&signals, &number);
                return 1;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
