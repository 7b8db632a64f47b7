// SPDX-License-Identifier: Apache-2.0
// A parser by descent, as deep as groups are nested, which is limited; then one walk over the tree makes the steps.
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "kernels/cpu/engine/utf8.h"
#include "kernels/cpu/text/regex.h"

namespace millrace {
namespace {

constexpr uint32_t kMaxChar = 0x10FFFF;
constexpr int kMaxDepth = 500;
constexpr int kMaxRepeat = 1000;
constexpr size_t kMaxSteps = 50000;

struct Tree {
  enum class Kind { kEmpty, kClass, kAnyByte, kPlace, kSequence, kChoice, kRepeat, kGroup };
  Kind kind = Kind::kEmpty;
  int32_t number = 0;  // of a class or group
  RegexStep::Place place = RegexStep::Place::kBeginText;
  int least = 0, most = 0;  // of a repetition; most -1: any
  bool greedy = true;
  std::vector<Tree> parts;
};

struct Flags {
  bool ignore_case = false, many_lines = false, dot_all = false, ungreedy = false;
};

struct NamedRanges {
  absl::string_view name;
  absl::string_view pairs;  // from, to, from, to ...
};
constexpr NamedRanges kNamed[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", absl::string_view("\0\x7f", 2)},
    {"blank", "\t\t  "},
    {"cntrl", absl::string_view("\0\x1f\x7f\x7f", 4)},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"}};

void AddPairs(absl::string_view pairs, RegexClass* out) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    out->Add(static_cast<unsigned char>(pairs[i]), static_cast<unsigned char>(pairs[i + 1]));
  }
}

RegexClass Negated(RegexClass c) {
  c.Finish(true);
  return c;
}

// \d and its kin.
bool AddPerl(char c, RegexClass* out) {
  RegexClass found;
  switch (c) {
    case 'd':
    case 'D': AddPairs("09", &found); break;
    case 'w':
    case 'W': AddPairs("09AZaz__", &found); break;
    case 's':
    case 'S': AddPairs("\t\n\f\r  ", &found); break;
    default: return false;
  }
  out->Add(c >= 'a' ? found : Negated(std::move(found)));
  return true;
}

class Parser {
 public:
  Parser(absl::string_view pattern, RegexProgram* program) : rest_(pattern), pattern_(pattern), program_(program) {}

  StatusOr<Tree> Parse() {
    MR_ASSIGN_OR_RETURN(Tree tree, Choice(0));
    if (!rest_.empty()) return Bad("unexpected )");
    return tree;
  }

