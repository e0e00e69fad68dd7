/* test_branches.c: streams of the sim device that wait for each other, and graphs with branches. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <afdep/afdep.h>

#include "device/device.h"
#include "device/sim/sim.h"
#include "jit/compiler.h"
#include "net/local.h"
#include "support/sim_image.h"

/* Two devices, three streams of the first and one of the second, and words to copy about. */
struct rig {
    afdep_group *group;
    afdep_device *device[2];
    afdep_stream stream[3], other;
    afdep_event *event[4];
    uint32_t *words; /* [8] */
};

#define OK(call) cr_assert_eq(call, AFDEP_OK, "%s", afdep_last_error())

static void open_rig(struct rig *rig)
{
    memset(rig, 0, sizeof *rig);
    OK(afdep_group_create_local(AFDEP_DEVICE_SIM, 2, NULL, &rig->group));
    for (uint32_t i = 0; i < 2; i++)
        rig->device[i] = afdep_group_device(rig->group, i);
    for (int i = 0; i < 3; i++)
        OK(afdep_stream_create(rig->device[0], &rig->stream[i]));
    OK(afdep_stream_create(rig->device[1], &rig->other));
    for (int i = 0; i < 4; i++)
        OK(afdep_event_create(rig->device[i == 3], &rig->event[i]));
    void *memory = NULL;
    OK(afdep_device_alloc(rig->device[0], 8 * sizeof(uint32_t), &memory));
    rig->words = memory;
    OK(afdep_device_fill(rig->device[0], rig->words, 0, 8 * sizeof(uint32_t), NULL));
    OK(afdep_device_synchronize(rig->device[0]));
}

static void close_rig(struct rig *rig)
{
    for (int i = 0; i < 4; i++)
        afdep_event_destroy(rig->event[i]);
    for (int i = 0; i < 3; i++)
        afdep_stream_destroy(rig->device[0], rig->stream[i]);
    afdep_stream_destroy(rig->device[1], rig->other);
    afdep_device_free(rig->device[0], rig->words);
    afdep_group_destroy(rig->group);
}

static void copy(struct rig *rig, int stream, int to, int from)
{
    OK(afdep_device_copy(rig->device[0], rig->words + to, rig->words + from, sizeof(uint32_t),
                         rig->stream[stream]));
}

static void set(struct rig *rig, int stream, int to, uint8_t value)
{
    OK(afdep_device_fill(rig->device[0], rig->words + to, value, sizeof(uint32_t),
                         rig->stream[stream]));
}

Test(branches, a_stream_waits_for_another)
{
    struct rig rig;
    open_rig(&rig);
    OK(afdep_stream_delay(rig.device[0], rig.stream[0], 100));
    set(&rig, 0, 1, 0x11);
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    copy(&rig, 1, 2, 1);
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    cr_assert_eq(rig.words[2], 0x11111111u);
    close_rig(&rig);
}

Test(branches, a_stream_of_another_device_waits_too)
{
    struct rig rig;
    open_rig(&rig);
    OK(afdep_stream_delay(rig.device[1], rig.other, 100));
    OK(afdep_event_record(rig.event[3], rig.other));
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[3]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    double us = 0;
    OK(afdep_event_elapsed(rig.event[3], rig.event[0], &us));
    cr_assert_geq(us, 0);
    close_rig(&rig);
}

Test(branches, what_was_never_recorded_is_not_waited_for)
{
    struct rig rig;
    open_rig(&rig);
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    close_rig(&rig);
}

