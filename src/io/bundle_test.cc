// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "io/bundle_reader.h"
#include "io/bundle_writer.h"
#include "io/checkpoint_state.h"
#include "io/crc32c.h"
#include "io/table.h"
#include "simulation/fake_env.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

using Tensors = std::map<std::string, Tensor>;

Tensor Floats(std::initializer_list<float> v) { return Tensor::Vector<float>(v); }

Tensor Matrix(int64_t rows, int64_t columns, float first = 0) {
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make({rows, columns}));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.mutable_data<float>()[i] = first + static_cast<float>(i);
  return t;
}

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString) return a.flat<TString>() == b.flat<TString>();
  return std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

Status Save(Env& env, const std::string& prefix, const Tensors& tensors) {
  MR_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Open(env, prefix));
  for (const auto& [name, t] : tensors) MR_RETURN_IF_ERROR(writer->Add(name, t));
  return writer->Finish();
}

StatusOr<Tensors> Load(Env& env, const std::string& prefix) {
  MR_ASSIGN_OR_RETURN(const auto reader, OpenCheckpoint(env, prefix));
  Tensors tensors;
  for (const std::string& name : reader->Names()) {
    MR_ASSIGN_OR_RETURN(tensors[name], reader->Read(name));
  }
  return tensors;
}

bool Same(const Tensors& a, const Tensors& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && Same(x.second, y.second);
         });
}

void Put(Env& env, const std::string& path, absl::string_view bytes) {
  auto file = env.NewWritableFile(path);
  ASSERT_TRUE(file.ok() && (*file)->Append(bytes).ok() && (*file)->Close().ok());
}

Tensors Sample(float first = 1) {
  return {{"a", Tensor::Scalar<float>(first)},
          {"b/w", Matrix(2, 3, first)},
          {"flag", Tensor::Vector<bool>({true, false})},
          {"none", *Tensor::Make(DType::kInt64, *Shape::Make({0, 3}))},
          {"words", Tensor::Vector<TString>({TString("x"), TString(""), TString(std::string(300, 'y'))})}};
}

TEST(Bundle, RoundTrip) {
  FakeEnv env;
  ASSERT_TRUE(Save(env, "dir/ck", Sample()).ok());
  auto back = Load(env, "dir/ck");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(Same(*back, Sample()));
  EXPECT_EQ(*env.ListDir("dir"), (std::vector<std::string>{"ck.data-00000-of-00001", "ck.index"}));
  ASSERT_TRUE(Save(env, "dir/ck", Sample(7)).ok());
  EXPECT_TRUE(Same(*Load(env, "dir/ck"), Sample(7)));
  ASSERT_TRUE(Save(env, "dir/ck", Sample(8)).ok());
  EXPECT_TRUE(Same(*Load(env, "dir/ck"), Sample(8)));
  EXPECT_EQ(env.ListDir("dir")->size(), 2u);
}

TEST(Bundle, HeaderAndEntryBytes) {
  FakeEnv env;
  ASSERT_TRUE(Save(env, "ck", {{"s", Tensor::Scalar<float>(1)}}).ok());
  auto table = TableReader::Open(*env.NewRandomAccessFile("ck.index"));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(**(*table)->Find(""), std::string("\x08\x01\x1a\x02\x08\x01"));
  EXPECT_EQ((*table)->Find("s")->value().substr(0, 7), std::string("\x08\x01\x12\x00\x28\x04\x35", 7));
}

TEST(Bundle, WrongUse) {
  FakeEnv env;
  auto writer = BundleWriter::Open(env, "ck");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Add("a", Floats({1})).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Add("a", Floats({1}))));
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->Add("", Floats({1}))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*writer)->AddSlice("b", *Shape::Make({4}), *TensorSlice::Parse("0,2"), Floats({1, 2, 3}))));
  writer->reset();
  EXPECT_TRUE(env.ListDir(".")->empty());
  EXPECT_TRUE(absl::IsInvalidArgument(BundleWriter::Open(env, "").status()));
  EXPECT_TRUE(BundleWriter::Open(env, "x/").ok()) << "a folder: files .index and .data-...";
  EXPECT_TRUE(absl::IsNotFound(OpenCheckpoint(env, "none").status()));
}

