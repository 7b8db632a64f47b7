// SPDX-License-Identifier: Apache-2.0
// Calls, conditionals and loops made of functions, through the whole stack: their values, effects and gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "autodiff/gradients.h"
#include "graph/function_def.h"
#include "graph/verify.h"
#include "system/system.h"

namespace millrace {
namespace {

using Body = std::function<std::vector<Output>(const GraphBuilder&, const std::vector<Output>&)>;

class FunctionTest : public ::testing::Test {
 protected:
  FunctionTest() { graph_->mu.Lock(); }
  ~FunctionTest() override { graph_->mu.Unlock(); }

  // Adds a function, whose body `body` states.
  void Function(const std::string& name, const std::vector<DType>& args, const Body& body) {
    Graph inner(&System::Default().ops());
    for (const wire::FunctionDef* f : graph().Functions()) ASSERT_TRUE(inner.AddFunction(*f).ok());
    GraphBuilder b(&inner);
    FunctionSpec spec;
    spec.name = name;
    for (DType t : args) spec.inputs.push_back(b.WithName("arg").Op("Placeholder", {}, {{"dtype", t}}));
    spec.outputs = body(b, spec.inputs);
    ASSERT_TRUE(b.status().ok()) << name << ": " << b.status();
    auto def = GraphToFunctionDef(inner, spec);
    ASSERT_TRUE(def.ok()) << name << ": " << def.status();
    ASSERT_TRUE(graph().AddFunction(*std::move(def)).ok());
  }
  Output Input(const char* name, DType t = DType::kFloat) {
    return b_.WithName(name).Op("Placeholder", {}, {{"dtype", t}, {"shape", PartialShape::Scalar()}});
  }
  static AttrValue F(const std::string& name) { return FuncAttr{name, {}}; }
  static AttrValue T(std::vector<DType> types) { return types; }

  Node* If(Output p, std::vector<Output> in, std::vector<DType> out, const char* yes, const char* no) {
    return b_.OpNode(
        "If", {p, std::move(in)}, {{"Tout", T(std::move(out))}, {"then_branch", F(yes)}, {"else_branch", F(no)}});
  }
  Node* While(std::vector<Output> in, const char* cond, const char* body) {
    return b_.OpNode("While", {std::move(in)}, {{"cond", F(cond)}, {"body", F(body)}});
  }
  std::vector<Output> Gradients(Output y, const std::vector<Output>& xs) {
    auto dxs = AddDenseGradients(b_.Scope("grad"), {y}, xs, {});
    EXPECT_TRUE(dxs.ok()) << dxs.status();
    return dxs.ok() ? *dxs : std::vector<Output>(xs.size());
  }

  StatusOr<std::vector<Tensor>> TryRun(const std::vector<std::pair<Output, Tensor>>& feeds,
                                       const std::vector<Output>& fetches, const std::vector<Node*>& targets = {}) {
    MR_RETURN_IF_ERROR(b_.status());
    graph_->mu.Unlock();
    auto out = RunUnlocked(feeds, fetches, targets);
    graph_->mu.Lock();
    return out;
  }
  // Scalars, as numbers.
  std::vector<double> Run(const std::vector<std::pair<Output, Tensor>>& feeds, const std::vector<Output>& fetches,
                          const std::vector<Node*>& targets = {}) {
    auto out = TryRun(feeds, fetches, targets);
    EXPECT_TRUE(out.ok()) << out.status();
    std::vector<double> numbers;
    if (!out.ok()) return std::vector<double>(fetches.size(), NAN);
    for (const Tensor& t : *out) {
      numbers.push_back(
          t.dtype() == DType::kFloat ? static_cast<double>(*t.data<float>()) : static_cast<double>(*t.data<int32_t>()));
    }
    return numbers;
  }

  // Less(i, n) and (i + 1, x * k, k, n).
  void AddLoopFunctions() {
    const std::vector<DType> types = {DType::kInt32, DType::kFloat, DType::kFloat, DType::kInt32};
    Function("More", types, [](const GraphBuilder& b, const std::vector<Output>& a) {
      return std::vector<Output>{b.Op("Less", {a[0], a[3]})};
    });
    Function("Step", types, [](const GraphBuilder& b, const std::vector<Output>& a) {
      return std::vector<Output>{b.Add(a[0], b.Scalar(int32_t{1})), b.Mul(a[1], a[2]), a[2], b.Identity(a[3])};
    });
  }

