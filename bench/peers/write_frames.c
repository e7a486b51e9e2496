/* write_frames COUNT FILE: the first events of W1 as frames (bench/w1_frame.h), the input of the
 * peers. The seed is that of lahar-load. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/w1_frame.h"

enum {
    SEED = 42
};

int main(int argc, char **argv)
{
    const uint64_t count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    struct workload_w1 *workload = workload_w1_create(SEED);
    FILE *file = count == 0 ? NULL : fopen(argv[2], "wb");
    char frame[W1_FRAME_SIZE_MAX];
    if (workload == NULL || file == NULL) {
        (void)fprintf(stderr, "usage: write_frames COUNT FILE\n");
        workload_w1_destroy(workload);
        return 2;
    }
    for (uint64_t i = 0; i < count; i++) {
        struct workload_w1_event event;
        workload_w1_event(workload, i, &event);
        const size_t size = w1_frame(&event, frame);
        if (fwrite(frame, 1, size, file) != size) {
            break;
        }
    }
    workload_w1_destroy(workload);
    if (ferror(file) != 0 || fclose(file) != 0) {
        perror(argv[2]);
        return 1;
    }
    return 0;
}
