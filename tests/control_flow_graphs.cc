// SPDX-License-Identifier: Apache-2.0
#include "control_flow_graphs.h"

#include <cmath>
#include <numeric>

#include "autodiff/gradients.h"
#include "client/variables.h"
#include "graph/functional.h"

namespace millrace {

namespace {

using List = std::vector<Output>;

Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& v) {
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make(dims));
  std::copy(v.begin(), v.end(), t.mutable_data<float>());
  return t;
}
Tensor Int(int32_t v) { return Tensor::Scalar(v); }

Output Placeholder(const GraphBuilder& b, DType type, const PartialShape& shape = PartialShape::Scalar()) {
  return b.Op("Placeholder", {}, {{"dtype", type}, {"shape", shape}});
}
Output Fed(const GraphBuilder& b, FlowStep* step, Tensor value) {
  const Output o = Placeholder(b, value.dtype(), value.shape());
  step->Feed(o, std::move(value));
  return o;
}
Output Less(const GraphBuilder& b, Output x, Output y) { return b.Op("Less", {x, y}); }
Output AddOne(const GraphBuilder& b, Output i) { return b.Add(i, b.Scalar<int32_t>(1)); }

// A BuildFn without results of its own to check.
template <typename Fn>
BuildFn Part(Fn fn) {
  return [fn](const GraphBuilder& b, const List& in) -> StatusOr<List> {
    List out = fn(b, in);
    MR_RETURN_IF_ERROR(b.status());
    return out;
  };
}
// The condition "variable 0 < limit".
BuildFn CountsTo(Output limit) {
  return Part([limit](const GraphBuilder& b, const List& v) { return List{Less(b, v[0], limit)}; });
}
BuildFn CountsTo(int32_t limit) {
  return Part([limit](const GraphBuilder& b, const List& v) { return List{Less(b, v[0], b.Scalar(limit))}; });
}

Status CondTakesOneBranch(const GraphBuilder& b, FlowStep* step, bool truth) {
  const Output p = Fed(b, step, Tensor::Scalar(truth)), x = Fed(b, step, Tensor::Scalar(5.0f));
  MR_ASSIGN_OR_RETURN(
      const List r, Cond(b, p, Part([=](const GraphBuilder& s, const List&) {
                           return List{s.Add(x, s.Scalar(2.0f)), s.Scalar<int32_t>(1)};
                         }),
                         Part([=](const GraphBuilder& s, const List&) { return List{x, s.Scalar<int32_t>(0)}; })));
  step->Expect(r[0], Tensor::Scalar(truth ? 7.0f : 5.0f));
  step->Expect(r[1], Int(truth ? 1 : 0));
  return b.status();
}

Status NestedConds(const GraphBuilder& b, FlowStep* step) {
  const Output p = Fed(b, step, Tensor::Scalar(true)), q = Fed(b, step, Tensor::Scalar(false));
  const Output x = Fed(b, step, Tensor::Scalar(3.0f));
  const auto inner = [=](float one, float other) {
    return [=](const GraphBuilder& s, const List&) {
      return Cond(s, q, Part([=](const GraphBuilder& t, const List&) { return List{t.Mul(x, t.Scalar(one))}; }),
                  Part([=](const GraphBuilder& t, const List&) { return List{t.Mul(t.Mul(x, x), t.Scalar(other))}; }));
    };
  };
  MR_ASSIGN_OR_RETURN(const List r, Cond(b, p, inner(1, 10), inner(100, 1000)));
  step->Expect(r[0], Tensor::Scalar(90.0f));
  return b.status();
}

Status CaseOfFour(const GraphBuilder& b, FlowStep* step, int32_t which) {
  const Output x = Fed(b, step, Int(which));
  std::vector<CaseBranch> branches;
  for (int32_t i = 0; i < 3; ++i) {
    branches.push_back({b.Op("Equal", {x, b.Scalar(i)}),
                        Part([=](const GraphBuilder& s, const List&) { return List{s.Add(x, s.Scalar(10 * i))}; })});
  }
  MR_ASSIGN_OR_RETURN(
      const List r,
      Case(b, branches, Part([=](const GraphBuilder& s, const List&) { return List{s.Scalar<int32_t>(-1)}; }),
           /*exclusive=*/true));
  step->Expect(r[0], Int(which < 3 ? which * 11 : -1));
  return b.status();
}

