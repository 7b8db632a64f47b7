// SPDX-License-Identifier: Apache-2.0
#include "wire/table.h"

#include <algorithm>

#include "wire/access.h"

namespace millrace::wire {

const EnumValue* EnumInfo::FindNumber(int32_t number) const {
  for (const EnumValue& value : values) {
    if (value.number == number) return &value;
  }
  return nullptr;
}

const EnumValue* EnumInfo::FindName(absl::string_view value_name) const {
  for (const EnumValue& value : values) {
    if (value_name == value.name) return &value;
  }
  return nullptr;
}

const FieldInfo* MessageInfo::FindNumber(uint32_t number) const {
  if (number < kIndexed) {
    const uint8_t position = index[number];
    return position == 0 ? nullptr : &fields[position - 1u];
  }
  for (const FieldInfo& field : fields) {
    if (field.number == number) return &field;
  }
  return nullptr;
}

const FieldInfo* MessageInfo::FindName(absl::string_view field_name) const {
  for (const FieldInfo& field : fields) {
    if (field.name == field_name) return &field;
  }
  return nullptr;
}

void MessageInfo::SortAndIndex() {
  std::sort(fields.begin(), fields.end(), [](const FieldInfo& a, const FieldInfo& b) { return a.number < b.number; });
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].number < kIndexed) {
      index[fields[i].number] = static_cast<uint8_t>(i + 1);
    }
  }
}

static void Clear(const FieldInfo& field, void* target) {
  switch (field.kind) {
    case FieldKind::kMessage: BoxAccess::Reset(target, field.message()); break;
    case FieldKind::kString: AsString(target).clear(); break;
    default: StoreRaw(field.kind, 0, target);
  }
}

void SelectOneof(const MessageInfo& info, const FieldInfo& field, void* message) {
  if (field.oneof_case == 0) return;
  unsigned char& set_case = *static_cast<unsigned char*>(At(message, info.oneof_offset));
  if (set_case == field.oneof_case) return;
  for (const FieldInfo& other : info.fields) {
    if (other.oneof_case != 0 && other.oneof_case == set_case) {
      Clear(other, At(message, other.offset));
    }
  }
  // What the new member may hold was not part of the message until now.
  Clear(field, At(message, field.offset));
  set_case = field.oneof_case;
}

bool IsPresent(const MessageInfo& info, const FieldInfo& field, const void* message) {
  if (field.oneof_case != 0) {
    return OneofCase(info, message) == field.oneof_case;
  }
  const void* value = At(message, field.offset);
  switch (field.kind) {
    case FieldKind::kMessage: return BoxedMessage(value) != nullptr;
    case FieldKind::kString: return !AsString(value).empty();
    default: return LoadRaw(field.kind, value) != 0;
  }
}

}  // namespace millrace::wire
