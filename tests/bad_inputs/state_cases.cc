// SPDX-License-Identifier: Apache-2.0
// States of iterators in files, collectives, and what is taken over from an older model: files, sizes and groups that
// must not be trusted.
#include <functional>

#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"
#include "base/env.h"

namespace millrace::bad_inputs {
namespace {

using absl::StatusCode;

const wire::AttrValue kF32 = Type(DType::kFloat);
const Codes kAbsent = {StatusCode::kNotFound, StatusCode::kInvalidArgument};

wire::AttrValue List(const std::function<void(wire::AttrListValue&)>& fill) {
  wire::AttrValue v;
  v.kind = wire::AttrValue::Kind::kList;
  fill(v.list.Ensure());
  return v;
}
wire::AttrValue Types(const std::vector<DType>& types) {
  return List([&](wire::AttrListValue& l) {
    for (const DType t : types) l.type.push_back(static_cast<int32_t>(t));
  });
}
wire::AttrValue Scalars(size_t count) {
  return List([&](wire::AttrListValue& l) { l.shape.resize(count); });
}

class BadState : public testing::Test {
 protected:
  BadState() : folder_(JoinPath(testing::TempDir(), absl::StrCat("millrace-state-", Env::Default().Random64()))) {
    EXPECT_TRUE(Env::Default().CreateDirs(folder_).ok());
  }
  std::string In(const std::string& file) const { return JoinPath(folder_, file); }

  // "it": an iterator over ten numbers; `begun`: "init" has set it to the beginning.
  GraphMaker WithIterator(bool begun = true) const {
    const wire::AttrValue types = Types({DType::kInt64}), shapes = Scalars(1);
    GraphMaker g;
    g.I64("start", {}, {0}).I64("stop", {}, {10}).I64("step", {}, {1});
    g.Raw("data", "RangeDataset", {"start", "stop", "step"}, {{"output_types", types}, {"output_shapes", shapes}});
    g.Raw("it", "IteratorV2", {},
          {{"shared_name", Str("it")}, {"container", Str("")}, {"output_types", types}, {"output_shapes", shapes}});
    if (begun) g.Raw("init", "MakeIterator", {"data", "it"});
    return g;
  }

  // "init" writes what is said to be an iterator's state.
  GraphMaker WithFile(const std::string& path, DType taken_type, const wire::TensorProto& taken, DType types_type,
                      const wire::TensorProto& types) const {
    GraphMaker g = WithIterator(false);
    g.Strings("to", {}, {path})
        .Strings("names", {2}, {"iterator/taken", "iterator/types"})
        .Strings("parts", {2}, {"", ""});
    g.Const("taken", taken_type, taken).Const("types", types_type, types);
    g.Raw("init", "SaveV2", {"to", "names", "parts", "taken", "types"}, {{"dtypes", Types({taken_type, types_type})}});
    return g;
  }

