/* plan.c: what a rank does: its duties, its kernels, and every number in them. Pure arithmetic. */
#include "plan/plan.h"

#include <stdbool.h>
#include <string.h>

#include "wire/args.h"

enum {
    VEC_BYTES = 16,
    LANES = 32,
    FEW_WORDS = 32, /* route words that receive_few keeps, one a lane */
    FEW_WARPS_PER_ROW = 4,
    FEW_ROUNDS = 2 /* shares a warp of the largest few grid may have */
};

/* What the target wants: CTAs of this many warps, grids of this many CTAs by default, and vectors
 * that a lane holds of a moved and of a summed piece. */
struct target {
    uint32_t few_warps, many_warps, ctas, move_vecs, sum_vecs;
};
static const struct target cuda_target = {8, 16, 24, 8, 4};
static const struct target sim_target = {4, 4, 2, 8, 4};

static const struct target *target_of_device(uint32_t device)
{
    return device == AFDEP_DEVICE_SIM ? &sim_target : &cuda_target;
}

static const struct target *target_of(const struct afj_plan *plan)
{
    return target_of_device(plan->config.fields.device);
}

uint32_t afj_plan_default_ctas(uint32_t device) { return target_of_device(device)->ctas; }

/* One row of the table of kernels. */
struct kind {
    enum afj_entry entry;
    enum afj_shape shape;
    const char *name;
    uint32_t duty;
};
static const struct kind kinds[] = {
    {AFJ_ENTRY_REARM, AFJ_SHAPE_MANY, "rearm", AFDEP_DUTY_SOURCE},
    {AFJ_ENTRY_DISPATCH, AFJ_SHAPE_FEW, "dispatch", AFDEP_DUTY_SOURCE},
    {AFJ_ENTRY_DISPATCH, AFJ_SHAPE_MANY, "dispatch", AFDEP_DUTY_SOURCE},
    {AFJ_ENTRY_COLLECT, AFJ_SHAPE_FEW, "collect", AFDEP_DUTY_SOURCE},
    {AFJ_ENTRY_COLLECT, AFJ_SHAPE_MANY, "collect", AFDEP_DUTY_SOURCE},
    {AFJ_ENTRY_RECEIVE, AFJ_SHAPE_FEW, "receive_few", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_RECEIVE, AFJ_SHAPE_MANY, "receive", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_COUNTS, AFJ_SHAPE_MANY, "counts", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_ARRANGE, AFJ_SHAPE_MANY, "arrange", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_PLACE, AFJ_SHAPE_FEW, "place", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_PLACE, AFJ_SHAPE_MANY, "place", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_REPLY, AFJ_SHAPE_FEW, "reply", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_REPLY, AFJ_SHAPE_MANY, "reply", AFDEP_DUTY_EXPERT},
    {AFJ_ENTRY_SCALE, AFJ_SHAPE_MANY, "scale", AFDEP_DUTY_EXPERT},
};

/* Whether a rank of this config makes use of an entry. */
static bool has_entry(const afdep_config *c, enum afj_entry entry)
{
    const bool grouped = c->receive == AFDEP_RECEIVE_EXPERT_MAJOR;
    switch (entry) {
    case AFJ_ENTRY_REARM:
        return c->collect_view != 0;
    case AFJ_ENTRY_RECEIVE:
        return !grouped && !c->counts_first;
    case AFJ_ENTRY_COUNTS:
    case AFJ_ENTRY_PLACE:
        return grouped || c->counts_first;
    case AFJ_ENTRY_ARRANGE:
        return grouped;
    default:
        return true;
    }
}

static uint32_t divide_up(uint32_t value, uint32_t by) { return (value + by - 1) / by; }

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Length of the argument struct: its table of peers is as long as the deployment needs. */
static size_t arguments_bytes(const struct afj_plan *plan, enum afj_entry entry)
{
    const afdep_config *c = &plan->config.fields;
    switch (entry) {
    case AFJ_ENTRY_REARM:
        return sizeof(struct afj_rearm_args);
    case AFJ_ENTRY_DISPATCH:
        return offsetof(struct afj_dispatch_args, peers) + c->ffn_ranks * sizeof(uint64_t);
    case AFJ_ENTRY_REPLY:
        return offsetof(struct afj_reply_args, peers) + c->attention_ranks * sizeof(uint64_t);
    case AFJ_ENTRY_COLLECT:
        return sizeof(struct afj_collect_args);
    case AFJ_ENTRY_RECEIVE:
    case AFJ_ENTRY_COUNTS:
    case AFJ_ENTRY_ARRANGE:
    case AFJ_ENTRY_PLACE:
        return sizeof(struct afj_receive_args);
    case AFJ_ENTRY_SCALE:
        break;
    }
    return sizeof(struct afj_scale_args);
}

