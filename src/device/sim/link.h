/* link.h: words on their way to another device, and what fences say about their order.
 *
 * Each word travels alone on the link of its (from, to) pair and may overtake any other, unless a
 * fence stands between them. The words that a warp stores between two fences form a segment. A
 * fence opens a new segment that waits for earlier ones; words of a segment that waits are held
 * back until the last word of those it waits for has arrived. */
#ifndef AFJ_SIM_LINK_H
#define AFJ_SIM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/sim/memory.h"
#include "device/sim/random.h"

#define AFJ_SIM_DEVICES 128u

/* Words of one warp between two fences; or a join, which has no words and stands for the segments
 * that it waits for. NULL is a segment that has arrived. */
struct afj_segment;

/* One word on its way. */
struct afj_flying_word {
    struct afj_allocation *to;
    struct afj_segment *segment;
    size_t index; /* of the word in `to` */
    uint32_t value;
    uint32_t from; /* ordinal */
};

/* Words of one (from, to) pair that may arrive now. */
struct afj_link {
    struct afj_flying_word *words;
    size_t count, capacity;
    size_t busy_at; /* place in afj_links.busy while count > 0 */
};

/* All links. Zero is empty. */
struct afj_links {
    struct afj_link *from[AFJ_SIM_DEVICES]; /* [AFJ_SIM_DEVICES] each, made when first used */
    uint32_t *busy; /* from x AFJ_SIM_DEVICES + to of the links that have words */
    size_t busy_count, busy_capacity;
    struct afj_segment *first; /* every segment there is */
    size_t flying;             /* words, held ones included */
    bool failed;               /* an allocation failed and a word or an order was lost */
};

/* Store a word. *segment is the storing warp's present one, NULL before its first. */
void afj_link_store(struct afj_links *links, struct afj_segment **segment,
                    const struct afj_flying_word *word);

/* Whether any word may arrive now. While words fly, one always may. */
bool afj_link_ready(const struct afj_links *links);

/* A random link that has words; afj_link_ready must hold. */
uint32_t afj_link_choose(const struct afj_links *links, struct afj_random *random);

/* Words on the link that may arrive now. */
size_t afj_link_count(const struct afj_links *links, uint32_t link);

/* Take a random word off the link. What waited for it is let go, so the caller writes it before it
 * takes another, and then calls afj_allocation_arrive. */
struct afj_flying_word afj_link_take(struct afj_links *links, uint32_t link,
                                     struct afj_random *random);

/* Drop all words and segments; pointers to segments are void afterwards. */
void afj_link_clear(struct afj_links *links);

/* A fence of the warp whose present segment is *segment: later words wait for the earlier words of
 * the warp and for the joins `cta` and `stream`. */
void afj_segment_fence(struct afj_links *links, struct afj_segment **segment,
                       struct afj_segment *cta, struct afj_segment *stream);

/* End the warp's present segment and add it to *join, so that fences of others can wait for it.
 * Later words of the warp wait for what its earlier ones waited for, not for these. */
void afj_segment_publish(struct afj_links *links, struct afj_segment **segment,
                         struct afj_segment **join);

/* The warp, or the CTA whose join it is, has ended: as publish, and it has none any more. */
void afj_segment_end(struct afj_links *links, struct afj_segment **segment,
                     struct afj_segment **join);

/* Put the join *later behind *earlier: *earlier becomes a join of both, *later becomes NULL. A
 * fence may name a join only after this call. */
void afj_segment_merge(struct afj_links *links, struct afj_segment **earlier,
                       struct afj_segment **later);

/* Whether everything behind the join has arrived; if so it is let go and becomes NULL. */
bool afj_segment_arrived(struct afj_links *links, struct afj_segment **join);

/* Stop holding a segment or join; its words travel on. */
void afj_segment_forget(struct afj_links *links, struct afj_segment **segment);

#endif
