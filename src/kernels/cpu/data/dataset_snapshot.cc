// SPDX-License-Identifier: Apache-2.0
// A data set that writes its elements to files while they are read for the first time, and reads them there afterwards.
//
// The files of what programs make in the same way lie in <path>/<fingerprint>/<run>/; snapshot.metadata beside the runs
// says which counts, and whether it has come to its end. Each file is one of records: an encoded TensorProto for each
// component of an element.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/file_system.h"
#include "io/record.h"
#include "kernels/cpu/data/dataset_derived.h"
#include "kernels/cpu/data/dataset_graph.h"
#include "tensor/tensor_proto.h"
#include "wire/snapshot.h"

namespace millrace {
namespace {

struct Snapshot {
  DatasetRef input;
  std::string reader_folder, writer_folder;  // with the fingerprint
  std::string fingerprint;
  Compression compression = Compression::kNone;
  uint64_t shard_bytes = 0;
  absl::Duration expiry;  // when one that has not come to its end is given up
};
using SnapshotDataset = Derived<Snapshot>;

std::string MetadataFile(const std::string& folder) { return JoinPath(folder, "snapshot.metadata"); }
std::string ShardFile(const std::string& folder, int64_t i) {
  return JoinPath(folder, absl::StrFormat("%08d.snapshot", i));
}

// NotFound where there is none.
StatusOr<wire::SnapshotMetadata> ReadMetadata(Env& env, const std::string& folder) {
  const std::string path = MetadataFile(folder);
  if (!env.FileExists(path)) return NotFound(path, " does not exist");
  MR_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(path));
  wire::SnapshotMetadata metadata;
  if (const Status s = wire::Decode(bytes, &metadata); !s.ok()) {
    return DataLoss(path, " does not describe a snapshot: ", s.message());
  }
  return metadata;
}

class SnapshotReader {
 public:
  SnapshotReader(Env& env, std::string folder, const Snapshot& p, const std::vector<DType>& types)
      : env_(env), folder_(std::move(folder)), compression_(p.compression), types_(types) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) {
    std::string record;
    while (true) {
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      if (!file_) {
        if (!env_.FileExists(ShardFile(folder_, shard_))) return false;
        MR_ASSIGN_OR_RETURN(file_, RecordReader::Open(env_, ShardFile(folder_, shard_), compression_));
      }
      MR_ASSIGN_OR_RETURN(const bool found, file_->Read(&record));
      if (found) break;
      file_.reset();
      ++shard_;
    }
    element->clear();
    for (size_t c = 0; c < types_.size(); ++c) {
      if (c > 0) {
        MR_ASSIGN_OR_RETURN(const bool more, file_->Read(&record));
        if (!more) return DataLoss(ShardFile(folder_, shard_), " ends within an element");
      }
      wire::TensorProto proto;
      MR_RETURN_IF_ERROR(wire::Decode(record, &proto));
      MR_ASSIGN_OR_RETURN(Tensor t, TensorFromProto(proto));
      element->push_back(std::move(t));
    }
    return true;
  }

 private:
  Env& env_;
  const std::string folder_;
  const Compression compression_;
  const std::vector<DType>& types_;
  std::unique_ptr<RecordReader> file_;
  int64_t shard_ = 0;
};

// What is written counts as pending until Finish.
class SnapshotWriter {
 public:
  SnapshotWriter(Env& env, const Snapshot& p) : env_(env), params_(p) {}
  Status Begin() {
    metadata_.graph_hash = params_.fingerprint;
    metadata_.run_id = absl::StrFormat("%016x", env_.Random64());
    metadata_.creation_timestamp = absl::ToUnixMicros(env_.Now());
    MR_RETURN_IF_ERROR(env_.CreateDirs(Folder()));
    return WriteMetadata();
  }
  Status Write(const Element& element) {
    if (!file_) {
      MR_ASSIGN_OR_RETURN(file_, RecordWriter::Open(env_, ShardFile(Folder(), shard_), params_.compression));
    }
    for (const Tensor& t : element) {
      MR_ASSIGN_OR_RETURN(const wire::TensorProto proto, TensorToProto(t));
      const std::string record = wire::Encode(proto);
      MR_RETURN_IF_ERROR(file_->Write(record));
      written_ += std::max(record.size(), t.TotalBytes());  // equal elements take less
    }
    return written_ > params_.shard_bytes ? CloseShard() : absl::OkStatus();
  }
  Status Finish() {
    MR_RETURN_IF_ERROR(CloseShard());
    metadata_.finalized = true;
    return WriteMetadata();
  }

 private:
  std::string Folder() const { return JoinPath(params_.writer_folder, metadata_.run_id); }
  Status WriteMetadata() {
    return WriteFileAtomically(env_, MetadataFile(params_.writer_folder), wire::Encode(metadata_));
  }
  Status CloseShard() {
    if (!file_) return absl::OkStatus();
    const std::unique_ptr<RecordWriter> file = std::move(file_);
    ++shard_;
    written_ = 0;
    return file->Close();
  }

  Env& env_;
  const Snapshot& params_;
  wire::SnapshotMetadata metadata_;
  std::unique_ptr<RecordWriter> file_;
  int64_t shard_ = 0;
  uint64_t written_ = 0;  // of elements, to the file
};

