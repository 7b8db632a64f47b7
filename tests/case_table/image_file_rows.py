# SPDX-License-Identifier: Apache-2.0
"""Image files: written here by the formats' rules, and read here where an op writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dtypes import DType
from table import Case, Draw, Table

_SIZES = ((1, 1), (3, 5), (8, 8), (17, 33))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(pixels: np.ndarray) -> bytes:
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8 * pixels.itemsize, (0, 4, 2, 6)[pixels.shape[2] - 1], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(row.dtype.newbyteorder(">")).tobytes() for row in pixels)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _guess(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    near = left + up - corner
    return min((left, up, corner), key=lambda v: abs(near - v))


def read_png(file: bytes) -> np.ndarray:
    assert file[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, data, header = 8, b"", b""
    while at < len(file):
        (size,) = struct.unpack(">I", file[at : at + 4])
        kind, body = file[at + 4 : at + 8], file[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", file[at + 8 + size : at + 12 + size])[0], "another sum"
        data, header = data + body if kind == b"IDAT" else data, body if kind == b"IHDR" else header
        at += 12 + size
    width, height, bits, colour = struct.unpack(">IIBB", header[:10])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    step, flat = channels * bits // 8, zlib.decompress(data)
    lines = np.zeros((height + 1, step * (width + 1)), np.uint8)  # a line above and a pixel to the left of zeros
    for y in range(height):
        kind, *coded = flat[y * (step * width + 1) : (y + 1) * (step * width + 1)]
        for x, byte in enumerate(coded, step):
            near = (int(lines[y + 1, x - step]), int(lines[y, x]), int(lines[y, x - step]))
            lines[y + 1, x] = (byte + _guess(kind, *near)) & 255
    words = np.ascontiguousarray(lines[1:, step:]).view(">u2" if bits == 16 else np.uint8)
    return words.reshape(height, width, channels).astype(np.uint16 if bits == 16 else np.uint8)


def bmp(pixels: np.ndarray) -> bytes:
    height, width, channels = pixels.shape
    order = [2, 1, 0, 3][:channels] if channels > 1 else [0]
    stride = (channels * width + 3) // 4 * 4
    rows = b"".join(row[:, order].tobytes().ljust(stride, b"\0") for row in pixels[::-1])
    fields = struct.pack("<IIIIiiHH", 54 + len(rows), 0, 54, 40, width, height, 1, 8 * channels)
    return b"BM" + fields + bytes(24) + rows


def gif(frames: np.ndarray) -> bytes:
    """Colours by number, [frames, height, width], of a table in which number k is (k, 255 - k, k / 2). LZW without
    repetitions: codes of nine bits, and a new start before they would grow."""
    _, height, width = frames.shape
    table = bytes(v for k in range(256) for v in (k, 255 - k, k // 2))
    out = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + table
    for frame in frames:
        codes = [c for i, v in enumerate(frame.ravel().tolist()) for c in ([256] if i % 200 == 0 else []) + [v]] + [257]
        bits = sum(code << (9 * i) for i, code in enumerate(codes))
        data = bits.to_bytes((9 * len(codes) + 7) // 8, "little")
        out += b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08"
        out += b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255)) + b"\0"
    return out + b";"


def jpeg(levels: np.ndarray, height: int, width: int) -> bytes:
    """Grey blocks of 8 x 8 pixels, each of one level: quantisation by 1, and only the mean of a block is coded."""

    def segment(mark: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 255, mark, len(data) + 2) + data

    # Means differ by numbers of up to 11 bits: sixteen codes of four or five bits say how many bits; one of one bit ends.
    means = segment(0xC4, b"\0" + bytes([0, 0, 0, 12] + [0] * 12) + bytes(range(12)))
    ends = segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\0")
    frame = segment(0xC0, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0")
    bits, last = "", 0
    for level in levels.ravel().tolist():
        step, last = 8 * (level - 128) - last, 8 * (level - 128)
        size = abs(step).bit_length()
        bits += f"{size:04b}" + (f"{step if step > 0 else step + (1 << size) - 1:0{size}b}" if size else "") + "0"
    bits += "1" * (-len(bits) % 8)
    coded = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")
    tables = segment(0xDB, b"\0" + b"\x01" * 64) + frame + means + ends
    return b"\xff\xd8" + tables + segment(0xDA, b"\x01\x01\0\0\x3f\0") + coded + b"\xff\xd9"


def _file(data: bytes) -> np.ndarray:
    return np.array(data, object)


def _blocks(d: Draw, height: int, width: int) -> tuple[np.ndarray, bytes]:
    levels = d.rng.integers(0, 256, ((height + 7) // 8, (width + 7) // 8))
    image = levels.repeat(8, 0).repeat(8, 1)[:height, :width, None].astype(np.uint8)
    return image, jpeg(levels, height, width)


class Known:
    """Cases whose results are known when they are made."""

    def __init__(self, make: Callable[[Draw], Iterator[tuple[Case, Any]]]) -> None:
        self.make = make
        self.wanted: dict[int, Any] = {}
        self.kept: list[Case] = []

    def cases(self, d: Draw) -> Iterator[Case]:
        for case, wanted in self.make(d):
            self.kept.append(case)
            self.wanted[id(case)] = np.asarray(wanted)
            yield case

    def check(self, case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
        wanted = self.wanted[id(case)]
        assert got[0].shape == wanted.shape, f"shape {got[0].shape}, wanted {wanted.shape}"
        assert np.array_equal(got[0], wanted), "other pixels"


def jpegs(d: Draw) -> Iterator[tuple[Case, Any]]:
    for size in _SIZES:
        image, file = _blocks(d, *size)
        yield Case([_file(file)]), image
        yield Case([_file(file)], {"channels": 3, "dct_method": "INTEGER_ACCURATE"}), image.repeat(3, 2)
        for ratio in (2, 4, 8):
            yield Case([_file(file)], {"ratio": ratio}), image[::ratio, ::ratio]
    yield Case([_file(png(image))]), image
    yield Case([_file(gif(image[None, :, :, 0]))]), _coloured(image[..., 0])


def windows(d: Draw) -> Iterator[tuple[Case, Any]]:
    image, file = _blocks(d, 30, 50)
    for top, left, height, width in ((0, 0, 30, 50), (3, 7, 20, 30), (29, 49, 1, 1), (8, 16, 8, 16)):
        wanted = image[top : top + height, left : left + width]
        yield Case([_file(file), np.array([top, left, height, width])]), wanted
        yield Case([_file(file), np.array([top, left, height, width])], {"channels": 3}), wanted.repeat(3, 2)


def jpeg_shapes(d: Draw) -> Iterator[tuple[Case, Any]]:
    for size in _SIZES:
        yield Case([_file(_blocks(d, *size)[1])]), [*size, 1]


def pngs(d: Draw) -> Iterator[tuple[Case, Any]]:
    for height, width in _SIZES:
        for channels in (1, 2, 3, 4):
            image = d.rng.integers(0, 256, (height, width, channels)).astype(np.uint8)
            wide = d.rng.integers(0, 65536, (height, width, channels)).astype(np.uint16)
            is_wide = d.dtype.name == "uint16"
            yield Case([_file(png(image))]), image.astype(np.uint16) * 257 if is_wide else image
            yield Case([_file(png(wide))]), wide if is_wide else wide // 256


def bmps(d: Draw) -> Iterator[tuple[Case, Any]]:
    for height, width in _SIZES:
        for channels in (1, 3, 4):
            image = d.rng.integers(0, 256, (height, width, channels)).astype(np.uint8)
            yield Case([_file(bmp(image))]), image
            if channels == 4:
                yield Case([_file(bmp(image))], {"channels": 3}), image[..., :3]


def _coloured(numbers: np.ndarray) -> np.ndarray:
    return np.stack([numbers, 255 - numbers, numbers // 2], -1)


def gifs(d: Draw) -> Iterator[tuple[Case, Any]]:
    for height, width in _SIZES:
        for count in (1, 3):
            numbers = d.rng.integers(0, 256, (count, height, width)).astype(np.uint8)
            yield Case([_file(gif(numbers))]), _coloured(numbers)


def images(d: Draw) -> Iterator[tuple[Case, Any]]:
    """Files of each kind, for DecodeImage."""
    kind = d.dtype.name

    def of(pixels: np.ndarray, in_png: bool) -> np.ndarray:
        if kind == "float32":
            pixels = pixels.astype(np.uint16) * 257 if in_png and pixels.dtype == np.uint8 else pixels
            return pixels.astype(np.float32) * np.float32(1 / (65535 if in_png else 255))
        if kind == "uint16":
            return pixels if pixels.dtype == np.uint16 else pixels.astype(np.uint16) * (257 if in_png else 256)
        return (pixels // 256).astype(np.uint8) if pixels.dtype == np.uint16 else pixels

    for height, width in _SIZES:
        for dtype in (np.uint8, np.uint16):
            image = d.rng.integers(0, np.iinfo(dtype).max + 1, (height, width, 3)).astype(dtype)
            yield Case([_file(png(image))]), of(image, True)
        image = d.rng.integers(0, 256, (height, width, 4)).astype(np.uint8)
        yield Case([_file(bmp(image))], {"channels": 3}), of(image[..., :3], False)
        numbers = d.rng.integers(0, 256, (3, height, width)).astype(np.uint8)
        yield Case([_file(gif(numbers))]), of(_coloured(numbers), False)
        yield Case([_file(gif(numbers))], {"expand_animations": False}), of(_coloured(numbers)[0], False)


def to_png(d: Draw) -> Iterator[Case]:
    for shape in ((1, 1, 1), (7, 5, 2), (4, 9, 3), (3, 3, 4), (2, 5, 6, 3), (0, 5, 6, 3)):
        image = d.rng.integers(0, 65536 if d.dtype.name == "uint16" else 256, shape)
        yield Case([image], {"compression": len(shape) - 1})


def check_png(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    image = case.inputs[0]
    assert got[0].shape == image.shape[:-3], f"shape {got[0].shape}"
    for file, want in zip(got[0].ravel(), image.reshape((-1, *image.shape[-3:]))):
        assert np.array_equal(read_png(bytes(file)), want), "the file has other pixels"


def to_jpeg(quality: bool) -> Callable[[Draw], Iterator[Case]]:
    def cases(d: Draw) -> Iterator[Case]:
        for shape in ((1, 1, 1), (9, 17, 1), (9, 17, 3)):
            image = d.rng.integers(0, 256, shape)
            for attrs in ({}, {"quality": 5, "progressive": True}, {"density_unit": "cm", "x_density": 7}):
                yield Case([image, np.array(70)] if quality else [image], {} if quality else attrs)

    return cases


def check_jpeg(case: Case, got: Sequence[np.ndarray], types: Sequence[DType]) -> None:
    file, (height, width, channels) = bytes(got[0][()]), case.inputs[0].shape
    assert file[:4] == b"\xff\xd8\xff\xe0" and file[-2:] == b"\xff\xd9", "no JPEG"
    unit, across = (2, 7) if case.attrs.get("density_unit") else (1, 300)
    assert file[6:16] == b"JFIF\0\x01\x01" + struct.pack(">BH", unit, across), "another density"
    mark = b"\xff\xc2" if case.attrs.get("progressive") else b"\xff\xc0"
    frame = struct.unpack(">BHHB", file[file.index(mark) + 4 : file.index(mark) + 10])
    assert frame == (8, height, width, channels), f"a frame {frame}"


def add_to(table: Table) -> None:
    for op, make, more in (
        ("DecodeJpeg", jpegs, {}),
        ("DecodeAndCropJpeg", windows, {}),
        ("ExtractJpegShape", jpeg_shapes, {}),
        ("DecodePng", pngs, {"main": "dtype"}),
        ("DecodeBmp", bmps, {}),
        ("DecodeGif", gifs, {}),
        ("DecodeImage", images, {"main": "dtype"}),
    ):
        known = Known(make)
        table.add(op, known.cases, check=known.check, **more)
    table.add("EncodePng", to_png, check=check_png)
    table.add("EncodeJpeg", to_jpeg(False), check=check_jpeg)
    table.add("EncodeJpegVariableQuality", to_jpeg(True), check=check_jpeg)
