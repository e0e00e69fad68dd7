/* afdep.h: everything: the Attention-FFN exchange of libafdep-jit. */
#ifndef AFDEP_H
#define AFDEP_H

#include <afdep/buffer.h>
#include <afdep/cache.h>
#include <afdep/config.h>
#include <afdep/device.h>
#include <afdep/status.h>
#include <afdep/version.h>

#endif
