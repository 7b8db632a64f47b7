// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/c/env.h"

#include <cstdlib>

#include "capi/test_support.h"

namespace millrace::capi {
namespace {

TEST(EnvTest, FilesAndFolders) {
  ScopedStatus s;
  char* file = TF_GetTempFileName("tmp");
  ASSERT_NE(file, nullptr);
  TF_FileStatistics info{};
  TF_FileStat(file, &info, s);
  EXPECT_TF_OK(s.s);
  EXPECT_EQ(info.length, 0);
  TF_DeleteFile(file, s);
  EXPECT_TF_OK(s.s);
  TF_FileStat(file, &info, s);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);

  const std::string folder = std::string(file) + ".d", inner = folder + "/inner", path = inner + "/f";
  std::free(file);
  TF_CreateDir(inner.c_str(), s);
  EXPECT_EQ(s.code(), TF_NOT_FOUND) << "one level at a time";
  TF_CreateDir(folder.c_str(), s);
  EXPECT_TF_OK(s.s);
  TF_CreateDir(folder.c_str(), s);
  EXPECT_EQ(s.code(), TF_ALREADY_EXISTS);
  TF_CreateDir(inner.c_str(), s);
  TF_WritableFileHandle* out = nullptr;
  TF_NewWritableFile(path.c_str(), &out, s);
  ASSERT_TF_OK(s.s);
  TF_AppendWritableFile(out, "hello", 5, s);
  TF_FlushWritableFile(out, s);
  TF_SyncWritableFile(out, s);
  EXPECT_TF_OK(s.s);
  TF_CloseWritableFile(out, s);
  EXPECT_TF_OK(s.s);
  TF_FileStat(path.c_str(), &info, s);
  EXPECT_EQ(info.length, 5);
  EXPECT_GT(info.mtime_nsec, 0);
  EXPECT_FALSE(info.is_directory);
  TF_FileStat(inner.c_str(), &info, s);
  EXPECT_TRUE(info.is_directory);

  TF_StringStream* names = TF_GetChildren(inner.c_str(), s);
  const char* name = nullptr;
  ASSERT_TRUE(TF_StringStreamNext(names, &name));
  EXPECT_STREQ(name, "f");
  EXPECT_FALSE(TF_StringStreamNext(names, &name));
  EXPECT_EQ(name, nullptr);
  TF_StringStreamDone(names);

  TF_DeleteDir(folder.c_str(), s);
  EXPECT_EQ(s.code(), TF_FAILED_PRECONDITION) << "not empty";
  int64_t files = -1, folders = -1;
  TF_DeleteRecursively(folder.c_str(), &files, &folders, s);
  EXPECT_TF_OK(s.s);
  EXPECT_EQ(files + folders, 0);
  TF_DeleteRecursively(folder.c_str(), &files, &folders, s);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  TF_NewWritableFile("/none/such/file", &out, s);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
}

TEST(EnvTest, TimeThreadsAndLibraries) {
  EXPECT_GT(TF_NowSeconds(), 1'500'000'000u);
  EXPECT_GE(TF_NowNanos() / 1000, TF_NowMicros() - 1'000'000);
  TF_ThreadOptions options;
  TF_DefaultThreadOptions(&options);
  int value = 0;
  TF_Thread* thread =
      TF_StartThread(&options, "a name that is too long", [](void* p) { *static_cast<int*>(p) = 7; }, &value);
  ASSERT_NE(thread, nullptr);
  TF_JoinThread(thread);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(TF_StartThread(&options, nullptr, nullptr, nullptr), nullptr);
  TF_StringStream* folders = TF_GetLocalTempDirectories();
  const char* folder = nullptr;
  EXPECT_TRUE(TF_StringStreamNext(folders, &folder));
  TF_StringStreamDone(folders);
  ScopedStatus s;
  EXPECT_EQ(TF_LoadSharedLibrary("/none/such.so", s), nullptr);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  void* libc = TF_LoadSharedLibrary("libc.so.6", s);
  ASSERT_TF_OK(s.s);
  EXPECT_NE(TF_GetSymbolFromLibrary(libc, "getpid", s), nullptr);
  EXPECT_EQ(TF_GetSymbolFromLibrary(libc, "no_such_function", s), nullptr);
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
}

}  // namespace
}  // namespace millrace::capi
