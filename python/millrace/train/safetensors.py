# SPDX-License-Identifier: Apache-2.0
"""Files of named arrays in the safetensors format (https://huggingface.co/docs/safetensors): a length of 8 bytes, a JSON object that says where each
array lies, the arrays' bytes in row-major order, little-endian."""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from millrace.framework import dtypes

_MAX_HEADER = 100 << 20  # the format's own limit
_TYPES = {
    "F64": "f8",
    "F32": "f4",
    "F16": "f2",
    "I64": "i8",
    "I32": "i4",
    "I16": "i2",
    "I8": "i1",
    "U64": "u8",
    "U32": "u4",
    "U16": "u2",
    "U8": "u1",
    "BOOL": "?",
}
_NAMES = {np.dtype(t): name for name, t in _TYPES.items()}


def _type_of(name: str) -> Any:
    if name == "BF16":
        return np.dtype(dtypes.bfloat16.as_numpy_dtype)
    return np.dtype("<" + _TYPES[name]) if name in _TYPES else None


def _name_of(dtype: Any) -> Optional[str]:
    if dtype == np.dtype(dtypes.bfloat16.as_numpy_dtype):
        return "BF16"
    return _NAMES.get(dtype.newbyteorder("=") if dtype.kind in "fiu" else dtype)


class SafetensorsFile:
    """A file, of which the arrays are read one by one. ValueError when it is damaged or holds a type that NumPy has not (float8)."""

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)
        length = os.path.getsize(self.path)
        with open(self.path, "rb") as file:
            head = file.read(8)
            size = struct.unpack("<Q", head)[0] if len(head) == 8 else length
            if size > min(_MAX_HEADER, length - 8):
                raise ValueError("%s is no safetensors file: its header would have %d bytes, the file has %d" % (self.path, size, length))
            text = file.read(size)
        try:
            header = json.loads(text.decode())
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            raise ValueError("%s: its header is no JSON: %s" % (self.path, error)) from None
        if not isinstance(header, dict):
            raise ValueError("%s: its header is no JSON object" % self.path)
        self.metadata: Dict[str, str] = header.pop("__metadata__", {})
        self._begin = 8 + size
        self._entries = header
        for name, entry in header.items():
            self._check(name, entry, length - self._begin)

    def _check(self, name: str, entry: Any, length: int) -> None:
        def is_count(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62

        shape: Any
        offsets: Any
        shape, offsets = (entry.get("shape"), entry.get("data_offsets")) if isinstance(entry, dict) else (None, None)
        well_formed = (
            isinstance(shape, list)
            and isinstance(offsets, list)
            and len(offsets) == 2
            and all(map(is_count, shape + offsets))
            and isinstance(entry.get("dtype"), str)
        )
        if not well_formed:
            raise ValueError("%s: '%s' is not described by dtype, shape and data_offsets" % (self.path, name))
        dtype = _type_of(entry["dtype"])
        if dtype is None:
            raise ValueError("%s: '%s' has type %s; readable are BF16, %s" % (self.path, name, entry["dtype"], ", ".join(_TYPES)))
        count = 1
        for dim in shape:
            count *= dim
        if offsets[0] > offsets[1] or offsets[1] > length or offsets[1] - offsets[0] != count * dtype.itemsize:
            raise ValueError(
                "%s: '%s' (%s %s) lies at bytes %d to %d of %d: it needs %d"
                % (self.path, name, entry["dtype"], shape, offsets[0], offsets[1], length, count * dtype.itemsize)
            )

    def names(self) -> List[str]:
        """In the file's order."""
        return list(self._entries)

    def describe(self, name: str) -> Tuple[Any, List[int]]:
        """The NumPy type and the shape of an array, which is not read."""
        return _type_of(self._entries[name]["dtype"]), list(self._entries[name]["shape"])

    def read(self, name: str) -> np.ndarray:
        """One array."""
        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        with open(self.path, "rb") as file:
            file.seek(self._begin + begin)
            data = file.read(end - begin)
        if len(data) != end - begin:
            raise ValueError("%s: '%s' ends early" % (self.path, name))
        return np.frombuffer(bytearray(data), dtype=_type_of(entry["dtype"])).reshape(entry["shape"])


def load(path: Any) -> Dict[str, np.ndarray]:
    """All arrays of a file, by name."""
    file = SafetensorsFile(path)
    return {name: file.read(name) for name in file.names()}


def save(
    arrays: Mapping[str, Any], path: Any, metadata: Optional[Mapping[str, str]] = None, told: Optional[Callable[[int], None]] = None, described: Any = None
) -> None:
    """Writes arrays; the file is there whole or not at all.

    arrays: by name, each read in its turn, so that a mapping may make them on demand. metadata: texts by name. told: is called with the bytes
    written so far. described: a function from a name to (NumPy type, shape), without which each array is read twice. TypeError for strings and complex
    numbers, which the format has not.
    """
    header: Dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name in arrays:
        dtype, shape = described(name) if described is not None else (np.asarray(arrays[name]).dtype, np.shape(arrays[name]))
        kind = _name_of(np.dtype(dtype))
        if kind is None:
            raise TypeError("'%s' has type %s, which safetensors has not" % (name, dtype))
        end = at + math.prod(shape) * np.dtype(dtype).itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = os.fspath(path)
    temporary = "%s.tmp%d" % (path, os.getpid())
    try:
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in arrays:
                value = np.asarray(arrays[name], order="C")
                if list(value.shape) != header[name]["shape"] or _name_of(value.dtype) != header[name]["dtype"]:
                    raise ValueError("'%s' is %s %s, was said to be %s %s" % (name, value.dtype, value.shape, header[name]["dtype"], header[name]["shape"]))
                file.write(value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes())
                if told:
                    told(file.tell())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
