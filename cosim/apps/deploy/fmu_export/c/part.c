/* A part: a block with its own integrator. Outputs at a time follow from its state then, with the inputs as they
   are; a sampled part holds them in its state from its first sample on. */

#include "part.h"

#include <math.h>
#include <string.h>

/* fractions of a step, and of a period: by how much the importer's times and steps may differ */
static const double TIME_TOLERANCE = 1e-2, STEP_TOLERANCE = 1e-6;

static double *state_of(double *memory) { return memory + 1; }
static const double *parameters_of(const Unit *unit) { return unit->now + unit_parameters_place; }
static const double *inputs_of(const Unit *unit) { return unit->now + unit_moving_place; }

double unit_time(const Unit *unit) { return unit->now[0]; }

void unit_begin_at(Unit *unit, double start) { unit->now[0] = start, unit->observed = 0; }

void unit_initialise(Unit *unit) {
    cosim_start(unit->now, inputs_of(unit), parameters_of(unit), state_of(unit->now), unit->signals);
    unit->observed = 0;
}

void unit_observe(Unit *unit) {
    if (unit->observed) return;
    if (unit->phase == INSTANTIATED || unit->phase == INITIALIZING)
        cosim_start(unit->now, inputs_of(unit), parameters_of(unit), unit->row, unit->signals);
    else
        cosim_outputs(unit->now, state_of(unit->now), inputs_of(unit), parameters_of(unit), unit->signals);
    unit->observed = 1;
}

static Status refuse(Unit *unit, double step, const char *wanted, double bound) {
    return unit_complain(unit, DISCARD, "a step of %.9g s cannot be taken; use %s %.9g s", step, wanted, bound);
}

/* The first element that is not finite, or `count`. */
static size_t first_wrong(const double *values, size_t count) {
    size_t k = 0;
    while (k < count && isfinite(values[k])) k++;
    return k;
}

Status unit_advance(Unit *unit, double time, double step) {
    double periods = step / unit_period, count = floor(periods + 0.5);
    if (!(step > 0.0)) return refuse(unit, step, "one above", 0.0);
    if (!(step <= unit_longest_step)) return refuse(unit, step, "at most", unit_longest_step);
    if (unit_period > 0.0 && !(count >= 1.0 && fabs(periods - count) <= STEP_TOLERANCE))
        return refuse(unit, step, "a multiple of", unit_period);
    if (!(fabs(time - unit_time(unit)) <= TIME_TOLERANCE * step))
        return unit_complain(unit, ERROR, "a step from t = %.9g s cannot be taken; the unit is at t = %.9g s", time,
                             unit_time(unit));
    memcpy(unit->next, unit->now, sizeof(double) * unit_memory_size);
    cosim_advance(&time, &step, state_of(unit->now), inputs_of(unit), parameters_of(unit), state_of(unit->next));
    unit_move(unit->next, step);
    unit->next[0] = time + step;
    unit_swap(unit);
    unit_observe(unit);
    size_t output = first_wrong(unit->signals, unit_signal_count);
    if (output == unit_signal_count && first_wrong(state_of(unit->now), unit_part_size) == unit_part_size) return OK;
    if (output < unit_signal_count)
        unit_complain(unit, ERROR, "its output '%s' is %g at t = %.9g s; check its inputs and parameters",
                      unit_output_names[output], unit->signals[output], unit_time(unit));
    else
        unit_complain(unit, ERROR, "its state is not finite at t = %.9g s; check its inputs and parameters",
                      unit_time(unit));
    unit_swap(unit); /* it stays before the step */
    unit->phase = FAILED;
    return ERROR;
}
