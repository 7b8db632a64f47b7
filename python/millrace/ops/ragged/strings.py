# SPDX-License-Identifier: Apache-2.0
"""tf.strings: functions whose results are ragged: characters, bytes and words of strings."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.ragged import conversions
from millrace.ops.ragged.arrays import expand_dims
from millrace.ops.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged


def _for_each(input: Any, of_vector: Callable[[Any], Any]) -> Any:
    """What of_vector gives for strings in a vector, for strings of any shape: of a scalar the values alone, else with as many more levels."""
    text = convert_to_tensor_or_ragged(input, dtypes.string)
    if isinstance(text, RaggedTensor):
        return _mapped(of_vector(text.flat_values), text.with_flat_values)
    ndims = text.get_shape().ndims
    if ndims is None:
        raise at_user_line(ValueError("Rank of `input` must be statically known."))
    if ndims == 0:
        return _mapped(of_vector(array_ops.reshape(text, [1])), lambda made: made.values)
    if ndims == 1:
        return of_vector(text)
    ragged = conversions.from_tensor(text, None, None, ndims - 1, None, dtypes.int64)
    return _mapped(of_vector(ragged.flat_values), ragged.with_flat_values)


def _mapped(made: Any, function: Callable[[Any], Any]) -> Any:
    return tuple(function(m) for m in made) if isinstance(made, tuple) else function(made)


def _decoded(input: Any, encoding: str, errors: str, replacement_char: int, replace_control_characters: bool, with_offsets: bool) -> Any:
    options: Any = dict(errors=errors, replacement_char=replacement_char, replace_control_characters=replace_control_characters)

    def decode(texts: Any) -> Any:
        if not with_offsets:
            splits, characters = gen_ops.unicode_decode(texts, encoding, **options)
            return RaggedTensor._of(characters, splits)
        splits, characters, starts = gen_ops.unicode_decode_with_offsets(texts, encoding, **options)
        return RaggedTensor._of(characters, splits), RaggedTensor._of(starts, splits)

    return _for_each(input, decode)


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The code points of strings: a row for each string."""
    with name_scope(name, "UnicodeDecode", []):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters, False)


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False,
    name: Optional[str] = None,
) -> Any:
    """The code points of strings, and the byte at which each begins."""
    with name_scope(name, "UnicodeDecodeWithOffsets", []):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters, True)


def unicode_encode(input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: Optional[str] = None) -> Any:
    """Strings of the code points in the last dimension."""
    with name_scope(name, "UnicodeEncode", []):
        points = convert_to_tensor_or_ragged(input)
        ndims = points.shape.ndims
        if ndims is None:
            raise at_user_line(ValueError("Rank of input_tensor must be statically known."))
        if ndims == 0:
            raise at_user_line(ValueError("input_tensor's rank must be at least 1."))
        if isinstance(points, RaggedTensor):
            flat = points.flat_values.get_shape().ndims
            if flat is None or flat > 1:
                points = points.with_flat_values(conversions.from_tensor(points.flat_values, None, None, (flat or 2) - 1, None, points.row_splits.dtype))
            return _encoded(points, output_encoding, errors, replacement_char)
        if ndims == 1:
            size = array_ops.shape(points, out_type=dtypes.int64)[0]
            one = RaggedTensor._of(points, array_ops.stack([array_ops.zeros_like(size), size]))
            return array_ops.reshape(_encoded(one, output_encoding, errors, replacement_char), [])
        if ndims == 2:
            return _encoded(conversions.from_tensor(points, None, None, 1, None, dtypes.int64), output_encoding, errors, replacement_char)
        shape = array_ops.shape(points)
        rows = array_ops.reshape(points, array_ops.stack([-1, shape[-1]]))
        return array_ops.reshape(unicode_encode(rows, output_encoding, errors, replacement_char), shape[:-1])


def _encoded(points: RaggedTensor, encoding: str, errors: str, replacement_char: int) -> Any:
    if isinstance(points.values, RaggedTensor):
        return points.with_values(_encoded(points.values, encoding, errors, replacement_char))
    return gen_ops.unicode_encode(points.values, points.row_splits, encoding, errors=errors, replacement_char=replacement_char)


