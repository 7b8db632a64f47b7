// SPDX-License-Identifier: Apache-2.0
// Models of python/tests/test_same_model.py, stated in C++.
//
//   same_model MODEL FOLDER [CHECKPOINT]
//
// writes FOLDER/graph.pb, starts from the checkpoint (without one: from initial values, saved as FOLDER/start-0),
// trains, writes the loss of each step to FOLDER/losses and the variables to FOLDER/end-0.
#define MILLRACE_EXCEPTIONS 1
#include <millrace/decay.h>
#include <millrace/io.h>
#include <millrace/layers_1d_3d.h>
#include <millrace/losses.h>
#include <millrace/normalization.h>
#include <millrace/rnn.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>

namespace {

using millrace::DType;
using millrace::Output;

constexpr int64_t kBatch = 16, kSteps = 20;

struct Net {
  Output x, y, loss;
  millrace::Operation train;
};

// Numbers in [0, 1) that Python makes too.
std::vector<float> Numbers(int64_t count, uint32_t seed) {
  std::vector<float> v;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = (static_cast<uint32_t>(i) + seed * 7919u) * 2654435761u;
    v.push_back(static_cast<float>(bits >> 8) / 16777216.0f);
  }
  return v;
}

Net Convolutional(millrace::Model& model) {
  millrace::Scope& s = model.scope();
  Net net;
  net.x = s.WithName("images").Placeholder(DType::kFloat, {-1, 8, 8, 1});
  net.y = s.WithName("labels").Placeholder(DType::kInt64, {-1});
  Output h = model.Conv2D("conv1", net.x, 1, 4, 3);
  h = model.BatchNorm("bn1", h, 4);
  h = s.Op("Reshape", {h, millrace::Tensor::Of<int32_t>({2}, {-1, 256})});
  const Output logits = model.Dense("logits", h, 256, 10);
  const Output each = millrace::losses::SparseSoftmaxCrossEntropyOfEach(
      s.SubScope("SparseSoftmaxCrossEntropyWithLogits"), net.y, logits);
  const Output axes = s.Const({0});
  net.loss = s.WithName("loss").Op("Mean", {each, axes});
  const millrace::Variable step = model.GlobalStep();
  millrace::Optimizer adam{"Adam"};
  adam.hyper["learning_rate"] = 0.01;
  net.train = model.Minimize(adam, net.loss, step);
  return net;
}

void AddRecurrentInputs(millrace::Model& model, Net& net) {
  net.x = model.scope().WithName("sequences").Placeholder(DType::kFloat, {-1, 5, 3});
  net.y = model.scope().WithName("targets").Placeholder(DType::kFloat, {-1, 6});
}

// The loss by what an LSTM or GRU gave last, and Momentum.
Net Recurrent(millrace::Model& model, Net net, Output last) {
  millrace::Scope& s = model.scope();
  const Output error = s.WithName("sub").Op("Sub", {last, net.y}), each = s.Op("Square", {error});
  const Output axes = s.Const({0, 1});
  net.loss = s.WithName("loss").Op("Mean", {each, axes});
  millrace::Optimizer momentum{"Momentum"};
  momentum.hyper = {{"learning_rate", 0.5}, {"momentum", 0.9}};
  net.train = model.Minimize(momentum, net.loss);
  return net;
}

Net Lstm(millrace::Model& model) {
  Net net;
  AddRecurrentInputs(model, net);
  millrace::Recurrent rnn(model, "rnn", millrace::BasicLSTMCell(6), 3);
  return Recurrent(model, net, rnn.Dynamic(net.x).state[1]);
}

// Peepholes, clipping and a projection, then a GRU, with lengths.
Net Stack(millrace::Model& model) {
  Net net;
  AddRecurrentInputs(model, net);
  const Output lengths = model.scope().WithName("lengths").Const(
      millrace::Tensor::Of<int32_t>({kBatch}, {5, 1, 2, 5, 3, 4, 5, 0, 1, 2, 3, 4, 5, 5, 4, 3}));
  const millrace::Cell cell = millrace::MultiRNNCell(
      {millrace::LSTMCell(5, "use_peepholes=true, cell_clip=0.9, num_proj=4, proj_clip=0.7"), millrace::GRUCell(6)});
  millrace::Recurrent rnn(model, "rnn", cell, 3);
  millrace::Recurrent::Options options;
  options.sequence_length = lengths;
  return Recurrent(model, net, rnn.Dynamic(net.x, options).state[2]);
}

