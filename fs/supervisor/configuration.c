/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: read at the start, and again at SIGHUP. We parse no YAML: a forked process does, which gives up what it does not
 * need first, as the engine does (lkg_sandbox_enter()), and passes the settings that concern us on as lines
 * (lkg/messages.h). What is wrong is logged as lines of the engine, which reads the same configuration from then on.
 *
 * The settings of the supervisor cannot change while a view is mounted, so at SIGHUP differences are only reported; the running
 * engine applies all others. A configuration with mistakes changes nothing.
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/mman.h>

#include <lkg/base.h>
#include <lkg/config.h>
#include <lkg/file.h>

#include "consumer.h"
#include "facts-collect.h"
#include "supervisor.h"

#define LIMIT_NS     (30 * LKG_NSEC_PER_SEC)
#define SETTINGS_MAX (1u << 20)
#define NOBODY       65534u

/* ---- in the forked process ---- */

static void print_findings(struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size;

        lkg_report_arrange(report, false);
        text = lkg_report_format(report, &size);
        if (text)
                (void)fwrite(text, 1, size, stderr);
}

static int print_settings(const struct lkg_config *config)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_config_to_settings(config, &buf);
        if (lkg_buf_failed(&buf))
                return EX_SOFTWARE;
        return lkg_write_all(STDOUT_FILENO, buf.data, buf.size) < 0 ? EX_IOERR : EX_OK;
}

/*
 * The engine's default user, else nobody, who may read what root may; root in the cases in which the engine is root
 * (choose_account() in engine-child.c).
 */
static struct lkg_account account_of(const char *config)
{
        LKG_CLEANUP(lkg_freep) char *copy = strdup(config);
        LKG_CLEANUP(lkg_closep)
        int directory = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;
        struct lkg_account account;

        if (!lkg_may_change_user() || (directory >= 0 && lkg_asks_elsewhere(directory)))
                return (struct lkg_account){ 0, 0 };
        return lkg_account_find(LKG_PASSWD_FILE, LKG_ENGINE_USER, &account) == 0
                       ? account
                       : (struct lkg_account){ NOBODY, NOBODY };
}

static int confine(const char *config, struct lkg_error *err)
{
        const struct lkg_account account = account_of(config);
        int r = lkg_sandbox_become(&account, err);

        return r < 0 ? r : lkg_sandbox_enter(NULL, 0, err);
}

/* What we share with other processes: the parser has no business there. */
static void forget_memory(struct lkg_supervisor *s)
{
        if (s->connection.shared)
                (void)munmap(s->connection.shared, sizeof(*s->connection.shared));
        s->engine.judging = lkg_judging_close(s->engine.judging);
}

static void say_no_memory(void)
{
        (void)dprintf(STDERR_FILENO, "out of memory\n");
}

static int run(void *userdata)
{
        struct lkg_supervisor *s = userdata;
        const struct lkg_config_options options = { .path = s->config };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_config *config = NULL;
        struct lkg_error err = { 0 };
        int r;

        lkg_at_no_memory(say_no_memory);
        forget_memory(s);
        r = confine(s->config ? s->config : LKG_CONFIG_DEFAULT, &err);
        if (r < 0) {
                (void)fprintf(stderr, "%s\n", err.message);
                return EX_OSERR;
        }
        r = lkg_config_load(&options, &config, &report);
        print_findings(&report);
        if (r < 0)
                return r == -EPERM ? EX_NOPERM : r == -EBADMSG ? EX_CONFIG : EX_SOFTWARE;
        return print_settings(config);
}

/* ---- at the start ---- */

static struct lkg_helper_work work_of(struct lkg_supervisor *s, void (*done)(void *userdata, int status))
{
        return (struct lkg_helper_work){
                .run = run, .done = done, .userdata = s, .program = "lkgfs-engine", .limit_ns = LIMIT_NS
        };
}