/* Bytes of the rows that an entry moves: as dispatched, or as replied. */
static uint64_t row_bytes(const struct afj_plan *plan, enum afj_entry entry)
{
    switch (entry) {
    case AFJ_ENTRY_DISPATCH:
    case AFJ_ENTRY_RECEIVE:
    case AFJ_ENTRY_PLACE:
        return plan->regions.row_bytes;
    default:
        return plan->regions.reply_bytes;
    }
}

/* Divide a row: into shares, one a warp, and a share into pieces that fit in registers. Escape
 * words are those of 32 vectors, so shares of opaque rows begin at a multiple of them. */
static void divide_row(const struct afj_plan *plan, struct afj_plan_kernel *k)
{
    const struct target *target = target_of(plan);
    const bool sums =
        k->entry == AFJ_ENTRY_COLLECT ||
        (k->entry == AFJ_ENTRY_REPLY && plan->config.fields.receive == AFDEP_RECEIVE_EXPERT_MAJOR);
    uint32_t shares = 1;
    k->row_vecs = (uint32_t)(row_bytes(plan, k->entry) / VEC_BYTES);
    if (k->shape == AFJ_SHAPE_FEW && k->row_vecs >= 2 * LANES)
        shares = least(FEW_WARPS_PER_ROW, k->row_vecs / LANES);
    uint32_t held = sums ? target->sum_vecs : target->move_vecs;
    k->share_vecs = divide_up(k->row_vecs, shares);
    if (plan->regions.row_escapes && shares > 1)
        k->share_vecs = divide_up(k->share_vecs, LANES) * LANES;
    k->warps_per_row = divide_up(k->row_vecs, k->share_vecs);
    k->pieces = divide_up(k->share_vecs, held * LANES);
    k->piece_vecs = divide_up(k->share_vecs, k->pieces);
    if (k->pieces > 1)
        k->piece_vecs = divide_up(k->piece_vecs, LANES) * LANES;
}

/* Shares of rows that the warps of a grid deal with. */
static uint64_t shares_of(const struct afj_plan *plan, const struct afj_plan_kernel *k,
                          uint32_t bucket)
{
    const uint64_t shares = (uint64_t)bucket * k->warps_per_row;
    return k->duty == AFDEP_DUTY_EXPERT ? plan->config.fields.attention_ranks * shares : shares;
}

/* The same with what else has a warp of its own: route words, the ack. */
static uint64_t items_of(const struct afj_plan *plan, const struct afj_plan_kernel *k,
                         uint32_t bucket)
{
    const uint64_t shares = shares_of(plan, k, bucket);
    if (k->entry == AFJ_ENTRY_DISPATCH)
        return shares + afj_regions_groups(bucket) +
               (plan->config.fields.counts_first ? bucket : 0);
    return k->entry == AFJ_ENTRY_REPLY ? shares + 1 : shares;
}

/* Whether a batch is small enough for the few shape of a kernel. */
static bool suits_few(const struct afj_plan *plan, const struct afj_plan_kernel *k, uint32_t bucket)
{
    const uint64_t words =
        (uint64_t)plan->config.fields.attention_ranks * afj_regions_groups(bucket);
    if (k->entry == AFJ_ENTRY_RECEIVE && words > FEW_WORDS)
        return false;
    return shares_of(plan, k, bucket) <= (uint64_t)FEW_ROUNDS * k->max_ctas * k->warps;
}

