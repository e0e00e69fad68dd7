/* scheduler.c: a seeded choice a step, and care that no run is endless.
 *
 * Warps that poll are chosen until they have paused twice with nothing changed on their device;
 * then they sleep until something does. When all sleep and no word flies, the run is stuck, unless
 * a warp changed memory by a plain store that the simulator does not see: one more round for all
 * finds that out (`confirmed`). A run that is really stuck can be helped, in this order, by CTAs
 * that the policy holds back, by another thread of the host, and by time: the clock jumps, 1 s at
 * first and a quarter more each time, until deadlines in the kernels expire. A warp that looks at
 * the clock only every so many polls gets that many rounds (`blind_rounds`) before the clock jumps
 * again. When 2,000 s did not help, the run fails.
 * A milestone (a CTA begins, a warp or a node ends) starts these counts afresh; so many steps
 * without one that all warps must have gone round in circles count as being stuck. */
#include "device/sim/scheduler.h"

#include <stdlib.h>

#include "base/status.h"
#include "device/sim/grid.h"
#include "device/sim/stream.h"

#define STEP_NS 10u
#define FIRST_JUMP_NS 1000000000u
#define LONGEST_JUMP_NS 64000000000u
#define GIVE_UP_NS 2000000000000u
#define MOST_BLIND_ROUNDS 1024u
#define PATIENCE_STEPS 1000000u
#define PATIENCE_STEPS_AN_ACTOR 65536u
#define STEPS_BETWEEN_GUESTS 256u

enum trace_kind { TRACE_RUN = 1, TRACE_ARRIVE, TRACE_JUMP, TRACE_RELEASE };

static void swap(struct afj_sim_device *device, uint32_t a, uint32_t b)
{
    struct afj_sim_actor *first = device->actors[a], *second = device->actors[b];
    device->actors[a] = second;
    device->actors[b] = first;
    second->place = a;
    first->place = b;
}

void afj_scheduler_add(struct afj_sim *sim, struct afj_sim_device *device,
                       struct afj_sim_actor *actor)
{
    if (device->actor_count == device->actor_capacity) {
        uint32_t capacity = device->actor_capacity == 0 ? 64 : 2 * device->actor_capacity;
        struct afj_sim_actor **actors = realloc(device->actors, capacity * sizeof(*actors));
        if (actors == NULL) {
            sim->failed = true;
            return;
        }
        device->actors = actors;
        device->actor_capacity = capacity;
    }
    actor->listed = true;
    actor->pauses = 0;
    actor->place = device->actor_count;
    device->actors[device->actor_count++] = actor;
    swap(device, actor->place, device->awake++);
    sim->awake++;
}

void afj_scheduler_remove(struct afj_sim *sim, struct afj_sim_device *device,
                          struct afj_sim_actor *actor)
{
    if (!actor->listed)
        return;
    actor->listed = false;
    if (actor->place < device->awake) {
        swap(device, actor->place, --device->awake);
        sim->awake--;
    }
    swap(device, actor->place, --device->actor_count);
}

static void wake(struct afj_sim *sim, struct afj_sim_device *device)
{
    device->change++;
    sim->awake += device->actor_count - device->awake;
    device->awake = device->actor_count;
}

void afj_scheduler_wake(struct afj_sim *sim, struct afj_sim_device *device)
{
    sim->confirmed = false;
    wake(sim, device);
}

static void wake_everyone(struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++)
        if (sim->devices[i] != NULL)
            wake(sim, sim->devices[i]);
}

void afj_scheduler_wake_all(struct afj_sim *sim)
{
    sim->confirmed = false;
    wake_everyone(sim);
}

void afj_scheduler_paused(struct afj_sim *sim, struct afj_sim_device *device,
                          struct afj_sim_actor *actor)
{
    if (actor->change != device->change) {
        actor->change = device->change;
        actor->pauses = 0;
    }
    /* The first pause may follow a look from before the change; the second does not. */
    if (++actor->pauses >= 2 && actor->place < device->awake) {
        swap(device, actor->place, --device->awake);
        sim->awake--;
    }
}

