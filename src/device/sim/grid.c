/* grid.c: CTAs start in random order, each warp on a fibre, or each lane where an image has lanes;
 * kernels reach the simulator from here. */
#include "device/sim/grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/sim/meeting.h"
#include "device/sim/scheduler.h"
#include "device/sim/stream.h"

/* Fresh shared memory holds this in every byte: no number that a kernel would take for a zero. */
#define SHARED_POISON 0xA5
/* A warp that reads the clock so often without any other call is waiting for it. */
#define CLOCK_READS_A_PAUSE 64u

enum yield_reason { YIELD_POINT, YIELD_PAUSE, YIELD_BARRIER };

struct afj_sim_warp {
    struct afj_sim_actor actor; /* first */
    struct afj_sim_cta *cta;
    struct afj_fibre *fibre; /* NULL once it has ended */
    uint32_t index;
    enum yield_reason reason; /* why it last yielded */
    uint32_t clock_reads;     /* in a row */
    struct afj_segment *segment;
};

struct afj_sim_cta {
    struct afj_sim_cta *next, *previous; /* in afj_sim_grid.ctas */
    struct afj_sim_grid *grid;
    uint32_t index;
    uint32_t alive;   /* warps that have not ended */
    uint32_t arrived; /* of those, at the barrier */
    uint32_t vote, result;
    struct afj_segment *stored; /* join of what its warps stored before its last barrier */
    void *shared;
    struct afj_meeting *meetings; /* one a warp, where warps have lanes; else NULL */
    struct afj_sim_warp warps[];
};

struct afj_sim_grid {
    struct afj_sim_actor actor; /* first */
    struct afj_sim *sim;
    struct afj_sim_device *device;
    struct afj_sim_stream *stream;
    const struct afj_sim_node *node; /* owned by the stream */
    uint32_t fibres;                 /* a CTA: its warps, or all lanes of them */
    uint32_t *unstarted;             /* indices of CTAs, in no order */
    uint32_t unstarted_count;
    uint32_t may_start;         /* CTAs that the policy lets start, of those unstarted */
    struct afj_sim_cta *ctas;   /* under way */
    struct afj_segment *stored; /* join of what its ended warps stored */
    struct afj_sim_grid *held;  /* next in afj_sim.held */
};

/* The warp on whose stack the thread with the simulator's lock is; NULL on the thread's own. */
static struct afj_sim_warp *running;

static uint32_t lanes_of(const struct afj_sim_warp *lane)
{
    return lane->cta->grid->node->kernel->lanes;
}

static uint32_t warp_of(const struct afj_sim_warp *lane) { return lane->index / lanes_of(lane); }

static uint32_t lane_of(const struct afj_sim_warp *lane) { return lane->index % lanes_of(lane); }

static struct afj_meeting *meeting_of(const struct afj_sim_warp *lane)
{
    return &lane->cta->meetings[warp_of(lane)];
}

/* The first sentence also becomes the error of the call that runs the kernel. */
static void report_divergence(const struct afj_sim_warp *lane, const char *place,
                              const struct afj_clash *clash)
{
    const struct afj_sim_grid *grid = lane->cta->grid;
    struct afj_sim *sim = grid->sim;
    char sentence[sizeof sim->divergence];
    snprintf(sentence, sizeof sentence,
             "kernel %s of device %d, CTA %u, warp %u: lane %u comes to %s while lane %u is at %s",
             grid->node->kernel->name, (int)grid->device->base.ordinal, lane->cta->index,
             warp_of(lane), lane_of(lane), place, clash->lane, clash->place);
    if (sim->divergence[0] == '\0')
        memcpy(sim->divergence, sentence, sizeof sentence);
    afj_sim_violation(sim, &sim->counters.divergences, "%s", sentence);
}

/* A lane comes to a place of meeting.h with a value; those it was the last to keep waiting go on.
 * Whether it is one of them. */
