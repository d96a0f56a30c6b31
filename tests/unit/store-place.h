/* SPDX-License-Identifier: Apache-2.0 */
/* A state directory for one test of the store. Include it after cmocka.h. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <lkg/file.h>

#include "tests/lib/store-sample.h"
#include "tmpdir.h"

struct place {
        char top[TMPDIR_MAX];
        int fd;
        struct lkg_report report;
        struct lkg_error err;
};

static inline int setup(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        assert_int_equal(tmpdir_make(p->top), 0);
        p->fd = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(p->fd >= 0);
        *state = p;
        return 0;
}

static inline int teardown(void **state)
{
        struct place *p = *state;

        lkg_close(p->fd);
        lkg_report_deinit(&p->report);
        assert_int_equal(tmpdir_remove(p->top), 0);
        free(p);
        return 0;
}

static inline void put(struct place *p, const char *name, const char *text)
{
        int fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        lkg_close(fd);
}

static inline char *get(struct place *p, const char *name)
{
        int fd = openat(p->fd, name, O_RDONLY | O_CLOEXEC);
        char *text = NULL;

        assert_true(fd >= 0);
        assert_int_equal(lkg_read_file(fd, 1u << 20, &text, NULL, NULL), 0);
        lkg_close(fd);
        return text;
}

static inline bool exists(struct place *p, const char *name)
{
        struct stat st;

        return fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void open_both(struct place *p, struct lkg_store *store, struct lkg_store_component *c)
{
        if (lkg_store_open(p->fd, store, &p->report, &p->err) != 0)
                fail_msg("%s", p->err.message);
        if (lkg_store_component_open(store, "kubelet", c, &p->report, &p->err) != 0)
                fail_msg("%s", p->err.message);
}

static inline void close_both(struct lkg_store *store, struct lkg_store_component *c)
{
        lkg_store_component_close(c);
        lkg_store_close(store);
}

/* Takes the findings up to here; later ones are unexpected. */
static inline size_t take_findings(struct place *p)
{
        size_t n = p->report.n_findings;

        lkg_report_deinit(&p->report);
        p->report = (struct lkg_report)LKG_REPORT_INIT;
        return n;
}