  Graph& graph() { return graph_->graph; }
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  GraphBuilder b_{&graph_->graph};
  wire::ConfigProto config_;

 private:
  StatusOr<std::vector<Tensor>> RunUnlocked(const std::vector<std::pair<Output, Tensor>>& feeds,
                                            const std::vector<Output>& fetches, const std::vector<Node*>& targets) {
    if (!session_) {
      MR_ASSIGN_OR_RETURN(session_, System::Default().NewSession(graph_, config_));
    }
    std::vector<Output> to;
    std::vector<Tensor> values, out;
    for (const auto& [o, v] : feeds) {
      to.push_back(o);
      values.push_back(v);
    }
    MR_RETURN_IF_ERROR(session_->Run(nullptr, to, values, fetches, targets, &out, nullptr));
    return out;
  }
  std::unique_ptr<Session> session_;
};

const Tensor kTrue = Tensor::Scalar(true), kFalse = Tensor::Scalar(false);
Tensor Float(float v) { return Tensor::Scalar(v); }
Tensor Int(int32_t v) { return Tensor::Scalar(v); }

TEST_F(FunctionTest, IfTakesABranchAndItsGradient) {
  Function("Squared", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>& a) { return std::vector<Output>{b.Mul(a[0], a[0])}; });
  Function("Three", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>&) { return std::vector<Output>{b.Scalar(3.0f)}; });
  const Output p = Input("p", DType::kBool), x = Input("x");
  const Output y = b_.Mul(If(p, {x}, {DType::kFloat}, "Squared", "Three")->output(0), x);
  const Output dx = Gradients(y, {x})[0];
  EXPECT_EQ(Run({{p, kTrue}, {x, Float(2)}}, {y, dx}), (std::vector<double>{8, 12}));
  EXPECT_EQ(Run({{p, kFalse}, {x, Float(2)}}, {y, dx}), (std::vector<double>{6, 3}));
}

// The forward pass that a gradient reads is the one whose result is fetched.
TEST_F(FunctionTest, GradientsReadTheValuesOfTheSameCall) {
  const Body noisy = [](const GraphBuilder& b, const std::vector<Output>& a) {
    const Output shape = b.Const(*Tensor::Make(DType::kInt32, Shape::Vector(0)));
    return std::vector<Output>{b.Mul(a[0], b.Op("RandomUniform", {shape}, {{"dtype", DType::kFloat}}))};
  };
  Function("Noisy", {DType::kFloat}, noisy);
  const Output x = Input("x"), p = Input("p", DType::kBool);
  Node* call = b_.OpNode("Noisy", {x});
  Node* branch = If(p, {x}, {DType::kFloat}, "Noisy", "Noisy");
  for (Node* n : {call, branch}) {
    const Output y = n->output(0), dx = Gradients(y, {x})[0];
    const std::vector<double> got = Run({{p, kTrue}, {x, Float(2)}}, {y, dx});
    EXPECT_EQ(got[0], 2 * got[1]);
    EXPECT_GT(got[1], 0);
  }
}

TEST_F(FunctionTest, WhileAndItsGradient) {
  AddLoopFunctions();
  const Output x = Input("x"), k = Input("k"), n = Input("n", DType::kInt32);
  Node* loop = While({b_.Scalar(int32_t{0}), x, k, n}, "More", "Step");
  const std::vector<Output> d = Gradients(loop->output(1), {x, k});
  const std::vector<std::pair<Output, Tensor>> feeds = {{x, Float(3)}, {k, Float(2)}, {n, Int(5)}};
  EXPECT_EQ(Run(feeds, {loop->output(0), loop->output(1), loop->output(2), d[0], d[1]}),
            (std::vector<double>{5, 96, 2, 32, 240}));
  EXPECT_EQ(
      Run({{x, Float(3)}, {k, Float(2)}, {n, Int(0)}}, {loop->output(1), d[0], d[1]}), (std::vector<double>{3, 1, 0}));
}