def unicode_split(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: Optional[str] = None) -> Any:
    """The characters of strings, each a string."""
    with name_scope(name, "UnicodeSplit", []):
        points = _decoded(input, input_encoding, errors, replacement_char, False, False)
        return unicode_encode(expand_dims(points, -1), input_encoding, errors, replacement_char)


def unicode_split_with_offsets(input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: Optional[str] = None) -> Any:
    """The characters of strings, each a string, and the byte at which each begins."""
    with name_scope(name, "UnicodeSplitWithOffsets", []):
        points, offsets = _decoded(input, input_encoding, errors, replacement_char, False, True)
        return unicode_encode(expand_dims(points, -1), input_encoding, errors, replacement_char), offsets


def string_bytes_split(input: Any = None, name: Optional[str] = None, source: Any = None) -> Any:
    """The bytes of strings, each a string."""
    with name_scope(name, "StringsByteSplit", []):

        def split(texts: Any) -> RaggedTensor:
            parts = SparseTensor(*gen_ops.string_split(texts, "", skip_empty=False))
            return RaggedTensor.from_value_rowids(parts.values, parts.indices[:, 0], parts.dense_shape[0], validate=False)

        return _for_each(source if input is None else input, split)


def string_split_v2(input: Any, sep: Any = None, maxsplit: int = -1, name: Optional[str] = None) -> Any:
    """The parts of strings between separators (white space unless given), with another ragged dimension; for one string a vector."""
    return split(input, sep, maxsplit, "RaggedTensor", name=name)


def split(input: Any = None, sep: Any = None, maxsplit: int = -1, result_type: str = "SparseTensor", source: Any = None, name: Optional[str] = None) -> Any:
    """The parts of strings between separators (white space unless given): a sparse matrix, or ragged with result_type="RaggedTensor"."""
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise at_user_line(ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'."))
    with name_scope(name, "StringSplit", []):
        text = source if input is None else input
        separator = convert_to_tensor("" if sep is None else sep, dtypes.string)
        if result_type == "SparseTensor":
            return SparseTensor(*gen_ops.string_split_v2(convert_to_tensor(text, dtypes.string), separator, maxsplit=maxsplit))

        def parts(texts: Any) -> RaggedTensor:
            made = SparseTensor(*gen_ops.string_split_v2(texts, separator, maxsplit=maxsplit))
            return RaggedTensor.from_value_rowids(made.values, made.indices[:, 0], made.dense_shape[0], validate=False)

        return _for_each(text, parts)


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: Optional[int] = None,
    preserve_short_sequences: bool = False,
    name: Optional[str] = None,
) -> Any:
    """Runs of ngram_width (a number or several) words of each row, joined by the separator."""
    with name_scope(name, "StringNGrams", []):
        left, right = ("", "") if pad_values is None else (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else tuple(pad_values)
        widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
        if any(w < 1 for w in widths):
            raise at_user_line(ValueError("All ngram_widths must be greater than 0. Got %s" % (ngram_width,)))
        if padding_width is not None and padding_width < 0:
            raise at_user_line(ValueError("padding_width must be greater than or equal to 0. Got %s" % padding_width))
        if padding_width is not None and pad_values is None:
            raise at_user_line(ValueError("pad_values must be provided if padding_width is set."))
        width = padding_width if padding_width is not None else -1 if pad_values is not None else 0
        words = convert_to_tensor_or_ragged(data, dtypes.string)
        ndims = words.shape.ndims
        if ndims is None or ndims == 0:
            raise at_user_line(ValueError("Data must have a known rank of at least 1. Got %s" % words.shape))
        is_dense = not isinstance(words, RaggedTensor)
        if is_dense:
            words = expand_dims(words, 0) if ndims == 1 else words
            words = conversions.from_tensor(words, None, None, max(ndims, 2) - 1, None, dtypes.int64)
        inner = words
        while isinstance(inner.values, RaggedTensor):
            inner = inner.values
        made, splits = gen_ops.string_n_grams(
            inner.values, math_ops.cast(inner.row_splits, dtypes.int64), separator, widths, left, right, width, preserve_short_sequences
        )
        result = RaggedTensor._of(made, splits)
        for level in reversed(words._levels()[:-1]):
            result = level.with_values(result)
        if not is_dense:
            return result
        return result.values if ndims == 1 else result.to_tensor(default_value="")
