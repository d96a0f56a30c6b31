/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams between our processes: fixed layout, cut after the used part of the text, checked on arrival. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/socket.h>

#include <lkg/file.h>
#include <lkg/messages.h>

#define MESSAGE_HEADER offsetof(struct lkg_message, text)

void lkg_message_init(struct lkg_message *message, enum lkg_message_type type)
{
        *message = (struct lkg_message){
                .version = LKG_MESSAGE_VERSION,
                .type = type,
                .component = UINT32_MAX,
                .login_uid = UINT32_MAX,
        };
}

int lkg_message_send(int fd, const struct lkg_message *message)
{
        size_t size = MESSAGE_HEADER + message->text_size;

        if (message->text_size > LKG_MESSAGE_TEXT_MAX)
                return -EMSGSIZE;
        if (send(fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        return 0;
}

static bool terminated(const char *text, size_t size)
{
        return memchr(text, '\0', size) != NULL;
}

bool lkg_message_is_sound(const struct lkg_message *message)
{
        return message->version == LKG_MESSAGE_VERSION && message->type != 0 &&
               message->type < _LKG_MSG_MAX && message->text_size <= LKG_MESSAGE_TEXT_MAX &&
               terminated(message->command, sizeof(message->command)) &&
               terminated(message->exe, sizeof(message->exe));
}

int lkg_message_recv(int fd, struct lkg_message *ret)
{
        struct lkg_message message = { 0 };
        ssize_t n;

        do
                n = recv(fd, &message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        if (n == 0)
                return 0;
        if ((size_t)n < MESSAGE_HEADER || (size_t)n > sizeof(message) || !lkg_message_is_sound(&message) ||
            (size_t)n != MESSAGE_HEADER + message.text_size)
                return -EBADMSG;
        message.text[message.text_size] = '\0';
        *ret = message;
        return 1;
}

int lkg_message_send_log(int fd, int priority, const struct lkg_log_fields *fields, const char *text)
{
        const char *component = fields && fields->component ? fields->component : "";
        const char *layer = fields && fields->layer ? fields->layer : "";
        struct lkg_message message;

        if (strlen(component) >= sizeof(message.command) || strlen(text) > LKG_MESSAGE_TEXT_MAX)
                return -EMSGSIZE;
        lkg_message_init(&message, LKG_MSG_LOG);
        message.result = priority;
        message.number = fields ? fields->generation : 0;
        (void)snprintf(message.command, sizeof(message.command), "%s", component);
        (void)snprintf(message.exe, sizeof(message.exe), "%s", layer);
        message.text_size = (uint32_t)snprintf(message.text, sizeof(message.text), "%s", text);
        return lkg_message_send(fd, &message);
}

/* ---- claims ---- */

/* Commands that may still be carried out: see lkg/messages.h. */

enum { OFFERED = 1, TAKEN = 2, RETURNED = 3 /* taken by an engine that has died: offered again */ };

static uint64_t word_of(uint64_t ticket, unsigned state)
{
        return ticket << 2 | state;
}

static _Atomic uint64_t *slot_of(struct lkg_claims *claims, uint64_t ticket)
{
        return &claims->words[ticket % LKG_CLAIMS];
}

/* ---- the file ---- */

static int open_file(int runtime_fd)
{
        int fd = openat(runtime_fd, LKG_CLAIMS_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                        0600);

        return fd < 0 ? -errno : fd;
}

int lkg_claims_make(int runtime_fd)
{
        LKG_CLEANUP(lkg_closep) int fd = open_file(runtime_fd);

        return fd < 0 ? fd : 0;
}

/*
 * Two processes may open it at the same time, so it is never replaced: a file of zeros is valid and has no
 * commands, and the magic only identifies other layouts.
 */
int lkg_claims_open(int runtime_fd, struct lkg_claims **ret, struct lkg_error *err)
{
        LKG_CLEANUP(lkg_closep) int fd = open_file(runtime_fd);
        struct lkg_claims *claims;
        void *p;
        int r;

        if (fd < 0)
                return lkg_error_set(err, fd, NULL, "open %s", LKG_CLAIMS_NAME);
        r = lkg_map_file(fd, sizeof(*claims), &p);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "make %s", LKG_CLAIMS_NAME);
        claims = p;
        if (claims->magic != LKG_CLAIMS_MAGIC) {
                for (size_t i = 0; claims->magic != 0 && i < LKG_CLAIMS; i++)
                        atomic_store(&claims->words[i], 0);
                claims->magic = LKG_CLAIMS_MAGIC;
        }
        *ret = claims;
        return 0;
}

struct lkg_claims *lkg_claims_close(struct lkg_claims *claims)
{
        lkg_unmap_file(claims);
        return NULL;
}

/* ---- words ---- */

/* Return: whether the word was @from. */
static bool turn(struct lkg_claims *claims, uint64_t ticket, unsigned from, uint64_t to)
{
        uint64_t now = word_of(ticket, from);

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, to);
}

static bool is_now(struct lkg_claims *claims, uint64_t ticket, unsigned state)
{
        return atomic_load(slot_of(claims, ticket)) == word_of(ticket, state);
}

bool lkg_claim_offer(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = 0;

        return atomic_compare_exchange_strong(slot_of(claims, ticket), &now, word_of(ticket, OFFERED)) ||
               now == word_of(ticket, OFFERED) || now == word_of(ticket, RETURNED);
}

bool lkg_claim_take(struct lkg_claims *claims, uint64_t ticket)
{
        return turn(claims, ticket, OFFERED, word_of(ticket, TAKEN)) ||
               turn(claims, ticket, RETURNED, word_of(ticket, TAKEN)) || is_now(claims, ticket, TAKEN);
}

enum lkg_claim_fate lkg_claim_withdraw(struct lkg_claims *claims, uint64_t ticket)
{
        if (turn(claims, ticket, RETURNED, 0))
                return LKG_CLAIM_UNKNOWN;
        /* It cannot be returned meanwhile: that, too, is done by the file server only. */
        return turn(claims, ticket, OFFERED, 0) || !is_now(claims, ticket, TAKEN) ? LKG_CLAIM_NEVER
                                                                                  : LKG_CLAIM_TAKEN;
}

void lkg_claim_return(struct lkg_claims *claims, uint64_t ticket)
{
        (void)turn(claims, ticket, TAKEN, word_of(ticket, RETURNED));
}

void lkg_claim_end(struct lkg_claims *claims, uint64_t ticket)
{
        uint64_t now = atomic_load(slot_of(claims, ticket));

        if (now >> 2 == ticket)
                (void)atomic_compare_exchange_strong(slot_of(claims, ticket), &now, 0);
}

void lkg_claims_keep(struct lkg_claims *claims, bool (*waits)(uint64_t ticket))
{
        for (size_t i = 0; i < LKG_CLAIMS; i++) {
                uint64_t word = atomic_load(&claims->words[i]);

                if (word != 0 && !waits(word >> 2))
                        atomic_store(&claims->words[i], 0);
        }
}

/* ---- handover ---- */

/* Datagrams that carry descriptors; the protocol is in lkg/messages.h. */

union rights {
        char bytes[CMSG_SPACE(sizeof(int) * LKG_HANDOVER_FDS_MAX)];
        struct cmsghdr align;
};

int lkg_handover_send(int fd, enum lkg_handover_type type, uint64_t node, const int *fds, size_t n_fds)
{
        struct lkg_handover handover = {
                .version = LKG_MESSAGE_VERSION, .type = type, .node = node, .n_fds = (uint32_t)n_fds
        };
        struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
        union rights rights = { 0 };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds > LKG_HANDOVER_FDS_MAX)
                return -E2BIG;
        if (n_fds > 0) {
                struct cmsghdr *c;

                message.msg_control = &rights;
                message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
                c = CMSG_FIRSTHDR(&message);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
                memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
        }
        for (;;) {
                if (sendmsg(fd, &message, MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno != EINTR)
                        return -errno;
        }
}

static void take_fds(struct msghdr *message, int fds[static LKG_HANDOVER_FDS_MAX], size_t *ret_n)
{
        size_t n = 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                size_t n_here;
                const int *list = (const int *)(const void *)CMSG_DATA(c);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < n_here; i++) {
                        if (n < LKG_HANDOVER_FDS_MAX)
                                fds[n++] = list[i];
                        else
                                (void)close(list[i]);
                }
        }
        *ret_n = n;
}

