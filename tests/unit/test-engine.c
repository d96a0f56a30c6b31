/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole engine in this process, told in steps: rows/engine_*.rows. The test is its file server and its supervisor (engine-node.h), the API server
 * (fake-remote.h), and a disk that fails: checkpoints cannot be read, and there is no space for the pointers. In rows, $TOP is the node's directory.
 *
 * engine_run: from layers to publications, starts, copies, reloads. engine_commands: the control files; who may use them; nothing is done twice.
 * engine_api: where a reference can come from, ConfigMaps, outages, rollout, reports. engine_source: what is followed when its checkpoint is lost,
 * when only the resourceVersion changes, and when there is nothing to roll back to. engine_dynamic: which of ConfigMap, drop-ins and base is at
 * fault, and what waits for whom, also while an operator holds and tries. engine_facts: release and command line of a component, which is
 * another instance of this program.
 *
 * Rule: docs/specification.md 2.10, 2.11, 2.15, 2.16, 4.5, 4.7, 4.10, 4.17, 6.1, 6.2, 6.6.
 */
#define UNIT_OWN_MAIN

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <lkg/documents.h>
#include <lkg/store.h>

#include "core/reference/apiserver.h"
#include "engine-node.h"
#include "cluster-steps.h"

uint64_t lkg_process_start_time(int pid); /* from lkg/shared.h, which the engine does not need otherwise */

#define CONFIG "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\n"

static struct node *n;
static int held_fd;              /* a file that somebody writes */
static uint64_t last_number;     /* of the publication when it was last asked for */
static unsigned last_conditions; /* that the cluster heard of, likewise */
static struct lkg_stack_stats last_work;
static char *first;    /* what `same` saw first */
static char blob[128]; /* a path */
static char release_before[LKG_RELEASE_NAME];

static sd_event *steps_event(void)
{
        return n->event;
}

/* ---- the disk ---- */

static bool unreadable, full;

int __real_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err);
int __wrap_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err);
int __real_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err);
int __wrap_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err);

int __wrap_lkg_record_read_text(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size,
                                struct lkg_error *err)
{
        if (unreadable && strncmp(path, "checkpoints/", 12) == 0)
                return lkg_error_set(err, -EIO, NULL, "%s", path);
        return __real_lkg_record_read_text(dirfd, path, max, ret, ret_size, err);
}

int __wrap_lkg_store_save_pointers(const struct lkg_store_component *c, const struct lkg_pointers *pointers,
                                   struct lkg_error *err)
{
        return full ? lkg_error_set(err, -ENOSPC, NULL, "pointers")
                    : __real_lkg_store_save_pointers(c, pointers, err);
}

STEP(disk, 1)
{
        unreadable = strcmp(q->parts[0], "unreadable") == 0;
        full = strcmp(q->parts[0], "full") == 0;
}

/* ---- what a row says ---- */

/* With the node's directory for $TOP. Caller frees. */
static char *with_top(const char *text, const char *from, const char *to)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        for (const char *next; (next = strstr(text, from)); text = next + strlen(from))
                lkg_buf_printf(&buf, "%.*s%s", (int)(next - text), text, to);
        lkg_buf_printf(&buf, "%s", text);
        return lkg_buf_steal(&buf, NULL);
}

static void say(struct lkg_buf *ret, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *shown = with_top(text, n->top, "$TOP");

        lkg_buf_puts(ret, shown);
}

static void say_result(struct lkg_buf *ret, int r)
{
        lkg_buf_puts(ret, r < 0 ? strerrorname_np(-r) : "done");
}

static void say_yes(struct lkg_buf *ret, bool yes)
{
        lkg_buf_puts(ret, yes ? "yes" : "no");
}

static struct lkg_component *component(void)
{
        return &n->engine->components[0];
}

static void end_children(void);

STEP(steps, 0)
{
        void *state = n;

        end_children();
        if (n)
                (void)teardown(&state);
        fake_reset();
        unreadable = full = false;
        last_number = last_conditions = 0;
        *release_before = '\0';
        free(first);
        first = NULL;
        assert_int_equal(setup(&state), 0);
        n = state;
}

static int end(void **state)
{
        void *node = n;

        (void)state;
        end_children();
        n = NULL;
        return node ? teardown(&node) : 0;
}

/* ---- files ---- */

static void put_parts(const char *path, const char *before, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *named = with_top(text, "$TOP", n->top);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf, "%s%s", before, named);
        put(n, path, buf.data);
}

STEP(put, 2)
{
        put_parts(q->parts[0], "", q->parts[1]);
}

STEP(layer, 2)
{
        put_parts(q->parts[0], HEADER, q->parts[1]);
}

STEP(dropin, 2)
{
        put_dropin(n, q->parts[0], q->parts[1]);
}

STEP(config, 1)
{
        put_parts("etc/config.yaml", CONFIG, q->parts[0]);
}

