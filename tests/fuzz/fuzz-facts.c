/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the files below facts/ and the record of the last process: accepted facts are bounded and
 * have no line break where none is allowed, and a process is tracked only if it runs. Lines `%%%` separate
 * the files, in the order of the table. Rule: docs/specification.md 6.6.
 */
#include <fcntl.h>

#include <lkg/file.h>

#include <lkg/facts.h>
#include "fuzz-check.h"
#include "tests/unit/tmpdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEPARATOR "%%%\n"

static const char *const files[] = { "version", "exec-start", "process", "components/kubelet.process" };
static char top[TMPDIR_MAX];
static int place = -EBADF;

static void remove_place(void)
{
        (void)tmpdir_remove(top);
}

static void make_place(void)
{
        FUZZ_CHECK(tmpdir_make(top) == 0 && atexit(remove_place) == 0);
        place = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        FUZZ_CHECK(place >= 0 && lkg_mkdir_p(place, "facts/kubelet", 0700, NULL) == 0 &&
                   lkg_mkdir_p(place, "components", 0700, NULL) == 0);
}

static void put(size_t i, const char *data, size_t size)
{
        char path[64];
        int fd;

        (void)snprintf(path, sizeof(path), "%s%s", strchr(files[i], '/') ? "" : "facts/kubelet/", files[i]);
        (void)unlinkat(place, path, 0);
        if (!data)
                return;
        fd = openat(place, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        FUZZ_CHECK(fd >= 0 && lkg_write_all(fd, data, size) == 0);
        (void)close(fd);
}

static void put_all(const char *data, size_t size)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(files); i++) {
                const char *cut = data ? memmem(data, size, SEPARATOR, strlen(SEPARATOR)) : NULL;
                size_t n = cut ? (size_t)(cut - data) : size;

                put(i, data, n);
                data = cut ? cut + strlen(SEPARATOR) : NULL;
                size = cut ? size - n - strlen(SEPARATOR) : 0;
        }
}

static void check_line(const struct lkg_line *line)
{
        struct lkg_strings copy = { 0 };
        size_t bytes = 0;

        if (!line)
                return;
        FUZZ_CHECK(line->known);
        for (size_t i = 0; i < line->words.n_items; i++)
                bytes += strlen(line->words.items[i]) + 1;
        FUZZ_CHECK(bytes <= LKG_FACT_BYTES_MAX + 1);
        FUZZ_CHECK(lkg_strings_copy(&line->words, &copy) == 0 && lkg_strings_equal(&copy, &line->words));
        lkg_strings_deinit(&copy);
}

static void check_facts(const struct lkg_facts *facts)
{
        bool running;
        const struct lkg_line *line = lkg_facts_line(facts, &running);

        FUZZ_CHECK(memchr(facts->version, '\0', sizeof(facts->version)) && !strchr(facts->version, '\n'));
        FUZZ_CHECK(facts->release == 0 || (facts->release >= 100 && facts->release < 100000));
        FUZZ_CHECK(facts->n_processes <= 1); /* a file describes one process */
        for (size_t i = 0; i < facts->n_processes; i++) {
                const struct lkg_tracked *t = &facts->processes[i];

                FUZZ_CHECK(t->pid > 0 && (t->pidfd < 0 || lkg_process_start_time(t->pid) == t->start_time));
                check_line(&t->line);
        }
        check_line(line);
        check_line(facts->unit.known ? &facts->unit : NULL);
        FUZZ_CHECK(!running || facts->n_processes == 1);
}

/* Accepted facts are written back in a form that is read in the same way. */
static void check_round_trips(const char *text)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_fact_restarted restarted, restarted_again;
        struct lkg_fact_start start, start_again;

        if (lkg_fact_start_parse(text, &start)) {
                FUZZ_CHECK(start.pid > 0 && start.why < _LKG_START_MAX);
                lkg_fact_start_format(&start, &buf);
                FUZZ_CHECK(lkg_fact_start_parse(buf.data, &start_again) && start_again.pid == start.pid &&
                           start_again.start_time == start.start_time && start_again.why == start.why);
                lkg_buf_deinit(&buf);
        }
        if (lkg_fact_restarted_parse(text, &restarted)) {
                lkg_fact_restarted_format(&restarted, restarted.result, &buf);
                FUZZ_CHECK(lkg_fact_restarted_parse(buf.data, &restarted_again) &&
                           restarted_again.asked_ns == restarted.asked_ns &&
                           restarted_again.generation == restarted.generation &&
                           strcmp(restarted_again.boot, restarted.boot) == 0 &&
                           strcmp(restarted_again.result, restarted.result) == 0);
        }
        (void)lkg_fact_plan_due(text);
}

static void check_protocol(const char *data, size_t size)
{
        LKG_CLEANUP(lkg_freep) char *text = strndup(data, size);
        struct lkg_fact_version version;

        FUZZ_CHECK(text);
        check_round_trips(text);
        lkg_fact_version_parse(text, &version);
        FUZZ_CHECK(!strchr(version.printed, '\n') && !strchr(version.program, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_facts *facts = NULL;

        check_protocol((const char *)data, size);

        if (place < 0)
                make_place();
        put_all((const char *)data, size);
        FUZZ_CHECK(lkg_facts_open(place, place, "kubelet", &facts, NULL) == 0);
        check_facts(facts);
        /* A new process takes the place of one that is gone, whatever its file said. */
        lkg_facts_gone(facts);
        lkg_facts_load(facts);
        check_facts(facts);
        lkg_facts_free(facts);
        return 0;
}
