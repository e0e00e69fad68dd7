/* try.h: pass a failed status on. */
#ifndef AFJ_BENCH_TRY_H
#define AFJ_BENCH_TRY_H

#define TRY(call)                                                                                  \
    do {                                                                                           \
        afdep_status try_status_ = (call);                                                         \
        if (try_status_ != AFDEP_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

#endif
