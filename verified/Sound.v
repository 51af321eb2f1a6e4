(** What the checker accepts is true. *)

From Coq Require Import Reals QArith Qreals Lra Lia List Arith Bool FunctionalExtensionality.
From Verified Require Import Definitions Programs Calculus Numbers NumbersSound Check.
Import ListNotations.
Open Scope R_scope.

(** A list of rationals as a point of R^d. *)
Definition vec (l : list Q) : point := fun i => Q2R (nth i l 0%Q).

Lemma vec_add u v i : vec (padd u v) i = vec u i + vec v i.
Proof.
  unfold vec. revert v i. induction u as [|a u IH]; intros [|b v] [|i]; simpl;
    rewrite ?R_0; try lra; [apply R_plus | apply IH].
Qed.

Lemma vec_scale c u i : vec (pscale c u) i = Q2R c * vec u i.
Proof.
  unfold vec, pscale. revert i. induction u as [|a u IH]; intros [|i]; simpl; rewrite ?R_0; try ring;
    [apply R_times | apply IH].
Qed.

Lemma vec_sub u v i : vec (psub u v) i = vec u i - vec v i.
Proof. unfold psub. rewrite vec_add, vec_scale, R_minus_1. ring. Qed.

Lemma encloses_exact l : encloses (map Exact l) (vec l).
Proof. intros i. unfold vec. rewrite map_nth. now apply holds_exact. Qed.

(** ** Trees *)

Lemma get_set {A} p (x : A) t q : get q (set p x t) = if Pos.eqb q p then Some x else get q t.
Proof.
  revert t q. induction p; intros [|l a r] [q|q|]; simpl; rewrite ?IHp; auto; destruct q; auto.
Qed.

Lemma key_inj i j : key i = key j -> i = j.
Proof. apply SuccNat2Pos.inj. Qed.

Lemma get_set_key {A} i (x : A) t j :
  get (key j) (set (key i) x t) = if (j =? i)%nat then Some x else get (key j) t.
Proof.
  rewrite get_set. destruct (Nat.eqb_spec j i) as [->|N]; [now rewrite Pos.eqb_refl|].
  destruct (Pos.eqb_spec (key j) (key i)) as [E|]; [now apply key_inj in E | reflexivity].
Qed.

Lemma fill_spec f n t : fill f n = Some t -> forall i e, get (key i) t = Some e ->
  (i < n)%nat /\ f i = Some e.
Proof.
  revert t. induction n; simpl; intros t H i e G.
  - injection H as <-. destruct (key i); discriminate.
  - destruct (fill f n) as [u|]; [|discriminate]. destruct (f n) eqn:F; [|discriminate].
    injection H as <-. rewrite get_set_key in G. destruct (Nat.eqb_spec i n) as [->|].
    + split; [lia | congruence].
    + destruct (IHn u eq_refl i e G). split; [lia | assumption].
Qed.

(** the sum of w (place, content) over a tree *)
Fixpoint total {A} (t : tree A) (w : positive -> A -> R) : R :=
  match t with
  | Leaf => 0
  | Node l a r =>
      total l (fun p => w (xO p)) + match a with Some x => w xH x | None => 0 end
      + total r (fun p => w (xI p))
  end.

Definition at_place {A} (p : positive) (t : tree A) (w : positive -> A -> R) : R :=
  match get p t with Some x => w p x | None => 0 end.

Lemma total_set {A} p (x : A) t w : total (set p x t) w = total t w - at_place p t w + w p x.
Proof.
  revert t w. unfold at_place.
  induction p; intros [|l a r] w; simpl; try rewrite IHp; simpl; try lra.
  all: destruct p; simpl; lra.
Qed.

(** Two trees of the same shape, whose contents are related. *)
Definition related {A B} (R : A -> B -> Prop) (a : option A) (b : option B) : Prop :=
  match a, b with Some x, Some y => R x y | None, None => True | _, _ => False end.

Fixpoint fits {A B} (R : A -> B -> Prop) (t : tree A) (s : tree B) : Prop :=
  match t, s with
  | Leaf, Leaf => True
  | Node l a r, Node l' b r' => fits R l l' /\ related R a b /\ fits R r r'
  | _, _ => False
  end.

Lemma get_fits {A B} (R : A -> B -> Prop) p t s : fits R t s -> related R (get p t) (get p s).
Proof.
  revert t s. induction p; intros [|l a r] [|l' b r']; try (cbn; tauto); intros (F & G & H);
    cbn [get]; auto.
Qed.

Lemma set_fits {A B} (R : A -> B -> Prop) p x y t s : fits R t s -> R x y ->
  fits R (set p x t) (set p y s).
Proof.
  intros F X. revert t s F.
  induction p; intros [|l a r] [|l' b r']; simpl; try tauto; intros F;
    repeat split; try tauto; apply IHp; simpl; tauto.
Qed.

Lemma total_zero {A B} (R : A -> B -> Prop) good t s w : fits R t s -> all good t = true ->
  (forall p x y, good x = true -> R x y -> w p y = 0) -> total s w = 0.
Proof.
  revert s w. induction t as [|l IHl a r IHr]; intros [|l' b r'] w; simpl; try tauto.
  rewrite !andb_true_iff. intros (Fl & Fa & Fr) [[Gl Ga] Gr] H.
  rewrite (IHl l'), (IHr r') by eauto. unfold related in Fa.
  destruct a, b; try tauto; [rewrite (H _ _ _ Ga Fa)|]; lra.
Qed.

(** ** Combinations *)

Definition place (p : positive) : nat := pred (Pos.to_nat p).

Lemma place_key i : place (key i) = i.
Proof. unfold place, key. now rewrite SuccNat2Pos.id_succ. Qed.

Notation weightR := (weight R 0).
Notation putR := (put R).
Notation scatterR := (scatter R 0 Rplus Rmult).
Notation takeR := (take R 0).
Definition real_term : Type := nat * nat * R.

(** The same combination with numbers inside the enclosures. *)
Definition inside (c : combination num) (w : combination R) : Prop := fits (fits holds) c w.
Definition matches (x : term) (y : real_term) : Prop := fst x = fst y /\ holds (snd x) (snd y).

Lemma part_fits a c w : inside c w -> fits holds (part num a c) (part R a w).
Proof.
  intros F. pose proof (get_fits _ (key a) _ _ F) as G. unfold part, related in *.
  destruct (get (key a) c), (get (key a) w); tauto.
Qed.

Lemma weight_fits a j c w : inside c w -> holds (weight num (Exact 0) a j c) (weightR a j w).
Proof.
  intros F. pose proof (get_fits _ (key j) _ _ (part_fits a _ _ F)) as G.
  unfold weight, related in *.
  destruct (get (key j) (part num a c)), (get (key j) (part R a w)); try tauto. apply holds_0.
Qed.

Lemma put_fits a j n r c w : inside c w -> holds n r -> inside (put num a j n c) (putR a j r w).
Proof. intros F H. apply set_fits; [exact F|]. apply set_fits; [now apply part_fits | exact H]. Qed.

Lemma scatter_fits n r terms reals c w : holds n r -> Forall2 matches terms reals -> inside c w ->
  inside (scatter num (Exact 0) nplus ntimes n terms c) (scatterR r reals w).
Proof.
  intros H M F. induction M as [|[[a j] q] [[a' j'] s] terms reals [E K] M IH]; simpl; [exact F|].
  simpl in E, K. injection E as <- <-. apply put_fits; [exact IH|].
  apply nplus_holds; [now apply weight_fits | now apply ntimes_holds].
Qed.

Lemma take_fits n : forall c w l r, inside c w -> Forall2 holds l r ->
  Forall2 holds (fst (take num (Exact 0) n c l)) (fst (takeR n w r))
  /\ inside (snd (take num (Exact 0) n c l)) (snd (takeR n w r)).
Proof.
  induction n; intros c w l r F L; simpl; [auto|].
  apply IHn; [apply put_fits; [exact F | apply holds_0] | constructor; [now apply weight_fits | exact L]].
Qed.

Section Tangents.

Variable tau : nat -> nat -> R.

Definition meaning (w : combination R) : R :=
  total w (fun p t => total t (fun q x => x * tau (place p) (place q))).

Fixpoint terms_sum (l : list real_term) : R :=
  match l with
  | [] => 0
  | (a, j, q) :: rest => q * tau a j + terms_sum rest
  end.

Lemma meaning_put a j q w : meaning (putR a j q w) = meaning w + (q - weightR a j w) * tau a j.
Proof.
  unfold meaning, put. rewrite !total_set, !place_key. unfold at_place, weight, part.
  rewrite !place_key. destruct (get (key a) w) as [t|]; simpl.
  - destruct (get (key j) t); lra.
  - destruct (key j); simpl; lra.
Qed.

Lemma meaning_scatter r l w : meaning (scatterR r l w) = meaning w + r * terms_sum l.
Proof.
  induction l as [|[[a j] q] l IH]; simpl; [lra|]. rewrite meaning_put, IH. lra.
Qed.

Lemma take_spec n w l g rest : takeR n w l = (g, rest) ->
  meaning w = meaning rest + sum n (fun i => nth i g 0 * tau 0 i)
  /\ forall i, nth (n + i) g 0 = nth i l 0.
Proof.
  revert w l. induction n; simpl; intros w l H.
  - injection H as <- <-. split; [lra | reflexivity].
  - destruct (IHn _ _ H) as [M N]. split.
    + rewrite meaning_put in M.
      pose proof (N 0%nat) as E. rewrite Nat.add_0_r in E. rewrite E. simpl. lra.
    + intros i. pose proof (N (S i)) as E. now rewrite Nat.add_succ_r in E.
Qed.

End Tangents.

(** the derivatives that a row promises; tau a j i: that of entry j of node a in coordinate i *)
Definition promised (tau : nat -> nat -> nat -> R) (l : list real_term) : nat -> R :=
  fun i => terms_sum (fun a j => tau a j i) l.

Lemma backward_spec tau steps : forall c w, inside c w ->
  (forall k i l, In (k, i, l) steps ->
     exists reals, Forall2 matches l reals /\ forall x, tau k i x = promised tau reals x) ->
  exists w', inside (backward steps c) w' /\
    forall x, meaning (fun a j => tau a j x) w' = meaning (fun a j => tau a j x) w.
Proof.
  induction steps as [|[[k i] l] steps IH]; intros c w F H; simpl; [eauto|].
  assert (K : forall k i l, In (k, i, l) steps ->
     exists reals, Forall2 matches l reals /\ forall x, tau k i x = promised tau reals x)
    by (intros; apply H; now right).
  destruct (is_zero (weight num (Exact 0) k i c)); [now apply IH|].
  destruct (H k i l (or_introl eq_refl)) as (reals & M & E).
  destruct (IH _ _ (scatter_fits _ _ _ _ _ _ (weight_fits k i _ _ F) M
                      (put_fits k i _ _ _ _ F holds_0)) K) as (w' & F' & G).
  exists w'. split; [exact F'|]. intros x. rewrite G, meaning_scatter, meaning_put.
  change (terms_sum (fun a j => tau a j x) reals) with (promised tau reals x). rewrite <- E. lra.
