/* stdint.h: the fixed-width types, for the host compiler, which has them. */
#ifndef AFJ_HOST_STDINT_H
#define AFJ_HOST_STDINT_H

#include <stdint.h>

#endif
