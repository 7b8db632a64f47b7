# SPDX-License-Identifier: Apache-2.0
"""The table's last part: what programs are made of around their graphs: sessions, flags, files, summaries, savers, cells."""

from __future__ import annotations

import gzip
import os
import struct
import tempfile
from typing import Any, Callable, List

import numpy as np

from table import A, B, V, case, f32, sigmoid


def folder() -> str:
    return tempfile.mkdtemp(prefix="dialect")


# ---- sessions, placeholders, collections ----


def _fed(tf: Any, x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x * 2, feed_dict={x: A})


case(
    "placeholder",
    A * 2,
    lambda tf: _fed(tf, tf.placeholder(tf.float32)),
    lambda tf: _fed(tf, tf.placeholder(tf.float32, [None, 3])),
    lambda tf: _fed(tf, tf.placeholder(tf.float32, [2, 3], "x")),
    lambda tf: _fed(tf, tf.placeholder("float", [None, 3])),
    lambda tf: _fed(tf, tf.placeholder(dtype=tf.float32, shape=(2, None), name="x")),
    lambda tf: _fed(tf, tf.placeholder(np.float32, shape=tf.TensorShape([2, 3]))),
    lambda tf: _fed(tf, tf.placeholder("float32", shape=None)),
    lambda tf: _fed(tf, tf.placeholder(shape=[None, None], dtype=tf.float32)),
)


def _initialised(tf: Any, make: Callable[[], Any]) -> Any:
    v = tf.Variable(A)
    with tf.Session() as session:
        made = make()
        session.run(made) if not hasattr(made, "run") else made.run()
        return session.run(v)


case(
    "global_variables_initializer",
    A,
    lambda tf: _initialised(tf, tf.global_variables_initializer),
    lambda tf: _initialised(tf, tf.initialize_all_variables),
    lambda tf: _initialised(tf, lambda: tf.variables_initializer(tf.global_variables())),
    lambda tf: _initialised(tf, lambda: tf.variables_initializer(var_list=tf.global_variables(), name="i")),
    lambda tf: _initialised(tf, lambda: tf.initialize_variables(tf.all_variables())),
    lambda tf: _initialised(tf, lambda: tf.global_variables_initializer().name),
)


def _collected(tf: Any, *get: Callable[[], Any]) -> Any:
    with tf.name_scope("s"):
        x = tf.constant(1, name="x")
    y = tf.constant(2, name="y")
    for t in (x, y):
        tf.add_to_collection("c", t)
    return [[t.name for t in g()] for g in get][0]


case(
    "get_collection",
    ["s/x:0", "y:0"],
    lambda tf: _collected(tf, lambda: tf.get_collection("c")),
    lambda tf: _collected(tf, lambda: tf.get_collection(key="c", scope=None)),
    lambda tf: _collected(tf, lambda: tf.get_default_graph().get_collection("c")),
    lambda tf: _collected(tf, lambda: tf.get_collection_ref("c")),
)
case(
    "get_collection of a scope",
    ["s/x:0"],
    lambda tf: _collected(tf, lambda: tf.get_collection("c", "s")),
    lambda tf: _collected(tf, lambda: tf.get_collection("c", scope="s/")),
    lambda tf: _collected(tf, lambda: tf.get_collection(key="c", scope="s")),
)


def _reset(tf: Any) -> Any:
    with tf.Graph().as_default():
        pass
    return "Const:0" if tf.constant(1).name == "Const:0" else "?"


case("reset_default_graph", "Const:0", _reset)


def _interactive(tf: Any, *args: Any, **kwargs: Any) -> Any:
    session = tf.InteractiveSession(*args, **kwargs)
    try:
        with session.graph.as_default():
            v = tf.Variable(A)
            tf.global_variables_initializer().run()
            return v.eval()
    finally:
        session.close()


case(
    "InteractiveSession",
    A,
    _interactive,
    lambda tf: _interactive(tf, config=tf.ConfigProto(log_device_placement=False)),
    lambda tf: _interactive(tf, graph=tf.get_default_graph()),
    lambda tf: _interactive(tf, "", None, None),
)


