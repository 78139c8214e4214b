// The functions of Arduino that the sketch of the documentation uses, on Linux: the serial port is standard input and
// output, and behind the pins are a motor with a quadrature encoder and an H-bridge. SIGUSR1: its fault pin changes.
#pragma once
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOW, HIGH, INPUT_PULLUP, OUTPUT, CHANGE };
template <class X, class A, class B> X constrain(X x, A low, B high) { return x < low ? low : x > high ? high : x; }
inline int digitalPinToInterrupt(int pin) { return pin; }
inline void pinMode(int, int) {}
inline void noInterrupts() {}
inline void interrupts() {}

namespace motor {
const double INERTIA = 1e-3, FRICTION = 2e-3, FULL = 0.5, COUNTS = 4096 / 6.283185307179586, STEP_US = 100, LONGEST_US = 1000;
double position = 0.4, velocity = 0, torque = 0, board_us = 0, done_us = 0;
bool reversed = false, a = false, b = false;
volatile sig_atomic_t faulty = 0;
void (*on_a)() = nullptr, (*on_b)() = nullptr;

inline double us() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

// The levels of a quadrature encoder at a count: b follows a by a quarter of a period when it turns forward.
inline void count(long n) {
  bool new_a = (n & 3) == 1 || (n & 3) == 2, new_b = (n & 3) >= 2;
  bool changed_a = new_a != a, changed_b = new_b != b;
  a = new_a, b = new_b;
  if (changed_a && on_a) on_a();
  if (changed_b && on_b) on_b();
}

// While this process waits for a processor, time stands still for the board too: it does not step its loops then.
inline void advance() {
  static long counted = 0;
  static double before = us();
  double now = us();
  board_us += fmin(now - before, LONGEST_US), before = now;
  for (; done_us < board_us; done_us += STEP_US) {
    velocity += STEP_US * 1e-6 * (torque - FRICTION * velocity) / INERTIA;
    position += STEP_US * 1e-6 * velocity;
    for (long n = lround(position * COUNTS); counted != n;) count(counted += counted < n ? 1 : -1);
  }
}
}  // namespace motor

inline unsigned long millis() { return (unsigned long)(motor::board_us / 1000); }
inline int digitalRead(int pin) { return pin == 2 ? motor::a : pin == 3 ? motor::b : !motor::faulty; }
inline void digitalWrite(int, bool level) { motor::reversed = level; }
inline void analogWrite(int, int duty) { motor::torque = motor::FULL * duty / 255 * (motor::reversed ? -1 : 1); }
inline void attachInterrupt(int pin, void (*handler)(), int) { (pin == 2 ? motor::on_a : motor::on_b) = handler; }
inline char *dtostrf(double value, int width, int digits, char *text) {
  sprintf(text, "%*.*f", width, digits, value);
  return text;
}

struct {
  void begin(long) {}
  void print(const char *text) { (void)!write(1, text, strlen(text)); }
  int available() {
    pollfd in = {0, POLLIN, 0};
    if (poll(&in, 1, 0) < 1 || in.revents & POLLIN) return in.revents & POLLIN;
    exit(0);
  }
  int read() {
    unsigned char c = 0;
    if (::read(0, &c, 1) != 1) exit(0);
    return c;
  }
} Serial;

void setup();
void loop();
int main() {
  signal(SIGUSR1, [](int) { motor::faulty = !motor::faulty; });
  setup();
  for (;; usleep(100)) {
    motor::advance();
    loop();
  }
}
