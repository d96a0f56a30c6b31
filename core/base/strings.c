/* SPDX-License-Identifier: Apache-2.0 */
/* See lkg/text.h. */
#include <lkg/base.h>
#include <lkg/text.h>

int lkg_strings_take(char ***items, size_t *n_items, char *text)
{
        if (!text || LKG_GROW(*items, *n_items) < 0) {
                free(text);
                return -ENOMEM;
        }
        (*items)[(*n_items)++] = text;
        return 0;
}

int lkg_strings_add(struct lkg_strings *strings, const char *text, size_t size)
{
        return lkg_strings_take(&strings->items, &strings->n_items, strndup(text, size));
}

int lkg_strings_parse(const char *data, size_t size, struct lkg_strings *ret)
{
        struct lkg_strings strings = { 0 };
        int r = 0;

        while (r == 0 && size > 0) {
                size_t n = strnlen(data, size), used = n < size ? n + 1 : n;

                r = lkg_strings_add(&strings, data, n);
                data += used;
                size -= used;
        }
        if (r < 0) {
                lkg_strings_deinit(&strings);
                return r;
        }
        *ret = strings;
        return 0;
}

int lkg_strings_copy(const struct lkg_strings *strings, struct lkg_strings *ret)
{
        struct lkg_strings copy = { 0 };
        int r = 0;

        for (size_t i = 0; r == 0 && i < strings->n_items; i++)
                r = lkg_strings_add(&copy, strings->items[i], strlen(strings->items[i]));
        if (r < 0) {
                lkg_strings_deinit(&copy);
                return r;
        }
        *ret = copy;
        return 0;
}

bool lkg_strings_equal(const struct lkg_strings *a, const struct lkg_strings *b)
{
        if (a->n_items != b->n_items)
                return false;
        for (size_t i = 0; i < a->n_items; i++)
                if (strcmp(a->items[i], b->items[i]) != 0)
                        return false;
        return true;
}

void lkg_strings_deinit(struct lkg_strings *strings)
{
        for (size_t i = 0; i < strings->n_items; i++)
                free(strings->items[i]);
        free(strings->items);
        *strings = (struct lkg_strings){ 0 };
}
