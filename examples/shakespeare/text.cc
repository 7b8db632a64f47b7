// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

Text LoadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file && all.empty()) throw std::runtime_error("cannot read " + path);
  if (all.size() < 2000) throw std::runtime_error(path + " has less than 2000 characters, which is too short");
  Text text;
  text.characters = all;
  std::sort(text.characters.begin(), text.characters.end());
  text.characters.erase(std::unique(text.characters.begin(), text.characters.end()), text.characters.end());
  const size_t cut = all.size() / 10 * 9;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t number = text.characters.find(all[i]);
    (i < cut ? text.train : text.held_back).push_back(static_cast<int32_t>(number));
  }
  return text;
}

int32_t Draw(const std::vector<float>& logits, double temperature, uint64_t* state) {
  // splitmix64 (Steele, Lea and Flood 2014)
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  const double u = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  const auto top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> weights;
  double total = 0;
  for (float v : logits) {
    weights.push_back(std::exp((static_cast<double>(v) - top) / temperature));
    total += weights.back();
  }
  double left = u * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(weights.size() - 1);
}
