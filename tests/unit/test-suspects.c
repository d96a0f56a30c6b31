/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is to blame: the fields in which a condemned document differs from the last known good.
 * Rule: docs/specification.md 2.12.
 */

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/schema.h>

#include "unit.h"

#define HEADER "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

struct side {
        struct lkg_value *doc;
        struct lkg_buf origin;
};

static void side_read(const char *text, const char *layer, const char *file, struct side *ret)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        struct lkg_source *source = lkg_source_new(layer, file);

        *ret = (struct side){ .origin = LKG_BUF_INIT };
        assert_non_null(source);
        assert_int_equal(lkg_decode_yaml(text, strlen(text), LKG_DECODE_UNTYPED, source, &report, &ret->doc),
                         0);
        lkg_source_unref(source);
        lkg_render_origin(ret->doc, &ret->origin);
        lkg_buf_putc(&ret->origin, '\0');
        assert_false(lkg_buf_failed(&ret->origin));
}

static void side_deinit(struct side *side)
{
        lkg_value_unref(side->doc);
        lkg_buf_deinit(&side->origin);
}

static struct lkg_value *find(const char *kind, const char *before, const char *after, bool whole)
{
        const struct lkg_schema *schema = NULL;
        struct lkg_value *suspects = NULL;
        struct side good, condemned;

        side_read(before, "drop-in 10-old.conf", "/etc/d/10-old.conf", &good);
        side_read(after, "drop-in 20-new.conf", "/etc/d/20-new.conf", &condemned);
        if (kind)
                assert_int_equal(lkg_schema_get(kind, NULL, 0, &schema), 0);
        suspects = lkg_suspects_find(schema, &(struct lkg_suspects_side){ good.doc, good.origin.data, 41 },
                                     &(struct lkg_suspects_side){ condemned.doc, condemned.origin.data, 43 },
                                     whole);
        side_deinit(&good);
        side_deinit(&condemned);
        return suspects;
}

static char *as_text(struct lkg_value *suspects)
{
        struct lkg_buf buf = LKG_BUF_INIT;
        size_t size;

        lkg_render_json_compact(suspects, &buf);
        lkg_value_unref(suspects);
        lkg_buf_putc(&buf, '\0');
        return lkg_buf_steal(&buf, &size);
}

TEST(test_most_dangerous_first)
{
        char *text = as_text(find("KubeletConfiguration",
                                  HEADER "logging: {verbosity: 1}\npodsPerCore: 5\ncgroupDriver: systemd\n"
                                         "clusterDNS: [10.0.0.1]\nfailSwapOn: false\n",
                                  HEADER "cgroupDriver: cgroupfs\npodsPerCore: 6\nlogging: {verbosity: 2}\n"
                                         "clusterDNS: [10.0.0.2]\nevictionHard: {memory.available: 5Mi}\n",
                                  false));

        assert_string_equal(
                text,
                "{\"fields\":["
                /* the more expensive change first among equals */
                "{\"changeClass\":\"drain\",\"danger\":\"stops\",\"field\":\"cgroupDriver\","
                "\"file\":\"/etc/d/20-new.conf\",\"layer\":\"drop-in 20-new.conf\",\"line\":3,"
                "\"new\":\"\\\"cgroupfs\\\"\",\"old\":\"\\\"systemd\\\"\",\"pointer\":\"/cgroupDriver\"},"
                "{\"changeClass\":\"restart\",\"danger\":\"stops\",\"field\":\"evictionHard\","
                "\"file\":\"/etc/d/20-new.conf\",\"layer\":\"drop-in 20-new.conf\",\"line\":7,"
                "\"new\":\"\\\"5Mi\\\"\",\"pointer\":\"/evictionHard/memory.available\"},"
                /* gone: its place in the last known good */
                "{\"changeClass\":\"restart\",\"danger\":\"stops\",\"field\":\"failSwapOn\","
                "\"file\":\"/etc/d/10-old.conf\",\"layer\":\"drop-in 10-old.conf\",\"line\":7,"
                "\"old\":\"false\",\"pointer\":\"/failSwapOn\"},"
                "{\"changeClass\":\"recreate\",\"danger\":\"pods\",\"field\":\"clusterDNS\","
                "\"file\":\"/etc/d/20-new.conf\",\"layer\":\"drop-in 20-new.conf\",\"line\":6,"
                "\"new\":\"[\\\"10.0.0.2\\\"]\",\"old\":\"[\\\"10.0.0.1\\\"]\",\"pointer\":\"/clusterDNS\"},"
                "{\"changeClass\":\"restart\",\"danger\":\"pods\",\"field\":\"podsPerCore\","
                "\"file\":\"/etc/d/20-new.conf\",\"layer\":\"drop-in 20-new.conf\",\"line\":4,"
                "\"new\":\"6\",\"old\":\"5\",\"pointer\":\"/podsPerCore\"},"
                "{\"changeClass\":\"restart\",\"danger\":\"harmless\",\"field\":\"logging.verbosity\","
                "\"file\":\"/etc/d/20-new.conf\",\"layer\":\"drop-in 20-new.conf\",\"line\":5,"
                "\"new\":\"2\",\"old\":\"1\",\"pointer\":\"/logging/verbosity\"}],"
                "\"generation\":43,\"lastKnownGood\":41}");
        free(text);
}

