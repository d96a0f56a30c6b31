/* SPDX-License-Identifier: Apache-2.0 */
/* Generations: rendering a candidate, masking its secrets, and describing it (meta.json). */

#include <lkg/documents.h>
#include <lkg/text.h>
#include <lkg/schema.h>

#include <lkg/store.h>

/* meta.json has digests only up to this number of layers: a thousand would cost more than the merge */
#define META_DIGESTS_MAX 64

void lkg_document_render(const struct lkg_value *doc, enum lkg_format format, const char *hint,
                         struct lkg_buf *buf)
{
        if (format == LKG_FORMAT_YAML)
                lkg_buf_printf(buf, "# %s\n", hint);
        lkg_render(doc, format, buf);
}

/* What is rendered: of static pods, their texts. */
static const struct lkg_value *rendered_of(const struct lkg_candidate *candidate)
{
        return candidate->texts ? candidate->texts : candidate->doc;
}

void lkg_candidate_judge(struct lkg_candidate *candidate, struct lkg_judge *judge, const char *hint)
{
        lkg_judge_candidate(candidate, judge);
        if (candidate->doc && candidate->report.n_severity[LKG_ERROR] == 0)
                lkg_candidate_finish(candidate, hint);
}

void lkg_candidate_finish(struct lkg_candidate *candidate, const char *hint)
{
        struct lkg_text text;
        struct lkg_error err = { 0 };
        int r;

        text = lkg_candidate_take_text(candidate, hint);
        (void)lkg_need(lkg_sha256_hex(text.data, text.size, candidate->sha256));
        candidate->text = text.data;
        candidate->text_size = text.size;
        r = lkg_readback(rendered_of(candidate), candidate->format, text.data, text.size, &err);
        if (r == LKG_READBACK_LEFT_OUT)
                lkg_report_add(&candidate->report, LKG_WARNING, 2034, NULL,
                               "not read by a second reader before it is served: %s", err.message);
        if (r != -EBADMSG)
                return;
        *candidate->sha256 = '\0';
        lkg_report_add(&candidate->report, LKG_ERROR, 2033, NULL,
                       "what would be served is read as something else by another reader: %s", err.message);
}

static struct lkg_text take(struct lkg_buf *buf)
{
        struct lkg_text text;

        (void)lkg_buf_text(buf);
        text.data = lkg_buf_steal(buf, &text.size);
        return text;
}

struct lkg_text lkg_candidate_take_text(struct lkg_candidate *candidate, const char *hint)
{
        struct lkg_text text = { .size = candidate->text_size };
        struct lkg_buf buf = LKG_BUF_INIT;

        text.data = LKG_STEAL(candidate->text);
        if (text.data)
                return text;
        lkg_document_render(rendered_of(candidate), candidate->format, hint, &buf);
        return take(&buf);
}

/* The first comment line of a YAML document, without `# `; caller frees. */
static char *hint_of(const struct lkg_text *document)
{
        const char *end = memchr(document->data, '\n', document->size);

        return lkg_must(end && strncmp(document->data, "# ", 2) == 0
                                ? strndup(document->data + 2, (size_t)(end - document->data) - 2)
                                : strdup(""));
}

/* Only a document with secrets needs a second text. */
static void render_shown(struct lkg_generation *g, const struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_mask_secrets(candidate->doc);
        LKG_CLEANUP(lkg_freep) char *hint = hint_of(&g->document);
        struct lkg_buf buf = LKG_BUF_INIT;

        if (!candidate->texts && (masked == candidate->doc || lkg_value_equal(masked, candidate->doc)))
                return;
        lkg_document_render(masked, candidate->format, hint, &buf);
        g->shown = take(&buf);
}

void lkg_origin_render(const struct lkg_value *doc, struct lkg_buf *buf)
{
        size_t n = lkg_render_origin_upto(doc, LKG_ORIGIN_BYTES_MAX, buf);

        if (n > 0)
                lkg_buf_printf(buf,
                               "# %zu more are not listed: origin has at most %u bytes; lkgfs blame with "
                               "the files lists "
                               "all\n",
                               n, LKG_ORIGIN_BYTES_MAX);
}

