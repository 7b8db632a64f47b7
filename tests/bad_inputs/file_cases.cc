// SPDX-License-Identifier: Apache-2.0
// Checkpoints that must be refused, through the ops that read and write them.
#include <fcntl.h>
#include <snappy.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"
#include "base/env.h"
#include "graph/graph_def.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/table.h"
#include "system/system.h"
#include "tensor/tensor_proto.h"
#include "wire/checkpoint.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;
using Entry = wire::BundleEntryProto;

const wire::AttrValue kOneFloat = [] {
  wire::AttrValue v;
  v.kind = wire::AttrValue::Kind::kList;
  v.list.Ensure().type = {static_cast<int32_t>(DType::kFloat)};
  return v;
}();

wire::AttrValue Types(size_t count) {
  wire::AttrValue v = kOneFloat;
  v.list->type.assign(count, static_cast<int32_t>(DType::kFloat));
  return v;
}

class BadFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = JoinPath(testing::TempDir(), absl::StrCat("millrace-bad-", Env::Default().Random64()));
    ASSERT_TRUE(Env::Default().CreateDirs(folder_).ok());
  }
  void TearDown() override {
    const auto names = Env::Default().ListDir(folder_);
    for (const std::string& name : *names) unlink(Path(name).c_str());
    (void)Env::Default().DeleteDir(folder_);
  }
  std::string Path(absl::string_view name) const { return JoinPath(folder_, name); }
  std::string Prefix() const { return Path("ck"); }
  std::string IndexPath() const { return Path("ck.index"); }
  std::string DataPath() const { return Path("ck.data-00000-of-00001"); }

  void Put(const std::string& path, absl::string_view bytes) {
    auto file = Env::Default().NewWritableFile(path);
    ASSERT_TRUE(file.ok() && (*file)->Append(bytes).ok() && (*file)->Close().ok());
  }
  // An index of these entries, in order, over a data file of 16 zeros.
  void PutBundle(const std::vector<std::pair<std::string, Entry>>& entries, int32_t shards = 1) {
    auto file = Env::Default().NewWritableFile(IndexPath());
    ASSERT_TRUE(file.ok());
    TableWriter table(file->get());
    wire::BundleHeaderProto header;
    header.num_shards = shards;
    ASSERT_TRUE(table.Add("", wire::Encode(header)).ok());
    for (const auto& [name, entry] : entries) ASSERT_TRUE(table.Add(name, wire::Encode(entry)).ok());
    ASSERT_TRUE(table.Finish().ok() && (*file)->Close().ok());
    Put(DataPath(), std::string(16, '\0'));
  }

  GraphMaker Restore(const std::string& prefix, const std::vector<std::string>& names = {"t"}) const {
    const auto n = static_cast<int64_t>(names.size());
    GraphMaker g;
    g.Strings("prefix", {}, {prefix}).Strings("names", {n}, names).Strings("slices", {n});
    g.Op("bad", "RestoreV2", {"prefix", "names", "slices"}, {{"dtypes", Types(std::max<size_t>(1, names.size()))}});
    return g;
  }
  void ExpectRefused(const Codes& codes) {
    Check(Restore(Prefix()), codes);
    Check(Restore(Prefix(), {"a", "t"}), codes);
  }

  std::string folder_;
};

Entry FourFloats() {
  Entry e;
  e.dtype = 1;
  e.shape.Ensure() = ShapeToProto(*Shape::Make({4}));
  e.size = 16;
  e.crc32c = MaskCrc(Crc32c(std::string(16, '\0')));
  return e;
}

void SetDims(Entry* e, const std::vector<int64_t>& dims) {
  e->shape.Ensure().dim.clear();
  for (int64_t d : dims) e->shape->dim.emplace_back().size = d;
}

void AddSlice(Entry* e, int64_t start, int64_t length, bool has_length = true) {
  wire::TensorSliceExtent& x = e->slices.emplace_back().extent.emplace_back();
  x.start = start;
  x.length = length;
  if (has_length) x.kind = wire::TensorSliceExtent::Kind::kLength;
}

// A part beyond the whole is Internal in TensorFlow too.
const Codes kOutside = {StatusCode::kInvalidArgument, StatusCode::kInternal};
// Parts that do not cover what is wanted are InvalidArgument, as in TensorFlow.
const Codes kDamaged = {StatusCode::kDataLoss, StatusCode::kInvalidArgument};

