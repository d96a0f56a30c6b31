# SPDX-License-Identifier: Apache-2.0
"""Compares the fields that two error messages name. We choose the words of an error, but not its field."""

import re

QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|cannot decode !!\w+ `[^`]*`')
WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:\[\d+\]|\.[A-Za-z][A-Za-z0-9]*)*")
ERROR = re.compile(r"^(?:.*?: )?error: (.*) \[LKG(\d+)\]$", re.MULTILINE)
GATE = re.compile(r"(?:unrecognized feature gate: |cannot set feature gate |invalid value of )(\w+)")

# Where upstream names a field differently from the document, or by a field of its internal type.
OTHER_WORDS = (
    (r"NodeLogQuery feature gate is required for enableSystemLogHandler", "enableSystemLogQuery"),
    (r"invalid taint: |taint\.TimeAdded", "registerWithTaints"),
    (r"pod logs path ", "podLogsDir"),
    (r"for NUMA node ", "reservedMemory"),
    (r"not run on a host using cgroup v1", "failCgroupV1"),
    (r"CredentialsVertificationPolicy", "imagePullCredentialsVerificationPolicy"),
    (r"KubeProxyConfiguration\.Mode", "mode"),
    (r"KubeProxyConfiguration\.SyncPeriod", "syncPeriod"),
    (r"KubeProxyConfiguration\.MinSyncPeriod", "minSyncPeriod"),
    (r"DetectLocalConfiguration\.ClusterCIDRs", "clusterCIDR"),
    (r"DetectLocalConfiguration\.InterfaceName", "detectLocal.bridgeInterface"),
    (r"DetectLocalConfiguration\.InterfacePrefix", "detectLocal.interfaceNamePrefix"),
)
# What follows is a document or a header.
NO_FIELDS = re.compile(r" is missing in '|unknown apiVersion/kind|unexpected GroupVersion string")
# One of two fields; upstream does not say which.
EITHER = re.compile(r"systemReservedCgroup \(--system-reserved-cgroup\) or kubeReservedCgroup \(--kube-reserved-cgroup\)")
# The same in our errors.
EITHER_OF = (("specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires",
              {"shutdowngraceperiod", "shutdowngraceperiodcriticalpods"}),)
# Upstream stops at the first of these rules that is violated: which rule can hide which others.
HIDDEN = {"failcgroupv1": ["singleprocessoomkill", "usernamespaces"], "singleprocessoomkill": ["usernamespaces"]}
SECTIONS = {
    "kubeproxyiptablesconfiguration": ["iptables"], "kubeproxyipvsconfiguration": ["ipvs"],
    "kubeproxynftablesconfiguration": ["nftables"], "kubeproxyconntrackconfiguration": ["conntrack"],
    "kubeproxylinuxconfiguration": [], "detectlocalconfiguration": ["detectlocal"],
}


def plain(name):
    """A name as it is compared: without indexes, in lower case."""
    return re.sub(r"\[\d*\]", "", name).lower()


class Fields:
    """The fields of one kind; @paths as in the oracle's `fields`."""

    def __init__(self, paths):
        self.paths = {plain(path) for path in paths}

    def known(self, name):
        """The longest path that @name equals or begins with; the rest is the key of a map. None: not a field."""
        parts = plain(name).split(".")
        if parts[0] == "kubeproxyconfiguration":
            parts = parts[1:]
        while parts and parts[0] in SECTIONS:
            parts = [*SECTIONS[parts[0]], *parts[1:]]
        for n in range(len(parts), 0, -1):
            if ".".join(parts[:n]) in self.paths:
                return ".".join(parts[:n])
        return None

    def of_upstream(self, error):
        """Every field that a message of upstream names."""
        text = QUOTED.sub('""', NO_FIELDS.split(error)[0])
        text = GATE.sub("", text)
        text, found = EITHER.sub("", text), set()
        for words, field in OTHER_WORDS:
            text, n = re.subn(words, "", text)
            found |= {plain(field)} if n else set()
        for match in WORD.finditer(text):
            name, behind = match.group(), text[match.end():]
            if re.search(r"Go struct field $", text[:match.start()]):
                name = name.partition(".")[2]  # the Go type, and the path after it
            elif name.islower() and "." not in name and not behind.startswith(" (--"):
                continue  # port, address, mode: ordinary words
            field = self.known(name)
            if field and field not in ("kind", "apiversion"):
                found.add(field)
        return found

    def of_ours(self, text):
        """For each error, the fields that it names, including the one it is about."""
        errors = []
        for match in ERROR.finditer(text):
            message = QUOTED.sub('""', match.group(1))
            fields = {self.known(word.group()) for word in WORD.finditer(message)}
            errors.append((match.group(), {field for field in fields if field}))
        return errors

    @staticmethod
    def is_read(text):
        """Did ours get as far as the fields? A document that cannot be read has no kind, and so no flags either."""
        return any(match.group(2).startswith("5") and not re.search(r"is unknown (?:for kind|in)", match.group(1))
                   for match in ERROR.finditer(text))


def near(field, fields):
    """Is the field in the list, or a parent or child of it?"""
    return any(other == field or other.startswith(field + ".") or field.startswith(other + ".")
               or other.endswith("." + field) or field.endswith("." + other) for other in fields)


def unnamed(fields, want, got):
    """Fields that only one side names: fields that upstream refuses and none of our errors names, and, where upstream reports
    everything that is wrong (its validation), errors of ours about something else.
    """
    theirs = fields.of_upstream(want.get("error") or "")
    ours = fields.of_ours(got.get("error") or "")
    ours_all = {field for _, named in ours for field in named}
    if want.get("stage") in ("flags", "gates") and not fields.is_read(got.get("error") or ""):
        return []
    for words, either in EITHER_OF:
        if words in (want.get("error") or ""):
            theirs = theirs - either | either & ours_all or either
    missing = [field for field in sorted(theirs) if not near(field, ours_all)]
    text = got.get("error") or ""
    missing += [gate for gate in GATE.findall(want.get("error") or "") if gate not in text]
    theirs |= {hidden for field in theirs for hidden in HIDDEN.get(field, [])}
    if want.get("stage") == "validate" and theirs:
        missing += [line for line, named in ours if not any(near(field, theirs) for field in named)]
    return missing
