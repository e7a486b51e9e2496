#include "bench/workload_w2.h"

#include "bench/text.h"

enum {
    LOGGERS = 8,
    MESSAGES = 10,
    HOSTS = 300,
    MESSAGE_FAILED = 8, /* the one that answers with status 500 */
    DAY_MS = 86400000
};
static const int64_t START_MS = 1715904000000; /* 2024-05-17T00:00:00Z */
static const char DAY[] = "2024-05-17";

static const char *const LOGGER[LOGGERS] = {
    "booking.SeatAllocator", "booking.PriceService", "login.TokenFilter", "search.QueryPlanner",
    "ledger.EntryWriter",    "edge.RequestRouter",   "stock.LevelReader", "parcel.TicketPrinter"};

/* Rank 6 makes "timeout" common enough to count, rare enough to matter. */
static const char *const MESSAGE[MESSAGES] = {
    "Confirmed booking for customer",       "Loaded page of matches from shard",
    "Checked session token for realm",      "Stored batch of rows in partition",
    "Passed request on to upstream",        "Renewed cache entry for key",
    "Repeating call after timeout on peer", "Refused malformed payload of client",
    "Planned background job for queue",     "Returned idle connection to pool"};
static const char *const LEVEL[MESSAGES] = {"INFO",  "INFO", "INFO", "INFO",  "DEBUG",
                                            "DEBUG", "WARN", "WARN", "ERROR", "INFO"};

void workload_w2_init(struct workload_w2 *workload, uint64_t seed)
{
    workload->seed = seed;
    random_zipf_init(&workload->loggers, LOGGERS);
    random_zipf_init(&workload->messages, MESSAGES);
    random_zipf_init(&workload->hosts, HOSTS);
}

void workload_w2_line(const struct workload_w2 *workload, uint64_t index,
                      struct workload_w2_line *line_out)
{
    struct random_source random = random_source_at(workload->seed, 0, index);
    const uint32_t message = random_zipf_draw(&workload->messages, &random);
    /* 1 ms apart in the mean, never going back: odd lines move within their 2 ms. */
    const uint64_t offset_ms = (index & 1) == 0 ? index : index - random_below(&random, 2);
    *line_out = (struct workload_w2_line){
        .time_ms = START_MS + (int64_t)offset_ms,
        .level = LEVEL[message],
        .logger = LOGGER[random_zipf_draw(&workload->loggers, &random)],
        .host = random_zipf_draw(&workload->hosts, &random),
        .thread = random_below(&random, 64),
        .duration_ms = random_below(&random, 900),
        .bytes = random_below(&random, 65536),
        .request = random_next(&random),
        .message = MESSAGE[message],
        .status = message == MESSAGE_FAILED ? 500 : 200,
        .code = random_below(&random, 200000) == 0 ? " code=E7F3A91C" : "",
    };
    line_out->item = line_out->bytes & 1023;
}

/* "hh:mm:ss" and the milliseconds behind mark; the workload stays on one day's date. */
static char *put_clock(char *at, int64_t time_ms, char mark)
{
    const uint64_t day_ms = (uint64_t)(time_ms - START_MS) % DAY_MS;
    at = text_padded(at, day_ms / 3600000, 2);
    *at++ = ':';
    at = text_padded(at, day_ms / 60000 % 60, 2);
    *at++ = ':';
    at = text_padded(at, day_ms / 1000 % 60, 2);
    *at++ = mark;
    return text_padded(at, day_ms % 1000, 3);
}

static char *put_message(char *at, const struct workload_w2_line *line)
{
    at = text_string(at, line->message);
    *at++ = ' ';
    return text_decimal(at, line->item);
}

size_t workload_w2_text(const struct workload_w2_line *line, char *out)
{
    char *at = text_string(out, DAY);
    *at++ = ' ';
    at = put_clock(at, line->time_ms, ',');
    *at++ = ' ';
    at = text_string(at, line->level);
    at = text_string(at, strlen(line->level) == 4 ? "  [http-worker-" : " [http-worker-");
    at = text_decimal(at, line->thread);
    at = text_string(at, "] c.acme.");
    at = text_string(at, line->logger);
    at = text_string(at, " req=");
    at = text_hex(at, line->request, 16);
    at = text_string(at, " host=node-");
    at = text_padded(at, line->host, 3);
    *at++ = ' ';
    at = put_message(at, line);
    at = text_string(at, " in ");
    at = text_decimal(at, line->duration_ms);
    at = text_string(at, " ms status=");
    at = text_decimal(at, line->status);
    at = text_string(at, " bytes=");
    at = text_decimal(at, line->bytes);
    at = text_string(at, line->code);
    *at++ = '\n';
    return (size_t)(at - out);
}

size_t workload_w2_json(const struct workload_w2_line *line, char *out)
{
    char *at = text_string(out, "{\"ts\":\"");
    at = text_string(at, DAY);
    *at++ = 'T';
    at = put_clock(at, line->time_ms, '.');
    at = text_string(at, "Z\",\"level\":\"");
    at = text_string(at, line->level);
    at = text_string(at, "\",\"thread\":\"http-worker-");
    at = text_decimal(at, line->thread);
    at = text_string(at, "\",\"logger\":\"c.acme.");
    at = text_string(at, line->logger);
    at = text_string(at, "\",\"req\":\"");
    at = text_hex(at, line->request, 16);
    at = text_string(at, "\",\"host\":\"node-");
    at = text_padded(at, line->host, 3);
    at = text_string(at, "\",\"ms\":");
    at = text_decimal(at, line->duration_ms);
    at = text_string(at, ",\"status\":");
    at = text_decimal(at, line->status);
    at = text_string(at, ",\"bytes\":");
    at = text_decimal(at, line->bytes);
    at = text_string(at, ",\"message\":\"");
    at = put_message(at, line);
    at = text_string(at, line->code);
    at = text_string(at, "\"}\n");
    return (size_t)(at - out);
}

size_t workload_w2_csv(const struct workload_w2_line *line, char *out)
{
    char *at = text_decimal(out, (uint64_t)line->time_ms);
    *at++ = ',';
    at = text_string(at, line->level);
    *at++ = ',';
    at = text_decimal(at, line->thread);
    *at++ = ',';
    at = text_string(at, line->logger);
    *at++ = ',';
    at = text_hex(at, line->request, 16);
    *at++ = ',';
    at = text_decimal(at, line->host);
    at = text_string(at, ",\"");
    at = text_string(at, line->message);
    at = text_string(at, ", item ");
    at = text_decimal(at, line->item);
    at = text_string(at, "\",");
    at = text_decimal(at, line->duration_ms);
    *at++ = ',';
    at = text_decimal(at, line->status);
    *at++ = ',';
    at = text_decimal(at, line->bytes);
    *at++ = '\n';
    return (size_t)(at - out);
}
