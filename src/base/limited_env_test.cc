// SPDX-License-Identifier: Apache-2.0
#include "base/limited_env.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "base/pool_env.h"

namespace millrace {
namespace {

class LimitedEnvTest : public ::testing::Test {
 protected:
  LimitedEnvTest() {
    char folder[] = "/tmp/millrace_limited_XXXXXX";
    root_ = mkdtemp(folder);
    std::filesystem::create_directories(root_ + "/in/deep");
    std::filesystem::create_directories(root_ + "/inside");
    EXPECT_TRUE(WriteFileAtomically(Env::Default(), root_ + "/in/deep/file", "in").ok());
    EXPECT_TRUE(WriteFileAtomically(Env::Default(), root_ + "/out", "out").ok());
    env_ = NewLimitedEnv(Env::Default(), {{root_ + "/in"}, false});
  }
  ~LimitedEnvTest() override { std::filesystem::remove_all(root_); }
  static bool IsDenied(const Status& s) { return absl::IsPermissionDenied(s); }

  std::string root_;
  std::unique_ptr<Env> env_;
};

TEST_F(LimitedEnvTest, FilesBeneathTheFoldersAreThere) {
  EXPECT_EQ(*env_->ReadFile(root_ + "/in/deep/file"), "in");
  EXPECT_TRUE(env_->FileExists(root_ + "/in/deep/../deep/file"));
  EXPECT_EQ(*env_->FileSize(root_ + "/in/deep/file"), 2u);
  EXPECT_TRUE(env_->CreateDirs(root_ + "/in/new/er").ok());
  EXPECT_TRUE(WriteFileAtomically(*env_, root_ + "/in/new/er/file", "x").ok());
  EXPECT_TRUE(env_->RenameFile(root_ + "/in/new/er/file", root_ + "/in/moved").ok());
  EXPECT_TRUE(env_->ListDir(root_ + "/in/").ok());
  EXPECT_TRUE(env_->DeleteFile(root_ + "/in/moved").ok());
  EXPECT_TRUE(env_->DeleteDir(root_ + "/in/new/er").ok());
}

TEST_F(LimitedEnvTest, OthersAreNot) {
  const Status s = env_->ReadFile(root_ + "/out").status();
  EXPECT_TRUE(IsDenied(s)) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), root_ + "/in")) << s;
  EXPECT_TRUE(absl::StrContains(s.message(), "MILLRACE_ALLOW_FILES")) << s;
  EXPECT_TRUE(IsDenied(env_->ReadFile(root_ + "/in/../out").status()));
  EXPECT_TRUE(IsDenied(env_->ReadFile("file://" + root_ + "/out").status()));
  EXPECT_EQ(*env_->ReadFile("file://" + root_ + "/in/deep/file"), "in");
  EXPECT_TRUE(IsDenied(env_->NewWritableFile(root_ + "/inside/file").status())) << "a folder is no prefix of a name";
  EXPECT_TRUE(IsDenied(env_->NewAppendableFile(root_ + "/out").status()));
  EXPECT_TRUE(IsDenied(env_->NewRandomAccessFile("/etc/passwd").status()));
  EXPECT_TRUE(IsDenied(env_->RenameFile(root_ + "/in/deep/file", root_ + "/stolen")));
  EXPECT_TRUE(IsDenied(env_->RenameFile(root_ + "/out", root_ + "/in/taken")));
  EXPECT_TRUE(IsDenied(env_->DeleteFile(root_ + "/out")));
  EXPECT_TRUE(IsDenied(env_->DeleteDir(root_ + "/inside")));
  EXPECT_TRUE(IsDenied(env_->CreateDirs(root_ + "/more")));
  EXPECT_TRUE(IsDenied(env_->SyncDir(root_)));
  EXPECT_TRUE(IsDenied(env_->FileSize(root_ + "/out").status()));
  EXPECT_TRUE(IsDenied(env_->ListDir(root_).status()));
  EXPECT_FALSE(env_->FileExists(root_ + "/out"));
  EXPECT_EQ(*Env::Default().ReadFile(root_ + "/out"), "out");
}

