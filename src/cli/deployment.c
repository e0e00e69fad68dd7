/* deployment.c: the deployments a command names, by flags (a grid) or by a file, as configs. */
#include "cli/deployment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char *const field_names[AFJ_FIELD_COUNT] = {
#define AFJ_FIELD_NAME(field, name) [AFJ_FIELD_##field] = name,
    AFJ_FIELD_LIST(AFJ_FIELD_NAME)
#undef AFJ_FIELD_NAME
};

/* A grid has a million cells at most: more is a mistake on the command line. */
enum { MOST_CELLS = 1000000 };

void afj_fields_finish(struct afj_fields *fields)
{
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++)
        free(fields->value[i]);
    memset(fields, 0, sizeof *fields);
}

void afj_deployments_finish(struct afj_deployments *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i]);
    free(all->items);
    memset(all, 0, sizeof *all);
}

/* Configs here begin from the same initialiser, so they are equal where their bytes are. */
static bool same_deployment(const struct afj_deployment *a, const struct afj_deployment *b)
{
    afdep_config one = a->config, other = b->config;
    one.arch = other.arch = NULL;
    return memcmp(&one, &other, sizeof one) == 0 && strcmp(a->arch, b->arch) == 0;
}

/* Keep a deployment, or only its duties where an equal one is there already. */
static bool keep_deployment(struct afj_deployments *all, const struct afj_deployment *one,
                            struct afj_why *why)
{
    for (size_t i = 0; i < all->count; i++)
        if (same_deployment(all->items[i], one)) {
            all->items[i]->duties |= one->duties;
            return true;
        }
    if (all->count == all->capacity) {
        size_t capacity = all->capacity == 0 ? 16 : all->capacity * 2;
        struct afj_deployment **items = realloc(all->items, capacity * sizeof *items);
        if (items == NULL)
            return afj_words_refuse(why, "no memory for %zu deployments", capacity);
        all->items = items;
        all->capacity = capacity;
    }
    struct afj_deployment *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return afj_words_refuse(why, "no memory for a deployment");
    *kept = *one;
    kept->config.arch = kept->arch[0] != '\0' ? kept->arch : NULL;
    all->items[all->count++] = kept;
    return true;
}

static bool read_number(const char *name, const char *word, uint32_t low, uint32_t *number,
                        struct afj_why *why)
{
    uint64_t wide = 0;
    if (!afj_words_number(name, word, low, UINT32_MAX, &wide, why))
        return false;
    *number = (uint32_t)wide;
    return true;
}

/* The words of one cell to a deployment; NULL words take the defaults of docs. */
static bool read_cell(struct afj_deployment *cell, const char *const word[AFJ_FIELD_COUNT],
                      struct afj_why *why)
{
    *cell = (struct afj_deployment){.config = AFDEP_CONFIG_INIT};
    afdep_config *config = &cell->config;
    const char *layout = word[AFJ_FIELD_LAYOUT];
    if (layout == NULL)
        return afj_words_refuse(why, "no layout was given; for instance 2A2F");
    struct afj_layout ranks;
    if (!afj_words_layout(layout, &ranks, why))
        return false;
    config->attention_ranks = ranks.attention;
    config->ffn_ranks = ranks.ffn;
    config->both_ranks = ranks.both;
    config->experts = afj_words_default_experts(config->ffn_ranks);

