/* Provenance: events about FlowFiles, as Apache NiFi records them. docs/nifi.md says what stands
 * for each part of NiFi's repository.
 *
 * Everything here works on a stream of the provenance schema through a handle, which any number
 * of threads may use. What a handle's authorization hides is absent from its answers. */
#ifndef LAHAR_PROVENANCE_H
#define LAHAR_PROVENANCE_H

#include "lahar/append.h"
#include "lahar/event.h"
#include "lahar/query.h"
#include "lahar/read.h"
#include "lahar/status.h"
#include "lahar/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of NiFi's own list. */
typedef enum lahar_prov_type {
    LAHAR_PROV_CREATE = 0,
    LAHAR_PROV_RECEIVE = 1,
    LAHAR_PROV_FETCH = 2,
    LAHAR_PROV_SEND = 3,
    LAHAR_PROV_UPLOAD = 4,
    LAHAR_PROV_REMOTE_INVOCATION = 5,
    LAHAR_PROV_DOWNLOAD = 6,
    LAHAR_PROV_DROP = 7,
    LAHAR_PROV_EXPIRE = 8,
    LAHAR_PROV_FORK = 9,
    LAHAR_PROV_JOIN = 10,
    LAHAR_PROV_CLONE = 11,
    LAHAR_PROV_CONTENT_MODIFIED = 12,
    LAHAR_PROV_ATTRIBUTES_MODIFIED = 13,
    LAHAR_PROV_ROUTE = 14,
    LAHAR_PROV_ADDINFO = 15,
    LAHAR_PROV_REPLAY = 16,
    LAHAR_PROV_UNKNOWN = 17 /* also: a name that is none of these */
} lahar_prov_type;

LAHAR_API const char *lahar_prov_type_name(lahar_prov_type type);
LAHAR_API lahar_prov_type lahar_prov_type_find(lahar_bytes name);

/* In place of a time that is not known. */
#define LAHAR_PROV_NO_TIME INT64_MIN

/* Where content lies in a content repository. A part that is absent has data NULL. */
typedef struct lahar_claim {
    lahar_bytes container;
    lahar_bytes section;
    lahar_bytes id;
    bool has_offset;
    bool has_size;   /* else the size of the FlowFile */
    uint64_t offset; /* bytes */
    uint64_t size;
} lahar_claim;

/* One event. Strings that are absent have data NULL. FlowFiles are named by the text of their
 * uuid; another text is allowed, kept as it is, and stands for a uuid derived from it. */
typedef struct lahar_prov_event {
    uint64_t id;        /* given by the store */
    int64_t time_ns;    /* LAHAR_TIME_OF_ARRIVAL: now */
    int64_t arrival_ns; /* given by the store */
    lahar_prov_type type;
    lahar_bytes type_name; /* as stored; ignored by append */
    lahar_bytes component;
    lahar_bytes component_type;
    lahar_bytes component_name;
    lahar_bytes process_group;
    lahar_bytes uuid;
    lahar_bytes entity_type;
    bool has_size;
    bool has_previous_size;
    bool has_duration;
    uint64_t size; /* bytes */
    uint64_t previous_size;
    int64_t duration_ns;
    int64_t entry_ns;           /* LAHAR_PROV_NO_TIME: not known */
    int64_t lineage_start_ns;   /* the same */
    const lahar_pair *previous; /* attributes before the event */
    size_t previous_count;
    const lahar_pair *updated; /* what it changed; null: removed */
    size_t updated_count;
    lahar_claim claim;
    lahar_claim previous_claim;
    const lahar_bytes *parents;
    size_t parent_count;
    const lahar_bytes *children;
    size_t child_count;
    lahar_bytes source_queue;
    lahar_bytes transit_uri;
    lahar_bytes source_system;
    lahar_bytes alternate_id;
    lahar_bytes relationship;
    lahar_bytes details;
} lahar_prov_event;

/* All absent, type UNKNOWN, time of arrival. */
LAHAR_API void lahar_prov_event_init(lahar_prov_event *event);

/* NiFi's rules: type, component, its type, uuid and size; ADDINFO has an alternate identifier,
 * RECEIVE, FETCH, SEND and UPLOAD a transit URI, ROUTE a relationship, and CLONE, FORK and JOIN
 * have a parent or a child. LAHAR_INVALID says which is broken. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_check(const lahar_prov_event *event,
                                                        lahar_error *error);

/* --- content of other stores ---------------------------------------------------------------- */

/* A directory of a content repository: content lies in <directory>/<section>/<id>. */
typedef struct lahar_container {
    const char *name;
    const char *directory;
} lahar_container;

