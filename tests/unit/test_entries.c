/* test_entries.c: what list, inspect and explain tell through the ABI. */
#include <errno.h>

#include "support/configs.h"
#include "support/scratch.h"

#include <afdep/cache.h>

#include "cache/store.h"
#include "jit/obtain.h"
#include "jit/recipe.h"

static void begin(void)
{
    make_scratch();
    setenv("AFDEP_LOG", "off", 1);
    setenv("AFDEP_JIT_CACHE", in_scratch("cache"), 1);
}

static void end(void) { remove_scratch(); }

TestSuite(entries, .init = begin, .fini = end);

/* What was told last, copied. */
static struct {
    int count;
    uint32_t damaged, hidden, registers;
    char key[33], spec[256], layout[16], entry[24], manifest[1024], error[256];
    double compile_ms;
} seen;

static void see(const afdep_cache_entry *entry, void *user)
{
    cr_expect_eq(user, &seen);
    cr_expect_eq(entry->struct_size, sizeof *entry);
    seen.count++;
    seen.damaged = entry->damaged;
    seen.hidden = entry->hidden;
    seen.registers = entry->registers;
    seen.compile_ms = entry->compile_ms;
    snprintf(seen.key, sizeof seen.key, "%s", entry->key);
    snprintf(seen.spec, sizeof seen.spec, "%s", entry->spec);
    snprintf(seen.layout, sizeof seen.layout, "%s", entry->layout);
    snprintf(seen.entry, sizeof seen.entry, "%s", entry->entry);
    snprintf(seen.manifest, sizeof seen.manifest, "%s", entry->manifest);
    snprintf(seen.error, sizeof seen.error, "%s", entry->error ? entry->error : "");
    cr_expect_eq(entry->damaged != 0, entry->error != NULL);
}

/* Put an image that no device would take, under a manifest of these values. */
static void put(const char *spec, const char *arch)
{
    static const struct afj_store_facts facts = {
        .hidden = 64, .compile_ms = 12.5, .lines = "registers=40\nspill_bytes=x\n"};
    struct afj_text text = {0};
    afj_compiler_add_line(&text, "spec", spec, strlen(spec));
    afj_compiler_add_line(&text, "arch", arch, strlen(arch));
    const struct afj_digest key = afj_digest_of(text.data, text.length);
    cr_assert(afj_store_put(afj_obtain_store(), &key, text.data, text.length, "image", 5, &facts));
    afj_text_finish(&text);
}

Test(entries, fields_are_those_of_the_manifest)
{
    put("device=cuda duty=source entry=dispatch shape=few layout=2A3F domains=1 hidden=64 "
        "dtype=bf16 experts=126 top_k=8",
        "sm_90a");
    cr_assert_eq(afdep_cache_list(see, &seen), AFDEP_OK);
    cr_expect_eq(seen.count, 1);
    cr_expect_eq(seen.hidden, 64);
    cr_expect_eq(seen.registers, 40);
    cr_expect_float_eq(seen.compile_ms, 12.5, 1e-9);
    cr_expect_str_eq(seen.layout, "2A3F");
    cr_expect_str_eq(seen.entry, "dispatch");
    cr_expect_not_null(strstr(seen.manifest, "\narch=sm_90a\n"), "%s", seen.manifest);
    cr_expect_not_null(strstr(seen.manifest, "\nfact.registers=40\n"), "%s", seen.manifest);
    cr_assert_eq(afdep_cache_inspect(seen.key, see, &seen), AFDEP_OK);
    cr_expect_eq(seen.count, 2);
}

Test(entries, an_image_that_would_be_refused_is_damage_although_its_sums_are_right)
{
    put("device=cuda entry=dispatch", "sm_90a");
    cr_assert_eq(afdep_cache_list(see, &seen), AFDEP_OK);
    cr_expect_eq(seen.damaged, 1);
    cr_expect_neq(seen.error[0], '\0');
    cr_expect_str_eq(afdep_last_error(), "");
    cr_expect_eq(afdep_cache_explain_object(seen.key, NULL, NULL), AFDEP_ERROR_ARGUMENT);
}

Test(entries, a_manifest_cannot_forge_lines_or_write_to_the_terminal)
{
    put("device=cuda\nfact.registers=99 \x1b[2J", "a very long architecture");
    cr_assert_eq(afdep_cache_list(see, &seen), AFDEP_OK);
    cr_expect_eq(seen.damaged, 1);
    cr_expect_str_eq(seen.error, "its manifest does not say what kernel it is");
    cr_expect_str_eq(seen.spec, "device=cuda?fact.registers=99 ?[2J");
    cr_expect_null(strstr(seen.manifest, "\nfact.registers=99"), "%s", seen.manifest);
}

