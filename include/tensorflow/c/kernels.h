/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels: a source that is written for TensorFlow's header of this name registers its kernels with Millrace.
 */
#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include "millrace/c_api_kernels.h"
#include "tensorflow/c/c_api.h"

#endif /* TENSORFLOW_C_KERNELS_H_ */