void afj_scheduler_milestone(struct afj_sim *sim)
{
    sim->confirmed = sim->clock_was_read = false;
    sim->blind_rounds = 0;
    sim->jump_ns = FIRST_JUMP_NS;
    sim->waited_ns = 0;
    sim->milestone_step = sim->counters.steps;
}

static void run_one(struct afj_sim *sim)
{
    uint32_t chosen = afj_random_below(&sim->random, sim->awake);
    uint32_t ordinal = 0;
    for (;; ordinal++) {
        struct afj_sim_device *device = sim->devices[ordinal];
        if (device == NULL)
            continue;
        if (chosen < device->awake)
            break;
        chosen -= device->awake;
    }
    sim->counters.switches++;
    afj_sim_trace(sim, TRACE_RUN, ordinal, chosen, 0);
    afj_grid_run(sim, sim->devices[ordinal], sim->devices[ordinal]->actors[chosen]);
}

static void write_word(struct afj_sim *sim, const struct afj_flying_word *word)
{
    struct afj_allocation *to = word->to;
    uint32_t ordinal = (uint32_t)to->device;
    afj_sim_trace(sim, TRACE_ARRIVE, ((uint64_t)word->from << 32) | ordinal,
                  ((uint64_t)to->serial << 40) + word->index, word->value);
    if (to->base == NULL) {
        sim->counters.dropped++;
    } else {
        uint32_t *address = (uint32_t *)(void *)to->base + word->index;
        if (sim->policy.arrival != NULL) {
            struct afj_sim_arrival arrival = {word->from, ordinal, address, *address, word->value};
            sim->policy.arrival(&arrival, sim->policy.user);
        }
        *address = word->value;
        sim->counters.delivered++;
        if (sim->devices[ordinal] != NULL)
            afj_scheduler_wake(sim, sim->devices[ordinal]);
    }
    afj_allocation_arrive(to, word->index);
}

static void deliver_some(struct afj_sim *sim)
{
    uint32_t link = afj_link_choose(&sim->links, &sim->random);
    uint32_t words = 1 + afj_random_below(&sim->random, sim->policy.deliver_most);
    for (; words > 0 && afj_link_count(&sim->links, link) > 0; words--) {
        struct afj_flying_word word = afj_link_take(&sim->links, link, &sim->random);
        write_word(sim, &word);
    }
}

static afdep_status give_up(struct afj_sim *sim)
{
    struct afj_sim_grid *grid = afj_stream_any_grid(sim);
    afj_scheduler_milestone(sim);
    if (grid == NULL)
        return afj_fail(AFDEP_ERROR_INTERNAL, "sim: a stream is not empty, and nothing can run");
    struct afj_sim_grid_state state = afj_grid_state(grid);
    return afj_fail(AFDEP_ERROR_INTERNAL,
                    "sim: kernel %s of device %d does not end: %u warps still run, %u of them wait "
                    "at a barrier and %llu words fly, after %u simulated seconds in which nothing "
                    "ended (seed %llu)",
                    state.entry, (int)state.device, state.warps, state.at_barrier,
                    (unsigned long long)sim->links.flying, (unsigned)(GIVE_UP_NS / FIRST_JUMP_NS),
                    (unsigned long long)sim->policy.seed);
}

static void jump(struct afj_sim *sim, bool anyone_polls)
{
    uint64_t ahead = sim->jump_ns, soonest = afj_stream_next_time(sim);
    if (soonest != UINT64_MAX && (!anyone_polls || soonest - sim->clock_ns < ahead)) {
        ahead = soonest - sim->clock_ns;
    } else {
        sim->waited_ns += ahead;
        sim->jump_ns += sim->jump_ns / 4;
        if (sim->jump_ns > LONGEST_JUMP_NS)
            sim->jump_ns = LONGEST_JUMP_NS;
    }
    sim->clock_ns += ahead;
    sim->counters.jumps++;
    sim->clock_was_read = false;
    afj_sim_trace(sim, TRACE_JUMP, ahead, 0, 0);
    wake_everyone(sim);
}

