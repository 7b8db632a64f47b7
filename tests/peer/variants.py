# SPDX-License-Identifier: Apache-2.0
"""Makes variants of recorded cases: other values, shapes, attributes, types, ranks and indices.

A variant is a plain dict, as it travels to other processes: `graph`, `steps`, `grad`, `check`, `tol`, and `kind` and
`note` that say what was changed. Which one is made depends only on the seed, the case's name and the variant's number.
Needs TensorFlow's Python package, for GraphDef and the OpDefs.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, tensor_pb2
from tensorflow.python.framework import dtypes, op_def_registry, tensor_util

Array = Any
PATH = "@TMP@"
# No denormals, which TensorFlow's threads take for 0; complex infinities are nobody's contract.
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 3e38, 1e-30, 1.0, -1.0, 0.5, 1e4, -1e4)
FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, 1e4, -1e4, 1j, -1j)
SMALL_INTS = (0, 1, -1, 2, 3, -2, 7, 100, -100)
STRINGS = (b"", b" ", b"a", b"0", b"-1.5", b"nan", b"\xc3\xa9", b"\xff\xfe", b"x" * 40, b"1e400", b"9" * 20)
FLOATS = (dtypes.half, dtypes.bfloat16, dtypes.float32, dtypes.float64)
TYPES = (*FLOATS, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32, dtypes.int64,
         dtypes.uint64, dtypes.bool, dtypes.complex64, dtypes.complex128)  # fmt: skip
INDICES = (dtypes.int32, dtypes.int64)

SCHEMAS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "op_schemas.txt")


def _our_attributes() -> dict[str, set[str]]:
    """op -> the attributes that our schema has: newer ones are ignored."""
    with open(SCHEMAS) as file:
        lines = [line.split("(")[0:1] + line.split(" | ", 1)[1:] for line in file if not line.startswith("#")]
    return {name: set(re.findall(r"(?:^|; )(\w+)(?=:| in )", (rest or [""])[0])) for name, *rest in lines}


OURS = _our_attributes()


def is_float(a: Array) -> bool:
    return a.dtype.kind in "fc" or a.dtype == ml_dtypes.bfloat16


def is_int(a: Array) -> bool:
    return a.dtype.kind in "iu"


def resized(a: Array, shape: tuple[int, ...]) -> Array:
    """The elements of `a`, repeated or cut, in another shape."""
    if a.size == 0:
        return np.zeros(shape, a.dtype)
    count = int(np.prod(shape, dtype=np.int64))
    return np.take(a.ravel(), np.arange(count) % a.size).reshape(shape)


def other_floats(rng: np.random.Generator, a: Array, mode: str) -> Array:
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    if mode == "noise":
        wide = wide * rng.uniform(0.7, 1.3, a.shape)
    elif mode == "normal":
        scale = np.nanstd(np.abs(wide[np.isfinite(wide)])) if np.isfinite(wide).any() else 1.0
        wide = rng.normal(0, scale or 1.0, a.shape) + 0 * np.where(np.isfinite(wide), wide, 0)
    elif mode == "shuffle":
        wide = rng.permutation(wide.ravel()).reshape(a.shape)
    elif mode == "ties":
        wide = np.round(wide)
    elif mode in ("special", "extreme") and a.size:
        wide = wide.copy()
        count = a.size if mode == "extreme" else int(rng.integers(1, min(4, a.size) + 1))
        where = rng.permutation(a.size)[:count]
        wide.ravel()[where] = rng.choice(FINITE if a.dtype.kind == "c" else SPECIAL, count)
    with np.errstate(all="ignore"):
        return wide.astype(a.dtype)


def other_ints(rng: np.random.Generator, a: Array, mode: str) -> Array:
    if not a.size:
        return a
    info = np.iinfo(a.dtype)
    if mode == "noise":
        return rng.integers(int(a.min()), int(a.max()), a.shape, a.dtype, endpoint=True)
    if mode == "shuffle":
        return rng.permutation(a.ravel()).reshape(a.shape)
    values = [int(v) for v in a.ravel()]
    at = int(rng.integers(a.size))
    if mode == "extreme":
        values[at] = int(rng.choice([info.min, info.max, info.max - 1], 1)[0])
    elif mode == "step":
        values[at] += int(rng.choice((-1, 1)))
    else:
        values[at] = int(rng.choice(SMALL_INTS))
    return np.array([min(max(v, info.min), info.max) for v in values], a.dtype).reshape(a.shape)


def other_strings(rng: np.random.Generator, a: Array) -> Array:
    flat = [x if isinstance(x, bytes) else str(x).encode() for x in a.ravel().tolist()]
    if not flat or any(PATH.encode() in x for x in flat):
        return a
    at = int(rng.integers(len(flat)))
    flat[at] = STRINGS[int(rng.integers(len(STRINGS)))] if rng.random() < 0.5 else flat[at][: len(flat[at]) // 2]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(a.shape)


def tensor(a: Array, dtype: dtypes.DType) -> tensor_pb2.TensorProto:
    return tensor_util.make_tensor_proto(a, dtype=dtype, shape=a.shape)


class Draft:
    """A case being changed."""

    def __init__(self, case: dict[str, Any], rng: np.random.Generator) -> None:
        self.rng, self.case, self.name = rng, case, case["name"]
        self.graph = graph_pb2.GraphDef.FromString(case["graph"])
        self.steps = [dict(feeds=dict(s["feeds"]), fetches=s["fetches"], targets=s["targets"], dtypes=s["dtypes"])
                      for s in case["steps"]]  # fmt: skip
        self.grad: dict[str, Any] | None = None
        recorded = case["grad"]
        if recorded:
            keep = [k for k, out in enumerate(recorded["out"]) if out is not None]
            self.grad = dict(ys=recorded["ys"], xs=[recorded["xs"][k] for k in keep], feeds=dict(recorded["feeds"]),
                             built=[recorded["fetches"][k] for k in keep], dtypes=recorded["dtypes"])  # fmt: skip

    @property
    def feeds(self) -> list[dict[str, Array]]:
        return [s["feeds"] for s in self.steps] + ([self.grad["feeds"]] if self.grad else [])

    def names(self) -> list[str]:
        return sorted({name for feeds in self.feeds for name in feeds})

    def placeholder(self, name: str) -> node_def_pb2.NodeDef | None:
        return next((n for n in self.graph.node if n.name == name.split(":")[0]), None)

    def map_feeds(self, names: list[str], change: Callable[[Array], Array]) -> bool:
        """Changes arrays; equal ones of one feed change alike. Says whether anything changed."""
        done: dict[tuple[str, tuple[int, ...], bytes], Array] = {}
        changed = False
        for feeds in self.feeds:
            for name in names:
                if name not in feeds:
                    continue
                old = feeds[name] if isinstance(feeds[name], np.ndarray) else np.asarray(feeds[name])
                key = (name, old.shape, old.tobytes() if old.dtype != object else repr(old.tolist()).encode())
                if key not in done:
                    done[key] = change(old)
                feeds[name] = done[key]
                changed |= done[key] is not old
        return changed

    def constants(self) -> list[node_def_pb2.NodeDef]:
        return [n for n in self.graph.node if n.op == "Const"]

    def forward(self) -> set[str]:
        """The names of the nodes that the steps and the differentiated outputs need."""
        wanted = [n for s in self.steps for n in [*s["fetches"], *s["targets"], *s["feeds"]]]
        wanted += [*self.grad["ys"], *self.grad["xs"]] if self.grad else []
        by_name = {n.name: n for n in self.graph.node}
        needed: set[str] = set()
        stack = [n.split(":")[0] for n in wanted]
        while stack:
            name = stack.pop()
            if name not in needed and name in by_name:
                needed.add(name)
                stack += [i.split(":")[0].lstrip("^") for i in by_name[name].input]
        return needed

    def main_nodes(self) -> list[node_def_pb2.NodeDef]:
        """The nodes of the op that the case is about, else all."""
        op = self.name.split("/")[0]
        forward = self.forward()
        nodes = [n for n in self.graph.node if n.name in forward and n.op not in ("Const", "Placeholder")]
        return [n for n in nodes if n.op == op] or nodes

    def drop_gradient_nodes(self) -> None:
        """Keeps what the steps need: TensorFlow's gradient nodes are made for the shapes and attributes of the case."""
        if self.grad:
            self.grad["built"] = None
        keep = self.forward()
        kept = [n for n in self.graph.node if n.name in keep]
        del self.graph.node[:]
        self.graph.node.extend(kept)

    def forget_shapes(self, names: list[str]) -> None:
        for name in names:
            node = self.placeholder(name)
            if node is not None and node.op == "Placeholder" and "shape" in node.attr:
                node.attr["shape"].shape.Clear()
                node.attr["shape"].shape.unknown_rank = True
        for node in self.graph.node:
            node.attr.pop("_output_shapes", None)

    def declare_shapes(self, names: list[str]) -> None:
        """Tells each placeholder the shape of what is fed, where that is the same in all steps."""
        self.forget_shapes(names)
        for name in names:
            shapes = {np.shape(f[name]) for f in self.feeds if name in f}
            node = self.placeholder(name)
            if len(shapes) == 1 and node is not None and node.op == "Placeholder":
                node.attr["shape"].shape.Clear()
                for size in shapes.pop():
                    node.attr["shape"].shape.dim.add(size=size)


