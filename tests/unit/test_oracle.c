/* test_oracle.c: the reference of exchanges finds every bit that differs, in each dtype and layout.
 * An exchange that went right is made here, in the plainest way, and spoilt bit by bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "bench/oracle.h"

enum { ROOM = 4, CAPACITY = 5, EXPERTS = 7, ALIGNMENT = 3 };

/* The layout under test, which inputs do not know. */
static uint32_t layout;

static const uint32_t scattered[EXPERTS] = {1, 0, 1, 1, 0, 1, 0};

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_bf16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

static bool is_nan_bits(uint32_t bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; }

static uint16_t bf16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return is_nan_bits(bits) ? 0x7FFF : (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static float float_of_e4m3(uint8_t bits)
{
    const float size = (bits & 0x7F) == 0x7F ? NAN
                       : (bits & 0x78) == 0
                           ? (float)(bits & 7) / 512.0f
                           : exp2f((float)((bits >> 3 & 15) - 10)) * (float)(8 + (bits & 7));
    return (bits & 0x80) != 0 ? -size : size;
}

static float float_of_ue8m0(uint8_t bits) { return bits == 0xFF ? NAN : ldexpf(1, bits - 127); }

static int64_t id_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token, uint32_t k)
{
    return afj_inputs_ids(inputs, source, token)[k];
}

static int32_t local_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        uint32_t k, uint32_t ffn)
{
    const int64_t id = id_of(inputs, source, token, k);
    return afj_inputs_is_on(inputs, id, ffn) ? (int32_t)inputs->locals[id] : -1;
}

/* What one FFN rank received: arrays of the harness's lengths. */
struct arrays {
    size_t room, choices;
    uint8_t *rows;
    uint32_t *scales, *weights, *sources, *tokens, *slots, *counts, *host, *offsets;
    void *ids;
    size_t rows_bytes, id_bytes, scale_bytes, count_bytes, offset_bytes;
};

static afdep_config config_of(uint32_t dtype)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.attention_ranks = 2;
    config.ffn_ranks = 2;
    config.hidden = dtype == AFDEP_DTYPE_FP8_UE8M0 ? 640 : 144;
    config.dtype = dtype;
    config.payload_bytes = dtype == AFDEP_DTYPE_OPAQUE ? 48 : 0;
    config.experts = EXPERTS;
    config.top_k = 3;
    config.capacity = CAPACITY;
    config.receive = layout;
    config.alignment = layout == AFDEP_RECEIVE_EXPERT_MAJOR ? ALIGNMENT : 0;
    config.id_bits = layout == AFDEP_RECEIVE_VIEW ? 32 : 64;
    config.expert_ranks = layout == AFDEP_RECEIVE_COMPACT ? NULL : scattered;
    return config;
}

static struct afj_inputs inputs_of(const afdep_config *config, enum afj_routing routing,
                                   uint64_t seed)
{
    struct afj_inputs inputs;
    struct afj_dice dice;
    afj_dice_seed(&dice, seed);
    cr_assert(afj_inputs_init(&inputs, config, ROOM));
    afj_inputs_set_tokens(&inputs, ROOM);
    inputs.tokens[1] = ROOM - 1;
    afj_inputs_draw(&inputs, routing, &dice);
    return inputs;
}

/* Poison. */
static void *array(size_t bytes)
{
    void *memory = malloc(bytes + 1);
    cr_assert_not_null(memory);
    memset(memory, AFJ_POISON, bytes);
    return memory;
}

static struct arrays arrays_of(const struct afj_inputs *inputs, uint32_t ffn)
{
    const bool grouped = layout == AFDEP_RECEIVE_EXPERT_MAJOR;
    const size_t local = inputs->local_experts[ffn];
    const size_t rows = (size_t)inputs->attention_ranks * ROOM;
    struct arrays a = {.room =
                           (grouped ? rows * inputs->top_k + local * (ALIGNMENT - 1) : rows) + 1,
                       .choices = grouped ? 1 : inputs->top_k};
    const size_t slots = (size_t)inputs->attention_ranks * CAPACITY;
    a.rows_bytes = (layout == AFDEP_RECEIVE_VIEW ? slots : a.room) * (size_t)inputs->row_bytes;
    a.id_bytes = a.room * a.choices * (inputs->id_bits / 8);
    a.scale_bytes = a.room * inputs->scale_words * 4;
    a.count_bytes = (1 + inputs->attention_ranks + local) * 4;
    a.offset_bytes = (local + 1) * 4;
    a.rows = array(a.rows_bytes);
    a.ids = array(a.id_bytes);
    a.scales = array(a.scale_bytes);
    a.weights = array(a.room * a.choices * 4);
    a.sources = array(a.room * 4);
    a.tokens = array(a.room * 4);
    a.slots = array(a.room * 4);
    a.counts = array(a.count_bytes);
    a.host = array(a.count_bytes);
    a.offsets = array(a.offset_bytes);
    memset(a.counts, 0, a.count_bytes);
    return a;
}

