// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <limits>

#include "capi/test_support.h"

namespace millrace::capi {
namespace {

void Count(void*, size_t, void* arg) { ++*static_cast<int*>(arg); }

TEST(TensorTest, UsesAlignedMemoryAsItIs) {
  int calls = 0;
  alignas(64) float data[4] = {1, 2, 3, 4};
  const int64_t dims[] = {2, 2};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 2, data, sizeof(data), Count, &calls);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(TF_TensorData(t), data);
  EXPECT_TRUE(TF_TensorIsAligned(t));
  EXPECT_EQ(TF_TensorByteSize(t), sizeof(data));
  EXPECT_EQ(TF_NumDims(t), 2);
  EXPECT_EQ(TF_Dim(t, 1), 2);
  EXPECT_EQ(TF_Dim(t, 2), -1);
  EXPECT_EQ(TF_TensorMaybeMove(t), nullptr) << "memory of the caller cannot be moved";
  EXPECT_EQ(calls, 0);
  TF_DeleteTensor(t);
  EXPECT_EQ(calls, 1);
}

TEST(TensorTest, CopiesMisalignedMemoryAndLetsItGoAtOnce) {
  int calls = 0;
  alignas(64) char data[64] = {};
  const float value = 7;
  std::memcpy(data + 1, &value, sizeof(value));
  const int64_t dims[] = {1};
  TF_Tensor* t = TF_NewTensor(TF_FLOAT, dims, 1, data + 1, sizeof(float), Count, &calls);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(TF_TensorData(t), data + 1);
  EXPECT_EQ(Floats(t), std::vector<float>{7});
  TF_DeleteTensor(t);
  EXPECT_EQ(calls, 1);
}

TEST(TensorTest, RefusesBadShapesAndTypesButStillReleases) {
  alignas(64) char data[64] = {};
  const int64_t negative[] = {-1}, large[] = {17}, overflow[] = {int64_t{1} << 40, int64_t{1} << 40};
  const int64_t almost[] = {std::numeric_limits<int64_t>::max()};
  int calls = 0;
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, negative, 1, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, large, 1, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, overflow, 2, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, almost, 1, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(static_cast<TF_DataType>(99), large, 1, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_VARIANT, nullptr, 0, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, nullptr, 1, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, large, -2, data, 64, Count, &calls), nullptr);
  EXPECT_EQ(TF_NewTensor(TF_FLOAT, large, 1, nullptr, 1024, Count, &calls), nullptr);
  EXPECT_EQ(calls, 9);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, negative, 1, 64), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, large, 1, 64), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, almost, 1, std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_RESOURCE, nullptr, 0, 64), nullptr);
}

TEST(TensorTest, ZeroElementsNeedNoMemory) {
  int calls = 0;
  const int64_t dims[] = {3, 0};
  TF_Tensor* t = TF_NewTensor(TF_DOUBLE, dims, 2, nullptr, 0, Count, &calls);
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(TF_TensorElementCount(t), 0);
  EXPECT_EQ(TF_TensorByteSize(t), 0u);
  TF_DeleteTensor(t);
}

TEST(TensorTest, MovesOwnMemory) {
  TF_Tensor* t = FloatTensor({2}, {1, 2});
  const void* data = TF_TensorData(t);
  TF_Tensor* moved = TF_TensorMaybeMove(t);
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(TF_TensorData(moved), data);
  TF_DeleteTensor(moved);
  EXPECT_EQ(TF_TensorMaybeMove(nullptr), nullptr);
}

