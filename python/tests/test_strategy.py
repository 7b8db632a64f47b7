# SPDX-License-Identifier: Apache-2.0
"""tf.distribute where no strategy is chosen, or one of a single replica."""

import json

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.framework import execution_callbacks
from millrace.keras.engine import distributed


def test_there_is_one_replica():
    strategy, replica = tf.distribute.get_strategy(), tf.distribute.get_replica_context()
    assert isinstance(strategy, tf.distribute.Strategy) and not tf.distribute.has_strategy() and strategy.num_replicas_in_sync == 1
    assert replica.strategy is strategy and replica.replica_id_in_sync_group == 0 and not tf.distribute.in_cross_replica_context()

    def merged(given, value):
        assert given is strategy and tf.distribute.in_cross_replica_context() and tf.distribute.get_replica_context() is None
        return value

    assert replica.merge_call(merged, (5,)) == 5 and tf.distribute.get_replica_context() is replica
    with strategy.scope() as same:
        assert same is strategy and not tf.distribute.has_strategy()


def test_what_reduces_is_taken_and_changes_nothing():
    value = tf.constant([1.0, 2])
    for ops in (
        tf.distribute.ReductionToOneDevice(),
        tf.distribute.NcclAllReduce(num_packs=2),
        tf.distribute.HierarchicalCopyAllReduce(),
        tf.contrib.distribute.AllReduceCrossDeviceOps("nccl", num_packs=1),
    ):
        assert tf.distribute.MirroredStrategy(cross_device_ops=ops).num_replicas_in_sync == 1
        assert ops.reduce("sum", value, "/cpu:0") is value and ops.batch_reduce(tf.distribute.ReduceOp.MEAN, [(value, "/cpu:0")]) == [value]
        assert ops.broadcast(value, ["/cpu:0"]).device == "/device:CPU:0"
    with pytest.raises(ValueError, match="num_packs >= 0, but -1"):
        tf.distribute.NcclAllReduce(-1)
    with pytest.raises(ValueError, match="reduce_op must be"):
        ops.reduce("max", value, "/cpu:0")
    with pytest.raises(NotImplementedError, match="to one device, got 2"):
        ops.broadcast(value, ["/cpu:0", "/cpu:1"])
    with pytest.raises(ValueError, match="must be a tf.distribute.CrossDeviceOps"):
        tf.distribute.MirroredStrategy(cross_device_ops="nccl")


def test_slices_are_put_together_as_slices():
    values = names.find("python.distribute.cross_device_utils")
    dense = tf.constant([[1.0, 2.0], [0.0, 0.0]])
    slices = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([1]), tf.constant([2, 2]))
    total = values.aggregate_tensors_or_indexed_slices([dense, slices])
    half = values.divide_by_n_tensors_or_indexed_slices(slices, 2)
    copied = values.copy_tensor_or_indexed_slices_to_device(slices, "/cpu:0")
    assert all(isinstance(v, tf.IndexedSlices) for v in (total, half, copied)) and copied.values.device == "/device:CPU:0"
    assert values.contains_indexed_slices([dense, (slices,)]) and not values.contains_indexed_slices([dense])
    with tf.Session() as session:
        made = session.run([tf.convert_to_tensor(v) for v in (total, half, copied)] + [values.aggregate_tensors_or_indexed_slices([dense, dense])])
    assert [m.tolist() for m in made] == [[[1, 2], [3, 4]], [[0, 0], [1.5, 2]], [[0, 0], [3, 4]], [[2, 4], [0, 0]]]


@pytest.mark.parametrize("fused", [True, False])
def test_averages_stay_where_a_batch_is_empty(fused):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    strategy.extended.experimental_enable_get_next_as_optional = True
    with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4, 4, 3])
        layer = tf.layers.BatchNormalization(momentum=0.5, fused=fused)
        y = strategy.experimental_run_v2(lambda: layer.apply(x, training=True))
        gradients = tf.gradients(y * y, [layer.gamma, layer.beta])
        session.run(tf.global_variables_initializer())
        assert [g.tolist() for g in session.run([layer.updates, gradients], {x: np.zeros([0, 4, 4, 3])})[1]] == [[0, 0, 0], [0, 0, 0]]
        assert session.run([layer.moving_mean, layer.moving_variance])[1].tolist() == [1, 1, 1] and session.run(layer.moving_mean).tolist() == [0, 0, 0]
        session.run(layer.updates, {x: np.ones([2, 4, 4, 3])})
        assert session.run(layer.moving_mean).tolist() == [0.5, 0.5, 0.5]


