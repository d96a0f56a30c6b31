/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of the engine: it reads layers, keeps state, and talks to the API server. See <lkg/syscalls.h>. */
#pragma once

#include <lkg/syscalls.h>

extern const struct lkg_syscall_policy lkg_engine_syscalls;
