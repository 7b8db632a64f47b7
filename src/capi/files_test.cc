// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "millrace/c_api.h"
#include "tensorflow/c/logging.h"

namespace {

class Files : public testing::Test {
 protected:
  // Tests run side by side.
  Files()
      : folder_(testing::TempDir() + "/capi_files_" + testing::UnitTest::GetInstance()->current_test_info()->name()),
        status_(TF_NewStatus()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { TF_DeleteStatus(status_); }
  std::string At(const char* name) const { return folder_ + "/" + name; }
  TF_Code Code() const { return TF_GetCode(status_); }

  void Write(const std::string& path, const char* compression) {
    MR_RecordWriter* const writer = MR_RecordWriterOpen(path.c_str(), compression, nullptr, status_);
    ASSERT_NE(writer, nullptr) << TF_Message(status_);
    MR_RecordWriterWrite(writer, "abc", 3, status_);
    MR_RecordWriterWrite(writer, nullptr, 0, status_);
    MR_RecordWriterClose(writer, status_);
    ASSERT_EQ(Code(), TF_OK) << TF_Message(status_);
  }
  // "abc", then "" and the end; as far as it goes, with the status of the last call.
  std::string Read(const std::string& path, const char* compression) {
    MR_RecordReader* const reader = MR_RecordReaderOpen(path.c_str(), compression, status_);
    std::string all;
    const void* record = nullptr;
    size_t size = 0;
    while (reader && MR_RecordReaderRead(reader, &record, &size, status_)) {
      all.append(static_cast<const char*>(record), size).push_back('.');
    }
    MR_RecordReaderDelete(reader);
    return all;
  }

  const std::string folder_;
  TF_Status* const status_;
};

TEST_F(Files, RecordsComeBack) {
  for (const char* const compression : {"", "ZLIB", "GZIP"}) {
    Write(At("r"), compression);
    EXPECT_EQ(Read(At("r"), compression), "abc..");
    EXPECT_EQ(Code(), TF_OK);
  }
  EXPECT_EQ(Read(At("r"), ""), "") << "which is compressed";
  EXPECT_EQ(Code(), TF_DATA_LOSS);
}

TEST_F(Files, WhatIsNoFileOfRecords) {
  EXPECT_EQ(Read(At("nothing"), ""), "");
  EXPECT_EQ(Code(), TF_NOT_FOUND);
  EXPECT_EQ(MR_RecordWriterOpen(At("r").c_str(), "LZ4", nullptr, status_), nullptr);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
  const MR_DeflateOptions unknown = {99, 15, 8, 0};
  EXPECT_EQ(MR_RecordWriterOpen(At("r").c_str(), "ZLIB", &unknown, status_), nullptr);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
  Write(At("r"), "");
  std::fstream(At("r"), std::ios::in | std::ios::out | std::ios::binary).seekp(13).put('x');
  EXPECT_EQ(Read(At("r"), ""), "");
  EXPECT_EQ(Code(), TF_DATA_LOSS);
}

TEST_F(Files, ScoresAndWholeFiles) {
  for (const char* const name : {"m-1", "m-2", "m-3"}) {
    TF_Buffer* const forgotten = TF_NewBuffer();
    MR_NoteCheckpointScore(folder_.c_str(), "checkpoint", At(name).c_str(), name[2] - '2', 2, 0, forgotten, status_);
    ASSERT_EQ(Code(), TF_OK) << TF_Message(status_);
    EXPECT_EQ(std::string(static_cast<const char*>(forgotten->data), forgotten->length),
              name[2] == '3' ? At("m-1") + '\0' : std::string());
    TF_DeleteBuffer(forgotten);
  }
  TF_Buffer* const best = TF_NewBuffer();
  MR_BestCheckpoints(folder_.c_str(), "checkpoint", 9, 0, best, status_);
  EXPECT_EQ(std::string(static_cast<const char*>(best->data), best->length), At("m-3") + '\0' + At("m-2") + '\0');
  TF_DeleteBuffer(best);
  MR_WriteFileAtomically(At("checkpoint.scores").c_str(), "{", 1, status_);
  EXPECT_EQ(Code(), TF_OK);
  MR_NoteCheckpointScore(folder_.c_str(), "checkpoint", "m", 1, 2, 0, nullptr, status_);
  EXPECT_EQ(Code(), TF_DATA_LOSS);
  MR_WriteFileAtomically(At("no/such/folder").c_str(), "", 0, status_);
  EXPECT_EQ(Code(), TF_NOT_FOUND);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "nothing temporary stays";
}

TEST_F(Files, NullIsRefused) {
  EXPECT_EQ(MR_RecordWriterOpen(nullptr, "", nullptr, status_), nullptr);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
  MR_RecordWriterWrite(nullptr, "", 0, status_);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
  MR_RecordWriterClose(nullptr, status_);
  EXPECT_EQ(Code(), TF_OK);
  MR_RecordReaderDelete(nullptr);
  const void* record = nullptr;
  size_t size = 0;
  EXPECT_EQ(MR_RecordReaderRead(nullptr, &record, &size, status_), 0);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
  MR_BestCheckpoints(nullptr, nullptr, 1, 0, nullptr, status_);
  EXPECT_EQ(Code(), TF_INVALID_ARGUMENT);
}

TEST(Log, LinesOfLibraries) {
  static std::string lines;
  TF_RegisterLogListener([](const char* line) { lines.append(line).push_back(';'); });
  TF_Log(TF_WARNING, "%d of %s", 3, "four");
  TF_Log(TF_FATAL, "goes on");
  TF_VLog(0, "%s", "not written");
  TF_RegisterLogListener(nullptr);
  EXPECT_EQ(lines, "3 of four;goes on;");
}

}  // namespace
