# SPDX-License-Identifier: Apache-2.0
"""Patterns, encodings and runs of words."""

import pytest

import millrace as tf
from millrace.ops import gen_ops


def run(fetch, feed_dict=None):
    with tf.Session() as session:
        return session.run(fetch, feed_dict)


def test_replacing():
    text = tf.constant(["john smith", "a.b"])
    pattern = tf.placeholder(tf.string, [])
    fixed, fed = tf.regex_replace(text, r"(\w+) (\w+)", r"\2,\1"), tf.strings.regex_replace(text, pattern, tf.constant("-"), replace_global=False)
    assert (fixed.op.type, fed.op.type) == ("StaticRegexReplace", "RegexReplace")
    assert run(fixed).tolist() == [b"smith,john", b"a.b"]
    assert run(fed, {pattern: "[.o]"}).tolist() == [b"j-hn smith", b"a-b"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="missing \\]"):
        run(fed, {pattern: "[a"})


def test_matching():
    assert run(tf.strings.regex_full_match(["abc", "abcd"], "[a-c]*")).tolist() == [True, False]


def test_encodings():
    text = ["h\u00e9", b"\xff"]
    assert run(tf.strings.unicode_transcode(text, "UTF-8", "UTF-16-BE")).tolist() == ["h\u00e9".encode("utf-16-be"), b"\xff\xfd"]
    splits, codes, starts = run(gen_ops.unicode_decode_with_offsets(tf.constant(text), "UTF-8", errors="ignore"))
    assert splits.tolist() == [0, 2, 2] and codes.tolist() == [104, 233] and starts.tolist() == [0, 1]
    for encoding in ("utf-8", "utf-16-le", "utf-32-le", "utf-16-be", "utf-32-be"):
        data = "a\u00e9\U0001f600".encode(encoding)
        for cut in range(len(data) + 1):  # never more characters than there are, never less than the whole ones
            codes = run(gen_ops.unicode_decode(tf.constant([data[:cut]]), encoding, errors="ignore"))[1].tolist()
            assert codes == [0x61, 0xE9, 0x1F600][: len(codes)]
        assert codes == [0x61, 0xE9, 0x1F600]
    for splits in ([0, 5], [1, 2], [0, 2, 1, 2], []):
        with tf.Graph().as_default(), pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            run(gen_ops.unicode_encode(tf.constant([97, 98]), tf.constant(splits, tf.int64), output_encoding="UTF-8"))


@pytest.mark.parametrize(
    "text, encoding, codes, starts",
    [
        (b"\xfe\xff\x00*\x00a", "UTF-16", [42, 97], [0, 4]),
        (b"\xff\xfe*\x00a\x00", "UTF-16", [42, 97], [0, 4]),
        (b"\x00*\x00a", "UTF-16", [42, 97], [0, 2]),
        (b"\xff\xfe*\x00", "UTF-16-LE", [0xFEFF, 42], [0, 2]),
        (b"\x00<\xfe\xff", "UTF-16", [60, 0xFEFF], [0, 2]),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32", [97], [0]),
        (b"\xff\xfe", "UTF-16", [0xFFFF], [0]),
        (b"\xff\xfe*", "UTF-16", [0xFFFD], [0]),
    ],
)
def test_marks_of_the_order_of_bytes(text, encoding, codes, starts):
    """A mark at the beginning is left out where the encoding leaves the order to it; values are those of TensorFlow 1.15.5."""
    with tf.Session() as session:
        assert [x.tolist() for x in session.run(tf.strings.unicode_decode_with_offsets(text, encoding))] == [codes, starts]
        assert session.run(tf.strings.unicode_transcode(text, encoding, "UTF-8")) == "".join(map(chr, codes)).encode()


def test_runs_of_words():
    def ngrams(width, pad, **options):
        return run(
            gen_ops.string_n_grams(tf.constant(["a", "b", "c"]), tf.constant([0, 3, 3], tf.int64), " ", [width], "<", ">", pad, options.get("keep", False))
        )

    words, splits = ngrams(2, -1)
    assert words.tolist() == [b"< a", b"a b", b"b c", b"c >", b"< >"] and splits.tolist() == [0, 4, 5]
    assert ngrams(5, 0, keep=True)[0].tolist() == [b"a b c"]
    with pytest.raises(tf.errors.ResourceExhaustedError):
        ngrams(2**20, -1)
    with pytest.raises(tf.errors.InvalidArgumentError):
        ngrams(0, 0)


def test_words_by_segments():
    got = run(tf.strings.unsorted_segment_join(tf.constant([["a", "x"], ["b", "y"]]), tf.constant([1, 1]), 3, "-"))
    assert got.tolist() == [[b"", b""], [b"a-b", b"x-y"], [b"", b""]]
