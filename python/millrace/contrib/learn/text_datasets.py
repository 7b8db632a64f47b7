# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn.datasets.text_datasets: DBpedia's articles by what they are about."""

from __future__ import annotations

import os
import tarfile
from typing import Any

import numpy as np

from millrace import gfile
from millrace.contrib.learn import base
from millrace.framework.errors import at_user_line

DBPEDIA_URL = "https://googledrive.com/host/0Bz8a_Dbh9QhbQ2Vic1kxMmZZQ1k"

_FEW_TRAINED = (
    ("Harrow Mills", "Harrow Mills is a company that spins wool."),
    ("Easton College", "Easton College is a school beside a river."),
    ("Mara Lindt", "Mara Lindt is a painter of small harbours."),
)
_FEW_TESTED = (("Orchard Press", "Orchard Press is a company that prints books."),)


def maybe_download_dbpedia(data_dir: Any) -> None:
    """Unpacks dbpedia_csv.tar.gz of a folder, if its tables are not there. Nothing is downloaded: FileNotFoundError when there is no such file."""
    folder = os.path.join(data_dir, "dbpedia_csv")
    if all(gfile.Exists(os.path.join(folder, name)) for name in ("train.csv", "test.csv")):
        return
    archive = os.path.join(data_dir, "dbpedia_csv.tar.gz")
    if not os.path.exists(archive):
        wanted = "%s is missing: put train.csv and test.csv there, or %s (nothing is downloaded)" % (folder, archive)
        raise at_user_line(FileNotFoundError(wanted))
    with tarfile.open(archive) as packed:
        packed.extractall(data_dir, members=[m for m in packed if m.isfile() and m.name in ("dbpedia_csv/train.csv", "dbpedia_csv/test.csv")])


def _few(rows: Any) -> base.Dataset:
    return base.Dataset(np.array(rows), np.arange(1, len(rows) + 1, dtype=np.int32))


def load_dbpedia(size: str = "small", test_with_fake_data: bool = False) -> base.Datasets:
    """Articles of dbpedia_data/dbpedia_csv: title and text, classes from 1 to 14.

    `size`: "small" takes every thousandth row, by files beside the tables; anything else all of them.
    `test_with_fake_data`: a few made-up rows, for which no file is read.
    The environment's TF_EXP_BASE_DIR is the folder that dbpedia_data is in.
    """
    if test_with_fake_data:
        return base.Datasets(train=_few(_FEW_TRAINED), validation=None, test=_few(_FEW_TESTED))
    data_dir = os.path.join(os.getenv("TF_EXP_BASE_DIR", ""), "dbpedia_data")
    maybe_download_dbpedia(data_dir)
    read = []
    for name in ("train", "test"):
        path = os.path.join(data_dir, "dbpedia_csv", name + ".csv")
        if size == "small":
            base.shrink_csv(path, 1000)
            path = os.path.join(data_dir, "dbpedia_csv", name + "_small.csv")
        read.append(base.load_csv_without_header(path, target_dtype=np.int32, features_dtype=str, target_column=0))
    return base.Datasets(train=read[0], validation=None, test=read[1])
