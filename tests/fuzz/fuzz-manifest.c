/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest that is parsed, written back and read again gives the same text.
 * Rule: docs/specification.md 6.1.
 */
#include <lkg/text.h>
#include <lkg/publication.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void format(const struct lkg_publication *publication, struct lkg_buf *buf)
{
        lkg_publication_format(publication, buf);
        if (lkg_buf_failed(buf))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct lkg_publication *publication = NULL, *again = NULL;
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;
        struct lkg_error err = { 0 };

        if (lkg_publication_parse((const char *)data, size, &publication, &err) < 0)
                return err.message[0] ? 0 : (abort(), 0);
        format(publication, &first);
        if (lkg_publication_parse(first.data, first.size, &again, &err) < 0)
                abort();
        format(again, &second);
        if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
                abort();
        for (size_t i = 0; i < publication->n_entries; i++)
                if (lkg_publication_find(publication, publication->entries[i].path) !=
                    &publication->entries[i])
                        abort();
        lkg_publication_free(publication);
        lkg_publication_free(again);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
        return 0;
}
