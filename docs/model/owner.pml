/* Who steps a journal (engine/journal/journal_owner.c, writer.c, append.c) for spin: a waiting
 * producer that writes for itself, the writer that sleeps meanwhile, and who is woken for what.
 *
 *   spin -DBATCHES=1 -search -O2 -DSAFETY docs/model/owner.pml       (must end with "errors: 0")
 *
 * Two producers commit batches and wait until they are durable; a third appends without waiting
 * in the code, and waits here without calling anybody. What is checked:
 *   - the writer and a producer are never both at the journal;
 *   - nobody waits for ever: a batch that no owner looks at leaves its producer waiting, which spin
 *     reports as an invalid end state.
 * The ring is one number: batches published. Every change of `owner` is a read-modify-write in the
 * code and one step here.
 *
 * spin -DNO_CALL -search ...: a producer that finds another at the journal does not leave a call;
 * -DBLIND: a producer lets go without looking at what it was called for; -DNO_WANTED: the
 * writer sleeps although it could not have the journal. Each must be found. */

#ifndef BATCHES
#define BATCHES 2 /* above 20 million states */
#endif

/* Bits of the owner word. */
#define WRITER 1
#define PRODUCER 2
#define CALLED 4
#define WANTED 8

/* Attention, in rising order. */
#define NONE 0
#define WAIT 2
#define ANY 3

byte owner = 0;
byte attention = NONE; /* the writer is awake at first */
bool is_woken = false;
byte published = 0;
byte durable = 0;
byte at_journal = 0;

inline ring(least)
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

/* The owner scans and writes; a flush takes its time. */
inline write_published()
{
    at_journal++;
    assert(at_journal == 1);
    seen = published;
    did = seen > durable;
    if
    :: did -> durable = seen
    :: else
    fi;
    at_journal--
}

inline let_go()
{
    is_wanted = false;
    do
    :: atomic { owner == PRODUCER -> owner = 0 }; break
    :: atomic {
           owner != PRODUCER;
           is_wanted = is_wanted || (owner & WANTED) != 0;
#ifdef BLIND
           owner = 0
#else
           owner = PRODUCER
#endif
       };
#ifdef BLIND
       break
#else
       seen = published;
       is_wanted = is_wanted || seen > durable
#endif
    od;
    if
    :: is_wanted -> is_woken = true
    :: else
    fi
}

inline call_owner()
{
    if
    :: atomic { (owner & PRODUCER) != 0 ->
#ifndef NO_CALL
           owner = owner | CALLED
#endif
       }
    :: atomic { (owner & PRODUCER) == 0 -> skip }; ring(WAIT)
    fi
}

proctype committer()
{
    byte n;
    byte mine;
    byte seen;
    bool did;
    bool is_wanted;

    do
    :: n == BATCHES -> break
    :: else ->
        atomic { published++; mine = published };
        /* Whether it waits alone decides who writes; here either may be. */
        if
        :: durable >= mine
        :: atomic { owner == 0 -> owner = PRODUCER };
           write_published();
           let_go()
        :: call_owner();
           durable >= mine
        fi;
        durable >= mine;
        n++
    od
}

proctype appender()
{
    byte mine;

    atomic { published++; mine = published };
    ring(ANY);
    durable >= mine
}

proctype writer()
{
    byte seen;
    bool did;
    bool has;

    do
    :: did = false;
       atomic {
           if
           :: (owner & PRODUCER) != 0 ->
               has = false;
#ifndef NO_WANTED
               owner = owner | WANTED
#endif
           :: else -> has = true; owner = WRITER
           fi
       };
       if
       :: has ->
           attention = ANY;
           write_published();
           owner = 0
       :: else
       fi;
       if
       :: did
       :: else ->
end_asleep:
           is_woken;
           is_woken = false
       fi;
       attention = NONE
    od
}

init {
    atomic {
        run writer();
        run committer();
        run committer();
        run appender()
    }
}