TEST_F(FunctionTest, SecondOrderThroughALoop) {
  AddLoopFunctions();
  const Output x = Input("x"), k = Input("k");
  Node* loop = While({b_.Scalar(int32_t{0}), x, k, b_.Scalar(int32_t{4})}, "More", "Step");
  const Output dk = Gradients(loop->output(1), {k})[0];  // 4 x k^3
  const Output ddk = Gradients(dk, {k})[0];              // 12 x k^2
  EXPECT_EQ(Run({{x, Float(3)}, {k, Float(2)}}, {dk, ddk}), (std::vector<double>{96, 144}));
}

TEST_F(FunctionTest, ConditionalInsideALoop) {
  AddLoopFunctions();
  Function("Twice", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>& a) { return std::vector<Output>{b.Add(a[0], a[0])}; });
  Function("Once", {DType::kFloat}, [](const GraphBuilder&, const std::vector<Output>& a) { return a; });
  Function("OddStep", {DType::kInt32, DType::kFloat, DType::kFloat, DType::kInt32},
           [](const GraphBuilder& b, const std::vector<Output>& a) {
             const Output odd = b.Op("Equal", {b.Op("FloorMod", {a[0], b.Scalar(int32_t{2})}), b.Scalar(int32_t{1})});
             const Output x =
                 b.Op("If", {odd, std::vector<Output>{a[1]}},
                      {{"Tout", T({DType::kFloat})}, {"then_branch", F("Twice")}, {"else_branch", F("Once")}});
             return std::vector<Output>{b.Add(a[0], b.Scalar(int32_t{1})), b.Mul(x, a[2]), a[2], a[3]};
           });
  const Output x = Input("x"), k = Input("k"), n = Input("n", DType::kInt32);
  Node* loop = While({b_.Scalar(int32_t{0}), x, k, n}, "More", "OddStep");
  const std::vector<Output> d = Gradients(loop->output(1), {x, k});
  // Two of five iterations double.
  EXPECT_EQ(Run({{x, Float(3)}, {k, Float(2)}, {n, Int(5)}}, {loop->output(1), d[0], d[1]}),
            (std::vector<double>{384, 128, 960}));
}

TEST_F(FunctionTest, LoopInsideABranchInsideACall) {
  AddLoopFunctions();
  const std::vector<DType> types = {DType::kFloat, DType::kInt32};
  Function("Power", types, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{
        b.OpNode("While", {std::vector<Output>{b.Scalar(int32_t{0}), b.Scalar(1.0f), a[0], a[1]}},
                 {{"cond", F("More")}, {"body", F("Step")}})
            ->output(1)};
  });
  Function("Zero", types,
           [](const GraphBuilder& b, const std::vector<Output>&) { return std::vector<Output>{b.Scalar(0.0f)}; });
  Function("PowerOrZero", {DType::kBool, DType::kFloat, DType::kInt32},
           [](const GraphBuilder& b, const std::vector<Output>& a) {
             return std::vector<Output>{b.Op(
                 "If", {a[0], std::vector<Output>{a[1], a[2]}},
                 {{"Tout", T({DType::kFloat})}, {"then_branch", F("Power")}, {"else_branch", F("Zero")}})};
           });
  const Output p = Input("p", DType::kBool), x = Input("x"), n = Input("n", DType::kInt32);
  const Output y =
      b_.Op("PartitionedCall", {std::vector<Output>{p, x, n}}, {{"Tout", T({DType::kFloat})}, {"f", F("PowerOrZero")}});
  const Output dx = Gradients(y, {x})[0];
  EXPECT_EQ(Run({{p, kTrue}, {x, Float(3)}, {n, Int(3)}}, {y, dx}), (std::vector<double>{27, 27}));
  EXPECT_EQ(Run({{p, kFalse}, {x, Float(3)}, {n, Int(3)}}, {y, dx}), (std::vector<double>{0, 0}));
}

