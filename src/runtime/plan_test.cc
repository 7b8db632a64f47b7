// SPDX-License-Identifier: Apache-2.0
// How plans are laid out, and run: graphs made by hand, of kernels that count.
#include "runtime/plan.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "runtime/device_for_tests.h"
#include "runtime/executor.h"

namespace millrace {
namespace {

// The sum of its inputs, and one. Remembers whether it wrote into the memory of its first input.
class Sum : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ++runs;
    if (fails) return ResourceExhausted("no more");
    float sum = 1;
    const void* const first = ctx.num_inputs() > 0 ? ctx.input(0).raw() : nullptr;
    for (int i = 0; i < ctx.num_inputs(); ++i) sum += *ctx.input(i).data<float>();
    Tensor* out = nullptr;
    if (ctx.num_inputs() > 0) {
      MR_ASSIGN_OR_RETURN(out, ctx.ForwardOrAllocate({0}, 0, Shape::Vector(1)));
    } else {
      MR_ASSIGN_OR_RETURN(out, ctx.AllocateOutput(0, Shape::Vector(1)));
    }
    in_place = out->raw() == first;
    *out->mutable_data<float>() = sum;
    return absl::OkStatus();
  }
  int runs = 0;
  bool in_place = false, fails = false;
};

// Its input goes to the output that its second input names.
class Branch : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    ctx.set_output(*ctx.input(1).data<float>() > 0 ? 1 : 0, ctx.input(0));
    return absl::OkStatus();
  }
};
class Join : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (!ctx.is_dead(i)) ctx.set_output(0, ctx.input(i));
    }
    return absl::OkStatus();
  }
};

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() { graph_->frames.resize(1); }

  int Add(PlannedNode::Kind kind, std::vector<int> inputs) {
    PlannedNode n;
    n.kind = kind;
    n.info.name = absl::StrCat("n", graph_->nodes.size());
    n.info.op = &op_;
    n.info.device = &device_;
    n.info.signature.input_types.assign(inputs.size(), DType::kFloat);
    n.info.signature.output_types = {DType::kFloat};
    for (const int i : inputs) n.inputs.push_back({i, 0, false});
    if (kind != PlannedNode::Kind::kArgument) {
      kernels_.push_back(std::make_shared<Sum>());
      n.kernel = kernels_.back();
    } else {
      kernels_.push_back(nullptr);
      graph_->arguments.push_back({static_cast<int>(graph_->nodes.size()), DType::kFloat});
    }
    graph_->nodes.push_back(std::move(n));
    return static_cast<int>(graph_->nodes.size()) - 1;
  }
  int Argument() { return Add(PlannedNode::Kind::kArgument, {}); }
  int Step(std::vector<int> inputs) { return Add(PlannedNode::Kind::kStep, std::move(inputs)); }
  int Once() { return Add(PlannedNode::Kind::kOnce, {}); }
  void Return(int node) { graph_->results.push_back({node, 0, absl::StrCat("n", node, ":0")}); }
  Sum& Kernel(int node) { return *kernels_[static_cast<size_t>(node)]; }

  std::unique_ptr<Plan> LayOut(bool by_nodes = false, const std::vector<int>& lasting = {}) {
    return Plan::LayOut(graph_, by_nodes ? CutIntoNodes(*graph_) : CutByWaits(*graph_), lasting);
  }
  static Tensor Value(float v) {
    Tensor t = *Tensor::Zeros(DType::kFloat, Shape::Vector(1));
    *t.mutable_data<float>() = v;
    return t;
  }
  // The results of one step, or its error.
  StatusOr<std::vector<float>> Run(const Plan& plan, const std::vector<float>& arguments) {
    MR_ASSIGN_OR_RETURN(const HeldFrame frame, plan.AcquireFrame());
    for (size_t i = 0; i < arguments.size(); ++i) {
      frame->slots[static_cast<size_t>(plan.arg_slot(static_cast<int>(i)))].tensor = Value(arguments[i]);
    }
    StepContext step;
    CancellationManager cancellation;
    step.cancellation = &cancellation;
    if (plan.is_one_line()) {
      MR_RETURN_IF_ERROR(RunInOrder(plan, *frame, step, {}));
    } else {
      MR_RETURN_IF_ERROR(RunByReadinessHere(plan, *frame, step, {}, false));
    }
    std::vector<float> results;
    for (int i = 0; i < plan.num_retvals(); ++i) {
      MR_ASSIGN_OR_RETURN(const Tensor t, RetvalOf(plan, *frame, i));
      results.push_back(*t.data<float>());
    }
    return results;
  }

  OpDef op_;
  TestDevice device_;
  std::shared_ptr<PlanGraph> graph_ = std::make_shared<PlanGraph>();
  std::vector<std::shared_ptr<Sum>> kernels_;
};
using Floats = std::vector<float>;

