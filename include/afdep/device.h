/* device.h: memory, streams and graphs over both kinds of device, for callers without a runtime of
 * their own. A caller that has one (PyTorch, the CUDA runtime) passes its own pointers and streams
 * to the exchange calls instead. Calls that return a status refuse a NULL that is not said to be
 * fine, with AFDEP_ERROR_ARGUMENT. */
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
 * Count the devices of a kind. The sim device counts 128; a driver without a GPU counts 0.
 * @param kind  CUDA or sim.
 * @param count out; 0 after a failure.
 * @retval AFDEP_ERROR_ARGUMENT       count is NULL, or there is no such kind.
 * @retval AFDEP_ERROR_DRIVER_MISSING kind is CUDA and there is no driver.
 */
AFDEP_API afdep_status afdep_device_count(afdep_device_kind kind, uint32_t *count);

/**
 * The device's name, for instance "NVIDIA H200" or "sim".
 * @return a string of the device, valid while it is open; "" for NULL.
 */
AFDEP_API const char *afdep_device_name(const afdep_device *device);

/**
 * The device's architecture, for instance "sm_90a"; that of the CPU, for instance "x86_64", on the
 * sim device.
 * @return a string of the device, valid while it is open; "" for NULL.
 */
AFDEP_API const char *afdep_device_arch(const afdep_device *device);

/**
 * Allocate device memory, content undefined. Waits for nothing on the sim device; on CUDA it may
 * wait for the device.
 * @param bytes  at least 1.
 * @param memory out, aligned to 256 bytes; the caller's until afdep_device_free.
 * @retval AFDEP_ERROR_MEMORY the device has no `bytes` left.
 */
AFDEP_API afdep_status afdep_device_alloc(afdep_device *device, size_t bytes, void **memory);

/**
 * Free memory of afdep_device_alloc. May wait for the device.
 * @param memory no stream may still use it; NULL is fine.
 */
AFDEP_API void afdep_device_free(afdep_device *device, void *memory);

/**
 * Copy between host and device, or inside the device, in stream order.
 * @param to, from [bytes], in host memory or memory of this device; borrowed until the stream has
 *                 run the copy. Host memory that is not pinned may make the call wait.
 * @retval AFDEP_ERROR_DEVICE the driver refused, for instance a pointer that it does not know.
 */
AFDEP_API afdep_status afdep_device_copy(afdep_device *device, void *to, const void *from,
                                         size_t bytes, afdep_stream stream);

/**
 * Set every byte of a range to one value, in stream order.
 * @param memory [bytes] of the device; borrowed until the stream has run the call.
 * @retval AFDEP_ERROR_DEVICE the driver refused.
 */
AFDEP_API afdep_status afdep_device_fill(afdep_device *device, void *memory, uint8_t value,
                                         size_t bytes, afdep_stream stream);

/**
 * Create a stream that does not wait for the default stream.
 * @param stream out; the caller's until afdep_stream_destroy.
 * @retval AFDEP_ERROR_DEVICE the driver refused.
 */
AFDEP_API afdep_status afdep_stream_create(afdep_device *device, afdep_stream *stream);

/**
 * Destroy a stream of afdep_stream_create. Does not wait: work already in it still runs.
 * @param stream NULL is fine.
 */
AFDEP_API void afdep_stream_destroy(afdep_device *device, afdep_stream stream);

/**
 * Wait until the stream has run everything in it. On the sim device this is where kernels run:
 * those of all devices, until this stream is empty.
 * @param stream one of this device; NULL is its default stream.
 * @retval AFDEP_ERROR_DEVICE   a kernel or a copy in it failed.
 * @retval AFDEP_ERROR_INTERNAL on the sim device: a kernel broke a rule of the machine.
 */
AFDEP_API afdep_status afdep_stream_synchronize(afdep_device *device, afdep_stream stream);

/**
 * Wait until every stream of the device is empty.
 * @retval AFDEP_ERROR_DEVICE   a kernel or a copy failed.
 * @retval AFDEP_ERROR_INTERNAL as afdep_stream_synchronize.
 */
AFDEP_API afdep_status afdep_device_synchronize(afdep_device *device);

/**
 * Record what this thread puts into the stream from now on, instead of running it.
 * @param stream one of afdep_stream_create: the default stream cannot be recorded.
 * @retval AFDEP_ERROR_DEVICE the stream is being recorded already, or cannot be.
 */
AFDEP_API afdep_status afdep_capture_begin(afdep_device *device, afdep_stream stream);

/**
 * End the recording and make it ready to run.
 * @param graph out; the caller's until afdep_graph_destroy. It keeps the pointers that the recorded
 *              calls were given.
 * @retval AFDEP_ERROR_DEVICE nothing was being recorded, the recording began in another stream, a
 *                            stream that joined it is not waited for, or what was recorded cannot
 *                            be run again.
 */
AFDEP_API afdep_status afdep_capture_end(afdep_device *device, afdep_stream stream,
                                         afdep_graph **graph);

/**
 * Run a graph in stream order. A graph does not run beside itself: a second launch waits for the
 * first.
 * @param graph  borrowed until the stream has run it.
 * @param stream one of the graph's device.
 * @retval AFDEP_ERROR_DEVICE the driver refused.
 */
AFDEP_API afdep_status afdep_graph_launch(afdep_graph *graph, afdep_stream stream);

/**
 * Destroy a graph that no stream still runs.
 * @param graph NULL is fine.
 */
AFDEP_API void afdep_graph_destroy(afdep_graph *graph);

/**
 * Create an event.
 * @param event out; the caller's until afdep_event_destroy.
 * @retval AFDEP_ERROR_DEVICE the driver refused.
 */
AFDEP_API afdep_status afdep_event_create(afdep_device *device, afdep_event **event);

/**
 * Destroy an event.
 * @param event NULL is fine.
 */
AFDEP_API void afdep_event_destroy(afdep_event *event);

/**
 * Mark the stream's present end with the event.
 * @param stream one of the event's device.
 * @retval AFDEP_ERROR_DEVICE the driver refused.
 */
AFDEP_API afdep_status afdep_event_record(afdep_event *event, afdep_stream stream);

/**
 * Let what comes into a stream from now on wait for an event, which may be of another stream. While
 * one of the two streams is being recorded, the other joins the recording: the graph then has
 * branches, and the recording stream must wait for their ends before its own end.
 * @param stream one of the device, which may be another than the event's.
 * @param event  its last record before the call is waited for, none if there is none. It may be
 *               destroyed or recorded again at once.
 * @retval AFDEP_ERROR_ARGUMENT the event is of another kind of device.
 * @retval AFDEP_ERROR_DEVICE   the last record is in a recording that has ended, or in none or
 *                              another while the stream is being recorded; or the driver refused.
 */
AFDEP_API afdep_status afdep_stream_wait(afdep_device *device, afdep_stream stream,
                                         afdep_event *event);

/**
 * Time between two events that the device has passed. On the sim device the time is the scheduler's
 * own and says nothing about any machine.
 * @param us out, microseconds.
 * @retval AFDEP_ERROR_DEVICE an event was not recorded, or the device has not passed it.
 */
AFDEP_API afdep_status afdep_event_elapsed(afdep_event *from, afdep_event *to, double *us);

/**
 * Hold the stream back, so that launches queue up behind it. Not inside a capture.
 * @param us microseconds from now.
 * @retval AFDEP_ERROR_DEVICE the driver refused, or the stream is being recorded.
 */
AFDEP_API afdep_status afdep_stream_delay(afdep_device *device, afdep_stream stream, uint32_t us);

#ifdef __cplusplus
}
#endif

#endif
