/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `lkgfs-engine --exec-credential`: runs the exec plugin of the kubeconfig that the configuration names, outside of the
 * engine's sandbox, for an engine that cannot execute anything. The engine only asks (LKG_MSG_CREDENTIAL); the command is read
 * from root's own files here, so it has no say in it.
 */
#pragma once

#include <lkg/config.h>

struct lkg_exec_credential_options {
        const struct lkg_config *config;
        const char *source_path, *mount_point; /* mount_point may be NULL */
};

/**
 * lkg_exec_credential() - print the plugin's output, or one line why there is none. Logs that line and the plugin's stderr.
 * Return: exit code: 0; 78: the configuration or the kubeconfig does not allow it or is wrong; 74: the plugin failed; 70.
 */
int lkg_exec_credential(const struct lkg_exec_credential_options *options);
