/* test_sim.c: the simulated devices, with kernels small enough to see through. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/device.h"
#include "device/sim/sim.h"
#include "jit/compiler.h"
#include "support/sim_image.h"

/* The kernels. Each is an image of its own, since an image exports one entry. */
struct args {
    uint64_t mine, theirs; /* words of this device and of the other */
    uint64_t out;          /* what the kernel reports */
    uint64_t deadline_ns;
    uint32_t count, flag, first, reserved;
};

static const char prelude[] =
    "#include \"host/ops.h\"\n"
    "static const afj_sim_ops *sim;\n"
    "#define EXPORT extern \"C\" __attribute__((visibility(\"default\")))\n"
    "struct Args { uint64_t mine, theirs, out, deadline_ns; uint32_t count, flag, first, reserved; "
    "};\n"
    "EXPORT const uint64_t afj_sim_arguments_bytes;\n"
    "const uint64_t afj_sim_arguments_bytes = sizeof(Args);\n"
    "EXPORT void afj_sim_bind(const afj_sim_ops *ops) { sim = ops; }\n"
    "static uint32_t *words(uint64_t p) { return (uint32_t *)p; }\n"
    "static uint32_t load(uint64_t p, uint32_t i) {\n"
    "    return ((const volatile uint32_t *)p)[i];\n"
    "}\n"
    "static void store(uint64_t p, uint32_t i, uint32_t v) { sim->store(words(p) + i, &v, 1); }\n"
    "static bool wait_for(const Args &a, uint32_t i, uint32_t v) {\n"
    "    const uint64_t end = sim->clock_ns() + a.deadline_ns;\n"
    "    while (load(a.mine, i) != v) {\n"
    "        sim->pause();\n"
    "        if (sim->clock_ns() >= end) return false;\n"
    "    }\n"
    "    return true;\n"
    "}\n";
#define KERNEL(name) "EXPORT void " name "(const void *p) { const Args &a = *(const Args *)p;\n"

static const char ping[] =
    KERNEL("kernel") "    for (uint32_t r = a.first + 1; r <= a.first + a.count; ++r) {\n"
                     "        if (a.flag) store(a.theirs, 0, r);\n"
                     "        if (!wait_for(a, 0, r)) return;\n"
                     "        if (!a.flag) store(a.theirs, 0, r);\n"
                     "    }\n"
                     "    store(a.out, 0, a.first + a.count);\n"
                     "}\n";

/* Warp 0 of each CTA sends `count` words and then a flag behind them, with a fence between or not.
 */
static const char send[] =
    KERNEL("kernel") "    for (uint32_t i = 0; i < a.count; ++i) store(a.theirs, i + 1, i + 1);\n"
                     "    if (a.flag) sim->fence();\n"
                     "    store(a.theirs, 0, 1);\n"
                     "}\n";

/* Each warp sends its word; behind a CTA barrier warp 0 alone fences, or not, and sends the flag.
 */
static const char send_by_warps[] =
    KERNEL("kernel") "    store(a.theirs, sim->warp() + 1, sim->warp() + 1);\n"
                     "    sim->barrier(0);\n"
                     "    if (sim->warp() != 0) return;\n"
                     "    if (a.flag) sim->fence();\n"
                     "    store(a.theirs, 0, 1);\n"
                     "}\n";

/* Sends words without a flag; `send_flag` comes as a second kernel. */
static const char send_words[] =
    KERNEL("kernel") "    store(a.theirs, sim->cta() + 1, sim->cta() + 1);\n"
                     "}\n";
static const char send_flag[] = KERNEL("kernel") "    if (a.flag) sim->fence();\n"
                                                 "    store(a.theirs, 0, 1);\n"
                                                 "}\n";

/* Waits for the flag, then reports how many of the words behind it are missing. */
static const char check[] = KERNEL(
    "kernel") "    if (!wait_for(a, 0, 1)) return;\n"
              "    uint32_t missing = 0;\n"
              "    for (uint32_t i = 1; i <= a.count; ++i) missing += load(a.mine, i) != i;\n"
              "    store(a.out, 0, missing);\n"
              "}\n";

static const char add_one[] = KERNEL("kernel") "    store(a.mine, 0, load(a.mine, 0) + 1);\n"
                                               "}\n";

/* Votes in two barriers; warps from `count` on end before the second. */
static const char vote[] =
    KERNEL("kernel") "    const uint32_t first = sim->barrier(sim->warp() == a.flag);\n"
                     "    if (sim->warp() >= a.count) return;\n"
                     "    const uint32_t second = sim->barrier(0);\n"
                     "    store(a.out, sim->warp(), 1 + first + 2 * second);\n"
                     "}\n";

static const char wait[] = KERNEL("kernel") "    store(a.out, 0, wait_for(a, 0, 1) ? 1 : 2);\n"
                                            "}\n";