static void render_origin(struct lkg_generation *g, const struct lkg_candidate *candidate)
{
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_origin_render(candidate->doc, &buf);
        g->origin = take(&buf);
}

/* ---- static pods ---- */

struct lkg_value *lkg_pods_texts(const struct lkg_value *set)
{
        const char *kind = lkg_value_type(set) == LKG_MAP ? lkg_map_get_string(set, "kind") : NULL;
        struct lkg_value *texts = kind && strcmp(kind, LKG_PODS_KIND) == 0 ? lkg_map_get(set, "pods") : NULL;

        return texts && lkg_value_type(texts) == LKG_MAP ? texts : NULL;
}

struct lkg_value *lkg_pods_document(const char *layer, const char *file, const struct lkg_value *text)
{
        struct lkg_value *doc = NULL;
        struct lkg_source *source;
        const char *data;
        size_t size;

        if (lkg_value_type(text) != LKG_STRING)
                return NULL;
        source = lkg_source_new(layer, file);
        data = lkg_value_text(text, &size);
        if (lkg_decode_own(data, size, LKG_DECODE_TWICE, source, &doc) < 0)
                doc = NULL;
        lkg_source_unref(source);
        return doc;
}

struct lkg_value *lkg_pods_documents(const struct lkg_value *texts)
{
        struct lkg_value *docs = lkg_value_new_map(NULL, 0, 0);

        for (struct lkg_member m = { 0 }; lkg_value_next(texts, &m);) {
                struct lkg_value *doc = lkg_pods_document("stored", m.key.data, m.value);

                if (doc)
                        (void)lkg_map_set(docs, m.key.data, m.key.size, doc);
        }
        return docs;
}

/* Masks secrets first, so that a short one cannot be guessed from the digest. */
static void layer_digest(const struct lkg_layer_info *layer, char sha256[static LKG_SHA256_HEX])
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *masked = lkg_mask_secrets(layer->doc);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;

        lkg_render(masked, LKG_FORMAT_YAML, &buf);
        (void)lkg_need(lkg_sha256_hex(buf.data, buf.size, sha256));
}

static void put_layer(struct lkg_json *json, const struct lkg_layer_info *layer, bool with_digest)
{
        char sha256[LKG_SHA256_HEX];

        lkg_json_map(json, NULL, LKG_JSON_ROW);
        lkg_json_text(json, "role", lkg_layer_role_name(layer->role));
        lkg_json_foreign(json, "name", layer->name);
        if (with_digest) {
                layer_digest(layer, sha256);
                lkg_json_text(json, "sha256", sha256);
        }
        lkg_json_end(json);
}

static void put_layers(struct lkg_json *json, const struct lkg_candidate *candidate)
{
        bool with_digests = candidate->n_layers <= META_DIGESTS_MAX;

        lkg_json_list(json, "layers", LKG_JSON_AROUND);
        for (size_t i = 0; i < candidate->n_layers; i++)
                put_layer(json, &candidate->layers[i], with_digests && candidate->layers[i].doc);
        lkg_json_end(json);
}

static void put_source(struct lkg_json *json, const struct lkg_generation *g)
{
        char local[32];

        (void)snprintf(local, sizeof(local), "local@%.12s", g->sha256);
        lkg_json_text(json, "local", *g->source ? "" : lkg_local_word(g->has_base));
        lkg_json_foreign(json, "source", *g->source ? g->source : local);
        if (*g->source_sha256)
                lkg_json_text(json, "sourceSha256", g->source_sha256);
        if (*g->object)
                lkg_json_foreign(json, "configMap", g->object);
}

