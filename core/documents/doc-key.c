/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of maps. Documents of a kind use the same few hundred keys again and again, so an existing key is looked up before a new
 * one is made: most documents make none, and most comparisons only compare addresses.
 *
 * The table has sets of two, so a lookup costs one cache line, even if a million names are new. It grows
 * with the keys, up to a limit; a key whose set is full is not shared.
 */
#include "doc-layout.h"

#define SETS_MIN        256u
#define SETS_MAX        65536u
#define WAYS            2u

#define SIZE_MAX_OF_KEY ((1u << 29) - 1)

struct set {
        unsigned hash[WAYS];
        struct key *key[WAYS]; /* NULL = free */
};

static struct {
        struct set *sets;
        unsigned n_sets; /* a power of two; 0 before the first key */
        unsigned n_keys;
} table;

struct lkg_sought lkg_sought(const char *text, size_t size)
{
        struct lkg_sought sought = { .text = text, .size = size };

        if (size >= sizeof(sought.head)) {
                sought.head = lkg_text_head(text);
                return sought;
        }
        for (size_t i = 0; i < size; i++)
                sought.head |= (uint64_t)(unsigned char)text[i] << (56 - 8 * i);
        return sought;
}

static size_t key_size(size_t size)
{
        return sizeof(struct whole_key) + (size + 1 < sizeof(uint64_t) ? sizeof(uint64_t) : size + 1);
}

static struct key *key_new(const char *text, size_t size)
{
        struct whole_key *key = lkg_piece_new(key_size(size));
        char *to;

        if (!key)
                return NULL;
        *key = (struct whole_key){ .refs = 1, .head.size = (unsigned)size & SIZE_MAX_OF_KEY };
        to = (char *)(key + 1);
        memset(to, 0, sizeof(uint64_t));
        if (size)
                memcpy(to, text, size);
        to[size] = '\0';
        return &key->head;
}

/* FNV-1a */
static unsigned hash_of(const char *text, size_t size)
{
        unsigned hash = 2166136261u;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (unsigned char)text[i]) * 16777619u;
        return hash ^ hash >> 16;
}

static struct set *set_of(unsigned hash)
{
        return &table.sets[hash & (table.n_sets - 1)];
}

void lkg_key_forget(struct key *key)
{
        if (key->shared && table.n_sets) {
                struct set *set = set_of(hash_of(lkg_key_text(key, NULL), key->size));
                unsigned i = set->key[0] == key ? 0 : 1;

                set->key[i] = NULL; /* its hash stays: see is_popular() */
                table.n_keys--;
        }
        lkg_piece_free(lkg_whole_key(key), key_size(key->size));
}

bool lkg_key_is_alone(const struct key *key)
{
        return key->packed || (lkg_whole_key(key)->refs == 1 && !key->popular);
}

static bool set_add(struct set *set, struct key *key, unsigned hash)
{
        for (unsigned i = 0; i < WAYS; i++) {
                if (set->key[i])
                        continue;
                set->key[i] = key;
                set->hash[i] = hash;
                return true;
        }
        return false;
}

/* If memory runs out, the table keeps its size. */
static void table_grow(void)
{
        unsigned n = table.n_sets ? 2 * table.n_sets : SETS_MIN, n_before = table.n_sets;
        struct set *before = table.sets, *sets;

        if (table.n_keys < n_before || n > SETS_MAX)
                return;
        sets = calloc(n, sizeof(*sets));
        if (!sets)
                return;
        table.sets = sets;
        table.n_sets = n;
        for (unsigned i = 0; i < n_before; i++)
                for (unsigned w = 0; w < WAYS; w++)
                        if (before[i].key[w]) /* a set becomes two: there is room */
                                (void)set_add(set_of(before[i].hash[w]), before[i].key[w],
                                              before[i].hash[w]);
        free(before);
}

static bool is_text_of(const struct key *key, const char *text, size_t size)
{
        return key && key->size == size && (size == 0 || memcmp(lkg_key_text(key, NULL), text, size) == 0);
}

/*
 * Was there a key with this hash before that has been freed? A key that document after document uses is
 * worth sharing.
 */
static bool is_popular(const struct set *set, unsigned hash)
{
        for (unsigned i = 0; i < WAYS; i++)
                if (!set->key[i] && set->hash[i] == hash)
                        return true;
        return false;
}

struct key *lkg_key_get(const char *text, size_t size)
{
        unsigned hash = hash_of(text, size);
        struct set *set;
        struct key *key;

        if (size > SIZE_MAX_OF_KEY)
                return NULL;
        table_grow();
        set = table.n_sets ? set_of(hash) : NULL;
        for (unsigned i = 0; set && i < WAYS; i++)
                if (set->hash[i] == hash && is_text_of(set->key[i], text, size))
                        return lkg_whole_key(set->key[i])->refs++, set->key[i];
        key = key_new(text, size);
        if (key && set)
                key->popular = is_popular(set, hash);
        if (key && set && set_add(set, key, hash)) {
                key->shared = true;
                table.n_keys++;
        }
        return key;
}

/* The table lives until exit; it is freed then, so that a leak checker sees only real leaks. */
__attribute__((destructor)) static void forget_table(void)
{
        free(table.sets);
        table.sets = NULL;
        table.n_sets = 0;
}

/*
 * Compare two texts of @n > 8 bytes whose first eight bytes are equal. For most, the last eight bytes cover
 * the rest.
 */
static int compare_rest(const char *a, const char *b, size_t n)
{
        uint64_t x, y;

        if (n > 2 * sizeof(x))
                return memcmp(a + sizeof(x), b + sizeof(x), n - sizeof(x));
        x = lkg_text_head(a + n - sizeof(x));
        y = lkg_text_head(b + n - sizeof(y));
        return (x > y) - (x < y);
}

int lkg_key_compare_rest(const struct lkg_sought *sought, const struct key *key)
{
        const char *text = lkg_key_text(key, NULL);
        size_t size = lkg_key_size(key), n = sought->size < size ? sought->size : size;
        int r = n > sizeof(uint64_t) && sought->text != text ? compare_rest(sought->text, text, n) : 0;

        return r ? r : (sought->size > size) - (sought->size < size);
}