int lkg_settings_read(struct lkg_supervisor *s, struct lkg_error *err)
{
        const struct lkg_helper_work work = work_of(s, NULL);
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size = 0;
        int r = lkg_helper_run(&work, SETTINGS_MAX, &text, &size);

        if (r < 0)
                return lkg_fail(err, EX_SOFTWARE, -r, "read the configuration");
        if (r != 0) /* it has printed the reason */
                return lkg_fail(err, r, 0, "the configuration %s cannot be used.",
                                s->config ? s->config : LKG_CONFIG_DEFAULT);
        return lkg_settings_parse(text, size, &s->settings, err) < 0 ? EX_SOFTWARE : 0;
}

/* ---- SIGHUP ---- */

/* What belongs to the mount stays as it is: @new gets our own. */
static void keep_mount(struct lkg_supervisor *s, struct lkg_settings *new)
{
        struct lkg_settings *old = s->settings;
        char *source = *new->source_dir ? realpath(new->source_dir, NULL) : strdup(s->mount_point);
        const struct {
                const char *name, *in_use;
                char **old, **new;
        } rows[] = {
                { "stateDir", old->state_dir, &old->state_dir, &new->state_dir },
                { "runtimeDir", old->runtime_dir, &old->runtime_dir, &new->runtime_dir },
                { "sourceDir", s->source.path, &old->source_dir, &new->source_dir },
                { "virtualDir", old->virtual_dir, &old->virtual_dir, &new->virtual_dir },
        };

        if (source) { /* else it is compared as it is written */
                free(new->source_dir);
                new->source_dir = source;
        }
        for (size_t i = 0; i < LKG_ARRAY_SIZE(rows); i++) {
                char *changed = *rows[i].new;

                if (strcmp(rows[i].in_use, changed) != 0)
                        lkg_log_warning("%s has changed: that needs a new mount (restart lkgfsd); until "
                                        "then the old value holds",
                                        rows[i].name);
                *rows[i].new = *rows[i].old;
                *rows[i].old = changed;
        }
}

/* Everything else concerns only us, so it may change at any time. Return: the old ones. */
static struct lkg_settings *take_over(struct lkg_supervisor *s, struct lkg_settings *new)
{
        struct lkg_settings *old = s->settings;

        keep_mount(s, new);
        s->settings = new;
        if (strcmp(old->engine_user, new->engine_user) != 0 || old->engine_uid != new->engine_uid ||
            old->engine_user_missing != new->engine_user_missing)
                s->engine.why_root = NULL; /* why it is root will be reported again */
        if (s->connection.shared)
                atomic_store(&s->connection.shared->foreign_writes, new->foreign_writes);
        if (s->consumer)
                lkg_consumer_configure(s->consumer, new);
        lkg_facts_refresh(s);
        return old;
}

static void on_settings(void *userdata, int status)
{
        struct lkg_supervisor *s = userdata;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_settings *settings = NULL;
        struct lkg_error err = { 0 };
        size_t size = 0;
        int r = lkg_helper_answer(&s->jobs.reload, SETTINGS_MAX, &text, &size);

        if (r >= 0)
                r = status;
        if (r == 0)
                r = lkg_settings_parse(text, size, &settings, &err);
        if (r == 0)
                settings = take_over(s, settings);
        else
                lkg_log_error("the configuration was not reloaded: the new one cannot be used (%d)", r);
        /* Even if it is wrong: the engine keeps the previous one and shows the mistake in status/. */
        if (!lkg_engine_check_user(s)) /* a new engine reads it anyway */
                lkg_engine_send(s, LKG_MSG_RELOAD);
        if (r == 0)
                lkg_log_notice("configuration read again");
        lkg_settings_free(settings);
        lkg_notify_ready(s);
}

void lkg_reload(struct lkg_supervisor *s)
{
        const struct lkg_helper_work work = work_of(s, on_settings);
        int r;

        if (lkg_helper_running(&s->jobs.reload))
                return; /* one is being read; SIGHUP can be repeated */
        lkg_notify_reloading();
        r = lkg_helper_start(&s->jobs.reload, s->event, &work);
        if (r < 0) {
                lkg_log_error("the configuration was not read again: %s", strerror(-r));
                lkg_notify_ready(s);
        }
}
