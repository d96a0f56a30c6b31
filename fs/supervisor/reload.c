/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGHUP: the engine's decoder reads the configuration again. The settings of the supervisor cannot change
 * while a view is mounted, so differences are only reported; the running engine applies all others. A
 * configuration with mistakes changes nothing.
 */
#include <lkg/base.h>

#include "consumer.h"
#include "facts-collectors.h"
#include "supervisor.h"

#define SETTINGS_MAX (1u << 20)

static const char *source_of(const struct lkg_supervisor *s, const struct lkg_settings *settings,
                             char **ret_owned)
{
        *ret_owned = *settings->source_dir ? realpath(settings->source_dir, NULL) : NULL;
        return *ret_owned ? *ret_owned : *settings->source_dir ? settings->source_dir : s->mount_point;
}

static void compare(const struct lkg_supervisor *s, const struct lkg_settings *new)
{
        const struct lkg_settings *old = s->settings;
        LKG_CLEANUP(lkg_freep) char *owned = NULL;
        const struct {
                const char *name;
                bool same;
        } settings[] = {
                { "stateDir", strcmp(old->state_dir, new->state_dir) == 0 },
                { "runtimeDir", strcmp(old->runtime_dir, new->runtime_dir) == 0 },
                { "sourceDir", strcmp(s->source_path, source_of(s, new, &owned)) == 0 },
                { "virtualDir", strcmp(old->virtual_dir, new->virtual_dir) == 0 },
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(settings); i++)
                if (!settings[i].same)
                        lkg_log_warning("%s has changed: that needs a new mount (restart lkgfsd); until "
                                        "then the old "
                                        "value holds",
                                        settings[i].name);
}

/* Reported again only if it is different. */
static void take_over_user(struct lkg_supervisor *s, struct lkg_settings *new)
{
        struct lkg_settings *settings = s->settings;
        char *name = settings->engine_user;
        bool same = strcmp(name, new->engine_user) == 0 && settings->engine_uid == new->engine_uid &&
                    settings->engine_user_missing == new->engine_user_missing;

        settings->engine_user = new->engine_user;
        new->engine_user = name;
        settings->engine_uid = new->engine_uid;
        settings->engine_gid = new->engine_gid;
        settings->engine_user_missing = new->engine_user_missing;
        if (!same)
                s->engine_root = 0; /* will be reported again */
}

/*
 * The sources of facts about components, how to restart them, and what other namespaces may do concern only
 * us, so they may change at any time.
 */
static void take_over(struct lkg_supervisor *s, struct lkg_settings *new)
{
        struct lkg_settings_component *components = s->settings->components;
        size_t n = s->settings->n_components;
        char *node_name = s->settings->node_name;

        s->settings->components = new->components;
        s->settings->n_components = new->n_components;
        new->components = components;
        new->n_components = n;
        s->settings->node_name = new->node_name;
        new->node_name = node_name;
        take_over_user(s, new);
        s->settings->restart_jitter_ms = new->restart_jitter_ms;
        s->settings->foreign_writes = new->foreign_writes;
        if (s->connection.shared)
                atomic_store(&s->connection.shared->foreign_writes, new->foreign_writes);
        if (s->consumer && lkg_consumer_configure(s->consumer, s->settings) < 0)
                lkg_log_error("not every component can be restarted: out of memory");
        lkg_facts_refresh(s);
}

static int on_settings(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_supervisor *s = userdata;
        LKG_CLEANUP(lkg_freep) char *output = NULL;
        struct lkg_settings *settings = NULL;
        struct lkg_error err = { 0 };
        size_t size = 0;
        int r;

        (void)source;
        (void)fd;
        (void)revents;
        s->reload_source = sd_event_source_disable_unref(s->reload_source);
        r = lkg_run_finish(&s->reload, SETTINGS_MAX, &output, &size);
        if (r == 0)
                r = lkg_settings_parse(output, size, &settings, &err);
        if (r != 0)
                lkg_log_error("the configuration was not reloaded: the new one cannot be used (%d)", r);
        else
                compare(s, settings);
        if (r == 0)
                take_over(s, settings);
        /* Even if it is wrong: the engine keeps the previous one and shows the mistake in status/. */
        if (!lkg_engine_check_user(s)) /* a new engine reads it anyway */
                lkg_engine_send(s, LKG_MSG_RELOAD);
        if (r == 0)
                lkg_log_notice("configuration read again");
        lkg_settings_free(settings);
        lkg_notify_ready(s);
        return 0;
}

void lkg_reload(struct lkg_supervisor *s)
{
        const char *argv[] = { s->programs.engine,
                               "--print-settings",
                               "--mountpoint",
                               s->mount_point,
                               s->config ? "--config" : NULL,
                               s->config,
                               NULL };
        int r;

        if (s->reload_source)
                return; /* one is being read; SIGHUP can be repeated */
        lkg_notify_reloading();
        r = lkg_run_start(&s->reload, argv, NULL, 0);
        if (r >= 0) {
                r = sd_event_add_io(s->event, &s->reload_source, s->reload.job.pidfd, EPOLLIN, on_settings,
                                    s);
                if (r < 0)
                        lkg_run_cancel(&s->reload, s->event);
        }
        if (r < 0) {
                lkg_log_error("the configuration was not read again: %s", strerror(-r));
                lkg_notify_ready(s);
        }
}

void lkg_reload_deinit(struct lkg_supervisor *s)
{
        s->reload_source = sd_event_source_disable_unref(s->reload_source);
        lkg_run_cancel(&s->reload, s->event);
}
