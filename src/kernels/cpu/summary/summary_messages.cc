// SPDX-License-Identifier: Apache-2.0
// CPU kernels: Assert, Print, PrintV2, Timestamp.
#include <atomic>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/env.h"
#include "base/logging.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/tensor_text.h"
#include "kernels/cpu/summary/summary.h"

namespace millrace {
namespace {

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
      MR_ASSIGN_OR_RETURN(const auto file, EnvOf(ctx.device()).NewAppendableFile(std::string(path)));
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

Status Timestamp(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<double>() = absl::ToDoubleSeconds(EnvOf(ctx.device()).Now() - absl::UnixEpoch());
  return absl::OkStatus();
}

}  // namespace

void RegisterMessageKernels(KernelRegistry& registry) {
  registry.Add<AssertKernel>({.op = "Assert"});
  registry.Add<PrintKernel>({.op = "Print"});
  registry.Add<PrintV2Kernel>({.op = "PrintV2"});
  registry.AddFn({.op = "Timestamp"}, Timestamp);
}

}  // namespace millrace
