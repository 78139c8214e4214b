/* The functions of FMI 2.0 for co-simulation. */

#include "unit.h"

#include <stdlib.h>
#include <string.h>

typedef int Boolean;
typedef const char *String;
typedef void *Component;
typedef uint32_t Reference; /* unsigned int */
typedef void Logger(void *environment, String name, Status status, String category, String message, ...);
typedef struct {
    Logger *logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void (*finished)(void *, Status);
    void *environment;
} Callbacks;
enum { CO_SIMULATION = 1, LAST_SUCCESSFUL_TIME = 2 };
enum { BEFORE_END = 1 << INSTANTIATED | 1 << INITIALIZING | 1 << STEPPING };

static void report(const Unit *unit, Status status, const char *text) {
    Logger *logger = (Logger *)unit->logger;
    const char *category = status == DISCARD ? "logStatusDiscard" : "logStatusError";
    char format[2 * TEXT_SIZE]; /* without arguments, as some importers show the format alone */
    size_t size = 0;
    for (; *text; text++) {
        if (*text == '%') format[size++] = '%';
        format[size++] = *text;
    }
    format[size] = 0;
    if (logger) logger(unit->environment, unit->name, status, category, format);
}

EXPORTED String fmi2GetTypesPlatform(void) { return "default"; }
EXPORTED String fmi2GetVersion(void) { return "2.0"; }
/* only what fails is reported, and always */
EXPORTED Status fmi2SetDebugLogging(Component c, Boolean on, size_t n, const String categories[]) { return OK; }

EXPORTED Component fmi2Instantiate(String name, int type, String token, String resources, const Callbacks *callbacks,
                                   Boolean visible, Boolean logging) {
    Logger *logger = callbacks ? callbacks->logger : NULL;
    Unit *unit = unit_new(report, (void (*)(void))logger, callbacks ? callbacks->environment : NULL, name, token);
    if (unit && type != CO_SIMULATION) {
        unit_unsupported(unit, "an instance for model exchange");
        unit_free(unit);
        return NULL;
    }
    return unit;
}
EXPORTED void fmi2FreeInstance(Component c) { unit_free(c); }

EXPORTED Status fmi2SetupExperiment(Component c, Boolean has_tolerance, double tolerance, double start,
                                    Boolean has_stop, double stop) {
    Status status = unit_allows(c, 1 << INSTANTIATED, "fmi2SetupExperiment");
    if (status == OK) unit_begin_at(c, start);
    return status;
}
static Status enter(Component c, unsigned from, Phase phase, const char *function) {
    Status status = unit_allows(c, from, function);
    if (status == OK) ((Unit *)c)->phase = phase;
    return status;
}
EXPORTED Status fmi2EnterInitializationMode(Component c) {
    return enter(c, 1 << INSTANTIATED, INITIALIZING, "fmi2EnterInitializationMode");
}
EXPORTED Status fmi2ExitInitializationMode(Component c) {
    Status status = enter(c, 1 << INITIALIZING, STEPPING, "fmi2ExitInitializationMode");
    if (status == OK) unit_initialise(c);
    return status;
}
EXPORTED Status fmi2Terminate(Component c) { return enter(c, 1 << STEPPING | 1 << FAILED, TERMINATED, "fmi2Terminate"); }
EXPORTED Status fmi2Reset(Component c) { return unit_reset(c), OK; }

EXPORTED Status fmi2GetReal(Component c, const Reference of[], size_t n, double values[]) {
    return unit_get(c, of, n, values);
}
EXPORTED Status fmi2SetReal(Component c, const Reference of[], size_t n, const double values[]) {
    Status status = unit_allows(c, BEFORE_END, "fmi2SetReal");
    return status == OK ? unit_set(c, of, n, values) : status;
}
/* all variables are real numbers */
#define OTHER_TYPE(TYPE, C_TYPE)                                                                                       \
    EXPORTED Status fmi2Get##TYPE(Component c, const Reference of[], size_t n, C_TYPE values[]) {                      \
        return n ? unit_unsupported(c, "fmi2Get" #TYPE) : OK;                                                          \
    }                                                                                                                  \
    EXPORTED Status fmi2Set##TYPE(Component c, const Reference of[], size_t n, const C_TYPE values[]) {                \
        return n ? unit_unsupported(c, "fmi2Set" #TYPE) : OK;                                                          \
    }