def _configured(tf: Any, config: Any) -> Any:
    with tf.Session(config=config) as session:
        return [config.allow_soft_placement, config.log_device_placement, config.intra_op_parallelism_threads, session.run(tf.constant(V))]


def _by_attributes(tf: Any) -> Any:
    config = tf.ConfigProto()
    config.allow_soft_placement, config.intra_op_parallelism_threads = True, 1
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    return config


case(
    "ConfigProto",
    [True, False, 1, V],
    lambda tf: _configured(tf, tf.ConfigProto(allow_soft_placement=True, log_device_placement=False, intra_op_parallelism_threads=1)),
    lambda tf: _configured(tf, _by_attributes(tf)),
    lambda tf: _configured(
        tf,
        tf.ConfigProto(
            allow_soft_placement=True,
            intra_op_parallelism_threads=1,
            inter_op_parallelism_threads=1,
            device_count={"CPU": 1},
            gpu_options=tf.GPUOptions(allow_growth=True),
            graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=0)),
        ),
    ),
)


def _scoped(tf: Any, use: Callable[[Any], Any]) -> Any:
    with tf.variable_scope("a"):
        with tf.variable_scope("b"):
            return use(tf.get_variable_scope())


def _reused(tf: Any, reuse: Callable[[], Any]) -> Any:
    with tf.variable_scope("a"):
        first = tf.get_variable("v", [1])
        reuse()
        return tf.get_variable("v", [1]) is first


case("get_variable_scope", "a/b", lambda tf: _scoped(tf, lambda s: s.name), lambda tf: _scoped(tf, lambda s: s.original_name_scope[:-1]))
case("get_variable_scope's reuse", True, lambda tf: _reused(tf, lambda: tf.get_variable_scope().reuse_variables()))

# ---- flags and the main function ----

_flags = iter(range(10**6))


def _flag(tf: Any, define: str, given: str, *args: Any, **kwargs: Any) -> Any:
    flags = tf.app.flags if next(_flags) % 2 else tf.flags
    name = "dialect%d" % next(_flags)
    getattr(flags, define)(name, *args, **kwargs)
    flags.FLAGS(["program", given % name] if given else ["program"])
    return getattr(flags.FLAGS, name)


case(
    "flags.DEFINE_string",
    "b",
    lambda tf: _flag(tf, "DEFINE_string", "--%s=b", "a", "Help."),
    lambda tf: _flag(tf, "DEFINE_string", "--%s=b", default="a", help="Help."),
    lambda tf: _flag(tf, "DEFINE_string", "", "b", "Help."),
    lambda tf: _flag(tf, "DEFINE_string", "--%s=b", None, "Help."),
)
case(
    "flags.DEFINE_integer",
    5,
    lambda tf: _flag(tf, "DEFINE_integer", "--%s=5", 3, "Help."),
    lambda tf: _flag(tf, "DEFINE_integer", "--%s=5", default=3, help="Help."),
    lambda tf: _flag(tf, "DEFINE_integer", "", 5, "Help."),
)
case(
    "flags.DEFINE_float",
    0.5,
    lambda tf: _flag(tf, "DEFINE_float", "--%s=0.5", 1.0, "Help."),
    lambda tf: _flag(tf, "DEFINE_float", "-%s=5e-1", default=1, help="Help."),
    lambda tf: _flag(tf, "DEFINE_float", "", 0.5, "Help."),
)
case(
    "flags.DEFINE_boolean",
    False,
    lambda tf: _flag(tf, "DEFINE_boolean", "--no%s", True, "Help."),
    lambda tf: _flag(tf, "DEFINE_boolean", "--%s=False", True, "Help."),
    lambda tf: _flag(tf, "DEFINE_bool", "--%s=0", True, "Help."),
    lambda tf: _flag(tf, "DEFINE_boolean", "", False, "Help."),
)
case("flags.FLAGS", 7, lambda tf: _flag(tf, "DEFINE_integer", "", 7, "Help."), lambda tf: _assigned(tf))


def _assigned(tf: Any) -> Any:
    name = "dialect%d" % next(_flags)
    tf.app.flags.DEFINE_integer(name, 1, "Help.")
    tf.app.flags.FLAGS(["program"])
    setattr(tf.app.flags.FLAGS, name, 7)
    return getattr(tf.flags.FLAGS, name)


