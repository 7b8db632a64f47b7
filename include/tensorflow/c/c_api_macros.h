/* SPDX-License-Identifier: Apache-2.0
 *
 * TF_CAPI_EXPORT, and in C++ the fixed width that every enumeration of the API has.
 */
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#include "millrace/c_api_tensor.h"

#endif /* TENSORFLOW_C_C_API_MACROS_H_ */