def values(d: Draft) -> str | None:
    names = d.names()
    mode = str(d.rng.choice(["noise", "normal", "shuffle", "ties", "special", "extreme"], p=[0.3, 0.15, 0.1, 0.1, 0.25, 0.1]))

    def change(a: Array) -> Array:
        if is_float(a):
            return other_floats(d.rng, a, mode)
        if a.dtype.kind == "b":
            return d.rng.integers(0, 2, a.shape).astype(bool) if d.rng.random() < 0.3 else a
        return a

    changed = d.map_feeds(names, change)
    forward = d.forward()
    for node in d.constants():
        proto = node.attr["value"].tensor
        if node.name in forward and dtypes.as_dtype(proto.dtype) in FLOATS and d.rng.random() < 0.3:
            old = tensor_util.MakeNdarray(proto)
            proto.CopyFrom(tensor(other_floats(d.rng, old, mode), dtypes.as_dtype(proto.dtype)))
            changed = True
    return f"{mode} floats" if changed else None


def integers(d: Draft) -> str | None:
    """Other indices, axes, sizes and counts: valid ones mostly, some out of range."""
    names = [n for n in d.names() if any(n in f and is_int(np.asarray(f[n])) for f in d.feeds)]
    forward = d.forward()
    nodes = [n for n in d.constants() if n.name in forward and dtypes.as_dtype(n.attr["value"].tensor.dtype) in INDICES]
    mode = str(d.rng.choice(["noise", "shuffle", "step", "small", "extreme"], p=[0.3, 0.15, 0.25, 0.2, 0.1]))
    pick = int(d.rng.integers(max(1, len(names) + len(nodes))))
    if pick < len(names):
        changed = d.map_feeds([names[pick]], lambda a: other_ints(d.rng, a, mode) if is_int(a) else a)
        return f"{mode} ints in {names[pick]}" if changed else None
    if not nodes:
        return None
    node = nodes[pick - len(names)]
    proto = node.attr["value"].tensor
    new = other_ints(d.rng, tensor_util.MakeNdarray(proto), mode)
    proto.CopyFrom(tensor(new, dtypes.as_dtype(proto.dtype)))
    d.drop_gradient_nodes()
    return f"{mode} ints in {node.name}: {new.ravel()[:8].tolist()}"


