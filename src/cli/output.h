/* output.h: pieces of text and JSON that several verbs of afdep-compile print. */
#ifndef AFJ_CLI_OUTPUT_H
#define AFJ_CLI_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <afdep/cache.h>

#include "cli/deployment.h"

/* Room for afj_output_bytes and afj_output_layout. */
struct afj_phrase {
    char text[32];
};

/* "512 B", "17.2 MiB". */
struct afj_phrase afj_output_bytes(uint64_t bytes);
/* "2A2F". */
struct afj_phrase afj_output_layout(const afdep_config *config);
/* The architecture the kernels are for: what was asked, else the default of the device. */
const char *afj_output_arch(const afdep_config *config);

/* Text for a terminal or a document: what is no UTF-8 becomes "?", and so do control bytes. NULL
 * without memory; json_string_value gives the text. */
json_t *afj_output_text(const char *text);

/* An object of the cache, all but its manifest; NULL without memory. */
json_t *afj_output_entry(const afdep_cache_entry *entry);

/* A deployment as an object of the fields that deployment files have; NULL without memory. */
json_t *afj_output_deployment(const struct afj_deployment *deployment);

#endif
