/* list.c: afdep-compile list: what the cache holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <afdep/cache.h>

#include "cli/document.h"
#include "cli/output.h"
#include "cli/verbs.h"

static int run_list(const struct afj_verb *verb, int argc, const char **argv);

const struct afj_verb afj_verb_list = {
    .name = "list",
    .usage = "[WORD ...] [--duty D] [--layout 2A2F] [--hidden N] [--arch A] [--sort S] [--json]",
    .summary = "List the kernels in the cache. A WORD such as top_k=8 or a key's first digits "
               "selects, too. Damage is always listed.",
    .examples = "  " AFJ_PROGRAM " list --duty source --hidden 2048,7168 --sort size\n"
                "  " AFJ_PROGRAM " list entry=reply experts=256\n"
                "  " AFJ_PROGRAM " list --json\n",
    .takes_words = true,
    .takes_filters = true,
    .run = run_list};

/* One line of the list. */
struct row {
    json_t *entry; /* owned */
    uint64_t bytes;
    int64_t used;
    size_t order; /* in which it came: by key */
};

/* A listing on its way. */
struct listing {
    const struct afj_request *request;
    struct row *rows;
    size_t count, room, damaged;
    uint64_t bytes, damaged_bytes;
    bool short_of_memory;
};

/* Whether a comma list has an item; a list that was not given has all. */
static bool has_item(const char *list, const char *item)
{
    const size_t length = strlen(item);
    if (list == NULL)
        return true;
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && memcmp(at, item, length) == 0)
            return true;
    return false;
}

/* A word of the description, the architecture, or how the key begins. */
static bool has_word(const afdep_cache_entry *entry, const char *word)
{
    const size_t length = strlen(word);
    if (strcmp(entry->arch, word) == 0 || (length >= 4 && strncmp(entry->key, word, length) == 0))
        return true;
    for (const char *at = entry->spec; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && memcmp(at, word, length) == 0)
            return true;
    return false;
}

static bool is_wanted(const afdep_cache_entry *entry, const struct afj_request *request)
{
    char *const *filter = request->filters.value;
    char hidden[16];
    snprintf(hidden, sizeof hidden, "%u", entry->hidden);
    if (!has_item(filter[AFJ_FIELD_DUTY], entry->duty) ||
        !has_item(filter[AFJ_FIELD_LAYOUT], entry->layout) ||
        !has_item(filter[AFJ_FIELD_HIDDEN], hidden) ||
        !has_item(filter[AFJ_FIELD_ARCH], entry->arch))
        return false;
    for (size_t i = 0; i < request->word_count; i++)
        if (!has_word(entry, request->words[i]))
            return false;
    return true;
}

static void list_entry(const afdep_cache_entry *entry, void *user)
{
    struct listing *listing = user;
    if (entry->damaged == 0 && !is_wanted(entry, listing->request))
        return;
    if (listing->count == listing->room) {
        const size_t room = listing->room == 0 ? 64 : listing->room * 2;
        struct row *rows = realloc(listing->rows, room * sizeof *rows);
        if (rows == NULL) {
            listing->short_of_memory = true;
            return;
        }
        listing->rows = rows;
        listing->room = room;
    }
    json_t *described = afj_output_entry(entry);
    if (described == NULL) {
        listing->short_of_memory = true;
        return;
    }
    listing->rows[listing->count] =
        (struct row){described, entry->bytes, entry->used, listing->count};
    listing->count++;
    listing->damaged += entry->damaged != 0;
    listing->bytes += entry->bytes;
    listing->damaged_bytes += entry->damaged != 0 ? entry->bytes : 0;
}

static int by_order(const struct row *a, const struct row *b)
{
    return a->order < b->order ? -1 : a->order > b->order;
}

static int by_size(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : by_order(a, b);
}

static int by_use(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return a->used != b->used ? (a->used > b->used ? -1 : 1) : by_order(a, b);
}

static const char *text_in(const json_t *entry, const char *name)
{
    const char *text = json_string_value(json_object_get(entry, name));
    return text == NULL ? "" : text;
}

static long long number_in(const json_t *entry, const char *name)
{
    return json_integer_value(json_object_get(entry, name));
}

