/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unified diff of two texts, three lines of context, like `diff -u`.
 *
 * Myers' O(ND) algorithm, on lines that were numbered first, so comparing two lines means comparing two integers. How far one gets
 * with each number of edits is kept for the way back, so memory grows with its square: with more than EDITS_MAX edits all lines
 * between the first and the last difference count as changed. The diff is then correct but not the shortest.
 */
#include <lkg/documents.h>
#include <lkg/tree.h>

#define CONTEXT   3
#define EDITS_MAX 2048

struct line {
        const char *text;
        size_t size; /* with the line break, if there is one */
};

struct side {
        struct line *lines;
        unsigned *ids; /* equal lines have equal numbers */
        bool *changed; /* deleted (a) or inserted (b) */
        size_t n;
};

struct diff {
        struct side a, b;
};

/* ---- lines ---- */

static void split(const char *text, size_t size, struct side *side)
{
        size_t n = 0, start = 0;

        for (size_t i = 0; i < size; i++)
                n += text[i] == '\n';
        n += size > 0 && text[size - 1] != '\n';
        side->lines = lkg_must(calloc(n + 1, sizeof(*side->lines)));
        side->ids = lkg_must(calloc(n + 1, sizeof(*side->ids)));
        side->changed = lkg_must(calloc(n + 1, sizeof(*side->changed)));
        for (side->n = 0; side->n < n; side->n++) {
                const char *end = memchr(text + start, '\n', size - start);
                size_t length = end ? (size_t)(end - (text + start)) + 1 : size - start;

                side->lines[side->n] = (struct line){ text + start, length };
                start += length;
        }
}

static int compare_lines(const void *x, const void *y)
{
        const struct line *a = *(const struct line *const *)x, *b = *(const struct line *const *)y;
        size_t n = a->size < b->size ? a->size : b->size;
        int r = memcmp(a->text, b->text, n);

        return r ? r : (a->size > b->size) - (a->size < b->size);
}

/* Number the lines of both sides: sort once; equal neighbours share a number. */
static void number_lines(struct diff *d)
{
        size_t n = d->a.n + d->b.n;
        LKG_CLEANUP(lkg_freep) const struct line **all = lkg_must(calloc(n + 1, sizeof(*all)));
        unsigned id = 0;

        for (size_t i = 0; i < d->a.n; i++)
                all[i] = &d->a.lines[i];
        for (size_t i = 0; i < d->b.n; i++)
                all[d->a.n + i] = &d->b.lines[i];
        qsort(all, n, sizeof(*all), compare_lines);
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && compare_lines(&all[i - 1], &all[i]) != 0)
                        id++;
                if (all[i] >= d->a.lines && all[i] < d->a.lines + d->a.n)
                        d->a.ids[all[i] - d->a.lines] = id;
                else
                        d->b.ids[all[i] - d->b.lines] = id;
        }
}

/* ---- the shortest edit ---- */

/* The lines between the first difference and the last one. */
struct middle {
        const unsigned *a, *b;
        bool *a_changed, *b_changed;
        int n, m;
};

/* The furthest x on diagonal @k (x - y) with @edits edits: every second diagonal is reached. */
static int furthest(int *const *fronts, int edits, int k)
{
        return fronts[edits][(k + edits) / 2];
}

/* Is the last of @edits edits on the way to diagonal @k an insertion? */
static bool is_insertion(int *const *fronts, int edits, int k)
{
        return k == -edits ||
               (k != edits && furthest(fronts, edits - 1, k - 1) < furthest(fronts, edits - 1, k + 1));
}

/* Go on from each front to the next one. Return: has the end been reached? */
static bool advance(const struct middle *d, int **fronts, int edits)
{
        fronts[edits] = lkg_must(calloc((size_t)edits + 1, sizeof(int)));
        for (int k = -edits; k <= edits; k += 2) {
                int x = edits == 0                       ? 0
                        : is_insertion(fronts, edits, k) ? furthest(fronts, edits - 1, k + 1)
                                                         : furthest(fronts, edits - 1, k - 1) + 1;

                while (x < d->n && x - k < d->m && d->a[x] == d->b[x - k])
                        x++;
                fronts[edits][(k + edits) / 2] = x;
                if (x == d->n && x - k == d->m)
                        return true;
        }
        return false;
}

