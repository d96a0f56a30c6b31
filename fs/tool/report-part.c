/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report. */
#include "report.h"

void lkg_parts_add(struct lkg_parts *parts, const char *name, const char *data, size_t size, int error,
                   uint64_t modified_s)
{
        struct lkg_part *last = parts->n ? &parts->items[parts->n - 1] : NULL;

        if (!last || last->error != -EINPROGRESS || strcmp(last->name, name) != 0) {
                parts->items = lkg_tool_grow(parts->items, parts->n, sizeof(*parts->items));
                last = &parts->items[parts->n++];
        }
        *last = (struct lkg_part){ .name = lkg_tool_cut(name, strlen(name)),
                                   .data = lkg_tool_keep(calloc(size + 1, 1)),
                                   .size = size,
                                   .error = error,
                                   .modified_s = modified_s };
        if (size)
                memcpy(last->data, data, size);
}

const struct lkg_part *lkg_parts_find(const struct lkg_parts *parts, const char *name)
{
        for (size_t i = 0; i < parts->n; i++)
                if (strcmp(parts->items[i].name, name) == 0)
                        return &parts->items[i];
        return NULL;
}

/* ---- through a pipe ---- */

struct part_frame {
        size_t name_size, size;
        int64_t error; /* no padding: it is written as it is */
        uint64_t modified_s;
};

void lkg_parts_send(const char *name, const char *data, size_t size, int error, uint64_t modified_s)
{
        const struct part_frame frame = { strlen(name), size, error, modified_s };

        if (lkg_write_all(STDOUT_FILENO, &frame, sizeof(frame)) < 0 ||
            lkg_write_all(STDOUT_FILENO, name, frame.name_size) < 0 ||
            (size && lkg_write_all(STDOUT_FILENO, data, size) < 0))
                _exit(LKG_TOOL_FAILED); /* nobody listens any more */
}

void lkg_parts_receive(struct lkg_parts *parts, const char *data, size_t size)
{
        struct part_frame frame;

        while (size >= sizeof(frame)) {
                memcpy(&frame, data, sizeof(frame));
                data += sizeof(frame);
                size -= sizeof(frame);
                if (frame.name_size > size || frame.size > size - frame.name_size)
                        return; /* it was cut off */
                lkg_parts_add(parts, lkg_tool_cut(data, frame.name_size), data + frame.name_size, frame.size,
                              (int)frame.error, frame.modified_s);
                data += frame.name_size + frame.size;
                size -= frame.name_size + frame.size;
        }
}

/* ---- as a tree ---- */

static const char *reason_of(const struct lkg_part *part)
{
        int error = part->error;

        return *part->data                                    ? part->data
               : error == -EINPROGRESS || error == -ETIMEDOUT ? "it gave no answer in time"
               : error == -EBADMSG  ? "it cannot be decoded, so its secrets could not be masked"
               : error == -EFBIG    ? "it is too large"
               : error == -ENOTCONN ? "there is no view"
                                    : strerror(-error);
}

/* The lines `key=value` that have a value. */
static struct lkg_value *pairs_of(const char *text)
{
        struct lkg_value *list = lkg_tool_list();
        const char *line;
        size_t size;

        while (lkg_tool_next_line(&text, &line, &size)) {
                char *key = lkg_tool_cut(line, size);
                char *value = strchr(key, '=');
                struct lkg_value *item;

                if (!value || !value[1])
                        continue;
                *value++ = '\0';
                item = lkg_tool_texts(lkg_tool_map(), "key", key, "value", value, NULL);
                for (char *p = key; (p = strchr(p, '_'));)
                        *p = ' ';
                lkg_tool_append(list, lkg_tool_texts(item, "label", key, NULL));
        }
        return list;
}