def _run(tf: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        tf.app.run(*args, **kwargs)
    except SystemExit as end:
        return end.code
    return "did not end"


case(
    "app.run",
    3,
    lambda tf: _run(tf, lambda argv: 3, ["program"]),
    lambda tf: _run(tf, main=lambda argv: len(argv), argv=["program", "a", "b"]),
    lambda tf: _run(tf, lambda _: 3, argv=["program"]),
)

# ---- savers ----


def _saved(tf: Any, make: Callable[..., Any], save: Callable[..., Any], find: Callable[[str, str], Any]) -> Any:
    v = tf.Variable(A, name="v")
    saver = make(v)
    where = folder()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = save(saver, session, os.path.join(where, "model"))
        session.run(v.assign(B))
        saver.restore(session, find(where, path))
        return session.run(v)


def _plainly(saver: Any, session: Any, path: str) -> Any:
    return saver.save(session, path)


def _checkpoint(tf: Any, state: Any) -> str:
    assert state and state.all_model_checkpoint_paths[-1] == state.model_checkpoint_path
    return str(state.model_checkpoint_path)


case(
    "train.Saver",
    A,
    *[
        lambda tf, m=m, s=s: _saved(tf, lambda v: m(tf, v), s, lambda where, path: path)
        for m, s in (
            (lambda tf, v: tf.train.Saver(), _plainly),
            (lambda tf, v: tf.train.Saver([v]), _plainly),
            (lambda tf, v: tf.train.Saver({"other": v}), _plainly),
            (lambda tf, v: tf.train.Saver(tf.global_variables()), _plainly),
            (lambda tf, v: tf.train.Saver(var_list=[v], max_to_keep=3, keep_checkpoint_every_n_hours=2), _plainly),
            (lambda tf, v: tf.train.Saver(max_to_keep=1), lambda saver, session, path: saver.save(session, path, 7)),
            (
                lambda tf, v: tf.train.Saver(tf.trainable_variables(), write_version=tf.train.SaverDef.V2, sharded=False, name="s"),
                lambda saver, session, path: saver.save(session, path, global_step=7),
            ),
            (
                lambda tf, v: tf.train.Saver(),
                lambda saver, session, path: saver.save(sess=session, save_path=path + ".ckpt", global_step=tf_step(session), write_meta_graph=False),
            ),
        )
    ],
)
case(
    "train.latest_checkpoint",
    A,
    *[
        lambda tf, f=f: _saved(tf, lambda v: tf.train.Saver(), _plainly, lambda where, path: f(tf, where))
        for f in (
            lambda tf, where: tf.train.latest_checkpoint(where),
            lambda tf, where: tf.train.latest_checkpoint(checkpoint_dir=where),
            lambda tf, where: tf.train.latest_checkpoint(where, "checkpoint"),
        )
    ],
)
case("train.latest_checkpoint of an empty folder", None, lambda tf: tf.train.latest_checkpoint(folder()))
case(
    "train.get_checkpoint_state",
    A,
    *[
        lambda tf, f=f: _saved(tf, lambda v: tf.train.Saver(), _plainly, lambda where, path: _checkpoint(tf, f(tf, where)))
        for f in (
            lambda tf, where: tf.train.get_checkpoint_state(where),
            lambda tf, where: tf.train.get_checkpoint_state(checkpoint_dir=where),
            lambda tf, where: tf.train.get_checkpoint_state(where, latest_filename="checkpoint"),
            lambda tf, where: tf.train.get_checkpoint_state(os.path.join(where, "")),
        )
    ],
)
case("train.get_checkpoint_state of an empty folder", None, lambda tf: tf.train.get_checkpoint_state(folder()))


def tf_step(session: Any) -> int:
    return len(session.graph.get_operations())


# ---- summaries ----


def _summary(tf: Any, tensor: Any) -> List[Any]:
    with tf.Session() as session:
        text = session.run(tensor)
    message = tf.Summary()
    message.ParseFromString(text)
    return sorted(
        [v.tag, round(v.simple_value, 4) if v.HasField("simple_value") else [v.histo.num, v.histo.sum, v.histo.min, v.histo.max]] for v in message.value
    )


case(
    "summary.scalar",
    [["loss", 1.5]],
    lambda tf: _summary(tf, tf.summary.scalar("loss", 1.5)),
    lambda tf: _summary(tf, tf.summary.scalar("loss", tf.constant(1.5), collections=["c"])),
    lambda tf: _summary(tf, tf.summary.scalar(name="loss", tensor=tf.constant(1.5))),
    old=[lambda tf: _summary(tf, tf.scalar_summary("loss", 1.5)), lambda tf: _summary(tf, tf.scalar_summary(tags="loss", values=tf.constant(1.5)))],
)
case(
    "summary.histogram",
    [["h", [3.0, 2.0, -2.0, 3.0]]],
    lambda tf: _summary(tf, tf.summary.histogram("h", V)),
    lambda tf: _summary(tf, tf.summary.histogram("h", tf.constant(V), collections=["c"])),
    lambda tf: _summary(tf, tf.summary.histogram(name="h", values=V)),
    old=[lambda tf: _summary(tf, tf.histogram_summary("h", V)), lambda tf: _summary(tf, tf.histogram_summary(tag="h", values=V))],
)


def _all(tf: Any, merge: Callable[[], Any], **kwargs: Any) -> Any:
    with tf.name_scope("s"):
        tf.summary.scalar("a", 1.0, **kwargs)
    tf.summary.scalar("b", 2.0, **kwargs)
    return _summary(tf, merge())


case(
    "summary.merge_all",
    [["b", 2.0], ["s/a", 1.0]],
    lambda tf: _all(tf, tf.summary.merge_all),
    lambda tf: _all(tf, lambda: tf.summary.merge_all("c"), collections=["c"]),
    lambda tf: _all(tf, lambda: tf.summary.merge_all(key="c"), collections=["c"]),
    lambda tf: _all(tf, lambda: tf.summary.merge_all(key=tf.GraphKeys.SUMMARIES)),
    lambda tf: _all(tf, lambda: tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES))),
    old=[lambda tf: _all(tf, tf.merge_all_summaries), lambda tf: _all(tf, lambda: tf.merge_summary(tf.get_collection("summaries")))],
)
case("summary.merge_all of nothing", None, lambda tf: tf.summary.merge_all())


