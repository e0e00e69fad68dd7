# c-string.cmake: a file's text as a C string literal, one source line a line.
function(afdep_c_string path variable)
  file(READ ${path} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # C11 has trigraphs
  string(REPLACE "\t" "\\t" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  set(text "\"${text}\"")
  string(REGEX REPLACE "\n    \"\"$" "" text "${text}")
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()
