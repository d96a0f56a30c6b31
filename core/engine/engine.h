/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine as an object, so that lkgfs-engine has a small main() and tests can run an engine in their own process.
 *
 * One thread and one sd-event loop own everything. An event (a message, inotify, a timer) starts one
 * *cycle*: look at the layers, judge, publish, answer. Everything that may take longer (history records, fsync, layers/ of a
 * thousand drop-ins, fallback copies) happens later, while no caller waits.
 */
#pragma once

#include <systemd/sd-event.h>

#include <lkg/base.h>

/* The result of locking the state directory. */
struct lkg_engine_lock {
        int result; /* from lkg_store_lock(); fd is valid only if this is 0 */
        int fd;
        bool read_only;
        struct lkg_error err;
};

struct lkg_engine_options {
        const char *config_path;  /* NULL = the default */
        const char *vendor_dir;   /* the vendor's configuration drop-ins; NULL = the default */
        const char *source_path;  /* absolute path of the source directory, for messages and watching */
        const char *mount_point;  /* of the view; NULL = none (tests) */
        int listen_fd;            /* listening socket of the file servers, or -EBADF */
        int supervisor_fd;        /* connected to the supervisor, or -EBADF */
        int source_fd;            /* O_PATH directory */
        int runtime_fd, state_fd; /* directories */
        bool trust_any_owner;     /* unit tests without root */
        const struct lkg_engine_lock *lock; /* taken over; NULL = lock here (tests) */
};

struct lkg_engine;

/** lkg_engine_lock() - lock @state_fd; waits a while for an engine that is just ending. */
void lkg_engine_lock(int state_fd, struct lkg_engine_lock *ret);

/**
 * lkg_engine_new() - read the configuration, open state and runtime directory. The caller keeps the descriptors, except for the
 * lock.
 * @report: findings about the configuration and the state, if the result is negative
 * Return: 0; -EPERM or -EBADMSG as lkg_config_load(); -errno.
 */
int lkg_engine_new(const struct lkg_engine_options *options, sd_event *event, struct lkg_engine **ret,
                   struct lkg_report *report, struct lkg_error *err);
struct lkg_engine *lkg_engine_free(struct lkg_engine *engine);

/**
 * lkg_engine_start() - first look at the layers, first publication.
 * @err: the reason of a failure
 * Return: 0; a sysexits code (78: the configuration cannot be served; 74: the runtime directory cannot be written). The supervisor
 * has been told.
 */
int lkg_engine_start(struct lkg_engine *engine, struct lkg_error *err);

/** lkg_engine_reload() - SIGHUP: read the configuration again; errors in it are reported, and then nothing changes. */
void lkg_engine_reload(struct lkg_engine *engine);

/** lkg_engine_stop() - write everything that is not on disk yet. */
void lkg_engine_stop(struct lkg_engine *engine);
