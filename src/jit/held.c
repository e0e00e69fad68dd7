/* held.c: the images that this process has, and the keys that its threads make images of. */
#include "jit/held.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A key that a thread is making the image of. Freed by that thread, or by the last that waits. */
struct flight {
    struct afj_digest key;
    struct flight *next;
    uint32_t waiters;
    bool landed; /* no longer in the list */
    afdep_status status;
    char sentence[512];
};

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t landed = PTHREAD_COND_INITIALIZER;
static struct afj_held_image *images;
static struct flight *flights;

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

/* The threads that make images are not in the child, and nobody would ever end their flights. */
static void after_fork_in_child(void)
{
    static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    flights = NULL;
    landed = fresh;
    pthread_mutex_unlock(&lock);
}

/* Without memory for the handlers a child may wait for a thread that it does not have; there is
 * nothing better to do. */
static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static struct afj_held_image *find_image(const struct afj_digest *key)
{
    struct afj_held_image *image = images;
    while (image && !afj_digest_equal(&image->key, key))
        image = image->next;
    return image;
}

static struct flight **find_flight(const struct afj_digest *key)
{
    struct flight **at = &flights;
    while (*at && !afj_digest_equal(&(*at)->key, key))
        at = &(*at)->next;
    return at;
}

/* Without memory the key is not listed: another thread may make it as well. */
static void add_flight(const struct afj_digest *key)
{
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight)
        return;
    flight->key = *key;
    flight->next = flights;
    flights = flight;
}

/* Wait until a flight has landed, and fail if it failed. */
static afdep_status await_flight(struct flight *flight)
{
    ++flight->waiters;
    while (!flight->landed)
        pthread_cond_wait(&landed, &lock);
    const afdep_status status = flight->status;
    if (status != AFDEP_OK)
        afj_fail(status, "%s", flight->sentence);
    if (--flight->waiters == 0)
        free(flight);
    return status;
}

afdep_status afj_held_begin(const struct afj_digest *key, bool wait, bool *mine,
                            const struct afj_held_image **held)
{
    struct flight *flight = NULL;
    afdep_status status = AFDEP_OK;
    *mine = false;
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    do {
        *held = find_image(key);
        flight = *held ? NULL : *find_flight(key);
        if (flight && wait)
            status = await_flight(flight);
    } while (flight && wait && status == AFDEP_OK);
    if (!*held && !flight) {
        add_flight(key);
        *mine = true;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void afj_held_end(const struct afj_digest *key, afdep_status status)
{
    pthread_mutex_lock(&lock);
    struct flight **at = find_flight(key);
    struct flight *flight = *at;
    if (flight) {
        *at = flight->next;
        flight->landed = true;
        flight->status = status;
        if (status != AFDEP_OK)
            snprintf(flight->sentence, sizeof flight->sentence, "%s", afj_status_sentence());
        if (flight->waiters == 0)
            free(flight);
        pthread_cond_broadcast(&landed);
    }
    pthread_mutex_unlock(&lock);
}

const struct afj_held_image *afj_held_find(const struct afj_digest *key)
{
    pthread_mutex_lock(&lock);
    const struct afj_held_image *image = find_image(key);
    pthread_mutex_unlock(&lock);
    return image;
}

const struct afj_held_image *afj_held_keep(const struct afj_held_image *image)
{
    struct afj_held_image *kept = malloc(sizeof *kept);
    if (!kept) {
        free(image->image);
        return NULL;
    }
    *kept = *image;
    pthread_mutex_lock(&lock);
    kept->next = images;
    images = kept;
    pthread_mutex_unlock(&lock);
    return kept;
}