Net Unrolled(millrace::Model& model) {
  Net net;
  AddRecurrentInputs(model, net);
  millrace::Scope& s = model.scope();
  const millrace::Operation steps =
      s.WithName("unstack").Op("Unpack", {net.x}, {{"num", int64_t{5}}, {"axis", int64_t{1}}});
  millrace::Recurrent rnn(
      model, "rnn", millrace::MultiRNNCell({millrace::BasicRNNCell(4), millrace::BasicLSTMCell(6)}), 3);
  return Recurrent(model, net, rnn.Static({steps[0], steps[1], steps[2], steps[3], steps[4]}).outputs.back());
}

// Convolutions, pools and norms of sequences, then of the same numbers as volumes.
Net LinesAndVolumes(millrace::Model& model) {
  millrace::Scope& s = model.scope();
  Net net;
  AddRecurrentInputs(model, net);
  namespace layers = millrace::layers;
  Output h = layers::Conv1D(model, "sequence", net.x, 3, 4, {.padding = "SAME", .activation = "Relu"});
  h = layers::LayerNorm(model, "layer", h);
  h = layers::MaxPooling1D(s, h, {.size = 2, .stride = 1});
  h = layers::AveragePooling1D(s, h, {.size = 3, .stride = 1, .padding = "SAME"});  // [batch, 4, 4]
  h = s.Op("Reshape", {h, millrace::Tensor::Of<int32_t>({5}, {-1, 2, 2, 2, 2})});
  h = layers::Conv3D(model, "volume", h, 2, 3, {.size = 2, .padding = "SAME", .activation = "Tanh"});
  h = layers::InstanceNorm(model, "instance", h);
  h = layers::MaxPooling3D(s, h, {.size = 2, .stride = 1, .padding = "SAME"});
  h = layers::AveragePooling3D(s, h);
  h = s.Op("Reshape", {h, millrace::Tensor::Of<int32_t>({2}, {-1, 3})});
  const Output last = s.WithName("last").Op("Identity", {model.Dense("line", h, 3, 6)});
  return Recurrent(model, net, last);
}

// A line, trained at the product of every rate that decays.
Net Decaying(millrace::Model& model) {
  millrace::Scope& s = model.scope();
  Net net;
  AddRecurrentInputs(model, net);
  const Output last = s.WithName("last").Op(
      "Identity", {model.Dense("line", s.Op("Reshape", {net.x, millrace::Tensor::Of<int32_t>({2}, {-1, 15})}), 15, 6)});
  const Output error = s.WithName("sub").Op("Sub", {last, net.y}), each = s.Op("Square", {error});
  const Output axes = s.Const({0, 1});
  net.loss = s.WithName("loss").Op("Mean", {each, axes});
  const millrace::Variable step = model.GlobalStep();
  namespace decay = millrace::decay;
  const std::vector<Output> rates = {
      decay::Exponential(s, 0.5f, step, 7, 0.9f, true),
      decay::NaturalExp(s, 1, step, 10, 0.1f),
      decay::InverseTime(s, 1, step, 10, 0.1f),
      decay::Polynomial(s, 1, step, 30, 0.1f, 0.5f),
      decay::Polynomial(s, 1, step, 30, 0.1f, 1, true),
      decay::Cosine(s, 1, step, 30, 0.3f),
      decay::CosineRestarts(s, 1, step, 9, 2, 0.9f, 0.3f),
      decay::CosineRestarts(s, 1, step, 9, 1, 0.9f, 0.3f),
      decay::LinearCosine(s, 1, step, 50, 0.5f, 0.2f, 0.1f),
      decay::PiecewiseConstant(s, step, {5, 8}, {1, 0.5f, 0.25f})};
  millrace::Optimizer descent{"GradientDescent"};
  descent.learning_rate = rates[0];
  for (size_t i = 1; i < rates.size(); ++i) {
    descent.learning_rate = s.WithName("mul").Op("Mul", {descent.learning_rate, rates[i]});
  }
  net.train = model.Minimize(descent, net.loss, step);
  return net;
}

