/* record.h: records of measurements: a cell, the machine and the command, one JSON line each. */
#ifndef AFJ_BENCH_RECORD_H
#define AFJ_BENCH_RECORD_H

#include <stdbool.h>

#include "bench/cell.h"

/* The command as one would type it, its program without a folder. Free it; NULL without memory. */
char *afj_record_command(int argc, const char *const *argv);

/* Append the cell to the file. False with the reason on stderr. */
bool afj_record_append(const char *path, const struct afj_cell *cell, const char *command);

#endif