TEST_F(PlanTest, ALineUsesItsSlotsAgain) {
  const int a = Argument();
  int last = a;
  for (int i = 0; i < 100; ++i) last = Step({last});
  Return(last);
  const auto plan = LayOut();
  EXPECT_TRUE(plan->is_one_line());
  EXPECT_EQ(plan->nodes().size(), 100u);
  EXPECT_LE(plan->frames()[0].num_slots, 4);
  EXPECT_EQ(*Run(*plan, {5}), Floats{105});
  EXPECT_EQ(*Run(*plan, {6}), Floats{106});
  EXPECT_EQ(Kernel(last).runs, 2);
}

TEST_F(PlanTest, TheLastReaderMayTakeTheMemoryAndNoOther) {
  const int a = Argument();
  const int x = Step({a}), early = Step({x}), late = Step({x, early});
  Return(late);
  const auto plan = LayOut();
  EXPECT_EQ(*Run(*plan, {0}), Floats{4});
  EXPECT_FALSE(Kernel(early).in_place);  // `late` still reads x
  EXPECT_TRUE(Kernel(late).in_place);
}

TEST_F(PlanTest, WhatIsReturnedIsNotTaken) {
  const int a = Argument();
  const int x = Step({a}), y = Step({x});
  Return(x);
  Return(y);
  Return(x);
  const auto plan = LayOut();
  EXPECT_EQ(*Run(*plan, {1}), (Floats{2, 3, 2}));
  EXPECT_FALSE(Kernel(y).in_place);
}

TEST_F(PlanTest, WhatNeverChangesRunsOnceAFrame) {
  const int once = Once(), a = Argument();
  Return(Step({a, once}));
  const auto plan = LayOut();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(*Run(*plan, {1}), Floats{3});
  EXPECT_EQ(Kernel(once).runs, 1);
  EXPECT_TRUE(plan->Lasts(0));
}

TEST_F(PlanTest, FramesAreUsedAgainAndClean) {
  const int a = Argument();
  Return(Step({a}));
  const auto plan = LayOut();
  Frame* first = nullptr;
  {
    const auto frame = plan->AcquireFrame();
    const auto other = plan->AcquireFrame();  // two steps at once
    ASSERT_TRUE(frame.ok() && other.ok());
    first = frame->get();
    EXPECT_NE(first, other->get());
    first->slots[static_cast<size_t>(plan->arg_slot(0))].tensor = Value(1);
  }
  bool seen = false;
  std::vector<HeldFrame> held;
  for (int i = 0; i < 2; ++i) {
    held.push_back(*plan->AcquireFrame());
    seen |= held.back().get() == first;
    EXPECT_FALSE(held.back()->slots[static_cast<size_t>(plan->arg_slot(0))].tensor.IsInitialized());
  }
  EXPECT_TRUE(seen);
}

TEST_F(PlanTest, EveryCutGivesTheSame) {
  const int a = Argument(), b = Argument();
  std::vector<int> nodes{a, b};
  for (size_t i = 0; i < 40; ++i) nodes.push_back(Step({nodes[i], nodes[i / 2 + 1]}));
  for (size_t i = 20; i < nodes.size(); i += 3) Return(nodes[i]);
  const auto in_order = LayOut(), by_nodes = LayOut(true);
  EXPECT_TRUE(in_order->is_one_line());
  EXPECT_FALSE(by_nodes->is_one_line());
  EXPECT_EQ(*Run(*in_order, {0.25f, 2}), *Run(*by_nodes, {0.25f, 2}));
}

