/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts of components: units in control groups (rows/cgroups.rows), openers that may look again, and which records are dropped
 * last.
 */
#include <limits.h>
#include <sys/timerfd.h>

#include "rows.h"
#include "file-server.h"

/* --- units --- */

static void say_unit(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, lkg_unit_holds(q->parts[2], q->parts[1]) ? "yes" : "no");
}

static void say_cgroup(const struct question *q, struct lkg_buf *ret)
{
        lkg_buf_puts(ret, lkg_cgroup_matches(q->parts[2], q->parts[1]) ? "yes" : "no");
}

static const struct operation operations[] = {
        { "unit", say_unit, 0 },
        { "cgroup", say_cgroup, 0 },
        { 0 },
};

ROWS(cgroups, operations)

/* --- openers --- */

static struct lkg_claims claims;

static int set_up(void **state)
{
        static struct lkg_publication publication = { .number = 1, .timeout_ms = 60000 };
        static struct publication_ref ref;

        (void)state;
        memset(&server, 0, sizeof(server));
        ref = (struct publication_ref){ .publication = &publication, .refs = 1 };
        server.publication = &ref;
        server.device = server.supervisor = server.engine = -EBADF;
        server.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
        memset(&claims, 0, sizeof(claims));
        server.claims = &claims;
        server.shm =
                mmap(NULL, sizeof(*server.shm), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return server.shm == MAP_FAILED || server.timer < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
        (void)state;
        lkg_close(server.timer);
        return munmap(server.shm, sizeof(*server.shm));
}

static struct lkg_message started(int pid, uint64_t start_time, uint64_t generation)
{
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_STARTED);
        m.component = 0;
        m.pid = pid;
        m.start_time = start_time;
        m.number = generation;
        return m;
}

TEST_WITH(test_only_what_the_thread_looked_at, set_up, tear_down)
{
        struct lkg_node *one = lkg_node_at(2), *two = lkg_node_at(LKG_NODES - 1);

        one->incarnation = 1;
        two->incarnation = 7;
        assert_false(lkg_opener_came_by_name(100, one));
        lkg_opener_looked(100, one);
        assert_true(lkg_opener_came_by_name(100, one));
        assert_false(lkg_opener_came_by_name(100, two));
        assert_false(lkg_opener_came_by_name(101, one));
        assert_false(lkg_opener_came_by_name(100 + LKG_LOOKED, one)); /* in the same slot of the table */
        lkg_opener_looked(100, two); /* a newer generation: the older one is now reached by a descriptor */
        assert_true(lkg_opener_came_by_name(100, two));
        assert_false(lkg_opener_came_by_name(100, one));
        two->incarnation++; /* the record belongs to another node now */
        assert_false(lkg_opener_came_by_name(100, two));
        lkg_opener_looked(4194303, two); /* the highest possible thread id */
        assert_true(lkg_opener_came_by_name(4194303, two));
        assert_false(lkg_opener_came_by_name(4194303 - 2097152, two));
}

TEST_WITH(test_a_process_is_known_once_told, set_up, tear_down)
{
        struct lkg_message m = started(10, 1000, 3), other = started(10, 1001, 3), proxy = m, older = m;
        uint64_t generation = 77;

        proxy.component = 1;
        assert_false(lkg_opener_known(&m, &generation));
        assert_int_equal(generation, 77);
        lkg_opener_told(&m);
        assert_true(lkg_opener_known(&m, &generation));
        assert_int_equal(generation, 3);
        assert_false(lkg_opener_known(&other, &generation)); /* the pid was reused */
        assert_false(lkg_opener_known(&proxy, &generation));
        older.number = 2;
        lkg_opener_told(&older);
        assert_true(lkg_opener_known(&m, &generation));
        assert_int_equal(generation, 3);
}

