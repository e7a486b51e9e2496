#!/bin/bash
# lahar lineage, content, replay, and NiFi's JSON
. "$(dirname "$0")/harness.sh"

store_of_flow()
{
    mkdir -p content/1
    printf 'before the event, after it' >content/1/9
    cat >in.json <<'E2'
[{"eventType":"RECEIVE","timestampMillis":1000,"entityId":"f1","componentId":"in","transitUri":"http://in"},
{"eventType":"SEND","timestampMillis":2000,"entityId":"f1","componentId":"out","componentType":"P",
"transitUri":"http://out","entitySize":5,"previousEntitySize":6,"sourceConnectionIdentifier":"q",
"previousAttributes":{"filename":"a","gone":"x"},"updatedAttributes":{"filename":"b","gone":null},
"inputContentClaimContainer":"c","inputContentClaimSection":"1","inputContentClaimIdentifier":"9",
"inputContentClaimOffset":0,"outputContentClaimContainer":"c","outputContentClaimSection":"1",
"outputContentClaimIdentifier":"9","outputContentClaimOffset":18},
{"eventType":"FORK","timestampMillis":3000,"entityId":"f1","parentIds":["f1"],"childIds":["f2"]},
{"eventType":"DROP","timestampMillis":4000,"entityId":"f2"}]
E2
    ok "$LAHAR" ingest store --format nifi-json in.json
}

case_lineage_of_a_flowfile_alone_and_with_descendants()
{
    store_of_flow
    ok "$LAHAR" lineage store f1 --json
    expect_json '[n.get("ev", n.get("ff")) for n in lines[0]["nodes"]] == [1, 2, 3, "f1"]'
    expect_json '[(e["from"], e["to"]) for e in lines[0]["edges"]] == [("ev1", "f1"), ("f1", "ev2"), ("ev2", "ev3")]'
    ok "$LAHAR" lineage store f1 --descendants --json
    expect_json '[n.get("ev", n.get("ff")) for n in lines[0]["nodes"]] == [1, 2, 3, 4, "f1", "f2"]'
    ok "$LAHAR" lineage store 3 --children --format dot
    expect_out_has 'ev3 -> ff0'
    run "$LAHAR" lineage store 1 --children
    expect_status 2
    expect_err_has "an event of type RECEIVE cannot be expanded"
    run "$LAHAR" lineage store nobody
    expect_status 1
    run "$LAHAR" lineage store 99
    expect_status 1
    expect_err_has "could not find event 99"
}

case_sent_and_never_sent()
{
    store_of_flow
    ok "$LAHAR" lineage store f1 --sent
    expect_out "1970-01-01T00:00:02.000Z event 2 SEND to http://out as b
  filename=b"
    run "$LAHAR" lineage store f2 --sent
    expect_status 1
    expect_out "never sent, as far as events are held: the earliest is event 1 of 1970-01-01T00:00:01.000Z"
    run "$LAHAR" lineage store f2 --sent --json
    expect_status 1
    expect_json 'lines == [{"sent": 0, "exact": True, "earliest_event": 1, "earliest_time": "1970-01-01T00:00:01.000Z"}]'
}

case_get_shows_previous_updated_and_effective_attributes()
{
    store_of_flow
    ok "$LAHAR" get store 2
    expect_out_has "prev.filename: a"
    expect_out_has "effective.filename: b"
    expect_out_has "gone: null"
    expect_out_has_not "effective.gone"
    ok "$LAHAR" get store 2 --json
    expect_json 'lines[0]["effective"] == {"filename": "b"}'
}

case_get_cuts_attributes_between_characters_when_asked()
{
    printf '%s\n' '{"eventType":"DROP","entityId":"f1","previousAttributes":{"a":"äöü","b":"xyz"},"updatedAttributes":{"a":"äöüß"}}' >in.json
    ok "$LAHAR" ingest store --format nifi-json in.json
    ok "$LAHAR" get store 1 --attribute-length 3 --json
    expect_json 'lines[0]["fields"]["attributes"] == {"a": "äöü"} and lines[0]["effective"] == {"b": "xyz", "a": "äöü"}'
    ok "$LAHAR" get store 1 --attribute-length 2
    expect_out_has "prev.b: xy"
    expect_out_has_not "xyz"
    ok "$LAHAR" get store 1 --json
    expect_json 'lines[0]["effective"]["a"] == "äöüß"'
    ok "$LAHAR" query store 'attr.a="äöüß"' --count only
    expect_out 1
    run "$LAHAR" get store 1 --attribute-length x
    expect_status 2
}