    uint32_t *const numbers[AFJ_FIELD_COUNT] = {[AFJ_FIELD_HIDDEN] = &config->hidden,
                                                [AFJ_FIELD_EXPERTS] = &config->experts,
                                                [AFJ_FIELD_TOP_K] = &config->top_k,
                                                [AFJ_FIELD_LANES] = &config->lanes,
                                                [AFJ_FIELD_CAPACITY] = &config->capacity,
                                                [AFJ_FIELD_PAYLOAD_BYTES] = &config->payload_bytes,
                                                [AFJ_FIELD_IDS] = &config->id_bits,
                                                [AFJ_FIELD_ALIGNMENT] = &config->alignment};
    uint32_t *const switches[AFJ_FIELD_COUNT] = {[AFJ_FIELD_COUNTS_FIRST] = &config->counts_first,
                                                 [AFJ_FIELD_HOST_COUNTS] = &config->host_counts,
                                                 [AFJ_FIELD_REPLY_WEIGHTS] = &config->reply_weights,
                                                 [AFJ_FIELD_COLLECT_VIEW] = &config->collect_view};
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++) {
        uint32_t *number = numbers[i] != NULL ? numbers[i] : switches[i];
        if (number != NULL && word[i] != NULL &&
            !read_number(field_names[i], word[i], numbers[i] != NULL, number, why))
            return false;
    }
    if (word[AFJ_FIELD_RECEIVE] != NULL &&
        !afj_words_receive(word[AFJ_FIELD_RECEIVE], &config->receive, why))
        return false;
    if (word[AFJ_FIELD_DOMAINS] != NULL && !afj_words_domains(word[AFJ_FIELD_DOMAINS], why))
        return false;
    if (word[AFJ_FIELD_DTYPE] != NULL &&
        !afj_words_dtype(word[AFJ_FIELD_DTYPE], &config->dtype, why))
        return false;
    if (word[AFJ_FIELD_DEVICE] != NULL &&
        !afj_words_device(word[AFJ_FIELD_DEVICE], &config->device, why))
        return false;

    cell->duties = 1u << AFDEP_DUTY_SOURCE | 1u << AFDEP_DUTY_EXPERT;
    if (word[AFJ_FIELD_DUTY] != NULL) {
        uint32_t duty = 0;
        if (!afj_words_duty(word[AFJ_FIELD_DUTY], &duty, why))
            return false;
        cell->duties = 1u << duty;
    }
    const char *arch = word[AFJ_FIELD_ARCH];
    if (arch != NULL && config->device == AFDEP_DEVICE_SIM)
        return afj_words_refuse(why,
                                "arch is \"%s\", but the sim device takes none: it runs on "
                                "this machine's CPU",
                                arch);
    if (arch != NULL && strlen(arch) >= sizeof cell->arch)
        return afj_words_refuse(why, "arch is \"%s\"; it must be such as sm_90a", arch);
    if (arch != NULL)
        memcpy(cell->arch, arch, strlen(arch) + 1);
    return true;
}

/* Let the library judge the numbers of a cell, then keep it. */
static bool add_cell(struct afj_deployments *all, const char *const word[AFJ_FIELD_COUNT],
                     struct afj_why *why)
{
    struct afj_deployment cell;
    if (!read_cell(&cell, word, why))
        return false;
    cell.config.arch = cell.arch[0] != '\0' ? cell.arch : NULL;
    afdep_plan plan = {.struct_size = sizeof plan};
    if (afdep_plan_query(&cell.config, 0, &plan) != AFDEP_OK)
        return afj_words_refuse(why, "%s", afdep_last_error());
    return keep_deployment(all, &cell, why);
}

/* Walk all combinations of the lists, the last field fastest. */
static bool add_grid(struct afj_deployments *all, const struct afj_list lists[AFJ_FIELD_COUNT],
                     struct afj_why *why)
{
    size_t cells = 1, at[AFJ_FIELD_COUNT] = {0};
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++) {
        cells *= lists[i].count == 0 ? 1 : lists[i].count;
        if (cells > MOST_CELLS)
            return afj_words_refuse(why, "the lists span more than %d deployments", MOST_CELLS);
    }
    for (size_t cell = 0; cell < cells; cell++) {
        const char *word[AFJ_FIELD_COUNT];
        for (size_t i = 0; i < AFJ_FIELD_COUNT; i++)
            word[i] = lists[i].count == 0 ? NULL : lists[i].items[at[i]];
        if (!add_cell(all, word, why))
            return false;
        for (size_t i = AFJ_FIELD_COUNT; i-- > 0;) {
            if (lists[i].count > 0 && ++at[i] < lists[i].count)
                break;
            at[i] = 0;
        }
    }
    return true;
}