TEST_F(FunctionTest, EffectsHappenOnceAndInOrder) {
  const auto handle = [](const GraphBuilder& b) {
    return b.Op(
        "VarHandleOp", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}, {"shared_name", "counter"}});
  };
  Function("AddOne", {DType::kFloat}, [&](const GraphBuilder& b, const std::vector<Output>& a) {
    b.OpNode("AssignAddVariableOp", {handle(b), b.Scalar(1.0f)});
    return a;
  });
  Function("AddTen", {DType::kFloat}, [&](const GraphBuilder& b, const std::vector<Output>& a) {
    b.OpNode("AssignAddVariableOp", {handle(b), b.Scalar(10.0f)});
    return a;
  });
  const Output p = Input("p", DType::kBool), x = Input("x");
  const Output counter = handle(b_);
  Node* init = b_.OpNode("AssignVariableOp", {counter, b_.Scalar(0.0f)});
  Node* branch = If(p, {x}, {DType::kFloat}, "AddOne", "AddTen");
  const Output after = b_.WithControl({branch}).Op("ReadVariableOp", {counter}, {{"dtype", DType::kFloat}});
  ASSERT_TRUE(TryRun({}, {}, {init}).ok());
  EXPECT_EQ(Run({{p, kTrue}, {x, Float(5)}}, {branch->output(0), after}), (std::vector<double>{5, 1}));
  EXPECT_EQ(Run({{p, kFalse}, {x, Float(5)}}, {after}), (std::vector<double>{11}));
  EXPECT_TRUE(TryRun({{p, kTrue}, {x, Float(5)}}, {}, {branch}).ok());
  EXPECT_EQ(Run({{p, kTrue}, {x, Float(5)}}, {after}), (std::vector<double>{13}));
}

TEST_F(FunctionTest, CaseOfManyBranches) {
  std::vector<FuncAttr> branches;
  for (int i = 0; i < 7; ++i) {
    const std::string name = absl::StrCat("Times", i);
    Function(name, {DType::kFloat}, [i](const GraphBuilder& b, const std::vector<Output>& a) {
      return std::vector<Output>{b.Mul(a[0], b.Scalar(static_cast<float>(i)))};
    });
    branches.push_back({name, {}});
  }
  const Output index = Input("index", DType::kInt32), x = Input("x");
  const Output y =
      b_.Op("Case", {index, std::vector<Output>{x}}, {{"Tout", T({DType::kFloat})}, {"branches", branches}});
  const Output dx = Gradients(y, {x})[0];
  for (int i = -2; i < 9; ++i) {
    const double factor = i < 0 || i > 6 ? 6 : i;
    EXPECT_EQ(Run({{index, Int(i)}, {x, Float(2)}}, {y, dx}), (std::vector<double>{2 * factor, factor})) << i;
  }
}

TEST_F(FunctionTest, ForCountsBothWays) {
  Function("AddIndex", {DType::kInt32, DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{b.Add(a[1], b.Cast(a[0], DType::kFloat))};
  });
  const Output start = Input("start", DType::kInt32), limit = Input("limit", DType::kInt32),
               delta = Input("delta", DType::kInt32), x = Input("x");
  const Output y = b_.Op("For", {start, limit, delta, std::vector<Output>{x}}, {{"body", F("AddIndex")}});
  const auto run = [&](int from, int to, int by) {
    return Run({{start, Int(from)}, {limit, Int(to)}, {delta, Int(by)}, {x, Float(0)}}, {y})[0];
  };
  EXPECT_EQ(run(0, 5, 1), 10);
  EXPECT_EQ(run(0, 5, 2), 6);
  EXPECT_EQ(run(5, 0, -2), 9);
  EXPECT_EQ(run(3, 3, 1), 0);
  EXPECT_EQ(run(INT32_MAX - 1, INT32_MAX, INT32_MAX), static_cast<double>(static_cast<float>(INT32_MAX - 1)));
  for (const auto& [to, by] : {std::pair(5, 0), std::pair(5, -1), std::pair(-5, 1)}) {
    const Status s = TryRun({{start, Int(0)}, {limit, Int(to)}, {delta, Int(by)}, {x, Float(0)}}, {y}).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  }
}

