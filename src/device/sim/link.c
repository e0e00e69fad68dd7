/* link.c: segments as a graph of waits, links as bags that a random word is taken from. */
#include "device/sim/link.h"

#include <stdlib.h>
#include <string.h>

/* Pointers to segments; not owned. */
struct segment_list {
    struct afj_segment **items;
    size_t count, capacity;
};

/* A segment has arrived when it is sealed, waits for nothing and has no word under way. It is
 * freed when it has arrived and nobody holds it. */
struct afj_segment {
    struct afj_segment *next, *previous; /* in afj_links.first */
    uint32_t holders;                    /* a warp, a grid, a CTA or a stream */
    bool sealed;                         /* its warp stores no more into it */
    bool arrived;
    size_t words;                 /* under way, held ones included */
    struct segment_list waits;    /* segments that must arrive first; none of them has */
    struct segment_list waiters;  /* segments that have this one in `waits` */
    struct afj_flying_word *held; /* words stored while `waits` is not empty */
    size_t held_count, held_capacity;
};

/* Make room for one more element of `size` bytes. False: no memory left, nothing changed. */
static bool grow(void **items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
    void *grown = realloc(*items, wanted * size);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

static bool append(struct segment_list *list, struct afj_segment *segment)
{
    void *items = list->items;
    if (!grow(&items, list->count, &list->capacity, sizeof(struct afj_segment *)))
        return false;
    list->items = items;
    list->items[list->count++] = segment;
    return true;
}

static struct afj_segment *open_segment(struct afj_links *links)
{
    struct afj_segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL) {
        links->failed = true;
        return NULL;
    }
    segment->holders = 1;
    segment->next = links->first;
    if (segment->next != NULL)
        segment->next->previous = segment;
    links->first = segment;
    return segment;
}

static void free_segment(struct afj_segment *segment)
{
    free(segment->waits.items);
    free(segment->waiters.items);
    free(segment->held);
    free(segment);
}

static void drop_if_unused(struct afj_links *links, struct afj_segment *segment)
{
    if (!segment->arrived || segment->holders > 0)
        return;
    if (segment->previous != NULL)
        segment->previous->next = segment->next;
    else
        links->first = segment->next;
    if (segment->next != NULL)
        segment->next->previous = segment->previous;
    free_segment(segment);
}

static void let_go(struct afj_links *links, struct afj_segment *segment)
{
    segment->holders--;
    drop_if_unused(links, segment);
}

static void put_on_link(struct afj_links *links, const struct afj_flying_word *word);

/* `segment` has nothing to wait for any more: its held words may travel. */
static void release_held(struct afj_links *links, struct afj_segment *segment)
{
    for (size_t i = 0; i < segment->held_count; i++)
        put_on_link(links, &segment->held[i]);
    free(segment->held);
    segment->held = NULL;
    segment->held_count = segment->held_capacity = 0;
}

/* Notice that a segment has arrived, and then those that waited for nothing else. The depth is at
 * most the number of kernels and fences without a word of their own in a row. */
static void check_arrival(struct afj_links *links, struct afj_segment *segment)
{
    if (segment->arrived || !segment->sealed || segment->words > 0 || segment->waits.count > 0)
        return;
    segment->arrived = true;
    segment->holders++; /* stays while its waiters are told */
    for (size_t i = 0; i < segment->waiters.count; i++) {
        struct afj_segment *waiter = segment->waiters.items[i];
        for (size_t w = 0; w < waiter->waits.count; w++)
            if (waiter->waits.items[w] == segment) {
                waiter->waits.items[w] = waiter->waits.items[--waiter->waits.count];
                break;
            }
        if (waiter->waits.count == 0) {
            release_held(links, waiter);
            check_arrival(links, waiter);
        }
    }
    segment->waiters.count = 0;
    let_go(links, segment);
}

static void seal(struct afj_links *links, struct afj_segment *segment)
{
    segment->sealed = true;
    check_arrival(links, segment);
}

static void wait_for(struct afj_links *links, struct afj_segment *later,
                     struct afj_segment *earlier)
{
    if (earlier == NULL || earlier->arrived)
        return;
    for (size_t i = 0; i < later->waits.count && i < 4; i++)
        if (later->waits.items[i] == earlier)
            return; /* a warp fences again and again behind the same barrier or kernel */
    if (!append(&later->waits, earlier)) {
        links->failed = true;
        return;
    }
    if (!append(&earlier->waiters, later)) {
        later->waits.count--;
        links->failed = true;
    }
}

static bool is_ahead(const struct afj_segment *segment)
{
    return segment != NULL && !segment->arrived;
}

void afj_segment_fence(struct afj_links *links, struct afj_segment **segment,
                       struct afj_segment *cta, struct afj_segment *stream)
{
    struct afj_segment *old = *segment;
    bool has_words = old != NULL && old->words > 0;
    if (!has_words && !is_ahead(cta) && !is_ahead(stream))
        return; /* what an empty segment waits for, later words wait for already */
    struct afj_segment *present = old;
    if (old == NULL || has_words) {
        present = open_segment(links);
        if (present == NULL)
            return;
        wait_for(links, present, old);
    }
    wait_for(links, present, cta);
    wait_for(links, present, stream);
    *segment = present;
    if (has_words) {
        seal(links, old);
        let_go(links, old);
    }
}

static void add_to_join(struct afj_links *links, struct afj_segment **join,
                        struct afj_segment *segment)
{
    if (*join == NULL)
        *join = open_segment(links);
    if (*join != NULL)
        wait_for(links, *join, segment);
}

