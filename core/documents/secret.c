/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks secrets that must not appear in a status file, layer listing, history entry or log: the values below
 * a field that contains a credential, wherever it is, private keys, and userinfo (`user:password@`) and
 * query (`?token=...`) of any URL in any string or key.
 *
 * Field names are compared without case, as in the component's final decoder.
 */
#include <strings.h>

#include <lkg/base.h>
#include <lkg/documents.h>
#include <lkg/tree.h>

#define MASK "<masked>"

static bool has_url(const char *text, size_t size)
{
        return text && size > 0 && (memchr(text, '@', size) || memchr(text, '?', size)) &&
               lkg_find_scheme(text, size);
}

/* ---- trees ---- */

static struct lkg_value *new_text(const struct lkg_value *like, const char *text, size_t size)
{
        return lkg_value_new_string(text, size, lkg_value_source_mut(like), lkg_value_line(like),
                                    lkg_value_column(like));
}

static bool mask_flag(const char *text, size_t size, struct lkg_buf *buf)
{
        lkg_buf_puts(buf, "--");
        return lkg_mask_name(text + 2, size - 2, false, buf);
}

/* A scalar, masked: the value itself (one more reference) when there is nothing to hide. */
static struct lkg_value *mask_scalar(const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf buf = LKG_BUF_INIT;
        enum lkg_type type = lkg_value_type(value);
        bool collection = type == LKG_LIST || type == LKG_MAP, masked = false;
        const char *text = NULL;
        size_t size = 0;

        if (secrecy == LKG_SECRET && type != LKG_NULL && !collection)
                return new_text(value, MASK, strlen(MASK));
        if (type == LKG_STRING)
                text = lkg_value_text(value, &size);
        if (text && lkg_has_private_key(text, size))
                return new_text(value, MASK, strlen(MASK));
        if (text && secrecy == LKG_SECRET_URL)
                masked = lkg_mask_url(text, size, &buf);
        else if (text && has_url(text, size))
                masked = lkg_mask_text(text, size, &buf);
        else if (text && strncmp(text, "--", 2) == 0) /* in the command of a container */
                masked = mask_flag(text, size, &buf);
        return masked ? new_text(value, lkg_buf_text(&buf), buf.size)
                      : lkg_value_ref((struct lkg_value *)value);
}

/*
 * Secret fields of the kubelet, and names of credentials in other documents. Not a name that ends in "file":
 * its value is a path.
 */
enum lkg_secrecy lkg_name_secrecy(const char *name, size_t size)
{
        static const char url[] = "staticPodURL";

        if (lkg_holds_secret_name(name, size))
                return LKG_SECRET;
        if (size == strlen(url) && strncasecmp(name, url, size) == 0)
                return LKG_SECRET_URL;
        return LKG_PUBLIC;
}

enum lkg_secrecy lkg_pointer_secrecy(const char *pointer)
{
        enum lkg_secrecy most = LKG_PUBLIC;

        while (*pointer == '/') {
                size_t n = strcspn(++pointer, "/");
                enum lkg_secrecy secrecy = lkg_name_secrecy(pointer, n);

                if (secrecy > most)
                        most = secrecy;
                pointer += n;
        }
        return most;
}

/*
 * For a member of a map: by its name. A `value` by the last name of its path, in an operation of a JSON patch, or by the name
 * beside it, in a variable of a container.
 */
static enum lkg_secrecy member_secrecy(const struct lkg_value *map, struct lkg_span key)
{
        enum lkg_secrecy secrecy = lkg_name_secrecy(key.data, key.size);
        const char *path, *name;

        if (secrecy != LKG_PUBLIC || !lkg_span_is(key, "value"))
                return secrecy;
        path = lkg_map_get_string(map, "path");
        name = lkg_map_get_string(map, "name");
        return path ? lkg_pointer_secrecy(path) : name ? lkg_name_secrecy(name, strlen(name)) : secrecy;
}

/* Takes over @map. Its names may hold secrets as well. */
static struct lkg_value *mask_names(struct lkg_value *map, bool secret)
{
        struct lkg_value *to = map;

        for (struct lkg_member m = { 0 }; lkg_value_type(map) == LKG_MAP && lkg_value_next(map, &m);) {
                LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf name = LKG_BUF_INIT;

                if (!lkg_mask_name(m.key.data, m.key.size, secret, &name))
                        continue;
                if (to == map)
                        to = lkg_value_clone_shallow(map);
                (void)lkg_value_ref(m.value);
                (void)lkg_map_remove(to, m.key.data, m.key.size);
                (void)lkg_map_set(to, lkg_buf_text(&name), name.size, m.value);
        }
        if (to != map)
                lkg_value_unref(map);
        return to;
}

static struct lkg_value *mask_member(const struct lkg_value *value, const struct lkg_member *m,
                                     void *userdata)
{
        const enum lkg_secrecy *around = userdata;
        enum lkg_secrecy own = m->key.data ? member_secrecy(value, m->key) : LKG_PUBLIC;

        return lkg_mask_value(m->value, own > *around ? own : *around);
}

/* @secrecy: of the most secret field above it */
struct lkg_value *lkg_mask_value(const struct lkg_value *value, enum lkg_secrecy secrecy)
{
        struct lkg_value *masked, *bare;

        if (lkg_value_size(value) == 0)
                return mask_scalar(value, secrecy);
        masked = mask_names(lkg_value_rewrite(value, mask_member, &secrecy), secrecy == LKG_SECRET);
        if (masked == value || !lkg_value_shadowed(masked))
                return masked;
        bare = lkg_value_over(masked, NULL); /* the shadow may contain values to mask */
        lkg_value_unref(masked);
        return bare;
}

struct lkg_value *lkg_mask_secrets(const struct lkg_value *root)
{
        return lkg_mask_value(root, LKG_PUBLIC);
}
