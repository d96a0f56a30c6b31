/* SPDX-License-Identifier: Apache-2.0 */
/* See facts.h. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/documents.h>

#include <lkg/facts.h>

/* ---- the release ---- */

/* Parses at most three digits. Return: the text after them, or NULL. */
static const char *small_number(const char *p, unsigned *ret)
{
        unsigned n = 0, digits = 0;

        for (; *p >= '0' && *p <= '9'; p++, digits++)
                n = digits < 3 ? n * 10 + (unsigned)(*p - '0') : n;
        *ret = n;
        return digits > 0 && digits <= 3 ? p : NULL;
}

/* Distributions append to the version: v1.33.4-eks-5a3b, v1.36.0+k3s1. */
unsigned lkg_facts_release(const char *text)
{
        static const char name[] = "Kubernetes v";
        const char *p = strstr(text, name);
        unsigned major, minor, patch;

        p = p ? small_number(p + strlen(name), &major) : NULL;
        p = p && *p == '.' ? small_number(p + 1, &minor) : NULL;
        p = p && *p == '.' ? small_number(p + 1, &patch) : NULL;
        if (!p || major == 0)
                return 0;
        return major * 100 + (minor > 99 ? 99 : minor);
}

/* ---- files ---- */

/* Return: 0; -ENOENT or another -errno: there is nothing to read. */
static int read_fact(int dirfd, const char *name, char **ret, size_t *ret_size, uint64_t *ret_time_ns)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, name);
        struct stat st;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        *ret_time_ns = (uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
        return lkg_read_file(fd, LKG_FACT_BYTES_MAX, ret, ret_size, NULL);
}

static void line_deinit(struct lkg_line *line)
{
        lkg_strings_deinit(&line->words);
        *line = (struct lkg_line){ 0 };
}

static void load_version(struct lkg_facts *facts)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_version version;

        facts->version[0] = '\0';
        facts->release = 0;
        if (lkg_fact_read(facts->dirfd, LKG_FACT_VERSION, &text, NULL) < 0)
                return;
        lkg_fact_version_parse(text, &version);
        if (strlen(version.printed) >= sizeof(facts->version))
                return;
        (void)snprintf(facts->version, sizeof(facts->version), "%s", version.printed);
        facts->release = lkg_facts_release(facts->version);
}

static void load_unit(struct lkg_facts *facts)
{
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        struct lkg_line line = { .known = true };
        size_t size;
        int r = read_fact(facts->dirfd, LKG_FACT_EXEC_START, &data, &size, &line.time_ns);

        line_deinit(&facts->unit);
        if (r < 0)
                return;
        (void)lkg_need(lkg_strings_parse(data, size, &line.words));
        facts->unit = line;
}

void lkg_facts_load(struct lkg_facts *facts)
{
        load_version(facts);
        load_unit(facts);
}

/* ---- processes ---- */

static void tracked_deinit(struct lkg_tracked *t)
{
        sd_event_source_disable_unref(t->gone);
        lkg_close(t->pidfd);
        line_deinit(&t->line);
        *t = (struct lkg_tracked){ .pidfd = -EBADF };
}

static void drop_process(struct lkg_facts *facts, size_t i)
{
        tracked_deinit(&facts->processes[i]);
        facts->n_processes--;
        memmove(facts->processes + i, facts->processes + i + 1,
                (facts->n_processes - i) * sizeof(*facts->processes));
}

bool lkg_facts_ended(const struct lkg_tracked *t)
{
        struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

        return t->pidfd < 0 || poll(&p, 1, 0) != 0;
}

void lkg_facts_gone(struct lkg_facts *facts)
{
        for (size_t i = facts->n_processes; i-- > 0;) {
                struct lkg_tracked *t = &facts->processes[i];

                if (!lkg_facts_ended(t))
                        continue;
                if (facts->n_processes > 1) {
                        drop_process(facts, i);
                        continue;
                }
                t->gone = sd_event_source_disable_unref(t->gone);
                t->pidfd = lkg_close(t->pidfd);
        }
}

/* Opens the pidfd first, then compares the start time: if it matches, the pidfd refers to our process. */
static int open_process(int pid, uint64_t start_time)
{
        int fd = pidfd_open(pid, 0);

        if (fd < 0)
                return errno == ESRCH || errno == EINVAL ? -ESRCH : -errno;
        if (start_time == 0 || lkg_process_start_time(pid) != start_time)
                return lkg_close(fd), -ESRCH;
        return fd;
}

