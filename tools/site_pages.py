#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies the pages of docs/ into FOLDER for the site, with what they lead to in the source tree: site_pages.py FOLDER [PAGE...]

A file outside of docs/ that a page links to, or that is named, becomes a page below source/: Markdown as it is, others as a block of code.
"""

import os
import re
import shutil
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
BEHIND_OTHERS = "---\nsearch: {boost: 0.3}\n---\n"  # what few search for stands last among what a search finds
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
LIST_BEHIND_PARAGRAPH = re.compile(r"^(?![ #|>]|- |\d+\. )(.+\n)(?=- |\d+\. )", re.M)
LANGUAGES = {".h": "cpp", ".cc": "cpp", ".py": "python", ".sh": "sh", ".go": "go", ".java": "java", ".yaml": "yaml"}


def place(path):
    """Where a file of the tree stands in the site; both relative to their roots."""
    if path.startswith("docs/"):
        return path[len("docs/") :]
    return "source/" + (path if path.endswith(".md") else path + ".md")


def text_of(path):
    """The page that a file of the tree becomes, and the files outside of docs/ that it leads to."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".md"):
        return "# %s\n\n```%s\n%s\n```\n" % (path, LANGUAGES.get(os.path.splitext(path)[1], ""), text.rstrip("\n")), []
    found = []

    def lead(link):
        target = os.path.normpath(os.path.join(os.path.dirname(path), link[1]))
        if not target.startswith("docs/"):
            if not os.path.isfile(os.path.join(ROOT, target)):
                raise SystemExit("%s links to %s, which is no file" % (path, link[1]))
            found.append(target)
        return "](%s%s)" % (os.path.relpath(place(target), os.path.dirname(place(path))), link[2] or "")

    return with_lists_apart(LINK.sub(lead, text)), found


def with_lists_apart(text):
    """Lists begin right behind a paragraph's last line, as on GitHub; Python's Markdown wants an empty line there."""
    pieces, at = [], 0
    for code in [*CODE.finditer(text), None]:
        pieces.append(LIST_BEHIND_PARAGRAPH.sub(r"\1\n", text[at : code.start() if code else len(text)]))
        if code:
            pieces.append(code[0])
            at = code.end()
    return "".join(pieces)


def main(folder, *pages):
    """Writes all pages."""
    shutil.copytree(os.path.join(ROOT, "docs"), folder, dirs_exist_ok=True)
    docs = [os.path.relpath(os.path.join(at, name), ROOT) for at, _, names in os.walk(os.path.join(ROOT, "docs")) for name in names if name.endswith(".md")]
    waiting, known = [*docs, *pages], {*docs, *pages}
    while waiting:
        path = waiting.pop()
        text, found = text_of(path)
        target = os.path.join(folder, place(path))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(BEHIND_OTHERS + text if path.startswith(("docs/decisions/", "src/", "include/", "examples/")) else text)
        waiting += [f for f in dict.fromkeys(found) if f not in known]
        known.update(found)


main(*sys.argv[1:])
