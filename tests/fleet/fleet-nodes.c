/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many virtual nodes in one process, with a real clock and a real API server: each has the product's own client, credential,
 * informers, reporter and slots (<lkg/places.h>) and the product's own lifecycle (virtual-node.h). Only disk and component are not
 * there. fleet.py starts several of these, plays a scenario and judges what they print.
 *
 *     fleet-nodes --directory DIR --source NAMESPACE/NAME [--first I] [--nodes N] [--duration S] [--crash-every S]
 *                 [--spread S] [--lapse K] [--wrong-clocks] [--namespace NS]
 *
 * Node I is called node-I and has the kubeconfig DIR/node-I.conf. What a content does to its component is the word after
 * `behaves:` in it:
 *
 *     good       the component lives          hardware   it crash-loops on every 50th node
 *     bad        it crash-loops               vanishes   the node disappears when it has switched
 *
 * Prints JSON lines {"t": CLOCK_BOOTTIME, "node", "what", "version"}: waiting, switched, broken, mended, good, bad, back, halted, vanished.
 * A line `figures` on standard input asks for one line of figures; the end of the input ends the program, with a last one.
 *
 * --lapse K: patience and windows of the slots pass K times faster than the clock (nodes that vanish would take six minutes).
 * --wrong-clocks: each node has another wall time, wrong by up to ten years; only for its slots, because certificates would be
 * invalid. Both are in slot-clock.c.
 *
 * Exit: 0; 1: a node could not be made; 64: usage.
 */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include <lkg/documents.h>
#include <lkg/base.h>
#include <lkg/places.h>

#include "slot-clock.h"
#include "virtual-node.h"

#define S            LKG_NSEC_PER_SEC
#define CONTENTS_MAX 64u

enum behaviour { LIVES, BREAKS, BREAKS_SOME, VANISHES };

static const char *const behaviours[] = { "good", "bad", "hardware", "vanishes" };

struct node {
        struct virtual_node v;
        unsigned number;
        char name[32];
        bool gone, broken, carried_out;
        struct lkg_config *config;
        struct lkg_places *places;
        struct lkg_rollout_limits limits;
        struct lkg_config_source limits_of;
        char words[256]; /* why it waits */
        char halted[LKG_SHA256_HEX], waiting[LKG_SHA256_HEX];
        char node_uid[64];
        sd_event_source *timer; /* next step of the component and its trial */
        uint64_t due_ns;
};

static struct fleet {
        sd_event *event;
        struct node *nodes;
        unsigned n_started;
        int fd;
        sd_event_source *starter;
        struct {
                char sha256[LKG_SHA256_HEX];
                enum behaviour behaviour;
        } contents[CONTENTS_MAX];
        unsigned n_contents;
} fleet;

static struct options {
        const char *directory, *source, *ns;
        unsigned first, n_nodes;
        uint64_t duration_ns, crash_ns, spread_ns;
} opt = { .ns = LKG_SLOTS_NAMESPACE, .n_nodes = 1, .duration_ns = 10 * S, .crash_ns = S };

/* ---- what is printed ---- */

static void tell(const struct node *node, const char *what, const struct lkg_config_source *source)
{
        (void)printf("{\"t\":%.3f,\"node\":%u,\"what\":\"%s\",\"version\":\"%s\"}\n",
                     (double)lkg_boottime_ns() / (double)S, node->number, what, source->version);
}

