// SPDX-License-Identifier: Apache-2.0
// CPU kernel: batches of records, drawn by chance out of a buffer that is filled from files.
#include <algorithm>
#include <random>
#include <utility>

#include "base/env.h"
#include "io/glob.h"
#include "io/record.h"
#include "kernel/cancellation.h"
#include "kernel/device_env.h"
#include "kernels/cpu/data/reader_kernels.h"

namespace millrace {
namespace {

// The records of all files, each once an epoch, again and again. A new epoch begins when the last one's records are
// given. Not thread-safe.
class ShuffledRecords {
 public:
  struct Options {
    std::string pattern;
    int64_t seed = 0;
    double shift = 0;  // each epoch's order begins so much of the list later
    int64_t buffer = 0;
    Compression compression = Compression::kNone;
  };
  ShuffledRecords(Env& env, Options options)
      : env_(env), options_(std::move(options)), random_(static_cast<uint64_t>(options_.seed)) {}

  Status Next(std::string* record) {
    MR_RETURN_IF_ERROR(Fill());
    if (buffer_.empty()) {
      MR_RETURN_IF_ERROR(StartEpoch());
      MR_RETURN_IF_ERROR(Fill());
      if (buffer_.empty()) return NotFound("the files that match ", options_.pattern, " hold no records");
    }
    std::swap(buffer_[random_() % buffer_.size()], buffer_.back());
    *record = std::move(buffer_.back());
    buffer_.pop_back();
    return absl::OkStatus();
  }

 private:
  Status StartEpoch() {
    if (files_.empty()) {
      MR_ASSIGN_OR_RETURN(files_, MatchFiles(env_, options_.pattern));
      if (files_.empty()) return NotFound("Found no files at ", options_.pattern);
    }
    std::shuffle(files_.begin(), files_.end(), random_);
    const auto shift = static_cast<size_t>(options_.shift * static_cast<double>(files_.size()));
    std::rotate(
        files_.begin(), files_.begin() + static_cast<int64_t>(std::min(shift, files_.size() - 1)), files_.end());
    next_file_ = 0;
    return absl::OkStatus();
  }

  // Until the buffer is full, or the epoch's files are at their ends.
  Status Fill() {
    while (static_cast<int64_t>(buffer_.size()) < options_.buffer) {
      if (!reader_) {
        if (next_file_ >= files_.size()) return absl::OkStatus();
        MR_ASSIGN_OR_RETURN(reader_, RecordReader::Open(env_, files_[next_file_++], options_.compression));
      }
      std::string record;
      const StatusOr<bool> found = reader_->Read(&record);
      if (!found.ok() || !*found) reader_.reset();
      if (!found.ok()) return Annotate(found.status(), absl::StrCat(files_[next_file_ - 1], ": "));
      if (*found) buffer_.push_back(std::move(record));
    }
    return absl::OkStatus();
  }

  Env& env_;
  const Options options_;
  std::mt19937_64 random_;
  std::vector<std::string> files_;
  size_t next_file_ = 0;
  std::unique_ptr<RecordReader> reader_;
  std::vector<std::string> buffer_;
};

class RecordInputKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    ShuffledRecords::Options options;
    MR_ASSIGN_OR_RETURN(options.pattern, init.Attr<std::string>("file_pattern"));
    MR_ASSIGN_OR_RETURN(options.seed, init.Attr<int64_t>("file_random_seed"));
    MR_ASSIGN_OR_RETURN(const float shift, init.Attr<float>("file_shuffle_shift_ratio"));
    MR_ASSIGN_OR_RETURN(options.buffer, init.Attr<int64_t>("file_buffer_size"));
    MR_ASSIGN_OR_RETURN(batch_, init.Attr<int64_t>("batch_size"));
    MR_ASSIGN_OR_RETURN(const std::string compression, init.Attr<std::string>("compression_type"));
    MR_ASSIGN_OR_RETURN(options.compression, CompressionFromName(compression));
    if (options.buffer < 1 || batch_ < 1 || !(shift >= 0 && shift <= 1)) {
      return InvalidArgument(
          "file_buffer_size and batch_size must be positive and file_shuffle_shift_ratio in [0, 1], got ",
          options.buffer, ", ", batch_, " and ", shift);
    }
    options.shift = static_cast<double>(shift);
    absl::MutexLock lock(&mu_);
    records_ = std::make_unique<ShuffledRecords>(EnvOf(init.device), std::move(options));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(batch_)));
    absl::MutexLock lock(&mu_);
    for (TString& to : out->mutable_flat<TString>()) {
      if (ctx.step().cancellation) MR_RETURN_IF_ERROR(ctx.step().cancellation->reason());
      std::string record;
      MR_RETURN_IF_ERROR(records_->Next(&record));
      to = record;
    }
    return absl::OkStatus();
  }

 private:
  int64_t batch_ = 0;
  absl::Mutex mu_;
  std::unique_ptr<ShuffledRecords> records_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

void RegisterRecordInputKernel(KernelRegistry& r) { r.Add<RecordInputKernel>({.op = "RecordInput"}); }

}  // namespace millrace
