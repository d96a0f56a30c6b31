/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of maps that a remote configuration may not set on a node with guard.profile: hardened. The map of
 * feature gates as a whole is let pass, because most of what a fleet rolls out is a gate; here are those
 * with which its author could run code, read files, let others in, open a port or take protection away,
 * turned on or turned off. Gates of the API server only, and those that were locked or gone before the
 * oldest release, are not here.
 */
#include <lkg/schema.h>

#define GATE(name) "featureGates." name

const struct lkg_guarded_key lkg_guarded_keys[] = {
        { GATE("AllAlpha"), "isolation: sets the gates that are denied one by one, too" },
        { GATE("AllBeta"), "isolation: sets the gates that are denied one by one, too" },
        { GATE("AllowDNSOnlyNodeCSR"), "authentication: a certificate for any name that the host says" },
        { GATE("ClientsAllowCARotation"),
          "authentication: turned off, an authority that was withdrawn stays trusted" },
        { GATE("ComponentFlagz"), "discloses: serves the command line" },
        { GATE("ComponentStatusz"), "discloses: serves what runs and where" },
        { GATE("ContainerCheckpoint"), "discloses: the memory of containers is written to the node's disk" },
        { GATE("GitRepoVolumeDriver"), "runs-code: root runs git in a repository of the pod's choice" },
        { GATE("KubeletEnsureSecretPulledImages"),
          "authentication: turned off, private images go to pods without credentials for them" },
        { GATE("KubeletFineGrainedAuthz"), "authentication: decides which permission opens the API" },
        { GATE("KubeletInUserNamespace"), "isolation: errors of what protects the kernel are ignored" },
        { GATE("KubeletServiceAccountTokenForCredentialProviders"),
          "discloses: tokens of pods go to a program" },
        { GATE("NodeLogQuery"), "runs-code: runs the journal reader for callers" },
        { GATE("PreventStaticPodAPIReferences"),
          "isolation: turned off, static pods may name secrets of the cluster" },
        { GATE("ProcMountType"), "isolation: pods may see all of /proc" },
        { GATE("ReloadKubeletClientCAFile"),
          "authentication: turned off, an authority that was withdrawn stays trusted" },
        { GATE("ReloadKubeletServerCertificateFile"),
          "authentication: turned off, a certificate that was replaced stays in use" },
        { GATE("RotateKubeletServerCertificate"),
          "authentication: decides who signs the certificate that the node is known by" },
        { GATE("SupplementalGroupsPolicy"),
          "isolation: turned off, an image chooses groups that the pod has forbidden" },
        { GATE("UserNamespacesSupport"),
          "isolation: turned off, the root of a pod with a user namespace is that of the node" },
};
const size_t lkg_n_guarded_keys = LKG_ARRAY_SIZE(lkg_guarded_keys);
const unsigned lkg_gates_judged = 136;
