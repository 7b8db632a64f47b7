// SPDX-License-Identifier: Apache-2.0
// Learns to write like Shakespeare, one character at a time: a stack of LSTM layers, in C++.
//
//   shakespeare [--data FILE] [--dir RUN] [--epochs N] [--units N] [--layers N] [--temperature T]
//
// FILE is any text (64 KB to some MB); without it the sonnets that come with the source are used. RUN (default
// ./shakespeare-run) gets checkpoints and TensorBoard event files. Ctrl-C saves and stops; the same command goes on
// from there, bit for bit.
#include "network.h"

#include <millrace/io.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>

#include "progress.h"
#include "text.h"

namespace {

using millrace::Output;
using millrace::Tensor;

volatile std::sig_atomic_t interrupted = 0;

struct Options {
  std::string data = SHAKESPEARE_DATA;
  std::string dir = "shakespeare-run";
  int64_t epochs = 20, units = 160, layers = 2;
  double temperature = 0.7;
};

constexpr int64_t kSeed = 7;

// Chunk number `k` of kBatch streams, each a part of the text; targets are the characters that follow.
std::vector<millrace::Feed> Chunk(const Network& net, const std::vector<int32_t>& text, int64_t k) {
  const int64_t stream = (static_cast<int64_t>(text.size()) - 1) / kBatch;
  std::vector<int32_t> x, y;
  for (int64_t t = 0; t < kSteps; ++t) {
    for (int64_t b = 0; b < kBatch; ++b) {
      const auto at = static_cast<size_t>(b * stream + k * kSteps + t);
      x.push_back(text[at]);
      y.push_back(text[at + 1]);
    }
  }
  return {{net.inputs, Tensor::Of({kSteps, kBatch}, x)}, {net.targets, Tensor::Of({kSteps, kBatch}, y)}};
}

// Reads and writes text one character at a time, in one stream.
class Reader {
 public:
  Reader(const Network& net, const millrace::Session& session) : net_(net), session_(session) { Forget(); }

  // Among how many characters the network hesitates on average, on the first `count` of a text.
  double Perplexity(const std::vector<int32_t>& text, size_t count) {
    Forget();
    count = std::min(count, text.size() - 1);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> logits = Read(text[i]);
      double total = 0;
      for (float v : logits) total += std::exp(static_cast<double>(v));
      sum += std::log(total) - static_cast<double>(logits[static_cast<size_t>(text[i + 1])]);
    }
    return std::exp(sum / static_cast<double>(count));
  }
  std::string Write(const std::string& alphabet, size_t count, double temperature, uint64_t seed) {
    Forget();
    std::string text;
    int32_t character = 0;  // the first in order: a line's end, where the text has lines
    for (size_t i = 0; i < count; ++i) {
      character = Draw(Read(character), temperature, &seed);
      text += alphabet[static_cast<size_t>(character)];
    }
    return text;
  }

 private:
  void Forget() {
    state_.clear();
    for (int64_t size : net_.state_sizes) {
      state_.push_back(Tensor::Of({1, size}, std::vector<float>(static_cast<size_t>(size), 0.0f)));
    }
  }
  // The logits of the next character.
  std::vector<float> Read(int32_t character) {
    std::vector<millrace::Feed> feeds = {{net_.character, Tensor::Of({1}, std::vector<int32_t>{character})}};
    for (size_t i = 0; i < state_.size(); ++i) feeds.push_back({net_.state[i], state_[i]});
    std::vector<Output> fetches = net_.next_state;
    fetches.push_back(net_.logits);
    state_ = session_.Run(feeds, fetches);
    std::vector<float> logits = state_.back().values<float>();
    state_.pop_back();
    return logits;
  }

  const Network& net_;
  const millrace::Session& session_;
  std::vector<Tensor> state_;
};

Options ParseOptions(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--data") {
      o.data = value;
    } else if (name == "--dir") {
      o.dir = value;
    } else if (name == "--epochs") {
      o.epochs = std::stoll(value);
    } else if (name == "--units") {
      o.units = std::stoll(value);
    } else if (name == "--layers") {
      o.layers = std::stoll(value);
    } else if (name == "--temperature") {
      o.temperature = std::stod(value);
    } else {
      argc = 0;
    }
  }
  if (argc % 2 == 0 || o.epochs < 1 || o.units < 1 || o.layers < 1 || !(o.temperature > 0)) {
    throw std::runtime_error(
        "usage: shakespeare [--data FILE] [--dir RUN] [--epochs N] [--units N] [--layers N] [--temperature T]");
  }
  return o;
}

void PrintIndented(const std::string& text) {
  std::string line = "    ";
  for (char c : text) {
    line += c;
    if (c == '\n') line += "    ";
  }
  std::printf("%s\n\n", line.c_str());
}

int Train(const Options& options) {
  const Text text = LoadText(options.data);
  const auto characters = static_cast<int64_t>(text.characters.size());
  const int64_t chunks = (static_cast<int64_t>(text.train.size()) - 1) / kBatch / kSteps;
  if (chunks < 1) throw std::runtime_error("the text must have at least 1800 characters");
  std::printf("%zu characters of %s, %lld different ones; the last tenth is held back\n",
              text.train.size() + text.held_back.size(), options.data.c_str(), static_cast<long long>(characters));

  millrace::Graph graph;
  const Network net = BuildNetwork(graph, characters, options.layers, options.units, kSeed);
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
  Reader reader(net, session);
  constexpr size_t kTestCharacters = 2000;
  const auto look = [&](int64_t epoch) {
    const double perplexity = reader.Perplexity(text.held_back, kTestCharacters);
    const Tensor value(static_cast<float>(perplexity));
    events.AddSummary(session.Run({{net.test_perplexity, value}}, {net.test_summary})[0].strings()[0], step);
    std::printf("epoch %lld: perplexity %.2f a character on held-back text; it writes\n", static_cast<long long>(epoch),
                perplexity);
    PrintIndented(reader.Write(text.characters, 160, options.temperature, static_cast<uint64_t>(step)));
    std::fflush(stdout);
  };

  const int64_t total = std::max(options.epochs * chunks, step);
  Progress progress(step, total);
  for (; step < total && !interrupted;) {
    if (step % chunks == 0) session.RunTargets({net.forget});
    const std::vector<Tensor> out =
        session.Run(Chunk(net, text.train, step % chunks), {net.loss, net.train_summary}, {net.train});
    ++step;
    char note[80];
    const auto loss = static_cast<double>(out[0].scalar<float>());
    std::snprintf(note, sizeof note, "loss %.3f, perplexity %.2f", loss, std::exp(loss));
    progress.Show(step, note);
    if (step % 10 == 0) events.AddSummary(out[1].strings()[0], step);
    if (step % (5 * chunks) == 0 && step < total) progress.Clear(), look(step / chunks);
  }
  progress.Clear();
  const std::string saved = saver.Save(session, prefix, step);
  if (interrupted) {
    std::printf("stopped at step %lld of %lld and saved %s; the same command goes on from there\n",
                static_cast<long long>(step), static_cast<long long>(total), saved.c_str());
    return 130;
  }
  look(step / chunks);
  std::printf("saved %s\n\nWhat to look at next:\n", saved.c_str());
  std::printf("  tensorboard --logdir %s    loss, perplexity and the graph\n", options.dir.c_str());
  std::printf("  shakespeare --data FILE --dir RUN --units 512    any other text, a larger network\n");
  std::printf("  examples/shakespeare/network.cc    how it is done, in 100 lines\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, [](int) { interrupted = 1; });
  try {
    return Train(ParseOptions(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "shakespeare: %s\n", e.what());
    return 1;
  }
}
