// SPDX-License-Identifier: Apache-2.0
#include "kernel/edge_key.h"

#include "absl/strings/numbers.h"

namespace millrace {

std::string EdgeKey::ToString() const { return absl::StrCat(edge, ";", frame, ":", iteration); }

StatusOr<EdgeKey> EdgeKey::Parse(absl::string_view text) {
  EdgeKey key;
  const size_t semicolon = text.find(';'), colon = text.find(':');
  const bool ok =
      semicolon < colon && colon != absl::string_view::npos && absl::SimpleAtoi(text.substr(0, semicolon), &key.edge) &&
      absl::SimpleAtoi(text.substr(semicolon + 1, colon - semicolon - 1), &key.frame) &&
      absl::SimpleAtoi(text.substr(colon + 1), &key.iteration) && key.ToString() == text;
  if (!ok) return InvalidArgument("'", text, "' is no key of an edge, want <edge>;<frame>:<iteration>");
  return key;
}

}  // namespace millrace
