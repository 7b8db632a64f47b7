# SPDX-License-Identifier: Apache-2.0
"""Bytes from anywhere become a message or a DecodeError, and what a message cannot hold is kept as protobuf keeps it."""

import random

import pytest

import millrace as tf
from millrace.protos import definitions, message, text_format
from millrace.protos.message import DecodeError

_FORMS = [definitions.GraphDef, definitions.MetaGraphDef, definitions.SavedModel, definitions.ConfigProto, definitions.Event, definitions.Example]


def _graph():
    graph = definitions.GraphDef()
    node = graph.node.add(name="n", op="Const", input=["a", "^b"])
    node.attr["dtype"].type = 1
    node.attr["shape"].list.i.extend([1, -2, 1 << 40])
    node.attr["value"].tensor.tensor_content = b"\0\1\2"
    node.attr["value"].tensor.float_val.extend([0.5, 2.0])
    node.attr["f"].func.name = "g"
    return graph


@pytest.mark.parametrize("seed", range(4))
def test_noise_is_a_message_or_a_decode_error(seed):
    draw = random.Random(seed)
    parsed = 0
    for _ in range(4000):
        data = draw.randbytes(draw.choice([2, 5, 10, 20, 100]))
        if draw.random() < 0.6:
            data = bytes([draw.choice([10, 18, 26, 34]), draw.choice([1, 3, 8, len(data)])]) + data
        for form in _FORMS:
            try:
                made = form.FromString(data)
            except DecodeError:
                continue
            parsed += 1
            assert form.FromString(made.SerializeToString()) == made
            str(made)
    assert parsed > 1000


@pytest.mark.parametrize("seed", range(4))
def test_a_graph_with_changed_bytes(seed):
    draw, data = random.Random(seed), _graph().SerializeToString()
    for _ in range(4000):
        changed = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 5])):
            changed[draw.randrange(len(data))] = draw.randrange(256)
        try:
            made = definitions.GraphDef.FromString(bytes(changed))
        except DecodeError:
            continue
        assert definitions.GraphDef.FromString(made.SerializeToString()) == made


@pytest.mark.parametrize(
    "data",
    [
        b"\x08\x05",  # node (a message) as a number
        b"\x0d\0\0\0\0",  # node as four bytes
        b"\x22\x02\x08\x01",  # versions.producer is right: a control that shows what is parsed
        b"\x0a\x02\x08\x01",  # a node whose name is a number
        b"\x0a\x04\x2a\x02\x08\x01",  # a node with an attribute whose key is a number
    ],
)
def test_another_wire_type_is_kept_as_unknown(data):
    made = definitions.GraphDef.FromString(data)
    assert [n.name for n in made.node] in ([], [""]) and made.versions.producer == (1 if data[0] == 0x22 else 0)
    if data[0] != 0x0A or data[2] != 0x2A:
        assert made.SerializeToString() == data


def test_packed_values_that_do_not_fill_a_number():
    with pytest.raises(DecodeError, match="float_val has 5 bytes"):
        definitions.TensorProto.FromString(b"\x2a\x05\0\0\0\0\0")


def _with_functions(count):
    made = definitions.GraphDef()
    for i in range(count):
        function = made.library.function.add()
        function.signature.name = "f%d" % i
        function.attr["b"].i, function.attr["a"].i = i, 2
    return made


def test_functions_are_decoded_when_looked_at(monkeypatch):
    monkeypatch.setattr(message, "_LATER", 0)
    whole = _with_functions(3)
    data = whole.SerializeToString()
    read = definitions.GraphDef.FromString(data)
    assert read.HasField("library") and read.library._raw() is not None
    copy = definitions.GraphDef()
    copy.CopyFrom(read)
    assert copy.library._raw() is not None and copy.SerializeToString() == data  # handed on as it is
    copy.library.function[1].attr["a"].i = 9
    assert copy.library.function[1].attr["a"].i == 9 and copy.library._raw() is None and copy != read
    assert [f.signature.name for f in read.library.function] == ["f0", "f1", "f2"] and read == whole and str(read) == str(whole)
    copy.library.Clear()
    assert not copy.library.function and copy.SerializeToString() == b"\x12\0"
    twice = definitions.GraphDef.FromString(data + data)  # parts of a message that come twice are merged
    assert len(twice.library.function) == 6


