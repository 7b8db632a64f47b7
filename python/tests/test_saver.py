# SPDX-License-Identifier: Apache-2.0
"""Savers: what is written under which name, which checkpoints stay, and what a graph is read back as."""

import os

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.train.saver import BaseSaverBuilder
from millrace.train.session_manager import SessionManager


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _save(path, saver=None, **kwargs):
    saver = saver or tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return saver.save(session, str(path), **kwargs)


def test_parts_of_a_variable_are_saved_as_one_tensor(tmp_path):
    value = np.arange(30, dtype=np.float32).reshape(10, 3)
    whole = tf.get_variable("w", initializer=value, partitioner=tf.fixed_size_partitioner(3))
    train = tf.train.AdamOptimizer(0.0).minimize(tf.reduce_sum(whole.as_tensor()))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
    shapes = dict(tf.train.list_variables(path))
    assert shapes == {"w": [10, 3], "w/Adam": [10, 3], "w/Adam_1": [10, 3], "beta1_power": [], "beta2_power": []}
    np.testing.assert_array_equal(tf.train.NewCheckpointReader(path).get_tensor("w"), value)
    # Cut in another way, or not at all, it is read back by its name.
    for partitioner in (tf.fixed_size_partitioner(2), None):
        with tf.Graph().as_default(), tf.Session() as session:
            again = tf.get_variable("w", [10, 3], partitioner=partitioner)
            tf.train.Saver([again]).restore(session, path)
            np.testing.assert_array_equal(session.run(tf.convert_to_tensor(again)), value)


def test_parts_keep_what_they_are_in_a_meta_graph(tmp_path):
    tf.get_variable("w", [4], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    path = _save(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(path + ".meta").restore(session, path)
        part = tf.global_variables()[1]
        assert part._get_save_slice_info().spec == "4 2,2"
        other = tf.train.Saver().save(session, str(tmp_path / "other"))
        assert dict(tf.train.list_variables(other)) == {"w": [4]}


@pytest.mark.parametrize("keep", [1, 2])
def test_as_many_checkpoints_stay_as_are_asked_for(tmp_path, keep):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=keep)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        paths = [saver.save(session, str(tmp_path / "m"), step) for step in range(4)]
    assert saver.last_checkpoints == paths[-keep:]
    assert sorted(p.name for p in tmp_path.glob("*.index")) == ["m-%d.index" % i for i in range(4 - keep, 4)]
    assert sorted(p.name for p in tmp_path.glob("*.meta")) == ["m-%d.meta" % i for i in range(4 - keep, 4)]
    assert list(tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths) == paths[-keep:]


@pytest.mark.parametrize("none", [0, None])
def test_a_saver_that_keeps_all_keeps_no_list(tmp_path, none):
    tf.Variable(1.0)
    saver = tf.train.Saver(max_to_keep=none)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in range(3):
            saver.save(session, str(tmp_path / "m"), step)
    assert saver.last_checkpoints == [] and len(list(tmp_path.glob("*.index"))) == 3


def test_without_state_nothing_is_counted(tmp_path):
    tf.Variable(1.0)
    saver = tf.train.Saver()
    _save(tmp_path / "m", saver, write_state=False)
    assert saver.last_checkpoints == [] and not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_formats_and_shards(tmp_path, sharded, version):
    with tf.device("/cpu:0"):
        first = tf.Variable([1.0, 2.0], name="first")
    second = tf.Variable(3, name="second")
    saver = tf.train.Saver(sharded=sharded, write_version=version, restore_sequentially=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "m"))
        assert path.endswith("-?????-of-00002") == (sharded and version == 1)
        session.run([first.assign([0.0, 0.0]), second.assign(0)])
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(first), [1.0, 2.0])
        assert session.run(second) == 3
    assert tf.train.checkpoint_exists(path)


