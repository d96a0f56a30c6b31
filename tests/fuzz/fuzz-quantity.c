/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a quantity: an accepted one equals its canonical text (unless it is capped at 2^63-1 or
 * rounded up to 1n), and rounding never makes it smaller.
 */
#include <core/schema/values/values.h>

#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The canonical text of @quantity is stable: read and printed again, it is the same. */
static void check_canonical(const struct lkg_quantity *quantity)
{
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;
        struct lkg_quantity back = LKG_QUANTITY_INIT;

        lkg_quantity_canonical(quantity, &first);
        FUZZ_CHECK(!lkg_buf_failed(&first) && first.size > 0);
        if (lkg_quantity_parse(first.data, first.size, &back, NULL) <
            0) { /* many digits and an absurd exponent */
                FUZZ_CHECK(first.size > 4096 || memchr(first.data, 'e', first.size));
        } else {
                FUZZ_CHECK(lkg_quantity_sign(&back) == lkg_quantity_sign(quantity));
                lkg_quantity_canonical(&back, &second);
                /* 62.5Ki prints as 64000, which has no suffix and is read as decimal: 64k. */
                FUZZ_CHECK(back.format != quantity->format ||
                           (first.size == second.size && memcmp(first.data, second.data, first.size) == 0));
        }
        lkg_quantity_deinit(&back);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
}

static void check_rounding(const uint8_t *data, size_t size)
{
        struct lkg_quantity rounded = LKG_QUANTITY_INIT, was = LKG_QUANTITY_INIT;
        int64_t n = 0;

        FUZZ_CHECK(lkg_quantity_parse((const char *)data, size, &was, NULL) == 0);
        FUZZ_CHECK(lkg_quantity_parse((const char *)data, size, &rounded, NULL) == 0);
        FUZZ_CHECK(lkg_quantity_compare(&was, &rounded) == 0);
        lkg_quantity_round(&rounded, -3);
        FUZZ_CHECK(lkg_quantity_sign(&was) == lkg_quantity_sign(&rounded));
        FUZZ_CHECK(lkg_quantity_compare(&rounded, &was) * lkg_quantity_sign(&was) >= 0); /* away from zero */
        if (lkg_quantity_int64(&was, &n))
                FUZZ_CHECK((n > 0) - (n < 0) == lkg_quantity_sign(&was));
        lkg_quantity_deinit(&rounded);
        lkg_quantity_deinit(&was);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_quantity quantity = LKG_QUANTITY_INIT;
        struct lkg_buf text = LKG_BUF_INIT;
        char reason[LKG_REFUSAL_MAX] = "";
        struct lkg_span span = lkg_quantity_trim((const char *)data, size);

        FUZZ_CHECK(span.size <= size);
        if (lkg_quantity_parse((const char *)data, size, &quantity, reason) < 0) {
                FUZZ_CHECK(*reason && memchr(reason, '\0', sizeof(reason)));
                return 0;
        }
        lkg_quantity_text(&quantity, lkg_span((const char *)data, size), &text);
        FUZZ_CHECK(!lkg_buf_failed(&text) && text.size > 0);
        FUZZ_CHECK(lkg_quantity_is_zero(&quantity) == (lkg_quantity_sign(&quantity) == 0));
        check_canonical(&quantity);
        check_rounding(data, size);
        lkg_buf_deinit(&text);
        lkg_quantity_deinit(&quantity);
        return 0;
}
