// SPDX-License-Identifier: Apache-2.0
// Kernel of DecodeCSV: records of fields between delimiters, quoted ones as in RFC 4180.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "kernels/cpu/parsing.h"

namespace millrace {
namespace {

struct Format {
  char delimiter = ',';
  bool quotes = true;
  std::string missing;            // what stands for nothing, besides nothing
  std::vector<int64_t> selected;  // ascending; empty: all
};

// Takes a record apart, a field at a time.
class Record {
 public:
  Record(absl::string_view text, const Format& format) : text_(text), format_(format) {}

  // All selected fields.
  Status Fields(std::vector<std::string>* fields) {
    fields->clear();
    int64_t number = 0;
    size_t next = 0;  // in `selected`
    auto selects = [&] { return format_.selected.empty() || format_.selected[next] == number; };
    while (SkipLineEnds()) {
      field_.clear();
      MR_RETURN_IF_ERROR(format_.quotes && text_[at_] == '"' ? Quoted() : Plain());
      if (selects()) {
        fields->push_back(std::move(field_));
        if (++next == format_.selected.size()) return absl::OkStatus();
      }
      ++number;
    }
    if (!text_.empty() && text_.back() == format_.delimiter && selects()) fields->emplace_back();
    return absl::OkStatus();
  }

 private:
  // Before a field; false at the end.
  bool SkipLineEnds() {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    return at_ < text_.size();
  }
  Status Plain() {
    const size_t end = std::min(text_.find(format_.delimiter, at_), text_.size());
    field_ = std::string(text_.substr(at_, end - at_));
    if (field_.find_first_of(format_.quotes ? "\"\n\r" : "\n\r") != std::string::npos) {
      return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
    }
    at_ = end + 1;
    return absl::OkStatus();
  }
  Status Quoted() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        field_ += text_[at_];
        continue;
      }
      const bool last = at_ + 1 == text_.size();
      if (last || text_[at_ + 1] == format_.delimiter) {
        at_ += 2;
        return absl::OkStatus();
      }
      if (text_[++at_] != '"') return InvalidArgument("Quote inside a string has to be escaped by another quote");
      field_ += '"';
    }
    return InvalidArgument("Quoted field has to end with quote followed by delim or end");
  }

  absl::string_view text_;
  const Format& format_;
  size_t at_ = 0;
  std::string field_;
};

// A field as element `i` of `out`.
bool Store(const std::string& field, Tensor& out, int64_t i) {
  switch (out.dtype()) {
    case DType::kInt32:
      return absl::SimpleAtoi(field, out.mutable_data<int32_t>() + i);
    case DType::kInt64:
      return absl::SimpleAtoi(field, out.mutable_data<int64_t>() + i);
    case DType::kFloat:
      return absl::SimpleAtof(field, out.mutable_data<float>() + i);
    case DType::kDouble:
      return absl::SimpleAtod(field, out.mutable_data<double>() + i);
    default:
      out.mutable_data<TString>()[i] = field;
      return true;
  }
}

void StoreDefault(const Tensor& value, Tensor& out, int64_t i) {
  if (out.dtype() == DType::kString) {
    out.mutable_data<TString>()[i] = *value.data<TString>();
    return;
  }
  const size_t unit = DTypeSize(out.dtype());
  std::copy_n(static_cast<const char*>(value.raw()), unit,
              static_cast<char*>(out.mutable_raw()) + static_cast<size_t>(i) * unit);
}

class DecodeCsvKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string delimiter, init.Attr<std::string>("field_delim"));
    MR_ASSIGN_OR_RETURN(format_.quotes, init.Attr<bool>("use_quote_delim"));
    MR_ASSIGN_OR_RETURN(format_.missing, init.Attr<std::string>("na_value"));
    MR_ASSIGN_OR_RETURN(format_.selected, init.Attr<std::vector<int64_t>>("select_cols"));
    if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char, got \"", delimiter, "\"");
    format_.delimiter = delimiter[0];
    const auto& selected = format_.selected;
    if (selected.empty()) return absl::OkStatus();
    if (static_cast<int>(selected.size()) != init.num_outputs()) {
      return InvalidArgument("select_cols should match output size, got ", selected.size(), " and ",
                             init.num_outputs());
    }
    for (size_t i = 0; i < selected.size(); ++i) {
      if (selected[i] < 0) return InvalidArgument("select_cols should be non-negative indices, got ", selected[i]);
      if (i > 0 && selected[i] <= selected[i - 1]) {
        return InvalidArgument("select_cols should be strictly increasing indices");
      }
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& records = ctx.input(0);
    const int count = ctx.num_outputs();
    std::vector<Tensor*> outputs;
    for (int k = 0; k < count; ++k) {
      const Tensor& value = ctx.input(k + 1);
      if (value.num_elements() > 1 || value.rank() > 1) {
        return InvalidArgument("There should only be 1 default per field but field ", k, " has ",
                               value.shape().ToString());
      }
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(k, records.shape()));
      outputs.push_back(out);
    }
    std::vector<std::string> fields;
    for (int64_t i = 0; i < records.num_elements(); ++i) {
      MR_RETURN_IF_ERROR(Record(records.data<TString>()[i], format_).Fields(&fields));
      if (static_cast<int>(fields.size()) != count) {
        return InvalidArgument("Expect ", count, " fields but have ", fields.size(), " in record ", i);
      }
      for (int k = 0; k < count; ++k) {
        MR_RETURN_IF_ERROR(StoreField(ctx, fields[static_cast<size_t>(k)], k, i, *outputs[static_cast<size_t>(k)]));
      }
    }
    return absl::OkStatus();
  }

 private:
  Status StoreField(const KernelContext& ctx, const std::string& field, int k, int64_t i, Tensor& out) const {
    if (field.empty() || field == format_.missing) {
      const Tensor& value = ctx.input(k + 1);
      if (value.num_elements() != 1) {
        return InvalidArgument("Field ", k, " is required but missing in record ", i, "!");
      }
      StoreDefault(value, out, i);
      return absl::OkStatus();
    }
    if (Store(field, out, i)) return absl::OkStatus();
    return InvalidArgument("Field ", k, " in record ", i, " is not a valid ", DTypeName(out.dtype()), ": ",
                           field.substr(0, 80));
  }

  Format format_;
};

}  // namespace

void RegisterCsvKernels(KernelRegistry& registry) { registry.Add<DecodeCsvKernel>({.op = "DecodeCSV"}); }

}  // namespace millrace
