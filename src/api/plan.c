/* plan.c: the exported questions about plans: of a config, and of a buffer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <afdep/buffer.h>
#include <afdep/config.h>

#include "api/controls.h"
#include "base/sized.h"
#include "exchange/buffer.h"
#include "plan/plan.h"

static void fill_kernel(afdep_plan_kernel *out, const struct afj_plan_kernel *kernel)
{
    snprintf(out->entry, sizeof out->entry, "%s", kernel->name);
    snprintf(out->shape, sizeof out->shape, "%s", afj_plan_shape_name(kernel->shape));
    out->duty = kernel->duty;
    out->warps = kernel->warps;
    out->max_ctas = kernel->max_ctas;
    out->bucket_from = kernel->bucket_from;
    out->bucket_to = kernel->bucket_to;
}

static uint64_t largest(uint64_t a, uint64_t b) { return a > b ? a : b; }

static afdep_status fill_plan(afdep_plan *plan, const struct afj_plan *made, uint32_t rank,
                              uint32_t local_experts)
{
    AFJ_TRY(afj_sized_check(plan, sizeof *plan, "afdep_plan"));
    const afdep_config *c = &made->config.fields;
    afdep_plan out;
    memset(&out, 0, sizeof out);
    out.rank = rank;
    out.role = made->role;
    out.kernel_count = made->kernel_count;
    out.window_bytes = afj_regions_window_bytes(&made->regions, &made->config, made->role);
    out.state_bytes = c->lanes * made->state.bytes;
    if (made->role & AFDEP_ROLE_FFN) {
        out.inbox_rows += (uint64_t)c->lanes * c->capacity * c->attention_ranks;
        out.inbox_row_bytes = made->regions.row_bytes;
        out.local_experts = local_experts;
        out.receive_rows = afj_regions_receive_rows(&made->config, local_experts, c->capacity);
    }
    if (made->role & AFDEP_ROLE_ATTENTION) {
        out.inbox_rows += (uint64_t)c->lanes * c->capacity * c->ffn_ranks;
        out.inbox_row_bytes = largest(out.inbox_row_bytes, made->regions.reply_bytes);
    }
    out.ctas = afj_plan_most_ctas(made);
    for (uint32_t i = 0; i < made->kernel_count; ++i)
        fill_kernel(&out.kernels[i], &made->kernels[i]);
    afj_sized_write(plan, &out, sizeof out);
    return AFDEP_OK;
}

afdep_status afdep_plan_query(const afdep_config *config, uint32_t rank, afdep_plan *plan)
{
    afj_status_clear();
    AFJ_TRY(afj_sized_check(plan, sizeof *plan, "afdep_plan"));
    struct afj_config checked;
    AFJ_TRY(afj_config_read(config, &checked));
    const uint32_t ranks = afj_config_ranks(&checked);
    if (rank >= ranks)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "rank is %" PRIu32 "; the deployment has %" PRIu32,
                        rank, ranks);
    struct afj_controls controls;
    struct afj_plan made;
    AFJ_TRY(afj_controls_read(&controls));
    AFJ_TRY(afj_plan_make(&checked, afj_config_role(&checked, rank), &controls, &made));
    return fill_plan(plan, &made, rank,
                     rank < checked.fields.ffn_ranks ? afj_config_local_experts(&checked, rank) : 0);
}

afdep_status afdep_buffer_plan(const afdep_buffer *buffer, afdep_plan *plan)
{
    afj_status_clear();
    if (!buffer)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "buffer is NULL");
    return fill_plan(plan, &buffer->plan, buffer->rank, buffer->local_experts);
}

afdep_status afdep_receipt_bytes(const afdep_config *config, uint32_t tokens, uint64_t *bytes)
{
    struct afj_config checked;
    afj_status_clear();
    if (!bytes)
        return afj_fail(AFDEP_ERROR_ARGUMENT, "bytes is NULL");
    *bytes = 0;
    AFJ_TRY(afj_config_read(config, &checked));
    *bytes = afj_regions_receipt_bytes(&checked, tokens);
    return AFDEP_OK;
}