static bool come_to(struct afj_sim_warp *lane, const char *place, uint32_t value)
{
    const struct afj_sim_grid *grid = lane->cta->grid;
    struct afj_meeting *meeting = meeting_of(lane);
    const uint32_t first = lane->index - lane_of(lane);
    struct afj_clash clash;
    const uint32_t going = afj_meeting_come(meeting, lane_of(lane), place, value, &clash);
    if (clash.place != NULL)
        report_divergence(lane, place, &clash);
    for (uint32_t i = 0; i < AFJ_SIM_MOST_LANES; i++) {
        struct afj_sim_actor *actor = &lane->cta->warps[first + i].actor;
        if ((going >> i & 1) != 0 && !actor->listed)
            afj_scheduler_add(grid->sim, grid->device, actor);
    }
    if (going != 0)
        afj_scheduler_wake(grid->sim, grid->device);
    return (going >> lane_of(lane) & 1) != 0;
}

static struct afj_sim *simulator(void) { return running->cta->grid->sim; }

static void yield(enum yield_reason reason)
{
    struct afj_sim_warp *warp = running;
    warp->reason = reason;
    afj_fibre_yield(warp->fibre);
}

static void maybe_yield(void)
{
    struct afj_sim *sim = simulator();
    running->clock_reads = 0;
    if (afj_random_below(&sim->random, 1000) < sim->policy.point_permille)
        yield(YIELD_POINT);
}

static uint32_t op_cta(void) { return running->cta->index; }

static uint32_t op_ctas(void) { return running->cta->grid->node->ctas; }

static uint32_t op_warp(void) { return running->index; }

static uint32_t op_warps(void) { return running->cta->grid->fibres; }

static void land(struct afj_sim *sim, struct afj_sim_device *device, struct afj_allocation *near,
                 size_t index, const uint32_t *words, uint32_t count)
{
    uint32_t *to = (uint32_t *)(void *)near->base + index;
    for (uint32_t i = 0; i < count; i++) {
        if (afj_allocation_flying(near, index + i))
            afj_sim_violation(sim, &sim->counters.races,
                              "kernel %s of device %d stores word %zu of its allocation %u while "
                              "another device's word is on its way to it",
                              running->cta->grid->node->kernel->name, (int)device->base.ordinal,
                              index + i, near->serial);
        to[i] = words[i];
    }
    if (near->device == AFJ_SIM_HOST)
        afj_scheduler_wake_all(sim);
    else
        afj_scheduler_wake(sim, device);
}

static void send(struct afj_sim *sim, struct afj_sim_device *device, struct afj_allocation *far,
                 size_t index, const uint32_t *words, uint32_t count)
{
    struct afj_flying_word word = {.to = far, .from = (uint32_t)device->base.ordinal};
    for (uint32_t i = 0; i < count; i++) {
        word.index = index + i;
        word.value = words[i];
        if (afj_allocation_flying(far, word.index))
            afj_sim_violation(sim, &sim->counters.double_stores,
                              "kernel %s of device %d stores word %zu of allocation %u of device "
                              "%d while another word is on its way to it",
                              running->cta->grid->node->kernel->name, (int)device->base.ordinal,
                              word.index, far->serial, (int)far->device);
        afj_link_store(&sim->links, &running->segment, &word);
    }
    sim->counters.stored += count;
    sim->confirmed = false;
}

static void op_store(uint32_t *address, const uint32_t *words, uint32_t count)
{
    struct afj_sim *sim = simulator();
    const struct afj_sim_grid *grid = running->cta->grid;
    struct afj_sim_device *device = grid->device;
    struct afj_allocation *to = afj_memory_find(&sim->memory, address);
    size_t offset = to == NULL ? 0 : (size_t)((uintptr_t)address - (uintptr_t)to->base);
    if (count == 0)
        return;
    if (to == NULL || offset % 4 != 0 || count > (to->bytes - offset) / 4)
        afj_sim_violation(sim, &sim->counters.stray_stores,
                          "kernel %s of device %d, CTA %u, warp %u stores %u words %s",
                          grid->node->kernel->name, (int)device->base.ordinal, running->cta->index,
                          warp_of(running), count,
                          to == NULL        ? "to memory that nobody has allocated"
                          : offset % 4 != 0 ? "to an address that is no multiple of 4"
                                            : "over the end of an allocation");
    else if (to->device == AFJ_SIM_HOST || to->device == device->base.ordinal)
        land(sim, device, to, offset / 4, words, count);
    else if (!device->peers[to->device])
        afj_sim_violation(sim, &sim->counters.unreachable,
                          "kernel %s of device %d stores to device %d without peer access",
                          grid->node->kernel->name, (int)device->base.ordinal, (int)to->device);
    else
        send(sim, device, to, offset / 4, words, count);
    maybe_yield();
}

