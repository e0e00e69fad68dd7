/* status.c: the exported calls on statuses, and what this library is. */
#include <afdep/status.h>
#include <afdep/version.h>

#include "base/commit.h"
#include "base/status.h"

const char *afdep_status_name(afdep_status status)
{
    switch (status) {
#define NAME_CASE(number, name, meaning)                                                           \
    case name:                                                                                     \
        return #name;
        AFDEP_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "AFDEP_ERROR_UNKNOWN";
}

const char *afdep_status_text(afdep_status status)
{
    switch (status) {
#define TEXT_CASE(number, name, meaning)                                                           \
    case name:                                                                                     \
        return meaning;
        AFDEP_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "a status that this library does not know";
}

const char *afdep_last_error(void) { return afj_status_sentence(); }

const char *afdep_version(void) { return AFDEP_VERSION; }

const char *afdep_commit(void) { return AFDEP_COMMIT; }
