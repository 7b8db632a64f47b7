// SPDX-License-Identifier: Apache-2.0
//
// A recursive descent parser of the text form, at most Limits::max_depth deep:
//
//   fields  = { field [ "," | ";" ] }
//   field   = name ( ":" scalar | ":" list | [ ":" ] block | [ ":" ] list )
//   block   = "{" fields "}" | "<" fields ">"
//   list    = "[" [ element { "," element } ] "]"
//   scalar  = [ "-" ] number | [ "-" ] identifier | string { string }
//
// A map field is written as its entries, blocks with the fields key and value.
// A message of type Any may be written as `[prefix/type.Name] block`.
#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "wire/access.h"
#include "wire/memory_budget.h"
#include "wire/message.h"
#include "wire/text_lexer.h"

namespace millrace::wire {
namespace {

using Kind = TextLexer::Kind;

// Any: its field numbers.
constexpr uint32_t kTypeUrl = 1;
constexpr uint32_t kValue = 2;

// The magnitude of an integer token.
bool ParseMagnitude(absl::string_view token, uint64_t* value) {
  int base = 10;
  if (absl::StartsWithIgnoreCase(token, "0x")) {
    base = 16;
    token.remove_prefix(2);
  } else if (token.size() > 1 && token[0] == '0') {
    base = 8;
    token.remove_prefix(1);
  }
  const char* end = token.data() + token.size();
  const auto [parsed, error] = std::from_chars(token.data(), end, *value, base);
  return error == std::errc() && parsed == end;
}

template <class T>
bool ParseInteger(absl::string_view token, bool negative, T* value) {
  uint64_t magnitude;
  if (!ParseMagnitude(token, &magnitude)) return false;
  const uint64_t largest =
      static_cast<uint64_t>(std::numeric_limits<T>::max()) + (negative && std::is_signed_v<T> ? 1 : 0);
  if (magnitude > largest) return false;
  if (negative && !std::is_signed_v<T> && magnitude != 0) return false;
  *value = static_cast<T>(negative ? 0 - magnitude : magnitude);
  return true;
}

template <class T>
bool ParseFloat(Kind kind, absl::string_view token, T* value) {
  if (kind == Kind::kIdentifier) {
    if (absl::EqualsIgnoreCase(token, "inf") || absl::EqualsIgnoreCase(token, "infinity")) {
      *value = std::numeric_limits<T>::infinity();
      return true;
    }
    *value = std::numeric_limits<T>::quiet_NaN();
    return absl::EqualsIgnoreCase(token, "nan");
  }
  if (kind != Kind::kInteger && kind != Kind::kFloat) return false;
  // Hexadecimal and octal are for integers only.
  if (token.size() > 1 && token[0] == '0' && absl::ascii_isalnum(static_cast<unsigned char>(token[1])) &&
      absl::ascii_tolower(static_cast<unsigned char>(token[1])) != 'e' &&
      absl::ascii_tolower(static_cast<unsigned char>(token[1])) != 'f') {
    return false;
  }
  if (absl::EndsWithIgnoreCase(token, "f")) token.remove_suffix(1);
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(token, value);
  } else {
    return absl::SimpleAtod(token, value);
  }
}

bool ParseBool(Kind kind, absl::string_view token, bool* value) {
  if (kind == Kind::kInteger) {
    uint64_t number;
    if (!ParseMagnitude(token, &number) || number > 1) return false;
    *value = number == 1;
    return true;
  }
  *value = token == "true" || token == "True" || token == "t";
  return *value || token == "false" || token == "False" || token == "f";
}

class Parser {
 public:
  Parser(absl::string_view text, const Limits& limits)
      : lexer_(text),
        levels_left_(std::clamp(limits.max_depth, 0, Limits::kMaxDepthLimit)),
        max_depth_(levels_left_),
        budget_(text.size(), limits) {}

