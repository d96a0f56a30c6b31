/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that pass the kubelet's validation and fail at its start: the configuration is accepted, and the
 * kubelet exits a moment later. Rule: Kubernetes 1.36, cmd/kubelet/app (server.go, auth.go),
 * pkg/kubelet/eviction (ParseThresholdConfig), pkg/kubelet/cm (ParseQOSReserved, policies),
 * pkg/kubelet/logs, component-base cli/flag.
 *
 * They are reported as warnings. The caller checks conditions on more than one value: a soft eviction
 * threshold without a grace period for the same signal is refused, unless lkg_startup_threshold_off().
 */
#pragma once

#include <lkg/text.h>

/**
 * lkg_startup_check() - would the kubelet refuse to start with this value?
 * @field:  dotted path: `evictionHard`, `evictionSoft`, `evictionSoftGracePeriod`, `evictionMinimumReclaim`,
 *          `systemReserved`, `kubeReserved`, `qosReserved` (maps), `tlsCipherSuites` (each item),
 *          `tlsMinVersion`, `containerLogMaxSize`, `authorization.mode`, `cpuManagerPolicy`,
 *          `memoryManagerPolicy`
 * @key:    of a map; else ignored
 * @reason: LKG_REFUSAL_MAX bytes or NULL
 *
 * Any other field is accepted. The empty text is checked like any other: unset fields already have their
 * defaults.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int lkg_startup_check(const char *field, struct lkg_span key, struct lkg_span value, char *reason);

/**
 * lkg_startup_threshold_off() - is an eviction threshold switched off: exactly `0%` or `100%`?
 */
bool lkg_startup_threshold_off(struct lkg_span value);

/**
 * lkg_startup_amount() - what a reservation or an eviction threshold comes to.
 * @capacity: of which a percentage is taken; 0 = unknown
 * Return: 0; -EINVAL: no quantity, or a percentage of what is unknown; -ENOMEM.
 */
int lkg_startup_amount(struct lkg_span value, double capacity, double *ret);

/**
 * lkg_startup_tls_curve() - does the component know this item of tlsCurvePreferences as a key exchange?
 */
bool lkg_startup_tls_curve(int64_t id);
