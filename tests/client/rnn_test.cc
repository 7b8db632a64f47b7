// SPDX-License-Identifier: Apache-2.0
// Recurrent networks through the C++ client, against plain loops in double.
#define MILLRACE_EXCEPTIONS 1
#include <gtest/gtest.h>

#include "millrace/millrace.h"
#include "millrace/rnn.h"
#include "rnn_bench.h"

namespace {

using millrace::Cell;
using millrace::DType;
using millrace::Graph;
using millrace::Model;
using millrace::Output;
using millrace::Recurrent;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;
using reference::Matrix;

std::vector<Output> Flat(const Recurrent::Result& r) {
  std::vector<Output> all = {r.outputs};
  all.insert(all.end(), r.state.begin(), r.state.end());
  return all;
}

TEST(Recurrent, VariablesHaveTensorFlowsNames) {
  Graph graph;
  Model model((Scope(graph)));
  Recurrent rnn(model, "rnn",
                millrace::MultiRNNCell({millrace::LSTMCell(4, "use_peepholes=true, num_proj=3"), millrace::GRUCell(5),
                                        DropoutWrapper(millrace::BasicLSTMCell(6), "output_keep_prob=0.5")}),
                2);
  std::vector<std::string> names;
  for (const millrace::Variable& v : rnn.variables()) names.push_back(v.ref.name());
  const std::string stack = "rnn/multi_rnn_cell/";
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          stack + "cell_0/lstm_cell/kernel:0", stack + "cell_0/lstm_cell/bias:0", stack + "cell_0/lstm_cell/w_f_diag:0",
          stack + "cell_0/lstm_cell/w_i_diag:0", stack + "cell_0/lstm_cell/w_o_diag:0",
          stack + "cell_0/lstm_cell/projection/kernel:0", stack + "cell_1/gru_cell/gates/kernel:0",
          stack + "cell_1/gru_cell/gates/bias:0", stack + "cell_1/gru_cell/candidate/kernel:0",
          stack + "cell_1/gru_cell/candidate/bias:0", stack + "cell_2/basic_lstm_cell/kernel:0",
          stack + "cell_2/basic_lstm_cell/bias:0"}));
  EXPECT_EQ(rnn.state_sizes(), (std::vector<int64_t>{4, 3, 5, 6, 6}));
  EXPECT_EQ(rnn.output_size(), 6);
  millrace::Shape shape;
  ASSERT_TRUE(graph.ShapeOf(rnn.variables()[6].ref, &shape));
  EXPECT_EQ(shape, (millrace::Shape{8, 10}));
}

TEST(Recurrent, PlainAndGatedCells) {
  const Matrix x = Numbers(2, 3, 5), h = Numbers(2, 4, 6);
  Bench plain(millrace::BasicRNNCell(4), 3);
  std::vector<Matrix> got = plain.Run(Flat(plain.rnn.Step(plain.Const(x), {plain.Const(h)})));
  Matrix want = reference::PlainStep(x, h, plain.parameters[0], plain.parameters[1]);
  ExpectNear(got[0], want, "output");
  ExpectNear(got[1], want, "state");

  Bench gru(millrace::GRUCell(4), 3);
  got = gru.Run(Flat(gru.rnn.Step(gru.Const(x), {gru.Const(h)})));
  const std::vector<Matrix>& p = gru.parameters;
  ExpectNear(got[0], reference::GruStep(x, h, p[0], p[1], p[2], p[3]), "gru");
}

TEST(Recurrent, LstmWithEverything) {
  Bench b(millrace::LSTMCell(4, "use_peepholes=true, num_proj=3, cell_clip=0.375, proj_clip=0.25, forget_bias=0.5"), 3);
  const std::vector<Matrix>& p = b.parameters;
  const reference::Lstm lstm{p[0], p[1], p[2], p[3], p[4], p[5], 0.5, 0.375, 0.25};
  const Matrix x = Numbers(2, 3, 5);
  Matrix c = Numbers(2, 4, 6), h = Numbers(2, 3, 7);
  const std::vector<Matrix> got = b.Run(Flat(b.rnn.Step(b.Const(x), {b.Const(c), b.Const(h)})));
  lstm.Step(x, &c, &h);
  ExpectNear(got[0], h, "output");
  ExpectNear(got[1], c, "c");
  ExpectNear(got[2], h, "h");
}