  absl::Status Parse(const MessageInfo& info, void* message) {
    absl::Status status = Fields(info, message, '\0');
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("cannot parse ", info.name, " at ", status.message()));
    }
    return status;
  }

 private:
  // The fields of a message, up to and with the symbol `close` (0: the end of
  // the text).
  absl::Status Fields(const MessageInfo& info, void* message, char close) {
    std::vector<bool> seen(info.fields.size());
    for (;;) {
      if (lexer_.kind() == Kind::kEnd && close == '\0') {
        return absl::OkStatus();
      }
      if (close != '\0' && lexer_.TakeSymbol(close)) return absl::OkStatus();
      absl::Status status = lexer_.IsSymbol('[') ? ExpandedAny(info, message) : NamedField(info, message, &seen);
      if (!status.ok()) return status;
      if (!lexer_.TakeSymbol(',')) lexer_.TakeSymbol(';');
    }
  }

  absl::Status NamedField(const MessageInfo& info, void* message, std::vector<bool>* seen) {
    if (lexer_.kind() != Kind::kIdentifier) {
      return Unexpected(absl::StrCat("a field of ", info.name));
    }
    const FieldInfo* field = info.FindName(lexer_.token());
    if (field == nullptr) {
      return lexer_.Error(absl::StrCat(info.name, " has no field named \"", lexer_.token(), "\""));
    }
    absl::Status status = CheckNotSeen(info, *field, message, seen);
    if (!status.ok()) return status;
    lexer_.Next();
    const bool colon = lexer_.TakeSymbol(':');
    if (!colon && field->kind != FieldKind::kMessage) return Unexpected("\":\"");
    void* target = At(message, field->offset);
    if (field->cardinality == Cardinality::kSingular) {
      SelectOneof(info, *field, message);
      return Singular(*field, target);
    }
    if (!lexer_.TakeSymbol('[')) return Element(*field, target);
    if (lexer_.TakeSymbol(']')) return absl::OkStatus();
    do {
      status = Element(*field, target);
      if (!status.ok()) return status;
    } while (lexer_.TakeSymbol(','));
    return Expect(']');
  }

  absl::Status CheckNotSeen(const MessageInfo& info, const FieldInfo& field, const void* message,
                            std::vector<bool>* seen) const {
    if (field.cardinality != Cardinality::kSingular) return absl::OkStatus();
    const size_t position = static_cast<size_t>(&field - info.fields.data());
    if ((*seen)[position]) {
      return lexer_.Error(absl::StrCat("field ", field.name, " of ", info.name, " is given twice"));
    }
    if (field.oneof_case != 0 && OneofCase(info, message) != 0) {
      return lexer_.Error(absl::StrCat(
          "field ", field.name, " of ", info.name,
          " is given beside another member of "
          "its oneof"));
    }
    (*seen)[position] = true;
    return absl::OkStatus();
  }

  absl::Status Singular(const FieldInfo& field, void* target) {
    if (field.kind != FieldKind::kMessage) {
      return Scalar(field.kind, field, target);
    }
    const MessageInfo& type = field.message();
    if (!budget_.Take(type.object_bytes)) return OverBudget();
    return Block(type, BoxAccess::Ensure(target, type));
  }

  // One element of a repeated field or one entry of a map.
  absl::Status Element(const FieldInfo& field, void* target) {
    if (field.cardinality == Cardinality::kMap) return MapEntry(field, target);
    if (field.kind == FieldKind::kMessage) {
      if (!budget_.Take(field.repeated->element_bytes)) return OverBudget();
      return Block(field.message(), field.repeated->append(target));
    }
    if (field.kind == FieldKind::kString) {
      if (!budget_.Take(sizeof(std::string))) return OverBudget();
      auto& strings = *static_cast<std::vector<std::string>*>(target);
      return Scalar(field.kind, field, &strings.emplace_back());
    }
    return VisitNumber(field.kind, [&]<class T>(std::type_identity<T>) -> absl::Status {
      T number{};
      absl::Status status = Scalar(field.kind, field, &number);
      static_cast<std::vector<T>*>(target)->push_back(number);
      return status;
    });
  }

  absl::Status Block(const MessageInfo& info, void* message) {
    char close = '\0';
    absl::Status status = Enter(&close);
    if (!status.ok()) return status;
    status = Fields(info, message, close);
    ++levels_left_;
    return status;
  }

  absl::Status MapEntry(const FieldInfo& field, void* map) {
    char close = '\0';
    absl::Status status = Enter(&close);
    if (!status.ok()) return status;
    if (!budget_.Take(field.map->entry_bytes)) return OverBudget();
    std::string text;
    field.map->read(map, [&](MapKey* key, void* value) {
      bool seen[2] = {false, false};
      while (status.ok() && !lexer_.TakeSymbol(close)) {
        status = KeyOrValue(field, seen, &text, key, value);
      }
      key->text = text;
      return status.ok();
    });
    ++levels_left_;
    return status;
  }

  absl::Status KeyOrValue(const FieldInfo& field, bool (&seen)[2], std::string* text, MapKey* key, void* value) {
    const bool is_key = lexer_.token() == "key";
    if (!is_key && lexer_.token() != "value") {
      return Unexpected(absl::StrCat("key or value of map ", field.name));
    }
    if (std::exchange(seen[is_key ? 0 : 1], true)) {
      return lexer_.Error(absl::StrCat(lexer_.token(), " is given twice"));
    }
    lexer_.Next();
    const bool colon = lexer_.TakeSymbol(':');
    const bool is_block = !is_key && field.map->value_kind == FieldKind::kMessage;
    if (!colon && !is_block) return Unexpected("\":\"");
    absl::Status status =
        is_key     ? Key(field, text, key)
        : is_block ? Block(field.message(), value)
                   : Scalar(field.map->value_kind, field, value);
    if (!lexer_.TakeSymbol(',')) lexer_.TakeSymbol(';');
    return status;
  }

  absl::Status Key(const FieldInfo& field, std::string* text, MapKey* key) {
    const FieldKind kind = field.map->key_kind;
    if (kind == FieldKind::kString) {
      return Scalar(kind, field, text);
    }
    return VisitNumber(kind, [&]<class T>(std::type_identity<T>) -> absl::Status {
      T number{};
      absl::Status status = Scalar(kind, field, &number);
      key->number = ToRaw<T>(number);
      return status;
    });
  }

  absl::Status Scalar(FieldKind kind, const FieldInfo& field, void* target) {
    if (kind == FieldKind::kString) return String(&AsString(target));
    const bool negative = lexer_.TakeSymbol('-');
    const Kind token_kind = lexer_.kind();
    const absl::string_view token = lexer_.token();
    bool ok = false;
    const char* wanted = "a number";
    if (kind == FieldKind::kEnum) {
      return Enum(*field.enum_info, negative, static_cast<int32_t*>(target));
    }
    VisitNumber(kind, [&]<class T>(std::type_identity<T>) {
      T* value = static_cast<T*>(target);
      if constexpr (std::is_same_v<T, bool>) {
        ok = !negative && ParseBool(token_kind, token, value);
        wanted = "true or false";
      } else if constexpr (std::is_floating_point_v<T>) {
        ok = ParseFloat(token_kind, token, value);
        if (negative) *value = -*value;
      } else {
        ok = token_kind == Kind::kInteger && ParseInteger(token, negative, value);
        wanted = std::is_signed_v<T> ? (sizeof(T) == 4 ? "a 32-bit integer" : "a 64-bit integer")
                                     : (sizeof(T) == 4 ? "an unsigned 32-bit integer" : "an unsigned 64-bit integer");
      }
    });
    if (!ok) {
      return Unexpected(absl::StrCat(wanted, " for field ", field.name));
    }
    lexer_.Next();
    return absl::OkStatus();
  }

  absl::Status Enum(const EnumInfo& info, bool negative, int32_t* value) {
    const bool number = lexer_.kind() == Kind::kInteger && ParseInteger(lexer_.token(), negative, value);
    if (!number) {
      const EnumValue* named =
          lexer_.kind() == Kind::kIdentifier && !negative ? info.FindName(lexer_.token()) : nullptr;
      if (named == nullptr) {
        return Unexpected(absl::StrCat("a value of enum ", info.name));
      }
      *value = named->number;
    }
    lexer_.Next();
    return absl::OkStatus();
  }

  absl::Status String(std::string* value) {
    if (lexer_.kind() != Kind::kString) return Unexpected("a string");
    absl::Status status = lexer_.Unquote(value);
    lexer_.Next();
    while (status.ok() && lexer_.kind() == Kind::kString) {
      std::string more;
      status = lexer_.Unquote(&more);
      value->append(more);
      lexer_.Next();
    }
    return status;
  }

  absl::Status ExpandedAny(const MessageInfo& info, void* any) {
    if (info.any_types.empty()) {
      return lexer_.Error(absl::StrCat("extensions and expanded types are not possible in ", info.name));
    }
    lexer_.Next();
    const size_t at = lexer_.position();
    std::string url;
    while (!lexer_.IsSymbol(']')) {
      if (lexer_.kind() == Kind::kEnd || lexer_.kind() == Kind::kInvalid) {
        return Unexpected("\"]\"");
      }
      absl::StrAppend(&url, lexer_.token());
      lexer_.Next();
    }
    lexer_.Next();
    lexer_.TakeSymbol(':');
    const absl::string_view name = absl::string_view(url).substr(url.find_last_of("./") + 1);
    for (const InfoFunction type : info.any_types) {
      if (type().name == name) return ExpandAs(type(), info, url, any);
    }
    return lexer_.ErrorAt(at, absl::StrCat("expanded type \"", url, "\" is not known"));
  }

  absl::Status ExpandAs(const MessageInfo& type, const MessageInfo& info, const std::string& url, void* any) {
    if (!budget_.Take(type.object_bytes)) return OverBudget();
    const std::unique_ptr<void, void (*)(void*)> message(type.create(), type.destroy);
    absl::Status status = Block(type, message.get());
    if (!status.ok()) return status;
    AsString(At(any, info.FindNumber(kTypeUrl)->offset)) = url;
    std::string& value = AsString(At(any, info.FindNumber(kValue)->offset));
    value.clear();
    AppendEncodedErased(type, message.get(), &value);
    return absl::OkStatus();
  }

  // Passes over the symbol that opens a block, and takes a level of nesting;
  // the caller gives it back by ++levels_left_.
  absl::Status Enter(char* close) {
    if (levels_left_ <= 0) {
      return lexer_.Error(absl::StrCat("nested deeper than ", max_depth_, " levels (Limits::max_depth)"));
    }
    --levels_left_;
    if (lexer_.TakeSymbol('{')) {
      *close = '}';
    } else if (lexer_.TakeSymbol('<')) {
      *close = '>';
    } else {
      return Unexpected("\"{\"");
    }
    return absl::OkStatus();
  }

  absl::Status Expect(char symbol) {
    if (lexer_.TakeSymbol(symbol)) return absl::OkStatus();
    return Unexpected(absl::StrCat("\"", std::string(1, symbol), "\""));
  }

  absl::Status Unexpected(absl::string_view wanted) const {
    return lexer_.Error(absl::StrCat("got ", lexer_.Describe(), ", wanted ", wanted));
  }

  absl::Status OverBudget() const {
    const absl::Status what = budget_.Error();
    return absl::Status(what.code(), lexer_.Error(what.message()).message());
  }

  TextLexer lexer_;
  int levels_left_;
  int max_depth_;
  MemoryBudget budget_;
};

}  // namespace

absl::Status DecodeTextErased(const MessageInfo& info, absl::string_view text, void* message, const Limits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot parse ", info.name, ": it has ", text.size(), " bytes, the limit is ", limits.max_bytes,
        " (Limits::max_bytes)"));
  }
  return Parser(text, limits).Parse(info, message);
}

}  // namespace millrace::wire
