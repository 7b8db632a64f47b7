// SPDX-License-Identifier: Apache-2.0
// The groups of a match whose begin and end are known. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/text/regex.h"

namespace millrace {

class RegexGroups {
 public:
  explicit RegexGroups(const RegexProgram& program) : program_(program), forks_(program.steps.size()) {}

  enum class Verdict : uint8_t { kNo, kYes, kTooLarge };
  // Begin and end of the match and of as many groups, at most 15, as `spans` has room for, -1 where there is none. kNo:
  // no such match. kTooLarge: the pattern, or that times the length of the match.
  Verdict Find(absl::string_view text, size_t from, size_t end, std::vector<int64_t>* spans);

 private:
  static constexpr size_t kMostPlaces = 1 << 18;  // a bit each
  static constexpr size_t kMostExits = 1 << 16;
  static constexpr size_t kAscii = 128;
  static constexpr size_t kNoneLeft = static_cast<size_t>(-1);  // of a fork's exits
  static constexpr int16_t kNone = -1, kSome = -2;

  // A step that waits for a character or a place, or the match, and the spans that are saved on the way to it, a bit
  // each; \0 to \9 are all that is ever asked for.
  struct Exit {
    int32_t step;
    uint32_t saves;
  };
  // All exits that a step leads to, in the order of preference.
  struct Fork {
    std::vector<Exit> exits;
    std::array<int16_t, kAscii> only{};  // by character: the one exit that takes it, or kNone, or kSome: look at all
  };
  struct Job {  // an exit still to be tried, and those behind it
    int32_t step;
    size_t exit, at, undo;
  };
  struct Undo {
    size_t place;
    int64_t old;
  };

  const Fork& ForkOf(int32_t step);
  void Collect(int32_t step, Fork* fork) const;
  bool TakesAscii(const Exit& exit, uint32_t c) const;
  // Where the text goes on behind an exit, beyond its end where it does not.
  size_t Behind(const RegexStep& step, absl::string_view text, size_t at, size_t end) const;
  void Save(uint32_t saves, size_t at, std::vector<int64_t>* spans);

  const RegexProgram& program_;
  std::vector<std::unique_ptr<Fork>> forks_;  // by step; null: not asked for yet
  size_t exits_ = 0;                          // of all forks
  std::vector<uint64_t> visited_;
  std::vector<Job> jobs_;
  std::vector<Undo> undo_;
};

// Whether a place is at `at`.
bool RegexPlaceHolds(RegexStep::Place place, absl::string_view text, size_t at);

}  // namespace millrace
