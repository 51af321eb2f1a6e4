(** The checker's arithmetic is right. *)

From Coq Require Import Reals QArith Qreals Lra Lia List Bool.
From Verified Require Import Definitions Programs Numbers.
Import ListNotations.
Open Scope R_scope.

(** ** Rationals *)

Lemma reduced_eq q : Qeq (reduced q) q.
Proof.
  destruct q as [n d]. unfold reduced, Qeq; simpl.
  set (g := Z.gcd n (Z.pos d)).
  destruct (Z.gcd_divide_l n (Z.pos d)) as [a Ha]. destruct (Z.gcd_divide_r n (Z.pos d)) as [b Hb].
  fold g in Ha, Hb.
  assert (G : (0 < g)%Z).
  { pose proof (Z.gcd_nonneg n (Z.pos d)). fold g in H.
    destruct (Z.eq_dec g 0) as [E|]; [rewrite E in Hb|]; lia. }
  assert (B : (0 < b)%Z) by nia.
  rewrite Hb, Z.div_mul, Z2Pos.id by lia. rewrite Ha, Z.div_mul by lia. ring.
Qed.

Lemma R_reduced q : Q2R (reduced q) = Q2R q.
Proof. apply Qeq_eqR, reduced_eq. Qed.

Lemma R_plus a b : Q2R (plus a b) = Q2R a + Q2R b.
Proof. unfold plus. rewrite R_reduced. apply Q2R_plus. Qed.

Lemma R_times a b : Q2R (times a b) = Q2R a * Q2R b.
Proof. unfold times. rewrite R_reduced. apply Q2R_mult. Qed.

Lemma R_0 : Q2R 0 = 0.
Proof. apply RMicromega.Q2R_0. Qed.

Lemma R_1 : Q2R 1 = 1.
Proof. apply RMicromega.Q2R_1. Qed.

Lemma R_minus_1 : Q2R (-1) = -1.
Proof. unfold Q2R. simpl. lra. Qed.

Lemma R_zero q : Qeq_bool q 0 = true -> Q2R q = 0.
Proof. intros H. apply Qeq_bool_eq, Qeq_eqR in H. now rewrite H, R_0. Qed.

Lemma R_le a b : Qle_bool a b = true -> Q2R a <= Q2R b.
Proof. intros H. now apply Qle_Rle, Qle_bool_iff. Qed.

Lemma R_below a b : below a b = true -> Q2R a < Q2R b.
Proof.
  unfold below. rewrite negb_true_iff. intros H. apply Rnot_le_lt. intros L.
  apply Rle_Qle, Qle_bool_iff in L. congruence.
Qed.

Lemma R_compare q : match (q ?= 0)%Q with
                    | Eq => Q2R q = 0 | Lt => Q2R q < 0 | Gt => 0 < Q2R q end.
Proof.
  rewrite <- R_0. destruct (Qcompare_spec q 0) as [H|H|H].
  - now apply Qeq_eqR.
  - now apply Qlt_Rlt.
  - now apply Qlt_Rlt.
Qed.

Lemma R_least a b : Q2R (least a b) <= Q2R a /\ Q2R (least a b) <= Q2R b.
Proof.
  unfold least. destruct (Qle_bool a b) eqn:E; [apply R_le in E; lra|].
  assert (below b a = true) by (unfold below; now rewrite E). apply R_below in H. lra.
Qed.

Lemma R_greatest a b : Q2R a <= Q2R (greatest a b) /\ Q2R b <= Q2R (greatest a b).
Proof.
  unfold greatest. destruct (Qle_bool a b) eqn:E; [apply R_le in E; lra|].
  assert (below b a = true) by (unfold below; now rewrite E). apply R_below in H. lra.
Qed.

Lemma R_greatest_is a b : Q2R (greatest a b) = Q2R a \/ Q2R (greatest a b) = Q2R b.
Proof. unfold greatest. destruct (Qle_bool a b); auto. Qed.

Lemma R_down q : Q2R (down q) <= Q2R q.
Proof.
  apply Qle_Rle. unfold down, Qle. cbn [Qnum Qden].
  rewrite Z.mul_comm. apply Z.mul_div_le. reflexivity.
Qed.

Lemma R_up q : Q2R q <= Q2R (up q).
Proof. unfold up. rewrite Q2R_opp. pose proof (R_down (- q)). rewrite Q2R_opp in H. lra. Qed.

(** ** Polynomials *)

Notation poly := polynomial.

Lemma poly_add p q t : poly (padd p q) t = poly p t + poly q t.
Proof.
  revert q. induction p as [|a p IH]; intros [|b q]; simpl; try lra.
  rewrite IH, R_plus. ring.
Qed.

Lemma poly_scale c p t : poly (pscale c p) t = Q2R c * poly p t.
Proof.
  induction p as [|a p IH]; [simpl; lra|].
  change (pscale c (a :: p)) with (times c a :: pscale c p). cbn [polynomial].
  rewrite IH, R_times. ring.
Qed.

Lemma poly_mul p q t : poly (pmul p q) t = poly p t * poly q t.
Proof.
  induction p as [|a [|b p] IH]; [simpl; lra | simpl; rewrite poly_scale; ring |].
  change (pmul (a :: b :: p) q) with (padd (pscale a q) (0%Q :: pmul (b :: p) q)).
  rewrite poly_add, poly_scale. cbn [polynomial]. cbn [polynomial] in IH. rewrite IH, R_0. ring.
Qed.

Lemma poly_compose p u t : poly (pcompose p u) t = poly p (poly u t).
Proof.
  induction p as [|c [|b p] IH]; [reflexivity | simpl; ring |].
  change (pcompose (c :: b :: p) u) with (padd [c] (pmul u (pcompose (b :: p) u))).
  rewrite poly_add, poly_mul, IH. simpl. ring.
Qed.

Lemma poly_sub p q t : poly (psub p q) t = poly p t - poly q t.
Proof. unfold psub. rewrite poly_add, poly_scale, R_minus_1. ring. Qed.

Lemma poly_bounded p : exists b, 0 < b /\ forall t, 0 < t < 1 -> Rabs (poly p t) <= b.
Proof.
  induction p as [|c p (b & Hb & B)]; simpl.
  - exists 1. split; [lra|]. intros. rewrite Rabs_R0. lra.
  - exists (Rabs (Q2R c) + b). pose proof (Rabs_pos (Q2R c)). split; [lra|].
    intros t Ht. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
    specialize (B t Ht). pose proof (Rabs_pos (poly p t)). rewrite (Rabs_pos_eq t) by lra. nra.
Qed.

(** The first coefficient that is not 0 decides. *)
Lemma sign_spec p :
  match sign p with
  | Eq => forall t, poly p t = 0
  | Gt => exists T, 0 < T /\ forall t, 0 < t < T -> 0 < poly p t
  | Lt => exists T, 0 < T /\ forall t, 0 < t < T -> poly p t < 0
  end.
Proof.
  assert (K : forall s c q, s * s = 1 -> 0 < s * Q2R c ->
            exists T, 0 < T /\ forall t, 0 < t < T -> 0 < s * (Q2R c + t * poly q t)).
  { intros s c q S H. destruct (poly_bounded q) as (b & Hb & B).
    exists (Rmin 1 (s * Q2R c / b)).
    split; [apply Rmin_pos; [lra | now apply Rdiv_lt_0_compat]|].
    intros t [Ht L].
    assert (L1 : t < 1) by (eapply Rlt_le_trans; [exact L | apply Rmin_l]).
    assert (M : t < s * Q2R c / b) by (eapply Rlt_le_trans; [exact L | apply Rmin_r]).
    apply (Rmult_lt_compat_r b) in M; [|assumption].
    unfold Rdiv in M. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in M by lra.
    specialize (B t (conj Ht L1)).
    assert (Rabs (s * (t * poly q t)) <= t * b).
    { rewrite !Rabs_mult, (Rabs_pos_eq t) by lra.
      replace (Rabs s) with 1 by (assert (s = 1 \/ s = -1) as [-> | ->] by nra;
                                  rewrite ?Rabs_Ropp; unfold Rabs; destruct (Rcase_abs _); lra).
      rewrite Rmult_1_l. apply Rmult_le_compat_l; lra. }
    assert (- (s * (t * poly q t)) <= Rabs (s * (t * poly q t)))
      by (rewrite <- Rabs_Ropp; apply Rle_abs).
    lra. }
  induction p as [|c p IH]; simpl; [reflexivity|].
  pose proof (R_compare c) as H. destruct (c ?= 0)%Q.
  - destruct (sign p); simpl.
    + intros t. rewrite H, IH. ring.
    + destruct IH as (T & HT & A). exists T. split; [exact HT|].
      intros t Ht. specialize (A t Ht). rewrite H. nra.
    + destruct IH as (T & HT & A). exists T. split; [exact HT|].
      intros t Ht. specialize (A t Ht). rewrite H. nra.
  - destruct (K (-1) c p ltac:(lra) ltac:(lra)) as (T & HT & A). exists T. split; [exact HT|].
    intros t Ht. specialize (A t Ht). lra.
  - destruct (K 1 c p ltac:(lra) ltac:(lra)) as (T & HT & A). exists T. split; [exact HT|].
    intros t Ht. specialize (A t Ht). lra.
Qed.

Fixpoint slope (p : list Q) (t : R) : R :=
  match p with [] => 0 | _ :: r => poly r t + t * slope r t end.

(** ** Enclosures *)

Definition holds (n : num) (r : R) : Prop := Q2R (lo n) <= r <= Q2R (hi n).

Lemma holds_exact q r : holds (Exact q) r <-> r = Q2R q.
Proof. unfold holds. simpl. split; intros; lra. Qed.

Lemma holds_0 : holds (Exact 0) 0.
Proof. apply holds_exact. symmetry. apply R_0. Qed.

Lemma is_zero_spec n r : is_zero n = true -> holds n r -> r = 0.
Proof.
  destruct n; simpl; [|discriminate]. intros H K. apply holds_exact in K. now rewrite K, R_zero.
Qed.

Lemma range_holds a b r : Q2R a <= r <= Q2R b -> holds (range a b) r.
Proof. intros H. unfold holds. simpl. pose proof (R_down a). pose proof (R_up b). lra. Qed.

Lemma nplus_holds m n r s : holds m r -> holds n s -> holds (nplus m n) (r + s).
Proof.
  intros A B. assert (K : holds (range (lo m + lo n) (hi m + hi n)) (r + s)).
  { unfold holds in A, B. apply range_holds. rewrite !Q2R_plus. lra. }
  destruct m, n; try exact K. apply holds_exact in A, B. apply holds_exact. now rewrite R_plus, A, B.
Qed.

Lemma product_above a b c d r s m : a <= r <= b -> c <= s <= d ->
  m <= a * c -> m <= a * d -> m <= b * c -> m <= b * d -> m <= r * s.
Proof.
  intros A B H1 H2 H3 H4.
  assert (X : m <= a * s) by (destruct (Rle_dec 0 a); nra).
  assert (Y : m <= b * s) by (destruct (Rle_dec 0 b); nra).
  destruct (Rle_dec 0 s); nra.
Qed.

Lemma ntimes_holds m n r s : holds m r -> holds n s -> holds (ntimes m n) (r * s).
Proof.
  intros A B.
  assert (K : holds (if is_zero m || is_zero n then Exact 0 else
      let a := (lo m * lo n)%Q in let b := (lo m * hi n)%Q in
      let c := (hi m * lo n)%Q in let d := (hi m * hi n)%Q in
      range (least (least a b) (least c d)) (greatest (greatest a b) (greatest c d))) (r * s)).
  { destruct (is_zero m || is_zero n) eqn:Z.
    - apply orb_true_iff in Z. apply holds_exact. rewrite R_0.
      destruct Z as [Z|Z]; [rewrite (is_zero_spec _ r Z A) | rewrite (is_zero_spec _ s Z B)]; ring.
    - cbv zeta. apply range_holds. unfold holds in A, B.
      set (a := (lo m * lo n)%Q). set (b := (lo m * hi n)%Q).
      set (c := (hi m * lo n)%Q). set (d := (hi m * hi n)%Q).
      assert (Ea : Q2R a = Q2R (lo m) * Q2R (lo n)) by apply Q2R_mult.
      assert (Eb : Q2R b = Q2R (lo m) * Q2R (hi n)) by apply Q2R_mult.
      assert (Ec : Q2R c = Q2R (hi m) * Q2R (lo n)) by apply Q2R_mult.
      assert (Ed : Q2R d = Q2R (hi m) * Q2R (hi n)) by apply Q2R_mult.
      pose proof (R_least a b). pose proof (R_least c d).
      pose proof (R_least (least a b) (least c d)).
      pose proof (R_greatest a b). pose proof (R_greatest c d).
      pose proof (R_greatest (greatest a b) (greatest c d)). split.
      + eapply product_above; [exact A | exact B | ..]; lra.
      + apply Ropp_le_cancel. replace (- (r * s)) with (r * - s) by ring.
        eapply (product_above _ _ (- Q2R (hi n)) (- Q2R (lo n))); [exact A | lra | ..]; lra. }
  destruct m, n; try exact K. apply holds_exact in A, B. apply holds_exact. now rewrite R_times, A, B.
Qed.

Lemma nsquare_holds n r : holds n r -> holds (nsquare n) (r * r).
Proof.
  destruct n as [q|a b]; intros H.
  - apply holds_exact in H. apply holds_exact. now rewrite R_times, H.
  - unfold holds in H. simpl in H. simpl. apply range_holds. rewrite !Q2R_mult.
    pose proof (R_greatest (- a) b) as F. rewrite Q2R_opp in F. split.
    + set (g := greatest 0 (greatest a (- b))).
      assert (Q2R g = 0 \/ Q2R g = Q2R a /\ 0 <= Q2R a \/ Q2R g = - Q2R b /\ 0 <= - Q2R b).
      { unfold g. pose proof (R_greatest 0 (greatest a (- b))) as P. rewrite R_0 in P.
        destruct (R_greatest_is 0 (greatest a (- b))) as [->|E]; [left; apply R_0|].
        destruct (R_greatest_is a (- b)) as [E'|E']; [|rewrite Q2R_opp in E']; lra. }
      nra.
    + nra.
Qed.

Lemma nrecip_holds n m : nrecip n = Some m ->
  0 < Q2R (lo n) /\ forall r, holds n r -> holds m (/ r).
Proof.
  unfold nrecip. destruct (below 0 (lo n)) eqn:P; [|discriminate].
  apply R_below in P. rewrite R_0 in P. intros H. injection H as <-. split; [exact P|].
  assert (N : forall q, 0 < Q2R q -> ~ Qeq q 0).
  { intros q Hq E. apply Qeq_eqR in E. rewrite E, R_0 in Hq. lra. }
  destruct n as [q|a b]; intros r H.
  - apply holds_exact in H. apply holds_exact. rewrite R_reduced, Q2R_inv by auto. now rewrite H.
  - unfold holds in H. simpl in H, P. apply range_holds.
    rewrite !Q2R_inv by (apply N; lra). split; apply Rinv_le_contravar; lra.
Qed.

Lemma nsqrt_holds n m : nsqrt n = Some m ->
  0 < Q2R (lo n) /\ forall r, holds n r -> holds m (sqrt r).
Proof.
  unfold nsqrt. cbv zeta. set (a := root (lo n)). set (b := (root (hi n) + (1 # grid))%Q).
  destruct (_ && _) eqn:P; [|discriminate]. rewrite !andb_true_iff in P.
  destruct P as ((((P & A0) & A) & B0) & B). apply R_below in P. apply R_le in A0, A, B0, B.
  rewrite R_0, ?Q2R_mult in *. intros H. split; [exact P|]. intros r R.
  assert (K : holds (Between a b) (sqrt r)).
  { unfold holds in *. simpl. split.
    - rewrite <- (sqrt_square (Q2R a)) by exact A0. apply sqrt_le_1_alt. lra.
    - rewrite <- (sqrt_square (Q2R b)) by exact B0. apply sqrt_le_1_alt. lra. }
  destruct n as [q|]; injection H as <-; [|exact K].
  destruct (Qeq_bool (a * a) q) eqn:E; [|exact K].
  apply Qeq_bool_eq, Qeq_eqR in E. rewrite Q2R_mult in E. apply holds_exact in R.
  apply holds_exact. rewrite R_reduced, R, <- E. now apply sqrt_square.
Qed.

(** ** exp(-q) *)

Definition exp_term (r : R) (k : nat) : R := r ^ k / INR (fact k).

Lemma alternating_spec n r :
  Q2R (snd (alternating n r)) = (-1) ^ n * exp_term (Q2R r) n
  /\ Q2R (fst (alternating n r)) = sum_f_R0 (tg_alt (exp_term (Q2R r))) n.
Proof.
  induction n as [|n [T Su]].
  - simpl. unfold tg_alt, exp_term. simpl. rewrite R_1. lra.
  - cbn [alternating]. destruct (alternating n r) as [s t]. cbn [fst snd] in *.
    assert (E : Q2R (times t (times (- r) (1 # Pos.of_succ_nat n)))
                = (-1) ^ S n * exp_term (Q2R r) (S n)).
    { rewrite !R_times, T, Q2R_opp. unfold exp_term.
      replace (Q2R (1 # Pos.of_succ_nat n)) with (/ INR (S n)).
      - rewrite fact_simpl, mult_INR. simpl pow. field.
        split; [apply INR_fact_neq_0 | apply not_0_INR; discriminate].
      - unfold Q2R. cbn [Qnum Qden]. rewrite Rmult_1_l, INR_IZR_INZ. reflexivity. }
    split; [exact E|]. rewrite R_plus, Su, E. reflexivity.
Qed.

Lemma series_bounds r m : 0 <= r <= 1 ->
  sum_f_R0 (tg_alt (exp_term r)) (S (2 * m)) <= exp (- r) <= sum_f_R0 (tg_alt (exp_term r)) (2 * m).
Proof.
  intros H. apply alternated_series_ineq.
  - intros n. unfold exp_term. rewrite fact_simpl, mult_INR. simpl pow.
    assert (0 < INR (fact n)) by apply INR_fact_lt_0.
    assert (1 <= INR (S n)) by (rewrite S_INR; pose proof (pos_INR n); lra).
    assert (0 <= r ^ n) by (apply pow_le; lra).
    apply Rmult_le_reg_r with (INR (S n) * INR (fact n)); [nra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by nra.
    replace (r ^ n * / INR (fact n) * (INR (S n) * INR (fact n))) with (r ^ n * INR (S n))
      by (field; lra). nra.
  - apply cv_speed_pow_fact.
  - unfold exp. destruct (exist_exp (- r)) as [l L]. simpl.
    intros e He. destruct (L e He) as [N HN]. exists N. intros n Hn. specialize (HN n Hn).
    replace (sum_f_R0 (tg_alt (exp_term r)) n)
      with (sum_f_R0 (fun i => / INR (fact i) * (- r) ^ i) n); [exact HN|].
    apply sum_eq. intros i _. unfold tg_alt, exp_term.
    replace (- r) with ((-1) * r) by ring. rewrite Rpow_mult_distr. unfold Rdiv. ring.
Qed.

Lemma down_nonneg q : 0 <= Q2R q -> 0 <= Q2R (down q).
Proof.
  intros H. rewrite <- R_0 in *. apply Rle_Qle in H. apply Qle_Rle.
  unfold Qle, down in *. cbn [Qnum Qden] in *. rewrite Z.mul_1_r in *. simpl in *.
  apply Z.div_pos; [|reflexivity]. nia.
Qed.

Lemma squared_spec k l h z : 0 <= Q2R l <= exp z -> exp z <= Q2R h ->
  0 <= Q2R (fst (squared k (l, h))) <= exp (2 ^ k * z)
  /\ exp (2 ^ k * z) <= Q2R (snd (squared k (l, h))).
Proof.
  intros L H. induction k as [|k [A B]]; [simpl; rewrite Rmult_1_l; auto|].
  cbn [squared]. destruct (squared k (l, h)) as [a b]. cbn [fst snd] in *.
  replace (2 ^ S k * z) with (2 ^ k * z + 2 ^ k * z) by (simpl; ring). rewrite exp_plus.
  set (e := exp (2 ^ k * z)) in *.
  pose proof (R_down (a * a)). pose proof (R_up (b * b)). rewrite Q2R_mult in *.
  split; [split|]; [apply down_nonneg; rewrite Q2R_mult| |]; nra.
Qed.

Lemma exp_minus_spec q : 0 <= Q2R q ->
  Q2R (fst (exp_minus q)) <= exp (- Q2R q) <= Q2R (snd (exp_minus q)).
Proof.
  intros P. unfold exp_minus. cbv zeta.
  set (c := least q 1024). set (r := (c * (1 # 16384))%Q).
  assert (E1 : 0 <= exp (- Q2R q) <= 1).
  { pose proof (exp_pos (- Q2R q)). rewrite <- exp_0. split; [lra|].
    destruct (Req_dec (Q2R q) 0) as [->|]; [rewrite Ropp_0; lra|].
    left. apply exp_increasing. lra. }
  destruct (_ && _) eqn:B; [|simpl; rewrite R_0, R_1; exact E1].
  apply andb_true_iff in B. destruct B as [B1 B2]. apply R_le in B1, B2. rewrite R_0, R_1 in *.
  pose proof (R_down r) as D. pose proof (R_up r) as U.
  set (h := up (fst (alternating 24 (down r)))).
  set (l := greatest 0 (down (fst (alternating 25 (up r))))).
  assert (Mono : forall a b, a <= b -> exp a <= exp b).
  { intros a b [H| ->]; [left; now apply exp_increasing | lra]. }
  assert (Hh : exp (- Q2R r) <= Q2R h).
  { pose proof (R_up (fst (alternating 24 (down r)))). fold h in H.
    rewrite (proj2 (alternating_spec 24 (down r))) in H.
    pose proof (series_bounds (Q2R (down r)) 12 ltac:(lra)) as S.
    change (2 * 12)%nat with 24%nat in S.
    pose proof (Mono (- Q2R r) (- Q2R (down r)) ltac:(lra)). lra. }
  assert (Hl : 0 <= Q2R l <= exp (- Q2R r)).
  { pose proof (R_greatest 0 (down (fst (alternating 25 (up r))))) as G. fold l in G.
    rewrite R_0 in G. split; [lra|].
    destruct (R_greatest_is 0 (down (fst (alternating 25 (up r))))) as [E|E]; fold l in E; rewrite E.
    - rewrite R_0. left. apply exp_pos.
    - pose proof (R_down (fst (alternating 25 (up r)))) as H.
      rewrite (proj2 (alternating_spec 25 (up r))) in H.
      pose proof (series_bounds (Q2R (up r)) 12 ltac:(lra)) as Sb.
      change (S (2 * 12))%nat with 25%nat in Sb.
      pose proof (Mono (- Q2R (up r)) (- Q2R r) ltac:(lra)). lra. }
  destruct (squared_spec 14 l h _ Hl Hh) as [X Y].
  assert (Z : 2 ^ 14 * - Q2R r = - Q2R c).
  { unfold r. rewrite Q2R_mult. replace (Q2R (1 # 16384)) with (/ 16384) by (unfold Q2R; simpl; lra).
    simpl. lra. }
  rewrite Z in X, Y.
  destruct (squared 14 (l, h)) as [l' h']. cbn [fst snd] in *.
  pose proof (R_least q 1024) as M. fold c in M.
  split.
  - destruct (Qle_bool q 1024) eqn:Q; [|rewrite R_0; lra].
    replace c with q in X by (unfold c, least; now rewrite Q). lra.
  - pose proof (Mono (- Q2R q) (- Q2R c) ltac:(lra)). lra.
Qed.

(** ** Polynomials of enclosures, vectors *)

Lemma neval_holds p x r : holds x r -> holds (neval p x) (poly p r).
Proof.
  intros H. induction p; [apply holds_0|]. cbn [neval polynomial].
  apply nplus_holds; [now apply holds_exact | now apply ntimes_holds].
Qed.

Lemma nslope_holds p x r : holds x r -> holds (nslope p x) (slope p r).
Proof.
  intros H. induction p; [apply holds_0|]. cbn [nslope slope].
  apply nplus_holds; [now apply neval_holds | now apply ntimes_holds].
Qed.

(** an enclosure of every coordinate *)
Definition encloses (u : list num) (x : point) : Prop := forall i, holds (nth i u (Exact 0)) (x i).

Lemma encloses_add u v x y : encloses u x -> encloses v y ->
  encloses (vadd u v) (fun i => x i + y i).
Proof.
  revert v x y. induction u as [|a u IH]; intros [|b v] x y A B i.
  - specialize (A i). specialize (B i). destruct i; apply holds_exact in A, B; apply holds_exact;
      rewrite A, B, R_0; lra.
  - specialize (A i). specialize (B i). destruct i; simpl in *; apply holds_exact in A;
      rewrite A, R_0, Rplus_0_l; exact B.
  - specialize (A i). specialize (B i). destruct i; simpl in *; apply holds_exact in B;
      rewrite B, R_0, Rplus_0_r; exact A.
  - destruct i; cbn [vadd nth].
    + apply nplus_holds; [apply (A 0%nat) | apply (B 0%nat)].
    + apply (IH v (fun i => x (S i)) (fun i => y (S i))); intros j; [apply (A (S j)) | apply (B (S j))].
Qed.

Lemma encloses_scale c u x : encloses u x -> encloses (vscale c u) (fun i => Q2R c * x i).
Proof.
  revert x. induction u as [|a u IH]; intros x A i.
  - specialize (A i). destruct i; apply holds_exact in A; apply holds_exact; rewrite A, R_0; ring.
  - destruct i; cbn [vscale map nth].
    + apply ntimes_holds; [now apply holds_exact | apply (A 0%nat)].
    + apply (IH (fun i => x (S i))). intros j. apply (A (S j)).
Qed.

Lemma sum_front n a : sum (S n) a = a 0%nat + sum n (fun i => a (S i)).
Proof. induction n; simpl in *; [lra|]. rewrite IHn. lra. Qed.

Lemma square_spec n u x : encloses u x -> dot n x x <= Q2R (square n u).
Proof.
  unfold dot. revert u x. induction n; intros u x H; [simpl; rewrite R_0; lra|].
  rewrite sum_front. cbn [square]. rewrite R_plus. apply Rplus_le_compat.
  - assert (K : holds (hd (Exact 0) u) (x 0%nat)) by (specialize (H 0%nat); now destruct u).
    apply nsquare_holds in K. apply K.
  - apply (IHn (tl u) (fun i => x (S i))). intros i. specialize (H (S i)).
    destruct u; [destruct i; exact H | exact H].
Qed.
