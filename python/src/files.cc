// SPDX-License-Identifier: Apache-2.0
// Checkpoints and event files.
#include "core.h"

namespace millrace::python {

TF_Session* SessionOf(nb::handle session);

namespace {

class Saver {
 public:
  Saver(nb::object graph, nb::list variables, const std::vector<std::string>& keys, int max_to_keep)
      : graph_(std::move(graph)) {
    std::vector<TF_Output> outputs;
    std::vector<const char*> names;
    for (nb::handle v : variables) outputs.push_back(OutputOf(v));
    for (const std::string& k : keys) names.push_back(k.c_str());
    CallStatus status;
    saver_ = Api().SaverCreate(GraphOf(graph_).get(), outputs.data(), names.empty() ? nullptr : names.data(),
                               static_cast<int>(outputs.size()), max_to_keep, status);
    GraphOf(graph_).Sync(graph_);
    status.RaiseBuildError();
  }
  Saver(nb::object graph, nb::bytes def, int max_to_keep) : graph_(std::move(graph)) {
    CallStatus status;
    saver_ = Api().SaverFromDef(GraphOf(graph_).get(), def.data(), def.size(), max_to_keep, status);
    status.RaiseBuildError();
  }
  ~Saver() { Api().SaverDelete(saver_); }
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  void KeepEvery(double hours) {
    CallStatus status;
    Api().SaverKeepEvery(saver_, hours, status);
    status.RaiseIfError();
  }
  void SetCheckpoints(const std::vector<std::string>& prefixes, const std::vector<double>& written) {
    std::vector<const char*> names;
    for (const std::string& p : prefixes) names.push_back(p.c_str());
    if (written.size() != names.size()) throw nb::value_error("as many times as checkpoints are needed");
    CallStatus status;
    Api().SaverSetCheckpoints(saver_, names.data(), written.data(), static_cast<int>(names.size()), status);
    status.RaiseIfError();
  }
  nb::bytes Save(nb::handle session, const std::string& prefix, int64_t step, bool meta_graph) {
    TF_Session* s = SessionOf(session);
    CallBuffer path;
    CallStatus status;
    {
      const GilRelease release;
      Api().SaverSave(saver_, s, prefix.c_str(), step, meta_graph, path, status);
    }
    status.RaiseIfError();
    return path.bytes();
  }
  void Restore(nb::handle session, const std::string& prefix) {
    TF_Session* s = SessionOf(session);
    CallStatus status;
    {
      const GilRelease release;
      Api().SaverRestore(saver_, s, prefix.c_str(), status);
    }
    status.RaiseIfError();
  }
  nb::bytes Def() {
    CallBuffer def;
    CallStatus status;
    Api().SaverToDef(saver_, def, status);
    status.RaiseIfError();
    return def.bytes();
  }

 private:
  nb::object graph_;
  MR_Saver* saver_ = nullptr;
};

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
  nb::class_<Saver>(m, "Saver")
      .def(nb::init<nb::object, nb::list, const std::vector<std::string>&, int>())
      .def(nb::init<nb::object, nb::bytes, int>())
      .def("keep_every", &Saver::KeepEvery)
      .def("set_checkpoints", &Saver::SetCheckpoints)
      .def("save", &Saver::Save)
      .def("restore", &Saver::Restore)
      .def("to_def", &Saver::Def);
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
  m.def("latest_checkpoint", [](const std::string& folder) -> nb::object {
    CallBuffer prefix;
    CallStatus status;
    Api().LatestCheckpoint(folder.c_str(), prefix, status);
    if (status.code() == TF_NOT_FOUND) return nb::none();
    status.RaiseIfError();
    return prefix.bytes();
  });
}

}  // namespace millrace::python
