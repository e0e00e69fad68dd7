/* record.c: records of measurements: a cell, the machine and the command, one JSON line each. */
#include "bench/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/document.h"
#include "cli/words.h"

/* "model name" of the first CPU; "" if the system does not say. */
static void read_cpu(char *name, size_t size)
{
    char line[256];
    name[0] = '\0';
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (file == NULL)
        return;
    while (name[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        snprintf(name, size, "%s", value + 2);
        name[strcspn(name, "\n")] = '\0';
    }
    fclose(file);
}

/* The cell's GPU once for each device it used. */
static json_t *list_gpus(const struct afj_cell *cell)
{
    json_t *gpus = json_array();
    const uint32_t ranks =
        cell->config.attention_ranks + cell->config.ffn_ranks - cell->config.both_ranks;
    for (uint32_t i = 0; i < ranks && cell->gpu[0] != '\0'; i++) {
        bool first = true;
        for (uint32_t j = 0; j < i; j++)
            first = first && cell->devices[j] != cell->devices[i];
        if (first)
            json_array_append_new(gpus, json_string(cell->gpu));
    }
    return gpus;
}

static json_t *describe_machine(const struct afj_cell *cell)
{
    char cpu[128];
    read_cpu(cpu, sizeof cpu);
    afdep_environment environment = {.struct_size = sizeof environment};
    const bool known = afdep_cache_environment(&environment) == AFDEP_OK;
    return json_pack("{s:o, s:s, s:s, s:s, s:n, s:s}", "gpus", list_gpus(cell), "driver",
                     known ? environment.driver_note : "", "nvrtc",
                     known ? environment.nvrtc_version : "", "nvrtc_build_id",
                     known ? environment.nvrtc_build_id : "", "nccl", "cpu", cpu);
}

char *afj_record_command(int argc, const char *const *argv)
{
    size_t room = 1;
    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]) + 1;
    char *command = malloc(room);
    if (command == NULL)
        return NULL;
    char *end = command;
    for (int i = 0; i < argc; i++) {
        const char *folder = i == 0 ? strrchr(argv[0], '/') : NULL;
        end = stpcpy(end, folder != NULL ? folder + 1 : argv[i]);
        *end++ = i + 1 < argc ? ' ' : '\0';
    }
    *end = '\0';
    return command;
}

bool afj_record_append(const char *path, const struct afj_cell *cell, const char *command)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *record = afj_document_new("afdep-bench-exchange/1");
    json_object_update_new(record, afj_cell_describe(cell));
    json_object_update_new(record, json_pack("{s:s, s:o, s:s}", "date", date, "machine",
                                             describe_machine(cell), "command", command));
    char *line = json_dumps(record, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(record);
    FILE *file = line == NULL ? NULL : fopen(path, "ae");
    bool good = file != NULL && fprintf(file, "%s\n", line) > 0;
    good = (file == NULL || fclose(file) == 0) && good;
    if (!good)
        fprintf(stderr, "afdep-bench: %s: %s\n", path, strerror(errno));
    free(line);
    return good;
}