Test(branches, a_wait_is_for_the_record_before_it)
{
    struct rig rig;
    open_rig(&rig);
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    /* A later record of the same event waits for stream 1: no circle. */
    OK(afdep_event_record(rig.event[1], rig.stream[1]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[1]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    close_rig(&rig);
}

Test(branches, an_event_may_go_while_it_is_waited_for)
{
    struct rig rig;
    open_rig(&rig);
    OK(afdep_stream_delay(rig.device[0], rig.stream[0], 100));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    afdep_event_destroy(rig.event[0]);
    rig.event[0] = NULL;
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    close_rig(&rig);
}

/* words[1] goes to [2] in one branch and to [3] in another; both come together in [4]. */
static afdep_graph *capture_diamond(struct rig *rig)
{
    afdep_graph *graph = NULL;
    OK(afdep_capture_begin(rig->device[0], rig->stream[0]));
    OK(afdep_event_record(rig->event[0], rig->stream[0]));
    OK(afdep_stream_wait(rig->device[0], rig->stream[1], rig->event[0]));
    OK(afdep_stream_wait(rig->device[0], rig->stream[2], rig->event[0]));
    copy(rig, 1, 2, 1);
    copy(rig, 2, 3, 1);
    OK(afdep_event_record(rig->event[1], rig->stream[1]));
    OK(afdep_event_record(rig->event[2], rig->stream[2]));
    OK(afdep_stream_wait(rig->device[0], rig->stream[0], rig->event[1]));
    OK(afdep_stream_wait(rig->device[0], rig->stream[0], rig->event[2]));
    copy(rig, 0, 4, 2);
    copy(rig, 0, 5, 3);
    OK(afdep_capture_end(rig->device[0], rig->stream[0], &graph));
    return graph;
}

Test(branches, a_graph_runs_its_branches_and_then_goes_on)
{
    struct rig rig;
    open_rig(&rig);
    afdep_graph *graph = capture_diamond(&rig);
    for (uint8_t value = 1; value < 50; value++) {
        set(&rig, 0, 1, value);
        OK(afdep_graph_launch(graph, rig.stream[0]));
        copy(&rig, 0, 6, 4);
        OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
        cr_assert_eq(rig.words[6], value * 0x01010101u);
        cr_assert_eq(rig.words[5], value * 0x01010101u);
    }
    /* The streams are free again. */
    set(&rig, 1, 7, 9);
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    cr_assert_eq(rig.words[7], 0x09090909u);
    afdep_graph_destroy(graph);
    close_rig(&rig);
}

Test(branches, a_branch_that_is_not_waited_for_is_refused)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    copy(&rig, 1, 2, 1);
    cr_assert_eq(afdep_capture_end(rig.device[0], rig.stream[1], &graph), AFDEP_ERROR_DEVICE);
    cr_assert(strstr(afdep_last_error(), "begun in another stream"), "%s", afdep_last_error());
    cr_assert_eq(afdep_capture_end(rig.device[0], rig.stream[0], &graph), AFDEP_ERROR_DEVICE);
    cr_assert(strstr(afdep_last_error(), "not waited for"), "%s", afdep_last_error());
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    close_rig(&rig);
}

Test(branches, an_event_of_no_capture_is_refused_inside_one)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(afdep_event_record(rig.event[0], rig.stream[1]));
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    cr_assert_eq(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[0]), AFDEP_ERROR_DEVICE);
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    afdep_graph_destroy(graph);
    close_rig(&rig);
}

Test(branches, a_record_of_an_ended_capture_is_refused)
{
    struct rig rig;
    open_rig(&rig);
    afdep_graph *graph = capture_diamond(&rig);
    const afdep_status with_graph = afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]);
    cr_assert_eq(with_graph, AFDEP_ERROR_DEVICE);
    cr_assert(strstr(afdep_last_error(), "has ended"), "%s", afdep_last_error());
    afdep_graph_destroy(graph);
    cr_assert_eq(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]), AFDEP_ERROR_DEVICE);
    /* The stream has joined nothing, and a new record can be waited for. */
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[1]));
    close_rig(&rig);
}

Test(branches, events_and_joined_streams_may_go_inside_a_capture)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    set(&rig, 1, 1, 0x22);
    OK(afdep_event_record(rig.event[1], rig.stream[1]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[1]));
    for (int i = 0; i < 2; i++) {
        afdep_event_destroy(rig.event[i]);
        rig.event[i] = NULL;
    }
    afdep_stream_destroy(rig.device[0], rig.stream[1]);
    rig.stream[1] = NULL;
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    OK(afdep_graph_launch(graph, rig.stream[0]));
    copy(&rig, 0, 2, 1);
    afdep_graph_destroy(graph);
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.words[2], 0x22222222u);
    close_rig(&rig);
}

Test(branches, a_capture_goes_with_the_stream_it_began_in)
{
    struct rig rig;
    open_rig(&rig);
    set(&rig, 0, 1, 0x33); /* still in the stream when that is destroyed */
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    set(&rig, 1, 2, 0x44);
    afdep_stream_destroy(rig.device[0], rig.stream[0]);
    rig.stream[0] = NULL;
    cr_assert_eq(afdep_stream_wait(rig.device[0], rig.stream[2], rig.event[0]), AFDEP_ERROR_DEVICE);
    set(&rig, 1, 3, 0x55);
    OK(afdep_device_synchronize(rig.device[0]));
    cr_assert_eq(rig.words[1], 0x33333333u);
    cr_assert_eq(rig.words[2], 0u, "what was recorded does not run");
    cr_assert_eq(rig.words[3], 0x55555555u);
    close_rig(&rig);
}

