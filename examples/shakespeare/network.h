// SPDX-License-Identifier: Apache-2.0
// The network of the example: characters in, the next character's probabilities out, through a stack of LSTM layers.
#pragma once

#define MILLRACE_EXCEPTIONS 1
#include <millrace/rnn.h>

inline constexpr int64_t kBatch = 32;  // streams of text that are read side by side
inline constexpr int64_t kSteps = 50;  // characters of each that one training step reads

struct Network {
  // Training: numbers of characters [kSteps, kBatch], and of those that follow them. The state that a chunk of text
  // leaves is where the next one starts; `forget` lets the streams start anew.
  millrace::Output inputs, targets, loss, step, train_summary;
  millrace::Operation train, init, forget;
  // One step of one stream, to read or write text: character [1] and state in, logits and state out.
  millrace::Output character, logits;
  std::vector<millrace::Output> state, next_state;
  std::vector<int64_t> state_sizes;
  millrace::Output test_perplexity, test_summary;
};

Network BuildNetwork(millrace::Graph& graph, int64_t characters, int64_t layers, int64_t units, int64_t seed);
