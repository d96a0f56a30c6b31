/* SPDX-License-Identifier: Apache-2.0 */
/* Maps of the value tree: leaves and branches, finding and changing members. */
#include "doc-layout.h"

#define LEAF_MIN   4u
#define BRANCH_MIN 4u

/* The path from the root to a leaf; all of it belongs to one map. */
struct way {
        struct {
                struct branch *branch;
                unsigned i;
        } up[LKG_HEIGHT_MAX + 1]; /* by level; [0] is not used */
        struct leaf *leaf;
};

/* The leaf may be of either kind. */
static struct member leaf_member(struct node *node, unsigned i)
{
        return lkg_is_pack(node) ? lkg_pack_member(lkg_as_pack(node), i) : lkg_as_leaf(node)->members[i];
}

/* ---- life of a part ---- */

static unsigned part_max(unsigned level)
{
        return level > 0 ? LKG_BRANCH_MAX : LKG_LEAF_MAX;
}

static struct node *part_new(unsigned level, unsigned allocated)
{
        struct node *node = lkg_piece_new(lkg_part_size(level, allocated));

        if (node)
                *node = (struct node){ .refs = 1, .allocated = (uint16_t)allocated };
        return node;
}

/* Take references to the content that two parts now share. */
static void share_content(struct node *node, unsigned level)
{
        for (unsigned i = 0; level > 0 && i < node->n; i++)
                lkg_as_branch(node)->children[i].node->refs++;
        for (unsigned i = 0; level == 0 && i < node->n; i++) {
                (void)lkg_key_ref(lkg_as_leaf(node)->members[i].key);
                (void)lkg_value_ref(lkg_as_leaf(node)->members[i].value);
        }
}

/* Turn a pack into a leaf, with room for one more member unless it is full. */
static int leaf_unpack(struct node **at)
{
        struct pack *pack = lkg_as_pack(*at);
        struct whole_value *dying = NULL;
        struct node *leaf = part_new(0, pack->node.n < LKG_LEAF_MAX ? pack->node.n + 1u : LKG_LEAF_MAX);

        if (!leaf)
                return -ENOMEM;
        for (unsigned i = 0; i < pack->node.n; i++) {
                struct member member = lkg_pack_member(pack, i);

                lkg_as_leaf(leaf)->members[i] =
                        (struct member){ lkg_key_ref(member.key), lkg_value_ref(member.value) };
        }
        leaf->n = pack->node.n;
        lkg_pack_let_go(pack, &dying); /* all that it led to has a reference here */
        *at = leaf;
        return 0;
}

/* Make *@at the owner's own copy, with room for one more member unless it is full. */
static int part_own(struct node **at, unsigned level, bool room)
{
        struct node *node = *at, *own;
        unsigned want = node->n + (room && node->n < part_max(level) ? 1 : 0);

        if (level == 0 && lkg_is_pack(node))
                return leaf_unpack(at);
        if (node->refs == 1 && want <= node->allocated)
                return 0;
        if (want > node->allocated)
                want = node->allocated < LEAF_MIN ? LEAF_MIN : 2u * node->allocated;
        if (want > part_max(level))
                want = part_max(level);
        own = part_new(level, want);
        if (!own)
                return -ENOMEM;
        own->n = node->n;
        memcpy((char *)own + sizeof(*own), (char *)node + sizeof(*node),
               lkg_part_size(level, node->n) - sizeof(*node));
        *at = own;
        if (node->refs == 1) {
                lkg_part_free(node, level);
                return 0;
        }
        share_content(own, level);
        node->refs--; /* was above 1 */
        return 0;
}

/* ---- finding ---- */

/* Return the last child whose first key is not above @sought. */
static inline unsigned branch_find(const struct branch *branch, const struct lkg_sought *sought)
{
        unsigned low = 0, high = branch->node.n;

        while (high - low > 1) {
                unsigned middle = low + (high - low) / 2;

                if (lkg_key_compare(sought, branch->children[middle].first) < 0)
                        high = middle;
                else
                        low = middle;
        }
        return low;
}