 private:
  Status Bad(absl::string_view why) const {
    return InvalidArgument("Invalid pattern: ", pattern_.substr(0, 200), ", error: ", why);
  }
  bool Take(absl::string_view text) {
    if (!absl::StartsWith(rest_, text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  StatusOr<uint32_t> TakeChar() {
    const Utf8Char c = FirstUtf8Char(rest_);
    if (!c.valid) return Bad("invalid UTF-8");
    rest_.remove_prefix(c.size);
    return c.code;
  }

  StatusOr<Tree> Choice(int depth) {
    if (depth > kMaxDepth) return Bad("nested too deep");
    const Flags outer = flags_;
    Tree choice{.kind = Tree::Kind::kChoice};
    do {
      MR_ASSIGN_OR_RETURN(Tree sequence, Sequence(depth));
      choice.parts.push_back(std::move(sequence));
    } while (Take("|"));
    flags_ = outer;
    if (choice.parts.size() > 1) return choice;
    Tree only = std::move(choice.parts[0]);
    return only;
  }

  StatusOr<Tree> Sequence(int depth) {
    Tree sequence{.kind = Tree::Kind::kSequence};
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (Take("\\Q")) {
        while (!rest_.empty() && !Take("\\E")) {
          MR_ASSIGN_OR_RETURN(const uint32_t c, TakeChar());
          sequence.parts.push_back(Literal(c));
        }
        continue;
      }
      if (Take("\\E")) continue;
      MR_ASSIGN_OR_RETURN(const bool repeated, Repetition(sequence.parts.empty() ? nullptr : &sequence.parts.back()));
      if (repeated) continue;
      bool is_flags = false;
      MR_ASSIGN_OR_RETURN(Tree part, Item(depth, &is_flags));
      if (!is_flags) sequence.parts.push_back(std::move(part));
    }
    return sequence;
  }

  // Whether an operator follows, which then changes *part.
  StatusOr<bool> Repetition(Tree* part) {
    int least = 0, most = -1;
    if (!TakeOperator(&least, &most)) return false;
    if (part == nullptr) return Bad("no argument for repetition operator");
    if (least > kMaxRepeat || most > kMaxRepeat || (most >= 0 && most < least)) return Bad("bad repetition count");
    const bool lazy = Take("?");
    int again = 0;
    if (TakeOperator(&again, &again)) return Bad("bad repetition operator");
    Tree repeat{.kind = Tree::Kind::kRepeat, .least = least, .most = most, .greedy = lazy == flags_.ungreedy};
    repeat.parts.push_back(std::move(*part));
    *part = std::move(repeat);
    return true;
  }
  bool TakeOperator(int* least, int* most) {
    if (Take("*")) return true;
    if (Take("+")) {
      *least = 1;
      return true;
    }
    if (Take("?")) {
      *most = 1;
      return true;
    }
    return TakeCounts(least, most);
  }

  // {n}, {n,} or {n,m}; anything else is text.
  bool TakeCounts(int* least, int* most) {
    if (rest_.empty() || rest_[0] != '{') return false;
    const absl::string_view before = rest_;
    rest_.remove_prefix(1);
    const std::optional<int> first = TakeNumber();
    std::optional<int> second = first;
    if (first && Take(",")) second = TakeNumber().value_or(-1);
    if (!first || !Take("}")) {
      rest_ = before;
      return false;
    }
    *least = *first;
    *most = *second;
    return true;
  }
  std::optional<int> TakeNumber() {
    if (rest_.empty() || !IsDigit(rest_[0])) return std::nullopt;
    int n = 0;
    for (; !rest_.empty() && IsDigit(rest_[0]); rest_.remove_prefix(1))
      n = std::min(n * 10 + (rest_[0] - '0'), 1000000);
    return n;
  }
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }

  StatusOr<Tree> Item(int depth, bool* is_flags) {
    using Place = RegexStep::Place;
    const char c = rest_[0];
    if (c == '(') return Group(depth, is_flags);
    if (c == '[') return Brackets();
    if (Take("^")) return At(flags_.many_lines ? Place::kBeginLine : Place::kBeginText);
    if (Take("$")) return At(flags_.many_lines ? Place::kEndLine : Place::kEndText);
    if (Take(".")) {
      RegexClass any;
      if (!flags_.dot_all) any.Add('\n', '\n');
      return OfClass(std::move(any), true);
    }
    if (c == '\\') return Escape();
    MR_ASSIGN_OR_RETURN(const uint32_t code, TakeChar());
    return Literal(code);
  }

  StatusOr<Tree> Group(int depth, bool* is_flags) {
    rest_.remove_prefix(1);
    Tree group{.kind = Tree::Kind::kGroup, .number = -1};
    const Flags outer = flags_;
    if (Take("?P<") || (absl::StartsWith(rest_, "?<") && Take("?<"))) {
      const size_t end = rest_.find('>');
      if (end == absl::string_view::npos || end == 0) return Bad("bad group name");
      rest_.remove_prefix(end + 1);
      group.number = ++program_->groups;
    } else if (Take("?")) {
      MR_RETURN_IF_ERROR(TakeFlags());
      if (Take(")")) {
        *is_flags = true;
        return group;
      }
      if (!Take(":")) return Bad("bad group");
    } else {
      group.number = ++program_->groups;
    }
    MR_ASSIGN_OR_RETURN(Tree inner, Choice(depth + 1));
    if (!Take(")")) return Bad("missing )");
    flags_ = outer;
    if (group.number < 0) return inner;
    group.parts.push_back(std::move(inner));
    return group;
  }

  Status TakeFlags() {
    bool on = true;
    for (; !rest_.empty() && rest_[0] != ')' && rest_[0] != ':'; rest_.remove_prefix(1)) {
      switch (rest_[0]) {
        case '-': on = false; break;
        case 'i': flags_.ignore_case = on; break;
        case 'm': flags_.many_lines = on; break;
        case 's': flags_.dot_all = on; break;
        case 'U': flags_.ungreedy = on; break;
        default: return Bad("invalid perl operator: (?");
      }
    }
    return absl::OkStatus();
  }

  StatusOr<Tree> Escape() {
    using Place = RegexStep::Place;
    if (Take("\\b")) return At(Place::kWord);
    if (Take("\\B")) return At(Place::kNotWord);
    if (Take("\\A")) return At(Place::kBeginText);
    if (Take("\\z")) return At(Place::kEndText);
    if (Take("\\C")) return Tree{.kind = Tree::Kind::kAnyByte};
    RegexClass known;
    if (rest_.size() > 1 && AddPerl(rest_[1], &known)) {
      rest_.remove_prefix(2);
      return OfClass(std::move(known), false);
    }
    MR_ASSIGN_OR_RETURN(const uint32_t code, EscapedChar());
    return Literal(code);
  }

  StatusOr<uint32_t> EscapedChar() {
    rest_.remove_prefix(1);
    if (rest_.empty()) return Bad("trailing \\");
    const char c = rest_[0];
    constexpr absl::string_view kNames = "afnrtv", kCodes = "\a\f\n\r\t\v";
    if (const size_t at = kNames.find(c); at != absl::string_view::npos) {
      rest_.remove_prefix(1);
      return static_cast<uint32_t>(kCodes[at]);
    }
    if (c == 'x') return HexChar();
    if (c == '0') {
      uint32_t code = 0;
      for (int i = 0; i < 3 && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '7'; ++i, rest_.remove_prefix(1)) {
        code = code * 8 + static_cast<uint32_t>(rest_[0] - '0');
      }
      return code;
    }
    if (c == 'p' || c == 'P') return Bad(absl::StrCat("invalid character class range: \\", rest_.substr(0, 10)));
    if (IsDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 128) {
      return Bad(absl::StrCat("invalid escape sequence: \\", rest_.substr(0, 1)));
    }
    return TakeChar();
  }

  StatusOr<uint32_t> HexChar() {
    rest_.remove_prefix(1);
    const bool braced = Take("{");
    uint32_t code = 0;
    int digits = 0;
    for (; !rest_.empty() && (braced || digits < 2); rest_.remove_prefix(1), ++digits) {
      const char c = rest_[0];
      const int d =
          IsDigit(c)             ? c - '0'
          : c >= 'a' && c <= 'f' ? c - 'a' + 10
          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                 : -1;
      if (d < 0) break;
      code = std::min(code * 16 + static_cast<uint32_t>(d), kMaxChar + 1);
    }
    if (digits == 0 || (!braced && digits < 2) || (braced && !Take("}")) || code > kMaxChar) {
      return Bad("invalid escape sequence: \\x");
    }
    return code;
  }

  StatusOr<Tree> Brackets() {
    rest_.remove_prefix(1);
    const bool negated = Take("^");
    RegexClass found;
    for (bool first = true; first || !Take("]"); first = false) {
      if (rest_.empty()) return Bad("missing ]");
      if (Take("[:")) {
        MR_RETURN_IF_ERROR(NamedClass(&found));
        continue;
      }
      if (rest_.size() > 1 && rest_[0] == '\\' && AddPerl(rest_[1], &found)) {
        rest_.remove_prefix(2);
        continue;
      }
      MR_ASSIGN_OR_RETURN(const uint32_t from, BracketChar());
      uint32_t to = from;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        MR_ASSIGN_OR_RETURN(to, BracketChar());
        if (to < from) return Bad("invalid character class range");
      }
      found.Add(from, to);
    }
    return OfClass(std::move(found), negated);
  }
  StatusOr<uint32_t> BracketChar() { return rest_[0] == '\\' ? EscapedChar() : TakeChar(); }