static int read_command_line(int pid, struct lkg_line *ret)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        char path[64];
        size_t size, first;
        int r;

        (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;
        r = lkg_read_file(fd, LKG_FACT_BYTES_MAX, &data, &size, NULL);
        if (r < 0)
                return r;
        if (size == 0)
                return -ESRCH; /* it has just exited */
        first = strnlen(data, size);
        first += first < size;
        r = lkg_strings_parse(data + first, size - first, &ret->words);
        ret->known = r == 0;
        ret->time_ns = lkg_realtime_ns();
        return r;
}

/* ---- what outlives the runtime directory ---- */

static int record_path(const struct lkg_facts *facts, char path[static PATH_MAX])
{
        int n = snprintf(path, PATH_MAX, "components/%s.process", facts->component);

        return facts->state_fd < 0 || n < 0 || n >= PATH_MAX ? -ENOENT : 0;
}

/*
 * Not durable: after a power failure, the boot ID is another one anyway. Without the record, the generation
 * of the process is shown as unknown.
 */
static void save_record(const struct lkg_facts *facts, const struct lkg_tracked *t)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        char boot[LKG_BOOT_ID_MAX], path[PATH_MAX];

        lkg_boot_id(boot);
        if (record_path(facts, path) < 0 || !*boot)
                return;
        lkg_json_map(&json, NULL, LKG_JSON_PRETTY);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_text(&json, "boot", boot);
        lkg_json_i64(&json, "pid", t->pid);
        lkg_json_u64(&json, "startTime", t->start_time);
        lkg_json_u64(&json, "generation", t->generation);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, &buf);
        (void)lkg_write_file_atomic(facts->state_fd, path, buf.data, buf.size, 0600,
                                    /* durable= */ false, NULL);
}

/*
 * Loads the recorded process if it is still alive. One that has ended is useless without its command line,
 * which the record does not have.
 */
static void load_record(struct lkg_facts *facts)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        struct lkg_tracked t = { .pidfd = -EBADF };
        char boot[LKG_BOOT_ID_MAX], path[PATH_MAX];
        const char *then;
        uint64_t pid;
        int r = record_path(facts, path);

        if (r < 0 || lkg_record_read(facts->state_fd, path, &doc, NULL) < 0)
                return;
        lkg_boot_id(boot);
        then = lkg_map_get_string(doc, "boot");
        pid = lkg_record_number(doc, "pid", 0);
        if (!then || strcmp(then, boot) != 0 || pid == 0 || pid > INT_MAX)
                return;
        t.pid = (int)pid;
        t.start_time = lkg_record_number(doc, "startTime", 0);
        t.generation = lkg_record_number(doc, "generation", 0);
        t.pidfd = open_process(t.pid, t.start_time);
        if (t.pidfd < 0)
                return;
        if (read_command_line(t.pid, &t.line) < 0 || lkg_facts_ended(&t))
                tracked_deinit(&t);
        else
                facts->processes[facts->n_processes++] = t;
}

/* ---- what the next engine finds ---- */

/* For the next engine, which otherwise knows only the unit's command line. */
static void save_process(const struct lkg_facts *facts, const struct lkg_tracked *t)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_buf_printf(&buf, "%d %" PRIu64 " %" PRIu64, t->pid, t->start_time, t->generation);
        lkg_buf_putc(&buf, '\0');
        for (size_t i = 0; i < t->line.words.n_items; i++)
                lkg_buf_append(&buf, t->line.words.items[i], strlen(t->line.words.items[i]) + 1);
        (void)lkg_write_file_atomic(facts->dirfd, LKG_FACT_PROCESS, buf.data, buf.size, 0600,
                                    /* durable= */ false, NULL);
        save_record(facts, t);
}

static void load_process(struct lkg_facts *facts)
{
        struct lkg_tracked t = { .pidfd = -EBADF, .line = { .known = true } };
        LKG_CLEANUP(lkg_freep) char *data = NULL;
        size_t size, first;
        int r = read_fact(facts->dirfd, LKG_FACT_PROCESS, &data, &size, &t.line.time_ns);

        if (r == -ENOENT)
                load_record(facts);
        if (r < 0)
                return;
        first = strnlen(data, size);
        if (first == size ||
            sscanf(data, "%d %" SCNu64 " %" SCNu64, &t.pid, &t.start_time, &t.generation) < 2 || t.pid <= 0)
                return;
        (void)lkg_need(lkg_strings_parse(data + first + 1, size - first - 1, &t.line.words));
        t.pidfd = open_process(t.pid, t.start_time);
        facts->processes[facts->n_processes++] = t;
}