/* Return true and the position if the member exists; false and its insertion position otherwise. */
__attribute__((always_inline)) static inline bool leaf_find(struct node *node,
                                                            const struct lkg_sought *sought, unsigned *ret_i)
{
        const struct pack *pack = lkg_is_pack(node) ? lkg_as_pack(node) : NULL;
        unsigned low = 0, high = node->n;

        while (low < high) {
                unsigned middle = low + (high - low) / 2;
                const struct key *key =
                        pack ? lkg_pack_member(pack, middle).key : lkg_as_leaf(node)->members[middle].key;
                int r = lkg_key_compare(sought, key);

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

static struct lkg_value *map_find(const struct map_value *map, const struct lkg_sought *sought)
{
        struct node *node = map->root;
        unsigned i;

        if (!node)
                return NULL;
        for (unsigned level = map->height; level > 0; level--)
                node = lkg_as_branch(node)->children[branch_find(lkg_as_branch(node), sought)].node;
        return leaf_find(node, sought, &i) ? leaf_member(node, i).value : NULL;
}

/* The member that lkg_map_at() would return. */
static struct member member_at(struct map_value *map, size_t i)
{
        struct node *node = map->root;
        size_t first = 0;

        if (map->height == 0)
                return leaf_member(node, (unsigned)i);
        if (map->hint && i >= map->hint_first && i - map->hint_first < map->hint->n)
                return leaf_member(map->hint, (unsigned)(i - map->hint_first));
        for (unsigned level = map->height; level > 0; level--) {
                const struct child *child = lkg_as_branch(node)->children;

                while (i - first >= child->n)
                        first += child++->n;
                node = child->node;
        }
        map->hint = node;
        map->hint_first = first;
        return leaf_member(node, (unsigned)(i - first));
}

/* ---- changing ---- */

static void forget_hint(struct map_value *map)
{
        map->hint = NULL;
        map->hint_first = 0;
}

/*
 * How much of a full part stays in place when it is split for a member that belongs at @at. Members that come in order, at the end
 * or in between, fill the parts after it. A branch never is empty, a leaf may be for a moment.
 */
static unsigned where_to_cut(const struct map_value *map, const struct node *node, unsigned level,
                             unsigned at)
{
        if (level > 0)
                return at + 1 == node->n ? at : node->n / 2u;
        return at == node->n || (node == map->put && at == map->put_at + 1) ? at : node->n / 2u;
}

/* Return: the rest of a full part after its first @keep members. */
static struct node *part_split(struct node *node, unsigned level, unsigned keep)
{
        unsigned moved = node->n - keep;
        struct node *right = part_new(level, moved < 8 ? 8 : part_max(level));
        size_t kept = lkg_part_size(level, keep);

        if (!right)
                return NULL;
        memcpy((char *)right + sizeof(*right), (char *)node + kept, lkg_part_size(level, node->n) - kept);
        right->n = (uint16_t)moved;
        node->n = (uint16_t)keep;
        return right;
}

static const struct key *first_of(struct node *node, unsigned level)
{
        return level > 0 ? lkg_as_branch(node)->children[0].first : leaf_member(node, 0).key;
}

static size_t count_of(struct node *node, unsigned level)
{
        size_t n = 0;

        if (level == 0)
                return node->n;
        for (unsigned i = 0; i < node->n; i++)
                n += lkg_as_branch(node)->children[i].n;
        return n;
}

static void child_update(struct child *child, unsigned level)
{
        if (child->node->n == 0) /* a new leaf that is filled at once */
                return;
        child->first = first_of(child->node, level);
        child->n = count_of(child->node, level);
}

/* A level more, so that the root can be cut. */
static int map_grow(struct map_value *map)
{
        struct node *root;

        if (map->height == LKG_HEIGHT_MAX)
                return -ENOMEM;
        root = part_new(map->height + 1, BRANCH_MIN);
        if (!root)
                return -ENOMEM;
        lkg_as_branch(root)->children[0].node = map->root;
        child_update(&lkg_as_branch(root)->children[0], map->height);
        root->n = 1;
        map->root = root;
        map->height++;
        return 0;
}

/* Cuts full child *@i of a branch that has room; *@i is the half where @at belongs, a place in the whole child. */
static int child_split(const struct map_value *map, struct branch *branch, unsigned *i, unsigned level,
                       unsigned at)
{
        struct child *child = &branch->children[*i];
        struct node *right = part_split(child->node, level, where_to_cut(map, child->node, level, at));
        bool goes_right;

        if (!right)
                return -ENOMEM;
        goes_right = level > 0 ? at >= child->node->n : at > child->node->n || right->n == 0;
        memmove(child + 2, child + 1, (branch->node.n - *i - 1) * sizeof(*child));
        branch->node.n++;
        child[1] = (struct child){ .node = right };
        child_update(&child[0], level);
        child_update(&child[1], level);
        *i += goes_right;
        return 0;
}

/* The place of the sought key in a part. */
static unsigned part_find(struct node *node, unsigned level, const struct lkg_sought *sought)
{
        unsigned i = 0;

        if (level > 0)
                return branch_find(lkg_as_branch(node), sought);
        (void)leaf_find(node, sought, &i);
        return i;
}

/*
 * Go to the part of level @lowest where the sought key belongs, making every part on the path the map's own.
 * @room: for one more member or part; full parts are split on the way down, so a split never propagates
 * upwards.
 */
static int map_own_part(struct map_value *map, const struct lkg_sought *sought, bool room, unsigned lowest,
                        struct way *ret, struct node **ret_part)
{
        struct node **at = &map->root;
        int r = part_own(at, map->height, room);

        forget_hint(map);
        if (r == 0 && room && map->root->n == part_max(map->height))
                r = map_grow(map);
        for (unsigned level = map->height; r == 0 && level > lowest; level--) {
                struct branch *branch = lkg_as_branch(*at);
                unsigned i = branch_find(branch, sought);
                struct node **below = &branch->children[i].node;

                r = part_own(below, level - 1, room);
                if (r == 0 && room && (*below)->n == part_max(level - 1))
                        r = child_split(map, branch, &i, level - 1, part_find(*below, level - 1, sought));
                ret->up[level].branch = branch;
                ret->up[level].i = i;
                at = &branch->children[i].node;
        }
        *ret_part = *at;
        return r;
}

/* The same down to the leaf. */
static int map_own(struct map_value *map, const struct lkg_sought *sought, bool room, struct way *ret)
{
        struct node *part;
        int r = map_own_part(map, sought, room, 0, ret, &part);

        ret->leaf = lkg_as_leaf(part);
        return r;
}

/* Update the counts after member @i has been put into the leaf. */
static void way_count(const struct map_value *map, const struct way *way)
{
        for (unsigned level = 1; level <= map->height; level++) {
                struct child *child = &way->up[level].branch->children[way->up[level].i];

                child->n++;
                child->first = first_of(child->node, level - 1);
        }
}

/* Update the counts after a member has been removed from the leaf; empty parts are removed. */
static void way_uncount(struct map_value *map, const struct way *way)
{
        for (unsigned level = 1; level <= map->height; level++) {
                struct branch *branch = way->up[level].branch;
                struct child *child = &branch->children[way->up[level].i];

                child->n--;
                if (child->node->n > 0) {
                        child->first = first_of(child->node, level - 1);
                        continue;
                }
                lkg_part_free(child->node, level - 1);
                branch->node.n--;
                memmove(child, child + 1, (branch->node.n - way->up[level].i) * sizeof(*child));
        }
        while (map->height > 0 && map->root->n <= 1) {
                struct node *root = map->root;

                map->root = root->n ? lkg_as_branch(root)->children[0].node : NULL;
                lkg_part_free(root, map->height);
                map->height = map->root ? map->height - 1 : 0;
        }
}

/* Put a new member; the leaf has room. */
static void way_put(struct map_value *map, const struct way *way, unsigned i, struct key *key,
                    struct lkg_value *item)
{
        struct leaf *leaf = way->leaf;

        memmove(leaf->members + i + 1, leaf->members + i, (leaf->node.n - i) * sizeof(struct member));
        leaf->members[i] = (struct member){ key, item };
        leaf->node.n++;
        map->n++;
        map->put = &leaf->node;
        map->put_at = i;
        way_count(map, way);
}

/* Takes over both references on success. */
static int map_insert(struct map_value *map, const struct lkg_sought *sought, struct key *key,
                      struct lkg_value *item)
{
        struct way way;
        unsigned i;
        int r;

        if (!map->root)
                map->root = part_new(0, LEAF_MIN);
        if (!map->root)
                return -ENOMEM;
        r = map_own(map, sought, true, &way);
        if (r < 0)
                return r;
        (void)leaf_find(&way.leaf->node, sought, &i);
        way_put(map, &way, i, key, item);
        return 0;
}

int lkg_map_expect(struct lkg_value *value, size_t n)
{
        struct map_value *map = lkg_as_map(value);

        assert(map->head.refs == 1);
        if (map->root || n <= LEAF_MIN)
                return 0;
        map->root = part_new(0, n < LKG_LEAF_MAX ? (unsigned)n : LKG_LEAF_MAX);
        return map->root ? 0 : -ENOMEM;
}

/*
 * One descent is nearly always enough: an existing member is replaced, and a new one goes into a leaf with
 * room.
 * Return: 1 if *@ret_earlier was replaced; -ENOMEM, and both references stay the caller's. @like: a key with
 * that name, or NULL
 */
static int map_replace(struct map_value *map, const struct lkg_sought *sought, struct key *like,
                       struct lkg_value *item, struct lkg_value **ret_earlier)
{
        struct key *key;
        struct way way;
        unsigned i = 0;
        int r = map->root ? map_own(map, sought, false, &way) : 0;

        if (r < 0)
                return r;
        if (map->root && leaf_find(&way.leaf->node, sought, &i)) {
                *ret_earlier = way.leaf->members[i].value;
                way.leaf->members[i].value = item;
                return 1;
        }
        key = like ? lkg_key_ref(like) : lkg_key_get(sought->text, sought->size);
        if (!key)
                return -ENOMEM;
        if (map->root && way.leaf->node.n < way.leaf->node.allocated) {
                way_put(map, &way, i, key, item);
                return 0;
        }
        r = map_insert(map, sought, key, item);
        if (r < 0)
                lkg_key_unref(key);
        return r;
}

int lkg_map_replace(struct lkg_value *value, const char *key, size_t key_size, struct lkg_value *item,
                    struct lkg_value **ret_earlier)
{
        const struct lkg_sought sought = lkg_sought(key, key_size);
        int r;

        assert(lkg_as_map(value)->head.refs == 1);
        r = item ? map_replace(lkg_as_map(value), &sought, NULL, item, ret_earlier) : -ENOMEM;
        if (r < 0)
                lkg_value_unref(item);
        return r;
}

int lkg_map_set(struct lkg_value *map, const char *key, size_t key_size, struct lkg_value *item)
{
        struct lkg_value *earlier = NULL;
        int r = lkg_map_replace(map, key, key_size, item, &earlier);

        lkg_value_unref(earlier);
        return r;
}

/*
 * Make a branch above the first of @n parts of a level, as many as fit.
 * Return: NULL = no memory.
 */
static struct node *branch_over(struct node **parts, size_t n, unsigned level)
{
        unsigned n_below = n < LKG_BRANCH_MAX ? (unsigned)n : LKG_BRANCH_MAX;
        struct node *node = part_new(level + 1, n_below);

        for (unsigned i = 0; node && i < n_below; i++) {
                lkg_as_branch(node)->children[i].node = parts[i];
                child_update(&lkg_as_branch(node)->children[i], level);
                node->n++;
        }
        return node;
}

/* Build the tree above @n leaves; their references are taken over, also on failure. NULL = no memory. */
static struct node *tree_over(struct node **parts, size_t n, unsigned *ret_height)
{
        struct whole_value *dying = NULL;
        unsigned level = 0;

        for (; n > 1; level++) {
                size_t n_above = 0, i = 0;

                while (i < n) {
                        struct node *branch = branch_over(parts + i, n - i, level);

                        if (!branch)
                                break;
                        i += branch->n;
                        parts[n_above++] = branch;
                }
                for (size_t k = 0; i < n && k < n_above; k++)
                        lkg_part_unref(parts[k], level + 1, &dying);
                for (; i < n; n_above = 0)
                        lkg_part_unref(parts[i++], level, &dying);
                n = n_above;
        }
        lkg_values_free(dying);
        *ret_height = level;
        return n ? parts[0] : NULL;
}

/*
 * Make packs of all members.
 * Return: their number; 0: no memory.
 */
static size_t pack_leaves(struct map_value *map, struct node **ret)
{
        struct member members[LKG_LEAF_MAX];
        struct whole_value *dying = NULL;
        size_t n_packs = 0;
        unsigned n = 0;

        for (size_t i = 0; i < map->n || n > 0;) {
                struct pack *pack;

                while (n < LKG_LEAF_MAX && i < map->n)
                        members[n++] = member_at(map, i++);
                pack = lkg_pack_new(members, n, map->head.source);
                if (!pack)
                        break;
                ret[n_packs++] = &pack->node;
                n -= pack->node.n;
                memmove(members, members + pack->node.n, n * sizeof(*members));
        }
        for (; n > 0 && n_packs > 0; n = n_packs)
                lkg_part_unref(ret[--n_packs], 0, &dying);
        lkg_values_free(dying);
        return n_packs;
}

void lkg_map_pack(struct lkg_value *value)
{
        struct map_value *map = lkg_as_map(value);
        struct whole_value *dying = NULL;
        struct node **leaves, *root = NULL;
        unsigned height;
        size_t n;

        if (map->height == 0)
                return;
        leaves = reallocarray(NULL, map->n, sizeof(*leaves));
        n = leaves ? pack_leaves(map, leaves) : 0;
        if (n > 0)
                root = tree_over(leaves, n, &height);
        free(leaves);
        if (!root)
                return; /* it is as good as before */
        lkg_part_unref(map->root, map->height, &dying);
        lkg_values_free(dying);
        map->root = root;
        map->height = height;
        forget_hint(map);
}

int lkg_map_remove(struct lkg_value *value, const char *key, size_t key_size)
{
        const struct lkg_sought sought = lkg_sought(key, key_size);
        struct map_value *map = lkg_as_map(value);
        struct member member;
        struct way way;
        unsigned i;

        assert(map->head.refs == 1);
        if (!map_find(map, &sought))
                return 0;
        if (map_own(map, &sought, false, &way) < 0)
                return -ENOMEM;
        (void)leaf_find(&way.leaf->node, &sought, &i);
        member = way.leaf->members[i];
        memmove(way.leaf->members + i, way.leaf->members + i + 1,
                (way.leaf->node.n - i - 1) * sizeof(struct member));
        way.leaf->node.n--;
        map->n--;
        way_uncount(map, &way);
        lkg_key_unref(member.key);
        lkg_value_unref(member.value);
        return 1;
}

/* ---- by index ---- */

/* Append a member if the parts on the path are the map's own and the leaf has room. */
static bool append_quickly(struct map_value *map, struct key *key, struct lkg_value *item)
{
        struct child *up[LKG_HEIGHT_MAX + 1];
        struct node *node = map->root;

        for (unsigned level = map->height; node && level > 0; level--) {
                if (node->refs > 1)
                        return false;
                up[level] = &lkg_as_branch(node)->children[node->n - 1];
                node = up[level]->node;
        }
        if (!node || node->refs > 1 || lkg_is_pack(node) || node->n == node->allocated)
                return false;
        lkg_as_leaf(node)->members[node->n++] = (struct member){ key, item };
        map->n++;
        for (unsigned level = 1; level <= map->height; level++)
                up[level]->n++;
        return true;
}

int lkg_map_append_like(struct lkg_value *value, const struct lkg_value *other, size_t i,
                        struct lkg_value *item)
{
        struct map_value *map = lkg_as_map(value);
        const struct member last = map->n > 0 ? member_at(map, map->n - 1) : (struct member){ 0 };
        struct lkg_sought sought;
        const char *text;
        struct key *key;
        size_t size;
        int r;

        (void)last; /* of a build without assertions */
        assert(map->head.refs == 1);
        if (!item)
                return -ENOMEM;
        key = lkg_key_ref(member_at(lkg_as_map(other), i).key);
        text = lkg_key_text(key, &size);
        sought = lkg_sought(text, size);
        assert(!last.key || lkg_key_compare(&sought, last.key) > 0);
        if (append_quickly(map, key, item)) /* as it is nearly always */
                return 0;
        r = map_insert(map, &sought, key, item);
        if (r < 0) {
                lkg_key_unref(key);
                lkg_value_unref(item);
        }
        return r;
}

int lkg_map_set_like(struct lkg_value *value, const struct lkg_value *other, size_t i,
                     struct lkg_value *item)
{
        struct key *key = member_at(lkg_as_map(other), i).key;
        struct lkg_value *earlier = NULL;
        struct lkg_sought sought;
        const char *text;
        size_t size;
        int r;

        assert(lkg_as_map(value)->head.refs == 1);
        text = lkg_key_text(key, &size);
        sought = lkg_sought(text, size);
        r = item ? map_replace(lkg_as_map(value), &sought, key, item, &earlier) : -ENOMEM;
        lkg_value_unref(r < 0 ? item : earlier);
        return r;
}

struct lkg_value *lkg_map_at(const struct lkg_value *value, size_t i, const char **ret_key,
                             size_t *ret_key_size)
{
        struct member member;
        const char *text;

        if (value->type != LKG_MAP || i >= lkg_as_map(value)->n)
                return NULL;
        member = member_at(lkg_as_map(value), i);
        text = lkg_key_text(member.key, ret_key_size);
        if (ret_key)
                *ret_key = text;
        return member.value;
}

/* ---- whole leaves of another map ---- */

static struct lkg_sought sought_of(const struct key *key)
{
        size_t size;
        const char *text = lkg_key_text(key, &size);

        return lkg_sought(text, size);
}

/* Is there no member between two keys or at one of them? */
static bool is_gap(const struct map_value *map, const struct lkg_sought *first,
                   const struct lkg_sought *last)
{
        const struct key *behind = NULL;
        struct node *node = map->root;
        unsigned i;

        for (unsigned level = map->height; level > 0; level--) {
                const struct branch *branch = lkg_as_branch(node);

                i = branch_find(branch, first);
                if (i + 1 < branch->node.n)
                        behind = branch->children[i + 1].first;
                node = branch->children[i].node;
        }
        if (leaf_find(node, first, &i))
                return false;
        if (i < node->n)
                behind = leaf_member(node, i).key;
        return !behind || lkg_key_compare(last, behind) < 0;
}

/* Make @node, whose reference is taken over, child @i of a branch that has room. */
static void branch_put(struct branch *branch, unsigned i, struct node *node)
{
        struct child *child = &branch->children[i];

        memmove(child + 1, child, (branch->node.n - i) * sizeof(*child));
        branch->node.n++;
        child->node = node;
        child_update(child, 0);
}

/*
 * Split the leaf of the sought key into the members before and after it, unless the key belongs at an end.
 * Return: the position of the first leaf after it in the branch above, which is the map's own and has room;
 * -ENOMEM.
 */
static int leaf_cut(struct map_value *map, const struct lkg_sought *sought, struct way *way,
                    struct branch **ret_branch)
{
        for (;;) {
                struct branch *branch;
                struct node *part, *behind;
                unsigned i, at;
                int r = map->height == 0 ? map_grow(map) : 0;

                if (r == 0)
                        r = map_own_part(map, sought, true, 1, way, &part);
                if (r < 0)
                        return r;
                branch = *ret_branch = lkg_as_branch(part);
                i = branch_find(branch, sought);
                at = part_find(branch->children[i].node, 0, sought);
                if (at == 0 || at == branch->children[i].node->n)
                        return (int)(at == 0 ? i : i + 1);
                r = part_own(&branch->children[i].node, 0, false);
                behind = r == 0 ? part_split(branch->children[i].node, 0, at) : NULL;
                if (!behind)
                        return -ENOMEM;
                child_update(&branch->children[i], 0);
                branch_put(branch, i + 1, behind); /* and once more, for room */
        }
}

/*
 * Return the leaf of @map that begins with member @i if it is a pack that any map can share unchanged; else
 * NULL.
 */
static struct pack *pack_at(struct map_value *map, size_t i)
{
        if (map->height == 0) /* smaller ones are not packed, and they are most */
                return NULL;
        (void)member_at(map, i);
        return map->hint_first == i && lkg_is_pack(map->hint) && lkg_as_pack(map->hint)->plain
                       ? lkg_as_pack(map->hint)
                       : NULL;
}

bool lkg_map_is_leaf(const struct lkg_value *value, size_t i)
{
        return i < lkg_as_map(value)->n && pack_at(lkg_as_map(value), i);
}

int lkg_map_graft(struct lkg_value *value, const struct lkg_value *other, size_t i)
{
        struct pack *pack = pack_at(lkg_as_map(other), i);
        struct map_value *map = lkg_as_map(value);
        struct lkg_sought first, last;
        struct branch *branch;
        struct way way;
        int at;

        assert(map->head.refs == 1);
        if (!pack || map->n == 0)
                return 0;
        first = sought_of(lkg_pack_member(pack, 0).key);
        last = sought_of(lkg_pack_member(pack, pack->node.n - 1u).key);
        if (!is_gap(map, &first, &last))
                return 0;
        at = leaf_cut(map, &first, &way, &branch);
        if (at < 0)
                return at;
        pack->node.refs++;
        branch_put(branch, (unsigned)at, &pack->node);
        map->n += pack->node.n;
        for (unsigned level = 2; level <= map->height; level++) {
                struct child *child = &way.up[level].branch->children[way.up[level].i];

                child->n += pack->node.n;
                child->first = first_of(child->node, level - 1);
        }
        return pack->node.n;
}

/* ---- by name ---- */

struct lkg_value *lkg_map_get_n(const struct lkg_value *map, const char *key, size_t key_size)
{
        const struct lkg_sought sought = lkg_sought(key, key_size);

        return map->type == LKG_MAP ? map_find(lkg_as_map(map), &sought) : NULL;
}

struct lkg_value *lkg_map_get(const struct lkg_value *map, const char *key)
{
        return lkg_map_get_n(map, key, strlen(key));
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
