/* fake_driver.c: a libcuda.so.1 of a machine that the tests do not run on. Each call does nothing.
 * FAKE_DRIVER_no_device: one that finds no GPU; FAKE_DRIVER_old: one that is older than cuda.h. */
#include "device/cuda_driver.h"

#if defined(FAKE_DRIVER_no_device)
enum { RESULT = CUDA_ERROR_NO_DEVICE };
#else
enum { RESULT = CUDA_SUCCESS };
#undef cuEventElapsedTime
#endif

__attribute__((used)) CUresult afj_fake_call(void);
CUresult afj_fake_call(void) { return (CUresult)RESULT; }

/* Names for it, without the types that cuda.h has declared them with. */
#define SYMBOL_OF(name) #name
#define SYMBOL(name) SYMBOL_OF(name)
#define DEFINE(name)                                                                               \
    __asm__(".globl " SYMBOL(name) "\n.type " SYMBOL(name) ", %function\n.set " SYMBOL(            \
        name) ", afj_fake_call\n");
AFJ_CUDA_CALLS(DEFINE)