TEST(Recurrent, ResidualAndStack) {
  Bench b(millrace::MultiRNNCell({millrace::BasicRNNCell(3), ResidualWrapper(millrace::BasicLSTMCell(3))}), 2);
  const std::vector<Matrix>& p = b.parameters;
  const Matrix x = Numbers(2, 2, 5), h0 = Numbers(2, 3, 6);
  Matrix c = Numbers(2, 3, 7), h = Numbers(2, 3, 8);
  const std::vector<Matrix> got = b.Run(Flat(b.rnn.Step(b.Const(x), {b.Const(h0), b.Const(c), b.Const(h)})));
  const Matrix middle = reference::PlainStep(x, h0, p[0], p[1]);
  const reference::Lstm lstm{p[2], p[3], {}, {}, {}, {}};
  lstm.Step(middle, &c, &h);
  Matrix out = middle;
  for (size_t i = 0; i < out.v.size(); ++i) out.v[i] += h.v[i];
  ExpectNear(got[0], out, "output");
  ExpectNear(got[1], middle, "state of the first");
  ExpectNear(got[2], c, "c of the second");
  ExpectNear(got[3], h, "h of the second");
}

TEST(Recurrent, DropoutKeepsOrDropsAndScales) {
  Bench plain(millrace::BasicRNNCell(50), 3);
  Bench b(DropoutWrapper(millrace::BasicRNNCell(50), "output_keep_prob=0.25, state_keep_prob=0.5, seed=3"), 3);
  const Matrix x = Numbers(20, 3, 5), h = Numbers(20, 50, 6);
  const Matrix all = plain.Run(Flat(plain.rnn.Step(plain.Const(x), {plain.Const(h)})))[0];
  const std::vector<Matrix> got = b.Run(Flat(b.rnn.Step(b.Const(x), {b.Const(h)})));
  for (size_t k = 0; k < 2; ++k) {
    const double keep = k == 0 ? 0.25 : 0.5;
    double kept = 0;
    for (size_t i = 0; i < all.v.size(); ++i) {
      if (got[k].v[i] == 0) continue;
      kept += 1;
      EXPECT_NEAR(got[k].v[i], all.v[i] / keep, 1e-12);
    }
    EXPECT_NEAR(kept / static_cast<double>(all.v.size()), keep, 0.07);
  }
}

// The wrapper's definition over a plain cell, window 2, outputs as wide as the cell's.
TEST(Recurrent, AttentionOverItsOwnPast) {
  Bench b(AttentionCellWrapper(millrace::BasicRNNCell(3), 2, "attn_vec_size=5"), 4);
  const std::vector<Matrix>& p =
      b.parameters;  // kernel, bias, cell's two, attn_w, attn_v, kernel, bias, projection's two
  ASSERT_EQ(p.size(), 10u);
  const Matrix x = Numbers(2, 4, 5), h = Numbers(2, 3, 6), read = Numbers(2, 3, 7), window = Numbers(2, 6, 8);
  const std::vector<Matrix> got = b.Run(Flat(b.rnn.Step(b.Const(x), {b.Const(h), b.Const(read), b.Const(window)})));
  const Matrix inner = reference::PlainStep(reference::Linear(reference::Beside(x, read), p[0], p[1].v), h, p[2], p[3]);
  const Matrix y = reference::Linear(inner, p[6], p[7].v);
  Matrix new_read(2, 3);
  for (size_t e = 0; e < 2; ++e) {
    double scores[2] = {0, 0};
    for (size_t t = 0; t < 2; ++t) {
      for (size_t k = 0; k < 5; ++k) {
        double feature = y.at(e, k);
        for (size_t j = 0; j < 3; ++j) feature += window.at(e, t * 3 + j) * p[4].v[j * 5 + k];
        scores[t] += p[5].v[k] * std::tanh(feature);
      }
    }
    const double first = 1 / (1 + std::exp(scores[1] - scores[0]));
    for (size_t j = 0; j < 3; ++j) new_read.at(e, j) = first * window.at(e, j) + (1 - first) * window.at(e, 3 + j);
  }
  const Matrix out = reference::Linear(reference::Beside(inner, new_read), p[8], p[9].v);
  ExpectNear(got[0], out, "output");
  ExpectNear(got[1], inner, "state");
  ExpectNear(got[2], new_read, "what was read");
  Matrix moved(2, 6);
  for (size_t e = 0; e < 2; ++e) {
    for (size_t j = 0; j < 3; ++j) moved.at(e, j) = window.at(e, 3 + j), moved.at(e, 3 + j) = out.at(e, j);
  }
  ExpectNear(got[3], moved, "window");
}

