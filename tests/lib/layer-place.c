/* SPDX-License-Identifier: Apache-2.0 */
#include "layer-place.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <lkg/documents.h>

#include "core/layers/layers.h"
#include <lkg/component.h>
#include <lkg/store.h>

#define CHECK(condition)                                                                        \
        do {                                                                                    \
                if (!(condition)) {                                                             \
                        (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, \
                                      #condition);                                              \
                        abort();                                                                \
                }                                                                               \
        } while (0)

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

/* Report a change as the engine's watch would: by the path that names the layer. */
static void touch(struct place *p, const char *name)
{
        char *path;

        if (p->n_touched == PLACE_TOUCHED_MAX) {
                p->everything = true;
                return;
        }
        CHECK(asprintf(&path, "%s/%s", p->dir, name) >= 0);
        p->touched[p->n_touched++] = path;
}

static void forget_touched(struct place *p)
{
        while (p->n_touched > 0)
                free(p->touched[--p->n_touched]);
        p->everything = false;
}

static void make_parents(struct place *p, const char *name)
{
        char path[512];

        CHECK(strlen(name) < sizeof(path));
        (void)stpcpy(path, name);
        for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                struct stat st;

                *slash = '\0';
                if (fstatat(p->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
                        place_remove(p, path);
                if (mkdirat(p->fd, path, 0755) == 0)
                        touch(p, path);
                else
                        CHECK(errno == EEXIST);
                *slash = '/';
        }
}

/* Remove directories that have become empty, except those of the component itself. */
static void remove_parents(struct place *p, const char *name)
{
        char path[512];

        (void)stpcpy(path, name);
        for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
                *slash = '\0';
                if (!strchr(path, '/') || unlinkat(p->fd, path, AT_REMOVEDIR) < 0)
                        return;
                touch(p, path);
        }
}

static bool holds(const struct place *p, const char *name, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_closep) int fd = openat(p->fd, name, O_RDONLY | O_CLOEXEC);
        LKG_CLEANUP(lkg_freep) char *was = NULL;
        size_t n = 0;

        return fd >= 0 && lkg_read_file(fd, SIZE_MAX / 4, &was, &n, NULL) == 0 && n == size &&
               (size == 0 || memcmp(was, text, size) == 0);
}

void place_put(struct place *p, const char *name, const char *text, size_t size)
{
        LKG_CLEANUP(lkg_closep) int fd = -EBADF;

        if (holds(p, name, text, size))
                return;
        make_parents(p, name);
        fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EISDIR) {
                place_rmdir(p, name);
                fd = openat(p->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        }
        CHECK(fd >= 0 && (size == 0 || lkg_write_all(fd, text, size) == 0));
        touch(p, name);
}

void place_remove(struct place *p, const char *name)
{
        if (unlinkat(p->fd, name, 0) < 0) {
                CHECK(errno == ENOENT || errno == ENOTDIR || errno == EISDIR);
                return;
        }
        touch(p, name);
        remove_parents(p, name);
}

void place_mkdir(struct place *p, const char *name)
{
        if (mkdirat(p->fd, name, 0755) == 0)
                touch(p, name);
        else
                CHECK(errno == EEXIST);
}

void place_rmdir(struct place *p, const char *name)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;

        CHECK(asprintf(&path, "%s/%s", p->dir, name) >= 0);
        if (access(path, F_OK) < 0)
                return;
        CHECK(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
        touch(p, name);
}

/* ---- the ConfigMap ---- */

bool place_set_remote(struct place *p, const char *text, size_t size)
{
        const struct lkg_configmap_options options = { .max_bytes = LKG_DOC_BYTES_MAX, .from_file = true };
        const struct lkg_trial_settings settings = { 0 };
        const struct lkg_reference reference = {
                .type = LKG_REFERENCE_CONFIGMAP, .ns = "kube-system", .name = "config", .key = "kubelet"
        };
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf object = LKG_BUF_INIT;
        struct lkg_remote_base *base = NULL;
        struct lkg_config_source source;
        struct lkg_configmap configmap;

        if (text) {
                lkg_buf_puts(&object,
                             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":"
                             "\"kube-system\",\"name\":\"config\"},\"data\":{\"kubelet\":");
                lkg_buf_json_string(&object, text, size);
                lkg_buf_puts(&object, "}}");
                CHECK(!lkg_buf_failed(&object));
                if (lkg_configmap_parse(object.data, object.size, &options, &configmap, NULL) < 0)
                        return false;
                CHECK(lkg_configmap_resolve(&configmap, &reference, &source, NULL) == 0);
                base = lkg_remote_base_new(&configmap, &source, &settings, &report);
                if (!base->text) {
                        lkg_remote_base_free(base);
                        return false;
                }
        }
        lkg_remote_base_free(p->remote);
        p->remote = base;
        p->everything = true;
        return true;
}

