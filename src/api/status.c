/* status.c: the exported calls that name and explain statuses. */
#include <afdep/status.h>
#include <afdep/version.h>

#include "base/commit.h"
#include "base/status.h"

const char *afdep_status_name(afdep_status status)
{
    switch (status) {
#define AFJ_STATUS_NAME(number, name, meaning)                                                     \
    case name:                                                                                     \
        return #name;
        AFDEP_STATUS_LIST(AFJ_STATUS_NAME)
#undef AFJ_STATUS_NAME
    }
    return "AFDEP_ERROR_UNKNOWN";
}

const char *afdep_status_text(afdep_status status)
{
    switch (status) {
#define AFJ_STATUS_TEXT(number, name, meaning)                                                     \
    case name:                                                                                     \
        return meaning;
        AFDEP_STATUS_LIST(AFJ_STATUS_TEXT)
#undef AFJ_STATUS_TEXT
    }
    return "a status that this library does not know";
}

const char *afdep_last_error(void)
{
    return afj_status_sentence();
}

const char *afdep_version(void)
{
    return AFDEP_VERSION;
}

const char *afdep_commit(void)
{
    return AFDEP_COMMIT;
}
