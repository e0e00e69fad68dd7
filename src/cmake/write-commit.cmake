# write-commit.cmake: write base/commit.h, but only if the commit changed. In: SOURCE, OUTPUT.
cmake_minimum_required(VERSION 3.25)
set(commit "unknown")
find_program(git NAMES git)
if(git)
  # A release archive may lie inside somebody else's repository: its commit is not ours.
  execute_process(
    COMMAND ${git} rev-parse --show-prefix HEAD
    WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE answer
    RESULT_VARIABLE failed
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed AND answer MATCHES "^\n([0-9a-f]+)$")
    set(commit "${CMAKE_MATCH_1}")
    execute_process(
      COMMAND ${git} status --porcelain
      WORKING_DIRECTORY ${SOURCE}
      OUTPUT_VARIABLE changes
      RESULT_VARIABLE failed
      ERROR_QUIET)
    if(failed OR changes)
      string(APPEND commit "-dirty")
    endif()
  endif()
endif()

file(
  CONFIGURE
  OUTPUT ${OUTPUT}
  CONTENT "/* commit.h: what this was built from. Written by src/cmake/write-commit.cmake. */
#ifndef AFJ_BASE_COMMIT_H
#define AFJ_BASE_COMMIT_H

#define AFDEP_COMMIT \"@commit@\"

#endif
"
  @ONLY)
