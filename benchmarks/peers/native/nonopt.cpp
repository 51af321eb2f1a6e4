// NonOpt (F. E. Curtis and others, C++) as a peer: built by build.sh from a copy of its sources.

#include <algorithm>
#include <memory>

#include "NonOptProblem.hpp"
#include "NonOptSolver.hpp"
#include "peer.h"

namespace {

class Asked : public NonOpt::Problem {
public:
  Asked(int n, double *x, peer_ask ask) : n_(n), x_(x), ask_(ask) {}
  bool numberOfVariables(int &n) override
  {
    n = n_;
    return true;
  }
  bool initialPoint(int n, double *x) override
  {
    std::copy(x_, x_ + n, x);
    return true;
  }
  bool evaluateObjective(int, const double *x, double &f) override
  {
    return ask_(PEER_VALUE, x, &f, nullptr) == 0;
  }
  bool evaluateGradient(int, const double *x, double *g) override
  {
    return ask_(PEER_GRADIENT, x, nullptr, g) == 0;
  }
  bool finalizeSolution(int n, const double *x, double, const double *) override
  {
    std::copy(x, x + n, x_);
    return true;
  }

private:
  int n_;
  double *x_;
  peer_ask ask_;
};

} // namespace

extern "C" int peer_solve(int n, double *x, peer_ask ask, double tolerance, int calls)
{
  NonOpt::NonOptSolver solver;
  auto options = solver.options();
  options->modifyIntegerValue("print_level", 0);
  options->modifyIntegerValue("qp_print_level", 0);
  // Values and gradients are counted apart here, so it asks for each when it needs it.
  options->modifyBoolValue("evaluate_function_with_gradient", false);
  options->modifyDoubleValue("cpu_time_limit", 1e8);
  options->modifyDoubleValue("stationarity_tolerance", tolerance);
  // As in its authors' experiments on accuracy: patient where f hardly falls.
  options->modifyDoubleValue("TB_objective_similarity_tolerance", tolerance);
  options->modifyIntegerValue("TB_objective_similarity_limit", 20);
  options->modifyIntegerValue("iteration_limit", calls);
  options->modifyIntegerValue("function_evaluation_limit", calls);
  options->modifyIntegerValue("gradient_evaluation_limit", calls);
  solver.optimize(std::make_shared<Asked>(n, x, ask));
  return static_cast<int>(solver.status());
}
