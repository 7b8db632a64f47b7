// SPDX-License-Identifier: Apache-2.0
#include "client/lbfgs.h"

#include "capi/internal.h"
#include "millrace/c_api_training.h"

using millrace::Lbfgs;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::CheckArray;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct MR_Lbfgs {
  Lbfgs solver;
};

MR_Lbfgs* MR_LbfgsNew(const MR_LbfgsOptions* options, TF_Status* status) {
  return GuardedOr<MR_Lbfgs*>(status, nullptr, [&]() -> StatusOr<MR_Lbfgs*> {
    MR_CAPI_REQUIRE(options);
    MR_ASSIGN_OR_RETURN(
        Lbfgs solver,
        Lbfgs::New({.history = options->history,
                    .gradient_tolerance = options->gradient_tolerance,
                    .loss_tolerance = options->loss_tolerance,
                    .max_iterations = options->max_iterations,
                    .max_tries = options->max_tries}));
    return new MR_Lbfgs{std::move(solver)};
  });
}

void MR_LbfgsDelete(MR_Lbfgs* lbfgs) { delete lbfgs; }

void MR_LbfgsTell(MR_Lbfgs* lbfgs, const double* values, int num_values, MR_LbfgsMove* move, double* coefficients,
                  TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(lbfgs);
    MR_CAPI_REQUIRE(move);
    MR_RETURN_IF_ERROR(CheckArray(values, num_values, "values"));
    Lbfgs& solver = lbfgs->solver;
    MR_ASSIGN_OR_RETURN(
        const Lbfgs::Move next, solver.Tell(absl::MakeConstSpan(values, static_cast<size_t>(num_values))));
    switch (next) {
      case Lbfgs::Move::kTurn: move->request = MR_LBFGS_TURN; break;
      case Lbfgs::Move::kTry: move->request = MR_LBFGS_TRY; break;
      case Lbfgs::Move::kAccept: move->request = MR_LBFGS_ACCEPT; break;
      case Lbfgs::Move::kDone: move->request = MR_LBFGS_DONE; break;
    }
    move->step = solver.step();
    move->slot = solver.slot();
    move->iterations = solver.iterations();
    move->loss = solver.loss();
    move->converged = solver.converged();
    if (coefficients != nullptr) std::copy(solver.coefficients().begin(), solver.coefficients().end(), coefficients);
    return absl::OkStatus();
  });
}

const char* MR_LbfgsReason(const MR_Lbfgs* lbfgs) { return lbfgs == nullptr ? "" : lbfgs->solver.reason().c_str(); }
