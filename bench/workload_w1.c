/* How event i is made without the events before it: events come in rounds of
 * 8,192, in each of which every one of the 1,024 slots has eight turns, in an
 * order of the round's own. Turn n of a slot since the start is stage
 * (n + phase) % 6 of its FlowFile number (n + phase) / 6. So the time between
 * two events of a FlowFile varies as it does where FlowFiles wait in queues,
 * which decides how well a compressor can use the repetition. A slot's FlowFile and
 * the order of the round are kept and made again when another one is asked for. */
#include "bench/workload_w1.h"

#include <stdlib.h>

#include "bench/random.h"
#include "bench/text.h"

enum {
    TEXT_SIZE = 1024,    /* all the strings of one FlowFile; they take about 600 */
    OWN_ATTRIBUTES = 11, /* set once a FlowFile */
    SCRATCH_SIZE = 256   /* strings of one event */
};
/* Eight turns of each slot. */
enum {
    ROUND_TURNS = 8,
    ROUND_EVENTS = WORKLOAD_W1_FLOWFILES * ROUND_TURNS
};
static const int64_t START_MS = 1715904000000; /* 2024-05-17T00:00:00Z */

/* Domains of random numbers. */
enum {
    DOMAIN_COMPONENT = 1,
    DOMAIN_PHASE,
    DOMAIN_ROUND,
    DOMAIN_FLOWFILE,
    DOMAIN_EVENT,
    DOMAIN_TIME
};

struct flowfile {
    uint64_t number; /* UINT64_MAX: none made yet */
    int64_t born_ms;
    uint64_t size; /* bytes */
    uint64_t claim_offset;
    lahar_uuid uuid;
    lahar_bytes claim_section;
    lahar_bytes claim_id;
    lahar_bytes uri;
    lahar_pair attributes[OWN_ATTRIBUTES]; /* point into text */
    char text[TEXT_SIZE];
};

struct round {
    uint64_t number; /* UINT64_MAX: none ordered yet */
    uint16_t slots[ROUND_EVENTS];
    uint8_t turns[ROUND_EVENTS]; /* how often the slot came before, in this round */
};

struct workload_w1 {
    uint64_t seed;
    struct random_zipf types;
    struct random_zipf components;
    lahar_uuid component_ids[WORKLOAD_W1_COMPONENTS];
    uint32_t phases[WORKLOAD_W1_FLOWFILES];
    struct flowfile flowfiles[WORKLOAD_W1_FLOWFILES];
    struct round round;
    char scratch[SCRATCH_SIZE];
};

/* The most frequent first. */
static const char *const TYPES[WORKLOAD_W1_TYPES] = {"ATTRIBUTES_MODIFIED",
                                                     "ROUTE",
                                                     "CONTENT_MODIFIED",
                                                     "RECEIVE",
                                                     "SEND",
                                                     "DROP",
                                                     "FETCH",
                                                     "CREATE",
                                                     "CLONE",
                                                     "FORK",
                                                     "JOIN",
                                                     "ADDINFO",
                                                     "REMOTE_INVOCATION",
                                                     "UPLOAD",
                                                     "DOWNLOAD",
                                                     "EXPIRE",
                                                     "REPLAY",
                                                     "UNKNOWN"};

enum {
    COMPONENT_TYPES = 20
};
static const char *const COMPONENT_TYPE[COMPONENT_TYPES] = {
    "HandleHttpRequest",  "UpdateAttribute",    "RouteOnContent",      "ConvertRecord",
    "PublishKafkaRecord", "ConsumeKafkaRecord", "PutAzureBlobStorage", "GetSFTP",
    "ListFile",           "MergeRecord",        "SplitText",           "QueryDatabaseTable",
    "PutDatabaseRecord",  "InvokeHTTP",         "JoltTransformRecord", "EvaluateXPath",
    "ReplaceText",        "CompressContent",    "PutParquet",          "LogMessage"};

enum {
    KINDS = 8,
    FORMATS = 5
};
static const char *const KIND[KINDS] = {"booking",     "claims",  "metering", "ledger",
                                        "impressions", "refunds", "dispatch", "probe"};
static const char *const MIME_TYPE[FORMATS] = {
    "application/json", "text/csv", "application/avro-binary", "application/xml", "text/plain"};
static const char *const EXTENSION[FORMATS] = {"json", "csv", "avro", "xml", "txt"};

static lahar_bytes string_bytes(const char *string)
{
    return (lahar_bytes){.data = string, .size = strlen(string)};
}

