/* test_abi.c: sizes and offsets that callers were compiled against. A struct may grow at its end
 * with a new release; nothing in it may move. */
#include <criterion/criterion.h>
#include <stddef.h>

#include <afdep/afdep.h>

#define SIZE(type, bytes)                                                                          \
    {                                                                                              \
#type, sizeof(type), bytes                                                                 \
    }
#define OFFSET(type, field, bytes)                                                                 \
    {                                                                                              \
#type "." #field, offsetof(type, field), bytes                                             \
    }

static const struct {
    const char *what;
    size_t is, was;
} layout[] = {
    SIZE(afdep_config, 112),
    OFFSET(afdep_config, arch, 56),
    OFFSET(afdep_config, both_ranks, 64),
    OFFSET(afdep_config, expert_ranks, 104),
    SIZE(afdep_plan, 896),
    OFFSET(afdep_plan, kernels, 48),
    OFFSET(afdep_plan, receive_rows, 880),
    OFFSET(afdep_plan, ctas, 892),
    SIZE(afdep_counts, 48),
    OFFSET(afdep_counts, total, 8),
    OFFSET(afdep_counts, rows_per_expert, 24),
    OFFSET(afdep_counts, expert_offsets, 32),
    OFFSET(afdep_counts, host, 40),
    SIZE(afdep_view, 24),
    OFFSET(afdep_view, rows, 8),
    OFFSET(afdep_view, row_bytes, 16),
    SIZE(afdep_dispatch_args, 72),
    OFFSET(afdep_dispatch_args, rows, 16),
    OFFSET(afdep_dispatch_args, weights, 32),
    OFFSET(afdep_dispatch_args, receipt, 56),
    OFFSET(afdep_dispatch_args, ctas, 64),
    SIZE(afdep_receive_args, 72),
    OFFSET(afdep_receive_args, rows, 16),
    OFFSET(afdep_receive_args, tokens, 48),
    OFFSET(afdep_receive_args, slots, 64),
    SIZE(afdep_reply_args, 32),
    OFFSET(afdep_reply_args, rows, 8),
    OFFSET(afdep_reply_args, weights, 16),
    OFFSET(afdep_reply_args, apply_weights, 28),
    SIZE(afdep_collect_args, 40),
    OFFSET(afdep_collect_args, rows, 8),
    OFFSET(afdep_collect_args, fresh, 16),
    OFFSET(afdep_collect_args, ctas, 32),
    SIZE(afdep_scale_args, 56),
    OFFSET(afdep_scale_args, scales, 32),
    OFFSET(afdep_scale_args, out, 40),
    OFFSET(afdep_scale_args, ctas, 48),
    SIZE(afdep_route_faults, 24),
    OFFSET(afdep_route_faults, over_bucket, 20),
    SIZE(afdep_plan_kernel, 52),
    OFFSET(afdep_plan_kernel, duty, 32),
    OFFSET(afdep_plan_kernel, bucket_to, 48),
    SIZE(afdep_kernel_report, 96),
    OFFSET(afdep_kernel_report, entry, 16),
    OFFSET(afdep_kernel_report, bytes, 48),
    OFFSET(afdep_kernel_report, error, 88),
    SIZE(afdep_build_options, 32),
    OFFSET(afdep_build_options, callback, 16),
    OFFSET(afdep_build_options, user, 24),
    SIZE(afdep_build_result, 24),
    OFFSET(afdep_build_result, ms, 16),
    SIZE(afdep_cache_entry, 160),
    OFFSET(afdep_cache_entry, path, 8),
    OFFSET(afdep_cache_entry, used, 72),
    OFFSET(afdep_cache_entry, hidden, 128),
    OFFSET(afdep_cache_entry, compile_ms, 152),
    SIZE(afdep_cache_explanation, 80),
    OFFSET(afdep_cache_explanation, differences, 40),
    OFFSET(afdep_cache_explanation, duty, 72),
    SIZE(afdep_environment, 104),
    OFFSET(afdep_environment, cache_dir, 8),
    OFFSET(afdep_environment, template_digest, 96),
    SIZE(afdep_cache_stats, 88),
    OFFSET(afdep_cache_stats, hits_memory, 8),
    OFFSET(afdep_cache_stats, store_failures, 48),
    OFFSET(afdep_cache_stats, lock_timeouts, 80),
    SIZE(afdep_variable, 32),
    OFFSET(afdep_variable, text, 24),
};

Test(abi, structs_are_laid_out_as_released)
{
    if (sizeof(void *) != 8)
        cr_skip_test("sizes are those of 64-bit machines");
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; ++i)
        cr_assert_eq(layout[i].is, layout[i].was, "%s is %zu and was %zu", layout[i].what,
                     layout[i].is, layout[i].was);
}

Test(abi, numbers_of_statuses_are_fixed)
{
    cr_assert_eq(AFDEP_OK, 0);
    cr_assert_eq(AFDEP_ERROR_ARGUMENT, 1);
    cr_assert_eq(AFDEP_ERROR_CONFIG, 2);
    cr_assert_eq(AFDEP_ERROR_ROLE, 3);
    cr_assert_eq(AFDEP_ERROR_ORDER, 4);
    cr_assert_eq(AFDEP_ERROR_TOKENS, 5);
    cr_assert_eq(AFDEP_ERROR_CLOSED, 6);
    cr_assert_eq(AFDEP_ERROR_MEMORY, 10);
    cr_assert_eq(AFDEP_ERROR_DRIVER_MISSING, 11);
    cr_assert_eq(AFDEP_ERROR_DEVICE, 12);
    cr_assert_eq(AFDEP_ERROR_COMPILER_MISSING, 13);
    cr_assert_eq(AFDEP_ERROR_RESOURCES, 14);
    cr_assert_eq(AFDEP_ERROR_IO, 15);
    cr_assert_eq(AFDEP_ERROR_COMPILE, 20);
    cr_assert_eq(AFDEP_ERROR_LOAD, 21);
    cr_assert_eq(AFDEP_ERROR_TIMEOUT, 30);
    cr_assert_eq(AFDEP_ERROR_HANDSHAKE, 31);
    cr_assert_eq(AFDEP_ERROR_ROUTES, 32);
    cr_assert_eq(AFDEP_ERROR_INTERNAL, 90);
}
