/* main.c: runs the suites of this folder where there is a GPU; elsewhere says why not, exit 77. */
#include <criterion/criterion.h>
#include <stdio.h>

#include <afdep/device.h>

enum { SKIPPED = 77 };

int main(int argc, char **argv)
{
    uint32_t count = 0;
    if (afdep_device_count(AFDEP_DEVICE_CUDA, &count) != AFDEP_OK || count == 0) {
        const char *reason = afdep_last_error();
        printf("skipped: %s\n", *reason != '\0' ? reason : "there is no GPU");
        return SKIPPED;
    }
    struct criterion_test_set *tests = criterion_initialize();
    int failed = 0;
    if (criterion_handle_args(argc, argv, true))
        failed = criterion_run_all_tests(tests) == 0;
    criterion_finalize(tests);
    return failed;
}
