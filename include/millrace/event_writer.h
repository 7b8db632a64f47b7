// SPDX-License-Identifier: Apache-2.0
// Event files of the C++ client.
#pragma once

#include "millrace/c_api_io.h"
#include "millrace/session.h"
#include "millrace/wire.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// A new event file for TensorBoard in `folder`.
class EventWriter {
 public:
  // TF_NOT_FOUND or another code of the file system where it cannot be made; without exceptions the first call that
  // writes tells.
  explicit EventWriter(const std::string& folder) {
    internal::CallStatus status;
    writer_ = {MR_EventWriterOpen(folder.c_str(), nullptr, status), [](MR_EventWriter* w) {
                 internal::CallStatus ignored;
                 if (w) MR_EventWriterClose(w, ignored);
               }};
    error_ = status.Get();
#if MILLRACE_EXCEPTIONS
    if (!error_.ok()) throw Error(error_);
#endif
  }
  // The graph, for TensorBoard's tab of graphs.
  Done AddGraph(const Graph& graph) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddGraph(writer_.get(), graph.get(), status);
    return internal::Finish(status.Get());
  }
  // `summary` is what a summary op returned.
  Done AddSummary(const std::string& summary, int64_t step) {
    if (!writer_) return internal::Finish(error_);
    internal::CallStatus status;
    MR_EventWriterAddSummary(writer_.get(), summary.data(), summary.size(), step, status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return internal::Finish(status.Get());
  }
  // A number that the program knows, by the name that TensorBoard shows.
  Done AddScalar(const std::string& tag, float value, int64_t step) {
    return internal::Finish(TryAddScalar(tag, value, step));
  }
  // AddScalar with a status.
  Status TryAddScalar(const std::string& tag, float value, int64_t step) const {
    const internal::Encoder one = internal::Encoder().Text(1, tag).Fixed32(2, value);
    return TryAddEvent(internal::Encoder().Message(5, internal::Encoder().Message(1, one)), step);
  }
  // What a step did: TensorBoard's graph shows its times and memory under `tag`, which no other step has.
  Done AddRunMetadata(const RunMetadata& metadata, const std::string& tag, int64_t step) {
    const internal::Encoder tagged = internal::Encoder().Text(1, tag).Message(2, metadata.encoded);
    return internal::Finish(TryAddEvent(internal::Encoder().Message(8, tagged), step));
  }
  // Of a fetched summary; with a status where others throw.
  Status TryAddSummary(const Tensor& summary, int64_t step) const {
    if (!writer_) return error_;
    if (!summary || summary.dtype() != DType::kString || summary.num_elements() != 1) {
      return Status(TF_INVALID_ARGUMENT, "a summary is one string");
    }
    const auto* text = static_cast<const TF_TString*>(Api().TensorData(summary.get()));
    internal::CallStatus status;
    MR_EventWriterAddSummary(writer_.get(), Api().StringGetDataPointer(text), Api().StringGetSize(text), step, status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return status.Get();
  }

 private:
  // `what`: the event's only other field.
  Status TryAddEvent(const internal::Encoder& what, int64_t step) const {
    if (!writer_) return error_;
    const std::string event = internal::Encoder().Int(2, step).bytes() + what.bytes();
    internal::CallStatus status;
    MR_EventWriterAddEvent(writer_.get(), event.data(), event.size(), status);
    if (status.ok()) MR_EventWriterFlush(writer_.get(), status);
    return status.Get();
  }

  std::shared_ptr<MR_EventWriter> writer_;
  Status error_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
