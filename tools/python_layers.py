# SPDX-License-Identifier: Apache-2.0
"""Checks the imports of the Python package against python/layers.txt: rooms import downwards, and modules in no circle."""

import ast
import os


class Table:
    """python/layers.txt: the level of each room, and the imports that may close a circle."""

    def __init__(self, path):
        self.level, self.circles = {}, set()
        level = -1
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split("#")[0].split()
                if not words:
                    continue
                if words[0] == "circle":
                    self.circles.add((words[1], words[2]))
                    continue
                if words[0] == "+":
                    words = words[1:]
                else:
                    level += 1
                self.level.update((room, level) for room in words)

    def room_of(self, module):
        """The row of a module: the longest that its path begins with. None where there is none."""
        parts = module.split(".")
        return next((room for n in range(len(parts), 0, -1) if (room := ".".join(parts[:n])) in self.level), None)


def imports_of(tree, module, known):
    """(imported module, line) of a file, functions included; what only type checkers read is left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from imports_of(ast.Module(node.orelse, []), module, known)
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("millrace.") and name.name[9:] in known:
                    yield name.name[9:], node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "millrace":
            base = node.module[9:]
            for name in node.names:
                whole = base + "." + name.name if base else name.name
                found = whole if whole in known else base
                if found in known and found != module:
                    yield found, node.lineno
        else:
            yield from imports_of(node, module, known)


def circle_from(start, imports):
    """The modules of a circle through `start`, or None."""
    before, waiting = {start: None}, [start]
    while waiting:
        module = waiting.pop()
        for other in imports[module]:
            if other == start:
                path = [module]
                while before[path[-1]] is not None:
                    path.append(before[path[-1]])
                return [*reversed(path), start]
            if other not in before:
                before[other] = module
                waiting.append(other)
    return None


def check(root):
    """[(path, line, message)] of what is wrong."""
    package = os.path.join(root, "python", "millrace")
    table, paths, problems = Table(os.path.join(root, "python", "layers.txt")), {}, []
    for folder, folders, names in os.walk(package):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                module = os.path.relpath(path, package)[:-3].replace(os.sep, ".")
                module = module.removesuffix("__init__").rstrip(".")
                if module:  # the package itself shows names of all rooms
                    paths[module] = path
    imports, circles = {}, set()
    for module, path in paths.items():
        own, shown = table.room_of(module), os.path.relpath(path, root)
        imports[module] = {}
        if own is None:
            problems.append((shown, 1, "its room has no place in python/layers.txt"))
            continue
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for other, line in imports_of(tree, module, paths):
            room = table.room_of(other)
            if room is not None and table.level[room] > table.level[own]:
                problems.append((shown, line, f"{own} may not import {room}, which stands above it (python/layers.txt)"))
            if (module, other) in table.circles:
                circles.add((module, other))
            else:
                imports[module].setdefault(other, line)
    for module in paths:
        found = circle_from(module, imports)
        if found is not None and module == min(found):
            problems.append((os.path.relpath(paths[module], root), imports[module][found[1]], "modules import each other: " + " -> ".join(found)))
    for pair in sorted(table.circles - circles):
        problems.append(("python/layers.txt", 1, "no such import any more: circle %s %s" % pair))
    return problems
