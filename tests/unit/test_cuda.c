/* test_cuda.c: the CUDA device on machines without a driver, without a GPU, and with an old driver.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cuda_driver.h"
#include "device/device.h"

/* With a driver these would test the machine; tests/gpu does that. */
static void need_no_driver(void)
{
    uint32_t count = 0;
    if (afj_device_cuda.count(&count) == AFDEP_OK)
        cr_skip_test("this machine has a CUDA driver");
    afj_status_clear();
}

Test(cuda, counting_without_a_driver_says_what_is_missing_and_what_to_do)
{
    uint32_t count = 7;
    need_no_driver();
    cr_assert_eq(afj_device_cuda.count(&count), AFDEP_ERROR_DRIVER_MISSING);
    cr_assert_eq(count, 0);
    cr_assert(strstr(afj_status_sentence(), "libcuda.so.1"), "%s", afj_status_sentence());
    cr_assert(strstr(afj_status_sentence(), "install"), "%s", afj_status_sentence());
}

Test(cuda, opening_without_a_driver_fails_the_same_for_every_ordinal)
{
    static const int32_t ordinals[] = {0, 1, -1, INT32_MAX, INT32_MIN};
    need_no_driver();
    for (size_t i = 0; i < sizeof ordinals / sizeof ordinals[0]; ++i) {
        afdep_device *device = NULL;
        cr_assert_eq(afj_device_cuda.open(ordinals[i], &device), AFDEP_ERROR_DRIVER_MISSING);
        cr_assert_null(device);
        cr_assert_neq(*afj_status_sentence(), '\0');
    }
}

Test(cuda, the_note_says_why_there_is_no_driver_and_leaves_no_sentence)
{
    char note[512] = "";
    need_no_driver();
    afj_device_cuda_note(note, sizeof note);
    cr_assert(strstr(note, "libcuda.so.1"), "%s", note);
    cr_assert_str_eq(afj_status_sentence(), "");
    memset(note, 'x', sizeof note);
    afj_device_cuda_note(note, 8);
    cr_assert_lt(strnlen(note, sizeof note), 8);
}

/* Load a driver of tests/support/fake_driver.c. The loader takes it for libcuda.so.1 from then on,
 * since that is its name. */
static void load_driver(const char *kind)
{
    char path[4096];
    const char *build = getenv("AFDEP_BUILD_DIR");
    snprintf(path, sizeof path, "%s/tests/driver-%s/libcuda.so.1", build ? build : ".", kind);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        cr_skip_test("%s", dlerror());
}

Test(cuda, a_driver_without_a_gpu_counts_no_devices)
{
    uint32_t count = 7;
    char note[512] = "";
    afdep_device *device = NULL;
    load_driver("no_device");
    cr_assert_eq(afj_device_cuda.count(&count), AFDEP_OK, "%s", afj_status_sentence());
    cr_expect_eq(count, 0);
    cr_expect_eq(afj_device_cuda.open(0, &device), AFDEP_ERROR_DEVICE);
    cr_expect_null(device);
    cr_expect_not_null(strstr(afj_status_sentence(), "lists 0 devices"), "%s",
                       afj_status_sentence());
    afj_device_cuda_note(note, sizeof note);
    cr_expect_not_null(strstr(note, ", 0 devices"), "%s", note);
}

Test(cuda, a_driver_that_has_only_the_first_event_timer_is_taken)
{
    uint32_t count = 7;
    load_driver("old");
    cr_assert_eq(afj_device_cuda.count(&count), AFDEP_OK, "%s", afj_status_sentence());
}

/* What the calls below answer, in place of a driver's. */
static CUresult answer;
static CUstreamCaptureStatus capturing;

static CUresult count_one(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}
static CUresult refuse_alloc(CUdeviceptr *address, size_t bytes)
{
    (void)address, (void)bytes;
    return answer;
}
static CUresult refuse_host_alloc(void **memory, size_t bytes, unsigned flags)
{
    (void)memory, (void)bytes, (void)flags;
    return answer;
}
static CUresult refuse_synchronize(void) { return answer; }
static CUresult name_error(CUresult error, const char **name)
{
    (void)error;
    *name = "CUDA_ERROR_OF_THE_TEST";
    return CUDA_SUCCESS;
}
static CUresult say_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = capturing;
    return CUDA_SUCCESS;
}

