/* stdint.h: the fixed-width types, for NVRTC, which has no system headers. */
#ifndef AFJ_RTC_STDINT_H
#define AFJ_RTC_STDINT_H

typedef signed int int32_t;
typedef unsigned int uint32_t;
typedef unsigned short uint16_t;
typedef unsigned char uint8_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

#endif