Qed.

(** ** Entries beside a ray *)

Section Ray.

Variable d : nat.
Variables y v : point.
Notation beside := (beside d y v).
Notation smooth := (smooth d y v).
Notation ray := (ray y v).

Lemma tends_poly p : tends (poly p) (Q2R (hd 0%Q p)).
Proof.
  assert (K : exists l, tends (poly p) l).
  { induction p as [|c p [l L]]; simpl; [exists 0; apply tends_const|].
    exists (Q2R c + 0 * l). apply tends_add; [apply tends_const|].
    apply tends_mul; [apply tends_id | exact L]. }
  destruct p as [|c p]; simpl; [rewrite R_0; apply tends_const|].
  assert (L : exists l, tends (poly p) l).
  { clear K. induction p as [|b p [l L]]; simpl; [exists 0; apply tends_const|].
    exists (Q2R b + 0 * l). apply tends_add; [apply tends_const|].
    apply tends_mul; [apply tends_id | exact L]. }
  destruct L as [l L].
  assert (H : tends (fun t => Q2R c + t * poly p t) (Q2R c + 0 * l))
    by (apply tends_add; [apply tends_const | apply tends_mul; [apply tends_id | exact L]]).
  now rewrite Rmult_0_l, Rplus_0_r in H.
Qed.

Definition runs (c : course) (u : point -> R) (l : R) : Prop :=
  tends (fun t => u (ray t)) l /\
  match c with
  | Poly p => soon (fun t => u (ray t) = poly p t)
  | Only n => holds n l
  end.

Lemma runs_start c u l : runs c u l -> holds (start c) l.
Proof.
  destruct c as [p|n]; intros [T H]; [|exact H]. apply holds_exact.
  eapply tends_unique; [exact T|]. eapply tends_eq; [exact H | apply tends_poly].
Qed.

Lemma cadd_runs c e u w l m : runs c u l -> runs e w m -> runs (cadd c e) (fun z => u z + w z) (l + m).
Proof.
  intros A B. split; [apply tends_add; [apply A | apply B]|].
  assert (K : holds (nplus (start c) (start e)) (l + m))
    by (apply nplus_holds; eapply runs_start; eassumption).
  destruct c, e; try exact K. destruct A as [_ A], B as [_ B].
  eapply soon_impl; [exact (soon_and _ _ A B)|]. intros t _ [-> ->]. now rewrite poly_add.
Qed.

Lemma cmul_runs c e u w l m : runs c u l -> runs e w m -> runs (cmul c e) (fun z => u z * w z) (l * m).
Proof.
  intros A B. split; [apply tends_mul; [apply A | apply B]|].
  assert (K : holds (ntimes (start c) (start e)) (l * m))
    by (apply ntimes_holds; eapply runs_start; eassumption).
  destruct c, e; try exact K. destruct A as [_ A], B as [_ B].
  eapply soon_impl; [exact (soon_and _ _ A B)|]. intros t _ [-> ->]. now rewrite poly_mul.
Qed.

Lemma const_runs q : runs (Poly [q]) (fun _ => Q2R q) (Q2R q).
Proof. split; [apply tends_const|]. apply soon_always. intros. simpl. ring. Qed.

(** What the checker knows of an entry u is so: its limit, the limit g of its gradients, its
    course, and whether it is constant. *)
Definition faithful (u : point -> R) (g : nat -> R) (e : entry) : Prop :=
  exists l, smooth u l g /\ runs (along e) u l
    /\ (constant e = true -> exists k, beside (fun z => u z = k)).

Lemma faithful_beside u w g e : beside (fun z => u z = w z) -> faithful w g e -> faithful u g e.
Proof.
  intros B (l & S & (T & R) & C). pose proof (beside_soon _ _ _ _ B) as E. exists l. split; [|split].
  - exact (smooth_local _ _ _ _ _ _ _ B S).
  - split; [exact (tends_eq _ _ _ E T)|]. destruct (along e); [|exact R].
    eapply soon_impl; [exact (soon_and _ _ E R)|]. intros t _ [-> H]. exact H.
  - intros K. destruct (C K) as [k H]. exists k.
    eapply beside_impl; [exact (beside_and _ _ _ _ _ B H)|]. intros z [-> Z]. exact Z.
Qed.

Lemma faithful_eq u w g e : (forall z, u z = w z) -> faithful w g e -> faithful u g e.
Proof. intros E. apply faithful_beside, beside_always, E. Qed.

(** Two entries are compared by the first coefficients that differ, or by their limits. *)
Lemma compare_spec c e u w l m g h : smooth u l g -> smooth w m h -> runs c u l -> runs e w m ->
  match compare c e with
  | Some Lt => beside (fun z => u z < w z)
  | Some Eq => soon (fun t => u (ray t) = w (ray t))
  | Some Gt => beside (fun z => w z < u z)
  | None => True
  end.
Proof.
  intros Su Sw Ru Rw.
  assert (K : match (if below (hi (start c)) (lo (start e)) then Some Lt
      else if below (hi (start e)) (lo (start c)) then Some Gt else None) with
    | Some Lt => beside (fun z => u z < w z)
    | Some Eq => soon (fun t => u (ray t) = w (ray t))
    | Some Gt => beside (fun z => w z < u z)
    | None => True end).
  { pose proof (runs_start _ _ _ Ru) as [A A']. pose proof (runs_start _ _ _ Rw) as [B B'].
    destruct (below (hi (start c)) (lo (start e))) eqn:L; [|destruct (below (hi (start e)) (lo (start c))) eqn:G; [|exact I]].
    - apply R_below in L. eapply smooth_lt; [exact Su | exact Sw |].
      eapply tends_lt; [apply Ru | apply Rw | lra].
    - apply R_below in G. eapply smooth_lt; [exact Sw | exact Su |].
      eapply tends_lt; [apply Rw | apply Ru | lra]. }
  unfold compare. destruct c as [p|], e as [q|]; try exact K. clear K.
  destruct Ru as [_ Ru], Rw as [_ Rw]. pose proof (sign_spec (psub p q)) as S.
  destruct (sign (psub p q)).
  - eapply soon_impl; [exact (soon_and _ _ Ru Rw)|]. intros t _ [-> ->].
    specialize (S t). rewrite poly_sub in S. lra.
  - eapply smooth_lt; [exact Su | exact Sw |].
    eapply soon_impl; [exact (soon_and _ _ S (soon_and _ _ Ru Rw))|]. intros t _ (L & -> & ->).
    rewrite poly_sub in L. lra.
  - eapply smooth_lt; [exact Sw | exact Su |].
    eapply soon_impl; [exact (soon_and _ _ S (soon_and _ _ Ru Rw))|]. intros t _ (L & -> & ->).
    rewrite poly_sub in L. lra.
Qed.

(** ** The entries of a node, those of the earlier ones being faithful *)

Section Node.

Variable tables : list table.
Variable env : point -> nat -> nat -> R.
Variable tau : nat -> nat -> nat -> R.
Hypothesis earlier : forall a j e, look tables a j = Some e ->
  faithful (fun z => env z a j) (tau a j) e.

Definition known (l : list real_term) : Prop :=
  forall a j q, In (a, j, q) l -> (a < length tables)%nat.

Lemma look_known a j e : look tables a j = Some e -> (a < length tables)%nat.
Proof.
  unfold look. destruct (nth_error tables a) eqn:E; [|discriminate].
  intros _. apply nth_error_Some. congruence.
Qed.

(** An entry is faithful, with gradients as its row promises. *)
Definition sound (u : point -> R) (e : entry) : Prop :=
  exists reals, Forall2 matches (row e) reals /\ known reals /\ faithful u (promised tau reals) e.

Lemma sound_beside u w e : beside (fun z => u z = w z) -> sound w e -> sound u e.
Proof.
  intros B (l & M & K & F). exists l. split; [exact M|]. split; [exact K|].
  eapply faithful_beside; eassumption.
Qed.

Lemma sound_eq u w e : (forall z, u z = w z) -> sound w e -> sound u e.
Proof. intros E. apply sound_beside, beside_always, E. Qed.

Definition real_of (x : nat * nat * Q) : real_term := (fst x, Q2R (snd x)).

Lemma combine_spec l e : combine tables l = Some e ->
  sound (fun z => terms_sum (env z) (map real_of l)) e.
