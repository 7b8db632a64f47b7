// SPDX-License-Identifier: Apache-2.0
// Fields of what several messages hold (see wire_codec.h).
#pragma once

#include "cluster/wire_codec.h"
#include "kernel/random_stream.h"
#include "service/device_info.h"

namespace millrace {

template <typename V>
void VisitFields(V& v, DeviceInfo& m) {
  v(1, m.name);
  v(2, m.type);
  v(3, m.memory_bytes);
  v(4, m.incarnation);
  v(5, m.own_memory);
}

struct RandomPositionEntry {
  std::string node;
  std::vector<uint32_t> numbers;
};
template <typename V>
void VisitFields(V& v, RandomPositionEntry& m) {
  v(1, m.node);
  v(2, m.numbers);
}
std::vector<RandomPositionEntry> ListPositions(const RandomPositions& positions);
Status TakePosition(const RandomPositionEntry& entry, RandomPositions* positions);

// Field `number` of a message.
inline void VisitPositions(WireEncoder& v, uint32_t number, RandomPositions& positions) {
  std::vector<RandomPositionEntry> list = ListPositions(positions);
  v(number, list);
}
inline void VisitPositions(WireDecoder& v, uint32_t number, RandomPositions& positions) {
  std::vector<RandomPositionEntry> one;
  v(number, one);
  for (const RandomPositionEntry& entry : one) v.Fail(TakePosition(entry, &positions));
}

}  // namespace millrace
