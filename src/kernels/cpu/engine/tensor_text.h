// SPDX-License-Identifier: Apache-2.0
// Values of tensors as people read them: Assert, Print, StringFormat.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace millrace {

// The first `limit` elements (all when negative), nested by dimension: "[1 2][3 4]...".
std::string SummarizeTensor(const Tensor& t, int64_t limit);

// The first and last `ends` elements of each dimension (all when negative), a matrix's rows in lines of their own:
// "[[1 2 ... 8 9]\n ...\n [1 2 ... 8 9]]". Strings stand in quotes.
std::string FormatTensor(const Tensor& t, int64_t ends);

}  // namespace millrace