int lkg_handover_recv(int fd, int flags, struct lkg_handover *ret, int fds[static LKG_HANDOVER_FDS_MAX])
{
        struct lkg_handover handover = { 0 };
        struct iovec iov = { .iov_base = &handover, .iov_len = sizeof(handover) };
        union rights rights;
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof(rights)
        };
        size_t n_fds = 0;
        ssize_t n;

        for (size_t i = 0; i < LKG_HANDOVER_FDS_MAX; i++)
                fds[i] = -EBADF;
        do
                n = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        take_fds(&message, fds, &n_fds);
        if (n == 0 && n_fds == 0) /* with descriptors it is not the end, and we must close them */
                return 0;
        if (n != sizeof(handover) || handover.version != LKG_MESSAGE_VERSION || handover.type < 1 ||
            handover.type >= _LKG_HANDOVER_MAX || handover.n_fds != n_fds) {
                for (size_t i = 0; i < n_fds; i++)
                        fds[i] = lkg_close(fds[i]);
                return -EBADMSG;
        }
        *ret = handover;
        return 1;
}

/* ---- fact ---- */

/* Files of facts: see <lkg/messages.h>. */

#define DUE "not_before_ns="

/* ---- version ---- */

void lkg_fact_version_format(const struct lkg_fact_version *version, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%s\n%s\n", version->printed, version->program);
}

