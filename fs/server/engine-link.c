/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the engine, and the requests that wait for its answer.
 *
 * A worker that changed a layer or received a command parks its reply: the record in the shared memory holds the
 * reply, the message and the deadline. The main thread sends the reply when the answer comes, or at the deadline; in
 * the second case the record stays as "owed" until the engine has answered, so that the event is not lost, not even
 * when the engine or this server is restarted in between. The engine answers a repeated ticket without doing it twice.
 *
 * This applies to facts: a changed file is handled when the engine is back. A command is different. If its
 * caller was told that it failed, it must never be carried out: it is withdrawn first (lkg/messages.h), and a
 * command that the engine has begun gets the engine's answer, however late.
 *
 * While the engine is known to be down (health.c), no request waits for it.
 */
#include <limits.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <lkg/file.h>

#include "file-server.h"

#define RETRY_NS    (100 * LKG_NSEC_PER_MSEC)
#define TAKEN_NS    (30 * LKG_NSEC_PER_SEC) /* for a command that an engine has begun */
#define CLAIM_TRIES 64

/*
 * A helper that waits for the engine to render a name. Nothing of it must survive: a successor handles the request again.
 * parked_lock.
 */
struct asking {
        struct asking *next;
        struct lkg_message message;
        bool sent, answered;
        int result;
        char text[LKG_MESSAGE_TEXT_MAX + 3];
};
static struct asking *askings;
static pthread_cond_t asking_answered = PTHREAD_COND_INITIALIZER;

static void ask_for_engine(void);
static void open_claims(void);

/* Lock held. Sets the timer to the earliest deadline of a waiting record; UINT64_MAX = none. */
static void arm(void)
{
        uint64_t first = UINT64_MAX;
        struct itimerspec when = { 0 };

        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                const struct lkg_parked *parked = &server.shm->parked[i];
                uint32_t state = atomic_load(&parked->state);

                if (state == LKG_PARKED_WAITING && parked->deadline_ns < first)
                        first = parked->deadline_ns;
        }
        if (server.engine < 0 && lkg_boottime_ns() + RETRY_NS < first)
                first = lkg_boottime_ns() + RETRY_NS;
        if (first == server.armed_ns)
                return;
        server.armed_ns = first;
        if (first != UINT64_MAX) {
                when.it_value.tv_sec = (time_t)(first / LKG_NSEC_PER_SEC);
                when.it_value.tv_nsec = (long)(first % LKG_NSEC_PER_SEC);
        }
        (void)timerfd_settime(server.timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Lock held. */
static void send_record(struct lkg_parked *parked)
{
        if (server.engine < 0 || parked->sent == (uint32_t)server.engine_link)
                return;
        if (lkg_message_send(server.engine, &parked->message) == 0)
                parked->sent = (uint32_t)server.engine_link;
}

static bool is_command(const struct lkg_parked *parked)
{
        return parked->message.type == LKG_MSG_COMMAND;
}

static void forget_record(struct lkg_parked *parked)
{
        if (is_command(parked) && server.claims)
                lkg_claim_end(server.claims, parked->message.ticket);
        server.taken_until_ns[parked - server.shm->parked] = 0;
        atomic_store_explicit(&parked->state, LKG_PARKED_FREE, memory_order_release);
        parked->message.type = 0;
}

/* Lock held. Returns a ticket, and for a command a claim under that ticket. Return: 0 = none is free. */
static uint64_t take_ticket(enum lkg_message_type type)
{
        for (int i = 0; i < CLAIM_TRIES; i++) {
                uint64_t ticket = atomic_fetch_add(&server.shm->counters.tickets, 1) + 1;

                if (type != LKG_MSG_COMMAND || (server.claims && lkg_claim_offer(server.claims, ticket)))
                        return ticket;
        }
        return 0;
}

/*
 * Which event is dropped first when all records are full of events for an absent engine: changes first,
 * because a new engine reads everything anyway; then starts, of which it counts one less; the oldest of a
 * kind. A command is never dropped.
 */
static bool sooner_lost(const struct lkg_parked *parked, const struct lkg_parked *than)
{
        const struct lkg_message *m = &parked->message;

        if (m->type != LKG_MSG_CHANGED && m->type != LKG_MSG_STARTED)
                return false;
        if (!than || m->type != than->message.type)
                return !than || m->type == LKG_MSG_CHANGED;
        return m->ticket < than->message.ticket;
}

/*
 * Take a record for a change by @uid. Users who may write layers share half of the records, and one user
 * gets an eighth: so there is always one for root's commands and the starts of components.
 */
static struct lkg_parked *take_record(uid_t uid)
{
        struct lkg_parked *owed = NULL, *unused = NULL;
        size_t n = lkg_shared_parked(server.shm), n_users = 0, n_own = 0;

        for (size_t i = 0; i < n; i++) {
                struct lkg_parked *parked = &server.shm->parked[i];
                uint32_t state = atomic_load(&parked->state);

                if (state == LKG_PARKED_FREE && parked->message.type == 0) {
                        unused = unused ? unused : parked;
                        continue;
                }
                if (state == LKG_PARKED_OWED && sooner_lost(parked, owed))
                        owed = parked;
                if (parked->message.type == LKG_MSG_CHANGED && parked->message.uid != 0) {
                        n_users++;
                        n_own += parked->message.uid == uid;
                }
        }
        if (uid != 0 && (n_users >= LKG_PARKED / 2 || n_own >= LKG_PARKED / 8))
                return NULL;
        if (!unused && n < LKG_PARKED) {
                unused = &server.shm->parked[n];
                atomic_store(&server.shm->touched.parked, (uint32_t)n + 1);
        }
        if (unused)
                return unused;
        if (owed)
                atomic_store(&owed->state, LKG_PARKED_FREE);
        return owed;
}

static struct lkg_parked *park(enum lkg_message_type type, uid_t uid)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        LKG_LOCKED(&server.parked_lock);
        struct lkg_parked *parked = take_record(uid);
        uint64_t ticket = parked ? take_ticket(type) : 0;

        task.park = ticket ? parked : NULL;
        if (!task.park)
                return NULL;
        parked->reply_size = 0;
        parked->unique = 0;
        parked->sent = 0;
        parked->answer = type == LKG_MSG_COMMAND ? LKG_ANSWER_RESULT : LKG_ANSWER_REPLY;
        parked->deadline_ns = lkg_boottime_ns() + ref->publication->timeout_ms * LKG_NSEC_PER_MSEC;
        lkg_message_init(&parked->message, type); /* reserved: FREE with a type */
        parked->message.ticket = ticket;
        parked->message.uid = uid;
        return parked;
}

