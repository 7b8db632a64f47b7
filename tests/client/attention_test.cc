// SPDX-License-Identifier: Apache-2.0
// Decoders that read a memory, against plain loops in double.
#define MILLRACE_EXCEPTIONS 1
#include <gtest/gtest.h>

#include "millrace/millrace.h"
#include "millrace/raw_rnn.h"
#include "rnn_bench.h"

namespace {

using millrace::Output;
using millrace::Outputs;
using millrace::Recurrent;
using millrace::Scope;
using millrace::Tensor;
using reference::Matrix;

// One decoder over a plain cell of 5 units; memory [2, 4, 3] of which the examples have 2 and 4 steps.
struct Decoder {
  bool additive = true, scaled = false;  // scaled: normalized or scaled
  size_t layer = 0;

  millrace::Cell Text() const {
    const millrace::AttentionMechanism m =
        additive ? millrace::BahdanauAttention(6, 3, scaled ? "normalize=true" : "")
                 : millrace::LuongAttention(5, 3, scaled ? "scale=true" : "");
    return AttentionWrapper(
        millrace::BasicRNNCell(5), m, layer > 0 ? "attention_layer_size=" + std::to_string(layer) : "");
  }
};

const size_t kLengths[] = {2, 4};
Matrix Memory() { return Numbers(8, 3, 11); }

struct State {
  Matrix h, attention, weights;
};

// The definition. Parameters: kernel of the keys, the cell's two, the mechanism's, the layer's.
void Step(const Decoder& d, const std::vector<Matrix>& p, const Matrix& x, State* s) {
  const Matrix memory = Memory(), keys = reference::Linear(memory, p[0], {});
  s->h = reference::PlainStep(reference::Beside(x, s->attention), s->h, p[1], p[2]);
  const Matrix query = d.additive ? reference::Linear(s->h, p[3], {}) : s->h;
  std::vector<double> v, bias(6);
  double g = 1;
  if (d.additive) {
    v = p[4].v;
    if (d.scaled) {
      double squares = 0;
      for (double e : v) squares += e * e;
      for (double& e : v) e *= p[5].v[0] / std::sqrt(squares);
      bias = p[6].v;
    }
  } else if (d.scaled) {
    g = p[3].v[0];
  }
  Matrix context(2, 3), weights(2, 4);
  for (size_t e = 0; e < 2; ++e) {
    double total = 0;
    for (size_t t = 0; t < kLengths[e]; ++t) {
      double score = 0;
      for (size_t k = 0; k < keys.columns; ++k) {
        const double key = keys.at(e * 4 + t, k);
        score += d.additive ? v[k] * std::tanh(key + query.at(e, k) + bias[k]) : g * key * query.at(e, k);
      }
      total += weights.at(e, t) = std::exp(score);
    }
    for (size_t t = 0; t < 4; ++t) {
      weights.at(e, t) /= total;
      for (size_t j = 0; j < 3; ++j) context.at(e, j) += weights.at(e, t) * memory.at(e * 4 + t, j);
    }
  }
  s->weights = weights;
  s->attention = d.layer > 0 ? reference::Linear(reference::Beside(s->h, context), p.back(), {}) : context;
}

Output MemoryIn(Bench& b) { return b.model.scope().Const(Tensor::Of({2, 4, 3}, Memory().v)); }

const Decoder kDecoders[] = {{true, false, 0}, {true, true, 7}, {false, false, 7}, {false, true, 0}};

TEST(Attention, VariablesHaveTensorFlowsNames) {
  millrace::Graph graph;
  millrace::Model model((Scope(graph)));
  Recurrent rnn(model, "decoder", Decoder{true, true, 7}.Text(), 2);
  std::vector<std::string> names;
  for (const millrace::Variable& v : rnn.variables()) names.push_back(v.ref.name());
  const std::string in = "decoder/attention_wrapper/";
  EXPECT_EQ(names, (std::vector<std::string>{
                       "decoder/memory_layer/kernel:0", in + "basic_rnn_cell/kernel:0", in + "basic_rnn_cell/bias:0",
                       in + "bahdanau_attention/query_layer/kernel:0", in + "bahdanau_attention/attention_v:0",
                       in + "bahdanau_attention/attention_g:0", in + "bahdanau_attention/attention_b:0",
                       in + "attention_layer/kernel:0"}));
  EXPECT_EQ(rnn.state_sizes(), (std::vector<int64_t>{5, 7, -1}));
  EXPECT_EQ(rnn.output_size(), 7);
  millrace::Session session(graph);
  session.RunTargets({model.Initializer()});
  const Tensor g = session.Run({rnn.variables()[5].read})[0];
  EXPECT_EQ(g.shape(), std::vector<int64_t>());
  EXPECT_FLOAT_EQ(g.values<float>()[0], 1 / std::sqrt(6.f));
}

// Three steps in a loop, unrolled, and by the definition.
TEST(Attention, LoopUnrolledAndDefinitionAgree) {
  for (const Decoder& d : kDecoders) {
    Bench b(d.Text(), 2);
    Scope s = b.model.scope();
    b.rnn.Attend(MemoryIn(b), s.Const({int32_t{2}, int32_t{4}}));
    const std::vector<Matrix> xs = {Numbers(2, 2, 1), Numbers(2, 2, 2), Numbers(2, 2, 3)};
    const Recurrent::Steps unrolled = b.rnn.Static({b.Const(xs[0]), b.Const(xs[1]), b.Const(xs[2])});
    const Recurrent::Result looped = b.rnn.Dynamic(s.Const(Stacked(xs, false)));
    ASSERT_EQ(looped.state.size(), 3u);
    State state{Matrix(2, 5), Matrix(2, d.layer > 0 ? d.layer : 3), Matrix(2, 4)};
    std::vector<Matrix> outputs;
    for (const Matrix& x : xs) {
      Step(d, b.parameters, x, &state);
      outputs.push_back(state.attention);
    }
    const std::vector<Matrix> steps = b.Run(unrolled.outputs), last = b.Run(unrolled.state);
    for (size_t t = 0; t < 3; ++t) ExpectNear(steps[t], outputs[t], "step " + std::to_string(t));
    for (const std::vector<Matrix>& got : {last, b.Run(looped.state)}) {
      ExpectNear(got[0], state.h, "h");
      ExpectNear(got[1], state.attention, "attention");
      ExpectNear(got[2], state.weights, "weights");
    }
    ExpectNear(b.Run({looped.outputs})[0], AsMatrix(Stacked(outputs, false)), "outputs");
  }
}

// Gradients of the loop are those of the unrolled steps, also those of the memory and of what makes the keys; and the
// one of the memory agrees with differences of values.
TEST(Attention, GradientsOfLoopAndUnrolledAgree) {
  for (const Decoder& d : kDecoders) {
    Bench b(d.Text(), 2);
    Scope s = b.model.scope();
    const Output memory = s.Placeholder(millrace::DType::kDouble, {2, 4, 3});
    b.rnn.Attend(memory, s.Const({int64_t{2}, int64_t{4}}));
    const std::vector<Matrix> xs = {Numbers(2, 2, 1), Numbers(2, 2, 2), Numbers(2, 2, 3)};
    const Output sequence = s.Const(Stacked(xs, false));
    const Recurrent::Steps unrolled = b.rnn.Static({b.Const(xs[0]), b.Const(xs[1]), b.Const(xs[2])});
    const Recurrent::Result looped = b.rnn.Dynamic(sequence);
    const Output packed = s.Op("Pack", {unrolled.outputs}, {{"axis", 1}});
    auto loss = [&](Output o) { return Output(s.Op("Sum", {s.Op("Mul", {o, o}), s.Const({0, 1, 2})})); };
    Outputs wrt = {memory};
    for (const millrace::Variable& v : b.rnn.variables()) wrt.push_back(v.read);
    Outputs all = b.graph.Gradients({loss(looped.outputs)}, wrt);
    const Outputs same = b.graph.Gradients({loss(packed)}, wrt);
    all.insert(all.end(), same.begin(), same.end());
    all.push_back(loss(packed));
    auto run = [&](const Matrix& m) { return b.session.Run({{memory, Tensor::Of({2, 4, 3}, m.v)}}, all); };
    const std::vector<Tensor> got = run(Memory());
    for (size_t i = 0; i < wrt.size(); ++i) {
      const std::vector<double> u = got[i].values<double>(), v = got[wrt.size() + i].values<double>();
      ASSERT_EQ(u.size(), v.size());
      for (size_t k = 0; k < u.size(); ++k) EXPECT_NEAR(u[k], v[k], 1e-11) << "gradient " << i;
    }
    const std::vector<double> gradient = got[0].values<double>();
    for (size_t k : {size_t{0}, size_t{4}, size_t{13}, size_t{20}}) {
      Matrix up = Memory(), down = Memory();
      up.v[k] += 1e-5;
      down.v[k] -= 1e-5;
      const double slope = (run(up).back().values<double>()[0] - run(down).back().values<double>()[0]) / 2e-5;
      EXPECT_NEAR(gradient[k], slope, 1e-7 * (1 + std::abs(slope)));
    }
    for (size_t k = 6; k < 12; ++k) EXPECT_EQ(gradient[k], 0) << "beyond the length";
  }
}

// A greedy decoder: each output chooses the next input, until the symbol 0 comes.
TEST(Attention, GreedyDecoding) {
  const Decoder d{true, false, 5};
  Bench b(d.Text(), 2);
  Scope s = b.model.scope();
  b.rnn.Attend(MemoryIn(b), s.Const({int32_t{2}, int32_t{4}}));
  const Matrix table = Numbers(5, 2, 21);
  const Output embedding = b.Const(table);
  const millrace::RawRnnResult r = RawRnn(s, b.rnn, [&](const Scope& at, const millrace::RawRnnCall& call) {
    Scope in = at;
    millrace::RawRnnStep next;
    Output symbols = in.Const({int64_t{3}, int64_t{1}});
    if (call.first()) {
      next.finished = in.Op("Less", {in.Const({1, 1}), in.Const({0, 0})});
      next.emit = {in.Const(Tensor(int64_t{0}))};
    } else {
      symbols = in.Op("ArgMax", {call.output, int32_t{1}});
      const Output late = in.Op("GreaterEqual", {call.time, int32_t{6}});
      next.finished = in.Op("LogicalOr", {in.Op("Equal", {symbols, int64_t{0}}), late});
      next.emit = {symbols};
    }
    next.input = in.Op("GatherV2", {embedding, symbols, int32_t{0}});
    next.state = call.first() ? b.rnn.ZeroState(next.input) : call.state;
    return next;
  });
  const Tensor got = b.session.Run({r.emitted[0].Stack(s)})[0];
  State state{Matrix(2, 5), Matrix(2, 5), Matrix(2, 4)};
  size_t symbols[] = {3, 1};
  bool finished[] = {false, false};
  std::vector<int64_t> want;
  for (size_t t = 0; t < 6 && !(finished[0] && finished[1]); ++t) {
    Matrix x(2, 2);
    for (size_t e = 0; e < 2; ++e) x.at(e, 0) = table.at(symbols[e], 0), x.at(e, 1) = table.at(symbols[e], 1);
    const State before = state;
    Step(d, b.parameters, x, &state);
    for (size_t e = 0; e < 2; ++e) {
      symbols[e] = 0;
      for (size_t k = 1; k < 5; ++k) {
        if (state.attention.at(e, k) > state.attention.at(e, symbols[e])) symbols[e] = k;
      }
      want.push_back(finished[e] ? 0 : static_cast<int64_t>(symbols[e]));
      if (finished[e]) {
        for (size_t k = 0; k < 5; ++k) state.h.at(e, k) = before.h.at(e, k);
      }
      finished[e] = finished[e] || symbols[e] == 0;
    }
  }
  EXPECT_EQ(got.values<int64_t>(), want);
}

// Batch and steps that only a step knows, in a loop with lengths and its gradient.
TEST(Attention, UnknownBatchAndSteps) {
  const Decoder d{true, false, 7};
  Bench b(d.Text(), 2);
  Scope s = b.model.scope();
  const Output memory = s.Placeholder(millrace::DType::kDouble, {-1, -1, 3});
  const Output limits = s.Placeholder(millrace::DType::kInt32, {-1});
  const Output x = s.Placeholder(millrace::DType::kDouble, {-1, -1, 2});
  b.rnn.Attend(memory, limits);
  const Recurrent::Result r = b.rnn.Dynamic(x, {.sequence_length = s.Const({int32_t{3}, int32_t{3}})});
  const Output sum = s.Op("Sum", {r.outputs, s.Const({0, 1, 2})});
  const Outputs gradient = b.graph.Gradients({sum}, {memory});
  const std::vector<Matrix> xs = {Numbers(2, 2, 1), Numbers(2, 2, 2), Numbers(2, 2, 3)};
  const std::vector<Tensor> got = b.session.Run(
      {{memory, Tensor::Of({2, 4, 3}, Memory().v)},
       {limits, Tensor::Of<int32_t>({2}, {2, 4})},
       {x, Stacked(xs, false)}},
      {r.outputs, r.state[2], gradient[0]});
  State state{Matrix(2, 5), Matrix(2, 7), Matrix(2, 4)};
  std::vector<Matrix> outputs;
  for (const Matrix& step : xs) {
    Step(d, b.parameters, step, &state);
    outputs.push_back(state.attention);
  }
  ExpectNear(AsMatrix(got[0]), AsMatrix(Stacked(outputs, false)), "outputs");
  ExpectNear(AsMatrix(got[1]), state.weights, "weights");
  EXPECT_EQ(got[2].shape(), (std::vector<int64_t>{2, 4, 3}));
}

TEST(Attention, AnExampleWithoutMemoryReadsZeros) {
  Bench b(Decoder{false, false, 0}.Text(), 2);
  Scope s = b.model.scope();
  b.rnn.Attend(MemoryIn(b), s.Const({int32_t{0}, int32_t{4}}));
  const Output x = b.Const(Numbers(2, 2, 1));
  const Matrix read = b.Run({b.rnn.Step(x, b.rnn.ZeroState(x)).outputs})[0];
  for (size_t k = 0; k < 3; ++k) EXPECT_EQ(read.at(0, k), 0);
  EXPECT_NE(read.at(1, 0), 0);
}

TEST(Attention, SaysWhatIsWrong) {
  millrace::Graph graph;
  millrace::Model model((Scope(graph)));
  const auto make = [&](const millrace::Cell& cell) { Recurrent(model, "x", cell, 2); };
  EXPECT_THROW(make(AttentionWrapper(millrace::GRUCell(4), millrace::LuongAttention(5, 3))), millrace::Error);
  EXPECT_THROW(
      make(AttentionWrapper(millrace::GRUCell(4), millrace::LuongAttention(4, 3, "normalize=true"))), millrace::Error);
  EXPECT_THROW(make(AttentionWrapper(millrace::GRUCell(4), millrace::BahdanauAttention(0, 3))), millrace::Error);
  EXPECT_THROW(make(AttentionCellWrapper(AttentionWrapper(millrace::GRUCell(4), millrace::BahdanauAttention(4, 3)), 2)),
               millrace::Error);
  // Without a memory nothing can be built.
  Recurrent rnn(model, "y", AttentionWrapper(millrace::GRUCell(4), millrace::BahdanauAttention(4, 3)), 2);
  const Output x = model.scope().Const(Tensor::Of<float>({1, 2}, {1, 2}));
  EXPECT_THROW(rnn.ZeroState(x), millrace::Error);
  EXPECT_THROW(rnn.Step(x, {x, x, x}), millrace::Error);
}

}  // namespace
