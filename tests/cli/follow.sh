#!/bin/bash
# lahar source and lahar follow
. "$(dirname "$0")/harness.sh"

lines()
{
    "$LAHAR" export store --format raw --stream logs 2>/dev/null
}

case_follows_a_directory_once()
{
    mkdir logs
    printf 'one\ntwo\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    ok "$LAHAR" follow store --once --json
    expect_json 'lines[-1]["records"] == 2 and lines[-1]["lag_bytes"] == 0'
    printf 'three\n' >>logs/a.log
    ok "$LAHAR" follow store --once
    expect_out_has "1 records"
    ok "$LAHAR" query store three --json
    expect_json 'lines[-1]["total"] == 1'
}

case_takes_the_format_s_settings()
{
    mkdir logs
    printf 'x 01.05.2024 02:00\nno\n' >logs/a.log
    ok "$LAHAR" source create store web logs --regexp '^(?<who>\S+) (?<when>.*)$' \
        --time-field when --time-format '%d.%m.%Y %H:%M' --tz +02:00 \
        --set handle_error_mode=stream
    ok "$LAHAR" follow store --once
    ok "$LAHAR" query store 'who:x' --json
    expect_json 'lines[0]["time"] == "2024-05-01T00:00:00.000000000Z"'
    ok "$LAHAR" query store '_error:match' --json
    expect_json 'lines[-1]["total"] == 1 and lines[0]["fields"]["_raw_record"] == "no"'
    ok "$LAHAR" query store '_raw_message:no' --count only
    [ "$(cat out)" = 1 ] || fail "_raw_message is not _raw_record"
    ok "$LAHAR" source list store --json
    expect_json 'lines[0]["time_zone"] == "+02:00" and lines[0]["format"] == "Regexp"'
    run "$LAHAR" source create store bad logs --regexp '('
    expect_status 2
    run "$LAHAR" source show store bad
    expect_status 1
}

case_joins_lines_and_takes_the_last_after_a_while()
{
    mkdir logs
    printf '> a\n b\n> c\n' >logs/a.log
    ok "$LAHAR" source create store joined logs --set 'multiline_start=^>' \
        --set partial_timeout_ms=300
    ok "$LAHAR" follow store --once
    expect_out_has "1 records"
    "$LAHAR" follow store >out 2>err &
    pid=$!
    for _ in $(seq 100); do
        sleep 0.1
        [ "$("$LAHAR" query store '' --stream joined --count only 2>/dev/null)" = 2 ] && break
    done
    kill -INT "$pid"
    wait "$pid"
    ok "$LAHAR" export store --stream joined --format raw
    [ "$(cat out)" = "$(cat logs/a.log)" ] || fail "other bytes came back"
}

case_create_says_what_is_wrong()
{
    run "$LAHAR" source create store logs nowhere
    expect_status 1
    expect_err_has "nowhere"
    run "$LAHAR" source create store logs . --set max_threads=x
    expect_status 2
    run "$LAHAR" source create store logs . --poll_max_batch_size 0
    expect_status 2
    ok "$LAHAR" source create store logs .
    run "$LAHAR" source create store logs .
    expect_status 1
    ok "$LAHAR" source create store logs . --if-not-exists
    run "$LAHAR" source
    expect_status 2
    run "$LAHAR" follow store --source none --once
    expect_status 1
}

case_list_and_show_answer_in_json()
{
    mkdir logs
    printf 'one\npart' >logs/a.log
    ok "$LAHAR" source create store logs logs --handle_error_mode stream
    ok "$LAHAR" source list store --json
    expect_json 'lines[0]["handle_error_mode"] == "stream" and lines[0]["poll_timeout_ms"] == 500'
    ok "$LAHAR" follow store --once
    ok "$LAHAR" source show store logs --json
    expect_json 'lines[0]["offset"] == 4 and lines[0]["size"] == 8 and lines[0]["lag_bytes"] == 4'
    run "$LAHAR" source show store none
    expect_status 1
}

