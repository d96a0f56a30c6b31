/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the decoder. As in apimachinery, the first byte that is not white space decides. */
#include <lkg/tree.h>

/* Return the length of the white space at @p (Unicode's, as in Go's unicode.IsSpace), or 0. */
static size_t space_length(const char *p, size_t size)
{
        uint32_t c;
        size_t n = lkg_utf8_decode((const unsigned char *)p, size, &c);

        if (n == 0)
                return 0;
        if ((c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
            (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
            c == 0x3000)
                return n;
        return 0;
}

enum lkg_format lkg_detect_format(const char *data, size_t size)
{
        size_t i = 0, n;

        while (i < size && (n = space_length(data + i, size - i)) > 0)
                i += n;
        return i < size && data[i] == '{' ? LKG_FORMAT_JSON : LKG_FORMAT_YAML;
}

/* The mistake was in the syntax: what is the text, if not a document? */
static void say_what_it_is(const char *data, size_t size, struct lkg_report *report, size_t first)
{
        static const unsigned codes[] = { LKG_C_SYNTAX, LKG_C_BYTES, LKG_C_KEY, LKG_C_ANCHOR };
        LKG_CLEANUP(lkg_freep) char *words = NULL;
        const struct lkg_finding *last;

        if (!report || report->n_findings <= first || size > LKG_DOC_BYTES_MAX)
                return;
        last = &report->findings[report->n_findings - 1];
        for (size_t i = 0; i < LKG_ARRAY_SIZE(codes) && !words; i++)
                if (last->code == codes[i])
                        words = lkg_resembles(data, size, last->line, NULL);
        lkg_report_add_words(report, report->n_findings - 1, words);
}

int lkg_decode(const char *data, size_t size, enum lkg_format format, unsigned flags,
               struct lkg_source *source, struct lkg_report *report, struct lkg_value **ret)
{
        size_t first = report ? report->n_findings : 0;
        int r = format == LKG_FORMAT_JSON ? lkg_decode_json(data, size, flags, source, report, ret)
                                          : lkg_decode_yaml(data, size, flags, source, report, ret);

        if (r == -EBADMSG)
                say_what_it_is(data, size, report, first);
        return r;
}

int lkg_decode_own(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                   struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report ignored = LKG_REPORT_INIT;

        return lkg_decode(data, size, lkg_detect_format(data, size), flags | LKG_DECODE_OWN, source,
                          &ignored, ret);
}

int lkg_decode_patch(const char *data, size_t size, unsigned flags, struct lkg_source *source,
                     struct lkg_report *report, enum lkg_format *ret_format, struct lkg_value **ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report found = LKG_REPORT_INIT;
        int r;

        r = lkg_decode_json(data, size, flags, source, &found, ret);
        if (r == -EBADMSG) {
                *ret_format = LKG_FORMAT_YAML;
                return lkg_decode(data, size, LKG_FORMAT_YAML, flags, source, report, ret);
        }
        *ret_format = LKG_FORMAT_JSON;
        lkg_report_append(report, &found);
        return r;
}