/* ---- begin and end ---- */

/* Load the configuration as from a file, so that a component gets the product's defaults. */
static void load_config(struct place *p)
{
        const struct place_options *o = &p->options;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;

        lkg_buf_printf(&text,
                       "apiVersion: config.lkgfs.io/v1alpha1\nkind: LkgfsConfiguration\ncomponents:\n"
                       "- {name: %s, file: served.yaml, patchesDir: \"%s\"",
                       o->component, o->patches);
        if (o->kind)
                lkg_buf_printf(&text, ", kind: %s", o->kind);
        if (o->dropins)
                lkg_buf_printf(&text, ", dropInDir: \"%s\"", o->dropins);
        lkg_buf_puts(&text, "}\n");
        CHECK(!lkg_buf_failed(&text));
        CHECK(lkg_decode(text.data, text.size, LKG_FORMAT_YAML, LKG_DECODE_STRICT, NULL, &report, &doc) ==
              0);
        if (lkg_config_decode(doc, "/etc/lkgfs", &p->config, &report) < 0) {
                LKG_CLEANUP(lkg_freep) char *findings = lkg_report_format(&report, NULL);

                (void)fprintf(stderr, "%s", findings);
                CHECK(!"a configuration");
        }
}

void place_open(struct place *p, const struct place_options *options)
{
        *p = (struct place){ .options = *options, .everything = true };
        (void)snprintf(p->dir, sizeof(p->dir), "%s/lkgfs-place-XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        CHECK(mkdtemp(p->dir));
        p->fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(p->fd >= 0);
        load_config(p);
        p->stack_config = lkg_component_stack_config(p->config, &p->config->components[0], p->fd, p->dir);
        p->stack_config.base = p->options.base;
        p->stack_config.base_is_view_name = false;
        if (p->options.instance)
                p->stack_config.instance = p->options.instance;
        p->stack_config.dropin_dir_required = false;
        p->judge = lkg_judge_new(&p->options.judge);
        p->stack = lkg_stack_new(&p->stack_config);
        lkg_stack_set_judge(p->stack, lkg_judge_candidate, p->judge);
        if (*options->patches)
                place_mkdir(p, options->patches);
}

void place_close(struct place *p)
{
        forget_touched(p);
        lkg_candidate_unref(p->candidate);
        lkg_stack_free(p->stack);
        lkg_judge_free(p->judge);
        lkg_remote_base_free(p->remote);
        lkg_config_free(p->config);
        lkg_close(p->fd);
        CHECK(nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
        *p = (struct place){ .fd = -EBADF };
}

void place_judge_by(struct place *p, const struct lkg_judge_config *judge)
{
        p->options.judge = *judge;
        lkg_judge_configure(p->judge, judge);
        lkg_stack_rejudge(p->stack);
}

/* ---- looking ---- */

static void check_look(int r, const struct lkg_error *err)
{
        if (r < 0)
                (void)fprintf(stderr, "%s\n", err->message);
        CHECK(r == 0);
}

/* As a component does it: over the base file first, then over what replaces it. */
static struct lkg_candidate *over_base(const struct place *p, struct lkg_stack *stack)
{
        const struct lkg_stack_remote remote =
                p->remote ? lkg_remote_base_stack(p->remote) : (struct lkg_stack_remote){ 0 };
        struct lkg_candidate *local = NULL, *candidate = NULL;
        struct lkg_error err = { 0 };

        check_look(lkg_stack_over(stack, NULL, &local, &err), &err);
        check_look(lkg_stack_over(stack, &remote, &candidate, &err), &err);
        lkg_candidate_unref(local);
        return candidate;
}

struct lkg_candidate *place_look(struct place *p)
{
        struct lkg_candidate *candidate;
        struct lkg_error err = { 0 };

        check_look(lkg_stack_look(p->stack, p->everything ? NULL : (const char *const *)p->touched,
                                  p->n_touched, &err),
                   &err);
        candidate = over_base(p, p->stack);
        p->n_looks++;
        forget_touched(p);
        lkg_candidate_unref(p->candidate);
        p->candidate = candidate;
        return candidate;
}

struct lkg_candidate *place_fresh(struct place *p)
{
        struct lkg_candidate *candidate;
        struct lkg_judge *judge = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };

        judge = lkg_judge_new(&p->options.judge);
        stack = lkg_stack_new(&p->stack_config);
        lkg_stack_set_judge(stack, lkg_judge_candidate, judge);
        check_look(lkg_stack_look(stack, NULL, 0, &err), &err);
        candidate = over_base(p, stack);
        lkg_stack_free(stack);
        lkg_judge_free(judge);
        return candidate;
}

/* ---- comparing ---- */

static void compare_values(const char *what, const struct lkg_value *a, const struct lkg_value *b,
                           struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf one = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf other = LKG_BUF_INIT;

        if (!a != !b) {
                lkg_buf_printf(ret, "%s: only the %s has one\n", what, a ? "first" : "second");
                return;
        }
        if (!a)
                return;
        lkg_render_origin(a, &one);
        lkg_render_origin(b, &other);
        if (!lkg_value_equal(a, b) || one.size != other.size ||
            (one.size > 0 && memcmp(one.data, other.data, one.size) != 0))
                lkg_buf_printf(ret, "%s differs:\n%.*s---\n%.*s", what, (int)one.size, one.data,
                               (int)other.size, other.data);
}

static void compare_merged(const struct lkg_candidate *a, const struct lkg_candidate *b, size_t i,
                           struct lkg_buf *ret)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *one = lkg_candidate_merged(a, i);
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *other = lkg_candidate_merged(b, i);

        compare_values("merge", one, other, ret);
}

