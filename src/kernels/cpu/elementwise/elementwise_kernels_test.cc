// SPDX-License-Identifier: Apache-2.0
// Broadcasting kernels against a loop over indices, with and without inputs that may be overwritten.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

class ElementwiseKernels : public testing::Test {
 protected:
  ElementwiseKernels() : pool_(2) {
    auto name = DeviceName::Parse("/job:localhost/replica:0/task:0/device:CPU:0");
    EXPECT_TRUE(name.ok());
    device_ = NewCpuDevice(*name, 1, pool_);
    RegisterElementwiseKernels(registry_);
  }

  // Runs one node; every input may be overwritten, except that tensors which the caller still holds are safe.
  StatusOr<Tensor> Run(const char* schema, AttrMap attrs, std::vector<Tensor> inputs) {
    MR_ASSIGN_OR_RETURN(const OpDef op, ParseSchema(schema));
    MR_RETURN_IF_ERROR(CompleteAttrs(op, &attrs, nullptr));
    NodeInfo info;
    info.name = "node";
    info.op = &op;
    MR_ASSIGN_OR_RETURN(info.signature, ResolveSignature(op, attrs));
    info.device = device_.get();
    MR_ASSIGN_OR_RETURN(auto kernel, registry_.Create({op, info.name, attrs, info.signature, *device_}));
    std::vector<Slot> slots(inputs.size());
    std::vector<Slot*> pointers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      slots[i].tensor = std::move(inputs[i]);
      pointers.push_back(&slots[i]);
    }
    std::vector<Slot> outputs(info.signature.output_types.size());
    StepContext step;
    KernelContext ctx(info, pointers.data(), outputs.data(), ~uint64_t{0}, step);
    MR_RETURN_IF_ERROR(kernel->Compute(ctx));
    return outputs[0].tensor;
  }

  template <typename T>
  Tensor Random(const Shape& shape) {
    Tensor t = *Tensor::Make(DTypeOf<T>::value, shape);
    for (T& v : t.mutable_flat<T>()) v = static_cast<T>(random_() % 1000) - static_cast<T>(500);
    return t;
  }
  // A shape of up to 5 dimensions and one that broadcasts with it.
  Shape RandomShape() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 5, 7, 1};
    std::vector<int64_t> dims(random_() % 6);
    for (int64_t& d : dims) d = kSizes[random_() % 6];
    if (!dims.empty() && random_() % 8 == 0) dims[random_() % dims.size()] = random_() % 2 ? 0 : 9000;
    return *Shape::Make(absl::MakeConstSpan(dims));
  }
  Shape Narrowed(const Shape& s) {
    std::vector<int64_t> dims(s.dims().begin(), s.dims().end());
    for (int64_t& d : dims) d = random_() % 3 == 0 ? 1 : d;
    if (!dims.empty() && random_() % 2)
      dims.erase(dims.begin(), dims.begin() + static_cast<int64_t>(random_() % dims.size()));
    return *Shape::Make(absl::MakeConstSpan(dims));
  }

  // Position in `s` of the element that stands at flat position `at` of `out`.
  static int64_t Source(const Shape& s, const Shape& out, int64_t at) {
    int64_t from = 0, stride = 1;
    for (int d = out.rank() - 1; d >= 0; --d) {
      const int64_t index = at % out.dim(d);
      at /= out.dim(d);
      const int own = d - (out.rank() - s.rank());
      if (own < 0) continue;
      if (s.dim(own) != 1) from += index * stride;
      stride *= s.dim(own);
    }
    return from;
  }

  template <typename T, typename R>
  void CheckBinary(const char* schema, const std::function<R(T, T)>& f) {
    for (int round = 0; round < 300; ++round) {
      const Shape full = RandomShape();
      Tensor a = Random<T>(Narrowed(full)), b = Random<T>(Narrowed(full));
      const Tensor keep_a = *a.Clone(), keep_b = *b.Clone();
      const Shape shape = *BroadcastShapes(a.shape(), b.shape());
      const std::string what = a.shape().ToString() + " and " + b.shape().ToString();
      std::vector<Tensor> inputs;
      inputs.push_back(std::move(a));
      inputs.push_back(std::move(b));
      auto out = Run(schema, {{"T", DTypeOf<T>::value}}, std::move(inputs));
      ASSERT_TRUE(out.ok()) << out.status();
      ASSERT_TRUE(out->shape() == shape) << what << " gives " << out->shape().ToString();
      const R* got = static_cast<const R*>(out->raw());
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        const T x = keep_a.data<T>()[Source(keep_a.shape(), shape, i)];
        const T y = keep_b.data<T>()[Source(keep_b.shape(), shape, i)];
        ASSERT_EQ(got[i], f(x, y)) << what << " at " << i;
      }
    }
  }

  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  KernelRegistry registry_;
  std::mt19937_64 random_{11};
};

TEST_F(ElementwiseKernels, BinaryBroadcasts) {
  CheckBinary<float, float>("Sub(x:T, y:T) -> (z:T) | T:type", [](float x, float y) { return x - y; });
  CheckBinary<int16_t, int16_t>(
      "Mul(x:T, y:T) -> (z:T) | T:type", [](int16_t x, int16_t y) { return static_cast<int16_t>(x * y); });
  CheckBinary<double, bool>("Less(x:T, y:T) -> (z:bool) | T:type", [](double x, double y) { return x < y; });
}

