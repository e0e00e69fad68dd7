/* test_golden.c: the plan's output for known deployments, byte for byte. With AFDEP_WRITE_GOLDEN
 * set, writes the files instead of comparing. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "jit/source.h"
#include "support/configs.h"

static void path_of(const char *name, char *path, size_t size)
{
    const char *root = getenv("AFDEP_SOURCE_DIR");
    snprintf(path, size, "%s/%s", root ? root : ".", name);
}

static void compare(const char *name, const struct afj_text *text)
{
    char path[4096];
    path_of(name, path, sizeof path);
    if (getenv("AFDEP_WRITE_GOLDEN")) {
        FILE *file = fopen(path, "w");
        cr_assert(file, "cannot write %s", path);
        fwrite(text->data, 1, text->length, file);
        fclose(file);
        return;
    }
    void *expected = NULL;
    size_t length = 0;
    cr_assert_eq(afj_path_read(path, true, 1 << 20, &expected, &length), 0, "cannot read %s", path);
    cr_assert_str_eq(text->data, (char *)expected, "%s differs from what the plan says now", name);
    free(expected);
}

static void describe(struct afj_text *text, const afdep_config *config, uint32_t role)
{
    const struct afj_plan p = plan_of(config, role);
    const struct afj_regions *r = &p.regions;
    static const char *const roles[] = {"", "attention", "ffn", "both"};
    afj_text_printf(text, "%" PRIu32 "A%" PRIu32 "F %s hidden %" PRIu32 " %s receive %" PRIu32 "\n",
                    config->attention_ranks, config->ffn_ranks, roles[role], config->hidden,
                    afj_plan_dtype_name(config->dtype), p.config.fields.receive);
    afj_text_printf(text,
                    "  row %" PRIu64 " meta %" PRIu64 " at %" PRIu64 " reply %" PRIu64
                    " groups %" PRIu32 "\n  attention lane %" PRIu64 " ack at %" PRIu64
                    ", ffn lane %" PRIu64 " route at %" PRIu64 ", state %" PRIu64 "\n",
                    r->row_bytes, r->meta_bytes, r->meta_offset, r->reply_bytes, r->groups,
                    r->attention_lane_bytes, r->ack_offset, r->ffn_lane_bytes, r->route_offset,
                    p.state.bytes);
    for (uint32_t i = 0; i < p.kernel_count; ++i) {
        const struct afj_plan_kernel *k = &p.kernels[i];
        afj_text_printf(text,
                        "  %-11s %-4s warps %2" PRIu32 " ctas %2" PRIu32 " row/%" PRIu32
                        " share %4" PRIu32 " = %" PRIu32 " x %3" PRIu32 " buckets %4" PRIu32
                        "..%-4" PRIu32 " arguments %4zu\n",
                        k->name, afj_plan_shape_name(k->shape), k->warps, k->max_ctas,
                        k->warps_per_row, k->share_vecs, k->pieces, k->piece_vecs, k->bucket_from,
                        k->bucket_to, k->arguments_bytes);
    }
}

Test(golden, plans)
{
    static const uint32_t layouts[][3] = {{1, 1, 2048}, {2, 2, 2048},  {3, 1, 2880},
                                          {1, 3, 4096}, {11, 1, 7168}, {64, 64, 64}};
    struct afj_text text = {0};
    for (uint32_t device = AFDEP_DEVICE_CUDA; device <= AFDEP_DEVICE_SIM; ++device) {
        afj_text_add(&text, device == AFDEP_DEVICE_CUDA ? "cuda\n" : "sim\n");
        for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; ++l) {
            const afdep_config c = config_of(device, layouts[l][0], layouts[l][1], layouts[l][2]);
            describe(&text, &c, AFDEP_ROLE_ATTENTION);
            describe(&text, &c, AFDEP_ROLE_FFN);
        }
        for (uint32_t dtype = AFDEP_DTYPE_FP8; dtype <= AFDEP_DTYPE_OPAQUE; ++dtype) {
            afdep_config c = config_of(device, 4, 4, 7168);
            c.both_ranks = 4;
            c.dtype = dtype;
            c.payload_bytes = dtype == AFDEP_DTYPE_OPAQUE ? 3584 + 448 : 0;
            c.receive =
                dtype == AFDEP_DTYPE_FP8_UE8M0 ? AFDEP_RECEIVE_VIEW : AFDEP_RECEIVE_EXPERT_MAJOR;
            c.reply_weights = 1;
            describe(&text, &c, AFDEP_ROLE_BOTH);
        }
    }
    compare("tests/golden/plans.txt", &text);
    afj_text_finish(&text);
}

/* What an editor shows beside the templates is what the plan writes. */
Test(golden, the_example_constants)
{
    const afdep_config c = config_of(AFDEP_DEVICE_CUDA, 2, 2, 2048);
    const struct afj_plan plan = plan_of(&c, AFDEP_ROLE_ATTENTION);
    struct afj_text text = {0};
    afj_source_constants(&plan, &plan.kernels[0], &text);
    compare("templates/example/afdep_constants.h", &text);
    afj_text_finish(&text);
}
