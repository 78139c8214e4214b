/* The functions of FMI 2.0 for a model. */
#include "fmi2FunctionTypes.h"
#include "instance.h"

#define STATE(m) Instance *m = c
#define OK return fmi2OK

static void say(Instance *m, int status, const char *text) {
    if (m->log) ((fmi2CallbackLogger)m->log)(m->environment, m->name, status, "test", "%s", text);
}

const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }
int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const *categories) { OK; }

void *fmi2Instantiate(const char *name, int kind, const char *guid, const char *resources, const fmi2CallbackFunctions *f, int visible, int on) {
    Instance *m = calloc(1, sizeof(Instance));
    strncpy(m->name, name, 63);
    m->log = (void *)f->logger;
    m->environment = f->componentEnvironment;
    if (strcmp(guid, GUID)) { say(m, fmi2Error, "wrong guid"); free(m); return NULL; }
    m->next_event = INFINITY;
    start(m);
    equations(m);
    return m;
}
void fmi2FreeInstance(void *c) { free(c); }
int fmi2SetupExperiment(void *c, int defined, double tolerance, double t, int ends, double end) { STATE(m); m->t = m->slope_time = t; OK; }
int fmi2EnterInitializationMode(void *c) { OK; }
int fmi2ExitInitializationMode(void *c) {
    STATE(m);
    equations(m);
#ifdef INITIALISATION
    const char *wrong = INITIALISATION(m);
    if (wrong) { say(m, fmi2Error, wrong); return fmi2Error; }
#endif
    OK;
}
int fmi2Terminate(void *c) { OK; }
int fmi2Reset(void *c) { STATE(m); start(m); OK; }

int fmi2GetReal(void *c, const unsigned r[], size_t n, double v[]) { STATE(m); equations(m); for (size_t i = 0; i < n; i++) v[i] = m->real[r[i]]; OK; }
int fmi2SetReal(void *c, const unsigned r[], size_t n, const double v[]) { STATE(m); for (size_t i = 0; i < n; i++) m->real[r[i]] = v[i], m->slope[r[i]] = 0.0; OK; }
int fmi2GetInteger(void *c, const unsigned r[], size_t n, int v[]) { STATE(m); equations(m); for (size_t i = 0; i < n; i++) v[i] = (int)m->integer[r[i]]; OK; }
int fmi2SetInteger(void *c, const unsigned r[], size_t n, const int v[]) { STATE(m); for (size_t i = 0; i < n; i++) m->integer[r[i]] = v[i]; OK; }
int fmi2GetBoolean(void *c, const unsigned r[], size_t n, int v[]) { STATE(m); equations(m); for (size_t i = 0; i < n; i++) v[i] = m->boolean[r[i]]; OK; }
int fmi2SetBoolean(void *c, const unsigned r[], size_t n, const int v[]) { STATE(m); for (size_t i = 0; i < n; i++) m->boolean[r[i]] = v[i]; OK; }
int fmi2GetString(void *c, const unsigned r[], size_t n, const char *v[]) { STATE(m); for (size_t i = 0; i < n; i++) v[i] = m->name; OK; }
int fmi2SetString(void *c, const unsigned r[], size_t n, const char *const v[]) { STATE(m); strncpy(m->name, v[0], 63); OK; }

int fmi2GetFMUstate(void *c, void **s) { if (!*s) *s = malloc(sizeof(Instance)); memcpy(*s, c, sizeof(Instance)); OK; }
int fmi2SetFMUstate(void *c, void *s) { memcpy(c, s, sizeof(Instance)); OK; }
int fmi2FreeFMUstate(void *c, void **s) { free(*s); *s = NULL; OK; }
int fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) { return fmi2Error; }
int fmi2SerializeFMUstate(void *c, void *s, char b[], size_t n) { return fmi2Error; }
int fmi2DeSerializeFMUstate(void *c, const char b[], size_t n, void **s) { return fmi2Error; }
int fmi2GetDirectionalDerivative(void *c, const unsigned u[], size_t nu, const unsigned k[], size_t nk, const double dk[], double du[]) { return fmi2Error; }

/* co-simulation */
int fmi2SetRealInputDerivatives(void *c, const unsigned r[], size_t n, const int order[], const double v[]) {
    STATE(m);
    m->slope_time = m->t;
    for (size_t i = 0; i < n; i++) {
        if (order[i] != 1) return fmi2Error;
        m->slope[r[i]] = v[i];
    }
    OK;
}
int fmi2GetRealOutputDerivatives(void *c, const unsigned r[], size_t n, const int order[], double v[]) { return fmi2Error; }
int fmi2DoStep(void *c, double t, double h, int final) {
    STATE(m);
    m->slope_time = m->t;
#ifdef STEP
    int status = STEP(m, t + h, say);
    if (status) return status;
#endif
    while (advance(m, t + h)) event(m);
    return m->terminate ? fmi2Discard : fmi2OK;
}
int fmi2CancelStep(void *c) { return fmi2Error; }
int fmi2GetStatus(void *c, int kind, int *v) { return fmi2Discard; }
int fmi2GetRealStatus(void *c, int kind, double *v) { STATE(m); *v = m->t; OK; }
int fmi2GetIntegerStatus(void *c, int kind, int *v) { return fmi2Discard; }
int fmi2GetBooleanStatus(void *c, int kind, int *v) {
    STATE(m);
    if (kind != fmi2Terminated) return fmi2Discard;
    *v = m->terminate;
    OK;
}
int fmi2GetStringStatus(void *c, int kind, const char **v) { return fmi2Discard; }

/* model exchange */
int fmi2EnterEventMode(void *c) { STATE(m); m->handled = 0; OK; }
int fmi2NewDiscreteStates(void *c, fmi2EventInfo *info) {
    STATE(m);
    memset(info, 0, sizeof(*info));
    if (!m->handled) event(m), info->valuesOfContinuousStatesChanged = 1;
    info->newDiscreteStatesNeeded = !m->handled;
    m->handled = 1;
    info->terminateSimulation = m->terminate;
    info->nextEventTimeDefined = isfinite(m->next_event);
    info->nextEventTime = m->next_event;
    OK;
}
int fmi2EnterContinuousTimeMode(void *c) { OK; }
int fmi2CompletedIntegratorStep(void *c, int final, int *enter, int *end) { *enter = *end = 0; OK; }
int fmi2SetTime(void *c, double t) { STATE(m); m->t = t; OK; }
int fmi2SetContinuousStates(void *c, const double x[], size_t n) { STATE(m); memcpy(m->real + X0, x, n * sizeof(double)); OK; }
int fmi2GetContinuousStates(void *c, double x[], size_t n) { STATE(m); memcpy(x, m->real + X0, n * sizeof(double)); OK; }
int fmi2GetNominalsOfContinuousStates(void *c, double x[], size_t n) { for (size_t i = 0; i < n; i++) x[i] = 1.0; OK; }
int fmi2GetDerivatives(void *c, double d[], size_t n) { STATE(m); if (UNDEFINED(m)) return fmi2Discard; equations(m); memcpy(d, m->real + D0, n * sizeof(double)); OK; }
int fmi2GetEventIndicators(void *c, double z[], size_t n) { STATE(m); indicators(m, z); OK; }
