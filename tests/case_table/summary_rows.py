# SPDX-License-Identifier: Apache-2.0
"""Summaries: what the encoded message says."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import DType
from table import SHAPES, Case, Draw, Table
from wire import fields


def _values(summary: Any) -> list[dict[int, Any]]:
    return [dict(fields(bytes(value))) for number, value in fields(summary) if number == 1]


def _number(field: bytes, kind: str) -> float:
    return float(struct.unpack(kind, bytes(field))[0])


def scalars(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        tags = np.array([f"tag{i}".encode() for i in range(int(np.prod(shape, dtype=np.int64)))], object).reshape(shape)
        yield Case([tags, d.uniform(shape, 1, 100)])


def check_scalars(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    values = _values(got[0][()])
    assert len(values) == case.inputs[1].size, f"{len(values)} values, wanted {case.inputs[1].size}"
    for value, tag, want in zip(values, case.inputs[0].ravel(), case.inputs[1].ravel()):
        assert value[1] == tag, f"tag {value[1]!r}, wanted {tag!r}"
        have = _number(value[2], "<f")
        assert abs(have - want) <= 1e-2 * want, f"{tag!r}: got {have}, wanted {want}"


def tagged(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([np.array("tag", object), d.uniform(shape, 1, 100)])


def check_histogram(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    histogram = dict(fields(bytes(_values(got[0][()])[0][5])))
    x = case.inputs[1].astype(np.float64)
    have = {name: _number(histogram[k], "<d") for k, name in enumerate(("min", "max", "num", "sum"), 1) if k in histogram}
    assert have.get("num", 0.0) == x.size, f"{have.get('num')} numbers, wanted {x.size}"
    if not x.size:
        return
    for name, want in (("min", x.min()), ("max", x.max()), ("sum", x.sum())):
        assert abs(have[name] - want) <= 1e-2 * abs(want), f"{name}: got {have[name]}, wanted {want}"
    counts = np.frombuffer(bytes(histogram[7]), "<f8")
    assert counts.sum() == x.size, f"buckets hold {counts.sum()}, wanted {x.size}"


def images(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1, 1, 1), (2, 5, 7, 3), (4, 16, 17, 4)):
        yield Case([np.array("tag", object), d.uniform(shape, 0, 200)], {"max_images": 2})


def check_images(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    values = _values(got[0][()])
    shape = case.inputs[1].shape
    assert len(values) == min(2, shape[0]), f"{len(values)} images, wanted {min(2, shape[0])}"
    for value in values:
        image = dict(fields(bytes(value[4])))
        assert (image[1], image[2], image[3]) == shape[1:], f"sizes {image[1]}, {image[2]}, {image[3]}, wanted {shape[1:]}"
        png = bytes(image[4])
        assert png[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
        assert struct.unpack(">II", png[16:24]) == (shape[2], shape[1]), "the PNG has other sizes"
        assert zlib.crc32(png[12:29]) == struct.unpack(">I", png[29:33])[0], "the PNG's header has another checksum"


def sounds(rate_is_input: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((1, 5), (3, 8, 2), (2, 0), (0, 4)):
            inputs = [np.array("tag", object), d.rng.uniform(-1.5, 1.5, shape)]
            attrs: dict[str, Any] = {"max_outputs": 2}
            if rate_is_input:
                inputs.append(np.array(8000.0))
            else:
                attrs["sample_rate"] = 8000.0
            yield Case(inputs, attrs)

    return cases


def check_sounds(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    x = np.asarray(case.inputs[1], np.float32)
    x = x.reshape(*x.shape[:2], -1) if x.ndim == 3 else x[..., None]
    values = _values(got[0][()])
    assert len(values) == min(2, len(x)), f"{len(values)} sounds, wanted {min(2, len(x))}"
    for value, samples in zip(values, x):
        sound = dict(fields(bytes(value[6])))
        assert (sound.get(2), sound.get(3, 0)) == (x.shape[2], x.shape[1]), "channels and frames"
        wav = bytes(sound[4])
        assert wav[:4] == b"RIFF" and wav[8:16] == b"WAVEfmt ", "no WAV file"
        channels, rate = struct.unpack("<HI", wav[22:28])
        assert (channels, rate) == (x.shape[2], 8000), f"{channels} channels at {rate} Hz"
        have = np.frombuffer(wav[44:], "<i2").reshape(samples.shape)
        want = np.clip(np.round(samples * 32768), -32768, 32767)
        assert np.abs(have - want).max(initial=0) <= 1, "other samples"


def tensors(tagged_with: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in SHAPES:
            x = d.uniform(shape, 1, 100)
            yield Case([np.array("tag", object), x, np.array(b"", object)] if tagged_with else [x])

    return cases


def check_tensor(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    (value,) = _values(got[0][()])
    shape = case.inputs[1 if len(case.inputs) > 1 else 0].shape
    tensor = dict(fields(bytes(value[8])))
    dims = [dict(fields(bytes(v))).get(1, 0) for k, v in fields(bytes(tensor.get(2, b""))) if k == 2]
    assert tuple(dims) == shape, f"shape {dims}, wanted {shape}"
    if len(case.inputs) > 1:
        assert value[1] == b"tag", f"tag {value[1]!r}"


def merged(d: Draw) -> Iterator[Case]:
    one = b"\x0a\x0a\x0a\x03one\x15\x00\x00\x80\x3f"
    two = b"\x0a\x0a\x0a\x03two\x15\x00\x00\x00\x40"
    yield Case([[np.array(one, object), np.array(two, object)]])
    yield Case([[np.array([one, two], object), np.array([], object)]])


def add_to(table: Table) -> None:
    table.add("ScalarSummary", scalars, check=check_scalars)
    table.add("HistogramSummary", tagged, check=check_histogram)
    table.add("ImageSummary", images, check=check_images)
    table.add("MergeSummary", merged, lambda v: np.array(b"".join(b"".join(x.ravel()) for x in v), object))
    table.add("AudioSummary", sounds(False), check=check_sounds)
    table.add("AudioSummaryV2", sounds(True), check=check_sounds)
    table.add("TensorSummary", tensors(False), check=check_tensor, dtypes=("float32", "int64"))
    table.add("TensorSummaryV2", tensors(True), check=check_tensor, dtypes=("float32", "int64"))
