/* test_plan.c: the numbers of a plan: sizes, shares, grids. */
#include <criterion/criterion.h>

#include "support/configs.h"
#include "wire/args.h"

Test(regions, an_ffn_rank_registers_a_x_capacity_rows_and_an_attention_rank_f_x_capacity)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 3, 2, 2880);
    c.lanes = 2;
    afdep_plan ffn = {.struct_size = sizeof ffn}, attention = {.struct_size = sizeof attention};
    cr_assert_eq(afdep_plan_query(&c, 0, &ffn), AFDEP_OK, "%s", afdep_last_error());
    cr_assert_eq(afdep_plan_query(&c, 4, &attention), AFDEP_OK, "%s", afdep_last_error());
    cr_assert_eq(ffn.role, AFDEP_ROLE_FFN);
    cr_assert_eq(attention.role, AFDEP_ROLE_ATTENTION);
    cr_assert_eq(ffn.inbox_rows, 2ull * 3 * 2048);
    cr_assert_eq(attention.inbox_rows, 2ull * 2 * 2048);
    cr_assert_eq(ffn.inbox_row_bytes, 2880 * 2);
    cr_assert_eq(attention.inbox_row_bytes, 2880 * 2);
    /* "No more": beside the rows there are route words or acks, and rounding. */
    const uint64_t rows = ffn.inbox_rows * (ffn.inbox_row_bytes + 64);
    cr_assert_geq(ffn.window_bytes, rows);
    cr_assert_lt(ffn.window_bytes, rows + 2 * (3 * 67 * 4 + 128 + 256));
    const uint64_t replies = attention.inbox_rows * attention.inbox_row_bytes;
    cr_assert_geq(attention.window_bytes, replies);
    cr_assert_lt(attention.window_bytes, replies + 2 * (2 * 4 + 128 + 256));
}

Test(regions, slots_and_words_are_aligned_for_every_hidden)
{
    for (uint32_t hidden = 64; hidden <= 16384; hidden += 8)
        for (uint32_t top_k = 1; top_k <= 32; top_k += 31) {
            afdep_config c = config_of(AFDEP_DEVICE_CUDA, 1, 1, hidden);
            c.top_k = top_k;
            c.capacity = 1 + hidden % 97;
            const struct afj_plan p = plan_of(&c, AFDEP_ROLE_FFN);
            cr_assert_eq(p.regions.row_bytes % 16, 0);
            cr_assert_eq(p.regions.row_bytes, hidden * 2);
            cr_assert_eq(p.regions.meta_bytes % 16, 0);
            cr_assert_geq(p.regions.meta_bytes, top_k * 8);
            cr_assert_eq(p.regions.meta_offset % 128, 0);
            cr_assert_eq(p.regions.route_offset % 4, 0);
            cr_assert_eq(p.regions.ffn_lane_bytes % 256, 0);
        }
}

Test(regions, offsets_do_not_wrap_at_32_bits)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 7, 1, 16384);
    c.capacity = 100000;
    const struct afj_plan p = plan_of(&c, AFDEP_ROLE_FFN);
    cr_assert_eq(p.regions.meta_offset, 7ull * 100000 * 32768);
    cr_assert_eq(p.regions.route_offset, 7ull * 100000 * (32768 + 64));
}

Test(plan, the_shares_and_pieces_of_every_kernel_cover_a_row_exactly_once)
{
    for (uint32_t hidden = 64; hidden <= 16384; hidden += 8)
        for (uint32_t role = AFDEP_ROLE_ATTENTION; role <= AFDEP_ROLE_FFN; ++role) {
            afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, hidden);
            const struct afj_plan p = plan_of(&c, role);
            for (uint32_t i = 0; i < p.kernel_count; ++i) {
                const struct afj_plan_kernel *k = &p.kernels[i];
                const uint32_t row = hidden / 8;
                cr_assert_geq(k->warps_per_row * k->share_vecs, row);
                cr_assert_lt((k->warps_per_row - 1) * k->share_vecs, row);
                cr_assert_geq(k->pieces * k->piece_vecs, k->share_vecs);
                cr_assert_lt((k->pieces - 1) * k->piece_vecs, k->share_vecs);
                cr_assert_leq(k->piece_vecs, k->entry == AFJ_ENTRY_COLLECT ? 128 : 256);
            }
        }
}

