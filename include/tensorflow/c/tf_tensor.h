/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors. The elements of a TF_STRING tensor are, for a program that is linked to
 *   libtensorflow.so.2  TF_TString (24 bytes each): TF_StringInit, TF_StringCopy, TF_StringGetDataPointer and so on;
 *   libtensorflow.so.1  for each element 8 bytes, a distance from the end of these, where the string stands as
 *                       TF_StringEncode writes it. TF_AllocateTensor and TF_NewTensor take as many bytes as that needs.
 * Strings that are not in that form are TF_INVALID_ARGUMENT where they are used (TF_SessionRun, TF_SetAttrTensor, ...).
 */
#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include "millrace/c_api_tensor.h"

#endif /* TENSORFLOW_C_TF_TENSOR_H_ */
