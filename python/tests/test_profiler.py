# SPDX-License-Identifier: Apache-2.0
"""What traced steps tell: reports, files for viewers, waits, the critical path, memory."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import browser
import millrace as tf
from millrace import profiler
from millrace.cli import main
from millrace.framework import function
from millrace.profiler import report
from millrace.protos import definitions


def _stats(*rows, whole=100, threads=None):
    """StepStats of (name, op, inputs, thread, start, end, ready, bytes made) in microseconds; more of a row: free, buffer."""
    stats = definitions.StepStats()
    device = stats.dev_stats.add(device="/device:CPU:0")
    device.thread_names.update(threads or {1: "main 1", 2: "pool 2"})
    device.node_stats.add(node_name="_SOURCE", timeline_label="_SOURCE = NoOp", all_start_micros=1000, all_end_rel_micros=whole)
    for name, op, inputs, thread, start, end, ready, made, *more in rows:
        free, buffer = [*more, None, None][:2]
        node = device.node_stats.add(
            node_name=name,
            timeline_label="%s = %s(%s)" % (name, op, inputs),
            thread_id=thread,
            all_start_micros=1000 + start,
            scheduled_micros=1000 + ready,
            op_end_rel_micros=(end if free is None else free) - start,
            all_end_rel_micros=end - start,
        )
        output = node.output.add()
        allocation = output.tensor_description.allocation_description
        allocation.requested_bytes, allocation.allocated_bytes, allocation.ptr = made or 10, made, hash(name) % 1000 + 1 if buffer is None else buffer
    return stats


# Thread 1: a, long, c; thread 2: b, d. c needs a, and waits for `long`; d needs b and c.
_ROWS = [
    ("a", "A", "", 1, 10, 20, 10, 100),
    ("b", "B", "", 2, 12, 30, 12, 50),
    ("long", "L", "a", 1, 20, 60, 20, 0),
    ("c", "C", "a", 1, 60, 70, 20, 30),
    ("d", "D", "b, ^c", 2, 75, 90, 70, 5),
]


def test_a_step_says_why_ops_waited():
    step = profiler.Step(_stats(*_ROWS))
    runs = {r.name: r for r in step.runs}
    assert step.length == 100_000 and runs["c"].delay == 40_000 and runs["c"].wait == "its thread ran long"
    assert runs["d"].wait == "handed over to another thread by c" and runs["long"].wait == ""
    assert [r.name for r in step.critical_path()] == ["a", "long", "c", "d"]
    rows = step.on_path(step.critical_path())
    assert [(r.name, nanos, gap) for r, nanos, gap in rows] == [("a", 10_000, 10_000), ("long", 40_000, 0), ("c", 10_000, 0), ("d", 15_000, 5_000)]
    assert step.longest_chain() == 10_000 + 40_000  # a, long: nobody needs `long`, but it is the longest way


def test_idle_time_has_causes():
    idle = profiler.Step(_stats(*_ROWS)).idle()
    second = [(i.start, i.end, i.why.split(":")[0], i.what) for i in idle if i.thread == 2]
    assert second == [
        (0, 10_000, "before the first op", ""),
        (10_000, 12_000, "nothing was ready", ""),
        (30_000, 70_000, "nothing was ready", "c"),
        (70_000, 75_000, "between ops", "d"),
        (90_000, 100_000, "after the last op", ""),
    ]
    for thread in (1, 2):  # all of the step is either busy or idle
        busy = sum(r.end - r.start for r in profiler.Step(_stats(*_ROWS)).runs if r.thread == thread)
        assert busy + sum(i.end - i.start for i in idle if i.thread == thread) == 100_000


def test_threads_off_their_cpus():
    stats = _stats(*_ROWS)
    switches = stats.dev_stats.add(device="/host:CPU thread switches")
    for name, thread, start, end in (("preempted", 1, 30, 35), ("asleep", 2, 30, 72), ("preempted", 2, 71, 74)):
        switches.node_stats.add(
            node_name=name, timeline_label=name + " = OffCpu()", thread_id=thread, all_start_micros=1000 + start, all_end_rel_micros=end - start
        )
    step = profiler.Step(stats)
    runs = {r.name: r for r in step.runs}
    assert len(runs) == len(_ROWS) and step.devices == ["/device:CPU:0"]
    assert (runs["long"].preempted, runs["long"].asleep) == (5_000, 0) and runs["c"].preempted == 0
    assert runs["d"].wait == "other threads of the machine had its thread's CPU"
    assert "others had its threads' CPUs for 8.0 us" in profiler.Trace([definitions.RunMetadata(step_stats=stats)]).text()


def test_parts_of_ops_on_other_threads():
    stats = _stats(*_ROWS, threads={1: "main 1", 2: "pool 2"})
    pool = stats.dev_stats.add(device="/device:CPU:0 pool threads")
    pool.thread_names.update({2: "millrace 2", 3: "millrace 3"})
    for name, thread, asked, start, end in (("long", 3, 22, 25, 50), ("long", 2, 22, 40, 55), ("c", 3, 60, 61, 70)):
        pool.node_stats.add(
            node_name=name + " (part)",
            timeline_label=name + " (part) = Part()",
            thread_id=thread,
            scheduled_micros=1000 + asked,
            all_start_micros=1000 + start,
            all_end_rel_micros=end - start,
        )
    step = profiler.Step(stats)
    assert [r.name for r in step.runs] == ["a", "b", "long", "c", "d"] and step.devices == ["/device:CPU:0"]
    assert step.threads == {1: "main 1", 2: "pool 2", 3: "millrace 3"}
    assert [(p.run.name, p.thread, p.delay, p.start, p.end) for p in step.parts] == [
        ("long", 3, 3_000, 25_000, 50_000),
        ("long", 2, 18_000, 40_000, 55_000),
        ("c", 3, 1_000, 61_000, 70_000),
    ]
    idle = step.idle()
    waited_for_c = [(i.start, i.end) for i in idle if i.thread == 2 and i.what == "c"]
    assert waited_for_c == [(30_000, 40_000), (55_000, 70_000)]  # but for its part of `long`
    assert [(i.start, i.end, i.why) for i in idle if i.thread == 3] == [
        (start, end, "no op had a part for it") for start, end in ((0, 25_000), (50_000, 61_000), (70_000, 100_000))
    ]
    data = json.loads(report.html([step]).split("const DATA=")[1].split(';\n"use strict"')[0])
    assert data["steps"][0]["parts"] == [[2, 3, 22_000, 25_000, 50_000], [2, 2, 22_000, 40_000, 55_000], [3, 3, 60_000, 61_000, 70_000]]


def test_ops_that_are_split_tell_who_took_parts():
    x = tf.placeholder(tf.float32, [512, 512])
    y = tf.matmul(tf.matmul(x, x), x)
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as session, profiler.record() as trace:
        for _ in range(4):
            session.run(y, {x: np.ones([512, 512], np.float32)})
    if (os.cpu_count() or 1) < 2:
        pytest.skip("skipped: one CPU, no pool")
    parts = [p for step in trace.steps for p in step.parts]
    assert parts and all(p.run.op == "MatMul" and p.thread != p.run.thread for p in parts)
    assert all(p.run.start <= p.asked <= p.start <= p.end <= p.run.end for p in parts)


def test_memory_is_held_until_the_last_reader_has_ended():
    rows = [
        ("a", "A", "", 1, 10, 20, 10, 100, None, 1),
        ("same", "Reshape", "a", 1, 20, 21, 20, 0, None, 1),
        ("b", "B", "same", 1, 30, 40, 21, 64, None, 2),
        ("c", "C", "b", 1, 40, 50, 40, 8, None, 3),
    ]
    step = profiler.Step(_stats(*rows))
    assert [(p.run.name, p.size, p.start, p.end) for p in step.memory()] == [("a", 100, 10_000, 40_000), ("b", 64, 30_000, 50_000), ("c", 8, 40_000, 100_000)]
    when, most, holders = step.peak()
    assert (when, most, [p.run.name for p in holders]) == (30_000, 164, ["a", "b"])
    assert step.memory_over_time() == [(0, 0), (10_000, 100), (30_000, 164), (40_000, 72), (50_000, 8), (100_000, 0)]


def test_a_recv_waits_by_itself_for_its_send():
    rows = [
        ("v", "V", "", 1, 10, 50, 10, 4),
        ("_send", "_Send", "v", 1, 50, 52, 50, 0),
        ("_recv", "_Recv", "_send", 2, 11, 51, 11, 0, 11),
        ("y", "Y", "_recv", 2, 53, 60, 51, 4),
    ]
    step = profiler.Step(_stats(*rows))
    recv = step.runs[1]
    assert recv.is_asynchronous and [r.name for r in recv.inputs] == ["_send"]
    assert [r.name for r in step.critical_path()] == ["v", "_send", "_recv", "y"]
    assert ("waited for a value on its way", "_recv") in [(i.why, i.what) for i in step.idle() if i.thread == 2]


def test_runs_of_a_loop_read_the_run_before():
    rows = [("n", "N", "", 1, 10, 11, 10, 4), ("body", "B", "n", 1, 12, 13, 11, 4), ("n", "N", "body", 1, 14, 15, 13, 4), ("body", "B", "n", 1, 16, 17, 15, 4)]
    runs = profiler.Step(_stats(*rows)).runs
    assert [[r.number for r in run.inputs] for run in runs] == [[], [0], [1], [2]]


def _train(devices=2, steps=6, **recorded):
    with tf.Graph().as_default():
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, [None, 30], name="x")
            h = tf.tanh(tf.matmul(x, tf.get_variable("w", [30, 20])), name="h")
        with tf.device("/cpu:%d" % (devices - 1)):
            loss = tf.reduce_mean(tf.square(tf.matmul(h, tf.get_variable("v", [20, 10]), name="y")), name="loss")
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as session:
            session.run(tf.global_variables_initializer())
            with profiler.record(**recorded) as trace:
                for _ in range(steps):
                    session.run([train, loss], {x: np.ones([8, 30], np.float32)})
    return trace


def test_steps_are_recorded_and_reported(tmp_path):
    trace = _train(steps=6)
    assert len(trace) == 6
    step = trace.steps[-1]
    sends, recvs = ([r for r in step.runs if r.op == op] for op in ("_Send", "_Recv"))
    assert sends and len(recvs) == len(sends) and all([i.op for i in r.inputs] == ["_Send"] for r in recvs)
    assert all(0 <= r.ready <= r.start <= r.free <= r.end <= step.length for r in step.runs)
    assert step.threads and all(r.thread in step.threads for r in step.runs)
    names = {r.name: r for r in step.runs}
    assert [i.name for i in names["y"].inputs if i.op != "Identity"][0].startswith("_recv") and names["y"].made == 8 * 10 * 4
    assert names["h"].made == 0  # in the memory of its input
    path = step.critical_path()
    assert path[-1].end == max(r.end for r in step.runs) and all(a.start <= b.end for a, b in zip(path, path[1:]))
    assert sum(nanos + gap for _, nanos, gap in step.on_path(path)) == path[-1].end
    trace.save(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert not re.search(r"(src|href)\s*=|https?:|@import|fetch\(", page)  # nothing from elsewhere
    data = json.loads(re.search(r"const DATA=(.*?);\n\"use strict\"", page, re.S).group(1))
    assert len(data["steps"]) == 6 and {"_Send", "_Recv", "MatMul"} <= set(data["names"])
    trace.save(tmp_path / "r.json")
    events = json.loads((tmp_path / "r.json").read_text())["traceEvents"]
    assert {e["ph"] for e in events} >= {"M", "X", "s", "f", "C"} and any(e["name"] == "thread_name" for e in events)
    assert sum(e["ph"] == "M" and e["name"] == "process_name" and e["pid"] == 0 for e in events) == 1
    text = trace.text().splitlines()
    assert [line.startswith("step %d: " % i) for i, line in enumerate(text[:6])] == [True] * 6 and len(text) < 45, trace.text()
    assert len(trace.text(rows=12).splitlines()) > len(text)
    assert "critical path" in trace.text() and "MatMul" in trace.text() and "iframe" in trace._repr_html_()
    with pytest.raises(ValueError, match=r"want \.html"):
        trace.save(tmp_path / "r.txt")


def test_the_file_for_viewers_has_nanoseconds_causes_and_arrows():
    stats = _stats(*_ROWS, ("recv", "_Recv", "b", 2, 15, 40, 15, 0, 16), ("queue", "Q", "", 2, 16, 50, 16, 0, 17))
    for i, node in enumerate(stats.dev_stats[0].node_stats):  # 0.25 us each, one behind the other
        if node.node_name in ("a", "b"):
            node.all_start_nanos, node.op_end_rel_nanos, node.all_end_rel_nanos = 1_012_000 + 250 * i, 250, 250
    data = json.loads(profiler.Trace([stats, stats], ["step 0", "step 1"]).chrome())
    events = data["traceEvents"]
    assert data["otherData"]["began_nanos_since_1970"] == "1000000"
    ops = {e["args"]["name"]: e for e in events if e["ph"] == "X" and e["cat"] == "Op"}
    assert (ops["a"]["ts"], ops["a"]["dur"], ops["b"]["ts"]) == (12.25, 0.25, 12.5)
    assert ops["c"]["args"]["waited_us"] == 40 and ops["c"]["args"]["why"] == "its thread ran long" and ops["c"]["args"]["bytes"] == 30
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [lines[ops[n]["pid"], ops[n]["tid"]] for n in ("a", "b", "recv", "queue")] == [
        "main 1",
        "pool 2",
        "waits without a thread 1",
        "waits without a thread 2",
    ]
    arrows = {e["id"]: [] for e in events if "id" in e}
    for e in events:
        if "id" in e:
            arrows[e["id"]].append((e["ph"], lines[e["pid"], e["tid"]], e["ts"]))
    assert len(arrows) == 4 and sorted(arrows.values())[1::2] == [
        [("s", "main 1", 69.999), ("f", "pool 2", 75.0)],  # c before d
        [("s", "pool 2", 12.749), ("f", "waits without a thread 1", 39.999)],  # b to recv
    ]
    for place in lines:  # nothing overlaps on a line
        spans = sorted({(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == place})
        assert all(earlier[1] <= later[0] for earlier, later in zip(spans, spans[1:]))


@pytest.mark.skipif(not browser.CHROMIUM, reason="skipped: no chromium")
def test_a_report_in_a_browser(tmp_path):
    _train(steps=4).save(tmp_path / "r.html")
    with browser.Browser(tmp_path / "profile") as page:
        page.go("file://%s" % (tmp_path / "r.html"))
        page.wait("document.readyState === 'complete' && typeof DATA !== 'undefined' && view[1] === step.length")
        painted = "(id => {const c = $(id); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length})"
        for canvas in ("bars", "overview", "timeline", "close"):  # the steps; one of them by device, by thread; one op of it
            assert page.ask("%s('%s')" % (painted, canvas)) > 500, canvas
        longest = page.ask("N[runs[step.critical.reduce((a, b) => b[1] > a[1] ? b : a)[0]][NAME]]")
        assert page.ask("$('detail').querySelector('b').textContent") == longest
        # Dragging over the whole step chooses what the timeline shows.
        mouse = "$('overview').dispatchEvent(new MouseEvent('%s', {bubbles: true, clientX: $('overview').getBoundingClientRect().left + LEFT + %d}))"
        for kind, x in (("mousedown", 100), ("mousemove", 200), ("mouseup", 200)):
            page.ask(mouse % (kind, x))
        width = page.ask("$('overview').clientWidth - LEFT - 10")
        begin, end = page.ask("view.map(t => t / step.length)")
        assert begin == pytest.approx(100 / width, rel=0.03) and end == pytest.approx(200 / width, rel=0.03)
        page.ask("$('fit').click()")
        assert page.ask("view") == [0, page.ask("step.length")]
        page.ask("$('choice').value = 2, $('choice').onchange({target: $('choice')})")
        assert page.ask("DATA.steps.indexOf(step)") == 2
        name = page.ask("(row => (row.click(), N[runs[+row.dataset.go][NAME]]))(document.querySelector('#nodes tr.go'))")
        assert page.ask("$('detail').querySelector('b').textContent") == name
        assert page.errors == []


def test_only_the_steps_that_are_asked_for(tmp_path):
    trace = _train(steps=5, folder=str(tmp_path / "t"))
    again = profiler.Trace.read(tmp_path / "t")
    assert len(trace) == len(again) == 5 and again.steps[3].name.endswith("step 3")
    with tf.Graph().as_default(), tf.Session() as session:
        c = tf.constant(1.0) + tf.random_uniform([])
        with profiler.record(steps={1, 4}) as chosen:
            metadata = tf.RunMetadata()
            for _ in range(5):
                session.run(c, run_metadata=metadata)
        session.run(c)
    assert [s.name for s in chosen] == ["step 1", "step 4"] and metadata.step_stats.dev_stats
    with pytest.raises(ValueError, match="no traced step"):
        profiler.Trace().html()


_PROGRAM = """
import millrace as tf
with tf.Graph().as_default(), tf.Session() as session:
    x = tf.random_uniform([10]) * 2.0
    for _ in range(6):
        session.run(x)
