/* A rig. Its ticks work on its memory; outputs at a time come from the tick that would follow, with the inputs as they
   are. */

#include "rig.h"

#include <math.h>
#include <string.h>

/* fractions of a tick: by how much the importer's times and steps may differ from whole ticks */
static const double TIME_TOLERANCE = 1e-2, STEP_TOLERANCE = 1e-6;

double unit_time(const Unit *unit) { return unit->start + (double)unit->number * unit_step; }

void unit_begin_at(Unit *unit, double start) { unit->start = start; }

void unit_initialise(Unit *unit) {}

/* Bring `next` up to date; 1 if the tick has a fault. */
static int compute(Unit *unit) {
    if (unit->computed) return unit->faulty;
    memcpy(unit->next, unit->now, sizeof(double) * unit_memory_size);
    unit->faulty = cosim_tick(unit->next, unit->number);
    unit->computed = 1, unit->observed = 0;
    return unit->faulty;
}

/* Bring the signals up to date. A row has the plant as at the beginning of the tick, the rest as at its end. */
void unit_observe(Unit *unit) {
    compute(unit);
    if (unit->observed) return;
    memcpy(unit->row, unit->now, sizeof(double) * unit_early_size);
    memcpy(unit->row + unit_early_size, unit->next + unit_early_size,
           sizeof(double) * (unit_row_size - unit_early_size));
    unit->row[unit_time_place] = unit->next[unit_time_place];
    cosim_observe(unit->next + unit_start_place, unit->row, unit->next + unit_numbers_place, unit->signals);
    unit->observed = 1;
}

static size_t largest(const double *values) {
    size_t found = 0;
    for (size_t k = 1; k < unit_joint_count; k++)
        if (values[k] > values[found]) found = k;
    return found;
}

/* The reason of the fault of a tick, in the order of precedence of the guard. */
static Status report_fault(Unit *unit) {
    const double *memory = unit->next, *faults = memory + unit_guard_fault_place;
    double fault = memory[unit_fault_place], reason = memory[unit_stop_reason_place];
    size_t joint = largest(faults), code = fault >= 0.0 && fault < 1e6 ? (size_t)fault : unit_fault_count;
    const char *what, *after = "";
    /* a motion that is not finite is the cause of what the mechanism reports */
    if (code < unit_fault_count && faults[joint] == (double)(unit_joint_fault_count - 1)) code = (size_t)faults[joint];
    if (code >= unit_joint_fault_count) {
        what = code < unit_fault_count ? unit_faults[code - unit_joint_fault_count] : "its state is not valid";
    } else {
        if (reason > 0.0 && reason == fault) {
            joint = largest(memory + unit_first_guard_fault_place);
            after = ", followed by a controlled stop of all joints";
        }
        what = unit_joint_faults[code * unit_joint_count + joint];
    }
    unit->phase = FAILED;
    return unit_complain(unit, ERROR, "stopped at tick %lld (t = %.6g s): %s%s", (long long)unit->number, unit_time(unit),
                    what, after);
}

Status unit_advance(Unit *unit, double time, double step) {
    double ticks = step / unit_step, count = floor(ticks + 0.5);
    if (!(fabs(time - unit_time(unit)) <= TIME_TOLERANCE * unit_step))
        return unit_complain(unit, ERROR, "a step from t = %.9g s cannot be taken; the unit is at t = %.9g s", time,
                        unit_time(unit));
    if (!(count >= 1.0 && fabs(ticks - count) <= STEP_TOLERANCE * count))
        return unit_complain(unit, DISCARD, "a step of %.9g s cannot be taken; use a multiple of %.9g s", step, unit_step);
    for (; count > 0.5; count -= 1.0) {
        if (compute(unit)) return report_fault(unit);
        unit_swap(unit);
        unit_move(unit->now, unit_step);
        unit->number++;
    }
    return OK;
}
