/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the engine runs as, and that the directories in which it writes are that user's.
 */
#pragma once

#include <lkg/account.h>
#include <lkg/error.h>
#include <lkg/settings.h>

/* Why it is root although somebody else is configured. */
enum lkg_engine_root {
        LKG_ENGINE_AS_CONFIGURED,
        LKG_ENGINE_NO_USER,  /* there is no such user */
        LKG_ENGINE_NO_RIGHT, /* we lack what changing to one takes (in a container) */
        LKG_ENGINE_NO_SAY, /* whether it may read root's files in the source directory, or write its own, is not for this kernel to say */
};

/**
 * lkg_engine_account() - whom the next engine runs as: an engine that is less confined is better than none.
 * @directories: the source and the state directory; they are not asked anything
 */
enum lkg_engine_root lkg_engine_account(const struct lkg_settings *settings, const int directories[static 2],
                                        struct lkg_account *ret);

/** lkg_engine_user_tell() - why, to the log. */
void lkg_engine_user_tell(const struct lkg_settings *settings, enum lkg_engine_root why);

/**
 * lkg_engine_owns() - may a directory of lkgfs, or a file in it, belong to @owner: root, the engine's user, or the previous one?
 * @fd:       of the directory, whose attribute names the previous user (only root can write that)
 * @settings: names the user; NULL: root only
 */
bool lkg_engine_owns(int fd, uid_t owner, const struct lkg_settings *settings);

/**
 * lkg_engine_hand_over() - give @top with its directories and files to @account. To be run in a process that may block.
 *
 * @whole: recursively; otherwise only its own entries, where lkgfsd makes new ones
 *
 * No link is followed and no mount crossed, and a file with another hard link stays root's. What is
 * supervisor's or file server's own (locks, records, pinned content) stays root's.
 *
 * Return: 0; the first -errno, after everything else was handed over; -EROFS is 0: nobody writes there.
 */
int lkg_engine_hand_over(int top, const struct lkg_account *account, bool whole);
