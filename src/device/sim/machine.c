/* machine.c: the one simulator of the process, its lock, its policy and its counters. */
#include "device/sim/machine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/log.h"
#include "device/sim/scheduler.h"
#include "device/sim/stream.h"

#define AWAIT_OTHERS_NS 100000000L

static struct afj_sim the_simulator;

/* A thread passes `door` to queue up for `room`, which guards the simulator. The scheduler, which
 * holds the room for long, lets the queue go first by passing the door like everyone else. */
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t room = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_came;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint queue;

/* Guarded by `room`: whether more than one thread has entered since the last reset. */
static bool any_thread, several_threads;
static pthread_t first_thread;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&work_came, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void lock_room(void)
{
    atomic_fetch_add_explicit(&queue, 1, memory_order_relaxed);
    pthread_mutex_lock(&door);
    pthread_mutex_lock(&room);
    pthread_mutex_unlock(&door);
    atomic_fetch_sub_explicit(&queue, 1, memory_order_relaxed);
}

/* Weights differ by seed, so that a set of seeds sees words that are early and words that are very
 * late, warps that hardly interleave and warps that do at every step. */
static void take_policy(struct afj_sim *sim, const struct afj_sim_policy *policy)
{
    static const uint32_t deliver_weights[] = {1, 4, 16, 64, 256};
    static const uint32_t most[] = {1, 1, 2, 8, 64};
    static const uint32_t permilles[] = {5, 50, 200, 500, 900};
    struct afj_random choices = {.state = policy->seed ^ 0x5EEDu};
    uint32_t a = afj_random_below(&choices, 5), b = afj_random_below(&choices, 5),
             c = afj_random_below(&choices, 5);
    sim->policy = *policy;
    if (policy->run_weight == 0 && policy->deliver_weight == 0) {
        sim->policy.run_weight = 64;
        sim->policy.deliver_weight = deliver_weights[a];
    }
    if (policy->deliver_most == 0)
        sim->policy.deliver_most = most[b];
    if (policy->point_permille == 0)
        sim->policy.point_permille = permilles[c];
    if (policy->hold_entry != NULL && policy->hold_entry != sim->hold_entry)
        snprintf(sim->hold_entry, sizeof sim->hold_entry, "%s", policy->hold_entry);
    if (policy->hold_entry != NULL)
        sim->policy.hold_entry = sim->hold_entry;
    sim->configured = true;
}

static void begin_anew(struct afj_sim *sim)
{
    afj_stream_drop_all(sim);
    afj_link_clear(&sim->links);
    sim->random.state = sim->policy.seed;
    sim->trace = 0;
    sim->clock_ns = 0;
    sim->counters = (struct afj_sim_counters){0};
    sim->first_violation[0] = sim->divergence[0] = '\0';
    sim->grids = 0;
    sim->failed = sim->starved = false;
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++)
        if (sim->devices[i] != NULL)
            sim->devices[i]->change = 0;
    afj_scheduler_milestone(sim);
    any_thread = several_threads = false;
}

static struct afj_sim *enter_room(void)
{
    pthread_once(&once, make_condition);
    lock_room();
    struct afj_sim *sim = &the_simulator;
    if (!sim->configured) {
        struct afj_sim_policy policy =
            afj_sim_policy_of_seed(afj_env_number(AFJ_ENV_SIM_SEED, 0, UINT64_MAX, 1));
        take_policy(sim, &policy);
        begin_anew(sim);
    }
    return sim;
}

struct afj_sim *afj_sim_enter(void)
{
    struct afj_sim *sim = enter_room();
    pthread_t self = pthread_self();
    if (!any_thread)
        first_thread = self;
    else if (!pthread_equal(first_thread, self))
        several_threads = true;
    any_thread = true;
    return sim;
}

void afj_sim_leave(struct afj_sim *sim)
{
    (void)sim;
    pthread_mutex_unlock(&room);
}

void afj_sim_let_others_in(struct afj_sim *sim)
{
    (void)sim;
    if (atomic_load_explicit(&queue, memory_order_relaxed) == 0)
        return;
    pthread_mutex_unlock(&room);
    lock_room();
}

bool afj_sim_await_others(struct afj_sim *sim)
{
    if (!several_threads)
        return false;
    uint64_t before = sim->appends;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += AWAIT_OTHERS_NS;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    while (sim->appends == before)
        if (pthread_cond_timedwait(&work_came, &room, &until) != 0)
            break;
    return sim->appends != before;
}

void afj_sim_appended(struct afj_sim *sim)
{
    sim->appends++;
    pthread_cond_broadcast(&work_came);
}

void afj_sim_trace(struct afj_sim *sim, uint64_t what, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t all = ((what * odd + a) * odd + b) * odd + c;
    sim->trace = afj_random_mix(sim->trace * odd + all);
}

void afj_sim_violation(struct afj_sim *sim, uint64_t *kind, const char *format, ...)
{
    ++*kind;
    if (sim->counters.violations++ > 0)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(sim->first_violation, sizeof sim->first_violation, format, values);
    va_end(values);
    afj_log(AFJ_LOG_WARN, "sim: %s (seed %llu)", sim->first_violation,
            (unsigned long long)sim->policy.seed);
}

struct afj_sim_policy afj_sim_policy_of_seed(uint64_t seed)
{
    return (struct afj_sim_policy){.seed = seed, .hold_device = -1};
}

void afj_sim_configure(const struct afj_sim_policy *policy)
{
    struct afj_sim *sim = enter_room();
    take_policy(sim, policy);
    begin_anew(sim);
    afj_sim_leave(sim);
}

void afj_sim_reset(void)
{
    struct afj_sim *sim = enter_room();
    begin_anew(sim);
    afj_sim_leave(sim);
}

uint64_t afj_sim_trace_digest(void)
{
    struct afj_sim *sim = enter_room();
    uint64_t trace = sim->trace;
    afj_sim_leave(sim);
    return trace;
}

struct afj_sim_counters afj_sim_counters(void)
{
    struct afj_sim *sim = enter_room();
    struct afj_sim_counters counters = sim->counters;
    afj_sim_leave(sim);
    return counters;
}

void afj_sim_first_violation(char *sentence, size_t size)
{
    struct afj_sim *sim = enter_room();
    snprintf(sentence, size, "%s", sim->first_violation);
    afj_sim_leave(sim);
}

uint64_t afj_sim_clock_ns(void)
{
    struct afj_sim *sim = enter_room();
    uint64_t now = sim->clock_ns;
    afj_sim_leave(sim);
    return now;
}
