/* controls.h: the environment controls that change what is planned. */
#ifndef AFJ_API_CONTROLS_H
#define AFJ_API_CONTROLS_H

#include "plan/plan.h"

/* AFDEP_ERROR_CONFIG with a sentence that names a control whose value is not taken. */
afdep_status afj_controls_read(struct afj_controls *controls);

/* Whether AFDEP_CHECK_ROUTES also fails the calls after a bad route. */
bool afj_controls_routes_fail(void);

#endif
