// SPDX-License-Identifier: Apache-2.0
// The Env of a POSIX system. Every error names the path and what was tried.
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "base/env.h"
#include "base/file_system.h"
#include "base/file_uri.h"
#include "base/futex.h"
#include "base/thread_pool.h"
#include "base/timer_thread.h"
#include "base/waiting_threads.h"

namespace millrace {
namespace {

constexpr size_t kWriteBufferBytes = 64 << 10;
constexpr size_t kReadChunkBytes = 64 << 10;
// Linux transfers at most this much in one call.
constexpr size_t kMaxTransfer = 0x7ffff000;

Status FromErrno(int error, absl::string_view what, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
}

// A path that the system would cut at its first NUL names another file.
Status CheckPath(const std::string& path) {
  if (WithoutFileScheme(path).empty()) return InvalidArgument("empty path");
  if (path.find('\0') != std::string::npos) return InvalidArgument("path contains a NUL character: ", path.c_str());
  return absl::OkStatus();
}

// As the system has it: the rest of the string, which ends in a NUL.
const char* OnSystem(const std::string& path) { return WithoutFileScheme(path).data(); }

template <typename Call>
auto RetryInterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class UniqueFd {
 public:
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&&) = delete;
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

StatusOr<UniqueFd> Open(const std::string& path, int flags, absl::string_view what) {
  MR_RETURN_IF_ERROR(CheckPath(path));
  const int fd = RetryInterrupted([&] { return ::open(OnSystem(path), flags | O_CLOEXEC, 0666); });
  if (fd < 0) return FromErrno(errno, what, path);
  return UniqueFd(fd);
}

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(fd.release()) {}
  ~PosixWritableFile() override { (void)Close(); }

  Status Append(absl::string_view data) override {
    MR_RETURN_IF_ERROR(CheckOpen());
    if (buffer_.size() + data.size() <= kWriteBufferBytes) {
      buffer_.append(data.data(), data.size());
      return absl::OkStatus();
    }
    MR_RETURN_IF_ERROR(Flush());
    if (data.size() >= kWriteBufferBytes) return WriteAll(data);
    buffer_.append(data.data(), data.size());
    return absl::OkStatus();
  }

  Status Flush() override {
    MR_RETURN_IF_ERROR(CheckOpen());
    MR_RETURN_IF_ERROR(WriteAll(buffer_));
    buffer_.clear();
    return absl::OkStatus();
  }

  Status Sync() override {
    MR_RETURN_IF_ERROR(Flush());
    if (RetryInterrupted([&] { return ::fdatasync(fd_); }) != 0) return Fail(errno, "cannot sync");
    return absl::OkStatus();
  }

  Status Close() override {
    if (fd_ < 0) return absl::OkStatus();
    Status status = failure_.ok() ? Flush() : failure_;
    // After EINTR the descriptor is gone all the same: no retry.
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR && status.ok()) {
      status = FromErrno(errno, "cannot close", path_);
    }
    return status;
  }

