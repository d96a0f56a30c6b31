/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers JSON requests with JSON replies, one per line: what our libraries make of a document. The
 * differential fuzzer (differential.py) asks this program and the oracle the same questions. A table of
 * operations; see README.md for the protocol.
 *
 * Not installed. One thread, one process for any number of requests; running out of memory ends it.
 */
#include "answer.h"

#include <lkg/documents.h>
#include <lkg/schema.h>

#include "core/schema/tree.h"

struct op {
        const char *name;
        unsigned flags; /* for decoding the request */
        void (*run)(const struct answer *a);
};

void answer_die(const char *why)
{
        (void)fprintf(stderr, "answer: %s\n", why);
        exit(2);
}

void answer_error(struct lkg_buf *out, const char *key, const struct lkg_report *report)
{
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        size_t size = 0;

        text = lkg_report_format(report, &size);
        if (!text)
                answer_die("no memory");
        lkg_buf_printf(out, ",\"%s\":", key);
        lkg_buf_json_string(out, text, size);
}

/* `"ok":true,"out":...` or `"ok":false,"error":...`. @r: what the library returned. */
static void put_result(struct lkg_buf *out, int r, const struct lkg_value *value,
                       const struct lkg_report *report)
{
        if (r < 0 && r != -EBADMSG)
                answer_die(strerror(-r));
        lkg_buf_puts(out, r == 0 ? "\"ok\":true" : "\"ok\":false");
        if (r < 0) {
                answer_error(out, "error", report);
                return;
        }
        lkg_buf_puts(out, ",\"out\":");
        lkg_render_json_compact(value, out);
}

/* ---- yaml: text -> out, strictOK ---- */

static int decode(const char *text, size_t size, enum lkg_format format, unsigned flags,
                  struct lkg_report *report, struct lkg_value **ret)
{
        struct lkg_source *source = lkg_source_new("request", "request");
        int r = source ? lkg_decode(text, size, format, flags, source, report, ret) : -ENOMEM;

        lkg_source_unref(source);
        return r;
}

static void op_yaml(const struct answer *a)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report lax = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report strict = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *ignored = NULL;
        const struct lkg_value *member = lkg_map_get(a->request, "text");
        const char *text = "";
        size_t size = 0;
        int r;

        if (member && lkg_value_type(member) == LKG_STRING)
                text = lkg_value_text(member, &size);
        r = decode(text, size, LKG_FORMAT_YAML, 0, &lax, &value);
        put_result(a->out, r, value, &lax);
        r = decode(text, size, LKG_FORMAT_YAML, LKG_DECODE_STRICT, &strict, &ignored);
        lkg_buf_puts(a->out, r == 0 ? ",\"strictOK\":true" : ",\"strictOK\":false");
        if (r < 0)
                answer_error(a->out, "strictError", &strict);
}

/* ---- json, jsonstrict: text -> ok, as the value of a member, which is how the oracle can be asked ---- */

static void answer_json(const struct answer *a, unsigned flags)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *value = NULL;
        const struct lkg_value *member = lkg_map_get(a->request, "text");
        const char *data = "";
        size_t size = 0;
        int r;

        if (member && lkg_value_type(member) == LKG_STRING)
                data = lkg_value_text(member, &size);
        lkg_buf_puts(&text, "{\"unknown\":");
        lkg_buf_append(&text, data, size);
        lkg_buf_putc(&text, '}');
        if (lkg_buf_failed(&text))
                answer_die("no memory");
        r = decode(text.data, text.size, LKG_FORMAT_JSON, flags, &report, &value);
        put_result(a->out, r, value, &report);
}

static void op_json(const struct answer *a)
{
        answer_json(a, 0);
}

static void op_jsonstrict(const struct answer *a)
{
        answer_json(a, LKG_DECODE_STRICT | LKG_DECODE_UNTYPED);
}

/* ---- jmp: target, patch -> out ---- */

static void op_jmp(const struct answer *a)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        const struct lkg_value *target = lkg_map_get(a->request, "target");
        const struct lkg_value *patch = lkg_map_get(a->request, "patch");
        int r = target && patch ? lkg_merge_json_patch(target, patch, &report, &merged) : -EBADMSG;

        put_result(a->out, r, merged, &report);
}

/* ---- smp: kind, target, patch -> out ---- */

static void op_smp(const struct answer *a)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *merged = NULL;
        const struct lkg_value *target = lkg_map_get(a->request, "target");
        const struct lkg_value *patch = lkg_map_get(a->request, "patch");
        const char *kind = lkg_map_get_string(a->request, "kind");
        const struct lkg_schema *schema = NULL;
        struct lkg_merge_type type;
        int r = -EBADMSG;

        if (kind && target && patch && lkg_schema_get(kind, NULL, 0, &schema) == 0) {
                type = lkg_schema_merge_type(schema);
                r = lkg_merge_strategic_typed(target, patch, &type, &report, &merged);
        }
        put_result(a->out, r, merged, &report);
}

/* ---- the line protocol ---- */

static const struct op ops[] = {
        { "yaml", 0, op_yaml },
        { "json", 0, op_json },
        { "jsonstrict", 0, op_jsonstrict },
        { "jmp", 0, op_jmp },
        { "smp", LKG_DECODE_UNTYPED, op_smp },
        { "kubelet", 0, answer_kubelet },
        { "served", 0, answer_kubelet },
        { "kubeproxy", 0, answer_kubeproxy },
        { "other", 0, answer_other },
        { "pod", 0, answer_pod },
        { "duration", 0, answer_duration },
        { "quantity", 0, answer_quantity },
};

static const struct op *find_op(const struct lkg_value *request)
{
        const char *name = lkg_value_type(request) == LKG_MAP ? lkg_map_get_string(request, "op") : NULL;

        for (size_t i = 0; name && i < LKG_ARRAY_SIZE(ops); i++)
                if (strcmp(ops[i].name, name) == 0)
                        return &ops[i];
        return NULL;
}

static void answer_line(const char *line, size_t size, struct lkg_buf *out)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *request = NULL;
        const struct op *op = NULL;

        if (decode(line, size, LKG_FORMAT_JSON, 0, &report, &request) == 0)
                op = find_op(request);
        if (op && op->flags) {
                request = lkg_value_unref(request);
                if (decode(line, size, LKG_FORMAT_JSON, op->flags, &report, &request) < 0)
                        op = NULL; /* a number that is too large for upstream as well */
        }
        lkg_buf_putc(out, '{');
        if (op)
                op->run(&(struct answer){ out, request });
        else
                lkg_buf_puts(out, "\"ok\":false,\"error\":\"not understood\"");
        lkg_buf_puts(out, "}\n");
        if (lkg_buf_failed(out))
                answer_die("no memory");
}

int main(void)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf out = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *line = NULL;
        size_t allocated = 0;
        ssize_t size;

        while ((size = getline(&line, &allocated, stdin)) > 0) {
                lkg_buf_reset(&out);
                answer_line(line, (size_t)size, &out);
                if (fwrite(out.data, 1, out.size, stdout) != out.size || fflush(stdout) != 0)
                        answer_die("cannot write");
        }
        answer_close();
        return 0;
}
