/* cuda.c: devices over the CUDA Driver API. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/status.h"
#include "device/cuda_driver.h"
#include "device/device.h"

enum { MOST_DEVICES = 128, DEFAULT_SHARED_BYTES = 48 * 1024, WARP_THREADS = 32 };

/* A GPU with its primary context, which is shared with whatever else in the process uses it. */
struct cuda_device {
    struct afdep_device base; /* first, so that an afdep_device is one of these */
    CUdevice device;
    CUcontext context;
    unsigned opens;
    atomic_uint recording; /* captures that capture_begin began */
};

struct afj_module {
    struct cuda_device *device;
    CUlibrary library;
    struct afj_kernel *kernels; /* resolved so far */
};

struct afj_kernel {
    struct cuda_device *device;
    CUfunction function;
    struct afj_kernel *next;
};

struct cuda_graph {
    struct afdep_graph base;
    struct cuda_device *device;
    CUgraphExec exec;
};

struct cuda_event {
    struct afdep_event base;
    struct cuda_device *device;
    CUevent event;
};

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_device *devices[MOST_DEVICES]; /* by ordinal, NULL where not open */

/* Call the driver; on failure return with a sentence. cuda.h maps some names to newer ones, which
 * only a macro that pastes them itself does not see. */
#define CU_AS(status, name, ...)                                                                   \
    do {                                                                                           \
        const CUresult result_ = afj_cuda.name##_(__VA_ARGS__);                                    \
        if (result_ != CUDA_SUCCESS)                                                               \
            return afj_cuda_failed(result_, #name, status);                                        \
    } while (0)
#define CU(name, ...)                                                                              \
    do {                                                                                           \
        const CUresult result_ = afj_cuda.name##_(__VA_ARGS__);                                    \
        if (result_ != CUDA_SUCCESS)                                                               \
            return afj_cuda_failed(result_, #name, AFDEP_ERROR_DEVICE);                            \
    } while (0)

static struct cuda_device *cuda_of(afdep_device *device) { return (struct cuda_device *)device; }

/* Make the device's context current. *former gets what to give back to `leave`; switching is
 * skipped when it is current already, as it is in a serving engine's own thread. */
static afdep_status enter(const struct cuda_device *device, CUcontext *former)
{
    CU(cuCtxGetCurrent, former);
    if (*former != device->context)
        CU(cuCtxSetCurrent, device->context);
    return AFDEP_OK;
}

static void leave(const struct cuda_device *device, CUcontext former)
{
    if (former != device->context)
        afj_cuda.cuCtxSetCurrent_(former);
}

/* Run one driver call inside the device's context. */
#define IN_CONTEXT(status, cuda, name, ...)                                                        \
    do {                                                                                           \
        CUcontext former_;                                                                         \
        AFJ_TRY(enter(cuda, &former_));                                                            \
        const CUresult result_ = afj_cuda.name##_(__VA_ARGS__);                                    \
        leave(cuda, former_);                                                                      \
        if (result_ != CUDA_SUCCESS)                                                               \
            return afj_cuda_failed(result_, #name, status);                                        \
    } while (0)

static afdep_status count_devices(uint32_t *count)
{
    int found = 0;
    *count = 0;
    const afdep_status status = afj_cuda_open();
    if (status == AFDEP_ERROR_DEVICE) {
        afj_status_clear(); /* that there is none is a count, too */
        return AFDEP_OK;
    }
    AFJ_TRY(status);
    CU(cuDeviceGetCount, &found);
    *count = found > 0 ? (uint32_t)found : 0;
    return AFDEP_OK;
}

static afdep_status attribute(CUdevice device, CUdevice_attribute which, uint32_t *value)
{
    int got = 0;
    CU(cuDeviceGetAttribute, &got, which, device);
    *value = got > 0 ? (uint32_t)got : 0;
    return AFDEP_OK;
}

static afdep_status read_facts(struct cuda_device *cuda)
{
    struct afj_device_facts *facts = &cuda->base.facts;
    uint32_t major = 0, minor = 0;
    CU(cuDeviceGetName, facts->name, (int)sizeof facts->name, cuda->device);
    AFJ_TRY(attribute(cuda->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    AFJ_TRY(attribute(cuda->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    AFJ_TRY(attribute(cuda->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts->processors));
    AFJ_TRY(attribute(cuda->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                      &facts->shared_bytes));
    /* Architectures whose own features are supported are compiled for with them. */
    const uint32_t number = (major * 10 + minor) % 1000;
    snprintf(facts->arch, sizeof facts->arch, "sm_%" PRIu32 "%s", number,
             number == 90 || number == 100 ? "a" : "");
    facts->queues = (uint32_t)afj_env_number(AFJ_ENV_CUDA_MAX_CONNECTIONS, 1, 32, 8);
    return AFDEP_OK;
}

static afdep_status open_new(int32_t ordinal, struct cuda_device **out)
{
    struct cuda_device *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for device %" PRId32, ordinal);
    cuda->base.kind = &afj_device_cuda;
    cuda->base.ordinal = ordinal;
    afdep_status status = AFDEP_OK;
    CUresult result = afj_cuda.cuDeviceGet_(&cuda->device, ordinal);
    if (result == CUDA_SUCCESS)
        status = read_facts(cuda);
    if (result == CUDA_SUCCESS && status == AFDEP_OK)
        result = afj_cuda.cuDevicePrimaryCtxRetain_(&cuda->context, cuda->device);
    if (result != CUDA_SUCCESS)
        status = afj_cuda_failed(result, "opening the device", AFDEP_ERROR_DEVICE);
    if (status != AFDEP_OK) {
        free(cuda);
        return status;
    }
    *out = cuda;
    return AFDEP_OK;
}

static afdep_status open_device(int32_t ordinal, afdep_device **device)
{
    uint32_t count = 0;
    AFJ_TRY(count_devices(&count));
    if (ordinal < 0 || (uint32_t)ordinal >= count || ordinal >= MOST_DEVICES)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "device ordinal is %" PRId32 "; the driver lists %" PRIu32 " devices",
                        ordinal, count);
    afdep_status status = AFDEP_OK;
    pthread_mutex_lock(&devices_lock);
    if (!devices[ordinal])
        status = open_new(ordinal, &devices[ordinal]);
    if (status == AFDEP_OK) {
        ++devices[ordinal]->opens;
        *device = &devices[ordinal]->base;
    }
    pthread_mutex_unlock(&devices_lock);
    return status;
}

static void close_device(afdep_device *device)
{
    struct cuda_device *cuda = cuda_of(device);
    pthread_mutex_lock(&devices_lock);
    if (--cuda->opens == 0) {
        devices[device->ordinal] = NULL;
        afj_cuda.cuDevicePrimaryCtxRelease_(cuda->device);
        free(cuda);
    }
    pthread_mutex_unlock(&devices_lock);
}

static afdep_status alloc(afdep_device *device, size_t bytes, void **memory)
{
    CUdeviceptr address = 0;
    CUcontext former;
    AFJ_TRY(enter(cuda_of(device), &former));
    const CUresult result = afj_cuda.cuMemAlloc_(&address, bytes);
    leave(cuda_of(device), former);
    if (result != CUDA_SUCCESS)
        return afj_fail(afj_cuda_alloc_failed(result, "cuMemAlloc"),
                        "device %" PRId32 ", %zu bytes: %s", device->ordinal, bytes,
                        afj_status_sentence());
    *memory = (void *)(uintptr_t)address;
    return AFDEP_OK;
}

static void free_memory(afdep_device *device, void *memory)
{
    CUcontext former;
    if (enter(cuda_of(device), &former) != AFDEP_OK)
        return;
    afj_cuda.cuMemFree_((CUdeviceptr)(uintptr_t)memory);
    leave(cuda_of(device), former);
}

static afdep_status host_alloc(afdep_device *device, size_t bytes, void **memory)
{
    CUcontext former;
    AFJ_TRY(enter(cuda_of(device), &former));
    const CUresult result = afj_cuda.cuMemHostAlloc_(
        memory, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    leave(cuda_of(device), former);
    if (result != CUDA_SUCCESS)
        return afj_cuda_alloc_failed(result, "cuMemHostAlloc");
    memset(*memory, 0, bytes);
    return AFDEP_OK;
}

static void host_free(afdep_device *device, void *memory)
{
    CUcontext former;
    if (enter(cuda_of(device), &former) != AFDEP_OK)
        return;
    afj_cuda.cuMemFreeHost_(memory);
    leave(cuda_of(device), former);
}

static afdep_status copy(afdep_device *device, void *to, const void *from, size_t bytes,
                         afdep_stream stream)
{
    /* With unified addressing the driver tells host from device by the address. */
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuMemcpyAsync, (CUdeviceptr)(uintptr_t)to,
               (CUdeviceptr)(uintptr_t)from, bytes, (CUstream)stream);
    return AFDEP_OK;
}

static afdep_status fill(afdep_device *device, void *memory, uint8_t value, size_t bytes,
                         afdep_stream stream)
{
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuMemsetD8Async, (CUdeviceptr)(uintptr_t)memory,
               value, bytes, (CUstream)stream);
    return AFDEP_OK;
}

static afdep_status stream_create(afdep_device *device, afdep_stream *stream)
{
    CUstream created = NULL;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuStreamCreate, &created,
               CU_STREAM_NON_BLOCKING);
    *stream = created;
    return AFDEP_OK;
}

/* One recording fewer. A recording may have been begun elsewhere: then it was never counted. */
static void count_recording_ended(struct cuda_device *cuda)
{
    unsigned count = atomic_load(&cuda->recording);
    while (count > 0 && !atomic_compare_exchange_weak(&cuda->recording, &count, count - 1))
        ;
}

/* A recording ends with its stream, too. */
static void stream_destroy(afdep_device *device, afdep_stream stream)
{
    CUcontext former;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (enter(cuda_of(device), &former) != AFDEP_OK)
        return;
    if (atomic_load(&cuda_of(device)->recording) > 0 &&
        afj_cuda.cuStreamIsCapturing_((CUstream)stream, &status) == CUDA_SUCCESS &&
        status != CU_STREAM_CAPTURE_STATUS_NONE)
        count_recording_ended(cuda_of(device));
    afj_cuda.cuStreamDestroy_((CUstream)stream);
    leave(cuda_of(device), former);
}

static afdep_status stream_synchronize(afdep_device *device, afdep_stream stream)
{
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuStreamSynchronize, (CUstream)stream);
    return AFDEP_OK;
}

/* Nanoseconds of the clock that host functions wait by. */
static uint64_t host_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void CUDA_CB wait_until(void *argument)
{
    const uint64_t ns = (uint64_t)(uintptr_t)argument;
    const struct timespec until = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* The stream waits for a function on the host, so no multiprocessor is kept busy. The driver runs
 * such functions one after another: each waits for a point in time rather than for a span, so that
 * several streams are let go together. */
static afdep_status stream_delay(afdep_device *device, afdep_stream stream, uint32_t us)
{
    const uint64_t until = host_ns() + us * UINT64_C(1000);
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuLaunchHostFunc, (CUstream)stream, wait_until,
               (void *)(uintptr_t)until);
    return AFDEP_OK;
}

static afdep_status stream_capturing(afdep_device *device, afdep_stream stream, bool *capturing)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuStreamIsCapturing, (CUstream)stream, &status);
    *capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return AFDEP_OK;
}

static afdep_status synchronize(afdep_device *device)
{
    CUcontext former;
    AFJ_TRY(enter(cuda_of(device), &former));
    const CUresult result = afj_cuda.cuCtxSynchronize_();
    leave(cuda_of(device), former);
    return result == CUDA_SUCCESS ? AFDEP_OK
                                  : afj_cuda_failed(result, "cuCtxSynchronize", AFDEP_ERROR_DEVICE);
}

static afdep_status capture_begin(afdep_device *device, afdep_stream stream)
{
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuStreamBeginCapture, (CUstream)stream,
               CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    atomic_fetch_add(&cuda_of(device)->recording, 1);
    return AFDEP_OK;
}

static bool is_recording(const afdep_device *device)
{
    return atomic_load(&((const struct cuda_device *)device)->recording) != 0;
}

static afdep_status instantiate(struct cuda_graph *graph, CUgraph recorded, afdep_stream stream)
{
    CU(cuGraphInstantiate, &graph->exec, recorded, 0);
    /* Uploaded now, so that the first launch does not pay for it beside a polling kernel. */
    CU(cuGraphUpload, graph->exec, (CUstream)stream);
    return AFDEP_OK;
}

static afdep_status capture_end(afdep_device *device, afdep_stream stream, afdep_graph **graph)
{
    struct cuda_device *cuda = cuda_of(device);
    CUgraph recorded = NULL;
    bool capturing = false;
    CUcontext former;
    AFJ_TRY(stream_capturing(device, stream, &capturing));
    AFJ_TRY(enter(cuda, &former));
    const CUresult result = afj_cuda.cuStreamEndCapture_((CUstream)stream, &recorded);
    leave(cuda, former);
    /* Ended also where the recording is of no use, but not by a stream or thread that did not begin
     * it. */
    if (capturing && result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
        result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        count_recording_ended(cuda);
    if (result != CUDA_SUCCESS)
        return afj_cuda_failed(result, "cuStreamEndCapture", AFDEP_ERROR_DEVICE);
    struct cuda_graph *made = calloc(1, sizeof *made);
    afdep_status status = made ? AFDEP_OK : afj_fail(AFDEP_ERROR_MEMORY, "no memory for a graph");
    if (status == AFDEP_OK)
        status = enter(cuda, &former);
    if (status == AFDEP_OK) {
        made->base.kind = &afj_device_cuda;
        made->device = cuda;
        status = instantiate(made, recorded, stream);
        leave(cuda, former);
    }
    afj_cuda.cuGraphDestroy_(recorded);
    if (status != AFDEP_OK) {
        if (made && made->exec)
            afj_cuda.cuGraphExecDestroy_(made->exec);
        free(made);
        return status;
    }
    *graph = &made->base;
    return AFDEP_OK;
}

static afdep_status graph_launch(afdep_graph *graph, afdep_stream stream)
{
    struct cuda_graph *made = (struct cuda_graph *)graph;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, made->device, cuGraphLaunch, made->exec, (CUstream)stream);
    return AFDEP_OK;
}

static void graph_destroy(afdep_graph *graph)
{
    struct cuda_graph *made = (struct cuda_graph *)graph;
    afj_cuda.cuGraphExecDestroy_(made->exec);
    free(made);
}

static afdep_status event_create(afdep_device *device, afdep_event **event)
{
    struct cuda_event *made = calloc(1, sizeof *made);
    if (!made)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for an event");
    made->base.kind = &afj_device_cuda;
    made->device = cuda_of(device);
    CUcontext former;
    afdep_status status = enter(made->device, &former);
    if (status == AFDEP_OK) {
        const CUresult result = afj_cuda.cuEventCreate_(&made->event, CU_EVENT_DEFAULT);
        leave(made->device, former);
        if (result != CUDA_SUCCESS)
            status = afj_cuda_failed(result, "cuEventCreate", AFDEP_ERROR_DEVICE);
    }
    if (status != AFDEP_OK) {
        free(made);
        return status;
    }
    *event = &made->base;
    return AFDEP_OK;
}

static void event_destroy(afdep_event *event)
{
    struct cuda_event *made = (struct cuda_event *)event;
    afj_cuda.cuEventDestroy_(made->event);
    free(made);
}

static afdep_status event_record(afdep_event *event, afdep_stream stream)
{
    struct cuda_event *made = (struct cuda_event *)event;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, made->device, cuEventRecord, made->event, (CUstream)stream);
    return AFDEP_OK;
}

