/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the components that only the supervisor may collect: why the unit's process started, what `EXE --version`
 * prints, and the command line of the unit. Forked processes read programs, files and the service manager, each with a time
 * limit, and write the answers below `facts/<component>/` of the private runtime directory, where the engine is notified of
 * them (<lkg/facts.h> has the format). The loop only waits for their end, so a hang blocks nothing else.
 *
 * Facts are collected when the view is first served, after SIGHUP, and when a process of a component starts
 * or ends.
 *
 *     start   about the unit's main process: `automatic` (systemd restarted it, and it had not ended well, or
 *             nobody saw how), `clean` (the same, but it had ended with Result=success) or `manual` (an operator,
 *             a job, a boot). Absent when the service manager did not answer or does not know the unit.
 *     end     our own state: struct lkg_unit_last, in one line; SUBSTATE is `running` until its end was seen.
 */
#pragma once

#include <systemd/sd-bus.h>

#include <lkg/messages.h>
#include <lkg/text.h>

struct lkg_supervisor;

#define LKG_SYSTEMD      "org.freedesktop.systemd1"
#define LKG_SYSTEMD_PATH "/org/freedesktop/systemd1"

static inline void lkg_bus_closep(sd_bus **bus)
{
        sd_bus_flush_close_unref(*bus);
}

static inline void lkg_bus_message_unrefp(sd_bus_message **message)
{
        sd_bus_message_unref(*message);
}

/** lkg_facts_refresh() - collect again soon; a call during a collection causes another one afterwards. */
void lkg_facts_refresh(struct lkg_supervisor *s);
/** lkg_facts_cancel() - end the collecting process; at most 1 s. */
void lkg_facts_cancel(struct lkg_supervisor *s);

/* ---- facts-collect.c: in the forked process ---- */

/** lkg_facts_dir() - open `facts/@component`, create it if necessary. Return: descriptor or -errno. */
int lkg_facts_dir(int runtime_fd, const char *component);
/** lkg_facts_bus() - the system bus, with a time limit for each call; NULL if there is none. */
sd_bus *lkg_facts_bus(void);
/**
 * lkg_facts_version() - record the version of the first of @exes that exists in @dirfd, unless it is
 * recorded. A program that users other than root could replace (lkg_judge_program()) is not run: that is
 * logged, and recorded as no version, so that it is logged only once.
 */
void lkg_facts_version(int dirfd, char *const *exes, size_t n_exes);

/* ---- why did it start ---- */

#define LKG_UNIT_WORD_MAX 32u

/* The state of a service at one moment. */
struct lkg_unit_now {
        uint32_t main_pid; /* 0 = none is running */
        uint32_t n_restarts;
        char sub_state[LKG_UNIT_WORD_MAX], result[LKG_UNIT_WORD_MAX];
};

/* The last main process seen. */
struct lkg_unit_last {
        int pid; /* 0 = none */
        uint64_t start_time;
        uint32_t n_restarts; /* at its start */
        enum lkg_start_why why;
        bool ended;
        char sub_state[LKG_UNIT_WORD_MAX], result[LKG_UNIT_WORD_MAX]; /* after its end */
};

/** lkg_unit_now_read() - from the reply to GetAll. Return: 0; -EBADMSG: no service, or an unknown form; -errno. */
int lkg_unit_now_read(sd_bus_message *m, struct lkg_unit_now *ret);
/** lkg_unit_now_query() - from systemd. Return: the same; -ENOENT: not loaded; another -errno: unknown. */
int lkg_unit_now_query(sd_bus *bus, const char *name, struct lkg_unit_now *ret);
/** lkg_start_why() - of a process other than @last (pid 0: none is known); @n_restarts: the counter now. Pure. */
enum lkg_start_why lkg_start_why(const struct lkg_unit_last *last, uint32_t n_restarts);
/** lkg_unit_ended() - note in @last how it ended, if @now has that. Return: whether it does. Pure. */
bool lkg_unit_ended(struct lkg_unit_last *last, const struct lkg_unit_now *now);
bool lkg_unit_last_parse(const char *text, struct lkg_unit_last *ret); /* Return: whether @text is valid */
void lkg_unit_last_format(const struct lkg_unit_last *last, struct lkg_buf *buf);
/** lkg_starts_collect() - in the forked process; whoever kills it calls lkg_starts_unknown(). */
void lkg_starts_collect(int runtime_fd, const struct lkg_settings_component *components, size_t n);
/** lkg_starts_unknown() - remove facts that may be outdated, because the service manager does not answer. */
void lkg_starts_unknown(int runtime_fd, const struct lkg_settings_component *components, size_t n);

/* ---- facts-unit.c: data of the service manager ---- */

struct lkg_unit {
        /* of the first ExecStart=; as written in the unit, with specifiers resolved */
        struct lkg_strings argv;
        bool verbatim;                  /* ExecStart=:..., nothing is expanded */
        struct lkg_strings environment; /* NAME=VALUE */
        struct lkg_strings files; /* EnvironmentFile=, may contain wildcards; `-` before it: optional */
};

void lkg_unit_deinit(struct lkg_unit *unit);
/** lkg_unit_read() - from the reply @m to GetAll. Return: 0; -ENOENT: it has no ExecStart; another -errno. */
int lkg_unit_read(sd_bus_message *m, struct lkg_unit *ret);
/** lkg_unit_query() - from systemd. Return: the same; -ENOENT also: no such unit. */
int lkg_unit_query(sd_bus *bus, const char *name, struct lkg_unit *ret);
/**
 * lkg_unit_words() - its command line as the process would get it, without the first word, each word ended
 * by a NUL.
 * Return: 0; -ENOENT: a mandatory file is missing; -ENOMEM.
 */
int lkg_unit_words(const struct lkg_unit *unit, struct lkg_buf *ret);
