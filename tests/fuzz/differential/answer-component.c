/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a component comes to: the layers of a request are written into a directory in memory, read by a stack
 * and judged, as the tool does it for `render --effective`. The reply has the effective document (`out`) and the
 * one that is served (`served`); `@DIR@` stands for the directory in both directions, in `served` with a slash
 * before it, so that it stays an absolute path for whoever reads it next.
 */
#include "answer.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include <lkg/duration.h>
#include <lkg/schema.h>
#include <lkg/stack.h>

#include "core/schema/values/quantity.h"

#define MARK "@DIR@"

/* One case on disk. */
struct place {
        char dir[32];
        char base[64], dropins[64];
        bool has_base, has_dropins;
};

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

static void write_file(const char *path, const char *text, size_t size)
{
        FILE *file = fopen(path, "we");

        if (!file || fwrite(text, 1, size, file) != size || fclose(file) != 0)
                answer_die(path);
}

/* The directories on the way to @path, below @from bytes of it. */
static void make_parents(char *path, size_t from)
{
        for (char *slash = strchr(path + from + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(path, 0700) < 0 && errno != EEXIST)
                        answer_die(path);
                *slash = '/';
        }
}

static void write_dropin(const struct place *place, const struct lkg_value *dropin)
{
        LKG_CLEANUP(lkg_freep) char *path = NULL;
        const struct lkg_value *text = lkg_map_get(dropin, "text");
        const char *name = lkg_map_get_string(dropin, "path"), *data;
        size_t size = 0;

        if (!name || !text || lkg_value_type(text) != LKG_STRING)
                answer_die("a drop-in without path and text");
        if (asprintf(&path, "%s/%s", place->dropins, name) < 0)
                answer_die("no memory");
        make_parents(path, strlen(place->dropins));
        data = lkg_value_text(text, &size);
        write_file(path, data, size);
}

static void lay_out(const struct lkg_value *request, struct place *place)
{
        const struct lkg_value *base = lkg_map_get(request, "base"),
                               *dropins = lkg_map_get(request, "dropins");
        size_t size = 0;

        *place = (struct place){ .dir = "/dev/shm/answer-XXXXXX" };
        if (!mkdtemp(place->dir))
                answer_die("no directory in /dev/shm");
        (void)snprintf(place->base, sizeof(place->base), "%s/kubelet.yaml", place->dir);
        (void)snprintf(place->dropins, sizeof(place->dropins), "%s/kubelet.conf.d", place->dir);
        place->has_base = base && lkg_value_type(base) == LKG_STRING;
        if (place->has_base) {
                const char *text = lkg_value_text(base, &size);

                write_file(place->base, text, size);
        }
        place->has_dropins = dropins && lkg_value_type(dropins) == LKG_LIST;
        if (place->has_dropins && mkdir(place->dropins, 0700) < 0)
                answer_die(place->dropins);
        for (size_t i = 0; place->has_dropins && i < lkg_value_size(dropins); i++)
                write_dropin(place, lkg_list_get(dropins, i));
}

/* ---- words ---- */

/* @text with each @from replaced; heap. */
static char *replaced(const char *text, const char *from, const char *to)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        const char *hit;
        char *ret;

        for (; (hit = strstr(text, from)); text = hit + strlen(from)) {
                lkg_buf_append(&buf, text, (size_t)(hit - text));
                lkg_buf_puts(&buf, to);
        }
        lkg_buf_puts(&buf, text);
        lkg_buf_putc(&buf, '\0');
        if (lkg_buf_failed(&buf))
                answer_die("no memory");
        ret = lkg_buf_steal(&buf, NULL);
        return ret;
}

/* Heap; @ret_n words, each heap. */
static char **command_line(const struct lkg_value *request, const char *dir, size_t *ret_n)
{
        const struct lkg_value *args = lkg_map_get(request, "args");
        size_t n = args && lkg_value_type(args) == LKG_LIST ? lkg_value_size(args) : 0;
        char **words = calloc(n + 1, sizeof(*words));

        if (!words)
                answer_die("no memory");
        for (size_t i = 0; i < n; i++) {
                const struct lkg_value *word = lkg_list_get(args, i);
                bool text = lkg_value_type(word) == LKG_STRING;

                words[i] = replaced(text ? lkg_value_text(word, NULL) : "", MARK, dir);
        }
        *ret_n = n;
        return words;
}

static void put_document(const struct answer *a, const char *key, const struct lkg_value *doc,
                         const char *dir, const char *mark)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;

        lkg_render_json_compact(doc, &buf);
        lkg_buf_putc(&buf, '\0');
        if (lkg_buf_failed(&buf))
                answer_die("no memory");
        text = replaced(buf.data, dir, mark);
        lkg_buf_printf(a->out, ",\"%s\":", key);
        lkg_buf_puts(a->out, text);
}

