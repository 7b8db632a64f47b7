// SPDX-License-Identifier: Apache-2.0
// Recurrent networks whose inputs a function decides, against plain loops in double.
#define MILLRACE_EXCEPTIONS 1
#include "millrace/raw_rnn.h"

#include <gtest/gtest.h>

#include "millrace/millrace.h"
#include "rnn_bench.h"

namespace {

using millrace::DType;
using millrace::Output;
using millrace::Outputs;
using millrace::RawRnnCall;
using millrace::RawRnnStep;
using millrace::Recurrent;
using millrace::Scope;
using millrace::Tensor;
using reference::Matrix;

const std::vector<Matrix>& Inputs() {
  static const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  return xs;
}

// Feeds the steps of Inputs(), then zeros; stops at the lengths 1 and 3.
RawRnnStep FromInputs(Bench& b, const Scope& at, const RawRnnCall& call) {
  Scope s = at;
  RawRnnStep next;
  next.state = call.first() ? b.rnn.ZeroState(b.Const(Inputs()[0])) : call.state;
  next.finished = s.Op("GreaterEqual", {call.time, Tensor::Of<int32_t>({2}, {1, 3})});
  const Output all = s.Const(Tensor::Of({4, 2, 3}, [] {
    std::vector<double> v;
    for (const Matrix& x : Inputs()) v.insert(v.end(), x.v.begin(), x.v.end());
    v.resize(24);
    return v;
  }()));
  next.input = s.Op("GatherV2", {all, call.time, int32_t{0}});
  return next;
}

TEST(RawRnn, FollowsInputsAndStopsAtTheLengths) {
  Bench b(millrace::BasicLSTMCell(4), 3);
  const millrace::RawRnnResult r =
      RawRnn(b.model.scope(), b.rnn, [&](const Scope& s, const RawRnnCall& call) { return FromInputs(b, s, call); });
  ASSERT_EQ(r.emitted.size(), 1u);
  EXPECT_EQ(r.emitted[0].element, (millrace::Shape{2, 4}));
  EXPECT_TRUE(r.loop_state.empty());
  const Output stacked = r.emitted[0].Stack(b.model.scope());
  const std::vector<Tensor> got = b.session.Run({stacked, r.state[0], r.state[1]});
  const reference::Lstm lstm{b.parameters[0], b.parameters[1], {}, {}, {}, {}};
  const Unrolled want = RunReference(lstm, Inputs(), {1, 3});
  EXPECT_EQ(got[0].shape(), (std::vector<int64_t>{3, 2, 4}));
  Matrix outputs(0, 4);
  for (const Matrix& m : want.outputs) {
    outputs.v.insert(outputs.v.end(), m.v.begin(), m.v.end());
    outputs.rows += 2;
  }
  ExpectNear(AsMatrix(got[0]), outputs, "outputs");
  ExpectNear(AsMatrix(got[1]), want.c, "c");
  ExpectNear(AsMatrix(got[2]), want.h, "h");
}

// The gradients are those of the loop over a tensor.
TEST(RawRnn, HasTheGradientsOfDynamic) {
  Bench b(millrace::GRUCell(4), 3);
  Scope s = b.model.scope();
  const millrace::RawRnnResult raw =
      RawRnn(s, b.rnn, [&](const Scope& at, const RawRnnCall& call) { return FromInputs(b, at, call); });
  const Recurrent::Result whole =
      b.rnn.Dynamic(s.Const(Stacked(Inputs(), false)), {.sequence_length = s.Const({int32_t{1}, int32_t{3}})});
  auto loss = [&](Output outputs, Output state) {
    const Output sum = s.Op("Sum", {s.Op("Mul", {outputs, outputs}), s.Const({0, 1, 2})});
    return Output(s.Op("AddV2", {sum, s.Op("Sum", {state, s.Const({0, 1})})}));
  };
  Outputs vars;
  for (const millrace::Variable& v : b.rnn.variables()) vars.push_back(v.read);
  const Outputs g1 = b.graph.Gradients({loss(raw.emitted[0].Stack(s), raw.state[0])}, vars);
  const Outputs g2 = b.graph.Gradients({loss(whole.outputs, whole.state[0])}, vars);
  const std::vector<Matrix> got = b.Run(g1), want = b.Run(g2);
  for (size_t i = 0; i < want.size(); ++i) ExpectNear(got[i], want[i], "gradient " + std::to_string(i), 1e-11);
}

// Each output is the next input; the function counts its calls and emits what it likes: the time, int32 [2, 1], and
// the first column [2].
TEST(RawRnn, OwnEmissionsAndLoopState) {
  Bench b(millrace::BasicRNNCell(3), 3);
  const Matrix x0 = Inputs()[0];
  const millrace::RawRnnResult r = RawRnn(b.model.scope(), b.rnn, [&](const Scope& at, const RawRnnCall& call) {
    Scope s = at;
    RawRnnStep next;
    next.finished = s.Op("GreaterEqual", {call.time, Tensor::Of<int32_t>({2}, {4, 2})});
    if (call.first()) {
      next.input = b.Const(x0);
      next.state = b.rnn.ZeroState(next.input);
      next.emit = {s.Const({int32_t{0}}), s.Const(Tensor(0.0))};
      next.loop_state = {s.Const(Tensor(int64_t{10}))};
      return next;
    }
    next.input = call.output;
    next.state = call.state;
    const Output column = s.Op("Slice", {call.output, s.Const({0, 0}), s.Const({2, 1})});
    next.emit = {s.Op("Fill", {s.Const({2, 1}), call.time}), s.Op("Squeeze", {column}, {{"squeeze_dims", {1}}})};
    next.loop_state = {s.Op("AddV2", {call.loop_state[0], int64_t{1}})};
    return next;
  });
  ASSERT_EQ(r.emitted.size(), 2u);
  const std::vector<Tensor> got = b.session.Run(
      {r.emitted[0].Stack(b.model.scope()), r.emitted[1].Stack(b.model.scope()), r.loop_state[0], r.state[0]});
  EXPECT_EQ(got[0].values<int32_t>(), (std::vector<int32_t>{1, 1, 2, 2, 3, 0, 4, 0}));
  EXPECT_EQ(got[2].values<int64_t>(), (std::vector<int64_t>{14}));
  Matrix x = x0, h(2, 3);
  std::vector<double> column;
  for (size_t t = 0; t < 4; ++t) {
    const Matrix next = reference::PlainStep(x, h, b.parameters[0], b.parameters[1]);
    for (size_t e = 0; e < 2; ++e) {
      const bool running = e == 0 || t < 2;
      column.push_back(running ? next.at(e, 0) : 0);
      for (size_t k = 0; k < 3 && running; ++k) h.at(e, k) = next.at(e, k);
    }
    x = next;
  }
  ExpectNear(AsMatrix(got[1]), Matrix(4, 2, column), "column");
  ExpectNear(AsMatrix(got[3]), h, "state");
}

// All are finished before the first step: nothing is emitted, the state is the initial one.
TEST(RawRnn, MayEndBeforeItBegins) {
  Bench b(millrace::BasicRNNCell(3), 3);
  const millrace::RawRnnResult r = RawRnn(b.model.scope(), b.rnn, [&](const Scope& at, const RawRnnCall& call) {
    Scope s = at;
    RawRnnStep next;
    next.finished = s.Const(Tensor(true));
    next.input = b.Const(Inputs()[0]);
    next.state = call.first() ? Outputs{b.Const(Numbers(2, 3, 9))} : call.state;
    return next;
  });
  const std::vector<Tensor> got = b.session.Run({r.emitted[0].Stack(b.model.scope()), r.state[0]});
  EXPECT_EQ(got[0].shape(), (std::vector<int64_t>{0, 2, 3}));
  ExpectNear(AsMatrix(got[1]), Numbers(2, 3, 9), "state");
}

TEST(RawRnn, SaysWhatIsMissing) {
  Bench b(millrace::BasicRNNCell(3), 3);
  const auto nothing = [](const Scope&, const RawRnnCall&) { return RawRnnStep(); };
  EXPECT_THROW(RawRnn(b.model.scope(), b.rnn, nothing), millrace::Error);
  const auto forgets = [&](const Scope& at, const RawRnnCall& call) {
    RawRnnStep next = FromInputs(b, at, call);
    if (!call.first()) next.state.clear();
    return next;
  };
  EXPECT_THROW(RawRnn(b.model.scope(), b.rnn, forgets), millrace::Error);
}

}  // namespace
