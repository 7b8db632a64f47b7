# SPDX-License-Identifier: Apache-2.0
"""Messages, compressed strings and comma-separated values taken apart. Messages are encoded here, by hand."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import BY_NAME, BY_NUMBER, DType, narrow
from table import SHAPES, Case, Draw, Table
from wire import fields

Values = Sequence[Any] | None  # of a feature; None: a feature without a list
F32, I32, I64, STRING = (BY_NAME[name] for name in ("float32", "int32", "int64", "string"))


# ---- the wire format ----


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def feature(values: Values, packed: bool = True) -> bytes:
    if values is None:
        return b""
    if values and isinstance(values[0], bytes):
        return _field(1, b"".join(_field(1, v) for v in values))
    if values and isinstance(values[0], float):
        coded = [struct.pack("<f", v) for v in values]
        return _field(2, _field(1, b"".join(coded)) if packed else b"".join(b"\x0d" + c for c in coded))
    coded = [_varint(v) for v in values]
    return _field(3, _field(1, b"".join(coded)) if packed and coded else b"".join(b"\x08" + c for c in coded))


def _map(entries: dict[str, bytes]) -> bytes:
    return b"".join(_field(1, _field(1, k.encode()) + _field(2, v)) for k, v in entries.items())


def example(packed: bool = True, **features: Values) -> bytes:
    return _field(1, _map({k: feature(v, packed) for k, v in features.items()}))


def sequence(context: dict[str, Values], lists: dict[str, list[Values]]) -> bytes:
    coded = {k: b"".join(_field(1, feature(v)) for v in steps) for k, steps in lists.items()}
    return _field(1, _map({k: feature(v) for k, v in context.items()})) + _field(2, _map(coded))


# ---- examples ----

Row = dict[str, Values]
_ROWS: tuple[Row, ...] = (
    {"x": [1.5, 2.5], "v": [1, 2, 3], "s": [b"a"], "n": [7], "more": [9.0]},
    {"x": [-1.0, 0.0], "v": [], "s": [b"", b"\xff\x00" * 40], "n": [-8]},
    {"x": [3.0, 4.0], "s": None, "v": [1 << 62]},
    {"n": [5], "v": [-1, -1]},
)
_DENSE: tuple[tuple[str, DType, tuple[int, ...], Any], ...] = (
    ("n", I64, (1,), np.array([42], np.int64)),
    ("x", F32, (2,), np.array([0.25, 0.75], np.float32)),
    ("v", I64, (-1,), np.array([-7], np.int64)),
)
_SPARSE: tuple[tuple[str, DType], ...] = (("s", STRING), ("v", I64), ("absent", F32))


def _strings(values: Sequence[Any]) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return out


def _flat(values: Sequence[Any], dtype: DType) -> np.ndarray:
    return _strings(values) if dtype is STRING else np.array(values, dtype.stored)


def examples(d: Draw) -> Iterator[Case]:
    for count in (0, 1, 2, 4, 33):
        for packed in (True, False):
            rows = [_ROWS[i % len(_ROWS)] for i in range(count)]
            keys = [[np.array(k, object) for k, *_ in group] for group in (_SPARSE, _DENSE)]
            yield Case(
                [_strings([example(packed, **r) for r in rows]), _strings([]), *keys, [v for *_, v in _DENSE]],
                {"sparse_types": [t for _, t in _SPARSE], "dense_shapes": [s for *_, s, _ in _DENSE]},
                label=f"{count}",
                gradient=False,
            )


def check_examples(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    rows = [_ROWS[i % len(_ROWS)] for i in range(int(case.label))]
    check_rows(rows, got, _SPARSE, _DENSE)


_RAGGED: tuple[tuple[str, DType, DType], ...] = (("more", F32, I64), ("t", STRING, I32))


def _attrs_of_second() -> dict[str, Any]:
    return {
        "num_sparse": len(_SPARSE),
        "sparse_types": [t for _, t in _SPARSE],
        "dense_shapes": [s for *_, s, _ in _DENSE],
        "ragged_value_types": [t for _, t, _ in _RAGGED],
        "ragged_split_types": [t for *_, t in _RAGGED],
    }


def _with_ragged(row: Row, number: int) -> Row:
    return row | {"more": [float(v) for v in range(number % 3)] or None, "t": [b"t" * (number + 1)]}


def second_examples(d: Draw) -> Iterator[Case]:
    keys = [_strings([k for k, *_ in group]) for group in (_SPARSE, _DENSE, _RAGGED)]
    defaults = [v for *_, v in _DENSE]
    for count in (0, 1, 4, 33):
        rows = [_with_ragged(_ROWS[i % len(_ROWS)], i) for i in range(count)]
        serialized = _strings([example(**r) for r in rows])
        yield Case([serialized, _strings([]), *keys, defaults], _attrs_of_second(), label=f"{count}", gradient=False)
    one = np.array(example(**_with_ragged(_ROWS[0], 2)), object)
    yield Case([one, _strings([]), *keys, defaults], _attrs_of_second(), label="single", gradient=False)


def check_second_examples(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    before = 3 * len(_SPARSE) + len(_DENSE)
    if case.label == "single":
        row = _with_ragged(_ROWS[0], 2)
        same(got[3 * len(_SPARSE) + 1], np.array(row["x"], np.float32), "x")
        for k, (key, dtype, _) in enumerate(_RAGGED):
            same(got[before + k], _flat(row[key] or [], dtype), f"values of {key}")
            assert got[before + len(_RAGGED) + k].shape == (0,)
        return
    rows = [_with_ragged(_ROWS[i % len(_ROWS)], i) for i in range(int(case.label))]
    check_rows(rows, got, _SPARSE, _DENSE)
    for k, (key, dtype, splits) in enumerate(_RAGGED):
        lists = [r[key] or [] for r in rows]
        same(got[before + k], _flat([v for values in lists for v in values], dtype), f"values of {key}")
        same(got[before + len(_RAGGED) + k], np.cumsum([0, *map(len, lists)]).astype(splits.stored), f"splits of {key}")


def check_rows(rows: Sequence[Row], got: Sequence[np.ndarray], sparse: Any, dense: Any) -> None:
    n = len(sparse)
    for k, (key, dtype) in enumerate(sparse):
        lists = [r.get(key) or [] for r in rows]
        where = [(i, j) for i, values in enumerate(lists) for j in range(len(values))]
        same(got[k], np.array(where, np.int64).reshape(-1, 2), f"indices of {key}")
        same(got[n + k], _flat([v for values in lists for v in values], dtype), f"values of {key}")
        same(got[2 * n + k], np.array([len(rows), max(map(len, lists), default=0)]), f"shape of {key}")
    for k, (key, dtype, shape, default) in enumerate(dense):
        lists = [r.get(key) for r in rows]
        if shape[0] >= 0:
            want = [np.reshape(default, shape) if v is None else _flat(v, dtype).reshape(shape) for v in lists]
            width = shape
        else:
            longest = max((len(v or []) for v in lists), default=0)
            want = [np.array([*(v or []), *[default[0]] * (longest - len(v or []))], dtype.stored) for v in lists]
            width = (longest,)
        same(got[3 * n + k], np.array(want, dtype.stored).reshape(len(rows), *width), key)


def same(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert got.shape == want.shape, f"{what}: shape {got.shape}, wanted {want.shape}"
    assert np.array_equal(got, want), f"{what}: {got}, wanted {want}"


def single_examples(d: Draw) -> Iterator[Case]:
    for i, row in enumerate(_ROWS):
        yield Case(
            [np.array(example(**row), object), [v for *_, v in _DENSE]],
            {
                "num_sparse": len(_SPARSE),
                "sparse_keys": [k for k, _ in _SPARSE],
                "dense_keys": [k for k, *_ in _DENSE],
                "sparse_types": [t for _, t in _SPARSE],
                "dense_shapes": [s for *_, s, _ in _DENSE],
            },
            label=f"{i}",
            gradient=False,
        )


def check_single(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    row = _ROWS[int(case.label)]
    n = len(_SPARSE)
    for k, (key, dtype) in enumerate(_SPARSE):
        values = row.get(key) or []
        same(got[k], np.arange(len(values)).reshape(-1, 1), f"indices of {key}")
        same(got[n + k], _flat(values, dtype), f"values of {key}")
        same(got[2 * n + k], np.array([len(values)]), f"shape of {key}")
    for k, (key, dtype, shape, default) in enumerate(_DENSE):
        values = row.get(key)
        missing = default if shape[0] >= 0 else np.zeros(0, dtype.stored)
        same(got[3 * n + k], missing if values is None else _flat(values, dtype), key)


# ---- sequences ----

_SEQUENCES: tuple[tuple[dict[str, Values], dict[str, list[Values]]], ...] = (
    ({"c": [1, 2], "d": [0.5]}, {"t": [[b"a"], [b"b", b"c"], None], "i": [[1, 2], [3, 4]]}),
    ({"c": [], "d": [1.5]}, {"t": [], "i": [[5, 6], [7, 8], [9, 10]]}),
    ({}, {"i": []}),
    ({"d": [2.5], "c": [3]}, {"t": [[b"x"] * 3]}),
)
_TYPES = {
    "context_sparse_types": [I64],
    "feature_list_dense_types": [I64],
    "context_dense_shapes": [(1,)],
    "feature_list_sparse_types": [STRING],
    "feature_list_dense_shapes": [(2,)],
}
_COUNTS = dict.fromkeys(("Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense"), 1)
_KEYS = {"context_sparse_keys": "c", "context_dense_keys": "d", "feature_list_sparse_keys": "t"}
_DEFAULT = np.array([-0.5], np.float32)


def batches_of_sequences(d: Draw) -> Iterator[Case]:
    for count in (0, 1, 4):
        yield Case(
            [_strings([sequence(*s) for s in _SEQUENCES[:count]]), _strings([]), [_DEFAULT]],
            {"feature_list_dense_missing_assumed_empty": ["i"], **{k: [v] for k, v in _KEYS.items()}, "feature_list_dense_keys": ["i"], **_COUNTS, **_TYPES},
            label=f"{count}",
            gradient=False,
        )


def check_batch(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    sequences = _SEQUENCES[: int(case.label)]
    check_rows([c for c, _ in sequences], got[:4], [("c", I64)], [("d", F32, (1,), _DEFAULT)])
    texts = [[step or [] for step in lists.get("t", [])] for _, lists in sequences]
    where = [(i, s, k) for i, t in enumerate(texts) for s, step in enumerate(t) for k in range(len(step))]
    same(got[4], np.array(where, np.int64).reshape(-1, 3), "indices")
    same(got[5], _flat([v for t in texts for step in t for v in step], STRING), "values")
    widest = max((len(step) for t in texts for step in t), default=0)
    same(got[6], np.array([len(texts), max(map(len, texts), default=0), widest]), "shape")
    steps = [lists.get("i", []) for _, lists in sequences]
    dense = np.zeros((len(steps), max(map(len, steps), default=0), 2), np.int64)
    for i, values in enumerate(steps):
        dense[i, : len(values)] = np.array(values, np.int64).reshape(-1, 2)
    same(got[7], dense, "dense")
    same(got[8], np.array([len(s) for s in steps], np.int64), "lengths")


def single_sequences(d: Draw) -> Iterator[Case]:
    key = lambda k: [np.array(k, object)]
    for i, s in enumerate(_SEQUENCES):
        keys = [key(k) for k in (*_KEYS.values(), "i")]
        yield Case(
            [np.array(sequence(*s), object), _strings(["i"]), *keys, [_DEFAULT], np.array("name", object)], {**_COUNTS, **_TYPES}, label=f"{i}", gradient=False
        )


def check_single_sequence(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    context, lists = _SEQUENCES[int(case.label)]
    values = context.get("c") or []
    same(got[0], np.arange(len(values)).reshape(-1, 1), "context indices")
    same(got[1], np.array(values, np.int64), "context values")
    same(got[2], np.array([len(values)]), "context shape")
    same(got[3], np.array(context.get("d", _DEFAULT), np.float32), "context dense")
    steps = [{"t": step} for step in lists.get("t", [])]
    check_rows(steps, got[4:7], [("t", STRING)], [])
    same(got[7], np.array(lists.get("i", []), np.int64).reshape(-1, 2), "dense")


# ---- text and bytes ----


def tables(d: Draw) -> Iterator[Case]:
    defaults = [np.array([7], np.int32), np.zeros(0, np.float32), np.array("none", object), np.array([0.5])]
    lines = ['1,2.5,"a ""b"", c",4', ",-1e3,,", '3, 4 ,"x\ny",5']
    yield Case([_strings(lines), defaults], label="rfc", gradient=False)
    yield Case([_strings(lines).reshape(3, 1), defaults], label="rfc", gradient=False)
    yield Case([_strings([]), defaults], label="nothing", gradient=False)
    chosen = {"field_delim": ";", "na_value": "NA", "select_cols": [1, 3], "use_quote_delim": False}
    yield Case([_strings(['"x;1;y;2.5', "x;NA;y;NA"]), [defaults[0], defaults[3]]], chosen, label="some", gradient=False)


_COLUMNS = {"rfc": ([1, 7, 3], [2.5, -1e3, 4], [b'a "b", c', b"none", b"x\ny"], [4, 0.5, 5]), "nothing": ([], [], [], []), "some": ([1, 7], [2.5, 0.5])}


def check_table(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    for column, want in zip(got, _COLUMNS[case.label]):
        assert column.shape == case.inputs[0].shape
        assert list(column.ravel()) == list(want), f"{list(column.ravel())}, wanted {list(want)}"


def compressed(kind: str) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        squeeze = {"": bytes, "ZLIB": zlib.compress, "GZIP": gzip.compress}[kind]
        for shape in SHAPES:
            out = np.empty(shape, object)
            for k, at in enumerate(np.ndindex(shape)):
                out[at] = squeeze(bytes(d.rng.integers(0, 60, k * 37 % 5000).astype(np.uint8)) * 3)
            yield Case([out], {"compression_type": kind})

    return cases


def expanded(x: np.ndarray, compression_type: str) -> np.ndarray:
    expand = {"": bytes, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}[compression_type]
    out = np.empty(x.shape, object)
    for at in np.ndindex(x.shape):
        out[at] = expand(x[at])
    return out


def padded(little: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((), (0,), (3, 2)):
            for length in (8, 40):
                x = np.empty(shape, object)
                for at in np.ndindex(shape):
                    x[at] = d.rng.integers(0, 60, d.rng.integers(0, 20)).astype(np.uint8).tobytes()
                yield Case([x, np.array(length)], {"little_endian": little})

    return cases


def check_padded(case: Case, got: Any, types: Any) -> None:
    length = int(case.inputs[1])
    stored = np.dtype(BY_NAME[types[0].name].stored)
    order = stored.newbyteorder("<" if case.attrs["little_endian"] else ">")
    want = [np.frombuffer((text + bytes(length))[:length], order).astype(stored) for text in case.inputs[0].ravel()]
    have = got[0].reshape(len(want), length // stored.itemsize)
    raw = np.array(want).reshape(have.shape)
    if types[0].name == "bfloat16":
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(have, raw.astype(have.dtype), equal_nan=have.dtype.kind in "fc"), f"{have}"


def tensors(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.any(shape)], gradient=False)


def _tensor_proto(x: np.ndarray, dtype: DType) -> bytes:
    shape = b"".join(_field(2, b"\x08" + _varint(n) if n else b"") for n in x.shape)
    head = b"\x08" + _varint(dtype.number) + _field(2, shape)
    stored = narrow(x, dtype)
    if dtype.kind == "s":
        return head + b"".join(_field(8, v) for v in stored.ravel())
    return head + (_field(4, stored.tobytes()) if stored.size else b"")


def check_serialized(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    proto = dict(fields(bytes(got[0][()])))
    dtype = BY_NUMBER[proto[1]]
    assert bytes(got[0][()]) == _tensor_proto(case.inputs[0], dtype), f"{bytes(got[0][()])[:80]!r}"


def messages(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        x = d.any(shape)
        yield Case([np.array(_tensor_proto(x, d.dtype), object)], label=json.dumps([x.astype(str).tolist(), list(shape)]))


def check_parsed(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    assert _tensor_proto(got[0], types[0]) == case.inputs[0][()], f"{got[0]}"


def json_examples(d: Draw) -> Iterator[Case]:
    texts = []
    for row in _ROWS:
        features: dict[str, Any] = {}
        for key, values in row.items():
            if values is None:
                features[key] = {}
            elif values and isinstance(values[0], bytes):
                features[key] = {"bytesList": {"value": [base64.b64encode(v).decode() for v in values]}}
            elif values and isinstance(values[0], float):
                features[key] = {"float_list": {"value": values}}
            else:
                features[key] = {"int64List": {"value": [str(v) for v in values]}}
        texts.append(json.dumps({"features": {"feature": features}}))
    yield Case([_strings(texts)])
    yield Case([_strings([]).reshape(0, 2)])


def check_json(case: Case, got: Sequence[np.ndarray], types: Any) -> None:
    want = [example(False, **row) for row in _ROWS[: case.inputs[0].size]]
    same(got[0], _strings(want).reshape(case.inputs[0].shape), "messages")


def add_to(table: Table) -> None:
    table.add("ParseExample", examples, check=check_examples)
    table.add("ParseExampleV2", second_examples, check=check_second_examples)
    table.add("ParseSingleExample", single_examples, check=check_single)
    table.add("ParseSequenceExample", batches_of_sequences, check=check_batch)
    table.add("ParseSingleSequenceExample", single_sequences, check=check_single_sequence)
    table.add("DecodeCSV", tables, check=check_table)
    table.add("DecodeJSONExample", json_examples, check=check_json)
    for kind in ("", "ZLIB", "GZIP"):
        table.add("DecodeCompressed", compressed(kind), expanded, note=kind)
    for little in (True, False):
        table.add("DecodePaddedRaw", padded(little), check=check_padded, main="out_type", note=f"little {little}")
    table.add("SerializeTensor", tensors, check=check_serialized)
    table.add("ParseTensor", messages, check=check_parsed, main="out_type")
