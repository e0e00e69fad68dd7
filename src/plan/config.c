/* config.c: a config made whole: read by its size, defaults filled in, every field in range. */
#include "plan/config.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/sized.h"
#include "plan/regions.h"

enum {
    MIN_HIDDEN = 64,
    MAX_HIDDEN = 16384,
    MAX_EXPERTS = 65536,
    MAX_CAPACITY = 1 << 20,
    MAX_CTAS = 1024,
    MAX_TIMEOUT_MS = 24 * 3600 * 1000,
    DEFAULT_TIMEOUT_MS = 30000,
    DEFAULT_STARTUP_TIMEOUT_MS = 300000,
    /* Route words of a whole capacity fit in a CTA's shared memory, eight bytes each. */
    MAX_ROUTE_WORDS = 28000,
    MAX_PAYLOAD_BYTES = 32768,
    MAX_ALIGNMENT = 1024,
    /* Two words an expert of a rank fit in a CTA's shared memory. */
    MAX_GROUPED_EXPERTS = 16384,
    SCALE_ELEMENTS = 128, /* that share a scale */
    /* struct_size of the first release: a caller built against it may say no less. */
    MIN_STRUCT_SIZE = offsetof(afdep_config, lanes)
};

static afdep_status check_range(const char *field, uint32_t value, uint32_t low, uint32_t high)
{
    if (value >= low && value <= high)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_CONFIG, "%s is %" PRIu32 "; it must be %" PRIu32 " to %" PRIu32,
                    field, value, low, high);
}

static afdep_status check_ranks(const afdep_config *c)
{
    AFJ_TRY(check_range("attention_ranks", c->attention_ranks, 1, AFDEP_MAX_RANKS - 1));
    AFJ_TRY(check_range("ffn_ranks", c->ffn_ranks, 1, AFDEP_MAX_FFN_RANKS));
    uint32_t ranks = c->attention_ranks + c->ffn_ranks;
    if (ranks > AFDEP_MAX_RANKS)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "attention_ranks + ffn_ranks is %" PRIu32 " + %" PRIu32 " = %" PRIu32
                        "; at most %d ranks",
                        c->attention_ranks, c->ffn_ranks, ranks, AFDEP_MAX_RANKS);
    const uint32_t most = c->attention_ranks < c->ffn_ranks ? c->attention_ranks : c->ffn_ranks;
    return check_range("both_ranks", c->both_ranks, 0, most);
}

static afdep_status check_multiple(const char *field, uint32_t value, uint32_t of)
{
    if (value % of == 0)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_CONFIG, "%s is %" PRIu32 "; it must be a multiple of %" PRIu32,
                    field, value, of);
}

static afdep_status check_rows(const afdep_config *c)
{
    const bool fp8 = c->dtype == AFDEP_DTYPE_FP8 || c->dtype == AFDEP_DTYPE_FP8_UE8M0;
    AFJ_TRY(check_range("hidden", c->hidden, MIN_HIDDEN, MAX_HIDDEN));
    AFJ_TRY(check_multiple("hidden", c->hidden, fp8 ? 16 : 8));
    if (c->dtype < AFDEP_DTYPE_BF16 || c->dtype > AFDEP_DTYPE_OPAQUE)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "dtype is %" PRIu32
                        "; it must be BF16 (%d), FP8 (%d), FP8 with UE8M0 scales (%d) or opaque "
                        "(%d)",
                        c->dtype, AFDEP_DTYPE_BF16, AFDEP_DTYPE_FP8, AFDEP_DTYPE_FP8_UE8M0,
                        AFDEP_DTYPE_OPAQUE);
    if (c->dtype == AFDEP_DTYPE_OPAQUE) {
        AFJ_TRY(check_range("payload_bytes", c->payload_bytes, 16, MAX_PAYLOAD_BYTES));
        AFJ_TRY(check_multiple("payload_bytes", c->payload_bytes, 16));
    } else {
        AFJ_TRY(check_range("payload_bytes", c->payload_bytes, 0, 0));
    }
    if (c->id_bits != 32 && c->id_bits != 64)
        return afj_fail(AFDEP_ERROR_CONFIG, "id_bits is %" PRIu32 "; it must be 32 or 64",
                        c->id_bits);
    AFJ_TRY(check_range("experts", c->experts, 1, MAX_EXPERTS));
    return check_range("top_k", c->top_k, 1, AFDEP_MAX_TOP_K);
}

static afdep_status check_experts(const afdep_config *c)
{
    for (uint32_t e = 0; c->expert_ranks && e < c->experts; ++e)
        if (c->expert_ranks[e] >= c->ffn_ranks)
            return afj_fail(AFDEP_ERROR_CONFIG,
                            "expert_ranks[%" PRIu32 "] is %" PRIu32 "; there are %" PRIu32
                            " FFN ranks",
                            e, c->expert_ranks[e], c->ffn_ranks);
    return AFDEP_OK;
}

