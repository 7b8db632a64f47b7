#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the Python package as Markdown, a page for each public module: api_reference.py FOLDER [MODULE...]

What stands there is what a program sees: names from dir(), signatures from inspect, texts from docstrings (those of ops come from
their declarations in C++). The package must be importable.
"""

import inspect
import os
import re
import sys
import types

import millrace as tf

# Modules that hold others' names for old programs, or what is not for programs.
INSIDE = "core examples framework g3doc models names ops protos python pywrap_tensorflow tf_logging user_ops version compat".split()
BELOW = """nn.rnn_cell data.experimental keras.activations keras.backend keras.callbacks keras.constraints keras.initializers keras.layers
keras.losses keras.metrics keras.models keras.optimizers keras.preprocessing keras.regularizers keras.utils linalg.LinearOperator
contrib.cluster_resolver contrib.crf contrib.data contrib.distributions contrib.framework contrib.graph_editor contrib.layers
contrib.learn contrib.legacy_seq2seq contrib.losses contrib.lookup contrib.metrics contrib.opt contrib.rnn contrib.seq2seq contrib.slim
contrib.training""".split()
WORKED_WITH = {f.__module__ for f in (tf.get_variable, tf.Variable, tf.TensorArray, tf.fixed_size_partitioner)}


def modules():
    """Name below tf -> module; the package itself is ''."""
    found = {"": tf}
    for name in sorted(dir(tf)):
        if not name.startswith("_") and name not in INSIDE and isinstance(getattr(tf, name), types.ModuleType):
            found[name] = getattr(tf, name)
    for name in BELOW:
        value = tf
        for part in name.split("."):
            value = getattr(value, part, None)
        if isinstance(value, types.ModuleType):
            found[name] = value
    return found


def is_shown(module, name, value):
    """Whether a name is the module's own: no import that its code needed."""
    home = getattr(value, "__module__", None)
    if name.startswith("_") or isinstance(value, types.ModuleType) or name in ("annotations", "TYPE_CHECKING"):
        return False
    if not callable(value):
        return not isinstance(value, (dict, re.Pattern)) and home is None and name.isupper()
    if home is None or not home.startswith(("millrace", "tensorflow")):
        return False
    # A package's own file imports what it works with; namespaces of the table and the package itself hold what they offer.
    if module is tf or module.__name__.startswith(("tensorflow", "millrace.framework", "millrace.contrib")):
        return True
    return not home.startswith("millrace.framework") and home not in WORKED_WITH


def signature(value):
    try:
        given = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=p.empty) for p in given.parameters.values()]
    returns = "" if given.return_annotation in (given.empty, None, "None", "Any") or inspect.isclass(value) else " -> %s" % given.return_annotation
    text = str(given.replace(parameters=parameters, return_annotation=given.empty))
    return re.sub(r"<(?:function|class|object) ?'?([\w.]*)[^>]*>", r"\1", text) + str(returns).replace("'", "")


def paragraphs(value):
    """The docstring as Markdown: an op's declaration, which stands last, as code."""
    text = inspect.getdoc(value) or ""
    parts = []
    for part in re.split(r"\n\s*\n", text.strip()):
        if re.match(r"^[A-Z]\w*\(.*\) -> \(.*\)", part):
            parts.append("`" + part.replace("`", "'") + "`")
        elif re.match(r"^(\s{2,}|>>>)", part):
            parts.append("\n".join("    " + line for line in part.splitlines()))
        else:
            parts.append(escaped(part).replace("\n", "  \n"))
    return "\n\n".join(parts)


def escaped(text):
    """Text as Markdown, in which only what stands between backquotes is marked."""
    return "`".join(piece if i % 2 else re.sub(r"([*_<|])", r"\\\1", piece) for i, piece in enumerate(text.split("`")))


def first_sentence(value):
    text = " ".join((inspect.getdoc(value) or "").strip().split("\n\n")[0].split())
    end = re.search(r"[.:](?= [A-Z]|$)", text)
    return escaped(text[: end.start()] if end else text)


def members(cls):
    """Public methods and properties that a class states itself or takes from a base of this package."""
    for name in sorted(n for n in dir(cls) if not n.startswith("_")):
        try:
            value = inspect.getattr_static(cls, name)
        except AttributeError:
            continue
        home = next((c for c in cls.__mro__ if name in c.__dict__), None)
        if home is None or not (home.__module__ or "").startswith("millrace") or inspect.isclass(value):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property) or callable(value):
            yield name, value


def page(name, module):
    """Markdown, and how many names it tells of; None for a module without any."""
    prefix = "tf." + name + "." if name else "tf."
    shown = []
    for n in sorted(dir(module), key=str.lower):
        try:
            value = getattr(module, n)
        except (AttributeError, NotImplementedError):
            continue
        if is_shown(module, n, value):
            shown.append((n, value))
    if not shown:
        return None, 0
    lines = ["# " + prefix.rstrip("."), ""]
    if name and module.__name__.startswith("millrace"):
        lines += [paragraphs(module), ""]
    groups = [("Classes", [s for s in shown if inspect.isclass(s[1])]), ("Functions", [s for s in shown if callable(s[1]) and not inspect.isclass(s[1])])]
    for title, rows in groups:
        if rows:
            lines += ["## " + title, "", "| name | |", "|---|---|"]
            lines += ["| [`%s`](#%s) | %s |" % (n, anchor(n), first_sentence(value)) for n, value in rows] + [""]
    constants = [(n, value) for n, value in shown if not callable(value)]
    if constants:
        lines += ["## Constants", "", ", ".join("`%s`" % n for n, _ in constants), ""]
    for n, value in groups[0][1] + groups[1][1]:
        lines += ['<h3 id="%s">%s%s</h3>' % (anchor(n), prefix, n), "", "```python", n + signature(value), "```", "", paragraphs(value), ""]
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for method, of in members(value):
                text = inspect.getdoc(of)
                if text:
                    call = "" if isinstance(of, property) else signature(of).replace("(self, ", "(").replace("(self)", "()")
                    lines += ["- `%s%s`: %s" % (method, call.replace("`", "'"), first_sentence(of))]
            lines.append("")
    return "\n".join(lines), len(shown)


def anchor(name):
    return "name-" + name


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    rows = []
    for name, module in modules().items():
        if only and name not in only:
            continue
        text, count = page(name, module)
        if text is None:
            continue
        file = (name or "tf").replace(".", "_") + ".md"
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.write(text)
        rows.append((name, file, count, first_sentence(module) if name and module.__name__.startswith("millrace") else ""))
    with open(os.path.join(folder, "index.md"), "w", encoding="utf-8") as out:
        out.write("# Python reference\n\nEvery public name with its signature, from the package itself.\n\n| module | names | |\n|---|---|---|\n")
        out.writelines("| [tf%s](%s) | %d | %s |\n" % ("." + name if name else "", file, count, about) for name, file, count, about in rows)
    print("%d pages, %d names" % (len(rows), sum(row[2] for row in rows)))


if __name__ == "__main__":
    main()
