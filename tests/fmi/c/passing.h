/* Outputs that equal inputs, of every type: real 0 → 1, 2 → 3 (sampled in events); integers 0 → 1, …; boolean 0 → 1 */
#define NX 0
#define X0 0
#define D0 0
#define NZ 0
#define H 0.1
static void start(Instance *m) {}
static void equations(Instance *m) {
    m->real[1] = m->real[0];
    m->real[5] = m->real[4];
    for (int i = 0; i < 24; i += 2) m->integer[i + 1] = m->integer[i];
    m->boolean[1] = m->boolean[0];
}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) { m->real[3] = m->real[2]; }
