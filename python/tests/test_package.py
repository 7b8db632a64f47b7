# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: names, start-up, other libraries in the process, programs that import tensorflow."""

import os
import pickle
import subprocess
import sys
import types

import pytest

import millrace as tf

NAMES = os.path.join(os.path.dirname(__file__), "tier_names.txt")


def resolve(name):
    value = tf
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", open(NAMES).read().split())
def test_name_is_there(name):
    resolve(name)


def run(code, *args):
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)


def test_import_starts_no_thread_and_loads_little():
    made = run(
        "import sys, os, numpy\nbefore = len(os.listdir('/proc/self/task'))\nimport millrace\n"
        "print(len(os.listdir('/proc/self/task')) - before, [m for m in sys.modules if m.startswith('millrace.') and m.count('.') == 1 and 'contrib' in m])"
    )
    assert made.stdout.split() == ["0", "[]"], made.stderr


def test_import_loads_no_room_before_it_is_named():
    """What import costs beside NumPy grows with what it loads: framework, ops and messages, and little of Python's own library."""
    made = run(
        "import sys, numpy\nbefore = set(sys.modules)\nimport millrace\nnew = set(sys.modules) - before\n"
        "own = {m for m in new if m.split('.')[0] == 'millrace'}\n"
        "print(sorted({m.split('.')[1] for m in own if '.' in m}), len(own), len(new - own), sep=';')"
    )
    rooms, own, others = made.stdout.strip().split(";")
    assert eval(rooms) == ["_core", "framework", "names", "names_of_2", "ops", "tf_logging"], made.stderr
    assert int(own) <= 82 and int(others) <= 8, made.stdout  # 81 and 7


def test_import_does_not_load_the_library():
    made = run(
        "import millrace as tf\nloaded = lambda: 'libmillrace.so' in open('/proc/self/maps').read()\n"
        "print(loaded(), tf.GIT_VERSION == tf.__git_version__, loaded())"
    )
    assert made.stdout.split() == ["False", "True", "True"], made.stderr


def test_unmodified_program(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow as tf\nfrom tensorflow.python.framework import ops\nfrom tensorflow.contrib import rnn\n"
        "from tensorflow.examples.tutorials.mnist import input_data\nimport tensorflow.contrib.slim as slim, sys\n"
        "ops.reset_default_graph()\nprint(tf.Session().run(tf.constant(6) * 7), sys.argv[1], __name__)\n"
    )
    made = subprocess.run([sys.executable, "-m", "millrace.compat", str(program), "--flag"], capture_output=True, text=True, check=False)
    assert made.stdout == "42 --flag __main__\n", made.stderr


def compat(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "millrace.compat", *arguments], capture_output=True, text=True, check=False, **options)


def test_module_and_code_instead_of_a_program(tmp_path):
    code = "import tensorflow as tf, sys\nprint(tf.Session().run(tf.constant(6) * 7), sys.argv[1:], __name__)\n"
    (tmp_path / "told.py").write_text(code)
    assert compat("-c", code, "--flag").stdout == "42 ['--flag'] __main__\n"
    assert compat("-m", "told", "-m", "x", cwd=tmp_path).stdout == "42 ['-m', 'x'] __main__\n"
    assert compat("--numpy-as-is", "-c", "import numpy\nprint(hasattr(numpy, 'bool8'), hasattr(numpy, 'float'))").stdout.startswith("False")


def test_options_of_compat():
    assert compat("--help").stdout.startswith("usage: ") and compat("-h").returncode == 0
    for wrong in (["--numpy"], [], ["-m"], ["-c"], ["--numpy-as-is"]):
        made = compat(*wrong)
        assert made.returncode == 1 and "usage: " in made.stderr, made
    assert "unknown option --numpy" in compat("--numpy").stderr


