# SPDX-License-Identifier: Apache-2.0
"""Arguments of tf.contrib's functions, under the names and at the places of TensorFlow 1.15."""

import inspect
import types

import numpy as np
import pytest

import millrace as tf

C = tf.contrib
PLACES = [
    (C.framework.load_checkpoint, "filepattern"),
    (C.framework.load_variable, "checkpoint_dir name"),
    (C.framework.list_variables, "checkpoint_dir"),
    (C.framework.init_from_checkpoint, "checkpoint_dir assignment_map"),
    (C.framework.add_arg_scope, "func"),
    (C.framework.has_arg_scope, "func"),
    (C.framework.arg_scoped_arguments, "func"),
    (C.framework.arg_scope_func_key, "op"),
    (C.framework.py_func, "func args kwargs output_types output_shapes stateful name"),
    (C.layers.maxout, "inputs num_units axis scope"),
    (C.layers.embedding_lookup_unique, "params ids partition_strategy name"),
    (C.slim.summaries.add_scalar_summaries, "tensors prefix print_summary"),
    (C.specs.eval_params, "params environment"),
    (C.training.HParams.set_from_map, "self values_map"),
    (C.seq2seq.gather_tree, "step_ids parent_ids max_sequence_lengths end_token name"),
    (C.distributions.softplus_inverse, "x name"),
    (C.testing.FakeSummaryWriter.add_summary, "self summ current_global_step"),
]


@pytest.mark.parametrize("function, wanted", PLACES, ids=lambda value: getattr(value, "__name__", None))
def test_places(function, wanted):
    assert list(inspect.signature(function).parameters)[: len(wanted.split())] == wanted.split()


def test_checkpoints(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(v.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    assert C.framework.load_variable(checkpoint_dir=path, name="v").tolist() == [1, 2]
    assert C.framework.list_variables(checkpoint_dir=str(tmp_path)) == [("v", [2])]
    assert C.framework.load_checkpoint(filepattern=path).has_tensor("v")
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [2])
        C.framework.init_from_checkpoint(checkpoint_dir=path, assignment_map={"v": w})
        session.run(w.initializer)
        assert session.run(w).tolist() == [1, 2]


def test_functions_of_structures():
    def work(a, more, scale):
        return {"sum": np.float32(scale * (a + more["b"])), "parts": [np.int64(7), a]}

    types_ = {"sum": tf.float32, "parts": [tf.int64, tf.float32]}
    with tf.Graph().as_default(), tf.Session() as session:
        given = [tf.constant(1.0), {"b": tf.constant(2.0)}], {"scale": tf.constant(10.0)}
        made = C.framework.py_func(work, *given, output_types=types_, output_shapes={"sum": [], "parts": [[], None]})
        assert made["sum"].shape.as_list() == [] and made["parts"][1].shape.ndims is None
        assert session.run(made) == {"sum": 30, "parts": [7, 1]}
        by_functions = C.framework.py_func(work, *given, output_types=lambda a, more, scale: types_, stateful=False)
        assert session.run(by_functions["parts"][0]) == 7 and by_functions["sum"].op.type == "PyFuncStateless"
        with pytest.raises(tf.errors.OpError):
            session.run(C.framework.py_func(lambda: [1.0], output_types=[tf.float32, tf.float32]))
        with pytest.raises(TypeError, match="kwargs must be a dict"):
            C.framework.py_func(work, [1.0], tf.float32)
        with pytest.raises(TypeError, match="args must be a list or tuple"):
            C.framework.py_func(work, tf.constant(1.0))


def test_variables_of_models():
    with tf.Graph().as_default():
        v = C.framework.variable("v", [2], synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
        assert v in tf.trainable_variables()
        with pytest.raises(ValueError, match="Invalid variable synchronization mode"):
            C.framework.variable("u", [2], synchronization="never")
        w = C.framework.model_variable("w", [2], tf.float64, tf.ones_initializer(), None, False, ["mine"])
        assert w.dtype.base_dtype == tf.float64 and tf.get_collection("mine") == C.framework.get_model_variables() == [w]
        assert w not in tf.trainable_variables()


def test_layers():
    rows = np.arange(12, dtype="f").reshape(2, 6)
    with tf.Graph().as_default(), tf.Session() as session:
        with C.framework.arg_scope([C.layers.maxout], scope="largest"):
            largest = C.layers.maxout(rows, 3)
        assert largest.op.name == "largest/Max" and C.layers.maxout(rows, 3).op.name == "MaxOut/Max"
        np.testing.assert_array_equal(session.run(largest), rows.reshape(2, 3, 2).max(2))
        with pytest.raises(ValueError, match="expects input with rank 3, got 4"):
            C.layers.convolution(tf.zeros([1, 4, 4, 1]), 2, 3, conv_dims=1)
        assert C.layers.convolution(tf.zeros([1, 4, 4, 1]), 2, 3, conv_dims=2).shape.as_list() == [1, 4, 4, 2]
        parts = [tf.constant([[0.0], [2.0]]), tf.constant([[10.0], [12.0]])]
        ids = [[3, 0], [3, 1]]
        assert session.run(C.layers.embedding_lookup_unique(parts, ids, "div")).reshape(4).tolist() == [12, 0, 12, 2]
        assert session.run(C.layers.embedding_lookup_unique(parts, ids, name="n")).reshape(4).tolist() == [12, 0, 12, 10]
        columns, made = [C.layers.real_valued_column(k) for k in "ab"], {}
        features = {k: tf.constant([[float(i)]]) for i, k in enumerate("ab")}
        C.layers.input_from_feature_columns(features, columns, cols_to_outs=made)
        assert [session.run(made[column]).tolist() for column in columns] == [[[0]], [[1]]]


def test_attention():
    memory = tf.zeros([2, 3, 4], tf.float64)
    with tf.variable_scope("attention"):
        mechanism = C.seq2seq.LuongAttention(4, memory, dtype=tf.float64)
        cell = C.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4, dtype=tf.float64), mechanism, 4, dtype=tf.float64)
        output, _ = cell(tf.zeros([2, 4], tf.float64), cell.zero_state(2, tf.float64))
    assert output.dtype == tf.float64 and {v.dtype.base_dtype for v in tf.global_variables("attention")} == {tf.float64}
    for kind in (C.seq2seq.LuongAttention, C.seq2seq.BahdanauAttention):
        assert list(inspect.signature(kind).parameters)[-2:] == ["custom_key_value_fn", "name"]


