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

/** lkg_pod_name() - as it is written; the kubelet appends `-NODE`. Return: NULL: it has none. */
const char *lkg_pod_name(const struct lkg_value *doc);
/** lkg_pod_namespace() - `default` if it says none. */
const char *lkg_pod_namespace(const struct lkg_value *doc);

/* A port of the node that a container takes. */
struct lkg_pod_port {
        int64_t port;
        const char *protocol, *host_ip; /* TCP; "" = every address */
        const struct lkg_value *value;  /* the number, for its position */
};
/** lkg_pod_ports() - call @fn for each hostPort of the containers; with hostNetwork a containerPort is one. */
void lkg_pod_ports(const struct lkg_value *doc, void (*fn)(const struct lkg_pod_port *port, void *userdata),
                   void *userdata);

/* A hostPath volume, at each place where a container mounts it; once with @container NULL if none does. */
struct lkg_pod_mount {
        const char *path, *type; /* of the node; "" = nothing is checked */
        const char *container, *mount_path;
        bool read_only;
        const struct lkg_value *volume;
};
void lkg_pod_mounts(const struct lkg_value *doc,
                    void (*fn)(const struct lkg_pod_mount *mount, void *userdata), void *userdata);
