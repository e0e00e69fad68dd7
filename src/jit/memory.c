/* memory.c: the images that this process has, and the keys that its threads are making images of.
 */
#include "jit/memory.h"

#include <pthread.h>
#include <stdlib.h>

/* A key that a thread is making the image of. */
struct flight {
    struct afj_digest key;
    struct flight *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t landed = PTHREAD_COND_INITIALIZER;
static struct afj_memory_image *images;
static struct flight *flights;

static struct afj_memory_image *find_image(const struct afj_digest *key)
{
    struct afj_memory_image *image = images;
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

bool afj_memory_begin(const struct afj_digest *key, bool wait, const struct afj_memory_image **held)
{
    bool mine = false;
    pthread_mutex_lock(&lock);
    *held = find_image(key);
    while (wait && !*held && *find_flight(key)) {
        pthread_cond_wait(&landed, &lock);
        *held = find_image(key);
    }
    if (!*held && !*find_flight(key)) {
        /* Without memory the key is not listed: another thread may make it as well. */
        struct flight *flight = malloc(sizeof *flight);
        if (flight) {
            flight->key = *key;
            flight->next = flights;
            flights = flight;
        }
        mine = true;
    }
    pthread_mutex_unlock(&lock);
    return mine;
}

void afj_memory_end(const struct afj_digest *key)
{
    pthread_mutex_lock(&lock);
    struct flight **at = find_flight(key);
    struct flight *flight = *at;
    if (flight)
        *at = flight->next;
    pthread_cond_broadcast(&landed);
    pthread_mutex_unlock(&lock);
    free(flight);
}

const struct afj_memory_image *afj_memory_keep(const struct afj_memory_image *image)
{
    struct afj_memory_image *kept = malloc(sizeof *kept);
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
