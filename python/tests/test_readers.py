# SPDX-License-Identifier: Apache-2.0
"""Readers of files whose names come from a queue."""

import gzip
import threading
import time

import pytest

import millrace as tf
from millrace.ops import gen_ops


class Names:
    """A queue of names."""

    def __init__(self):
        self.queue_ref = gen_ops.fifo_queue_v2([tf.string], shapes=[[]])
        self.names = tf.placeholder(tf.string, [None])
        self.put = gen_ops.queue_enqueue_many_v2(self.queue_ref, [self.names])
        self.close = gen_ops.queue_close_v2(self.queue_ref)

    def fill(self, session, *names):
        session.run(self.put, {self.names: [str(n) for n in names]})
        session.run(self.close)


def records(reader, *paths):
    """All records, keys without folders, and the error at the end."""
    names = Names()
    key, value = reader.read(names)
    assert key.get_shape().as_list() == [] and value.dtype == tf.string
    found = []
    with tf.Session() as session:
        names.fill(session, *paths)
        for _ in range(50):
            try:
                k, v = session.run([key, value])
            except tf.OpError as error:
                return found, error
            found.append((k.decode().rsplit("/", 1)[-1], v))
    raise AssertionError("no end")


def test_lines(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\ntwo\r\nthree")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"x\n" * 3)
    found, end = records(tf.TextLineReader(skip_header_lines=1), *(tmp_path / n for n in "abc"))
    assert found == [("a:2", b""), ("a:3", b"two"), ("a:4", b"three"), ("c:2", b"x"), ("c:3", b"x")]
    assert isinstance(end, tf.errors.OutOfRangeError)


def test_long_lines(tmp_path):
    lines = [b"x" * n for n in (3, 300_000, 262_143, 262_144, 0, 5)]
    (tmp_path / "a").write_bytes(b"\n".join(lines) + b"\n")
    found, _ = records(tf.TextLineReader(), tmp_path / "a")
    assert [v for _, v in found] == lines


def test_whole_files(tmp_path):
    (tmp_path / "a").write_bytes(b"\x00\xff")
    (tmp_path / "b").write_bytes(b"")
    assert records(tf.WholeFileReader(), tmp_path / "a", tmp_path / "b")[0] == [("a", b"\x00\xff"), ("b", b"")]


@pytest.mark.parametrize(
    "options, expected",
    [
        (dict(record_bytes=3), [b"012", b"345", b"678", b"9ab"]),
        (dict(record_bytes=4, header_bytes=1, footer_bytes=2, hop_bytes=2), [b"1234", b"3456", b"5678"]),
        (dict(record_bytes=2, hop_bytes=5), [b"01", b"56", b"ab"]),
        (dict(record_bytes=2, header_bytes=99), []),
        (dict(record_bytes=2, footer_bytes=2**62), []),
        (dict(record_bytes=13), []),
        (dict(record_bytes=12), [b"0123456789ab"]),
        (dict(record_bytes=2**62), []),
    ],
)
@pytest.mark.parametrize("encoding", ["", "GZIP"])
def test_records_of_one_length(tmp_path, options, expected, encoding):
    data = b"0123456789ab"
    (tmp_path / "a").write_bytes(gzip.compress(data) if encoding else data)
    found, _ = records(tf.FixedLengthRecordReader(encoding=encoding, **options), tmp_path / "a")
    assert found == [("a:%d" % i, v) for i, v in enumerate(expected)]


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(record_bytes=0), "record_bytes must be > 0"),
        (dict(record_bytes=2, hop_bytes=-1), "hop_bytes must be >= 0"),
        (dict(record_bytes=2, encoding="LZ4"), "LZ4"),
        (dict(record_bytes=2**62, footer_bytes=2**62), "more than a file can hold"),
    ],
)
def test_lengths_that_cannot_be(tmp_path, options, message):
    (tmp_path / "a").write_bytes(b"x")
    found, end = records(tf.FixedLengthRecordReader(**options), tmp_path / "a")
    assert found == [] and isinstance(end, tf.errors.InvalidArgumentError) and message in str(end)


@pytest.mark.parametrize("kind", ["NONE", "ZLIB", "GZIP"])
def test_files_of_records(tmp_path, kind):
    options = tf.python_io.TFRecordOptions(getattr(tf.python_io.TFRecordCompressionType, kind))
    with tf.python_io.TFRecordWriter(str(tmp_path / "a"), options) as writer:
        for payload in (b"first", b"", b"x" * 100):
            writer.write(payload)
    found, _ = records(tf.TFRecordReader(options=options), tmp_path / "a")
    assert found == [("a:0", b"first"), ("a:21", b""), ("a:37", b"x" * 100)]


def test_a_damaged_file_of_records(tmp_path):
    path = tmp_path / "a"
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        writer.write(b"first")
        writer.write(b"second")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    found, end = records(tf.TFRecordReader(), path)
    assert found == [("a:0", b"first")] and isinstance(end, tf.errors.DataLossError) and str(path) in str(end)


