/* exchange.c: the verb `afdep-bench exchange`: run every cell of a sweep and report it. */
#include "bench/exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/record.h"
#include "bench/sweep.h"
#include "cli/document.h"

/* The worse of two exit codes: a failed machine over a wrong row. */
static int worse(int a, int b) { return a > b ? a : b; }

static int report_cell(const struct afj_sweep *sweep, const struct afj_cell *cell,
                       const char *command, json_t *list)
{
    int code = AFJ_EXIT_OK;
    if (sweep->json)
        json_array_append_new(list, afj_cell_describe(cell));
    else
        afj_cell_print(cell);
    if (!afj_tally_is_clean(&cell->tally)) {
        fprintf(stderr,
                AFJ_BENCH_PROGRAM ": %llu of %llu rows checked, %llu wrong, worst error %g; %s\n",
                (unsigned long long)cell->tally.checked, (unsigned long long)cell->tally.expected,
                (unsigned long long)cell->tally.wrong, cell->tally.worst_error, cell->tally.first);
        code = AFJ_EXIT_FAILED;
    }
    if (sweep->record != NULL && !afj_record_append(sweep->record, cell, command))
        code = AFJ_EXIT_FAILED;
    return code;
}

/* Run cells until one cannot be run at all. */
static int run_cells(struct afj_sweep *sweep, const char *command, json_t *list)
{
    int code = AFJ_EXIT_OK;
    for (size_t i = 0; i < sweep->count; i++) {
        char failure[700];
        afdep_status status = afj_cell_run(&sweep->cells[i], failure, sizeof failure);
        if (status != AFDEP_OK) {
            fprintf(stderr, AFJ_BENCH_PROGRAM ": %s\n", failure);
            return worse(code, afj_words_exit_code(status));
        }
        code = worse(code, report_cell(sweep, &sweep->cells[i], command, list));
    }
    return code;
}

/* One cell is the document itself; a sweep is a list in it. */
static int print_cells(const struct afj_sweep *sweep, json_t *list)
{
    json_t *document = afj_document_new("afdep-bench-exchange/1");
    if (sweep->count == 1 && json_array_size(list) == 1)
        json_object_update(document, json_array_get(list, 0));
    else
        json_object_set(document, "cells", list);
    return afj_document_print(AFJ_BENCH_PROGRAM, document);
}

int afj_bench_exchange(int argc, const char **argv)
{
    struct afj_sweep sweep;
    char *command = afj_record_command(argc, argv);
    int code = afj_sweep_read(argc - 1, argv + 1, &sweep);
    if (code >= 0) {
        free(command);
        return code;
    }
    json_t *list = json_array();
    if (command != NULL && list != NULL) {
        fprintf(stderr, AFJ_BENCH_PROGRAM ": seed %llu, device %s\n",
                (unsigned long long)sweep.cells[0].seed,
                afj_words_device_name(sweep.cells[0].config.device));
        if (!sweep.json)
            afj_cell_print_head();
        code = run_cells(&sweep, command, list);
        code = worse(code,
                     sweep.json ? print_cells(&sweep, list) : afj_words_flush(AFJ_BENCH_PROGRAM));
    } else {
        fprintf(stderr, AFJ_BENCH_PROGRAM ": no memory\n");
        code = AFJ_EXIT_FAILED;
    }
    json_decref(list);
    free(command);
    afj_sweep_finish(&sweep);
    return code;
}
