/* fibre.c: fibres over ucontext, with the notes that the address and thread sanitizers need. */
#include "device/sim/fibre.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AFJ_FIBRE_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define AFJ_FIBRE_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(AFJ_FIBRE_ASAN)
#define AFJ_FIBRE_ASAN
#endif
#if defined(__SANITIZE_THREAD__) && !defined(AFJ_FIBRE_TSAN)
#define AFJ_FIBRE_TSAN
#endif

#if defined(AFJ_FIBRE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(AFJ_FIBRE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

/* Frames are several times larger under a sanitizer. */
#if defined(AFJ_FIBRE_ASAN) || defined(AFJ_FIBRE_TSAN)
#define STACK_BYTES ((size_t)512 << 10)
#else
#define STACK_BYTES ((size_t)128 << 10)
#endif

struct afj_fibre {
    struct afj_fibre *next; /* in the pool */
    char *mapping;          /* one guard page, then the stack */
    size_t mapping_bytes;
    char *stack; /* lowest usable byte; STACK_BYTES of them */
    void (*body)(void *);
    void *argument;
    bool ended;
    ucontext_t inside, outside; /* where the fibre stands, where its resumer stands */
    /* For the sanitizers: the resumer's stack and what they keep for either side. */
    const void *outside_stack;
    size_t outside_bytes;
    void *inside_note, *outside_note;
};

/* What a new fibre runs. makecontext passes ints, so the pointer comes in two halves. */
static void run_body(unsigned low, unsigned high)
{
    struct afj_fibre *fibre = (struct afj_fibre *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low);
#if defined(AFJ_FIBRE_ASAN)
    __sanitizer_finish_switch_fiber(NULL, &fibre->outside_stack, &fibre->outside_bytes);
#endif
    fibre->body(fibre->argument);
    fibre->ended = true;
    afj_fibre_yield(fibre);
    abort(); /* a fibre that ended is never resumed */
}

static struct afj_fibre *make_fibre(void)
{
    struct afj_fibre *fibre = calloc(1, sizeof *fibre);
    if (fibre == NULL)
        return NULL;
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    fibre->mapping_bytes = guard + STACK_BYTES;
    void *mapping = mmap(NULL, fibre->mapping_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) {
        free(fibre);
        return NULL;
    }
    if (mprotect(mapping, guard, PROT_NONE) != 0) {
        munmap(mapping, fibre->mapping_bytes);
        free(fibre);
        return NULL;
    }
    fibre->mapping = mapping;
    fibre->stack = fibre->mapping + guard;
    return fibre;
}

/* Set the fibre's registers to the beginning of run_body on its own stack. */
static void prepare(struct afj_fibre *fibre)
{
    getcontext(&fibre->inside);
    fibre->inside.uc_stack.ss_sp = fibre->stack;
    fibre->inside.uc_stack.ss_size = STACK_BYTES;
    fibre->inside.uc_link = NULL;
    uintptr_t bits = (uintptr_t)fibre;
    makecontext(&fibre->inside, (void (*)(void))run_body, 2, (unsigned)(bits & 0xFFFFFFFFu),
                (unsigned)(bits >> 16 >> 16));
}

struct afj_fibre *afj_fibre_start(struct afj_fibre_pool *pool, void (*body)(void *), void *argument)
{
    struct afj_fibre *fibre = pool->idle;
    if (fibre != NULL)
        pool->idle = fibre->next;
    else if ((fibre = make_fibre()) == NULL)
        return NULL;
    fibre->next = NULL;
    fibre->body = body;
    fibre->argument = argument;
    fibre->ended = false;
#if defined(AFJ_FIBRE_ASAN)
    /* A body that was forgotten half-way leaves its frames' red zones behind. */
    __asan_unpoison_memory_region(fibre->stack, STACK_BYTES);
#endif
#if defined(AFJ_FIBRE_TSAN)
    fibre->inside_note = __tsan_create_fiber(0);
#endif
    prepare(fibre);
    return fibre;
}

void afj_fibre_resume(struct afj_fibre *fibre)
{
#if defined(AFJ_FIBRE_ASAN)
    __sanitizer_start_switch_fiber(&fibre->outside_note, fibre->stack, STACK_BYTES);
#endif
#if defined(AFJ_FIBRE_TSAN)
    fibre->outside_note = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fibre->inside_note, 0);
#endif
    swapcontext(&fibre->outside, &fibre->inside);
#if defined(AFJ_FIBRE_ASAN)
    __sanitizer_finish_switch_fiber(fibre->outside_note, NULL, NULL);
#endif
}

void afj_fibre_yield(struct afj_fibre *fibre)
{
#if defined(AFJ_FIBRE_ASAN)
    __sanitizer_start_switch_fiber(fibre->ended ? NULL : &fibre->inside_note, fibre->outside_stack,
                                   fibre->outside_bytes);
#endif
#if defined(AFJ_FIBRE_TSAN)
    __tsan_switch_to_fiber(fibre->outside_note, 0);
#endif
    swapcontext(&fibre->inside, &fibre->outside);
#if defined(AFJ_FIBRE_ASAN)
    __sanitizer_finish_switch_fiber(fibre->inside_note, &fibre->outside_stack,
                                    &fibre->outside_bytes);
#endif
}

bool afj_fibre_ended(const struct afj_fibre *fibre) { return fibre->ended; }

void afj_fibre_release(struct afj_fibre_pool *pool, struct afj_fibre *fibre)
{
#if defined(AFJ_FIBRE_TSAN)
    __tsan_destroy_fiber(fibre->inside_note);
#endif
    fibre->next = pool->idle;
    pool->idle = fibre;
}

void afj_fibre_pool_finish(struct afj_fibre_pool *pool)
{
    while (pool->idle != NULL) {
        struct afj_fibre *fibre = pool->idle;
        pool->idle = fibre->next;
        munmap(fibre->mapping, fibre->mapping_bytes);
        free(fibre);
    }
}
