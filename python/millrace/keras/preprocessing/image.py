# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Batches of images out of arrays, folders and tables, turned, moved and mirrored at random. Files of images need the package Pillow."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, Dict, List, Optional

import numpy as np

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout
from millrace.keras.preprocessing.image_transforms import (  # noqa: F401
    apply_affine_transform,
    apply_brightness_shift,
    apply_channel_shift,
    apply_transform,
    array_to_img,
    flip_axis,
    img_to_array,
    pillow,
    random_brightness,
    random_channel_shift,
    random_rotation,
    random_shear,
    random_shift,
    random_zoom,
    transform_matrix_offset_center,
)

_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}  # by the names of Keras, those of Pillow
_KINDS = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".tif", ".tiff")
_NUMBERED = ("binary", "categorical", "sparse")  # the modes in which classes have numbers
_CLASS_MODES = (*_NUMBERED, "input", "multi_output", "raw", None)  # of tables
_OF_1_13 = {  # arguments of tables, and what is so without them
    "has_ext": "the table has the names of files with their endings",
    "sort": "images come in the table's order where shuffle is False",
    "drop_duplicates": "pandas.DataFrame.drop_duplicates drops them",
}
_RESAMPLING = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def load_img(path: str, grayscale: bool = False, color_mode: str = "rgb", target_size: Any = None, interpolation: str = "nearest") -> Any:
    """The image of a file, scaled to (height, width)."""
    color_mode = "grayscale" if grayscale is True else color_mode
    if color_mode not in _MODES:
        raise at_user_line(ValueError('color_mode must be "grayscale", "rgb", or "rgba"'))
    img = pillow().open(path)
    if not (color_mode == "grayscale" and img.mode in ("L", "I;16", "I")):
        img = img.convert(_MODES[color_mode])
    if target_size is None or img.size == (target_size[1], target_size[0]):
        img.load()
        return img
    if interpolation not in _RESAMPLING:
        raise at_user_line(ValueError("Invalid interpolation method %s specified. Supported methods are %s" % (interpolation, ", ".join(_RESAMPLING))))
    return img.resize((target_size[1], target_size[0]), getattr(pillow(), interpolation.upper()))


def save_img(path: Any, x: Any, data_format: Any = None, file_format: Optional[str] = None, scale: bool = True, **kwargs: Any) -> None:
    """Writes an array as an image to a file."""
    img = array_to_img(x, data_format, scale)
    if img.mode == "RGBA" and file_format in ("jpg", "jpeg"):
        warnings.warn("The JPG format does not support RGBA images, converting to RGB.", stacklevel=2)
        img = img.convert("RGB")
    img.save(path, format=file_format, **kwargs)