Status SumsToLimit(const GraphBuilder& b, FlowStep* step, int32_t limit, int parallel) {
  const Output n = Fed(b, step, Int(limit));
  LoopOptions options;
  options.parallel_iterations = parallel;
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar<int32_t>(0), b.Scalar<int32_t>(0)}, CountsTo(n),
                Part([](const GraphBuilder& s, const List& v) { return List{AddOne(s, v[0]), s.Add(v[1], v[0])}; }),
                options));
  step->Expect(r[0], Int(limit));
  step->Expect(r[1], Int(limit * (limit - 1) / 2));
  return b.status();
}

Status Fibonacci(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(
          b, {b.Scalar<int32_t>(0), b.Scalar<int32_t>(0), b.Scalar<int32_t>(1)}, CountsTo(20),
          Part([](const GraphBuilder& s, const List& v) { return List{AddOne(s, v[0]), v[2], s.Add(v[1], v[2])}; })));
  step->Expect(r[1], Int(6765));
  return b.status();
}

Status MatrixPower(const GraphBuilder& b, FlowStep* step) {
  const Output w = Fed(b, step, Floats({2, 2}, {1, 1, 1, 0})), x = Fed(b, step, Floats({1, 2}, {1, 0}));
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(10),
                Part([=](const GraphBuilder& s, const List& v) { return List{AddOne(s, v[0]), s.MatMul(v[1], w)}; })));
  step->Expect(r[1], Floats({1, 2}, {89, 55}));
  return b.status();
}

// The limit of the options ends a loop whose condition is always true, and one variable is not changed at all.
Status EndsAtMaximum(const GraphBuilder& b, FlowStep* step) {
  LoopOptions options;
  options.maximum_iterations = Fed(b, step, Int(7));
  const Output x = Fed(b, step, Tensor::Scalar(2.0f));
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar(0.0f), x, b.Scalar(1.5f)},
                Part([](const GraphBuilder& s, const List&) { return List{s.Const(Tensor::Scalar(true))}; }),
                Part([=](const GraphBuilder& s, const List& v) {
                  return List{s.Add(v[0], v[1]), v[1], x};  // the third becomes a value from outside
                }),
                options));
  step->Expect(r[0], Tensor::Scalar(14.0f));
  step->Expect(r[1], Tensor::Scalar(2.0f));
  step->Expect(r[2], Tensor::Scalar(2.0f));
  return b.status();
}

Status GrowingShape(const GraphBuilder& b, FlowStep* step) {
  LoopOptions options;
  options.shape_invariants = {std::nullopt, PartialShape::Of({-1, 2})};
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar<int32_t>(0), b.Const(Floats({1, 2}, {1, 2}))}, CountsTo(2),
                Part([](const GraphBuilder& s, const List& v) {
                  const Output twice = s.Op("ConcatV2", {List{v[1], v[1]}, s.Scalar<int32_t>(0)});
                  return List{AddOne(s, v[0]), twice};
                }),
                options));
  step->Expect(r[1], Floats({4, 2}, {1, 2, 1, 2, 1, 2, 1, 2}));
  return b.status();
}

Status NestedLoops(const GraphBuilder& b, FlowStep* step) {
  const Output n = Fed(b, step, Int(6));
  const auto rows = [=](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    const Output i = v[0];
    MR_ASSIGN_OR_RETURN(
        const List inner,
        WhileLoop(s, {s.Scalar<int32_t>(0), v[1]}, CountsTo(n), Part([=](const GraphBuilder& t, const List& w) {
                    return List{AddOne(t, w[0]), t.Add(w[1], t.Mul(i, w[0]))};
                  })));
    return List{AddOne(s, i), inner[1]};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), b.Scalar<int32_t>(0)}, CountsTo(n), rows));
  step->Expect(r[1], Int(15 * 15));
  return b.status();
}

