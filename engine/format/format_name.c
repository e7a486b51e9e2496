/* Names of the text formats. */
#include <strings.h>

#include "io/base/error.h"
#include "lahar/ingest.h"

static const struct {
    const char *name;
    lahar_format format;
} formats[] = {
    {"LineAsString", LAHAR_FORMAT_LINE},   {"JSONEachRow", LAHAR_FORMAT_JSON},
    {"JSONLines", LAHAR_FORMAT_JSON},      {"NDJSON", LAHAR_FORMAT_JSON},
    {"CSVWithNames", LAHAR_FORMAT_CSV},    {"TSVWithNames", LAHAR_FORMAT_TSV},
    {"Regexp", LAHAR_FORMAT_REGEXP},       {"TabSeparatedWithNames", LAHAR_FORMAT_TSV},
    {"nifi-json", LAHAR_FORMAT_NIFI_JSON},
};

lahar_status lahar_format_find(const char *name, lahar_format *format_out, lahar_error *error)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcasecmp(name, formats[i].name) == 0) {
            *format_out = formats[i].format;
            return LAHAR_OK;
        }
    }
    return lahar_fail(error, LAHAR_UNSUPPORTED,
                      "format \"%s\" cannot be ingested; known are LineAsString, JSONEachRow, "
                      "CSVWithNames, TSVWithNames, Regexp and nifi-json",
                      name);
}

const char *lahar_format_name(lahar_format format)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].format == format) {
            return formats[i].name;
        }
    }
    return "unknown";
}