static const char spin[] =
    KERNEL("kernel") "    for (;;) { if (a.flag) store(a.mine, 0, 1); else sim->point(); }\n"
                     "}\n";

static const char poll_for_ever[] =
    KERNEL("kernel") "    while (load(a.mine, 0) != 1) sim->pause();\n"
                     "}\n";

static const char watch_clock[] =
    KERNEL("kernel") "    const uint64_t end = sim->clock_ns() + a.deadline_ns;\n"
                     "    while (sim->clock_ns() < end) {}\n"
                     "    store(a.out, 0, 1);\n"
                     "}\n";

static const char store_one[] =
    KERNEL("kernel") "    for (uint32_t i = 0; i < a.count; ++i) store(a.theirs, a.flag, i + 7);\n"
                     "}\n";

/* Each CTA writes when it began and when it ended, by one counter for both. */
static const char stamp[] =
    KERNEL("kernel") "    words(a.out)[1 + 2 * (a.flag + sim->cta())] = ++words(a.out)[0];\n"
                     "    for (uint32_t i = 0; i < 50; ++i) sim->point();\n"
                     "    words(a.out)[2 + 2 * (a.flag + sim->cta())] = ++words(a.out)[0];\n"
                     "}\n";

static const char use_shared[] =
    KERNEL("kernel") "    uint32_t *all = (uint32_t *)sim->shared();\n"
                     "    all[sim->warp()] = sim->warp() + 100 * sim->cta();\n"
                     "    sim->barrier(0);\n"
                     "    store(a.out, sim->cta() * sim->warps() + sim->warp(),\n"
                     "          all[sim->warps() - 1 - sim->warp()]);\n"
                     "}\n";

/* ---- the bench ---- */

static const struct afj_device_kind *const dev = &afj_device_sim;

#define OK(call) cr_assert_eq((call), AFDEP_OK, "%s", afj_status_sentence())

/* Two devices that reach each other, a stream and 64 empty words each, and words to report in. */
#define WORDS 64
struct rig {
    afdep_device *device[2];
    afdep_stream stream[2];
    uint32_t *words[2];
    uint32_t *out[2]; /* host memory, [WORDS] */
};

static struct rig make_rig(void)
{
    struct rig rig;
    for (int i = 0; i < 2; i++) {
        OK(dev->open(i, &rig.device[i]));
        OK(dev->stream_create(rig.device[i], &rig.stream[i]));
        OK(dev->alloc(rig.device[i], WORDS * 4, (void **)&rig.words[i]));
        OK(dev->host_alloc(rig.device[i], WORDS * 4, (void **)&rig.out[i]));
        memset(rig.words[i], 0, WORDS * 4);
    }
    OK(dev->enable_peer(rig.device[0], rig.device[1]));
    OK(dev->enable_peer(rig.device[1], rig.device[0]));
    return rig;
}

static void drop_rig(struct rig *rig)
{
    for (int i = 0; i < 2; i++) {
        dev->host_free(rig->device[i], rig->out[i]);
        dev->free(rig->device[i], rig->words[i]);
        dev->stream_destroy(rig->device[i], rig->stream[i]);
        dev->close(rig->device[i]);
    }
}

static struct args args_of(const struct rig *rig, int device)
{
    return (struct args){.mine = (uintptr_t)rig->words[device],
                         .theirs = (uintptr_t)rig->words[1 - device],
                         .out = (uintptr_t)rig->out[device],
                         .deadline_ns = 30000000000u};
}

struct loaded {
    struct afj_module *module;
    struct afj_kernel *kernel;
};

static struct loaded load(afdep_device *device, const char *text)
{
    struct loaded loaded;
    struct afj_compiled compiled = compile_sim_image(prelude, text);
    OK(dev->module_load(device, compiled.image, compiled.image_bytes, &loaded.module));
    OK(dev->kernel(loaded.module, "kernel", sizeof(struct args), 1024, &loaded.kernel));
    afj_compiled_finish(&compiled);
    return loaded;
}

static void launch(struct loaded loaded, uint32_t ctas, uint32_t warps, const struct args *args,
                   afdep_stream stream)
{
    struct afj_launch launch = {.ctas = ctas,
                                .warps = warps,
                                .shared_bytes = 1024,
                                .arguments = args,
                                .arguments_bytes = sizeof *args};
    OK(dev->launch(loaded.kernel, &launch, stream));
}

static void use_seed(uint64_t seed)
{
    struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
    afj_sim_configure(&policy);
}

static void expect_clean(void)
{
    char sentence[256];
    afj_sim_first_violation(sentence, sizeof sentence);
    cr_assert_eq(afj_sim_counters().violations, 0u, "%s", sentence);
}

/* ---- words ---- */

