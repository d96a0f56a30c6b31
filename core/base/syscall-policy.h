/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of the engine: it reads layers, keeps state, and talks to the API server. See <lkg/process.h>. */
#pragma once

#include <lkg/process.h>

extern const struct lkg_syscall_policy lkg_engine_syscalls;
/*
 * The same for an engine that is root: it changes no mode, owner or time. Everything of root's would be its own, also on a file system
 * that is mounted after its start and is not read-only for it, and Landlock does not know these calls.
 */
extern const struct lkg_syscall_policy lkg_engine_syscalls_of_root;
