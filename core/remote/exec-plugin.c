/* SPDX-License-Identifier: Apache-2.0 */
#include "exec-plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <lkg/file.h>
#include <lkg/json-out.h>
#include <lkg/span.h>

#include "wipe.h"

#define INFO_NAME "KUBERNETES_EXEC_INFO"

/* ---- the program ---- */

/* Return: 0; -errno with @err. */
static int judge_program(const char *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct stat st;

        fd = lkg_open_owned(path, &st, err);
        if (fd < 0)
                return fd;
        return st.st_mode & 0111 ? 0 : lkg_error_set(err, -EACCES, NULL, "%s is not executable.", path);
}

/* As execvp(3) searches, but that what cannot be trusted ends the search: nobody gets into it by being first. */
static int search_program(const char *name, const char *search, char **ret, struct lkg_error *err)
{
        struct lkg_span rest = lkg_span(search, strlen(search)), dir;

        while (lkg_span_next(&rest, ':', &dir)) {
                LKG_CLEANUP(lkg_freep) char *path = NULL;
                int r;

                if (asprintf(&path, "%.*s/%s", (int)dir.size, dir.data, name) < 0) {
                        path = NULL;
                        return lkg_error_set(err, -ENOMEM, NULL, "find %s", name);
                }
                r = judge_program(path, err);
                if (r == -ENOENT || r == -ENOTDIR)
                        continue;
                if (r == 0)
                        *ret = LKG_STEAL(path);
                return r;
        }
        return lkg_error_set(err, -ENOENT, NULL,
                             "there is no program %s in %s; name it with its whole path.", name, search);
}

int lkg_exec_plugin_find(const char *command, const char *search, char **ret, struct lkg_error *err)
{
        char *copy;
        int r;

        if (!strchr(command, '/'))
                return search_program(command, search, ret, err);
        r = judge_program(command, err);
        if (r < 0)
                return r;
        copy = strdup(command);
        if (!copy)
                return lkg_error_set(err, -ENOMEM, NULL, "find %s", command);
        *ret = copy;
        return 0;
}

/* ---- what it is told ---- */

static void put_base64(struct lkg_json *json, const char *name, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *text = malloc((size + 2) / 3 * 4 + 1);

        if (!text) {
                lkg_json_fail(json, -ENOMEM);
                return;
        }
        (void)EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)data, (int)size);
        lkg_json_text(json, name, text);
}

/* As a kubeconfig has it: libcurl's scheme says, too, that the proxy is the one who looks names up. */
static void put_proxy(struct lkg_json *json, const char *url)
{
        static const char curls[] = "socks5h://";
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        if (strncmp(url, curls, strlen(curls)) != 0) {
                lkg_json_foreign(json, "proxy-url", url);
                return;
        }
        if (asprintf(&text, "socks5://%s", url + strlen(curls)) < 0) {
                text = NULL;
                lkg_json_fail(json, -ENOMEM);
                return;
        }
        lkg_json_foreign(json, "proxy-url", text);
}

/* clientauthentication/v1, Cluster. */
static void put_cluster(struct lkg_json *json, const struct lkg_kubeconfig *k)
{
        const char *config = k->exec->cluster_config;

        lkg_json_map(json, "cluster", LKG_JSON_AROUND);
        lkg_json_foreign(json, "server", k->server);
        if (k->tls_server_name)
                lkg_json_foreign(json, "tls-server-name", k->tls_server_name);
        if (k->insecure)
                lkg_json_bool(json, "insecure-skip-tls-verify", true);
        if (k->ca.data)
                put_base64(json, "certificate-authority-data", k->ca.data, k->ca.size);
        if (k->proxy_url)
                put_proxy(json, k->proxy_url);
        if (k->disable_compression)
                lkg_json_bool(json, "disable-compression", true);
        if (config)
                lkg_json_rendered(json, "config", config, strlen(config));
        lkg_json_end(json);
}

void lkg_exec_plugin_info(const struct lkg_kubeconfig *k, struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
        lkg_json_text(&json, "kind", "ExecCredential");
        lkg_json_foreign(&json, "apiVersion", k->exec->api_version);
        lkg_json_map(&json, "spec", LKG_JSON_AROUND);
        if (k->exec->provide_cluster_info)
                put_cluster(&json, k);
        lkg_json_bool(&json, "interactive", false);
        lkg_json_end(&json);
        lkg_json_end(&json);
        (void)lkg_json_write(&json, buf);
}

/* ---- its environment ---- */

