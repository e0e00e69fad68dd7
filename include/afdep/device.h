/* device.h: memory, streams and graphs over both kinds of device, for callers without a runtime of
 * their own. A caller that has one (PyTorch, the CUDA runtime) passes its own pointers and streams
 * to the exchange calls instead. */
#ifndef AFDEP_DEVICE_H
#define AFDEP_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <afdep/config.h>
#include <afdep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One GPU, or one simulated device. Owned by a group, or by whoever opened it. */
typedef struct afdep_device afdep_device;

/** A stream. On CUDA a CUstream or cudaStream_t as it is; NULL is the default stream. */
typedef void *afdep_stream;

/** A captured sequence of launches, ready to run again. */
typedef struct afdep_graph afdep_graph;

/** A point in a stream with a time. */
typedef struct afdep_event afdep_event;

/**
 * Count the devices of a kind. The sim device counts 128.
 * @retval AFDEP_ERROR_DRIVER_MISSING kind is CUDA and there is no driver; *count is then 0.
 */
AFDEP_API afdep_status afdep_device_count(afdep_device_kind kind, uint32_t *count);

/** The device's name, for instance "NVIDIA H200" or "sim". Valid while the device is open. */
AFDEP_API const char *afdep_device_name(const afdep_device *device);

/** The device's architecture, for instance "sm_90a"; "x86_64" on the sim device. */
AFDEP_API const char *afdep_device_arch(const afdep_device *device);

/** Allocate `bytes` on the device, aligned to 256 bytes, content undefined. Free with
 * afdep_device_free. */
AFDEP_API afdep_status afdep_device_alloc(afdep_device *device, size_t bytes, void **memory);

/** Free memory of afdep_device_alloc. NULL is fine. No stream may still use it. */
AFDEP_API void afdep_device_free(afdep_device *device, void *memory);

/**
 * Copy `bytes` between host and device, or inside the device, in stream order.
 * Both sides are borrowed until the stream has run the copy.
 */
AFDEP_API afdep_status afdep_device_copy(afdep_device *device, void *to, const void *from,
                                         size_t bytes, afdep_stream stream);

/** Set `bytes` bytes of device memory to `value`, in stream order. */
AFDEP_API afdep_status afdep_device_fill(afdep_device *device, void *memory, uint8_t value,
                                         size_t bytes, afdep_stream stream);

/** Create a stream that does not wait for the default stream. Destroy with afdep_stream_destroy. */
AFDEP_API afdep_status afdep_stream_create(afdep_device *device, afdep_stream *stream);

/** Destroy a stream of afdep_stream_create; work already in it still runs. NULL is fine. */
AFDEP_API void afdep_stream_destroy(afdep_device *device, afdep_stream stream);

/**
 * Wait until the stream has run everything in it. On the sim device this is where kernels run:
 * those of all devices, until this stream is empty.
 */
AFDEP_API afdep_status afdep_stream_synchronize(afdep_device *device, afdep_stream stream);

/** Wait until every stream of the device is empty. */
AFDEP_API afdep_status afdep_device_synchronize(afdep_device *device);

/** Record what this thread puts into the stream from now on, instead of running it. */
AFDEP_API afdep_status afdep_capture_begin(afdep_device *device, afdep_stream stream);

/**
 * End the recording and make it ready to run.
 * @param graph out; destroy with afdep_graph_destroy.
 */
AFDEP_API afdep_status afdep_capture_end(afdep_device *device, afdep_stream stream,
                                         afdep_graph **graph);

/** Run a graph in stream order. */
AFDEP_API afdep_status afdep_graph_launch(afdep_graph *graph, afdep_stream stream);

/** Destroy a graph. NULL is fine. */
AFDEP_API void afdep_graph_destroy(afdep_graph *graph);

/** Create an event. Destroy with afdep_event_destroy. */
AFDEP_API afdep_status afdep_event_create(afdep_device *device, afdep_event **event);

/** Destroy an event. NULL is fine. */
AFDEP_API void afdep_event_destroy(afdep_event *event);

/** Mark the stream's present end with the event. */
AFDEP_API afdep_status afdep_event_record(afdep_event *event, afdep_stream stream);

/**
 * Time between two events that the device has passed, in microseconds. On the sim device the time
 * is the scheduler's own and says nothing about any machine.
 */
AFDEP_API afdep_status afdep_event_elapsed(afdep_event *from, afdep_event *to, double *us);

/** Hold the stream back until `us` microseconds from now, so that launches queue up behind it. Not
 * inside a capture. */
AFDEP_API afdep_status afdep_stream_delay(afdep_device *device, afdep_stream stream, uint32_t us);

#ifdef __cplusplus
}
#endif

#endif
