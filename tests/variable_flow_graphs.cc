// SPDX-License-Identifier: Apache-2.0
#include "client/variables.h"
#include "control_flow_graphs.h"
#include "graph/control_flow.h"

namespace millrace {
namespace {

using List = std::vector<Output>;

// A variable that each step begins by setting; what `after` builds comes after that.
struct SetVariable : ClientVariable {
  GraphBuilder after;
};
StatusOr<SetVariable> Variable(const GraphBuilder& b, FlowStep* step, float value, bool is_resource = false) {
  MR_ASSIGN_OR_RETURN(
      const ClientVariable v,
      is_resource ? AddResourceVariable(b, "v", b.Scalar(value)) : AddVariable(b, "v", b.Scalar(value)));
  step->init.push_back(v.assign);
  Node* set = b.OpNode(is_resource ? "AssignVariableOp" : "Assign", {v.ref, b.Scalar(value)});
  return SetVariable{v, b.WithControl({set})};
}

// A loop of four iterations at most, while `go_on` holds. `body` makes what an iteration waits for, and what it adds.
struct Work {
  Node* done;
  Output value;
};
StatusOr<Output> Sum(const GraphBuilder& b, const std::function<Output(const GraphBuilder&)>& go_on,
                     const std::function<StatusOr<Work>(const GraphBuilder&)>& body) {
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(
          b, {b.Scalar<int32_t>(0), b.Scalar(0.0f)},
          [&](const GraphBuilder& s, const List& v) -> StatusOr<List> {
            const Output more = s.Op("Less", {v[0], s.Scalar<int32_t>(4)});
            return List{go_on ? s.Op("LogicalAnd", {more, go_on(s.WithControl({v[0].node}))}) : more};
          },
          [&](const GraphBuilder& s, const List& v) -> StatusOr<List> {
            MR_ASSIGN_OR_RETURN(const Work work, body(s.WithControl({v[1].node})));
            const GraphBuilder after = s.WithControl({work.done});
            return List{after.Add(v[0], s.Scalar<int32_t>(1)), after.Add(v[1], work.value)};
          }));
  return r[1];
}

// 2 + 4 + 8 + 16: both what is assigned and what is added read the variable anew in each iteration.
Status ReadsWhatItUpdates(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1));
  MR_ASSIGN_OR_RETURN(const Output sum, Sum(v.after, nullptr, [=](const GraphBuilder& s) -> StatusOr<Work> {
                        const Output set = s.Op("Assign", {v.ref, s.Mul(v.read, s.Scalar(2.0f))});
                        const Output value = s.WithControl({set.node}).Sub(v.read, s.Scalar(0.0f));
                        return Work{value.node, value};
                      }));
  step->Expect(sum, Tensor::Scalar(30.0f));
  return b.status();
}

Status ReadsResourceThatItUpdates(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1, true));
  MR_ASSIGN_OR_RETURN(
      const Output sum, Sum(v.after, nullptr, [=](const GraphBuilder& s) -> StatusOr<Work> {
        const Output old = s.Op("ReadVariableOp", {v.ref}, {{"dtype", DType::kFloat}});
        Node* set = s.OpNode("AssignVariableOp", {v.ref, s.Mul(old, s.Scalar(2.0f))});
        const Output value = s.WithControl({set}).Op("ReadVariableOp", {v.ref}, {{"dtype", DType::kFloat}});
        return Work{value.node, value};
      }));
  step->Expect(sum, Tensor::Scalar(30.0f));
  return b.status();
}

// Ends when the variable has come to 3.
Status ConditionReads(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1));
  MR_ASSIGN_OR_RETURN(
      const Output sum,
      Sum(
          v.after, [=](const GraphBuilder& s) { return s.Op("Less", {v.read, s.Scalar(3.0f)}); },
          [=](const GraphBuilder& s) -> StatusOr<Work> {
            const Output added = s.Op("AssignAdd", {v.ref, s.Scalar(1.0f)});
            return Work{added.node, s.WithControl({added.node}).Mul(v.read, s.Scalar(10.0f))};
          }));
  step->Expect(sum, Tensor::Scalar(50.0f));
  return b.status();
}

