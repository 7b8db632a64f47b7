// SPDX-License-Identifier: Apache-2.0
// A deterministic automaton of a pattern, made state by state as texts ask for it: a state is the list of steps at
// which the machine's threads stand, in the order of their preference. One look-up per ASCII character; other
// characters are decoded and looked up by state and code. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/hash_map.h"
#include "kernels/cpu/text/regex.h"

namespace millrace {

class RegexAutomaton {
 public:
  // `whole`: it says whether all of a text matches; else how far the preferred match reaches.
  RegexAutomaton(const RegexProgram& program, bool whole);

  // Whether the pattern can be run at all: places other than the begin and the end of the text are not known to it.
  static bool Knows(const RegexProgram& program);

  enum class Verdict : uint8_t { kNo, kYes, kTooLarge };
  // kTooLarge: the pattern has too many states for this text.
  Verdict Whole(absl::string_view text);
  // The end of the match that begins at `from`. Each character costs one of `*budget`; kTooLarge where that is spent.
  Verdict MatchAt(absl::string_view text, size_t from, int64_t* budget, size_t* end);
  // The first place from `from` on, at most the text's length, where a match may begin.
  size_t NextStart(absl::string_view text, size_t from);

 private:
  static constexpr int32_t kDead = 0, kUnknown = -1, kFull = -2;
  static constexpr size_t kMostStates = 1000, kMostOthers = 1 << 16;
  static constexpr int32_t kAscii = 128;

  struct State {
    std::vector<int32_t> steps;
    bool matches = false, matches_at_end = false;
  };

  void Follow(int32_t first, bool begins, bool ends, std::vector<int32_t>* to);
  int32_t StateOf(std::vector<int32_t> steps, bool begins);
  int32_t Start(bool begins);
  // Follows ASCII characters from *at on as far as states are known and live. Returns the state in which *at is read.
  int32_t FollowKnown(int32_t state, absl::string_view text, size_t* at) const;
  int32_t FollowToMatch(int32_t state, absl::string_view text, size_t* at, bool* found, size_t* end) const;
  // The state after a character; `code` is that of a valid one.
  int32_t After(int32_t state, bool valid, uint32_t code);
  int32_t Next(int32_t state, absl::string_view text, size_t at, size_t* size);
  void FindFirst();

  const RegexProgram& program_;
  const bool whole_;
  std::vector<State> states_;
  std::vector<uint8_t> matches_;           // of each state
  std::vector<int32_t> next_;              // after ASCII character c in state s: at s * kAscii + c
  HashMap<uint64_t, int32_t> next_other_;  // after others: by state and code
  HashMap<std::vector<int32_t>, int32_t> index_;
  int32_t starts_[2] = {kUnknown, kUnknown};
  std::vector<bool> seen_;
  std::vector<int32_t> visited_, pending_;
  bool first_known_ = false, starts_anywhere_ = false;
  std::array<bool, 128> first_{};
};

}  // namespace millrace