Status ThreeDeep(const GraphBuilder& b, FlowStep* step) {
  const Output weight = Fed(b, step, Int(3));
  std::function<StatusOr<Output>(const GraphBuilder&, int, Output)> count =
      [&](const GraphBuilder& s, int depth, Output sum) -> StatusOr<Output> {
    if (depth == 0) return s.Add(sum, weight);
    const auto body = [&, depth](const GraphBuilder& t, const List& v) -> StatusOr<List> {
      MR_ASSIGN_OR_RETURN(const Output next, count(t, depth - 1, v[1]));
      return List{AddOne(t, v[0]), next};
    };
    MR_ASSIGN_OR_RETURN(const List r, WhileLoop(s, {s.Scalar<int32_t>(0), sum}, CountsTo(depth + 1), body));
    return r[1];
  };
  MR_ASSIGN_OR_RETURN(const Output total, count(b, 3, b.Scalar<int32_t>(0)));
  step->Expect(total, Int(3 * 4 * 3 * 2));
  return b.status();
}

// How many steps the Collatz sequence of 27 takes: 111.
Status Collatz(const GraphBuilder& b, FlowStep* step) {
  const Output start = Fed(b, step, Int(27));
  const auto next = [](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    const Output n = v[0];
    const Output even = s.Op("Equal", {s.Op("FloorMod", {n, s.Scalar<int32_t>(2)}), s.Scalar<int32_t>(0)});
    MR_ASSIGN_OR_RETURN(
        const List r,
        Cond(
            s, even,
            Part([=](const GraphBuilder& t, const List&) { return List{t.Op("FloorDiv", {n, t.Scalar<int32_t>(2)})}; }),
            Part([=](const GraphBuilder& t, const List&) { return List{AddOne(t, t.Mul(n, t.Scalar<int32_t>(3)))}; })));
    return List{r[0], AddOne(s, v[1])};
  };
  MR_ASSIGN_OR_RETURN(
      const List r, WhileLoop(b, {start, b.Scalar<int32_t>(0)}, Part([](const GraphBuilder& s, const List& v) {
                                return List{s.Op("Greater", {v[0], s.Scalar<int32_t>(1)})};
                              }),
                              next));
  step->Expect(r[0], Int(1));
  step->Expect(r[1], Int(111));
  return b.status();
}

Status LoopInBranch(const GraphBuilder& b, FlowStep* step, bool truth) {
  const Output p = Fed(b, step, Tensor::Scalar(truth)), x = Fed(b, step, Tensor::Scalar(1.5f));
  const auto power = [=](const GraphBuilder& s, const List&) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List r,
        WhileLoop(s, {s.Scalar<int32_t>(0), s.Scalar(1.0f)}, CountsTo(4),
                  Part([=](const GraphBuilder& t, const List& v) { return List{AddOne(t, v[0]), t.Mul(v[1], x)}; })));
    return List{r[1]};
  };
  MR_ASSIGN_OR_RETURN(
      const List r, Cond(b, p, power, Part([=](const GraphBuilder& s, const List&) { return List{s.Neg(x)}; })));
  step->Expect(r[0], Tensor::Scalar(truth ? 5.0625f : -1.5f));
  return b.status();
}

// for i in 0..5: if i is odd: for j in 0..i: s += j; else s -= 1
Status LoopInBranchInLoop(const GraphBuilder& b, FlowStep* step) {
  const auto body = [](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    const Output i = v[0], sum = v[1];
    const Output odd = s.Op("Equal", {s.Op("FloorMod", {i, s.Scalar<int32_t>(2)}), s.Scalar<int32_t>(1)});
    const auto inner = [=](const GraphBuilder& t, const List&) -> StatusOr<List> {
      MR_ASSIGN_OR_RETURN(
          const List r,
          WhileLoop(t, {t.Scalar<int32_t>(0), sum}, CountsTo(i), Part([](const GraphBuilder& u, const List& w) {
                      return List{AddOne(u, w[0]), u.Add(w[1], w[0])};
                    })));
      return List{r[1]};
    };
    MR_ASSIGN_OR_RETURN(const List r, Cond(s, odd, inner, Part([=](const GraphBuilder& t, const List&) {
                                             return List{t.Sub(sum, t.Scalar<int32_t>(1))};
                                           })));
    return List{AddOne(s, i), r[0]};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), b.Scalar<int32_t>(100)}, CountsTo(6), body));
  step->Expect(r[1], Int(100 - 3 + 0 + 3 + 10));
  return b.status();
}

