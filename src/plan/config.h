/* config.h: a config made whole: read by its size, defaults filled in, every field in range. */
#ifndef AFJ_PLAN_CONFIG_H
#define AFJ_PLAN_CONFIG_H

#include <stdbool.h>

#include <afdep/config.h>

#include "base/status.h"

/* A checked config. `arch` is owned by value, so that it outlives the caller's; the map of experts
 * is the caller's, and is read while buffers are created. */
struct afj_config {
    afdep_config fields;         /* defaults filled in; fields.arch is NULL */
    char arch[16];               /* "" where the device decides */
    uint32_t most_local_experts; /* of any FFN rank */
};

/* Check and complete a caller's config. AFDEP_ERROR_ARGUMENT, or AFDEP_ERROR_CONFIG with a sentence
 * that names the field, its value and what would do. */
afdep_status afj_config_read(const afdep_config *config, struct afj_config *out);

/* Ranks of the group, roles of one of them, and the rank of attention rank `source`. */
uint32_t afj_config_ranks(const struct afj_config *config);
uint32_t afj_config_role(const struct afj_config *config, uint32_t rank);
uint32_t afj_config_attention_rank(const struct afj_config *config, uint32_t source);

/* The FFN rank that holds an expert, and how many experts a rank holds. */
uint32_t afj_config_owner(const struct afj_config *config, uint32_t expert);
uint32_t afj_config_local_experts(const struct afj_config *config, uint32_t ffn_rank);

/* Whether two configs make the same kernels: they may differ in sizes, lanes, times and maps. */
bool afj_config_same_kernels(const struct afj_config *a, const struct afj_config *b);

/* Bytes of a dispatched row, and 32-bit words of its scales. */
uint32_t afj_config_payload_bytes(const struct afj_config *config);
uint32_t afj_config_scale_words(const struct afj_config *config);

#endif
