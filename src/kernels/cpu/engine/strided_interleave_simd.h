// SPDX-License-Identifier: Apache-2.0
// Streams of items into one, item by item, and back; runs of items from their end to their begin.
#pragma once

#include <cstdint>

namespace millrace::strided {

// dst[i][k] = item i of stream k, which begins at src + k * apart. 2, 3 or 4 streams of n items of 1, 2, 4 or 8 bytes.
void Interleave(int64_t item_bytes, int64_t streams, const char* src, int64_t apart, char* dst, int64_t n);
// Item i of stream k, which begins at dst + k * apart, = src[i][k].
void Separate(int64_t item_bytes, int64_t streams, const char* src, char* dst, int64_t apart, int64_t n);

// Item i of dst = item -i of src, which points to the first. Items of 1, 2, 4, 8 or 16 bytes.
void Reverse(int64_t item_bytes, const char* src, char* dst, int64_t n);

}  // namespace millrace::strided
