# SPDX-License-Identifier: Apache-2.0
"""YAML texts: from fragments, from a structure, or from other texts; and shorter ones."""

PIECES = (
    ["a", "b", "key", "1", "0x1F", "010", "1.5", "1e3", ".5", ".inf", "~", "null", "yes", "No", "y", "<<", "é", "😀"]
    + [" ", "  ", "    ", "\n", "\n", "\n  ", "\n    ", "\n\n", "\r\n", "\r", "\t", "\u0085", "\u2028", "\ufeff"]
    + [": ", ":", ":\n", "- ", "-", "-\n", "? ", "?", ",", ", ", "[", "]", "{", "}", "#", " #", "# c\n", "&", "*"]
    + ["&a ", "*a", "*a ", "&b ", "*b", "!", "! ", "!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!!binary "]
    + ["!!timestamp ", "!!merge ", "!foo ", "!<x> ", "!<tag:yaml.org,2002:str> ", "!e!x ", "!%41 ", "|", ">", "|\n  "]
    + [">\n  ", "|-\n  ", "|+\n ", "|2\n  ", ">1-\n  ", "|0\n", "'", "''", '"', '"a"', "'a'", '\\', '\\n', '\\"']
    + ["\\x41", "\\u00e9", "\\U0001F600", "\\ud83d", "\\/", "\\\n", "\\ ", "\\_", "\\L", "\\N", "---", "---\n", "--- "]
    + ["...", "...\n", "%", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n", "%TAG !e! tag:e.org:\n---\n", "%FOO\n", "@", "`"]
    + ["a: 1\n", "b: 2\n", "- a\n", "a: &a {b: 1}\n", "<<: *a\n", "<<: [*a, *b]\n", "? a\n: b\n", "[a, b]", "{a: 1}"]
    + ["{a:,b:}", "[a:]", "1_000", "0b11", "-0b1", "0o17", "+1", "-", "--", "1:30", "2001-01-01", "=", "|\n", "\x7f"]
)
WORDS = [
    "a", "b", "c", "x y", "1", "-1", "1.0", "0x10", "1e3", "true", "yes", "on", "n", "null", "~", "'q'", '"d"', "''",
    '"\\u00e9"', "a:b", "a#b", "http://x", "<<", ".inf", "-.5", "1_0", "0b1", "08", "10%", "a,b", "!!str 1", "!x y",
]


def scalar(rng):
    return rng.choice(WORDS)


def flow(rng, depth):
    choice = rng.random()
    if depth > 3 or choice < 0.4:
        return scalar(rng)
    space = rng.choice(["", " ", " ", "\n  ", "\n", "\t", " # c\n "])
    items = []
    for _ in range(rng.randint(0, 3)):
        item = flow(rng, depth + 1)
        if choice < 0.7 or rng.random() < 0.2:
            item = rng.choice(["", "", "", "? "]) + item + rng.choice([": ", ":", " : ", ":\n "]) + flow(rng, depth + 1)
        items.append(item)
    text = rng.choice([",", ", "]).join(items) + rng.choice(["", "", ","])
    return ("{" if choice < 0.7 else "[") + space + text + space + ("}" if choice < 0.7 else "]")


def literal(rng, indent):
    lines = [rng.choice(["x", " x", "", "  ", "x  ", "\tx", "# x", "- x", "a: b"]) for _ in range(rng.randint(0, 4))]
    head = rng.choice("|>") + rng.choice(["", "", "-", "+", "1", "2", "2-", "+1", " # c"])
    return head + "\n" + "".join(" " * rng.choice([indent, indent, indent + 1]) + line + "\n" for line in lines)


def block(rng, indent, depth):
    """Lines of a block collection, or a scalar, that begins after the indicator of its parent."""
    choice = rng.random()
    properties = rng.choice([""] * 12 + ["&a ", "&b ", "!!map ", "!x ", "! ", "!!str ", "&a !x "])
    pad = " " * indent
    if depth > 3 or choice < 0.3:
        return " " + properties + scalar(rng) + rng.choice(["", "", "", " # c", "\n" + pad + " more"]) + "\n"
    if choice < 0.4:
        return " " + properties + flow(rng, 2) + "\n"
    if choice < 0.5:
        return " " + properties + literal(rng, indent + 1)
    if choice < 0.56:
        return " " + rng.choice(["*a", "*b"]) + "\n"
    inner = indent + rng.choice([0, 1, 2, 2, 2])
    pad = " " * inner
    text = (" " + properties if properties else "") + "\n"
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.05:
            text += rng.choice(["\n", "# c\n", pad + "# c\n", "\t\n", "  \n"])
        if choice < 0.8:
            key = rng.choice([scalar(rng), scalar(rng), "<<", "*a ", "? " + scalar(rng) + "\n" + pad, "&b k"])
            text += pad + key + ":" + block(rng, inner, depth + 1)
        else:
            text += pad + "-" + block(rng, inner + rng.choice([0, 1]), depth + 1)
    return text


def structure(rng):
    text = block(rng, 0, 0)
    head = rng.choice([""] * 8 + ["---", "---\n", "%YAML 1.1\n---", "\ufeff", "# c\n"])
    tail = rng.choice([""] * 8 + ["...\n", "---\n", "...\nx", "--- x\n", "\n\n"])
    text = head + text + tail
    return text.replace("\n", "\r\n") if rng.random() < 0.03 else text


def soup(rng):
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 14)))


def mutate(rng, text, other):
    i = rng.randint(0, len(text))
    j = min(len(text), i + rng.randint(0, 6))
    choice = rng.random()
    if choice < 0.35:
        return text[:i] + rng.choice(PIECES) + text[i:]
    if choice < 0.55:
        return text[:i] + text[j:]
    if choice < 0.65:
        return text[:i] + rng.choice(PIECES) + text[j:]
    if choice < 0.75:
        return text[:i] + text[i:j] * 2 + text[j:]
    if choice < 0.85:
        return text[:i] + other[rng.randint(0, len(other)) :]
    lines = text.split("\n")
    k = rng.randrange(len(lines))
    if choice < 0.93:
        lines[k] = rng.choice([" ", "  ", "- ", "\t", "# ", "? ", ": "]) + lines[k]
    else:
        lines[k] = lines[k].lstrip()
    return "\n".join(lines)


def generate(rng, seeds):
    choice = rng.random()
    if choice < 0.25:
        text = soup(rng)
    elif choice < 0.55 or not seeds:
        text = structure(rng)
    else:
        text = rng.choice(seeds)
    if len(text) > 4000:
        text = text[:4000]
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5])):
        text = mutate(rng, text, rng.choice(seeds) if seeds else soup(rng))
    return text


def shorter(text):
    """Variants of the text with a piece removed, the biggest pieces first."""
    size = len(text) // 2
    while size > 0:
        for i in range(0, len(text) - size + 1, max(1, size // 2)):
            yield text[:i] + text[i + size :]
        size //= 2
