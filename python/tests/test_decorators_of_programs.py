# SPDX-License-Identifier: Apache-2.0
"""What libraries written on TensorFlow take from tensorflow.python.util: decorators, signatures, deprecation, public names, locks, identity."""

import functools
import gc
import json
import threading
import types

import numpy as np
import pytest

import millrace as tf
from millrace import names
from millrace.compat import decorators, deprecation, exports, group_lock, inspecting, json_types, lazy_loader, stacks
from millrace.framework import object_identity


def doubled(function):
    def call(*args, **kwargs):
        return 2 * function(*args, **kwargs)

    return decorators.make_decorator(function, call, "doubled")


@doubled
def add(a, b=1, *, c=0):
    """Adds."""
    return a + b + c


def test_decorators_are_looked_behind():
    made, target = decorators.unwrap(add)
    assert add(1) == 4 and target(1) == 2 and made[0].decorator_name == "doubled" and add.__doc__ == "Adds."
    assert inspecting.getfullargspec(add).args == ["a", "b"] and inspecting.getcallargs(add, 5) == {"a": 5, "b": 1, "c": 0}
    outer = doubled(doubled(target))
    assert decorators.rewrap(outer, target, lambda a: a) is outer
    assert [d.decorator_name for d in decorators.unwrap(outer)[0]] == ["doubled", "doubled"] and decorators.unwrap(outer)[1](7) == 7


def test_signatures():
    assert inspecting.getargspec(functools.partial(add, b=3)).defaults == (3,)
    with pytest.raises(ValueError, match="can not be expressed"):
        inspecting.getargspec(functools.partial(lambda m, n: m, m=1))

    class Called:
        def __call__(self, x, **more):
            return x

    assert inspecting.fn_args(Called()) == ("x",) and inspecting.has_kwargs(Called()) and not inspecting.has_kwargs(add)
    assert inspecting.fn_args(functools.partial(add, 1)) == ("b",) and inspecting.get_func_name(add) == "add"


def test_functions_show_the_arguments_of_tensorflow():
    """Programs compare them with those of functions of their own."""
    for function, other in (
        (tf.concat, lambda values, axis, name="concat": 0),
        (tf.compat.v2.reduce_sum, lambda input_tensor, axis=None, keepdims=False, name=None: 0),
    ):
        assert inspecting.getfullargspec(function) == inspecting.getfullargspec(other)
    assert inspecting.getfullargspec(tf.cast) == inspecting.getfullargspec(lambda x, dtype, name=None: 0)


def test_modules_that_are_loaded_late():
    used = {}
    used["late"] = lazy_loader.LazyLoader("late", used, "colorsys")
    assert used["late"].rgb_to_hsv(0, 0, 1) == (2 / 3, 1, 1) and isinstance(used["late"], types.ModuleType)
    assert not isinstance(used["late"], lazy_loader.LazyLoader) and "rgb_to_hsv" in dir(lazy_loader.LazyLoader("x", {}, "colorsys"))
    with pytest.raises(ImportError, match="no_such_module"):
        lazy_loader.LazyLoader("x", {}, "no_such_module").name


