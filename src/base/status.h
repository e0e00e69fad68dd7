/* status.h: one code and one sentence for each failure, written where it is first understood. */
#ifndef AFJ_BASE_STATUS_H
#define AFJ_BASE_STATUS_H

#include <afdep/status.h>

/* Return from the calling function if `call` fails. */
#define AFJ_TRY(call)                                                                              \
    do {                                                                                           \
        afdep_status afj_status_ = (call);                                                         \
        if (afj_status_ != AFDEP_OK)                                                               \
            return afj_status_;                                                                    \
    } while (0)

/* Set this thread's sentence and return `code`. */
__attribute__((format(printf, 2, 3))) afdep_status afj_fail(afdep_status code, const char *format,
                                                            ...);

/* Forget this thread's sentence. Exported calls begin with it. */
void afj_status_clear(void);

/* This thread's sentence; never NULL. A worker's sentence is handed to its caller with it. */
const char *afj_status_sentence(void);

#endif