Test(plan, every_bucket_has_one_kernel_of_each_entry)
{
    static const enum afj_entry source[] = {AFJ_ENTRY_DISPATCH, AFJ_ENTRY_COLLECT};
    static const enum afj_entry expert[] = {AFJ_ENTRY_RECEIVE, AFJ_ENTRY_REPLY, AFJ_ENTRY_SCALE};
    static const uint32_t layouts[][2] = {{1, 1}, {2, 2}, {7, 1}, {1, 3}, {64, 64}, {127, 1}};
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; ++l) {
        afdep_config c = config_of(AFDEP_DEVICE_CUDA, layouts[l][0], layouts[l][1], 2048);
        c.capacity = 300;
        const struct afj_plan a = plan_of(&c, AFDEP_ROLE_ATTENTION);
        const struct afj_plan f = plan_of(&c, AFDEP_ROLE_FFN);
        for (uint32_t bucket = 1; bucket <= 300; ++bucket) {
            for (size_t e = 0; e < 2; ++e)
                cr_assert(afj_plan_kernel_for(&a, source[e], bucket));
            for (size_t e = 0; e < 3; ++e)
                cr_assert(afj_plan_kernel_for(&f, expert[e], bucket));
            const struct afj_plan_kernel *r = afj_plan_kernel_for(&f, AFJ_ENTRY_RECEIVE, bucket);
            if (r->shape == AFJ_SHAPE_FEW)
                cr_assert_leq(layouts[l][0] * afj_regions_groups(bucket), 32);
        }
    }
}

Test(plan, a_grid_is_never_empty_nor_over_its_limit)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 3, 1, 2048);
    c.ctas = 5;
    for (uint32_t role = AFDEP_ROLE_ATTENTION; role <= AFDEP_ROLE_FFN; ++role) {
        const struct afj_plan p = plan_of(&c, role);
        for (uint32_t i = 0; i < p.kernel_count; ++i)
            for (uint32_t bucket = 1; bucket <= 2048; bucket = bucket * 2 + 1) {
                const uint32_t ctas = afj_plan_ctas(&p, &p.kernels[i], bucket);
                cr_assert(ctas >= 1 && ctas <= 5);
            }
    }
}

Test(plan, the_largest_route_table_fits_in_shared_memory)
{
    static const uint32_t ranks[] = {1, 3, 7, 64, 127};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; ++i) {
        afdep_config c = config_of(AFDEP_DEVICE_CUDA, ranks[i], 1, 64);
        c.capacity = 28000 / ranks[i] * 31;
        const struct afj_plan p = plan_of(&c, AFDEP_ROLE_FFN);
        const struct afj_plan_kernel *k = afj_plan_kernel_for(&p, AFJ_ENTRY_RECEIVE, c.capacity);
        const uint32_t bytes = afj_plan_shared_bytes(&p, k, c.capacity);
        cr_assert_leq(bytes, 227 * 1024, "%u ranks: %u bytes", ranks[i], bytes);
    }
}

Test(plan, arguments_stay_under_the_size_that_every_driver_takes)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 127, 1, 64);
    const struct afj_plan f = plan_of(&c, AFDEP_ROLE_FFN);
    c = config_of(AFDEP_DEVICE_CUDA, 64, 64, 64);
    const struct afj_plan a = plan_of(&c, AFDEP_ROLE_ATTENTION);
    for (uint32_t i = 0; i < f.kernel_count; ++i)
        cr_assert_leq(f.kernels[i].arguments_bytes, 4096);
    for (uint32_t i = 0; i < a.kernel_count; ++i)
        cr_assert_leq(a.kernels[i].arguments_bytes, 4096);
}

Test(plan, a_rank_out_of_range_is_refused)
{
    afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2048);
    afdep_plan out = {.struct_size = sizeof out};
    cr_assert_eq(afdep_plan_query(&c, 4, &out), AFDEP_ERROR_ARGUMENT);
    cr_assert(strstr(afdep_last_error(), "rank is 4"), "%s", afdep_last_error());
    cr_assert_eq(afdep_plan_query(&c, 0, NULL), AFDEP_ERROR_ARGUMENT);
    out.struct_size = 8;
    cr_assert_eq(afdep_plan_query(&c, 0, &out), AFDEP_ERROR_ARGUMENT);
}