static void free_arrays(struct arrays *a)
{
    void *all[] = {a->rows,   a->ids,   a->scales, a->weights, a->sources,
                   a->tokens, a->slots, a->counts, a->host,    a->offsets};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void put_id(const struct afj_inputs *inputs, struct arrays *a, size_t at, int64_t id)
{
    if (inputs->id_bits == 64)
        ((int64_t *)a->ids)[at] = id;
    else
        ((int32_t *)a->ids)[at] = (int32_t)id;
}

/* A word with all bits set travels as another NaN, except where it is no NaN. */
static uint32_t travelled(uint32_t word, uint32_t instead)
{
    return word == 0xFFFFFFFFu && instead != 0 ? instead : word;
}

/* Row, scales and origin of a token into row r. */
static void put_token(const struct afj_inputs *inputs, struct arrays *a, size_t r, uint32_t source,
                      uint32_t token)
{
    static const uint32_t instead[] = {[AFDEP_DTYPE_BF16] = 0x7FFF7FFF,
                                       [AFDEP_DTYPE_FP8] = 0x7F7F7F7F,
                                       [AFDEP_DTYPE_FP8_UE8M0] = 0x7F7F7F7F,
                                       [AFDEP_DTYPE_OPAQUE] = 0};
    const size_t slot = (size_t)source * CAPACITY + token, words = inputs->row_bytes / 4;
    const size_t at = layout == AFDEP_RECEIVE_VIEW ? slot : r;
    uint32_t row[1280];
    memcpy(row, afj_inputs_row(inputs, source, token), inputs->row_bytes);
    for (size_t w = 0; w < words; w++)
        row[w] = travelled(row[w], instead[inputs->dtype]);
    memcpy(a->rows + at * inputs->row_bytes, row, inputs->row_bytes);
    for (uint32_t w = 0; w < inputs->scale_words; w++)
        a->scales[r * inputs->scale_words + w] =
            travelled(afj_inputs_scales(inputs, source, token)[w],
                      inputs->dtype == AFDEP_DTYPE_FP8 ? 0x7FFFFFFF : 0);
    a->sources[r] = source;
    a->tokens[r] = token;
    a->slots[r] = (uint32_t)slot;
}

static uint32_t weight_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                          uint32_t k)
{
    return travelled(afj_inputs_weights(inputs, source, token)[k], 0x7FFFFFFF);
}

static void receive_tokens(const struct afj_inputs *inputs, uint32_t ffn, struct arrays *a)
{
    size_t r = 0;
    for (uint32_t source = 0; source < inputs->attention_ranks; source++)
        for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
            if (!afj_inputs_goes_to(inputs, source, t, ffn))
                continue;
            put_token(inputs, a, r, source, t);
            for (uint32_t k = 0; k < inputs->top_k; k++) {
                put_id(inputs, a, r * inputs->top_k + k, local_of(inputs, source, t, k, ffn));
                a->weights[r * inputs->top_k + k] = weight_of(inputs, source, t, k);
            }
            r++;
        }
}

/* Expert after expert, each time through all choices. */
static void receive_groups(const struct afj_inputs *inputs, uint32_t ffn, struct arrays *a)
{
    const uint32_t local = inputs->local_experts[ffn];
    size_t r = 0;
    for (size_t i = 0; i + 1 < a->room; i++) {
        put_id(inputs, a, i, -1);
        a->weights[i] = 0;
    }
    for (uint32_t e = 0; e < local; e++) {
        while (r % ALIGNMENT != 0)
            r++;
        a->offsets[e] = (uint32_t)r;
        for (uint32_t source = 0; source < inputs->attention_ranks; source++)
            for (uint32_t t = 0; t < inputs->tokens[source]; t++)
                for (uint32_t k = 0; k < inputs->top_k; k++) {
                    if (local_of(inputs, source, t, k, ffn) != (int32_t)e)
                        continue;
                    put_token(inputs, a, r, source, t);
                    put_id(inputs, a, r, e);
                    a->weights[r++] = weight_of(inputs, source, t, k);
                }
    }
    while (r % ALIGNMENT != 0)
        r++;
    a->offsets[local] = (uint32_t)r;
}

