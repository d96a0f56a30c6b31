/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: `lkgfsd [OPTION...] MOUNTPOINT` and, called as mount.lkgfs, the convention of mount(8)
 * helpers `mount.lkgfs SPEC DIR [-sfnv] [-N namespace] [-t type] [-o options]`. Parsing has no side effects.
 */
#pragma once

#include <sysexits.h>

#include <lkg/base.h>
#include <lkg/config.h>

enum lkg_options_action { LKG_ACTION_RUN, LKG_ACTION_HELP, LKG_ACTION_VERSION };

/* Strings point into argv or `storage`. */
struct lkg_options {
        enum lkg_options_action action;
        bool helper; /* called by mount(8): its exit codes, always in the background */
        bool fake;   /* check everything, mount nothing */
        bool background, verbose;
        const char *config;          /* NULL = the default, which may not exist */
        const char *mount_namespace; /* where to mount; NULL = the current one */
        const char *mount_point;     /* as given */
        char *storage;               /* owned: the value of -o */
};

/** lkg_options_parse() - argv[0] selects the convention. Return: 0; EX_USAGE; EX_OSERR: out of memory. */
int lkg_options_parse(int argc, char *const argv[], struct lkg_options *ret, struct lkg_error *err);
void lkg_options_deinit(struct lkg_options *options);

/** lkg_options_usage() - the text of --help. */
const char *lkg_options_usage(bool helper);

/** lkg_options_exit_code() - what mount(8) expects from a helper: 0, 1 usage, 2 system, 32 mount. */
int lkg_options_exit_code(bool helper, int code);
