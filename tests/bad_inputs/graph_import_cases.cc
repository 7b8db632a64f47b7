// SPDX-License-Identifier: Apache-2.0
// Graphs whose attributes and constants are wrong, and graphs that are no graphs.
#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);

// A length-delimited field of a message.
std::string Field(int number, const std::string& body) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t n = body.size();; n >>= 7) {
    out += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    if (n <= 0x7f) break;
  }
  return out + body;
}

TEST(BadInput, G07_OneAttrKeyTwice) {
  GraphMaker g;
  g.F32("x", {}, {1}).Raw("bad", "Neg", {"x"}, {{"T", kF32}});
  const auto entry = [](const wire::AttrValue& v) { return Field(5, Field(1, "T") + Field(2, wire::Encode(v))); };
  for (const wire::AttrValue& second : {kF32, Type(DType::kInt32), Int(3)}) {
    const std::string node = wire::Encode(g.def().node[1]) + entry(second);
    const std::string bytes = Field(1, wire::Encode(g.def().node[0])) + Field(1, node);
    CheckBytes(bytes, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
}

TEST(BadInput, G07_OneAttrTwiceInASignature) {
  GraphMaker g;
  g.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"}, {{"T", kF32}});
  for (int i = 0; i < 2; ++i) {
    wire::OpAttrDef& a = g.def().library->function[0].signature->attr.emplace_back();
    a.name = "T";
    a.type = "type";
  }
  Check(g);
}

TEST(BadInput, G08_RequiredAttrAbsent) {
  GraphMaker g;
  g.F32("x", {}, {1}).Raw("bad", "Neg", {"x"});
  Check(g);
  GraphMaker c;
  c.Raw("bad", "Const", {}, {{"dtype", kF32}});
  Check(c);
  GraphMaker v;
  v.Raw("bad", "Const", {}, {{"value", TensorOf(Values(DType::kFloat, {}))}});
  Check(v);
}

TEST(BadInput, G09_AttrOfTheWrongKind) {
  wire::AttrValue empty_list = Ints({});
  wire::AttrValue types = Ints({});
  types.list->type = {1, 1};
  wire::AttrValue nothing;
  wire::AttrValue placeholder;
  placeholder.kind = wire::AttrValue::Kind::kPlaceholder;
  placeholder.placeholder = "T";
  for (const wire::AttrValue& v :
       {Int(1), Ints({1}), Func("F"), Str("float"), empty_list, types, nothing, placeholder, Bool(true), Float(1),
        ShapeOf({1}), TensorOf(Values(DType::kFloat, {})), TypeNumber(0), TypeNumber(9999), TypeNumber(-1),
        TypeNumber(101)}) {
    SCOPED_TRACE(wire::EncodeText(v));
    GraphMaker g;
    g.F32("x", {}, {1}).Raw("bad", "Neg", {"x"}, {{"T", v}});
    Check(g);
  }
  GraphMaker list;
  list.Raw("bad", "IdentityN", {}, {{"T", empty_list}});
  Check(list);
  GraphMaker missing;
  missing.F32("x", {}, {1}).Raw("bad", "IdentityN", {"x"}, {{"T", empty_list}});
  Check(missing);
  for (const wire::AttrValue& v : {Str("WHATEVER"), Str(""), Int(1), kF32}) {
    GraphMaker p;
    p.F32("x", {1, 4, 4, 1})
        .Raw("bad", "MaxPool", {"x"},
             {{"T", kF32}, {"padding", v}, {"ksize", Ints({1, 2, 2, 1})}, {"strides", Ints({1, 2, 2, 1})}});
    Check(p);
  }
}

TEST(BadInput, G10_ConstWithoutAType) {
  for (int32_t t : {0, 9999, -1, 100, INT32_MAX}) {
    SCOPED_TRACE(t);
    wire::TensorProto value = Values(DType::kFloat, {0});
    value.dtype = t;
    GraphMaker g;
    g.Raw("bad", "Const", {}, {{"dtype", kF32}, {"value", TensorOf(value)}});
    Check(g);
    GraphMaker both;
    both.Raw("bad", "Const", {}, {{"dtype", TypeNumber(t)}, {"value", TensorOf(value)}});
    Check(both);
  }
}

TEST(BadInput, G11_ConstWhoseValueHasAnotherType) {
  for (DType t : {DType::kString, DType::kInt64, DType::kDouble, DType::kHalf}) {
    GraphMaker g;
    g.Raw("x", "Const", {}, {{"dtype", kF32}, {"value", TensorOf(Values(t, {2}))}})
        .Raw("bad", "Add", {"x", "x"}, {{"T", kF32}});
    Check(g);
  }
}

TEST(BadInput, G12_ConstOfAReferenceType) {
  wire::TensorProto value = Values(DType::kFloat, {});
  value.dtype = 101;
  GraphMaker g;
  g.Raw("bad", "Const", {}, {{"dtype", TypeNumber(101)}, {"value", TensorOf(value)}});
  Check(g);
}

TEST(BadInput, G13_ShapesThatOverflow) {
  for (const Dims& dims : {Dims{int64_t{1} << 32, int64_t{1} << 32}, Dims{-2}, Dims{-1, INT64_MAX, INT64_MAX},
                           Dims{INT64_MIN}, Dims(255, 1), Dims(100000, 1)}) {
    SCOPED_TRACE(dims.size());
    GraphMaker g;
    g.Raw("bad", "Placeholder", {}, {{"dtype", kF32}, {"shape", ShapeOf(dims)}});
    Check(g);
    GraphMaker c;
    c.Const("bad", DType::kFloat, Values(DType::kFloat, dims));
    Check(c, kTooLarge);
    GraphMaker v;
    v.Raw("bad", "VariableV2", {}, {{"dtype", kF32}, {"shape", ShapeOf(dims)}});
    Check(v);
  }
  GraphMaker large;  // bytes overflow though the elements do not
  large.Const("bad", DType::kDouble, Values(DType::kDouble, {INT64_MAX}));
  Check(large, kTooLarge);
}

TEST(BadInput, G13_ConstLargerThanItsBytes) {
  for (const Dims& dims : {Dims{3}, Dims{1}, Dims{1 << 20, 1 << 20}}) {
    wire::TensorProto value = Values(DType::kFloat, dims);
    value.tensor_content = std::string(8, '\1');
    GraphMaker g;
    g.Const("bad", DType::kFloat, value);
    Check(g, kTooLarge);
  }
  wire::TensorProto repeated = Values(DType::kFloat, {int64_t{1} << 40});
  repeated.float_val = {1};
  GraphMaker g;
  g.Const("bad", DType::kFloat, repeated);
  Check(g, kTooLarge);
  for (const int64_t n : {(int64_t{1} << 20) + 1, int64_t{1} << 24, int64_t{1} << 40}) {
    wire::TensorProto strings = Values(DType::kString, {n});
    strings.string_val = {"ab", "c"};
    GraphMaker s;
    s.Const("bad", DType::kString, strings);
    Check(s, {absl::StatusCode::kResourceExhausted});
  }
  wire::TensorProto many = Values(DType::kFloat, {1});
  many.float_val = {1, 2, 3};
  GraphMaker m;
  m.Const("bad", DType::kFloat, many);
  Check(m, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
}

TEST(BadInput, G14_HandMadeHandles) {
  wire::TensorProto made = Values(DType::kResource, {});
  made.resource_handle_val.emplace_back().name = "made";
  made.resource_handle_val[0].hash_code = 0xdeadbeef;
  wire::TensorProto missing = Values(DType::kResource, {});
  wire::TensorProto bytes = Values(DType::kResource, {});
  bytes.tensor_content = std::string(64, '\x41');
  for (const wire::TensorProto& value : {made, missing, bytes}) {
    GraphMaker g;
    g.Const("h", DType::kResource, value).Raw("bad", "ReadVariableOp", {"h"}, {{"dtype", kF32}});
    Check(g);
  }
  wire::TensorProto text = Values(DType::kString, {2});
  text.tensor_content = std::string(48, '\x41');
  wire::TensorProto variant = Values(DType::kVariant, {});
  variant.variant_val.emplace_back().type_name = "made";
  for (const auto& [type, value] : {std::pair(DType::kString, text), std::pair(DType::kVariant, variant)}) {
    GraphMaker g;
    g.Const("bad", type, value);
    Check(g, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnimplemented});
  }
}

TEST(BadInput, G19_ShapeFromAHugeConstant) {
  GraphMaker fill;
  fill.I32("d", {1}, {INT32_MAX}).Op("d2", "Pack", {"d", "d"}, {{"T", Type(DType::kInt32)}}).F32("v", {}, {1});
  fill.I32("flat", {2}, {INT32_MAX}).Op("bad", "Fill", {"flat", "v"});
  Check(fill, kTooLarge);
  GraphMaker hot;
  hot.I32("i", {}, {0}).I32("depth", {}, {INT32_MAX}).F32("on", {}, {1}).F32("off", {}, {0});
  hot.I32("is", {1024}).Op("bad", "OneHot", {"is", "depth", "on", "off"});
  Check(hot, kTooLarge);
  GraphMaker rank;
  rank.I64("dims", {100000}, {1}).F32("v", {}, {1}).Op("bad", "Reshape", {"v", "dims"});
  Check(rank);
}

TEST(BadInput, G20_NestingTooDeep) {
  std::string text = "node { name: 'bad' op: 'NoOp' attr { key: 'a' value { ";
  for (int i = 0; i < 20000; ++i) text += "func { name: 'f' attr { key: 'a' value { ";
  text += "i: 1 ";
  for (int i = 0; i < 20000; ++i) text += "} } } ";
  text += "} } }";
  wire::GraphDef def;
  EXPECT_EQ(wire::DecodeText(text, &def).code(), absl::StatusCode::kInvalidArgument);

  std::string bytes = wire::Encode(Int(1));
  for (int i = 0; i < 101; ++i) bytes = Field(10, Field(1, "f") + Field(2, Field(1, "a") + Field(2, bytes)));
  CheckBytes(Field(1, Field(1, "bad") + Field(2, "NoOp") + Field(5, Field(1, "a") + Field(2, bytes))));
}

TEST(BadInput, G20_BytesThatAreNoGraph) {
  CheckBytes(std::string(100, '\xff'));
  CheckBytes(std::string("\x0a\xff\xff\xff\xff\x0f", 6));
  CheckBytes(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
  GraphMaker g;
  g.F32("x", {8}, {1}).Raw("bad", "Neg", {"x"}, {{"T", kF32}});
  const std::string whole = wire::Encode(g.def());
  const Codes any = {absl::StatusCode::kInvalidArgument, absl::StatusCode::kInternal, absl::StatusCode::kOk};
  for (size_t n = 0; n < whole.size(); n += 7) CheckBytes(whole.substr(0, n), any);
}

TEST(BadInput, G23_FoldingOfHandles) {
  GraphMaker g;
  g.Raw("h", "VarHandleOp", {}, {{"dtype", kF32}, {"shape", ShapeOf({2})}})
      .Raw("i", "Identity", {"h"}, {{"T", Type(DType::kResource)}})
      .Raw("bad", "ReadVariableOp", {"i"}, {{"dtype", kF32}});
  Check(g, {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kNotFound});
  GraphMaker wrong;
  wrong.F32("x", {}, {1}).Raw("bad", "ReadVariableOp", {"x"}, {{"dtype", kF32}});
  Check(wrong);
}

}  // namespace
}  // namespace millrace::bad_inputs
