# SPDX-License-Identifier: Apache-2.0
"""What came with TensorFlow 1.9 to 1.15 around variables and sessions: critical sections, creators of variables, tf.config; and functions beside them."""

import threading

import numpy as np
import pytest

import millrace as tf
from millrace import names


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def _counter():
    v = tf.get_variable("v", initializer=0.0, use_resource=True)

    def count():
        value = v.read_value()
        with tf.control_dependencies([value]):
            with tf.control_dependencies([v.assign_add(1)]):
                return tf.identity(value)

    return v, count


def test_one_at_a_time():
    section = tf.CriticalSection()
    v, count = _counter()
    both = [section.execute(count), section.execute(count)]
    with tf.Session() as session:
        session.run(v.initializer)
        seen = []
        threads = [threading.Thread(target=lambda: seen.extend(x for _ in range(50) for x in session.run(both))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(400))  # no number twice


def test_sections_nest_results_and_wait_for_what_they_take():
    section = tf.CriticalSection(shared_name="s")
    v, count = _counter()
    first = section.execute(count)
    second = section.execute(lambda: {"a": first + 1.0, "b": (v.assign_add(2.0), None)})
    nothing = section.execute(lambda: None)
    with tf.Session() as session:
        session.run(v.initializer)
        made = session.run({"a": second["a"], "b": second["b"][0]})
        assert second["b"][1] is None and made == {"a": 1.0, "b": 3.0}
        session.run(nothing)


@pytest.mark.parametrize("taken", [True, False])
def test_sections_hold_branches_and_lie_in_branches(taken):
    section, v = tf.CriticalSection(), tf.get_variable("v", initializer=1.0, use_resource=True)

    def add():
        with tf.control_dependencies([v.assign_add(2.0)]):
            return v.read_value()

    inner = section.execute(lambda: tf.cond(tf.identity(taken), add, v.read_value))
    outer = tf.cond(tf.identity(taken), lambda: section.execute(lambda: tf.cond(tf.constant(True), add, v.read_value)), v.read_value)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(inner) == (3 if taken else 1)
        assert session.run(outer) == (5 if taken else 1)


def test_sections_refuse():
    section = tf.CriticalSection()
    _, count = _counter()
    name = section.execute(count).name
    with pytest.raises(ValueError, match="would wait for it for ever"):
        section.execute(lambda: tf.get_default_graph().get_tensor_by_name(name) + 1)
    with pytest.raises(ValueError, match="already running"):
        section.execute(lambda: section.execute(count))
    with pytest.raises(ValueError, match="exclusive resource access"):
        tf.CriticalSection().execute(count)


def test_creators_make_variables():
    asked = []

    def frozen(next_creator, **kwargs):
        asked.append(("frozen", kwargs["name"]))
        return next_creator(**dict(kwargs, trainable=False))

    def resource(next_creator, **kwargs):
        asked.append(("resource", kwargs["name"]))
        return next_creator(**dict(kwargs, use_resource=True))

    with tf.variable_creator_scope(resource), tf.variable_creator_scope(frozen):
        a, b = tf.Variable(1.0, name="a"), tf.get_variable("b", [2])
    c = tf.Variable(1.0)
    assert asked == [("frozen", "a"), ("resource", "a"), ("frozen", "b"), ("resource", "b")]
    assert not a.trainable and not b.trainable and c.trainable and tf.trainable_variables() == [c]
    assert a.handle.dtype == tf.resource and isinstance(b, tf.Variable)
    with tf.variable_creator_scope(lambda next_creator, **kwargs: "mine"):
        assert tf.Variable(1.0) == "mine"


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_convolutions_with_holes(padding):
    state = np.random.RandomState(0)
    x, k = tf.constant(state.rand(2, 7, 6, 3)), tf.constant(state.rand(3, 2, 3, 4))
    y = tf.nn.atrous_conv2d(x, k, 2, padding)
    dy = tf.constant(state.rand(*y.shape.as_list()))
    back = tf.nn.atrous_conv2d_transpose(dy, k, [2, 7, 6, 3], 2, padding)
    parts = tf.nn.with_space_to_batch(x, [2, 2], padding, lambda z, n, p: tf.nn.conv2d(z, k, [1, 1, 1, 1], p), filter_shape=[3, 2])
    with tf.Session() as session:
        got = session.run([back, tf.gradients(y, x, dy)[0], parts, y])
    np.testing.assert_allclose(got[0], got[1])
    np.testing.assert_allclose(got[2], got[3])
    assert back.shape.as_list() == [2, 7, 6, 3]
    with pytest.raises(ValueError, match="monotonically"):
        tf.nn.with_space_to_batch(x, [2, 2], "VALID", None, spatial_dims=[2, 1])


def test_shapes_are_compared():
    free = tf.placeholder(tf.float32)
    good = tf.debugging.assert_shapes({tf.ones([3, 2]): ("N", "Q"), free: ("N", None), tf.constant(1.0): (), tf.ones([7, 3, 2]): (..., "N", 2)})
    with tf.Session() as session:
        session.run(good, {free: np.ones((3, 5))})
        for wrong, match in (
            (np.ones((4, 5)), r"tensor ones:0 dimension 0\] \[Tensor Placeholder:0 dimension\] \[0\] \[must have size\] \[3\]"),
            (np.ones(3), "have rank"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=match):
                session.run(good, {free: wrong})
    with pytest.raises(ValueError, match="Specified shape must be an iterable"):
        tf.debugging.assert_shapes([(tf.ones([3]), 3)])
    with pytest.raises(ValueError, match="only allowed as the first entry"):
        tf.debugging.assert_shapes([(tf.ones([3]), ("N", ...))])
    with pytest.raises(ValueError, match="Specified by tensor .* dimension 0.  Tensor .* dimension 0 must have size 3.  Received size 2"):
        tf.debugging.assert_shapes([(tf.ones([3, 2]), ("N", "Q")), (tf.ones([2, 4]), ("N", "D"))])
    with pytest.raises(ValueError, match="must have rank at least 2"):
        tf.debugging.assert_shapes([(tf.ones([3]), ("*", "N", "Q"))])


def test_small_functions():
    with tf.Session() as session:
        doubled, whole = session.run(tf.vectorized_map(lambda t: (t * 2, tf.cast(t, tf.int32)), tf.constant([1.5, 2.5])))
        assert doubled.tolist() == [3, 5] and whole.tolist() == [1, 2]
        assert session.run(tf.nn.compute_average_loss([1.0, 2, 3], [1.0, 0, 2])) == pytest.approx(7 / 3)
        assert session.run(tf.nn.compute_average_loss([1.0, 2, 3], global_batch_size=6)) == 1
        losses, weights = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        average = tf.nn.compute_average_loss(losses, weights)
        assert session.run(average, {losses: [[2.0, 0.5], [4.0, 1.0]], weights: [[0.3, 0.7], [0.2, 0.8]]}) == pytest.approx(2.55 / 2)
        for told, fed in (("at least rank 1", {losses: 2.0, weights: 1.0}), ("weights can not be broadcast", {losses: [2.0, 4.0], weights: [1.0, 2.0, 3.0]})):
            with pytest.raises(tf.errors.InvalidArgumentError, match=told):
                session.run(average, fed)
        with pytest.raises(ValueError, match="weights can not be broadcast to values"):
            tf.nn.compute_average_loss([2.5, 6.2, 5.0], [0.2, 0.8])
        assert session.run(tf.nn.scale_regularization_loss([1.0, 2])) == 3
    assert tf.compat.dimension_value(tf.Dimension(3)) == 3 and tf.compat.dimension_at_index(tf.TensorShape([2]), 0) == 2
    assert tf.compat.forward_compatible(2018, 1, 1) and not tf.compat.forward_compatible(2030, 1, 1)
    with tf.compat.forward_compatibility_horizon(2030, 1, 2):
        assert tf.compat.forward_compatible(2030, 1, 1)
    assert tf.graph_util.import_graph_def is tf.import_graph_def


@pytest.fixture
def settings():
    before = dict(tf.config._state)
    yield tf.config
    tf.config._state.update(before, config=None)


def test_settings_are_those_of_sessions_that_have_none(settings):
    settings.threading.set_inter_op_parallelism_threads(1)
    settings.threading.set_intra_op_parallelism_threads(2)
    settings.set_soft_device_placement(True)
    tf.debugging.set_log_device_placement(False)
    settings.optimizer.set_experimental_options({"remapping": False, "disable_meta_optimizer": True})
    (cpu,) = settings.experimental.list_physical_devices("CPU")
    settings.experimental.set_virtual_device_configuration(cpu, [settings.experimental.VirtualDeviceConfiguration()] * 3)
    assert settings.threading.get_intra_op_parallelism_threads() == 2 and settings.get_soft_device_placement()
    assert settings.optimizer.get_experimental_options() == {"remapping": False, "disable_meta_optimizer": True}
    assert names.find("python.framework.config").get_optimizer_experimental_options() == settings.optimizer.get_experimental_options()
    with tf.Session() as session:
        assert [d.name for d in session.list_devices()] == settings.experimental_list_devices() and len(session.list_devices()) == 3
        assert session._config.inter_op_parallelism_threads == 1
    with tf.Session(config=tf.ConfigProto()) as session:
        assert len(session.list_devices()) == 1
    with pytest.raises(ValueError, match="memory limit"):
        settings.experimental.set_virtual_device_configuration(cpu, [settings.experimental.VirtualDeviceConfiguration(100)])
    settings.optimizer.set_experimental_options({"min_graph_nodes": -1, "loop_optimization": False, "debug_stripper": False})
    assert settings.optimizer.get_experimental_options() == {
        "remapping": False,
        "loop_optimization": False,
        "debug_stripper": False,
        "disable_meta_optimizer": True,
        "min_graph_nodes": -1,
    }
    with tf.Session() as session:
        assert session._config.graph_options.rewrite_options.min_graph_nodes == -1 and session.run(tf.constant(1) + 1) == 2
    with pytest.raises(ValueError, match="no optimizer"):
        settings.optimizer.set_experimental_options({"nothing": True})
    with pytest.raises(NotImplementedError, match="auto_mixed_precision is not provided"):
        settings.optimizer.set_experimental_options({"auto_mixed_precision": True})
    with pytest.raises(NotImplementedError, match="no XLA"):
        settings.optimizer.set_jit(True)
    with pytest.raises(ValueError, match="Unrecognized device"):
        settings.experimental.get_memory_growth("GPU:0")


def test_threads_have_variable_scopes_of_their_own():
    graph, names, inside, go_on = tf.get_default_graph(), [], threading.Event(), threading.Event()

    def build():
        with graph.as_default(), tf.variable_scope("foo"):
            names.append(tf.get_variable("v", []).name)
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=build)
    thread.start()
    inside.wait(10)
    assert tf.get_variable_scope().name == "" and names == ["foo/v:0"]
    with tf.variable_scope("foo"), pytest.raises(ValueError, match="already exists"):
        tf.get_variable("v", [])
    go_on.set()
    thread.join()


def test_scopes_and_variables_are_refused_what_they_cannot_be():
    outer = tf.variable_scope("outer")
    with outer:
        with tf.variable_scope("inner", auxiliary_name_scope=False) as inner:
            assert inner.original_name_scope == "outer/"
            with pytest.raises(RuntimeError, match="Improper nesting"):
                outer.__exit__(None, None, None)
    with pytest.raises(TypeError, match="auxiliary_name_scope"):
        tf.variable_scope("x", auxiliary_name_scope="yes")
    with pytest.raises(ValueError, match="initializer passed is not valid"):
        tf.get_variable("a", initializer=lambda x: [2])
    assert tf.get_variable("b", initializer=lambda x=3: [x, x]).shape.as_list() == [2]
    assert tf.get_local_variable("c", [2], tf.int32, tf.zeros_initializer()) in tf.local_variables() and not tf.trainable_variables("c")


def test_maps_of_inputs_that_no_node_reads():
    with tf.Graph().as_default() as graph:
        tf.identity(tf.constant(1.0, name="a"), name="b")
    definition = graph.as_graph_def()
    other = tf.constant(5.0)
    (b,) = tf.import_graph_def(definition, {"b:0": other, b"a": other}, ["b:0"])  # b is read by none
    with tf.Session() as session:
        assert session.run(b) == 5
    for key in ("c:0", "^c", "b:1"):
        with pytest.raises(ValueError, match="Attempted to map inputs that were not found in graph_def: .*%s" % key.lstrip("^")):
            tf.import_graph_def(definition, {key: other})


def test_layers_that_are_made_or_found():
    x = tf.ones([1, 2])
    for _ in range(2):
        tf.layers.dense(x, 2, name="dense", reuse=tf.AUTO_REUSE, kernel_regularizer=tf.nn.l2_loss)
        tf.contrib.layers.fully_connected(x, 2, scope="full", reuse=tf.AUTO_REUSE)
    tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.layers.dense(a, 2, name="inner", reuse=tf.AUTO_REUSE)), [0, x])
    assert [v.op.name for v in tf.global_variables()] == ["dense/kernel", "dense/bias", "full/weights", "full/biases", "inner/kernel", "inner/bias"]
    assert len(tf.get_collection("regularization_losses")) == 1
    for reuse in (False, True):
        with tf.variable_scope("net", reuse=reuse):
            layer = tf.layers.Dense(2, name="dense")
            layer(x)
        assert [v.op.name for v in layer.trainable_weights] == ["net/dense/kernel", "net/dense/bias"]


