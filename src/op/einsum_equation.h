// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum: "ij,jk->ik", "...ij,...jk->...ik", "ii->i".
#pragma once

#include <string>
#include <vector>

#include "tensor/shape.h"

namespace millrace {

// One letter per axis; "..." is kept as one kEllipsis.
struct EinsumEquation {
  static constexpr char kEllipsis = '.';
  std::vector<std::string> inputs;
  std::string output;

  // One or two inputs. InvalidArgument on anything but letters, one "..." per operand, one "->", or an output letter
  // that no input has.
  static StatusOr<EinsumEquation> Parse(absl::string_view text);
  // Back to text, for one operand: "..." written out.
  static std::string Write(absl::string_view operand);
};

// Axes named by number: a letter is its code; axis i from the right of what "..." stands for is kEllipsisBase + i.
using EinsumLabels = std::vector<int>;
inline constexpr int kEllipsisBase = 256;

// The labels of an operand of this rank. InvalidArgument when the rank does not fit.
StatusOr<EinsumLabels> LabelsOf(absl::string_view operand, int rank);
// Those of the output, whose "..." stands for `broadcast_rank` axes. InvalidArgument when it has none but needs some.
StatusOr<EinsumLabels> OutputLabelsOf(absl::string_view operand, int broadcast_rank);
// How many of the labels are of "...".
int BroadcastRank(const EinsumLabels& labels);

}  // namespace millrace
