// SPDX-License-Identifier: Apache-2.0
// Bessel functions of orders 0 and 1. Modified ones near 0 are polynomials in x^2, beside a logarithm for those of the
// second kind (Abramowitz and Stegun 9.6.10, 9.6.13, 9.6.11); further out exp(-x) I(x) and exp(x) K(x) are polynomials
// in 1 / x over the square root of x. They interpolate at Chebyshev nodes, with relative errors below 2e-17. Others are
// the C library's.
#include <math.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/elementwise/elementwise_special.h"

namespace millrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// I0 and I1 / x by powers of x^2, up to x = 4; K0 + log(x / 2) I0 and x (K1 - log(x / 2) I1), up to x = 1/2.
constexpr double kLogFree0[] = {
    -0.5772156649015329,   0.10569608377461678,   0.01441850523591355,   0.0005451899602568355, 1.0214014136072649e-05,
    1.157035090836191e-07, 8.819888686596496e-10, 4.842643134875524e-12, 2.038755078822697e-14};
constexpr double kPowers0[] = {
    1.0,
    0.25,
    0.015625,
    0.00043402777777777775,
    6.781684027777777e-06,
    6.781684027777778e-08,
    4.709502797067901e-10,
    2.4028075495244395e-12,
    9.385966990329839e-15,
    2.896903392077176e-17,
    7.242258480182552e-20,
    1.4963343968578423e-22,
    2.597802760746443e-25,
    3.8429042936684885e-28,
    4.901622560391842e-31,
    5.447758268949196e-34,
    5.282377942931167e-37,
    5.140721768466001e-40};
constexpr double kLogFree1[] = {
    1.0,
    0.03860783245076643,
    -0.04204902094365424,
    -0.0028371119837629767,
    -7.493042906190303e-05,
    -1.0892182480462613e-06,
    -1.0112919279408141e-08,
    -6.539221107988242e-11,
    -3.172788056401261e-13};
constexpr double kPowers1[] = {
    0.5,
    0.0625,
    0.0026041666666666665,
    5.425347222222222e-05,
    6.781684027777778e-07,
    5.651403356481481e-09,
    3.363930569334215e-11,
    1.5017547184527747e-13,
    5.2144261057388e-16,
    1.4484516960385725e-18,
    3.291935672812221e-21,
    6.2347266533827804e-24,
    9.991549093730264e-27,
    1.372465744501175e-29,
    1.6338770446638952e-32,
    1.7023505420703506e-35,
    1.5547978133223275e-38,
    1.4196976827558375e-41};
// By 1 / x in these ranges: up to x = 1, 2, 5, 20 and beyond; up to 8, 20 and beyond.
constexpr double kSecond0Nearest[] = {
    1.1080859836838688,     -0.03299908431110615,    0.002942741510560757,   -0.0003688849747769645,
    5.5132165688735925e-05, -9.199786755848466e-06,  1.6575458907750549e-06, -3.1618377231241634e-07,
    6.305533249906752e-08,  -1.3033437584001532e-08, 2.774792902894347e-09,  -6.057174581311206e-10,
    1.3534617262947717e-10, -3.075691867903272e-11,  6.847700144499712e-12,  -1.6018574209151539e-12,
    5.167247814946302e-13,  -1.2481561266686466e-13};
constexpr double kSecond1Nearest[] = {
    1.790654592046793,       0.14676051903826015,    -0.006923013685972555,  0.0007052923917277308,
    -9.44766296556454e-05,   1.4704683968946325e-05, -2.522670927305824e-06, 4.638333818907061e-07,
    -8.986945757166422e-08,  1.814642440558228e-08,  -3.788987099439501e-09, 8.135951108824156e-10,
    -1.7921520861791441e-10, 4.022516723044079e-11,  -8.870542634603733e-12, 2.0548676341414144e-12,
    -6.536549249136774e-13,  1.566934225054809e-13};
