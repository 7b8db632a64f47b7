// SPDX-License-Identifier: Apache-2.0
// Mixed radices: a length n = r m is m transforms of length r, turned, then r transforms of length m; the passes go
// from the whole length to 1 and each writes its output in the order that the next wants (Stockham; see Van Loan,
// Computational Frameworks for the Fast Fourier Transform, 1.7). Bluestein (1970): jk = (j^2 + k^2 - (k - j)^2) / 2
// makes the transform a convolution with exp(pi i j^2 / n), which a transform of any length from 2n - 1 on computes.
// Real signals of even length are transformed as n / 2 complex numbers and taken apart. A large prime radix sums so
// many products that floats do it in double.
#include "kernels/cpu/engine/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "kernels/cpu/engine/fourier_tiles.h"

namespace millrace {
namespace {

// Larger primes cost more than a convolution. Long ones read memory many times, and in what is rounded to float the
// error of long sums does not show.
constexpr int64_t kMostInFloat = 13, kMostPrime = 127, kLong = 8192;

// The factors of n in the order of the passes, or nothing when a prime is larger than `most`.
std::vector<int64_t> Radices(int64_t n, int64_t most) {
  std::vector<int64_t> radices;
  for (; n % 4 == 0; n /= 4) radices.push_back(4);
  for (int64_t r = 2; r <= most; ++r) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  return n == 1 ? radices : std::vector<int64_t>();
}

// The least 2^a 3^b 5^c that is n or more.
int64_t SmoothLength(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t five = 1; five < best; five *= 5) {
    for (int64_t three = five; three < best; three *= 3) {
      int64_t length = three;
      while (length < n) length *= 2;
      best = std::min(best, length);
    }
  }
  return best;
}

// All powers of exp(-2 pi i / n), as products of few.
class Roots {
 public:
  explicit Roots(int64_t n) {
    while (n >> (2 * shift_)) ++shift_;
    const int64_t near = int64_t{1} << shift_;
    for (int64_t k = 0; k < near; ++k) near_.push_back(k < n ? RootOfUnity(k, n) : 0);
    for (int64_t k = 0; k < n; k += near) far_.push_back(RootOfUnity(k, n));
  }
  std::complex<double> operator[](int64_t k) const {
    const std::complex<double> a = near_[static_cast<size_t>(k & ((int64_t{1} << shift_) - 1))];
    const std::complex<double> b = far_[static_cast<size_t>(k >> shift_)];
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }

 private:
  int shift_ = 0;
  std::vector<std::complex<double>> near_, far_;
};

template <typename T>
void PushPair(std::complex<double> z, std::vector<T>& to) {
  to.push_back(static_cast<T>(z.real()));
  to.push_back(static_cast<T>(z.imag()));
}

}  // namespace

std::complex<double> RootOfUnity(int64_t k, int64_t n) {
  // Into the first eighth of the circle, where sine and cosine are most exact.
  const auto count = static_cast<__int128>(n);
  __int128 at = static_cast<__int128>(k) * 8;
  const bool below = at > 4 * count;  // past a half: the conjugate
  if (below) at = 8 * count - at;
  const bool left = at > 2 * count;  // past a quarter: mirrored
  if (left) at = 4 * count - at;
  const bool steep = at > count;  // past an eighth: sine and cosine change places
  if (steep) at = 2 * count - at;
  const double angle = std::numbers::pi / 4 * (static_cast<double>(at) / static_cast<double>(n));
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  if (left) c = -c;
  return {c, below ? s : -s};
}

template <typename T>
SplitNumbers<T> FourierScratch<T>::Numbers(int64_t n) {
  // The parts lie some lines further than a power of two apart: else they would share the sets of a cache.
  constexpr int64_t kSkew = 5 * 64 / sizeof(T);
  room_ = n + kSkew;
  const auto size = static_cast<size_t>(2 * room_);
  for (std::vector<T>& numbers : numbers_) {
    if (numbers.size() < size) numbers.resize(size);
  }
  return {numbers_[0].data(), numbers_[0].data() + room_};
}

template <typename T>
SplitNumbers<T> FourierScratch<T>::Other(SplitNumbers<T> data) {
  T* first = numbers_[0].data();
  T* other = data.re == first || data.im == first ? numbers_[1].data() : first;
  return {other, other + room_};
}

