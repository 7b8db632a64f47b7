# SPDX-License-Identifier: Apache-2.0
"""Summaries that write themselves: tf.contrib.summary, tf.compat.v2.summary and their operations."""

import gc

import numpy as np
import pytest

import millrace as tf
from millrace.ops import gen_ops

S, V2 = tf.contrib.summary, tf.compat.v2.summary


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _events(folder):
    """Those of each file, without the first, which says the version."""
    files = [list(tf.train.summary_iterator(str(path))) for path in sorted(folder.iterdir())]
    assert all(events[0].file_version == "brain.Event:2" for events in files)
    return [events[1:] for events in files]


def _values(folder):
    return [(e.step, v.tag) for events in _events(folder) for e in events for v in e.summary.value]


def test_writers_of_one_folder_have_one_file_that_may_be_opened_again(tmp_path):
    one, two, other = (S.create_file_writer(str(tmp_path), max_queue=1, name=name) for name in (None, "logdir:" + str(tmp_path), "other"))
    with S.always_record_summaries(), one.as_default(), tf.name_scope("scope"):
        scalar = S.scalar("a", 1.0, step=1)

    def count():
        return sorted(len(events) for events in _events(tmp_path))

    with tf.Session() as session:
        session.run([one.init(), two.init()])
        assert count() == [0]
        session.run(scalar)
        assert count() == [0]
        session.run(scalar)  # more than max_queue wait
        assert count() == [2]
        session.run(scalar)
        session.run(S.flush(writer=two))
        assert count() == [3]
        session.run(S.flush(writer=one._resource))
        session.run(two.close())
        session.run(other.init())
        assert count() == [0, 3]
        session.run(one.init())
        session.run(scalar)
        session.run(one.close())
        assert count() == [0, 1, 3]
    assert set(_values(tmp_path)) == {(1, "scope/a")}


def test_events_wait_no_longer_than_they_may(tmp_path):
    writer = S.create_file_writer(str(tmp_path), max_queue=100, flush_millis=0)
    with S.always_record_summaries(), writer.as_default():
        scalar = S.scalar("a", 1.0, step=1)
    with tf.Session() as session:
        session.run(writer.init())
        while len(_values(tmp_path)) < 2:  # the one that comes more than flush_millis later takes those before it along
            session.run(scalar)


def test_what_waits_is_written_at_the_end_of_the_session(tmp_path):
    writer = S.create_file_writer(str(tmp_path))
    with S.always_record_summaries(), writer.as_default():
        scalar = S.scalar("a", 1.0, step=1)
    with tf.Session() as session:
        session.run(writer.init())
        session.run(scalar)
        assert _values(tmp_path) == []
    del session
    gc.collect()
    assert _values(tmp_path) == [(1, "a")]


def test_summaries_that_write_themselves(tmp_path):
    step = tf.train.get_or_create_global_step()
    more = step.assign_add(1)
    writer = S.create_file_writer(str(tmp_path))
    assert S.scalar("nowhere", 1.0).type == "NoOp"
    with writer.as_default(), S.record_summaries_every_n_global_steps(2):
        S.scalar("a", tf.cast(step, tf.float32), family="f")
        S.histogram("h", [1.0, 2.0])
        S.image("i", tf.zeros([1, 2, 2, 3]))
        with S.always_record_summaries():
            S.generic("g", tf.constant([1, 2]), step=7)
        with S.never_record_summaries():
            unwritten = S.scalar("b", 1.0)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.summary.initialize(session=session)
            assert not session.run(unwritten)
            for _ in range(4):
                session.run(tf.summary.all_v2_summary_ops())
                session.run(more)
            session.run(writer.close())
            with pytest.raises(tf.errors.NotFoundError, match="has no file"):
                session.run(S.all_summary_ops())
    assert sorted(_values(tmp_path)) == sorted([(7, "g")] * 4 + [(at, tag) for at in (0, 2) for tag in ("f/f/a", "h", "i/image/0")])
    with pytest.raises(RuntimeError, match="No default"):
        S.initialize()


