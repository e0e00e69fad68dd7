# dependencies.cmake: outside libraries as targets afdep::<name>. Also installed with the package.

# Find a library and its header; make the target afdep::<name>. With AFDEP_STATIC_DEPENDENCIES only
# the archive lib<name>.a counts, unless SHARED is given.
function(afdep_find_library name header)
  if(TARGET afdep::${name})
    return()
  endif()
  set(names ${name})
  set(variable AFDEP_${name}_LIBRARY)
  if(AFDEP_STATIC_DEPENDENCIES AND NOT "SHARED" IN_LIST ARGN)
    set(names lib${name}.a)
  endif()
  find_library(${variable} NAMES ${names})
  find_path(AFDEP_${name}_INCLUDE_DIR NAMES ${header})
  mark_as_advanced(${variable} AFDEP_${name}_INCLUDE_DIR)
  if(NOT ${variable} OR NOT AFDEP_${name}_INCLUDE_DIR)
    message(FATAL_ERROR "${name} was not found (${names} and ${header}); "
                        "src/cmake/setup.sh installs what the build needs")
  endif()
  add_library(afdep::${name} UNKNOWN IMPORTED)
  set_target_properties(
    afdep::${name} PROPERTIES IMPORTED_LOCATION "${${variable}}"
                              INTERFACE_INCLUDE_DIRECTORIES "${AFDEP_${name}_INCLUDE_DIR}")
  if(name STREQUAL "sqlite3" AND ${variable} MATCHES "\\.a$")
    set_target_properties(afdep::${name} PROPERTIES INTERFACE_LINK_LIBRARIES "m;${CMAKE_DL_LIBS}")
  endif()
endfunction()
