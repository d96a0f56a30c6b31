/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current publication: parsed from `current`, replaced as a whole, and reference counted, so that a
 * worker in the middle of a lookup keeps the one that it started with.
 */
#include <fcntl.h>

#include "file-server.h"

#include <lkg/file.h>
#include <lkg/publication.h>
#include <lkg/text.h>

struct publication_ref *lkg_publication_get(void)
{
        LKG_LOCKED(&server.publication_lock);
        struct publication_ref *ref = server.publication;

        ref->refs++;
        return ref;
}

void lkg_publication_put(struct publication_ref *ref)
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

const struct lkg_rule *lkg_publication_rule(const struct lkg_publication *publication,
                                            enum lkg_rule_type type, const char *text)
{
        for (size_t i = 0; i < publication->n_rules; i++)
                if (publication->rules[i].type == type && strcmp(publication->rules[i].text, text) == 0)
                        return &publication->rules[i];
        return NULL;
}

const struct lkg_rule *lkg_publication_rule_of(const struct lkg_publication *publication,
                                               enum lkg_rule_type type, unsigned component)
{
        for (size_t i = 0; i < publication->n_rules; i++)
                if (publication->rules[i].type == type && publication->rules[i].component == component)
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
 * Does a change of @path (in the source directory) change a layer? Also true if a directory above the layer
 * moves.
 */
bool lkg_publication_commits(const struct lkg_publication *publication, const char *path)
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

bool lkg_publication_hides(const struct lkg_publication *publication, const char *path)
{
        if (strcmp(path, LKG_FALLBACK_DIR) == 0 || strcmp(path, LKG_DOOR_DIR) == 0)
                return true;
        return lkg_publication_rule(publication, LKG_RULE_HIDE, path) != NULL;
}

bool lkg_publication_owns(const struct lkg_node *dir, const char *name)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;
        uint32_t kind = atomic_load(&dir->kind);

        if (kind == LKG_NODE_VDIR || kind == LKG_NODE_HIDDEN || kind == LKG_NODE_BAD)
                return true;
        if (kind != LKG_NODE_ROOT)
                return false;
        ref = lkg_publication_get();
        return lkg_publication_hides(ref->publication, name) || lkg_publication_find(ref->publication, name);
}

const struct lkg_entry *lkg_publication_bad_directory(const struct lkg_publication *publication,
                                                      const struct lkg_node *node)
{
        const char *slash = strrchr(node->name, '/');
        const struct lkg_entry *entry;
        char path[LKG_NODE_NAME];

        if (!slash)
                return NULL;
        (void)snprintf(path, sizeof(path), "%.*s", (int)(slash - node->name), node->name);
        entry = lkg_publication_find(publication, path);
        return entry && entry->type == LKG_ENTRY_BAD ? entry : NULL;
}

const struct lkg_entry *lkg_publication_asked(const struct lkg_publication *publication, const char *path)
{
        char dir[LKG_NODE_NAME];

        if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
                return NULL;
        for (char *slash = dir + strlen(dir); slash; slash = strrchr(dir, '/')) {
                const struct lkg_entry *entry;

                *slash = '\0';
                entry = lkg_publication_find(publication, dir);
                if (entry)
                        return entry->type == LKG_ENTRY_ASKED ? entry : NULL;
        }
        return NULL;
}

bool lkg_publication_holds_bad(const struct lkg_node *node)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = NULL;
        uint32_t kind = atomic_load(&node->kind);

        if (kind != LKG_NODE_CONTENT)
                return kind == LKG_NODE_BAD_MADE;
        ref = lkg_publication_get();
        return lkg_publication_bad_directory(ref->publication, node) != NULL;
}

/* ---- loading ---- */

/*
 * Loads a new publication: reads it, parses it, replaces the previous one and retires its nodes. A server that starts and finds none that it
 * can believe makes one up, number 0: pass-through alone, and EIO under the names that the last good one had.
 */

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
                (void)snprintf(server.shm->root.names[(*n)++], sizeof(server.shm->root.names[0]), "%s",
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
        atomic_store(&server.shm->root.n_names, n);
}

/* The shared memory may hold anything: what is no name is left out. */
static int make_up(struct lkg_publication **ret, struct lkg_error *err)
{
        char names[LKG_ROOT_NAMES][sizeof(server.shm->root.names[0])];
        struct lkg_rule rules[LKG_ROOT_NAMES];
        struct lkg_publication none = { .number = 1,
                                        .timeout_ms = NO_PUBLICATION_TIMEOUT_MS,
                                        .rules = rules };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        uint32_t n = atomic_load(&server.shm->root.n_names);
        int r;

        memcpy(names, server.shm->root.names, sizeof(names));
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

        /* at the start; lkgfsd sees the number, and starts another engine */
        if (r < 0 && !server.publication) {
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
                lkg_publication_put(old);
        if (publication->number == 0)
                return 0; /* what is open stays as it is */
        remember_names(publication);
        for (size_t i = 0; i < publication->n_rules; i++)
                if (publication->rules[i].type == LKG_RULE_EXE)
                        lkg_program_file_expect(publication->rules[i].text);
        lkg_nodes_retire(publication);
        return 0;
}

int lkg_publication_load(struct lkg_error *err)
{
        LKG_LOCKED(&load_lock);

        return load(err);
}
