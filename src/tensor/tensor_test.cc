// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

#include <cstring>
#include <utility>

#include "gtest/gtest.h"
#include "tensor/plain_allocator.h"

namespace millrace {
namespace {

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;
Shape S(std::initializer_list<int64_t> dims) { return *Shape::Make(dims); }

TEST(DTypeTest, NumbersNamesAndSizes) {
  EXPECT_EQ(AllTypes().size(), 23u);
  for (DType t : AllTypes()) {
    EXPECT_EQ(DTypeFromNumber(static_cast<int32_t>(t)), t);
    EXPECT_EQ(DTypeFromName(DTypeName(t)), t);
    EXPECT_EQ(DTypeFromName(DTypeName(MakeRefType(t))), MakeRefType(t));
    EXPECT_EQ(BaseType(MakeRefType(t)), t);
    EXPECT_EQ(DTypeSize(MakeRefType(t)), DTypeSize(t));
    EXPECT_GT(DTypeSize(t), 0u);
    EXPECT_EQ(IsPlain(t), t != DType::kString && t != DType::kResource && t != DType::kVariant);
  }
  for (int32_t bad : {0, -1, 24, 100, 101, 123, INT32_MAX, INT32_MIN}) EXPECT_FALSE(DTypeFromNumber(bad)) << bad;
  EXPECT_EQ(DTypeFromName("f32"), DType::kFloat);
  EXPECT_EQ(DTypeFromName("bf16"), DType::kBFloat16);
  EXPECT_FALSE(DTypeFromName("float33"));
  EXPECT_FALSE(DTypeFromName(""));
  EXPECT_EQ(DTypeName(MakeRefType(DType::kFloat)), "float_ref");
  EXPECT_EQ(DTypeSize(DType::kInvalid), 0u);
  EXPECT_EQ(DTypeSize(DType(99)), 0u);
}

TEST(DTypeTest, Lists) {
  EXPECT_EQ(RealNumberTypes().size(), 12u);
  EXPECT_EQ(NumberTypes().size(), 14u);
  EXPECT_EQ(PlainTypes().size(), 20u);
  for (DType t : FloatTypes()) EXPECT_TRUE(IsFloating(t));
  for (DType t : RealNumberTypes()) EXPECT_TRUE(IsFloating(t) || IsInteger(t));
  for (DType t : NumberTypes()) EXPECT_TRUE(IsFloating(t) || IsInteger(t) || IsComplex(t));
  EXPECT_FALSE(IsInteger(DType::kBool));
  EXPECT_TRUE(IsQuantized(DType::kQInt32));
}

TEST(TensorTest, EveryTypeAndEmptyShapes) {
  for (DType t : AllTypes()) {
    for (const Shape& shape : {S({}), S({3}), S({2, 0, 5}), S({2, 3, 4, 5, 6})}) {
      const auto tensor = Tensor::Zeros(t, shape);
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      EXPECT_EQ(tensor->dtype(), t);
      EXPECT_EQ(tensor->shape(), shape);
      EXPECT_EQ(tensor->TotalBytes(), static_cast<size_t>(shape.num_elements()) * DTypeSize(t));
      EXPECT_TRUE(tensor->OwnsBufferAlone());
      EXPECT_NE(tensor->raw(), nullptr);
      const auto clone = tensor->Clone();
      ASSERT_TRUE(clone.ok());
      EXPECT_EQ(clone->DebugString(), tensor->DebugString());
      EXPECT_FALSE(clone->SharesBufferWith(*tensor));
    }
  }
}

TEST(TensorTest, RefusesWhatCannotBe) {
  EXPECT_EQ(Tensor::Make(DType::kInvalid, Shape()).status().code(), kInvalidArgument);
  EXPECT_EQ(Tensor::Make(MakeRefType(DType::kFloat), Shape()).status().code(), kInvalidArgument);
  EXPECT_EQ(Tensor::Make(DType(77), Shape()).status().code(), kInvalidArgument);
  EXPECT_EQ(Tensor::Make(DType::kDouble, S({int64_t{1} << 61})).status().code(), kInvalidArgument);
  const Status exhausted = Tensor::Make(DType::kDouble, S({int64_t{1} << 50})).status();
  EXPECT_EQ(exhausted.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(exhausted.message().find("double[1125899906842624]"), absl::string_view::npos);
}

TEST(TensorTest, ElementsAreDestroyed) {
  class Counted : public VariantValue {
   public:
    explicit Counted(int* alive) : alive_(alive) { ++*alive_; }
    ~Counted() override { --*alive_; }
    std::string TypeName() const override { return "Counted"; }
    std::string DebugString() const override { return "counted"; }

   private:
    int* alive_;
  };
  int alive = 0;
  PlainAllocator allocator;
  {
    Tensor t = *Tensor::Make(DType::kVariant, S({3}), allocator);
    for (Variant& v : t.mutable_flat<Variant>()) v = Variant(MakeRef<Counted>(&alive));
    Tensor strings = *Tensor::Make(DType::kString, S({2}), allocator);
    strings.mutable_data<TString>()[1] = std::string(100, 'x');
    const Tensor clone = *t.Clone(allocator);
    EXPECT_EQ(alive, 3);
    EXPECT_EQ(t.DebugString(), "variant[3] <counted> <counted> <counted>");
  }
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(allocator.Stats().bytes_in_use, 0);
}

TEST(TensorTest, FromBufferChecksBoundsAndAlignment) {
  const auto make = [](DType dtype, const Shape& shape, size_t bytes, size_t offset) {
    return Tensor::FromBuffer(dtype, shape, *AllocateBuffer(HostAllocator(), bytes), offset).status().code();
  };
  EXPECT_EQ(make(DType::kFloat, S({4}), 16, 0), absl::StatusCode::kOk);
  EXPECT_EQ(make(DType::kFloat, S({4}), 15, 0), kInvalidArgument);
  EXPECT_EQ(make(DType::kFloat, S({3}), 16, 4), absl::StatusCode::kOk);
  EXPECT_EQ(make(DType::kFloat, S({3}), 16, 5), kInvalidArgument);
  EXPECT_EQ(make(DType::kFloat, S({2}), 16, 5), kInvalidArgument);
  EXPECT_EQ(make(DType::kInt8, S({2}), 16, 5), absl::StatusCode::kOk);
  EXPECT_EQ(make(DType::kComplex128, S({1}), 32, 8), absl::StatusCode::kOk);
  EXPECT_EQ(make(DType::kFloat, S({0}), 16, 17), kInvalidArgument);
  EXPECT_EQ(make(DType::kFloat, S({0}), 16, 16), absl::StatusCode::kOk);
  EXPECT_EQ(make(DType::kFloat, S({1}), 16, SIZE_MAX - 3), kInvalidArgument);
  EXPECT_EQ(Tensor::FromBuffer(DType::kFloat, S({0}), nullptr).status().code(), kInvalidArgument);
}

TEST(TensorTest, ReadersOfScalars) {
  EXPECT_EQ(*Tensor::Scalar<float>(2.5f).ScalarValue<float>(), 2.5f);
  EXPECT_EQ(
      Tensor::Vector<float>({1, 2}).ScalarValue<int32_t>().status().message(), "expected one int32, got float[2]");
  EXPECT_EQ(*Tensor::Vector<int32_t>({7}).IntScalar(), 7);
  EXPECT_EQ(*Tensor::Scalar<int64_t>(-7).IntScalar(), -7);
  EXPECT_FALSE(Tensor::Scalar<int16_t>(1).IntScalar().ok());
  EXPECT_FALSE(Tensor::Vector<int32_t>({1, 2}).IntScalar().ok());
  EXPECT_FALSE(Tensor().IntScalar().ok());
  EXPECT_FALSE(Tensor().IntValues().ok());
  EXPECT_FALSE(Tensor().ScalarValue<float>().ok());
  EXPECT_EQ(*Tensor::Vector<int32_t>({1, -2}).IntValues(), (std::vector<int64_t>{1, -2}));
}

TEST(TensorTest, ViewsShareTheBuffer) {
  const Tensor t = *Tensor::Vector<int32_t>({0, 1, 2, 3, 4, 5}).Reshaped(S({3, 2}));
  const Tensor rows = *t.Rows(1, 3);
  EXPECT_EQ(rows.DebugString(), "int32[2,2] 2 3 4 5");
  EXPECT_TRUE(rows.SharesBufferWith(t));
  EXPECT_FALSE(t.OwnsBufferAlone());
  EXPECT_EQ(t.Rows(3, 3)->num_elements(), 0);
  for (auto [begin, end] : {std::pair<int64_t, int64_t>{-1, 1}, {2, 1}, {0, 4}, {4, 4}}) {
    EXPECT_EQ(t.Rows(begin, end).status().code(), kInvalidArgument);
  }
  EXPECT_FALSE(Tensor::Scalar(1).Rows(0, 0).ok());
  EXPECT_TRUE(Tensor::Zeros(DType::kFloat, S({0, 3}))->Rows(0, 0).ok());
  EXPECT_FALSE(t.Reshaped(S({7})).ok());
}

TEST(TensorTest, DebugString) {
  EXPECT_EQ(Tensor().DebugString(), "uninitialised");
  EXPECT_EQ(Tensor::Vector<float>({1, 2.5, 3}).DebugString(2), "float[3] 1 2.5 ...");
  EXPECT_EQ(Tensor::Scalar(Half(1.5f)).DebugString(), "half[] 1.5");
  EXPECT_EQ(Tensor::Scalar(complex64(1, -1)).DebugString(), "complex64[] (1,-1)");
  EXPECT_EQ(Tensor::Scalar<TString>("a\n").DebugString(), "string[] \"a\\n\"");
}

}  // namespace
}  // namespace millrace
