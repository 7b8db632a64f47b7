/* SPDX-License-Identifier: Apache-2.0
 *
 * Status, buffers, element types, tensors and strings. See c_api.h for the conventions.
 */
#ifndef MILLRACE_C_API_TENSOR_H_
#define MILLRACE_C_API_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TF_CAPI_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Any int may arrive as an enumerator, from C or from a program of another version: C++ must be able to hold it. */
#ifdef __cplusplus
#define MR_ENUM_OF_INT : int
#else
#define MR_ENUM_OF_INT
#endif

/* ---- Version ---- */

/* The TensorFlow release whose C API this is, "2.21.0": the form of strings is that of 2.4 and later. A program that is
 * linked to libtensorflow.so.1 finds the functions of "1.15.5". The string lives for ever. */
TF_CAPI_EXPORT const char* TF_Version(void);
/* Millrace's own version, "0.1.0". */
TF_CAPI_EXPORT const char* MR_Version(void);

/* ---- Status ---- */

typedef struct TF_Status TF_Status;

/* The numbers of error.Code and of gRPC. */
typedef enum TF_Code MR_ENUM_OF_INT {
  TF_OK = 0,
  TF_CANCELLED = 1,
  TF_UNKNOWN = 2,
  TF_INVALID_ARGUMENT = 3,
  TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5,
  TF_ALREADY_EXISTS = 6,
  TF_PERMISSION_DENIED = 7,
  TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9,
  TF_ABORTED = 10,
  TF_OUT_OF_RANGE = 11,
  TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13,
  TF_UNAVAILABLE = 14,
  TF_DATA_LOSS = 15,
  TF_UNAUTHENTICATED = 16
} TF_Code;

/* A new status is TF_OK. NULL only when memory is exhausted. */
TF_CAPI_EXPORT TF_Status* TF_NewStatus(void);
TF_CAPI_EXPORT void TF_DeleteStatus(TF_Status* s);
/* Copies `msg` (NULL counts as empty). With TF_OK the message becomes empty. */
TF_CAPI_EXPORT void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);
/* Attaches a named detail to an error; dropped by the next call that sets the status. Ignored while it is TF_OK. */
TF_CAPI_EXPORT void TF_SetPayload(TF_Status* s, const char* key, const char* value);
typedef void (*TF_PayloadVisitor)(const char* key, const char* value, void* capture);
TF_CAPI_EXPORT void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture);
/* The code that matches an errno value, with the message "context: strerror". */
TF_CAPI_EXPORT void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context);
TF_CAPI_EXPORT TF_Code TF_GetCode(const TF_Status* s);
/* Valid until the status changes or is deleted; never NULL. */
TF_CAPI_EXPORT const char* TF_Message(const TF_Status* s);

/* ---- Buffers ---- */

/* Bytes and how to free them. A function that fills a TF_Buffer* wants one that is empty (data == NULL). */
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;

TF_CAPI_EXPORT TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len); /* copies */
TF_CAPI_EXPORT TF_Buffer* TF_NewBuffer(void);                                          /* empty */
TF_CAPI_EXPORT void TF_DeleteBuffer(TF_Buffer* buffer);   /* calls data_deallocator, if there is one */
TF_CAPI_EXPORT TF_Buffer TF_GetBuffer(TF_Buffer* buffer); /* a shallow copy of the struct */

/* ---- Element types ---- */

/* A type + 100 is a reference to a variable of that type; it appears as the type of an operation's output only. */
typedef enum TF_DataType MR_ENUM_OF_INT {
  TF_FLOAT = 1,
  TF_DOUBLE = 2,
  TF_INT32 = 3,
  TF_UINT8 = 4,
  TF_INT16 = 5,
  TF_INT8 = 6,
  TF_STRING = 7,
  TF_COMPLEX64 = 8,
  TF_COMPLEX = 8,
  TF_INT64 = 9,
  TF_BOOL = 10,
  TF_QINT8 = 11,
  TF_QUINT8 = 12,
  TF_QINT32 = 13,
  TF_BFLOAT16 = 14,
  TF_QINT16 = 15,
  TF_QUINT16 = 16,
  TF_UINT16 = 17,
  TF_COMPLEX128 = 18,
  TF_HALF = 19,
  TF_RESOURCE = 20,
  TF_VARIANT = 21,
  TF_UINT32 = 22,
  TF_UINT64 = 23,
  /* Known by name only: what takes such a type is TF_UNIMPLEMENTED, or NULL. */
  TF_FLOAT8_E5M2 = 24,
  TF_FLOAT8_E4M3FN = 25,
  TF_FLOAT8_E4M3FNUZ = 26,
  TF_FLOAT8_E4M3B11FNUZ = 27,
  TF_FLOAT8_E5M2FNUZ = 28,
  TF_INT4 = 29,
  TF_UINT4 = 30,
  TF_INT2 = 31,
  TF_UINT2 = 32,
  TF_FLOAT4_E2M1FN = 33
} TF_DataType;

/* Bytes per element; 0 for TF_STRING, TF_RESOURCE, TF_VARIANT, types that are not provided and numbers that name none.
 */
TF_CAPI_EXPORT size_t TF_DataTypeSize(TF_DataType dt);

/* ---- Tensors ---- */

/* A tensor is row-major and contiguous. TF_STRING elements are TF_TString; TF_RESOURCE and TF_VARIANT tensors are
 * opaque: they can be fed, fetched, copied and deleted, but have no bytes to look at. */
typedef struct TF_Tensor TF_Tensor;

