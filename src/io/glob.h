// SPDX-License-Identifier: Apache-2.0
// Paths that match a pattern: * (anything but /), ? (one character), [a-z] and [^a-z] (one of a set), \ before a
// character that is meant as itself.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"

namespace millrace {

// One name against one pattern, in time of the product of their lengths at most.
bool MatchesPattern(absl::string_view name, absl::string_view pattern);
// Existing files and folders, sorted; "./a" for "a" and "*". Folders that cannot be read have nothing in them; those
// of file systems that libraries add, which fail for other reasons too, are errors unless they are not there.
StatusOr<std::vector<std::string>> MatchFiles(Env& env, absl::string_view pattern);

}  // namespace millrace
