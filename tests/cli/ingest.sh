#!/bin/bash
# lahar ingest
. "$(dirname "$0")/harness.sh"

case_lines_of_a_file_become_events()
{
    printf 'first line\nsecond line\nthird, unterminated' >app.log
    ok "$LAHAR" ingest store app.log --json
    expect_json 'lines[-1]["events"] == 3 and lines[-1]["errors"] == 0'
    expect_json 'lines[-1]["last_id"] == lines[-1]["first_id"] + 2'
    expect_json 'lines[-1]["bytes"] == 42'
    ok "$LAHAR" query store second --json
    expect_json 'lines[0]["fields"]["message"] == "second line" and lines[0]["stream"] == "log"'
    expect_json 'lines[0]["fields"]["_filename"] == "app.log"'
}

case_standard_input_is_a_dash()
{
    printf 'one\ntwo\n' >input
    run "$LAHAR" ingest store - --json <input
    expect_status 0
    expect_json 'lines[-1]["events"] == 2'
}

case_input_that_trickles_is_found_while_the_pipe_is_open()
{
    mkfifo pipe
    "$LAHAR" ingest store - <pipe >ingest.out &
    exec 3>pipe
    printf 'one\ntwo\nhal' >&3
    for _ in $(seq 100); do
        run "$LAHAR" scan store
        [ "$status" = 0 ] && break
        sleep 0.1
    done
    run "$LAHAR" query store --count only
    expect_out 2
    printf 'f\n' >&3
    exec 3>&-
    wait
    run "$LAHAR" query store half --count only
    expect_out 1
    expect_status 0
}

case_compressed_input_is_not_taken_for_text()
{
    echo hidden | gzip >a.log.gz
    echo plain >b.log
    run "$LAHAR" ingest store a.log.gz b.log --json
    expect_status 3
    expect_err_has "a.log.gz: compressed"
    expect_json 'lines[-1]["events"] == 1'
    run "$LAHAR" ingest store - <a.log.gz
    expect_status 3
    expect_err_has "standard input: compressed"
}

case_a_stream_of_an_impossible_name_is_said()
{
    echo x >a.log
    run "$LAHAR" ingest store --stream a/b a.log
    expect_status 2
    expect_err_has "a stream name has a character at byte 1"
    run "$LAHAR" ingest store --stream "" a.log
    expect_status 2
    expect_err_has "a stream name is empty"
}

case_the_format_follows_the_name()
{
    printf '{"message":"from json","n":1}\n' >a.jsonl
    printf 'message,n\nfrom csv,2\n' >b.csv
    printf 'message\tn\nfrom tsv\t3\n' >c.tsv
    printf 'from text\n' >d.txt
    ok "$LAHAR" ingest store a.jsonl b.csv c.tsv d.txt
    ok "$LAHAR" query store 'from' --order id --json
    expect_json '[l["fields"]["message"] for l in lines[:-1]] ==
                 ["from json", "from csv", "from tsv", "from text"]'
}

case_a_given_format_wins()
{
    printf '{"message":"hello"}\n' >records.txt
    ok "$LAHAR" ingest store --format jsoneachrow records.txt
    ok "$LAHAR" query store 'hello' --json
    expect_json 'lines[0]["fields"]["message"] == "hello"'
    run "$LAHAR" ingest store --format Parquet records.txt
    expect_status 2
}

case_malformed_records_are_named_and_passed_over()
{
    printf '{"message":"good"}\n{"message":\n{"message":"also good"}\nno json\n' >in.jsonl
    run "$LAHAR" ingest store in.jsonl --json
    expect_status 1
    expect_json 'lines[-1]["events"] == 2 and lines[-1]["errors"] == 2'
    expect_err_has "lahar: in.jsonl:2: "
    expect_err_has "lahar: in.jsonl:4: "
    run "$LAHAR" query store 'good' --count only
    expect_out 2
}

