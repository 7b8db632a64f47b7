# SPDX-License-Identifier: Apache-2.0
"""Values and variables with a copy for each replica, as strategies of programs make them."""

import collections

import pytest

import millrace as tf
from millrace import names
from millrace.framework import nest

values = names.find("python.distribute.values")
TWO = ("/replica:0/task:0/device:CPU:0", "/replica:0/task:0/device:CPU:1")


def test_maps_name_devices_and_their_replicas():
    replicas = values.ReplicaDeviceMap(["/cpu:0", "/device:CPU:1"])
    assert replicas.all_devices == TWO and list(replicas.devices_by_replica) == [(d,) for d in TWO] and replicas.replica_for_device(TWO[1]) == 1
    assert replicas.is_device_in_replica(TWO[1], 1) and replicas == values.ReplicaDeviceMap(TWO) and replicas != values.WorkerDeviceMap(TWO, 1)
    with pytest.raises(ValueError, match="Duplicate devices"):
        values.ReplicaDeviceMap(("/cpu:0", "/device:CPU:0"))
    workers = values.WorkerDeviceMap(["/job:w/task:0", "/job:w/task:1"], 2)
    assert workers.num_replicas_in_graph == 2 and workers.select_for_device("ab", "/job:w/replica:0/task:1/device:CPU:0") == "b"
    for asked, said in (  # as programs for 1.15 know them
        (lambda: workers.devices_by_replica, "`WorkerDeviceMap` is not indexed by replicas"),
        (lambda: workers.replica_for_device(TWO[0]), "`WorkerDeviceMap` not indexed by replicas"),
        (lambda: workers.is_device_in_replica(TWO[0], 1), "WorkerDeviceMap not indexed by replicas"),
    ):
        with pytest.raises(ValueError, match=said):
            asked()
    with pytest.raises(ValueError, match="Device q not found in"):
        values.SingleDeviceMap("/gpu:0").select_for_device([5], "q")


def test_structures_of_replicas_become_one_and_part_again():
    devices, same = values.ReplicaDeviceMap(TWO), object()
    first, second = (1, [2, {"a": 3}], same), (4, [5, {"a": 6}], same)
    together = values.regroup(devices, (first, second))
    assert isinstance(together[0], values.PerReplica) and together[0].values == (1, 4) and together[2] is same
    assert values.select_replica(0, together) == first and values.select_replica(1, together) == second
    with pytest.raises(TypeError, match="Expected value to be mirrored"):
        values.select_device_mirrored("/cpu:0", together)
    mirrored = values.regroup(devices, (first, second), values.Mirrored)
    assert values.select_device_mirrored("/cpu:1", mirrored) == second and mirrored[0] + 1 == 2 and 10 - mirrored[0] == 9 and mirrored[0].get("/cpu:1") == 4
    with pytest.raises(ValueError, match="same set of keys"):
        values.regroup(devices, ({"a": 1}, {"b": 1}))
    specs = [tf.estimator.EstimatorSpec("train", loss=tf.constant(v), train_op=tf.no_op()) for v in (1.0, 2.0)]
    spec = values.regroup(devices, specs)
    assert isinstance(spec, tf.estimator.EstimatorSpec) and spec.mode == "train" and spec.loss.values == (specs[0].loss, specs[1].loss)
    assert values.select_replica(1, spec) == specs[1]
    by_default = values.regroup(devices, [collections.defaultdict(list, {"b": v, "a": [v, 3]}) for v in (1, 2)])
    assert by_default["b"].values == (1, 2) and by_default["a"][1] == 3 and values.select_replica(1, by_default) == {"b": 2, "a": [2, 3]}


def test_per_replica_values_are_composite():
    each = values.PerReplica(values.ReplicaDeviceMap(TWO), (tf.constant(1.0), tf.constant([5.0, 6])))
    more = nest.map_structure(lambda t: t + 10, each, expand_composites=True)
    assert each.is_tensor_like and tf.is_tensor(each) and not tf.is_tensor(values.PerReplica(each.device_map, (tf.constant(1), 2)))
    assert each._type_spec == more._type_spec and each._type_spec._serialize()[1] == ("replica", TWO)
    chosen = tf.cond(tf.constant(True), lambda: each, lambda: more)
    with tf.Session() as session:
        assert [v.tolist() for v in session.run(list(more.values) + list(chosen.values))] == [11.0, [15.0, 16.0], 1.0, [5.0, 6.0]]


def copies(kind, aggregation, strategy=None, dtype=tf.float32):
    made = [tf.get_variable(name, initializer=tf.constant(value, dtype), use_resource=True) for name, value in (("v", 1), ("v/replica", 2))]
    return made, kind(strategy, values.ReplicaDeviceMap(TWO), made, aggregation)


def test_mirrored_variables_are_saved_once_and_restored_everywhere(tmp_path):
    made, variable = copies(values.MirroredVariable, tf.VariableAggregation.SUM)
    assert variable.name == "v:0" and variable.aggregation is tf.VariableAggregation.SUM and isinstance(variable, tf.Variable)
    assert values.regroup(variable.device_map, made) is variable and values.select_replica(1, variable) is made[1]
    saver = tf.train.Saver([variable])
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run([variable, made[1], variable.is_initialized(), variable * 3.0]) == [1.0, 2.0, True, 3.0]
        path = saver.save(session, str(tmp_path / "model"))
        assert tf.train.list_variables(path) == [("v", [])]
        session.run(variable.assign(7.0))
        assert session.run(made) == [7.0, 7.0]
        saver.restore(session, path)
        assert session.run(made) == [1.0, 1.0]


