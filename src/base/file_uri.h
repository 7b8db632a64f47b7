// SPDX-License-Identifier: Apache-2.0
// Names of files as file://PATH, which every Env takes for PATH.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace millrace {

inline absl::string_view WithoutFileScheme(absl::string_view path) { return absl::StripPrefix(path, "file://"); }

}  // namespace millrace
