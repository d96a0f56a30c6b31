/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the exec plugin of a kubeconfig as client-go's plugin/pkg/client/auth/exec does, with less: a fixed PATH, only the
 * environment named here, no terminal, and limits. Never in the engine: in a process that the supervisor starts for it.
 *
 * The plugin runs as root, so its program and every directory of the path must be root's (lkg_open_owned()).
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/credential.h>

#define LKG_EXEC_PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LKG_EXEC_OUTPUT_MAX (64u << 10)
#define LKG_EXEC_SAID_MAX   2048u /* bytes of its stderr that are kept */
#define LKG_EXEC_LIMIT_NS   (25 * LKG_NSEC_PER_SEC)

/**
 * lkg_exec_plugin_find() - the program that @command means.
 * @command: absolute, or a name for @search (directories with `:` between them)
 * Return: 0, @ret is absolute, heap; -ENOENT; -EPERM: not root's alone; -EACCES: not executable; another -errno.
 */
int lkg_exec_plugin_find(const char *command, const char *search, char **ret, struct lkg_error *err);

/** lkg_exec_plugin_info() - KUBERNETES_EXEC_INFO: an ExecCredential with spec.interactive and, if wanted, spec.cluster. */
void lkg_exec_plugin_info(const struct lkg_kubeconfig *kubeconfig, struct lkg_buf *buf);

/**
 * lkg_exec_plugin_run() - run it to its end.
 * @program:  from lkg_exec_plugin_find()
 * @limit_ns: then it is killed with its process group
 * @ret:      what it printed, NUL-terminated, at least one byte; heap, a secret: the caller wipes it
 * @said:     appended: the beginning of its stderr, also when it fails
 *
 * Return: 0; -ETIMEDOUT; -EFBIG over LKG_EXEC_OUTPUT_MAX; -EIO: it ended badly or printed nothing; another -errno.
 */
int lkg_exec_plugin_run(const struct lkg_kubeconfig *kubeconfig, const char *program, uint64_t limit_ns,
                        char **ret, size_t *ret_size, struct lkg_buf *said, struct lkg_error *err);

/**
 * lkg_exec_credential() - print the output of the plugin that the kubeconfig names, or one line why there is none. Logs that line
 * and the plugin's stderr.
 * @enabled: is remote configuration on?
 *
 * Return: exit code: 0; 78: the configuration or the kubeconfig does not allow it or is wrong; 74: the plugin failed; 70.
 */
int lkg_exec_credential(const struct lkg_credential_options *options, bool enabled);
