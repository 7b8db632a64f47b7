// SPDX-License-Identifier: Apache-2.0
#include "network.h"

#include <millrace/decay.h>
#include <millrace/losses.h>

namespace {

using millrace::Operation;
using millrace::Output;
using millrace::Tensor;

Operation AssignAll(millrace::Scope& s, const std::vector<millrace::Variable>& variables,
                    const std::vector<Output>& values, const std::string& name) {
  std::vector<Operation> assigns;
  for (size_t i = 0; i < variables.size(); ++i) assigns.push_back(s.Op("Assign", {variables[i].ref, values[i]}));
  return s.WithName(name).WithControl(assigns).Op("NoOp", {});
}

Output OneHot(millrace::Scope& s, Output ids, int64_t depth) {
  return s.Op("OneHot", {ids, s.Const(static_cast<int32_t>(depth)), 1.0f, 0.0f});
}

}  // namespace

Network BuildNetwork(millrace::Graph& graph, int64_t characters, int64_t layers, int64_t units, int64_t seed) {
  millrace::Scope s(graph);
  millrace::Model model(s, seed);
  Network net;
  net.inputs = s.WithName("inputs").Placeholder(millrace::DType::kInt32, {kSteps, kBatch});
  net.targets = s.WithName("targets").Placeholder(millrace::DType::kInt32, {kSteps, kBatch});
  const std::vector<millrace::Cell> cells(static_cast<size_t>(layers), millrace::LSTMBlockCell(units));
  millrace::Recurrent rnn(model, "rnn", millrace::MultiRNNCell(cells), characters);
  net.state_sizes = rnn.state_sizes();

  // The state after each chunk of text is where the next one starts. It lives in variables, so checkpoints have it.
  const Output x = OneHot(s, net.inputs, characters);
  const std::vector<Output> zeros = rnn.ZeroState(x, 1);
  std::vector<millrace::Variable> carried;
  std::vector<Output> start;
  for (size_t i = 0; i < zeros.size(); ++i) {
    carried.push_back(model.AddVariable("carried/state_" + std::to_string(i), zeros[i], false));
    start.push_back(carried.back().read);
  }
  const millrace::Recurrent::Result run = rnn.Dynamic(x, {.initial_state = start, .time_major = true});
  const Operation carry = AssignAll(s, carried, run.state, "carry");
  net.forget = AssignAll(s, carried, zeros, "forget");

  const millrace::Variable kernel = model.AddVariable(
      "softmax/kernel",
      s.Composite("VarianceScaling", {},
                  {{"shape", millrace::Attr::OfShape({units, characters})}, {"seed", seed}, {"seed2", 1000}})[0]);
  const millrace::Variable bias = model.AddVariable(
      "softmax/bias", s.Const(Tensor::Of({characters}, std::vector<float>(static_cast<size_t>(characters), 0.0f))));
  const Output flat = s.Op("Reshape", {run.outputs, s.Const({int64_t{-1}, units})});
  const Output logits = s.Composite("Dense", {flat, kernel.read, bias.read})[0];
  const Output targets = s.Op("Reshape", {net.targets, s.Const({int64_t{-1}})});
  net.loss = millrace::losses::SparseSoftmaxCrossEntropy(s, targets, logits);
  const millrace::Variable step = model.GlobalStep();
  net.step = step.read;
  millrace::Optimizer adam{"Adam"};
  adam.clip_global_norm = 5;
  adam.learning_rate = millrace::decay::Exponential(s.WithName("rate"), 0.006f, step, 300, 0.5f);
  const Operation update = model.Minimize(adam, net.loss, step);
  net.train = s.WithName("train_and_carry").WithControl({update, carry}).Op("NoOp", {});
  net.train_summary = s.Op("ScalarSummary", {"train/loss", net.loss});
  net.test_perplexity = s.WithName("test_perplexity").Placeholder(millrace::DType::kFloat, millrace::Shape{});
  net.test_summary = s.Op("ScalarSummary", {"test/perplexity", net.test_perplexity});

  net.character = s.WithName("character").Placeholder(millrace::DType::kInt32, {1});
  for (int64_t size : net.state_sizes) net.state.push_back(s.Placeholder(millrace::DType::kFloat, {1, size}));
  const millrace::Recurrent::Result one = rnn.Step(OneHot(s, net.character, characters), net.state);
  net.next_state = one.state;
  net.logits = s.Composite("Dense", {one.outputs, kernel.read, bias.read})[0];
  net.init = model.Initializer();
  return net;
}
