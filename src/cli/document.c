/* document.c: the JSON documents that programs print on stdout: their head, and printing them. */
#include "cli/document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <afdep/status.h>

#include "cli/words.h"

json_t *afj_document_new(const char *schema)
{
    return json_pack("{s:s, s:s, s:s}", "schema", schema, "version", afdep_version(), "commit",
                     afdep_commit());
}

int afj_document_print(const char *program, json_t *document)
{
    if (document == NULL) {
        fprintf(stderr, "%s: no memory for the JSON document\n", program);
        return AFJ_EXIT_FAILED;
    }
    int failed = json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(document);
    if (failed != 0 || putchar('\n') == EOF) {
        fprintf(stderr, "%s: cannot write to stdout: %s\n", program, strerror(errno));
        return AFJ_EXIT_FAILED;
    }
    return afj_words_flush(program);
}
