// SPDX-License-Identifier: Apache-2.0
// Event files, which TensorBoard shows. Not thread-safe.
#pragma once

#include <memory>
#include <string>

#include "io/record.h"
#include "wire/event.h"

namespace millrace {

// A file of its own per writer. What a crash leaves is a file whose last record may be cut, as readers expect.
class EventFileWriter {
 public:
  // Makes the folder, the file and its first record, which says the version.
  static StatusOr<std::unique_ptr<EventFileWriter>> Open(
      Env& env, const std::string& folder, const std::string& suffix = "");
  // Sets wall_time to now where it is 0; InvalidArgument when it is not finite. Goes to the system at the latest with
  // the first event that comes a second after the last flush.
  Status Write(wire::Event event);
  Status WriteSummary(int64_t step, wire::Summary summary);
  Status WriteGraph(std::string graph_def);  // encoded
  Status Flush();
  Status Close();
  const std::string& path() const { return path_; }

 private:
  EventFileWriter(Env& env, std::string path, std::unique_ptr<RecordWriter> file)
      : env_(env), path_(std::move(path)), file_(std::move(file)) {}
  Env& env_;
  const std::string path_;
  const std::unique_ptr<RecordWriter> file_;
  int64_t flushed_at_ = 0;
};

class EventFileReader {
 public:
  static StatusOr<std::unique_ptr<EventFileReader>> Open(Env& env, const std::string& path);
  // False at the end; a cut last record is the end too. DataLoss: a broken record.
  StatusOr<bool> Read(wire::Event* event);

 private:
  explicit EventFileReader(std::unique_ptr<RecordReader> file) : file_(std::move(file)) {}
  const std::unique_ptr<RecordReader> file_;
};

}  // namespace millrace
