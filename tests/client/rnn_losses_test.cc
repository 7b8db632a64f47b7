// SPDX-License-Identifier: Apache-2.0
// Losses of sequences and both directions unrolled, against plain loops in double.
#define MILLRACE_EXCEPTIONS 1
#include <gtest/gtest.h>

#include "millrace/millrace.h"
#include "rnn_bench.h"

namespace {

using millrace::Output;
using millrace::Recurrent;
using millrace::Scope;
using millrace::Tensor;
using reference::Matrix;
using Outputs = std::vector<Output>;

// The cross entropy of a row of logits.
double Loss(const Matrix& logits, size_t row, int32_t target) {
  double z = 0;
  for (size_t k = 0; k < logits.columns; ++k) z += std::exp(logits.at(row, k));
  return std::log(z) - logits.at(row, static_cast<size_t>(target));
}

// Two examples of three steps; the second one's last step, and all of its first, do not count.
const std::vector<int32_t> kTargets = {0, 2, 1, 1, 2, 0};
const std::vector<double> kWeights = {1, 0.5, 2, 0, 3, 0};

TEST(SequenceLoss, AllFourMeans) {
  millrace::Graph graph;
  Scope s(graph);
  const Matrix logits = Numbers(6, 4, 2);  // [2, 3, 4]
  const Tensor x = Tensor::Of({2, 3, 4}, logits.v), t = Tensor::Of({2, 3}, kTargets), w = Tensor::Of({2, 3}, kWeights);
  Outputs made;
  for (const bool time : {true, false}) {
    for (const bool batch : {true, false}) {
      made.push_back(s.Composite(
          "SequenceLoss", {x, t, w}, {{"average_across_timesteps", time}, {"average_across_batch", batch}})[0]);
    }
  }
  const std::vector<Tensor> got = millrace::Session(graph).Run(made);
  double all = 0, weight = 0, rows[2] = {}, row_weights[2] = {}, columns[3] = {}, column_weights[3] = {};
  std::vector<double> each;
  for (size_t i = 0; i < 6; ++i) {
    const double loss = kWeights[i] * Loss(logits, i, kTargets[i]);
    each.push_back(loss);
    all += loss, weight += kWeights[i];
    rows[i / 3] += loss, row_weights[i / 3] += kWeights[i];
    columns[i % 3] += loss, column_weights[i % 3] += kWeights[i];
  }
  EXPECT_NEAR(got[0].scalar<double>(), all / weight, 1e-10);
  ASSERT_EQ(got[1].shape(), std::vector<int64_t>{2});
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(got[1].values<double>()[i], rows[i] / row_weights[i], 1e-10);
  ASSERT_EQ(got[2].shape(), std::vector<int64_t>{3});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(got[2].values<double>()[i], columns[i] / column_weights[i], 1e-10);
  ASSERT_EQ(got[3].shape(), (std::vector<int64_t>{2, 3}));
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[3].values<double>()[i], each[i], 1e-12);
}

TEST(SequenceLoss, WithoutAnyWeightIsZero) {
  millrace::Graph graph;
  Scope s(graph);
  const Output loss = s.Composite(
      "SequenceLoss", {Tensor::Of({1, 2, 2}, Numbers(2, 2, 1).v), Tensor::Of<int64_t>({1, 2}, {0, 1}),
                       Tensor::Of<double>({1, 2}, {0, 0})})[0];
  EXPECT_EQ(millrace::Session(graph).Run({loss})[0].scalar<double>(), 0);
}

