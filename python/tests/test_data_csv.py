# SPDX-License-Identifier: Apache-2.0
"""CSV files as data sets, with what TensorFlow 1.15.5 gives for them."""

import gzip

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops

TEXTS, WRONG = [tf.string, tf.string], "InvalidArgumentError"


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def rows(session, dataset, most=12):
    """The rows, and what is wrong with others in their places."""
    iterator = dataset.make_initializable_iterator()
    following, found = iterator.get_next(), []
    session.run(iterator.initializer)
    while len(found) < most:
        try:
            found.append([np.asarray(value).tolist() for value in session.run(following)])
        except tf.errors.OutOfRangeError:
            return found
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize(
    "content,options,wanted",
    [
        (b"a,b\nc,d", {}, [[b"a", b"b"], [b"c", b"d"]]),
        (b"a,b\rc,d\r\n", {}, [[b"a", b"b"], [b"c", b"d"]]),
        (b'"a,b","c\r\nd"\r\n"e""",f\r\n', {}, [[b"a,b", b"c\r\nd"], [b'e"', b"f"]]),
        (b"a\x00b,c\n", {}, [[b"a\x00b", b"c"]]),
        (b"", {}, []),
        (b"x,y", {"header": True}, []),
        (b"", {"header": True}, [WRONG]),
        (b'"x\ny",z\na,b\n', {"header": True}, [[b"a", b"b"]]),
        (b'a,"b"\nd,e\n', {"use_quote_delim": False}, [[b"a", b'"b"'], [b"d", b"e"]]),
        (b"a|b\n", {"field_delim": "|"}, [[b"a", b"b"]]),
        (b"1,2,3\n4,5,6\n", {"select_cols": [0, 2]}, [[b"1", b"3"], [b"4", b"6"]]),
        # What is broken is an error in its place.
        (b"a\n", {}, [WRONG]),
        (b"a,b\n\nc,d\n", {}, [[b"a", b"b"], WRONG, [b"c", b"d"]]),
        (b"a,b,c\nd,e\n", {}, [WRONG, [b"d", b"e"]]),
        (b'a"b,c\nd,e\n', {}, [WRONG, [b"d", b"e"]]),
        (b'"a" ,c\nd,e\n', {}, [WRONG]),
        (b'a,b\n"', {}, [[b"a", b"b"], WRONG]),
        (b'a,""\n', {}, [WRONG]),
    ],
)
def test_texts(session, tmp_path, content, options, wanted):
    (tmp_path / "a.csv").write_bytes(content)
    assert rows(session, tf.data.experimental.CsvDataset([str(tmp_path / "a.csv")], TEXTS, **options)) == wanted


@pytest.mark.parametrize(
    "content,defaults,wanted",
    [
        (b"1.5,1e400\nx,y\n-inf,2\n", [tf.float32, tf.float64], [[1.5, float("inf")], WRONG, [float("-inf"), 2.0]]),
        (b"2147483648,1\n 3 ,4\n7,9223372036854775808\n", [tf.int32, tf.int64], [WRONG, [3, 4], WRONG]),
        (b",b\nNA,c\nx,d\n2,NA\n", [[7], tf.string], [[7, b"b"], [7, b"c"], WRONG, WRONG]),
        (b"a,\n,b\n", [["l"], "r"], [[b"a", b"r"], [b"l", b"b"]]),
    ],
)
def test_numbers_and_defaults(session, tmp_path, content, defaults, wanted):
    (tmp_path / "a.csv").write_bytes(content)
    assert rows(session, tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), defaults, na_value="NA")) == wanted


def test_several_files(session, tmp_path):
    names = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    for name, line in zip(names, (b"a,b\n", b"c,d\n")):
        with gzip.open(name, "wb") as opened:
            opened.write(b"x,y\n" + line)
    assert rows(session, tf.data.experimental.CsvDataset(names, TEXTS, "GZIP", header=True)) == [[b"a", b"b"], [b"c", b"d"]]
    assert rows(session, tf.data.experimental.CsvDataset(names[:1] + ["/none"], TEXTS, "GZIP"), 4)[2:] == ["NotFoundError"] * 2
    (tmp_path / "b.csv").write_bytes(gzip.compress(b"e,f\n")[:-6])
    assert rows(session, tf.data.experimental.CsvDataset([names[1], names[0]], TEXTS, "GZIP"))[-3:] == ["DataLossError", [b"x", b"y"], [b"a", b"b"]]


def test_a_long_record(session, tmp_path):
    text = b'say ""it""\n' * 100000
    (tmp_path / "a.csv").write_bytes(b'"' + text + b'",1\n2,3\n')
    assert rows(session, tf.data.experimental.CsvDataset(str(tmp_path / "a.csv"), TEXTS)) == [[text.replace(b'""', b'"'), b"1"], [b"2", b"3"]]


@pytest.mark.parametrize(
    "change",
    [
        {"buffer_size": 0},
        {"field_delim": "||"},
        {"field_delim": '"'},
        {"compression_type": "BZ"},
        {"select_cols": [1, 0]},
        {"select_cols": [0]},
        {"select_cols": [-1, 0]},
    ],
)
@pytest.mark.parametrize("op", [gen_ops.csv_dataset, gen_ops.experimental_csv_dataset])
def test_what_is_refused(session, op, change):
    given = {
        "filenames": ["a"],
        "compression_type": "",
        "buffer_size": 1,
        "header": False,
        "field_delim": ",",
        "use_quote_delim": True,
        "na_value": "",
        "select_cols": np.array([], np.int64),
        "record_defaults": [np.array([], np.int32)] * 2,
    }
    given.update(change, select_cols=np.array(change.get("select_cols", []), np.int64))
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(op(**given, output_shapes=[[], []]))


def test_names_and_types_are_guessed_of_gzip_files(session, tmp_path):
    (tmp_path / "a.csv").write_bytes(gzip.compress(b"x,y\n1,2.5\n3,a\n"))
    make = tf.data.experimental.make_csv_dataset
    made = make(str(tmp_path / "a.csv"), 2, num_epochs=1, shuffle=False, compression_type="GZIP")
    assert made.output_types == {"x": tf.int32, "y": tf.string}
    (row,) = [session.run(made.make_one_shot_iterator().get_next())]
    assert row["x"].tolist() == [1, 3] and row["y"].tolist() == [b"2.5", b"a"]
    with pytest.raises(ValueError, match="compression_type .ZLIB. is not supported"):
        make(str(tmp_path / "a.csv"), 2, compression_type="ZLIB")
    with pytest.raises(ValueError, match="2 column_defaults for 1 columns"):
        make(str(tmp_path / "a.csv"), 2, column_defaults=[tf.int32, tf.int32], column_names=["x", "y", "z"], select_columns=["x"])
