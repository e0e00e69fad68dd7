/* stream.c: stream order: a node begins when the one before it has ended. */
#include "device/sim/stream.h"

#include <stdlib.h>
#include <string.h>

#include "device/sim/grid.h"
#include "device/sim/scheduler.h"

struct afj_sim_node *afj_node_create(enum afj_sim_node_kind kind, const void *arguments,
                                     size_t arguments_bytes)
{
    struct afj_sim_node *node = calloc(1, sizeof *node + arguments_bytes);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->arguments_bytes = arguments_bytes;
    if (arguments_bytes > 0)
        memcpy(node->arguments, arguments, arguments_bytes);
    return node;
}

struct afj_sim_mark *afj_mark_create(struct afj_sim_graph *graph)
{
    struct afj_sim_mark *mark = calloc(1, sizeof *mark);
    if (mark == NULL)
        return NULL;
    mark->users = 1;
    mark->graph = graph;
    return mark;
}

void afj_mark_let_go(struct afj_sim_mark *mark)
{
    if (mark != NULL && --mark->users == 0)
        free(mark);
}

void afj_event_let_go(struct afj_sim_event *event)
{
    if (--event->users != 0)
        return;
    afj_mark_let_go(event->last);
    free(event);
}

static void free_node(struct afj_sim_node *node, bool queued)
{
    if (node->kernel != NULL)
        afj_image_let_go(node->kernel->module);
    if (node->event != NULL) {
        node->event->pending -= queued ? 1 : 0;
        afj_event_let_go(node->event);
    }
    /* A mark that is dropped is passed: nobody waits for what will not be. */
    if (node->mark != NULL && node->kind != AFJ_NODE_WAIT)
        node->mark->passed = true;
    afj_mark_let_go(node->mark);
    free(node);
}

static void push(struct afj_sim_queue *queue, struct afj_sim_node *node)
{
    if (queue->last != NULL)
        queue->last->next = node;
    else
        queue->first = node;
    queue->last = node;
}

static void pop(struct afj_sim_queue *queue)
{
    struct afj_sim_node *node = queue->first;
    queue->first = node->next;
    if (queue->first == NULL)
        queue->last = NULL;
    free_node(node, true);
}

void afj_queue_clear(struct afj_sim_queue *queue, bool queued)
{
    while (queue->first != NULL) {
        struct afj_sim_node *node = queue->first;
        queue->first = node->next;
        free_node(node, queued);
    }
    queue->last = NULL;
}

/* The mark that a launch has in place of one of its graph. NULL: no memory. */
static struct afj_sim_mark *copy_mark(struct afj_sim_mark *mark)
{
    if (mark->copy == NULL)
        mark->copy = afj_mark_create(NULL);
    else
        mark->copy->users++;
    return mark->copy;
}

/* A copy with its own share of the kernel's module, the event or the mark. NULL: no memory. */
static struct afj_sim_node *copy_node(const struct afj_sim_node *node)
{
    size_t bytes = sizeof *node + node->arguments_bytes;
    struct afj_sim_node *copy = malloc(bytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, node, bytes);
    copy->next = NULL;
    if (copy->kernel != NULL)
        copy->kernel->module->users++;
    if (copy->event != NULL)
        copy->event->users++;
    if (copy->mark != NULL)
        copy->mark = copy_mark(copy->mark);
    if (node->mark != NULL && copy->mark == NULL) {
        free_node(copy, false);
        return NULL;
    }
    return copy;
}

void afj_stream_append(struct afj_sim *sim, struct afj_sim_stream *stream,
                       struct afj_sim_node *node)
{
    if (stream->capture != NULL) {
        push(&stream->capture->branches[stream->branch].queue, node);
        return;
    }
    if (node->event != NULL)
        node->event->pending++;
    push(&stream->queue, node);
    afj_sim_appended(sim);
}

/* Copies of a branch's nodes. False: no memory. */
static bool copy_queue(const struct afj_sim_queue *queue, struct afj_sim_queue *copies)
{
    for (const struct afj_sim_node *node = queue->first; node != NULL; node = node->next) {
        struct afj_sim_node *copy = copy_node(node);
        if (copy == NULL)
            return false;
        push(copies, copy);
    }
    return true;
}

/* A node at the end of a queue, with its own share of the mark. False: no memory. */
static bool push_mark(struct afj_sim_queue *queue, enum afj_sim_node_kind kind,
                      struct afj_sim_mark *mark)
{
    struct afj_sim_node *node = afj_node_create(kind, NULL, 0);
    if (node == NULL)
        return false;
    node->mark = mark;
    mark->users++;
    push(queue, node);
    return true;
}

/* Let a launch in another stream wait for the one before: a graph does not run beside itself. */
static bool wait_for_end(const struct afj_sim_graph *graph, const struct afj_sim_stream *stream,
                         struct afj_sim_queue *copies)
{
    if (graph->ended == NULL || graph->ended->passed || graph->stream == stream)
        return true;
    graph->ended->awaited = true;
    return push_mark(copies, AFJ_NODE_WAIT, graph->ended);
}