def strings(d: Draft) -> str | None:
    names = [n for n in d.names() if any(n in f and np.asarray(f[n]).dtype.kind in "OSU" for f in d.feeds)]
    if not names:
        return None
    name = names[int(d.rng.integers(len(names)))]
    return f"strings in {name}" if d.map_feeds([name], lambda a: other_strings(d.rng, a)) else None


def _settle(d: Draft, names: list[str]) -> str:
    if d.rng.random() < 0.5:
        d.declare_shapes(names)
        return ""
    d.forget_shapes(names)
    return ", shapes unknown"


def sizes(d: Draft) -> str | None:
    """One size, wherever it stands, becomes another."""
    names = d.names()
    found = sorted({s for f in d.feeds for n in names if n in f for s in np.shape(f[n])})
    if not found:
        return None
    old = int(d.rng.choice(found))
    new = int(d.rng.choice([0, 1, old + 1, old * 2 + 1, max(0, old - 1), 17]))
    if new == old or new > 300:
        return None
    d.drop_gradient_nodes()

    def change(a: Array) -> Array:
        return resized(a, tuple(new if s == old else s for s in a.shape)) if old in a.shape else a

    d.map_feeds(names, change)
    in_constants = d.rng.random() < 0.6
    for node in d.constants() if in_constants else []:
        proto = node.attr["value"].tensor
        dtype = dtypes.as_dtype(proto.dtype)
        if dtype not in (*FLOATS, *INDICES):
            continue
        a = tensor_util.MakeNdarray(proto)
        b = change(a) if dtype in FLOATS else np.where(a == old, new, a).astype(a.dtype)
        proto.CopyFrom(tensor(b, dtype))
    for node in d.graph.node:
        if node.op in ("VarHandleOp", "VariableV2", "Variable", "PlaceholderWithDefault") and "shape" in node.attr:
            for dim in node.attr["shape"].shape.dim:
                dim.size = new if dim.size == old else dim.size
    return f"size {old} -> {new}" + _settle(d, names)


