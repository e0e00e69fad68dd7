// wait.cuh: waiting for a peer with a deadline, and what is left behind when it passes.
#ifndef AFJ_PRIM_WAIT_CUH
#define AFJ_PRIM_WAIT_CUH

#include "prim/machine.cuh"
#include "wire/args.h"
#include "wire/words.h"

template <class T> AFJ_DEVICE T *at(uint64_t address) { return (T *)address; }

// Whether a kernel of this buffer gave up before. Issued with a kernel's first loads; a kernel that
// finds it set stores, acks and re-arms nothing.
AFJ_DEVICE uint32_t load_dead(const afj_call &call)
{
    return load_relaxed(at<uint32_t>(call.dead));
}

// The buffer is dead from here on. The first to say so, by the word behind the flag, leaves the
// error record: its fields, then, behind a fence, `state`, on which the host reads them; then,
// behind another, the flag. So a kernel that ends for the flag never ends before the host can see
// why. The others wait for the flag, a second at most: the first has nothing to wait for.
AFJ_COLD void declare_dead(const afj_call &call, uint32_t phase, uint32_t exchange, uint32_t peer,
                           uint32_t token, uint64_t waited_ns)
{
    uint32_t *dead = at<uint32_t>(call.dead);
    if (compare_exchange_relaxed(dead + 1, 0, 1) != 0) {
        const uint64_t until = clock_ns() + 1000000000ull;
        while (load_relaxed(dead) == 0 && clock_ns() < until)
            pause_poll();
        return;
    }
    afj_error_record *record = at<afj_error_record>(call.record);
    store_host(&record->rank, call.rank);
    store_host(&record->phase, phase);
    store_host(&record->lane, call.lane);
    store_host(&record->exchange, exchange);
    store_host(&record->peer, peer);
    store_host(&record->token, token);
    store_host(&record->waited_ms, (uint32_t)(waited_ns / 1000000));
    fence_system();
    store_host(&record->state, 1);
    fence_system();
    store_relaxed(dead, 1);
}

constexpr uint64_t kOver = ~0ull;

// Look at the clock and at the dead flag. Returns when the wait began, or kOver.
AFJ_COLD uint64_t look(const afj_call &call, uint32_t phase, uint64_t exchange_at, uint64_t since,
                       uint32_t peer, uint32_t token)
{
    if (load_dead(call) != 0)
        return kOver;
    const uint64_t now = clock_ns();
    if (since == 0)
        return now;
    const uint32_t exchange = load_relaxed(at<uint32_t>(exchange_at));
    const uint32_t limit_ms = exchange == 0 ? call.startup_timeout_ms : call.timeout_ms;
    if (now - since < limit_ms * 1000000ull)
        return since;
    declare_dead(call, phase, exchange, peer, token, now - since);
    return kOver;
}

// One lane's patience in one kernel. `exchange_at` is the address of the exchange number.
struct Wait {
    const afj_call &call;
    const uint64_t exchange_at;
    uint64_t since;
    uint32_t polls;

    AFJ_DEVICE Wait(const afj_call &the_call, uint64_t the_exchange_at)
        : call(the_call), exchange_at(the_exchange_at), since(0), polls(0)
    {
    }

    AFJ_DEVICE bool over() const { return since == kOver; }

    // A word of rank `peer` was polled and is not there yet. True: stop waiting for it.
    AFJ_DEVICE bool give_up(uint32_t phase, uint32_t peer, uint32_t token)
    {
        if (over())
            return true;
        pause_poll();
        if (++polls % kPollsPerLook == 0)
            since = look(call, phase, exchange_at, since, peer, token);
        return over();
    }

    // Go on polling one word, of which `v` was seen last, until it is not empty; 0 after giving up.
    AFJ_DEVICE uint32_t word(uint32_t v, const uint32_t *p, uint32_t phase, uint32_t peer)
    {
        while (v == AFJ_EMPTY_WORD) {
            if (give_up(phase, peer, AFJ_NO_TOKEN))
                return 0;
            v = load_relaxed(p);
        }
        return v;
    }
};

#endif
