# Compiler, linker, third-party packages and warnings: everything that is true of every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${chorus_BINARY_DIR}/bin)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# A compiler that collects its garbage only from a GiB on takes a tenth less time.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1048576>")
# No function is replaced by another of its name at run time, so those of the same file may be inlined all the same.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)

find_program(CHORUS_CCACHE ccache)
if(CHORUS_CCACHE)
  # Precompiled headers and ccache agree only with these two.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CHORUS_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
find_program(CHORUS_MOLD mold)
if(CHORUS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# So that a project that brings in this one finds what chorus::worker links.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(doctest REQUIRED)
find_path(CHORUS_XXHASH_INCLUDE xxhash.h REQUIRED)
find_package(PkgConfig REQUIRED)
# The macros that Debian built cpp-httplib with decide the layout of its classes: link PkgConfig::httplib, which brings
# them, never the bare library.
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET GLOBAL cpp-httplib)

option(CHORUS_CUDA "Build the CUDA reductions when a toolkit is found" ON)
include(CheckLanguage)
if(CHORUS_CUDA)
  check_language(CUDA)
  # To projects that ask for 3.25, the module of CMake 3.25 wants to say that libnvToolsExt is old, and ends the
  # configuration where a toolkit has none: none does from 13.0 on, nor without NVIDIA's package cuda-nvtx.
  block(PROPAGATE CUDAToolkit_VERSION)
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit QUIET)
  endblock()
endif()
set(CHORUS_HAVE_CUDA OFF)
if(NOT (CHORUS_CUDA AND CMAKE_CUDA_COMPILER AND TARGET CUDA::cudart_static))
  message(STATUS "CUDA: not found or switched off, CPU reductions only")
elseif(CUDAToolkit_VERSION VERSION_LESS 12.5)  # before it cudaGetDriverEntryPointByVersion is missing
  message(STATUS "CUDA: ${CUDAToolkit_VERSION} found, 12.5 or later is needed, CPU reductions only")
else()
  set(CHORUS_HAVE_CUDA ON)
  message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER}")
  # A GPU that has only PTX compiles it at its first reduction, for longer than peers wait for a worker that is silent.
  set(architectures 75 80 90)
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND architectures 100 120)
  endif()
  set(CHORUS_CUDA_ARCHITECTURES ${architectures} CACHE STRING "Architectures of GPUs, numbers; PTX of the last one is for later ones")
endif()

add_library(chorus_flags INTERFACE)
target_include_directories(chorus_flags INTERFACE ${chorus_SOURCE_DIR})
target_compile_options(chorus_flags INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast)
# Compiled as one, files see what others keep to themselves, and look to the compiler like headers: what these two warn of
# is told by what is compiled by itself (presets dev and lint).
if(CMAKE_UNITY_BUILD)
  target_compile_options(chorus_flags INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# With a consumer's own flags compilers warn of other things: that must not break its build.
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(chorus_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(chorus_flags INTERFACE -fcoroutines -Wno-mismatched-new-delete -Wno-maybe-uninitialized)
endif()

# Asio and Beast are compiled once, into this library, instead of into every file that includes them.
add_library(chorus_boost STATIC ${chorus_SOURCE_DIR}/cmake/boost_sources.cpp)
target_compile_definitions(chorus_boost PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  # Coroutine frames up to 1020 bytes are recycled per thread; more slots let several connections share a thread.
  BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=16
  # Larger ones come from operator new: glibc keeps no list of free blocks per thread for aligned_alloc, which takes six
  # times as long, and no frame wants more alignment than operator new gives.
  BOOST_ASIO_DISABLE_STD_ALIGNED_ALLOC BOOST_ASIO_DISABLE_BOOST_ALIGN)
target_link_libraries(chorus_boost PUBLIC Boost::headers Boost::json OpenSSL::SSL OpenSSL::Crypto Threads::Threads)
# One precompiled header for every module that speaks Asio, and one for their tests.
target_precompile_headers(chorus_boost PRIVATE ${chorus_SOURCE_DIR}/cmake/boost_precompiled.hpp)
target_link_libraries(chorus_boost PRIVATE chorus_flags)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND PROJECT_IS_TOP_LEVEL)
  add_library(chorus_boost_unoptimized OBJECT EXCLUDE_FROM_ALL ${chorus_SOURCE_DIR}/cmake/precompiled_only.cpp)
  target_precompile_headers(chorus_boost_unoptimized PRIVATE ${chorus_SOURCE_DIR}/cmake/boost_precompiled.hpp)
  target_link_libraries(chorus_boost_unoptimized PRIVATE chorus_boost chorus_flags)
  target_compile_options(chorus_boost_unoptimized PRIVATE -O0)
endif()
