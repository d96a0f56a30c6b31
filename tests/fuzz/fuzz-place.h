/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a file server, for a fuzz target: directories, a publication, and a socket as device.
 */
#pragma once

#include <sys/socket.h>

#include <lkg/file.h>

#include "fuzz-check.h"
#include "requests.h"
#include "tests/unit/tmpdir.h"

#define FUZZ_NOBODY  65534u
#define FUZZ_OUTSIDE "what is outside is nobody's business"
#define FUZZ_SHA     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define FUZZ_MODE    "\t0600\t0\t0\t5\t4\t" FUZZ_SHA

static struct {
        char top[TMPDIR_MAX];
        int dir, kernel; /* our end of the device */
        int listening;   /* the engine's listening socket */
        int supervisor;  /* its end of the channel */
        int ready;       /* eventfd */
        pid_t notifier;
} fuzz = { .dir = -EBADF, .kernel = -EBADF, .listening = -EBADF };

/* Add a name to a directory: its content, or NULL for a directory. */
static void fuzz_put(const char *name, const char *text)
{
        int fd = text ? openat(fuzz.dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644)
                      : mkdirat(fuzz.dir, name, 0755);

        FUZZ_CHECK(fd >= 0);
        FUZZ_CHECK(!text || write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        if (text)
                (void)close(fd);
        FUZZ_CHECK(fchownat(fuzz.dir, name, geteuid() == 0 ? FUZZ_NOBODY : (uid_t)-1, (gid_t)-1,
                            AT_SYMLINK_NOFOLLOW) == 0);
}

static void fuzz_fill_source(void)
{
        fuzz_put("source/a", "content of a");
        fuzz_put("source/d", NULL);
        fuzz_put("source/d/b", "b");
        fuzz_put("source/kubelet.conf", "{}\n");
        fuzz_put("source/kubelet.conf.d", NULL);
        fuzz_put("source/kubelet.conf.d/10-x.conf", "{}\n");
        FUZZ_CHECK(symlinkat("../outside", fuzz.dir, "source/out") == 0);
}

static void fuzz_make_place(void)
{
        static const char manifest[] = LKG_PUBLICATION_MAGIC
                "\nnumber\t1\ntimeout-ms\t2000\ncomponent\t0\tkubelet\t1\ncomponent\t1\tkube-proxy\t1\n"
                "match\t0\tunit\tkubelet.service\nwatch\t0\ttree\tkubelet.conf.d\nwatch\t0\tfile\tkubelet."
                "conf\n"
                "watch\t1\tfile\tproxy.conf\nhide\thidden\nalias\tkubelet.conf.base\tkubelet.conf\n"
                "dir\tbad\t0755\t0\t0\t5\nbad\tbad/kubelet\t0755\t0\t0\t5\t0\n"
                "file\tbad/kubelet/3f9a@12" FUZZ_MODE "\t-\t0\t0\n"
                "dir\tcontrol\t0700\t0\t0\t5\ncontrol\tcontrol/hold\t0200\t0\t0\t0\thold\n"
                "file\tkubelet.conf" FUZZ_MODE "\tv\t0\t1\nfile\tproxy.conf" FUZZ_MODE "\tvw\t1\t1\n"
                "file\tstatus" FUZZ_MODE "\tp\t-\t0\nend\n";

        FUZZ_CHECK(tmpdir_make(fuzz.top) == 0);
        fuzz.dir = open(fuzz.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FUZZ_CHECK(fuzz.dir >= 0);
        fuzz_put("outside", NULL);
        fuzz_put("outside/secret", FUZZ_OUTSIDE);
        fuzz_put("source", NULL);
        fuzz_put("runtime", NULL);
        fuzz_put("runtime/blobs", NULL);
        fuzz_put("runtime/pinned", NULL);
        fuzz_put("runtime/blobs/" FUZZ_SHA, "aaaa");
        fuzz_put("runtime/current", manifest);
        fuzz_fill_source();
}

static void fuzz_remove_place(void)
{
        (void)tmpdir_remove(fuzz.top);
}

static int fuzz_open(const char *name, int flags)
{
        int fd = openat(fuzz.dir, name, flags | O_DIRECTORY | O_CLOEXEC);

        FUZZ_CHECK(fd >= 0);
        return fd;
}

static void fuzz_open_place(void)
{
        server.hooks = &lkg_server_hooks;
        server.source = fuzz_open("source", O_RDONLY);
        server.runtime = fuzz_open("runtime", O_RDONLY);
        server.blobs = fuzz_open("runtime/blobs", O_PATH);
        server.pinned = fuzz_open("runtime/pinned", O_PATH);
        server.shm = mmap(NULL, sizeof(*server.shm), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        FUZZ_CHECK(server.shm != MAP_FAILED);
        server.epoch = 1;
}

/* The answer to INIT is the one of this build. */
static void fuzz_handshake(void)
{
        struct {
                struct fuse_in_header header;
                struct fuse_init_in init;
        } request = {
                .header = { .len = sizeof(request), .opcode = FUSE_INIT, .unique = 1 },
                .init = { .major = FUSE_KERNEL_VERSION,
                          .minor = 38,
                          .max_readahead = LKG_MAX_WRITE,
                          .flags = 0x03fffffb },
        };
        struct lkg_error err = { 0 };

        memcpy(server.shm->init.request, &request, sizeof(request));
        server.shm->init.request_size = sizeof(request);
        FUZZ_CHECK(lkg_session_open(&err) == -EPROTO);
        server.shm->init.reply_size =
                lkg_init_answer(server.shm->init.request, sizeof(request), server.shm->init.reply);
        FUZZ_CHECK(lkg_session_open(&err) == 0);
}
