/* Names of the text formats, and why others cannot be ingested. */
#include <string.h>
#include <strings.h>

#include "io/base/error.h"
#include "lahar/ingest.h"

/* The first name of a format is the one that is shown. */
static const struct {
    const char *name;
    lahar_format format;
} formats[] = {
    {"LineAsString", LAHAR_FORMAT_LINE},
    {"JSONEachRow", LAHAR_FORMAT_JSON},
    {"JSONLines", LAHAR_FORMAT_JSON},
    {"NDJSON", LAHAR_FORMAT_JSON},
    {"JSONCompactEachRow", LAHAR_FORMAT_JSON_COMPACT},
    {"JSONStringsEachRow", LAHAR_FORMAT_JSON_STRINGS},
    {"JSONAsString", LAHAR_FORMAT_JSON_AS_STRING},
    {"JSONAsObject", LAHAR_FORMAT_JSON_AS_OBJECT},
    {"CSV", LAHAR_FORMAT_CSV_BARE},
    {"CSVWithNames", LAHAR_FORMAT_CSV},
    {"TSV", LAHAR_FORMAT_TSV_BARE},
    {"TabSeparated", LAHAR_FORMAT_TSV_BARE},
    {"TSVWithNames", LAHAR_FORMAT_TSV},
    {"TabSeparatedWithNames", LAHAR_FORMAT_TSV},
    {"TSKV", LAHAR_FORMAT_TSKV},
    {"Values", LAHAR_FORMAT_VALUES},
    {"CustomSeparated", LAHAR_FORMAT_CUSTOM},
    {"Template", LAHAR_FORMAT_TEMPLATE},
    {"Regexp", LAHAR_FORMAT_REGEXP},
    {"RawBLOB", LAHAR_FORMAT_RAW_BLOB},
    {"logfmt", LAHAR_FORMAT_LOGFMT},
    {"access-log", LAHAR_FORMAT_ACCESS_LOG},
    {"common", LAHAR_FORMAT_ACCESS_LOG},
    {"combined", LAHAR_FORMAT_ACCESS_LOG},
    {"syslog-3164", LAHAR_FORMAT_SYSLOG_3164},
    {"syslog-5424", LAHAR_FORMAT_SYSLOG_5424},
    {"nifi-log", LAHAR_FORMAT_NIFI_LOG},
    {"nifi-json", LAHAR_FORMAT_NIFI_JSON},
};

static const char columnar[] = "it is columnar: its records cannot be read from the front on";
static const char binary[] = "its records are binary and have no line to stand in";
static const char schema[] = "its records need a schema from outside the file";
static const char document[] = "it is one document, which ends before a record can be added";
static const char typed[] = "its second header row gives types, which the stream has";
static const char output[] = "it is a format of output only";

/* Formats of ClickHouse that a file of records cannot have here. */
static const struct {
    const char *name;
    const char *reason;
} unsuitable[] = {
    {"Parquet", columnar},
    {"ORC", columnar},
    {"Arrow", columnar},
    {"ArrowStream", columnar},
    {"Native", columnar},
    {"Npy", columnar},
    {"Avro", binary},
    {"AvroConfluent", schema},
    {"Protobuf", schema},
    {"ProtobufSingle", schema},
    {"ProtobufList", schema},
    {"CapnProto", schema},
    {"RowBinary", binary},
    {"RowBinaryWithNames", binary},
    {"RowBinaryWithNamesAndTypes", binary},
    {"RowBinaryWithDefaults", binary},
    {"MsgPack", binary},
    {"BSONEachRow", binary},
    {"MySQLWire", binary},
    {"MySQLDump", document},
    {"JSON", document},
    {"JSONCompact", document},
    {"JSONStrings", document},
    {"JSONColumns", document},
    {"JSONCompactColumns", document},
    {"JSONColumnsWithMetadata", document},
    {"JSONObjectEachRow", document},
    {"Form", document},
    {"XML", output},
    {"DWARF", binary},
    {"One", "it has no records"},
    {"Null", output},
    {"Pretty", output},
    {"PrettyCompact", output},
    {"PrettyJSONEachRow", output},
    {"Vertical", output},
    {"Markdown", output},
    {"SQLInsert", output},
    {"Prometheus", output},
    {"CSVWithNamesAndTypes", typed},
    {"TSVWithNamesAndTypes", typed},
    {"TabSeparatedWithNamesAndTypes", typed},
    {"TSVRaw", "what it cannot write without escapes cannot be told apart; TSV reads it"},
    {"TabSeparatedRaw", "what it cannot write without escapes cannot be told apart; TSV reads it"},
    {"HiveText", "its delimiters are those of CustomSeparated, which reads it"},
};

lahar_status lahar_format_find(const char *name, lahar_format *format_out, lahar_error *error)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcasecmp(name, formats[i].name) == 0) {
            *format_out = formats[i].format;
            return LAHAR_OK;
        }
    }
    for (size_t i = 0; i < sizeof unsuitable / sizeof unsuitable[0]; i++) {
        if (strcasecmp(name, unsuitable[i].name) == 0) {
            return lahar_fail(error, LAHAR_UNSUPPORTED, "format %s cannot be ingested: %s",
                              unsuitable[i].name, unsuitable[i].reason);
        }
    }
    return lahar_fail(error, LAHAR_UNSUPPORTED,
                      "format \"%.60s\" is not known; LineAsString, JSONEachRow, CSV, TSV, Regexp "
                      "and others are: lahar-ingest(1)",
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
