/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs-engine: started by lkgfsd; by hand only with --check.
 *
 *     lkgfs-engine --check --config FILE [--source-path P] [--any-owner]
 *     lkgfs-engine --exec-credential --config FILE [--source-path P] [--mountpoint M]
 *     lkgfs-engine --containers SOCKET [--user UID:GID]
 *     lkgfs-engine --config FILE --mountpoint M --listen-fd N --supervisor-fd N --source-fd N --source-path P
 *                  --runtime-fd N --state-fd N [--user UID:GID]
 *
 * Exit: 0; 64 usage; 70 internal; 71 system; 74 input or output; 77 configuration not trusted; 78 configuration or candidate
 * invalid. --check: 0, 1 (the candidate has errors), 77, 78 (the configuration has).
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>
#include <sysexits.h>

#include <lkg-config.h>
#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/messages.h>
#include <lkg/http.h>
#include <lkg/base.h>
#include <lkg/facts.h>
#include <lkg/probes.h>
#include <lkg/process.h>

#include "engine.h"

struct arguments {
        const char *config, *mountpoint, *source_path, *containers;
        int listen_fd, supervisor_fd, source_fd, runtime_fd, state_fd;
        struct lkg_account account;
        bool check, exec_credential, any_owner;
};

enum option_id {
        OPT_CONFIG = 256,
        OPT_MOUNTPOINT,
        OPT_SOURCE_PATH,
        OPT_LISTEN_FD,
        OPT_SUPERVISOR_FD,
        OPT_SOURCE_FD,
        OPT_RUNTIME_FD,
        OPT_STATE_FD,
        OPT_USER,
        OPT_CHECK,
        OPT_EXEC_CREDENTIAL,
        OPT_CONTAINERS,
        OPT_ANY_OWNER,
        OPT_DEBUG,
        OPT_VERSION,
};

static const struct option options[] = {
        { "config", required_argument, NULL, OPT_CONFIG },
        { "mountpoint", required_argument, NULL, OPT_MOUNTPOINT },
        { "source-path", required_argument, NULL, OPT_SOURCE_PATH },
        { "listen-fd", required_argument, NULL, OPT_LISTEN_FD },
        { "supervisor-fd", required_argument, NULL, OPT_SUPERVISOR_FD },
        { "source-fd", required_argument, NULL, OPT_SOURCE_FD },
        { "runtime-fd", required_argument, NULL, OPT_RUNTIME_FD },
        { "state-fd", required_argument, NULL, OPT_STATE_FD },
        { "user", required_argument, NULL, OPT_USER },
        { "check", no_argument, NULL, OPT_CHECK },
        { "exec-credential", no_argument, NULL, OPT_EXEC_CREDENTIAL },
        { "containers", required_argument, NULL, OPT_CONTAINERS },
        { "any-owner", no_argument, NULL, OPT_ANY_OWNER },
        { "debug", no_argument, NULL, OPT_DEBUG },
        { "version", no_argument, NULL, OPT_VERSION },
        { 0 },
};

static int usage(void)
{
        (void)fputs("lkgfs-engine is started by lkgfsd; by hand: lkgfs-engine --check --config FILE\n",
                    stderr);
        return EX_USAGE;
}

