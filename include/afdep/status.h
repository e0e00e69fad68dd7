/* status.h: what a call can answer, and the sentence that goes with it. */
#ifndef AFDEP_STATUS_H
#define AFDEP_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define AFDEP_API __attribute__((visibility("default")))
#else
#define AFDEP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Every status: number, name, meaning. Numbers are fixed for ever and grouped by what the caller
 * still has: 1-9 caller mistakes (everything is as before the call), 10-19 the machine, 20-29
 * kernels, 30-39 peers (the buffer can only be destroyed), 90 a fault of the library.
 */
#define AFDEP_STATUS_LIST(X)                                                                       \
    X(0, AFDEP_OK, "the call did what it says")                                                    \
    X(1, AFDEP_ERROR_ARGUMENT, "an argument is NULL or out of range")                              \
    X(2, AFDEP_ERROR_CONFIG, "a config field is out of range")                                     \
    X(3, AFDEP_ERROR_ROLE, "this rank's role does not make this call")                             \
    X(4, AFDEP_ERROR_ORDER, "the calls of a lane came in the wrong order")                         \
    X(5, AFDEP_ERROR_TOKENS, "more tokens than the bucket, or a bucket over the capacity")         \
    X(6, AFDEP_ERROR_CLOSED, "the buffer is closed")                                               \
    X(10, AFDEP_ERROR_MEMORY, "the host or the device has no memory left")                         \
    X(11, AFDEP_ERROR_DRIVER_MISSING, "no CUDA driver library could be opened")                    \
    X(12, AFDEP_ERROR_DEVICE, "no such device, or the device refused")                             \
    X(13, AFDEP_ERROR_COMPILER_MISSING, "no compiler for this device could be found")              \
    X(14, AFDEP_ERROR_RESOURCES, "more than the device can run at once")                           \
    X(15, AFDEP_ERROR_IO, "a file or directory could not be used")                                 \
    X(20, AFDEP_ERROR_COMPILE, "a kernel does not compile")                                        \
    X(21, AFDEP_ERROR_LOAD, "the device does not load an image")                                   \
    X(30, AFDEP_ERROR_TIMEOUT, "a peer did not send in time")                                      \
    X(31, AFDEP_ERROR_HANDSHAKE, "two ranks were created with different settings")                 \
    X(32, AFDEP_ERROR_ROUTES, "an attention rank dispatched bad routes")                           \
    X(90, AFDEP_ERROR_INTERNAL, "the library broke a rule of its own")

/** A status. `AFDEP_OK` is 0; everything else is a failure. */
typedef enum afdep_status {
#define AFDEP_STATUS_ENUM(number, name, meaning) name = number,
    AFDEP_STATUS_LIST(AFDEP_STATUS_ENUM)
#undef AFDEP_STATUS_ENUM
} afdep_status;

/**
 * Name a status, for instance "AFDEP_ERROR_CONFIG".
 * @param status any number.
 * @return a static string; "AFDEP_ERROR_UNKNOWN" for a number that is not in the list.
 */
AFDEP_API const char *afdep_status_name(afdep_status status);

/**
 * Say what a status means, in a few words.
 * @param status any number.
 * @return a static string.
 */
AFDEP_API const char *afdep_status_text(afdep_status status);

/**
 * One English sentence about this thread's last failed call, with the values in it.
 * Every exported call that returns a status clears it on entry.
 * @return a string of this thread, valid until its next call; empty after a success.
 */
AFDEP_API const char *afdep_last_error(void);

/** The library's version, for instance "0.1.0". */
AFDEP_API const char *afdep_version(void);

/** The commit that the library was built from, with "-dirty" where the tree had changes. */
AFDEP_API const char *afdep_commit(void);

#ifdef __cplusplus
}
#endif

#endif
