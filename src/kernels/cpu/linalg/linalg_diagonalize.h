// SPDX-License-Identifier: Apache-2.0
// Real tridiagonal and bidiagonal matrices made diagonal by plane rotations: the last step of eigenvalues and singular
// values. Always in double; `epsilon` says which off-diagonal elements count as nothing beside their neighbours.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "kernel/cancellation.h"
#include "kernels/cpu/linalg/linalg_rows.h"

namespace millrace::dense {

// What an iteration looks at now and then, and memory for its rotations (as many as the matrix has rows are enough;
// with more, fewer passes are made over the rows).
struct Iteration {
  const CancellationManager* cancellation = nullptr;
  absl::Span<Rotation> memory;
  Status Check() const;
};
// Called with rotations, in order.
using RotateRows = absl::FunctionRef<void(absl::Span<const Rotation>)>;

// The symmetric tridiagonal matrix with diagonal d and n - 1 elements e beside it: d becomes the eigenvalues, in no
// order. `rotate` is to be applied to the rows of a matrix that is to become the transpose of the eigenvectors.
// InvalidArgument when the iteration does not end, which NaN makes it do at once.
Status DiagonalizeTridiagonal(absl::Span<double> d, absl::Span<double> e, double epsilon, const Iteration& iteration,
                              RotateRows rotate);

// The upper bidiagonal matrix B = P D Q^T with diagonal d and e above it: d becomes D, of any sign and order; `left`
// and `right` are for the rows of P^T and Q^T.
Status DiagonalizeBidiagonal(absl::Span<double> d, absl::Span<double> e, double epsilon, const Iteration& iteration,
                             RotateRows left, RotateRows right);

}  // namespace millrace::dense
