// SPDX-License-Identifier: Apache-2.0
// Kernel of DecodeCSV: records of fields between delimiters, quoted ones as in RFC 4180.
#include <algorithm>
#include <atomic>
#include <deque>

#include "kernels/cpu/parsing/csv_field.h"
#include "kernels/cpu/parsing/parsing.h"

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

  // All selected fields: parts of the record, or of `unquoted`, where those lie that had quotes inside.
  Status Fields(std::vector<absl::string_view>* fields, std::deque<std::string>* unquoted) {
    fields->clear();
    unquoted->clear();
    int64_t number = 0;
    size_t next = 0;  // in `selected`
    auto selects = [&] { return format_.selected.empty() || format_.selected[next] == number; };
    while (SkipLineEnds()) {
      MR_RETURN_IF_ERROR(format_.quotes && text_[at_] == '"' ? Quoted(unquoted) : Plain());
      if (selects()) {
        fields->push_back(field_);
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
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] != format_.delimiter; ++at_) {
      const char c = text_[at_];
      if ((c == '"' && format_.quotes) || c == '\n' || c == '\r') {
        return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside");
      }
    }
    field_ = text_.substr(begin, at_ - begin);
    ++at_;
    return absl::OkStatus();
  }
  Status Quoted(std::deque<std::string>* unquoted) {
    std::string* copy = nullptr;  // once there was a quote inside
    const size_t begin = ++at_;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        if (copy) copy->push_back(text_[at_]);
        continue;
      }
      const bool last = at_ + 1 == text_.size();
      if (last || text_[at_ + 1] == format_.delimiter) {
        field_ = copy ? absl::string_view(*copy) : text_.substr(begin, at_ - begin);
        at_ += 2;
        return absl::OkStatus();
      }
      if (text_[++at_] != '"') return InvalidArgument("Quote inside a string has to be escaped by another quote");
      if (!copy) copy = &unquoted->emplace_back(text_.substr(begin, at_ - 1 - begin));
      copy->push_back('"');
    }
    return InvalidArgument("Quoted field has to end with quote followed by delim or end");
  }

  absl::string_view text_;
  const Format& format_;
  size_t at_ = 0;
  absl::string_view field_;
};

class DecodeCsvKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string delimiter, init.Attr<std::string>("field_delim"));
    MR_ASSIGN_OR_RETURN(format_.quotes, init.Attr<bool>("use_quote_delim"));
    MR_ASSIGN_OR_RETURN(format_.missing, init.Attr<std::string>("na_value"));
    MR_ASSIGN_OR_RETURN(format_.selected, init.Attr<std::vector<int64_t>>("select_cols"));
    if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char, got \"", delimiter, "\"");
    format_.delimiter = delimiter[0];
    return CheckSelectedFields(format_.selected, init.num_outputs());
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& records = ctx.input(0);
    const int count = ctx.num_outputs();
    std::vector<Tensor*> outputs;
    for (int k = 0; k < count; ++k) {
      const Tensor& value = ctx.input(k + 1);
      if (value.num_elements() > 1 || value.rank() > 1) {
        return InvalidArgument(
            "There should only be 1 default per field but field ", k, " has ", value.shape().ToString());
      }
      MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(k, records.shape()));
      outputs.push_back(out);
    }
    const int64_t rows = records.num_elements();
    std::atomic<int64_t> bad = rows;
    ctx.ParallelFor(rows, 40.0 * count, [&](int64_t begin, int64_t end) {
      Scratch scratch;
      for (int64_t i = begin; i < end; ++i) {
        if (DecodeRecord(ctx, outputs, i, scratch).ok()) continue;
        int64_t known = bad.load();
        while (i < known && !bad.compare_exchange_weak(known, i)) {
        }
        return;
      }
    });
    Scratch scratch;
    return bad == rows ? absl::OkStatus() : DecodeRecord(ctx, outputs, bad, scratch);  // the first error
  }

 private:
  struct Scratch {
    std::vector<absl::string_view> fields;
    std::deque<std::string> unquoted;
  };

  Status DecodeRecord(const KernelContext& ctx, const std::vector<Tensor*>& outputs, int64_t i,
                      Scratch& scratch) const {
    MR_RETURN_IF_ERROR(Record(ctx.input(0).data<TString>()[i], format_).Fields(&scratch.fields, &scratch.unquoted));
    if (scratch.fields.size() != outputs.size()) {
      return InvalidArgument("Expect ", outputs.size(), " fields but have ", scratch.fields.size(), " in record ", i);
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      MR_RETURN_IF_ERROR(StoreField(ctx, scratch.fields[k], static_cast<int>(k), i, *outputs[k]));
    }
    return absl::OkStatus();
  }

  Status StoreField(const KernelContext& ctx, absl::string_view field, int k, int64_t i, Tensor& out) const {
    if (field.empty() || field == format_.missing) {
      const Tensor& value = ctx.input(k + 1);
      if (value.num_elements() != 1) {
        return InvalidArgument("Field ", k, " is required but missing in record ", i, "!");
      }
      StoreCsvDefault(value, out, i);
      return absl::OkStatus();
    }
    if (StoreCsvField(field, out, i)) return absl::OkStatus();
    return InvalidArgument(
        "Field ", k, " in record ", i, " is not a valid ", DTypeName(out.dtype()), ": ", field.substr(0, 80));
  }

  Format format_;
};

}  // namespace

void RegisterCsvKernels(KernelRegistry& registry) { registry.Add<DecodeCsvKernel>({.op = "DecodeCSV"}); }

}  // namespace millrace