static void count(const struct afj_inputs *inputs, uint32_t ffn, struct arrays *a)
{
    for (uint32_t source = 0; source < inputs->attention_ranks; source++)
        for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
            a->counts[0] += afj_inputs_goes_to(inputs, source, t, ffn);
            a->counts[1 + source] += afj_inputs_goes_to(inputs, source, t, ffn);
            for (uint32_t k = 0; k < inputs->top_k; k++) {
                const int32_t local = local_of(inputs, source, t, k, ffn);
                if (local >= 0)
                    a->counts[1 + inputs->attention_ranks + (uint32_t)local]++;
            }
        }
    memcpy(a->host, a->counts, a->count_bytes);
}

static struct arrays receive(const struct afj_inputs *inputs, uint32_t ffn)
{
    struct arrays a = arrays_of(inputs, ffn);
    if (layout == AFDEP_RECEIVE_EXPERT_MAJOR)
        receive_groups(inputs, ffn, &a);
    else
        receive_tokens(inputs, ffn, &a);
    count(inputs, ffn, &a);
    return a;
}

static struct afj_tally check_arrays(const struct afj_inputs *inputs, uint32_t ffn,
                                     const struct arrays *a)
{
    struct afj_tally tally = {0};
    const struct afj_received received = {
        .layout = layout,
        .alignment = ALIGNMENT,
        .capacity = CAPACITY,
        .room = a->room,
        .padded = a->room - 1,
        .rows = a->rows,
        .scales = inputs->scale_words > 0 ? a->scales : NULL,
        .ids = a->ids,
        .weights = a->weights,
        .sources = a->sources,
        .tokens = a->tokens,
        .slots = layout == AFDEP_RECEIVE_VIEW ? a->slots : NULL,
        .counts = a->counts,
        .host = a->host,
        .offsets = layout == AFDEP_RECEIVE_EXPERT_MAJOR ? a->offsets : NULL};
    afj_oracle_check_received(inputs, ffn, &received, &tally);
    return tally;
}

/* Spoil one bit of every `step`th byte, and see each found. */
static void spoil(const struct afj_inputs *inputs, uint32_t ffn, struct arrays *a, void *memory,
                  size_t bytes, size_t step, const char *name)
{
    uint8_t *byte = memory;
    for (size_t i = 0; i < bytes; i += step) {
        byte[i] ^= (uint8_t)(1u << i % 8);
        const struct afj_tally tally = check_arrays(inputs, ffn, a);
        byte[i] ^= (uint8_t)(1u << i % 8);
        cr_assert(!afj_tally_is_clean(&tally), "dtype %u, layout %u: byte %zu of %s", inputs->dtype,
                  layout, i, name);
    }
}

/* Of a view only slots in the list are read. */
static void spoil_rows(const struct afj_inputs *inputs, uint32_t ffn, struct arrays *a)
{
    if (layout != AFDEP_RECEIVE_VIEW) {
        spoil(inputs, ffn, a, a->rows, a->rows_bytes, 5, "rows");
        return;
    }
    for (uint32_t r = 0; r < a->counts[0]; r++)
        spoil(inputs, ffn, a, a->rows + (size_t)a->slots[r] * inputs->row_bytes, inputs->row_bytes,
              5, "a slot");
}

static void spoil_all(const struct afj_inputs *inputs, uint32_t ffn)
{
    struct arrays a = receive(inputs, ffn);
    const struct afj_tally tally = check_arrays(inputs, ffn, &a);
    cr_assert(afj_tally_is_clean(&tally), "dtype %u, layout %u: %s", inputs->dtype, layout,
              tally.first);
    cr_assert_gt(tally.checked, 0);
    spoil_rows(inputs, ffn, &a);
    spoil(inputs, ffn, &a, a.ids, a.id_bytes, 1, "ids");
    spoil(inputs, ffn, &a, a.weights, a.room * a.choices * 4, 1, "weights");
    spoil(inputs, ffn, &a, a.sources, a.room * 4, 1, "sources");
    spoil(inputs, ffn, &a, a.tokens, a.room * 4, 1, "tokens");
    spoil(inputs, ffn, &a, a.counts, a.count_bytes, 1, "counts");
    spoil(inputs, ffn, &a, a.host, a.count_bytes, 1, "counts in host memory");
    if (inputs->scale_words > 0)
        spoil(inputs, ffn, &a, a.scales, a.scale_bytes, 1, "scales");
    if (layout == AFDEP_RECEIVE_VIEW)
        spoil(inputs, ffn, &a, a.slots, a.room * 4, 1, "slots");
    if (layout == AFDEP_RECEIVE_EXPERT_MAJOR)
        spoil(inputs, ffn, &a, a.offsets, a.offset_bytes, 1, "offsets");
    free_arrays(&a);
}

