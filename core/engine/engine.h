/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as an object, so that lkgfs-engine is a small main and tests can run one in their own process.
 *
 * One thread and one sd-event loop own all of it. An event (a message, inotify, a timer) leads to one *cycle*: look at
 * the layers, judge, publish, answer. Everything that may take longer (history records, fsync, layers/ of a thousand
 * drop-ins, fallback copies) happens later, when nobody waits.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/error.h>

/* The result of locking the state directory. */
struct lkg_engine_lock {
        int result; /* as lkg_store_lock(); the descriptor is only there when that is 0 */
        int fd;
        bool read_only;
        struct lkg_error err;
};

struct lkg_engine_options {
        const char *config_path;  /* NULL = the default */
        const char *vendor_dir;   /* configuration drop-ins of the vendor; NULL = the default */
        const char *source_path;  /* absolute path of the source directory, for messages and watching */
        const char *mount_point;  /* of the view; NULL = none (tests) */
        int listen_fd;            /* listening socket of the file servers, or -EBADF */
        int supervisor_fd;        /* connected to the supervisor, or -EBADF */
        int source_fd;            /* O_PATH directory */
        int runtime_fd, state_fd; /* directories */
        bool trust_any_owner;     /* unit tests without root */
        const struct lkg_engine_lock
                *lock; /* taken over by the engine; NULL = it may lock by itself (tests) */
};

struct lkg_engine;

/** lkg_engine_lock() - @state_fd; a while is waited for an engine that is just being ended. */
void lkg_engine_lock(int state_fd, struct lkg_engine_lock *ret);

/**
 * lkg_engine_new() - read the configuration, open state and runtime directory. Descriptors stay the caller's.
 * @report: findings about the configuration and the state, when the result is negative
 * Return: 0; -EPERM or -EBADMSG as lkg_config_load(); -errno.
 */
int lkg_engine_new(const struct lkg_engine_options *options, sd_event *event, struct lkg_engine **ret,
                   struct lkg_report *report, struct lkg_error *err);
struct lkg_engine *lkg_engine_free(struct lkg_engine *engine);

/**
 * lkg_engine_start() - first look at the layers, first publication.
 * @err: why not
 * Return: 0; a sysexits code (78: the configuration cannot be served; 74: the runtime directory cannot be written). The
 * supervisor has been notified.
 */
int lkg_engine_start(struct lkg_engine *engine, struct lkg_error *err);

/** lkg_engine_reload() - SIGHUP: read the configuration again; a bad one is reported and changes nothing. */
void lkg_engine_reload(struct lkg_engine *engine);

/** lkg_engine_stop() - write all that is not on disk yet. */
void lkg_engine_stop(struct lkg_engine *engine);

/** lkg_engine_findings() - candidate findings of all components, for --check. */
void lkg_engine_findings(const struct lkg_engine *engine, struct lkg_report *ret);
