// SPDX-License-Identifier: Apache-2.0
// Kernel of DecodeJSONExample: Example messages in protobuf's JSON form to their binary form, in the order of the text.
// Lenient as protobuf's reader is: keys need no quotes, commas may trail, numbers may be strings, null is nothing.
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "kernels/cpu/parsing/parsing.h"

namespace millrace {
namespace {

void AppendVarint(uint64_t v, std::string* out) {
  for (; v >= 128; v >>= 7) out->push_back(static_cast<char>(v | 128));
  out->push_back(static_cast<char>(v));
}

void AppendField(int number, absl::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

void AppendUtf8(uint32_t c, std::string* out) {
  auto tail = [&](int shift) { out->push_back(static_cast<char>(128 | (c >> shift & 63))); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// JSON, a token at a time. Nothing recurses: an Example is as deep as it is.
class Json {
 public:
  explicit Json(absl::string_view text) : text_(text) {}

  Status Fail(absl::string_view what) const {
    return InvalidArgument("Error while parsing JSON: ", what, " at offset ", at_);
  }
  // The next character that is no space; 0 at the end.
  char Peek() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool TakeNull() {
    if (Peek() != 'n' || text_.substr(at_, 4) != "null") return false;
    at_ += 4;
    return true;
  }
  // member(key) for each member, positioned at its value.
  Status Object(absl::FunctionRef<Status(const std::string&)> member) {
    if (!Take('{')) return Fail("expected '{'");
    std::set<std::string> seen;
    while (!Take('}')) {
      std::string key;
      MR_RETURN_IF_ERROR(Key(&key));
      if (!seen.insert(key).second) return Fail(absl::StrCat("repeated key '", key.substr(0, 80), "'"));
      if (!Take(':')) return Fail("expected ':'");
      MR_RETURN_IF_ERROR(member(key));
      if (!Take(',') && Peek() != '}') return Fail("expected ',' or '}'");
    }
    return absl::OkStatus();
  }
  // element() for each element, or once for what is no array.
  Status Array(absl::FunctionRef<Status()> element) {
    if (!Take('[')) return element();
    while (!Take(']')) {
      MR_RETURN_IF_ERROR(element());
      if (!Take(',') && Peek() != ']') return Fail("expected ',' or ']'");
    }
    return absl::OkStatus();
  }
  // A string without its quotes, or a number as it is spelt.
  Status Scalar(bool* quoted, std::string* value) {
    const char c = Peek();
    *quoted = c == '"' || c == '\'';
    if (*quoted) return String(value);
    const size_t end = std::min(text_.find_first_not_of("+-0123456789.eE", at_), text_.size());
    *value = std::string(text_.substr(at_, end - at_));
    at_ = end;
    return value->empty() ? Fail("expected a number or a string") : absl::OkStatus();
  }

 private:
  Status Key(std::string* key) {
    const char c = Peek();
    if (c == '"' || c == '\'') return String(key);
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    *key = std::string(text_.substr(begin, at_ - begin));
    return key->empty() ? Fail("expected a key") : absl::OkStatus();
  }
  Status String(std::string* out) {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        out->push_back(text_[at_++]);
        continue;
      }
      if (++at_ == text_.size()) break;
      const char c = text_[at_++];
      const size_t plain = absl::string_view("bfnrt\"'\\/").find(c);
      if (plain != absl::string_view::npos) {
        out->push_back("\b\f\n\r\t\"'\\/"[plain]);
      } else if (c == 'u') {
        MR_RETURN_IF_ERROR(Unicode(out));
      } else {
        return Fail("unknown escape");
      }
    }
    if (at_ == text_.size()) return Fail("unexpected end of a string");
    ++at_;
    return absl::OkStatus();
  }
  // The digits after \u, and the other half of a pair.
  Status Unicode(std::string* out) {
    uint32_t code = 0;
    if (!Hex(&code)) return Fail("expected four hexadecimal digits");
    if (code >= 0xd800 && code < 0xe000) {
      uint32_t low = 0;
      if (code >= 0xdc00 || text_.substr(at_, 2) != "\\u") return Fail("half of a surrogate pair");
      at_ += 2;
      if (!Hex(&low) || low < 0xdc00 || low >= 0xe000) return Fail("half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    AppendUtf8(code, out);
    return absl::OkStatus();
  }
  bool Hex(uint32_t* code) {
    const absl::string_view digits = text_.substr(at_, 4);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), *code, 16).ptr;
    if (digits.size() < 4 || end != digits.data() + 4) return false;
    at_ += 4;
    return true;
  }

  absl::string_view text_;
  size_t at_ = 0;
};

Status AppendInt64(Json& json, std::string* list) {
  int64_t v = 0;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    if (!absl::SimpleAtoi(text, &v)) {
      double wide = 0;
      const bool number = absl::SimpleAtod(text, &wide) && std::trunc(wide) == wide && std::abs(wide) < 0x1p63;
      if (!number) return json.Fail(absl::StrCat("'", text.substr(0, 80), "' is no int64"));
      v = static_cast<int64_t>(wide);
    }
  }
  list->push_back(8);
  AppendVarint(static_cast<uint64_t>(v), list);
  return absl::OkStatus();
}

Status AppendFloat(Json& json, std::string* list) {
  double v = 0;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    const bool named = quoted && (text == "NaN" || text == "Infinity" || text == "-Infinity");
    const bool number = absl::SimpleAtod(text, &v);
    if (!named && (!number || !(std::abs(v) <= static_cast<double>(std::numeric_limits<float>::max())))) {
      return json.Fail(absl::StrCat("'", text.substr(0, 80), "' is no float"));
    }
  }
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  list->push_back(13);
  for (int shift = 0; shift < 32; shift += 8) list->push_back(static_cast<char>(bits >> shift));
  return absl::OkStatus();
}

Status AppendBytes(Json& json, std::string* list) {
  std::string bytes;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    if (!quoted) return json.Fail("expected a string of base64");
    if (!absl::Base64Unescape(text, &bytes) && !absl::WebSafeBase64Unescape(text, &bytes)) {
      return json.Fail("corrupt base64");
    }
  }
  AppendField(1, bytes, list);
  return absl::OkStatus();
}

