/* test_obtain.c: where an image comes from, and what is compiled a second time. */
#include "support/capture.h"
#include "support/configs.h"
#include "support/scratch.h"

#include "cache/store.h"
#include "jit/compiler.h"
#include "jit/obtain.h"
#include "jit/recipe.h"

enum { KERNELS = 4 };

static unsigned compiles;

/* A compiler that makes an image of the entry's name. */
static afdep_status identify(const char *arch, struct afj_text *text)
{
    (void)arch;
    afj_compiler_add_line(text, "compiler", "quick", 5);
    return AFDEP_OK;
}

static afdep_status compile(const struct afj_program *program, struct afj_compiled *compiled)
{
    ++compiles;
    memset(compiled, 0, sizeof *compiled);
    compiled->image = strdup(program->entry);
    compiled->image_bytes = strlen(program->entry) + 1;
    return AFDEP_OK;
}

static afdep_status check(const void *image, size_t bytes, const char *arch, const char *entry)
{
    (void)arch;
    if (bytes == strlen(entry) + 1 && memcmp(image, entry, bytes) == 0)
        return AFDEP_OK;
    return afj_fail(AFDEP_ERROR_LOAD, "it is not %s", entry);
}

static const struct afj_compiler quick = {identify, compile, check};

static void begin(void)
{
    make_scratch();
    setenv("AFDEP_LOG", "off", 1);
    setenv("AFDEP_JIT_CACHE", in_scratch("cache"), 1);
    afj_obtain_use_compiler(&quick);
}

static void end(void) { remove_scratch(); }

TestSuite(obtain, .init = begin, .fini = end);

static void want(struct afj_wanted wanted[KERNELS], const struct afj_plan *plan, bool refresh)
{
    cr_assert_geq(plan->kernel_count, KERNELS);
    memset(wanted, 0, KERNELS * sizeof *wanted);
    for (int i = 0; i < KERNELS; ++i) {
        wanted[i].plan = plan;
        wanted[i].kernel = &plan->kernels[i];
        wanted[i].arch = "sm_90a";
        wanted[i].refresh = refresh;
    }
}

/* Put an image into the cache that a kernel will be found in. */
static void put(struct afj_wanted *wanted, const char *image)
{
    struct afj_recipe recipe;
    cr_assert_eq(afj_obtain_recipe(wanted, &recipe), AFDEP_OK);
    cr_assert(afj_store_put(afj_obtain_store(), &recipe.key, recipe.text.data, recipe.text.length,
                            image, strlen(image) + 1, NULL));
    afj_recipe_finish(&recipe);
}

Test(obtain, a_refused_image_is_compiled_again_only_if_it_came_from_the_cache)
{
    const afdep_config config = AFDEP_CONFIG_INIT;
    const struct afj_plan plan = plan_of(&config, AFDEP_ROLE_ATTENTION);
    struct afj_wanted wanted[KERNELS];
    want(wanted, &plan, false);
    put(&wanted[0], plan.kernels[0].name);
    cr_assert_eq(afj_obtain(wanted, KERNELS, 1, NULL, NULL), AFDEP_OK);
    cr_expect_eq(compiles, KERNELS - 1);
    cr_expect_eq(wanted[0].origin, AFDEP_ORIGIN_LOCAL);
    const void *cached = wanted[0].image, *made = wanted[1].image;

    want(wanted, &plan, true);
    cr_assert_eq(afj_obtain(wanted, KERNELS, 1, NULL, NULL), AFDEP_OK);
    cr_expect_eq(compiles, KERNELS);
    cr_expect_eq(wanted[0].origin, AFDEP_ORIGIN_COMPILER);
    cr_expect_neq(wanted[0].image, cached);
    for (int i = 1; i < KERNELS; ++i)
        cr_expect_eq(wanted[i].origin, AFDEP_ORIGIN_MEMORY);
    cr_expect_eq(wanted[1].image, made);
    cr_expect_eq(afj_store_counters(afj_obtain_store()).rejects, 1);
}

Test(obtain, objects_that_do_not_hold_their_kernel_are_warned_of_once)
{
    const afdep_config config = AFDEP_CONFIG_INIT;
    const struct afj_plan plan = plan_of(&config, AFDEP_ROLE_ATTENTION);
    struct afj_wanted wanted[KERNELS];
    setenv("AFDEP_LOG", "warn", 1);
    want(wanted, &plan, false);
    for (int i = 0; i < KERNELS; ++i)
        put(&wanted[i], "something else");
    begin_capture();
    cr_assert_eq(afj_obtain(wanted, KERNELS, 1, NULL, NULL), AFDEP_OK);
    end_capture();
    cr_expect_eq(compiles, KERNELS);
    cr_expect_eq(afj_store_counters(afj_obtain_store()).rejects, KERNELS);
    const char *first = strstr(captured, "is set aside");
    cr_assert_not_null(first, "%s", captured);
    cr_expect_null(strstr(first + 1, "is set aside"), "%s", captured);
}

Test(obtain, an_object_says_which_dtype_it_is_for)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    struct afj_wanted wanted[KERNELS];
    struct afj_recipe recipe;
    void *image;
    size_t length;
    char *facts;
    config.dtype = AFDEP_DTYPE_FP8;
    const struct afj_plan plan = plan_of(&config, AFDEP_ROLE_ATTENTION);
    want(wanted, &plan, false);
    cr_assert_eq(afj_obtain(wanted, 1, 1, NULL, NULL), AFDEP_OK);
    cr_assert_eq(afj_obtain_recipe(&wanted[0], &recipe), AFDEP_OK);
    cr_assert(afj_store_get(afj_obtain_store(), &recipe.key, recipe.text.data, recipe.text.length,
                            &image, &length, &facts));
    cr_expect_not_null(strstr(facts, "\ndtype=fp8\n"), "%s", facts);
    free(image);
    free(facts);
    afj_recipe_finish(&recipe);
}