/* Parses an inherited descriptor. It is ours from now on, so it is closed on exec. */
static int parse_fd(const char *text, int *ret)
{
        char *end;
        long fd;

        errno = 0;
        fd = strtol(text, &end, 10);
        if (errno || *end || end == text || fd < 3 || fd > 1 << 20 ||
            fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
                return -EINVAL;
        *ret = (int)fd;
        return 0;
}

static int *fd_of(struct arguments *a, int option)
{
        switch (option) {
        case OPT_LISTEN_FD:
                return &a->listen_fd;
        case OPT_SUPERVISOR_FD:
                return &a->supervisor_fd;
        case OPT_SOURCE_FD:
                return &a->source_fd;
        case OPT_RUNTIME_FD:
                return &a->runtime_fd;
        case OPT_STATE_FD:
                return &a->state_fd;
        default:
                return NULL;
        }
}

/* Return: 0 to go on, otherwise an exit code + 1. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
        int option;

        opterr = 0; /* getopt prints its argument unchanged */
        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                int *fd = fd_of(a, option);

                if ((fd && parse_fd(optarg, fd) < 0) ||
                    (option == OPT_USER && lkg_account_parse(optarg, &a->account) < 0))
                        return usage() + 1;
                if (option == '?')
                        return usage() + 1;
                if (option == OPT_CONFIG)
                        a->config = optarg;
                else if (option == OPT_MOUNTPOINT)
                        a->mountpoint = optarg;
                else if (option == OPT_SOURCE_PATH)
                        a->source_path = optarg;
                else if (option == OPT_CHECK)
                        a->check = true;
                else if (option == OPT_EXEC_CREDENTIAL)
                        a->exec_credential = true;
                else if (option == OPT_CONTAINERS)
                        a->containers = optarg;
                else if (option == OPT_ANY_OWNER)
                        a->any_owner = true;
                else if (option == OPT_DEBUG)
                        lkg_log_init("lkgfs-engine", LOG_DEBUG);
                else if (option == OPT_VERSION)
                        return puts("lkgfs-engine " LKG_VERSION) == EOF ? EX_IOERR + 1 : 0 + 1;
        }
        return optind < argc ? usage() + 1 : 0;
}

static void print_findings(const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report arranged = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        lkg_report_append(&arranged, report);
        lkg_report_arrange(&arranged, false);
        text = lkg_report_format(&arranged, &size);
        if (text)
                (void)fwrite(text, 1, size, stderr);
}

static int exit_code(int r)
{
        return r == -EPERM ? EX_NOPERM : r == -EBADMSG ? EX_CONFIG : EX_SOFTWARE;
}

static int load(const struct arguments *a, struct lkg_config **ret)
{
        const struct lkg_config_options o = { .path = a->config,
                                              .must_exist = a->check && a->config &&
                                                            strcmp(a->config, LKG_CONFIG_DEFAULT) != 0,
                                              .trust_any_owner = a->any_owner };
        struct lkg_report report = LKG_REPORT_INIT;
        int r = lkg_config_load(&o, ret, &report);

        print_findings(&report);
        lkg_report_deinit(&report);
        return r;
}

/* ---- --check ---- */

static const char *source_of(const struct arguments *a, const struct lkg_config *config)
{
        if (a->source_path || a->mountpoint)
                return a->source_path ? a->source_path : a->mountpoint;
        return *config->source_dir ? config->source_dir : "/etc/kubernetes";
}

static int check(const struct arguments *a)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_config *config = NULL;
        struct lkg_error err = { 0 };
        int r = load(a, &config), worst = 0;
        const char *source;

        if (r < 0)
                return exit_code(r);
        source = source_of(a, config);
        fd = a->source_fd >= 0 ? dup(a->source_fd) : open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                lkg_shown_error("%s: %s\n", source, strerror(errno));
                worst = EX_IOERR;
        }
        r = worst == 0 ? lkg_offline_check(config, fd, source, print_findings, &err) : 0;
        if (r < 0)
                lkg_shown_error("%s\n", err.message);
        if (r != 0)
                worst = r < 0 ? EX_IOERR : 1;
        lkg_config_free(config);
        return worst;
}

static int exec_credential(const struct arguments *a)
{
        LKG_CLEANUP(lkg_closep) int source_fd = -EBADF;
        struct lkg_credential_options o = { .mount_point = a->mountpoint };
        struct lkg_config *config = NULL;
        int r = load(a, &config);

        if (r < 0)
                return exit_code(r);
        o.kubeconfig = config->remote.kubeconfig;
        o.allow_exec = config->remote.allow_exec;
        o.allow_insecure = config->remote.allow_insecure;
        o.source_path = source_of(a, config);
        o.source_fd = source_fd = open(o.source_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        r = lkg_exec_credential(&o, config->remote.enabled);
        lkg_config_free(config);
        return r;
}

/* ---- running ---- */

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        struct lkg_engine *engine = userdata;

        if (info->ssi_signo == SIGHUP) {
                lkg_engine_reload(engine);
                return 0;
        }
        lkg_engine_stop(engine);
        return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int add_signals(sd_event *event, struct lkg_engine *engine)
{
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < LKG_ARRAY_SIZE(signals); i++)
                r = sd_event_add_signal(event, NULL, signals[i], on_signal, engine);
        return r;
}

