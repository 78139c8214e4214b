/* The ticks of a rig against a recording of them: `main RECORDING.csv`, as `cosim export recording` writes it. The result is 1 if
 * a signal differs by more than TOLERANCE. */

#include "arm_sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-10
#define LONGEST (32 * (ARM_SIM_SIGNALS + 1)) /* characters of a line of numbers */

static double memory[ARM_SIM_MEMORY];
static double signals[ARM_SIM_SIGNALS];

/* The numbers of a line, after that of the time; 0 where they are fewer than there are signals. */
static int numbers(const char *line, double *found)
{
    line = strchr(line, ',');
    for (int k = 0; k < ARM_SIM_SIGNALS; k++) {
        char *end;
        if (line == NULL || *line != ',')
            return 0;
        found[k] = strtod(line + 1, &end);
        line = end;
    }
    return 1;
}

int main(int count, char **words)
{
    static char line[LONGEST > 65536 ? LONGEST : 65536];
    static double recorded[ARM_SIM_SIGNALS];
    FILE *file = count == 2 ? fopen(words[1], "r") : NULL;
    long ticks = 0;
    double largest = 0.0;

    if (file == NULL || fgets(line, sizeof line, file) == NULL) { /* the names */
        fprintf(stderr, "give a recording: main RECORDING.csv\n");
        return 2;
    }
    arm_sim_reset(memory);
    while (fgets(line, sizeof line, file) != NULL) {
        if (!numbers(line, recorded)) {
            fprintf(stderr, "%s: the line of tick %ld is not that of this rig\n", words[1], ticks);
            return 2;
        }
        arm_sim_ticks(memory, ticks++, 1);
        arm_sim_signals(memory, signals);
        for (int k = 0; k < ARM_SIM_SIGNALS; k++)
            largest = fmax(largest, fabs(signals[k] - recorded[k]));
    }
    fclose(file);
    printf("compared %ld ticks of %d signals, largest difference %g\n", ticks, ARM_SIM_SIGNALS, largest);
    return largest > TOLERANCE;
}
