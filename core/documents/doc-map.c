/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the value tree: keys, chunks of members, finding and changing members. */
#include "doc-layout.h"

#include <lkg/base.h>

#define CHUNK_MIN 4u

/* Where a member is, or where it belongs. */
struct spot {
        size_t chunk;
        unsigned i;
        bool there;
};

/* ---- keys ---- */

static struct key *key_new(struct lkg_span name)
{
        struct key *key = lkg_must(malloc(sizeof(*key) + name.size + 1));

        assert(name.size < UINT32_MAX);
        key->refs = 1;
        key->size = (unsigned)name.size;
        if (name.size)
                memcpy(key->text, name.data, name.size);
        key->text[name.size] = '\0';
        return key;
}

static void key_unref(struct key *key)
{
        if (--key->refs == 0)
                free(key);
}

/* In byte order: below 0, 0 or above 0. */
static int compare(struct lkg_span name, const struct key *key)
{
        size_t n = name.size < key->size ? name.size : key->size;
        int r = n == 0 ? 0 : (unsigned char)*name.data - (unsigned char)*key->text; /* of most */

        if (r == 0 && n > 1 && name.data != key->text)
                r = memcmp(name.data, key->text, n);

        return r != 0 ? r : name.size < key->size ? -1 : name.size > key->size;
}

/* ---- chunks ---- */

static struct chunk *chunk_new(unsigned allocated)
{
        struct chunk *chunk = lkg_must(malloc(sizeof(*chunk) + allocated * sizeof(struct member)));

        *chunk = (struct chunk){ .refs = 1, .allocated = (uint16_t)allocated };
        return chunk;
}

static void chunk_unref(struct chunk *chunk)
{
        if (--chunk->refs > 0)
                return;
        for (unsigned i = 0; i < chunk->n; i++) {
                key_unref(chunk->members[i].key);
                lkg_value_unref(chunk->members[i].value);
        }
        free(chunk);
}

/* Make *@at the map's own; @room: with room for one more member unless it is full. */
static void chunk_own(struct chunk **at, bool room)
{
        struct chunk *chunk = *at, *own;
        unsigned want = chunk->allocated;

        if (room && chunk->n == want && want < LKG_CHUNK_MAX)
                want *= 2;
        if (chunk->refs == 1 && want == chunk->allocated)
                return;
        own = chunk_new(want);
        own->n = chunk->n;
        memcpy(own->members, chunk->members, chunk->n * sizeof(struct member));
        *at = own;
        if (--chunk->refs == 0) {
                free(chunk);
                return;
        }
        for (unsigned i = 0; i < own->n; i++) {
                own->members[i].key->refs++;
                (void)lkg_value_ref(own->members[i].value);
        }
}

void lkg_map_share(struct map_value *to, const struct map_value *from)
{
        if (from->n_chunks == 0)
                return;
        to->chunks = lkg_must(reallocarray(NULL, from->n_chunks, sizeof(struct chunk *)));
        for (size_t i = 0; i < from->n_chunks; i++) {
                to->chunks[i] = from->chunks[i];
                to->chunks[i]->refs++;
        }
        to->n_chunks = to->allocated = from->n_chunks;
        to->n = from->n;
}

void lkg_map_let_go(struct map_value *map)
{
        for (size_t i = 0; i < map->n_chunks; i++)
                chunk_unref(map->chunks[i]);
        free(map->chunks);
}

/* ---- finding ---- */

/* The last chunk that does not begin after @name. */
static size_t find_chunk(const struct map_value *map, struct lkg_span name)
{
        size_t low = 0, high = map->n_chunks;

        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (compare(name, map->chunks[middle]->members[0].key) < 0)
                        high = middle;
                else
                        low = middle;
        }
        return low;
}

static struct spot find_member(const struct map_value *map, struct lkg_span name)
{
        struct spot spot = { 0 };
        const struct chunk *chunk;
        unsigned high;

        if (map->n_chunks == 0)
                return spot;
        spot.chunk = find_chunk(map, name);
        chunk = map->chunks[spot.chunk];
        high = chunk->n;
        if (compare(name, chunk->members[high - 1].key) > 0) { /* documents are mostly read in order */
                spot.i = high;
                return spot;
        }
        while (!spot.there && spot.i < high) {
                unsigned middle = spot.i + (high - spot.i) / 2;
                int r = compare(name, chunk->members[middle].key);

                spot.there = r == 0;
                if (r < 0)
                        high = middle;
                else
                        spot.i = r == 0 ? middle : middle + 1;
        }
        return spot;
}

static const struct member *member_at(struct map_value *map, size_t i)
{
        if (i < map->at_first)
                map->at_chunk = map->at_first = 0;
        while (i - map->at_first >= map->chunks[map->at_chunk]->n)
                map->at_first += map->chunks[map->at_chunk++]->n;
        return &map->chunks[map->at_chunk]->members[i - map->at_first];
}

struct lkg_value *lkg_map_find(const struct lkg_value *map, struct lkg_span key)
{
        struct spot spot = { 0 };

        if (map->type == LKG_MAP)
                spot = find_member(lkg_as_map(map), key);
        return spot.there ? lkg_as_map(map)->chunks[spot.chunk]->members[spot.i].value : NULL;
}

struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key)
{
        return lkg_map_find(map, lkg_span(key, strlen(key)));
}