TEST(TensorTest, BitcastSharesMemory) {
  ScopedStatus status;
  TF_Tensor* from = FloatTensor({2, 3}, {0, 1, 2, 3, 4, 5});
  TF_Tensor* to = FloatTensor({}, {0});
  const int64_t dims[] = {3};
  TF_TensorBitcastFrom(from, TF_INT64, to, dims, 1, status);
  ASSERT_TF_OK(status.s);
  EXPECT_EQ(TF_TensorType(to), TF_INT64);
  EXPECT_EQ(TF_TensorData(to), TF_TensorData(from));
  TF_TensorBitcastFrom(from, TF_INT32, to, dims, 1, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_TensorBitcastFrom(from, TF_STRING, to, dims, 1, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  TF_TensorBitcastFrom(from, TF_INT64, nullptr, dims, 1, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  const int64_t flat[] = {6};
  TF_SetShape(from, flat, 1);
  EXPECT_EQ(TF_NumDims(from), 1);
  TF_SetShape(from, dims, 1);
  EXPECT_EQ(TF_Dim(from, 0), 6) << "a shape of another size is ignored";
  TF_DeleteTensor(from);
  TF_DeleteTensor(to);
}

TEST(TensorTest, StringsLiveInTheTensor) {
  const int64_t dims[] = {2};
  EXPECT_EQ(TF_AllocateTensor(TF_STRING, dims, 1, 47), nullptr);
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims, 1, 48);
  ASSERT_NE(t, nullptr);
  auto* s = static_cast<TF_TString*>(TF_TensorData(t));
  for (int i = 0; i < 2; ++i) TF_StringInit(&s[i]);
  const std::string small = "small", large(1000, 'x');
  TF_StringCopy(&s[0], small.data(), small.size());
  TF_StringCopy(&s[1], large.data(), large.size());
  EXPECT_EQ(TF_StringGetType(&s[0]), TF_TSTR_SMALL);
  EXPECT_EQ(TF_StringGetType(&s[1]), TF_TSTR_LARGE);
  EXPECT_EQ(std::string(TF_StringGetDataPointer(&s[1]), TF_StringGetSize(&s[1])), large);
  EXPECT_GE(TF_StringGetCapacity(&s[1]), large.size());
  TF_StringAssignView(&s[0], large.data(), 30);
  EXPECT_EQ(TF_StringGetType(&s[0]), TF_TSTR_VIEW);
  EXPECT_EQ(TF_StringGetDataPointer(&s[0]), large.data());
  TF_StringDealloc(&s[0]);
  EXPECT_EQ(TF_StringGetSize(&s[0]), 0u);
  TF_DeleteTensor(t);  // frees the long string (address sanitizer)
}

TEST(StringCodeTest, RoundTripsAndRefusesBadInput) {
  ScopedStatus status;
  for (size_t n : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{20000}}) {
    const std::string text(n, 'a');
    std::string encoded(TF_StringEncodedSize(n), '\0');
    EXPECT_EQ(TF_StringEncode(text.data(), n, encoded.data(), encoded.size(), status), encoded.size());
    EXPECT_TF_OK(status.s);
    const char* out = nullptr;
    size_t size = 0;
    EXPECT_EQ(TF_StringDecode(encoded.data(), encoded.size(), &out, &size, status), encoded.size());
    EXPECT_EQ(std::string(out, size), text);
    EXPECT_EQ(TF_StringEncode(text.data(), n, encoded.data(), encoded.size() - 1, status), 0u);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
    EXPECT_EQ(TF_StringDecode(encoded.data(), encoded.size() - 1, &out, &size, status), 0u);
    EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  }
  const std::string endless(20, '\xff');
  const char* out = nullptr;
  size_t size = 0;
  EXPECT_EQ(TF_StringDecode(endless.data(), endless.size(), &out, &size, status), 0u);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

TEST(DataTypeTest, Sizes) {
  EXPECT_EQ(TF_DataTypeSize(TF_FLOAT), 4u);
  EXPECT_EQ(TF_DataTypeSize(TF_COMPLEX128), 16u);
  EXPECT_EQ(TF_DataTypeSize(TF_BFLOAT16), 2u);
  EXPECT_EQ(TF_DataTypeSize(TF_STRING), 0u);
  EXPECT_EQ(TF_DataTypeSize(TF_RESOURCE), 0u);
  EXPECT_EQ(TF_DataTypeSize(static_cast<TF_DataType>(101)), 0u);
  EXPECT_EQ(TF_DataTypeSize(static_cast<TF_DataType>(-1)), 0u);
}

TEST(StatusTest, HoldsCodeMessageAndPayloads) {
  ScopedStatus s;
  EXPECT_EQ(s.code(), TF_OK);
  EXPECT_EQ(s.message(), "");
  TF_SetStatus(s, TF_NOT_FOUND, "gone");
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  EXPECT_EQ(s.message(), "gone");
  TF_SetPayload(s, "k", "v1");
  TF_SetPayload(s, "k", "v2");
  std::string seen;
  TF_ForEachPayload(
      s, [](const char* k, const char* v, void* out) { *static_cast<std::string*>(out) += std::string(k) + v; }, &seen);
  EXPECT_EQ(seen, "kv2");
  TF_SetStatusFromIOError(s, ENOENT, "file");
  EXPECT_EQ(s.code(), TF_NOT_FOUND);
  EXPECT_EQ(s.message().rfind("file: ", 0), 0u);
  TF_SetStatus(s, TF_OK, "ignored");
  EXPECT_EQ(s.message(), "");
}

TEST(BufferTest, CopiesAndFrees) {
  TF_Buffer* b = TF_NewBufferFromString("abc", 3);
  ASSERT_NE(b, nullptr);
  const TF_Buffer copy = TF_GetBuffer(b);
  EXPECT_EQ(copy.length, 3u);
  EXPECT_EQ(std::memcmp(copy.data, "abc", 3), 0);
  TF_DeleteBuffer(b);
  TF_Buffer* empty = TF_NewBuffer();
  EXPECT_EQ(empty->data, nullptr);
  EXPECT_EQ(empty->length, 0u);
  TF_DeleteBuffer(empty);
  TF_DeleteBuffer(nullptr);
}

TEST(VersionTest, IsThatOfTheApi) {
  EXPECT_STREQ(TF_Version(), "2.21.0");
  EXPECT_NE(std::string(MR_Version()), "");
  const MR_Api* api = MR_GetApi();
  EXPECT_EQ(api->struct_size, sizeof(MR_Api));
  EXPECT_EQ(api->Version, &TF_Version);
  EXPECT_EQ(api->RegisterLogListener, &TF_RegisterLogListener);
#define CHECK_ENTRY(name) EXPECT_EQ(api->name, &TF_##name) << #name;
  MR_API_FUNCTIONS(CHECK_ENTRY)
#undef CHECK_ENTRY
#define CHECK_ENTRY(name) EXPECT_EQ(api->name, &MR_##name) << #name;
  MR_API_OWN_FUNCTIONS(CHECK_ENTRY)
  MR_API_FLOW_FUNCTIONS(CHECK_ENTRY)
#undef CHECK_ENTRY
#define CHECK_ENTRY(name) EXPECT_EQ(api->MR_##name, &MR_##name) << #name;
  MR_API_LATER_FUNCTIONS(CHECK_ENTRY)
#undef CHECK_ENTRY
}

}  // namespace
}  // namespace millrace::capi
