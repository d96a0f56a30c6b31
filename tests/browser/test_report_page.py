# SPDX-License-Identifier: Apache-2.0
"""The page of `lkgfs report` in a real browser. By hand: it needs Debian's chromium and chromium-driver.

LKGFS_SCREENSHOTS names a directory that keeps what the browser has shown, to be looked at.
"""
import os
import pathlib
import signal

import pytest

import lkgfs_testlib as lib
from lkgfs_browser import Browser

HOSTILE = "<script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">"
LONG = "x" * 300
FIELDS = ["podPidsLimit: 4096", "maxOpenFiles: 1000001", "eventBurst: 101", "eventRecordQPS: 51", "kubeAPIQPS: 51", "kubeAPIBurst: 101",
          "registryBurst: 11", "registryPullQPS: 6", "oomScoreAdj: -998", "imageGCHighThresholdPercent: 86", "runtimeRequestTimeout: 3m"]
PHONE, DESKTOP = 390, 1280
SECTIONS = ["problems", "findings", "served", "timeline", "changes", "bad", "layers", "processes", "environment", "log", "unread"]
# Contrast of every text with what is behind it (WCAG 2, relative luminance); transparent ancestors are looked through.
CONTRAST = """
const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4 });
  return .2126 * r + .7152 * g + .0722 * b };
const rgb = t => t.match(/[\\d.]+/g).map(Number);
const worst = [];
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
  let b = e, back = [0, 0, 0, 0];
  while (b && (back = rgb(getComputedStyle(b).backgroundColor)).length === 4 && back[3] === 0) b = b.parentElement;
  const a = lum(rgb(getComputedStyle(e).color)) + .05, c = lum(back) + .05, ratio = Math.max(a, c) / Math.min(a, c);
  if (ratio < 4.5) worst.push([ratio, e.tagName, e.className, e.textContent.slice(0, 40)]);
}
return worst;
"""


@pytest.fixture(scope="module")
def pages(module_mounts):
    """Name -> path of a page: a good node, a bad night, and a dead one."""
    mount = module_mounts()
    written = {}

    def write(name, *words):
        written[name] = os.path.join(mount.root, name + ".html")
        lib.run(lib.LKGFS, "report", "-m", mount.mountpoint, "--node-config", mount.config_path, "--file", written[name], *words,
                check=True)
    write("good")
    mount.drop("30-wide.conf", f"providerID: '{LONG}'\n")
    mount.drop(f"40-{HOSTILE.replace('/', '_')}.conf", f"maxPods: 99\nkubeletCgroups: \"{'/long' * 60}\"\n")
    for number, field in enumerate(FIELDS):  # more layers than colours
        mount.drop(f"5{number:02}-layer.conf", field + "\n")
    mount.command("hold", "on")
    lib.write_file(f"{mount.mountpoint}/bad/kubelet/0000-1111", HOSTILE)
    mount.drop("60-bad.conf", f"maxPods: many\nevictionHard:\n  '{LONG}': 1\n")
    log = os.path.join(mount.root, "log.txt")
    lib.write_file(log, f"2026-01-02T03:04:05Z node lkgfsd[1]: {LONG} {HOSTILE} was killed by signal 9\n" + mount.log())
    write("night", "--log", log)
    pid = mount.child("lkgfs-fs")
    os.kill(mount.process.pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGSTOP)
    try:
        write("hanging", "--log", log)
    finally:
        os.kill(pid, signal.SIGCONT)
        os.kill(mount.process.pid, signal.SIGCONT)
    return written


@pytest.fixture(scope="module", params=[False, True], ids=["light", "dark"])
def browser(request):
    with Browser(dark=request.param) as one:
        one.scheme = "dark" if request.param else "light"
        yield one


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("name", ["good", "night", "hanging"])
def test_page_fits_and_is_silent(browser, pages, name, width):
    browser.open("file://" + pages[name], width)
    assert browser.console() == []
    assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") == (browser.scheme == "dark")
    assert browser.run("return [...document.querySelectorAll('section')].map(s => s.id)") == SECTIONS
    assert browser.run("return document.title").startswith("lkgfs on ")
    assert browser.run("return [document.querySelectorAll('script, img').length, performance.getEntriesByType('resource').length]") == [0, 0]
    for state in (False, True):  # also with everything unfolded
        browser.run("document.querySelectorAll('details').forEach(d => d.open = arguments[0])", state)
        wide = browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide[0] <= wide[1], f"{wide}: it scrolls sideways"
    assert browser.run(CONTRAST) == []
    browser.run("document.querySelectorAll('details').forEach((d, i) => d.open = i % 2 === 0)")
    if "LKGFS_SCREENSHOTS" in os.environ:
        folder = pathlib.Path(os.environ["LKGFS_SCREENSHOTS"])
        browser.screenshot(folder / f"{name}-{width}-{browser.scheme}.png")


def test_layers_are_told_apart_without_colour(browser, pages):
    browser.open("file://" + pages["night"], DESKTOP)
    keys = browser.run("return [...document.querySelectorAll('.legend .key')].map(k => k.textContent)")
    assert len(keys) > 10 and len(set(keys)) == len(keys)
    rows = browser.run("return [...document.querySelectorAll('.fields tbody tr')].map(r => r.cells[0].textContent)")
    assert rows and set(rows) <= set(keys)


def test_keyboard_and_headings(browser, pages):
    browser.open("file://" + pages["night"], DESKTOP)
    levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    assert browser.run("return [...document.querySelectorAll('nav a')].every(a => document.querySelector(a.getAttribute('href')))")
    assert browser.run("return [...document.querySelectorAll('pre.diff')].every(p => p.tabIndex === 0)"), "what scrolls can be reached"


def test_readable_without_javascript(pages):
    with Browser(script=False) as one:
        one.open("file://" + pages["night"], PHONE)
        tree = one.cdp("Accessibility.getFullAXTree")["nodes"]
        names = [node.get("name", {}).get("value", "") for node in tree]
        assert "What is wrong" in names and any("held at generation" in name for name in names)
        assert any("maxPods" in name and "many" in name for name in names)


def test_policy_stops_what_would_get_in(browser, pages, tmp_path):
    """Were something not escaped, the policy would still let it load and run nothing."""
    text = pathlib.Path(pages["night"]).read_text()
    path = tmp_path / "injected.html"
    path.write_text(text.replace("<main>", "<main><script>document.title='taken over'</script><style>body{color:red}</style>"
                                           "<img src='file:///etc/hostname'><p style='color:red'>x</p>"))
    browser.open(f"file://{path}", DESKTOP)
    assert browser.run("return document.title").startswith("lkgfs on ")
    said = " ".join(entry["message"] for entry in browser.console())
    assert said.count("Content Security Policy") >= 4 and "script-src" in said and "img-src" in said
    assert browser.run("return getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


def test_paper_has_what_is_folded(browser, pages):
    browser.open("file://" + pages["night"], DESKTOP)
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.run("return document.querySelectorAll('details:not([open])').length") > 3
        hidden = browser.run("return [...document.querySelectorAll('details:not([open]) > *:last-child')]"
                             ".filter(e => e.getBoundingClientRect().height === 0).length")
        assert hidden == 0
        assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
        assert len(browser.cdp("Page.printToPDF")["data"]) > 10000
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")
