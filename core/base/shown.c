/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign text in messages for people (names of files and fields, messages of a server): terminals interpret
 * control characters, including those above U+0080, and format characters can make a line look like another
 * one.
 */
#include <stdarg.h>

#include <lkg/text.h>

/*
 * Unicode 15: general category Cf, Default_Ignorable_Code_Point (invisible characters), the separators of
 * lines and paragraphs, and code points that are not characters.
 */
static const struct {
        uint32_t first, last;
} hidden[] = {
        { 0x0000, 0x001f },   { 0x007f, 0x009f },   { 0x00ad, 0x00ad },   { 0x034f, 0x034f },
        { 0x0600, 0x0605 },   { 0x061c, 0x061c },   { 0x06dd, 0x06dd },   { 0x070f, 0x070f },
        { 0x0890, 0x0891 },   { 0x08e2, 0x08e2 },   { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },
        { 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x202e },   { 0x2060, 0x206f },
        { 0x3164, 0x3164 },   { 0xd800, 0xdfff },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
        { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0x110bd, 0x110bd },
        { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
        { 0xe0000, 0xe0fff },
};

bool lkg_is_hidden(uint32_t c)
{
        size_t low = 0, high = LKG_ARRAY_SIZE(hidden);

        if (c < 0x80) /* almost always */
                return c < 0x20 || c == 0x7f;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c < hidden[middle].first)
                        high = middle;
                else if (c > hidden[middle].last)
                        low = middle + 1;
                else
                        return true;
        }
        return false;
}

size_t lkg_shown_length(const char *text, size_t size, uint32_t *ret_hidden)
{
        uint32_t c = UINT32_MAX;
        size_t n = lkg_utf8_decode((const unsigned char *)text, size, &c);

        if (n > 0 && !lkg_is_hidden(c))
                return n;
        if (ret_hidden)
                *ret_hidden = n > 0 ? c : UINT32_MAX;
        return 0;
}

void lkg_buf_shown(struct lkg_buf *buf, const char *text, size_t size)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_shown_length(text + i, size - i, NULL);
                if (n > 0) {
                        lkg_buf_append(buf, text + i, n);
                } else {
                        lkg_buf_printf(buf, "\\x%02x", (unsigned char)text[i]);
                        n = 1;
                }
        }
}

bool lkg_utf8_ok(const char *text, size_t size)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = text[i] >= ' ' && text[i] <= '~' ? 1 : lkg_utf8_length(text + i, size - i);
                if (n == 0)
                        return false;
        }
        return true;
}

void lkg_buf_utf8(struct lkg_buf *buf, const char *text, size_t size)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_utf8_length(text + i, size - i);
                if (n > 0) {
                        lkg_buf_append(buf, text + i, n);
                } else {
                        lkg_buf_printf(buf, "\\x%02x", (unsigned char)text[i]);
                        n = 1;
                }
        }
}

void lkg_buf_shown_lines(struct lkg_buf *buf, const char *text)
{
        for (size_t n; *text; text += n) {
                n = strcspn(text, "\n");
                lkg_buf_shown(buf, text, n);
                if (text[n] == '\n') {
                        lkg_buf_putc(buf, '\n');
                        n++;
                }
        }
}

void lkg_shown_error(const char *fmt, ...)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        LKG_CLEANUP(lkg_freep) char *text = NULL;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (n < 0) {
                text = NULL;
                return;
        }
        lkg_buf_shown_lines(&buf, text);
        if (!lkg_buf_failed(&buf) && buf.size)
                (void)fwrite(buf.data, 1, buf.size, stderr);
}

void lkg_blank_hidden(char *text, size_t size, char with)
{
        for (size_t i = 0, n; i < size; i += n) {
                n = lkg_shown_length(text + i, size - i, NULL);
                if (n > 0)
                        continue;
                n = lkg_utf8_length(text + i, size - i);
                n = n ? n : 1;
                memset(text + i, with, n);
        }
}

/* ---- look-alikes ---- */

/*
 * Characters that look like one of ASCII and are another: spaces, quotes, dashes, letters of other scripts. Names as in Unicode,
 * where it matters which one it is; of most letters, only the script.
 */

