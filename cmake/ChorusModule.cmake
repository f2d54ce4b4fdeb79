# chorus_module(NAME plan [ROOMS low high] SRCS a.cpp b.cpp DEPS core [LIBS chorus_boost] [ALONE])
# chorus_tests(NAME plan SRCS a_test.cpp DEPS plan [OPTIMIZED] [EXHAUSTIVE])
# chorus_test_support(NAME plan [ROOMS low high] SRCS a.cpp DEPS plan): what several of them share, the module plan_testing
# for their DEPS
# chorus_binary(NAME chorus-worker SRCS main.cpp DEPS worker)
#
# DEPS are the architecture: tests/house/dependencies reads them from the build and refuses an include that they do
# not allow. A module NAME is the library chorus_NAME, alias chorus::NAME. SRCS are relative to the calling directory.
# ROOMS are folders of a module in one order: each may include those before it, and files beside the rooms may include all,
# or, where the order names `.`, those before it (tests/house/rooms). A room that links without the others is a module of
# its own instead.
#
# Tests are compiled without optimization, which takes half the time, unless OPTIMIZED: those that compute for seconds.
# EXHAUSTIVE: their cases in the suite "exhaustive" are a test of their own, plan_exhaustive, which tests/run plan leaves out.
#
# Presets that compile several files of a target as one (CMAKE_UNITY_BUILD) need half the time. ALONE is for targets whose
# files repeat each other's names by design: each of them stays one for the compiler.
set_property(GLOBAL PROPERTY CHORUS_DEPENDENCIES "")

# One line per target for tests/house: "kind name directory [dep,dep] [source,source] [room,room]".
function(_chorus_record kind name deps sources rooms)
  file(RELATIVE_PATH here ${chorus_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE ";" "," deps "${deps}")
  string(REPLACE ";" "," sources "${sources}")
  string(REPLACE ";" "," rooms "${rooms}")
  set_property(GLOBAL APPEND PROPERTY CHORUS_DEPENDENCIES "${kind} ${name} ${here} [${deps}] [${sources}] [${rooms}]")
endfunction()

function(_chorus_configure target)
  cmake_parse_arguments(A "" "ALONE;OPTIMIZED" "DEPS;LIBS" ${ARGN})
  if(A_ALONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_link_libraries(${target} PRIVATE chorus_flags)
  foreach(dep IN LISTS A_DEPS)
    target_link_libraries(${target} PUBLIC chorus::${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${A_LIBS})
  set(precompiled ${A_LIBS})
  list(FILTER precompiled INCLUDE REGEX "^chorus_(boost|test_support)$")
  if(precompiled)
    list(GET precompiled 0 precompiled)
    if(NOT A_OPTIMIZED AND TARGET ${precompiled}_unoptimized)
      set(precompiled ${precompiled}_unoptimized)
    endif()
    target_precompile_headers(${target} REUSE_FROM ${precompiled})
    # A precompiled header fits only the position independence it was made with: executables are compiled like libraries.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
  endif()
  if(NOT A_OPTIMIZED)
    _chorus_unoptimized(${target})
  endif()
endfunction()

# Sources whose optimization nobody would notice.
function(_chorus_unoptimized target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
endfunction()

function(chorus_module)
  cmake_parse_arguments(M "ALONE" "NAME" "ROOMS;SRCS;DEPS;LIBS" ${ARGN})
  add_library(chorus_${M_NAME} STATIC ${M_SRCS})
  add_library(chorus::${M_NAME} ALIAS chorus_${M_NAME})
  # A room is one for the compiler: most of the time goes into headers that all of its files include.
  set_target_properties(chorus_${M_NAME} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  _chorus_configure(chorus_${M_NAME} DEPS ${M_DEPS} LIBS ${M_LIBS} ALONE ${M_ALONE} OPTIMIZED ON)
  _chorus_record(module ${M_NAME} "${M_DEPS}" "${M_SRCS}" "${M_ROOMS}")
endfunction()

function(chorus_test_support)
  cmake_parse_arguments(S "ALONE;OPTIMIZED" "NAME" "ROOMS;SRCS;DEPS;LIBS" ${ARGN})
  add_library(chorus_${S_NAME}_testing STATIC EXCLUDE_FROM_ALL ${S_SRCS})
  add_library(chorus::${S_NAME}_testing ALIAS chorus_${S_NAME}_testing)
  _chorus_configure(chorus_${S_NAME}_testing DEPS ${S_DEPS} LIBS ${S_LIBS} doctest::doctest ALONE ${S_ALONE} OPTIMIZED ${S_OPTIMIZED})
  _chorus_record(support ${S_NAME}_testing "${S_DEPS}" "${S_SRCS}" "${S_ROOMS}")
endfunction()

function(chorus_tests)
  cmake_parse_arguments(T "ALONE;OPTIMIZED;EXHAUSTIVE" "NAME;TIMEOUT" "SRCS;DEPS;LIBS;LABELS" ${ARGN})
  add_executable(test_${T_NAME} ${T_SRCS} $<TARGET_OBJECTS:chorus_doctest_main>)
  _chorus_configure(test_${T_NAME} DEPS ${T_DEPS} LIBS ${T_LIBS} doctest::doctest ALONE ${T_ALONE} OPTIMIZED ${T_OPTIMIZED})
  set_target_properties(test_${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${chorus_BINARY_DIR}/tests)
  set(tests ${T_NAME})
  if(T_EXHAUSTIVE)
    add_test(NAME ${T_NAME} COMMAND test_${T_NAME} --test-suite-exclude=exhaustive)
    add_test(NAME ${T_NAME}_exhaustive COMMAND test_${T_NAME} --test-suite=exhaustive)
    list(APPEND tests ${T_NAME}_exhaustive)
  else()
    add_test(NAME ${T_NAME} COMMAND test_${T_NAME})
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  # A processor of CTest is half of one of the machine: stories wait for leases and deadlines most of the time.
  set(processors 2)
  if("e2e" IN_LIST T_LABELS)
    set(processors 1)
  endif()
  set_tests_properties(${tests} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" PROCESSORS ${processors})
  if(T_EXHAUSTIVE)
    set_tests_properties(${T_NAME}_exhaustive PROPERTIES LABELS "${T_LABELS};exhaustive")
  endif()
  _chorus_record(tests ${T_NAME} "${T_DEPS}" "${T_SRCS}" "")
endfunction()

function(chorus_binary)
  cmake_parse_arguments(B "" "NAME" "SRCS;DEPS;LIBS" ${ARGN})
  add_executable(${B_NAME} ${B_SRCS})
  _chorus_configure(${B_NAME} DEPS ${B_DEPS} LIBS ${B_LIBS} OPTIMIZED ON)
  _chorus_record(binary ${B_NAME} "${B_DEPS}" "${B_SRCS}" "")
endfunction()
