/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the value tree: keys, chunks, finding and changing members. */
#include <endian.h>

#include "doc-layout.h"

#define CHUNK_MIN 4u

/* ---- keys and chunks ---- */

/*
 * Documents of a kind have the same few hundred keys, again and again, so a key is looked for among those that are there
 * before it is made: most documents make none, and most comparisons end with the address. The table grows with the keys, up
 * to a limit; of names that have been chosen to have one hash in common only a few are shared.
 */
#define BUCKETS_MIN 512u
#define BUCKETS_MAX 65536u
#define CHAIN_MAX   2u

static struct {
        struct key **buckets;
        unsigned n_buckets; /* a power of two; 0 before the first key */
        unsigned n_keys;
} table;

static uint64_t head_of(const char *text, size_t size)
{
        uint64_t head = 0;

        if (size >= sizeof(head)) {
                memcpy(&head, text, sizeof(head));
                return be64toh(head);
        }
        for (size_t i = 0; i < size; i++)
                head |= (uint64_t)(unsigned char)text[i] << (56 - 8 * i);
        return head;
}

static struct key *key_new(const char *text, size_t size, unsigned hash)
{
        struct key *key = malloc(sizeof(*key) + size + 1);

        if (!key)
                return NULL;
        *key = (struct key){ .head = head_of(text, size), .refs = 1, .size = (unsigned)size, .hash = hash };
        if (size)
                memcpy(key->text, text, size);
        key->text[size] = '\0';
        return key;
}

static struct key **bucket_of(unsigned hash)
{
        return &table.buckets[hash & (table.n_buckets - 1)];
}

static void key_unref(struct key *key)
{
        if (!key || --key->refs > 0)
                return;
        if (key->shared) {
                struct key **at = bucket_of(key->hash);

                while (*at != key)
                        at = &(*at)->next;
                *at = key->next;
                table.n_keys--;
        }
        free(key);
}

/* FNV-1a */
static unsigned key_hash(const char *text, size_t size)
{
        unsigned hash = 2166136261u;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (unsigned char)text[i]) * 16777619u;
        return hash ^ hash >> 16;
}

/* Without memory for another one the table stays as it is. */
static void table_grow(void)
{
        unsigned n = table.n_buckets ? 2 * table.n_buckets : BUCKETS_MIN, n_before = table.n_buckets;
        struct key **before = table.buckets, **buckets;

        if (table.n_keys < n_before || n > BUCKETS_MAX)
                return;
        buckets = calloc(n, sizeof(*buckets));
        if (!buckets)
                return;
        table.buckets = buckets;
        table.n_buckets = n;
        for (unsigned i = 0; i < n_before; i++) {
                while (before[i]) {
                        struct key *key = before[i];

                        before[i] = key->next;
                        key->next = *bucket_of(key->hash);
                        *bucket_of(key->hash) = key;
                }
        }
        free(before);
}

static void table_add(struct key *key)
{
        key->shared = true;
        key->next = *bucket_of(key->hash);
        *bucket_of(key->hash) = key;
        table.n_keys++;
}

/* One reference to a key of this text, NULL = no memory. */
static struct key *key_get(const char *text, size_t size)
{
        unsigned hash = key_hash(text, size), length = 0;
        struct key *key;

        if (size >= UINT32_MAX)
                return NULL;
        table_grow();
        for (key = table.n_buckets ? *bucket_of(hash) : NULL; key; key = key->next, length++) {
                if (key->hash != hash || key->size != size ||
                    (size > 0 && memcmp(key->text, text, size) != 0))
                        continue;
                key->refs++;
                return key;
        }
        key = key_new(text, size, hash);
        if (key && table.n_buckets && length < CHAIN_MAX)
                table_add(key);
        return key;
}

/* What is kept for ever goes at exit, so that a leak checker sees only leaks. */
__attribute__((destructor)) static void forget_table(void)
{
        for (unsigned i = 0; i < table.n_buckets; i++)
                for (struct key *key = table.buckets[i]; key; key = key->next)
                        key->shared = false;
        free(table.buckets);
        table.buckets = NULL;
        table.n_buckets = 0;
}

/* What is looked for in a map. */
struct sought {
        uint64_t head;
        const char *text;
        size_t size;
};

static int key_compare(const char *a, size_t a_size, const struct key *b)
{
        size_t n = a_size < b->size ? a_size : b->size;
        int r = n && a != b->text ? memcmp(a, b->text, n) : 0;

        return r ? r : (a_size > b->size) - (a_size < b->size);
}

