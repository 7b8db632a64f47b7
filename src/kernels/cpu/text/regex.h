// SPDX-License-Identifier: Apache-2.0
// Regular expressions with RE2's syntax and meaning: leftmost matches, alternatives in their order, time proportional
// to text times pattern whatever they are. Text is UTF-8; a byte that is none of it matches \C and nothing else.
// Properties (\p{Greek}) are not known, and case is ignored for ASCII only. Why not RE2 itself:
// docs/decisions/0018-regular-expressions.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace millrace {

// One step of the machine that a pattern becomes.
struct RegexStep {
  enum class Kind : uint8_t { kClass, kAnyByte, kSplit, kSave, kAssert, kMatch };
  enum class Place : uint8_t { kBeginText, kEndText, kBeginLine, kEndLine, kWord, kNotWord };
  Kind kind = Kind::kMatch;
  Place place = Place::kBeginText;
  int32_t next = 0;
  int32_t other = 0;  // kSplit: the second choice; kClass: which; kSave: where
};

// Characters, as sorted disjoint ranges.
class RegexClass {
 public:
  void Add(uint32_t from, uint32_t to) { ranges_.push_back({from, to}); }
  void Add(const RegexClass& o) { ranges_.insert(ranges_.end(), o.ranges_.begin(), o.ranges_.end()); }
  void AddOtherCase();
  void Finish(bool negated);  // sorts, merges; before this, Has must not be called
  bool Has(uint32_t c) const;

 private:
  struct Range {
    uint32_t from, to;
  };
  std::vector<Range> ranges_;
  bool ascii_[128] = {};
};

struct RegexProgram {
  std::vector<RegexStep> steps;
  std::vector<RegexClass> classes;
  int32_t start = 0;
  int groups = 0;  // without the whole match
};

// InvalidArgument says what is wrong with the pattern.
StatusOr<RegexProgram> CompileRegex(absl::string_view pattern);

// A compiled pattern. Immutable, so thread-safe.
class Regex {
 public:
  static StatusOr<Regex> Compile(absl::string_view pattern);
  const RegexProgram& program() const { return program_; }

 private:
  explicit Regex(RegexProgram program) : program_(std::move(program)) {}
  RegexProgram program_;
};

class RegexAutomaton;
class RegexGroups;

// Matches texts with a pattern, which must outlive it. Keeps what earlier texts have taught it: use one for many texts,
// and by one thread at a time.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  ~RegexMatcher();

  bool FullMatch(absl::string_view text);
  // The first match, or all, replaced by `rewrite`, in which \0 to \9 are the match and its groups. A rewrite that
  // names a group that is not there, or has another escape, changes nothing. Good until the next call.
  const std::string& Replace(absl::string_view text, absl::string_view rewrite, bool global);

 private:
  // Begin and end of the match and its groups, -1 where there is none.
  using Spans = std::vector<int64_t>;
  bool Find(absl::string_view text, size_t from, int64_t* budget, Spans* spans);

  const RegexProgram& program_;
  std::unique_ptr<RegexAutomaton> whole_, search_;  // null: the pattern is not for them
  std::unique_ptr<RegexGroups> groups_;             // with search_
  std::string replaced_;
  Spans spans_;
};

}  // namespace millrace