def test_compat_says_that_there_is_no_such_program(tmp_path):
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "needs.py").write_text("import absent_package\n")
    for wrong, told in (
        (["nothing.py"], "nothing.py: there is no such file"),
        (["outer"], "outer is a folder, want a program"),
        (["-m", "absent"], "there is no module absent"),
        (["-m", "outer.absent"], "there is no module outer.absent"),
    ):
        made = compat(*wrong, cwd=tmp_path)
        assert (made.returncode, made.stderr) == (2, "python -m millrace.compat: %s\n" % told), made
    made = compat("-m", "outer.needs", cwd=tmp_path)
    assert made.returncode == 1 and "needs.py" in made.stderr and "absent_package" in made.stderr, made.stderr


def test_errors_of_code_and_modules_name_the_users_line(tmp_path):
    (tmp_path / "wrong.py").write_text("import tensorflow as tf\n\ntf.constant(1) + tf.constant('a')\n")
    made = compat("-m", "wrong", cwd=tmp_path)
    assert made.returncode == 1 and "wrong.py:3" in made.stderr and "runpy" not in made.stderr, made.stderr
    made = compat("-c", "import tensorflow as tf\n1 / 0")
    assert made.returncode == 1 and made.stderr.endswith("ZeroDivisionError: division by zero\n"), made.stderr


def test_notebook_extension():
    made = run("import millrace\nmillrace.load_ipython_extension(None)\nimport tensorflow as tf\nprint(tf.Session().run(tf.constant(3)))")
    assert made.stdout == "3\n", made.stderr


MODULES = """examples.tutorials.mnist.input_data examples.tutorials.mnist python.framework python.framework.ops contrib contrib.rnn python.platform
contrib.slim python.training python.ops contrib.learn.python.learn.datasets.mnist contrib.learn.python.learn.datasets.mnist.read_data_sets
examples.tutorials.mnist.mnist python.training.moving_averages python.platform.gfile contrib.layers python.ops.array_ops
python.ops.control_flow_ops contrib.tensorboard.plugins contrib.tensorboard.plugins.projector contrib.learn python.platform.tf_logging
core.framework python.framework.dtypes contrib.learn.python.learn python.layers.core python.ops.variable_scope python.ops.rnn
core.framework.variable_pb2 contrib.legacy_seq2seq""".split()


def test_module_paths_that_programs_import():
    """import a.b, or from a import b."""
    lines = ["from millrace.compat import imports", "imports.install()"]
    for path in ["tensorflow." + m for m in MODULES]:
        parent, _, leaf = path.rpartition(".")
        lines.append("from %s import %s as found\nassert found is not None" % (parent, leaf))
        if leaf != "read_data_sets":
            lines.append("import %s\nassert %s is not None" % (path, path))
    made = run("\n".join(lines))
    assert made.returncode == 0, made.stderr


def test_module_paths_that_there_are_not():
    made = run(
        "from millrace.compat import imports\nimports.install()\ntry:\n  from tensorflow.python.compiler.tensorrt import trt_convert\n"
        "except ImportError as error:\n  print(error)"
    )
    assert made.stdout == "tensorflow.python.compiler is not provided by Millrace\n", made.stdout + made.stderr


def test_names_of_the_version_that_has_both_behaviours(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow.compat.v1 as tf\nimport tensorflow.compat.v1.nn as nn\ntf.disable_v2_behavior()\ntf.disable_eager_execution()\n"
        "tf.enable_resource_variables()\na = tf.get_variable('a', [], initializer=tf.ones_initializer())\n"
        "tf.disable_resource_variables()\nb = tf.Variable(2.0)\n"
        "with tf.Session() as sess:\n  sess.run(tf.global_variables_initializer())\n"
        "  print(a.op.type, b.op.type, sess.run(nn.relu(a + b)), tf.executing_eagerly())\n"
        "try:\n  tf.enable_eager_execution()\nexcept NotImplementedError as error:\n  print(error)\n"
    )
    made = subprocess.run([sys.executable, "-m", "millrace.compat", str(program)], capture_output=True, text=True, check=False)
    assert made.stdout.startswith("VarHandleOp VariableV2 3.0 False\ntf.enable_eager_execution: Millrace has graphs and sessions"), made.stdout + made.stderr