TEST_F(FunctionTest, SymbolicGradientAndItsGradient) {
  Function("Cube", {DType::kFloat, DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{b.Mul(a[0], b.Mul(a[0], a[0]))};
  });
  const Output x = Input("x"), unused = Input("unused"), dy = Input("dy");
  Node* gradient = b_.OpNode("SymbolicGradient", {std::vector<Output>{x, unused, dy}},
                             {{"Tout", T({DType::kFloat, DType::kFloat})}, {"f", F("Cube")}});
  const Output second = Gradients(gradient->output(0), {x})[0];
  EXPECT_EQ(
      Run({{x, Float(2)}, {unused, Float(9)}, {dy, Float(10)}}, {gradient->output(0), gradient->output(1), second}),
      (std::vector<double>{120, 0, 120}));
}

TEST_F(FunctionTest, LibraryGradientComesFirst) {
  const Body square = [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{b.Mul(a[0], a[0])};
  };
  Function("Squared", {DType::kFloat}, square);
  Function("Hundred", {DType::kFloat, DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{b.Mul(a[1], b.Scalar(100.0f))};
  });
  wire::GradientDef def;
  def.function_name = "Squared";
  def.gradient_func = "Hundred";
  ASSERT_TRUE(graph().AddGradientDef(std::move(def)).ok());
  const Output x = Input("x");
  const Output direct = b_.Op("Squared", {x});
  const Output called =
      b_.Op("PartitionedCall", {std::vector<Output>{x}}, {{"Tout", T({DType::kFloat})}, {"f", F("Squared")}});
  EXPECT_EQ(
      Run({{x, Float(3)}}, {Gradients(direct, {x})[0], Gradients(called, {x})[0]}), (std::vector<double>{100, 100}));
}

TEST_F(FunctionTest, RemoteCallRunsWhereItSays) {
  config_.device_count["CPU"] = 2;
  Function("Double", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>& a) { return std::vector<Output>{b.Add(a[0], a[0])}; });
  const Output x = Input("x"), target = b_.Const(Tensor::Scalar(TString("/device:CPU:1")));
  const Output y =
      b_.Op("RemoteCall", {target, std::vector<Output>{x}}, {{"Tout", T({DType::kFloat})}, {"f", F("Double")}});
  EXPECT_EQ(Run({{x, Float(4)}}, {y})[0], 8);
}

TEST_F(FunctionTest, BodiesSpanDevices) {
  config_.device_count["CPU"] = 2;
  AddLoopFunctions();
  const auto on_second = [](const GraphBuilder& b) { return b.WithDevice("/device:CPU:1"); };
  Function("Apart", {DType::kFloat}, [&](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{on_second(b).Mul(a[0], a[0])};
  });
  Function("Here", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>& a) { return std::vector<Output>{b.Neg(a[0])}; });
  Function("FarStep", {DType::kInt32, DType::kFloat, DType::kFloat, DType::kInt32},
           [&](const GraphBuilder& b, const std::vector<Output>& a) {
             const Output one = b.Scalar(int32_t{1});
             return std::vector<Output>{b.Add(a[0], one), on_second(b).Mul(a[1], a[2]), a[2], a[3]};
           });
  const Output p = Input("p", DType::kBool), x = Input("x"), k = Input("k"), n = Input("n", DType::kInt32);
  const Output chosen = If(p, {x}, {DType::kFloat}, "Apart", "Here")->output(0);
  const Output y = While({b_.Scalar(int32_t{0}), chosen, k, n}, "More", "FarStep")->output(1);
  const std::vector<Output> d = Gradients(y, {x, k});
  const std::vector<std::pair<Output, Tensor>> feeds = {{x, Float(3)}, {k, Float(2)}, {n, Int(4)}};
  for (int i = 0; i < 20; ++i) {
    auto taken = feeds;
    taken.emplace_back(p, i % 2 == 0 ? kTrue : kFalse);
    const std::vector<double> want =
        i % 2 == 0 ? std::vector<double>{144, 96, 288} : std::vector<double>{-48, -16, -96};
    EXPECT_EQ(Run(taken, {y, d[0], d[1]}), want);
  }
}

