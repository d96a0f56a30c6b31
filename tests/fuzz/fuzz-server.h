/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole file server for a fuzz target: workers, helpers, event loop, inotify, all as the product starts
 * them, with a socket as device, an engine that answers everything, and its own source directory.
 *
 * It cannot harm the machine: its threads run as the user nobody if the target runs as root, and may write
 * below its own directory only (Landlock, if the kernel supports it).
 */
#pragma once

#include <dirent.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "fuzz-place.h"

static void fuzz_empty_source(void)
{
        char path[TMPDIR_MAX + 16];
        struct dirent *d;
        DIR *dir;

        (void)snprintf(path, sizeof(path), "%s/source", fuzz.top);
        FUZZ_CHECK(chmod(path, 0755) == 0);
        dir = opendir(path);
        FUZZ_CHECK(dir);
        while ((d = readdir(dir)))
                if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0 &&
                    unlinkat(dirfd(dir), d->d_name, 0) < 0) {
                        char name[sizeof(path) + 256];

                        (void)snprintf(name, sizeof(name), "%s/%s", path, d->d_name);
                        (void)tmpdir_remove(name);
                }
        (void)closedir(dir);
}

/* The user nobody, and no write access outside: for this thread and those that it starts. */
static void fuzz_confine(void)
{
        const struct landlock_ruleset_attr handled = { .handled_access_fs =
                                                               (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1 -
                                                               LANDLOCK_ACCESS_FS_READ_FILE -
                                                               LANDLOCK_ACCESS_FS_READ_DIR };
        struct landlock_path_beneath_attr own = { .allowed_access = handled.handled_access_fs,
                                                  .parent_fd = fuzz.dir };
        int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);

        if (geteuid() == 0) {
                FUZZ_CHECK(syscall(SYS_setresgid, FUZZ_NOBODY, FUZZ_NOBODY, FUZZ_NOBODY) == 0);
                FUZZ_CHECK(syscall(SYS_setresuid, FUZZ_NOBODY, FUZZ_NOBODY, FUZZ_NOBODY) == 0);
        }
        if (rules < 0)
                return;
        FUZZ_CHECK(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &own, 0) == 0);
        FUZZ_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        FUZZ_CHECK(syscall(SYS_landlock_restrict_self, rules, 0) == 0);
        (void)close(rules);
}

static void fuzz_prepare(void)
{
        struct lkg_error err = { 0 };
        struct stat st;

        fuzz_open_place();
        FUZZ_CHECK(stat("/proc/self/ns/mnt", &st) == 0);
        atomic_store(&server.shm->mount_namespace, st.st_ino);
        server.shm->notifier.start_time = lkg_process_start_time(fuzz.notifier);
        atomic_store(&server.shm->notifier.pid, fuzz.notifier);
        fuzz_handshake();
        FUZZ_CHECK(sd_event_new(&server.event) >= 0);
        lkg_nodes_init();
        lkg_files_recount();
        lkg_view_recount_pollers();
        server.gone = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        FUZZ_CHECK(server.gone >= 0 && lkg_publication_load(&err) == 0);
        FUZZ_CHECK(lkg_kept_listen(&err) == 0 && lkg_kept_init(&err) == 0);
        lkg_replay_clean();
        FUZZ_CHECK(lkg_link_init(&err) == 0 && lkg_watch_init(&err) == 0 && lkg_workers_start(&err) == 0);
}

/* The server's own thread, so that the fuzzing engine's thread is neither blocked nor confined. */
static void *fuzz_server_main(void *arg)
{
        (void)arg;
        fuzz_confine();
        (void)umask(0);
        fuzz_prepare();
        (void)eventfd_write(fuzz.ready, 1);
        (void)sd_event_loop(server.event);
        abort();
}