Test(entries, nothing_there_is_an_answer_with_a_sentence)
{
    cr_assert_eq(afdep_cache_list(see, &seen), AFDEP_OK);
    cr_expect_eq(seen.count, 0);
    cr_expect_eq(afdep_cache_inspect("00000000000000000000000000000000", see, &seen),
                 AFDEP_ERROR_IO);
    cr_expect_not_null(strstr(afdep_last_error(), "is no object of the cache"), "%s",
                       afdep_last_error());
    cr_expect_eq(afdep_cache_inspect(in_scratch("."), see, &seen), AFDEP_ERROR_IO);
    cr_expect_eq(seen.count, 0);
}

static void explained(const afdep_cache_explanation *explanation, void *user)
{
    (void)explanation;
    ++*(int *)user;
}

Test(entries, bad_arguments_are_named)
{
    const afdep_config good = config_of(AFDEP_DEVICE_SIM, 1, 1, 64);
    afdep_config bad = good;
    int count = 0;
    bad.hidden = 65;
    cr_expect_eq(afdep_cache_list(NULL, NULL), AFDEP_ERROR_ARGUMENT);
    cr_expect_eq(afdep_cache_inspect(NULL, see, &seen), AFDEP_ERROR_ARGUMENT);
    cr_expect_str_eq(afdep_last_error(), "what is NULL");
    cr_expect_eq(afdep_cache_inspect("x", NULL, NULL), AFDEP_ERROR_ARGUMENT);
    cr_expect_str_eq(afdep_last_error(), "callback is NULL");
    cr_expect_eq(afdep_cache_explain(NULL, 0, explained, &count), AFDEP_ERROR_ARGUMENT);
    cr_expect_eq(afdep_cache_explain(&good, 0, NULL, NULL), AFDEP_ERROR_ARGUMENT);
    cr_expect_eq(afdep_cache_explain(&bad, 0, explained, &count), AFDEP_ERROR_CONFIG);
    cr_expect_eq(afdep_cache_explain_object(NULL, explained, &count), AFDEP_ERROR_ARGUMENT);
    cr_expect_eq(count, 0);
}

static struct afj_spec read_spec(const char *text)
{
    struct afj_spec spec;
    afj_recipe_read_spec(text, strlen(text), &spec);
    return spec;
}

Test(entries, a_spec_is_read_as_recipes_write_it)
{
    const struct afj_spec s =
        read_spec("device=sim duty=expert entry=receive_few shape=few layout=127A1F domains=1 "
                  "hidden=16384 dtype=bf16 experts=65536 top_k=32");
    cr_expect_str_eq(s.device, "sim");
    cr_expect_str_eq(s.duty, "expert");
    cr_expect_str_eq(s.entry, "receive_few");
    cr_expect_str_eq(s.shape, "few");
    cr_expect_str_eq(s.layout, "127A1F");
    cr_expect_str_eq(s.dtype, "bf16");
    cr_expect_eq(s.attention_ranks, 127);
    cr_expect_eq(s.ffn_ranks, 1);
    cr_expect_eq(s.hidden, 16384);
    cr_expect_eq(s.experts, 65536);
    cr_expect_eq(s.top_k, 32);
}

Test(entries, a_malformed_spec_says_nothing)
{
    static const char *const specs[] = {"",
                                        " ",
                                        "=",
                                        "layout=",
                                        "layout=A",
                                        "layout=F",
                                        "layout=AF",
                                        "layout=x2A2F",
                                        "hidden=",
                                        "hidden=-1",
                                        "hidden=4294967296",
                                        "hidden=99999999999999999999999",
                                        "hidden=1x",
                                        "device=much-too-long",
                                        "duty",
                                        "top_k=8k",
                                        "layout=1A",
                                        "dutyduty=source"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const struct afj_spec s = read_spec(specs[i]);
        cr_expect_eq(s.attention_ranks + s.ffn_ranks + s.hidden + s.experts + s.top_k, 0, "%s",
                     specs[i]);
        cr_expect_eq(s.device[0] | s.duty[0] | s.entry[0] | s.shape[0], 0, "%s", specs[i]);
    }
}

Test(entries, reserved_fields_of_a_build_must_be_zero)
{
    const afdep_config config = AFDEP_CONFIG_INIT;
    const afdep_build_options options = {.struct_size = sizeof options, .reserved = 7};
    cr_assert_eq(afdep_cache_build(&config, 1, &options, NULL), AFDEP_ERROR_ARGUMENT);
    cr_assert(strstr(afdep_last_error(), "reserved is 7"), "%s", afdep_last_error());
}
