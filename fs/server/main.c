/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lkgfs-fs: started by lkgfsd, not by hand.
 *
 * Exit status: 0 unmounted or told to stop; 70 internal failure; 77 the mount was negotiated by another build.
 */
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sysexits.h>

#include <lkg/file.h>

#include "lkg-config.h"
#include "file-server.h"

static int parse_arguments(int argc, char **argv, int *ret_priority)
{
        static const struct option options[] = {
                { "device-fd", required_argument, NULL, 'd' },
                { "shared-fd", required_argument, NULL, 'm' },
                { "source-fd", required_argument, NULL, 's' },
                { "runtime-fd", required_argument, NULL, 'r' },
                { "listen-fd", required_argument, NULL, 'l' },
                { "supervisor-fd", required_argument, NULL, 'p' },
                { "verbose", no_argument, NULL, 'v' },
                { "version", no_argument, NULL, 'V' },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                int *fd = c == 'd'   ? &server.device
                          : c == 'm' ? &server.shared_fd
                          : c == 's' ? &server.source
                          : c == 'r' ? &server.runtime
                          : c == 'l' ? &server.listen
                          : c == 'p' ? &server.supervisor
                                     : NULL;

                if (fd)
                        *fd = (int)strtol(optarg, NULL, 10);
                else if (c == 'v')
                        *ret_priority = LOG_DEBUG;
                else if (c == 'V') {
                        (void)printf("lkgfs-fs %s\n", LKG_VERSION);
                        exit(EX_OK);
                } else
                        return -EINVAL;
        }
        if (server.device < 0 || server.shared_fd < 0 || server.source < 0 || server.runtime < 0 ||
            server.supervisor < 0)
                return -EINVAL;
        return 0;
}

/* Keep the process small, without core dumps, and with enough descriptors: a node is one descriptor. */
static void limit_process(void)
{
        const struct rlimit most = { .rlim_cur = 1u << 20,
                                     .rlim_max = 1u << 20 }; /* the kernel's fs.nr_open */
        struct rlimit files, none = { 0 };

        (void)mallopt(M_ARENA_MAX, 1);
        (void)mallopt(M_MMAP_THRESHOLD,
                      128 * 1024); /* a big manifest's memory is returned when it is replaced */
        (void)prctl(PR_SET_NAME, "lkgfs-fs");
        (void)prctl(PR_SET_DUMPABLE, 0);
        (void)setrlimit(RLIMIT_CORE, &none);
        if (setrlimit(RLIMIT_NOFILE, &most) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
                files.rlim_cur = files.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &files);
        }
        (void)signal(SIGPIPE, SIG_IGN);
        (void)umask(0);
}

static int on_gone(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        return sd_event_exit(server.event, 0);
}

static int open_directory(const char *name, int *ret, struct lkg_error *err)
{
        *ret = openat(server.runtime, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret < 0 ? lkg_error_set(err, -errno, NULL, "open %s of the runtime directory", name) : 0;
}

static void claim(void)
{
        server.epoch = atomic_fetch_add(&server.shm->counters.epoch, 1) + 1;
        /* not of an earlier mount: engines remember those */
        if (atomic_load(&server.shm->counters.tickets) == 0)
                atomic_store(&server.shm->counters.tickets, lkg_realtime_ns());
        server.shm->server.start_time = lkg_process_start_time(getpid());
        atomic_store(&server.shm->server.pid, getpid());
}

static int prepare(struct lkg_error *err)
{
        int r;

        server.shm = lkg_shared_map(server.shared_fd);
        if (!server.shm)
                return lkg_error_set(err, -errno, NULL, "map the shared memory");
        lkg_inherit(server.shm);
        claim();
        r = lkg_session_open(err);
        if (r == 0)
                r = lkg_mkdir_p(server.runtime, LKG_PUBLICATION_PINNED, 0700, err);
        if (r == 0) /* before the nodes, which sweep it */
                r = open_directory(LKG_PUBLICATION_PINNED, &server.pinned, err);
        if (r == 0)
                r = sd_event_new(&server.event) < 0 ? lkg_error_set(err, -ENOMEM, NULL, "event loop") : 0;
        if (r == 0) {
                lkg_nodes_init();
                r = lkg_kept_init(err); /* until there is a publication */
        }
        if (r == 0)
                r = open_directory(LKG_PUBLICATION_BLOBS, &server.blobs, err);
        if (r < 0)
                return r;
        lkg_files_recount();
        lkg_view_recount_pollers();
        server.gone = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (server.gone < 0 || sd_event_add_io(server.event, NULL, server.gone, EPOLLIN, on_gone, NULL) < 0)
                return lkg_error_set(err, -errno, NULL, "event loop");
        r = lkg_publication_load(err);
        lkg_replay_clean();
        if (r == 0)
                r = lkg_link_init(err);
        if (r == 0)
                r = lkg_watch_init(err);
        return r;
}

int main(int argc, char **argv)
{
        struct lkg_error err = { 0 };
        int priority = LOG_INFO, r;

        if (parse_arguments(argc, argv, &priority) < 0) {
                (void)fprintf(stderr, "lkgfs-fs: started by lkgfsd, see lkgfsd(8)\n");
                return EX_USAGE;
        }
        lkg_log_init("lkgfs-fs", priority);
        server.hooks = &lkg_server_hooks;
        lkg_log_for_supervisor(NULL);
        limit_process();
        r = lkg_kept_listen(&err);
        if (r == 0)
                r = lkg_server_confine(&err);
        if (r < 0) {
                lkg_log_error("%s", err.message);
                return EX_OSERR;
        }
        r = prepare(&err);
        if (r == 0)
                r = lkg_workers_start(&err);
        if (r < 0) {
                lkg_log_error("%s", err.message);
                return r == -EPROTO ? EX_NOPERM : EX_SOFTWARE;
        }
        lkg_kept_ready();
        lkg_announce_newer(); /* announce changes from the time without a server */
        (void)sd_event_loop(server.event);
        _exit(EX_OK); /* workers still run, and use what exit() frees (libcrypto) */
}