static afdep_device *open_fake_gpu(void)
{
    uint32_t count = 0;
    afdep_device *device = NULL;
    load_driver("old");
    cr_assert_eq(afj_device_cuda.count(&count), AFDEP_OK, "%s", afj_status_sentence());
    afj_cuda.cuDeviceGetCount_ = count_one;
    afj_cuda.cuMemAlloc_ = refuse_alloc;
    afj_cuda.cuMemHostAlloc_ = refuse_host_alloc;
    afj_cuda.cuCtxSynchronize_ = refuse_synchronize;
    afj_cuda.cuGetErrorName_ = name_error;
    afj_cuda.cuStreamIsCapturing_ = say_capturing;
    cr_assert_eq(afj_device_cuda.open(0, &device), AFDEP_OK, "%s", afj_status_sentence());
    return device;
}

Test(cuda, a_recording_that_another_library_began_is_named_where_it_is_in_the_way)
{
    static const CUresult answers[] = {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                       CUDA_ERROR_STREAM_CAPTURE_INVALIDATED};
    static const char words[] = "CUDA_ERROR_OF_THE_TEST: a stream is being recorded; make the "
                                "call, or create the buffers, before the recording begins";
    afdep_device *device = open_fake_gpu();
    void *memory = NULL;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; ++i) {
        answer = answers[i];
        cr_assert_eq(afj_device_cuda.alloc(device, 16, &memory), AFDEP_ERROR_ORDER);
        cr_assert(strstr(afj_status_sentence(), words), "%s", afj_status_sentence());
        cr_assert_eq(afj_device_cuda.host_alloc(device, 16, &memory), AFDEP_ERROR_ORDER);
        cr_assert(strstr(afj_status_sentence(), words), "%s", afj_status_sentence());
    }
    /* Of a recording that is no use any more, only a call that is no part of it is told so. */
    cr_assert_eq(afj_device_cuda.synchronize(device), AFDEP_ERROR_DEVICE);
    answer = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    cr_assert_eq(afj_device_cuda.synchronize(device), AFDEP_ERROR_ORDER);
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    cr_assert_eq(afj_device_cuda.alloc(device, 16, &memory), AFDEP_ERROR_MEMORY);
    afj_device_cuda.close(device);
}

Test(cuda, recordings_are_counted_until_they_or_their_streams_end)
{
    static int streams[2];
    afdep_device *device = open_fake_gpu();
    afdep_graph *graph = NULL;
    afdep_stream first = &streams[0], second = &streams[1];
    cr_assert(!afj_device_cuda.is_recording(device));
    cr_assert_eq(afj_device_cuda.capture_begin(device, first), AFDEP_OK);
    cr_assert_eq(afj_device_cuda.capture_begin(device, second), AFDEP_OK);
    capturing = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    cr_assert_eq(afj_device_cuda.capture_end(device, first, &graph), AFDEP_OK);
    afj_device_cuda.graph_destroy(graph);
    cr_assert(afj_device_cuda.is_recording(device));
    capturing = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    afj_device_cuda.stream_destroy(device, second);
    cr_assert(!afj_device_cuda.is_recording(device));
    /* One that was begun elsewhere was not counted. */
    cr_assert_eq(afj_device_cuda.capture_end(device, first, &graph), AFDEP_OK);
    afj_device_cuda.graph_destroy(graph);
    cr_assert(!afj_device_cuda.is_recording(device));
    afj_device_cuda.close(device);
}

Test(cuda, each_kind_has_its_table_and_no_other_number_has_one)
{
    cr_assert_eq(afj_device_kind(AFDEP_DEVICE_CUDA), &afj_device_cuda);
    cr_assert_eq(afj_device_kind(AFDEP_DEVICE_SIM), &afj_device_sim);
    cr_assert_null(afj_device_kind(0));
    cr_assert_null(afj_device_kind(3));
    cr_assert_null(afj_device_kind(UINT32_MAX));
}