TEST(Recurrent, StaticLoopStopsAtTheLengths) {
  Bench b(millrace::BasicLSTMCell(4), 3);
  const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  const std::vector<Output> inputs = {b.Const(xs[0]), b.Const(xs[1]), b.Const(xs[2])};
  for (const bool with_lengths : {false, true}) {
    Recurrent::Options options;
    if (with_lengths) options.sequence_length = b.model.scope().Const({int64_t{1}, int64_t{3}});
    const Recurrent::Steps s = b.rnn.Static(inputs, options);
    std::vector<Output> fetches = s.outputs;
    fetches.insert(fetches.end(), s.state.begin(), s.state.end());
    const std::vector<Matrix> got = b.Run(fetches);
    const reference::Lstm lstm{b.parameters[0], b.parameters[1], {}, {}, {}, {}};
    const Unrolled want = RunReference(lstm, xs, with_lengths ? std::vector<size_t>{1, 3} : std::vector<size_t>{3, 3});
    for (size_t t = 0; t < 3; ++t) ExpectNear(got[t], want.outputs[t], "step " + std::to_string(t));
    ExpectNear(got[3], want.c, "c");
    ExpectNear(got[4], want.h, "h");
  }
}

// The fused layer gives what the unrolled cell gives, and the same gradients.
TEST(Recurrent, FusedLayerAgreesWithUnrolledCell) {
  const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  Graph graph;
  Model model((Scope(graph)));
  Recurrent fused(model, "rnn", millrace::MultiRNNCell({millrace::LSTMBlockCell(4), millrace::LSTMBlockCell(5)}), 3);
  Scope s(graph);
  const Output x = s.Const(Stacked(xs, true)), lengths = s.Const({int64_t{1}, int64_t{3}});
  const Recurrent::Result whole = fused.Dynamic(x, {.sequence_length = lengths});
  std::vector<Output> steps;
  for (int64_t t = 0; t < 3; ++t) {
    steps.push_back(s.Op("GatherV2", {x, s.Const(Tensor(t)), s.Const(Tensor(int32_t{1}))}));
  }
  const Recurrent::Steps unrolled = fused.Static(steps, {.sequence_length = lengths});
  const Output packed = s.Op("Pack", {unrolled.outputs}, {{"axis", 1}});
  auto loss = [&](Output outputs, const std::vector<Output>& state) {
    const Output sum = s.Op("Sum", {s.Op("Mul", {outputs, outputs}), s.Const({0, 1, 2})});
    return Output(s.Op("AddV2", {sum, s.Op("Sum", {state[0], s.Const({0, 1})})}));
  };
  std::vector<Output> vars;
  for (const millrace::Variable& v : fused.variables()) vars.push_back(v.read);
  const std::vector<Output> g1 = graph.Gradients({loss(whole.outputs, whole.state)}, vars);
  const std::vector<Output> g2 = graph.Gradients({loss(packed, unrolled.state)}, vars);
  std::vector<Output> a = {whole.outputs}, b = {packed};
  a.insert(a.end(), whole.state.begin(), whole.state.end());
  a.insert(a.end(), g1.begin(), g1.end());
  b.insert(b.end(), unrolled.state.begin(), unrolled.state.end());
  b.insert(b.end(), g2.begin(), g2.end());
  Session session(graph);
  session.RunTargets({model.Initializer()});
  const std::vector<Tensor> got = session.Run(a), want = session.Run(b);
  for (size_t i = 0; i < got.size(); ++i) {
    const std::vector<float> u = got[i].values<float>(), v = want[i].values<float>();
    ASSERT_EQ(u.size(), v.size()) << i;
    for (size_t k = 0; k < u.size(); ++k) EXPECT_NEAR(u[k], v[k], 1e-5) << "value " << i << " element " << k;
  }
}