TEST(test_equal_documents_have_none)
{
        struct lkg_value *suspects =
                find("KubeletConfiguration", HEADER "maxPods: 1\n", HEADER "maxPods: 1\n", false);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;

        assert_true(lkg_suspects_known(suspects));
        lkg_suspects_say(suspects, 300, &said);
        lkg_buf_putc(&said, '\0');
        assert_string_equal(said.data, "no field differs from the last known good");
        lkg_value_unref(suspects);
}

static size_t n_suspects(const char *kind, const char *before, const char *after)
{
        struct lkg_value *suspects = find(kind, before, after, false);
        size_t n = lkg_value_size(lkg_map_get(suspects, "fields"));

        lkg_value_unref(suspects);
        return n;
}

/* A field that is left out has its default, and one value can be written in several ways. */
TEST(test_what_changes_nothing_is_no_suspect)
{
        static const char kubelet[] = "KubeletConfiguration";

        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "cgroupDriver: cgroupfs\n"), 0);
        assert_int_equal(n_suspects(kubelet, HEADER "logging: {format: text}\n", HEADER), 0);
        assert_int_equal(n_suspects(kubelet, HEADER "maxPods: 110\n", HEADER "maxPods: null\n"), 0);
        assert_int_equal(n_suspects(kubelet, HEADER "syncFrequency: 60s\n", HEADER "syncFrequency: 1m\n"),
                         0);
        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "cgroupDriver: systemd\n"), 1);
        assert_int_equal(n_suspects(kubelet, HEADER "syncFrequency: 60s\n", HEADER "syncFrequency: 61s\n"),
                         1);
        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "maxPods: \"110\"\n"), 1); /* the wrong type */
        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "providerID: \"\"\n"), 1); /* has no default */
        /* without --config it would be AlwaysAllow */
        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "authorization: {mode: Webhook}\n"), 1);
        /* a key of a map is no field, and a kind without a table has no defaults */
        assert_int_equal(n_suspects(kubelet, HEADER, HEADER "featureGates: {AllBeta: false}\n"), 1);
        assert_int_equal(n_suspects(NULL, HEADER, HEADER "cgroupDriver: cgroupfs\n"), 1);
        assert_int_equal(n_suspects(NULL, HEADER, HEADER "x: null\n"), 1);
}

/* Neither in the map nor in the words of an Event. */
TEST(test_secrets_stay_secret)
{
        static const char before[] = HEADER "staticPodURLHeader: {Authorization: [swordfish]}\n"
                                            "staticPodURL: https://a:hunter2@x/y?token=swordfish\n";
        static const char after[] = HEADER "staticPodURLHeader: {Authorization: [marlin]}\n"
                                           "staticPodURL: https://a:hunter3@x/y?token=marlin\n";
        struct lkg_value *suspects = find("KubeletConfiguration", before, after, false);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        char *text;

        assert_int_equal(lkg_value_size(lkg_map_get(suspects, "fields")), 2);
        lkg_suspects_say(suspects, 300, &said);
        lkg_buf_putc(&said, '\0');
        assert_string_equal(said.data, "suspects: staticPodURL (drop-in 20-new.conf:4), "
                                       "staticPodURLHeader (drop-in 20-new.conf:3)");
        text = as_text(suspects);
        assert_non_null(strstr(text, "masked"));
        for (size_t i = 0; i < 4; i++)
                assert_null(strstr(text,
                                   (const char *const[]){ "swordfish", "marlin", "hunter2", "hunter3" }[i]));
        free(text);
}

