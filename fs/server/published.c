/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The current publication: parsed from `current`, replaced as a whole, and reference counted, so that a
 * worker in the middle of a lookup keeps the one that it started with.
 */
#include <lkg/publication.h>

#include "file-server.h"

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
 * Does a change of @path (in the source directory) change a layer? Also true if a directory above the layer
 * moves.
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

bool publication_owns(const struct lkg_node *dir, const char *name)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = NULL;
        uint32_t kind = atomic_load(&dir->kind);

        if (kind == LKG_NODE_VDIR || kind == LKG_NODE_HIDDEN || kind == LKG_NODE_BAD)
                return true;
        if (kind != LKG_NODE_ROOT)
                return false;
        ref = publication_get();
        return publication_hides(ref->publication, name) || lkg_publication_find(ref->publication, name);
}

const struct lkg_entry *publication_bad_directory(const struct lkg_publication *publication,
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

bool publication_holds_bad(const struct lkg_node *node)
{
        LKG_CLEANUP(publication_putp) struct publication_ref *ref = NULL;
        uint32_t kind = atomic_load(&node->kind);

        if (kind != LKG_NODE_CONTENT)
                return kind == LKG_NODE_BAD_MADE;
        ref = publication_get();
        return publication_bad_directory(ref->publication, node) != NULL;
}
