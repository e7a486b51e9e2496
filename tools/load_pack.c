#include "tools/load_pack.h"

#include <stdlib.h>
#include <string.h>

#include "bench/random.h"
#include "bench/text.h"

enum {
    PAIRS_MAX = WORKLOAD_W1_UPDATED + WORKLOAD_W1_PREVIOUS_MAX,
    TEXT_SIZE_MAX = 2048, /* of one event; W1's strings take about 700, W2's line 512 at most */
    HEX_RUN_SIZE = 8      /* in file names: KIND-xxxxxxxx-dddddd.ext */
};

struct packed_event {
    lahar_event event;
    lahar_value values[LOAD_VALUES_MAX];
    lahar_pair pairs[PAIRS_MAX];
    lahar_value *uuid; /* W1: of the FlowFile; else NULL */
    char *uuid_text;   /* 36 characters; W2: NULL */
    char *hex;         /* a run of hex digits that tells FlowFiles or requests apart */
    size_t hex_size;
    char *text; /* everything that values and pairs point to */
};

struct load_pack {
    struct packed_event *events;
    uint64_t count;
    uint64_t next;     /* counts on for ever; the place is next % count */
    int64_t length_ns; /* by which times move on each time round */
    uint64_t seed;
};

static lahar_bytes copy_bytes(char **at, lahar_bytes bytes)
{
    const lahar_bytes copy = {.data = *at, .size = bytes.size};
    if (bytes.size > 0) {
        *at = text_bytes(*at, bytes.data, bytes.size);
    }
    return copy;
}

/* Notes the parts that change from turn to turn. */
static void note_pair(struct packed_event *packed, const lahar_pair *pair, char *value)
{
    if (pair->key.size == 4 && memcmp(pair->key.data, "uuid", 4) == 0) {
        packed->uuid_text = value;
    } else if (pair->key.size == 8 && memcmp(pair->key.data, "filename", 8) == 0) {
        char *dash = memchr(value, '-', pair->value.size);
        packed->hex = dash + 1;
        packed->hex_size = HEX_RUN_SIZE;
    }
}

static void copy_map(struct packed_event *packed, lahar_value *value, lahar_pair *pairs, char **at)
{
    for (size_t i = 0; i < value->as.map.count; i++) {
        pairs[i] = value->as.map.items[i];
        pairs[i].key = copy_bytes(at, pairs[i].key);
        char *const text = *at;
        pairs[i].value = copy_bytes(at, pairs[i].value);
        note_pair(packed, &pairs[i], text);
    }
    value->as.map.items = pairs;
}

/* The request id of a line of W2 stands behind "req=". */
static void note_request(struct packed_event *packed, const lahar_bytes *line)
{
    char *found = memmem(line->data, line->size, "req=", 4);
    packed->hex = found == NULL ? NULL : found + 4;
    packed->hex_size = found == NULL ? 0 : 16;
}

static bool copy_event(struct packed_event *packed, const lahar_event *event)
{
    size_t pairs = 0;
    char text[TEXT_SIZE_MAX];
    char *at = text;
    packed->event = *event;
    packed->event.values = packed->values;
    memcpy(packed->values, event->values, event->value_count * sizeof *event->values);
    /* Sizes are known only when everything has been copied once. */
    for (int pass = 0; pass < 2; pass++) {
        pairs = 0;
        for (size_t i = 0; i < event->value_count; i++) {
            lahar_value *value = &packed->values[i];
            if (value->type == LAHAR_MAP) {
                copy_map(packed, value, packed->pairs + pairs, &at);
                pairs += value->as.map.count;
            } else if (value->type == LAHAR_KEYWORD || value->type == LAHAR_TEXT) {
                value->as.bytes = copy_bytes(&at, value->as.bytes);
            } else if (value->type == LAHAR_UUID) {
                packed->uuid = value;
            }
        }
        if (pass == 0) {
            packed->text = malloc((size_t)(at - text));
            if (packed->text == NULL) {
                return false;
            }
            at = packed->text;
        }
    }
    if (packed->uuid == NULL) {
        note_request(packed, &packed->values[0].as.bytes);
    }
    return true;
}

struct load_pack *load_pack_create(struct load_event_maker *maker, uint64_t first_index,
                                   uint64_t count)
{
    struct load_pack *pack = calloc(1, sizeof *pack);
    if (pack == NULL) {
        return NULL;
    }
    pack->seed = first_index;
    pack->events = calloc(count, sizeof *pack->events);
    for (; pack->events != NULL && pack->count < count; pack->count++) {
        lahar_event event;
        load_event_make(maker, first_index + pack->count, &event);
        if (!copy_event(&pack->events[pack->count], &event)) {
            break;
        }
    }
    if (pack->count < count) {
        load_pack_destroy(pack);
        return NULL;
    }
    pack->length_ns = pack->events[count - 1].event.time_ns - pack->events[0].event.time_ns + 1;
    return pack;
}

void load_pack_destroy(struct load_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    for (uint64_t i = 0; i < pack->count; i++) {
        free(pack->events[i].text);
    }
    free(pack->events);
    free(pack);
}

uint64_t load_pack_count(const struct load_pack *pack)
{
    return pack->count;
}

/* Exclusive or with a key keeps equal values equal and different ones different. */
static void change_hex(char *hex, size_t size, uint64_t key)
{
    for (size_t i = 0; i < size; i++, key >>= 4) {
        const unsigned digit = (unsigned)(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
        hex[i] = "0123456789abcdef"[digit ^ (key & 15)];
    }
}

static void change_event(struct packed_event *packed, const uint64_t key[2], int64_t length_ns)
{
    packed->event.time_ns += length_ns;
    if (packed->uuid != NULL) {
        uint8_t *bytes = packed->uuid->as.uuid.bytes;
        uint64_t halves[2];
        memcpy(halves, bytes, sizeof halves);
        halves[0] ^= key[0];
        halves[1] ^= key[1];
        const uint8_t version = bytes[6];
        const uint8_t variant = bytes[8];
        memcpy(bytes, halves, sizeof halves);
        bytes[6] = (uint8_t)((version & 0xf0) | (bytes[6] & 0x0f));
        bytes[8] = (uint8_t)((variant & 0xc0) | (bytes[8] & 0x3f));
        if (packed->uuid_text != NULL) {
            (void)text_uuid(packed->uuid_text, bytes);
        }
    }
    if (packed->hex != NULL) {
        change_hex(packed->hex, packed->hex_size, key[0]);
    }
}

uint64_t load_pack_turn(struct load_pack *pack, uint64_t count)
{
    const uint64_t first = pack->next;
    for (; pack->next < first + count; pack->next++) {
        const uint64_t round = pack->next / pack->count;
        if (round > 0) {
            const uint64_t key[2] = {random_mix(pack->seed + 2 * round),
                                     random_mix(pack->seed + 2 * round + 1)};
            change_event(&pack->events[pack->next % pack->count], key, pack->length_ns);
        }
    }
    return first;
}

const lahar_event *load_pack_event(const struct load_pack *pack, uint64_t place)
{
    return &pack->events[place % pack->count].event;
}
