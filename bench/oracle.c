/* oracle.c: what an exchange must give, computed on the CPU, and what it gave instead. FP32 sums
 * and products are rounded one by one: C11 without extensions contracts nothing. */
#include "bench/oracle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t poison8 = AFJ_POISON;
static const uint16_t poison16 = AFJ_POISON << 8 | AFJ_POISON;
static const uint32_t poison32 = (uint32_t)AFJ_POISON * 0x01010101u;

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_bf16(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

static uint16_t round_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFF;
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static bool is_bf16_nan(uint16_t bits) { return (bits & 0x7FFF) > 0x7F80; }

__attribute__((format(printf, 2, 3))) static void note_wrong(struct afj_tally *tally,
                                                             const char *format, ...)
{
    if (tally->wrong++ > 0)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(tally->first, sizeof tally->first, format, values);
    va_end(values);
}

static uint32_t word_at(const uint8_t *bytes, uint32_t i)
{
    uint32_t word;
    memcpy(&word, bytes + 4 * (size_t)i, sizeof word);
    return word;
}

/* The word that a receive gives for word i of a row: what would read as empty is another NaN, but
 * in opaque rows. */
static uint32_t received_word(const struct afj_inputs *inputs, const uint8_t *row, uint32_t i)
{
    const uint32_t word = word_at(row, i);
    if (word != 0xFFFFFFFFu || inputs->dtype == AFDEP_DTYPE_OPAQUE)
        return word;
    return inputs->dtype == AFDEP_DTYPE_BF16 ? 0x7FFF7FFFu : 0x7F7F7F7Fu;
}

static uint32_t canonical_f32(uint32_t bits) { return bits == 0xFFFFFFFFu ? 0x7FFFFFFFu : bits; }

static uint32_t received_scale(const struct afj_inputs *inputs, uint32_t bits)
{
    return inputs->dtype == AFDEP_DTYPE_FP8 ? canonical_f32(bits) : bits;
}

static int64_t id_at(const struct afj_inputs *inputs, const void *ids, size_t i)
{
    return inputs->id_bits == 64 ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

static int64_t local_id(const struct afj_inputs *inputs, int64_t id, uint32_t ffn)
{
    return afj_inputs_is_on(inputs, id, ffn) ? (int64_t)inputs->locals[id] : -1;
}

/* One place of the received arrays and what should be there. `choice` is -1 where ids and weights
 * are those of all choices. */
struct place {
    size_t row, stored; /* in the arrays, and where the row's bytes are */
    uint32_t source, token;
    int choice;
};

static const char *compare_choices(const struct afj_inputs *inputs, uint32_t ffn,
                                   const struct afj_received *got, const struct place *at)
{
    const int64_t *ids = afj_inputs_ids(inputs, at->source, at->token);
    const uint32_t *weights = afj_inputs_weights(inputs, at->source, at->token);
    const uint32_t count = at->choice < 0 ? inputs->top_k : 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t k = at->choice < 0 ? i : (uint32_t)at->choice;
        if (got->ids != NULL &&
            id_at(inputs, got->ids, at->row * count + i) != local_id(inputs, ids[k], ffn))
            return "an id";
        if (got->weights != NULL && got->weights[at->row * count + i] != canonical_f32(weights[k]))
            return "a weight";
    }
    return NULL;
}

/* One received row against its token; says what differs, or NULL. */
static const char *compare_row(const struct afj_inputs *inputs, uint32_t ffn,
                               const struct afj_received *got, const struct place *at)
{
    const uint8_t *row = afj_inputs_row(inputs, at->source, at->token);
    const uint32_t *scales = afj_inputs_scales(inputs, at->source, at->token);
    const uint8_t *bytes = got->rows + at->stored * inputs->row_bytes;
    for (uint32_t i = 0; i < inputs->row_bytes / 4; i++)
        if (word_at(bytes, i) != received_word(inputs, row, i))
            return "the row";
    for (uint32_t i = 0; i < inputs->scale_words; i++)
        if (got->scales[at->row * inputs->scale_words + i] != received_scale(inputs, scales[i]))
            return "a scale";
    const char *what = compare_choices(inputs, ffn, got, at);
    if (what != NULL)
        return what;
    if (got->sources != NULL && got->sources[at->row] != at->source)
        return "the source";
    if (got->tokens != NULL && got->tokens[at->row] != at->token)
        return "the token";
    if (got->slots != NULL && got->slots[at->row] != at->source * got->capacity + at->token)
        return "the slot";
    return NULL;
}

/* A row that nothing came for. `padded`: an expert-major row, whose id and weight say so. */
static bool is_untouched(const struct afj_inputs *inputs, const struct afj_received *got, size_t r,
                         bool padded)
{
    const uint32_t count = got->layout == AFDEP_RECEIVE_EXPERT_MAJOR ? 1 : inputs->top_k;
    if (got->layout != AFDEP_RECEIVE_VIEW)
        for (uint32_t i = 0; i < inputs->row_bytes; i++)
            if (got->rows[r * inputs->row_bytes + i] != poison8)
                return false;
    for (uint32_t i = 0; i < inputs->scale_words; i++)
        if (got->scales[r * inputs->scale_words + i] != poison32)
            return false;
    const int64_t poison_id =
        inputs->id_bits == 64 ? (int64_t)(0x0101010101010101u * AFJ_POISON) : (int32_t)poison32;
    for (size_t i = r * count; i < (r + 1) * count; i++) {
        if (got->ids != NULL && id_at(inputs, got->ids, i) != (padded ? -1 : poison_id))
            return false;
        if (got->weights != NULL && got->weights[i] != (padded ? 0 : poison32))
            return false;
    }
    return (got->sources == NULL || got->sources[r] == poison32) &&
           (got->tokens == NULL || got->tokens[r] == poison32) &&
           (got->slots == NULL || got->slots[r] == poison32);
}

static void check_count(struct afj_tally *tally, uint32_t ffn, const char *of, uint32_t i,
                        uint32_t got, uint32_t want)
{
    if (got != want)
        note_wrong(tally, "FFN rank %u counts %u %s %u; there are %u", ffn, got, of, i, want);
}

/* Total, rows a source and routes an expert, and the host's copy of them. */
static void check_counts(const struct afj_inputs *inputs, uint32_t ffn,
                         const struct afj_received *received, const uint32_t *routes,
                         struct afj_tally *tally)
{
    const uint32_t *counts = received->counts;
    const uint32_t local = inputs->local_experts[ffn];
    uint32_t total = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        uint32_t rows = 0;
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            rows += afj_inputs_goes_to(inputs, a, t, ffn);
        check_count(tally, ffn, "rows of source", a, counts[1 + a], rows);
        total += rows;
    }
    check_count(tally, ffn, "rows in all,", total, counts[0], total);
    for (uint32_t e = 0; e < local; e++)
        check_count(tally, ffn, "routes to its expert", e, counts[1 + inputs->attention_ranks + e],
                    routes[e]);
    const uint32_t words = 1 + inputs->attention_ranks + local;
    for (uint32_t i = 0; received->host != NULL && i < words; i++)
        check_count(tally, ffn, "on the host as count", i, received->host[i], counts[i]);
}

