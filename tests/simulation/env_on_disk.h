// SPDX-License-Identifier: Apache-2.0
// The part of an Env that is files, on a FakeDisk.
#pragma once

#include "simulation/fake_disk.h"

namespace millrace {

class EnvOnDisk : public Env {
 public:
  FakeDisk& disk() { return disk_; }
  const FakeDisk& disk() const { return disk_; }

  StatusOr<std::unique_ptr<WritableFile>> NewWritableFile(const std::string& path) override {
    return disk_.OpenForWriting(path, /*truncate=*/true);
  }
  StatusOr<std::unique_ptr<WritableFile>> NewAppendableFile(const std::string& path) override {
    return disk_.OpenForWriting(path, /*truncate=*/false);
  }
  StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccessFile(const std::string& path) override {
    return disk_.NewRandomAccessFile(path);
  }
  StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32) override {
    return disk_.ReadFile(path, max_bytes);
  }
  Status RenameFile(const std::string& from, const std::string& to) override { return disk_.RenameFile(from, to); }
  Status DeleteFile(const std::string& path) override { return disk_.DeleteFile(path); }
  Status DeleteDir(const std::string& path) override { return disk_.DeleteDir(path); }
  Status CreateDirs(const std::string& path) override { return disk_.CreateDirs(path); }
  Status SyncDir(const std::string& path) override { return disk_.SyncDir(path); }
  bool FileExists(const std::string& path) override { return disk_.FileExists(path); }
  StatusOr<uint64_t> FileSize(const std::string& path) override { return disk_.FileSize(path); }
  StatusOr<std::vector<std::string>> ListDir(const std::string& path) override { return disk_.ListDir(path); }
  bool IsSimulated() const override { return true; }
  void WakeOne(std::atomic<uint32_t>&) override {}  // whoever waits is asked after everything that happens

 private:
  FakeDisk disk_;
};

}  // namespace millrace
