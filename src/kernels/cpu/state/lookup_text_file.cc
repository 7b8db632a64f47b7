// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/env.h"
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

// What a column may be made of.
Status CheckColumn(const char* what, int64_t column, DType dtype) {
  if (column == TextFileColumns::kLineNumber && dtype != DType::kInt64) {
    return InvalidArgument(what, " index -1 is the line number, which is int64; the table has ", DTypeName(dtype));
  }
  if (column == TextFileColumns::kWholeLine && dtype != DType::kString && !IsInteger(dtype)) {
    return InvalidArgument(
        what, " index -2 is the whole line, an integer or a string; the table has ", DTypeName(dtype));
  }
  switch (dtype) {
    case DType::kInt32:
    case DType::kInt64:
    case DType::kFloat:
    case DType::kDouble:
    case DType::kString: return absl::OkStatus();
    default: return InvalidArgument(what, " of dtype ", DTypeName(dtype), " cannot be read from a text file");
  }
}

bool ParseField(absl::string_view text, int64_t at, Tensor* out) {
  switch (out->dtype()) {
    case DType::kInt32: return absl::SimpleAtoi(text, out->mutable_data<int32_t>() + at);
    case DType::kInt64: return absl::SimpleAtoi(text, out->mutable_data<int64_t>() + at);
    case DType::kFloat: return absl::SimpleAtof(text, out->mutable_data<float>() + at);
    case DType::kDouble: return absl::SimpleAtod(text, out->mutable_data<double>() + at);
    default: out->mutable_data<TString>()[at] = text; return true;
  }
}

class LineReader {
 public:
  LineReader(const std::string& path, const TextFileColumns& columns) : path_(path), columns_(columns) {}

  // Line `number`, from 0, to element `number` of both.
  Status Read(absl::string_view line, int64_t number, Tensor* keys, Tensor* values) {
    if (line.empty()) return Bad(number, "is empty");
    if (columns_.key >= 0 || columns_.value >= 0) {
      fields_ = absl::StrSplit(line, columns_.delimiter);
      const int64_t last = std::max(columns_.key, columns_.value);
      if (last >= static_cast<int64_t>(fields_.size())) {
        return Bad(
            number,
            absl::StrCat("Invalid number of columns: has ", fields_.size(), ", needed is column ", last, " (from 0)"));
      }
    }
    MR_RETURN_IF_ERROR(Column(columns_.key, line, number, keys));
    return Column(columns_.value, line, number, values);
  }

 private:
  Status Bad(int64_t number, absl::string_view why) const {
    return InvalidArgument(path_, ", line ", number + 1, ": ", why);
  }
  Status Column(int64_t column, absl::string_view line, int64_t number, Tensor* out) {
    if (column == TextFileColumns::kLineNumber) {
      out->mutable_data<int64_t>()[number] = number;
      return absl::OkStatus();
    }
    const absl::string_view text = column == TextFileColumns::kWholeLine ? line : fields_[static_cast<size_t>(column)];
    if (ParseField(text, number, out)) return absl::OkStatus();
    return Bad(number, absl::StrCat("\"", text.substr(0, 80), "\" is not a valid ", DTypeName(out->dtype())));
  }

  const std::string& path_;
  const TextFileColumns& columns_;
  std::vector<absl::string_view> fields_;
};

}  // namespace

Status ReadTableFile(Env& env, const std::string& path, const TextFileColumns& columns, const TableTypes& types,
                     Tensor* keys, Tensor* values) {
  MR_RETURN_IF_ERROR(CheckColumn("key", columns.key, types.key));
  MR_RETURN_IF_ERROR(CheckColumn("value", columns.value, types.value));
  MR_ASSIGN_OR_RETURN(const std::string text, env.ReadFile(path));
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i + 1 < lines.size(); ++i) lines[i] = absl::StripSuffix(lines[i], "\r");
  if (lines.back().empty()) lines.pop_back();
  auto count = static_cast<int64_t>(lines.size());
  if (columns.vocab_size >= 0) {
    if (count < columns.vocab_size) {
      return InvalidArgument("Invalid vocab_size in ", path, ": expected ", columns.vocab_size, " but got ", count);
    }
    count = columns.vocab_size;
  }
  MR_ASSIGN_OR_RETURN(*keys, Tensor::Make(types.key, Shape::Vector(count)));
  MR_ASSIGN_OR_RETURN(*values, Tensor::Make(types.value, Shape::Vector(count)));
  LineReader reader(path, columns);
  for (int64_t i = 0; i < count; ++i) {
    MR_RETURN_IF_ERROR(reader.Read(lines[static_cast<size_t>(i)], i, keys, values));
  }
  return absl::OkStatus();
}

}  // namespace millrace
