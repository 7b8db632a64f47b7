// SPDX-License-Identifier: Apache-2.0
// Gradients through conditionals and loops against central differences in float64, through the whole stack.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "absl/strings/match.h"
#include "autodiff/gradients.h"
#include "graph/control_flow.h"
#include "graph/verify.h"
#include "system/system.h"

namespace millrace {
namespace {

using Outputs = std::vector<Output>;
using Values = std::vector<Tensor>;

class LoopGradients : public ::testing::Test {
 protected:
  void SetUp() override { graph_->mu.Lock(); }
  void TearDown() override {
    if (!session_) graph_->mu.Unlock();
  }
  Output Input(std::initializer_list<int64_t> shape) {
    const Output x =
        b_.WithName("x").Op("Placeholder", {}, {{"dtype", DType::kDouble}, {"shape", PartialShape::Of(shape)}});
    xs_.push_back(x);
    return x;
  }
  // Closes the graph to new nodes, opens the session.
  void Open() {
    ASSERT_TRUE(b_.status().ok()) << b_.status();
    const Status s = VerifyGraph(graph_->graph);
    ASSERT_TRUE(s.ok()) << s;
    graph_->mu.Unlock();
    auto session = System::Default().NewSession(graph_, {});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }
  Values Run(const Values& feeds, const Outputs& fetches) {
    Values out;
    const Status s = session_->Run(nullptr, xs_, feeds, fetches, {}, &out, nullptr);
    EXPECT_TRUE(s.ok()) << s;
    if (!s.ok()) out.resize(fetches.size(), Tensor::Scalar<double>(NAN));
    return out;
  }
  static Tensor Make(const Tensor& like, const std::vector<double>& v) {
    Tensor t = *Tensor::Zeros(like.dtype(), like.shape());
    std::copy(v.begin(), v.end(), t.mutable_data<double>());
    return t;
  }
  static std::vector<double> Elements(const Tensor& t) {
    return std::vector<double>(t.data<double>(), t.data<double>() + t.num_elements());
  }
  Outputs Dense(const std::vector<Gradient>& gs) {
    Outputs out;
    for (const Gradient& g : gs) {
      EXPECT_FALSE(g.none());
      out.push_back(g.none() ? b_.Scalar<double>(0) : g.dense ? g.dense : Densify(b_, *g.sparse));
    }
    return out;
  }
  Outputs GradientsOf(Output y, const Outputs& xs, const GradientOptions& options = {}) {
    auto g = AddGradients(b_, {y}, xs, {}, options);
    EXPECT_TRUE(g.ok()) << g.status();
    return g.ok() ? Dense(*g) : Outputs();
  }

  // By readiness, in random orders: pushes and pops must stay in step.
  void SameInAnyOrder(const Values& at, const Outputs& fetches, const Values& want) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      auto session = System::Default().NewSession(graph_, {}, "", {.on = true, .order_seed = seed});
      ASSERT_TRUE(session.ok()) << session.status();
      Values out;
      const Status s = (*session)->Run(nullptr, xs_, at, fetches, {}, &out, nullptr);
      ASSERT_TRUE(s.ok()) << "order " << seed << ": " << s;
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(Elements(out[i]), Elements(want[i])) << "order " << seed;
    }
  }

  // d y / d xs against central differences at `at`.
  void Check(Output y, const Values& at, const Outputs& given = {}) {
    ASSERT_TRUE(b_.status().ok()) << b_.status();
    const Outputs dxs = given.empty() ? GradientsOf(y, xs_) : given;
    if (HasFailure()) return;
    if (!session_) Open();
    if (HasFailure()) return;
    const Values got = Run(at, dxs);
    if (HasFailure()) return;
    SameInAnyOrder(at, dxs, got);
    constexpr double kStep = 1e-5;
    for (size_t i = 0; i < xs_.size(); ++i) {
      std::vector<double> x = Elements(at[i]);
      ASSERT_EQ(got[i].num_elements(), at[i].num_elements());
      for (size_t k = 0; k < x.size(); ++k) {
        double sides[2];
        for (int s : {0, 1}) {
          std::vector<double> moved = x;
          moved[k] += s == 0 ? -kStep : kStep;
          Values feeds = at;
          feeds[i] = Make(at[i], moved);
          sides[s] = 0;
          for (double v : Elements(Run(feeds, {y})[0])) sides[s] += v;
        }
        const double want = (sides[1] - sides[0]) / (2 * kStep);
        EXPECT_NEAR(got[i].data<double>()[k], want, 1e-5 * (1 + std::abs(want))) << "x " << i << ", element " << k;
      }
    }
  }
  static Tensor D(double v) { return Tensor::Scalar<double>(v); }
  static Tensor V(std::initializer_list<double> v) { return Tensor::Vector<double>(v); }