def test_scopes_entered_again_within_reuse():
    with tf.variable_scope("first") as first:
        pass
    with tf.variable_scope("reused", reuse=True), tf.variable_scope(first) as again:
        assert not again.reuse and tf.get_variable("v", [1]).name == "first/v:0"


def test_arguments_of_critical_sections():
    section, v = tf.contrib.framework.CriticalSection(shared_name="args"), tf.get_variable("v", initializer=0.0, use_resource=True)
    other = tf.contrib.framework.CriticalSection(shared_name="args")
    added = [section.execute(lambda a, b: tf.identity(v.assign_add(a * b)), tf.constant(1.0), b=2.0) for _ in range(20)]
    plain = section.execute(lambda: tf.constant(7), False, "plain")
    loop = tf.while_loop(lambda i: i < 10, lambda i: section.execute(lambda j: j + 1, i), [0])
    with tf.Session() as session:
        session.run(v.initializer)
        assert sorted(session.run(added)) == [2.0 * i for i in range(1, 21)] and session.run([plain, loop]) == [7, 10]
    assert plain.graph.get_operation_by_name("plain/MutexLock").type == "MutexLock"
    with pytest.raises(ValueError, match="attempts to directly access"):
        section.execute(lambda x: other.execute(lambda y: y + 1, x), 1.0)


