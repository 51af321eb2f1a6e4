(** The checker: what is extracted and run.

    Beside the ray y + t v every entry of every node has gradients. Of an entry the checker
    keeps its course along the ray, a polynomial in t or an enclosure of its limit; whether
    it is proved to be constant; and the limit of its gradients as a combination of those of
    earlier entries. With v = 0 "beside the ray" means around y. *)

From Coq Require Import ZArith QArith List Arith Bool.
From Verified Require Import Programs Numbers.
Import ListNotations.
Open Scope Q_scope.

(** ** Tables: binary trees whose paths are the digits of a number *)

Inductive tree (A : Type) :=
  | Leaf
  | Node (left : tree A) (here : option A) (right : tree A).
Arguments Leaf {A}.
Arguments Node {A}.

Fixpoint get {A} (p : positive) (t : tree A) : option A :=
  match t, p with
  | Leaf, _ => None
  | Node _ a _, xH => a
  | Node l _ _, xO q => get q l
  | Node _ _ r, xI q => get q r
  end.

Fixpoint set {A} (p : positive) (x : A) (t : tree A) : tree A :=
  let '(l, a, r) := match t with Leaf => (Leaf, None, Leaf) | Node l a r => (l, a, r) end in
  match p with
  | xH => Node l (Some x) r
  | xO q => Node (set q x l) a r
  | xI q => Node l a (set q x r)
  end.

Fixpoint all {A} (good : A -> bool) (t : tree A) : bool :=
  match t with
  | Leaf => true
  | Node l a r => all good l && match a with Some x => good x | None => true end && all good r
  end.

Definition key (i : nat) : positive := Pos.of_succ_nat i.

(** ** Forward: every entry beside a ray *)

Inductive course := Poly (p : list Q) | Only (limit : num).

Definition start (c : course) : num := match c with Poly p => Exact (hd 0 p) | Only n => n end.

Definition cadd (c d : course) : course :=
  match c, d with
  | Poly p, Poly q => Poly (padd p q)
  | _, _ => Only (nplus (start c) (start d))
  end.

Definition cmul (c d : course) : course :=
  match c, d with
  | Poly p, Poly q => Poly (pmul p q)
  | _, _ => Only (ntimes (start c) (start d))
  end.

Definition ccompose (p : list Q) (c : course) : course :=
  match c with
  | Poly q => Poly (pcompose p q)
  | Only n => Only (neval p n)
  end.

(** Which is smaller for small t > 0, if that is decided? *)
Definition compare (c d : course) : option comparison :=
  match c, d with
  | Poly p, Poly q => Some (sign (psub p q))
  | _, _ =>
      if below (hi (start c)) (lo (start d)) then Some Lt
      else if below (hi (start d)) (lo (start c)) then Some Gt
      else None
  end.

(** (a, j, q): q times entry j of node a *)
Definition term : Type := nat * nat * num.

Record entry := { along : course; constant : bool; row : list term }.

Definition table := tree entry.

Definition look (tables : list table) (a j : nat) : option entry :=
  match nth_error tables a with
  | Some t => get (key j) t
  | None => None
  end.

Definition highest_degree : nat := 31.

Definition bounded (e : entry) : option entry :=
  match along e with
  | Poly p => if (length p <=? S highest_degree)%nat then Some e else None
  | Only _ => Some e
  end.

Section Entry.

Variable tables : list table.
Notation look := (look tables).

(** a linear combination of entries *)
Fixpoint combine (terms : list (nat * nat * Q)) : option entry :=
  match terms with
  | [] => Some {| along := Poly []; constant := true; row := [] |}
  | (a, j, q) :: rest =>
      match look a j, combine rest with
      | Some e, Some s =>
          Some {| along := cadd (cmul (Poly [q]) (along e)) (along s);
                  constant := (Qeq_bool q 0 || constant e) && constant s;
                  row := (a, j, Exact q) :: row s |}
      | _, _ => None
      end
  end.

