# SPDX-License-Identifier: Apache-2.0
"""tf.flags: kinds of flags, what is checked of them, and flags of absl-py beside them."""

import subprocess
import sys

import pytest

import millrace as tf


def test_flags_that_are_lists_numbers_in_bounds_and_checked():
    flags = tf.flags
    values = type(flags.FLAGS)()
    before, flags.FLAGS = flags.FLAGS, values
    try:
        flags.DEFINE_multi_string("names", ["z"], "help")
        flags.DEFINE_multi_integer("sizes", 3, "help", lower_bound=0)
        flags.DEFINE_multi_float("scales", None, "help")
        flags.DEFINE_multi_enum("kinds", ["a"], ["a", "b"], "help")
        flags.DEFINE_spaceseplist("words", "x y", "help")
        flags.DEFINE_integer("depth", 1, "help", lower_bound=1, upper_bound=9, short_name="d")
        flags.DEFINE_enum("mode", "Train", ["Train", "Eval"], "help", case_sensitive=False)
        flags.declare_key_flag("depth")
        assert values(["p", "--names", "a", "--names=b", "--scales=1", "--scales=2.5", "-d", "4", "--mode=eval", "rest"]) == ["p", "rest"]
        assert (values.names, values.sizes, values.scales, values.kinds, values.words) == (["a", "b"], [3], [1.0, 2.5], ["a"], ["x", "y"])
        assert (values.depth, values.d, values.mode) == (4, 4, "Eval")
        for given, message in (("--depth=10", r"not in the range \[1, 9\]"), ("--sizes=-1", r"range \[0, inf\]"), ("--kinds=c", "one of <a|b>")):
            with pytest.raises(flags.Error, match=message):
                values(["p", given])

        @flags.multi_flags_validator(["depth", "sizes"], "too deep")
        def _(given):
            return given["depth"] <= sum(given["sizes"])

        flags.register_validator("mode", lambda mode: mode != "Eval", message="no evaluation")
        with pytest.raises(flags.Error, match="--mode=Eval: no evaluation"):
            values(["p", "--depth=2"])
        values.mode = "Train"
        with pytest.raises(flags.Error, match="--depth=7, flag --sizes=.*: too deep"):
            values.depth = 7
    finally:
        flags.FLAGS = before


def test_flags_that_exclude_each_other_and_other_names():
    flags = tf.flags
    values = type(flags.FLAGS)()
    for name in ("a", "b"):
        flags.DEFINE_string(name, None, "help", flag_values=values)
    for name in ("c", "d"):
        flags.DEFINE_boolean(name, False, "help", flag_values=values)
    flags.DEFINE_alias("e", "a", flag_values=values)
    flags.mark_flags_as_mutual_exclusive(["a", "b"], required=True, flag_values=values)
    flags.mark_bool_flags_as_mutual_exclusive(["c", "d"], flag_values=values)
    with pytest.raises(flags.Error, match=r"flag --a=None, flag --b=None: Exactly one of \(a, b\) must have a value other than None\."):
        values(["p"])
    values(["p", "--e=1", "--c"])
    assert (values.a, values.e, values.c) == ("1", "1", True)
    with pytest.raises(flags.Error, match=r"At most one of \(c, d\) must be True\."):
        values(["p", "--d"])
    with pytest.raises(flags.Error, match="Exactly one of"):
        values(["p", "--nod", "--b=2"])


def test_flags_of_absl_are_read_with_those_of_tensorflow(tmp_path):
    """As in XLNet: the flags are absl's, and tf.app.run runs the program."""
    pytest.importorskip("absl.flags")
    program = tmp_path / "program.py"
    program.write_text(
        """
import tensorflow as tf
from absl import flags

flags.DEFINE_integer("things", 1, "help")
flags.DEFINE_string("place", None, "help")
flags.mark_flag_as_required("place")
tf.flags.DEFINE_string("other", "a", "help")
tf.flags.FLAGS.place_of_program = "own"


def main(rest):
    print(flags.FLAGS.things, tf.flags.FLAGS.things, tf.flags.FLAGS.other, rest[1:], "things" in tf.flags.FLAGS)
    tf.flags.FLAGS.things = 5
    print(flags.FLAGS.things, tf.flags.FLAGS.place)


if __name__ == "__main__":
    tf.app.run()
"""
    )

    def run(*args):
        return subprocess.run([sys.executable, "-m", "millrace.compat", str(program), *args], capture_output=True, text=True, timeout=100)

    assert run("--other", "b", "--things", "3", "--place=here", "x").stdout.splitlines() == ["3 3 b ['x'] True", "5 here"]
    assert "place" in run("--things=3").stderr and "things=x" in run("--things=x", "--place=p").stderr


def test_flags_of_tensorflow_are_flags_of_absl_too(tmp_path):
    """TensorFlow 1.15: absl's FLAGS and tf.flags.FLAGS are the same flags, and absl's app.run reads all of them."""
    pytest.importorskip("absl.app")
    program = tmp_path / "program.py"
    program.write_text(
        """
import tensorflow as tf
from absl import app, flags

tf.flags.DEFINE_integer("things", 1, "how many")
tf.flags.DEFINE_multi_integer("sizes", [1], "help")
tf.flags.DEFINE_boolean("quick", True, "help")


def main(rest):
    print(flags.FLAGS.things, flags.FLAGS.sizes, flags.FLAGS.quick, rest[1:], flags.FLAGS["things"].default, flags.FLAGS["things"].help)
    flags.FLAGS.things = 5
    print(tf.flags.FLAGS.things, tf.flags.FLAGS.sizes, tf.flags.FLAGS.quick)


if __name__ == "__main__":
    app.run(main)
"""
    )

    def run(*args):
        return subprocess.run([sys.executable, "-m", "millrace.compat", str(program), *args], capture_output=True, text=True, timeout=100)

    assert run("--things=3", "--sizes=4", "--sizes=6", "--noquick", "x").stdout.splitlines() == ["3 [4, 6] False ['x'] 1 how many", "5 [4, 6] False"]
    assert "flag --things=x" in run("--things=x").stdout + run("--things=x").stderr


def test_flags_that_programs_put_together():
    flags = tf.flags
    values = flags.FlagValues()
    values["fruit"] = flag = flags.Flag(flags.ArgumentParser(), flags.ArgumentSerializer(), "fruit", "apple", "the fruit")
    assert values["fruit"] is flag and (values.fruit, list(values), len(values)) == ("apple", ["fruit"], 1)
    values(["program", "--fruit=pear"])
    assert (values.fruit, flag.serialize(), flag.flag_type(), flag.help) == ("pear", "--fruit=pear", "string", "the fruit")
    assert "fruit" not in flags.FLAGS