@pytest.mark.parametrize("use_resource", [False, True])
def test_shapes_that_nobody_validates(use_resource):
    """What 1.15.5 says of variables of partly known shapes."""

    def got(name, **more):
        return tf.get_variable(name, validate_shape=False, use_resource=use_resource, **more).shape

    def pair():
        return tf.constant([1.0, 2.0])

    with tf.Graph().as_default():
        plain = tf.Variable([[1.0, 2.0]], validate_shape=False, use_resource=use_resource)
        assert plain.shape.dims == ([1, 2] if use_resource else None)
        for shape in ([None], tf.TensorShape(None)):
            assert got("v%d" % len(tf.global_variables()), shape=shape, initializer=pair).dims == ([2] if use_resource else None)
        with pytest.raises(ValueError, match="initializer passed is not valid"):
            got("zeros", shape=[None, 2], initializer=tf.zeros_initializer())
        with pytest.raises(ValueError, match="must be fully defined"):
            tf.get_variable("w", shape=[None, 2], initializer=tf.zeros_initializer(), use_resource=use_resource)


def test_getters_are_told_of_copies_if_they_ask():
    seen = []

    def all_of_it(getter, name, *args, **kwargs):
        seen.append((kwargs["synchronization"], kwargs["aggregation"]))
        return getter(name, *args, **kwargs)

    def of_before(getter, name, shape=None, dtype=None, initializer=None, trainable=None, reuse=None, **_):
        return getter(name, shape=shape, dtype=dtype, initializer=initializer, reuse=reuse)

    def by_name(
        getter,
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        reuse,
        trainable,
        collections,
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        constraint,
    ):
        return getter(name, shape=shape, dtype=dtype)

    with tf.Graph().as_default():
        mean = tf.VariableAggregation.MEAN
        with tf.variable_scope("a", custom_getter=all_of_it):
            v = tf.get_variable("v", [2], aggregation=mean)
        assert seen == [(tf.VariableSynchronization.AUTO, mean)] and v.aggregation is mean and v.synchronization is tf.VariableSynchronization.AUTO
        for i, getter in enumerate((of_before, by_name)):
            with tf.variable_scope("s%d" % i, custom_getter=getter):
                assert tf.get_variable("v", [2]).name == "s%d/v:0" % i
        read = tf.get_variable("read", [4], synchronization=tf.VariableSynchronization.ON_READ, partitioner=tf.fixed_size_partitioner(2))
        assert [part.synchronization for part in read] == [tf.VariableSynchronization.ON_READ] * 2 and not any(part.trainable for part in read)


