/* SPDX-License-Identifier: Apache-2.0 */
/* A private directory for one test. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define TMPDIR_MAX 64

/* Return: 0, @ret is its path; -1. Searchable by all, so a test can apply the trust rule for links. */
static inline int tmpdir_make(char ret[static TMPDIR_MAX])
{
        const char *tmp = getenv("TMPDIR");

        (void)snprintf(ret, TMPDIR_MAX, "%.40s/lkgfs-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        return mkdtemp(ret) && chmod(ret, 0755) == 0 ? 0 : -1;
}

static inline int tmpdir_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

/* Removes it with everything in it. Return: 0 or -1. */
static inline int tmpdir_remove(const char *path)
{
        return nftw(path, tmpdir_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