 private:
  const std::string folder_;
};

TEST_F(BadState, I01_PathsOfIterators) {
  for (const char* op : {"SaveIterator", "RestoreIterator"}) {
    GraphMaker many = WithIterator();
    many.Strings("path", {2}, {In("a"), In("b")}).Raw("bad", op, {"it", "path"});
    Check(many, kInvalid, How::kConstants);  // "init" is not fed
  }
  GraphMaker nowhere = WithIterator();
  nowhere.Strings("path", {}, {In("no/such/file")}).Raw("bad", "RestoreIterator", {"it", "path"});
  Check(nowhere, kAbsent, How::kConstants);
  GraphMaker unborn = WithIterator(false);
  unborn.Strings("path", {}, {In("c")}).Raw("bad", "SaveIterator", {"it", "path"});
  Check(unborn, {StatusCode::kFailedPrecondition});
}

TEST_F(BadState, I02_StatesThatAreNone) {
  int file = 0;
  const auto refuse = [&](DType taken_type, const wire::TensorProto& taken, DType types_type,
                          const wire::TensorProto& types, const Codes& codes) {
    const std::string path = In(absl::StrCat("state", file++));
    GraphMaker g = WithFile(path, taken_type, taken, types_type, types);
    g.Strings("path", {}, {path}).Raw("bad", "RestoreIterator", {"it", "path"});
    Check(g, codes, How::kConstants);
  };
  const auto one = [](DType t, int64_t value) {
    wire::TensorProto p = Values(t, {});
    (t == DType::kInt32 ? p.int_val.assign(1, static_cast<int32_t>(value)) : p.int64_val.assign(1, value));
    return p;
  };
  const auto types = [](const Dims& dims, int32_t value) {
    wire::TensorProto p = Values(DType::kInt32, dims);
    p.int_val.assign(1, value);
    return p;
  };
  const int32_t own = static_cast<int32_t>(DType::kInt64);
  const wire::TensorProto good = types({1}, own);
  for (const int64_t taken : {int64_t{-1}, INT64_MIN}) {
    refuse(DType::kInt64, one(DType::kInt64, taken), DType::kInt32, good, kInvalid);
  }
  refuse(DType::kInt64, Values(DType::kInt64, {2}), DType::kInt32, good, kInvalid);
  refuse(DType::kFloat, Values(DType::kFloat, {}), DType::kInt32, good, kInvalid);
  refuse(DType::kInt64, one(DType::kInt64, 1), DType::kInt32, types({1}, 1), kInvalid);
  refuse(DType::kInt64, one(DType::kInt64, 1), DType::kInt32, types({0}, own), kInvalid);
  refuse(DType::kInt64, one(DType::kInt64, 1), DType::kInt32, types({1000}, own), kInvalid);
  refuse(DType::kInt64, one(DType::kInt64, 1), DType::kFloat, Values(DType::kFloat, {1}), kInvalid);
  refuse(
      DType::kInt64, one(DType::kInt64, 1), DType::kInt32, good, {StatusCode::kFailedPrecondition});  // of no data set
}

TEST_F(BadState, I03_GraphsThatAreNoDataSets) {
  int file = 0;
  const auto refuse = [&](const wire::GraphDef& graph, const Codes& codes = kInvalid) {
    const std::string path = In(absl::StrCat("graph", file++));
    GraphMaker g = WithIterator(false);
    g.Strings("to", {}, {path})
        .Strings("names", {3}, {"iterator/taken", "iterator/types", "iterator/graph"})
        .Strings("parts", {3}, {"", "", ""})
        .I64("taken", {}, {1})
        .I32("types", {1}, {static_cast<int32_t>(DType::kInt64)})
        .Strings("graph", {}, {wire::Encode(graph)});
    g.Raw("init", "SaveV2", {"to", "names", "parts", "taken", "types", "graph"},
          {{"dtypes", Types({DType::kInt64, DType::kInt32, DType::kString})}});
    g.Strings("path", {}, {path}).Raw("bad", "RestoreIterator", {"it", "path"});
    Check(g, codes, How::kConstants);
  };
  const auto returning = [](GraphMaker& g, const std::string& value) {
    g.Raw("end", "_Retval", {value}, {{"T", Type(DType::kVariant)}, {"index", Int(0)}});
    return g.def();
  };
  const auto range = [](DType type, std::vector<int64_t> start = {0}) {
    GraphMaker g;
    g.I64("start", {static_cast<int64_t>(start.size())}, start).I64("step", {}, {1});
    if (start.size() == 1) g.def().node.clear(), g.I64("start", {}, start).I64("step", {}, {1});
    g.Raw("data", "RangeDataset", {"start", "start", "step"},
          {{"output_types", Types({type})}, {"output_shapes", Scalars(1)}});
    return g;
  };
  GraphMaker good = range(DType::kInt64);
  refuse(returning(good, "data"), kOk);
  refuse(range(DType::kInt64).def());  // returns nothing
  GraphMaker absent = range(DType::kInt64);
  refuse(returning(absent, "nobody"), kAbsent);
  GraphMaker second = range(DType::kInt64);
  refuse(returning(second, "data:1"), kAbsent);
  GraphMaker number = range(DType::kInt64);
  refuse(returning(number, "start"));
  GraphMaker other = range(DType::kString);
  refuse(returning(other, "data"));
  GraphMaker shaped = range(DType::kInt64, {1, 2});
  refuse(returning(shaped, "data"));
  GraphMaker circle = range(DType::kInt64);
  circle.Raw("skip", "SkipDataset", {"skip", "start"},
             {{"output_types", Types({DType::kInt64})}, {"output_shapes", Scalars(1)}});
  refuse(returning(circle, "skip"));
  GraphMaker unknown;
  unknown.Raw("data", "NoSuchDataset");
  refuse(returning(unknown, "data"), {StatusCode::kUnimplemented, StatusCode::kInvalidArgument});
  GraphMaker fed;
  fed.Raw("data", "Placeholder", {}, {{"dtype", Type(DType::kVariant)}});
  refuse(returning(fed, "data"));
}

TEST_F(BadState, C01_GroupsOfCollectives) {
  for (const int64_t size : {int64_t{0}, int64_t{-1}, INT64_MIN, int64_t{2}, INT64_MAX}) {
    const Codes codes = size == 2 ? Codes{StatusCode::kDeadlineExceeded} : kInvalid;
    for (const char* op : {"CollectiveGather", "CollectiveBcastSend"}) {
      GraphMaker g;
      g.F32("x", {2}, {1});
      g.Raw("bad", op, {"x"},
            {{"T", kF32},
             {"group_size", Int(size)},
             {"group_key", Int(1)},
             {"instance_key", Int(1)},
             {"timeout_seconds", Float(0.02f)},
             {"shape", ShapeOf({2})}});
      Check(g, codes);
    }
    GraphMaker receive;
    receive.Raw(
        "bad", "CollectiveBcastRecv", {},
        {{"T", kF32},
         {"group_size", Int(size)},
         {"group_key", Int(1)},
         {"instance_key", Int(1)},
         {"timeout_seconds", Float(0.02f)},
         {"shape", ShapeOf({2})}});
    Check(receive, codes);
  }
  for (const float seconds : {-1.0f, NAN, INFINITY}) {
    GraphMaker g;
    g.F32("x", {2}, {1});
    g.Raw("bad", "CollectiveGather", {"x"},
          {{"T", kF32},
           {"group_size", Int(2)},
           {"group_key", Int(1)},
           {"instance_key", Int(1)},
           {"timeout_seconds", Float(seconds)},
           {"shape", ShapeOf({2})}});
    Check(g);
  }
  GraphMaker alone, narrow, merged;
  alone.Raw(
      "bad", "CollectiveBcastRecv", {},
      {{"T", kF32}, {"group_size", Int(1)}, {"group_key", Int(1)}, {"instance_key", Int(1)}, {"shape", ShapeOf({2})}});
  Check(alone);
  narrow.F32("x", {3}, {1})
      .Raw("bad", "CollectiveGather", {"x"},
           {{"T", kF32},
            {"group_size", Int(1)},
            {"group_key", Int(1)},
            {"instance_key", Int(1)},
            {"shape", ShapeOf({2})}});
  Check(narrow);
  merged.F32("x", {3}, {1})
      .Raw("bad", "CollectiveReduce", {"x"},
           {{"T", kF32},
            {"group_size", Int(1)},
            {"group_key", Int(1)},
            {"instance_key", Int(1)},
            {"merge_op", Str("Xor")},
            {"final_op", Str("Id")},
            {"subdiv_offsets", Ints({0})}});
  Check(merged);
}

TEST_F(BadState, V01_VocabulariesThatDoNotFit) {
  ASSERT_TRUE(WriteFileAtomically(Env::Default(), In("words"), "a\nb\n").ok());
  ASSERT_TRUE(WriteFileAtomically(Env::Default(), In("twice"), "a\na\n").ok());
  const auto remap =
      [&](const std::string& fresh, const std::string& old, int64_t offset, int64_t count, int64_t size) {
        GraphMaker g;
        g.Strings("new", {}, {fresh}).Strings("old", {}, {old});
        g.Raw("bad", "GenerateVocabRemapping", {"new", "old"},
              {{"new_vocab_offset", Int(offset)}, {"num_new_vocab", Int(count)}, {"old_vocab_size", Int(size)}});
        return g;
      };
  Check(remap(In("words"), In("gone"), 0, 1, -1), kAbsent);
  Check(remap(In("gone"), In("words"), 0, 1, -1), kAbsent);
  Check(remap("", In("words"), 0, 1, -1));
  Check(remap(In("words"), In("twice"), 0, 1, -1), {StatusCode::kFailedPrecondition});
  for (const int64_t count : {int64_t{3}, INT64_MAX}) Check(remap(In("words"), In("words"), 0, count, -1));
  for (const int64_t offset : {int64_t{2}, INT64_MAX, int64_t{-1}})
    Check(remap(In("words"), In("words"), offset, 1, -1));
  for (const int64_t size : {int64_t{3}, INT64_MAX, int64_t{-2}}) Check(remap(In("words"), In("words"), 0, 1, size));
}

TEST_F(BadState, V02_MatricesThatDoNotFit) {
  int file = 0;
  const auto load = [&](int64_t rows, int64_t columns, const Dims& row_dims, int64_t row, const Dims& column_dims,
                        int64_t column, int64_t most, const Codes& codes) {
    const std::string path = In(absl::StrCat("matrix", file++));
    GraphMaker g;
    g.Strings("to", {}, {path}).Strings("names", {1}, {"m"}).Strings("parts", {1}, {""}).F32("m", {3, 2}, {1});
    g.Raw("init", "SaveV2", {"to", "names", "parts", "m"}, {{"dtypes", Types({DType::kFloat})}});
    g.Strings("path", {1}, {path}).Strings("name", {}, {"m"}).F32("first", {0});
    g.I64("rows", row_dims, {row}).I64("columns", column_dims, {column});
    g.Raw("bad", "LoadAndRemapMatrix", {"path", "name", "rows", "columns", "first"},
          {{"num_rows", Int(rows)}, {"num_cols", Int(columns)}, {"max_rows_in_memory", Int(most)}});
    Check(g, codes, How::kConstants);
  };
  load(1, 2, {1}, 3, {0}, 0, -1, kInvalid);  // a row that is not there
  load(1, 2, {1}, INT64_MAX, {0}, 0, -1, kInvalid);
  load(2, 2, {1}, 0, {0}, 0, -1, kInvalid);  // fewer rows than said
  load(INT64_MAX, 2, {1}, 0, {0}, 0, -1, kInvalid);
  load(1, 3, {1}, 0, {0}, 0, -1, kInvalid);  // more columns than there are
  load(1, INT64_MAX, {1}, 0, {0}, 0, -1, kInvalid);
  load(1, 2, {1, 1}, 0, {0}, 0, -1, kInvalid);  // a matrix of places
  load(1, 1, {1}, 0, {1}, 2, -1, kInvalid);
  load(1, 2, {1}, 0, {2}, 0, -1, {StatusCode::kUnimplemented});  // one old column twice
  load(1, 2, {1}, -1, {0}, 0, -1, kInvalid);                     // a new row, and no values for it
}

}  // namespace
}  // namespace millrace::bad_inputs