def _written(tf: Any, make: Callable[[str], Any]) -> Any:
    where = folder()
    scalar = tf.summary.scalar("loss", 1.5)
    writer = make(where)
    with tf.Session() as session:
        writer.add_summary(session.run(scalar), 3)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.5)]), global_step=4)
    writer.flush()
    writer.close()
    found = []
    for name in sorted(os.listdir(where)):
        for event in tf.train.summary_iterator(os.path.join(where, name)):
            found += [[event.step, v.tag, v.simple_value] for v in event.summary.value]
    return found


def _writer(tf: Any) -> Any:
    return tf.train.SummaryWriter


case(
    "summary.FileWriter",
    [[3, "loss", 1.5], [4, "t", 2.5]],
    lambda tf: _written(tf, tf.summary.FileWriter),
    lambda tf: _written(tf, lambda d: tf.summary.FileWriter(d, tf.get_default_graph())),
    lambda tf: _written(tf, lambda d: tf.summary.FileWriter(d, graph=tf.get_default_graph(), flush_secs=5, max_queue=2)),
    lambda tf: _written(tf, lambda d: tf.summary.FileWriter(logdir=d)),
    lambda tf: _written(tf, lambda d: tf.summary.FileWriter(d, graph_def=tf.get_default_graph().as_graph_def())),
    lambda tf: _written(tf, lambda d: tf.summary.FileWriter(d, filename_suffix=".x")),
    old=[
        lambda tf: _written(tf, _writer(tf)),
        lambda tf: _written(tf, lambda d: _writer(tf)(d, graph_def=tf.get_default_graph().as_graph_def())),
        lambda tf: _written(tf, lambda d: _writer(tf)(d, tf.Session().graph_def)),
    ],
)

# ---- coordinators ----


