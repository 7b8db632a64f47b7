# SPDX-License-Identifier: Apache-2.0
"""Images as arrays, turned, moved and mirrored at random. Files of images need the package Pillow."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise at_user_line(ImportError("Files of images need the package Pillow: install it.")) from None
    return Image


def array_to_img(x: Any, data_format: Any = None, scale: bool = True) -> Any:
    """An image of an array."""
    x = np.asarray(x, K.floatx())
    if x.ndim != 3:
        raise at_user_line(ValueError("Expected image array to have rank 3 (single image). Got array with shape: %s" % (x.shape,)))
    if layout(data_format) == "channels_first":
        x = x.transpose(1, 2, 0)
    if scale:
        x = x + max(-np.min(x), 0)
        x = x * (255 / np.max(x)) if np.max(x) else x
    if x.shape[2] not in (1, 3):
        raise at_user_line(ValueError("Unsupported channel number: %d" % x.shape[2]))
    return _pillow().fromarray(x.astype("uint8") if x.shape[2] == 3 else x[:, :, 0].astype("uint8"), "RGB" if x.shape[2] == 3 else "L")


def img_to_array(img: Any, data_format: Any = None) -> Any:
    """The array of an image."""
    x = np.asarray(img, K.floatx())
    if x.ndim not in (2, 3):
        raise at_user_line(ValueError("Unsupported image shape: %s" % (x.shape,)))
    x = x[:, :, None] if x.ndim == 2 else x
    return x.transpose(2, 0, 1) if layout(data_format) == "channels_first" else x


def load_img(path: str, grayscale: bool = False, target_size: Any = None) -> Any:
    """The image of a file."""
    img = _pillow().open(path).convert("L" if grayscale else "RGB")
    return img.resize((target_size[1], target_size[0])) if target_size and img.size != (target_size[1], target_size[0]) else img


# ---- turned and moved ----


def apply_transform(x: Any, transform_matrix: Any, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0) -> Any:
    """Each channel by an affine matrix of places."""
    from scipy import ndimage  # type: ignore[import-untyped]

    channels = [
        ndimage.affine_transform(c, transform_matrix[:2, :2], transform_matrix[:2, 2], order=0, mode=fill_mode, cval=cval)
        for c in np.moveaxis(x, channel_axis, 0)
    ]
    return np.moveaxis(np.stack(channels), 0, channel_axis)


def transform_matrix_offset_center(matrix: Any, x: float, y: float) -> Any:
    """The matrix about the middle of an image."""
    there, back = np.eye(3), np.eye(3)
    there[:2, 2], back[:2, 2] = (x / 2.0 + 0.5, y / 2.0 + 0.5), (-x / 2.0 - 0.5, -y / 2.0 - 0.5)
    return there @ matrix @ back


def _moved(x: Any, matrix: Any, row: int, column: int, channel: int, fill_mode: str, cval: float) -> Any:
    return apply_transform(x, transform_matrix_offset_center(matrix, x.shape[row], x.shape[column]), channel, fill_mode, cval)


def _turn(theta: float) -> Any:
    return np.array([[np.cos(theta), -np.sin(theta), 0], [np.sin(theta), np.cos(theta), 0], [0, 0, 1]])


def random_rotation(x: Any, rg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0) -> Any:
    """Turned by up to rg degrees."""
    return _moved(x, _turn(np.pi / 180 * np.random.uniform(-rg, rg)), row_axis, col_axis, channel_axis, fill_mode, cval)


def random_shift(
    x: Any, wrg: float, hrg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0
) -> Any:
    """Moved by up to fractions of width and height."""
    matrix = np.eye(3)
    matrix[0, 2], matrix[1, 2] = np.random.uniform(-hrg, hrg) * x.shape[row_axis], np.random.uniform(-wrg, wrg) * x.shape[col_axis]
    return apply_transform(x, matrix, channel_axis, fill_mode, cval)


def random_shear(x: Any, intensity: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0) -> Any:
    """Sheared by up to an angle."""
    shear = np.random.uniform(-intensity, intensity)
    return _moved(x, np.array([[1, -np.sin(shear), 0], [0, np.cos(shear), 0], [0, 0, 1]]), row_axis, col_axis, channel_axis, fill_mode, cval)


def random_zoom(x: Any, zoom_range: Any, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest", cval: float = 0.0) -> Any:
    """Scaled by factors of a range."""
    if len(zoom_range) != 2:
        raise at_user_line(ValueError("zoom_range should be a tuple or list of two floats. Received arg: %s" % (zoom_range,)))
    zx, zy = (1, 1) if zoom_range[0] == 1 and zoom_range[1] == 1 else np.random.uniform(zoom_range[0], zoom_range[1], 2)
    return _moved(x, np.diag([zx, zy, 1.0]), row_axis, col_axis, channel_axis, fill_mode, cval)


def random_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> Any:
    """Each channel brighter or darker."""
    low, high = np.min(x), np.max(x)
    return np.moveaxis(np.stack([np.clip(c + np.random.uniform(-intensity, intensity), low, high) for c in np.moveaxis(x, channel_axis, 0)]), 0, channel_axis)


def flip_axis(x: Any, axis: int) -> Any:
    """Mirrored."""
    return np.flip(x, axis)


class ImageDataGenerator:
    """Batches of images, normalised, turned, moved and mirrored."""

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0.0,
        width_shift_range: float = 0.0,
        height_shift_range: float = 0.0,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: Any = None,
        preprocessing_function: Any = None,
        data_format: Any = None,
    ) -> None:
        self.data_format = layout(data_format)
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.featurewise_center = featurewise_center or featurewise_std_normalization or zca_whitening  # these two are of what is centred
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization and not zca_whitening
        self.samplewise_std_normalization = samplewise_std_normalization
        self.rotation_range, self.width_shift_range, self.height_shift_range, self.shear_range = (
            rotation_range,
            width_shift_range,
            height_shift_range,
            shear_range,
        )
        self.channel_shift_range, self.fill_mode, self.cval, self.horizontal_flip, self.vertical_flip = (
            channel_shift_range,
            fill_mode,
            cval,
            horizontal_flip,
            vertical_flip,
        )
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.channel_axis, self.row_axis, self.col_axis = (1, 2, 3) if self.data_format == "channels_first" else (3, 1, 2)
        if np.isscalar(zoom_range):
            self.zoom_range: Any = [1 - zoom_range, 1 + zoom_range]  # type: ignore[operator]
        elif len(zoom_range) == 2:
            self.zoom_range = list(zoom_range)
        else:
            raise at_user_line(ValueError("`zoom_range` should be a float or a tuple or list of two floats. Received arg: %s" % (zoom_range,)))
        self.mean: Any = None
        self.std: Any = None
        self.principal_components: Any = None

    def flow(self, x: Any, y: Any = None, batch_size: int = 32, shuffle: bool = True, seed: Any = None, **unused: Any) -> "NumpyArrayIterator":
        """Batches of arrays, for ever."""
        return NumpyArrayIterator(x, y, self, batch_size, shuffle, seed, self.data_format)

    def flow_from_directory(
        self,
        directory: str,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: Any = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: Any = None,
        **unused: Any,
    ) -> "DirectoryIterator":
        """Batches of the images below a folder, whose folders are classes."""
        return DirectoryIterator(directory, self, target_size, color_mode, classes, class_mode, batch_size, shuffle, seed, self.data_format)

    def standardize(self, x: Any) -> Any:
        """Normalised as the settings say."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x = x * self.rescale
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        if self.featurewise_center and self.mean is not None:
            x = x - self.mean
        if self.featurewise_std_normalization and self.std is not None:
            x = x / (self.std + 1e-6)
        if self.zca_whitening and self.principal_components is not None:
            x = np.dot(x.reshape(-1, x.size), self.principal_components).reshape(x.shape)
        return x

    def random_transform(self, x: Any, seed: Any = None) -> Any:
        """Turned, moved and mirrored at random."""
        if seed is not None:
            np.random.seed(seed)
        row, column, channel = self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1
        places = dict(row_axis=row, col_axis=column, channel_axis=channel, fill_mode=self.fill_mode, cval=self.cval)
        if self.rotation_range:
            x = random_rotation(x, self.rotation_range, **places)  # type: ignore[arg-type]
        if self.width_shift_range or self.height_shift_range:
            x = random_shift(x, self.width_shift_range, self.height_shift_range, **places)  # type: ignore[arg-type]
        if self.shear_range:
            x = random_shear(x, self.shear_range, **places)  # type: ignore[arg-type]
        if self.zoom_range != [1, 1]:
            x = random_zoom(x, self.zoom_range, **places)  # type: ignore[arg-type]
        if self.channel_shift_range:
            x = random_channel_shift(x, self.channel_shift_range, channel)
        if self.horizontal_flip and np.random.random() < 0.5:
            x = np.flip(x, column)
        if self.vertical_flip and np.random.random() < 0.5:
            x = np.flip(x, row)
        return x

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: Any = None) -> None:
        """Finds means and deviations of the channels, and principal components."""
        x = np.asarray(x, K.floatx())
        if x.ndim != 4:
            raise at_user_line(ValueError("Input to `.fit()` should have rank 4. Got array with shape: %s" % (x.shape,)))
        if seed is not None:
            np.random.seed(seed)
        x = x * self.rescale if self.rescale else np.copy(x)
        if augment:
            x = np.concatenate([np.stack([self.random_transform(i) for i in x]) for _ in range(rounds)])
        shape = [1, 1, 1]
        shape[self.channel_axis - 1] = x.shape[self.channel_axis]
        if self.featurewise_center:
            self.mean = np.mean(x, axis=(0, self.row_axis, self.col_axis)).reshape(shape)
            x = x - self.mean
        if self.featurewise_std_normalization:
            self.std = np.std(x, axis=(0, self.row_axis, self.col_axis)).reshape(shape)
            x = x / (self.std + 1e-6)
        if self.zca_whitening:
            flat = x.reshape(x.shape[0], -1)
            u, s, _ = np.linalg.svd(flat.T @ flat / flat.shape[0])
            self.principal_components = (u / np.sqrt(s + self.zca_epsilon)) @ u.T


