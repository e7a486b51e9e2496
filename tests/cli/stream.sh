#!/bin/bash
# lahar stream
. "$(dirname "$0")/harness.sh"

case_create_makes_the_store_and_the_stream()
{
    ok "$LAHAR" stream create store web
    expect_out ""
    expect_err_empty
    ok "$LAHAR" stream list store --json
    expect_json '[l["name"] for l in lines] == ["web"] and lines[0]["schema"] == "log"'
}

case_create_takes_fields_of_every_type()
{
    ok "$LAHAR" stream create store t --field 'a keyword' --field 'b text' --field 'c uuid' \
        --field 'd i64' --field 'e u64' --field 'f f64' --field 'g bool' --field 'h time' \
        --field 'i bytes' --field 'j list<uuid>' --field 'k list<keyword>' --field 'l map' \
        --field 'm keyword not-indexed'
    ok "$LAHAR" stream show store t --json
    expect_json 'dict(a="keyword", b="text", c="uuid", d="i64", e="u64", f="f64", g="bool",
        h="time", i="bytes", j="list<uuid>", k="list<keyword>", l="map").items() <=
        {l["field"]: l["type"] for l in lines[1:]}.items()'
    expect_json '[l["indexed"] for l in lines[1:] if l["field"] == "m"] == [False]'
}

case_a_stream_named_provenance_has_its_schema()
{
    ok "$LAHAR" stream create store provenance
    ok "$LAHAR" stream show store provenance
    expect_out_has "lineage_start"
    expect_out_has "claim.container"
}

case_create_refuses_a_name_twice()
{
    ok "$LAHAR" stream create store web
    run "$LAHAR" stream create store web
    expect_status 1
    expect_err_has "lahar: "
    ok "$LAHAR" stream create store web --if-not-exists
}

case_create_refuses_wrong_specifications()
{
    run "$LAHAR" stream create store web --field 'a colour'
    expect_status 2
    expect_err_has "unknown type 'colour'"
    run "$LAHAR" stream create store web --field 'a'
    expect_status 2
    run "$LAHAR" stream create store '../web'
    expect_status 2
    run "$LAHAR" stream create store
    expect_status 2
}

case_no_create_leaves_nothing_behind()
{
    run "$LAHAR" stream create store web --no-create
    expect_status 3
    [ ! -e store ] || fail "store was created"
}

case_show_of_no_stream_finds_nothing()
{
    ok "$LAHAR" stream create store web
    run "$LAHAR" stream show store other
    expect_status 1
    expect_err_has "there is no stream 'other'"
}

run_cases
