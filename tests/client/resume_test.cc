// SPDX-License-Identifier: Apache-2.0
// Training that draws random numbers, interrupted and resumed, ends with the same bits.
#define MILLRACE_EXCEPTIONS 1
#include <gtest/gtest.h>

#include <cstring>

#include "millrace/millrace.h"
#include "rnn_bench.h"

namespace {

using millrace::Operation;
using millrace::Output;
using millrace::Recurrent;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;

// A recurrent network with dropout in a loop, an optimizer with slots, and noise from an op without a seed.
struct Training {
  explicit Training(const std::string& cell) : model((Scope(graph))) {
    Scope s = model.scope();
    Recurrent rnn(model, "rnn", millrace::Cell(cell), 3);
    const Recurrent::Result r =
        rnn.Dynamic(s.Const(Stacked({Numbers(4, 3, 1), Numbers(4, 3, 2), Numbers(4, 3, 3)}, true)));
    const Output noise =
        s.WithName("noise").Op("RandomStandardNormal", {s.Const({4, 3, 5})}, {{"dtype", millrace::DType::kFloat}});
    const Output off = s.Op("Sub", {r.outputs, noise});
    loss = s.Op("Mean", {s.Op("Mul", {off, off}), s.Const({0, 1, 2})});
    step = model.Minimize({.name = "Adam", .hyper = {{"learning_rate", 0.05}}}, loss);
    init = model.Initializer();
    for (const millrace::Variable& v : rnn.variables()) read.push_back(v.read);
  }

  // All that training changes: variables and the slots beside them.
  std::vector<Tensor> State(const Session& session) { return session.Run(Everything()); }
  void Restore(const Session& session, const std::vector<Tensor>& values) {
    session.RunTargets({init});
    Scope s(graph);
    std::vector<Operation> set;
    const std::vector<Output> all = Everything();
    for (size_t i = 0; i < all.size(); ++i) set.push_back(s.Op("Assign", {all[i], values[i]}));
    session.RunTargets(set);
  }

  millrace::Graph graph;
  millrace::Model model;
  Output loss;
  Operation step, init;
  std::vector<Output> read;

 private:
  std::vector<Output> Everything() {
    std::vector<Output> all;
    size_t position = 0;
    while (TF_Operation* op = TF_GraphNextOperation(graph.get(), &position)) {
      const Operation o(op);
      if (o.type() == "VariableV2" || o.type() == "Variable") all.push_back(o);
    }
    return all;
  }
};

std::string Bits(const std::vector<Tensor>& tensors) {
  std::string all;
  for (const Tensor& t : tensors) {
    const std::vector<float> v = t.values<float>();
    all.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
  }
  return all;
}

const char* const kCells[] = {
    "DropoutWrapper(LSTMCell(num_units=5), input_keep_prob=0.7, output_keep_prob=0.6, state_keep_prob=0.8)",
    "DropoutWrapper(GRUCell(num_units=5), output_keep_prob=0.5, seed=7)",
    "DropoutWrapper(LSTMBlockCell(num_units=5), input_keep_prob=0.7, output_keep_prob=0.6)"};

TEST(Resume, EndsWithTheSameBits) {
  for (const char* cell : kCells) {
    Training t(cell);
    Session first(t.graph);
    first.RunTargets({t.init});
    for (int i = 0; i < 3; ++i) first.RunTargets({t.step});
    const std::vector<Tensor> saved = t.State(first);
    const std::string random = first.RandomState();
    for (int i = 0; i < 3; ++i) first.RunTargets({t.step});
    const std::vector<Tensor> whole = t.State(first);

    Session second(t.graph);
    t.Restore(second, saved);
    second.SetRandomState(random);
    EXPECT_EQ(second.RandomState(), random) << "also before anything has run";
    for (int i = 0; i < 3; ++i) second.RunTargets({t.step});
    EXPECT_EQ(Bits(t.State(second)), Bits(whole)) << cell;

    // The test would see other numbers.
    Session third(t.graph);
    t.Restore(third, saved);
    for (int i = 0; i < 3; ++i) third.RunTargets({t.step});
    EXPECT_NE(Bits(t.State(third)), Bits(whole)) << cell;
    // And a session that has run goes back.
    t.Restore(third, saved);
    third.SetRandomState(random);
    for (int i = 0; i < 3; ++i) third.RunTargets({t.step});
    EXPECT_EQ(Bits(t.State(third)), Bits(whole)) << cell;
  }
}

TEST(Resume, StateNamesEveryRandomOp) {
  Training t(kCells[0]);
  Session session(t.graph);
  session.RunTargets({t.init});
  session.RunTargets({t.step});
  const std::string random = session.RandomState();
  for (const char* part : {"noise\n", "Initializer/random_uniform/RandomUniform\n", "while/"}) {
    EXPECT_NE(random.find(part), std::string::npos) << part << " in " << random;
  }
  EXPECT_THROW(session.SetRandomState("millrace"), millrace::Error);
  EXPECT_EQ(session.RandomState(), random);
}

}  // namespace
