// SPDX-License-Identifier: Apache-2.0
// CPU kernels: writers of event files that are state of the session, and the ops that give them events. Events wait in
// memory until there are more than a given number of them, or the last flush is long ago; then the file gets all.
#include <cmath>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "io/event_file.h"
#include "kernel/device_env.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/engine/resource_handle.h"
#include "kernels/cpu/summary/summary.h"

namespace millrace {
namespace {

struct SummaryFileOptions {
  std::string folder;
  std::string suffix;
  int32_t max_queue = 0;
  int32_t flush_millis = 0;
};

Status HasNoFile() { return NotFound("the summary writer has no file: run its init() first, and again after close()"); }

// Thread-safe. It is open from the first Open on until Close.
class SummaryWriter final : public Resource {
 public:
  // Does nothing where there is a file already.
  Status Open(Env& env, const SummaryFileOptions& options) {
    absl::MutexLock lock(&mu_);
    if (file_) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(file_, EventFileWriter::Open(env, options.folder, options.suffix));
    options_ = options;
    env_ = &env;
    flushed_at_ = env.MonotonicNanos();
    return absl::OkStatus();
  }

  Status Add(wire::Event event) {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(RequireOpen());
    if (event.wall_time == 0) event.wall_time = absl::ToDoubleSeconds(env_->Now() - absl::UnixEpoch());
    if (!std::isfinite(event.wall_time)) return InvalidArgument("an event needs a finite time");
    waiting_.push_back(std::move(event));
    const int64_t millis = (env_->MonotonicNanos() - flushed_at_) / 1'000'000;
    const bool is_full = waiting_.size() > static_cast<size_t>(options_.max_queue);
    return is_full || millis > options_.flush_millis ? FlushLocked() : absl::OkStatus();
  }

  Status AddSummary(int64_t step, wire::Summary summary) {
    wire::Event event;
    event.step = step;
    event.kind = wire::Event::Kind::kSummary;
    event.summary.Ensure() = std::move(summary);
    return Add(std::move(event));
  }

  Status Flush() {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(RequireOpen());
    return FlushLocked();
  }

  Status Close() {
    absl::MutexLock lock(&mu_);
    if (!file_) return absl::OkStatus();
    const Status flushed = FlushLocked();
    const Status closed = file_->Close();
    file_.reset();
    return flushed.ok() ? closed : flushed;
  }

  std::string DebugString() const override { return "a summary writer"; }

 private:
  // What waits is written when nobody can ask for it any more; nobody is left to tell of a failure.
  ~SummaryWriter() override { Close().IgnoreError(); }

  Status RequireOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (file_) return absl::OkStatus();
    return HasNoFile();
  }

  // Events leave the queue even if the file cannot take them: else one bad disk would keep them all in memory.
  Status FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<wire::Event> events;
    events.swap(waiting_);
    flushed_at_ = env_->MonotonicNanos();
    for (wire::Event& event : events) MR_RETURN_IF_ERROR(file_->Write(std::move(event)));
    return file_->Flush();
  }

  absl::Mutex mu_;
  std::unique_ptr<EventFileWriter> file_ ABSL_GUARDED_BY(mu_);  // null: not open
  Env* env_ ABSL_GUARDED_BY(mu_) = nullptr;
  SummaryFileOptions options_ ABSL_GUARDED_BY(mu_);
  std::vector<wire::Event> waiting_ ABSL_GUARDED_BY(mu_);
  int64_t flushed_at_ ABSL_GUARDED_BY(mu_) = 0;
};

class SummaryWriterKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
  bool OutputsNeverChange() const override { return true; }
  // The handle holds no writer: there is none before its creation and after its end, and then again another.
  Status Compute(KernelContext& ctx) override { return OutputHandle(ctx, 0, name_, "SummaryWriter", {}); }

 private:
  ResourceName name_;
};

template <typename T>
StatusOr<T> Scalar(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.rank() == 0) return *t.data<T>();
  return InvalidArgument(
      ctx.node().op->inputs[static_cast<size_t>(i)].name, " must be a scalar, got shape ", t.shape().ToString());
}

