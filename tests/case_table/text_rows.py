# SPDX-License-Identifier: Apache-2.0
"""Patterns, encodings, runs and segments of words, beside Python's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from table import Case, Draw, Table

_WORDS = ("", "a", "john smith", "a.b.c", "x=1, y=22", "Straße", "日本語 text", "\U0001f600!")
# (pattern, rewrite, the rewrite in Python's spelling): what both engines mean alike
_PATTERNS = (
    (r"(\w+) (\w+)", r"\2,\1", r"\2,\1"),
    (r"[a-z]+?=(\d+)", r"<\0|\1>", r"<\g<0>|\1>"),
    (r"(a|b)\.|\s", "", ""),
    (r"(?i)STRA", "-", "-"),
    (r"^.{2,3}", r"\\", r"\\"),
    (r"[^\x00-\x7f]+", "?", "?"),
)
_ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def texts(values: Any) -> np.ndarray:
    out = np.empty(len(values), object)
    out[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return out


def patterns(fixed: bool, rewrites: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for pattern, rewrite, _ in _PATTERNS:
            names = {"pattern": pattern} | ({"rewrite": rewrite} if rewrites else {})
            scalars = [np.array(v.encode(), object) for v in names.values()]
            for everywhere in (True, False) if rewrites else (True,):
                attrs: dict[str, Any] = {"replace_global": everywhere} if rewrites else {}
                yield Case([texts(_WORDS), *([] if fixed else scalars)], attrs | (names if fixed else {}))

    return cases


def _chosen(given: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[re.Pattern[str], str]:
    pattern = attrs.get("pattern") or given[0][()].decode()
    return re.compile(pattern, re.ASCII), next(p for _, _, p in [r for r in _PATTERNS if r[0] == pattern])


def replaced(x: np.ndarray, *given: np.ndarray, **attrs: Any) -> np.ndarray:
    pattern, rewrite = _chosen(given, attrs)
    count = 0 if attrs["replace_global"] else 1
    return texts([pattern.sub(rewrite, t.decode(), count=count) for t in x])


def matched(x: np.ndarray, *given: np.ndarray, **attrs: Any) -> np.ndarray:
    pattern, _ = _chosen(given, attrs)
    return np.array([pattern.fullmatch(t.decode()) is not None for t in x])


def encoded(d: Draw) -> Iterator[Case]:
    for encoding in _ENCODINGS:
        yield Case([texts([w.encode(encoding) for w in _WORDS])], {"input_encoding": encoding})


def with_controls(d: Draw) -> Iterator[Case]:
    attrs = {"input_encoding": "UTF-8", "errors": "strict", "replace_control_characters": True, "replacement_char": 63}
    yield Case([texts([b"a\0b", b"", b"\n\x1f "])], attrs)


def without_controls(x: np.ndarray, **attrs: object) -> tuple[np.ndarray, ...]:
    """Control characters are no errors of the encoding."""
    splits, codes = decoded(x, "UTF-8")
    return splits, np.where(codes < 32, 63, codes)


def decoded(x: np.ndarray, input_encoding: str) -> tuple[np.ndarray, ...]:
    words = [t.decode(input_encoding) for t in x]
    codes = [ord(c) for w in words for c in w]
    return np.cumsum([0] + [len(w) for w in words]), np.array(codes)


def decoded_with_places(x: np.ndarray, input_encoding: str) -> tuple[np.ndarray, ...]:
    places: list[int] = []
    for t in x:
        at = 0
        for c in t.decode(input_encoding):
            places.append(at)
            at += len(c.encode(input_encoding))
    return *decoded(x, input_encoding), np.array(places)


def codes(d: Draw) -> Iterator[Case]:
    splits, values = decoded(texts(_WORDS), "UTF-8")
    for encoding in _ENCODINGS:
        yield Case([values.astype(np.int32), splits.astype(np.int64)], {"output_encoding": encoding})


def spelt(values: np.ndarray, splits: np.ndarray, output_encoding: str) -> np.ndarray:
    words = ["".join(map(chr, values[a:b])) for a, b in zip(splits[:-1], splits[1:])]
    return texts([w.encode(output_encoding) for w in words])


def pairs_of_encodings(d: Draw) -> Iterator[Case]:
    for case in encoded(d):
        for to in _ENCODINGS:
            yield Case(case.inputs, case.attrs | {"output_encoding": to})


def transcoded(x: np.ndarray, input_encoding: str, output_encoding: str) -> np.ndarray:
    return texts([t.decode(input_encoding).encode(output_encoding) for t in x])


def lists_of_words(d: Draw) -> Iterator[Case]:
    data, splits = texts(["a", "b", "c", "d", "e", "f"]), np.array([0, 3, 3, 4, 6], np.int64)
    for widths in ([1], [2], [2, 3]):
        for pad_width in (-1, 0, 1):
            attrs = {"separator": "+", "ngram_widths": widths, "left_pad": "<", "right_pad": ">"}
            yield Case([data, splits], attrs | {"pad_width": pad_width, "preserve_short_sequences": False})


def runs(
    data: np.ndarray, splits: np.ndarray, separator: str, ngram_widths: list[int], left_pad: str, right_pad: str, pad_width: int, preserve_short_sequences: bool
) -> tuple[np.ndarray, ...]:
    assert not preserve_short_sequences
    found: list[bytes] = []
    ends = [0]
    for begin, end in zip(splits[:-1], splits[1:]):
        for width in ngram_widths:
            pads = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            words = [left_pad.encode()] * pads + list(data[begin:end]) + [right_pad.encode()] * pads
            found += [separator.encode().join(words[i : i + width]) for i in range(len(words) - width + 1)]
        ends.append(len(found))
    return texts(found), np.array(ends)


def segments(d: Draw) -> Iterator[Case]:
    flat = texts(["a", "b", "c", "d", "e", "f"])
    yield Case([flat, np.array([2, 0, 2, 3, 0, 2]), np.array(4)], {"separator": "-"})
    yield Case([flat.reshape(3, 2), np.array([1, 1, 0]), np.array(2)], {"separator": ", "})
    yield Case([flat.reshape(3, 2), np.array([[1, 1], [0, 1], [0, 0]]), np.array(3)], {"separator": ""})


def segments_joined(x: np.ndarray, ids: np.ndarray, count: np.ndarray, separator: str) -> np.ndarray:
    rows = x.reshape(ids.size, -1)
    out = np.empty((int(count), rows.shape[1]), object)
    for segment in range(int(count)):
        for column in range(rows.shape[1]):
            parts = [rows[i, column] for i in range(ids.size) if ids.ravel()[i] == segment]
            out[segment, column] = separator.encode().join(parts)
    return out.reshape((int(count),) + x.shape[ids.ndim :])


_CASES = (*_WORDS, " İstanbul ", "ΑΣ ΣΑΣ.", "ǆ ŉ ﬃ", "\tꭰ𐐀\n", "bad \udcff")


def cased(d: Draw) -> Iterator[Case]:
    for encoding in ("", "utf-8"):
        yield Case([np.array([t.encode("utf-8", "surrogateescape") for t in _CASES], object)], {"encoding": encoding})


def in_case(method: str) -> Any:
    def oracle(x: np.ndarray, encoding: str) -> np.ndarray:
        return texts([getattr(t.decode("utf-8", "replace") if encoding else t, method)() for t in x])

    return oracle


def characters(d: Draw) -> Iterator[Case]:
    yield Case([np.array([ord(c) for c in "aαш漢あ가1 "] + [0xD800, -1, 0x110000])])


_SCRIPTS = [25, 14, 8, 17, 20, 18, 0, 0, 103, -1, -1]  # ICU's: Latin, Greek, Cyrillic, Han, Hiragana, Hangul, common


def add_to(table: Table) -> None:
    table.add("StringLower", cased, in_case("lower"))
    table.add("StringUpper", cased, in_case("upper"))
    table.add("StringStrip", lambda d: iter([Case([texts(["", "  a b\t\n", "a", " \v\f\r "])])]), lambda x: texts([t.strip() for t in x]))
    table.add("UnicodeScript", characters, lambda x: np.array(_SCRIPTS))
    table.add("RegexReplace", patterns(False, True), replaced)
    table.add("StaticRegexReplace", patterns(True, True), replaced)
    table.add("RegexFullMatch", patterns(False, False), matched)
    table.add("StaticRegexFullMatch", patterns(True, False), matched)
    table.add("UnicodeDecode", encoded, decoded)
    table.add("UnicodeDecode", with_controls, without_controls, note="control characters")
    table.add("UnicodeDecodeWithOffsets", encoded, decoded_with_places)
    table.add("UnicodeEncode", codes, spelt)
    table.add("UnicodeTranscode", pairs_of_encodings, transcoded)
    table.add("StringNGrams", lists_of_words, runs)
    table.add("UnsortedSegmentJoin", segments, segments_joined)
