/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of the engine.
 *
 * When an engine starts, it serves the first of these that exists: the current publication in the runtime directory (a restart:
 * readers notice nothing, the generation keeps its number); the generation that was last served before the reboot, in case the
 * layers are invalid now; nothing, and then an invalid candidate is fatal.
 */
#include <sysexits.h>
#include <unistd.h>

#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/documents.h>

#include "engine-internal.h"

/* ---- new and free ---- */

static char *copy_or_null(const char *text)
{
        return text ? lkg_must(strdup(text)) : NULL;
}

/* The set that readers have, with what the history knows of it. */
static bool recover_pods(struct lkg_engine *e, struct lkg_component *c,
                         const struct lkg_publication *previous)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *shown = NULL, *g = NULL;

        if (lkg_publisher_recover_pods(e->publisher, previous, c, &shown) < 0)
                return false;
        lkg_state_at_least(&e->state, shown->number);
        if (lkg_history_get(&c->history, shown->number, &g, NULL) < 0 ||
            strcmp(g->sha256, shown->sha256) != 0) {
                lkg_generation_unref(g);
                g = lkg_generation_ref(shown);
                lkg_history_add(&c->history, g);
        }
        lkg_component_set_active(c, g);
        (void)lkg_component_note_published(c);
        return true;
}

/* Return: is a generation of the current publication served again? */
static bool recover_running(struct lkg_engine *e, struct lkg_component *c,
                            const struct lkg_publication *previous)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        const struct lkg_entry *view = previous ? lkg_publication_find(previous, c->config->file) : NULL;
        int r;

        if (c->pods)
                return previous && recover_pods(e, c, previous);
        if (!view || !(view->flags & LKG_ENTRY_VIEW) || view->generation == 0)
                return false;
        lkg_state_at_least(&e->state, view->generation);
        r = lkg_history_get(&c->history, view->generation, &g, NULL);
        if (r < 0 || strcmp(g->sha256, view->sha256) != 0) {
                g = lkg_generation_unref(g);
                r = lkg_publisher_recover(e->publisher, previous, c, view, &g);
                if (r < 0)
                        return false;
                lkg_history_add(&c->history, g);
        }
        lkg_component_set_active(c, g);
        (void)lkg_component_note_published(c); /* readers already have it */
        return true;
}

static int recover(struct lkg_engine *e, const struct lkg_publication *previous)
{
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *c = &e->components[i];
                int r;

                if (!recover_running(e, c, previous))
                        lkg_component_recover_last_good(c);
                lkg_component_note_base(c);
                lkg_component_recover_previous(c);
                if (c->dynamic && c->active &&
                    (r = lkg_dynamic_resume(c->dynamic, c->active->sha256, &e->reports.setup)) < 0)
                        return r;
        }
        return 0;
}

/* A failure does not prevent serving: each command is refused then. */
static void open_claims(struct lkg_engine *e)
{
        struct lkg_error err = { 0 };

        if (e->options.runtime_fd >= 0 && lkg_claims_open(e->options.runtime_fd, &e->claims, &err) < 0)
                lkg_log_error("no command can be carried out: %s", err.message);
}

static int open_engine(struct lkg_engine *e, struct lkg_error *err)
{
        struct lkg_publication *previous = NULL;
        int r = lkg_state_open(e->options.state_fd, &e->state, &e->reports.setup, err);

        if (r >= 0)
                r = lkg_engine_open_poison(e, err);
        if (r >= 0)
                r = lkg_watch_open(&e->watch, e->options.source_fd, e->paths.source, err);
        if (r >= 0)
                r = lkg_publisher_open(e->options.runtime_fd, &e->publisher, &previous, err);
        if (r >= 0)
                r = lkg_engine_new_components(e, err);
        if (r >= 0)
                r = lkg_engine_open_facts(e, err);
        if (r >= 0) {
                lkg_engine_new_places(e);
                e->probes = lkg_probes_new(e->event, lkg_engine_on_health, e);
                e->pod_checks = lkg_pod_checks_new(e->probes);
                r = lkg_engine_open_store(e, err);
        }
        if (r >= 0) {
                lkg_engine_open_dynamic(e);
                lkg_engine_build_rules(e);
        }
        if (r >= 0 && (r = recover(e, previous)) < 0)
                (void)lkg_error_set(err, r, NULL, "what was served before");
        lkg_publication_free(previous);
        if (r >= 0) {
                lkg_engine_restore_dynamic(e);
                lkg_engine_lift_old_poison(e);
        }
        if (r >= 0)
                r = lkg_server_init(&e->server, e->event, e->options.listen_fd, e->options.supervisor_fd,
                                    &lkg_engine_server_ops, e, err);
        if (r >= 0)
                open_claims(e);
        for (size_t i = 0; r >= 0 && i < e->n_components; i++)
                if (e->components[i].state.ticket &&
                    e->components[i].state.unfinished.kind == LKG_UNFINISHED_NONE)
                        lkg_server_remember(&e->server, e->components[i].state.ticket, 0,
                                            lkg_publisher_number(e->publisher));
        if (r >= 0 && ((r = lkg_engine_add_sources(e)) < 0 || (r = lkg_engine_watch_facts(e)) < 0))
                (void)lkg_error_set(err, r, NULL, "event loop");
        return r;
}