static void run_ping(struct rig *rig, const struct loaded kernels[2], uint32_t rounds)
{
    for (int i = 0; i < 2; i++) {
        struct args args = args_of(rig, i);
        memset(rig->words[i], 0, WORDS * 4);
        args.count = rounds;
        args.flag = i == 0;
        launch(kernels[i], 1, 1, &args, rig->stream[i]);
    }
    OK(dev->stream_synchronize(rig->device[0], rig->stream[0]));
    OK(dev->stream_synchronize(rig->device[1], rig->stream[1]));
}

Test(sim, two_devices_play_ping_pong_by_words)
{
    struct rig rig = make_rig();
    struct loaded kernels[2] = {load(rig.device[0], ping), load(rig.device[1], ping)};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        use_seed(seed);
        rig.out[0][0] = rig.out[1][0] = 0;
        run_ping(&rig, kernels, 100);
        cr_assert_eq(rig.out[0][0], 100u);
        cr_assert_eq(rig.out[1][0], 100u);
        cr_assert_eq(afj_sim_counters().delivered, 200u);
        cr_assert_eq(afj_sim_counters().jumps, 0u, "seed %d: time ran ahead", (int)seed);
        expect_clean();
    }
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
}

/* How many of 60 seeds see a word missing behind the flag that `sender` sends. */
static uint32_t count_missing(const char *sender, const char *second, uint32_t ctas, uint32_t warps,
                              uint32_t count, uint32_t fenced)
{
    struct rig rig = make_rig();
    struct loaded from = load(rig.device[0], sender), to = load(rig.device[1], check);
    struct loaded then = second != NULL ? load(rig.device[0], second) : from;
    uint32_t seeds = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct args sent = args_of(&rig, 0), seen = args_of(&rig, 1);
        use_seed(seed);
        memset(rig.words[1], 0, WORDS * 4);
        rig.out[1][0] = 1000;
        sent.count = seen.count = count;
        sent.flag = fenced;
        launch(from, ctas, warps, &sent, rig.stream[0]);
        if (second != NULL)
            launch(then, 1, 1, &sent, rig.stream[0]);
        launch(to, 1, 1, &seen, rig.stream[1]);
        OK(dev->stream_synchronize(rig.device[1], rig.stream[1]));
        OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
        cr_assert_neq(rig.out[1][0], 1000u);
        for (uint32_t i = 0; i <= count; i++)
            cr_assert_eq(rig.words[1][i], i == 0 ? 1 : i, "seed %d lost word %u", (int)seed, i);
        seeds += rig.out[1][0] > 0;
        expect_clean();
    }
    if (second != NULL)
        dev->module_unload(then.module);
    dev->module_unload(from.module);
    dev->module_unload(to.module);
    drop_rig(&rig);
    return seeds;
}

Test(sim, words_overtake_each_other_without_a_fence)
{
    cr_assert_gt(count_missing(send, NULL, 1, 1, 20, 0), 20u);
}

Test(sim, a_fence_keeps_later_words_behind_earlier_ones)
{
    cr_assert_eq(count_missing(send, NULL, 1, 1, 20, 1), 0u);
}

Test(sim, a_barrier_alone_orders_no_words_between_devices)
{
    cr_assert_gt(count_missing(send_by_warps, NULL, 1, 8, 8, 0), 10u);
}

Test(sim, a_fence_behind_a_barrier_covers_the_words_of_the_whole_cta)
{
    cr_assert_eq(count_missing(send_by_warps, NULL, 1, 8, 8, 1), 0u);
}

Test(sim, words_outlive_their_kernel)
{
    cr_assert_gt(count_missing(send_words, send_flag, 12, 1, 12, 0), 10u);
}

Test(sim, a_fence_covers_the_words_of_earlier_kernels_of_the_stream)
{
    cr_assert_eq(count_missing(send_words, send_flag, 12, 1, 12, 1), 0u);
}

struct order {
    uint32_t *base;
    uint32_t last, arrivals, inversions;
};

static void watch_order(const struct afj_sim_arrival *arrival, void *user)
{
    struct order *order = user;
    uint32_t index = (uint32_t)(arrival->address - order->base);
    cr_assert_eq(arrival->from, 0u);
    cr_assert_eq(arrival->to, 1u);
    cr_assert_eq(arrival->before, 0u);
    cr_assert_eq(arrival->value, index == 0 ? 1 : index);
    order->arrivals++;
    order->inversions += index < order->last;
    order->last = index;
}

Test(sim, an_observer_sees_each_word_arrive_once_in_no_order)
{
    struct rig rig = make_rig();
    struct loaded from = load(rig.device[0], send);
    struct order order = {.base = rig.words[1]};
    struct afj_sim_policy policy = afj_sim_policy_of_seed(5);
    struct args args = args_of(&rig, 0);
    policy.arrival = watch_order;
    policy.user = &order;
    afj_sim_configure(&policy);
    args.count = 60;
    launch(from, 1, 1, &args, rig.stream[0]);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(order.arrivals, 61u);
    cr_assert_gt(order.inversions, 10u);
    dev->module_unload(from.module);
    drop_rig(&rig);
}

