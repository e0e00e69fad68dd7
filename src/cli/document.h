/* document.h: the JSON documents that programs print on stdout: their head, and printing them. */
#ifndef AFJ_CLI_DOCUMENT_H
#define AFJ_CLI_DOCUMENT_H

#include <jansson.h>

/* A new document with "schema", "version" and "commit"; NULL without memory. */
json_t *afj_document_new(const char *schema);

/* Print a document on stdout and release it. Returns an exit code: a failed write is said. */
int afj_document_print(const char *program, json_t *document);

#endif
