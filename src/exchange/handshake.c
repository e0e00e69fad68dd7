/* handshake.c: what ranks must agree on, as text that can travel, and the first difference. */
#include "exchange/handshake.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/status.h>

/* The fields of a config that are numbers, in the order of the struct. */
#define NUMBER_FIELDS(X)                                                                           \
    X(device)                                                                                      \
    X(attention_ranks)                                                                             \
    X(ffn_ranks)                                                                                   \
    X(both_ranks)                                                                                  \
    X(hidden)                                                                                      \
    X(dtype)                                                                                       \
    X(payload_bytes)                                                                               \
    X(experts)                                                                                     \
    X(top_k)                                                                                       \
    X(id_bits)                                                                                     \
    X(capacity)                                                                                    \
    X(lanes)                                                                                       \
    X(ctas)                                                                                        \
    X(timeout_ms)                                                                                  \
    X(startup_timeout_ms)                                                                          \
    X(receive)                                                                                     \
    X(alignment)                                                                                   \
    X(counts_first)                                                                                \
    X(host_counts)                                                                                 \
    X(reply_weights)                                                                               \
    X(collect_view)

/* struct_size, reserved and reserved2 are not compared, arch and expert_ranks are described apart:
 * a field that is new in the config must be new here. */
#define COUNT_FIELD(field) +1
_Static_assert(sizeof(afdep_config) == (3 NUMBER_FIELDS(COUNT_FIELD)) * sizeof(uint32_t) +
                                           sizeof(char *) + sizeof(uint32_t *),
               "every field of afdep_config is compared");
#undef COUNT_FIELD

static void describe_map(const afdep_config *c, struct afj_text *text)
{
    char hex[33];
    if (!c->expert_ranks) {
        afj_text_add(text, "expert_ranks=blocks\n");
        return;
    }
    const struct afj_digest digest =
        afj_digest_of(c->expert_ranks, c->experts * sizeof *c->expert_ranks);
    afj_digest_hex(&digest, hex);
    afj_text_printf(text, "expert_ranks=a map with digest %s\n", hex);
}

void afj_handshake_describe(const struct afj_config *config, const struct afj_controls *controls,
                            uint32_t sim_lanes, const struct afj_digest *templates,
                            struct afj_text *text)
{
    const afdep_config *c = &config->fields;
    char hex[33];
    afj_digest_hex(templates, hex);
    afj_text_printf(text, "library=%s\ntemplates=%s\n", afdep_version(), hex);
#define DESCRIBE(field) afj_text_printf(text, #field "=%" PRIu32 "\n", c->field);
    NUMBER_FIELDS(DESCRIBE)
#undef DESCRIBE
    afj_text_printf(text, "arch=%s\n", config->arch[0] ? config->arch : "the device's own");
    describe_map(c, text);
    afj_text_printf(text, "AFDEP_STRICT_FENCES=%d\n", controls->strict_fences);
    if (c->device == AFDEP_DEVICE_SIM)
        afj_text_printf(text, "AFDEP_SIM_LANES=%" PRIu32 "\n", sim_lanes);
}

/* One line of a text: its name, and its value up to the end of the line. */
struct line {
    const char *name, *value;
    size_t name_length, value_length, length;
};

/* Read the line at `at`; false where there is no whole one. */
static bool read_line(const char *at, const char *end, struct line *line)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    const char *equals = newline ? memchr(at, '=', (size_t)(newline - at)) : NULL;
    if (!equals)
        return false;
    *line = (struct line){.name = at,
                          .value = equals + 1,
                          .name_length = (size_t)(equals - at),
                          .value_length = (size_t)(newline - equals - 1),
                          .length = (size_t)(newline + 1 - at)};
    return true;
}

static bool find_line(const char *at, const char *end, const struct line *like, struct line *found)
{
    for (; read_line(at, end, found); at += found->length)
        if (found->name_length == like->name_length &&
            memcmp(found->name, like->name, like->name_length) == 0)
            return true;
    return false;
}

/* What a sentence shows of a word that a peer sent: not much, and nothing that a terminal obeys. */
struct shown {
    char text[72];
};
static struct shown show(const char *bytes, size_t length)
{
    struct shown shown = {{0}};
    for (size_t i = 0; i < length && i + 1 < sizeof shown.text; ++i) {
        const unsigned char byte = (unsigned char)bytes[i];
        shown.text[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    return shown;
}

static afdep_status refuse(uint32_t rank_a, uint32_t rank_b, const struct line *a,
                           const struct line *b)
{
    const struct shown name = show(a->name, a->name_length);
    const struct shown value = show(a->value, a->value_length);
    if (!b)
        return afj_fail(AFDEP_ERROR_HANDSHAKE,
                        "rank %" PRIu32 " was created with %s=%s and rank %" PRIu32
                        " says nothing of it: do both use the same library?",
                        rank_a, name.text, value.text, rank_b);
    const struct shown other = show(b->value, b->value_length);
    return afj_fail(AFDEP_ERROR_HANDSHAKE,
                    "rank %" PRIu32 " was created with %s=%s and rank %" PRIu32 " with %s=%s",
                    rank_a, name.text, value.text, rank_b, name.text, other.text);
}

/* Every line of a is in b and says the same. */
static afdep_status compare_lines(uint32_t rank_a, const char *a, size_t length_a, uint32_t rank_b,
                                  const char *b, size_t length_b)
{
    struct line mine, theirs;
    for (const char *at = a; read_line(at, a + length_a, &mine); at += mine.length) {
        if (!find_line(b, b + length_b, &mine, &theirs))
            return refuse(rank_a, rank_b, &mine, NULL);
        if (mine.value_length != theirs.value_length ||
            memcmp(mine.value, theirs.value, mine.value_length) != 0)
            return refuse(rank_a, rank_b, &mine, &theirs);
    }
    return AFDEP_OK;
}

afdep_status afj_handshake_compare(uint32_t rank_a, const char *a, size_t length_a, uint32_t rank_b,
                                   const char *b, size_t length_b)
{
    if (length_a == 0 || length_b == 0)
        return afj_fail(AFDEP_ERROR_HANDSHAKE,
                        "rank %" PRIu32 " says nothing of what it was created with: do both use "
                        "the same library?",
                        length_a == 0 ? rank_a : rank_b);
    if (length_b > AFJ_HANDSHAKE_BYTES || length_a > AFJ_HANDSHAKE_BYTES)
        return afj_fail(AFDEP_ERROR_HANDSHAKE,
                        "ranks %" PRIu32 " and %" PRIu32 " describe themselves in %zu and %zu "
                        "bytes; at most %d are read: do both use the same library?",
                        rank_a, rank_b, length_a, length_b, AFJ_HANDSHAKE_BYTES);
    if (length_a == length_b && memcmp(a, b, length_a) == 0)
        return AFDEP_OK;
    AFJ_TRY(compare_lines(rank_a, a, length_a, rank_b, b, length_b));
    AFJ_TRY(compare_lines(rank_b, b, length_b, rank_a, a, length_a));
    return afj_fail(AFDEP_ERROR_HANDSHAKE,
                    "ranks %" PRIu32 " and %" PRIu32 " describe themselves in texts that differ "
                    "and cannot be read: do both use the same library?",
                    rank_a, rank_b);
}