def one_shape(d: Draft) -> str | None:
    """One feed gets another shape: a size, a dimension more, one less."""
    names = d.names()
    if not names:
        return None
    name = names[int(d.rng.integers(len(names)))]
    what = str(d.rng.choice(["size", "more", "less", "scalar", "empty"], p=[0.5, 0.15, 0.2, 0.05, 0.1]))
    axis, new = int(d.rng.integers(100)), int(d.rng.choice([0, 1, 2, 3, 5]))

    def change(a: Array) -> Array:
        shape = list(a.shape)
        if what == "more":
            shape.insert(axis % (len(shape) + 1), 1)
        elif what == "scalar":
            shape = []
        elif not shape:
            return a
        elif what == "size":
            shape[axis % len(shape)] = new
        elif what == "less":
            del shape[axis % len(shape)]
        else:
            shape = [0] * len(shape)
        return resized(a, tuple(shape)) if tuple(shape) != a.shape else a

    d.drop_gradient_nodes()
    if not d.map_feeds([name], change):
        return None
    return f"{what} of {name}: {[np.shape(f[name]) for f in d.feeds if name in f][:1]}" + _settle(d, [name])


def unknown_shapes(d: Draft) -> str | None:
    if not d.names():
        return None
    d.forget_shapes(d.names())
    d.drop_gradient_nodes()
    return "shapes unknown"


def _other_value(rng: np.random.Generator, attr: Any, value: attr_value_pb2.AttrValue) -> str | None:
    kind = attr.type
    if kind == "bool":
        value.b = not value.b
    elif kind == "string" and attr.allowed_values.list.s:
        value.s = attr.allowed_values.list.s[int(rng.integers(len(attr.allowed_values.list.s)))]
    elif kind == "int":
        value.i = int(value.i + rng.choice((-1, 1))) if rng.random() < 0.6 else int(rng.choice(SMALL_INTS))
    elif kind == "float":
        value.f = float(value.f * rng.uniform(0.5, 2)) if rng.random() < 0.6 else float(rng.choice((0, 1, -1, 0.1, 2)))
    elif kind == "list(int)" and value.list.i:
        at = int(rng.integers(len(value.list.i)))
        if rng.random() < 0.15:
            del value.list.i[at]
        else:
            value.list.i[at] = max(-3, int(value.list.i[at] + rng.choice((-1, 1, 1, 2))))
    elif kind == "list(float)" and value.list.f:
        at = int(rng.integers(len(value.list.f)))
        value.list.f[at] = float(value.list.f[at] + rng.normal())
    elif kind == "type" and attr.name not in ("T", "dtype"):
        allowed = list(attr.allowed_values.list.type) or [t.as_datatype_enum for t in TYPES]
        value.type = allowed[int(rng.integers(len(allowed)))]
    else:
        return None
    return str(value).replace("\n", " ")


