# SPDX-License-Identifier: Apache-2.0
"""Values for fields: of the right type, at its limits, of another type; and the words that a field accepts."""

from jsontree import Members, Raw

DURATIONS = [
    "0s", "0", "1s", "10s", "1m", "1m30s", "90s", "1h", "2h0m0s", "100ms", "999us", "1µs", "1μs", "1ns", "-1s", "-5m", "+3s",
        ".5s", "1.s",
    "1.5h", "300ms", "1h1m1s1ms1us1ns", "720h", "2562047h47m16.854775807s", "2562047h47m16.854775808s",
        "-2562047h47m16.854775808s", "1d",
    "", "s", "5", "1 s", " 1s", "1S", "1e3s", "0.000000001s", "0.0000000001s", "9223372036854775807ns",
        "9223372036854775808ns", "00001s",
    "1s1s", "-0s", "1m0.5s", "5m0s", "4h", "10m", "30s", "500ms", "60000ms",
]
QUANTITIES = [
    "0", "1", "100m", "1Gi", "100Mi", "10Mi", "1.5Gi", "0.5", ".5", "1.", "1e3", "1E3", "12e6", "1e-3", "1E", "1Ei", "5Pi",
        "1k", "1K", "1Ki",
    "-1", "-1Gi", "+1", "1n", "1u", "1500m", "0.1n", "1000Gi", "9223372036854775807", "9223372036854775808", "8Ei", "1e18",
        "1e19", "100%",
    "10%", "", " ", "1 Gi", " 1Gi", "Gi", "1GI", "1Gib", "0Mi", "1000000000000000000000000", "0.0001Ki",
        "1.2345678901234567890", "12345.678k",
    "-", "--1", "1e", "1e+3", "01", "007Gi", "64Ki", "65536", "1048576", "-0", "0.0",
]
PERCENTS = ["10%", "0%", "100%", "5%", "101%", "-1%", "0.5%", "10", "1e1%", "%", "10 %", "5.5%", "100.1%", "+5%"]
SIGNALS = [
    "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree",
        "containerfs.available",
    "containerfs.inodesFree", "pid.available", "allocatableMemory.available", "bogus.available", "", "$patch",
]
RESOURCES = ["cpu", "memory", "ephemeral-storage", "pid", "hugepages-2Mi", "hugepages-1Gi", "storage", "nvidia.com/gpu", "",
    "Memory", "x"]
INTEGERS = [0, 1, 2, 5, 7, 10, 50, 80, 85, 99, 100, 101, 110, 1000, 10250, 10255, 65535, 65536, -1, -2, -999, -1000, -1001,
    1001, 31, 32, 14, 15]
EDGES = [
    2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30,
] + [Raw(text) for text in ("1.0", "5e1", "1.5", "-0", "-0.0", "0.5", "1e400", "1E2", "5.0e0", "1e-1", "1e-400", "100e-2")]
WRONG = [None, True, False, 0, 1, "", "x", "1", "true", [], {}, ["x"], [1], [None], Members([("a", "b")]), Members([("a",
    None)]), Raw("1.5")]
SHAPES = [None, Members(), [], "", 5, "x", [1], ["x"], Members([("x", 1)]), [None], Members([("x", None)])]
YAML_WORDS = [Raw(text) for text in ("yes", "Off", "y", "n", "~", "0x1F", "010", "0b11", "1_000", "+5", ".5", "1e3", "08",
    "!!str 5", "!!int '5'", "0o17", "1:30", "2001-01-01", "'yes'", "TRUE", "")]
PATHS = ["/x", "x", "./x", "../x", "a/b", "/a/../b", "a//b/", "", ".", "..", "/", "/var/log/pods", "~/x", "/é",
    "../../../../../../x"]
HOSTS = ["0.0.0.0", "127.0.0.1", "::", "::1", "10.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "localhost", "", "fe80::1%eth0",
    "::ffff:1.2.3.4", "256.1.1.1", "1.2.3.4:80", "[::1]:80", "0.0.0.0:10256", ":80"]
CIDRS = ["10.0.0.0/8", "10.0.0.1/8", "fd00::/64", "10.0.0.0/33", "10.0.0.0", "", "10.0.0.0/8,fd00::/64", "0.0.0.0/0", "x/8",
    "10.0.0.0/08", "fd00::/08"]
