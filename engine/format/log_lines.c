/* Lines of known logs: web servers' access logs, syslog in both forms, and NiFi's own. Each part
 * has a name of its own, the time becomes the event's, and the rest is the message. */
#include <stdio.h>
#include <string.h>

#include "engine/format/text_reader_internal.h"
#include "io/base/error.h"

/* What is left of a line. */
struct rest {
    const char *at;
    const char *end;
};

static struct rest rest_of(lahar_bytes line)
{
    const char *p = line.data;
    return (struct rest){p, p + line.size};
}

static lahar_bytes left_of(const struct rest *rest)
{
    return (lahar_bytes){rest->at, (size_t)(rest->end - rest->at)};
}

static void skip_spaces(struct rest *rest)
{
    while (rest->at < rest->end && *rest->at == ' ') {
        rest->at++;
    }
}

/* Up to a space, which is passed over; false when there is nothing. */
static bool take_word(struct rest *rest, lahar_bytes *word_out)
{
    const char *start = rest->at;
    while (rest->at < rest->end && *rest->at != ' ') {
        rest->at++;
    }
    *word_out = (lahar_bytes){start, (size_t)(rest->at - start)};
    rest->at += rest->at < rest->end;
    return word_out->size != 0;
}

/* From an opening to a closing mark, which are not part of it, and one space behind. With escapes
 * a backslash takes the byte behind it along. */
static bool take_between(struct rest *rest, char opening, char closing, bool has_escapes,
                         lahar_bytes *text_out)
{
    if (rest->at == rest->end || *rest->at != opening) {
        return false;
    }
    const char *start = rest->at + 1;
    const char *p = start;
    while (p < rest->end && *p != closing) {
        p += has_escapes && *p == '\\' && p + 1 < rest->end ? 2 : 1;
    }
    if (p >= rest->end) {
        return false;
    }
    *text_out = (lahar_bytes){start, (size_t)(p - start)};
    rest->at = p + 1;
    rest->at += rest->at < rest->end && *rest->at == ' ';
    return true;
}

static lahar_status say(char *message, const char *what)
{
    (void)snprintf(message, LAHAR_LINE_MESSAGE_SIZE, "%s", what);
    return LAHAR_INVALID;
}

static lahar_status put(struct lahar_text_reader *reader, const char *name, lahar_bytes value,
                        char *message)
{
    return lahar_text_reader_put_or_say(reader, (lahar_bytes){name, strlen(name)}, value, false,
                                        message);
}

static bool is_dash(lahar_bytes value)
{
    return value.size == 1 && *(const char *)value.data == '-';
}

/* A value of which '-' says that there is none. */
static lahar_status put_known(struct lahar_text_reader *reader, const char *name, lahar_bytes value,
                              char *message)
{
    return value.size == 0 || is_dash(value) ? LAHAR_OK : put(reader, name, value, message);
}

/* The line's own time counts unless another field was named for it. */
static void take_time(struct lahar_text_reader *reader, lahar_bytes text)
{
    if (reader->options.time_field == NULL) {
        lahar_record_take_time(&reader->record, text);
    }
}

/* --- access logs ------------------------------------------------------------------------ */

static lahar_status put_request(struct lahar_text_reader *reader, lahar_bytes request,
                                char *message)
{
    struct rest rest = rest_of(request);
    lahar_bytes method;
    lahar_bytes path;
    LAHAR_TRY(put_known(reader, "request", request, message));
    if (!take_word(&rest, &method) || !take_word(&rest, &path)) {
        return LAHAR_OK;
    }
    LAHAR_TRY(put(reader, "method", method, message));
    LAHAR_TRY(put(reader, "path", path, message));
    return put_known(reader, "protocol", left_of(&rest), message);
}

/* host ident user [time] "request" status bytes, of the combined format also "referer" "agent". */
lahar_status lahar_access_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    struct rest rest = rest_of(line);
    lahar_bytes host;
    lahar_bytes ident;
    lahar_bytes user;
    lahar_bytes time;
    lahar_bytes request;
    lahar_bytes status;
    lahar_bytes size;
    lahar_bytes text;
    if (!take_word(&rest, &host) || !take_word(&rest, &ident) || !take_word(&rest, &user) ||
        !take_between(&rest, '[', ']', false, &time) ||
        !take_between(&rest, '"', '"', true, &request) || !take_word(&rest, &status) ||
        !take_word(&rest, &size)) {
        return say(message, "not a line of an access log");
    }
    take_time(reader, time);
    LAHAR_TRY(put_known(reader, "remote_addr", host, message));
    LAHAR_TRY(put_known(reader, "ident", ident, message));
    LAHAR_TRY(put_known(reader, "remote_user", user, message));
    LAHAR_TRY(put_request(reader, request, message));
    LAHAR_TRY(put_known(reader, "status", status, message));
    LAHAR_TRY(put_known(reader, "bytes", size, message));
    if (take_between(&rest, '"', '"', true, &text)) {
        LAHAR_TRY(put_known(reader, "referer", text, message));
    }
    if (take_between(&rest, '"', '"', true, &text)) {
        LAHAR_TRY(put_known(reader, "user_agent", text, message));
    }
    return LAHAR_OK;
}