case_reports_of_malformed_records_are_bounded()
{
    yes 'no json' | head -n 50 >in.jsonl
    run "$LAHAR" ingest store in.jsonl
    expect_status 1
    [ "$(grep -c 'in.jsonl:' err)" = 20 ] || fail "expected 20 reports"
    expect_err_has "30 more malformed records"
}

case_a_missing_file_costs_only_itself()
{
    echo first >a.log
    echo last >c.log
    run "$LAHAR" ingest store a.log b.log c.log --json
    expect_status 3
    expect_err_has "lahar: b.log: No such file"
    expect_json 'lines[-1]["events"] == 2'
    run "$LAHAR" query store 'first OR last' --count only
    expect_out 2
}

case_an_unreadable_file_is_said()
{
    echo secret >a.log
    chmod 600 a.log
    mkdir store
    chown 65534:65534 store 2>/dev/null
    chmod 755 .
    as_nobody "$LAHAR" ingest store a.log
    expect_status 3
    expect_err_has "a.log: Permission denied"
}

case_a_directory_is_refused()
{
    mkdir logs
    echo x >a.log
    run "$LAHAR" ingest store logs a.log --json
    expect_status 3
    expect_err_has "logs: is a directory"
    expect_json 'lines[-1]["events"] == 1'
}

case_no_create_creates_nothing()
{
    echo x >a.log
    run "$LAHAR" ingest store --no-create a.log
    expect_status 3
    [ ! -e store ] || fail "store was created"
    ok "$LAHAR" stream create store other
    run "$LAHAR" ingest store --no-create a.log
    expect_status 1
    expect_err_has "there is no stream 'log'"
}

case_an_empty_file_is_no_error()
{
    : >empty.log
    ok "$LAHAR" ingest store empty.log --json
    expect_json 'lines[-1] == {"events":0,"bytes":0,"errors":0,"first_id":0,"last_id":0}'
}

case_the_time_field_gives_the_time()
{
    printf '{"at":"2024-05-17T09:30:00.5Z","message":"timed"}\n' >a.jsonl
    ok "$LAHAR" ingest store --time-field at a.jsonl
    ok "$LAHAR" query store timed --json
    expect_json 'lines[0]["time"] == "2024-05-17T09:30:00.500000000Z"'
}

case_durability_commit_is_durable_at_once()
{
    echo x >a.log
    ok "$LAHAR" ingest store --durability commit a.log
    ok "$LAHAR" get store 1 --json
    expect_json 'lines[0]["durable"] is True'
    run "$LAHAR" ingest store --durability perhaps a.log
    expect_status 2
}

case_a_provenance_stream_maps_its_fields()
{
    "$LAHAR_LOAD" gen --workload W1 -n 2000 >w1.jsonl
    ok "$LAHAR" ingest store --stream provenance --time-field time w1.jsonl
    ok "$LAHAR" query store 'type=ROUTE' --count only
    [ "$(cat out)" = "$(grep -c '"type":"ROUTE"' w1.jsonl)" ] || fail "counts differ"
    uuid=$(sed -n '7s/.*"uuid":"\([^"]*\)","size.*/\1/p' w1.jsonl)
    ok "$LAHAR" query store "uuid:$uuid" --count only
    [ "$(cat out)" = "$(grep -c "\"uuid\":\"$uuid\",\"size\"" w1.jsonl)" ] || fail "uuid counts differ"
    ok "$LAHAR" get store 1
    expect_out_has "type: "
    expect_out_has "claim.container: default"
    expect_out_has "kafka.topic: "
    expect_out_has "time: 2024-05-17T00:00:00.00"
}

case_an_interrupt_keeps_whole_records()
{
    mkfifo pipe
    "$LAHAR" ingest store - --json <pipe >out 2>err &
    pid=$!
    exec 9>pipe
    printf 'whole record\nhalf a rec' >&9
    for _ in $(seq 100); do
        sleep 0.05
        "$LAHAR" stream list store 2>/dev/null | grep -q '^log' && break
    done
    sleep 0.2
    kill -INT "$pid"
    sleep 0.2
    printf 'ord of another kind\n' >&9
    exec 9>&-
    wait "$pid"
    status=$?
    ran="ingest, interrupted"
    expect_status 130
    ok "$LAHAR" query store record --json
    expect_json '[l["fields"]["message"] for l in lines[:-1]] in
                 (["whole record"], ["half a record of another kind", "whole record"])'
    ok "$LAHAR" verify store
}

