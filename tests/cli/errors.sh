#!/bin/bash
# What goes wrong around a store, and how it is said.
. "$(dirname "$0")/harness.sh"

case_a_missing_store_is_an_io_error()
{
    for verb in query scan stat verify export; do
        run "$LAHAR" $verb nowhere
        expect_status 3
        expect_err_has "nowhere"
        expect_out ""
    done
    [ ! -e nowhere ] || fail "a reading verb created the directory"
}

case_a_directory_of_something_else_is_no_store()
{
    mkdir home
    echo "my file" >home/letter.txt
    echo x >a.log
    run "$LAHAR" query home
    expect_status 3
    run "$LAHAR" ingest home a.log
    expect_status 3
    [ "$(ls home)" = letter.txt ] || fail "the directory was touched"
}

# Starts a writer that holds the store until its input, descriptor 9, is closed.
start_writer()
{
    mkfifo pipe
    "$LAHAR" ingest store - "$@" <pipe >writer.out 2>writer.err &
    exec 9>pipe
    for _ in $(seq 100); do
        "$LAHAR" stream list store 2>/dev/null | grep -q '^log' && return
        sleep 0.05
    done
    fail "the writer did not begin"
}

stop_writer()
{
    exec 9>&-
    wait
}

case_a_second_writer_is_refused()
{
    start_writer
    echo x >a.log
    run "$LAHAR" ingest store a.log
    stop_writer
    expect_status 5
    expect_err_has "lahar: "
    ok "$LAHAR" ingest store a.log
}

case_many_may_read_while_one_writes()
{
    start_writer --durability commit
    seq 1 3000 | sed 's/^/number /' >&9
    ok "$LAHAR" stat store
    run "$LAHAR" query store 'number' --count only
    expect_status 0
    stop_writer
    ok "$LAHAR" query store 'number' --count only
    expect_out 3000
}

case_a_read_only_directory_refuses_writing_only()
{
    echo "hello there" >a.log
    ok "$LAHAR" ingest store a.log
    chmod -R a+rX . store
    as_nobody "$LAHAR" query store hello --count only
    expect_status 0
    expect_out 1
    as_nobody "$LAHAR" ingest store a.log
    expect_status 3
    expect_err_has "lahar: "
}

case_reading_changes_no_file()
{
    "$LAHAR_LOAD" gen --workload W2 -n 2000 >w2.log
    ok "$LAHAR" ingest store w2.log
    (cd store && find . -type f -exec sha256sum {} + | sort) >before
    ok "$LAHAR" query store timeout
    ok "$LAHAR" scan store
    ok "$LAHAR" verify store --full
    ok "$LAHAR" stat store
    (cd store && find . -type f -exec sha256sum {} + | sort) >after
    cmp before after || fail "a reading verb changed the store"
}

case_a_full_disk_is_said_and_keeps_what_was_taken()
{
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    mkdir disk
    mount -t tmpfs -o size=48m tmpfs disk 2>/dev/null || skip "tmpfs cannot be mounted here"
    trap 'umount disk' EXIT
    "$LAHAR_LOAD" gen --workload W2 -n 1000000 >w2.log
    run timeout 60 "$LAHAR" ingest disk/store w2.log --json --space-wait 1
    [ "$status" != 124 ] || fail "ingest waits for ever on a full disk"
    [ "$status" = 3 ] || [ "$status" = 5 ] || fail "expected 3 or 5"
    expect_err_has "lahar: "
    ok "$LAHAR" stat disk/store
}

case_ingest_goes_on_when_space_returns()
{
    [ "$(id -u)" = 0 ] || skip "only root can mount"
    mkdir disk
    mount -t tmpfs -o size=96m tmpfs disk 2>/dev/null || skip "tmpfs cannot be mounted here"
    trap 'umount disk' EXIT
    ok "$LAHAR" ingest disk/store /dev/null
    dd if=/dev/zero of=disk/other bs=1M status=none 2>/dev/null
    "$LAHAR_LOAD" gen --workload W2 -n 50000 >w2.log
    (sleep 2 && rm disk/other) &
    ok "$LAHAR" ingest disk/store w2.log --json --space-wait 60
    expect_out_has '"events":50000'
    wait
}

case_damage_at_the_head_of_a_file_is_never_ignored()
{
    echo x >a.log
    ok "$LAHAR" ingest store a.log
    for file in store/*; do
        [ -f "$file" ] || continue
        case ${file##*/} in *lock* | *LOCK*) continue ;; esac
        cp "$file" saved
        python3 - "$file" <<'E2'
import sys
with open(sys.argv[1], "r+b") as file:
    head = bytes(byte ^ 0xff for byte in file.read(64))
    file.seek(0)
    file.write(head)
E2
        run "$LAHAR" scan store
        [ "$status" != 0 ] && [ "$status" -le 4 ] || fail "a damaged ${file##*/} went unnoticed"
        cp saved "$file"
    done
    ok "$LAHAR" scan store
}

run_cases
