// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor_proto.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"

namespace millrace {
namespace {

wire::TensorProto Proto(DType dtype, std::initializer_list<int64_t> dims) {
  wire::TensorProto proto;
  proto.dtype = static_cast<int32_t>(dtype);
  for (int64_t dim : dims) proto.tensor_shape.Ensure().dim.emplace_back().size = dim;
  return proto;
}

absl::StatusCode CodeOf(const wire::TensorProto& proto) { return TensorFromProto(proto).status().code(); }
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

template <typename T>
std::string Bytes(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

TEST(TensorFromProtoTest, ContentMustFitExactly) {
  wire::TensorProto proto = Proto(DType::kInt32, {2, 2});
  proto.tensor_content = Bytes<int32_t>({1, 2, 3, 4});
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->DebugString(), "int32[2,2] 1 2 3 4");
  proto.tensor_content.pop_back();
  EXPECT_EQ(CodeOf(proto), kInvalidArgument);
  proto.tensor_content += "xx";
  EXPECT_EQ(CodeOf(proto), kInvalidArgument);
}

TEST(TensorFromProtoTest, TheLastValueRepeats) {
  wire::TensorProto proto = Proto(DType::kFloat, {4});
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "float[4] 0 0 0 0");
  proto.float_val = {1, 2};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "float[4] 1 2 2 2");
  proto.float_val = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "float[4] 1 2 3 4");
}

TEST(TensorFromProtoTest, EveryPlainTypeReadsItsField) {
  wire::TensorProto all = Proto(DType::kFloat, {2});
  all.float_val = {7};
  all.double_val = {7};
  all.int_val = {7};
  all.int64_val = {7};
  all.uint32_val = {7};
  all.uint64_val = {7};
  all.bool_val = {true};
  all.half_val = {0x4700, 0x40e0};  // 7 as half, 7 as bfloat16
  all.scomplex_val = {7, 0};
  all.dcomplex_val = {7, 0};
  for (DType dtype : PlainTypes()) {
    all.dtype = static_cast<int32_t>(dtype);
    const auto t = TensorFromProto(all);
    ASSERT_TRUE(t.ok()) << t.status();
    std::string want = " 7 7";
    if (dtype == DType::kBool) want = " 1 1";
    if (dtype == DType::kHalf) want = " 7 2.4375";
    if (dtype == DType::kBFloat16) want = " 32768 7";
    if (IsComplex(dtype)) want = " (7,0) (7,0)";
    EXPECT_EQ(t->DebugString(), absl::StrCat(DTypeName(dtype), "[2]", want));
  }
}

TEST(TensorFromProtoTest, EarlyBFloat16UsedIntVal) {
  wire::TensorProto proto = Proto(DType::kBFloat16, {});
  proto.int_val = {0x40e0};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "bfloat16[] 7");
}

TEST(TensorFromProtoTest, ComplexPairs) {
  wire::TensorProto proto = Proto(DType::kComplex64, {3});
  proto.scomplex_val = {1, 2, 3, 4};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "complex64[3] (1,2) (3,4) (3,4)");
  proto.scomplex_val = {1, 2, 3};
  EXPECT_EQ(CodeOf(proto), kInvalidArgument);
}

TEST(TensorFromProtoTest, BoolBytesAreNormalised) {
  wire::TensorProto proto = Proto(DType::kBool, {4});
  proto.tensor_content = std::string("\0\1\2\xff", 4);
  const auto t = TensorFromProto(proto);
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(std::memcmp(t->raw(), "\0\1\1\1", 4), 0);
}

TEST(TensorFromProtoTest, Strings) {
  wire::TensorProto proto = Proto(DType::kString, {3});
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "string[3] \"\" \"\" \"\"");
  proto.string_val = {"a", "bc"};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "string[3] \"a\" \"bc\" \"bc\"");
  proto.tensor_content = std::string("\2\0\1xyz", 6);
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "string[3] \"xy\" \"\" \"z\"");
  for (const std::string& bad :
       {std::string("\2\0\1xy", 5), std::string("\2\0\1xyzz", 7), std::string("\2\0", 2),
        std::string("\x80\x80\x80", 3), std::string("\xff\xff\xff\xff\xff\1\0\0", 8),
        std::string("\xff\xff\xff\xff\x0f\1\1abc", 10)}) {
    proto.tensor_content = bad;
    EXPECT_EQ(CodeOf(proto), kInvalidArgument);
  }
}

