// SPDX-License-Identifier: Apache-2.0
// Attribute values: what stands on the right in {{"transpose_a", true}, {"strides", {1, 2, 2, 1}}}.
#pragma once

#include <optional>

#include "millrace/tensor.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// The value of one attribute. It is made implicitly of bools, integers, floats, strings, types, tensors and lists of
// them.
class Attr {
 public:
  Attr(bool v) : kind_(Kind::kBool), i_(v) {}                                            // NOLINT: reads like the value
  Attr(int v) : kind_(Kind::kInt), i_(v) {}                                              // NOLINT
  Attr(long v) : kind_(Kind::kInt), i_(v) {}                                             // NOLINT
  Attr(long long v) : kind_(Kind::kInt), i_(v) {}                                        // NOLINT
  Attr(float v) : kind_(Kind::kFloat), f_(v) {}                                          // NOLINT
  Attr(double v) : kind_(Kind::kFloat), f_(static_cast<float>(v)) {}                     // NOLINT
  Attr(const char* v) : kind_(Kind::kString), strings_{v} {}                             // NOLINT
  Attr(std::string v) : kind_(Kind::kString) { strings_.push_back(std::move(v)); }       // NOLINT
  Attr(DType v) : kind_(Kind::kType), i_(static_cast<int>(v)) {}                         // NOLINT
  Attr(Tensor v) : kind_(Kind::kTensor), tensor_(std::move(v)) {}                        // NOLINT
  Attr(std::initializer_list<int> v) : kind_(Kind::kInts), ints_(v.begin(), v.end()) {}  // NOLINT
  Attr(std::vector<int64_t> v) : kind_(Kind::kInts), ints_(std::move(v)) {}              // NOLINT
  Attr(std::vector<float> v) : kind_(Kind::kFloats), floats_(std::move(v)) {}            // NOLINT
  Attr(std::vector<std::string> v) : kind_(Kind::kStrings), strings_(std::move(v)) {}    // NOLINT
  Attr(const std::vector<DType>& v) : kind_(Kind::kTypes) {                              // NOLINT
    for (DType t : v) ints_.push_back(static_cast<int>(t));
  }
  // A list of ints is not a shape, nor a name a function: these say so.
  static Attr OfShape(Shape dims) {
    Attr a(std::move(dims));
    a.kind_ = Kind::kShape;
    return a;
  }
  // A list of shapes; -1 is an unknown dimension.
  static Attr OfShapes(const std::vector<Shape>& shapes) {
    Attr a(std::vector<int64_t>{});
    a.kind_ = Kind::kShapes;
    a.shapes_ = shapes;
    for (const Shape& s : shapes) a.ints_.push_back(static_cast<int64_t>(s.size()));
    return a;
  }
  // The same where some have no rank that is known.
  static Attr OfPartialShapes(const std::vector<std::optional<Shape>>& shapes) {
    Attr a = OfShapes({});
    for (const std::optional<Shape>& s : shapes) {
      a.shapes_.push_back(s ? *s : Shape());
      a.ints_.push_back(s ? static_cast<int64_t>(s->size()) : -1);
    }
    return a;
  }
  // A shape of which not even the rank is known.
  static Attr UnknownShape() {
    Attr a = OfShape({});
    a.i_ = -1;
    return a;
  }
  // The function of the graph with this name.
  static Attr Function(std::string name) {
    Attr a(std::move(name));
    a.kind_ = Kind::kFunction;
    return a;
  }
  // Any kind, as an encoded AttrValue.
  static Attr Encoded(std::string bytes) {
    Attr a(std::move(bytes));
    a.kind_ = Kind::kEncoded;
    return a;
  }

  // Gives the operation that is being described this attribute.
  void Set(TF_OperationDescription* desc, const char* name, TF_Status* status) const {
    const MR_Api& api = Api();
    const int count = static_cast<int>(ints_.size());
    switch (kind_) {
      case Kind::kBool: return api.SetAttrBool(desc, name, i_ != 0);
      case Kind::kInt: return api.SetAttrInt(desc, name, i_);
      case Kind::kFloat: return api.SetAttrFloat(desc, name, f_);
      case Kind::kString: return api.SetAttrString(desc, name, strings_[0].data(), strings_[0].size());
      case Kind::kFunction: return api.SetAttrFuncName(desc, name, strings_[0].data(), strings_[0].size());
      case Kind::kEncoded: return api.SetAttrValueProto(desc, name, strings_[0].data(), strings_[0].size(), status);
      case Kind::kType: return api.SetAttrType(desc, name, static_cast<TF_DataType>(i_));
      case Kind::kTensor: return api.SetAttrTensor(desc, name, tensor_.get(), status);
      case Kind::kShape: return api.SetAttrShape(desc, name, ints_.data(), i_ < 0 ? -1 : count);
      case Kind::kInts: return api.SetAttrIntList(desc, name, ints_.data(), count);
      case Kind::kFloats: return api.SetAttrFloatList(desc, name, floats_.data(), static_cast<int>(floats_.size()));
      case Kind::kStrings: return SetStrings(desc, name);
      case Kind::kTypes: {
        std::vector<TF_DataType> types;
        for (int64_t t : ints_) types.push_back(static_cast<TF_DataType>(t));
        return api.SetAttrTypeList(desc, name, types.data(), count);
      }
      case Kind::kShapes: {
        std::vector<const int64_t*> dims;
        std::vector<int> ranks;
        for (const Shape& s : shapes_) dims.push_back(s.data());
        for (int64_t rank : ints_) ranks.push_back(static_cast<int>(rank));
        return api.SetAttrShapeList(desc, name, dims.data(), ranks.data(), static_cast<int>(ranks.size()));
      }
    }
  }

 private:
  enum class Kind {
    kBool,
    kInt,
    kFloat,
    kString,
    kType,
    kTensor,
    kShape,
    kFunction,
    kEncoded,
    kInts,
    kFloats,
    kStrings,
    kTypes,
    kShapes
  };

  void SetStrings(TF_OperationDescription* desc, const char* name) const {
    std::vector<const void*> data;
    std::vector<size_t> sizes;
    for (const std::string& s : strings_) {
      data.push_back(s.data());
      sizes.push_back(s.size());
    }
    Api().SetAttrStringList(desc, name, data.data(), sizes.data(), static_cast<int>(strings_.size()));
  }

  Kind kind_;
  int64_t i_ = 0;
  float f_ = 0;
  Tensor tensor_;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<std::string> strings_;
  std::vector<Shape> shapes_;
};

// An attribute with its name, as {"transpose_a", true}.
struct NamedAttr {
  const char* name;
  Attr value;
};
// The attributes of an operation.
using Attrs = std::vector<NamedAttr>;

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
