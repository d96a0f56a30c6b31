/* SPDX-License-Identifier: Apache-2.0 */
/* Running an exec plugin: which program, its environment, its limits. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <lkg/documents.h>
#include <lkg/http.h>
#include <lkg/file.h>

#include "unit.h"
#include "tmpdir.h"

#define LIMIT_NS (60 * LKG_NSEC_PER_SEC) /* longer than even a slow machine needs */

struct place {
        char d[TMPDIR_MAX], program[TMPDIR_MAX + 16];
        struct lkg_kubeconfig k;
        struct lkg_exec_plugin exec;
        char *argv[4];
        struct lkg_buf said;
        struct lkg_error err;
        char *output;
        size_t size;
};

static char *text(const char *t)
{
        return (char *)(uintptr_t)t;
}

static int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        if (!p || tmpdir_make(p->d) < 0)
                return -1;
        (void)snprintf(p->program, sizeof(p->program), "%s/plugin", p->d);
        p->argv[0] = text("plugin");
        p->argv[1] = text("an argument");
        p->exec.argv = p->argv;
        p->exec.api_version = text(LKG_EXEC_V1);
        p->k.identity.server = text("https://h");
        p->k.exec = &p->exec;
        *state = p;
        return 0;
}

static int teardown(void **state)
{
        struct place *p = *state;

        lkg_buf_deinit(&p->said);
        free(p->output);
        (void)tmpdir_remove(p->d);
        free(p);
        return 0;
}

static void put(struct place *p, const char *script)
{
        int fd = open(p->program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

        assert_true(fd >= 0);
        assert_int_equal(lkg_write_all(fd, script, strlen(script)), 0);
        assert_int_equal(fchmod(fd, 0755), 0);
        lkg_close(fd);
}

static int run(struct place *p, uint64_t limit_ns)
{
        free(p->output);
        p->output = NULL;
        lkg_buf_reset(&p->said);
        return lkg_exec_plugin_run(&p->k, p->program, limit_ns, &p->output, &p->size, &p->said, &p->err);
}

/* ---- which program ---- */

TEST_WITH(test_found_by_name_and_by_path, setup, teardown)
{
        struct place *p = *state;
        char search[256], *found = NULL;

        put(p, "#!/bin/sh\n");
        (void)snprintf(search, sizeof(search), "/no/such/directory:%s:/bin", p->d);
        assert_int_equal(lkg_exec_plugin_find("plugin", search, &found, &p->err), 0);
        assert_string_equal(found, p->program);
        free(found);
        assert_int_equal(lkg_exec_plugin_find(p->program, "", &found, &p->err), 0);
        assert_string_equal(found, p->program);
        free(found);
        assert_int_equal(lkg_exec_plugin_find("no-such-plugin", search, &found, &p->err), -ENOENT);
        assert_non_null(strstr(p->err.message, "there is no program no-such-plugin in /no/such/directory:"));
        assert_int_equal(lkg_exec_plugin_find("./plugin", search, &found, &p->err), -EINVAL);
}

TEST_WITH(test_what_others_could_replace_is_not_run, setup, teardown)
{
        struct place *p = *state;
        char search[256], *found = NULL;

        put(p, "#!/bin/sh\n");
        (void)snprintf(search, sizeof(search), "%s:/bin", p->d);
        assert_int_equal(chmod(p->program, 0775), 0);
        assert_int_equal(lkg_exec_plugin_find(p->program, "", &found, &p->err), -EPERM);
        assert_int_equal(chmod(p->program, 0755), 0);
        assert_int_equal(chmod(p->d, 0777), 0);
        assert_int_equal(lkg_exec_plugin_find(p->program, "", &found, &p->err), -EPERM);
        assert_int_equal(lkg_exec_plugin_find("sh", search, &found, &p->err), -EPERM); /* not skipped */
        assert_int_equal(chmod(p->d, 0755), 0);
        assert_int_equal(chmod(p->program, 0644), 0);
        assert_int_equal(lkg_exec_plugin_find(p->program, "", &found, &p->err), -EACCES);
        assert_non_null(strstr(p->err.message, "is not executable"));
        assert_int_equal(lkg_exec_plugin_find(p->d, "", &found, &p->err), -EINVAL);
        assert_null(found);
}

/* ---- its environment ---- */

static void assert_info(const struct place *p, const char *want)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_exec_plugin_info(&p->k, &buf);
        assert_false(lkg_buf_failed(&buf));
        assert_string_equal(buf.data, want);
        assert_int_equal(lkg_decode_json(buf.data, buf.size, LKG_DECODE_STRICT, NULL, &report, &value), 0);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        lkg_buf_deinit(&buf);
}

TEST_WITH(test_info, setup, teardown)
{
        struct place *p = *state;

        assert_info(p, "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                       "\"spec\":{\"interactive\":false}}");
        p->exec.provide_cluster_info = true;
        p->exec.api_version = text(LKG_EXEC_V1BETA1);
        assert_info(p,
                    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
                    "\"spec\":{\"cluster\":{\"server\":\"https://h\"},\"interactive\":false}}");
        p->k.identity.tls_server_name = text("n");
        p->k.identity.insecure = p->k.identity.disable_compression = true;
        p->k.ca.data = text("ca\n");
        p->k.ca.size = 3;
        p->k.identity.proxy_url = text("socks5h://p:1080");
        p->exec.cluster_config = text("{\"a\":1}");
        assert_info(p,
                    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
                    "\"spec\":{\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"n\","
                    "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"Y2EK\","
                    "\"proxy-url\":\"socks5://p:1080\",\"disable-compression\":true,\"config\":{\"a\":1}},"
                    "\"interactive\":false}}");
        p->k.identity.proxy_url = text("http://u:p@p");
        p->exec.cluster_config = NULL;
        p->k.ca.data = NULL;
        p->k.identity.insecure = p->k.identity.disable_compression = false;
        assert_info(p,
                    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\","
                    "\"spec\":{\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"n\","
                    "\"proxy-url\":\"http://u:p@p\"},\"interactive\":false}}");
}