def test_summaries_in_branches_and_loops_are_written_with_them(tmp_path):
    chosen = tf.placeholder(tf.bool)
    with S.create_file_writer(str(tmp_path), max_queue=0).as_default(), S.always_record_summaries():
        branch = tf.cond(chosen, lambda: S.scalar("yes", 1.0, step=1), lambda: tf.constant(False))
        loop = tf.while_loop(lambda i: i < 3, lambda i: (S.scalar("turn", 1.0, step=i), i + 1)[1], [tf.constant(0, tf.int64)])
        assert S.all_summary_ops() == []  # nothing outside could run them
        with tf.Session() as session:
            S.initialize(session=session)
            assert not session.run(branch, {chosen: False}) and _values(tmp_path) == []
            assert session.run(branch, {chosen: True}) and session.run(loop) == 3
    assert _values(tmp_path) == [(1, "cond/yes"), (0, "while/turn"), (1, "while/turn"), (2, "while/turn")]


def test_summaries_of_2(tmp_path):
    step = tf.Variable(3, dtype=tf.int64)
    writer = V2.create_file_writer(str(tmp_path), filename_suffix=".mine")
    metadata = tf.SummaryMetadata(plugin_data=tf.SummaryMetadata.PluginData(plugin_name="mine"))
    assert V2.experimental.get_step() is None
    with writer.as_default():
        with pytest.raises(ValueError, match="No step set"):
            V2.write("t", 1)
        V2.experimental.set_step(step)
        try:
            with tf.name_scope("around"), V2.experimental.summary_scope("two words") as (tag, scope):
                written = V2.write(tag, [1.5], metadata=metadata)
            off = tf.placeholder(tf.bool)
            with V2.record_if(lambda: off):
                perhaps = V2.experimental.write_raw_pb([tf.Summary(value=[tf.Summary.Value(tag=t, simple_value=2)]).SerializeToString() for t in "pq"], step=9)
        finally:
            V2.experimental.set_step(None)
    assert (tag, scope) == ("around/two words", "around/twowords/")
    with V2.create_noop_writer().as_default():
        nowhere = V2.write("t", 1)
    with tf.Session() as session:
        session.run([step.initializer, writer.init()])
        assert session.run([written, nowhere]) == [True, False]
        assert session.run([perhaps], {off: False}) == [False] and session.run([perhaps], {off: True}) == [True]
        session.run(writer.close())
    assert [path.name.endswith(".mine") for path in tmp_path.iterdir()] == [True]
    assert _values(tmp_path) == [(3, "around/two words"), (9, "p"), (9, "q")]
    (value,) = _events(tmp_path)[0][0].summary.value
    assert value.metadata.plugin_data.plugin_name == "mine" and tf.make_ndarray(value.tensor).tolist() == [1.5]


