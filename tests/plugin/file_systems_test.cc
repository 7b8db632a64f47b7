// SPDX-License-Identifier: Apache-2.0
// Files of file systems that a library adds, by the public functions.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "millrace/millrace.h"
#include "millrace/saved_model.h"
#include "millrace/train.h"
#include "tensorflow/c/env.h"

namespace {

using millrace::Graph;
using millrace::Scope;
using millrace::Tensor;

struct Status {
  ~Status() { TF_DeleteStatus(s); }
  operator TF_Status*() { return s; }  // NOLINT
  std::string message() const { return TF_Message(s); }
  TF_Code code() const { return TF_GetCode(s); }
  TF_Status* s = TF_NewStatus();
};

std::string Path(const char* plugin) { return std::string(PLUGINS) + "plugin_" + plugin + ".so"; }
bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class FileSystemsTest : public ::testing::Test {
 protected:
  FileSystemsTest() {
    TF_RegisterFilesystemPlugin(Path("memory_files").c_str(), status_);  // once; then it is there
    EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  }
  void Write(const std::string& path, const std::string& text) {
    TF_WritableFileHandle* file = nullptr;
    TF_NewWritableFile(path.c_str(), &file, status_);
    ASSERT_EQ(status_.code(), TF_OK) << status_.message();
    TF_AppendWritableFile(file, text.data(), text.size(), status_);
    EXPECT_EQ(status_.code(), TF_OK) << status_.message();
    TF_CloseWritableFile(file, status_);
    EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  }
  std::string ReadAt(const std::string& path, uint64_t offset, size_t size) {
    MR_FileReader* reader = MR_FileReaderOpen(path.c_str(), status_);
    if (reader == nullptr) return "";
    std::string text(size, '\0');
    text.resize(MR_FileReaderRead(reader, offset, text.data(), size, status_));
    MR_FileReaderDelete(reader);
    return text;
  }
  std::vector<std::string> List(const std::string& path) {
    std::vector<std::string> names;
    TF_StringStream* list = TF_GetChildren(path.c_str(), status_);
    for (const char* name = nullptr; TF_StringStreamNext(list, &name);) names.emplace_back(name);
    TF_StringStreamDone(list);
    return names;
  }

  Status status_;
};

TEST_F(FileSystemsTest, FilesAndFoldersOfALibrary) {
  MR_CreateDirs("mem://files/a/b", status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  MR_CreateDirs("mem://files/a/b", status_);
  EXPECT_EQ(status_.code(), TF_OK) << "it may be there";
  TF_CreateDir("mem://files/a", status_);
  EXPECT_EQ(status_.code(), TF_ALREADY_EXISTS);
  Write("mem://files/a/x", "hello");
  TF_WritableFileHandle* more = MR_NewAppendableFile("mem://files/a/x", status_);
  TF_AppendWritableFile(more, " world", 6, status_);
  TF_SyncWritableFile(more, status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  TF_CloseWritableFile(more, status_);
  EXPECT_EQ(ReadAt("mem://files/a/../a//x", 6, 100), "world");
  EXPECT_EQ(ReadAt("mem://files/a/x", 100, 1), "") << "behind the end";
  EXPECT_EQ(status_.code(), TF_OK);
  EXPECT_EQ(List("mem://files/a"), (std::vector<std::string>{"b", "x"}));
  TF_FileStatistics info{};
  TF_FileStat("mem://files/a/x", &info, status_);
  EXPECT_EQ(info.length, 11);
  EXPECT_FALSE(info.is_directory);
  MR_RenameFile("mem://files/a/x", "mem://files/a/b/y", status_);
  EXPECT_EQ(List("mem://files/a/b"), std::vector<std::string>{"y"});
  MR_CopyFile("mem://files/a/b/y", "mem://files/a/z", 0, status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  MR_CopyFile("mem://files/a/b/y", "mem://files/a/z", 0, status_);
  EXPECT_EQ(status_.code(), TF_ALREADY_EXISTS);
  MR_CopyFile("mem://files/a/z", "mem://files/a/./z", 1, status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  EXPECT_EQ(ReadAt("mem://files/a/z", 0, 99), "hello world") << "itself by another name";
  EXPECT_EQ(List("mem://files/a"), (std::vector<std::string>{"b", "z"}));
  MR_CopyFile("mem://files/a/none", "mem://files/a/z", 1, status_);
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
  TF_DeleteDir("mem://files/a/b", status_);
  EXPECT_EQ(status_.code(), TF_FAILED_PRECONDITION);
  int64_t files = -1, folders = -1;
  TF_DeleteRecursively("mem://files/a", &files, &folders, status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  EXPECT_EQ(files + folders, 0);
  TF_DeleteRecursively("mem://files/a", &files, &folders, status_);
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
  EXPECT_EQ(folders, 1);
}

TEST_F(FileSystemsTest, NamesThatAreNoneAreNotFollowed) {
  for (const char* folder : {"mem://strange/dots", "mem://strange/up"}) MR_CreateDirs(folder, status_);
  Write("mem://strange/file", "stays");
  Write("mem://strange/dots/x", "");
  EXPECT_EQ(List("mem://strange/dots"), std::vector<std::string>{"x"});
  TF_DeleteRecursively("mem://strange/dots", nullptr, nullptr, status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  List("mem://strange/up");
  EXPECT_EQ(status_.code(), TF_INTERNAL);
  TF_DeleteRecursively("mem://strange/up", nullptr, nullptr, status_);
  EXPECT_EQ(ReadAt("mem://strange/file", 0, 9), "stays");
}

TEST_F(FileSystemsTest, ErrorsAreTheFileSystems) {
  EXPECT_EQ(ReadAt("mem://nothing", 0, 1), "");
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
  EXPECT_TRUE(Contains(status_.message(), "in memory")) << status_.message();
  Write("mem://full", "");
  TF_WritableFileHandle* file = MR_NewAppendableFile("mem://full", status_);
  TF_AppendWritableFile(file, "no room", 7, status_);
  EXPECT_EQ(status_.code(), TF_RESOURCE_EXHAUSTED);
  EXPECT_EQ(status_.message(), "cannot write mem://full: memory is full");
  TF_AppendWritableFile(file, "more", 4, status_);
  EXPECT_EQ(status_.code(), TF_RESOURCE_EXHAUSTED) << "a file that failed stays failed";
  TF_CloseWritableFile(file, status_);
  EXPECT_EQ(status_.code(), TF_RESOURCE_EXHAUSTED);
  MR_RenameFile("mem://full", "/tmp/full", status_);
  EXPECT_EQ(status_.code(), TF_UNIMPLEMENTED) << "of two file systems";
  EXPECT_EQ(ReadAt("nobodys://x", 0, 1), "");
  EXPECT_EQ(status_.code(), TF_UNIMPLEMENTED);
  EXPECT_TRUE(Contains(status_.message(), "File system scheme 'nobodys' not implemented")) << status_.message();
}

TEST_F(FileSystemsTest, WhatFunctionsAreMissingIsMadeOfOthersOrSaid) {
  MR_CreateDirs("few://f/a/b", status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  Write("few://f/a/b/x", std::string(3 << 20, 'x'));
  MR_RenameFile("few://f/a/b/x", "few://f/y", status_);
  EXPECT_EQ(status_.code(), TF_OK) << status_.message();
  EXPECT_EQ(ReadAt("few://f/y", (3 << 20) - 2, 9), "xx");
  MR_RenameFile("few://f/y", "few://f/./y", status_);
  EXPECT_EQ(status_.code(), TF_OK) << "to itself: " << status_.message();
  EXPECT_EQ(ReadAt("few://f/y", 0, 1), "x");
  EXPECT_EQ(ReadAt("few://f/a/b/x", 0, 1), "");
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
  List("few://f");
  EXPECT_EQ(status_.code(), TF_UNIMPLEMENTED);
  EXPECT_EQ(status_.message(), "the file system of few://f has no function get_children");
}

TEST_F(FileSystemsTest, CheckpointsRecordsAndKernelsUseThem) {
  MR_CreateDirs("mem://train", status_);
  Graph graph;
  Scope scope(graph);
  const auto path = scope.Const(Tensor::Strings({}, {"mem://train/model"}));
  const auto names = scope.Const(Tensor::Strings({1}, {"v"}));
  const auto slices = scope.Const(Tensor::Strings({1}, {""}));
  const auto value = scope.Const(Tensor::Of<float>({3}, {1, 2, 3}));
  const auto save = scope.Op("SaveV2", {path, names, slices, value});
  const auto restore =
      scope.Op("RestoreV2", {path, names, slices}, {{"dtypes", std::vector<millrace::DType>{millrace::DType::kFloat}}});
  const auto write = scope.Op(
      "WriteFile",
      {scope.Const(Tensor::Strings({}, {"mem://train/text"})), scope.Const(Tensor::Strings({}, {"by a kernel"}))});
  const auto found = scope.Op("MatchingFiles", {scope.Const(Tensor::Strings({}, {"mem://train/model*"}))});
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  millrace::Session session(graph);
  ASSERT_TRUE(session.Run({}, {}, {save, write}).ok());
  const auto out = session.Run({}, {restore, found});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ((*out)[0].data<float>()[2], 3.0f);
  EXPECT_EQ((*out)[1].num_elements(), 2) << "data and index";
  EXPECT_EQ(ReadAt("mem://train/text", 3, 8), "a kernel");

  MR_RecordWriter* const writer = MR_RecordWriterOpen("mem://train/records", "GZIP", nullptr, status_);
  ASSERT_NE(writer, nullptr) << status_.message();
  MR_RecordWriterWrite(writer, "abc", 3, status_);
  MR_RecordWriterClose(writer, status_);
  MR_RecordReader* const reader = MR_RecordReaderOpen("mem://train/records", "GZIP", status_);
  const void* record = nullptr;
  size_t size = 0;
  EXPECT_EQ(MR_RecordReaderRead(reader, &record, &size, status_), 1) << status_.message();
  EXPECT_EQ(std::string(static_cast<const char*>(record), size), "abc");
  MR_RecordReaderDelete(reader);
}

TEST_F(FileSystemsTest, TheCppClientWritesModelsThere) {
  Graph graph;
  millrace::Model model{Scope(graph)};
  Scope& scope = model.scope();
  const auto v = model.AddVariable("v", scope.Const({1.0f, 2.0f}));
  const auto y = scope.Op("Mul", {v.read, 2.0f});
  millrace::Session session(graph);
  ASSERT_TRUE(session.RunTargets({model.Initializer()}).ok());
  const std::map<std::string, millrace::Signature> signatures = {{"serve", {.outputs = {{"y", y}}}}};
  const auto save = [&] { return millrace::SaveModel(session, graph, "mem://models/[first]", signatures); };
  const auto saved = save();
  ASSERT_TRUE(saved.ok()) << saved.message();
  EXPECT_EQ(save().code(), TF_ALREADY_EXISTS);
  EXPECT_EQ(List("mem://models/[first]"), (std::vector<std::string>{"saved_model.pb", "variables"}));
}

TEST_F(FileSystemsTest, BadTablesLeaveNothingBehind) {
  TF_RegisterFilesystemPlugin(Path("files_of_another_abi").c_str(), status_);
  EXPECT_EQ(status_.code(), TF_FAILED_PRECONDITION);
  EXPECT_TRUE(Contains(status_.message(), "ABI 7, want 0")) << status_.message();
  ReadAt("first://x", 0, 1);
  EXPECT_TRUE(Contains(status_.message(), "scheme 'first' not implemented")) << status_.message();
  TF_RegisterFilesystemPlugin("/no/such/library.so", status_);
  EXPECT_EQ(status_.code(), TF_NOT_FOUND);
}

TEST_F(FileSystemsTest, WhatALibraryCannotMeanIsRefusedAtItsStart) {
  const std::pair<const char*, const char*> lies[] = {
      {"no free", "names no functions that allocate and free"},
      {"none", "tells of 0 schemes of files, want 1 to 64"},
      {"many", "tells of 18446744073709551615 schemes of files, want 1 to 64"},
      {"no table", "tells of 1 schemes of files"},
      {"no scheme", "names no scheme"},
      {"no functions", "has no functions for lies://"},
      {"no start", "lacks the function init"},
      {"no read", "lacks the function read"}};
  for (const auto& [lie, message] : lies) {
    setenv("LYING_FILES", lie, 1);
    const std::string copy = ::testing::TempDir() + "lying_files_" + lie + ".so";  // a library starts once
    std::filesystem::copy_file(Path("lying_files"), copy, std::filesystem::copy_options::overwrite_existing);
    TF_RegisterFilesystemPlugin(copy.c_str(), status_);
    std::filesystem::remove(copy);
    EXPECT_NE(status_.code(), TF_OK) << lie;
    EXPECT_TRUE(Contains(status_.message(), message)) << lie << ": " << status_.message();
  }
  unsetenv("LYING_FILES");
}

TEST_F(FileSystemsTest, WhatALibraryCannotMeanIsRefusedInItsCalls) {
  TF_RegisterFilesystemPlugin(Path("lying_files").c_str(), status_);
  ASSERT_EQ(status_.code(), TF_OK) << status_.message();
  for (const char* read : {"-1", "0", "101", "-2147483648"}) {
    EXPECT_EQ(ReadAt(std::string("lies://host/bytes_") + read, 0, 50), "");
    EXPECT_EQ(status_.code(), TF_INTERNAL) << read;
    EXPECT_TRUE(Contains(status_.message(), std::string("says that it read ") + read + " of 50 bytes"))
        << status_.message();
  }
  EXPECT_EQ(ReadAt("lies://host/bytes_10", 0, 50).size(), 50u) << "piece by piece";
  EXPECT_EQ(ReadAt("lies://host/size", 0, 1), "");
  EXPECT_TRUE(Contains(status_.message(), "has -1 bytes")) << status_.message();
  for (const char* count : {"-1", "5"}) {
    EXPECT_TRUE(List(std::string("lies://host/list_") + count).empty());
    EXPECT_TRUE(Contains(status_.message(), std::string("lists ") + count + " names")) << status_.message();
  }
  EXPECT_EQ(List("lies://host/gaps"), std::vector<std::string>{"x"});
  EXPECT_EQ(ReadAt("lies://host/nameless", 0, 1), "");
  EXPECT_TRUE(Contains(status_.message(), "has no name for")) << status_.message();
  MR_CreateDirs("lies://host/a/b", status_);
  EXPECT_EQ(status_.code(), TF_OK) << "the host is none of the folders: " << status_.message();
  MR_CreateDirs("lies://host/never/b", status_);
  EXPECT_EQ(status_.code(), TF_PERMISSION_DENIED);
  MR_CreateDirs("lies://host", status_);
  EXPECT_EQ(status_.code(), TF_INVALID_ARGUMENT);
}

}  // namespace
