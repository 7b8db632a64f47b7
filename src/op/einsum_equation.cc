// SPDX-License-Identifier: Apache-2.0
#include "op/einsum_equation.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace millrace {
namespace {

// "...ij" as ".ij".
StatusOr<std::string> ParseOperand(absl::string_view text, absl::string_view equation) {
  std::string out;
  while (!text.empty()) {
    const char c = text[0];
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      out.push_back(c);
      text.remove_prefix(1);
    } else if (absl::StartsWith(text, "...")) {
      if (out.find(EinsumEquation::kEllipsis) != std::string::npos) {
        return InvalidArgument("more than one ellipsis in an operand of einsum equation '", equation, "'");
      }
      out.push_back(EinsumEquation::kEllipsis);
      text.remove_prefix(3);
    } else {
      return InvalidArgument("einsum equation '", equation, "' may hold letters, '...', ',' and '->' only");
    }
  }
  return out;
}

int64_t CountLetters(absl::string_view operand) {
  return static_cast<int64_t>(operand.size()) - std::count(operand.begin(), operand.end(), EinsumEquation::kEllipsis);
}

EinsumLabels Expand(absl::string_view operand, int broadcast_rank) {
  EinsumLabels labels;
  for (const char c : operand) {
    if (c != EinsumEquation::kEllipsis) {
      labels.push_back(c);
      continue;
    }
    for (int i = broadcast_rank; i-- > 0;) labels.push_back(kEllipsisBase + i);
  }
  return labels;
}

bool HasEllipsis(absl::string_view operand) { return operand.find(EinsumEquation::kEllipsis) != operand.npos; }

}  // namespace

StatusOr<EinsumEquation> EinsumEquation::Parse(absl::string_view text) {
  std::string compact(text);
  compact.erase(std::remove(compact.begin(), compact.end(), ' '), compact.end());
  const std::vector<absl::string_view> sides = absl::StrSplit(compact, "->");
  if (sides.size() != 2) return InvalidArgument("Expecting exactly one '->' in einsum equation: ", text);
  EinsumEquation equation;
  for (const absl::string_view operand : absl::StrSplit(sides[0], ',')) {
    MR_ASSIGN_OR_RETURN(std::string parsed, ParseOperand(operand, text));
    equation.inputs.push_back(std::move(parsed));
  }
  if (equation.inputs.size() > 2) {
    return InvalidArgument(
        "Expecting 1 or 2 input subscripts in equation '", text, "' but got: ", equation.inputs.size());
  }
  MR_ASSIGN_OR_RETURN(equation.output, ParseOperand(sides[1], text));
  for (const char c : equation.output) {
    const bool known =
        c == kEllipsis || std::any_of(equation.inputs.begin(), equation.inputs.end(), [c](const auto& in) {
          return in.find(c) != std::string::npos;
        });
    if (!known) return InvalidArgument("output axis '", std::string(1, c), "' of equation '", text, "' is in no input");
  }
  return equation;
}

std::string EinsumEquation::Write(absl::string_view operand) {
  std::string out;
  for (const char c : operand) {
    if (c == kEllipsis) {
      out += "...";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

StatusOr<EinsumLabels> LabelsOf(absl::string_view operand, int rank) {
  const int64_t letters = CountLetters(operand);
  if (HasEllipsis(operand) ? rank < letters : rank != letters) {
    return InvalidArgument("an operand '", EinsumEquation::Write(operand), "' of an einsum equation has rank ", rank);
  }
  return Expand(operand, rank - static_cast<int>(letters));
}

StatusOr<EinsumLabels> OutputLabelsOf(absl::string_view operand, int broadcast_rank) {
  if (broadcast_rank > 0 && !HasEllipsis(operand)) {
    return InvalidArgument("Output contains ", broadcast_rank,
                           " broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts.");
  }
  return Expand(operand, broadcast_rank);
}

int BroadcastRank(const EinsumLabels& labels) {
  return static_cast<int>(std::count_if(labels.begin(), labels.end(), [](int l) { return l >= kEllipsisBase; }));
}

}  // namespace millrace
