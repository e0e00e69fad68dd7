/* inputs.c: what the attention ranks send in one exchange, drawn from a seed, in host memory. */
#include "bench/inputs.h"

#include <stdlib.h>
#include <string.h>

const char *afj_routing_name(enum afj_routing routing)
{
    static const char *const names[AFJ_ROUTING_COUNT] = {
        [AFJ_ROUTING_RANDOM] = "random", [AFJ_ROUTING_SKEW] = "skew",   [AFJ_ROUTING_ONE] = "one",
        [AFJ_ROUTING_KHOT] = "khot",     [AFJ_ROUTING_EMPTY] = "empty", [AFJ_ROUTING_FULL] = "full",
        [AFJ_ROUTING_MIXED] = "mixed",   [AFJ_ROUTING_AVOID] = "avoid"};
    return (unsigned)routing < AFJ_ROUTING_COUNT ? names[routing] : NULL;
}

/* What a row is made of, from the config. */
static void measure_row(struct afj_inputs *inputs, const afdep_config *config)
{
    const uint32_t blocks = (config->hidden + 127) / 128;
    inputs->row_bytes = config->hidden;
    if (config->dtype == AFDEP_DTYPE_BF16)
        inputs->row_bytes = config->hidden * 2;
    if (config->dtype == AFDEP_DTYPE_OPAQUE)
        inputs->row_bytes = config->payload_bytes;
    if (config->dtype == AFDEP_DTYPE_FP8)
        inputs->scale_words = blocks;
    if (config->dtype == AFDEP_DTYPE_FP8_UE8M0)
        inputs->scale_words = (blocks + 3) / 4;
}

/* Which expert is where: by the map, or the first ranks hold one more than the others. */
static void place_experts(struct afj_inputs *inputs, const uint32_t *map)
{
    const uint32_t each = inputs->experts / inputs->ffn_ranks;
    const uint32_t longer = inputs->experts % inputs->ffn_ranks;
    uint32_t owner = 0;
    for (uint32_t e = 0; e < inputs->experts; e++) {
        while (map == NULL && inputs->local_experts[owner] == each + (owner < longer))
            owner++;
        inputs->owners[e] = map == NULL ? owner : map[e];
        inputs->locals[e] = inputs->local_experts[inputs->owners[e]]++;
    }
}

bool afj_inputs_init(struct afj_inputs *inputs, const afdep_config *config, uint32_t room)
{
    const size_t tokens = (size_t)config->attention_ranks * (room == 0 ? 1 : room);
    *inputs = (struct afj_inputs){.attention_ranks = config->attention_ranks,
                                  .ffn_ranks = config->ffn_ranks,
                                  .hidden = config->hidden,
                                  .experts = config->experts,
                                  .top_k = config->top_k,
                                  .dtype = config->dtype,
                                  .id_bits = config->id_bits == 64 ? 64 : 32,
                                  .room = room};
    measure_row(inputs, config);
    inputs->tokens = calloc(config->attention_ranks, sizeof *inputs->tokens);
    inputs->rows = calloc(tokens, inputs->row_bytes);
    inputs->scales = calloc(tokens * inputs->scale_words + 1, sizeof *inputs->scales);
    inputs->ids = calloc(tokens * config->top_k, sizeof *inputs->ids);
    inputs->weights = calloc(tokens * config->top_k, sizeof *inputs->weights);
    inputs->owners = calloc(config->experts, sizeof *inputs->owners);
    inputs->locals = calloc(config->experts, sizeof *inputs->locals);
    inputs->local_experts = calloc(config->ffn_ranks, sizeof *inputs->local_experts);
    if (inputs->tokens == NULL || inputs->rows == NULL || inputs->scales == NULL ||
        inputs->ids == NULL || inputs->weights == NULL || inputs->owners == NULL ||
        inputs->locals == NULL || inputs->local_experts == NULL) {
        afj_inputs_finish(inputs);
        return false;
    }
    place_experts(inputs, config->expert_ranks);
    return true;
}

void afj_inputs_finish(struct afj_inputs *inputs)
{
    free(inputs->tokens);
    free(inputs->rows);
    free(inputs->scales);
    free(inputs->ids);
    free(inputs->weights);
    free(inputs->owners);
    free(inputs->locals);
    free(inputs->local_experts);
    memset(inputs, 0, sizeof *inputs);
}

