# SPDX-License-Identifier: Apache-2.0
"""Neural networks: convolution, pooling, softmax, losses, normalisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from convolution import Convolution, Pooling
from dtypes import rounded
from table import SHAPES, Case, Draw, Table


def _first(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, 1)


def _last(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)


def _is_first(data_format: str) -> bool:
    return data_format.startswith("NC")


def _spatial(values: Sequence[int], data_format: str) -> list[int]:
    return list(values[2:] if _is_first(data_format) else values[1:-1])


def _laid(values: Sequence[int], data_format: str) -> list[int]:
    return [1, 1, *values] if _is_first(data_format) else [1, *values, 1]


# Input without layout [batch, spatial..., channels], kernel, output channels, strides, dilations, padding.
_CONV2D: tuple[tuple[Any, ...], ...] = (
    ((1, 1, 1, 1), (1, 1), 1, (1, 1), (1, 1), "VALID"),
    ((2, 5, 4, 3), (1, 1), 2, (1, 1), (1, 1), "SAME"),
    ((2, 5, 6, 1), (3, 3), 2, (1, 1), (1, 1), "SAME"),
    ((1, 7, 6, 2), (3, 2), 3, (2, 2), (1, 1), "SAME"),
    ((1, 7, 8, 2), (3, 3), 2, (1, 1), (2, 2), "VALID"),
    ((2, 4, 4, 17), (2, 2), 16, (2, 2), (1, 1), "VALID"),
    ((1, 3, 9, 2), (2, 3), 2, (2, 2), (1, 1), "EXPLICIT"),
    ((1, 9, 7, 3), (3, 5), 4, (1, 1), (1, 1), "VALID"),
    ((0, 4, 4, 2), (2, 2), 3, (1, 1), (1, 1), "SAME"),
    ((1, 2, 33, 1), (1, 31), 1, (1, 1), (1, 1), "SAME"),
)
_CONV3D: tuple[tuple[Any, ...], ...] = (
    ((1, 1, 1, 1, 1), (1, 1, 1), 1, (1, 1, 1), (1, 1, 1), "VALID"),
    ((1, 3, 4, 5, 2), (2, 2, 3), 3, (1, 1, 1), (1, 1, 1), "SAME"),
    ((2, 3, 5, 4, 1), (2, 3, 2), 2, (2, 2, 2), (1, 1, 1), "SAME"),
    ((1, 4, 3, 3, 3), (2, 1, 3), 2, (1, 1, 1), (1, 1, 1), "VALID"),
    ((0, 2, 2, 2, 1), (1, 1, 1), 2, (1, 1, 1), (1, 1, 1), "VALID"),
)
_EXPLICIT = (1, 0, 2, 1)


def _conv_attrs(row: tuple[Any, ...], data_format: str) -> dict[str, Any]:
    _, _, _, strides, dilations, kind = row
    attrs = {"strides": _laid(strides, data_format), "dilations": _laid(dilations, data_format), "padding": kind, "data_format": data_format}
    if kind == "EXPLICIT":
        nothing = [0, 0]
        attrs["explicit_paddings"] = [*nothing, *nothing, *_EXPLICIT] if _is_first(data_format) else [*nothing, *_EXPLICIT, *nothing]
    return attrs


def _setup(
    shape: Sequence[int],
    kernel: Sequence[int],
    depthwise: bool,
    strides: list[int],
    dilations: list[int],
    padding: str,
    data_format: str,
    explicit_paddings: Sequence[int] = (),
) -> Convolution:
    taken = list(explicit_paddings)[4:] if _is_first(data_format) else list(explicit_paddings)[2:-2]
    return Convolution(shape, kernel, _spatial(strides, data_format), _spatial(dilations, data_format), padding, taken, depthwise)


def _filter_shape(row: tuple[Any, ...], depthwise: bool) -> tuple[int, ...]:
    return (*row[1], row[0][-1], row[2])


def convolutions(rows: Sequence[tuple[Any, ...]], formats: Sequence[str], depthwise: bool = False) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for row in rows:
            for layout in formats:
                if depthwise and (row[5] == "EXPLICIT" or row[0][-1] * row[2] > 64):
                    continue
                x = d.uniform(row[0])
                yield Case([_first(x) if _is_first(layout) else x, d.uniform(_filter_shape(row, depthwise))], _conv_attrs(row, layout), label=layout)

    return cases


def _convolve(depthwise: bool) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, w: np.ndarray, data_format: str, **attrs: Any) -> np.ndarray:
        x = _last(x) if _is_first(data_format) else x
        y = _setup(x.shape, w.shape[:-2], depthwise, data_format=data_format, **attrs).forward(x, w)
        return _first(y) if _is_first(data_format) else y

    return oracle


def to_inputs(rows: Sequence[tuple[Any, ...]], formats: Sequence[str], depthwise: bool = False) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for case in convolutions(rows, formats, depthwise)(d):
            y = _convolve(depthwise)(*case.inputs, **case.attrs)
            yield Case([np.array(case.inputs[0].shape), case.inputs[1], d.uniform(y.shape)], case.attrs, label=case.label)

    return cases


def _to_input(depthwise: bool) -> Callable[..., np.ndarray]:
    def oracle(sizes: np.ndarray, w: np.ndarray, g: np.ndarray, data_format: str, **attrs: Any) -> np.ndarray:
        first = _is_first(data_format)
        shape = sizes.tolist()
        shape = [shape[0], *shape[2:], shape[1]] if first else shape
        conv = _setup(shape, w.shape[:-2], depthwise, data_format=data_format, **attrs)
        x = conv.to_input(w, _last(g) if first else g)
        return _first(x) if first else x

    return oracle


def to_filters(rows: Sequence[tuple[Any, ...]], formats: Sequence[str], depthwise: bool = False) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for case in convolutions(rows, formats, depthwise)(d):
            y = _convolve(depthwise)(*case.inputs, **case.attrs)
            yield Case([case.inputs[0], np.array(case.inputs[1].shape), d.uniform(y.shape)], case.attrs, label=case.label)

    return cases


def _to_filter(depthwise: bool) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, sizes: np.ndarray, g: np.ndarray, data_format: str, **attrs: Any) -> np.ndarray:
        if _is_first(data_format):
            x, g = _last(x), _last(g)
        conv = _setup(x.shape, sizes.tolist()[:-2], depthwise, data_format=data_format, **attrs)
        return conv.to_filter(x, g, sizes.tolist())

    return oracle


_POOLED: tuple[tuple[Any, ...], ...] = (
    ((1, 1, 1, 1), (1, 1), (1, 1), "VALID"),
    ((2, 4, 6, 3), (2, 2), (2, 2), "VALID"),
    ((1, 5, 7, 2), (3, 3), (2, 2), "SAME"),
    ((1, 5, 5, 17), (3, 2), (1, 1), "SAME"),
    ((1, 9, 4, 1), (2, 3), (3, 1), "VALID"),
    ((0, 4, 4, 2), (2, 2), (2, 2), "SAME"),
    ((1, 33, 3, 2), (31, 1), (1, 2), "VALID"),
    ((1, 5, 4, 41), (4, 4), (1, 1), "SAME"),
    ((2, 3, 9, 5), (2, 3), (1, 1), "VALID"),
    ((1, 5, 6, 67), (5, 5), (1, 1), "SAME"),
)


def pools(formats: Sequence[str] = ("NHWC", "NCHW"), apart: bool = True, as_input: bool = False) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for shape, kernel, strides, kind in _POOLED:
            for layout in formats:
                x = d.apart(shape, -90, 90) if apart else d.uniform(shape)
                x = _first(x) if _is_first(layout) else x
                sizes = {"ksize": _laid(kernel, layout), "strides": _laid(strides, layout)}
                if as_input:
                    inputs = [x, *(np.array(v) for v in sizes.values())]
                    yield Case(inputs, {"padding": kind, "data_format": layout}, label=layout)
                else:
                    attrs = {**sizes, "padding": kind}
                    yield Case([x], {**attrs, "data_format": layout} if len(formats) > 1 else attrs, label=layout)

    return cases


def filled(cases: Any) -> Any:
    """Without empty inputs, in which nothing has a place."""
    return lambda d: (case for case in cases(d) if np.size(case.inputs[0]))


def _pooling(shape: Sequence[int], ksize: Any, strides: Any, padding: str, data_format: str) -> Pooling:
    return Pooling(shape, _spatial(list(ksize), data_format), _spatial(list(strides), data_format), padding)


def _lowest(x: np.ndarray) -> float:
    return -np.inf if x.dtype.kind == "f" else 0 if x.dtype.kind == "u" else np.iinfo(x.dtype).min


def _max_pool(x: np.ndarray, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC") -> np.ndarray:
    x = _last(x) if _is_first(data_format) else x
    y = _pooling(x.shape, ksize, strides, padding, data_format).stacked(x, _lowest(x)).max(0)
    return _first(y) if _is_first(data_format) else y


def _average_weights(pool: Pooling) -> np.ndarray:
    return pool.stacked(np.ones(pool.shape), 0)


def _average_pool(x: np.ndarray, ksize: Any, strides: Any, padding: str, data_format: str) -> np.ndarray:
    x = _last(x) if _is_first(data_format) else x
    pool = _pooling(x.shape, ksize, strides, padding, data_format)
    y = pool.stacked(x, 0).sum(0) / _average_weights(pool).sum(0)
    return _first(y) if _is_first(data_format) else y


def average_gradients(d: Draw) -> Iterator[Case]:
    for case in pools()(d):
        y = _average_pool(*case.inputs, **case.attrs)
        yield Case([np.array(case.inputs[0].shape), d.uniform(y.shape)], case.attrs, label=case.label)


def _average_gradient(sizes: np.ndarray, g: np.ndarray, ksize: Any, strides: Any, padding: str, data_format: str) -> np.ndarray:
    first = _is_first(data_format)
    shape = sizes.tolist()
    shape, g = ([shape[0], *shape[2:], shape[1]], _last(g)) if first else (shape, g)
    pool = _pooling(shape, ksize, strides, padding, data_format)
    weights = _average_weights(pool)
    x = pool.spread(weights * (g / weights.sum(0)))
    return _first(x) if first else x


def _max_taps(x: np.ndarray, pool: Pooling) -> np.ndarray:
    """One where a window has its (first) largest element."""
    taps = pool.stacked(x, _lowest(x))
    return (np.arange(len(taps)).reshape(-1, 1, 1, 1, 1) == taps.argmax(0)).astype(np.float64 if x.dtype.kind == "f" else x.dtype)


def max_gradients(formats: Sequence[str], as_input: bool = False, twice: bool = False) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for case in pools(formats, as_input=as_input)(d):
            x = case.inputs[0]
            if as_input:
                y = _max_pool(x, case.inputs[1], case.inputs[2], **case.attrs)
            else:
                y = _max_pool(x, **case.attrs)
            g = d.uniform(x.shape if twice else y.shape, 1, 3)
            yield Case([x, y, g, *case.inputs[1:]], case.attrs, label=case.label)

    return cases


def _max_gradient(x: np.ndarray, y: np.ndarray, g: np.ndarray, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC") -> np.ndarray:
    if _is_first(data_format):
        return _first(_max_gradient(_last(x), y, _last(g), _spatial_as_last(ksize), _spatial_as_last(strides), padding))
    pool = _pooling(x.shape, ksize, strides, padding, "NHWC")
    return pool.spread(_max_taps(x, pool) * g)


def _spatial_as_last(values: Any) -> list[int]:
    v = [int(n) for n in values]
    return [v[0], v[2], v[3], v[1]]


def _max_gradient_gradient(x: np.ndarray, y: np.ndarray, g: np.ndarray, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC") -> np.ndarray:
    if _is_first(data_format):
        return _first(_max_gradient_gradient(_last(x), y, _last(g), _spatial_as_last(ksize), _spatial_as_last(strides), padding))
    pool = _pooling(x.shape, ksize, strides, padding, "NHWC")
    return (_max_taps(x, pool) * pool.stacked(g, 0)).sum(0)


def _with_positions(x: np.ndarray, ksize: Any, strides: Any, padding: str) -> tuple[np.ndarray, np.ndarray]:
    pool = _pooling(x.shape, ksize, strides, padding, "NHWC")
    positions = np.broadcast_to(np.arange(int(np.prod(x.shape[1:]))).reshape(1, *x.shape[1:]), x.shape)
    at = pool.stacked(x, _lowest(x)).argmax(0)
    y = _max_pool(x, ksize, strides, padding)
    return y, np.take_along_axis(pool.stacked(positions, 0), at[None], 0)[0]


def position_gradients(d: Draw) -> Iterator[Case]:
    for case in pools(("NHWC",))(d):
        x = rounded(case.inputs[0], d.dtype)  # which may make equals of numbers, and so another place of the largest
        y, positions = _with_positions(x, **case.attrs)
        yield Case([x, d.uniform(y.shape, 1, 3), positions], case.attrs, gradient=False)


def _position_gradient(x: np.ndarray, g: np.ndarray, positions: np.ndarray, **attrs: Any) -> np.ndarray:
    return _max_gradient(x, x, g, **attrs)


def softmaxes(d: Draw) -> Iterator[Case]:
    for shape in ((1,), (5,), (1, 1), (3, 15), (2, 16), (2, 17), (33, 31), (2, 1025), (0, 3), (2, 3, 4)):
        yield Case([d.uniform(shape, -4, 4)])
        if d.kind == "f":
            yield Case([d.uniform(shape, -4, 4) + 60], label="large", gradient=False)


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _log_softmax(x: np.ndarray) -> np.ndarray:
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def entropies(d: Draw) -> Iterator[Case]:
    for rows, classes in ((1, 1), (3, 15), (17, 16), (2, 33), (5, 1025), (0, 4)):
        labels = _softmax(d.rng.normal(size=(rows, classes)))
        yield Case([d.uniform((rows, classes), -4, 4), labels])


def _entropy(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return -(labels * _log_softmax(x)).sum(-1), _softmax(x) - labels


def sparse_entropies(d: Draw) -> Iterator[Case]:
    for rows, classes in ((1, 1), (3, 15), (17, 16), (2, 33), (5, 1025), (0, 4)):
        yield Case([d.uniform((rows, classes), -4, 4), d.integers((rows,), 0, classes)])


def _sparse_entropy(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _entropy(x, np.eye(x.shape[1])[labels])


def biases(d: Draw) -> Iterator[Case]:
    for shape in ((3, 1), (2, 17), (4, 16), (0, 5), (33, 31), (2, 3, 4, 5), (1, 1025)):
        x = d.uniform(shape, -9, 9)
        yield Case([x, d.uniform(shape[-1:], -9, 9)], {"data_format": "NHWC"})
        if len(shape) > 2:
            yield Case([_first(x), d.uniform(shape[-1:], -9, 9)], {"data_format": "NCHW"})


def plain_biases(d: Draw) -> Iterator[Case]:
    for case in biases(d):
        if case.attrs["data_format"] == "NHWC":
            yield Case(case.inputs)


def _bias(x: np.ndarray, bias: np.ndarray, data_format: str = "NHWC") -> np.ndarray:
    return x + (bias.reshape(-1, *[1] * (x.ndim - 2)) if _is_first(data_format) else bias)


def bias_gradients(d: Draw) -> Iterator[Case]:
    for case in biases(d):
        yield Case([d.uniform(case.inputs[0].shape, 1, 3)], case.attrs)


def _bias_gradient(g: np.ndarray, data_format: str) -> np.ndarray:
    return (_last(g) if _is_first(data_format) else g).reshape(-1, g.shape[1 if _is_first(data_format) else -1]).sum(0)


def shapes(d: Draw) -> Iterator[Case]:
    for shape in SHAPES:
        yield Case([d.uniform(shape)])


def _normal_attrs(training: bool, layout: str) -> dict[str, Any]:
    return {"epsilon": 0.25, "is_training": training, "data_format": layout}


def normalisations(d: Draw) -> Iterator[Case]:
    for shape in ((2, 3, 3, 1), (3, 2, 2, 17), (1, 5, 3, 4)):
        for layout in ("NHWC", "NCHW"):
            x = d.uniform(shape)
            x = _first(x) if layout == "NCHW" else x
            channels = shape[-1:]
            scale, offset = d.uniform(channels, 0.5, 2), d.uniform(channels)
            yield Case([x, scale, offset, np.zeros(0), np.zeros(0)], _normal_attrs(True, layout), label=f"training {layout}")
            yield Case([x, scale, offset, d.uniform(channels), d.uniform(channels, 0.5, 2)], _normal_attrs(False, layout), label=f"inference {layout}")


def _normalise(
    x: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, variance: np.ndarray, epsilon: float, is_training: bool, data_format: str
) -> tuple[np.ndarray, ...]:
    first = _is_first(data_format)
    x = _last(x) if first else x
    count = x.size // x.shape[-1]
    if is_training:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    y = (x - mean) / np.sqrt(variance + epsilon) * scale + offset
    shown = variance * count / (count - 1) if is_training else variance
    return (_first(y) if first else y), mean, shown


def normalisation_gradients(extra: int) -> Any:
    def cases(d: Draw) -> Iterator[Case]:
        for case in normalisations(d):
            x, scale = case.inputs[0], case.inputs[1]
            y = _last(x) if _is_first(case.attrs["data_format"]) else x
            if case.attrs["is_training"]:
                mean, second = y.mean((0, 1, 2)), y.var((0, 1, 2))
            else:
                mean, second = case.inputs[3], case.inputs[4]
            more = [np.zeros(0)] * extra
            yield Case([d.uniform(x.shape), x, scale, mean, second, *more], case.attrs, gradient=False, label=case.label)

    return cases


def _normalisation_gradient(
    g: np.ndarray, x: np.ndarray, scale: np.ndarray, mean: np.ndarray, variance: np.ndarray, *_: np.ndarray, epsilon: float, is_training: bool, data_format: str
) -> tuple[np.ndarray, ...]:
    first = _is_first(data_format)
    x, g = (_last(x), _last(g)) if first else (x, g)
    root = 1 / np.sqrt(variance + epsilon)
    normal = (x - mean) * root
    if is_training:
        dx = scale * root * (g - g.mean((0, 1, 2)) - normal * (g * normal).mean((0, 1, 2)))
    else:
        dx = scale * root * g
    return (_first(dx) if first else dx), (g * normal).sum((0, 1, 2)), g.sum((0, 1, 2))


def global_normalisations(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1, 1, 1), (2, 3, 2, 17), (0, 2, 2, 3)):
        for scaled in (False, True):
            c = shape[-1:]
            yield Case(
                [d.uniform(shape), d.uniform(c), d.uniform(c, 0.5, 2), d.uniform(c), d.uniform(c, 0.5, 2)],
                {"variance_epsilon": 0.25, "scale_after_normalization": scaled},
            )


def _global_normal(
    t: np.ndarray, m: np.ndarray, v: np.ndarray, beta: np.ndarray, gamma: np.ndarray, variance_epsilon: float, scale_after_normalization: bool
) -> np.ndarray:
    return (t - m) / np.sqrt(v + variance_epsilon) * (gamma if scale_after_normalization else 1) + beta


def _global_normal_gradient(
    t: np.ndarray, m: np.ndarray, v: np.ndarray, gamma: np.ndarray, g: np.ndarray, variance_epsilon: float, scale_after_normalization: bool
) -> tuple[np.ndarray, ...]:
    root = 1 / np.sqrt(v + variance_epsilon)
    scale = gamma if scale_after_normalization else np.ones_like(gamma)
    total, along = g.sum((0, 1, 2)), (g * (t - m)).sum((0, 1, 2))
    dgamma = along * root if scale_after_normalization else np.zeros_like(gamma)
    return g * scale * root, -total * scale * root, along * scale * -0.5 * root**3, total, dgamma


def global_normalisation_gradients(d: Draw) -> Iterator[Case]:
    for case in global_normalisations(d):
        t, m, v, _, gamma = case.inputs
        yield Case([t, m, v, gamma, d.uniform(t.shape)], case.attrs, gradient=False)


def local_responses(d: Draw) -> Iterator[Case]:
    for shape, radius in (((1, 1, 1, 1), 5), ((2, 2, 3, 7), 2), ((1, 2, 2, 33), 5), ((0, 2, 2, 3), 1), ((1, 3, 1, 16), 0)):
        yield Case([d.uniform(shape)], {"depth_radius": radius, "bias": 1.5, "alpha": 0.25, "beta": 0.75})


def _band(channels: int, radius: int) -> np.ndarray:
    at = np.arange(channels)
    return (np.abs(at[:, None] - at) <= radius).astype(np.float64)


def _local_response(x: np.ndarray, depth_radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    return x / (bias + alpha * (x * x) @ _band(x.shape[-1], depth_radius)) ** beta


def local_response_gradients(d: Draw) -> Iterator[Case]:
    for case in local_responses(d):
        x = case.inputs[0]
        yield Case([d.uniform(x.shape), x, _local_response(x, **case.attrs)], case.attrs, gradient=False)


def _local_response_gradient(g: np.ndarray, x: np.ndarray, y: np.ndarray, depth_radius: int, bias: float, alpha: float, beta: float) -> np.ndarray:
    band = _band(x.shape[-1], depth_radius)
    base = bias + alpha * (x * x) @ band
    return g * base**-beta - 2 * alpha * beta * x * ((g * x * base ** (-beta - 1)) @ band)


def patches(d: Draw) -> Iterator[Case]:
    for shape, kernel, strides, rates, kind in (
        ((1, 1, 1, 1), (1, 1), (1, 1), (1, 1), "VALID"),
        ((2, 5, 6, 2), (3, 2), (2, 1), (1, 1), "SAME"),
        ((1, 7, 7, 3), (2, 2), (1, 2), (2, 3), "VALID"),
        ((0, 4, 4, 1), (2, 2), (1, 1), (1, 1), "SAME"),
    ):
        yield Case([d.any(shape)], {"ksizes": [1, *kernel, 1], "strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": kind})


def _patches(x: np.ndarray, ksizes: list[int], strides: list[int], rates: list[int], padding: str) -> np.ndarray:
    conv = Convolution(x.shape, ksizes[1:3], strides[1:3], rates[1:3], padding)
    taps = int(np.prod(ksizes))
    eye = np.eye(taps * x.shape[-1], dtype=x.dtype if x.dtype.kind != "f" else np.float64)
    return conv.forward(x, eye.reshape(*ksizes[1:3], x.shape[-1], -1))


def add_to(table: Table) -> None:
    wide = dict(tolerance=8, magnitude=True)
    for op, rows, formats, deep in (
        ("Conv2D", _CONV2D, ("NHWC", "NCHW"), False),
        ("Conv3D", _CONV3D, ("NDHWC", "NCDHW"), False),
        ("DepthwiseConv2dNative", _CONV2D, ("NHWC", "NCHW"), True),
    ):
        suffix = "V2" if op == "Conv3D" else ""
        table.add(op, convolutions(rows, formats, deep), _convolve(deep), gradient=(0, 1), **wide)
        table.add(f"{op}BackpropInput{suffix}", to_inputs(rows, formats, deep), _to_input(deep), gradient=(1, 2), main="T", **wide)
        table.add(f"{op}BackpropFilter{suffix}", to_filters(rows, formats, deep), _to_filter(deep), gradient=(0, 2), **wide)
    table.add("MaxPool", pools(), _max_pool, gradient=(0,))
    table.add("MaxPoolV2", pools(as_input=True), _max_pool, gradient=(0,))
    table.add("AvgPool", pools(), _average_pool, gradient=(0,), **wide)
    table.add("AvgPoolGrad", average_gradients, _average_gradient, gradient=(1,), **wide)
    both = ("NHWC", "NCHW")
    table.add("MaxPoolGrad", max_gradients(both), _max_gradient, gradient=(2,), tolerance=8)
    table.add("MaxPoolGradV2", max_gradients(both, as_input=True), _max_gradient, gradient=(2,), tolerance=8)
    table.add("MaxPoolGradGrad", max_gradients(both, twice=True), _max_gradient_gradient, gradient=(2,))
    table.add("MaxPoolGradGradV2", max_gradients(both, as_input=True, twice=True), _max_gradient_gradient)
    table.add("MaxPoolWithArgmax", filled(pools(("NHWC",))), _with_positions, gradient=(0,), main="T")
    table.add("MaxPoolGradWithArgmax", position_gradients, _position_gradient, main="T", tolerance=8)
    table.add("Softmax", softmaxes, _softmax, gradient=(0,), tolerance=4)
    table.add("LogSoftmax", softmaxes, _log_softmax, gradient=(0,), tolerance=4)
    table.add("SoftmaxCrossEntropyWithLogits", entropies, _entropy, gradient=(0,), gradient_of=(0,), tolerance=8)
    table.add("SparseSoftmaxCrossEntropyWithLogits", sparse_entropies, _sparse_entropy, gradient=(0,), gradient_of=(0,), tolerance=8)
    table.add("BiasAdd", biases, _bias, gradient=(0, 1))
    table.add("BiasAddV1", plain_biases, _bias, gradient=(0, 1))
    table.add("BiasAddGrad", bias_gradients, _bias_gradient, gradient=(0,), tolerance=8)
    table.add("L2Loss", shapes, lambda x: np.sum(x * x) / 2, gradient=(0,), tolerance=8)
    table.add("FusedBatchNorm", normalisations, _normalise, gradient=(0, 1, 2), gradient_of=(0,), tolerance=8)
    table.add("FusedBatchNormV2", normalisations, _normalise, gradient=(0, 1, 2), gradient_of=(0,), tolerance=8)
    table.add("FusedBatchNormV3", normalisations, _normalise, gradient=(0, 1, 2), gradient_of=(0,), tolerance=8)
    for op, extra in (("FusedBatchNormGrad", 0), ("FusedBatchNormGradV2", 0), ("FusedBatchNormGradV3", 1)):
        table.add(op, normalisation_gradients(extra), _normalisation_gradient, tolerance=32)
    table.add("BatchNormWithGlobalNormalization", global_normalisations, _global_normal, gradient=(0, 1, 2, 3), tolerance=8)
    table.add("BatchNormWithGlobalNormalizationGrad", global_normalisation_gradients, _global_normal_gradient, tolerance=64)
    table.add("LRN", local_responses, _local_response, gradient=(0,), tolerance=8)
    table.add("LRNGrad", local_response_gradients, _local_response_gradient, tolerance=32)
    table.add("ExtractImagePatches", patches, _patches, gradient=(0,))
