/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor learns about components: command lines of units (rows/facts.rows), versions of programs.
 * Rule: docs/specification.md 6.6.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lkg/file.h>

#include "rows.h"
#include "fs/supervisor/facts-collect.h"
#include "tmpdir.h"

/* NUL-terminated words as `a|b|`. */
static char *shown(struct lkg_buf *buf)
{
        assert_false(lkg_buf_failed(buf));
        for (size_t i = 0; i < buf->size; i++)
                if (buf->data[i] == '\0')
                        buf->data[i] = '|';
        return buf->data ? buf->data : (char *)(uintptr_t) "";
}

static void check_words(struct lkg_buf *buf, const char *want)
{
        assert_string_equal(shown(buf), want);
        lkg_buf_deinit(buf);
}

/* ---- the protocol ---- */

static void say_start(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_fact_start start;

        if (lkg_fact_start_parse(q->text, &start)) {
                lkg_fact_start_format(&start, ret);
                assert_string_equal(ret->data, q->text);
        } else
                lkg_buf_puts(ret, "refused");
}

static void say_restarted(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_fact_restarted restarted;

        if (lkg_fact_restarted_parse(q->text, &restarted)) {
                lkg_fact_restarted_format(&restarted, "failed: no such unit", ret);
                lkg_buf_printf(ret, "and its first word: %s", restarted.result);
        } else
                lkg_buf_puts(ret, "refused");
}

static void say_plan_due(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_printf(ret, "%" PRIu64, lkg_fact_plan_due(q->text));
}

/* ---- expansion ---- */

/* The words in an environment, and which names it lacks. */
static void say_expand(const struct question *q, struct lkg_buf *ret)
{
        static const char *const set[] = {
                "ONE=7", "ONE=1", "TWO=a 'b c' d", "EMPTY=", "QUOTED=\"x y\"  it\\'s ", "no assignment"
        };
        struct lkg_strings env = { 0 }, lacking = { 0 };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(set); i++)
                assert_int_equal(lkg_env_set(&env, set[i]), 0);
        lkg_exec_expand(&env, q->text, ret, &lacking);
        (void)shown(ret);
        for (size_t i = 0; i < lacking.n_items; i++)
                lkg_buf_printf(ret, " lacks '%s'", lacking.items[i]);
        lkg_strings_deinit(&lacking);
        lkg_strings_deinit(&env);
}

/* NAME=VALUE| ... */
static void say_environment(const struct question *q, struct lkg_buf *ret)
{
        struct lkg_strings env = { 0 };

        assert_int_equal(lkg_env_parse(&env, q->text, q->size), 0);
        for (size_t i = 0; i < env.n_items; i++)
                lkg_buf_printf(ret, "%s|", env.items[i]);
        lkg_strings_deinit(&env);
}

static const struct operation operations[] = {
        { "start", say_start, 0 },   { "restarted", say_restarted, 0 },     { "plan_due", say_plan_due, 0 },
        { "expand", say_expand, 0 }, { "environment", say_environment, 0 }, { 0 },
};

ROWS(facts, operations)

/* ---- units ---- */

static void put(const char *directory, const char *name, const char *text, mode_t mode)
{
        char path[256];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, text, strlen(text)), 0);
        assert_int_equal(fchmod(fd, mode), 0);
        assert_int_equal(close(fd), 0);
}

TEST(test_words_of_a_unit)
{
        char top[TMPDIR_MAX], files[128], missing[128];
        char *argv[] = { (char *)(uintptr_t) "/usr/bin/kubelet", (char *)(uintptr_t) "$KUBEADM",
                         (char *)(uintptr_t) "$EXTRA" };
        char *environment[] = { (char *)(uintptr_t) "EXTRA=--v=1", (char *)(uintptr_t) "KUBEADM=--v=9" };
        char *list[] = { files, missing };
        struct lkg_unit unit = { .argv = { argv, 3 },
                                 .environment = { environment, 2 },
                                 .files = { list, 2 } };
        struct lkg_buf buf = LKG_BUF_INIT;

        assert_int_equal(tmpdir_make(top), 0);
        put(top, "1.env", "KUBEADM=\"--config=/x --max-pods=70\"\n", 0600);
        (void)snprintf(files, sizeof(files), "%s/*.env", top);
        (void)snprintf(missing, sizeof(missing), "-%s/missing", top);
        assert_int_equal(lkg_unit_words(&unit, &buf), 0);
        check_words(&buf, "--config=/x|--max-pods=70|--v=1|"); /* the file takes precedence */
        unit.verbatim = true;
        assert_int_equal(lkg_unit_words(&unit, &buf), 0);
        check_words(&buf, "$KUBEADM|$EXTRA|");
        list[1]++;
        assert_int_equal(lkg_unit_words(&unit, &buf), -ENOENT); /* the unit would not start */
        lkg_buf_deinit(&buf);
        assert_int_equal(tmpdir_remove(top), 0);
}