// The update is in a loop inside, and in a branch of it.
Status ReadsWhatAnInnerLoopUpdates(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1));
  MR_ASSIGN_OR_RETURN(
      const Output sum, Sum(v.after, nullptr, [=](const GraphBuilder& s) -> StatusOr<Work> {
        MR_ASSIGN_OR_RETURN(
            const Output inner, Sum(s, nullptr, [=](const GraphBuilder& t) -> StatusOr<Work> {
              const Output small = t.Op("Less", {v.read, t.Scalar(7.0f)});
              MR_ASSIGN_OR_RETURN(
                  const List r,
                  Cond(
                      t.WithControl({small.node}), small,
                      [=](const GraphBuilder& u, const List&) -> StatusOr<List> {
                        const Output added = u.Op("AssignAdd", {v.ref, u.Scalar(1.0f)});
                        return List{u.WithControl({added.node}).Add(v.read, u.Scalar(0.0f))};
                      },
                      [=](const GraphBuilder& u, const List&) -> StatusOr<List> { return List{u.Scalar(0.0f)}; }));
              return Work{r[0].node, r[0]};
            }));
        const Output value = s.WithControl({inner.node}).Add(v.read, inner);
        return Work{value.node, value};
      }));
  // The inner sums: 2+3+4+5, 6+7, 0, 0; behind them v is 5, 7, 7, 7.
  step->Expect(sum, Tensor::Scalar(14.0f + 5 + 13 + 7 + 7 + 7));
  return b.status();
}

Status BranchReadsWhatItUpdates(const GraphBuilder& b, FlowStep* step, bool truth) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1));
  const Output p = b.Op("Placeholder", {}, {{"dtype", DType::kBool}, {"shape", PartialShape::Scalar()}});
  step->Feed(p, Tensor::Scalar(truth));
  MR_ASSIGN_OR_RETURN(
      const List r,
      Cond(
          b, v.after.Identity(p),
          [=](const GraphBuilder& s, const List&) -> StatusOr<List> {
            const Output set = s.Op("Assign", {v.ref, s.Add(v.read, s.Scalar(10.0f))});
            return List{s.WithControl({set.node}).Identity(v.read)};
          },
          [=](const GraphBuilder& s, const List&) -> StatusOr<List> { return List{s.Identity(v.read)}; }));
  step->Expect(r[0], Tensor::Scalar(truth ? 11.0f : 1.0f));
  step->Expect(b.WithControl({r[0].node}).Neg(v.read), Tensor::Scalar(truth ? -11.0f : -1.0f));
  return b.status();
}

// Two nodes of one shared name are one variable.
Status UpdatesUnderAnotherName(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const SetVariable v, Variable(b, step, 1));
  const Output same =
      b.WithName("other")
          .ColocateWith(v.ref.node)
          .Op("VariableV2", {},
              {{"dtype", DType::kFloat},
               {"shape", PartialShape::Scalar()},
               {"shared_name", std::string(v.ref.node->name())}});
  const Output added = b.Op("AssignAdd", {v.after.Op("RefIdentity", {same}), b.Scalar(5.0f)});
  step->Expect(b.WithControl({added.node}).Neg(v.read), Tensor::Scalar(-6.0f));
  return b.status();
}

// What is computed from a variable before an update stays, also where the computation changes nothing. The step ends by
// setting the variable back.
Status KeepsWhatWasComputedBefore(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, "v", b.Scalar(3.0f)));
  step->init.push_back(v.assign);
  const Output before = b.Mul(v.read, b.Scalar(1.0f));
  const Output set = b.WithControl({before.node}).Op("Assign", {v.ref, b.Scalar(10.0f)});
  const GraphBuilder after = b.WithControl({set.node});
  const Output kept = after.Add(before, b.Scalar(1.0f)), changed = after.Add(v.read, b.Scalar(1.0f));
  const Output back = b.WithControl({kept.node, changed.node}).Op("Assign", {v.ref, b.Scalar(3.0f)});
  step->Expect(b.WithControl({back.node}).Identity(kept), Tensor::Scalar(4.0f));
  step->Expect(changed, Tensor::Scalar(11.0f));
  return b.status();
}

}  // namespace

const std::vector<FlowGraph>& VariableFlowGraphs() {
  using B = const GraphBuilder&;
  static const auto* graphs = new std::vector<FlowGraph>{
      {"ReadsWhatItUpdates", ReadsWhatItUpdates},
      {"ReadsResourceThatItUpdates", ReadsResourceThatItUpdates},
      {"ConditionReads", ConditionReads},
      {"ReadsWhatAnInnerLoopUpdates", ReadsWhatAnInnerLoopUpdates},
      {"BranchReadsWhatItUpdates", [](B b, FlowStep* s) { return BranchReadsWhatItUpdates(b, s, true); }},
      {"BranchReadsWhatIsNotUpdated", [](B b, FlowStep* s) { return BranchReadsWhatItUpdates(b, s, false); }},
      {"UpdatesUnderAnotherName", UpdatesUnderAnotherName},
      {"KeepsWhatWasComputedBefore", KeepsWhatWasComputedBefore},
  };
  return *graphs;
}

}  // namespace millrace