CPUS = ["0", "0-3", "0,2", "1-", "-1", "3-1", "", "0-1,4-5", "a", "0,", " 0", "0-0", "00", "1,1", "65535"]

WORDS = {
    "tlsCipherSuites[]": ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA",
        "TLS_FOO", "", "tls_aes_128_gcm_sha256"],
    "tlsCurvePreferences[]": [23, 24, 25, 29, 4587, 4588, 4589, 4590, 0, 1, -1, 65535, 65536],
    "tlsMinVersion": ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13", "VersionTLS14", "", "TLS1.2"],
    "authorization.mode": ["Webhook", "AlwaysAllow", "AlwaysDeny", "webhook", ""],
    "imagePullCredentialsVerificationPolicy": ["NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages",
        "AlwaysVerify", "", "x"],
    "preloadedImagesVerificationAllowlist[]": ["registry.io/a", "registry.io/a*", "registry.io/*", "*", "a", "", "A/b",
        "registry.io/a:1", "registry.io/a@sha256:00", "docker.io/library/x"],
    "clusterDNS[]": HOSTS, "clusterDomain": ["cluster.local", "x.", "", "-x"],
    "podCIDR": CIDRS, "address": HOSTS, "healthzBindAddress": HOSTS, "metricsBindAddress": HOSTS, "bindAddress": HOSTS,
        "clusterCIDR": CIDRS,
    "nodePortAddresses[]": CIDRS + ["primary", "localhost", "all", "primary", "All"],
    "cgroupDriver": ["cgroupfs", "systemd", "", "x"], "cgroupRoot": ["/", "", "/x"],
    "kubeletCgroups": ["/k", "", "x"], "systemCgroups": ["/s", "", "x"], "kubeReservedCgroup": ["/k", "", "x"],
        "systemReservedCgroup": ["/s", "", "x"],
    "cpuManagerPolicy": ["none", "static", "", "x"], "cpuManagerPolicyOptions{}": ["true", "false", "", "x"],
    "memoryManagerPolicy": ["None", "Static", "none", "", "BestEffort"],
    "topologyManagerPolicy": ["none", "best-effort", "restricted", "single-numa-node", "", "x"],
    "topologyManagerScope": ["container", "pod", "", "x"], "topologyManagerPolicyOptions{}": ["true", "8", "9", "7", "0", "x",
        ""],
    "hairpinMode": ["promiscuous-bridge", "hairpin-veth", "none", "", "x"], "qosReserved{}": PERCENTS,
    "contentType": ["application/json", "", "x"],
    "evictionHard{}": PERCENTS + QUANTITIES, "evictionSoft{}": PERCENTS + QUANTITIES,
        "evictionMinimumReclaim{}": PERCENTS + QUANTITIES,
    "evictionSoftGracePeriod{}": DURATIONS, "systemReserved{}": QUANTITIES + PERCENTS, "kubeReserved{}": QUANTITIES + PERCENTS,
    "memorySwap.swapBehavior": ["NoSwap", "LimitedSwap", "", "UnlimitedSwap", "x"],
    "containerLogMaxSize": QUANTITIES, "configMapAndSecretChangeDetectionStrategy": ["Watch", "Cache", "Get", "", "x"],
    "reservedSystemCPUs": CPUS, "showHiddenMetricsForVersion": ["", "1.34", "1.36", "x", "1", "1.35.0", "1.37"],
    "enforceNodeAllocatable[]": ["pods", "none", "system-reserved", "kube-reserved", "system-reserved-compressible",
        "kube-reserved-compressible", "", "x"],
    "allowedUnsafeSysctls[]": ["kernel.msg*", "net.ipv4.route.min_pmtu", "kernel.sem", "net/ipv4/x", "net.*", "*", "kernel.*",
        "", "x", "kernel.shm_rmid_forced", "fs.mqueue.*", "a..b"],
    "defaultPodSysctls{}": ["1", "", "x y"],
    "logging.format": ["text", "", "x"], "logging.vmodule[].filePattern": ["a", "a=b", "a,b", "", "*"],
    "memoryReservationPolicy": ["None", "TieredReservation", "", "x"],
    "registerWithTaints[].key": ["a", "a/b", "example.com/x", "", "-", "A_b.c", "node.kubernetes.io/unschedulable"],
    "registerWithTaints[].value": ["", "v", "-", "x y", "a" * 64], "registerWithTaints[].effect": ["NoSchedule",
        "PreferNoSchedule", "NoExecute", "", "x"],
    "tracing.endpoint": ["localhost:4317", "", "http://x:1", "unix:///x", "https://x", "dns:///x", "x y", "/x", "::1",
        "[::1]:1", "http://", "%"],
    "containerRuntimeEndpoint": ["unix:///run/x.sock", "", "/run/x.sock", "tcp://x", "npipe:////./pipe/x"],
    "imageServiceEndpoint": ["unix:///run/x.sock", "", "x"], "providerID": ["aws:///x", ""], "staticPodURL": ["http://x",
        "http://u:p@x/", ""],
    "staticPodURLHeader{}[]": ["a", "", "secret"], "logging.options.text.infoBufferSize": QUANTITIES,
        "logging.options.json.infoBufferSize": QUANTITIES,
    "memoryThrottlingFactor": [0.9, 0, 1, 0.1, 1.1, -0.1, Raw("1e-1"), Raw("0.90")],
    "tracing.samplingRatePerMillion": [0, 1, 1000000, 1000001, -1], "userNamespaces.idsPerPod": [65536, 131072, 65535, 0, 1,
        2**31, 2**32, 65536 * 65536, 65536 * 65535],
    "shutdownGracePeriodByPodPriority[].priority": [0, 1, 100, 2000000000, -1],
        "shutdownGracePeriodByPodPriority[].shutdownGracePeriodSeconds": [0, 1, 10, 60, -1],
    "iptablesMasqueradeBit": [0, 14, 31, 32, -1, 15], "iptablesDropBit": [0, 15, 31, 32, -1, 14], "oomScoreAdj": [-1000, 1000,
        -1001, 1001, 0],
    "imageGCHighThresholdPercent": [85, 80, 100, 0, 101, -1, 79], "imageGCLowThresholdPercent": [80, 85, 0, 100, 101, -1, 86],
    "healthzPort": [0, 10248, 65535, 65536, -1], "port": [10250, 1, 0, 65536, -1], "readOnlyPort": [0, 10255, -1, 65536],
    "maxParallelImagePulls": [0, 1, 2, 5, -1], "nodeStatusMaxImages": [-1, 0, 50, -2], "podPidsLimit": [-1, 0, 1, 1000, -2],
    "mode": ["iptables", "ipvs", "nftables", "", "userspace", "kernelspace", "IPVS"], "detectLocalMode": ["ClusterCIDR",
        "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", "", "x"],
    "detectLocal.bridgeInterface": ["br0", "", "a" * 16, "a b"], "detectLocal.interfaceNamePrefix": ["veth", "", "a" * 16],
    "ipvs.scheduler": ["rr", "wrr", "", "x", "lc"], "ipvs.excludeCIDRs[]": CIDRS, "portRange": ["", "1-2", "1000-2000", "1+2",
        "x", "70000-80000", "2-1"],
    "winkernel.networkName": ["x", ""], "winkernel.sourceVip": ["1.2.3.4", ""], "winkernel.rootHnsEndpointName": ["x", ""],
    "clientConnection.contentType": ["application/json", ""], "clientConnection.kubeconfig": PATHS,
}
KEYS = {
    "evictionHard": SIGNALS, "evictionSoft": SIGNALS, "evictionSoftGracePeriod": SIGNALS, "evictionMinimumReclaim": SIGNALS,
        "qosReserved": ["memory", "cpu", "", "x"],
    "systemReserved": RESOURCES, "kubeReserved": RESOURCES, "reservedMemory[].limits": RESOURCES, "staticPodURLHeader": ["A",
        "Metadata-Flavor", "", "a b"],
    "cpuManagerPolicyOptions": ["full-pcpus-only", "align-by-socket", "distribute-cpus-across-numa",
        "distribute-cpus-across-cores", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache", "x"],
    "defaultPodSysctls": ["net.ipv4.ip_forward", "net/ipv4/ip_forward", "kernel.domainname", "user.max_user_namespaces", "kernel.sem",
        "fs.mqueue.msg_max", "fs.file-max", "net.*", "net..x", "net.x_", "", "net.ipv4.conf.eth0/100.rp_filter",
        "net/ipv4/conf/eth0.100/rp_filter", "net.x", "NET.x", "user", "net", "net." + "a" * 249, "net." + "a" * 250],
    "topologyManagerPolicyOptions": ["prefer-closest-numa-nodes", "max-allowable-numa-nodes", "x"],
}
EXTRA_GATES = ["AllAlpha", "AllBeta", "AllAlpha\0", "NodeSwap\0", "NoSuchGate", "MaxPods", "CSIMigration", "DynamicKubeletConfig", "", "nodeSwap"]


def pick_bool(rng):
    return rng.random() < 0.5


def pick_int(rng):
    return rng.choice(INTEGERS) if rng.random() < 0.9 else rng.choice(EDGES)


BY_TYPE = {
    "bool": pick_bool, "string": lambda rng: rng.choice(PATHS + ["x", "X y", "é", "a\nb", "1", "null"]), "int": pick_int,
        "int32": pick_int,
    "int64": pick_int, "uint32": pick_int, "float32": lambda rng: rng.choice([0, 1, 0.5, 50, -1, Raw("1e38"), Raw("1e39"),
        Raw("0.1"), Raw("16777217"), Raw("1e-46")]),
    "float64": lambda rng: rng.choice([0, 1, 0.5, -1, 0.9, Raw("1e308"), Raw("1e309"), Raw("0.30000000000000004")]),
    "v1.Duration": lambda rng: rng.choice(DURATIONS), "resource.QuantityValue": lambda rng: rng.choice(QUANTITIES),
        "resource.Quantity": lambda rng: rng.choice(QUANTITIES),
    "v1.TimeOrMetaDuration": lambda rng: rng.choice(DURATIONS + [0, 1, 5000000000, 2**63 - 1, 2**63, -1, Raw("5e9"), Raw("1.5")]),
    "v1.VerbosityLevel": lambda rng: rng.choice([0, 1, 2, 10, 2**31 - 1, 2**31, 2**32 - 1, 2**32, -1]),
    "v1.Time": lambda rng: rng.choice(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+01:00", "2024-13-01T00:00:00Z", "", "x",
        "2024-01-01", "2024-01-01T00:00:00z"]),
}