TEST_F(BadFile, C01_SaveOfListsThatDisagree) {
  const auto save = [&](std::vector<std::string> names, std::vector<std::string> slices, size_t tensors) {
    GraphMaker g;
    g.Strings("prefix", {}, {Prefix()});
    g.Strings("names", {static_cast<int64_t>(names.size())}, names);
    g.Strings("slices", {static_cast<int64_t>(slices.size())}, slices).F32("x", {2}, {1, 2});
    std::vector<std::string> inputs = {"prefix", "names", "slices"};
    inputs.insert(inputs.end(), tensors, "x");
    g.Raw("bad", "SaveV2", inputs, {{"dtypes", Types(tensors)}});
    Check(g, kOutside);
  };
  save({"v"}, {}, 3);
  save({"v"}, {""}, 3);
  save({"v", "w", "x"}, {"", ""}, 3);
  save({}, {}, 1);
  save({"v", "v"}, {"", ""}, 2);
  save({""}, {""}, 1);
  save({"v"}, {"9999999999999999999 0,1"}, 1);
  save({"v"}, {"2 1,2"}, 1);
  save({"v"}, {"4 -1,2"}, 1);
  save({"v"}, {"x"}, 1);
  EXPECT_TRUE(absl::IsNotFound(Env::Default().FileSize(IndexPath()).status()));
}

TEST_F(BadFile, C02_RestoreOfListsThatDisagree) {
  PutBundle({{"t", FourFloats()}});
  Check(Restore(Prefix()), kOk);
  Check(Restore(Prefix(), {"x"}), {StatusCode::kNotFound});
  Check(Restore(Prefix(), {""}), {StatusCode::kNotFound, StatusCode::kInvalidArgument});
  Check(Restore(Prefix(), {}));
  GraphMaker g;
  g.Strings("prefix", {2}, {Prefix(), Prefix()}).Strings("names", {1}, {"t"}).Strings("slices", {1});
  g.Op("bad", "RestoreV2", {"prefix", "names", "slices"}, {{"dtypes", kOneFloat}});
  Check(g);
  for (const char* slice :
       {"4 3,2", "4 0,9223372036854775807", "5 0,1", "4", "4 0,0,1", "-4 0,1", "4 :", "4 4,0", "4 -,"}) {
    SCOPED_TRACE(slice);
    GraphMaker s;
    s.Strings("prefix", {}, {Prefix()}).Strings("names", {1}, {"t"}).Strings("slices", {1}, {slice});
    s.Op("bad", "RestoreV2", {"prefix", "names", "slices"}, {{"dtypes", kOneFloat}});
    Check(s, kOutside);
  }
}