/* Calls f for each dtype and layout that go together. */
static void each_config(void (*f)(const afdep_config *config))
{
    for (uint32_t dtype = AFDEP_DTYPE_BF16; dtype <= AFDEP_DTYPE_OPAQUE; dtype++)
        for (layout = AFDEP_RECEIVE_COMPACT; layout <= AFDEP_RECEIVE_EXPERT_MAJOR; layout++) {
            const afdep_config config = config_of(dtype);
            if (dtype != AFDEP_DTYPE_OPAQUE || layout != AFDEP_RECEIVE_VIEW)
                f(&config);
        }
}

static void spoil_received(const afdep_config *config)
{
    static const enum afj_routing routings[] = {AFJ_ROUTING_RANDOM, AFJ_ROUTING_MIXED};
    for (size_t i = 0; i < 2; i++) {
        struct afj_inputs inputs = inputs_of(config, routings[i], 11 + i);
        for (uint32_t f = 0; f < 2; f++)
            spoil_all(&inputs, f);
        afj_inputs_finish(&inputs);
    }
}

Test(oracle, one_bit_of_anything_received_is_found) { each_config(spoil_received); }

/* Element i of a token as an expert reads it. */
static float value_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token, uint32_t i)
{
    const uint8_t *row = afj_inputs_row(inputs, source, token);
    const uint32_t *scales = afj_inputs_scales(inputs, source, token);
    uint16_t element;
    memcpy(&element, row + 2 * (size_t)i % inputs->row_bytes, sizeof element);
    switch (inputs->dtype) {
    case AFDEP_DTYPE_BF16:
        return float_of_bf16(element); /* a NaN stays one on the wire */
    case AFDEP_DTYPE_FP8:
        return float_of_e4m3(row[i]) * float_of_bits(scales[i / 128]);
    case AFDEP_DTYPE_FP8_UE8M0:
        return float_of_e4m3(row[i]) *
               float_of_ue8m0(((const uint8_t *)scales)[i / 128]); /* bytes lowest first */
    default:
        return row[i % inputs->row_bytes];
    }
}

static float bf16(float value) { return float_of_bf16(bf16_of_float(value)); }

/* One element of one FFN rank's reply; false if the token does not come there. */
static bool reply_element(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                          uint32_t ffn, float x, const struct afj_way_back *way, float *reply)
{
    const bool grouped = layout == AFDEP_RECEIVE_EXPERT_MAJOR;
    float factor = 0, sum = 0;
    uint32_t hits = 0;
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        const int64_t id = id_of(inputs, source, token, k);
        if (!afj_inputs_is_on(inputs, id, ffn))
            continue;
        const float weight = float_of_bits(weight_of(inputs, source, token, k));
        const float scale = exp2f((float)(id % 192 - 96));
        const float term = way->expert == AFJ_EXPERT_ECHO ? 1
                           : way->apply_weights           ? scale
                                                          : weight * scale;
        const float row = bf16(x * term), used = way->apply_weights ? row * weight : row;
        sum = hits == 0 ? used : sum + used;
        factor = way->expert == AFJ_EXPERT_ECHO || hits == 0 ? term : factor + term;
        hits++;
    }
    *reply = bf16(grouped ? sum : x * factor);
    return hits > 0;
}

static uint16_t collect_element(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                                uint32_t i, const struct afj_way_back *way)
{
    const float x = value_of(inputs, source, token, i);
    float sum = 0;
    bool first = true;
    for (uint32_t f = 0; f < inputs->ffn_ranks; f++) {
        float reply;
        if (!reply_element(inputs, source, token, f, x, way, &reply))
            continue;
        sum = first ? reply : sum + reply;
        first = false;
    }
    return bf16_of_float(sum);
}

/* Rows that an FFN rank has before those of a token. */
static size_t rows_before(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                          uint32_t ffn)
{
    size_t rows = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            rows +=
                (a < source || (a == source && t < token)) && afj_inputs_goes_to(inputs, a, t, ffn);
    return rows;
}

/* Every FFN rank of a token's sends all its weights back, or expert-major those of its rows. */
static uint32_t collect_weight(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                               uint32_t k)
{
    const bool grouped = layout == AFDEP_RECEIVE_EXPERT_MAJOR;
    float sum = 0;
    uint32_t bits, first = 1;
    for (uint32_t f = 0; f < inputs->ffn_ranks; f++) {
        if (!afj_inputs_goes_to(inputs, source, token, f))
            continue;
        const size_t row = rows_before(inputs, source, token, f);
        const float weight = grouped ? afj_oracle_reply_weight(row * inputs->top_k + k)
                                     : float_of_bits(weight_of(inputs, source, token, k));
        sum = first ? weight : sum + weight;
        first = 0;
    }
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}

