/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of places, with a fake API server, in steps: which place counts, and what the answer is: rows/places.rows. $TOP is the source directory.
 * Rule: docs/specification.md 4.2.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <lkg/config.h>
#include <lkg/places.h>

#include "core/reference/apiserver.h"
#include "cluster-steps.h"
#include "tmpdir.h"

static char top[TMPDIR_MAX];
static int fd = -EBADF;
static sd_event *event;
static struct lkg_config *config;
static struct lkg_places *places;
static unsigned n_turns;
/* Result of earlier answers. */
static struct lkg_config_source assigned;
static char node_uid[64];
static bool carried_out;
static struct lkg_places_answer answer; /* the last one */

/* ---- a node ---- */

static sd_event *steps_event(void)
{
        return event;
}

static bool turn(void *userdata)
{
        n_turns++;
        return true;
}

static int end(void **state)
{
        if (!event)
                return 0;
        lkg_places_answer_deinit(&answer);
        places = lkg_places_free(places);
        config = lkg_config_free(config);
        event = sd_event_unref(event);
        fd = lkg_close(fd);
        return tmpdir_remove(top);
}

STEP(steps, 0)
{
        assert_int_equal(end(NULL), 0);
        assert_int_equal(tmpdir_make(top), 0);
        assert_true(sd_event_new(&event) >= 0);
        fd = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        answer = (struct lkg_places_answer){ 0 };
        assigned = (struct lkg_config_source){ 0 };
        *node_uid = '\0';
        n_turns = 0;
        carried_out = false;
        fake_reset();
        fake_credential(LKG_CREDENTIAL_NODE);
}

/* Of the settings below `remote`; $TOP stands at most once in them. */
static struct lkg_config *read_config(const char *remote)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        const char *dollar = strstr(remote, "$TOP");
        struct lkg_config *ret = NULL;
        char text[1024];

        (void)snprintf(text, sizeof(text),
                       "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"remote\":{\"enabled\":true,"
                       "\"nodeName\":\"n1\"%.*s%s%s}}",
                       LKG_CONFIG_API_VERSION, LKG_CONFIG_KIND,
                       dollar ? (int)(dollar - remote) : (int)strlen(remote), remote, dollar ? top : "",
                       dollar ? dollar + 4 : "");
        assert_int_equal(lkg_decode_json(text, strlen(text), 0, NULL, &report, &doc), 0);
        if (lkg_config_decode(doc, "/etc/lkgfs", &ret, &report) < 0)
                fail_msg("%s: %s", text, report.findings[0].text);
        return ret;
}

static void begin(const char *remote, bool wanted)
{
        const struct lkg_places_options options = {
                .event = event,
                .source_path = top,
                .source_fd = fd,
                .runtime_fd = fd,
                .turn = turn,
        };

        config = read_config(remote);
        places = lkg_places_new(&options, config);
        lkg_places_open(places, wanted, /* fresh= */ true);
        lkg_places_run(places);
        settle();
}

STEP(begin, 1)
{
        begin(q->parts[0], true);
}

STEP(begin_unwanted, 1)
{
        begin(q->parts[0], false);
        assert_null(lkg_places_findings(places));
}

STEP(configure, 1)
{
        struct lkg_config *before = config;

        config = read_config(q->parts[0]);
        lkg_places_set_config(places, config);
        lkg_config_free(before);
        lkg_places_open(places, true, false);
}

STEP(ask, 1)
{
        static const char *const says[] = {
                [LKG_PLACES_UNCHANGED] = "unchanged", [LKG_PLACES_UNKNOWN] = "unknown",
                [LKG_PLACES_LOCAL] = "local",         [LKG_PLACES_CONFIGMAP] = "ConfigMap",
                [LKG_PLACES_WAITING] = "waiting",
        };
        const struct lkg_touched everything = { .everything = true };
        const struct lkg_places_known known = { .assigned = &assigned,
                                                .node_uid = node_uid,
                                                .carried_out = carried_out };
        const struct lkg_informer *followed;
        const char *since;

        lkg_places_answer_deinit(&answer);
        lkg_places_desired(places, &known, *q->parts[0] ? NULL : &everything, &answer);
        lkg_buf_puts(ret, says[answer.says]);
        if (answer.says == LKG_PLACES_CONFIGMAP)
                lkg_buf_printf(ret, " %s", answer.configmap->name);
        if (*answer.source.uid)
                lkg_buf_printf(ret, " %s@%s", answer.source.uid, answer.source.version);
        lkg_buf_printf(ret, ", place %s", lkg_reference_place_name(answer.place));
        if (answer.node_uid)
                lkg_buf_printf(ret, ", Node %s", answer.node_uid);
        if (answer.again_at_ns < UINT64_MAX)
                lkg_buf_puts(ret, ", later again");
        followed = fake_find("configmaps");
        lkg_buf_printf(ret, ", follows %s", followed ? followed->name : "nothing");
        since = strstr(answer.words, " since ");
        if (*answer.words) /* without the time of an outage */
                lkg_buf_printf(ret, ": %.*s",
                               since ? (int)(since - answer.words) : (int)strlen(answer.words),
                               answer.words);
}

/* As the engine does. */
STEP(carry_out, 0)
{
        assert_int_equal(answer.says, LKG_PLACES_CONFIGMAP);
        assigned = answer.source;
        carried_out = true;
        if (answer.node_uid)
                (void)snprintf(node_uid, sizeof(node_uid), "%s", answer.node_uid);
}

STEP(not_carried_out, 0)
{
        carried_out = false;
}

STEP(ask_places, 0)
{
        lkg_places_ask(places);
}

STEP(again, 0)
{
        lkg_places_again(places);
}

STEP(looks_at_file, 0)
{
        lkg_buf_puts(ret, lkg_places_looks_at_file(places) ? "yes" : "no");
}

/* How often the engine was woken since the last time. */
STEP(turns, 0)
{
        lkg_buf_printf(ret, "%u", n_turns);
        n_turns = 0;
}

/* ---- what others say ---- */

static void put(const char *name, const char *text)
{
        assert_int_equal(lkg_write_file_atomic(fd, name, text, strlen(text), 0644, false, NULL), 0);
}

STEP(file, 4)
{
        put("cm", configmap_json(q->parts[0], q->parts[1], q->parts[2], q->parts[3]));
}

STEP(put, 2)
{
        put(q->parts[0], q->parts[1]);
}

STEP(informer, 1)
{
        lkg_buf_puts(ret, fake_find(q->parts[0]) ? "there" : "none");
}

/* There was one, and it is over in so many seconds. */
STEP(flood, 1)
{
        uint64_t s = strtoull(q->parts[0], NULL, 10);

        places->apiserver->pace.full_ns = s ? lkg_boottime_ns() + s * LKG_NSEC_PER_SEC : 0;
}

ROWS_WITH(places, rows_steps, NULL, end)
