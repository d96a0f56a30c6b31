/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Installers of nodes, as data. A row says how its nodes are recognised and where the view goes; where the configuration is comes
 * from the kubelet's own command line. tests/e2e/adopt has one tree per row.
 *
 * The view is mounted over /etc/kubernetes where everything that writes there runs on the host, and beside it where something
 * does not (foreignWrites), or where systemd itself reads an EnvironmentFile= from there.
 */
#include "adopt.h"

#define BESIDE "/run/lkgfs/view"
#define OVER   "/etc/kubernetes"

#define EMBEDDED                                                                                            \
        "the kubelet is a part of this program and has no unit and no base document: lkgfs cannot make it " \
        "wait for the view. "                                                                               \
        "It reads drop-ins itself (config.yaml.d of the program, kubelet.conf.d of the kubelet); `lkgfs "   \
        "check --config-dir DIR` "                                                                          \
        "judges them, with DIR = "

const struct lkg_profile lkg_profiles[] = {
        /* k3s-io/k3s, install.sh (units); pkg/daemons/agent/agent_linux.go: --config-dir, 00-k3s-defaults.conf */
        { .name = "k3s",
          .units = { "k3s.service", "k3s-agent.service" },
          .cannot = EMBEDDED "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d" },
        /* rancher/rke2, bundle/lib/systemd/system */
        { .name = "RKE2",
          .units = { "rke2-server.service", "rke2-agent.service" },
          .cannot = EMBEDDED "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d" },
        /* openshift/machine-config-operator, templates/worker/01-worker-kubelet/_base/units/kubelet.service.yaml */
        { .name = "OpenShift",
          .units = { "kubelet.service" },
          .files = { "/etc/machine-config-daemon", "/etc/mco" },
          .config = { "/etc/kubernetes/kubelet.conf" },
          .mount_point = BESIDE,
          .source = OVER,
          .stays = { "every file of the machine-config-daemon: it compares them with its MachineConfig, and "
                     "it writes them from a "
                     "container",
                     "the static pods, which mount directories below /etc/kubernetes" } },
        /* awslabs/amazon-eks-ami, templates/al2023/runtime/rootfs/etc/systemd/system/kubelet.service and
           nodeadm/internal/kubelet/environment.go; templates/al2/runtime/kubelet.service */
        { .name = "EKS",
          .units = { "kubelet.service" },
          .files = { "/etc/eks" },
          .config = { "/etc/kubernetes/kubelet/config.json", "/etc/kubernetes/kubelet/kubelet-config.json" },
          .mount_point = BESIDE,
          .source = OVER,
          .stays = { "what nodeadm writes at every boot: its files are layers" } },
        /* kubernetes/minikube, pkg/minikube/bootstrapper/bsutil/ktmpl/v1beta1.go (kubelet.service, 10-kubeadm.conf) */
        { .name = "minikube",
          .units = { "kubelet.service" },
          .files = { "/var/lib/minikube" },
          .config = { "/var/lib/kubelet/config.yaml" },
          .mount_point = OVER,
          .source = OVER,
          .stays = { "`minikube start` writes kubelet.service.d/10-kubeadm.conf again: run `lkgfs adopt "
                     "--over` after an upgrade" } },
        /* kubernetes-sigs/kind, images/base/files/etc/systemd/system */
        { .name = "kind",
          .units = { "kubelet.service" },
          .files = { "/kind" },
          .config = { "/var/lib/kubelet/config.yaml" },
          .mount_point = OVER,
          .source = OVER,
          .stays = { "the node is a container: it needs /dev/fuse" } },
        /* kubernetes-sigs/kubespray, roles/kubernetes/node/templates/kubelet.service.j2, kubelet.env.v1beta1.j2 */
        { .name = "Kubespray",
          .units = { "kubelet.service" },
          .files = { "/etc/kubernetes/kubelet.env" },
          .config = { "/etc/kubernetes/kubelet-config.yaml" },
          .mount_point = BESIDE,
          .source = OVER,
          .stays = { "/etc/kubernetes/kubelet.env, which systemd reads before the view is there" } },
        /* kubernetes/kubernetes, cluster/gce/gci/configure-helper.sh: create-kubelet-conf(), start-kubelet() */
        { .name = "GKE",
          .units = { "kubelet.service" },
          .config = { "/home/kubernetes/kubelet-config.yaml" },
          .mount_point = BESIDE,
          .stays = { "on Container-Optimized OS /etc does not survive a reboot: adopt in a startup "
                     "script" } },
        /* kubernetes/release, cmd/krel/templates/latest/kubeadm/10-kubeadm.conf; kubeadm's phases kubelet-start and kubeconfig */
        { .name = "kubeadm",
          .units = { "kubelet.service" },
          .files = { "/var/lib/kubelet/kubeadm-flags.env", "/etc/kubernetes/kubelet.conf" },
          .config = { "/var/lib/kubelet/config.yaml" },
          .mount_point = OVER,
          .source = OVER,
          .stays = { "/etc/kubernetes/kubelet.conf, the kubeconfig",
                     "`kubeadm upgrade node` writes the base; the view follows" } },
        /* any other unit that starts a kubelet with --config */
        { .name = "no known installer", .units = { "kubelet.service" }, .mount_point = BESIDE },
};
const size_t lkg_n_profiles = LKG_ARRAY_SIZE(lkg_profiles);
