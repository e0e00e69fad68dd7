# bundle-libraries.cmake: copy shared libraries and what they need beyond glibc.
# In: LIBRARIES (separated by commas), DIRECTORY.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" LIBRARIES "${LIBRARIES}")
file(
  GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${LIBRARIES}
  RESOLVED_DEPENDENCIES_VAR needed
  POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv|nsl|anl|util)\\.so[^/]*$")
foreach(path ${LIBRARIES} ${needed})
  file(COPY ${path} DESTINATION ${DIRECTORY} FOLLOW_SYMLINK_CHAIN)
endforeach()
file(WRITE ${DIRECTORY}/stamp "")