constexpr double kSecond0Near[] = {
    1.1658263717940323,     -0.022704234086460332,   0.0014668157923297554,  -0.0001405204629344227,
    1.6601827842807752e-05, -2.24254611103641e-06,   3.3295089666283864e-07, -5.3073931835537635e-08,
    8.94592444749799e-09,   -1.5781817082699619e-09, 2.890210467634174e-10,  -5.405089584897714e-11,
    1.049385444635529e-11,  -2.483584941275755e-12,  5.078982733001923e-13};
constexpr double kSecond0Middle[] = {
    1.2066236322317405,    -0.017311644214959055,   0.0009141141867545209,  -7.618296885141124e-05,
    8.170251715381121e-06, -1.0336302880168792e-06, 1.4725276929699356e-07, -2.296507014759413e-08,
    3.848450481549133e-09, -6.842427356305802e-10,  1.277602928903967e-10,  -2.4539817325288922e-11,
    4.947256084580165e-12, -1.2556652660804744e-12, 2.7169956265381616e-13};
constexpr double kSecond0Far[] = {
    1.2349563891012865,     -0.0103569904493444,     0.00035471091690171265, -2.0649956945928953e-05,
    1.6365610049824313e-06, -1.599801813307075e-07,  1.826413211407368e-08,  -2.353373129256125e-09,
    3.344645186055588e-10,  -5.1558855410461624e-11, 8.45512746826468e-12,   -1.4799938678540984e-12,
    3.1708121778540173e-13, -6.201382389162073e-14};
constexpr double kSecond0Farthest[] = {
    1.2494512259039208,    -0.0038105483324598027,  5.1078392861657866e-05, -1.2393754538971952e-06,
    4.324264517446956e-08, -1.9530901476172467e-09, 1.075595873939298e-10,  -6.948938478488436e-12,
    5.128943642484709e-13, -4.3501765879627596e-14, 3.98747316854381e-15};
constexpr double kSecond1Near[] = {
    1.551926734522259,       0.08705429454116478,    -0.003045281815811756,  0.00024061860103293165,
    -2.574556803516473e-05,  3.269296974376777e-06,  -4.650527192265738e-07, 7.181718570866745e-08,
    -1.1810803434014976e-08, 2.042743401296168e-09,  -3.680483079507388e-10, 6.792202409730135e-11,
    -1.3032722679782214e-11, 3.0436747439899694e-12, -6.170210844258826e-13};
constexpr double kSecond1Middle[] = {
    1.4036449250967453,      0.059530492686031514,   -0.0017279241911639276,  0.00011998308597389816,
    -1.1739964996048719e-05, 1.4042369856767226e-06, -1.9254561705878287e-07, 2.9201251811177518e-08,
    -4.7897028913042686e-09, 8.371834915735429e-10,  -1.5415490480184135e-10, 2.9281007813140147e-11,
    -5.845017502295761e-12,  1.4665699100488326e-12, -3.1504033263363363e-13};
constexpr double kSecond1Far[] = {
    1.3099834570765034,      0.032865110841909496,   -0.0006238318409831399, 3.0444050789986154e-05,
    -2.2118526548887353e-06, 2.0521535392178004e-07, -2.2621940014042e-08,   2.8422704596088974e-09,
    -3.9630361992854526e-10, 6.018208019324226e-11,  -9.752672964874012e-12, 1.690121447289472e-12,
    -3.583000136853702e-13,  6.95797803969079e-14};
constexpr double kSecond1Farthest[] = {
    1.2649741025194081,      0.01157198664020356,   -8.616380356769781e-05,  1.755949853022193e-06,
    -5.6257781136699874e-08, 2.415156336232233e-09, -1.2859425074339588e-10, 8.110405397912664e-12,
    -5.879157711455886e-13,  4.914383886794886e-14, -4.454327800346553e-15};
constexpr double kFirst0Near[] = {
    0.4095726275046849,      0.004129118562213718,    0.00027577365229916655,  3.223017272198304e-05,
    -3.4251673375950057e-06, -2.8023609483751634e-06, 1.5309639388795118e-07,  2.1454260824483913e-07,
    -4.263149184377644e-08,  -1.0202457646396463e-08, 6.296311462324812e-09,   -8.507133262426872e-10,
    -3.159404141477037e-10,  1.882050791602041e-10,   -3.935751639123567e-11,  -3.104731197212674e-12,
    5.748378829674774e-12,   -1.9785785118277063e-12, -2.6814429683942085e-14, 1.4339073181279326e-13};