def test_inputs_of_the_only_pipeline():
    context = tf.distribute.InputContext(2, 1, 4)
    assert (context.num_input_pipelines, context.input_pipeline_id, context.get_per_replica_batch_size(8)) == (2, 1, 2)
    with pytest.raises(ValueError, match="7 is not divisible by `num_replicas_in_sync` 4"):
        context.get_per_replica_batch_size(7)

    def numbers(given):
        assert given.num_input_pipelines == 1 and given.get_per_replica_batch_size(3) == 3
        return tf.data.Dataset.range(3).batch(3)

    strategy = tf.distribute.MirroredStrategy()
    iterators = [strategy.make_dataset_iterator(numbers(tf.distribute.InputContext())), strategy.make_input_fn_iterator(numbers)]
    results = [strategy.experimental_run(lambda batch: batch * 2, iterator) for iterator in iterators]
    rows = strategy.experimental_distribute_datasets_from_function(numbers).make_one_shot_iterator().get_next()
    arrays = strategy.experimental_make_numpy_dataset((np.ones([2, 3]), np.zeros(2))).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run([iterator.initialize() for iterator in iterators])
        assert [list(value) for value in session.run(results)] == [[0, 2, 4]] * 2
        assert list(session.run(rows)) == [0, 1, 2] and session.run(arrays)[0].shape == (3,)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(results[0])


def test_data_sets_that_a_strategy_deals_out():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    dealt = strategy.experimental_distribute_dataset(tf.data.Dataset.range(3))
    iterator = tf.compat.v1.data.make_initializable_iterator(dealt)
    number, doubled = iterator.get_next(), dealt.map(lambda n: n * 2).make_one_shot_iterator().get_next()
    assert iterator.output_types == tf.int64 and iterator.element_spec == tf.TensorSpec([], tf.int64)
    with tf.Session() as session:
        for _ in range(2):
            session.run(iterator.initialize())
            assert [session.run(number) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(number)
        assert [session.run(doubled) for _ in range(3)] == [0, 2, 4]
    with pytest.raises(RuntimeError, match="only supported inside of tf.function or when eager execution is enabled"):
        iter(dealt)


def test_data_sets_on_the_device_of_their_pipeline():
    input_lib, values = names.find("python.distribute.input_lib"), names.find("python.distribute.values")
    one = input_lib.InputWorkers(values.ReplicaDeviceMap(["/cpu:0"]), [("/cpu:0", ["/cpu:0"])])
    read = input_lib.DatasetIterator(tf.data.Dataset.range(2), one, tf.distribute.get_strategy())
    called = input_lib.InputFunctionIterator(lambda context: tf.data.Dataset.range(context.num_input_pipelines), one, [tf.distribute.InputContext()], None)
    elements = [read.get_next(), called.get_next()]
    assert elements[0].op.inputs[0].device.endswith("CPU:0")
    with tf.Session() as session:
        session.run([read.initialize(), called.initializer])
        assert session.run(elements) == [0, 0]
    two = input_lib.InputWorkers(values.ReplicaDeviceMap(["/cpu:0", "/cpu:1"]))
    with pytest.raises(NotImplementedError, match="one replica"):
        input_lib.get_distributed_dataset(tf.data.Dataset.range(2), two, None)
    with pytest.raises(NotImplementedError, match="split_batch_by=2"):
        input_lib.DistributedDataset(tf.data.Dataset.range(2), one, None, split_batch_by=2)


def test_variables_on_a_device_of_their_own():
    strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"], parameter_device="/cpu:1")
    with tf.Graph().as_default(), strategy.scope():
        v = tf.Variable(1.0)
        assert v.op.device == "/replica:0/task:0/device:CPU:1" and (v + 1.0).device == "/replica:0/task:0/device:CPU:0"
    with pytest.raises(NotImplementedError, match="CentralStorageStrategy on 2 devices"):
        tf.distribute.experimental.CentralStorageStrategy(["/gpu:0", "/gpu:1"])


def test_strategies_of_a_cluster_of_one_task(monkeypatch):
    experimental = tf.distribute.experimental
    cluster = {"cluster": {"worker": ["a:1"], "evaluator": ["b:1"]}, "task": {"type": "worker", "index": 0}}
    for kind in (experimental.MultiWorkerMirroredStrategy, experimental.ParameterServerStrategy):
        monkeypatch.delenv("TF_CONFIG", raising=False)
        assert kind().num_replicas_in_sync == 1
        monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
        assert kind().num_replicas_in_sync == 1
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["a:1", "b:1"]}))
        with pytest.raises(NotImplementedError, match="%s over 2 tasks is not provided: use tf.train.Server" % kind.__name__):
            kind(cluster_resolver=resolver)
        monkeypatch.setenv("TF_CONFIG", "[")
        with pytest.raises(ValueError, match="TF_CONFIG must be a JSON object"):
            kind()
    with pytest.raises(ValueError, match="CollectiveCommunication"):
        experimental.MultiWorkerMirroredStrategy("nccl")
    with pytest.raises(NotImplementedError, match="MirroredStrategy over 2 tasks"):
        tf.distribute.MirroredStrategy().configure(cluster_spec={"worker": ["a:1"], "ps": ["b:1"]})


