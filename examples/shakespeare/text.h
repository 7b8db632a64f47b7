// SPDX-License-Identifier: Apache-2.0
// A text as numbers of characters, and choosing a character by its probability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Text {
  std::string characters;          // each once, sorted; its place is its number
  std::vector<int32_t> train;      // nine tenths of the text
  std::vector<int32_t> held_back;  // the last tenth
};
// Throws std::runtime_error when the file cannot be read or is too short.
Text LoadText(const std::string& path);

// The number of a character drawn from softmax(logits / temperature). `state` is the generator's, and moves on.
int32_t Draw(const std::vector<float>& logits, double temperature, uint64_t* state);
