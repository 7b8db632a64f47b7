// SPDX-License-Identifier: Apache-2.0
#include "simulation/fake_disk.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace millrace {

uint64_t NextRandom(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {

// One name per file: "a//b/" is "a/b"; the working folder is "".
std::string Normalized(absl::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out == "." ? "" : out;
}

std::string ParentOf(const std::string& path) { return std::string(Dirname(path)); }

// What a power loss leaves of a file that was `durable` and then written to.
std::string Torn(const std::string& durable, const std::string& content, uint64_t* random) {
  const size_t kept = content.empty() ? 0 : NextRandom(random) % (content.size() + 1);
  switch (NextRandom(random) % 4) {
    case 0: return durable;
    case 1: return content;
    case 2: return content.substr(0, std::max(kept, std::min(durable.size(), content.size())));
    default: break;
  }
  // The size was written, the end of the data was not.
  std::string torn = content;
  const size_t start = content.compare(0, durable.size(), durable) == 0 ? std::max(kept, durable.size()) : kept;
  std::fill(torn.begin() + static_cast<std::ptrdiff_t>(std::min(start, torn.size())), torn.end(), '\0');
  return torn;
}

}  // namespace

class FakeDisk::Writer final : public WritableFile {
 public:
  Writer(FakeDisk* disk, FilePtr file, int64_t generation)
      : disk_(disk), file_(std::move(file)), generation_(generation) {}

  Status Append(absl::string_view data) override {
    disk_->Prepare();
    const absl::MutexLock lock(&disk_->mu_);
    MR_RETURN_IF_ERROR(Begin());
    file_->content.append(data.data(), data.size());
    return absl::OkStatus();
  }
  Status Flush() override {
    const absl::MutexLock lock(&disk_->mu_);
    return CheckUsable();
  }
  Status Sync() override {
    disk_->Prepare();
    const absl::MutexLock lock(&disk_->mu_);
    MR_RETURN_IF_ERROR(Begin());
    if (!disk_->lies_) file_->durable = file_->content;
    return absl::OkStatus();
  }
  Status Close() override {
    const absl::MutexLock lock(&disk_->mu_);
    if (closed_) return absl::OkStatus();
    closed_ = true;
    MR_RETURN_IF_ERROR(failure_);
    return disk_->BeginChange();
  }

 private:
  Status CheckUsable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mu_) {
    if (generation_ != disk_->generation_) return FailedPrecondition("the file was opened before the restart");
    if (closed_) return FailedPrecondition("the file is closed");
    return failure_;
  }
  // Like a real file, it stays failed.
  Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mu_) {
    MR_RETURN_IF_ERROR(CheckUsable());
    return failure_ = disk_->BeginChange();
  }

  FakeDisk* const disk_;
  const FilePtr file_;
  const int64_t generation_;
  bool closed_ = false;
  Status failure_;
};

class FakeDisk::Reader final : public RandomAccessFile {
 public:
  Reader(FakeDisk* disk, FilePtr file) : disk_(disk), file_(std::move(file)), size_(file_->content.size()) {}

  Status Read(uint64_t offset, size_t n, char* out) const override {
    const absl::MutexLock lock(&disk_->mu_);
    MR_RETURN_IF_ERROR(disk_->BeginRead());
    const uint64_t size = file_->content.size();
    if (offset > size || n > size - offset) {
      return OutOfRange("read of ", n, " bytes at ", offset, " goes past the end (", size, " bytes)");
    }
    if (n > 0) std::memcpy(out, file_->content.data() + offset, n);
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }

 private:
  FakeDisk* const disk_;
  const FilePtr file_;
  const uint64_t size_;
};

Status FakeDisk::BeginRead() const {
  return crash_at_ && operations_ > *crash_at_ ? Unavailable("the simulated machine has crashed") : absl::OkStatus();
}

Status FakeDisk::BeginChange() {
  const int64_t n = operations_++;
  if (fail_at_ && n == *fail_at_) return failure_;
  return crash_at_ && n >= *crash_at_ ? Unavailable("the simulated machine has crashed") : absl::OkStatus();
}

void FakeDisk::CrashAfter(int64_t n) {
  const absl::MutexLock lock(&mu_);
  crash_at_ = operations_ + n;
}

void FakeDisk::FailOnce(int64_t n, Status status) {
  const absl::MutexLock lock(&mu_);
  fail_at_ = operations_ + n;
  failure_ = std::move(status);
}

void FakeDisk::Apply(const Change& change, Entries* entries) {
  if (!change.removed.empty()) entries->erase(change.removed);
  if (!change.path.empty()) (*entries)[change.path] = change.file;
}

void FakeDisk::Record(Change change) {
  Apply(change, &entries_);
  changes_.push_back(std::move(change));
}

void FakeDisk::Restart(Survival survival, uint64_t seed) {
  const absl::MutexLock lock(&mu_);
  uint64_t random = seed;
  for (const Change& change : changes_) {
    const bool survives =
        survival == Survival::kRandom ? NextRandom(&random) % 2 == 0 : survival == Survival::kEverything;
    if (survives) Apply(change, &durable_entries_);
  }
  changes_.clear();
  entries_.clear();
  std::map<const File*, FilePtr> after;  // one file may have several entries
  for (auto& [path, file] : durable_entries_) {
    FilePtr& restored = after[file.get()];
    if (!restored) {
      restored = std::make_shared<File>();
      if (survival == Survival::kNothing || file->content == file->durable) {
        restored->content = file->durable;
      } else {
        restored->content =
            survival == Survival::kEverything ? file->content : Torn(file->durable, file->content, &random);
      }
      restored->durable = restored->content;
    }
    entries_[path] = restored;
  }
  durable_entries_ = entries_;
  crash_at_.reset();
  fail_at_.reset();
  ++generation_;
}