static int run_loop(const struct lkg_engine_options *o, sd_event *event)
{
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_engine *engine = NULL;
        struct lkg_error err = { 0 };
        int r = lkg_engine_new(o, event, &engine, &report, &err), code;

        if (r < 0) {
                print_findings(&report);
                lkg_report_deinit(&report);
                lkg_log_error("%s", err.message);
                return exit_code(r);
        }
        code = lkg_engine_start(engine, &err);
        if (code) {
                lkg_log_error("%s", err.message);
        } else {
                r = add_signals(event, engine);
                if (r >= 0)
                        r = sd_event_loop(event);
                if (r < 0)
                        lkg_log_error("event loop: %s", strerror(-r));
                code = r < 0 ? EX_SOFTWARE : r;
        }
        lkg_engine_free(engine);
        return code;
}

static int supervisor = -EBADF; /* set before any thread starts */

static void say_no_memory(void)
{
        lkg_log_error("out of memory");
}

static int log_by_supervisor(int priority, const struct lkg_log_fields *fields, const char *text)
{
        return lkg_message_send_log(supervisor, priority, fields, text);
}

/*
 * The sandbox forbids locking, so the lock comes first; the process that creates the lock file owns it, so the user comes before
 * that.
 */
static int enter_sandbox(const struct arguments *a, struct lkg_engine_lock *ret_lock, struct lkg_error *err)
{
        const int writable[] = { a->runtime_fd, a->state_fd };
        int r = lkg_sandbox_become(&a->account, err);

        if (r < 0)
                return r;
        lkg_engine_lock(a->state_fd, ret_lock);
        return lkg_sandbox_enter(writable, LKG_ARRAY_SIZE(writable), err);
}

static int run(const struct arguments *a)
{
        struct lkg_engine_lock lock;
        const struct lkg_engine_options o = {
                .config_path = a->config,
                .source_path = a->source_path ? a->source_path : a->mountpoint,
                .mount_point = a->mountpoint,
                .listen_fd = a->listen_fd,
                .supervisor_fd = a->supervisor_fd,
                .source_fd = a->source_fd,
                .runtime_fd = a->runtime_fd,
                .state_fd = a->state_fd,
                .trust_any_owner = a->any_owner,
                .lock = &lock,
        };
        struct lkg_error err = { 0 };
        sd_event *event = NULL;
        sigset_t mask;
        int code;

        if (!o.source_path || o.listen_fd < 0 || o.supervisor_fd < 0 || o.source_fd < 0 ||
            o.runtime_fd < 0 || o.state_fd < 0)
                return usage();
        (void)umask(077);
        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, SIGTERM);
        (void)sigaddset(&mask, SIGINT);
        (void)sigaddset(&mask, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
            sd_event_new(&event) < 0) {
                lkg_log_error("cannot start: %s", strerror(errno));
                return EX_OSERR;
        }
        supervisor = o.supervisor_fd;
        lkg_log_for_supervisor(log_by_supervisor);
        if (enter_sandbox(a, &lock, &err) < 0) {
                lkg_log_error("%s", err.message);
                code = EX_OSERR;
        } else {
                code = run_loop(&o, event);
        }
        sd_event_unref(event);
        return code;
}

int main(int argc, char **argv)
{
        struct arguments a = { .listen_fd = -EBADF,
                               .supervisor_fd = -EBADF,
                               .source_fd = -EBADF,
                               .runtime_fd = -EBADF,
                               .state_fd = -EBADF };
        int r;

        lkg_log_init("lkgfs-engine", LOG_INFO);
        lkg_at_no_memory(say_no_memory);
        r = parse_arguments(argc, argv, &a);
        if (r)
                return r - 1;
        if (a.exec_credential)
                return exec_credential(&a);
        if (a.containers)
                return lkg_containers_print(a.containers, &a.account);
        return a.check ? check(&a) : run(&a);
}