static const char *const cyrillic_extra[] = {
        "IE WITH GRAVE",
        "IO",
        "DJE",
        "GJE",
        "UKRAINIAN IE",
        "DZE",
        "BYELORUSSIAN-UKRAINIAN I",
        "YI",
        "JE",
        "LJE",
        "NJE",
        "TSHE",
        "KJE",
        "I WITH GRAVE",
        "SHORT U",
        "DZHE",
};
static const char *const cyrillic[] = {
        "A",   "BE",  "VE",  "GHE",   "DE",        "IE",   "ZHE",       "ZE", "I",  "SHORT I", "KA",
        "EL",  "EM",  "EN",  "O",     "PE",        "ER",   "ES",        "TE", "U",  "EF",      "HA",
        "TSE", "CHE", "SHA", "SHCHA", "HARD SIGN", "YERU", "SOFT SIGN", "E",  "YU", "YA",
};
static const char *const greek[] = {
        "ALPHA", "BETA",  "GAMMA",   "DELTA", "EPSILON", "ZETA",    "ETA",   "THETA", "IOTA",
        "KAPPA", "LAMDA", "MU",      "NU",    "XI",      "OMICRON", "PI",    "RHO",   "FINAL SIGMA",
        "SIGMA", "TAU",   "UPSILON", "PHI",   "CHI",     "PSI",     "OMEGA",
};

