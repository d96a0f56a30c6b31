/* SPDX-License-Identifier: Apache-2.0 */
/* How annotations name a file: as the repository does that the working directory belongs to. */
#include "annotations.h"

const char *lkg_annotations_path(const struct lkg_annotations *a, const char *path)
{
        size_t n = a->directory ? strlen(a->directory) : 0;

        if (n > 0 && strncmp(path, a->directory, n) == 0 && path[n])
                return path + n;
        while (strncmp(path, "./", 2) == 0 && path[2] && path[2] != '/')
                path += 2;
        return path;
}
