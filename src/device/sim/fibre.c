/* fibre.c: stacks and the switch between them, with the notes that sanitizers need.
 *
 * swapcontext makes two system calls, which is most of what a simulated step costs, so x86-64 has a
 * switch of its own: what the calling convention says a call keeps, and nothing else. */
#include "device/sim/fibre.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

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

#if defined(__x86_64__)
/* A suspended place: its stack pointer, below which lie the registers. */
struct place {
    void *stack_pointer;
};

/* void afj_fibre_switch(struct place *from, const struct place *to): keep the registers that a
 * callee keeps, and both floating-point modes, on the present stack; go on where `to` stands.
 * afj_fibre_enter is where a new fibre stands: it calls %r13 with %r12. */
__asm__(".text\n"
        ".globl afj_fibre_switch\n"
        ".hidden afj_fibre_switch\n"
        ".type afj_fibre_switch, @function\n"
        "afj_fibre_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size afj_fibre_switch, . - afj_fibre_switch\n"
        ".globl afj_fibre_enter\n"
        ".hidden afj_fibre_enter\n"
        ".type afj_fibre_enter, @function\n"
        "afj_fibre_enter:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    movq %r12, %rdi\n"
        "    callq *%r13\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size afj_fibre_enter, . - afj_fibre_enter\n");

void afj_fibre_switch(struct place *from, const struct place *to);
void afj_fibre_enter(void);

static void switch_place(struct place *from, struct place *to) { afj_fibre_switch(from, to); }
#else
struct place {
    ucontext_t registers;
};

static void switch_place(struct place *from, struct place *to)
{
    swapcontext(&from->registers, &to->registers);
}
#endif

struct afj_fibre {
    struct afj_fibre *next; /* in the pool */
    char *mapping;          /* one guard page, then the stack */
    size_t mapping_bytes;
    char *stack; /* lowest usable byte; STACK_BYTES of them */
    void (*body)(void *);
    void *argument;
    bool ended;
    struct place inside, outside; /* where the fibre stands, where its resumer stands */
    /* For the sanitizers: the resumer's stack and what they keep for either side. */
    const void *outside_stack;
    size_t outside_bytes;
    void *inside_note, *outside_note;
};

/* What a new fibre runs. */
static void run_body(struct afj_fibre *fibre)
{
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

#if defined(__x86_64__)
/* Let the fibre stand at the beginning of afj_fibre_enter, as afj_fibre_switch would leave it. */
static void prepare(struct afj_fibre *fibre)
{
    struct {
        uint32_t mxcsr, x87; /* the modes that every thread starts with */
        uint64_t r15, r14;
        void (*r13)(struct afj_fibre *);
        struct afj_fibre *r12;
        uint64_t rbx, rbp; /* zero: the outermost frame */
        void (*enter)(void);
        uint64_t above[2]; /* the call in afj_fibre_enter finds its stack aligned to 16 */
    } frame = {
        .mxcsr = 0x1F80, .x87 = 0x037F, .r13 = run_body, .r12 = fibre, .enter = afj_fibre_enter};
    char *top = fibre->stack + STACK_BYTES - sizeof frame;
    memcpy(top, &frame, sizeof frame);
    fibre->inside.stack_pointer = top;
}
#else
/* makecontext passes ints, so the pointer comes in two halves. */
static void run_halves(unsigned low, unsigned high)
{
    run_body((struct afj_fibre *)(((uintptr_t)high << 16 << 16) | (uintptr_t)low));
}

/* Let the fibre stand at the beginning of run_halves on its own stack. */
static void prepare(struct afj_fibre *fibre)
{
    ucontext_t *registers = &fibre->inside.registers;
    uintptr_t bits = (uintptr_t)fibre;
    getcontext(registers);
    registers->uc_stack.ss_sp = fibre->stack;
    registers->uc_stack.ss_size = STACK_BYTES;
    registers->uc_link = NULL;
    makecontext(registers, (void (*)(void))run_halves, 2, (unsigned)(bits & 0xFFFFFFFFu),
                (unsigned)(bits >> 16 >> 16));
}
#endif

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
    switch_place(&fibre->outside, &fibre->inside);
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
    switch_place(&fibre->inside, &fibre->outside);
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
