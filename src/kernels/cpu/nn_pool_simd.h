// SPDX-License-Identifier: Apache-2.0
// Inner loops of pooling, channels-last: one window at a time, all its channels at once. A window is a list of cells, each
// a pointer to its channels; at least one. For T = float and double; compiled once per instruction set.
#pragma once

#include <cstddef>

namespace millrace {

// out[c] = the largest of cells[i][c]
template <typename T>
void MaxOfCells(const T* const* cells, size_t n, size_t channels, T* out);
// out[c] = the mean of cells[i][c]
template <typename T>
void MeanOfCells(const T* const* cells, size_t n, size_t channels, T* out);
// into[i][c] += g[c] for the first i whose cells[i][c] is the largest
template <typename T>
void ScatterToMax(const T* const* cells, T* const* into, size_t n, size_t channels, const T* g);
// out[c] = from[i][c] for the first i with cells[i][c] == y[c], or 0
template <typename T>
void GatherFromMax(const T* const* cells, const T* const* from, size_t n, size_t channels, const T* y, T* out);
// into[i][c] += g[c] / n
template <typename T>
void SpreadToCells(T* const* into, size_t n, size_t channels, const T* g);

}  // namespace millrace