TEST_F(PlanTest, AnErrorNamesTheNodeAndTheNextStepIsAsBefore) {
  const int a = Argument();
  const int x = Step({a}), y = Step({x});
  Return(y);
  for (const bool by_nodes : {false, true}) {
    const auto plan = LayOut(by_nodes);
    Kernel(x).fails = true;
    const Status failed = Run(*plan, {1}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(failed)) << failed;
    EXPECT_NE(failed.message().find("n1"), absl::string_view::npos) << failed;
    Kernel(x).fails = false;
    EXPECT_EQ(*Run(*plan, {1}), Floats{3});
  }
}

// Whether it was not taken is looked at once for all that stand on a branch, and again where another branch comes in.
TEST_F(PlanTest, WhatDiesTogetherIsLookedAtOnce) {
  const int a = Argument(), which = Argument();
  const int branch = Step({a, which});
  PlannedNode& b = graph_->nodes[static_cast<size_t>(branch)];
  b.kernel = std::make_shared<Branch>();
  b.control = ControlOp::kSwitch;
  b.info.signature.output_types = {DType::kFloat, DType::kFloat};
  const auto on = [&](int output, int node) {
    graph_->nodes[static_cast<size_t>(node)].inputs[0].output = output;
    return node;
  };
  const int x = on(0, Step({branch})), x2 = Step({x}), x3 = Step({x2, x, a});
  const int y = on(1, Step({branch})), y2 = Step({y, a});
  const int z = Step({x3, y2});  // never: one of them is dead
  const int z2 = Step({z, z});
  const int join = Step({x3, y2, z2});
  graph_->nodes[static_cast<size_t>(join)].kernel = std::make_shared<Join>();
  graph_->nodes[static_cast<size_t>(join)].control = ControlOp::kMerge;
  const int end = Step({join}), end2 = Step({end});
  Return(end2);
  const auto plan = LayOut();
  ASSERT_TRUE(plan->is_one_line());
  std::vector<bool> with_last;
  for (const PlanNode& n : plan->nodes()) {
    with_last.push_back(n.Has(PlanNode::kMayBeDead) && !n.Has(PlanNode::kDiesByItself));
  }
  //                                      branch, x, x2, x3, y, y2, z, z2, join, end, end2
  EXPECT_EQ(with_last, (std::vector<bool>{false, false, true, true, false, true, false, true, false, true, true}));
  const auto by_nodes = LayOut(/*by_nodes=*/true);
  for (const auto& [taken, want] : {std::pair(0.0f, 9.0f), std::pair(1.0f, 6.0f)}) {
    SCOPED_TRACE(taken);
    const auto got = Run(*plan, {1, taken}), other = Run(*by_nodes, {1, taken});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(*got, *other);
    EXPECT_EQ(*got, Floats{want});
  }
  EXPECT_EQ(Kernel(z).runs + Kernel(z2).runs, 0);
  EXPECT_EQ(Kernel(x3).runs, 2);
  EXPECT_EQ(Kernel(y2).runs, 2);
}

TEST_F(PlanTest, ArgumentsThatLastStayInTheirFrame) {
  const int a = Argument(), b = Argument();
  Return(Step({a, b}));
  const auto plan = LayOut(false, {1});
  const auto frame = plan->AcquireFrame();
  ASSERT_TRUE(frame.ok());
  StepContext step;
  (*frame)->slots[static_cast<size_t>(plan->arg_slot(1))].tensor = Value(10);
  for (const float v : {1.0f, 2.0f, 3.0f}) {
    (*frame)->slots[static_cast<size_t>(plan->arg_slot(0))].tensor = Value(v);
    ASSERT_TRUE(RunInOrder(*plan, **frame, step, {}).ok());
    EXPECT_EQ(*RetvalOf(*plan, **frame, 0)->data<float>(), v + 11);
  }
  EXPECT_TRUE(plan->Lasts(plan->arg_slot(1)));
  EXPECT_FALSE(plan->Lasts(plan->arg_slot(0)));
}

}  // namespace
}  // namespace millrace