def test_scheduled_outputs_through_a_layer():
    """next_input_layer is what next_inputs_fn was called up to 1.2."""
    inputs = tf.zeros([2, 3, 4])
    with tf.Graph().as_default(), tf.Session() as session:
        layer = tf.layers.Dense(4, kernel_initializer=tf.ones_initializer())
        helper = C.seq2seq.ScheduledOutputTrainingHelper(np.zeros([2, 3, 4], "f"), [3, 3], 1.0, next_input_layer=layer)
        helper.initialize()
        outputs = tf.ones([2, 5])
        _, following, _ = helper.next_inputs(tf.constant(0), outputs, (), helper.sample(tf.constant(0), outputs, ()))
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(following), np.full([2, 4], 5))
        with pytest.raises(ValueError, match="Cannot specify both 'next_input_layer' and 'next_inputs_fn'"):
            C.seq2seq.ScheduledOutputTrainingHelper(inputs, [3, 3], 1.0, next_inputs_fn=tf.identity, next_input_layer=layer)


def test_training_loops(tmp_path):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        told, hook = tf.RunMetadata(), tf.train.StopAtStepHook(num_steps=2)
        options = types.SimpleNamespace(asked=0)

        class Trace(tf.train.SessionRunHook):
            def before_run(self, run_context):
                options.asked += 1
                return tf.train.SessionRunArgs(None, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))

        last = C.training.train(tf.assign_add(step, 1), None, hooks=[hook, Trace()], save_checkpoint_secs=None, save_summaries_steps=None, run_metadata=told)
        assert last == 2 and options.asked == 2 and told.step_stats.dev_stats
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        assert C.slim.learning.train(tf.assign_add(step, 1), str(tmp_path), number_of_steps=2, ignore_live_threads=True) == 2
