/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as our configuration. A line `%%%` separates the document from a drop-in that is merged onto it.
 * An accepted configuration must be usable: names have no slash, paths are absolute, settings survive a
 * round trip through their text form.
 */
#include <lkg/text.h>
#include <lkg/config.h>
#include <lkg/documents.h>
#include <lkg/file.h>
#include <lkg/messages.h>

#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SEPARATOR "\n%%%\n"

static void check_config(const struct lkg_config *c)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf text = LKG_BUF_INIT;
        struct lkg_settings *back = NULL;

        FUZZ_CHECK(c->n_components >= 1 && c->n_components <= LKG_COMPONENTS_MAX);
        FUZZ_CHECK(c->history_limit >= 1 && c->history_limit <= LKG_HISTORY_MAX);
        FUZZ_CHECK(c->status_mode <= 0777);
        FUZZ_CHECK(!*c->virtual_dir || lkg_bare_name_ok(c->virtual_dir));
        for (size_t i = 0; i < c->n_components; i++) {
                const struct lkg_config_component *k = &c->components[i];

                FUZZ_CHECK(lkg_bare_name_ok(k->name) && lkg_bare_name_ok(k->file));
                FUZZ_CHECK(!lkg_config_is_virtual(c, k->file));
                FUZZ_CHECK(k->mode <= 0777 && k->uid != UINT32_MAX && k->gid != UINT32_MAX);
                for (size_t n = 0; n < k->match.exe.n_items; n++)
                        FUZZ_CHECK(k->match.exe.items[n][0] == '/');
                for (size_t other = 0; other < i; other++)
                        FUZZ_CHECK(strcmp(c->components[other].file, k->file) != 0 &&
                                   strcmp(c->components[other].name, k->name) != 0);
        }
        lkg_config_to_settings(c, &text);
        FUZZ_CHECK(lkg_settings_parse(text.data, text.size, &back, NULL) == 0);
        FUZZ_CHECK(strcmp(back->state_dir, c->state_dir) == 0 && back->n_components == c->n_components);
        for (size_t i = 0; i < c->n_components; i++)
                FUZZ_CHECK(strcmp(back->components[i].file, c->components[i].file) == 0 &&
                           back->components[i].n_exes == c->components[i].match.exe.n_items);
        lkg_settings_free(back);
}

static struct lkg_value *decode(const char *data, size_t size, struct lkg_report *report)
{
        struct lkg_source *source = lkg_source_new("configuration", "fuzz");
        struct lkg_value *value = NULL;

        (void)lkg_decode(data, size, lkg_detect_format(data, size), LKG_DECODE_STRICT, source, report,
                         &value);
        lkg_source_unref(source);
        return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *text = (const char *)data, *cut = memmem(data, size, SEPARATOR, strlen(SEPARATOR));
        size_t first = cut ? (size_t)(cut - text) + 1 : size;
        struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_value *doc = decode(text, first, &report), *patch = NULL, *merged = NULL;
        struct lkg_config *config = NULL;
        char *findings;
        int r;

        if (cut)
                patch = decode(cut + strlen(SEPARATOR), size - first - strlen(SEPARATOR) + 1, &report);
        if (doc && patch)
                merged = lkg_config_merge(doc, patch);
        lkg_report_deinit(&report);
        if (doc) {
                r = lkg_config_decode(merged ? merged : doc, "/etc/lkgfs", &config, &report);
                FUZZ_CHECK(r == 0 || r == -EBADMSG);
                FUZZ_CHECK((r == 0) == (report.n_severity[LKG_ERROR] == 0));
                if (r == 0)
                        check_config(config);
        }
        findings = lkg_report_format(&report, NULL);
        FUZZ_CHECK(findings);
        free(findings);
        lkg_config_free(config);
        lkg_value_unref(doc);
        lkg_value_unref(patch);
        lkg_value_unref(merged);
        lkg_report_deinit(&report);
        return 0;
}
