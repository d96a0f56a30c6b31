/* SPDX-License-Identifier: Apache-2.0 */
#include <lkg/text.h>

#include <ctype.h>

#define NAME_BYTES_MAX 64

void lkg_nearest_init(struct lkg_nearest *nearest, const char *wrong)
{
        size_t n = strlen(wrong), limit = n / 3 < 2 ? 1 : 2;

        *nearest = (struct lkg_nearest){ .wrong = wrong, .distance = (unsigned)limit + 1 };
}

static bool same(char a, char b)
{
        return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Levenshtein distance with swapped neighbours ("stauts"), three rows; ignores case. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
        unsigned rows[3][NAME_BYTES_MAX + 1];

        for (unsigned j = 0; j <= m; j++)
                rows[0][j] = j;
        for (unsigned i = 1; i <= n; i++) {
                unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];

                row[0] = i;
                for (unsigned j = 1; j <= m; j++) {
                        unsigned best = above[j - 1] + !same(a[i - 1], b[j - 1]);

                        if (above[j] + 1 < best)
                                best = above[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) &&
                            twice[j - 2] + 1 < best)
                                best = twice[j - 2] + 1;
                        row[j] = best;
                }
        }
        return rows[n % 3][m];
}

void lkg_nearest_offer(struct lkg_nearest *nearest, const char *name)
{
        size_t n = strlen(nearest->wrong), m = strlen(name);
        unsigned d;

        if (n > NAME_BYTES_MAX || m > NAME_BYTES_MAX || (n > m ? n - m : m - n) >= nearest->distance)
                return;
        d = distance(nearest->wrong, n, name, m);
        if (d < nearest->distance) {
                nearest->distance = d;
                nearest->best = name;
        }
}
