#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A laboratory of virtual machines: Debian 12 with systemd and Debian's kernel under QEMU, with no network. $LKGFS_MACHINE names another
machine that `image` can make: `trixie`, `bookworm+bookworm-backports`, `bookworm:arm64`.

A machine's disk is a copy-on-write clone of the image that `image` makes. `agent` runs commands in it. By hand, as root:

    tests/machine/laboratory.py FOLDER [FILE...]

boots one with its console on this terminal, after copying FILEs to /root; Ctrl-A X ends it. FOLDER keeps the image. `--image FOLDER`
only makes that.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MACHINE = os.environ.get("LKGFS_MACHINE", "bookworm")
ARM = MACHINE.endswith(":arm64")
BOOT_S = 300  # with QEMU's translator on a busy machine; the usual time is a fifth of it
COMMAND_S = 120


class Failure(Exception):
    pass


def emulator():
    """QEMU with KVM, or with its translator, about ten times slower. A /dev/kvm without VMX or SVM behind it is slower than the translator."""
    if ARM:
        return ["qemu-system-aarch64", "-machine", "virt", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "cortex-a72"]
    cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    if os.access("/dev/kvm", os.R_OK | os.W_OK) and re.search(r"\b(vmx|svm)\b", cpu):
        return ["qemu-system-x86_64", "-machine", "q35,accel=kvm", "-cpu", "host"]
    # What Debian needs and no more: with -cpu max a boot takes the translator a fifth longer.
    return ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem"]


def make_image(folder):
    """The image below @folder; made, if none is there or what it is made by has changed."""
    parts = b"".join((HERE / name).read_bytes() for name in ("image", "agent", "machine-agent.service", "../trixie/packages", "../../contrib/release/debian"))
    name = f"image-{MACHINE.replace(':', '-')}"
    image = pathlib.Path(folder).absolute() / f"{name}-{hashlib.sha256(parts).hexdigest()[:12]}"
    image.parent.mkdir(parents=True, exist_ok=True)
    if subprocess.run([HERE / "image", image, MACHINE], check=False).returncode != 0:
        raise Failure("the image could not be made")
    for other in image.parent.glob(f"{name}-{'?' * 12}"):
        if other != image:
            shutil.rmtree(other)
    return image


