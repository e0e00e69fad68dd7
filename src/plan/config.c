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
    return AFDEP_OK;
}

static afdep_status check_rows(const afdep_config *c)
{
    AFJ_TRY(check_range("hidden", c->hidden, MIN_HIDDEN, MAX_HIDDEN));
    if (c->hidden % 8 != 0)
        return afj_fail(AFDEP_ERROR_CONFIG, "hidden is %" PRIu32 "; it must be a multiple of 8",
                        c->hidden);
    if (c->dtype != AFDEP_DTYPE_BF16)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "dtype is %" PRIu32 "; it must be AFDEP_DTYPE_BF16 (%d)", c->dtype,
                        AFDEP_DTYPE_BF16);
    AFJ_TRY(check_range("experts", c->experts, 1, MAX_EXPERTS));
    if (c->experts % c->ffn_ranks != 0)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "experts is %" PRIu32 "; it must be a multiple of ffn_ranks, %" PRIu32,
                        c->experts, c->ffn_ranks);
    return check_range("top_k", c->top_k, 1, AFDEP_MAX_TOP_K);
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
    size_t digits = strspn(c->arch, "sm_") == 3 ? strspn(c->arch + 3, "0123456789") : 0;
    const char *rest = c->arch + 3 + digits;
    bool letter_ok = digits && (*rest == 0 || ((*rest == 'a' || *rest == 'f') && rest[1] == 0));
    if (strncmp(c->arch, "sm_", 3) != 0 || digits < 2 || digits > 3 || !letter_ok)
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
    if (c->device != AFDEP_DEVICE_CUDA && c->device != AFDEP_DEVICE_SIM)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "device is %" PRIu32
                        "; it must be AFDEP_DEVICE_CUDA (%d) or AFDEP_DEVICE_SIM (%d)",
                        c->device, AFDEP_DEVICE_CUDA, AFDEP_DEVICE_SIM);
    AFJ_TRY(check_ranks(c));
    AFJ_TRY(check_rows(c));
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
    return config->fields.attention_ranks + config->fields.ffn_ranks;
}

uint32_t afj_config_role(const struct afj_config *config, uint32_t rank)
{
    return rank < config->fields.ffn_ranks ? AFDEP_ROLE_FFN : AFDEP_ROLE_ATTENTION;
}

uint32_t afj_config_experts_per_rank(const struct afj_config *config)
{
    return config->fields.experts / config->fields.ffn_ranks;
}
