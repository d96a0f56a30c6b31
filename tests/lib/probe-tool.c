/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One probe as a program, so that a test can answer it.
 *
 *     probe-tool TIMEOUT-MS THRESHOLD URL [HEADER...]
 *
 * Asks ten times a second until its input ends, and prints a line of JSON for each change: {"health", "words", "good"}, with the time in
 * ns since when it has been good.
 */
#include <signal.h>

#include <lkg/probes.h>
#include <lkg/text.h>

static struct lkg_probe *probe;

static void on_changed(void *userdata)
{
        LKG_CLEANUP(lkg_json_deinit) struct lkg_json json = LKG_JSON_INIT;
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf line = LKG_BUF_INIT;
        char words[LKG_HEALTH_WORDS_MAX];

        lkg_json_map(&json, NULL, LKG_JSON_ROW);
        lkg_json_text(&json, "health", lkg_health_name(lkg_probe_health(probe, words)));
        lkg_json_foreign(&json, "words", words);
        lkg_json_u64(&json, "good", lkg_probe_good_ns(probe));
        lkg_json_end(&json);
        (void)lkg_json_write_line(&json, &line);
        (void)fputs(lkg_buf_text(&line), stdout);
        (void)fflush(stdout);
}

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        return sd_event_exit(sd_event_source_get_event(source), 0);
}

int main(int argc, char **argv)
{
        const struct lkg_strings headers = { argv + 4, argc > 4 ? (size_t)argc - 4 : 0 };
        struct lkg_probe_config config = { .headers = &headers, .interval_ns = 100 * LKG_NSEC_PER_MSEC };
        struct lkg_probes *probes;
        sd_event *event = NULL;
        int r;

        if (argc < 4 || signal(SIGPIPE, SIG_IGN) == SIG_ERR || sd_event_new(&event) < 0 ||
            sd_event_add_io(event, NULL, STDIN_FILENO, 0, on_input, NULL) < 0)
                return 64;
        config.timeout_ns = strtoull(argv[1], NULL, 10) * LKG_NSEC_PER_MSEC;
        config.failure_threshold = (unsigned)strtoul(argv[2], NULL, 10);
        config.url = argv[3];
        probes = lkg_probes_new(event, on_changed, NULL);
        probe = lkg_probe_new(probes);
        lkg_probe_ask(probe, &config);
        r = sd_event_loop(event);
        probe = lkg_probe_free(probe);
        lkg_probes_free(probes);
        sd_event_unref(event);
        return r < 0;
}
