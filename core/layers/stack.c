/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer files of one component, from directory entries to parsed documents.
 *
 * A refresh collects the current layers, from the cache if their identity has not changed. The cache is simply the
 * layers of the last refresh, sorted by path. What they come to over a base is the business of merges.c.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "layers.h"

#include <lkg/base.h>

/* The result of one refresh. */
struct collect {
        struct lkg_stack *stack;
        struct lkg_found found;
        enum lkg_layer_role role; /* of the current walk */
        size_t n_of[_LKG_LAYER_ROLE_MAX];
        uint64_t n_bytes; /* of all layers so far */
        bool vanished, too_many[_LKG_LAYER_ROLE_MAX];
};

/* ---- life ---- */

static void found_deinit(struct lkg_found *found)
{
        for (size_t i = 0; i < found->layers.n; i++)
                lkg_layer_unref(found->layers.items[i]);
        free(found->layers.items);
        lkg_way_deinit(&found->watches);
        for (unsigned role = 0; role < _LKG_LAYER_ROLE_MAX; role++)
                lkg_report_deinit(&found->reports[role]);
        *found = (struct lkg_found){ 0 };
}

struct lkg_stack *lkg_stack_new(const struct lkg_stack_config *config)
{
        struct lkg_stack *stack = lkg_must(calloc(1, sizeof(*stack)));

        stack->config = *config;
        stack->last_fd = -EBADF;
        stack->bounds = (struct lkg_bounds){ config->source_fd, config->source_path };
        if (!stack->config.realtime_ns)
                stack->config.realtime_ns = lkg_realtime_ns;
        const char **texts[] = { &stack->config.component,   &stack->config.source_path,
                                 &stack->config.base,        &stack->config.base_wanted,
                                 &stack->config.dropin_dir,  &stack->config.instance,
                                 &stack->config.patches_dir, &stack->config.patches_target,
                                 &stack->config.kind,        &stack->config.api_version };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++)
                if (!*texts[i])
                        *texts[i] = "";
        return stack;
}

struct lkg_stack *lkg_stack_free(struct lkg_stack *stack)
{
        if (!stack)
                return NULL;
        lkg_merges_forget(stack);
        lkg_stack_rest(stack);
        free(stack->sorted);
        found_deinit(&stack->found);
        free(stack);
        return NULL;
}

void lkg_stack_inherit(struct lkg_stack *stack, struct lkg_stack *before)
{
        if (!before->sorted || !stack->config.manifests || !before->config.manifests ||
            strcmp(stack->config.dropin_dir, before->config.dropin_dir) != 0)
                return;
        for (size_t i = 0; i < before->found.layers.n; i++)
                before->found.layers.items[i]->racy = true;
        stack->found = before->found;
        stack->sorted = before->sorted;
        before->found = (struct lkg_found){ 0 };
        before->sorted = NULL;
}

void lkg_stack_rest(struct lkg_stack *stack)
{
        stack->last_fd = lkg_close(stack->last_fd);
}

void lkg_stack_set_unsettled(struct lkg_stack *stack, lkg_unsettled_fn *fn, void *userdata)
{
        stack->unsettled = fn;
        stack->unsettled_userdata = userdata;
}

void lkg_stack_set_judge(struct lkg_stack *stack, lkg_judge_fn *fn, void *userdata)
{
        stack->judge = fn;
        stack->judge_userdata = userdata;
        lkg_stack_rejudge(stack);
}

void lkg_stack_want_base(struct lkg_stack *stack, const char *path)
{
        stack->config.base_wanted = path;
        stack->complete = false;
}

void lkg_stack_set_admission(struct lkg_stack *stack, const struct lkg_admission *admission)
{
        stack->admission = *admission;
}

void lkg_stack_set_base(struct lkg_stack *stack, const char *path)
{
        lkg_merges_forget(stack); /* relative paths of a document in memory start beside the base file */
        stack->config.base = path;
        stack->complete = false;
}

const struct lkg_stack_stats *lkg_stack_stats(const struct lkg_stack *stack)
{
        return &stack->stats;
}

size_t lkg_stack_watches(const struct lkg_stack *stack, const struct lkg_stack_watch **ret)
{
        *ret = stack->found.watches.items;
        return stack->found.watches.n;
}

/* ---- collecting ---- */

static int compare_paths(const void *a, const void *b)
{
        return strcmp((*(struct lkg_layer *const *)a)->path, (*(struct lkg_layer *const *)b)->path);
}

