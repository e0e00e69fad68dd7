/* stream.h: streams as queues of nodes, graphs as recorded queues, events as times and marks. */
#ifndef AFJ_SIM_STREAM_H
#define AFJ_SIM_STREAM_H

#include "device/sim/image.h"
#include "device/sim/machine.h"

/* A point of a stream that others wait for: one record of an event, or the end of a graph. */
struct afj_sim_mark {
    uint32_t users; /* nodes, the event whose last record it is, the graph whose last end it is */
    bool passed;
    struct afj_sim_graph *graph; /* the capture under way that it is in; NULL: none */
    bool closed;                 /* its capture has ended: nothing can wait for it any longer */
    bool awaited;                /* in its graph; of an end: by another stream */
    struct afj_sim_mark *copy;   /* of the launch that is being made */
};

struct afj_sim_event {
    struct afdep_event base; /* first */
    struct afj_sim_device *device;
    struct afj_sim_mark *last; /* of the most recent record; NULL: never recorded */
    uint32_t users;            /* the caller, and nodes that will record it */
    uint32_t pending;          /* nodes in streams that will record it */
    bool passed;
    uint64_t time_ns; /* when it was recorded last */
};

enum afj_sim_node_kind {
    AFJ_NODE_LAUNCH,
    AFJ_NODE_COPY,
    AFJ_NODE_FILL,
    AFJ_NODE_RECORD,
    AFJ_NODE_WAIT,
    AFJ_NODE_END, /* of a launched graph */
    AFJ_NODE_DELAY
};

/* One thing in a stream or a graph. Owned by what it is queued in. */
struct afj_sim_node {
    struct afj_sim_node *next;
    enum afj_sim_node_kind kind;
    struct afj_kernel *kernel; /* LAUNCH; the node keeps its module alive */
    uint32_t ctas, warps, shared_bytes;
    void *to; /* COPY, FILL */
    const void *from;
    size_t bytes;
    uint8_t value;
    struct afj_sim_event *event; /* RECORD */
    struct afj_sim_mark *mark;   /* RECORD, WAIT, END */
    uint64_t delay_ns;           /* DELAY */
    size_t arguments_bytes;
    _Alignas(16) unsigned char arguments[];
};

struct afj_sim_queue {
    struct afj_sim_node *first, *last;
};

struct afj_sim_stream {
    struct afj_sim_stream *next;    /* of the same device */
    struct afj_sim_stream *waiting; /* next in afj_sim.waiting */
    struct afj_sim_device *device;
    struct afj_sim_queue queue;    /* its first node may have begun */
    struct afj_sim_grid *grid;     /* the launch under way */
    struct afj_segment *stored;    /* join of what its ended kernels stored */
    uint64_t until_ns;             /* end of the delay under way; 0: none */
    bool is_waiting;               /* listed in afj_sim.waiting */
    bool orphan;                   /* destroyed by its owner; freed when it is empty */
    struct afj_sim_graph *capture; /* where calls are recorded; NULL: they are queued */
    uint32_t branch;               /* of it */
};

/* The first branch runs in the stream that launches the graph, each other in a stream of its own.
 */
enum { AFJ_SIM_BRANCHES = 16 };
struct afj_sim_graph {
    struct afdep_graph base;             /* first */
    struct afj_sim_mark *ended;          /* end of the last launch; NULL: never launched */
    const struct afj_sim_stream *stream; /* of the last launch; only compared, it may be gone */
    uint32_t branch_count;
    struct {
        struct afj_sim_device *device;
        struct afj_sim_queue queue;
    } branches[AFJ_SIM_BRANCHES];
};

/* A node with room for arguments, everything else zero. NULL: no memory. */
struct afj_sim_node *afj_node_create(enum afj_sim_node_kind kind, const void *arguments,
                                     size_t arguments_bytes);

/* Put a node into the stream, or into the graph that it records. Takes the node. */
void afj_stream_append(struct afj_sim *sim, struct afj_sim_stream *stream,
                       struct afj_sim_node *node);

/* A mark of one user. NULL: no memory. */
struct afj_sim_mark *afj_mark_create(struct afj_sim_graph *graph);
void afj_mark_let_go(struct afj_sim_mark *mark); /* NULL is fine */

/* Append copies of a graph's nodes, behind those of its launch before. False: no memory, and
 * nothing was appended. */
bool afj_stream_append_graph(struct afj_sim *sim, struct afj_sim_stream *stream,
                             struct afj_sim_graph *graph);

/* Free the nodes of a queue that have not begun; `queued`: they are in a stream, not a graph. */
void afj_queue_clear(struct afj_sim_queue *queue, bool queued);

struct afj_sim_stream *afj_stream_create(struct afj_sim_device *device);

/* Free a stream and drop what is in it. */
void afj_stream_free(struct afj_sim *sim, struct afj_sim_stream *stream);

/* The owner has no more use for the stream: freed now or when it is empty. A capture that began in
 * it is dropped. */
void afj_stream_disown(struct afj_sim *sim, struct afj_sim_stream *stream);

/* Whether the stream (every stream of the device if it is NULL) is empty and its words arrived. */
bool afj_stream_is_idle(struct afj_sim *sim, struct afj_sim_device *device,
                        struct afj_sim_stream *stream);

/* Begin what can begin, in every stream. */
void afj_stream_begin_all(struct afj_sim *sim);

/* Look again at the streams that wait for words to arrive or for the clock. Whether one went on. */
bool afj_stream_poll_waiting(struct afj_sim *sim);

/* When the soonest delay under way ends; UINT64_MAX if there is none. */
uint64_t afj_stream_next_time(const struct afj_sim *sim);

/* The launch under way has ended and left `stored`, which becomes NULL. */
void afj_stream_grid_ended(struct afj_sim *sim, struct afj_sim_stream *stream,
                           struct afj_segment **stored);

/* Some kernel that is under way, or NULL. */
struct afj_sim_grid *afj_stream_any_grid(const struct afj_sim *sim);

/* Drop all work of all streams. Recordings stay. */
void afj_stream_drop_all(struct afj_sim *sim);

/* No stream records into the graph any longer, and nothing can wait for what it records. */
void afj_stream_end_capture(struct afj_sim *sim, struct afj_sim_graph *graph);

/* Free a graph that no stream records into. */
void afj_graph_free(struct afj_sim_graph *graph);

void afj_event_let_go(struct afj_sim_event *event);

#endif