  // A loop of `n` iterations; body gets the counter and the variables.
  Outputs Repeat(const GraphBuilder& b, Output n, Outputs variables,
                 const std::function<Outputs(const GraphBuilder&, Output, const Outputs&)>& body,
                 const LoopOptions& options = {}) {
    variables.insert(variables.begin(), b.Scalar<int32_t>(0));
    auto out = WhileLoop(
        b, variables,
        [&](const GraphBuilder& c, const Outputs& v) -> StatusOr<Outputs> { return Outputs{c.Op("Less", {v[0], n})}; },
        [&](const GraphBuilder& c, const Outputs& v) -> StatusOr<Outputs> {
          Outputs r = body(c, v[0], Outputs(v.begin() + 1, v.end()));
          r.insert(r.begin(), c.Add(v[0], c.Scalar<int32_t>(1)));
          return r;
        },
        options);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return Outputs(variables.size() - 1);
    return Outputs(out->begin() + 1, out->end());
  }
  Output If(const GraphBuilder& b, Output p, const std::function<Output(const GraphBuilder&)>& t,
            const std::function<Output(const GraphBuilder&)>& f) {
    auto out = Cond(
        b, p, [&](const GraphBuilder& c, const Outputs&) -> StatusOr<Outputs> { return Outputs{t(c)}; },
        [&](const GraphBuilder& c, const Outputs&) -> StatusOr<Outputs> { return Outputs{f(c)}; });
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Output();
  }
  Output Sin(const GraphBuilder& b, Output x) { return b.Op("Sin", {x}); }
  Output Tanh(const GraphBuilder& b, Output x) { return b.Op("Tanh", {x}); }
  Output Positive(const GraphBuilder& b, Output x) { return b.Op("Greater", {x, b.ScalarOf(DType::kDouble, 0)}); }
  Output Total(const GraphBuilder& b, Output x) {
    return b.Sum(x, b.Op("Range", {b.Scalar<int32_t>(0), b.Op("Rank", {x}), b.Scalar<int32_t>(1)}));
  }

  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  GraphBuilder b_{&graph_->graph};
  Outputs xs_;
  std::unique_ptr<Session> session_;
};

TEST_F(LoopGradients, Conditional) {
  const Output x = Input({}), a = Input({});
  const Output y = If(
      b_, Positive(b_, x), [&](const GraphBuilder& b) { return b.Mul(Sin(b, x), a); },
      [&](const GraphBuilder& b) { return b.Mul(x, x); });
  const Outputs d = GradientsOf(y, xs_);
  Check(y, {D(0.7), D(2)}, d);
  Check(y, {D(-0.7), D(2)}, d);
}

TEST_F(LoopGradients, NestedConditionalsOfDynamicShape) {
  const Output x = Input({-1});
  const Output s = Total(b_, x);
  const Output y = If(
      b_, Positive(b_, s),
      [&](const GraphBuilder& b) {
        return If(
            b, b.Op("Greater", {s, b.ScalarOf(DType::kDouble, 5)}),
            [&](const GraphBuilder& c) { return Total(c, c.Mul(x, x)); },
            [&](const GraphBuilder& c) { return Total(c, Sin(c, x)); });
      },
      [&](const GraphBuilder& b) { return b.Scalar<double>(3); });
  const Output total = b_.Add(y, Total(b_, x));
  const Outputs d = GradientsOf(total, xs_);
  Check(total, {V({1, 2, 0.5})}, d);
  Check(total, {V({4, 2.5})}, d);
  Check(total, {V({-4, 2.5, 0.1, 0})}, d);
}

TEST_F(LoopGradients, BareSwitch) {
  const Output x = Input({2});
  Node* s = b_.OpNode("Switch", {Sin(b_, x), b_.Op("Less", {Total(b_, x), b_.ScalarOf(DType::kDouble, 1)})});
  const Output y = b_.Op("Merge", {Outputs{b_.Mul(s->output(0), x), b_.Neg(s->output(1))}});
  const Outputs d = GradientsOf(y, xs_);
  Check(y, {V({1, 2})}, d);
  Check(y, {V({0.1, 0.2})}, d);
}