Definition shift (b : Q) (e : entry) : entry :=
  {| along := cadd (Poly [b]) (along e); constant := constant e; row := row e |}.

Definition vanishes (e : entry) : bool :=
  constant e && match along e with
                | Poly p => match sign p with Eq => true | _ => false end
                | Only _ => false
                end.

Definition product (a b i : nat) : option entry :=
  match look a i, look b i with
  | Some e, Some f =>
      bounded {| along := cmul (along e) (along f);
                 constant := (constant e && constant f) || vanishes e || vanishes f;
                 row := [(a, i, start (along f)); (b, i, start (along e))] |}
  | _, _ => None
  end.

Definition polynomial_of (p : list Q) (a i : nat) (e : entry) : option entry :=
  bounded {| along := ccompose p (along e);
             constant := constant e || forallb (fun c => Qeq_bool c 0) (tl p);
             row := [(a, i, nslope p (start (along e)))] |}.

(** The piece that rules beside the ray. On a breakpoint the entry must be constant. *)
Fixpoint select (e : entry) (bs : list Q) (ps : list (list Q)) : option (list Q) :=
  match bs, ps with
  | b :: bs', p :: ps' =>
      match compare (along e) (Poly [b]) with
      | Some Lt => Some p
      | Some Eq => if constant e then Some p else None
      | Some Gt => select e bs' ps'
      | None => None
      end
  | [], p :: _ => Some p
  | _, [] => None
  end.

(** Which of the entries s, ..., s + n of node a is the largest beside the ray? *)
Fixpoint top (a s n : nat) : option (nat * entry) :=
  match n with
  | O => match look a s with Some e => Some (s, e) | None => None end
  | S m =>
      match top a s m, look a (s + n) with
      | Some (j, e), Some f =>
          Some (match compare (along f) (along e) with Some Gt => (s + n, f)%nat | _ => (j, e) end)
      | _, _ => None
      end
  end.

Definition beats (e f : entry) : bool :=
  match compare (along e) (along f) with
  | Some Gt => true
  | Some Eq => constant e && constant f
  | _ => false
  end.

Fixpoint leads (j : nat) (e : entry) (a s n : nat) : bool :=
  ((s + n =? j)%nat || match look a (s + n) with Some f => beats e f | None => false end)
  && match n with O => true | S m => leads j e a s m end.

Definition row_max (a s n : nat) : option entry :=
  match top a s n with
  | Some (j, e) => if leads j e a s n then combine [(a, j, 1)] else None
  | None => None
  end.

(** the entries s, ..., s + n - 1 of node a *)
Fixpoint entries (a s n : nat) : option (list entry) :=
  match n with
  | O => Some []
  | S m =>
      match look a s, entries a (S s) m with
      | Some e, Some l => Some (e :: l)
      | _, _ => None
      end
  end.

