# SPDX-License-Identifier: Apache-2.0
"""tf.keras.datasets: data sets as NumPy arrays, from ~/.keras/datasets, where they are fetched to once."""

from __future__ import annotations

import gzip
import json
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


def _load_cifar100(label_mode: str = "fine") -> Split:
    """Small pictures: 32x32x3 bytes and the kind, one of 100 ("fine") or of 20 ("coarse")."""
    if label_mode not in ("fine", "coarse"):
        raise at_user_line(ValueError('`label_mode` must be one of `"fine"`, `"coarse"`.'))
    archive = _file("cifar-100-python.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz")
    parts = []
    with tarfile.open(archive) as tar:
        for name in ("train", "test"):
            file: Any = tar.extractfile("cifar-100-python/" + name)
            made = pickle.loads(file.read(), encoding="bytes")
            labels = np.array(made[("%s_labels" % label_mode).encode()], np.uint8)[:, np.newaxis]
            parts.append((made[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels))
    return parts[0], parts[1]


def _sequences(x: Any, y: Any, num_words: Any, skip_top: int, maxlen: Any, start_char: Any, oov_char: Any, index_from: int) -> Any:
    """Words by their frequency's rank, behind a start; rare, frequent and long ones left out."""
    rows = [[start_char] + [w + index_from for w in row] if start_char is not None else [w + index_from if index_from else w for w in row] for row in x]
    kept = [(row, label) for row, label in zip(rows, y) if maxlen is None or len(row) < maxlen]
    if not kept:
        raise at_user_line(ValueError("After filtering for sequences shorter than maxlen=%s, no sequence was kept. Increase maxlen." % maxlen))
    limit = num_words or max(max(row) for row, _ in kept)  # the rarest word of all is left out, as in TensorFlow
    fits = [[w if skip_top <= w < limit else oov_char for w in row if oov_char is not None or skip_top <= w < limit] for row, _ in kept]
    made = np.empty(len(fits), object)
    made[:] = fits
    return made, np.array([label for _, label in kept])


def _shuffled(state: np.random.RandomState, x: Any, y: Any) -> Any:
    order = np.arange(len(x))
    state.shuffle(order)
    return x[order], y[order]


def _load_imdb(
    path: str = "imdb.npz",
    num_words: Any = None,
    skip_top: int = 0,
    maxlen: Any = None,
    seed: int = 113,
    start_char: Any = 1,
    oov_char: Any = 2,
    index_from: int = 3,
    **legacy: Any,
) -> Split:
    """Reviews of films as numbers of words, and whether they are good."""
    num_words = legacy.pop("nb_words", num_words)
    if legacy:
        raise at_user_line(TypeError("Unrecognized keyword arguments: %s" % legacy))
    with np.load(_file(path, _SOURCE + "imdb.npz"), allow_pickle=True) as data:
        state = np.random.RandomState(seed)
        train, test = _shuffled(state, data["x_train"], data["y_train"]), _shuffled(state, data["x_test"], data["y_test"])
    x, y = _sequences([*train[0], *test[0]], [*train[1], *test[1]], num_words, skip_top, maxlen, start_char, oov_char, index_from)
    cut = len(train[0])  # also with maxlen, as in TensorFlow
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def _load_reuters(
    path: str = "reuters.npz",
    num_words: Any = None,
    skip_top: int = 0,
    maxlen: Any = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: Any = 1,
    oov_char: Any = 2,
    index_from: int = 3,
    **legacy: Any,
) -> Split:
    """News as numbers of words, and one of 46 topics."""
    num_words = legacy.pop("nb_words", num_words)
    if legacy:
        raise at_user_line(TypeError("Unrecognized keyword arguments: %s" % legacy))
    with np.load(_file(path, _SOURCE + "reuters.npz"), allow_pickle=True) as data:
        x, y = _shuffled(np.random.RandomState(seed), data["x"], data["y"])
    x, y = _sequences(x, y, num_words, skip_top, maxlen, start_char, oov_char, index_from)
    cut = int(len(x) * (1 - test_split))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def _word_index(name: str) -> Any:
    def get_word_index(path: str = name) -> Any:
        """{word: its frequency's rank}."""
        with open(_file(path, _SOURCE + name), encoding="utf-8") as file:
            return json.load(file)

    return get_word_index


mnist, fashion_mnist, cifar10, cifar100, boston_housing = (
    types.SimpleNamespace(load_data=f) for f in (_load_mnist, _load_fashion, _load_cifar10, _load_cifar100, _load_boston)
)
_imdb_words, _reuters_words = _word_index("imdb_word_index.json"), _word_index("reuters_word_index.json")
imdb = types.SimpleNamespace(load_data=_load_imdb, get_word_index=_imdb_words)
reuters = types.SimpleNamespace(load_data=_load_reuters, get_word_index=_reuters_words)