def test_templates_that_are_functions_of_the_graph():
    def double(x):
        return tf.get_variable("w", [], initializer=tf.constant_initializer(2.0)) * x

    with tf.Graph().as_default(), tf.Session() as session:
        made = names.find("python.ops.template").make_template_internal("t", double, create_graph_function_=True)
        results = [made(tf.constant(3.0)), made(tf.constant(4.0))]
        session.run(tf.global_variables_initializer())
        assert session.run(results) == [6, 8] and [v.name for v in made.variables] == ["t/w:0"]


def test_cases_of_functions():
    raw = names.find("python.ops.gen_functional_ops")
    Defun = names.find("python.framework.function").Defun
    with tf.Graph().as_default(), tf.Session() as session:
        more, twice = Defun(tf.float32)(lambda x: x + 1.0), tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([], tf.float32))
        index = tf.placeholder(tf.int32, [])
        made = raw.case(index, [3.0], [tf.float32], [more, twice])
        assert [session.run(made, {index: i}) for i in (0, 1, 5)] == [[4], [6], [6]]


@pytest.mark.parametrize("fold", [tf.foldl, tf.foldr, tf.scan])
def test_folds_keep_their_structure(fold):
    with tf.Graph().as_default():
        elements, zero = tf.constant([1.0, 2.0]), tf.constant(0.0)
        for initial, fn in ((zero, lambda a, x: (a + x,)), ((zero,), lambda a, x: a[0] + x)):
            with pytest.raises(ValueError, match="don't have the same nested structure"):
                fold(fn, elements, initializer=initial)
        with pytest.raises(TypeError, match="don't have the same"):
            fold(lambda a, x: [a[0] + x], elements, initializer=(zero,))