/* @letters: what the name of each ends in; NULL = all of them have this name */
static const struct range {
        uint32_t first, last;
        const char *name;
        const char *const *letters;
} ranges[] = {
        { 0x00a0, 0x00a0, "NO-BREAK SPACE", NULL },
        { 0x00ab, 0x00ab, "LEFT-POINTING DOUBLE ANGLE QUOTATION MARK", NULL },
        { 0x00ad, 0x00ad, "SOFT HYPHEN", NULL },
        { 0x00bb, 0x00bb, "RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK", NULL },
        { 0x0370, 0x0390, "GREEK LETTER", NULL },
        { 0x0391, 0x03a9, "GREEK CAPITAL LETTER", greek },
        { 0x03aa, 0x03b0, "GREEK LETTER", NULL },
        { 0x03b1, 0x03c9, "GREEK SMALL LETTER", greek },
        { 0x03ca, 0x03ff, "GREEK LETTER", NULL },
        { 0x0400, 0x040f, "CYRILLIC CAPITAL LETTER", cyrillic_extra },
        { 0x0410, 0x042f, "CYRILLIC CAPITAL LETTER", cyrillic },
        { 0x0430, 0x044f, "CYRILLIC SMALL LETTER", cyrillic },
        { 0x0450, 0x045f, "CYRILLIC SMALL LETTER", cyrillic_extra },
        { 0x0460, 0x052f, "CYRILLIC LETTER", NULL },
        { 0x0531, 0x058f, "ARMENIAN LETTER", NULL },
        { 0x0590, 0x05ff, "HEBREW LETTER", NULL },
        { 0x0600, 0x06ff, "ARABIC LETTER", NULL },
        { 0x0750, 0x077f, "ARABIC LETTER", NULL },
        { 0x0900, 0x0dff, "LETTER OF AN INDIC SCRIPT", NULL },
        { 0x0e00, 0x0e7f, "THAI LETTER", NULL },
        { 0x10a0, 0x10ff, "GEORGIAN LETTER", NULL },
        { 0x1100, 0x11ff, "HANGUL LETTER", NULL },
        { 0x13a0, 0x13ff, "CHEROKEE LETTER", NULL },
        { 0x1680, 0x1680, "OGHAM SPACE MARK", NULL },
        { 0x1c80, 0x1c8f, "CYRILLIC LETTER", NULL },
        { 0x1f00, 0x1fff, "GREEK LETTER", NULL },
        { 0x2000, 0x2000, "EN QUAD", NULL },
        { 0x2001, 0x2001, "EM QUAD", NULL },
        { 0x2002, 0x2002, "EN SPACE", NULL },
        { 0x2003, 0x2003, "EM SPACE", NULL },
        { 0x2004, 0x2004, "THREE-PER-EM SPACE", NULL },
        { 0x2005, 0x2005, "FOUR-PER-EM SPACE", NULL },
        { 0x2006, 0x2006, "SIX-PER-EM SPACE", NULL },
        { 0x2007, 0x2007, "FIGURE SPACE", NULL },
        { 0x2008, 0x2008, "PUNCTUATION SPACE", NULL },
        { 0x2009, 0x2009, "THIN SPACE", NULL },
        { 0x200a, 0x200a, "HAIR SPACE", NULL },
        { 0x200b, 0x200b, "ZERO WIDTH SPACE", NULL },
        { 0x200c, 0x200c, "ZERO WIDTH NON-JOINER", NULL },
        { 0x200d, 0x200d, "ZERO WIDTH JOINER", NULL },
        { 0x2010, 0x2010, "HYPHEN", NULL },
        { 0x2011, 0x2011, "NON-BREAKING HYPHEN", NULL },
        { 0x2012, 0x2012, "FIGURE DASH", NULL },
        { 0x2013, 0x2013, "EN DASH", NULL },
        { 0x2014, 0x2014, "EM DASH", NULL },
        { 0x2015, 0x2015, "HORIZONTAL BAR", NULL },
        { 0x2018, 0x2018, "LEFT SINGLE QUOTATION MARK", NULL },
        { 0x2019, 0x2019, "RIGHT SINGLE QUOTATION MARK", NULL },
        { 0x201a, 0x201a, "SINGLE LOW-9 QUOTATION MARK", NULL },
        { 0x201b, 0x201b, "SINGLE HIGH-REVERSED-9 QUOTATION MARK", NULL },
        { 0x201c, 0x201c, "LEFT DOUBLE QUOTATION MARK", NULL },
        { 0x201d, 0x201d, "RIGHT DOUBLE QUOTATION MARK", NULL },
        { 0x201e, 0x201e, "DOUBLE LOW-9 QUOTATION MARK", NULL },
        { 0x201f, 0x201f, "DOUBLE HIGH-REVERSED-9 QUOTATION MARK", NULL },
        { 0x202f, 0x202f, "NARROW NO-BREAK SPACE", NULL },
        { 0x2032, 0x2032, "PRIME", NULL },
        { 0x2033, 0x2033, "DOUBLE PRIME", NULL },
        { 0x2039, 0x2039, "SINGLE LEFT-POINTING ANGLE QUOTATION MARK", NULL },
        { 0x203a, 0x203a, "SINGLE RIGHT-POINTING ANGLE QUOTATION MARK", NULL },
        { 0x205f, 0x205f, "MEDIUM MATHEMATICAL SPACE", NULL },
        { 0x2060, 0x2060, "WORD JOINER", NULL },
        { 0x2212, 0x2212, "MINUS SIGN", NULL },
        { 0x2800, 0x2800, "BRAILLE PATTERN BLANK", NULL },
        { 0x2c80, 0x2cff, "COPTIC LETTER", NULL },
        { 0x2de0, 0x2dff, "CYRILLIC LETTER", NULL },
        { 0x3000, 0x3000, "IDEOGRAPHIC SPACE", NULL },
        { 0x3040, 0x309f, "HIRAGANA LETTER", NULL },
        { 0x30a0, 0x30ff, "KATAKANA LETTER", NULL },
        { 0x3130, 0x318f, "HANGUL LETTER", NULL },
        { 0x3400, 0x9fff, "CJK IDEOGRAPH", NULL },
        { 0xa4d0, 0xa4ff, "LISU LETTER", NULL },
        { 0xa640, 0xa69f, "CYRILLIC LETTER", NULL },
        { 0xab70, 0xabbf, "CHEROKEE LETTER", NULL },
        { 0xac00, 0xd7af, "HANGUL SYLLABLE", NULL },
        { 0xfeff, 0xfeff, "BYTE ORDER MARK", NULL },
        { 0xff01, 0xff5e, "FULLWIDTH FORM", NULL },
        { 0x1d400, 0x1d7ff, "MATHEMATICAL LETTER", NULL },
};

static const struct range *range_of(uint32_t c)
{
        size_t low = 0, high = c < 0x80 ? 0 : LKG_ARRAY_SIZE(ranges);

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c < ranges[middle].first)
                        high = middle;
                else if (c > ranges[middle].last)
                        low = middle + 1;
                else
                        return &ranges[middle];
        }
        return NULL;
}

bool lkg_lookalike(uint32_t c, char ret[static LKG_CHARACTER_NAME_MAX])
{
        const struct range *range = range_of(c);

        if (!range)
                return false;
        (void)snprintf(ret, LKG_CHARACTER_NAME_MAX, "%s%s%s", range->name, range->letters ? " " : "",
                       range->letters ? range->letters[c - range->first] : "");
        return true;
}

static bool ends_in(const char *name, const char *end)
{
        size_t n = strlen(name), size = strlen(end);

        return n >= size && strcmp(name + n - size, end) == 0;
}

bool lkg_lookalike_is(uint32_t c, const char *end)
{
        const struct range *range = range_of(c);

        return range && !range->letters && ends_in(range->name, end);
}
