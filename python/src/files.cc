// SPDX-License-Identifier: Apache-2.0
// Checkpoints, event files, records, and files of any file system.
#include "core.h"
#include "io/crc32c.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/env.h"

namespace millrace::python {

namespace {

// The reader of TensorFlow's C API, which knows types and shapes of tensors that it has not read.
struct ReaderFunctions {
#define FUNCTION(name) decltype(&TF_##name) name = reinterpret_cast<decltype(&TF_##name)>(LibraryFunction("TF_" #name))
  FUNCTION(NewCheckpointReader);
  FUNCTION(DeleteCheckpointReader);
  FUNCTION(CheckpointReaderSize);
  FUNCTION(CheckpointReaderGetVariable);
  FUNCTION(CheckpointReaderHasTensor);
  FUNCTION(CheckpointReaderGetVariableDataType);
  FUNCTION(CheckpointReaderGetVariableNumDims);
  FUNCTION(CheckpointReaderGetVariableShape);
  FUNCTION(CheckpointReaderGetTensor);
#undef FUNCTION
};
const ReaderFunctions& Reader() {
  static const ReaderFunctions functions;
  return functions;
}

class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& prefix) {
    CallStatus status;
    reader_ = Reader().NewCheckpointReader(prefix.c_str(), status);
    status.RaiseIfError();
  }
  ~CheckpointReader() { Reader().DeleteCheckpointReader(reader_); }
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (int i = 0; i < Reader().CheckpointReaderSize(reader_); ++i) {
      names.emplace_back(Reader().CheckpointReaderGetVariable(reader_, i));
    }
    return names;
  }
  // (number of the data type, shape), from the checkpoint's table.
  nb::tuple Describe(const std::string& name) const {
    if (!Reader().CheckpointReaderHasTensor(reader_, name.c_str())) throw nb::key_error(name.c_str());
    std::vector<int64_t> shape(static_cast<size_t>(Reader().CheckpointReaderGetVariableNumDims(reader_, name.c_str())));
    CallStatus status;
    Reader().CheckpointReaderGetVariableShape(
        reader_, name.c_str(), shape.data(), static_cast<int>(shape.size()), status);
    status.RaiseIfError();
    return nb::make_tuple(
        static_cast<int>(Reader().CheckpointReaderGetVariableDataType(reader_, name.c_str())), nb::cast(shape));
  }
  nb::object Read(const std::string& name) const {
    CallStatus status;
    TF_Tensor* tensor = Reader().CheckpointReaderGetTensor(reader_, name.c_str(), status);
    status.RaiseIfError();
    return FromTensor(tensor);
  }

 private:
  TF_CheckpointReader* reader_ = nullptr;
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

class RecordWriter {
 public:
  RecordWriter(const std::string& path, const std::string& compression, int level, int window_bits, int mem_level,
               int strategy) {
    const MR_DeflateOptions options = {level, window_bits, mem_level, strategy};
    CallStatus status;
    writer_ = Api().RecordWriterOpen(path.c_str(), compression.c_str(), &options, status);
    if (status.code() == TF_INVALID_ARGUMENT) status.RaiseBuildError();
    status.RaiseIfError();
  }
  ~RecordWriter() {
    CallStatus status;
    Api().RecordWriterClose(writer_, status);
  }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  void Write(nb::bytes record) {
    CallStatus status;
    Api().RecordWriterWrite(Writer(), record.c_str(), record.size(), status);
    status.RaiseIfError();
  }
  void Flush() {
    CallStatus status;
    Api().RecordWriterFlush(Writer(), status);
    status.RaiseIfError();
  }
  void Close() {
    CallStatus status;
    Api().RecordWriterClose(std::exchange(writer_, nullptr), status);
    status.RaiseIfError();
  }

 private:
  MR_RecordWriter* Writer() const {
    if (!writer_) throw std::runtime_error("The file of records is closed.");
    return writer_;
  }
  MR_RecordWriter* writer_ = nullptr;
};

class RecordReader {
 public:
  RecordReader(const std::string& path, const std::string& compression) {
    CallStatus status;
    reader_ = Api().RecordReaderOpen(path.c_str(), compression.c_str(), status);
    status.RaiseIfError();
  }
  ~RecordReader() { Api().RecordReaderDelete(reader_); }
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;
  // None at the end of the file.
  nb::object Read() {
    const void* record = nullptr;
    size_t size = 0;
    CallStatus status;
    const bool there = Api().RecordReaderRead(reader_, &record, &size, status) != 0;
    status.RaiseIfError();
    return there ? nb::object(nb::bytes(record, size)) : nb::none();
  }

