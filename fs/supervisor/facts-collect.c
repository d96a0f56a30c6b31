/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forked process that collects facts. Every step may block and has a time limit; the supervisor kills
 * the process if it still takes too long. No messages: a fact that cannot be determined is unknown.
 */
#include <inttypes.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lkg/file.h>
#include <lkg/process.h>
#include <lkg/base.h>

#include "facts-collectors.h"

#define VERSION_LIMIT_NS  (5 * LKG_NSEC_PER_SEC)
#define VERSION_BYTES_MAX 4096u
#define BUS_LIMIT_USEC    (5 * UINT64_C(1000000))

/* ---- files ---- */

/* Opens the directory @name in @dirfd and creates it if necessary; symlinks are not followed. */
static int plain_directory(int dirfd, const char *name)
{
        if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
                return -errno;
        return lkg_open_plain_directory(dirfd, name);
}

int lkg_facts_dir(int runtime_fd, const char *component)
{
        LKG_CLEANUP(lkg_closep) int facts = plain_directory(runtime_fd, LKG_FACTS_DIR);

        return facts < 0 ? facts : plain_directory(facts, component);
}

/* ---- the version ---- */

/* In the process that becomes the component's program: nothing of ours, and few of root's privileges. */
static int become_program(void *userdata)
{
        const struct rlimit none = { 0, 0 }, small = { 1 << 20, 1 << 20 };
        char *const argv[] = { userdata, (char *)(uintptr_t) "--version", NULL };
        char *const env[] = { (char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_FSIZE, &small);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)execve(argv[0], argv, env);
        return 127;
}

/*
 * The first line of the output of @exe, "" if it is not usable.
 * Return: false: the program could not be started at all: try again.
 */
static bool ask_version(const char *exe, struct lkg_buf *ret)
{
        char text[VERSION_BYTES_MAX];
        const struct lkg_job_spec spec = { .run = become_program, .userdata = (void *)(uintptr_t)exe };
        struct lkg_job_output output = { .data = text, .max = sizeof(text), .bounded = true };
        int status = 0, r = lkg_job_run(&spec, VERSION_LIMIT_NS, &output, NULL, &status);
        size_t line;

        if (r < 0)
                return r == -ETIMEDOUT || r == -EFBIG;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return false;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return true;
        for (line = 0; line < output.size && text[line] != '\n'; line++)
                ;
        lkg_blank_hidden(text, line, '?');
        lkg_buf_append(ret, text, line);
        return true;
}

/*
 * A program is run as root only if no other user can replace it.
 * Return: 0; 1: must not be run; -errno: it may be in the middle of an upgrade.
 */
static int judge(const char *exe, struct stat *ret_st, struct lkg_error *err)
{
        int r = lkg_judge_program(exe, ret_st, err);

        return r == -EPERM || r == -EACCES || r == -EINVAL ? 1 : r;
}

static bool recorded(int dirfd, const char *program)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        struct lkg_fact_version version;

        if (lkg_fact_read(dirfd, LKG_FACT_VERSION, &text, NULL) < 0)
                return false;
        lkg_fact_version_parse(text, &version);
        return strcmp(version.program, program) == 0;
}

void lkg_facts_version(int dirfd, char *const *exes, size_t n_exes)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf printed = LKG_BUF_INIT, buf = LKG_BUF_INIT;
        struct lkg_error err = { 0 };
        struct stat st;
        char identity[128];
        size_t i = 0;
        int refused;

        while (i < n_exes && stat(exes[i], &st) < 0)
                i++;
        if (i == n_exes)
                return; /* it may be in the middle of an upgrade: keep the old answer */
        refused = judge(exes[i], &st, &err);
        if (refused < 0)
                return;
        (void)snprintf(identity, sizeof(identity), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s",
                       (uint64_t)st.st_dev, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                       (uint64_t)st.st_mtim.tv_sec * LKG_NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
                       refused ? " refused" : "");
        if (recorded(dirfd, identity))
                return;
        if (refused)
                lkg_log_warning("match.exe: --version is not asked for: %s", err.message);
        else if (!ask_version(exes[i], &printed))
                return;
        if (lkg_buf_failed(&printed))
                return;
        lkg_fact_version_format(&(struct lkg_fact_version){ printed.data ? printed.data : "", identity },
                                &buf);
        (void)lkg_fact_write(dirfd, LKG_FACT_VERSION, &buf);
}

/* ---- all ---- */

static void ask_unit(int dirfd, sd_bus *bus, const char *name)
{
        LKG_CLEANUP(lkg_unit_deinit) struct lkg_unit unit = { 0 };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        int r = lkg_unit_query(bus, name, &unit);

        if (r == 0)
                r = lkg_unit_words(&unit, &buf);
        if (r == 0)
                (void)lkg_fact_write(dirfd, LKG_FACT_EXEC_START, &buf);
        else if (r == -ENOENT)
                (void)unlinkat(dirfd, LKG_FACT_EXEC_START,
                               0); /* the service manager reports that there is none */
}

sd_bus *lkg_facts_bus(void)
{
        sd_bus *bus = NULL;

        if (sd_bus_open_system(&bus) < 0)
                return NULL;
        (void)sd_bus_set_method_call_timeout(bus, BUS_LIMIT_USEC);
        return bus;
}

void lkg_facts_collect(int runtime_fd, const struct lkg_settings_component *components, size_t n)
{
        sd_bus *bus = NULL;
        bool tried = false;

        for (size_t i = 0; i < n; i++) {
                LKG_CLEANUP(lkg_closep) int fd = lkg_facts_dir(runtime_fd, components[i].name);

                if (fd < 0)
                        continue;
                if (*components[i].unit && !tried) {
                        bus = lkg_facts_bus();
                        tried = true;
                }
                if (bus && *components[i].unit)
                        ask_unit(fd, bus, components[i].unit);
                lkg_facts_version(fd, components[i].exes, components[i].n_exes);
        }
        sd_bus_flush_close_unref(bus);
}