static void op_fence(void)
{
    struct afj_sim_cta *cta = running->cta;
    afj_segment_fence(&cta->grid->sim->links, &running->segment, cta->stored,
                      cta->grid->stream->stored);
    maybe_yield();
}

static void op_pause(void)
{
    running->clock_reads = 0;
    yield(YIELD_PAUSE);
}

/* All warps of the CTA that have not ended are at the barrier. What they stored is from now on
 * before what any of them stores behind a fence. */
static void open_barrier(struct afj_sim_cta *cta)
{
    struct afj_sim_grid *grid = cta->grid;
    struct afj_segment *stored = NULL;
    cta->result = cta->vote;
    cta->vote = cta->arrived = 0;
    for (uint32_t i = 0; i < grid->fibres; i++) {
        struct afj_sim_warp *warp = &cta->warps[i];
        if (warp->fibre == NULL)
            continue;
        if (cta->meetings != NULL)
            afj_meeting_leave(meeting_of(warp), lane_of(warp));
        afj_segment_publish(&grid->sim->links, &warp->segment, &stored);
        if (!warp->actor.listed)
            afj_scheduler_add(grid->sim, grid->device, &warp->actor);
    }
    afj_segment_merge(&grid->sim->links, &cta->stored, &stored);
    afj_scheduler_wake(grid->sim, grid->device);
}

static uint32_t op_barrier(uint32_t vote)
{
    struct afj_sim_cta *cta = running->cta;
    running->clock_reads = 0;
    if (cta->meetings != NULL)
        (void)come_to(running, afj_at_barrier, 0);
    cta->vote |= vote != 0 ? 1u : 0u;
    if (++cta->arrived < cta->alive) {
        afj_scheduler_remove(cta->grid->sim, cta->grid->device, &running->actor);
        yield(YIELD_BARRIER);
        return cta->result;
    }
    open_barrier(cta);
    /* The next barrier cannot open, and change the result, before this warp is there. */
    maybe_yield();
    return cta->result;
}

static void op_gather(const char *name, uint32_t value, uint32_t *values)
{
    const struct afj_meeting *meeting = meeting_of(running);
    running->clock_reads = 0;
    if (!come_to(running, name, value)) {
        afj_scheduler_remove(simulator(), running->cta->grid->device, &running->actor);
        yield(YIELD_BARRIER);
    }
    /* The warp's next meeting cannot change the results before this lane has come to it. */
    memcpy(values, meeting->results, sizeof meeting->results);
    maybe_yield();
}

static void op_point(void) { maybe_yield(); }

static void *op_shared(void) { return running->cta->shared; }

static uint64_t op_clock_ns(void)
{
    struct afj_sim *sim = simulator();
    sim->clock_was_read = true;
    if (++running->clock_reads >= CLOCK_READS_A_PAUSE)
        op_pause();
    return ++sim->clock_ns;
}

const struct afj_sim_ops afj_grid_ops = {
    .cta = op_cta,
    .ctas = op_ctas,
    .warp = op_warp,
    .warps = op_warps,
    .store = op_store,
    .fence = op_fence,
    .pause = op_pause,
    .point = op_point,
    .barrier = op_barrier,
    .gather = op_gather,
    .shared = op_shared,
    .clock_ns = op_clock_ns,
};

static void run_entry(void *argument)
{
    const struct afj_sim_warp *warp = argument;
    const struct afj_sim_node *node = warp->cta->grid->node;
    node->kernel->entry(node->arguments);
}