static bool names(const char *entry, const char *name)
{
        size_t n = strlen(name);

        return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool has(char *const *env, const char *name)
{
        for (; env && *env; env++)
                if (names(*env, name))
                        return true;
        return false;
}

static void free_env(char ***env)
{
        for (size_t i = 0; *env && (*env)[i]; i++)
                lkg_wipe_free((*env)[i]);
        free(*env);
}

/* The kubeconfig's own entries win, but for what plugins are told by. NULL = no memory. */
static char **make_env(const struct lkg_kubeconfig *k)
{
        static const char *const defaults[][2] = { { "PATH", "PATH=" LKG_EXEC_PATH }, { "HOME", "HOME=/" } };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf info = LKG_BUF_INIT;
        LKG_CLEANUP(free_env) char **env = NULL;
        char *const *more = k->exec->env;
        size_t n = 0, n_more = 0;

        while (more && more[n_more])
                n_more++;
        env = calloc(LKG_ARRAY_SIZE(defaults) + n_more + 2, sizeof(*env));
        lkg_buf_puts(&info, INFO_NAME "=");
        lkg_exec_plugin_info(k, &info);
        if (!env || !(env[n++] = lkg_buf_steal(&info, NULL)))
                return NULL;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(defaults); i++)
                if (!has(more, defaults[i][0]) && !(env[n++] = strdup(defaults[i][1])))
                        return NULL;
        for (size_t i = 0; i < n_more; i++)
                if (!names(more[i], INFO_NAME) && !(env[n++] = strdup(more[i])))
                        return NULL;
        return LKG_STEAL(env);
}

/* ---- running ---- */

struct run {
        pid_t pid;
        int pidfd, output_fd, said_fd; /* -EBADF: at its end */
        char *output;                  /* LKG_EXEC_OUTPUT_MAX + 1 bytes */
        size_t n_output;
        struct lkg_buf *said;
        size_t n_said;
        bool too_much;
};

/* In the new process. */
static void become(const struct lkg_kubeconfig *k, const char *program, char *const *env, pid_t parent,
                   int output, int said)
{
        const struct rlimit none = { 0, 0 };
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        sigset_t empty;

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
            dup2(said, STDERR_FILENO) < 0 || chdir("/") < 0 || setpgid(0, 0) < 0)
                _exit(127);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
                _exit(127); /* nobody waits for it any more */
        closefrom(3);
        (void)setrlimit(RLIMIT_CORE, &none); /* it would hold the credential */
        (void)signal(SIGPIPE, SIG_DFL);
        (void)sigemptyset(&empty);
        (void)sigprocmask(SIG_SETMASK, &empty, NULL);
        (void)execve(program, k->exec->argv, env);
        (void)dprintf(STDERR_FILENO, "execute %s: %s\n", program, strerror(errno));
        _exit(127);
}

static int start(struct run *run, const struct lkg_kubeconfig *k, const char *program, char *const *env,
                 struct lkg_error *err)
{
        const pid_t parent = getpid();
        int output[2], said[2];