// Which of the three it does is seen when the first element is wanted: it reads a snapshot that is there, writes one,
// or passes elements on where another iterator writes.
class SnapshotIterator final : public DataIterator {
 public:
  explicit SnapshotIterator(RefPtr<const SnapshotDataset> d) : dataset_(std::move(d)) {}
  StatusOr<bool> Next(DataContext& ctx, Element* element) override {
    if (!begun_) {
      MR_RETURN_IF_ERROR(Begin(ctx));
      begun_ = true;
    }
    if (reader_) return Read(ctx, element);
    if (!input_) return false;
    const StatusOr<bool> found = input_->Next(ctx, element);
    if (found.ok() && !*found) input_.reset();
    const Status s = found.ok() ? Keep(*found, *element) : found.status();
    if (!s.ok()) writer_.reset();  // it would lack an element
    MR_RETURN_IF_ERROR(s);
    return *found;
  }

 private:
  Status Begin(DataContext& ctx) {
    const Snapshot& p = dataset_->params();
    const StatusOr<wire::SnapshotMetadata> there = ReadMetadata(ctx.env, p.reader_folder);
    if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
    if (there.ok() && there->finalized) {
      const std::string& run = there->run_id;
      if (run.empty() || run == "." || run == ".." || Basename(run) != run) {
        return DataLoss(MetadataFile(p.reader_folder), " names no folder of a run");
      }
      reader_.emplace(ctx.env, JoinPath(p.reader_folder, there->run_id), p, p.input->spec().types);
      return absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(input_, p.input->MakeIterator(ctx));
    const bool is_written = there.ok() && ctx.env.Now() - absl::FromUnixMicros(there->creation_timestamp) < p.expiry;
    if (is_written) return absl::OkStatus();
    writer_.emplace(ctx.env, p);
    return writer_->Begin();
  }
  Status Keep(bool found, const Element& element) {
    if (!writer_) return absl::OkStatus();
    return found ? writer_->Write(element) : writer_->Finish();
  }
  StatusOr<bool> Read(DataContext& ctx, Element* element) {
    MR_ASSIGN_OR_RETURN(const bool found, reader_->Next(ctx, element));
    if (found) MR_RETURN_IF_ERROR(CheckElement(dataset_->spec(), *element));
    return found;
  }

  const RefPtr<const SnapshotDataset> dataset_;
  DataIteratorPtr input_;  // null: it has ended, or is not read
  bool begun_ = false;
  std::optional<SnapshotReader> reader_;
  std::optional<SnapshotWriter> writer_;
};

class SnapshotKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    constexpr int64_t kShardBytes = int64_t{10} << 30, kExpirySeconds = 86400;
    MR_ASSIGN_OR_RETURN(const std::string compression, init.Attr<std::string>("compression"));
    MR_ASSIGN_OR_RETURN(compression_, CompressionFromName(compression));
    MR_ASSIGN_OR_RETURN(reader_prefix_, init.Attr<std::string>("reader_path_prefix"));
    MR_ASSIGN_OR_RETURN(writer_prefix_, init.Attr<std::string>("writer_path_prefix"));
    MR_ASSIGN_OR_RETURN(shard_bytes_, Positive(init, "shard_size_bytes", kShardBytes));
    MR_ASSIGN_OR_RETURN(expiry_seconds_, Positive(init, "pending_snapshot_expiry_seconds", kExpirySeconds));
    for (const char* name : {"num_reader_threads", "reader_buffer_size", "num_writer_threads", "writer_buffer_size"}) {
      MR_RETURN_IF_ERROR(Positive(init, name, 1).status());
    }
    return DatasetKernel::Init(init);
  }
  // -1 stands for `otherwise`.
  static StatusOr<int64_t> Positive(const KernelInit& init, absl::string_view name, int64_t otherwise) {
    MR_ASSIGN_OR_RETURN(const int64_t value, init.Attr<int64_t>(name));
    if (value == -1) return otherwise;
    if (value < 1) return InvalidArgument(name, " must be at least 1, got ", value);
    return value;
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    Snapshot p;
    MR_ASSIGN_OR_RETURN(p.input, DatasetOf(ctx.input(0), "input_dataset"));
    if (ctx.input(1).rank() != 0) return InvalidArgument("path must be a scalar");
    const StatusOr<uint64_t> fingerprint = FingerprintOfDataset(*p.input);
    if (!fingerprint.ok()) return Annotate(fingerprint.status(), "SnapshotDataset cannot tell its input from others: ");
    p.fingerprint = absl::StrFormat("%016x", *fingerprint);
    const std::string path = ctx.input(1).data<TString>()->str();
    p.reader_folder = JoinPath(reader_prefix_ + path, p.fingerprint);
    p.writer_folder = JoinPath(writer_prefix_ + path, p.fingerprint);
    p.compression = compression_;
    p.shard_bytes = static_cast<uint64_t>(shard_bytes_);
    p.expiry = absl::Seconds(expiry_seconds_);
    return DatasetRef(MakeRef<SnapshotDataset>(
        spec(), std::move(p), [](const RefPtr<const SnapshotDataset>& self, DataContext&) -> StatusOr<DataIteratorPtr> {
          return std::make_unique<SnapshotIterator>(self);
        }));
  }

  Compression compression_ = Compression::kNone;
  std::string reader_prefix_, writer_prefix_;
  int64_t shard_bytes_ = 0, expiry_seconds_ = 0;
};

}  // namespace

void RegisterDatasetSnapshotKernels(KernelRegistry& r) { r.Add<SnapshotKernel>({.op = "SnapshotDataset"}); }

}  // namespace millrace
