// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "wire/checkpoint.h"
#include "wire/config.h"
#include "wire/event.h"
#include "wire/graph.h"
#include "wire/meta_graph.h"
#include "wire/test_messages.h"

namespace millrace::wire {
namespace {

template <class M>
M Parsed(absl::string_view text) {
  M message;
  const absl::Status status = DecodeText(text, &message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

template <class M>
std::string ErrorOf(absl::string_view text) {
  M message;
  const absl::Status status = DecodeText(text, &message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

TEST(EncodeText, Layout) {
  NodeDef node;
  node.name = "a\"'\n\x01\xc3";
  node.input = {"x", "y"};
  node.attr["T"].kind = AttrValue::Kind::kType;
  node.attr["T"].type = 1;
  node.attr["S"].kind = AttrValue::Kind::kShape;
  EXPECT_EQ(EncodeText(node),
            R"(name: "a\"\'\n\001\303"
input: "x"
input: "y"
attr {
  key: "S"
  value {
    shape {
    }
  }
}
attr {
  key: "T"
  value {
    type: DT_FLOAT
  }
}
)");
}

TEST(EncodeText, Numbers) {
  AttrValue value;
  value.kind = AttrValue::Kind::kF;
  const auto text = [&](float f) {
    value.f = f;
    return EncodeText(value);
  };
  EXPECT_EQ(text(0), "f: 0\n");
  EXPECT_EQ(text(-0.0f), "f: -0\n");
  EXPECT_EQ(text(0.1f), "f: 0.1\n");
  EXPECT_EQ(text(1.f / 3), "f: 0.33333334\n");
  EXPECT_EQ(text(1e6f), "f: 1e+06\n");
  EXPECT_EQ(text(16777216), "f: 16777216\n");
  EXPECT_EQ(text(INFINITY), "f: inf\n");
  EXPECT_EQ(text(-INFINITY), "f: -inf\n");
  EXPECT_EQ(text(NAN), "f: nan\n");
  for (const double d : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308}) {
    HistogramProto histo;
    histo.min = d;
    EXPECT_EQ(Parsed<HistogramProto>(EncodeText(histo)).min, d);
  }
  value.kind = AttrValue::Kind::kType;
  value.type = 77;  // no name
  EXPECT_EQ(EncodeText(value), "type: 77\n");
}

TEST(EncodeText, RoundTrip) {
  const GraphDef graph = SampleGraph();
  EXPECT_TRUE(Equal(Parsed<GraphDef>(EncodeText(graph)), graph));
}

TEST(DecodeText, CheckpointState) {
  const CheckpointState state = Parsed<CheckpointState>(
      "model_checkpoint_path: \"m-2\"\n"
      "all_model_checkpoint_paths: \"m-1\"\n"
      "all_model_checkpoint_paths: \"m-2\"\n"
      "all_model_checkpoint_timestamps: 1555.25\n");
  EXPECT_EQ(state.model_checkpoint_path, "m-2");
  EXPECT_EQ(state.all_model_checkpoint_paths.size(), 2u);
  EXPECT_EQ(state.all_model_checkpoint_timestamps[0], 1555.25);
}

TEST(DecodeText, FormsOfSyntax) {
  NodeDef wanted;
  wanted.name = "a'b\"c";
  wanted.input = {"x", "y", "z"};
  wanted.attr["T"].kind = AttrValue::Kind::kType;
  wanted.attr["T"].type = 3;
  for (const char* text : {
           "name: 'a\\'b' \"\\\"c\" input: ['x', \"y\"] input: 'z'"
           "attr { key: 'T' value { type: DT_INT32 } }",
           "# comment\nname:\"a'\"\n'b'# more\n'\"c', input:'x';input:'y',\n"
           "input: [ ] input: ['z'] attr: < key: 'T'; value: < type: 3 > >;",
           "name: '\\141\\x27\\u0062\"c' input: 'x' input: 'y' input: 'z'"
           "attr [ { value { type: 0x3 } key: 'T' } ]",
           "attr: [{key:'T' value{type:1}}, <key:'T',value<type:03>>]"
           "name: \"a'b\\\"c\" input: [\"x\", 'y', 'z']",
       }) {
    EXPECT_TRUE(Equal(Parsed<NodeDef>(text), wanted)) << text;
  }
  EXPECT_TRUE(Equal(Parsed<NodeDef>(" # nothing"), NodeDef()));
}

TEST(DecodeText, Scalars) {
  const TensorProto tensor = Parsed<TensorProto>(
      "int64_val: [-9223372036854775808, 9223372036854775807, - 1, 0x1F, 017]"
      "uint64_val: 18446744073709551615 int_val: -2147483648 "
      "bool_val: [true, false, t, f, True, False, 1, 0]"
      "float_val: [1, .5, 1.5f, 2f, 1e3, -inf, infinity, nan, 1e-2, 3e+38]");
  EXPECT_EQ(tensor.int64_val, (std::vector<int64_t>{INT64_MIN, INT64_MAX, -1, 31, 15}));
  EXPECT_EQ(tensor.uint64_val[0], UINT64_MAX);
  EXPECT_EQ(tensor.int_val[0], INT32_MIN);
  EXPECT_EQ(tensor.bool_val, (std::vector<bool>{true, false, true, false, true, false, true, false}));
  ASSERT_EQ(tensor.float_val.size(), 10u);
  EXPECT_EQ(tensor.float_val[1], .5f);
  EXPECT_EQ(tensor.float_val[2], 1.5f);
  EXPECT_EQ(tensor.float_val[3], 2.f);
  EXPECT_EQ(tensor.float_val[5], -INFINITY);
  EXPECT_EQ(tensor.float_val[6], INFINITY);
  EXPECT_TRUE(std::isnan(tensor.float_val[7]));
  EXPECT_EQ(tensor.float_val[9], 3e38f);
  EXPECT_EQ(Parsed<OptimizerOptions>("opt_level: L0").opt_level, -1);
  EXPECT_EQ(Parsed<OptimizerOptions>("opt_level: -1").opt_level, -1);
}

TEST(DecodeText, OneofAndPresence) {
  const AttrValue value = Parsed<AttrValue>("b: false");
  EXPECT_EQ(value.kind, AttrValue::Kind::kB);
  EXPECT_TRUE(Parsed<GraphDef>("versions {}").versions);
  EXPECT_NE(ErrorOf<AttrValue>("b: true i: 1").find("oneof"), std::string::npos);
  EXPECT_NE(ErrorOf<VersionDef>("producer: 1 producer: 1").find("twice"), std::string::npos);
}

TEST(DecodeText, LastMapEntryWins) {
  const ConfigProto config = Parsed<ConfigProto>("device_count { key: 'CPU' value: 1 } device_count { key: 'CPU' }");
  EXPECT_EQ(config.device_count, (Map<std::string, int32_t>{{"CPU", 0}}));
}

TEST(DecodeText, ExpandedAny) {
  const CollectionDef collection = Parsed<CollectionDef>(
      "any_list { value { [type.googleapis.com/tensorflow.AssetFileDef] {"
      "  tensor_info { name: 'x:0' } filename: 'v.txt' } } }");
  const Any& any = collection.any_list->value.at(0);
  EXPECT_EQ(any.type_url, "type.googleapis.com/tensorflow.AssetFileDef");
  AssetFileDef asset;
  ASSERT_TRUE(Decode(any.value, &asset).ok());
  EXPECT_EQ(asset.filename, "v.txt");
  EXPECT_NE(ErrorOf<Any>("[a.b/c.D] { }").find("c.D"), std::string::npos);
  ErrorOf<Any>("[a.b/c.D");
  ErrorOf<NodeDef>("[a.b] { }");
}

TEST(DecodeText, ErrorsSayWhere) {
  EXPECT_EQ(ErrorOf<GraphDef>("node {\n  name: 'x'\n  nome: 'y'\n}"),
            "cannot parse GraphDef at 3:3: NodeDef has no field named "
            "\"nome\"");
  EXPECT_EQ(ErrorOf<GraphDef>("versions { producer: 'x' }"),
            "cannot parse GraphDef at 1:22: got \"\\'x\\'\", wanted a 32-bit "
            "integer for field producer");
}

TEST(DecodeText, Malformed) {
  for (const char* text : {
           "node",
           "node {",
           "node { name: 'x }",
           "node { name 'x' }",
           "node >",
           "node < }",
           "node: [ {}",
           "node: [ {} {} ]",
           "}",
           "version: ",
           "version: 1.5",
           "version: 2147483648",
           "version: -2147483649",
           "version: 08",
           "version: 0x",
           "version: 1x",
           "version: - x",
           "version: [1]",
           "node { name: '\\q' }",
           "node { name: '\\x' }",
           "node { attr { keys: 'x' } }",
           "node { attr { key: 'x' key: 'y' } }",
           "node { attr { key: 'x' value { type: DT_NONE } } }",
           "node { attr { key: 'x' value { b: -1 } } }",
           "node { attr { key: 'x' value { f: 0x10 } } }",
           "node { attr { key: 'x' value { f: 010 } } }",
           "node { attr { key: 'x' value { f: 1.2.3 } } }",
           "node { attr { key 'x' } }",
           "node { attr { key: 'x' ",
           "version: 1,, version: 1",
           "\x01",
           "node { name: 'a\n' }",
           "node { name: '\\",
           "library { function { arg_attr { key: -1 } } }",
       }) {
    ErrorOf<GraphDef>(text);
  }
}

TEST(DecodeText, TruncationAtEveryByteIsSafe) {
  const std::string text = EncodeText(SampleGraph());
  for (size_t n = 0; n < text.size(); ++n) {
    GraphDef graph;
    const std::string prefix = text.substr(0, n);
    (void)DecodeText(prefix, &graph).ok();
  }
}

TEST(TextLimits, Depth) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) {
      absl::StrAppend(&text, "tensors { variant_val { ");
    }
    for (int i = 0; i < depth; ++i) absl::StrAppend(&text, "} }");
    return text;
  };
  VariantTensorDataProto variant;
  EXPECT_TRUE(DecodeText(nested(50), &variant).ok());
  EXPECT_FALSE(DecodeText(nested(51), &variant).ok());
  EXPECT_TRUE(DecodeText(nested(1), &variant, {.max_depth = 2}).ok());
  EXPECT_FALSE(DecodeText(nested(1), &variant, {.max_depth = 1}).ok());
  EXPECT_FALSE(DecodeText(nested(20000), &variant).ok());
  EXPECT_FALSE(DecodeText(nested(20000), &variant, {.max_depth = INT32_MAX}).ok());
}

TEST(TextLimits, Bytes) {
  VersionDef version;
  EXPECT_TRUE(DecodeText("producer: 1", &version, {.max_bytes = 11}).ok());
  EXPECT_EQ(DecodeText("producer: 1", &version, {.max_bytes = 10}).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace millrace::wire
