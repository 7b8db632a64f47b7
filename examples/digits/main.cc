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
#include <millrace/io.h>
#include <millrace/train.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include "images.h"
#include "progress.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string data = DIGITS_DATA;
  std::string dir = "digits-run";
  int64_t epochs = 20;
};

struct Network {
  millrace::Output images, labels, loss, accuracy, step, train_summary, test_summary;
  millrace::Operation train, init;
};

constexpr int64_t kBatch = 64;
constexpr uint64_t kSeed = 7;

millrace::Output Pool(millrace::Scope& s, millrace::Output x) {
  return s.Op("MaxPool", {x}, {{"ksize", {1, 2, 2, 1}}, {"strides", {1, 2, 2, 1}}, {"padding", "SAME"}});
}

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
  x = Pool(s, model.Conv2D("conv2", x, 32, 32, 3));
  x = Pool(s, model.Conv2D("conv3", x, 32, 64, 3));
  const int64_t features = ((images.height + 3) / 4) * ((images.width + 3) / 4) * 64;
  x = s.Op("Reshape", {x, s.Const({int64_t{-1}, features})});
  x = model.Dense("hidden", x, features, 128, "Relu");
  const millrace::Output logits = model.Dense("logits", x, 128, 10);
  net.loss = s.WithName("loss").Composite("SparseSoftmaxCrossEntropyLoss", {logits, net.labels})[0];
  const millrace::Output hits = s.Op("Equal", {s.Op("ArgMax", {logits, s.Const(1)}), net.labels});
  net.accuracy =
      s.WithName("accuracy").Op("Mean", {s.Op("Cast", {hits}, {{"DstT", millrace::DType::kFloat}}), s.Const({0})});
  const millrace::Variable step = model.GlobalStep();
  net.step = step.read;
  millrace::Optimizer adam{"Adam"};
  adam.learning_rate = s.WithName("rate").Composite(
      "ExponentialDecay", {0.002f, step.read},
      {{"decay_steps", static_cast<float>(5 * steps_per_epoch)}, {"decay_rate", 0.5f}})[0];
  net.train = model.Minimize(adam, net.loss, step);
  net.train_summary = MergeSummaries(
      s, {
             s.Op("ScalarSummary", {"train/loss", net.loss}),
             s.Op("HistogramSummary", {"conv1/kernel", model.trainable()[0].read}),
         });
  net.test_summary = MergeSummaries(
      s, {
             s.Op("ScalarSummary", {"test/accuracy", net.accuracy}),
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
  millrace::Saver saver(graph);
  const millrace::Session session(graph);
  const std::string prefix = options.dir + "/model.ckpt", last = millrace::LatestCheckpoint(options.dir);
  if (last.empty()) {
    session.RunTargets({net.init});
  } else {
    saver.Restore(session, last);
    std::printf("going on from %s\n", last.c_str());
  }
  int64_t step = session.Run({net.step})[0].scalar<int64_t>();
  millrace::EventWriter events(options.dir);
  events.AddGraph(graph);

  const std::vector<millrace::Feed> test = Batch(net, images, held_back, 0, held_back.size());
  const int64_t total = std::max(options.epochs * steps_per_epoch, step);
  Progress progress(step, total);
  std::vector<int64_t> order;
  for (int64_t epoch = -1; step < total && !interrupted; ++step) {
    if (step / steps_per_epoch != epoch) {
      epoch = step / steps_per_epoch;
      order.clear();
      for (int64_t i : ShuffledOrder(static_cast<int64_t>(train_count), kSeed, static_cast<uint64_t>(epoch))) {
        order.push_back(split[static_cast<size_t>(i)]);
      }
    }
    const auto begin = static_cast<size_t>(step % steps_per_epoch * kBatch);
    const std::vector<millrace::Tensor> out =
        session.Run(Batch(net, images, order, begin, begin + kBatch), {net.loss, net.train_summary}, {net.train});
    char note[64];
    std::snprintf(note, sizeof note, "loss %.4f", static_cast<double>(out[0].scalar<float>()));
    progress.Show(step + 1, note);
    if ((step + 1) % steps_per_epoch != 0) continue;
    events.AddSummary(out[1].strings()[0], step + 1);
    events.AddSummary(session.Run(test, {net.test_summary})[0].strings()[0], step + 1);
  }
  progress.Clear();
  const std::string saved = saver.Save(session, prefix, step);
  if (interrupted) {
    std::printf("stopped at step %lld of %lld and saved %s; the same command goes on from there\n",
                static_cast<long long>(step), static_cast<long long>(total), saved.c_str());
    return 130;
  }
  const float accuracy = session.Run(test, {net.accuracy})[0].scalar<float>();
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
