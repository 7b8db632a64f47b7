// SPDX-License-Identifier: Apache-2.0
// Trains a convolutional network on handwritten digits, in C++.
//
//   digits [--data DIR] [--dir RUN] [--epochs N]
//
// DIR holds IDX files (MNIST's, for instance); without it the 8x8 digits that come with the source are used. RUN
// (default
// ./digits-run) gets checkpoints and TensorBoard event files. Ctrl-C saves and stops; the same command goes on from
// there, bit for bit.
#define MILLRACE_EXCEPTIONS 1
#include <millrace/layers.h>
#include <millrace/losses.h>
#include <millrace/metrics.h>
#include <millrace/monitored_session.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "images.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string data = DIGITS_DATA;
  std::string dir = "digits-run";
  int64_t epochs = 20;
};

struct Network {
  millrace::Output images, labels, loss, train_summary, test_summary;
  millrace::Metric accuracy;
  millrace::Variable step;
  millrace::Operation train, init;
};

constexpr int64_t kBatch = 64;
constexpr uint64_t kSeed = 7;

millrace::Output MergeSummaries(millrace::Scope& s, std::vector<millrace::Output> parts) {
  return s.Op("MergeSummary", {std::move(parts)});
}

Network BuildNetwork(millrace::Graph& graph, const Images& images, int64_t steps_per_epoch) {
  millrace::Scope s(graph);
  millrace::Model model(s, kSeed);
  Network net;
  net.images = s.WithName("images").Placeholder(millrace::DType::kFloat, {-1, images.height, images.width, 1});
  net.labels = s.WithName("labels").Placeholder(millrace::DType::kInt64, {-1});
  millrace::Output x = model.Conv2D("conv1", net.images, 1, 32, 3);
  const millrace::layers::Pooling pooling = {.padding = "SAME"};
  x = millrace::layers::MaxPooling2D(s, model.Conv2D("conv2", x, 32, 32, 3), pooling);
  x = millrace::layers::MaxPooling2D(s, model.Conv2D("conv3", x, 32, 64, 3), pooling);
  const int64_t features = ((images.height + 3) / 4) * ((images.width + 3) / 4) * 64;
  x = millrace::layers::Flatten(s, x);
  x = model.Dense("hidden", x, features, 128, "Relu");
  const millrace::Output logits = model.Dense("logits", x, 128, 10);
  net.loss = millrace::losses::SparseSoftmaxCrossEntropy(s, net.labels, logits);
  net.accuracy = millrace::metrics::Accuracy(s, net.labels, s.Op("ArgMax", {logits, s.Const(1)}));
  net.step = model.GlobalStep();
  millrace::Optimizer adam{"Adam"};
  adam.learning_rate = millrace::decay::Exponential(s, 0.002f, net.step, static_cast<float>(5 * steps_per_epoch), 0.5f);
  net.train = model.Minimize(adam, net.loss, net.step);
  net.train_summary = MergeSummaries(
      s, {
             s.Op("ScalarSummary", {"train/loss", net.loss}),
             s.Op("HistogramSummary", {"conv1/kernel", model.trainable()[0].read}),
         });
  net.test_summary = MergeSummaries(
      s, {
             s.Op("ScalarSummary", {"test/accuracy", net.accuracy.value}),
             s.Op("ImageSummary", {"test/digits", net.images}, {{"max_images", 4}}),
         });
  net.init = model.Initializer();
  return net;
}

// The examples at `order[begin, end)` as a batch.
std::vector<millrace::Feed> Batch(const Network& net, const Images& all, const std::vector<int64_t>& order,
                                  size_t begin, size_t end) {
  const auto size = static_cast<size_t>(all.height * all.width);
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  for (size_t i = begin; i < end; ++i) {
    const auto k = static_cast<size_t>(order[i]);
    pixels.insert(pixels.end(), all.pixels.begin() + static_cast<std::ptrdiff_t>(k * size),
                  all.pixels.begin() + static_cast<std::ptrdiff_t>((k + 1) * size));
    labels.push_back(all.labels[k]);
  }
  const auto n = static_cast<int64_t>(labels.size());
  return {{net.images, millrace::Tensor::Of({n, all.height, all.width, 1}, pixels)},
          {net.labels, millrace::Tensor::Of({n}, labels)}};
}

