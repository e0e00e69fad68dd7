/* handshake.h: what ranks must agree on, as text that can travel, and the first difference. */
#ifndef AFJ_EXCHANGE_HANDSHAKE_H
#define AFJ_EXCHANGE_HANDSHAKE_H

#include "base/digest.h"
#include "base/text.h"
#include "plan/plan.h"

/* Most bytes of a rank's text. */
#define AFJ_HANDSHAKE_BYTES 4096

/* Append what one rank was created with: a line "field=value\n" for the library's version, the
 * templates' digest, every field of the config, and every control that ranks must share. */
void afj_handshake_describe(const struct afj_config *config, const struct afj_controls *controls,
                            uint32_t sim_lanes, const struct afj_digest *templates,
                            struct afj_text *text);

/* Compare the texts of two ranks; neither need end in a zero, and both may be anything. Texts agree
 * where every byte does, so a text that cannot be read agrees with none that `describe` wrote.
 * AFDEP_ERROR_HANDSHAKE with a sentence that names the first field that differs, and both values.
 */
afdep_status afj_handshake_compare(uint32_t rank_a, const char *a, size_t length_a, uint32_t rank_b,
                                   const char *b, size_t length_b);

#endif
