/* oracle.c: what an exchange must give, computed on the CPU, and what it gave instead. FP32 sums
 * and products are rounded one by one: C11 without extensions contracts nothing. */
#include "bench/oracle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The element that a receive gives for element i of a row. */
static uint16_t canonical_element(const uint16_t *row, uint32_t i)
{
    const uint32_t low = i & ~1u;
    return row[low] == 0xFFFF && row[low + 1] == 0xFFFF ? 0x7FFF : row[i];
}

static uint32_t canonical_weight(uint32_t bits) { return bits == 0xFFFFFFFFu ? 0x7FFFFFFFu : bits; }

/* One received row against its token; says what differs, or NULL. */
static const char *compare_row(const struct afj_inputs *inputs, uint32_t ffn,
                               const struct afj_received *got, size_t r, uint32_t source,
                               uint32_t token)
{
    const uint16_t *row = afj_inputs_row(inputs, source, token);
    for (uint32_t i = 0; i < inputs->hidden; i++)
        if (got->rows[r * inputs->hidden + i] != canonical_element(row, i))
            return "the row";
    const int32_t *ids = afj_inputs_ids(inputs, source, token);
    const uint32_t *weights = afj_inputs_weights(inputs, source, token);
    const int32_t first = (int32_t)(ffn * (inputs->experts / inputs->ffn_ranks));
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        const int32_t local = afj_inputs_is_on(inputs, ids[k], ffn) ? ids[k] - first : -1;
        if (got->ids[r * inputs->top_k + k] != local)
            return "an id";
        if (got->weights[r * inputs->top_k + k] != canonical_weight(weights[k]))
            return "a weight";
    }
    if (got->sources != NULL && got->sources[r] != source)
        return "the source";
    if (got->tokens != NULL && got->tokens[r] != token)
        return "the token";
    return NULL;
}

static bool is_untouched(const struct afj_inputs *inputs, const struct afj_received *got, size_t r)
{
    for (uint32_t i = 0; i < inputs->hidden; i++)
        if (got->rows[r * inputs->hidden + i] != poison16)
            return false;
    for (uint32_t k = 0; k < inputs->top_k; k++)
        if ((uint32_t)got->ids[r * inputs->top_k + k] != poison32 ||
            got->weights[r * inputs->top_k + k] != poison32)
            return false;
    return (got->sources == NULL || got->sources[r] == poison32) &&
           (got->tokens == NULL || got->tokens[r] == poison32);
}

/* Total, rows a source and routes an expert. */
static void check_counts(const struct afj_inputs *inputs, uint32_t ffn, const uint32_t *counts,
                         struct afj_tally *tally)
{
    const uint32_t each = inputs->experts / inputs->ffn_ranks;
    uint32_t total = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++) {
        uint32_t rows = 0;
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            rows += afj_inputs_goes_to(inputs, a, t, ffn);
        if (counts[1 + a] != rows)
            note_wrong(tally, "FFN rank %u counts %u rows of source %u; %u were sent", ffn,
                       counts[1 + a], a, rows);
        total += rows;
    }
    if (counts[0] != total)
        note_wrong(tally, "FFN rank %u counts %u rows; %u were sent", ffn, counts[0], total);

    uint32_t *routes = calloc(each, sizeof *routes);
    if (routes == NULL) {
        note_wrong(tally, "no memory to count the routes of FFN rank %u", ffn);
        return;
    }
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++)
            for (uint32_t k = 0; k < inputs->top_k; k++) {
                const int32_t id = afj_inputs_ids(inputs, a, t)[k];
                if (afj_inputs_is_on(inputs, id, ffn))
                    routes[(uint32_t)id - ffn * each]++;
            }
    const uint32_t *got = counts + 1 + inputs->attention_ranks;
    for (uint32_t e = 0; e < each; e++)
        if (got[e] != routes[e])
            note_wrong(tally, "FFN rank %u counts %u routes to its expert %u; there are %u", ffn,
                       got[e], e, routes[e]);
    free(routes);
}

