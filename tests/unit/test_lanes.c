/* test_lanes.c: warps of 32 fibres: the collectives of templates/host/machine.cuh, and what it
 * takes to find lanes that do not meet. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/status.h"
#include "device/device.h"
#include "device/sim/sim.h"
#include "jit/compiler.h"
#include "jit/templates.h"

enum { LANES = 32, WORDS = 6 * LANES, SEEDS = 60 };

struct args {
    uint64_t out;
    uint32_t flag, reserved;
};

#define PRELUDE                                                                                    \
    "#include <stdint.h>\n"                                                                        \
    "constexpr int kSimLanes = 32;\n"                                                              \
    "#include \"prim/machine.cuh\"\n"                                                              \
    "struct Args { uint64_t out; uint32_t flag, reserved; };\n"                                    \
    "static void put(const Args &a, int i, uint32_t v) {\n"                                        \
    "    store_relaxed((uint32_t *)a.out + i, v);\n"                                               \
    "}\n"                                                                                          \
    "AFJ_ENTRY(kernel, Args) {\n"

static const char pass_on[] = PRELUDE "    uint32_t *all = cta_shared();\n"
                                      "    store_own(&all[lane()], (uint32_t)lane() + 1);\n"
                                      "    if (args.flag) warp_sync();\n"
                                      "    put(args, lane(), all[(lane() + 1) % kLanes]);\n"
                                      "}\n";

static const char collect[] =
    PRELUDE "    const uint32_t l = (uint32_t)lane();\n"
            "    put(args, lane(), warp_sum(l));\n"
            "    put(args, kLanes + lane(), warp_sum_before(l));\n"
            "    put(args, 2 * kLanes + lane(), warp_ballot(l % 3 == 0));\n"
            "    put(args, 3 * kLanes + lane(), warp_take(l * 7, 5));\n"
            "    put(args, 4 * kLanes + lane(), warp_or(1u << l));\n"
            "    put(args, 5 * kLanes + lane(), warp_any(l == 31) + 2 * warp_any(false));\n"
            "}\n";

static const char leave_early[] = PRELUDE "    if (lane() == 9) return;\n"
                                          "    put(args, lane(), warp_sum(1));\n"
                                          "}\n";

static const char part_ways[] = PRELUDE "    if (lane() < 16) put(args, lane(), warp_sum(1));\n"
                                        "    else put(args, lane(), warp_or(1));\n"
                                        "}\n";

/* Only warp 1 of its CTA. */
static const char part_at_barrier[] =
    PRELUDE "    if (warp_in_cta() == 1 && lane() >= 20) put(args, lane(), warp_take(7, 0));\n"
            "    else put(args, lane(), cta_any(lane() == 3) + 5u);\n"
            "}\n";

/* Ends of lanes do not hold up a barrier, and lanes may pass it in any order. */
static const char meet_at_barrier[] =
    PRELUDE "    if (warp_in_cta() == 0 && lane() < 9) return;\n"
            "    put(args, (int)warp_in_cta() * kLanes + lane(), cta_any(lane() == 30));\n"
            "    cta_any(false);\n"
            "    if (warp_in_cta() == 1) put(args, 2 * kLanes + lane(), warp_sum(1));\n"
            "}\n";

#define OK(call) cr_assert_eq((call), AFDEP_OK, "%s", afj_status_sentence())

static const struct afj_device_kind *const dev = &afj_device_sim;

struct rig {
    afdep_device *device;
    afdep_stream stream;
    uint32_t *out;
    struct afj_module *module;
    struct afj_kernel *kernel;
};

static struct afj_source_file file_of(const char *path, const char *name)
{
    for (size_t i = 0; i < afj_template_count; i++)
        if (strcmp(afj_templates[i].path, path) == 0)
            return (struct afj_source_file){name, afj_templates[i].text, afj_templates[i].length};
    cr_assert(false, "no template %s", path);
    return (struct afj_source_file){0};
}

static struct rig make_rig(const char *text)
{
    struct rig rig;
    struct utsname machine;
    struct afj_compiled compiled;
    cr_assert_eq(uname(&machine), 0);
    const struct afj_source_file files[] = {{"k.cuh", text, strlen(text)},
                                            file_of("host/machine.cuh", "prim/machine.cuh"),
                                            file_of("host/ops.h", "host/ops.h")};
    const struct afj_program program = {files, 3, machine.machine, "kernel"};
    OK(afj_compiler_hostcc.compile(&program, &compiled));
    OK(dev->open(0, &rig.device));
    OK(dev->stream_create(rig.device, &rig.stream));
    OK(dev->host_alloc(rig.device, WORDS * 4, (void **)&rig.out));
    OK(dev->module_load(rig.device, compiled.image, compiled.image_bytes, &rig.module));
    OK(dev->kernel(rig.module, "kernel", sizeof(struct args), 1024, &rig.kernel));
    afj_compiled_finish(&compiled);
    return rig;
}

