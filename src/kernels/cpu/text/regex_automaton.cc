// SPDX-License-Identifier: Apache-2.0
// A search keeps no thread behind one that has matched: it would be less preferred. A test of whole texts keeps all.
#include "kernels/cpu/text/regex_automaton.h"

#include <algorithm>

#include "kernels/cpu/engine/utf8.h"

namespace millrace {

RegexAutomaton::RegexAutomaton(const RegexProgram& program, bool whole)
    : program_(program), whole_(whole), seen_(program.steps.size(), false) {
  states_.emplace_back();  // kDead
  matches_.push_back(0);
  next_.assign(kAscii, kDead);
  index_[{}] = kDead;
}

bool RegexAutomaton::Knows(const RegexProgram& program) {
  return std::all_of(program.steps.begin(), program.steps.end(), [](const RegexStep& step) {
    return step.kind != RegexStep::Kind::kAssert || step.place == RegexStep::Place::kBeginText ||
           step.place == RegexStep::Place::kEndText;
  });
}

// Appends the steps that wait for a character, match, or wait for the end of the text. seen_ holds between calls that
// make one list.
void RegexAutomaton::Follow(int32_t first, bool begins, bool ends, std::vector<int32_t>* to) {
  pending_.push_back(first);
  while (!pending_.empty()) {
    const int32_t at = pending_.back();
    pending_.pop_back();
    if (seen_[static_cast<size_t>(at)]) continue;
    seen_[static_cast<size_t>(at)] = true;
    visited_.push_back(at);
    const RegexStep& step = program_.steps[static_cast<size_t>(at)];
    switch (step.kind) {
      case RegexStep::Kind::kSplit:
        pending_.push_back(step.other);
        pending_.push_back(step.next);
        break;
      case RegexStep::Kind::kSave: pending_.push_back(step.next); break;
      case RegexStep::Kind::kAssert:
        if (step.place == RegexStep::Place::kBeginText ? begins : ends) {
          pending_.push_back(step.next);
        } else if (step.place == RegexStep::Place::kEndText) {
          to->push_back(at);
        }
        break;
      case RegexStep::Kind::kMatch:
        to->push_back(at);
        if (!whole_) pending_.clear();
        break;
      default: to->push_back(at);
    }
  }
}

int32_t RegexAutomaton::StateOf(std::vector<int32_t> steps, bool begins) {
  for (const int32_t at : visited_) seen_[static_cast<size_t>(at)] = false;
  visited_.clear();
  const auto kind = [this](int32_t at) { return program_.steps[static_cast<size_t>(at)].kind; };
  const auto is_match = [&](int32_t at) { return kind(at) == RegexStep::Kind::kMatch; };
  if (!whole_) {  // nothing behind a match
    const auto match = std::find_if(steps.begin(), steps.end(), is_match);
    if (match != steps.end()) steps.erase(match + 1, steps.end());
  }
  if (const auto it = index_.find(steps); it != index_.end() && !begins) return it->second;
  if (states_.size() >= kMostStates) return kFull;
  State state;
  state.matches = std::any_of(steps.begin(), steps.end(), is_match);
  std::vector<int32_t> at_end;
  for (const int32_t at : steps) {
    if (kind(at) == RegexStep::Kind::kAssert) {
      Follow(program_.steps[static_cast<size_t>(at)].next, begins, true, &at_end);
    }
  }
  for (const int32_t at : visited_) seen_[static_cast<size_t>(at)] = false;
  visited_.clear();
  state.matches_at_end = state.matches || std::any_of(at_end.begin(), at_end.end(), is_match);
  const auto number = static_cast<int32_t>(states_.size());
  state.steps = steps;
  matches_.push_back(state.matches);
  states_.push_back(std::move(state));
  next_.resize(next_.size() + kAscii, kUnknown);
  if (!begins) index_[std::move(steps)] = number;
  return number;
}

int32_t RegexAutomaton::Start(bool begins) {
  int32_t& start = starts_[begins];
  if (start == kUnknown) {
    std::vector<int32_t> steps;
    Follow(program_.start, begins, false, &steps);
    start = StateOf(std::move(steps), begins);
  }
  return start;
}

int32_t RegexAutomaton::After(int32_t state, bool valid, uint32_t code) {
  std::vector<int32_t> steps;
  for (size_t i = 0; i < states_[static_cast<size_t>(state)].steps.size(); ++i) {
    const int32_t at = states_[static_cast<size_t>(state)].steps[i];
    const RegexStep& step = program_.steps[static_cast<size_t>(at)];
    const bool goes =
        step.kind == RegexStep::Kind::kAnyByte ||
        (step.kind == RegexStep::Kind::kClass && valid && program_.classes[static_cast<size_t>(step.other)].Has(code));
    if (goes) Follow(step.next, false, false, &steps);
  }
  return StateOf(std::move(steps), false);
}

int32_t RegexAutomaton::FollowKnown(int32_t state, absl::string_view text, size_t* at) const {
  const int32_t* const table = next_.data();
  size_t i = *at;
  for (; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= kAscii) break;
    const int32_t next = table[state * kAscii + byte];
    if (next <= kDead) break;
    state = next;
  }
  *at = i;
  return state;
}