case_json_of_attributes_parses_whatever_bytes_they_hold()
{
    python3 - <<'E2'
open("in.json", "wb").write(b'{"eventType":"SEND","entityId":"f1","transitUri":"http://\xffx","sourceConnectionIdentifier":"q",'
    b'"previousEntitySize":0,"updatedAttributes":{"filename":"\xe2\x82","k\xc0":"\xed\xa0\x80!\u0000"},"previousAttributes":{"p\xf5":"\xff"}}\n')
E2
    ok "$LAHAR" ingest store --format nifi-json in.json
    ok "$LAHAR" get store 1 --json
    expect_json 'len(lines[0]["effective"]) == 3'
    ok "$LAHAR" lineage store f1 --sent --json
    expect_json 'len(lines) == 2'
    for format in json prov-json; do
        ok "$LAHAR" lineage store f1 --format $format
        expect_json 'len(lines) == 1'
    done
    ok "$LAHAR" replay store 1 --out again --json
    expect_json 'len(lines[0]["attributes"]) == 3'
}

case_get_query_and_lineage_need_no_content()
{
    store_of_flow
    all_answers()
    {
        "$LAHAR" get store 1 2 3 4 --json
        "$LAHAR" query store 'uuid:* OR entity_id=f1' --json | sed 's/"cursor":.*//'
        for format in tree json dot mermaid prov-json; do
            "$LAHAR" lineage store f1 --descendants --format $format
        done
        "$LAHAR" lineage store f1 --sent --json
        "$LAHAR" lineage store f2 --sent --json
    }
    for round in journals rolled; do
        all_answers >before
        mv content gone
        all_answers >after
        mv gone content
        cmp before after || fail "expected the same answers without content, $round"
        [ -s before ] || fail "expected answers"
        ok "$LAHAR" rollover store
    done
}

case_content_is_streamed_and_nothing_recorded()
{
    store_of_flow
    ok "$LAHAR" content store 2 --which input --content c=content
    expect_out "before"
    ok "$LAHAR" content store 2 --which output --content c=content
    expect_out "after"
    run "$LAHAR" content store 1 --which output --content c=content
    expect_status 1
    expect_err_has "names no content claim"
    run "$LAHAR" content store 2 --which input --content other=content
    expect_status 1
    expect_err_has 'no directory is known for container "c"'
    ok "$LAHAR" query store '*' --count only
    expect_out 4
}

case_replay_writes_the_bytes_and_an_event()
{
    store_of_flow
    ok "$LAHAR" replay store 2 --content c=content --out again --json
    expect_json 'lines[0]["queue"] == "q" and lines[0]["size"] == 6 and lines[0]["attributes"]["filename"] == "a" and lines[0]["attributes"]["flowfile.replay"] == "true"'
    [ "$(cat again)" = before ] || fail "expected the content"
    ok "$LAHAR" query store 'type=REPLAY uuid:*' --count only
    expect_out 1
    rm content/1/9
    run "$LAHAR" replay store 2 --content c=content --out more
    expect_status 1
    expect_err_has "the content has been deleted"
    [ ! -e more ] || fail "expected no file"
    ok "$LAHAR" query store 'type=REPLAY' --count only
    expect_out 1
}

case_nifi_json_comes_back_equal()
{
    store_of_flow
    ok "$LAHAR" export store --format nifi-json
    python3 - <<'E2' || fail "expected the same documents"
import json, sys
source = json.load(open("in.json"))
out = [json.loads(line) for line in open("out")]
for o in out:
    for key in ("eventId", "eventOrdinal", "timestamp"):
        del o[key]
sys.exit(source != out)
E2
}

run_cases