static afdep_status stream_wait(afdep_device *device, afdep_stream stream, afdep_event *event)
{
    struct cuda_event *awaited = (struct cuda_event *)event;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, cuda_of(device), cuStreamWaitEvent, (CUstream)stream,
               awaited->event, 0);
    return AFDEP_OK;
}

static afdep_status event_elapsed(afdep_event *from, afdep_event *to, double *us)
{
    struct cuda_event *first = (struct cuda_event *)from, *second = (struct cuda_event *)to;
    float ms = 0;
    IN_CONTEXT(AFDEP_ERROR_DEVICE, first->device, cuEventElapsedTime, &ms, first->event,
               second->event);
    *us = (double)ms * 1e3;
    return AFDEP_OK;
}

static void module_unload(struct afj_module *module)
{
    CUcontext former;
    if (enter(module->device, &former) == AFDEP_OK) {
        afj_cuda.cuLibraryUnload_(module->library);
        leave(module->device, former);
    }
    while (module->kernels) {
        struct afj_kernel *next = module->kernels->next;
        free(module->kernels);
        module->kernels = next;
    }
    free(module);
}

static afdep_status module_load(afdep_device *device, const void *image, size_t bytes,
                                struct afj_module **module)
{
    (void)bytes; /* the image says its own length; it was checked before */
    struct afj_module *made = calloc(1, sizeof *made);
    if (!made)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a module");
    made->device = cuda_of(device);
    CUcontext former;
    afdep_status status = enter(made->device, &former);
    if (status == AFDEP_OK) {
        const CUresult result =
            afj_cuda.cuLibraryLoadData_(&made->library, image, NULL, NULL, 0, NULL, NULL, 0);
        leave(made->device, former);
        if (result != CUDA_SUCCESS)
            status = afj_cuda_failed(result, "cuLibraryLoadData", AFDEP_ERROR_LOAD);
    }
    if (status != AFDEP_OK) {
        free(made);
        return status;
    }
    *module = made;
    return AFDEP_OK;
}

