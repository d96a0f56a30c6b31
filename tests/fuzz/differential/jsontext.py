# SPDX-License-Identifier: Apache-2.0
"""JSON texts, well-formed and malformed."""

PIECES = (
    ["{", "}", "[", "]", ",", ":", '"', '"a"', '"b":', '"a":1', '{"a":1}', "[1]", " ", "\n", "\t", "\r", "\f", "\u00a0", "\ufeff"]
    + ["0", "1", "-", "-0", "-1", "01", "1.", ".5", "1.5", "1e3", "1E+3", "1e", "1e400", "-1e400", "1e-400", "0e0", "0x1"]
    + ["99999999999999999999", "null", "true", "false", "nul", "True", "NaN", "Infinity", "'a'", "//", "/**/", "\\", "\\n"]
    + ["\\/", "\\u0041", "\\ud83d", "\\ude00", "\\ud83d\\ude00", "\\u00", "\\x41", "\\'", "\x7f", "\x00", "\x1f", "\u2028", "é", "😀"]
)


def value(rng, depth=0):
    choice = rng.random()
    if depth > 3 or choice < 0.45:
        return rng.choice(['"a"', '""', "1", "-1.5e3", "0", "true", "false", "null", '"\\u00e9\\n"', "1e400", "12345678901234567890"])
    space = rng.choice(["", "", " ", "\n"])
    items = [value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if choice < 0.7:
        return "[" + space + ("," + space).join(items) + space + "]"
    keys = [rng.choice(['"a"', '"b"', '"A"', '"\\u0061"', '""']) for _ in items]
    return "{" + space + ("," + space).join(k + space + ":" + i for k, i in zip(keys, items)) + space + "}"


def generate(rng):
    text = value(rng) if rng.random() < 0.7 else "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 8)))
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        i = rng.randint(0, len(text))
        j = min(len(text), i + rng.randint(0, 4))
        text = text[:i] + rng.choice(["", rng.choice(PIECES)]) + text[rng.choice([i, j]) :]
    return text
