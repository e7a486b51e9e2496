# The library as users get it: one archive and one shared object of the same object files, with
# headers, a CMake package and a pkg-config file. Tools link the archive, tests the parts.
include(CMakePackageConfigHelpers)

set(lahar_objects)
foreach(part lahar_base lahar_io lahar_index lahar_engine)
  get_target_property(part_type ${part} TYPE)
  if(part_type STREQUAL "STATIC_LIBRARY")
    list(APPEND lahar_objects $<TARGET_OBJECTS:${part}>)
  endif()
endforeach()
set(lahar_headers append.h columns.h event.h filter.h follow.h ingest.h inspect.h lahar.h provenance.h query.h
     read.h
    status.h store.h)
list(TRANSFORM lahar_headers PREPEND ${PROJECT_SOURCE_DIR}/engine/include/lahar/)

add_library(lahar_static STATIC ${lahar_objects})
add_library(lahar_shared SHARED ${lahar_objects})
add_library(lahar::lahar ALIAS lahar_shared)
add_library(lahar::lahar_static ALIAS lahar_static)
foreach(target lahar_static lahar_shared)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME lahar LINKER_LANGUAGE C)
  target_sources(${target} PUBLIC FILE_SET HEADERS
                 BASE_DIRS ${PROJECT_SOURCE_DIR}/engine/include FILES ${lahar_headers})
endforeach()
# A package that ships no CMake file must not be needed by ours: plain library names.
target_link_libraries(lahar_static INTERFACE uring deflate pcre2-8 utf8proc xxhash pthread)
target_link_libraries(lahar_shared PRIVATE PkgConfig::liburing PkgConfig::libdeflate
                      PkgConfig::pcre2 PkgConfig::utf8proc PkgConfig::xxhash Threads::Threads)
# The soname changes when the ABI breaks and at no other time; each release that adds symbols
# adds a node to the version script.
set_target_properties(lahar_shared PROPERTIES EXPORT_NAME lahar VERSION ${PROJECT_VERSION}
                      SOVERSION 0 LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/lahar.map)
target_link_options(lahar_shared PRIVATE
                    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/lahar.map)
if(NOT LAHAR_SANITIZE AND NOT LAHAR_FUZZ)
  target_link_options(lahar_shared PRIVATE LINKER:--no-undefined)
endif()

set(lahar_cmake_directory ${CMAKE_INSTALL_LIBDIR}/cmake/lahar)
install(TARGETS lahar_static lahar_shared EXPORT lahar-targets FILE_SET HEADERS)
install(EXPORT lahar-targets NAMESPACE lahar:: DESTINATION ${lahar_cmake_directory})
configure_package_config_file(cmake/lahar-config.cmake.in lahar-config.cmake
                              INSTALL_DESTINATION ${lahar_cmake_directory})
write_basic_package_version_file(lahar-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lahar-config.cmake
              ${PROJECT_BINARY_DIR}/lahar-config-version.cmake
        DESTINATION ${lahar_cmake_directory})
# The prefix is found from where the file lies, so that a staged install can be used in place.
file(RELATIVE_PATH lahar_pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(cmake/lahar.pc.in lahar.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lahar.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