StatusOr<ResourceName> WriterName(const KernelContext& ctx) {
  ResourceName name;
  MR_RETURN_IF_ERROR(internal::HeldResource(ctx, 0, &name).status());
  return name;
}

StatusOr<RefPtr<SummaryWriter>> Writer(const KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const ResourceName name, WriterName(ctx));
  StatusOr<RefPtr<SummaryWriter>> found = FindResourceByName<SummaryWriter>(ctx, name);
  if (absl::IsNotFound(found.status())) return HasNoFile();
  return found;
}

Status CreateFile(KernelContext& ctx) {
  SummaryFileOptions options;
  MR_ASSIGN_OR_RETURN(const TString folder, Scalar<TString>(ctx, 1));
  MR_ASSIGN_OR_RETURN(options.max_queue, Scalar<int32_t>(ctx, 2));
  MR_ASSIGN_OR_RETURN(options.flush_millis, Scalar<int32_t>(ctx, 3));
  MR_ASSIGN_OR_RETURN(const TString suffix, Scalar<TString>(ctx, 4));
  options.folder = folder.str();
  options.suffix = suffix.str();
  if (options.max_queue < 0 || options.flush_millis < 0) {
    return InvalidArgument(
        "max_queue is ", options.max_queue, " and flush_millis ", options.flush_millis, ", want 0 or more");
  }
  if (options.suffix.find('/') != std::string::npos) {
    return InvalidArgument("filename_suffix is \"", options.suffix, "\", want no slash");
  }
  MR_ASSIGN_OR_RETURN(const ResourceName name, WriterName(ctx));
  MR_ASSIGN_OR_RETURN(
      const RefPtr<SummaryWriter> writer, ctx.resources().LookupOrCreate<SummaryWriter>(name.container, name.name, [] {
        return MakeRef<SummaryWriter>();
      }));
  return writer->Open(EnvOf(ctx.device()), options);
}

Status CreateDatabase(KernelContext&) {
  return Unimplemented("summaries are not written to databases: CreateSummaryFileWriter writes them to an event file");
}

Status Flush(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  return writer->Flush();
}

Status Close(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const ResourceName name, WriterName(ctx));
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  MR_RETURN_IF_ERROR(ctx.resources().Delete<SummaryWriter>(name.container, name.name));
  return writer->Close();
}

// `summary` makes the summary from the inputs after writer, step and tag.
Status AddTagged(KernelContext& ctx, absl::FunctionRef<StatusOr<wire::Summary>(absl::string_view tag)> summary) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  MR_ASSIGN_OR_RETURN(const int64_t step, Scalar<int64_t>(ctx, 1));
  MR_ASSIGN_OR_RETURN(const TString tag, Scalar<TString>(ctx, 2));
  MR_ASSIGN_OR_RETURN(wire::Summary made, summary(tag.view()));
  return writer->AddSummary(step, std::move(made));
}

Status AddTensor(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  MR_ASSIGN_OR_RETURN(const int64_t step, Scalar<int64_t>(ctx, 1));
  MR_ASSIGN_OR_RETURN(const TString tag, Scalar<TString>(ctx, 3));
  MR_ASSIGN_OR_RETURN(const TString metadata, Scalar<TString>(ctx, 4));
  MR_ASSIGN_OR_RETURN(wire::Summary summary, TensorSummaryOf(tag.view(), ctx.input(2), metadata.view()));
  if (metadata.view().empty()) summary.value.front().metadata.reset();
  return writer->AddSummary(step, std::move(summary));
}

Status AddScalar(KernelContext& ctx) {
  return AddTagged(ctx, [&](absl::string_view tag) -> StatusOr<wire::Summary> {
    const Tensor& value = ctx.input(3);
    if (value.num_elements() != 1) {
      return InvalidArgument("value must be a scalar, got shape ", value.shape().ToString());
    }
    const ConvertRoute narrow = FindConvert(value.dtype(), DType::kFloat);
    if (!narrow.found) return InvalidArgument("no number: ", DTypeName(value.dtype()));
    wire::Summary summary;
    wire::SummaryValue& v = summary.value.emplace_back();
    v.tag = std::string(tag);
    v.kind = wire::SummaryValue::Kind::kSimpleValue;
    narrow.Run(value.raw(), &v.simple_value, 1);
    return summary;
  });
}