void afj_segment_publish(struct afj_links *links, struct afj_segment **segment,
                         struct afj_segment **join)
{
    struct afj_segment *old = *segment;
    if (old == NULL || (old->words == 0 && old->waits.count == 0))
        return;
    struct afj_segment *sibling = open_segment(links);
    if (sibling == NULL)
        return;
    for (size_t i = 0; i < old->waits.count; i++)
        wait_for(links, sibling, old->waits.items[i]);
    *segment = sibling;
    add_to_join(links, join, old);
    seal(links, old);
    let_go(links, old);
}

void afj_segment_end(struct afj_links *links, struct afj_segment **segment,
                     struct afj_segment **join)
{
    struct afj_segment *old = *segment;
    *segment = NULL;
    if (old == NULL)
        return;
    if (old->words > 0 || old->waits.count > 0)
        add_to_join(links, join, old);
    seal(links, old);
    let_go(links, old);
}

void afj_segment_merge(struct afj_links *links, struct afj_segment **earlier,
                       struct afj_segment **later)
{
    if (*later == NULL)
        return;
    wait_for(links, *later, *earlier);
    afj_segment_forget(links, earlier);
    *earlier = *later;
    *later = NULL;
    seal(links, *earlier);
}

bool afj_segment_arrived(struct afj_links *links, struct afj_segment **join)
{
    if (*join != NULL && (*join)->arrived)
        afj_segment_forget(links, join);
    return *join == NULL;
}

void afj_segment_forget(struct afj_links *links, struct afj_segment **segment)
{
    struct afj_segment *old = *segment;
    *segment = NULL;
    if (old == NULL)
        return;
    old->holders++; /* stays while it is sealed */
    if (!old->sealed)
        seal(links, old);
    old->holders--;
    let_go(links, old);
}

static struct afj_link *find_link(const struct afj_links *links, uint32_t link)
{
    return &links->from[link / AFJ_SIM_DEVICES][link % AFJ_SIM_DEVICES];
}

/* The word cannot be kept for lack of memory: it is lost, and the run will say so. */
static void lose(struct afj_links *links, const struct afj_flying_word *word)
{
    links->failed = true;
    links->flying--;
    word->segment->words--;
    afj_allocation_arrive(word->to, word->index);
}

static void put_on_link(struct afj_links *links, const struct afj_flying_word *word)
{
    uint32_t to = (uint32_t)word->to->device;
    struct afj_link **row = &links->from[word->from];
    if (*row == NULL && (*row = calloc(AFJ_SIM_DEVICES, sizeof **row)) == NULL) {
        lose(links, word);
        return;
    }
    struct afj_link *link = &(*row)[to];
    void *words = link->words, *busy = links->busy;
    bool room = grow(&words, link->count, &link->capacity, sizeof *link->words) &&
                grow(&busy, links->busy_count, &links->busy_capacity, sizeof *links->busy);
    link->words = words;
    links->busy = busy;
    if (!room) {
        lose(links, word);
        return;
    }
    if (link->count == 0) {
        link->busy_at = links->busy_count;
        links->busy[links->busy_count++] = word->from * AFJ_SIM_DEVICES + to;
    }
    link->words[link->count++] = *word;
}

void afj_link_store(struct afj_links *links, struct afj_segment **segment,
                    const struct afj_flying_word *word)
{
    if (*segment == NULL && (*segment = open_segment(links)) == NULL)
        return;
    if (!afj_allocation_depart(word->to, word->index)) {
        links->failed = true;
        return;
    }
    struct afj_segment *present = *segment;
    struct afj_flying_word flying = *word;
    flying.segment = present;
    links->flying++;
    present->words++;
    if (present->waits.count == 0) {
        put_on_link(links, &flying);
        return;
    }
    void *held = present->held;
    bool room = grow(&held, present->held_count, &present->held_capacity, sizeof *present->held);
    present->held = held;
    if (room)
        present->held[present->held_count++] = flying;
    else
        lose(links, &flying);
}

bool afj_link_ready(const struct afj_links *links) { return links->busy_count > 0; }

uint32_t afj_link_choose(const struct afj_links *links, struct afj_random *random)
{
    return links->busy[afj_random_below(random, (uint32_t)links->busy_count)];
}

size_t afj_link_count(const struct afj_links *links, uint32_t link)
{
    return find_link(links, link)->count;
}

struct afj_flying_word afj_link_take(struct afj_links *links, uint32_t link,
                                     struct afj_random *random)
{
    struct afj_link *from = find_link(links, link);
    uint32_t bound = from->count > UINT32_MAX ? UINT32_MAX : (uint32_t)from->count;
    size_t chosen = afj_random_below(random, bound);
    struct afj_flying_word word = from->words[chosen];
    from->words[chosen] = from->words[--from->count];
    if (from->count == 0) {
        uint32_t last = links->busy[--links->busy_count];
        links->busy[from->busy_at] = last;
        find_link(links, last)->busy_at = from->busy_at;
    }
    links->flying--;
    word.segment->words--;
    check_arrival(links, word.segment);
    word.segment = NULL;
    return word;
}

void afj_link_clear(struct afj_links *links)
{
    for (size_t i = 0; i < links->busy_count; i++) {
        struct afj_link *link = find_link(links, links->busy[i]);
        for (size_t w = 0; w < link->count; w++)
            afj_allocation_arrive(link->words[w].to, link->words[w].index);
        link->count = 0;
    }
    links->busy_count = 0;
    while (links->first != NULL) {
        struct afj_segment *segment = links->first;
        links->first = segment->next;
        for (size_t w = 0; w < segment->held_count; w++)
            afj_allocation_arrive(segment->held[w].to, segment->held[w].index);
        free_segment(segment);
    }
    links->flying = 0;
    links->failed = false;
}
