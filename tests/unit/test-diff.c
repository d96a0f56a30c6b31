/* SPDX-License-Identifier: Apache-2.0 */
/* Unified diff: the exact text of small cases; for random ones, applying it gives the other side. */
#include "config-helpers.h"

static const char *diff(const char *a, const char *b)
{
        static struct lkg_buf buf = LKG_BUF_INIT;
        int r;

        lkg_buf_deinit(&buf);
        lkg_buf_append(&buf, "", 0);
        r = lkg_render_diff("a", a, strlen(a), "b", b, strlen(b), &buf);
        assert_int_equal(r, strcmp(a, b) != 0);
        return buf.data;
}

/* Applies a unified diff without searching: its positions must match exactly. */
static char *apply(const char *text, const char *patch)
{
        struct lkg_buf out = LKG_BUF_INIT;
        const char *from = text;
        size_t line = 1;

        lkg_buf_append(&out, "", 0);
        for (const char *p = patch; *p; p = strchr(p, '\n') + 1) {
                size_t n = (size_t)(strchr(p, '\n') - p) + 1, start, count = 1;

                if (strncmp(p, "--- ", 4) == 0 || strncmp(p, "+++ ", 4) == 0)
                        continue;
                if (*p == '@') {
                        if (sscanf(p, "@@ -%zu,%zu", &start, &count) == 2 && count == 0)
                                start++;
                        for (; line < start; line++) {
                                size_t length = (size_t)(strchr(from, '\n') - from) + 1;

                                lkg_buf_append(&out, from, length);
                                from += length;
                        }
                } else {
                        if (*p != '+') {
                                assert_memory_equal(from, p + 1, n - 1);
                                from += n - 1;
                                line++;
                        }
                        if (*p != '-')
                                lkg_buf_append(&out, p + 1, n - 1);
                }
        }
        lkg_buf_puts(&out, from);
        return lkg_buf_steal(&out, NULL);
}

static uint32_t random_state;

static uint32_t rnd(uint32_t below)
{
        random_state = random_state * 1664525u + 1013904223u;
        return (random_state >> 8) % below;
}

static void random_lines(char *text, unsigned n, unsigned alphabet)
{
        for (unsigned i = 0; i < n; i++) {
                *text++ = (char)('a' + rnd(alphabet));
                *text++ = '\n';
        }
        *text = '\0';
}

/* Length of a longest common subsequence of lines, the slow way. */
static unsigned lcs(const char *a, const char *b)
{
        unsigned n = (unsigned)strlen(a) / 2, m = (unsigned)strlen(b) / 2, table[41][41] = { 0 };

        for (unsigned i = 1; i <= n; i++)
                for (unsigned j = 1; j <= m; j++)
                        table[i][j] = a[2 * i - 2] == b[2 * j - 2]        ? table[i - 1][j - 1] + 1
                                      : table[i - 1][j] > table[i][j - 1] ? table[i - 1][j]
                                                                          : table[i][j - 1];
        return table[n][m];
}

static unsigned count(const char *patch, char sign)
{
        unsigned n = 0;

        for (const char *p = patch; *p; p = strchr(p, '\n') + 1)
                n += *p == sign && strncmp(p, "--- ", 4) != 0 && strncmp(p, "+++ ", 4) != 0;
        return n;
}

TEST(test_random)
{
        for (uint32_t seed = 1; seed <= 20000; seed++) {
                char a[100], b[100], *result;
                const char *patch;

                random_state = seed;
                random_lines(a, rnd(40), 1 + rnd(5));
                random_lines(b, rnd(40), 1 + rnd(5));
                patch = diff(a, b);
                result = apply(a, patch);
                assert_string_equal(result, b);
                free(result);
                /* not only correct but shortest */
                assert_int_equal(count(patch, '-'), strlen(a) / 2 - lcs(a, b));
                assert_int_equal(count(patch, '+'), strlen(b) / 2 - lcs(a, b));
        }
}

/* Two texts of 20,000 lines with nothing in common: not minimal, but correct and fast. */
TEST(test_large)
{
        struct lkg_buf a = LKG_BUF_INIT, b = LKG_BUF_INIT;
        char *result;

        for (unsigned i = 0; i < 20000; i++) {
                lkg_buf_printf(&a, "%u\n", i * 7 % 20011);
                lkg_buf_printf(&b, "%u\n", i * 13 % 20011);
        }
        result = apply(a.data, diff(a.data, b.data));
        assert_string_equal(result, b.data);
        free(result);
        lkg_buf_deinit(&a);
        lkg_buf_deinit(&b);
}