/* Why content cannot be given, or an event not be replayed. */
typedef enum lahar_refusal {
    LAHAR_REFUSAL_NONE = 0,
    LAHAR_REFUSAL_JOIN = 1,              /* made from several FlowFiles */
    LAHAR_REFUSAL_NO_CLAIM = 2,          /* the event names no content */
    LAHAR_REFUSAL_PARTIAL_CLAIM = 3,     /* it names only a part of where content lies */
    LAHAR_REFUSAL_BAD_CLAIM = 4,         /* a section or id that is not a plain file name */
    LAHAR_REFUSAL_UNKNOWN_CONTAINER = 5, /* the host gave no directory for it */
    LAHAR_REFUSAL_DELETED = 6,
    LAHAR_REFUSAL_ARCHIVED = 7,  /* moved to the archive of its section */
    LAHAR_REFUSAL_TRUNCATED = 8, /* shorter than the claim */
    LAHAR_REFUSAL_NO_QUEUE = 9,  /* the event names no queue to put the FlowFile into */
    LAHAR_REFUSAL_QUEUE_GONE = 10
} lahar_refusal;

LAHAR_API const char *lahar_refusal_name(lahar_refusal refusal);

/* Content that is not in directories of this machine. Any thread. */
typedef struct lahar_content_store {
    /* Whether the claim's bytes are there. */
    lahar_refusal (*check)(void *context, const lahar_claim *claim);
    /* Up to size bytes at an offset of the claimed bytes. */
    lahar_status (*read)(void *context, const lahar_claim *claim, uint64_t offset, void *data,
                         size_t size, size_t *read_out, lahar_error *error);
    void *context;
} lahar_content_store;

/* --- the handle ------------------------------------------------------------------------------ */

typedef struct lahar_provenance lahar_provenance;

typedef struct lahar_provenance_options {
    size_t struct_size;
    const char *stream;            /* "provenance"; created where absent and the store writable */
    uint32_t attribute_length_max; /* characters shown of an attribute; 65,536; at least 36 */
    lahar_authorize authorize;     /* NULL: everything may be seen */
    void *authorize_context;
    const lahar_container *containers; /* copied */
    size_t container_count;
    const lahar_content_store *content; /* in place of containers; copied; NULL: none */
    /* Whether FlowFiles may still be put into the queue; NULL: into any. */
    bool (*queue_exists)(void *context, lahar_bytes queue);
    void *queue_context;
} lahar_provenance_options;

LAHAR_API void lahar_provenance_options_init(lahar_provenance_options *options);

LAHAR_API LAHAR_NODISCARD lahar_status
lahar_provenance_open(lahar_store *store, const lahar_provenance_options *options,
                      lahar_provenance **provenance_out, lahar_error *error);
LAHAR_API void lahar_provenance_close(lahar_provenance *provenance); /* NULL is allowed */
LAHAR_API uint32_t lahar_provenance_stream(const lahar_provenance *provenance);

/* Checks the events and appends them as one batch under consecutive ids. */
LAHAR_API LAHAR_NODISCARD lahar_status
lahar_prov_append(lahar_provenance *provenance, const lahar_prov_event *events, size_t event_count,
                  const lahar_append_options *options, uint64_t *first_id_out, lahar_error *error);

/* An event with the attributes as they took effect; the longest attribute shown is cut at a
 * character. Independent of the handle once given out. */
typedef struct lahar_prov_record lahar_prov_record;

/* LAHAR_NOT_FOUND; LAHAR_DENIED: authorization hides it. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_get(lahar_provenance *provenance, uint64_t id,
                                                      lahar_prov_record **record_out,
                                                      lahar_error *error);
/* From an event of a query or a scan. LAHAR_INVALID: it is of another stream. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_record_of(lahar_provenance *provenance,
                                                            const lahar_event *event,
                                                            lahar_prov_record **record_out,
                                                            lahar_error *error);
LAHAR_API const lahar_prov_event *lahar_prov_record_event(const lahar_prov_record *record);
LAHAR_API const lahar_pair *lahar_prov_record_effective(const lahar_prov_record *record,
                                                        size_t *count_out);
LAHAR_API void lahar_prov_record_close(lahar_prov_record *record); /* NULL is allowed */

/* --- queries of NiFi's dialog ------------------------------------------------------------------
 */

/* One line of the dialog: NiFi's name of a field (FlowFileUUID, EventType, ...) or an attribute's,
 * compared whole and case-blind; '*' is any run of characters, '?' one. */