Test(sim, synchronising_a_stream_delivers_what_it_stored)
{
    struct rig rig = make_rig();
    struct loaded from = load(rig.device[0], send);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct args args = args_of(&rig, 0);
        use_seed(seed);
        memset(rig.words[1], 0, WORDS * 4);
        args.count = 60;
        launch(from, 1, 1, &args, rig.stream[0]);
        OK(dev->synchronize(rig.device[0]));
        for (uint32_t i = 0; i <= 60; i++)
            cr_assert_eq(rig.words[1][i], i == 0 ? 1 : i);
    }
    dev->module_unload(from.module);
    drop_rig(&rig);
}

Test(sim, words_to_freed_memory_are_dropped)
{
    struct rig rig = make_rig();
    struct loaded from = load(rig.device[0], send), idle = load(rig.device[1], add_one);
    struct afj_sim_policy policy = afj_sim_policy_of_seed(3);
    struct args args = args_of(&rig, 0), other = args_of(&rig, 1);
    policy.run_weight = 1000000;
    policy.deliver_weight = 1;
    afj_sim_configure(&policy);
    args.count = 60;
    launch(from, 1, 1, &args, rig.stream[0]);
    /* A long chain on the other device, whose end does not wait for the words. */
    for (int i = 0; i < 200; i++)
        launch(idle, 1, 1, &other, rig.stream[1]);
    OK(dev->stream_synchronize(rig.device[1], rig.stream[1]));
    cr_assert_lt(afj_sim_counters().delivered, afj_sim_counters().stored);
    dev->free(rig.device[1], rig.words[1]);
    rig.words[1] = NULL;
    OK(dev->synchronize(rig.device[0]));
    struct afj_sim_counters counters = afj_sim_counters();
    cr_assert_gt(counters.dropped, 0u);
    cr_assert_eq(counters.delivered + counters.dropped, counters.stored);
    dev->module_unload(from.module);
    dev->module_unload(idle.module);
    drop_rig(&rig);
}

/* ---- traces ---- */

static uint64_t trace_of(struct rig *rig, const struct loaded kernels[2], uint64_t seed)
{
    use_seed(seed);
    run_ping(rig, kernels, 20);
    return afj_sim_trace_digest();
}

Test(sim, the_same_seed_gives_the_same_trace_and_another_seed_another)
{
    struct rig rig = make_rig();
    struct loaded kernels[2] = {load(rig.device[0], ping), load(rig.device[1], ping)};
    uint64_t first = trace_of(&rig, kernels, 1), second = trace_of(&rig, kernels, 2);
    cr_assert_neq(first, second);
    cr_assert_eq(trace_of(&rig, kernels, 1), first);
    cr_assert_eq(trace_of(&rig, kernels, 2), second);
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
    /* Other addresses, the same trace. */
    void *shift = malloc(100000);
    rig = make_rig();
    kernels[0] = load(rig.device[0], ping);
    kernels[1] = load(rig.device[1], ping);
    cr_assert_eq(trace_of(&rig, kernels, 1), first);
    free(shift);
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
}

Test(sim, the_seed_comes_from_the_environment_unless_one_is_set)
{
    uint64_t traces[2];
    struct rig rig;
    struct loaded kernels[2];
    cr_assert_eq(setenv("AFDEP_SIM_SEED", "77", 1), 0);
    rig = make_rig();
    kernels[0] = load(rig.device[0], ping);
    kernels[1] = load(rig.device[1], ping);
    run_ping(&rig, kernels, 20);
    traces[0] = afj_sim_trace_digest();
    traces[1] = trace_of(&rig, kernels, 77);
    cr_assert_eq(traces[0], traces[1]);
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
}

/* ---- CTAs ---- */

Test(sim, a_barrier_ors_the_votes_and_does_not_wait_for_ended_warps)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], vote);
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct args args = args_of(&rig, 0);
        use_seed(seed);
        memset(rig.out[0], 0, WORDS * 4);
        args.count = 5;
        args.flag = (uint32_t)seed % 9; /* warp 8 does not exist: nobody votes */
        launch(kernel, 1, 8, &args, rig.stream[0]);
        OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
        for (uint32_t warp = 0; warp < 8; warp++)
            cr_assert_eq(rig.out[0][warp], warp >= 5 ? 0u : args.flag < 8 ? 2u : 1u);
    }
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

