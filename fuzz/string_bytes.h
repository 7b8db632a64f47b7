// SPDX-License-Identifier: Apache-2.0
// String tensors as hostile programs write them, in both forms that the C API has had.
#pragma once

#include <string>
#include <vector>

#include "graph_shaper.h"
#include "millrace/c_api.h"

namespace millrace::fuzz {

using Strings = std::vector<std::string>;

enum class Form { kOld, kNew };  // of libtensorflow.so.1, of libtensorflow.so.2

// `strings` as a tensor of shape `dims`, in memory of its exact size. Well formed unless `spoil`; then some of its
// bytes, its size or its dimensions are not what they should be. Null when the library refuses at once. What pointers
// of a spoiled tensor point to is memory of ours or none: no check can tell whose memory a pointer means.
TF_Tensor* MakeStrings(Form form, const std::vector<int64_t>& dims, const Strings& strings, bool spoil, Random& random);

// The elements by either form's functions. Reads every byte. False when there are none to be read.
bool ReadStrings(Form form, const TF_Tensor* tensor, Strings* strings);

}  // namespace millrace::fuzz
