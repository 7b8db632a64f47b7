// SPDX-License-Identifier: Apache-2.0
// Mostly one exit alone takes the next character: then a look-up says which, and it is followed. Where several may,
// they are tried one after another, in the order of preference, and no place of the text is tried twice from one step:
// what failed there fails again.
#include "kernels/cpu/text/regex_groups.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/engine/utf8.h"

namespace millrace {
namespace {

bool IsWord(absl::string_view text, size_t at) {
  if (at >= text.size()) return false;
  const char c = text[at];
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

bool RegexPlaceHolds(RegexStep::Place place, absl::string_view text, size_t at) {
  const bool word = (at > 0 && IsWord(text, at - 1)) != IsWord(text, at);
  switch (place) {
    case RegexStep::Place::kBeginText: return at == 0;
    case RegexStep::Place::kEndText: return at == text.size();
    case RegexStep::Place::kBeginLine: return at == 0 || text[at - 1] == '\n';
    case RegexStep::Place::kEndLine: return at == text.size() || text[at] == '\n';
    case RegexStep::Place::kWord: return word;
    case RegexStep::Place::kNotWord: return !word;
  }
  return false;
}

void RegexGroups::Collect(int32_t first, Fork* fork) const {
  std::vector<bool> seen(program_.steps.size());
  std::vector<Exit> tasks = {{first, 0}};
  while (!tasks.empty()) {
    const Exit task = tasks.back();
    tasks.pop_back();
    if (seen[static_cast<size_t>(task.step)]) continue;
    seen[static_cast<size_t>(task.step)] = true;
    const RegexStep& step = program_.steps[static_cast<size_t>(task.step)];
    switch (step.kind) {
      case RegexStep::Kind::kSplit:
        tasks.insert(tasks.end(), {{step.other, task.saves}, {step.next, task.saves}});
        break;
      case RegexStep::Kind::kSave:
        tasks.push_back({step.next, step.other < 32 ? task.saves | uint32_t{1} << step.other : task.saves});
        break;
      default: fork->exits.push_back(task);
    }
  }
}

bool RegexGroups::TakesAscii(const Exit& exit, uint32_t c) const {
  const RegexStep& step = program_.steps[static_cast<size_t>(exit.step)];
  return step.kind == RegexStep::Kind::kAnyByte ||
         (step.kind == RegexStep::Kind::kClass && program_.classes[static_cast<size_t>(step.other)].Has(c));
}

const RegexGroups::Fork& RegexGroups::ForkOf(int32_t step) {
  std::unique_ptr<Fork>& fork = forks_[static_cast<size_t>(step)];
  if (fork) return *fork;
  fork = std::make_unique<Fork>();
  Collect(step, fork.get());
  exits_ += fork->exits.size();
  const bool places = std::any_of(fork->exits.begin(), fork->exits.end(), [this](const Exit& e) {
    return program_.steps[static_cast<size_t>(e.step)].kind == RegexStep::Kind::kAssert;
  });
  for (uint32_t c = 0; c < kAscii; ++c) {
    int16_t only = places || fork->exits.size() > 1000 ? kSome : kNone;
    for (size_t k = 0; k < fork->exits.size() && only != kSome; ++k) {
      if (TakesAscii(fork->exits[k], c)) only = only == kNone ? static_cast<int16_t>(k) : kSome;
    }
    fork->only[c] = only;
  }
  return *fork;
}

size_t RegexGroups::Behind(const RegexStep& step, absl::string_view text, size_t at, size_t end) const {
  switch (step.kind) {
    case RegexStep::Kind::kMatch: return at == end ? at : end + 1;
    case RegexStep::Kind::kAssert: return RegexPlaceHolds(step.place, text, at) ? at : end + 1;
    default: break;
  }
  if (at >= end) return end + 1;
  const Utf8Char c = FirstUtf8Char(text.substr(at));
  const bool takes = step.kind == RegexStep::Kind::kAnyByte ||
                     (c.valid && program_.classes[static_cast<size_t>(step.other)].Has(c.code));
  return takes ? at + (c.valid ? c.size : 1) : end + 1;
}

inline void RegexGroups::Save(uint32_t saves, size_t at, std::vector<int64_t>* spans) {
  for (; saves != 0; saves &= saves - 1) {
    const auto place = static_cast<size_t>(std::countr_zero(saves));
    if (place >= spans->size()) return;
    if (!jobs_.empty()) undo_.push_back({place, (*spans)[place]});
    (*spans)[place] = static_cast<int64_t>(at);
  }
}

RegexGroups::Verdict RegexGroups::Find(absl::string_view text, size_t from, size_t end, std::vector<int64_t>* spans) {
  const size_t width = end - from + 1;
  if (width * program_.steps.size() > kMostPlaces) return Verdict::kTooLarge;
  std::fill(spans->begin(), spans->end(), -1);
  (*spans)[0] = static_cast<int64_t>(from);
  (*spans)[1] = static_cast<int64_t>(end);
  jobs_.clear();
  undo_.clear();
  visited_.clear();  // until there is a choice, nothing is visited twice
  int32_t at_step = program_.start;
  size_t at = from, exit = 0;
  for (;;) {
    const Fork& fork = ForkOf(at_step);
    if (exits_ > kMostExits) return Verdict::kTooLarge;
    const auto byte = at < end ? static_cast<unsigned char>(text[at]) : kAscii;
    if (exit == 0 && byte < kAscii && fork.only[byte] >= 0) {
      const Exit& only = fork.exits[static_cast<size_t>(fork.only[byte])];
      Save(only.saves, at, spans);
      at_step = program_.steps[static_cast<size_t>(only.step)].next;
      ++at;
    } else {
      size_t behind = end + 1;
      while (exit < fork.exits.size()) {
        behind = Behind(program_.steps[static_cast<size_t>(fork.exits[exit].step)], text, at, end);
        if (behind <= end) break;
        ++exit;
      }
      if (behind <= end) {
        const Exit& taken = fork.exits[exit];
        const RegexStep& step = program_.steps[static_cast<size_t>(taken.step)];
        if (visited_.empty()) visited_.resize((width * program_.steps.size() + 63) / 64);
        if (exit + 1 < fork.exits.size()) jobs_.push_back({at_step, exit + 1, at, undo_.size()});
        Save(taken.saves, at, spans);
        if (step.kind == RegexStep::Kind::kMatch) return Verdict::kYes;
        at_step = step.next;
        at = behind;
      } else {
        if (jobs_.empty()) return Verdict::kNo;
        const Job& job = jobs_.back();
        for (; undo_.size() > job.undo; undo_.pop_back()) (*spans)[undo_.back().place] = undo_.back().old;
        at_step = job.step;
        at = job.at;
        exit = job.exit;
        jobs_.pop_back();
        continue;
      }
    }
    exit = 0;
    if (visited_.empty()) continue;
    const size_t bit = static_cast<size_t>(at_step) * width + (at - from);
    if (visited_[bit / 64] >> bit % 64 & 1) exit = kNoneLeft;
    visited_[bit / 64] |= uint64_t{1} << bit % 64;
  }
}

}  // namespace millrace