/* More of `remote:`. */
STEP(remote, 1)
{
        char text[512];

        (void)snprintf(text, sizeof(text), "remote: {enabled: true, nodeName: n1%s}\n", q->parts[0]);
        put_parts("etc/config.yaml", CONFIG, text);
}

/* UID, VERSION and body of the ConfigMap in the file that a `remote:` of a story follows; it is seen at once. */
STEP(assign, 3)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *indented = with_top(q->parts[2], "\n", "\n    ");
        char id[64];

        lkg_buf_printf(&buf,
                       "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: kube-system, name: "
                       "cfg, uid: "
                       "%s, resourceVersion: \"%s\"}\ndata:\n  kubelet: |\n"
                       "    apiVersion: kubelet.config.k8s.io/v1beta1\n    kind: "
                       "KubeletConfiguration\n    %s\n",
                       q->parts[0], q->parts[1], indented);
        put(n, "etc/remote.yaml", buf.data);
        (void)snprintf(id, sizeof(id), "%s@%s ", q->parts[0], q->parts[1]);
        assert_int_equal(command(n, "sync", "now"), 0);
        turn_until(n, "status/kubelet/assigned", id);
}

STEP(unlink, 1)
{
        assert_int_equal(unlink(at(n, q->parts[0])), 0);
}

STEP(mkdir, 1)
{
        assert_int_equal(mkdir(at(n, q->parts[0]), 0755), 0);
}

