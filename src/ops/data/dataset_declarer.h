// SPDX-License-Identifier: Apache-2.0
// How ops of data sets are declared.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "op/op_registry.h"
#include "op/shape_context.h"

namespace millrace {

inline constexpr char kNoGradient[] = "a data set is no number";
inline constexpr char kNoExample[] = "tests of input pipelines bring iterators";
inline constexpr char kOut[] = "output_types:list(type)>=1; output_shapes:list(shape)>=1";

// Data sets and the settings beside them are scalars, what lists hold is of any shape.
inline Status DatasetShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    bool is_listed = false;
    for (const char* list :
         {"components", "other_arguments", "padded_shapes", "filenames", "initial_state", "optimizations"}) {
      const ArgRange r = c.input_arg(list);
      is_listed = is_listed || (i >= r.begin && i < r.end);
    }
    if (!is_listed) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  }
  return ScalarShape(c);
}

// Functions may capture what is no scalar.
inline Status GroupsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return ScalarShape(c);
}

class Declarer {
 public:
  explicit Declarer(OpRegistry& r) : r_(r) {}
  OpDeclaration operator()(const std::string& schema, absl::string_view doc, ShapeFn shape = DatasetShape) const {
    return r_.Add(schema).Doc(doc).Shape(shape).NotDifferentiable(kNoGradient).NoExample(kNoExample);
  }
  // One that takes a data set, and `inputs` and `attrs` besides.
  void Over(absl::string_view name, absl::string_view inputs, absl::string_view doc, absl::string_view attrs = "",
            absl::string_view out = kOut) const {
    (*this)(
        absl::StrCat(name, "(input_dataset:var", inputs, ") -> (handle:var) | ", attrs, attrs.empty() ? "" : "; ", out),
        doc);
  }
  // The same under TensorFlow 1.14's name, which has an "Experimental" before it, as well.
  void OverByTwoNames(absl::string_view name, absl::string_view inputs, absl::string_view doc,
                      absl::string_view attrs = "", absl::string_view out = kOut) const {
    Over(name, inputs, doc, attrs, out);
    Over(absl::StrCat("Experimental", name), inputs, doc, attrs, out);
  }
  void ByTwoNames(const std::string& schema, absl::string_view doc, ShapeFn shape = DatasetShape) const {
    (*this)(schema, doc, shape);
    (*this)("Experimental" + schema, doc, shape);
  }

 private:
  OpRegistry& r_;
};

void AddDatasetsOfTwoNames(const Declarer& add);

}  // namespace millrace
