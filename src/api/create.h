/* create.h: how a group's buffers come to be: plan, obtain, load, connect. */
#ifndef AFJ_API_CREATE_H
#define AFJ_API_CREATE_H

#include <afdep/buffer.h>

/* See afdep_buffer_create_each. */
afdep_status afj_create_buffers(struct afdep_group *group, const afdep_config *const *configs,
                                afdep_buffer **buffers);

#endif
