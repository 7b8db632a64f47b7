// SPDX-License-Identifier: Apache-2.0
// Stacks, tensor arrays and tensor lists: who holds what, and for how long.
#include <gtest/gtest.h>

#include "kernels/cpu/dataflow/tensor_array.h"
#include "kernels/cpu/dataflow/tensor_list.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

Tensor Row(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

TEST(ChunkedVector, CopiesShareUntilTheyChange) {
  ChunkedVector<std::string, 4> a;
  for (int i = 0; i < 10; ++i) a.PushBack(absl::StrCat(i));
  ChunkedVector<std::string, 4> b = a;
  b.Mutable(5) = "changed";
  EXPECT_EQ(a[5], "5");
  EXPECT_EQ(b[5], "changed");
  EXPECT_EQ(&a[0], &b[0]) << "another chunk is still shared";
  EXPECT_EQ(b.PopBack(), "9");
  EXPECT_EQ(a.size(), 10);
  b.Resize(5);
  b.Resize(8);
  EXPECT_EQ(b[5], "") << "what was cut off does not come back";
  EXPECT_EQ(a[5], "5");
}

class StepObjects : public ::testing::Test {
 protected:
  StepObjects() {
    for (KernelRunner* r : {&stack_, &array_}) r->step.step_resources = &*resources_;
  }
  StatusOr<std::vector<Tensor>> Stack(absl::string_view schema, AttrMap attrs, std::vector<Tensor> inputs) {
    return stack_.Run(schema, std::move(attrs), std::move(inputs));
  }
  RefPtr<TensorArray> NewArray(TensorArray::Options options, int64_t size) {
    options.dtype = DType::kFloat;
    RefPtr<TensorArray> array = *TensorArray::Make("array", options, size);
    EXPECT_TRUE(AddToStep(array_.step, TensorArray::kContainer, array).ok());
    return array;
  }
  void EndStep() { resources_.reset(); }

  std::unique_ptr<ResourceManager> resources_ = std::make_unique<ResourceManager>();
  KernelRunner stack_{RegisterStackKernels, 1};
  KernelRunner array_{RegisterTensorArrayKernels, 1};
};

constexpr char kNewStack[] = "StackV2(max_size:i32) -> (handle:res) | elem_type:type; stack_name:string=\"\"";
constexpr char kPush[] = "StackPushV2(handle:res, elem:T) -> (output:T) | T:type; swap_memory:bool=false";
constexpr char kPop[] = "StackPopV2(handle:res) -> (elem:elem_type) | elem_type:type";

TEST_F(StepObjects, AStackGivesBackTheBuffersItWasGiven) {
  const AttrMap type = {{"elem_type", DType::kFloat}};
  const Tensor handle = (*Stack(kNewStack, type, {Tensor::Scalar<int32_t>(2)}))[0];
  const Tensor a = Row({1}), b = Row({2});
  for (const Tensor& t : {a, b}) ASSERT_TRUE(Stack(kPush, {{"T", DType::kFloat}}, {handle, t}).ok());
  EXPECT_EQ(Stack(kPush, {{"T", DType::kFloat}}, {handle, a}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE((*Stack(kPop, type, {handle}))[0].SharesBufferWith(b));
  EXPECT_TRUE(b.OwnsBufferAlone()) << "what was popped is no longer held";
  EXPECT_TRUE((*Stack(kPop, type, {handle}))[0].SharesBufferWith(a));
  const auto empty = Stack(kPop, type, {handle});
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(empty.status().message().find("is empty"), std::string::npos) << empty.status();
}

TEST_F(StepObjects, AHandleThatOutlivesTheStepHoldsNothing) {
  const AttrMap type = {{"elem_type", DType::kFloat}};
  const Tensor handle = (*Stack(kNewStack, type, {Tensor::Scalar<int32_t>(-1)}))[0];
  const Tensor a = Row({1});
  ASSERT_TRUE(Stack(kPush, {{"T", DType::kFloat}}, {handle, a}).ok());
  const RefPtr<TensorArray> array = NewArray({}, 1);
  ASSERT_TRUE(array->Write(0, a).ok());
  EndStep();
  EXPECT_TRUE(a.OwnsBufferAlone());
  EXPECT_EQ(Stack(kPop, type, {handle}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(array->Size().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StepObjects, OlderHandlesAreFoundByName) {
  const AttrMap attrs = {{"dtype", DType::kFloat}};
  const char* make =
      "TensorArrayV2(size:i32) -> (handle:str) | dtype:type; element_shape:shape=?; dynamic_size:bool=false; "
      "clear_after_read:bool=true; tensor_array_name:string=\"\"";
  const char* size = "TensorArraySizeV2(handle:str, flow_in:f32) -> (size:i32)";
  const Tensor handle = (*array_.Run(make, attrs, {Tensor::Scalar<int32_t>(3)}))[0];
  ASSERT_EQ(handle.shape(), Shape::Vector(2));
  EXPECT_EQ(*(*array_.Run(size, {}, {handle, Tensor::Scalar<float>(0)}))[0].data<int32_t>(), 3);
  const Tensor unknown = Tensor::Vector<TString>({"_tensor_arrays", "nobody"});
  EXPECT_EQ(array_.Run(size, {}, {unknown, Tensor::Scalar<float>(0)}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StepObjects, AnElementIsWrittenOnceAndReadOnce) {
  const RefPtr<TensorArray> array = NewArray({}, 2);
  const Tensor a = Row({1, 2});
  ASSERT_TRUE(array->Write(0, a).ok());
  EXPECT_FALSE(array->Write(0, a).ok());
  EXPECT_FALSE(array->Write(2, a).ok());
  Tensor out;
  ASSERT_TRUE(array->Read(0, HostAllocator(), &out).ok());
  EXPECT_TRUE(out.SharesBufferWith(a));
  out = Tensor();
  EXPECT_TRUE(a.OwnsBufferAlone()) << "reading took it out";
  EXPECT_FALSE(array->Read(0, HostAllocator(), &out).ok());
  EXPECT_FALSE(array->Read(1, HostAllocator(), &out).ok()) << "neither value nor shape";
}

TEST_F(StepObjects, ArraysThatKeepWhatIsReadAndGrow) {
  const RefPtr<TensorArray> array = NewArray({.dynamic_size = true, .clear_after_read = false}, 0);
  ASSERT_TRUE(array->Write(40, Row({1})).ok());
  EXPECT_EQ(*array->Size(), 41);
  EXPECT_EQ(array->Write(TensorArray::kMaxSize, Row({1})).code(), absl::StatusCode::kResourceExhausted);
  Tensor out;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(array->Read(40, HostAllocator(), &out).ok());
  EXPECT_EQ(TensorArray::Make("a", {}, -1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StepObjects, GradientsAddUpBySource) {
  const RefPtr<TensorArray> array = NewArray({}, 3);
  ASSERT_TRUE(array->Write(0, Row({1, 2})).ok());
  ASSERT_TRUE(array->Write(1, Row({1, 2, 3})).ok());
  const RefPtr<TensorArray> g = *array->Gradient("gradients", Shape(), array_.step);
  EXPECT_EQ(g, *array->Gradient("gradients", Shape(), array_.step));
  const RefPtr<TensorArray> other = *array->Gradient("gradients_1", Shape(), array_.step);
  EXPECT_NE(g, other);
  const Tensor first = Row({10, 20});
  ASSERT_TRUE(g->Write(0, first).ok());
  ASSERT_TRUE(g->Write(0, Row({1, 1})).ok());
  ASSERT_TRUE(g->Write(0, Row({1, 1})).ok());
  EXPECT_FALSE(g->Write(0, Row({1})).ok());
  Tensor out;
  ASSERT_TRUE(g->Read(0, HostAllocator(), &out).ok());
  EXPECT_EQ(out.flat<float>()[1], 22);
  EXPECT_EQ(first.flat<float>()[1], 20) << "the value written belongs to its writer";
  ASSERT_TRUE(g->Read(1, HostAllocator(), &out).ok());
  EXPECT_EQ(out.shape(), Shape::Vector(3)) << "zeros like what was written forward";
  ASSERT_TRUE(other->Read(0, HostAllocator(), &out).ok());
  EXPECT_EQ(out.flat<float>()[1], 0);
  EXPECT_FALSE(g->Gradient("again", Shape(), array_.step).ok()) << "sums cannot be taken apart";
}

class Lists : public ::testing::Test {
 protected:
  static constexpr char kPushBack[] =
      "TensorListPushBack(input_handle:var, tensor:element_dtype) -> (output_handle:var) | element_dtype:type";

  static Tensor NewList(DType dtype = DType::kFloat) {
    return Tensor::Scalar(Variant(RefPtr<VariantValue>(MakeRef<TensorList>(dtype, PartialShape(), -1))));
  }
  static const TensorList& ListOf(const Tensor& t) { return *ListIn(*t.data<Variant>()); }
  StatusOr<Tensor> Push(Tensor list, const Tensor& item) {
    std::vector<Tensor> inputs;
    inputs.push_back(std::move(list));
    inputs.push_back(item);
    MR_ASSIGN_OR_RETURN(
        std::vector<Tensor> out, runner_.Run(kPushBack, {{"element_dtype", item.dtype()}}, std::move(inputs)));
    return out[0];
  }

  KernelRunner runner_{RegisterTensorListKernels, 1};
};

TEST_F(Lists, ChangeInPlaceOnlyForTheirOnlyHolder) {
  runner_.inputs_die = true;
  Tensor list = NewList();
  const TensorList* before = &ListOf(list);
  list = *Push(std::move(list), Row({1}));
  EXPECT_EQ(&ListOf(list), before);
  const Tensor longer = *Push(list, Row({2}));
  EXPECT_NE(&ListOf(longer), before);
  EXPECT_EQ(ListOf(list).size(), 1);
  EXPECT_EQ(ListOf(longer).size(), 2);
  EXPECT_TRUE(ListOf(longer)[0].SharesBufferWith(ListOf(list)[0]));
}

TEST_F(Lists, CannotBeNestedWithoutEnd) {
  Tensor list = NewList(DType::kVariant);
  int depth = 0;
  for (; depth < 1000; ++depth) {
    StatusOr<Tensor> outer = Push(NewList(DType::kVariant), list);
    if (!outer.ok()) break;
    list = *outer;
  }
  EXPECT_EQ(depth, TensorList::kMaxDepth - 1);
}

TEST_F(Lists, SumsTakeWhatIsMissingAsZero) {
  auto a = MakeRef<TensorList>(DType::kFloat, PartialShape(), -1);
  auto b = MakeRef<TensorList>(DType::kFloat, PartialShape(), -1);
  for (auto& list : {a, b}) ASSERT_TRUE(list->Resize(3).ok());
  ASSERT_TRUE(a->Set(0, Row({1})).ok());
  ASSERT_TRUE(b->Set(0, Row({2})).ok());
  ASSERT_TRUE(b->Set(1, Row({3})).ok());
  const auto sum = AddVariants(Variant(RefPtr<VariantValue>(a)), Variant(RefPtr<VariantValue>(b)));
  ASSERT_TRUE(sum.ok()) << sum.status();
  const TensorList& list = *ListIn(*sum);
  EXPECT_EQ(list[0].flat<float>()[0], 3);
  EXPECT_EQ(list[1].flat<float>()[0], 3);
  EXPECT_FALSE(list[2].IsInitialized());
  EXPECT_EQ((*a)[0].flat<float>()[0], 1);
  ASSERT_TRUE(b->Resize(2).ok());
  EXPECT_FALSE(AddVariants(Variant(RefPtr<VariantValue>(a)), Variant(RefPtr<VariantValue>(b))).ok());
}

TEST_F(Lists, ZerosKeepTheirPlaces) {
  auto outer = MakeRef<TensorList>(DType::kVariant, PartialShape(), -1);
  auto inner = MakeRef<TensorList>(DType::kFloat, PartialShape(), -1);
  ASSERT_TRUE(inner->Resize(2).ok());
  ASSERT_TRUE(inner->Set(1, Row({5, 6})).ok());
  ASSERT_TRUE(outer->PushBack(Tensor::Scalar(Variant(RefPtr<VariantValue>(inner)))).ok());
  const auto zeros = ZerosLikeVariant(Variant(RefPtr<VariantValue>(outer)));
  ASSERT_TRUE(zeros.ok()) << zeros.status();
  const TensorList& list = *ListIn(*(*ListIn(*zeros))[0].data<Variant>());
  EXPECT_FALSE(list[0].IsInitialized());
  EXPECT_EQ(list[1].shape(), Shape::Vector(2));
  EXPECT_EQ(list[1].flat<float>()[0], 0);
  EXPECT_EQ((*inner)[1].flat<float>()[0], 5);
}

}  // namespace
}  // namespace millrace