int lkg_engine_new(const struct lkg_engine_options *options, sd_event *event, struct lkg_engine **ret,
                   struct lkg_report *report, struct lkg_error *err)
{
        struct lkg_engine *e = lkg_must(calloc(1, sizeof(*e)));
        struct lkg_config *config = NULL;
        int r;

        e->hooks = &lkg_engine_hooks;
        e->options = *options;
        e->event = sd_event_ref(event);
        e->watch.fd = e->store.lock_fd = -EBADF;
        e->clock.persist_at_ns = e->clock.retry_at_ns = e->clock.poll_at_ns = e->clock.orphan_at_ns =
                LKG_NEVER;
        e->clock.retry_delay_ns = LKG_RETRY_MIN_NS;
        e->paths.config = copy_or_null(options->config_path);
        e->paths.vendor = copy_or_null(options->vendor_dir);
        e->paths.mount_point = copy_or_null(options->mount_point);
        e->paths.source = lkg_must(strdup(options->source_path));
        e->settled = (struct lkg_settled){ .watch = &e->watch, .source_path = e->paths.source };
        r = lkg_engine_load_config(e, &config, &e->reports.setup);
        e->env = (struct lkg_component_env){
                .config = config,
                .state = &e->state,
                .poison = &e->poison,
                .source_fd = options->source_fd,
                .source_path = e->paths.source,
                .mount_point = e->paths.mount_point,
                .settled = &e->settled,
                .store = &e->store,
        };
        if (r < 0)
                (void)lkg_error_set(err, r, NULL, "configuration");
        else
                r = open_engine(e, err);
        if (r < 0) {
                lkg_report_append(report, &e->reports.setup);
                lkg_engine_free(e);
                return r;
        }
        *ret = e;
        return 0;
}

static void free_components(struct lkg_component *components, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                components[i].health.probe = lkg_probe_free(components[i].health.probe);
                lkg_component_deinit(&components[i]);
        }
        free(components);
}

struct lkg_engine *lkg_engine_free(struct lkg_engine *e)
{
        if (!e)
                return NULL;
        sd_event_source_disable_unref(e->sources.inotify);
        sd_event_source_disable_unref(e->sources.timer);
        lkg_engine_unwatch_facts(e);
        e->places = lkg_places_free(e->places);
        lkg_server_deinit(&e->server);
        e->claims = lkg_claims_close(e->claims);
        free_components(e->components, e->n_components);
        e->pod_checks = lkg_pod_checks_free(e->pod_checks);
        lkg_containers_deinit(&e->runtime.containers);
        e->probes = lkg_probes_free(e->probes);
        lkg_engine_close_poison(e);
        if (e->store.lock_fd >= 0)
                lkg_store_close(&e->store);
        e->publisher = lkg_publisher_free(e->publisher); /* the files stay: a file server is serving them */
        if (e->watch.fd >= 0)
                lkg_watch_deinit(&e->watch);
        lkg_settled_deinit(&e->settled);
        lkg_rules_deinit(&e->rules);
        lkg_report_deinit(&e->reports.setup);
        lkg_report_deinit(&e->reports.reload);
        lkg_report_deinit(&e->reports.shown);
        lkg_config_free(e->env.config);
        sd_event_unref(e->event);
        free(e->paths.config);
        free(e->paths.vendor);
        free(e->paths.source);
        free(e->paths.mount_point);
        free(e);
        return NULL;
}

/* ---- start ---- */