"""


def test_callables_are_recorded():
    x = tf.placeholder(tf.float32)
    y = tf.square(x, name="callable_square")
    with tf.Session() as session:
        plain, with_options = session.make_callable(y, [x]), session.make_callable(y, [x], accept_options=True)
        with tf.profiler.record() as trace:
            assert plain(3) == 9 and with_options(2) == 4
        assert plain(4) == 16 and len(trace.steps) == 2
        for step in trace.steps:
            assert "callable_square" in [run.name for run in step.runs]
        metadata = tf.RunMetadata()
        assert with_options(5, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata) == 25
        assert "callable_square" in [run.name for run in tf.profiler.Step(metadata).runs]
        with pytest.raises(TypeError, match="takes 1 values, got 2"):
            with_options(1, 2)


def test_functions_of_data_sets_and_recursive_calls_are_traced():
    again = function.Declare("Factorial", [("n", tf.int64)], [("result", tf.int64)])

    @function.Defun(tf.int64, func_name="Factorial")
    def factorial(n):
        return tf.cond(n < 2, lambda: tf.constant(1, tf.int64), lambda: tf.multiply(n, again(n - 1), name="product"))

    with tf.Graph().as_default(), tf.Session() as session:
        element = tf.data.Dataset.range(100).map(lambda n: tf.square(n, name="squared")).make_one_shot_iterator().get_next()
        ahead = tf.data.Dataset.range(100).map(lambda n: tf.negative(n, name="ahead")).prefetch(9).make_one_shot_iterator().get_next()
        n = tf.placeholder(tf.int64, [])
        wanted = [element, ahead, factorial(n)]
        session.run(wanted, {n: 5})
        with profiler.record() as trace:
            assert session.run(wanted, {n: 5}) == [1, -1, 120]
    (step,) = trace.steps
    runs = {}
    for run in step.runs:
        runs.setdefault(run.name.split("/")[-1], []).append(run)
    (squared,) = runs["squared"]
    assert squared.op == "Square" and "/" in squared.name
    assert any(r.start <= squared.start and squared.end <= r.end for r in step.runs if r.op == "IteratorGetNext")
    assert [r.name.split("/")[0] for r in runs["product"]].count("Factorial") >= 3
    assert "ahead" not in runs  # it runs on a thread of its own, for steps to come


def test_a_program_is_traced_from_outside(tmp_path, capsys):
    def run(**environment):
        return subprocess.run(
            [sys.executable, "-c", _PROGRAM], env={**os.environ, "MILLRACE_TRACE": str(tmp_path / "t"), **environment}, capture_output=True, text=True
        )

    assert run(MILLRACE_TRACE_STEPS="1-2,4").returncode == 0
    trace = profiler.Trace.read(tmp_path / "t")
    assert [s.name.split(", ", 1)[1] for s in trace] == ["session 0, step 1", "session 0, step 2", "session 0, step 4"]
    assert "RandomUniform" in [r.op for r in trace.steps[0].runs]
    bad = run(MILLRACE_TRACE_STEPS="5-2")
    assert bad.returncode != 0 and "'5-2' is no step and no range of steps" in bad.stderr
    assert main(["trace", str(tmp_path / "t"), "--out", str(tmp_path / "r.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][0]["ops"] and (tmp_path / "r.html").exists()
    (tmp_path / "t" / "trace-1-0-000009.pb").write_bytes(b"no message")
    with pytest.warns(UserWarning, match="000009.pb is no trace: .*; it is left out"):
        assert len(profiler.Trace.read(tmp_path / "t")) == 3
    with pytest.raises(ValueError, match="is no trace"):
        profiler.Trace.read(tmp_path / "t" / "trace-1-0-000009.pb")
    os.makedirs(tmp_path / "empty")
    assert main(["trace", str(tmp_path / "empty")]) == 2


_SESSIONS = """
import glob, sys, threading
import millrace as tf