def test_a_missing_file_is_passed_over(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    for reader in (tf.TextLineReader(), tf.WholeFileReader()):
        names = Names()
        read = reader.read(names)
        with tf.Session() as session:
            names.fill(session, tmp_path / "none", tmp_path / "a")
            with pytest.raises(tf.errors.NotFoundError, match="none"):
                session.run(read)
            assert session.run(read)[1] == b"x"


def test_many_at_once(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n3\n4\n5\n")
    (tmp_path / "b").write_bytes(b"6\n")
    names, reader = Names(), tf.TextLineReader()
    keys, values = reader.read_up_to(names, 3)
    none = reader.read_up_to(names, tf.constant(0, tf.int64))
    assert keys.get_shape().as_list() == [None]
    with tf.Session() as session:
        names.fill(session, tmp_path / "a", tmp_path / "b")
        assert [len(v) for v in session.run(none)] == [0, 0]
        assert [session.run(values).tolist() for _ in range(3)] == [[b"1", b"2", b"3"], [b"4", b"5"], [b"6"]]
        assert session.run([reader.num_records_produced(), reader.num_work_units_completed()]) == [6, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(values)
        assert session.run(reader.num_work_units_completed()) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_records"):
            session.run(reader.read_up_to(names, -1))


def test_state_and_reset():
    names, reader = Names(), tf.IdentityReader()
    state, given = reader.serialize_state(), tf.placeholder(tf.string, [])
    read, restore = reader.read(names), reader.restore_state(given)
    assert reader.supports_serialize and not tf.WholeFileReader().supports_serialize
    with tf.Session() as session:
        names.fill(session, *"abc")
        session.run(read)
        kept = session.run(state)
        session.run(read)
        assert session.run(reader.num_records_produced()) == 2
        session.run(restore, {given: kept})
        assert session.run(reader.num_records_produced()) == 1
        for bad in (b"\xff", b"\x08\x05", b"\x18" + b"\xff" * 9 + b"\x01"):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(restore, {given: bad})
        session.run(reader.reset())
        assert session.run([reader.num_records_produced(), state]) == [0, b""]
        with pytest.raises(tf.errors.UnimplementedError):
            session.run(tf.TextLineReader().serialize_state())


def test_many_empty_files(tmp_path):
    """None of them is a call within the call for the one before."""
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "a").write_bytes(b"x")
    names, reader = Names(), tf.TextLineReader()
    read = reader.read(names)
    with tf.Session() as session:
        names.fill(session, *[tmp_path / "empty"] * 20000, tmp_path / "a")
        assert session.run(read)[1] == b"x"


def test_reads_wait_for_names(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n3\n4\n")
    names, reader = Names(), tf.TextLineReader()
    read, found = reader.read(names)[1], []
    with tf.Session() as session:
        threads = [threading.Thread(target=lambda: found.append(session.run(read))) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        assert found == [] and session.run(tf.constant(3) + 4) == 7
        session.run(names.put, {names.names: [str(tmp_path / "a")]})
        for thread in threads:
            thread.join(20)
        assert sorted(found) == [b"1", b"2", b"3", b"4"]


def test_waiting_reads_end_by_their_deadline_and_by_the_end_of_the_queue(tmp_path):
    names, reader = Names(), tf.TextLineReader()
    read, errors = reader.read(names)[1], []

    def attempt(**options):
        try:
            session.run(read, **options)
        except tf.OpError as error:
            errors.append(type(error).__name__)

    with tf.Session() as session:
        attempt(options=tf.RunOptions(timeout_in_ms=100))
        waiting = threading.Thread(target=attempt)
        waiting.start()
        time.sleep(0.1)
        attempt(options=tf.RunOptions(timeout_in_ms=100))  # behind the other
        assert errors == ["DeadlineExceededError"] * 2
        session.run(names.close)
        waiting.join(20)
        assert errors[2:] == ["OutOfRangeError"]


def test_lmdb_says_what_it_is():
    with pytest.raises(tf.errors.UnimplementedError, match="LMDB"), tf.Session() as session:
        session.run(tf.LMDBReader().reader_ref)


def test_batches_without_queues(tmp_path):
    for i in range(3):
        with tf.python_io.TFRecordWriter(str(tmp_path / ("f%d" % i))) as writer:
            for k in range(5):
                writer.write(b"%d" % (5 * i + k))
    (tmp_path / "empty").write_bytes(b"")
    everything = [b"%d" % k for k in range(15)]
    batch = gen_ops.record_input(str(tmp_path / "f*"), batch_size=5, file_buffer_size=4, file_shuffle_shift_ratio=0.5)
    whole = gen_ops.record_input(str(tmp_path / "*"), batch_size=15)
    assert batch.get_shape().as_list() == [5]
    with tf.Session() as session:
        for _ in range(3):  # epochs do not mix
            assert sorted(sum((session.run(batch).tolist() for _ in range(3)), [])) == sorted(everything)
        first, second = session.run(whole).tolist(), session.run(whole).tolist()
        assert sorted(first) == sorted(second) == sorted(everything) and first != second
        for pattern in ("none*", "empty"):
            with pytest.raises(tf.errors.NotFoundError):
                session.run(gen_ops.record_input(str(tmp_path / pattern)))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)), tf.Session() as session:
        session.run(gen_ops.record_input("x", batch_size=0))