static void mark_way(const struct middle *d, int *const *fronts, int edits)
{
        int k = d->n - d->m;

        for (; edits > 0; edits--) {
                bool insertion = is_insertion(fronts, edits, k);
                int x;

                k += insertion ? 1 : -1;
                x = furthest(fronts, edits - 1, k);
                if (insertion)
                        d->b_changed[x - k] = true;
                else
                        d->a_changed[x] = true;
        }
}

static void compare(struct diff *d)
{
        int *fronts[EDITS_MAX + 1], edits = 0;
        size_t start = 0, n = d->a.n, m = d->b.n;
        struct middle middle;
        bool found = false;

        while (start < n && start < m && d->a.ids[start] == d->b.ids[start])
                start++;
        for (; n > start && m > start && d->a.ids[n - 1] == d->b.ids[m - 1]; n--)
                m--;
        middle = (struct middle){ d->a.ids + start,     d->b.ids + start, d->a.changed + start,
                                  d->b.changed + start, (int)(n - start), (int)(m - start) };
        while (!found && edits <= EDITS_MAX)
                found = advance(&middle, fronts, edits++);
        if (found) {
                mark_way(&middle, fronts, edits - 1);
        } else {
                memset(middle.a_changed, true, n - start);
                memset(middle.b_changed, true, m - start);
        }
        while (edits > 0)
                free(fronts[--edits]);
}

/* ---- printing ---- */

static void print_line(struct lkg_buf *buf, char sign, const struct line *line)
{
        lkg_buf_putc(buf, sign);
        lkg_buf_append(buf, line->text, line->size);
        if (line->text[line->size - 1] != '\n')
                lkg_buf_puts(buf, "\n\\ No newline at end of file\n");
}

static void print_range(struct lkg_buf *buf, char sign, size_t start, size_t n)
{
        if (n == 1)
                lkg_buf_printf(buf, "%c%zu", sign, start + 1);
        else
                lkg_buf_printf(buf, "%c%zu,%zu", sign, n ? start + 1 : start, n);
}

/* Print one hunk from (i, j) to (i_end, j_end), context included. */
static void print_hunk(const struct diff *d, struct lkg_buf *buf, size_t i, size_t i_end, size_t j,
                       size_t j_end)
{
        lkg_buf_puts(buf, "@@ ");
        print_range(buf, '-', i, i_end - i);
        lkg_buf_putc(buf, ' ');
        print_range(buf, '+', j, j_end - j);
        lkg_buf_puts(buf, " @@\n");
        while (i < i_end || j < j_end) {
                if (i < i_end && d->a.changed[i]) {
                        print_line(buf, '-', &d->a.lines[i++]);
                } else if (j < j_end && d->b.changed[j]) {
                        print_line(buf, '+', &d->b.lines[j++]);
                } else {
                        print_line(buf, ' ', &d->a.lines[i++]);
                        j++;
                }
        }
}

static void print_diff(const struct diff *d, struct lkg_buf *buf)
{
        size_t i = 0, j = 0;

        while (true) {
                size_t i_start, j_start, same = 0, lead;

                while (i < d->a.n && j < d->b.n && !d->a.changed[i] && !d->b.changed[j]) {
                        i++;
                        j++;
                }
                if (i == d->a.n && j == d->b.n)
                        return;
                lead = i < CONTEXT ? i : CONTEXT;
                i_start = i - lead;
                j_start = j - lead;
                while ((i < d->a.n || j < d->b.n) && same <= 2 * CONTEXT) {
                        if (i < d->a.n && d->a.changed[i]) {
                                i++;
                                same = 0;
                        } else if (j < d->b.n && d->b.changed[j]) {
                                j++;
                                same = 0;
                        } else {
                                i++;
                                j++;
                                same++;
                        }
                }
                lead = same > CONTEXT ? same - CONTEXT : 0; /* context of the next hunk is not ours */
                i -= lead;
                j -= lead;
                print_hunk(d, buf, i_start, i, j_start, j);
        }
}

static void side_deinit(struct side *side)
{
        free(side->lines);
        free(side->ids);
        free(side->changed);
}

int lkg_render_diff(const char *a_name, const char *a, size_t a_size, const char *b_name, const char *b,
                    size_t b_size, struct lkg_buf *buf)
{
        struct diff d = { 0 };

        if (a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0))
                return 0;
        split(a, a_size, &d.a);
        split(b, b_size, &d.b);
        number_lines(&d);
        compare(&d);
        lkg_buf_printf(buf, "--- %s\n+++ %s\n", a_name, b_name);
        print_diff(&d, buf);
        side_deinit(&d.a);
        side_deinit(&d.b);
        return 1;
}
