# SPDX-License-Identifier: Apache-2.0
"""tf.signal: Fourier and cosine transforms, short-time spectra, frames, windows, the mel scale."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, List, Optional

import numpy as np

from millrace.framework import not_provided as _not_provided
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.gen_ops import fft, fft2d, fft3d, ifft, ifft2d, ifft3d

__all__ = [
    "dct",
    "fft",
    "fft2d",
    "fft3d",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "ifft",
    "ifft2d",
    "ifft3d",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "irfft3d",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "rfft3d",
    "stft",
]


# ---- Fourier transforms of real numbers: fft_length, if not given, is what the input has; a shorter input is padded ----


def _lengths(x: Tensor, axes: int, inverse: bool) -> Tensor:
    known = x.get_shape()
    dims = None if known.ndims is None else known.as_list()[-axes:]
    if dims is not None and None not in dims:
        last = max(0, 2 * (int(dims[-1] or 0) - 1)) if inverse else dims[-1]
        return constant(np.array([*dims[:-1], last], np.int32))
    sizes = array_ops.shape(x)[-axes:]
    if not inverse:
        return sizes
    return array_ops.concat([sizes[:-1], gen_ops.maximum(0, 2 * (sizes[-1:] - 1))], 0)


def _padded(x: Tensor, axes: int, lengths: Tensor, inverse: bool) -> Tensor:
    wanted, known = constant_value(lengths), x.get_shape()
    if wanted is not None and known.ndims is not None and known.ndims >= axes:
        least = [int(n) for n in np.ravel(wanted)]
        if inverse:
            least[-1] = least[-1] // 2 + 1
        dims = known.as_list()[-axes:]
        if len(least) == axes and all(d is not None and (d == 0 or d >= n) for d, n in zip(dims, least)):
            return x
    rank = gen_ops.rank(x)
    have = array_ops.shape(x)[-axes:]
    if inverse:
        lengths = array_ops.concat([lengths[:-1], lengths[-1:] // 2 + 1], 0)
    lacking = gen_ops.maximum(lengths - have, 0) * math_ops.cast(gen_ops.greater(have, 0), dtypes.int32)
    after = array_ops.concat([array_ops.zeros(array_ops.expand_dims(rank - axes, 0), dtypes.int32), lacking], 0)
    padded = array_ops.pad(x, array_ops.stack([array_ops.zeros_like(after), after], axis=1))
    if known.ndims is not None:
        padded.set_shape(known.as_list()[:-axes] + [None] * axes)
    return padded


_COMPLEX_OF = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}


def _real_transform(op: Callable[..., Tensor], axes: int, inverse: bool, label: str) -> Callable[..., Tensor]:
    def transform(input_tensor: Any, fft_length: Any = None, name: Optional[str] = None) -> Tensor:
        with name_scope(name, label, [input_tensor, fft_length]) as scope:
            x = convert_to_tensor(input_tensor, preferred_dtype=dtypes.complex64 if inverse else dtypes.float32)
            if x.dtype.base_dtype not in _COMPLEX_OF if not inverse else x.dtype.base_dtype not in _COMPLEX_OF.values():
                kinds = "complex64 or complex128" if inverse else "float32 or float64"
                raise at_user_line(ValueError("%s takes %s, got %s" % (label, kinds, x)))
            x.get_shape().with_rank_at_least(axes)
            types = {"Treal": x.dtype.real_dtype} if inverse else {"Tcomplex": _COMPLEX_OF[x.dtype.base_dtype]}
            if fft_length is None:
                return op(x, _lengths(x, axes, inverse), name=scope, **types)
            lengths = convert_to_tensor(fft_length, dtypes.int32)
            lengths.get_shape().assert_has_rank(1)
            if lengths.get_shape().as_list()[0] not in (None, axes):
                raise at_user_line(ValueError("Dimension must be %d but is %d: fft_length has a number an axis" % (axes, lengths.get_shape().as_list()[0])))  # type: ignore[str-format]
            return op(_padded(x, axes, lengths, inverse), lengths, name=scope, **types)

    transform.__name__ = transform.__qualname__ = label
    transform.__doc__ = "The %stransform of real numbers over the last %s." % ("inverse " if inverse else "", ("axis", "two axes", "three axes")[axes - 1])
    return transform


rfft = _real_transform(gen_ops.rfft, 1, False, "rfft")
rfft2d = _real_transform(gen_ops.rfft2d, 2, False, "rfft2d")
rfft3d = _real_transform(gen_ops.rfft3d, 3, False, "rfft3d")
irfft = _real_transform(gen_ops.irfft, 1, True, "irfft")
irfft2d = _real_transform(gen_ops.irfft2d, 2, True, "irfft2d")
irfft3d = _real_transform(gen_ops.irfft3d, 3, True, "irfft3d")


def _shift(x: Any, axes: Any, name: Optional[str], label: str, amount: Callable[[Any], Any]) -> Tensor:
    with name_scope(name, label, [x]) as scope:
        x = convert_to_tensor(x)
        if axes is None:
            if x.get_shape().ndims is None:
                raise at_user_line(ValueError("%s needs a tensor of known rank, or axes" % label))
            axes = list(range(x.get_shape().ndims))
        listed: List[int] = [int(a) for a in np.ravel(axes)]
        sizes = array_ops.stack([array_ops.shape(x)[a] for a in listed])
        return gen_ops.roll(x, amount(sizes), listed, name=scope)


def fftshift(x: Any, axes: Any = None, name: Optional[str] = None) -> Tensor:
    """Moves frequency 0 to the middle."""
    return _shift(x, axes, name, "fftshift", lambda n: n // 2)


def ifftshift(x: Any, axes: Any = None, name: Optional[str] = None) -> Tensor:
    """Undoes fftshift."""
    return _shift(x, axes, name, "ifftshift", lambda n: 0 - n // 2)


# ---- cosine transforms (Makhoul 1980): of n numbers, by a transform of 2n ----


def _check_dct(type: int, n: Any, axis: int, norm: Optional[str], types: Any) -> None:
    if type not in types:
        raise at_user_line(ValueError("Only Types %s DCT are supported, got %s" % (", ".join(str(t) for t in types), type)))
    if axis != -1:
        raise at_user_line(NotImplementedError("axis must be -1. Got: %s" % axis))
    if norm not in (None, "ortho"):
        raise at_user_line(ValueError("Unknown normalization. Expected None or 'ortho', got: %s" % norm))
    if n is not None and n < 1:
        raise at_user_line(ValueError("n should be a positive integer or None"))
    if type == 1 and norm == "ortho":
        raise at_user_line(ValueError("Normalization is not supported for the Type-I DCT."))


def _of_length(x: Tensor, n: Optional[int]) -> Tensor:
    """x cut to n numbers along the last axis, or with zeros after it."""
    if n is None:
        return x
    x = x[..., :n]
    lacking = n - (x.get_shape()[-1].value if x.get_shape()[-1].value is not None else array_ops.shape(x)[-1])
    if isinstance(lacking, int) and lacking == 0:
        return x
    ndims = x.get_shape().ndims
    if ndims is not None:
        return array_ops.pad(x, [[0, 0]] * (ndims - 1) + [[0, lacking]])
    ends = array_ops.concat([array_ops.zeros([gen_ops.rank(x) - 1], dtypes.int32), array_ops.reshape(lacking, [1])], 0)
    return array_ops.pad(x, array_ops.stack([array_ops.zeros_like(ends), ends], axis=1))


def _turn(n: Tensor, dtype: dtypes.DType, shift: float = 0.0) -> Tensor:
    """exp(-i pi (k + shift) / 2n), k < n, with parts of `dtype`."""
    angle = -math.pi * 0.5 * (math_ops.cast(math_ops.range(n), dtype) + shift) / math_ops.cast(n, dtype)
    return gen_ops.complex(gen_ops.cos(angle), gen_ops.sin(angle), Tout=_COMPLEX_OF[dtype])


def _first_apart(n: Tensor, dtype: dtypes.DType, first: Any, others: Any) -> Tensor:
    is_first = math_ops.cast(gen_ops.equal(math_ops.range(n), 0), dtype)
    return is_first * first + (1.0 - is_first) * others


def _as_complex(x: Tensor) -> Tensor:
    return gen_ops.complex(x, array_ops.zeros_like(x), Tout=_COMPLEX_OF[x.dtype])


def dct(input: Any, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """The discrete cosine transform of type 1, 2, 3 or 4 along the last axis, of float32 or float64."""
    _check_dct(type, n, axis, norm, (1, 2, 3, 4))
    with name_scope(name, "dct", [input]):
        x = convert_to_tensor(input)
        if x.dtype.base_dtype not in _COMPLEX_OF:
            x = convert_to_tensor(input, dtypes.float32)
        dtype, x = x.dtype.base_dtype, _of_length(x, n)
        known = x.get_shape().as_list()[-1] if x.get_shape().ndims else None
        if type == 1 and known is not None and known < 2:
            raise at_user_line(ValueError("DCT-I requires the dimension to be greater than one, got %d." % known))
        size = array_ops.shape(x)[-1]
        if type == 1:
            whole = array_ops.concat([x, gen_ops.reverse_v2(x[..., 1:-1], [-1])], -1)
            return math_ops.real(rfft(whole))
        root = gen_ops.rsqrt(math_ops.cast(size, dtype))
        if type == 2:
            spectrum = rfft(x, array_ops.stack([2 * size]))[..., :size]
            made = 2.0 * math_ops.real(spectrum * _turn(size, dtype))
            return made if norm is None else made * _first_apart(size, dtype, 0.5 * root, math.sqrt(0.5) * root)
        if type == 3:
            first, others = (1.0, 2.0) if norm is None else (root, math.sqrt(2.0) * root)
            x = x * _first_apart(size, dtype, first, others)
        turned = _as_complex(x) * _turn(size, dtype)
        spectrum = fft(array_ops.concat([turned, array_ops.zeros_like(turned)], -1))[..., :size]
        if type == 3:
            return math_ops.real(spectrum)
        return math_ops.real(spectrum * _turn(size, dtype, 0.5)) * (2.0 if norm is None else math.sqrt(2.0) * root)


def idct(input: Any, type: int = 2, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """Undoes dct of the type, up to its scale where norm is None."""
    _check_dct(type, n, axis, norm, (1, 2, 3, 4))
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm, name)


# ---- windows ----


def _raised_cosine(label: str, a: float, b: float) -> Callable[..., Tensor]:
    def window(window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: Optional[str] = None) -> Tensor:
        dtype = dtypes.as_dtype(dtype)
        if not dtype.is_floating:
            raise at_user_line(ValueError("dtype must be a floating point type. Found %s" % dtype))
        with name_scope(name, label, [window_length, periodic]):
            length = convert_to_tensor(window_length, dtypes.int32)
            length.get_shape().assert_has_rank(0)
            even = 1 - length % 2
            whole = length + math_ops.cast(convert_to_tensor(periodic, dtypes.bool_), dtypes.int32) * even - 1
            known = constant_value(length)
            if known is not None and int(known) == 1:
                return array_ops.ones([1], dtype)
            turns = math_ops.cast(math_ops.range(length), dtype) / math_ops.cast(gen_ops.maximum(whole, 1), dtype)
            return a - b * gen_ops.cos(2.0 * math.pi * turns)

    window.__name__ = window.__qualname__ = label
    window.__doc__ = "%s's window, %g - %g cos(2 pi k / n)." % (label.split("_")[0].capitalize(), a, b)
    return window


hann_window = _raised_cosine("hann_window", 0.5, 0.5)
hamming_window = _raised_cosine("hamming_window", 0.54, 0.46)
_PERIODIC_HANN = functools.partial(hann_window, periodic=True)


# ---- frames ----


def frame(signal: Any, frame_length: Any, frame_step: Any, pad_end: bool = False, pad_value: Any = 0, axis: int = -1, name: Optional[str] = None) -> Tensor:
    """Frames of the signal along an axis, each frame_step after the one before: [..., frames, frame_length, ...]."""
    with name_scope(name, "frame", [signal, frame_length, frame_step, pad_value]):
        signal = convert_to_tensor(signal)
        for what, scalar in (("frame_length", frame_length), ("frame_step", frame_step), ("pad_value", pad_value)):
            if convert_to_tensor(scalar).get_shape().ndims not in (0, None):
                raise at_user_line(ValueError("%s must be a scalar, got %s" % (what, scalar)))
        rank = signal.get_shape().ndims
        if rank is None:  # as a tensor of three axes, the middle one that which is framed
            shape, where = array_ops.shape(signal), axis % array_ops.rank(signal)
            flat = array_ops.reshape(signal, [gen_ops.prod(shape[:where], [0]), shape[where], gen_ops.prod(shape[where + 1 :], [0])])
            framed = frame(flat, frame_length, frame_step, pad_end, pad_value, 1)
            return array_ops.reshape(framed, array_ops.concat([shape[:where], array_ops.shape(framed)[1:3], shape[where + 1 :]], 0))
        at = axis % rank if -rank <= axis < rank else rank
        if at == rank:
            raise at_user_line(ValueError("axis %d is out of range for a signal of rank %d" % (axis, rank)))
        length, step = convert_to_tensor(frame_length, dtypes.int32), convert_to_tensor(frame_step, dtypes.int32)
        for t in (length, step):
            t.get_shape().assert_has_rank(0)
        known, fixed = signal.get_shape().as_list()[at], (constant_value(length), constant_value(step))
        size = array_ops.shape(signal)[at]
        count: Any
        if known is not None and fixed[0] is not None and fixed[1] is not None:
            count = -(-known // int(fixed[1])) if pad_end else max(0, 1 + (known - int(fixed[0])) // int(fixed[1]))
        else:
            count = (size + step - 1) // step if pad_end else gen_ops.maximum(0, 1 + (size - length) // step)
        if pad_end:
            lacking = gen_ops.maximum(0, length + step * (count - 1) - size)
            ends = [[0, 0]] * at + [[0, lacking]] + [[0, 0]] * (rank - at - 1)
            signal = array_ops.pad(signal, array_ops.stack([array_ops.stack(pair) for pair in ends]), constant_values=pad_value)
        places = array_ops.expand_dims(math_ops.range(count) * step, 1) + array_ops.expand_dims(math_ops.range(length), 0)
        same = array_ops.reshape(signal, array_ops.shape(signal))  # the gradient of gather is sparse, that of reshape is not
        return array_ops.gather(same, places, axis=at)


def overlap_and_add(signal: Any, frame_step: Any, name: Optional[str] = None) -> Tensor:
    """The sum of frames, each frame_step after the one before: [..., (frames - 1) * frame_step + frame_length]."""
    with name_scope(name, "overlap_and_add", [signal, frame_step]):
        signal = convert_to_tensor(signal)
        signal.get_shape().with_rank_at_least(2)
        step = convert_to_tensor(frame_step)
        if not step.dtype.is_integer:
            raise at_user_line(ValueError("frame_step must be an integer. Got %s" % step.dtype))
        step = math_ops.cast(step, dtypes.int32)
        step.get_shape().assert_has_rank(0)
        dims = array_ops.shape(signal)
        outer, count, length = dims[:-2], dims[-2], dims[-1]
        total = length + step * (count - 1)
        places = array_ops.expand_dims(math_ops.range(count) * step, 1) + array_ops.expand_dims(math_ops.range(length), 0)
        flat = array_ops.transpose(array_ops.reshape(signal, [-1, count * length]))
        made = array_ops.transpose(gen_ops.unsorted_segment_sum(flat, array_ops.reshape(places, [-1]), total))
        made = array_ops.reshape(made, array_ops.concat([outer, array_ops.stack([total])], 0))
        known, fixed = signal.get_shape(), constant_value(step)
        if known.ndims is not None:
            frames, size = known.as_list()[-2:]
            whole = size + int(fixed) * (frames - 1) if None not in (frames, size) and fixed is not None else None
            made.set_shape(known.as_list()[:-2] + [whole])
        return made


# ---- short-time spectra ----


def _next_power_of_two(n: Tensor) -> Tensor:
    known = constant_value(n)
    if known is not None:
        return constant(1 << max(0, int(known) - 1).bit_length(), dtypes.int32)
    exponent = gen_ops.ceil(gen_ops.log(math_ops.cast(n, dtypes.float32)) / math.log(2.0) - 1e-5)
    return gen_ops.left_shift(array_ops.ones([], dtypes.int32), math_ops.cast(exponent, dtypes.int32))


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Optional[Callable[..., Any]] = _PERIODIC_HANN,
    pad_end: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """The transforms of windowed frames: [..., frames, fft_length / 2 + 1]."""
    with name_scope(name, "stft", [signals, frame_length, frame_step]):
        signals = convert_to_tensor(signals)
        signals.get_shape().with_rank_at_least(1)
        length, step = convert_to_tensor(frame_length, dtypes.int32), convert_to_tensor(frame_step, dtypes.int32)
        for t in (length, step):
            t.get_shape().assert_has_rank(0)
        size = _next_power_of_two(length) if fft_length is None else convert_to_tensor(fft_length, dtypes.int32)
        framed = frame(signals, length, step, pad_end=pad_end)
        if window_fn is not None:
            framed = framed * window_fn(length, dtype=framed.dtype)
        return rfft(framed, array_ops.stack([size]))


def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Callable[..., Any] = _PERIODIC_HANN, name: Optional[str] = None) -> Callable[..., Any]:
    """The window with which inverse_stft undoes an stft of forward_window_fn."""

    def window(frame_length: Any, dtype: Any) -> Tensor:
        with name_scope(name, "inverse_stft_window_fn", [frame_step]):
            length, step = convert_to_tensor(frame_length, dtypes.int32), convert_to_tensor(frame_step, dtypes.int32)
            forward = forward_window_fn(length, dtype=dtype)
            overlaps = (length + step - 1) // step
            square = array_ops.pad(gen_ops.square(forward), [[0, overlaps * step - length]])
            weight = math_ops.reduce_sum(array_ops.reshape(square, array_ops.stack([overlaps, step])), 0)
            return forward / gen_ops.tile(weight, array_ops.stack([overlaps]))[:length]

    return window


def inverse_stft(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None, window_fn: Optional[Callable[..., Any]] = _PERIODIC_HANN, name: Optional[str] = None
) -> Tensor:
    """The signal whose frames have these transforms."""
    with name_scope(name, "inverse_stft", [stfts]):
        stfts = convert_to_tensor(stfts)
        stfts.get_shape().with_rank_at_least(2)
        length, step = convert_to_tensor(frame_length, dtypes.int32), convert_to_tensor(frame_step, dtypes.int32)
        for t in (length, step):
            t.get_shape().assert_has_rank(0)
        size = _next_power_of_two(length) if fft_length is None else convert_to_tensor(fft_length, dtypes.int32)
        frames = irfft(stfts, array_ops.stack([size]))
        lacking = gen_ops.maximum(0, length - size)
        front = array_ops.zeros([gen_ops.rank(frames) - 1], dtypes.int32)
        ends = array_ops.concat([front, array_ops.stack([lacking])], 0)
        frames = array_ops.pad(frames, array_ops.stack([array_ops.zeros_like(ends), ends], axis=1))[..., :length]
        known = stfts.get_shape()
        if known.ndims is not None:
            frames.set_shape(known.as_list()[:-1] + [None if constant_value(length) is None else int(constant_value(length))])
        if window_fn is not None:
            frames = frames * window_fn(length, dtype=frames.dtype)
        return overlap_and_add(frames, step)


# ---- the mel scale ----


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: Optional[str] = None,
) -> Tensor:
    """[num_spectrogram_bins, num_mel_bins]: triangular bands that are even on the mel scale, as weights of frequencies."""
    dtype = dtypes.as_dtype(dtype)
    if num_mel_bins <= 0:
        raise at_user_line(ValueError("num_mel_bins must be positive. Got: %s" % num_mel_bins))
    if lower_edge_hertz < 0.0:
        raise at_user_line(ValueError("lower_edge_hertz must be non-negative. Got: %s" % lower_edge_hertz))
    if lower_edge_hertz >= upper_edge_hertz:
        raise at_user_line(ValueError("lower_edge_hertz %.1f >= upper_edge_hertz %.1f" % (lower_edge_hertz, upper_edge_hertz)))
    if not dtype.is_floating:
        raise at_user_line(ValueError("dtype must be a floating point type. Got: %s" % dtype))
    rate = constant_value(sample_rate) if isinstance(sample_rate, Tensor) else sample_rate
    if rate is None:
        raise at_user_line(ValueError("sample_rate must be a number, or a tensor that is known when the graph is built"))
    rate = float(rate)
    if rate <= 0.0:
        raise at_user_line(ValueError("sample_rate must be positive. Got: %s" % rate))
    if upper_edge_hertz > rate / 2:
        raise at_user_line(
            ValueError(
                "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got %s for sample_rate: %s" % (upper_edge_hertz, rate)
            )
        )
    edges = np.linspace(_mel(lower_edge_hertz), _mel(upper_edge_hertz), num_mel_bins + 2)
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    count = constant_value(num_spectrogram_bins) if isinstance(num_spectrogram_bins, Tensor) else num_spectrogram_bins
    if count is None:
        with name_scope(name, "linear_to_mel_weight_matrix"):
            hertz = gen_ops.lin_space(np.float64(0), np.float64(rate / 2), num_spectrogram_bins)
            mels = array_ops.expand_dims(gen_ops.log1p(hertz[1:] / 700.0) * 1127.0, 1)
            inside = gen_ops.maximum(np.float64(0), gen_ops.minimum((mels - low) / (middle - low), (high - mels) / (high - middle)))
            return math_ops.cast(array_ops.pad(inside, [[1, 0], [0, 0]]), dtype)
    if count <= 0:
        raise at_user_line(ValueError("num_spectrogram_bins must be positive. Got: %s" % count))
    bins = _mel(np.linspace(0.0, rate / 2, int(count))[1:])[:, None]
    weights = np.maximum(0.0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)))
    whole = np.concatenate([np.zeros((1, num_mel_bins)), weights])  # frequency 0 is in no band
    return constant(whole, dtype, name=name or "linear_to_mel_weight_matrix")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: Optional[str] = None) -> Tensor:
    """Mel-frequency cepstral coefficients, scaled as HTK does."""
    with name_scope(name, "mfccs_from_log_mel_spectrograms", [log_mel_spectrograms]):
        spectra = convert_to_tensor(log_mel_spectrograms)
        if spectra.dtype.base_dtype not in _COMPLEX_OF:
            spectra = convert_to_tensor(log_mel_spectrograms, dtypes.float32)
        known = spectra.get_shape()
        bins = known.as_list()[-1] if known.ndims else None
        if bins == 0:
            raise at_user_line(ValueError("num_mel_bins must be positive. Got: 0"))
        count = math_ops.cast(array_ops.shape(spectra)[-1] if bins is None else bins, spectra.dtype)
        return dct(spectra) * gen_ops.rsqrt(2.0 * count)


__getattr__ = _not_provided.getter("signal")