def test_what_keras_refuses_within_a_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    x = tf.keras.Input([3])
    outside = tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    with strategy.scope():
        with pytest.raises(ValueError, match="kernel.*was not created in the distribution strategy scope of"):
            outside.compile("sgd", "mse")
        with pytest.raises(ValueError, match="Please use `tf.keras.losses.Reduction.SUM` or `tf.keras.losses.Reduction.NONE`"):
            tf.keras.losses.MeanSquaredError()(np.ones(2), np.zeros(2))
        summed = tf.keras.losses.MeanSquaredError(reduction="sum")(np.ones([2, 1]), np.zeros([2, 1]))
        inside = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[3])])
        inside.compile("sgd", tf.keras.losses.MeanSquaredError())
        assert inside.train_on_batch(np.ones([4, 3]), np.ones([4, 1])) >= 0
    outside.compile("sgd", "mse")
    with tf.Session() as session:
        assert session.run(summed) == 2


def test_a_strategy_for_the_rest_of_the_program():
    plain, strategy = tf.distribute.get_strategy(), tf.distribute.MirroredStrategy()
    with tf.Graph().as_default():
        tf.distribute.experimental_set_strategy(strategy)
        assert tf.distribute.get_strategy() is strategy and tf.distribute.has_strategy()
        tf.distribute.experimental_set_strategy(None)
        assert tf.distribute.get_strategy() is plain and not tf.distribute.has_strategy()


def test_a_strategy_of_one_device():
    plain = tf.distribute.get_strategy()
    for strategy in (tf.distribute.OneDeviceStrategy("device:CPU:0"), tf.contrib.distribute.MirroredStrategy(num_gpus=0)):
        with tf.Graph().as_default(), strategy.scope() as same:
            assert same is strategy is tf.distribute.get_strategy() and tf.distribute.has_strategy() and strategy.num_replicas_in_sync == 1
            assert tf.distribute.get_replica_context() is None and tf.distribute.get_cross_replica_context() is strategy
            assert tf.constant(1).device == "/replica:0/task:0/device:CPU:0" and strategy.extended.worker_devices == (tf.constant(1).device,)
            v = tf.Variable(1.0)
            assert v.op.type == "VarHandleOp" and strategy.extended.variable_created_in_scope(v)
            replica = strategy.experimental_run_v2(tf.distribute.get_replica_context)
            assert replica.strategy is strategy and replica.num_replicas_in_sync == 1
            with pytest.raises(RuntimeError, match="Need to be inside"):
                replica.merge_call(lambda strategy: strategy)
        assert not strategy.extended.variable_created_in_scope(tf.Variable(1.0))
    assert tf.distribute.get_strategy() is plain and not tf.distribute.has_strategy()
    with pytest.raises(NotImplementedError, match="on 2 devices"):
        tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])


class _Counted(tf.distribute.StrategyExtended):
    """Counts variables, and doubles what is reduced."""

    made = 0

    def _create_variable(self, next_creator, **kwargs):
        self.made += 1
        return next_creator(**kwargs)

    def _reduce_to(self, reduce_op, value, destinations):
        return value * 2.0


class _CountedStrategy(tf.distribute.Strategy):
    def __init__(self):
        super().__init__(_Counted(self))


