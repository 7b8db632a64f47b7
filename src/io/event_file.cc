// SPDX-License-Identifier: Apache-2.0
#include "io/event_file.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace millrace {
namespace {

constexpr int64_t kFlushNanos = 1'000'000'000;
constexpr char kFileVersion[] = "brain.Event:2";

std::string HostName() {
  char name[256] = "localhost";
  if (::gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  name[sizeof(name) - 1] = '\0';
  return name;
}

double Seconds(absl::Time t) { return absl::ToDoubleSeconds(t - absl::UnixEpoch()); }

}  // namespace

StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Open(
    Env& env, const std::string& folder, const std::string& suffix) {
  static std::atomic<int64_t> count{0};
  if (!folder.empty()) MR_RETURN_IF_ERROR(env.CreateDirs(folder));
  const std::string path =
      JoinPath(folder, absl::StrFormat("events.out.tfevents.%010d.%s.%d.%d%s", absl::ToUnixSeconds(env.Now()),
                                       HostName(), static_cast<int64_t>(::getpid()), count++, suffix));
  if (env.FileExists(path)) return AlreadyExists("event file ", path);
  MR_ASSIGN_OR_RETURN(std::unique_ptr<RecordWriter> file, RecordWriter::Open(env, path));
  std::unique_ptr<EventFileWriter> writer(new EventFileWriter(env, path, std::move(file)));
  wire::Event first;
  first.kind = wire::Event::Kind::kFileVersion;
  first.file_version = kFileVersion;
  MR_RETURN_IF_ERROR(writer->Write(std::move(first)));
  MR_RETURN_IF_ERROR(writer->Flush());
  return writer;
}

Status EventFileWriter::Write(wire::Event event) {
  if (event.wall_time == 0) event.wall_time = Seconds(env_.Now());
  if (!std::isfinite(event.wall_time)) return InvalidArgument("an event needs a finite time");
  MR_RETURN_IF_ERROR(file_->Write(wire::Encode(event)));
  return env_.MonotonicNanos() - flushed_at_ >= kFlushNanos ? Flush() : absl::OkStatus();
}

Status EventFileWriter::WriteSummary(int64_t step, wire::Summary summary) {
  wire::Event event;
  event.step = step;
  event.kind = wire::Event::Kind::kSummary;
  event.summary.Ensure() = std::move(summary);
  return Write(std::move(event));
}

Status EventFileWriter::WriteGraph(std::string graph_def) {
  wire::Event event;
  event.kind = wire::Event::Kind::kGraphDef;
  event.graph_def = std::move(graph_def);
  return Write(std::move(event));
}

Status EventFileWriter::Flush() {
  flushed_at_ = env_.MonotonicNanos();
  return file_->Flush();
}

Status EventFileWriter::Close() {
  const Status flushed = file_->Flush();
  const Status closed = file_->Close();
  return flushed.ok() ? closed : flushed;
}

StatusOr<std::unique_ptr<EventFileReader>> EventFileReader::Open(Env& env, const std::string& path) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<RecordReader> file, RecordReader::Open(env, path));
  return std::unique_ptr<EventFileReader>(new EventFileReader(std::move(file)));
}

StatusOr<bool> EventFileReader::Read(wire::Event* event) {
  std::string payload;
  const StatusOr<bool> more = file_->Read(&payload);
  if (absl::IsDataLoss(more.status()) && absl::StrContains(more.status().message(), "truncated")) return false;
  MR_RETURN_IF_ERROR(more.status());
  if (!*more) return false;
  if (const Status s = wire::Decode(payload, event); !s.ok()) return DataLoss("broken event: ", s.message());
  return true;
}

}  // namespace millrace
