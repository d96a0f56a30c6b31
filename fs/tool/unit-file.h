/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A systemd unit read from its files, without systemd: for a tree that is not running, and to see what a unit would be without
 * one of its drop-ins. Only what starts the component is read: ExecStart=, Environment=, EnvironmentFile=.
 *
 * Everything is opened below one directory: an absolute symlink in an image stays in the image.
 */
#pragma once

#include <lkg/base.h>
#include <lkg/text.h>

struct lkg_unit_on_disk {
        char *exec_start;    /* as written, in one line */
        size_t n_exec_start; /* more than one: not a service that stays */
        /* its words with the variables filled in, without prefixes (`-`, `+`) of the program */
        struct lkg_strings words;
        struct lkg_strings files;   /* that were read: the unit, drop-ins, environment files */
        struct lkg_strings lacking; /* variables without a value */
};

/**
 * lkg_unit_file_read() - read unit @name with its drop-ins.
 * @rootfd:  the directory that counts as /
 * @without: name of a drop-in to leave out, or NULL
 *
 * Source of the rules: systemd.unit(5), UNIT FILE LOAD PATH; systemd.exec(5), ENVIRONMENT; systemd.service(5), COMMAND LINES.
 * Specifiers (`%i`) are not filled in.
 * Return: 0; -ENOENT: there is no such unit; -errno.
 */
int lkg_unit_file_read(int rootfd, const char *name, const char *without, struct lkg_unit_on_disk *ret,
                       struct lkg_error *err);
void lkg_unit_file_deinit(struct lkg_unit_on_disk *unit);

/** lkg_root_open() - open @path (absolute) with @rootfd as /. Return: a descriptor or -errno. */
int lkg_root_open(int rootfd, const char *path, int flags);
/** lkg_root_read() - read a whole file, at most 1 MiB. Return: 0 or -errno. */
int lkg_root_read(int rootfd, const char *path, char **ret, size_t *ret_size);
/** lkg_root_exists() - does a file or directory of this name exist? */
bool lkg_root_exists(int rootfd, const char *path);
