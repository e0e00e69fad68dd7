/* sweep.c: the cells that the lists on the command line of `afdep-bench exchange` span. */
#include "bench/sweep.h"

#include <popt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options that take a word; the first ones span the grid, the last one fastest. */
enum option {
    OPTION_LAYOUT = 1,
    OPTION_HIDDEN,
    OPTION_EXPERTS,
    OPTION_TOP_K,
    OPTION_CAPACITY,
    OPTION_LANES,
    OPTION_CTAS,
    OPTION_ROUTING,
    OPTION_TOKENS,
    GRID_END,
    OPTION_DTYPE = GRID_END,
    OPTION_PAYLOAD_BYTES,
    OPTION_IDS,
    OPTION_RECEIVE,
    OPTION_ALIGNMENT,
    OPTION_COUNTS_FIRST,
    OPTION_HOST_COUNTS,
    OPTION_REPLY_WEIGHTS,
    OPTION_COLLECT_VIEW,
    OPTION_DOMAINS,
    OPTION_DEVICE,
    OPTION_DEVICES,
    OPTION_SEED,
    OPTION_ROUND_TRIPS,
    OPTION_REPEATS,
    OPTION_RECORD,
    WORD_END,
    OPTION_EAGER = WORD_END,
    OPTION_JSON,
    OPTION_HELP
};

enum { MOST_CELLS = 100000 };

#define WORD(option, name, argument, text)                                                         \
    {                                                                                              \
        name, '\0', POPT_ARG_STRING, NULL, option, text, argument                                  \
    }
/* 1 where the flag has no value. */
#define SWITCH(option, name, text)                                                                 \
    {                                                                                              \
        name, '\0', POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, NULL, option, text, "0|1"             \
    }
#define FLAG(option, name, text)                                                                   \
    {                                                                                              \
        name, '\0', POPT_ARG_NONE, NULL, option, text, NULL                                        \
    }

static struct poptOption option_table[] = {
    WORD(OPTION_LAYOUT, "layout", "1A1F|8B", "attention and FFN ranks, or ranks of both roles"),
    WORD(OPTION_TOKENS, "tokens", "32", "tokens of each attention rank, and the bucket"),
    WORD(OPTION_HIDDEN, "hidden", "2048", "elements a row"),
    WORD(OPTION_DTYPE, "dtype", "bf16|fp8|fp8-ue8m0|opaque", "what a dispatched row is"),
    WORD(OPTION_PAYLOAD_BYTES, "payload-bytes", "N", "bytes of an opaque row"),
    WORD(OPTION_IDS, "ids", "32|64", "bits of an expert id"),
    WORD(OPTION_RECEIVE, "receive", "compact|view|expert-major", "how FFN ranks get their rows"),
    WORD(OPTION_ALIGNMENT, "alignment", "1", "expert-major: rows of an expert begin at a multiple"),
    SWITCH(OPTION_COUNTS_FIRST, "counts-first", "ids go ahead of rows"),
    SWITCH(OPTION_HOST_COUNTS, "host-counts", "counts go to host memory, too"),
    SWITCH(OPTION_REPLY_WEIGHTS, "reply-weights", "replies carry weights"),
    SWITCH(OPTION_COLLECT_VIEW, "collect-view", "collected rows stay in place; F is 1"),
    WORD(OPTION_EXPERTS, "experts", "N", "experts; 128 or the multiple of F below it"),
    WORD(OPTION_TOP_K, "top-k", "8", "experts a token"),
    WORD(OPTION_CAPACITY, "capacity", "N", "most tokens at once; 2048, or tokens if more"),
    WORD(OPTION_LANES, "lanes", "1", "exchanges in flight"),
    WORD(OPTION_CTAS, "ctas", "N", "most CTAs a kernel takes; the plan's choice"),
    WORD(OPTION_ROUTING, "routing", "random|skew|one|khot", "how tokens choose experts"),
    WORD(OPTION_DOMAINS, "domains", "1", "NVLink domains; only 1 so far"),
    WORD(OPTION_DEVICE, "device", "cuda|sim", "cuda if there is a GPU, else sim"),
    WORD(OPTION_DEVICES, "devices", "0,1",
         "GPUs: one for all, one for attention and one for FFN ranks, or one a rank, attention "
         "ranks first"),
    WORD(OPTION_SEED, "seed", "N", "seed of the inputs; a new one each time, printed"),
    WORD(OPTION_ROUND_TRIPS, "round-trips", "40", "exchanges in the timed graph"),
    WORD(OPTION_REPEATS, "repeats", "200", "launches timed"),
    FLAG(OPTION_EAGER, "eager", "time calls without a graph, too"),
    WORD(OPTION_RECORD, "record", "FILE", "append a JSON line a cell to FILE"),
    FLAG(OPTION_JSON, "json", "one JSON document on stdout"),
    {"help", 'h', POPT_ARG_NONE, NULL, OPTION_HELP, "this text", NULL},
    POPT_TABLEEND};