void FakeDisk::SetLies(bool lies) {
  const absl::MutexLock lock(&mu_);
  lies_ = lies;
}

int64_t FakeDisk::operations() const {
  const absl::MutexLock lock(&mu_);
  return operations_;
}

StatusOr<FakeDisk::FilePtr> FakeDisk::Find(const std::string& path) {
  MR_RETURN_IF_ERROR(BeginRead());
  const std::string name = Normalized(path);
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  if (folders_.count(name) != 0) return FailedPrecondition(path, " is a folder");
  return NotFound("no file ", path);
}

Status FakeDisk::CheckParent(const std::string& path) {
  if (path.empty()) return InvalidArgument("empty path");
  if (folders_.count(path) != 0) return FailedPrecondition(path, " is a folder");
  return folders_.count(ParentOf(path)) != 0 ? absl::OkStatus() : NotFound("no folder for ", path);
}

StatusOr<std::unique_ptr<WritableFile>> FakeDisk::OpenForWriting(const std::string& path, bool truncate) {
  Prepare();
  const absl::MutexLock lock(&mu_);
  const std::string name = Normalized(path);
  MR_RETURN_IF_ERROR(CheckParent(name));
  MR_RETURN_IF_ERROR(BeginChange());
  const auto found = entries_.find(name);
  FilePtr file;
  if (found != entries_.end()) {
    file = found->second;
    if (truncate) file->content.clear();
  } else {
    file = std::make_shared<File>();
    Record({"", name, file});
  }
  return std::make_unique<Writer>(this, std::move(file), generation_);
}

StatusOr<std::unique_ptr<RandomAccessFile>> FakeDisk::NewRandomAccessFile(const std::string& path) {
  const absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(FilePtr file, Find(path));
  return std::make_unique<Reader>(this, std::move(file));
}

StatusOr<std::string> FakeDisk::ReadFile(const std::string& path, uint64_t max_bytes) {
  const absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(const FilePtr file, Find(path));
  if (file->content.size() > max_bytes)
    return ResourceExhausted(path, " is larger than the limit of ", max_bytes, " bytes");
  return file->content;
}

Status FakeDisk::RenameFile(const std::string& from, const std::string& to) {
  Prepare();
  const absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(FilePtr file, Find(from));
  const std::string target = Normalized(to);
  MR_RETURN_IF_ERROR(CheckParent(target));
  MR_RETURN_IF_ERROR(BeginChange());
  if (target != Normalized(from)) Record({Normalized(from), target, std::move(file)});
  return absl::OkStatus();
}

Status FakeDisk::DeleteFile(const std::string& path) {
  Prepare();
  const absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(Find(path).status());
  MR_RETURN_IF_ERROR(BeginChange());
  Record({Normalized(path), "", nullptr});
  return absl::OkStatus();
}

Status FakeDisk::DeleteDir(const std::string& path) {
  const std::string folder = Normalized(path);
  MR_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(path));
  const absl::MutexLock lock(&mu_);
  if (!names.empty()) return FailedPrecondition(path, " is not empty");
  MR_RETURN_IF_ERROR(BeginChange());
  folders_.erase(folder);
  return absl::OkStatus();
}

Status FakeDisk::CreateDirs(const std::string& path) {
  const absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(BeginChange());
  for (std::string folder = Normalized(path); folders_.count(folder) == 0; folder = ParentOf(folder)) {
    if (entries_.count(folder) != 0) return FailedPrecondition(folder, " is a file");
    folders_.insert(folder);
  }
  return absl::OkStatus();
}

Status FakeDisk::SyncDir(const std::string& path) {
  Prepare();
  const absl::MutexLock lock(&mu_);
  const std::string folder = Normalized(path);
  if (folders_.count(folder) == 0) return NotFound("no folder ", path);
  MR_RETURN_IF_ERROR(BeginChange());
  if (lies_) return absl::OkStatus();
  const auto is_here = [&](const Change& change) {
    return ParentOf(change.path.empty() ? change.removed : change.path) == folder;
  };
  for (const Change& change : changes_) {
    if (is_here(change)) Apply(change, &durable_entries_);
  }
  changes_.erase(std::remove_if(changes_.begin(), changes_.end(), is_here), changes_.end());
  return absl::OkStatus();
}

bool FakeDisk::FileExists(const std::string& path) {
  const absl::MutexLock lock(&mu_);
  return folders_.count(Normalized(path)) != 0 || Find(path).ok();
}

StatusOr<uint64_t> FakeDisk::FileSize(const std::string& path) {
  const absl::MutexLock lock(&mu_);
  MR_ASSIGN_OR_RETURN(const FilePtr file, Find(path));
  return file->content.size();
}

StatusOr<std::vector<std::string>> FakeDisk::ListDir(const std::string& path) {
  const absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(BeginRead());
  const std::string folder = Normalized(path);
  if (folders_.count(folder) == 0) return NotFound("no folder ", path);
  std::vector<std::string> names;
  for (const auto& [name, file] : entries_) {
    if (ParentOf(name) == folder) names.emplace_back(Basename(name));
  }
  for (const std::string& name : folders_) {
    if (name != "/" && !name.empty() && ParentOf(name) == folder) names.emplace_back(Basename(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace millrace