/* Routes to each expert of an FFN rank; NULL without memory. */
static uint32_t *count_routes(const struct afj_inputs *inputs, uint32_t ffn)
{
    uint32_t *routes = calloc(inputs->local_experts[ffn] + 1, sizeof *routes);
    for (uint32_t a = 0; routes != NULL && a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            for (uint32_t k = 0; k < inputs->top_k; k++) {
                const int64_t id = afj_inputs_ids(inputs, a, t)[k];
                if (afj_inputs_is_on(inputs, id, ffn))
                    routes[inputs->locals[id]]++;
            }
    return routes;
}

static void check_place(const struct afj_inputs *inputs, uint32_t ffn,
                        const struct afj_received *received, const struct place *at,
                        struct afj_tally *tally)
{
    tally->expected++;
    if (at->row >= received->room)
        return;
    tally->checked++;
    const char *what = compare_row(inputs, ffn, received, at);
    if (what != NULL)
        note_wrong(tally, "FFN rank %u, row %zu: %s differs from token %u of source %u", ffn,
                   at->row, what, at->token, at->source);
}

/* Rows once each, in the order of sources and tokens. */
static void check_in_order(const struct afj_inputs *inputs, uint32_t ffn,
                           const struct afj_received *received, struct afj_tally *tally)
{
    size_t r = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++) {
            if (!afj_inputs_goes_to(inputs, a, t, ffn))
                continue;
            const size_t slot = (size_t)a * received->capacity + t;
            const struct place at = {r, received->layout == AFDEP_RECEIVE_VIEW ? slot : r, a, t,
                                     -1};
            check_place(inputs, ffn, received, &at, tally);
            r++;
        }
    for (; r < received->room; r++)
        if (!is_untouched(inputs, received, r, false))
            note_wrong(tally, "FFN rank %u: row %zu behind the last one was written", ffn, r);
}

