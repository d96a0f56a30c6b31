/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine may still do: the result of each refused call; a network client still works. */

#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lkg/base.h>
#include <lkg/process.h>

#include "unit.h"
#include "../../core/base/syscall-policy.h"

#define N_THREADS 32u

/*
 * One system call in a process with the filter. Return: its errno, 0 on success, 1000 + the signal that
 * killed it.
 */
static int answer(long nr, long a, long b)
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    lkg_syscalls_restrict(&lkg_engine_syscalls, NULL) < 0 ||
                    prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
                        _exit(255); /* some of these calls do harm */
                _exit(syscall(nr, a, b, 0, 0, 0, 0) < 0 ? errno : 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(test_each_rule)
{
        assert_true(lkg_n_syscall_rules > 60);
        for (size_t i = 0; i < lkg_n_syscall_rules; i++) {
                const struct lkg_syscall_rule *rule = &lkg_syscall_rules[i];
                int want = rule->error ? rule->error : 1000 + SIGSYS, got = answer(rule->nr, 0, 0);

                if (got != want)
                        fail_msg("%s: %d, want %d", rule->name, got, want);
        }
}

TEST(test_other_ways_to_the_same_calls)
{
#ifdef __x86_64__
        assert_int_equal(answer(0x40000000 | SYS_getpid, 0, 0), 1000 + SIGSYS);
        assert_int_equal(answer(-1, 0, 0), 1000 + SIGSYS);
#endif
        assert_int_equal(answer(451, 0, 0), ENOSYS); /* newer than the filter's lists */
        assert_int_equal(answer(5000, 0, 0), ENOSYS);
}

/* A new library's call does not kill the engine of a node; it does kill that of a test. */
TEST(test_what_is_on_no_list)
{
        static const long unlisted[] = { SYS_sync,   SYS_mknodat,   SYS_symlinkat, SYS_splice,
                                         SYS_listen, SYS_fsetxattr, SYS_capset,    SYS_flock };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(unlisted); i++) {
                assert_int_equal(unsetenv("LKGFS_SYSCALLS"), 0);
                assert_int_equal(answer(unlisted[i], 0, 0), ENOSYS);
                assert_int_equal(setenv("LKGFS_SYSCALLS", "kill", 1), 0);
                assert_int_equal(answer(unlisted[i], 0, 0), 1000 + SIGSYS);
        }
        assert_int_equal(unsetenv("LKGFS_SYSCALLS"), 0);
}

TEST(test_calls_judged_by_an_argument)
{
        static const int families[] = { AF_UNIX, AF_PACKET, AF_ALG, AF_VSOCK,
                                        AF_CAN,  AF_TIPC,   AF_KEY, AF_BLUETOOTH };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(families); i++) {
                assert_int_equal(answer(SYS_socket, families[i], SOCK_DGRAM), EAFNOSUPPORT);
                assert_int_equal(answer(SYS_socketpair, families[i], SOCK_DGRAM), EAFNOSUPPORT);
        }
        assert_int_equal(answer(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC), EFAULT);
        assert_int_equal(answer(SYS_prctl, PR_SET_DUMPABLE, 1), EPERM);
        assert_int_equal(answer(SYS_kill, getpid(), 0), EPERM); /* its parent */
        assert_int_equal(answer(SYS_kill, -1, 0), EPERM);
        assert_int_equal(answer(SYS_kill, 0, 0), EPERM);
        assert_int_equal(answer(SYS_tgkill, getpid(), getpid()), EPERM);
        assert_int_equal(answer(SYS_prlimit64, getpid(), RLIMIT_CORE), EPERM);
        assert_int_equal(answer(SYS_prlimit64, 0, RLIMIT_CORE), 0);
        assert_int_equal(answer(SYS_fcntl, 0, F_SETOWN), EPERM);
        assert_int_equal(answer(SYS_fcntl, 0, F_GETFD), 0);
        assert_int_equal(answer(SYS_fcntl, 0, F_SETLEASE), EPERM);
        assert_int_equal(answer(SYS_fcntl, 0, F_SETLK), EPERM);
        assert_int_equal(answer(SYS_fcntl, 0, F_OFD_SETLKW), EPERM);
        assert_int_equal(answer(SYS_sendmsg, 0, 0), ENOSYS); /* no passing of descriptors */
        assert_int_equal(answer(SYS_sendmmsg, 0, 0), ENOSYS);
        assert_int_equal(answer(SYS_ioctl, 0, TIOCSTI), 1000 + SIGSYS);
        assert_int_equal(answer(SYS_ioctl, 0, TIOCLINUX), 1000 + SIGSYS);
#ifndef __s390x__ /* the flags are the second argument there */
        assert_int_equal(answer(SYS_clone, SIGCHLD, 0), EPERM);
        assert_int_equal(answer(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0), 1000 + SIGSYS);
        assert_int_equal(answer(SYS_clone, CLONE_NEWNET | CLONE_THREAD, 0), 1000 + SIGSYS);
#endif
}

