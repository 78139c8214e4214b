/* A rig or a part as a unit of co-simulation: what its generated data give, and what the interfaces of FMI call. */

#ifndef UNIT_H
#define UNIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* the values of fmi2Status and fmi3Status */
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef enum { INSTANTIATED, INITIALIZING, STEPPING, TERMINATED, FAILED } Phase;

/* --- generated data; places are indices in the memory --- */

typedef enum { TIME, SIGNAL, MEMORY } Kind;
/* place: of the first element among the signals, or in the memory; only values in the memory can be set, from least to
   greatest */
typedef struct {
    Kind kind;
    size_t place, size;
    double least, greatest;
} Variable;

extern const char *const unit_token;
extern const double unit_initial[];
extern const Variable unit_variables[];
extern const size_t unit_memory_size, unit_row_size, unit_signal_count, unit_variable_count;
/* what goes on by itself until it is set again: values, first and second derivatives (3, unit_moving_count) */
extern const size_t unit_moving_place, unit_moving_count;
extern const int unit_follows; /* whether the importer may give derivatives of inputs */

/* --- an instance --- */

typedef struct Unit Unit;
enum { TEXT_SIZE = 512 }; /* of a message, with its end */
/* Hands a message to the importer. */
typedef void Report(const Unit *unit, Status status, const char *text);

struct Unit {
    Report *report;
    void (*logger)(void); /* of the importer, as the interface declares it */
    void *environment;
    char *name;
    Phase phase;
    int64_t number;       /* of the next tick */
    double start;         /* s, the importer's time of tick 0 */
    double *now, *next;   /* memory before and after the next step */
    double *row, *signals;
    int computed, observed, faulty; /* whether next is of now, signals are up to date, next has a fault */
};

/* Null, after a report, where this processor or the token does not fit. */
Unit *unit_new(Report *report, void (*logger)(void), void *environment, const char *name, const char *token);
void unit_free(Unit *unit);
void unit_reset(Unit *unit);

/* ERROR, after a report, if the function is not allowed now; phases: bits of 1 << Phase. */
Status unit_allows(Unit *unit, unsigned phases, const char *function);
Status unit_unsupported(Unit *unit, const char *function);
/* Reports a message, as of printf; returns the status. */
Status unit_complain(const Unit *unit, Status status, const char *format, ...);

Status unit_get(Unit *unit, const uint32_t *references, size_t count, double *values);
Status unit_set(Unit *unit, const uint32_t *references, size_t count, const double *values);
/* The nth time derivatives of inputs, of orders 1 and 2, at the present time. */
Status unit_set_derivatives(Unit *unit, const uint32_t *references, const int *orders, size_t count,
                            const double *values);
/* Let what goes on by itself go on for h [s]. */
void unit_move(double *memory, double h);
/* Make the next memory the present one. */
void unit_swap(Unit *unit);

/* --- of a rig, or of a part --- */

double unit_time(const Unit *unit);
void unit_begin_at(Unit *unit, double start);
void unit_initialise(Unit *unit); /* at the end of the initialization */
void unit_observe(Unit *unit);    /* bring the signals up to date */
Status unit_advance(Unit *unit, double time, double step);

/* --- states of an instance, as bytes --- */

size_t unit_state_size(void);
Status unit_write_state(Unit *unit, uint8_t *bytes, size_t size);
Status unit_read_state(Unit *unit, const uint8_t *bytes, size_t size);

#endif
