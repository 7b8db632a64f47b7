# SPDX-License-Identifier: Apache-2.0
"""Lists and dictionaries that attributes become, whose contents checkpoints keep. What is asked was asked of TensorFlow 1.15."""

import copy
import json
import pickle

import numpy as np
import pytest

import millrace as tf
from millrace.structures import DictWrapper, List, ListWrapper, Mapping
from millrace.train import tracking


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default(), tf.Session():
        yield


def names(value):
    return [name for name, _ in value._checkpoint_dependencies]


def test_lists_and_dictionaries_of_attributes():
    root, given = tracking.AutoTrackable(), [1, {"a": [2]}]
    root.a, root.b = given, (1, [2])
    assert isinstance(root.a, ListWrapper) and isinstance(root.a[1], DictWrapper) and type(root.b) is tuple
    assert root.a == [1, {"a": [2]}] and root.a is not given and names(root.a) == ["1"] and names(root) == ["a"]
    given.append(3)
    assert root.a == [1, {"a": [2]}, 3] and len(root.a) == 3 and 3 in root.a
    with pytest.raises(ValueError, match="Unable to save the object ListWrapper.*outside the wrapper"):
        names(root.a)
    assert json.dumps(root.a) == '[1, {"a": [2]}, 3]' and np.array(ListWrapper([1.0, 2.0])).tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(root.a)) == given and dict(**DictWrapper({"x": 1})) == {"x": 1}
    with pytest.raises(TypeError, match="unhashable"):
        hash(root.a)


def test_only_appending_can_be_saved():
    v = tf.Variable(1.0)
    values = ListWrapper([1, v])
    values.append(2)
    values += [v]
    values[0] = 5
    assert values == [5, v, 2, v] and names(values) == ["1", "3"] and values[1:] == [v, 2, v] and values + [1] == [5, v, 2, v, 1]
    for change in (
        lambda x: x.sort(),
        lambda x: x.pop(),
        lambda x: x.insert(0, 3),
        lambda x: x.__delitem__(0),
        lambda x: x.reverse(),
        lambda x: x.__imul__(-1),
    ):
        changed = ListWrapper([3, 4, 1])
        change(changed)
        assert list.__len__(changed) == len(changed._storage)
        with pytest.raises(ValueError, match="Unable to save"):
            names(changed)
        with pytest.raises(ValueError, match="Unable to save"):
            names(copy.deepcopy(changed))
    values[1] = 7
    with pytest.raises(ValueError, match="Unable to save .*__setslice__"):
        names(values)
    entries = DictWrapper({"a": v, 1: 2})
    assert names(entries) == ["a"] and entries.pop(1) == 2
    with pytest.raises(ValueError, match="Unable to save"):
        names(entries)
    entries = DictWrapper({})
    entries[1] = [v]
    with pytest.raises(ValueError, match="non-string key"):
        names(entries)


def test_containers_of_objects_that_grow():
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, trainable=False)
    values = List([v])
    values.append(w)
    assert values.variables == [v, w] and values.trainable_weights == [v] and values.non_trainable_weights == [w] and names(values) == ["0", "1"]
    values.trainable = False
    assert values.trainable_weights == [] and values.weights == [v, w] and list(values * 2) == [v, w, v, w] and values[-1] is w
    with pytest.raises(ValueError, match="Only trackable objects"):
        values.append(3)
    with pytest.raises(ValueError, match="only supports append"):
        values *= 0
    entries = Mapping(a=v)
    entries.update(b=values)
    assert names(entries) == ["a", "b"] and len({Mapping(), Mapping()}) == 2
    with pytest.raises(ValueError, match="append-only"):
        entries["a"] = w
    with pytest.raises(TypeError, match="only string keys"):
        entries[1] = v