/* sha256 of a layer is that of its file below layers/: it compares the content of layers, not the text of their source files. */
static void render_meta(struct lkg_generation *g, const struct lkg_candidate *candidate)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        struct lkg_buf buf = LKG_BUF_INIT;

        lkg_json_map(&json, NULL, LKG_JSON_PRETTY);
        lkg_json_u64(&json, "schemaVersion", 1);
        lkg_json_u64(&json, "generation", g->number);
        lkg_json_text(&json, "sha256", g->sha256);
        lkg_json_time(&json, "time", g->time_ns);
        lkg_json_u64(&json, "timeNs", g->time_ns);
        put_source(&json, g);
        put_layers(&json, candidate);
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, &buf);
        g->meta = take(&buf);
}

struct lkg_generation *lkg_generation_alloc(void)
{
        struct lkg_generation *g = lkg_must(calloc(1, sizeof(*g)));

        g->refs = 1;
        return g;
}

static void set_source(struct lkg_generation *g, const struct lkg_config_source *source)
{
        if (!source || lkg_config_source_is_local(source))
                return;
        lkg_config_source_id(source, g->source);
        memcpy(g->source_sha256, source->sha256, sizeof(g->source_sha256));
        (void)snprintf(g->object, sizeof(g->object), "%s/%s", source->ns, source->name);
}

static void describe(struct lkg_generation *g, const struct lkg_candidate *candidate)
{
        render_shown(g, candidate);
        render_origin(g, candidate);
        render_meta(g, candidate);
}

void lkg_generation_describe(struct lkg_generation *g)
{
        if (g->candidate)
                describe(g, g->candidate);
        g->candidate = lkg_candidate_unref(g->candidate);
}

static struct lkg_generation *make(const struct lkg_config_source *source, bool has_base, uint64_t number,
                                   uint64_t time_ns, struct lkg_text document)
{
        struct lkg_generation *g = lkg_generation_alloc();

        g->number = number;
        g->time_ns = time_ns;
        g->has_base = has_base;
        set_source(g, source);
        g->document = document;
        (void)lkg_need(lkg_sha256_hex(document.data, document.size, g->sha256));
        return g;
}

struct lkg_generation *lkg_generation_new(struct lkg_candidate *candidate,
                                          const struct lkg_config_source *source, uint64_t number,
                                          uint64_t time_ns, struct lkg_text document)
{
        struct lkg_generation *g = make(source, candidate->has_base, number, time_ns, document);

        g->candidate = lkg_candidate_ref(candidate);
        return g;
}

int lkg_generation_describe_document(struct lkg_generation *g)
{
        struct lkg_candidate candidate = { .format = lkg_detect_format(g->document.data, g->document.size) };
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL, *pods = NULL;
        struct lkg_source *where = lkg_source_new("last-known-good", "lkg");
        int r;

        r = lkg_decode_own(g->document.data, g->document.size, 0, where, &doc);
        lkg_source_unref(where);
        if (r < 0)
                return r;
        candidate.texts = lkg_pods_texts(doc);
        if (candidate.texts)
                pods = lkg_pods_documents(candidate.texts);
        candidate.doc = pods ? pods : doc;
        describe(g, &candidate);
        return 0;
}

int lkg_generation_stored(const struct lkg_config_source *source, uint64_t number, uint64_t time_ns,
                          struct lkg_text document, struct lkg_generation **ret)
{
        LKG_CLEANUP(lkg_generation_unrefp)
        struct lkg_generation *g = make(source, /* has_base= */ true, number, time_ns, document);
        int r = lkg_generation_describe_document(g);

        if (r < 0)
                return r;
        *ret = LKG_STEAL(g);
        return 0;
}

struct lkg_generation *lkg_generation_ref(struct lkg_generation *generation)
{
        if (generation)
                generation->refs++;
        return generation;
}

struct lkg_generation *lkg_generation_unref(struct lkg_generation *generation)
{
        if (!generation || --generation->refs > 0)
                return NULL;
        free(generation->document.data);
        lkg_candidate_unref(generation->candidate);
        free(generation->shown.data);
        free(generation->origin.data);
        free(generation->meta.data);
        free(generation);
        return NULL;
}