typedef struct lahar_prov_term {
    lahar_bytes name;
    lahar_bytes value;
    bool is_inverse;
} lahar_prov_term;

typedef struct lahar_prov_search {
    size_t struct_size;
    const lahar_prov_term *terms; /* all of them must be met */
    size_t term_count;
    int64_t from_ns; /* event time, both ends inclusive; INT64_MIN, INT64_MAX: open */
    int64_t to_ns;
    uint64_t size_min; /* bytes, both ends inclusive */
    uint64_t size_max; /* UINT64_MAX: open */
    uint64_t limit;    /* newest by id; 0: none */
} lahar_prov_search;

LAHAR_API void lahar_prov_search_init(lahar_prov_search *search);
/* The query's total is exact, whatever limit is. LAHAR_INVALID: from_ns is behind to_ns. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_search_open(lahar_provenance *provenance,
                                                              const lahar_prov_search *search,
                                                              lahar_query **query_out,
                                                              lahar_error *error);

/* The events of the last batch in which the component took part, newest first, up to limit: from
 * memory while they are among the newest, also after reopening. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_latest(lahar_provenance *provenance,
                                                         lahar_bytes component, uint64_t *ids_out,
                                                         size_t limit, size_t *count_out,
                                                         lahar_error *error);

/* Events a type, a component and an hour (of event time) for those that match expression. Keys
 * in rising order. */
typedef enum lahar_prov_group {
    LAHAR_PROV_BY_TYPE = 0,
    LAHAR_PROV_BY_COMPONENT = 1,
    LAHAR_PROV_BY_HOUR = 2 /* the key is its beginning, RFC 3339 */
} lahar_prov_group;
typedef lahar_status (*lahar_prov_count_visitor)(void *context, lahar_prov_group group,
                                                 lahar_bytes key, uint64_t event_count,
                                                 uint64_t size_sum);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_statistics(lahar_provenance *provenance,
                                                             const char *expression,
                                                             lahar_prov_count_visitor visit,
                                                             void *context, lahar_error *error);

/* What was sent of a FlowFile: calls visit for each SEND and UPLOAD of it, oldest first. */
typedef struct lahar_prov_sent {
    size_t struct_size;
    uint64_t sent_count;
    bool has_events;      /* the stream holds some event that may be seen */
    uint64_t earliest_id; /* of those held: nothing is known of what was before */
    int64_t earliest_time_ns;
    bool is_partial; /* events could not be read: "never" is not certain */
} lahar_prov_sent;
typedef lahar_status (*lahar_prov_visitor)(void *context, const lahar_prov_record *record);
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_sent_of(lahar_provenance *provenance,
                                                          lahar_bytes uuid,
                                                          lahar_prov_visitor visit, void *context,
                                                          lahar_prov_sent *sent_out,
                                                          lahar_error *error);

/* --- session ------------------------------------------------------------------------------------
 */

/* A unit of work of a component. Events wait in it until commit, which gives them the attributes
 * and content as committed, derives those that nobody emitted, and appends all as one batch. One
 * thread at a time. */
typedef struct lahar_session lahar_session;

/* A FlowFile as it stands. */
typedef struct lahar_flowfile {
    lahar_bytes uuid;
    const lahar_pair *attributes;
    size_t attribute_count;
    lahar_claim claim;
    uint64_t size; /* bytes */
    int64_t entry_ns;
    int64_t lineage_start_ns;
    lahar_bytes queue; /* the one it was taken from */
} lahar_flowfile;

LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_open(lahar_provenance *provenance,
                                                          lahar_bytes component,
                                                          lahar_bytes component_type,
                                                          lahar_session **session_out,
                                                          lahar_error *error);
/* What was not committed is rolled back. NULL is allowed. */
LAHAR_API void lahar_session_close(lahar_session *session);

