// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <cstdlib>

#include "absl/strings/string_view.h"
#include "base/logging.h"

namespace millrace {

bool IsSwitchedOn(const char* name) {
  const char* const value = std::getenv(name);
  const absl::string_view text = value == nullptr ? "" : value;
  if (!text.empty() && text != "0" && text != "1") LogWarning("ignoring ", name, "=", text, ": want 0 or 1");
  return text == "1";
}

}  // namespace millrace