 private:
  // After a failed write or sync nobody knows what the file holds: it stays failed.
  Status Fail(int error, absl::string_view what) {
    failure_ = FromErrno(error, what, path_);
    return failure_;
  }
  Status CheckOpen() const {
    if (!failure_.ok()) return failure_;
    return fd_ >= 0 ? absl::OkStatus() : FailedPrecondition("file is closed: ", path_);
  }
  Status WriteAll(absl::string_view data) {
    while (!data.empty()) {
      const size_t n = std::min(data.size(), kMaxTransfer);
      const ssize_t written = RetryInterrupted([&] { return ::write(fd_, data.data(), n); });
      if (written < 0) return Fail(errno, "cannot write");
      data.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  const std::string path_;
  int fd_;
  std::string buffer_;
  Status failure_;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string path, UniqueFd fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  Status Read(uint64_t offset, size_t n, char* out) const override {
    if (offset > size_ || n > size_ - offset) return PastEnd(offset, n);
    while (n > 0) {
      const size_t want = std::min(n, kMaxTransfer);
      const ssize_t got = RetryInterrupted([&] { return ::pread(fd_.get(), out, want, static_cast<off_t>(offset)); });
      if (got < 0) return FromErrno(errno, "cannot read", path_);
      if (got == 0) return PastEnd(offset, n);  // somebody cut the file
      out += got;
      n -= static_cast<size_t>(got);
      offset += static_cast<uint64_t>(got);
    }
    return absl::OkStatus();
  }
  uint64_t size() const override { return size_; }

 private:
  Status PastEnd(uint64_t offset, size_t n) const { return ReadPastEnd(path_, size_, offset, n); }

  const std::string path_;
  const UniqueFd fd_;
  const uint64_t size_;
};

// Returns use(file system) where another than the machine has the path.
#define MR_IF_OTHERS_FILE(path, files, ...)                         \
  MR_ASSIGN_OR_RETURN(FileSystem* const files, FileSystemOf(path)); \
  if (files != nullptr) return __VA_ARGS__

StatusOr<struct stat> Stat(const std::string& path) {
  MR_RETURN_IF_ERROR(CheckPath(path));
  struct stat info;
  if (::stat(OnSystem(path), &info) != 0) return FromErrno(errno, "cannot stat", path);
  return info;
}

class PosixEnv final : public Env {
 public:
  absl::Time Now() override { return absl::Now(); }

  int64_t MonotonicNanos() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  uint64_t Random64() override {
    uint64_t value = 0;
    if (::getrandom(&value, sizeof(value), 0) == static_cast<ssize_t>(sizeof(value))) return value;
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }

  void Schedule(absl::AnyInvocable<void() &&> fn) override { ProcessThreadPool().Schedule(std::move(fn)); }
  Status StartThread(absl::AnyInvocable<void() &&> fn) override { return WaitingThreads::Get().Run(std::move(fn)); }
  TimerId StartTimer(absl::Duration period, absl::AnyInvocable<bool()> fn) override {
    return TimerThread::Get().Add(period, std::move(fn));
  }
  void StopTimer(TimerId id) override { TimerThread::Get().Remove(id); }

  bool Await(absl::Mutex& mu, const absl::Condition& condition, absl::Duration patience) override {
    if (patience == absl::InfiniteDuration()) {
      mu.Await(condition);
      return true;
    }
    // A look now and then, since Abseil may wait by the clock on the wall.
    for (const int64_t start = MonotonicNanos();;) {
      const absl::Duration left = patience - absl::Nanoseconds(MonotonicNanos() - start);
      if (mu.AwaitWithTimeout(condition, std::clamp(left, absl::ZeroDuration(), absl::Seconds(1)))) return true;
      if (left <= absl::ZeroDuration()) return false;
    }
  }
  void WaitWhile(std::atomic<uint32_t>& word, uint32_t seen, int64_t nanos) override { FutexWait(word, seen, nanos); }
  void WakeOne(std::atomic<uint32_t>& word) override { FutexWake(word, 1); }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->NewWritableFile(path));
    return OpenForWriting(path, O_WRONLY | O_CREAT | O_TRUNC);
  }
  StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->NewAppendableFile(path));
    return OpenForWriting(path, O_WRONLY | O_CREAT | O_APPEND);
  }

  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->NewRandomAccessFile(path));
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    MR_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, O_RDONLY | O_NONBLOCK, "cannot open"));
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return FromErrno(errno, "cannot stat", path);
    if (S_ISDIR(info.st_mode)) return FailedPrecondition("cannot open ", path, ": it is a folder");
    if (!S_ISREG(info.st_mode)) return FailedPrecondition("cannot open ", path, ": it is no regular file");
    return std::make_unique<PosixRandomAccessFile>(path, std::move(fd), static_cast<uint64_t>(info.st_size));
  }

  StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) override {
    MR_IF_OTHERS_FILE(path, files, ReadWhole(*files, path, max_bytes));
    MR_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY, "cannot open"));
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return FromErrno(errno, "cannot stat", path);
    if (S_ISDIR(info.st_mode)) return FailedPrecondition("cannot read ", path, ": it is a folder");
    // The size is a hint only: it is 0 for files that the kernel makes up, and may change meanwhile.
    const uint64_t hint = static_cast<uint64_t>(info.st_size);
    if (hint > max_bytes) return TooLarge(path, max_bytes);
    std::string contents;
    size_t used = 0;
    contents.resize(static_cast<size_t>(hint) + 1);
    while (true) {
      if (used == contents.size()) contents.resize(used + std::max(used, kReadChunkBytes));
      const size_t want = std::min(contents.size() - used, kMaxTransfer);
      const ssize_t got = RetryInterrupted([&] { return ::read(fd.get(), contents.data() + used, want); });
      if (got < 0) return FromErrno(errno, "cannot read", path);
      if (got == 0) break;
      used += static_cast<size_t>(got);
      if (used > max_bytes) return TooLarge(path, max_bytes);
    }
    contents.resize(used);
    return contents;
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    MR_ASSIGN_OR_RETURN(FileSystem* const target, FileSystemOf(to));
    MR_ASSIGN_OR_RETURN(FileSystem* const source, FileSystemOf(from));
    if (source != target) return Unimplemented("renaming ", from, " to ", to, ": they are of two file systems");
    if (source != nullptr) return source->RenameFile(from, to);
    MR_RETURN_IF_ERROR(CheckPath(from));
    MR_RETURN_IF_ERROR(CheckPath(to));
    if (::rename(OnSystem(from), OnSystem(to)) == 0) return absl::OkStatus();
    return FromErrno(errno, absl::StrCat("cannot rename ", from, " to"), to);
  }

  Status DeleteFile(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->DeleteFile(path));
    MR_RETURN_IF_ERROR(CheckPath(path));
    return ::unlink(OnSystem(path)) == 0 ? absl::OkStatus() : FromErrno(errno, "cannot delete", path);
  }

  Status DeleteDir(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->DeleteDir(path));
    MR_RETURN_IF_ERROR(CheckPath(path));
    return ::rmdir(OnSystem(path)) == 0 ? absl::OkStatus() : FromErrno(errno, "cannot delete folder", path);
  }

  Status CreateDirs(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->CreateDirs(path));
    MR_RETURN_IF_ERROR(CheckPath(path));
    const std::string local = OnSystem(path);
    for (size_t end = 0; end != std::string::npos;) {
      end = local.find('/', end + 1);
      const std::string prefix = local.substr(0, end);
      if (::mkdir(prefix.c_str(), 0777) == 0) continue;
      // A parent may exist and yet refuse mkdir with another code (a read-only mount), so ask.
      const int error = errno;
      struct stat info;
      if (::stat(prefix.c_str(), &info) != 0) return FromErrno(error, "cannot create folder", prefix);
      if (!S_ISDIR(info.st_mode)) return FailedPrecondition("cannot create folder ", prefix, ": it is a file");
    }
    return absl::OkStatus();
  }

  Status SyncDir(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, absl::OkStatus());
    MR_ASSIGN_OR_RETURN(const UniqueFd fd, Open(path, O_RDONLY | O_DIRECTORY, "cannot open folder"));
    if (RetryInterrupted([&] { return ::fsync(fd.get()); }) == 0) return absl::OkStatus();
    // Some file systems know no sync of folders.
    return errno == EINVAL || errno == EROFS ? absl::OkStatus() : FromErrno(errno, "cannot sync folder", path);
  }

  bool FileExists(const std::string& path) override {
    const StatusOr<FileSystem*> files = FileSystemOf(path);
    if (!files.ok() || *files != nullptr) return files.ok() && (*files)->Stat(path).ok();
    return CheckPath(path).ok() && ::access(OnSystem(path), F_OK) == 0;
  }

  StatusOr<uint64_t> FileSize(const std::string& path) override {
    MR_ASSIGN_OR_RETURN(FileSystem* const files, FileSystemOf(path));
    if (files != nullptr) {
      MR_ASSIGN_OR_RETURN(const FileInfo of_other, files->Stat(path));
      return of_other.bytes;
    }
    MR_ASSIGN_OR_RETURN(const struct stat info, Stat(path));
    return static_cast<uint64_t>(info.st_size);
  }

  StatusOr<std::vector<std::string>> ListDir(const std::string& path) override {
    MR_IF_OTHERS_FILE(path, files, files->ListDir(path));
    MR_RETURN_IF_ERROR(CheckPath(path));
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(OnSystem(path)), ::closedir);
    if (!dir) return FromErrno(errno, "cannot list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(dir.get())) {
      const absl::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return FromErrno(errno, "cannot list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  static Status TooLarge(const std::string& path, uint64_t max_bytes) {
    return ResourceExhausted(path, " is larger than the limit of ", max_bytes, " bytes");
  }
  static StatusOr<std::string> ReadWhole(FileSystem& files, const std::string& path, uint64_t max_bytes) {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file, files.NewRandomAccessFile(path));
    if (file->size() > max_bytes) return TooLarge(path, max_bytes);
    std::string contents(static_cast<size_t>(file->size()), '\0');
    MR_RETURN_IF_ERROR(file->Read(0, contents.size(), contents.data()));
    return contents;
  }
  static StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path, int flags) {
    MR_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, flags, "cannot open for writing"));
    return std::make_unique<PosixWritableFile>(path, std::move(fd));
  }
};

}  // namespace

Env& Env::Default() {
  static PosixEnv& env = *new PosixEnv;
  return env;
}

}  // namespace millrace