        if (pipe2(output, O_CLOEXEC) < 0)
                return lkg_error_set(err, -errno, NULL, "pipe");
        run->output_fd = output[0];
        if (pipe2(said, O_CLOEXEC) < 0) {
                int r = -errno;

                lkg_close(output[1]);
                return lkg_error_set(err, r, NULL, "pipe");
        }
        run->said_fd = said[0];
        /* What is there at the end is taken without waiting for more: a process that it left behind may hold the pipe. */
        (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
        (void)fcntl(said[0], F_SETFL, O_NONBLOCK);
        run->pid = fork();
        if (run->pid == 0)
                become(k, program, env, parent, output[1], said[1]);
        lkg_close(output[1]);
        lkg_close(said[1]);
        if (run->pid < 0)
                return lkg_error_set(err, -errno, NULL, "fork");
        (void)setpgid(run->pid, run->pid); /* as it does itself: whoever is first */
        run->pidfd = pidfd_open(run->pid, 0);
        return run->pidfd < 0 ? lkg_error_set(err, -errno, NULL, "pidfd_open") : 0;
}

/* Return: whether there may be more right now; at its end *@fd is closed. */
static bool take_output(struct run *run)
{
        ssize_t n =
                read(run->output_fd, run->output + run->n_output, LKG_EXEC_OUTPUT_MAX + 1 - run->n_output);

        if (n == 0)
                run->output_fd = lkg_close(run->output_fd);
        if (n > 0)
                run->n_output += (size_t)n;
        run->too_much = run->n_output > LKG_EXEC_OUTPUT_MAX;
        return (n > 0 || (n < 0 && errno == EINTR)) && !run->too_much;
}

static bool take_said(struct run *run)
{
        char text[512];
        ssize_t n = read(run->said_fd, text, sizeof(text));
        size_t room = LKG_EXEC_SAID_MAX - run->n_said, used = n > 0 && (size_t)n < room ? (size_t)n : room;

        if (n == 0)
                run->said_fd = lkg_close(run->said_fd);
        if (n > 0) {
                lkg_buf_append(run->said, text, used);
                run->n_said += used;
        }
        return n > 0 || (n < 0 && errno == EINTR);
}

static void take_rest(struct run *run)
{
        while (run->output_fd >= 0 && take_output(run))
                ;
        for (size_t i = 0; i < 2 * LKG_EXEC_SAID_MAX && run->said_fd >= 0 && take_said(run); i++)
                ; /* somebody it left behind may write for ever */
}

/* Return: 0 when the program has ended; -errno. */
static int await(struct run *run, uint64_t deadline_ns)
{
        uint64_t now_ns;

        while ((now_ns = lkg_boottime_ns()) < deadline_ns) {
                struct pollfd p[] = { { .fd = run->pidfd, .events = POLLIN },
                                      { .fd = run->output_fd, .events = POLLIN },
                                      { .fd = run->said_fd, .events = POLLIN } };
                int r = poll(p, LKG_ARRAY_SIZE(p), (int)((deadline_ns - now_ns) / LKG_NSEC_PER_MSEC) + 1);

                if (r < 0 && errno != EINTR)
                        return -errno;
                if (r <= 0)
                        continue;
                if (p[1].revents)
                        (void)take_output(run);
                if (p[2].revents)
                        (void)take_said(run);
                if (run->too_much)
                        return -EFBIG;
                if (p[0].revents) {
                        take_rest(run);
                        return run->too_much ? -EFBIG : 0;
                }
        }
        return -ETIMEDOUT;
}

static int judge_end(struct run *run, int r, uint64_t limit_ns, struct lkg_error *err)
{
        int status = 0;

        if (r < 0) {
                (void)kill(-run->pid, SIGKILL);
                (void)kill(run->pid, SIGKILL); /* it may not have become a leader yet */
        }
        while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (r == -ETIMEDOUT)
                return lkg_error_set(err, r, NULL, "it did not end within %u s and was killed.",
                                     (unsigned)(limit_ns / LKG_NSEC_PER_SEC));
        if (r == -EFBIG)
                return lkg_error_set(err, r, NULL, "it printed more than %u bytes and was killed.",
                                     LKG_EXEC_OUTPUT_MAX);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "wait for it");
        if (WIFSIGNALED(status))
                return lkg_error_set(err, -EIO, NULL, "it was killed by signal %d.", WTERMSIG(status));
        if (WEXITSTATUS(status) != 0)
                return lkg_error_set(err, -EIO, NULL, "it ended with exit status %d.", WEXITSTATUS(status));
        if (run->n_output == 0)
                return lkg_error_set(err, -EIO, NULL, "it printed nothing.");
        return 0;
}

int lkg_exec_plugin_run(const struct lkg_kubeconfig *k, const char *program, uint64_t limit_ns, char **ret,
                        size_t *ret_size, struct lkg_buf *said, struct lkg_error *err)
{
        LKG_CLEANUP(free_env) char **env = make_env(k);
        struct run run = {
                .pid = -1, .pidfd = -EBADF, .output_fd = -EBADF, .said_fd = -EBADF, .said = said
        };
        uint64_t deadline_ns = lkg_boottime_ns() + limit_ns;
        int r = -ENOMEM;

        run.output = malloc(LKG_EXEC_OUTPUT_MAX + 2);
        if (!env || !run.output)
                (void)lkg_error_set(err, r, NULL, "run %s", program);
        else
                r = start(&run, k, program, env, err);
        if (run.pid > 0)
                r = judge_end(&run, r < 0 ? r : await(&run, deadline_ns), limit_ns, err);
        lkg_close(run.pidfd);
        lkg_close(run.output_fd);
        lkg_close(run.said_fd);
        if (r < 0) {
                if (run.output)
                        OPENSSL_cleanse(run.output, run.n_output);
                free(run.output);
                return r;
        }
        run.output[run.n_output] = '\0';
        *ret = run.output;
        *ret_size = run.n_output;
        return 0;
}
