/* The protocol of the ring (engine/journal/ring.c, journal_writer.c, writer.c, catalog.c)
 * for spin: claim, close, install, publish, drain, walk, sleep, wake.
 *
 *   spin -search -O2 -DSAFETY -m200000 docs/model/ring.pml       (must end with "errors: 0")
 *
 * 16 million states, 2.1 GB; with -DCOLLAPSE 0.8 GB and three times as long. With -DBATCHES=1
 * -DWINDOW=1 160,000 states, which every test run goes through (tests/model).
 *
 * Producers append batches of one id and wait for their last one to be durable. What is checked:
 *   - no two frames, or a frame and a pad, share a place in a chunk;
 *   - a link slot is filled only when the walker has read its last occupant;
 *   - the writer finds frames whole and in place, the walker finds ids without a hole;
 *   - nobody waits for ever: a wake-up that is lost, a chunk that nobody installs or a batch that
 *     is never written leaves a producer waiting, which spin reports as an invalid end state.
 * Every access to shared state is one step, as every such access in the code is one
 * sequentially consistent or read-modify-write operation; what the code does in one such
 * operation is atomic here. Memory is not reused: chunks are numbered upwards. The wait of a
 * producer for a gate is a condition, because gate.c is the classic ticket protocol.
 *
 * spin -DLOST_WAKE -search ...: the writer does not look again before it sleeps; -DLATE_LINK:
 * the size word is published before the link slot; -DNO_WINDOW: ids are not reserved;
 * -DNO_ALARM: a full chunk does not call the writer. Each must be found. */

#ifndef BATCHES
#define BATCHES 2
#endif
#define UNITS 3 /* a chunk's size */
#define CHUNKS 5
#ifndef WINDOW
#define WINDOW 2 /* link slots */
#endif
#define PLACES 18 /* UNITS * (CHUNKS + 1) */

#define PAD 9

/* Attention, in rising order. */
#define NONE 0
#define SPACE 1
#define WAIT 2
#define ANY 3

/* The claim word: number of the open chunk, units claimed in it. Chunk 0 is closed. */
byte number = 0;
byte claimed = 4; /* UNITS + 1 */
byte prepared = 0;
byte attention = NONE;
bool is_woken = false;

byte size_word[PLACES];
byte taken[PLACES]; /* how often a unit was claimed */
byte id_at[PLACES];
byte link_end[WINDOW];
byte link_place[WINDOW];

byte reserved_id = 1;
byte next_id = 1;
byte walked_id = 1;   /* catalog.published_id */
byte wanted_id = 1;
byte durable_id = 1;
byte durable_place = UNITS; /* the journal's durable position; chunk 1 begins at UNITS */
byte place_of[8];           /* the catalog: by id */

/* Under the catalog's mutex; by any thread. */
inline walk()
{
    d_step {
        do
        :: link_end[walked_id % WINDOW] > walked_id ->
            assert(id_at[link_place[walked_id % WINDOW]] == walked_id);
            place_of[walked_id] = link_place[walked_id % WINDOW];
            walked_id++
        :: else -> break
        od;
        do
        :: durable_id < walked_id && place_of[durable_id] < durable_place -> durable_id++
        :: else -> break
        od
    }
}

inline call(least)
{
    if
    :: attention >= least ->
        atomic {
            if
            :: attention != NONE -> attention = NONE; is_woken = true
            :: else
            fi
        }
    :: else
    fi
}

inline take(place, units)
{
    d_step {
        i = 0;
        do
        :: i < units ->
            taken[place + i]++;
            assert(taken[place + i] == 1);
            i++
        :: else -> break
        od;
        i = 0
    }
}

proctype producer(byte size)
{
    byte n;
    byte start;
    byte chunk;
    byte place;
    byte id;
    byte i;

    do
    :: n == BATCHES -> break
    :: else ->
#ifndef NO_WINDOW
        if
        :: reserved_id + 1 > walked_id + WINDOW -> walk(); call(SPACE)
        :: else
        fi;
        atomic { reserved_id + 1 <= walked_id + WINDOW -> reserved_id++ }
#endif
retry:
        if
        :: claimed <= UNITS ->
            atomic { chunk = number; start = claimed; claimed = claimed + size }
            if
            :: start + size <= UNITS -> goto have_place
            :: start < UNITS && start + size > UNITS ->
                place = chunk * UNITS + start;
                take(place, UNITS - start);
                size_word[place] = PAD;
#ifndef NO_ALARM
                call(SPACE);
#endif
                goto retry
            :: else -> goto retry
            fi
        :: claimed > UNITS ->
            chunk = number;
            if
            :: prepared > chunk ->
                atomic {
                    if
                    :: number == chunk && claimed > UNITS ->
                        number = chunk + 1; claimed = size;
                        chunk = chunk + 1; start = 0;
                        goto have_place
                    :: else -> goto retry
                    fi
                }
            :: else ->
#ifndef NO_ALARM
                call(SPACE);
#endif
                prepared > chunk || number != chunk;
                goto retry
            fi
        fi;
have_place:
        place = chunk * UNITS + start;
        take(place, size);
        atomic { id = next_id; next_id++ }
        id_at[place] = id;
#ifdef LATE_LINK
        size_word[place] = size;
        call(ANY);
#endif
        assert(link_end[id % WINDOW] <= walked_id);
        link_place[id % WINDOW] = place;
        link_end[id % WINDOW] = id + 1;
#ifndef LATE_LINK
        size_word[place] = size;
        call(ANY);
#endif
        n++;
        if
        :: n == BATCHES ->
            atomic {
                if
                :: wanted_id < id + 1 -> wanted_id = id + 1
                :: else
                fi
            }
            /* Only a journal with something to make durable is called. */
            if
            :: number * UNITS + (claimed < UNITS -> claimed : UNITS) > durable_place -> call(WAIT)
            :: else
            fi;
            durable_id > id
        :: else
        fi
    od
}

byte scanned = UNITS; /* published without a gap below */

/* The step of the writer: scan, write, walk, prepare. */
inline step()
{
    did = false;
    do
    :: scanned / UNITS > prepared -> break
    :: scanned / UNITS <= prepared && size_word[scanned] == 0 -> break
    :: scanned / UNITS <= prepared && size_word[scanned] == PAD ->
        scanned = (scanned / UNITS + 1) * UNITS; did = true
    :: scanned / UNITS <= prepared && size_word[scanned] != 0 && size_word[scanned] != PAD ->
        assert(id_at[scanned] != 0);
        scanned = scanned + size_word[scanned]; did = true
    od;
    if
    :: prepared < CHUNKS && prepared == number -> prepared++; did = true
    :: else
    fi;
    /* What nobody waits for may be held back. */
    if
    :: durable_place < scanned && wanted_id > durable_id -> durable_place = scanned; did = true
    :: else
    fi;
    walk()
}

proctype writer()
{
    bool did;

    do
    :: step();
        if
        :: did
        :: else ->
            /* What it wants to be woken for: anything, or only waits while it holds back. */
            if
            :: durable_place < scanned -> attention = WAIT
            :: else -> attention = ANY
            fi;
#ifndef LOST_WAKE
            step();
#else
            did = false;
#endif
            if
            :: did
            :: else ->
end_asleep:
                is_woken;
                is_woken = false
            fi;
            attention = NONE
        fi
    od
}

init {
    atomic {
        run writer();
        run producer(1);
        run producer(2)
    }
}