// On these images, a batch at a time.
float Accuracy(const millrace::Session& session, const Network& net, const Images& all,
               const std::vector<int64_t>& which) {
  session.RunTargets({net.accuracy.reset});
  for (size_t i = 0; i < which.size(); i += kBatch) {
    session.Run(Batch(net, all, which, i, std::min(i + size_t{kBatch}, which.size())), {net.accuracy.update});
  }
  return session.Run({net.accuracy.value})[0].scalar<float>();
}

Options ParseOptions(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if ((name == "--data" || name == "--dir" || name == "--epochs") && i + 1 < argc) {
      const std::string value = argv[++i];
      if (name == "--data") o.data = value;
      if (name == "--dir") o.dir = value;
      if (name == "--epochs") o.epochs = std::stoll(value);
    } else {
      throw std::runtime_error("usage: digits [--data DIR] [--dir RUN] [--epochs N]");
    }
  }
  if (o.epochs < 1) throw std::runtime_error("--epochs wants a number from 1 on");
  return o;
}

int Train(const Options& options) {
  const Images images = LoadImages(options.data);
  // A fifth is held back; which one does not depend on the order of the file.
  std::vector<int64_t> split = ShuffledOrder(images.count, kSeed, uint64_t{1} << 40);
  const size_t train_count = split.size() * 4 / 5;
  const std::vector<int64_t> held_back(split.begin() + static_cast<std::ptrdiff_t>(train_count), split.end());
  const auto steps_per_epoch = static_cast<int64_t>(train_count) / kBatch;
  if (steps_per_epoch < 1) throw std::runtime_error("fewer than 80 images are too few");
  std::printf("%lld images of %lldx%lld from %s; %zu to train on, %zu held back\n",
              static_cast<long long>(images.count), static_cast<long long>(images.height),
              static_cast<long long>(images.width), options.data.c_str(), train_count, held_back.size());

  millrace::Graph graph;
  const Network net = BuildNetwork(graph, images, steps_per_epoch);
  const std::string prefix = options.dir + "/model.ckpt", last = millrace::LatestCheckpoint(options.dir);
  if (!last.empty()) std::printf("going on from %s\n", last.c_str());
  millrace::EventWriter events(options.dir);
  events.AddGraph(graph);
  const int64_t total = options.epochs * steps_per_epoch;
  millrace::MonitoredSession training(
      graph, {.checkpoint_dir = options.dir, .init = net.init, .global_step = net.step},
      {millrace::CheckpointSaverHook(millrace::Saver(graph), prefix, 5 * steps_per_epoch),
       millrace::SummarySaverHook(events, net.train_summary, steps_per_epoch), millrace::NanTensorHook(net.loss),
       millrace::ProgressHook(total)});
  std::vector<int64_t> order;
  for (int64_t epoch = -1; training.step() < total && !training.ShouldStop() && !interrupted;) {
    const int64_t step = training.step();
    if (step / steps_per_epoch != epoch) {
      epoch = step / steps_per_epoch;
      order.clear();
      for (int64_t i : ShuffledOrder(static_cast<int64_t>(train_count), kSeed, static_cast<uint64_t>(epoch))) {
        order.push_back(split[static_cast<size_t>(i)]);
      }
    }
    const auto begin = static_cast<size_t>(step % steps_per_epoch * kBatch);
    training.Run(Batch(net, images, order, begin, begin + kBatch), {}, {net.train});
    if (training.step() % steps_per_epoch != 0) continue;
    const std::vector<millrace::Feed> some = Batch(net, images, held_back, 0, 4);
    Accuracy(training.session(), net, images, held_back);
    events.AddSummary(training.session().Run(some, {net.test_summary})[0].strings()[0], training.step());
  }
  const int64_t step = training.step();
  const float accuracy = Accuracy(training.session(), net, images, held_back);
  const std::string saved = prefix + "-" + std::to_string(step);
  training.Close();
  if (interrupted) {
    std::printf("stopped at step %lld of %lld and saved %s; the same command goes on from there\n",
                static_cast<long long>(step), static_cast<long long>(total), saved.c_str());
    return 130;
  }
  std::printf("%lld steps: accuracy on the held-back fifth %.2f%%\n", static_cast<long long>(step),
              static_cast<double>(accuracy) * 100);
  std::printf("saved %s\n\nWhat to look at next:\n", saved.c_str());
  std::printf(
      "  tensorboard --logdir %s        the loss, the accuracy, the filters and the graph\n", options.dir.c_str());
  std::printf("  digits --data DIR --dir RUN    the same on MNIST, or any IDX files\n");
  std::printf("  examples/digits/main.cc        how it is done, in 200 lines\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { interrupted = 1; });
  try {
    return Train(ParseOptions(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
