#!/bin/bash
# lahar repair, and copies of stores that were not made at one instant
. "$(dirname "$0")/harness.sh"

make_store()
{
    for i in 1 2 3; do
        seq -f "event %g" $((i * 100)) $((i * 100 + 99)) >a.log
        ok "$LAHAR" ingest store a.log
        [ "$i" = 3 ] || ok "$LAHAR" rollover store
    done
}

# Reads as whole: 300 events, a search that uses the index, nothing to find.
expect_whole()
{
    ok "$LAHAR" scan "$1"
    expect_out_lines 300
    ok "$LAHAR" query "$1" 'event' --count only
    expect_out 300
    ok "$LAHAR" verify "$1" --full
}

case_a_lost_manifest_is_made_again()
{
    make_store
    rm store/manifest-*
    run "$LAHAR" scan store
    expect_status 4
    ok "$LAHAR" repair store
    expect_whole store
}

case_lost_and_damaged_tables_and_shards_are_made_again()
{
    make_store
    for suffix in toc shard; do
        rm "$(find store/events -name "*.$suffix" | sort | head -n 1)"
        printf 'rotten' | dd of="$(find store/events -name "*.$suffix" | sort | tail -n 1)" \
            bs=1 seek=150 conv=notrunc 2>/dev/null
    done
    run "$LAHAR" verify store
    expect_status 1
    ok "$LAHAR" scan store
    expect_out_lines 300
    ok "$LAHAR" repair store
    expect_whole store
}

case_swapped_files_are_noticed()
{
    make_store
    first=$(find store/events -name '*.events' | sort | head -n 1)
    last=$(find store/events -name '*.events' | sort | tail -n 1)
    mv "$first" swap && mv "$last" "$first" && mv swap "$last"
    run "$LAHAR" verify store
    expect_status 1
    run "$LAHAR" scan store
    expect_status 4
    expect_err_has "events"
    # Repair sets them aside under other names; nothing wrong is shown.
    run "$LAHAR" repair store
    run "$LAHAR" scan store
    ! grep -v '"message":"event [0-9]*"' out | grep -q message || fail "a wrong event"
}

case_a_truncated_event_file_costs_what_it_lost()
{
    make_store
    file=$(find store/events -name '*.events' | sort | head -n 1)
    truncate -s 300 "$file"
    run "$LAHAR" scan store
    expect_status 4
    expect_err_has "events 1..100"
    expect_out_lines 200
}

case_foreign_partial_and_stale_files_are_swept_or_left()
{
    make_store
    stale=$(find store/events -name '*.events' | sort | head -n 1)
    cp "$stale" "store/events/$(basename "$stale" | sed 's/\.[0-9]*\./.00000077./')"
    echo x >store/events/00000099.events.tmp
    echo mine >store/events/README
    ok "$LAHAR" rollover store
    [ ! -e store/events/00000099.events.tmp ] || fail "an unfinished file is left"
    [ -z "$(find store/events -name '*00000077*')" ] || fail "an unnamed file is left"
    [ -e store/events/README ] || fail "a foreign file was removed"
    expect_whole store
}

case_an_unfinished_rollover_is_dropped_and_rolled_again_without_a_manifest()
{
    make_store
    # What the rollover of the third group would have left, were it cut off: a file that
    # overlaps what the journals hold.
    cp -r store other
    ok "$LAHAR" rollover other
    unfinished=$(find other/events -name '*.events' | sort | tail -n 1)
    cp "$unfinished" store/events/
    ok "$LAHAR" scan store
    expect_out_lines 300
    cp "$unfinished" store/events/
    rm store/manifest-*
    ok "$LAHAR" repair store
    expect_whole store
}

# A copy made file by file while the store is written: what it holds is a beginning of what was
# appended, or it says what is damaged; with repair it can be used.
case_a_copy_of_a_live_store_is_recovered_as_far_as_it_is_consistent()
{
    seq -f "event %g" 1 200000 >a.log
    "$LAHAR" ingest store a.log >/dev/null 2>&1 &
    writer=$!
    while [ ! -e store/LAHAR ]; do sleep 0.02; done
    for i in 1 2 3; do
        rm -rf "copy$i"
        cp -r store "copy$i" 2>/dev/null
    done
    wait $writer
    for i in 1 2 3; do
        run "$LAHAR" repair "copy$i"
        [ "$status" = 0 ] || [ "$status" = 4 ] || fail "a copy cannot be repaired"
        [ "$status" = 0 ] || continue
        run "$LAHAR" scan "copy$i" --json
        # A journal that was used anew while it was copied is damaged: what it held is named.
        [ "$status" = 0 ] || [ "$status" = 1 ] ||
            { [ "$status" = 4 ] && grep -q 'were lost with a damaged journal' err; } ||
            fail "a copy cannot be read"
        python3 - <<'PY' || fail "not a beginning of what was appended"
import json
numbers = [int(json.loads(line)["fields"]["message"].split()[1]) for line in open("out")]
assert numbers == list(range(1, len(numbers) + 1)), numbers[:5]
PY
    done
}

run_cases
