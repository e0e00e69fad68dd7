/* meeting.c: a collective goes on when no lane of its warp is under way. */
#include "device/sim/meeting.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const char afj_at_barrier[] = "cta_any", afj_at_end[] = "its end";

static bool is_collective(const char *place)
{
    return place != NULL && place != afj_at_barrier && place != afj_at_end;
}

/* Whether two lanes of a warp may be at these places at once. As on hardware, a barrier of the CTA
 * does not wait for lanes that have ended; a collective of the warp waits for all lanes. */
static bool go_together(const char *a, const char *b)
{
    if (a == b || a == NULL || b == NULL)
        return true;
    if (is_collective(a) && is_collective(b))
        return strcmp(a, b) == 0;
    return !is_collective(a) && !is_collective(b);
}

/* A lane that is elsewhere counts as having brought 0: waiting for it would have no end. */
static uint32_t hold(struct afj_meeting *meeting)
{
    uint32_t going = 0;
    for (uint32_t i = 0; i < AFJ_SIM_MOST_LANES; i++) {
        const bool here = is_collective(meeting->places[i]);
        going |= (uint32_t)here << i;
        meeting->results[i] = here ? meeting->values[i] : 0;
        if (here)
            meeting->places[i] = NULL;
    }
    return going;
}

uint32_t afj_meeting_come(struct afj_meeting *meeting, uint32_t lane, const char *place,
                          uint32_t value, struct afj_clash *clash)
{
    bool under_way = false, anyone_waits = false;
    meeting->places[lane] = place;
    meeting->values[lane] = value;
    *clash = (struct afj_clash){0};
    for (uint32_t i = 0; i < AFJ_SIM_MOST_LANES; i++) {
        under_way = under_way || meeting->places[i] == NULL;
        anyone_waits = anyone_waits || is_collective(meeting->places[i]);
        if (clash->place == NULL && !go_together(place, meeting->places[i]))
            *clash = (struct afj_clash){meeting->places[i], i};
    }
    return anyone_waits && !under_way ? hold(meeting) : 0;
}

void afj_meeting_leave(struct afj_meeting *meeting, uint32_t lane) { meeting->places[lane] = NULL; }
