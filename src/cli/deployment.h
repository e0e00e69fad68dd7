/* deployment.h: the deployments a command names, by flags (a grid) or by a file, as configs. */
#ifndef AFJ_CLI_DEPLOYMENT_H
#define AFJ_CLI_DEPLOYMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <afdep/config.h>

#include "cli/words.h"

/* What describes a deployment: field, name in a file and, with '-' for '_', as a flag. */
#define AFJ_FIELD_LIST(X)                                                                          \
    X(LAYOUT, "layout")                                                                            \
    X(DUTY, "duty")                                                                                \
    X(DOMAINS, "domains")                                                                          \
    X(HIDDEN, "hidden")                                                                            \
    X(DTYPE, "dtype")                                                                              \
    X(EXPERTS, "experts")                                                                          \
    X(TOP_K, "top_k")                                                                              \
    X(ARCH, "arch")                                                                                \
    X(LANES, "lanes")                                                                              \
    X(DEVICE, "device")                                                                            \
    X(CAPACITY, "capacity")                                                                        \
    X(PAYLOAD_BYTES, "payload_bytes")                                                              \
    X(IDS, "ids")                                                                                  \
    X(RECEIVE, "receive")                                                                          \
    X(ALIGNMENT, "alignment")                                                                      \
    X(COUNTS_FIRST, "counts_first")                                                                \
    X(HOST_COUNTS, "host_counts")                                                                  \
    X(REPLY_WEIGHTS, "reply_weights")                                                              \
    X(COLLECT_VIEW, "collect_view")

enum afj_field {
#define AFJ_FIELD_ENUM(field, name) AFJ_FIELD_##field,
    AFJ_FIELD_LIST(AFJ_FIELD_ENUM)
#undef AFJ_FIELD_ENUM
        AFJ_FIELD_COUNT
};

/* One value, or a comma list, for each field; NULL where nothing was said. Owned strings. */
struct afj_fields {
    char *value[AFJ_FIELD_COUNT];
};
void afj_fields_finish(struct afj_fields *fields);

/* One deployment and the duties wanted of it. */
struct afj_deployment {
    afdep_config config; /* config.arch points to `arch` or is NULL */
    char arch[16];
    uint32_t duties; /* bit (1 << afdep_duty) for each */
};

/* Distinct deployments in the order in which they were named. */
struct afj_deployments {
    struct afj_deployment **items; /* each on its own, so that config.arch stays valid */
    size_t count, capacity;
};
void afj_deployments_finish(struct afj_deployments *all);

/* Add the grid that the fields span. Every config is checked by the library. */
bool afj_deployments_add(struct afj_deployments *all, const struct afj_fields *fields,
                         struct afj_why *why);

/* Add each line of a deployment file, "-" for stdin. `fields` fill what a line leaves out. The
 * sentence begins with file:line. */
bool afj_deployments_read(struct afj_deployments *all, const char *path,
                          const struct afj_fields *fields, struct afj_why *why);

#endif
