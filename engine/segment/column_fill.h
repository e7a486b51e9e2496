/* Taking the cells of a column into it, many at a time.
 *
 * Values that belong to an object (the attributes of a FlowFile) repeat when the object does. A
 * column that followed another one in the block before is therefore filled in three loops without
 * choices: slots are parted by whether the followed value is new, the values of the new ones are
 * appended, those of the others are compared with what is expected of them. */
#ifndef LAHAR_SEGMENT_COLUMN_FILL_H
#define LAHAR_SEGMENT_COLUMN_FILL_H

#include "engine/segment/column_writer.h"

/* Takes all cells of the column, which are of rising rows. row_count: of the block, with the
 * cells' rows. scratch: any buffer. False when memory is refused. A followed column that
 * has its cells by then is of use. */
bool lahar_column_fill(struct lahar_column *column, uint32_t row_count,
                       struct lahar_buffer *scratch);

#endif
