// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_join.h"
#include "passes/pass_testutil.h"
#include "passes/placement_state.h"

namespace millrace {
namespace {

class SimulateTest : public PassTest {
 protected:
  SimulateTest() {
    env_.place_by_cost = true;
    env_.placement = std::make_shared<PlacementState>();
  }
  // The values of all nodes that are made from now on.
  Node* Sized(Node* n, int64_t elements) {
    n->set_shape(0, PartialShape::Of({elements}));
    return n;
  }
  Node* Work(const char* name, Node* x, int64_t elements) { return Sized(Add("Work", name, {x->output(0)}), elements); }
  std::string Reasons() {
    std::vector<PlacedNode> placed;
    const Status s = Place(*graph_, env_, &placed);
    EXPECT_TRUE(s.ok()) << s;
    return absl::StrJoin(placed, "\n", [](std::string* out, const PlacedNode& n) { *out += n.ToString(); });
  }
  static constexpr int64_t kMany = 1 << 20;  // 4 MB, about a millisecond
};

TEST_F(SimulateTest, TwoLongBranchesRunOnTwoDevices) {
  Node* x = Sized(Add("Placeholder", "x"), kMany);
  Node* a = Work("a", x, kMany);
  Node* b = Work("b", x, kMany);
  Node* c = Work("c", a, kMany);
  Node* d = Work("d", b, kMany);
  Add("Join", "e", {c->output(0), d->output(0)});
  const std::string reasons = Reasons();
  EXPECT_NE(a->assigned_device(), b->assigned_device()) << reasons;
  EXPECT_EQ(a->assigned_device(), c->assigned_device()) << reasons;
  EXPECT_EQ(b->assigned_device(), d->assigned_device()) << reasons;
  EXPECT_NE(reasons.find("cheapest by simulation, ends after"), reasons.npos) << reasons;
  EXPECT_NE(reasons.find("us on CPU:1 (4194304 bytes moved)"), reasons.npos) << reasons;
}

TEST_F(SimulateTest, ShortOnesStayWhereNothingHasToMove) {
  Node* x = Sized(Add("Placeholder", "x"), 100);
  Node* a = Work("a", x, 100);
  Node* b = Work("b", x, 100);
  Reasons();
  EXPECT_EQ(a->assigned_device(), Device(0));
  EXPECT_EQ(b->assigned_device(), Device(0));
}

TEST_F(SimulateTest, NobodyAsksSoTheFirstDeviceTakesAll) {
  env_.place_by_cost = false;
  Node* x = Sized(Add("Placeholder", "x"), kMany);
  Node* a = Work("a", x, kMany);
  Node* b = Work("b", x, kMany);
  Reasons();
  EXPECT_EQ(a->assigned_device(), Device(0));
  EXPECT_EQ(b->assigned_device(), Device(0));
}

TEST_F(SimulateTest, AGroupMovesTogetherAndConstraintsHold) {
  Node* x = Sized(Add("Placeholder", "x"), kMany);
  Node* a = Work("a", x, kMany);
  Node* b = Work("b", x, kMany);
  b->SetAttr("_class", std::vector<std::string>{"loc:@a"});
  Node* c = On(0, Work("c", x, kMany));
  Node* d = Work("d", x, kMany);
  const std::string reasons = Reasons();
  EXPECT_EQ(a->assigned_device(), b->assigned_device()) << reasons;
  EXPECT_EQ(c->assigned_device(), Device(0));
  EXPECT_NE(reasons.find("b (Work) is on"), reasons.npos);
  EXPECT_NE(reasons.find("colocated with a"), reasons.npos) << reasons;
  EXPECT_NE(reasons.find("asked for, of '/device:CPU:0'"), reasons.npos) << reasons;
  EXPECT_FALSE(d->assigned_device().empty());
}

TEST_F(SimulateTest, ADeviceWithoutRoomIsPassedOver) {
  env_.memory_limits = {5 << 20, 100 << 20};
  Node* v = Sized(Add("Variable", "v"), kMany);
  Node* w = Sized(Add("Variable", "w"), kMany);
  const std::string reasons = Reasons();
  EXPECT_EQ(v->assigned_device(), Device(0)) << reasons;
  EXPECT_EQ(w->assigned_device(), Device(1)) << reasons;
  EXPECT_NE(reasons.find("but no room"), reasons.npos) << reasons;
  // Where nothing fits, most room decides, and it is said.
  env_.memory_limits = {1 << 20, 2 << 20};
  env_.placement = std::make_shared<PlacementState>();
  const std::string full = Reasons();
  EXPECT_EQ(v->assigned_device(), Device(1)) << full;
  EXPECT_NE(full.find("nowhere is room for it"), full.npos) << full;
}

TEST_F(SimulateTest, MeasuredCostsGoBeforeEstimates) {
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:ACC:0"));
  env_.own_memory = {false, false, true};
  Node* x = Sized(Add("Placeholder", "x"), 64 << 20);
  Node* a = Work("a", x, 64 << 20);
  for (const char* type : {"CPU", "ACC"}) env_.placement->AddCost("x", type, {});
  env_.placement->AddCost("a", "CPU", {.nanos = 1e3, .output_bytes = {}});
  env_.placement->AddCost("a", "ACC", {.nanos = 1e6, .output_bytes = {}});
  Reasons();
  EXPECT_EQ(a->assigned_device(), Device(0));
  for (int k = 0; k < 60; ++k) {
    env_.placement->AddCost("a", "CPU", {.nanos = 1e9, .output_bytes = {}});
    env_.placement->AddCost("a", "ACC", {.nanos = 10, .output_bytes = {}});
  }
  Reasons();
  EXPECT_EQ(a->assigned_device(), Device(2));
}

// The next step, with another signature, finds the variable where it is.
TEST_F(SimulateTest, StateStaysWhereItsFirstStepPutIt) {
  env_.placement->Pin("v", Device(1));
  Node* v = Sized(Add("Variable", "v"), 10);
  Node* x = Sized(Add("Placeholder", "x"), 10);
  Node* assign = Add("Assign", "assign", {v->output(0), x->output(0)});
  Node* random = Sized(Add("Random", "random", {x->output(0)}), 10);
  const std::string reasons = Reasons();
  EXPECT_EQ(v->assigned_device(), Device(1));
  EXPECT_EQ(assign->assigned_device(), Device(1));
  EXPECT_NE(reasons.find("the state of v is there"), reasons.npos) << reasons;
  EXPECT_EQ(env_.placement->PinOf("random"), random->assigned_device());
  On(0, assign);
  EXPECT_TRUE(absl::IsInvalidArgument(Place(*graph_, env_)));
}

TEST_F(SimulateTest, ConstantsGoWhereTheyAreRead) {
  AttrMap attrs{{"dtype", DType::kFloat}, {"value", Tensor::Vector<float>({1})}};
  Node* c = Add("Const", "c", {}, {}, attrs);
  Node* a = On(1, Work("a", c, 10));
  const std::string reasons = Reasons();
  EXPECT_EQ(c->assigned_device(), a->assigned_device());
  EXPECT_NE(reasons.find("beside its reader a"), reasons.npos) << reasons;
}

}  // namespace
}  // namespace millrace