static void drop_rig(struct rig *rig)
{
    dev->module_unload(rig->module);
    dev->host_free(rig->device, rig->out);
    dev->stream_destroy(rig->device, rig->stream);
    dev->close(rig->device);
}

static afdep_status try_to_run(struct rig *rig, uint64_t seed, uint32_t warps, uint32_t flag)
{
    const struct args args = {.out = (uintptr_t)rig->out, .flag = flag};
    const struct afj_launch launch = {.ctas = 1,
                                      .warps = warps,
                                      .shared_bytes = 1024,
                                      .arguments = &args,
                                      .arguments_bytes = sizeof args};
    const struct afj_sim_policy policy = afj_sim_policy_of_seed(seed);
    afj_sim_configure(&policy);
    memset(rig->out, 0xEE, WORDS * 4);
    OK(dev->launch(rig->kernel, &launch, rig->stream));
    return dev->stream_synchronize(rig->device, rig->stream);
}

static void run(struct rig *rig, uint64_t seed, uint32_t warps, uint32_t flag)
{
    cr_assert_eq(try_to_run(rig, seed, warps, flag), AFDEP_OK, "seed %u: %s", (unsigned)seed,
                 afj_status_sentence());
    cr_assert_eq(afj_sim_counters().violations, 0u);
}

/* The kernel is told on under every seed, its sentence has one of two words for each place, and
 * what is left runs to its end: a next call finds nothing to complain of. */
static void expect_divergence(const char *text, uint32_t warps, const char *where,
                              const char *place, const char *other)
{
    struct rig rig = make_rig(text);
    char one[64], two[64];
    snprintf(one, sizeof one, "comes to %s while", place);
    snprintf(two, sizeof two, "comes to %s while", other);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        char sentence[256];
        cr_assert_eq(try_to_run(&rig, seed, warps, 0), AFDEP_ERROR_INTERNAL, "seed %u",
                     (unsigned)seed);
        const char *said = afj_status_sentence();
        cr_assert(strstr(said, where) && strstr(said, place) && strstr(said, other), "%s", said);
        cr_assert(strstr(said, one) || strstr(said, two), "%s", said);
        cr_assert_gt(afj_sim_counters().divergences, 0u);
        afj_sim_first_violation(sentence, sizeof sentence);
        cr_assert(strstr(said, sentence), "%s is not %s", said, sentence);
        OK(dev->stream_synchronize(rig.device, rig.stream));
    }
    drop_rig(&rig);
}

/* Seeds under which some lane got another word than its neighbour's. */
static int count_wrong(uint32_t synced)
{
    struct rig rig = make_rig(pass_on);
    int wrong = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        bool right = true;
        run(&rig, seed, 1, synced);
        for (uint32_t lane = 0; lane < LANES; lane++)
            right = right && rig.out[lane] == (lane + 1) % LANES + 1;
        wrong += !right;
    }
    drop_rig(&rig);
    return wrong;
}

Test(lanes, a_missing_warp_sync_shows)
{
    cr_assert_gt(count_wrong(0), SEEDS / 2);
    cr_assert_eq(count_wrong(1), 0);
}

Test(lanes, collectives_are_those_of_a_warp)
{
    struct rig rig = make_rig(collect);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(&rig, seed, 1, 0);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            cr_assert_eq(rig.out[lane], 496u);
            cr_assert_eq(rig.out[LANES + lane], lane * (lane - 1) / 2);
            cr_assert_eq(rig.out[2 * LANES + lane], 0x49249249u);
            cr_assert_eq(rig.out[3 * LANES + lane], 35u);
            cr_assert_eq(rig.out[4 * LANES + lane], UINT32_MAX);
            cr_assert_eq(rig.out[5 * LANES + lane], 1u);
        }
    }
    drop_rig(&rig);
}

Test(lanes, a_lane_that_ends_before_a_collective_is_an_error_and_nothing_hangs)
{
    expect_divergence(leave_early, 1, "kernel kernel of device 0, CTA 0, warp 0: lane", "its end",
                      "warp_sum");
}

Test(lanes, lanes_that_come_to_different_collectives_are_an_error)
{
    expect_divergence(part_ways, 1, "CTA 0, warp 0: lane", "warp_sum", "warp_or");
}

Test(lanes, a_collective_beside_a_barrier_is_an_error_of_that_warp)
{
    expect_divergence(part_at_barrier, 2, "CTA 0, warp 1: lane", "warp_take", "cta_any");
}

Test(lanes, a_barrier_waits_for_the_lanes_that_are_left)
{
    struct rig rig = make_rig(meet_at_barrier);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run(&rig, seed, 2, 0);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            cr_assert_eq(rig.out[lane], lane < 9 ? 0xEEEEEEEEu : 1u);
            cr_assert_eq(rig.out[LANES + lane], 1u);
            cr_assert_eq(rig.out[2 * LANES + lane], 32u);
        }
    }
    drop_rig(&rig);
}