def attributes(d: Draft) -> str | None:
    choices = []
    for node in d.main_nodes():
        definition = op_def_registry.get(node.op)
        for attr in definition.attr if definition else []:
            if attr.name in OURS.get(node.op, ()) and attr.name not in ("N", "container", "shared_name"):
                choices.append((node, attr))
    if not choices:
        return None
    node, attr = choices[int(d.rng.integers(len(choices)))]
    # An attribute that the node leaves out has its default.
    value = attr_value_pb2.AttrValue()
    value.CopyFrom(node.attr[attr.name] if attr.name in node.attr else attr.default_value)
    before = value.SerializeToString()
    note = _other_value(d.rng, attr, value)
    if note is None or value.SerializeToString() == before:
        return None
    node.attr[attr.name].CopyFrom(value)
    d.drop_gradient_nodes()
    if d.rng.random() < 0.7:
        d.forget_shapes(d.names())
    return f"{node.name}.{attr.name} = {note}"


def types(d: Draft) -> str | None:
    """Every tensor of one dtype gets another."""
    used = sorted({v.type for n in d.main_nodes() for v in n.attr.values() if v.WhichOneof("value") == "type"})
    used = [t for t in used if dtypes.as_dtype(t) in TYPES]
    if not used:
        return None
    old = dtypes.as_dtype(used[int(d.rng.integers(len(used)))])
    pool = FLOATS if old in FLOATS and d.rng.random() < 0.6 else TYPES
    new = pool[int(d.rng.integers(len(pool)))]
    if new == old or any(s["dtypes"] for s in d.steps):
        return None
    d.drop_gradient_nodes()
    for node in d.graph.node:
        for value in node.attr.values():
            if value.WhichOneof("value") == "type" and value.type == old.as_datatype_enum:
                value.type = new.as_datatype_enum
            for k, t in enumerate(value.list.type):
                value.list.type[k] = new.as_datatype_enum if t == old.as_datatype_enum else t
            if value.WhichOneof("value") == "tensor" and value.tensor.dtype == old.as_datatype_enum:
                a = tensor_util.MakeNdarray(value.tensor)
                value.tensor.CopyFrom(tensor(a.astype(new.as_numpy_dtype), new))

    def change(a: Array) -> Array:
        return a.astype(new.as_numpy_dtype) if a.dtype == old.as_numpy_dtype else a

    with np.errstate(all="ignore"):
        d.map_feeds(d.names(), change)
    return f"{old.name} -> {new.name}"


KINDS: dict[str, tuple[Callable[[Draft], str | None], float]] = {
    "values": (values, 3), "integers": (integers, 2), "strings": (strings, 1), "sizes": (sizes, 2.5),
    "one shape": (one_shape, 2), "unknown shapes": (unknown_shapes, 0.3), "attributes": (attributes, 2.5),
    "types": (types, 1.5),
}  # fmt: skip


def make(case: dict[str, Any], seed: int, number: int, only: str = "", gradients: bool = True) -> dict[str, Any] | None:
    """Variant `number` of a case, or None where the changes that were drawn do not apply to it."""
    rng = np.random.default_rng([seed, zlib.crc32(case["name"].encode()), number])
    names = [only] if only else list(KINDS)
    weights = np.array([KINDS[n][1] for n in names])
    for _ in range(6):
        kind = str(rng.choice(names, p=weights / weights.sum()))
        draft = Draft(case if gradients else {**case, "grad": None}, rng)
        if not gradients:
            draft.drop_gradient_nodes()
        with np.errstate(all="ignore"):
            note = KINDS[kind][0](draft)
        if note is None:
            continue
        if kind not in ("values", "unknown shapes") and rng.random() < 0.2:
            note += ", " + (values(draft) or "")
        return dict(name=case["name"], number=number, kind=kind, note=note, graph=draft.graph.SerializeToString(),
                    steps=draft.steps, grad=draft.grad, check=case["check"], tol=case["tol"],
                    recorded=["error" if "error" in s else "" for s in case["steps"]],
                    tame=not ("special" in note or "extreme" in note))  # fmt: skip
    return None
