/* LMBM (N. Karmitsa, Fortran 77) as a peer: built by build.sh from a copy of its sources.

   Its driver calls the subroutine FUNDER, which is written here. */

#include <stdlib.h>

#include "peer.h"

static peer_ask asked;

void funder_(const int *n, const double *x, double *f, double *g, int *iterm)
{
  (void)n;
  *iterm = asked(PEER_VALUE | PEER_GRADIENT, x, f, g) == 0 ? 0 : -3;
}

void lmbmu_(int *n, int *na, int *mcu, int *mc, int *nw, double *x, double *f, double *rpar,
            int *ipar, int *iout, float *time, float *rtim, double *w);

int peer_solve(int n, double *x, peer_ask ask, double tolerance, int calls)
{
  /* Its author's recommendations for few variables and for many; 0 stands for a default. */
  int na = n < 100 ? n + 3 : 100, mcu = 15, mc = 7, out[3] = {0, 0, 0};
  int ipar[7] = {0, calls, calls, 0, -1, 0, 0};
  double rpar[8] = {1e-14, -1.0, -1e300, tolerance, tolerance, -1.0, 0.0, 0.0};
  float limit = 0.0f, used[2] = {0.0f, 0.0f};
  double f = 0.0;
  int nw = 1 + 9 * n + 2 * n * na + 3 * na + 2 * n * (mcu + 1) + 3 * (mcu + 2) * (mcu + 1) / 2
           + 9 * (mcu + 1);
  double *w = calloc((size_t)nw, sizeof *w);
  asked = ask;
  lmbmu_(&n, &na, &mcu, &mc, &nw, x, &f, rpar, ipar, out, &limit, used, w);
  free(w);
  return out[2];
}