Test(branches, a_capture_waits_for_no_other_capture)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_capture_begin(rig.device[0], rig.stream[1]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    cr_assert_eq(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]), AFDEP_ERROR_DEVICE);
    for (int i = 0; i < 2; i++) {
        OK(afdep_capture_end(rig.device[0], rig.stream[i], &graph));
        afdep_graph_destroy(graph);
    }
    close_rig(&rig);
}

struct args {
    uint64_t mine, theirs, out;
};

/* An image with one entry, `kernel`, over the words that its arguments point to. */
static const char prelude[] =
    "#include \"host/ops.h\"\n"
    "static const afj_sim_ops *sim;\n"
    "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
    "struct Args { uint64_t mine, theirs, out; };\n"
    "EXPORT const uint64_t afj_sim_arguments_bytes;\n"
    "const uint64_t afj_sim_arguments_bytes = sizeof(Args);\n"
    "EXPORT void afj_sim_bind(const afj_sim_ops *ops) { sim = ops; }\n"
    "static volatile uint32_t *words(uint64_t p) { return (volatile uint32_t *)p; }\n"
    "static void store(uint64_t p, uint32_t v) { sim->store((uint32_t *)p, &v, 1); }\n"
    "EXPORT void kernel(const void *p) { const Args &a = *(const Args *)p;\n";

/* Ends well only beside another of its kind that has the two words the other way round. */
static const char meet[] =
    "    const uint64_t end = sim->clock_ns() + 30000000000u;\n"
    "    store(a.theirs, 1);\n"
    "    while (*words(a.mine) != 1 && sim->clock_ns() < end) sim->pause();\n"
    "    store(a.out, *words(a.mine) == 1 ? 1 : 2);\n"
    "}\n";

/* Counts itself and, in `out`, each time that it found another of its kind beside it. */
static const char be_alone[] = "    *words(a.out) = *words(a.out) + *words(a.theirs);\n"
                               "    *words(a.theirs) = *words(a.theirs) + 1;\n"
                               "    for (uint32_t i = 0; i < 50; ++i) sim->point();\n"
                               "    *words(a.theirs) = *words(a.theirs) - 1;\n"
                               "    *words(a.mine) = *words(a.mine) + 1;\n"
                               "}\n";

struct loaded {
    struct afj_module *module;
    struct afj_kernel *kernel;
};

static struct loaded load(afdep_device *device, const char *kernel)
{
    struct afj_compiled compiled = compile_sim_image(prelude, kernel);
    struct loaded loaded;
    OK(device->kind->module_load(device, compiled.image, compiled.image_bytes, &loaded.module));
    OK(device->kind->kernel(loaded.module, "kernel", sizeof(struct args), 0, &loaded.kernel));
    afj_compiled_finish(&compiled);
    return loaded;
}

static void launch(struct loaded loaded, uint32_t *mine, uint32_t *theirs, uint32_t *out,
                   afdep_stream stream)
{
    const struct args args = {(uintptr_t)mine, (uintptr_t)theirs, (uintptr_t)out};
    const struct afj_launch launch = {
        .ctas = 1, .warps = 1, .arguments = &args, .arguments_bytes = sizeof args};
    OK(afj_device_sim.launch(loaded.kernel, &launch, stream));
}

static void use_seed(uint64_t seed)
{
    const struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
    afj_sim_configure(&policy);
}

Test(branches, kernels_of_two_branches_run_side_by_side)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    const struct loaded kernel = load(rig.device[0], meet);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_device_fill(rig.device[0], rig.words, 0, 4 * sizeof(uint32_t), rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
    launch(kernel, rig.words, rig.words + 1, rig.words + 2, rig.stream[0]);
    launch(kernel, rig.words + 1, rig.words, rig.words + 3, rig.stream[1]);
    OK(afdep_event_record(rig.event[1], rig.stream[1]));
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[1]));
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    afj_device_sim.module_unload(kernel.module); /* the graph keeps what it needs */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        use_seed(seed);
        for (int replay = 0; replay < 10; replay++) {
            OK(afdep_graph_launch(graph, rig.stream[0]));
            copy(&rig, 0, 4, 2);
            copy(&rig, 0, 5, 3);
            OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
            cr_assert_eq(rig.words[4], 1u, "seed %u", (unsigned)seed);
            cr_assert_eq(rig.words[5], 1u, "seed %u", (unsigned)seed);
        }
    }
    afdep_graph_destroy(graph);
    close_rig(&rig);
}

