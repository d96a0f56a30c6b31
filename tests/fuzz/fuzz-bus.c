/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as answers of systemd: they are a program that builds replies (values, containers, names that we
 * ask for with wrong types), which arrive over a socket as from the bus. lkgfsd must turn them into bounded
 * text or refuse them.
 */
#include <sys/socket.h>

#include <lkg/text.h>

#include "fs/supervisor/facts-collect.h"
#include "fs/supervisor/supervisor.h"
#include "fuzz-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH_MAX  6u
#define VALUES_MAX 20000u

static struct {
        sd_bus *ours, *theirs;
        const uint8_t *data;
        size_t size, n_values;
} place;

static uint8_t take(void)
{
        if (place.size == 0)
                return 0;
        place.size--;
        return *place.data++;
}

/* A text of the input up to a NUL. Bus messages contain UTF-8 only, so anything else is never sent. */
static const char *take_text(char buf[static 256])
{
        size_t n = 0;
        uint8_t c;

        while (n < 255 && (c = take()) != 0)
                buf[n++] = (char)c;
        buf[n] = '\0';
        return buf;
}

static const char *take_name(char buf[static 256])
{
        static const char *const names[] = { "MainPID",   "NRestarts",   "Result",      "SubState",
                                             "ExecStart", "ExecStartEx", "Environment", "EnvironmentFiles",
                                             "Id",        "Job" };
        uint8_t i = take();

        return i < LKG_ARRAY_SIZE(names) ? names[i] : take_text(buf);
}

static uint64_t take_number(void)
{
        uint64_t n = 0;

        for (unsigned i = take() % 9u; i > 0; i--)
                n = n << 8 | take();
        return n;
}

static const char *const signatures[] = { "u",  "s",   "as",    "a(sb)", "a(sasbttttuii)", "a(sasasttttuii)",
                                          "b",  "t",   "o",     "a{sv}", "(uo)",           "v",
                                          "ay", "aas", "a(ss)", "i" };

static int add_value(sd_bus_message *m, const char *signature, unsigned depth);

static int add_text(sd_bus_message *m, char type)
{
        char buf[256];
        const char *text = take_text(buf);

        if (type == 'o' && !sd_bus_object_path_is_valid(text))
                text = "/";
        return sd_bus_message_append_basic(m, type, text);
}

static int add_basic(sd_bus_message *m, char type)
{
        uint64_t n;

        if (type == 's' || type == 'o')
                return add_text(m, type);
        n = take_number();
        if (type == 'b') {
                int b = n & 1;

                return sd_bus_message_append_basic(m, type, &b);
        }
        return sd_bus_message_append_basic(
                m, type,
                &n); /* the low bytes: on a big-endian machine other values, which does not matter */
}

static size_t one_type(const char *signature)
{
        size_t n = 0, open = 0;

        while (signature[n] == 'a')
                n++;
        do {
                open += signature[n] == '(' || signature[n] == '{';
                open -= signature[n] == ')' || signature[n] == '}';
                n++;
        } while (open > 0);
        return n;
}

static int add_sequence(sd_bus_message *m, const char *signature, unsigned depth)
{
        int r = 0;

        while (r >= 0 && *signature) {
                size_t n = one_type(signature);
                char one[64];

                (void)snprintf(one, sizeof(one), "%.*s", (int)n, signature);
                r = add_value(m, one, depth);
                signature += n;
        }
        return r;
}