/* A row for each choice, expert by expert. `routes` is used up. */
static void check_grouped(const struct afj_inputs *inputs, uint32_t ffn,
                          const struct afj_received *received, const uint32_t *routes,
                          struct afj_tally *tally)
{
    const uint32_t local = inputs->local_experts[ffn];
    size_t begin = 0;
    for (uint32_t e = 0; e <= local; e++) {
        size_t r = begin;
        check_count(tally, ffn, "as where rows begin of expert", e, received->offsets[e],
                    (uint32_t)begin);
        for (uint32_t a = 0; e < local && a < inputs->attention_ranks; a++)
            for (uint32_t t = 0; t < inputs->tokens[a]; t++)
                for (uint32_t k = 0; k < inputs->top_k; k++)
                    if (local_id(inputs, afj_inputs_ids(inputs, a, t)[k], ffn) == (int64_t)e) {
                        const struct place at = {r, r, a, t, (int)k};
                        check_place(inputs, ffn, received, &at, tally);
                        r++;
                    }
        const size_t multiple = received->alignment;
        const size_t end =
            e < local ? begin + (routes[e] + multiple - 1) / multiple * multiple : received->room;
        for (; r < end && r < received->room; r++)
            if (!is_untouched(inputs, received, r, r < received->padded))
                note_wrong(tally, "FFN rank %u: padding row %zu is not what it should be", ffn, r);
        begin = end;
    }
}

void afj_oracle_check_received(const struct afj_inputs *inputs, uint32_t ffn,
                               const struct afj_received *received, struct afj_tally *tally)
{
    uint32_t *routes = count_routes(inputs, ffn);
    if (routes == NULL) {
        note_wrong(tally, "no memory to count the routes of FFN rank %u", ffn);
        return;
    }
    if (received->layout == AFDEP_RECEIVE_EXPERT_MAJOR)
        check_grouped(inputs, ffn, received, routes, tally);
    else
        check_in_order(inputs, ffn, received, tally);
    check_counts(inputs, ffn, received, routes, tally);
    free(routes);
}

/* ---- the way back ---- */

static float float_of_e4m3(uint8_t byte)
{
    const int exponent = byte >> 3 & 15, mantissa = byte & 7;
    const float sign = (byte & 0x80) != 0 ? -1.0f : 1.0f;
    if (exponent == 15 && mantissa == 7)
        return NAN;
    return sign * (exponent == 0 ? ldexpf((float)mantissa, -9)
                                 : ldexpf(1.0f + (float)mantissa / 8.0f, exponent - 7));
}

/* Element i of a row as the expert has it, in FP32. */
static float value_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token, uint32_t i)
{
    const uint8_t *row = afj_inputs_row(inputs, source, token);
    const uint32_t *scales = afj_inputs_scales(inputs, source, token);
    if (inputs->dtype == AFDEP_DTYPE_BF16) {
        const uint32_t word = received_word(inputs, row, i / 2);
        return float_of_bf16((uint16_t)(i % 2 != 0 ? word >> 16 : word));
    }
    const uint32_t at_byte = i % inputs->row_bytes;
    const uint8_t byte =
        (uint8_t)(received_word(inputs, row, at_byte / 4) >> at_byte % 4 * 8 & 0xFF);
    if (inputs->dtype == AFDEP_DTYPE_OPAQUE)
        return (float)byte;
    if (inputs->dtype == AFDEP_DTYPE_FP8)
        return float_of_e4m3(byte) * float_of_bits(canonical_f32(scales[i / 128]));
    const uint32_t exponent = scales[i / 512] >> i / 128 % 4 * 8 & 0xFF;
    return float_of_e4m3(byte) * (exponent == 255 ? NAN : ldexpf(1.0f, (int)exponent - 127));
}

/* One row that an FFN rank makes of a token, or one part of it: what x is multiplied with, by the
 * expert and then by reply; `exact` and `magnitude` in FP64. */
struct factor {
    float expert, reply;
    double exact, magnitude;
};

static float term_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token, uint32_t k,
                     struct factor *factor)
{
    const int64_t id = afj_inputs_ids(inputs, source, token)[k];
    const float weight = float_of_bits(canonical_f32(afj_inputs_weights(inputs, source, token)[k]));
    const float scale = ldexpf(1.0f, (int)(id % 192) - 96);
    factor->exact += (double)weight * (double)scale;
    factor->magnitude += fabs((double)weight * (double)scale);
    return weight * scale;
}

