/* consumer.c: a stranger's program: asks for a plan and checks what it is told. */
#include <afdep/afdep.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    afdep_config config = AFDEP_CONFIG_INIT;
    config.attention_ranks = 3;
    config.capacity = 100;
    afdep_plan plan = {.struct_size = sizeof plan};
    if (afdep_plan_query(&config, 0, &plan) != AFDEP_OK) {
        fprintf(stderr, "consumer: %s\n", afdep_last_error());
        return 1;
    }
    if (plan.role != AFDEP_ROLE_FFN || plan.inbox_rows != 300 || plan.kernel_count == 0) {
        fprintf(stderr, "consumer: role %u, %llu rows, %u kernels\n", plan.role,
                (unsigned long long)plan.inbox_rows, plan.kernel_count);
        return 1;
    }
    if (strcmp(afdep_version(), AFDEP_VERSION) != 0) {
        fprintf(stderr, "consumer: headers %s, library %s\n", AFDEP_VERSION, afdep_version());
        return 1;
    }
    config.hidden = 4100;
    if (afdep_plan_query(&config, 0, &plan) != AFDEP_ERROR_CONFIG || *afdep_last_error() == '\0') {
        fprintf(stderr, "consumer: a hidden size of 4100 is accepted\n");
        return 1;
    }
    printf("afdep-jit %s: %u kernels\n", afdep_version(), plan.kernel_count);
    return 0;
}