 private:
  MR_RecordReader* reader_ = nullptr;
};

// Files and folders of any file system.
struct FileFunctions {
#define FUNCTION(name) decltype(&TF_##name) name = reinterpret_cast<decltype(&TF_##name)>(LibraryFunction("TF_" #name))
  FUNCTION(CreateDir);
  FUNCTION(DeleteFile);
  FUNCTION(DeleteRecursively);
  FUNCTION(FileStat);
  FUNCTION(GetChildren);
  FUNCTION(StringStreamNext);
  FUNCTION(StringStreamDone);
  FUNCTION(NewWritableFile);
  FUNCTION(AppendWritableFile);
  FUNCTION(FlushWritableFile);
  FUNCTION(CloseWritableFile);
#undef FUNCTION
};
const FileFunctions& Files() {
  static const FileFunctions functions;
  return functions;
}

std::vector<std::string> Strings(TF_StringStream* list) {
  std::vector<std::string> strings;
  for (const char* text = nullptr; Files().StringStreamNext(list, &text);) strings.emplace_back(text);
  Files().StringStreamDone(list);
  return strings;
}

// As C has it. A path that ended at its first NUL would be another.
const char* Path(const std::string& path) {
  if (path.find('\0') == std::string::npos) return path.c_str();
  CallStatus status;
  Api().SetStatus(status, TF_INVALID_ARGUMENT, ("path contains a NUL character: " + std::string(path.c_str())).c_str());
  status.RaiseIfError();
  return nullptr;
}

// call(status), which may take long, without Python's lock.
template <typename Call>
void Do(Call&& call) {
  CallStatus status;
  {
    nb::gil_scoped_release release;
    call(status);
  }
  status.RaiseIfError();
}

class FileReader {
 public:
  explicit FileReader(const std::string& path) {
    Do([&, name = Path(path)](CallStatus& status) { reader_ = Api().FileReaderOpen(name, status); });
  }
  ~FileReader() {
    nb::gil_scoped_release release;
    Api().FileReaderDelete(reader_);
  }
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  uint64_t Size() const { return Api().FileReaderSize(reader_); }
  // Fewer bytes at the end of the file.
  nb::bytes Read(uint64_t offset, size_t size) const {
    std::string data(static_cast<size_t>(std::min<uint64_t>(size, Size() - std::min(offset, Size()))), '\0');
    Do([&](CallStatus& status) {
      data.resize(Api().FileReaderRead(reader_, offset, data.data(), data.size(), status));
    });
    return nb::bytes(data.data(), data.size());
  }

 private:
  MR_FileReader* reader_ = nullptr;
};

class FileWriter {
 public:
  FileWriter(const std::string& path, bool appends) {
    Do([&, name = Path(path)](CallStatus& status) {
      if (appends) {
        file_ = Api().NewAppendableFile(name, status);
      } else {
        Files().NewWritableFile(name, &file_, status);
      }
    });
  }
  ~FileWriter() {
    CallStatus status;
    nb::gil_scoped_release release;
    if (file_) Files().CloseWritableFile(file_, status);
  }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  void Write(nb::bytes data) {
    const char* const text = data.c_str();
    const size_t size = data.size();
    Do([&](CallStatus& status) { Files().AppendWritableFile(file_, text, size, status); });
  }
  void Flush() {
    Do([&](CallStatus& status) { Files().FlushWritableFile(file_, status); });
  }
  void Close() {
    Do([&](CallStatus& status) {
      if (file_) Files().CloseWritableFile(std::exchange(file_, nullptr), status);
    });
  }

 private:
  TF_WritableFileHandle* file_ = nullptr;
};

// Paths with a NUL at the end of each.
std::vector<std::string> Paths(const CallBuffer& buffer) {
  const std::string_view text = buffer.view();
  std::vector<std::string> paths;
  for (size_t at = 0, end = 0; (end = text.find('\0', at)) != std::string_view::npos; at = end + 1) {
    paths.emplace_back(text.substr(at, end - at));
  }
  return paths;
}

// Names of files need not be UTF-8: as os.fsdecode has them.
nb::list Decoded(const std::vector<std::string>& names) {
  nb::list decoded;
  for (const std::string& name : names) {
    decoded.append(nb::steal(PyUnicode_DecodeFSDefaultAndSize(name.data(), static_cast<Py_ssize_t>(name.size()))));
  }
  return decoded;
}