#define ARGUMENTS "[--layout 2A2F] [--tokens 1,8,32] [--json] ..."

static const char usage_line[] = "usage: " AFJ_BENCH_PROGRAM " exchange " ARGUMENTS "\n";

static const char examples[] =
    "  " AFJ_BENCH_PROGRAM " exchange --layout 1A1F --tokens 1,8,32,128,512,2048\n"
    "  " AFJ_BENCH_PROGRAM " exchange --layout 2A2F,3A1F --hidden 4096 --devices 0,1 --json\n"
    "  " AFJ_BENCH_PROGRAM " exchange --layout 2A2F --tokens 64 --hidden 64 --device sim\n";

__attribute__((format(printf, 1, 2))) static int refuse(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, AFJ_BENCH_PROGRAM ": ");
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\n%s", usage_line);
    return AFJ_EXIT_USAGE;
}

/* What holds for the whole sweep. */
struct common {
    afdep_config config; /* all but what the grid says */
    uint64_t seed, round_trips, repeats;
    bool eager;
    struct afj_list devices;
};

/* "cuda" where the driver lists a GPU. */
static uint32_t default_device(void)
{
    uint32_t count = 0;
    const bool any = afdep_device_count(AFDEP_DEVICE_CUDA, &count) == AFDEP_OK && count > 0;
    return any ? AFDEP_DEVICE_CUDA : AFDEP_DEVICE_SIM;
}

static bool read_number(const char *name, const char *word, uint32_t low, uint32_t *number,
                        struct afj_why *why)
{
    uint64_t wide = 0;
    if (word == NULL)
        return true;
    if (!afj_words_number(name, word, low, UINT32_MAX, &wide, why))
        return false;
    *number = (uint32_t)wide;
    return true;
}

static bool read_common(char *const words[WORD_END], struct common *common, struct afj_why *why)
{
    *common = (struct common){.config = AFDEP_CONFIG_INIT, .round_trips = 40, .repeats = 200};
    afdep_config *config = &common->config;
    config->device = 0;
    if (words[OPTION_DOMAINS] != NULL && !afj_words_domains(words[OPTION_DOMAINS], why))
        return false;
    if (words[OPTION_DTYPE] != NULL && !afj_words_dtype(words[OPTION_DTYPE], &config->dtype, why))
        return false;
    if (words[OPTION_RECEIVE] != NULL &&
        !afj_words_receive(words[OPTION_RECEIVE], &config->receive, why))
        return false;
    if (words[OPTION_DEVICE] != NULL &&
        !afj_words_device(words[OPTION_DEVICE], &config->device, why))
        return false;
    if (!read_number("payload-bytes", words[OPTION_PAYLOAD_BYTES], 1, &config->payload_bytes,
                     why) ||
        !read_number("ids", words[OPTION_IDS], 1, &config->id_bits, why) ||
        !read_number("alignment", words[OPTION_ALIGNMENT], 1, &config->alignment, why) ||
        !read_number("counts-first", words[OPTION_COUNTS_FIRST], 0, &config->counts_first, why) ||
        !read_number("host-counts", words[OPTION_HOST_COUNTS], 0, &config->host_counts, why) ||
        !read_number("reply-weights", words[OPTION_REPLY_WEIGHTS], 0, &config->reply_weights,
                     why) ||
        !read_number("collect-view", words[OPTION_COLLECT_VIEW], 0, &config->collect_view, why))
        return false;
    if (words[OPTION_ROUND_TRIPS] != NULL &&
        !afj_words_number("round-trips", words[OPTION_ROUND_TRIPS], 1, 1000, &common->round_trips,
                          why))
        return false;
    if (words[OPTION_REPEATS] != NULL &&
        !afj_words_number("repeats", words[OPTION_REPEATS], 1, 1000000, &common->repeats, why))
        return false;
    if (words[OPTION_SEED] != NULL &&
        !afj_words_number("seed", words[OPTION_SEED], 0, INT64_MAX, &common->seed, why))
        return false;
    if (words[OPTION_SEED] == NULL)
        common->seed = afj_dice_fresh_seed();
    if (config->device == 0)
        config->device = default_device();
    if (words[OPTION_DEVICES] == NULL)
        return true;
    if (config->device == AFDEP_DEVICE_SIM)
        return afj_words_refuse(why, "devices is \"%s\", but the sim device places ranks itself",
                                words[OPTION_DEVICES]);
    return afj_words_list("devices", words[OPTION_DEVICES], &common->devices, why);
}

