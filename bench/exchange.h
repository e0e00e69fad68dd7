/* exchange.h: the verb `afdep-bench exchange`. */
#ifndef AFJ_BENCH_EXCHANGE_H
#define AFJ_BENCH_EXCHANGE_H

/* argv[0] is the program, argv[1] the verb. Returns the exit code. */
int afj_bench_exchange(int argc, const char **argv);

#endif
