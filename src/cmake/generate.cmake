# generate.cmake: the files that the build writes: embedded templates and schema, commit, version.
set(AFDEP_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(scripts ${PROJECT_SOURCE_DIR}/src/cmake)

configure_file(include/afdep/version.h.in ${AFDEP_GENERATED_DIR}/include/afdep/version.h @ONLY)

# Every template but templates/example, sorted by path. A new file is noticed by the next build.
set(template_dir ${PROJECT_SOURCE_DIR}/templates)
file(GLOB_RECURSE templates RELATIVE ${template_dir} CONFIGURE_DEPENDS ${template_dir}/*.cuh
     ${template_dir}/*.h)
list(FILTER templates EXCLUDE REGEX "^example/")
list(SORT templates COMPARE STRING)
list(TRANSFORM templates PREPEND ${template_dir}/ OUTPUT_VARIABLE template_files)
string(REPLACE ";" "," template_list "${templates}")
add_custom_command(
  OUTPUT ${AFDEP_GENERATED_DIR}/templates.c
  COMMAND ${CMAKE_COMMAND} -DDIRECTORY=${template_dir} -DFILES=${template_list}
          -DOUTPUT=${AFDEP_GENERATED_DIR}/templates.c -P ${scripts}/embed-templates.cmake
  DEPENDS ${template_files} ${scripts}/embed-templates.cmake ${scripts}/c-string.cmake
  COMMENT "Embedding the templates"
  VERBATIM)

set(schema ${PROJECT_SOURCE_DIR}/cache/schema.sql)
add_custom_command(
  OUTPUT ${AFDEP_GENERATED_DIR}/cache_schema.h
  COMMAND ${CMAKE_COMMAND} -DINPUT=${schema} -DOUTPUT=${AFDEP_GENERATED_DIR}/cache_schema.h -P
          ${scripts}/embed-schema.cmake
  DEPENDS ${schema} ${scripts}/embed-schema.cmake ${scripts}/c-string.cmake
  COMMENT "Embedding the schema of the catalogue"
  VERBATIM)

# Asked at every build, written only when the answer changes.
add_custom_target(
  afdep-commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
          -DOUTPUT=${AFDEP_GENERATED_DIR}/base/commit.h -P ${scripts}/write-commit.cmake
  BYPRODUCTS ${AFDEP_GENERATED_DIR}/base/commit.h
  COMMENT "Asking git for the commit"
  VERBATIM)