template <typename T>
FourierPlan<T>::FourierPlan(int64_t n) : n_(n) {
  if (n == 1) return;
  constexpr bool kFloat = std::is_same_v<T, float>;
  const std::vector<int64_t> radices = Radices(n, kFloat && n >= kLong ? kMaxFourierRadix : kMostPrime);
  if (radices.empty()) {
    MakeConvolution();
  } else if (kFloat && radices.back() > kMostInFloat) {
    wide_.reset(new FourierPlan<double>(n, radices));
  } else {
    MakePasses(radices);
  }
}

template <typename T>
FourierPlan<T>::FourierPlan(int64_t n, const std::vector<int64_t>& radices) : n_(n) {
  MakePasses(radices);
}

template <typename T>
void FourierPlan<T>::MakePasses(const std::vector<int64_t>& radices) {
  const Roots roots(n_);
  int64_t length = n_, step = 1;
  for (int64_t r : radices) {
    Pass pass{r, length / r, step, {}, {}};
    pass.turns.reserve(static_cast<size_t>(2 * (r - 1) * pass.count));
    for (int64_t p = 0; p < pass.count; ++p) {
      for (int64_t k = 1; k < r; ++k) PushPair(roots[p * k * step], pass.turns);  // p k < length
    }
    for (int64_t k = 0; k < r; ++k) PushPair(RootOfUnity(k, r), pass.roots);
    length /= r;
    step *= r;
    passes_.push_back(std::move(pass));
  }
}

template <typename T>
void FourierPlan<T>::MakeConvolution() {
  const int64_t m = SmoothLength(2 * n_ - 1);
  convolution_ = std::make_unique<FourierPlan<double>>(m);
  FourierScratch<double> scratch;
  SplitNumbers<double> data = scratch.Numbers(m);
  std::fill(data.re, data.re + 2 * m, 0.0);
  const Roots roots(2 * n_);
  int64_t square = 0;  // k^2 modulo 2n
  for (int64_t k = 0; k < n_; ++k) {
    const std::complex<double> root = roots[square];
    chirp_.push_back(root);
    for (int64_t at : {k, (m - k) % m}) {
      data.re[at] = root.real();
      data.im[at] = -root.imag();
    }
    square = (square + 2 * k + 1) % (2 * n_);
  }
  const SplitNumbers<double> out = convolution_->Run(data, 1, scratch, false);
  for (int64_t k = 0; k < m; ++k) {
    chirp_transform_.push_back(std::complex<double>(out.re[k], out.im[k]) / static_cast<double>(m));
  }
}

template <typename T>
SplitNumbers<T> FourierPlan<T>::RunPasses(SplitNumbers<T> data, SplitNumbers<T> other, int64_t lanes) const {
  for (const Pass& p : passes_) {
    RunFourierPass(FourierPass<T>{
        data.re, data.im, other.re, other.im, p.turns.data(), p.roots.data(), p.radix, p.count, p.step * lanes});
    std::swap(data, other);
  }
  return data;
}