def test_layers_in_containers_belong_to_the_model(tmp_path):
    class Deep(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = List([tf.keras.layers.Dense(3)])
            self.named = {"last": tf.keras.layers.Dense(2)}
            self.ignored = tf.contrib.checkpoint.NoDependency({"other": [tf.Variable(1.0)]})

        def call(self, x):
            for layer in self.parts:
                x = layer(x)
            return self.named["last"](x)

    model = Deep()
    model.parts.append(tf.keras.layers.Dense(4))
    made = model(tf.ones([1, 2]))
    assert made.shape == [1, 2] and len(model.layers) == 3 and len(model.trainable_weights) == 7  # the ignored variable is the model's
    assert names(model) == ["parts", "named"] and type(model.ignored) is dict and [type(x) for x in (model.parts, model.named)] == [List, DictWrapper]
    tf.keras.backend.get_session()
    before = model.parts[1].get_weights()[0]
    model.save_weights(str(tmp_path / "w"), save_format="tf")
    keys = {name.split("/.ATTRIBUTES")[0] for name, _ in tf.train.list_variables(str(tmp_path / "w"))}
    assert {"parts/0/kernel", "parts/1/bias", "named/last/kernel"} <= keys and not any(k.startswith("ignored") for k in keys)
    model.parts[1].set_weights([before * 0, np.ones(4)])
    model.load_weights(str(tmp_path / "w"))
    np.testing.assert_array_equal(model.parts[1].get_weights()[0], before)
    model.named.pop("last")
    with pytest.raises(ValueError, match="Unable to save"):
        model.save_weights(str(tmp_path / "w"), save_format="tf")


def test_dependencies_of_layers():
    dense = tf.keras.layers.Dense(2)
    assert names(dense) == []
    model = tf.keras.Sequential([dense, tf.keras.layers.ReLU()])
    model.build((None, 3))
    assert names(dense) == ["kernel", "bias"] and dense._lookup_dependency("bias") is dense.bias
    assert set(names(model)) == {"layer_with_weights-0", "layer-0", "layer-1"}


def test_the_graph_of_objects_below_a_root(tmp_path):
    from millrace.train.object_graph import ObjectGraphView, TrackableSaver, frozen_saver

    root = tracking.AutoTrackable()
    root.leaf, root.values = tracking.AutoTrackable(), [tf.Variable(2.0, name="in_list")]
    v = tracking.add_variable(root.leaf, "a/b", shape=[2])
    view = ObjectGraphView(root)
    assert view.list_objects() == [root, root.leaf, root.values, v, root.values[0]]
    assert [name for name, _ in view.list_dependencies(root)] == ["leaf", "values"]
    saveables, graph, feeds = view.serialize_object_graph()
    assert [(s.name, s.full_name) for s in saveables] == [
        ("leaf/a.Sb/.ATTRIBUTES/VARIABLE_VALUE", v.op.name),
        ("values/0/.ATTRIBUTES/VARIABLE_VALUE", "in_list"),
    ]
    assert [child.local_name for child in graph.nodes[0].children] == ["leaf", "values"] and not feeds
    session, prefix = tf.get_default_session(), str(tmp_path / "at")
    session.run(tf.global_variables_initializer())
    saver = frozen_saver(root)
    assert session.run(saver.save(tf.constant(prefix))) == prefix.encode()
    session.run(root.values[0].assign(5.0))
    session.run(saver.restore(prefix))
    assert session.run(root.values[0]) == 2
    session.run(root.values[0].assign(5.0))
    objects = TrackableSaver(view)
    objects.restore(prefix).assert_existing_objects_matched().run_restore_ops()
    assert session.run(root.values[0]) == 2 and objects.save(prefix, 3) == prefix + "-3"


def test_what_checkpoints_cannot_keep(tmp_path):
    class Neither(tracking.NotTrackable, tracking.AutoTrackable):
        pass

    root = tracking.AutoTrackable()
    root.x = Neither()
    with pytest.raises(NotImplementedError, match="Checkpoints cannot keep"):
        tf.train.Checkpoint(root=root).save(str(tmp_path / "at"))


def test_resources_of_a_scope_and_values_of_an_object():
    class Numbered(tracking.TrackableResource):
        def _create_resource(self):
            return tf.constant(7)

    outer, inner = tracking.ResourceTracker(), tracking.ResourceTracker()
    with tracking.resource_tracker_scope(outer):
        first = Numbered()
        with tracking.resource_tracker_scope(inner):
            second = Numbered("/cpu:0")
    Numbered()
    assert outer.resources == [first, second] and inner.resources == [second]
    assert second.resource_handle is second.resource_handle and "cpu" in second.resource_handle.device.lower()

    asked = []

    class Kept(tracking.AutoTrackable):
        @property
        @tracking.cached_per_instance
        def value(self):
            asked.append(self)
            return len(asked)

    a, b = Kept(), Kept()
    assert (a.value, b.value, a.value, b.value) == (1, 2, 1, 2) and asked == [a, b]


def test_structures_of_wrapped_lists_are_those_of_lists():
    wrapped = ListWrapper([tf.constant(1.0)])
    tf.nest.assert_same_structure([0], wrapped)
    traced = []

    @tf.function
    def first(values):
        traced.append(values)
        return values[0] + 1.0

    assert first.get_concrete_function([tf.constant(2.0)]) is first.get_concrete_function(wrapped) and len(traced) == 1


def test_models_have_the_variables_of_templates():
    def scaled(x):
        return x * tf.get_variable("scale", [], initializer=tf.ones_initializer())

    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first = tf.make_template("first", scaled)
            self.others = [tf.make_template("other", scaled)]

    net = Net()
    net.others[0](net.first(tf.constant(2.0)))
    names = ["first/scale:0", "other/scale:0"]
    assert [v.name for v in net.trainable_variables] == [v.name for v in net.variables] == names
    assert net.layers == net.others.layers == net.losses == net.updates == []