static int fatal(struct lkg_engine *e, int code, struct lkg_error *err)
{
        (void)unlinkat(e->options.runtime_fd, LKG_STARTING_NAME, 0);
        lkg_server_fatal(&e->server, code, err->message);
        return code;
}

/*
 * If an engine died before its first publication, a layer may have caused that. Then the last served generation is published
 * before any layer is read, so that the node has a document even if this engine dies, too.
 */
static void publish_before_looking(struct lkg_engine *e)
{
        bool died = lkg_path_exists(e->options.runtime_fd, LKG_STARTING_NAME), any = false;

        for (size_t i = 0; i < e->n_components; i++)
                any = any || e->components[i].active;
        if (died && any && lkg_publisher_is_fresh(e->publisher)) {
                lkg_log_warning("an engine died before its first publication; serving the last good "
                                "documents first");
                (void)lkg_engine_commit(e);
        }
        (void)lkg_write_file_atomic(e->options.runtime_fd, LKG_STARTING_NAME, "", 0, 0600, false, NULL);
}

/* Before the first document is judged. The finding stands at each document that is not read back (LKG2034). */
static void test_readers(void)
{
        for (enum lkg_format format = 0; format <= LKG_FORMAT_JSON; format++) {
                struct lkg_error why = { 0 };

                if (lkg_readback_test(format, &why) == LKG_READBACK_LEFT_OUT)
                        lkg_log_warning("a second reader is left out: %s [LKG2034]", why.message);
        }
}

int lkg_engine_start(struct lkg_engine *e, struct lkg_error *err)
{
        bool fresh = lkg_publisher_is_fresh(e->publisher), first = false;

        test_readers();
        lkg_engine_mark_findings(e);
        publish_before_looking(e);
        e->settled.replaces = !fresh;
        lkg_engine_look(e);
        /* No caller waits yet, so there is time to wait for files that are being written. */
        for (unsigned i = 0; i < 5 && e->settled.recent; i++) {
                const struct timespec moment = { .tv_nsec = LKG_RECENT_NS };

                (void)nanosleep(&moment, NULL);
                lkg_watch_touch(&e->watch, NULL);
                lkg_engine_look(e);
        }
        e->settled.vouched_all = e->settled.recent; /* still being written: take it as it is */
        if (e->settled.recent) {
                lkg_watch_touch(&e->watch, NULL);
                lkg_engine_look(e);
        }
        e->settled.vouched_all = false;
        for (size_t i = 0; fresh && i < e->n_components; i++) {
                int code = lkg_component_check_first(&e->components[i], err);

                if (code)
                        return fatal(e, code, err);
        }
        for (size_t i = 0; i < e->n_components; i++) {
                if (e->components[i].dynamic)
                        /* the previous engine may have died between a mark and its rollback */
                        lkg_engine_happened(e, &e->components[i], LKG_EVENT_RESUMED);
                (void)lkg_engine_finish_command(e, &e->components[i]);
        }
        lkg_engine_cycle(e, /* look= */ false);
        if (lkg_publisher_number(e->publisher) == 0 && e->clock.retry_at_ns != LKG_NEVER) {
                (void)lkg_error_set(err, -EIO, NULL, "the runtime directory cannot be written: %s.",
                                    e->components[0].faults.text ? e->components[0].faults.text
                                                                 : "no publication");
                return fatal(e, EX_IOERR, err);
        }
        (void)unlinkat(e->options.runtime_fd, LKG_STARTING_NAME, 0);
        for (size_t i = 0; i < e->n_components; i++) {
                e->components[i].due.fallback = true;
                first = first || (e->components[i].active && e->components[i].state.last_good == 0);
        }
        if (first) /* after a power failure now, the node must have something to serve */
                lkg_engine_persist(e);
        else
                lkg_engine_persist_soon(e);
        e->started = e->settled.started = true;
        lkg_places_run(e->places);
        return 0;
}

/*
 * ---- SIGHUP ----
 *
 * Settings of the mount itself wait for the next mount, with a message; the others apply with the next publication. Components
 * that stay keep what they serve; a configuration with errors changes nothing.
 */

