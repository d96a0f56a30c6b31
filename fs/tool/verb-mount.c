/* SPDX-License-Identifier: Apache-2.0 */
/* lkgfs mount: starts lkgfsd in the background, found next to this program or where it was installed. */
#include "tool.h"

#define DAEMON "lkgfsd"

/* Relative to the directory of this program: an installed tree of any prefix, then a build folder. */
static const char *const places[] = { "../sbin/" DAEMON, DAEMON, "../supervisor/" DAEMON };

static int own_directory(char **ret)
{
        char path[4096], *slash;
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        if (n < 0)
                return -errno;
        path[n] = '\0';
        slash = strrchr(path, '/');
        if (!slash)
                return -ENOENT;
        *slash = '\0';
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
}

static int find_daemon(char **ret)
{
        LKG_CLEANUP(lkg_freep) char *directory = NULL;
        int r = own_directory(&directory);

        for (size_t i = 0; r == 0 && i < LKG_ARRAY_SIZE(places); i++) {
                LKG_CLEANUP(lkg_freep) char *path = NULL;

                if (asprintf(&path, "%s/%s", directory, places[i]) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                if (access(path, X_OK) == 0) {
                        *ret = LKG_STEAL(path);
                        return 0;
                }
        }
        *ret = strdup(LKG_SBINDIR "/" DAEMON);
        return *ret ? 0 : -ENOMEM;
}

int lkg_verb_mount(const struct lkg_tool *tool)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        const char *argv[6] = { DAEMON, "--background" };
        size_t n = 2;
        int r = find_daemon(&path);

        if (r < 0)
                return lkg_tool_fail(tool, LKG_TOOL_FAILED, "find " DAEMON ": %s", strerror(-r));
        if (tool->options.config) {
                argv[n++] = "--config";
                argv[n++] = tool->options.config;
        }
        argv[n] = tool->words[0];
        (void)execv(path, (char *const *)(uintptr_t)argv);
        return lkg_tool_fail(tool, LKG_TOOL_FAILED, "run '%s': %s", path, strerror(errno));
}