/* --- syslog --------------------------------------------------------------------------------- */

static lahar_bytes word(const char *text)
{
    return (lahar_bytes){text, strlen(text)};
}

/* <N>; a line may lack it, as files written by a syslog daemon do. */
static lahar_status take_priority(struct lahar_text_reader *reader, struct rest *rest,
                                  char *message)
{
    static const char *const facilities[] = {
        "kern",   "user",   "mail",     "daemon", "auth",   "syslog", "lpr",    "news",
        "uucp",   "cron",   "authpriv", "ftp",    "ntp",    "audit",  "alert",  "clock",
        "local0", "local1", "local2",   "local3", "local4", "local5", "local6", "local7"};
    static const char *const severities[] = {"emerg",   "alert",  "crit", "err",
                                             "warning", "notice", "info", "debug"};
    const char *p = rest->at;
    unsigned priority = 0;
    unsigned digit_count = 0;
    if (p == rest->end || *p != '<') {
        return LAHAR_EXISTS;
    }
    for (p++; p < rest->end && *p >= '0' && *p <= '9' && digit_count < 4; p++, digit_count++) {
        priority = priority * 10 + (unsigned)(*p - '0');
    }
    if (digit_count == 0 || digit_count > 3 || priority > 191 || p == rest->end || *p != '>') {
        return say(message, "not a priority of syslog");
    }
    rest->at = p + 1;
    LAHAR_TRY(put(reader, "facility", word(facilities[priority / 8]), message));
    return put(reader, "level", word(severities[priority % 8]), message);
}

static lahar_status put_message(struct lahar_text_reader *reader, const struct rest *rest,
                                char *message)
{
    return put(reader, "message", left_of(rest), message);
}

/* name[number]: or name: in front of the text. */
static lahar_status take_tag(struct lahar_text_reader *reader, struct rest *rest, char *message)
{
    const char *p = rest->at;
    while (p < rest->end && *p != ':' && *p != '[' && *p != ' ') {
        p++;
    }
    const lahar_bytes name = {rest->at, (size_t)(p - rest->at)};
    lahar_bytes number = {0};
    struct rest behind = {p, rest->end};
    if (p < rest->end && *p == '[' && !take_between(&behind, '[', ']', false, &number)) {
        return LAHAR_OK;
    }
    if (name.size == 0 || behind.at == rest->end || *behind.at != ':') {
        return LAHAR_OK;
    }
    rest->at = behind.at + 1;
    skip_spaces(rest);
    LAHAR_TRY(put(reader, "app", name, message));
    return put_known(reader, "procid", number, message);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Mmm dd hh:mm:ss, or a time of RFC 3339 as newer daemons write. */
static bool take_old_time(struct lahar_text_reader *reader, struct rest *rest)
{
    enum {
        TIME_SIZE = 15
    };
    int64_t time_ns;
    struct lahar_time_pattern pattern = reader->record.time;
    lahar_bytes text;
    if (rest->at < rest->end && is_digit(*rest->at)) {
        pattern.style = LAHAR_TIME_STYLE_RFC3339;
        if (!take_word(rest, &text) || !lahar_time_pattern_parse(&pattern, text, &time_ns)) {
            return false;
        }
        if (reader->options.time_field == NULL) {
            reader->record.time_ns = time_ns;
        }
        return true;
    }
    if (rest->end - rest->at <= TIME_SIZE || rest->at[3] != ' ' || rest->at[6] != ' ' ||
        rest->at[9] != ':' || rest->at[12] != ':' || rest->at[TIME_SIZE] != ' ') {
        return false;
    }
    take_time(reader, (lahar_bytes){rest->at, TIME_SIZE});
    rest->at += TIME_SIZE + 1;
    return true;
}

static lahar_status map_3164(struct lahar_text_reader *reader, struct rest *rest, char *message)
{
    lahar_bytes host;
    const lahar_status status = take_priority(reader, rest, message);
    if (status != LAHAR_OK && status != LAHAR_EXISTS) {
        return status;
    }
    if (!take_old_time(reader, rest) || !take_word(rest, &host)) {
        return say(message, "not a line of syslog: no time and host");
    }
    LAHAR_TRY(put_known(reader, "host", host, message));
    LAHAR_TRY(take_tag(reader, rest, message));
    return put_message(reader, rest, message);
}

/* id param="value" ...] into sd.id.param; rest is behind the opening bracket. */
static lahar_status take_element(struct lahar_text_reader *reader, struct rest *rest, char *message)
{
    const char *start = rest->at;
    while (rest->at < rest->end && *rest->at != ' ' && *rest->at != ']') {
        rest->at++;
    }
    const lahar_bytes id = {start, (size_t)(rest->at - start)};
    for (;;) {
        skip_spaces(rest);
        if (rest->at == rest->end || id.size == 0) {
            return say(message, "structured data is not closed");
        }
        if (*rest->at == ']') {
            rest->at++;
            return LAHAR_OK;
        }
        const char *name_start = rest->at;
        while (rest->at < rest->end && *rest->at != '=' && *rest->at != ']' && *rest->at != ' ') {
            rest->at++;
        }
        const size_t name_size = (size_t)(rest->at - name_start);
        lahar_bytes value;
        if (rest->at == rest->end || *rest->at != '=' || name_size == 0) {
            return say(message, "structured data: expected name=\"value\"");
        }
        rest->at++;
        if (!take_between(rest, '"', '"', true, &value)) {
            return say(message, "structured data: expected name=\"value\"");
        }
        char *name = lahar_arena_allocate(&reader->record.arena, id.size + name_size + 4);
        bool is_null;
        if (name == NULL || !lahar_cell_value(LAHAR_ESCAPING_ESCAPED, value, (lahar_bytes){"", 0},
                                              &reader->record.arena, &value, &is_null)) {
            return LAHAR_NO_MEMORY;
        }
        memcpy(name, "sd.", 3);
        memcpy(name + 3, id.data, id.size);
        name[3 + id.size] = '.';
        memcpy(name + 4 + id.size, name_start, name_size);
        LAHAR_TRY(lahar_text_reader_put_or_say(reader, (lahar_bytes){name, id.size + name_size + 4},
                                               value, false, message));
    }
}

static lahar_status map_5424(struct lahar_text_reader *reader, struct rest *rest, char *message)
{
    static const char *const names[] = {"host", "app", "procid", "msgid"};
    lahar_bytes text;
    const lahar_status status = take_priority(reader, rest, message);
    if (status != LAHAR_OK) {
        return status == LAHAR_EXISTS ? say(message, "not a line of syslog: no priority") : status;
    }
    if (!take_word(rest, &text) || text.size != 1 || *(const char *)text.data != '1' ||
        !take_word(rest, &text)) {
        return say(message, "not version 1 of syslog");
    }
    if (!is_dash(text)) {
        take_time(reader, text);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!take_word(rest, &text)) {
            return say(message, "not a line of syslog: its header is cut off");
        }
        LAHAR_TRY(put_known(reader, names[i], text, message));
    }
    if (rest->at < rest->end && *rest->at == '-') {
        rest->at++;
    } else if (rest->at == rest->end || *rest->at != '[') {
        return say(message, "not a line of syslog: no structured data");
    }
    while (rest->at < rest->end && *rest->at == '[') {
        rest->at++;
        LAHAR_TRY(take_element(reader, rest, message));
    }
    rest->at += rest->at < rest->end && *rest->at == ' ';
    if (rest->end - rest->at >= 3 && memcmp(rest->at, "\xef\xbb\xbf", 3) == 0) {
        rest->at += 3;
    }
    return put_message(reader, rest, message);
}

