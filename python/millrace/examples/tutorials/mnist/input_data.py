# SPDX-License-Identifier: Apache-2.0
"""Reads the digits data set from its four files."""

from __future__ import annotations

import collections
import gzip
import os
from typing import Any, Optional

import numpy as np

from millrace.framework import arguments, dtypes

Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])
_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")


def _read(file: Any, dims: int) -> np.ndarray:
    with gzip.GzipFile(fileobj=file) as raw:
        data = raw.read()
    if len(data) < 4 + 4 * dims or data[2] != 8 or data[3] != dims:
        raise ValueError("Invalid magic number in MNIST file: %s" % getattr(file, "name", file))
    shape = np.frombuffer(data, ">i4", dims, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dims).reshape(shape)


def extract_images(f: Any) -> np.ndarray:
    """Images [count, height, width, 1] of a file."""
    return _read(f, 3)[..., np.newaxis]


def dense_to_one_hot(labels_dense: Any, num_classes: int) -> np.ndarray:
    """Class numbers as rows with a single one."""
    return np.asarray(np.eye(num_classes)[np.asarray(labels_dense)])


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """Labels of a file."""
    labels = _read(f, 1)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


class DataSet:
    """Images and labels, handed out in batches."""

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = dtypes.float32,
        reshape: bool = True,
        seed: Optional[int] = None,
    ) -> None:
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError("Invalid image dtype %r, expected uint8 or float32" % dtype)
        self.one_hot, self._fake = one_hot, fake_data
        self._random = np.random.RandomState(seed)
        if fake_data:
            self._num_examples = 10000
            self._images = self._labels = np.zeros([0])
        else:
            if images.shape[0] != labels.shape[0]:
                raise ValueError("images.shape: %s labels.shape: %s" % (images.shape, labels.shape))
            self._num_examples = images.shape[0]
            if reshape:
                images = images.reshape(images.shape[0], -1)
            if dtype == dtypes.float32:
                images = images.astype(np.float32) * np.float32(1.0 / 255.0)
            self._images, self._labels = images, labels
        self._epochs_completed = self._index_in_epoch = 0

    images = property(lambda self: self._images, doc="The images.")
    labels = property(lambda self: self._labels, doc="The labels.")
    num_examples = property(lambda self: self._num_examples, doc="How many there are.")
    epochs_completed = property(lambda self: self._epochs_completed, doc="How often all were handed out.")

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """The next images and labels; shuffled anew when all were handed out."""
        if fake_data or self._fake:
            image = [1.0] * 784
            label: Any = [1] + [0] * 9 if self.one_hot else 0
            return [image for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._index_in_epoch
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._index_in_epoch += batch_size
            return self._images[start : start + batch_size], self._labels[start : start + batch_size]
        self._epochs_completed += 1
        images, labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        rest = batch_size - len(images)
        self._index_in_epoch = rest
        return np.concatenate([images, self._images[:rest]]), np.concatenate([labels, self._labels[:rest]])

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        self._random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def maybe_download(filename: str, work_directory: str, source_url: str = "") -> str:
    """The path of a file that is there already; nothing is downloaded."""
    arguments.only("", source_url=source_url)
    path = os.path.join(work_directory, filename)
    if not os.path.exists(path):
        raise FileNotFoundError("%s is missing: put the data set's files there (nothing is downloaded)" % path)
    return path


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = dtypes.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: Optional[int] = None,
    source_url: str = "",
    num_classes: int = 10,
) -> Datasets:
    """Training, validation and test data of the four files in a folder."""
    arguments.only("", source_url=source_url)
    if fake_data:

        def fake() -> DataSet:
            return DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed)

        return Datasets(train=fake(), validation=fake(), test=fake())
    parts = []
    for i, name in enumerate(_FILES):
        with open(maybe_download(name, train_dir), "rb") as file:
            parts.append(extract_images(file) if i % 2 == 0 else extract_labels(file, one_hot, num_classes))
    images, labels, test_images, test_labels = parts
    if not 0 <= validation_size <= len(images):
        raise ValueError("Validation size should be between 0 and %d. Received: %d." % (len(images), validation_size))
    options: Any = dict(dtype=dtype, reshape=reshape, seed=seed, one_hot=one_hot)
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """read_data_sets with the defaults."""
    return read_data_sets(train_dir)
