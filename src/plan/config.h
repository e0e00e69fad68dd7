/* config.h: a config made whole: read by its size, defaults filled in, every field in range. */
#ifndef AFJ_PLAN_CONFIG_H
#define AFJ_PLAN_CONFIG_H

#include <afdep/config.h>

#include "base/status.h"

/* A checked config. `arch` is owned by value, so that it outlives the caller's. */
struct afj_config {
    afdep_config fields; /* defaults filled in; fields.arch is NULL */
    char arch[16];       /* "" where the device decides */
};

/* Check and complete a caller's config. AFDEP_ERROR_ARGUMENT, or AFDEP_ERROR_CONFIG with a sentence
 * that names the field, its value and what would do. */
afdep_status afj_config_read(const afdep_config *config, struct afj_config *out);

uint32_t afj_config_ranks(const struct afj_config *config);
uint32_t afj_config_role(const struct afj_config *config, uint32_t rank);
uint32_t afj_config_experts_per_rank(const struct afj_config *config);

#endif
