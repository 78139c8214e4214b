/* The functions of FMI 3.0 for a model. An array has consecutive places from its value reference on; SPAN is its
   length. Integers have the value references from 100 on, booleans from 200 on. */
#include "fmi3FunctionTypes.h"
#include "instance.h"

#ifndef SPAN
#define SPAN(m, reference) 1
#endif
#define STATE(m) Instance *m = c
#define OK return fmi3OK
#define REFUSE(name) int name(void) { return fmi3Error; }

static int event_mode;

static void say(Instance *m, int status, const char *text) {
    if (m->log) ((fmi3LogMessageCallback)m->log)(m->environment, status, "test", text);
}

const char *fmi3GetVersion(void) { return "3.0"; }
int fmi3SetDebugLogging(void *c, bool on, size_t n, const char *const *categories) { OK; }

static void *instantiate(const char *name, const char *token, void *environment, void *log) {
    Instance *m = calloc(1, sizeof(Instance));
    strncpy(m->name, name, 63);
    m->log = log;
    m->environment = environment;
    if (strcmp(token, GUID)) { say(m, fmi3Error, "wrong token"); free(m); return NULL; }
    m->next_event = INFINITY;
    start(m);
    equations(m);
    return m;
}
void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible, bool on, void *environment, void *log) {
    return instantiate(name, token, environment, log);
}
void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible, bool on, bool events, bool early,
                                  const unsigned required[], size_t n, void *environment, void *log, void *update) {
    event_mode = events;
    return instantiate(name, token, environment, log);
}
void *fmi3InstantiateScheduledExecution(void) { return NULL; }
void fmi3FreeInstance(void *c) { free(c); }
int fmi3EnterInitializationMode(void *c, bool defined, double tolerance, double t, bool ends, double end) { STATE(m); m->t = m->slope_time = t; OK; }
int fmi3ExitInitializationMode(void *c) { STATE(m); equations(m); OK; }
int fmi3EnterEventMode(void *c) { STATE(m); m->handled = 0; OK; }
int fmi3Terminate(void *c) { OK; }
int fmi3Reset(void *c) { STATE(m); start(m); OK; }
int fmi3EnterConfigurationMode(void *c) { OK; }
int fmi3ExitConfigurationMode(void *c) { OK; }

#define ACCESS(name, type, field, first)                                                                                             \
    int fmi3Get##name(void *c, const unsigned r[], size_t n, type v[], size_t nv) {                                           \
        STATE(m); equations(m);                                                                                               \
        size_t k = 0;                                                                                                         \
        for (size_t i = 0; i < n; i++) for (int j = 0; j < SPAN(m, r[i]); j++, k++) v[k] = (type)m->field[r[i] - first + j];          \
        return k == nv ? fmi3OK : fmi3Error;                                                                                  \
    }                                                                                                                         \
    int fmi3Set##name(void *c, const unsigned r[], size_t n, const type v[], size_t nv) {                                     \
        STATE(m);                                                                                                             \
        size_t k = 0;                                                                                                         \
        for (size_t i = 0; i < n; i++) for (int j = 0; j < SPAN(m, r[i]); j++, k++) m->field[r[i] - first + j] = v[k];                \
        return k == nv ? fmi3OK : fmi3Error;                                                                                  \
    }
ACCESS(Float64, double, real, 0) ACCESS(Float32, float, real, 0) ACCESS(Boolean, bool, boolean, 200)
ACCESS(Int8, signed char, integer, 100) ACCESS(UInt8, unsigned char, integer, 100) ACCESS(Int16, short, integer, 100) ACCESS(UInt16, unsigned short, integer, 100)
ACCESS(Int32, int, integer, 100) ACCESS(UInt32, unsigned, integer, 100) ACCESS(Int64, long long, integer, 100) ACCESS(UInt64, unsigned long long, integer, 100)

int fmi3GetFMUState(void *c, void **s) { if (!*s) *s = malloc(sizeof(Instance)); memcpy(*s, c, sizeof(Instance)); OK; }
int fmi3SetFMUState(void *c, void *s) { memcpy(c, s, sizeof(Instance)); OK; }
int fmi3FreeFMUState(void *c, void **s) { free(*s); *s = NULL; OK; }
int fmi3UpdateDiscreteStates(void *c, bool *again, bool *end, bool *nominals, bool *values, bool *timed, double *when) {
    STATE(m);
    *nominals = false;
    *values = *again = !m->handled;
    if (!m->handled) event(m);
    m->handled = 1;
    *end = m->terminate;
    *timed = isfinite(m->next_event);
    *when = m->next_event;
    OK;
}
int fmi3EvaluateDiscreteStates(void *c) { OK; }

/* co-simulation */
int fmi3EnterStepMode(void *c) { OK; }
int fmi3DoStep(void *c, double t, double h, bool final, bool *occurred, bool *end, bool *early, double *reached) {
    STATE(m);
    *occurred = *end = *early = false;
    m->slope_time = m->t;
#ifdef STEP
    int status = STEP(m, t + h, say);
    if (status) return status;
#endif
    while (advance(m, t + h)) {
        if (event_mode) {
            *occurred = true;
            *early = m->t < t + h;
            break;
        }
        event(m);
    }
    *end = m->terminate;
    *reached = m->t;
    OK;
}

/* model exchange */
int fmi3EnterContinuousTimeMode(void *c) { OK; }
int fmi3CompletedIntegratorStep(void *c, bool final, bool *enter, bool *end) { *enter = *end = false; OK; }
int fmi3SetTime(void *c, double t) { STATE(m); m->t = t; OK; }
int fmi3SetContinuousStates(void *c, const double x[], size_t n) { STATE(m); memcpy(m->real + X0, x, n * sizeof(double)); OK; }
int fmi3GetContinuousStates(void *c, double x[], size_t n) { STATE(m); memcpy(x, m->real + X0, n * sizeof(double)); OK; }
int fmi3GetNominalsOfContinuousStates(void *c, double x[], size_t n) { for (size_t i = 0; i < n; i++) x[i] = 1.0; OK; }
int fmi3GetContinuousStateDerivatives(void *c, double d[], size_t n) { STATE(m); if (UNDEFINED(m)) return fmi3Discard; equations(m); memcpy(d, m->real + D0, n * sizeof(double)); OK; }
int fmi3GetEventIndicators(void *c, double z[], size_t n) { STATE(m); indicators(m, z); OK; }
int fmi3GetNumberOfEventIndicators(void *c, size_t *n) { *n = NZ; OK; }
int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { *n = NX; OK; }

REFUSE(fmi3GetString) REFUSE(fmi3SetString) REFUSE(fmi3GetBinary) REFUSE(fmi3SetBinary) REFUSE(fmi3GetClock) REFUSE(fmi3SetClock)
REFUSE(fmi3GetNumberOfVariableDependencies) REFUSE(fmi3GetVariableDependencies) REFUSE(fmi3SerializedFMUStateSize)
REFUSE(fmi3SerializeFMUState) REFUSE(fmi3DeserializeFMUState) REFUSE(fmi3GetDirectionalDerivative) REFUSE(fmi3GetAdjointDerivative)
REFUSE(fmi3GetIntervalDecimal) REFUSE(fmi3GetIntervalFraction) REFUSE(fmi3GetShiftDecimal) REFUSE(fmi3GetShiftFraction)
REFUSE(fmi3SetIntervalDecimal) REFUSE(fmi3SetIntervalFraction) REFUSE(fmi3SetShiftDecimal) REFUSE(fmi3SetShiftFraction)
REFUSE(fmi3GetOutputDerivatives) REFUSE(fmi3ActivateModelPartition)
