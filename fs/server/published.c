/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current publication: parsed from `current`, replaced as a whole, reference counted so that a worker in the middle
 * of a lookup keeps the one it began with.
 */
#include <fcntl.h>

#include <lkg/fallback.h>
#include <lkg/file.h>

#include "server.h"

struct publication_ref *publication_get(void)
{
        struct publication_ref *ref;

        (void)pthread_mutex_lock(&server.publication_lock);
        ref = server.publication;
        ref->refs++;
        (void)pthread_mutex_unlock(&server.publication_lock);
        return ref;
}

void publication_put(struct publication_ref *ref)
{
        bool last;

        (void)pthread_mutex_lock(&server.publication_lock);
        last = --ref->refs == 0;
        (void)pthread_mutex_unlock(&server.publication_lock);
        if (last) {
                lkg_publication_free(ref->publication);
                free(ref);
        }
}

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

/* One load at a time, so that a newer publication is never replaced by an older one. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

static int load(struct lkg_error *err)
{
        struct lkg_publication *publication = NULL;
        struct publication_ref *ref, *old;
        int r = read_manifest(&publication, err);

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

const struct lkg_rule *publication_rule(const struct lkg_publication *publication, enum lkg_rule_type type,
                                        const char *text)
{
        for (size_t i = 0; i < publication->n_rules; i++)
                if (publication->rules[i].type == type && strcmp(publication->rules[i].text, text) == 0)
                        return &publication->rules[i];
        return NULL;
}

/* @path is @top or below it. */
static bool below(const char *path, const char *top)
{
        size_t size = strlen(top);

        return strncmp(path, top, size) == 0 && (path[size] == '\0' || path[size] == '/');
}

/*
 * Does a change of @path (of the source directory) change a layer? Also when a directory above the layer moves.
 */
bool publication_commits(const struct lkg_publication *publication, const char *path)
{
        for (size_t i = 0; i < publication->n_rules; i++) {
                const struct lkg_rule *rule = &publication->rules[i];

                if (rule->type == LKG_RULE_TREE && (below(path, rule->text) || below(rule->text, path)))
                        return true;
                if (rule->type == LKG_RULE_FILE && below(rule->text, path))
                        return true;
        }
        return false;
}

bool publication_hides(const struct lkg_publication *publication, const char *path)
{
        if (strcmp(path, LKG_FALLBACK_DIR) == 0 || strcmp(path, LKG_DOOR_DIR) == 0)
                return true;
        return publication_rule(publication, LKG_RULE_HIDE, path) != NULL;
}