static void free_cta(struct afj_sim_cta *cta)
{
    struct afj_sim_grid *grid = cta->grid;
    for (uint32_t i = 0; i < grid->fibres; i++) {
        struct afj_sim_warp *warp = &cta->warps[i];
        afj_scheduler_remove(grid->sim, grid->device, &warp->actor);
        afj_segment_end(&grid->sim->links, &warp->segment, &grid->stored);
        if (warp->fibre != NULL)
            afj_fibre_release(&grid->sim->fibres, warp->fibre);
    }
    afj_segment_end(&grid->sim->links, &cta->stored, &grid->stored);
    if (cta->previous != NULL)
        cta->previous->next = cta->next;
    else if (grid->ctas == cta)
        grid->ctas = cta->next;
    if (cta->next != NULL)
        cta->next->previous = cta->previous;
    free(cta->shared);
    free(cta->meetings);
    free(cta);
}

/* Make a CTA with all its warps. NULL: no memory. */
static struct afj_sim_cta *make_cta(struct afj_sim_grid *grid, uint32_t index)
{
    const struct afj_sim_node *node = grid->node;
    struct afj_sim_cta *cta = calloc(1, sizeof *cta + grid->fibres * sizeof cta->warps[0]);
    if (cta == NULL)
        return NULL;
    cta->grid = grid;
    cta->index = index;
    cta->alive = grid->fibres;
    /* Of exactly the size asked for, so that an address sanitizer sees the end. */
    bool whole =
        posix_memalign(&cta->shared, 16, node->shared_bytes == 0 ? 1 : node->shared_bytes) == 0;
    if (whole)
        memset(cta->shared, SHARED_POISON, node->shared_bytes);
    if (whole && node->kernel->lanes > 1) {
        cta->meetings = calloc(node->warps, sizeof *cta->meetings);
        whole = cta->meetings != NULL;
    }
    for (uint32_t i = 0; whole && i < grid->fibres; i++) {
        struct afj_sim_warp *warp = &cta->warps[i];
        warp->cta = cta;
        warp->index = i;
        warp->fibre = afj_fibre_start(&grid->sim->fibres, run_entry, warp);
        whole = warp->fibre != NULL;
    }
    if (!whole) {
        free_cta(cta);
        return NULL;
    }
    return cta;
}

static void start_cta(struct afj_sim_grid *grid)
{
    struct afj_sim *sim = grid->sim;
    uint32_t chosen = afj_random_below(&sim->random, grid->unstarted_count);
    struct afj_sim_cta *cta = make_cta(grid, grid->unstarted[chosen]);
    if (cta == NULL) {
        /* It may fit once another CTA has ended. */
        sim->starved = true;
        afj_scheduler_paused(sim, grid->device, &grid->actor);
        return;
    }
    grid->unstarted[chosen] = grid->unstarted[--grid->unstarted_count];
    grid->may_start--;
    cta->next = grid->ctas;
    if (cta->next != NULL)
        cta->next->previous = cta;
    grid->ctas = cta;
    for (uint32_t i = 0; i < grid->fibres; i++)
        afj_scheduler_add(sim, grid->device, &cta->warps[i].actor);
    if (grid->may_start == 0 || grid->unstarted_count == 0)
        afj_scheduler_remove(sim, grid->device, &grid->actor);
    sim->starved = false;
    afj_scheduler_milestone(sim);
}

static bool is_called(const struct afj_sim_node *node, const char *name)
{
    return name != NULL && strcmp(node->kernel->name, name) == 0;
}

bool afj_grid_begin(struct afj_sim *sim, struct afj_sim_stream *stream, struct afj_sim_node *node)
{
    struct afj_sim_grid *grid = calloc(1, sizeof *grid);
    uint32_t *unstarted = malloc(node->ctas * sizeof *unstarted);
    if (grid == NULL || unstarted == NULL) {
        free(unstarted);
        free(grid);
        return false;
    }
    for (uint32_t i = 0; i < node->ctas; i++)
        unstarted[i] = i;
    *grid = (struct afj_sim_grid){.actor = {.starts_ctas = true},
                                  .sim = sim,
                                  .device = stream->device,
                                  .stream = stream,
                                  .node = node,
                                  .fibres = node->warps * node->kernel->lanes,
                                  .unstarted = unstarted,
                                  .unstarted_count = node->ctas,
                                  .may_start = node->ctas};
    stream->grid = grid;
    sim->grids++;
    if (sim->policy.hold_device == stream->device->base.ordinal)
        grid->may_start = 0;
    else if (is_called(node, sim->policy.hold_entry))
        grid->may_start = 1;
    if (grid->may_start < node->ctas) {
        grid->held = sim->held;
        sim->held = grid;
    }
    if (grid->may_start > 0)
        afj_scheduler_add(sim, grid->device, &grid->actor);
    return true;
}