static size_t chunk_size(unsigned allocated)
{
        return sizeof(struct chunk) + allocated * sizeof(struct member);
}

static void chunk_free(struct chunk *chunk)
{
        lkg_piece_free(chunk, chunk_size(chunk->allocated));
}

static void chunk_unref(struct chunk *chunk, struct lkg_value **dying)
{
        if (--chunk->refs > 0)
                return;
        for (unsigned i = 0; i < chunk->n; i++) {
                key_unref(chunk->members[i].key);
                lkg_value_let_go(chunk->members[i].value, dying);
        }
        chunk_free(chunk);
}

static struct chunk *chunk_new(unsigned allocated)
{
        struct chunk *chunk = lkg_piece_new(chunk_size(allocated));

        if (chunk)
                *chunk = (struct chunk){ .refs = 1, .allocated = allocated };
        return chunk;
}

/* Most keys differ in their first bytes. */
static int sought_compare(const struct sought *sought, const struct key *key)
{
        if (sought->head != key->head)
                return sought->head < key->head ? -1 : 1;
        return key_compare(sought->text, sought->size, key);
}

/* Makes chunk @c of a map its own, with room for one more member. */
static int chunk_own(struct map_value *map, unsigned c, bool room)
{
        struct chunk *chunk = map->chunks[c], *own;
        unsigned want = chunk->n + (room ? 1 : 0);

        if (chunk->refs == 1 && want <= chunk->allocated)
                return 0;
        if (want > chunk->allocated)
                want = chunk->allocated < CHUNK_MIN ? CHUNK_MIN : 2 * chunk->allocated;
        if (want > LKG_CHUNK_MAX)
                want = LKG_CHUNK_MAX;
        own = chunk_new(want);
        if (!own)
                return -ENOMEM;
        own->n = chunk->n;
        memcpy(own->members, chunk->members, chunk->n * sizeof(struct member));
        map->chunks[c] = own;
        if (chunk->refs == 1) {
                chunk_free(chunk);
                return 0;
        }
        for (unsigned i = 0; i < own->n; i++) {
                own->members[i].key->refs++;
                own->members[i].value->refs++;
        }
        chunk->refs--; /* was above 1 */
        return 0;
}

/* Room for @n chunks. The first needs none but that in the map itself: few maps have more than one. */
static int chunks_grow(struct map_value *map, unsigned n)
{
        bool inside = map->chunks == &map->only;
        struct chunk **chunks;

        if (n <= 1) {
                map->chunks = &map->only;
                map->n_allocated = 1;
                return 0;
        }
        chunks = reallocarray(inside ? NULL : map->chunks, n, sizeof(*chunks));
        if (!chunks)
                return -ENOMEM;
        if (inside)
                *chunks = map->only;
        map->chunks = chunks;
        map->n_allocated = n;
        return 0;
}

/* Puts a chunk at @c. */
static int chunks_insert(struct map_value *map, unsigned c, struct chunk *chunk)
{
        if (map->n_chunks == map->n_allocated) {
                int r = chunks_grow(map, 2 * map->n_allocated);

                if (r < 0)
                        return r;
        }
        memmove(map->chunks + c + 1, map->chunks + c, (map->n_chunks - c) * sizeof(*map->chunks));
        map->chunks[c] = chunk;
        map->n_chunks++;
        return 0;
}

/* Cuts a full chunk in two; at its end when the new key belongs there, so that sorted input fills chunks. */
static int chunk_split(struct map_value *map, unsigned c, bool at_end)
{
        struct chunk *chunk, *right;
        unsigned keep;
        int r = chunk_own(map, c, false);

        if (r < 0)
                return r;
        chunk = map->chunks[c];
        keep = at_end && c + 1 == map->n_chunks ? chunk->n : chunk->n / 2;
        right = chunk_new(keep == chunk->n ? 8 : LKG_CHUNK_MAX);
        if (!right)
                return -ENOMEM;
        r = chunks_insert(map, c + 1, right);
        if (r < 0) {
                chunk_free(right);
                return r;
        }
        right->n = chunk->n - keep;
        memcpy(right->members, chunk->members + keep, right->n * sizeof(struct member));
        chunk->n = keep;
        return 0;
}