Test(sim, shared_memory_belongs_to_one_cta)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], use_shared);
    struct args args = args_of(&rig, 0);
    launch(kernel, 8, 4, &args, rig.stream[0]);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    for (uint32_t cta = 0; cta < 8; cta++)
        for (uint32_t warp = 0; warp < 4; warp++)
            cr_assert_eq(rig.out[0][cta * 4 + warp], 100 * cta + 3 - warp);
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

/* Whether some CTA of stamps [first, first + 8) began before the earliest end among them. */
static bool overlapped(const uint32_t *stamps)
{
    uint32_t earliest = UINT32_MAX, begun = 0;
    for (int cta = 0; cta < 8; cta++)
        if (stamps[2 + 2 * cta] < earliest)
            earliest = stamps[2 + 2 * cta];
    for (int cta = 0; cta < 8; cta++)
        begun += stamps[1 + 2 * cta] < earliest;
    return begun > 1;
}

Test(sim, a_held_entry_runs_one_cta_before_the_others)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], stamp);
    struct args args = args_of(&rig, 0);
    for (int held = 0; held < 2; held++) {
        struct afj_sim_policy policy = afj_sim_policy_of_seed(4);
        policy.hold_entry = held ? "kernel" : "another";
        policy.point_permille = 500;
        afj_sim_configure(&policy);
        memset(rig.out[0], 0, WORDS * 4);
        launch(kernel, 8, 1, &args, rig.stream[0]);
        OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
        cr_assert_eq(rig.out[0][0], 16u);
        cr_assert_eq(overlapped(rig.out[0]), !held);
    }
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

Test(sim, a_held_device_runs_when_the_others_have_ended)
{
    struct rig rig = make_rig();
    struct loaded kernels[2] = {load(rig.device[0], stamp), load(rig.device[1], stamp)};
    for (int held = 0; held < 2; held++) {
        struct afj_sim_policy policy = afj_sim_policy_of_seed(6);
        policy.hold_device = held;
        afj_sim_configure(&policy);
        memset(rig.out[0], 0, WORDS * 4);
        for (int i = 0; i < 2; i++) {
            struct args args = args_of(&rig, i);
            args.out = (uintptr_t)rig.out[0];
            args.flag = (uint32_t)i;
            launch(kernels[i], 1, 1, &args, rig.stream[i]);
        }
        OK(dev->synchronize(rig.device[held]));
        cr_assert_eq(rig.out[0][2 + 2 * (1 - held)], 2u);
        cr_assert_eq(rig.out[0][1 + 2 * held], 3u);
    }
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
}

/* ---- streams, graphs, events ---- */

Test(sim, a_stream_does_one_thing_after_the_other)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], add_one);
    struct args args = args_of(&rig, 0);
    uint32_t seen[3] = {0};
    OK(dev->fill(rig.device[0], rig.words[0], 0, 4, rig.stream[0]));
    for (int i = 0; i < 3; i++) {
        launch(kernel, 1, 1, &args, rig.stream[0]);
        launch(kernel, 1, 1, &args, rig.stream[0]);
        OK(dev->copy(rig.device[0], &seen[i], rig.words[0], 4, rig.stream[0]));
    }
    cr_assert_eq(seen[0], 0u, "a launch ran before anyone synchronised");
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(seen[0], 2u);
    cr_assert_eq(seen[1], 4u);
    cr_assert_eq(seen[2], 6u);
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

Test(sim, a_copy_sees_what_earlier_kernels_stored_on_another_device)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], send);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct args args = args_of(&rig, 0);
        uint32_t seen[WORDS];
        use_seed(seed);
        memset(rig.words[1], 0, WORDS * 4);
        args.count = 60;
        launch(kernel, 1, 1, &args, rig.stream[0]);
        OK(dev->copy(rig.device[0], seen, rig.words[1], sizeof seen, rig.stream[0]));
        OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
        for (uint32_t i = 1; i <= 60; i++)
            cr_assert_eq(seen[i], i);
    }
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

Test(sim, a_graph_runs_as_often_as_it_is_launched_and_not_before)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], add_one);
    struct args args = args_of(&rig, 0);
    afdep_graph *graph;
    bool capturing;
    OK(dev->capture_begin(rig.device[0], rig.stream[0]));
    OK(dev->stream_capturing(rig.device[0], rig.stream[0], &capturing));
    cr_assert(capturing);
    for (int i = 0; i < 4; i++)
        launch(kernel, 1, 1, &args, rig.stream[0]);
    args.mine = 0; /* arguments were copied by the launch */
    cr_assert_eq(dev->stream_synchronize(rig.device[0], rig.stream[0]), AFDEP_ERROR_DEVICE);
    OK(dev->capture_end(rig.device[0], rig.stream[0], &graph));
    OK(dev->stream_capturing(rig.device[0], rig.stream[0], &capturing));
    cr_assert_not(capturing);
    dev->module_unload(kernel.module); /* the graph keeps what it needs */
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.words[0][0], 0u);
    for (int i = 0; i < 3; i++)
        OK(dev->graph_launch(graph, rig.stream[0]));
    dev->graph_destroy(graph);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.words[0][0], 12u);
    drop_rig(&rig);
}