/* The next launch has marks of its own. */
static void forget_copies(const struct afj_sim_graph *graph)
{
    for (uint32_t i = 0; i < graph->branch_count; i++)
        for (const struct afj_sim_node *node = graph->branches[i].queue.first; node != NULL;
             node = node->next)
            if (node->mark != NULL)
                node->mark->copy = NULL;
}

static void append_all(struct afj_sim *sim, struct afj_sim_stream *stream,
                       struct afj_sim_queue *queue)
{
    while (queue->first != NULL) {
        struct afj_sim_node *node = queue->first;
        queue->first = node->next;
        node->next = NULL;
        afj_stream_append(sim, stream, node);
    }
}

/* What each branch of a launch is to do. `ended`: the mark of its end. False: no memory. */
static bool copy_branches(const struct afj_sim_graph *graph, const struct afj_sim_stream *stream,
                          struct afj_sim_mark *ended, struct afj_sim_queue *copies)
{
    bool good = ended == NULL || wait_for_end(graph, stream, &copies[0]);
    for (uint32_t i = 0; i < graph->branch_count && good; i++)
        good = copy_queue(&graph->branches[i].queue, &copies[i]);
    forget_copies(graph);
    return good && (ended == NULL || push_mark(&copies[0], AFJ_NODE_END, ended));
}

bool afj_stream_append_graph(struct afj_sim *sim, struct afj_sim_stream *stream,
                             struct afj_sim_graph *graph)
{
    struct afj_sim_queue copies[AFJ_SIM_BRANCHES] = {0};
    struct afj_sim_stream *streams[AFJ_SIM_BRANCHES] = {stream};
    /* Inside another graph it is no launch of its own. */
    const bool launched = stream->capture == NULL;
    struct afj_sim_mark *ended = launched ? afj_mark_create(NULL) : NULL;
    bool good = (ended != NULL || !launched) && copy_branches(graph, stream, ended, copies);
    for (uint32_t i = 1; i < graph->branch_count && good; i++) {
        streams[i] = afj_stream_create(graph->branches[i].device);
        good = streams[i] != NULL;
    }
    for (uint32_t i = 0; i < graph->branch_count; i++) {
        if (good)
            append_all(sim, streams[i], &copies[i]);
        else
            afj_queue_clear(&copies[i], false);
        /* A branch's stream goes when it is empty. */
        if (i > 0 && streams[i] != NULL)
            afj_stream_disown(sim, streams[i]);
    }
    if (good && launched) {
        afj_mark_let_go(graph->ended);
        graph->ended = ended;
        graph->stream = stream;
    } else {
        afj_mark_let_go(ended);
    }
    return good;
}

void afj_graph_free(struct afj_sim_graph *graph)
{
    for (uint32_t i = 0; i < graph->branch_count; i++)
        afj_queue_clear(&graph->branches[i].queue, false);
    afj_mark_let_go(graph->ended);
    free(graph);
}

struct afj_sim_stream *afj_stream_create(struct afj_sim_device *device)
{
    struct afj_sim_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->device = device;
    struct afj_sim_stream **end = &device->streams;
    while (*end != NULL)
        end = &(*end)->next;
    *end = stream;
    return stream;
}

static void set_waiting(struct afj_sim *sim, struct afj_sim_stream *stream, bool waits)
{
    if (stream->is_waiting == waits)
        return;
    stream->is_waiting = waits;
    struct afj_sim_stream **at = &sim->waiting;
    if (waits) {
        stream->waiting = *at;
        *at = stream;
        return;
    }
    while (*at != stream)
        at = &(*at)->waiting;
    *at = stream->waiting;
}

/* Drop the work of a stream, begun or not. The words that it stored travel on. */
static void drop_work(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    if (stream->grid != NULL)
        afj_grid_abandon(sim, stream->grid);
    set_waiting(sim, stream, false);
    stream->until_ns = 0;
    afj_queue_clear(&stream->queue, true);
    afj_segment_forget(&sim->links, &stream->stored);
}

void afj_stream_end_capture(struct afj_sim *sim, struct afj_sim_graph *graph)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++)
        for (struct afj_sim_stream *stream = sim->devices[i] ? sim->devices[i]->streams : NULL;
             stream != NULL; stream = stream->next)
            if (stream->capture == graph) {
                stream->capture = NULL;
                stream->branch = 0;
            }
    for (uint32_t i = 0; i < graph->branch_count; i++)
        for (struct afj_sim_node *node = graph->branches[i].queue.first; node != NULL;
             node = node->next)
            if (node->mark != NULL) {
                node->mark->graph = NULL;
                node->mark->closed = true;
            }
}

/* Drop the capture that began in the stream, if one did. */
static void drop_capture(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    struct afj_sim_graph *graph = stream->capture;
    if (graph == NULL || stream->branch != 0)
        return;
    afj_stream_end_capture(sim, graph);
    afj_graph_free(graph);
}

void afj_stream_free(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    drop_work(sim, stream);
    drop_capture(sim, stream);
    struct afj_sim_stream **at = &stream->device->streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream);
}