def test_values_take_the_variables_shape_where_asked_for(tmp_path):
    tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
    path = _save(tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as session:
        flat = tf.Variable(tf.zeros([4]), name="v")
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.train.Saver().restore(session, path)
        tf.train.Saver(reshape=True).restore(session, path)
        np.testing.assert_array_equal(session.run(flat), [1, 2, 3, 4])


class _Doubled(BaseSaverBuilder.SaveableObject):
    """A variable of which twice the value is saved."""

    def __init__(self, variable):
        self._variable = variable
        super().__init__(variable, [BaseSaverBuilder.SaveSpec(variable * 2.0, "", "doubled")], "doubled")

    def restore(self, restored_tensors, restored_shapes):
        return self._variable.assign(restored_tensors[0] / 2.0)


def test_objects_of_a_program_are_saved(tmp_path):
    v = tf.Variable(3.0)
    path = _save(tmp_path / "m", tf.train.Saver({"doubled": _Doubled(v)}))
    assert tf.train.load_variable(path, "doubled") == 6.0
    with tf.Session() as session:
        tf.train.Saver([_Doubled(v)]).restore(session, path)
        assert session.run(v) == 3.0


def test_relative_paths(tmp_path):
    tf.Variable(1.0)
    path = _save(tmp_path / "m", tf.train.Saver(save_relative_paths=True))
    assert 'model_checkpoint_path: "m"' in (tmp_path / "checkpoint").read_text()
    assert tf.train.latest_checkpoint(str(tmp_path)) == path


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda v, part: {"a": v, "b": v}, ValueError, "same saveable will be restored with two names"),
        (lambda v, part: {1: v}, TypeError, "Name is not a string"),
        (lambda v, part: {"a": v + 1.0}, TypeError, "Not a variable"),
        (lambda v, part: {"a": [v]}, ValueError, "Slices must all be slices"),
        (lambda v, part: {"a": [v + 1.0]}, ValueError, "Slices must all be Variables"),
        (lambda v, part: [v, v], ValueError, "At least two variables have the same name"),
    ],
)
def test_what_cannot_be_saved_is_refused(make, error, text):
    v = tf.Variable(1.0)
    part = tf.get_variable("p", [2], partitioner=tf.fixed_size_partitioner(2))
    with pytest.raises(error, match=text):
        tf.train.Saver(make(v, part))


def test_a_scope_is_exported_and_imported():
    outside = tf.constant(2.0, name="outside")
    with tf.name_scope("inner"):
        v = tf.Variable(3.0, name="v")
        tf.multiply(v, outside, name="product")
    definition = tf.train.export_meta_graph(export_scope="inner")
    assert {"v", "product"} <= {node.name for node in definition.graph_def.node}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        with pytest.raises(ValueError, match="unbound inputs"):
            tf.train.import_meta_graph(definition, import_scope="new")
        tf.train.import_meta_graph(definition, import_scope="new", input_map={"$unbound_inputs_outside": tf.constant(5.0)})
        assert [v.name for v in tf.global_variables()] == ["new/v:0"]
        session.run(tf.global_variables_initializer())
        assert session.run(graph.get_tensor_by_name("new/product:0")) == 15.0


def test_default_attributes_are_stripped_where_asked_for(tmp_path):
    tf.matmul(tf.Variable([[1.0]]), [[2.0]], name="product")
    kept = tf.train.export_meta_graph()
    stripped = tf.train.export_meta_graph(strip_default_attrs=True)
    of = {name: next(n for n in made.graph_def.node if n.name == "product") for name, made in (("kept", kept), ("stripped", stripped))}
    assert "transpose_a" in of["kept"].attr and "transpose_a" not in of["stripped"].attr
    assert stripped.meta_info_def.stripped_default_attrs


def test_a_value_says_what_type_a_variable_has():
    assert tf.get_variable("i", initializer=3).dtype.base_dtype == tf.int32
    assert tf.get_variable("f", initializer=3.0).dtype.base_dtype == tf.float32
    with pytest.raises(ValueError, match="explicit dtype"):
        tf.get_variable("x", dtype=tf.float32, initializer=tf.constant(3))


def test_a_session_manager_waits_and_gives_up(tmp_path):
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    manager = SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.01)
    with pytest.raises(tf.errors.DeadlineExceededError, match="not ready after waiting"):
        manager.wait_for_session("", max_wait_secs=0.05)
    _, restored = manager.recover_session("", saver=saver, checkpoint_dir=str(tmp_path), wait_for_checkpoint=True, max_wait_secs=0.03)
    assert not restored
    _save(tmp_path / "m", saver)
    session, restored = manager.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert restored and session.run(v) == 1.0
    with pytest.raises(RuntimeError, match="no init_op or init_fn"):
        manager.prepare_session("")


def test_the_name_of_a_variable_without_a_value_is_said():
    v = tf.Variable(1.0, name="lost")
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value lost"):
        session.run(v + 1.0)


def test_slots_and_step_of_a_supervisor(tmp_path):
    step = tf.train.get_or_create_global_step()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    with supervisor.managed_session() as session:
        assert session.run(supervisor.global_step) == 0
        assert supervisor.global_step is step
    assert os.path.exists(str(tmp_path / "graph.pbtxt"))


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_variable_of_another_begins_with_its_first_value(use_resource):
    first = tf.Variable([1.0, 2.0], use_resource=use_resource)
    second = tf.Variable(first * 2.0 + 1.0, use_resource=use_resource, name="second")
    third = tf.Variable(second, name="third")
    assert second.op.name == "second" and third.value().name == "third/read:0"
    with tf.Session() as session:
        session.run(third.initializer)  # the others have no values
        assert session.run(third).tolist() == [3.0, 5.0]
        assert not session.run(tf.is_variable_initialized(first))
        session.run(first.initializer)
        session.run(first.assign([5.0, 6.0]))
        session.run(second.initializer)
        assert session.run(second).tolist() == [11.0, 13.0]