TEST(TensorFromProtoTest, HostileProtos) {
  for (int32_t number :
       {0, -1, 24, 101, 107, 9999, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    wire::TensorProto proto = Proto(DType::kFloat, {0});
    proto.dtype = number;
    EXPECT_EQ(CodeOf(proto), kInvalidArgument) << number;
  }
  EXPECT_EQ(CodeOf(Proto(DType::kResource, {})), kInvalidArgument);
  EXPECT_EQ(CodeOf(Proto(DType::kVariant, {})), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CodeOf(Proto(DType::kFloat, {-1})), kInvalidArgument);
  EXPECT_EQ(CodeOf(Proto(DType::kFloat, {-2})), kInvalidArgument);
  EXPECT_EQ(CodeOf(Proto(DType::kFloat, {int64_t{1} << 32, int64_t{1} << 32})), kInvalidArgument);
  EXPECT_EQ(CodeOf(Proto(DType::kFloat, {std::numeric_limits<int64_t>::max()})), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(Proto(DType::kString, {int64_t{1} << 40})), absl::StatusCode::kResourceExhausted);
  wire::TensorProto unknown = Proto(DType::kFloat, {});
  unknown.tensor_shape.Ensure().unknown_rank = true;
  EXPECT_EQ(CodeOf(unknown), kInvalidArgument);
  wire::TensorProto deep = Proto(DType::kFloat, {});
  deep.tensor_shape.Ensure().dim.resize(255);
  EXPECT_EQ(CodeOf(deep), kInvalidArgument);
  deep.tensor_shape->dim.resize(254);
  EXPECT_EQ(CodeOf(deep), absl::StatusCode::kOk);
}

TEST(TensorFromProtoTest, NoElementsNeedOnlyAType) {
  wire::TensorProto proto = Proto(DType::kComplex64, {3, 0});
  proto.tensor_content = "odd";
  proto.scomplex_val = {1};
  EXPECT_EQ(TensorFromProto(proto)->DebugString(), "complex64[3,0]");
}

TEST(TensorToProtoTest, RoundTrips) {
  const double nan = std::nan("");
  for (const Tensor& t :
       {Tensor::Vector<double>({1, -0.0, nan, 4, 5}), Tensor::Scalar<int8_t>(-3), Tensor::Scalar(true),
        Tensor::Vector<TString>({"", "short", "a string that is longer than 22 characters"}),
        *Tensor::Zeros(DType::kHalf, *Shape::Make({5, 7})), *Tensor::Zeros(DType::kComplex128, *Shape::Make({9})),
        Tensor::Vector<BFloat16>(std::vector<BFloat16>(100, BFloat16(-2.5f))),
        Tensor::Vector<uint64_t>(std::vector<uint64_t>(10, ~uint64_t{0})),
        Tensor::Vector<float>(std::vector<float>(10, -0.0f)), *Tensor::Zeros(DType::kInt16, *Shape::Make({0, 3}))}) {
    const auto proto = TensorToProto(t);
    ASSERT_TRUE(proto.ok());
    const auto back = TensorFromProto(*proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->dtype(), t.dtype());
    EXPECT_EQ(back->shape(), t.shape());
    EXPECT_EQ(back->DebugString(100), t.DebugString(100));
    if (IsPlain(t.dtype())) {
      EXPECT_EQ(std::memcmp(back->raw(), t.raw(), t.TotalBytes()), 0) << t.DebugString();
    }
  }
}

TEST(TensorToProtoTest, EqualElementsBecomeOneValue) {
  for (DType dtype : PlainTypes()) {
    const auto proto = TensorToProto(*Tensor::Zeros(dtype, *Shape::Make({1000})));
    ASSERT_TRUE(proto.ok());
    EXPECT_LT(wire::EncodedSize(*proto), 40u) << DTypeName(dtype);
    EXPECT_EQ(TensorFromProto(*proto)->num_elements(), 1000);
  }
}

TEST(TensorToProtoTest, HandlesKeepTheirNames) {
  ResourceHandle handle;
  handle.container = "c";
  handle.name = "n";
  const auto proto = TensorToProto(Tensor::Scalar(handle));
  ASSERT_TRUE(proto.ok());
  EXPECT_EQ(proto->resource_handle_val.at(0).name, "n");
  EXPECT_EQ(proto->resource_handle_val.at(0).container, "c");
  EXPECT_EQ(TensorToProto(Tensor()).status().code(), kInvalidArgument);
  EXPECT_EQ(TensorToProto(Tensor::Scalar(Variant())).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ShapeProtoTest, RoundTripsAndRefusals) {
  for (const PartialShape& shape : {PartialShape(), PartialShape::Scalar(), PartialShape::Of({2, -1, 0})}) {
    EXPECT_EQ(*ShapeFromProto(ShapeToProto(shape)), shape);
  }
  wire::TensorShapeProto proto;
  proto.dim.emplace_back().size = -2;
  EXPECT_EQ(ShapeFromProto(proto).status().code(), kInvalidArgument);
  proto.unknown_rank = true;
  EXPECT_EQ(ShapeFromProto(proto).status().code(), kInvalidArgument);
}

}  // namespace
}  // namespace millrace
