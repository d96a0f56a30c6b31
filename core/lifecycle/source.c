/* SPDX-License-Identifier: Apache-2.0 */
/* Which source is this? Identities of sources: which strings may become a path, and ids as users type them. */

#include <stdarg.h>

#include <lkg/lifecycle.h>

bool lkg_configmap_key_ok(struct lkg_span text)
{
        return lkg_identifier_in(text) && (text.size < 2 || memcmp(text.data, "..", 2) != 0);
}

bool lkg_config_source_equal(const struct lkg_config_source *a, const struct lkg_config_source *b)
{
        if (lkg_config_source_is_local(a) || lkg_config_source_is_local(b))
                return lkg_config_source_is_local(a) && lkg_config_source_is_local(b);
        return strcmp(a->uid, b->uid) == 0 && strcmp(a->version, b->version) == 0 &&
               strcmp(a->key, b->key) == 0;
}

bool lkg_config_source_same_content(const struct lkg_config_source *a, const struct lkg_config_source *b)
{
        return !lkg_config_source_is_local(a) && strcmp(a->uid, b->uid) == 0 &&
               strcmp(a->key, b->key) == 0 && a->sha256[0] && strcmp(a->sha256, b->sha256) == 0;
}

bool lkg_config_source_matches(const struct lkg_config_source *a, const struct lkg_config_source *b)
{
        return lkg_config_source_equal(a, b) || lkg_config_source_same_content(a, b);
}

void lkg_config_source_recorded(const char *id, const char *sha256, struct lkg_config_source *ret)
{
        *ret = (struct lkg_config_source){ 0 };
        if (*id && lkg_config_source_parse_id(id, ret) >= 0)
                (void)snprintf(ret->sha256, sizeof(ret->sha256), "%s", sha256);
}

bool lkg_config_records_match(const char *id_a, const char *sha256_a, const char *id_b, const char *sha256_b)
{
        struct lkg_config_source a, b;

        lkg_config_source_recorded(id_a, sha256_a, &a);
        lkg_config_source_recorded(id_b, sha256_b, &b);
        return lkg_config_source_matches(&a, &b);
}

/* The key is part of the id unless it is the default one. */
static bool shows_key(const struct lkg_config_source *source)
{
        return source->key[0] && strcmp(source->key, LKG_KEY_DEFAULT) != 0;
}

void lkg_config_source_id(const struct lkg_config_source *source, char ret[static LKG_SOURCE_ID_MAX + 1])
{
        char whole[3 * (LKG_IDENTIFIER_MAX + 1)];
        char *end = whole;

        end = stpcpy(end, source->uid);
        if (source->version[0]) {
                *end++ = '@';
                end = stpcpy(end, source->version);
        }
        if (source->version[0] && shows_key(source)) {
                *end++ = ':';
                end = stpcpy(end, source->key);
        }
        /* lkg_config_source_check() has refused ids that are too long. */
        lkg_copy_span(lkg_span(whole, (size_t)(end - whole) > LKG_SOURCE_ID_MAX ? LKG_SOURCE_ID_MAX
                                                                                : (size_t)(end - whole)),
                      ret);
}

static int check_part(const char *what, const char *text, struct lkg_error *err)
{
        char quoted[5 * LKG_QUOTE_MAX + 8];

        if (lkg_identifier_ok(text))
                return 0;
        return lkg_refuse_because(
                err, -EINVAL, NULL,
                "%s %s cannot be used: want 1 to %u of the characters A-Z, a-z, 0-9, ., _ and "
                "-, and not . or .. alone",
                what, lkg_quote(text, strlen(text), quoted), LKG_IDENTIFIER_MAX);
}

int lkg_config_source_check(const struct lkg_config_source *source, struct lkg_error *err)
{
        const struct {
                const char *what, *text;
                bool optional; /* an id does not contain it */
        } parts[] = {
                { "namespace", source->ns, true },
                { "name", source->name, true },
                { "uid", source->uid, false },
                { "resourceVersion", source->version, false },
                { "kubeletConfigKey", source->key, false },
        };
        size_t size = strlen(source->uid) + 1 + strlen(source->version);

        if (lkg_config_source_is_local(source))
                return 0;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(parts); i++) {
                int r = parts[i].optional && !parts[i].text[0]
                                ? 0
                                : check_part(parts[i].what, parts[i].text, err);

                if (r < 0)
                        return r;
        }
        if (shows_key(source))
                size += 1 + strlen(source->key);
        if (size > LKG_SOURCE_ID_MAX)
                return lkg_refuse_because(
                        err, -EINVAL, NULL,
                        "uid, resourceVersion and kubeletConfigKey are too long together: %zu bytes "
                        "make no file name, want at most %u",
                        size, LKG_SOURCE_ID_MAX);
        return 0;
}

static bool is_short_hash(struct lkg_span text)
{
        if (text.size != LKG_SHORT_HASH)
                return false;
        for (size_t i = 0; i < text.size; i++)
                if (!((text.data[i] >= '0' && text.data[i] <= '9') ||
                      (text.data[i] >= 'a' && text.data[i] <= 'f')))
                        return false;
        return true;
}

int lkg_config_source_parse_id(const char *text, struct lkg_config_source *ret)
{
        struct lkg_span uid, rest, version, key = lkg_span(LKG_KEY_DEFAULT, strlen(LKG_KEY_DEFAULT));
        struct lkg_config_source source = { .uid = "" };
        bool has_version, has_key = false;

        if (strlen(text) > LKG_SOURCE_ID_MAX)
                return -EINVAL;
        has_version = lkg_span_cut(lkg_span(text, strlen(text)), '@', &uid, &rest);
        if (!lkg_identifier_in(uid))
                return -EINVAL;
        if (has_version) {
                struct lkg_span given;

                has_key = lkg_span_cut(rest, ':', &version, &given);
                if (has_key)
                        key = given;
                if (!lkg_identifier_in(version) || !lkg_identifier_in(key))
                        return -EINVAL;
                lkg_copy_span(version, source.version);
                lkg_copy_span(key, source.key);
        }
        /* Local configurations are identified by their content; no id stands for all of them. */
        if (lkg_span_is(uid, LKG_UID_LOCAL) && (!has_version || has_key || !is_short_hash(version)))
                return -EINVAL;
        lkg_copy_span(uid, source.uid);
        *ret = source;
        return 0;
}
