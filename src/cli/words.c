/* words.c: what the programs share: layouts, numbers, lists and names on a command line, and exit
 * codes. */
#include "cli/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <afdep/config.h>

bool afj_words_refuse(struct afj_why *why, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (vsnprintf(why->text, sizeof why->text, format, values) < 0)
        why->text[0] = '\0';
    va_end(values);
    return false;
}

/* Digits at *cursor to a number; moves the cursor behind them. */
static bool read_digits(const char **cursor, uint64_t *number)
{
    const char *at = *cursor;
    uint64_t sum = 0;
    while (*at >= '0' && *at <= '9') {
        uint64_t digit = (uint64_t)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
        at++;
    }
    bool any = at != *cursor;
    *cursor = at;
    *number = sum;
    return any;
}

bool afj_words_layout(const char *word, struct afj_layout *layout, struct afj_why *why)
{
    const char *cursor = word;
    uint64_t first = 0, second = 0;
    if (!read_digits(&cursor, &first) || first == 0)
        return afj_words_refuse(why, "layout \"%s\" is not of the form 2A2F or 8B", word);
    const bool both = strcmp(cursor, "B") == 0;
    if (both)
        second = first;
    else if (*cursor++ != 'A' || !read_digits(&cursor, &second) || second == 0 ||
             strcmp(cursor, "F") != 0)
        return afj_words_refuse(why, "layout \"%s\" is not of the form 2A2F or 8B", word);
    if (second > AFDEP_MAX_FFN_RANKS)
        return afj_words_refuse(why, "layout %s has %llu FFN ranks; at most %d are possible", word,
                                (unsigned long long)second, AFDEP_MAX_FFN_RANKS);
    if (first > AFDEP_MAX_RANKS || first + second > AFDEP_MAX_RANKS)
        return afj_words_refuse(why, "layout %s has more than %d ranks", word, AFDEP_MAX_RANKS);
    *layout = (struct afj_layout){(uint32_t)first, (uint32_t)second, both ? (uint32_t)first : 0};
    return true;
}

struct afj_layout_name afj_words_layout_name(const struct afj_layout *layout)
{
    struct afj_layout_name name;
    const uint32_t both = layout->both;
    if (both > 0 && both == layout->attention && both == layout->ffn)
        snprintf(name.text, sizeof name.text, "%uB", both);
    else if (both > 0)
        snprintf(name.text, sizeof name.text, "%uA%uF+%uB", layout->attention, layout->ffn, both);
    else
        snprintf(name.text, sizeof name.text, "%uA%uF", layout->attention, layout->ffn);
    return name;
}

bool afj_words_number(const char *name, const char *word, uint64_t low, uint64_t high,
                      uint64_t *number, struct afj_why *why)
{
    const char *cursor = word;
    uint64_t value = 0;
    if (!read_digits(&cursor, &value) || *cursor != '\0' || value < low || value > high)
        return afj_words_refuse(why, "%s is \"%s\"; it must be a number from %llu to %llu", name,
                                word, (unsigned long long)low, (unsigned long long)high);
    *number = value;
    return true;
}

bool afj_words_device(const char *word, uint32_t *kind, struct afj_why *why)
{
    if (strcmp(word, "cuda") == 0)
        *kind = AFDEP_DEVICE_CUDA;
    else if (strcmp(word, "sim") == 0)
        *kind = AFDEP_DEVICE_SIM;
    else
        return afj_words_refuse(why, "device is \"%s\"; it must be cuda or sim", word);
    return true;
}

/* The words of a choice, by number. */
static const char *const dtypes[] = {[AFDEP_DTYPE_BF16] = "bf16",
                                     [AFDEP_DTYPE_FP8] = "fp8",
                                     [AFDEP_DTYPE_FP8_UE8M0] = "fp8-ue8m0",
                                     [AFDEP_DTYPE_OPAQUE] = "opaque"};
static const char *const receives[] = {[AFDEP_RECEIVE_COMPACT] = "compact",
                                       [AFDEP_RECEIVE_VIEW] = "view",
                                       [AFDEP_RECEIVE_EXPERT_MAJOR] = "expert-major"};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, RECEIVES = sizeof receives / sizeof *receives };

bool afj_words_dtype(const char *word, uint32_t *dtype, struct afj_why *why)
{
    for (uint32_t i = AFDEP_DTYPE_BF16; i < DTYPES; i++)
        if (strcmp(word, dtypes[i]) == 0) {
            *dtype = i;
            return true;
        }
    return afj_words_refuse(why, "dtype is \"%s\"; it must be bf16, fp8, fp8-ue8m0 or opaque",
                            word);
}

