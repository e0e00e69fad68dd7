# bundle-libraries.cmake: copy a shared library and what it needs beyond glibc. In: LIBRARY, DIRECTORY.
cmake_minimum_required(VERSION 3.25)
file(
  GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${LIBRARY}
  RESOLVED_DEPENDENCIES_VAR needed
  POST_EXCLUDE_REGEXES "/ld-linux[^/]*$" "/lib(c|m|dl|rt|pthread|resolv|nsl|anl|util)\\.so[^/]*$")
foreach(path ${LIBRARY} ${needed})
  file(COPY ${path} DESTINATION ${DIRECTORY} FOLLOW_SYMLINK_CHAIN)
endforeach()
file(WRITE ${DIRECTORY}/stamp "")
