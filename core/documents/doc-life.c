/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References, and what is freed with the last one. A value has members, a map has parts, a part has keys and
 * values, and a pack has all of these, so freeing one frees others.
 *
 * Nothing here recurses with the depth of a document: the members of a freed value go to a work list that is
 * linked through the dying values themselves, so freeing needs no memory.
 */
#include "doc-layout.h"

/* ---- sources ---- */

struct lkg_source *lkg_source_new(const char *layer, const char *file)
{
        struct lkg_source *source = calloc(1, sizeof(*source));

        if (!source)
                return NULL;
        source->refs = 1;
        source->layer = strdup(layer ? layer : "");
        source->file = strdup(file ? file : "");
        if (!source->layer || !source->file)
                return lkg_source_unref(source);
        return source;
}

struct lkg_source *lkg_source_ref(struct lkg_source *source)
{
        if (source)
                source->refs++;
        return source;
}

struct lkg_source *lkg_source_unref(struct lkg_source *source)
{
        if (source && --source->refs == 0) {
                free(source->layer);
                free(source->file);
                free(source);
        }
        return NULL;
}

/* ---- keys and packs ---- */

struct key *lkg_key_ref(struct key *key)
{
        if (key->packed)
                lkg_key_pack(key)->node.refs++;
        else
                lkg_whole_key(key)->refs++;
        return key;
}

void lkg_key_let_go(struct key *key, struct whole_value **dying)
{
        if (key->packed)
                lkg_pack_let_go(lkg_key_pack(key), dying);
        else if (--lkg_whole_key(key)->refs == 0)
                lkg_key_forget(key);
}

void lkg_key_unref(struct key *key)
{
        struct whole_value *dying = NULL;

        if (key)
                lkg_key_let_go(key, &dying);
        lkg_values_free(dying);
}

struct member lkg_pack_member(const struct pack *pack, unsigned i)
{
        char *at = (char *)(uintptr_t)pack + (pack->at[i] & ~LKG_AWAY);
        struct member member;

        if (pack->at[i] & LKG_KEY_AWAY) {
                memcpy(&member.key, at, sizeof(member.key));
                at += sizeof(member.key);
        } else {
                member.key = (struct key *)(void *)at;
                at += lkg_packed_key_size(member.key->size & UINT8_MAX);
        }
        if (pack->at[i] & LKG_VALUE_AWAY)
                memcpy(&member.value, at, sizeof(member.value));
        else
                member.value = (struct lkg_value *)(void *)at;
        return member;
}

void lkg_pack_let_go(struct pack *pack, struct whole_value **dying)
{
        if (--pack->node.refs > 0)
                return;
        for (unsigned i = 0; i < pack->node.n; i++) {
                struct member member = lkg_pack_member(pack, i);

                if (pack->at[i] & LKG_KEY_AWAY)
                        lkg_key_let_go(member.key, dying);
                if (pack->at[i] & LKG_VALUE_AWAY)
                        lkg_value_let_go(member.value, dying);
        }
        lkg_source_unref(pack->source);
        lkg_piece_free(pack, pack->size);
}

/* ---- parts of maps ---- */

void lkg_part_unref(struct node *node, unsigned level, struct whole_value **dying)
{
        if (level == 0 && lkg_is_pack(node)) {
                lkg_pack_let_go(lkg_as_pack(node), dying);
                return;
        }
        if (--node->refs > 0)
                return;
        for (unsigned i = 0; level > 0 && i < node->n; i++)
                lkg_part_unref(lkg_as_branch(node)->children[i].node, level - 1, dying);
        for (unsigned i = 0; level == 0 && i < node->n; i++) {
                lkg_key_let_go(lkg_as_leaf(node)->members[i].key, dying);
                lkg_value_let_go(lkg_as_leaf(node)->members[i].value, dying);
        }
        lkg_part_free(node, level);
}

/* ---- values ---- */

static void free_members(struct whole_value *value, struct whole_value **dying)
{
        const struct lkg_value *head = &value->head;

        if (head->view)
                lkg_value_let_go(lkg_as_view(head)->over, dying);
        else if (head->over)
                lkg_value_let_go(*lkg_place_over(value), dying);
        if (head->type == LKG_LIST) {
                struct list_value *list = lkg_as_list(head);

                for (size_t i = 0; i < list->n; i++)
                        lkg_value_let_go(list->items[i], dying);
                free(list->items);
        } else if (head->type == LKG_MAP) {
                struct map_value *map = lkg_as_map(head);

                if (map->root)
                        lkg_part_unref(map->root, map->height, dying);
        }
}

struct lkg_value *lkg_value_ref(struct lkg_value *value)
{
        if (value && value->packed)
                lkg_pack_of(value)->node.refs++;
        else if (value)
                ((struct whole_value *)value)->refs++;
        return value;
}

/* Return the size that value_new() requested for the value itself. */
static size_t size_of(const struct lkg_value *value)
{
        if (value->view)
                return sizeof(struct view_value);
        switch ((enum lkg_type)value->type) {
        case LKG_NUMBER:
        case LKG_STRING:
                return lkg_text_value_size(lkg_as_text(value)->size);
        case LKG_LIST:
                return sizeof(struct list_value);
        case LKG_MAP:
                return sizeof(struct map_value);
        case LKG_NULL:
        case LKG_BOOL:
        case _LKG_TYPE_MAX:
                break;
        }
        return sizeof(struct whole_value);
}

static void value_free(struct whole_value *value)
{
        size_t before = value->head.over && !value->head.view ? sizeof(*lkg_place_over(value)) : 0;

        lkg_piece_free((char *)value - before, before + size_of(&value->head));
}

void lkg_value_seen_let_go(struct lkg_value *value, struct whole_value **dying)
{
        lkg_value_let_go(value, dying);
}

void lkg_values_free(struct whole_value *dying)
{
        while (dying) {
                struct whole_value *v = dying;

                dying = v->next_dying;
                free_members(v, &dying);
                value_free(v);
        }
}

__attribute__((noinline)) static void unref_last(struct lkg_value *value)
{
        struct whole_value *dying = NULL;

        lkg_value_let_go(value, &dying);
        lkg_values_free(dying);
}

/* Almost always there is another reference. */
struct lkg_value *lkg_value_unref(struct lkg_value *value)
{
        struct whole_value *whole = (struct whole_value *)value;

        if (value && !value->packed && whole->refs > 1)
                whole->refs--;
        else if (value)
                unref_last(value);
        return NULL;
}
