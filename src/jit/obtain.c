/* obtain.c: from planned kernels to images: found in memory or in the cache, else compiled. */
#include "jit/obtain.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "cache/claim.h"
#include "cache/store.h"
#include "jit/compiler.h"
#include "jit/held.h"
#include "jit/recipe.h"
#include "jit/source.h"

static struct {
    struct afj_store *store;
    const struct afj_compiler *compiler; /* instead of the real ones; NULL outside tests */
    atomic_uint_fast64_t hits_memory, hits_local, compiles, compile_us, waits;
} process;

enum { MOST_JOBS = 256 };

static pthread_once_t store_once = PTHREAD_ONCE_INIT;

static void open_store(void) { process.store = afj_store_open(); }

struct afj_store *afj_obtain_store(void)
{
    pthread_once(&store_once, open_store);
    return process.store;
}

void afj_obtain_stats(afdep_cache_stats *stats)
{
    stats->hits_memory = atomic_load(&process.hits_memory);
    stats->hits_local = atomic_load(&process.hits_local);
    stats->compiles = atomic_load(&process.compiles);
    stats->compile_us = atomic_load(&process.compile_us);
    stats->waits = atomic_load(&process.waits);
    struct afj_store *store = afj_obtain_store();
    if (store) {
        struct afj_store_counters counters = afj_store_counters(store);
        stats->rejects = counters.rejects;
        stats->store_failures = counters.store_failures;
        stats->lockless = counters.lockless;
        stats->wait_us = counters.wait_us;
        stats->lock_timeouts = counters.lock_timeouts;
    }
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void afj_obtain_use_compiler(const struct afj_compiler *compiler) { process.compiler = compiler; }

static void take_image(struct afj_wanted *wanted, const struct afj_held_image *held,
                       uint32_t origin)
{
    wanted->image = held->image;
    wanted->image_bytes = held->bytes;
    wanted->registers = held->registers;
    wanted->shared_bytes = held->shared_bytes;
    wanted->spill_bytes = held->spill_bytes;
    wanted->origin = origin;
}

static uint32_t fact(const char *facts, const char *name)
{
    const char *at = facts ? strstr(facts, name) : NULL;
    return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

/* The cache has the image, and it may be what the compiler makes. */
static bool get_from_store(struct afj_wanted *wanted, const struct afj_recipe *recipe,
                           const struct afj_compiler *compiler)
{
    struct afj_store *store = afj_obtain_store();
    void *image = NULL;
    size_t bytes = 0;
    char *facts = NULL;
    if (!store || !afj_store_get(store, &recipe->key, recipe->text.data, recipe->text.length,
                                 &image, &bytes, &facts))
        return false;
    if (compiler->check(image, bytes, wanted->arch_used, wanted->kernel->name) != AFDEP_OK) {
        AFJ_WARN_ONCE("cached kernel %s is set aside: %s", wanted->key, afj_status_sentence());
        afj_status_clear();
        afj_store_reject(store, &recipe->key);
        free(image);
        free(facts);
        return false;
    }
    const struct afj_held_image found = {
        .key = recipe->key,
        .image = image,
        .bytes = bytes,
        .registers = fact(facts, "registers="),
        .shared_bytes = fact(facts, "shared_bytes="),
        .spill_bytes = fact(facts, "spill_bytes="),
    };
    const struct afj_held_image *held = afj_held_keep(&found);
    if (held) {
        take_image(wanted, held, AFDEP_ORIGIN_LOCAL);
        atomic_fetch_add(&process.hits_local, 1);
    }
    free(facts);
    return held != NULL;
}

static bool put_in_store(const struct afj_wanted *wanted, const struct afj_recipe *recipe,
                         double compile_ms)
{
    struct afj_store *store = afj_obtain_store();
    const afdep_config *c = &wanted->plan->config.fields;
    char ratio[32], lines[128];
    snprintf(ratio, sizeof ratio, "%" PRIu32 "A%" PRIu32 "F", c->attention_ranks, c->ffn_ranks);
    snprintf(lines, sizeof lines,
             "registers=%" PRIu32 "\nshared_bytes=%" PRIu32 "\nspill_bytes=%" PRIu32 "\nentry=%s\n",
             wanted->registers, wanted->shared_bytes, wanted->spill_bytes, wanted->kernel->name);
    const struct afj_store_facts facts = {
        .role = afj_plan_duty_name(wanted->kernel->duty),
        .ratio = ratio,
        .dtype = afj_plan_dtype_name(c->dtype),
        .topo = "domains=1",
        .arch = wanted->arch_used,
        .hidden = c->hidden,
        .compile_ms = compile_ms,
        .lines = lines,
    };
    return store && afj_store_put(store, &recipe->key, recipe->text.data, recipe->text.length,
                                  wanted->image, wanted->image_bytes, &facts);
}

/* *stored: other processes find the image in the cache now. */
static afdep_status compile_image(struct afj_wanted *wanted, const struct afj_source *source,
                                  const struct afj_recipe *recipe,
                                  const struct afj_compiler *compiler, bool *stored)
{
    const struct afj_program program = {source->files, source->file_count, wanted->arch_used,
                                        wanted->kernel->name};
    struct afj_compiled compiled = {0};
    *stored = false;
    const double from = now_ms();
    const afdep_status status = compiler->compile(&program, &compiled);
    const double ms = now_ms() - from;
    if (status != AFDEP_OK) {
        if (compiled.log)
            afj_log(AFJ_LOG_DEBUG, "%s: %s", wanted->kernel->name, compiled.log);
        afj_compiled_finish(&compiled);
        return status;
    }
    const struct afj_held_image made = {
        .key = recipe->key,
        .image = compiled.image,
        .bytes = compiled.image_bytes,
        .registers = compiled.registers,
        .shared_bytes = compiled.shared_bytes,
        .spill_bytes = compiled.spill_bytes,
        .compiled = true,
    };
    compiled.image = NULL; /* moved */
    const struct afj_held_image *held = afj_held_keep(&made);
    if (held) {
        take_image(wanted, held, AFDEP_ORIGIN_COMPILER);
        atomic_fetch_add(&process.compiles, 1);
        atomic_fetch_add(&process.compile_us, (uint64_t)(ms * 1e3));
        *stored = put_in_store(wanted, recipe, ms);
    }
    afj_compiled_finish(&compiled);
    return held ? AFDEP_OK
                : afj_fail(AFDEP_ERROR_MEMORY, "no memory for the image of %s",
                           wanted->kernel->name);
}

static void choose_arch(struct afj_wanted *wanted)
{
    const char *arch = wanted->arch;
    struct utsname machine;
    if (wanted->plan->config.fields.device == AFDEP_DEVICE_SIM)
        arch = uname(&machine) == 0 ? machine.machine : "x86_64";
    else if (!arch || !*arch)
        arch = "sm_90a";
    snprintf(wanted->arch_used, sizeof wanted->arch_used, "%.15s", arch);
}

/* What the cache lacks is compiled by one process at a time; the others find it there then. *busy:
 * another process is compiling it, and this call was not to wait. */
static afdep_status find_or_compile(struct afj_wanted *wanted, const struct afj_source *source,
                                    const struct afj_recipe *recipe,
                                    const struct afj_compiler *compiler, bool wait, bool *busy)
{
    struct afj_store *store = afj_obtain_store();
    struct afj_claim claim;
    struct afj_claim_wait waited = {0};
    bool stored = true;
    if (!store)
        return compile_image(wanted, source, recipe, compiler, &stored);
    if (get_from_store(wanted, recipe, compiler))
        return AFDEP_OK;
    enum afj_claim_answer answer = afj_claim_try(store, &recipe->key, &waited, &claim);
    while (answer == AFJ_CLAIM_BUSY) {
        if (!wait) {
            *busy = true;
            return AFDEP_OK;
        }
        if (!afj_claim_pause(store, &recipe->key, &waited))
            break; /* waited long enough: without a claim */
        if (get_from_store(wanted, recipe, compiler))
            return AFDEP_OK;
        answer = afj_claim_try(store, &recipe->key, &waited, &claim);
    }
    afdep_status status = AFDEP_OK;
    if (answer != AFJ_CLAIM_MINE || !get_from_store(wanted, recipe, compiler))
        status = compile_image(wanted, source, recipe, compiler, &stored);
    afj_claim_release(&claim, stored);
    return status;
}

/* A device refused the image of this key. One that came from the cache is made anew; of one that
 * this process has compiled, compiling it again would make the same. */
static afdep_status obtain_afresh(struct afj_wanted *wanted, const struct afj_source *source,
                                  const struct afj_recipe *recipe,
                                  const struct afj_compiler *compiler)
{
    const struct afj_held_image *held = afj_held_find(&recipe->key);
    struct afj_store *store = afj_obtain_store();
    bool stored = false;
    if (held && held->compiled) {
        take_image(wanted, held, AFDEP_ORIGIN_MEMORY);
        atomic_fetch_add(&process.hits_memory, 1);
        return AFDEP_OK;
    }
    if (store)
        afj_store_reject(store, &recipe->key);
    return compile_image(wanted, source, recipe, compiler, &stored);
}

/* Memory, then the cache, then the compiler. */
static afdep_status obtain_by_recipe(struct afj_wanted *wanted, const struct afj_source *source,
                                     const struct afj_recipe *recipe,
                                     const struct afj_compiler *compiler, bool wait, bool *busy)
{
    const struct afj_held_image *held = NULL;
    bool mine = false;
    if (wanted->refresh)
        return obtain_afresh(wanted, source, recipe, compiler);
    AFJ_TRY(afj_held_begin(&recipe->key, wait, &mine, &held));
    if (!mine) {
        *busy = held == NULL;
        if (held) {
            take_image(wanted, held, AFDEP_ORIGIN_MEMORY);
            atomic_fetch_add(&process.hits_memory, 1);
        }
        return AFDEP_OK;
    }
    const afdep_status status = find_or_compile(wanted, source, recipe, compiler, wait, busy);
    afj_held_end(&recipe->key, status);
    return status;
}

static const struct afj_compiler *choose_compiler(uint32_t device)
{
    if (process.compiler)
        return process.compiler;
    return device == AFDEP_DEVICE_SIM ? &afj_compiler_hostcc : &afj_compiler_nvrtc;
}

/* Program and recipe of a wanted kernel. */
static afdep_status describe(struct afj_wanted *wanted, const struct afj_compiler *compiler,
                             struct afj_source *source, struct afj_recipe *recipe)
{
    choose_arch(wanted);
    AFJ_TRY(afj_source_make(wanted->plan, wanted->kernel, source));
    const afdep_status status =
        afj_recipe_make(wanted->plan, wanted->kernel, source, compiler, wanted->arch_used, recipe);
    if (status == AFDEP_OK)
        afj_digest_hex(&recipe->key, wanted->key);
    else
        afj_source_finish(source);
    return status;
}

afdep_status afj_obtain_recipe(struct afj_wanted *wanted, struct afj_recipe *recipe)
{
    struct afj_source source;
    AFJ_TRY(describe(wanted, choose_compiler(wanted->plan->config.fields.device), &source, recipe));
    afj_source_finish(&source);
    return AFDEP_OK;
}

static afdep_status obtain_one(struct afj_wanted *wanted, bool wait, bool *busy)
{
    const struct afj_compiler *compiler = choose_compiler(wanted->plan->config.fields.device);
    struct afj_source source;
    struct afj_recipe recipe;
    *busy = false;
    AFJ_TRY(describe(wanted, compiler, &source, &recipe));
    const afdep_status status = obtain_by_recipe(wanted, &source, &recipe, compiler, wait, busy);
    afj_recipe_finish(&recipe);
    afj_source_finish(&source);
    return status;
}

/* The kernels that workers share out, first come first served. A first pass leaves out what other
 * processes are compiling, a second waits for it; each process begins at another kernel, so that
 * several that start together share the kernels out, too. */
struct shared_work {
    struct afj_wanted *wanted;
    bool *left; /* [count] for the second pass */
    uint32_t count, first;
    bool wait;
    atomic_uint next;
    pthread_mutex_t report_lock;
    uint32_t done;
    afj_obtain_callback callback;
    void *user;
};

static void *run_worker(void *argument)
{
    struct shared_work *work = argument;
    for (;;) {
        const uint32_t turn = atomic_fetch_add(&work->next, 1);
        if (turn >= work->count)
            return NULL;
        const uint32_t i = (work->first + turn) % work->count;
        struct afj_wanted *wanted = &work->wanted[i];
        if (work->wait && !work->left[i])
            continue;
        const double from = now_ms();
        wanted->status = obtain_one(wanted, work->wait, &work->left[i]);
        wanted->ms += now_ms() - from;
        if (work->left[i])
            continue;
        if (work->wait)
            atomic_fetch_add(&process.waits, 1);
        if (wanted->status != AFDEP_OK)
            snprintf(wanted->error, sizeof wanted->error, "%s", afj_status_sentence());
        pthread_mutex_lock(&work->report_lock);
        ++work->done;
        if (work->callback)
            work->callback(wanted, work->done, work->user);
        pthread_mutex_unlock(&work->report_lock);
    }
}

static uint32_t choose_jobs(uint32_t jobs, uint32_t count)
{
    if (jobs == 0)
        jobs = (uint32_t)afj_env_number(AFJ_ENV_JIT_JOBS, 1, MOST_JOBS, 0);
    if (jobs == 0) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        jobs = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint32_t)CPU_COUNT(&cpus) : 1;
    }
    if (jobs > MOST_JOBS)
        jobs = MOST_JOBS;
    return jobs < count ? jobs : count;
}

