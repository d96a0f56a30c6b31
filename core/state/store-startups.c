/* SPDX-License-Identifier: Apache-2.0 */
/* The last starts of a component: one line each in startups.json. */
#include <limits.h>

#include "store-internal.h"

#define STARTUPS_NAME "startups.json"

/* A boot id is a UUID. */
static void read_boot(const struct lkg_fields *fields, struct lkg_startups *ret)
{
        if (lkg_fields_text(fields, "boot", ret->boot, sizeof(ret->boot)) &&
            ret->boot[strspn(ret->boot, "0123456789abcdef-")] == '\0')
                return;
        if (ret->boot[0])
                lkg_fields_complain(fields, "boot", "a boot id");
        ret->boot[0] = '\0';
}

/* Return: is it valid? A start without a time is of no use. */
static bool read_startup(const struct lkg_fields *fields, struct lkg_startup *ret)
{
        *ret = (struct lkg_startup){
                .time_ns = lkg_fields_time(fields, "time"),
                .pid = (int)lkg_fields_number(fields, "pid", INT_MAX, 0),
                .start_time = lkg_fields_number(fields, "startTime", UINT64_MAX - 1, 0),
                .counted = lkg_fields_flag(fields, "counted"),
                .local = lkg_fields_flag(fields, "local"),
        };
        return ret->time_ns > 0;
}

static void read_items(const struct lkg_fields *fields, struct lkg_startups *ret)
{
        const struct lkg_value *list = lkg_map_get(fields->map, "starts");
        size_t n;

        if (!list || lkg_value_type(list) != LKG_LIST) {
                lkg_fields_complain(fields, "starts", "a list");
                return;
        }
        n = lkg_value_size(list);
        if (n > LKG_STARTUPS_MAX)
                lkg_fields_complain(fields, "starts", "a shorter list");
        for (size_t i = n > LKG_STARTUPS_MAX ? n - LKG_STARTUPS_MAX : 0; i < n; i++) {
                char prefix[48];
                const struct lkg_fields item = { lkg_list_get(list, i), fields->file, prefix,
                                                 fields->report };

                (void)snprintf(prefix, sizeof(prefix), "starts[%zu]", i);
                if (lkg_value_type(item.map) != LKG_MAP) {
                        lkg_fields_complain(fields, "starts", "objects in it");
                        continue;
                }
                (void)snprintf(prefix, sizeof(prefix), "starts[%zu].", i);
                if (read_startup(&item, &ret->items[ret->n_items]))
                        ret->n_items++;
        }
}

int lkg_store_load_startups(const struct lkg_store_component *c, struct lkg_startups *ret,
                            struct lkg_report *report)
{
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *map = NULL;
        char path[LKG_RELEASE_PATH], file[LKG_STORE_PATH];
        int r;

        *ret = (struct lkg_startups){ .n_items = 0 };
        lkg_store_release_path(c, STARTUPS_NAME, path);
        (void)snprintf(file, sizeof(file), "%s/%s", c->path, path);
        r = lkg_store_read(c->fd, path, file, report, &map);
        if (r > 0) {
                const struct lkg_fields fields = { map, file, "", report };

                read_boot(&fields, ret);
                read_items(&fields, ret);
        }
        return r < 0 ? r : 0;
}

static void put_startup(struct lkg_json *json, const struct lkg_startup *startup)
{
        lkg_json_map(json, NULL, LKG_JSON_ROW);
        lkg_json_time_ns(json, "time", startup->time_ns);
        lkg_json_i64(json, "pid", startup->pid);
        lkg_json_u64(json, "startTime", startup->start_time);
        lkg_json_bool(json, "counted", startup->counted);
        lkg_json_bool(json, "local", startup->local);
        lkg_json_end(json);
}

int lkg_store_save_startups(const struct lkg_store_component *c, const struct lkg_startups *startups,
                            struct lkg_error *err)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        char path[LKG_RELEASE_PATH];
        int r;

        lkg_store_begin(&json, LKG_JSON_PRETTY);
        lkg_store_put_text(&json, "boot", startups->boot);
        lkg_json_list(&json, "starts", LKG_JSON_AROUND);
        for (size_t i = 0; i < startups->n_items; i++)
                put_startup(&json, &startups->items[i]);
        lkg_json_end(&json);
        lkg_json_end(&json);
        lkg_store_release_path(c, STARTUPS_NAME, path);
        r = lkg_store_write(c->fd, path, &json, err);
        return r < 0 ? lkg_error_wrap(err, r, "save the starts of %s", c->path) : 0;
}

void lkg_startups_add(struct lkg_startups *startups, const char *boot, const struct lkg_startup *startup)
{
        /* Process ids and start times restart at every boot: those of an earlier boot no longer identify a process. */
        if (strcmp(startups->boot, boot) != 0)
                for (size_t i = 0; i < startups->n_items; i++)
                        startups->items[i].start_time = 0;
        (void)snprintf(startups->boot, sizeof(startups->boot), "%s", boot);
        if (startups->n_items == LKG_STARTUPS_MAX)
                memmove(startups->items, startups->items + 1,
                        --startups->n_items * sizeof(startups->items[0]));
        startups->items[startups->n_items++] = *startup;
}

/* "Have I seen this process?" - is its start on record? Outlives the engine. */
bool lkg_startups_knows(const struct lkg_startups *startups, const char *boot, int pid, uint64_t start_time)
{
        if (!*boot || strcmp(startups->boot, boot) != 0 || pid < 0 || start_time == 0)
                return false;
        for (size_t i = 0; i < startups->n_items; i++)
                if (startups->items[i].pid == pid && startups->items[i].start_time == start_time)
                        return true;
        return false;
}