TEST_WITH(test_environment_and_descriptors, setup, teardown)
{
        struct place *p = *state;
        char *more[] = { text("A=b c"), text("HOME=/home"), text("KUBERNETES_EXEC_INFO=mine"), NULL };

        put(p, "#!/bin/sh\necho \"$1|$PWD|$HOME|$PATH|$A|$KUBERNETES_EXEC_INFO|$LKG_LEAK\"\n"
               "read x && echo input\ncd /proc/self/fd && for f in *; do [ \"$f\" -gt 2 ] && [ \"$f\" -lt "
               "10 ] && "
               "[ -e \"$f\" ] && readlink \"$f\"; done; exit 0\n");
        (void)setenv("LKG_LEAK", "leaked", 1);
        p->exec.env = more;
        assert_int_equal(run(p, LIMIT_NS), 0);
        if (!strstr(p->output,
                    "an argument|/|/home|" LKG_EXEC_PATH
                    "|b c|{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                    "\"spec\":{\"interactive\":false}}|\n"))
                fail_msg("%s", p->output);
        assert_null(strstr(p->output, "input"));
        assert_null(strstr(p->output, "pipe:")); /* none of our descriptors */
        assert_int_equal(p->size, strlen(p->output));
}

/* ---- its limits ---- */

TEST_WITH(test_how_it_ends, setup, teardown)
{
        struct place *p = *state;
        static const struct {
                const char *script;
                int want;
                const char *why, *said;
        } rows[] = {
                { "#!/bin/sh\necho out; echo err >&2\n", 0, NULL, "err\n" },
                { "#!/bin/sh\necho out; echo err >&2; exit 3\n", -EIO, "it ended with exit status 3.",
                  "err\n" },
                { "#!/bin/sh\necho out; kill -9 $$\n", -EIO, "it was killed by signal 9.", "" },
                { "#!/bin/sh\n", -EIO, "it printed nothing.", "" },
                { "#!/bin/sh\nhead -c 65536 /dev/zero | tr '\\0' a\n", 0, NULL, "" },
                { "#!/bin/sh\nhead -c 65537 /dev/zero\n", -EFBIG,
                  "it printed more than 65536 bytes and was killed.", "" },
                { "#!/bin/sh\nexec cat /dev/zero\n", -EFBIG,
                  "it printed more than 65536 bytes and was killed.", "" },
                { "#!/no/such/interpreter\n", -EIO, "it ended with exit status 127.", "execute " },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                int r;

                put(p, rows[i].script);
                r = run(p, LIMIT_NS);
                lkg_buf_append(&p->said, "", 0);
                if (r != rows[i].want || (rows[i].why && strcmp(p->err.message, rows[i].why) != 0) ||
                    strncmp(p->said.data ? p->said.data : "", rows[i].said, strlen(rows[i].said)) != 0)
                        fail_msg("row %zu: %d %s\n%s", i, r, p->err.message, p->said.data);
                assert_int_equal(r == 0, p->output != NULL);
        }
}

/* Return: a FIFO's name and, if @ret_fd is not NULL, its read end. */
static void make_fifo(struct place *p, char fifo[static 128], int *ret_fd)
{
        (void)snprintf(fifo, 128, "%s/fifo", p->d);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        p->argv[1] = fifo;
        if (ret_fd)
                assert_true((*ret_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) >= 0);
}

TEST_WITH(test_it_is_killed_with_its_children, setup, teardown)
{
        struct place *p = *state;
        struct pollfd end = { .events = POLLIN };
        char fifo[128], byte;

        make_fifo(p, fifo, &end.fd);
        put(p, "#!/bin/sh\nsleep 1000 > \"$1\" &\nwait\n");
        assert_int_equal(run(p, LKG_NSEC_PER_SEC), -ETIMEDOUT);
        assert_string_equal(p->err.message, "it did not end within 1 s and was killed.");
        /* No writer is left: end of file, not "nothing yet". */
        if (read(end.fd, &byte, 1) < 0)
                assert_int_equal(poll(&end, 1, 60000), 1);
        assert_int_equal(read(end.fd, &byte, 1), 0);
        lkg_close(end.fd);
}

/* The reader of the FIFO keeps the plugin's output open until the test releases it. */
TEST_WITH(test_what_it_leaves_behind_keeps_nobody_waiting, setup, teardown)
{
        struct place *p = *state;
        char fifo[128];
        int fd;

        make_fifo(p, fifo, NULL);
        put(p, "#!/bin/sh\necho out\ncat \"$1\" &\nexit 0\n");
        assert_int_equal(run(p, LIMIT_NS), 0);
        assert_string_equal(p->output, "out\n");
        fd = open(fifo, O_WRONLY | O_CLOEXEC); /* waits for the process that opens it to read */
        assert_true(fd >= 0);
        lkg_close(fd);
}

TEST_WITH(test_what_it_says_is_cut, setup, teardown)
{
        struct place *p = *state;

        put(p, "#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' e >&2; echo out\n");
        assert_int_equal(run(p, LIMIT_NS), 0);
        assert_int_equal(p->said.size, LKG_EXEC_SAID_MAX);
        assert_string_equal(p->output, "out\n");
}