static lahar_uuid draw_uuid(struct random_source *random)
{
    lahar_uuid uuid;
    const uint64_t halves[2] = {random_next(random), random_next(random)};
    memcpy(uuid.bytes, halves, sizeof uuid.bytes);
    uuid.bytes[6] = (uint8_t)((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = (uint8_t)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

/* 1.5 ms apart in the mean, never going back. */
static int64_t event_time_ms(uint64_t seed, uint64_t index)
{
    struct random_source random = random_source_at(seed, DOMAIN_TIME, index);
    const uint64_t pair_ms = index / 2 * 3;
    return START_MS + (int64_t)(pair_ms + (index & 1) + random_below(&random, 2));
}

/* The order of a round: an invertible mix of 13 bits, of odd multiplications and
 * shifted exclusive ors. */
static uint32_t round_mix(uint64_t key, uint32_t place)
{
    const uint32_t mask = ROUND_EVENTS - 1;
    uint32_t value = (place + (uint32_t)(key >> 48)) & mask;
    value = (value * ((uint32_t)key | 1)) & mask;
    value ^= value >> 7;
    value = (value * ((uint32_t)(key >> 16) | 1)) & mask;
    value ^= value >> 6;
    value = (value * ((uint32_t)(key >> 32) | 1)) & mask;
    return value ^ (value >> 7);
}

static uint64_t round_key(uint64_t seed, uint64_t number)
{
    return random_source_at(seed, DOMAIN_ROUND, number).state;
}

static void order_round(struct workload_w1 *workload, uint64_t number)
{
    uint8_t turns[WORKLOAD_W1_FLOWFILES] = {0};
    const uint64_t key = round_key(workload->seed, number);
    struct round *round = &workload->round;
    for (uint32_t place = 0; place < ROUND_EVENTS; place++) {
        const uint32_t slot = round_mix(key, place) % WORKLOAD_W1_FLOWFILES;
        round->slots[place] = (uint16_t)slot;
        round->turns[place] = turns[slot]++;
    }
    round->number = number;
}

/* x such that x * factor is 1 in 32 bits: each step doubles the bits that are right. */
static uint32_t odd_inverse(uint32_t factor)
{
    uint32_t inverse = factor;
    for (int step = 0; step < 4; step++) {
        inverse *= 2 - factor * inverse;
    }
    return inverse;
}

/* The place at which round_mix gives value. */
static uint32_t round_unmix(uint64_t key, uint32_t value)
{
    const uint32_t mask = ROUND_EVENTS - 1;
    uint32_t place = value ^ (value >> 7);
    place = (place * odd_inverse((uint32_t)(key >> 32) | 1)) & mask;
    place ^= (place >> 6) ^ (place >> 12);
    place = (place * odd_inverse((uint32_t)(key >> 16) | 1)) & mask;
    place ^= place >> 7;
    place = (place * odd_inverse((uint32_t)key | 1)) & mask;
    return (place - (uint32_t)(key >> 48)) & mask;
}

/* The event at which a slot has turn `turn` since the start of the workload. */
static uint64_t turn_index(uint64_t seed, uint32_t slot, uint64_t turn)
{
    const uint64_t number = turn / ROUND_TURNS;
    const uint64_t key = round_key(seed, number);
    uint32_t places[ROUND_TURNS];
    for (uint32_t copy = 0; copy < ROUND_TURNS; copy++) {
        places[copy] = round_unmix(key, slot + copy * WORKLOAD_W1_FLOWFILES);
    }
    for (uint32_t copy = 0; copy < ROUND_TURNS; copy++) {
        uint64_t before = 0;
        for (uint32_t other = 0; other < ROUND_TURNS; other++) {
            before += places[other] < places[copy];
        }
        if (before == turn % ROUND_TURNS) {
            return number * ROUND_EVENTS + places[copy];
        }
    }
    return number * ROUND_EVENTS;
}

/* Ends the attribute that was written from `from` to `to`. */
static char *set_attribute(lahar_pair *attribute, const char *key, char *from, char *to)
{
    attribute->key = string_bytes(key);
    attribute->value = (lahar_bytes){.data = from, .size = (size_t)(to - from)};
    attribute->is_null = false;
    return to;
}

static char *set_place_attributes(lahar_pair *attributes, char *at, struct random_source *random,
                                  const char *kind)
{
    char *from = at;
    const uint32_t day = 1 + random_below(random, 28);
    at = text_string(at, kind);
    at = text_string(at, "/2024/05/");
    at = text_padded(at, day, 2);
    *at++ = '/';
    at = set_attribute(&attributes[0], "path", from, at);

    from = at;
    at = text_string(at, "/data/landing/region-");
    at = text_padded(at, random_below(random, 12), 2);
    *at++ = '/';
    at = text_bytes(at, attributes[0].value.data, attributes[0].value.size);
    return set_attribute(&attributes[1], "absolute.path", from, at);
}

static char *set_kafka_attributes(lahar_pair *attributes, char *at, struct random_source *random,
                                  const char *kind, uint64_t first_index)
{
    char *from = at;
    const uint32_t partition = random_below(random, 32);
    at = text_string(at, "prod.");
    at = text_string(at, kind);
    at = text_string(at, ".events.v2");
    at = set_attribute(&attributes[0], "kafka.topic", from, at);
    from = at;
    at = set_attribute(&attributes[1], "kafka.partition", from, text_decimal(at, partition));
    from = at;
    at = text_decimal(at, 1000000000 + first_index * 3 + partition);
    return set_attribute(&attributes[2], "kafka.offset", from, at);
}

static char *set_http_attributes(lahar_pair *attributes, char *at, struct random_source *random,
                                 const char *kind, uint32_t source)
{
    char *from = at;
    at = text_string(at, "10.");
    at = text_decimal(at, source >> 4);
    *at++ = '.';
    at = text_decimal(at, source & 15);
    *at++ = '.';
    at = text_decimal(at, random_below(random, 250));
    at = set_attribute(&attributes[0], "http.remote.host", from, at);

    from = at;
    at = text_string(at, "/api/v2/ingest/");
    at = text_string(at, kind);
    at = text_string(at, "/tenant-");
    at = text_padded(at, random_below(random, 400), 3);
    at = text_string(at, "/batch/");
    at = text_hex(at, random_next(random), 8);
    at = set_attribute(&attributes[1], "http.request.uri", from, at);

    from = at;
    at = text_string(at, "acme-agent/4.");
    at = text_decimal(at, random_below(random, 6));
    at = text_string(at, ".1 (linux; x86_64; build ");
    at = text_decimal(at, 4000 + random_below(random, 40));
    at = text_string(at, ") libhttp/2.9");
    return set_attribute(&attributes[2], "http.headers.user-agent", from, at);
}

static char *set_claim(struct flowfile *flowfile, char *at, struct random_source *random)
{
    /* Sizes over four orders of magnitude, small ones as likely as large ones. */
    flowfile->size = 200 + random_below(random, UINT32_C(1) << (8 + random_below(random, 12)));
    flowfile->claim_offset = random_below(random, 1 << 20);
    char *from = at;
    at = text_decimal(at, random_below(random, 1024));
    flowfile->claim_section = (lahar_bytes){.data = from, .size = (size_t)(at - from)};
    from = at;
    at = text_decimal(at, (uint64_t)flowfile->born_ms);
    *at++ = '-';
    at = text_decimal(at, random_below(random, 100000));
    flowfile->claim_id = (lahar_bytes){.data = from, .size = (size_t)(at - from)};
    return at;
}

static void make_flowfile(struct flowfile *flowfile, uint64_t seed, uint32_t slot, uint64_t number,
                          uint64_t first_index)
{
    struct random_source random =
        random_source_at(seed, DOMAIN_FLOWFILE, number * WORKLOAD_W1_FLOWFILES + slot);
    const char *kind = KIND[random_below(&random, KINDS)];
    const uint32_t format = random_below(&random, FORMATS);
    const uint32_t source = random_below(&random, 64);
    lahar_pair *attributes = flowfile->attributes;
    char *at = flowfile->text;

    flowfile->number = number;
    flowfile->born_ms = event_time_ms(seed, first_index);
    flowfile->uuid = draw_uuid(&random);
    char *from = at;
    at = set_attribute(&attributes[0], "uuid", from, text_uuid(at, flowfile->uuid.bytes));
    from = at;
    at = text_string(at, kind);
    *at++ = '-';
    at = text_hex(at, random_next(&random), 8);
    *at++ = '-';
    at = text_padded(at, random_below(&random, 1000000), 6);
    *at++ = '.';
    at = text_string(at, EXTENSION[format]);
    at = set_attribute(&attributes[1], "filename", from, at);
    at = set_place_attributes(&attributes[2], at, &random, kind);
    from = at;
    at = set_attribute(&attributes[4], "mime.type", from, text_string(at, MIME_TYPE[format]));
    at = set_kafka_attributes(&attributes[5], at, &random, kind, first_index);
    at = set_http_attributes(&attributes[8], at, &random, kind, source);
    at = set_claim(flowfile, at, &random);
    from = at;
    at = text_string(at, "https://ingest-");
    at = text_padded(at, source, 2);
    at = text_string(at, ".example.net:9443/contentListener/");
    at = text_string(at, kind);
    *at++ = '/';
    at = text_hex(at, random_next(&random), 8);
    flowfile->uri = (lahar_bytes){.data = from, .size = (size_t)(at - from)};
}

struct workload_w1 *workload_w1_create(uint64_t seed)
{
    struct workload_w1 *workload = malloc(sizeof *workload);
    if (workload == NULL) {
        return NULL;
    }
    workload->seed = seed;
    workload->round.number = UINT64_MAX;
    random_zipf_init(&workload->types, WORKLOAD_W1_TYPES);
    random_zipf_init(&workload->components, WORKLOAD_W1_COMPONENTS);
    for (uint32_t i = 0; i < WORKLOAD_W1_COMPONENTS; i++) {
        struct random_source random = random_source_at(seed, DOMAIN_COMPONENT, i);
        workload->component_ids[i] = draw_uuid(&random);
    }
    for (uint32_t slot = 0; slot < WORKLOAD_W1_FLOWFILES; slot++) {
        struct random_source random = random_source_at(seed, DOMAIN_PHASE, slot);
        workload->phases[slot] = random_below(&random, WORKLOAD_W1_STAGES);
        workload->flowfiles[slot].number = UINT64_MAX;
    }
    return workload;
}

const char *workload_w1_type(uint32_t rank)
{
    return TYPES[rank];
}

void workload_w1_destroy(struct workload_w1 *workload)
{
    free(workload);
}

/* What differs from event to event of one FlowFile: the trace, and the earlier
 * values of path and absolute.path. */
static void set_stage_attributes(struct workload_w1 *workload, struct random_source *random,
                                 uint32_t stage, struct workload_w1_event *event)
{
    static const char *const KEYS[WORKLOAD_W1_PREVIOUS_MAX] = {"path", "absolute.path"};
    static const char *const PREFIXES[WORKLOAD_W1_PREVIOUS_MAX] = {"queue", "/data/batch"};
    char *at = workload->scratch;

    event->previous_count = random_below(random, WORKLOAD_W1_PREVIOUS_MAX + 1);
    for (uint32_t i = 0; i < event->previous_count; i++) {
        char *from = at;
        at = text_string(at, PREFIXES[i]);
        at = text_string(at, "/stage-");
        at = text_decimal(at, stage);
        *at++ = '/';
        at = text_hex(at, random_next(random), 8);
        at = set_attribute(&event->previous[i], KEYS[i], from, at);
    }
    char *from = at;
    at = text_string(at, "stage-");
    at = text_decimal(at, stage);
    at = text_string(at, ";relationship=success;retry=");
    at = text_decimal(at, random_below(random, 3));
    (void)set_attribute(&event->updated[OWN_ATTRIBUTES], "route.trace", from, at);
}

void workload_w1_event(struct workload_w1 *workload, uint64_t index,
                       struct workload_w1_event *event_out)
{
    const uint32_t place = (uint32_t)(index % ROUND_EVENTS);
    if (workload->round.number != index / ROUND_EVENTS) {
        order_round(workload, index / ROUND_EVENTS);
    }
    const uint32_t slot = workload->round.slots[place];
    const uint64_t turn = index / ROUND_EVENTS * ROUND_TURNS + workload->round.turns[place];
    const uint64_t number = (turn + workload->phases[slot]) / WORKLOAD_W1_STAGES;
    const uint32_t stage = (uint32_t)((turn + workload->phases[slot]) % WORKLOAD_W1_STAGES);
    struct flowfile *flowfile = &workload->flowfiles[slot];
    if (flowfile->number != number) {
        /* Those in flight at the start of the workload were born with it. */
        uint64_t first_index = index;
        if (stage > 0) {
            first_index = turn >= stage ? turn_index(workload->seed, slot, turn - stage) : 0;
        }
        make_flowfile(flowfile, workload->seed, slot, number, first_index);
    }

    struct random_source random = random_source_at(workload->seed, DOMAIN_EVENT, index);
    const uint32_t component = random_zipf_draw(&workload->components, &random);
    event_out->index = index;
    event_out->time_ms = event_time_ms(workload->seed, index);
    event_out->lineage_start_ms = flowfile->born_ms;
    event_out->type_rank = random_zipf_draw(&workload->types, &random);
    event_out->type = string_bytes(TYPES[event_out->type_rank]);
    event_out->component = workload->component_ids[component];
    event_out->component_type = string_bytes(COMPONENT_TYPE[component % COMPONENT_TYPES]);
    event_out->uuid = flowfile->uuid;
    event_out->size = flowfile->size;
    event_out->claim_offset = flowfile->claim_offset;
    event_out->claim_container = string_bytes("default");
    event_out->claim_section = flowfile->claim_section;
    event_out->claim_id = flowfile->claim_id;
    event_out->transit_uri =
        random_below(&random, 5) == 0 ? flowfile->uri : (lahar_bytes){.data = NULL, .size = 0};
    memcpy(event_out->updated, flowfile->attributes, sizeof flowfile->attributes);
    set_stage_attributes(workload, &random, stage, event_out);
}