/* A FlowFile that exists: its state is what came before. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_take(lahar_session *session,
                                                          const lahar_flowfile *flowfile,
                                                          lahar_error *error);
/* A new FlowFile: from nothing, from one parent (FORK) or from several (JOIN), all of them known
 * to the session. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_create(lahar_session *session,
                                                            const lahar_flowfile *flowfile,
                                                            const lahar_bytes *parents,
                                                            size_t parent_count,
                                                            lahar_error *error);
/* A copy of a FlowFile under another uuid: CLONE, with the attributes of now. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_clone(lahar_session *session, lahar_bytes uuid,
                                                           lahar_bytes new_uuid,
                                                           lahar_error *error);
/* Its attributes, content and size from now on. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_update(lahar_session *session,
                                                            const lahar_flowfile *flowfile,
                                                            lahar_error *error);
/* Removes it: DROP, for a FlowFile that existed. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_remove(lahar_session *session,
                                                            lahar_bytes uuid, lahar_error *error);
/* Where it goes. is_terminated: the relationship ends there, DROP. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_transfer(lahar_session *session,
                                                              lahar_bytes uuid,
                                                              lahar_bytes relationship,
                                                              lahar_bytes queue, bool is_terminated,
                                                              lahar_error *error);
/* An event of the component about a FlowFile of the session. Component, attributes, content,
 * size and times are filled in; what the event gives of the others is kept. force: appended at
 * once, whatever becomes of the session. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_emit(lahar_session *session,
                                                          const lahar_prov_event *event, bool force,
                                                          lahar_error *error);
/* The session is empty afterwards and can be used again; on failure it is as before.
 * *event_count_out may be NULL. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_session_commit(lahar_session *session,
                                                            const lahar_append_options *options,
                                                            uint64_t *first_id_out,
                                                            size_t *event_count_out,
                                                            lahar_error *error);
LAHAR_API void lahar_session_rollback(lahar_session *session);

/* --- lineage ------------------------------------------------------------------------------------
 */

typedef enum lahar_lineage_kind {
    LAHAR_LINEAGE_FLOWFILE = 0,       /* of the uuid in start */
    LAHAR_LINEAGE_EVENT = 1,          /* of the FlowFile of an event */
    LAHAR_LINEAGE_EXPAND_PARENTS = 2, /* of an event */
    LAHAR_LINEAGE_EXPAND_CHILDREN = 3
} lahar_lineage_kind;

/* As depth: as far as events go. */
#define LAHAR_LINEAGE_ALL UINT32_MAX

typedef struct lahar_lineage_options {
    size_t struct_size;
    lahar_lineage_kind kind;
    lahar_bytes uuid;          /* FLOWFILE */
    uint64_t id;               /* the others */
    uint32_t ancestor_depth;   /* generations to follow to parents; 0: none, as NiFi does */
    uint32_t descendant_depth; /* ... to children */
    int64_t from_ns;           /* events outside are left out; INT64_MIN, INT64_MAX: open */
    int64_t to_ns;             /* exclusive */
    uint64_t event_max;        /* most events of the graph; default 1,000,000 */
} lahar_lineage_options;

LAHAR_API void lahar_lineage_options_init(lahar_lineage_options *options);

typedef struct lahar_lineage lahar_lineage;

/* Computes on a thread of its own over a snapshot taken now. Close cancels and waits for it. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_lineage_start(lahar_provenance *provenance,
                                                           const lahar_lineage_options *options,
                                                           lahar_lineage **lineage_out,
                                                           lahar_error *error);
/* The status of the computation once it has ended: LAHAR_NOT_FOUND: no such event;
 * LAHAR_INVALID: an event of this type has no parents or children; LAHAR_CANCELLED, LAHAR_CORRUPT
 * (the graph holds what could be read), LAHAR_NO_MEMORY. LAHAR_TIMEOUT: not yet. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_lineage_wait(lahar_lineage *lineage,
                                                          uint64_t deadline_ns, lahar_error *error);
/* 0 .. 100, and how many events were found so far. Any thread. */
LAHAR_API uint32_t lahar_lineage_progress(const lahar_lineage *lineage, uint64_t *event_count_out);
LAHAR_API void lahar_lineage_cancel(lahar_lineage *lineage); /* any thread */
LAHAR_API void lahar_lineage_close(lahar_lineage *lineage);  /* NULL is allowed */

typedef struct lahar_lineage_node {
    bool is_event;      /* else a FlowFile */
    bool is_hidden;     /* an event of type UNKNOWN in place of one that may not be seen */
    bool has_no_origin; /* a FlowFile of which no event tells how it came to be */
    int32_t generation; /* FlowFiles: -1 parents of the start, 1 children, ... */
    uint64_t id;        /* events */
    int64_t time_ns;
    lahar_bytes type; /* events */
    lahar_bytes uuid; /* of the FlowFile */
    lahar_bytes component;
    lahar_bytes component_type;
    lahar_bytes component_name;
    lahar_bytes transit_uri;
    lahar_bytes relationship;
} lahar_lineage_node;

typedef struct lahar_lineage_edge {
    uint32_t from; /* of the nodes */
    uint32_t to;
    lahar_bytes uuid;
} lahar_lineage_edge;

