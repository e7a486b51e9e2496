#!/bin/bash
# lahar get, scan, export, stat, verify, rollover, and what holds for every verb
. "$(dirname "$0")/harness.sh"

small_store()
{
    printf 'one\ntwo\nthree\n' >a.log
    ok "$LAHAR" ingest store a.log
}

case_get_shows_a_field_a_line()
{
    small_store
    ok "$LAHAR" get store 2
    expect_out_has "id: 2"
    expect_out_has "stream: log"
    expect_out_has "message: two"
}

case_get_keeps_the_order_asked_for()
{
    small_store
    ok "$LAHAR" get store 3 1 --json
    expect_json '[l["id"] for l in lines] == [3, 1]'
}

case_get_says_what_is_not_there()
{
    small_store
    run "$LAHAR" get store 1 77
    expect_status 1
    expect_out_has "message: one"
    expect_err_has "1 of 2 events not found"
    run "$LAHAR" get store x
    expect_status 2
    run "$LAHAR" get store
    expect_status 2
}

case_scan_walks_by_id()
{
    small_store
    ok "$LAHAR" scan store --json
    expect_json '[l["id"] for l in lines] == [1, 2, 3]'
    ok "$LAHAR" scan store --from-id 2 -n 1 --json
    expect_json '[l["id"] for l in lines] == [2]'
    ok "$LAHAR" scan store --to-id 3 --newest-first --json
    expect_json '[l["id"] for l in lines] == [2, 1]'
    run "$LAHAR" scan store --from-id 50
    expect_status 1
}

case_export_raw_gives_the_file_back()
{
    printf 'plain\r\n\n  spaces \ttab\nwith \377\376 bytes\nlast, unterminated' >a.log
    ok "$LAHAR" ingest store a.log
    ok "$LAHAR" export store --format raw
    cmp out a.log || fail "the export differs"
    ok "$LAHAR" rollover store
    ok "$LAHAR" export store --format raw
    cmp out a.log || fail "the export differs after rollover"
}

case_export_jsonl_keeps_values()
{
    printf '{"b":1.10,"a":12345678901234567890,"nested":{"x":[1,null,"z"]},"e":""}\n' >a.jsonl
    ok "$LAHAR" ingest store a.jsonl
    ok "$LAHAR" export store
    cmp out a.jsonl || fail "the export differs"
}

case_export_takes_an_expression()
{
    small_store
    ok "$LAHAR" export store 'one OR three' --format raw
    expect_out "$(printf 'one\nthree')"
    run "$LAHAR" export store 'absent'
    expect_status 1
    run "$LAHAR" export store --format parquet
    expect_status 2
}

case_stat_counts()
{
    small_store
    ok "$LAHAR" stat store --json
    expect_json 'lines[0]["events"] == 3 and lines[0]["streams"] == 1 and lines[0]["next_id"] >= 4'
    ok "$LAHAR" stat store
    expect_out_has "events"
    expect_out_has "backend"
}

case_verify_finds_nothing_wrong_with_a_good_store()
{
    "$LAHAR_LOAD" gen --workload W1 -n 3000 >w1.jsonl
    ok "$LAHAR" ingest store --stream provenance w1.jsonl
    ok "$LAHAR" rollover store
    ok "$LAHAR" verify store --full --json
    expect_json 'lines[-1]["findings"] == 0 and lines[-1]["events"] == 3000'
}

case_verify_finds_a_flipped_bit()
{
    "$LAHAR_LOAD" gen --workload W2 -n 20000 >w2.log
    ok "$LAHAR" ingest store w2.log
    ok "$LAHAR" rollover store
    # Event files and what belongs to them are named by the ids that they hold.
    files=$(find store -type f -name '*[0-9]-*[0-9]*' ! -path '*journal*')
    [ -n "$files" ] || fail "no event file"
    for file in $files; do
        cp "$file" saved
        python3 - "$file" <<'E2'
import os, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(os.path.getsize(sys.argv[1]) // 2)
    byte = file.read(1)[0]
    file.seek(-1, os.SEEK_CUR)
    file.write(bytes([byte ^ 0x10]))
E2
        run "$LAHAR" verify store --json
        [ "$status" = 1 ] || [ "$status" = 4 ] || fail "a flipped bit in $file went unnoticed"
        if [ "$status" = 1 ]; then
            expect_json 'lines[-1]["findings"] >= 1 and lines[0]["file"] and lines[0]["message"]'
        fi
        cp saved "$file"
    done
    ok "$LAHAR" verify store
}

case_rollover_of_nothing_is_done()
{
    ok "$LAHAR" stream create store web
    ok "$LAHAR" rollover store
}

case_every_verb_explains_itself_in_80_columns()
{
    for verb in stream source follow ingest query get scan export stat verify rollover retain repair \
        volume lineage content replay; do
        ok "$LAHAR" $verb --help
        expect_out_has "usage: lahar $verb"
        expect_err_empty
        awk 'length($0) > 80 { exit 1 }' out || fail "$verb: more than 80 columns"
    done
    ok "$LAHAR" --help
    awk 'length($0) > 80 { exit 1 }' out || fail "more than 80 columns"
    for verb in gen run; do
        ok "$LAHAR_LOAD" $verb --help
        awk 'length($0) > 80 { exit 1 }' out || fail "load $verb: more than 80 columns"
    done
}

case_version_names_what_is_linked()
{
    ok "$LAHAR" --version
    expect_out_has "lahar "
    expect_out_has "liburing "
    expect_out_has "json-c "
}

case_an_unknown_verb_is_refused()
{
    run "$LAHAR" fly store x
    expect_status 2
    expect_err_has "unknown verb 'fly'"
    run "$LAHAR"
    expect_status 2
}

run_cases