def test_strategies_that_a_program_derives():
    strategy, other = _CountedStrategy(), _CountedStrategy()

    def step(x):
        replica = tf.distribute.get_replica_context()
        assert replica.strategy is strategy and not tf.distribute.in_cross_replica_context()
        return replica.all_reduce("sum", {"x": x})["x"] + tf.get_variable("w", [], initializer=tf.ones_initializer())

    with tf.Graph().as_default(), tf.Session() as session:
        with strategy.scope():
            total = strategy.experimental_run_v2(step, (tf.constant(3.0),))
            with strategy.scope(), pytest.raises(RuntimeError, match="Mixing different"):
                other.scope().__enter__()
            with pytest.raises(RuntimeError, match="Must not be called inside"):
                tf.distribute.experimental_set_strategy(other)
            with tf.Graph().as_default():
                assert not tf.distribute.has_strategy()  # the scope is the graph's
            scope = strategy.scope()
        scope = strategy.scope()
        scope.__enter__()
        with tf.variable_scope("inner"), pytest.raises(RuntimeError, match="Variable scope nesting error"):
            scope.__exit__(None, None, None)
        session.run(tf.global_variables_initializer())
        assert session.run([total, strategy.reduce("mean", total)]) == [7, 14] and strategy.extended.made == 1 and other.extended.made == 0


def test_steps_in_a_loop():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
        total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer())
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(1, 10))

        def step(context, x):
            context.set_last_step_output("last", x, tf.distribute.ReduceOp.SUM)
            context.set_non_tensor_output("kind", "step")
            return total.assign_add(x)

        context = strategy.extended.experimental_run_steps_on_iterator(step, iterator, 3, {"last": tf.constant(0, tf.int64)})
        session.run([tf.global_variables_initializer(), iterator.initialize()])
        for sums, last in ((6, 3), (21, 6)):
            assert session.run([context.run_op, context.last_step_outputs]) == [None, {"last": last}] and session.run(total) == sums
        assert context.non_tensor_outputs == {"kind": "step"}


def test_steps_of_one_loss():
    examples = names.find("python.distribute.single_loss_example")
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
        step, layer = examples.single_loss_example(lambda: tf.train.GradientDescentOptimizer(0.2), strategy, use_bias=True, iterations_per_step=2)
        run, total = step(), layer.kernel[0, 0] + layer.bias[0]
        session.run([tf.global_variables_initializer(), step.initialize()])
        errors = []
        for _ in range(4):
            session.run(run)
            errors.append(abs(1 - session.run(total)))
        assert errors == sorted(errors, reverse=True) and errors[-1] < 0.05
        for optimizer in (tf.train.AdagradOptimizer(0.1), tf.keras.optimizers.SGD(0.2)):
            model, data, layer = examples.minimize_loss_example(optimizer, use_callable_loss=True)
            iterator = strategy.make_input_fn_iterator(lambda _, data=data: data())
            trained = strategy.experimental_run(model, iterator)
            session.run([tf.global_variables_initializer(), iterator.initialize()])
            before = session.run(layer.kernel)[0, 0]
            session.run(trained)
            assert abs(1 - session.run(layer.kernel)[0, 0]) < abs(1 - before)


def test_steps_that_normalize_batches():
    examples = names.find("python.distribute.single_loss_example")
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    for in_replica in (True, False):
        with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
            optimizer = lambda: tf.train.GradientDescentOptimizer(0.1)
            model, data, layer = examples.batchnorm_example(optimizer, momentum=0.5, update_ops_in_replica_mode=in_replica)
            iterator = strategy.make_input_fn_iterator(lambda _, data=data: data())
            trained = [strategy.experimental_run(model, iterator), *([] if in_replica else tf.get_collection(tf.GraphKeys.UPDATE_OPS))]
            session.run([tf.global_variables_initializer(), iterator.initialize()])
            session.run(trained)
            np.testing.assert_allclose(session.run(layer.moving_mean), 0.5 * (60 + np.arange(8)))


def test_estimators_train_and_evaluate_with_it():
    def model(features, labels, mode):
        assert tf.distribute.get_replica_context().strategy is tf.distribute.get_strategy()
        model.seen.append((mode, tf.distribute.get_strategy()))
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.squared_difference(features * w, labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step()))

    def data():
        return tf.data.Dataset.from_tensors(([1.0], [3.0])).repeat(4)

    model.seen = []
    strategies = [tf.contrib.distribute.OneDeviceStrategy("device:CPU:0"), tf.distribute.MirroredStrategy()]
    config = tf.estimator.RunConfig().replace(train_distribute=strategies[0], eval_distribute=strategies[1])
    estimator = tf.estimator.Estimator(model, config=config).train(data, steps=2)
    assert estimator.evaluate(data)["loss"] == 0
    assert [(mode, type(strategy)) for mode, strategy in model.seen] == [("train", type(strategies[0])), ("eval", type(strategies[1]))]


