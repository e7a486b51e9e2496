#!/bin/bash
# lahar volume: event files in several directories
. "$(dirname "$0")/harness.sh"

# Lines "event N", which become one event file.
ingest_lines()
{
    seq -f "event %g" "$1" "$2" >a.log
    ok "$LAHAR" ingest store a.log
    ok "$LAHAR" rollover store
}

case_volumes_are_added_remembered_and_shown()
{
    ok "$LAHAR" volume store disk1="$PWD/one" disk2="$PWD/two" --json
    expect_json '[(v["name"], v["available"]) for v in lines[0]["volumes"]] ==
        [("", True), ("disk1", True), ("disk2", True)]'
    ok "$LAHAR" volume store
    expect_out_has "disk2"
    ok "$LAHAR" stat store --json
    expect_json 'len(lines[0]["volumes"]) == 3 and lines[0]["volumes"][1]["capacity_bytes"] > 0'
    run "$LAHAR" volume store nonsense
    expect_status 2
}

case_a_volume_that_is_away_costs_its_events_alone()
{
    # The store where little space is free, the volume where there is more.
    [ -w /dev/shm ] || skip "no second file system"
    small=$(mktemp -d /dev/shm/lahar-cli-XXXXXX)
    trap 'rm -rf "$small"' EXIT
    ln -s "$small/store" store
    ok "$LAHAR" volume "$small/store" disk1="$PWD/one"
    ingest_lines 1 100
    [ -n "$(find one -name '*.events')" ] || skip "the file system of /dev/shm has more free space"
    ok "$LAHAR" scan store
    expect_out_lines 100
    mkdir gone
    mv one gone/one
    ingest_lines 101 150
    run "$LAHAR" scan store
    expect_status 4
    expect_out_lines 50
    expect_err_has "events 1 to 100"
    ok "$LAHAR" volume store disk1="$PWD/gone/one"
    ok "$LAHAR" scan store
    expect_out_lines 150
    ok "$LAHAR" verify store
}

case_a_volume_of_another_store_is_refused()
{
    ok "$LAHAR" volume store disk1="$PWD/one"
    run "$LAHAR" volume other disk1="$PWD/one"
    [ "$status" != 0 ] || fail "taken"
    expect_err_has "another store"
}

case_a_full_volume_does_not_stop_the_others()
{
    mkdir small
    mount -t tmpfs -o size=64k tmpfs small 2>/dev/null || skip "mounting needs root"
    trap 'umount "$PWD/small"' EXIT
    ok "$LAHAR" volume store small="$PWD/small"
    dd if=/dev/zero of=small/filler bs=1k count=60 2>/dev/null
    ingest_lines 1 500
    ok "$LAHAR" scan store
    expect_out_lines 500
    [ "$(find small -name '*.events' | wc -l)" = 0 ] || fail "a file in the full volume"
}

run_cases
