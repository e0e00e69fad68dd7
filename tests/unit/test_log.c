/* test_log.c: the lines that AFDEP_LOG asks for. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "support/capture.h"

Test(log, writes_what_is_asked_for)
{
    setenv("AFDEP_LOG", "info", 1);
    begin_capture();
    afj_log(AFJ_LOG_WARN, "one %d", 1);
    afj_log(AFJ_LOG_INFO, "two");
    afj_log(AFJ_LOG_DEBUG, "three");
    end_capture();
    cr_expect_str_eq(captured, "afdep-jit: warning: one 1\nafdep-jit: two\n");
}

Test(log, off_is_silent)
{
    setenv("AFDEP_LOG", "off", 1);
    begin_capture();
    afj_log(AFJ_LOG_WARN, "one");
    end_capture();
    cr_expect_str_eq(captured, "");
}

Test(log, json_strings_hold_any_bytes)
{
    char expected[256];
    setenv("AFDEP_LOG", "warn:json", 1);
    snprintf(expected, sizeof expected,
             "{\"level\": \"warn\", \"pid\": %ld, \"message\": "
             "\"a \\\"b\\\" \\\\ \\n \\u0001 \xc3\xa9 \\ufffd\\ufffd\"}\n",
             (long)getpid());
    begin_capture();
    afj_log(AFJ_LOG_WARN, "%s", "a \"b\" \\ \n \x01 \xc3\xa9 \xff\xc3");
    end_capture();
    cr_expect_str_eq(captured, expected);
}

Test(log, a_value_that_is_no_level_is_said_once_and_means_warn)
{
    setenv("AFDEP_LOG", "loud", 1);
    begin_capture();
    afj_log(AFJ_LOG_INFO, "hidden");
    afj_log(AFJ_LOG_WARN, "shown");
    end_capture();
    const char *first = strstr(captured, "AFDEP_LOG is \"loud\"");
    cr_assert_not_null(first, "%s", captured);
    cr_expect_null(strstr(first + 1, "AFDEP_LOG is"));
    cr_expect_null(strstr(captured, "hidden"));
    cr_expect_not_null(strstr(captured, "afdep-jit: warning: shown\n"));
}

Test(log, a_long_line_is_whole)
{
    static char sentence[5000];
    memset(sentence, 'y', sizeof sentence - 1);
    begin_capture();
    afj_log(AFJ_LOG_WARN, "%s", sentence);
    end_capture();
    cr_expect_eq(strlen(captured), strlen("afdep-jit: warning: \n") + sizeof sentence - 1);
}

Test(log, warns_once_from_one_place)
{
    begin_capture();
    for (int i = 0; i < 3; ++i)
        AFJ_WARN_ONCE("again %d", i);
    end_capture();
    cr_expect_str_eq(captured, "afdep-jit: warning: again 0\n");
}
