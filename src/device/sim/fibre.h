/* fibre.h: functions that can stop in the middle: each runs on a stack of its own, from a pool. */
#ifndef AFJ_SIM_FIBRE_H
#define AFJ_SIM_FIBRE_H

#include <stdbool.h>
#include <stdint.h>

struct afj_fibre;

/* Stacks that are not in use. Zero is an empty pool; not thread-safe. */
struct afj_fibre_pool {
    struct afj_fibre *idle;
};

/* Make a fibre that will call body(argument) when it is first resumed. NULL: no memory left. */
struct afj_fibre *afj_fibre_start(struct afj_fibre_pool *pool, void (*body)(void *),
                                  void *argument);

/* Run the fibre on the calling thread until it yields or its body returns. Successive calls may
 * come from different threads, one at a time. */
void afj_fibre_resume(struct afj_fibre *fibre);

/* Go back to whoever resumed the fibre. Called on the fibre's own stack only. */
void afj_fibre_yield(struct afj_fibre *fibre);

/* Whether the body has returned; then it must not be resumed. */
bool afj_fibre_ended(const struct afj_fibre *fibre);

/* Give the stack back to the pool, also in the middle of the body: what lies on it is forgotten. */
void afj_fibre_release(struct afj_fibre_pool *pool, struct afj_fibre *fibre);

/* Unmap the idle stacks. */
void afj_fibre_pool_finish(struct afj_fibre_pool *pool);

#endif