STEP(link, 2)
{
        int fd = open(n->top, O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(linkat(fd, q->parts[0], fd, q->parts[1], 0), 0);
        lkg_close(fd);
}

STEP(move, 2)
{
        int fd = open(n->top, O_PATH | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(renameat(fd, q->parts[0], fd, q->parts[1]), 0);
        lkg_close(fd);
}

STEP(rmtree, 1)
{
        assert_int_equal(tmpdir_remove(at(n, q->parts[0])), 0);
}

STEP(exists, 1)
{
        say_yes(ret, access(at(n, q->parts[0]), F_OK) == 0);
}

static int no_dots(const struct dirent *entry)
{
        return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

STEP(names, 1)
{
        struct dirent **names;
        int count = scandir(at(n, q->parts[0]), &names, no_dots, alphasort);

        assert_true(count >= 0);
        for (int i = 0; i < count; i++) {
                lkg_buf_printf(ret, "%s%s", i ? " " : "", names[i]->d_name);
                free(names[i]);
        }
        free(names);
}

/* Is it marked as lkgfs' own copy? */
STEP(is_copy, 1)
{
        char value[80];

        say_yes(ret, getxattr(at(n, q->parts[0]), LKG_FALLBACK_XATTR, value, sizeof(value)) >= 0);
}

/* Somebody begins to write a file, goes on, ends. */
STEP(open, 2)
{
        held_fd = open(at(n, q->parts[0]), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(held_fd >= 0);
        assert_int_equal(write(held_fd, HEADER, strlen(HEADER)), strlen(HEADER));
        assert_int_equal(write(held_fd, q->parts[1], strlen(q->parts[1])), strlen(q->parts[1]));
}

STEP(write, 1)
{
        assert_int_equal(write(held_fd, q->parts[0], strlen(q->parts[0])), strlen(q->parts[0]));
}

STEP(close, 0)
{
        assert_int_equal(close(held_fd), 0);
}

/* No file can be put in the manifest's place. */
STEP(block_manifest, 0)
{
        assert_int_equal(renameat(n->runtime_fd, "current", n->runtime_fd, "aside"), 0);
        assert_int_equal(mkdirat(n->runtime_fd, "current", 0700), 0);
}

STEP(free_manifest, 0)
{
        assert_int_equal(unlinkat(n->runtime_fd, "current", AT_REMOVEDIR), 0);
        assert_int_equal(renameat(n->runtime_fd, "aside", n->runtime_fd, "current"), 0);
}

/* ---- the life of an engine ---- */

STEP(settle, 0)
{
        settle();
}

/* Run until nothing is left to do after a change. */
STEP(quiet, 0)
{
        uint64_t over = lkg_boottime_ns() + 400 * LKG_NSEC_PER_MSEC;

        while (lkg_boottime_ns() < over)
                turn(n, 50);
}

STEP(turn, 1)
{
        turn(n, (unsigned)strtoul(q->parts[0], NULL, 10));
}

STEP(start, 0)
{
        struct lkg_error err = { 0 };
        int r = start_with(n, &err);

        if (r == 0) {
                join(n);
                return;
        }
        lkg_buf_printf(ret, "%d ", r);
        say(ret, err.message);
}

STEP(stop, 0)
{
        stop_node(n, true);
}

STEP(kill, 0)
{
        stop_node(n, false);
}

/* A reboot that was announced. */
STEP(reboot, 0)
{
        stop_node(n, true);
        assert_int_equal(tmpdir_remove(at(n, "runtime/blobs")), 0);
        assert_int_equal(unlink(at(n, "runtime/current")), 0);
}

/* One that was not; the runtime directory is a tmpfs. */
STEP(cut_power, 0)
{
        stop_node(n, false);
        (void)lkg_close(n->runtime_fd);
        assert_int_equal(tmpdir_remove(at(n, "runtime")), 0);
        assert_int_equal(mkdir(at(n, "runtime"), 0700), 0);
        n->runtime_fd = open_dir(n, "runtime", O_RDONLY);
}

STEP(persist, 0)
{
        lkg_engine_persist(n->engine);
}

STEP(reload, 0)
{
        lkg_engine_reload(n->engine);
}

/* Look at everything as if the file that is not settled had been unchanged for so many milliseconds. */
STEP(look, 1)
{
        if (*q->parts[0]) {
                assert_int_equal(n->engine->settled.n_samples, 1);
                n->engine->settled.samples[0].since_ns =
                        lkg_boottime_ns() - strtoull(q->parts[0], NULL, 10) * LKG_NSEC_PER_MSEC;
        }
        lkg_watch_touch(&n->engine->watch, NULL);
        lkg_engine_cycle(n->engine, /* look= */ true);
}

/* ---- messages ---- */

STEP(changed, 1)
{
        say_result(ret, changed(n, q->parts[0]));
}

STEP(command, 2)
{
        say_result(ret, command(n, q->parts[0], q->parts[1]));
}

/* With a ticket. */
STEP(ticket, 3)
{
        say_result(ret, command_with(n, q->parts[1], q->parts[2], strtoull(q->parts[0], NULL, 10)));
}

static int command_of(unsigned uid, int pid, uint32_t index, const char *name, const char *text,
                      bool offered)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_COMMAND);
        m.uid = uid;
        m.pid = pid;
        m.component = index;
        (void)snprintf(m.command, sizeof(m.command), "%s", name);
        m.text_size = (uint32_t)strlen(text);
        memcpy(m.text, text, m.text_size);
        return offered ? ask(n, &m, ++n->ticket) : ask_plain(n, &m, ++n->ticket);
}

/* UID PID COMPONENT */
STEP(hold_as, 3)
{
        say_result(ret, command_of((unsigned)strtoul(q->parts[0], NULL, 10), atoi(q->parts[1]),
                                   (uint32_t)strtoul(q->parts[2], NULL, 10), "hold", "on", true));
}

/* The caller was told that it failed. */
STEP(withdrawn, 2)
{
        say_result(ret, command_of(0, 1, 0, q->parts[0], q->parts[1], false));
}

static void send_plain(int fd, enum lkg_message_type type, uint64_t number)
{
        struct lkg_message m;

        lkg_message_init(&m, type);
        m.number = number;
        assert_int_equal(lkg_message_send(fd, &m), 0);
}

/* To the supervisor's side of the engine. */
STEP(send_reload, 0)
{
        send_plain(n->supervisor[0], LKG_MSG_RELOAD, 0);
}

/* The file server has loaded the current publication. */
STEP(send_loaded, 0)
{
        struct lkg_publication *p = current(n);

        send_plain(n->client, LKG_MSG_LOADED, p->number);
        lkg_publication_free(p);
}

/* The next message to the supervisor. `all`: requests for copies, too. */
STEP(hear, 1)
{
        struct lkg_message m;
        int r = *q->parts[0] ? lkg_message_recv(n->supervisor[0], &m) : hear(n, &m);

        if (r != 1)
                lkg_buf_puts(ret, "nothing");
        else if (m.type == LKG_MSG_PUBLISHED)
                lkg_buf_printf(ret, "published %" PRIu64, m.number);
        else if (m.type == LKG_MSG_FATAL) {
                lkg_buf_printf(ret, "fatal %d ", m.result);
                say(ret, m.text);
        } else
                lkg_buf_printf(ret, "%s %.8s", m.type == LKG_MSG_FALLBACK ? "copy" : "another", m.text);
}

/* What the engine asks for in the messages so far. */
static bool is_asked_for(uint32_t type)
{
        struct lkg_message m;
        bool yes = false;

        while (hear(n, &m) == 1)
                yes = yes || (m.type == type && (type != LKG_MSG_RESTART || m.number != 0));
        return yes;
}

STEP(asks_for_restart, 0)
{
        say_yes(ret, is_asked_for(LKG_MSG_RESTART));
}

/* How many; or whether there are any. */
STEP(copies, 1)
{
        unsigned count = write_copies(n);

        if (*q->parts[0])
                lkg_buf_printf(ret, "%u", count);
        else
                say_yes(ret, count > 0);
}

/* ---- the reader ---- */

/* A part of a file, or of all of it what there is instead. */
STEP(has, 2)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, q->parts[0]);

        say(ret, content && strstr(content, q->parts[1]) ? "yes"
                 : content                               ? content
                                                         : "there is no such file");
}

STEP(lacks, 2)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, q->parts[0]);

        say(ret, content && strstr(content, q->parts[1]) ? content : "yes");
}

