(** The checker's arithmetic: rationals, polynomials, and enclosures of reals. *)

From Coq Require Import ZArith QArith List.
Import ListNotations.
Open Scope Q_scope.

(** ** Rationals in lowest terms; polynomials and vectors: lists that end with zeros *)

Definition reduced (q : Q) : Q :=
  let g := Z.gcd (Qnum q) (Zpos (Qden q)) in
  (Qnum q / g)%Z # Z.to_pos (Zpos (Qden q) / g).

Definition plus (a b : Q) : Q := reduced (a + b).
Definition times (a b : Q) : Q := reduced (a * b).

Fixpoint padd (p q : list Q) : list Q :=
  match p, q with
  | [], _ => q
  | _, [] => p
  | a :: p', b :: q' => plus a b :: padd p' q'
  end.

Definition pscale (c : Q) (p : list Q) : list Q := map (times c) p.

Fixpoint pmul (p q : list Q) : list Q :=
  match p with
  | [] => []
  | [a] => pscale a q
  | a :: p' => padd (pscale a q) (0 :: pmul p' q)
  end.

Definition psub (p q : list Q) : list Q := padd p (pscale (-1) q).

(** the polynomial p of a polynomial *)
Fixpoint pcompose (p u : list Q) : list Q :=
  match p with
  | [] => []
  | [c] => [c]
  | c :: p' => padd [c] (pmul u (pcompose p' u))
  end.

(** the sign for small t > 0: that of the first coefficient that is not 0 *)
Fixpoint sign (p : list Q) : comparison :=
  match p with
  | [] => Eq
  | c :: p' => match c ?= 0 with Eq => sign p' | s => s end
  end.

(** ** Enclosures: numbers that are known exactly, or to lie between two rationals *)

Inductive num := Exact (q : Q) | Between (lo hi : Q).

Definition lo (n : num) : Q := match n with Exact q => q | Between a _ => a end.
Definition hi (n : num) : Q := match n with Exact q => q | Between _ b => b end.

Definition grid : positive := (2 ^ 192)%positive.
Definition down (q : Q) : Q := (Qnum q * Zpos grid / Zpos (Qden q))%Z # grid.
Definition up (q : Q) : Q := - down (- q).
Definition range (a b : Q) : num := Between (down a) (up b).

Definition least (a b : Q) : Q := if Qle_bool a b then a else b.
Definition greatest (a b : Q) : Q := if Qle_bool a b then b else a.
Definition below (a b : Q) : bool := negb (Qle_bool b a).

Definition is_zero (n : num) : bool :=
  match n with Exact q => Qeq_bool q 0 | Between _ _ => false end.

Definition nplus (m n : num) : num :=
  match m, n with
  | Exact a, Exact b => Exact (plus a b)
  | _, _ => range (lo m + lo n) (hi m + hi n)
  end.

Definition ntimes (m n : num) : num :=
  match m, n with
  | Exact a, Exact b => Exact (times a b)
  | _, _ =>
      if is_zero m || is_zero n then Exact 0 else
      let a := lo m * lo n in let b := lo m * hi n in
      let c := hi m * lo n in let d := hi m * hi n in
      range (least (least a b) (least c d)) (greatest (greatest a b) (greatest c d))
  end.

Definition nsquare (n : num) : num :=
  match n with
  | Exact q => Exact (times q q)
  | Between a b =>
      let near := greatest 0 (greatest a (- b)) in
      let far := greatest (- a) b in
      range (near * near) (far * far)
  end.

(** 1/x, of what is proved to be positive *)
Definition nrecip (n : num) : option num :=
  if below 0 (lo n) then
    Some (match n with Exact q => Exact (reduced (/ q)) | Between a b => range (/ b) (/ a) end)
  else None.

(** the root of what is proved to be positive; the bounds are squared again *)
Definition root (q : Q) : Q := Z.sqrt (Qnum q * Zpos grid * Zpos grid / Zpos (Qden q)) # grid.

Definition nsqrt (n : num) : option num :=
  let a := root (lo n) in let b := root (hi n) + (1 # grid) in
  if below 0 (lo n) && Qle_bool 0 a && Qle_bool (a * a) (lo n) && Qle_bool 0 b
     && Qle_bool (hi n) (b * b)
  then Some (match n with
             | Exact q => if Qeq_bool (a * a) q then Exact (reduced a) else Between a b
             | Between _ _ => Between a b
             end)
  else None.

(** the sum of (-r)^k/k! for k = 0, ..., n, and its last term *)
Fixpoint alternating (n : nat) (r : Q) : Q * Q :=
  match n with
  | O => (1, 1)
  | S m =>
      let '(s, t) := alternating m r in
      let next := times t (times (- r) (1 # Pos.of_succ_nat m)) in
      (plus s next, next)
  end.

Fixpoint squared (k : nat) (b : Q * Q) : Q * Q :=
  match k with
  | O => b
  | S m => let '(l, h) := squared m b in (down (l * l), up (h * h))
  end.

(** bounds of exp(-q), q >= 0: the series at q/2^14, squared 14 times *)
Definition exp_minus (q : Q) : Q * Q :=
  let c := least q 1024 in
  let r := c * (1 # 16384) in
  if Qle_bool 0 (down r) && Qle_bool (up r) 1 then
    let '(l, h) := squared 14 (greatest 0 (down (fst (alternating 25 (up r)))),
                               up (fst (alternating 24 (down r)))) in
    (if Qle_bool q 1024 then l else 0, h)
  else (0, 1).

(** p(x) and p'(x) *)
Fixpoint neval (p : list Q) (x : num) : num :=
  match p with
  | [] => Exact 0
  | c :: p' => nplus (Exact c) (ntimes x (neval p' x))
  end.

Fixpoint nslope (p : list Q) (x : num) : num :=
  match p with
  | [] => Exact 0
  | c :: p' => nplus (neval p' x) (ntimes x (nslope p' x))
  end.

(** ** Vectors of numbers; what is missing is 0 *)

Fixpoint vadd (u v : list num) : list num :=
  match u, v with
  | [], _ => v
  | _, [] => u
  | a :: u', b :: v' => nplus a b :: vadd u' v'
  end.

Definition vscale (c : Q) (u : list num) : list num := map (ntimes (Exact c)) u.

(** an upper bound of the squared length of the first n entries *)
Fixpoint square (n : nat) (u : list num) : Q :=
  match n with
  | O => 0
  | S m => plus (hi (nsquare (hd (Exact 0) u))) (square m (tl u))
  end.
