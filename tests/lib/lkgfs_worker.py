# SPDX-License-Identifier: Apache-2.0
"""An isolated machine for pages and tests that use real paths: /etc/kubernetes, /run/lkgfs, no systemd.

It has its own namespaces for mounts, processes and the host name. /etc, /var/lib and /usr/bin are those of this machine, with
changes in memory only; /run is empty, and there is no view yet. Everything ends with the first process.
"""
import contextlib
import os
import pathlib
import subprocess

import lkgfs_testlib as lib
from lkgfs_page import Shell, play, steps

WRITABLE = ("/etc", "/var/lib", "/usr/bin")
SET_UP = """set -e
hostname "$1"
findmnt -rno TARGET -t fuse.lkgfs | while read -r other; do umount -l "$other"; done
mount -t tmpfs -o mode=0755 tmpfs "$2"
cd "$2"  # whatever is mounted over it next
for d in $3; do
        mkdir -p ".$d/upper" ".$d/work"
        mount -t overlay -o "lowerdir=$d,upperdir=.$d/upper,workdir=.$d/work" overlay "$d"
done
mount -t tmpfs -o mode=0755 tmpfs /run
echo ready
while :; do sleep 3600 & wait; done
"""


class Worker:
    """`name` is its host name; a context manager."""

    def __init__(self, name, directory):
        self.name = name
        os.mkdir(directory, 0o755)
        self.unshare = subprocess.Popen(["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
                                         "--propagation", "private", "bash", "-c", SET_UP, "worker", name, directory,
                                         " ".join(WRITABLE)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
        if self.unshare.stdout.readline() != b"ready\n":
            self.close()
            raise lib.Failure(f"no machine {name}")
        self.pid = int(pathlib.Path(f"/proc/{self.unshare.pid}/task/{self.unshare.pid}/children").read_text())

    def path(self, name):
        """The path from outside."""
        return f"/proc/{self.pid}/root{name}"

    def write(self, name, data, mode=0o600):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        lib.write_file(self.path(name), data, mode)

    def shell(self, environment=None, directory="/root"):
        return Shell(["nsenter", "--target", str(self.pid), "--mount", "--uts", "--pid", "--"], environment, directory)

    def play(self, page):
        """Run a page whose only shell is root's here; what lkgfs_page.play() returns."""
        with self.shell({"PATH": f"{lib.LKGFSD.parent}:{lib.LKGFS.parent}:{os.environ['PATH']}"}) as shell:
            return play(steps(page), {"# ": shell}, lib.TIMEOUT_S)

    def close(self):
        """The first process of a pid namespace takes all others with it, and they take the mounts."""
        with contextlib.suppress(ProcessLookupError):
            self.unshare.kill()
        self.unshare.wait()
        self.unshare.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
