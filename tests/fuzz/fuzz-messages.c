/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what lkgfsd receives from the engine: messages on its channel, the settings that it decodes,
 * the output of an exec plugin, the restart plan. The first byte selects one. Nothing is started: lkgfsd is
 * in the phase in which it ends, and no restart is enabled.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <lkg/text.h>
#include <lkg/file.h>
#include <lkg/base.h>
#include <lkg/messages.h>

#include "fs/supervisor/consumer-plan.h"
#include "fs/supervisor/consumer.h"
#include "fs/supervisor/supervisor.h"
#include "fuzz-check.h"
#include "tests/unit/tmpdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
        char top[TMPDIR_MAX];
        int fd;
        struct lkg_supervisor supervisor;
        struct lkg_settings *settings;
} place = { .fd = -EBADF };

static void remove_place(void)
{
        (void)tmpdir_remove(place.top);
}

/* One component with restarts, one without. */
static void make_place(void)
{
        static const char settings[] =
                "component=kubelet\ncomponent_unit=kubelet.service\ncomponent_restart=hook\n"
                "component_restart_argv=/bin/"
                "false\ncomponent=kube-proxy\nnode_name=node\nrestart_jitter_ms=1000\n";
        static struct lkg_shared shared;
        struct lkg_supervisor *s = &place.supervisor;

        lkg_log_init("fuzz", LOG_EMERG);
        FUZZ_CHECK(tmpdir_make(place.top) == 0 && atexit(remove_place) == 0);
        place.fd = lkg_lift_fd(open(place.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        FUZZ_CHECK(place.fd >= 0 &&
                   lkg_settings_parse(settings, strlen(settings), &place.settings, NULL) == 0);
        s->life = &lkg_life;
        s->phase = LKG_PHASE_END;
        s->dirs.runtime = place.fd;
        s->connection.shared = &shared;
        s->settings = place.settings;
        s->mount_point = place.top;
        FUZZ_CHECK(sd_event_new(&s->event) >= 0);
        s->consumer = lkg_consumer_new(s->event, place.fd, place.settings);
        FUZZ_CHECK(s->consumer);
}

/* Datagrams, each after two bytes with its length; a short one is a truncated header. */
static void send_messages(const uint8_t *data, size_t size, int to)
{
        while (size >= 2) {
                size_t n = data[0] + 256u * data[1];

                n = n < size - 2 ? n : size - 2;
                if (n > 0)
                        (void)send(to, data + 2, n, MSG_DONTWAIT | MSG_NOSIGNAL);
                data += 2 + n;
                size -= 2 + n;
        }
}

static void hear(const uint8_t *data, size_t size)
{
        struct lkg_supervisor *s = &place.supervisor;
        struct lkg_child *child = &s->children[LKG_CHILD_ENGINE];
        int pair[2];

        FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        *child = (struct lkg_child){ .supervisor = s,
                                     .row = &lkg_engine_row,
                                     .kind = LKG_CHILD_ENGINE,
                                     .pidfd = -EBADF,
                                     .channel = pair[1] };
        send_messages(data, size, pair[0]);
        lkg_close(pair[0]);
        lkg_engine_row.input(s, child);
        FUZZ_CHECK(s->phase == LKG_PHASE_END &&
                   !lkg_helper_running(&s->jobs.errands[LKG_ERRAND_CREDENTIAL].helper) &&
                   !lkg_helper_running(&s->jobs.starts));
        FUZZ_CHECK(child->pid == 0 && s->end.code == 0);
        lkg_close(pair[1]);
}

/* Each component has a directory, which would remain. */
static void remove_directories(const struct lkg_settings *settings)
{
        for (size_t i = 0; i < settings->n_components; i++) {
                char path[sizeof("facts/") + NAME_MAX];

                (void)snprintf(path, sizeof(path), "facts/%s", settings->components[i].name);
                (void)unlinkat(place.fd, path, AT_REMOVEDIR);
        }
}

static void decode_settings(const char *data, size_t size)
{
        struct lkg_settings *settings = NULL;
        struct lkg_error err = { 0 };

        if (lkg_settings_parse(data, size, &settings, &err) < 0) {
                FUZZ_CHECK(err.message[0]);
                return;
        }
        lkg_consumer_configure(place.supervisor.consumer, settings);
        lkg_consumer_configure(place.supervisor.consumer, place.settings);
        remove_directories(settings);
        lkg_settings_free(settings);
}

/* The engine gets one line without control characters, whatever the plugin printed. */
static void take_credential(const uint8_t *data, size_t size)
{
        struct lkg_message message;
        int status = size > 0 ? (int)data[0] - 1 : 0;
        struct lkg_helper helper = { 0 };

        helper.answer_fd = memfd_create("answer", MFD_CLOEXEC);
        if (size > 1)
                FUZZ_CHECK(pwrite(helper.answer_fd, data + 1, size - 1, 0) == (ssize_t)size - 1);
        lkg_errand_answer(LKG_ERRAND_CREDENTIAL, place.fd, &helper, status, &message);
        FUZZ_CHECK(message.type == LKG_MSG_CREDENTIAL && message.text_size < sizeof(message.text));
        FUZZ_CHECK(strlen(message.text) == message.text_size);
        FUZZ_CHECK((message.result == 0) == (message.text_size == 0) || message.result < 0);
        for (const char *p = message.text; *p; p++)
                FUZZ_CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
        if (message.result == 0)
                FUZZ_CHECK(unlinkat(place.fd, LKG_EXEC_FILE, 0) == 0);
}

static void read_plan(const uint8_t *data, size_t size)
{
        const struct lkg_plan_limits limits = { .min_interval_ns = 1000, .max_per_hour = 6 };
        LKG_CLEANUP(lkg_freep) char *text = strndup((const char *)data, size);
        struct lkg_buf first = LKG_BUF_INIT, second = LKG_BUF_INIT;
        uint64_t now_ns = 1000 * LKG_NSEC_PER_SEC;
        struct lkg_plan plan, again;

        FUZZ_CHECK(text);
        lkg_plan_parse(text, "boot", now_ns, 0, &plan);
        FUZZ_CHECK(plan.n_asked <= LKG_ARRAY_SIZE(plan.asked_ns) && plan.not_before_ns <= now_ns);
        (void)lkg_plan_due(&plan, &limits);
        lkg_plan_format(&plan, "boot", &first);
        lkg_buf_putc(&first, '\0');
        FUZZ_CHECK(!lkg_buf_failed(&first));
        lkg_plan_parse(first.data, "boot", now_ns, 0, &again);
        lkg_plan_format(&again, "boot", &second);
        lkg_buf_putc(&second, '\0');
        FUZZ_CHECK(!lkg_buf_failed(&second) && strcmp(first.data, second.data) == 0);
        lkg_buf_deinit(&first);
        lkg_buf_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (place.fd < 0)
                make_place();
        if (size == 0)
                return 0;
        switch (data[0]) {
        case 'm':
                hear(data + 1, size - 1);
                break;
        case 's':
                decode_settings((const char *)data + 1, size - 1);
                break;
        case 'c':
                take_credential(data + 1, size - 1);
                break;
        case 'p':
                read_plan(data + 1, size - 1);
                break;
        default:
                break;
        }
        return 0;
}