def test_functions_written_in_another_order_are_equal(monkeypatch):
    monkeypatch.setattr(message, "_LATER", 0)
    entry = b"\x2a\x07\x0a\x01%c\x12\x02\x18\x01"
    first, second = (b"\x12" + _length(f) + f for f in (b"\x0a" + _length(body) + body for body in (entry % b"a" + entry % b"b", entry % b"b" + entry % b"a")))
    one, two = definitions.GraphDef.FromString(first), definitions.GraphDef.FromString(second)
    assert one.SerializeToString() != two.SerializeToString() and one == two


def test_functions_that_are_none_are_told_when_looked_at(monkeypatch):
    with pytest.raises(DecodeError, match="truncated"):  # small ones are decoded at once
        definitions.GraphDef.FromString(b"\x12\x01\x0a")
    monkeypatch.setattr(message, "_LATER", 0)
    read = definitions.GraphDef.FromString(b"\x12\x01\x0a")
    for _ in range(2):
        with pytest.raises(DecodeError, match="truncated"):
            len(read.library.function)


def test_messages_within_messages_are_limited():
    value = b""
    for _ in range(200):  # StructuredValue is not needed: AttrValue.func.attr["x"].func ... nests as deep as one likes
        entry = b"\x0a\x01x\x12" + _length(value) + value
        func = b"\x12" + _length(entry) + entry
        value = b"\x52" + _length(func) + func
    with pytest.raises(DecodeError, match="more than 100 messages"):
        definitions.AttrValue.FromString(value)


def _length(data):
    out, n = bytearray(), len(data)
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def test_text_from_anywhere():
    draw, text = random.Random(0), text_format.MessageToString(_graph())
    for _ in range(3000):
        changed = list(text)
        for _ in range(draw.choice([1, 2, 4])):
            changed[draw.randrange(len(changed))] = draw.choice('{}:"\\<>[]09-\nax\0')
        try:
            text_format.Parse("".join(changed), definitions.GraphDef())
        except (text_format.ParseError, ValueError):
            pass
    with pytest.raises((text_format.ParseError, ValueError)):
        text_format.Parse("node { attr { value { func { " * 400, definitions.GraphDef())


@pytest.mark.parametrize(
    "text, said",
    [
        ("node {", "ends within"),
        ("node", "ends within"),
        ("node { name: }", "wanted a value of name"),
        ("\n\nnod: 3", "line 3: message GraphDef has no field"),
        ("versions { producer: x }", "line 1: producer: invalid literal"),
        ("node { name: n }", "wanted a string"),
        ("node { >", "wanted }"),
        ("}", "unexpected"),
        ("node { attr { key: 'a' val: 3 } }", "a key and a value"),
        ("library { function { signature { is_stateful: maybe } } }", "true or false"),
        ("node: 3", "wanted {"),
        (b"\xff", "not UTF-8"),
        ("node { name: '\\x' }", "no escape"),
    ],
)
def test_what_is_wrong_with_a_text(text, said):
    with pytest.raises(text_format.ParseError, match=said):
        text_format.Parse(text, definitions.GraphDef())


def test_forms_of_text():
    made = text_format.Parse(
        """# a comment
        node: [{ name: "a" 'b', op: "Const"; attr < key: "x" value { list { i: [1, -2, 0x10] f: [1.5f, -inf, nan] b: true } } > }, { name: "c" }]
        versions { producer: 3 }""",
        definitions.GraphDef(),
    )
    assert [n.name for n in made.node] == ["ab", "c"] and list(made.node[0].attr["x"].list.i) == [1, -2, 16] and made.versions.producer == 3
    assert text_format.Parse(r's: "\xe9\351\u00e9\n\\"', definitions.AttrValue()).s == b"\xe9\xe9\xc3\xa9\n\\"
    assert text_format.Parse(text_format.MessageToString(_graph()), definitions.GraphDef()) == _graph()


def test_entries_of_maps_have_classes():
    entry = definitions.ConfigProto.DeviceCountEntry(key="CPU", value=2)
    assert definitions.ConfigProto.FromString(b"\x0a" + bytes([len(entry.SerializeToString())]) + entry.SerializeToString()).device_count["CPU"] == 2
    assert definitions.GraphDef().node.add().attr.GetEntryClass()(key="T").key == "T"


