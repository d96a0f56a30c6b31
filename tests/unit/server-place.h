/* SPDX-License-Identifier: Apache-2.0 */
/* A file server without a kernel: source directory, publication and shared memory. */
#pragma once

#include <fcntl.h>

#include "unit.h"
#include "file-server.h"
#include "tmpdir.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEAD  LKG_PUBLICATION_MAGIC "\nnumber\t%d\ncomponent\t0\tkubelet\t1\n"

static char top[TMPDIR_MAX];

static inline int open_below(const char *name, int flags)
{
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        return open(path, flags | O_CLOEXEC, 0600);
}

static inline void put(const char *name, const char *text)
{
        int fd = open_below(name, O_WRONLY | O_CREAT | O_TRUNC);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        lkg_close(fd);
}

static inline void make(const char *name)
{
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/%s", top, name);
        assert_int_equal(mkdir(path, 0700), 0);
}

/* The publication with one view file of the given content. */
static inline void publish(int number, const char *sha256)
{
        char text[1024];
        struct lkg_error err = { 0 };

        (void)snprintf(text, sizeof(text),
                       HEAD "watch\t0\ttree\tkubelet.conf.d\nwatch\t0\tfile\tkubelet.conf\nhide\thidden\n"
                            "file\tkubelet.conf\t0600\t0\t0\t5\t4\t%s\tv\t0\t%d\nend\n",
                       number, sha256, number);
        put("runtime/current", text);
        if (lkg_publication_load(&err) < 0)
                fail_msg("%s", err.message);
}

static inline int set_up(void **state)
{
        (void)state;
        if (tmpdir_make(top) < 0)
                return -1;
        make("source");
        make("source/d");
        make("runtime");
        make("runtime/blobs");
        make("runtime/pinned");
        put("source/a", "a");
        put("source/d/b", "b");
        put("runtime/blobs/" SHA_A, "aaaa");
        put("runtime/blobs/" SHA_B, "bbbb");
        memset(&server, 0, sizeof(server));
        server.device = server.supervisor = server.engine = -EBADF;
        server.hooks = &lkg_server_hooks;
        server.source = open_below("source", O_RDONLY | O_DIRECTORY);
        server.runtime = open_below("runtime", O_RDONLY | O_DIRECTORY);
        server.blobs = open_below("runtime/blobs", O_PATH | O_DIRECTORY);
        server.pinned = open_below("runtime/pinned", O_PATH | O_DIRECTORY);
        server.shm =
                mmap(NULL, sizeof(*server.shm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        lkg_nodes_init();
        publish(1, SHA_A);
        return 0;
}

static inline int tear_down(void **state)
{
        (void)state;
        for (uint32_t i = 2; i < atomic_load(&server.shm->touched.nodes); i++)
                if (atomic_load(&lkg_node_at(i)->kind) != LKG_NODE_FREE)
                        lkg_node_forget(lkg_node_at(i), UINT64_MAX);
        (void)munmap(server.shm, sizeof(*server.shm));
        lkg_close(server.source);
        lkg_close(server.runtime);
        lkg_close(server.blobs);
        lkg_close(server.pinned);
        lkg_publication_put(server.publication);
        return tmpdir_remove(top);
}
