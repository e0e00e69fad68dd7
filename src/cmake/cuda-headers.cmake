# cuda-headers.cmake: the target afdep-cuda-headers, for cuda.h and nvrtc.h, and where a copy of
# NVRTC lies that only this build knows of.
file(GLOB toolkits /usr/local/cuda /usr/local/cuda-*)
list(SORT toolkits COMPARE NATURAL ORDER DESCENDING)
foreach(header cuda nvrtc)
  find_path(
    AFDEP_${header}_INCLUDE_DIR
    NAMES ${header}.h
    HINTS ${CUDAToolkit_ROOT} ENV CUDA_PATH ENV CUDA_HOME
    PATHS ${toolkits} ${AFDEP_TOOLCHAIN_DIR}
    PATH_SUFFIXES include)
  mark_as_advanced(AFDEP_${header}_INCLUDE_DIR)
  if(NOT AFDEP_${header}_INCLUDE_DIR)
    message(FATAL_ERROR "${header}.h was not found: set CUDAToolkit_ROOT to a CUDA toolkit, or run "
                        "src/cmake/setup.sh, which puts the CUDA headers into build/toolchain")
  endif()
endforeach()

add_library(afdep-cuda-headers INTERFACE)
target_include_directories(afdep-cuda-headers SYSTEM INTERFACE ${AFDEP_cuda_INCLUDE_DIR}
                                                               ${AFDEP_nvrtc_INCLUDE_DIR})

set(AFDEP_NVRTC_FALLBACK_DIR "")
file(GLOB nvrtc_libraries ${AFDEP_TOOLCHAIN_DIR}/lib/libnvrtc.so.*)
if(nvrtc_libraries)
  set(AFDEP_NVRTC_FALLBACK_DIR ${AFDEP_TOOLCHAIN_DIR}/lib)
endif()
