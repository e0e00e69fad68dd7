/* buffer.c: the exported calls on buffers: clear the error, refuse NULL, call down. */
#include <afdep/buffer.h>

#include "api/create.h"
#include "base/status.h"
#include "exchange/buffer.h"

static afdep_status enter(const void *object, const char *name)
{
    afj_status_clear();
    return object ? AFDEP_OK : afj_fail(AFDEP_ERROR_ARGUMENT, "%s is NULL", name);
}

afdep_status afdep_buffer_create(afdep_group *group, const afdep_config *config,
                                 afdep_buffer **buffers)
{
    AFJ_TRY(enter(group, "group"));
    AFJ_TRY(enter(buffers, "buffers"));
    const afdep_config *configs[AFDEP_MAX_RANKS];
    for (uint32_t r = 0; r < AFDEP_MAX_RANKS; ++r)
        configs[r] = config;
    return afj_create_buffers(group, configs, buffers);
}

afdep_status afdep_buffer_create_each(afdep_group *group, const afdep_config *const *configs,
                                      afdep_buffer **buffers)
{
    AFJ_TRY(enter(group, "group"));
    AFJ_TRY(enter(configs, "configs"));
    AFJ_TRY(enter(buffers, "buffers"));
    return afj_create_buffers(group, configs, buffers);
}

afdep_status afdep_buffer_close(afdep_buffer *buffer)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_buffer_close(buffer);
}

void afdep_buffer_destroy(afdep_buffer *buffer) { afj_buffer_free(buffer); }

afdep_status afdep_buffer_check(const afdep_buffer *buffer)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_buffer_check(buffer);
}

afdep_status afdep_buffer_counts(const afdep_buffer *buffer, uint32_t lane, afdep_counts *counts)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_expert_counts(buffer, lane, counts);
}

afdep_status afdep_buffer_view(const afdep_buffer *buffer, uint32_t lane, afdep_role role,
                               afdep_view *view)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_buffer_view(buffer, lane, (uint32_t)role, view);
}

afdep_status afdep_buffer_route_faults(const afdep_buffer *buffer, afdep_route_faults *faults)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_source_faults(buffer, faults);
}

afdep_status afdep_dispatch(afdep_buffer *buffer, const afdep_dispatch_args *args,
                            afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_source_dispatch(buffer, args, stream);
}

afdep_status afdep_receive_counts(afdep_buffer *buffer, const afdep_receive_args *args,
                                  afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_expert_receive_counts(buffer, args, stream);
}

afdep_status afdep_receive(afdep_buffer *buffer, const afdep_receive_args *args,
                           afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_expert_receive(buffer, args, stream);
}

afdep_status afdep_reply(afdep_buffer *buffer, const afdep_reply_args *args, afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_expert_reply(buffer, args, stream);
}

afdep_status afdep_collect(afdep_buffer *buffer, const afdep_collect_args *args,
                           afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_source_collect(buffer, args, stream);
}

afdep_status afdep_scale(afdep_buffer *buffer, const afdep_scale_args *args, afdep_stream stream)
{
    AFJ_TRY(enter(buffer, "buffer"));
    return afj_expert_scale(buffer, args, stream);
}
