// SPDX-License-Identifier: Apache-2.0
// The discrete Fourier transform of any length in O(n log n): lengths whose prime factors are small by mixed radices
// (Stockham's form), in double where one is above 13, all others by Bluestein's convolution, which is done in double.
// Roots of unity are computed in double.
//
// Several signals ("lanes") are transformed together: number k of lane l lies at [k * lanes + l] of an array of real
// parts and of one of imaginary parts. Plans are immutable and may be used by several threads, each with its own
// scratch.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace {

template <typename T>
struct SplitNumbers {
  T* re = nullptr;
  T* im = nullptr;
  SplitNumbers Swapped() const { return {im, re}; }  // a forward transform of swapped parts is the inverse one, swapped
};

// exp(-2 pi i k / n) to the last bit or two of double, 0 <= k < n.
std::complex<double> RootOfUnity(int64_t k, int64_t n);

template <typename T>
class FourierPlan;

// What a thread needs beside a plan. Grows as it is used.
template <typename T>
class FourierScratch {
 public:
  // Room for n numbers, valid until the next call.
  SplitNumbers<T> Numbers(int64_t n);

 private:
  template <typename>
  friend class FourierPlan;
  SplitNumbers<T> Other(SplitNumbers<T> data);  // as much room, where `data` are not
  std::vector<T> numbers_[2];
  int64_t room_ = 0;
  std::unique_ptr<FourierScratch<double>> wide_;
};

// Complex transforms.
template <typename T>
class FourierPlan {
 public:
  explicit FourierPlan(int64_t n);  // n >= 1
  int64_t size() const { return n_; }
  // Not scaled. `data` are scratch.Numbers(size() * lanes) or more; the answer lies where the result says, with as much
  // room.
  SplitNumbers<T> Run(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch, bool inverse) const;

 private:
  struct Pass {
    int64_t radix, count, step;
    std::vector<T> turns, roots;
  };
  template <typename>
  friend class FourierPlan;
  FourierPlan(int64_t n, const std::vector<int64_t>& radices);
  void MakePasses(const std::vector<int64_t>& radices);
  void MakeConvolution();
  SplitNumbers<T> RunPasses(SplitNumbers<T> data, SplitNumbers<T> other, int64_t lanes) const;
  SplitNumbers<T> Convolve(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const;
  SplitNumbers<T> RunWide(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const;

  int64_t n_;
  std::vector<Pass> passes_;
  std::unique_ptr<FourierPlan<double>> convolution_;  // Bluestein's, else null
  std::unique_ptr<FourierPlan<double>> wide_;         // the same in double, where that is used, else null
  std::vector<std::complex<double>> chirp_, chirp_transform_;
};

// Transforms of real signals to the first n / 2 + 1 of their frequencies, and back.
template <typename T>
class RealFourierPlan {
 public:
  explicit RealFourierPlan(int64_t n);  // n >= 1
  int64_t size() const { return n_; }
  int64_t bins() const { return n_ / 2 + 1; }
  // How many complex numbers a lane takes in scratch.
  int64_t scratch_size() const { return bins() > plan_.size() ? bins() : plan_.size(); }

  // Where Forward expects number k of a lane: in the real part of number k, or, of even lengths, in the real (even k)
  // or imaginary (odd k) part of number k / 2. Backward leaves them so.
  bool packed() const { return n_ % 2 == 0; }
  // `data` are scratch.Numbers(scratch_size() * lanes); so are the bins that it returns.
  SplitNumbers<T> Forward(SplitNumbers<T> data, int64_t lanes, FourierScratch<T>& scratch) const;
  // Not scaled: n times the signal. The imaginary parts of frequency 0 and, of even lengths, n / 2 do not count.
  SplitNumbers<T> Backward(SplitNumbers<T> bins, int64_t lanes, FourierScratch<T>& scratch) const;

 private:
  int64_t n_;
  FourierPlan<T> plan_;   // of n / 2 numbers, or n
  std::vector<T> turns_;  // of RealBins
};

}  // namespace millrace
