// SPDX-License-Identifier: Apache-2.0
// What the tests of recurrent networks share: a cell whose variables have values worth testing, and an LSTM's loop in
// double.
#pragma once

#include <gtest/gtest.h>

#include "millrace/rnn.h"
#include "rnn_reference.h"

inline reference::Matrix Numbers(size_t rows, size_t columns, int seed) {
  reference::Matrix m(rows, columns);
  for (size_t i = 0; i < m.v.size(); ++i) m.v[i] = std::sin(1.3 * static_cast<double>(i) + 7.1 * seed);
  return m;
}

inline millrace::Tensor AsTensor(const reference::Matrix& m) {
  return millrace::Tensor::Of({static_cast<int64_t>(m.rows), static_cast<int64_t>(m.columns)}, m.v);
}

inline reference::Matrix AsMatrix(const millrace::Tensor& t) {
  const std::vector<int64_t> dims = t.shape();
  const size_t columns = dims.empty() ? 1 : static_cast<size_t>(dims.back());
  const std::vector<double> v = t.values<double>();
  return reference::Matrix(columns == 0 ? 0 : v.size() / columns, columns, v);
}

inline void ExpectNear(const reference::Matrix& got, const reference::Matrix& want, const std::string& what,
                       double tolerance = 1e-12) {
  ASSERT_EQ(got.rows, want.rows) << what;
  ASSERT_EQ(got.columns, want.columns) << what;
  for (size_t i = 0; i < want.v.size(); ++i) EXPECT_NEAR(got.v[i], want.v[i], tolerance) << what << " element " << i;
}

// A cell in double, whose variables (all of them, biases too) have values worth testing.
struct Bench {
  Bench(const millrace::Cell& cell, int64_t inputs)
      : model(millrace::Scope(graph)), rnn(model, "rnn", cell, inputs, millrace::DType::kDouble), session(graph) {
    session.RunTargets({model.Initializer()});
    millrace::Scope s(graph);
    std::vector<millrace::Operation> set;
    for (size_t i = 0; i < rnn.variables().size(); ++i) {
      const millrace::Tensor first = session.Run({rnn.variables()[i].read})[0];
      millrace::Tensor value =
          millrace::Tensor::Of(first.shape(), Numbers(1, first.values<double>().size(), static_cast<int>(i)).v);
      parameters.push_back(AsMatrix(value));
      set.push_back(s.Op("Assign", {rnn.variables()[i].ref, value}));
    }
    session.RunTargets(set);
  }
  std::vector<reference::Matrix> Run(const std::vector<millrace::Output>& fetches) {
    std::vector<reference::Matrix> out;
    for (const millrace::Tensor& t : session.Run(fetches)) out.push_back(AsMatrix(t));
    return out;
  }
  millrace::Output Const(const reference::Matrix& m) { return model.scope().Const(AsTensor(m)); }

  millrace::Graph graph;
  millrace::Model model;
  millrace::Recurrent rnn;
  millrace::Session session;
  std::vector<reference::Matrix> parameters;
};

// Three steps of two examples, of which the first has one step.
struct Unrolled {
  std::vector<reference::Matrix> outputs;
  reference::Matrix c, h;
};
inline Unrolled RunReference(const reference::Lstm& lstm, const std::vector<reference::Matrix>& xs,
                             const std::vector<size_t>& lengths) {
  const size_t units = lstm.bias.v.size() / 4;
  Unrolled u{{}, reference::Matrix(2, units), reference::Matrix(2, units)};
  for (size_t t = 0; t < xs.size(); ++t) {
    reference::Matrix c = u.c, h = u.h, out(2, units);
    lstm.Step(xs[t], &c, &h);
    for (size_t e = 0; e < 2; ++e) {
      for (size_t k = 0; k < units && t < lengths[e]; ++k) {
        out.at(e, k) = u.h.at(e, k) = h.at(e, k);
        u.c.at(e, k) = c.at(e, k);
      }
    }
    u.outputs.push_back(out);
  }
  return u;
}

// [batch, steps, width] of steps [batch, width].
inline millrace::Tensor Stacked(const std::vector<reference::Matrix>& xs, bool as_float) {
  const size_t batch = xs[0].rows, width = xs[0].columns;
  std::vector<double> v;
  for (size_t e = 0; e < batch; ++e) {
    for (const reference::Matrix& x : xs)
      v.insert(v.end(), x.v.begin() + static_cast<long>(e * width), x.v.begin() + static_cast<long>((e + 1) * width));
  }
  const std::vector<int64_t> dims = {
      static_cast<int64_t>(batch), static_cast<int64_t>(xs.size()), static_cast<int64_t>(width)};
  if (!as_float) return millrace::Tensor::Of(dims, v);
  return millrace::Tensor::Of(dims, std::vector<float>(v.begin(), v.end()));
}
