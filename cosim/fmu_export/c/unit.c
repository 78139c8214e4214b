/* An instance of the rig. A tick is a pure function from the memory `now` to the memory `next`, so outputs at a time are
   those of the tick that would follow, with the inputs as they are. Taking the step swaps the two. */

#include "unit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#endif

/* fractions of a tick: by how much the importer's times and steps may differ from whole ticks */
static const double TIME_TOLERANCE = 1e-2, STEP_TOLERANCE = 1e-6;

static Status complain(const Unit *unit, Status status, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    unit->report(unit, status, text);
    return status;
}

/* Whether this processor has the instructions of the machine code, x86-64-v3. */
static int processor_fits(void) {
#if defined(__x86_64__) || defined(_M_X64)
    enum { FMA = 1 << 12, SAVED = 1 << 27, AVX2 = 1 << 5, BMI = 1 << 3 | 1 << 8 };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (FMA | SAVED)) != (FMA | SAVED)) return 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return 0; /* the system saves the wide registers */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (AVX2 | BMI)) == (AVX2 | BMI);
#else
    return 1;
#endif
}

Unit *unit_new(Report *report, void (*logger)(void), void *environment, const char *name, const char *token) {
    Unit *unit = calloc(1, sizeof *unit);
    if (!unit) return NULL;
    unit->report = report, unit->logger = logger, unit->environment = environment;
    unit->name = malloc(strlen(name ? name : "") + 1);
    unit->now = malloc(sizeof(double) * (unit_memory_size + 1));
    unit->next = malloc(sizeof(double) * (unit_memory_size + 1));
    unit->row = malloc(sizeof(double) * (unit_row_size + 1));
    unit->signals = malloc(sizeof(double) * (unit_signal_count + 1));
    int has_memory = unit->name && unit->now && unit->next && unit->row && unit->signals;
    if (unit->name) strcpy(unit->name, name ? name : "");
    const char *problem = NULL;
    if (!has_memory)
        problem = "there is not enough memory";
    else if (!token || strcmp(token, unit_token))
        problem = "the model description belongs to another FMU; export it again";
    else if (!processor_fits())
        problem = "this processor lacks instructions of the machine code (x86-64-v3: AVX2, FMA, BMI2)";
    if (problem) {
        if (unit->name) complain(unit, ERROR, "%s", problem);
        unit_free(unit);
        return NULL;
    }
    unit_reset(unit);
    return unit;
}

void unit_free(Unit *unit) {
    if (!unit) return;
    free(unit->name), free(unit->now), free(unit->next), free(unit->row), free(unit->signals);
    free(unit);
}

void unit_reset(Unit *unit) {
    memcpy(unit->now, unit_initial, sizeof(double) * unit_memory_size);
    unit->phase = INSTANTIATED, unit->number = 0, unit->start = 0.0, unit->computed = 0;
}

Status unit_allows(Unit *unit, unsigned phases, const char *function) {
    static const char *const names[] = {"before its initialization", "in its initialization", "while it is stepped",
                                        "after its end", "after a fault"};
    if (phases & 1u << unit->phase) return OK;
    return complain(unit, ERROR, "%s is not allowed %s", function, names[unit->phase]);
}

Status unit_unsupported(Unit *unit, const char *function) {
    return complain(unit, ERROR, "%s is not supported", function);
}

/* Bring `next` up to date; 1 if the tick has a fault. */
static int compute(Unit *unit) {
    if (unit->computed) return unit->faulty;
    memcpy(unit->next, unit->now, sizeof(double) * unit_memory_size);
    unit->faulty = (int)cosim_tick(unit->next, unit->number);
    unit->computed = 1, unit->observed = 0;
    return unit->faulty;
}

/* Bring the signals up to date. A row has the plant as at the beginning of the tick, the rest as at its end. */
static void observe(Unit *unit) {
    compute(unit);
    if (unit->observed) return;
    memcpy(unit->row, unit->now, sizeof(double) * unit_early_size);
    memcpy(unit->row + unit_early_size, unit->next + unit_early_size,
           sizeof(double) * (unit_row_size - unit_early_size));
    unit->row[unit_time_place] = unit->next[unit_time_place];
    cosim_observe(unit->next + unit_start_place, unit->row, unit->signals);
    unit->observed = 1;
}