static void print_row(const json_t *entry)
{
    char when[32] = "-";
    const time_t used = (time_t)number_in(entry, "used");
    struct tm local;
    if (json_is_true(json_object_get(entry, "damaged"))) {
        printf("damaged: %s: %s\n", text_in(entry, "path"), text_in(entry, "error"));
        return;
    }
    if (localtime_r(&used, &local) == NULL ||
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local) == 0)
        memcpy(when, "-", 2);
    printf("%-32s %-6s %-11s %-5s %-8s %6lld %-9s %-8s %8lld %8.1f  %s\n", text_in(entry, "key"),
           text_in(entry, "duty"), text_in(entry, "entry"), text_in(entry, "shape"),
           text_in(entry, "layout"), number_in(entry, "hidden"), text_in(entry, "dtype"),
           text_in(entry, "arch"), number_in(entry, "image_bytes"),
           json_real_value(json_object_get(entry, "compile_ms")), when);
}

/* Where the cache is, for people who wonder that it is empty. */
static const char *cache_place(void)
{
    afdep_environment environment = {.struct_size = sizeof environment};
    if (afdep_cache_environment(&environment) != AFDEP_OK)
        return "";
    return environment.cache_dir;
}

static int print_table(const struct listing *listing)
{
    json_t *place = afj_output_text(cache_place());
    const char *directory = place == NULL ? "" : json_string_value(place);
    if (listing->count > listing->damaged)
        printf("%-32s %-6s %-11s %-5s %-8s %6s %-9s %-8s %8s %8s  %s\n", "KEY", "DUTY", "ENTRY",
               "SHAPE", "LAYOUT", "HIDDEN", "DTYPE", "ARCH", "BYTES", "MS", "USED");
    for (size_t i = 0; i < listing->count; i++)
        print_row(listing->rows[i].entry);
    if (*directory == '\0')
        printf("there is no cache directory: kernels are kept in memory only\n");
    else
        printf("%zu kernels, %s in %s\n", listing->count - listing->damaged,
               afj_output_bytes(listing->bytes - listing->damaged_bytes).text, directory);
    if (listing->damaged > 0)
        printf("%zu damaged: never used\n", listing->damaged);
    json_decref(place);
    return afj_words_flush(AFJ_PROGRAM);
}

static int print_document(const struct listing *listing)
{
    json_t *document = afj_document_new("afdep-compile-list/1");
    json_t *cache = json_object(), *entries = json_array();
    bool good =
        json_object_set_new(cache, "dir", afj_output_text(cache_place())) == 0 &&
        json_object_set_new(document, "cache", json_incref(cache)) == 0 &&
        json_object_set_new(document, "bytes", json_integer((json_int_t)listing->bytes)) == 0 &&
        json_object_set_new(document, "damaged", json_integer((json_int_t)listing->damaged)) == 0;
    for (size_t i = 0; i < listing->count && good; i++)
        good = json_array_append(entries, listing->rows[i].entry) == 0;
    good = good && json_object_set(document, "entries", entries) == 0;
    json_decref(cache);
    json_decref(entries);
    if (!good) {
        json_decref(document);
        document = NULL;
    }
    return afj_document_print(AFJ_PROGRAM, document);
}

static int run_list(const struct afj_verb *verb, int argc, const char **argv)
{
    struct afj_request request;
    int code = afj_request_read(verb, argc, argv, &request);
    if (code >= 0)
        return code;
    struct listing listing = {.request = &request};
    const afdep_status status = afdep_cache_list(list_entry, &listing);
    if (listing.count > 0 && request.sort != AFJ_SORT_KEY)
        qsort(listing.rows, listing.count, sizeof *listing.rows,
              request.sort == AFJ_SORT_SIZE ? by_size : by_use);
    if (status != AFDEP_OK || listing.short_of_memory) {
        fprintf(stderr, AFJ_PROGRAM ": %s\n",
                status != AFDEP_OK ? afdep_last_error() : "no memory for the list");
        code = status != AFDEP_OK ? afj_words_exit_code(status) : AFJ_EXIT_FAILED;
    } else {
        code = request.json ? print_document(&listing) : print_table(&listing);
    }
    if (code == AFJ_EXIT_OK && listing.damaged > 0)
        code = AFJ_EXIT_DAMAGE;
    for (size_t i = 0; i < listing.count; i++)
        json_decref(listing.rows[i].entry);
    free(listing.rows);
    afj_request_finish(&request);
    return code;
}