STEP(absent, 1)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, q->parts[0]);

        say(ret, content ? content : "yes");
}

/* How many history/ has. */
STEP(generations, 0)
{
        unsigned found = 0;

        for (unsigned i = 1; i < 100; i++) {
                LKG_CLEANUP(lkg_freep) char *path = lkg_format("history/kubelet/%u/kubelet.conf", i);
                LKG_CLEANUP(lkg_freep) char *content = view(n, path);

                found += content != NULL;
        }
        lkg_buf_printf(ret, "%u", found);
}

/* The whole of a file. */
STEP(shows, 1)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, q->parts[0]);

        say(ret, content ? content : "there is no such file");
}

/* Samples before which no line tells the type. */
STEP(untyped, 1)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, q->parts[0]);

        for (const char *line = content; *line; line += strcspn(line, "\n") + 1) {
                char type[128];

                (void)snprintf(type, sizeof(type), "\n# TYPE %.*s ", (int)strcspn(line, "{ "), line);
                if (*line != '#' && !strstr(content, type))
                        lkg_buf_printf(ret, "%.*s ", (int)strcspn(line, "{ "), line);
        }
}

/* The errors among the findings; warnings may be about this host. */
STEP(errors, 0)
{
        LKG_CLEANUP(lkg_freep) char *content = view(n, "status/kubelet/findings");

        for (char *rest, *line = strtok_r(content, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                LKG_CLEANUP(lkg_freep) char *shown = with_top(line, n->top, "$TOP");

                if (strstr(shown, ": error: "))
                        lkg_buf_printf(ret, "%s\n", shown);
        }
}

/* What is assigned, active, and known to be good. */
STEP(sources, 0)
{
        static const char *const files[] = { "assigned", "active", "last-known-good" };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                char path[64];
                LKG_CLEANUP(lkg_freep) char *content = NULL;

                (void)snprintf(path, sizeof(path), "status/kubelet/%s", files[i]);
                content = view(n, path);
                lkg_buf_printf(ret, "%s%.*s", i ? ", " : "", (int)strcspn(content, " \n"), content);
        }
}

STEP(begins, 2)
{
        LKG_CLEANUP(lkg_freep) char *content = view_raw(n, q->parts[0]);

        say(ret, strncmp(content, q->parts[1], strlen(q->parts[1])) == 0 ? "yes" : content);
}

STEP(until, 2)
{
        turn_until(n, q->parts[0], q->parts[1]);
}

/* ... it is no longer there. */
STEP(until_not, 2)
{
        for (unsigned i = 0; i < 100 && has(n, q->parts[0], q->parts[1]); i++)
                turn(n, 100);
        step_lacks(q, ret);
}

STEP(generation, 0)
{
        lkg_buf_printf(ret, "%" PRIu64, generation(n));
}

/* Is there another one than when it was last asked? */
STEP(publication, 0)
{
        struct lkg_publication *p = current(n);

        lkg_buf_puts(ret, p->number > last_number    ? "newer"
                          : p->number == last_number ? "the same"
                                                     : "older");
        last_number = p->number;
        lkg_publication_free(p);
}

/* Is it what it was when this was first asked in the story? */
STEP(same, 1)
{
        char *now = view(n, q->parts[0]);

        say_yes(ret, first && strcmp(first, now) == 0);
        if (first)
                free(now);
        else
                first = now;
}

STEP(blobs, 0)
{
        check_blobs(n);
}

STEP(entry, 1)
{
        struct lkg_publication *p = current(n);
        const struct lkg_entry *e = lkg_publication_find(p, q->parts[0]);

        assert_int_equal(e->flags & ~(unsigned)(LKG_ENTRY_VIEW | LKG_ENTRY_POLL), 0);
        lkg_buf_printf(ret, "mode %o%s%s generation %" PRIu64, e->mode,
                       e->flags & LKG_ENTRY_VIEW ? " view" : "", e->flags & LKG_ENTRY_POLL ? " poll" : "",
                       e->generation);
        lkg_publication_free(p);
}

/* Is the blob of a file there; of none: the one of before? */
STEP(blob_of, 1)
{
        struct lkg_publication *p = current(n);

        if (*q->parts[0])
                (void)snprintf(blob, sizeof(blob), "runtime/blobs/%s",
                               lkg_publication_find(p, q->parts[0])->sha256);
        lkg_publication_free(p);
        say_yes(ret, access(at(n, blob), F_OK) == 0);
}