Test(sim, events_measure_simulated_time)
{
    struct rig rig = make_rig();
    afdep_event *from, *to;
    double us = 0;
    OK(dev->event_create(rig.device[0], &from));
    OK(dev->event_create(rig.device[0], &to));
    cr_assert_eq(dev->event_elapsed(from, to, &us), AFDEP_ERROR_DEVICE);
    OK(dev->event_record(from, rig.stream[0]));
    OK(dev->stream_delay(rig.device[0], rig.stream[0], 5000));
    OK(dev->event_record(to, rig.stream[0]));
    cr_assert_eq(dev->event_elapsed(from, to, &us), AFDEP_ERROR_DEVICE);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    OK(dev->event_elapsed(from, to, &us));
    cr_assert_geq(us, 5000.0);
    cr_assert_lt(us, 5100.0);
    cr_assert_lt(afj_sim_counters().steps, 1000u, "a delay is a jump, not a loop");
    dev->event_destroy(from);
    dev->event_destroy(to);
    drop_rig(&rig);
}

Test(sim, a_destroyed_stream_still_runs_what_is_in_it)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], add_one);
    struct args args = args_of(&rig, 0);
    afdep_stream other;
    OK(dev->stream_create(rig.device[0], &other));
    launch(kernel, 1, 1, &args, other);
    dev->stream_destroy(rig.device[0], other);
    OK(dev->synchronize(rig.device[0]));
    cr_assert_eq(rig.words[0][0], 1u);
    cr_assert_eq(dev->stream_synchronize(rig.device[0], other), AFDEP_ERROR_ARGUMENT);
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

/* ---- time ---- */

Test(sim, a_kernel_that_waits_in_vain_sees_time_jump_and_ends)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], wait);
    struct args args = args_of(&rig, 0);
    launch(kernel, 1, 1, &args, rig.stream[0]);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.out[0][0], 2u);
    cr_assert_geq(afj_sim_clock_ns(), 30000000000u);
    cr_assert_lt(afj_sim_clock_ns(), 60000000000u);
    cr_assert_lt(afj_sim_counters().steps, 10000u);
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

Test(sim, a_kernel_that_only_reads_the_clock_ends)
{
    struct rig rig = make_rig();
    struct loaded kernel = load(rig.device[0], watch_clock);
    struct args args = args_of(&rig, 0);
    launch(kernel, 1, 1, &args, rig.stream[0]);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.out[0][0], 1u);
    dev->module_unload(kernel.module);
    drop_rig(&rig);
}

static void expect_endless(const char *text, uint32_t flag)
{
    struct rig rig = make_rig();
    struct loaded endless = load(rig.device[0], text), fine = load(rig.device[0], add_one);
    struct args args = args_of(&rig, 0);
    args.flag = flag;
    launch(endless, 2, 2, &args, rig.stream[0]);
    cr_assert_eq(dev->stream_synchronize(rig.device[0], rig.stream[0]), AFDEP_ERROR_INTERNAL);
    cr_assert_not_null(strstr(afj_status_sentence(), "kernel of device 0"), "%s",
                       afj_status_sentence());
    cr_assert_not_null(strstr(afj_status_sentence(), "4 warps"), "%s", afj_status_sentence());
    afj_sim_reset();
    memset(rig.words[0], 0, 4);
    launch(fine, 1, 1, &args, rig.stream[0]);
    OK(dev->stream_synchronize(rig.device[0], rig.stream[0]));
    cr_assert_eq(rig.words[0][0], 1u);
    dev->module_unload(endless.module);
    dev->module_unload(fine.module);
    drop_rig(&rig);
}

Test(sim, a_kernel_that_polls_for_ever_is_an_error_and_not_a_hang)
{
    expect_endless(poll_for_ever, 0);
}

Test(sim, a_kernel_that_is_busy_for_ever_is_an_error_and_not_a_hang)
{
    expect_endless(spin, 0);
    expect_endless(spin, 1);
}

Test(sim, a_device_can_be_closed_with_kernels_under_way)
{
    struct rig rig = make_rig();
    struct loaded endless = load(rig.device[0], poll_for_ever);
    struct args args = args_of(&rig, 0);
    launch(endless, 3, 2, &args, rig.stream[0]);
    OK(dev->synchronize(rig.device[1]));
    cr_assert_eq(dev->synchronize(rig.device[0]), AFDEP_ERROR_INTERNAL);
    dev->module_unload(endless.module);
    drop_rig(&rig);
}

/* ---- broken rules ---- */