def _moved_by(given: Any, size: int) -> Any:
    """A random number of places: one of a list, or below a whole number, either way; or up to a number. Those below 1 are parts of the size."""
    if not np.any(given):
        return 0
    try:
        made = np.random.choice(given) * np.random.choice([-1, 1])
    except ValueError:
        made = np.random.uniform(-given, given)
    return made * size if np.max(given) < 1 else made


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
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
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
        validation_split: float = 0.0,
        dtype: Any = None,
    ) -> None:
        self.data_format, self.dtype = layout(data_format), dtype or K.floatx()
        self.zca_whitening, self.zca_epsilon = zca_whitening, zca_epsilon
        self.featurewise_center = featurewise_center or featurewise_std_normalization or zca_whitening  # these two are of what is centred
        self.samplewise_center = samplewise_center or samplewise_std_normalization
        self.featurewise_std_normalization = featurewise_std_normalization and not zca_whitening
        self.samplewise_std_normalization = samplewise_std_normalization
        self.rotation_range, self.shear_range, self.channel_shift_range = rotation_range, shear_range, channel_shift_range
        self.width_shift_range, self.height_shift_range = width_shift_range, height_shift_range
        self.fill_mode, self.cval, self.horizontal_flip, self.vertical_flip = fill_mode, cval, horizontal_flip, vertical_flip
        self.rescale, self.preprocessing_function = rescale, preprocessing_function
        self.channel_axis, self.row_axis, self.col_axis = (1, 2, 3) if self.data_format == "channels_first" else (3, 1, 2)
        if validation_split and not 0 < validation_split < 1:
            raise at_user_line(ValueError("`validation_split` must be strictly between 0 and 1.  Received: %s" % validation_split))
        self._validation_split = validation_split
        if brightness_range is not None and (not isinstance(brightness_range, (tuple, list)) or len(brightness_range) != 2):
            raise at_user_line(ValueError("`brightness_range should be tuple or list of two floats. Received: %s" % (brightness_range,)))
        self.brightness_range = brightness_range
        if np.isscalar(zoom_range):
            self.zoom_range: Any = [1 - zoom_range, 1 + zoom_range]  # type: ignore[operator]
        elif len(zoom_range) == 2:
            self.zoom_range = list(zoom_range)
        else:
            raise at_user_line(ValueError("`zoom_range` should be a float or a tuple or list of two floats. Received: %s" % (zoom_range,)))
        self.mean: Any = None
        self.std: Any = None
        self.principal_components: Any = None

    def flow(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: Any = None,
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: Optional[str] = None,
    ) -> "NumpyArrayIterator":
        """Batches of arrays, for ever; x may be (images, other arrays that go along). subset: "training" or "validation", of validation_split."""
        return NumpyArrayIterator(
            x, y, self, batch_size, shuffle, sample_weight, seed, self.data_format, save_to_dir, save_prefix, save_format, subset, self.dtype
        )

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
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: Optional[str] = None,
        interpolation: str = "nearest",
    ) -> "DirectoryIterator":
        """Batches of the images below a folder, whose folders are classes. subset: "training" or "validation", of validation_split."""
        return DirectoryIterator(
            directory,
            self,
            target_size,
            color_mode,
            classes,
            class_mode,
            batch_size,
            shuffle,
            seed,
            self.data_format,
            save_to_dir,
            save_prefix,
            save_format,
            follow_links,
            subset,
            interpolation,
            self.dtype,
        )

    def flow_from_dataframe(
        self,
        dataframe: Any,
        directory: Optional[str] = None,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: Optional[str] = None,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: Any = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: Any = None,
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: Optional[str] = None,
        interpolation: str = "nearest",
        validate_filenames: bool = True,
        **kwargs: Any,
    ) -> "DataFrameIterator":
        """Batches of the images that a table names, by its columns: x_col of files (of the folder, if there is one), y_col of what goes with them.

        class_mode: "categorical", "binary" or "sparse" of classes that are text, of "categorical" also lists of them; "raw" of numbers;
        "multi_output" of a list of columns; "input" or None.
        kwargs: has_ext, sort and drop_duplicates of 1.13, which change nothing; others are not looked at, as in 1.15.
        Raises: ValueError and TypeError where columns are not of the class_mode.
        """
        for name in filter(kwargs.__contains__, _OF_1_13):
            warnings.warn("%s is deprecated: %s." % (name, _OF_1_13[name]), DeprecationWarning, stacklevel=2)
        chosen = target_size, color_mode, classes, class_mode, batch_size, shuffle, seed, self.data_format, save_to_dir, save_prefix, save_format
        return DataFrameIterator(dataframe, directory, self, x_col, y_col, weight_col, *chosen, subset, interpolation, self.dtype, validate_filenames)

    def standardize(self, x: Any) -> Any:
        """Normalised as the settings say: an image, or a batch."""
        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if self.rescale:
            x = x * self.rescale
        if self.samplewise_center:
            x = x - np.mean(x, keepdims=True)
        if self.samplewise_std_normalization:
            x = x / (np.std(x, keepdims=True) + 1e-6)
        for asked, name, found in (
            (self.featurewise_center, "featurewise_center", self.mean),
            (self.featurewise_std_normalization, "featurewise_std_normalization", self.std),
            (self.zca_whitening, "zca_whitening", self.principal_components),
        ):
            if asked and found is None:
                warnings.warn(
                    "This ImageDataGenerator specifies `%s`, but it hasn't been fit on any training data. Fit it first by calling `.fit(numpy_data)`." % name,
                    stacklevel=2,
                )
        if self.featurewise_center and self.mean is not None:
            x = x - self.mean
        if self.featurewise_std_normalization and self.std is not None:
            x = x / (self.std + 1e-6)
        if self.zca_whitening and self.principal_components is not None:
            x = np.dot(x.reshape(-1, int(np.prod(x.shape[-3:]))), self.principal_components).reshape(x.shape)
        return x

    def get_random_transform(self, img_shape: Any, seed: Any = None) -> Dict[str, Any]:
        """Random numbers for `apply_transform`."""
        if seed is not None:
            np.random.seed(seed)

        def within(limit: Any) -> Any:
            return np.random.uniform(-limit, limit) if limit else 0

        made: Dict[str, Any] = {"theta": within(self.rotation_range)}
        made["tx"] = _moved_by(self.height_shift_range, img_shape[self.row_axis - 1])
        made["ty"] = _moved_by(self.width_shift_range, img_shape[self.col_axis - 1])
        made["shear"] = within(self.shear_range)
        made["zx"], made["zy"] = (1, 1) if list(self.zoom_range) == [1, 1] else np.random.uniform(self.zoom_range[0], self.zoom_range[1], 2)
        made["flip_horizontal"] = bool(np.random.random() < 0.5 and self.horizontal_flip)
        made["flip_vertical"] = bool(np.random.random() < 0.5 and self.vertical_flip)
        made["channel_shift_intensity"] = within(self.channel_shift_range) if self.channel_shift_range else None
        made["brightness"] = None if self.brightness_range is None else np.random.uniform(self.brightness_range[0], self.brightness_range[1])
        return made

    def apply_transform(self, x: Any, transform_parameters: Dict[str, Any]) -> Any:
        """An image changed as numbers say: theta, tx, ty, shear, zx, zy, channel_shift_intensity, flip_horizontal, flip_vertical, brightness."""
        row, column, channel = self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1
        given = {name: transform_parameters[name] for name in ("theta", "tx", "ty", "shear", "zx", "zy") if name in transform_parameters}
        x = apply_affine_transform(x, **given, row_axis=row, col_axis=column, channel_axis=channel, fill_mode=self.fill_mode, cval=self.cval)
        if transform_parameters.get("channel_shift_intensity") is not None:
            x = apply_channel_shift(x, transform_parameters["channel_shift_intensity"], channel)
        for name, axis in (("flip_horizontal", column), ("flip_vertical", row)):
            x = flip_axis(x, axis) if transform_parameters.get(name) else x
        return x if transform_parameters.get("brightness") is None else apply_brightness_shift(x, transform_parameters["brightness"])

    def random_transform(self, x: Any, seed: Any = None) -> Any:
        """Turned, moved and mirrored at random."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: Any = None) -> None:
        """Finds means and deviations of the channels, and principal components."""
        x = np.asarray(x, self.dtype)
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
    """Batches by places, for ever; also a Sequence, whose batches are of one order until `on_epoch_end`."""

    def __init__(self, n: int, batch_size: int, shuffle: bool, seed: Any) -> None:
        self.n, self.batch_size, self.shuffle, self.seed = n, batch_size, shuffle, seed
        self.lock, self.total_batches_seen, self.batch_index = threading.Lock(), 0, 0
        self.index_array: Any = None
        self._saving: Any = None  # (folder, prefix, format) of the images that are kept

    def reset(self) -> None:
        """Starts again."""
        self.batch_index = 0

    def __len__(self) -> int:
        return (self.n + self.batch_size - 1) // self.batch_size

    def on_epoch_end(self) -> None:
        """Another order."""
        self.index_array = np.random.permutation(self.n) if self.shuffle else np.arange(self.n)

    def _begin_batch(self) -> None:
        if self.seed is not None:
            np.random.seed(self.seed + self.total_batches_seen)
        self.total_batches_seen += 1

    def __getitem__(self, index: int) -> Any:
        if index >= len(self):
            raise at_user_line(ValueError("Asked to retrieve element %d, but the Sequence has length %d" % (index, len(self))))
        self._begin_batch()
        if self.index_array is None:
            self.on_epoch_end()
        return self._get_batches_of_transformed_samples(self.index_array[index * self.batch_size : (index + 1) * self.batch_size])

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        with self.lock:
            self._begin_batch()
            if self.batch_index == 0 or self.index_array is None:
                self.on_epoch_end()
            start = self.batch_index * self.batch_size
            self.batch_index = self.batch_index + 1 if self.n > start + self.batch_size else 0
            places = self.index_array[start : start + self.batch_size]
        return self._get_batches_of_transformed_samples(places)

    def next(self) -> Any:
        """The next batch."""
        return next(self)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        raise NotImplementedError

    def _keep(self, batch: Any, index_array: Any, data_format: Any) -> None:
        """Writes images to the folder that was asked for."""
        folder, prefix, kind = self._saving
        for x, place in zip(batch, index_array if folder else ()):
            name = "%s_%d_%d.%s" % (prefix, place, np.random.randint(int(1e7)), kind)
            array_to_img(x, data_format, scale=True).save(os.path.join(folder, name))


def _checked_subset(subset: Optional[str]) -> Optional[str]:
    if subset not in (None, "training", "validation"):
        raise at_user_line(ValueError('Invalid subset name: %s; expected "training" or "validation".' % subset))
    return subset


class NumpyArrayIterator(Iterator):
    """Batches of arrays."""

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: Any = None,
        data_format: Any = None,
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: Optional[str] = None,
        dtype: Any = None,
    ) -> None:
        self.dtype, self.data_format, self._generator = dtype or K.floatx(), layout(data_format), image_data_generator
        further = x[1] if isinstance(x, (tuple, list)) else []
        images = np.asarray(x[0] if isinstance(x, (tuple, list)) else x)
        others = [np.asarray(a) for a in (further if isinstance(further, list) else [further])]
        labels, weights = (None if a is None else np.asarray(a) for a in (y, sample_weight))
        for what, values in [("`y` (labels)", labels), ("`sample_weight`", weights), *(("all of the arrays in `x`", a) for a in others)]:
            if values is not None and len(values) != len(images):
                raise at_user_line(
                    ValueError("`x` (images tensor) and %s should have the same length. Found shapes %s and %s" % (what, images.shape, values.shape))
                )
        if _checked_subset(subset) is not None:
            at = int(len(images) * image_data_generator._validation_split)
            if labels is not None and not np.array_equal(np.unique(labels[:at]), np.unique(labels[at:])):
                raise at_user_line(
                    ValueError(
                        "Training and validation subsets have different number of classes after the split. If your numpy arrays are sorted by the label, "
                        "you might want to shuffle them."
                    )
                )
            part = slice(None, at) if subset == "validation" else slice(at, None)
            images, others = images[part], [a[part] for a in others]
            labels, weights = (None if a is None else a[part] for a in (labels, weights))
        self.x, self.x_misc, self.y, self.sample_weight = np.asarray(images, self.dtype), others, labels, weights
        if self.x.ndim != 4:
            raise at_user_line(ValueError("Input data in `NumpyArrayIterator` should have rank 4. You passed an array with shape %s" % (self.x.shape,)))
        channels = self.x.shape[1 if self.data_format == "channels_first" else 3]
        if channels not in (1, 3, 4):
            warnings.warn(
                "images with data_format %r have 1, 3 or 4 channels, but x has %d: shape %s" % (self.data_format, channels, self.x.shape), stacklevel=2
            )
        super().__init__(len(self.x), batch_size, shuffle, seed)
        self._saving = save_to_dir, save_prefix, save_format

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        batch = np.stack([self._generator.standardize(self._generator.random_transform(self.x[i])) for i in index_array]).astype(self.dtype)
        self._keep(batch, index_array, self.data_format)
        images = [batch, *(a[index_array] for a in self.x_misc)] if self.x_misc else batch
        if self.y is None:
            return images
        return (images, self.y[index_array]) if self.sample_weight is None else (images, self.y[index_array], self.sample_weight[index_array])


class _Files(Iterator):
    """Batches of images that are read when they are asked for. Those below it have `filepaths`, and `_batch_with` what goes with the images."""

    filepaths: Any

    def _choose(self, generator: Any, target_size: Any, color_mode: str, data_format: Any, interpolation: str, dtype: Any) -> None:
        if color_mode not in _MODES:
            raise at_user_line(ValueError('Invalid color mode: %s; expected "rgb", "rgba", or "grayscale".' % color_mode))
        self._generator, self.target_size, self.color_mode = generator, tuple(target_size), color_mode
        self.data_format, self.interpolation, self.dtype = layout(data_format), interpolation, dtype or K.floatx()
        channels = {"grayscale": 1, "rgb": 3, "rgba": 4}[color_mode]
        self.image_shape = (channels, *self.target_size) if self.data_format == "channels_first" else (*self.target_size, channels)

    def _get_batches_of_transformed_samples(self, index_array: Any) -> Any:
        images, paths = [], self.filepaths
        for i in index_array:
            img = load_img(paths[i], color_mode=self.color_mode, target_size=self.target_size, interpolation=self.interpolation)
            x = img_to_array(img, self.data_format)
            images.append(x if self._generator is None else self._generator.standardize(self._generator.random_transform(x)))
        batch = np.stack(images).astype(self.dtype)
        self._keep(batch, index_array, self.data_format)
        return self._batch_with(batch, index_array)

    def _part(self, subset: Optional[str], count: int) -> slice:
        """Which of so many images are a subset."""
        if _checked_subset(subset) is None:
            return slice(None)
        at = int(self._generator._validation_split * count)
        return slice(None, at) if subset == "validation" else slice(at, None)

    def _batch_with(self, batch: Any, places: Any) -> Any:
        raise NotImplementedError


class DirectoryIterator(_Files):
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
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: Optional[str] = None,
        interpolation: str = "nearest",
        dtype: Any = None,
    ) -> None:
        self._choose(image_data_generator, target_size, color_mode, data_format, interpolation, dtype)
        if class_mode not in (*_NUMBERED, "input", None):
            raise at_user_line(ValueError("Invalid class_mode: %s" % class_mode))
        self.directory, self.class_mode = directory, class_mode
        names = classes or sorted(d for d in os.listdir(directory) if os.path.isdir(os.path.join(directory, d)))
        self.class_indices = {name: i for i, name in enumerate(names)}
        self.num_classes = len(names)
        found: List[Any] = []
        for name in names:
            files = self._files(os.path.join(directory, name), follow_links)
            found += [(os.path.relpath(f, directory), self.class_indices[name]) for f in files[self._part(subset, len(files))]]
        self.filenames, self.classes, self.samples = [f for f, _ in found], np.array([c for _, c in found], np.int32), len(found)
        print("Found %d images belonging to %d classes." % (self.samples, self.num_classes))
        super().__init__(self.samples, batch_size, shuffle, seed)
        self._saving = save_to_dir, save_prefix, save_format

    @staticmethod
    def _files(folder: str, follow_links: bool) -> List[str]:
        walk = sorted(os.walk(folder, followlinks=follow_links), key=lambda found: found[0])
        return [os.path.join(inside, f) for inside, _, files in walk for f in sorted(files) if f.lower().endswith(_KINDS)]

    @property
    def filepaths(self) -> List[str]:
        """The paths of the images."""
        return [os.path.join(self.directory, name) for name in self.filenames]

    def _batch_with(self, batch: Any, places: Any) -> Any:
        if self.class_mode is None:
            return batch
        if self.class_mode == "categorical":
            return batch, np.eye(self.num_classes, dtype=self.dtype)[self.classes[places]]
        return batch, batch.copy() if self.class_mode == "input" else self.classes[places].astype(self.dtype)


class DataFrameIterator(_Files):
    """Batches of the images that a table names. The table is a pandas.DataFrame, or whatever gives a column for its name."""

    allowed_class_modes = set(_CLASS_MODES)

    def __init__(
        self,
        dataframe: Any,
        directory: Optional[str] = None,
        image_data_generator: Any = None,
        x_col: str = "filename",
        y_col: Any = "class",
        weight_col: Optional[str] = None,
        target_size: Any = (256, 256),
        color_mode: str = "rgb",
        classes: Any = None,
        class_mode: Any = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: Any = None,
        data_format: Any = "channels_last",
        save_to_dir: Optional[str] = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: Optional[str] = None,
        interpolation: str = "nearest",
        dtype: Any = "float32",
        validate_filenames: bool = True,
    ) -> None:
        self._choose(image_data_generator, target_size, color_mode, data_format, interpolation, dtype)
        if class_mode == "other":
            warnings.warn('`class_mode` "other" is deprecated, please use `class_mode` "raw".', DeprecationWarning, stacklevel=3)
            class_mode = "raw"
        self.directory, self.class_mode = directory or "", class_mode
        names, weights = _column(dataframe, x_col), None if weight_col is None else _column(dataframe, weight_col)
        self._check(names, x_col, dataframe, y_col, weights, weight_col, classes)
        keep = self._existing(names, x_col) if validate_filenames else np.arange(len(names))
        if class_mode in _NUMBERED:
            keep = self._number_classes(_column(dataframe, y_col), keep, classes)
        keep = keep[self._part(subset, len(keep))]
        self._filenames: List[str] = [names[i] for i in keep]
        self._sample_weight = None if weights is None else np.asarray([weights[i] for i in keep])
        if class_mode in ("raw", "multi_output"):
            columns = [np.asarray([column[i] for i in keep]) for column in (_column(dataframe, c) for c in (y_col if isinstance(y_col, list) else [y_col]))]
            self._targets = columns if class_mode == "multi_output" else np.stack(columns, 1) if isinstance(y_col, list) else columns[0]
        elif class_mode in _NUMBERED:
            self.classes: List[Any] = [self._numbers[i] for i in keep]
        self.samples = len(keep)
        about = " belonging to %d classes" % len(self.class_indices) if class_mode in _NUMBERED else ""
        print("Found %d %simage filenames%s." % (self.samples, "validated " if validate_filenames else "non-validated ", about))
        super().__init__(self.samples, batch_size, shuffle, seed)
        self._saving = save_to_dir, save_prefix, save_format

    @property
    def filenames(self) -> List[str]:
        """The names of the images, as the table has them."""
        return self._filenames

    @property
    def filepaths(self) -> List[str]:  # type: ignore[override]
        """The paths of the images."""
        return [os.path.join(self.directory, name) for name in self._filenames]

    @property
    def sample_weight(self) -> Any:
        """The weights of the images, or None."""
        return self._sample_weight

    @property
    def labels(self) -> Any:
        """The number of each image's class; of "raw" and "multi_output" what the table has."""
        return self.classes if self.class_mode in _NUMBERED else self._targets

    def _check(self, names: List[Any], x_col: str, table: Any, y_col: Any, weights: Any, weight_col: Any, classes: Any) -> None:
        mode = self.class_mode
        if mode not in self.allowed_class_modes:
            raise at_user_line(ValueError("Invalid class_mode: %s; expected one of: %s" % (mode, self.allowed_class_modes)))
        if mode == "multi_output" and not isinstance(y_col, list):
            raise at_user_line(TypeError('If class_mode="multi_output", y_col must be a list. Received %s.' % type(y_col).__name__))
        if not all(isinstance(name, str) for name in names):
            raise at_user_line(TypeError("All values in column x_col=%s must be strings." % x_col))
        if mode in _NUMBERED:
            kinds = (str, list, tuple) if mode == "categorical" else (str,)
            if not all(isinstance(value, kinds) for value in _column(table, y_col)):
                wanted = "type string, list or tuple" if mode == "categorical" else "strings"
                raise at_user_line(TypeError('If class_mode="%s", y_col="%s" column values must be %s.' % (mode, y_col, wanted)))
        if mode == "binary":
            count = len(set(classes)) if classes else len(set(_column(table, y_col)))
            if count != 2:
                raise at_user_line(ValueError('If class_mode="binary" there must be 2 classes. Found %s classes.' % count))
        if classes and mode in ("input", "multi_output", "raw", None):
            warnings.warn('`classes` will be ignored given the class_mode="%s"' % mode, stacklevel=4)
        if weights is not None and not all(isinstance(w, (int, float, np.number)) for w in weights):
            raise at_user_line(TypeError("Column weight_col=%s must be numeric." % weight_col))

    def _existing(self, names: List[str], x_col: str) -> Any:
        """The places of the names that are files of images."""
        keep = [i for i, name in enumerate(names) if name.lower().endswith(_KINDS) and os.path.isfile(os.path.join(self.directory, name))]
        if len(keep) < len(names):
            warnings.warn(
                'Found %d invalid image filename(s) in x_col="%s". These filename(s) will be ignored.' % (len(names) - len(keep), x_col), stacklevel=4
            )
        return np.asarray(keep, np.int64)

    def _number_classes(self, column: List[Any], keep: Any, classes: Any) -> Any:
        """The places that are left where classes are named; `_numbers` has the classes of all."""
        chosen = set(classes) if classes else None
        if chosen is not None:
            column = [[c for c in value if c in chosen] if isinstance(value, (list, tuple)) else value for value in column]
            keep = np.asarray([i for i in keep if (bool(column[i]) if isinstance(column[i], list) else column[i] in chosen)], np.int64)
        found = {c for i in keep for c in (column[i] if isinstance(column[i], (list, tuple)) else [column[i]])}
        order = list(dict.fromkeys(classes)) if classes else sorted(found)
        self.class_indices: Dict[Any, int] = {c: number for number, c in enumerate(order)}
        number = self.class_indices
        self._numbers = {int(i): [number[c] for c in column[i]] if isinstance(column[i], (list, tuple)) else number[column[i]] for i in keep}
        return keep

    def _batch_with(self, batch: Any, places: Any) -> Any:
        if self.class_mode is None:
            return batch
        if self.class_mode == "input":
            target: Any = batch.copy()
        elif self.class_mode == "multi_output":
            target = [column[places] for column in self._targets]
        elif self.class_mode == "raw":
            target = self._targets[places]
        elif self.class_mode == "categorical":
            target = np.zeros((len(batch), len(self.class_indices)), self.dtype)
            for row, place in enumerate(places):
                target[row, self.classes[place]] = 1
        else:
            target = np.asarray([self.classes[place] for place in places], self.dtype)
        return (batch, target) if self._sample_weight is None else (batch, target, self._sample_weight[places])


def _column(table: Any, name: Any) -> List[Any]:
    return list(np.asarray(table[name], dtype=object) if not hasattr(table[name], "tolist") else table[name].tolist())