static void many(size_t n, const char *value, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, HEADER "featureGates:\n");
        for (size_t i = 0; i < n; i++)
                lkg_buf_printf(ret, "  Gate%03zu: %s\n", i, value);
        lkg_buf_puts(ret, "maxPods: 3\n");
        lkg_buf_putc(ret, '\0');
}

TEST(test_limits)
{
        LKG_CLEANUP(lkg_buf_deinit)
        struct lkg_buf before = LKG_BUF_INIT, after = LKG_BUF_INIT, said = LKG_BUF_INIT, line = LKG_BUF_INIT;
        struct lkg_value *suspects;
        char *text;

        many(100, "true", &before);
        many(100, "false", &after);
        suspects = find("KubeletConfiguration", before.data, after.data, false);
        assert_true(lkg_value_size(lkg_map_get(suspects, "fields")) <= LKG_SUSPECTS_MAX);
        assert_int_equal(lkg_value_size(lkg_map_get(suspects, "fields")) +
                                 lkg_suspects_number(suspects, "notListed"),
                         100);
        lkg_suspects_say(suspects, 300, &said); /* one field, whatever its keys */
        lkg_buf_putc(&said, '\0');
        assert_int_equal(strncmp(said.data, "suspects: featureGates (drop-in 20-new.conf:4) and ", 50), 0);
        text = as_text(suspects);
        assert_true(strlen(text) < 2 * LKG_SUSPECTS_BYTES_MAX);
        free(text);

        suspects = find("KubeletConfiguration", before.data, after.data, true);
        assert_int_equal(lkg_value_size(lkg_map_get(suspects, "fields")), 100);
        assert_int_equal(lkg_suspects_number(suspects, "notListed"), 0);
        lkg_value_unref(suspects);

        /* A long value is cut between two characters. */
        lkg_buf_puts(&line, HEADER "clusterDomain: ");
        for (size_t i = 0; i < 3000; i++)
                lkg_buf_puts(&line, "\xc3\xa9");
        lkg_buf_puts(&line, "\n");
        lkg_buf_putc(&line, '\0');
        text = as_text(find("KubeletConfiguration", HEADER, line.data, false));
        assert_true(strlen(text) < 600);
        assert_non_null(strstr(text, "\xc3\xa9...\""));
        free(text);
}

TEST(test_a_kind_without_a_table)
{
        struct lkg_value *suspects = find(NULL, "kind: Mine\nb: 1\na: {password: x, k: 1}\n",
                                          "kind: Mine\nb: 2\na: {password: y, k: 2}\n", false);
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        char *text;

        lkg_suspects_say(suspects, 300, &said);
        lkg_buf_putc(&said, '\0');
        assert_string_equal(said.data, "suspects: a (drop-in 20-new.conf:3), "
                                       "b (drop-in 20-new.conf:2)");
        text = as_text(suspects);
        assert_null(strstr(text, "danger"));
        assert_non_null(strstr(text, "\"new\":\"\\\"<masked>\\\"\",\"old\":\"\\\"<masked>\\\"\","
                                     "\"pointer\":\"/a/password\""));
        free(text);
}

/* Maps from a disk: nothing of a wrong form is believed. */
TEST(test_foreign_maps)
{
        static const char *const texts[] = {
                "[]",           "{}",
                "fields: 1",    "fields: [1, [], {pointer: 1}, {pointer: ''}, {field: [x]}]\nnotListed: x",
                "unknown: [1]", "null",
        };

        for (size_t i = 0; i < LKG_ARRAY_SIZE(texts); i++) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
                struct side side;

                side_read(texts[i], "x", "y", &side);
                lkg_suspects_say(side.doc, 300, &said);
                assert_false(lkg_buf_failed(&said));
                assert_int_equal(lkg_suspects_known(side.doc), i == 3);
                assert_int_equal(lkg_suspects_number(side.doc, "generation"), 0);
                side_deinit(&side);
        }
        assert_false(lkg_suspects_known(NULL));
}

TEST(test_not_known)
{
        struct lkg_value *suspects = lkg_suspects_unknown("its document was not served");
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf said = LKG_BUF_INIT;
        char *text;

        assert_false(lkg_suspects_known(suspects));
        lkg_suspects_say(suspects, 300, &said);
        assert_int_equal(said.size, 0);
        text = as_text(suspects);
        assert_string_equal(text, "{\"unknown\":\"its document was not served\"}");
        free(text);
}