/* Hands `len` bytes at `data` to a new tensor of shape dims[0..num_dims). `deallocator` (NULL: none) is called exactly
 * once: when the last user lets go of the memory; or at once when the bytes were copied, which happens when `data` is
 * not 16-byte aligned; or at once when NULL is returned. NULL: unknown type, negative or overflowing dimension, len
 * smaller than the elements need, TF_VARIANT. A TF_RESOURCE is given as one encoded ResourceHandleProto and a scalar
 * shape. The memory is never written to by the library. Strings in it stay the caller's to free, in the deallocator. */
TF_CAPI_EXPORT TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                                       void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg);
/* New memory of the library's own, aligned to TF_TensorDefaultAlignment(); not initialised, except that strings are
 * empty. `len` must be at least what the elements need (24 bytes a string). The strings are freed with the tensor. */
TF_CAPI_EXPORT TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len);
TF_CAPI_EXPORT size_t TF_TensorDefaultAlignment(void);
/* Deletes `tensor` and returns another that holds its value, if nobody else shares its memory; else returns NULL and
 * does nothing. */
TF_CAPI_EXPORT TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);
TF_CAPI_EXPORT void TF_DeleteTensor(TF_Tensor* tensor);
TF_CAPI_EXPORT TF_DataType TF_TensorType(const TF_Tensor* tensor);
/* Another shape for the same elements; ignored when the number of elements differs. */
TF_CAPI_EXPORT void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);
TF_CAPI_EXPORT int TF_NumDims(const TF_Tensor* tensor);                /* -1 for NULL */
TF_CAPI_EXPORT int64_t TF_Dim(const TF_Tensor* tensor, int dim_index); /* -1 when out of range */
TF_CAPI_EXPORT size_t TF_TensorByteSize(const TF_Tensor* tensor);      /* of its elements; 0 when opaque */
/* The elements. Of a tensor that came out of a run: read only. NULL when opaque. */
TF_CAPI_EXPORT void* TF_TensorData(const TF_Tensor* tensor);
TF_CAPI_EXPORT int64_t TF_TensorElementCount(const TF_Tensor* tensor);
/* Makes *to the memory of `from`, seen as `type` and new_dims. TF_INVALID_ARGUMENT when the sizes in bytes differ, or
 * one of the types is no plain one. */
TF_CAPI_EXPORT void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                                         const int64_t* new_dims, int num_new_dims, TF_Status* status);
TF_CAPI_EXPORT bool TF_TensorIsAligned(const TF_Tensor* tensor);
/* Replaces *to by the tensor that the encoded TensorProto in `from` describes. */
TF_CAPI_EXPORT void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status);

/* ---- Strings: the elements of TF_STRING tensors ---- */

/* How a string holds its characters; the two low bits of its first byte. */
typedef enum TF_TString_Type MR_ENUM_OF_INT {
  TF_TSTR_SMALL = 0,  /* up to 22 characters, inside the struct */
  TF_TSTR_LARGE = 1,  /* on the heap, owned */
  TF_TSTR_OFFSET = 2, /* at an offset from the struct, not owned */
  TF_TSTR_VIEW = 3,   /* elsewhere, not owned */
  TF_TSTR_TYPE_MASK = 3
} TF_TString_Type;

/* All bits zero is the empty string. Do not copy one by assignment. */
typedef struct TF_TString {
  union {
    struct {
      size_t size; /* characters << 2 | TF_TSTR_LARGE */
      size_t cap;
      char* ptr;
    } large;
    struct {
      uint32_t size; /* characters << 2 | TF_TSTR_OFFSET */
      uint32_t offset;
      uint32_t count;
    } offset;
    struct {
      size_t size; /* characters << 2 | TF_TSTR_VIEW */
      const char* ptr;
      void* owner;
    } view;
    struct {
      uint8_t size; /* characters << 2 */
      char str[23];
    } smll;
    struct {
      uint8_t raw[24];
    } raw;
  } u;
} TF_TString;

TF_CAPI_EXPORT void TF_StringInit(TF_TString* t); /* makes fresh memory an empty string */
TF_CAPI_EXPORT void TF_StringCopy(TF_TString* dst, const char* src, size_t size);
TF_CAPI_EXPORT void TF_StringAssignView(TF_TString* dst, const char* src, size_t size); /* `src` must outlive it */
TF_CAPI_EXPORT const char* TF_StringGetDataPointer(const TF_TString* tstr);
TF_CAPI_EXPORT TF_TString_Type TF_StringGetType(const TF_TString* str);
TF_CAPI_EXPORT size_t TF_StringGetSize(const TF_TString* tstr);
TF_CAPI_EXPORT size_t TF_StringGetCapacity(const TF_TString* str);
TF_CAPI_EXPORT void TF_StringDealloc(TF_TString* tstr); /* frees what it owns; it becomes empty */

/* The string form of TensorFlow before 2.4, a varint length before the characters. Kept for programs that store it;
 * string tensors do not use it. Both return the number of bytes written or read, 0 on error (too little room, truncated
 * input). */
TF_CAPI_EXPORT size_t TF_StringEncode(const char* src, size_t src_len, char* dst, size_t dst_len, TF_Status* status);
/* *dst points into `src`. */
TF_CAPI_EXPORT size_t TF_StringDecode(const char* src, size_t src_len, const char** dst, size_t* dst_len,
                                      TF_Status* status);
TF_CAPI_EXPORT size_t TF_StringEncodedSize(size_t len);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_TENSOR_H_ */
