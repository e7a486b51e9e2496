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
    expect_json 'lines[0]["latency_ns"]["count"] == 200 and
        lines[0]["latency_ns"]["p50"] <= lines[0]["latency_ns"]["p99.9"] <= lines[0]["latency_ns"]["max"]'
    expect_json 'lines[0]["stat"]["event_file_bytes"] > 0 and lines[0]["stat"]["index_bytes"] > 0'
    expect_json 'lines[0]["memory"]["anonymous_peak_bytes"] > 0 and lines[0]["processor"]["total_ns"] > 0'
    expect_json 'lines[0]["settings"]["seed"] == 42 and lines[0]["settings"]["producers"] == 3 and
        lines[0]["settings"]["loop"] == "closed"'
    ok "$LAHAR" query store --count only
    expect_out 20000
    ok "$LAHAR_LOAD" run --workload W2 -n 1000 store2
    expect_out_has "1000 events"
    expect_out_has "finished"
    expect_out_has "closed loop"
}

case_run_keeps_the_rate_it_is_given()
{
    ok "$LAHAR_LOAD" run --workload W2 --rate 20000 --batch 10 --producers 2 --warmup 300ms \
        --duration 1s --interval 100ms --series --json store --verify
    # 26,000 in the whole, 20,000 of them measured, give or take the last batch and a late thread.
    expect_json '20000 <= lines[0]["events"] <= 26100 and 15000 <= lines[0]["measured_events"] <= 20100'
    expect_json 'lines[0]["settings"]["loop"] == "open" and len(lines[0]["intervals"]) >= 5'
    expect_json 'sum(i["events"] for i in lines[0]["intervals"]) == lines[0]["measured_events"]'
    expect_json 'lines[0]["latency_ns"]["max"] >= lines[0]["service_ns"]["max"]'
    expect_json 'lines[1]["same"] and lines[1]["events"] == lines[0]["events"]'
}

case_latency_counts_from_the_intended_start()
{
    # Far more than the store takes: each batch starts later than the one before, and its latency
    # says so while its service does not.
    ok "$LAHAR_LOAD" run --workload W1 --rate 900000000 --duration 500ms --batch 500 --json store \
        --no-rollover
    expect_json 'lines[0]["latency_ns"]["p99"] > 10 * lines[0]["service_ns"]["p50"]'
    expect_json 'lines[0]["latency_ns"]["p99"] > 250e6'
}

case_run_reads_back_what_it_appended()
{
    for options in "" "--prepared 1500 --producers 2" "--durability commit --batch 200" \
        "--arrival poisson --rate 200000"; do
        for workload in W1 W2; do
            # shellcheck disable=SC2086 # several options
            ok "$LAHAR_LOAD" run --workload $workload -n 6000 --verify $options "store$workload"
            expect_out_has "verify: 6000 of 6000 events"
            expect_out_has "all the same"
        done
    done
}

case_run_takes_a_job()
{
    cat >job <<'JOB'
{"workload": "W1", "batch": 100, "memory": 64, "group": 4, "json": true, "verify": true,
 "phases": [{"name": "first", "count": 10000},
            {"name": "second", "rate": "50%", "duration": "300ms", "producers": 2},
            {"name": "third", "workload": "W2", "count": 500, "no_rollover": true}]}
JOB
    ok "$LAHAR_LOAD" run job store
    expect_json '[l["phase"] for l in lines] == ["first", "second", "third", "verify"]'
    expect_json 'lines[0]["events"] == 10000 and lines[2]["events"] == 500 and lines[3]["same"]'
    expect_json 'lines[1]["settings"]["first_index"] == 10000 and
        abs(lines[1]["settings"]["rate"] - lines[0]["finished_rate"] / 2) < 2'
    expect_json 'lines[2]["finished_ns"] == 0 and lines[0]["settings"]["group_bytes"] == 4 << 20'
}

case_wrong_jobs_are_refused()
{
    printf '{"workload": "W1"' >job
    run "$LAHAR_LOAD" run job store
    expect_status 2
    for text in '{"workload": "W1", "count": 1, "colour": 3}' '{"workload": "W1", "count": true}' \
        '{"workload": "W1", "count": 1, "phases": [{"memory": 64}]}' '[1]' \
        '{"workload": "W1", "count": 1, "phases": []}' '{"workload": "W1"}' \
        '{"workload": "W1", "count": 1, "rate": "70%"}' '{"count": 1}'; do
        printf '%s' "$text" >job
        run "$LAHAR_LOAD" run job store
        expect_status 2
    done
    run "$LAHAR_LOAD" run absent store
    expect_status 2
    [ ! -e store ] || fail "a store was created"
}

case_an_interrupt_ends_a_run_with_its_report()
{
    "$LAHAR_LOAD" run --workload W1 --rate 5000 --batch 50 --duration 60s store --json >out 2>err &
    local child=$!
    sleep 1
    kill -INT $child
    wait $child
    status=$?
    expect_status 130
    expect_json 'lines[0]["interrupted"] and 1000 < lines[0]["events"] < 50000'
    ok "$LAHAR" query store --count only
    expect_json 'lines[0] > 1000'
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
    for wrong in "--rate x" "--rate 70%" "--producers 0" "--producers 2000" "--batch 0" \
        "--duration 3parsecs" "--arrival never" "--interval 1ms" "--backend tape" "--durability much"; do
        # shellcheck disable=SC2086 # an option and its value
        run "$LAHAR_LOAD" run --workload W1 -n 10 store $wrong
        expect_status 2
    done
    [ ! -e store ] || fail "a store was created"
    run "$LAHAR_LOAD" fly
    expect_status 2
}

run_cases