static struct afj_sim_counters store_somewhere(struct rig *rig, uint32_t *where, uint32_t count,
                                               uint32_t index)
{
    struct loaded kernel = load(rig->device[0], store_one);
    struct args args = args_of(rig, 0);
    args.theirs = (uintptr_t)where;
    args.count = count;
    args.flag = index;
    launch(kernel, 1, 1, &args, rig->stream[0]);
    OK(dev->stream_synchronize(rig->device[0], rig->stream[0]));
    dev->module_unload(kernel.module);
    return afj_sim_counters();
}

Test(sim, a_store_to_no_allocation_is_reported_and_not_done)
{
    struct rig rig = make_rig();
    uint32_t nobody = 1;
    char sentence[256];
    cr_assert_eq(store_somewhere(&rig, &nobody, 1, 0).stray_stores, 1u);
    cr_assert_eq(nobody, 1u);
    afj_sim_first_violation(sentence, sizeof sentence);
    cr_assert_not_null(strstr(sentence, "kernel of device 0, CTA 0, warp 0"), "%s", sentence);
    cr_assert_not_null(strstr(sentence, "nobody has allocated"), "%s", sentence);
    cr_assert_eq(store_somewhere(&rig, rig.words[1], 1, WORDS).stray_stores, 2u);
    cr_assert_eq(store_somewhere(&rig, (uint32_t *)((char *)rig.words[0] + 2), 1, 0).stray_stores,
                 3u);
    cr_assert_eq(store_somewhere(&rig, rig.words[1], 1, WORDS - 1).violations, 3u);
    cr_assert_eq(rig.words[1][WORDS - 1], 7u);
    drop_rig(&rig);
}

Test(sim, two_stores_to_one_word_in_flight_are_reported)
{
    struct rig rig = make_rig();
    struct afj_sim_policy policy = afj_sim_policy_of_seed(1);
    policy.run_weight = 100000;
    policy.deliver_weight = 1;
    afj_sim_configure(&policy);
    cr_assert_eq(store_somewhere(&rig, rig.words[1], 2, 9).double_stores, 1u);
    cr_assert(rig.words[1][9] == 7 || rig.words[1][9] == 8);
    cr_assert_eq(store_somewhere(&rig, rig.words[0], 2, 9).double_stores, 1u,
                 "near stores land at once");
    drop_rig(&rig);
}

Test(sim, a_store_under_a_word_in_flight_is_reported)
{
    struct rig rig = make_rig();
    struct loaded kernels[2] = {load(rig.device[0], store_one), load(rig.device[1], store_one)};
    for (int held = 1; held >= 0; held--) {
        struct afj_sim_policy policy = afj_sim_policy_of_seed(1);
        policy.run_weight = 1000;
        policy.deliver_weight = 1;
        /* A device that is held stores after all words have arrived. */
        policy.hold_device = held ? 1 : -1;
        afj_sim_configure(&policy);
        for (int i = 0; i < 2; i++) {
            struct args args = args_of(&rig, i);
            args.theirs = (uintptr_t)rig.words[1];
            args.count = i == 0 ? 1 : 1000;
            launch(kernels[i], 1, 1, &args, rig.stream[i]);
        }
        OK(dev->synchronize(rig.device[0]));
        OK(dev->synchronize(rig.device[1]));
        cr_assert_eq(afj_sim_counters().races > 0, !held);
    }
    dev->module_unload(kernels[0].module);
    dev->module_unload(kernels[1].module);
    drop_rig(&rig);
}

Test(sim, a_store_without_peer_access_is_reported_and_not_done)
{
    struct rig rig = make_rig();
    afdep_device *third;
    uint32_t *far;
    OK(dev->open(2, &third));
    OK(dev->alloc(third, 64, (void **)&far));
    memset(far, 0, 64);
    cr_assert_eq(store_somewhere(&rig, far, 1, 0).unreachable, 1u);
    cr_assert_eq(far[0], 0u);
    OK(dev->enable_peer(rig.device[0], third));
    cr_assert_eq(store_somewhere(&rig, far, 1, 0).unreachable, 1u);
    cr_assert_eq(far[0], 7u);
    dev->free(third, far);
    dev->close(third);
    drop_rig(&rig);
}

/* ---- devices, memory, images ---- */

Test(sim, a_device_has_a_name_and_room)
{
    afdep_device *device, *again;
    uint32_t count;
    OK(dev->count(&count));
    cr_assert_eq(count, 128u);
    OK(dev->open(127, &device));
    OK(dev->open(127, &again));
    cr_assert_eq(device, again);
    cr_assert_str_eq(device->facts.name, "sim");
    cr_assert_eq(device->ordinal, 127);
    dev->close(again);
    dev->close(device);
    cr_assert_eq(dev->open(128, &device), AFDEP_ERROR_DEVICE);
    cr_assert_eq(dev->open(-1, &device), AFDEP_ERROR_DEVICE);
}