class Iterator:
    """Batches by places, for ever."""

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: Any) -> None:
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.lock, self._made, self._order, self._at = threading.Lock(), 0, np.arange(0), 0

    def reset(self) -> None:
        """Starts again."""
        self._order, self._at = np.arange(0), 0

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def on_epoch_end(self) -> None:
        """Nothing to do: each round has an order of its own."""

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise at_user_line(ValueError("Asked to retrieve element %d, but the Sequence has length %d" % (index, len(self))))
        return self._get_batches_of_transformed_samples(np.arange(self.n)[index * self.batch_size : (index + 1) * self.batch_size])

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        with self.lock:
            if self._at >= len(self._order):
                if self.seed is not None:
                    np.random.seed(self.seed + self._made)
                self._order, self._at = np.random.permutation(self.n) if self.shuffle else np.arange(self.n), 0
            places = self._order[self._at : self._at + self.batch_size]
            self._at += self.batch_size
            self._made += 1
        return self._get_batches_of_transformed_samples(places)

    def next(self) -> Any:
        """The next batch."""
        return next(self)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        raise NotImplementedError


class NumpyArrayIterator(Iterator):
    """Batches of arrays."""

    def __init__(
        self, x: Any, y: Any, image_data_generator: Any, batch_size: int = 32, shuffle: bool = False, seed: Any = None, data_format: Any = None
    ) -> None:
        self.x, self.y, self._generator = np.asarray(x, K.floatx()), None if y is None else np.asarray(y), image_data_generator
        if y is not None and len(self.x) != len(self.y):  # type: ignore[arg-type]
            raise at_user_line(
                ValueError("`x` (images tensor) and `y` (labels) should have the same length. Found: x.shape = %s, y.shape = %s" % (self.x.shape, np.shape(y)))
            )
        if self.x.ndim != 4:
            raise at_user_line(ValueError("Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape %s" % (self.x.shape,)))
        channels = self.x.shape[1 if layout(data_format) == "channels_first" else 3]
        if channels not in (1, 3, 4):
            warnings.warn(
                "images with data_format %r have 1, 3 or 4 channels, but x has %d: shape %s" % (layout(data_format), channels, self.x.shape), stacklevel=2
            )
        super().__init__(len(self.x), batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        batch = np.stack([self._generator.standardize(self._generator.random_transform(self.x[i])) for i in index_array]).astype(K.floatx())
        return batch if self.y is None else (batch, self.y[index_array])


class DirectoryIterator(Iterator):
    """Batches of the images below a folder."""

    def __init__(
        self,
        directory: str,
        image_data_generator: Any,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Optional[List[str]] = None,
        class_mode: Any = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: Any = None,
        data_format: Any = None,
    ) -> None:
        if color_mode not in ("rgb", "grayscale"):
            raise at_user_line(ValueError('Invalid color mode: %s; expected "rgb" or "grayscale".' % color_mode))
        if class_mode not in ("categorical", "binary", "sparse", "input", None):
            raise at_user_line(ValueError("Invalid class_mode: %s" % class_mode))
        self.directory, self._generator, self.target_size, self.class_mode = directory, image_data_generator, tuple(target_size), class_mode
        self._gray, self.data_format = color_mode == "grayscale", layout(data_format)
        names = classes or sorted(d for d in os.listdir(directory) if os.path.isdir(os.path.join(directory, d)))
        self.class_indices = {name: i for i, name in enumerate(names)}
        self.num_classes = len(names)
        found = []
        for name in names:
            for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=False)):
                found += [
                    (os.path.relpath(os.path.join(folder, f), directory), self.class_indices[name])
                    for f in sorted(files)
                    if f.lower().endswith((".png", ".jpg", ".jpeg", ".bmp", ".ppm"))
                ]
        self.filenames, self.classes, self.samples = [f for f, _ in found], np.array([c for _, c in found], np.int32), len(found)
        print("Found %d images belonging to %d classes." % (self.samples, self.num_classes))
        super().__init__(self.samples, batch_size, shuffle, seed)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        images = []
        for i in index_array:
            x = img_to_array(load_img(os.path.join(self.directory, self.filenames[i]), self._gray, self.target_size), self.data_format)
            images.append(self._generator.standardize(self._generator.random_transform(x)))
        batch, classes = np.stack(images).astype(K.floatx()), self.classes[index_array]
        if self.class_mode is None:
            return batch
        if self.class_mode == "categorical":
            return batch, np.eye(self.num_classes, dtype=K.floatx())[classes]
        return batch, batch.copy() if self.class_mode == "input" else classes.astype(K.floatx() if self.class_mode == "binary" else np.int32)
