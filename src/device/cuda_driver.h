/* cuda_driver.h: the entry points of the CUDA driver, opened at run time. */
#ifndef AFJ_DEVICE_CUDA_DRIVER_H
#define AFJ_DEVICE_CUDA_DRIVER_H

#include <cuda.h>

#include "base/status.h"

/* Every driver call in use. cuda.h maps the names to their newest versions; the symbols looked up
 * are what it maps them to, or an older one where that does as well. */
#define AFJ_CUDA_CALLS(X)                                                                          \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceCanAccessPeer)                                                                       \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuCtxEnablePeerAccess)                                                                       \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemcpyAsync)                                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamIsCapturing)                                                                         \
    X(cuStreamBeginCapture)                                                                        \
    X(cuStreamEndCapture)                                                                          \
    X(cuLaunchHostFunc)                                                                            \
    X(cuGraphInstantiate)                                                                          \
    X(cuGraphUpload)                                                                               \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphDestroy)                                                                              \
    X(cuGraphExecDestroy)                                                                          \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventElapsedTime)                                                                          \
    X(cuLibraryLoadData)                                                                           \
    X(cuLibraryUnload)                                                                             \
    X(cuLibraryGetKernel)                                                                          \
    X(cuKernelGetFunction)                                                                         \
    X(cuKernelGetParamInfo)                                                                        \
    X(cuFuncSetAttribute)                                                                          \
    X(cuFuncLoad)                                                                                  \
    X(cuLaunchKernelEx)

struct afj_cuda_driver {
#define AFJ_CUDA_DECLARE(name) __typeof__(&name) name##_;
    AFJ_CUDA_CALLS(AFJ_CUDA_DECLARE)
#undef AFJ_CUDA_DECLARE
};

/* Opened and initialised once a process; valid after afj_cuda_open succeeded. */
extern struct afj_cuda_driver afj_cuda;

/* AFDEP_ERROR_DRIVER_MISSING with a sentence that says which library or call is missing;
 * AFDEP_ERROR_DEVICE where the driver is there and no GPU is. */
afdep_status afj_cuda_open(void);

/* The sentence of a failed driver call, of which `call` is the name. Returns `status`, or
 * AFDEP_ERROR_MEMORY where that is what the driver lacks, or AFDEP_ERROR_ORDER where a stream is
 * being recorded and the call cannot be. */
afdep_status afj_cuda_failed(CUresult result, const char *call, afdep_status status);

/* The same of a call that allocates: it is no part of a recording, so what it hears of one that an
 * earlier call spoilt is AFDEP_ERROR_ORDER, too. */
afdep_status afj_cuda_alloc_failed(CUresult result, const char *call);

#endif