// The loop gives what the unrolled cell gives, and the same gradients, batch first or steps first.
TEST(Recurrent, LoopAgreesWithUnrolledCell) {
  const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  for (const Cell& cell :
       {millrace::MultiRNNCell({millrace::LSTMCell(4, "use_peepholes=true, num_proj=3"), millrace::GRUCell(4)}),
        millrace::AttentionCellWrapper(millrace::BasicRNNCell(4), 2), millrace::GRUBlockCell(4)}) {
    for (const bool with_lengths : {false, true}) {
      const bool fused = cell.text().find("Block") != std::string::npos, time_major = !with_lengths;
      Graph graph;
      Model model((Scope(graph)));
      Recurrent rnn(model, "rnn", cell, 3, fused ? DType::kFloat : DType::kDouble);
      Scope s(graph);
      const Output x = s.Const(Stacked(xs, fused));
      Recurrent::Options options;
      if (with_lengths) options.sequence_length = s.Const({int32_t{1}, int32_t{3}});
      std::vector<Output> steps;
      for (int64_t t = 0; t < 3; ++t) {
        steps.push_back(s.Op("GatherV2", {x, s.Const(Tensor(t)), s.Const(Tensor(int32_t{1}))}));
      }
      const Recurrent::Steps unrolled = rnn.Static(steps, options);
      options.time_major = time_major;
      Output in = x;
      if (time_major) in = s.Op("Transpose", {x, s.Const({1, 0, 2})});
      const Recurrent::Result looped = rnn.Dynamic(in, options);
      const Output packed = s.Op("Pack", {unrolled.outputs}, {{"axis", time_major ? 0 : 1}});
      auto loss = [&](Output outputs, const std::vector<Output>& state) {
        const Output sum = s.Op("Sum", {s.Op("Mul", {outputs, outputs}), s.Const({0, 1, 2})});
        return Output(s.Op("AddV2", {sum, s.Op("Sum", {state[0], s.Const({0, 1})})}));
      };
      std::vector<Output> wrt;
      for (const millrace::Variable& v : rnn.variables()) wrt.push_back(v.read);
      wrt.push_back(x);
      const std::vector<Output> g1 = graph.Gradients({loss(looped.outputs, looped.state)}, wrt);
      const std::vector<Output> g2 = graph.Gradients({loss(packed, unrolled.state)}, wrt);
      std::vector<Output> a = {looped.outputs}, b = {packed};
      a.insert(a.end(), looped.state.begin(), looped.state.end());
      a.insert(a.end(), g1.begin(), g1.end());
      b.insert(b.end(), unrolled.state.begin(), unrolled.state.end());
      b.insert(b.end(), g2.begin(), g2.end());
      Session session(graph);
      session.RunTargets({model.Initializer()});
      const std::vector<Tensor> got = session.Run(a), want = session.Run(b);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].shape(), want[i].shape()) << cell.text() << " value " << i;
        if (fused) {
          const std::vector<float> u = got[i].values<float>(), v = want[i].values<float>();
          for (size_t k = 0; k < u.size(); ++k) EXPECT_NEAR(u[k], v[k], 1e-5) << cell.text() << " value " << i;
        } else {
          const std::vector<double> u = got[i].values<double>(), v = want[i].values<double>();
          for (size_t k = 0; k < u.size(); ++k) EXPECT_NEAR(u[k], v[k], 1e-12) << cell.text() << " value " << i;
        }
      }
    }
  }
}

TEST(Recurrent, BothDirections) {
  const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  Bench b(millrace::BasicLSTMCell(4), 3);
  const Output lengths = b.model.scope().Const({int64_t{2}, int64_t{3}});
  const Recurrent::BothResults r =
      Recurrent::Bidirectional(b.rnn, b.rnn, b.model.scope().Const(Stacked(xs, false)), {.sequence_length = lengths});
  const std::vector<Tensor> got =
      b.session.Run({r.forward.outputs, r.backward.outputs, r.forward.state[1], r.backward.state[1]});
  const reference::Lstm lstm{b.parameters[0], b.parameters[1], {}, {}, {}, {}};
  const std::vector<size_t> sizes = {2, 3};
  // Example 0 has two steps: turned around they are steps 1, 0, 2.
  std::vector<Matrix> turned = {xs[2], xs[1], xs[0]};
  for (size_t k = 0; k < 3; ++k) {
    turned[0].at(0, k) = xs[1].at(0, k);
    turned[1].at(0, k) = xs[0].at(0, k);
    turned[2].at(0, k) = xs[2].at(0, k);
  }
  const Unrolled forward = RunReference(lstm, xs, sizes), backward = RunReference(lstm, turned, sizes);
  std::vector<Matrix> back = {backward.outputs[2], backward.outputs[1], backward.outputs[0]};
  for (size_t k = 0; k < 4; ++k) {
    for (size_t t = 0; t < 3; ++t) back[t].at(0, k) = t < 2 ? backward.outputs[1 - t].at(0, k) : 0;
  }
  ExpectNear(AsMatrix(got[0]), AsMatrix(Stacked(forward.outputs, false)), "forward");
  ExpectNear(AsMatrix(got[1]), AsMatrix(Stacked(back, false)), "backward");
  ExpectNear(AsMatrix(got[2]), forward.h, "forward state");
  ExpectNear(AsMatrix(got[3]), backward.h, "backward state");
}

