/* words.h: what the programs share: layouts, numbers, lists and names on a command line, and exit
 * codes. With document.h the one part of cli that bench also uses. */
#ifndef AFJ_CLI_WORDS_H
#define AFJ_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <afdep/status.h>

/* Exit codes of all programs. */
enum {
    AFJ_EXIT_OK = 0,
    AFJ_EXIT_FAILED = 1,
    AFJ_EXIT_USAGE = 2,
    AFJ_EXIT_DAMAGE = 4,
    AFJ_EXIT_MACHINE = 5
};

/* Why a word was refused, one sentence. */
struct afj_why {
    char text[512];
};

/* Set the sentence; always returns false, so that a refusal is one line. */
__attribute__((format(printf, 2, 3))) bool afj_words_refuse(struct afj_why *why, const char *format,
                                                            ...);

/* Ranks of a deployment: "2A2F", or "8B", whose ranks have both roles. */
struct afj_layout {
    uint32_t attention, ffn, both;
};
bool afj_words_layout(const char *word, struct afj_layout *layout, struct afj_why *why);
/* The word of a layout; some ranks of both roles are "4A4F+2B". */
struct afj_layout_name {
    char text[40];
};
struct afj_layout_name afj_words_layout_name(const struct afj_layout *layout);

/* A decimal number from `low` to `high`. `name` is what the sentence calls it. */
bool afj_words_number(const char *name, const char *word, uint64_t low, uint64_t high,
                      uint64_t *number, struct afj_why *why);

/* "cuda" or "sim"; "bf16", "fp8", "fp8-ue8m0" or "opaque"; "compact", "view" or "expert-major";
 * "source" or "expert". */
bool afj_words_device(const char *word, uint32_t *kind, struct afj_why *why);
bool afj_words_dtype(const char *word, uint32_t *dtype, struct afj_why *why);
bool afj_words_receive(const char *word, uint32_t *layout, struct afj_why *why);
bool afj_words_duty(const char *word, uint32_t *duty, struct afj_why *why);
const char *afj_words_device_name(uint32_t kind);
const char *afj_words_dtype_name(uint32_t dtype);
const char *afj_words_receive_name(uint32_t layout);
const char *afj_words_duty_name(uint32_t duty);

/* NVLink domains: 1 is all there is so far. */
bool afj_words_domains(const char *word, struct afj_why *why);

/* 128 experts, or the largest multiple of the FFN ranks below it. */
uint32_t afj_words_default_experts(uint32_t ffn_ranks);

/* A comma list, split in place: `items` point into `text`. */
struct afj_list {
    char *text;
    char **items;
    size_t count;
};

/* Split `text`; refuses an empty item. Free with afj_words_list_finish, also after a refusal. */
bool afj_words_list(const char *name, const char *text, struct afj_list *list, struct afj_why *why);
void afj_words_list_finish(struct afj_list *list);

/* Make sure stdout was written. Returns an exit code. */
int afj_words_flush(const char *program);

/* The exit code that goes with a status. */
int afj_words_exit_code(afdep_status status);

#endif
