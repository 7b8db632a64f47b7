/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorFlow's C API under its own path, for programs written for libtensorflow: link them to libtensorflow.so.1 or
 * libtensorflow.so.2, which differ in the form of strings (see tf_tensor.h).
 */
#ifndef TENSORFLOW_C_C_API_H_
#define TENSORFLOW_C_C_API_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

#include "millrace/c_api_graph.h"
#include "millrace/c_api_session.h"

#endif /* TENSORFLOW_C_C_API_H_ */
