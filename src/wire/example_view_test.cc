// SPDX-License-Identifier: Apache-2.0
// The reader against the messages of example.h: what both make of random messages, and of broken ones.
#include "wire/example_view.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "wire/example.h"

namespace millrace::wire {
namespace {

Feature RandomFeature(std::mt19937& random) {
  Feature f;
  const int count = static_cast<int>(random() % 4);
  f.kind = static_cast<Feature::Kind>(random() % 4);
  for (int i = 0; i < count; ++i) {
    f.bytes_list.Ensure().value.emplace_back(random() % 200, 'x');
    f.float_list.Ensure().value.push_back(static_cast<float>(random() % 9));
    f.int64_list.Ensure().value.push_back(static_cast<int64_t>(random()) << (random() % 33));
  }
  f.bytes_list.Ensure();
  f.float_list.Ensure();
  f.int64_list.Ensure();
  return f;
}

SequenceExample RandomSequence(std::mt19937& random) {
  SequenceExample s;
  for (int i = 0; i < 3; ++i) {
    s.context.Ensure().feature[std::string(1, static_cast<char>('a' + i))] = RandomFeature(random);
    FeatureList& list = s.feature_lists.Ensure().feature_list[std::string(1, static_cast<char>('p' + i))];
    for (unsigned k = random() % 3; k > 0; --k) list.feature.push_back(RandomFeature(random));
  }
  return s;
}

void ExpectSame(absl::string_view bytes, const Feature& want) {
  FeatureView view;
  ASSERT_TRUE(ViewFeature(bytes, &view));
  ASSERT_EQ(static_cast<int>(view.kind), static_cast<int>(want.kind));
  const auto count = static_cast<size_t>(view.count);
  if (view.kind == FeatureKind::kBytes) {
    std::vector<std::string> got;
    ReadBytes(view, [&](absl::string_view s) { got.emplace_back(s); });
    EXPECT_EQ(got, want.bytes_list->value);
    EXPECT_EQ(count, got.size());
  } else if (view.kind == FeatureKind::kFloat) {
    std::vector<float> got(count);
    ReadFloats(view, got.data());
    ASSERT_EQ(got.size(), want.float_list->value.size());
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want.float_list->value[i]));
    }
  } else if (view.kind == FeatureKind::kInt64) {
    std::vector<int64_t> got(count);
    ReadInt64s(view, got.data());
    EXPECT_EQ(got, want.int64_list->value);
  }
}

// Reads what is there in every way; true when it is a message.
bool ReadAll(absl::string_view bytes, const SequenceExample* want) {
  bool good = true;
  int features = 0;
  auto feature = [&](absl::string_view value, const Feature* expected) {
    FeatureView view;
    if (!ViewFeature(value, &view)) {
      good = false;
      return;
    }
    ++features;
    if (expected) ExpectSame(value, *expected);
    std::vector<int64_t> numbers(static_cast<size_t>(view.count));
    std::vector<float> floats(static_cast<size_t>(view.count));
    if (view.kind == FeatureKind::kInt64) ReadInt64s(view, numbers.data());
    if (view.kind == FeatureKind::kFloat) ReadFloats(view, floats.data());
    if (view.kind == FeatureKind::kBytes) ReadBytes(view, [](absl::string_view) {});
  };
  const bool whole = VisitSequence(
      bytes,
      [&](absl::string_view key, absl::string_view value) {
        feature(value, want ? &want->context->feature.find(key)->second : nullptr);
      },
      [&](absl::string_view key, absl::string_view list) {
        size_t at = 0;
        const FeatureList* expected = want ? &want->feature_lists->feature_list.find(key)->second : nullptr;
        good = VisitList(list,
                         [&](absl::string_view value) {
                           feature(value, expected ? &expected->feature[at] : nullptr);
                           ++at;
                         }) &&
               good;
        EXPECT_EQ(at, expected ? expected->feature.size() : at);
      });
  return whole && good;
}

TEST(ExampleView, ReadsWhatWasWritten) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const SequenceExample sequence = RandomSequence(random);
    EXPECT_TRUE(ReadAll(Encode(sequence), &sequence));
  }
}

TEST(ExampleView, AgreesOnBrokenMessages) {
  std::mt19937 random(2);
  int broken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = Encode(RandomSequence(random));
    for (unsigned k = random() % 3; k > 0 && !bytes.empty(); --k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    // At the end of memory of its own, so that a sanitizer sees a read behind it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    SequenceExample message;
    const bool good = Decode(bytes, &message).ok();
    // The reader does not look into what nobody asked for, so it may find good what is not; never the other way round.
    const bool read = ReadAll({exact.data(), exact.size()}, nullptr);
    EXPECT_TRUE(read || !good);
    broken += !read;
  }
  EXPECT_GT(broken, 1000);
}

TEST(ExampleView, LastListCounts) {
  // float_list {}, int64_list { 1 }, int64_list { 2, 3 }: the last kind, merged; then with a float behind.
  std::string bytes("\x12\x00\x1a\x02\x08\x01\x1a\x04\x0a\x02\x02\x03", 12);
  FeatureView view;
  ASSERT_TRUE(ViewFeature(bytes, &view));
  EXPECT_EQ(view.kind, FeatureKind::kInt64);
  std::vector<int64_t> numbers(static_cast<size_t>(view.count));
  ReadInt64s(view, numbers.data());
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2, 3}));
  bytes += std::string("\x12\x07\x0d\x00\x00\x80\x3f\x48\x05", 9);  // with an unknown field
  ASSERT_TRUE(ViewFeature(bytes, &view));
  EXPECT_EQ(view.kind, FeatureKind::kFloat);
  ASSERT_EQ(view.count, 1);
  float one = 0;
  ReadFloats(view, &one);
  EXPECT_EQ(one, 1.f);
}

TEST(ExampleView, RefusesWhatIsNoMessage) {
  FeatureView view;
  for (const std::string& bytes :
       {std::string("\xff"), std::string("\x00", 1), std::string("\x0a\x05"), std::string("\x1b"),
        std::string("\x1a\x03\x0a\x01\x81"), std::string("\x12\x05\x0a\x03\x01\x02\x03"),
        "\x1a\x0d\x0a\x0b" + std::string(10, '\xff') + "\x01"}) {
    EXPECT_FALSE(ViewFeature(bytes, &view));
  }
}

}  // namespace
}  // namespace millrace::wire