// FollowKnown, and of the states gone through the last that matches.
int32_t RegexAutomaton::FollowToMatch(int32_t state, absl::string_view text, size_t* at, bool* found,
                                      size_t* end) const {
  const int32_t* const table = next_.data();
  const uint8_t* const matches = matches_.data();
  size_t i = *at, last = text.size() + 1;
  for (;; ++i) {
    if (matches[state]) last = i;
    if (i >= text.size()) break;
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= kAscii) break;
    const int32_t next = table[state * kAscii + byte];
    if (next <= kDead) break;
    state = next;
  }
  if (last <= text.size()) *found = true, *end = last;
  *at = i;
  return state;
}

inline int32_t RegexAutomaton::Next(int32_t state, absl::string_view text, size_t at, size_t* size) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < kAscii) {
    *size = 1;
    const auto place = static_cast<size_t>(state * kAscii + byte);
    if (next_[place] != kUnknown) return next_[place];
    const int32_t next = After(state, true, byte);
    if (next != kFull) next_[place] = next;
    return next;
  }
  const Utf8Char c = FirstUtf8Char(text.substr(at));
  *size = c.valid ? c.size : 1;
  if (state == kDead) return kDead;
  constexpr uint64_t kNoCode = 0xffffffff;
  const uint64_t key = static_cast<uint64_t>(state) << 32 | (c.valid ? c.code : kNoCode);
  if (const auto it = next_other_.find(key); it != next_other_.end()) return it->second;
  const int32_t next = After(state, c.valid, c.code);
  if (next_other_.size() >= kMostOthers) next_other_.clear();
  if (next != kFull) next_other_[key] = next;
  return next;
}

RegexAutomaton::Verdict RegexAutomaton::Whole(absl::string_view text) {
  int32_t state = Start(true);
  for (size_t at = 0, size = 0; at < text.size() && state > kDead; at += size) {
    size = 0;
    state = FollowKnown(state, text, &at);
    if (at < text.size()) state = Next(state, text, at, &size);
  }
  if (state == kFull) return Verdict::kTooLarge;
  return state != kDead && states_[static_cast<size_t>(state)].matches_at_end ? Verdict::kYes : Verdict::kNo;
}

RegexAutomaton::Verdict RegexAutomaton::MatchAt(absl::string_view text, size_t from, int64_t* budget, size_t* end) {
  int32_t state = Start(from == 0);
  bool found = false;
  size_t at = from;
  for (size_t size = 0; at < text.size() && state > kDead; at += size) {
    size = 0;
    const size_t before = at;
    state = FollowToMatch(state, text, &at, &found, end);
    *budget -= static_cast<int64_t>(at - before) + 1;
    if (*budget < 0) return Verdict::kTooLarge;
    if (at < text.size()) state = Next(state, text, at, &size);
  }
  if (state == kFull) return Verdict::kTooLarge;
  if (state != kDead && at == text.size() && states_[static_cast<size_t>(state)].matches_at_end) {
    found = true, *end = at;
  }
  return found ? Verdict::kYes : Verdict::kNo;
}

// The ASCII characters that a match in the middle of a text may begin with.
void RegexAutomaton::FindFirst() {
  first_known_ = true;
  const int32_t start = Start(false);
  starts_anywhere_ = start == kFull || (start != kDead && states_[static_cast<size_t>(start)].matches_at_end);
  for (uint32_t c = 0; c < 128 && !starts_anywhere_; ++c) {
    const char one = static_cast<char>(c);
    size_t size;
    const int32_t next = Next(start, absl::string_view(&one, 1), 0, &size);
    if (next == kFull) starts_anywhere_ = true;
    first_[c] = next != kDead;
  }
}

size_t RegexAutomaton::NextStart(absl::string_view text, size_t from) {
  if (!first_known_) FindFirst();
  if (starts_anywhere_ || from == 0) return from;
  while (from < text.size()) {
    const auto byte = static_cast<unsigned char>(text[from]);
    if (byte >= 128 || first_[byte]) return from;
    ++from;
  }
  return from;
}

}  // namespace millrace
