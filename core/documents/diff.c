/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unified diff of two texts, three lines of context, like `diff -u`.
 *
 * Myers' O(ND) algorithm in its linear-space form (the middle of a shortest edit path is found from both
 * ends, then each half alone), on lines that were numbered first, so comparing two lines means comparing two
 * integers. Memory is proportional to the number of lines; a search that would need more than COST_MAX steps
 * gives up and takes the best split so far: the diff is then correct but not the shortest.
 */
#include <limits.h>

#include <lkg/documents.h>
#include <lkg/tree.h>

#define CONTEXT  3
#define COST_MAX 2048

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
        long *forward, *backward; /* furthest x per diagonal; diagonal 0 is at @middle */
        long middle;
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

struct box {
        long a_low, a_high, b_low, b_high;
};

/* The diagonals (x - y) that one direction has reached, and how far it got on each. Stays inside the box. */
struct front {
        long *x; /* indexed by diagonal */
        long low, high;
};

/*
 * Add one more edit: the range grows by one diagonal on each side, or shrinks where it would leave the box.
 */
static void widen(struct front *f, const struct box *box, long sentinel)
{
        long d_min = box->a_low - box->b_high, d_max = box->a_high - box->b_low;

        if (f->low > d_min)
                f->x[--f->low - 1] = sentinel;
        else
                f->low++;
        if (f->high < d_max)
                f->x[++f->high + 1] = sentinel;
        else
                f->high--;
}

/* Return: true when the fronts met at (@ret_x, @ret_y). */
static bool advance(const struct diff *d, const struct box *box, struct front *f, const struct front *back,
                    bool odd, long *ret_x, long *ret_y)
{
        widen(f, box, -1);
        for (long k = f->high; k >= f->low; k -= 2) {
                long x = f->x[k - 1] < f->x[k + 1] ? f->x[k + 1] : f->x[k - 1] + 1;

                while (x < box->a_high && x - k < box->b_high && d->a.ids[x] == d->b.ids[x - k])
                        x++;
                f->x[k] = x;
                if (odd && k >= back->low && k <= back->high && back->x[k] <= x) {
                        *ret_x = x;
                        *ret_y = x - k;
                        return true;
                }
        }
        return false;
}

static bool retreat(const struct diff *d, const struct box *box, struct front *back, const struct front *f,
                    bool odd, long *ret_x, long *ret_y)
{
        widen(back, box, LONG_MAX);
        for (long k = back->high; k >= back->low; k -= 2) {
                long x = back->x[k - 1] < back->x[k + 1] ? back->x[k - 1] : back->x[k + 1] - 1;

                while (x > box->a_low && x - k > box->b_low && d->a.ids[x - 1] == d->b.ids[x - k - 1])
                        x--;
                back->x[k] = x;
                if (!odd && k >= f->low && k <= f->high && x <= f->x[k]) {
                        *ret_x = x;
                        *ret_y = x - k;
                        return true;
                }
        }
        return false;
}

/* The search took too long: take the point furthest from the start. */
static void settle(const struct box *box, const struct front *f, long *ret_x, long *ret_y)
{
        long best = -1;

        for (long k = f->high; k >= f->low; k -= 2) {
                long x = f->x[k] < box->a_high ? f->x[k] : box->a_high, y = x - k;

                if (y > box->b_high) {
                        y = box->b_high;
                        x = y + k;
                }
                if (x + y > best) {
                        best = x + y;
                        *ret_x = x;
                        *ret_y = y;
                }
        }
}

/* Split a box at a point on a shortest path (or, after COST_MAX rounds, on a longer one). */
static void find_middle(struct diff *d, const struct box *box, long *ret_x, long *ret_y)
{
        long f_start = box->a_low - box->b_low, b_start = box->a_high - box->b_high;
        struct front f = { d->forward + d->middle, f_start, f_start };
        struct front back = { d->backward + d->middle, b_start, b_start };
        bool odd = (f_start - b_start) & 1;

        f.x[f_start] = box->a_low;
        back.x[b_start] = box->a_high;
        for (long cost = 0; cost < COST_MAX; cost++)
                if (advance(d, box, &f, &back, odd, ret_x, ret_y) ||
                    retreat(d, box, &back, &f, odd, ret_x, ret_y))
                        return;
        settle(box, &f, ret_x, ret_y);
}

static void mark(bool *changed, long low, long high)
{
        for (; low < high; low++)
                changed[low] = true;
}

/* Recursion takes the smaller half and the loop the larger one: its depth is logarithmic. */
static void compare_box(struct diff *d, struct box box)
{
        while (true) {
                struct box left;
                long x = 0, y = 0;

                while (box.a_low < box.a_high && box.b_low < box.b_high &&
                       d->a.ids[box.a_low] == d->b.ids[box.b_low]) {
                        box.a_low++;
                        box.b_low++;
                }
                while (box.a_low < box.a_high && box.b_low < box.b_high &&
                       d->a.ids[box.a_high - 1] == d->b.ids[box.b_high - 1]) {
                        box.a_high--;
                        box.b_high--;
                }
                if (box.a_low == box.a_high || box.b_low == box.b_high) {
                        mark(d->a.changed, box.a_low, box.a_high);
                        mark(d->b.changed, box.b_low, box.b_high);
                        return;
                }
                find_middle(d, &box, &x, &y);
                left = (struct box){ box.a_low, x, box.b_low, y };
                box.a_low = x;
                box.b_low = y;
                if ((left.a_high - left.a_low) + (left.b_high - left.b_low) <
                    (box.a_high - box.a_low) + (box.b_high - box.b_low)) {
                        compare_box(d, left);
                } else {
                        compare_box(d, box);
                        box = left;
                }
        }
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
        size_t n_diagonals;

        if (a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0))
                return 0;
        split(a, a_size, &d.a);
        split(b, b_size, &d.b);
        number_lines(&d);
        n_diagonals = d.a.n + d.b.n + 3;
        d.middle = (long)d.b.n + 1;
        d.forward = lkg_must(calloc(n_diagonals, sizeof(*d.forward)));
        d.backward = lkg_must(calloc(n_diagonals, sizeof(*d.backward)));
        compare_box(&d, (struct box){ 0, (long)d.a.n, 0, (long)d.b.n });
        lkg_buf_printf(buf, "--- %s\n+++ %s\n", a_name, b_name);
        print_diff(&d, buf);
        side_deinit(&d.a);
        side_deinit(&d.b);
        free(d.forward);
        free(d.backward);
        return 1;
}