/* Rendered through the socket, as the file server asks; `|` for NUL. */
STEP(list, 1)
{
        LKG_CLEANUP(lkg_closep)
        int blobs = openat(n->runtime_fd, LKG_PUBLICATION_BLOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *names = NULL;
        struct lkg_message m, answer;
        struct lkg_rendered rendered;
        size_t size;

        lkg_message_init(&m, LKG_MSG_RENDER);
        (void)strcpy(m.text, q->parts[0]);
        m.text_size = (uint32_t)strlen(m.text);
        m.ticket = ++n->ticket;
        assert_int_equal(lkg_message_send(n->client, &m), 0);
        do
                turn(n, 100);
        while (lkg_message_recv(n->client, &answer) != 1 || answer.type != LKG_MSG_DONE);
        assert_int_equal(answer.result, 0);
        assert_int_equal(lkg_rendered_parse(answer.text, &rendered), 0);
        assert_int_equal(lkg_publication_read_blob(blobs, rendered.sha256, rendered.size, &names, &size), 0);
        for (size_t i = 0; i < size; i++)
                lkg_buf_putc(ret, names[i] ? names[i] : '|');
}

/* The files that show a text. */
STEP(showing, 1)
{
        struct lkg_publication *p = current(n);

        for (size_t i = 0; i < p->n_entries; i++)
                if ((p->entries[i].type == LKG_ENTRY_FILE || p->entries[i].type == LKG_ENTRY_RENDERED) &&
                    has(n, p->entries[i].path, q->parts[0]))
                        lkg_buf_printf(ret, "%s ", p->entries[i].path);
        lkg_publication_free(p);
}

/* ---- the component ---- */

/* Another instance of this program, with the flags of the row; a process that is older than it stays. */
static pid_t children[4];
static size_t n_children;

static pid_t child(void)
{
        return n_children ? children[n_children - 1] : 0;
}

/* Returns once it runs with its flags. */
static void run(const char *flag)
{
        int ends[2];
        char c;

        assert_int_equal(pipe(ends), 0);
        assert_true(n_children < LKG_ARRAY_SIZE(children));
        children[n_children] = fork();
        if (children[n_children] == 0) {
                if (dup2(ends[1], STDOUT_FILENO) < 0)
                        _exit(1);
                closefrom(3);
                execl("/proc/self/exe", "kubelet", "--config=/in/a/container", flag, (char *)NULL);
                _exit(1);
        }
        assert_true(children[n_children++] > 0);
        assert_int_equal(close(ends[1]), 0);
        assert_int_equal(read(ends[0], &c, 1), 1);
        assert_int_equal(close(ends[0]), 0);
}

/* Without a signal, or by one: a killed component is handled differently. */
static void end_child(int signal)
{
        pid_t pid = child();
        int status;

        n_children--;
        assert_int_equal(kill(pid, signal), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(!!WIFEXITED(status), signal == SIGUSR1);
}

static void end_children(void)
{
        while (n_children)
                end_child(SIGKILL);
}

/* As the supervisor writes it. */
static void put_fact(const char *name, const char *data, size_t size)
{
        LKG_CLEANUP(lkg_closep) int fd = open_dir(n, "runtime/facts/kubelet", O_RDONLY);

        assert_int_equal(lkg_write_file_atomic(fd, name, data, size, 0600, false, NULL), 0);
}

STEP(run, 1)
{
        run(q->parts[0]);
}

STEP(exit, 0)
{
        end_child(SIGUSR1);
}

STEP(end, 0)
{
        end_child(SIGKILL);
}

/* The file server reports the newest process: it reads a generation. */
STEP(started, 1)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_STARTED);
        m.pid = children[n_children ? n_children - 1 : 0];
        m.component = 0;
        m.start_time = lkg_process_start_time(m.pid);
        m.number = strtoull(q->parts[0], NULL, 10);
        say_result(ret, ask(n, &m, ++n->ticket));
}

STEP(fact, 2)
{
        put_fact(q->parts[0], q->parts[1], strlen(q->parts[1]));
}

/* The command line of the unit, `|` for NUL; changed so many seconds from now: a file system's clock is coarse. */
STEP(unit, 2)
{
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                                           { .tv_sec = (time_t)(lkg_realtime_ns() / LKG_NSEC_PER_SEC) +
                                                       strtol(q->parts[0], NULL, 10) } };
        char words[256];
        size_t size = strlen(q->parts[1]) + 1;

        (void)snprintf(words, sizeof(words), "%s", q->parts[1]);
        for (char *c = words; c < words + size; c++)
                if (*c == '|')
                        *c = '\0';
        put_fact("exec-start", words, size);
        assert_int_equal(utimensat(AT_FDCWD, at(n, "runtime/facts/kubelet/exec-start"), times, 0), 0);
}

/* Does the supervisor hear of a start? It may ask for the version then. */
STEP(hears_of_start, 0)
{
        say_yes(ret, is_asked_for(LKG_MSG_STARTED));
}

/* What was published last is read from now on. */
STEP(served_now, 0)
{
        component()->process.served_ns = lkg_boottime_ns();
}

STEP(process, 0)
{
        const struct lkg_component *c = component();

        for (size_t i = 0; i < c->facts->n_processes; i++)
                lkg_buf_printf(ret, "runs with %" PRIu64 "; ", c->facts->processes[i].generation);
        for (size_t i = 0; i < c->dynamic->startups.n_items; i++)
                lkg_buf_printf(ret, "start %zu %s; ", i,
                               c->dynamic->startups.items[i].counted ? "counted" : "excused");
        lkg_buf_puts(ret, c->process.own_event ? "its own doing" : "not its own doing");
}