class Values:
    """Values for the fields of one kind; @rows as in the oracle's `fields`, @gates as in its `gates`."""

    def __init__(self, rows, gates):
        self.rows = {row["path"]: row["go"].lstrip("*") for row in rows}
        self.gates = [gate["name"] for gate in gates]
        self.members = {}
        for path in self.rows:
            parent, _, name = path.rpartition(".")
            self.members.setdefault(parent, []).append(name)
        self.leaves = [path for path in self.rows if "[" not in path and path not in self.members and path not in ("kind",
            "apiVersion")]

    def struct(self, rng, path, wild):
        names = self.members[path]
        chosen = rng.sample(names, rng.randint(1, len(names)) if rng.random() < 0.8 else len(names))
        return Members((name, self.value(rng, f"{path}.{name}", wild)) for name in chosen)

    def typed(self, rng, path, go, wild):
        if path == "featureGates":
            names = self.gates if rng.random() < 0.9 else EXTRA_GATES
            return Members((rng.choice(names), pick_bool(rng)) for _ in range(rng.choice([0, 1, 1, 2, 3])))
        if path in WORDS and rng.random() < 0.95:
            return rng.choice(WORDS[path])
        if go.startswith("map["):
            keys = rng.sample(KEYS.get(path, ["a", "b", ""]), rng.choice([0, 1, 1, 2]))
            return Members((key, self.value(rng, path + "{}", wild, go[go.index("]") + 1 :])) for key in keys)
        if go == "v1.ResourceList":
            return Members((key, self.value(rng, path + "{}", wild, "resource.Quantity")) for key in rng.sample(RESOURCES,
                rng.choice([0, 1, 1, 2])))
        if go.startswith("[]") or path + "[]" in self.members:
            return [self.value(rng, path + "[]", wild, go[2:]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        if path in self.members:
            return self.struct(rng, path, wild)
        return BY_TYPE.get(go, BY_TYPE["string"])(rng)

    def value(self, rng, path, wild, go=None):
        """@wild: how often the value has another type."""
        if rng.random() < wild:
            return rng.choice(rng.choice([WRONG, EDGES, DURATIONS, QUANTITIES]))
        value = self.typed(rng, path, go or self.rows.get(path, "string"), wild)
        if isinstance(value, str) and rng.random() < 0.01:  # Go's strings go on at a NUL, those of C end there
            value = rng.choice([value + "\0", value + "\0x", "\0" + value])
        return value