/* ---- the service manager: a stand-in at the other end of a socket ---- */

static int append_commands(sd_bus_message *m)
{
        const char *words = "kubelet";
        int r = sd_bus_message_open_container(m, 'e', "sv");

        r |= sd_bus_message_append(m, "s", "ExecStartEx");
        r |= sd_bus_message_open_container(m, 'v', "a(sasasttttuii)");
        r |= sd_bus_message_open_container(m, 'a', "(sasasttttuii)");
        for (int i = 0; i < 2; i++)
                r |= sd_bus_message_append(m, "(sasasttttuii)", "/usr/bin/kubelet", 3, words, "$ARGS",
                                           i ? "second" : "--v=2", 1, "ignore-failure", UINT64_C(1),
                                           UINT64_C(2), UINT64_C(3), UINT64_C(4), 5u, 6, 7);
        r |= sd_bus_message_close_container(m);
        r |= sd_bus_message_close_container(m);
        return (r | sd_bus_message_close_container(m)) < 0 ? -1 : 0;
}

static int append_properties(sd_bus_message *m, bool with_commands)
{
        int r = sd_bus_message_open_container(m, 'a', "{sv}");

        r |= sd_bus_message_append(m, "{sv}", "Type", "s", "notify");
        if (with_commands)
                r |= append_commands(m);
        r |= sd_bus_message_append(m, "{sv}", "Environment", "as", 1, "ARGS=--max-pods=70 --x");
        r |= sd_bus_message_append(m, "{sv}", "EnvironmentFiles", "a(sb)", 1, "/nonexistent/lkgfs", 1);
        r |= sd_bus_message_append(m, "{sv}", "MainPID", "u", 17u);
        return (r | sd_bus_message_close_container(m)) < 0 ? -1 : 0;
}

static int answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
        sd_bus_message *reply = NULL;
        const char *unit = sd_bus_message_get_path(m), *name = "";
        int r;

        (void)userdata;
        (void)error;
        if (sd_bus_message_is_method_call(m, "org.freedesktop.systemd1.Manager", "LoadUnit")) {
                (void)sd_bus_message_read(m, "s", &name);
                if (strcmp(name, "refused.service") == 0)
                        return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_ACCESS_DENIED, "no");
                return sd_bus_reply_method_return(
                        m, "o", strcmp(name, "kubelet.service") == 0 ? "/unit/kubelet" : "/unit/no");
        }
        if (!sd_bus_message_is_method_call(m, "org.freedesktop.DBus.Properties", "GetAll"))
                return 0;
        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = append_properties(reply, strcmp(unit, "/unit/kubelet") == 0);
        if (r >= 0)
                r = sd_bus_send(NULL, reply, NULL);
        sd_bus_message_unref(reply);
        return r < 0 ? r : 1;
}

static void serve(int fd)
{
        sd_id128_t id = { 0 };
        sd_bus *bus = NULL;

        if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_bus_set_server(bus, 1, id) < 0 ||
            sd_bus_add_filter(bus, NULL, answer, NULL) < 0 || sd_bus_start(bus) < 0)
                _exit(1);
        while (sd_bus_process(bus, NULL) >= 0 && sd_bus_wait(bus, UINT64_MAX) >= 0)
                ;
        _exit(0);
}

TEST(test_what_the_service_manager_says)
{
        struct lkg_unit unit = { 0 };
        struct lkg_buf buf = LKG_BUF_INIT;
        sd_bus *bus = NULL;
        int pair[2], status;
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        pid = fork();
        if (pid == 0) {
                (void)close(pair[0]);
                serve(pair[1]);
        }
        assert_true(pid > 0);
        assert_int_equal(close(pair[1]), 0);
        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, pair[0], pair[0]) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        assert_int_equal(lkg_unit_query(bus, "kubelet.service", &unit), 0);
        assert_int_equal(unit.argv.n_items, 3);
        assert_false(unit.verbatim);
        assert_int_equal(unit.files.n_items, 1);
        assert_int_equal(unit.files.items[0][0], '-');
        assert_int_equal(lkg_unit_words(&unit, &buf), 0);
        check_words(&buf, "--max-pods=70|--x|--v=2|");
        lkg_unit_deinit(&unit);
        assert_int_equal(lkg_unit_query(bus, "other.service", &unit), -ENOENT);
        assert_int_equal(lkg_unit_query(bus, "refused.service", &unit), -EACCES);
        sd_bus_flush_close_unref(bus);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* ---- versions ---- */