/* Resolve and load: a lazy load beside a kernel that polls would wait for it for ever. */
static afdep_status resolve(struct afj_module *module, const char *entry, size_t arguments_bytes,
                            uint32_t shared_bytes, struct afj_kernel *kernel)
{
    CUkernel found = NULL;
    size_t offset = 0, size = 0;
    CU_AS(AFDEP_ERROR_LOAD, cuLibraryGetKernel, &found, module->library, entry);
    CU_AS(AFDEP_ERROR_LOAD, cuKernelGetParamInfo, found, 0, &offset, &size);
    if (offset != 0 || size != arguments_bytes)
        return afj_fail(AFDEP_ERROR_LOAD,
                        "%s takes %zu bytes of arguments at offset %zu; the host has %zu", entry,
                        size, offset, arguments_bytes);
    CU_AS(AFDEP_ERROR_LOAD, cuKernelGetFunction, &kernel->function, found);
    CU_AS(AFDEP_ERROR_LOAD, cuFuncLoad, kernel->function);
    if (shared_bytes > module->device->base.facts.shared_bytes)
        return afj_fail(
            AFDEP_ERROR_RESOURCES,
            "%s needs %" PRIu32 " bytes of shared memory; device %" PRId32 " gives %" PRIu32, entry,
            shared_bytes, module->device->base.ordinal, module->device->base.facts.shared_bytes);
    if (shared_bytes > DEFAULT_SHARED_BYTES)
        CU_AS(AFDEP_ERROR_LOAD, cuFuncSetAttribute, kernel->function,
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes);
    return AFDEP_OK;
}

