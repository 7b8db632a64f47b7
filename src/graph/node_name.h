// SPDX-License-Identifier: Apache-2.0
// What is a legal name.
#pragma once

#include "absl/strings/string_view.h"

namespace millrace {

// [A-Za-z0-9.][A-Za-z0-9_./>-]*; internal names may begin with '_'.
bool IsNodeName(absl::string_view name, bool internal);
// What a program may call a node of its graph, which it cannot import again by such a name: any printable ASCII but ':'
// and
// ';', not beginning with '^'. In a graph's own text forms these would end or change the name.
bool IsProgramNodeName(absl::string_view name);
// "/job:a/replica:0/task:1/device:CPU:0" in any part and order, "/cpu:0", "CPU:0", "".
bool IsDeviceName(absl::string_view name);

}  // namespace millrace
