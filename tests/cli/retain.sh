#!/bin/bash
# lahar retain
. "$(dirname "$0")/harness.sh"

case_a_store_begins_without_limits()
{
    ok "$LAHAR" stream create store web
    ok "$LAHAR" retain store
    expect_out_has "all streams together  no limit"
    expect_out_has "web  no limit"
}

case_limits_are_kept_and_changed_one_at_a_time()
{
    ok "$LAHAR" stream create store web
    ok "$LAHAR" retain store --max-bytes 20G
    ok "$LAHAR" retain store --max-age 30d
    ok "$LAHAR" retain store --stream web --max-age 1d12h
    ok "$LAHAR" retain store --json
    expect_json '[(l["stream"], l["max_bytes"], l["max_age_ns"]) for l in lines] ==
        [("", 20 << 30, 30 * 86400 * 10**9), ("web", 0, 36 * 3600 * 10**9)]'
    ok "$LAHAR" retain store --max-bytes 0
    ok "$LAHAR" retain store --json
    expect_json 'lines[0]["max_bytes"] == 0 and lines[0]["max_age_ns"] != 0'
}

case_what_is_beyond_a_limit_goes_at_once()
{
    printf 'one\ntwo\nthree\n' >a.log
    ok "$LAHAR" ingest store a.log
    ok "$LAHAR" rollover store
    ok "$LAHAR" ingest store a.log
    ok "$LAHAR" retain store --max-bytes 1
    ok "$LAHAR" stat store --json
    expect_json 'lines[0]["events"] == 3 and lines[0]["dropped_events"] == 3
        and lines[0]["dropped_files"] == 1 and lines[0]["event_files"] == 0'
    ok "$LAHAR" get store 4
    run "$LAHAR" get store 1
    expect_status 1
}

case_wrong_use_is_told()
{
    ok "$LAHAR" stream create store web
    run "$LAHAR" retain store --max-bytes many
    expect_status 2
    run "$LAHAR" retain store --max-age soon
    expect_status 2
    run "$LAHAR" retain store --stream other --max-bytes 1
    expect_status 1
}

run_cases
