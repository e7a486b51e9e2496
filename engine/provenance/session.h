/* The inside of a session. */
#ifndef LAHAR_PROVENANCE_SESSION_H
#define LAHAR_PROVENANCE_SESSION_H

#include "engine/provenance/handle.h"
#include "engine/provenance/uuid_map.h"

struct lahar_session_flowfile {
    lahar_flowfile before; /* as taken */
    lahar_flowfile now;
    const lahar_bytes *parents; /* of one that was created */
    size_t parent_count;
    lahar_bytes relationship; /* transferred to; data NULL: not yet */
    lahar_bytes queue;
    int64_t created_ns; /* when it became part of the session */
    bool is_new;
    bool is_removed;
    bool is_terminated; /* the relationship ends there */
    bool has_origin;    /* an event tells how it came to be */
};

struct lahar_session_event {
    lahar_prov_event event;
    size_t flowfile;
    lahar_flowfile emitted; /* the FlowFile when the event was emitted */
};

struct lahar_session {
    struct lahar_provenance *provenance;
    struct lahar_arena identity; /* of the component */
    struct lahar_arena arena;    /* of the work in progress */
    lahar_bytes component;
    lahar_bytes component_type;
    struct lahar_uuid_map names;              /* numbers of flowfiles */
    struct lahar_session_flowfile *flowfiles; /* owned */
    size_t flowfile_count;
    size_t flowfile_capacity;
    struct lahar_session_event *events; /* owned, in order of emission */
    size_t event_count;
    size_t event_capacity;
    int64_t last_ns; /* the moment given out last */
};

lahar_status lahar_session_no_memory(lahar_error *error);
/* Puts the bytes into the arena. */
bool lahar_session_copy(struct lahar_arena *arena, lahar_bytes *bytes);
/* Now, later than any moment of the session before: the order in which things were done is told by
 * their times, as lineages need it, however coarse the clock. */
int64_t lahar_session_moment(struct lahar_session *session);
/* NULL when it is not part of the session. */
struct lahar_session_flowfile *lahar_session_find(const struct lahar_session *session,
                                                  lahar_bytes uuid);
/* Appends an event at once, with the FlowFile's state of now. */
lahar_status lahar_session_append_forced(struct lahar_session *session,
                                         const lahar_prov_event *event,
                                         const struct lahar_session_flowfile *flowfile,
                                         lahar_error *error);

#endif