// The predicate does not depend on the loop, and one branch is never taken.
Status SteadyBranchInLoop(const GraphBuilder& b, FlowStep* step) {
  const Output p = Fed(b, step, Tensor::Scalar(false));
  const auto body = [=](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List r,
        Cond(s, p, Part([=](const GraphBuilder& t, const List&) { return List{t.Mul(v[1], t.Scalar(7.0f))}; }),
             Part([=](const GraphBuilder& t, const List&) { return List{t.Add(v[1], t.Scalar(0.5f))}; })));
    return List{AddOne(s, v[0]), r[0]};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), b.Scalar(0.0f)}, CountsTo(5), body));
  step->Expect(r[1], Tensor::Scalar(2.5f));
  return b.status();
}

// x += 1 on a variable, once an iteration, between reads of its value.
Status VariableInLoop(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, "v", b.Scalar(10.0f)));
  MR_ASSIGN_OR_RETURN(Node * init, AddInitializer(b, "init"));
  step->init.push_back(init);
  const Output reset = b.Op("Assign", {v.ref, b.Scalar(10.0f)});
  LoopOptions options;
  options.parallel_iterations = 1;
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b.WithControl({reset.node}), {b.Scalar<int32_t>(0), b.Scalar(0.0f)}, CountsTo(4),
                Part([=](const GraphBuilder& s, const List& w) {
                  const Output added = s.WithControl({w[1].node}).Op("AssignAdd", {v.ref, s.Scalar(1.0f)});
                  return List{AddOne(s, w[0]), s.Add(w[1], s.WithControl({added.node}).Identity(added))};
                }),
                options));
  step->Expect(r[1], Tensor::Scalar(11.0f + 12 + 13 + 14));
  return b.status();
}

// Nodes inside wait for nodes outside, which have no value to carry in.
Status ControlFromOutside(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, "v", b.Scalar(1.0f)));
  MR_ASSIGN_OR_RETURN(Node * init, AddInitializer(b, "init"));
  step->init.push_back(init);
  const Output set = b.Op("Assign", {v.ref, b.Scalar(3.0f)});
  Node* done = Group(b, {set.node});
  const auto body = [=](const GraphBuilder& s, const List& w) -> StatusOr<List> {
    const Output read = s.WithControl({done}).Identity(v.ref);
    const Output go_on = s.Op("GreaterEqual", {w[0], s.Scalar<int32_t>(0)});
    MR_ASSIGN_OR_RETURN(
        const List r,
        Cond(s, go_on,
             Part([=](const GraphBuilder& t, const List&) { return List{t.WithControl({done}).Scalar(1.0f)}; }),
             Part([=](const GraphBuilder& t, const List&) { return List{t.Scalar(0.0f)}; })));
    return List{AddOne(s, w[0]), s.Add(w[1], s.Add(read, r[0]))};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), b.Scalar(0.0f)}, CountsTo(3), body));
  step->Expect(r[1], Tensor::Scalar(12.0f));
  return b.status();
}