def test_deprecation_is_said_once(monkeypatch):
    said = []
    monkeypatch.setattr(deprecation.logging, "warning", lambda text, *args: said.append(text % args))

    @deprecation.deprecated("2030-01-01", "Use new.")
    def old(x):
        """Does."""
        return x

    assert old(3) == 3 and old(4) == 4 and len(said) == 1
    assert "old" in said[0] and "after 2030-01-01" in said[0] and "test_decorators_of_programs.py" in said[0]
    assert old.__doc__.startswith("Does. (deprecated)\n\nWarning: THIS FUNCTION IS DEPRECATED. It will be removed after 2030-01-01.")

    @deprecation.deprecated_args(None, "Leave it out.", "y", ("z", None))
    def partly(x, y=0, z=1):
        return x

    partly(1)
    partly(1, z=None)
    assert len(said) == 1
    partly(1, 2, z=3)
    assert len(said) == 3 and "with y is deprecated" in said[1] and "with z is deprecated" in said[2]

    def told(outer):
        return deprecation._call_location(outer)

    def asking(outer):
        return told(outer)

    line = asking.__code__.co_firstlineno + 1
    assert asking(False) == "%s:%d" % (__file__, line)
    assert asking(True) == "%s:%d" % (__file__, line + 4)
    deprecation._validate_deprecation_args("2030-01-01", "Use new.")
    with deprecation.silence():
        deprecation.deprecated_arg_values(None, "Another.", x=1)(lambda x: x)(1)
    assert len(said) == 3
    for wrong in (
        lambda: deprecation.deprecated("soon", "x"),
        lambda: deprecation.deprecated(None, ""),
        lambda: deprecation.deprecated_args(None, "x", "q")(old),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_public_names():
    @exports.tf_export("new.f", v1=["old.f"])
    @doubled
    def f():
        pass

    assert exports.get_v2_names(decorators.unwrap(f)[1]) == ["new.f"] and exports.get_v1_names(decorators.unwrap(f)[1]) == ["old.f"]
    assert exports.get_canonical_name_for_symbol(f) == "new.f"
    with pytest.raises(exports.SymbolAlreadyExposedError):
        exports.tf_export("again")(f)
    with pytest.raises(exports.InvalidSymbolNameError):
        exports.tf_export("estimator.f")


def test_groups_hold_a_lock_together():
    lock, order = group_lock.GroupLock(), []

    def other():
        with lock.group(1):
            order.append("other")

    thread = threading.Thread(target=other)
    with lock.group(0), lock.group(0):
        thread.start()
        thread.join(0.05)
        order.append("mine")
    thread.join()
    assert order == ["mine", "other"]
    with pytest.raises(ValueError, match="between 0 and num_groups=2"):
        lock.group(2)


def test_objects_as_keys():
    a, b = np.zeros(2), np.zeros(2)
    tensor, variable = tf.constant(1), tf.Variable(1)
    refs = {tensor.experimental_ref(): "t", variable.experimental_ref(): "v"}
    assert refs[tensor.experimental_ref()] == "t" and next(iter(refs)).deref() is tensor and len({*refs, variable.experimental_ref()}) == 2
    found = object_identity.ObjectIdentityDictionary()
    found[a], found[b] = 1, 2
    assert (found[a], found[b], len(found)) == (1, 2, 2)

    class Thing:
        pass

    thing, weak = Thing(), object_identity.ObjectIdentityWeakSet()
    weak.add(thing)
    assert thing in weak and len(weak) == 1
    del thing
    gc.collect()
    assert len(weak) == 0


def test_places_and_names():
    def inner():
        stack = stacks.TraceableStack()
        stack.push_obj("thing")
        return list(stack.peek_traceable_objs())[0], stacks.extract_stack(1)[0]

    made, frame = inner()
    assert made.obj == "thing" and made.filename == frame.filename == __file__ and frame.name == "inner" and made.lineno == frame.lineno - 1
    registry = stacks.Registry("things")
    registry.register(add)
    assert registry.lookup("add") is add
    with pytest.raises(KeyError, match=r"test_decorators_of_programs.py"):
        registry.register(add)
    with pytest.raises(LookupError, match="things registry has no entry for: sub"):
        registry.lookup("sub")


def test_json():
    made = {"shape": tf.TensorShape([2, None]), "n": np.int64(3), "a": np.arange(2), "f": add}
    assert json.loads(json.dumps(made, default=json_types.get_json_type)) == {"shape": [2, None], "n": 3, "a": [0, 1], "f": "add"}


def test_functions_that_other_classes_take_part_in():
    dispatch = names.module("python.util.dispatch")

    class Scored:
        def __init__(self, tensor, score):
            self.tensor, self.score = tensor, score

    @dispatch.add_dispatch_support
    def twice(x, y):
        return tf.convert_to_tensor(x) + 2 * y

    @dispatch.dispatch_for_types(twice, Scored)
    def _(x, y):
        return Scored(twice(x.tensor, y), x.score)

    made = twice(Scored([1, 2], 0.5), 3)
    with tf.Session() as session:
        assert made.score == 0.5 and session.run(made.tensor).tolist() == [7, 8]
        assert session.run(twice([1, 2], y=4)).tolist() == [9, 10]
    with pytest.raises(TypeError):
        twice(object(), 1)
    with pytest.raises(AssertionError, match="signature must exactly match"):
        dispatch.dispatch_for_types(twice, Scored)(lambda a, b: a)
    with pytest.raises(AssertionError, match="Dispatching not enabled for"):
        dispatch.dispatch_for_types(lambda x: x, Scored)(lambda x: x)
