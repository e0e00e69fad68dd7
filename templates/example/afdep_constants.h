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
constexpr uint32_t kFirstAttention = 2; // rank of the first that holds tokens
constexpr uint32_t kExperts = 128; // experts of the layer
constexpr bool kMappedExperts = 0; // a table says where
constexpr uint32_t kLeastExperts = 64; // experts of an FFN rank
constexpr uint32_t kLongerRanks = 0; // ranks with one more
constexpr int kTopK = 8; // experts a token
constexpr int kIdWords = 1; // 32-bit words of a caller's id
constexpr uint32_t kHidden = 2048; // elements a row
constexpr uint32_t kDtype = 1; // BF16, FP8, FP8 with UE8M0 scales, opaque
constexpr uint32_t kReceive = 1; // compact, view, expert-major
constexpr bool kCountsFirst = 0; // ids go ahead of rows
constexpr bool kHostCounts = 0; // counts go to host memory, too
constexpr bool kReplyWeights = 0; // replies carry weights
constexpr bool kStrictFences = 0; // fences of the formal model
constexpr bool kCheckRoutes = 0; // bad routes are counted
constexpr uint32_t kPayloadVecs = 256; // 16-byte vectors of a dispatched row
constexpr int kScaleWords = 0; // words of its scales
constexpr int kScaleEscapes = 0; // escapes of these
constexpr int kRowEscapes = 0; // escapes of the row
constexpr uint32_t kMetaStride = 64; // bytes of its meta words
constexpr uint32_t kWarps = 8; // warps a CTA
constexpr uint32_t kRowVecs = 256; // 16-byte vectors of a row moved here
constexpr uint32_t kWarpsPerRow = 4; // warps that share a row
constexpr uint32_t kShareVecs = 64; // vectors of a share
constexpr uint32_t kPieces = 1; // pieces of a share
constexpr uint32_t kPieceVecs = 64; // vectors of a piece

#endif
