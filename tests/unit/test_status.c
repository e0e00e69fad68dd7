/* test_status.c: codes, names and this thread's sentence. */
#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>

#include "base/status.h"

Test(status, every_code_has_its_name_and_a_meaning)
{
#define CHECK_NAME(number, name, meaning)                                                          \
    cr_expect_str_eq(afdep_status_name((afdep_status)number), #name);                              \
    cr_expect_str_eq(afdep_status_text((afdep_status)number), meaning);
    AFDEP_STATUS_LIST(CHECK_NAME)
#undef CHECK_NAME
}

Test(status, a_number_that_is_no_code_has_a_name_too)
{
    cr_expect_str_eq(afdep_status_name((afdep_status)77), "AFDEP_ERROR_UNKNOWN");
    cr_expect(strlen(afdep_status_text((afdep_status)77)) > 0);
}

Test(status, fail_returns_the_code_and_keeps_the_sentence)
{
    cr_expect_str_eq(afdep_last_error(), "");
    cr_expect_eq(afj_fail(AFDEP_ERROR_CONFIG, "hidden is %d", 4100), AFDEP_ERROR_CONFIG);
    cr_expect_str_eq(afdep_last_error(), "hidden is 4100");
    afj_status_clear();
    cr_expect_str_eq(afj_status_sentence(), "");
}

Test(status, a_sentence_may_quote_the_one_before)
{
    afj_fail(AFDEP_ERROR_IO, "no such file");
    afj_fail(AFDEP_ERROR_LOAD, "an image does not load: %s", afj_status_sentence());
    cr_expect_str_eq(afdep_last_error(), "an image does not load: no such file");
}

Test(status, a_long_sentence_is_cut_and_says_so)
{
    char longest[3000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    afj_fail(AFDEP_ERROR_IO, "%s", longest);
    cr_expect_eq(strlen(afdep_last_error()), 1023);
    cr_expect_str_eq(afdep_last_error() + 1020, "...");
}

static void *fail_elsewhere(void *seen)
{
    *(size_t *)seen = strlen(afj_status_sentence());
    afj_fail(AFDEP_ERROR_MEMORY, "elsewhere");
    return NULL;
}

Test(status, each_thread_has_its_own_sentence)
{
    pthread_t thread;
    size_t seen = 1;
    afj_fail(AFDEP_ERROR_IO, "here");
    cr_assert_eq(pthread_create(&thread, NULL, fail_elsewhere, &seen), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(seen, 0);
    cr_expect_str_eq(afdep_last_error(), "here");
}

Test(status, the_library_says_what_it_is)
{
    cr_expect(strlen(afdep_version()) > 0);
    cr_expect(strlen(afdep_commit()) > 0);
}