/* The factors of the rows that FFN rank `ffn` sums for a token: one, or one a choice. */
static uint32_t list_factors(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                             uint32_t ffn, const struct afj_way_back *way,
                             struct factor factors[AFDEP_MAX_TOP_K])
{
    const int64_t *ids = afj_inputs_ids(inputs, source, token);
    uint32_t count = 0;
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        if (!afj_inputs_is_on(inputs, ids[k], ffn))
            continue;
        const bool first = count == 0 || way->grouped;
        if (first)
            factors[count++] = (struct factor){.reply = 1.0f};
        struct factor *factor = &factors[count - 1];
        const float term = term_of(inputs, source, token, k, factor);
        factor->expert = first ? term : factor->expert + term;
        if (way->apply_weights) {
            factor->expert = ldexpf(1.0f, (int)(ids[k] % 192) - 96);
            factor->reply =
                float_of_bits(canonical_f32(afj_inputs_weights(inputs, source, token)[k]));
        }
        if (way->expert == AFJ_EXPERT_ECHO)
            *factor = (struct factor){1.0f, 1.0f, 1.0, 1.0};
    }
    return count;
}

/* Room for the sums of one row. */
struct sums {
    float *rounded;            /* [hidden] as the protocol says */
    double *exact, *magnitude; /* [hidden] in FP64 */
};

/* Whether a product on the way leaves the range where FP32 and BF16 round as the error limit says,
 * though the end of the way may be within it. */
static bool strays(float x, const struct factor *factors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const float product = fabsf(x * factors[i].expert);
        if (x != 0 && !(product > 0x1p-100f && product < 0x1p120f))
            return true;
    }
    return false;
}

/* What one FFN rank replies with for element x. */
static float reply_of(float x, const struct factor *factors, uint32_t count, bool grouped)
{
    float sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        float row = float_of_bf16(round_to_bf16(x * factors[i].expert));
        if (factors[i].reply != 1.0f)
            row = row * factors[i].reply;
        sum = i == 0 ? row : sum + row;
    }
    return grouped ? float_of_bf16(round_to_bf16(sum)) : sum;
}

/* Sum one token's replies over the FFN ranks, starting from the first. Returns whether the FP64
 * sums are fit to compare with: no factor left the range of FP32. */
static bool sum_replies(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        const struct afj_way_back *way, struct sums *sums)
{
    const uint32_t hidden = inputs->hidden;
    bool first = true, comparable = true;
    memset(sums->rounded, 0, hidden * sizeof *sums->rounded);
    memset(sums->exact, 0, hidden * sizeof *sums->exact);
    memset(sums->magnitude, 0, hidden * sizeof *sums->magnitude);
    for (uint32_t f = 0; f < inputs->ffn_ranks; f++) {
        struct factor factors[AFDEP_MAX_TOP_K];
        const uint32_t count = list_factors(inputs, source, token, f, way, factors);
        if (count == 0)
            continue;
        double exact = 0, magnitude = 0;
        for (uint32_t i = 0; i < count; i++) {
            comparable = comparable && isfinite(factors[i].expert) && isfinite(factors[i].reply) &&
                         factors[i].magnitude > 0x1p-100;
            exact += factors[i].exact;
            magnitude += factors[i].magnitude;
        }
        for (uint32_t i = 0; i < hidden; i++) {
            const float x = value_of(inputs, source, token, i);
            const float reply = reply_of(x, factors, count, way->grouped);
            sums->rounded[i] = first ? reply : sums->rounded[i] + reply;
            sums->exact[i] += (double)x * exact;
            sums->magnitude[i] +=
                strays(x, factors, count) ? (double)INFINITY : fabs((double)x) * magnitude;
        }
        first = false;
    }
    return comparable;
}

/* Compare one collected row; says which element differs, or -1. */
static int64_t compare_collected(const uint16_t *got, const struct sums *sums, uint32_t hidden,
                                 bool comparable, double *worst)
{
    int64_t differs = -1;
    for (uint32_t i = 0; i < hidden; i++) {
        const uint16_t want = round_to_bf16(sums->rounded[i]);
        if (got[i] != want && !(is_bf16_nan(got[i]) && is_bf16_nan(want)) && differs < 0)
            differs = (int64_t)i;
        const double magnitude = sums->magnitude[i];
        if (!comparable || !(magnitude > 0x1p-100 && magnitude < 0x1p120))
            continue;
        const double error = fabs((double)float_of_bf16(got[i]) - sums->exact[i]) / magnitude;
        if (!(error <= *worst))
            *worst = isnan(error) ? INFINITY : error;
    }
    return differs;
}

