# embed-schema.cmake: write cache_schema.h. In: INPUT, OUTPUT.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/c-string.cmake)
afdep_c_string(${INPUT} literal)
string(REPLACE "\n" " \\\n" literal "${literal}")
file(
  WRITE ${OUTPUT}
  "/* cache_schema.h: the text of cache/schema.sql. Written by src/cmake/embed-schema.cmake. */
#ifndef AFJ_CACHE_SCHEMA_H
#define AFJ_CACHE_SCHEMA_H

#define AFJ_CACHE_SCHEMA \\
    ${literal}

#endif
")
