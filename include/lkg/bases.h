/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bases that a component's layers can use: one from a checkpoint of the store, the last known good, and
 * the local one. A rollback serves the last known good merged with today's local layers or, if that is
 * impossible or not wanted, its stored document.
 */
#pragma once

#include <lkg/track.h>
#include <lkg/trial.h>

/* ---- from checkpoints: bases.c ---- */

/** lkg_trial_settings_of() - what a ConfigMap's own trial rules are checked against. */
struct lkg_trial_settings lkg_trial_settings_of(const struct lkg_config *config);
/** lkg_component_trial_rules() - the rules for a trial of what @c follows. Return: 0 or -errno. */
int lkg_component_trial_rules(const struct lkg_component *c, const struct lkg_config *config,
                              struct lkg_trial_rules *ret);
/** lkg_components_collect() - remove checkpoints that no component needs. */
void lkg_components_collect(const struct lkg_component *components, size_t n_components,
                            struct lkg_store *store);
/**
 * lkg_component_load_base() - load @source from its checkpoint.
 * Return: 0: @ret can be tried; -EINVAL: it is bad, @report says why; if an engine died of it, the code of
 * @err is -EKEYREJECTED and its message is the reason; another -errno.
 */
int lkg_component_load_base(const struct lkg_component *c, const struct lkg_component_env *env,
                            const struct lkg_config_source *source, struct lkg_remote_base **ret,
                            struct lkg_report *report, struct lkg_error *err);
/** lkg_component_refresh_anew() - refresh the layers of @c after its base has changed. */
int lkg_component_refresh_anew(struct lkg_component *c, const struct lkg_component_env *env,
                               struct lkg_error *err);
/** lkg_component_open_track() - open a track and refresh it for the first time. @base: taken over. */
int lkg_component_open_track(const struct lkg_component *c, const struct lkg_component_env *env,
                             struct lkg_track *track, struct lkg_remote_base *base, struct lkg_error *err);
/**
 * lkg_component_restore_base() - put the layers over the configuration of @source again. Return: 0; -errno, see
 * lkg_checkpoint_is_lost().
 */
int lkg_component_restore_base(struct lkg_component *c, const struct lkg_component_env *env,
                               const struct lkg_config_source *source, struct lkg_error *err);
/** lkg_checkpoint_is_lost() - is @code of loading a base a loss? Otherwise it may be there, and can be read later. */
bool lkg_checkpoint_is_lost(int code);
/**
 * lkg_component_keep_without_base() - what is followed cannot be loaded because of @why: what is served stays, and no local
 * layer replaces it, until c->unloaded is dealt with. Without anything to keep, follow the local configuration.
 */
void lkg_component_keep_without_base(struct lkg_component *c, const char *why);
/** lkg_component_follow_tried() - from now on, @c uses the layers of c->tried. */
void lkg_component_follow_tried(struct lkg_component *c);
/** lkg_component_look_at_local() - refresh the local layers while a remote base hides them. */
int lkg_component_look_at_local(struct lkg_component *c, const struct lkg_component_env *env,
                                const struct lkg_touched *touched, struct lkg_error *err);

/* ---- the last known good: good.c ---- */

/**
 * lkg_component_look_at_good() - refresh the merge for a rollback while the last known good is another
 * source than the followed one.
 */
int lkg_component_look_at_good(struct lkg_component *c, const struct lkg_component_env *env,
                               const struct lkg_touched *touched, struct lkg_error *err);
/**
 * lkg_component_follow_missing() - the checkpoint of the last known good is lost because of @why: serve its
 * stored document, else follow the local configuration.
 */
void lkg_component_follow_missing(struct lkg_component *c, const struct lkg_component_env *env,
                                  const char *why);
/** lkg_component_can_serve_good() - would `rollback lkg` find something to serve? True also if only trying can tell. */
bool lkg_component_can_serve_good(struct lkg_component *c, const struct lkg_component_env *env);
/* The result of a merge over the last known good. */
struct lkg_good_merge {
        bool usable; /* its checkpoint could be loaded */
        bool valid;  /* the merge can be served */
        char sha256
                [LKG_SHA256_HEX]; /* of the merge, if the local layers have not changed since the failed configuration; else "" */
        char fault[LKG_REASON_MAX]; /* why it is not usable */
};
/**
 * lkg_component_merge_good() - from now on, @c has its layers over the last known good. @same_base: it has
 * already
 */
void lkg_component_merge_good(struct lkg_component *c, const struct lkg_component_env *env, bool same_base,
                              struct lkg_good_merge *ret);
/**
 * lkg_component_serve_stored() - serve the stored document of the last known good instead of a merge, byte
 * for byte.
 */
int lkg_component_serve_stored(struct lkg_component *c, struct lkg_error *err);
/**
 * lkg_component_serve_stored_or_local() - serve the stored document of the last known good, else follow the
 * local configuration.
 */
void lkg_component_serve_stored_or_local(struct lkg_component *c, const struct lkg_component_env *env);
