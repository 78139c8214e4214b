/* The functions of FMI 3.0 for co-simulation. */

#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef void *Instance;
typedef const char *String;
typedef const uint8_t *Binary;
typedef uint32_t Reference;
typedef void Logger(void *environment, Status status, String category, String message);
enum { BEFORE_END = 1 << INSTANTIATED | 1 << INITIALIZING | 1 << STEPPING };

static void report(const Unit *unit, Status status, const char *text) {
    Logger *logger = (Logger *)unit->logger;
    if (logger) logger(unit->environment, status, status == DISCARD ? "logStatusDiscard" : "logStatusError", text);
}

EXPORTED String fmi3GetVersion(void) { return "3.0"; }
/* only what fails is reported, and always */
EXPORTED Status fmi3SetDebugLogging(Instance i, bool on, size_t n, const String categories[]) { return OK; }

EXPORTED Instance fmi3InstantiateCoSimulation(String name, String token, String resources, bool visible, bool logging,
                                              bool event_mode, bool early_return, const Reference required[],
                                              size_t n_required, void *environment, Logger *logger,
                                              void (*intermediate_update)(void)) {
    return unit_new(report, (void (*)(void))logger, environment, name, token);
}
EXPORTED Instance fmi3InstantiateModelExchange(String name, String token, String resources, bool visible, bool logging,
                                               void *environment, Logger *logger) {
    if (logger) logger(environment, ERROR, "logStatusError", "an instance for model exchange is not supported");
    return NULL;
}
EXPORTED Instance fmi3InstantiateScheduledExecution(String name, String token, String resources, bool visible,
                                                    bool logging, void *environment, Logger *logger,
                                                    void (*clock_update)(void), void (*lock)(void),
                                                    void (*unlock)(void)) {
    if (logger) logger(environment, ERROR, "logStatusError", "an instance for scheduled execution is not supported");
    return NULL;
}
EXPORTED void fmi3FreeInstance(Instance i) { unit_free(i); }

static Status enter(Instance i, unsigned from, Phase phase, const char *function) {
    Status status = unit_allows(i, from, function);
    if (status == OK) ((Unit *)i)->phase = phase;
    return status;
}
EXPORTED Status fmi3EnterInitializationMode(Instance i, bool has_tolerance, double tolerance, double start,
                                            bool has_stop, double stop) {
    Status status = enter(i, 1 << INSTANTIATED, INITIALIZING, "fmi3EnterInitializationMode");
    if (status == OK) unit_begin_at(i, start);
    return status;
}
EXPORTED Status fmi3ExitInitializationMode(Instance i) {
    Status status = enter(i, 1 << INITIALIZING, STEPPING, "fmi3ExitInitializationMode");
    if (status == OK) unit_initialise(i);
    return status;
}
EXPORTED Status fmi3Terminate(Instance i) { return enter(i, 1 << STEPPING | 1 << FAILED, TERMINATED, "fmi3Terminate"); }
EXPORTED Status fmi3Reset(Instance i) { return unit_reset(i), OK; }

