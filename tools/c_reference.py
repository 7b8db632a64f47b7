#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the C API as Markdown, a page for each header: c_reference.py FOLDER

What stands there is the header itself: each comment, and the declarations that it stands before.
"""

import glob
import os
import re
import sys

HEADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "include", "millrace")
NAME = re.compile(r"\b((?:TF|MR)_\w+)(?=\()|^typedef struct \w+ (\w+);|^\} (\w+);|\(\*((?:TF|MR)_\w+)\)\(", re.M)
EXPORT = "TF_CAPI_EXPORT "


def escaped(text):
    """Text as Markdown: what stands between backquotes is as it is, and lines of a program that are indented are code."""

    def marked(line):
        if re.match(r"  +\S.*;$", line):
            return "    " + line.strip()
        return "`".join(piece if i % 2 else re.sub(r"([*_<\[])", r"\\\1", piece) for i, piece in enumerate(line.split("`")))

    return "\n".join(marked(line) for line in text.split("\n"))


def comment_text(comment):
    """A comment without its marks; lines that are indented stay apart."""
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in re.sub(r"^/\*|\*/$", "", comment.strip()).split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def pieces(body):
    """(comment, code) pairs in order: code goes to the end of the paragraph, or to the next comment that begins a line."""
    comment, code, found = "", [], []

    def flush():
        nonlocal comment
        if code:
            found.append((comment, "\n".join(code)))
            comment = ""
            code.clear()

    lines = iter(body.split("\n"))
    for line in lines:
        depth = "\n".join(code).count("{") - "\n".join(code).count("}")
        if line.startswith("/*"):
            flush()
            while "*/" not in line:
                line += "\n" + next(lines)
            comment = (comment + "\n\n" if comment else "") + comment_text(line)
        elif not line.strip() and depth <= 0:
            flush()
            if comment:
                found.append((comment, ""))
                comment = ""
        elif line.startswith("#"):
            while line.endswith("\\"):
                line = next(lines)
            comment = ""  # that of a macro
        elif not line.startswith("extern"):
            code.append(line)
    flush()
    return found


def without_export(code):
    """Declarations as a program needs them; lines that went on below the first parameter still do."""
    lines, shift = [], 0
    for line in code.split("\n"):
        if not line.startswith(" "):
            shift = len(EXPORT) if line.startswith(EXPORT) else 0
            line = line.replace(EXPORT, "")
        elif shift and line.startswith(" " * (shift + 4)):
            line = line[shift:]
        lines.append(line)
    return "\n".join(lines)


def page(path):
    """The page of a header, the names that it declares, and what it is about."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    head = re.match(r"/\*.*?\*/", text, re.S).group(0)
    about = comment_text(head).replace("SPDX-License-Identifier: Apache-2.0", "").strip()
    body = text[len(head) :]
    if 'extern "C" {' in body:
        body = body.split('extern "C" {', 1)[1].split("\n", 1)[1]
    body = body.split('} /* extern "C" */')[0]
    header = "millrace/" + os.path.basename(path)
    lines, names = ["# %s" % header, "", escaped(about), ""], []
    for comment, code in pieces(re.sub(r"/\* clang-format \w+ \*/", "", body)):
        title = re.fullmatch(r"-+ (.*?) -+", comment)
        if title and not code:
            lines += ["## " + title.group(1), ""]
            continue
        own = [next(n for n in found if n) for found in NAME.findall(code)]
        own = [n for n in dict.fromkeys(own) if n not in names and not n.isupper()]  # those are macros
        names += own
        if own:
            lines += ["### " + " ".join('<span id="%s">%s</span>' % (n, n) for n in own), ""]
        if comment:
            lines += [escaped(comment), ""]
        if code:
            lines += ["```c", without_export(code), "```", ""]
    return "\n".join(lines), names, about.split("\n\n")[0]


def main():
    """All pages and their index."""
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    rows, known = [], []
    for path in sorted(glob.glob(os.path.join(HEADERS, "c_api*.h"))):
        text, names, about = page(path)
        if not names:
            continue
        file = os.path.basename(path)[:-2] + ".md"
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.write(text)
        rows.append("| [%s](%s) | %d | %s |" % (os.path.basename(path), file, len(names), escaped(" ".join(about.split()))))
        known += [(n, file) for n in names]
    with open(os.path.join(folder, "index.md"), "w", encoding="utf-8") as out:
        out.write("# C reference\n\nNames `TF_...` are those of TensorFlow's C API, `MR_...` ours; `millrace/c_api.h` has all of them.\n\n")
        out.write("| header | names | |\n|---|---|---|\n%s\n\n## Names\n\n" % "\n".join(rows))
        out.write(", ".join("[%s](%s#%s)" % (n, file, n) for n, file in sorted(known)) + "\n")
    print("%d headers, %d names" % (len(rows), len(known)))


if __name__ == "__main__":
    main()