def test_kinds_of_summaries_of_2(tmp_path):
    """As TensorBoard 1.15 has them."""
    writer = V2.create_file_writer(str(tmp_path))
    with writer.as_default():
        V2.scalar("s", tf.constant(2), step=3, description="what it is")
        V2.text("t", [["a", "b"]], step=3)
        for name, values in (("h", [1.0, 2.0, 2.0, 5.0]), ("one", [2, 2]), ("none", np.zeros(0, "f"))):
            V2.histogram(name, values, step=3, buckets=3)
        V2.image("i", np.linspace(0, 1, 24).reshape(2, 2, 3, 2)[..., :1], step=3, max_outputs=1)
        V2.image("nothing", np.zeros((0, 2, 3, 1), np.uint8), step=3)
        V2.audio("a", np.linspace(-1, 1, 8, dtype="f").reshape(2, 4, 1), 8000, step=3, max_outputs=1, encoding="wav")
        for wrong in (
            lambda: V2.scalar("x", [1], 3),
            lambda: V2.text("x", 1, 3),
            lambda: V2.image("x", [1], 3),
            lambda: V2.audio("x", [[[1.0]]], 1, 3, 1, "mp3"),
        ):
            with pytest.raises(ValueError):
                wrong()
    with tf.Session() as session:
        session.run(writer.init())
        assert all(session.run(tf.summary.all_v2_summary_ops()))
        session.run(writer.close())
    found = {v.tag: v for e in _events(tmp_path)[0] for v in e.summary.value}
    plugins = {"s": "scalars", "t": "text", "h": "histograms", "one": "histograms", "none": "histograms", "i": "images", "nothing": "images", "a": "audio"}
    assert {tag: v.metadata.plugin_data.plugin_name for tag, v in found.items()} == plugins
    made = {tag: tf.make_ndarray(v.tensor) for tag, v in found.items()}
    assert found["s"].metadata.summary_description == "what it is" and made["s"].dtype == np.float32 and made["s"] == 2
    assert made["t"].tolist() == [[b"a", b"b"]]
    np.testing.assert_allclose(made["h"], [[1, 7 / 3, 3], [7 / 3, 11 / 3, 0], [11 / 3, 5, 1]])
    assert made["one"].tolist() == [[1.5, 2.5, 2]] and made["none"].shape == (0, 3)
    assert made["i"][:2].tolist() == [b"3", b"2"] and len(made["i"]) == 3 and made["i"][2].startswith(b"\x89PNG") and made["nothing"].tolist() == [b"3", b"2"]
    assert found["a"].metadata.plugin_data.content == b"\x10\x0b" and made["a"].shape == (1, 2) and made["a"][0, 0].startswith(b"RIFF")


def _writing(folder, make):
    """The event that an operation writes, without its time."""
    writer = gen_ops.summary_writer(shared_name="w")
    file = gen_ops.create_summary_file_writer(writer, str(folder), 0, 1000, "")
    with tf.Session() as session:
        session.run(file)
        session.run(make(writer))
    ((event,),) = _events(folder)
    assert event.wall_time > 1e9
    return event


@pytest.mark.parametrize("value", [np.float32(2.5), np.int8(-3), np.uint64(7), np.float16(0.5), np.float32([4])])
def test_scalars(tmp_path, value):
    event = _writing(tmp_path, lambda w: gen_ops.write_scalar_summary(w, 1, "a", value))
    assert event.step == 1 and [(v.tag, v.simple_value) for v in event.summary.value] == [("a", float(np.ravel(value)[0]))]


@pytest.mark.parametrize(
    "write, plain",
    [
        (lambda w: gen_ops.write_histogram_summary(w, 1, "a", [1.0, 2.0, 2.0]), lambda: gen_ops.histogram_summary("a", [1.0, 2.0, 2.0])),
        (
            lambda w: gen_ops.write_image_summary(w, 1, "a", np.float32([np.nan, 1, 2]).reshape(3, 1, 1, 1), np.uint8([9]), max_images=2),
            lambda: gen_ops.image_summary("a", np.float32([np.nan, 1, 2]).reshape(3, 1, 1, 1), max_images=2, bad_color=np.uint8([9])),
        ),
        (
            lambda w: gen_ops.write_audio_summary(w, 1, "a", np.ones((2, 4), "f"), 8000.0, max_outputs=1),
            lambda: gen_ops.audio_summary_v2("a", np.ones((2, 4), "f"), 8000.0, max_outputs=1),
        ),
    ],
)
def test_written_summaries_are_those_of_the_plain_operations(tmp_path, write, plain):
    event = _writing(tmp_path, write)
    with tf.Session() as session:
        assert event.summary == tf.Summary.FromString(session.run(plain()))


