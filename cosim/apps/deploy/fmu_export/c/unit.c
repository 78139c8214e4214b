/* An instance of a rig or of a part: its phases, its variables and its states. A step is a pure function from the memory
   `now` to the memory `next`; taking it swaps the two. */

#include "unit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#endif

Status unit_complain(const Unit *unit, Status status, const char *format, ...) {
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
        if (unit->name) unit_complain(unit, ERROR, "%s", problem);
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
    unit->phase = INSTANTIATED, unit->number = 0, unit->start = 0.0, unit->computed = unit->observed = 0;
}

Status unit_allows(Unit *unit, unsigned phases, const char *function) {
    static const char *const names[] = {"before its initialization", "in its initialization", "while it is stepped",
                                        "after its end", "after a fault"};
    if (phases & 1u << unit->phase) return OK;
    return unit_complain(unit, ERROR, "%s is not allowed %s", function, names[unit->phase]);
}

Status unit_unsupported(Unit *unit, const char *function) {
    return unit_complain(unit, ERROR, "%s is not supported", function);
}

static double value_of(Unit *unit, const Variable *variable, size_t k) {
    switch (variable->kind) {
    case TIME: return unit_time(unit);
    case SIGNAL: return unit_observe(unit), unit->signals[variable->place + k];
    default: return unit->now[variable->place + k];
    }
}

/* Change an element of the memory. */
static void give(Unit *unit, size_t place, double value) {
    if (unit->now[place] == value) return;
    unit->now[place] = value;
    unit->computed = unit->observed = 0;
}

Status unit_get(Unit *unit, const uint32_t *references, size_t count, double *values) {
    for (size_t i = 0; i < count; i++) {
        if (references[i] >= unit_variable_count)
            return unit_complain(unit, ERROR, "there is no variable %u", (unsigned)references[i]);
        const Variable *variable = &unit_variables[references[i]];
        for (size_t k = 0; k < variable->size; k++) *values++ = value_of(unit, variable, k);
    }
    return OK;
}

Status unit_set(Unit *unit, const uint32_t *references, size_t count, const double *values) {
    const double *value = values;
    for (size_t i = 0; i < count; i++) {
        unsigned reference = (unsigned)references[i];
        if (reference >= unit_variable_count)
            return unit_complain(unit, ERROR, "there is no variable %u", reference);
        const Variable *variable = &unit_variables[reference];
        if (variable->kind != MEMORY) return unit_complain(unit, ERROR, "variable %u cannot be set", reference);
        for (size_t k = 0; k < variable->size; k++, value++)
            if (!(*value >= variable->least && *value <= variable->greatest))
                return unit_complain(unit, ERROR, "variable %u cannot be %g; it must be from %g to %g", reference,
                                     *value, variable->least, variable->greatest);
    }
    for (size_t i = 0; i < count; i++) {
        const Variable *variable = &unit_variables[references[i]];
        for (size_t k = 0; k < variable->size; k++) give(unit, variable->place + k, *values++);
    }
    return OK;
}

Status unit_set_derivatives(Unit *unit, const uint32_t *references, const int *orders, size_t count,
                            const double *values) {
    for (size_t i = 0; i < count; i++) {
        unsigned reference = (unsigned)references[i];
        size_t place = reference < unit_variable_count ? unit_variables[reference].place : 0;
        if (reference >= unit_variable_count || unit_variables[reference].kind != MEMORY || place < unit_moving_place ||
            place >= unit_moving_place + unit_moving_count)
            return unit_complain(unit, ERROR, "variable %u is no input with derivatives", reference);
        if (orders[i] < 1 || orders[i] > 2)
            return unit_complain(unit, ERROR, "a derivative of order %d cannot be set; use 1 or 2", orders[i]);
        if (!isfinite(values[i]))
            return unit_complain(unit, ERROR, "a derivative of variable %u cannot be %g", reference, values[i]);
    }
    for (size_t i = 0; i < count; i++)
        give(unit, unit_variables[references[i]].place + (size_t)orders[i] * unit_moving_count, values[i]);
    return OK;
}

void unit_move(double *memory, double h) {
    double *value = memory + unit_moving_place, *first = value + unit_moving_count, *second = first + unit_moving_count;
    for (size_t k = 0; k < unit_moving_count; k++) {
        value[k] += h * (first[k] + 0.5 * h * second[k]);
        first[k] += h * second[k];
    }
}

void unit_swap(Unit *unit) {
    double *before = unit->now;
    unit->now = unit->next, unit->next = before;
    unit->computed = unit->observed = 0;
}

typedef struct {
    char token[72];
    int64_t number, phase;
    double start;
} Head;

size_t unit_state_size(void) { return sizeof(Head) + sizeof(double) * unit_memory_size; }

Status unit_write_state(Unit *unit, uint8_t *bytes, size_t size) {
    if (size < unit_state_size()) return unit_complain(unit, ERROR, "a state needs %zu bytes", unit_state_size());
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
        return unit_complain(unit, ERROR, "the state belongs to another FMU");
    memcpy(unit->now, bytes + sizeof head, sizeof(double) * unit_memory_size);
    unit->number = head.number, unit->phase = (Phase)head.phase, unit->start = head.start;
    unit->computed = unit->observed = 0;
    return OK;
}