double unit_time(const Unit *unit) { return unit->start + (double)unit->number * unit_step; }

static double value_of(Unit *unit, const Variable *variable) {
    const double *now = unit->now, ticked = (double)unit->number * unit_step;
    switch (variable->kind) {
    case TIME: return unit_time(unit);
    case SIGNAL: return observe(unit), unit->signals[variable->place];
    case REFERENCE: return now[variable->place] + now[variable->partner] * ticked;
    default: return now[variable->place];
    }
}

static void give(Unit *unit, const Variable *variable, double value) {
    double *now = unit->now, ticked = (double)unit->number * unit_step;
    if (value == value_of(unit, variable)) return;
    if (variable->kind == REFERENCE) {
        now[variable->place] = value - now[variable->partner] * ticked;
    } else {
        if (variable->kind == RATE) now[variable->partner] += (now[variable->place] - value) * ticked;
        now[variable->place] = value;
    }
    unit->computed = 0;
}

Status unit_get(Unit *unit, const uint32_t *references, size_t count, double *values) {
    for (size_t k = 0; k < count; k++) {
        if (references[k] >= unit_variable_count)
            return complain(unit, ERROR, "there is no variable %u", (unsigned)references[k]);
        values[k] = value_of(unit, &unit_variables[references[k]]);
    }
    return OK;
}

Status unit_set(Unit *unit, const uint32_t *references, size_t count, const double *values) {
    for (size_t k = 0; k < count; k++) {
        unsigned reference = (unsigned)references[k];
        if (reference >= unit_variable_count) return complain(unit, ERROR, "there is no variable %u", reference);
        const Variable *variable = &unit_variables[reference];
        if (variable->kind == TIME || variable->kind == SIGNAL)
            return complain(unit, ERROR, "variable %u cannot be set", reference);
        if (!(values[k] >= variable->least && values[k] <= variable->greatest))
            return complain(unit, ERROR, "variable %u cannot be %g; it must be from %g to %g", reference, values[k],
                            variable->least, variable->greatest);
    }
    for (size_t k = 0; k < count; k++) give(unit, &unit_variables[references[k]], values[k]);
    return OK;
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
    return complain(unit, ERROR, "stopped at tick %lld (t = %.6g s): %s%s", (long long)unit->number, unit_time(unit),
                    what, after);
}

Status unit_advance(Unit *unit, double time, double step) {
    double ticks = step / unit_step, count = floor(ticks + 0.5);
    if (!(fabs(time - unit_time(unit)) <= TIME_TOLERANCE * unit_step))
        return complain(unit, ERROR, "a step from t = %.9g s cannot be taken; the unit is at t = %.9g s", time,
                        unit_time(unit));
    if (!(count >= 1.0 && fabs(ticks - count) <= STEP_TOLERANCE * count))
        return complain(unit, DISCARD, "a step of %.9g s cannot be taken; use a multiple of %.9g s", step, unit_step);
    for (; count > 0.5; count -= 1.0) {
        if (compute(unit)) return report_fault(unit);
        double *before = unit->now;
        unit->now = unit->next, unit->next = before;
        unit->number++, unit->computed = 0;
    }
    return OK;
}

typedef struct {
    char token[72];
    int64_t number, phase;
    double start;
} Head;

size_t unit_state_size(void) { return sizeof(Head) + sizeof(double) * unit_memory_size; }

Status unit_write_state(Unit *unit, uint8_t *bytes, size_t size) {
    if (size < unit_state_size()) return complain(unit, ERROR, "a state needs %zu bytes", unit_state_size());
    Head head = {.number = unit->number, .phase = unit->phase, .start = unit->start};
    strncpy(head.token, unit_token, sizeof head.token - 1);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head, unit->now, sizeof(double) * unit_memory_size);
    return OK;
}

Status unit_read_state(Unit *unit, const uint8_t *bytes, size_t size) {
    Head head;
    if (size >= sizeof head) memcpy(&head, bytes, sizeof head);
    if (size < unit_state_size() || strncmp(head.token, unit_token, sizeof head.token - 1))
        return complain(unit, ERROR, "the state belongs to another FMU");
    memcpy(unit->now, bytes + sizeof head, sizeof(double) * unit_memory_size);
    unit->number = head.number, unit->phase = (Phase)head.phase, unit->start = head.start, unit->computed = 0;
    return OK;
}
