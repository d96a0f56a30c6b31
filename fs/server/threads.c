/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that handle requests: their memory, their umask, their end. */
#include <sched.h>
#include <sys/prctl.h>

#include "held-requests.h"

#define STACK_BYTES (256u * 1024)

static int own_reply_buffer(void)
{
        task.buf = mmap(NULL, LKG_MAX_WRITE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (task.buf == MAP_FAILED) {
                task.buf = NULL;
                return -errno;
        }
        memset(task.buf, 1, LKG_MAX_WRITE);
        return 0;
}

/* The umask is per "file system context": each thread gets its own, so that a create can take the caller's. */
int thread_init(const char *name)
{
        (void)prctl(PR_SET_NAME, name);
        if (unshare(CLONE_FS) < 0)
                return -errno;
        return own_reply_buffer();
}

/* libc keeps the stacks of finished threads, including their touched pages. */
static void trim_stack(void)
{
        const uintptr_t page = 4096, here = (uintptr_t)__builtin_frame_address(0);
        pthread_attr_t attr;
        void *stack = NULL;
        size_t size = 0;

        if (pthread_getattr_np(pthread_self(), &attr) != 0)
                return;
        (void)pthread_attr_getstack(&attr, &stack, &size);
        (void)pthread_attr_destroy(&attr);
        if (stack && here - 2 * page > (uintptr_t)stack)
                (void)madvise(stack, ((here - 2 * page) & ~(page - 1)) - (uintptr_t)stack, MADV_DONTNEED);
}

void thread_end(void)
{
        if (task.buf)
                (void)munmap(task.buf, LKG_MAX_WRITE);
        task.buf = NULL;
        trim_stack();
}

int thread_start(void *(*main)(void *), void *arg)
{
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        (void)pthread_attr_init(&attr);
        (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attr, main, arg);
        (void)pthread_attr_destroy(&attr);
        return -r;
}