x = tf.placeholder(tf.float32, [])
y = tf.square(x, name="square")

def train():
    with tf.Session(graph=y.graph) as session:
        for i in range(5):
            session.run(y, {x: i})
threads = [threading.Thread(target=train) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert len(glob.glob(sys.argv[1] + "/*.pb")) == 40, "who closes a session has its traces"
assert not glob.glob(sys.argv[1] + "/*.part")
left_open = tf.Session()
left_open.run(y, {x: 1})
"""


def test_traces_are_whole_when_a_session_is_closed_and_when_the_program_ends(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", _SESSIONS, str(tmp_path / "t")], env={**os.environ, "MILLRACE_TRACE": str(tmp_path / "t")}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    trace = profiler.Trace.read(tmp_path / "t")
    assert sorted(s.name.split(", ", 1)[1] for s in trace) == sorted(
        ["session %d, step %d" % (s, i) for s in range(8) for i in range(5)] + ["session 8, step 0"]
    )
    for step in trace:
        assert "square" in [r.name for r in step.runs]
        by_start = [r.start for r in step.runs]
        assert by_start == sorted(by_start)


def test_traces_that_cannot_be_written_do_not_fail_the_step(tmp_path):
    (tmp_path / "file").write_text("")
    run = subprocess.run([sys.executable, "-c", _PROGRAM], env={**os.environ, "MILLRACE_TRACE": str(tmp_path / "file" / "t")}, capture_output=True, text=True)
    assert run.returncode == 0 and "the trace of a step is not written" in run.stderr


@pytest.mark.skipif(shutil.which("chromium") is None, reason="skipped: no chromium")
def test_the_report_works_in_a_browser(tmp_path):
    _train(steps=3).save(tmp_path / "r.html")
    probe = "<script>window.onerror=m=>document.title='failed: '+m;</script></head>"
    after = "<script>$('in').click();$('after').click();show(0);document.title='drew '+document.querySelectorAll('#ops tr').length</script></body>"
    page = (tmp_path / "r.html").read_text().replace("</head>", probe, 1).replace("</body>", after, 1)
    (tmp_path / "probe.html").write_text(page)
    ran = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--virtual-time-budget=2000", "file://%s" % (tmp_path / "probe.html")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    title = re.search(r"<title>(.*?)</title>", ran.stdout).group(1)
    assert title.startswith("drew ") and int(title.split()[1]) > 5