bool afj_deployments_add(struct afj_deployments *all, const struct afj_fields *fields,
                         struct afj_why *why)
{
    struct afj_list lists[AFJ_FIELD_COUNT] = {0};
    bool good = true;
    for (size_t i = 0; i < AFJ_FIELD_COUNT && good; i++)
        if (fields->value[i] != NULL)
            good = afj_words_list(field_names[i], fields->value[i], &lists[i], why);
    if (good)
        good = add_grid(all, lists, why);
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++)
        afj_words_list_finish(&lists[i]);
    return good;
}

/* A JSON string, number or list of them as a flag would give it; NULL for anything else. */
static char *word_of(const json_t *value)
{
    char *word = NULL;
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "1" : "0");
    if (json_is_integer(value))
        return asprintf(&word, "%lld", (long long)json_integer_value(value)) < 0 ? NULL : word;
    if (!json_is_array(value) || json_array_size(value) == 0)
        return NULL;
    size_t index;
    json_t *item;
    json_array_foreach(value, index, item)
    {
        char *one = json_is_array(item) ? NULL : word_of(item);
        char *longer = NULL;
        bool good = one != NULL && asprintf(&longer, "%s%s%s", word == NULL ? "" : word,
                                            word == NULL ? "" : ",", one) >= 0;
        free(one);
        free(word);
        word = good ? longer : NULL;
        if (!good)
            return NULL;
    }
    return word;
}

/* The members of an object over the defaults; every member must be a known field. */
static bool read_object(const json_t *object, const struct afj_fields *defaults,
                        struct afj_fields *fields, struct afj_why *why)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        size_t field = 0;
        while (field < AFJ_FIELD_COUNT && strcmp(name, field_names[field]) != 0)
            field++;
        if (field == AFJ_FIELD_COUNT)
            return afj_words_refuse(why, "\"%s\" is not a field of a deployment", name);
        fields->value[field] = word_of(value);
        if (fields->value[field] == NULL)
            return afj_words_refuse(
                why, "\"%s\" must be a string, a whole number, true, false or a list of them",
                name);
    }
    for (size_t i = 0; i < AFJ_FIELD_COUNT; i++)
        if (fields->value[i] == NULL && defaults->value[i] != NULL) {
            fields->value[i] = strdup(defaults->value[i]);
            if (fields->value[i] == NULL)
                return afj_words_refuse(why, "no memory for a deployment");
        }
    return true;
}

static bool read_line(struct afj_deployments *all, const char *line, size_t length,
                      const struct afj_fields *defaults, struct afj_why *why)
{
    json_error_t fault;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &fault);
    if (object == NULL)
        return afj_words_refuse(why, "%s", fault.text);
    struct afj_fields fields = {0};
    bool good = json_is_object(object) ? read_object(object, defaults, &fields, why)
                                       : afj_words_refuse(why, "a line must be one JSON object");
    if (good)
        good = afj_deployments_add(all, &fields, why);
    afj_fields_finish(&fields);
    json_decref(object);
    return good;
}

bool afj_deployments_read(struct afj_deployments *all, const char *path,
                          const struct afj_fields *fields, struct afj_why *why)
{
    bool from_stdin = strcmp(path, "-") == 0;
    const char *name = from_stdin ? "stdin" : path;
    FILE *file = from_stdin ? stdin : fopen(path, "re");
    if (file == NULL)
        return afj_words_refuse(why, "%s: %s", name, strerror(errno));
    char *line = NULL;
    size_t room = 0, number = 0;
    bool good = true;
    for (ssize_t length = getline(&line, &room, file); length >= 0 && good;
         length = good ? getline(&line, &room, file) : -1) {
        number++;
        if (strspn(line, " \t\r\n") == (size_t)length)
            continue;
        struct afj_why cause = {""};
        good = read_line(all, line, (size_t)length, fields, &cause);
        if (!good)
            afj_words_refuse(why, "%s:%zu: %.400s", name, number, cause.text);
    }
    if (good && ferror(file))
        good = afj_words_refuse(why, "%s: %s", name, strerror(errno));
    free(line);
    if (!from_stdin)
        fclose(file);
    if (good && all->count == 0)
        good = afj_words_refuse(why, "%s: no deployment in it", name);
    return good;
}