TEST_F(LoopGradients, Power) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(5), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{Sin(b, b.Mul(v[0], w))};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, NoIterations) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(0), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{b.Mul(v[0], w)};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, VectorsThatGrow) {
  const Output x = Input({-1});
  LoopOptions options;
  options.shape_invariants = {PartialShape::Scalar(), PartialShape::UnknownOfRank(1)};
  const Output y = Total(
      b_, Repeat(
              b_, b_.Scalar<int32_t>(3), {x},
              [&](const GraphBuilder& b, Output, const Outputs& v) {
                return Outputs{b.Op("ConcatV2", {Outputs{b.Mul(v[0], v[0]), Sin(b, x)}, b.Scalar<int32_t>(0)})};
              },
              options)[0]);
  Check(y, {V({0.8, 0.3})});
}

TEST_F(LoopGradients, CounterAndUnusedVariables) {
  const Output x = Input({2}), w = Input({2});
  const Outputs out = Repeat(
      b_, b_.Scalar<int32_t>(4), {x, w, b_.Scalar<double>(2)}, [&](const GraphBuilder& b, Output i, const Outputs& v) {
        const Output f = b.Cast(i, DType::kDouble);
        return Outputs{b.Add(b.Mul(v[0], f), v[1]), Tanh(b, b.Mul(v[1], x)), b.Mul(v[2], f)};
      });
  Check(out[0], {V({0.3, 0.4}), V({0.9, -0.5})});
}

TEST_F(LoopGradients, Nested) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output i, const Outputs& v) {
    const Output inner =
        Repeat(b, b.Add(i, b.Scalar<int32_t>(1)), {v[0]}, [&](const GraphBuilder& c, Output, const Outputs& u) {
          return Outputs{Sin(c, c.Add(c.Mul(u[0], w), v[0]))};
        })[0];
    return Outputs{b.Mul(inner, v[0])};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, ConditionalInLoop) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(6), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{If(
        b, Positive(b, v[0]), [&](const GraphBuilder& c) { return c.Sub(Sin(c, v[0]), w); },
        [&](const GraphBuilder& c) { return c.Add(c.Mul(v[0], v[0]), c.Mul(w, v[0])); })};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, LoopInConditionalInLoop) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(5), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{If(
        b, Positive(b, v[0]),
        [&](const GraphBuilder& c) {
          return c.Neg(Repeat(c, c.Scalar<int32_t>(3), {v[0]}, [&](const GraphBuilder& e, Output, const Outputs& u) {
            return Outputs{Tanh(e, e.Mul(u[0], w))};
          })[0]);
        },
        [&](const GraphBuilder& c) { return c.Mul(c.Mul(v[0], v[0]), w); })};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, LoopInConditional) {
  const Output x = Input({}), w = Input({});
  const Output y = If(
      b_, Positive(b_, x),
      [&](const GraphBuilder& b) {
        return Repeat(b, b.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& c, Output, const Outputs& v) {
          return Outputs{Sin(c, c.Mul(v[0], w))};
        })[0];
      },
      [&](const GraphBuilder& b) { return b.Mul(x, w); });
  const Outputs d = GradientsOf(y, xs_);
  Check(y, {D(0.8), D(1.3)}, d);
  Check(y, {D(-0.8), D(1.3)}, d);
}

TEST_F(LoopGradients, RowsOfATable) {
  const Output table = Input({4, 2});
  const Output y = Total(
      b_, Repeat(b_, b_.Scalar<int32_t>(5), {b_.Op("Fill", {b_.Vector<int32_t>({2}), b_.Scalar<double>(1)})},
                 [&](const GraphBuilder& b, Output i, const Outputs& v) {
                   const Output row =
                       b.Op("GatherV2", {table, b.Op("FloorMod", {i, b.Scalar<int32_t>(3)}), b.Scalar<int32_t>(0)});
                   return Outputs{b.Mul(v[0], row)};
                 })[0]);
  Tensor at = *Tensor::Zeros(DType::kDouble, *Shape::Make({4, 2}));
  for (int i = 0; i < 8; ++i) at.mutable_data<double>()[i] = 0.5 + 0.1 * i;
  Check(y, {at});
}