/**
 * lkg_link_park() - reserve a record for the request being handled and direct its reply there. The caller fills `message`; after
 * the reply lkg_request_handle() calls lkg_link_submit().
 * Return: NULL when all records are in use, or the user's share of them; the caller replies at once then.
 */
struct lkg_parked *lkg_link_park(enum lkg_message_type type)
{
        const struct fuse_in_header *header = task.slot ? (const void *)task.slot->buf : NULL;

        return park(type, type == LKG_MSG_CHANGED && header ? header->uid : 0);
}

/* Lock held. The error that replaces the reply, 0 = none. */
static int error_of(const struct lkg_parked *parked, int result)
{
        if (parked->answer == LKG_ANSWER_RESULT && result < 0)
                return result;
        if (parked->answer == LKG_ANSWER_STALE && result == -ESTALE && lkg_opener_refuse(&parked->message))
                return -ESTALE;
        return 0;
}

/* Lock held. */
static void answer(struct lkg_parked *parked, int result)
{
        int error = error_of(parked, result);

        if (error < 0) {
                struct fuse_out_header out = { .len = sizeof(out),
                                               .error = error,
                                               .unique = parked->unique };

                lkg_kernel_send_raw(&out, sizeof(out));
        } else {
                lkg_kernel_send_raw(parked->reply, parked->reply_size);
        }
}

static void warn_late(const struct lkg_message *m)
{
        if (m->type == LKG_MSG_STARTED)
                lkg_log_warning(
                        "the engine has not answered in time: process %d continues with generation %llu",
                        m->pid, (unsigned long long)m->number);
        else if (m->type == LKG_MSG_COMMAND)
                lkg_log_warning("the engine has not answered in time: '%s' is not carried out", m->command);
        else
                lkg_log_warning(
                        "the engine has not answered in time: the change of '%s' counts when it does",
                        m->text);
}

/*
 * Lock held. The time limit of a waiting open, and of every other parked reply, has passed: the caller is
 * answered without the engine. A command that the engine has begun gets more time, because its result is not
 * known yet.
 * @waited_ns: how long the caller has waited for the engine; 0 = not at all, it is down
 */
