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
    const bool ok = lahar_stat_get(store, &stat, &error) == LAHAR_OK && stat.event_count == 0 &&
                    std::strcmp(lahar_version(), CONSUMER_VERSION) == 0;
    return lahar_store_close(store, LAHAR_WAIT_FOREVER, &error) == LAHAR_OK && ok ? 0 : 1;
}
