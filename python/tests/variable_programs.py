# SPDX-License-Identifier: Apache-2.0
"""Random programs over variables, with branches and loops: what Python makes of them, and what a graph does in which each statement waits for
the one before. Run as a program it says which programs a library gets wrong: `variable_programs.py MODULE FIRST COUNT [resource]`."""

import random
import sys

NAMES = ("a", "b", "c")
PRIME = 9973


class _Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def term(self, locals_):
        pick = self.random.random()
        if pick < 0.55:
            return ("variable", self.random.choice(NAMES), self.random.choice(("add", "times one", "minus zero", "identity", "twice")))
        if pick < 0.8 and locals_:
            return ("local", self.random.choice(locals_))
        return ("constant", self.random.randrange(1, 50))

    def block(self, depth, locals_):
        statements = []
        mine = list(locals_)
        for _ in range(self.random.randrange(1, 5)):
            pick = self.random.random()
            if pick < 0.35 or depth == 0 and pick >= 0.6:
                statements.append(("update", self.random.choice(("assign", "assign_add", "assign_sub")), self.random.choice(NAMES), self.term(mine)))
            elif pick < 0.6:
                mine.append("t%d" % self.random.randrange(10**9))
                statements.append(("let", mine[-1], self.term(mine[:-1]), self.term(mine[:-1])))
            elif pick < 0.8:
                statements.append(("if", self.term(mine), self.term(mine), self.block(depth - 1, mine), self.block(depth - 1, mine)))
            else:
                self.loops += 1
                statements.append(("while", self.random.randrange(1, 4), self.term(mine), self.block(depth - 1, mine)))
        return statements


def program(seed):
    """The statements of a program: nested tuples."""
    return _Maker(seed).block(3, [])


def expected(statements, start):
    """The variables after it, and the numbers that it has noted."""
    variables = dict(zip(NAMES, start))
    noted = [0]

    def term(t, known):
        if t[0] == "variable":
            return variables[t[1]] * (2 if t[2] == "twice" else 1) + (1 if t[2] == "add" else 0)
        return known[t[1]] if t[0] == "local" else t[1]

    def note(value):
        noted[0] = (noted[0] * 31 + value) % PRIME

    def run(block, known):
        known = dict(known)
        for s in block:
            if s[0] == "update":
                value = term(s[3], known)
                old = variables[s[2]]
                variables[s[2]] = value if s[1] == "assign" else old + value if s[1] == "assign_add" else old - value
                variables[s[2]] %= PRIME
                note(variables[s[2]])
            elif s[0] == "let":
                known[s[1]] = (term(s[2], known) * 3 + term(s[3], known)) % PRIME
                note(known[s[1]])
            elif s[0] == "if":
                run(s[3] if term(s[1], known) < term(s[2], known) else s[4], known)
            else:
                i = 0
                while i < s[1] and term(s[2], known) % 7 != 3:
                    run(s[3], known)
                    i += 1

    run(statements, {})
    return [variables[n] for n in NAMES] + noted


def build(tf, statements, start, use_resource):
    """The initializer, and a tensor: the variables after the program and what it has noted."""
    with tf.variable_scope("program", reuse=tf.AUTO_REUSE):
        variables = {n: tf.get_variable(n, initializer=tf.constant(v), use_resource=use_resource) for n, v in zip(NAMES, start)}
        noted = tf.get_variable("noted", initializer=tf.constant(0), use_resource=use_resource)

    def term(t, known):
        if t[0] == "variable":
            v = variables[t[1]]
            if t[2] == "add":
                return v + 1
            if t[2] == "times one":
                return v * 1
            if t[2] == "minus zero":
                return v - 0
            return v + v if t[2] == "twice" else tf.identity(v) + 0
        return known[t[1]] if t[0] == "local" else tf.constant(t[1])

    def after(last):
        return tf.control_dependencies([last])

    def set_to(variable, value, last):
        with after(last):
            return tf.group(tf.assign(variable, tf.floormod(value, PRIME)))

    def note(value, last):
        with after(last):
            value = noted * 31 + value
        return set_to(noted, value, last)

    def run(block, known, last):
        known = dict(known)
        for s in block:
            if s[0] == "update":
                with after(last):
                    value = term(s[3], known)
                    last = getattr(tf, s[1])(variables[s[2]], value).op
                with after(last):
                    value = variables[s[2]] + 0
                last = set_to(variables[s[2]], value, last)
                with after(last):
                    value = variables[s[2]] + 0
                last = note(value, value)
            elif s[0] == "let":
                with after(last):
                    known[s[1]] = tf.floormod(term(s[2], known) * 3 + term(s[3], known), PRIME)
                last = note(known[s[1]], known[s[1]])
            elif s[0] == "if":
                with after(last):
                    which = tf.less(term(s[1], known), term(s[2], known))

                def branch(statements):
                    begin = tf.no_op()
                    with after(run(statements, known, begin)):
                        return tf.constant(0)

                with after(which):
                    last = tf.cond(which, lambda s=s: branch(s[3]), lambda s=s: branch(s[4]))
            else:

                def go_on(i, s=s):
                    with after(i):
                        return tf.logical_and(i < s[1], tf.not_equal(tf.floormod(term(s[2], known), 7), 3))

                def body(i, s=s):
                    with after(run(s[3], known, i)):
                        return i + 1

                with after(last):
                    first = tf.constant(0) + 0
                last = tf.while_loop(go_on, body, [first])
                last = last[0] if isinstance(last, (list, tuple)) else last
        return last

    last = run(statements, {}, tf.no_op())
    with after(last):
        result = tf.stack([variables[n] + 0 for n in NAMES] + [noted + 0])
    return tf.global_variables_initializer(), result


def wrong(tf, seed, use_resource):
    """None, or (what the graph gave, what it should have given)."""
    statements = program(seed)
    start = [seed % 11, seed % 7, seed % 5]
    tf.reset_default_graph()
    initializer, result = build(tf, statements, start, use_resource)
    with tf.Session() as session:
        session.run(initializer)
        got = [int(x) for x in session.run(result)]
    want = expected(statements, start)
    return None if got == want else (got, want)


if __name__ == "__main__":
    import importlib

    library = importlib.import_module(sys.argv[1])
    if hasattr(library, "disable_v2_behavior"):
        library.disable_v2_behavior()
        library.disable_control_flow_v2()
    faults = 0
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
        fault = wrong(library, number, "resource" in sys.argv)
        if fault:
            faults += 1
            print(number, fault, flush=True)
    print("%d of %s programs are wrong" % (faults, sys.argv[3]))
