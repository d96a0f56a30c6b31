# SPDX-License-Identifier: Apache-2.0
"""Draws a rollout as SVG: how many nodes have the new version, try it, wait for it. Colours for light and dark pages."""
import html

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 20, 70, 48
SAMPLES = 160
STYLE = """text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-size:16px;font-weight:600}.axis{stroke:#57606a;fill:none}
.grid{stroke:#d0d7de;fill:none}.good{fill:#2da44e}.trial{fill:#bf8700}.failed{fill:#cf222e}.waiting{fill:#d8dee4}
.theory{stroke:#24292f;fill:none;stroke-width:1.5;stroke-dasharray:5 4}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#8b949e}.grid{stroke:#30363d}.good{fill:#3fb950}.trial{fill:#d29922}
.failed{fill:#f85149}.waiting{fill:#30363d}.theory{stroke:#e6edf3}}"""
SERIES = (("good", "have it"), ("trial", "try it"), ("failed", "failed"), ("waiting", "wait"))


def counts(lines, version, start, nodes):
    """(seconds, {series: nodes}) after each line about this version."""
    state = {}
    yield 0.0, {"good": 0, "trial": 0, "failed": 0, "waiting": nodes}
    for line in sorted(lines, key=lambda line: line["t"]):
        name = {"good": "good", "switched": "trial", "bad": "failed", "vanished": "failed"}.get(line["what"])
        if line["version"] != version or not name:
            continue
        state[line["node"]] = name
        now = {series: 0 for series, _ in SERIES}
        for one in state.values():
            now[one] += 1
        now["waiting"] = nodes - len(state)
        yield max(0.0, line["t"] - start), now


def theory(nodes, slots, duration):
    """(seconds, nodes that have it) if only the trials took time: one node first, then two, four, up to `slots`."""
    done, seconds = 0, 0.0
    yield seconds, done
    while done < nodes:
        seconds += duration
        yield seconds, done
        done += min(slots, done + 1, nodes - done)
        yield seconds, done


def step(most):
    """A round number, so that an axis has four to eight of it."""
    size = 1
    while most / size > 8:
        size = size * 5 // 2 if str(size)[0] == "2" else size * 2
    return size


def sampled(points, end):
    """The last state at each of SAMPLES times."""
    at, result = 0, []
    for i in range(SAMPLES + 1):
        t = end * i / SAMPLES
        while at + 1 < len(points) and points[at + 1][0] <= t:
            at += 1
        result.append((t, points[at][1]))
    return result


def draw(result):
    """SVG of the rollout of `result["version"]`."""
    nodes, slots = result["nodes"], result["slots"]
    points = list(counts(result["lines"], result["version"], result["start"], nodes))
    ideal = list(theory(nodes, slots, result["duration"]))
    end = max(points[-1][0], ideal[-1][0]) * 1.02
    x = lambda t: LEFT + (WIDTH - LEFT - RIGHT) * t / end
    y = lambda n: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * n / nodes
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t">', f"<style>{STYLE}</style>"]
    title = f"A rollout to {nodes} nodes, {slots} slots, trials of {result['duration']:g} s, against {result['server']}"
    out.append(f'<text id="t" class="title" x="{LEFT}" y="24">{html.escape(title)}</text>')
    samples, below = sampled(points, end), [0] * (SAMPLES + 1)
    for name, _ in SERIES:
        above = [low + now[name] for low, (_, now) in zip(below, samples)]
        there = [f"{x(t):.1f},{y(n):.1f}" for (t, _), n in zip(samples, above)]
        back = [f"{x(t):.1f},{y(n):.1f}" for (t, _), n in zip(reversed(samples), reversed(below))]
        out.append(f'<polygon class="{name}" points="{" ".join(there + back)}"/>')
        below = above
    for n in range(0, nodes + 1, step(nodes)):
        out.append(f'<path class="grid" d="M{LEFT} {y(n):.1f}H{WIDTH - RIGHT}"/><text x="{LEFT - 8}" y="{y(n) + 4:.1f}" text-anchor="end">{n}</text>')
    for t in range(0, int(end) + 1, step(end)):
        out.append(f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{t}</text>')
    out.append(f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    out.append(f'<polyline class="theory" points="{" ".join(f"{x(t):.1f},{y(n):.1f}" for t, n in ideal)}"/>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">seconds since the new version</text>')
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" text-anchor="middle">nodes</text>')
    left = LEFT
    for name, words in SERIES:
        out.append(f'<rect class="{name}" x="{left}" y="40" width="14" height="14"/><text x="{left + 20}" y="52">{words}</text>')
        left += 40 + 8 * len(words)
    out.append(f'<path class="theory" d="M{left} 47h28"/><text x="{left + 36}" y="52">have it, if nothing but the trials took time</text>')
    return "\n".join(out) + "\n</svg>\n"