def test_its_values_are_those_of_all():
    strategy, values = tf.distribute.get_strategy(), tf.constant([1.0, 3])
    mean, total = strategy.reduce(tf.distribute.ReduceOp.MEAN, values, 0), strategy.reduce("sum", values, 0)
    v = tf.Variable(1.0)
    assigned = strategy.extended.update(v, lambda var, value: var.assign(value), (7.0,))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([mean, total, assigned]) == [2, 4, 7]
    assert strategy.reduce("SUM", values) is values and strategy.experimental_local_results(values) == (values,)
    assert strategy.experimental_run_v2(lambda a, b: a - b, (5,), {"b": 3}) == 2 and strategy.extended.variable_created_in_scope(v)


def test_callbacks_of_what_runs_without_graphs_see_no_graph():
    with execution_callbacks.errstate(inf_or_nan=execution_callbacks.ExecutionCallback.RAISE), tf.Session() as session:
        assert np.isinf(session.run(tf.constant(1.0) / tf.constant(0.0)))


def test_samples_are_shared_out_to_steps_as_in_1_15():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    assert distributed.global_batch_size_supported(strategy)
    for given, wanted in (
        ((64, None, None), (2, 32)),
        ((20, None, None), (1, 20)),
        ((64, None, 16), (4, 16)),
        ((63, 3, None), (3, 21)),
        ((64, 5, 3), (5, 3)),
        ((64, None, 10, "train"), (7, 10)),
        ((5, None, 10, "train"), (1, 10)),
        ((53, 5, 13, "train"), (5, 13)),
    ):
        assert distributed.get_input_params(strategy, *given) == wanted
    for refused, why in (
        ((63, 2, None, "train"), "63 is not divisible by steps 2"),
        ((64, None, 10), "64 is not divisible by batch size 10"),
        ((64, None, 10, "test"), "64 is not divisible by batch size 10"),
        ((64, 5, 13), "64 is less than samples required for specified batch_size 13 and steps 5"),
        ((52, 5, 13, "train"), "52 is less than samples required"),
    ):
        with pytest.raises(ValueError, match=why):
            distributed.get_input_params(strategy, *refused)


def test_callbacks_that_change_rates_want_optimizers_of_keras():
    callbacks = [tf.keras.callbacks.ReduceLROnPlateau(), tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.1)]
    distributed.validate_callbacks(callbacks, tf.keras.optimizers.Adam())
    distributed.validate_callbacks(None, tf.train.AdamOptimizer())
    distributed.validate_callbacks([tf.keras.callbacks.EarlyStopping()], tf.train.AdamOptimizer())
    for callback in callbacks:
        with pytest.raises(ValueError, match="You must specify a Keras Optimizer V2"):
            distributed.validate_callbacks([callback], tf.train.AdamOptimizer())


def test_the_default_strategy_has_a_class_of_its_own():
    default, chosen = tf.distribute.get_strategy(), tf.distribute.OneDeviceStrategy("/cpu:0")
    assert type(default).__name__ == "_DefaultDistributionStrategy" and isinstance(default, tf.distribute.Strategy)
    assert not isinstance(chosen, type(default)) and not any(tf.keras.backend.is_tpu_strategy(s) for s in (None, default, chosen))


def test_strategies_as_programs_for_1_8_call_them():
    strategy = tf.contrib.distribute.OneDeviceStrategy("/device:CPU:0")
    seen = []

    def in_tower(x, index, y=0.0):
        replica = tf.contrib.distribute.get_tower_context()
        seen.append((replica.tower_id, replica.num_towers, replica.is_single_tower, replica.distribution_strategy is strategy, index))
        return x + y

    with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
        v = tf.get_variable("v", initializer=3.0)
        result = strategy.call_for_each_tower(in_tower, strategy.broadcast(tf.constant(1.0)), strategy.worker_device_index, y=2.0, run_concurrently=False)
        updated = strategy.update(v, lambda v, g, by: v.assign_sub(by * g), strategy.reduce("sum", result, destinations=v), by=0.5)
        products = strategy.map([tf.constant(float(i)) for i in range(10)], lambda x, y: x * y, 2.0)
        read = strategy.distribute_dataset(tf.data.Dataset.range(3)).get_next()
        session.run(v.initializer)
        assert session.run([strategy.unwrap(updated), strategy.fetch(v)])[0] == (1.5,)
        assert session.run([strategy.reduce("sum", products), strategy.reduce("mean", products)]) == [90.0, 9.0]
        assert [session.run(read) for _ in range(3)] == [0, 1, 2]
        assert session.run(strategy.batch_reduce("mean", [(result, v), (result, v)])) == [3.0, 3.0]
    assert seen == [(0, 1, True, True, 0)] and strategy.num_towers == 1 and len(strategy.worker_devices) == len(strategy.parameter_devices) == 1