static void check_tokens(const struct afj_inputs *inputs, uint32_t source,
                         const struct afj_way_back *way, const uint16_t *rows, struct sums *sums,
                         struct afj_tally *tally)
{
    for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
        const uint16_t *got = rows + (size_t)t * inputs->hidden;
        const bool comparable = sum_replies(inputs, source, t, way, sums);
        const int64_t i =
            compare_collected(got, sums, inputs->hidden, comparable, &tally->worst_error);
        tally->expected++;
        tally->checked++;
        if (i >= 0)
            note_wrong(tally, "source %u, token %u, element %lld: collected 0x%04x, not 0x%04x",
                       source, t, (long long)i, got[i], round_to_bf16(sums->rounded[i]));
    }
}

bool afj_oracle_check_collected(const struct afj_inputs *inputs, uint32_t source,
                                const struct afj_way_back *way, const uint16_t *rows, size_t room,
                                struct afj_tally *tally)
{
    struct sums sums = {.rounded = calloc(inputs->hidden, sizeof *sums.rounded),
                        .exact = calloc(inputs->hidden, sizeof *sums.exact),
                        .magnitude = calloc(inputs->hidden, sizeof *sums.magnitude)};
    const bool good = sums.rounded != NULL && sums.exact != NULL && sums.magnitude != NULL;
    if (good) {
        check_tokens(inputs, source, way, rows, &sums, tally);
        for (size_t t = inputs->tokens[source]; t < room; t++)
            for (uint32_t i = 0; i < inputs->hidden; i++)
                if (rows[t * inputs->hidden + i] != poison16) {
                    note_wrong(tally, "source %u: row %zu behind the last token was written",
                               source, t);
                    break;
                }
    }
    free(sums.rounded);
    free(sums.exact);
    free(sums.magnitude);
    return good;
}

float afj_oracle_reply_weight(size_t i) { return (float)(1 + i % 61); }

/* The row that a token is on an FFN rank, in (source, token) order. */
static size_t row_on(const struct afj_inputs *inputs, uint32_t source, uint32_t token, uint32_t ffn)
{
    size_t row = 0;
    for (uint32_t a = 0; a <= source; a++)
        for (uint32_t t = 0; t < (a < source ? inputs->tokens[a] : token); t++)
            row += afj_inputs_goes_to(inputs, a, t, ffn);
    return row;
}

/* The sums over FFN ranks, beginning with the first, of what comes back beside a token's rows. */
static void sum_weights(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        bool grouped, float sums[AFDEP_MAX_TOP_K])
{
    bool first = true;
    memset(sums, 0, inputs->top_k * sizeof *sums);
    for (uint32_t f = 0; f < inputs->ffn_ranks; f++) {
        if (!afj_inputs_goes_to(inputs, source, token, f))
            continue;
        const size_t row = grouped ? row_on(inputs, source, token, f) : 0;
        for (uint32_t k = 0; k < inputs->top_k; k++) {
            const uint32_t sent = canonical_f32(afj_inputs_weights(inputs, source, token)[k]);
            const float reply =
                grouped ? afj_oracle_reply_weight(row * inputs->top_k + k) : float_of_bits(sent);
            sums[k] = first ? reply : sums[k] + reply;
        }
        first = false;
    }
}

void afj_oracle_check_weights(const struct afj_inputs *inputs, uint32_t source, bool grouped,
                              const uint32_t *weights, size_t room, struct afj_tally *tally)
{
    for (size_t t = 0; t < room; t++) {
        const bool is_token = t < inputs->tokens[source];
        float sums[AFDEP_MAX_TOP_K];
        if (is_token)
            sum_weights(inputs, source, (uint32_t)t, grouped, sums);
        for (uint32_t k = 0; k < inputs->top_k; k++) {
            const uint32_t got = weights[t * inputs->top_k + k];
            uint32_t want = poison32;
            if (is_token)
                memcpy(&want, &sums[k], sizeof want);
            if (got != want && !(isnan(float_of_bits(got)) && isnan(float_of_bits(want))))
                note_wrong(tally, "source %u, token %zu, choice %u: weight 0x%08x, not 0x%08x",
                           source, t, k, got, want);
        }
    }
}

bool afj_tally_is_clean(const struct afj_tally *tally)
{
    return tally->wrong == 0 && tally->checked == tally->expected &&
           tally->worst_error <= AFJ_ORACLE_ERROR_LIMIT;
}
