// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "wire/access.h"
#include "wire/message.h"

namespace millrace::wire {
namespace {

// The shortest decimal form of at least digits10 digits that reads back as the
// same number.
template <class T>
void AppendFloat(T value, std::string* out) {
  if (std::isnan(value)) {
    out->append("nan");
    return;
  }
  if (std::isinf(value)) {
    out->append(value < 0 ? "-inf" : "inf");
    return;
  }
  char text[64];
  std::to_chars_result end{};
  for (int digits = std::numeric_limits<T>::digits10; digits <= std::numeric_limits<T>::max_digits10; ++digits) {
    end = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, digits);
    T back = 0;
    std::from_chars(text, end.ptr, back);
    if (back == value) break;
  }
  out->append(text, static_cast<size_t>(end.ptr - text));
}

class Printer {
 public:
  explicit Printer(std::string* out) : out_(out) {}

  void Message(const MessageInfo& info, const void* message) {
    if (message == nullptr) return;
    for (const FieldInfo& field : info.fields) {
      const void* value = At(message, field.offset);
      switch (field.cardinality) {
        case Cardinality::kSingular:
          if (!IsPresent(info, field, message)) break;
          if (field.kind == FieldKind::kMessage) value = BoxedMessage(value);
          Field(field.name, field.kind, field, value);
          break;
        case Cardinality::kRepeated: Repeated(field, value); break;
        case Cardinality::kMap:
          field.map->for_each(value, [&](const void* key, const void* mapped) {
            Open(field.name);
            Field("key", field.map->key_kind, field, key);
            Field("value", field.map->value_kind, field, mapped);
            Close();
          });
          break;
      }
    }
  }

 private:
  void Repeated(const FieldInfo& field, const void* value) {
    if (field.kind == FieldKind::kMessage) {
      const size_t n = field.repeated->size(value);
      const char* element = static_cast<const char*>(field.repeated->data(value));
      for (size_t i = 0; i < n; ++i) {
        Field(field.name, field.kind, field, element + i * field.repeated->element_bytes);
      }
    } else if (field.kind == FieldKind::kString) {
      for (const std::string& string : *static_cast<const std::vector<std::string>*>(value)) {
        Field(field.name, field.kind, field, &string);
      }
    } else {
      VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) {
        for (const T number : *static_cast<const std::vector<T>*>(value)) {
          Field(field.name, field.kind, field, &number);
        }
      });
    }
  }

  void Field(absl::string_view name, FieldKind kind, const FieldInfo& field, const void* value) {
    if (kind == FieldKind::kMessage) {
      Open(name);
      Message(field.message(), value);
      Close();
      return;
    }
    Indent();
    absl::StrAppend(out_, name, ": ");
    if (kind == FieldKind::kString) {
      absl::StrAppend(out_, "\"", absl::CEscape(AsString(value)), "\"");
    } else if (const EnumValue* known = FindEnumValue(kind, field, value)) {
      out_->append(known->name);
    } else {
      VisitNumber(kind, [&]<class T>(std::type_identity<T>) { Number(*static_cast<const T*>(value)); });
    }
    out_->push_back('\n');
  }

  static const EnumValue* FindEnumValue(FieldKind kind, const FieldInfo& field, const void* value) {
    if (kind != FieldKind::kEnum) return nullptr;
    return field.enum_info->FindNumber(*static_cast<const int32_t*>(value));
  }

  template <class T>
  void Number(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      out_->append(value ? "true" : "false");
    } else if constexpr (std::is_floating_point_v<T>) {
      AppendFloat(value, out_);
    } else {
      absl::StrAppend(out_, value);
    }
  }

  void Open(absl::string_view name) {
    Indent();
    absl::StrAppend(out_, name, " {\n");
    ++level_;
  }
  void Close() {
    --level_;
    Indent();
    out_->append("}\n");
  }
  void Indent() { out_->append(2 * level_, ' '); }

  std::string* out_;
  size_t level_ = 0;
};

}  // namespace

void AppendTextErased(const MessageInfo& info, const void* message, std::string* out) {
  Printer(out).Message(info, message);
}

}  // namespace millrace::wire