TEST_F(ElementwiseKernels, SelectBroadcasts) {
  for (int round = 0; round < 300; ++round) {
    const Shape full = RandomShape();
    Tensor c = *Tensor::Make(DType::kBool, Narrowed(full));
    for (bool& v : c.mutable_flat<bool>()) v = random_() % 2;
    const Tensor t = Random<double>(Narrowed(full)), e = Random<double>(Narrowed(full));
    auto out = Run("SelectV2(condition:bool, t:T, e:T) -> (output:T) | T:type", {{"T", DType::kDouble}}, {c, t, e});
    ASSERT_TRUE(out.ok()) << out.status();
    const Shape shape = *BroadcastShapes(c.shape(), *BroadcastShapes(t.shape(), e.shape()));
    ASSERT_TRUE(out->shape() == shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const Tensor& from = c.data<bool>()[Source(c.shape(), shape, i)] ? t : e;
      ASSERT_EQ(out->data<double>()[i], from.data<double>()[Source(from.shape(), shape, i)]);
    }
  }
}

TEST_F(ElementwiseKernels, BroadcastToRepeats) {
  for (int round = 0; round < 200; ++round) {
    const Shape full = RandomShape();
    const Tensor x = Random<int16_t>(Narrowed(full));
    const Tensor dims = Tensor::Vector<int64_t>(full.dims());
    auto out = Run("BroadcastTo(input:T, shape:Tidx) -> (output:T) | T:type; Tidx:type",
                   {{"T", DType::kInt16}, {"Tidx", DType::kInt64}}, {x, dims});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_TRUE(out->shape() == full);
    for (int64_t i = 0; i < full.num_elements(); ++i) {
      ASSERT_EQ(out->data<int16_t>()[i], x.data<int16_t>()[Source(x.shape(), full, i)]);
    }
  }
}

TEST_F(ElementwiseKernels, StringsAreJoined) {
  auto out = Run("Add(x:T, y:T) -> (z:T) | T:type", {{"T", DType::kString}},
                 {Tensor::Vector<TString>({"a", "b", "a longer piece of text"}), Tensor::Scalar<TString>("!")});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->data<TString>()[2].view(), "a longer piece of text!");
}

TEST_F(ElementwiseKernels, AddNSumsInOrderWhateverItReuses) {
  const Shape shape = *Shape::Make({3, 1000});
  std::vector<Tensor> held, taken;
  for (int i = 0; i < 5; ++i) {
    held.push_back(Random<float>(shape));
    taken.push_back(*held.back().Clone());
  }
  AttrMap attrs = {{"N", 5}, {"T", DType::kFloat}};
  const char* schema = "AddN(inputs:N*T) -> (sum:T) | N:int>=1; T:type";
  auto a = Run(schema, attrs, held), b = Run(schema, attrs, std::move(taken));
  ASSERT_TRUE(a.ok() && b.ok());
  for (int64_t i = 0; i < shape.num_elements(); ++i) ASSERT_EQ(a->data<float>()[i], b->data<float>()[i]);
}

// Sums that caches would not keep are made aside.
TEST_F(ElementwiseKernels, AddNOfLargeTensors) {
  const Shape shape = *Shape::Make({1099, 1913});
  std::vector<Tensor> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(Random<float>(shape));
  auto sum = Run("AddN(inputs:N*T) -> (sum:T) | N:int>=1; T:type", {{"N", 3}, {"T", DType::kFloat}}, parts);
  ASSERT_TRUE(sum.ok()) << sum.status();
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    ASSERT_EQ(
        sum->data<float>()[i], (parts[0].data<float>()[i] + parts[1].data<float>()[i]) + parts[2].data<float>()[i]);
  }
}

// Long rows are cut among threads, also where a row is all there is.
TEST_F(ElementwiseKernels, SelectCutsLongRows) {
  const Shape whole = *Shape::Make({3, 20011}), column = *Shape::Make({3, 1}), row = *Shape::Make({1, 20011}), number;
  const std::pair<Shape, Shape> shapes[] = {
      {whole, number}, {column, whole}, {whole, row}, {row, column}, {number, row}};
  for (const auto& [of_condition, of_else] : shapes) {
    Tensor c = *Tensor::Make(DType::kBool, of_condition);
    for (bool& v : c.mutable_flat<bool>()) v = random_() % 2 == 0;
    const Tensor t = Random<float>(whole), e = Random<float>(of_else);
    auto out = Run("SelectV2(condition:bool, t:T, e:T) -> (output:T) | T:type", {{"T", DType::kFloat}}, {c, t, e});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < whole.num_elements(); ++i) {
      const Tensor& from = c.data<bool>()[Source(of_condition, whole, i)] ? t : e;
      ASSERT_EQ(out->data<float>()[i], from.data<float>()[Source(from.shape(), whole, i)]) << i;
    }
  }
}

TEST_F(ElementwiseKernels, RefusesWhatDoesNotFit) {
  const Tensor two = Tensor::Vector<int32_t>({1, 2}), three = Tensor::Vector<int32_t>({1, 2, 3});
  const Tensor zero = Tensor::Vector<int32_t>({1, 0}), negative = Tensor::Scalar<int32_t>(-1);
  const AttrMap t = {{"T", DType::kInt32}};
  auto code = [&](const char* schema, Tensor a, Tensor b) { return Run(schema, t, {a, b}).status().code(); };
  EXPECT_EQ(code("AddV2(x:T, y:T) -> (z:T) | T:type", two, three), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("FloorDiv(x:T, y:T) -> (z:T) | T:type", two, zero), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("TruncateMod(x:T, y:T) -> (z:T) | T:type", two, zero), absl::StatusCode::kInternal);
  EXPECT_EQ(code("Pow(x:T, y:T) -> (z:T) | T:type", two, negative), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