def test_steps_of_1_8_run_by_monitors():
    examples, combined = names.find("contrib.distribute.python.single_loss_example"), names.find("contrib.distribute.python.combinations")
    strategy = combined.one_device_strategy.strategy
    for optimizer in (combined.gradient_descent_optimizer_v1_fn, combined.adam_optimizer_v2_fn):
        with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
            step, layer = examples.single_loss_example(optimizer, strategy)
            with pytest.raises(ValueError, match="Should provide"):
                tf.contrib.distribute.Monitor(step)
            monitor, errors = tf.contrib.distribute.Monitor(step, session), []
            for steps in (1, 9):
                monitor.run_steps(steps)
                errors.append(abs(1 - session.run(layer.kernel)[0, 0]))
            assert errors[0] > errors[1]
            model, data, layer = examples.minimize_loss_example(optimizer, create_optimizer_inside_model_fn=True)
            trained = strategy.group(strategy.call_for_each_tower(model, strategy.distribute_dataset(data).get_next()))
            session.run(tf.global_variables_initializer())
            before = session.run(layer.kernel)[0, 0]
            session.run(trained)
            assert abs(1 - session.run(layer.kernel)[0, 0]) < abs(1 - before)


def test_gradients_by_the_variables_that_a_function_reads():
    backprop = names.find("python.eager.backprop")
    with tf.Graph().as_default(), tf.Session() as session:
        w, b = tf.get_variable("w", initializer=2.0), tf.get_variable("b", initializer=1.0, trainable=False)
        ((gradient, by),) = backprop.implicit_grad(lambda x: (w * x + b) ** 2)(tf.constant(3.0))
        session.run(tf.global_variables_initializer())
        assert by is w and session.run(gradient) == 42.0  # 2 (2 * 3 + 1) 3
        with pytest.raises(ValueError, match="No trainable variables were accessed"):
            backprop.implicit_grad(lambda x: x * x)(tf.constant(3.0))


def test_strategies_of_towers_are_derived_from_by_their_own_methods():
    distribute = names.find("python.training.distribute")

    class Counting(distribute.DistributionStrategy):
        def _call_for_each_tower(self, fn, *args, **kwargs):
            with distribute.TowerContext(self, tower_id=0):
                return ["tower", fn(*args, **kwargs)]

        def _create_variable(self, next_creator, *args, **kwargs):
            return "made " + kwargs["name"]

    strategy = Counting()

    def body(first, second):
        tower = distribute.get_tower_context()
        assert tower.distribution_strategy is distribute.get_distribution_strategy() is strategy and tower.is_single_tower and tower.tower_id == 0
        assert distribute.get_cross_tower_context() is None and tf.Variable(1.0, name="v") == "made v"
        return tower.merge_call(lambda given, a, b: (given is strategy, distribute.get_tower_context(), a + b), first, b=second)

    with pytest.raises(RuntimeError, match="scope"):
        strategy.call_for_each_tower(body, 1, 2)
    with strategy.scope():
        assert distribute.get_tower_context() is None and distribute.get_cross_tower_context() is strategy
        assert strategy.call_for_each_tower(body, 1, second=2) == ["tower", (True, None, 3)]
        assert strategy.reduce("sum", 5) == 5 and strategy.update("v", lambda v, by: v + by, "w") == "vw" and strategy.broadcast(3) == 3
        with pytest.raises(RuntimeError, match="Need to be inside"):
            distribute.require_tower_context(distribute._default_tower_context)
    tower = distribute.get_tower_context()
    assert tower is distribute._default_tower_context and not distribute.has_distribution_strategy()
    assert tower.merge_call(lambda given, text: (given is distribute._default_distribution_strategy, text), "bar") == (True, "bar")


def test_the_strategy_of_programs_that_choose_none_has_a_class():
    distribute_lib = names.module("python.distribute.distribute_lib")
    assert isinstance(tf.distribute.get_strategy(), distribute_lib._DefaultDistributionStrategy)
    assert not isinstance(tf.distribute.OneDeviceStrategy("/cpu:0"), distribute_lib._DefaultDistributionStrategy)
