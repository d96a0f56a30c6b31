# SPDX-License-Identifier: Apache-2.0
"""A machine to install packages on: namespaces, with a root that shows the files of this machine and keeps changes to itself
(an overlay in memory). No service manager runs in it; `tests/package/systemctl` stands in for systemd
as far as a package and lkgfsd use it. Machines with a kernel and a systemd of their own: tests/machine/laboratory.py."""
import contextlib
import json
import pathlib
import subprocess

import lkgfs_testlib as lib

FOLDER = lib.REPOSITORY / "tests/package"
ETC = "etc/kubernetes"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class NamespaceMachine:
    def __init__(self, systemd=True):
        self.process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--propagation", "private",
                                         "bash", FOLDER / "machine-init"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            self.close()
            raise lib.Failure("the machine did not start")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        self.init = int(children.split()[0])
        self.root = pathlib.Path(f"/proc/{self.init}/root")
        if systemd:
            self._stand_in()

    def _stand_in(self):
        folder = self.root / "run/stand-in"
        folder.mkdir()
        (self.root / "run/systemd/system").mkdir(parents=True)
        target = self.root / "usr/bin/systemctl"
        if target.exists():
            target.unlink()
        target.write_bytes((FOLDER / "systemctl").read_bytes())
        target.chmod(0o755)

    def run(self, *command, check=False, timeout=120, **options):
        return lib.run("nsenter", "--target", str(self.init), "--mount", "--pid", "--uts", "--ipc", *command, check=check,
                       timeout=timeout, env={"PATH": PATH, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}, **options)

    def shell(self, script, **options):
        return self.run("bash", "-c", script, **options)

    def put(self, source):
        """Copy a file into the machine and return its path there."""
        target = self.root / "tmp" / pathlib.Path(source).name
        target.write_bytes(pathlib.Path(source).read_bytes())
        return "/tmp/" + target.name

    def dpkg(self, *options, check=True):
        result = self.run("dpkg", *options)
        if check and result.returncode != 0:
            raise lib.Failure(f"dpkg {options}: {result.stdout.decode()}{result.stderr.decode()}")
        return result.stdout.decode() + result.stderr.decode()

    def install(self, package):
        return self.dpkg("--install", self.put(package))

    def exists(self, path):
        return self.run("test", "-e", path).returncode == 0

    def read(self, path):
        return self.run("cat", path, check=True).stdout.decode()

    def write(self, path, text):
        self.shell(f"mkdir -p \"$(dirname {path})\" && cat > {path}", input=text.encode(), check=True)

    def mounts(self):
        return self.run("findmnt", "--raw", "--noheadings", "--types", lib.FSTYPE, "--output", "TARGET").stdout.decode().split()

    def processes(self):
        """{program: [pid]} of lkgfs, as the machine counts them; a program that was replaced has " (deleted)" in its name."""
        script = 'for p in /proc/[0-9]*; do exe=$(readlink $p/exe) && case $exe in /usr/sbin/lkgfsd*|/usr/libexec/lkgfs/*) echo "${p#/proc/} $exe";; esac; done'
        found = {}
        for line in self.shell(script).stdout.decode().splitlines():
            pid, _, path = line.partition(" ")
            found.setdefault(path.rpartition("/")[2], []).append(int(pid))
        return found

    def wait_for(self, predicate, what, seconds=lib.TIMEOUT_S):
        end = lib.deadline(seconds)
        while not predicate():
            if lib.time.monotonic() > end:
                raise lib.Failure(f"waited in vain: {what}\n{self.processes()}\n{self.mounts()}")
            lib.time.sleep(0.05)

    def node(self):
        """The files of a node: a base and drop-ins, as the end-to-end tests have them."""
        self.shell(f"rm -rf /{ETC} && mkdir -p /{ETC}/kubelet.conf.d /{ETC}/manifests /{ETC}/pki", check=True)
        self.write(f"/{ETC}/kubelet.conf", lib.BASE)
        for name, text in lib.DROPINS.items():
            self.write(f"/{ETC}/kubelet.conf.d/{name}", text)

    def put_tree(self, tree):
        """The files of a node as an installer makes them, below /; those of another node are gone."""
        self.shell("rm -rf /etc/kubernetes /var/lib/kubelet /etc/systemd/system/kubelet.service*", check=True)
        # /lib and others are links.
        self.shell("tar -xf - -C / --no-same-owner --keep-directory-symlink",
                   input=lib.run("tar", "-C", tree, "-cf", "-", ".", check=True).stdout, check=True)

    @contextlib.contextmanager
    def readers(self):
        """Read and write through the view at full speed; afterwards no call may have failed."""
        process = subprocess.Popen(["nsenter", "--target", str(self.init), "--mount", "--pid", "--uts", "--ipc", "python3", "-c",
                                    (FOLDER / "readers").read_text(encoding="utf-8")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        report = {}
        try:
            assert process.stdout.readline() == "ready\n"
            yield report
            report.update(json.loads(process.communicate("stop\n", timeout=lib.TIMEOUT_S)[0]))
        finally:
            process.kill()
            process.communicate()
        assert report["failed"] == [] and report["reads"] > 100 and report["writes"] > 1, report

    def log(self):
        return self.shell("cat /run/stand-in/log").stdout.decode()

    def close(self):
        """Ends the first process, and with it the kernel every other one and all mounts."""
        self.process.stdin.close()
        self.process.wait(lib.TIMEOUT_S)
        self.process.stdout.close()