TEST_F(FunctionTest, FedResultsOfACallReachItsGradient) {
  Function("Squared", {DType::kFloat},
           [](const GraphBuilder& b, const std::vector<Output>& a) { return std::vector<Output>{b.Mul(a[0], a[0])}; });
  const Output x = Input("x"), s = b_.Op("Squared", {x}), y = b_.Mul(s, s);
  const Output dx = Gradients(y, {x})[0];  // 2 s * 2 x
  EXPECT_EQ(Run({{x, Float(3)}}, {dx})[0], 108);
  EXPECT_EQ(Run({{x, Float(3)}, {s, Float(1)}}, {y, dx}), (std::vector<double>{1, 12}));
}

TEST_F(FunctionTest, OptionalsOfABranch) {
  Function("Some", {DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{
        b.Op("OptionalFromValue", {std::vector<Output>{b.Mul(a[0], a[0]), b.Scalar(int32_t{7})}})};
  });
  Function("None", {DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>&) {
    return std::vector<Output>{b.Op("OptionalNone", {})};
  });
  const Output p = Input("p", DType::kBool), x = Input("x");
  const Output optional = If(p, {x}, {DType::kVariant}, "Some", "None")->output(0);
  const auto get = [&](std::vector<DType> types, PartialShape shape) {
    return b_.OpNode("OptionalGetValue", {optional},
                     {{"output_types", T(types)}, {"output_shapes", std::vector<PartialShape>(types.size(), shape)}});
  };
  const Output has = b_.Cast(b_.Op("OptionalHasValue", {optional}), DType::kInt32);
  Node* value = get({DType::kFloat, DType::kInt32}, PartialShape::Scalar());
  EXPECT_EQ(
      Run({{p, kTrue}, {x, Float(3)}}, {has, value->output(0), value->output(1)}), (std::vector<double>{1, 9, 7}));
  EXPECT_EQ(Run({{p, kFalse}, {x, Float(3)}}, {has})[0], 0);
  const auto error = [&](Node* n, const Tensor& taken) {
    return TryRun({{p, taken}, {x, Float(3)}}, {n->output(0)}).status().code();
  };
  EXPECT_EQ(error(value, kFalse), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(get({DType::kFloat}, PartialShape()), kTrue), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error(get({DType::kInt32, DType::kInt32}, PartialShape()), kTrue), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      error(get({DType::kFloat, DType::kInt32}, PartialShape::Of({2})), kTrue), absl::StatusCode::kInvalidArgument);
}

TEST_F(FunctionTest, AFailedGradientLeavesNothingBehind) {
  Function("NoGrad", {DType::kFloat}, [](const GraphBuilder& b, const std::vector<Output>& a) {
    return std::vector<Output>{b.Op("PreventGradient", {a[0]}, {{"message", "not here"}})};
  });
  const Output x = Input("x"), c = b_.Op("NoGrad", {x}), y = b_.Mul(c, x);
  const int mark = graph().num_node_ids();
  EXPECT_FALSE(AddDenseGradients(b_.Scope("grad"), {y}, {x}, {}).ok());
  EXPECT_EQ(y.node->input(0), c);
  graph().RollbackTo(mark);
  EXPECT_EQ(graph().FindExpansion(c.node), nullptr);
  EXPECT_TRUE(VerifyGraph(graph()).ok());
}

// 2^40 nodes, which must not be tried.
TEST_F(FunctionTest, AGradientCountsTheCallsBeforeItExpandsThem) {
  std::string callee = "Neg";
  for (int i = 0; i < 40; ++i) {
    const std::string name = absl::StrCat("F", i);
    Function(name, {DType::kFloat}, [&](const GraphBuilder& b, const std::vector<Output>& a) {
      return std::vector<Output>{b.Op(callee, {b.Op(callee, {a[0]})})};
    });
    callee = name;
  }
  const Output x = Input("x"), y = b_.Op(callee, {x});
  const int before = graph().num_node_ids();
  const Status s = AddDenseGradients(b_.Scope("grad"), {y}, {x}, {}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
  EXPECT_LT(graph().num_node_ids(), before + 10);
}

}  // namespace
}  // namespace millrace
