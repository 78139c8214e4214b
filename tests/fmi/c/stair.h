/* A counter that goes up at every full second, and ends the simulation after the value of integer 1. integer 0: counter */
#define NX 0
#define X0 0
#define D0 0
#define NZ 0
#define H 0.2
static void start(Instance *m) { m->integer[0] = 1; m->integer[1] = 9; m->next_event = 1.0; }
static void equations(Instance *m) {}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {
    if (m->t < m->next_event - 1e-9) return;
    m->integer[0] += 1;
    m->next_event = m->integer[0];
    m->terminate = m->integer[0] > m->integer[1];
}