static int in_a_child(void (*run)(void))
{
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                const struct lkg_account root = { 0 };
                struct lkg_error err = { 0 };

                if (lkg_sandbox_become(&root, &err) < 0 || lkg_sandbox_enter(NULL, 0, &err) < 0)
                        _exit(254);
                if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 &&
                    lkg_syscalls_restrict(&lkg_engine_syscalls, &err) < 0)
                        _exit(253); /* left out in a sanitizer build */
                run();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void *look_up(void *userdata)
{
        const struct addrinfo hints = { .ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM };
        struct addrinfo *found = NULL;

        if (getaddrinfo("localhost", "443", &hints, &found) == 0)
                freeaddrinfo(found);
        (void)pthread_barrier_wait(userdata); /* until all of them have their stacks and arenas */
        return NULL;
}

static void look_up_in_threads(void)
{
        pthread_t threads[N_THREADS];
        pthread_barrier_t barrier;
        unsigned i;

        if (pthread_barrier_init(&barrier, NULL, N_THREADS) != 0)
                _exit(1);
        for (i = 0; i < N_THREADS; i++)
                if (pthread_create(&threads[i], NULL, look_up, &barrier) != 0)
                        _exit(2);
        for (i = 0; i < N_THREADS; i++)
                if (pthread_join(threads[i], NULL) != 0)
                        _exit(3);
}

TEST(test_a_resolver_with_many_threads_fits)
{
        assert_int_equal(in_a_child(look_up_in_threads), 0);
}

/* ---- a resolver ---- */

static void put_file(const char *path, const char *over, const char *text)
{
        LKG_CLEANUP(lkg_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(mount(path, over, NULL, MS_BIND, NULL), 0);
        assert_int_equal(unlink(path), 0);
}

/* Loops forever: 192.0.2.1 forevery question about an IPv4 address, nothing otherwise. */
static void serve_names(int fd)
{
        static const unsigned char address[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
        unsigned char text[512 + sizeof(address)];
        struct sockaddr_in from;
        socklen_t length = sizeof(from);
        ssize_t n;

        while ((n = recvfrom(fd, text, 512, 0, (struct sockaddr *)&from, &length)) > 12) {
                size_t question = 12 + strlen((char *)text + 12) + 5; /* name, type, class */
                bool known = text[question - 3] == 1;

                text[2] |= 0x80; /* an answer */
                text[7] = known;
                memset(text + 8, 0, 4);
                memcpy(text + question, address, sizeof(address));
                (void)sendto(fd, text, question + (known ? sizeof(address) : 0), 0, (struct sockaddr *)&from,
                             length);
                length = sizeof(from);
        }
        _exit(0);
}

static int start_of_names(void)
{
        const struct sockaddr_in here = { .sin_family = AF_INET,
                                          .sin_port = htons(53),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0 ||
                               bind(fd, (const struct sockaddr *)&here, sizeof(here)) < 0
                       ? -1
                       : fd;
}

static void find_a_server(void)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        const char *options = getenv("RES_OPTIONS");
        struct addrinfo *found = NULL;

        if (!options || strcmp(options, "timeout:3 single-request") != 0)
                _exit(2); /* not every C library retries without it */
        if (getaddrinfo("api.cluster.test", "443", &hints, &found) != 0 || found->ai_family != AF_INET)
                _exit(1);
        freeaddrinfo(found);
}

/* DNS over UDP for both address families, as libcurl asks: without the call that could pass descriptors. */
TEST(test_a_name_server_is_asked)
{
        pid_t pid = fork();
        int status, fd;

        assert_true(pid >= 0);
        if (pid == 0) {
                if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 ||
                    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || (fd = start_of_names()) < 0)
                        _exit(77);
                put_file("/tmp/lkgfs-test-resolv", "/etc/resolv.conf",
                         "nameserver 127.0.0.1\noptions timeout:5\n");
                put_file("/tmp/lkgfs-test-nsswitch", "/etc/nsswitch.conf", "hosts: files dns\n");
                pid = fork();
                if (pid == 0)
                        serve_names(fd);
                if (setenv("RES_OPTIONS", "timeout:3", 1) < 0)
                        _exit(76);
                status = in_a_child(find_a_server);
                (void)kill(pid, SIGKILL);
                _exit(status);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip(); /* not root */
        assert_int_equal(status, 0);
}

static void talk(void)
{
        int pair[2], limit = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct if_nameindex *names = if_nameindex(); /* uses netlink */

        if (limit < 0 || !names || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                _exit(1);
        if_freenameindex(names);
        if (signal(SIGABRT, SIG_IGN) == SIG_ERR || raise(SIGABRT) != 0 ||
            signal(SIGABRT, SIG_DFL) == SIG_ERR)
                _exit(2);
        abort(); /* a failed assertion must end the process */
}

TEST(test_sockets_and_an_assertion)
{
        assert_int_equal(in_a_child(talk), 1000 + SIGABRT);
}

static void look_for_what_would_tell_secrets(void)
{
        const struct rlimit none = { 0, 0 };
        struct rlimit is;

        if (getenv("SSLKEYLOGFILE") || getrlimit(RLIMIT_CORE, &is) < 0 ||
            memcmp(&is, &none, sizeof(is)) != 0)
                _exit(1);
}

TEST(test_neither_cores_nor_keys_of_tls_are_written)
{
        assert_int_equal(setenv("SSLKEYLOGFILE", "/tmp/keys", 1), 0);
        assert_int_equal(in_a_child(look_for_what_would_tell_secrets), 0);
        assert_int_equal(unsetenv("SSLKEYLOGFILE"), 0);
}