/* ---- the judgement ---- */

static unsigned cgroup_of(const struct lkg_value *request)
{
        const struct lkg_value *cgroup = lkg_map_get(request, "cgroup");
        bool one = cgroup && lkg_value_type(cgroup) == LKG_NUMBER &&
                   strcmp(lkg_value_text(cgroup, NULL), "1") == 0;

        return one ? 1 : 2;
}

static struct lkg_candidate *judged(const struct lkg_value *request, const struct place *place,
                                    const char *kind)
{
        size_t n_words = 0;
        char **words = command_line(request, place->dir, &n_words);
        struct lkg_judge_config judging = {
                .host = { .cgroup = cgroup_of(request), .stated = true },
                .flags = (const char *const *)words,
                .n_flags = n_words,
        };
        struct lkg_stack_config config = {
                .component = "component",
                .source_fd = AT_FDCWD,
                .source_path = "",
                .base = place->has_base ? place->base : "",
                .dropin_dir = place->has_dropins ? place->dropins : "",
                .dropin_dir_required = true,
                .instance = "",
                .patches_dir = "",
                .patches_target = "",
                .kind = kind,
                .api_version = "",
        };
        LKG_CLEANUP(lkg_judge_freep) struct lkg_judge *judge = NULL;
        struct lkg_candidate *candidate = NULL;
        struct lkg_stack *stack = NULL;
        struct lkg_error err = { 0 };

        if (lkg_judge_new(&judging, &judge) < 0 || lkg_stack_new(&config, &stack, &err) < 0)
                answer_die(err.message);
        lkg_stack_set_judge(stack, lkg_judge_candidate, judge);
        if (lkg_stack_refresh(stack, &candidate, &err) < 0)
                answer_die(err.message);
        lkg_stack_free(stack);
        for (size_t i = 0; i < n_words; i++)
                free(words[i]);
        free(words);
        return candidate;
}

static void answer_component(const struct answer *a, const char *kind)
{
        LKG_CLEANUP(lkg_candidate_unrefp) struct lkg_candidate *candidate = NULL;
        struct place place;
        bool valid;

        lay_out(a->request, &place);
        candidate = judged(a->request, &place, kind);
        valid = candidate->state == LKG_CANDIDATE_VALID;
        lkg_buf_printf(a->out, "\"ok\":%s,\"none\":%s", valid ? "true" : "false",
                       candidate->state == LKG_CANDIDATE_NONE ? "true" : "false");
        answer_error(a->out, "error", &candidate->report);
        if (valid && candidate->effective)
                put_document(a, "out", candidate->effective, place.dir, MARK);
        if (valid)
                put_document(a, "served", candidate->doc, place.dir, "/" MARK);
        if (nftw(place.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
                answer_die(place.dir);
}

void answer_kubelet(const struct answer *a)
{
        answer_component(a, "KubeletConfiguration");
}

void answer_kubeproxy(const struct answer *a)
{
        answer_component(a, "KubeProxyConfiguration");
}

/* ---- values ---- */

static const char *text_of(const struct lkg_value *request, size_t *ret_size)
{
        const struct lkg_value *text = lkg_map_get(request, "text");

        *ret_size = 0;
        return text && lkg_value_type(text) == LKG_STRING ? lkg_value_text(text, ret_size) : "";
}

void answer_duration(const struct answer *a)
{
        char canonical[LKG_DURATION_MAX];
        size_t size;
        const char *text = text_of(a->request, &size);
        int64_t ns = 0;

        if (lkg_duration_parse(text, size, &ns, NULL) < 0) {
                lkg_buf_puts(a->out, "\"ok\":false");
                return;
        }
        lkg_duration_format(ns, canonical);
        lkg_buf_printf(a->out, "\"ok\":true,\"out\":{\"ns\":%lld,\"canonical\":\"%s\"}", (long long)ns,
                       canonical);
}

void answer_quantity(const struct answer *a)
{
        LKG_CLEANUP(lkg_quantity_deinit) struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf canonical = LKG_BUF_INIT;
        size_t size;
        const char *text = text_of(a->request, &size);
        int r = lkg_quantity_parse(text, size, &quantity, NULL);

        if (r == -ENOMEM)
                answer_die("no memory");
        if (r < 0) {
                lkg_buf_puts(a->out, "\"ok\":false");
                return;
        }
        lkg_quantity_text(&quantity, (struct lkg_span){ text, size }, &canonical);
        lkg_buf_printf(a->out,
                       "\"ok\":true,\"out\":{\"sign\":%d,\"canonical\":", lkg_quantity_sign(&quantity));
        lkg_buf_json_string(a->out, canonical.data ? canonical.data : "", canonical.size);
        lkg_buf_putc(a->out, '}');
}
