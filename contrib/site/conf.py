# SPDX-License-Identifier: Apache-2.0
"""Sphinx for the pages that `make` has staged. The theme is the one that comes with it; static/custom.css adds dark colours."""
import re

project = "lkgfs"
extensions = ["myst_parser"]
html_theme = "alabaster"
html_title = "lkgfs"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"description": "a FUSE file system for Kubernetes nodes", "page_width": "72em", "sidebar_width": "15em",
                      "show_powered_by": False, "sidebar_collapse": False}
html_static_path = ["static"]
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_use_index = False
myst_heading_anchors = 4  # page.md#a-heading, as in the checkout
suppress_warnings = ["myst.header"]  # a page of findings begins with its table
MANUAL = re.compile(r"(?<![`\[/\w])(lkgfs(?:d|\.conf|-view|-findings)?|mount\.lkgfs)\(([1-8])\)")


def name_manual_pages(_app, page, source):
    """`lkgfs.conf(5)` leads to the page, as in a terminal that knows how to."""
    if page.startswith("man/"):
        return
    top = "../" * page.count("/")
    parts = re.split(r"(^```.*?^```|^    .*?$|`[^`\n]*`|\[[^]\n]*\]\([^)\n]*\))", source[0], flags=re.M | re.S)
    parts[::2] = [MANUAL.sub(rf"[\1(\2)]({top}man/\1.\2.md)", part) for part in parts[::2]]
    source[0] = "".join(parts)


def setup(app):
    app.connect("source-read", name_manual_pages)