Status OperationsInBranches(const GraphBuilder& b, FlowStep* step) {
  MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(b, "v", b.Scalar(1.0f)));
  MR_ASSIGN_OR_RETURN(Node * init, AddInitializer(b, "init"));
  step->init.push_back(init);
  const Output p = Fed(b, step, Tensor::Scalar(true));
  const auto set = [=](float value) {
    return Part([=](const GraphBuilder& s, const List&) {
      const Output assigned = s.Op("Assign", {v.ref, s.Scalar(value)});
      return List{Output{Group(s, {assigned.node}), kOperation}};
    });
  };
  MR_ASSIGN_OR_RETURN(const List r, Cond(b, p, set(5), set(6)));
  const Output after = b.WithControl({r[0].node}).Identity(v.ref);
  MR_ASSIGN_OR_RETURN(const List both, Tuple(b, {after, p}));
  step->Expect(both[0], Tensor::Scalar(5.0f));
  step->Expect(WithDependencies(b, {r[0].node}, p), Tensor::Scalar(true));
  return b.status();
}

Status Maps(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({3, 2}, {1, 2, 3, 4, 5, 6})), y = Fed(b, step, Floats({3}, {10, 20, 30}));
  MR_ASSIGN_OR_RETURN(
      const List r, MapFn(b, {x, y}, {DType::kFloat, DType::kInt32}, Part([](const GraphBuilder& s, const List& e) {
                            return List{s.Mul(e[0], e[1]), s.Cast(e[1], DType::kInt32)};
                          })));
  step->Expect(r[0], Floats({3, 2}, {10, 20, 60, 80, 150, 180}));
  step->Expect(r[1], Tensor::Vector<int32_t>({10, 20, 30}));
  return b.status();
}

Status MapOfUnknownLength(const GraphBuilder& b, FlowStep* step, int64_t n) {
  const Output x = Placeholder(b, DType::kFloat, PartialShape::Of({-1, 2}));
  std::vector<float> in(static_cast<size_t>(2 * n)), out;
  std::iota(in.begin(), in.end(), 0.0f);
  for (float f : in) out.push_back(f * f);
  step->Feed(x, Floats({n, 2}, in));
  MR_ASSIGN_OR_RETURN(
      const List r,
      MapFn(b, {x}, {}, Part([](const GraphBuilder& s, const List& e) { return List{s.Mul(e[0], e[0])}; })));
  step->Expect(r[0], Floats({n, 2}, out));
  return b.status();
}

BuildFn HalfOfSum() {
  return Part([](const GraphBuilder& s, const List& v) { return List{s.Mul(s.Add(v[0], v[1]), s.Scalar(0.5f))}; });
}

Status Folds(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({4}, {8, 4, 2, 1}));
  SweepOptions reverse;
  reverse.reverse = true;
  MR_ASSIGN_OR_RETURN(const List left, Fold(b, {x}, {}, HalfOfSum()));
  MR_ASSIGN_OR_RETURN(const List right, Fold(b, {x}, {}, HalfOfSum(), reverse, "foldr"));
  MR_ASSIGN_OR_RETURN(const List from, Fold(b, {x}, {b.Scalar(16.0f)}, HalfOfSum()));
  step->Expect(left[0], Tensor::Scalar(2.5f));     // 8, 6, 4, 2.5
  step->Expect(right[0], Tensor::Scalar(5.375f));  // 1, 1.5, 2.75, 5.375
  step->Expect(from[0], Tensor::Scalar(3.0f));     // 12, 8, 5, 3
  return b.status();
}

Status Scans(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({4}, {8, 4, 2, 1}));
  SweepOptions reverse;
  reverse.reverse = true;
  MR_ASSIGN_OR_RETURN(const List left, Scan(b, {x}, {}, HalfOfSum()));
  MR_ASSIGN_OR_RETURN(const List right, Scan(b, {x}, {}, HalfOfSum(), reverse));
  MR_ASSIGN_OR_RETURN(const List from, Scan(b, {x}, {b.Scalar(16.0f)}, HalfOfSum()));
  step->Expect(left[0], Floats({4}, {8, 6, 4, 2.5f}));
  step->Expect(right[0], Floats({4}, {5.375f, 2.75f, 1.5f, 1}));
  step->Expect(from[0], Floats({4}, {12, 8, 5, 3}));
  return b.status();
}