static afdep_status get_kernel(struct afj_module *module, const char *entry, size_t arguments_bytes,
                               uint32_t shared_bytes, struct afj_kernel **kernel)
{
    struct afj_kernel *made = calloc(1, sizeof *made);
    if (!made)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for kernel %s", entry);
    made->device = module->device;
    CUcontext former;
    afdep_status status = enter(module->device, &former);
    if (status == AFDEP_OK) {
        status = resolve(module, entry, arguments_bytes, shared_bytes, made);
        leave(module->device, former);
    }
    if (status != AFDEP_OK) {
        free(made);
        return status;
    }
    made->next = module->kernels;
    module->kernels = made;
    *kernel = made;
    return AFDEP_OK;
}

static afdep_status launch(struct afj_kernel *kernel, const struct afj_launch *launch,
                           afdep_stream stream)
{
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = launch->ctas;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = launch->warps * WARP_THREADS;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = launch->shared_bytes;
    config.hStream = (CUstream)stream;
    void *arguments[] = {(void *)(uintptr_t)launch->arguments};
    IN_CONTEXT(AFDEP_ERROR_DEVICE, kernel->device, cuLaunchKernelEx, &config, kernel->function,
               arguments, NULL);
    return AFDEP_OK;
}

static afdep_status enable_peer(afdep_device *device, afdep_device *peer)
{
    const struct cuda_device *from = cuda_of(device), *to = cuda_of(peer);
    int can = 0;
    if (from->device == to->device)
        return AFDEP_OK;
    CU(cuDeviceCanAccessPeer, &can, from->device, to->device);
    if (!can)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "device %" PRId32 " cannot reach the memory of device %" PRId32
                        ": they are in no common NVLink or PCIe domain",
                        device->ordinal, peer->ordinal);
    CUcontext former;
    AFJ_TRY(enter(from, &former));
    const CUresult result = afj_cuda.cuCtxEnablePeerAccess_(to->context, 0);
    leave(from, former);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return afj_cuda_failed(result, "cuCtxEnablePeerAccess", AFDEP_ERROR_DEVICE);
    return AFDEP_OK;
}

const struct afj_device_kind afj_device_cuda = {
    .count = count_devices,
    .open = open_device,
    .close = close_device,
    .alloc = alloc,
    .free = free_memory,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .copy = copy,
    .fill = fill,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_delay = stream_delay,
    .stream_capturing = stream_capturing,
    .stream_wait = stream_wait,
    .is_recording = is_recording,
    .synchronize = synchronize,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_elapsed = event_elapsed,
    .module_load = module_load,
    .module_unload = module_unload,
    .kernel = get_kernel,
    .launch = launch,
    .enable_peer = enable_peer,
};

void afj_device_cuda_note(char *note, size_t size)
{
    uint32_t count = 0;
    int version = 0;
    if (count_devices(&count) != AFDEP_OK) {
        snprintf(note, size, "%s", afj_status_sentence());
        afj_status_clear();
        return;
    }
    afj_cuda.cuDriverGetVersion_(&version);
    snprintf(note, size, "CUDA driver %d.%d, %" PRIu32 " device%s", version / 1000,
             version % 1000 / 10, count, count == 1 ? "" : "s");
}