template <typename T>
SplitNumbers<T> FourierPlan<T>::Convolve(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const {
  if (!scratch.wide_) scratch.wide_ = std::make_unique<FourierScratch<double>>();
  const int64_t m = convolution_->size();
  SplitNumbers<double> wide = scratch.wide_->Numbers(m * lanes);
  for (int64_t k = 0; k < n_; ++k) {
    const double c = chirp_[static_cast<size_t>(k)].real(), s = chirp_[static_cast<size_t>(k)].imag();
    for (int64_t at = k * lanes; at < (k + 1) * lanes; ++at) {
      const double re = static_cast<double>(data.re[at]), im = static_cast<double>(data.im[at]);
      wide.re[at] = re * c - im * s;
      wide.im[at] = re * s + im * c;
    }
  }
  std::fill(wide.re + n_ * lanes, wide.re + m * lanes, 0.0);
  std::fill(wide.im + n_ * lanes, wide.im + m * lanes, 0.0);
  SplitNumbers<double> product = convolution_->Run(wide, lanes, *scratch.wide_, false);
  for (int64_t k = 0; k < m; ++k) {
    const double c = chirp_transform_[static_cast<size_t>(k)].real(),
                 s = chirp_transform_[static_cast<size_t>(k)].imag();
    for (int64_t at = k * lanes; at < (k + 1) * lanes; ++at) {
      const double re = product.re[at], im = product.im[at];
      product.re[at] = re * c - im * s;
      product.im[at] = re * s + im * c;
    }
  }
  const SplitNumbers<double> out = convolution_->Run(product, lanes, *scratch.wide_, true);
  for (int64_t k = 0; k < n_; ++k) {
    const double c = chirp_[static_cast<size_t>(k)].real(), s = chirp_[static_cast<size_t>(k)].imag();
    for (int64_t at = k * lanes; at < (k + 1) * lanes; ++at) {
      data.re[at] = static_cast<T>(out.re[at] * c - out.im[at] * s);
      data.im[at] = static_cast<T>(out.re[at] * s + out.im[at] * c);
    }
  }
  return data;
}

template <typename T>
SplitNumbers<T> FourierPlan<T>::RunWide(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const {
  if (!scratch.wide_) scratch.wide_ = std::make_unique<FourierScratch<double>>();
  const int64_t n = n_ * lanes;
  const SplitNumbers<double> wide = scratch.wide_->Numbers(n);
  std::copy_n(data.re, n, wide.re);
  std::copy_n(data.im, n, wide.im);
  const SplitNumbers<double> out = wide_->Run(wide, lanes, *scratch.wide_, false);
  const auto narrowed = [](double v) { return static_cast<T>(v); };
  std::transform(out.re, out.re + n, data.re, narrowed);
  std::transform(out.im, out.im + n, data.im, narrowed);
  return data;
}

template <typename T>
SplitNumbers<T> FourierPlan<T>::Run(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch,
                                    bool inverse) const {
  if (n_ == 1) return data;
  if (inverse) data = data.Swapped();
  SplitNumbers<T> out;
  if (convolution_) {
    out = Convolve(data, lanes, scratch);
  } else if (wide_) {
    out = RunWide(data, lanes, scratch);
  } else {
    out = RunPasses(data, scratch.Other(data), lanes);
  }
  return inverse ? out.Swapped() : out;
}

template <typename T>
RealFourierPlan<T>::RealFourierPlan(int64_t n) : n_(n), plan_(n % 2 == 0 ? n / 2 : n) {
  if (!packed()) return;
  const Roots roots(n);
  for (int64_t k = 0; k <= n / 4; ++k) {
    turns_.push_back(static_cast<T>(roots[k].real()));
    turns_.push_back(static_cast<T>(roots[k].imag()));
  }
}

template <typename T>
SplitNumbers<T> RealFourierPlan<T>::Forward(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const {
  if (!packed()) {
    std::fill(data.im, data.im + n_ * lanes, T(0));
    return plan_.Run(data, lanes, scratch, false);
  }
  const SplitNumbers<T> z = plan_.Run(data, lanes, scratch, false);
  ToRealBins(RealBins<T>{z.re, z.im, turns_.data(), n_ / 2, lanes});
  return z;
}

template <typename T>
SplitNumbers<T> RealFourierPlan<T>::Backward(SplitNumbers<T> bins, int64_t lanes, FourierScratch<T>& scratch) const {
  std::fill(bins.im, bins.im + lanes, T(0));
  if (!packed()) {
    for (int64_t k = 1; k < this->bins(); ++k) {
      for (int64_t l = 0; l < lanes; ++l) {
        bins.re[(n_ - k) * lanes + l] = bins.re[k * lanes + l];
        bins.im[(n_ - k) * lanes + l] = -bins.im[k * lanes + l];
      }
    }
    return plan_.Run(bins, lanes, scratch, true);
  }
  const int64_t h = n_ / 2;
  std::fill(bins.im + h * lanes, bins.im + (h + 1) * lanes, T(0));
  FromRealBins(RealBins<T>{bins.re, bins.im, turns_.data(), h, lanes});
  return plan_.Run(bins, lanes, scratch, true);
}

template class FourierScratch<float>;
template class FourierScratch<double>;
template class FourierPlan<float>;
template class FourierPlan<double>;
template class RealFourierPlan<float>;
template class RealFourierPlan<double>;

}  // namespace millrace
