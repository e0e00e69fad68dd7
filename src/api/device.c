/* device.c: the exported device calls: check the arguments, call the kind's table. */
#include <afdep/device.h>

#include <inttypes.h>

#include "base/status.h"
#include "device/device.h"

/* Clear the sentence; refuse a NULL. */
static afdep_status enter(const void *object, const char *name)
{
    afj_status_clear();
    return object ? AFDEP_OK : afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", name);
}

afdep_status afdep_device_count(afdep_device_kind kind, uint32_t *count)
{
    AFJ_TRY(enter(count, "count"));
    *count = 0;
    const struct afj_device_kind *table = afj_device_kind((uint32_t)kind);
    if (!table)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "device kind is %d; it must be CUDA (%d) or sim (%d)",
                        (int)kind, AFDEP_DEVICE_CUDA, AFDEP_DEVICE_SIM);
    return table->count(count);
}

const char *afdep_device_name(const afdep_device *device)
{
    return device ? device->facts.name : "";
}

const char *afdep_device_arch(const afdep_device *device)
{
    return device ? device->facts.arch : "";
}

afdep_status afdep_device_alloc(afdep_device *device, size_t bytes, void **memory)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(memory, "memory"));
    *memory = NULL;
    if (bytes == 0)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "bytes is 0; ask for at least 1");
    return device->kind->alloc(device, bytes, memory);
}

void afdep_device_free(afdep_device *device, void *memory)
{
    if (device && memory)
        device->kind->free(device, memory);
}

afdep_status afdep_device_copy(afdep_device *device, void *to, const void *from, size_t bytes,
                               afdep_stream stream)
{
    AFJ_TRY(enter(device, "device"));
    if (bytes == 0)
        return AFDEP_OK;
    AFJ_TRY(enter(to, "to"));
    AFJ_TRY(enter(from, "from"));
    return device->kind->copy(device, to, from, bytes, stream);
}

afdep_status afdep_device_fill(afdep_device *device, void *memory, uint8_t value, size_t bytes,
                               afdep_stream stream)
{
    AFJ_TRY(enter(device, "device"));
    if (bytes == 0)
        return AFDEP_OK;
    AFJ_TRY(enter(memory, "memory"));
    return device->kind->fill(device, memory, value, bytes, stream);
}

afdep_status afdep_stream_create(afdep_device *device, afdep_stream *stream)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(stream, "stream"));
    *stream = NULL;
    return device->kind->stream_create(device, stream);
}

void afdep_stream_destroy(afdep_device *device, afdep_stream stream)
{
    if (device && stream)
        device->kind->stream_destroy(device, stream);
}

afdep_status afdep_stream_synchronize(afdep_device *device, afdep_stream stream)
{
    AFJ_TRY(enter(device, "device"));
    return device->kind->stream_synchronize(device, stream);
}

afdep_status afdep_device_synchronize(afdep_device *device)
{
    AFJ_TRY(enter(device, "device"));
    return device->kind->synchronize(device);
}

afdep_status afdep_capture_begin(afdep_device *device, afdep_stream stream)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(stream, "stream"));
    return device->kind->capture_begin(device, stream);
}

afdep_status afdep_capture_end(afdep_device *device, afdep_stream stream, afdep_graph **graph)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(stream, "stream"));
    AFJ_TRY(enter(graph, "graph"));
    *graph = NULL;
    return device->kind->capture_end(device, stream, graph);
}

afdep_status afdep_graph_launch(afdep_graph *graph, afdep_stream stream)
{
    AFJ_TRY(enter(graph, "graph"));
    return graph->kind->graph_launch(graph, stream);
}

void afdep_graph_destroy(afdep_graph *graph)
{
    if (graph)
        graph->kind->graph_destroy(graph);
}

afdep_status afdep_event_create(afdep_device *device, afdep_event **event)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(event, "event"));
    *event = NULL;
    return device->kind->event_create(device, event);
}

void afdep_event_destroy(afdep_event *event)
{
    if (event)
        event->kind->event_destroy(event);
}

afdep_status afdep_event_record(afdep_event *event, afdep_stream stream)
{
    AFJ_TRY(enter(event, "event"));
    return event->kind->event_record(event, stream);
}

afdep_status afdep_stream_wait(afdep_device *device, afdep_stream stream, afdep_event *event)
{
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(enter(event, "event"));
    if (device->kind != event->kind)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "the event is of another kind of device");
    return device->kind->stream_wait(device, stream, event);
}

afdep_status afdep_event_elapsed(afdep_event *from, afdep_event *to, double *us)
{
    AFJ_TRY(enter(from, "from"));
    AFJ_TRY(enter(to, "to"));
    AFJ_TRY(enter(us, "us"));
    if (from->kind != to->kind)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "the two events are of different kinds of device");
    return from->kind->event_elapsed(from, to, us);
}

afdep_status afdep_stream_delay(afdep_device *device, afdep_stream stream, uint32_t us)
{
    bool capturing = false;
    AFJ_TRY(enter(device, "device"));
    AFJ_TRY(device->kind->stream_capturing(device, stream, &capturing));
    if (capturing)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "the stream is being recorded; a delay of %" PRIu32 " us cannot be", us);
    return device->kind->stream_delay(device, stream, us);
}