/* What was collected of a source, poison behind it. */
struct sums {
    uint16_t *rows;
    uint32_t *weights;
};

static void check_collected(const struct afj_inputs *inputs, uint32_t source,
                            const struct afj_way_back *way, const struct sums *sums, bool clean,
                            const char *what)
{
    struct afj_tally tally = {0};
    cr_assert(afj_oracle_check_collected(inputs, source, way, sums->rows, ROOM + 1, &tally));
    afj_oracle_check_weights(inputs, source, way->grouped, sums->weights, ROOM + 1, &tally);
    cr_assert_eq(afj_tally_is_clean(&tally), clean, "%s, dtype %u, layout %u, error %g: %s", what,
                 inputs->dtype, layout, tally.worst_error, tally.first);
}

static void collect(const struct afj_inputs *inputs, uint32_t source,
                    const struct afj_way_back *way, struct sums *sums)
{
    for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
        for (uint32_t i = 0; i < inputs->hidden; i++)
            sums->rows[t * inputs->hidden + i] = collect_element(inputs, source, t, i, way);
        for (uint32_t k = 0; k < inputs->top_k; k++)
            sums->weights[t * inputs->top_k + k] = collect_weight(inputs, source, t, k);
    }
}

static void spoil_source(const struct afj_inputs *inputs, uint32_t source, struct afj_way_back way)
{
    const size_t elements = (size_t)(ROOM + 1) * inputs->hidden;
    const size_t choices = (size_t)(ROOM + 1) * inputs->top_k;
    struct sums sums = {.rows = array(elements * 2), .weights = array(choices * 4)};
    collect(inputs, source, &way, &sums);
    check_collected(inputs, source, &way, &sums, true, "right");
    for (size_t i = 0; i < elements; i += 5) {
        const uint16_t bit = is_nan_bits((uint32_t)sums.rows[i] << 16) ? 0x4000 : 1;
        sums.rows[i] ^= bit;
        check_collected(inputs, source, &way, &sums, false, "a row");
        sums.rows[i] ^= bit;
    }
    for (size_t i = 0; i < choices; i++) {
        const uint32_t bit = is_nan_bits(sums.weights[i]) ? 0x40000000 : 1;
        sums.weights[i] ^= bit;
        check_collected(inputs, source, &way, &sums, false, "a weight");
        sums.weights[i] ^= bit;
    }
    free(sums.rows);
    free(sums.weights);
}

static void spoil_collected(const afdep_config *config)
{
    static const enum afj_routing routings[] = {AFJ_ROUTING_RANDOM, AFJ_ROUTING_MIXED};
    const bool grouped = layout == AFDEP_RECEIVE_EXPERT_MAJOR;
    const bool echoes = config->dtype == AFDEP_DTYPE_BF16 && layout != AFDEP_RECEIVE_VIEW;
    for (size_t i = 0; i < 2; i++) {
        struct afj_inputs inputs = inputs_of(config, routings[i], 21 + i);
        for (uint32_t source = 0; source < 2; source++) {
            for (int apply = 0; apply <= grouped; apply++)
                spoil_source(&inputs, source,
                             (struct afj_way_back){.expert = AFJ_EXPERT_SCALE,
                                                   .grouped = grouped,
                                                   .apply_weights = apply != 0});
            if (echoes)
                spoil_source(&inputs, source,
                             (struct afj_way_back){.expert = AFJ_EXPERT_ECHO, .grouped = grouped});
        }
        afj_inputs_finish(&inputs);
    }
}

Test(oracle, one_bit_of_anything_collected_is_found) { each_config(spoil_collected); }

Test(oracle, a_row_beyond_the_room_is_missed_by_no_one)
{
    layout = AFDEP_RECEIVE_EXPERT_MAJOR;
    const afdep_config config = config_of(AFDEP_DTYPE_BF16);
    struct afj_inputs inputs = inputs_of(&config, AFJ_ROUTING_RANDOM, 31);
    struct arrays a = receive(&inputs, 0);
    a.room = 2;
    const struct afj_tally tally = check_arrays(&inputs, 0, &a);
    cr_assert_lt(tally.checked, tally.expected);
    cr_assert(!afj_tally_is_clean(&tally));
    free_arrays(&a);
    afj_inputs_finish(&inputs);
}