(** the terms (a, s, w), (a, s + 1, w'), ... *)
Fixpoint spread {A} (a s : nat) (weights : list A) : list (nat * nat * A) :=
  match weights with
  | [] => []
  | w :: rest => (a, s, w) :: spread a (S s) rest
  end.

Definition nsum (l : list num) : num := fold_right nplus (Exact 0) l.

(** Where all entries are 0 at y: t^k times what is returned, with the largest such k. *)
Fixpoint leading (fuel : nat) (l : list (list Q)) : list num :=
  let heads := map (hd 0) l in
  match fuel with
  | S m => if forallb (fun q => Qeq_bool q 0) heads then leading m (map (@tl Q) l)
           else map Exact heads
  | O => map Exact heads
  end.

Fixpoint polynomials (l : list entry) : option (list (list Q)) :=
  match l with
  | [] => Some []
  | e :: rest =>
      match along e, polynomials rest with
      | Poly p, Some ps => Some (p :: ps)
      | _, _ => None
      end
  end.

(** u/|u| and 1/|u|, if |u| is proved to be positive *)
Definition unit_of (u : list num) : option (list num * num) :=
  match nsqrt (nsum (map nsquare u)) with
  | Some r => match nrecip r with Some i => Some (map (ntimes i) u, r) | None => None end
  | None => None
  end.

Definition row_norm (a s n : nat) : option entry :=
  match entries a s n with
  | Some l =>
      match unit_of (map (fun e => start (along e)) l) with
      | Some (w, r) => Some {| along := Only r; constant := forallb constant l;
                               row := spread a s w |}
      | None =>
          match polynomials l with
          | Some ps =>
              if forallb vanishes l then
                Some {| along := Poly []; constant := true; row := [] |}
              else if negb (forallb (fun p => Qeq_bool (hd 0 p) 0) ps) then None
              else match unit_of (leading (S highest_degree) ps) with
                   | Some (w, _) => Some {| along := Only (Exact 0); constant := false;
                                            row := spread a s w |}
                   | None => None
                   end
          | None => None
          end
      end
  | None => None
  end.

(** log x is between 1 - 1/x and x - 1 *)
Definition nlog (n : num) : option num :=
  match nrecip n with
  | Some r => Some (range (1 - hi r) (hi n - 1))
  | None => None
  end.

Definition logarithm (a i : nat) : option entry :=
  match look a i with
  | Some e =>
      match nrecip (start (along e)), nlog (start (along e)) with
      | Some r, Some l => Some {| along := Only l; constant := constant e; row := [(a, i, r)] |}
      | _, _ => None
      end
  | None => None
  end.

(** exp(u - m) for u <= m *)
Definition power (m : Q) (u : num) : num :=
  Between (fst (exp_minus (m - lo u))) (snd (exp_minus (m - hi u))).

Definition row_logsumexp (a s n : nat) : option entry :=
  match entries a s n with
  | Some (e :: l) =>
      let u := map (fun e => start (along e)) (e :: l) in
      let m := fold_right (fun n q => greatest (hi n) q) (hi (start (along e))) u in
      let powers := map (power m) u in
      let total := nsum powers in
      match nrecip total, nlog total with
      | Some r, Some l' =>
          Some {| along := Only (nplus (Exact m) l'); constant := forallb constant (e :: l);
                  row := spread a s (map (ntimes r) powers) |}
      | _, _ => None
      end
  | _ => None
  end.

Definition entry_of (n : node) (i : nat) : option entry :=
  match n with
  | Affine a c _ rows offset =>
      let found := filter (fun e => negb (Qeq_bool (snd e) 0)) (nth (i / c) rows []) in
      match combine (map (fun e => (a, (fst e * c + i mod c)%nat, snd e)) found) with
      | Some e => Some (shift (nth i offset 0) e)
      | None => None
      end
  | Add args => combine (map (fun a => (a, i, 1)) args)
  | Multiply a b => product a b i
  | Piecewise a bs ps =>
      match look a i with
      | Some e => match select e bs ps with Some p => polynomial_of p a i e | None => None end
      | None => None
      end
  | Max a c => row_max a (i * c) (c - 1)
  | Norm2 a c => row_norm a (i * c) c
  | LogSumExp a c => row_logsumexp a (i * c) c
  | Log a => logarithm a i
  end.

(** the entries 0, ..., n - 1 of a node *)
Fixpoint fill (f : nat -> option entry) (n : nat) : option table :=
  match n with
  | O => Some Leaf
  | S m =>
      match fill f m, f m with
      | Some t, Some e => Some (set (key m) e t)
      | _, _ => None
      end
  end.

End Entry.

(** entry i of node k is a combination, as far as gradients at y are concerned *)
Definition step : Type := nat * nat * list term.

Definition steps_of (k : nat) (t : table) (n : nat) : list step :=
  map (fun i => (k, i, match get (key i) t with Some e => row e | None => [] end)) (seq 0 n).

Fixpoint forward (l : list node) (sizes : list nat) (tables : list table) (steps : list step)
  : option (list table * list step) :=
  match l with
  | [] => Some (tables, steps)
  | n :: rest =>
      match node_size sizes n with
      | Some size =>
          match fill (entry_of tables n) size with
          | Some t => forward rest (sizes ++ [size]) (tables ++ [t])
                        (steps_of (length tables) t size ++ steps)
          | None => None
          end
      | None => None
      end
  end.

Definition variables (d : nat) (y v : list Q) : option table :=
  fill (fun i => Some {| along := Poly (if Qeq_bool (nth i v 0) 0 then [nth i y 0]
                                        else [nth i y 0; nth i v 0]);
                         constant := false; row := [] |}) d.

(** ** Backward: the limit of the gradients of the last node *)

(** A linear combination of the gradients of entries; with numbers of any kind. *)
Section Combination.

Variable A : Type.
Variables (zero : A) (add mul : A -> A -> A) (is_zero : A -> bool).
Definition combination := tree (tree A).

Definition part (a : nat) (c : combination) : tree A :=
  match get (key a) c with Some t => t | None => Leaf end.

Definition weight (a j : nat) (c : combination) : A :=
  match get (key j) (part a c) with Some q => q | None => zero end.

Definition put (a j : nat) (q : A) (c : combination) : combination :=
  set (key a) (set (key j) q (part a c)) c.

Definition scatter (w : A) (terms : list (nat * nat * A)) (c : combination) : combination :=
  fold_right (fun '(a, j, q) rest => put a j (add (weight a j rest) (mul w q)) rest) c terms.

(** the weights of the variables 0, ..., n - 1, and what is left *)
Fixpoint take (n : nat) (c : combination) (l : list A) : list A * combination :=
  match n with
  | O => (l, c)
  | S m => take m (put 0 m zero c) (weight 0 m c :: l)
  end.

End Combination.

Fixpoint backward (steps : list step) (c : combination num) : combination num :=
  match steps with
  | [] => c
  | (k, i, terms) :: rest =>
      let w := weight num (Exact 0) k i c in
      backward rest (if is_zero w then c
                     else scatter num (Exact 0) nplus ntimes w terms (put num k i (Exact 0) c))
  end.

(** The limit of the gradients beside the ray, as t -> 0. *)
Definition limit (p : program) (y v : list Q) : option (list num) :=
  match variables (dimension p) y v with
  | Some t =>
      match forward (nodes p) [dimension p] [t] [] with
      | Some (tables, steps) =>
          let root := length (nodes p) in
          match look tables root 0 with
          | Some _ =>
              let '(g, rest) := take num (Exact 0) (dimension p)
                                    (backward steps (put num root 0 (Exact 1) Leaf)) [] in
              if all (all is_zero) rest then Some g else None
          | None => None
          end
      | None => None
      end
  | None => None
  end.

(** ** Convexity, from the structure of a program *)

Inductive shape := Flat | Cup | Other.

(** the derivative at b of a piece c0 + c1 t + c2 t^2 *)
Definition slope_at (p : list Q) (b : Q) : Q := nth 1 p 0 + 2 * nth 2 p 0 * b.

Definition cup_piece (p : list Q) : bool := (length p <=? 3)%nat && Qle_bool 0 (nth 2 p 0).

Fixpoint cup_pieces (bs : list Q) (ps : list (list Q)) : bool :=
  match bs, ps with
  | b :: bs', p :: (q :: _) as ps' =>
      cup_piece p && Qeq_bool (value_at p b) (value_at q b)
      && Qle_bool (slope_at p b) (slope_at q b) && cup_pieces bs' ps'
  | [], [p] => cup_piece p
  | _, _ => false
  end.

Definition is_flat (s : shape) : bool := match s with Flat => true | _ => false end.
Definition is_cup (s : shape) : bool := match s with Other => false | _ => true end.

Definition node_shape (shapes : list shape) (n : node) : shape :=
  let of a := nth a shapes Other in
  let if_flat a := if is_flat (of a) then Cup else Other in
  match n with
  | Affine a _ _ rows _ =>
      match of a with
      | Cup => if forallb (forallb (fun e => Qle_bool 0 (snd e))) rows then Cup else Other
      | s => s
      end
  | Add args =>
      if forallb (fun a => is_flat (of a)) args then Flat
      else if forallb (fun a => is_cup (of a)) args then Cup else Other
  | Multiply a b => if (a =? b)%nat then if_flat a else Other
  | Piecewise a bs ps => if ascending bs && cup_pieces bs ps then if_flat a else Other
  | Max a _ => if is_cup (of a) then Cup else Other
  | Norm2 a _ | LogSumExp a _ => if_flat a
  | Log _ => Other
  end.

Fixpoint node_shapes (l : list node) (shapes : list shape) : list shape :=
  match l with
  | [] => shapes
  | n :: rest => node_shapes rest (shapes ++ [node_shape shapes n])
  end.

Definition affine (p : program) : bool :=
  well_formed p && is_flat (nth (length (nodes p)) (node_shapes (nodes p) [Flat]) Other).

Definition convex (p : program) : bool :=
  well_formed p && is_cup (nth (length (nodes p)) (node_shapes (nodes p) [Flat]) Other).

(** ** Claims *)

(** numbers, or no limit *)
Definition limits : Type := option Q * option Q.

(** Of a KKT claim: limits of the variables, constraints with limits, multipliers as pairs of the
    number of a constraint and a weight, and a normal of the bounds. *)
Record multipliers := {
  bounds : list limits; constraints : list (program * limits);
  rows : list (nat * Q); normal : list Q }.

Inductive evidence :=
  | Near (pivot : list Q) (directions : list (Q * list Q))
  | Goldstein (points : list (Q * list Q))
  | NearKKT (pivot : list Q) (directions : list (Q * list Q)) (m : multipliers)
  | Refutation (point : list Q) (fall : Q) (m : multipliers).

Record file := { function : program; x : list Q; eps : Q; delta : Q; proof : evidence }.

(** sum of w and of w times the vector of v, over pairs (w, v) with w > 0 *)
Fixpoint weighted (vector : list Q -> option (list num)) (l : list (Q * list Q))
  : option (Q * list num) :=
  match l with
  | [] => Some (0, [])
  | (w, v) :: rest =>
      match w ?= 0, weighted vector rest with
      | Eq, r => r
      | Gt, Some (total, s) =>
          match vector v with
          | Some g => Some (plus w total, vadd (vscale w g) s)
          | None => None
          end
      | _, _ => None
      end
  end.

Definition within (f : file) (y : list Q) : bool :=
  (length y =? dimension (function f))%nat
  && Qle_bool (square (dimension (function f)) (map Exact (psub y (x f)))) (times (delta f) (delta f)).

(** Is the mean of vectors no longer than eps? *)
Definition short (f : file) (vector : list Q -> option (list num)) (l : list (Q * list Q)) : bool :=
  match weighted vector l with
  | Some (total, s) =>
      let bound := times (eps f) total in
      below 0 total
      && Qle_bool (square (dimension (function f)) s) (times bound bound)
  | None => false
  end.

(** the coordinates of y as functions that are constant: these are on every kink, and stay there *)
Definition constants (d : nat) (y : list Q) : option table :=
  fill (fun i => Some {| along := Poly [nth i y 0]; constant := true; row := [] |}) d.

(** the value at y *)
Definition value_of (p : program) (y : list Q) : option num :=
  match constants (dimension p) y with
  | Some t =>
      match forward (nodes p) [dimension p] [t] [] with
      | Some (tables, _) =>
          match look tables (length (nodes p)) 0 with
          | Some e => Some (start (along e))
          | None => None
          end
      | None => None
      end
  | None => None
  end.

Definition fits_in (l : limits) (q : Q) : bool :=
  match fst l with Some a => Qle_bool a q | None => true end
  && match snd l with Some b => Qle_bool q b | None => true end.

(** May w be a multiplier of a limit, of something whose value is q? *)
Definition allowed (l : limits) (q w : Q) : bool :=
  (Qle_bool w 0 || match snd l with Some b => Qeq_bool b q | None => false end)
  && (Qle_bool 0 w || match fst l with Some a => Qeq_bool a q | None => false end).

Definition bounds_hold (m : multipliers) (y : list Q) (d : nat) : bool :=
  forallb (fun i => let l := nth i (bounds m) (None, None) in
                    fits_in l (nth i y 0) && allowed l (nth i y 0) (nth i (normal m) 0)) (seq 0 d).

(** All constraints are affine: then KKT conditions need no qualification. *)
Definition constraint_holds (d : nat) (y : list Q) (c : program * limits) : bool :=
  (dimension (fst c) =? d)%nat && affine (fst c)
  && match value_of (fst c) y with Some (Exact q) => fits_in (snd c) q | _ => false end.

Fixpoint add_rows (cs : list (program * limits)) (y : list Q) (rows : list (nat * Q))
  : option (list num) :=
  match rows with
  | [] => Some []
  | (k, w) :: rest =>
      match nth_error cs k, add_rows cs y rest with
      | Some (p, l), Some s =>
          match value_of p y, limit p y [] with
          | Some (Exact q), Some g =>
              if allowed l q w then Some (vadd (vscale w g) s) else None
          | _, _ => None
          end
      | _, _ => None
      end
  end.

Definition kkt (f : file) (y : list Q) (l : list (Q * list Q)) (m : multipliers) : bool :=
  let d := dimension (function f) in
  bounds_hold m y d && forallb (constraint_holds d y) (constraints m)
  && match weighted (limit (function f) y) l, add_rows (constraints m) y (rows m) with
     | Some (total, s), Some h =>
         let bound := times (eps f) total in
         below 0 total
         && Qle_bool (square d (vadd s (vscale total (vadd h (map Exact (normal m))))))
              (times bound bound)
     | _, _ => false
     end.

(** Of a refutation: the point is inside, and f is lower there. Constraints need not be affine. *)
Definition encloses_inside (l : limits) (n : num) : bool :=
  match fst l with Some a => Qle_bool a (lo n) | None => true end
  && match snd l with Some b => Qle_bool (hi n) b | None => true end.

Definition stays_inside (d : nat) (z : list Q) (c : program * limits) : bool :=
  (dimension (fst c) =? d)%nat
  && match value_of (fst c) z with Some n => encloses_inside (snd c) n | None => false end.

Definition falls (f : file) (z : list Q) (fall : Q) (m : multipliers) : bool :=
  let d := dimension (function f) in
  below 0 fall
  && forallb (fun i => fits_in (nth i (bounds m) (None, None)) (nth i z 0)) (seq 0 d)
  && forallb (stays_inside d z) (constraints m)
  && match value_of (function f) z, value_of (function f) (x f) with
     | Some a, Some b => Qle_bool (plus (hi a) fall) (lo b)
     | _, _ => false
     end.

Definition check (f : file) : bool :=
  let p := function f in
  well_formed p && (length (x f) =? dimension p)%nat
  && Qle_bool 0 (eps f) && Qle_bool 0 (delta f)
  && match proof f with
     | Near pivot l => within f pivot && short f (limit p pivot) l
     | Goldstein l => short f (fun y => if within f y then limit p y [] else None) l
     | NearKKT pivot l m => within f pivot && kkt f pivot l m
     | Refutation z fall m => falls f z fall m
     end.