constexpr double kFirst0Middle[] = {
    0.4035432794386473,      0.0020851789789967817,   5.4449123098305014e-05, 3.057248874740367e-06,
    3.129849162106273e-07,   5.463621111347507e-08,   1.1372368982741195e-08, 3.317272076506643e-10,
    -1.418516960513899e-09,  -5.107963315587808e-10,  1.0279235220755053e-10, 8.843497610322122e-11,
    -1.2967329117584744e-11, -1.3311947339214168e-11, 3.1806311698402067e-12, 1.6848364028887676e-12,
    -7.023803487830111e-13,  -1.2769111705172303e-13, 8.309099554389961e-14};
constexpr double kFirst0Far[] = {
    0.40020698164667806,    0.0012832022732773708,  1.9015951982701908e-05, 5.365977494329067e-07,
    2.2916706871696705e-08, 1.3344574420664086e-09, 9.98928843495648e-11,   9.260842006383814e-12,
    1.0367753606057749e-12, 1.3783241494545708e-13, 2.1472586535766847e-14, 3.70390727962721e-15,
    7.422306076569285e-16,  2.908914852077634e-16,  9.15108456016182e-17};
constexpr double kFirst1Near[] = {
    0.3688525644848755,     -0.010915795732181956,  -0.00039840364850409914, -4.243335694329297e-05,
    2.86498299018286e-06,   3.1614151186532825e-06, -8.717321685241978e-08,  -2.390985070394215e-07,
    4.034277080658912e-08,  1.2417159097889994e-08, -6.58372229102088e-09,   7.426517603968897e-10,
    3.710757575723677e-10,  -1.963561631426273e-10, 3.732130130581265e-11,   4.584962153081729e-12,
    -6.146872051361476e-12, 1.9895981250627418e-12, 6.75952298716843e-14,    -1.559927188979644e-13};
constexpr double kFirst1Middle[] = {
    0.38546253692166127,    -0.005959623804065209,  -8.61541016259981e-05,   -4.041771061414689e-06,
    -3.768359956460479e-07, -6.230816592669317e-08, -1.2808970004297663e-08, -5.442404122323106e-10,
    1.4747459355188963e-09, 5.582592205157787e-10,  -9.819095897063804e-11,  -9.413351653879725e-11,
    1.1945585690397252e-11, 1.4112375477010092e-11, -3.0791010597892507e-12, -1.801789604245358e-12,
    7.02507175771288e-13,   1.3885523002494642e-13, -8.439879607621748e-14};
constexpr double kFirst1Far[] = {
    0.39517231431926264,     -0.0038005359369850758,  -3.128367269446103e-05,  -7.41388054453925e-07,
    -2.9072203592014007e-08, -1.6089511128074796e-09, -1.164322036022785e-10,  -1.0536071565184374e-11,
    -1.1582605219318448e-12, -1.5179978325563724e-13, -2.3377787548731615e-14, -4.000191072921168e-15,
    -7.958536031464937e-16,  -3.0759592223548834e-16, -9.616805851900146e-17};

// c[0] + c[1] t + c[2] t^2 + ..., the even and the odd powers side by side.
template <size_t n>
double Powers(const double (&c)[n], double t) {
  const double square = t * t;
  constexpr size_t kEven = (n - 1) / 2 * 2, kOdd = n / 2 * 2 - 1;
  double even = c[kEven], odd = c[kOdd];
  for (size_t k = kEven; k >= 2; k -= 2) even = even * square + c[k - 2];
  for (size_t k = kOdd; k >= 3; k -= 2) odd = odd * square + c[k - 2];
  return even + t * odd;
}

