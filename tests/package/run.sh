#!/bin/bash
# run.sh BUILD_DIRECTORY VERSION: installs into a scratch directory and builds programs against
# what is there: with pkg-config, shared and static, and with find_package, in C and in C++. The
# C program is the example of README.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1 version=$2
passed=0 failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/lahar-package-XXXXXX") || exit 1
stage=$scratch/stage
warnings="-Wall -Wextra -Wpedantic -Werror"

# check NAME COMMAND...
check()
{
    local name=$1
    shift
    if "$@" >"$scratch/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name: $*"
        cat "$scratch/log"
    fi
}

# works PROGRAM: it runs in a directory of its own, and says what it should.
works()
{
    local program=$1
    rm -rf "$scratch/run" && mkdir "$scratch/run" && cd "$scratch/run" || return 1
    "$program" >out || return 1
    case $program in
    *c_*) [ -s out ] ;;
    esac
}

check "install" cmake --install "$build" --prefix "$stage"
library=$(dirname "$(find "$stage" -name 'liblahar.so' | head -n 1)")
export PKG_CONFIG_PATH=$library/pkgconfig LD_LIBRARY_PATH=$library
cd "$scratch" || exit 1

# The first block of C in the README.
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$here/../../README.md" >example.c
check "the README has an example" test -s example.c
cp "$here/consumer.cpp" "$scratch/"
cp "$here/CMakeLists.consumer.txt" "$scratch/CMakeLists.txt"
define="-DCONSUMER_VERSION=\"$version\""

# shellcheck disable=SC2046,SC2086
{
    check "pkg-config, version" test "$(pkg-config --modversion lahar)" = "$version"
    check "pkg-config, shared, C" cc -std=c17 $warnings -o c_shared example.c \
        $(pkg-config --cflags --libs lahar)
    check "pkg-config, shared, C++" c++ -std=c++17 $warnings "$define" -o cxx_shared consumer.cpp \
        $(pkg-config --cflags --libs lahar)
    static=$(pkg-config --static --cflags --libs lahar | sed 's/-llahar/-l:liblahar.a/')
    check "pkg-config, static, C" cc -std=c17 $warnings -o c_static example.c $static
    check "pkg-config, static, C++" c++ -std=c++17 $warnings "$define" -o cxx_static consumer.cpp \
        $static
}
for program in c_shared cxx_shared c_static cxx_static; do
    check "run $program" works "$scratch/$program"
done
check "the static program needs no liblahar.so" \
    bash -c "! ldd '$scratch/c_static' | grep -q liblahar"

check "find_package, configure" cmake -S "$scratch" -B "$scratch/build" \
    -DCMAKE_PREFIX_PATH="$stage" -DCONSUMER_VERSION="$version"
check "find_package, build" cmake --build "$scratch/build"
for program in c_lahar cxx_lahar c_lahar_static cxx_lahar_static; do
    check "run $program" works "$scratch/build/$program"
done

# What is installed holds no path of where it was built.
check "no build paths" bash -c "! grep -rIl '$build' '$stage/include' '$library/pkgconfig' '$library/cmake'"
check "the installed lahar works" "$stage/bin/lahar" --version
check "man pages are installed" test -e "$stage/share/man/man1/lahar.1"

[ "$failed" = 0 ] && rm -rf "$scratch"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
