/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and cancels requests at random from every place where the interface allows it: from every callback,
 * the request's own and those of others, while identities change and replies break off. Finds errors that
 * only an address sanitizer or a count reveals.
 *
 *     http-storm --kubeconfig FILE --requests N --seed S PATH...
 *
 * A PATH that begins with `~` is read as a stream. Prints one JSON object: started, ended, cancelled; ended
 * + cancelled = started. The last ten requests are left to lkg_http_free(). Exit: 0; 64 usage; 70 otherwise.
 */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sysexits.h>

#include <lkg/http.h>

#define SLOTS      32u
#define LEFT_ALONE 10u
#define DEPTH_MAX  8u

struct storm;

struct slot {
        struct storm *storm;
        struct lkg_http_transfer *transfer;
};

struct storm {
        sd_event *event;
        struct lkg_http *http;
        struct lkg_credential *credential;
        struct lkg_identity identities[3]; /* the same identity, with different serials */
        const char *kubeconfig;
        char **paths;
        size_t n_paths;
        struct slot slots[SLOTS];
        unsigned seed, limit, depth;
        unsigned n_started, n_ended, n_cancelled;
        bool wrong;
};

static void stir(struct storm *storm);

static unsigned dice(struct storm *storm, unsigned sides)
{
        return (unsigned)rand_r(&storm->seed) % sides;
}

static int on_data(const char *data, size_t size, void *userdata)
{
        struct slot *slot = userdata;

        slot->storm->wrong |= !data || size == 0 || !slot->transfer;
        stir(slot->storm);
        return dice(slot->storm, 40) == 0 ? -EBADMSG : 0;
}

static void on_open(void *userdata)
{
        stir(((struct slot *)userdata)->storm);
}

static void on_end(const struct lkg_http_result *result, void *userdata)
{
        struct slot *slot = userdata;

        slot->transfer = NULL;
        slot->storm->n_ended++;
        slot->storm->wrong |= result->error == 0 ? result->status == 0 : !*result->words;
        stir(slot->storm);
}

static void start(struct storm *storm, struct slot *slot)
{
        const char *path = storm->paths[dice(storm, (unsigned)storm->n_paths)];
        bool stream = *path == '~';
        const struct lkg_http_request request = {
                .method = "GET",
                .path = path + stream,
                .max_bytes = 1u << 20,
                .deadline_ns = (100 + dice(storm, 400)) * LKG_NSEC_PER_MSEC,
                .idle_ns = 200 * LKG_NSEC_PER_MSEC,
                .on_data = stream ? on_data : NULL,
                .on_open = stream ? on_open : NULL,
                .on_end = on_end,
                .userdata = slot,
        };
        struct lkg_identity *identity = &storm->identities[dice(storm, 30) ? 0 : dice(storm, 3)];

        slot->storm = storm;
        if (lkg_http_start(storm->http, identity, &request, &slot->transfer, NULL) < 0)
                (void)sd_event_exit(storm->event, EX_SOFTWARE);
        storm->n_started++;
}

/* Two slots: an idle one starts a request, a busy one may be cancelled, even from its own callback. */
static void stir(struct storm *storm)
{
        if (storm->depth >= DEPTH_MAX)
                return;
        storm->depth++;
        for (unsigned i = 0; i < 2; i++) {
                struct slot *slot = &storm->slots[dice(storm, SLOTS)];

                if (!slot->transfer && storm->n_started < storm->limit) {
                        start(storm, slot);
                } else if (slot->transfer && dice(storm, 4) == 0) {
                        slot->transfer = lkg_http_cancel(slot->transfer);
                        storm->n_cancelled++;
                }
        }
        storm->depth--;
}

static bool is_quiet(const struct storm *storm)
{
        for (size_t i = 0; i < SLOTS; i++)
                if (storm->slots[i].transfer)
                        return false;
        return storm->n_started >= storm->limit;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct storm *storm = userdata;

        (void)usec;
        stir(storm);
        if (is_quiet(storm)) {
                (void)printf("{\"started\": %u, \"ended\": %u, \"cancelled\": %u}\n", storm->n_started,
                             storm->n_ended, storm->n_cancelled);
                for (size_t i = 0; i < LEFT_ALONE; i++)
                        start(storm, &storm->slots[i]);
                return sd_event_exit(storm->event, storm->wrong ? EX_SOFTWARE : EX_OK);
        }
        (void)sd_event_source_set_time_relative(source, 2000);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static bool parse_options(struct storm *storm, int argc, char **argv)
{
        static const struct option options[] = {
                { "kubeconfig", required_argument, NULL, 'k' },
                { "requests", required_argument, NULL, 'r' },
                { "seed", required_argument, NULL, 's' },
                { 0 },
        };
        int option;

        while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (option == 'k')
                        storm->kubeconfig = optarg;
                else if (option == 'r')
                        storm->limit = (unsigned)strtoul(optarg, NULL, 10);
                else if (option == 's')
                        storm->seed = (unsigned)strtoul(optarg, NULL, 10);
                else
                        return false;
        }
        storm->paths = argv + optind;
        storm->n_paths = (size_t)(argc - optind);
        return storm->kubeconfig && storm->limit > 0 && storm->n_paths > 0;
}

static int find_identities(struct storm *storm, int root_fd)
{
        const struct lkg_credential_options options = {
                .kubeconfig = storm->kubeconfig,
                .source_path = "/",
                .source_fd = root_fd,
        };
        const struct lkg_identity *identity;

        storm->credential = lkg_credential_new(&options);
        (void)lkg_credential_refresh(storm->credential, lkg_realtime_ns());
        identity = lkg_credential_identity(storm->credential);
        if (!identity)
                return -ENOKEY;
        for (size_t i = 0; i < LKG_ARRAY_SIZE(storm->identities); i++) {
                storm->identities[i] = *identity; /* texts are borrowed; the references never run out */
                storm->identities[i].refs = 1;
                storm->identities[i].serial += i;
        }
        return 0;
}

static int run(struct storm *storm, int root_fd)
{
        struct lkg_http_options options = { .user_agent = "http-storm", .max_bytes = 4u << 20 };
        int r = sd_event_default(&storm->event);

        options.event = storm->event;
        if (r >= 0)
                r = find_identities(storm, root_fd);
        if (r >= 0)
                r = sd_event_add_time(storm->event, NULL, CLOCK_MONOTONIC, 0, 100, on_tick, storm);
        if (r >= 0) {
                storm->http = lkg_http_new(&options);
                r = sd_event_loop(storm->event);
        }
        (void)lkg_http_free(storm->http);
        for (size_t i = 0; i < LKG_ARRAY_SIZE(storm->identities);
             i++) /* every transfer has dropped its reference */
                if (storm->http && storm->identities[i].refs != 1)
                        r = -EBUSY;
        (void)lkg_credential_free(storm->credential);
        sd_event_unref(storm->event);
        return r;
}

int main(int argc, char **argv)
{
        struct storm storm = { 0 };
        LKG_CLEANUP(lkg_closep) int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (!parse_options(&storm, argc, argv) || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
                (void)fputs("usage: http-storm --kubeconfig FILE --requests N --seed S PATH...\n", stderr);
                return EX_USAGE;
        }
        r = run(&storm, root_fd);
        if (r < 0)
                (void)fprintf(stderr, "http-storm: %s\n", strerror(-r));
        return r < 0 ? EX_SOFTWARE : r;
}
