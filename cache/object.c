/* object.c: the bytes of one object file: an image, what it was made from, and sums of both. */
#include "cache/object.h"

#include <string.h>

/* Offsets in the header; cache/README.md has the same table. Numbers are little-endian. */
enum {
    MAGIC_AT = 0,
    HEADER_UNITS_AT = 8, /* header length in units of 64 bytes */
    FLAGS_AT = 9,        /* none are defined: 0 */
    MANIFEST_LENGTH_AT = 10,
    IMAGE_LENGTH_AT = 12,
    KEY_AT = 16,
    MANIFEST_SUM_AT = 32,
    IMAGE_SUM_AT = 48,
    ALIGNMENT = 64,
    DIGEST_BYTES = 16,
    HEADER_UNITS = AFJ_OBJECT_HEADER_BYTES / ALIGNMENT
};

/* The last digit is the format: another one is another magic. */
static const unsigned char magic[8] = {'A', 'F', 'D', 'E', 'P', 'J', 'O', '1'};
static const unsigned char zeros[ALIGNMENT];
static const char fact_prefix[] = "fact.";
enum { FACT_PREFIX_LENGTH = sizeof fact_prefix - 1 };

static void store_number(unsigned char *to, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i)
        to[i] = (unsigned char)(number >> 8 * i);
}

static uint32_t load_number(const unsigned char *from, size_t bytes)
{
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; ++i)
        number |= (uint32_t)from[i] << 8 * i;
    return number;
}

static size_t measure_padding(size_t manifest_length)
{
    return (ALIGNMENT - manifest_length % ALIGNMENT) % ALIGNMENT;
}

const char *afj_object_write(const struct afj_digest *key, const char *manifest,
                             size_t manifest_length, const void *image, size_t image_length,
                             struct afj_text *bytes)
{
    unsigned char header[AFJ_OBJECT_HEADER_BYTES] = {0};
    if (manifest_length > AFJ_OBJECT_MOST_MANIFEST)
        return "the manifest is over 65535 bytes";
    if (image_length == 0)
        return "the image is empty";
    if (image_length >
        AFJ_OBJECT_MOST_BYTES - AFJ_OBJECT_HEADER_BYTES - (AFJ_OBJECT_MOST_MANIFEST + 1))
        return "the image is over 255 MiB";
    const struct afj_digest manifest_sum = afj_digest_of(manifest, manifest_length);
    const struct afj_digest image_sum = afj_digest_of(image, image_length);
    memcpy(header + MAGIC_AT, magic, sizeof magic);
    header[HEADER_UNITS_AT] = HEADER_UNITS;
    store_number(header + MANIFEST_LENGTH_AT, manifest_length, 2);
    store_number(header + IMAGE_LENGTH_AT, image_length, 4);
    memcpy(header + KEY_AT, key->bytes, DIGEST_BYTES);
    memcpy(header + MANIFEST_SUM_AT, manifest_sum.bytes, DIGEST_BYTES);
    memcpy(header + IMAGE_SUM_AT, image_sum.bytes, DIGEST_BYTES);
    afj_text_append(bytes, header, sizeof header);
    afj_text_append(bytes, manifest, manifest_length);
    afj_text_append(bytes, zeros, measure_padding(manifest_length));
    afj_text_append(bytes, image, image_length);
    return bytes->failed ? "there is no memory for it" : NULL;
}

/* The sums cover manifest and image; every other byte is compared with the only value it may have.
 */
const char *afj_object_read(const void *bytes, size_t length, struct afj_object *object)
{
    const unsigned char *header = bytes;
    if (length < AFJ_OBJECT_HEADER_BYTES)
        return "it is shorter than a header";
    if (memcmp(header + MAGIC_AT, magic, sizeof magic) != 0)
        return "it does not begin with AFDEPJO1";
    if (header[HEADER_UNITS_AT] != HEADER_UNITS || header[FLAGS_AT] != 0)
        return "its header length or flags are not those of this format";
    const size_t manifest_length = load_number(header + MANIFEST_LENGTH_AT, 2);
    const size_t image_length = load_number(header + IMAGE_LENGTH_AT, 4);
    const size_t padding = measure_padding(manifest_length);
    const size_t image_at = AFJ_OBJECT_HEADER_BYTES + manifest_length + padding;
    if (image_length == 0 || image_at > length || length - image_at != image_length)
        return "its length is not the one its header says";
    const unsigned char *manifest = header + AFJ_OBJECT_HEADER_BYTES;
    const struct afj_digest manifest_sum = afj_digest_of(manifest, manifest_length);
    if (memcmp(manifest_sum.bytes, header + MANIFEST_SUM_AT, DIGEST_BYTES) != 0)
        return "the sum of its manifest is wrong";
    if (memcmp(manifest + manifest_length, zeros, padding) != 0)
        return "its padding is not zero";
    object->image_sum = afj_digest_of(header + image_at, image_length);
    if (memcmp(object->image_sum.bytes, header + IMAGE_SUM_AT, DIGEST_BYTES) != 0)
        return "the sum of its image is wrong";
    memcpy(object->key.bytes, header + KEY_AT, DIGEST_BYTES);
    object->manifest = (const char *)manifest;
    object->manifest_length = manifest_length;
    object->image = header + image_at;
    object->image_length = image_length;
    return NULL;
}