def test_graphs_and_events(tmp_path):
    definition = tf.get_default_graph().as_graph_def().SerializeToString()
    (tmp_path / "g").mkdir(), (tmp_path / "e").mkdir()
    assert _writing(tmp_path / "g", lambda w: gen_ops.write_graph_summary(w, 5, definition)).graph_def == definition
    given = tf.Event(step=9, wall_time=2e9, summary=tf.Summary(value=[tf.Summary.Value(tag="q", simple_value=1)]))
    assert _writing(tmp_path / "e", lambda w: gen_ops.import_event(w, given.SerializeToString())) == given
    with S.create_file_writer(str(tmp_path / "h")).as_default():
        with pytest.raises(TypeError, match="needs a tf.Tensor"):
            S.graph(tf.get_default_graph())
        with tf.Session() as session:
            tf.summary.initialize(tf.get_default_graph(), session)
            session.run(S.flush())
    ((event,),) = _events(tmp_path / "h")
    assert any(n.op == "SummaryWriter" for n in tf.GraphDef.FromString(event.graph_def).node)


@pytest.mark.parametrize(
    "write, kind, text",
    [
        (lambda w: gen_ops.write_scalar_summary(w, 1, "a", [1.0, 2.0]), tf.errors.InvalidArgumentError, "must be a scalar"),
        (lambda w: gen_ops.write_scalar_summary(w, 1, "a", np.zeros(0, "f")), tf.errors.InvalidArgumentError, "must be a scalar"),
        (lambda w: gen_ops.write_histogram_summary(w, 1, "a", [np.nan]), tf.errors.InvalidArgumentError, "NaN in summary histogram"),
        (lambda w: gen_ops.write_graph_summary(w, 1, "junk"), tf.errors.DataLossError, "Bad tf.GraphDef"),
        (lambda w: gen_ops.import_event(w, "junk"), tf.errors.DataLossError, "Bad tf.Event"),
        (lambda w: gen_ops.import_event(w, tf.Event(wall_time=np.nan).SerializeToString()), tf.errors.InvalidArgumentError, "finite time"),
        (lambda w: gen_ops.write_raw_proto_summary(w, 1, ["", "junk"]), tf.errors.DataLossError, "Bad tf.compat.v1.Summary"),
        (lambda w: gen_ops.write_summary(w, 1, 2, "t", "junk"), tf.errors.InvalidArgumentError, "no SummaryMetadata"),
        (lambda w: gen_ops.create_summary_file_writer(w, "/tmp", -1, 0, ""), tf.errors.InvalidArgumentError, "max_queue is -1"),
        (lambda w: gen_ops.create_summary_file_writer(w, "/tmp", 0, 0, "../x"), tf.errors.InvalidArgumentError, "want no slash"),
        (lambda w: gen_ops.create_summary_db_writer(w, "file:x", "", "", ""), tf.errors.UnimplementedError, "not written to databases"),
    ],
)
def test_refusals(tmp_path, write, kind, text):
    with pytest.raises(kind, match=text):
        _writing(tmp_path, write)


def test_databases_are_refused_where_they_are_asked_for():
    with pytest.raises(NotImplementedError, match="create_file_writer"):
        S.create_db_writer("file:x")
    with pytest.raises(ValueError, match="logdir cannot be None"):
        V2.create_file_writer(None)


def test_writers_of_one_session_share_a_file(tmp_path):
    def tag(name):
        return tf.Summary(value=[tf.Summary.Value(tag=name, simple_value=1.0)])

    with tf.Session() as session, tf.Session() as other:
        first = tf.summary.FileWriter(tmp_path / "a", session=session)
        first.add_summary(tag("one"), 1)
        second = tf.summary.FileWriter(tmp_path / "a", session=session)
        second.add_summary(tag("two"), 2)
        first.close()
        second.add_summary(tag("three"), 3)
        for writer in (tf.summary.FileWriter(tmp_path / "b", session=session), tf.summary.FileWriter(tmp_path / "a", session=other)):
            writer.close()
        second.close()
    assert [len(list((tmp_path / folder).iterdir())) for folder in "ab"] == [2, 1]
    assert sorted(_values(tmp_path / "a")) == [(1, "one"), (2, "two"), (3, "three")]