const struct lkg_value *lkg_map_get_map(const struct lkg_value *map, const char *key)
{
        const struct lkg_value *value = map && map->type == LKG_MAP ? lkg_map_get(map, key) : NULL;

        return value && value->type == LKG_MAP ? value : NULL;
}

const char *lkg_map_get_string(const struct lkg_value *map, const char *key)
{
        const struct lkg_value *value = lkg_map_get(map, key);
        const char *text;
        size_t size;

        if (!value || value->type != LKG_STRING)
                return NULL;
        text = lkg_value_text(value, &size);
        return strlen(text) == size ? text : NULL;
}

struct lkg_value *lkg_map_at(const struct lkg_value *value, size_t i, const char **ret_key,
                             size_t *ret_key_size)
{
        const struct member *member;

        if (value->type != LKG_MAP || i >= lkg_as_map(value)->n)
                return NULL;
        member = member_at(lkg_as_map(value), i);
        if (ret_key)
                *ret_key = member->key->text;
        if (ret_key_size)
                *ret_key_size = member->key->size;
        return member->value;
}

bool lkg_value_next(const struct lkg_value *value, struct lkg_member *m)
{
        enum lkg_type type = value ? value->type : LKG_NULL;
        const struct member *member;

        if (type != LKG_LIST && type != LKG_MAP)
                return false;
        if (m->n >= (type == LKG_MAP ? lkg_as_map(value)->n : lkg_as_list(value)->n))
                return false;
        m->i = m->n++;
        if (type == LKG_LIST) {
                m->value = lkg_as_list(value)->items[m->i];
                return true;
        }
        member = member_at(lkg_as_map(value), m->i);
        m->key = lkg_span(member->key->text, member->key->size);
        m->value = member->value;
        return true;
}

/* ---- changing ---- */

/* Put an empty or half a chunk at @i of the map. */
static void put_chunk(struct map_value *map, size_t i, struct chunk *chunk)
{
        lkg_need(LKG_RESERVE(map->chunks, map->n_chunks, map->allocated));
        memmove(map->chunks + i + 1, map->chunks + i, (map->n_chunks - i) * sizeof(struct chunk *));
        map->chunks[i] = chunk;
        map->n_chunks++;
}

/*
 * Cut a full chunk of the map's own in two. What is read in order fills one chunk after another; anything else
 * cuts it in the middle.
 */
static void split(struct map_value *map, struct spot *spot)
{
        struct chunk *full = map->chunks[spot->chunk], *behind;
        bool last = spot->i == full->n && spot->chunk + 1 == map->n_chunks;
        unsigned keep = last ? full->n : full->n / 2u;

        behind = chunk_new(last ? CHUNK_MIN : LKG_CHUNK_MAX);
        put_chunk(map, spot->chunk + 1, behind);
        behind->n = (uint16_t)(full->n - keep);
        memcpy(behind->members, full->members + keep, behind->n * sizeof(struct member));
        full->n = (uint16_t)keep;
        if (spot->i > keep || last) {
                spot->chunk++;
                spot->i -= keep;
        }
}

/* Takes over both references. */
static void insert(struct map_value *map, struct spot spot, struct key *key, struct lkg_value *item)
{
        struct chunk *chunk;

        if (map->n_chunks == 0)
                put_chunk(map, 0, chunk_new(CHUNK_MIN));
        chunk_own(&map->chunks[spot.chunk], true);
        if (map->chunks[spot.chunk]->n == LKG_CHUNK_MAX)
                split(map, &spot);
        chunk = map->chunks[spot.chunk];
        memmove(chunk->members + spot.i + 1, chunk->members + spot.i,
                (chunk->n - spot.i) * sizeof(struct member));
        chunk->members[spot.i] = (struct member){ key, item };
        chunk->n++;
        map->n++;
}

int lkg_map_set(struct lkg_value *value, const char *key, size_t key_size, struct lkg_value *item)
{
        const struct lkg_span name = { key, key_size };
        struct map_value *map = lkg_as_map(value);
        struct spot spot = find_member(map, name);
        struct member *member;

        assert(value->refs == 1 && item);
        map->at_chunk = map->at_first = 0;
        if (!spot.there) {
                insert(map, spot, key_new(name), item);
                return 0;
        }
        chunk_own(&map->chunks[spot.chunk], false);
        member = &map->chunks[spot.chunk]->members[spot.i];
        lkg_value_unref(member->value);
        member->value = item;
        return 1;
}

int lkg_map_remove(struct lkg_value *value, const char *key, size_t key_size)
{
        const struct lkg_span name = { key, key_size };
        struct map_value *map = lkg_as_map(value);
        struct spot spot = find_member(map, name);
        struct member gone;
        struct chunk *chunk;

        assert(value->refs == 1);
        if (!spot.there)
                return 0;
        chunk_own(&map->chunks[spot.chunk], false);
        chunk = map->chunks[spot.chunk];
        gone = chunk->members[spot.i];
        chunk->n--;
        map->n--;
        map->at_chunk = map->at_first = 0;
        memmove(chunk->members + spot.i, chunk->members + spot.i + 1,
                (chunk->n - spot.i) * sizeof(struct member));
        if (chunk->n == 0) {
                free(chunk);
                map->n_chunks--;
                memmove(map->chunks + spot.chunk, map->chunks + spot.chunk + 1,
                        (map->n_chunks - spot.chunk) * sizeof(struct chunk *));
        }
        key_unref(gone.key);
        lkg_value_unref(gone.value);
        return 1;
}