def test_the_assertion_that_variables_have_values():
    assert tf.assert_variables_initialized() is None
    v = tf.Variable(1.0, name="v")
    check = tf.assert_variables_initialized()
    w = tf.get_variable("w", [3], use_resource=True)
    both = tf.assert_variables_initialized([v, w])
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(check)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value v"):
            check.op.run()
        session.run(v.initializer)
        assert session.run(check) == 0
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(both)
        session.run(w.initializer)
        assert session.run(both).tolist() == [0, 1]
    for ready in (check, both):
        with SessionManager(ready_op=ready).prepare_session("", init_op=tf.global_variables_initializer()) as session:
            assert session.run(v) == 1.0


def test_rows_of_a_checkpoint_move_with_their_words(tmp_path):
    from millrace.train import checkpoint_ops

    tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
    path = _save(tmp_path / "m")
    (tmp_path / "old").write_text("a\nb\n")
    (tmp_path / "new").write_text("b\nc\na\n")
    begin = checkpoint_ops._load_embedding_initializer(
        path, "w", 3, 2, str(tmp_path / "old"), str(tmp_path / "new"), num_oov_buckets=1, initializer=lambda shape, **unused: tf.fill(shape, 9.0)
    )
    with tf.Graph().as_default(), tf.Session() as session:
        whole = tf.get_variable("e", [4, 2], initializer=begin, partitioner=tf.fixed_size_partitioner(2))
        session.run(tf.global_variables_initializer())
        assert session.run(whole.as_tensor()).tolist() == [[3, 4], [9, 9], [1, 2], [9, 9]]
        buckets = checkpoint_ops._load_embedding_initializer(
            path, "w", 3, 2, str(tmp_path / "old"), str(tmp_path / "new"), num_oov_buckets=3, initializer=lambda shape, **unused: tf.fill(shape, 9.0)
        )
        parts = tf.get_variable("g", [6, 2], initializer=buckets, partitioner=tf.fixed_size_partitioner(2))
        session.run(tf.variables_initializer(list(parts)))
        assert session.run(parts.as_tensor()).tolist() == [[3, 4], [9, 9], [1, 2], [9, 9], [9, 9], [9, 9]]
        with pytest.raises(ValueError, match="2nd dim"):
            tf.get_variable("f", [4, 3], initializer=begin)
        with pytest.raises(ValueError, match="must both be specified"):
            checkpoint_ops._load_and_remap_matrix(path, "w", 0, 2, 2, begin, new_row_vocab_file="x")


def test_a_path_without_a_checkpoint_is_an_error_of_both_kinds(tmp_path):
    tf.get_variable("v", [])
    saver = tf.train.Saver()
    with tf.Session() as session:
        for kind, text in ((ValueError, "is not a valid checkpoint: .*none"), (tf.errors.NotFoundError, "Failed to find any matching files for .*none")):
            with pytest.raises(kind, match=text):
                saver.restore(session, str(tmp_path / "none"))


def test_savers_that_are_functions(tmp_path):
    functional, objects = names.find("python.training.saving.functional_saver"), names.find("python.training.saving.saveable_object_util")
    prefix = str(tmp_path / "c")
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        values = []
        for i in range(3):
            with tf.device("/cpu:%d" % i):
                values.append(tf.get_variable("v%d" % i, initializer=float(i), use_resource=i > 0))
        session.run(tf.global_variables_initializer())
        saveables = [made for v in values for made in objects.saveable_objects_for_op(v, v.op.name)]
        saver = functional.MultiDeviceSaver(saveables)
        assert session.run(saver.save(tf.constant(prefix))) == prefix.encode() and len(list(tmp_path.glob("c.data*"))) == 3
        session.run([v.assign(-1.0) for v in values])
        session.run(saver.restore(prefix))
        assert session.run(values) == [0, 1, 2]
        proto = saver.to_proto()
        session.run([v.assign(-1.0) for v in values])
        session.run(proto.restore_op_name, {proto.filename_tensor_name: prefix})
        assert session.run(values) == [0, 1, 2]
        one = functional._SingleDeviceSaver(objects.saveable_objects_for_op(values[2], "x"))
        session.run(one.save(tf.constant(prefix + "1")))
        assert tf.train.list_variables(prefix + "1") == [("x", [])]
        with pytest.raises(ValueError, match="Expected a SaveableObject"):
            functional.MultiDeviceSaver([values[0]])


def test_meta_graphs_are_imported_into_the_scope_that_is_open(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=2.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "ckpt"))
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.name_scope("model"):
            saver = tf.train.import_meta_graph(path + ".meta")
        saver.restore(session, path)
        assert session.run("model/w:0") == 2
