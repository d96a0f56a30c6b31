/* SPDX-License-Identifier: Apache-2.0 */
/* Files of facts: see <lkg/messages.h>. */
#include <inttypes.h>

#include <lkg/messages.h>
#include <lkg/file.h>

#define DUE "not_before_ns="

/* ---- version ---- */

void lkg_fact_version_format(const struct lkg_fact_version *version, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%s\n%s\n", version->printed, version->program);
}

void lkg_fact_version_parse(char *text, struct lkg_fact_version *ret)
{
        char *second = text + strcspn(text, "\n");

        if (*second)
                *second++ = '\0';
        second[strcspn(second, "\n")] = '\0';
        *ret = (struct lkg_fact_version){ text, second };
}

/* ---- start ---- */

static const char *const why_words[] = {
        [LKG_START_AUTOMATIC] = "automatic",
        [LKG_START_CLEAN] = "clean",
        [LKG_START_MANUAL] = "manual",
};

const char *lkg_start_why_word(enum lkg_start_why why)
{
        return why_words[why];
}

bool lkg_start_why_parse(const char *word, enum lkg_start_why *ret)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(why_words); i++) {
                if (strcmp(why_words[i], word) != 0)
                        continue;
                *ret = (enum lkg_start_why)i;
                return true;
        }
        return false;
}

void lkg_fact_start_format(const struct lkg_fact_start *start, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%d %" PRIu64 " %s\n", start->pid, start->start_time, why_words[start->why]);
}

bool lkg_fact_start_parse(const char *text, struct lkg_fact_start *ret)
{
        struct lkg_fact_start start;
        char why[16];

        if (sscanf(text, "%d %" SCNu64 " %15s", &start.pid, &start.start_time, why) != 3 || start.pid <= 0 ||
            !lkg_start_why_parse(why, &start.why))
                return false;
        *ret = start;
        return true;
}

/* ---- restarts ---- */

void lkg_fact_restarted_format(const struct lkg_fact_restarted *restarted, const char *result,
                               struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%" PRIu64 " %s %" PRIu64 " %s\n", restarted->asked_ns, restarted->boot,
                       restarted->generation, result);
}

bool lkg_fact_restarted_parse(const char *text, struct lkg_fact_restarted *ret)
{
        struct lkg_fact_restarted restarted;

        _Static_assert(LKG_BOOT_ID_MAX == 40 && sizeof(restarted.result) == 16, "the widths below");
        if (sscanf(text, "%" SCNu64 " %39s %" SCNu64 " %15s", &restarted.asked_ns, restarted.boot,
                   &restarted.generation, restarted.result) != 4)
                return false;
        *ret = restarted;
        return true;
}

uint64_t lkg_fact_plan_due(const char *text)
{
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, DUE, strlen(DUE)) == 0)
                        return strtoull(line + strlen(DUE), NULL, 10);
        }
        return 0;
}

/* ---- files ---- */

int lkg_fact_read(int dirfd, const char *name, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, name);

        return fd < 0 ? fd : lkg_read_file(fd, LKG_FACT_BYTES_MAX, ret, ret_size, NULL);
}

int lkg_fact_write(int dirfd, const char *name, const struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *old = NULL;
        size_t size;

        if (lkg_buf_failed(buf) || buf->size > LKG_FACT_BYTES_MAX)
                return lkg_buf_failed(buf) ? -ENOMEM : -EFBIG;
        if (lkg_fact_read(dirfd, name, &old, &size) >= 0 && size == buf->size &&
            memcmp(old, buf->data, size) == 0)
                return 0;
        return lkg_write_file_atomic(dirfd, name, buf->data, buf->size, 0600, /* durable= */ false, NULL);
}