// exp(-x) I_order(x) for x > 4.
double FirstKindFar(int order, double x) {
  const double inverse = 1 / x;
  double y = 0;
  if (x <= 8) {
    const double t = (inverse - 0.1875) * 16;
    y = order == 0 ? Powers(kFirst0Near, t) : Powers(kFirst1Near, t);
  } else if (x <= 20) {
    const double t = (inverse - 0.0875) * (80.0 / 3);
    y = order == 0 ? Powers(kFirst0Middle, t) : Powers(kFirst1Middle, t);
  } else {
    const double t = (inverse - 0.025) * 40;
    y = order == 0 ? Powers(kFirst0Far, t) : Powers(kFirst1Far, t);
  }
  return y / std::sqrt(x);
}

// I_order(x) for 0 <= x <= 4.
double FirstKindNear(int order, double x) { return order == 0 ? Powers(kPowers0, x * x) : x * Powers(kPowers1, x * x); }

// y exp(x), where exp(x) alone may be infinite.
double TimesExp(double y, double x) {
  if (x < 700) return y * std::exp(x);
  const double half = std::exp(x / 2);
  return y * half * half;
}

// I_order(|x|), or exp(-|x|) times it.
double FirstKind(int order, double x, bool scaled) {
  const double size = std::abs(x);
  if (std::isinf(x)) return scaled ? 0 : kInfinity;
  if (size > 4) {
    const double y = FirstKindFar(order, size);
    return scaled ? y : TimesExp(y, size);
  }
  const double y = FirstKindNear(order, size);
  return scaled ? y * std::exp(-size) : y;
}

// K_order(x), or exp(x) times it; as in TensorFlow infinite where x is not positive.
double SecondKind(int order, double x, bool scaled) {
  if (std::isnan(x)) return x;
  if (x <= 0) return kInfinity;
  if (std::isinf(x)) return 0;
  if (x <= 0.5) {
    const double log = std::log(x / 2), square = x * x;
    const double y = order == 0 ? Powers(kLogFree0, square) - log * Powers(kPowers0, square)
                                : (Powers(kLogFree1, square) + square * log * Powers(kPowers1, square)) / x;
    return scaled ? y * std::exp(x) : y;
  }
  const double inverse = 1 / x;
  double y = 0;
  if (x <= 1) {
    const double t = (inverse - 1.5) * 2;
    y = order == 0 ? Powers(kSecond0Nearest, t) : Powers(kSecond1Nearest, t);
  } else if (x <= 2) {
    const double t = (inverse - 0.75) * 4;
    y = order == 0 ? Powers(kSecond0Near, t) : Powers(kSecond1Near, t);
  } else if (x <= 5) {
    const double t = (inverse - 0.35) * (20.0 / 3);
    y = order == 0 ? Powers(kSecond0Middle, t) : Powers(kSecond1Middle, t);
  } else if (x <= 20) {
    const double t = (inverse - 0.125) * (40.0 / 3);
    y = order == 0 ? Powers(kSecond0Far, t) : Powers(kSecond1Far, t);
  } else {
    const double t = (inverse - 0.025) * 40;
    y = order == 0 ? Powers(kSecond0Farthest, t) : Powers(kSecond1Farthest, t);
  }
  y /= std::sqrt(x);
  return scaled ? y : TimesExp(y, -x);
}

}  // namespace

double BesselI0Scaled(double x) { return FirstKind(0, x, true); }
double BesselI1Scaled(double x) { return std::copysign(FirstKind(1, x, true), x); }
double BesselI0(double x) { return FirstKind(0, x, false); }
double BesselI1(double x) { return std::copysign(FirstKind(1, x, false), x); }

double BesselK0Scaled(double x) { return SecondKind(0, x, true); }
double BesselK1Scaled(double x) { return SecondKind(1, x, true); }
double BesselK0(double x) { return SecondKind(0, x, false); }
double BesselK1(double x) { return SecondKind(1, x, false); }

double BesselJ0(double x) { return ::j0(x); }
double BesselJ1(double x) { return ::j1(x); }
double BesselY0(double x) { return x <= 0 ? -kInfinity : ::y0(x); }
double BesselY1(double x) { return x <= 0 ? -kInfinity : ::y1(x); }

}  // namespace millrace
