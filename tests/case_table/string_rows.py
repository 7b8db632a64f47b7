# SPDX-License-Identifier: Apache-2.0
"""Strings, byte by byte."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dtypes import BY_NAME
from table import SHAPES, Case, Draw, Table

_WORDS = (b"", b"a", b"word", b"two words", b" one  more ", "Straße".encode(), b"\x00\xff\xfe", b"longer than a word" * 9)


def _words(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    out = np.empty(shape, object)
    for at in np.ndindex(shape):
        out[at] = _WORDS[d.rng.integers(len(_WORDS))]
    return out


def each(attrs: dict[str, Any] | None = None) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            yield Case([_words(d, shape)], dict(attrs or {}))

    return cases


def mapped(fn: Callable[[bytes], Any]) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, **_: Any) -> np.ndarray:
        out = np.empty(x.shape, object)
        for at in np.ndindex(x.shape):
            out[at] = fn(x[at])
        return out if out.size and isinstance(out.flat[0], bytes) else out.astype(np.int64 if out.size else object)

    return oracle


def coded(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        x = _words(d, shape)
        for at in np.ndindex(shape):
            x[at] = base64.urlsafe_b64encode(x[at]).rstrip(b"=")
        yield Case([x])


def cut(d: Draw) -> Iterator[Case]:
    long = np.array([b"hello world", b"0123456789", b"bytes and bytes"], object)
    for at, size in ((0, 3), (2, 100), (-4, 2), (5, 0)):
        yield Case([long, np.array(at), np.array(size)])
    yield Case([long, np.array([1, -2, 3]), np.array([2, 2, 2])])
    yield Case([np.array(b"alone", object), np.array(1), np.array(2)])


def cut_out(x: np.ndarray, at: np.ndarray, size: np.ndarray) -> np.ndarray:
    out = np.empty(x.shape, object)
    for k in np.ndindex(x.shape):
        begin = int(at if at.ndim == 0 else at[k])
        begin = begin + len(x[k]) if begin < 0 else begin
        out[k] = x[k][begin : begin + int(size if size.ndim == 0 else size[k])]
    return out


def splits(d: Draw) -> Iterator[Case]:
    for count in (0, 1, 7):
        for delimiter in (b" ", b"", b" o"):
            for skip in (True, False):
                yield Case([_words(d, (count,)), np.array(delimiter, object)], {"skip_empty": skip})


def split(x: np.ndarray, delimiter: np.ndarray, skip_empty: bool) -> tuple[np.ndarray, ...]:
    characters = bytes(delimiter[()])
    indices, values = [], []
    for row, text in enumerate(x):
        parts = [text[i : i + 1] for i in range(len(text))]
        if characters:
            parts, part = [], b""
            for i in range(len(text)):
                if text[i] in characters:
                    parts, part = [*parts, part], b""
                else:
                    part += text[i : i + 1]
            parts += [part] if text else []
        parts = [p for p in parts if p or not skip_empty]
        indices += [(row, k) for k in range(len(parts))]
        values += parts
    widest = max((k + 1 for _, k in indices), default=0)
    flat = np.empty(len(values), object)
    flat[:] = values
    return np.array(indices, np.int64).reshape(-1, 2), flat, np.array([len(x), widest])


def whole_splits(d: Draw) -> Iterator[Case]:
    for count in (0, 1, 7):
        for separator in (b"", b"o", b" w"):
            for most in (-1, 0, 1, 2):
                yield Case([_words(d, (count,)), np.array(separator, object)], {"maxsplit": most})


def split_whole(x: np.ndarray, separator: np.ndarray, maxsplit: int) -> tuple[np.ndarray, ...]:
    """As bytes.split; white space after the last part of a limited number is a part that is empty."""
    indices, values = [], []
    for row, text in enumerate(x):
        parts = [text] if maxsplit == 0 else text.split(separator[()] or None, maxsplit)
        if not separator[()] and maxsplit > 0 and len(parts) == maxsplit:
            parts.append(b"")
        indices += [(row, k) for k in range(len(parts))]
        values += parts
    flat = np.empty(len(values), object)
    flat[:] = values
    widest = max((k + 1 for _, k in indices), default=0)
    return np.array(indices, np.int64).reshape(-1, 2), flat, np.array([len(x), widest])


def fingerprinted(d: Draw) -> Iterator[Case]:
    yield Case([np.arange(6).reshape(2, 3), np.array(b"farmhash64", object)])


def check_fingerprint(case: Case, got: Any, types: Any) -> None:
    assert got[0].shape == (2, 8) and len({bytes(row) for row in got[0].astype(np.uint8)}) == 2, got


def rows_of_words(d: Draw) -> Iterator[Case]:
    for axes in ((1,), (0,), (0, 1), (1, 0), ()):
        for keep in (True, False):
            yield Case([_words(d, (3, 4)), np.array(axes, np.int64)], {"keep_dims": keep, "separator": "-"})


def joined(x: np.ndarray, axes: np.ndarray, keep_dims: bool, separator: str) -> np.ndarray:
    """The first axis given runs fastest."""
    order = [int(a) for a in axes]
    rest = [k for k in range(x.ndim) if k not in order]
    moved = x.transpose(rest + order[::-1])
    out = np.empty(moved.shape[: len(rest)], object)
    for at in np.ndindex(out.shape):
        part = moved[at]
        out[at] = separator.encode().join(part.ravel().tolist()) if order else part
    return out.reshape([1 if k in order else n for k, n in enumerate(x.shape)]) if keep_dims else out


def raw(little: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((), (1,), (3, 2)):
            x = np.empty(shape, object)
            for at in np.ndindex(shape):
                x[at] = d.rng.integers(0, 60, 32).astype(np.uint8).tobytes()
            yield Case([x], {"little_endian": little})

    return cases


def check_raw(case: Case, got: Any, types: Any) -> None:
    stored = np.dtype(BY_NAME[types[0].name].stored)
    order = "<" if case.attrs["little_endian"] else ">"
    want = [np.frombuffer(text, stored.newbyteorder(order)).astype(stored) for text in case.inputs[0].ravel()]
    have = got[0].reshape(len(want), -1)
    assert np.array_equal(have, np.stack(want).astype(have.dtype), equal_nan=have.dtype.kind in "fc"), f"{have}"


def numbers(d: Draw) -> Iterator[Case]:
    spelt = [b"0", b"17", b" -12 ", b"2000000000"] + ([b"1.5", b"-2e3"] if d.kind == "f" else [])
    yield Case([np.array(spelt, object)])


def printed(d: Draw) -> Iterator[Case]:
    for shape in ((), (0,), (17,)):
        x = d.uniform(shape, -50, 50)
        yield Case([x])
        yield Case([x], {"width": 9, "fill": "0"} if d.kind in "iu" else {"width": 9})
        if d.kind != "u":
            yield Case([x], {"width": 9, "fill": "+"})
        if d.kind in "fc":
            yield Case([x], {"precision": 2, "scientific": True})
            yield Case([x], {"precision": 3, "shortest": True})


def text_of(x: np.ndarray, **attrs: Any) -> np.ndarray:
    width, fill, precision = attrs.get("width", -1), attrs.get("fill", ""), attrs.get("precision", -1)
    letter = "e" if attrs.get("scientific") else "g" if attrs.get("shortest") else "f"
    form = f"%{fill}" + (str(width) if width >= 0 else "") + (f".{precision}" if precision >= 0 else "")

    def one(v: Any) -> bytes:
        if x.dtype.kind in "iu":
            return (form + "d").encode() % int(v)
        if x.dtype.kind == "c":
            return b"(" + (form + letter).encode() % v.real + b"," + (form + letter).encode() % v.imag + b")"
        return (form + letter).encode() % float(v)

    out = np.empty(x.shape, object)
    for at in np.ndindex(x.shape):
        out[at] = one(x[at])
    return out


def add_to(table: Table) -> None:
    table.add("StringLength", each(), mapped(len))
    table.add("EncodeBase64", each({"pad": True}), mapped(base64.urlsafe_b64encode), note="padded")
    table.add("EncodeBase64", each(), mapped(lambda s: base64.urlsafe_b64encode(s).rstrip(b"=")))
    table.add("DecodeBase64", coded, mapped(lambda s: base64.urlsafe_b64decode(s + b"=" * (-len(s) % 4))))
    table.add("Substr", cut, cut_out)
    table.add("StringSplit", splits, split)
    table.add("StringSplitV2", whole_splits, split_whole)
    table.add("Fingerprint", fingerprinted, check=check_fingerprint, dtypes=("int32", "float64", "uint8"))
    table.add("ReduceJoin", rows_of_words, joined)
    for little in (True, False):
        table.add("DecodeRaw", raw(little), check=check_raw, main="out_type", note=f"little {little}")
    table.add("StringToNumber", numbers, lambda x: np.array([float(v) for v in x]), main="out_type")
    printable = ("int8", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128")
    table.add("AsString", printed, text_of, dtypes=printable)
