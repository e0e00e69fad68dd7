/* controls.c: the environment controls that change what is planned. */
#include "api/controls.h"

#include <string.h>

#include "base/env.h"

afdep_status afj_controls_read(struct afj_controls *controls)
{
    const char *fences = afj_env_get(AFJ_ENV_STRICT_FENCES);
    const char *routes = afj_env_get(AFJ_ENV_CHECK_ROUTES);
    if (strcmp(fences, "0") != 0 && strcmp(fences, "1") != 0)
        return afj_fail(AFDEP_ERROR_CONFIG, "AFDEP_STRICT_FENCES is \"%.32s\"; it must be 0 or 1",
                        fences);
    if (strcmp(routes, "off") != 0 && strcmp(routes, "count") != 0 && strcmp(routes, "error") != 0)
        return afj_fail(AFDEP_ERROR_CONFIG,
                        "AFDEP_CHECK_ROUTES is \"%.32s\"; it must be off, count or error", routes);
    *controls = (struct afj_controls){.shape = afj_env_get(AFJ_ENV_SHAPE),
                                      .strict_fences = fences[0] == '1',
                                      .check_routes = routes[0] != 'o'};
    return AFDEP_OK;
}

bool afj_controls_routes_fail(void) { return afj_env_get(AFJ_ENV_CHECK_ROUTES)[0] == 'e'; }
