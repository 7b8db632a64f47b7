// SPDX-License-Identifier: Apache-2.0
// Checkpoints and event files.
#include "core.h"
#include "io/crc32c.h"

namespace millrace::python {

namespace {

class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& prefix) {
    CallStatus status;
    reader_ = Api().CheckpointReaderOpen(prefix.c_str(), status);
    status.RaiseIfError();
  }
  ~CheckpointReader() { Api().CheckpointReaderDelete(reader_); }
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (int i = 0; i < Api().CheckpointReaderNumTensors(reader_); ++i) {
      names.emplace_back(Api().CheckpointReaderName(reader_, i));
    }
    return names;
  }
  nb::object Read(const std::string& name) const {
    CallStatus status;
    TF_Tensor* tensor = Api().CheckpointReaderRead(reader_, name.c_str(), status);
    status.RaiseIfError();
    return FromTensor(tensor);
  }

 private:
  MR_CheckpointReader* reader_ = nullptr;
};

class EventWriter {
 public:
  EventWriter(const std::string& folder, const std::string& suffix) {
    CallStatus status;
    writer_ = Api().EventWriterOpen(folder.c_str(), suffix.c_str(), status);
    status.RaiseIfError();
  }
  ~EventWriter() {
    if (!writer_) return;
    CallStatus status;
    Api().EventWriterClose(writer_, status);
  }
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  void AddSummary(nb::bytes summary, int64_t step) {
    CallStatus status;
    Api().EventWriterAddSummary(Writer(), summary.data(), summary.size(), step, status);
    status.RaiseIfError();
  }
  void AddGraph(nb::handle graph) {
    CallStatus status;
    Api().EventWriterAddGraph(Writer(), GraphOf(graph).get(), status);
    status.RaiseIfError();
  }
  void AddEvent(nb::bytes event) {
    CallStatus status;
    Api().EventWriterAddEvent(Writer(), event.data(), event.size(), status);
    status.RaiseIfError();
  }
  void Flush() {
    CallStatus status;
    Api().EventWriterFlush(Writer(), status);
    status.RaiseIfError();
  }
  std::string Path() const { return Api().EventWriterPath(Writer()); }
  void Close() {
    CallStatus status;
    if (writer_) Api().EventWriterClose(std::exchange(writer_, nullptr), status);
    status.RaiseIfError();
  }

 private:
  MR_EventWriter* Writer() const {
    if (!writer_) throw std::runtime_error("The event writer is closed.");
    return writer_;
  }
  MR_EventWriter* writer_ = nullptr;
};

}  // namespace

void DefineFiles(nb::module_& m) {
  m.def(
      "masked_crc32c", [](nb::bytes data) { return MaskCrc(Crc32c({data.c_str(), data.size()})); },
      "The checksum of record files.");
  nb::class_<CheckpointReader>(m, "CheckpointReader")
      .def(nb::init<const std::string&>())
      .def("names", &CheckpointReader::Names)
      .def("read", &CheckpointReader::Read);
  nb::class_<EventWriter>(m, "EventWriter")
      .def(nb::init<const std::string&, const std::string&>())
      .def("add_summary", &EventWriter::AddSummary)
      .def("add_graph", &EventWriter::AddGraph)
      .def("add_event", &EventWriter::AddEvent)
      .def("flush", &EventWriter::Flush)
      .def("path", &EventWriter::Path)
      .def("close", &EventWriter::Close);
}

}  // namespace millrace::python
