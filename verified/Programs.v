(** The functions of proof files: a list of nodes, each computed from earlier ones.

    A node has a value, a sequence of reals of which the first `size` count. Node 0 is
    the unknown point; the function is entry 0 of the last node. *)

From Coq Require Import Reals QArith Qreals List Arith.
From Verified Require Import Definitions.
Import ListNotations.
Open Scope R_scope.

Inductive node :=
  | Affine (of columns width : nat) (rows : list (list (nat * Q))) (offset : list Q)
  | Add (of : list nat)
  | Multiply (of1 of2 : nat)
  | Piecewise (of : nat) (breakpoints : list Q) (pieces : list (list Q))
  | Max (of columns : nat)
  | Norm2 (of columns : nat)
  | LogSumExp (of columns : nat)
  | Log (of : nat).

Record program := { dimension : nat; nodes : list node }.

(** sum of a * u k over the pairs (k, a) of a sparse row *)
Fixpoint row_sum (row : list (nat * Q)) (u : nat -> R) : R :=
  match row with
  | [] => 0
  | (k, a) :: rest => Q2R a * u k + row_sum rest u
  end.

(** a polynomial, coefficients by ascending power *)
Fixpoint polynomial (p : list Q) (t : R) : R :=
  match p with
  | [] => 0
  | c :: rest => Q2R c + t * polynomial rest t
  end.

(** the first piece up to the first breakpoint, ..., the last one beyond the last *)
Fixpoint piecewise (breakpoints : list Q) (pieces : list (list Q)) (t : R) : R :=
  match breakpoints, pieces with
  | b :: bs, p :: ps => if Rle_dec t (Q2R b) then polynomial p t else piecewise bs ps t
  | _, p :: _ => polynomial p t
  | _, [] => 0
  end.

(** the largest of u 0, ..., u n *)
Fixpoint largest (n : nat) (u : nat -> R) : R :=
  match n with
  | O => u O
  | S m => Rmax (largest m u) (u n)
  end.

(** Entry i of a node; env a j is entry j of node a. With columns, an argument is a table
    that is stored row by row. (Logarithms of what is not positive are never accepted.) *)
Definition value (n : node) (env : nat -> nat -> R) (i : nat) : R :=
  match n with
  | Affine a c _ rows offset =>
      row_sum (nth (i / c) rows []) (fun k => env a (k * c + i mod c)%nat)
      + Q2R (nth i offset 0%Q)
  | Add args => fold_right (fun a s => env a i + s) 0 args
  | Multiply a b => env a i * env b i
  | Piecewise a bs ps => piecewise bs ps (env a i)
  | Max a c => largest (c - 1) (fun j => env a (i * c + j)%nat)
  | Norm2 a c => sqrt (sum c (fun j => env a (i * c + j)%nat * env a (i * c + j)%nat))
  | LogSumExp a c => ln (sum c (fun j => exp (env a (i * c + j)%nat)))
  | Log a => ln (env a i)
  end.

(** The values of nodes k, k + 1, ..., those of the earlier ones being given. *)
Fixpoint run (k : nat) (l : list node) (env : nat -> nat -> R) : nat -> nat -> R :=
  match l with
  | [] => env
  | n :: rest => run (S k) rest (fun a => if (a =? k)%nat then value n env else env a)
  end.

Definition denote (p : program) (x : point) : R :=
  run 1 (nodes p) (fun _ => x) (length (nodes p)) 0%nat.

(** ** Well-formed programs: sizes fit, places are in range, pieces are continuous. *)

Definition value_at (p : list Q) (t : Q) : Q := fold_right (fun c s => (c + t * s)%Q) 0%Q p.

Definition smaller (a b : Q) : bool := negb (Qle_bool b a).

Fixpoint ascending (l : list Q) : bool :=
  match l with
  | a :: (b :: _) as rest => smaller a b && ascending rest
  | _ => true
  end.

Fixpoint continuous (breakpoints : list Q) (pieces : list (list Q)) : bool :=
  match breakpoints, pieces with
  | b :: bs, p :: (q :: _) as rest => Qeq_bool (value_at p b) (value_at q b) && continuous bs rest
  | [], [_] => true
  | _, _ => false
  end.

(** The size of a node, if it is well-formed. *)
Definition node_size (sizes : list nat) (n : node) : option nat :=
  let keep (good : bool) (size : nat) := if good then Some size else None in
  match n with
  | Affine a c width rows offset =>
      match nth_error sizes a with
      | Some size =>
          keep ((0 <? c)%nat && (0 <? width)%nat && (c * width =? size)%nat
                && (0 <? length rows)%nat
                && forallb (forallb (fun e => (fst e <? width)%nat)) rows
                && ((length offset =? 0)%nat || (length offset =? length rows * c)%nat))
               (length rows * c)%nat
      | None => None
      end
  | Add args =>
      match args with
      | a :: _ =>
          match nth_error sizes a with
          | Some size =>
              keep (forallb (fun b => match nth_error sizes b with
                                      | Some s => (s =? size)%nat
                                      | None => false
                                      end) args) size
          | None => None
          end
      | [] => None
      end
  | Multiply a b =>
      match nth_error sizes a, nth_error sizes b with
      | Some s, Some t => keep (s =? t)%nat s
      | _, _ => None
      end
  | Piecewise a bs ps =>
      match nth_error sizes a with
      | Some size => keep (ascending bs && continuous bs ps) size
      | None => None
      end
  | Log a => nth_error sizes a
  | Max a c | Norm2 a c | LogSumExp a c =>
      match nth_error sizes a with
      | Some size => keep ((0 <? c)%nat && (size mod c =? 0)%nat) (size / c)%nat
      | None => None
      end
  end.

Fixpoint node_sizes (sizes : list nat) (l : list node) : option (list nat) :=
  match l with
  | [] => Some sizes
  | n :: rest =>
      match node_size sizes n with
      | Some size => node_sizes (sizes ++ [size]) rest
      | None => None
      end
  end.

Definition well_formed (p : program) : bool :=
  match node_sizes [dimension p] (nodes p) with
  | Some sizes => (last sizes 0 =? 1)%nat && (0 <? dimension p)%nat
  | None => false
  end.
