// SPDX-License-Identifier: Apache-2.0
// The small text forms that schemas and examples share: quoted splitting, literals of attribute values, shapes.
#pragma once

#include <string>
#include <vector>

#include "op/op_def.h"

namespace millrace {

// Splits at `separator` outside quotes and brackets (), [], {}; pieces are trimmed. An empty text has no pieces.
std::vector<absl::string_view> SplitOutside(absl::string_view text, char separator);
// Position of the first `c` outside quotes and brackets, or npos.
size_t FindOutside(absl::string_view text, char c, size_t from = 0);

// "\"a\\n\"" or a bare word.
StatusOr<std::string> ParseString(absl::string_view text);
// "?", "[]", "[2,?]"; -1 means ? too.
StatusOr<PartialShape> ParseShapeText(absl::string_view text);
// "u8[4]:255,0,0,255" for the tensor literal of schemas; values as in examples.
StatusOr<Tensor> ParseTensorText(DType dtype, const Shape& shape, const std::vector<absl::string_view>& values);
StatusOr<AttrValue> ParseAttrText(AttrKind kind, bool is_list, absl::string_view text);

}  // namespace millrace