/* Whether there are as many values as the variables have elements. */
static Status check_size(Instance i, const Reference of[], size_t n, size_t n_values) {
    size_t elements = 0;
    for (size_t k = 0; k < n; k++) elements += of[k] < unit_variable_count ? unit_variables[of[k]].size : 1;
    if (elements == n_values) return OK;
    return unit_complain(i, ERROR, "there are %zu values for variables with %zu elements", n_values, elements);
}
EXPORTED Status fmi3GetFloat64(Instance i, const Reference of[], size_t n, double values[], size_t n_values) {
    Status status = check_size(i, of, n, n_values);
    return status == OK ? unit_get(i, of, n, values) : status;
}
EXPORTED Status fmi3SetFloat64(Instance i, const Reference of[], size_t n, const double values[], size_t n_values) {
    Status status = unit_allows(i, BEFORE_END, "fmi3SetFloat64");
    if (status == OK) status = check_size(i, of, n, n_values);
    return status == OK ? unit_set(i, of, n, values) : status;
}
/* all variables are Float64 */
#define OTHER_TYPE(TYPE, C_TYPE)                                                                                       \
    EXPORTED Status fmi3Get##TYPE(Instance i, const Reference of[], size_t n, C_TYPE values[], size_t n_values) {      \
        return n ? unit_unsupported(i, "fmi3Get" #TYPE) : OK;                                                          \
    }                                                                                                                  \
    EXPORTED Status fmi3Set##TYPE(Instance i, const Reference of[], size_t n, const C_TYPE values[],                   \
                                  size_t n_values) {                                                                   \
        return n ? unit_unsupported(i, "fmi3Set" #TYPE) : OK;                                                          \
    }
OTHER_TYPE(Float32, float)
OTHER_TYPE(Int8, int8_t)
OTHER_TYPE(UInt8, uint8_t)
OTHER_TYPE(Int16, int16_t)
OTHER_TYPE(UInt16, uint16_t)
OTHER_TYPE(Int32, int32_t)
OTHER_TYPE(UInt32, uint32_t)
OTHER_TYPE(Int64, int64_t)
OTHER_TYPE(UInt64, uint64_t)
OTHER_TYPE(Boolean, bool)
OTHER_TYPE(String, String)
EXPORTED Status fmi3GetBinary(Instance i, const Reference of[], size_t n, size_t sizes[], Binary values[], size_t m) {
    return n ? unit_unsupported(i, "fmi3GetBinary") : OK;
}
EXPORTED Status fmi3SetBinary(Instance i, const Reference of[], size_t n, const size_t sizes[], const Binary values[],
                              size_t m) {
    return n ? unit_unsupported(i, "fmi3SetBinary") : OK;
}
EXPORTED Status fmi3GetClock(Instance i, const Reference of[], size_t n, bool values[]) {
    return n ? unit_unsupported(i, "fmi3GetClock") : OK;
}
EXPORTED Status fmi3SetClock(Instance i, const Reference of[], size_t n, const bool values[]) {
    return n ? unit_unsupported(i, "fmi3SetClock") : OK;
}

EXPORTED Status fmi3GetFMUState(Instance i, void **state) {
    if (!*state) *state = malloc(unit_state_size());
    return *state ? unit_write_state(i, *state, unit_state_size()) : ERROR;
}
EXPORTED Status fmi3SetFMUState(Instance i, void *state) {
    return unit_read_state(i, state, state ? unit_state_size() : 0);
}
EXPORTED Status fmi3FreeFMUState(Instance i, void **state) {
    if (state) free(*state), *state = NULL;
    return OK;
}
EXPORTED Status fmi3SerializedFMUStateSize(Instance i, void *state, size_t *size) {
    return *size = unit_state_size(), OK;
}
EXPORTED Status fmi3SerializeFMUState(Instance i, void *state, uint8_t bytes[], size_t size) {
    if (size < unit_state_size()) return unit_write_state(i, bytes, size); /* which reports it */
    return memcpy(bytes, state, unit_state_size()), OK;
}
EXPORTED Status fmi3DeserializeFMUState(Instance i, const uint8_t bytes[], size_t size, void **state) {
    if (size < unit_state_size()) return unit_read_state(i, bytes, size);
    if (!*state) *state = malloc(unit_state_size());
    if (*state) memcpy(*state, bytes, unit_state_size());
    return *state ? OK : ERROR;
}

EXPORTED Status fmi3DoStep(Instance i, double time, double step, bool no_set_state_before, bool *needs_event,
                           bool *terminates, bool *returns_early, double *last_time) {
    Status status = unit_allows(i, 1 << STEPPING, "fmi3DoStep");
    if (status == OK) status = unit_advance(i, time, step);
    *needs_event = *terminates = *returns_early = false;
    *last_time = unit_time(i);
    return status;
}
/* what belongs to other kinds of FMUs, or to capabilities that the model description does not have */
#define UNSUPPORTED(NAME, ...)                                                                                         \
    EXPORTED Status NAME(Instance i, __VA_ARGS__) { return unit_unsupported(i, #NAME); }
#define UNSUPPORTED_ALONE(NAME)                                                                                        \
    EXPORTED Status NAME(Instance i) { return unit_unsupported(i, #NAME); }
UNSUPPORTED_ALONE(fmi3EnterEventMode)
UNSUPPORTED_ALONE(fmi3EnterStepMode)
UNSUPPORTED_ALONE(fmi3EnterConfigurationMode)
UNSUPPORTED_ALONE(fmi3ExitConfigurationMode)
UNSUPPORTED_ALONE(fmi3EnterContinuousTimeMode)
UNSUPPORTED_ALONE(fmi3EvaluateDiscreteStates)
UNSUPPORTED(fmi3UpdateDiscreteStates, bool *a, bool *b, bool *c, bool *d, bool *e, double *f)
UNSUPPORTED(fmi3GetNumberOfVariableDependencies, Reference of, size_t *n)
UNSUPPORTED(fmi3GetVariableDependencies, Reference of, size_t a[], Reference b[], size_t c[], int d[], size_t n)
UNSUPPORTED(fmi3GetDirectionalDerivative, const Reference of[], size_t n, const Reference by[], size_t m,
            const double seed[], size_t n_seed, double values[], size_t n_values)
UNSUPPORTED(fmi3GetAdjointDerivative, const Reference of[], size_t n, const Reference by[], size_t m,
            const double seed[], size_t n_seed, double values[], size_t n_values)
UNSUPPORTED(fmi3GetOutputDerivatives, const Reference of[], size_t n, const int32_t order[], double values[], size_t m)
UNSUPPORTED(fmi3GetIntervalDecimal, const Reference of[], size_t n, double values[], int kinds[])
UNSUPPORTED(fmi3GetIntervalFraction, const Reference of[], size_t n, uint64_t a[], uint64_t b[], int kinds[])
UNSUPPORTED(fmi3GetShiftDecimal, const Reference of[], size_t n, double values[])
UNSUPPORTED(fmi3GetShiftFraction, const Reference of[], size_t n, uint64_t a[], uint64_t b[])
UNSUPPORTED(fmi3SetIntervalDecimal, const Reference of[], size_t n, const double values[])
UNSUPPORTED(fmi3SetIntervalFraction, const Reference of[], size_t n, const uint64_t a[], const uint64_t b[])
UNSUPPORTED(fmi3SetShiftDecimal, const Reference of[], size_t n, const double values[])
UNSUPPORTED(fmi3SetShiftFraction, const Reference of[], size_t n, const uint64_t a[], const uint64_t b[])
UNSUPPORTED(fmi3CompletedIntegratorStep, bool no_set_state_before, bool *a, bool *b)
UNSUPPORTED(fmi3SetTime, double time)
UNSUPPORTED(fmi3SetContinuousStates, const double values[], size_t n)
UNSUPPORTED(fmi3GetContinuousStates, double values[], size_t n)
UNSUPPORTED(fmi3GetContinuousStateDerivatives, double values[], size_t n)
UNSUPPORTED(fmi3GetNominalsOfContinuousStates, double values[], size_t n)
UNSUPPORTED(fmi3GetNumberOfContinuousStates, size_t *n)
UNSUPPORTED(fmi3GetEventIndicators, double values[], size_t n)
UNSUPPORTED(fmi3GetNumberOfEventIndicators, size_t *n)
UNSUPPORTED(fmi3ActivateModelPartition, Reference clock, double time)
