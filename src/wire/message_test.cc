// SPDX-License-Identifier: Apache-2.0
#include "wire/message.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/escaping.h"
#include "wire/checkpoint.h"
#include "wire/config.h"
#include "wire/event.h"
#include "wire/example.h"
#include "wire/graph.h"
#include "wire/meta_graph.h"
#include "wire/test_messages.h"

namespace millrace::wire {
namespace {

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }
std::string Unhex(absl::string_view hex) { return absl::HexStringToBytes(hex); }

template <class M>
M Decoded(absl::string_view bytes) {
  M message;
  const absl::Status status = Decode(bytes, &message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

// Bytes that decode and encode to themselves.
template <class M>
void ExpectStable(absl::string_view hex) {
  EXPECT_EQ(Hex(Encode(Decoded<M>(Unhex(hex)))), hex);
}

TEST(Encode, EventVersionRecord) {
  Event event;
  event.wall_time = 1.0;
  event.kind = Event::Kind::kFileVersion;
  event.file_version = "brain.Event:2";
  EXPECT_EQ(Encode(event), Unhex("09000000000000f03f1a0d") + "brain.Event:2");
  EXPECT_EQ(EncodedSize(event), 24u);
}

TEST(Encode, BundleHeader) {
  BundleHeaderProto header;
  header.num_shards = 1;
  header.version.Ensure().producer = 1;
  EXPECT_EQ(Hex(Encode(header)), "08011a020801");
}

TEST(Encode, ScalarShapeIsWrittenThoughEmpty) {
  BundleEntryProto entry;
  entry.dtype = 1;
  entry.shape.Ensure();
  entry.size = 4;
  entry.crc32c = 0x04030201;
  EXPECT_EQ(Hex(Encode(entry)), "0801120028043501020304");
}

TEST(Encode, NegativeNumbersTakeTenBytes) {
  TensorShapeDim dim;
  dim.size = -1;
  EXPECT_EQ(Hex(Encode(dim)), "08ffffffffffffffffff01");
  OptimizerOptions options;
  options.opt_level = OptimizerOptions::kL0;
  EXPECT_EQ(Hex(Encode(options)), "18ffffffffffffffffff01");
  ExpectStable<OptimizerOptions>("18ffffffffffffffffff01");
}

TEST(Encode, OneofMemberIsWrittenThoughZero) {
  AttrValue value;
  value.kind = AttrValue::Kind::kB;
  EXPECT_EQ(Hex(Encode(value)), "2800");
  value.kind = AttrValue::Kind::kTensor;  // its Box is null: an empty tensor
  EXPECT_EQ(Hex(Encode(value)), "4200");
  value.kind = AttrValue::Kind::kNone;
  EXPECT_EQ(Encode(value), "");
}

TEST(Encode, AppendsAndReusesTheString) {
  VersionDef version;
  version.producer = 1;
  std::string out = "x";
  AppendEncoded(version, &out);
  AppendEncoded(version, &out);
  EXPECT_EQ(Hex(out), "7808010801");
}

TEST(RoundTrip, EveryKindOfField) {
  const GraphDef graph = SampleGraph();
  const std::string bytes = Encode(graph);
  EXPECT_EQ(bytes.size(), EncodedSize(graph));
  const GraphDef back = Decoded<GraphDef>(bytes);
  EXPECT_TRUE(Equal(graph, back));
  EXPECT_EQ(Encode(back), bytes);
  GraphDef copy = back;
  EXPECT_TRUE(Equal(copy, graph));
  copy.node[0].attr["list"].list->i[1] = 7;
  EXPECT_FALSE(Equal(copy, graph));
  EXPECT_TRUE(Equal(back, graph));
}

TEST(RoundTrip, LargeStringsBesideSmallOnes) {
  TensorProto tensor;
  for (const size_t size : {0, 1, 1023, 1024, 1025, 2047, 2048, 100000}) {
    tensor.string_val.emplace_back(size, static_cast<char>(size));
  }
  tensor.tensor_content.assign(70000, 'c');
  EXPECT_TRUE(Equal(Decoded<TensorProto>(Encode(tensor)), tensor));
}

TEST(RoundTrip, ExtremeNumbers) {
  HistogramProto histo;
  histo.min = -0.0;
  histo.max = std::numeric_limits<double>::quiet_NaN();
  histo.bucket = {std::numeric_limits<double>::infinity(), 5e-324};
  EXPECT_TRUE(Equal(Decoded<HistogramProto>(Encode(histo)), histo));
  TensorProto tensor;
  tensor.int64_val = {INT64_MIN, INT64_MAX, -1, 0};
  tensor.int_val = {INT32_MIN, INT32_MAX};
  tensor.uint64_val = {UINT64_MAX, 1ull << 63};
  tensor.uint32_val = {UINT32_MAX};
  tensor.bool_val = {true, false, true};
  EXPECT_TRUE(Equal(Decoded<TensorProto>(Encode(tensor)), tensor));
}

TEST(Decode, PackedAndUnpackedNumbers) {
  for (const char* hex : {"1a03010203", "180118021803", "1a0101180218031a00"}) {
    EXPECT_EQ(Decoded<VersionDef>(Unhex(hex)).bad_consumers, (std::vector<int32_t>{1, 2, 3})) << hex;
  }
  for (const char* hex : {"0a080000803f00000040", "0d0000803f0d00000040"}) {
    EXPECT_EQ(Decoded<FloatList>(Unhex(hex)).value, (std::vector<float>{1, 2})) << hex;
  }
}

TEST(Decode, ReplacesTheMessage) {
  VersionDef version;
  version.min_consumer = 5;
  ASSERT_TRUE(Decode(Unhex("0801"), &version).ok());
  EXPECT_EQ(version.min_consumer, 0);
}

TEST(Decode, LastScalarWins) { EXPECT_EQ(Decoded<VersionDef>(Unhex("08010802")).producer, 2); }

TEST(Decode, SubmessageOccurrencesMerge) {
  // versions{producer 1, bad_consumers 5} then versions{min_consumer 3,
  // bad_consumers 6}.
  const GraphDef graph = Decoded<GraphDef>(Unhex("220508011a0105220510031a0106"));
  EXPECT_EQ(graph.versions->producer, 1);
  EXPECT_EQ(graph.versions->min_consumer, 3);
  EXPECT_EQ(graph.versions->bad_consumers, (std::vector<int32_t>{5, 6}));
}

TEST(Decode, LastOneofMemberWins) {
  const AttrValue value = Decoded<AttrValue>(Unhex("0a02180112017a"));
  EXPECT_EQ(value.kind, AttrValue::Kind::kS);
  EXPECT_EQ(value.s, "z");
  EXPECT_FALSE(value.list);
  // list, s, list: what the first list held is gone.
  const AttrValue list = Decoded<AttrValue>(Unhex("0a02180112017a0a021802"));
  EXPECT_EQ(list.list->i, (std::vector<int64_t>{2}));
  EXPECT_EQ(list.s, "");
}

TEST(Decode, MapEntries) {
  // {"a":1} {2 without key} {"b" without value} {value 3 before key "a"}
  const ConfigProto config = Decoded<ConfigProto>(Unhex(
      "0a050a01611001"
      "0a021002"
      "0a030a0162"
      "0a0510030a0161"));
  EXPECT_EQ(config.device_count, (Map<std::string, int32_t>{{"", 2}, {"a", 3}, {"b", 0}}));
  EXPECT_EQ(config.device_count.find(absl::string_view("a"))->second, 3);
  JobDef job;
  job.tasks = {{2, "y"}, {-1, "x"}};
  EXPECT_TRUE(Equal(Decoded<JobDef>(Encode(job)), job));
}

TEST(Decode, DuplicateMapKeyReplacesTheMessage) {
  // attr {"a": {s "x"}}, then {"a": {}}.
  const NameAttrList list = Decoded<NameAttrList>(Unhex("12080a0161120312017812050a01611200"));
  ASSERT_EQ(list.attr.size(), 1u);
  EXPECT_EQ(list.attr.begin()->second.kind, AttrValue::Kind::kNone);
}

TEST(Decode, UnknownFieldsAreKept) {
  // 100: varint, 64 bits, bytes, group{1: 5}, 32 bits; after them producer 1.
  const std::string unknown =
      "a00605"
      "a1060102030405060708"
      "a20602abcd"
      "a3060805a406"
      "a50601020304";
  const VersionDef version = Decoded<VersionDef>(Unhex(unknown + "0801"));
  EXPECT_EQ(version.producer, 1);
  EXPECT_EQ(Hex(version.unknown_fields.bytes()), unknown);
  EXPECT_EQ(Hex(Encode(version)), "0801" + unknown);
  VersionDef copy = version;
  EXPECT_TRUE(Equal(copy, version));
  copy.unknown_fields.clear();
  EXPECT_FALSE(Equal(copy, version));
}

TEST(Decode, WrongWireTypeIsUnknown) {
  ExpectStable<VersionDef>("0a0178");      // producer as bytes
  ExpectStable<NodeDef>("0801");           // name as a number
  ExpectStable<VersionDef>("1d00000000");  // packed field as 32 bits
  EXPECT_EQ(Hex(Decoded<NodeDef>(Unhex("0801")).unknown_fields.bytes()), "0801");
}

TEST(Decode, MalformedInput) {
  VersionDef version;
  for (const char* hex : {
           "00",                        // field number 0
           "0f01",                      // wire type 7
           "0c",                        // end of a group not begun
           "a306",                      // group without end
           "a3060805ac06",              // group with another end
           "08",                        // no value
           "08ffffffffffffffffffff01",  // 11-byte varint
           "1a05010203",                // length beyond the end
           "1a01ff",                    // packed varint truncated
           "1affffffffffffffffff01",    // length 2^64-1
           "f8ffffffff0100",            // tag of 36 bits
       }) {
    const absl::Status status = Decode(Unhex(hex), &version);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << hex;
  }
  FloatList floats;
  EXPECT_FALSE(Decode(Unhex("0a050000803f00"), &floats).ok());
}

TEST(Decode, ErrorsSayWhere) {
  GraphDef graph;
  const absl::Status status = Decode(Unhex("0a040a056162"), &graph);
  EXPECT_EQ(status.message(), "cannot decode NodeDef.name at byte 3: malformed or truncated");
}

TEST(Decode, TruncationAtEveryByteIsAnErrorOrAPrefix) {
  const std::string bytes = Encode(SampleGraph());
  size_t prefixes = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    GraphDef graph;
    // Copied, so that a sanitizer sees any read beyond the end.
    const std::string prefix = bytes.substr(0, n);
    if (Decode(prefix, &graph).ok()) {
      ++prefixes;
      EXPECT_EQ(Encode(graph), prefix);
    }
  }
  EXPECT_LT(prefixes, 8u);  // after each field of the graph itself
}

TEST(Decode, EveryChangedByteIsSafe) {
  std::string bytes = Encode(SampleGraph());
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char original = bytes[at];
    for (const int delta : {1, 7, 0x7f, 0x80, 0xff}) {
      bytes[at] = static_cast<char>(original ^ delta);
      GraphDef graph;
      if (Decode(bytes, &graph).ok()) {
        const std::string again = Encode(graph);
        EXPECT_TRUE(Equal(Decoded<GraphDef>(again), graph));
      }
    }
    bytes[at] = original;
  }
}

// An AttrValue in `depth` levels: each function value is one, its map entry
// another, the value in it a third.
std::string NestedAttr(int depth) {
  AttrValue value;
  value.kind = AttrValue::Kind::kI;
  for (int i = 0; i < depth; ++i) {
    AttrValue outer;
    outer.kind = AttrValue::Kind::kFunc;
    outer.func.Ensure().attr[""] = std::move(value);
    value = std::move(outer);
  }
  return Encode(value);
}

TEST(Limits, Depth) {
  AttrValue value;
  EXPECT_TRUE(Decode(NestedAttr(33), &value, {.max_depth = 99}).ok());
  EXPECT_TRUE(Decode(NestedAttr(33), &value).ok());
  for (const int depth : {98, 97, 0, -5}) {
    const absl::Status status = Decode(NestedAttr(33), &value, {.max_depth = depth});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("max_depth"), absl::string_view::npos);
  }
  EXPECT_FALSE(Decode(NestedAttr(34), &value).ok());
  EXPECT_FALSE(Decode(NestedAttr(400), &value, {.max_depth = INT32_MAX}).ok());
}

