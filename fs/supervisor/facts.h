/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the components that only the supervisor may find out: what `EXE --version` prints, and the command line of
 * the unit. A forked process of ours asks programs, files and the service manager, each with a time limit, and writes the
 * answers below `facts/<component>/` of the private runtime directory, where the engine hears of them
 * (core/engine/facts.h has the format). The loop only waits for its end, so nothing that hangs is in the way of anybody.
 *
 * Asked when the view begins to be served, after SIGHUP, and when a process of a component begins or ends.
 */
#pragma once

#include <systemd/sd-bus.h>

#include <lkg/buf.h>
#include <lkg/settings.h>

struct lkg_supervisor;

/** lkg_facts_refresh() - ask again soon; a call while it is being asked counts for afterwards. */
void lkg_facts_refresh(struct lkg_supervisor *s);
/** lkg_facts_cancel() - end the process that asks; at most 1 s. */
void lkg_facts_cancel(struct lkg_supervisor *s);

/* ---- facts-collect.c: in the forked process ---- */

/** lkg_facts_collect() - ask about all @components, write what differs. @runtime_fd: the private runtime directory. */
void lkg_facts_collect(int runtime_fd, const struct lkg_settings_component *components, size_t n);

/** lkg_facts_version() - record the version of the first of @exes that exists in @dirfd, unless it is recorded. */
void lkg_facts_version(int dirfd, char *const *exes, size_t n_exes);

/* ---- facts-unit.c: what the service manager knows ---- */

struct lkg_unit_file {
        char *path; /* may hold wildcards */
        bool optional;
};

struct lkg_unit {
        char **argv; /* of the first ExecStart; as written in the unit, specifiers resolved */
        size_t n_argv;
        bool verbatim;      /* ExecStart=:..., nothing is expanded */
        char **environment; /* NAME=VALUE */
        size_t n_environment;
        struct lkg_unit_file *files; /* EnvironmentFile= */
        size_t n_files;
};

void lkg_unit_deinit(struct lkg_unit *unit);
/** lkg_unit_read() - the properties of a service, from the reply @m to GetAll. Return: 0; -ENOENT: it has no ExecStart. */
int lkg_unit_read(sd_bus_message *m, struct lkg_unit *ret);
/** lkg_unit_query() - ask systemd for @name over @bus. Return: 0; -ENOENT: no such unit; another -errno: not known. */
int lkg_unit_query(sd_bus *bus, const char *name, struct lkg_unit *ret);
/**
 * lkg_unit_words() - its command line as the process would get it, without the first word, each word ended by a NUL.
 * Return: 0; -ENOENT when a file that must be there is not; -ENOMEM.
 */
int lkg_unit_words(const struct lkg_unit *unit, struct lkg_buf *ret);

/* ---- exec-line.c: environment and expansion, systemd.exec(5) and systemd.service(5), "Command lines" ---- */

struct lkg_env {
        char **items; /* NAME=VALUE, each name once */
        size_t n_items;
};

void lkg_env_deinit(struct lkg_env *env);
/** lkg_env_set() - a later value replaces an earlier one; what is no assignment is ignored. Return: 0 or -ENOMEM. */
int lkg_env_set(struct lkg_env *env, const char *assignment);
/** lkg_env_parse() - the text of an EnvironmentFile=. Return: 0 or -ENOMEM. */
int lkg_env_parse(struct lkg_env *env, const char *text, size_t size);
/**
 * lkg_exec_expand() - one word of ExecStart= with variables replaced, each resulting word ended by a NUL.
 *
 * `$NAME` as a whole word: split at white space, quotes respected, so none or several words. `${NAME}` anywhere: exactly
 * its text. `$$`: one `$`. A variable that is not set is empty. Failure is sticky in @ret.
 */
void lkg_exec_expand(const struct lkg_env *env, const char *word, struct lkg_buf *ret);
