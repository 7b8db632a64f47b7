// SPDX-License-Identifier: Apache-2.0
//
// Training examples, the usual content of record files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/message.h"

namespace millrace::wire {

struct BytesList {
  std::vector<std::string> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct FloatList {
  std::vector<float> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct Int64List {
  std::vector<int64_t> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// kNone: the feature is missing; a set list without values is empty.
struct Feature {
  enum class Kind : uint8_t {
    kNone,
    kBytesList,
    kFloatList,
    kInt64List,
  };

  Kind kind = Kind::kNone;
  Box<BytesList> bytes_list;
  Box<FloatList> float_list;
  Box<Int64List> int64_list;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct Features {
  Map<std::string, Feature> feature;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct FeatureList {
  std::vector<Feature> feature;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct FeatureLists {
  Map<std::string, FeatureList> feature_list;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct Example {
  Box<Features> features;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SequenceExample {
  Box<Features> context;
  Box<FeatureLists> feature_lists;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