case_settings_of_formats_are_taken_by_name()
{
    printf 'made by hand\na;b\n1;x\n' >in.csv
    ok "$LAHAR" ingest store in.csv --set 'format_csv_delimiter=;' \
        --set input_format_csv_skip_first_lines=1
    ok "$LAHAR" query store 'b:x' --json
    expect_json 'lines[0]["fields"]["attributes"] == {"a": "1", "b": "x"}'
    printf "(1,'x'),(2,NULL)\n" >in.values
    ok "$LAHAR" ingest store in.values --format Values --set columns=n,s --json
    expect_json 'lines[-1]["events"] == 2'
    printf '> a\n b\n> c\n' | ok "$LAHAR" ingest store - --stream joined --set 'multiline_start=^>' --json
    expect_json 'lines[-1]["events"] == 2'
    ok "$LAHAR" export store --stream joined --format raw
    [ "$(cat out)" = "$(printf '> a\n b\n> c\n')" ] || fail "other bytes came back"
    run "$LAHAR" ingest store in.csv --set nothing=1
    expect_status 2
    run "$LAHAR" ingest store in.csv --format Parquet
    expect_status 2
    expect_err_has "columnar"
}

case_too_many_malformed_records_fail()
{
    printf '{}\n{\n{\n{}\n' >in.jsonl
    ok_but_malformed=$("$LAHAR" ingest store in.jsonl --json 2>/dev/null)
    [ "${ok_but_malformed#*\"errors\":}" != "$ok_but_malformed" ] || fail "no errors counted"
    run "$LAHAR" ingest store in.jsonl --set input_format_allow_errors_num=1
    expect_status 2
    expect_err_has "more than input_format_allow_errors_num"
}

case_columns_are_filled_by_expressions()
{
    ok "$LAHAR" stream create store web --field "status i64" \
        --field "host keyword MATERIALIZED lower(extract(url, '//([^/]+)'))" \
        --field "level keyword DEFAULT if(status >= 500, 'error', 'info')" \
        --field "day time ALIAS day(time)"
    printf '%s\n' '{"url":"http://A.b/x","status":503,"t":"2024-05-01T12:00:00Z"}' \
        '{"url":"?","status":200,"level":"debug","t":"2024-05-01T13:00:00Z"}' >in.jsonl
    ok "$LAHAR" ingest store in.jsonl --stream web --time-field t
    ok "$LAHAR" query store 'host:a.b level:error' --json
    expect_json 'lines[-1]["total"] == 1 and lines[0]["fields"]["host"] == "a.b"
                 and lines[0]["fields"]["day"] == "2024-05-01T00:00:00.000000000Z"'
    ok "$LAHAR" query store 'level:debug' --json
    expect_json 'lines[-1]["total"] == 1 and "host" not in lines[0]["fields"]'
    ok "$LAHAR" export store --stream web --format raw
    [ "$(cat out)" = "$(cat in.jsonl)" ] || fail "other bytes came back"
    ok "$LAHAR" stream show store web
    expect_out_has "host"
    expect_out_has "MATERIALIZED"
    run "$LAHAR" stream create store bad --field "n i64 DEFAULT 1 +"
    expect_status 2
    expect_err_has "an operand is missing"
    run "$LAHAR" stream show store bad
    expect_status 1
}

case_usage_errors_say_what_is_missing()
{
    run "$LAHAR" ingest store
    expect_status 2
    expect_err_has "expected STORE and FILE"
    run "$LAHAR" ingest store --frobnicate x
    expect_status 2
    expect_err_has "unknown option --frobnicate"
}

run_cases