void afj_inputs_set_tokens(struct afj_inputs *inputs, uint32_t tokens)
{
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        inputs->tokens[a] = tokens;
    inputs->bucket = tokens == 0 ? 1 : tokens;
}

static size_t token_index(const struct afj_inputs *inputs, uint32_t source, uint32_t token)
{
    return (size_t)source * inputs->room + token;
}

const uint8_t *afj_inputs_row(const struct afj_inputs *inputs, uint32_t source, uint32_t token)
{
    return inputs->rows + token_index(inputs, source, token) * inputs->row_bytes;
}

const uint32_t *afj_inputs_scales(const struct afj_inputs *inputs, uint32_t source, uint32_t token)
{
    return inputs->scales + token_index(inputs, source, token) * inputs->scale_words;
}

const int64_t *afj_inputs_ids(const struct afj_inputs *inputs, uint32_t source, uint32_t token)
{
    return inputs->ids + token_index(inputs, source, token) * inputs->top_k;
}

const uint32_t *afj_inputs_weights(const struct afj_inputs *inputs, uint32_t source, uint32_t token)
{
    return inputs->weights + token_index(inputs, source, token) * inputs->top_k;
}

bool afj_inputs_is_on(const struct afj_inputs *inputs, int64_t id, uint32_t ffn)
{
    return id >= 0 && id < (int64_t)inputs->experts && inputs->owners[id] == ffn;
}

bool afj_inputs_goes_to(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        uint32_t ffn)
{
    const int64_t *ids = afj_inputs_ids(inputs, source, token);
    for (uint32_t k = 0; k < inputs->top_k; k++)
        if (afj_inputs_is_on(inputs, ids[k], ffn))
            return true;
    return false;
}

uint64_t afj_inputs_rows_sent(const struct afj_inputs *inputs)
{
    uint64_t rows = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            for (uint32_t f = 0; f < inputs->ffn_ranks; f++)
                rows += afj_inputs_goes_to(inputs, a, t, f);
    return rows;
}

/* What the choice of an expert needs beside the inputs. */
struct chooser {
    const struct afj_inputs *inputs;
    struct afj_dice *dice;
    double *below; /* [experts] sum of the skewed weights up to and with each expert, or NULL */
    uint32_t source;
};