Test(sim, fresh_memory_is_aligned_and_holds_no_empty_words)
{
    afdep_device *device;
    uint32_t *memory, *host;
    OK(dev->open(0, &device));
    OK(dev->alloc(device, 1001, (void **)&memory));
    OK(dev->host_alloc(device, 1000, (void **)&host));
    cr_assert_eq((uintptr_t)memory % 256, 0u);
    for (int i = 0; i < 250; i++) {
        cr_assert_neq(memory[i], 0xFFFFFFFFu);
        cr_assert_neq(memory[i], 0u);
        cr_assert_eq(host[i], 0u);
    }
    dev->free(device, memory);
    dev->host_free(device, host);
    expect_clean();
    dev->host_free(device, device);
    cr_assert_eq(afj_sim_counters().stray_frees, 1u);
    dev->close(device);
}

Test(sim, an_image_that_is_none_is_refused_with_a_sentence)
{
    struct rig rig = make_rig();
    struct afj_compiled compiled = compile_sim_image(prelude, add_one);
    struct afj_module *module;
    struct afj_kernel *kernel;
    cr_assert_eq(dev->module_load(rig.device[0], "not an image", 12, &module), AFDEP_ERROR_LOAD);
    cr_assert_str_neq(afj_status_sentence(), "");
    OK(dev->module_load(rig.device[0], compiled.image, compiled.image_bytes, &module));
    cr_assert_eq(dev->kernel(module, "kernel", sizeof(struct args) + 8, 0, &kernel),
                 AFDEP_ERROR_LOAD);
    cr_assert_eq(dev->kernel(module, "absent", sizeof(struct args), 0, &kernel), AFDEP_ERROR_LOAD);
    dev->module_unload(module);
    afj_compiled_finish(&compiled);
    drop_rig(&rig);
}

/* ---- size ---- */

Test(sim, thousands_of_warps_wait_at_once)
{
    enum { DEVICES = 24, CTAS = 16, WARPS = 8 };
    afdep_device *devices[DEVICES];
    uint32_t *memory[DEVICES];
    struct loaded kernels[DEVICES];
    struct args args = {.deadline_ns = 30000000000u};
    uint32_t *out;
    use_seed(11);
    for (int i = 0; i < DEVICES; i++) {
        OK(dev->open(i, &devices[i]));
        OK(dev->alloc(devices[i], 256, (void **)&memory[i]));
        memset(memory[i], 0, 256);
        kernels[i] = load(devices[i], i == 0 ? store_one : wait);
        if (i > 0)
            OK(dev->enable_peer(devices[0], devices[i]));
    }
    OK(dev->host_alloc(devices[0], 4, (void **)&out));
    args.out = (uintptr_t)out;
    for (int i = 1; i < DEVICES; i++) {
        args.mine = (uintptr_t)memory[i];
        launch(kernels[i], CTAS, WARPS, &args, NULL);
    }
    /* Nobody stores the word they wait for: all of them are under way when time jumps. */
    OK(dev->synchronize(devices[1]));
    cr_assert_eq(*out, 2u);
    for (int i = 0; i < DEVICES; i++) {
        OK(dev->synchronize(devices[i]));
        dev->module_unload(kernels[i].module);
    }
    cr_assert_lt(afj_sim_counters().steps, 3000000u);
    dev->host_free(devices[0], out);
    for (int i = 0; i < DEVICES; i++)
        dev->close(devices[i]);
}

/* ---- threads ---- */

struct player {
    struct rig *rig;
    struct loaded kernel;
    int device;
};

static void *play(void *argument)
{
    const struct player *player = argument;
    struct args args = args_of(player->rig, player->device);
    afdep_stream stream = player->rig->stream[player->device];
    args.count = 50;
    args.flag = player->device == 0;
    for (; args.first < 1000; args.first += args.count) {
        struct afj_launch launch = {1, 1, 0, &args, sizeof args};
        if (dev->launch(player->kernel.kernel, &launch, stream) != AFDEP_OK ||
            dev->stream_synchronize(player->rig->device[player->device], stream) != AFDEP_OK)
            return NULL;
    }
    return argument;
}

Test(sim, each_device_may_be_driven_by_a_thread_of_its_own)
{
    struct rig rig = make_rig();
    struct player players[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        players[i] = (struct player){&rig, load(rig.device[i], ping), i};
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        cr_assert_eq(pthread_join(threads[i], &result), 0);
        cr_assert_not_null(result);
        cr_assert_eq(rig.out[i][0], 1000u);
    }
    dev->module_unload(players[0].kernel.module);
    dev->module_unload(players[1].kernel.module);
    drop_rig(&rig);
}