/* ---- what it followed and counted ---- */

STEP(following, 0)
{
        const struct lkg_dynamic *d = component()->dynamic;
        struct lkg_lifecycle_facts facts;
        struct lkg_lifecycle l;

        lkg_component_take_lifecycle(component(), &l, &facts);
        lkg_buf_printf(ret, "serving '%s', active '%s', left '%s', %zu bad, trial %s, %u starts%s",
                       component()->active ? component()->active->source : "", d->pointers.active.uid,
                       d->pointers.rollback.from.uid, d->bad.n_items, lkg_trial_state_name(d->trial.state),
                       d->trial.prior, lkg_lifecycle_on_trial(&l, &facts) ? ", on trial" : "");
}

/* Does a process that runs with a generation run with what is on trial? */
STEP(runs_tried, 1)
{
        const struct lkg_tracked process = { .generation = strtoull(q->parts[0], NULL, 10), .pidfd = 0 };

        say_yes(ret, lkg_component_runs_tried(component(), &process));
}

/* Another release of the component, or the name of the one that it has. */
STEP(release, 1)
{
        struct lkg_dynamic *d = component()->dynamic;
        struct lkg_report ignored = LKG_REPORT_INIT;
        struct lkg_error err = { 0 };

        if (!*release_before)
                memcpy(release_before, d->store.release, sizeof(release_before));
        assert_int_equal(lkg_dynamic_set_release(d, q->parts[0], release_before, &ignored, &err), 1);
        lkg_report_deinit(&ignored);
}

STEP(work_begins, 0)
{
        last_work = *lkg_stack_stats(component()->stack);
}

/* What was done since then. */
STEP(work, 0)
{
        const struct lkg_stack_stats now = *lkg_stack_stats(component()->stack);

        lkg_buf_printf(ret, "%u refreshes, %u reads, %u parses, %u merges",
                       (unsigned)(now.n_refreshes - last_work.n_refreshes),
                       (unsigned)(now.n_reads - last_work.n_reads),
                       (unsigned)(now.n_parses - last_work.n_parses),
                       (unsigned)(now.n_merges - last_work.n_merges));
}

STEP(refused, 0)
{
        lkg_buf_printf(ret, "%u", (unsigned)component()->counts.refused);
}

STEP(forget_history, 0)
{
        lkg_history_deinit(&component()->history);
}

/* ---- the API server ---- */

/* A node that follows version 1 of kube-system/cfg by its annotation. */
static void follow(void)
{
        fake_credential(LKG_CREDENTIAL_NODE);
        put(n, "etc/config.yaml", CONFIG "remote: {enabled: true, nodeName: n1}\n");
        start(n);
        settle();
        tell_node("node-1", "kube-system/cfg", "");
        fake_tell("configmaps", configmap_json("cfg", "1", "41", ""));
        settle();
        assert_has(n, "kubelet.conf", "maxPods: 41\n");
}

STEP(follow, 0)
{
        LKG_CLEANUP(lkg_freep) char *condition = NULL;

        follow();
        condition = view(n, "status/kubelet/condition");
        lkg_buf_puts(ret, condition);
}

STEP(configmap_file, 4)
{
        put(n, "cm", configmap_json(q->parts[0], q->parts[1], q->parts[2], q->parts[3]));
}

/* Does a place wait for what another process has to do first? */
STEP(pending, 0)
{
        say_yes(ret, n->engine->places->pending);
}

/* Which informer there is, and what was asked of it. */
STEP(informer, 1)
{
        const struct lkg_informer *i = fake_find(q->parts[0]);

        if (i)
                lkg_buf_printf(ret, "%s #%u, fetched %u, anew %u, every %u s", i->name, i->serial,
                               i->n_fetched, i->n_anew,
                               (unsigned)(i->options.poll_interval_ns / LKG_NSEC_PER_SEC));
        else
                lkg_buf_puts(ret, "none");
}

/* It fails longer. */
STEP(node_fails_longer, 1)
{
        uint64_t more = strtoull(q->parts[0], NULL, 10) * LKG_NSEC_PER_SEC;

        n->engine->places->apiserver->node.failing_ns -= more;
        fake_find("nodes")->failing_ns -= more;
}

STEP(timer, 0)
{
        assert_int_equal(sd_event_source_set_time(n->engine->places->apiserver->timer, 0), 0);
        settle();
}

STEP(heard, 1)
{
        for (size_t i = 0; i < fake.n_events; i++)
                lkg_buf_printf(ret, "%s\n", fake.events[i]);
        if (*q->parts[0] && fake_has_event(q->parts[0])) {
                lkg_buf_reset(ret);
                lkg_buf_puts(ret, "yes");
        }
}