bool afj_words_receive(const char *word, uint32_t *layout, struct afj_why *why)
{
    for (uint32_t i = AFDEP_RECEIVE_COMPACT; i < RECEIVES; i++)
        if (strcmp(word, receives[i]) == 0) {
            *layout = i;
            return true;
        }
    return afj_words_refuse(why, "receive is \"%s\"; it must be compact, view or expert-major",
                            word);
}

bool afj_words_duty(const char *word, uint32_t *duty, struct afj_why *why)
{
    if (strcmp(word, "source") == 0)
        *duty = AFDEP_DUTY_SOURCE;
    else if (strcmp(word, "expert") == 0)
        *duty = AFDEP_DUTY_EXPERT;
    else if (strcmp(word, "forward") == 0)
        return afj_words_refuse(why, "duty forward needs several NVLink domains, which are not "
                                     "supported yet; give source or expert");
    else
        return afj_words_refuse(why, "duty is \"%s\"; it must be source or expert", word);
    return true;
}

const char *afj_words_device_name(uint32_t kind)
{
    return kind == AFDEP_DEVICE_SIM ? "sim" : kind == AFDEP_DEVICE_CUDA ? "cuda" : "unknown";
}

const char *afj_words_dtype_name(uint32_t dtype)
{
    return dtype >= AFDEP_DTYPE_BF16 && dtype < DTYPES ? dtypes[dtype] : "unknown";
}

const char *afj_words_receive_name(uint32_t layout)
{
    if (layout == 0)
        return receives[AFDEP_RECEIVE_COMPACT];
    return layout < RECEIVES ? receives[layout] : "unknown";
}

const char *afj_words_duty_name(uint32_t duty)
{
    return duty == AFDEP_DUTY_SOURCE ? "source" : duty == AFDEP_DUTY_EXPERT ? "expert" : "unknown";
}

bool afj_words_domains(const char *word, struct afj_why *why)
{
    if (strcmp(word, "1") != 0)
        return afj_words_refuse(
            why, "domains is \"%s\"; more than one NVLink domain is not supported yet, give 1",
            word);
    return true;
}

uint32_t afj_words_default_experts(uint32_t ffn_ranks)
{
    return ffn_ranks == 0 ? 128 : 128 / ffn_ranks * ffn_ranks;
}

bool afj_words_list(const char *name, const char *text, struct afj_list *list, struct afj_why *why)
{
    memset(list, 0, sizeof *list);
    size_t count = 1;
    for (const char *at = text; *at != '\0'; at++)
        count += *at == ',';
    list->text = strdup(text);
    list->items = calloc(count, sizeof *list->items);
    if (list->text == NULL || list->items == NULL)
        return afj_words_refuse(why, "no memory for the list of %s", name);
    char *rest = list->text;
    for (char *item = strsep(&rest, ","); item != NULL; item = strsep(&rest, ",")) {
        if (*item == '\0')
            return afj_words_refuse(why, "%s is \"%s\"; an item of the list is empty", name, text);
        list->items[list->count++] = item;
    }
    return true;
}

void afj_words_list_finish(struct afj_list *list)
{
    free(list->text);
    free(list->items);
    memset(list, 0, sizeof *list);
}

int afj_words_flush(const char *program)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return AFJ_EXIT_OK;
    fprintf(stderr, "%s: cannot write to stdout: %s\n", program, strerror(errno));
    return AFJ_EXIT_FAILED;
}

int afj_words_exit_code(afdep_status status)
{
    switch (status) {
    case AFDEP_OK:
        return AFJ_EXIT_OK;
    case AFDEP_ERROR_ARGUMENT:
    case AFDEP_ERROR_CONFIG:
    case AFDEP_ERROR_TOKENS:
        return AFJ_EXIT_USAGE;
    case AFDEP_ERROR_MEMORY:
    case AFDEP_ERROR_DRIVER_MISSING:
    case AFDEP_ERROR_DEVICE:
    case AFDEP_ERROR_COMPILER_MISSING:
    case AFDEP_ERROR_RESOURCES:
    case AFDEP_ERROR_IO:
    case AFDEP_ERROR_LOAD:
        return AFJ_EXIT_MACHINE;
    default:
        return AFJ_EXIT_FAILED;
    }
}
