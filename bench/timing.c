/* timing.c: how long a round trip takes, in graphs and without, as percentiles. */
#include "bench/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/try.h"

enum {
    BATCH = 50,     /* launches behind one delay: well within a stream's queue */
    WARM_UP = 5,    /* launches of a batch that are not counted: ranks start one after another */
    LAUNCH_US = 15, /* host time to enqueue a rank's launch and events, generous */
    MOST_DELAY_US = 60000
};

/* Events around the launches of a batch, on each attention rank. */
struct clock {
    struct afj_harness *harness;
    uint32_t sources;
    afdep_event **events; /* [sources][BATCH + WARM_UP][2] */
};

static afdep_event **event_at(const struct clock *clock, uint32_t source, uint32_t launch, int end)
{
    return &clock->events[((size_t)source * (BATCH + WARM_UP) + launch) * 2 + (size_t)end];
}

static uint32_t rank_of(const struct clock *clock, uint32_t source)
{
    return afj_harness_attention(clock->harness, source);
}

static afdep_status keep_failure(struct afj_harness *harness, afdep_status status, const char *what)
{
    if (status != AFDEP_OK)
        snprintf(harness->failure, sizeof harness->failure, "%s: %s (%s)", what, afdep_last_error(),
                 afdep_status_name(status));
    return status;
}

static void finish_clock(struct clock *clock)
{
    const size_t count = (size_t)clock->sources * (BATCH + WARM_UP) * 2;
    for (size_t i = 0; i < count && clock->events != NULL; i++)
        afdep_event_destroy(clock->events[i]);
    free(clock->events);
    clock->events = NULL;
}

static afdep_status init_clock(struct clock *clock, struct afj_harness *harness)
{
    *clock = (struct clock){.harness = harness, .sources = harness->config.attention_ranks};
    clock->events = calloc((size_t)clock->sources * (BATCH + WARM_UP) * 2, sizeof(afdep_event *));
    if (clock->events == NULL) {
        snprintf(harness->failure, sizeof harness->failure, "no host memory for events");
        return AFDEP_ERROR_MEMORY;
    }
    for (uint32_t source = 0; source < clock->sources; source++) {
        afdep_device *device = afdep_group_device(harness->group, rank_of(clock, source));
        for (uint32_t launch = 0; launch < BATCH + WARM_UP; launch++)
            for (int end = 0; end < 2; end++) {
                afdep_status status = keep_failure(
                    harness, afdep_event_create(device, event_at(clock, source, launch, end)),
                    "create an event");
                if (status != AFDEP_OK) {
                    finish_clock(clock);
                    return status;
                }
            }
    }
    return AFDEP_OK;
}

static afdep_status mark(const struct clock *clock, uint32_t launch, int end)
{
    for (uint32_t source = 0; source < clock->sources; source++)
        TRY(keep_failure(clock->harness,
                         afdep_event_record(*event_at(clock, source, launch, end),
                                            clock->harness->streams[rank_of(clock, source)]),
                         "record an event"));
    return AFDEP_OK;
}

/* Hold the sources back while the launches queue up; the FFN ranks wait for them. The delays of
 * several streams may run one after another: the launches that see it are not counted. */
static afdep_status delay_sources(const struct clock *clock)
{
    struct afj_harness *harness = clock->harness;
    uint64_t us = 1000 + (uint64_t)harness->ranks * (BATCH + WARM_UP) * LAUNCH_US;
    if (us > MOST_DELAY_US)
        us = MOST_DELAY_US;
    for (uint32_t source = 0; source < clock->sources; source++) {
        const uint32_t rank = rank_of(clock, source);
        TRY(keep_failure(harness,
                         afdep_stream_delay(afdep_group_device(harness->group, rank),
                                            harness->streams[rank], (uint32_t)us),
                         "delay a stream"));
    }
    return AFDEP_OK;
}

/* Enqueue `launches` launches, wait, and put the longest time over ranks of each into `us`.
 * graphs NULL: the calls themselves, without a delay. */