TEST_F(LoopGradients, SecondOrder) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(4), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{Sin(b, b.Mul(v[0], w))};
  })[0];
  const Outputs first = GradientsOf(y, xs_);
  ASSERT_EQ(first.size(), 2u);
  Check(b_.Add(b_.Mul(first[0], first[0]), first[1]), {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, SecondOrderNestedWithConditional) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    const Output inner = Repeat(b, b.Scalar<int32_t>(2), {v[0]}, [&](const GraphBuilder& c, Output, const Outputs& u) {
      return Outputs{Sin(c, c.Mul(u[0], w))};
    })[0];
    return Outputs{If(
        b, Positive(b, inner), [&](const GraphBuilder& c) { return c.Sub(c.Mul(inner, v[0]), w); },
        [&](const GraphBuilder& c) { return c.Mul(Sin(c, inner), w); })};
  })[0];
  const Outputs first = GradientsOf(y, xs_);
  ASSERT_EQ(first.size(), 2u);
  Check(b_.Mul(first[0], first[1]), {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, GradientInsideOfALoop) {
  const Output x = Input({}), w = Input({});
  const Output y = Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    const Output f = Repeat(b, b.Scalar<int32_t>(2), {v[0]}, [&](const GraphBuilder& c, Output, const Outputs& u) {
      return Outputs{Sin(c, c.Mul(u[0], w))};
    })[0];
    auto g = AddGradients(b.Scope("inner"), {f}, {v[0]});
    EXPECT_TRUE(g.ok()) << g.status();
    return Outputs{g.ok() ? b.Add((*g)[0].dense, v[0]) : v[0]};
  })[0];
  Check(y, {D(0.8), D(1.3)});
}

TEST_F(LoopGradients, StopsAndNoBackProp) {
  const Output x = Input({});
  LoopOptions options;
  options.back_prop = false;
  const Output y = Repeat(
      b_, b_.Scalar<int32_t>(3), {x},
      [&](const GraphBuilder& b, Output, const Outputs& v) { return Outputs{b.Mul(v[0], x)}; }, options)[0];
  auto g = AddGradients(b_, {y}, {x});
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_TRUE((*g)[0].none());
}

TEST_F(LoopGradients, StopsAtAVariable) {
  const Output x = Input({}), w = Input({});
  Output middle;
  const Output y = Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    middle = Sin(b, v[0]);
    return Outputs{b.Mul(middle, w)};
  })[0];
  GradientOptions options;
  options.stop_gradients = {middle};
  const Outputs d = GradientsOf(y, {w}, options);
  ASSERT_EQ(d.size(), 1u);
  Open();
  const double got = *Run({D(0.8), D(1.3)}, d)[0].data<double>();
  double v = 0.8;
  for (int i = 0; i < 2; ++i) v = std::sin(v) * 1.3;
  EXPECT_NEAR(got, std::sin(v), 1e-12) << "only the last product counts";
}

TEST_F(LoopGradients, ArraysThroughLoops) {
  const Output x = Input({5});
  const Output n = b_.Scalar<int32_t>(5);
  const auto array = [&] {
    return b_.OpNode("TensorArrayV3", {n}, {{"dtype", DType::kDouble}, {"element_shape", PartialShape::Scalar()}});
  };
  Node *in = array(), *out = array();
  const Output filled =
      b_.Op("TensorArrayScatterV3",
            {in->output(0), b_.Op("Range", {b_.Scalar<int32_t>(0), n, b_.Scalar<int32_t>(1)}), x, in->output(1)});
  const Output flow = Repeat(b_, n, {out->output(1)}, [&](const GraphBuilder& b, Output i, const Outputs& v) {
    const Output e = b.Op("TensorArrayReadV3", {in->output(0), i, filled}, {{"dtype", DType::kDouble}});
    return Outputs{b.Op("TensorArrayWriteV3", {out->output(0), i, b.Mul(e, Sin(b, e)), v[0]})};
  })[0];
  const Output y = b_.Op(
      "TensorArrayGatherV3", {out->output(0), b_.Vector<int32_t>({4, 0, 3, 1}), flow}, {{"dtype", DType::kDouble}});
  Check(y, {V({0.1, 0.7, -0.4, 2, 1})});
}