  Status NamedClass(RegexClass* out) {
    const bool negated = Take("^");
    for (const NamedRanges& n : kNamed) {
      if (!Take(absl::StrCat(n.name, ":]"))) continue;
      RegexClass found;
      AddPairs(n.pairs, &found);
      out->Add(negated ? Negated(std::move(found)) : found);
      return absl::OkStatus();
    }
    return Bad("invalid character class range");
  }

  Tree At(RegexStep::Place place) { return {.kind = Tree::Kind::kPlace, .place = place}; }
  Tree Literal(uint32_t code) {
    RegexClass one;
    one.Add(code, code);
    return OfClass(std::move(one), false);
  }
  Tree OfClass(RegexClass c, bool negated) {
    if (flags_.ignore_case) c.AddOtherCase();
    c.Finish(negated);
    program_->classes.push_back(std::move(c));
    return {.kind = Tree::Kind::kClass, .number = static_cast<int32_t>(program_->classes.size()) - 1};
  }

  absl::string_view rest_;
  const absl::string_view pattern_;
  RegexProgram* const program_;
  Flags flags_;
};

// Makes steps from the end to the front: each call returns where to begin for the tree and then `next`.
class Emitter {
 public:
  explicit Emitter(RegexProgram* program) : steps_(program->steps) {}
  bool full() const { return steps_.size() > kMaxSteps || visited_ > 10 * kMaxSteps; }

  int32_t Step(RegexStep step) {
    steps_.push_back(step);
    return static_cast<int32_t>(steps_.size()) - 1;
  }

