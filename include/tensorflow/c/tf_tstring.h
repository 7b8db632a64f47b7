/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings: the functions, declared with the rest of what tensors need, and the names that programs know them by for
 * which TensorFlow defines them in its headers.
 */
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include "millrace/c_api_tensor.h"

static inline void TF_TString_Init(TF_TString* str) { TF_StringInit(str); }
static inline void TF_TString_Dealloc(TF_TString* str) { TF_StringDealloc(str); }
static inline void TF_TString_Copy(TF_TString* dst, const char* src, size_t size) { TF_StringCopy(dst, src, size); }
static inline void TF_TString_AssignView(TF_TString* dst, const char* src, size_t size) {
  TF_StringAssignView(dst, src, size);
}
static inline TF_TString_Type TF_TString_GetType(const TF_TString* str) { return TF_StringGetType(str); }
static inline size_t TF_TString_GetSize(const TF_TString* str) { return TF_StringGetSize(str); }
static inline size_t TF_TString_GetCapacity(const TF_TString* str) { return TF_StringGetCapacity(str); }
static inline const char* TF_TString_GetDataPointer(const TF_TString* str) { return TF_StringGetDataPointer(str); }

#endif /* TENSORFLOW_C_TF_TSTRING_H_ */
