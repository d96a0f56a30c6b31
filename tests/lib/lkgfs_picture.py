# SPDX-License-Identifier: Apache-2.0
"""The picture of README.md: what the quick start has shown, as a terminal in SVG."""
import html
import textwrap

COLUMNS, LINE, LEFT, TOP, CHARACTER = 100, 18, 22, 44, 7.83  # of a monospace font of 13 px
BACK, TEXT, COMMAND, TITLE, GOOD, WRONG = "#14171b", "#dfe3e8", "#7db7ff", "#a5adb8", "#7ee787", "#ff9b93"
# What is shown of it: under which of its headings, and the beginnings of the commands.
PARTS = {"A drop-in changes": ("sed", "grep maxPods"), "Where a value comes from": ("grep",),
         "A mistake": ("sed", "cat status/kubelet/condition", "cat status/kubelet/findings", "grep maxPods"), "The mistake is corrected": ("sed", "cat")}


def shown(text):
    """Lines of the quick start's output: (colour, text)."""
    part, keeps = (), False
    for line in text.splitlines():
        if line.startswith("== "):
            part = next((commands for title, commands in PARTS.items() if line[3:].startswith(title)), ())
            if part:
                yield from [(TEXT, ""), (TITLE, "# " + line[3:])]
        elif line.startswith("$ "):
            keeps = line[2:].startswith(part) if part else False
            if keeps:
                yield COMMAND, line
        elif part and keeps and line:
            colour = WRONG if line.startswith("False") or ": error: " in line else GOOD if line.startswith("True") else TEXT
            yield from ((colour, piece) for piece in textwrap.wrap(line.replace("\t", "  "), COLUMNS, break_on_hyphens=False))


def picture(text):
    lines = list(shown(text))[1:]
    width, height = int(COLUMNS * CHARACTER) + 2 * LEFT, TOP + LINE * len(lines) + 12
    rows = "".join(f'<text x="{LEFT}" y="{TOP + LINE * i + 12}" fill="{colour}">{html.escape(line)}</text>\n' for i, (colour, line) in enumerate(lines) if line)
    dots = "".join(f'<circle cx="{LEFT + 18 * i}" cy="20" r="5" fill="#3b424b"/>' for i in range(3))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
            f'font-size="13" xml:space="preserve">\n<title>A drop-in is edited, the value is traced to its line, a mistake is refused</title>\n'
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACK}"/>{dots}\n{rows}</svg>\n')
