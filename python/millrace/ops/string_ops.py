# SPDX-License-Identifier: Apache-2.0
"""Functions of strings, and files read and written whole."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dispatch, dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, name_scope
from millrace.ops import gen_ops, math_ops
from millrace.ops.dialects import either, given

__all__ = [
    "as_string",
    "string_join",
    "string_split",
    "string_to_number",
    "substr",
    "reduce_join",
    "string_length",
    "decode_raw",
    "encode_base64",
    "decode_base64",
    "read_file",
    "write_file",
    "regex_replace",
    "string_strip",
]


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False, width: int = -1, fill: str = "", name: Optional[str] = None
) -> Tensor:
    """Numbers as strings."""
    return gen_ops.as_string(input, precision=precision, scientific=scientific, shortest=shortest, width=width, fill=fill, name=name)


def string_join(inputs: Any, separator: str = "", name: Optional[str] = None) -> Tensor:
    """Strings joined element by element."""
    return gen_ops.string_join([convert_to_tensor(i, dtypes.string) for i in inputs], separator=separator, name=name)


def string_split(
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None, result_type: str = "SparseTensor", name: Optional[str] = None
) -> Any:
    """The parts of strings between delimiters, as a sparse matrix, or ragged with result_type="RaggedTensor"."""
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise at_user_line(ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'."))
    sep = either("sep", sep, "delimiter", delimiter, " ")
    with name_scope(name, "StringSplit", [source]):
        made = SparseTensor(*gen_ops.string_split(convert_to_tensor(source, dtypes.string), convert_to_tensor(sep, dtypes.string), skip_empty=skip_empty))
        if result_type == "SparseTensor":
            return made
        from millrace.ops.ragged.tensor import RaggedTensor

        return RaggedTensor.from_value_rowids(made.values, made.indices[:, 0], made.dense_shape[0], validate=False)


def string_to_number(string_tensor: Any = None, out_type: Any = dtypes.float32, name: Optional[str] = None, input: Any = None) -> Tensor:
    """The numbers that strings spell."""
    return gen_ops.string_to_number(given("string_to_number", string_tensor=string_tensor, input=input), out_type=out_type, name=name)


def substr(input: Any, pos: Any, len: Any, name: Optional[str] = None, unit: str = "BYTE") -> Tensor:
    """Parts of strings."""
    return gen_ops.substr(input, convert_to_tensor(pos), convert_to_tensor(len), unit=unit, name=name)


def reduce_join(
    inputs: Any, axis: Any = None, keep_dims: bool = False, separator: str = "", name: Optional[str] = None, reduction_indices: Any = None, keepdims: Any = None
) -> Tensor:
    """Strings joined along dimensions; along all of them unless told which."""
    inputs = convert_to_tensor(inputs, dtypes.string)
    axis = either("axis", axis, "reduction_indices", reduction_indices)
    if axis is None:
        ndims = inputs.get_shape().ndims
        axis = list(range(ndims))[::-1] if ndims is not None else math_ops.range(gen_ops.rank(inputs) - 1, -1, -1)
    return gen_ops.reduce_join(
        inputs,
        convert_to_tensor(axis, dtypes.int32),
        keep_dims=bool(either("keepdims", keepdims, "keep_dims", keep_dims or None, False)),
        separator=separator,
        name=name,
    )


def string_length(input: Any, name: Optional[str] = None, unit: str = "BYTE") -> Tensor:
    """The lengths of strings."""
    return gen_ops.string_length(input, unit=unit, name=name)


def decode_raw(
    input_bytes: Any = None, out_type: Any = None, little_endian: bool = True, name: Optional[str] = None, bytes: Any = None, fixed_length: Any = None
) -> Tensor:
    """The numbers whose bytes strings hold; fixed_length: as many bytes of each, with zeros behind what is too short."""
    if out_type is None:
        raise at_user_line(TypeError("decode_raw() missing the argument 'out_type'"))
    if fixed_length is not None:
        return gen_ops.decode_padded_raw(
            given("decode_raw", input_bytes=input_bytes, bytes=bytes), fixed_length, out_type=out_type, little_endian=little_endian, name=name
        )
    return gen_ops.decode_raw(given("decode_raw", input_bytes=input_bytes, bytes=bytes), out_type=out_type, little_endian=little_endian, name=name)


def encode_base64(input: Any, pad: bool = False, name: Optional[str] = None) -> Tensor:
    """Base64 for the web."""
    return gen_ops.encode_base64(input, pad=pad, name=name)


def decode_base64(input: Any, name: Optional[str] = None) -> Tensor:
    """What was encoded as base64."""
    return gen_ops.decode_base64(input, name=name)


def read_file(filename: Any, name: Optional[str] = None) -> Tensor:
    """The contents of a file."""
    return gen_ops.read_file(filename, name=name)


def write_file(filename: Any, contents: Any, name: Optional[str] = None) -> Operation:
    """Writes a file."""
    return gen_ops.write_file(filename, contents, name=name)


def regex_replace(
    input: Any = None, pattern: Any = None, rewrite: Any = None, replace_global: bool = True, name: Optional[str] = None, source: Any = None
) -> Tensor:
    """Strings with the matches of a pattern replaced; \\0 to \\9 in the rewrite are the match and its groups."""
    text = convert_to_tensor(given("regex_replace", input=input, source=source), dtypes.string)
    if pattern is None or rewrite is None:
        raise at_user_line(TypeError("regex_replace() needs a pattern and a rewrite"))
    if isinstance(pattern, (str, bytes)) and isinstance(rewrite, (str, bytes)):
        return gen_ops.static_regex_replace(text, pattern, rewrite, replace_global=replace_global, name=name)  # type: ignore[arg-type]
    return gen_ops.regex_replace(text, pattern, rewrite, replace_global=replace_global, name=name)


def string_lower(input: Any, encoding: str = "", name: Optional[str] = None) -> Tensor:
    """Strings in small letters."""
    return gen_ops.string_lower(convert_to_tensor(input, dtypes.string), encoding=encoding, name=name)


def string_upper(input: Any, encoding: str = "", name: Optional[str] = None) -> Tensor:
    """Strings in capitals."""
    return gen_ops.string_upper(convert_to_tensor(input, dtypes.string), encoding=encoding, name=name)


def string_strip(input: Any, name: Optional[str] = None) -> Tensor:
    """Strings without the white space at their ends."""
    return gen_ops.string_strip(convert_to_tensor(input, dtypes.string), name=name)


def string_format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: Optional[str] = None) -> Tensor:
    """A template with its placeholders replaced by tensors as text."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    return gen_ops.string_format([convert_to_tensor(i) for i in given], template=template, placeholder=placeholder, summarize=summarize, name=name)


