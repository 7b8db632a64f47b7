# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow that programs use: which are there, and which wait for what docs/compatibility.md says they wait for."""

import csv
import os
import re

import pytest

import millrace as tf
from millrace.framework.missing import Missing

HERE = os.path.dirname(__file__)
ROOT = os.path.join(HERE, "..", "..")
TIERS = os.path.join(ROOT, "..", "shared", "spec", "api-tiers.csv")
# What a name may wait for: rows of the table in docs/compatibility.md. Nothing else that programs use may be missing.
REASONS = {"image codecs"}


def names():
    with open(os.path.join(HERE, "tier_names.txt"), encoding="utf-8") as file:
        return file.read().split()


def is_missing(name):
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
        if isinstance(value, Missing):
            return True
    return False


def waiting():
    """{row of the table: names below tf}; the text "in `train`:" puts what follows below tf.train, "all of `data`" is a prefix."""
    with open(os.path.join(ROOT, "docs", "compatibility.md"), encoding="utf-8") as file:
        table = file.read().split("| waits for | names of `tf` |")[1].split("\n\n")[0]
    found = {}
    for line in table.splitlines()[2:]:
        reason, cell = (part.strip() for part in line.strip("|").split("|"))
        prefix, listed = "", found.setdefault(reason, set())
        for into, every, name in re.findall(r"in `([\w.]+)`|all of `([\w.]+)`|`([\w.]+)`", cell):
            if into:
                prefix = into + "."
            else:
                listed.add(every + ".*" if every else prefix + name)
    return found


def covers(listed, name):
    return any(name == row or name.startswith(row + ".") or row.endswith(".*") and name.startswith(row[:-1]) for row in listed)


def test_what_is_missing_waits_for_what_is_said():
    rows = waiting()
    allowed = set().union(*(rows.get(reason, set()) for reason in REASONS))
    missing = {name for name in names() if is_missing(name)}
    assert sorted(name for name in missing if not covers(allowed, name)) == [], "missing, and not listed in docs/compatibility.md"
    there = [name for name in names() if name not in missing and covers(allowed, name)]
    assert there == [], "listed in docs/compatibility.md as missing, but there"


def test_what_is_said_to_wait_does():
    """Names that no program was seen to use, too."""
    for reason in REASONS & waiting().keys():
        for row in waiting()[reason]:
            assert is_missing(row[:-2] + ".Dataset" if row.endswith(".*") else row), row


def test_missing_names_say_so():
    with pytest.raises(NotImplementedError, match="tf.contrib.seq2seq.DynamicAttentionWrapper is not provided yet: use"):
        tf.contrib.seq2seq.DynamicAttentionWrapper("here")


@pytest.mark.skipif(not os.path.exists(TIERS), reason="the list of names by use is not beside the repository")
def test_every_name_in_use_is_listed():
    with open(TIERS, encoding="utf-8") as file:
        used = {row["canonical"] for row in csv.DictReader(file) if row["tier"] in ("T1a", "T1b", "T2")}
    assert used == set(names())