static int apply_config(struct lkg_engine *e, struct lkg_config *next, struct lkg_error *err)
{
        struct lkg_component *old = e->components;
        struct lkg_config *old_config = e->env.config;
        size_t n_old = e->n_components;
        struct lkg_error ignored = { 0 };
        int r;

        e->env.config = next;
        e->components = NULL;
        e->n_components = 0;
        r = lkg_engine_new_components(e, err);
        if (r < 0) { /* the state directory is gone: continue as before */
                free_components(e->components, e->n_components);
                e->components = old;
                e->n_components = n_old;
                e->env.config = old_config;
                lkg_config_free(next);
                return r;
        }
        for (size_t i = 0; i < e->n_components; i++) {
                struct lkg_component *from = lkg_component_find(old, n_old, e->components[i].config->name);

                if (from)
                        lkg_component_keep(&e->components[i], from);
                else
                        lkg_component_recover_last_good(&e->components[i]);
        }
        lkg_engine_build_rules(e); /* of the directories of static pods as they are known */
        e->runtime.answered = e->runtime.silent = false; /* it may be another one */
        e->clock.containers_at_ns = 0;
        lkg_publisher_reset(e->publisher);
        lkg_places_set_config(e->places, next);
        free_components(old, n_old);
        lkg_config_free(old_config);
        lkg_engine_reload_dynamic(e);
        lkg_engine_unwatch_facts(e); /* e->sources.facts is indexed by component */
        if (lkg_engine_open_facts(e, &ignored) < 0 || lkg_engine_watch_facts(e) < 0)
                lkg_log_error("cannot watch what is known about the components: %s", ignored.message);
        return 0;
}

void lkg_engine_reload(struct lkg_engine *e)
{
        struct lkg_config *next = NULL;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };
        int r = lkg_engine_load_config(e, &next, &report);

        lkg_report_deinit(&e->reports.reload);
        if (r < 0) {
                lkg_report_add(&e->reports.reload, LKG_ERROR, 4011, NULL,
                               "the configuration was not reloaded, the one before stays in force");
                lkg_report_append(&e->reports.reload, &report);
                lkg_log_error("the configuration was not reloaded: %zu findings", report.n_findings);
        } else {
                lkg_engine_persist(e); /* new components read their history from disk */
                lkg_config_keep_mount(e->env.config, next, &e->reports.reload);
                lkg_report_deinit(&e->reports.setup);
                lkg_report_append(&e->reports.setup, &report);
                r = apply_config(e, next, &err);
                if (r < 0)
                        lkg_log_error("the configuration was not reloaded: %s", err.message);
                else
                        lkg_log_notice("the configuration was reloaded");
        }
        for (size_t i = 0; i < e->reports.reload.n_findings; i++)
                lkg_log_notice("%s", e->reports.reload.findings[i].text);
        lkg_report_deinit(&report);
        lkg_engine_mark_findings(e);
        e->settled.new_stacks = r >= 0;
        lkg_watch_touch(&e->watch, NULL);
        lkg_engine_cycle(e, /* look= */ true);
        e->settled.new_stacks = false;
}

/* ---- steps of a start that a reload repeats ---- */

int lkg_engine_load_config(const struct lkg_engine *e, struct lkg_config **ret, struct lkg_report *report)
{
        const struct lkg_config_options options = {
                .path = e->paths.config,
                .vendor_dir = e->paths.vendor,
                .trust_any_owner = e->options.trust_any_owner,
        };

        return lkg_config_load(&options, ret, report);
}

int lkg_engine_new_components(struct lkg_engine *e, struct lkg_error *err)
{
        e->components = lkg_must(calloc(e->env.config->n_components, sizeof(*e->components)));
        for (size_t i = 0; i < e->env.config->n_components; i++) {
                int r = lkg_component_init(&e->components[i], &e->env, (unsigned)i, &e->reports.setup, err);

                if (r < 0)
                        return r;
                e->n_components++;
        }
        return 0;
}

void lkg_engine_build_rules(struct lkg_engine *e)
{
        size_t before = e->reports.setup.n_findings;

        lkg_rules_deinit(&e->rules);
        e->rules = lkg_rules_build(e->env.config, e->options.source_fd, e->paths.source, &e->reports.setup);
        for (size_t i = before; i < e->reports.setup.n_findings; i++)
                lkg_log_warning("%s: %s", e->paths.source, e->reports.setup.findings[i].text);
}

/* ---- what the parts may call ---- */

const struct lkg_engine_hooks lkg_engine_hooks = {
        .cycle = lkg_engine_cycle,
        .commit = lkg_engine_commit,
};