def test_options_and_metadata_of_1_15_are_its_bytes():
    config = definitions.ConfigProto()
    rewriting = config.graph_options.rewrite_options
    rewriting.auto_parallel.enable, rewriting.auto_parallel.num_replicas = True, 2
    rewriting.scoped_allocator_opts.enable_op.append("CollectiveReduce")
    rewriting.custom_optimizers.add(name="mine").parameter_map["a"].i = 3
    rewriting.inter_optimizer_verifier_config.structure_verifier = definitions.VerifierConfig.ON
    config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[16.0, 32.0])
    config.gpu_options.experimental.num_dev_to_dev_copy_streams = 2
    assert (
        config.SerializeToString().hex()
        == "32104a0e0a0a0a0800008041000000421802523452322a04080110028201120a10436f6c6c656374697665526564756365c20c0f0a046d696e6512070a016112021803e212021001"
    )
    run = definitions.RunMetadata()
    run.cost_graph.node.add(name="a", compute_cost=7).output_info.add(size=4, dtype=1)
    run.function_graphs.add().pre_optimization_graph.node.add(name="q")
    assert run.SerializeToString().hex() == "120d0a0b0a01612a04080420014807220712050a030a0171"


def test_graphs_of_objects_are_the_bytes_of_1_15():
    meta = definitions.MetaGraphDef()
    node = meta.object_graph_def.nodes.add()
    node.variable.dtype, node.variable.name = 1, "v"
    node.variable.shape.dim.add(size=3)
    node.children.add(node_id=1, local_name="x")
    meta.object_graph_def.concrete_functions["f"].bound_inputs.append(2)
    meta.graph_def.node.add(name="n").experimental_debug_info.original_node_names.append("o")
    assert node.WhichOneof("kind") == "variable"
    assert meta.SerializeToString().hex() == "120a0a080a016e32030a016f3a200a140a0508011201783a0b080112041202080332017612080a01661203120102"
    tensor = definitions.TensorProto(dtype=20)
    tensor.resource_handle_val.add(name="h", hash_code=1 << 63).dtypes_and_shapes.add(dtype=3)
    assert tensor.SerializeToString().hex() == "081472121a0168208080808080808080800132020803"


def test_large_graphs_are_written_without_messages_of_their_nodes(tmp_path):
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], "x")
        for i in range(300):
            x = tf.nn.relu(tf.add(x, 1.0, name="a" * 60 + str(i)))
        tf.Variable(1.0, name="last")
        whole = graph.as_graph_def(add_shapes=True)
        assert whole._raw() is not None and len(whole._raw()) >= 1 << 16
        made = tf.train.export_meta_graph(str(tmp_path / "model.meta"))
        assert made.graph_def._raw() is not None and {op.name for op in made.meta_info_def.stripped_op_list.op} >= {"Add", "Relu", "Placeholder"}
        plain = graph.as_graph_def()
        for node, bare in zip(whole.node, plain.node):  # looked at now
            shapes = [t.shape.as_proto() for t in graph.get_operation_by_name(node.name).outputs]
            assert list(node.attr["_output_shapes"].list.shape) == shapes
            del node.attr["_output_shapes"]
            assert node == bare
        version = graph.version
        tf.constant(1.0, name="later")
        assert [n.name for n in graph.as_graph_def(from_version=version, add_shapes=True).node] == ["later"]
        assert tf.MetaGraphDef.FromString((tmp_path / "model.meta").read_bytes()) == made
    plain.node[0].attr["_output_shapes"].list.shape.add(unknown_rank=True)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(plain, name="")
        shapes = graph.as_graph_def(add_shapes=True).node[0].attr["_output_shapes"].list.shape
        assert [[d.size for d in s.dim] for s in shapes] == [[-1, 2]]


def test_copies_of_large_messages_are_looked_at_later():
    message = tf.GraphDef()
    for i in range(2000):
        message.node.add(name="a" * 40 + str(i), op="NoOp")
    holder = tf.MetaGraphDef()
    holder.graph_def.CopyFrom(message)
    assert holder.graph_def._raw() is not None and holder.HasField("graph_def")
    message.node[0].name = "b"
    assert holder.graph_def.node[0].name == "a" * 40 + "0" and len(holder.graph_def.node) == 2000
