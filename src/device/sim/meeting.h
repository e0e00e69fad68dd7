/* meeting.h: where the lanes of one warp meet: who waits at which collective, and who will not
 * come.
 */
#ifndef AFJ_SIM_MEETING_H
#define AFJ_SIM_MEETING_H

#include <stdint.h>

#include "host/ops.h"

/* Zero: all lanes are under way. */
struct afj_meeting {
    const char *places[AFJ_SIM_MOST_LANES]; /* where each lane waits or ended; NULL: under way */
    uint32_t values[AFJ_SIM_MOST_LANES];    /* what each brought */
    uint32_t results[AFJ_SIM_MOST_LANES];   /* what all brought to the last collective */
};

/* Places that are no collective of the warp. They are told from those by address. */
extern const char afj_at_barrier[], afj_at_end[];

/* Another lane of the warp, at a place where it cannot be meanwhile. */
struct afj_clash {
    const char *place; /* NULL: there is no such lane */
    uint32_t lane;
};

/* A lane under way comes to a place: one of the above, or a collective by its name, which must live
 * while the lane is there. Returns the lanes, a bit each, that go on from a collective now. */
uint32_t afj_meeting_come(struct afj_meeting *meeting, uint32_t lane, const char *place,
                          uint32_t value, struct afj_clash *clash);

/* A lane that waited at the barrier goes on. */
void afj_meeting_leave(struct afj_meeting *meeting, uint32_t lane);

#endif
