/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the exec plugin of a kubeconfig like client-go's plugin/pkg/client/auth/exec, but with restrictions:
 * a fixed PATH, only the environment named here, no terminal, and limits. Never in the engine, but in a
 * process that the supervisor starts for it.
 *
 * The plugin runs as root, so its program and every directory of the path must be owned by root
 * (lkg_open_owned()).
 */
#pragma once

#include <lkg/buf.h>
#include <lkg/credential.h>

#define LKG_EXEC_PATH       "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LKG_EXEC_OUTPUT_MAX (64u << 10)
#define LKG_EXEC_SAID_MAX   2048u /* limit of the stderr text that is kept */
#define LKG_EXEC_LIMIT_NS   (25 * LKG_NSEC_PER_SEC)

/**
 * lkg_exec_plugin_find() - find the program for @command.
 * @command: absolute, or a name for @search (directories with `:` between them)
 * Return: 0, @ret is absolute, heap; -ENOENT; -EPERM: users other than root could change it; -EACCES: not
 * executable; another -errno.
 */
int lkg_exec_plugin_find(const char *command, const char *search, char **ret, struct lkg_error *err);

/**
 * lkg_exec_plugin_info() - write KUBERNETES_EXEC_INFO: an ExecCredential with spec.interactive and, if
 * requested, spec.cluster.
 */
void lkg_exec_plugin_info(const struct lkg_kubeconfig *kubeconfig, struct lkg_buf *buf);

/**
 * lkg_exec_plugin_run() - run it to its end.
 * @program:  from lkg_exec_plugin_find()
 * @limit_ns: after that it is killed with its process group
 * @ret:      its output, NUL-terminated, at least one byte; heap, a secret: the caller wipes it
 * @said:     appended: the start of its stderr, even if it fails
 *
 * Return: 0; -ETIMEDOUT; -EFBIG over LKG_EXEC_OUTPUT_MAX; -EIO: it failed or printed nothing; another
 * -errno.
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