/* How many conditions more, the last one, and of which Node. */
STEP(reported, 0)
{
        lkg_buf_printf(ret, "%u, %s, node %s, kicked %u", fake.n_conditions - last_conditions,
                       fake.condition, fake.node_uid, fake.n_kicked);
        last_conditions = fake.n_conditions;
}

/* The credential turns out not to be the node's. */
STEP(not_the_node, 0)
{
        fake.is_node = false;
        fake.refreshed = true;
}

/* The client notices another identity. */
STEP(identity, 1)
{
        fake.identity.serial += *q->parts[0] != '\0';
        fake.client->options.on_identity(fake.client->options.userdata);
        settle();
}

/* What the counters of the client say. */
STEP(counted, 2)
{
        fake.counters.n_answers[LKG_API_OK] = strtoull(q->parts[0], NULL, 10);
        fake.counters.received_bytes = strtoull(q->parts[1], NULL, 10);
}

STEP(expires, 1)
{
        fake.identity.expires_ns = strtoull(q->parts[0], NULL, 10) * LKG_NSEC_PER_SEC;
}

STEP(reporter_says, 1)
{
        static char words[128];

        (void)snprintf(words, sizeof(words), "%s", q->parts[0]);
        fake.reporter_words = words;
        n->engine->places->apiserver->reporter->options.changed(n->engine->places->apiserver);
        settle();
}

/* ---- the rows ---- */

ROWS_WITH(engine_run, rows_steps, NULL, end)
ROWS_WITH(engine_commands, rows_steps, NULL, end)
ROWS_WITH(engine_api, rows_steps, NULL, end)
ROWS_WITH(engine_source, rows_steps, NULL, end)
ROWS_WITH(engine_dynamic, rows_steps, NULL, end)
ROWS_WITH(engine_facts, rows_steps, NULL, end)

/* ---- what no row can say ---- */

static int begin(void **state)
{
        (void)state;
        step_steps(NULL, NULL);
        return 0;
}

/* A directory where the file should be: no rename(2) onto it succeeds. */
static void block(const char *file)
{
        char path[256];

        (void)snprintf(path, sizeof(path), "state/dynamic/kubelet/%s", file);
        assert_true(unlink(at(n, path)) == 0 || errno == ENOENT);
        assert_int_equal(mkdir(at(n, path), 0700), 0);
        (void)snprintf(path, sizeof(path), "state/dynamic/kubelet/%s/full", file);
        put(n, path, "");
}

/* What is due and cannot be stored is tried again after a while; the loop does not turn for nothing meanwhile. */
TEST_WITH(test_a_trial_that_cannot_be_stored_waits, begin, end)
{
        struct lkg_component *c;

        follow();
        c = &n->engine->components[0];
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        c->dynamic->trial.running_since_ns = lkg_boottime_ns();
        c->dynamic->watched = false; /* the clock runs without a process */
        block("trial.json");
        c->dynamic->trial_saved_ns = 0;
        lkg_engine_cycle(n->engine, /* look= */ false);
        assert_true(lkg_component_trial_deadline(c) > lkg_boottime_ns());
        block("pointers.json");
        c->dynamic->trial.good_ns = c->dynamic->trial.stable_ns = UINT64_MAX / 2; /* the trial is over */
        lkg_engine_cycle(n->engine, /* look= */ false);
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        assert_true(lkg_component_trial_deadline(c) > lkg_boottime_ns());
        assert_true(n->engine->clock.retry_at_ns <= lkg_boottime_ns() + LKG_RETRY_MAX_NS);
        assert_int_equal(rmdir(at(n, "state/dynamic/kubelet/pointers.json")), -1);
        assert_int_equal(unlink(at(n, "state/dynamic/kubelet/pointers.json/full")), 0);
        assert_int_equal(rmdir(at(n, "state/dynamic/kubelet/pointers.json")), 0);
        lkg_engine_cycle(n->engine, /* look= */ true);
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_PASSED);
        assert_has(n, "status/kubelet/last-known-good", "uid-cfg@1 kube-system/cfg\n");
}

TEST_WITH(test_exec_plugin, begin, end)
{
        const struct lkg_credential_options *options;
        struct lkg_message m;

        follow();
        options = &n->engine->places->apiserver->credential->options;
        assert_int_equal(options->run_exec(options->userdata), 0);
        assert_true(is_asked_for(LKG_MSG_CREDENTIAL));
        put(n, "runtime/credential", "{\"kind\":\"ExecCredential\"}");
        lkg_message_init(&m, LKG_MSG_CREDENTIAL);
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn(n, 1000);
        settle();
        assert_string_equal(fake.exec_text, "{\"kind\":\"ExecCredential\"}");
        assert_int_equal(access(at(n, "runtime/credential"), F_OK), -1);
        m.result = -ETIMEDOUT;
        m.text_size = 9;
        memcpy(m.text, "too slow.", 9);
        assert_int_equal(lkg_message_send(n->supervisor[0], &m), 0);
        turn(n, 1000);
        settle();
        assert_string_equal(fake.exec_text, "");
        assert_string_equal(fake.exec_why, "too slow.");
}