// A line, trained by the sum of every loss.
Net Losses(millrace::Model& model) {
  millrace::Scope& s = model.scope();
  Net net;
  AddRecurrentInputs(model, net);
  const Output flat = s.Op("Reshape", {net.x, millrace::Tensor::Of<int32_t>({2}, {-1, 15})});
  const Output last = model.Dense("line", flat, 15, 6);
  const Output chance = s.WithName("chance").Op("Sigmoid", {last});
  const Output each = s.WithName("each").Const(millrace::Tensor::Of<float>({kBatch, 1}, Numbers(kBatch, 77)));
  const Output some = s.WithName("some").Placeholder(DType::kFloat);
  namespace losses = millrace::losses;
  const millrace::Outputs all = {
      losses::AbsoluteDifference(s, net.y, last, {.weights = each}),
      losses::MeanSquaredError(s, net.y, last, {each, "weighted_mean"}),
      losses::Huber(s, net.y, last, 0.25f, {each, "weighted_sum_over_batch_size"}),
      losses::Hinge(s, net.y, last),
      losses::Log(s, net.y, chance),
      losses::CosineDistance(s, net.y, last, 1, {each, "weighted_sum"}),
      losses::SoftmaxCrossEntropy(s, net.y, last),
      losses::SigmoidCrossEntropy(s, net.y, last, {each}),
      losses::MeanPairwiseSquaredError(s, net.y, last, each)};
  net.loss = s.WithName("loss").Op("AddN", {all});
  losses::MeanSquaredError(s, net.y, last, {some});  // whose weights nobody knows before a step
  net.train = model.Minimize({"GradientDescent", {{"learning_rate", 0.01}}}, net.loss);
  return net;
}

using MakeNet = Net (*)(millrace::Model&);
const std::map<std::string, MakeNet> kNets = {
    {"convolutional", Convolutional},
    {"recurrent", Lstm},
    {"stack", Stack},
    {"unrolled", Unrolled},
    {"decaying", Decaying},
    {"losses", Losses},
    {"lines_and_volumes", LinesAndVolumes}};

void Write(const std::string& path, const void* data, size_t size) {
  std::ofstream out(path, std::ios::binary);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

void WriteGraph(const millrace::Graph& graph, const std::string& path) {
  millrace::internal::CallStatus status;
  millrace::internal::TextBuffer bytes;
  TF_GraphToGraphDef(graph.get(), bytes, status);
  if (!status.ok()) throw millrace::Error(status.Get());
  const std::string text = bytes.Text();
  Write(path, text.data(), text.size());
}

std::vector<millrace::Feed> Batch(const std::string& model, const Net& net, uint32_t step) {
  if (model != "convolutional") {
    return {{net.x, millrace::Tensor::Of({kBatch, 5, 3}, Numbers(kBatch * 15, 2 * step))},
            {net.y, millrace::Tensor::Of({kBatch, 6}, Numbers(kBatch * 6, 2 * step + 1))}};
  }
  std::vector<int64_t> labels;
  for (const float v : Numbers(kBatch, 2 * step + 1)) labels.push_back(static_cast<int64_t>(v * 10));
  return {{net.x, millrace::Tensor::Of({kBatch, 8, 8, 1}, Numbers(kBatch * 64, 2 * step))},
          {net.y, millrace::Tensor::Of({kBatch}, labels)}};
}

void Run(const std::string& name, const std::string& folder, const std::string& checkpoint) {
  millrace::Graph graph;
  millrace::Model model(millrace::Scope(graph), 7);
  const auto make = kNets.find(name);
  if (make == kNets.end()) throw std::runtime_error("there is no model " + name);
  const Net net = make->second(model);
  millrace::Saver saver(graph);
  const millrace::Operation init = model.Initializer();
  WriteGraph(graph, folder + "/graph.pb");
  const millrace::Session session(graph);
  if (checkpoint.empty()) {
    session.RunTargets({init});
    saver.Save(session, folder + "/start", 0);
  } else {
    saver.Restore(session, checkpoint);
  }
  std::vector<millrace::Operation> targets = model.updates();
  targets.push_back(net.train);
  std::vector<float> losses;
  for (uint32_t step = 0; step < kSteps; ++step) {
    losses.push_back(session.Run(Batch(name, net, step), {net.loss}, targets)[0].scalar<float>());
  }
  Write(folder + "/losses", losses.data(), losses.size() * sizeof(float));
  saver.Save(session, folder + "/end", 0);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 3) throw std::runtime_error("usage: same_model MODEL FOLDER [CHECKPOINT]");
    Run(argv[1], argv[2], argc > 3 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
