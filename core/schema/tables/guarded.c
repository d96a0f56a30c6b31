/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of maps that a remote configuration may not set on a node with guard.profile: hardened. The map of
 * feature gates as a whole may be set, because rolling out gates is common; this file lists the gates with
 * which its author could run code, read files, grant access, open a port or remove protection, by turning
 * them on or off. Gates of the API server only, and gates that were locked or removed before the oldest
 * supported release, are not listed.
 */
#include <lkg/schema.h>

#define GATE(name) "featureGates." name

const struct lkg_guarded_key lkg_guarded_keys[] = {
        { GATE("AllAlpha"), "isolation: also sets gates that are denied individually" },
        { GATE("AllBeta"), "isolation: also sets gates that are denied individually" },
        { GATE("AllowDNSOnlyNodeCSR"), "authentication: a certificate for any name that the host claims" },
        { GATE("ClientsAllowCARotation"), "authentication: if off, a CA that was removed stays trusted" },
        { GATE("ComponentFlagz"), "discloses: serves the command line" },
        { GATE("ComponentStatusz"), "discloses: serves status information about the process" },
        { GATE("ContainerCheckpoint"), "discloses: writes the memory of containers to the node's disk" },
        { GATE("GitRepoVolumeDriver"), "runs-code: root runs git in a repository of the pod's choice" },
        { GATE("KubeProxyNFTablesLocalhostNodePorts"), "port: NodePorts answer on loopback addresses, too" },
        { GATE("KubeletAllocatedPodsEndpoint"), "discloses: serves what pods were granted" },
        { GATE("KubeletEnsureSecretPulledImages"),
          "authentication: if off, pods without credentials get private images" },
        { GATE("KubeletFineGrainedAuthz"), "authentication: decides which permissions the API requires" },
        { GATE("KubeletInUserNamespace"), "isolation: errors of kernel protections are ignored" },
        { GATE("KubeletServiceAccountTokenForCredentialProviders"),
          "discloses: passes tokens of pods to a program" },
        { GATE("NodeLogQuery"), "runs-code: runs the journal reader for clients" },
        { GATE("PreventStaticPodAPIReferences"),
          "isolation: if off, static pods may reference Secrets of the cluster" },
        { GATE("ProcMountType"), "isolation: pods may get an unmasked /proc" },
        { GATE("ReloadKubeletClientCAFile"), "authentication: if off, a CA that was removed stays trusted" },
        { GATE("ReloadKubeletServerCertificateFile"),
          "authentication: if off, a certificate that was replaced stays in use" },
        { GATE("RotateKubeletServerCertificate"),
          "authentication: decides who signs the serving certificate of the node" },
        { GATE("SupplementalGroupsPolicy"),
          "isolation: if off, an image can add groups that the pod excludes" },
        { GATE("UserNamespacesSupport"),
          "isolation: if off, root in a pod with a user namespace is root of the node" },
};
const size_t lkg_n_guarded_keys = LKG_ARRAY_SIZE(lkg_guarded_keys);
const unsigned lkg_gates_judged = 137;
