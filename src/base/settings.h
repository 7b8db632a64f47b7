// SPDX-License-Identifier: Apache-2.0
// Settings that the environment gives (docs/running.md).
#pragma once

namespace millrace {

// Whether the environment variable `name` is 1. Unset, empty and 0 say no; so does anything else, with a warning.
bool IsSwitchedOn(const char* name);

}  // namespace millrace
