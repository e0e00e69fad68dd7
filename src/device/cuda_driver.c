/* cuda_driver.c: the entry points of the CUDA driver, opened at run time. */
#include "device/cuda_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/dl.h"

struct afj_cuda_driver afj_cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why_not[1024]; /* "" once the driver can be used */
static afdep_status opened = AFDEP_ERROR_DRIVER_MISSING;

/* The symbol behind a name: cuMemAlloc is cuMemAlloc_v2 in cuda.h. */
#define SYMBOL_OF(name) #name
#define SYMBOL(name) SYMBOL_OF(name)

static void *find_call(struct afj_dl *library, const char *symbol)
{
    void *found = afj_dl_symbol(library, symbol);
    /* Drivers before 12.8 have this one only under its first name; it takes and gives the same. */
    if (!found && strcmp(symbol, "cuEventElapsedTime_v2") == 0)
        found = afj_dl_symbol(library, "cuEventElapsedTime");
    return found;
}

static void open_driver(void)
{
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
    char note[768];
    struct afj_dl *library = afj_dl_open(names, 2, note, sizeof note);
    if (!library) {
        snprintf(why_not, sizeof why_not, "no CUDA driver: %s; install the NVIDIA driver", note);
        return;
    }
#define FIND(name)                                                                                 \
    *(void **)&afj_cuda.name##_ = find_call(library, SYMBOL(name));                                \
    if (!afj_cuda.name##_) {                                                                       \
        snprintf(why_not, sizeof why_not,                                                          \
                 "the CUDA driver has no %s: it is too old for this library; install a newer one", \
                 SYMBOL(name));                                                                    \
        return;                                                                                    \
    }
    AFJ_CUDA_CALLS(FIND)
#undef FIND
    const CUresult result = afj_cuda.cuInit_(0);
    if (result == CUDA_SUCCESS) {
        opened = AFDEP_OK;
    } else if (result == CUDA_ERROR_NO_DEVICE) {
        opened = AFDEP_ERROR_DEVICE;
        snprintf(why_not, sizeof why_not, "there is no device: the CUDA driver finds none");
    } else {
        const char *name = NULL, *text = NULL;
        afj_cuda.cuGetErrorName_(result, &name);
        afj_cuda.cuGetErrorString_(result, &text);
        snprintf(why_not, sizeof why_not, "the CUDA driver does not start: cuInit gives %s (%s)",
                 name ? name : "an unknown error", text ? text : "no text");
    }
}

afdep_status afj_cuda_open(void)
{
    pthread_once(&once, open_driver);
    return opened == AFDEP_OK ? AFDEP_OK : afj_fail(opened, "%s", why_not);
}

/* A recording that the caller's own runtime began is only seen where it is in the way. */
static afdep_status fail_for_recording(CUresult result, const char *call)
{
    const char *name = NULL;
    afj_cuda.cuGetErrorName_(result, &name);
    return afj_fail(AFDEP_ERROR_ORDER,
                    "%s gives %s: a stream is being recorded; make the call, or create the "
                    "buffers, before the recording begins",
                    call, name ? name : "an unknown error");
}

afdep_status afj_cuda_failed(CUresult result, const char *call, afdep_status status)
{
    const char *name = NULL, *text = NULL;
    if (result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ||
        result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return fail_for_recording(result, call);
    afj_cuda.cuGetErrorName_(result, &name);
    afj_cuda.cuGetErrorString_(result, &text);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        status = AFDEP_ERROR_MEMORY;
    return afj_fail(status, "%s gives %s (%s)", call, name ? name : "an unknown error",
                    text ? text : "no text");
}

afdep_status afj_cuda_alloc_failed(CUresult result, const char *call)
{
    return result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               ? fail_for_recording(result, call)
               : afj_cuda_failed(result, call, AFDEP_ERROR_DEVICE);
}
