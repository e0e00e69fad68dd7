/* report.c: how a cell is printed: a line of a table, or JSON. */
#include <stdio.h>
#include <string.h>

#include "bench/cell.h"
#include "cli/words.h"

static json_t *describe_percentiles(const struct afj_percentiles *us)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:I}", "p10", us->p10, "p50", us->p50, "p90",
                     us->p90, "p95", us->p95, "p99", us->p99, "n", (json_int_t)us->samples);
}

/* Only what was measured; NULL if nothing was. */
static json_t *describe_times(const struct afj_cell *cell)
{
    if (cell->graph_us.samples == 0)
        return NULL;
    json_t *us = json_object();
    json_object_set_new(us, "graph", describe_percentiles(&cell->graph_us));
    json_object_set_new(us, "single", describe_percentiles(&cell->single_us));
    if (cell->eager_us.samples > 0)
        json_object_set_new(us, "eager", describe_percentiles(&cell->eager_us));
    return us;
}

static struct afj_layout_name layout_of(const afdep_config *config)
{
    const struct afj_layout layout = {config->attention_ranks, config->ffn_ranks,
                                      config->both_ranks};
    return afj_words_layout_name(&layout);
}

static json_t *describe_config(const struct afj_cell *cell)
{
    const afdep_config *config = &cell->config;
    json_t *object = json_pack(
        "{s:s, s:i, s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s?, s:I, s:i, s:s, s:I, "
        "s:I, s:s, s:s, s:I, s:I, s:b, s:b, s:b, s:b, s:n}",
        "layout", layout_of(config).text, "domains", 1, "hidden", (json_int_t)config->hidden,
        "dtype", afj_words_dtype_name(config->dtype), "tokens", (json_int_t)cell->tokens, "experts",
        (json_int_t)config->experts, "top_k", (json_int_t)config->top_k, "capacity",
        (json_int_t)config->capacity, "device", afj_words_device_name(config->device), "gpu",
        cell->gpu[0] != '\0' ? cell->gpu : NULL, "ranks_per_gpu", (json_int_t)cell->ranks_per_gpu,
        "processes", 1, "arm", "afdep", "lanes", (json_int_t)config->lanes, "ctas",
        (json_int_t)cell->ctas, "routing", afj_routing_name(cell->routing), "receive",
        afj_words_receive_name(config->receive), "ids",
        (json_int_t)(config->id_bits != 0 ? config->id_bits : 32), "alignment",
        (json_int_t)(config->alignment != 0 ? config->alignment : 1), "counts_first",
        config->counts_first != 0, "host_counts", config->host_counts != 0, "reply_weights",
        config->reply_weights != 0, "collect_view", config->collect_view != 0, "glue");
    if (config->payload_bytes != 0)
        json_object_set_new(object, "payload_bytes",
                            json_integer((json_int_t)config->payload_bytes));
    return object;
}

/* The variables that are set and change what runs, with their values. */
static json_t *describe_controls(void)
{
    json_t *controls = json_object();
    afdep_variable variable = {.struct_size = sizeof variable};
    for (uint32_t i = 0; afdep_variable_get(i, &variable) == AFDEP_OK; i++)
        if (variable.is_set && (strcmp(variable.name, "AFDEP_SHAPE") == 0 ||
                                strcmp(variable.name, "AFDEP_STRICT_FENCES") == 0 ||
                                strcmp(variable.name, "AFDEP_CHECK_ROUTES") == 0))
            json_object_set_new(controls, variable.name, json_string(variable.value));
    return controls;
}

json_t *afj_cell_describe(const struct afj_cell *cell)
{
    json_t *object = describe_config(cell);
    json_t *results =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:s}", "seed", (json_int_t)cell->seed,
                  "rows_sent", (json_int_t)cell->rows_sent, "rows_expected",
                  (json_int_t)cell->tally.expected, "rows_checked", (json_int_t)cell->tally.checked,
                  "wrong", (json_int_t)cell->tally.wrong, "worst_error", cell->tally.worst_error,
                  "round_trips", (json_int_t)cell->round_trips, "commit", afdep_commit());
    json_object_update_new(object, results);
    json_object_set_new(
        object, "create_ms",
        json_pack("{s:f, s:f}", "first", cell->create_ms, "again", cell->create_again_ms));
    json_object_set_new(object, "controls", describe_controls());
    if (cell->tally.wrong > 0)
        json_object_set_new(object, "first_wrong", json_string(cell->tally.first));
    json_t *us = describe_times(cell);
    if (us != NULL)
        json_object_set_new(object, "us", us);
    return object;
}

void afj_cell_print_head(void)
{
    printf("%-8s %6s %6s %6s %10s %10s %6s %10s %10s %16s\n", "layout", "hidden", "tokens", "route",
           "rows sent", "checked", "wrong", "graph us", "single us", "graph p10-p90");
}

void afj_cell_print(const struct afj_cell *cell)
{
    printf("%-8s %6u %6u %6s %10llu %10llu %6llu", layout_of(&cell->config).text,
           cell->config.hidden, cell->tokens, afj_routing_name(cell->routing),
           (unsigned long long)cell->rows_sent, (unsigned long long)cell->tally.checked,
           (unsigned long long)cell->tally.wrong);
    if (cell->graph_us.samples > 0)
        printf(" %10.2f %10.2f %7.2f-%-8.2f\n", cell->graph_us.p50, cell->single_us.p50,
               cell->graph_us.p10, cell->graph_us.p90);
    else
        printf(" %10s %10s %16s\n", "-", "-", "-");
    fflush(stdout);
}