/* Where @key is (true), or would have to be put (false). */
static bool map_find(const struct map_value *map, const char *key, size_t size, unsigned *ret_c,
                     unsigned *ret_i)
{
        const struct sought sought = { head_of(key, size), key, size };
        unsigned low = 0, high = map->n_chunks;
        const struct chunk *chunk;

        while (high - low > 1) { /* the last chunk whose first key is not above @key */
                unsigned middle = low + (high - low) / 2;

                if (map->chunks[middle]->n > 0 &&
                    sought_compare(&sought, map->chunks[middle]->members[0].key) < 0)
                        high = middle;
                else
                        low = middle;
        }
        *ret_c = low;
        *ret_i = 0;
        if (map->n_chunks == 0)
                return false;
        chunk = map->chunks[low];
        low = 0;
        high = chunk->n;
        while (low < high) {
                unsigned middle = low + (high - low) / 2;
                int r = sought_compare(&sought, chunk->members[middle].key);

                if (r == 0) {
                        *ret_i = middle;
                        return true;
                }
                if (r < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        *ret_i = low;
        return false;
}

/* ---- life ---- */

struct lkg_value *lkg_map_clone(const struct lkg_value *value)
{
        const struct map_value *from = lkg_as_map(value);
        struct lkg_value *copy = lkg_value_new_map(value->source, value->line, value->column);
        struct map_value *to;

        if (!copy || from->n_chunks == 0)
                return copy;
        to = lkg_as_map(copy);
        if (chunks_grow(to, from->n_chunks) < 0)
                return lkg_value_unref(copy);
        to->n_chunks = from->n_chunks;
        to->n = from->n;
        for (unsigned c = 0; c < from->n_chunks; c++) {
                to->chunks[c] = from->chunks[c];
                to->chunks[c]->refs++;
        }
        return copy;
}

void lkg_map_free_members(struct map_value *map, struct lkg_value **dying)
{
        for (unsigned c = 0; c < map->n_chunks; c++)
                chunk_unref(map->chunks[c], dying);
        if (map->chunks != &map->only)
                free(map->chunks);
}

/* ---- maps ---- */

static int map_insert(struct map_value *map, unsigned c, unsigned i, struct key *key, struct lkg_value *item)
{
        struct chunk *chunk;
        int r;

        if (map->n_chunks == 0) {
                chunk = chunk_new(CHUNK_MIN);
                if (!chunk)
                        return -ENOMEM;
                r = chunks_insert(map, 0, chunk);
                if (r < 0) {
                        chunk_free(chunk);
                        return r;
                }
        } else if (map->chunks[c]->n == LKG_CHUNK_MAX) {
                r = chunk_split(map, c, i == LKG_CHUNK_MAX);
                if (r < 0)
                        return r;
                if (i >= map->chunks[c]->n) {
                        i -= map->chunks[c]->n;
                        c++;
                }
        }
        r = chunk_own(map, c, true);
        if (r < 0)
                return r;
        chunk = map->chunks[c];
        memmove(chunk->members + i + 1, chunk->members + i, (chunk->n - i) * sizeof(struct member));
        chunk->members[i] = (struct member){ key, item };
        chunk->n++;
        map->n++;
        return 0;
}

int lkg_map_expect(struct lkg_value *value, size_t n)
{
        struct map_value *map = lkg_as_map(value);
        struct chunk *chunk;
        int r;

        assert(value->refs == 1);
        if (map->n_chunks > 0 || n <= CHUNK_MIN)
                return 0;
        chunk = chunk_new(n < LKG_CHUNK_MAX ? (unsigned)n : LKG_CHUNK_MAX);
        if (!chunk)
                return -ENOMEM;
        r = chunks_insert(map, 0, chunk);
        if (r < 0)
                chunk_free(chunk);
        return r;
}

int lkg_map_replace(struct lkg_value *value, const char *key, size_t key_size, struct lkg_value *item,
                    struct lkg_value **ret_earlier)
{
        struct map_value *map = lkg_as_map(value);
        struct key *k = NULL;
        unsigned c, i;
        int r;

        assert(value->refs == 1);
        if (!item)
                return -ENOMEM;
        map->hint_chunk = 0;
        map->hint_first = 0;
        if (map_find(map, key, key_size, &c, &i)) {
                r = chunk_own(map, c, false);
                if (r < 0) {
                        lkg_value_unref(item);
                        return r;
                }
                *ret_earlier = map->chunks[c]->members[i].value;
                map->chunks[c]->members[i].value = item;
                return 1;
        }
        k = key_get(key, key_size);
        r = k ? map_insert(map, c, i, k, item) : -ENOMEM;
        if (r < 0) {
                if (k)
                        key_unref(k);
                lkg_value_unref(item);
        }
        return r;
}

int lkg_map_set(struct lkg_value *map, const char *key, size_t key_size, struct lkg_value *item)
{
        struct lkg_value *earlier = NULL;
        int r = lkg_map_replace(map, key, key_size, item, &earlier);

        lkg_value_unref(earlier);
        return r;
}

/* The member that lkg_map_at() would return. */
static struct member *member_at(struct map_value *map, size_t i)
{
        if (i < map->hint_first) {
                map->hint_chunk = 0;
                map->hint_first = 0;
        }
        while (i - map->hint_first >= map->chunks[map->hint_chunk]->n)
                map->hint_first += map->chunks[map->hint_chunk++]->n;
        return &map->chunks[map->hint_chunk]->members[i - map->hint_first];
}

int lkg_map_append_like(struct lkg_value *value, const struct lkg_value *other, size_t i,
                        struct lkg_value *item)
{
        struct map_value *map = lkg_as_map(value);
        unsigned c = map->n_chunks ? map->n_chunks - 1 : 0;
        struct chunk *last = map->n_chunks ? map->chunks[c] : NULL;
        struct key *key;
        int r;

        assert(value->refs == 1);
        if (!item)
                return -ENOMEM;
        key = member_at(lkg_as_map(other), i)->key;
        assert(map->n == 0 || key_compare(key->text, key->size, last->members[last->n - 1].key) > 0);
        if (last && last->refs == 1 && last->n < last->allocated) { /* as it is nearly always */
                key->refs++;
                last->members[last->n++] = (struct member){ key, item };
                map->n++;
                return 0;
        }
        r = map_insert(map, c, map->n_chunks ? map->chunks[c]->n : 0, key, item);
        if (r < 0)
                lkg_value_unref(item);
        else
                key->refs++;
        return r;
}

static int map_remove_in(struct map_value *map, unsigned c, unsigned i)
{
        struct chunk *chunk;

        if (chunk_own(map, c, false) < 0)
                return -ENOMEM;
        chunk = map->chunks[c];
        map->hint_chunk = 0;
        map->hint_first = 0;
        key_unref(chunk->members[i].key);
        lkg_value_unref(chunk->members[i].value);
        memmove(chunk->members + i, chunk->members + i + 1, (chunk->n - i - 1) * sizeof(struct member));
        chunk->n--;
        map->n--;
        if (chunk->n == 0) { /* no empty chunks: the binary search looks at first keys */
                chunk_free(chunk);
                memmove(map->chunks + c, map->chunks + c + 1,
                        (map->n_chunks - c - 1) * sizeof(*map->chunks));
                map->n_chunks--;
        }
        return 1;
}

int lkg_map_remove(struct lkg_value *value, const char *key, size_t key_size)
{
        struct map_value *map = lkg_as_map(value);
        unsigned c, i;

        assert(value->refs == 1);
        return map_find(map, key, key_size, &c, &i) ? map_remove_in(map, c, i) : 0;
}

struct lkg_value *lkg_map_get_n(const struct lkg_value *map, const char *key, size_t key_size)
{
        unsigned c, i;

        return map->type == LKG_MAP && map_find(lkg_as_map(map), key, key_size, &c, &i)
                       ? lkg_as_map(map)->chunks[c]->members[i].value
                       : NULL;
}

struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key)
{
        return lkg_map_get_n(map, key, strlen(key));
}

struct lkg_value *lkg_map_at(const struct lkg_value *value, size_t i, const char **ret_key,
                             size_t *ret_key_size)
{
        struct member *member;

        if (value->type != LKG_MAP || i >= lkg_as_map(value)->n)
                return NULL;
        member = member_at(lkg_as_map(value), i);
        if (ret_key)
                *ret_key = member->key->text;
        if (ret_key_size)
                *ret_key_size = member->key->size;
        return member->value;
}

const char *lkg_map_get_string(const struct lkg_value *map, const char *key)
{
        const struct lkg_value *value = lkg_map_get(map, key);

        if (!value || value->type != LKG_STRING ||
            strlen(lkg_as_text(value)->text) != lkg_as_text(value)->size)
                return NULL;
        return lkg_as_text(value)->text;
}
