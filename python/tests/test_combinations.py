# SPDX-License-Identifier: Apache-2.0
"""Tests for all combinations of arguments. Names, values and which are skipped are those of TensorFlow 1.15.5."""

import unittest

import pytest

import millrace as tf

combinations, strategies = tf.python.distribute.combinations, tf.python.distribute.strategy_combinations
_SEEN = []


class _Methods(unittest.TestCase):
    __test__ = False  # run below

    @combinations.generate(
        combinations.combine(
            distribution=[strategies.default_strategy, strategies.one_device_strategy, strategies.mirrored_strategy_with_gpu_and_cpu],
            mode=["graph", "eager"],
            b=["x y"],
            lossFn=len,
        )
    )
    def testA(self, distribution, b, lossFn):
        _SEEN.append((self.id().rsplit(".", 1)[1], type(distribution).__name__, b, lossFn, tf.get_default_graph().get_operations()))
        tf.no_op()

    def testPlain(self):
        _SEEN.append(("plain",))


@combinations.generate(combinations.times(combinations.combine(mode="graph", optimizer_fn=strategies.optimizers_v1), combinations.combine(x=2)))
class _Class(unittest.TestCase):
    __test__ = False

    def testC(self, optimizer_fn, x):
        _SEEN.append((type(optimizer_fn()).__name__, x))


def _run(case):
    _SEEN.clear()
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert not result.errors and not result.failures
    return sorted(_SEEN, key=str), [why for _, why in result.skipped]


def test_tests_of_combinations():
    seen, skipped = _run(_Methods)
    name = "testA_test_b_xy_distribution_%s_lossFn_builtinfunctionlen_mode_graph"
    assert seen == [
        ("plain",),
        (name % "Default", "_DefaultDistributionStrategy", "x y", len, []),
        (name % "OneDeviceCPU", "OneDeviceStrategy", "x y", len, []),
    ]
    assert sorted(skipped)[-1] == "Only 0 of 1 required GPUs are available." and len(skipped) == 4
    assert _run(_Class) == ([("AdagradOptimizer", 2), ("GradientDescentOptimizer", 2)], [])
    assert [n for n in dir(_Class) if n.startswith("test")] == [
        "testC_test_mode_graph_optimizerfn_AdagradV1_x_2",
        "testC_test_mode_graph_optimizerfn_GradientDescentV1_x_2",
    ]


def test_combinations():
    assert combinations.combine() == [{}] and combinations.combine(a=[1, 2], b="q") == [{"a": 1, "b": "q"}, {"a": 2, "b": "q"}]
    with pytest.raises(ValueError, match="not overlap"):
        combinations.times(combinations.combine(a=1), combinations.combine(a=2))
    counts = [len(made()) for made in (strategies.all_strategy_combinations, strategies.all_strategy_combinations_minus_default)]
    assert counts == [12, 10] and len(strategies.distributions_and_v1_and_v2_optimizers()) == 12
    with pytest.raises(ValueError, match="must be at least 1 not 0"):
        strategies.set_virtual_cpus_to_at_least(0)
    tpu = strategies.tpu_strategy
    assert (repr(tpu), tpu.required_gpus, tpu.required_tpu) == ("TPU", None, True)
    with pytest.raises(NotImplementedError, match="no TPUs"):
        tf.python.distribute.tpu_strategy.TPUStrategy()

    class Wrong(unittest.TestCase):
        @combinations.generate(combinations.combine(mode="graph", other=1))
        def test(self):
            pass

    with pytest.raises(ValueError, match="does not take other"):
        Wrong("test_test_mode_graph_other_1").debug()
