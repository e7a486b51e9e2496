/* Commits that share a write (engine/journal/commit_wait.c) for spin: who leads, who keeps the time,
 * and that nobody is left behind.
 *
 *   spin -DBATCHES=1 -search -O2 -DSAFETY -m200000 docs/model/group.pml       (must end with "errors: 0")
 *
 * Threads claim a place, publish it and wait until it is durable. Two take part in groups; one calls
 * the writer at once, as a thread with little time does. How many arrivals complete a group is
 * left open: any arrival may lead, or none but the one that keeps the time, whose patience may end
 * at any moment. A write ends at the first place that is not published. What is checked: nobody
 * waits for ever, which spin reports as an invalid end state. That a writer which is called looks at
 * the journal after that is what owner.pml shows; here it is taken for granted.
 *
 * spin -DNO_DEPART -search ...: the thread that keeps the time of an open group leaves it without a
 * word; -DALONE: ... if nobody else has arrived in it; -DLATE_END: a leader ends the group after it has
 * looked at what is published. Each must be found. */

#ifndef BATCHES
#define BATCHES 2
#endif
#define MEMBERS 2
#define PLACES 5 /* MEMBERS * BATCHES + 1 */
#define GROUPS 3 /* more than there are members */

#define NOBODY 0
#define PRODUCER 1
#define WRITER 2

byte claimed = 0;
bool published[PLACES];
byte durable = 0;
byte owner = NOBODY;
byte group = 0;
byte arrivals = 0;
bool is_called = false;

inline look()
{
    d_step {
        seen = durable;
        do
        :: seen < PLACES && published[seen] -> seen++
        :: else -> break
        od
    }
}

inline publish()
{
    atomic { mine = claimed; claimed++ };
    published[mine] = true
}

inline arrive()
{
    if
    :: arrival == 0 -> atomic { arrivals++; arrival = arrivals; mine_group = group }
    :: else
    fi
}

inline end_open_group()
{
    atomic { group = (group + 1) % GROUPS; arrivals = 0 }
}

/* did: wrote; !did && has: nothing new; !has: another has the journal, or the writer was called. */
inline lead()
{
    atomic {
        if
        :: owner == NOBODY -> owner = PRODUCER; has = true
        :: owner == PRODUCER -> has = false
        :: owner == WRITER -> has = false; is_called = true
        fi
    };
    did = false;
    if
    :: has ->
#ifndef LATE_END
        end_open_group();
#endif
        look();
#ifdef LATE_END
        end_open_group();
#endif
        atomic { did = seen > durable; durable = (did -> seen : durable); arrival = 0 };
        owner = NOBODY
    :: else
    fi
}

proctype member()
{
    byte n;
    byte mine;
    byte mine_group;
    byte arrival;
    byte seen;
    byte others;
    bool did;
    bool has;

    do
    :: n == BATCHES -> break
    :: else ->
        publish();
        arrival = 0;
        do
        :: durable > mine -> break
        :: else ->
            arrive();
            if
            :: lead();
               if
               :: did -> goto again
               :: !did && has ->
                   arrive()
               :: else
               fi
            :: skip
            fi;
            if
            :: durable > mine
            :: arrival == 1 -> /* has slept as long as the group gets */
                lead();
                if
                :: !did && has -> arrive()
                :: else
                fi
            fi;
again:      skip
        od;
#ifndef NO_DEPART
        if
        :: arrival == 1 ->
            others = 0;
            atomic {
                if
                :: group == mine_group -> others = arrivals; group = (group + 1) % GROUPS; arrivals = 0
                :: else
                fi
            };
            if
#ifdef ALONE
            :: others > 1 -> is_called = true
#else
            :: others != 0 -> is_called = true
#endif
            :: else
            fi
        :: else
        fi;
#endif
        n++
    od
}

proctype hasty()
{
    byte mine;

    publish();
    is_called = true;
    durable > mine
}

proctype writer()
{
    byte seen;

    do
    :: skip;
end_asleep:
       is_called;
       is_called = false;
       atomic { owner == NOBODY -> owner = WRITER };
       look();
       if
       :: seen > durable && arrivals == 0 -> durable = seen
       :: else
       fi;
       owner = NOBODY
    od
}

init {
    byte i;
    atomic {
        run writer();
        for (i : 1 .. MEMBERS) { run member() };
        run hasty()
    }
}