/* What receive and collect leave, and where. */
static afdep_status check_layouts(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    AFJ_TRY(check_range("receive", c->receive, AFDEP_RECEIVE_COMPACT, AFDEP_RECEIVE_EXPERT_MAJOR));
    AFJ_TRY(check_range("alignment", c->alignment, 1, MAX_ALIGNMENT));
    AFJ_TRY(check_range("counts_first", c->counts_first, 0, 1));
    AFJ_TRY(check_range("host_counts", c->host_counts, 0, 1));
    AFJ_TRY(check_range("reply_weights", c->reply_weights, 0, 1));
    AFJ_TRY(check_range("collect_view", c->collect_view, 0, 1));
    AFJ_TRY(check_range("reserved2", c->reserved2, 0, 0));
    if (c->alignment > 1 && c->receive != AFDEP_RECEIVE_EXPERT_MAJOR)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "alignment is %" PRIu32
                        "; only the expert-major layout has groups to align",
                        c->alignment);
    if (c->receive == AFDEP_RECEIVE_VIEW && c->dtype == AFDEP_DTYPE_OPAQUE)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "receive is a view and dtype opaque; an opaque row is in its inbox as it "
                        "travels, with escaped words: take it compact");
    if (c->receive == AFDEP_RECEIVE_EXPERT_MAJOR &&
        config->most_local_experts > MAX_GROUPED_EXPERTS)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "an FFN rank holds %" PRIu32 " experts; the expert-major layout takes at "
                        "most %d",
                        config->most_local_experts, MAX_GROUPED_EXPERTS);
    if (c->collect_view && c->ffn_ranks != 1)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "collect_view is 1 and ffn_ranks %" PRIu32
                        "; replies of several ranks are summed, so they cannot stay in place",
                        c->ffn_ranks);
    return AFDEP_OK;
}

static afdep_status check_capacity(const afdep_config *c)
{
    AFJ_TRY(check_range("capacity", c->capacity, 1, MAX_CAPACITY));
    uint64_t words = (uint64_t)c->attention_ranks * afj_regions_groups(c->capacity);
    if (words > MAX_ROUTE_WORDS)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "capacity is %" PRIu32 "; with %" PRIu32 " attention ranks that is %" PRIu64
                        " route words, and at most %d fit: a capacity of %" PRIu32 " would do",
                        c->capacity, c->attention_ranks, words, MAX_ROUTE_WORDS,
                        MAX_ROUTE_WORDS / c->attention_ranks * AFJ_GROUP_TOKENS);
    return AFDEP_OK;
}

/* "sm_" and two or three digits, with an optional letter: the compiler says which of them exist. */
static afdep_status check_arch(const afdep_config *c, char arch[16])
{
    if (!c->arch)
        return AFDEP_OK;
    if (c->device == AFDEP_DEVICE_SIM)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "arch is %.32s; the sim device takes none, leave it NULL", c->arch);
    const bool prefixed = strncmp(c->arch, "sm_", 3) == 0;
    const char *number = prefixed ? c->arch + 3 : "";
    const size_t digits = strspn(number, "0123456789");
    const char *rest = number + digits;
    const bool letter_ok = *rest == 0 || ((*rest == 'a' || *rest == 'f') && rest[1] == 0);
    if (digits < 2 || digits > 3 || !letter_ok)
        return afj_fail(AFDEP_ERROR_CONFIG, "arch is \"%.32s\"; it must be such as sm_90a",
                        c->arch);
    strcpy(arch, c->arch);
    return AFDEP_OK;
}

