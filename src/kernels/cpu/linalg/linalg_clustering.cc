// SPDX-License-Identifier: Apache-2.0
// CPU kernels: centers of clusters. First ones by k-means++ (Arthur and Vassilvitskii 2007) or by a Markov chain
// (k-MC2, Bachem et al. 2016), and the nearest ones of points. Half the squared distance of two points is half the
// squares of both norms less their product. Seeds draw what TensorFlow draws.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/shared/philox.h"

namespace millrace {
namespace {

Status CheckMatrix(const Tensor& t, absl::string_view what) {
  if (t.rank() == 2) return absl::OkStatus();
  return InvalidArgument("Input ", what, " should be a matrix, got shape ", t.shape().ToString());
}

StatusOr<int64_t> CheckedScalar(const Tensor& t, absl::string_view what) {
  if (t.rank() == 0) return t.IntScalar();
  return InvalidArgument("Input ", what, " should be a scalar, got shape ", t.shape().ToString());
}

float HalfSquare(const float* v, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += v[i] * v[i];
  return 0.5f * sum;
}

// Points of which each new center is drawn, by the distances from the centers that there are.
class CenterDraw {
 public:
  CenterDraw(KernelContext& ctx, const Tensor& points, int64_t seed)
      : ctx_(ctx),
        points_(points.data<float>()),
        n_(points.dim(0)),
        dims_(points.dim(1)),
        words_(Philox(static_cast<uint64_t>(seed), 0)),
        half_squares_(static_cast<size_t>(n_)),
        distances_(static_cast<size_t>(n_), std::numeric_limits<float>::infinity()),
        sums_(static_cast<size_t>(n_)),
        is_center_(static_cast<size_t>(n_)) {
    ctx_.ParallelFor(n_, static_cast<double>(dims_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) half_squares_[static_cast<size_t>(i)] = HalfSquare(Row(i), dims_);
    });
  }

  // The best of 1 + retries points: with it, the sum of the distances is least.
  int64_t Next(int64_t retries) {
    std::partial_sum(distances_.begin(), distances_.end(), sums_.begin());
    int64_t best = 0;
    float best_sum = std::numeric_limits<float>::infinity();
    std::vector<float> best_distances, candidate_distances(distances_.size());
    for (int64_t i = 0; i <= retries; ++i) {
      StopIfAsked();
      const int64_t candidate = Draw();
      const float sum = DistancesWith(candidate, &candidate_distances);
      if (i > 0 && !(sum < best_sum)) continue;
      best = candidate;
      best_sum = sum;
      best_distances = candidate_distances;
    }
    distances_.swap(best_distances);
    is_center_[static_cast<size_t>(best)] = true;
    ++centers_;
    return best;
  }

  const float* Row(int64_t i) const { return points_ + i * dims_; }

 private:
  // A point that is no center yet, with a chance as large as its distance is. Where only centers seem to have one,
  // which rounding can do, and where none has, any other.
  int64_t Draw() {
    constexpr int kMostTries = 100;
    const auto any = [this] { return static_cast<int64_t>(Below64(words_, static_cast<uint64_t>(n_))); };
    if (centers_ == 0) return any();
    int64_t drawn = 0;
    for (int i = 0; i < kMostTries; ++i) {
      const float total = sums_.back();
      drawn = total > 0 && std::isfinite(total)
                  ? std::upper_bound(sums_.begin(), sums_.end(), UnitFloat(words_()) * total) - sums_.begin()
                  : any();
      drawn = std::min(drawn, n_ - 1);
      if (!is_center_[static_cast<size_t>(drawn)]) return drawn;
    }
    while (is_center_[static_cast<size_t>(drawn)]) drawn = (drawn + 1) % n_;
    return drawn;
  }

