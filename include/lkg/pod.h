/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kubelet makes of the manifest of a static pod (--pod-manifest-path, staticPodPath).
 *
 * Rule: pkg/kubelet/config, tryDecodeSinglePod() and applyDefaults(): a lenient decode, defaults, ValidatePodCreate() with the
 * options of the kubelet's default feature gates, HasAPIObjectReference(). The kubelet takes all of a file or nothing, and tells only
 * its log.
 *
 * Not judged, so accepted, because a static pod has little use for it or nobody writes it by hand:
 *
 *     what only a pod of Windows has;
 *     the insides of what a static pod cannot have anyway (Secrets, claims), of which a kubelet of 1.33 refuses some;
 *     annotations with a meaning (profiles, tolerations, the cost of a deletion), owners beyond their names, names of managers;
 *     forms of what volumes of single vendors and block protocols name (iSCSI, Fibre Channel, Flocker, Quobyte, ...);
 *     huge pages of a whole pod without cpu or memory, up to 1.36; underscores in DNS searches, up to 1.34; bindMountOptions.
 *
 * Feature gates have their defaults: what the kubelet's own configuration sets is not asked for.
 *
 * One thread, like the value tree.
 */
#pragma once

#include <lkg/documents.h>

/**
 * lkg_pod_judge() - what a kubelet says of a manifest.
 * @doc:     the first document of the file, in the format of lkg_detect_format(), read with LKG_DECODE_TWICE
 * @release: as 1.NN: 136; 0 = the latest
 * @report:  gets errors: the kubelet refuses the file; warnings: what it ignores without a word. Each has the path of the field
 *           and the position of the value, or of what should have it
 *
 * Rules are asked when every value has the right type.
 */
void lkg_pod_judge(const struct lkg_value *doc, unsigned release, struct lkg_report *report);

/* ---- of a manifest that need not be right: what is not there, or of the wrong type, is not found ---- */

/** lkg_pod_name() - as it is written, "" if it has none; the kubelet appends `-NODE`. */
const char *lkg_pod_name(const struct lkg_value *doc);
/** lkg_pod_namespace() - `default` if it says none. */
const char *lkg_pod_namespace(const struct lkg_value *doc);

/* Where paths of this machine are looked up. */
struct lkg_pod_host {
        enum lkg_severity severity; /* of each finding */
        const char *mount_point;    /* of a view that must not be looked through; NULL = none */
        int source_fd;              /* what is there instead */
};

/**
 * lkg_pod_check_host() - what only this machine can say, as far as it is certain: paths of hostPath volumes, and files that a command line
 * names.
 */
void lkg_pod_check_host(const struct lkg_value *doc, const struct lkg_pod_host *host,
                        struct lkg_report *report);
/** lkg_pod_check_ports() - ports of the host that @other, the manifest in @file, wants as well. */
void lkg_pod_check_ports(const struct lkg_value *doc, const char *file, const struct lkg_value *other,
                         enum lkg_severity severity, struct lkg_report *report);
