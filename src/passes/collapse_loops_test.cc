// SPDX-License-Identifier: Apache-2.0
// Which loops become one node, and what that node is told to do.
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

class CollapseLoopsTest : public PassTest {
 protected:
  CollapseLoopsTest() {
    const auto any = [](ShapeContext&) { return absl::OkStatus(); };
    registry_
        .Add(
            "Enter(data:T) -> (output:T) | T:type; frame_name:string; is_constant:bool=false; "
            "parallel_iterations:int=10")
        .Shape(any);
    registry_.Add("Exit(data:T) -> (output:T) | T:type").Shape(any);
    registry_.Add("Merge(inputs:N*T) -> (output:T, value_index:i32) | T:type; N:int>=1").Shape(any);
    registry_.Add("NextIteration(data:T) -> (output:T) | T:type").Shape(any);
    registry_.Add("Switch(data:T, pred:bool) -> (output_false:T, output_true:T) | T:type").Shape(any);
    registry_.Add("LoopCond(input:bool) -> (output:bool)").Shape(any);
    registry_.Add("Less(x:f32, y:f32) -> (z:bool)").Shape(any);
    registry_.Add("Wait(x:f32) -> (y:f32) | | S").Traits({OpTrait::kWaits}).Shape(any);
    registry_.Add("_Loop(input:[Tin]) -> (output:[Tout]) | Tin:list(type)>=0; Tout:list(type)>=0 | S").Shape(any);
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
  }
  Node* Enter(const std::string& frame, Output o, bool is_constant = false) {
    return Add("Enter", absl::StrCat(frame, "/enter", serial_++).c_str(), {o}, {},
               {{"T", DType::kFloat}, {"frame_name", frame}, {"is_constant", is_constant}});
  }
  // while (x < limit) x = body(x); its Exit.
  template <typename Body>
  Node* While(const std::string& frame, Output x, Output limit, Body body) {
    const auto name = [&](const char* what) { return absl::StrCat(frame, "/", what); };
    const AttrMap type = {{"T", DType::kFloat}};
    Node* const enter = Enter(frame, x);
    Node* const merge = Add("Merge", name("merge").c_str(), {enter->output(0), enter->output(0)}, {},
                            {{"T", DType::kFloat}, {"N", int64_t{2}}});
    Node* const less = Add("Less", name("less").c_str(), {merge->output(0), Enter(frame, limit, true)->output(0)});
    Node* const cond = Add("LoopCond", name("cond").c_str(), {less->output(0)});
    Node* const branch = Add("Switch", name("switch").c_str(), {merge->output(0), cond->output(0)}, {}, type);
    const Output next = body(branch->output(1));
    Node* const back = Add("NextIteration", name("next").c_str(), {next}, {}, type);
    EXPECT_TRUE(graph_->SetInput(merge, 1, back->output(0)).ok());
    return Add("Exit", name("exit").c_str(), {branch->output(0)}, {}, type);
  }
  Partition Collapse() {
    Partition p;
    for (Node* n : graph_->nodes()) n->set_assigned_device(Device(0));
    p.graph = std::move(graph_);
    const Status s = CollapseLoops(p);
    EXPECT_TRUE(s.ok()) << s;
    return p;
  }

  int serial_ = 0;
};

TEST_F(CollapseLoopsTest, ALoopThatWaitsForNothingBecomesOneNode) {
  Node* const x = Add("Placeholder", "x");
  Node* const limit = Add("Placeholder", "limit");
  Node* const exit =
      While("count", x->output(0), limit->output(0), [&](Output o) { return Add("Work", "work", {o})->output(0); });
  Add("Work", "after", {exit->output(0)});
  const Partition p = Collapse();
  ASSERT_EQ(p.loops.size(), 1u);
  const auto& [node, loop] = *p.loops.begin();
  EXPECT_EQ(loop.name, "count");
  EXPECT_EQ(loop.num_variables, 1u);
  EXPECT_EQ(Count(*loop.predicate, "Less"), 1);
  EXPECT_EQ(Count(*loop.body, "Work"), 1);
  EXPECT_EQ(loop.results, (std::vector<LoopValue>{{LoopValue::Kind::kVariable, 0}}));
  EXPECT_EQ(p.graph->nodes().size(), 4u) << "x, limit, the loop, and who reads it";
  const Node* const collapsed = p.graph->Find(node);
  ASSERT_NE(collapsed, nullptr);
  EXPECT_EQ(collapsed->inputs(), (std::vector<Output>{x->output(0), limit->output(0)}));
  EXPECT_EQ(p.graph->Find("after")->input(0).node, collapsed);
}

TEST_F(CollapseLoopsTest, OneThatMayWaitStaysWhatItIs) {
  Node* const x = Add("Placeholder", "x");
  While("count", x->output(0), x->output(0), [&](Output o) { return Add("Wait", "wait", {o})->output(0); });
  const size_t nodes = graph_->nodes().size();
  const Partition p = Collapse();
  EXPECT_TRUE(p.loops.empty());
  EXPECT_EQ(p.graph->nodes().size(), nodes);
}

TEST_F(CollapseLoopsTest, LoopsInLoopsGoFromTheInside) {
  Node* const x = Add("Placeholder", "x");
  While("outer", x->output(0), x->output(0), [&](Output o) {
    Node* const inner = While("inner", o, Enter("outer", x->output(0), true)->output(0), [&](Output i) {
      return Add("Work", "work", {i})->output(0);
    });
    return inner->output(0);
  });
  const Partition p = Collapse();
  ASSERT_EQ(p.loops.size(), 2u);
  for (const auto& [node, loop] : p.loops) {
    EXPECT_EQ(Count(*loop.body, "_Loop"), loop.name == "outer" ? 1 : 0) << loop.name;
  }
  EXPECT_EQ(p.graph->nodes().size(), 2u);
}

// A branch on what the loop does not change lies outside of the body; who waits for one side of it may be dead.
TEST_F(CollapseLoopsTest, WorkOfTheBodyThatWaitsForABranchOutsideStays) {
  Node* const x = Add("Placeholder", "x");
  While("count", x->output(0), x->output(0), [&](Output o) {
    Node* const same = Enter("count", x->output(0), true);
    Node* const pred = Add("Less", "pred", {same->output(0), same->output(0)});
    Node* const branch = Add("Switch", "branch", {same->output(0), pred->output(0)}, {}, {{"T", DType::kFloat}});
    Node* const pivot = Add("Work", "pivot", {branch->output(1)});
    return Add("Work", "work", {o}, {pivot})->output(0);
  });
  EXPECT_TRUE(Collapse().loops.empty());
}

TEST_F(CollapseLoopsTest, AroundALoopThatStaysOthersStayToo) {
  Node* const x = Add("Placeholder", "x");
  While("outer", x->output(0), x->output(0), [&](Output o) {
    Node* const inner = While("inner", o, Enter("outer", x->output(0), true)->output(0), [&](Output i) {
      return Add("Wait", "wait", {i})->output(0);
    });
    return inner->output(0);
  });
  EXPECT_TRUE(Collapse().loops.empty());
}

}  // namespace
}  // namespace millrace
