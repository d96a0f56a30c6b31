/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the helper programs are. An installed lkgfsd uses only the libexec directory that it was built for.
 * An lkgfsd that was started from its build folder (.../fs/supervisor/lkgfsd) uses the helpers in that
 * folder, if they belong to the same user: a user who can replace them could have replaced lkgfsd as well.
 */
#include <limits.h>
#include <sys/stat.h>

#include <lkg-config.h>

#include "supervisor.h"

static int own_directory(char dir[static PATH_MAX], struct stat *ret_st, struct lkg_error *err)
{
        ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
        char *slash;

        if (n < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "/proc is needed: readlink /proc/self/exe");
        dir[n] = '\0';
        if (stat("/proc/self/exe", ret_st) < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "stat /proc/self/exe");
        slash = strrchr(dir, '/');
        if (slash)
                *slash = '\0';
        return 0;
}

static bool in_build_folder(const char *dir)
{
        static const char tail[] = "/fs/supervisor";
        size_t n = strlen(dir), n_tail = strlen(tail);

        return strcmp(dir, LKG_SBINDIR) != 0 && n > n_tail && strcmp(dir + n - n_tail, tail) == 0;
}

static bool trusted_sibling(const char *path, const struct stat *self)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
               (st.st_uid == 0 || st.st_uid == self->st_uid) && !(st.st_mode & S_IWOTH);
}

static int find(const char *name, const char *dir, const char *sibling, const struct stat *self, char **ret,
                struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        if (in_build_folder(dir)) {
                if (asprintf(&path, "%.*s/%s", (int)(strlen(dir) - strlen("/fs/supervisor")), dir, sibling) <
                    0)
                        return lkg_fail(err, EX_OSERR, ENOMEM, "find %s", name);
                if (trusted_sibling(path, self)) {
                        *ret = LKG_STEAL(path);
                        return 0;
                }
                free(LKG_STEAL(path));
        }
        if (asprintf(&path, "%s/%s", LKG_LIBEXECDIR, name) < 0)
                return lkg_fail(err, EX_OSERR, ENOMEM, "find %s", name);
        if (access(path, X_OK) < 0)
                return lkg_fail(err, EX_UNAVAILABLE, errno, "the program %s belongs to lkgfsd: %s", name,
                                path);
        *ret = LKG_STEAL(path);
        return 0;
}

int lkg_programs_find(struct lkg_programs *ret, struct lkg_error *err)
{
        struct lkg_programs programs = { 0 };
        char dir[PATH_MAX];
        struct stat self;
        int r = own_directory(dir, &self, err);

        if (r == 0)
                r = find("lkgfs-fs", dir, "fs/server/lkgfs-fs", &self, &programs.server, err);
        if (r == 0)
                r = find("lkgfs-engine", dir, "core/engine/lkgfs-engine", &self, &programs.engine, err);
        if (r == 0)
                r = find("lkgfs-notify", dir, "fs/notifier/lkgfs-notify", &self, &programs.notifier, err);
        if (r != 0) {
                lkg_programs_deinit(&programs);
                return r;
        }
        *ret = programs;
        return 0;
}

void lkg_programs_deinit(struct lkg_programs *programs)
{
        free(programs->server);
        free(programs->engine);
        free(programs->notifier);
        *programs = (struct lkg_programs){ 0 };
}