/* Take the grid off the list of those held back, if it is there. */
static void unhold(struct afj_sim *sim, struct afj_sim_grid *grid)
{
    for (struct afj_sim_grid **at = &sim->held; *at != NULL; at = &(*at)->held)
        if (*at == grid) {
            *at = grid->held;
            return;
        }
}

void afj_grid_release_held(struct afj_sim *sim)
{
    uint32_t count = 0;
    for (struct afj_sim_grid *grid = sim->held; grid != NULL; grid = grid->held)
        count++;
    uint32_t chosen = afj_random_below(&sim->random, count);
    struct afj_sim_grid *grid = sim->held;
    while (chosen-- > 0)
        grid = grid->held;
    unhold(sim, grid);
    grid->may_start = grid->unstarted_count;
    if (!grid->actor.listed)
        afj_scheduler_add(sim, grid->device, &grid->actor);
}

/* Free what a grid holds, but for `stored`. */
static void free_grid(struct afj_sim *sim, struct afj_sim_grid *grid)
{
    afj_scheduler_remove(sim, grid->device, &grid->actor);
    unhold(sim, grid);
    while (grid->ctas != NULL)
        free_cta(grid->ctas);
    free(grid->unstarted);
    grid->stream->grid = NULL;
}

void afj_grid_abandon(struct afj_sim *sim, struct afj_sim_grid *grid)
{
    free_grid(sim, grid);
    afj_segment_forget(&sim->links, &grid->stored);
    free(grid);
}

static void end_warp(struct afj_sim *sim, struct afj_sim_warp *warp)
{
    struct afj_sim_cta *cta = warp->cta;
    struct afj_sim_grid *grid = cta->grid;
    afj_scheduler_remove(sim, grid->device, &warp->actor);
    afj_segment_end(&sim->links, &warp->segment, &grid->stored);
    afj_fibre_release(&sim->fibres, warp->fibre);
    warp->fibre = NULL;
    afj_scheduler_wake(sim, grid->device);
    afj_scheduler_milestone(sim);
    if (cta->meetings != NULL)
        (void)come_to(warp, afj_at_end, 0);
    /* As on hardware, a barrier does not wait for warps that have ended. */
    if (--cta->alive > 0) {
        if (cta->arrived == cta->alive)
            open_barrier(cta);
        return;
    }
    free_cta(cta);
    if (grid->ctas != NULL || grid->unstarted_count > 0)
        return;
    struct afj_sim_stream *stream = grid->stream;
    struct afj_segment *stored = grid->stored;
    free_grid(sim, grid);
    free(grid);
    afj_stream_grid_ended(sim, stream, &stored);
}

void afj_grid_run(struct afj_sim *sim, struct afj_sim_device *device, struct afj_sim_actor *actor)
{
    if (actor->starts_ctas) {
        start_cta((struct afj_sim_grid *)actor);
        return;
    }
    struct afj_sim_warp *warp = (struct afj_sim_warp *)actor;
    running = warp;
    afj_fibre_resume(warp->fibre);
    running = NULL;
    if (afj_fibre_ended(warp->fibre))
        end_warp(sim, warp);
    else if (warp->reason == YIELD_PAUSE)
        afj_scheduler_paused(sim, device, actor);
}

struct afj_sim_grid_state afj_grid_state(const struct afj_sim_grid *grid)
{
    struct afj_sim_grid_state state = {.entry = grid->node->kernel->name,
                                       .device = grid->device->base.ordinal};
    for (const struct afj_sim_cta *cta = grid->ctas; cta != NULL; cta = cta->next) {
        state.warps += cta->alive;
        state.at_barrier += cta->arrived;
    }
    return state;
}
