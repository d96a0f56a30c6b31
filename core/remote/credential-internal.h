/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the credential*.c files only. */
#pragma once

#include <lkg/http.h>
#include <lkg/file.h>

enum lkg_credential_code {
        LKG_K_KUBECONFIG = 7001,
        LKG_K_FILE = 7002, /* a file that it names */
        LKG_K_EXEC = 7003,
        LKG_K_ENDS = 7004, /* certificate or token */
};

/* ---- identity.c ---- */

/**
 * lkg_identity_same() - would the API server see no difference? Serial and expiry are not compared; either
 * may be NULL.
 */
bool lkg_identity_same(const struct lkg_identity *a, const struct lkg_identity *b);

/*
 * ---- credential-exec.c: the answer of an exec plugin, and when to run it again; no I/O, clocks are
 * arguments ----
 */

struct lkg_exec_state {
        bool wanted; /* the kubeconfig has a plugin */
        bool asked;  /* and its answer is not here yet */
        bool stale;  /* its answer was rejected, or the kubeconfig has changed */
        bool have;
        bool no_answer;                       /* an attempt ended without one, see why; not looked at yet */
        uint64_t asked_ns, pause_ns, next_ns; /* not before next_ns */
        uint64_t refresh_ns;                  /* what we have is renewed; UINT64_MAX = it says no end */
        uint64_t expires_ns;                  /* 0 = it says none */
        char *token, *certificate, *key;
        char *answer, *why; /* arrived, not looked at yet; why the last attempt failed, NULL = it did not */
        size_t answer_size;
};

void lkg_exec_state_deinit(struct lkg_exec_state *state);
/**
 * lkg_exec_state_done() - the plugin has finished: @text, or NULL and @why.
 * Return: 0 or -ENOMEM.
 */
int lkg_exec_state_done(struct lkg_exec_state *state, const char *text, size_t size, const char *why);
/**
 * lkg_exec_state_step() - take a new answer; run the plugin if it is due.
 * @run: runs it; result as in struct lkg_credential_options
 * @ret_review_ns: the time of the next step
 * Return: 0 or -ENOMEM.
 */
int lkg_exec_state_step(struct lkg_exec_state *state, const char *api_version, uint64_t now_ns,
                        int (*run)(void *userdata), void *userdata, uint64_t *ret_review_ns);

/* ---- one check of all files: credential-files.c, credential-parts.c ---- */

#define LKG_CREDENTIAL_NODE_FILE "kubelet.conf"
#define LKG_CREDENTIAL_FILES_MAX 5u /* kubeconfig, CA, certificate, key, token */

/* The state of a file when it was checked. */
struct lkg_seen {
        char *path;
        bool in_source; /* kubelet.conf below source_fd */
        bool exists;
        bool young; /* so recent that another write might leave the file's identity (times, size) unchanged */
        struct lkg_file_id id;
};

/* Where the search ends. */
enum lkg_found { LKG_FOUND_CONFIGURED, LKG_FOUND_POD, LKG_FOUND_SOURCE };

struct lkg_credential {
        char *kubeconfig, *source_path, *mount_point, *pod_dir, *source_file;
        char *context; /* NULL = the current one */
        int source_fd;
        bool allow_exec, allow_insecure;
        int (*run_exec)(void *userdata);
        void *userdata;

        enum lkg_found place;
        enum lkg_credential_kind kind;
        bool looked; /* at least once */
        bool again;  /* whatever the files say */
        struct lkg_seen seen[LKG_CREDENTIAL_FILES_MAX];
        size_t n_seen;
        uint64_t looked_ns, review_ns; /* review_ns: look again then, UINT64_MAX = never for that */
        struct lkg_report report;
        struct lkg_identity *identity;
        uint64_t serial;
        struct lkg_exec_state exec;
        char exec_config[LKG_SHA256_HEX]; /* of the kubeconfig whose plugin was asked */
};

/* One check of all files. */
struct lkg_look {
        struct lkg_credential *c;
        uint64_t now_ns, review_ns;
        struct lkg_seen seen[LKG_CREDENTIAL_FILES_MAX];
        size_t n_seen;
        struct lkg_report report;
        struct lkg_kubeconfig *k;
        enum lkg_credential_kind kind;
        struct lkg_identity *identity; /* being made */
        bool incomplete;               /* something is missing or does not fit; said */
        bool no_memory;
};

/**
 * lkg_look_say() - add a finding. @x NULL: about the kubeconfig as a whole; without a field: about the file.
 * An error makes the look incomplete, unless it is about an expiry.
 */
void lkg_look_say(struct lkg_look *l, enum lkg_severity severity, unsigned code,
                  const struct lkg_file_or_data *x, const char *fmt, ...) LKG_PRINTF(5, 6);
/**
 * lkg_look_path() - lkgfs must not read through its own view: convert a path below the view into one below
 * the source directory. Heap.
 */
char *lkg_look_path(const struct lkg_credential *c, const char *path);
/** lkg_look_note() - record one more file. @path: taken over. NULL = no memory. */
struct lkg_seen *lkg_look_note(struct lkg_look *l, char *path, bool in_source);
/** lkg_look_read() - Return: 0; -errno with @err. */
int lkg_look_read(struct lkg_look *l, struct lkg_seen *seen, char **ret, size_t *ret_size,
                  struct lkg_error *err);
/**
 * lkg_look_part() - read @x as a text without NUL bytes; NULL if it is not given or cannot be read.
 * @severity: of a finding about that
 */
char *lkg_look_part(struct lkg_look *l, const struct lkg_file_or_data *x, enum lkg_severity severity);
bool lkg_seen_changed(const struct lkg_credential *c, const struct lkg_seen *seen);
void lkg_seen_forget(struct lkg_seen *seen, size_t *n);

/** lkg_look_take() - fill l->identity from l->k. */
void lkg_look_take(struct lkg_look *l);
/** lkg_look_review_at() - request another check at @at_ns. */
void lkg_look_review_at(struct lkg_look *l, uint64_t at_ns);
