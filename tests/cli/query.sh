#!/bin/bash
# lahar query
. "$(dirname "$0")/harness.sh"

store_of_three()
{
    cat >in.jsonl <<'E2'
{"t":"2024-05-17T10:00:00Z","level":"INFO","message":"connection opened","user":"ada"}
{"t":"2024-05-17T11:00:00Z","level":"DEBUG","message":"connection idle","user":"bob"}
{"t":"2024-05-17T12:00:00Z","level":"ERROR","message":"connection timeout","user":"ada"}
E2
    ok "$LAHAR" ingest store --time-field t in.jsonl
}

case_newest_first_with_total_and_cursor()
{
    store_of_three
    ok "$LAHAR" query store connection --json
    expect_out_lines 4
    expect_json '[l["id"] for l in lines[:-1]] == [3, 2, 1]'
    expect_json 'lines[-1]["total"] == 3 and lines[-1]["relation"] == "=" and "cursor" in lines[-1]'
    expect_json 'list(lines[0]) == ["id", "time", "arrival", "stream", "durable", "fields"]'
    expect_json 'lines[0]["time"] == "2024-05-17T12:00:00.000000000Z"'
}

case_lines_for_people()
{
    store_of_three
    ok "$LAHAR" query store 'level:ERROR'
    expect_out "2024-05-17T12:00:00.000Z 3 log ERROR connection timeout"
    expect_err_empty
}

case_zones()
{
    store_of_three
    # Two hours east of UTC, the day begins at 22:00 of the day before.
    ok "$LAHAR" query store 'time:2024-05-17T12' --tz +02:00 --count only
    expect_out 1
    ok "$LAHAR" query store 'time<2024-05-17T14:00:00' --tz +02:00 --count only
    expect_out 2
    ok "$LAHAR" query store --tz +02:00 --from 2024-05-17T13:00:00 --to 2024-05-17T14:00:00 --count only
    expect_out 1
    ok "$LAHAR" query store --from 2024-05-17T13:00:00 --count only
    expect_out 0
    run "$LAHAR" query store --tz Middle/Earth
    expect_status 2
    if [ -r /usr/share/zoneinfo/Europe/Berlin ]; then
        ok "$LAHAR" query store 'time:2024-05-17T12' --tz Europe/Berlin --count only
        expect_out 1
    fi
}

case_facets_and_histogram()
{
    store_of_three
    ok "$LAHAR" query store connection --facet user --facet level:1 --histogram 2h
    expect_out "user: 2 values in 3 events
  2 ada
  1 bob
level: 3 values in 3 events
  1 DEBUG
events each 2h:
  2024-05-17T10:00:00.000Z 2
  2024-05-17T12:00:00.000Z 1"
    ok "$LAHAR" query store '-level:DEBUG' --facet user --json
    expect_json 'lines[0]["facet"] == "user" and lines[0]["events"] == 2'
    expect_json 'lines[0]["values"] == [{"value": "ada", "count": 2}]'
    expect_json 'lines[-1]["total"] == 2'
    ok "$LAHAR" query store '*' --facet user -n 1 --json
    expect_out_lines 3
    run "$LAHAR" query store nothing --facet user
    expect_status 1
    run "$LAHAR" query store --histogram soon
    expect_status 2
    run "$LAHAR" query store --facet id
    expect_status 2
}

case_regular_expressions()
{
    store_of_three
    ok "$LAHAR" query store 'message:/(open|idl)ed?$/' --count only
    expect_out 2
    ok "$LAHAR" query store 'user~/^A/i' --count only
    expect_out 2
    run "$LAHAR" query store 'user:/a(/'
    expect_status 2
    expect_err_has "        ^"
}

case_an_expression_may_begin_with_a_dash()
{
    store_of_three
    ok "$LAHAR" query store '-level:DEBUG' --count only
    expect_out 2
    ok "$LAHAR" query store '-nothing' --count only
    expect_out 3
    ok "$LAHAR" query --count only -n 5 store -- '-user:ada'
    expect_out 1
}

case_count_only_of_nothing_is_zero_and_done()
{
    store_of_three
    ok "$LAHAR" query store 'absent' --count only
    expect_out 0
    run "$LAHAR" query store 'absent'
    expect_status 1
    expect_out ""
    run "$LAHAR" query store 'absent' --json
    expect_status 1
    expect_json 'lines == [dict(total=0, relation="=", cursor=lines[0]["cursor"])]'
}

case_time_ranges_are_half_open()
{
    store_of_three
    ok "$LAHAR" query store --from 2024-05-17T10:00:00Z --to 2024-05-17T12:00:00Z --count only
    expect_out 2
    ok "$LAHAR" query store --from 2024-05-17 --to 2024-05-18 --count only
    expect_out 3
    ok "$LAHAR" query store --from '2024-05-17T13:00:00+02:00' --count only
    expect_out 2
    ok "$LAHAR" query store --last 1h --count only
    expect_out 0
    run "$LAHAR" query store --last soon
    expect_status 2
    run "$LAHAR" query store --from 2024-02-30
    expect_status 2
}