  // The distances when `center` is one too, and their sum.
  float DistancesWith(int64_t center, std::vector<float>* distances) const {
    const float* y = Row(center);
    const float y_half_square = half_squares_[static_cast<size_t>(center)];
    ctx_.ParallelFor(n_, static_cast<double>(dims_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* x = Row(i);
        float product = 0;
        for (int64_t d = 0; d < dims_; ++d) product += x[d] * y[d];
        const size_t at = static_cast<size_t>(i);
        (*distances)[at] = std::min(distances_[at], half_squares_[at] - product + y_half_square);
      }
    });
    return static_cast<float>(std::accumulate(distances->begin(), distances->end(), 0.0));
  }

  KernelContext& ctx_;
  const float* const points_;
  const int64_t n_, dims_;
  PhiloxWords words_;
  std::vector<float> half_squares_;
  std::vector<float> distances_;  // half squared, from the nearest center
  std::vector<float> sums_;       // of the distances up to each point
  std::vector<bool> is_center_;
  int64_t centers_ = 0;
};

Status KmeansPlusPlus(KernelContext& ctx) {
  const Tensor& points = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckMatrix(points, "points"));
  MR_ASSIGN_OR_RETURN(const int64_t count, CheckedScalar(ctx.input(1), "num_to_sample"));
  MR_ASSIGN_OR_RETURN(const int64_t seed, CheckedScalar(ctx.input(2), "seed"));
  MR_ASSIGN_OR_RETURN(int64_t retries, CheckedScalar(ctx.input(3), "num_retries_per_sample"));
  if (points.dim(0) < 1) return InvalidArgument("Expected points.rows() > 0.");
  if (count < 1) return InvalidArgument("Expected num_to_sample > 0, got ", count);
  if (count > points.dim(0)) {
    return InvalidArgument("Expected num_to_sample <= points.rows(). ", count, " vs ", points.dim(0), ".");
  }
  if (retries < 0) retries = 2 + static_cast<int64_t>(std::log(static_cast<double>(count)));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({count, points.dim(1)}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  CenterDraw draw(ctx, points, seed);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(draw.Row(draw.Next(retries)), points.dim(1), out->mutable_data<float>() + i * points.dim(1));
  }
  return absl::OkStatus();
}