static bool anyone_listed(const struct afj_sim *sim)
{
    for (uint32_t i = 0; i < AFJ_SIM_DEVICES; i++)
        if (sim->devices[i] != NULL && sim->devices[i]->actor_count > 0)
            return true;
    return false;
}

/* Nobody is awake and no word flies. */
static afdep_status unstick(struct afj_sim *sim)
{
    bool anyone_polls = anyone_listed(sim);
    if (anyone_polls && !sim->confirmed) {
        sim->confirmed = true;
        wake_everyone(sim);
        return AFDEP_OK;
    }
    if (sim->held != NULL) {
        afj_sim_trace(sim, TRACE_RELEASE, 0, 0, 0);
        afj_grid_release_held(sim);
        return AFDEP_OK;
    }
    if (afj_sim_await_others(sim)) {
        afj_stream_begin_all(sim);
        return AFDEP_OK;
    }
    if (sim->starved)
        return afj_fail(AFDEP_ERROR_MEMORY,
                        "sim: no memory for the stacks of all warps that must run at once");
    if (anyone_polls && !sim->clock_was_read && sim->blind_rounds < MOST_BLIND_ROUNDS) {
        sim->blind_rounds++;
        wake_everyone(sim);
        return AFDEP_OK;
    }
    if (sim->waited_ns >= GIVE_UP_NS || (!anyone_polls && afj_stream_next_time(sim) == UINT64_MAX))
        return give_up(sim);
    jump(sim, anyone_polls);
    return AFDEP_OK;
}

/* Whether everybody is busy and yet nothing has ended for so long that nothing will. */
static afdep_status check_patience(struct afj_sim *sim)
{
    uint64_t patience = PATIENCE_STEPS + (uint64_t)PATIENCE_STEPS_AN_ACTOR * sim->awake +
                        16 * (uint64_t)sim->links.flying;
    if (sim->counters.steps - sim->milestone_step < patience)
        return AFDEP_OK;
    if (sim->waited_ns >= GIVE_UP_NS)
        return give_up(sim);
    sim->milestone_step = sim->counters.steps - patience + patience / 16;
    jump(sim, true);
    return AFDEP_OK;
}

static afdep_status step(struct afj_sim *sim)
{
    sim->counters.steps++;
    sim->clock_ns += STEP_NS;
    if (sim->waiting != NULL && afj_stream_poll_waiting(sim))
        return AFDEP_OK;
    bool words = afj_link_ready(&sim->links);
    if (sim->awake == 0 && !words)
        return unstick(sim);
    uint32_t all = sim->policy.run_weight + sim->policy.deliver_weight;
    bool deliver = sim->awake == 0 ||
                   (words && afj_random_below(&sim->random, all) < sim->policy.deliver_weight);
    if (deliver)
        deliver_some(sim);
    else
        run_one(sim);
    return check_patience(sim);
}

static afdep_status run_until_idle(struct afj_sim *sim, struct afj_sim_device *device,
                                   struct afj_sim_stream *stream)
{
    afj_stream_begin_all(sim);
    for (uint32_t steps = 0; !afj_stream_is_idle(sim, device, stream); steps++) {
        AFJ_TRY(step(sim));
        if (sim->failed || sim->links.failed) {
            sim->failed = sim->links.failed = false;
            return afj_fail(AFDEP_ERROR_MEMORY, "sim: the host has no memory left for the run");
        }
        if (steps % STEPS_BETWEEN_GUESTS == 0) {
            uint64_t before = sim->appends;
            afj_sim_let_others_in(sim);
            if (sim->appends != before)
                afj_stream_begin_all(sim);
        }
    }
    return AFDEP_OK;
}

afdep_status afj_scheduler_run(struct afj_sim *sim, struct afj_sim_device *device,
                               struct afj_sim_stream *stream)
{
    afdep_status status = run_until_idle(sim, device, stream);
    if (sim->divergence[0] == '\0')
        return status;
    /* The lanes went on, so that nothing is left half-way; on a GPU they may wait for ever. */
    status = afj_fail(AFDEP_ERROR_INTERNAL, "sim: %s (seed %llu)", sim->divergence,
                      (unsigned long long)sim->policy.seed);
    sim->divergence[0] = '\0';
    return status;
}
