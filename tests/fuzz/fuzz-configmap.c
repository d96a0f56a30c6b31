/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a ConfigMap, from a file and from the API: an accepted object has an identity that is safe in
 * a path, and its checkpoint reads back as the same object.
 */

#include <lkg/objects.h>
#include <lkg/limits.h>

#include "fuzz-document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_source(const struct lkg_configmap *configmap)
{
        struct lkg_reference reference = { .type = LKG_REFERENCE_CONFIGMAP, .key = LKG_KEY_DEFAULT };
        struct lkg_config_source source, back;
        char id[LKG_SOURCE_ID_MAX + 1];
        struct lkg_error err = { 0 };

        FUZZ_CHECK(strlen(configmap->ns) < sizeof(reference.ns));
        FUZZ_CHECK(strlen(configmap->name) < sizeof(reference.name));
        (void)stpcpy(reference.ns, configmap->ns);
        (void)stpcpy(reference.name, configmap->name);
        if (lkg_configmap_resolve(configmap, &reference, &source, &err) < 0) {
                FUZZ_CHECK(err.message[0]); /* the id is too long */
                return;
        }
        FUZZ_CHECK(lkg_config_source_check(&source, NULL) == 0);
        lkg_config_source_id(&source, id);
        FUZZ_CHECK(lkg_config_source_parse_id(id, &back) == 0);
        FUZZ_CHECK(lkg_config_source_equal(&source, &back));
}

static void check_checkpoint(const struct lkg_configmap *configmap)
{
        const struct lkg_configmap_options options = { .max_bytes = LKG_DOC_BYTES_MAX };
        struct lkg_buf buf = LKG_BUF_INIT;
        struct lkg_configmap again;

        lkg_configmap_format(configmap, &buf);
        FUZZ_CHECK(!lkg_buf_failed(&buf));
        FUZZ_CHECK(lkg_configmap_parse(buf.data, buf.size, &options, &again, NULL) == 0);
        FUZZ_CHECK(lkg_value_equal(configmap->object, again.object));
        FUZZ_CHECK(strcmp(configmap->uid, again.uid) == 0 && strcmp(configmap->version, again.version) == 0);
        lkg_configmap_deinit(&again);
        lkg_buf_deinit(&buf);
}

static void parse(const uint8_t *data, size_t size, bool from_file)
{
        const struct lkg_configmap_options options = { .max_bytes = LKG_DOC_BYTES_MAX,
                                                       .from_file = from_file };
        struct lkg_configmap configmap;
        struct lkg_error err = { 0 };

        if (lkg_configmap_parse((const char *)data, size, &options, &configmap, &err) < 0) {
                FUZZ_CHECK(err.message[0]);
                return;
        }
        check_source(&configmap);
        check_checkpoint(&configmap);
        lkg_configmap_deinit(&configmap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        parse(data, size, true);
        parse(data, size, false);
        return 0;
}