/* ---- reading ---- */

static void say_release(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_printf(ret, "%u", lkg_facts_release(q->text));
}

TEST(test_words)
{
        static const char data[] = "--a\0\0--b=c d\0last";
        struct lkg_strings words, copy;

        assert_int_equal(lkg_strings_parse(data, sizeof(data) - 1, &words), 0);
        assert_int_equal(words.n_items, 4);
        assert_string_equal(words.items[1], "");
        assert_string_equal(words.items[2], "--b=c d");
        assert_string_equal(words.items[3], "last");
        assert_int_equal(lkg_strings_copy(&words, &copy), 0);
        assert_true(lkg_strings_equal(&words, &copy));
        lkg_strings_deinit(&copy);
        assert_false(lkg_strings_equal(&words, &copy));
        lkg_strings_deinit(&words);
        assert_int_equal(lkg_strings_parse("", 0, &words), 0);
        assert_int_equal(words.n_items, 0);
}

/* The value of --config among the words. */
static void say_config_flag(const struct question *q, struct lkg_buf *ret)
{
        const struct lkg_strings words = { (char **)(uintptr_t)q->parts, q->n_parts };
        const char *value = lkg_flag_on_line(lkg_kubelet_flags, lkg_n_kubelet_flags, &words, "config");

        lkg_buf_printf(ret, value ? "'%s'" : "none", value);
}

static const struct operation reading[] = {
        { "release", say_release, 0 },
        { "config", say_config_flag, 0 },
        { 0 },
};

ROWS(engine_reading, reading)

/*
 * While the service manager is asked why it started, its open() waits: the clock of the trial does not run.
 */
TEST_WITH(test_waiting_for_an_answer_is_no_life, begin, end)
{
        struct lkg_message m;
        struct lkg_component *c;
        char fact[80];

        put(n, "etc/config.yaml",
            CONFIG "trial: {scope: all}\n"
                   "components: [{name: kubelet, match: {unit: kubelet.service}}]\n");
        start(n);
        put_dropin(n, "10-a.conf", "maxPods: 5\n");
        assert_int_equal(changed(n, "kubelet.conf.d/10-a.conf"), 0);
        c = &n->engine->components[0];
        assert_int_equal(c->dynamic->trial.state, LKG_TRIAL_RUNNING);
        assert_int_equal(c->dynamic->trial.running_since_ns, 0);
        run("--v=2");
        lkg_message_init(&m, LKG_MSG_STARTED);
        m.component = 0;
        m.pid = child();
        m.start_time = lkg_process_start_time(child());
        m.number = c->active->number;
        m.ticket = ++n->ticket;
        assert_int_equal(lkg_message_send(n->client, &m), 0);
        while (n->engine->starts.n == 0)
                turn(n, 1000);
        lkg_engine_cycle(n->engine, /* look= */ true);
        assert_int_equal(c->facts->n_processes, 1);
        assert_int_equal(c->dynamic->trial.running_since_ns, 0);
        (void)snprintf(fact, sizeof(fact), "%d %" PRIu64 " automatic\n", (int)child(), m.start_time);
        put_fact("start", fact, strlen(fact)); /* the manager's reply: the open is answered */
        while (n->engine->starts.n > 0)
                turn(n, 1000);
        assert_int_not_equal(c->dynamic->trial.running_since_ns, 0);
        end_child(SIGKILL);
        while (c->dynamic->trial.running_since_ns)
                turn(n, 1000);
}

/* The service manager names the main process; a process with the component's name alone is nobody. */
TEST_WITH(test_a_process_that_was_never_seen_reading, begin, end)
{
        char text[80];

        put(n, "etc/config.yaml", CONFIG "components: [{name: kubelet, match: {unit: kubelet.service}}]\n");
        start(n);
        run("--v=2");
        assert_has(n, "status/kubelet/process", "\npid=\n");
        (void)snprintf(text, sizeof(text), "%d %" PRIu64 " manual\n", (int)child(),
                       lkg_process_start_time(child()));
        put_fact("start", text, strlen(text));
        (void)snprintf(text, sizeof(text), "\npid=%d\ngeneration=\n", (int)child());
        while (!has(n, "status/kubelet/process", text))
                turn(n, 1000);
        end_child(SIGKILL);
        put_fact("end", "x", 1);
        while (!has(n, "status/kubelet/process", "\npid=\ngeneration=\n"))
                turn(n, 1000);
}

int main(int argc, char **argv)
{
        sigset_t signals;
        int number;

        if (argc < 2 || strcmp(argv[0], "kubelet") != 0)
                return run_all(NULL, NULL);
        (void)sigemptyset(&signals); /* the component */
        (void)sigaddset(&signals, SIGUSR1);
        (void)sigprocmask(SIG_BLOCK, &signals, NULL);
        (void)!write(STDOUT_FILENO, "x", 1);
        (void)sigwait(&signals, &number);
        return 1;
}