static void expire(struct lkg_parked *parked, uint64_t waited_ns)
{
        uint64_t *until_ns = &server.taken_until_ns[parked - server.shm->parked], now_ns = lkg_boottime_ns();
        enum lkg_claim_fate fate = is_command(parked) && server.claims
                                           ? lkg_claim_withdraw(server.claims, parked->message.ticket)
                                           : LKG_CLAIM_NEVER;
        bool begun = fate == LKG_CLAIM_TAKEN;

        if (atomic_load(&parked->state) != LKG_PARKED_WAITING)
                return;
        if (begun && *until_ns == 0)
                *until_ns = now_ns + TAKEN_NS;
        if (begun && now_ns < *until_ns) {
                parked->deadline_ns = now_ns + RETRY_NS;
                return;
        }
        if (waited_ns)
                warn_late(&parked->message);
        answer(parked, fate == LKG_CLAIM_NEVER ? -ETIMEDOUT : -EIO);
        if (is_command(parked))
                forget_record(parked);
        else
                atomic_store_explicit(&parked->state, LKG_PARKED_OWED, memory_order_release);
}

/*
 * The record becomes valid and the slot is finished in one critical section: the reply cannot be sent in
 * between, and a successor that finds both knows that the record takes precedence (lkg_link_is_parked).
 */
void lkg_link_submit(struct lkg_parked *parked)
{
        /* the record may be freed as soon as it is submitted */
        const struct lkg_message asked = parked->message;
        bool down = lkg_health_is_down(lkg_boottime_ns());

        task.park = NULL;
        (void)pthread_mutex_lock(&server.parked_lock);
        atomic_store_explicit(&parked->state, parked->reply_size ? LKG_PARKED_WAITING : LKG_PARKED_OWED,
                              memory_order_release);
        if (parked->reply_size && task.slot)
                ((volatile struct fuse_in_header *)(void *)task.slot->buf)->len = 0;
        atomic_fetch_add_explicit(&server.shm->served, 1, memory_order_relaxed);
        if (down)
                expire(parked, 0);
        if (atomic_load(&parked->state) != LKG_PARKED_FREE)
                send_record(parked);
        arm();
        (void)pthread_mutex_unlock(&server.parked_lock);
        /* Recorded only now: if the server is killed earlier, its successor asks. Asking twice does no harm. */
        if (asked.type == LKG_MSG_STARTED)
                lkg_opener_told(&asked);
}

bool lkg_link_is_parked(uint64_t unique)
{
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++)
                if (atomic_load(&server.shm->parked[i].state) == LKG_PARKED_WAITING &&
                    server.shm->parked[i].unique == unique)
                        return true;
        return false;
}

static void append_text(struct lkg_message *message, const char *text, size_t size)
{
        if (size > LKG_CONTROL_TEXT_MAX + 1)
                size = LKG_CONTROL_TEXT_MAX + 1;
        memcpy(message->text + message->text_size, text, size);
        message->text_size += (uint32_t)size;
        message->text[message->text_size] = '\0';
}

/* One byte more than allowed is passed on, so that the engine can report that the text is too long. */
void lkg_link_text(struct lkg_message *message, const char *text, size_t size)
{
        message->text_size = 0;
        append_text(message, text, size);
}

/* The same for the file @name, of at most NAME_MAX bytes: the name, NUL, @text. */
void lkg_link_named_text(struct lkg_message *message, const char *name, const char *text, size_t size)
{
        lkg_link_text(message, name, strnlen(name, NAME_MAX));
        message->text_size++; /* its NUL */
        append_text(message, text, size);
}

/* An event that no caller waits for but that must not be lost; caused by @uid. */
void lkg_link_changed(const char *path, uid_t uid)
{
        struct lkg_parked *parked = park(LKG_MSG_CHANGED, uid);

        if (!parked)
                return;
        lkg_link_text(&parked->message, path, strlen(path));
        lkg_link_submit(parked);
}

void lkg_link_ask(void)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_ALIVE);
        (void)lkg_link_tell(&message);
}

/* An event that no caller waits for and that is sent again if it is lost. */
bool lkg_link_tell(const struct lkg_message *message)
{
        struct lkg_message copy = *message;
        LKG_LOCKED(&server.parked_lock);

        copy.ticket = atomic_fetch_add(&server.shm->counters.tickets, 1) + 1;
        return server.engine >= 0 && lkg_message_send(server.engine, &copy) == 0;
}

/* Lock held. Return: whether a helper has waited for it. */
static bool answer_asking(const struct lkg_message *message)
{
        for (struct asking *one = askings; one; one = one->next) {
                if (one->message.ticket != message->ticket)
                        continue;
                one->result = message->result;
                memcpy(one->text, message->text, sizeof(one->text));
                one->answered = true;
                (void)pthread_cond_broadcast(&asking_answered);
                return true;
        }
        return false;
}

