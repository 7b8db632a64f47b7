// SPDX-License-Identifier: Apache-2.0
// Pike's machine: all threads of a pattern go through the text together, in the order of their preference, and no two
// of them stand at one step. Where only the ends of matches are asked for, an automaton finds them with one look-up per
// character; the groups of a match are looked for in it alone.
#include "kernels/cpu/text/regex.h"

#include <algorithm>

#include "kernels/cpu/engine/utf8.h"
#include "kernels/cpu/text/regex_automaton.h"
#include "kernels/cpu/text/regex_groups.h"

namespace millrace {
namespace {

class Machine {
 public:
  Machine(const RegexProgram& program, absl::string_view text, size_t spans)
      : program_(program), text_(text), width_(spans), now_(program.steps.size()), then_(program.steps.size()) {}

  // Where a match may lie: anywhere from `from` on, beginning there, or from there to the end of the text.
  enum class Where : uint8_t { kAnywhere, kBegins, kWhole };
  // `spans` has room for as many as the machine keeps; null for none.
  bool Run(size_t from, Where where, std::vector<int64_t>* spans) {
    const bool full = where == Where::kWhole, anchored = where != Where::kAnywhere;
    bool matched = false;
    std::vector<int64_t> fresh(width_, -1);
    for (size_t at = from;;) {
      if (!matched && (!anchored || at == from)) {
        if (width_ > 0) fresh[0] = static_cast<int64_t>(at);
        Follow(program_.start, at, fresh, &now_);
      }
      const bool at_end = at >= text_.size();
      const Utf8Char c = at_end ? Utf8Char{} : FirstUtf8Char(text_.substr(at));
      const size_t next = at + (c.valid ? c.size : 1);
      if (Advance(at, next, at_end ? nullptr : &c, full, spans)) matched = true;
      if (at_end || (then_.steps.empty() && (matched || anchored))) break;
      std::swap(now_, then_);
      then_.Clear();
      at = next;
    }
    now_.Clear();
    then_.Clear();
    return matched;
  }

 private:
  // Steps that wait for a character, in the order of preference; each with its spans.
  struct Threads {
    explicit Threads(size_t n) : seen(n, false) {}
    void Clear() {
      for (const int32_t step : visited) seen[static_cast<size_t>(step)] = false;
      visited.clear();
      steps.clear();
      spans.clear();
    }
    std::vector<bool> seen;
    std::vector<int32_t> visited;
    std::vector<int32_t> steps;
    std::vector<int64_t> spans;
  };

  struct Task {
    int32_t step;  // or -1: put back a span
    int32_t place;
    int64_t old;
  };

  // Adds every thread that step `first` leads to without a character.
  void Follow(int32_t first, size_t at, std::vector<int64_t>& spans, Threads* to) {
    tasks_.push_back({first, 0, 0});
    while (!tasks_.empty()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      if (task.step < 0) {
        spans[static_cast<size_t>(task.place)] = task.old;
        continue;
      }
      if (to->seen[static_cast<size_t>(task.step)]) continue;
      to->seen[static_cast<size_t>(task.step)] = true;
      to->visited.push_back(task.step);
      const RegexStep& step = program_.steps[static_cast<size_t>(task.step)];
      switch (step.kind) {
        case RegexStep::Kind::kSplit:
          tasks_.push_back({step.other, 0, 0});
          tasks_.push_back({step.next, 0, 0});
          break;
        case RegexStep::Kind::kAssert:
          if (RegexPlaceHolds(step.place, text_, at)) tasks_.push_back({step.next, 0, 0});
          break;
        case RegexStep::Kind::kSave:
          if (static_cast<size_t>(step.other) < width_) {
            int64_t& span = spans[static_cast<size_t>(step.other)];
            tasks_.push_back({-1, step.other, span});
            span = static_cast<int64_t>(at);
          }
          tasks_.push_back({step.next, 0, 0});
          break;
        default: to->steps.push_back(task.step); to->spans.insert(to->spans.end(), spans.begin(), spans.end());
      }
    }
  }

  // True when a match was found; threads that are less preferred than it end.
  bool Advance(size_t at, size_t next, const Utf8Char* c, bool full, std::vector<int64_t>* found) {
    std::vector<int64_t> spans(width_);
    for (size_t i = 0; i < now_.steps.size(); ++i) {
      const RegexStep& step = program_.steps[static_cast<size_t>(now_.steps[i])];
      const auto mine = now_.spans.begin() + static_cast<int64_t>(i * width_);
      if (step.kind == RegexStep::Kind::kMatch) {
        if (full && at != text_.size()) continue;
        if (found) {
          found->assign(mine, mine + static_cast<int64_t>(width_));
          if (width_ > 1) (*found)[1] = static_cast<int64_t>(at);
        }
        return true;
      }
      if (c == nullptr) continue;
      const bool goes =
          step.kind == RegexStep::Kind::kAnyByte
              ? true
              : c->valid && program_.classes[static_cast<size_t>(step.other)].Has(c->code);
      if (!goes) continue;
      spans.assign(mine, mine + static_cast<int64_t>(width_));
      Follow(step.next, next, spans, &then_);
    }
    return false;
  }

