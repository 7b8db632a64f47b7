# SPDX-License-Identifier: Apache-2.0
"""tf.keras.datasets: data sets as NumPy arrays, from ~/.keras/datasets, where they are fetched to once."""
from __future__ import annotations

import gzip
import os
import pickle
import tarfile
import types
import urllib.error
import urllib.request
from typing import Any, Tuple

import numpy as np

from millrace.framework.errors import at_user_line

_SOURCE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
Split = Tuple[Tuple[Any, Any], Tuple[Any, Any]]


def _file(name: str, source: str) -> str:
    """The path of a file in the folder, which may be given as a path of its own."""
    path = os.path.join(os.path.expanduser("~"), ".keras", "datasets", name)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with urllib.request.urlopen(source, timeout=60) as answer, open(path + ".part", "wb") as file:
                file.write(answer.read())
        except (urllib.error.URLError, OSError) as error:
            raise at_user_line(Exception("URL fetch failure on %s: %s; put the file at %s" % (source, error, path))) from error
        os.replace(path + ".part", path)
    return path


def _images(name: str) -> np.ndarray:
    with gzip.open(_file(os.path.join("fashion-mnist", name), _SOURCE + name)) as file:
        data = file.read()
    dims = data[3]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dims).reshape(np.frombuffer(data, ">u4", dims, 4).astype(int))


def _load_mnist(path: str = "mnist.npz") -> Split:
    """Handwritten digits: 28x28 bytes and the digit."""
    with np.load(_file(path, _SOURCE + "mnist.npz"), allow_pickle=False) as data:
        return (data["x_train"], data["y_train"]), (data["x_test"], data["y_test"])


def _load_fashion() -> Split:
    """Clothes: 28x28 bytes and the kind."""
    (x, y), (u, v) = ((_images(part + "-images-idx3-ubyte.gz"), _images(part + "-labels-idx1-ubyte.gz")) for part in ("train", "t10k"))
    return (x, y), (u, v)


def _load_cifar10() -> Split:
    """Small pictures: 32x32x3 bytes and the kind."""
    archive = _file("cifar-10-batches-py.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz")
    parts = {}
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            name = os.path.basename(member.name)
            file = tar.extractfile(member) if name.startswith(("data_batch_", "test_batch")) else None
            if file is not None:
                made = pickle.loads(file.read(), encoding="bytes")
                parts[name] = made[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.array(made[b"labels"], np.uint8)[:, np.newaxis]
    train = [parts[name] for name in sorted(parts) if name != "test_batch"]
    return (np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train])), parts["test_batch"]


def _load_boston(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Split:
    """Districts: thirteen numbers and what houses cost."""
    with np.load(_file(path, _SOURCE + "boston_housing.npz"), allow_pickle=False) as data:
        x, y = data["x"], data["y"]
    order = np.random.RandomState(seed).permutation(len(x))
    x, y, cut = x[order], y[order], int(len(x) * (1 - test_split))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


mnist, fashion_mnist, cifar10, boston_housing = (types.SimpleNamespace(load_data=f) for f in (_load_mnist, _load_fashion, _load_cifar10, _load_boston))