static void put_content(struct lkg_value *node, const char *name, const char *text)
{
        static const char *const with_pairs[] = { "hold", "trial", "process", "remote", "system" };
        static const char *const columns[] = { "name",   "pid",     "parent",  "uid",  "state",
                                               "memory", "started", "program", "words" };
        struct lkg_value *json = *text == '{' || *text == '[' ? lkg_tool_decode(text) : NULL;

        if (json)
                lkg_tool_map_value(node, "json", json);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(with_pairs); i++) {
                if (strcmp(name, with_pairs[i]) != 0)
                        continue;
                lkg_tool_map_value(node, "pairs", pairs_of(text));
                lkg_tool_map_value(node, "map", lkg_tool_pairs(text));
        }
        if (strcmp(name, "processes") == 0)
                lkg_tool_map_value(node, "rows", lkg_tool_rows(text, columns, LKG_ARRAY_SIZE(columns), 1));
}

/* What is shown together, and how a part is called there. */
static const struct {
        const char *prefix, *list, *title;
} shown_in[] = {
        { "bad/", "marks", NULL },
        { "config/", "surroundings", NULL },
        { "environment/mounts", "surroundings", "Mounts of lkgfs" },
        { "environment/lkgfs.service", "surroundings", "systemd: lkgfs.service" },
        { "environment/systemd", "surroundings", "systemd: version" },
};

static struct lkg_value *node_of(const struct lkg_part *part, const char *title)
{
        const char *text = part->error < 0 ? "" : part->data, *last = strrchr(part->name, '/'),
                   *below = part->name + strcspn(part->name, "/");
        struct lkg_value *node = lkg_tool_texts(
                lkg_tool_map(), "path", part->name, "below", below + (*below == '/'), "title",
                title ? title : below, "text", text, "line", lkg_tool_cut(text, strcspn(text, "\n")), "said",
                part->data, "why", part->error < 0 ? reason_of(part) : NULL, NULL);
        char since[21];

        if (part->modified_s) {
                lkg_format_rfc3339(part->modified_s * LKG_NSEC_PER_SEC, since);
                lkg_tool_map_string(node, "since", since);
        }
        put_content(node, last ? last + 1 : part->name, text);
        return node;
}

static void list_node(struct lkg_value *root, const char *list, struct lkg_value *node)
{
        struct lkg_value *items = lkg_map_get(root, list);

        lkg_tool_append(items ? items : lkg_tool_map_list(root, list), node);
}

static struct lkg_value *enter(struct lkg_value *at, const char *name)
{
        struct lkg_value *ret = lkg_map_get(at, name);

        if (ret && !lkg_map_get(ret, "path")) /* else it is a part */
                return ret;
        ret = lkg_tool_map();
        lkg_tool_map_value(at, name, ret);
        return ret;
}

static void plant(struct lkg_value *root, const struct lkg_part *part)
{
        struct lkg_value *node, *at = root;
        const char *name = part->name, *slash;
        size_t i = 0;

        while (i < LKG_ARRAY_SIZE(shown_in) &&
               strncmp(name, shown_in[i].prefix, strlen(shown_in[i].prefix)) != 0)
                i++;
        node = node_of(part, i < LKG_ARRAY_SIZE(shown_in) ? shown_in[i].title : NULL);
        if (i < LKG_ARRAY_SIZE(shown_in))
                list_node(root, shown_in[i].list, node);
        if (part->error < 0)
                list_node(root, "unread", node);
        if (strstr(name, ".messages"))
                list_node(root, "messages", node);
        for (; (slash = strchr(name, '/')); name = slash + 1)
                at = enter(at, lkg_tool_cut(name, (size_t)(slash - name)));
        lkg_tool_map_value(at, name, node);
}

struct lkg_value *lkg_parts_tree(const struct lkg_parts *parts)
{
        struct lkg_value *root = lkg_tool_map();

        for (size_t i = 0; i < parts->n; i++)
                plant(root, &parts->items[i]);
        return root;
}

const struct lkg_value *lkg_parts_at(const struct lkg_value *directory, const char *name)
{
        return directory && lkg_value_type(directory) == LKG_MAP ? lkg_map_get(directory, name) : NULL;
}