/* A device for each rank: see the help of --devices. FFN ranks come first in the group. */
static bool place_ranks(struct afj_cell *cell, const struct common *common, struct afj_why *why)
{
    const uint32_t attention = cell->config.attention_ranks, ffn = cell->config.ffn_ranks;
    const uint32_t both = cell->config.both_ranks, ranks = attention + ffn - both;
    const size_t given = common->devices.count;
    int32_t ordinals[AFDEP_MAX_RANKS];
    if (given > AFDEP_MAX_RANKS || (given > 2 && given != ranks))
        return afj_words_refuse(why, "devices has %zu items; it must have 1, 2 or one a rank, %u",
                                given, ranks);
    for (size_t i = 0; i < given; i++) {
        uint64_t ordinal = 0;
        if (!afj_words_number("devices", common->devices.items[i], 0, 1023, &ordinal, why))
            return false;
        ordinals[i] = (int32_t)ordinal;
    }
    uint32_t count = 0;
    if (given == 0 && cell->config.device == AFDEP_DEVICE_CUDA)
        /* Without a driver the cell fails with its sentence; the placement does not matter. */
        (void)afdep_device_count(AFDEP_DEVICE_CUDA, &count);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        /* Ranks of both roles are spread in equal blocks, as roles of their own cannot be. */
        const bool is_ffn = both > 0 ? rank >= (ranks + 1) / 2 : rank < ffn;
        const size_t place = both > 0 ? rank : is_ffn ? attention + rank : rank - ffn;
        if (cell->config.device == AFDEP_DEVICE_SIM)
            cell->devices[rank] = (int32_t)rank;
        else if (given == 0)
            cell->devices[rank] = is_ffn && count > 1 ? 1 : 0;
        else
            cell->devices[rank] = ordinals[given == 1 ? 0 : given == 2 ? is_ffn : place];
    }
    return true;
}

static bool read_routing(const char *word, enum afj_routing *routing, struct afj_why *why)
{
    for (unsigned i = 0; i <= AFJ_ROUTING_KHOT; i++)
        if (strcmp(word, afj_routing_name((enum afj_routing)i)) == 0) {
            *routing = (enum afj_routing)i;
            return true;
        }
    return afj_words_refuse(why, "routing is \"%s\"; it must be random, skew, one or khot", word);
}

/* One cell of the grid; NULL words take the defaults. */
static bool read_cell(struct afj_cell *cell, const char *const word[GRID_END],
                      const struct common *common, struct afj_why *why)
{
    *cell = (struct afj_cell){.config = common->config,
                              .tokens = 32,
                              .seed = common->seed,
                              .round_trips = (uint32_t)common->round_trips,
                              .repeats = (uint32_t)common->repeats,
                              .eager = common->eager};
    afdep_config *config = &cell->config;
    struct afj_layout layout = {1, 1, 0};
    if (word[OPTION_LAYOUT] != NULL && !afj_words_layout(word[OPTION_LAYOUT], &layout, why))
        return false;
    config->attention_ranks = layout.attention;
    config->ffn_ranks = layout.ffn;
    config->both_ranks = layout.both;
    config->experts = afj_words_default_experts(config->ffn_ranks);
    if (!read_number("tokens", word[OPTION_TOKENS], 0, &cell->tokens, why) ||
        !read_number("hidden", word[OPTION_HIDDEN], 1, &config->hidden, why) ||
        !read_number("experts", word[OPTION_EXPERTS], 1, &config->experts, why) ||
        !read_number("top-k", word[OPTION_TOP_K], 1, &config->top_k, why) ||
        !read_number("lanes", word[OPTION_LANES], 1, &config->lanes, why) ||
        !read_number("ctas", word[OPTION_CTAS], 0, &config->ctas, why))
        return false;
    if (config->capacity < cell->tokens)
        config->capacity = cell->tokens;
    if (!read_number("capacity", word[OPTION_CAPACITY], 1, &config->capacity, why))
        return false;
    if (config->capacity < cell->tokens)
        return afj_words_refuse(why, "tokens is %u; it must not be over the capacity, %u",
                                cell->tokens, config->capacity);
    if (word[OPTION_ROUTING] != NULL && !read_routing(word[OPTION_ROUTING], &cell->routing, why))
        return false;
    config->timeout_ms = AFJ_HARNESS_TIMEOUT_MS;
    config->startup_timeout_ms = AFJ_HARNESS_STARTUP_TIMEOUT_MS;
    afdep_plan plan = {.struct_size = sizeof plan};
    if (afdep_plan_query(config, 0, &plan) != AFDEP_OK)
        return afj_words_refuse(why, "%s", afdep_last_error());
    return place_ranks(cell, common, why);
}

static bool add_cell(struct afj_sweep *sweep, const struct afj_cell *cell, struct afj_why *why)
{
    if (sweep->count == sweep->capacity) {
        size_t capacity = sweep->capacity == 0 ? 16 : sweep->capacity * 2;
        struct afj_cell *cells = realloc(sweep->cells, capacity * sizeof *cells);
        if (cells == NULL)
            return afj_words_refuse(why, "no memory for %zu cells", capacity);
        sweep->cells = cells;
        sweep->capacity = capacity;
    }
    sweep->cells[sweep->count++] = *cell;
    return true;
}