static void compare_layers(const struct lkg_candidate *a, const struct lkg_candidate *b, struct lkg_buf *ret)
{
        for (size_t i = 0; i < a->n_layers && i < b->n_layers; i++) {
                if (strcmp(a->layers[i].file, b->layers[i].file) != 0 ||
                    a->layers[i].role != b->layers[i].role)
                        lkg_buf_printf(ret, "layer %zu is another one\n", i);
                compare_values("layer", a->layers[i].doc, b->layers[i].doc, ret);
                compare_merged(a, b, i, ret);
        }
}

void place_compare(const struct lkg_candidate *a, const struct lkg_candidate *b, struct lkg_buf *ret)
{
        if (a->state != b->state)
                lkg_buf_printf(ret, "state: %d, %d\n", a->state, b->state);
        if (a->format != b->format || a->has_base != b->has_base || a->has_dropin_dir != b->has_dropin_dir ||
            a->n_layers != b->n_layers || a->schema != b->schema)
                lkg_buf_puts(ret, "format, base, directory, number of layers or kind differ\n");
        compare_layers(a, b, ret);
        compare_values("document", a->doc, b->doc, ret);
        compare_values("effective", a->effective, b->effective, ret);
        if (!lkg_report_equal(&a->report, &b->report)) {
                LKG_CLEANUP(lkg_freep) char *one = lkg_report_format(&a->report, NULL);
                LKG_CLEANUP(lkg_freep) char *other = lkg_report_format(&b->report, NULL);

                lkg_buf_printf(ret, "findings differ:\n%s---\n%s", one, other);
        }
}

/* ---- what is rendered ---- */

void place_render(const struct lkg_candidate *candidate, struct lkg_buf *ret)
{
        lkg_document_render(candidate->doc, candidate->format, "Generated by lkgfs", ret);
        CHECK(!lkg_buf_failed(ret));
}

static void render_masked(const struct lkg_value *value, enum lkg_format format)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = value ? lkg_mask_secrets(value) : NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;

        if (!value)
                return;
        CHECK(masked);
        lkg_render(masked, format, &text);
        CHECK(!lkg_buf_failed(&text));
}

/* Of a valid candidate: a generation, and what the engine does with an active one. */
static void publish_generation(struct place *p, struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_generation_unrefp) struct lkg_generation *g = NULL;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf comments = LKG_BUF_INIT;
        struct lkg_buf document = LKG_BUF_INIT;
        struct lkg_component component = { .config = &p->config->components[0], .judges = { p->judge } };
        struct lkg_value *effective = NULL;
        struct lkg_text text;

        place_render(candidate, &document);
        text.data = lkg_buf_steal(&document, &text.size);
        g = lkg_generation_new(candidate, p->remote ? &p->remote->source : NULL, ++p->number, 1, text);
        component.active = g;
        component.candidate = p->candidate;
        component.names.hint = (char *)"hint";
        effective = lkg_component_effective(&component); /* judged again from its own text */
        if (effective)
                lkg_effective_render(effective, &comments);
        CHECK(!lkg_buf_failed(&comments));
        lkg_value_unref(effective);
}

void place_publish(struct place *p, struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_freep) char *findings = lkg_report_format(&candidate->report, NULL);

        CHECK(findings);
        for (size_t i = 0; i < candidate->n_layers; i++) {
                render_masked(candidate->layers[i].doc, LKG_FORMAT_YAML);
                LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = lkg_candidate_merged(candidate, i);

                render_masked(merged, LKG_FORMAT_YAML);
        }
        if (candidate->state != LKG_CANDIDATE_VALID)
                return;
        render_masked(candidate->doc, LKG_FORMAT_JSON);
        render_masked(candidate->effective, LKG_FORMAT_YAML);
        publish_generation(p, candidate);
}