static afdep_status run_batch(const struct clock *clock, afdep_graph **graphs, uint32_t launches,
                              double *us)
{
    struct afj_harness *harness = clock->harness;
    if (graphs != NULL)
        TRY(delay_sources(clock));
    for (uint32_t launch = 0; launch < launches; launch++) {
        TRY(mark(clock, launch, 0));
        if (graphs != NULL)
            TRY(afj_harness_launch(harness, graphs));
        for (uint32_t lane = 0; lane < harness->config.lanes && graphs == NULL; lane++)
            TRY(afj_harness_exchange(harness, lane, AFJ_EXPERT_ECHO));
        TRY(mark(clock, launch, 1));
    }
    TRY(afj_harness_synchronize(harness));
    for (uint32_t launch = 0; launch < launches; launch++) {
        us[launch] = 0;
        for (uint32_t source = 0; source < clock->sources; source++) {
            double elapsed = 0;
            TRY(keep_failure(harness,
                             afdep_event_elapsed(*event_at(clock, source, launch, 0),
                                                 *event_at(clock, source, launch, 1), &elapsed),
                             "read an event"));
            if (elapsed > us[launch])
                us[launch] = elapsed;
        }
    }
    return AFDEP_OK;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The nearest rank of sorted samples. */
static double percentile(const double *sorted, uint32_t count, uint32_t percent)
{
    const uint64_t at = ((uint64_t)percent * count + 99) / 100;
    return sorted[at == 0 ? 0 : at - 1];
}

static void summarise(double *samples, uint32_t count, struct afj_percentiles *us)
{
    qsort(samples, count, sizeof *samples, compare_doubles);
    *us = (struct afj_percentiles){.p10 = percentile(samples, count, 10),
                                   .p50 = percentile(samples, count, 50),
                                   .p90 = percentile(samples, count, 90),
                                   .p95 = percentile(samples, count, 95),
                                   .p99 = percentile(samples, count, 99),
                                   .samples = count};
}

static afdep_status time_batches(struct afj_harness *harness, afdep_graph **graphs,
                                 uint32_t round_trips, uint32_t repeats, double *samples)
{
    struct clock clock;
    double us[BATCH + WARM_UP];
    TRY(init_clock(&clock, harness));
    afdep_status status = run_batch(&clock, graphs, WARM_UP, us);
    for (uint32_t taken = 0; taken < repeats && status == AFDEP_OK;) {
        const uint32_t count = repeats - taken < BATCH ? repeats - taken : BATCH;
        status = run_batch(&clock, graphs, WARM_UP + count, us);
        for (uint32_t i = 0; i < count; i++)
            samples[taken + i] = us[WARM_UP + i] / round_trips;
        taken += count;
    }
    finish_clock(&clock);
    return status;
}

static afdep_status time_all(struct afj_harness *harness, afdep_graph **graphs,
                             uint32_t round_trips, uint32_t repeats, struct afj_percentiles *us)
{
    double *samples = calloc(repeats, sizeof *samples);
    if (samples == NULL) {
        snprintf(harness->failure, sizeof harness->failure, "no host memory for %u samples",
                 repeats);
        return AFDEP_ERROR_MEMORY;
    }
    afdep_status status = time_batches(harness, graphs, round_trips, repeats, samples);
    if (status == AFDEP_OK)
        summarise(samples, repeats, us);
    free(samples);
    return status;
}

afdep_status afj_timing_graph(struct afj_harness *harness, uint32_t round_trips, uint32_t repeats,
                              struct afj_percentiles *us)
{
    afdep_graph *graphs[AFDEP_MAX_RANKS];
    afdep_status status = afj_harness_capture(harness, round_trips, AFJ_EXPERT_ECHO, graphs);
    if (status == AFDEP_OK)
        status = time_all(harness, graphs, round_trips, repeats, us);
    if (status != AFDEP_OK)
        for (uint32_t rank = 0; rank < harness->ranks; rank++)
            /* A graph may still run after a failed launch of another rank. */
            (void)afdep_stream_synchronize(afdep_group_device(harness->group, rank),
                                           harness->streams[rank]);
    afj_harness_drop_graphs(harness, graphs);
    return status;
}

afdep_status afj_timing_eager(struct afj_harness *harness, uint32_t repeats,
                              struct afj_percentiles *us)
{
    return time_all(harness, NULL, 1, repeats, us);
}