class VirtualMachine:
    def __init__(self, image, folder, memory="1G", files=None):
        """@files: a folder whose content is on a disk of its own, /dev/vdb."""
        self.image = image
        self.memory = memory
        self.folder = folder
        self.process = self.port = self.reader = None
        self.boots = 0
        self.serial = folder / "serial.log"
        self.last_id = 0
        self.changed = threading.Condition()
        self.answers = {}
        self.agents = 0  # how often the agent has said that it is there
        self.disk = folder / "disk.qcow2"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", image / "disk.raw", self.disk], check=True)
        self.more = []
        if files:
            size = sum(path.stat().st_size for path in pathlib.Path(files).rglob("*")) * 5 // 4 + (32 << 20)
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", files, folder / "files.raw", f"{size >> 10}k"], check=True)
            self.more = ["-drive", f"file={folder / 'files.raw'},if=virtio,format=raw,readonly=on"]

    def command(self, *devices):
        # cache=writeback: the machine sees a disk with a volatile cache and has to flush it. no_timer_check: without a processor it would panic.
        return [*emulator(), "-smp", "2", "-m", self.memory, "-kernel", str(self.image / "vmlinuz"), "-initrd", str(self.image / "initrd"),
                "-append", f"root=/dev/vda rw console={'ttyAMA0' if ARM else 'ttyS0'} quiet mitigations=off no_timer_check systemd.show_status=1 systemd.mask=systemd-timesyncd.service",
                "-drive", f"file={self.disk},if=virtio,format=qcow2,cache=writeback", "-device", "virtio-rng-pci", "-nic", "none",
                "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,name=machine", "-no-reboot", "-display", "none", *self.more, *devices]

    # ---- power ----

    def boot(self):
        """Returns when it takes commands, which may be before it has booted."""
        if self.process is not None:
            raise Failure("it runs")
        self.boots += 1
        self.serial = self.folder / f"serial-{self.boots}.log"
        ours, theirs = socket.socketpair()
        with theirs, open(self.folder / "qemu.log", "ab") as log:
            command = self.command("-chardev", f"socket,id=port,fd={theirs.fileno()}", "-serial", f"file:{self.serial}", "-monitor", "none")
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command],  # it ends with us
                                            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.port = ours
        self.agents = 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        with self.changed:
            if not self.changed.wait_for(lambda: self.agents or self.port is None, BOOT_S) or self.port is None:
                raise Failure(f"it does not boot: {self.tail()}")

    def cut(self):
        """Take the power away, now: what the machine has not flushed to its disk is lost."""
        if self.process is not None:
            self.process.kill()
            self._ended()

    def wait_for_end(self, seconds):
        """Until it has shut down. With -no-reboot a reboot is one, too."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"it did not shut down within {seconds} s: {self.tail()}") from None
        self._ended()

    def shut_down(self, how="poweroff", seconds=BOOT_S):
        """In order; returns the seconds."""
        start = time.monotonic()
        self.run("systemctl", "--no-block", how)
        self.wait_for_end(seconds)
        return time.monotonic() - start

    def _ended(self):
        self.process.wait()
        self.process = None
        self.reader.join()

    # ---- commands ----

    def _read(self):
        pieces = []  # of a line, which may be long
        while True:
            try:
                data = self.port.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                break
            *ends, rest = data.split(b"\n")
            with self.changed:
                for end in ends:
                    message = json.loads(b"".join([*pieces, end]))
                    pieces = []
                    if message["id"] == 0:
                        self.agents += 1
                    self.answers[message["id"]] = message
                self.changed.notify_all()
            pieces.append(rest)
        with self.changed:
            self.port.close()
            self.port = None
            self.changed.notify_all()

    def run(self, *argv, input=b"", check=False, timeout=COMMAND_S):  # pylint: disable=redefined-builtin
        """As root inside; the result of subprocess.run()."""
        done = self.carry_out(argv, input, timeout)
        if check and done.returncode != 0:
            raise Failure(f"{argv}: status {done.returncode}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done

    def carry_out(self, argv, input, timeout):  # pylint: disable=redefined-builtin
        with self.changed:
            if self.port is None:
                raise Failure(f"{argv}: it does not run: {self.tail()}")
            self.last_id += 1
            number = self.last_id
            self.port.sendall(json.dumps({"id": number, "argv": list(argv), "input": base64.b64encode(input).decode()}).encode() + b"\n")
            if not self.changed.wait_for(lambda: number in self.answers or self.port is None, timeout):
                raise Failure(f"{argv}: no answer within {timeout} s: {self.tail()}")
            if number not in self.answers:
                raise Failure(f"{argv}: it has ended")
            answer = self.answers.pop(number)
        return subprocess.CompletedProcess(argv, answer["status"], base64.b64decode(answer["stdout"]).decode(errors="replace"),
                                           base64.b64decode(answer["stderr"]).decode(errors="replace"))

    def shell(self, script, **options):
        return self.run("bash", "-c", script, **options)

    def output(self, script, **options):
        return self.shell(script, check=True, **options).stdout

    def write(self, path, data, mode="644"):
        data = data if isinstance(data, bytes) else data.encode()
        self.shell(f"mkdir -p $(dirname {path}) && cat > {path} && chmod {mode} {path}", input=data, check=True)

    def put(self, source, mode="644"):
        """Copy a file to /root and return its path there."""
        source = pathlib.Path(source)
        self.write(f"/root/{source.name}", source.read_bytes(), mode)
        return f"/root/{source.name}"

    def wait_until(self, script, seconds=60):
        """Until @script succeeds inside."""
        loop = (f"end=$((SECONDS + {seconds})); until {{ {script}\n}} > /tmp/wait-until 2>&1; do "
                "((SECONDS < end)) || { cat /tmp/wait-until; exit 1; }; sleep 0.1; done")
        done = self.shell(loop, timeout=seconds + COMMAND_S)
        if done.returncode != 0:
            raise Failure(f"waited {seconds} s in vain: {script}\n{done.stdout}{done.stderr}")

    def tail(self):
        text = self.serial.read_text(errors="replace")[-3000:] if self.serial.exists() else ""
        log = self.folder / "qemu.log"
        return f"\n--- console\n{text}\n--- qemu\n{log.read_text(errors='replace')[-1000:] if log.exists() else ''}"


def main():
    if os.geteuid() != 0 or len(sys.argv) < 2 or (sys.argv[1] == "--image" and len(sys.argv) != 3):
        sys.exit("usage: laboratory.py FOLDER [FILE...] | --image FOLDER   (root)")
    if sys.argv[1] == "--image":
        try:
            make_image(sys.argv[2])
        except Failure:
            sys.exit(1)  # `image` has said why
        return
    image = make_image(sys.argv[1])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="machine-", dir=sys.argv[1]))
    try:
        machine = VirtualMachine(image, folder)
        if sys.argv[2:]:
            machine.boot()
            for name in sys.argv[2:]:
                machine.put(name)
            machine.shut_down()
        subprocess.run(machine.command("-chardev", "null,id=port", "-serial", "mon:stdio"), check=False)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
