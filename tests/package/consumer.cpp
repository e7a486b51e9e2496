// A C++17 program that sees the public headers and nothing else.
#include <cstdio>
#include <cstring>
#include <string>

#include "lahar/lahar.h"

int main(int argc, char **argv)
{
    const std::string directory = argc > 1 ? argv[1] : "events.lahar";
    lahar_store *store = nullptr;
    lahar_error error{};
    lahar_options options;
    lahar_options_init(&options);
    if (lahar_store_open(directory.c_str(), &options, LAHAR_NO_WAIT, &store, &error) != LAHAR_OK) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    lahar_stat stat{};
    stat.struct_size = sizeof stat;
    lahar_filter *filter = nullptr;
    lahar_query *query = nullptr;
    lahar_query_result result{};
    result.struct_size = sizeof result;
    if (lahar_filter_create(store, &filter, &error) != LAHAR_OK) {
        return 1;
    }
    const lahar_clause *clauses[] = {
        lahar_filter_test(filter, "type", LAHAR_FILTER_EQUAL, "RECEIVE", 7),
        lahar_filter_not(filter, lahar_filter_present(filter, "filename"))};
    const lahar_clause *both = lahar_filter_and(filter, clauses, 2);
    const bool found =
        std::string(lahar_filter_text(filter, both)) == "type=RECEIVE AND NOT filename:*" &&
        lahar_filter_open(filter, both, nullptr, &query, &error) == LAHAR_OK &&
        lahar_query_result_get(query, &result, &error) == LAHAR_OK && result.total == 0;
    lahar_query_close(query);
    lahar_filter_destroy(filter);
    const bool ok = found && lahar_stat_get(store, &stat, &error) == LAHAR_OK && stat.event_count == 0 &&
                    std::strcmp(lahar_version(), CONSUMER_VERSION) == 0;
    return lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK && ok ? 0 : 1;
}