def test_collections_of_critical_sections():
    sections = names.find("python.ops.critical_section_ops")
    with tf.Graph().as_default():
        section = tf.CriticalSection()
        section.execute(lambda: tf.constant(1.0) + 1.0)
        assert tf.get_collection(sections.CRITICAL_SECTIONS) == [section]
        assert [e.op.type for e in tf.get_collection(sections.CRITICAL_SECTION_EXECUTIONS)] == ["MutexLock"]


def test_lists_refuse_elements_of_other_shapes():
    with tf.Graph().as_default():
        made = tf.TensorArray(tf.float32, size=2, infer_shape=False, element_shape=[None, 2]).write(0, tf.ones([5, 2]))
        assert made.write(1, tf.ones([1, 2])).element_shape.as_list() == [None, 2]
        with pytest.raises(ValueError, match="Inconsistent shapes"):
            made.write(1, tf.ones([1, 3]))


def test_scalars_are_no_elements_and_no_sizes():
    with tf.Graph().as_default():
        for fn in (tf.map_fn, lambda f, x: tf.scan(lambda a, b: a, x)):
            with pytest.raises(ValueError, match="elems must be a 1\\+ dimensional Tensor, not a scalar"):
                fn(lambda x: x, 1.0)
        with pytest.raises(ValueError, match="Rank-0 tensors are not supported as the num_or_size_splits"):
            tf.split(tf.ones([4, 4]), tf.constant(2))
        with pytest.raises(TypeError, match="iterating over `tf.Tensor` is not allowed in Graph execution"):
            iter(tf.constant(1))