def test_values_of_flags_as_programs_of_1_0_read_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow as tf\ntf.app.flags.DEFINE_integer('size', 3, '')\nFLAGS = tf.app.flags.FLAGS\nFLAGS._parse_flags()\n"
        "print(sorted(FLAGS.__flags.items()), FLAGS.__dict__['__flags']['size'], isinstance(FLAGS.__flags, dict))\n"
        "FLAGS.size = 7\nprint(FLAGS.__flags['size'])\nFLAGS.__flags['size'] = 8\nprint(FLAGS.size)\n"
    )
    made = subprocess.run([sys.executable, "-m", "millrace.compat", str(program), "--size=5"], capture_output=True, text=True, check=False)
    assert made.stdout == "[('size', 5)] 5 True\n7\n8\n", made.stdout + made.stderr


def test_projector(tmp_path):
    from millrace.contrib.tensorboard.plugins import projector

    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name, embedding.metadata_path = "words:0", "words.tsv"
    embedding.sprite.single_image_dim.extend([28, 28])
    writer = tf.summary.FileWriter(str(tmp_path))
    projector.visualize_embeddings(writer, config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text.split() == ('embeddings { tensor_name: "words:0" metadata_path: "words.tsv" sprite { single_image_dim: 28 single_image_dim: 28 } }').split()


def test_tracebacks_of_programs_have_no_internal_frames(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import tensorflow as tf\ntf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))\n")
    made = subprocess.run([sys.executable, "-m", "millrace.compat", str(program)], capture_output=True, text=True, check=False)
    assert made.returncode == 1 and 'program.py", line 2' in made.stderr and "millrace/ops" not in made.stderr
    assert len(made.stderr.splitlines()) <= 12


def test_flags(tmp_path):
    code = (
        "import millrace as tf\ntf.app.flags.DEFINE_integer('n', 3, 'count')\ntf.app.flags.DEFINE_boolean('fast', True, '')\n"
        "def main(argv):\n  print(tf.app.flags.FLAGS.n, tf.app.flags.FLAGS.fast, argv[1:])\ntf.app.run()"
    )
    assert run(code, "--n=5", "--nofast", "rest").stdout == "5 False ['rest']\n"


def test_generated_functions_are_documented():
    """One function for each op and composite, with its schema in the docstring and its types in the stub."""
    from millrace.ops import gen_ops

    with open(os.path.splitext(gen_ops.__file__)[0] + ".pyi") as file:
        stub = file.read()
    functions = {n: f for n, f in vars(gen_ops).items() if callable(f) and getattr(f, "__module__", "") == gen_ops.__name__ and not n.startswith("_")}
    assert len(functions) > 450
    for name, function in functions.items():
        assert "->" in function.__doc__ and len(function.__doc__.splitlines()[0]) > 10, name
        assert "\ndef %s(" % name in stub, name


def test_digits_of_the_package():
    from millrace.examples import digits

    images, labels = digits.load()
    assert images.shape == (1797, 8, 8) and images.min() == 0 and images.max() == 1 and sorted(set(labels)) == list(range(10))
    made = subprocess.run([sys.executable, "-m", "millrace.examples.digits", "150"], capture_output=True, text=True, check=False)
    assert float(made.stdout.splitlines()[-1].split(" %")[0]) > 85, made.stdout + made.stderr


def test_functions_are_pickled_by_their_names():
    """Settings of models that name functions go through pickle: all of TensorFlow 1.15's functions and classes do."""
    left = []
    for space in ("", "nn", "math", "image", "losses", "layers", "train", "strings", "linalg", "metrics", "initializers", "keras.layers", "keras.activations"):
        module = tf
        for part in filter(None, space.split(".")):
            module = getattr(module, part)
        for name in dir(module):
            value = getattr(module, name, None)
            if isinstance(value, (types.FunctionType, type)) and not name.startswith("_"):
                try:
                    left += [] if pickle.loads(pickle.dumps(value)) is value else [name]
                except pickle.PicklingError:
                    left.append("%s.%s" % (space, name))
    assert not left
