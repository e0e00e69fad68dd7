/* sim.c: the operations of a device, as device.h names them, on the simulator. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/status.h"
#include "device/sim/image.h"
#include "device/sim/machine.h"
#include "device/sim/scheduler.h"
#include "device/sim/stream.h"

/* Wide enough that nothing is refused for its size. */
#define PROCESSORS 1024u
#define QUEUES 1024u
#define SHARED_BYTES (227u << 10)
#define MOST_WARPS 32u

static struct afj_sim_device *sim_device(afdep_device *device)
{
    return (struct afj_sim_device *)device;
}

/* ---- devices ---- */

static afdep_status count_devices(uint32_t *count)
{
    *count = AFJ_SIM_DEVICES;
    return AFDEP_OK;
}

static void set_facts(struct afj_sim_device *device, int32_t ordinal)
{
    struct afj_device_facts *facts = &device->base.facts;
    struct utsname machine;
    device->base.kind = &afj_device_sim;
    device->base.ordinal = ordinal;
    snprintf(facts->name, sizeof facts->name, "sim");
    if (uname(&machine) != 0)
        snprintf(machine.machine, sizeof machine.machine, "unknown");
    snprintf(facts->arch, sizeof facts->arch, "%.15s", machine.machine);
    facts->processors = PROCESSORS;
    facts->queues = QUEUES;
    facts->shared_bytes = SHARED_BYTES;
}

static afdep_status open_device(int32_t ordinal, afdep_device **device)
{
    if (ordinal < 0 || ordinal >= (int32_t)AFJ_SIM_DEVICES)
        return afj_fail(AFDEP_ERROR_DEVICE, "no sim device %" PRId32 "; there are %u", ordinal,
                        AFJ_SIM_DEVICES);
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_device *opened = sim->devices[ordinal];
    if (opened == NULL) {
        opened = calloc(1, sizeof *opened);
        if (opened != NULL && afj_stream_create(opened) == NULL) {
            free(opened);
            opened = NULL;
        }
        if (opened != NULL)
            set_facts(opened, ordinal);
        sim->devices[ordinal] = opened;
    }
    if (opened != NULL)
        opened->opens++;
    afj_sim_leave(sim);
    if (opened == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for sim device %" PRId32, ordinal);
    *device = &opened->base;
    return AFDEP_OK;
}

static bool any_device(const struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++)
        if (sim->devices[i] != NULL)
            return true;
    return false;
}