TEST(Bundle, SlicesAndMerge) {
  FakeEnv env;
  const Shape full = *Shape::Make({4, 3});
  const Tensor whole = Matrix(4, 3);
  auto part = [&](const std::string& prefix, const std::string& spec, int64_t begin, int64_t end, const char* extra) {
    auto writer = BundleWriter::Open(env, prefix);
    ASSERT_TRUE((*writer)->AddSlice("v", full, *TensorSlice::Parse(spec), *whole.Rows(begin, end)).ok());
    ASSERT_TRUE((*writer)->Add(extra, Floats({1, 2})).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  };
  part("t1/part0", "0,1:-", 0, 1, "x");
  part("t2/part1", "1,3:-", 1, 4, "y");
  EXPECT_TRUE(absl::IsInvalidArgument((*BundleReader::Open(env, "t1/part0"))->Read("v").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(MergeBundles(env, {"t1/part0", "nowhere/part"}, "all", true)));
  ASSERT_TRUE(MergeBundles(env, {"t1/part0", "t2/part1"}, "all", true).ok());
  auto reader = BundleReader::Open(env, "all");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->num_shards(), 2);
  EXPECT_EQ((*reader)->Names(), (std::vector<std::string>{"v", "x", "y"}));
  EXPECT_TRUE(Same(*(*reader)->Read("v"), whole));
  auto middle = (*reader)->ReadSlice("v", *TensorSlice::Parse("0,2:1,1"));
  ASSERT_TRUE(middle.ok()) << middle.status();
  EXPECT_EQ(middle->data<float>()[0], 1);
  EXPECT_EQ(middle->data<float>()[1], 4);
  EXPECT_FALSE(env.FileExists("t1/part0.index"));
  // The same names again do not merge.
  part("t1/part0", "0,1:-", 0, 1, "x");
  part("t2/part1", "1,3:-", 1, 4, "x");
  EXPECT_TRUE(absl::IsInvalidArgument(MergeBundles(env, {"t1/part0", "t2/part1"}, "all", true)));
  EXPECT_TRUE((*BundleReader::Open(env, "all"))->Read("v").ok());
}

TEST(Bundle, MergeRefusesPartsThatDisagree) {
  FakeEnv env;
  for (int i = 0; i < 2; ++i) {
    auto writer = BundleWriter::Open(env, i == 0 ? "p0" : "p1");
    ASSERT_TRUE((*writer)
                    ->AddSlice("v", *Shape::Make({4 + i}), *TensorSlice::Parse(i == 0 ? "0,2" : "2,2"), Floats({1, 2}))
                    .ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(MergeBundles(env, {"p0", "p1"}, "all", false)));
}

TEST(Bundle, DamageIsNeverData) {
  FakeEnv env;
  Tensors tensors = Sample();
  ASSERT_TRUE(Save(env, "ck", tensors).ok());
  for (const std::string file : {"ck.index", "ck.data-00000-of-00001"}) {
    const std::string good = *env.ReadFile(file);
    for (size_t n = 0; n < good.size(); ++n) {
      Put(env, file, good.substr(0, n));
      EXPECT_TRUE(absl::IsDataLoss(Load(env, "ck").status()))
          << file << " cut at " << n << " " << Load(env, "ck").status();
    }
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      Put(env, file, bad);
      auto back = Load(env, "ck");
      EXPECT_TRUE(back.ok() ? Same(*back, tensors) : absl::IsDataLoss(back.status()))
          << file << " bit " << bit << " " << back.status();
    }
    Put(env, file, good);
  }
}

// One entry of tensor "t", as `change` makes it, over a data file of 16 bytes.
Status LoadChanged(const std::function<void(wire::BundleEntryProto*)>& change) {
  FakeEnv env;
  wire::BundleHeaderProto header;
  header.num_shards = 1;
  wire::BundleEntryProto entry;
  entry.dtype = 1;
  entry.shape.Ensure() = ShapeToProto(*Shape::Make({4}));
  entry.size = 16;
  entry.crc32c = MaskCrc(Crc32c(std::string(16, '\0')));
  change(&entry);
  auto file = env.NewWritableFile("ck.index");
  TableWriter table(file->get());
  MR_RETURN_IF_ERROR(table.Add("", wire::Encode(header)));
  MR_RETURN_IF_ERROR(table.Add("t", wire::Encode(entry)));
  MR_RETURN_IF_ERROR(table.Finish());
  MR_RETURN_IF_ERROR((*file)->Close());
  Put(env, "ck.data-00000-of-00001", std::string(16, '\0'));
  return Load(env, "ck").status();
}

TEST(Bundle, RefusesHostileEntries) {
  using E = wire::BundleEntryProto;
  auto shape = [](E* e, std::vector<int64_t> dims) {
    e->shape.Ensure().dim.clear();
    for (int64_t d : dims) e->shape->dim.emplace_back().size = d;
  };
  auto slice = [](E* e, int64_t start, int64_t length, bool has_length) {
    wire::TensorSliceExtent& x = e->slices.emplace_back().extent.emplace_back();
    x.start = start;
    x.length = length;
    if (has_length) x.kind = wire::TensorSliceExtent::Kind::kLength;
  };
  EXPECT_TRUE(LoadChanged([](E*) {}).ok());
  const std::vector<std::function<void(E*)>> changes = {
      [&](E* e) { shape(e, {int64_t{1} << 40, int64_t{1} << 40}); },
      [&](E* e) { shape(e, {-4}); },
      [&](E* e) { shape(e, {5}); },
      [&](E* e) { shape(e, std::vector<int64_t>(300, 1)); },
      [](E* e) { e->dtype = 0; },
      [](E* e) { e->dtype = 9999; },
      [](E* e) { e->dtype = 101; },
      [](E* e) { e->dtype = 20; },
      [](E* e) { e->dtype = 7; },
      [](E* e) { e->offset = 1; },
      [](E* e) { e->offset = -16; },
      [](E* e) { e->size = INT64_MAX; },
      [](E* e) { e->size = -1; },
      [](E* e) { e->offset = INT64_MAX; },
      [](E* e) { e->shard_id = 1; },
      [](E* e) { e->shard_id = -1; },
      [](E* e) { e->crc32c ^= 1; },
      [&](E* e) { slice(e, INT64_MAX, 2, true); },
      [&](E* e) { slice(e, -1, 2, true); },
      [&](E* e) { slice(e, 1, 0, false); },
      [&](E* e) { slice(e, 0, 2, true); },  // its data is missing
      [&](E* e) {
        shape(e, {int64_t{1} << 50});
        slice(e, 0, int64_t{1} << 50, true);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const Status s = LoadChanged(changes[i]);  // of parts that do not cover the whole it is InvalidArgument
    EXPECT_TRUE(absl::IsDataLoss(s) || absl::IsInvalidArgument(s)) << i << " " << s;
  }
}

TEST(Bundle, RefusesNamesThatShareBytes) {
  FakeEnv env;
  auto file = env.NewWritableFile("ck.index");
  TableWriter table(file->get());
  wire::BundleHeaderProto header;
  header.num_shards = 1;
  wire::BundleEntryProto entry;
  entry.dtype = 4;
  entry.shape.Ensure() = ShapeToProto(*Shape::Make({16}));
  entry.size = 16;
  ASSERT_TRUE(table.Add("", wire::Encode(header)).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(table.Add(absl::StrCat("t", 100 + i), wire::Encode(entry)).ok());
  ASSERT_TRUE(table.Finish().ok() && (*file)->Close().ok());
  Put(env, "ck.data-00000-of-00001", std::string(16, '\0'));
  EXPECT_TRUE(absl::IsDataLoss(Load(env, "ck").status()));
}

// At each operation the power goes. What is found after is the old checkpoint or the new one, and the new one when the
// save had returned.
void CheckCrashes(const std::function<Status(Env&)>& prepare, const std::function<Status(Env&)>& save,
                  const Tensors& before, const Tensors& after) {
  int64_t operations = 0;
  {
    FakeEnv env;
    ASSERT_TRUE(prepare(env).ok());
    const int64_t begin = env.operations();
    ASSERT_TRUE(save(env).ok());
    operations = env.operations() - begin;
  }
  for (int64_t n = 0; n <= operations; ++n) {
    for (uint64_t seed = 0; seed < 22; ++seed) {
      FakeEnv env;
      ASSERT_TRUE(prepare(env).ok());
      env.CrashAfter(n);
      const Status saved = save(env);
      const auto survival =
          seed == 0   ? FakeEnv::Survival::kNothing
          : seed == 1 ? FakeEnv::Survival::kEverything
                      : FakeEnv::Survival::kRandom;
      env.Restart(survival, seed);
      auto found = Load(env, "d/ck");
      ASSERT_TRUE(found.ok()) << "crash at " << n << " seed " << seed << " " << found.status();
      ASSERT_TRUE(Same(*found, after) || (!saved.ok() && Same(*found, before))) << "crash at " << n << " seed " << seed;
      // The next save is not hindered by what the crash left.
      ASSERT_TRUE(Save(env, "d/ck", Sample(99)).ok());
      ASSERT_TRUE(Same(*Load(env, "d/ck"), Sample(99)));
    }
    // A full disk or a failing one: the save fails, and nothing is lost.
    FakeEnv env;
    ASSERT_TRUE(prepare(env).ok());
    env.FailOnce(n, absl::ResourceExhaustedError("disk full"));
    const Status saved = save(env);
    auto found = Load(env, "d/ck");
    ASSERT_TRUE(found.ok()) << "failure at " << n << " " << found.status();
    ASSERT_TRUE(Same(*found, after) || (!saved.ok() && Same(*found, before))) << "failure at " << n;
  }
}

TEST(BundleCrash, SaveOverAnother) {
  CheckCrashes([](Env& env) { return Save(env, "d/ck", Sample(1)); },
               [](Env& env) { return Save(env, "d/ck", Sample(2)); }, Sample(1), Sample(2));
}

TEST(BundleCrash, ShardedSaveOverAnother) {
  auto save = [](Env& env, float first) -> Status {
    MR_RETURN_IF_ERROR(Save(env, "d/ck_temp_1/part-00000-of-00002", {{"x", Floats({first})}}));
    MR_RETURN_IF_ERROR(Save(env, "d/ck_temp_1/part-00001-of-00002", {{"y", Floats({first, first})}}));
    return MergeBundles(env, {"d/ck_temp_1/part-00000-of-00002", "d/ck_temp_1/part-00001-of-00002"}, "d/ck", true);
  };
  auto want = [](float first) { return Tensors{{"x", Floats({first})}, {"y", Floats({first, first})}}; };
  CheckCrashes([&](Env& env) { return save(env, 1); }, [&](Env& env) { return save(env, 2); }, want(1), want(2));
}

TEST(BundleCrash, StateFileNamesCheckpointsThatLoad) {
  auto save = [](Env& env, int step) -> Status {
    const std::string prefix = absl::StrCat("d/m-", step);
    MR_RETURN_IF_ERROR(Save(env, prefix, Sample(static_cast<float>(step))));
    CheckpointList list;
    for (int s = 1; s <= step; ++s) list.all.push_back(absl::StrCat("d/m-", s));
    list.latest = prefix;
    return WriteCheckpointState(env, "d", list);
  };
  for (int64_t n = 0; n < 40; ++n) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      FakeEnv env;
      ASSERT_TRUE(save(env, 1).ok());
      env.CrashAfter(n);
      const Status saved = save(env, 2);
      env.Restart(FakeEnv::Survival::kRandom, seed);
      auto latest = LatestCheckpoint(env, "d");
      ASSERT_TRUE(latest.ok()) << n << " " << latest.status();
      ASSERT_TRUE(*latest == "d/m-2" || (!saved.ok() && *latest == "d/m-1"));
      auto found = Load(env, *latest);
      ASSERT_TRUE(found.ok()) << n << " " << found.status();
      ASSERT_TRUE(Same(*found, Sample(*latest == "d/m-2" ? 2 : 1)));
    }
  }
}

TEST(CheckpointState, RelativePaths) {
  FakeEnv env;
  ASSERT_TRUE(env.CreateDirs("d").ok());
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(env, "d").status()));
  ASSERT_TRUE(WriteCheckpointState(env, "d", {"d/m-2", {"d/m-1", "d/m-2"}}).ok());
  const std::string text = *env.ReadFile("d/checkpoint");
  EXPECT_TRUE(absl::StrContains(text, "model_checkpoint_path: \"m-2\"")) << text;
  auto list = ReadCheckpointState(env, "d");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->latest, "d/m-2");
  EXPECT_EQ(list->all, (std::vector<std::string>{"d/m-1", "d/m-2"}));
  Put(env, "d/checkpoint", "model_checkpoint_path: 'm' garbage");
  EXPECT_TRUE(absl::IsDataLoss(ReadCheckpointState(env, "d").status()));
}

}  // namespace
}  // namespace millrace