// 2^k for each element k, by a loop of as many iterations: those of the map are of different length.
Status LoopInMap(const GraphBuilder& b, FlowStep* step) {
  const Output k = b.Const(Tensor::Vector<int32_t>({0, 5, 1, 3}));
  const auto power = [](const GraphBuilder& s, const List& e) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List r,
        WhileLoop(s, {s.Scalar<int32_t>(0), s.Scalar<int32_t>(1)}, CountsTo(e[0]),
                  Part([](const GraphBuilder& t, const List& v) { return List{AddOne(t, v[0]), t.Add(v[1], v[1])}; })));
    return List{r[1]};
  };
  MR_ASSIGN_OR_RETURN(const List r, MapFn(b, {k}, {}, power));
  step->Expect(r[0], Tensor::Vector<int32_t>({1, 32, 2, 8}));
  return b.status();
}

Status ScanInLoop(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({3}, {1, 1, 1}));
  const auto body = [](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List sums,
        Scan(s, {v[1]}, {}, Part([](const GraphBuilder& t, const List& w) { return List{t.Add(w[0], w[1])}; })));
    return List{AddOne(s, v[0]), sums[0]};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(3), body));
  step->Expect(r[1], Floats({3}, {1, 4, 10}));
  return b.status();
}

// Expects d(y)/d(x) for one x and scalars or vectors.
Status ExpectGradient(const GraphBuilder& b, FlowStep* step, Output y, const List& xs, std::vector<Tensor> expected) {
  MR_RETURN_IF_ERROR(b.status());
  MR_ASSIGN_OR_RETURN(const std::vector<Gradient> dx, AddGradients(b.Scope("gradients"), {y}, xs));
  for (size_t i = 0; i < xs.size(); ++i) {
    if (dx[i].none()) return Internal("no gradient for input ", i);
    step->Expect(dx[i].sparse ? Densify(b, *dx[i].sparse) : dx[i].dense, std::move(expected[i]));
  }
  return b.status();
}

Status GradientOfCond(const GraphBuilder& b, FlowStep* step, bool truth) {
  const Output p = Fed(b, step, Tensor::Scalar(truth));
  const Output x = Fed(b, step, Tensor::Scalar(3.0f)), y = Fed(b, step, Tensor::Scalar(4.0f));
  MR_ASSIGN_OR_RETURN(
      const List r, Cond(b, p, Part([=](const GraphBuilder& s, const List&) { return List{s.Mul(x, s.Mul(x, y))}; }),
                         Part([=](const GraphBuilder& s, const List&) { return List{s.Mul(x, s.Scalar(5.0f))}; })));
  return ExpectGradient(
      b, step, r[0], {x, y}, {Tensor::Scalar(truth ? 24.0f : 5.0f), Tensor::Scalar(truth ? 9.0f : 0.0f)});
}

// x^8 by three squarings; x -> w x, five times, with w from outside.
Status GradientOfLoop(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Tensor::Scalar(1.5f)), w = Fed(b, step, Tensor::Scalar(2.0f));
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(3), Part([=](const GraphBuilder& s, const List& v) {
                  return List{AddOne(s, v[0]), s.Mul(s.Mul(v[1], v[1]), w)};
                })));
  const float x8 = 25.62890625f;  // 1.5^8
  // w^7 x^8
  return ExpectGradient(b, step, r[1], {x, w}, {Tensor::Scalar(128 * 8 * x8 / 1.5f), Tensor::Scalar(7 * 64 * x8)});
}

Status GradientOfNestedLoops(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Tensor::Scalar(1.1f)), w = Fed(b, step, Tensor::Scalar(1.2f));
  const auto outer = [=](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List r,
        WhileLoop(s, {s.Scalar<int32_t>(0), v[1]}, CountsTo(3),
                  Part([=](const GraphBuilder& t, const List& u) { return List{AddOne(t, u[0]), t.Mul(u[1], w)}; })));
    return List{AddOne(s, v[0]), s.Mul(r[1], x)};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(2), outer));
  const double X = 1.1, W = 1.2;  // x^3 w^6
  return ExpectGradient(
      b, step, r[1], {x, w},
      {Tensor::Scalar(static_cast<float>(3 * X * X * std::pow(W, 6))),
       Tensor::Scalar(static_cast<float>(X * X * X * 6 * std::pow(W, 5)))});
}

