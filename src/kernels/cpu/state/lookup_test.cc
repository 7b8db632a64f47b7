// SPDX-License-Identifier: Apache-2.0
// Lookup tables: what the ops' recorded cases do not show.
#include <gtest/gtest.h>

#include <thread>

#include "base/env.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/state/lookup.h"
#include "kernels/cpu/state/lookup_table.h"

namespace millrace {
namespace {

void Inline(int64_t n, double, absl::FunctionRef<void(int64_t, int64_t)> fn) { fn(0, n); }

Tensor Longs(std::initializer_list<int64_t> v) { return Tensor::Vector<int64_t>(v); }
Tensor Strings(std::initializer_list<TString> v) { return Tensor::Vector<TString>(v); }

std::vector<int64_t> Values(const Tensor& t) {
  return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.num_elements());
}

std::vector<int64_t> FindAll(const LookupTable& table, const Tensor& keys, int64_t missing = -1) {
  Tensor values = *Tensor::Make(DType::kInt64, Shape::Vector(keys.num_elements()));
  const Status s = table.Find(keys, Tensor::Scalar<int64_t>(missing), Inline, &values);
  EXPECT_TRUE(s.ok()) << s;
  return Values(values);
}

TableTypes LongTypes() { return {.key = DType::kInt64, .value = DType::kInt64}; }

TEST(MutableTable, ExportsInTheOrderOfArrival) {
  const auto table = *NewMutableHashTable({.key = DType::kString, .value = DType::kInt64});
  ASSERT_TRUE(table->Insert(Strings({"c", "a", "b", "a"}), Longs({1, 2, 3, 4})).ok());
  ASSERT_TRUE(table->Remove(Strings({"c", "none"})).ok());
  Tensor keys, values;
  ASSERT_TRUE(table->Export(&keys, &values).ok());
  ASSERT_EQ(keys.num_elements(), 2);
  EXPECT_EQ(keys.data<TString>()[0].view(), "b") << "the last took the place of what went";
  EXPECT_EQ(keys.data<TString>()[1].view(), "a");
  EXPECT_EQ(Values(values), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(FindAll(*table, Strings({"a", "b", "c"})), (std::vector<int64_t>{4, 3, -1}));
}

TEST(MutableTable, ManyRowsComeAndGo) {
  const auto table = *NewMutableHashTable(LongTypes());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_TRUE(table->Insert(Longs({i}), Longs({i * i})).ok());
  for (int64_t i = 0; i < 1000; i += 3) ASSERT_TRUE(table->Remove(Longs({i})).ok());
  EXPECT_EQ(table->size(), 666);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(FindAll(*table, Longs({i}))[0], i % 3 == 0 ? -1 : i * i) << i;
  }
}

// A table that caches keep, and one that they do not.
TEST(MutableTable, IsReadInParts) {
  for (const size_t count : {size_t{1000}, size_t{150000}}) {
    const auto table = *NewMutableHashTable(LongTypes());
    std::vector<int64_t> numbers(count), asked, wanted;
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = static_cast<int64_t>(i) * 3;
      asked.push_back(numbers[i] + (i % 5 == 0));
      wanted.push_back(i % 5 == 0 ? -1 : numbers[i]);
    }
    const Tensor keys = Tensor::Vector<int64_t>(numbers);
    ASSERT_TRUE(table->Insert(keys, keys).ok());
    Tensor values = *Tensor::Make(DType::kInt64, keys.shape());
    const auto in_parts = [](int64_t n, double, absl::FunctionRef<void(int64_t, int64_t)> fn) {
      fn(n / 3, n), fn(0, n / 3);
    };
    ASSERT_TRUE(table->Find(Tensor::Vector<int64_t>(asked), Tensor::Scalar<int64_t>(-1), in_parts, &values).ok());
    EXPECT_EQ(Values(values), wanted);
  }
}