OTHER_TYPE(Integer, int)
OTHER_TYPE(Boolean, Boolean)
OTHER_TYPE(String, String)

EXPORTED Status fmi2GetFMUstate(Component c, void **state) {
    if (!*state) *state = malloc(unit_state_size());
    return *state ? unit_write_state(c, *state, unit_state_size()) : ERROR;
}
EXPORTED Status fmi2SetFMUstate(Component c, void *state) {
    return unit_read_state(c, state, state ? unit_state_size() : 0);
}
EXPORTED Status fmi2FreeFMUstate(Component c, void **state) {
    if (state) free(*state), *state = NULL;
    return OK;
}
EXPORTED Status fmi2SerializedFMUstateSize(Component c, void *state, size_t *size) {
    return *size = unit_state_size(), OK;
}
EXPORTED Status fmi2SerializeFMUstate(Component c, void *state, uint8_t bytes[], size_t size) {
    if (size < unit_state_size()) return unit_write_state(c, bytes, size); /* which reports it */
    return memcpy(bytes, state, unit_state_size()), OK;
}
EXPORTED Status fmi2DeSerializeFMUstate(Component c, const uint8_t bytes[], size_t size, void **state) {
    if (size < unit_state_size()) return unit_read_state(c, bytes, size);
    if (!*state) *state = malloc(unit_state_size());
    if (*state) memcpy(*state, bytes, unit_state_size());
    return *state ? OK : ERROR;
}

EXPORTED Status fmi2DoStep(Component c, double time, double step, Boolean no_set_state_before) {
    Status status = unit_allows(c, 1 << STEPPING, "fmi2DoStep");
    return status == OK ? unit_advance(c, time, step) : status;
}
EXPORTED Status fmi2CancelStep(Component c) { return unit_unsupported(c, "fmi2CancelStep"); }
EXPORTED Status fmi2GetRealStatus(Component c, int kind, double *value) {
    if (kind != LAST_SUCCESSFUL_TIME) return unit_unsupported(c, "this kind of fmi2GetRealStatus");
    return *value = unit_time(c), OK;
}
EXPORTED Status fmi2GetStatus(Component c, int kind, Status *value) { return unit_unsupported(c, "fmi2GetStatus"); }
EXPORTED Status fmi2GetIntegerStatus(Component c, int kind, int *value) {
    return unit_unsupported(c, "fmi2GetIntegerStatus");
}
EXPORTED Status fmi2GetBooleanStatus(Component c, int kind, Boolean *value) {
    return unit_unsupported(c, "fmi2GetBooleanStatus");
}
EXPORTED Status fmi2GetStringStatus(Component c, int kind, String *value) {
    return unit_unsupported(c, "fmi2GetStringStatus");
}
EXPORTED Status fmi2GetDirectionalDerivative(Component c, const Reference of[], size_t n, const Reference by[], size_t m,
                                             const double seed[], double values[]) {
    return unit_unsupported(c, "fmi2GetDirectionalDerivative");
}
EXPORTED Status fmi2SetRealInputDerivatives(Component c, const Reference of[], size_t n, const int order[],
                                            const double values[]) {
    if (n && !unit_follows) return unit_unsupported(c, "fmi2SetRealInputDerivatives");
    Status status = unit_allows(c, BEFORE_END, "fmi2SetRealInputDerivatives");
    return status == OK ? unit_set_derivatives(c, of, order, n, values) : status;
}
EXPORTED Status fmi2GetRealOutputDerivatives(Component c, const Reference of[], size_t n, const int order[],
                                             double values[]) {
    return n ? unit_unsupported(c, "fmi2GetRealOutputDerivatives") : OK;
}