TEST(Limits, DepthOfUnknownGroups) {
  const auto groups = [](int depth) {
    std::string hex;
    for (int i = 0; i < depth; ++i) hex += "a306";
    for (int i = 0; i < depth; ++i) hex += "a406";
    return Unhex(hex);
  };
  VersionDef version;
  EXPECT_TRUE(Decode(groups(100), &version).ok());
  EXPECT_FALSE(Decode(groups(101), &version).ok());
}

TEST(Limits, Bytes) {
  VersionDef version;
  EXPECT_TRUE(Decode(Unhex("0801"), &version, {.max_bytes = 2}).ok());
  EXPECT_EQ(Decode(Unhex("0801"), &version, {.max_bytes = 1}).code(), absl::StatusCode::kResourceExhausted);
}

TEST(Limits, Expansion) {
  std::string empty_nodes;
  for (int i = 0; i < 100000; ++i) empty_nodes += Unhex("0a00");
  GraphDef graph;
  EXPECT_EQ(Decode(empty_nodes, &graph).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Decode(empty_nodes, &graph, {.max_expansion = SIZE_MAX / 1000}).ok());
  EXPECT_TRUE(Decode(empty_nodes, &graph, {.max_expansion = SIZE_MAX}).ok());
  EXPECT_EQ(graph.node.size(), 100000u);
}

TEST(Equal, SeesPresence) {
  NodeDef a, b;
  a.attr["x"].kind = AttrValue::Kind::kI;
  b.attr["x"];
  EXPECT_FALSE(Equal(a, b));
  GraphDef c, d;
  c.versions.Ensure();
  EXPECT_FALSE(Equal(c, d));
  AttrValue e, f;
  e.kind = f.kind = AttrValue::Kind::kTensor;
  f.tensor.Ensure();
  EXPECT_TRUE(Equal(e, f));
  f.tensor->dtype = 1;
  EXPECT_FALSE(Equal(e, f));
  e.kind = f.kind = AttrValue::Kind::kI;
  e.s = "ignored: not the member that is set";
  EXPECT_TRUE(Equal(e, f));
}

TEST(Box, OwnsAndCopies) {
  Box<VersionDef> a;
  EXPECT_FALSE(a);
  a.Ensure().producer = 1;
  Box<VersionDef> b = a;
  b->producer = 2;
  EXPECT_EQ(a->producer, 1);
  a = std::move(b);
  EXPECT_EQ(a->producer, 2);
  a = Box<VersionDef>();
  EXPECT_FALSE(a);
}

}  // namespace
}  // namespace millrace::wire