/* This thread is one of the workers; those that cannot be started are not missed. */
static void run_workers(struct shared_work *work, uint32_t jobs)
{
    pthread_t threads[MOST_JOBS];
    uint32_t started = 0;
    atomic_store(&work->next, 0);
    while (started + 1 < jobs && pthread_create(&threads[started], NULL, run_worker, work) == 0)
        ++started;
    run_worker(work);
    for (uint32_t i = 0; i < started; ++i)
        pthread_join(threads[i], NULL);
}

afdep_status afj_obtain(struct afj_wanted *wanted, uint32_t count, uint32_t jobs,
                        afj_obtain_callback callback, void *user)
{
    struct shared_work work = {
        .wanted = wanted, .count = count, .callback = callback, .user = user};
    if (count == 0)
        return AFDEP_OK;
    work.left = calloc(count, sizeof *work.left);
    if (!work.left)
        return afj_fail(AFDEP_ERROR_MEMORY, "no memory for %" PRIu32 " kernels", count);
    work.first = (uint32_t)getpid() % count;
    pthread_mutex_init(&work.report_lock, NULL);
    jobs = choose_jobs(jobs, count);
    run_workers(&work, jobs);
    if (work.done < count) {
        work.wait = true;
        run_workers(&work, jobs);
    }
    pthread_mutex_destroy(&work.report_lock);
    free(work.left);
    for (uint32_t i = 0; i < count; ++i)
        if (wanted[i].status != AFDEP_OK)
            return afj_fail(wanted[i].status, "%s", wanted[i].error);
    return AFDEP_OK;
}
