/* What the models of the tests share: an instance with its variables by value reference, and its integration. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double t, next_event, slope_time;
    double real[48], slope[48];
    long long integer[24];
    int boolean[4], terminate, handled;
    void *log, *environment;
    char name[64];
} Instance;

/* of a model: its start values, its derivatives and outputs, its event indicators, and what an event does */
static void start(Instance *m);
static void equations(Instance *m);
static void indicators(Instance *m, double *z);
static void event(Instance *m);

#include MODEL

#ifndef UNDEFINED
#define UNDEFINED(m) 0  /* where a model has no derivatives */
#endif

static void shift(Instance *m, const double *x, const double *d, double h) {
    for (int i = 0; i < NX; i++) m->real[X0 + i] = x[i] + h * d[i];
}

static void inputs_at(Instance *m, double t) {
    for (int i = 0; i < 48; i++) m->real[i] += m->slope[i] * (t - m->slope_time);
    m->slope_time = m->t = t;
}

/* a step of the classical Runge-Kutta method */
static void integrate(Instance *m, double h) {
    double x[NX + 1], k[4][NX + 1], t = m->t;
    memcpy(x, m->real + X0, NX * sizeof(double));
    for (int stage = 0; stage < 4; stage++) {
        double c = stage == 0 ? 0.0 : stage == 3 ? h : 0.5 * h;
        if (stage) shift(m, x, k[stage - 1], c);
        inputs_at(m, t + c);
        equations(m);
        memcpy(k[stage], m->real + D0, NX * sizeof(double));
    }
    for (int i = 0; i < NX; i++) m->real[X0 + i] = x[i] + h / 6.0 * (k[0][i] + 2.0 * (k[1][i] + k[2][i]) + k[3][i]);
    equations(m);
}

/* To `end` in steps of at most H; returns 1 at an event. */
static int advance(Instance *m, double end) {
    double before[NZ + 1], after[NZ + 1];
    while (end - m->t > 1e-9 * H) {
        double h = fmin(H, fmin(end, m->next_event) - m->t);
        equations(m);
        indicators(m, before);
        if (h > 0.0) integrate(m, h);
        indicators(m, after);
        int crossed = m->t >= m->next_event - 1e-9 * H;
        for (int i = 0; i < NZ; i++) crossed |= (before[i] > 0.0) != (after[i] > 0.0);
        if (crossed) return 1;
    }
    m->t = end;
    return 0;
}