TEST_F(LimitedEnvTest, LinksLeadNowhere) {
  ASSERT_EQ(symlink((root_ + "/out").c_str(), (root_ + "/in/link").c_str()), 0);
  ASSERT_EQ(symlink(root_.c_str(), (root_ + "/in/up").c_str()), 0);
  ASSERT_EQ(symlink((root_ + "/later").c_str(), (root_ + "/in/dangling").c_str()), 0);
  EXPECT_TRUE(IsDenied(env_->ReadFile(root_ + "/in/link").status()));
  EXPECT_TRUE(IsDenied(env_->ReadFile(root_ + "/in/up/out").status()));
  EXPECT_FALSE(env_->NewWritableFile(root_ + "/in/dangling").ok());
  EXPECT_FALSE(std::filesystem::exists(root_ + "/later"));
  ASSERT_EQ(symlink((root_ + "/in").c_str(), (root_ + "/alias").c_str()), 0);
  EXPECT_TRUE(env_->ReadFile(root_ + "/alias/deep/file").ok()) << "what counts is where it leads";
}

TEST_F(LimitedEnvTest, WithoutFoldersThereAreNoFiles) {
  const auto none = NewLimitedEnv(Env::Default(), {});
  EXPECT_TRUE(IsDenied(none->ReadFile(root_ + "/in/deep/file").status()));
  EXPECT_TRUE(IsDenied(none->ReadFile("").status()) || !none->ReadFile("").ok());
  EXPECT_TRUE(NewLimitedEnv(Env::Default(), {{"/"}, true})->ReadFile(root_ + "/out").ok());
}

TEST_F(LimitedEnvTest, ClientFunctionsAskFirst) {
  EXPECT_TRUE(CheckMayCallClientFunctions(Env::Default()).ok());
  EXPECT_TRUE(IsDenied(CheckMayCallClientFunctions(*env_)));
  EXPECT_TRUE(CheckMayCallClientFunctions(*NewLimitedEnv(Env::Default(), {{}, true})).ok());
}

TEST_F(LimitedEnvTest, PoolsWorkInIt) {
  const auto pool = NewThreadPool(*env_, 2);
  EXPECT_EQ(&EnvOf(*pool), env_.get());
  std::atomic<int64_t> sum{0};
  pool->ParallelFor(1000, 1e6, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 1000);
  EXPECT_EQ(&EnvOf(ThreadPool(1)), &Env::Default());
}

TEST_F(LimitedEnvTest, FilesOfOthersAreThereByTheirScheme) {
  const std::unique_ptr<Env> env = NewLimitedEnv(Env::Default(), {{root_ + "/in", "limited://bucket/of/"}, false});
  const auto is_denied = [&](const std::string& path) { return IsDenied(env->ReadFile(path).status()); };
  // Nobody has added the scheme, which is said to those who may ask.
  EXPECT_TRUE(absl::IsUnimplemented(env->ReadFile("limited://bucket/of/file").status()));
  EXPECT_TRUE(absl::IsUnimplemented(env->CreateDirs("limited://bucket/of")));
  for (const char* path :
       {"limited://bucket/office", "limited://bucket/of/../x", "limited://bucket/", "other://bucket/of/x"}) {
    EXPECT_TRUE(is_denied(path)) << path;
  }
  EXPECT_TRUE(is_denied("limited:/bucket/of/file")) << "a path of the machine";
  EXPECT_TRUE(IsDenied(env_->ReadFile("limited://bucket/of/file").status())) << "where only folders are allowed";
  const std::unique_ptr<Env> any = NewLimitedEnv(Env::Default(), {{"/"}, false, true});
  EXPECT_TRUE(absl::IsUnimplemented(any->ReadFile("limited://bucket/of/file").status()));
}

}  // namespace
}  // namespace millrace