// Squares in even iterations, multiplies by w in odd ones.
Status GradientOfCondInLoop(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Tensor::Scalar(1.5f)), w = Fed(b, step, Tensor::Scalar(0.5f));
  const auto body = [=](const GraphBuilder& s, const List& v) -> StatusOr<List> {
    const Output even = s.Op("Equal", {s.Op("FloorMod", {v[0], s.Scalar<int32_t>(2)}), s.Scalar<int32_t>(0)});
    MR_ASSIGN_OR_RETURN(
        const List r, Cond(s, even, Part([=](const GraphBuilder& t, const List&) { return List{t.Mul(v[1], v[1])}; }),
                           Part([=](const GraphBuilder& t, const List&) { return List{t.Mul(v[1], w)}; })));
    return List{AddOne(s, v[0]), r[0]};
  };
  MR_ASSIGN_OR_RETURN(const List r, WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(4), body));
  // ((x^2 w)^2) w = x^4 w^3
  return ExpectGradient(
      b, step, r[1], {x, w}, {Tensor::Scalar(4 * 3.375f * 0.125f), Tensor::Scalar(5.0625f * 3 * 0.25f)});
}

Status GradientOfLoopInBranch(const GraphBuilder& b, FlowStep* step, bool truth) {
  const Output p = Fed(b, step, Tensor::Scalar(truth)), x = Fed(b, step, Tensor::Scalar(1.5f));
  const auto power = [=](const GraphBuilder& s, const List&) -> StatusOr<List> {
    MR_ASSIGN_OR_RETURN(
        const List r,
        WhileLoop(s, {s.Scalar<int32_t>(0), x}, CountsTo(3),
                  Part([=](const GraphBuilder& t, const List& v) { return List{AddOne(t, v[0]), t.Mul(v[1], x)}; })));
    return List{r[1]};
  };
  MR_ASSIGN_OR_RETURN(
      const List r, Cond(b, p, power, Part([=](const GraphBuilder& s, const List&) { return List{s.Neg(x)}; })));
  return ExpectGradient(b, step, r[0], {x}, {Tensor::Scalar(truth ? 4 * 3.375f : -1.0f)});
}

Status GradientOfMap(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({3}, {1, 2, 3})), w = Fed(b, step, Tensor::Scalar(2.0f));
  MR_ASSIGN_OR_RETURN(
      const List r,
      MapFn(b, {x}, {}, Part([=](const GraphBuilder& s, const List& e) { return List{s.Mul(s.Mul(e[0], e[0]), w)}; })));
  return ExpectGradient(b, step, r[0], {x, w}, {Floats({3}, {4, 8, 12}), Tensor::Scalar(14.0f)});
}

Status GradientOfScan(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({3}, {2, 3, 4}));
  MR_ASSIGN_OR_RETURN(
      const List r,
      Scan(b, {x}, {}, Part([](const GraphBuilder& s, const List& v) { return List{s.Mul(v[0], v[1])}; })));
  // 2 + 2*3 + 2*3*4
  return ExpectGradient(b, step, r[0], {x}, {Floats({3}, {16, 10, 6})});
}

Status GradientOfFold(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Floats({3}, {2, 3, 4})), first = Fed(b, step, Tensor::Scalar(0.5f));
  SweepOptions options;
  options.reverse = true;
  options.swap_memory = true;
  MR_ASSIGN_OR_RETURN(
      const List r,
      Fold(b, {x}, {first}, Part([](const GraphBuilder& s, const List& v) { return List{s.Mul(v[0], v[1])}; }), options,
           "foldr"));
  return ExpectGradient(b, step, r[0], {x, first}, {Floats({3}, {6, 4, 3}), Tensor::Scalar(24.0f)});
}