Proof.
  intros H. exists (map real_of l). revert e H.
  induction l as [|[[a j] q] l IH]; intros e H; cbn [combine map] in *;
    cbn [real_of fst snd terms_sum].
  - injection H as <-. split; [constructor|]. split; [intros ? ? ? []|].
    exists 0. split; [apply smooth_const|]. split.
    + split; [apply tends_const|]. apply soon_always. reflexivity.
    + intros _. exists 0. now apply beside_always.
  - destruct (look tables a j) as [f|] eqn:F; [|discriminate].
    destruct (combine tables l) as [s|]; [|discriminate].
    injection H as <-. destruct (IH s eq_refl) as (M & K & m & S & R & C).
    destruct (earlier _ _ _ F) as (m' & S' & R' & C').
    split; [constructor; [split; [reflexivity | now apply holds_exact] | exact M]|]. split.
    { intros a' j' q' [E|I]; [injection E as <- <- <-; eauto using look_known | eapply K; eauto]. }
    exists (Q2R q * m' + m). split; [|split].
    + eapply smooth_ext; [|apply smooth_add; [apply smooth_scale; exact S' | exact S]].
      reflexivity.
    + exact (cadd_runs _ _ _ _ _ _ (cmul_runs _ _ (fun _ => Q2R q) _ _ _ (const_runs q) R') R).
    + cbn [constant]. rewrite andb_true_iff, orb_true_iff. intros [[Z|Z] W]; destruct (C W) as [k B].
      * exists k. eapply beside_impl; [exact B|]. simpl. intros z ->. rewrite (R_zero _ Z). ring.
      * destruct (C' Z) as [k' B']. exists (Q2R q * k' + k).
        eapply beside_impl; [exact (beside_and _ _ _ _ _ B B')|]. simpl. now intros z [-> ->].
Qed.

Lemma shift_spec u b e : sound u e -> sound (fun z => Q2R b + u z) (shift b e).
Proof.
  intros (r & M & K & l & S & R & C). exists r. split; [exact M|]. split; [exact K|].
  exists (Q2R b + l). split; [|split].
  - eapply smooth_ext; [|exact (smooth_add _ _ _ _ _ _ _ _ _ (smooth_const _ _ _ (Q2R b)) S)].
    intros. simpl. ring.
  - exact (cadd_runs _ _ (fun _ => Q2R b) _ _ _ (const_runs b) R).
  - intros Z. destruct (C Z) as [k B]. exists (Q2R b + k). eapply beside_impl; [exact B|].
    now intros z ->.
Qed.

Lemma bounded_spec e f : bounded e = Some f -> f = e.
Proof. unfold bounded. destruct (along e); [destruct (_ <=? _)%nat|]; congruence. Qed.

Lemma vanishes_spec u g e : vanishes e = true -> faithful u g e -> beside (fun z => u z = 0).
Proof.
  unfold vanishes. rewrite andb_true_iff. intros [K Z] (l & _ & (_ & R) & C).
  destruct (along e) as [p|]; [|discriminate]. pose proof (sign_spec p) as S.
  destruct (sign p); try discriminate. destruct (C K) as [k B].
  assert (k = 0) as <-; [|exact B]. apply (soon_true (k = 0)).
  eapply soon_impl; [exact (soon_and _ _ R (beside_soon _ _ _ _ B))|]. simpl.
  intros t _ [E F]. rewrite <- F, E. apply S.
Qed.

Lemma product_spec a b i e : product tables a b i = Some e ->
  sound (fun z => env z a i * env z b i) e.
Proof.
  unfold product. destruct (look tables a i) as [f|] eqn:F; [|discriminate].
  destruct (look tables b i) as [g|] eqn:E; [|discriminate].
  intros H. apply bounded_spec in H. subst e.
  pose proof (earlier _ _ _ F) as Ff. pose proof (earlier _ _ _ E) as Fg.
  destruct Ff as (l & Sl & Rl & Cl) eqn:Df. destruct Fg as (m & Sm & Rm & Cm) eqn:Dg.
  exists [(a, i, m); (b, i, l)]. split; [|split].
  - constructor; [split; [reflexivity | exact (runs_start _ _ _ Rm)]|].
    constructor; [split; [reflexivity | exact (runs_start _ _ _ Rl)] | constructor].
  - intros a' j' q' [K|[K|[]]]; injection K as <- <- <-; eauto using look_known.
  - exists (l * m). split; [|split].
    + eapply smooth_ext; [|exact (smooth_mul _ _ _ _ _ _ _ _ _ Sl Sm)].
      intros. unfold promised. simpl. ring.
    + now apply cmul_runs.
    + simpl. rewrite !orb_true_iff, andb_true_iff. intros [[[K L]|K]|K].
      * destruct (Cl K) as [k B], (Cm L) as [k' B']. exists (k * k').
        eapply beside_impl; [exact (beside_and _ _ _ _ _ B B')|]. now intros z [-> ->].
      * exists 0. eapply beside_impl; [exact (vanishes_spec _ _ _ K (earlier _ _ _ F))|].
        intros z ->. ring.
      * exists 0. eapply beside_impl; [exact (vanishes_spec _ _ _ K (earlier _ _ _ E))|].
        intros z ->. ring.
Qed.

Lemma poly_derivable p x : derivable_pt_lim (poly p) x (slope p x).
Proof.
  induction p as [|c p IH]; simpl; [apply derivable_pt_lim_const|].
  replace (poly p x + x * slope p x) with (0 + (1 * poly p x + x * slope p x)) by ring.
  apply (derivable_pt_lim_plus (fun _ => Q2R c) (fun t => t * poly p t));
    [apply derivable_pt_lim_const|].
  apply (derivable_pt_lim_mult (fun t => t) (poly p)); [apply derivable_pt_lim_id | exact IH].
Qed.

Lemma slope_continuous p x : continuity_pt (slope p) x.
Proof.
  induction p as [|c p IH]; simpl; [apply continuity_pt_const; now intros ? ?|].
  apply (continuity_pt_plus (poly p) (fun t => t * slope p t)).
  - apply derivable_continuous_pt. exists (slope p x). apply poly_derivable.
  - apply (continuity_pt_mult (fun t => t) (slope p)); [|exact IH].
    apply derivable_continuous_pt, derivable_pt_id.
Qed.

Lemma polynomial_spec cs a i e f : look tables a i = Some e -> polynomial_of cs a i e = Some f ->
  sound (fun z => poly cs (env z a i)) f.
Proof.
  intros F H. apply bounded_spec in H. subst f.
  destruct (earlier _ _ _ F) as (l & S & R & C).
  pose proof (runs_start _ _ _ R) as St.
  exists [(a, i, slope cs l)]. split; [|split].
  - constructor; [split; [reflexivity | now apply nslope_holds] | constructor].
  - intros a' j' q' [K|[]]. injection K as <- <- <-. eauto using look_known.
  - exists (poly cs l).
    assert (Sp : smooth (fun z => poly cs (env z a i)) (poly cs l) (fun x => slope cs l * tau a i x)).
    { apply (smooth_comp d y v (fun _ => True) (poly cs) (slope cs)); auto.
      - intros. apply poly_derivable.
      - apply slope_continuous.
      - now apply soon_always. }
    split; [|split].
    + eapply smooth_ext; [|exact Sp]. intros. unfold promised. simpl. ring.
    + destruct Sp as (_ & _ & T & _). split; [exact T|]. simpl.
      destruct (along e) as [p|n]; simpl; [|now apply neval_holds].
      destruct R as [_ R]. eapply soon_impl; [exact R|]. intros t _ ->. now rewrite poly_compose.
    + simpl. rewrite orb_true_iff. intros [K|K].
      * destruct (C K) as [k B]. exists (poly cs k). eapply beside_impl; [exact B|]. now intros z ->.
      * exists (poly cs 0). apply beside_always. intros z.
        destruct cs as [|c cs]; [reflexivity|]. simpl in K. simpl.
        assert (N : forall t, poly cs t = 0).
        { intros t. clear - K. induction cs as [|b cs IH]; [reflexivity|]. simpl in *.
          apply andb_true_iff in K. destruct K as [Z K]. rewrite IH, R_zero by assumption. ring. }
        rewrite !N. ring.
Qed.

Lemma select_spec u g e bs ps cs : faithful u g e -> select e bs ps = Some cs ->
  beside (fun z => piecewise bs ps (u z) = poly cs (u z)).
Proof.
  intros (l & S & R & C). revert ps.
  induction bs as [|b bs IH]; intros [|q ps] H; try discriminate.
  - injection H as <-. now apply beside_always.
  - cbn [select] in H.
    pose proof (compare_spec _ _ _ _ _ _ _ _ S (smooth_const d y v (Q2R b)) R (const_runs b)) as K.
    destruct (compare (along e) (Poly [b])) as [[]|]; [| | |discriminate].
    + destruct (constant e) eqn:Z; [|discriminate]. injection H as <-.
      destruct (C eq_refl) as [k B].
      assert (k = Q2R b) as ->.
      { apply (soon_true (k = Q2R b)).
        eapply soon_impl; [exact (soon_and _ _ K (beside_soon _ _ _ _ B))|]. simpl.
        intros t _ [E F]. now rewrite <- F. }
      eapply beside_impl; [exact B|]. simpl. intros z ->.
      destruct (Rle_dec (Q2R b) (Q2R b)); [reflexivity | lra].
    + injection H as <-. eapply beside_impl; [exact K|]. simpl. intros z L.
      destruct (Rle_dec (u z) (Q2R b)); [reflexivity | lra].
    + eapply beside_impl; [exact (beside_and _ _ _ _ _ K (IH _ H))|]. simpl. intros z [L E].
      destruct (Rle_dec (u z) (Q2R b)); [lra | exact E].
Qed.

Lemma top_spec a s n j e : top tables a s n = Some (j, e) ->
  look tables a j = Some e /\ (s <= j <= s + n)%nat.
Proof.
  revert j e. induction n; simpl; intros j e H.
  - destruct (look tables a s) eqn:E; [|discriminate]. injection H as <- <-. split; [auto | lia].
  - destruct (top tables a s n) as [[k f]|]; [|discriminate].
    destruct (look tables a (s + S n)) as [g|] eqn:E; [|discriminate].
    destruct (IHn k f eq_refl) as [A B].
    destruct (compare _ _) as [[]|]; injection H as <- <-; split; auto; lia.
Qed.

Lemma leads_spec a j e s n : look tables a j = Some e -> leads tables j e a s n = true ->
  beside (fun z => forall m, (m <= n)%nat -> env z a (s + m)%nat <= env z a j).
Proof.
  intros F.
  assert (K : forall m, ((s + m =? j)%nat ||
              match look tables a (s + m) with Some f => beats e f | None => false end) = true ->
              beside (fun z => env z a (s + m)%nat <= env z a j)).
  { intros m. rewrite orb_true_iff. intros [E|H].
    - apply Nat.eqb_eq in E. rewrite E. apply beside_always. intros. lra.
    - destruct (look tables a (s + m)) as [f|] eqn:L; [|discriminate].
      destruct (earlier _ _ _ F) as (l & Sl & Rl & Cl).
      destruct (earlier _ _ _ L) as (k & Sk & Rk & Ck).
      pose proof (compare_spec _ _ _ _ _ _ _ _ Sl Sk Rl Rk) as C. unfold beats in H.
      destruct (compare _ _) as [[]|]; try discriminate.
      + apply andb_true_iff in H. destruct H as [Ce Cf].
        destruct (Cl Ce) as [p B], (Ck Cf) as [q B'].
        assert (p = q) as <-.
        { apply (soon_true (p = q)). eapply soon_impl; [exact (soon_and _ _ C (soon_and _ _
            (beside_soon _ _ _ _ B) (beside_soon _ _ _ _ B')))|].
          simpl. intros t _ (X & Y & Z). now rewrite <- Y, X. }
        eapply beside_impl; [exact (beside_and _ _ _ _ _ B B')|]. simpl. intros z [-> ->]. lra.
      + eapply beside_impl; [exact C|]. simpl. intros. lra. }
  induction n; cbn [leads]; rewrite andb_true_iff; intros [H I].
  - eapply beside_impl; [exact (K _ H)|]. simpl. intros z E m M. now replace m with 0%nat by lia.
  - eapply beside_impl; [exact (beside_and _ _ _ _ _ (K _ H) (IHn I))|]. simpl.
    intros z [E A] m M. destruct (Nat.eq_dec m (S n)) as [->|]; [exact E | apply A; lia].
Qed.

Lemma largest_is n u k : (k <= n)%nat -> (forall m, (m <= n)%nat -> u m <= u k) -> largest n u = u k.
Proof.
  intros K H.
  assert (A : largest n u <= u k).
  { clear K. induction n; simpl; [apply H; lia|]. apply Rmax_lub; [|apply H; lia].
    apply IHn. intros. apply H. lia. }
  assert (B : forall n, (k <= n)%nat -> u k <= largest n u).
  { clear. intros n. induction n; simpl; intros K.
    - replace k with 0%nat by lia. lra.
    - destruct (Nat.eq_dec k (S n)) as [->|]; [apply Rmax_r|].
      eapply Rle_trans; [apply IHn; lia | apply Rmax_l]. }
  apply Rle_antisym; auto.
Qed.

Lemma row_max_spec a s n e : row_max tables a s n = Some e ->
  sound (fun z => largest n (fun j => env z a (s + j)%nat)) e.
Proof.
  unfold row_max. destruct (top tables a s n) as [[j f]|] eqn:T; [|discriminate].
  destruct (top_spec _ _ _ _ _ T) as [F I].
  destruct (leads tables j f a s n) eqn:L; [|discriminate].
  intros H. eapply sound_beside; [|exact (combine_spec _ _ H)].
  eapply beside_impl; [exact (leads_spec _ _ _ _ _ F L)|]. simpl. intros z E.
  rewrite (largest_is _ _ (j - s)); [|lia|].
  - rewrite R_1. replace (s + (j - s))%nat with j by lia. ring.
  - intros m M. replace (s + (j - s))%nat with j by lia. now apply E.
Qed.

(** ** Rows: norms and logarithms of sums of exponentials *)

Definition nothing : entry := {| along := Poly []; constant := false; row := [] |}.

Lemma entries_spec a n : forall s l, entries tables a s n = Some l ->
  length l = n /\ forall j, (j < n)%nat -> look tables a (s + j) = Some (nth j l nothing).
Proof.
  induction n; simpl; intros s l H; [injection H as <-; split; [reflexivity | intros; lia]|].
  destruct (look tables a s) as [e|] eqn:E; [|discriminate].
  destruct (entries tables a (S s) n) as [r|] eqn:R; [|discriminate]. injection H as <-.
  destruct (IHn _ _ R) as [L H]. split; [simpl; lia|].
  intros [|j] J; simpl; [now rewrite Nat.add_0_r|].
  rewrite <- H by lia. f_equal. lia.
Qed.

(** each number of a list is enclosed *)
Definition each (l : list num) (f : nat -> R) : Prop :=
  forall j, (j < length l)%nat -> holds (nth j l (Exact 0)) (f j).

Lemma each_map F G l f : (forall x r, holds x r -> holds (F x) (G r)) -> each l f ->
  each (map F l) (fun j => G (f j)).
Proof.
  intros H E j J. rewrite map_length in J. rewrite (nth_indep _ _ (F (Exact 0))) by now rewrite map_length.
  rewrite map_nth. auto.
Qed.

Lemma each_tail x l f : each (x :: l) f -> each l (fun j => f (S j)).
Proof. intros E j J. apply (E (S j)). simpl. lia. Qed.

Lemma nsum_holds l f : each l f -> holds (nsum l) (sum (length l) f).
Proof.
  revert f. induction l as [|x l IH]; intros f E; [apply holds_0|].
  cbn [length]. rewrite sum_front. apply nplus_holds.
  - apply (E 0%nat). simpl. lia.
  - apply IH. now apply each_tail in E.
Qed.

Lemma spread_matches a l f : forall s, each l f ->
  Forall2 matches (spread a s l) (spread a s (map f (seq 0 (length l)))).
Proof.
  revert f. induction l as [|x l IH]; intros f s E; [constructor|].
  cbn [length seq map spread]. constructor; [split; [reflexivity | apply (E 0%nat); simpl; lia]|].
  rewrite <- seq_shift, map_map. apply (IH (fun j => f (S j))). now apply each_tail in E.
Qed.

Lemma spread_known a l : forall s b j q, In (b, j, q) (spread (A:=R) a s l) -> b = a.
Proof.
  induction l as [|x l IH]; intros s b j q; simpl; [tauto|]. intros [E|I]; [congruence | eauto].
Qed.

Lemma spread_promised a f n i : forall s,
  promised tau (spread a s (map f (seq 0 n))) i = sum n (fun j => f j * tau a (s + j)%nat i).
Proof.
  revert f. induction n; intros f s; [reflexivity|].
  rewrite sum_front. cbn [seq map spread]. rewrite <- seq_shift, map_map.
  change (promised tau ((a, s, f 0%nat) :: spread a (S s) (map (fun x => f (S x)) (seq 0 n))) i)
    with (f 0%nat * tau a s i + promised tau (spread a (S s) (map (fun x => f (S x)) (seq 0 n))) i).
  rewrite IHn, Nat.add_0_r. f_equal. apply sum_ext. intros j _. f_equal. f_equal. lia.
Qed.

(** The facts about a row of entries. *)
Lemma row_facts a s n l : entries tables a s n = Some l ->
  length l = n /\ exists c : nat -> R,
    (forall j, (j < n)%nat -> smooth (fun z => env z a (s + j)%nat) (c j) (tau a (s + j)%nat)
       /\ runs (along (nth j l nothing)) (fun z => env z a (s + j)%nat) (c j))
    /\ each (map (fun e => start (along e)) l) c.
Proof.
  intros H. destruct (entries_spec _ _ _ _ H) as [L E]. split; [exact L|].
  destruct (choose n (fun j c => smooth (fun z => env z a (s + j)%nat) c (tau a (s + j)%nat)
       /\ runs (along (nth j l nothing)) (fun z => env z a (s + j)%nat) c) 0) as [c C].
  { intros j J. destruct (earlier _ _ _ (E j J)) as (k & S & R & _). eauto. }
  exists c. split; [exact C|]. intros j J. rewrite map_length, L in J.
  rewrite (nth_indep _ _ (start (along nothing))) by (rewrite map_length; lia).
  rewrite (map_nth (fun e => start (along e))). eapply runs_start, C, J.
Qed.

Lemma row_constant a s n l : entries tables a s n = Some l -> forallb constant l = true ->
  exists k : nat -> R, beside (fun z => forall j, (j < n)%nat -> env z a (s + j)%nat = k j).
Proof.
  intros H K. destruct (entries_spec _ _ _ _ H) as [L E]. rewrite forallb_forall in K.
  destruct (choose n (fun j k => beside (fun z => env z a (s + j)%nat = k)) 0) as [k B].
  { intros j J. destruct (earlier _ _ _ (E j J)) as (c & _ & _ & C). apply C, K, nth_In. lia. }
  exists k. now apply (beside_forall d y v n (fun j z => env z a (s + j)%nat = k j)).
Qed.

Lemma row_vanishes a s n l : entries tables a s n = Some l -> forallb vanishes l = true ->
  beside (fun z => forall j, (j < n)%nat -> env z a (s + j)%nat = 0).
Proof.
  intros H K. destruct (entries_spec _ _ _ _ H) as [L E]. rewrite forallb_forall in K.
  apply (beside_forall d y v n (fun j z => env z a (s + j)%nat = 0)). intros j J.
  eapply vanishes_spec; [|exact (earlier _ _ _ (E j J))]. apply K, nth_In. lia.
Qed.

Lemma entries_known a s n l : entries tables a s n = Some l -> (0 < n)%nat ->
  (a < length tables)%nat.
Proof.
  intros H P. destruct (entries_spec _ _ _ _ H) as [_ E]. eapply look_known, (E 0%nat P).
Qed.

Lemma unit_of_spec u w r a : unit_of u = Some (w, r) -> each u a ->
  0 < dot_n (length u) a /\ holds r (sqrt (dot_n (length u) a))
  /\ length w = length u /\ each w (fun j => / sqrt (dot_n (length u) a) * a j).
Proof.
  unfold unit_of. intros H E.
  assert (N : holds (nsum (map nsquare u)) (dot_n (length u) a)).
  { pose proof (nsum_holds _ _ (each_map nsquare (fun r => r * r) _ _ nsquare_holds E)) as K.
    now rewrite map_length in K. }
  destruct (nsqrt _) as [q|] eqn:Q; [|discriminate].
  destruct (nrecip q) as [i|] eqn:I; [|discriminate]. injection H as <- <-.
  destruct (nsqrt_holds _ _ Q) as [P S]. destruct (nrecip_holds _ _ I) as [_ Inv].
  split; [destruct N; lra|]. split; [now apply S|]. split; [apply map_length|].
  apply (each_map (ntimes i) (fun x => / sqrt (dot_n (length u) a) * x)); [|exact E].
  intros. apply ntimes_holds; [now apply Inv, S | assumption].
Qed.

(** All polynomials are t^k times others, whose values at 0 are the leading coefficients. *)
Lemma leading_spec fuel : forall ps, exists k qs,
  length qs = length ps /\ leading fuel ps = map (fun q => Exact (hd 0%Q q)) qs
  /\ forall j t, poly (nth j ps []) t = t ^ k * poly (nth j qs []) t.
Proof.
  induction fuel as [|m IH]; intros ps; simpl.
  - exists 0%nat, ps. split; [reflexivity|]. split; [now rewrite map_map|]. intros. simpl. ring.
  - destruct (forallb _ _) eqn:Z.
    + destruct (IH (map (@tl Q) ps)) as (k & qs & L & E & H). rewrite map_length in L.
      exists (S k), qs. split; [exact L|]. split; [exact E|]. intros j t.
      specialize (H j t). pose proof (map_nth (@tl Q) ps [] j) as N. simpl in N. rewrite N in H. clear N.
      rewrite forallb_forall in Z.
      assert (P : poly (nth j ps []) t = t * poly (tl (nth j ps [])) t).
      { destruct (Nat.lt_ge_cases j (length ps)) as [J|J].
        - destruct (nth j ps []) as [|c p] eqn:N; simpl; [ring|].
          rewrite (R_zero c); [ring|]. apply Z.
          change c with (hd 0%Q (c :: p)). rewrite <- N. apply in_map, nth_In, J.
        - rewrite nth_overflow by exact J. simpl. ring. }
      rewrite P, H. simpl. ring.
    + exists 0%nat, ps. split; [reflexivity|]. split; [now rewrite map_map|]. intros. simpl. ring.
Qed.

Lemma polynomials_spec l ps : polynomials l = Some ps ->
  length ps = length l /\ forall j, (j < length l)%nat -> along (nth j l nothing) = Poly (nth j ps []).
Proof.
  revert ps. induction l as [|e l IH]; simpl; intros ps H; [injection H as <-; split; [reflexivity|]; intros; lia|].
  destruct (along e) as [p|] eqn:E; [|discriminate].
  destruct (polynomials l) as [qs|]; [|discriminate]. injection H as <-.
  destruct (IH qs eq_refl) as [L H]. split; [simpl; lia|].
  intros [|j] J; simpl; [exact E | apply H; lia].
Qed.

Lemma row_norm_spec a s n e : row_norm tables a s n = Some e ->
  sound (fun z => sqrt (sum n (fun j => env z a (s + j)%nat * env z a (s + j)%nat))) e.
Proof.
  unfold row_norm. destruct (entries tables a s n) as [l|] eqn:H; [|discriminate].
  destruct (row_facts _ _ _ _ H) as (L & c & C & E).
  assert (T : forall w i, promised tau (spread a s (map w (seq 0 n))) i
            = sum n (fun j => w j * tau a (s + j)%nat i)) by (intros; apply spread_promised).
  assert (K : forall w, known (spread a s (map w (seq 0 n)))).
  { intros w b j q I. rewrite (spread_known _ _ _ _ _ _ I). eapply entries_known; [exact H|].
    destruct n; [destruct I | lia]. }
  destruct (unit_of (map (fun e => start (along e)) l)) as [[w r]|] eqn:U.
  - intros R. injection R as <-. destruct (unit_of_spec _ _ _ _ U E) as (P & Hr & Lw & W).
    rewrite map_length, L in P, Hr, Lw, W.
    exists (spread a s (map (fun j => / sqrt (dot_n n c) * c j) (seq 0 n))).
    pose proof (spread_matches a _ _ s W) as Mw. rewrite Lw in Mw.
    split; [exact Mw|]. split; [apply K|].
    exists (sqrt (dot_n n c)).
    pose proof (smooth_norm d y v n (fun j z => env z a (s + j)%nat) c (fun j => tau a (s + j)%nat)
                  (fun _ => 1) (fun j t => env (ray t) a (s + j)%nat) c) as S.
    assert (Sn : smooth (fun z => sqrt (sum n (fun j => env z a (s + j)%nat * env z a (s + j)%nat)))
              (sqrt (dot_n n c)) (fun i => sum n (fun j => / sqrt (dot_n n c) * c j * tau a (s + j)%nat i))).
    { apply S; [intros; now apply C | | | exact P].
      - apply soon_always. intros t _. split; [lra|]. intros. ring.
      - intros j J. destruct (C j J) as [_ [Tj _]]. exact Tj. }
    split; [|split].
    + eapply smooth_ext; [|exact Sn]. intros i _. now rewrite T.
    + split; [now destruct Sn as (_ & _ & Tn & _) | exact Hr].
    + intros Z. destruct (row_constant _ _ _ _ H Z) as [k B]. exists (sqrt (dot_n n k)).
      eapply beside_impl; [exact B|]. simpl. intros z A. f_equal. apply sum_ext. intros j J.
      now rewrite A.
  - destruct (polynomials l) as [ps|] eqn:Ps; [|discriminate].
    destruct (forallb vanishes l) eqn:V.
    + intros R. injection R as <-. apply (sound_beside _ (fun _ => 0)).
      { eapply beside_impl; [exact (row_vanishes _ _ _ _ H V)|]. simpl. intros z A.
        rewrite <- sqrt_0. f_equal. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|].
        intros j J. rewrite A by exact J. ring. }
      exists []. split; [constructor|]. split; [intros ? ? ? []|].
      exists 0. split; [apply smooth_const|]. split.
      * split; [apply tends_const|]. apply soon_always. reflexivity.
      * intros _. exists 0. now apply beside_always.
    + destruct (negb _) eqn:Z; [discriminate|]. apply negb_false_iff in Z. rewrite forallb_forall in Z.
      destruct (unit_of (leading (S highest_degree) ps)) as [[w r]|] eqn:W; [|discriminate].
      intros R. injection R as <-.
      destruct (leading_spec (S highest_degree) ps) as (k & qs & Lq & Eq & Hq). rewrite Eq in W.
      destruct (polynomials_spec _ _ Ps) as [Lp Hp].
      set (b := fun j => Q2R (hd 0%Q (nth j qs []))).
      assert (Eb : each (map (fun q => Exact (hd 0%Q q)) qs) b).
      { intros j J. rewrite map_length in J.
        rewrite (nth_indep _ _ (Exact (hd 0%Q []))) by now rewrite map_length.
        rewrite (map_nth (fun q => Exact (hd 0%Q q))). now apply holds_exact. }
      destruct (unit_of_spec _ _ _ _ W Eb) as (P & _ & Lw & Ew).
      assert (Ln : length (map (fun q => Exact (hd 0%Q q)) qs) = n) by (rewrite map_length; lia).
      rewrite Ln in P, Lw, Ew.
      assert (Zero : forall j, (j < n)%nat -> c j = 0).
      { intros j J. destruct (C j J) as [_ R]. pose proof (runs_start _ _ _ R) as St.
        rewrite Hp in St by lia. apply holds_exact in St. rewrite St. apply R_zero, Z, nth_In. lia. }
      assert (Sn : smooth (fun z => sqrt (sum n (fun j => env z a (s + j)%nat * env z a (s + j)%nat)))
              (sqrt (dot_n n c)) (fun i => sum n (fun j => / sqrt (dot_n n b) * b j * tau a (s + j)%nat i))).
      { apply (smooth_norm d y v n (fun j z => env z a (s + j)%nat) c (fun j => tau a (s + j)%nat)
                 (fun t => t ^ k) (fun j t => poly (nth j qs []) t) b); [intros; now apply C | | | exact P].
        - eapply soon_impl; [apply (soon_forall n (fun j t => env (ray t) a (s + j)%nat = poly (nth j ps []) t))|].
          + intros j J. destruct (C j J) as [_ [_ R]]. rewrite Hp in R by lia. exact R.
          + intros t Pt A. split; [now apply pow_lt|]. intros j J. rewrite A by exact J. apply Hq.
        - intros j J. apply tends_poly. }
      assert (D0 : sqrt (dot_n n c) = 0).
      { rewrite <- sqrt_0. f_equal. unfold dot_n. rewrite (sum_ext _ _ (fun _ => 0)); [apply sum_zero|].
        intros j J. rewrite Zero by exact J. ring. }
      rewrite D0 in Sn.
      exists (spread a s (map (fun j => / sqrt (dot_n n b) * b j) (seq 0 n))).
      pose proof (spread_matches a _ _ s Ew) as Mw. rewrite Lw in Mw.
      split; [exact Mw|]. split; [apply K|].
      exists 0. split; [|split].
      * eapply smooth_ext; [|exact Sn]. intros i _. now rewrite T.
      * split; [now destruct Sn as (_ & _ & Tn & _) | apply holds_0].
      * discriminate.
Qed.

Lemma nlog_holds n m : nlog n = Some m -> 0 < Q2R (lo n) /\ forall r, holds n r -> holds m (ln r).
Proof.
  unfold nlog. destruct (nrecip n) as [i|] eqn:I; [|discriminate]. intros H. injection H as <-.
  destruct (nrecip_holds _ _ I) as [P Inv]. split; [exact P|]. intros r R.
  assert (Pr : 0 < r) by (destruct R; lra).
  assert (U : forall x, 0 < x -> ln x <= x - 1).
  { intros x X. pose proof (exp_ineq1_le (ln x)) as E. rewrite exp_ln in E by exact X. lra. }
  apply range_holds. unfold Qminus. rewrite !Q2R_plus, !Q2R_opp, R_1.
  pose proof (Inv _ R) as [_ Ri]. pose proof (U r Pr). destruct R as [_ R].
  pose proof (U (/ r) (Rinv_0_lt_compat _ Pr)) as V. rewrite ln_Rinv in V by exact Pr. lra.
Qed.

Lemma logarithm_spec a i e : logarithm tables a i = Some e -> sound (fun z => ln (env z a i)) e.
Proof.
  unfold logarithm. destruct (look tables a i) as [f|] eqn:F; [|discriminate].
  destruct (nrecip _) as [r|] eqn:R; [|discriminate]. destruct (nlog _) as [l|] eqn:L; [|discriminate].
  intros H. injection H as <-. destruct (earlier _ _ _ F) as (c & S & Ru & C).
  pose proof (runs_start _ _ _ Ru) as St.
  destruct (nrecip_holds _ _ R) as [P Inv]. destruct (nlog_holds _ _ L) as [_ Lg].
  assert (Pc : 0 < c) by (destruct St; lra).
  pose proof (smooth_ln d y v _ _ _ Pc S) as Sl.
  exists [(a, i, / c)]. split; [|split].
  - constructor; [split; [reflexivity | now apply Inv] | constructor].
  - intros a' j' q' [K|[]]. injection K as <- <- <-. eauto using look_known.
  - exists (ln c). split; [|split].
    + eapply smooth_ext; [|exact Sl]. intros. unfold promised. simpl. ring.
    + split; [now destruct Sl as (_ & _ & T & _) | now apply Lg].
    + intros Z. destruct (C Z) as [k B]. exists (ln k). eapply beside_impl; [exact B|]. now intros z ->.
Qed.

Lemma power_holds m u l : Q2R (hi u) <= Q2R m -> holds u l -> holds (power m u) (exp (l - Q2R m)).
Proof.
  intros M [A B]. unfold holds, power. cbn [lo hi].
  assert (Mono : forall a b, a <= b -> exp a <= exp b).
  { intros a b [H| ->]; [left; now apply exp_increasing | lra]. }
  assert (D : forall q, Q2R (m - q) = Q2R m - Q2R q) by (intros; apply Q2R_minus).
  pose proof (exp_minus_spec (m - lo u)) as X. pose proof (exp_minus_spec (m - hi u)) as Y.
  rewrite D in X, Y. specialize (X ltac:(lra)). specialize (Y ltac:(lra)).
  pose proof (Mono (- (Q2R m - Q2R (lo u))) (l - Q2R m) ltac:(lra)).
  pose proof (Mono (l - Q2R m) (- (Q2R m - Q2R (hi u))) ltac:(lra)). lra.
Qed.

Lemma row_logsumexp_spec a s n e : row_logsumexp tables a s n = Some e ->
  sound (fun z => ln (sum n (fun j => exp (env z a (s + j)%nat)))) e.
Proof.
  unfold row_logsumexp. destruct (entries tables a s n) as [l0|] eqn:H; [|discriminate].
  destruct l0 as [|f l]; [discriminate|]. set (l0 := f :: l) in *.
  destruct (row_facts _ _ _ _ H) as (L & c & C & E).
  set (u := map (fun e => start (along e)) l0) in *.
  set (m := fold_right (fun n q => greatest (hi n) q) (hi (start (along f))) u).
  set (total := nsum (map (power m) u)).
  destruct (nrecip total) as [r|] eqn:Rc; [|discriminate].
  destruct (nlog total) as [g|] eqn:Lg; [|discriminate]. intros X. injection X as <-.
  assert (Lu : length u = n) by (unfold u; now rewrite map_length).
  assert (Top : forall x, In x u -> Q2R (hi x) <= Q2R m).
  { unfold m. generalize (hi (start (along f))). intros q0. clear. induction u as [|x u IH]; [intros ? []|].
    intros y0 [->|I]; simpl; [apply R_greatest|].
    eapply Rle_trans; [now apply IH | apply R_greatest]. }
  set (p := fun j => exp (c j - Q2R m)).
  assert (Ep : each (map (power m) u) p).
  { intros j J. rewrite map_length in J.
    rewrite (nth_indep _ _ (power m (Exact 0))) by now rewrite map_length.
    rewrite map_nth. apply power_holds; [now apply Top, nth_In | now apply E]. }
  pose proof (nsum_holds _ _ Ep) as Nt. fold total in Nt. rewrite map_length, Lu in Nt.
  destruct (nrecip_holds _ _ Rc) as [Pt Inv]. destruct (nlog_holds _ _ Lg) as [_ Log].
  set (S0 := sum n p) in *. assert (PS : 0 < S0) by (destruct Nt; lra).
  set (W := sum n (fun j => exp (c j))).
  assert (EW : forall j, exp (c j) = exp (Q2R m) * p j)
    by (intros; unfold p; rewrite <- exp_plus; f_equal; ring).
  assert (WS : W = exp (Q2R m) * S0)
    by (unfold W, S0; rewrite <- sum_scal; apply sum_ext; intros; apply EW).
  pose proof (exp_pos (Q2R m)) as Pm.
  assert (PW : 0 < W) by (rewrite WS; now apply Rmult_lt_0_compat).
  assert (Sl : smooth (fun z => ln (sum n (fun j => exp (env z a (s + j)%nat)))) (ln W)
            (fun i => / W * sum n (fun j => exp (c j) * tau a (s + j)%nat i))).
  { apply smooth_ln; [exact PW|].
    apply (smooth_sum d y v n (fun j z => exp (env z a (s + j)%nat)) (fun j => exp (c j))
             (fun j i => exp (c j) * tau a (s + j)%nat i)).
    intros j J. apply smooth_exp. now apply C. }
  exists (spread a s (map (fun j => / S0 * p j) (seq 0 n))). split; [|split].
  - assert (Ew : each (map (ntimes r) (map (power m) u)) (fun j => / S0 * p j)).
    { apply (each_map (ntimes r) (fun x => / S0 * x)); [|exact Ep].
      intros. apply ntimes_holds; [now apply Inv | assumption]. }
    pose proof (spread_matches a _ _ s Ew) as Mw. rewrite !map_length, Lu in Mw. exact Mw.
  - intros b j q I. rewrite (spread_known _ _ _ _ _ _ I). eapply entries_known; [exact H|].
    rewrite <- L. simpl. lia.
  - exists (ln W). split; [|split].
    + eapply smooth_ext; [|exact Sl]. intros i _. rewrite spread_promised, <- sum_scal.
      apply sum_ext. intros j _. rewrite EW, WS. field. split; lra.
    + split; [now destruct Sl as (_ & _ & T & _)|]. cbn [along].
      rewrite WS, ln_mult, ln_exp by assumption.
      exact (nplus_holds (Exact m) g _ _ (proj2 (holds_exact m _) eq_refl) (Log _ Nt)).
    + intros Z. destruct (row_constant _ _ _ _ H Z) as [k B].
      exists (ln (sum n (fun j => exp (k j)))). eapply beside_impl; [exact B|]. simpl. intros z A.
      f_equal. apply sum_ext. intros j J. now rewrite A.
Qed.

Lemma entry_spec n i e : entry_of tables n i = Some e -> sound (fun z => value n (env z) i) e.
Proof.
  destruct n as [a c w rows offset|args|a b|a bs ps|a c|a c|a c|a]; simpl; intros H.
  - destruct (combine _ _) as [f|] eqn:E; [|discriminate]. injection H as <-.
    eapply sound_eq; [|apply shift_spec, (combine_spec _ _ E)]. intros z. rewrite Rplus_comm. f_equal.
    clear. induction (nth (i / c) rows []) as [|[k q] l IH]; simpl; [reflexivity|].
    destruct (Qeq_bool q 0) eqn:Z; simpl; rewrite <- IH; [rewrite (R_zero _ Z)|]; ring.
  - eapply sound_eq; [|exact (combine_spec _ _ H)]. intros z. clear.
    induction args as [|a l IH]; simpl; [reflexivity | rewrite IH, R_1; ring].
  - now apply product_spec.
  - destruct (look tables a i) as [f|] eqn:F; [|discriminate].
    destruct (select f bs ps) as [cs|] eqn:S; [|discriminate].
    eapply sound_beside; [|exact (polynomial_spec _ _ _ _ _ F H)].
    eapply select_spec; [exact (earlier _ _ _ F) | exact S].
  - now apply row_max_spec.
  - now apply row_norm_spec.
  - now apply row_logsumexp_spec.
  - now apply logarithm_spec.
Qed.

End Node.

(** ** All nodes *)

Lemma promised_ext (t t' : nat -> nat -> nat -> R) l x :
  (forall a j q, In (a, j, q) l -> t a j x = t' a j x) -> promised t l x = promised t' l x.
Proof.
  unfold promised. induction l as [|[[a j] q] l IH]; simpl; intros H; [reflexivity|].
  rewrite IH by (intros; eapply H; eauto). now rewrite (H a j q) by now left.
Qed.

Lemma look_app tables t a j :
  look (tables ++ [t]) a j = if (a =? length tables)%nat then get (key j) t else look tables a j.
Proof.
  unfold look. destruct (Nat.eqb_spec a (length tables)) as [->|N].
  - now rewrite nth_error_app2, Nat.sub_diag by lia.
  - destruct (Nat.lt_ge_cases a (length tables)); [now rewrite nth_error_app1|].
    replace (nth_error tables a) with (@None table)
      by (symmetry; apply nth_error_None; lia).
    replace (nth_error (tables ++ [t]) a) with (@None table); [reflexivity|].
    symmetry. apply nth_error_None. rewrite app_length. simpl. lia.
Qed.

Lemma forward_spec l : forall sizes tables steps env tau tables' steps',
  (0 < length tables)%nat ->
  (forall a j e, look tables a j = Some e -> faithful (fun z => env z a j) (tau a j) e) ->
  (forall k i t, In (k, i, t) steps -> (k < length tables)%nat /\
     exists reals, Forall2 matches t reals /\ known tables reals
       /\ forall c, tau k i c = promised tau reals c) ->
  forward l sizes tables steps = Some (tables', steps') ->
  exists tau',
    (forall a j e, look tables' a j = Some e ->
       faithful (fun z => run (length tables) l (env z) a j) (tau' a j) e)
    /\ (forall k i t, In (k, i, t) steps' ->
         exists reals, Forall2 matches t reals /\ forall c, tau' k i c = promised tau' reals c)
    /\ (forall i c, tau' 0%nat i c = tau 0%nat i c).
Proof.
  induction l as [|n l IH]; intros sizes tables steps env tau tables' steps' Z E St H; simpl in H.
  - injection H as <- <-. exists tau. split; [exact E|]. split; [|reflexivity].
    intros k i t I. destruct (St _ _ _ I) as (_ & reals & M & _ & P). eauto.
  - destruct (node_size sizes n) as [size|]; [|discriminate].
    destruct (fill (entry_of tables n) size) as [t|] eqn:F; [|discriminate].
    set (k := length tables) in *.
    set (row_of := fun i => match get (key i) t with Some e => row e | None => [] end).
    destruct (choose size (fun i reals => Forall2 matches (row_of i) reals /\ known tables reals
        /\ forall e, get (key i) t = Some e ->
            faithful (fun z => value n (env z) i) (promised tau reals) e) []) as [real Hr].
    { intros i I. unfold row_of. destruct (get (key i) t) as [e|] eqn:G.
      - destruct (fill_spec _ _ _ F _ _ G) as [_ N].
        destruct (entry_spec tables env tau E _ _ _ N) as (reals & M & K & Fa).
        exists reals. split; [exact M|]. split; [exact K|]. intros e' E'. injection E' as <-. exact Fa.
      - exists []. split; [constructor|]. split; [intros ? ? ? []|]. discriminate. }
    set (tau1 := fun a => if (a =? k)%nat then fun i => promised tau (real i) else tau a).
    assert (Old : forall a, (a < k)%nat -> tau1 a = tau a).
    { intros a A. unfold tau1. destruct (Nat.eqb_spec a k); [lia | reflexivity]. }
    assert (New : forall r, known tables r -> forall c, promised tau1 r c = promised tau r c).
    { intros r K c. apply promised_ext. intros a j q I. rewrite Old; [reflexivity|].
      eapply K; eauto. }
    edestruct (IH (sizes ++ [size]) (tables ++ [t]) (steps_of k t size ++ steps)
                  (fun z a => if (a =? k)%nat then value n (env z) else env z a) tau1)
      as (tau' & A & B & C); [..|exact H|].
    + rewrite app_length. simpl. lia.
    + intros a j e L. rewrite look_app in L. fold k in L. unfold tau1.
      destruct (Nat.eqb_spec a k) as [->|N].
      * destruct (fill_spec _ _ _ F _ _ L) as [J _]. now apply Hr.
      * now apply E.
    + assert (W : length (tables ++ [t]) = S k) by (rewrite app_length; simpl; unfold k; lia).
      unfold known. rewrite W. intros a i r I. apply in_app_or in I. destruct I as [I|I].
      * apply in_map_iff in I. destruct I as (m & I & J). injection I as <- <- <-.
        apply in_seq in J. destruct (Hr m ltac:(lia)) as (M & K & _).
        split; [lia|]. exists (real m). split; [exact M|].
        split; [intros a j q I; specialize (K a j q I); unfold k; lia|].
        intros c. rewrite (New _ K). unfold tau1. now rewrite Nat.eqb_refl.
      * destruct (St _ _ _ I) as (P & reals & M & K & Q). split; [unfold k; lia|].
        exists reals. split; [exact M|].
        split; [intros b j q J; specialize (K b j q J); unfold k; lia|].
        intros c. rewrite (New _ K), Old by exact P. apply Q.
    + exists tau'. split; [|split; [exact B|]].
      * rewrite app_length, Nat.add_1_r in A. exact A.
      * intros i c. rewrite C, Old by exact Z. reflexivity.
Qed.

End Ray.

(** ** The limit of the gradients *)

Lemma limiting_ext d f y g g' : (forall i, (i < d)%nat -> g i = g' i) ->
  limiting_gradient d f y g -> limiting_gradient d f y g'.
Proof.
  intros E (z & h & A & B & C). exists z, h. split; [exact A|]. split; [exact B|].
  intros e He. destruct (C e He) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
  replace (dist d (h n) g') with (dist d (h n) g); [exact HN|].
  unfold dist, norm, dot. f_equal. apply sum_ext. intros i L. unfold minus. now rewrite E.
Qed.

Lemma variables_faithful d y v t : variables d y v = Some t -> forall a j e, look [t] a j = Some e ->
  faithful d (vec y) (vec v) (fun z => z j) (unit_vector j) e.
Proof.
  intros V [|a] j f I; [|destruct a; discriminate]. unfold look in I. simpl in I.
  destruct (fill_spec _ _ _ V _ _ I) as [J W]. injection W as <-.
  pose proof (smooth_coordinate d (vec y) (vec v) j J) as S.
  exists (vec y j). split; [exact S|]. split; [|discriminate].
  split; [now destruct S as (_ & _ & Ty & _)|]. cbn [along].
  apply soon_always. intros s _. unfold ray, vec.
  destruct (Qeq_bool (nth j v 0%Q) 0) eqn:N; simpl; [rewrite (R_zero _ N)|]; ring.
Qed.

Theorem limit_sound p y v g : limit p y v = Some g ->
  exists G, encloses g G /\ limiting_gradient (dimension p) (denote p) (vec y) G.
Proof.
  unfold limit. set (d := dimension p).
  destruct (variables d y v) as [t|] eqn:V; [|discriminate].
  destruct (forward _ _ _ _) as [[tables steps]|] eqn:F; [|discriminate].
  destruct (look tables (length (nodes p)) 0) as [e|] eqn:L; [|discriminate].
  destruct (take _ _ _ _ _) as [l rest] eqn:T. destruct (all _ rest) eqn:Z; [|discriminate].
  intros H. injection H as ->.
  pose proof (variables_faithful _ _ _ _ V) as E.
  destruct (forward_spec d (vec y) (vec v) (nodes p) [d] [t] [] (fun z _ => z)
              (fun _ => unit_vector) tables steps Nat.lt_0_1 E (fun _ _ _ i => match i with end) F)
    as (tau & A & B & C).
  destruct (A _ _ _ L) as (c & S & _). pose proof (smooth_limit _ _ _ _ _ _ S) as Lim.
  set (root := length (nodes p)) in *.
  assert (I0 : inside (put num root 0 (Exact 1) Leaf) (putR root 0 1 Leaf))
    by (apply put_fits; [exact I | apply holds_exact; now rewrite R_1]).
  destruct (backward_spec tau steps _ _ I0 B) as (w & Iw & M).
  destruct (take_fits d _ _ [] [] Iw (Forall2_nil _)) as [Hg Hr]. rewrite T in Hg, Hr.
  destruct (takeR d w []) as [gr rr] eqn:TR. cbn [fst snd] in *.
  exists (fun i => nth i gr 0). split.
  { intros i. clear - Hg. revert i. induction Hg; intros [|i]; simpl; auto using holds_0. }
  eapply limiting_ext; [|exact Lim]. intros i I'. cbv beta.
  set (ti := fun a j => tau a j i). change (tau root 0%nat i) with (ti root 0%nat).
  assert (M1 : meaning ti w = ti root 0%nat).
  { unfold ti. rewrite M, meaning_put. unfold meaning, weight, part. simpl.
    replace (get (key root) Leaf) with (@None (tree R)) by (destruct (key root); reflexivity).
    destruct (key 0); simpl; ring. }
  destruct (take_spec ti _ _ _ _ _ TR) as [M2 _]. rewrite M1 in M2. rewrite M2.
  assert (M0 : meaning ti rr = 0).
  { eapply (total_zero _ _ _ _ _ Hr Z). intros q x r Gx Fx. eapply (total_zero _ _ _ _ _ Fx Gx).
    intros q' x' r' Gx' Fx'. rewrite (is_zero_spec _ _ Gx' Fx'). ring. }
  rewrite M0, Rplus_0_l. rewrite <- (sum_unit d i (fun j => nth j gr 0) I').
  apply sum_ext. intros j J. unfold ti. rewrite C. unfold unit_vector. rewrite Nat.eqb_sym. ring.
Qed.

Lemma constants_faithful d y t : constants d y = Some t -> forall a j e, look [t] a j = Some e ->
  faithful d (vec y) (vec []) (fun _ => vec y j) (fun _ => 0) e.
Proof.
  intros V [|a] j f I; [|destruct a; discriminate]. unfold look in I. simpl in I.
  destruct (fill_spec _ _ _ V _ _ I) as [J W]. injection W as <-.
  exists (vec y j). split; [apply smooth_const|]. split; [apply const_runs|].
  intros _. exists (vec y j). now apply beside_always.
Qed.

Theorem value_sound p y n : value_of p y = Some n -> holds n (denote p (vec y)).
Proof.
  unfold value_of. set (d := dimension p).
  destruct (constants d y) as [t|] eqn:V; [|discriminate].
  destruct (forward _ _ _ _) as [[tables steps]|] eqn:F; [|discriminate].
  destruct (look tables (length (nodes p)) 0) as [e|] eqn:L; [|discriminate].
  intros H. injection H as <-.
  destruct (forward_spec d (vec y) (vec []) (nodes p) [d] [t] [] (fun _ _ => vec y)
              (fun _ _ _ => 0) tables steps Nat.lt_0_1 (constants_faithful _ _ _ V)
              (fun _ _ _ i => match i with end) F) as (tau & A & _).
  destruct (A _ _ _ L) as (c & _ & Ru & _). pose proof (runs_start _ _ _ _ _ Ru) as St.
  replace (denote p (vec y)) with c; [exact St|].
  destruct Ru as [T _]. eapply tends_unique; [exact T | apply tends_const].
Qed.

(** ** The claims *)

Lemma weighted_spec d (good : point -> Prop) vector l w s :
  (forall u g, vector u = Some g -> exists G, encloses g G /\ good G) ->
  weighted vector l = Some (w, s) -> 0 < Q2R w ->
  exists u, hull d good u /\ encloses s (fun i => Q2R w * u i).
Proof.
  intros V.
  assert (K : forall w s, weighted vector l = Some (w, s) ->
            exists n (a : nat -> R) (g : nat -> point),
              (forall j, (j < n)%nat -> 0 <= a j /\ good (g j)) /\ sum n a = Q2R w
              /\ encloses s (fun i => sum n (fun j => a j * g j i))).
  { induction l as [|[b u] l IH]; simpl; intros w' s' H.
    - injection H as <- <-. exists 0%nat, (fun _ => 0), (fun _ _ => 0). simpl.
      split; [intros; lia|]. split; [now rewrite R_0|].
      intros [|i]; apply holds_0.
    - pose proof (R_compare b) as P. destruct (b ?= 0)%Q; [now apply IH | discriminate |].
      destruct (weighted vector l) as [[w1 s1]|]; [|discriminate].
      destruct (vector u) as [h|] eqn:U; [|discriminate]. injection H as <- <-.
      destruct (V _ _ U) as (G & EG & Good).
      destruct (IH w1 s1 eq_refl) as (n & a & g & A & B & C).
      exists (S n), (fun j => if (j =? n)%nat then Q2R b else a j),
        (fun j => if (j =? n)%nat then G else g j).
      assert (N : forall j, (j < n)%nat -> (j =? n)%nat = false)
        by (intros; apply Nat.eqb_neq; lia).
      split; [|split].
      + intros j J. destruct (Nat.eqb_spec j n); [split; [lra | auto] | apply A; lia].
      + simpl. rewrite Nat.eqb_refl, R_plus, <- B, Rplus_comm. f_equal.
        apply sum_ext. intros j J. now rewrite N.
      + intros i. simpl. rewrite Nat.eqb_refl, Rplus_comm.
        replace (sum n _) with (sum n (fun j => a j * g j i))
          by (apply sum_ext; intros j J; now rewrite N).
        apply (encloses_add _ _ (fun i => Q2R b * G i) _ (encloses_scale b _ _ EG) C). }
  intros H P. destruct (K w s H) as (n & a & g & A & B & C).
  exists (fun i => / Q2R w * sum n (fun j => a j * g j i)). split.
  - exists n, (fun j => / Q2R w * a j), g. split; [|split].
    + intros j J. destruct (A j J). split; [|assumption].
      apply Rmult_le_pos; [|assumption]. left. now apply Rinv_0_lt_compat.
    + rewrite sum_scal, B. field. lra.
    + intros i _. rewrite <- sum_scal. apply sum_ext. intros. ring.
  - intros i. replace (Q2R w * (/ Q2R w * sum n (fun j => a j * g j i)))
      with (sum n (fun j => a j * g j i)) by (field; lra). apply C.
Qed.

Lemma short_sound f (good : point -> Prop) vector l : 0 <= Q2R (eps f) ->
  (forall u g, vector u = Some g -> exists G, encloses g G /\ good G) -> short f vector l = true ->
  exists u, hull (dimension (function f)) good u /\ norm (dimension (function f)) u <= Q2R (eps f).
Proof.
  intros P V. unfold short. destruct (weighted vector l) as [[w s]|] eqn:W; [|discriminate].
  rewrite andb_true_iff. intros [T B]. apply R_below in T. rewrite R_0 in T.
  destruct (weighted_spec (dimension (function f)) good _ _ _ _ V W T) as (u & A & C).
  exists u. split; [exact A|]. apply norm_of_square; [exact P|].
  apply R_le in B. rewrite !R_times in B.
  set (d := dimension (function f)) in *.
  pose proof (square_spec d _ _ C) as Q.
  replace (dot d (fun i => Q2R w * u i) (fun i => Q2R w * u i)) with (Q2R w * Q2R w * dot d u u) in Q.
  - apply Rmult_le_reg_l with (Q2R w * Q2R w); [now apply Rmult_lt_0_compat|]. lra.
  - unfold dot. rewrite <- sum_scal. apply sum_ext. intros. ring.
Qed.

Lemma within_sound f y : 0 <= Q2R (delta f) -> within f y = true ->
  dist (dimension (function f)) (vec y) (vec (x f)) <= Q2R (delta f).
Proof.
  unfold within. rewrite andb_true_iff. intros P [_ B].
  apply R_le in B. rewrite R_times in B. apply norm_of_square; [exact P|].
  eapply Rle_trans; [|exact B]. apply square_spec.
  intros i. pose proof (encloses_exact (psub y (x f)) i) as H. rewrite vec_sub in H. exact H.
Qed.

(** ** Bounds and affine constraints *)

Definition limit_of (o : option Q) : option R := option_map Q2R o.

Definition constraint_of (c : program * limits) : constraint :=
  {| body := denote (fst c); lower := limit_of (fst (snd c)); upper := limit_of (snd (snd c)) |}.

Lemma fits_in_sound l q : fits_in l q = true ->
  between (limit_of (fst l)) (limit_of (snd l)) (Q2R q).
Proof.
  unfold fits_in. rewrite andb_true_iff. intros [A B].
  split; intros r E; [destruct (fst l) | destruct (snd l)]; try discriminate;
    injection E as <-; now apply R_le.
Qed.

Lemma allowed_sound l q w : allowed l q w = true ->
  multiplier (limit_of (fst l)) (limit_of (snd l)) (Q2R q) (Q2R w).
Proof.
  unfold allowed. rewrite andb_true_iff, !orb_true_iff. intros [A B]. split; intros P.
  - destruct A as [A|A]; [apply R_le in A; rewrite R_0 in A; lra|].
    destruct (snd l); [|discriminate]. apply Qeq_bool_eq, Qeq_eqR in A. simpl. now rewrite A.
  - destruct B as [B|B]; [apply R_le in B; rewrite R_0 in B; lra|].
    destruct (fst l); [|discriminate]. apply Qeq_bool_eq, Qeq_eqR in B. simpl. now rewrite B.
Qed.

Lemma clarke_one d f y g : limiting_gradient d f y g -> clarke d f y g.
Proof.
  intros H. exists 1%nat, (fun _ => 1), (fun _ => g). simpl. split; [|split].
  - intros. split; [lra | exact H].
  - ring.
  - intros. ring.
Qed.

Lemma add_rows_sound d cs y rows s : (forall c, In c cs -> dimension (fst c) = d) ->
  add_rows cs y rows = Some s ->
  exists h, encloses s h /\ multiplied d (map constraint_of cs) (vec y) h.
Proof.
  intros D. revert s. induction rows as [|[k w] rows IH]; simpl; intros s H.
  - injection H as <-. exists (fun _ => 0). split; [intros [|i]; apply holds_0|].
    exists 0%nat, (fun _ => 0), (fun _ => {| body := fun _ => 0; lower := None; upper := None |}),
      (fun _ _ => 0). split; [intros; lia | reflexivity].
  - destruct (nth_error cs k) as [[p l]|] eqn:N; [|discriminate].
    destruct (add_rows cs y rows) as [r|]; [|discriminate].
    destruct (value_of p y) as [[q|]|] eqn:V; try discriminate.
    destruct (limit p y []) as [g|] eqn:G; [|discriminate].
    destruct (allowed l q w) eqn:A; [|discriminate]. injection H as <-.
    destruct (IH r eq_refl) as (h & Eh & n & a & c & gs & C & S).
    destruct (limit_sound _ _ _ _ G) as (gr & Eg & Lg).
    assert (I : In (p, l) cs) by (eapply nth_error_In; eassumption).
    rewrite (D _ I : dimension p = d) in Lg.
    apply value_sound, holds_exact in V.
    exists (fun i => Q2R w * gr i + h i). split; [now apply encloses_add; [apply encloses_scale|]|].
    exists (Datatypes.S n), (fun j => if (j =? n)%nat then Q2R w else a j),
      (fun j => if (j =? n)%nat then constraint_of (p, l) else c j),
      (fun j => if (j =? n)%nat then gr else gs j).
    assert (Ne : forall j, (j < n)%nat -> (j =? n)%nat = false)
      by (intros; apply Nat.eqb_neq; lia).
    split.
    + intros j J. destruct (Nat.eqb_spec j n); [|apply C; lia].
      split; [now apply in_map|]. cbn [constraint_of body lower upper fst snd]. rewrite V.
      split; [now apply allowed_sound | now apply clarke_one].
    + intros i Ii. simpl. rewrite Nat.eqb_refl, (S i Ii), Rplus_comm. f_equal.
      apply sum_ext. intros j J. now rewrite Ne.
Qed.

Lemma kkt_sound f y l m : 0 <= Q2R (eps f) -> within f y = true -> 0 <= Q2R (delta f) ->
  kkt f y l m = true ->
  near_kkt (dimension (function f)) (denote (function f))
    (fun i => limit_of (fst (nth i (bounds m) (None, None))))
    (fun i => limit_of (snd (nth i (bounds m) (None, None))))
    (map constraint_of (constraints m)) (vec (x f)) (Q2R (eps f)) (Q2R (delta f)).
Proof.
  intros P W D. unfold kkt. set (d := dimension (function f)). rewrite !andb_true_iff.
  intros [[B C] H]. unfold bounds_hold in B. rewrite forallb_forall in B, C.
  destruct (weighted _ l) as [[total s]|] eqn:Wt; [|discriminate].
  destruct (add_rows _ _ _) as [h|] eqn:R; [|discriminate].
  apply andb_true_iff in H. destruct H as [T H]. apply R_below in T. rewrite R_0 in T.
  apply R_le in H. rewrite !R_times in H.
  destruct (weighted_spec d (limiting_gradient d (denote (function f)) (vec y)) _ _ _ _
              (fun v g => limit_sound _ y v g) Wt T) as (u & Hu & Eu).
  assert (Cd : forall c, In c (constraints m) -> dimension (fst c) = d).
  { intros c I. specialize (C c I). unfold constraint_holds in C. rewrite !andb_true_iff in C.
    now apply Nat.eqb_eq. }
  destruct (add_rows_sound d _ _ _ _ Cd R) as (hr & Eh & Mh).
  exists (vec y), u, hr, (vec (normal m)).
  split; [now apply within_sound|]. split; [|split; [|split; [exact Hu|split; [exact Mh|]]]].
  - intros i I. specialize (B i ltac:(apply in_seq; lia)). cbv zeta in B.
    apply andb_true_iff in B. destruct B as [B1 B2].
    split; [now apply fits_in_sound | now apply allowed_sound].
  - intros c I. apply in_map_iff in I. destruct I as ([p k] & <- & I). specialize (C _ I).
    unfold constraint_holds in C. rewrite !andb_true_iff in C. destruct C as [_ C].
    cbn [fst snd] in C. destruct (value_of p y) as [[q|]|] eqn:V; try discriminate.
    apply value_sound, holds_exact in V. cbn [constraint_of body lower upper fst snd]. rewrite V.
    now apply fits_in_sound.
  - apply norm_of_square; [exact P|].
    pose proof (square_spec d _ _ (encloses_add _ _ _ _ Eu (encloses_scale total _ _
                  (encloses_add _ _ _ _ Eh (encloses_exact (normal m)))))) as Q.
    cbv beta in Q.
    replace (dot d _ _) with (Q2R total * Q2R total * dot d (fun i => u i + hr i + vec (normal m) i)
                                (fun i => u i + hr i + vec (normal m) i)) in Q.
    + apply Rmult_le_reg_l with (Q2R total * Q2R total); [now apply Rmult_lt_0_compat|]. lra.
    + unfold dot. rewrite <- sum_scal. apply sum_ext. intros. ring.
Qed.

Lemma falls_sound f z fall m : falls f z fall m = true ->
  refuted (dimension (function f)) (denote (function f))
    (fun i => limit_of (fst (nth i (bounds m) (None, None))))
    (fun i => limit_of (snd (nth i (bounds m) (None, None))))
    (map constraint_of (constraints m)) (vec (x f)) (Q2R fall).
Proof.
  unfold falls. set (d := dimension (function f)). rewrite !andb_true_iff, !forallb_forall.
  intros [[[P B] C] H]. apply R_below in P. rewrite R_0 in P. split; [exact P|].
  destruct (value_of (function f) z) as [a|] eqn:A; [|discriminate].
  destruct (value_of (function f) (x f)) as [b|] eqn:X; [|discriminate].
  apply value_sound in A, X. apply R_le in H. rewrite R_plus in H.
  exists (vec z). split; [split|].
  - intros i I. apply (fits_in_sound _ (nth i z 0%Q)), B, in_seq. lia.
  - intros c I. apply in_map_iff in I. destruct I as ([p l] & <- & I). specialize (C _ I).
    unfold stays_inside in C. apply andb_true_iff in C. destruct C as [_ C]. cbn [fst snd] in C.
    destruct (value_of p z) as [n|] eqn:V; [|discriminate]. apply value_sound in V.
    destruct V as [V1 V2].
    unfold encloses_inside in C. apply andb_true_iff in C. destruct C as [C1 C2].
    cbn [constraint_of body lower upper fst snd].
    split; intros r E; [destruct (fst l) | destruct (snd l)]; try discriminate;
      injection E as <-; [apply R_le in C1 | apply R_le in C2]; lra.
  - destruct A as [_ A], X as [X _]. lra.
Qed.

(** What a proof file claims about the function in it. *)
Definition claim (f : file) : Prop :=
  let d := dimension (function f) in
  match proof f with
  | Near _ _ => near_stationary d (denote (function f)) (vec (x f)) (Q2R (eps f)) (Q2R (delta f))
  | Goldstein _ =>
      goldstein_stationary d (denote (function f)) (vec (x f)) (Q2R (eps f)) (Q2R (delta f))
  | NearKKT _ _ m =>
      near_kkt d (denote (function f)) (fun i => limit_of (fst (nth i (bounds m) (None, None))))
        (fun i => limit_of (snd (nth i (bounds m) (None, None))))
        (map constraint_of (constraints m)) (vec (x f)) (Q2R (eps f)) (Q2R (delta f))
  | Refutation _ fall m =>
      refuted d (denote (function f)) (fun i => limit_of (fst (nth i (bounds m) (None, None))))
        (fun i => limit_of (snd (nth i (bounds m) (None, None))))
        (map constraint_of (constraints m)) (vec (x f)) (Q2R fall)
  end.

Theorem check_sound : forall f, check f = true -> well_formed (function f) = true /\ claim f.
Proof.
  intros f. unfold check, claim. rewrite !andb_true_iff. intros [[[[F _] E] D] H].
  split; [exact F|]. apply R_le in E, D. rewrite R_0 in E, D.
  destruct (proof f) as [pivot l|l|pivot l m|z fall m].
  - apply andb_true_iff in H. destruct H as [W S].
    destruct (short_sound f
                (limiting_gradient (dimension (function f)) (denote (function f)) (vec pivot))
                _ _ E (fun v g => limit_sound _ pivot v g) S) as (u & A & B).
    exists (vec pivot), u. split; [now apply within_sound|]. split; assumption.
  - eapply short_sound; [exact E | | exact H].
    intros y g L. cbv beta in L. destruct (within f y) eqn:W; [|discriminate].
    destruct (limit_sound _ _ _ _ L) as (G & EG & Lim). exists G. split; [exact EG|].
    exists (vec y). split; [now apply within_sound | exact Lim].
  - apply andb_true_iff in H. now apply (kkt_sound f pivot l m).
  - now apply (falls_sound f z fall m).
Qed.
