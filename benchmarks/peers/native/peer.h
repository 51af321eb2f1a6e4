/* What a native peer is: one function of a shared library, loaded by `benchmarks/peers/shared_library.py`.

   peer_solve minimises from x, which it overwrites with its answer, and asks through `ask`; it
   returns the peer's own code of termination. It may end when `ask` does not return 0, and must
   then not ask again. `tolerance` is what the peer's stopping test is to be set to; `calls` bounds
   its evaluations. */

enum { PEER_VALUE = 1, PEER_GRADIENT = 2 };

/* Write the value, the gradient or both (PEER_VALUE | PEER_GRADIENT) at x. */
typedef int (*peer_ask)(int what, const double *x, double *value, double *gradient);

#ifdef __cplusplus
extern "C"
#endif
int peer_solve(int n, double *x, peer_ask ask, double tolerance, int calls);