static unsigned long long resident_bytes(void)
{
        unsigned long long total = 0, pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");

        if (file && fscanf(file, "%llu %llu", &total, &pages) != 2)
                pages = 0;
        if (file)
                (void)fclose(file);
        return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static void add_figures(struct node *node, struct lkg_remote_status *sum, uint64_t *conflicts)
{
        struct lkg_remote_status status;

        if (!node->places || !lkg_places_findings(node->places))
                return;
        lkg_places_status(node->places, &status);
        sum->received_bytes += status.received_bytes;
        sum->sent_bytes += status.sent_bytes;
        sum->n_connections += status.n_connections;
        *conflicts += status.slots.n_conflicts;
        sum->n_counts = status.n_counts > sum->n_counts ? status.n_counts : sum->n_counts;
        for (size_t i = 0; i < status.n_counts; i++) {
                sum->counts[i].code = status.counts[i].code;
                sum->counts[i].n += status.counts[i].n;
        }
}

static void tell_figures(void)
{
        struct lkg_remote_status sum = { .n_counts = 0 };
        struct rusage usage = { .ru_maxrss = 0 };
        uint64_t conflicts = 0;

        for (unsigned i = 0; i < fleet.n_started; i++)
                add_figures(&fleet.nodes[i], &sum, &conflicts);
        (void)getrusage(RUSAGE_SELF, &usage);
        (void)printf("{\"t\":%.3f,\"what\":\"figures\",\"nodes\":%u,\"memory\":%llu,\"cpu\":%.2f,"
                     "\"received\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"connections\":%" PRIu64
                     ",\"conflicts\":%" PRIu64 ",\"answers\":{",
                     (double)lkg_boottime_ns() / (double)S, fleet.n_started, resident_bytes(),
                     (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                             (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                     sum.received_bytes, sum.sent_bytes, sum.n_connections, conflicts);
        for (size_t i = 0; i < sum.n_counts; i++)
                (void)printf("%s\"%s\":%" PRIu64, i ? "," : "", sum.counts[i].code, sum.counts[i].n);
        (void)printf("}}\n");
}

/* ---- contents ---- */

static enum behaviour behaviour_of(const struct lkg_config_source *source)
{
        for (unsigned i = 0; i < fleet.n_contents; i++)
                if (strcmp(fleet.contents[i].sha256, source->sha256) == 0)
                        return fleet.contents[i].behaviour;
        return LIVES; /* the local configuration */
}

static void note_content(const struct lkg_configmap *configmap, const struct lkg_config_source *source)
{
        struct lkg_error err = { 0 };
        const char *text = "", *word;
        size_t size = 0;

        for (unsigned i = 0; i < fleet.n_contents; i++)
                if (strcmp(fleet.contents[i].sha256, source->sha256) == 0)
                        return;
        if (fleet.n_contents == CONTENTS_MAX ||
            lkg_configmap_payload(configmap, source->key, &text, &size, &err) < 0)
                return;
        word = memmem(text, size, "behaves: ", 9);
        (void)snprintf(fleet.contents[fleet.n_contents].sha256, LKG_SHA256_HEX, "%s", source->sha256);
        for (size_t i = 0; word && i < LKG_ARRAY_SIZE(behaviours); i++)
                if (strncmp(word + 9, behaviours[i], strlen(behaviours[i])) == 0)
                        fleet.contents[fleet.n_contents].behaviour = (enum behaviour)i;
        fleet.n_contents++;
}

static bool breaks(const struct node *node)
{
        enum behaviour behaviour = behaviour_of(&node->v.l.pointers.active);

        return behaviour == BREAKS || (behaviour == BREAKS_SOME && node->number % 50 == 7);
}

/* ---- a node: what the engine does (assignment.c, remote.c) ---- */

static void saves(const struct lkg_pointers *next, void *userdata)
{
        const struct node *node = userdata;
        const struct lkg_pointers *p = &node->v.pointers;

        if (!lkg_config_source_equal(&next->good.source, &p->good.source))
                tell(node, "good", &next->good.source);
        if (lkg_config_source_equal(&next->active, &p->active))
                return;
        tell(node, lkg_config_source_equal(&next->active, &next->assigned) ? "switched" : "back",
             &next->active);
}

static void note_broken(struct node *node, bool broken)
{
        if (node->broken != broken)
                tell(node, broken ? "broken" : "mended", &node->v.l.pointers.active);
        node->broken = broken;
}

static void follow(struct node *node)
{
        const struct lkg_places_known known = { .assigned = &node->v.l.pointers.assigned,
                                                .node_uid = node->node_uid,
                                                .carried_out = node->carried_out };
        struct lkg_places_answer answer;
        struct lkg_rollout rollout;

        lkg_places_desired(node->places, &known, NULL, &answer);
        if (answer.node_uid)
                (void)snprintf(node->node_uid, sizeof(node->node_uid), "%s", answer.node_uid);
        if (answer.says == LKG_PLACES_CONFIGMAP) {
                note_content(answer.configmap, &answer.source);
                lkg_rollout_decide(answer.configmap, node->node_uid, &rollout);
                node->limits = rollout.limits;
                node->limits_of = answer.source;
                (void)virtual_node_assign(&node->v, &answer.source, lkg_boottime_ns());
        }
        if (answer.says != LKG_PLACES_UNCHANGED)
                node->carried_out = answer.says == LKG_PLACES_CONFIGMAP;
        lkg_places_answer_deinit(&answer);
}

/* As slot-wish.c. Return: may it switch? */
static bool has_slot(struct node *node)
{
        const struct lkg_pointers *p = &node->v.l.pointers;
        struct lkg_slot_wish wish = { .duration_ns = opt.duration_ns * slot_clock.lapse };
        bool wants = virtual_node_wants(&node->v);
        enum lkg_slot_verdict verdict;

        if (!node->limits.max_in_trial || !lkg_config_source_equal(&node->limits_of, &p->assigned))
                return true;
        lkg_rollout_id_of(&p->assigned, &wish.id);
        wish.any = wants && !lkg_config_source_same_content(&p->assigned, &p->good.source);
        wish.newest = lkg_config_source_same_content(&p->assigned, lkg_places_newest(node->places));
        wish.max_in_trial = node->limits.max_in_trial;
        wish.max_failures = node->limits.max_failures;
        wish.fleet = node->limits.fleet;
        verdict = lkg_places_slot(node->places, &wish, node->words);
        if (!wish.any || verdict == LKG_SLOT_GRANTED)
                *node->words = '\0';
        else if (strcmp(node->waiting, p->assigned.sha256) != 0)
                tell(node, "waiting", &p->assigned);
        if (wish.any)
                (void)snprintf(node->waiting, sizeof(node->waiting), "%s", p->assigned.sha256);
        if (wish.any && verdict == LKG_SLOT_HALTED && strcmp(node->halted, p->assigned.sha256) != 0) {
                (void)snprintf(node->halted, sizeof(node->halted), "%s", p->assigned.sha256);
                tell(node, "halted", &p->assigned);
        }
        return !wish.any || verdict == LKG_SLOT_GRANTED;
}

static void run_component(struct node *node, uint64_t now_ns)
{
        const struct lkg_trial_rules rules = { .duration_ns = opt.duration_ns,
                                               .threshold = 1,
                                               .stable_for_ns =
                                                       lkg_trial_stable_for(60 * S, opt.duration_ns) };
        unsigned n_marks = node->v.n_marks;

        note_broken(node, breaks(node));
        (void)virtual_node_serve(&node->v, &rules, now_ns);
        if (behaviour_of(&node->v.l.pointers.active) == VANISHES) {
                tell(node, "vanished", &node->v.l.pointers.active);
                node->gone = true;
                return;
        }
        if (breaks(node))
                (void)virtual_node_crash(&node->v, now_ns);
        else
                (void)virtual_node_live(&node->v, now_ns);
        (void)virtual_node_tick(&node->v, now_ns);
        if (node->v.n_marks > n_marks)
                tell(node, "bad", &node->v.marks[n_marks].source);
        note_broken(node, breaks(node));
}

static void report(struct node *node)
{
        const struct lkg_pointers *p = &node->v.l.pointers;
        bool bad = virtual_node_is_bad(&node->v, &p->assigned);
        char message[300];
        const struct lkg_node_condition condition = {
                .status = bad ? "False" : "True",
                .reason = bad ? node->v.marks[node->v.n_marks - 1].reason : node->words,
                .message = message,
                .transition_ns = S,
                .figures = *node->words != '\0',
        };

        (void)snprintf(message, sizeof(message), "using %s (UID: %.64s)",
                       lkg_config_source_equal(&p->active, &p->assigned) ? "current" : "last-known-good",
                       p->active.uid);
        lkg_places_published(node->places, &condition);
}

static void arm(struct node *node)
{
        uint64_t due_ns = virtual_node_due(&node->v);

        if (breaks(node) && node->v.start_ns < due_ns)
                due_ns = node->v.start_ns;
        if (node->gone)
                due_ns = 0;
        node->due_ns = due_ns;
        if (due_ns != UINT64_MAX)
                (void)sd_event_source_set_time(node->timer, due_ns / 1000 + 1);
        (void)sd_event_source_set_enabled(node->timer,
                                          due_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static void cycle(struct node *node)
{
        uint64_t now_ns = lkg_boottime_ns();

        if (node->gone)
                return;
        follow(node);
        if (has_slot(node) && virtual_node_wants(&node->v)) {
                (void)virtual_node_switch(&node->v, now_ns);
                node->due_ns = 0;
        }
        if (now_ns >=
            node->due_ns) { /* nothing else changes what the component does, and there are many nodes */
                run_component(node, now_ns);
                if (!node->gone)
                        (void)has_slot(node);
        }
        if (!node->gone)
                report(node);
        arm(node);
}

static bool turn(void *userdata)
{
        cycle(userdata);
        return true;
}

static enum lkg_slot_outcome slot_outcome(const char *uid, const char *sha256,
                                          char reason[static LKG_SLOT_REASON_MAX], void *userdata)
{
        const struct node *node = userdata;

        return virtual_node_outcome(&node->v, uid, sha256, reason);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct node *node = userdata;

        (void)source;
        (void)usec;
        if (node->gone)
                node->places = lkg_places_free(node->places);
        else
                cycle(node);
        return 0;
}

/* ---- starting ---- */

static int configure(struct node *node)
{
        LKG_CLEANUP(lkg_report_deinit) struct lkg_report report = LKG_REPORT_INIT;
        LKG_CLEANUP(lkg_value_unrefp) struct lkg_value *doc = NULL;
        char text[1024];
        int r;

        (void)snprintf(text, sizeof(text),
                       "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"remote\":{\"enabled\":true,"
                       "\"nodeName\":\"%s\",\"kubeconfig\":\"%s/%s.conf\",\"references\":[\"static\"],"
                       "\"static\":{\"namespace\":\"%.*s\",\"name\":\"%s\"},\"rolloutNamespace\":\"%s\"}}",
                       LKG_CONFIG_API_VERSION, LKG_CONFIG_KIND, node->name, opt.directory, node->name,
                       (int)strcspn(opt.source, "/"), opt.source, strchr(opt.source, '/') + 1, opt.ns);
        r = lkg_decode_json(text, strlen(text), 0, NULL, &report, &doc);
        if (r >= 0)
                r = lkg_config_decode(doc, "/etc/lkgfs", &node->config, &report);
        if (r < 0)
                (void)fprintf(stderr, "%s: %s\n", text,
                              report.n_findings ? report.findings[0].text : strerror(-r));
        return r;
}

static int start_node(struct node *node, unsigned number)
{
        const struct virtual_node_ops ops = { .saves = saves, .userdata = node };
        const struct lkg_places_options options = {
                .event = fleet.event,
                .source_path = opt.directory,
                .source_fd = fleet.fd,
                .runtime_fd = fleet.fd,
                .turn = turn,
                .slot_outcome = slot_outcome,
                .userdata = node,
        };
        int r;

        virtual_node_init(&node->v, &ops);
        node->v.start_every_ns = opt.crash_ns;
        node->number = number;
        (void)snprintf(node->name, sizeof(node->name), "node-%u", number);
        r = configure(node);
        if (r >= 0)
                r = sd_event_add_time(fleet.event, &node->timer, CLOCK_BOOTTIME, 0, 1000, on_timer, node);
        if (r >= 0)
                r = sd_event_source_set_enabled(node->timer, SD_EVENT_OFF);
        if (r < 0) {
                (void)fprintf(stderr, "%s: %s\n", node->name, strerror(-r));
                return r;
        }
        node->places = lkg_places_new(&options, node->config);
        lkg_places_open(node->places, /* wanted= */ true, /* fresh= */ true);
        lkg_places_run(node->places);
        return 0;
}

static int on_start(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct node *node = &fleet.nodes[fleet.n_started];

        (void)usec;
        (void)userdata;
        if (start_node(node, opt.first + fleet.n_started) < 0)
                return sd_event_exit(fleet.event, 1);
        if (++fleet.n_started == opt.n_nodes)
                return sd_event_source_set_enabled(source, SD_EVENT_OFF);
        (void)sd_event_source_set_time(source, (lkg_boottime_ns() + opt.spread_ns / opt.n_nodes) / 1000 + 1);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- commands ---- */

static int on_input(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        char text[256];
        ssize_t n = read(fd, text, sizeof(text));

        (void)source;
        (void)revents;
        (void)userdata;
        if (n <= 0) /* whoever drives this has gone, or is done */
                return sd_event_exit(fleet.event, 0);
        for (ssize_t i = 0; i < n; i++)
                if (text[i] == '\n')
                        tell_figures();
        return 0;
}

static void end(void)
{
        for (unsigned i = 0; i < fleet.n_started; i++) {
                lkg_places_free(fleet.nodes[i].places);
                sd_event_source_disable_unref(fleet.nodes[i].timer);
                lkg_config_free(fleet.nodes[i].config);
        }
        sd_event_source_disable_unref(fleet.starter);
        sd_event_unref(fleet.event);
        free(fleet.nodes);
        if (fleet.fd >= 0)
                (void)close(fleet.fd);
}

static int run(void)
{
        int r = sd_event_new(&fleet.event);

        fleet.fd = open(opt.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fleet.nodes = calloc(opt.n_nodes, sizeof(*fleet.nodes));
        if (fleet.fd < 0 || !fleet.nodes || r < 0)
                return r < 0 ? r : -ENOMEM;
        r = sd_event_add_time(fleet.event, &fleet.starter, CLOCK_BOOTTIME, 0, 1000, on_start, NULL);
        if (r >= 0)
                r = sd_event_add_io(fleet.event, NULL, STDIN_FILENO, EPOLLIN, on_input, NULL);
        return r < 0 ? r : sd_event_loop(fleet.event);
}

static bool parse(int argc, char **argv)
{
        static const struct option options[] = {
                { "directory", required_argument, NULL, 'd' },
                { "source", required_argument, NULL, 's' },
                { "namespace", required_argument, NULL, 'n' },
                { "first", required_argument, NULL, 'f' },
                { "nodes", required_argument, NULL, 'N' },
                { "duration", required_argument, NULL, 't' },
                { "crash-every", required_argument, NULL, 'c' },
                { "spread", required_argument, NULL, 'p' },
                { "lapse", required_argument, NULL, 'l' },
                { "wrong-clocks", no_argument, NULL, 'w' },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                double number = optarg ? strtod(optarg, NULL) : 0;

                if (c == 'd')
                        opt.directory = optarg;
                else if (c == 's')
                        opt.source = optarg;
                else if (c == 'n')
                        opt.ns = optarg;
                else if (c == 'f')
                        opt.first = (unsigned)number;
                else if (c == 'N')
                        opt.n_nodes = (unsigned)number;
                else if (c == 'l')
                        slot_clock.lapse = (unsigned)number;
                else if (c == 't')
                        opt.duration_ns = (uint64_t)(number * (double)S);
                else if (c == 'c')
                        opt.crash_ns = (uint64_t)(number * (double)S);
                else if (c == 'p')
                        opt.spread_ns = (uint64_t)(number * (double)S);
                else if (c == 'w')
                        slot_clock.wrong = true;
                else
                        return false;
        }
        return opt.directory && opt.source && strchr(opt.source, '/') && opt.n_nodes && slot_clock.lapse;
}

int main(int argc, char **argv)
{
        struct rlimit limit;
        int r;

        if (!parse(argc, argv)) {
                (void)fprintf(stderr,
                              "usage: fleet-nodes --directory DIR --source NAMESPACE/NAME [--first I] "
                              "[--nodes N] [--duration S]\n                   [--crash-every S] "
                              "[--spread S] [--lapse K] [--wrong-clocks] [--namespace NS]\n");
                return EX_USAGE;
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) >= 0) {
                limit.rlim_cur = limit.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &limit);
        }
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
        r = run();
        tell_figures();
        end();
        return r < 0 ? 1 : r;
}