/* Largest bucket of the few shape; 0 if there is none. */
static uint32_t few_limit(const struct afj_plan *plan, const struct afj_plan_kernel *few)
{
    uint32_t low = 0, high = plan->config.fields.capacity;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (suits_few(plan, few, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void add_kernel(struct afj_plan *plan, const struct kind *kind)
{
    const struct target *target = target_of(plan);
    struct afj_plan_kernel *k = &plan->kernels[plan->kernel_count++];
    memset(k, 0, sizeof *k);
    k->entry = kind->entry;
    k->shape = kind->shape;
    k->name = kind->name;
    k->duty = kind->duty;
    k->warps = kind->shape == AFJ_SHAPE_FEW ? target->few_warps : target->many_warps;
    k->max_ctas = plan->config.fields.ctas ? plan->config.fields.ctas : target->ctas;
    k->arguments_bytes = arguments_bytes(plan, kind->entry);
    divide_row(plan, k);
}

/* Share the buckets out between the two shapes of each entry. */
static void share_buckets(struct afj_plan *plan, const char *force)
{
    const uint32_t capacity = plan->config.fields.capacity;
    for (uint32_t i = 0; i < plan->kernel_count; ++i) {
        struct afj_plan_kernel *k = &plan->kernels[i];
        if (k->shape == AFJ_SHAPE_MANY) {
            k->bucket_from = 1;
            k->bucket_to = capacity;
            struct afj_plan_kernel *few = i > 0 ? k - 1 : NULL;
            if (!few || few->entry != k->entry)
                continue;
            uint32_t limit = few_limit(plan, few);
            if (strcmp(force, "many") == 0)
                limit = 0;
            if (strcmp(force, "few") == 0 && few->entry != AFJ_ENTRY_RECEIVE)
                limit = capacity;
            few->bucket_from = limit ? 1 : 0;
            few->bucket_to = limit;
            k->bucket_from = limit < capacity ? limit + 1 : 0;
            k->bucket_to = limit < capacity ? capacity : 0;
        }
    }
}

afdep_status afj_plan_make(const struct afj_config *config, uint32_t role,
                           const struct afj_controls *controls, struct afj_plan *plan)
{
    const char *force = controls->shape;
    memset(plan, 0, sizeof *plan);
    plan->config = *config;
    plan->role = role;
    plan->strict_fences = controls->strict_fences;
    plan->check_routes = controls->check_routes;
    plan->regions = afj_regions_of(config);
    plan->state = afj_state_layout_of(config, role);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        const uint32_t needs =
            kinds[i].duty == AFDEP_DUTY_EXPERT ? AFDEP_ROLE_FFN : AFDEP_ROLE_ATTENTION;
        if ((role & needs) && has_entry(&config->fields, kinds[i].entry))
            add_kernel(plan, &kinds[i]);
    }
    if (*force && strcmp(force, "few") != 0 && strcmp(force, "many") != 0)
        return afj_fail(AFDEP_ERROR_CONFIG, "AFDEP_SHAPE is \"%.32s\"; it must be few or many",
                        force);
    share_buckets(plan, force);
    return AFDEP_OK;
}

const struct afj_plan_kernel *afj_plan_kernel_for(const struct afj_plan *plan, enum afj_entry entry,
                                                  uint32_t bucket)
{
    for (uint32_t i = 0; i < plan->kernel_count; ++i) {
        const struct afj_plan_kernel *k = &plan->kernels[i];
        if (k->entry == entry && bucket >= k->bucket_from && bucket <= k->bucket_to)
            return k;
    }
    return NULL;
}

uint32_t afj_plan_ctas(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                       uint32_t bucket)
{
    uint64_t items = items_of(plan, kernel, bucket);
    uint64_t wanted = kernel->shape == AFJ_SHAPE_FEW
                          ? (items + kernel->warps - 1) / kernel->warps
                          : items; /* rows spread over multiprocessors before warps */
    return wanted < kernel->max_ctas ? (uint32_t)wanted : kernel->max_ctas;
}

uint32_t afj_plan_most_ctas(const struct afj_plan *plan)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < plan->kernel_count; ++i) {
        const struct afj_plan_kernel *k = &plan->kernels[i];
        const uint32_t ctas = k->bucket_to ? afj_plan_ctas(plan, k, k->bucket_to) : 0;
        most = ctas > most ? ctas : most;
    }
    return most;
}

uint32_t afj_plan_shared_bytes(const struct afj_plan *plan, const struct afj_plan_kernel *kernel,
                               uint32_t bucket)
{
    const uint32_t words = plan->config.fields.attention_ranks * afj_regions_groups(bucket);
    const uint32_t experts = plan->config.most_local_experts;
    switch (kernel->entry) {
    case AFJ_ENTRY_RECEIVE:
        if (kernel->shape == AFJ_SHAPE_FEW)
            return 0;
        return (2 * words + kernel->warps) * (uint32_t)sizeof(uint32_t);
    case AFJ_ENTRY_COUNTS:
        return (2 * words + kernel->warps) * (uint32_t)sizeof(uint32_t);
    case AFJ_ENTRY_ARRANGE:
        return (2 * experts + 1) * (uint32_t)sizeof(uint32_t);
    default:
        return 0;
    }
}

const char *afj_plan_shape_name(enum afj_shape shape)
{
    return shape == AFJ_SHAPE_FEW ? "few" : "many";
}

const char *afj_plan_dtype_name(uint32_t dtype)
{
    static const char *const names[] = {
        [AFDEP_DTYPE_BF16] = "bf16",
        [AFDEP_DTYPE_FP8] = "fp8",
        [AFDEP_DTYPE_FP8_UE8M0] = "fp8-ue8m0",
        [AFDEP_DTYPE_OPAQUE] = "opaque",
    };
    return dtype < sizeof names / sizeof *names && names[dtype] ? names[dtype] : "unknown";
}

const char *afj_plan_duty_name(uint32_t duty)
{
    return duty == AFDEP_DUTY_EXPERT ? "expert" : "source";
}
