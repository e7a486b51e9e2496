#!/bin/bash
# lahar-load
. "$(dirname "$0")/harness.sh"

case_gen_is_the_same_for_the_same_seed()
{
    "$LAHAR_LOAD" gen --workload W1 -n 3000 >a
    "$LAHAR_LOAD" gen --workload W1 -n 3000 >b
    "$LAHAR_LOAD" gen --workload W1 -n 3000 --seed 43 >c
    cmp -s a b || fail "two runs differ"
    ! cmp -s a c || fail "two seeds agree"
}

case_gen_makes_any_range_by_itself()
{
    for workload in W1 W2; do
        "$LAHAR_LOAD" gen --workload $workload -n 20000 | tail -n 1000 >a
        "$LAHAR_LOAD" gen --workload $workload -n 1000 --from 19000 >b
        cmp a b || fail "the range of $workload differs"
    done
}

case_w1_has_the_shape_it_says()
{
    "$LAHAR_LOAD" gen --workload W1 -n 60000 >out
    expect_json 'len({l["type"] for l in lines}) == 18 and
        len({l["component"] for l in lines}) == 200 and
        all(len(l["attributes"]) == 12 for l in lines) and
        {len(l.get("previous_attributes", {})) for l in lines} == {0, 1, 2} and
        all(a["time"] <= b["time"] for a, b in zip(lines, lines[1:])) and
        all(l["lineage_start"] <= l["time"] for l in lines) and
        max(__import__("collections").Counter(l["uuid"] for l in lines).values()) == 6 and
        all(l["attributes"]["uuid"] == l["uuid"] for l in lines)'
}

case_w2_has_the_shape_it_says()
{
    "$LAHAR_LOAD" gen --workload W2 -n 400000 >w2
    timeouts=$(grep -c timeout w2)
    [ "$timeouts" -gt 18000 ] && [ "$timeouts" -lt 21000 ] || fail "timeout on $timeouts of 400000"
    rare=$(grep -c E7F3A91C w2)
    [ "$rare" -le 8 ] || fail "the rare code on $rare lines"
    "$LAHAR_LOAD" gen --workload W2 -n 1000 --format JSONEachRow >out
    expect_json 'len(lines) == 1000 and all("message" in l for l in lines)'
}

case_run_reports_what_it_did()
{
    ok "$LAHAR_LOAD" run --workload W1 -n 20000 --producers 3 --batch 100 store --json
    expect_json 'lines[0]["events"] == 20000 and lines[0]["finished_ns"] >= lines[0]["acknowledged_ns"]'
    expect_json 'lines[0]["event_file_bytes"] > 0 and lines[0]["index_bytes"] > 0'
    ok "$LAHAR" query store --count only
    expect_out 20000
    ok "$LAHAR_LOAD" run --workload W2 -n 1000 store2
    expect_out_has "1000 events"
    expect_out_has "finished"
}

case_run_appends_what_gen_writes()
{
    ok "$LAHAR_LOAD" run --workload W1 -n 500 store
    "$LAHAR_LOAD" gen --workload W1 -n 500 >w1.jsonl
    ok "$LAHAR" ingest store2 --stream provenance --time-field time w1.jsonl
    for s in store store2; do
        "$LAHAR" scan $s --json | python3 -c '
import json, sys
for event in map(json.loads, sys.stdin):
    fields = event["fields"]
    print(event["time"], fields["type"], fields["uuid"], fields["size"],
          json.dumps(fields["attributes"], sort_keys=True))' >$s.text
    done
    [ "$(wc -l <store.text)" = 500 ] || fail "expected 500 events"
    cmp store.text store2.text || fail "the two stores differ"
}

case_usage_errors()
{
    run "$LAHAR_LOAD" gen --workload W3 -n 1
    expect_status 2
    run "$LAHAR_LOAD" gen -n 1
    expect_status 2
    run "$LAHAR_LOAD" run --workload W1 -n 10
    expect_status 2
    run "$LAHAR_LOAD" fly
    expect_status 2
}

run_cases
