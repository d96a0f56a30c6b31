/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the machine, read once by a program and passed to the judge. */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <lkg/file.h>
#include <lkg/schema.h>

static bool file_exists(const char *path, void *userdata)
{
        (void)userdata;
        return lkg_path_exists(AT_FDCWD, path);
}

/*
 * The component assumes cgroup v2 if a cgroup2 file system is mounted here, and v1 if it cannot check that
 * (github.com/opencontainers/cgroups, IsCgroup2UnifiedMode).
 */
static unsigned cgroup_version(const char *path)
{
        struct statfs st;

        return statfs(path, &st) == 0 && (unsigned long)st.f_type == CGROUP2_SUPER_MAGIC ? 2 : 1;
}

void lkg_host_detect(struct lkg_host *ret)
{
        *ret = (struct lkg_host){ .cgroup = cgroup_version("/sys/fs/cgroup"), .exists = file_exists };
}