void afj_oracle_check_received(const struct afj_inputs *inputs, uint32_t ffn,
                               const struct afj_received *received, struct afj_tally *tally)
{
    size_t r = 0;
    for (uint32_t a = 0; a < inputs->attention_ranks; a++)
        for (uint32_t t = 0; t < inputs->tokens[a]; t++) {
            if (!afj_inputs_goes_to(inputs, a, t, ffn))
                continue;
            tally->expected++;
            if (r >= received->room)
                continue;
            tally->checked++;
            const char *what = compare_row(inputs, ffn, received, r, a, t);
            if (what != NULL)
                note_wrong(tally, "FFN rank %u, row %zu: %s differs from token %u of source %u",
                           ffn, r, what, t, a);
            r++;
        }
    for (; r < received->room; r++)
        if (!is_untouched(inputs, received, r))
            note_wrong(tally, "FFN rank %u: row %zu behind the last one was written", ffn, r);
    check_counts(inputs, ffn, received->counts, tally);
}

/* What one FFN rank multiplies a token's row with; `exact` and `magnitude` in FP64. */
struct factor {
    bool any;
    float value;
    double exact, magnitude;
};

static struct factor factor_of(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                               uint32_t ffn, enum afj_expert expert)
{
    struct factor factor = {0};
    const int32_t *ids = afj_inputs_ids(inputs, source, token);
    const uint32_t *weights = afj_inputs_weights(inputs, source, token);
    for (uint32_t k = 0; k < inputs->top_k; k++) {
        if (!afj_inputs_is_on(inputs, ids[k], ffn))
            continue;
        const float weight = float_of_bits(canonical_weight(weights[k]));
        const float scale = ldexpf(1.0f, ids[k] % 192 - 96);
        const float term = weight * scale;
        factor.value = factor.any ? factor.value + term : term;
        factor.exact += (double)weight * (double)scale;
        factor.magnitude += fabs((double)weight * (double)scale);
        factor.any = true;
    }
    if (expert == AFJ_EXPERT_ECHO) {
        factor.value = 1.0f;
        factor.exact = factor.magnitude = 1.0;
    }
    return factor;
}

/* Room for the sums of one row. */
struct sums {
    float *rounded;            /* [hidden] as the protocol says */
    double *exact, *magnitude; /* [hidden] in FP64 */
};

/* Sum one token's replies over the FFN ranks, starting from the first. Returns whether the FP64
 * sums are fit to compare with: no factor left the range of FP32. */
static bool sum_replies(const struct afj_inputs *inputs, uint32_t source, uint32_t token,
                        enum afj_expert expert, struct sums *sums)
{
    const uint16_t *row = afj_inputs_row(inputs, source, token);
    const uint32_t hidden = inputs->hidden;
    bool first = true, comparable = true;
    memset(sums->rounded, 0, hidden * sizeof *sums->rounded);
    memset(sums->exact, 0, hidden * sizeof *sums->exact);
    memset(sums->magnitude, 0, hidden * sizeof *sums->magnitude);
    for (uint32_t f = 0; f < inputs->ffn_ranks; f++) {
        const struct factor factor = factor_of(inputs, source, token, f, expert);
        if (!factor.any)
            continue;
        comparable = comparable && isfinite(factor.value) && factor.magnitude > 0x1p-100;
        for (uint32_t i = 0; i < hidden; i++) {
            const float x = float_of_bf16(canonical_element(row, i));
            const float reply = float_of_bf16(round_to_bf16(x * factor.value));
            sums->rounded[i] = first ? reply : sums->rounded[i] + reply;
            sums->exact[i] += (double)x * factor.exact;
            sums->magnitude[i] += fabs((double)x) * factor.magnitude;
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

static void check_tokens(const struct afj_inputs *inputs, uint32_t source, enum afj_expert expert,
                         const uint16_t *rows, struct sums *sums, struct afj_tally *tally)
{
    for (uint32_t t = 0; t < inputs->tokens[source]; t++) {
        const uint16_t *got = rows + (size_t)t * inputs->hidden;
        const bool comparable = sum_replies(inputs, source, t, expert, sums);
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
                                enum afj_expert expert, const uint16_t *rows, size_t room,
                                struct afj_tally *tally)
{
    struct sums sums = {.rounded = calloc(inputs->hidden, sizeof *sums.rounded),
                        .exact = calloc(inputs->hidden, sizeof *sums.exact),
                        .magnitude = calloc(inputs->hidden, sizeof *sums.magnitude)};
    const bool good = sums.rounded != NULL && sums.exact != NULL && sums.magnitude != NULL;
    if (good) {
        check_tokens(inputs, source, expert, rows, &sums, tally);
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

bool afj_tally_is_clean(const struct afj_tally *tally)
{
    return tally->wrong == 0 && tally->checked == tally->expected &&
           tally->worst_error <= AFJ_ORACLE_ERROR_LIMIT;
}
