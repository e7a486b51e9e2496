#!/bin/bash
# Sourced by the case files, which define functions named case_SENTENCE and end with
# run_cases. Each case runs in a subshell in a scratch directory of its own, removed when it
# passes and named when it fails. LAHAR and LAHAR_LOAD are the programs.
set -u
export LC_ALL=C TZ=UTC
unset NO_COLOR

: "${LAHAR:?the lahar program}" "${LAHAR_LOAD:?the lahar-load program}"

# run COMMAND...: keeps standard output in ./out, standard error in ./err, the status in $status.
run()
{
    ran="$*"
    "$@" >out 2>err
    status=$?
}

fail()
{
    printf '  %s\n' "$1"
    printf '  command: %s\n  status: %s\n' "${ran-}" "${status-}"
    sed 's/^/  out: /' out | head -n 20
    sed 's/^/  err: /' err | head -n 20
    exit 1
}

skip()
{
    printf '  skipped: %s\n' "$1"
    exit 77
}

expect_status()
{
    [ "$status" = "$1" ] || fail "expected status $1"
}

# The whole of standard output.
expect_out()
{
    [ "$(cat out)" = "$1" ] || fail "expected the output: $1"
}

expect_out_has()
{
    grep -qF -e "$1" out || fail "expected in the output: $1"
}

expect_out_has_not()
{
    ! grep -qF -e "$1" out || fail "not expected in the output: $1"
}

expect_out_lines()
{
    [ "$(wc -l <out)" = "$1" ] || fail "expected $1 lines of output"
}

expect_err_has()
{
    grep -qF -e "$1" err || fail "expected on standard error: $1"
}

expect_err_empty()
{
    [ ! -s err ] || fail "expected nothing on standard error"
}

# expect_json EXPRESSION: Python over `lines`, the JSON objects of ./out; it has to be true.
expect_json()
{
    python3 - "$1" <<'E2' || fail "expected of the JSON: $1"
import json, sys
lines = [json.loads(line) for line in open("out", encoding="utf-8")]
sys.exit(0 if eval("(" + sys.argv[1] + ")") else 1)
E2
}

# ok COMMAND...: part of the preparation, which has to work.
ok()
{
    run "$@"
    [ "$status" = 0 ] || fail "expected status 0"
}

# as_nobody COMMAND...: without root's right to pass every permission bit.
as_nobody()
{
    [ "$(id -u)" = 0 ] || skip "only root can drop its rights for one program"
    command -v setpriv >/dev/null || skip "setpriv is not installed"
    run setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

run_cases()
{
    local passed=0 failed=0 skipped=0 name scratch result
    for name in $(compgen -A function case_); do
        scratch=$(mktemp -d "${TMPDIR:-/tmp}/lahar-cli-XXXXXX") || exit 1
        (cd "$scratch" && : >out && : >err && "$name" && exit 0)
        result=$?
        case $result in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *)
            failed=$((failed + 1))
            echo "FAILED ${name#case_}, in $scratch"
            continue
            ;;
        esac
        rm -rf "$scratch"
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ $((passed + skipped)) -gt 0 ]
    exit
}