afdep_status afj_config_read(const afdep_config *config, struct afj_config *out)
{
    memset(out, 0, sizeof *out);
    afdep_config *c = &out->fields;
    AFJ_TRY(afj_sized_read(c, sizeof *c, config, MIN_STRUCT_SIZE, "afdep_config"));
    /* A size that ends inside a pointer would leave half of it. */
    if (config->struct_size < offsetof(afdep_config, arch) + sizeof c->arch)
        c->arch = NULL;
    if (config->struct_size < offsetof(afdep_config, expert_ranks) + sizeof c->expert_ranks)
        c->expert_ranks = NULL;
    if (c->device != AFDEP_DEVICE_CUDA && c->device != AFDEP_DEVICE_SIM)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "device is %" PRIu32
                        "; it must be AFDEP_DEVICE_CUDA (%d) or AFDEP_DEVICE_SIM (%d)",
                        c->device, AFDEP_DEVICE_CUDA, AFDEP_DEVICE_SIM);
    c->id_bits = c->id_bits ? c->id_bits : 32;
    c->receive = c->receive ? c->receive : AFDEP_RECEIVE_COMPACT;
    c->alignment = c->alignment ? c->alignment : 1;
    AFJ_TRY(check_ranks(c));
    AFJ_TRY(check_rows(c));
    AFJ_TRY(check_experts(c));
    for (uint32_t f = 0; f < c->ffn_ranks; ++f) {
        const uint32_t local = afj_config_local_experts(out, f);
        out->most_local_experts = local > out->most_local_experts ? local : out->most_local_experts;
    }
    AFJ_TRY(check_layouts(out));
    AFJ_TRY(check_capacity(c));
    if (c->lanes == 0)
        c->lanes = 1;
    AFJ_TRY(check_range("lanes", c->lanes, 1, AFDEP_MAX_LANES));
    AFJ_TRY(check_range("ctas", c->ctas, 0, MAX_CTAS));
    AFJ_TRY(check_range("timeout_ms", c->timeout_ms, 0, MAX_TIMEOUT_MS));
    AFJ_TRY(check_range("startup_timeout_ms", c->startup_timeout_ms, 0, MAX_TIMEOUT_MS));
    AFJ_TRY(check_range("reserved", c->reserved, 0, 0));
    AFJ_TRY(check_arch(c, out->arch));
    c->arch = NULL;
    if (c->timeout_ms == 0)
        c->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (c->startup_timeout_ms == 0)
        c->startup_timeout_ms =
            c->timeout_ms > DEFAULT_STARTUP_TIMEOUT_MS ? c->timeout_ms : DEFAULT_STARTUP_TIMEOUT_MS;
    return AFDEP_OK;
}

uint32_t afj_config_ranks(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    return c->attention_ranks + c->ffn_ranks - c->both_ranks;
}

uint32_t afj_config_role(const struct afj_config *config, uint32_t rank)
{
    const afdep_config *c = &config->fields;
    return (rank < c->ffn_ranks ? AFDEP_ROLE_FFN : 0) |
           (rank >= c->ffn_ranks - c->both_ranks ? AFDEP_ROLE_ATTENTION : 0);
}

uint32_t afj_config_attention_rank(const struct afj_config *config, uint32_t source)
{
    return config->fields.ffn_ranks - config->fields.both_ranks + source;
}

uint32_t afj_config_owner(const struct afj_config *config, uint32_t expert)
{
    const afdep_config *c = &config->fields;
    if (c->expert_ranks)
        return c->expert_ranks[expert];
    /* The first `longer` ranks hold one expert more than the others. */
    const uint32_t each = c->experts / c->ffn_ranks, longer = c->experts % c->ffn_ranks;
    const uint32_t in_longer = longer * (each + 1);
    return expert < in_longer ? expert / (each + 1) : longer + (expert - in_longer) / each;
}

uint32_t afj_config_local_experts(const struct afj_config *config, uint32_t ffn_rank)
{
    const afdep_config *c = &config->fields;
    uint32_t local = 0;
    if (!c->expert_ranks)
        return c->experts / c->ffn_ranks + (ffn_rank < c->experts % c->ffn_ranks);
    for (uint32_t e = 0; e < c->experts; ++e)
        local += c->expert_ranks[e] == ffn_rank;
    return local;
}

/* A config with all that kernels do not depend on made equal. */
static afdep_config kernels_of(const struct afj_config *config)
{
    static const uint32_t some_map[1];
    afdep_config c = config->fields;
    c.capacity = c.lanes = c.ctas = c.alignment = c.collect_view = 0;
    c.timeout_ms = c.startup_timeout_ms = 0;
    c.arch = NULL;
    c.expert_ranks = c.expert_ranks ? some_map : NULL;
    return c;
}

bool afj_config_same_kernels(const struct afj_config *a, const struct afj_config *b)
{
    const afdep_config of_a = kernels_of(a), of_b = kernels_of(b);
    return memcmp(&of_a, &of_b, sizeof of_a) == 0;
}

uint32_t afj_config_payload_bytes(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    switch (c->dtype) {
    case AFDEP_DTYPE_BF16:
        return c->hidden * 2;
    case AFDEP_DTYPE_OPAQUE:
        return c->payload_bytes;
    default:
        return c->hidden;
    }
}

uint32_t afj_config_scale_words(const struct afj_config *config)
{
    const afdep_config *c = &config->fields;
    const uint32_t scales = (c->hidden + SCALE_ELEMENTS - 1) / SCALE_ELEMENTS;
    switch (c->dtype) {
    case AFDEP_DTYPE_FP8:
        return scales;
    case AFDEP_DTYPE_FP8_UE8M0:
        return (scales + 3) / 4;
    default:
        return 0;
    }
}
