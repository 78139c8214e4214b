/* What goes wrong at the time real 1, by integer 0: 1 discard, 2 error, 3 fatal, 4 hangs, 5 crashes, 6 the output real 0 is
   not a number, 7 the initialisation fails, 8 pending, 9 an exit of the process */
#include <unistd.h>
#define NX 0
#define X0 0
#define D0 0
#define NZ 0
#define H 1.0
static void start(Instance *m) { m->real[1] = 0.5; }
static void equations(Instance *m) {}
static void indicators(Instance *m, double *z) {}
static void event(Instance *m) {}
static const char *initialisation(Instance *m) { return m->integer[0] == 7 ? "no solution of the initial equations" : NULL; }
static int fault(Instance *m, double end, void (*say)(Instance *, int, const char *)) {
    static const int statuses[] = {0, 2, 3, 4, 0, 0, 0, 0, 5, 0};
    m->real[0] = end;
    if (end < 0.3) say(m, 1, "nothing serious");
    if (end <= m->real[1]) return 0;
    if (m->integer[0] == 2) say(m, 3, "division by zero in 'torque'");
    if (m->integer[0] == 4) for (;;) pause();
    if (m->integer[0] == 5) *(volatile int *)8 = 1;
    if (m->integer[0] == 6) m->real[0] = NAN;
    if (m->integer[0] == 9) exit(3);
    return statuses[m->integer[0]];
}
#define INITIALISATION initialisation
#define STEP fault