TEST_F(LoopGradients, TwiceOnOneLoop) {
  const Output x = Input({}), w = Input({});
  const Outputs out = Repeat(b_, b_.Scalar<int32_t>(4), {x, w}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    return Outputs{Sin(b, b.Mul(v[0], v[1])), b.Mul(v[0], v[1])};
  });
  const Outputs first = GradientsOf(out[0], xs_), second = GradientsOf(out[1], xs_);
  Check(out[0], {D(0.8), D(1.3)}, first);
  Check(out[1], {D(0.8), D(1.3)}, second);
}

// What a value is in the body, seen from outside, is a value of the backward loop.
TEST_F(LoopGradients, SaysWhatItCannot) {
  const Output x = Input({}), w = Input({});
  Output inside;
  const Output y = Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    inside = Sin(b, b.Mul(v[0], w));
    return Outputs{inside};
  })[0];
  EXPECT_FALSE(AddGradients(b_, {y, inside}, {x}).ok()) << "ys in different loops";
  const Status s = AddGradients(b_, {inside}, {x}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  auto through_invariant = AddGradients(b_, {inside}, {w});
  EXPECT_TRUE(through_invariant.ok() || through_invariant.status().code() == absl::StatusCode::kInvalidArgument);
}

// While the body is being built nothing goes around the loop yet.
TEST_F(LoopGradients, NoneThroughAnInitialValueFromInside) {
  const Output x = Input({}), w = Input({});
  Repeat(b_, b_.Scalar<int32_t>(3), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
    for (const Output factor : {v[0], x}) {
      const Status s = AddGradients(b, {b.Mul(v[0], factor)}, {x}).status();
      EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
      EXPECT_TRUE(absl::StrContains(s.message(), "initial value")) << s;
    }
    EXPECT_TRUE(AddGradients(b, {b.Mul(v[0], w)}, {v[0], w}).ok());
    return v;
  });
}

// The stack of a long loop holds one matrix an iteration, and is empty when the backward loop is over.
TEST_F(LoopGradients, MemoryOfALongLoop) {
  constexpr int64_t kSide = 16, kSteps = 10'000, kBytes = kSide * kSide * 8;
  const Output x = Input({kSide, kSide}), w = Input({kSide, kSide});
  const Output y =
      Total(b_, Repeat(b_, b_.Scalar<int32_t>(kSteps), {x}, [&](const GraphBuilder& b, Output, const Outputs& v) {
              return Outputs{Tanh(b, b.Add(b.MatMul(v[0], w), v[0]))};
            })[0]);
  const Outputs d = GradientsOf(y, xs_);
  Open();
  ASSERT_FALSE(HasFailure());
  const Tensor zeros = *Tensor::Zeros(DType::kDouble, *Shape::Make({kSide, kSide}));
  const int64_t before = HostAllocator().Stats().bytes_in_use;
  Run({zeros, zeros}, d);
  const AllocatorStats after = HostAllocator().Stats();
  RecordProperty("peak_bytes", std::to_string(after.peak_bytes_in_use - before));
  // What tanh made is also what the next iteration read, so the two stacks share their matrices.
  EXPECT_LT(after.peak_bytes_in_use - before, kSteps * kBytes * 5 / 4);
  EXPECT_LT(after.bytes_in_use - before, 64 * kBytes);
}

// Sums of what a traced step tells.
struct Told {
  int64_t peak = -1, live = 0, pushed = 0, pushes = 0;
};
Told TellMemory(const wire::RunMetadata& encoded) {
  Told told;
  wire::RunMetadata metadata;
  EXPECT_TRUE(wire::Decode(wire::Encode(encoded), &metadata).ok());
  if (!metadata.step_stats) return told;
  for (const wire::NodeExecStats& n : metadata.step_stats->dev_stats[0].node_stats) {
    if (n.node_name == "_SOURCE") told.peak = n.memory[0].peak_bytes, told.live = n.memory[0].live_bytes;
    if (n.timeline_label.find("= StackPushV2") == std::string::npos) continue;
    ++told.pushes;
    told.pushed += n.output[0].tensor_description->allocation_description->requested_bytes;
  }
  return told;
}

