# SPDX-License-Identifier: Apache-2.0
"""The documentation as static pages (contrib/site)."""
import html.parser
import os
import re
import urllib.parse

import pytest

import lkgfs_testlib as lib


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])
        elif tag in ("img", "script", "iframe", "source", "link"):
            self.loaded += [attrs[key] for key in ("src", "href") if key in attrs]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    made = lib.run(lib.REPOSITORY / "contrib/site/make", out, lib.BUILD, timeout=300)
    assert made.returncode == 0 and made.stderr == b"", made.stderr.decode()
    return {path.relative_to(out).as_posix(): Page(path.read_text()) for path in out.rglob("*.html")}, out


def lead(page, link):
    """(file of the site, name in it), or None for one outside."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = os.path.normpath(os.path.join(os.path.dirname(page), urllib.parse.unquote(parts.path))) if parts.path else page
    return target, urllib.parse.unquote(parts.fragment)


def test_links_lead_somewhere(site):
    pages, out = site
    wrong = []
    for name, page in pages.items():
        for link in page.links:
            to = lead(name, link)
            if to and not ((out / to[0]).is_file() and (not to[1] or to[0] not in pages or to[1] in pages[to[0]].names)):
                wrong.append((name, link))
    assert wrong == [] and sum(len(page.links) for page in pages.values()) > 5000


def test_nothing_comes_from_outside(site):
    pages, out = site
    assert [(name, link) for name, page in pages.items() for link in page.loaded if not lead(name, link) or not (out / lead(name, link)[0]).is_file()] == []
    for sheet in out.rglob("*.css"):
        assert not re.search(r"""url\(\s*["']?(\w+:)?//""", sheet.read_text()), sheet


def test_the_search_knows_the_manual_and_the_pages(site):
    pages, out = site
    index = (out / "searchindex.js").read_text()
    for word in ("staticpodpath", "lkg2044", "crashloopthreshold"):
        assert word in index.lower(), word
    assert "man/lkgfs.conf.5.html" in pages and "docs/tasks/edit-a-control-plane-manifest.html" in pages
    assert any(link.endswith("man/lkgfs.conf.5.html") for link in pages["docs/operations.html"].links), "a page of the manual that is named is a link"
