// SPDX-License-Identifier: Apache-2.0
// Where rows of different lengths begin: row i of a ragged tensor has the values [splits[i], splits[i + 1]).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/stop_scope.h"

namespace millrace {

// InvalidArgument unless the n splits, of which there is at least one, do not decrease from a first one that is not
// negative to a last one of at most `values`.
inline Status CheckSplitsWithin(absl::string_view name, const int64_t* splits, int64_t n, int64_t values) {
  if (n == 0) return InvalidArgument(name, " must not be empty");
  if (splits[0] < 0) return InvalidArgument(name, "[0] must not be negative, got ", splits[0]);
  StopNowAndThen pause;
  for (int64_t i = 1; i < n; ++i) {
    pause();
    if (splits[i] < splits[i - 1]) {
      return InvalidArgument(name, " must not decrease, got ", splits[i], " behind ", splits[i - 1]);
    }
  }
  if (splits[n - 1] > values) {
    return InvalidArgument(name, " must not point past the ", values, " values, got ", splits[n - 1]);
  }
  return absl::OkStatus();
}

// The same of splits that are of all values, from 0 on.
inline Status CheckSplits(absl::string_view name, const int64_t* splits, int64_t n, int64_t values) {
  MR_RETURN_IF_ERROR(CheckSplitsWithin(name, splits, n, values));
  if (splits[0] != 0) return InvalidArgument(name, " must begin with 0, got ", splits[0]);
  if (splits[n - 1] == values) return absl::OkStatus();
  return InvalidArgument(name, " must end with the number of values, ", values, ", got ", splits[n - 1]);
}

}  // namespace millrace
