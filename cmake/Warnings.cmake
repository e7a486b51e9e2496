# Warnings of our own code: an interface library, so that nothing leaks to users.
add_library(lahar_warnings INTERFACE)
target_compile_options(lahar_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wconversion -Wsign-conversion -Wcast-qual
  -Wwrite-strings -Wformat=2 -Wimplicit-fallthrough -Wdouble-promotion -Wnull-dereference
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
  $<$<C_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op>
  $<$<BOOL:${LAHAR_WERROR}>:-Werror>)
