/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that the engine runs as, and the ownership of the directories to which it writes.
 */
#pragma once

#include <lkg/process.h>
#include <lkg/base.h>
#include <lkg/messages.h>

/* Why the engine runs as root although another user is configured. */
enum lkg_engine_root {
        LKG_ENGINE_AS_CONFIGURED,
        LKG_ENGINE_NO_USER,  /* there is no such user */
        LKG_ENGINE_NO_RIGHT, /* we lack the privileges to change the user (in a container) */
        /*
         * whether it may read root's files in the source directory, or write its own, is not decided by this
         * kernel
         */
        LKG_ENGINE_NO_SAY,
};

/**
 * lkg_engine_account() - the user of the next engine: an engine that is less confined is better than none.
 * @directories: the source and the state directory; no request is sent to them
 */
enum lkg_engine_root lkg_engine_account(const struct lkg_settings *settings, const int directories[static 2],
                                        struct lkg_account *ret);

/** lkg_engine_user_tell() - log the reason. */
void lkg_engine_user_tell(const struct lkg_settings *settings, enum lkg_engine_root why);

/**
 * lkg_engine_owns() - may @owner own a directory of lkgfs, or a file in it? Owners are root, the engine's
 * user, or the previous one.
 * @fd:       of the directory, whose attribute names the previous user (only root can write that)
 * @settings: names the user; NULL: root only
 */
bool lkg_engine_owns(int fd, uid_t owner, const struct lkg_settings *settings);

/**
 * lkg_engine_hand_over() - give @top with its directories and files to @account. Run it in a process that
 * may block.
 *
 * @whole: recursively; otherwise only its own entries, where lkgfsd makes new ones
 *
 * No symlink is followed, no mount is crossed, and a file with another hard link remains root's. Files of
 * the supervisor and the file server (locks, records, pinned content) remain root's.
 *
 * Return: 0; the first -errno, after everything else was handed over; -EROFS counts as 0: nothing is written
 * there.
 */
int lkg_engine_hand_over(int top, const struct lkg_account *account, bool whole);