size_t lkg_stack_find(const struct lkg_stack *stack, const char *path)
{
        size_t low = 0, high = stack->sorted ? stack->found.layers.n : 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int r = strcmp(path, stack->sorted[middle]->path);

                if (r == 0)
                        return middle;
                if (r < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return SIZE_MAX;
}

bool lkg_stack_knows(const struct lkg_stack *stack, const char *path)
{
        return lkg_stack_find(stack, path) != SIZE_MAX;
}

static struct lkg_layer *cached(const struct lkg_stack *stack, const char *path, enum lkg_layer_role role)
{
        size_t at = lkg_stack_find(stack, path);

        return at != SIZE_MAX && stack->sorted[at]->role == role ? stack->sorted[at] : NULL;
}

int lkg_stack_open_tree(const struct lkg_stack *stack, const char *path, const char *full)
{
        const struct lkg_bounds *bounds = lkg_stack_bounds(stack, full);
        /* a kubelet follows the link that its directory of static pods is */
        bool follow = stack->config.manifests || path[strlen(path) - 1] == '/';
        int fd;

        if (bounds)
                return lkg_open_directory(bounds, lkg_path_below(full, bounds->path), follow);
        fd = openat(stack->config.source_fd, path,
                    O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
        return fd < 0 ? -errno : fd;
}

bool lkg_stack_load(struct lkg_stack *stack, const struct lkg_place *place, struct lkg_layer *before,
                    struct lkg_layer **ret)
{
        struct lkg_layer *layer;

        *ret = NULL;
        if (!lkg_layer_load(stack, place, before, &layer))
                return false;
        /*
         * Checked after reading: a writer may have truncated the file just before, and then half a file was
         * read.
         */
        if (layer && layer != before && stack->unsettled &&
            stack->unsettled(place->path, layer->sha256, stack->unsettled_userdata)) {
                lkg_layer_unref(layer);
                /* A pod is gone only if its file is, so the file is known without its content. */
                layer = before || place->role != LKG_LAYER_MANIFEST ? lkg_layer_ref(before)
                                                                    : lkg_layer_new(place);
                if (layer)
                        layer->racy = true; /* its identity is not that of the file: read it again */
                else
                        stack->complete = false; /* only a walk will find it */
        }
        *ret = layer;
        return true;
}

static void say_of_path(struct collect *c, enum lkg_layer_role role, enum lkg_severity severity,
                        unsigned code, const char *path, const char *text)
{
        LKG_CLEANUP(lkg_freep) char *shown = lkg_display(path);
        struct lkg_where where = { shown, 0, 0 };

        lkg_report_add(&c->found.reports[role], severity, code, &where, "%s", text);
}

/* Who reads the layers once does not care. */
static void poll(struct collect *c, const struct lkg_place *place)
{
        if (!c->stack->unsettled)
                return;
        say_of_path(
                c, place->role, LKG_NOTE, LKG_C_OTHER_NAMES, place->path,
                "the file has another name (a second hard link, or a file mounted over this one); a "
                "change in place through that name is looked for every 2 s, and when the component starts");
        lkg_watches_add_polled(&c->found.watches, place->path);
}

/* What exceeds a limit is not loaded, and said once. */
static bool is_one_too_many(struct collect *c, const struct lkg_place *place)
{
        const uint64_t max = lkg_stack_max_dropins(&c->stack->config);
        static const char *const what[_LKG_LAYER_ROLE_MAX] = { [LKG_LAYER_DROPIN] = "drop-ins",
                                                               [LKG_LAYER_PATCH] = "patches",
                                                               [LKG_LAYER_MANIFEST] = "manifests" };
        char text[256];

        if (!what[place->role] || c->n_of[place->role] < max)
                return false;
        (void)snprintf(text, sizeof(text),
                       "more than %" PRIu64 " %s (maxDropIns): this one and those after it are not loaded; "
                       "put what they have into fewer files, or raise the setting",
                       max, what[place->role]);
        if (!c->too_many[place->role])
                say_of_path(c, place->role, LKG_ERROR, LKG_C_WALK_LIMIT, place->path, text);
        c->too_many[place->role] = true;
        return true;
}

static bool is_too_big(struct collect *c, const struct lkg_layer *layer)
{
        const uint64_t max = lkg_stack_max_bytes(&c->stack->config);
        char text[256];

        if (c->n_bytes + layer->size <= max)
                return false;
        (void)snprintf(text, sizeof(text),
                       "with this file the layers are larger than %" PRIu64
                       " bytes together (maxLayerBytes), so it is not loaded; remove what the component "
                       "does not read, or raise the setting",
                       max);
        if (!c->found.too_big)
                say_of_path(c, layer->role, LKG_ERROR, LKG_C_WALK_LIMIT, layer->path, text);
        c->found.too_big = true;
        return true;
}

/* Takes over @layer, unless it is too big. */
static void accept_layer(struct collect *c, struct lkg_layer *layer)
{
        if (is_too_big(c, layer)) {
                lkg_layer_unref(layer);
                return;
        }
        c->n_of[layer->role]++;
        c->n_bytes += layer->size;
        (void)lkg_need(LKG_RESERVE(c->found.layers.items, c->found.layers.n, c->found.layers.n_allocated));
        c->found.layers.items[c->found.layers.n++] = layer;
}

enum sighting { FOUND_NONE, FOUND_LAYER, FOUND_VANISHED }; /* vanished: it has just been removed */

/* Take one layer file. */
static enum sighting take(struct collect *c, const struct lkg_place *place)
{
        struct lkg_stack *stack = c->stack;
        struct lkg_layer *layer;

        if (is_one_too_many(c, place))
                return FOUND_NONE;
        if (!lkg_stack_load(stack, place, cached(stack, place->path, place->role), &layer))
                return FOUND_VANISHED;
        if (!layer)
                return FOUND_NONE;
        if (layer->other_names)
                poll(c, place);
        accept_layer(c, layer);
        return FOUND_LAYER;
}

/* Base and instance: one file with a configured path. Return: does it exist? */
static bool take_file(struct collect *c, enum lkg_layer_role role, enum lkg_patch_type type,
                      const char *path)
{
        LKG_CLEANUP(lkg_freep) char *full = lkg_stack_form(c->stack, path);
        const char *slash = strrchr(path, '/');
        struct lkg_place place = { .role = role,
                                   .type = type,
                                   .dirfd = c->stack->config.source_fd,
                                   .entry = path,
                                   .path = full,
                                   .name = slash ? slash + 1 : path };

        lkg_watches_add_way(&c->found.watches, full);
        return take(c, &place) == FOUND_LAYER;
}

static bool on_found(int dirfd, const char *entry, const char *path, const char *name, const struct stat *st,
                     void *userdata)
{
        struct collect *c = userdata;
        struct lkg_place place = { .role = c->role,
                                   .type = c->role == LKG_LAYER_MANIFEST ? LKG_PATCH_BESIDE
                                                                         : LKG_PATCH_MERGE,
                                   .dirfd = dirfd,
                                   .entry = entry,
                                   .path = path,
                                   .name = name,
                                   .st = st };

        if (c->role == LKG_LAYER_PATCH)
                (void)lkg_patch_name(entry, c->stack->config.patches_target, &place.type);
        if (S_ISLNK(st->st_mode))
                lkg_watches_add_way(&c->found.watches, path);
        return take(c, &place) == FOUND_VANISHED;
}

static void on_directory(const char *path, void *userdata)
{
        struct collect *c = userdata;

        lkg_watches_add(&c->found.watches, path, NULL);
}

/* A drop-in "directory" that is not a directory: upstream's lstat treats it like any other entry. */
static void take_lonely(struct collect *c, const char *path, const char *full, const struct stat *st)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        if (c->role == LKG_LAYER_DROPIN)
                c->found.has_dropin_dir = true; /* it is configured for the component, which merges it */
        if (c->role == LKG_LAYER_DROPIN && lkg_is_conf(name))
                c->vanished |= on_found(c->stack->config.source_fd, path, full, name, st, c);
        else if (S_ISLNK(st->st_mode) && c->role != LKG_LAYER_MANIFEST)
                say_of_path(c, c->role, LKG_WARNING, LKG_C_SKIPPED_LINK, full,
                            "a symlink is not followed here, so nothing below it is loaded (the component "
                            "does the same); use a real directory, or end the configured path with '/'");
        else if (c->role == LKG_LAYER_DROPIN)
                say_of_path(c, c->role, LKG_WARNING, LKG_C_NOT_A_DIR, full,
                            "not a directory, and no .conf file, so nothing is loaded from it (the "
                            "component does the same); make it a directory");
        else
                say_of_path(c, c->role, LKG_ERROR, LKG_C_NOT_A_DIR, full, "not a directory; make it one");
}

static int open_tree(struct collect *c, const char *path, const char *full, bool required, int *ret_fd)
{
        int fd = lkg_stack_open_tree(c->stack, path, full), source_fd = c->stack->config.source_fd;
        struct stat st;

        if (fd >= 0) {
                *ret_fd = fd;
                return 0;
        }
        if (fd == -EXDEV) {
                say_of_path(
                        c, c->role, LKG_ERROR, LKG_C_UNREADABLE, full,
                        "a symlink on the way leads out of the source directory; use a real directory, a "
                        "relative link that stays beneath, or set layerLinks: host");
                return 0;
        }
        if (fd == -ENOMEM || fd == -EMFILE || fd == -ENFILE)
                return fd;
        if ((fd != -ENOENT || c->role == LKG_LAYER_MANIFEST) &&
            fstatat(source_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                if (S_ISDIR(st.st_mode))
                        say_of_path(c, c->role, LKG_ERROR, LKG_C_UNREADABLE, full,
                                    "the directory cannot be opened; check its mode");
                else
                        take_lonely(c, path, full, &st);
        } else if (required) {
                say_of_path(c, c->role, LKG_ERROR, LKG_C_NO_DROPIN_DIR, full,
                            "the configured directory does not exist; create it, or take it out of the "
                            "configuration");
        }
        return 0;
}

static int take_tree(struct collect *c, enum lkg_layer_role role, const char *path, bool required)
{
        LKG_CLEANUP(lkg_freep) char *full = lkg_stack_tree_form(c->stack, path);
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;
        struct lkg_walk walk = { .report = &c->found.reports[role],
                                 .found = on_found,
                                 .directory = on_directory };
        int r;

        c->role = role;
        lkg_watches_add_way(&c->found.watches, full);
        r = open_tree(c, path, full, required, &fd);
        if (r < 0 || fd < 0)
                return r;
        if (role == LKG_LAYER_DROPIN || role == LKG_LAYER_MANIFEST)
                c->found.has_dropin_dir = true;
        walk.judge = role == LKG_LAYER_PATCH      ? lkg_judge_patch
                     : role == LKG_LAYER_MANIFEST ? lkg_judge_manifest
                                                  : lkg_judge_dropin;
        walk.flat = role == LKG_LAYER_MANIFEST;
        walk.target = c->stack->config.patches_target;
        walk.userdata = c;
        r = lkg_walk(&walk, fd, full);
        c->vanished |= walk.vanished;
        return r;
}

/* Under another name it is the file of before, written under a temporary one. The number alone may have been used again. */
static bool is_renamed(const struct collect *c, size_t n, const struct lkg_layer *layer)
{
        for (size_t i = 0; i < n && layer->has_identity; i++) {
                const struct lkg_layer *other = c->found.layers.items[i];

                if (other->has_identity && other->identity.ino == layer->identity.ino &&
                    other->identity.dev == layer->identity.dev &&
                    other->identity.size == layer->identity.size &&
                    other->identity.mtime_ns == layer->identity.mtime_ns)
                        return true;
        }
        return false;
}

/*
 * kubeadm and many editors move a manifest away, and then another one to its name: until it is certain that a file is gone, what was
 * there counts.
 */
static void keep_missing(struct collect *c)
{
        struct lkg_stack *stack = c->stack;
        const struct lkg_layers *before = &stack->found.layers;
        size_t n = c->found.layers.n;

        for (size_t i = 0; stack->unsettled && i < before->n; i++) {
                struct lkg_layer *layer = before->items[i];

                if ((n && bsearch(&layer, c->found.layers.items, n, sizeof(layer), compare_paths)) ||
                    is_renamed(c, n, layer) ||
                    !stack->unsettled(layer->path, NULL, stack->unsettled_userdata))
                        continue;
                accept_layer(c, lkg_layer_ref(layer));
                stack->complete = false;
        }
        if (c->found.layers.n > n)
                qsort(c->found.layers.items, c->found.layers.n, sizeof(struct lkg_layer *), compare_paths);
}

/* A component whose --config is missing does not start; with only defaults it would be open to everyone. */
static void miss_base(struct collect *c)
{
        const char *wanted = c->stack->config.base_wanted;
        LKG_CLEANUP(lkg_freep) char *full = NULL;

        if (c->found.has_base || !*wanted || c->vanished)
                return;
        full = lkg_stack_form(c->stack, wanted);
        say_of_path(
                c, LKG_LAYER_BASE, LKG_ERROR, LKG_C_BASE_MISSING, full,
                "the base does not exist, and without it the component would run with its defaults (for a "
                "kubelet, anonymous access among them); put it back, or write base: \"\" for this component "
                "if there is to be none");
}

static void take_instance(struct collect *c)
{
        const struct lkg_stack_config *config = &c->stack->config;
        LKG_CLEANUP(lkg_freep) char *full = NULL;

        if (take_file(c, LKG_LAYER_INSTANCE, LKG_PATCH_STRATEGIC, config->instance) ||
            !config->instance_required || c->vanished)
                return;
        full = lkg_stack_form(c->stack, config->instance);
        say_of_path(c, LKG_LAYER_INSTANCE, LKG_ERROR, LKG_C_NO_INSTANCE, full,
                    "the configured instance file does not exist; create it, or take it out of the "
                    "configuration");
}

static int collect_once(struct collect *c)
{
        const struct lkg_stack_config *config = &c->stack->config;
        int r = 0;

        if (*config->base)
                c->found.has_base = take_file(c, LKG_LAYER_BASE, LKG_PATCH_BASE, config->base);
        miss_base(c);
        if (*config->patches_dir)
                r = take_tree(c, LKG_LAYER_PATCH, config->patches_dir, true);
        if (r == 0 && *config->dropin_dir)
                r = take_tree(c, config->manifests ? LKG_LAYER_MANIFEST : LKG_LAYER_DROPIN,
                              config->dropin_dir, config->dropin_dir_required);
        if (r == 0 && config->manifests)
                keep_missing(c);
        if (r == 0 && *config->instance)
                take_instance(c);
        if (r == 0)
                lkg_watches_finish(&c->found.watches);
        return r;
}

/* A change during the walk causes another walk; if the changes do not stop, that is reported. */
static int collect(struct lkg_stack *stack, struct collect *c)
{
        for (int round = 0; round < 2; round++) {
                int r;

                found_deinit(&c->found);
                *c = (struct collect){ .stack = stack };
                stack->stats.n_walks++;
                r = collect_once(c);
                if (r < 0 || !c->vanished)
                        return r;
        }
        say_of_path(c, c->role, LKG_WARNING, LKG_C_UNSTABLE, stack->config.dropin_dir,
                    "entries came and went while they were read; what was there at the time counts");
        return 0;
}

/* What was found becomes the cache. */
static void keep(struct lkg_stack *stack, struct collect *c)
{
        const struct lkg_layers *layers = &c->found.layers;

        free(stack->sorted);
        stack->sorted = lkg_must(calloc(layers->n + 1, sizeof(struct lkg_layer *)));
        if (layers->n)
                memcpy(stack->sorted, layers->items, layers->n * sizeof(*stack->sorted));
        qsort(stack->sorted, layers->n, sizeof(*stack->sorted), compare_paths);
        found_deinit(&stack->found);
        stack->found = c->found;
        c->found = (struct lkg_found){ 0 };
}

static int look_at_everything(struct lkg_stack *stack)
{
        struct collect c = { 0 };
        int r;

        stack->complete = true;
        r = collect(stack, &c);
        if (r == 0)
                keep(stack, &c);
        stack->complete = stack->complete && r == 0 && !c.vanished;
        found_deinit(&c.found);
        return r;
}

static int check_source(const struct lkg_stack *stack, struct lkg_error *err)
{
        struct stat st;

        if (stack->config.source_fd < 0)
                return 0;
        if (fstat(stack->config.source_fd, &st) < 0)
                return lkg_error_set(err, -errno, NULL, "source directory %s", stack->config.source_path);
        if (st.st_nlink == 0)
                return lkg_error_set(err, -ENOENT, NULL, "source directory %s", stack->config.source_path);
        return 0;
}

int lkg_stack_look(struct lkg_stack *stack, const char *const *paths, size_t n_paths, struct lkg_error *err)
{
        int r = check_source(stack, err);

        stack->stats.n_refreshes++;
        if (r < 0) {
                stack->complete = false; /* a change meanwhile may go unreported */
                return r;
        }
        r = stack->sorted && stack->complete && paths ? lkg_stack_touch(stack, paths, n_paths) : -EAGAIN;
        if (r == -EAGAIN) {
                r = look_at_everything(stack);
                r = r < 0 ? r : 1;
        }
        if (r < 0)
                return lkg_error_set(err, r, NULL, "layers of %s", stack->config.component);
        if (r > 0)
                lkg_merges_outdated(stack);
        return 0;
}

int lkg_stack_refresh(struct lkg_stack *stack, struct lkg_candidate **ret, struct lkg_error *err)
{
        int r = lkg_stack_look(stack, NULL, 0, err);

        return r < 0 ? r : lkg_stack_over(stack, NULL, ret, err);
}
