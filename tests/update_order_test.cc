// SPDX-License-Identifier: Apache-2.0
#include "runtime/update_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "client/variables.h"
#include "system/system.h"

namespace millrace {
namespace {

class UpdateOrderTest : public ::testing::Test {
 protected:
  size_t Place(const std::vector<Node*>& order, const Node* n) {
    return static_cast<size_t>(std::find(order.begin(), order.end(), n) - order.begin());
  }
  std::vector<Node*> Moved() {
    EXPECT_TRUE(b_.status().ok()) << b_.status();
    std::vector<Node*> order = *TopologicalOrder(graph_);
    const std::vector<Node*> before = order;
    MoveUpdatesUp(order);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), before.begin(), before.end()));
    for (Node* n : order) {
      for (Output in : n->inputs()) EXPECT_LT(Place(order, in.node), Place(order, n)) << n->name();
      for (Node* c : n->control_inputs()) EXPECT_LT(Place(order, c), Place(order, n)) << n->name();
    }
    return order;
  }

  Graph graph_{&System::Default().ops()};
  GraphBuilder b_{&graph_};
};

TEST_F(UpdateOrderTest, AnUpdateMovesBehindItsGradient) {
  const ClientVariable v = *AddVariable(b_, "v", b_.Scalar(1.0f));
  const Output gradient = b_.Neg(b_.Scalar(3.0f));
  const Output unrelated = b_.Op("Exp", {b_.Op("Exp", {b_.Scalar(2.0f)})});
  Node* update = b_.OpNode("ApplyGradientDescent", {v.ref, b_.Scalar(0.1f), gradient});
  const std::vector<Node*> order = Moved();
  EXPECT_GT(Place(order, update), Place(order, gradient.node));
  const Output late = b_.Op("Exp", {unrelated});
  Node* second = b_.OpNode("AssignAdd", {v.ref, gradient});
  const std::vector<Node*> again = Moved();
  EXPECT_LT(Place(again, update), Place(again, second));
  EXPECT_LT(Place(again, second), Place(again, late.node));
}

TEST_F(UpdateOrderTest, ALateReadHoldsUpNoUpdate) {
  const ClientVariable v = *AddVariable(b_, "v", b_.Scalar(1.0f));
  const ClientVariable rate = *AddVariable(b_, "rate", b_.Scalar(0.1f));
  const Output gradient = b_.Neg(b_.Scalar(3.0f));
  const Output unrelated = b_.Op("Exp", {b_.Op("Exp", {b_.Scalar(2.0f)})});
  const Output late_rate = b_.Op("Identity", {rate.ref});
  Node* update = b_.OpNode("ApplyGradientDescent", {v.ref, late_rate, gradient});
  Node* change = b_.OpNode("AssignAdd", {rate.ref, b_.Scalar(1.0f)});
  const std::vector<Node*> order = Moved();
  EXPECT_LT(Place(order, update), Place(order, unrelated.node));
  EXPECT_LT(Place(order, late_rate.node), Place(order, change));
}

TEST_F(UpdateOrderTest, ReadersOfTheOldValueStayBefore) {
  const ClientVariable v = *AddVariable(b_, "v", b_.Scalar(1.0f));
  const Output gradient = b_.Neg(b_.Scalar(3.0f));
  const Output direct = b_.Mul(v.ref, b_.Scalar(2.0f));
  const Output through_read = b_.Mul(v.read, b_.Scalar(4.0f));
  Node* update = b_.OpNode("ApplyGradientDescent", {v.ref, b_.Scalar(0.1f), gradient});
  const Output later = b_.Mul(v.ref, b_.Scalar(5.0f));
  const std::vector<Node*> order = Moved();
  EXPECT_LT(Place(order, direct.node), Place(order, update));
  EXPECT_LT(Place(order, through_read.node), Place(order, update));
  EXPECT_LT(Place(order, update), Place(order, later.node));
}

TEST_F(UpdateOrderTest, ReadersUnderAnotherNameStayBefore) {
  const ClientVariable v = *AddVariable(b_, "v", b_.Scalar(1.0f));
  const Output other = b_.Op(
      "VariableV2", {},
      {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}, {"shared_name", std::string(v.ref.node->name())}});
  const Output gradient = b_.Neg(b_.Scalar(3.0f));
  const Output before = b_.Mul(other, b_.Scalar(2.0f));
  Node* update = b_.OpNode("ApplyGradientDescent", {v.ref, b_.Scalar(0.1f), gradient});
  const std::vector<Node*> order = Moved();
  EXPECT_LT(Place(order, before.node), Place(order, update));
}

TEST_F(UpdateOrderTest, AnArgumentMayBeTheHandleOfAnyVariable) {
  const Output first = b_.Op("_Arg", {}, {{"T", DType::kResource}, {"index", int64_t{0}}});
  const Output second = b_.Op("_Arg", {}, {{"T", DType::kResource}, {"index", int64_t{1}}});
  const Output gradient = b_.Neg(b_.Scalar(3.0f));
  const Output before = b_.Neg(b_.Op("ReadVariableOp", {second}, {{"dtype", DType::kFloat}}));
  Node* update = b_.OpNode("AssignVariableOp", {first, gradient});
  const std::vector<Node*> order = Moved();
  EXPECT_LT(Place(order, before.node), Place(order, update));
}

}  // namespace
}  // namespace millrace