def test_values_that_may_be_composite():
    ops = names.find("python.framework.ops")
    with tf.Graph().as_default():
        sparse = tf.SparseTensor([[0]], [1], [1])
        assert ops.convert_to_tensor_or_composite(sparse) is sparse and ops.convert_to_tensor_or_composite([1, 2]).shape == [2]
        assert isinstance(ops.convert_to_tensor_or_composite(tf.SparseTensorValue([[0]], [1], [1])), tf.SparseTensor)
        with pytest.raises(RuntimeError, match="requested dtype"):
            ops.convert_to_tensor_or_composite(sparse, tf.float32)
    assert names.find("python.ops.variables").VariableAggregationV2.ONLY_FIRST_REPLICA is tf.VariableAggregation.ONLY_FIRST_TOWER


def test_scopes_of_creators_are_left_in_order():
    def same(next_creator, **kwargs):
        return next_creator(**kwargs)

    with tf.Graph().as_default() as graph:
        outer = tf.variable_creator_scope(same)
        outer.__enter__()
        with pytest.raises(RuntimeError, match="proper nesting"), tf.variable_creator_scope(same):
            outer.__exit__(None, None, None)
        graph._variable_creator_stack = []
        assert tf.Variable(1.0)._distribute_strategy is None


def test_variable_defs_tell_of_copies():
    with tf.Graph().as_default():
        v = tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        proto = v.to_proto()
        assert "synchronization: VARIABLE_SYNCHRONIZATION_NONE\naggregation: VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA" in str(proto)
        again = tf.Variable.from_proto(proto)
        assert again.synchronization is v.synchronization and again.aggregation is v.aggregation
        assert "synchronization" not in str(tf.Variable(1.0).to_proto())


def test_inputs_that_are_shared_and_cloned(tmp_path):
    inputs = names.find("python.distribute.input_ops")
    paths = [str(tmp_path / ("%d" % i)) for i in range(4)]
    for path in paths:
        with open(path, "w") as file:
            file.write("%s\n" % path[-1])
    with tf.Graph().as_default(), tf.Session() as session:
        mine = inputs.auto_shard_dataset(tf.data.TextLineDataset(paths), 2, 1)
        clone = inputs._clone_dataset(tf.data.Dataset.range(3).map(lambda x: x * x))
        found = [d.batch(9).make_one_shot_iterator().get_next() for d in (mine, clone)]
        assert [list(values) for values in session.run(found)] == [[b"1", b"3"], [0, 1, 4]]


def test_vectorized_map_takes_gradients_of_each_element():
    """With respect to what the elements were made of, each by itself: gradients of single examples, which are clipped one by one."""
    x = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]], np.float32)
    w = tf.Variable([[2.0], [1.0]])
    losses = tf.square(tf.matmul(x, w))[:, 0]
    each = tf.vectorized_map(lambda loss: tf.gradients(loss, w)[0], losses)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        got = sess.run(each)
    np.testing.assert_allclose(got[:, :, 0], 2 * (x @ [[2.0], [1.0]]) * x, rtol=1e-6)
