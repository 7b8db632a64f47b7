// SPDX-License-Identifier: Apache-2.0
// Suppression of what overlaps something better: the greedy choice (hard), and the one that lowers scores (Bodla et
// al., Soft-NMS, 2017).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/stop_scope.h"
#include "tensor/half.h"

namespace millrace {

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

// Two opposite corners.
inline Box BoxOf(float a, float b, float c, float d) {
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

// Intersection over union; 0 of boxes without area.
inline float Similarity(const Box& a, const Box& b) {
  if (!(a.area() > 0) || !(b.area() > 0)) return 0;
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float both = std::max(height, 0.0f) * std::max(width, 0.0f);
  return both / (a.area() + b.area() - both);
}

struct SuppressionRule {
  int64_t most = 0;            // so many are kept
  float similar = 0.5f;        // what is more similar than this to something better is left out
  float least = 0;             // as is what scores no more than this
  float sigma = 0;             // above 0: scores fall by exp(-similarity^2 / 2 sigma) instead
  bool round_to_half = false;  // scores and their factors
};

struct Kept {
  int32_t number;
  float score;
};

// The best of `scores` first. `similarity(i, j)` is asked for candidates i and what was kept before.
template <typename SimilarityFn>
std::vector<Kept> Suppress(const std::vector<float>& scores, const SuppressionRule& rule,
                           const SimilarityFn& similarity) {
  struct Candidate {
    float score;
    int32_t number;
    size_t compared;  // with so many of those kept
  };
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.number > b.number);
  };
  const auto rounded = [&](float x) { return rule.round_to_half ? static_cast<float>(Half(x)) : x; };
  std::vector<Candidate> heap;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > rule.least) heap.push_back({scores[i], static_cast<int32_t>(i), 0});
  }
  std::make_heap(heap.begin(), heap.end(), worse);
  const float scale = rule.sigma > 0 ? rounded(-0.5f / rule.sigma) : 0.0f;
  std::vector<Kept> kept;
  StopNowAndThen pause;
  while (static_cast<int64_t>(kept.size()) < rule.most && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), worse);
    Candidate next = heap.back();
    heap.pop_back();
    const float before = next.score;
    bool left_out = false;
    for (size_t j = kept.size(); j-- > next.compared && !left_out;) {  // the last ones are the most similar, as a rule
      pause();
      const float s = similarity(next.number, kept[j].number);
      if (rule.sigma > 0) {
        next.score = rounded(next.score * rounded(std::exp(rounded(rounded(scale * s) * s))));
        left_out = !(next.score > rule.least);
      } else {
        left_out = !(s <= rule.similar);
      }
    }
    if (left_out) continue;
    next.compared = kept.size();
    if (next.score == before) {
      kept.push_back({next.number, next.score});
    } else {
      heap.push_back(next);
      std::push_heap(heap.begin(), heap.end(), worse);
    }
  }
  return kept;
}

}  // namespace millrace