TEST_F(BadFile, C03_HostileEntries) {
  const std::vector<std::function<void(Entry*)>> changes = {
      [](Entry* e) { SetDims(e, {int64_t{1} << 40, int64_t{1} << 40}); },
      [](Entry* e) { SetDims(e, {-4}); },
      [](Entry* e) { SetDims(e, std::vector<int64_t>(300, 1)); },
      [](Entry* e) { e->dtype = 0; },
      [](Entry* e) { e->dtype = 9999; },
      [](Entry* e) { e->dtype = 20; },
      [](Entry* e) { AddSlice(e, INT64_MAX, 2); },
      [](Entry* e) { AddSlice(e, -1, 2); },
      [](Entry* e) { AddSlice(e, 1, 0, false); },
      [](Entry* e) { AddSlice(e, 0, 2); },  // its data is missing
      [](Entry* e) {
        SetDims(e, {int64_t{1} << 50});
        AddSlice(e, 0, int64_t{1} << 50);
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Entry e = FourFloats();
    changes[i](&e);
    PutBundle({{"a", FourFloats()}, {"t", e}});
    ExpectRefused(kDamaged);
  }
}

TEST_F(BadFile, C04_DataThatIsElsewhere) {
  const std::vector<std::function<void(Entry*)>> changes = {
      [](Entry* e) { e->offset = 1; },         [](Entry* e) { e->offset = -16; },
      [](Entry* e) { e->offset = INT64_MAX; }, [](Entry* e) { e->size = INT64_MAX; },
      [](Entry* e) { e->size = -1; },          [](Entry* e) { e->shard_id = 1; },
      [](Entry* e) { e->shard_id = -1; },      [](Entry* e) { e->shard_id = INT32_MAX; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Entry e = FourFloats();
    changes[i](&e);
    PutBundle({{"t", e}});
    Check(Restore(Prefix()), kDamaged);
  }
  for (int32_t shards : {0, -1, INT32_MAX}) {
    PutBundle({{"t", FourFloats()}}, shards);
    Check(Restore(Prefix()), {StatusCode::kDataLoss, StatusCode::kNotFound, StatusCode::kInvalidArgument});
  }
}

TEST_F(BadFile, C04_ManyNamesOfOneRegion) {
  std::vector<std::pair<std::string, Entry>> entries;
  for (int i = 0; i < 100000; ++i) entries.emplace_back(absl::StrCat("t", 100000 + i), FourFloats());
  PutBundle(entries);
  Check(Restore(Prefix(), {"t100000"}), kDamaged);
}

// A table whose one data block is `block`, said to be of `type` and, if not 0, `claimed` bytes long.
std::string TableOfBlock(const std::string& block, char type, uint64_t claimed = 0) {
  std::string file;
  const auto add = [&](std::string contents, char t, std::string* handle, uint64_t size) {
    PutVarint(file.size(), handle);
    PutVarint(size != 0 ? size : contents.size(), handle);
    contents.push_back(t);
    PutFixed32(MaskCrc(Crc32c(contents)), &contents);
    file += contents;
  };
  std::string data, meta, index;
  add(block, type, &data, claimed);
  const std::string none("\0\0\0\0\1\0\0\0", 8);
  add(none, 0, &meta, 0);
  std::string entry;
  PutVarint(0, &entry);
  PutVarint(1, &entry);
  PutVarint(data.size(), &entry);
  add(entry + "z" + data + none, 0, &index, 0);
  std::string footer = meta + index;
  footer.resize(40, '\0');
  PutFixed64(0xdb4775248b80fb57u, &footer);
  return file + footer;
}

TEST_F(BadFile, C05_LengthsBeyondTheFile) {
  for (uint64_t claimed : {uint64_t{100} << 20, uint64_t{1} << 31, UINT64_MAX, UINT64_MAX - 5}) {
    Put(IndexPath(), TableOfBlock("x", 0, claimed));
    Check(Restore(Prefix()), kDamaged);
  }
  std::string footer;
  PutVarint(UINT64_MAX - 3, &footer);
  PutVarint(UINT64_MAX - 3, &footer);
  footer.resize(40, '\xff');
  PutFixed64(0xdb4775248b80fb57u, &footer);
  Put(IndexPath(), footer);
  Check(Restore(Prefix()), kDamaged);
  Put(IndexPath(), "");
  Check(Restore(Prefix()), kDamaged);
}

// Runs one restore again and again while its files change.
class Restorer {
 public:
  explicit Restorer(const GraphMaker& g) {
    millrace::GraphLock lock(&graph_->mu);
    EXPECT_TRUE(ImportGraphDef(g.def(), {}, &graph_->graph).ok());
    Node* node = graph_->graph.Find("bad");
    for (int i = 0; i < node->num_outputs(); ++i) fetches_.push_back(node->output(i));
  }
  Status Run(std::vector<Tensor>* out) {
    if (!session_) session_ = *System::Default().NewSession(graph_, {});
    return session_->Run(nullptr, {}, {}, fetches_, {}, out, nullptr);
  }

 private:
  RefPtr<SharedGraph> graph_ = MakeRef<SharedGraph>(&System::Default().ops());
  std::vector<Output> fetches_;
  std::unique_ptr<Session> session_;
};

TEST_F(BadFile, C06_EveryCutAndEveryBit) {
  GraphMaker save;
  save.Strings("prefix", {}, {Prefix()}).Strings("names", {2}, {"a", "t"}).Strings("slices", {2});
  save.F32("x", {3}, {1, 2, 3})
      .F32("y", {}, {5})
      .Raw("bad", "SaveV2", {"prefix", "names", "slices", "x", "y"}, {{"dtypes", Types(2)}});
  Check(save, kOk, How::kConstants);
  Restorer restore(Restore(Prefix(), {"a", "t"}));
  const auto expect_refused_or_right = [&](bool may_be_right) {
    std::vector<Tensor> out;
    const Status s = restore.Run(&out);
    if (!s.ok() || !may_be_right) {
      ASSERT_TRUE(absl::IsDataLoss(s) || absl::IsInvalidArgument(s)) << s;
      return;
    }
    ASSERT_EQ(out[0].shape(), *Shape::Make({3}));
    EXPECT_EQ(out[0].data<float>()[2], 3);
    EXPECT_EQ(*out[1].data<float>(), 5);
  };
  for (const std::string& path : {IndexPath(), DataPath()}) {
    const std::string good = *Env::Default().ReadFile(path);
    for (size_t n = 0; n < good.size(); ++n) {
      SCOPED_TRACE(absl::StrCat(path, " cut at ", n));
      Put(path, good.substr(0, n));
      expect_refused_or_right(false);
    }
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      SCOPED_TRACE(absl::StrCat(path, " bit ", bit));
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      Put(path, bad);
      expect_refused_or_right(true);
    }
    Put(path, good);
  }
  std::vector<Tensor> out;
  EXPECT_TRUE(restore.Run(&out).ok());
}

TEST_F(BadFile, C07_PartsThatDisagreeOnAName) {
  const auto save = [&](const char* part, const Dims& dims, DType dtype, const std::string& slice) {
    GraphMaker g;
    g.Strings("prefix", {}, {Path(part)}).Strings("names", {1}, {"v"}).Strings("slices", {1}, {slice});
    wire::AttrValue types = kOneFloat;
    types.list->type = {static_cast<int32_t>(dtype)};
    g.Const("x", dtype, Values(dtype, dims))
        .Raw("bad", "SaveV2", {"prefix", "names", "slices", "x"}, {{"dtypes", types}});
    Check(g, kOk, How::kConstants);
  };
  const auto merge = [&] {
    GraphMaker g;
    g.Strings("parts", {2}, {Path("p0"), Path("p1")}).Strings("whole", {}, {Prefix()});
    g.Op("bad", "MergeV2Checkpoints", {"parts", "whole"}, {{"delete_old_dirs", Bool(false)}});
    Check(g);
  };
  save("p0", {2}, DType::kFloat, "");
  save("p1", {2}, DType::kFloat, "");
  merge();
  save("p1", {2}, DType::kInt64, "");
  merge();
  save("p0", {2}, DType::kFloat, "4 0,2");
  save("p1", {2}, DType::kFloat, "5 2,2");
  merge();
  save("p1", {2}, DType::kInt32, "4 2,2");
  merge();
}

TEST_F(BadFile, C08_CompressedIndexes) {
  Put(DataPath(), std::string(16, '\0'));
  std::string bomb;
  PutVarint(uint64_t{1} << 31, &bomb);
  std::string copies("\x10", 1);              // 16 bytes come out
  copies += std::string("\x00x\x01\xff", 4);  // one literal, then a copy from 255 bytes before it
  std::string thousandfold;
  snappy::Compress(std::string(64 << 20, 'a').data(), 64 << 20, &thousandfold);
  for (const std::string& block :
       {bomb + "\x01xx", bomb, copies, std::string("\xff\xff\xff\xff\xff\xff", 6), thousandfold}) {
    Put(IndexPath(), TableOfBlock(block, 1));
    Check(Restore(Prefix()), kDamaged);
  }
  for (char type : {'\2', '\x7f', '\xff'}) {
    Put(IndexPath(), TableOfBlock("x", type));
    Check(Restore(Prefix()), kDamaged);
  }
}

TEST_F(BadFile, C09_FilesThatAreNone) {
  const Codes refused = {
      StatusCode::kNotFound, StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition, StatusCode::kDataLoss};
  for (const char* prefix : {"", "/", ".", "/dev/null", "/dev/zero", "/proc/self", "../../../../../../../etc/passwd"}) {
    SCOPED_TRACE(prefix);
    Check(Restore(prefix), refused);
  }
  Check(Restore(std::string("ck\0ck", 5)), refused);
  Check(Restore(std::string(100000, 'x')), refused);

  PutBundle({{"t", FourFloats()}});
  for (const std::string& path : {IndexPath(), DataPath()}) {
    const std::string good = *Env::Default().ReadFile(path);
    for (const char* target : {"/dev/zero", "/dev/null", "/"}) {
      SCOPED_TRACE(absl::StrCat(path, " -> ", target));
      ASSERT_EQ(unlink(path.c_str()), 0);
      ASSERT_EQ(symlink(target, path.c_str()), 0);
      Check(Restore(Prefix()), refused);
    }
    SCOPED_TRACE(absl::StrCat(path, " is a pipe"));  // whose opening would wait for a writer
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    Check(Restore(Prefix()), refused);
    ASSERT_EQ(unlink(path.c_str()), 0);
    ASSERT_EQ(symlink(path.c_str(), path.c_str()), 0);
    Check(Restore(Prefix()), {StatusCode::kNotFound, StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition,
                              StatusCode::kDataLoss, StatusCode::kInternal, StatusCode::kUnknown});
    ASSERT_EQ(unlink(path.c_str()), 0);
    Put(path, good);
  }
  Check(Restore(Prefix()), kOk);
}

TEST_F(BadFile, C09_SavesIntoNothing) {
  const Codes refused = {StatusCode::kNotFound, StatusCode::kInvalidArgument, StatusCode::kFailedPrecondition,
                         StatusCode::kPermissionDenied};
  Put(Path("file"), "x");
  for (const std::string& prefix : {std::string(), Path("file/ck"), std::string("/dev/null/ck"),
                                    std::string("/proc/ck/ck"), std::string("a\0b", 3)}) {
    SCOPED_TRACE(prefix);
    GraphMaker g;
    g.Strings("prefix", {}, {prefix}).Strings("names", {1}, {"v"}).Strings("slices", {1}).F32("x", {2});
    g.Raw("bad", "SaveV2", {"prefix", "names", "slices", "x"}, {{"dtypes", kOneFloat}});
    Check(g, refused);
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