/* Refuse every third command. */
static void fuzz_answer(int fd, struct lkg_message *message)
{
        uint32_t type = message->type;

        message->result = message->ticket % 3 == 0 && type == LKG_MSG_COMMAND ? -EINVAL : 0;
        message->type = type == LKG_MSG_ALIVE ? LKG_MSG_ALIVE : LKG_MSG_DONE;
        message->number = 1;
        message->text_size = 0;
        if (type != LKG_MSG_LOADED)
                (void)lkg_message_send(fd, message);
}

static void *fuzz_engine_main(void *arg)
{
        int fd;

        (void)arg;
        fuzz.notifier = (pid_t)gettid();
        (void)eventfd_write(fuzz.ready, 1);
        while ((fd = accept(fuzz.listening, NULL, NULL)) >= 0) {
                struct pollfd p = { .fd = fd, .events = POLLIN };
                struct lkg_message message;
                int r = 1;

                while (r != 0 && poll(&p, 1, -1) > 0) {
                        r = lkg_message_recv(fd, &message);
                        if (r > 0)
                                fuzz_answer(fd, &message);
                }
                (void)close(fd);
        }
        return NULL;
}

/* Like lkgfsd: when the file server asks for a connection to the engine, send one. */
static void fuzz_send_link(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/runtime/" LKG_ENGINE_SOCKET,
                       fuzz.top);
        FUZZ_CHECK(fd >= 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                (void)lkg_handover_send(fuzz.supervisor, LKG_HANDOVER_LINK, 0, &fd, 1);
        (void)close(fd);
}

static void *fuzz_supervisor_main(void *arg)
{
        int fds[LKG_HANDOVER_FDS_MAX];
        struct lkg_handover message;

        (void)arg;
        while (lkg_handover_recv(fuzz.supervisor, 0, &message, fds) > 0) {
                if (message.type == LKG_HANDOVER_LINK)
                        fuzz_send_link();
                for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                        lkg_close(fds[i]);
        }
        return NULL;
}

static void fuzz_supervise(void)
{
        pthread_t thread;
        int pair[2];

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        fuzz.supervisor = pair[0];
        server.supervisor = pair[1];
        fuzz_send_link();
        FUZZ_CHECK(lkg_handover_send(fuzz.supervisor, LKG_HANDOVER_END, 0, NULL, 0) == 0);
        FUZZ_CHECK(pthread_create(&thread, NULL, fuzz_supervisor_main, NULL) == 0);
}

static void fuzz_listen(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/runtime/" LKG_ENGINE_SOCKET,
                       fuzz.top);
        fuzz.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        FUZZ_CHECK(bind(fuzz.listening, (struct sockaddr *)&address, sizeof(address)) == 0);
        FUZZ_CHECK(chmod(address.sun_path, 0666) == 0 && listen(fuzz.listening, 4) == 0);
}

static void fuzz_server_start(void)
{
        const struct rlimit bytes_of_file = { .rlim_cur = 16u << 20, .rlim_max = 16u << 20 };
        const int bytes = 1 << 20;
        eventfd_t n;
        pthread_t thread;
        int pair[2];

        lkg_log_init("fuzz", LOG_EMERG);
        (void)signal(SIGPIPE, SIG_IGN);
        (void)signal(SIGXFSZ, SIG_IGN);
        FUZZ_CHECK(setrlimit(RLIMIT_FSIZE, &bytes_of_file) == 0); /* FALLOCATE would take all of the disk */
        fuzz_make_place();
        (void)atexit(fuzz_remove_place);
        fuzz_listen();
        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        for (int i = 0; i < 2; i++)
                (void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        server.device = pair[0];
        fuzz.kernel = pair[1];
        fuzz.ready = eventfd(0, EFD_CLOEXEC);
        FUZZ_CHECK(pthread_create(&thread, NULL, fuzz_engine_main, NULL) == 0);
        FUZZ_CHECK(eventfd_read(fuzz.ready, &n) == 0);
        fuzz_supervise();
        FUZZ_CHECK(pthread_create(&thread, NULL, fuzz_server_main, NULL) == 0);
        FUZZ_CHECK(eventfd_read(fuzz.ready, &n) == 0);
}
