// SPDX-License-Identifier: Apache-2.0
// CPU kernels: readers.
#include "kernels/cpu/data/reader_kernels.h"

#include "kernels/cpu/data/reader.h"
#include "kernels/cpu/engine/index_rows.h"

namespace millrace {
namespace {

class ReaderKernel : public ResourceKernel<Reader> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ResourceKernel::Init(init));
    kind_ = init.op.name;
    if (kind_.ends_with("V2")) kind_.resize(kind_.size() - 2);
    return absl::OkStatus();
  }

 protected:
  absl::string_view TypeName() const final { return "Reader"; }
  StatusOr<RefPtr<Reader>> Make(KernelContext&) final {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RecordFormat> format, MakeFormat());
    return MakeRef<Reader>(kind_, std::move(format), kind_ == "IdentityReader");
  }
  Status Verify(const Reader& reader) const final {
    if (reader.kind() == kind_) return absl::OkStatus();
    return InvalidArgument("'", name().name, "' is a ", reader.kind(), " and not a ", kind_);
  }
  virtual StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() = 0;

 private:
  std::string kind_;
};

class IdentityReaderKernel final : public ReaderKernel {
  StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() override { return NewIdentityFormat(); }
};

class WholeFileReaderKernel final : public ReaderKernel {
  StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() override { return NewWholeFileFormat(); }
};

class TextLineReaderKernel final : public ReaderKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(skip_lines_, init.Attr<int64_t>("skip_header_lines"));
    if (skip_lines_ < 0) return InvalidArgument("skip_header_lines must be >= 0 not ", skip_lines_);
    return ReaderKernel::Init(init);
  }

 private:
  StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() override { return NewTextLineFormat(skip_lines_); }

  int64_t skip_lines_ = 0;
};

class FixedLengthRecordReaderKernel final : public ReaderKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(lengths_.header, init.Attr<int64_t>("header_bytes"));
    MR_ASSIGN_OR_RETURN(lengths_.record, init.Attr<int64_t>("record_bytes"));
    MR_ASSIGN_OR_RETURN(lengths_.footer, init.Attr<int64_t>("footer_bytes"));
    MR_ASSIGN_OR_RETURN(lengths_.hop, init.Attr<int64_t>("hop_bytes"));
    if (init.HasAttr("encoding")) {
      MR_ASSIGN_OR_RETURN(const std::string encoding, init.Attr<std::string>("encoding"));
      MR_ASSIGN_OR_RETURN(compression_, CompressionFromName(encoding));
    }
    MR_RETURN_IF_ERROR(MakeFormat().status());
    return ReaderKernel::Init(init);
  }

 private:
  StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() override { return NewFixedLengthFormat(lengths_, compression_); }

  FixedLengths lengths_;
  Compression compression_ = Compression::kNone;
};

class TfRecordReaderKernel final : public ReaderKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const std::string name, init.Attr<std::string>("compression_type"));
    MR_ASSIGN_OR_RETURN(compression_, CompressionFromName(name));
    return ReaderKernel::Init(init);
  }

 private:
  StatusOr<std::unique_ptr<RecordFormat>> MakeFormat() override { return NewTfRecordFormat(compression_); }

  Compression compression_ = Compression::kNone;
};

class LmdbReaderKernel final : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    return Unimplemented("node '", ctx.node_name(), "': LMDB files are not read; convert them to record files");
  }
};

class ReadKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    StatusOr<RefPtr<Reader>> reader = FindResource<Reader>(ctx, 0);
    StatusOr<RefPtr<Queue>> queue =
        reader.ok() ? FindResource<Queue>(ctx, 1) : StatusOr<RefPtr<Queue>>(reader.status());
    StatusOr<int64_t> n = queue.ok() ? Wanted(ctx) : StatusOr<int64_t>(queue.status());
    if (!n.ok()) return std::move(done)(n.status());
    (*reader)->Read(*n, *std::move(queue), ctx.step().cancellation, ctx.device().thread_pool(),
                    [this, &ctx, done = std::move(done)](Status status, Reader::Records records) mutable {
                      if (status.ok()) status = Output(ctx, records);
                      std::move(done)(std::move(status));
                    });
  }

 protected:
  virtual StatusOr<int64_t> Wanted(const KernelContext&) const { return 1; }
  virtual StatusOr<Shape> OutputShape(const Reader::Records& records) const {
    if (records.size() == 1) return Shape();
    return Internal("a reader gave ", records.size(), " records instead of one");
  }

 private:
  Status Output(KernelContext& ctx, const Reader::Records& records) const {
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(records));
    MR_ASSIGN_OR_RETURN(Tensor * keys, ctx.AllocateOutput(0, shape));
    MR_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, shape));
    for (size_t i = 0; i < records.size(); ++i) {
      keys->mutable_data<TString>()[i] = records[i].key;
      values->mutable_data<TString>()[i] = records[i].value;
    }
    return absl::OkStatus();
  }
};

class ReadUpToKernel final : public ReadKernel {
  StatusOr<int64_t> Wanted(const KernelContext& ctx) const override {
    MR_RETURN_IF_ERROR(RequireScalar("num_records", ctx.input(2)));
    const int64_t n = *ctx.input(2).data<int64_t>();
    if (n < 0) return InvalidArgument("num_records must be >= 0, got ", n);
    return n;
  }
  StatusOr<Shape> OutputShape(const Reader::Records& records) const override {
    return Shape::Vector(static_cast<int64_t>(records.size()));
  }
};

Status OutputCount(KernelContext& ctx, int64_t n) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int64_t>() = n;
  return absl::OkStatus();
}

Status RecordsProduced(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindResource<Reader>(ctx, 0));
  return OutputCount(ctx, reader->records_produced());
}

Status WorkUnitsCompleted(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindResource<Reader>(ctx, 0));
  return OutputCount(ctx, reader->work_units_completed());
}

Status SerializeState(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindResource<Reader>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const std::string state, reader->SerializeState());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<TString>() = state;
  return absl::OkStatus();
}

Status RestoreState(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindResource<Reader>(ctx, 0));
  MR_RETURN_IF_ERROR(RequireScalar("state", ctx.input(1)));
  return reader->RestoreState(ctx.input(1).data<TString>()->view());
}

Status Reset(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Reader> reader, FindResource<Reader>(ctx, 0));
  reader->Reset();
  return absl::OkStatus();
}

}  // namespace

void RegisterReaderKernels(KernelRegistry& r) {
  for (const char* version : {"", "V2"}) {
    const auto named = [version](const char* op) { return absl::StrCat(op, version); };
    r.Add<IdentityReaderKernel>({.op = named("IdentityReader")});
    r.Add<WholeFileReaderKernel>({.op = named("WholeFileReader")});
    r.Add<TextLineReaderKernel>({.op = named("TextLineReader")});
    r.Add<FixedLengthRecordReaderKernel>({.op = named("FixedLengthRecordReader")});
    r.Add<TfRecordReaderKernel>({.op = named("TFRecordReader")});
    r.Add<ReadKernel>({.op = named("ReaderRead")});
    r.Add<ReadUpToKernel>({.op = named("ReaderReadUpTo")});
    r.AddFn({.op = named("ReaderNumRecordsProduced")}, RecordsProduced);
    r.AddFn({.op = named("ReaderNumWorkUnitsCompleted")}, WorkUnitsCompleted);
    r.AddFn({.op = named("ReaderSerializeState")}, SerializeState);
    r.AddFn({.op = named("ReaderRestoreState")}, RestoreState);
    r.AddFn({.op = named("ReaderReset")}, Reset);
  }
  r.Add<LmdbReaderKernel>({.op = "LMDBReader"});
  RegisterRecordInputKernel(r);
}

}  // namespace millrace
