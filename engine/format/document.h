/* From the tokens of one JSON object to the event's fields, and its shape.
 *
 * Nested names are joined with dots; elements of an array repeat the array's name. A
 * name that the stream declares fills that field; any other becomes an attribute.
 * Of a key given twice in an object the last counts.
 *
 * The shape is the document with its values taken out: what is left after the
 * fields hold the values, so that both together give the document back. It repeats
 * from record to record. After the letter 'J' it is a sequence of
 *
 *   {  }  [  ]        as in the document; commas and colons are implied
 *   "key"             as written in the document
 *   $                 a string: the next attribute of that name
 *   #                 a number, true or false: the same
 *   n                 null: the same
 *   @ varint          in front of $ # n t e =: the value is in this declared field,
 *                     of a list its next item
 *   t digit           a time with so many digits of fraction, in quotes
 *   e digit           an epoch number; digit 0, 3, 6, 9: seconds .. nanoseconds
 *   = literal         a number or a string in quotes whose text the stored value
 *                     does not give back
 *   & varint          in front of {: the members are pairs of this map field, under
 *                     names that begin here */
#ifndef LAHAR_FORMAT_DOCUMENT_H
#define LAHAR_FORMAT_DOCUMENT_H

#include "engine/format/document_plan.h"
#include "engine/format/field_map.h"
#include "engine/format/json.h"
#include "engine/format/record.h"

enum {
    LAHAR_SHAPE_JSON = 'J',      /* an object */
    LAHAR_SHAPE_JSON_TEXT = 'V', /* another value, whose text is the message */
    LAHAR_DOCUMENT_FAILURE_SIZE = 200
};

struct lahar_document_frame {
    lahar_bytes prefix; /* objects: in front of their keys; arrays: the elements' name */
    const struct lahar_field_entry *entry; /* arrays: the declared field of that name */
    size_t map_index;                      /* of the record: where pairs go */
    uint32_t end;                          /* token behind the container */
    bool is_object;
    bool has_prefix;
    bool is_map; /* inside a map field: names are not looked up */
};

/* Scratch of the walk over one document; reused. */
struct lahar_document {
    const uint8_t *text;
    struct lahar_json_token *tokens;
    struct lahar_record *record;
    const struct lahar_field_map *fields;
    struct lahar_document_plan *plan; /* that is learnt, or NULL */
    size_t depth;
    char failure[LAHAR_DOCUMENT_FAILURE_SIZE];
    struct lahar_document_frame stack[LAHAR_JSON_DEPTH_MAX];
};

/* Maps the object that the parser has read from text into the record, which points
 * into text afterwards. plan, when it is not NULL, learns from it. LAHAR_INVALID: a value does not
 * fit its declared field, failure says which; LAHAR_NO_MEMORY. */
lahar_status lahar_document_map(struct lahar_document *document, const uint8_t *text,
                                const struct lahar_json_parser *parser,
                                const struct lahar_field_map *fields, struct lahar_record *record,
                                struct lahar_document_plan *plan);
/* The same for a document of size bytes that the plan has matched. */
lahar_status lahar_document_map_plan(struct lahar_document *document, const uint8_t *text,
                                     size_t size, const struct lahar_document_plan *plan,
                                     struct lahar_record *record);

#endif
