(** What is claimed: stationarity of a function of d real variables.

    Nothing here is about programs or files. A point is a sequence of reals of which
    the first d count. All sets are given by exhibiting their elements: no theorem on
    differentiability almost everywhere is needed to read them. *)

From Coq Require Import Reals List.
Open Scope R_scope.

Fixpoint sum (n : nat) (a : nat -> R) : R :=
  match n with
  | O => 0
  | S m => sum m a + a m
  end.

Definition point := nat -> R.

Section Space.

Variable d : nat.

Definition dot (u v : point) : R := sum d (fun i => u i * v i).
Definition norm (u : point) : R := sqrt (dot u u).
Definition minus (u v : point) : point := fun i => u i - v i.
Definition dist (x y : point) : R := norm (minus x y).

(** f is differentiable at y (Frechet), with gradient g. *)
Definition gradient (f : point -> R) (y g : point) : Prop :=
  forall eps, 0 < eps -> exists r, 0 < r /\
    forall z, dist z y < r -> Rabs (f z - f y - dot g (minus z y)) <= eps * dist z y.

(** g is a limit of gradients at points that converge to y. *)
Definition limiting_gradient (f : point -> R) (y g : point) : Prop :=
  exists z h : nat -> point,
    (forall n, gradient f (z n) (h n)) /\
    Un_cv (fun n => dist (z n) y) 0 /\ Un_cv (fun n => dist (h n) g) 0.

(** u is a convex combination of finitely many elements of S. *)
Definition hull (S : point -> Prop) (u : point) : Prop :=
  exists (n : nat) (w : nat -> R) (g : nat -> point),
    (forall j, (j < n)%nat -> 0 <= w j /\ S (g j)) /\
    sum n w = 1 /\
    (forall i, (i < d)%nat -> u i = sum n (fun j => w j * g j i)).

(** Clarke's subdifferential at y. *)
Definition clarke (f : point -> R) (y : point) : point -> Prop :=
  hull (limiting_gradient f y).

(** Goldstein's subdifferential at x: of the closed ball of radius delta. *)
Definition goldstein (f : point -> R) (x : point) (delta : R) : point -> Prop :=
  hull (fun g => exists y, dist y x <= delta /\ limiting_gradient f y g).

(** The two claims of a proof file. *)
Definition near_stationary (f : point -> R) (x : point) (eps delta : R) : Prop :=
  exists y u, dist y x <= delta /\ clarke f y u /\ norm u <= eps.

Definition goldstein_stationary (f : point -> R) (x : point) (eps delta : R) : Prop :=
  exists u, goldstein f x delta u /\ norm u <= eps.

(** ** Limits: lower <= t <= upper, where None is no limit *)

Definition between (lower upper : option R) (t : R) : Prop :=
  (forall a, lower = Some a -> a <= t) /\ (forall b, upper = Some b -> t <= b).

(** A multiplier is positive only at the upper limit, negative only at the lower one. *)
Definition multiplier (lower upper : option R) (t w : R) : Prop :=
  (0 < w -> upper = Some t) /\ (w < 0 -> lower = Some t).

Record constraint := { body : point -> R; lower : option R; upper : option R }.

(** h is a sum of multipliers times Clarke subgradients of constraints at y. *)
Definition multiplied (constraints : list constraint) (y h : point) : Prop :=
  exists (n : nat) (w : nat -> R) (c : nat -> constraint) (g : nat -> point),
    (forall j, (j < n)%nat ->
       In (c j) constraints /\ multiplier (lower (c j)) (upper (c j)) (body (c j) y) (w j)
       /\ clarke (body (c j)) y (g j)) /\
    (forall i, (i < d)%nat -> h i = sum n (fun j => w j * g j i)).

(** Some y inside bounds and constraints satisfies the KKT conditions up to eps; least and most
    are the bounds of the variables. *)
Definition near_kkt (f : point -> R) (least most : nat -> option R)
    (constraints : list constraint) (x : point) (eps delta : R) : Prop :=
  exists y u h n,
    dist y x <= delta /\
    (forall i, (i < d)%nat -> between (least i) (most i) (y i)
                              /\ multiplier (least i) (most i) (y i) (n i)) /\
    (forall c, In c constraints -> between (lower c) (upper c) (body c y)) /\
    clarke f y u /\ multiplied constraints y h /\
    norm (fun i => u i + h i + n i) <= eps.

(** y is inside bounds and constraints. *)
Definition inside_limits (least most : nat -> option R) (constraints : list constraint)
    (y : point) : Prop :=
  (forall i, (i < d)%nat -> between (least i) (most i) (y i)) /\
  (forall c, In c constraints -> between (lower c) (upper c) (body c y)).

(** x is no minimum: f falls by a positive number at some point inside. *)
Definition refuted (f : point -> R) (least most : nat -> option R)
    (constraints : list constraint) (x : point) (fall : R) : Prop :=
  0 < fall /\ exists z, inside_limits least most constraints z /\ f z <= f x - fall.

(** y is a minimum up to eps times the distance: on every ball of radius r, up to eps r. *)
Definition minimal (f : point -> R) (y : point) (eps : R) : Prop :=
  forall z, f z >= f y - eps * dist z y.

End Space.
