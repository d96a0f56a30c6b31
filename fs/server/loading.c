/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a new publication: reads it, parses it, replaces the previous one and retires its nodes. A server that starts and finds none that it
 * can believe makes one up, number 0: pass-through alone, and EIO under the names that the last good one had.
 */
#include <fcntl.h>

#include <lkg/text.h>
#include <lkg/file.h>

#include "file-server.h"

#define NO_PUBLICATION_TIMEOUT_MS 2000 /* engineTimeout as it is by default */

static int read_manifest(struct lkg_publication **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        size_t size = 0;
        int r;

        fd = lkg_open_plain(server.runtime, LKG_PUBLICATION_CURRENT);
        if (fd < 0)
                return lkg_error_set(err, fd, NULL, "open the publication");
        r = lkg_read_file(fd, LKG_MANIFEST_BYTES_MAX, &text, &size, err);
        if (r < 0)
                return r;
        return lkg_publication_parse(text, size, ret, err);
}

/* What the root shows or hides besides the source directory. */
static void remember_name(uint32_t *n, const char *path)
{
        if (*n < LKG_ROOT_NAMES && lkg_bare_name_ok(path))
                (void)snprintf(server.shm->root_names[(*n)++], sizeof(server.shm->root_names[0]), "%s",
                               path);
}

static void remember_names(const struct lkg_publication *publication)
{
        uint32_t n = 0;

        for (size_t i = 0; i < publication->n_entries; i++)
                remember_name(&n, publication->entries[i].path);
        for (size_t i = 0; i < publication->n_rules; i++)
                if (publication->rules[i].type == LKG_RULE_HIDE ||
                    publication->rules[i].type == LKG_RULE_ALIAS)
                        remember_name(&n, publication->rules[i].text);
        atomic_store(&server.shm->n_root_names, n);
}

/* The shared memory may hold anything: what is no name is left out. */
static int make_up(struct lkg_publication **ret, struct lkg_error *err)
{
        char names[LKG_ROOT_NAMES][sizeof(server.shm->root_names[0])];
        struct lkg_rule rules[LKG_ROOT_NAMES];
        struct lkg_publication none = { .number = 1,
                                        .timeout_ms = NO_PUBLICATION_TIMEOUT_MS,
                                        .rules = rules };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        uint32_t n = atomic_load(&server.shm->n_root_names);
        int r;

        memcpy(names, server.shm->root_names, sizeof(names));
        for (uint32_t i = 0; i < n && i < LKG_ROOT_NAMES; i++) {
                names[i][sizeof(names[i]) - 1] = '\0';
                if (lkg_bare_name_ok(names[i]))
                        rules[none.n_rules++] = (struct lkg_rule){ .type = LKG_RULE_HIDE, .text = names[i] };
        }
        lkg_publication_format(&none, &buf);
        r = lkg_buf_failed(&buf) ? lkg_error_set(err, -ENOMEM, NULL, "publication")
                                 : lkg_publication_parse(buf.data, buf.size, ret, err);
        if (r == 0)
                (*ret)->number = 0;
        return r;
}

/* One load at a time, so that a newer publication is never replaced by an older one. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(struct lkg_error *err)
{
        struct lkg_publication *publication = NULL;
        struct publication_ref *ref, *old;
        int r = read_manifest(&publication, err);

        if (r < 0 &&
            !server.publication) { /* at the start; lkgfsd sees the number, and starts another engine */
                lkg_log_error("%s; the source directory is served, and errors under the names of the view",
                              err ? err->message : "no publication");
                r = make_up(&publication, err);
        }
        if (r < 0)
                return r;
        if (server.publication && server.publication->publication->number == publication->number) {
                lkg_publication_free(publication);
                return 0;
        }
        ref = calloc(1, sizeof(*ref));
        if (!ref) {
                lkg_publication_free(publication);
                return lkg_error_set(err, -ENOMEM, NULL, "publication %llu",
                                     (unsigned long long)publication->number);
        }
        ref->publication = publication;
        ref->refs = 1;
        (void)pthread_mutex_lock(&server.publication_lock);
        old = server.publication;
        server.publication = ref;
        (void)pthread_mutex_unlock(&server.publication_lock);
        atomic_store(&server.shm->publication, publication->number);
        if (old)
                publication_put(old);
        if (publication->number == 0)
                return 0; /* what is open stays as it is */
        remember_names(publication);
        nodes_retire(publication);
        return 0;
}

int publication_load(struct lkg_error *err)
{
        int r;

        (void)pthread_mutex_lock(&load_lock);
        r = load(err);
        (void)pthread_mutex_unlock(&load_lock);
        return r;
}
