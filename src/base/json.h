// SPDX-License-Identifier: Apache-2.0
// Reads JSON, a token at a time: whoever reads says what he expects. Nothing recurses by itself, so that a text is as
// deep as its reader asks. Lenient as protobuf's reader is: keys need no quotes, and commas may trail.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace millrace {

class JsonReader {
 public:
  // `text` outlives the reader.
  explicit JsonReader(absl::string_view text) : text_(text) {}

  // InvalidArgument with `what` and the place.
  Status Fail(absl::string_view what) const;
  // The next character that is no space; 0 at the end.
  char Peek();
  bool Take(char c);
  bool TakeNull();
  // member(key) for each member, positioned at its value; keys do not repeat.
  Status Object(absl::FunctionRef<Status(const std::string&)> member);
  // element() for each element, or once for what is no array.
  Status Array(absl::FunctionRef<Status()> element);
  // A string without its quotes, or a number as it is spelt.
  Status Scalar(bool* quoted, std::string* value);

 private:
  Status Key(std::string* key);
  Status String(std::string* out);
  Status Unicode(std::string* out);
  bool Hex(uint32_t* code);

  absl::string_view text_;
  size_t at_ = 0;
};

// `text` as a JSON string, in its quotes.
std::string JsonQuoted(absl::string_view text);

}  // namespace millrace
