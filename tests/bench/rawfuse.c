/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower bound: the minimum that a FUSE file system must do for an open of kubelet.conf that must not be
 * stale.
 *
 *     rawfuse FILE MOUNTPOINT
 *     rawfuse -f FILE MOUNTPOINT      the floor of a change
 *
 * With -f the file may be written, too, and each FLUSH is answered after a round trip to a second process, which does
 * nothing: what is left of a close() that waits until another process has judged the change. What is written is lost.
 *
 * No library: one thread reads /dev/fuse and answers. The root directory has one entry, kubelet.conf, with
 * the bytes that FILE had at the start. It costs the same two round trips as the view: a LOOKUP, because the
 * name may lead to another generation at any moment (entry timeout 0), and an OPEN, because the caller has
 * to be identified. Attributes are valid forever, the page cache is kept, close sends nothing that the
 * caller waits for. Runs until it is unmounted or gets SIGTERM.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "measure.h"

#define FILE_NODE 2
#define FOR_EVER  1000000000u
#define MAX_WRITE (128u << 10)
#define FILE_MAX  (128u << 10)
#define FILE_NAME "kubelet.conf"

struct served {
        char data[FILE_MAX];
        size_t size;
};

/* The answer of an operation: @error, or @size bytes at @data. */
struct answer {
        int error;
        const void *data;
        size_t size;
        union {
                struct fuse_init_out init;
                struct fuse_entry_out entry;
                struct fuse_attr_out attr;
                struct fuse_open_out open;
                struct fuse_write_out write;
        } u;
};

static struct served served;
static const char *mount_point;
static int judge = -1; /* the second process; -1 = none */

static void fill_attr(struct fuse_attr *attr, uint64_t node)
{
        attr->ino = node;
        attr->mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0600;
        attr->nlink = node == FUSE_ROOT_ID ? 2 : 1;
        attr->size = node == FUSE_ROOT_ID ? 0 : served.size;
        attr->blksize = 4096;
}

static void answer_init(const struct fuse_init_in *in, struct answer *a)
{
        a->u.init.major = FUSE_KERNEL_VERSION;
        a->u.init.minor = in->minor < 31 ? in->minor : 31;
        a->u.init.max_readahead = in->max_readahead;
        a->u.init.flags = in->flags & (FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC | FUSE_AUTO_INVAL_DATA);
        a->u.init.max_background = 12;
        a->u.init.max_write = MAX_WRITE;
        a->data = &a->u.init;
        a->size = sizeof(a->u.init);
}

static void answer_lookup(const char *name, struct answer *a)
{
        if (strcmp(name, FILE_NAME) != 0) {
                a->error = -ENOENT;
                return;
        }
        a->u.entry.nodeid = FILE_NODE;
        a->u.entry.attr_valid = FOR_EVER;
        fill_attr(&a->u.entry.attr, FILE_NODE);
        a->data = &a->u.entry;
        a->size = sizeof(a->u.entry);
}

static void answer_getattr(uint64_t node, struct answer *a)
{
        a->u.attr.attr_valid = FOR_EVER;
        fill_attr(&a->u.attr.attr, node);
        a->data = &a->u.attr;
        a->size = sizeof(a->u.attr);
}

static void answer_open(struct answer *a)
{
        a->u.open.open_flags = FOPEN_KEEP_CACHE | (judge < 0 ? FOPEN_NOFLUSH : 0);
        a->data = &a->u.open;
        a->size = sizeof(a->u.open);
}

static void answer_read(const struct fuse_read_in *in, struct answer *a)
{
        if (in->offset >= served.size)
                return;
        a->data = served.data + in->offset;
        a->size = served.size - in->offset < in->size ? served.size - in->offset : in->size;
}

static void answer_write(const struct fuse_write_in *in, struct answer *a)
{
        a->u.write.size = in->size;
        a->data = &a->u.write;
        a->size = sizeof(a->u.write);
}

static void ask_judge(void)
{
        char byte = 0;

        if (send(judge, &byte, 1, 0) != 1 || recv(judge, &byte, 1, 0) != 1)
                give_up("ask the second process");
}

/* Ends with this process. */
static void start_judge(void)
{
        int pair[2];
        char byte;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                give_up("socketpair");
        judge = pair[0];
        if (fork() != 0)
                return;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        while (recv(pair[1], &byte, 1, 0) == 1 && send(pair[1], &byte, 1, 0) == 1)
                ;
        _exit(0);
}

/* Return: whether the kernel waits for an answer. */
static int handle(const struct fuse_in_header *in, const void *body, struct answer *a)
{
        switch (in->opcode) {
        case FUSE_INIT:
                answer_init(body, a);
                return 1;
        case FUSE_LOOKUP:
                answer_lookup(body, a);
                return 1;
        case FUSE_GETATTR:
                answer_getattr(in->nodeid, a);
                return 1;
        case FUSE_OPEN:
                answer_open(a);
                return 1;
        case FUSE_READ:
                answer_read(body, a);
                return 1;
        case FUSE_RELEASE:
                return 1;
        case FUSE_SETATTR:
                answer_getattr(in->nodeid, a);
                return 1;
        case FUSE_WRITE:
                answer_write(body, a);
                return 1;
        case FUSE_FLUSH:
                ask_judge();
                return 1;
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
        case FUSE_INTERRUPT:
                return 0;
        default:
                a->error = -ENOSYS;
                return 1;
        }
}

static void serve(int device)
{
        static char request[MAX_WRITE + 8192] __attribute__((aligned(4096)));

        for (;;) {
                ssize_t n = read(device, request, sizeof(request));
                const struct fuse_in_header *in = (const void *)request;
                struct fuse_out_header out = { 0 };
                struct answer a = { 0 };
                struct iovec parts[2];

                if (n < 0 && errno == ENODEV)
                        return; /* unmounted */
                if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
                        continue;
                if (n < (ssize_t)sizeof(*in))
                        give_up("read /dev/fuse");
                if (!handle(in, in + 1, &a))
                        continue;
                out.len = (uint32_t)(sizeof(out) + a.size);
                out.error = a.error;
                out.unique = in->unique;
                parts[0] = (struct iovec){ &out, sizeof(out) };
                parts[1] = (struct iovec){ (void *)a.data, a.size };
                if (writev(device, parts, a.size ? 2 : 1) < 0 && errno != ENOENT)
                        give_up("write /dev/fuse");
        }
}

static void load_file(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                give_up("open %s", path);
        n = read(fd, served.data, sizeof(served.data));
        if (n <= 0 || read(fd, served.data, 0) < 0)
                give_up("read %s", path);
        served.size = (size_t)n;
        close(fd);
}

/* umount2 is a plain system call; the loop then ends by itself with ENODEV. */
static void on_signal(int signal_number)
{
        (void)signal_number;
        (void)umount2(mount_point, MNT_DETACH);
}

int main(int argc, char **argv)
{
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        char options[128];
        int device;

        if (argc == 4 && strcmp(argv[1], "-f") == 0) {
                start_judge();
                argv++;
        } else if (argc != 3) {
                fprintf(stderr, "usage: rawfuse [-f] FILE MOUNTPOINT\n");
                return 64;
        }
        load_file(argv[1]);
        mount_point = argv[2];
        device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (device < 0)
                give_up("open /dev/fuse");
        (void)snprintf(options, sizeof(options),
                       "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device);
        if (mount("rawfuse", mount_point, "fuse.rawfuse", MS_NOSUID | MS_NODEV, options) < 0)
                give_up("mount on %s", mount_point);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        serve(device);
        return 0;
}
