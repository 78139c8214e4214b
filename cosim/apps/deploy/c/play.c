/* Runs the ticks of rigs on another machine: `play IN OUT`, RIGS being a list of X(name, memory, signals).
 *
 * IN, of each rig: its number of ticks, its number of changes, then (tick, place, value) of each in the order of ticks.
 * OUT, of each rig: the number of ticks that follow, then their signals. All numbers have 64 bits. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define X(name, memory, signals)                                   \
    void name##_reset(double *);                                   \
    int32_t name##_ticks(double *, int64_t, int32_t);              \
    void name##_signals(const double *, double *);
RIGS
#undef X

struct rig {
    void (*reset)(double *);
    int32_t (*ticks)(double *, int64_t, int32_t);
    void (*signals)(const double *, double *);
    size_t memory, count;
};

struct change {
    int64_t tick, place;
    double value;
};

#define X(name, memory, signals) {name##_reset, name##_ticks, name##_signals, memory, signals},
static const struct rig rigs[] = {RIGS};
#undef X

static void failed(const char *what)
{
    perror(what);
    exit(2);
}

static void get(void *to, size_t size, size_t count, FILE *file)
{
    if (fread(to, size, count, file) != count)
        failed("the input ends too early");
}

static void put(const void *from, size_t size, size_t count, FILE *file)
{
    if (fwrite(from, size, count, file) != count)
        failed("the output cannot be written");
}

static void play(const struct rig *rig, FILE *in, FILE *out)
{
    int64_t sizes[2], done = 0, next = 0;
    get(sizes, sizeof *sizes, 2, in);
    struct change *changes = calloc((size_t)sizes[1] + 1, sizeof *changes);
    double *memory = calloc(rig->memory, sizeof *memory);
    double *signals = calloc(rig->count * (size_t)sizes[0], sizeof *signals);
    if (!changes || !memory || !signals)
        failed("there is no memory");
    get(changes, sizeof *changes, (size_t)sizes[1], in);
    rig->reset(memory);
    for (int complete = 1; complete && done < sizes[0]; done++) {
        for (; next < sizes[1] && changes[next].tick <= done; next++)
            memory[changes[next].place] = changes[next].value;
        complete = rig->ticks(memory, done, 1) == 1;
        rig->signals(memory, signals + (size_t)done * rig->count);
    }
    put(&done, sizeof done, 1, out);
    put(signals, sizeof *signals, (size_t)done * rig->count, out);
    free(changes);
    free(memory);
    free(signals);
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    FILE *in = fopen(words[1], "rb"), *out = fopen(words[2], "wb");
    if (!in || !out)
        failed("a file cannot be opened");
    for (size_t k = 0; k < sizeof rigs / sizeof *rigs; k++)
        play(rigs + k, in, out);
    return fclose(out) ? 2 : 0;
}