  const RegexProgram& program_;
  const absl::string_view text_;
  const size_t width_;  // spans kept
  Threads now_, then_;
  std::vector<Task> tasks_;
};

// Whether \0 to \9 are groups that there are, and every backslash is known.
bool IsRewrite(absl::string_view rewrite, int groups) {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') continue;
    if (++i == rewrite.size()) return false;
    if (rewrite[i] == '\\') continue;
    if (rewrite[i] < '0' || rewrite[i] > '9' || rewrite[i] - '0' > groups) return false;
  }
  return true;
}

void Rewrite(absl::string_view text, absl::string_view rewrite, const std::vector<int64_t>& spans, std::string* out) {
  for (size_t i = 0; i < rewrite.size(); ++i) {
    if (rewrite[i] != '\\') {
      out->push_back(rewrite[i]);
    } else if (rewrite[++i] == '\\') {
      out->push_back('\\');
    } else {
      const auto group = static_cast<size_t>(rewrite[i] - '0');
      const int64_t begin = spans[2 * group], end = spans[2 * group + 1];
      if (begin >= 0 && end >= begin) {
        absl::StrAppend(out, text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
      }
    }
  }
}

}  // namespace

StatusOr<Regex> Regex::Compile(absl::string_view pattern) {
  MR_ASSIGN_OR_RETURN(RegexProgram program, CompileRegex(pattern));
  return Regex(std::move(program));
}

RegexMatcher::RegexMatcher(const Regex& regex) : program_(regex.program()) {
  if (!RegexAutomaton::Knows(program_)) return;
  whole_ = std::make_unique<RegexAutomaton>(program_, true);
  search_ = std::make_unique<RegexAutomaton>(program_, false);
  groups_ = std::make_unique<RegexGroups>(program_);
}
RegexMatcher::~RegexMatcher() = default;

bool RegexMatcher::FullMatch(absl::string_view text) {
  if (whole_) {
    const RegexAutomaton::Verdict verdict = whole_->Whole(text);
    if (verdict != RegexAutomaton::Verdict::kTooLarge) return verdict == RegexAutomaton::Verdict::kYes;
    whole_.reset();
  }
  return Machine(program_, text, 0).Run(0, Machine::Where::kWhole, nullptr);
}

// The automaton tries one begin after another, which `budget` bounds.
bool RegexMatcher::Find(absl::string_view text, size_t from, int64_t* budget, Spans* spans) {
  for (size_t at = from; search_ && *budget > 0;) {
    at = search_->NextStart(text, at);
    size_t end = 0;
    const RegexAutomaton::Verdict verdict = search_->MatchAt(text, at, budget, &end);
    if (verdict == RegexAutomaton::Verdict::kTooLarge) {
      if (*budget > 0) search_.reset();
      break;
    }
    if (verdict == RegexAutomaton::Verdict::kYes) {
      if (spans->size() > 2) {
        const RegexGroups::Verdict groups = groups_->Find(text, at, end, spans);
        if (groups != RegexGroups::Verdict::kTooLarge) return groups == RegexGroups::Verdict::kYes;
        return Machine(program_, text, spans->size()).Run(at, Machine::Where::kBegins, spans);
      }
      (*spans)[0] = static_cast<int64_t>(at);
      (*spans)[1] = static_cast<int64_t>(end);
      return true;
    }
    if (at >= text.size()) return false;
    const Utf8Char c = FirstUtf8Char(text.substr(at));
    at += c.valid ? c.size : 1;
  }
  return Machine(program_, text, spans->size()).Run(from, Machine::Where::kAnywhere, spans);
}

const std::string& RegexMatcher::Replace(absl::string_view text, absl::string_view rewrite, bool global) {
  std::string& out = replaced_;
  if (!IsRewrite(rewrite, program_.groups)) {
    out.assign(text.data(), text.size());
    return out;
  }
  out.clear();
  int group = 0;  // the last that the rewrite names
  for (size_t i = 0; i + 1 < rewrite.size(); ++i) {
    if (rewrite[i] == '\\' && rewrite[++i] != '\\') group = std::max(group, rewrite[i] - '0');
  }
  Spans& spans = spans_;
  spans.resize(2 * static_cast<size_t>(group + 1));
  int64_t budget = 16 * static_cast<int64_t>(text.size()) + 64;
  size_t at = 0;
  int64_t last_end = -1;
  while (at <= text.size() && Find(text, at, &budget, &spans)) {
    const auto begin = static_cast<size_t>(spans[0]), end = static_cast<size_t>(spans[1]);
    absl::StrAppend(&out, text.substr(at, begin - at));
    at = begin;
    if (begin == end && spans[0] == last_end) {  // no empty match right behind another
      if (at == text.size()) break;
      const Utf8Char c = FirstUtf8Char(text.substr(at));
      const size_t size = c.valid ? c.size : 1;
      absl::StrAppend(&out, text.substr(at, size));
      at += size;
      continue;
    }
    Rewrite(text, rewrite, spans, &out);
    at = end;
    last_end = spans[1];
    if (!global) break;
  }
  if (at < text.size()) absl::StrAppend(&out, text.substr(at));
  return out;
}

}  // namespace millrace
