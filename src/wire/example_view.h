// SPDX-License-Identifier: Apache-2.0
//
// Reads Example and SequenceExample messages where they lie: entries and
// values are found without building the messages of example.h, and without
// memory. Input is not trusted; functions that return bool return false for
// bytes that are no such message. Packed and unpacked numbers are accepted,
// unknown fields are skipped, and of a oneof the member that came last counts.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace millrace::wire {

enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };

// One Feature: which list it holds, and how many values.
struct FeatureView {
  // Of the message; or of its one list, or of that list's packed numbers, as
  // `part` says.
  absl::string_view bytes;
  int64_t count = 0;
  FeatureKind kind = FeatureKind::kNone;
  enum class Part : uint8_t { kFeature, kList, kPacked } part = Part::kFeature;
};

// Checks all values, so that the functions below cannot fail.
bool ViewFeature(absl::string_view bytes, FeatureView* view);
// The values of a feature of this kind; `out` has room for view.count.
void ReadInt64s(const FeatureView& view, int64_t* out);
void ReadFloats(const FeatureView& view, float* out);
void ReadBytes(const FeatureView& view, absl::FunctionRef<void(absl::string_view)> take);

using VisitEntry = absl::FunctionRef<void(absl::string_view key, absl::string_view value)>;

// The entries of an Example's map: names and Feature messages. A name may come
// more than once; the last one counts.
bool VisitFeatures(absl::string_view example, VisitEntry visit);
// Those of a SequenceExample: Feature messages in the context, FeatureList
// messages.
bool VisitSequence(absl::string_view sequence, VisitEntry context, VisitEntry list);
// The Feature messages of a FeatureList.
bool VisitList(absl::string_view list, absl::FunctionRef<void(absl::string_view)> visit);

}  // namespace millrace::wire