def string_split_v2(source: Any, sep: Any = None, maxsplit: int = -1) -> SparseTensor:
    """The parts of strings between separators that are more than one character, as a sparse matrix."""
    return SparseTensor(
        *gen_ops.string_split_v2(convert_to_tensor(source, dtypes.string), convert_to_tensor("" if sep is None else sep, dtypes.string), maxsplit=maxsplit)
    )


def unicode_script(input: Any, name: Optional[str] = None) -> Tensor:
    """The numbers of the scripts that characters are of."""
    return gen_ops.unicode_script(convert_to_tensor(input, dtypes.int32), name=name)


def regex_full_match(input: Any, pattern: Any, name: Optional[str] = None) -> Tensor:
    """Whether whole strings match a pattern."""
    text = convert_to_tensor(input, dtypes.string)
    if isinstance(pattern, (str, bytes)):
        return gen_ops.static_regex_full_match(text, pattern, name=name)  # type: ignore[arg-type]
    return gen_ops.regex_full_match(text, pattern, name=name)


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """Strings in another encoding."""
    return gen_ops.unicode_transcode(
        convert_to_tensor(input, dtypes.string),
        input_encoding,
        output_encoding,
        errors=errors,
        replacement_char=replacement_char,
        replace_control_characters=replace_control_characters,
        name=name,
    )


def unsorted_segment_join(inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: Optional[str] = None) -> Tensor:
    """The strings of each segment, joined."""
    return gen_ops.unsorted_segment_join(convert_to_tensor(inputs, dtypes.string), segment_ids, num_segments, separator=separator, name=name)


dispatch.install(globals(), ["string_lower", "string_upper", "regex_full_match", "reduce_join", "unicode_script"])