lahar_status lahar_syslog_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    struct rest rest = rest_of(line);
    return reader->options.format == LAHAR_FORMAT_SYSLOG_5424 ? map_5424(reader, &rest, message)
                                                              : map_3164(reader, &rest, message);
}

/* --- NiFi ------------------------------------------------------------------------------------- */

enum {
    NIFI_TIME_SIZE = 23 /* 2024-05-01 12:00:00,123 */
};

bool lahar_nifi_log_is_start(const uint8_t *text, size_t size)
{
    static const char form[] = "dddd-dd-dd dd:dd:dd,ddd ";
    if (size < NIFI_TIME_SIZE + 1) {
        return false;
    }
    for (size_t i = 0; i <= NIFI_TIME_SIZE; i++) {
        if (form[i] == 'd' ? !is_digit((char)text[i]) : form[i] != (char)text[i]) {
            return false;
        }
    }
    return true;
}

/* time LEVEL [thread] logger text, as NiFi's logback.xml has it; what follows up to the next such
 * line belongs to the text. */
lahar_status lahar_nifi_log_map(struct lahar_text_reader *reader, lahar_bytes line, char *message)
{
    struct rest rest = rest_of(line);
    lahar_bytes level;
    lahar_bytes thread;
    lahar_bytes logger;
    if (!lahar_nifi_log_is_start(line.data, line.size)) {
        return say(message, "not a line of NiFi's log");
    }
    take_time(reader, (lahar_bytes){rest.at, NIFI_TIME_SIZE});
    rest.at += NIFI_TIME_SIZE + 1;
    skip_spaces(&rest);
    if (!take_word(&rest, &level)) {
        return say(message, "not a line of NiFi's log: no level");
    }
    skip_spaces(&rest);
    if (!take_between(&rest, '[', ']', false, &thread) || !take_word(&rest, &logger)) {
        return say(message, "not a line of NiFi's log: no thread and logger");
    }
    LAHAR_TRY(put(reader, "level", level, message));
    LAHAR_TRY(put(reader, "thread", thread, message));
    LAHAR_TRY(put(reader, "logger", logger, message));
    return put_message(reader, &rest, message);
}