static uint32_t choose_skewed(const struct chooser *chooser)
{
    const uint32_t experts = chooser->inputs->experts;
    const double at = afj_dice_unit(chooser->dice) * chooser->below[experts - 1];
    uint32_t low = 0, high = experts - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (chooser->below[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The expert of an FFN rank that has this number there, counted round; any if it has none. */
static uint32_t choose_on(const struct chooser *chooser, uint32_t ffn, uint32_t number)
{
    const struct afj_inputs *inputs = chooser->inputs;
    const uint32_t local = inputs->local_experts[ffn];
    for (uint32_t e = 0; local > 0 && e < inputs->experts; e++)
        if (inputs->owners[e] == ffn && inputs->locals[e] == number % local)
            return e;
    return number % inputs->experts;
}

/* One draw; the caller draws again if the expert is taken. */
static uint32_t draw_expert(const struct chooser *chooser, enum afj_routing routing, uint32_t k)
{
    const struct afj_inputs *inputs = chooser->inputs;
    const uint32_t experts = inputs->experts;
    const uint32_t hot = experts < 8 ? experts : 8;
    switch (routing) {
    case AFJ_ROUTING_SKEW:
        return choose_skewed(chooser);
    case AFJ_ROUTING_ONE:
        return choose_on(chooser, 0, k);
    case AFJ_ROUTING_KHOT:
        /* The hot experts lie evenly over the layer. */
        return afj_dice_below(chooser->dice, 2) == 0
                   ? afj_dice_below(chooser->dice, hot) * (experts / hot)
                   : afj_dice_below(chooser->dice, experts);
    case AFJ_ROUTING_FULL:
        return choose_on(chooser, k % inputs->ffn_ranks, afj_dice_below(chooser->dice, experts));
    default:
        return afj_dice_below(chooser->dice, experts);
    }
}

/* The experts that a routing may give a token are used up after that many. */
static uint32_t most_choices(const struct afj_inputs *inputs, enum afj_routing routing)
{
    const uint32_t most = routing == AFJ_ROUTING_ONE && inputs->local_experts[0] > 0
                              ? inputs->local_experts[0]
                              : inputs->experts;
    return inputs->top_k < most ? inputs->top_k : most;
}

static bool is_taken(const int64_t *ids, uint32_t count, uint32_t expert)
{
    for (uint32_t i = 0; i < count; i++)
        if (ids[i] == (int64_t)expert)
            return true;
    return false;
}

/* Distinct experts for one token, -1 where the routing has no more. */
static void choose_distinct(const struct chooser *chooser, enum afj_routing routing, int64_t *ids)
{
    const struct afj_inputs *inputs = chooser->inputs;
    const uint32_t most = most_choices(inputs, routing);
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        ids[k] = -1;
        if (k >= most)
            continue;
        uint32_t expert = draw_expert(chooser, routing, k);
        for (int again = 0; is_taken(ids, k, expert) && again < 1000; again++)
            expert = draw_expert(chooser, routing, k);
        /* After 1000 draws, the next free one: a skewed draw may all but never give it. */
        while (is_taken(ids, k, expert))
            expert = (expert + 1) % inputs->experts;
        ids[k] = (int64_t)expert;
    }
}

/* Ids that a caller should not give but may: out of range, repeated, or random bits. */
static void choose_mixed(const struct chooser *chooser, int64_t *ids)
{
    const struct afj_inputs *inputs = chooser->inputs;
    const uint32_t kind = afj_dice_below(chooser->dice, 8);
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        const int64_t expert = (int64_t)afj_dice_below(chooser->dice, inputs->experts);
        const uint64_t bits = afj_dice_next(chooser->dice);
        const bool wide = inputs->id_bits == 64;
        const int64_t odd[] = {-1,
                               (int64_t)inputs->experts,
                               INT32_MIN,
                               INT32_MAX,
                               wide ? (int64_t)bits : (int64_t)(int32_t)(uint32_t)bits,
                               wide ? (int64_t)1 << 32 | expert : -1,
                               wide ? INT64_MIN | expert : -1};
        if (kind == 0)
            ids[k] = -1;
        else if (kind == 1 && k > 0)
            ids[k] = ids[0];
        else if (kind < 5 && afj_dice_below(chooser->dice, 2) == 0)
            ids[k] = odd[afj_dice_below(chooser->dice, sizeof odd / sizeof *odd)];
        else
            ids[k] = expert;
    }
}

static void choose_ids(const struct chooser *chooser, enum afj_routing routing, int64_t *ids)
{
    const struct afj_inputs *inputs = chooser->inputs;
    if (routing == AFJ_ROUTING_EMPTY) {
        for (uint32_t k = 0; k < inputs->top_k; k++)
            ids[k] = -1;
    } else if (routing == AFJ_ROUTING_MIXED) {
        choose_mixed(chooser, ids);
    } else {
        choose_distinct(chooser, routing, ids);
    }
    if (routing == AFJ_ROUTING_AVOID)
        for (uint32_t k = 0; k < inputs->top_k; k++)
            if (afj_inputs_is_on(inputs, ids[k], chooser->source % inputs->ffn_ranks))
                ids[k] = -1;
}

/* Values around 1 of either sign: the sums stay finite whatever the experts' scales. */
static void draw_bf16(uint16_t *row, uint32_t hidden, struct afj_dice *dice)
{
    for (uint32_t i = 0; i < hidden; i += 4) {
        uint64_t bits = afj_dice_next(dice);
        for (uint32_t j = i; j < hidden && j < i + 4; j++, bits >>= 16)
            row[j] = (uint16_t)((bits & 0x87FF) + 0x3C00);
    }
}

/* Any bits at all, with the words the protocol cannot carry among them. */
static void draw_wild_bf16(uint16_t *row, uint32_t hidden, struct afj_dice *dice)
{
    static const uint16_t odd[] = {0xFFFF, 0x7FFF, 0x8000, 0x0000, 0x7F80, 0xFF80, 0x0001, 0xA5A5};
    for (uint32_t i = 0; i + 1 < hidden; i += 2) {
        uint64_t bits = afj_dice_next(dice);
        if ((bits >> 60) < 3) {
            row[i] = row[i + 1] = 0xFFFF;
        } else {
            row[i] = (bits >> 59 & 1) != 0 ? (uint16_t)bits : odd[bits >> 40 & 7];
            row[i + 1] = (bits >> 58 & 1) != 0 ? (uint16_t)(bits >> 16) : odd[bits >> 44 & 7];
        }
    }
}

/* Bytes, `mask` and `base` making the values tame; wild: any bytes, whole words of 0xFF, or all. */
static void draw_bytes(uint8_t *row, uint32_t bytes, uint32_t mask, uint32_t base, bool wild,
                       struct afj_dice *dice)
{
    const uint32_t kind = wild ? afj_dice_below(dice, 3) : 0;
    for (uint32_t i = 0; i < bytes; i += 4) {
        const uint64_t bits = afj_dice_next(dice);
        uint32_t word = ((uint32_t)bits & mask * 0x01010101u) + base * 0x01010101u;
        if (wild)
            word = kind == 2 || (bits >> 62) == 0 ? 0xFFFFFFFFu : (uint32_t)bits;
        memcpy(row + i, &word, sizeof word);
    }
}

static void draw_scales(const struct afj_inputs *inputs, uint32_t *scales, bool wild,
                        struct afj_dice *dice)
{
    static const uint32_t odd[] = {0xFFFFFFFFu, 0, 0x80000000u, 0x7F800000u, 1, 0x7FC00001u};
    if (inputs->dtype == AFDEP_DTYPE_FP8_UE8M0) {
        draw_bytes((uint8_t *)scales, inputs->scale_words * 4, 0x07, 124, wild, dice);
        return;
    }
    for (uint32_t i = 0; i < inputs->scale_words; i++) {
        const float scale = (float)(afj_dice_unit(dice) + 0.01);
        memcpy(&scales[i], &scale, sizeof scale);
        if (wild && afj_dice_below(dice, 3) == 0)
            scales[i] = odd[afj_dice_below(dice, sizeof odd / sizeof *odd)];
    }
}

static void draw_row(const struct afj_inputs *inputs, size_t token, bool wild,
                     struct afj_dice *dice)
{
    uint8_t *row = inputs->rows + token * inputs->row_bytes;
    switch (inputs->dtype) {
    case AFDEP_DTYPE_BF16:
        if (wild)
            draw_wild_bf16((uint16_t *)(void *)row, inputs->hidden, dice);
        else
            draw_bf16((uint16_t *)(void *)row, inputs->hidden, dice);
        break;
    case AFDEP_DTYPE_OPAQUE:
        draw_bytes(row, inputs->row_bytes, 0xFF, 0, wild, dice);
        break;
    default: /* E4M3 of exponents 4 to 11 */
        draw_bytes(row, inputs->row_bytes, 0xBF, 0x20, wild, dice);
        break;
    }
    draw_scales(inputs, inputs->scales + token * inputs->scale_words, wild, dice);
}

static void draw_weights(uint32_t *weights, uint32_t count, bool wild, struct afj_dice *dice)
{
    for (uint32_t k = 0; k < count; k++) {
        const float weight = (float)(afj_dice_unit(dice) + 0.001);
        memcpy(&weights[k], &weight, sizeof weight);
        if (wild && afj_dice_below(dice, 8) == 0)
            weights[k] = afj_dice_below(dice, 2) == 0 ? 0xFFFFFFFFu : (uint32_t)afj_dice_next(dice);
    }
}

void afj_inputs_draw(struct afj_inputs *inputs, enum afj_routing routing, struct afj_dice *dice)
{
    struct chooser chooser = {.inputs = inputs, .dice = dice};
    if (routing == AFJ_ROUTING_SKEW) {
        chooser.below = malloc(inputs->experts * sizeof *chooser.below);
        double sum = 0;
        for (uint32_t e = 0; e < inputs->experts && chooser.below != NULL; e++)
            chooser.below[e] = sum += 1.0 / (e + 1.0);
        if (chooser.below == NULL)
            routing = AFJ_ROUTING_RANDOM;
    }
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        chooser.source = a;
        for (uint32_t t = 0; t < inputs->tokens[a]; t++) {
            const size_t token = token_index(inputs, a, t);
            const bool wild = routing == AFJ_ROUTING_MIXED && afj_dice_below(dice, 2) == 0;
            draw_row(inputs, token, wild || afj_dice_below(dice, 64) == 0, dice);
            choose_ids(&chooser, routing, inputs->ids + token * inputs->top_k);
            draw_weights(inputs->weights + token * inputs->top_k, inputs->top_k, wild, dice);
        }
    }
    free(chooser.below);
}

void afj_inputs_draw_rows(struct afj_inputs *inputs, struct afj_dice *dice)
{
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            draw_row(inputs, token_index(inputs, a, t), afj_dice_below(dice, 64) == 0, dice);
}