case_orders()
{
    store_of_three
    printf '{"t":"2020-01-01T00:00:00Z","message":"connection of long ago"}\n' >old.jsonl
    ok "$LAHAR" ingest store --time-field t old.jsonl
    ok "$LAHAR" query store ago --json
    old=$(python3 -c 'import json; print(json.loads(open("out").readline())["id"])')
    ids=$old
    for order in "-id:$ids,3,2,1" "id:1,2,3,$ids" "-time:3,2,1,$ids" "time:$ids,1,2,3"; do
        ok "$LAHAR" query store connection --order "${order%%:*}" --json
        expect_json "','.join(str(l['id']) for l in lines[:-1]) == '${order##*:}'"
    done
    run "$LAHAR" query store --order sideways
    expect_status 2
}

case_limit_and_cursor_page_through_everything()
{
    seq 1 25 | sed 's/^/number /' >n.log
    ok "$LAHAR" ingest store n.log
    cursor='' seen=''
    for _ in 1 2 3; do
        ok "$LAHAR" query store number -n 10 --json ${cursor:+--cursor "$cursor"}
        expect_json 'lines[-1]["total"] == 25'
        seen="$seen $(python3 -c 'import json
print(*(e["id"] for e in map(json.loads, open("out")) if "id" in e))')"
        cursor=$(python3 -c 'import json; print(json.loads(open("out").readlines()[-1])["cursor"])')
        echo "number 99" | "$LAHAR" ingest store - >/dev/null
    done
    # shellcheck disable=SC2086
    [ "$(echo $seen)" = "$(seq -s ' ' 25 -1 1)" ] || fail "pages gave: $seen"
}

case_count_modes()
{
    store_of_three
    ok "$LAHAR" query store connection --count none --json
    expect_json 'lines[-1]["relation"] == "?"'
    ok "$LAHAR" query store connection --count atleast:2 --json
    expect_json 'lines[-1]["relation"] in ("=", ">=") and lines[-1]["total"] >= 2'
    run "$LAHAR" query store connection --count many
    expect_status 2
}

case_explain_answers_how()
{
    store_of_three
    ok "$LAHAR" query store 'level:ERROR connection' --explain
    [ -s out ] || fail "expected an explanation"
    expect_out_has_not "connection timeout"
}

case_a_wrong_expression_gets_a_caret()
{
    store_of_three
    run "$LAHAR" query store 'level:(ERROR'
    expect_status 2
    expect_out ""
    expect_err_has "level:(ERROR"
    grep -q '^ *^$' err || fail "expected a caret"
}

case_streams_are_searched_apart_or_together()
{
    store_of_three
    echo "connection elsewhere" >x.log
    ok "$LAHAR" ingest store --stream other x.log
    ok "$LAHAR" query store connection --count only
    expect_out 4
    ok "$LAHAR" query store connection --stream other --count only
    expect_out 1
    run "$LAHAR" query store connection --stream none
    expect_status 1
}

# Answers of several kinds of clauses, without what may differ: durability.
answers()
{
    for expression in timeout 'status AND 500' '"timeout on peer"' 'req~abc' 'message:*Repeat*' \
        'NOT INFO' '-host' 'E7F3A91C OR level'; do
        "$LAHAR" query store "$expression" -n 0 --json | python3 -c 'import json, sys
for event in map(json.loads, sys.stdin):
    print(event.get("id"), event.get("time"), event.get("fields"), event.get("total"))'
    done
}

case_answers_are_the_same_after_rollover()
{
    "$LAHAR_LOAD" gen --workload W2 -n 5000 >w2.log
    ok "$LAHAR" ingest store w2.log
    answers >before
    ok "$LAHAR" rollover store
    ok "$LAHAR" stat store --json
    expect_json 'lines[0]["event_files"] >= 1'
    answers >after
    [ "$(wc -l <before)" -gt 1000 ] || fail "hardly any answers"
    cmp before after || fail "answers differ"
    grep -c timeout w2.log >expected
    ok "$LAHAR" query store timeout --count only
    cmp out expected || fail "the count is not that of grep"
}

case_control_characters_do_not_reach_the_terminal()
{
    printf 'evil \033[2J\a text\n' >a.log
    ok "$LAHAR" ingest store a.log
    ok "$LAHAR" query store evil
    expect_out_has 'evil \x1B[2J\x07 text'
}

case_a_closed_pipe_ends_quietly()
{
    "$LAHAR_LOAD" gen --workload W2 -n 20000 >w2.log
    ok "$LAHAR" ingest store w2.log
    "$LAHAR" query store -n 0 2>err | head -n 1 >out
    expect_err_empty
    expect_out_lines 1
}

case_a_full_standard_output_is_said_once()
{
    [ -c /dev/full ] || skip "there is no /dev/full"
    "$LAHAR_LOAD" gen --workload W2 -n 2000 >w2.log
    ok "$LAHAR" ingest store w2.log
    ran="query >/dev/full"
    "$LAHAR" query store -n 0 >/dev/full 2>err
    status=$?
    expect_status 3
    expect_err_has "standard output: No space left"
    [ "$(wc -l <err)" = 1 ] || fail "expected one message"
}

run_cases
