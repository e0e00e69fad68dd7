/* device.h: memory, streams, modules, launches and events of a device, whichever kind it is. */
#ifndef AFJ_DEVICE_DEVICE_H
#define AFJ_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <afdep/device.h>

struct afj_module; /* a loaded image */
struct afj_kernel; /* an entry of a module, resolved; owned by the module */

/* A launch: `arguments` is one struct passed by value, copied by the call. */
struct afj_launch {
    uint32_t ctas, warps;  /* grid, and warps a CTA */
    uint32_t shared_bytes; /* dynamic shared memory a CTA */
    const void *arguments;
    size_t arguments_bytes; /* of the struct; those that `kernel` was resolved with */
};

/* What a device is, fixed when it is opened. */
struct afj_device_facts {
    char name[64];
    char arch[16];         /* "sm_90a", "x86_64" */
    uint32_t processors;   /* CTAs that run at once when each fills a multiprocessor */
    uint32_t queues;       /* kernels of different streams that can run at once */
    uint32_t shared_bytes; /* most dynamic shared memory a CTA can have */
};

/* The operations of one kind. Every function sets the sentence when it fails. */
struct afj_device_kind {
    afdep_status (*count)(uint32_t *count);
    afdep_status (*open)(int32_t ordinal, afdep_device **device);
    void (*close)(afdep_device *device);
    afdep_status (*alloc)(afdep_device *device, size_t bytes, void **memory);
    void (*free)(afdep_device *device, void *memory);
    /* Host memory that kernels can write: same address on both sides, zeroed. */
    afdep_status (*host_alloc)(afdep_device *device, size_t bytes, void **memory);
    void (*host_free)(afdep_device *device, void *memory);
    afdep_status (*copy)(afdep_device *device, void *to, const void *from, size_t bytes,
                         afdep_stream stream);
    afdep_status (*fill)(afdep_device *device, void *memory, uint8_t value, size_t bytes,
                         afdep_stream stream);
    afdep_status (*stream_create)(afdep_device *device, afdep_stream *stream);
    void (*stream_destroy)(afdep_device *device, afdep_stream stream);
    afdep_status (*stream_synchronize)(afdep_device *device, afdep_stream stream);
    afdep_status (*stream_delay)(afdep_device *device, afdep_stream stream, uint32_t us);
    /* *capturing: whether launches into the stream are being recorded. */
    afdep_status (*stream_capturing)(afdep_device *device, afdep_stream stream, bool *capturing);
    afdep_status (*stream_wait)(afdep_device *device, afdep_stream stream, afdep_event *event);
    /* Whether a stream of the device is being recorded, as far as this library knows. */
    bool (*is_recording)(const afdep_device *device);
    afdep_status (*synchronize)(afdep_device *device);
    afdep_status (*capture_begin)(afdep_device *device, afdep_stream stream);
    afdep_status (*capture_end)(afdep_device *device, afdep_stream stream, afdep_graph **graph);
    afdep_status (*graph_launch)(afdep_graph *graph, afdep_stream stream);
    void (*graph_destroy)(afdep_graph *graph);
    afdep_status (*event_create)(afdep_device *device, afdep_event **event);
    void (*event_destroy)(afdep_event *event);
    afdep_status (*event_record)(afdep_event *event, afdep_stream stream);
    afdep_status (*event_elapsed)(afdep_event *from, afdep_event *to, double *us);
    /* Load an image and everything in it at once: nothing is left to a later launch. */
    afdep_status (*module_load)(afdep_device *device, const void *image, size_t bytes,
                                struct afj_module **module);
    void (*module_unload)(struct afj_module *module);
    /* Resolve an entry; fails if its argument struct is not `arguments_bytes` long. `shared_bytes`
     * is the most dynamic shared memory it will be launched with. */
    afdep_status (*kernel)(struct afj_module *module, const char *entry, size_t arguments_bytes,
                           uint32_t shared_bytes, struct afj_kernel **kernel);
    /* Put a launch into the stream. Allocates nothing and takes no lock. */
    afdep_status (*launch)(struct afj_kernel *kernel, const struct afj_launch *launch,
                           afdep_stream stream);
    /* Let kernels of `device` reach memory of `peer`, both ways by two calls. */
    afdep_status (*enable_peer)(afdep_device *device, afdep_device *peer);
};

/* A device of either kind begins with this. */
struct afdep_device {
    const struct afj_device_kind *kind;
    struct afj_device_facts facts;
    int32_t ordinal;
};

/* Graphs and events begin with their kind's table too, so that calls on them find it. */
struct afdep_graph {
    const struct afj_device_kind *kind;
};
struct afdep_event {
    const struct afj_device_kind *kind;
};

extern const struct afj_device_kind afj_device_cuda; /* cuda.c */
extern const struct afj_device_kind afj_device_sim;  /* sim/sim.c */

/* The table of a kind, or NULL for a number that is no kind. */
const struct afj_device_kind *afj_device_kind(uint32_t kind);

/* "CUDA driver 13.0, 2 devices", or why there is none. Never fails. */
void afj_device_cuda_note(char *note, size_t size);

#endif
