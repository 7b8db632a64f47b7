# SPDX-License-Identifier: Apache-2.0
"""Traces of steps for Chrome's viewer, and reports of benchmarks."""

import copy
import json
import pickle

import pytest

import millrace as tf
from millrace import timeline
from millrace.protos import definitions


def traced(fetch, feeds=None, **config):
    options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    with tf.Session(config=tf.ConfigProto(**config)) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetch, feeds, options=options, run_metadata=metadata)
    return metadata.step_stats


def test_a_trace_has_nodes_arrows_and_memory():
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            a = tf.get_variable("a", initializer=[1.0] * 100)
        with tf.device("/cpu:1"):
            b = tf.matmul([a], [a], transpose_b=True, name="product")
        stats = traced(b, device_count={"CPU": 2})
    assert {"MatMul(", "product = "} <= {part for d in stats.dev_stats for n in d.node_stats for part in ("MatMul(", "product = ") if part in n.timeline_label}
    analysis = timeline.Timeline(stats).analyze_step_stats()
    events = json.loads(analysis.chrome_trace.format_to_string())["traceEvents"]
    assert {e["ph"] for e in events} >= {"M", "X", "C"}
    assert analysis.allocator_maximums["cpu"].num_bytes >= 400 and analysis.allocator_maximums["cpu"].timestamp > 0
    bare = json.loads(timeline.Timeline(stats).generate_chrome_trace_format(show_dataflow=False, show_memory=False))["traceEvents"]
    assert {e["ph"] for e in bare} == {"M", "X"}
    with pytest.raises(ValueError, match="op_time"):
        timeline.Timeline(stats).generate_chrome_trace_format(op_time="never")


def test_arrows_lead_between_threads():
    stats = definitions.StepStats()
    device = stats.dev_stats.add(device="d")
    for i, (name, inputs) in enumerate((("a", ""), ("b", "a, ^c"), ("c", ""))):
        device.node_stats.add(node_name=name, timeline_label="%s = Op(%s)" % (name, inputs), all_start_micros=10 * i, op_end_rel_micros=5, thread_id=i)
    events = json.loads(timeline.Timeline(stats).generate_chrome_trace_format())["traceEvents"]
    assert [(e["ph"], e["name"], e["tid"], e["ts"]) for e in events if e["ph"] in "st"] == [("s", "a", 0, 5), ("t", "a", 1, 10)]


def test_what_is_sent_is_held_by_its_maker():
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            a = tf.Variable([1.0] * 10, name="a")
        with tf.device("/cpu:1"):
            c = a * 2.0 + a
        stats = traced(c, device_count={"CPU": 2})
    most = timeline.Timeline(stats).analyze_step_stats().allocator_maximums["cpu"]
    assert "a/read" in most.tensors and not any(name.startswith("_recv") for name in most.tensors) and most.num_bytes >= 80


def test_a_constant_has_an_entry():
    with tf.Graph().as_default():
        stats = traced(tf.constant([1.0, 2.0], name="c"))
    (device,) = stats.dev_stats
    (entry,) = [n for n in device.node_stats if n.node_name == "c"]
    assert entry.output[0].tensor_description.allocation_description.requested_bytes == 8


def test_benchmarks_are_registered_and_written(tmp_path, monkeypatch):
    from millrace.testing import benchmark

    class Timed(tf.test.Benchmark):
        def benchmark_sum(self):
            with tf.Graph().as_default(), tf.Session() as session:
                self.run_op_benchmark(session, tf.constant(1.0) + 1.0, min_iters=2, store_trace=True)

    assert Timed in benchmark.GLOBAL_BENCHMARK_REGISTRY
    monkeypatch.setenv(benchmark.TEST_REPORTER_TEST_ENV, str(tmp_path / "b_"))
    benchmark.run_benchmarks(r"Timed.benchmark_sum$")
    (entry,) = definitions.BenchmarkEntries.FromString((tmp_path / "b_Timed.benchmark_sum").read_bytes()).entry
    assert (entry.name, entry.iters) == ("Timed.benchmark_sum", 2) and entry.wall_time > 0
    assert "traceEvents" in json.loads(entry.extras["full_trace_chrome_format"].string_value)
    assert entry.extras["allocator_maximum_num_bytes_cpu"].double_value > 0
    with pytest.raises(OSError, match="exists"):
        Timed().benchmark_sum()


def test_watches_that_tell_nobody_change_nothing():
    with tf.Graph().as_default(), tf.Session() as session:
        options = tf.RunOptions()
        watch = options.debug_options.debug_tensor_watch_opts.add(node_name="c", debug_ops=["DebugIdentity"])
        c = tf.constant(3, name="c")
        assert session.run(c, options=options) == 3
        watch.debug_urls.append("file:///tmp/c")
        with pytest.raises(tf.errors.UnimplementedError, match="c is to be told to file:///tmp/c"):
            session.run(c, options=options)


def test_metadata_are_decoded_when_they_are_looked_at():
    full = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = tf.random_uniform([3], name="first"), tf.random_uniform([3], name="second")
        metadata = tf.RunMetadata()
        session.run(first, options=full, run_metadata=metadata)
        session.run(second, options=full, run_metadata=metadata)  # takes the place of what nobody has looked at
        encoded = metadata._encoded
        names = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
        assert any(n.startswith("second") for n in names) and not any(n.startswith("first") for n in names)
        assert metadata.SerializeToString() == encoded, "fields are in their order, and those that are nothing are left out"
        session.run(first, options=full, run_metadata=metadata)
        assert copy.deepcopy(metadata) == metadata and pickle.loads(pickle.dumps(metadata)) == metadata
        with tf.profiler.record() as trace:
            session.run(second, run_metadata=metadata)
        assert trace.metadata[0] == metadata and trace.steps[0].runs
    broken = tf.RunMetadata()
    broken._parse_later(b"\x0a\xff")
    with pytest.raises(ValueError, match="truncated"):
        broken.step_stats
