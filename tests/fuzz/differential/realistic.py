# SPDX-License-Identifier: Apache-2.0
"""Configurations as installers write them, as a basis for changes."""

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PROXY = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

DOCUMENTS = {
    "KubeletConfiguration": [
        KUBELET + """authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
""",
        KUBELET + """address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 2m0s, enabled: true}}
authorization: {mode: Webhook}
cgroupDriver: systemd
cgroupRoot: /
clusterDNS: [172.20.0.10]
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
evictionHard:
  memory.available: 100Mi
  nodefs.available: 10%
  nodefs.inodesFree: 5%
featureGates:
  RotateKubeletServerCertificate: true
hairpinMode: hairpin-veth
kubeReserved:
  cpu: 70m
  ephemeral-storage: 1Gi
  memory: 574Mi
kubeReservedCgroup: /runtime
logging:
  verbosity: 2
maxPods: 29
protectKernelDefaults: true
providerID: aws:///us-west-2a/i-0123456789
readOnlyPort: 0
serializeImagePulls: false
serverTLSBootstrap: true
systemReservedCgroup: /system
tlsCipherSuites:
- TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
- TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
""",
        KUBELET + """enforceNodeAllocatable: [pods, kube-reserved, system-reserved]
kubeReserved: {cpu: 200m, memory: 512Mi}
systemReserved: {cpu: 200m, memory: 512Mi}
kubeReservedCgroup: /kube.slice
systemReservedCgroup: /system.slice
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
memoryManagerPolicy: Static
reservedMemory:
- numaNode: 0
  limits: {memory: 1124Mi}
topologyManagerPolicy: single-numa-node
shutdownGracePeriod: 60s
shutdownGracePeriodCriticalPods: 20s
evictionSoft: {memory.available: 300Mi}
evictionSoftGracePeriod: {memory.available: 1m30s}
registerWithTaints:
- {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}
tracing: {endpoint: "localhost:4317", samplingRatePerMillion: 1000}
failSwapOn: false
memorySwap: {swapBehavior: LimitedSwap}
""",
    ],
    "KubeProxyConfiguration": [
        PROXY + """bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
  tcpBeLiberal: false
  tcpCloseWaitTimeout: null
  tcpEstablishedTimeout: null
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables:
  localhostNodePorts: null
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: true
  syncPeriod: 0s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
metricsBindAddress: 0.0.0.0:10249
mode: ipvs
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
""",
        PROXY + "mode: nftables\nnftables: {masqueradeBit: 14, syncPeriod: 30s, minSyncPeriod: 1s}\n",
    ],
}