Status AddHistogram(KernelContext& ctx) {
  return AddTagged(ctx, [&](absl::string_view tag) { return HistogramSummaryOf(ctx, tag, ctx.input(3)); });
}

class AddImagesKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(max_images_, init.Attr<int64_t>("max_images"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    return AddTagged(ctx, [&](absl::string_view tag) -> StatusOr<wire::Summary> {
      MR_RETURN_IF_ERROR(CheckBadColor(ctx.input(4)));
      return ImageSummaryOf(ctx, tag, ctx.input(3), {max_images_, ctx.input(4)});
    });
  }

 private:
  int64_t max_images_ = 3;
};

class AddSoundsKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(max_outputs_, init.Attr<int64_t>("max_outputs"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    return AddTagged(ctx, [&](absl::string_view tag) -> StatusOr<wire::Summary> {
      MR_ASSIGN_OR_RETURN(const float rate, Scalar<float>(ctx, 4));
      return AudioSummaryOf(tag, ctx.input(3), rate, max_outputs_);
    });
  }

 private:
  int64_t max_outputs_ = 3;
};

Status AddRaw(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  MR_ASSIGN_OR_RETURN(const int64_t step, Scalar<int64_t>(ctx, 1));
  wire::Summary all;
  for (const TString& bytes : ctx.input(2).flat<TString>()) {
    wire::Summary summary;
    if (const Status s = wire::Decode(bytes, &summary); !s.ok()) {
      return DataLoss("Bad tf.compat.v1.Summary binary proto tensor string: ", s.message());
    }
    for (wire::SummaryValue& v : summary.value) all.value.push_back(std::move(v));
  }
  return writer->AddSummary(step, std::move(all));
}

Status AddGraph(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  wire::Event event;
  MR_ASSIGN_OR_RETURN(event.step, Scalar<int64_t>(ctx, 1));
  MR_ASSIGN_OR_RETURN(const TString bytes, Scalar<TString>(ctx, 2));
  wire::GraphDef graph;
  if (const Status s = wire::Decode(bytes, &graph); !s.ok()) {
    return DataLoss("Bad tf.GraphDef binary proto tensor string: ", s.message());
  }
  event.kind = wire::Event::Kind::kGraphDef;
  event.graph_def = bytes.str();
  return writer->Add(std::move(event));
}

Status AddEvent(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<SummaryWriter> writer, Writer(ctx));
  MR_ASSIGN_OR_RETURN(const TString bytes, Scalar<TString>(ctx, 1));
  wire::Event event;
  if (const Status s = wire::Decode(bytes, &event); !s.ok()) {
    return DataLoss("Bad tf.Event binary proto tensor string: ", s.message());
  }
  return writer->Add(std::move(event));
}

}  // namespace

void RegisterSummaryWriterKernels(KernelRegistry& r) {
  r.Add<SummaryWriterKernel>({.op = "SummaryWriter"});
  r.AddFn({.op = "CreateSummaryFileWriter"}, CreateFile);
  r.AddFn({.op = "CreateSummaryDbWriter"}, CreateDatabase);
  r.AddFn({.op = "FlushSummaryWriter"}, Flush);
  r.AddFn({.op = "CloseSummaryWriter"}, Close);
  r.AddFn({.op = "WriteSummary"}, AddTensor);
  r.AddFn({.op = "WriteRawProtoSummary"}, AddRaw);
  r.AddFn({.op = "WriteScalarSummary", .types = {{"T", Types("REAL")}}}, AddScalar);
  r.AddFn({.op = "WriteHistogramSummary", .types = {{"T", Types("REAL")}}}, AddHistogram);
  r.Add<AddImagesKernel>({.op = "WriteImageSummary", .types = {{"T", Types("u8|f32|f16")}}});
  r.Add<AddSoundsKernel>({.op = "WriteAudioSummary"});
  r.AddFn({.op = "WriteGraphSummary"}, AddGraph);
  r.AddFn({.op = "ImportEvent"}, AddEvent);
}

}  // namespace millrace
