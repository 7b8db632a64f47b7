// SPDX-License-Identifier: Apache-2.0
// CPU kernels: Assert, Print, PrintV2.
#include <atomic>
#include <cstdio>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/env.h"
#include "base/logging.h"
#include "kernels/cpu/summary/summary.h"

namespace millrace {
namespace {

template <typename T>
void AppendAs(const Tensor& t, int64_t i, std::string* out) {
  absl::StrAppend(out, t.data<T>()[i]);
}

void AppendElement(const Tensor& t, int64_t i, std::string* out) {
  switch (t.dtype()) {
    case DType::kFloat: return AppendAs<float>(t, i, out);
    case DType::kDouble: return AppendAs<double>(t, i, out);
    case DType::kInt32:
    case DType::kQInt32: return AppendAs<int32_t>(t, i, out);
    case DType::kInt64: return AppendAs<int64_t>(t, i, out);
    case DType::kUInt32: return AppendAs<uint32_t>(t, i, out);
    case DType::kUInt64: return AppendAs<uint64_t>(t, i, out);
    case DType::kInt16:
    case DType::kQInt16: return AppendAs<int16_t>(t, i, out);
    case DType::kUInt16:
    case DType::kQUInt16: return AppendAs<uint16_t>(t, i, out);
    case DType::kInt8:
    case DType::kQInt8: return absl::StrAppend(out, int{t.data<int8_t>()[i]});
    case DType::kUInt8:
    case DType::kQUInt8: return absl::StrAppend(out, int{t.data<uint8_t>()[i]});
    case DType::kBool: return absl::StrAppend(out, t.data<bool>()[i] ? 1 : 0);
    case DType::kHalf: return absl::StrAppend(out, static_cast<float>(t.data<Half>()[i]));
    case DType::kBFloat16: return absl::StrAppend(out, static_cast<float>(t.data<BFloat16>()[i]));
    case DType::kString: return absl::StrAppend(out, absl::CEscape(t.data<TString>()[i].view()));
    case DType::kComplex64: {
      const complex64 v = t.data<complex64>()[i];
      return absl::StrAppend(out, "(", v.real(), ",", v.imag(), ")");
    }
    case DType::kComplex128: {
      const complex128 v = t.data<complex128>()[i];
      return absl::StrAppend(out, "(", v.real(), ",", v.imag(), ")");
    }
    default: return absl::StrAppend(out, "?");
  }
}

std::string Message(KernelContext& ctx, int first, int64_t limit) {
  std::string text;
  for (int i = first; i < ctx.num_inputs(); ++i) absl::StrAppend(&text, "[", SummarizeTensor(ctx.input(i), limit), "]");
  return text;
}

void WriteTo(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

class AssertKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(summarize_, init.Attr<int64_t>("summarize"));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.input(0).shape().IsScalar()) {
      return InvalidArgument("condition must be a scalar, got shape ", ctx.input(0).shape().ToString());
    }
    if (*ctx.input(0).data<bool>()) return absl::OkStatus();
    std::string text = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      absl::StrAppend(&text, " [", SummarizeTensor(ctx.input(i), summarize_), "]");
    }
    return InvalidArgument(text);
  }

 private:
  int64_t summarize_ = 3;
};

class PrintKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(message_, init.Attr<std::string>("message"));
    MR_ASSIGN_OR_RETURN(first_n_, init.Attr<int64_t>("first_n"));
    MR_ASSIGN_OR_RETURN(summarize_, init.Attr<int64_t>("summarize"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    ctx.set_output(0, ctx.input(0));
    if (first_n_ >= 0 && printed_.fetch_add(1, std::memory_order_relaxed) >= first_n_) return absl::OkStatus();
    WriteTo(stderr, absl::StrCat(message_, Message(ctx, 1, summarize_), "\n"));
    return absl::OkStatus();
  }

 private:
  std::string message_;
  int64_t first_n_ = -1;
  int64_t summarize_ = 3;
  std::atomic<int64_t> printed_{0};
};

class PrintV2Kernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(stream_, init.Attr<std::string>("output_stream"));
    MR_ASSIGN_OR_RETURN(end_, init.Attr<std::string>("end"));
    for (const char* known : {"stderr", "stdout", "log(info)", "log(warning)", "log(error)"}) {
      if (stream_ == known) return absl::OkStatus();
    }
    if (absl::StartsWith(stream_, "file://")) return absl::OkStatus();
    return InvalidArgument("unknown output stream ", stream_);
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) {
      return InvalidArgument("input must be a scalar, got shape ", ctx.input(0).shape().ToString());
    }
    const std::string text = absl::StrCat(ctx.input(0).data<TString>()->view(), end_);
    absl::string_view path = stream_;
    if (absl::ConsumePrefix(&path, "file://")) {
      MR_ASSIGN_OR_RETURN(const auto file, Env::Default().NewAppendableFile(std::string(path)));
      MR_RETURN_IF_ERROR(file->Append(text));
      return file->Close();
    }
    if (stream_ == "stderr") {
      WriteTo(stderr, text);
    } else if (stream_ == "stdout") {
      WriteTo(stdout, text);
    } else {
      LogLine(stream_ == "log(info)"      ? LogLevel::kInfo
              : stream_ == "log(warning)" ? LogLevel::kWarning
                                          : LogLevel::kError,
              text);
    }
    return absl::OkStatus();
  }

 private:
  std::string stream_;
  std::string end_;
};

// Every dimension but the last has brackets around each of its parts, as far as the limit shows them.
void AppendDimension(const Tensor& t, int d, int64_t limit, int64_t* next, std::string* out) {
  if (*next >= limit) return;
  if (d + 1 >= t.rank()) {
    const int64_t n = t.rank() == 0 ? 1 : t.dim(d);
    for (int64_t i = 0; i < n; ++i) {
      if (*next >= limit) {
        if (d > 0) *out += "...";
        return;
      }
      if (i > 0) *out += ' ';
      AppendElement(t, (*next)++, out);
    }
    return;
  }
  for (int64_t i = 0; i < t.dim(d) && *next < limit; ++i) {
    *out += '[';
    AppendDimension(t, d + 1, limit, next, out);
    *out += ']';
  }
}

}  // namespace

std::string SummarizeTensor(const Tensor& t, int64_t limit) {
  if (t.num_elements() == 0) return "";
  if (limit < 0) limit = t.num_elements();
  std::string out;
  int64_t next = 0;
  AppendDimension(t, 0, limit, &next, &out);
  if (t.num_elements() > limit) out += "...";
  return out;
}

void RegisterMessageKernels(KernelRegistry& registry) {
  registry.Add<AssertKernel>({.op = "Assert"});
  registry.Add<PrintKernel>({.op = "Print"});
  registry.Add<PrintV2Kernel>({.op = "PrintV2"});
}

}  // namespace millrace
