/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs: leaves of maps that no longer change. In a pack, a field with a name and a small scalar takes a
 * third of the memory of a key, a value and a member of a leaf: the pack has one reference count, one
 * source, and no pointers.
 *
 * A key or value in a pack is used like any other; it knows its offset in the pack, and a reference to it keeps the whole pack. A
 * pack never refers to another pack, so freeing one does not recurse.
 */
#include "doc-layout.h"

#define SIZE_MASK 0x7fffu
#define PACK_MAX  1024u      /* bytes: the biggest piece that does not come from malloc */
#define SMALL_MAX 63u        /* bytes of a text */
#define LINES     (1u << 22) /* no document has as many (LKG_DOC_BYTES_MAX) */
#define COLUMNS   (1u << 10)

/* How a member goes into a pack. */
struct form {
        bool key_away, value_away;
        size_t key_size, value_size; /* bytes, each a multiple of 4 */
};

/* Can the value be stored in a pack of @source? */
static bool fits(const struct lkg_value *value, const struct lkg_source *source)
{
        size_t size;

        (void)lkg_value_text(value, &size);
        return value->type != LKG_LIST && value->type != LKG_MAP && !value->over && size <= SMALL_MAX &&
               lkg_value_source(value) == source && lkg_value_line(value) < LINES &&
               lkg_value_column(value) < COLUMNS && (value->packed || lkg_as_whole(value)->refs == 1);
}

static struct form form_of(const struct member *member, const struct lkg_source *source)
{
        struct form form;
        size_t size;

        (void)lkg_key_text(member->key, &size);
        form.key_away = size > SMALL_MAX || !lkg_key_is_alone(member->key);
        form.key_size = form.key_away ? sizeof(member->key) : lkg_packed_key_size(size);
        form.value_away = !fits(member->value, source);
        (void)lkg_value_text(member->value, &size);
        form.value_size = form.value_away ? sizeof(member->value)
                                          : lkg_padded(sizeof(struct packed_value) +
                                                       (lkg_value_has_text(member->value) ? size + 1 : 0));
        return form;
}

static void put_key(struct pack *pack, size_t at, const struct form *form, struct key *key)
{
        char *to = (char *)pack + at;
        const char *text;
        size_t size;

        if (form->key_away) {
                key = lkg_key_ref(key);
                memcpy(to, &key, sizeof(key));
                return;
        }
        text = lkg_key_text(key, &size);
        memset(to, 0, form->key_size);
        *(struct key *)(void *)to =
                (struct key){ .packed = 1, .size = (unsigned)(at << 8 | size) & 0xffffffu };
        memcpy(to + sizeof(struct key), text, size);
}

/* Return: 0 or -ENOMEM. */
static int put_value(struct pack *pack, size_t at, const struct form *form, struct lkg_value *value)
{
        struct packed_value *packed = (struct packed_value *)(void *)((char *)pack + at);
        const char *text;
        size_t size;

        if (form->value_away) {
                value = value->packed ? lkg_value_clone_shallow(value) : lkg_value_ref(value);
                memcpy(packed, &value, sizeof(value));
                return value ? 0 : -ENOMEM;
        }
        text = lkg_value_text(value, &size);
        packed->head = (struct lkg_value){ .type = value->type,
                                           .flag = value->flag,
                                           .packed = 1,
                                           .size = (uint8_t)size,
                                           .stamp = (uint16_t)at };
        packed->line = lkg_value_line(value) & (LINES - 1);
        packed->column = lkg_value_column(value) & (COLUMNS - 1);
        if (lkg_value_has_text(value))
                memcpy(packed->text, text, size + 1);
        return 0;
}

/* Return: how many of @n members go into one pack, at least one; *@ret_size: its size. */
static unsigned plan(const struct member *members, unsigned n, const struct lkg_source *source,
                     struct form *forms, size_t *ret_size)
{
        size_t size = offsetof(struct pack, at);
        unsigned i = 0;

        for (; i < n; i++) {
                size_t with;

                forms[i] = form_of(&members[i], source);
                with = size + sizeof(uint16_t) + forms[i].key_size + forms[i].value_size;
                if (i > 0 && with > PACK_MAX - 4) /* padding after the places */
                        break;
                size = with;
        }
        *ret_size = lkg_padded(offsetof(struct pack, at) + i * sizeof(uint16_t)) + size -
                    offsetof(struct pack, at) - i * sizeof(uint16_t);
        return i;
}

struct pack *lkg_pack_new(const struct member *members, unsigned n, struct lkg_source *source)
{
        struct form forms[LKG_LEAF_MAX];
        struct pack *pack;
        size_t size, at;
        int r = 0;

        n = plan(members, n, source, forms, &size);
        pack = lkg_piece_new(size);
        if (!pack)
                return NULL;
        *pack = (struct pack){ .node = { .refs = 1, .allocated = LKG_PACKED },
                               .size = (uint16_t)size & SIZE_MASK,
                               .plain = 1 };
        pack->source = lkg_source_ref(source);
        at = lkg_padded(offsetof(struct pack, at) + n * sizeof(uint16_t));
        for (unsigned i = 0; r == 0 && i < n; i++) {
                pack->at[i] = (uint16_t)(at | (forms[i].key_away ? LKG_KEY_AWAY : 0) |
                                         (forms[i].value_away ? LKG_VALUE_AWAY : 0));
                put_key(pack, at, &forms[i], members[i].key);
                at += forms[i].key_size;
                r = put_value(pack, at, &forms[i], members[i].value);
                at += forms[i].value_size;
                if (forms[i].value_away || members[i].value->type == LKG_NULL)
                        pack->plain = 0;
                pack->node.n++;
        }
        if (r < 0) {
                struct whole_value *dying = NULL;

                lkg_pack_let_go(pack, &dying);
                lkg_values_free(dying);
                return NULL;
        }
        return pack;
}
