// afdep_constants.h: the numbers that make a template the dispatch kernel for few
// tokens. Written by the plan.
#ifndef AFDEP_CONSTANTS_H
#define AFDEP_CONSTANTS_H

#define AFJ_TEMPLATE 1
#define AFJ_ATTENTION_PEERS 2
#define AFJ_FFN_PEERS 2

#include "rtc/stdint.h"

constexpr uint32_t kAttentionRanks = 2; // ranks that hold tokens
constexpr int kFfnRanks = 2; // ranks that hold experts
constexpr uint32_t kExperts = 128; // experts of the layer
constexpr uint32_t kExpertsPerRank = 64; // experts of one FFN rank
constexpr int kTopK = 8; // experts a token
constexpr uint32_t kHidden = 2048; // elements a row
constexpr uint32_t kRowVecs = 256; // 16-byte vectors a row
constexpr uint32_t kMetaAt = 4096; // bytes before a slot's ids
constexpr uint32_t kRowStride = 4160; // bytes a row slot
constexpr uint32_t kReplyStride = 4096; // bytes a reply slot
constexpr uint32_t kWarps = 8; // warps a CTA
constexpr uint32_t kWarpsPerRow = 4; // warps that share a row
constexpr uint32_t kShareVecs = 64; // vectors of a share
constexpr uint32_t kPieces = 1; // pieces of a share
constexpr uint32_t kPieceVecs = 64; // vectors of a piece

#endif
