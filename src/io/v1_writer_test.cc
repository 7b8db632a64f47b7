// SPDX-License-Identifier: Apache-2.0
// What is written as a V1 checkpoint is read again.
#include "io/v1_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io/checkpoint_reader.h"

namespace millrace {
namespace {

class V1 : public ::testing::Test {
 protected:
  ~V1() override { (void)Env::Default().DeleteFile(path_); }
  Status Add(V1Writer& w, const std::string& name, const Tensor& t) {
    return w.Add(name, t.shape(), TensorSlice::Full(t.rank()), t);
  }
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/v1_", Env::Default().Random64());
};

TEST_F(V1, HoldsEveryPlainType) {
  V1Writer writer(Env::Default(), path_);
  std::map<std::string, Tensor> all;
  for (const DType dtype : PlainTypes()) {
    Tensor t = *Tensor::Make(dtype, *Shape::Make({2, 3}));
    for (size_t i = 0; i < t.TotalBytes(); ++i) {
      static_cast<unsigned char*>(t.mutable_raw())[i] =
          static_cast<unsigned char>(dtype == DType::kBool ? i % 2 : 40 + i);
    }
    all.emplace(DTypeName(dtype), t);
    ASSERT_TRUE(Add(writer, DTypeName(dtype), t).ok()) << DTypeName(dtype);
  }
  ASSERT_TRUE(Add(writer, "string", Tensor::Vector<TString>({"", "a long one, longer than what stays inside"})).ok());
  ASSERT_TRUE(Add(writer, "empty", *Tensor::Make(DType::kFloat, *Shape::Make({0, 3}))).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const auto reader = *OpenCheckpoint(Env::Default(), path_);
  for (const auto& [name, t] : all) {
    const StatusOr<Tensor> got = reader->Read(name);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->dtype(), t.dtype());
    EXPECT_EQ(std::memcmp(got->raw(), t.raw(), t.TotalBytes()), 0) << name;
  }
  EXPECT_EQ(reader->Read("string")->data<TString>()[1].size(), 41U);
  EXPECT_EQ(reader->Read("empty")->shape().ToString(), "[0,3]");
}

TEST_F(V1, JoinsParts) {
  V1Writer writer(Env::Default(), path_);
  const Shape full = Shape::Vector(4);
  ASSERT_TRUE(writer.Add("x", full, *TensorSlice::Parse("2,2"), Tensor::Vector<float>({3, 4})).ok());
  ASSERT_TRUE(writer.Add("x", full, *TensorSlice::Parse("0,2"), Tensor::Vector<float>({1, 2})).ok());
  EXPECT_FALSE(writer.Add("x", full, *TensorSlice::Parse("0,2"), Tensor::Vector<float>({1, 2})).ok()) << "twice";
  EXPECT_FALSE(writer.Add("x", full, *TensorSlice::Parse("1,2"), Tensor::Vector<int32_t>({1, 2})).ok()) << "dtype";
  EXPECT_FALSE(writer.Add("x", Shape::Vector(9), *TensorSlice::Parse("1,2"), Tensor::Vector<float>({1, 2})).ok());
  EXPECT_FALSE(writer.Add("x", full, *TensorSlice::Parse("1,3"), Tensor::Vector<float>({1, 2})).ok()) << "shape";
  EXPECT_FALSE(Add(writer, "", Tensor::Scalar(1.0F)).ok());
  EXPECT_FALSE(Add(writer, "handle", *Tensor::Make(DType::kResource, Shape())).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const Tensor x = *(*OpenCheckpoint(Env::Default(), path_))->Read("x");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(x.data<float>()[i], static_cast<float>(i + 1));
}

}  // namespace
}  // namespace millrace
