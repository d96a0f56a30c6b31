/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are a program that builds JSON: the result is an error, or a text that our decoder accepts, that
 * contains nothing unexpected, and that is the same when it is built again. A flat object is read back
 * unchanged.
 *
 * Each byte is a step: the lower four bits select it, the upper four are the length of its text, which
 * follows.
 */
#include <lkg/documents.h>
#include <lkg/text.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct program {
        struct lkg_json json;
        unsigned depth;
        bool in_map[LKG_JSON_DEPTH_MAX + 1], flat;
        size_t n;
};

static void put_text(struct program *p, const char *name, uint8_t step, const char *text)
{
        uint64_t n = 0;

        memcpy(&n, text, strlen(text) < 8 ? strlen(text) : 8);
        switch (step) {
        case 0:
                lkg_json_text(&p->json, name, text);
                break;
        case 1:
                lkg_json_foreign(&p->json, name, text);
                break;
        case 2:
                lkg_json_u64(&p->json, name, n);
                break;
        case 3:
                lkg_json_i64(&p->json, name, -(int64_t)(n >> 1) - 1);
                break;
        case 4:
                lkg_json_null(&p->json, name);
                break;
        case 5:
                lkg_json_bool(&p->json, name, n & 1);
                break;
        default:
                lkg_json_time_ns(&p->json, name, n >> 1);
                break;
        }
}

static void begin(struct program *p, const char *name, uint8_t step)
{
        static const enum lkg_json_layout layouts[] = { LKG_JSON_AROUND, LKG_JSON_TIGHT, LKG_JSON_ROW,
                                                        LKG_JSON_LINES };

        if (p->depth > LKG_JSON_DEPTH_MAX)
                return;
        p->flat = false;
        p->in_map[p->depth++] = step & 4;
        if (step & 4)
                lkg_json_map(&p->json, name, layouts[step & 1]);
        else
                lkg_json_list(&p->json, name, layouts[step & 3]);
}

static void step(struct program *p, uint8_t step, const char *text)
{
        char name[16];
        bool in_map = p->in_map[p->depth - 1];

        (void)snprintf(name, sizeof(name), "m%zu", p->n++);
        if (step < 7) {
                put_text(p, in_map ? name : NULL, step, text);
        } else if (step < 15) {
                begin(p, in_map ? name : NULL, (uint8_t)(step - 7));
        } else if (p->depth > 1) {
                p->depth--;
                lkg_json_end(&p->json);
        }
}

static int run(const uint8_t *data, size_t size, struct lkg_buf *buf, bool *ret_flat)
{
        struct program p = { .json = LKG_JSON_INIT, .depth = 1, .in_map = { true }, .flat = true };
        int r;

        lkg_json_map(&p.json, NULL, size % 2 ? LKG_JSON_TIGHT : LKG_JSON_PRETTY);
        for (size_t i = 0; i < size;) {
                char text[17] = "";
                size_t n = data[i] >> 4;

                n = n < size - i - 1 ? n : size - i - 1;
                memcpy(text, data + i + 1, n);
                step(&p, data[i] & 15, text);
                i += 1 + n;
        }
        for (; p.depth > 0; p.depth--)
                lkg_json_end(&p.json);
        *ret_flat = p.flat;
        r = lkg_json_write(&p.json, buf);
        lkg_json_deinit(&p.json);
        return r;
}

static const struct lkg_json_change no_change = { NULL };

static void check_flat(const struct lkg_buf *text)
{
        struct lkg_json json = LKG_JSON_INIT;
        struct lkg_buf again = LKG_BUF_INIT;
        struct json_object *object = NULL;

        if (text->size > LKG_JSON_FLAT_MAX)
                return;
        FUZZ_CHECK(lkg_json_read_flat(text->data, text->size, &object) == 0);
        lkg_json_map(&json, NULL,
                     text->size > 1 && text->data[1] == '\n' ? LKG_JSON_PRETTY : LKG_JSON_TIGHT);
        lkg_json_copy_flat(&json, object, &no_change);
        lkg_json_end(&json);
        FUZZ_CHECK(lkg_json_write(&json, &again) == 0 && strcmp(again.data, text->data) == 0);
        lkg_buf_deinit(&again);
        lkg_json_deinit(&json);
        lkg_json_flat_freep(&object);
}

/* Any bytes: flat, or refused; an accepted text is written as a flat one. */
static void check_any(const uint8_t *data, size_t size)
{
        struct lkg_json json = LKG_JSON_INIT;
        struct lkg_buf text = LKG_BUF_INIT;
        struct json_object *object = NULL;

        if (lkg_json_read_flat((const char *)data, size, &object) == 0) {
                lkg_json_map(&json, NULL, LKG_JSON_TIGHT);
                lkg_json_copy_flat(&json, object, &no_change);
                lkg_json_end(&json);
                FUZZ_CHECK(lkg_json_write(&json, &text) == 0);
                check_flat(&text);
        }
        lkg_buf_deinit(&text);
        lkg_json_deinit(&json);
        lkg_json_flat_freep(&object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_buf text = LKG_BUF_INIT, again = LKG_BUF_INIT;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *value = NULL;
        bool flat;
        int r = run(data, size, &text, &flat);

        FUZZ_CHECK(r == 0 || r == -EILSEQ || r == -E2BIG);
        FUZZ_CHECK(run(data, size, &again, &flat) == r);
        if (r == 0) {
                FUZZ_CHECK(strcmp(text.data, again.data) == 0);
                for (size_t i = 0, n; i < text.size; i += n) {
                        n = text.data[i] == '\n' ? 1 : lkg_shown_length(text.data + i, text.size - i, NULL);
                        FUZZ_CHECK(n > 0);
                }
                FUZZ_CHECK(lkg_decode_json(text.data, text.size, LKG_DECODE_STRICT, NULL, &report, &value) ==
                           0);
                if (flat)
                        check_flat(&text);
        }
        check_any(data, size);
        lkg_value_unref(value);
        lkg_report_deinit(&report);
        lkg_buf_deinit(&text);
        lkg_buf_deinit(&again);
        return 0;
}
