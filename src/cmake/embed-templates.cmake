# embed-templates.cmake: write templates.c (src/jit/templates.h).
# In: DIRECTORY, FILES (paths relative to it, separated by commas), OUTPUT.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/c-string.cmake)
string(REPLACE "," ";" FILES "${FILES}")
list(LENGTH FILES count)

set(texts "")
set(entries "")
set(index 0)
foreach(path ${FILES})
  afdep_c_string(${DIRECTORY}/${path} literal)
  string(APPEND texts "\nstatic const char text_${index}[] = /* ${path} */\n    ${literal};\n")
  string(APPEND entries "    {\"${path}\", text_${index}, sizeof text_${index} - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(
  WRITE ${OUTPUT}
  "/* templates.c: the files under templates/. Written by src/cmake/embed-templates.cmake. */
#include \"jit/templates.h\"
${texts}
const struct afj_template afj_templates[] = {
${entries}};
const size_t afj_template_count = ${count};
")