def _coordinated(tf: Any, coordinator: Any) -> Any:
    import threading

    seen: List[int] = []

    def work() -> None:
        while not coordinator.should_stop():
            seen.append(1)
            if len(seen) >= 3:
                coordinator.request_stop()

    thread = threading.Thread(target=work)
    thread.start()
    coordinator.join([thread])
    return [coordinator.should_stop(), len(seen)]


case(
    "train.Coordinator",
    [True, 3],
    lambda tf: _coordinated(tf, tf.train.Coordinator()),
    lambda tf: _coordinated(tf, tf.train.Coordinator(clean_stop_exception_types=(ValueError,))),
)

# ---- cells ----

_X, _H, _C = np.array([[1, -1]], f32), np.array([[0.5, 0.25, 0]], f32), np.array([[0.1, -0.2, 0.3]], f32)
_W = (np.arange(60, dtype=f32).reshape(5, 12) - 30) / 40


def _lstm(forget: float = 1.0) -> Any:
    i, j, f, o = np.split(np.concatenate([_X, _H], 1) @ _W, 4, 1)
    c = _C * sigmoid(f + forget) + sigmoid(i) * np.tanh(j)
    return [np.tanh(c) * sigmoid(o), c]


def _cell(tf: Any, make: Callable[[Any], Any], joined: bool = False) -> Any:
    cells = tf.nn.rnn_cell
    with tf.variable_scope("cell", initializer=tf.constant_initializer(_W)):
        cell = make(cells)
        if joined:
            out, state = cell(tf.constant(_X), tf.concat([_C, _H], 1))
            return [out, state[:, :3]]
        out, state = cell(tf.constant(_X), cells.LSTMStateTuple(tf.constant(_C), tf.constant(_H)))
    return [out, state.c]


case(
    "nn.rnn_cell.BasicLSTMCell",
    _lstm(),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, bias())),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3)),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(num_units=3, forget_bias=1.0, state_is_tuple=True)),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, 1.0, True)),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, activation=tf.tanh, reuse=None)),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, state_is_tuple=False), True),
    wheel=False,
)
case(
    "nn.rnn_cell.BasicLSTMCell's forget bias",
    _lstm(0.0),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, forget_bias=0.0)),
    lambda tf: _cell(tf, lambda c: c.BasicLSTMCell(3, 0.0)),
    wheel=False,
)


def bias() -> float:
    return 1.0


# ---- the digits of MNIST ----


def _digits() -> str:
    where = folder()
    for kind, count in (("train", 8), ("t10k", 3)):
        pixels = (np.arange(count * 784) % 256).astype(np.uint8)
        with gzip.open(os.path.join(where, kind + "-images-idx3-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">4i", 2051, count, 28, 28) + pixels.tobytes())
        with gzip.open(os.path.join(where, kind + "-labels-idx1-ubyte.gz"), "wb") as f:
            f.write(struct.pack(">2i", 2049, count) + (np.arange(count) % 10).astype(np.uint8).tobytes())
    return where


def _sets(tf: Any, *args: Any, **kwargs: Any) -> Any:
    data = tf.examples.tutorials.mnist.input_data.read_data_sets(_digits(), *args, **dict({"validation_size": 2}, **kwargs))
    images, labels = data.train.next_batch(4, shuffle=False)
    return [
        data.train.num_examples,
        data.validation.num_examples,
        data.test.images.shape,
        images.shape,
        str(images.dtype),
        float(images.max()),
        np.argmax(labels, 1).tolist() if labels.ndim == 2 else labels.tolist(),
    ]


case(
    "examples.tutorials.mnist.input_data.read_data_sets",
    [6, 2, [3, 784], [4, 784], "float32", 1.0, [2, 3, 4, 5]],
    lambda tf: _sets(tf),
    lambda tf: _sets(tf, one_hot=True),
    lambda tf: _sets(tf, False, True),
    lambda tf: _sets(tf, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True),
    wheel=False,
)
case(
    "examples.tutorials.mnist.input_data.read_data_sets, images",
    [6, 2, [3, 28, 28, 1], [4, 28, 28, 1], "uint8", 255.0, [2, 3, 4, 5]],
    lambda tf: _sets(tf, reshape=False, dtype=tf.uint8),
    wheel=False,
)
