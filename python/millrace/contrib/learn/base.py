# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.datasets.base: tables from files, and files from the network."""

from __future__ import annotations

import collections
import csv
import errno
import os
import random
import tempfile
import time
import urllib.request
from typing import Any

import numpy as np

from millrace import gfile, tf_logging
from millrace.contrib.learn import tables

Dataset = collections.namedtuple("Dataset", ["data", "target"])
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


def _split(rows: Any, target_column: int) -> Any:
    target = [row.pop(target_column) for row in rows]
    return rows, target


def load_csv_with_header(filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """A table whose first row tells how many rows and columns of features follow."""
    with gfile.GFile(filename) as file:
        rows = list(csv.reader(file))
    count, width = int(rows[0][0]), int(rows[0][1])
    data, target = _split(rows[1 : count + 1], target_column)
    return Dataset(np.array(data, features_dtype).reshape(count, width), np.array(target, target_dtype))


def load_csv_without_header(filename: Any, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """A table."""
    with gfile.GFile(filename) as file:
        data, target = _split(list(csv.reader(file)), target_column)
    return Dataset(np.array(data, features_dtype), np.array(target, target_dtype))


def load_csv(filename: Any, target_dtype: Any, target_column: int = -1, has_header: bool = True) -> Dataset:
    """A table of float64 features."""
    load = load_csv_with_header if has_header else load_csv_without_header
    return load(filename, target_dtype, np.float64, target_column)


def load_iris(data_path: Any = None) -> Dataset:
    """Measures of 150 irises of three kinds: Fisher's, or those of a file."""
    if data_path is not None:
        return load_csv_with_header(data_path, np.int64, np.float64)
    return Dataset(*tables.irises())


def load_boston(data_path: Any = None) -> Dataset:
    """What 506 houses of Boston cost, and what is known of them: Harrison's and Rubinfeld's, or those of a file."""
    if data_path is not None:
        return load_csv_with_header(data_path, np.float64, np.float64)
    return Dataset(*tables.houses())


def shrink_csv(filename: Any, ratio: int) -> None:
    """Writes every ratio-th row of a table into a file beside it, x_small.csv of x.csv."""
    with gfile.GFile(filename) as file, gfile.GFile(str(filename).replace(".csv", "_small.csv"), "w") as small:
        csv.writer(small).writerows(row for i, row in enumerate(csv.reader(file)) if i % ratio == 0)


_DELAYS = (1.0, 2.0, 4.0, 8.0, 16.0)


def urlretrieve_with_retry(url: str, filename: Any = None) -> Any:
    """urllib.request.urlretrieve, again after 1, 2, 4, 8 and 16 seconds, a quarter more or less, where it takes too long."""
    for delay in _DELAYS:
        try:
            return urllib.request.urlretrieve(url, filename)
        except OSError as error:
            if error.errno != errno.ETIMEDOUT:
                raise
            tf_logging.warn("Retrying %s after %s", url, error)
            time.sleep(delay * random.uniform(0.75, 1.25))
    return urllib.request.urlretrieve(url, filename)


def maybe_download(filename: str, work_directory: Any, source_url: str) -> str:
    """The path of a file in a folder; it is fetched if it is not there."""
    os.makedirs(work_directory, exist_ok=True)
    path = os.path.join(work_directory, filename)
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=work_directory) as folder:  # a file that is there is whole
            os.replace(urlretrieve_with_retry(source_url, os.path.join(folder, "part"))[0], path)
    return path