  int32_t Emit(const Tree& t, int32_t next) {
    using Kind = RegexStep::Kind;
    ++visited_;
    if (full()) return next;
    switch (t.kind) {
      case Tree::Kind::kEmpty: return next;
      case Tree::Kind::kClass: return Step({.kind = Kind::kClass, .next = next, .other = t.number});
      case Tree::Kind::kAnyByte: return Step({.kind = Kind::kAnyByte, .next = next});
      case Tree::Kind::kPlace: return Step({.kind = Kind::kAssert, .place = t.place, .next = next});
      case Tree::Kind::kSequence:
        for (size_t i = t.parts.size(); i > 0; --i) next = Emit(t.parts[i - 1], next);
        return next;
      case Tree::Kind::kChoice: {
        int32_t at = Emit(t.parts.back(), next);
        for (size_t i = t.parts.size() - 1; i > 0; --i) {
          at = Step({.kind = Kind::kSplit, .next = Emit(t.parts[i - 1], next), .other = at});
        }
        return at;
      }
      case Tree::Kind::kRepeat: return EmitRepeat(t, next);
      case Tree::Kind::kGroup: {
        const int32_t end = Step({.kind = Kind::kSave, .next = next, .other = 2 * t.number + 1});
        return Step({.kind = Kind::kSave, .next = Emit(t.parts[0], end), .other = 2 * t.number});
      }
    }
    return next;
  }

 private:
  int32_t Split(bool greedy, int32_t in, int32_t out) {
    return Step({.kind = RegexStep::Kind::kSplit, .next = greedy ? in : out, .other = greedy ? out : in});
  }
  int32_t EmitRepeat(const Tree& t, int32_t next) {
    const Tree& inner = t.parts[0];
    int copies = t.least;
    if (t.most < 0) {
      // The loop's choice stands behind its body, so that a body that is empty goes on rather than round again.
      const int32_t split = Split(t.greedy, 0, next);
      const int32_t body = Emit(inner, split);
      (t.greedy ? steps_[static_cast<size_t>(split)].next : steps_[static_cast<size_t>(split)].other) = body;
      next = copies > 0 ? body : Split(t.greedy, body, next);
      --copies;
    } else {
      const int32_t out = next;
      for (int i = t.least; i < t.most && !full(); ++i) next = Split(t.greedy, Emit(inner, next), out);
    }
    for (int i = 0; i < copies && !full(); ++i) next = Emit(inner, next);
    return next;
  }

  std::vector<RegexStep>& steps_;
  size_t visited_ = 0;  // what is empty and repeated makes no steps
};

}  // namespace

StatusOr<RegexProgram> CompileRegex(absl::string_view pattern) {
  RegexProgram program;
  if (pattern.size() > kMaxSteps) return InvalidArgument("Invalid pattern: ", pattern.size(), " bytes are too many");
  MR_ASSIGN_OR_RETURN(const Tree tree, Parser(pattern, &program).Parse());
  Emitter emitter(&program);
  const int32_t match = emitter.Step({.kind = RegexStep::Kind::kMatch});
  program.start = emitter.Emit(tree, match);
  if (emitter.full()) return InvalidArgument("Invalid pattern: ", pattern.substr(0, 200), ", error: it is too large");
  return program;
}

void RegexClass::AddOtherCase() {
  const size_t n = ranges_.size();
  for (size_t i = 0; i < n; ++i) {
    const Range r = ranges_[i];
    const auto add = [&](uint32_t low, uint32_t high, int32_t shift) {
      const uint32_t from = std::max(r.from, low), to = std::min(r.to, high);
      if (from <= to) Add(from + static_cast<uint32_t>(shift), to + static_cast<uint32_t>(shift));
    };
    add('a', 'z', 'A' - 'a');
    add('A', 'Z', 'a' - 'A');
  }
}

void RegexClass::Finish(bool negated) {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.from < b.from; });
  std::vector<Range> merged;
  for (const Range& r : ranges_) {
    if (!merged.empty() && r.from <= merged.back().to + 1) {
      merged.back().to = std::max(merged.back().to, r.to);
    } else {
      merged.push_back(r);
    }
  }
  if (negated) {
    std::vector<Range> others;
    uint32_t from = 0;
    for (const Range& r : merged) {
      if (r.from > from) others.push_back({from, r.from - 1});
      from = r.to + 1;
    }
    if (from <= kMaxChar) others.push_back({from, kMaxChar});
    merged.swap(others);
  }
  ranges_.swap(merged);
  for (uint32_t c = 0; c < 128; ++c) {
    ascii_[c] = std::any_of(ranges_.begin(), ranges_.end(), [c](const Range& r) { return r.from <= c && c <= r.to; });
  }
}

bool RegexClass::Has(uint32_t c) const {
  if (c < 128) return ascii_[c];
  const auto at =
      std::upper_bound(ranges_.begin(), ranges_.end(), c, [](uint32_t x, const Range& r) { return x < r.from; });
  return at != ranges_.begin() && c <= (at - 1)->to;
}

}  // namespace millrace