TEST(MutableTable, IsReadWhileItIsWritten) {
  const auto table = *NewMutableHashTable(LongTypes());
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&table, t] {
      for (int64_t i = 0; i < 500; ++i) {
        EXPECT_TRUE(table->Insert(Longs({i}), Longs({i + 1})).ok());
        const int64_t found = FindAll(*table, Longs({i + t}))[0];
        EXPECT_TRUE(found == -1 || found == i + t + 1) << found;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(table->size(), 500);
}

TEST(HashTable, KeepsNothingOfAFailedStart) {
  const auto table = NewHashTable(LongTypes());
  EXPECT_EQ(table->Initialize(Longs({1, 2, 1}), Longs({1, 2, 3})).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(table->size(), 0);
  ASSERT_TRUE(table->Initialize(Longs({1, 2, 1}), Longs({1, 2, 1})).ok());
  EXPECT_EQ(table->size(), 2);
}

DenseTableOptions DenseOptions(int64_t buckets) {
  return {.empty_key = Tensor::Scalar<int64_t>(-1),
          .deleted_key = Tensor::Scalar<int64_t>(-2),
          .buckets = buckets,
          .max_load = 0.8F};
}

TEST(DenseTable, KeysThatShareTheirLowBitsStayFast) {
  const auto table = *NewDenseHashTable(LongTypes(), DenseOptions(4));
  constexpr int64_t kCount = 200000;
  Tensor keys = *Tensor::Make(DType::kInt64, Shape::Vector(kCount));
  for (int64_t i = 0; i < kCount; ++i) keys.mutable_data<int64_t>()[i] = i << 40;
  ASSERT_TRUE(table->Insert(keys, keys).ok());
  EXPECT_EQ(table->size(), kCount);
  EXPECT_EQ(FindAll(*table, Longs({int64_t{77} << 40, 77})), (std::vector<int64_t>{int64_t{77} << 40, -1}));
}

TEST(DenseTable, ComingAndGoingDoesNotFillIt) {
  const auto table = *NewDenseHashTable(LongTypes(), DenseOptions(8));
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(table->Insert(Longs({i}), Longs({i})).ok());
    ASSERT_TRUE(table->Remove(Longs({i})).ok());
  }
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(FindAll(*table, Longs({5})), std::vector<int64_t>{-1});
  Tensor keys, values;
  ASSERT_TRUE(table->Export(&keys, &values).ok());
  EXPECT_LE(keys.num_elements(), 16);
  ASSERT_TRUE(table->Insert(Longs({3}), Longs({9})).ok());
  ASSERT_TRUE(table->Export(&keys, &values).ok());
  ASSERT_TRUE(table->Import(keys, values).ok()) << "buckets without a pair are passed over";
  EXPECT_EQ(FindAll(*table, Longs({3})), std::vector<int64_t>{9});
  EXPECT_EQ(table->Insert(Longs({-2}), Longs({1})).code(), absl::StatusCode::kInvalidArgument);
}

TEST(DenseTable, RefusesOptionsThatCannotWork) {
  for (const int64_t buckets : {int64_t{-4}, int64_t{0}, int64_t{2}, int64_t{6}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(
        NewDenseHashTable(LongTypes(), DenseOptions(buckets)).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(NewDenseHashTable(LongTypes(), DenseOptions(int64_t{1} << 62)).ok());
  DenseTableOptions options = DenseOptions(4);
  options.max_load = 1e-30F;
  const auto table = *NewDenseHashTable(LongTypes(), std::move(options));
  EXPECT_EQ(table->Insert(Longs({1}), Longs({1})).code(), absl::StatusCode::kResourceExhausted);
}

class TextFile : public ::testing::Test {
 protected:
  Status Read(absl::string_view contents, TextFileColumns columns, DType key, DType value) {
    const auto file = *Env::Default().NewWritableFile(path_);
    EXPECT_TRUE(file->Append(contents).ok() && file->Close().ok());
    return ReadTableFile(Env::Default(), path_, columns, {.key = key, .value = value}, &keys_, &values_);
  }
  ~TextFile() override { (void)Env::Default().DeleteFile(path_); }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/vocabulary_", Env::Default().Random64(), ".txt");
  Tensor keys_, values_;
};

constexpr TextFileColumns kWordToLine = {.key = TextFileColumns::kWholeLine, .value = TextFileColumns::kLineNumber};

TEST_F(TextFile, SaysWhereALineIsWrong) {
  const Status empty = Read("a\n\nb\n", kWordToLine, DType::kString, DType::kInt64);
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(empty.message(), path_ + ", line 2: is empty");
  const TextFileColumns columns = {.key = 0, .value = 1, .delimiter = ','};
  EXPECT_EQ(Read("a,1\nb,x\n", columns, DType::kString, DType::kInt64).message(),
            path_ + ", line 2: \"x\" is not a valid int64");
  EXPECT_EQ(Read("a,1\nb\n", columns, DType::kString, DType::kInt64).message(),
            path_ + ", line 2: Invalid number of columns: has 1, needed is column 1 (from 0)");
}

TEST_F(TextFile, TakesWhatIsThere) {
  ASSERT_TRUE(Read("", kWordToLine, DType::kString, DType::kInt64).ok());
  EXPECT_EQ(keys_.num_elements(), 0);
  ASSERT_TRUE(Read("x\r\ny", kWordToLine, DType::kString, DType::kInt64).ok());
  EXPECT_EQ(keys_.data<TString>()[0].view(), "x");
  EXPECT_EQ(Values(values_), (std::vector<int64_t>{0, 1}));
  TextFileColumns limited = kWordToLine;
  limited.vocab_size = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Read("x\ny\n", limited, DType::kString, DType::kInt64).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("x\n", kWordToLine, DType::kString, DType::kBool).code(), absl::StatusCode::kInvalidArgument);
  TextFileColumns far = kWordToLine;
  far.value = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Read("x\n", far, DType::kString, DType::kInt64).code(), absl::StatusCode::kInvalidArgument);
}

constexpr char kNewTable[] =
    "HashTableV2() -> (table_handle:res) | container:string=\"\"; shared_name:string=\"\"; "
    "use_node_name_sharing:bool=false; key_dtype:type; value_dtype:type | S";
constexpr char kFind[] =
    "LookupTableFindV2(table_handle:res, keys:Tin, default_value:Tout) -> (values:Tout) | Tin:type; Tout:type | S";
constexpr char kInitialize[] =
    "InitializeTableV2(table_handle:res, keys:Tkey, values:Tval) -> () | Tkey:type; Tval:type | S";

TEST(TableKernels, CheckHandlesTypesAndShapes) {
  KernelRunner runner(RegisterLookupKernels, 2);
  const AttrMap types = {{"key_dtype", DType::kInt64}, {"value_dtype", DType::kInt64}};
  const Tensor handle = (*runner.Run(kNewTable, types, {}))[0];
  const AttrMap find = {{"Tin", DType::kInt64}, {"Tout", DType::kInt64}};
  const AttrMap initialize = {{"Tkey", DType::kInt64}, {"Tval", DType::kInt64}};
  const Tensor minus_one = Tensor::Scalar<int64_t>(-1);
  EXPECT_EQ(
      runner.Run(kFind, find, {handle, Longs({1}), minus_one}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(runner.Run(kInitialize, initialize, {handle, Longs({1}), Longs({1, 2})}).ok());
  EXPECT_FALSE(runner.Run(kInitialize, initialize, {handle, minus_one, minus_one}).ok());
  ASSERT_TRUE(runner.Run(kInitialize, initialize, {handle, Longs({1, 2}), Longs({5, 6})}).ok());
  EXPECT_EQ(Values((*runner.Run(kFind, find, {handle, Longs({2, 3}), minus_one}))[0]), (std::vector<int64_t>{6, -1}));
  EXPECT_EQ(
      Values((*runner.Run(kFind, find, {handle, Longs({3, 4}), Longs({8, 9})}))[0]), (std::vector<int64_t>{8, 9}));
  EXPECT_FALSE(runner.Run(kFind, find, {handle, Longs({2}), Longs({1, 2, 3})}).ok());
  Tensor forged = *Tensor::Make(DType::kResource, Shape());
  EXPECT_EQ(runner.Run(kFind, find, {forged, Longs({2}), minus_one}).status().code(), absl::StatusCode::kNotFound);
  forged.mutable_data<ResourceHandle>()->resource = MakeRef<Variable>(DType::kFloat, PartialShape());
  EXPECT_FALSE(runner.Run(kFind, find, {forged, Longs({2}), minus_one}).ok());
  EXPECT_FALSE(runner.Run(kNewTable, {{"key_dtype", DType::kFloat}, {"value_dtype", DType::kInt64}}, {}).ok());
  AttrMap other = {{"key_dtype", DType::kInt64}, {"value_dtype", DType::kString}};
  EXPECT_TRUE(runner.Run(kNewTable, other, {}).ok()) << "each node has a table of its own";
  for (const char* name_of_all : {"shared_name", "use_node_name_sharing"}) {
    AttrMap shared = types;
    for (AttrMap* attrs : {&shared, &other}) {
      if (name_of_all == absl::string_view("shared_name")) {
        (*attrs)["shared_name"] = std::string("t");
      } else {
        attrs->erase("shared_name");
        (*attrs)["use_node_name_sharing"] = true;
      }
    }
    ASSERT_TRUE(runner.Run(kNewTable, shared, {}).ok());
    EXPECT_EQ(runner.Run(kNewTable, other, {}).status().code(), absl::StatusCode::kInvalidArgument)
        << "another node's table has the name: " << name_of_all;
  }
}

}  // namespace
}  // namespace millrace