TEST(SequenceLoss, ByExampleWithAndWithoutTheMean) {
  millrace::Graph graph;
  Scope s(graph);
  const Matrix logits = Numbers(6, 4, 3);  // a step: rows 2t and 2t + 1
  Outputs steps, targets, weights;
  for (size_t t = 0; t < 3; ++t) {
    steps.push_back(s.Const(Tensor::Of({2, 4}, std::vector<double>(logits.v.begin() + static_cast<long>(t * 8),
                                                                   logits.v.begin() + static_cast<long>(t * 8 + 8)))));
    targets.push_back(s.Const(Tensor::Of<int32_t>({2}, {kTargets[2 * t], kTargets[2 * t + 1]})));
    weights.push_back(s.Const(Tensor::Of<double>({2}, {kWeights[2 * t], kWeights[2 * t + 1]})));
  }
  const Output mean = s.Composite("SequenceLossByExample", {steps, targets, weights})[0];
  const Output sum =
      s.Composite("SequenceLossByExample", {steps, targets, weights}, {{"average_across_timesteps", false}})[0];
  const std::vector<Tensor> got = millrace::Session(graph).Run({mean, sum});
  for (size_t e = 0; e < 2; ++e) {
    double loss = 0, weight = 0;
    for (size_t t = 0; t < 3; ++t) {
      loss += kWeights[2 * t + e] * Loss(logits, 2 * t + e, kTargets[2 * t + e]);
      weight += kWeights[2 * t + e];
    }
    EXPECT_NEAR(got[0].values<double>()[e], loss / weight, 1e-10);
    EXPECT_NEAR(got[1].values<double>()[e], loss, 1e-12);
  }
}

// Each direction by the reference; the backward one reads an example's own steps from its last to its first.
TEST(BothDirections, UnrolledWithAndWithoutLengths) {
  const std::vector<Matrix> xs = {Numbers(2, 3, 1), Numbers(2, 3, 2), Numbers(2, 3, 3)};
  for (const bool with_lengths : {false, true}) {
    Bench b(millrace::BasicLSTMCell(4), 3);
    Recurrent other(b.model, "other", millrace::BasicRNNCell(2), 3, millrace::DType::kDouble);
    Scope s = b.model.scope();
    const Tensor kernel = Tensor::Of({5, 2}, Numbers(5, 2, 31).v), bias = Tensor::Of({2}, Numbers(1, 2, 32).v);
    Outputs limit;
    if (with_lengths) limit = {s.Const({int32_t{1}, int32_t{3}})};
    Outputs inputs;
    for (const Matrix& x : xs) inputs.push_back(b.Const(x));
    Outputs parameters;
    for (const millrace::Variable& v : b.rnn.variables()) parameters.push_back(v.read);
    const Outputs made = s.Composite(
        "StaticBidirectionalRNN",
        {inputs, limit, b.rnn.ZeroState(inputs[0]), other.ZeroState(inputs[0]), parameters,
         Outputs{s.Const(kernel), s.Const(bias)}},
        {{"cell_fw", "BasicLSTMCell(num_units=4)"}, {"cell_bw", "BasicRNNCell(num_units=2)"}});
    ASSERT_EQ(made.size(), 6u);
    const std::vector<Matrix> got = b.Run(made);
    const std::vector<size_t> lengths = with_lengths ? std::vector<size_t>{1, 3} : std::vector<size_t>{3, 3};
    const reference::Lstm lstm{b.parameters[0], b.parameters[1], {}, {}, {}, {}};
    const Unrolled forward = RunReference(lstm, xs, lengths);
    std::vector<Matrix> back(3, Matrix(2, 2));
    Matrix last(2, 2);
    for (size_t e = 0; e < 2; ++e) {
      Matrix h(1, 2);
      for (size_t t = lengths[e]; t-- > 0;) {
        Matrix x(1, 3);
        for (size_t k = 0; k < 3; ++k) x.at(0, k) = xs[t].at(e, k);
        h = reference::PlainStep(x, h, AsMatrix(kernel), AsMatrix(bias));
        for (size_t k = 0; k < 2; ++k) back[t].at(e, k) = h.at(0, k);
      }
      for (size_t k = 0; k < 2; ++k) last.at(e, k) = h.at(0, k);
    }
    for (size_t t = 0; t < 3; ++t) ExpectNear(got[t], reference::Beside(forward.outputs[t], back[t]), "outputs");
    ExpectNear(got[3], forward.c, "c");
    ExpectNear(got[4], forward.h, "h");
    ExpectNear(got[5], last, "backward state");
  }
}

}  // namespace
