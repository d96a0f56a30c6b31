# SPDX-License-Identifier: Apache-2.0
"""The documentation as static pages (contrib/site) in a real browser. By hand, as test_report_page.py."""
import os

import pytest

import lkgfs_testlib as lib
from lkgfs_browser import Browser
from test_report_page import CONTRAST, DESKTOP, PHONE

PAGES = ["index", "docs/faq", "docs/specification", "docs/operations", "docs/tasks/edit-a-control-plane-manifest", "docs/decisions/036-size",
         "man/lkgfs.conf.5", "man/lkgfs-findings.7", "search"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    lib.run(lib.REPOSITORY / "contrib/site/make", out, lib.BUILD, timeout=300, check=True)
    return out


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_are_readable_on_a_phone_and_on_a_desktop(site, dark):
    with Browser(dark=dark) as browser:
        for width in (PHONE, DESKTOP):
            for page in PAGES:
                browser.open(f"file://{site}/{page}.html", width)
                if "LKGFS_SCREENSHOTS" in os.environ:
                    browser.screenshot(f"{os.environ['LKGFS_SCREENSHOTS']}/{page.replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png")
                assert browser.run("const page = document.documentElement; return page.scrollWidth <= page.clientWidth"), (page, width)
                assert browser.run(CONTRAST) == [], (page, width)
        assert browser.console() == []


def test_the_search_finds(site):
    with Browser() as browser:
        browser.open(f"file://{site}/search.html?q=staticPodPath", DESKTOP)
        found = browser.call("POST", "/execute/async", {"args": [], "script": """
            const done = arguments[0];
            const look = () => { const links = [...document.querySelectorAll('#search-results li a')].map(a => a.href);
                                 links.some(link => link.includes('man/lkgfs.conf.5.html')) ? done(links) : setTimeout(look, 50) };
            look();"""})
        assert len(found) > 3, "and others"