void DefineFilesOfAnySystem(nb::module_& m) {
  m.def("load_file_system_library", [](const std::string& path) {
    Do([name = Path(path)](CallStatus& status) { Api().RegisterFilesystemPlugin(name, status); });
  });
  m.def(
      "file_stat",
      [](const std::string& path) {
        TF_FileStatistics info{};
        Do([&, name = Path(path)](CallStatus& status) { Files().FileStat(name, &info, status); });
        return nb::make_tuple(info.length, info.mtime_nsec, info.is_directory);
      },
      "(bytes, nanoseconds since 1970 of its last change, whether it is a folder)");
  m.def("list_folder", [](const std::string& path) {
    TF_StringStream* names = nullptr;
    Do([&, name = Path(path)](CallStatus& status) { names = Files().GetChildren(name, status); });
    return Decoded(Strings(names));
  });
  m.def("match_files", [](const std::string& pattern) {
    CallBuffer paths;
    Do([&, name = Path(pattern)](CallStatus& status) { Api().MatchFiles(name, paths, status); });
    return Decoded(Paths(paths));
  });
  m.def("create_folder", [](const std::string& path) {
    Do([name = Path(path)](CallStatus& status) { Files().CreateDir(name, status); });
  });
  m.def("create_folders", [](const std::string& path) {
    Do([name = Path(path)](CallStatus& status) { Api().CreateDirs(name, status); });
  });
  m.def("delete_file", [](const std::string& path) {
    Do([name = Path(path)](CallStatus& status) { Files().DeleteFile(name, status); });
  });
  m.def("delete_recursively", [](const std::string& path) {
    Do([name = Path(path)](CallStatus& status) { Files().DeleteRecursively(name, nullptr, nullptr, status); });
  });
  m.def("rename_file", [](const std::string& from, const std::string& to) {
    Do([source = Path(from), target = Path(to)](CallStatus& status) { Api().RenameFile(source, target, status); });
  });
  m.def("copy_file", [](const std::string& from, const std::string& to, bool overwrite) {
    Do([source = Path(from), target = Path(to), overwrite](CallStatus& status) {
      Api().CopyFile(source, target, overwrite, status);
    });
  });
  nb::class_<FileReader>(m, "FileReader")
      .def(nb::init<const std::string&>())
      .def("read", &FileReader::Read)
      .def("size", &FileReader::Size);
  nb::class_<FileWriter>(m, "FileWriter")
      .def(nb::init<const std::string&, bool>())
      .def("write", &FileWriter::Write)
      .def("flush", &FileWriter::Flush)
      .def("close", &FileWriter::Close);
}

}  // namespace

void DefineFiles(nb::module_& m) {
  DefineFilesOfAnySystem(m);
  m.def(
      "masked_crc32c", [](nb::bytes data) { return MaskCrc(Crc32c({data.c_str(), data.size()})); },
      "The checksum of record files.");
  m.def("note_checkpoint_score", [](const std::string& folder, const std::string& state_file, const std::string& prefix,
                                    double score, int keep, bool best_is_least) {
    CallStatus status;
    CallBuffer forgotten;
    Api().NoteCheckpointScore(
        folder.c_str(), state_file.c_str(), prefix.c_str(), score, keep, best_is_least, forgotten, status);
    status.RaiseBuildError();
    return Paths(forgotten);
  });
  m.def(
      "best_checkpoints", [](const std::string& folder, const std::string& state_file, int count, bool best_is_least) {
        CallStatus status;
        CallBuffer prefixes;
        Api().BestCheckpoints(folder.c_str(), state_file.c_str(), count, best_is_least, prefixes, status);
        status.RaiseBuildError();
        return Paths(prefixes);
      });
  nb::class_<RecordWriter>(m, "RecordWriter")
      .def(nb::init<const std::string&, const std::string&, int, int, int, int>())
      .def("write", &RecordWriter::Write)
      .def("flush", &RecordWriter::Flush)
      .def("close", &RecordWriter::Close);
  nb::class_<RecordReader>(m, "RecordReader")
      .def(nb::init<const std::string&, const std::string&>())
      .def("read", &RecordReader::Read);
  nb::class_<CheckpointReader>(m, "CheckpointReader")
      .def(nb::init<const std::string&>())
      .def("names", &CheckpointReader::Names)
      .def("describe", &CheckpointReader::Describe)
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