/* Of a computation that has ended, until close; empty before. */
typedef struct lahar_lineage_graph {
    size_t struct_size;
    const lahar_lineage_node *nodes; /* events in order of (time, id), then FlowFiles */
    size_t node_count;
    size_t event_count; /* of the nodes */
    const lahar_lineage_edge *edges;
    size_t edge_count;
    bool is_truncated;   /* depth or event_max left something out */
    const char *problem; /* NULL, or what the events contradict themselves in */
} lahar_lineage_graph;

LAHAR_API void lahar_lineage_graph_get(const lahar_lineage *lineage,
                                       lahar_lineage_graph *graph_out);

typedef enum lahar_lineage_format {
    LAHAR_LINEAGE_TREE = 0, /* indented text */
    LAHAR_LINEAGE_JSON = 1,
    LAHAR_LINEAGE_DOT = 2,
    LAHAR_LINEAGE_MERMAID = 3,
    LAHAR_LINEAGE_PROV_JSON = 4 /* W3C PROV-JSON */
} lahar_lineage_format;

/* The graph as text that ends with a newline; owned by the lineage, until the next call.
 * LAHAR_BUSY: it is not computed yet. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_lineage_format_text(lahar_lineage *lineage,
                                                                 lahar_lineage_format format,
                                                                 lahar_bytes *text_out,
                                                                 lahar_error *error);

/* --- content and replay -------------------------------------------------------------------------
 */

/* Takes the next bytes of content. A status other than LAHAR_OK ends the call with it. */
typedef lahar_status (*lahar_content_sink)(void *context, const void *data, size_t size);

/* Streams the content as it was before (input) or after (output) an event; records nothing.
 * LAHAR_NOT_FOUND with *refusal_out NONE: no such event, else: why not, error says it in words.
 * LAHAR_DENIED. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_content_stream(lahar_provenance *provenance,
                                                            uint64_t id, bool is_input,
                                                            lahar_content_sink sink, void *context,
                                                            lahar_refusal *refusal_out,
                                                            lahar_error *error);

/* What a replay made; owned by the caller. */
typedef struct lahar_replay lahar_replay;

/* Streams the content before an event and records REPLAY once the sink has taken all of it.
 * target: a queue other than the event's own, data NULL: its own. Results as for
 * lahar_content_stream. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_replay_run(lahar_provenance *provenance, uint64_t id,
                                                        lahar_bytes target, lahar_content_sink sink,
                                                        void *context, lahar_replay **replay_out,
                                                        lahar_refusal *refusal_out,
                                                        lahar_error *error);
/* The new FlowFile: new uuid, the attributes before the event and the marks flowfile.replay and
 * flowfile.replay.timestamp, lineage start kept, entry now, queue: where to put it. */
LAHAR_API const lahar_flowfile *lahar_replay_flowfile(const lahar_replay *replay);
LAHAR_API uint64_t lahar_replay_event_id(const lahar_replay *replay); /* of the REPLAY event */
LAHAR_API void lahar_replay_close(lahar_replay *replay);              /* NULL is allowed */

/* --- NiFi's own files ------------------------------------------------------------------------ */

typedef struct lahar_prov_import_options {
    size_t struct_size;
    /* Told of each record that is passed over, by its offset in the file, unpacked. NULL: nobody.
     */
    void (*on_error)(void *context, uint64_t offset, const char *message);
    /* Asked between batches; NULL: never. */
    bool (*is_cancelled)(void *context);
    void *context; /* of both */
} lahar_prov_import_options;

LAHAR_API void lahar_prov_import_options_init(lahar_prov_import_options *options);

typedef struct lahar_prov_import_result {
    size_t struct_size;
    uint64_t event_count;
    uint64_t error_count; /* records passed over, a torn last one included */
    uint64_t first_id;    /* 0 when there are no events */
    uint64_t last_id;
} lahar_prov_import_result;

/* Appends the events of an event file of NiFi's write-ahead repository (.prov, or .prov.gz, by
 * content) in batches, in their order, with whatever they lack. path is absolute. An empty file has
 * none. result_out, which says what was appended, is filled on failure too.
 * LAHAR_CORRUPT: the head of the file cannot be read; LAHAR_UNSUPPORTED: it is of another kind;
 * LAHAR_CANCELLED; LAHAR_NOT_FOUND, LAHAR_IO; as for append. Any thread. */
LAHAR_API LAHAR_NODISCARD lahar_status lahar_prov_import_file(
    lahar_provenance *provenance, const char *path, const lahar_prov_import_options *options,
    lahar_prov_import_result *result_out, lahar_error *error);

#ifdef __cplusplus
}
#endif
#endif