static bool add_grid(struct afj_sweep *sweep, const struct afj_list lists[GRID_END],
                     const struct common *common, struct afj_why *why)
{
    size_t cells = 1, at[GRID_END] = {0};
    for (size_t i = 1; i < GRID_END; i++) {
        cells *= lists[i].count == 0 ? 1 : lists[i].count;
        if (cells > MOST_CELLS)
            return afj_words_refuse(why, "the lists span more than %d cells", MOST_CELLS);
    }
    for (size_t i = 0; i < cells; i++) {
        const char *word[GRID_END] = {NULL};
        for (size_t j = 1; j < GRID_END; j++)
            word[j] = lists[j].count == 0 ? NULL : lists[j].items[at[j]];
        struct afj_cell cell;
        if (!read_cell(&cell, word, common, why) || !add_cell(sweep, &cell, why))
            return false;
        for (size_t j = GRID_END; j-- > 1;) {
            if (lists[j].count > 0 && ++at[j] < lists[j].count)
                break;
            at[j] = 0;
        }
    }
    return true;
}

static const char *name_of_option(int option)
{
    const struct poptOption *entry = option_table;
    while (entry->longName != NULL && entry->val != option)
        entry++;
    return entry->longName;
}

static bool span_grid(struct afj_sweep *sweep, char *const words[WORD_END],
                      const struct common *common, struct afj_why *why)
{
    struct afj_list lists[GRID_END] = {0};
    bool good = true;
    for (size_t i = 1; i < GRID_END && good; i++)
        if (words[i] != NULL)
            good = afj_words_list(name_of_option((int)i), words[i], &lists[i], why);
    if (good)
        good = add_grid(sweep, lists, common, why);
    for (size_t i = 1; i < GRID_END; i++)
        afj_words_list_finish(&lists[i]);
    return good;
}

static int print_help(poptContext context)
{
    printf("Check an exchange row by row against a reference and time it.\n"
           "Comma lists sweep. Exit 0 only if every row was checked and none was wrong.\n\n");
    poptSetOtherOptionHelp(context, ARGUMENTS);
    poptPrintHelp(context, stdout, 0);
    printf("\nexamples:\n%s", examples);
    return afj_words_flush(AFJ_BENCH_PROGRAM);
}

/* Options into words and flags. -1: go on; else the exit code. */
static int take_options(poptContext context, char *words[WORD_END], bool *eager,
                        struct afj_sweep *sweep)
{
    int option;
    while ((option = poptGetNextOpt(context)) > 0) {
        if (option == OPTION_HELP)
            return print_help(context);
        sweep->json |= option == OPTION_JSON;
        *eager |= option == OPTION_EAGER;
        if (option < WORD_END) {
            free(words[option]);
            words[option] = poptGetOptArg(context);
            if (words[option] == NULL)
                words[option] = strdup("1"); /* only a switch may come without */
            if (words[option] == NULL)
                return refuse("no memory for the command line");
        }
    }
    if (option < -1)
        return refuse("%s: %s", poptBadOption(context, POPT_BADOPTION_NOALIAS),
                      poptStrerror(option));
    if (poptPeekArg(context) != NULL)
        return refuse("\"%s\" is one argument too many", poptPeekArg(context));
    return -1;
}

int afj_sweep_read(int argc, const char **argv, struct afj_sweep *sweep)
{
    memset(sweep, 0, sizeof *sweep);
    argv[0] = AFJ_BENCH_PROGRAM " exchange"; /* what popt's help calls the program */
    poptContext context = poptGetContext(AFJ_BENCH_PROGRAM, argc, argv, option_table, 0);
    if (context == NULL)
        return refuse("no memory for the command line");
    char *words[WORD_END] = {NULL};
    bool eager = false;
    struct common common = {0};
    struct afj_why why = {""};
    int code = take_options(context, words, &eager, sweep);
    if (code < 0) {
        bool good = read_common(words, &common, &why);
        common.eager = eager;
        good = good && span_grid(sweep, words, &common, &why);
        code = good ? -1 : refuse("%s", why.text);
    }
    afj_words_list_finish(&common.devices);
    sweep->record = words[OPTION_RECORD];
    words[OPTION_RECORD] = NULL;
    for (size_t i = 1; i < WORD_END; i++)
        free(words[i]);
    poptFreeContext(context);
    if (code >= 0)
        afj_sweep_finish(sweep);
    return code;
}

void afj_sweep_finish(struct afj_sweep *sweep)
{
    free(sweep->cells);
    free(sweep->record);
    memset(sweep, 0, sizeof *sweep);
}
