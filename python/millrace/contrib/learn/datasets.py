# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Data sets."""

from typing import Any, Optional

import numpy as np

from millrace.framework import arguments
from millrace.contrib.learn import base
from millrace.examples.tutorials.mnist import input_data as mnist  # noqa: F401
from millrace.examples.tutorials.mnist.input_data import load_mnist, read_data_sets  # noqa: F401
from millrace.framework.errors import at_user_line


def load_iris(data_path: Optional[str] = None) -> base.Dataset:
    """Measures of 150 irises of three kinds: of a file, or those that scikit-learn brings along."""
    if data_path is not None:
        return base.load_csv_with_header(data_path, np.int32, np.float32)
    try:
        from sklearn import datasets  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise at_user_line(ImportError("load_iris needs scikit-learn, which has the data: pip install scikit-learn")) from None
    made = datasets.load_iris()
    return base.Dataset(made.data, made.target)


DATASETS = {"iris": load_iris, "mnist": load_mnist}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """A data set by name."""
    arguments.only(False, test_with_fake_data=test_with_fake_data)
    arguments.only("small", size=size)
    if name in ("boston", "dbpedia"):
        raise at_user_line(NotImplementedError("load_dataset(%r) is not provided: read the data with learn.datasets.base.load_csv_with_header." % name))
    if name not in DATASETS:
        raise at_user_line(ValueError("Name of dataset is not found: %s" % name))
    return DATASETS[name]()
