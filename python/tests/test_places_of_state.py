# SPDX-License-Identifier: Apache-2.0
"""Where variables, queues and iterators are, when steps of one graph use them from several devices."""

import pytest

import millrace as tf


def _one_then_another(build, devices=3):
    """What the second of two fetches gives, each run by itself."""
    with tf.Graph().as_default():
        before, after = build()
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices}, operation_timeout_in_ms=20000)) as session:
            for operation in before:
                session.run(operation)
            return session.run(after)


def test_state_is_in_one_place_in_all_steps():
    """The values are those of TensorFlow 1.15.5, whose placer sees the whole graph."""

    def queue(of_queue=None, of_size=None):
        with tf.device(of_queue):
            made = tf.FIFOQueue(9, tf.float32, [()])
        with tf.device("/cpu:1"):
            put = made.enqueue(1.0)
        with tf.device(of_size):
            return [put], made.size()

    def variable(of_variable=None, use_resource=True):
        with tf.device(of_variable):
            made = tf.get_variable("v", initializer=1.0, use_resource=use_resource)
        with tf.device("/cpu:1"):
            return [made.initializer], made.assign_add(1.0)

    def one_shot():
        iterator = tf.data.Dataset.range(9).make_one_shot_iterator()
        with tf.device("/cpu:1"):
            first = iterator.get_next()
        return [first], iterator.get_next()

    def producer():
        with tf.device("/cpu:1"):
            names = tf.train.string_input_producer(["a"], shuffle=False)
        element = names.dequeue()
        return [tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)[0].enqueue_ops[0]], element

    def area():
        made = tf.contrib.staging.StagingArea([tf.float32])
        with tf.device("/cpu:1"):
            put = made.put([1.0])
        return [put], made.size()

    assert _one_then_another(queue) == 1
    assert _one_then_another(lambda: queue(of_size="/cpu:2")) == 1
    assert _one_then_another(lambda: queue(of_queue="/cpu:2")) == 1, "who makes it decides"
    for use_resource in (False, True):
        assert _one_then_another(lambda: variable(use_resource=use_resource)) == 2
        assert _one_then_another(lambda: variable("/cpu:0", use_resource)) == 2
    assert _one_then_another(one_shot) == 1
    assert _one_then_another(producer) == b"a"
    assert _one_then_another(area) == 1


def test_state_stays_where_it_is_when_the_graph_grows():
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        queue = tf.FIFOQueue(9, tf.float32, [()])
        session.run(queue.enqueue(1.0))
        with tf.device("/cpu:1"):
            assert session.run(queue.size()) == 1


def test_soft_placement_does_not_reach_for_other_tasks():
    for device, is_there in (("/gpu:7", True), ("/job:localhost/gpu:1", True), ("/job:ps", False), ("/task:2", False)):
        with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session, tf.device(device):
            if is_there:
                assert session.run(tf.add(1.0, 2.0)) == 3.0
            else:
                with pytest.raises(tf.errors.InvalidArgumentError, match="no device matches '%s" % device):
                    session.run(tf.add(1.0, 2.0))


def test_partitioned_variables_take_a_value_for_each_part():
    parts = tf.fixed_size_partitioner(2)
    with tf.Graph().as_default(), tf.Session() as session:
        one = tf.get_variable("one", initializer=tf.constant([[1.0, 2.0], [3.0, 4.0]]), partitioner=parts)
        other = tf.get_variable("other", initializer=tf.constant([[10.0, 20.0], [30.0, 40.0]]), partitioner=parts)
        taken = one.assign_add(other.assign_sub(tf.ones([2, 2])))
        session.run(tf.global_variables_initializer())
        assert [made.tolist() for made in session.run(taken)] == [[[10.0, 21.0]], [[32.0, 43.0]]]
        assert [made.tolist() for made in session.run(one.assign([[[5.0, 6.0]], [[7.0, 8.0]]]))] == [[[5.0, 6.0]], [[7.0, 8.0]]]
        assert [made.tolist() for made in session.run(one.assign([[1.0, 2.0], [3.0, 4.0]]))] == [[[1.0, 2.0]], [[3.0, 4.0]]]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("initializer", [tf.random_normal_initializer(), None, tf.orthogonal_initializer(), tf.zeros_initializer()])
def test_what_a_function_starts_a_variable_from_lies_with_it(initializer, use_resource):
    w = tf.get_variable("w", [3] if initializer is None else [3, 1], initializer=initializer, use_resource=use_resource)
    made = [op for op in tf.get_default_graph().get_operations() if op.name.startswith("w/Initializer/")]
    assert made and all(op.colocation_groups() == [b"loc:@w"] and op.device == "" for op in made)
    with tf.Session() as session:
        assert session.run(w.initial_value).size == 3  # without the variable
        session.run(w.initializer)


def test_what_changes_a_reference_lies_with_it():
    v = tf.Variable(tf.zeros([4, 3]), name="v", use_resource=False)
    count = tf.Variable(1, name="count", use_resource=False)
    slot = tf.train.MomentumOptimizer(0.1, 0.9)
    slot.minimize(tf.reduce_sum(v))
    row = tf.ones([1, 3])
    changed = [v.assign(v.initial_value), v.assign_add(v.initial_value), tf.scatter_add(v, [1], row), tf.scatter_nd_update(v, [[1]], row), v[1:2].assign(row)]
    changed += [tf.is_variable_initialized(v), slot.get_slot(v, "momentum").assign(v.initial_value)]
    assert all(t.op.colocation_groups() == [b"loc:@v"] for t in changed)
    assert tf.count_up_to(count, 3).op.colocation_groups() == [b"loc:@count"]
    with tf.colocate_with(count.op):
        assert v.assign(v.initial_value).op.colocation_groups() == [b"loc:@count", b"loc:@v"]


def test_nodes_that_one_call_makes_all_lie_with_what_they_are_told_to():
    v = tf.Variable(tf.zeros([4, 3]), name="v")
    with tf.colocate_with(v.op):
        tf.losses.huber_loss(v, tf.ones([4, 3]), scope="loss")
        tf.nn.moments(v, [0], name="moments")
        tf.train.exponential_decay(0.1, 3, 5, 0.5, name="rate")
    made = [op for op in tf.get_default_graph().get_operations() if op.name.split("/")[0] in ("loss", "moments", "rate")]
    assert len(made) > 20 and all(op.colocation_groups() == [b"loc:@v"] for op in made)
