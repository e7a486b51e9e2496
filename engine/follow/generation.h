/* The contents that a file has one after another. */
#ifndef LAHAR_FOLLOW_GENERATION_H
#define LAHAR_FOLLOW_GENERATION_H

#include "engine/follow/follow_internal.h"

/* A file that is not known. With the lock, as the others. */
void lahar_generation_begin(struct lahar_follow *follow, struct lahar_follow_source *source,
                            const char *path, const struct lahar_source_stat *stat,
                            uint64_t now_ns);

/* The file holds another content now: the old one is closed, with what was not read of it
 * reported as lost, and a new one begins. path: NULL: as it was. */
void lahar_generation_replace(struct lahar_follow *follow, struct lahar_follow_source *source,
                              struct lahar_followed_file *file,
                              const struct lahar_source_stat *stat, const char *path,
                              enum lahar_content_change change, uint64_t now_ns);

/* Decides about a copy of another file's content, once that has ended or covers it. */
void lahar_generation_settle_copy(struct lahar_follow_source *source,
                                  struct lahar_followed_file *file);

#endif