using AppendValue = Status (*)(Json&, std::string*);

// One of the lists of a Feature.
Status AppendList(Json& json, int number, AppendValue append, std::string* feature) {
  std::string list;
  const auto member = [&](const std::string& key) -> Status {
    if (key != "value") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    return json.TakeNull() ? absl::OkStatus() : json.Array([&] { return append(json, &list); });
  };
  MR_RETURN_IF_ERROR(json.Object(member));
  AppendField(number, list, feature);
  return absl::OkStatus();
}

Status ReadFeature(Json& json, std::string* feature) {
  bool has_list = false;
  return json.Object([&](const std::string& key) -> Status {
    const bool bytes = key == "bytesList" || key == "bytes_list", floats = key == "floatList" || key == "float_list";
    if (!bytes && !floats && key != "int64List" && key != "int64_list") {
      return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    }
    if (json.TakeNull()) return absl::OkStatus();
    if (has_list) return json.Fail(absl::StrCat("'", key, "' has already been set"));
    has_list = true;
    return bytes    ? AppendList(json, 1, AppendBytes, feature)
           : floats ? AppendList(json, 2, AppendFloat, feature)
                    : AppendList(json, 3, AppendInt64, feature);
  });
}

Status ReadFeatures(Json& json, std::string* features) {
  const auto entry = [&](const std::string& name) -> Status {
    std::string bytes, feature;
    MR_RETURN_IF_ERROR(ReadFeature(json, &feature));
    AppendField(1, name, &bytes);
    AppendField(2, feature, &bytes);
    AppendField(1, bytes, features);
    return absl::OkStatus();
  };
  return json.Object([&](const std::string& key) -> Status {
    if (key != "feature") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    return json.TakeNull() ? absl::OkStatus() : json.Object(entry);
  });
}

Status ReadExample(absl::string_view text, std::string* example) {
  Json json(text);
  const auto member = [&](const std::string& key) -> Status {
    if (key != "features") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    if (json.TakeNull()) return absl::OkStatus();
    std::string features;
    MR_RETURN_IF_ERROR(ReadFeatures(json, &features));
    AppendField(1, features, example);
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(json.Object(member));
  return json.Peek() == '\0' ? absl::OkStatus() : json.Fail("extraneous characters");
}

Status DecodeJsonExample(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    std::string example;
    MR_RETURN_IF_ERROR(ReadExample(in.data<TString>()[i], &example));
    out->mutable_data<TString>()[i] = example;
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterJsonKernels(KernelRegistry& registry) { registry.AddFn({.op = "DecodeJSONExample"}, DecodeJsonExample); }

}  // namespace millrace