struct place {
        char top[TMPDIR_MAX], first[128], second[128];
        char *exes[2];
        int fd;
};

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        (void)snprintf(p->first, sizeof(p->first), "%s/first", p->top);
        (void)snprintf(p->second, sizeof(p->second), "%s/second", p->top);
        p->exes[0] = p->first;
        p->exes[1] = p->second;
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_close(p->fd);
        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

/* The first line of the record; caller frees. NULL = no record. */
static char *version(struct place *p)
{
        int fd = openat(p->fd, "version", O_RDONLY | O_CLOEXEC);
        char *text = NULL;
        size_t size;

        if (fd < 0)
                return NULL;
        assert_int_equal(lkg_read_file(fd, 1000, &text, &size, NULL), 0);
        lkg_close(fd);
        text[strcspn(text, "\n")] = '\0';
        return text;
}

static void check_version(struct place *p, const char *want)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        lkg_facts_version(p->fd, p->exes, 2);
        text = version(p);
        assert_non_null(text);
        assert_string_equal(text, want);
}

TEST_WITH(test_version_of_the_first_that_exists, setup, teardown)
{
        struct place *p = *state;

        lkg_facts_version(p->fd, p->exes, 2);
        assert_null(version(p));
        put(p->top, "second", "#!/bin/sh\necho Kubernetes v1.36.3 \"$@\"; echo more\n", 0755);
        check_version(p, "Kubernetes v1.36.3 --version");
        put(p->top, "first", "#!/bin/sh\nprintf 'Kubernetes v1.35.0\\tx'\n", 0755);
        check_version(p, "Kubernetes v1.35.0?x");
        assert_int_equal(unlink(p->first), 0);
        assert_int_equal(unlink(p->second), 0);
        check_version(p, "Kubernetes v1.35.0?x"); /* in the middle of an upgrade */
}

TEST_WITH(test_version_is_asked_once, setup, teardown)
{
        struct place *p = *state;
        char script[200];
        struct stat st;

        (void)snprintf(script, sizeof(script), "#!/bin/sh\necho x >> %s/asked; echo Kubernetes v1.36.0\n",
                       p->top);
        put(p->top, "first", script, 0755);
        for (int i = 0; i < 3; i++)
                check_version(p, "Kubernetes v1.36.0");
        assert_int_equal(fstatat(p->fd, "asked", &st, 0), 0);
        assert_int_equal(st.st_size, 2);
}

TEST_WITH(test_version_that_is_of_no_use, setup, teardown)
{
        static const char *const scripts[] = {
                "#!/bin/sh\nexit 1\n",
                "#!/bin/sh\necho Kubernetes v1.36.0; exit 3\n",
                "#!/bin/sh\necho Kubernetes v1.36.0; kill -9 $$\n",
                "#!/bin/sh\nwhile :; do echo too much; done\n",
                "not a program",
        };
        struct place *p = *state;

        for (size_t i = 0; i < LKG_ARRAY_SIZE(scripts); i++) {
                assert_true(unlink(p->first) == 0 || errno == ENOENT);
                put(p->top, "first", scripts[i], 0755);
                check_version(p, "");
        }
}

TEST_WITH(test_a_program_that_others_may_write_is_not_run, setup, teardown)
{
        struct place *p = *state;

        put(p->top, "first", "#!/bin/sh\necho Kubernetes v1.36.0\n", 0775);
        check_version(p, "");
        put(p->top, "second", "#!/bin/sh\necho Kubernetes v1.36.0\n", 0644); /* not executable */
        assert_int_equal(unlink(p->first), 0);
        check_version(p, "");
}

TEST_WITH(test_a_program_that_others_may_replace_is_not_run, setup, teardown)
{
        struct place *p = *state;
        char way[160];

        (void)snprintf(way, sizeof(way), "%s/bin", p->top);
        (void)snprintf(p->first, sizeof(p->first), "%s/bin/kubelet", p->top);
        assert_int_equal(mkdir(way, 0755), 0);
        put(p->top, "bin/kubelet", "#!/bin/sh\necho Kubernetes v1.36.0\n", 0755);
        assert_int_equal(chmod(way, 0777), 0);
        check_version(p, "");
        assert_int_equal(chmod(way, 0755), 0);
        check_version(p, "Kubernetes v1.36.0"); /* the same file, now executable */
        assert_int_equal(chmod(way, 0777), 0);
        check_version(p, "");
        assert_int_equal(symlinkat("bin/kubelet", p->fd, "second"), 0);
        p->exes[0] = p->second;
        check_version(p, "");
        assert_int_equal(chmod(way, 0755), 0);
        check_version(p, "Kubernetes v1.36.0");
}