void lkg_fact_version_parse(char *text, struct lkg_fact_version *ret)
{
        char *second = text + strcspn(text, "\n");

        if (*second)
                *second++ = '\0';
        second[strcspn(second, "\n")] = '\0';
        *ret = (struct lkg_fact_version){ text, second };
}

/* ---- start ---- */

static const char *const why_words[] = {
        [LKG_START_AUTOMATIC] = "automatic",
        [LKG_START_CLEAN] = "clean",
        [LKG_START_MANUAL] = "manual",
};

const char *lkg_start_why_word(enum lkg_start_why why)
{
        return why_words[why];
}

bool lkg_start_why_parse(const char *word, enum lkg_start_why *ret)
{
        for (size_t i = 0; i < LKG_ARRAY_SIZE(why_words); i++) {
                if (strcmp(why_words[i], word) != 0)
                        continue;
                *ret = (enum lkg_start_why)i;
                return true;
        }
        return false;
}

void lkg_fact_start_format(const struct lkg_fact_start *start, struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%d %" PRIu64 " %s\n", start->pid, start->start_time, why_words[start->why]);
}

bool lkg_fact_start_parse(const char *text, struct lkg_fact_start *ret)
{
        struct lkg_fact_start start;
        char why[16];

        if (sscanf(text, "%d %" SCNu64 " %15s", &start.pid, &start.start_time, why) != 3 || start.pid <= 0 ||
            !lkg_start_why_parse(why, &start.why))
                return false;
        *ret = start;
        return true;
}

/* ---- restarts ---- */

void lkg_fact_restarted_format(const struct lkg_fact_restarted *restarted, const char *result,
                               struct lkg_buf *buf)
{
        lkg_buf_printf(buf, "%" PRIu64 " %s %" PRIu64 " %s\n", restarted->asked_ns, restarted->boot,
                       restarted->generation, result);
}

bool lkg_fact_restarted_parse(const char *text, struct lkg_fact_restarted *ret)
{
        struct lkg_fact_restarted restarted;

        _Static_assert(LKG_BOOT_ID_MAX == 40 && sizeof(restarted.result) == 16, "the widths below");
        if (sscanf(text, "%" SCNu64 " %39s %" SCNu64 " %15s", &restarted.asked_ns, restarted.boot,
                   &restarted.generation, restarted.result) != 4)
                return false;
        *ret = restarted;
        return true;
}

uint64_t lkg_fact_plan_due(const char *text)
{
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, DUE, strlen(DUE)) == 0)
                        return strtoull(line + strlen(DUE), NULL, 10);
        }
        return 0;
}

/* ---- files ---- */

int lkg_fact_read(int dirfd, const char *name, char **ret, size_t *ret_size)
{
        LKG_CLEANUP(lkg_closep) int fd = lkg_open_plain(dirfd, name);

        return fd < 0 ? fd : lkg_read_file(fd, LKG_FACT_BYTES_MAX, ret, ret_size, NULL);
}

int lkg_fact_write(int dirfd, const char *name, const struct lkg_buf *buf)
{
        LKG_CLEANUP(lkg_freep) char *old = NULL;
        size_t size;

        if (lkg_buf_failed(buf) || buf->size > LKG_FACT_BYTES_MAX)
                return lkg_buf_failed(buf) ? -ENOMEM : -EFBIG;
        if (lkg_fact_read(dirfd, name, &old, &size) >= 0 && size == buf->size &&
            memcmp(old, buf->data, size) == 0)
                return 0;
        return lkg_write_file_atomic(dirfd, name, buf->data, buf->size, 0600, /* durable= */ false, NULL);
}