/* Lock held. What does not fit into the socket is sent after the next answer, or to the next engine. */
static void send_askings(void)
{
        for (struct asking *one = askings; one && server.engine >= 0; one = one->next)
                if (!one->sent && !one->answered)
                        one->sent = lkg_message_send(server.engine, &one->message) == 0;
}

static bool wait_for_answer(struct asking *own, uint64_t timeout_ns)
{
        uint64_t until_ns = lkg_monotonic_ns() + timeout_ns;
        LKG_LOCKED(&server.parked_lock);

        own->message.ticket = atomic_fetch_add(&server.shm->counters.tickets, 1) + 1;
        own->next = askings;
        askings = own;
        send_askings();
        while (!own->answered && lkg_cond_wait(&asking_answered, &server.parked_lock, until_ns))
                ;
        for (struct asking **p = &askings; *p; p = &(*p)->next)
                if (*p == own) {
                        *p = own->next;
                        break;
                }
        return own->answered;
}

int lkg_link_render(const char *path, struct lkg_rendered *ret)
{
        struct asking own = { .answered = false };
        struct publication_ref *ref;
        uint64_t timeout_ns;

        if (!task.may_block) {
                task.again = true;
                return -EAGAIN;
        }
        if (strlen(path) > LKG_CONTROL_TEXT_MAX)
                return -ENAMETOOLONG;
        if (lkg_health_is_down(lkg_boottime_ns())) {
                (void)lkg_health_find_out(lkg_link_ask);
                return -ETIMEDOUT;
        }
        ref = lkg_publication_get();
        timeout_ns = ref->publication->timeout_ms * LKG_NSEC_PER_MSEC;
        lkg_publication_put(ref);
        lkg_message_init(&own.message, LKG_MSG_RENDER);
        lkg_link_text(&own.message, path, strlen(path));
        if (!wait_for_answer(&own, timeout_ns)) {
                lkg_health_waited(timeout_ns);
                return -ETIMEDOUT;
        }
        return own.result < 0 ? own.result : lkg_rendered_parse(own.text, ret);
}

/* Lock held. */
static void answer_parked(const struct lkg_message *message)
{
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                struct lkg_parked *parked = &server.shm->parked[i];
                uint32_t state = atomic_load(&parked->state);

                if (state == LKG_PARKED_FREE || parked->message.ticket != message->ticket)
                        continue;
                if (state == LKG_PARKED_WAITING)
                        answer(parked, message->result);
                forget_record(parked);
                return;
        }
}

static void on_done(const struct lkg_message *message)
{
        LKG_LOCKED(&server.parked_lock);

        if (!answer_asking(message))
                answer_parked(message);
        /* An answer makes room for another question: send those that did not fit. */
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++)
                if (atomic_load(&server.shm->parked[i].state) != LKG_PARKED_FREE)
                        send_record(&server.shm->parked[i]);
        send_askings();
        arm();
}

static int on_timer(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        uint64_t timeout_ns = ref->publication->timeout_ms * LKG_NSEC_PER_MSEC, expirations, now;
        bool late = false;

        (void)!read(fd, &expirations, sizeof(expirations));
        if (server.engine < 0)
                ask_for_engine();
        now = lkg_boottime_ns();
        (void)pthread_mutex_lock(&server.parked_lock);
        server.armed_ns = 0;
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) != LKG_PARKED_WAITING || parked->deadline_ns > now)
                        continue;
                expire(parked, timeout_ns);
                late = true;
        }
        arm();
        (void)pthread_mutex_unlock(&server.parked_lock);
        if (late)
                lkg_health_waited(timeout_ns);
        return 0;
}

void lkg_link_loaded(uint64_t number)
{
        struct lkg_message message;

        lkg_message_init(&message, LKG_MSG_LOADED);
        message.number = number;
        if (server.engine >= 0)
                (void)lkg_message_send(server.engine, &message);
}

/* A worker may have loaded it already. */
static void load(uint64_t number)
{
        struct lkg_error err = { 0 };

        if (number > atomic_load(&server.shm->publication) && lkg_publication_load(&err) < 0)
                lkg_log_error("publication %llu: %s", (unsigned long long)number, err.message);
}

/*
 * Lock held. The engine is gone: its successor takes over the commands that it had begun, with the same time limit.
 */
