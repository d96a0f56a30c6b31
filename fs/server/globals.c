/* SPDX-License-Identifier: Apache-2.0 */
/* The server of this process. */
#include "file-server.h"

struct lkg_server server = {
        .device = -EBADF,
        .shared_fd = -EBADF,
        .source = -EBADF,
        .runtime = -EBADF,
        .blobs = -EBADF,
        .pinned = -EBADF,
        .listen = -EBADF,
        .supervisor = -EBADF,
        .engine = -EBADF,
        .publication_lock = PTHREAD_MUTEX_INITIALIZER,
        .parked_lock = PTHREAD_MUTEX_INITIALIZER,
        .nodes_lock = PTHREAD_MUTEX_INITIALIZER,
        .files_lock = PTHREAD_MUTEX_INITIALIZER,
        .kept_lock = PTHREAD_MUTEX_INITIALIZER,
};
