/* SPDX-License-Identifier: Apache-2.0
 *
 * Declared with the rest of what tensors need.
 */
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include "millrace/c_api_tensor.h"

#endif /* TENSORFLOW_C_TF_TSTRING_H_ */
