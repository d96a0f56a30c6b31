/* SPDX-License-Identifier: Apache-2.0 */
#include "api-request.h"

static int copy_text(const char *text, const char **ret)
{
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

int lkg_resource_copy(const struct lkg_resource *resource, struct lkg_resource *ret)
{
        struct lkg_resource copy = { 0 };

        if (copy_text(resource->group_version, &copy.group_version) < 0 ||
            copy_text(resource->plural, &copy.plural) < 0 || copy_text(resource->kind, &copy.kind) < 0 ||
            copy_text(resource->ns, &copy.ns) < 0 || copy_text(resource->name, &copy.name) < 0 ||
            copy_text(resource->subresource, &copy.subresource) < 0) {
                lkg_resource_deinit(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

void lkg_resource_deinit(struct lkg_resource *resource)
{
        free((char *)(uintptr_t)resource->group_version);
        free((char *)(uintptr_t)resource->plural);
        free((char *)(uintptr_t)resource->kind);
        free((char *)(uintptr_t)resource->ns);
        free((char *)(uintptr_t)resource->name);
        free((char *)(uintptr_t)resource->subresource);
        *resource = (struct lkg_resource){ 0 };
}

/* RFC 3986, 2.3: encode everything except unreserved characters as %XX; valid in a path and in a query. */
static void encode(struct lkg_buf *buf, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
                if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                    strchr("-._~", *p))
                        lkg_buf_putc(buf, (char)*p);
                else
                        lkg_buf_printf(buf, "%%%02X", *p);
        }
}

static int append_segment(struct lkg_buf *path, const char *what, const char *text, struct lkg_error *err)
{
        char quoted[5 * 64 + 8];

        if (!*text || strcmp(text, ".") == 0 || strcmp(text, "..") == 0 || strpbrk(text, "/%"))
                return lkg_error_set(err, -EINVAL, NULL, "%s is no %s of an object.",
                                     lkg_quote(text, strlen(text), quoted), what);
        lkg_buf_putc(path, '/');
        encode(path, text);
        return 0;
}

static int finish(const struct lkg_buf *path, struct lkg_error *err)
{
        return lkg_buf_failed(path) ? lkg_error_set(err, -ENOMEM, NULL, "path of a request") : 0;
}

int lkg_api_path(const struct lkg_resource *resource, bool with_name, struct lkg_buf *path,
                 struct lkg_error *err)
{
        int r = 0;

        lkg_buf_puts(path, strchr(resource->group_version, '/') ? "/apis/" : "/api/");
        lkg_buf_puts(path, resource->group_version);
        if (resource->ns) {
                lkg_buf_puts(path, "/namespaces");
                r = append_segment(path, "namespace", resource->ns, err);
        }
        if (r >= 0)
                r = append_segment(path, "resource", resource->plural, err);
        if (r >= 0 && with_name && resource->name)
                r = append_segment(path, "name", resource->name, err);
        if (r >= 0 && with_name && resource->name && resource->subresource)
                r = append_segment(path, "subresource", resource->subresource, err);
        return r < 0 ? r : finish(path, err);
}

int lkg_api_watch_path(const struct lkg_resource *resource, const char *version, unsigned seconds,
                       struct lkg_buf *path, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf unused = LKG_BUF_INIT;
        /* Here the name is part of a selector, but the same names are refused as in a path. */
        int r = append_segment(&unused, "name", resource->name, err);

        if (r >= 0)
                r = lkg_api_path(resource, /* with_name= */ false, path, err);
        if (r < 0)
                return r;
        lkg_buf_puts(path, "?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3D");
        encode(path, resource->name);
        lkg_buf_printf(path, "&timeoutSeconds=%u", seconds);
        if (version && !*version) {
                lkg_buf_puts(path, "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
        } else if (version) {
                lkg_buf_puts(path, "&resourceVersion=");
                encode(path, version);
        }
        return finish(path, err);
}

static void put_label(struct lkg_buf *path, const char *label, const char *value)
{
        lkg_buf_puts(path, "labelSelector=");
        encode(path, label);
        lkg_buf_puts(path, "%3D");
        encode(path, value);
}

int lkg_api_watch_list_path(const struct lkg_resource *resource, const char *label, const char *value,
                            const char *version, unsigned seconds, struct lkg_buf *path,
                            struct lkg_error *err)
{
        int r = lkg_api_path(resource, /* with_name= */ false, path, err);

        if (r < 0)
                return r;
        lkg_buf_puts(path, "?");
        put_label(path, label, value);
        lkg_buf_printf(path,
                       "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", seconds);
        encode(path, version);
        return finish(path, err);
}

int lkg_api_select_path(const struct lkg_resource *resource, const struct lkg_selection *selection,
                        struct lkg_buf *path, struct lkg_error *err)
{
        int r = lkg_api_path(resource, /* with_name= */ false, path, err);
        const char *separator = "?";

        if (r < 0)
                return r;
        if (selection->label) {
                lkg_buf_puts(path, separator);
                put_label(path, selection->label, selection->value);
                separator = "&";
        }
        if (selection->limit) {
                lkg_buf_printf(path, "%slimit=%u", separator, selection->limit);
                separator = "&";
        }
        if (selection->token) {
                lkg_buf_printf(path, "%scontinue=", separator);
                encode(path, selection->token);
        }
        return finish(path, err);
}

void lkg_api_describe(const struct lkg_resource *resource, char *buf, size_t size)
{
        const char *ns = resource->ns ? resource->ns : "", *name = resource->name ? resource->name : "";

        (void)snprintf(buf, size, "%s%s%s%s%s%s%s", resource->plural, resource->subresource ? "/" : "",
                       resource->subresource ? resource->subresource : "", *ns || *name ? " " : "", ns,
                       *ns && *name ? "/" : "", name);
}