static bool is_fact(const char *at, size_t length)
{
    return length >= FACT_PREFIX_LENGTH && memcmp(at, fact_prefix, FACT_PREFIX_LENGTH) == 0;
}

bool afj_object_is_of(const struct afj_object *object, const char *manifest, size_t manifest_length)
{
    if (object->manifest_length < manifest_length ||
        memcmp(object->manifest, manifest, manifest_length) != 0)
        return false;
    /* A manifest that goes on with a line of another kind is a longer manifest. */
    const size_t rest = object->manifest_length - manifest_length;
    return rest == 0 || is_fact(object->manifest + manifest_length, rest);
}

bool afj_object_next_line(const char *at, const char *end, struct afj_object_line *line)
{
    const char *equals = at < end ? memchr(at, '=', (size_t)(end - at)) : NULL;
    if (!equals)
        return false;
    size_t length = 0;
    const char *digit = equals + 1;
    for (; digit < end && *digit >= '0' && *digit <= '9'; ++digit) {
        length = length * 10 + (size_t)(*digit - '0');
        if (length > AFJ_OBJECT_MOST_MANIFEST)
            return false;
    }
    if (digit == equals + 1 || digit == end || *digit != ':' ||
        length >= (size_t)(end - digit - 1) || digit[1 + length] != '\n')
        return false;
    line->name = at;
    line->name_length = (size_t)(equals - at);
    line->value = digit + 1;
    line->value_length = length;
    line->next = line->value + length + 1;
    return true;
}

bool afj_object_find_line(const char *at, const char *end, const char *name, size_t name_length,
                          struct afj_object_line *line)
{
    for (; afj_object_next_line(at, end, line); at = line->next)
        if (line->name_length == name_length && memcmp(line->name, name, name_length) == 0)
            return true;
    return false;
}

void afj_object_add_fact(struct afj_text *manifest, const char *name, size_t name_length,
                         const char *value, size_t value_length)
{
    afj_text_add(manifest, fact_prefix);
    afj_text_append(manifest, name, name_length);
    afj_text_printf(manifest, "=%zu:", value_length);
    afj_text_append(manifest, value, value_length);
    afj_text_add(manifest, "\n");
}

size_t afj_object_facts_at(const struct afj_object *object)
{
    const char *at = object->manifest, *end = at + object->manifest_length;
    struct afj_object_line line;
    while (afj_object_next_line(at, end, &line)) {
        if (is_fact(line.name, line.name_length))
            return (size_t)(at - object->manifest);
        at = line.next;
    }
    return object->manifest_length;
}

bool afj_object_find_fact(const struct afj_object *object, const char *name,
                          struct afj_object_line *line)
{
    const char *at = object->manifest + afj_object_facts_at(object);
    const char *end = object->manifest + object->manifest_length;
    const size_t length = strlen(name);
    for (; afj_object_next_line(at, end, line); at = line->next)
        if (is_fact(line->name, line->name_length) &&
            line->name_length - FACT_PREFIX_LENGTH == length &&
            memcmp(line->name + FACT_PREFIX_LENGTH, name, length) == 0)
            return true;
    return false;
}

void afj_object_list_facts(const struct afj_object *object, struct afj_text *text)
{
    const char *at = object->manifest + afj_object_facts_at(object);
    const char *end = object->manifest + object->manifest_length;
    struct afj_object_line line;
    afj_text_add(text, "");
    for (; afj_object_next_line(at, end, &line); at = line.next) {
        if (!is_fact(line.name, line.name_length))
            continue;
        afj_text_append(text, line.name + FACT_PREFIX_LENGTH,
                        line.name_length - FACT_PREFIX_LENGTH);
        afj_text_add(text, "=");
        afj_text_append(text, line.value, line.value_length);
        afj_text_add(text, "\n");
    }
}