TEST_WITH(test_refused_once, set_up, tear_down)
{
        struct lkg_message m = started(10, 1000, 3), again = m, other = started(11, 1000, 3);
        uint64_t generation;

        m.ticket = 5;
        again.ticket = 6;
        other.ticket = 7;
        assert_true(lkg_opener_refuse(&m));
        /* even if the server was killed before it could record it */
        assert_true(lkg_opener_known(&m, &generation));
        /* the same question by a successor: its answer may not have been sent */
        assert_true(lkg_opener_refuse(&m));
        assert_false(lkg_opener_refuse(&again));
        assert_true(lkg_opener_refuse(&other));
        lkg_opener_told(&m);
        assert_false(lkg_opener_refuse(&again));
}

TEST_WITH(test_the_oldest_record_goes, set_up, tear_down)
{
        struct lkg_message m;
        uint64_t generation;

        for (int i = 0; i < (int)LKG_OPENERS; i++) {
                m = started(100 + i, 1, 1);
                lkg_opener_told(&m);
                server.shm->openers[i].last_ns = (uint64_t)i + 1;
        }
        m = started(100, 1, 1);
        assert_true(lkg_opener_known(&m, &generation)); /* seen again: now the youngest */
        m = started(99, 1, 1);
        lkg_opener_told(&m);
        m = started(101, 1, 1);
        assert_false(lkg_opener_known(&m, &generation));
        m = started(100, 1, 1);
        assert_true(lkg_opener_known(&m, &generation));
        m = started(99, 1, 1);
        assert_true(lkg_opener_known(&m, &generation));
}

/* --- records for an absent engine --- */

static void owe(enum lkg_message_type type)
{
        struct lkg_parked *parked = lkg_link_park(type);

        assert_non_null(parked);
        lkg_link_submit(parked); /* without a reply: no caller waits */
}

static size_t count(enum lkg_message_type type, uint64_t *ret_first)
{
        size_t n = 0;

        *ret_first = UINT64_MAX;
        for (size_t i = 0; i < LKG_PARKED; i++) {
                const struct lkg_parked *parked = &server.shm->parked[i];

                if (atomic_load(&parked->state) != LKG_PARKED_OWED || parked->message.type != type)
                        continue;
                n++;
                *ret_first = parked->message.ticket < *ret_first ? parked->message.ticket : *ret_first;
        }
        return n;
}

TEST_WITH(test_starts_are_lost_after_changes, set_up, tear_down)
{
        uint64_t first;

        owe(LKG_MSG_STARTED); /* ticket 1 */
        owe(LKG_MSG_COMMAND);
        for (size_t i = 2; i < LKG_PARKED; i++)
                owe(i % 2 ? LKG_MSG_STARTED : LKG_MSG_CHANGED);
        owe(LKG_MSG_STARTED);
        assert_int_equal(count(LKG_MSG_CHANGED, &first), LKG_PARKED / 2 - 2);
        assert_int_equal(first, 5); /* ticket 3 was the oldest change */
        assert_int_equal(count(LKG_MSG_STARTED, &first), LKG_PARKED / 2 + 1);
        while (count(LKG_MSG_CHANGED, &first) > 0)
                owe(LKG_MSG_STARTED);
        assert_int_equal(count(LKG_MSG_STARTED, &first), LKG_PARKED - 1);
        assert_int_equal(first, 1);
        owe(LKG_MSG_STARTED);
        assert_int_equal(count(LKG_MSG_STARTED, &first), LKG_PARKED - 1);
        assert_true(first > 1); /* the oldest start */
        while (count(LKG_MSG_COMMAND, &first) < 3)
                owe(LKG_MSG_COMMAND);
        for (size_t i = 0; i < LKG_PARKED; i++)
                server.shm->parked[i].message.type = LKG_MSG_COMMAND;
        assert_null(lkg_link_park(LKG_MSG_STARTED)); /* commands are never dropped */
}

