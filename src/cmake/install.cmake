# install.cmake: make install, find_package(afdep-jit) and pkg-config work.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/afdep-jit)

install(
  TARGETS afdep-jit
  EXPORT afdep-jit-targets
  ARCHIVE
  LIBRARY
  FILE_SET HEADERS)
install(EXPORT afdep-jit-targets NAMESPACE afdep:: DESTINATION ${package_dir})
configure_package_config_file(src/cmake/afdep-jit-config.cmake.in afdep-jit-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(afdep-jit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/afdep-jit-config.cmake
              ${PROJECT_BINARY_DIR}/afdep-jit-config-version.cmake src/cmake/dependencies.cmake
        DESTINATION ${package_dir})

# A static library leaves its own libraries to whoever links it.
set(requires "Requires.private: sqlite3 libxxhash")
set(libs "Libs.private: -pthread -ldl")
if(NOT BUILD_SHARED_LIBS)
  set(requires "Requires: sqlite3 libxxhash")
  set(libs "")
endif()
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(src/cmake/afdep-jit.pc.in afdep-jit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/afdep-jit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(AFDEP_BUILD_PROGRAMS)
  install(FILES src/cli/afdep-compile.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