static void return_commands(void)
{
        LKG_CLEANUP(lkg_publication_putp) struct publication_ref *ref = lkg_publication_get();
        uint64_t deadline_ns = lkg_boottime_ns() + ref->publication->timeout_ms * LKG_NSEC_PER_MSEC;

        for (size_t i = 0; server.claims && i < lkg_shared_parked(server.shm); i++) {
                struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) != LKG_PARKED_WAITING || !is_command(parked))
                        continue;
                lkg_claim_return(server.claims, parked->message.ticket);
                if (server.taken_until_ns[i])
                        parked->deadline_ns = deadline_ns;
                server.taken_until_ns[i] = 0;
        }
}

/* Callers get their answers before a new publication is announced: nobody waits for that. */
static int on_engine(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
        struct lkg_message message;
        int r = 1;

        for (unsigned n = 0; n < LKG_MESSAGES_AT_ONCE && (r = lkg_message_recv(fd, &message)) > 0; n++) {
                lkg_health_heard();
                if (message.type == LKG_MSG_PUBLISHED || message.type == LKG_MSG_DONE)
                        load(message.number);
                if (message.type == LKG_MSG_DONE)
                        on_done(&message);
        }
        server.hooks->turn_ended();
        if (r > 0 || r == -EAGAIN)
                return 0;
        if (r == -EBADMSG) {
                lkg_log_warning("a message of the engine cannot be decoded, ignoring");
                return 0;
        }
        (void)pthread_mutex_lock(&server.parked_lock);
        server.engine = -EBADF;
        return_commands();
        (void)pthread_mutex_unlock(&server.parked_lock);
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        sd_event_source_unref(source);
        (void)close(fd);
        ask_for_engine();
        return 0;
}

/*
 * Lock held. Send everything that the engine has missed, and the messages by which both sides know that the
 * other is there.
 */
static void greet(void)
{
        struct lkg_message message;

        lkg_link_loaded(atomic_load(&server.shm->publication));
        lkg_message_init(&message, LKG_MSG_ALIVE);
        (void)lkg_message_send(server.engine, &message);
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++)
                if (atomic_load(&server.shm->parked[i].state) != LKG_PARKED_FREE)
                        send_record(&server.shm->parked[i]);
        for (struct asking *one = askings; one; one = one->next)
                one->sent = false; /* to another engine */
        send_askings();
}

void lkg_link_made(int fd)
{
        sd_event_source *source;

        if (server.engine >= 0 || sd_event_add_io(server.event, &source, fd, EPOLLIN, on_engine, NULL) < 0) {
                (void)close(fd); /* the timer will try again */
                return;
        }
        LKG_LOCKED(&server.parked_lock);
        /* this engine may have another file: lkg_runtime_mend() */
        server.claims = lkg_claims_close(server.claims);
        open_claims();
        server.engine = fd;
        server.engine_link = atomic_fetch_add(&server.shm->counters.engine_links, 1) + 1;
        greet();
        server.armed_ns = 0;
        arm();
}

static void ask_for_engine(void)
{
        int fd = lkg_kept_link();

        if (fd >= 0) {
                lkg_link_made(fd);
                return;
        }
        LKG_LOCKED(&server.parked_lock);
        server.armed_ns = 0;
        arm();
}

static bool command_waits(uint64_t ticket)
{
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                const struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) == LKG_PARKED_WAITING && is_command(parked) &&
                    parked->message.ticket == ticket)
                        return true;
        }
        return false;
}

/*
 * Without claims no command can be accepted: EBUSY. Commands left by an earlier build have been refused, or
 * are offered now.
 */
static void open_claims(void)
{
        struct lkg_error err = { 0 };

        if (lkg_claims_open(server.runtime, &server.claims, &err) < 0) {
                lkg_log_error("no command can be taken: %s", err.message);
                return;
        }
        lkg_claims_keep(server.claims, command_waits);
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                struct lkg_parked *parked = &server.shm->parked[i];

                if (!is_command(parked))
                        continue;
                if (atomic_load(&parked->state) == LKG_PARKED_OWED)
                        forget_record(parked);
                else if (atomic_load(&parked->state) == LKG_PARKED_WAITING)
                        (void)lkg_claim_offer(server.claims, parked->message.ticket);
        }
}

int lkg_link_init(struct lkg_error *err)
{
        int r;

        server.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (server.timer < 0)
                return lkg_error_set(err, -errno, NULL, "timer");
        r = sd_event_add_io(server.event, NULL, server.timer, EPOLLIN, on_timer, NULL);
        if (r < 0)
                return lkg_error_set(err, r, NULL, "timer");
        for (size_t i = 0; i < lkg_shared_parked(server.shm); i++) {
                struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) == LKG_PARKED_FREE)
                        parked->message.type = 0; /* reserved but never submitted by a dead server */
        }
        open_claims();
        ask_for_engine();
        return 0;
}
