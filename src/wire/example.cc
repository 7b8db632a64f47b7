// SPDX-License-Identifier: Apache-2.0
#include "wire/example.h"

#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& BytesList::Info() {
  static const MessageInfo& info = Table<BytesList>("BytesList").Field(1, "value", &BytesList::value).Build();
  return info;
}

const MessageInfo& FloatList::Info() {
  static const MessageInfo& info = Table<FloatList>("FloatList").Field(1, "value", &FloatList::value).Build();
  return info;
}

const MessageInfo& Int64List::Info() {
  static const MessageInfo& info = Table<Int64List>("Int64List").Field(1, "value", &Int64List::value).Build();
  return info;
}

const MessageInfo& Feature::Info() {
  static const MessageInfo& info =
      Table<Feature>("Feature")
          .Member(Feature::Kind::kBytesList, 1, "bytes_list", &Feature::bytes_list)
          .Member(Feature::Kind::kFloatList, 2, "float_list", &Feature::float_list)
          .Member(Feature::Kind::kInt64List, 3, "int64_list", &Feature::int64_list)
          .Build();
  return info;
}

const MessageInfo& Features::Info() {
  static const MessageInfo& info = Table<Features>("Features").Field(1, "feature", &Features::feature).Build();
  return info;
}

const MessageInfo& FeatureList::Info() {
  static const MessageInfo& info = Table<FeatureList>("FeatureList").Field(1, "feature", &FeatureList::feature).Build();
  return info;
}

const MessageInfo& FeatureLists::Info() {
  static const MessageInfo& info =
      Table<FeatureLists>("FeatureLists").Field(1, "feature_list", &FeatureLists::feature_list).Build();
  return info;
}

const MessageInfo& Example::Info() {
  static const MessageInfo& info = Table<Example>("Example").Field(1, "features", &Example::features).Build();
  return info;
}

const MessageInfo& SequenceExample::Info() {
  static const MessageInfo& info =
      Table<SequenceExample>("SequenceExample")
          .Field(1, "context", &SequenceExample::context)
          .Field(2, "feature_lists", &SequenceExample::feature_lists)
          .Build();
  return info;
}

}  // namespace millrace::wire