@pytest.mark.parametrize("aggregation, read, restored", [("SUM", 3.0, 1.5), ("MEAN", 1.5, 1.5), ("ONLY_FIRST_REPLICA", 1.0, 1.0)])
def test_variables_of_each_replica_are_read_together(aggregation, read, restored, tmp_path):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    made, variable = copies(values.SyncOnReadVariable, tf.VariableAggregation[aggregation], strategy)
    with strategy.scope():
        across, saver = variable.read_value(), tf.train.Saver([variable])
        assign = variable.assign(8.0)
        if aggregation == "SUM":
            with pytest.raises(ValueError, match="does not support `assign_add` in cross-replica context"):
                variable.assign_add(1.0)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run([across, variable.read_value()]) == [read, 1.0]
        path = saver.save(session, str(tmp_path / "model"))
        session.run(assign)
        assert session.run(made) == [4.0 if aggregation == "SUM" else 8.0] * 2
        saver.restore(session, path)
        assert session.run(made) == [restored, restored]


@pytest.mark.parametrize("aggregation, read, assigned, restored", [("SUM", 3, 4, 1), ("MEAN", 1.5, 9, 1)])
def test_whole_numbers_of_each_replica_are_parted_as_whole_numbers(aggregation, read, assigned, restored, tmp_path):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    made, variable = copies(values.SyncOnReadVariable, tf.VariableAggregation[aggregation], strategy, tf.int64)
    with strategy.scope():
        across, saver, assign = variable.read_value(), tf.train.Saver([variable]), variable.assign(9)
    with tf.Session() as session:
        session.run(variable.initializer)
        path = saver.save(session, str(tmp_path / "model"))
        assert session.run(across) == read and tf.train.load_checkpoint(path).get_tensor("v").dtype == "int64"
        session.run(assign)
        assert session.run(made) == [assigned] * 2
        saver.restore(session, path)
        assert session.run(made) == [restored] * 2


def test_replicas_set_a_variable_by_its_aggregation():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    variable = tf.get_variable("w", initializer=1.0, use_resource=True)
    shared = values.AggregatingVariable(strategy, variable, tf.VariableAggregation.SUM)
    mirrored = values.MirroredVariable(strategy, values.SingleDeviceMap("/cpu:0"), [variable], tf.VariableAggregation.NONE)
    added = strategy.experimental_run_v2(lambda: shared.assign_add(2.0))
    with pytest.raises(ValueError, match="must specify an aggregation method to update a MirroredVariable"):
        strategy.experimental_run_v2(lambda: mirrored.assign_add(2.0))
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(added) == 3.0 and session.run(mirrored.assign(5.0)) == 5.0


def test_values_by_devices_as_1_8_makes_them():
    values, towers = names.find("contrib.distribute.python.values"), names.find("contrib.distribute.python.cross_tower_ops")
    devices = ["/device:CPU:0", "/device:CPU:1"]
    held = values.regroup({devices[0]: ("a", [1, {"x": 2}]), devices[1]: ("b", [3, {"x": 4}])})
    assert isinstance(held[0], values.PerDevice) and held[0].get(devices[1]) == "b" and list(held[0]._index.values()) == ["a", "b"]
    assert values.select_device(devices[1], held) == ("b", [3, {"x": 4}])
    with pytest.raises(TypeError):
        values.select_device_mirrored(devices[0], held)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        copies = [tf.get_variable(n, initializer=i, use_resource=True) for n, i in (("v", 1.0), ("w", 2.0))]
        mirrored = values.MirroredVariable(dict(zip(devices, copies)), copies[0])
        assert values.regroup(dict(zip(devices, copies))) is mirrored and mirrored.name == "v:0"
        local = values.TowerLocalVariable({devices[0]: tf.get_variable("l", initializer=1.0, use_resource=True)}, None, "sum")
        assert local.reduce_method == "sum" and local.name == "l:0"
        iterator = values.PerDeviceDataset(tf.data.Dataset.range(5), devices).make_one_shot_iterator()
        following = iterator.get_next()
        read = [values.select_device(d, following) for d in devices]
        assert [session.run(read) for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(read)
        given = values.PerDevice(dict(zip(devices, (tf.constant(1.0), tf.constant(4.0)))))
        for ops in (towers.CrossTowerOps(), towers.ReductionToOneDeviceCrossTowerOps(devices[1], tf.accumulate_n), towers.AllReduceCrossTowerOps("nccl", 1)):
            total, (mean,) = ops.reduce("sum", given), ops.batch_reduce("mean", [(given, devices[0])])
            assert session.run(list(total.values)) == [5.0, 5.0] and session.run(list(mean.values)) == [2.5] and len(mean.devices) == 1
        assert session.run(list(ops.broadcast(tf.constant(3.0), devices).values)) == [3.0, 3.0]


def test_how_linked_devices_add():
    choose = names.find("contrib.distribute.python.cross_tower_ops")._choose_all_reduce_algorithm
    two_fours = [[1, 2, 3, 4], [0, 2, 3, 5], [0, 1, 3, 6], [0, 1, 2, 7], [0, 5, 6, 7], [1, 4, 6, 7], [2, 4, 5, 7], [3, 4, 5, 6]]
    for links in (two_fours, [[own, *others] for own, others in enumerate(two_fours)]):
        assert (choose(links).all_reduce_alg, choose(links).num_packs) == ("hierarchical_copy", 8)
    assert (choose(two_fours[:4]).all_reduce_alg, choose(two_fours[:4]).num_packs) == ("nccl", 1)
