# SPDX-License-Identifier: Apache-2.0
"""A program that answers JSON requests with JSON replies, one per line."""

import decimal
import json
import queue
import re
import subprocess
import threading

TIMEOUT = 30


def number(text):
    """Numbers are compared by value, whatever their size: 1, 1.0 and 1e0 are alike, 2**64 and 1.8e19 are not."""
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation:  # an exponent that Decimal cannot represent
        return ("number", text)


def parse(line):
    return json.loads(line, parse_int=number, parse_float=number)


def readable(text):
    """Text as a reader sees it: half a surrogate pair, which a JSON merge patch passes on, is not a character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def alike(a, b):
    """Equal as JSON values."""
    if isinstance(a, str) and isinstance(b, str):
        return a == b or readable(a) == readable(b)
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        a = {readable(key): member for key, member in a.items()}
        b = {readable(key): member for key, member in b.items()}
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


class Peer:
    def __init__(self, program):
        self.program = program
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.pump, args=(self.process, self.lines), daemon=True).start()

    @staticmethod
    def pump(process, lines):
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def replies(self, requests):
        """Return the replies; fewer than requests if the program ends or does not answer in time."""
        try:
            for request in requests:
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for _ in requests:
            try:
                line = self.lines.get(timeout=TIMEOUT)
            except queue.Empty:
                return
            if line is None:
                return
            yield parse(line)

    def ask(self, requests):
        """Return one reply for each request; None if the program ended or did not answer."""
        answers = []
        while len(answers) < len(requests):
            answers += self.replies(requests[len(answers) :])
            if len(answers) < len(requests):
                answers.append(None)
                self.stop()
                self.start()
        return answers