/* "Have I seen this process?" - is it one of those that we track? */
static struct lkg_tracked *find_process(struct lkg_facts *facts, int pid, uint64_t start_time)
{
        for (size_t i = 0; i < facts->n_processes; i++)
                if (facts->processes[i].pid == pid && facts->processes[i].start_time == start_time)
                        return &facts->processes[i];
        return NULL;
}

bool lkg_facts_reads(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation)
{
        struct lkg_tracked *known = find_process(facts, pid, start_time);

        if (!known || known->generation == generation)
                return false;
        known->generation = generation;
        save_process(facts, known);
        return true;
}

int lkg_facts_started(struct lkg_facts *facts, int pid, uint64_t start_time, uint64_t generation,
                      struct lkg_tracked **ret)
{
        struct lkg_tracked t = {
                .pid = pid, .start_time = start_time, .pidfd = -EBADF, .generation = generation
        };
        struct lkg_tracked *known = find_process(facts, pid, start_time);
        int r;

        if (known) {
                if (generation > known->generation) {
                        known->generation = generation;
                        save_process(facts, known);
                }
                return 0;
        }
        t.pidfd = open_process(pid, start_time);
        if (t.pidfd < 0)
                return t.pidfd == -ESRCH ? 0 : t.pidfd;
        r = read_command_line(pid, &t.line);
        if (r == 0 && lkg_facts_ended(&t))
                r = -ESRCH; /* the process may have ended, and its pid been reused */
        if (r < 0) {
                tracked_deinit(&t);
                return r == -ESRCH ? 0 : r;
        }
        lkg_facts_gone(facts);
        if (facts->n_processes > 0 && facts->processes[0].pidfd < 0)
                drop_process(facts, 0);
        if (facts->n_processes == LKG_FACTS_PROCESSES_MAX)
                drop_process(facts, 0);
        facts->processes[facts->n_processes] = t;
        *ret = &facts->processes[facts->n_processes++];
        save_process(facts, *ret);
        return 1;
}

const struct lkg_line *lkg_facts_line(const struct lkg_facts *facts, bool *ret_running)
{
        const struct lkg_tracked *last =
                facts->n_processes ? &facts->processes[facts->n_processes - 1] : NULL;
        bool running = last && last->pidfd >= 0;

        if (ret_running)
                *ret_running = running;
        if (running)
                return &last->line;
        if (facts->unit.known && (!last || facts->unit.time_ns > last->line.time_ns))
                return &facts->unit;
        return last ? &last->line : NULL;
}

/* ---- open and close ---- */

int lkg_facts_open(int runtime_fd, int state_fd, const char *component, struct lkg_facts **ret,
                   struct lkg_error *err)
{
        struct lkg_facts *facts = lkg_must(calloc(1, sizeof(*facts)));
        char path[sizeof(LKG_FACTS_DIR) + NAME_MAX + 1];
        int r;

        facts->dirfd = -EBADF;
        facts->state_fd = state_fd;
        facts->component = lkg_must(strdup(component));
        (void)snprintf(path, sizeof(path), LKG_FACTS_DIR "/%s", component);
        r = lkg_mkdir_p(runtime_fd, path, 0700, err);
        facts->dirfd = r < 0 ? -EBADF : openat(runtime_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && facts->dirfd < 0)
                r = lkg_error_set(err, -errno, NULL, "open '%s'", path);
        if (r < 0) {
                lkg_facts_free(facts);
                return r;
        }
        lkg_facts_load(facts);
        load_process(facts);
        *ret = facts;
        return 0;
}

struct lkg_facts *lkg_facts_free(struct lkg_facts *facts)
{
        if (!facts)
                return NULL;
        for (size_t i = 0; i < facts->n_processes; i++)
                tracked_deinit(&facts->processes[i]);
        line_deinit(&facts->unit);
        lkg_close(facts->dirfd);
        free(facts->component);
        free(facts);
        return NULL;
}