static bool is_idle(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    return stream->queue.first == NULL && afj_segment_arrived(&sim->links, &stream->stored);
}

void afj_stream_disown(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    stream->orphan = true;
    drop_capture(sim, stream);
    if (is_idle(sim, stream))
        afj_stream_free(sim, stream);
}

bool afj_stream_is_idle(struct afj_sim *sim, struct afj_sim_device *device,
                        struct afj_sim_stream *stream)
{
    if (stream != NULL)
        return is_idle(sim, stream);
    for (struct afj_sim_stream *each = device->streams; each != NULL; each = each->next)
        if (!is_idle(sim, each))
            return false;
    return true;
}

/* Do a node that is no launch; false: it waits for words to arrive, or for the clock. */
static bool do_node(struct afj_sim *sim, struct afj_sim_stream *stream,
                    const struct afj_sim_node *node)
{
    if (node->kind == AFJ_NODE_DELAY) {
        if (stream->until_ns == 0)
            stream->until_ns = sim->clock_ns + node->delay_ns;
        if (sim->clock_ns < stream->until_ns)
            return false;
        stream->until_ns = 0;
        return true;
    }
    if (node->kind == AFJ_NODE_WAIT)
        return node->mark->passed;
    /* A copy reads what earlier kernels of the stream stored, wherever that is; an event promises
     * that it is there, and so does the end of a graph to a launch in another stream. In its own
     * stream words outlive a graph as they outlive a kernel. */
    const bool settles = node->kind != AFJ_NODE_END || node->mark->awaited;
    if (settles && !afj_segment_arrived(&sim->links, &stream->stored))
        return false;
    if (node->kind == AFJ_NODE_COPY) {
        memmove(node->to, node->from, node->bytes);
    } else if (node->kind == AFJ_NODE_FILL) {
        memset(node->to, node->value, node->bytes);
    } else {
        node->mark->passed = true;
    }
    if (node->event != NULL) {
        node->event->time_ns = sim->clock_ns;
        node->event->passed = true;
    }
    return true;
}

/* Begin and do what can be, until a launch is under way or a node waits. */
static void advance(struct afj_sim *sim, struct afj_sim_stream *stream)
{
    bool waits = false;
    while (stream->queue.first != NULL && stream->grid == NULL && !waits) {
        struct afj_sim_node *node = stream->queue.first;
        if (node->kind == AFJ_NODE_LAUNCH) {
            if (!afj_grid_begin(sim, stream, node)) {
                sim->failed = true;
                break;
            }
        } else if (do_node(sim, stream, node)) {
            /* A copy may have reached any device's memory; no other node changes what warps see. */
            if (node->kind == AFJ_NODE_COPY || node->kind == AFJ_NODE_FILL)
                afj_scheduler_wake_all(sim);
            pop(&stream->queue);
            afj_scheduler_milestone(sim);
        } else {
            waits = true;
        }
    }
    set_waiting(sim, stream, waits);
}

void afj_stream_begin_all(struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++) {
        struct afj_sim_stream *next;
        for (struct afj_sim_stream *stream = sim->devices[i] ? sim->devices[i]->streams : NULL;
             stream != NULL; stream = next) {
            next = stream->next;
            advance(sim, stream);
            if (stream->orphan && is_idle(sim, stream))
                afj_stream_free(sim, stream);
        }
    }
}

bool afj_stream_poll_waiting(struct afj_sim *sim)
{
    bool went_on = false;
    struct afj_sim_stream *next;
    for (struct afj_sim_stream *stream = sim->waiting; stream != NULL; stream = next) {
        const struct afj_sim_node *before = stream->queue.first;
        next = stream->waiting;
        advance(sim, stream);
        went_on |= stream->queue.first != before;
    }
    return went_on;
}

uint64_t afj_stream_next_time(const struct afj_sim *sim)
{
    uint64_t soonest = UINT64_MAX;
    for (const struct afj_sim_stream *s = sim->waiting; s != NULL; s = s->waiting)
        if (s->until_ns != 0 && s->until_ns < soonest)
            soonest = s->until_ns;
    return soonest;
}

void afj_stream_grid_ended(struct afj_sim *sim, struct afj_sim_stream *stream,
                           struct afj_segment **stored)
{
    afj_segment_merge(&sim->links, &stream->stored, stored);
    pop(&stream->queue);
    advance(sim, stream);
}

struct afj_sim_grid *afj_stream_any_grid(const struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++) {
        const struct afj_sim_stream *stream = sim->devices[i] ? sim->devices[i]->streams : NULL;
        for (; stream != NULL; stream = stream->next)
            if (stream->grid != NULL)
                return stream->grid;
    }
    return NULL;
}

void afj_stream_drop_all(struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++) {
        struct afj_sim_stream *next;
        for (struct afj_sim_stream *stream = sim->devices[i] ? sim->devices[i]->streams : NULL;
             stream != NULL; stream = next) {
            next = stream->next;
            drop_work(sim, stream);
            if (stream->orphan)
                afj_stream_free(sim, stream);
        }
    }
}