static int add_array(sd_bus_message *m, const char *item, unsigned depth)
{
        unsigned n = take();
        int r = sd_bus_message_open_container(m, 'a', item);

        if (n >= 0xf0) /* very many empty elements */
                n = 1u << (n & 15u) % 14u;
        for (; r >= 0 && n > 0 && (place.size > 0 || n > 0xff); n--)
                r = add_value(m, item, depth + 1);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int add_struct(sd_bus_message *m, const char *signature, unsigned depth)
{
        char inside[64], buf[256];
        int r;

        (void)snprintf(inside, sizeof(inside), "%.*s", (int)(strlen(signature) - 2), signature + 1);
        r = sd_bus_message_open_container(m, signature[0] == '{' ? 'e' : 'r', inside);
        if (r >= 0 && signature[0] == '{') {
                r = sd_bus_message_append_basic(m, 's', take_name(buf));
                if (r >= 0)
                        r = add_sequence(m, inside + 1, depth + 1);
        } else if (r >= 0) {
                r = add_sequence(m, inside, depth + 1);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int add_value(sd_bus_message *m, const char *signature, unsigned depth)
{
        const char *inside;
        int r;

        if (depth > DEPTH_MAX || ++place.n_values > VALUES_MAX)
                return -E2BIG;
        if (*signature == 'a')
                return add_array(m, signature + 1, depth);
        if (*signature == '(' || *signature == '{')
                return add_struct(m, signature, depth);
        if (*signature != 'v')
                return add_basic(m, *signature);
        inside = signatures[take() % LKG_ARRAY_SIZE(signatures)];
        r = sd_bus_message_open_container(m, 'v', inside);
        if (r >= 0)
                r = add_value(m, inside, depth + 1);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

/* ---- what comes of it ---- */

static void check_word(const char word[static LKG_UNIT_WORD_MAX])
{
        FUZZ_CHECK(memchr(word, '\0', LKG_UNIT_WORD_MAX) && *word && !strpbrk(word, " \t\n"));
}

static void read_now(sd_bus_message *m)
{
        struct lkg_unit_now now;
        struct lkg_unit_last last = { 0 }, back;
        struct lkg_buf buf = LKG_BUF_INIT;

        if (lkg_unit_now_read(m, &now) < 0)
                return;
        check_word(now.sub_state);
        check_word(now.result);
        FUZZ_CHECK(now.main_pid <= INT32_MAX);
        last.pid = (int)now.main_pid;
        last.n_restarts = now.n_restarts;
        last.why = lkg_start_why(&last, now.n_restarts);
        (void)lkg_unit_ended(&last, &now);
        lkg_unit_last_format(&last, &buf);
        lkg_buf_putc(&buf, '\0');
        FUZZ_CHECK(!lkg_buf_failed(&buf) && lkg_start_why_word(last.why));
        if (last.pid > 0 && lkg_unit_last_parse(buf.data, &back))
                FUZZ_CHECK(back.pid == last.pid && back.n_restarts == last.n_restarts &&
                           back.why == last.why);
        lkg_buf_deinit(&buf);
}

/* Without files: names in the reply could be any file of the machine. */
static void read_unit(sd_bus_message *m)
{
        struct lkg_unit unit = { 0 };
        struct lkg_buf words = LKG_BUF_INIT;
        size_t n_files;

        if (sd_bus_message_rewind(m, 1) < 0 || lkg_unit_read(m, &unit) < 0)
                return;
        FUZZ_CHECK(unit.argv.n_items > 0);
        for (size_t i = 0; i < unit.argv.n_items; i++)
                FUZZ_CHECK(unit.argv.items[i]);
        for (size_t i = 0; i < unit.files.n_items; i++)
                FUZZ_CHECK(unit.files.items[i]);
        n_files = unit.files.n_items;
        unit.files.n_items = 0;
        FUZZ_CHECK(lkg_unit_words(&unit, &words) == 0);
        FUZZ_CHECK(words.size == 0 || words.data[words.size - 1] == '\0');
        unit.files.n_items = n_files;
        lkg_buf_deinit(&words);
        lkg_unit_deinit(&unit);
}

/* ---- the way there ---- */

static void connect_both(void)
{
        sd_id128_t id = { .qwords = { 1, 2 } };
        int pair[2], r = 1;

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        FUZZ_CHECK(sd_bus_new(&place.ours) >= 0 && sd_bus_set_fd(place.ours, pair[0], pair[0]) >= 0);
        FUZZ_CHECK(sd_bus_new(&place.theirs) >= 0 && sd_bus_set_fd(place.theirs, pair[1], pair[1]) >= 0 &&
                   sd_bus_set_server(place.theirs, 1, id) >= 0);
        FUZZ_CHECK(sd_bus_start(place.ours) >= 0 && sd_bus_start(place.theirs) >= 0);
        while (r >= 0 && (!sd_bus_is_ready(place.ours) || !sd_bus_is_ready(place.theirs))) {
                r = sd_bus_process(place.ours, NULL);
                if (r >= 0)
                        r = sd_bus_process(place.theirs, NULL);
        }
        FUZZ_CHECK(r >= 0);
}

/* Return: the message as it arrived on our side, or NULL. */
static sd_bus_message *carry(sd_bus_message *m)
{
        sd_bus_message *arrived = NULL;

        if (sd_bus_send(place.theirs, m, NULL) < 0)
                return NULL;
        for (int i = 0; i < 10000 && !arrived; i++)
                if (sd_bus_flush(place.theirs) < 0 || sd_bus_process(place.ours, &arrived) < 0)
                        break;
        return arrived;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        sd_bus_message *m = NULL, *arrived = NULL;
        const char *signature;

        if (!place.ours || !sd_bus_is_ready(place.ours))
                connect_both();
        place.data = data;
        place.size = size;
        place.n_values = 0;
        /* A signal carries any body like a reply, and needs no question. */
        FUZZ_CHECK(sd_bus_message_new_signal(place.theirs, &m, "/a", "a.b", "C") >= 0);
        signature = take() % 4u ? "a{sv}" : signatures[take() % LKG_ARRAY_SIZE(signatures)];
        if (add_value(m, signature, 0) >= 0)
                arrived = carry(m);
        if (arrived) {
                read_now(arrived);
                read_unit(arrived);
        }
        sd_bus_message_unref(arrived);
        sd_bus_message_unref(m);
        return 0;
}