Status MarkovChain(KernelContext& ctx) {
  const Tensor& distances = ctx.input(0);
  if (distances.rank() != 1) {
    return InvalidArgument("Input distances should be a vector, got shape ", distances.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const int64_t seed, CheckedScalar(ctx.input(1), "seed"));
  if (distances.dim(0) < 1) return InvalidArgument("Expected distances_tensor.size() > 0.");
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  PhiloxWords words(Philox(static_cast<uint64_t>(seed), 0));
  const float* d = distances.data<float>();
  int64_t state = 0;
  StopNowAndThen stop;
  for (int64_t i = 1; i < distances.dim(0); ++i) {
    stop();
    if (d[i] > UnitFloat(words()) * d[state]) state = i;
  }
  *out->mutable_data<int64_t>() = state;
  return absl::OkStatus();
}

// A center, by half its squared distance from a point less what they all have in common.
struct Neighbour {
  float distance = 0;
  int64_t center = 0;
  // Distances that are no numbers come last, equal ones by their numbers.
  bool operator<(const Neighbour& o) const {
    const bool is_nan = std::isnan(distance), other_is_nan = std::isnan(o.distance);
    if (is_nan != other_is_nan) return other_is_nan;
    if (!is_nan && distance != o.distance) return distance < o.distance;
    return center < o.center;
  }
};

// The k nearest centers of some points, block by block of the centers.
struct NeighbourSearch {
  const float* centers = nullptr;
  const float* half_squares = nullptr;
  int64_t m = 0, dims = 0, k = 0;
  static constexpr int64_t kBlock = 1024;

  void Find(const float* points, int64_t rows, int64_t* indices, float* distances) const {
    std::vector<float> products(static_cast<size_t>(rows * std::min(m, kBlock)));
    std::vector<std::vector<Neighbour>> nearest(static_cast<size_t>(rows));
    for (int64_t first = 0; first < m; first += kBlock) {
      const int64_t width = std::min(kBlock, m - first);
      std::fill(products.begin(), products.end(), 0.0f);
      if (dims > 0) {
        SerialGemm(
            DType::kFloat,
            {.m = rows,
             .n = width,
             .k = dims,
             .a = points,
             .lda = dims,
             .b = centers + first * dims,
             .ldb = dims,
             .transpose_b = true,
             .c = products.data(),
             .ldc = width});
      }
      StopIfAsked();
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < width; ++j) {
          const float distance = half_squares[first + j] - products[static_cast<size_t>(r * width + j)];
          Keep({distance, first + j}, &nearest[static_cast<size_t>(r)]);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<Neighbour>& best = nearest[static_cast<size_t>(r)];
      std::sort_heap(best.begin(), best.end());
      const float half_square = HalfSquare(points + r * dims, dims);
      for (int64_t j = 0; j < k; ++j) {
        *indices++ = best[static_cast<size_t>(j)].center;
        *distances++ = 2 * (half_square + best[static_cast<size_t>(j)].distance);
      }
    }
  }

 private:
  // In a heap of at most k, the furthest in front.
  void Keep(const Neighbour& candidate, std::vector<Neighbour>* heap) const {
    if (static_cast<int64_t>(heap->size()) < k) {
      heap->push_back(candidate);
      std::push_heap(heap->begin(), heap->end());
    } else if (candidate < heap->front()) {
      std::pop_heap(heap->begin(), heap->end());
      heap->back() = candidate;
      std::push_heap(heap->begin(), heap->end());
    }
  }
};

Status NearestNeighbors(KernelContext& ctx) {
  const Tensor &points = ctx.input(0), &centers = ctx.input(1);
  MR_RETURN_IF_ERROR(CheckMatrix(points, "points"));
  MR_RETURN_IF_ERROR(CheckMatrix(centers, "centers"));
  MR_ASSIGN_OR_RETURN(const int64_t wanted, CheckedScalar(ctx.input(2), "k"));
  if (points.dim(0) < 1) return InvalidArgument("Expected points.rows() > 0.");
  if (points.dim(1) != centers.dim(1)) {
    return InvalidArgument(
        "Expected point_dimensions == center_dimensions: ", points.dim(1), " vs ", centers.dim(1), ".");
  }
  if (wanted < 0) return InvalidArgument("Expected k >= 0, got ", wanted);
  const int64_t n = points.dim(0), m = centers.dim(0), dims = points.dim(1), k = std::min(m, wanted);
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, k}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  MR_ASSIGN_OR_RETURN(Tensor * distances, ctx.AllocateOutput(1, shape));
  if (k == 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const Shape vector, Shape::Make({m}));
  MR_ASSIGN_OR_RETURN(Tensor half_squares, ctx.AllocateTemp(DType::kFloat, vector));
  float* squares = half_squares.mutable_data<float>();
  ctx.ParallelFor(m, static_cast<double>(dims), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[i] = HalfSquare(centers.data<float>() + i * dims, dims);
  });
  const NeighbourSearch search{.centers = centers.data<float>(), .half_squares = squares, .m = m, .dims = dims, .k = k};
  constexpr int64_t kRows = 64;
  const double cost = static_cast<double>(kRows) * static_cast<double>(m) * (2 + 0.1 * static_cast<double>(dims));
  ctx.ParallelFor((n + kRows - 1) / kRows, cost, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kRows, rows = std::min(kRows, n - first);
      search.Find(points.data<float>() + first * dims, rows, indices->mutable_data<int64_t>() + first * k,
                  distances->mutable_data<float>() + first * k);
    }
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterClusteringKernels(KernelRegistry& r) {
  r.AddFn({.op = "KmeansPlusPlusInitialization"}, KmeansPlusPlus);
  r.AddFn({.op = "KMC2ChainInitialization"}, MarkovChain);
  r.AddFn({.op = "NearestNeighbors"}, NearestNeighbors);
}

}  // namespace millrace