TEST(Recurrent, AttentionOverAMemory) {
  Graph graph;
  Scope s(graph);
  const Matrix query = Numbers(2, 3, 1), keys = Numbers(8, 3, 2), memory = Numbers(8, 2, 3), kernel = Numbers(3, 3, 4);
  const Matrix v = Numbers(1, 3, 5);
  const size_t lengths[] = {2, 4};
  const Tensor k = Tensor::Of({2, 4, 3}, keys.v), m = Tensor::Of({2, 4, 2}, memory.v);
  const std::vector<Output> limit = {s.Const({int32_t{2}, int32_t{4}})};
  const std::vector<Output> luong = s.Composite("LuongAttention", {AsTensor(query), k, m, limit}, {{"scale", 0.5f}});
  const std::vector<Output> bahdanau =
      s.Composite("BahdanauAttention", {AsTensor(query), k, m, AsTensor(kernel), Tensor::Of({3}, v.v), limit});
  const std::vector<Tensor> got = Session(graph).Run({luong[0], luong[1], bahdanau[0], bahdanau[1]});
  const Matrix projected = reference::Linear(query, kernel, {});
  for (size_t kind = 0; kind < 2; ++kind) {
    Matrix context(2, 2), weights(2, 4);
    for (size_t e = 0; e < 2; ++e) {
      double total = 0;
      for (size_t t = 0; t < lengths[e]; ++t) {
        double score = 0;
        for (size_t j = 0; j < 3; ++j) {
          const double key = keys.at(e * 4 + t, j);
          score += kind == 0 ? 0.5 * key * query.at(e, j) : v.v[j] * std::tanh(key + projected.at(e, j));
        }
        total += weights.at(e, t) = std::exp(score);
      }
      for (size_t t = 0; t < 4; ++t) {
        weights.at(e, t) /= total;
        for (size_t j = 0; j < 2; ++j) context.at(e, j) += weights.at(e, t) * memory.at(e * 4 + t, j);
      }
    }
    ExpectNear(AsMatrix(got[2 * kind]), context, "context");
    ExpectNear(AsMatrix(got[2 * kind + 1]), weights, "alignments");
  }
}

TEST(Recurrent, SequenceLossLeavesPaddingOut) {
  Graph graph;
  Scope s(graph);
  const Matrix logits = Numbers(4, 3, 2);  // [2, 2, 3]
  const std::vector<int32_t> targets = {0, 2, 1, 1};
  const std::vector<double> weights = {1, 0, 0.5, 2};
  double sum = 0, total = 0, first = 0;
  for (size_t i = 0; i < 4; ++i) {
    double z = 0;
    for (size_t k = 0; k < 3; ++k) z += std::exp(logits.at(i, k));
    const double loss = std::log(z) - logits.at(i, static_cast<size_t>(targets[i]));
    sum += weights[i] * loss;
    total += weights[i];
    if (i < 2) first += weights[i] * loss;
  }
  const Tensor x = Tensor::Of({2, 2, 3}, logits.v), t = Tensor::Of({2, 2}, targets), w = Tensor::Of({2, 2}, weights);
  const Output mean = s.Composite("SequenceLoss", {x, t, w})[0];
  const Output by_example = s.Composite("SequenceLoss", {x, t, w}, {{"average_across_batch", false}})[0];
  const std::vector<Tensor> got = Session(graph).Run({mean, by_example});
  EXPECT_NEAR(got[0].scalar<double>(), sum / total, 1e-10);
  EXPECT_NEAR(got[1].values<double>()[0], first, 1e-10);  // the first example's weights add up to 1
}

TEST(Recurrent, RefusesWhatIsNoCell) {
  std::string deep = "GRUCell(num_units=2)";
  for (int i = 0; i < 30; ++i) deep = "ResidualWrapper(" + deep + ")";
  for (const std::string& text :
       {std::string(""), std::string("LSTMCell"), std::string("NoCell()"), std::string("LSTMCell(num_units=0)"),
        std::string("LSTMCell(units=3)"), std::string("LSTMCell(num_units=3"),
        std::string("LSTMCell(num_units=3, num_units=4)"), std::string("MultiRNNCell()"),
        std::string("LSTMCell(num_units=99999999999)"), std::string("GRUCell(GRUCell(num_units=2))"),
        std::string("DropoutWrapper(GRUCell(num_units=2), input_keep_prob=0.0)"),
        std::string("ResidualWrapper(GRUCell(num_units=3))"), std::string(",,,(((=="), std::string(100000, '('),
        deep}) {
    Graph graph;
    Model model((Scope(graph)));
    EXPECT_THROW(Recurrent(model, "rnn", Cell(text), 2), millrace::Error) << text.substr(0, 60);
  }
}

}  // namespace