// The memory of a step is in its metadata: without a gradient that of 10,000 iterations is that of a few; with it, that
// of what is pushed, and little else. Swapping changes no value.
TEST_F(LoopGradients, MetadataTellTheMemoryOfALongLoop) {
  constexpr int64_t kSide = 32, kSteps = 10'000, kBytes = kSide * kSide * 8;
  const Output x = Input({kSide, kSide});
  Outputs sums, gradients;
  for (const bool swap : {false, true}) {
    LoopOptions options;
    options.swap_memory = swap;
    auto r = WhileLoop(
        b_, {b_.Scalar<int32_t>(0), x},
        [](const GraphBuilder& b, const Outputs& v) -> StatusOr<Outputs> {
          return Outputs{b.Op("Less", {v[0], b.Scalar<int32_t>(static_cast<int32_t>(kSteps))})};
        },
        [](const GraphBuilder& b, const Outputs& v) -> StatusOr<Outputs> {
          return Outputs{b.Add(v[0], b.Scalar<int32_t>(1)), b.Op("Sin", {v[1]})};
        },
        options);
    ASSERT_TRUE(r.ok()) << r.status();
    sums.push_back(Total(b_, (*r)[1]));
    gradients.push_back(GradientsOf(sums.back(), {x})[0]);
  }
  Open();
  ASSERT_FALSE(HasFailure());
  Tensor start = *Tensor::Zeros(DType::kDouble, *Shape::Make({kSide, kSide}));
  for (int64_t i = 0; i < start.num_elements(); ++i) start.mutable_data<double>()[i] = 0.001 * static_cast<double>(i);
  wire::RunOptions options;
  options.trace_level = wire::RunOptions::kSoftwareTrace;
  auto run = [&](Output fetch, Values* out) {
    wire::RunMetadata metadata;
    const Status s = session_->Run(&options, xs_, {start}, {fetch}, {}, out, &metadata);
    EXPECT_TRUE(s.ok()) << s;
    return s.ok() ? TellMemory(metadata) : Told();
  };
  Values plain, swapped, last;
  const Told forward = run(sums[0], &last), backward = run(gradients[0], &plain), swaps = run(gradients[1], &swapped);
  EXPECT_EQ(forward.pushes, 0);
  EXPECT_GE(forward.peak, 0);
  EXPECT_LT(forward.peak, 64 * kBytes) << "bounded, however long the loop";
  for (const Told& told : {backward, swaps}) {
    EXPECT_GE(told.pushes, kSteps);
    EXPECT_GE(told.pushed, kSteps * kBytes);
    EXPECT_GE(told.peak, kSteps * kBytes);
    EXPECT_LT(told.peak, kSteps * kBytes * 5 / 4);
    EXPECT_LT(told.live, 64 * kBytes) << "nothing stays";
  }
  EXPECT_EQ(Elements(plain[0]), Elements(swapped[0]));
}

// First and second order: every stack says whether it may be swapped.
TEST_F(LoopGradients, SwapReachesEveryStack) {
  const Output x = Input({2});
  for (const bool swap : {false, true}) {
    LoopOptions options;
    options.swap_memory = swap;
    const int mark = graph_->graph.num_node_ids();
    auto r = WhileLoop(
        b_, {b_.Scalar<int32_t>(0), x},
        [](const GraphBuilder& b, const Outputs& v) -> StatusOr<Outputs> {
          return Outputs{b.Op("Less", {v[0], b.Scalar<int32_t>(5)})};
        },
        [](const GraphBuilder& b, const Outputs& v) -> StatusOr<Outputs> {
          return Outputs{b.Add(v[0], b.Scalar<int32_t>(1)), b.Op("Sin", {b.Mul(v[1], v[1])})};
        },
        options);
    ASSERT_TRUE(r.ok()) << r.status();
    auto pushes = [&] {
      std::vector<bool> all;
      for (const Node* n : graph_->graph.nodes()) {
        if (n->id() >= mark && n->op_name() == "StackPushV2") all.push_back(*n->Attr<bool>("swap_memory"));
      }
      return all;
    };
    const Output first = GradientsOf(Total(b_, (*r)[1]), {x})[0];
    const size_t of_first = pushes().size();
    EXPECT_GE(of_first, 1u);
    const Output second = GradientsOf(Total(b_, first), {x})[0];
    EXPECT_GT(pushes().size(), of_first);
    GradientsOf(Total(b_, second), {x});
    for (const bool each : pushes()) EXPECT_EQ(each, swap);
  }
}

}  // namespace
}  // namespace millrace
