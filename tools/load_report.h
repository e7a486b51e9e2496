/* The report of a phase: a few lines for people, or one JSON object with everything needed to
 * compare it with another run. */
#ifndef LAHAR_TOOLS_LOAD_REPORT_H
#define LAHAR_TOOLS_LOAD_REPORT_H

#include "tools/load_phase.h"
#include "tools/load_settings.h"

void load_report_text(const struct load_job *job, const struct load_phase *phase,
                      const struct load_result *result);
void load_report_json(const struct load_job *job, const struct load_phase *phase,
                      const struct load_result *result);

#endif
