# SPDX-License-Identifier: Apache-2.0
"""When values come to a device, and which wait on the host: peaks of the accelerator's memory, and equal bits."""

import hashlib
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import accelerator
import millrace as tf
from accelerator import ACC, delays
from millrace.protos import definitions

SIDE = 360  # half a megabyte a matrix
VALUE = np.random.RandomState(0).rand(SIDE, SIDE).astype(np.float32) / SIDE
MANUAL, SWAPPING_HEURISTICS = definitions.RewriterConfig.MANUAL, definitions.RewriterConfig.SWAPPING_HEURISTICS


def config(recvs=False, memory=0):
    made = tf.ConfigProto(
        allow_soft_placement=True,
        graph_options=tf.GraphOptions(enable_recv_scheduling=recvs, optimizer_options=tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0)),
    )
    made.graph_options.rewrite_options.memory_optimization = memory
    return made


def fan_in(width=40):
    """Values of the host that the accelerator reads one after the other."""
    x = tf.placeholder(tf.float32, [SIDE, SIDE])
    with tf.device("/cpu:0"):
        values = [x * float(k + 1) for k in range(width)]
    with tf.device(ACC):
        total = tf.fill([SIDE, SIDE], 0.5)
        for v in values:
            for _ in range(4):
                total = total * v + v
    return x, [total]


def deep(layers=24, mark=True):
    """A chain whose gradient reads every layer's value again, the first ones last."""
    with tf.device(ACC):
        x = tf.placeholder(tf.float32, [SIDE, SIDE])
        y, values = x, []
        for _ in range(layers):
            y = tf.tanh(y * 0.9 + 0.1)
            values.append(y)
        loss = tf.reduce_sum(y)
        grad = tf.gradients(loss, x, colocate_gradients_with_ops=True)[0]
    for v in values[:-3] if mark else []:
        for op in v.consumers():
            inputs = [k for k, t in enumerate(op.inputs) if t is v]
            made = definitions.AttrValue(list=definitions.AttrValue.ListValue(i=inputs))
            if op.name.startswith("gradients"):
                op._set_attr("_swap_to_host", made.SerializeToString())
    return x, [loss, grad]


def measure(build, recvs, memory):
    """Prints what the compiler says, a hash of what steps give, and the peak of the accelerator's memory."""
    x, fetches = build()
    hashes = set()
    with tf.Session(config=config(recvs, memory)) as session:
        text = session.explain(fetches, [x])
        for seed in range(4):
            delays(seed, 50)
            hashes.add(hashlib.sha256(b"".join(v.tobytes() for v in session.run(fetches, {x: VALUE}))).hexdigest())
    print(json.dumps([text, sorted(hashes), accelerator.peak_bytes()]))


def measured(build, recvs=False, memory=0):
    """The same in a process of its own, since a peak only grows."""
    here = os.path.dirname(os.path.abspath(__file__))
    program = "import test_transfers as t; t.measure(t.%s, %r, %r)" % (build, recvs, memory)
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_values_that_are_read_late_come_late():
    text, hashes, peak = measured("fan_in", recvs=True)
    plain, plain_hashes, plain_peak = measured("fan_in")
    estimates = re.search(r"TESTACC:0: (\S+) MB with receives at once, (\S+) MB with late ones", text)
    assert float(estimates.group(2)) < 0.5 * float(estimates.group(1)), text
    assert "with late ones" not in plain
    assert hashes == plain_hashes and len(hashes) == 1
    # How many of the 40 lie there without it depends on who is faster, the sender or the reader.
    assert peak < 8 * VALUE.nbytes, (peak, plain_peak)


def test_marked_values_wait_on_the_host():
    text, hashes, peak = measured("deep", memory=MANUAL)
    plain, plain_hashes, plain_peak = measured("deep")
    estimates = re.search(r"(\d+) values wait in host memory: peak of values on \S*TESTACC:0 (\S+) MB, then (\S+) MB", text)
    assert int(estimates.group(1)) == 21 and float(estimates.group(3)) < 0.6 * float(estimates.group(2)), text
    assert "wait in host memory" not in plain
    assert hashes == plain_hashes and len(hashes) == 1
    assert peak < 0.7 * plain_peak, (peak, plain_peak)


def test_what_has_no_room_is_swapped_by_cost():
    x, fetches = deep(80, mark=False)  # about 41 MB of values; the accelerator has 32
    with pytest.raises(tf.errors.ResourceExhaustedError), tf.Session(config=config()) as session:
        session.run(fetches, {x: VALUE})
    with tf.Session(config=config(memory=SWAPPING_HEURISTICS)) as session:
        assert "values wait in host memory" in session.explain(fetches, [x])
        results = []
        for seed in range(4):
            delays(seed, 50)
            results.append(session.run(fetches, {x: VALUE}))
    assert np.isfinite(results[0][1]).all()
    for r in results[1:]:
        np.testing.assert_array_equal(results[0][1], r[1])


def test_a_mark_must_name_an_input():
    with tf.device(ACC):
        y = tf.placeholder(tf.float32, [4, 4]) + 1.0
        z = tf.identity(y * 2.0)
    z.op.inputs[0].op._set_attr("_swap_to_host", definitions.AttrValue(i=5).SerializeToString())
    with pytest.raises(tf.errors.InvalidArgumentError, match="_swap_to_host names input 5"), tf.Session(config=config(memory=MANUAL)) as session:
        session.run(z)
