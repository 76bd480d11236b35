# `cmake --install` and CPack: what a user gets. scripts/package makes the packages, scripts/check_install looks at them.
include(GNUInstallDirs)

install(TARGETS classaccess LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT classaccess)
install(TARGETS classaccess_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT classaccess)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/classaccess" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT classaccess)
# The folders of the sources, so that the pages' links to each other hold.
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT classaccess)
install(FILES "${PROJECT_SOURCE_DIR}/agent/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}/agent" COMPONENT classaccess)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/agent/doc" DESTINATION "${CMAKE_INSTALL_DOCDIR}/agent" COMPONENT classaccess
  PATTERN "*.1" EXCLUDE)
install(FILES "${PROJECT_SOURCE_DIR}/agent/doc/classaccess.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
  COMPONENT classaccess)
# Where Debian's tools look for it.
set(copyright "")
foreach(part README.md sqlite.txt capstone.txt cli11.txt d3.txt gcc-runtime.txt)
  file(READ "${PROJECT_SOURCE_DIR}/agent/doc/licences/${part}" text)
  string(APPEND copyright "${text}\n----\n\n")
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/copyright" CONTENT "${copyright}" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/copyright" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT classaccess)
# Only in the archive.
install(FILES "${PROJECT_SOURCE_DIR}/scripts/packages/README" DESTINATION . COMPONENT archive EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME classaccess)
set(CPACK_PACKAGE_VENDOR "classaccess")
# A package that is handed on should name who answers for it: -DCLASSACCESS_MAINTAINER="Name <address>".
set(CLASSACCESS_MAINTAINER "classaccess maintainers <maintainers@classaccess.invalid>" CACHE STRING
  "Maintainer field of the Debian package")
set(CPACK_PACKAGE_CONTACT "${CLASSACCESS_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "records every load and store of a Java program's classes")
set(CPACK_PACKAGE_DESCRIPTION "An agent for HotSpot (JDK 17, 21 and 25) and a command that starts, controls and reports
its recordings: which field or array element, which thread, which method and line, load or store, how often, when.
It needs no change to the program and writes one SQLite database.")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/scripts/packages/cpack.cmake")
include(CPack)
