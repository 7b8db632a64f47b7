// SPDX-License-Identifier: Apache-2.0
// Where rows of different lengths begin: row i of a ragged tensor has the values [splits[i], splits[i + 1]).
#pragma once

#include <cstdint>
#include <limits>

#include "base/status.h"
#include "base/stop_scope.h"

namespace millrace {

// InvalidArgument unless the n splits, of which there is at least one, do not decrease from a first one that is not
// negative to a last one of at most `values`.
inline Status CheckSplitsWithin(absl::string_view name, const int64_t* splits, int64_t n, int64_t values) {
  if (n == 0) return InvalidArgument("ragged splits may not be empty: ", name);
  if (splits[0] < 0) return InvalidArgument(name, "[0] must not be negative, got ", splits[0]);
  StopNowAndThen pause;
  for (int64_t i = 1; i < n; ++i) {
    pause();
    if (splits[i] < splits[i - 1]) {
      return InvalidArgument(
          "Ragged splits should be non decreasing, got ", splits[i], " behind ", splits[i - 1], ": ", name);
    }
  }
  if (splits[n - 1] > values) {
    return InvalidArgument(
        "Ragged splits must not point past the ", values, " values, got ", splits[n - 1], ": ", name);
  }
  return absl::OkStatus();
}

// The same of splits that are of all values, from 0 on.
inline Status CheckSplits(absl::string_view name, const int64_t* splits, int64_t n, int64_t values) {
  MR_RETURN_IF_ERROR(CheckSplitsWithin(name, splits, n, std::numeric_limits<int64_t>::max()));
  if (splits[0] != 0) return InvalidArgument("First value of ragged splits must be 0, got ", splits[0], ": ", name);
  if (splits[n - 1] == values) return absl::OkStatus();
  return InvalidArgument(
      "Final value of ragged splits must match the number of values, ", values, ", got ", splits[n - 1], ": ", name);
}

}  // namespace millrace
