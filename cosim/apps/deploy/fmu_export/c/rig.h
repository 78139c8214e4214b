/* What the generated code and data of a rig give. */

#ifndef RIG_H
#define RIG_H

#include "unit.h"

/* One tick of this number on the memory: 0, or 1 after a fault. */
int32_t cosim_tick(double *memory, int64_t number);
/* All signals of a row; start: the flat BumplessStart of the memory; numbers: those that are no constants. */
void cosim_observe(const double *start, const double *row, const double *numbers, double *signals);

extern const double unit_step; /* s */
extern const size_t unit_early_size, unit_time_place, unit_start_place, unit_numbers_place, unit_fault_place;
extern const size_t unit_guard_fault_place, unit_stop_reason_place, unit_first_guard_fault_place;
/* faults of joints by code, from 0 on; above the last one faults of the whole mechanism */
extern const size_t unit_joint_count, unit_joint_fault_count, unit_fault_count;
extern const char *const unit_joint_faults[]; /* (unit_joint_fault_count, unit_joint_count) */
extern const char *const unit_faults[];

#endif
