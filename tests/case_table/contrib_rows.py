# SPDX-License-Identifier: Apache-2.0
"""Ops of tf.contrib: slices reduced, images read between pixels, pixels that belong together, numbers laid out anew, lines of libsvm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import BY_NAME, DType
from table import Case, Draw, Table

_SLICED = (((7,), 0), ((5, 3), 0), ((2, 6, 3), 1), ((2, 3, 9), -1), ((0, 2), 0), ((4, 0), 0))


def slices(low: float, high: float) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, axis in _SLICED:
            data = d.uniform(shape, low, high)
            for indices in ([[0, 2], [1, 1], [1, 99], [3, 2], [0, 1]], [0, 0, 2, 4], [1], []):
                places = np.array(indices, np.int64)
                yield Case([data, places, np.array(axis)], types={"Tindices": BY_NAME["int32" if axis else "int64"]})

    return cases


def _reduced(reduce: Callable[..., Any], of_none: Callable[[np.ndarray], Any]) -> Any:
    def oracle(data: np.ndarray, indices: np.ndarray, axis: np.ndarray) -> np.ndarray:
        pairs = indices if indices.ndim == 2 else zip(indices[:-1], indices[1:])
        rows = np.moveaxis(data, int(axis), 0)
        made = [reduce(rows[b:e], axis=0) if b < min(e, len(rows)) else np.full(rows.shape[1:], of_none(rows)) for b, e in pairs]
        return np.moveaxis(np.array(made, data.dtype).reshape(len(made), *rows.shape[1:]), 0, int(axis))

    return oracle


def places(gradient: bool) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, points in (((2, 3, 4, 2), (5,)), ((1, 1, 1, 1), (2, 3)), ((0, 2, 2, 1), (3,)), ((2, 3, 3, 0), (2,)), ((2, 5, 2, 3), ())):
            data = d.uniform(shape)
            # Quarters, so that all types have them; apart from the pixels, where the gradient jumps.
            warp = (d.rng.integers(-8, 4 * max(shape[1:3]) + 8, (shape[0], *points, 2)) // 2 * 2 + 1) / 4
            yield Case([data, warp] + ([d.uniform((*warp.shape[:-1], shape[3]))] if gradient else []))

    return cases


def _weights(data: np.ndarray, place: np.ndarray) -> Iterator[tuple[int, int, float, float, float]]:
    """The pixels that a place reads: row, column, weight, and how that moves with x and y."""
    x, y = float(place[0]), float(place[1])
    if not (-1 < x < data.shape[2] and -1 < y < data.shape[1]):
        return
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < data.shape[1] and 0 <= column < data.shape[2]:
                h, v = 1 - abs(x - column), 1 - abs(y - row)
                yield row, column, h * v, v * np.sign(column - x), h * np.sign(row - y)


def _read(data: np.ndarray, warp: np.ndarray) -> np.ndarray:
    out = np.zeros((*warp.shape[:-1], data.shape[3]))
    for at in np.ndindex(*warp.shape[:-1]):
        for row, column, weight, _, _ in _weights(data, warp[at]):
            out[at] += weight * data[at[0], row, column]
    return out


def _read_back(data: np.ndarray, warp: np.ndarray, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    to_data, to_warp = np.zeros(data.shape), np.zeros(warp.shape)
    for at in np.ndindex(*warp.shape[:-1]):
        for row, column, weight, by_x, by_y in _weights(data, warp[at]):
            to_data[at[0], row, column] += weight * grad[at]
            to_warp[at] += np.dot(data[at[0], row, column], grad[at]) * np.array([by_x, by_y])
    return to_data, to_warp


def distances(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1), (4, 6), (7, 3), (0, 2), (3, 0)):
        table = d.rng.integers(0, 9, shape) / 4  # many are as far
        for valid, top_k in ((-1, -1), (np.array([min(2, shape[0])]), -1), (shape[0], 2), (0, 0)):
            yield Case([table, np.asarray(valid, np.float64)], {"top_k": top_k})


def _matched(table: np.ndarray, valid: np.ndarray, top_k: int) -> tuple[np.ndarray, np.ndarray]:
    rows = len(table) if valid.ravel()[0] < 0 else int(valid.ravel()[0])
    of_row, of_column = np.full(len(table), -1), np.full(table.shape[1], -1)
    for at in np.argsort(table[:rows].ravel(), kind="stable"):
        r, c = divmod(int(at), table.shape[1])
        if of_row[r] < 0 and of_column[c] < 0 and (top_k <= 0 or (of_row >= 0).sum() < top_k):
            of_row[r], of_column[c] = c, r
    return of_row, of_column


def pixels(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1, 1), (2, 6, 7), (1, 1, 30), (3, 17, 1), (0, 3, 3), (2, 0, 3)):
        drawn = d.rng.random(shape) < 0.6
        yield Case([drawn if d.kind == "b" else drawn * d.integers(shape, 1, 3)])


def _components(image: np.ndarray) -> np.ndarray:
    out = np.zeros(image.shape, np.int64)
    for at in np.ndindex(*image.shape):
        if image[at] == 0 or out[at]:
            continue
        number, waiting = int(np.ravel_multi_index(at, image.shape)) + 1, [at]
        while waiting:
            n, y, x = waiting.pop()
            if 0 <= y < image.shape[1] and 0 <= x < image.shape[2] and image[n, y, x] == image[at] and not out[n, y, x]:
                out[n, y, x] = number
                waiting += [(n, y - 1, x), (n, y + 1, x), (n, y, x - 1), (n, y, x + 1)]
    return out


def words(d: Draw) -> Iterator[Case]:
    yield Case([np.array([[[b"a", b"a", b""], [b"b", b"a", b"b"]]], object)])


def check_words(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    assert got[0].tolist() == [[[1, 1, 0], [4, 1, 6]]], f"{got[0]}"


def colours(d: Draw) -> Iterator[Case]:
    for shape in ((2, 2, 3), (1, 5, 7, 3), (0, 2, 3)):
        for hue, saturation, value in ((0.0, 1.0, 1.0), (2.5, 0.5, 1.5), (-7.0, 2.0, 0.25)):
            yield Case([d.uniform(shape, 0, 1), np.array(hue), np.array(saturation), np.array(value)])


def _turned(images: np.ndarray, hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    s, c = saturation * np.sin(hue), saturation * np.cos(hue)
    return images @ (np.linalg.inv(yiq) @ (value * np.array([[1, 0, 0], [0, c, -s], [0, s, c]])) @ yiq).T


def depths(d: Draw) -> Iterator[Case]:
    size = {"output_image_shape": [60, 20, 1], "output_data_window": [60, 12], "convergence_dots_size": 0}
    yield Case([np.zeros((2, 3))], {"normalize": False, "dots_per_inch": 6, "number_colors": 2, **size}, label="flat")
    yield Case([d.uniform((4, 5), 0, 9)], {"dots_per_inch": 6, **size, "convergence_dots_size": 4, "number_colors": 300}, label="dots")


def check_stereogram(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    image = got[0]
    if case.label == "flat":  # the eyes, 15 dots apart, see a far plane at every 8th (7.5 rounded)
        assert image.shape == (20, 60, 1) and set(image.ravel().tolist()) == {0, 255}, f"{image.shape}"
        assert np.array_equal(image[:, 8:], image[:, :-8]), "the pattern does not come again"
        return
    assert image.shape == (20, 60, 3), f"{image.shape}"
    for left in (24, 32):  # 30 - 4 - 2 and 30 + 4 - 2, four rows above those that are left over below
        assert not image[15:19, left : left + 4].any(), "no dots"
    assert 90 < image[:14].mean() < 165, f"a mean of {image[:14].mean()}"


_LAID = (((3, 4), (6, None)), ((2, 2, 4), (4, 4, None)), ((2, 6), (None, 7)), ((4,), (None,)), ((2, 3, 5), (None, 3, 5)), ((3, 2, 5), (4, None, 5)))


def _shape_attr(shape: Sequence[Any]) -> list[int]:
    return [-1 if n is None else n for n in shape]


def laid(d: Draw) -> Iterator[Case]:
    for shape, wanted in _LAID:
        yield Case([d.any(shape)], {"shape": _shape_attr(wanted)})


def _periodic_places(shape: Sequence[int], wanted: Sequence[Any]) -> np.ndarray:
    """Where each number of the result comes from, by the formulas of the op's documentation."""
    free = next(i for i, n in enumerate(wanted) if n is None or n < 0)
    sizes = [math.prod(shape) // math.prod(n for j, n in enumerate(wanted) if j != free) if i == free else n for i, n in enumerate(wanted)]
    out = np.zeros(sizes, np.int64)
    for at in np.ndindex(*sizes):
        from_at, digit, within = list(at), 1, 0
        for i, s in enumerate(at):
            if i != free:
                times = -(-sizes[i] // shape[i])
                from_at[i], within, digit = s // times, within + digit * (s % times), digit * times
        from_at[free] = sizes[free] * within + at[free]
        out[at] = sum(p * math.prod(shape[i + 1 :]) for i, p in enumerate(from_at))
    return out


def laid_back(d: Draw) -> Iterator[Case]:
    for shape, wanted in _LAID:
        made = _periodic_places(shape, wanted)
        yield Case([d.uniform(made.shape, 0, 9)], {"original_shape": list(shape), "desired_shape": _shape_attr(wanted)})


def _summed(grad: np.ndarray, original_shape: Sequence[int], desired_shape: Sequence[int]) -> np.ndarray:
    out = np.zeros(math.prod(original_shape), grad.dtype)
    np.add.at(out, _periodic_places(original_shape, desired_shape).ravel(), grad.ravel())
    return out.reshape(original_shape)


_LINES = (((3,), (b"1 1:1.5 3:2 ", b"-7", b"\t2  0:4 0:5\n2:-1e2")), ((2, 2), (b"1 0:1", b"2 1:2", b"3 2:3", b"4 3:4")), ((), (b"0 7:7",)), ((0, 2), ()))


def lines(d: Draw) -> Iterator[Case]:
    for shape, texts in _LINES:
        yield Case([np.array(texts, object).reshape(shape)], {"num_features": 9}, types={"label_dtype": d.dtype, "dtype": BY_NAME["float64"]})


def check_lines(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    text = case.inputs[0]
    labels, wanted = [], []
    for at in np.ndindex(*text.shape):
        label, *features = text[at].split()
        labels.append(float(label))
        wanted += [(*at, int(f.split(b":")[0]), float(f.split(b":")[1])) for f in features]
    assert np.array_equal(got[0].ravel(), labels) and got[0].shape == text.shape, f"labels {got[0]}"
    have = [(*(int(i) for i in row), float(v)) for row, v in zip(got[1], got[2])]
    assert have == wanted, f"features {have}"
    assert got[3].tolist() == [*text.shape, 9], f"shape {got[3]}"


def sentences(d: Draw) -> Iterator[Case]:
    for size, start, limit in ((9, 0, -1), (9, 2, 5), (9, 20, -1), (1, 0, 9), (0, 0, -1)):
        for least, most in ((1, 1), (0, 4), (3, 3)):
            scalars = [np.array(v) for v in (least, most, start, limit)]
            yield Case([np.arange(100, 100 + size), *scalars, np.array(size == 9 and most == 4)], {"seed": 3, "seed2": 5})


def check_pairs(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    tokens, least, most, start, limit, own = case.inputs
    part = [int(t) for t in (tokens[start:] if limit < 0 else tokens[start : start + limit])]
    rest = [(int(a), int(b)) for a, b in zip(*got)]
    for i, token in enumerate(part):  # for one of the windows that may have been drawn
        for reach in range(int(least), int(most) + 1):
            near = [(token, part[j]) for j in range(max(0, i - reach), min(len(part), i + reach + 1)) if j != i or own]
            if rest[: len(near)] == near and (len(rest) == len(near) or rest[len(near)][0] != token):
                rest = rest[len(near) :]
                break
        else:
            raise AssertionError(f"no window of {token} gives {rest[:9]}")
    assert not rest, f"more pairs: {rest[:9]}"


def add_to(table: Table) -> None:
    for name, reduce, of_none, low, high in (("Sum", np.sum, lambda _: 0, 1, 4), ("Prod", np.prod, lambda _: 1, 0.8, 1.25)):
        table.add(f"ReduceSlice{name}", slices(low, high), _reduced(reduce, of_none), tolerance=16)
    extremes = ("float32", "float64", "int32", "int16")
    for name, reduce, end in (("Max", np.max, "min"), ("Min", np.min, "max")):
        for dtype in extremes:
            info = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
            table.add(f"ReduceSlice{name}", slices(-90, 90), _reduced(reduce, lambda _, v=getattr(info, end): v), dtypes=(dtype,))
    table.add("Resampler", places(False), _read, gradient=(0, 1), tolerance=8)
    table.add("ResamplerGrad", places(True), _read_back, tolerance=16)
    table.add("BipartiteMatch", distances, _matched)
    kinds = ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool")
    table.add("ImageConnectedComponents", pixels, _components, dtypes=kinds)
    table.add("ImageConnectedComponents", words, check=check_words, dtypes=("string",))
    table.add("AdjustHsvInYiq", colours, _turned, tolerance=40)
    table.add("SingleImageRandomDotStereograms", depths, check=check_stereogram)
    table.add("PeriodicResample", laid, lambda x, shape: x.ravel()[_periodic_places(x.shape, shape)], gradient=(0,))
    table.add("PeriodicResampleOpGrad", laid_back, _summed, tolerance=4)
    table.add("DecodeLibsvm", lines, check=check_lines, main="label_dtype")
    table.add("SkipGramGenerateCandidates", sentences, check=check_pairs, dtypes=("int32", "int64", "int16"))