case_peek_takes_nothing_unless_told_to()
{
    mkdir logs
    printf 'one\ntwo\nthree\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    ok "$LAHAR" source peek store logs -n 2
    expect_out_lines 2
    ok "$LAHAR" source peek store logs -n 1 --consume
    expect_out_has one
    ok "$LAHAR" source peek store logs
    expect_out_lines 2
    expect_out_has_not one
}

case_reset_verify_and_drop()
{
    mkdir logs
    printf 'one\ntwo\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    ok "$LAHAR" follow store --once
    ok "$LAHAR" source verify store logs
    run "$LAHAR" source reset store logs
    expect_status 2
    run "$LAHAR" source reset store logs --offset 99
    expect_status 2
    ok "$LAHAR" source reset store logs --file a.log --to-start
    ok "$LAHAR" follow store --once
    ok "$LAHAR" query store --count only
    expect_out 4
    printf X | dd of=logs/a.log bs=1 conv=notrunc 2>err
    run "$LAHAR" source verify store logs
    expect_status 1
    expect_out_has "a.log"
    ok "$LAHAR" source drop store logs
    ok "$LAHAR" source list store
    expect_out ""
}

case_bad_lines_go_to_their_stream()
{
    printf '{"a":1}\nbad\n{"a":2}\n' >a.jsonl
    ok "$LAHAR" source create store j a.jsonl --format JSONEachRow --handle_error_mode dead_letter_queue
    ok "$LAHAR" follow store --once
    ok "$LAHAR" query store --stream j.dead_letter --json
    expect_json 'lines[0]["fields"]["_raw_record"] == "bad" and lines[0]["fields"]["_line"] == 2'
    ok "$LAHAR" query store --stream j --count only
    expect_out 2
}

case_follows_what_is_written_meanwhile()
{
    mkdir logs
    ok "$LAHAR" source create store logs logs
    "$LAHAR" follow store >out 2>err &
    local follower=$!
    sleep 0.3
    printf 'one\n' >logs/a.log
    sleep 0.3
    mv logs/a.log logs/a.log.1
    printf 'two\n' >logs/a.log
    printf 'late\n' >>logs/a.log.1
    sleep 0.5
    kill "$follower"
    wait "$follower"
    [ "$(lines | sort | tr '\n' ' ')" = "late one two " ] || fail "lines are missing"
}

# S-01: killed at random times, started again, nothing is lost and nothing comes twice.
case_survives_kill_9()
{
    local i
    mkdir logs
    seq -f 'line %.0f of a file that is written in one go' 1 120000 >logs/a.log
    ok "$LAHAR" source create store logs logs --max_block_size 500 --poll_max_batch_size 500
    for i in 1 2 3 4 5 6 7 8 9 10; do
        "$LAHAR" follow store >out 2>err &
        local follower=$!
        sleep "0.0$((RANDOM % 9))"
        printf 'more %s\n' "$i" >>logs/b.log
        kill -9 "$follower"
        wait "$follower" 2>/dev/null
    done
    ok "$LAHAR" follow store --once
    sort logs/a.log logs/b.log >wanted
    lines | sort >got
    cmp wanted got || fail "the store differs from the files"
    ok "$LAHAR" verify store
}

# S-90
case_stops_in_the_middle_of_a_backlog()
{
    mkdir logs
    seq -f 'line %.0f' 1 300000 >logs/a.log
    ok "$LAHAR" source create store logs logs --max_block_size 100
    "$LAHAR" follow store >out 2>err &
    local follower=$!
    sleep 0.2
    kill "$follower"
    wait "$follower"
    ok "$LAHAR" follow store --once
    lines | cmp - logs/a.log || fail "the store differs from the file"
}

case_a_reader_looks_on_while_another_follows()
{
    mkdir logs
    printf 'one\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    "$LAHAR" follow store >out2 2>&1 &
    local follower=$!
    sleep 0.6
    ok "$LAHAR" source show store logs --json
    expect_json 'lines[0]["offset"] == 4'
    run "$LAHAR" source pause store logs
    expect_status 5
    kill "$follower"
    wait "$follower"
    true
}

run_cases