// Nothing flows through a loop that says so; the other path counts.
Status NoGradientThroughLoop(const GraphBuilder& b, FlowStep* step) {
  const Output x = Fed(b, step, Tensor::Scalar(1.5f));
  LoopOptions options;
  options.back_prop = false;
  MR_ASSIGN_OR_RETURN(
      const List r,
      WhileLoop(b, {b.Scalar<int32_t>(0), x}, CountsTo(3),
                Part([=](const GraphBuilder& s, const List& v) { return List{AddOne(s, v[0]), s.Mul(v[1], v[1])}; }),
                options));
  return ExpectGradient(b, step, b.Add(r[1], b.Mul(x, b.Scalar(3.0f))), {x}, {Tensor::Scalar(3.0f)});
}

}  // namespace

const std::vector<FlowGraph>& FlowGradientGraphs() {
  using B = const GraphBuilder&;
  static const auto* graphs = new std::vector<FlowGraph>{
      {"GradientOfCondTrue", [](B b, FlowStep* s) { return GradientOfCond(b, s, true); }},
      {"GradientOfCondFalse", [](B b, FlowStep* s) { return GradientOfCond(b, s, false); }},
      {"GradientOfLoop", GradientOfLoop},
      {"GradientOfNestedLoops", GradientOfNestedLoops},
      {"GradientOfCondInLoop", GradientOfCondInLoop},
      {"GradientOfLoopInBranch", [](B b, FlowStep* s) { return GradientOfLoopInBranch(b, s, true); }},
      {"GradientOfLoopInDeadBranch", [](B b, FlowStep* s) { return GradientOfLoopInBranch(b, s, false); }},
      {"GradientOfMap", GradientOfMap},
      {"GradientOfScan", GradientOfScan},
      {"GradientOfFold", GradientOfFold},
      {"NoGradientThroughLoop", NoGradientThroughLoop},
  };
  return *graphs;
}

const std::vector<FlowGraph>& FlowGraphs() {
  using B = const GraphBuilder&;
  static const auto* graphs = new std::vector<FlowGraph>{
      {"CondTrue", [](B b, FlowStep* s) { return CondTakesOneBranch(b, s, true); }},
      {"CondFalse", [](B b, FlowStep* s) { return CondTakesOneBranch(b, s, false); }},
      {"NestedConds", NestedConds},
      {"CaseSecond", [](B b, FlowStep* s) { return CaseOfFour(b, s, 1); }},
      {"CaseDefault", [](B b, FlowStep* s) { return CaseOfFour(b, s, 9); }},
      {"SumsToLimit", [](B b, FlowStep* s) { return SumsToLimit(b, s, 50, 10); }},
      {"SumsOneByOne", [](B b, FlowStep* s) { return SumsToLimit(b, s, 50, 1); }},
      {"NoIteration", [](B b, FlowStep* s) { return SumsToLimit(b, s, 0, 10); }},
      {"Fibonacci", Fibonacci},
      {"MatrixPower", MatrixPower},
      {"EndsAtMaximum", EndsAtMaximum},
      {"GrowingShape", GrowingShape},
      {"NestedLoops", NestedLoops},
      {"ThreeDeep", ThreeDeep},
      {"Collatz", Collatz},
      {"LoopInBranch", [](B b, FlowStep* s) { return LoopInBranch(b, s, true); }},
      {"LoopInDeadBranch", [](B b, FlowStep* s) { return LoopInBranch(b, s, false); }},
      {"LoopInBranchInLoop", LoopInBranchInLoop},
      {"SteadyBranchInLoop", SteadyBranchInLoop},
      {"VariableInLoop", VariableInLoop},
      {"ControlFromOutside", ControlFromOutside},
      {"OperationsInBranches", OperationsInBranches},
      {"Maps", Maps},
      {"MapOfUnknownLength", [](B b, FlowStep* s) { return MapOfUnknownLength(b, s, 5); }},
      {"MapOfNothing", [](B b, FlowStep* s) { return MapOfUnknownLength(b, s, 0); }},
      {"Folds", Folds},
      {"Scans", Scans},
      {"LoopInMap", LoopInMap},
      {"ScanInLoop", ScanInLoop},
  };
  return *graphs;
}

}  // namespace millrace
