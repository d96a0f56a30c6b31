# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of documentation pages and compares their output with what the page shows.

A fenced block `sh` is pasted as it is and must print nothing. In a block `console` a line after a prompt is a command, up to the
end of its here-document if it has one, and the lines that follow are its output. A prompt names the shell: `# ` is one,
`worker-1# ` another. `sh` takes the name of its shell after it (```sh worker-1). What a reader need not type is in a comment of
the page, and must print nothing either:

    <!-- worker-1# kubelet --version > /dev/null -->

Each shell is one process for the whole page, so directories, functions and variables persist.
"""
import contextlib
import os
import difflib
import re
import select
import signal
import subprocess
import time

MARK = "\x1e"
BLOCK = re.compile(r"^```(\w*)(?: ([\w.-]+))?\n(.*?)^```$|^<!-- (.*?) -->$", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"<<\s*'?(\w+)'?")
EVERYWHERE = ((r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"), (r"\bgeneration \d+", "generation <n>"), (r"^bash: line \d+: ", "bash: "))


class Step:
    """One command of a page."""

    def __init__(self, shell, command, output):
        self.shell, self.command, self.output = shell, command, output

    def shown(self, output):
        return f"{self.shell}{self.command}\n{output}"


def split_console(body, prompts):
    """Return (prompt, command, output) of each command."""
    found, lines = [], body.splitlines(keepends=True)
    while lines:
        line = lines.pop(0)
        prompt = next((one for one in prompts if line.startswith(one)), None)
        if prompt is None:
            assert found, f"output before the first command: {line!r}"
            found[-1][2] += line
            continue
        command = line[len(prompt):]
        heredoc = HEREDOC.search(command)
        while heredoc and lines:
            command += lines[0]
            if lines.pop(0).rstrip("\n") == heredoc[1]:
                break
        found.append([prompt, command.rstrip("\n"), ""])
    return found


def steps(text, prompts=("# ",)):
    """Return the steps of a page in order. The first prompt is the shell of `sh` blocks that name none."""
    found = []
    for kind, shell, body, hidden in BLOCK.findall(text):
        if hidden:
            prompt = next((one for one in prompts if hidden.startswith(one)), None)
            if prompt:
                found.append(Step(prompt, hidden[len(prompt):], ""))
            continue
        assert kind in ("sh", "console"), f"a block of kind {kind!r} is not run"
        if kind == "sh":
            found.append(Step(f"{shell}# " if shell else prompts[0], body.rstrip("\n"), ""))
        else:
            found += [Step(*piece) for piece in split_console(body, prompts)]
    return found


class Shell:
    """A bash that gets one command at a time; a context manager. `argv` starts it, e.g. nsenter."""

    def __init__(self, argv=(), environment=None, directory="/"):
        self.process = subprocess.Popen([*argv, "bash", "--norc", "--noprofile"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory, bufsize=0,
                                        env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}, start_new_session=True)

    def run(self, command, timeout):
        """Return what the command prints, including standard error. A command that times out returns its output so far."""
        self.process.stdin.write(f"{{ {command}\n}} < /dev/null\nprintf '{MARK}'\n".encode())
        text, end, out = b"", time.monotonic() + timeout, self.process.stdout
        while not text.endswith(MARK.encode()):
            if not select.select([out], [], [], max(0, end - time.monotonic()))[0]:
                return text.decode() + "[does not come back]\n"
            piece = os.read(out.fileno(), 65536)
            if not piece:
                return text.decode() + "[the shell has ended]\n"
            text += piece
        return text[:-1].decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def play(page, shells, timeout):
    """Run all steps, each in its shell. Return (the page, the page with the actual output), in the same form."""
    expected, real = "", ""
    for step in page:
        output = shells[step.shell].run(step.command, timeout)
        expected += step.shown(step.output)
        real += step.shown(output)
        if "[does not come back]" in output or "[the shell has ended]" in output:
            break
    return expected, real


def check_same(shown, came, placeholders=()):
    """`placeholders`: (pattern, word) pairs, for other text that differs between machines."""
    print(came)  # to copy from, when a page is written
    for pattern, placeholder in (*EVERYWHERE, *placeholders):
        shown, came = (re.sub(pattern, placeholder, text, flags=re.MULTILINE) for text in (shown, came))
    different = list(difflib.unified_diff(shown.splitlines(), came.splitlines(), "the page", "what came", n=2, lineterm=""))
    assert not different, "\n" + "\n".join(different)
