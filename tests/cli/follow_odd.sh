#!/bin/bash
# lahar follow beside writers and files that are hard to follow. With LAHAR_LONG=1 with 100,000
# files and with a line of 2 GB.
. "$(dirname "$0")/harness.sh"

count()
{
    "$LAHAR" query store '' --stream logs --count only 2>/dev/null
}

# Until the stream has that many events, for 20 s at most.
wait_for()
{
    for _ in $(seq 200); do
        [ "$(count)" = "$1" ] && return 0
        sleep 0.1
    done
    fail "$(count) events in place of $1"
}

start_follow()
{
    "$LAHAR" follow store >follow.out 2>follow.err &
    pid=$!
}

stop_follow()
{
    kill -INT "$pid"
    wait "$pid"
}

case_compressed_files_are_passed_over_or_decoded()
{
    mkdir logs
    seq 100 | sed 's/^/line /' | gzip >logs/app.log.1.gz
    ok "$LAHAR" source create store logs logs
    ok "$LAHAR" follow store --once
    expect_out_has "0 records"
    ok "$LAHAR" source drop store logs
    ok "$LAHAR" source create store logs logs --set decompress=1
    ok "$LAHAR" follow store --once
    expect_out_has "100 records"
}

case_a_cut_gzip_file_is_an_error_of_its_own()
{
    mkdir logs
    seq 100000 | gzip | head -c 100000 >logs/cut.log.gz
    printf 'one\n' >logs/plain.log
    ok "$LAHAR" source create store logs logs --set decompress=1
    ok "$LAHAR" follow store --once
    ok "$LAHAR" query store 'message:one' --stream logs --count only
    expect_out 1
    ok "$LAHAR" follow store --once
    expect_out_has "0 records"
}

case_copying_and_truncating_loses_and_repeats_nothing()
{
    mkdir logs
    : >logs/app.log
    ok "$LAHAR" source create store logs "$PWD/logs/app.log"
    start_follow
    n=0
    for rotation in 1 2 3; do
        for _ in $(seq 200); do
            echo "rot=$rotation n=$n" >>logs/app.log
            n=$((n + 1))
        done
        wait_for "$n"
        cp logs/app.log "logs/app.log.$rotation"
        : >logs/app.log
        sleep 1.2
    done
    stop_follow
    "$LAHAR" export store --stream logs --format raw | sort -u | wc -l >out
    expect_out 600
}

case_an_inode_that_is_used_again_is_another_file()
{
    mkdir logs
    printf 'old 1\nold 2\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    ok "$LAHAR" follow store --once
    inode=$(stat -c %i logs/a.log)
    for _ in $(seq 200); do
        rm logs/a.log
        printf 'new 1\nnew 2\nnew 3\nnew 4\n' >logs/a.log
        [ "$(stat -c %i logs/a.log)" = "$inode" ] && break
    done
    ok "$LAHAR" follow store --once
    ok "$LAHAR" query store new --stream logs --count only
    expect_out 4
}

case_a_line_in_pieces_is_one_record()
{
    : >app.jsonl
    ok "$LAHAR" source create store logs "$PWD/app.jsonl" --format JSONEachRow
    start_follow
    printf '{"a":1,"m":"par' >>app.jsonl
    sleep 0.3
    printf 'tial \360\237' >>app.jsonl
    sleep 0.3
    printf '\230\200 end"}\r' >>app.jsonl
    sleep 0.3
    printf '\n{"a":2}\n' >>app.jsonl
    wait_for 2
    stop_follow
    "$LAHAR" export store --stream logs --format raw >out
    [ "$(cat out)" = "$(printf '{"a":1,"m":"partial \360\237\230\200 end"}\n{"a":2}')" ] ||
        fail "other records"
}

case_many_small_files_need_few_descriptors()
{
    files=2000
    [ "${LAHAR_LONG-0}" = 1 ] && files=100000
    python3 - "$files" <<'P'
import os, sys
for i in range(int(sys.argv[1])):
    if i % 1000 == 0:
        os.makedirs("logs/%03d" % (i // 1000))
    with open("logs/%03d/f%06d.log" % (i // 1000, i), "w") as f:
        f.write("2024-05-01T00:00:00Z tiny seq%06d ok\n" % i)
P
    ulimit -n 256
    ok "$LAHAR" source create store logs "$PWD/logs/**/*.log" --set open_files_max=64
    ok "$LAHAR" follow store --once
    expect_out_has "$files records"
    ok "$LAHAR" follow store --once
    expect_out_has "0 records"
    ok "$LAHAR" query store 'seq001999' --stream logs --count only
    expect_out 1
}

case_what_is_no_file_stops_nothing()
{
    mkdir -p logs/locked
    mkfifo logs/pipe.log
    ln -s /dev/zero logs/zero.log
    ln -s loop.log logs/loop.log
    ln -s . logs/around
    mkdir logs/directory.log
    printf 'a line\n' >logs/locked/in.log
    printf 'one\n' >logs/good.log
    printf 'two\n' >logs/replaced.log
    chmod 000 logs/locked
    ok "$LAHAR" source create store logs "$PWD/logs/**"
    ok timeout 60 "$LAHAR" follow store --once
    rm logs/replaced.log
    mkfifo logs/replaced.log
    printf 'three\n' >>logs/good.log
    ok timeout 60 "$LAHAR" follow store --once
    chmod 700 logs/locked
    ok timeout 60 "$LAHAR" follow store --once
    ok "$LAHAR" query store 'one OR two OR three' --stream logs --count only
    expect_out 3
    ok "$LAHAR" query store '"a line"' --stream logs --count only
    expect_out 1
}

# peak: the most memory that the follower has held, in KiB.
peak()
{
    awk '/VmHWM/ { print $2 }' "/proc/$pid/status"
}

case_a_line_without_end_is_not_held_in_memory()
{
    size=200000000
    [ "${LAHAR_LONG-0}" = 1 ] && size=2000000000
    mkdir logs
    printf 'before\n' >logs/a.log
    ok "$LAHAR" source create store logs logs
    start_follow
    wait_for 1
    before=$(peak)
    head -c "$size" /dev/zero | tr '\0' x >>logs/a.log
    printf 'after\n' >logs/b.log
    wait_for 2
    printf '\nlast\n' >>logs/a.log
    for _ in $(seq 600); do
        [ "$(count)" = 4 ] && break
        sleep 0.1
    done
    after=$(peak)
    stop_follow
    [ "$(count)" = 4 ] || fail "$(count) events in place of 4"
    [ $((after - before)) -lt 65536 ] || fail "the follower grew by $((after - before)) KiB"
    ok "$LAHAR" query store "_truncated:$size" --stream logs --count only
    expect_out 1
}

run_cases