static void close_device(afdep_device *device)
{
    if (device == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_device *closed = sim_device(device);
    if (--closed->opens == 0) {
        while (closed->streams != NULL)
            afj_stream_free(sim, closed->streams);
        afj_memory_remove_device(&sim->memory, closed->base.ordinal);
        sim->devices[closed->base.ordinal] = NULL;
        free(closed->actors);
        free(closed);
        if (!any_device(sim))
            afj_fibre_pool_finish(&sim->fibres);
    }
    afj_sim_leave(sim);
}

static afdep_status enable_peer(afdep_device *device, afdep_device *peer)
{
    struct afj_sim *sim = afj_sim_enter();
    sim_device(device)->peers[peer->ordinal] = true;
    afj_sim_leave(sim);
    return AFDEP_OK;
}

/* ---- memory ---- */

static afdep_status add_memory(afdep_device *device, int32_t owner, size_t bytes, void **memory)
{
    struct afj_sim *sim = afj_sim_enter();
    struct afj_allocation *made =
        afj_memory_add(&sim->memory, owner, sim_device(device)->allocations, bytes);
    if (made != NULL)
        sim_device(device)->allocations++;
    afj_sim_leave(sim);
    if (made == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "sim device %" PRId32 " has no memory for %zu bytes",
                        device->ordinal, bytes);
    *memory = made->base;
    return AFDEP_OK;
}

static void remove_memory(int32_t owner, void *memory)
{
    if (memory == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    if (!afj_memory_remove(&sim->memory, owner, memory))
        afj_sim_violation(sim, &sim->counters.stray_frees,
                          "memory is freed that is no allocation of %s %" PRId32,
                          owner == AFJ_SIM_HOST ? "the host," : "device", owner);
    afj_sim_leave(sim);
}

static afdep_status alloc_memory(afdep_device *device, size_t bytes, void **memory)
{
    return add_memory(device, device->ordinal, bytes, memory);
}

static void free_memory(afdep_device *device, void *memory)
{
    remove_memory(device->ordinal, memory);
}

static afdep_status alloc_host_memory(afdep_device *device, size_t bytes, void **memory)
{
    return add_memory(device, AFJ_SIM_HOST, bytes, memory);
}

static void free_host_memory(afdep_device *device, void *memory)
{
    (void)device;
    remove_memory(AFJ_SIM_HOST, memory);
}

/* ---- streams ---- */

/* The stream that a caller named, or NULL and the sentence. */
static struct afj_sim_stream *find_stream(struct afj_sim_device *device, afdep_stream stream)
{
    if (stream == NULL)
        return device->streams;
    struct afj_sim_stream *each = device->streams;
    while (each != NULL && (each != stream || each->orphan))
        each = each->next;
    if (each == NULL)
        afj_fail(AFDEP_ERROR_ARGUMENT, "the stream is none of sim device %" PRId32,
                 device->base.ordinal);
    return each;
}

/* Append a node that was made for a stream of `device`; takes the node, NULL for lack of memory. */
static afdep_status append(struct afj_sim_device *device, afdep_stream stream,
                           struct afj_sim_node *node)
{
    if (node == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a stream's node");
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(device, stream);
    if (found == NULL) {
        free(node);
        afj_sim_leave(sim);
        return AFDEP_ERROR_ARGUMENT;
    }
    if (node->kernel != NULL)
        node->kernel->module->users++;
    if (node->event != NULL)
        node->event->users++;
    afj_stream_append(sim, found, node);
    afj_sim_leave(sim);
    return AFDEP_OK;
}

static afdep_status copy_memory(afdep_device *device, void *to, const void *from, size_t bytes,
                                afdep_stream stream)
{
    struct afj_sim_node *node = afj_node_create(AFJ_NODE_COPY, NULL, 0);
    if (node != NULL) {
        node->to = to;
        node->from = from;
        node->bytes = bytes;
    }
    return append(sim_device(device), stream, node);
}

static afdep_status fill_memory(afdep_device *device, void *memory, uint8_t value, size_t bytes,
                                afdep_stream stream)
{
    struct afj_sim_node *node = afj_node_create(AFJ_NODE_FILL, NULL, 0);
    if (node != NULL) {
        node->to = memory;
        node->value = value;
        node->bytes = bytes;
    }
    return append(sim_device(device), stream, node);
}

static afdep_status create_stream(afdep_device *device, afdep_stream *stream)
{
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *made = afj_stream_create(sim_device(device));
    afj_sim_leave(sim);
    if (made == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a stream");
    *stream = made;
    return AFDEP_OK;
}

static void destroy_stream(afdep_device *device, afdep_stream stream)
{
    if (stream == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(sim_device(device), stream);
    if (found != NULL && found != sim_device(device)->streams)
        afj_stream_disown(sim, found);
    afj_sim_leave(sim);
}

static afdep_status refuse_capturing(const struct afj_sim_stream *stream)
{
    if (stream->capture == NULL)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_DEVICE,
                    "a stream of sim device %" PRId32 " is being captured; end the capture first",
                    stream->device->base.ordinal);
}

static afdep_status synchronize_found(struct afj_sim *sim, struct afj_sim_device *device,
                                      afdep_stream stream)
{
    struct afj_sim_stream *found = find_stream(device, stream);
    if (found == NULL)
        return AFDEP_ERROR_ARGUMENT;
    AFJ_TRY(refuse_capturing(found));
    return afj_scheduler_run(sim, device, found);
}

static afdep_status synchronize_stream(afdep_device *device, afdep_stream stream)
{
    struct afj_sim *sim = afj_sim_enter();
    afdep_status status = synchronize_found(sim, sim_device(device), stream);
    afj_sim_leave(sim);
    return status;
}

static afdep_status synchronize_device(afdep_device *device)
{
    struct afj_sim *sim = afj_sim_enter();
    afdep_status status = afj_scheduler_run(sim, sim_device(device), NULL);
    afj_sim_leave(sim);
    return status;
}

static afdep_status delay_stream(afdep_device *device, afdep_stream stream, uint32_t us)
{
    struct afj_sim_node *node = afj_node_create(AFJ_NODE_DELAY, NULL, 0);
    if (node != NULL)
        node->delay_ns = 1000 * (uint64_t)us;
    return append(sim_device(device), stream, node);
}

/* ---- graphs ---- */

static afdep_status stream_capturing(afdep_device *device, afdep_stream stream, bool *capturing)
{
    struct afj_sim *sim = afj_sim_enter();
    const struct afj_sim_stream *found = find_stream(sim_device(device), stream);
    *capturing = found != NULL && found->capture != NULL;
    afj_sim_leave(sim);
    return found == NULL ? AFDEP_ERROR_ARGUMENT : AFDEP_OK;
}

static afdep_status begin_capture_found(struct afj_sim_device *device, afdep_stream stream)
{
    struct afj_sim_stream *found = find_stream(device, stream);
    if (found == NULL)
        return AFDEP_ERROR_ARGUMENT;
    AFJ_TRY(refuse_capturing(found));
    if (stream == NULL)
        return afj_fail(AFDEP_ERROR_DEVICE, "the default stream cannot be captured");
    found->capture = calloc(1, sizeof *found->capture);
    if (found->capture == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a graph");
    found->capture->base.kind = &afj_device_sim;
    found->capture->branch_count = 1;
    found->capture->branches[0].device = device;
    found->branch = 0;
    return AFDEP_OK;
}

static afdep_status begin_capture(afdep_device *device, afdep_stream stream)
{
    struct afj_sim *sim = afj_sim_enter();
    afdep_status status = begin_capture_found(sim_device(device), stream);
    afj_sim_leave(sim);
    return status;
}

/* Every branch must be waited for by another, and so in the end by the first. */
static afdep_status check_joined(const struct afj_sim_graph *graph)
{
    for (uint32_t i = 1; i < graph->branch_count; i++) {
        const struct afj_sim_node *last = graph->branches[i].queue.last;
        if (last == NULL || last->kind != AFJ_NODE_RECORD || !last->mark->awaited)
            return afj_fail(AFDEP_ERROR_DEVICE,
                            "a stream that joined the capture is not waited for at its end");
    }
    return AFDEP_OK;
}

static afdep_status end_capture_found(struct afj_sim *sim, struct afj_sim_stream *found,
                                      afdep_graph **graph)
{
    struct afj_sim_graph *captured = found->capture;
    if (captured == NULL)
        return afj_fail(AFDEP_ERROR_DEVICE, "no capture was begun in this stream");
    if (found->branch != 0)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "the capture was begun in another stream, and ends there");
    const afdep_status status = check_joined(captured);
    afj_stream_end_capture(sim, captured);
    if (status != AFDEP_OK)
        afj_graph_free(captured);
    else
        *graph = &captured->base;
    return status;
}

static afdep_status end_capture(afdep_device *device, afdep_stream stream, afdep_graph **graph)
{
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(sim_device(device), stream);
    const afdep_status status =
        found == NULL ? AFDEP_ERROR_ARGUMENT : end_capture_found(sim, found, graph);
    afj_sim_leave(sim);
    return status;
}

static bool is_recording(const afdep_device *device)
{
    struct afj_sim *sim = afj_sim_enter();
    bool recording = false;
    for (const struct afj_sim_stream *each = ((const struct afj_sim_device *)device)->streams;
         each != NULL; each = each->next)
        recording = recording || (each->capture != NULL && !each->orphan);
    afj_sim_leave(sim);
    return recording;
}

static afdep_status launch_found(struct afj_sim *sim, struct afj_sim_stream *found,
                                 struct afj_sim_graph *graph)
{
    if (found->capture != NULL && graph->branch_count > 1)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "a graph with branches cannot be captured into another graph");
    if (!afj_stream_append_graph(sim, found, graph))
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a graph's nodes");
    return AFDEP_OK;
}

static afdep_status launch_graph(afdep_graph *graph, afdep_stream stream)
{
    struct afj_sim_graph *launched = (struct afj_sim_graph *)graph;
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(launched->branches[0].device, stream);
    const afdep_status status =
        found == NULL ? AFDEP_ERROR_ARGUMENT : launch_found(sim, found, launched);
    afj_sim_leave(sim);
    return status;
}

static void destroy_graph(afdep_graph *graph)
{
    if (graph == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    afj_graph_free((struct afj_sim_graph *)graph);
    afj_sim_leave(sim);
}

/* ---- events ---- */

static afdep_status create_event(afdep_device *device, afdep_event **event)
{
    struct afj_sim_event *made = calloc(1, sizeof *made);
    if (made == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for an event");
    made->base.kind = &afj_device_sim;
    made->device = sim_device(device);
    made->users = 1;
    *event = &made->base;
    return AFDEP_OK;
}

static void destroy_event(afdep_event *event)
{
    if (event == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    afj_event_let_go((struct afj_sim_event *)event);
    afj_sim_leave(sim);
}

/* A node for a mark, in the stream that was found. */
static afdep_status append_mark(struct afj_sim *sim, struct afj_sim_stream *found,
                                enum afj_sim_node_kind kind, struct afj_sim_event *event,
                                struct afj_sim_mark *mark)
{
    struct afj_sim_node *node = afj_node_create(kind, NULL, 0);
    if (node == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for a stream's node");
    node->mark = mark;
    node->event = event;
    mark->users++;
    if (event != NULL)
        event->users++;
    afj_stream_append(sim, found, node);
    return AFDEP_OK;
}

static afdep_status record_found(struct afj_sim *sim, struct afj_sim_stream *found,
                                 struct afj_sim_event *event)
{
    struct afj_sim_mark *mark = afj_mark_create(found->capture);
    if (mark == NULL)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for an event's record");
    const afdep_status status = append_mark(sim, found, AFJ_NODE_RECORD, event, mark);
    if (status != AFDEP_OK) {
        afj_mark_let_go(mark);
        return status;
    }
    afj_mark_let_go(event->last);
    event->last = mark;
    return AFDEP_OK;
}

static afdep_status record_event(afdep_event *event, afdep_stream stream)
{
    struct afj_sim_event *recorded = (struct afj_sim_event *)event;
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(recorded->device, stream);
    const afdep_status status =
        found == NULL ? AFDEP_ERROR_ARGUMENT : record_found(sim, found, recorded);
    afj_sim_leave(sim);
    return status;
}

/* From here on the stream is recorded as a branch of the graph that the mark is in. */
static afdep_status join_capture(struct afj_sim_stream *stream, struct afj_sim_graph *graph)
{
    if (stream == stream->device->streams)
        return afj_fail(AFDEP_ERROR_DEVICE, "a default stream cannot join a capture");
    if (graph->branch_count == AFJ_SIM_BRANCHES)
        return afj_fail(AFDEP_ERROR_DEVICE, "a graph has at most %d branches", AFJ_SIM_BRANCHES);
    stream->capture = graph;
    stream->branch = graph->branch_count++;
    graph->branches[stream->branch].device = stream->device;
    return AFDEP_OK;
}

static afdep_status wait_found(struct afj_sim *sim, struct afj_sim_stream *found,
                               struct afj_sim_mark *mark)
{
    if (mark == NULL)
        return AFDEP_OK;
    if (mark->closed)
        return afj_fail(AFDEP_ERROR_DEVICE, "the event was recorded in a capture that has ended; "
                                            "record it again before it is waited for");
    if (mark->passed && found->capture == NULL)
        return AFDEP_OK;
    if (found->capture == NULL && mark->graph != NULL)
        AFJ_TRY(join_capture(found, mark->graph));
    if (found->capture != mark->graph)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "a stream in a capture can only wait for events of the same capture");
    AFJ_TRY(append_mark(sim, found, AFJ_NODE_WAIT, NULL, mark));
    mark->awaited = true;
    return AFDEP_OK;
}

static afdep_status wait_in_stream(afdep_device *device, afdep_stream stream, afdep_event *event)
{
    struct afj_sim *sim = afj_sim_enter();
    struct afj_sim_stream *found = find_stream(sim_device(device), stream);
    const afdep_status status = found == NULL
                                    ? AFDEP_ERROR_ARGUMENT
                                    : wait_found(sim, found, ((struct afj_sim_event *)event)->last);
    afj_sim_leave(sim);
    return status;
}

static afdep_status elapsed_between(afdep_event *from, afdep_event *to, double *us)
{
    const struct afj_sim_event *first = (struct afj_sim_event *)from;
    const struct afj_sim_event *second = (struct afj_sim_event *)to;
    struct afj_sim *sim = afj_sim_enter();
    bool known = first->passed && first->pending == 0 && second->passed && second->pending == 0;
    if (known)
        *us = ((double)second->time_ns - (double)first->time_ns) / 1000.0;
    afj_sim_leave(sim);
    if (!known)
        return afj_fail(AFDEP_ERROR_DEVICE,
                        "an event has not passed yet; synchronise its stream first");
    return AFDEP_OK;
}

/* ---- kernels ---- */

static afdep_status load_module(afdep_device *device, const void *image, size_t bytes,
                                struct afj_module **module)
{
    struct afj_sim *sim = afj_sim_enter();
    afdep_status status = afj_image_load(sim_device(device), image, bytes, module);
    afj_sim_leave(sim);
    return status;
}

static void unload_module(struct afj_module *module)
{
    if (module == NULL)
        return;
    struct afj_sim *sim = afj_sim_enter();
    afj_image_let_go(module);
    afj_sim_leave(sim);
}

static afdep_status resolve_kernel(struct afj_module *module, const char *entry,
                                   size_t arguments_bytes, uint32_t shared_bytes,
                                   struct afj_kernel **kernel)
{
    if (shared_bytes > SHARED_BYTES)
        return afj_fail(AFDEP_ERROR_RESOURCES,
                        "kernel %s wants %" PRIu32 " bytes of shared memory a CTA; there are %u",
                        entry, shared_bytes, SHARED_BYTES);
    struct afj_sim *sim = afj_sim_enter();
    afdep_status status = afj_image_kernel(module, entry, arguments_bytes, kernel);
    afj_sim_leave(sim);
    return status;
}

static afdep_status launch_kernel(struct afj_kernel *kernel, const struct afj_launch *launch,
                                  afdep_stream stream)
{
    if (launch->ctas == 0 || launch->warps == 0 || launch->warps > MOST_WARPS ||
        launch->shared_bytes > SHARED_BYTES || launch->arguments_bytes != kernel->arguments_bytes)
        return afj_fail(AFDEP_ERROR_RESOURCES,
                        "kernel %s cannot be launched with %" PRIu32 " CTAs of %" PRIu32
                        " warps, %" PRIu32 " bytes of shared memory and %zu bytes of arguments",
                        kernel->name, launch->ctas, launch->warps, launch->shared_bytes,
                        launch->arguments_bytes);
    struct afj_sim_node *node =
        afj_node_create(AFJ_NODE_LAUNCH, launch->arguments, launch->arguments_bytes);
    if (node != NULL) {
        node->kernel = kernel;
        node->ctas = launch->ctas;
        node->warps = launch->warps;
        node->shared_bytes = launch->shared_bytes;
    }
    return append(kernel->module->device, stream, node);
}

const struct afj_device_kind afj_device_sim = {
    .count = count_devices,
    .open = open_device,
    .close = close_device,
    .alloc = alloc_memory,
    .free = free_memory,
    .host_alloc = alloc_host_memory,
    .host_free = free_host_memory,
    .copy = copy_memory,
    .fill = fill_memory,
    .stream_create = create_stream,
    .stream_destroy = destroy_stream,
    .stream_synchronize = synchronize_stream,
    .stream_delay = delay_stream,
    .stream_capturing = stream_capturing,
    .stream_wait = wait_in_stream,
    .is_recording = is_recording,
    .synchronize = synchronize_device,
    .capture_begin = begin_capture,
    .capture_end = end_capture,
    .graph_launch = launch_graph,
    .graph_destroy = destroy_graph,
    .event_create = create_event,
    .event_destroy = destroy_event,
    .event_record = record_event,
    .event_elapsed = elapsed_between,
    .module_load = load_module,
    .module_unload = unload_module,
    .kernel = resolve_kernel,
    .launch = launch_kernel,
    .enable_peer = enable_peer,
};