Test(branches, a_branch_may_be_on_another_device)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(rig.device[0]->kind->enable_peer(rig.device[0], rig.device[1]));
    OK(rig.device[1]->kind->enable_peer(rig.device[1], rig.device[0]));
    void *memory = NULL;
    OK(afdep_device_alloc(rig.device[1], 2 * sizeof(uint32_t), &memory));
    uint32_t *far = memory;
    const struct loaded near_kernel = load(rig.device[0], meet);
    const struct loaded far_kernel = load(rig.device[1], meet);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_device_fill(rig.device[0], rig.words, 0, 2 * sizeof(uint32_t), rig.stream[0]));
    OK(afdep_device_fill(rig.device[0], far, 0, 2 * sizeof(uint32_t), rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    OK(afdep_stream_wait(rig.device[1], rig.other, rig.event[0]));
    launch(near_kernel, rig.words, far, rig.words + 1, rig.stream[0]);
    launch(far_kernel, far, rig.words, far + 1, rig.other);
    OK(afdep_event_record(rig.event[3], rig.other));
    OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[3]));
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        use_seed(seed);
        OK(afdep_graph_launch(graph, rig.stream[0]));
        OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
        cr_assert_eq(rig.words[1], 1u, "seed %u", (unsigned)seed);
        cr_assert_eq(far[1], 1u, "seed %u", (unsigned)seed);
        cr_assert_eq(afj_sim_counters().violations, 0u, "seed %u", (unsigned)seed);
    }
    afdep_graph_destroy(graph);
    afj_device_sim.module_unload(near_kernel.module);
    afj_device_sim.module_unload(far_kernel.module);
    afdep_device_free(rig.device[1], far);
    close_rig(&rig);
}

/* Launches of one graph in three streams; `destroy`: it is destroyed before they run. */
static void launch_beside(bool branches, bool destroy)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    const struct loaded kernel = load(rig.device[0], be_alone);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    OK(afdep_event_record(rig.event[0], rig.stream[0]));
    if (branches) {
        OK(afdep_stream_wait(rig.device[0], rig.stream[1], rig.event[0]));
        launch(kernel, rig.words + 3, rig.words + 4, rig.words + 5, rig.stream[1]);
        OK(afdep_event_record(rig.event[1], rig.stream[1]));
    }
    launch(kernel, rig.words, rig.words + 1, rig.words + 2, rig.stream[0]);
    if (branches)
        OK(afdep_stream_wait(rig.device[0], rig.stream[0], rig.event[1]));
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    const uint32_t seeds = destroy ? 1 : 20;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        use_seed(seed);
        for (int i = 0; i < 6; i++)
            OK(afdep_graph_launch(graph, rig.stream[i % 3]));
        if (destroy)
            afdep_graph_destroy(graph);
        OK(afdep_device_synchronize(rig.device[0]));
        cr_assert_eq(rig.words[0], 6 * seed);
        cr_assert_eq(rig.words[2], 0u, "seed %u", (unsigned)seed);
        cr_assert_eq(rig.words[3], branches ? 6 * seed : 0);
        cr_assert_eq(rig.words[5], 0u, "seed %u", (unsigned)seed);
    }
    if (!destroy)
        afdep_graph_destroy(graph);
    afj_device_sim.module_unload(kernel.module);
    close_rig(&rig);
}

Test(branches, a_graph_does_not_run_beside_itself)
{
    launch_beside(false, false);
    launch_beside(true, false);
}

Test(branches, a_graph_may_go_before_its_launches_run)
{
    launch_beside(false, true);
    launch_beside(true, true);
}

Test(branches, a_graph_runs_again_after_a_launch_that_was_dropped)
{
    struct rig rig;
    open_rig(&rig);
    afdep_graph *graph = capture_diamond(&rig);
    set(&rig, 0, 1, 0x66);
    OK(afdep_stream_synchronize(rig.device[0], rig.stream[0]));
    OK(afdep_graph_launch(graph, rig.stream[0]));
    use_seed(1); /* drops all work */
    OK(afdep_device_synchronize(rig.device[0]));
    cr_assert_eq(rig.words[5], 0u);
    OK(afdep_graph_launch(graph, rig.stream[1]));
    OK(afdep_device_synchronize(rig.device[0]));
    cr_assert_eq(rig.words[5], 0x66666666u);
    afdep_graph_destroy(graph);
    close_rig(&rig);
}

Test(branches, a_delay_is_refused_while_recording)
{
    struct rig rig;
    afdep_graph *graph = NULL;
    open_rig(&rig);
    OK(afdep_capture_begin(rig.device[0], rig.stream[0]));
    cr_assert_eq(afdep_stream_delay(rig.device[0], rig.stream[0], 5), AFDEP_ERROR_DEVICE);
    cr_assert(strstr(afdep_last_error(), "being recorded"), "%s", afdep_last_error());
    OK(afdep_capture_end(rig.device[0], rig.stream[0], &graph));
    afdep_graph_destroy(graph);
    close_rig(&rig);
}