/* How many changes @uid may have waiting or unsent. */
static size_t owe_as(uid_t uid)
{
        struct lkg_slot *slot = &server.shm->slots[0];
        struct lkg_parked *parked;
        size_t n = 0;

        ((struct fuse_in_header *)(void *)slot->buf)->uid = uid;
        task.slot = slot;
        for (; n < LKG_PARKED && (parked = lkg_link_park(LKG_MSG_CHANGED)); n++)
                lkg_link_submit(parked);
        task.slot = NULL;
        return n;
}

TEST_WITH(test_records_are_shared_out, set_up, tear_down)
{
        uint64_t first;

        for (uid_t uid = 1000; uid < 1004; uid++)
                assert_int_equal(owe_as(uid), LKG_PARKED / 8);
        assert_int_equal(owe_as(1004), 0);
        assert_int_equal(count(LKG_MSG_CHANGED, &first), LKG_PARKED / 2);
        for (size_t i = 0; i < LKG_PARKED / 2; i++)
                owe(LKG_MSG_STARTED);
}

/* --- an engine known to be down --- */

static struct lkg_parked *submit(enum lkg_message_type type)
{
        struct lkg_parked *parked = lkg_link_park(type);

        assert_non_null(parked);
        parked->reply_size = sizeof(struct fuse_out_header);
        lkg_link_submit(parked);
        return parked;
}

TEST_WITH(test_nobody_waits_for_one_that_is_down, set_up, tear_down)
{
        const struct lkg_parked *change, *command, *start;
        uint64_t ticket;

        atomic_store(&server.shm->health.silent_ns, lkg_boottime_ns());
        change = submit(LKG_MSG_CHANGED);
        assert_int_equal(atomic_load(&change->state), LKG_PARKED_WAITING); /* it may only be restarting */
        atomic_store(&server.shm->health.silent_ns, lkg_boottime_ns() - 1 * LKG_NSEC_PER_SEC);
        change = submit(LKG_MSG_CHANGED);
        assert_int_equal(atomic_load(&change->state), LKG_PARKED_OWED);
        start = submit(LKG_MSG_STARTED);
        assert_int_equal(atomic_load(&start->state), LKG_PARKED_OWED);
        ticket = atomic_load(&server.shm->counters.tickets) + 1;
        command = submit(LKG_MSG_COMMAND);
        assert_int_equal(atomic_load(&command->state), LKG_PARKED_FREE);
        assert_false(lkg_claim_take(&claims, ticket)); /* and it is never carried out */
        atomic_store(&server.shm->health.looked_ns, lkg_boottime_ns());
        atomic_store(&server.shm->health.works, 1); /* the supervisor reports that it is busy */
        change = submit(LKG_MSG_CHANGED);
        assert_int_equal(atomic_load(&change->state), LKG_PARKED_WAITING);
        lkg_health_heard();
        atomic_store(&server.shm->health.works, 0);
        assert_false(lkg_health_is_down(lkg_boottime_ns() + 3600 * LKG_NSEC_PER_SEC));
}

TEST_WITH(test_text_with_a_name, set_up, tear_down)
{
        static char name[NAME_MAX + 2], text[2 * LKG_CONTROL_TEXT_MAX];
        struct lkg_message m;

        lkg_message_init(&m, LKG_MSG_COMMAND);
        lkg_link_named_text(&m, "3f9a", "a\0b", 3);
        assert_int_equal(m.text_size, 8);
        assert_memory_equal(m.text, "3f9a\0a\0b", 9);
        lkg_link_text(&m, "on\n", 3);
        assert_int_equal(m.text_size, 3);
        assert_string_equal(m.text, "on\n");
        memset(name, 'n', sizeof(name) - 1);
        memset(text, 't', sizeof(text));
        lkg_link_named_text(&m, name, text, sizeof(text));
        assert_int_equal(m.text_size, LKG_MESSAGE_TEXT_MAX);
        assert_int_equal(strlen(m.text), NAME_MAX);
        assert_int_equal(strlen(m.text + NAME_MAX + 1), LKG_CONTROL_TEXT_MAX + 1);
}
